# SPDX-License-Identifier: Apache-2.0
"""Whether a transport is one: numbers within their bounds, and a law whose functions give numbers."""

from collections.abc import Callable, Iterator
from itertools import product
from math import isfinite
from typing import Any

import numpy as np
from numba.core.ccallback import CFunc

from flitlab.models.faults import Found, is_whole, rebuilt, refuse, refuse_other
from flitlab.models.transport.control import ACK_PATHS, MEMORY, Law, Transport

KEY = "transport"
"""Key of the ``SpecError`` of a transport as a whole."""

_LEAST = {
    "flows": 1, "subflows": 1, "ack_bytes": 1, "init_window": 1, "ssthresh": 1, "mark_packets": 0, "ack_path": 0,
}  # fmt: skip
"""Whole numbers and the least that each may be."""

_TIMES = {"start_ms": 0.0, "min_rto_ms": 1e-9, "syn_rto_ms": 1e-9}
"""The same of times."""

_MSS = 1000.0
"""Bytes of a packet when functions of a law are tried."""


def validate_transport(transport: Transport, tried: bool = False, method: str = "build") -> Transport:
    """A transport whose numbers are within their bounds; ``tried``: and whose law gives numbers.

    by: name of the method that gave it. Raises ``FaultyError`` (key: transport).
    """
    refuse_other(transport, Transport, method, KEY)
    refuse(_number_errors(transport), KEY)
    if tried and transport.law is not None:
        refuse(_function_errors(transport.law), KEY)
    return rebuilt(Transport, transport)


def _number_errors(transport: Transport) -> Found:
    if not isinstance(transport.name, str):
        yield "name", f"name must be a text, and is {transport.name!r}"
    for name, least in _LEAST.items():
        if not is_whole(value := getattr(transport, name)) or value < least:
            yield name, f"{name} must be a whole number, {least} or more, and is {value!r}"
    if transport.ack_path not in ACK_PATHS.values():
        yield "ack_path", f"ack_path is {transport.ack_path!r}: it must be INSTANT, PURE_DELAY or REVERSE_PATH"
    for name, shortest in _TIMES.items():
        value = getattr(transport, name)
        if value is not None and (not _is_number(value) or value < shortest):
            yield name, f"{name} must be a finite number, {shortest:g} or more, and is {value!r}"
    if not _is_number(transport.rate) or not 0 < transport.rate <= 1:
        yield "rate", f"rate must be above 0 and at most 1, and is {transport.rate!r}"
    control = transport.law
    if control is not None and not (isinstance(control, Law) and all(isinstance(part, CFunc) for part in control)):
        yield "law", "law must be None, or what flitlab.models.transport.law.law makes of functions"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and isfinite(value)


def _function_errors(control: Law) -> Found:
    """What a law gives for windows of 1 to 10**6 packets, where Python, which looks at bounds, runs its functions."""
    for name, calls, least in (
        ("grow", _growths(), -np.inf), ("back_off", _losses(), 0.0), ("mark", _marks(), -np.inf),
    ):  # fmt: skip
        function: Callable[..., float] = getattr(control, name).__wrapped__
        for arguments in calls:
            if problem := _output_error(function, arguments, least):
                yield name, f"{name}({', '.join(map(str, arguments))}) {problem}"
                break


def _output_error(function: Callable[..., float], arguments: tuple[Any, ...], least: float) -> str:
    """What is wrong with what a function gives; '' if nothing is."""
    try:
        with np.errstate(all="ignore"):
            result = function(*arguments)
    except Exception as error:  # a stranger's code may raise anything
        return f"raises {type(error).__name__}: {error}"
    if not _is_number(result):
        return f"is {result!r}: it must be a finite number"
    return f"is {result!r}: it must be positive" if least == 0.0 and result <= 0 else ""


_WINDOWS = [np.float64(packets * _MSS) for packets in (1, 2, 3, 10, 1000, 10**6)]


def _growths() -> Iterator[tuple[Any, ...]]:
    memory = np.zeros(MEMORY)
    for subflows, window, rtt, credit in product((1, 2, 8), _WINDOWS, (1.0, 1e3, 1e9), (1.0, _MSS)):
        windows, rtts = np.full(subflows, window), np.full(subflows, rtt)
        rtts[1:2] = 0.0  # one that has not been measured
        yield windows, rtts, 0, np.float64(credit), np.float64(_MSS), memory, int(rtt)


def _losses() -> Iterator[tuple[Any, ...]]:
    memory = np.zeros(MEMORY)
    yield from ((window, np.float64(_MSS), memory) for window in _WINDOWS)


def _marks() -> Iterator[tuple[Any, ...]]:
    memory = np.zeros(MEMORY)
    for window, share in product(_WINDOWS, (0.0, 0.01, 0.5, 1.0)):
        yield window, np.float64(share), np.float64(_MSS), memory
