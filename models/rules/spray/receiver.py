# SPDX-License-Identifier: Apache-2.0
"""What a receiver does with what arrives: acknowledge it at once, later, or ask for it again."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.spray.layout import (
    ACK_REQUESTED,
    ACKS,
    BEGUN,
    BYTES,
    COMPLETE,
    COUNT,
    EXPECTED,
    MARKS,
    NACKS,
    OUT_OF_ORDER,
    SINCE,
    TRIMS,
    WORDS,
    Receivers,
    Rules,
    bits_at,
    has,
    put,
)

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@routine
def on_data(
    r: Rules, g: Receivers, i: Int, number: Int, size: Int, marked: bool, ack_requested: bool, now: Int
) -> bool:
    """A data packet of flow i comes whole; whether it is acknowledged now. asks: it wants to be."""
    got = g.got[i]
    got[MARKS] += np.int64(marked)
    if number < got[EXPECTED] or has(g.have, got[WORDS], number):
        return _answer(r, g, i)
    put(g.have, got[WORDS], number)
    first, filled = got[BEGUN] == 0, False
    got[BEGUN] = 1
    got[BYTES] += size
    got[SINCE] += size
    if ack_requested:
        got[ACK_REQUESTED] = 1
    if number == got[EXPECTED]:
        _advance(g, i)
        filled = got[OUT_OF_ORDER] == 0 and got[ACK_REQUESTED] != 0
        if filled:
            got[ACK_REQUESTED] = 0
        if got[EXPECTED] == got[COUNT]:
            got[COMPLETE] = now
    else:
        got[OUT_OF_ORDER] += 1
    if marked or ack_requested or first or filled or got[SINCE] >= r.ack_bytes:
        return _answer(r, g, i)
    return False


@kernel
def _answer(r: Rules, g: Receivers, i: Int) -> bool:
    g.got[i, SINCE] = 0
    g.got[i, ACKS] += r.acknowledges
    return r.acknowledges != 0


@kernel
def _advance(g: Receivers, i: Int) -> None:
    """Go on to the first packet that is missing."""
    got = g.got[i]
    before = got[EXPECTED]
    while True:
        more = lowest(~bits_at(g.have, got[WORDS], got[EXPECTED]))
        got[EXPECTED] += more
        if more < 64:
            break
    got[OUT_OF_ORDER] -= got[EXPECTED] - before - 1


@kernel
def on_trimmed(r: Rules, g: Receivers, i: Int, number: Int, marked: bool) -> bool:
    """A trimmed packet of flow i comes; whether it is asked for again (or else acknowledged, as it came before)."""
    got = g.got[i]
    got[TRIMS] += 1
    got[MARKS] += np.int64(marked)
    if number < got[EXPECTED] or has(g.have, got[WORDS], number):
        _answer(r, g, i)
        return False
    got[NACKS] += 1
    return True


@kernel
def on_request(r: Rules, g: Receivers, i: Int) -> None:
    """A request to send, or a probe, of flow i comes, and is acknowledged at once."""
    _answer(r, g, i)


@kernel
def bits_from(g: Receivers, i: Int, number: Int, exact: bool) -> int:
    """The packet from which on an acknowledgement says what has come; number: which caused it.

    exact: whether that was marked or asked for an acknowledgement.
    """
    if exact and number >= 0:
        return np.int64(number)
    return max(np.int64(number) - 63, g.got[i, EXPECTED] + 1)


@kernel
def bits_of(g: Receivers, i: Int, start: Int) -> int:
    """Which of the 64 packets from ``start`` on flow i has: bits of an int64, the lowest for the first."""
    got = g.got[i]
    if start >= got[COUNT]:
        return np.int64(0)
    return np.int64(bits_at(g.have, got[WORDS], np.int64(start)))
