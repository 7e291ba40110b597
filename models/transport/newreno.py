# SPDX-License-Identifier: Apache-2.0
"""The NewReno state machine around every congestion control: acknowledgements, fast recovery and the timer.

It sets the window and decides on retransmissions; queues, packets and the receiver's state belong to the engines.
Sequence numbers count packets, windows are bytes, times are ticks. Source: RFC 5681, RFC 6582, RFC 6298.
"""

from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int
from flitlab.models.jit import kernel
from flitlab.models.transport.law import MEMORY, Law, Transport
from flitlab.models.transport.queues import exact

SENDER = np.dtype(
    [
        ("una", np.int64),  # first packet that is not acknowledged
        ("next", np.int64),  # next packet to be sent
        ("high", np.int64),  # packets sent so far, each counted once
        ("recover", np.int64),  # ``high`` when the last loss was detected
        ("duplicates", np.int64),
        ("state", np.int64),  # ConnectionState
        ("deadline", np.int64),  # of the timer
        ("round_end", np.int64),  # the acknowledgement that ends the present window of data (controls that react to
        # marks)
    ]
)
"""A sender, one cache line."""

WIN = np.dtype(
    [
        ("cwnd", np.float64),  # bytes
        ("ssthresh", np.float64),  # bytes
        ("mdev", np.float64),  # of the round trip, ticks
        ("rto", np.float64),  # ticks
        ("acked", np.float64),  # packets in this window of data
        ("marked", np.float64),  # those of them with a mark
        ("unused", np.float64, 2),
    ]
)
"""The congestion window and the timeout of a sender, one cache line."""

NEVER = np.int64(1) << 62
"""Deadline of a timer that does not run, because nothing is outstanding."""


class ConnectionState(IntEnum):
    """The state of a sender."""

    CLOSED = 0
    OPENING = 1
    OPEN = 2
    RECOVERY = 3
    TIMED_OUT = 4  # and nothing new has been acknowledged since


class Rules(NamedTuple):
    """The parameters by which the senders of a transport act: windows in bytes, times in ticks."""

    law: Law
    mss: float
    min_rto: float
    syn_rto: int
    init_window: float
    ssthresh: float
    reacts_to_marks: bool


class Senders(NamedTuple):
    """The senders of all subflows.

    seq: SENDER [subflows]. win: WIN [subflows]. memory: float64 [subflows, MEMORY], of the congestion control. window:
    float64 [subflows], bytes: the threshold in recovery, else the congestion window. rtt: float64 [subflows], smoothed
    round trip, ticks; 0 before the first sample.
    """

    seq: np.ndarray
    win: np.ndarray
    memory: Floats
    window: Floats
    rtt: Floats


def make_rules(transport: Transport, packet_bytes: int, tick_s: float | Fraction) -> Rules:
    """The rules of a transport with congestion control and times.

    Parameters
    ----------
    transport: the transport.
    packet_bytes: bytes of a packet.
    tick_s: seconds of a tick.

    Returns
    -------
    The rules.
    """
    assert transport.law is not None and transport.min_rto_ms is not None and transport.syn_rto_ms is not None
    mss, tick_ms = float(packet_bytes), exact(tick_s) * 1000
    least, of_syn = exact(transport.min_rto_ms) / tick_ms, exact(transport.syn_rto_ms) / tick_ms
    return Rules(
        transport.law, mss, max(1.0, float(least)), max(1, round(of_syn)),
        transport.init_window * mss, transport.ssthresh * mss, transport.mark_packets > 0,
    )  # fmt: skip


def make_senders(subflows: int) -> Senders:
    """The senders of ``subflows`` subflows, all closed."""
    seq, win = np.zeros(subflows, SENDER), np.zeros(subflows, WIN)
    return Senders(seq, win, np.zeros((subflows, MEMORY)), np.zeros(subflows), np.zeros(subflows))


@kernel
def fits_window(cwnd: float, una: Int, following: Int, mss: float) -> bool:
    """Whether a congestion window admits a packet.

    Parameters
    ----------
    cwnd: congestion window, bytes.
    una: first packet that is not acknowledged.
    following: the packet.
    mss: bytes of a packet.
    """
    return cwnd >= (following + 1 - una) * mss


