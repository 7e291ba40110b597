"""What a transport is: a control law, and the numbers of the machine that it steers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numba
from numba import float64, int64, types
from pydantic import Field

from flitlab.models.registry import Spec, SpecError

_ROW = types.Array(float64, 1, "C")
_SIGNATURES = {
    "grow": float64(_ROW, _ROW, int64, float64, float64, _ROW, int64),
    "back_off": float64(float64, float64, _ROW),
    "mark": float64(float64, float64, float64, _ROW),
}

MEMORY = 4
"""Numbers that a law may keep for each subflow."""

INSTANT, PURE_DELAY, REVERSE_PATH = 0, 1, 2
ACK_PATHS = {"instant": INSTANT, "pure_delay": PURE_DELAY, "reverse_path": REVERSE_PATH}

AckPath = Literal["instant", "pure_delay", "reverse_path"]


class Law(NamedTuple):
    """A control law, compiled; see :func:`law`."""

    grow: Any
    back_off: Any
    mark: Any


def halve(window, mss, memory):
    """``back_off`` of TCP: half of what is outstanding, but two packets."""
    return max(window / 2.0, 2.0 * mss)


def ignore(window, share, mss, memory):
    """``mark`` of a law that knows no marks."""
    return window


def law(grow: Callable, back_off: Callable = halve, mark: Callable = ignore) -> Law:
    """The law of three functions in the subset Numba compiles; both engines call the same machine code.

    grow(windows, rtts, i, credit, mss, memory, now): bytes by which a new acknowledgement of ``credit`` bytes widens
    the window in congestion avoidance. windows, rtts: float64 [subflows], bytes and ticks, of all subflows of the flow
    (an rtt is 0 before the first sample); i: which of them this is. back_off(window, mss, memory): the slow start
    threshold after a loss, bytes, from the bytes that are outstanding. mark(window, share, mss, memory): the new
    window, once for each window of data of which this ``share`` of the packets came with a mark. memory: float64
    [MEMORY], the subflow's own, 0 at first.

    Raises ``SpecError``, with the function's place, where one cannot be compiled.
    """
    return Law(*(_compiled(name, function) for name, function in zip(Law._fields, (grow, back_off, mark), strict=True)))


@cache
def _compiled(name: str, function: Callable) -> Any:
    try:
        return numba.cfunc(_SIGNATURES[name], cache=True, nopython=True, error_model="numpy")(function)
    except numba.core.errors.NumbaError as error:
        code = function.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
        raise SpecError(f"{name} ({place}) cannot be compiled: {str(error).splitlines()[0]}") from error


@dataclass(frozen=True)
class Transport:
    """How hosts send, with every number in the units of the configuration.

    law: None for senders at a constant rate, which are not acknowledged. name: of the law, its parameters included.
    flows: of each pair of hosts; subflows: of each flow, on a path each. rate: of a constant-rate flow, as a fraction
    of the network interface. mark_packets: occupancy above which a queue marks packets; 0: never.
    """

    name: str
    law: Law | None
    flows: int = 1
    subflows: int = 1
    ack_path: int = INSTANT
    ack_bytes: int = 40
    start_ms: float = 50.0
    min_rto_ms: float = 250.0
    syn_rto_ms: float = 3000.0
    init_window: int = 10
    ssthresh: int = 100
    mark_packets: int = 0
    rate: float = 1.0


class TransportSpec(Spec):
    """Keys that all transports have; a transport defines :meth:`build`.

    flows: of every pair of hosts that talk; subflows: of each of them, every one on a path of its own. start_ms: a
    subflow starts within so much, at random.
    """

    flows: int = Field(default=1, ge=1, le=1024)
    subflows: int = Field(default=1, ge=1, le=1024)
    start_ms: float = Field(default=50.0, ge=0, le=1e6)

    def build(self) -> Transport:
        """The transport. Raises ``SpecError``."""
        raise NotImplementedError


class WindowedSpec(TransportSpec):
    """Keys of the transports with a congestion window.

    ack_path: an acknowledgement comes back at once (``instant``), after the delay of the path's links
    (``pure_delay``), or as a packet of ``ack_bytes`` through the queues (``reverse_path``). A connection is opened by a
    packet of one byte, sent again after ``syn_rto_ms``. init_window, ssthresh: packets.
    """

    ack_path: AckPath = "instant"
    ack_bytes: int = Field(default=40, ge=1, le=65535)
    min_rto_ms: float = Field(default=250.0, gt=0, le=1e6)
    syn_rto_ms: float = Field(default=3000.0, gt=0, le=1e7)
    init_window: int = Field(default=10, ge=1, le=10**5)
    ssthresh: int = Field(default=100, ge=1, le=10**6)

    def windowed(self, control: Law, **more: Any) -> Transport:
        """The transport of a law with these keys."""
        keys = ("flows", "subflows", "ack_bytes", "start_ms", "min_rto_ms", "syn_rto_ms", "init_window", "ssthresh")
        own = {key: getattr(self, key) for key in keys}
        return Transport(self._name(), control, ack_path=ACK_PATHS[self.ack_path], **own, **more)

    def _name(self) -> str:
        return repr(self)
