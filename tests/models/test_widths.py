# SPDX-License-Identifier: Apache-2.0
"""Compiled code in which Numba would widen a difference of 32-bit numbers, or make integers real, is rejected."""

import numpy as np
import pytest
from numba.core.errors import NumbaError

from flitlab.models.jit import NUMBA_TESTED, device_function, inline, njit

pytestmark = pytest.mark.skipif(not NUMBA_TESTED, reason="widths are checked with the tried version of Numba alone")

EARLY, LATE = np.uint32(2**32 - 5), np.uint32(7)
RECORD = np.dtype([("tick", np.uint32), ("total", np.int64)])


@njit
def wide(now, then):
    return np.int64(now - then)


@njit
def compared(now, then):
    return now - then < 100


@njit
def kept(now, then):
    since = now - then
    return np.uint32(since) if since else np.uint32(0)


@inline
def _hidden(records, now):
    records[0].total += np.int64(now - records[0].tick)


@device_function
def in_a_part(records, now):
    _hidden(records, now)


@njit
def negative(tick):
    return -tick


@njit
def largest(signed, tick):
    return max(signed, np.uint64(tick))


@njit
def alternative(signed, tick):
    either = np.uint64(tick)
    if signed > 0:
        either = signed
    return either


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (wide, (LATE, EARLY), "difference of uint32 and uint32 is uint64"),
        (compared, (LATE, EARLY), "difference of uint32 and uint32 is uint64"),
        (kept, (LATE, EARLY), "difference of uint32 and uint32 is uint64"),
        (wide, (LATE, np.uint64(3)), "difference of uint32 and uint64 is uint64"),
        (wide, (np.uint8(1), np.uint16(3)), "difference of uint8 and uint16 is uint64"),
        (in_a_part, (np.zeros(1, RECORD), LATE), "difference of uint32 and uint32 is uint64"),
        (negative, (EARLY,), "negative of uint32 is uint64"),
        (largest, (-1, EARLY), "int64 and uint64 become float64"),
        (alternative, (5, EARLY), "int64 and uint64 become float64"),
    ],
)
def test_a_result_of_another_width_or_sign_is_rejected_with_its_line(function, arguments, says):
    with pytest.raises(NumbaError, match=says) as error:
        function(*arguments)
    assert "test_widths.py" in str(error.value)


@njit
def wrapped(now, then):
    return np.int64(np.uint32(now - then))


@njit
def widened(now, then):
    return np.int64(now) - np.int64(then), now - np.int64(then), np.int64(now) / 2, max(now, then)


@njit
def stored(ticks, records, then):
    ticks[0] -= then
    records[0].tick -= then
    records[0].total -= np.int64(then)


@njit
def bits(words):
    return words & (words - np.uint64(1))


def test_differences_that_wrap_or_are_widened_before_are_not():
    assert wrapped(LATE, EARLY) == 12
    assert widened(LATE, EARLY)[0] == 12 - 2**32
    ticks, records = np.array([7], np.uint32), np.zeros(1, RECORD)
    stored(ticks, records, EARLY)
    assert ticks[0] == 12 and records[0]["tick"] == 5 and records[0]["total"] == 5 - 2**32
    assert bits(np.uint64(12)) == 8
