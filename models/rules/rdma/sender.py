# SPDX-License-Identifier: Apache-2.0
"""The sender of an RDMA flow: packets in order, paced by a rate, repeated from the first missing one (go-back-N).

With selective repeat only missing packets are repeated. A packet is lost if a later one was acknowledged or, in
recovery, if it is the first one missing.

Source: InfiniBand Architecture Specification 1.2.1, annex A17 (RoCEv2); section 9.7 (reliable service). Mittal et al.,
Revisiting network support for RDMA, SIGCOMM 2018, doi:10.1145/3230543.3230557 (selective repeat); modules receiveAck,
txFree and timeout of its first author, https://github.com/NetSys/irn-vivado-hls.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.rdma import laws
from flitlab.models.rules.rdma.layout import Rdma, Response
from flitlab.models.rules.spray.layout import Senders, bits_at, has, put, take

SHORT_TIMEOUT_PACKETS = 3
"""Packets in flight up to which the timeout of selective repeat is the short one."""


@kernel
def has_packet(d: Rdma, s: Senders, i: Int) -> bool:
    """Whether sender i has a packet to send, now or later.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders.
    i: the flow.
    """
    flow = d.flow[i]
    return bool(s.seq[i].finished < 0 and (flow.next_lost >= 0 or flow.cursor < flow.limit))


@kernel
def is_ready(d: Rdma, s: Senders, i: Int, now: Int) -> bool:
    """Whether sender i may send a packet now.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders.
    i: the flow.
    now: the present tick.
    """
    if not has_packet(d, s, i) or d.flow[i].next_at > now:
        return False
    return d.flow[i].next_lost >= 0 or laws.fits_window(d, i, d.flow[i].cursor - s.seq[i].una)


@kernel
def pacing_tick(d: Rdma, s: Senders, i: Int, now: Int) -> int:
    """The tick of the timer that must be set for the rate of sender i; -1: none, or an earlier one is set.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders.
    i: the flow.
    now: the present tick.
    """
    flow = d.flow[i]
    if not has_packet(d, s, i) or flow.next_at <= now or 0 <= flow.pace_at <= flow.next_at:
        return np.int64(-1)
    flow.pace_at = flow.next_at
    return np.int64(flow.pace_at)


@kernel
def pacing_expires(d: Rdma, i: Int, now: Int) -> bool:
    """Whether the timer of a rate that expires is the one that counts: an earlier one may have replaced it.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    if d.flow[i].pace_at != now:
        return False
    d.flow[i].pace_at = -1
    return True


@device_function
def send_next(d: Rdma, s: Senders, i: Int, mtu: Int, now: Int) -> tuple[int, int, bool]:
    """Send the next packet of sender i.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    mtu: bytes of a full packet.
    now: the present tick.

    Returns
    -------
    Packet, bytes, and whether it was sent before.
    """
    flow, seq = d.flow[i], s.seq[i]
    repeats = flow.next_lost >= 0
    number = np.int64(flow.next_lost if repeats else flow.cursor)
    size, again = np.int64(mtu), number < seq.next
    if number == seq.packets - 1:
        size = np.int64(seq.last_size)
    if repeats:
        flow.searched = number + 1
        flow.next_lost = _next_lost(d, s, i)
    else:
        flow.cursor = number + 1
        if d.laws[d.kind[i]].selective != 0:
            put(s.in_flight, seq.word, number)
    if again:
        seq.resent += 1
    elif number < seq.packets:
        seq.next += 1
    if flow.deadline < 0:
        _restart_timeout(d, i, now)
    flow.sent_at, flow.sent_size = now, size
    laws.on_sent(d, i, size)
    return number, size, again


@kernel
def _restart_timeout(d: Rdma, i: Int, now: Int) -> None:
    """Restart the timeout of sender i."""
    flow, law = d.flow[i], d.laws[d.kind[i]]
    flow.restarted = now
    flow.deadline = now + (law.timeout if law.selective == 0 else law.short_timeout)


@kernel
def _next_lost(d: Rdma, s: Senders, i: Int) -> int:
    """The next lost packet of sender i in recovery that is not repeated yet, -1 if there is none.

    The first unacknowledged packet counts as lost: it was sent before the repeated one whose acknowledgement uncovered
    it. That is wrong if recovery began without a loss, by a short timeout or by reordering beyond ``reorder``.
    """
    flow, seq = d.flow[i], s.seq[i]
    if flow.searched <= seq.una:
        return np.int64(seq.una)
    number, end = flow.searched, flow.highest - 1 - d.laws[d.kind[i]].reorder
    while number < end:
        bits = bits_at(s.in_flight, seq.word, number)
        if bits != 0:
            number += lowest(bits)
            return np.int64(number) if number < end else np.int64(-1)
        number += 64
    return np.int64(-1)