@kernel
def open_up(r: Rules, s: Senders, i: Int, now: Int) -> None:
    """Send the first packet of a connection, or send it again: each timeout is twice the last (RFC 6298, rule 5.5).

    Parameters
    ----------
    r: rules of the senders (:class:`Rules`).
    s: the senders, changed in place (:class:`Senders`).
    i: the subflow.
    now: the present tick.
    """
    s.seq[i].state = ConnectionState.OPENING
    s.win[i].rto = max(2.0 * s.win[i].rto, np.float64(r.syn_rto))
    s.seq[i].deadline = now + np.int64(s.win[i].rto)


@kernel
def opened(r: Rules, s: Senders, i: Int, sample: Int, now: Int) -> None:
    """Take in the acknowledgement of the first packet.

    Parameters
    ----------
    r: rules of the senders (:class:`Rules`).
    s: the senders, changed in place (:class:`Senders`).
    i: the subflow.
    sample: its round trip, ticks.
    now: the present tick.
    """
    s.seq[i].state = ConnectionState.OPEN
    s.win[i].cwnd = r.init_window
    s.window[i] = r.init_window
    s.win[i].ssthresh = r.ssthresh
    _measure(r, s, i, sample)
    s.seq[i].deadline = now + np.int64(np.ceil(s.win[i].rto))


@kernel
def connect(r: Rules, s: Senders, i: Int, sample: Int) -> None:
    """Open an idle connection before the run.

    Parameters
    ----------
    r: rules of the senders (:class:`Rules`).
    s: the senders, changed in place (:class:`Senders`).
    i: the subflow.
    sample: its first round trip, ticks.
    """
    opened(r, s, i, sample, 0)
    s.seq[i].deadline = NEVER


@kernel
def resume(r: Rules, s: Senders, i: Int, now: Int) -> bool:
    """Restart the timer when data follows an idle period (RFC 6298, rule 5.1). The congestion window is kept.

    Parameters
    ----------
    r: rules of the senders (:class:`Rules`).
    s: the senders, changed in place (:class:`Senders`).
    i: the subflow.
    now: the present tick.

    Returns
    -------
    Whether the timer was not running.
    """
    slept = s.seq[i].deadline == NEVER
    s.seq[i].deadline = now + np.int64(np.ceil(s.win[i].rto))
    return slept


@kernel
def _measure(r: Rules, s: Senders, i: Int, sample: Int) -> None:
    """Update round trip time, its deviation and the timeout from a sample."""
    m = float(sample)
    if s.rtt[i] == 0.0:
        s.rtt[i] = m
        s.win[i].mdev = m / 2.0
    else:
        s.win[i].mdev = 0.75 * s.win[i].mdev + 0.25 * abs(m - s.rtt[i])
        s.rtt[i] = 0.875 * s.rtt[i] + 0.125 * m
    s.win[i].rto = max(s.rtt[i] + 4.0 * s.win[i].mdev, r.min_rto)


@kernel
def _widen(r: Rules, s: Senders, i: Int, first: Int, last: Int, now: Int) -> None:
    """Grow the window after a new acknowledgement outside recovery."""
    flight = float(s.seq[i].next - s.seq[i].una) * r.mss
    cwnd = s.win[i].cwnd
    credit = min(cwnd - flight, r.mss)
    if credit > 0.0:
        if cwnd < s.win[i].ssthresh:
            cwnd += min(s.win[i].ssthresh - cwnd, credit)
        else:
            increase = r.law.grow(s.window[first:last], s.rtt[first:last], i - first, credit, r.mss, s.memory[i], now)
            cwnd += min(increase, credit)
        s.win[i].cwnd = cwnd
        s.window[i] = cwnd


@kernel
def _count_marks(r: Rules, s: Senders, i: Int, packets: Int, marked: bool, may_reduce: bool, recovered: bool) -> None:
    """Count marks; after each window of data, and after a recovery, the congestion control may reduce the window."""
    s.win[i].acked += packets
    if marked:
        s.win[i].marked += packets
    if s.seq[i].una < s.seq[i].round_end and not recovered:
        return
    window = r.law.mark(s.win[i].cwnd, min(s.win[i].marked / s.win[i].acked, 1.0), r.mss, s.memory[i])
    if may_reduce and window < s.win[i].cwnd:
        s.win[i].cwnd = window
        s.window[i] = window
        s.win[i].ssthresh = window
    s.win[i].acked = 0.0
    s.win[i].marked = 0.0
    s.seq[i].round_end = s.seq[i].next


