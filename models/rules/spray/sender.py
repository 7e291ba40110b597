# SPDX-License-Identifier: Apache-2.0
"""The state machine of a sender: what it may send, and how it reacts to responses and timeouts."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
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
"""Flags of a data packet: it requests an acknowledgement at once; it is a retransmission."""

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NO_RECORD = np.int64(-1)


@kernel
def begin_sending(s: Senders, i: Int, now: Int) -> None:
    """Start sender i if it has not started.

    Parameters
    ----------
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.
    """
    seq = s.seq[i]
    if seq[STARTED] < 0:
        seq[STARTED] = seq[ETA_AT] = now


@kernel
def next_packet(r: Rules, s: Senders, i: Int) -> int:
    """The packet that sender i sends next: the first pending retransmission, else a new one.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders.
    i: the flow.

    Returns
    -------
    The packet; PACKETS of the flow if there is none.
    """
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
    """Whether sender i has a packet to send, and its window and credit allow it.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders.
    i: the flow.
    """
    seq = s.seq[i]
    if seq[RESENDS_PENDING] == 0 and seq[NEXT] >= seq[PACKETS]:
        return False
    if r.credit != NO_CREDIT and seq[CREDIT] <= 0:
        return False
    if r.window == NO_WINDOW or (seq[RECOVER] >= 0 and seq[RESENDS_PENDING] > 0):
        return True
    return float(seq[FLIGHT] + size_of(r, s, i, next_packet(r, s, i))) <= s.win[i, WINDOW]


@device_function
def send(r: Rules, s: Senders, i: Int, waiting: Int, now: Int) -> tuple[int, int, int, int, int]:
    """Send the next packet of sender i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    waiting: connections of the host that wait to send, this one included.
    now: the present tick.

    Returns
    -------
    Packet, bytes, flags, entropy value and pull target.
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
    index = seq[FIRST] + number
    s.sent[index] = now << 2 | min((s.sent[index] & 3) + 1, 3)
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
    """Remove packets that the receiver has from the sets; bit 0 is ``number``.

    Packets that wait for retransmission left FLIGHT when they were queued. The receiver's byte count, which reduces
    FLIGHT too, includes them, so their bytes are added back.
    """
    seq = s.seq[i]
    clear_at(s.in_flight, seq[WORD], number, bits)
    if seq[RESENDS_PENDING] == 0:
        return
    needless = bits_at(s.resend_pending, seq[WORD], number) & bits
    while needless != 0:
        needless_packet = number + lowest(needless)
        take(s.resend_pending, seq[WORD], needless_packet)
        seq[RESENDS_PENDING] -= 1
        seq[FLIGHT] += size_of(r, s, i, needless_packet)
        needless &= needless - np.uint64(1)


@kernel
def _sample(r: Rules, s: Senders, i: Int, number: Int, again: bool, now: Int) -> int:
    """The round trip of packet ``number``, if it is certain which transmission the response belongs to; else -1."""
    seq = s.seq[i]
    if number < 0 or not has(s.in_flight, seq[WORD], number):
        return np.int64(-1)
    sent = s.sent[seq[FIRST] + number]
    if sent & 3 != (2 if again else 1):
        return np.int64(-1)
    sample = now - (sent >> 2)
    seq[BASE] = min(seq[BASE], sample)
    return sample


@device_function
def on_ack(
    r: Rules, s: Senders, i: Int, expected: Int, received: Int, number: Int, again: bool, entropy: Int, marked: bool,
    start: Int, bits: Int, now: Int,
) -> bool:  # fmt: skip
    """Take in an acknowledgement at sender i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    expected: first packet that is missing at the receiver.
    received: distinct bytes received.
    number: the packet that caused the acknowledgement; -1: a request, PROBE: a probe.
    again: whether that packet was a retransmission.
    entropy: its entropy value.
    marked: whether it had an ECN mark.
    start: first packet of ``bits``.
    bits: received packets from ``start`` on.
    now: the present tick.

    Returns
    -------
    Whether this completes the flow.
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


@device_function
def on_nack(r: Rules, s: Senders, i: Int, number: Int, again: bool, last_hop: bool, now: Int) -> bool:
    """Take in a NACK at sender i.

    The caller sends what the sender may, then calls :func:`on_nack_entropy`, then sends again.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    number: the trimmed packet.
    again: whether it was a retransmission.
    last_hop: whether it was trimmed in the queue towards its receiver.
    now: the present tick.

    Returns
    -------
    Whether the packet was in flight; False: the sender knew better.
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
    """Let sender i learn about the entropy value of a trimmed packet. At the last hop no other path would help.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    entropy: entropy value of the packet.
    marked: whether it had an ECN mark.
    last_hop: whether it was trimmed in the queue towards its receiver.
    now: the present tick.
    """
    what = np.int64(2)
    if last_hop:
        what = np.int64(MARKED if marked else GOOD)
    learn(r, s, i, entropy, what, now)


@device_function
def oldest(r: Rules, s: Senders, i: Int) -> int:
    """The packet of sender i that has been in flight the longest, -1: none is in flight.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders.
    i: the flow.
    """
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


@device_function
def deadline(r: Rules, s: Senders, i: Int) -> int:
    """The tick at which the retransmission timer of sender i expires, -1: it does not run.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders.
    i: the flow.
    """
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
    """Whether sender i, with nothing in flight, waits for credit that a failed link may have dropped."""
    seq = s.seq[i]
    if r.fallible == 0 or (r.credit != RCCC and r.credit != NDP):
        return False
    return bool(seq[CREDIT] <= 0 and (seq[RESENDS_PENDING] > 0 or seq[NEXT] < seq[PACKETS]))


@device_function
def on_timeout(r: Rules, s: Senders, i: Int, now: Int) -> bool:
    """React to the expired timer of sender i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.

    Returns
    -------
    Whether the sender sends a request to send (:func:`request`) now.
    """
    seq, number = s.seq[i], oldest(r, s, i)
    waits = seq[RESENDS_PENDING] > 0
    if number >= 0 and (s.sent[seq[FIRST] + number] >> 2) + r.timeout <= now:
        seq[TIMEOUTS] += 1
        if seq[RECOVER] < 0:
            window_on_timeout(r, s, i, size_of(r, s, i, number))
        queue_resend(r, s, i, number)
        learn(r, s, i, 0, TIMED_OUT, now)
    else:  # a request was dropped, or its response
        seq[RTS_OUT] = 0
        waits = seq[RESENDS_PENDING] > 0 or seq[NEXT] < seq[PACKETS]
        if not waits:
            return False
    if waits and r.credit == NO_CREDIT:
        return False
    if not waits and may_send(r, s, i):
        return False
    return r.window == NO_WINDOW or now - seq[RTS_AT] >= r.rtt0


@device_function
def request(r: Rules, s: Senders, i: Int, waiting: Int, now: Int) -> tuple[int, int]:
    """Send a request to send of sender i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    waiting: connections of the host that wait to send.
    now: the present tick.

    Returns
    -------
    Entropy value and pull target of the request.
    """
    s.seq[i, RTS_AT] = now
    s.seq[i, RTS_OUT] = 1
    return choose_entropy(r, s, i), pull_target(r, s, i, waiting)


@kernel
def pace(r: Rules, s: Senders, i: Int) -> bool:
    """Release one more packet of sender i, which sends at a constant rate (PACED).

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.

    Returns
    -------
    Whether another one follows.
    """
    seq = s.seq[i]
    seq[CREDIT] += r.mtu
    return seq[NEXT] + seq[CREDIT] // r.mtu < seq[PACKETS]
