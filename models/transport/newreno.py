# SPDX-License-Identifier: Apache-2.0
"""The NewReno machine that every control law steers: acknowledgements, fast recovery and the timer.

It decides what the window is and when a packet is sent again; queues, packets and what the receiver holds are
the engines'. Sequence numbers count packets, windows are bytes, times ticks. Source: RFC 5681, RFC 6582, RFC 6298.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.jit import kernel
from flitlab.models.transport.law import MEMORY, Law, Transport

# Columns of Senders.seq, int64.
UNA = 0  # first packet that is not acknowledged
NEXT = 1  # next packet to be sent
HIGH = 2  # packets sent so far, each counted once
RECOVER = 3  # HIGH when the last loss was found
DUPLICATES = 4
STATE = 5
DEADLINE = 6  # of the timer
ROUND_END = 7  # the acknowledgement that ends the present window of data (laws that heed marks)

NEVER = np.int64(1) << 62
"""DEADLINE of a timer that does not run, as there is nothing to be acknowledged."""

CLOSED, OPENING, OPEN, RECOVERY = np.int64(0), np.int64(1), np.int64(2), np.int64(3)
TIMED_OUT = np.int64(4)  # and nothing new has been acknowledged since

# Columns of Senders.win, float64.
CWND, SSTHRESH, MDEV, RTO, ACKED, MARKED = range(6)


class Rules(NamedTuple):
    """The numbers by which the senders of a transport act: windows in bytes, times in ticks."""

    law: Law
    mss: float
    min_rto: float
    syn_rto: int
    init_window: float
    ssthresh: float
    reacts_to_marks: bool


class Senders(NamedTuple):
    """The senders of all subflows.

    seq: int64 [subflows, 8]. win: float64 [subflows, 8]. memory: float64 [subflows, MEMORY], the law's. window:
    float64 [subflows], bytes: the threshold in recovery, else the congestion window. rtt: float64 [subflows], ticks,
    smoothed; 0 before the first sample.
    """

    seq: Ints
    win: Floats
    memory: Floats
    window: Floats
    rtt: Floats


def make_rules(transport: Transport, packet_bytes: int, tick_s: float) -> Rules:
    """The rules where a tick takes so many seconds; ``transport`` has a law and times."""
    assert transport.law is not None and transport.min_rto_ms is not None and transport.syn_rto_ms is not None
    mss, ms = float(packet_bytes), 1e-3 / tick_s
    return Rules(
        transport.law, mss, max(1.0, transport.min_rto_ms * ms), max(1, round(transport.syn_rto_ms * ms)),
        transport.init_window * mss, transport.ssthresh * mss, transport.mark_packets > 0,
    )  # fmt: skip


def make_senders(subflows: int) -> Senders:
    """The senders of so many subflows, all closed."""
    whole, real = np.zeros((subflows, 8), np.int64), np.zeros((subflows, 8))
    return Senders(whole, real, np.zeros((subflows, MEMORY)), np.zeros(subflows), np.zeros(subflows))


@kernel
def fits_window(cwnd: float, una: Int, following: Int, mss: float) -> bool:
    """Whether a window of ``cwnd`` bytes from packet ``una`` on admits packet ``following``."""
    return cwnd >= (following + 1 - una) * mss


@kernel
def open_up(r: Rules, s: Senders, i: Int, now: Int) -> None:
    """The first packet of a connection leaves, or leaves again."""
    s.seq[i, STATE] = OPENING
    s.seq[i, DEADLINE] = now + r.syn_rto


@kernel
def opened(r: Rules, s: Senders, i: Int, sample: Int, now: Int) -> None:
    """The first packet is acknowledged."""
    s.seq[i, STATE] = OPEN
    s.win[i, CWND] = r.init_window
    s.window[i] = r.init_window
    s.win[i, SSTHRESH] = r.ssthresh
    _measure(r, s, i, sample)
    s.seq[i, DEADLINE] = now + np.int64(np.ceil(s.win[i, RTO]))


@kernel
def connect(r: Rules, s: Senders, i: Int, sample: Int) -> None:
    """The connection has been open, and idle, since before the run; its first round trip took so long."""
    opened(r, s, i, sample, 0)
    s.seq[i, DEADLINE] = NEVER


@kernel
def resume(r: Rules, s: Senders, i: Int, now: Int) -> bool:
    """The timer starts anew when something is to be sent after a silence (RFC 6298, rule 5.1).

    Returns whether it was not running.

    The congestion window is what it was before.
    """
    slept = s.seq[i, DEADLINE] == NEVER
    s.seq[i, DEADLINE] = now + np.int64(np.ceil(s.win[i, RTO]))
    return slept


@kernel
def _measure(r: Rules, s: Senders, i: Int, sample: Int) -> None:
    """Round trip time, its deviation and the timeout from a sample."""
    m = float(sample)
    if s.rtt[i] == 0.0:
        s.rtt[i] = m
        s.win[i, MDEV] = m / 2.0
    else:
        s.win[i, MDEV] = 0.75 * s.win[i, MDEV] + 0.25 * abs(m - s.rtt[i])
        s.rtt[i] = 0.875 * s.rtt[i] + 0.125 * m
    s.win[i, RTO] = max(s.rtt[i] + 4.0 * s.win[i, MDEV], r.min_rto)


@kernel
def _widen(r: Rules, s: Senders, i: Int, first: Int, last: Int, now: Int) -> None:
    """A new acknowledgement outside recovery."""
    flight = float(s.seq[i, NEXT] - s.seq[i, UNA]) * r.mss
    cwnd = s.win[i, CWND]
    credit = min(cwnd - flight, r.mss)
    if credit > 0.0:
        if cwnd < s.win[i, SSTHRESH]:
            cwnd += min(s.win[i, SSTHRESH] - cwnd, credit)
        else:
            more = r.law.grow(s.window[first:last], s.rtt[first:last], i - first, credit, r.mss, s.memory[i], now)
            cwnd += min(more, credit)
        s.win[i, CWND] = cwnd
        s.window[i] = cwnd


@kernel
def _count_marks(r: Rules, s: Senders, i: Int, packets: Int, marked: bool) -> None:
    """Count marks; at the end of each window of data the law may narrow the window."""
    s.win[i, ACKED] += packets
    if marked:
        s.win[i, MARKED] += packets
    if s.seq[i, UNA] < s.seq[i, ROUND_END]:
        return
    window = r.law.mark(s.win[i, CWND], min(s.win[i, MARKED] / s.win[i, ACKED], 1.0), r.mss, s.memory[i])
    if s.seq[i, STATE] == OPEN and window < s.win[i, CWND]:
        s.win[i, CWND] = window
        s.window[i] = window
        s.win[i, SSTHRESH] = window
    s.win[i, ACKED] = 0.0
    s.win[i, MARKED] = 0.0
    s.seq[i, ROUND_END] = s.seq[i, NEXT]


@kernel
def _on_loss(r: Rules, s: Senders, i: Int) -> None:
    """A packet is lost: the law sets the threshold from what is outstanding (RFC 5681, equation 4).

    In recovery that is no more than the threshold: the window is wider by the packets of which a duplicate said that
    they have arrived.
    """
    flight = float(s.seq[i, NEXT] - s.seq[i, UNA]) * r.mss
    s.win[i, SSTHRESH] = r.law.back_off(min(s.window[i], flight), r.mss, s.memory[i])
    s.window[i] = s.win[i, SSTHRESH]
    s.seq[i, RECOVER] = s.seq[i, HIGH]


@kernel
def _duplicate(r: Rules, s: Senders, i: Int) -> bool:
    """An acknowledgement of nothing new; whether the first packet that is missing is to be sent again."""
    if s.seq[i, STATE] == RECOVERY:
        s.win[i, CWND] += r.mss
        return False
    s.seq[i, DUPLICATES] += 1
    if s.seq[i, DUPLICATES] != 3 or s.seq[i, UNA] < s.seq[i, RECOVER] or s.seq[i, UNA] == s.seq[i, NEXT]:
        return False
    _on_loss(r, s, i)
    s.win[i, CWND] = s.win[i, SSTHRESH] + 3.0 * r.mss
    s.seq[i, STATE] = RECOVERY
    return True


@kernel
def acknowledge(
    r: Rules, s: Senders, i: Int, first: Int, last: Int, una: Int, sample: Int, marked: bool, now: Int
) -> bool:
    """The receiver of subflow i has all packets below ``una``; whether the first one missing is to be sent again.

    first, last: the subflows of its flow. sample: round trip time. marked: whether the packet that this
    acknowledges came with a mark. Afterwards whatever the window admits is sent.
    """
    _measure(r, s, i, sample)
    newly = una - s.seq[i, UNA]
    if newly < 0:
        return False
    if newly == 0:
        return _duplicate(r, s, i)
    s.seq[i, UNA] = una
    s.seq[i, NEXT] = max(s.seq[i, NEXT], una)
    s.seq[i, DEADLINE] = now + np.int64(np.ceil(s.win[i, RTO]))
    resend = False
    if s.seq[i, STATE] != RECOVERY:
        s.seq[i, STATE] = OPEN
        s.seq[i, DUPLICATES] = 0
        _widen(r, s, i, first, last, now)
    elif una >= s.seq[i, RECOVER]:
        flight = float(s.seq[i, NEXT] - una) * r.mss
        s.win[i, CWND] = min(s.win[i, SSTHRESH], flight + r.mss)
        s.window[i] = s.win[i, CWND]
        s.seq[i, STATE] = OPEN
        s.seq[i, DUPLICATES] = 0
    else:
        s.win[i, CWND] = max(s.win[i, CWND] - newly * r.mss, 0.0) + r.mss
        resend = True
    if r.reacts_to_marks:
        _count_marks(r, s, i, newly, marked)
    return resend


@kernel
def time_out(r: Rules, s: Senders, i: Int, now: Int) -> None:
    """The timer of subflow i expired: sending starts again at the first packet that is missing.

    Where the timer has sent that one before, the threshold remains what it is (RFC 5681, section 3.1).
    """
    s.win[i, RTO] *= 2.0
    if s.seq[i, STATE] != TIMED_OUT:
        _on_loss(r, s, i)
    s.win[i, CWND] = r.mss
    s.window[i] = r.mss
    s.seq[i, STATE] = TIMED_OUT
    s.seq[i, DUPLICATES] = 0
    s.seq[i, NEXT] = s.seq[i, UNA]
    s.seq[i, DEADLINE] = now + np.int64(np.ceil(s.win[i, RTO]))
