# SPDX-License-Identifier: Apache-2.0
"""Validation of transports: numbers within bounds, and a congestion control whose functions return numbers."""

from collections.abc import Callable, Iterator
from itertools import product
from math import isfinite

import numpy as np
from numba.core.ccallback import CFunc

from flitlab.models.transport.control import MEMORY, AckPath, Law, Transport
from flitlab.models.validation import Errors, copy_fields, is_whole, raise_errors, require_type

KEY = "transport"
"""Key of the ``SpecError`` of a whole transport."""

_LEAST = {
    "flows": 1, "subflows": 1, "ack_bytes": 1, "init_window": 1, "ssthresh": 1, "mark_packets": 0, "ack_path": 0,
}  # fmt: skip
"""Whole numbers and their lower bounds."""

_TIMES = {"start_ms": 0.0, "min_rto_ms": 1e-9, "syn_rto_ms": 1e-9}
"""Times and their lower bounds."""

_MSS = 1000.0
"""Bytes of a packet when functions are tried."""


def validate_transport(transport: Transport, tried: bool = False, method: str = "build") -> Transport:
    """Check that the numbers of a transport are within bounds, and that its congestion control returns numbers.

    Parameters
    ----------
    transport: the transport.
    tried: whether to call the functions of the congestion control.
    method: name of the method that returned it.

    Returns
    -------
    The transport.

    Raises
    ------
    FaultyError: an error (key: transport).
    """
    require_type(transport, Transport, method, KEY)
    raise_errors(_number_errors(transport), KEY)
    if tried and transport.law is not None:
        raise_errors(_function_errors(transport.law), KEY)
    return copy_fields(Transport, transport)


def _number_errors(transport: Transport) -> Errors:
    if not isinstance(transport.name, str):
        yield "name", f"name must be a text, and is {transport.name!r}"
    for name, least in _LEAST.items():
        if not is_whole(value := getattr(transport, name)) or value < least:
            yield name, f"{name} must be a whole number, {least} or more, and is {value!r}"
    if transport.ack_path not in AckPath:
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and isfinite(value)


def _function_errors(control: Law) -> Errors:
    """Errors in the results of a congestion control for windows of 1 to 10**6 packets, called as Python."""
    for name, calls, least in (
        ("grow", _growths(), -np.inf), ("back_off", _losses(), 0.0), ("mark", _marks(), -np.inf),
    ):  # fmt: skip
        function: Callable[..., float] = getattr(control, name).__wrapped__
        for arguments in calls:
            if problem := _output_error(function, arguments, least):
                yield name, f"{name}({', '.join(map(str, arguments))}) {problem}"
                break


def _output_error(function: Callable[..., float], arguments: tuple[object, ...], least: float) -> str:
    """The error in the result of a function; '' if there is none."""
    try:
        with np.errstate(all="ignore"):
            result = function(*arguments)
    except Exception as error:  # third-party code may raise anything
        return f"raises {type(error).__name__}: {error}"
    if not _is_number(result):
        return f"is {result!r}: it must be a finite number"
    return f"is {result!r}: it must be positive" if least == 0.0 and result <= 0 else ""


_WINDOWS = [np.float64(packets * _MSS) for packets in (1, 2, 3, 10, 1000, 10**6)]


def _growths() -> Iterator[tuple[object, ...]]:
    memory = np.zeros(MEMORY)
    for subflows, window, rtt, credit in product((1, 2, 8), _WINDOWS, (1.0, 1e3, 1e9), (1.0, _MSS)):
        windows, rtts = np.full(subflows, window), np.full(subflows, rtt)
        rtts[1:2] = 0.0  # one that has not been measured
        yield windows, rtts, 0, np.float64(credit), np.float64(_MSS), memory, int(rtt)


def _losses() -> Iterator[tuple[object, ...]]:
    memory = np.zeros(MEMORY)
    yield from ((window, np.float64(_MSS), memory) for window in _WINDOWS)


def _marks() -> Iterator[tuple[object, ...]]:
    memory = np.zeros(MEMORY)
    for window, share in product(_WINDOWS, (0.0, 0.01, 0.5, 1.0)):
        yield window, np.float64(share), np.float64(_MSS), memory
