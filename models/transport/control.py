# SPDX-License-Identifier: Apache-2.0
"""Transports: a congestion control, and the parameters of the state machine around it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numba
from numba import float64, int64, types

from flitlab.models.arrays import Floats, Int
from flitlab.models.registry import SpecError

_ROW = types.Array(float64, 1, "C")
_SIGNATURES = {
    "grow": float64(_ROW, _ROW, int64, float64, float64, _ROW, int64),
    "back_off": float64(float64, float64, _ROW),
    "mark": float64(float64, float64, float64, _ROW),
}

MEMORY = 4
"""Numbers that a congestion control may keep for each subflow."""


class _AckPath(NamedTuple):
    """How acknowledgements return: at once, after the delay of the path's links, or as packets through the queues."""

    INSTANT: int = 0
    PURE_DELAY: int = 1
    REVERSE_PATH: int = 2


AckPath = _AckPath()

Grow: TypeAlias = Callable[[Floats, Floats, int, float, float, Floats, Int], float]
"""Type of ``grow``; see :func:`law`."""

BackOff: TypeAlias = Callable[[float, float, Floats], float]
"""Type of ``back_off``; see :func:`law`."""

Mark: TypeAlias = Callable[[float, float, float, Floats], float]
"""Type of ``mark``; see :func:`law`."""


class Law(NamedTuple):
    """A compiled congestion control; see :func:`law`."""

    grow: Grow
    back_off: BackOff
    mark: Mark


def halve(window: float, mss: float, memory: Floats) -> float:
    """``back_off`` of TCP: half of the outstanding bytes, at least two packets.

    Parameters
    ----------
    window: outstanding bytes.
    mss: bytes of a packet.
    memory: float64 [MEMORY], state of the subflow.

    Returns
    -------
    Slow start threshold, bytes.

    Source: RFC 5681, equation 4.
    """
    return max(window / 2.0, 2.0 * mss)


def ignore(window: float, share: float, mss: float, memory: Floats) -> float:
    """``mark`` of a congestion control without ECN: the window does not change.

    Parameters
    ----------
    window: congestion window, bytes.
    share: fraction of marked packets.
    mss: bytes of a packet.
    memory: float64 [MEMORY], state of the subflow.

    Returns
    -------
    The window, bytes.
    """
    return window


def law(grow: Grow, back_off: BackOff = halve, mark: Mark = ignore) -> Law:
    """The congestion control of three functions in the subset that Numba compiles. Both engines call the same code.

    Parameters
    ----------
    grow: grow(windows, rtts, i, credit, mss, memory, now) -> bytes by which a new acknowledgement of ``credit`` bytes
        widens the window in congestion avoidance. windows, rtts: float64 [subflows], bytes and ticks, of all subflows
        of the flow (an rtt is 0 before the first sample); i: the index of this one.
    back_off: back_off(window, mss, memory) -> slow start threshold after a loss, bytes, from the outstanding bytes.
    mark: mark(window, share, mss, memory) -> the window after each window of data, of which a ``share`` of the packets
        was marked. memory: float64 [MEMORY], the subflow's own, 0 at first.

    Returns
    -------
    The compiled functions.

    Raises
    ------
    SpecError: a function cannot be compiled; the message names its file and line.
    """
    return Law(*(_compiled(name, function) for name, function in zip(Law._fields, (grow, back_off, mark), strict=True)))


@cache
def _compiled(name: str, function: Callable[..., float]) -> Any:
    try:
        return numba.cfunc(_SIGNATURES[name], cache=True, nopython=True, error_model="numpy")(function)
    except numba.core.errors.NumbaError as error:
        code = function.__code__
        location = f"{code.co_filename}:{code.co_firstlineno}"
        raise SpecError(f"{name} ({location}) cannot be compiled: {str(error).splitlines()[0]}") from error


@dataclass(frozen=True)
class Transport:
    """How hosts send, in the units of the configuration.

    law: the congestion control; None for constant-rate senders, which are not acknowledged. name: of the congestion
    control with its parameters. flows: per pair of hosts; subflows: per flow, on a path each. rate: of a constant-rate
    flow, as a fraction of the network interface. mark_packets: queue length above which packets are marked; 0: never.
    start_ms, min_rto_ms, syn_rto_ms: None for defaults from the network (:mod:`flitlab.models.transport.times`).
    """

    name: str
    law: Law | None
    flows: int = 1
    subflows: int = 1
    ack_path: int = AckPath.INSTANT
    ack_bytes: int = 40
    start_ms: float | None = None
    min_rto_ms: float | None = None
    syn_rto_ms: float | None = None
    init_window: int = 10
    ssthresh: int = 100
    mark_packets: int = 0
    rate: float = 1.0
