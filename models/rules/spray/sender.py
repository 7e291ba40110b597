# SPDX-License-Identifier: Apache-2.0
"""The state machine of a sender: what it may send, and how it reacts to responses and timeouts."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.spray.credit import on_first_response, pull_target
from flitlab.models.rules.spray.layout import (
    Ack,
    Credit,
    Feedback,
    Rules,
    Senders,
    WindowControl,
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
    if seq.started < 0:
        seq.started = seq.eta_at = now


@kernel
def next_packet(s: Senders, i: Int) -> int:
    """The packet that sender i sends next: the first pending retransmission, else a new one.

    Parameters
    ----------
    s: the senders.
    i: the flow.

    Returns
    -------
    The packet; PACKETS of the flow if there is none.
    """
    seq = s.seq[i]
    if seq.resends_pending == 0:
        return seq.next
    number = seq.resend_from
    while True:
        bits = bits_at(s.resend_pending, seq.word, number)
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
    if seq.resends_pending == 0 and seq.next >= seq.packets:
        return False
    if r.credit != Credit.NONE and seq.credit <= 0:
        return False
    if r.window == WindowControl.NONE or (seq.recover >= 0 and seq.resends_pending > 0):
        return True
    return float(seq.flight + size_of(r, s, i, next_packet(s, i))) <= s.win[i].window


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
    seq, number, again = s.seq[i], next_packet(s, i), s.seq[i].resends_pending > 0
    size = size_of(r, s, i, number)
    if again:
        take(s.resend_pending, seq.word, number)
        seq.resends_pending -= 1
        seq.resend_from = number
        seq.resent += 1
    else:
        seq.next += 1
    index = seq.first + number
    s.sent[index] = now << 2 | min((s.sent[index] & 3) + 1, 3)
    put(s.in_flight, seq.word, number)
    seq.flight += size
    if r.credit != Credit.NONE:
        seq.credit -= size if r.credit == Credit.RCCC else np.int64(r.mtu)
    ack_requested = again or number == seq.packets - 1
    ack_requested = ack_requested or (r.credit == Credit.RCCC and seq.credit <= 0)
    ack_requested = ack_requested or (r.window != WindowControl.NONE and float(seq.flight + size) >= s.win[i].window)
    flags = (ASKS if ack_requested else 0) | (IS_AGAIN if again else 0)
    return number, size, np.int64(flags), choose_entropy(r, s, i), pull_target(r, s, i, waiting)


@kernel
def _arrived(r: Rules, s: Senders, i: Int, number: Int, bits: np.uint64) -> None:
    """Remove packets that the receiver has from the sets; bit 0 is ``number``.

    Packets that wait for retransmission left FLIGHT when they were queued. The receiver's byte count, which reduces
    FLIGHT too, includes them, so their bytes are added back.
    """
    seq = s.seq[i]
    clear_at(s.in_flight, seq.word, number, bits)
    if seq.resends_pending == 0:
        return
    needless = bits_at(s.resend_pending, seq.word, number) & bits
    while needless != 0:
        needless_packet = number + lowest(needless)
        take(s.resend_pending, seq.word, needless_packet)
        seq.resends_pending -= 1
        seq.flight += size_of(r, s, i, needless_packet)
        needless &= needless - np.uint64(1)


@kernel
def _sample(s: Senders, i: Int, number: Int, again: bool, now: Int) -> int:
    """The round trip of packet ``number``, if it is certain which transmission the response belongs to; else -1."""
    seq = s.seq[i]
    if number < 0 or not has(s.in_flight, seq.word, number):
        return np.int64(-1)
    sent = s.sent[seq.first + number]
    if sent & 3 != (2 if again else 1):
        return np.int64(-1)
    sample = now - (sent >> 2)
    seq.base_rtt = min(seq.base_rtt, sample)
    return sample


@device_function
def on_ack(r: Rules, s: Senders, i: Int, ack: Ack, now: Int) -> bool:
    """Take in an acknowledgement at sender i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    ack: what it says.
    now: the present tick.

    Returns
    -------
    Whether this completes the flow.
    """
    seq, expected, number = s.seq[i], ack.expected, ack.number
    on_first_response(r, s, i)
    if number == _NO_RECORD:
        seq.rts_out = 0
    sample = _sample(s, i, number, ack.again, now)
    news = max(ack.received - seq.known, 0)
    seq.known += news
    seq.flight -= news
    while seq.una < expected:
        step = min(np.int64(64), expected - seq.una)
        _arrived(r, s, i, seq.una, _ALL >> np.uint64(64 - step))
        seq.una += step
    if ack.bits != 0:
        _arrived(r, s, i, np.int64(ack.start), np.uint64(ack.bits))
    learn(r, s, i, ack.entropy, np.int64(Feedback.MARKED if ack.marked else Feedback.GOOD), now)
    window_on_ack(r, s, i, news, ack.marked, sample, now)
    if r.sleek != 0:
        recover(r, s, i, expected, ack.received, number, now)
    if seq.una < seq.packets or seq.finished >= 0:
        return False
    seq.finished = now
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
    if not has(s.in_flight, seq.word, number):
        return False
    _sample(s, i, number, again, now)
    if not (last_hop and r.credit == Credit.RCCC):
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
    what = np.int64(Feedback.TRIMMED)
    if last_hop:
        what = np.int64(Feedback.MARKED if marked else Feedback.GOOD)
    learn(r, s, i, entropy, what, now)


@device_function
def oldest(s: Senders, i: Int) -> int:
    """The packet of sender i that has been in flight the longest, -1: none is in flight.

    Parameters
    ----------
    s: the senders.
    i: the flow.
    """
    seq, tick = s.seq[i], np.int64(0)
    packet: Int = _NO_RECORD
    for first in range(seq.una & ~np.int64(63), seq.next, 64):
        bits = s.in_flight[seq.word + (first >> 6)]
        while bits != 0:
            number = first + lowest(bits)
            bits &= bits - np.uint64(1)
            sent = s.sent[seq.first + number] >> 2
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
    seq, number = s.seq[i], oldest(s, i)
    if seq.finished >= 0 or r.acknowledges == 0:
        return np.int64(-1)
    sent = s.sent[seq.first + number] >> 2 if number >= 0 else seq.rts_at
    if seq.rts_out != 0:
        sent = min(sent, seq.rts_at)
    elif number < 0:
        if not _may_starve(r, s, i):
            return np.int64(-1)
        sent = max(sent, s.sent[seq.first + max(seq.next - 1, 0)] >> 2)
    return sent + r.timeout


@kernel
def _may_starve(r: Rules, s: Senders, i: Int) -> bool:
    """Whether sender i, with nothing in flight, waits for credit that a failed link may have dropped."""
    seq = s.seq[i]
    if r.fallible == 0 or (r.credit != Credit.RCCC and r.credit != Credit.NDP):
        return False
    return bool(seq.credit <= 0 and (seq.resends_pending > 0 or seq.next < seq.packets))


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
    seq, number = s.seq[i], oldest(s, i)
    waits = seq.resends_pending > 0
    if number >= 0 and (s.sent[seq.first + number] >> 2) + r.timeout <= now:
        seq.timeouts += 1
        if seq.recover < 0:
            window_on_timeout(r, s, i, size_of(r, s, i, number))
        queue_resend(r, s, i, number)
        learn(r, s, i, 0, np.int64(Feedback.TIMED_OUT), now)
    else:  # a request was dropped, or its response
        seq.rts_out = 0
        waits = seq.resends_pending > 0 or seq.next < seq.packets
        if not waits:
            return False
    if waits and r.credit == Credit.NONE:
        return False
    if not waits and may_send(r, s, i):
        return False
    return r.window == WindowControl.NONE or now - seq.rts_at >= r.rtt0


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
    s.seq[i].rts_at = now
    s.seq[i].rts_out = 1
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
    seq.credit += r.mtu
    return seq.next + seq.credit // r.mtu < seq.packets