@kernel
def _acknowledge(d: Rdma, s: Senders, i: Int, number: Int, expected: Int, now: Int) -> int:
    """Take in the acknowledgement of a packet, and of those below the expected one; returns how many are new."""
    flow, seq = d.flow[i], s.seq[i]
    acked = max(expected - seq.una, np.int64(0))
    if d.laws[d.kind[i]].selective == 0:
        _advance(d, s, i, expected, now)
        return acked
    acked = np.int64(number >= seq.una and has(s.in_flight, seq.word, number))
    if acked != 0:
        take(s.in_flight, seq.word, number)
        flow.highest = max(flow.highest, np.int64(number + 1))
    _advance(d, s, i, expected, now)
    if seq.recover >= 0 and seq.una >= seq.recover:
        seq.recover = flow.next_lost = -1
    elif seq.recover >= 0 and flow.next_lost != seq.una:
        flow.next_lost = _next_lost(d, s, i)
    return acked


@kernel
def _recover(d: Rdma, s: Senders, i: Int) -> None:
    """Begin to repeat lost packets of sender i, from the first unacknowledged one on."""
    flow, seq = d.flow[i], s.seq[i]
    seq.recover = flow.cursor
    flow.next_lost = flow.searched = seq.una


@device_function
def on_response(d: Rdma, s: Senders, i: Int, response: Response, now: Int) -> None:
    """Take in an ACK or NACK at sender i.

    After a NACK it goes back to the first missing packet or, with selective repeat, where a NACK also acknowledges the
    packet that caused it, begins to repeat lost ones.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    response: what it says.
    now: the present tick.
    """
    seq, selective = s.seq[i], d.laws[d.kind[i]].selective != 0
    nack, expected = response.nack, response.expected
    if nack and not selective:
        if expected >= seq.una:
            _advance(d, s, i, expected, now)
            d.flow[i].cursor = expected
            laws.on_loss(d, i, 0, now)
        return
    acked = _acknowledge(d, s, i, response.number, expected, now)
    laws.on_ack(d, i, acked, expected, now - response.stamp, response.marked, response.telemetry, now)
    if nack and expected == seq.una and seq.finished < 0 and seq.recover < 0:
        _recover(d, s, i)
        laws.on_loss(d, i, 0, now)


@kernel
def _advance(d: Rdma, s: Senders, i: Int, expected: Int, now: Int) -> None:
    """Advance sender i to the first packet that is missing at the receiver."""
    flow, seq = d.flow[i], s.seq[i]
    if expected <= seq.una:
        return
    seq.una = expected
    flow.cursor = max(flow.cursor, seq.una)
    _restart_timeout(d, i, now)
    flow.lost = 0
    if seq.una >= seq.packets and seq.finished < 0:
        seq.finished = now
    if seq.finished >= 0 or flow.cursor == seq.una:
        flow.deadline = -1


@kernel
def on_timeout(d: Rdma, s: Senders, i: Int, now: Int) -> None:
    """Go back to the first unacknowledged packet of sender i, or begin to repeat lost ones, if its timeout has come.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    if flow.deadline < 0 or flow.deadline > now:
        return
    if law.selective != 0:
        is_short = flow.cursor - s.seq[i].una <= SHORT_TIMEOUT_PACKETS
        if now < flow.restarted + (law.short_timeout if is_short else law.timeout):
            flow.deadline = min(flow.restarted + law.timeout, now + law.short_timeout)
            return
    s.seq[i].timeouts += 1
    flow.lost += 1
    laws.on_loss(d, i, flow.lost, now)
    if law.selective != 0:
        _recover(d, s, i)
    else:
        flow.cursor = s.seq[i].una
    _restart_timeout(d, i, now)


@kernel
def law_tick(d: Rdma, s: Senders, i: Int) -> int:
    """The next tick at which the congestion control of sender i acts by itself; -1: it does not.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders.
    i: the flow.
    """
    if s.seq[i].finished >= 0:
        return np.int64(-1)
    return laws.next_tick(d, i)
