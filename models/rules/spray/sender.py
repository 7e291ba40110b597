# SPDX-License-Identifier: Apache-2.0
"""The machine of a sender: what it may send, and what it makes of answers and of silence."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.spray.credit import on_first_response, pull_target
from flitlab.models.rules.spray.layout import (
    BASE,
    CREDIT,
    ETA_AT,
    FINISHED,
    FIRST,
    FLIGHT,
    GOOD,
    KNOWN,
    MARKED,
    NDP,
    NEXT,
    NO_CREDIT,
    NO_WINDOW,
    PACKETS,
    RCCC,
    RECOVER,
    RESEND_FROM,
    RESENDS_PENDING,
    RESENT,
    RTS_AT,
    RTS_OUT,
    STARTED,
    TIMED_OUT,
    TIMEOUTS,
    UNA,
    WINDOW,
    WORD,
    Rules,
    Senders,
    bits_at,
    clear_at,
    has,
    put,
    queue_resend,
    size_of,
    take,
)
from flitlab.models.rules.spray.recovery import recover
from flitlab.models.rules.spray.spread import choose_entropy, learn
from flitlab.models.rules.spray.window import window_on_ack, window_on_timeout, window_on_trim

ASKS, IS_AGAIN = 1, 2
"""Flags of a data packet: it wants to be acknowledged at once; it was sent before."""

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NO_RECORD = np.int64(-1)


@kernel
def begin_sending(s: Senders, i: Int, now: Int) -> None:
    """Let sender i begin, if it has not begun yet."""
    seq = s.seq[i]
    if seq[STARTED] < 0:
        seq[STARTED] = seq[ETA_AT] = now


@kernel
def next_packet(r: Rules, s: Senders, i: Int) -> int:
    """The packet that sender i sends next: the first that was lost, else a new one; PACKETS if there is none."""
    seq = s.seq[i]
    if seq[RESENDS_PENDING] == 0:
        return seq[NEXT]
    number = seq[RESEND_FROM]
    while True:
        bits = bits_at(s.resend_pending, seq[WORD], number)
        if bits != 0:
            return number + lowest(bits)
        number += 64


@kernel
def may_send(r: Rules, s: Senders, i: Int) -> bool:
    """Whether sender i has something to send and window and credit let it."""
    seq = s.seq[i]
    if seq[RESENDS_PENDING] == 0 and seq[NEXT] >= seq[PACKETS]:
        return False
    if r.credit != NO_CREDIT and seq[CREDIT] <= 0:
        return False
    if r.window == NO_WINDOW or (seq[RECOVER] >= 0 and seq[RESENDS_PENDING] > 0):
        return True
    return float(seq[FLIGHT] + size_of(r, s, i, next_packet(r, s, i))) <= s.win[i, WINDOW]


@routine
def send(r: Rules, s: Senders, i: Int, waiting: Int, now: Int) -> tuple[int, int, int, int, int]:
    """Let sender i send a packet, as it may: its number, bytes, flags, entropy and pull target.

    waiting: how many connections of its host wait for their turn, itself included.
    """
    seq, number, again = s.seq[i], next_packet(r, s, i), s.seq[i, RESENDS_PENDING] > 0
    size = size_of(r, s, i, number)
    if again:
        take(s.resend_pending, seq[WORD], number)
        seq[RESENDS_PENDING] -= 1
        seq[RESEND_FROM] = number
        seq[RESENT] += 1
    else:
        seq[NEXT] += 1
    place = seq[FIRST] + number
    s.sent[place] = now << 2 | min((s.sent[place] & 3) + 1, 3)
    put(s.in_flight, seq[WORD], number)
    seq[FLIGHT] += size
    if r.credit != NO_CREDIT:
        seq[CREDIT] -= size if r.credit == RCCC else np.int64(r.mtu)
    ack_requested = again or number == seq[PACKETS] - 1
    ack_requested = ack_requested or (r.credit == RCCC and seq[CREDIT] <= 0)
    ack_requested = ack_requested or (r.window != NO_WINDOW and float(seq[FLIGHT] + size) >= s.win[i, WINDOW])
    flags = (ASKS if ack_requested else 0) | (IS_AGAIN if again else 0)
    return number, size, np.int64(flags), choose_entropy(r, s, i), pull_target(r, s, i, waiting)


@kernel
def _arrived(r: Rules, s: Senders, i: Int, number: Int, bits: np.uint64) -> None:
    """Forget packets that the receiver has, of which bit 0 is ``number``.

    Those that waited to be sent again left FLIGHT when they began to; as the receiver's count, which leaves FLIGHT,
    too, has them, they come back.
    """
    seq = s.seq[i]
    clear_at(s.in_flight, seq[WORD], number, bits)
    if seq[RESENDS_PENDING] == 0:
        return
    needless = bits_at(s.resend_pending, seq[WORD], number) & bits
    while needless != 0:
        place = number + lowest(needless)
        take(s.resend_pending, seq[WORD], place)
        seq[RESENDS_PENDING] -= 1
        seq[FLIGHT] += size_of(r, s, i, place)
        needless &= needless - np.uint64(1)


@kernel
def _sample(r: Rules, s: Senders, i: Int, number: Int, again: bool, now: Int) -> int:
    """The round trip of packet ``number`` if it is certain which time it was sent is answered, else -1."""
    seq = s.seq[i]
    if number < 0 or not has(s.in_flight, seq[WORD], number):
        return np.int64(-1)
    sent = s.sent[seq[FIRST] + number]
    if sent & 3 != (2 if again else 1):
        return np.int64(-1)
    sample = now - (sent >> 2)
    seq[BASE] = min(seq[BASE], sample)
    return sample


@routine
def on_ack(
    r: Rules, s: Senders, i: Int, expected: Int, received: Int, number: Int, again: bool, entropy: Int, marked: bool,
    start: Int, bits: Int, now: Int,
) -> bool:  # fmt: skip
    """An acknowledgement comes to sender i; whether it is the one by which everything is acknowledged.

    expected: first packet that is missing; received: distinct bytes. number, again, entropy, marked: of the packet that
    caused it; number -1: a request, PROBE: a probe. start, bits: the packets from ``start`` on that have come.
    """
    seq = s.seq[i]
    on_first_response(r, s, i)
    if number == _NO_RECORD:
        seq[RTS_OUT] = 0
    sample = _sample(r, s, i, number, again, now)
    news = max(received - seq[KNOWN], 0)
    seq[KNOWN] += news
    seq[FLIGHT] -= news
    while seq[UNA] < expected:
        step = min(np.int64(64), expected - seq[UNA])
        _arrived(r, s, i, seq[UNA], _ALL >> np.uint64(64 - step))
        seq[UNA] += step
    if bits != 0:
        _arrived(r, s, i, np.int64(start), np.uint64(bits))
    learn(r, s, i, entropy, MARKED if marked else GOOD, now)
    window_on_ack(r, s, i, news, marked, sample, now)
    if r.sleek != 0:
        recover(r, s, i, expected, received, number, now)
    if seq[UNA] < seq[PACKETS] or seq[FINISHED] >= 0:
        return False
    seq[FINISHED] = now
    return True


@routine
def on_nack(r: Rules, s: Senders, i: Int, number: Int, again: bool, last_hop: bool, now: Int) -> bool:
    """The news that packet ``number`` came trimmed; whether sender i had not heard otherwise before.

    Then it sends what it may, and only then learns of the entropy (:func:`on_nack_entropy`), and sends again. last_hop:
    it was cut in the queue towards its receiver.
    """
    seq = s.seq[i]
    on_first_response(r, s, i)
    if not has(s.in_flight, seq[WORD], number):
        return False
    _sample(r, s, i, number, again, now)
    if not (last_hop and r.credit == RCCC):
        window_on_trim(r, s, i, size_of(r, s, i, number), now)
    queue_resend(r, s, i, number)
    return True


@kernel
def on_nack_entropy(r: Rules, s: Senders, i: Int, entropy: Int, marked: bool, last_hop: bool, now: Int) -> None:
    """Let sender i learn of the entropy of a trimmed packet: no other would help at the last hop."""
    what = np.int64(2)
    if last_hop:
        what = np.int64(MARKED if marked else GOOD)
    learn(r, s, i, entropy, what, now)


@routine
def oldest(r: Rules, s: Senders, i: Int) -> int:
    """The packet of sender i under way that was sent longest ago, -1: none is."""
    seq, tick = s.seq[i], np.int64(0)
    packet: Int = _NO_RECORD
    for first in range(seq[UNA] & ~np.int64(63), seq[NEXT], 64):
        bits = s.in_flight[seq[WORD] + (first >> 6)]
        while bits != 0:
            number = first + lowest(bits)
            bits &= bits - np.uint64(1)
            sent = s.sent[seq[FIRST] + number] >> 2
            if packet < 0 or sent < tick:
                packet, tick = number, sent
    return packet


@routine
def deadline(r: Rules, s: Senders, i: Int) -> int:
    """The tick at which the timer of sender i expires, -1: it does not run."""
    seq, number = s.seq[i], oldest(r, s, i)
    if seq[FINISHED] >= 0 or r.acknowledges == 0:
        return np.int64(-1)
    sent = s.sent[seq[FIRST] + number] >> 2 if number >= 0 else seq[RTS_AT]
    if seq[RTS_OUT] != 0:
        sent = min(sent, seq[RTS_AT])
    elif number < 0:
        if not _may_starve(r, s, i):
            return np.int64(-1)
        sent = max(sent, s.sent[seq[FIRST] + max(seq[NEXT] - 1, 0)] >> 2)
    return sent + r.timeout


@kernel
def _may_starve(r: Rules, s: Senders, i: Int) -> bool:
    """Whether sender i, of whom nothing is under way, waits for credit that may have been lost with a link."""
    seq = s.seq[i]
    if r.fallible == 0 or (r.credit != RCCC and r.credit != NDP):
        return False
    return bool(seq[CREDIT] <= 0 and (seq[RESENDS_PENDING] > 0 or seq[NEXT] < seq[PACKETS]))


@routine
def on_timeout(r: Rules, s: Senders, i: Int, now: Int) -> bool:
    """The timer of sender i has expired; whether it sends a request to send (:func:`request`) now."""
    seq, number = s.seq[i], oldest(r, s, i)
    waits = seq[RESENDS_PENDING] > 0
    if number >= 0 and (s.sent[seq[FIRST] + number] >> 2) + r.timeout <= now:
        seq[TIMEOUTS] += 1
        if seq[RECOVER] < 0:
            window_on_timeout(r, s, i, size_of(r, s, i, number))
        queue_resend(r, s, i, number)
        learn(r, s, i, 0, TIMED_OUT, now)
    else:  # a request was lost, or its answer
        seq[RTS_OUT] = 0
        waits = seq[RESENDS_PENDING] > 0 or seq[NEXT] < seq[PACKETS]
        if not waits:
            return False
    if waits and r.credit == NO_CREDIT:
        return False
    if not waits and may_send(r, s, i):
        return False
    return r.window == NO_WINDOW or now - seq[RTS_AT] >= r.rtt0


@routine
def request(r: Rules, s: Senders, i: Int, waiting: Int, now: Int) -> tuple[int, int]:
    """Let sender i request to send: entropy and pull target of the request.

    waiting: how many connections of its host wait for their turn.
    """
    s.seq[i, RTS_AT] = now
    s.seq[i, RTS_OUT] = 1
    return choose_entropy(r, s, i), pull_target(r, s, i, waiting)


@kernel
def pace(r: Rules, s: Senders, i: Int) -> bool:
    """Let sender i, which sends at a constant rate (PACED), send another packet; whether there will be one after it."""
    seq = s.seq[i]
    seq[CREDIT] += r.mtu
    return seq[NEXT] + seq[CREDIT] // r.mtu < seq[PACKETS]
