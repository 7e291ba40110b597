# SPDX-License-Identifier: Apache-2.0
"""The sender of an RDMA flow: packets in order, paced by a rate, repeated from the first missing one (go-back-N).

Source: InfiniBand Architecture Specification 1.2.1, annex A17 (RoCEv2); section 9.7 (reliable service).
"""

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma import laws
from flitlab.models.rules.rdma.layout import Rdma
from flitlab.models.rules.spray.layout import Senders


@kernel
def has_packet(d: Rdma, s: Senders, i: Int) -> bool:
    """Whether sender i has a packet to send, now or later.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders.
    i: the flow.
    """
    return bool(s.seq[i].finished < 0 and d.flow[i].cursor < d.flow[i].limit)


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
    return laws.fits_window(d, i, d.flow[i].cursor - s.seq[i].una)


@kernel
def pacing_tick(d: Rdma, s: Senders, i: Int, now: Int) -> int:
    """The tick at which the rate of sender i lets it send again; -1 if it does not wait for that.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders.
    i: the flow.
    now: the present tick.
    """
    if has_packet(d, s, i) and d.flow[i].next_at > now:
        return np.int64(d.flow[i].next_at)
    return np.int64(-1)


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
    flow, seq, law = d.flow[i], s.seq[i], d.laws[d.kind[i]]
    number = np.int64(flow.cursor)
    size, again = np.int64(mtu), number < seq.next
    if number == seq.packets - 1:
        size = np.int64(seq.last_size)
    flow.cursor = number + 1
    if again:
        seq.resent += 1
    elif number < seq.packets:
        seq.next += 1
    if flow.deadline < 0:
        flow.deadline = now + law.timeout
    flow.sent_at, flow.sent_size = now, size
    laws.on_sent(d, i, size)
    return number, size, again


@device_function
def on_ack(
    d: Rdma, s: Senders, i: Int, expected: Int, stamp: Int, marked: bool, row: Ints, now: Int
) -> None:  # fmt: skip
    """Take in a cumulative acknowledgement at sender i.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    expected: first packet that is missing at the receiver.
    stamp: tick at which the acknowledged packet began to be sent.
    marked: whether that packet had an ECN mark.
    row: int64 [1 + FIELDS * HOPS], its telemetry (HPCC).
    now: the present tick.
    """
    acked = max(expected - s.seq[i].una, np.int64(0))
    _advance(d, s, i, expected, now)
    laws.on_ack(d, i, acked, expected, now - stamp, marked, row, now)


@device_function
def _advance(d: Rdma, s: Senders, i: Int, expected: Int, now: Int) -> None:
    """Advance sender i to the first packet that is missing at the receiver."""
    flow, seq = d.flow[i], s.seq[i]
    if expected <= seq.una:
        return
    seq.una = expected
    flow.cursor = max(flow.cursor, seq.una)
    flow.deadline = now + d.laws[d.kind[i]].timeout
    flow.lost = 0
    if seq.una >= seq.packets and seq.finished < 0:
        seq.finished = now
    if seq.finished >= 0 or flow.cursor == seq.una:
        flow.deadline = -1


@device_function
def on_nack(d: Rdma, s: Senders, i: Int, expected: Int, now: Int) -> None:
    """Go back to the first missing packet at sender i.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    expected: first packet that is missing at the receiver.
    now: the present tick.
    """
    if expected < s.seq[i].una:
        return
    _advance(d, s, i, expected, now)
    d.flow[i].cursor = expected
    laws.on_loss(d, i, 0, now)


@kernel
def on_timeout(d: Rdma, s: Senders, i: Int, now: Int) -> None:
    """Go back to the first unacknowledged packet of sender i, if its timeout has come.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    now: the present tick.
    """
    flow = d.flow[i]
    if flow.deadline < 0 or flow.deadline > now:
        return
    s.seq[i].timeouts += 1
    flow.lost += 1
    laws.on_loss(d, i, flow.lost, now)
    flow.cursor = s.seq[i].una
    flow.deadline = now + d.laws[d.kind[i]].timeout


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