@kernel
def _on_loss(r: Rules, s: Senders, i: Int) -> None:
    """React to a lost packet: set the threshold from the outstanding bytes (RFC 5681, equation 4).

    In recovery these are at most the threshold, as the window includes packets that duplicates report as received.
    """
    flight = float(s.seq[i].next - s.seq[i].una) * r.mss
    s.win[i].ssthresh = r.law.back_off(min(s.window[i], flight), r.mss, s.memory[i])
    s.window[i] = s.win[i].ssthresh
    s.seq[i].recover = s.seq[i].high


@kernel
def _duplicate(r: Rules, s: Senders, i: Int) -> bool:
    """Take in a duplicate acknowledgement; whether the first missing packet is to be sent again."""
    if s.seq[i].state == ConnectionState.RECOVERY:
        s.win[i].cwnd += r.mss
        return False
    s.seq[i].duplicates += 1
    if s.seq[i].duplicates != 3 or s.seq[i].una < s.seq[i].recover or s.seq[i].una == s.seq[i].next:
        return False
    _on_loss(r, s, i)
    s.win[i].cwnd = s.win[i].ssthresh + 3.0 * r.mss
    s.seq[i].state = ConnectionState.RECOVERY
    return True


@kernel
def acknowledge(
    r: Rules, s: Senders, i: Int, first: Int, last: Int, una: Int, sample: Int, marked: bool, now: Int
) -> bool:
    """Take in an acknowledgement of all packets below ``una``. The caller then sends whatever the window admits.

    Parameters
    ----------
    r: rules of the senders (:class:`Rules`).
    s: the senders, changed in place (:class:`Senders`).
    i: the subflow.
    first, last: the subflows of its flow, first .. last - 1.
    una: first packet that the receiver lacks.
    sample: round trip, ticks.
    marked: whether the acknowledged packet had an ECN mark.
    now: the present tick.

    Returns
    -------
    Whether the first missing packet is to be sent again.

    Source: RFC 5681, RFC 6582.
    """
    _measure(r, s, i, sample)
    newly = una - s.seq[i].una
    if newly < 0:
        return False
    if newly == 0:
        return _duplicate(r, s, i)
    s.seq[i].una = una
    s.seq[i].next = max(s.seq[i].next, una)
    s.seq[i].deadline = now + np.int64(np.ceil(s.win[i].rto))
    resend = False
    # a loss has reduced the window for data sent before it, and so for its marks (RFC 8257, sections 3.4 and 3.5)
    in_recovery = s.seq[i].state == ConnectionState.RECOVERY
    may_reduce, recovered = not in_recovery and una > s.seq[i].recover, in_recovery and una >= s.seq[i].recover
    if not in_recovery:
        s.seq[i].state = ConnectionState.OPEN
        s.seq[i].duplicates = 0
        _widen(r, s, i, first, last, now)
    elif una >= s.seq[i].recover:
        flight = float(s.seq[i].next - una) * r.mss
        s.win[i].cwnd = min(s.win[i].ssthresh, flight + r.mss)
        s.window[i] = s.win[i].cwnd
        s.seq[i].state = ConnectionState.OPEN
        s.seq[i].duplicates = 0
    else:
        s.win[i].cwnd = max(s.win[i].cwnd - newly * r.mss, 0.0) + r.mss
        resend = True
    if r.reacts_to_marks:
        _count_marks(r, s, i, newly, marked, may_reduce, recovered)
    return resend


@kernel
def time_out(r: Rules, s: Senders, i: Int, now: Int) -> None:
    """React to the expired timer of subflow i: sending restarts at the first missing packet.

    The window becomes one packet. The timeout is doubled, without an upper limit, and the timer starts again (RFC 6298,
    rules 5.5 and 5.6). The congestion control's ``back_off`` sets the threshold from the outstanding bytes, at most the
    window (RFC 5681, equation 4); if the timer has expired before and nothing new has been acknowledged since, the
    threshold is kept (RFC 5681, section 3.1).

    Parameters
    ----------
    r: rules of the senders (:class:`Rules`).
    s: the senders, changed in place (:class:`Senders`).
    i: the subflow.
    now: the present tick.
    """
    s.win[i].rto *= 2.0
    if s.seq[i].state != ConnectionState.TIMED_OUT:
        _on_loss(r, s, i)
    s.win[i].cwnd = r.mss
    s.window[i] = r.mss
    s.seq[i].state = ConnectionState.TIMED_OUT
    s.seq[i].duplicates = 0
    s.seq[i].next = s.seq[i].una
    s.seq[i].deadline = now + np.int64(np.ceil(s.win[i].rto))
