# SPDX-License-Identifier: Apache-2.0
"""Receiver credit: what senders request, and the pacer by which a host grants it.

Times are ticks. Credit is counted cumulatively, in units of ``Rules.quantum`` bytes.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Ints, Ints32
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.draw import Stream, draw
from flitlab.models.rules.spray.layout import (
    Credit,
    Feedback,
    Receivers,
    Rules,
    Senders,
    WindowControl,
    has,
    size_of,
)

PULL_ENTROPIES = 128
"""Entropy values that the pulls of a connection use in turn."""

_IDLE_PER_FLOW = 64
"""Entries of the idle list per flow, unless the caller gives their number."""

ARRIVALS = np.dtype(
    [
        ("arrived", np.int64),  # of any kind
        ("trimmed_upstream", np.int64),  # trimmed before the last hop
        ("untrimmed", np.int64),
        ("untrimmed_marked", np.int64),
        ("rises", np.int64),  # increases of the rate in a row
        ("adjustments", np.int64),  # of the rate so far
        ("unused", np.int64, 2),
    ]
)
"""Data packets that arrived at a pacer's host since the last rate adjustment."""

_LEAST, _HIGH_SHARE, _STEP = 0.9, 0.3, 0.01


class Pacers(NamedTuple):
    """The pacers of all hosts. Each has a list of active connections and a list of idle ones, both served round robin.

    A connection is active until its pull target is granted. It then gets an entry in the idle list, which is served
    while no connection is active. A connection may have several entries; a full list accepts only those of connections
    that have none.

    due: int64 [hosts], tick of the next pull; -1: the pacer is idle. adjust_at: int64 [hosts], tick of the next rate
    adjustment; -1: the first one is not drawn yet. head, tail: int64 [hosts], first and last active flow; head -1:
    none. after: int64 [flows], the next active flow, -1: none. idle: int32, the flows of the idle lists, a circular
    buffer per host in idle[idle_start[host]:idle_start[host + 1]]. idle_start: int64 [hosts + 1]. idle_limit: int64
    [hosts], entries of a full list; its buffer has space for one more of each flow. idle_first, idle_end: int64
    [hosts], entries removed from, and added to, each buffer so far. rate: float64 [hosts], fraction of the full
    rate. share: float64 [hosts], running share of marked packets. counters: ARRIVALS [hosts].
    """

    due: Ints
    adjust_at: Ints
    head: Ints
    tail: Ints
    after: Ints
    idle: Ints32
    idle_start: Ints
    idle_limit: Ints
    idle_first: Ints
    idle_end: Ints
    rate: Floats
    share: Floats
    counters: np.ndarray


def make_pacers(hosts: int, flows: int, idle: Ints | None = None) -> Pacers:
    """The pacers of all hosts, with empty lists.

    Parameters
    ----------
    hosts: number of hosts.
    flows: number of flows.
    idle: int64 [2, hosts], entries of each host's full idle list, and the flows that it grants credit to. None: 64 per
        flow, and all flows.

    Returns
    -------
    The pacers.
    """
    none, zero = np.full(hosts, -1, np.int64), np.zeros(hosts, np.int64)
    space = np.array([np.full(hosts, _IDLE_PER_FLOW * flows), np.full(hosts, flows)]) if idle is None else idle
    start = np.append(0, np.cumsum(space.sum(axis=0)))
    return Pacers(
        none, none.copy(), none.copy(), none.copy(), np.full(flows, -1, np.int64), np.zeros(start[-1], np.int32), start,
        space[0].copy(), zero, zero.copy(), np.ones(hosts), np.zeros(hosts), np.zeros(hosts, ARRIVALS),
    )  # fmt: skip


@kernel
def max_credit(r: Rules) -> int:
    """The most credit that a sender keeps, in bytes.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    """
    return np.int64(r.most_bdp * float(r.rtt0) * r.rate)


@kernel
def backlog(r: Rules, s: Senders, i: Int) -> int:
    """Bytes that sender i has to send, retransmissions included.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    """
    seq = s.seq[i]
    last = seq.packets - 1
    fresh = seq.packets - seq.next
    total = (fresh + seq.resends_pending) * np.int64(r.mtu)
    short = r.mtu - size_of(r, s, i, last)
    if fresh > 0 or has(s.resend_pending, seq.word, last):
        total -= short
    return total


@kernel
def pull_target(r: Rules, s: Senders, i: Int, waiting: Int) -> int:
    """The cumulative credit, in quanta, that sender i requests.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    waiting: connections of the host that wait to send, this one included. They share the request.

    Returns
    -------
    The target in quanta; 0 unless credit is RCCC.
    """
    seq = s.seq[i]
    if r.credit != Credit.RCCC:
        return np.int64(0)
    demand = np.int64(backlog(r, s, i))
    demand = min(demand, np.int64(max_credit(r)))
    if r.window != WindowControl.NONE:
        demand = min(demand, np.int64(s.win[i].window) + np.int64(r.mtu))
    demand -= seq.credit
    if seq.speculates != 0 and seq.next < seq.packets:
        demand = max(demand, np.int64(r.mtu))
    if waiting > 1:
        demand = demand // np.int64(waiting)
    # packets carry no negative number, and a target below 0 never advances either
    return max(seq.granted + (demand + r.quantum - 1) // r.quantum, np.int64(0))


@kernel
def on_first_response(r: Rules, s: Senders, i: Int) -> None:
    """Note the first response of the receiver: what is left of the speculative credit is dropped.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    """
    seq = s.seq[i]
    if r.credit == Credit.RCCC and seq.speculates != 0:
        seq.speculates = 0
        seq.credit = min(seq.credit, 0)


@device_function
def on_pull(r: Rules, s: Senders, i: Int, granted: Int) -> None:
    """Add the credit of a pull to sender i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    granted: cumulative credit of the flow, quanta.
    """
    on_first_response(r, s, i)
    seq = s.seq[i]
    quanta = granted - seq.granted
    if quanta <= 0:
        return
    seq.granted = granted
    seq.credit += quanta * r.quantum
    if r.credit == Credit.RCCC:
        seq.credit = min(seq.credit, max_credit(r))


@kernel
def _activate(p: Pacers, host: Int, i: Int) -> None:
    """Append flow i to the active list of a host."""
    p.after[i] = -1
    if p.head[host] < 0:
        p.head[host] = i
    else:
        p.after[p.tail[host]] = i
    p.tail[host] = i


@kernel
def _put_idle(g: Receivers, p: Pacers, host: Int, i: Int) -> None:
    """Append flow i to the idle list of a host, unless that is full and has an entry of the flow."""
    start, space = p.idle_start[host], p.idle_start[host + 1] - p.idle_start[host]
    if g.got[i].idle_entries == 0 or p.idle_end[host] - p.idle_first[host] < p.idle_limit[host]:
        g.got[i].idle_entries += 1
        p.idle[start + p.idle_end[host] % space] = i
        p.idle_end[host] += 1


@device_function
def claim(r: Rules, g: Receivers, p: Pacers, host: Int, i: Int, target: Int, is_request: bool, now: Int) -> None:
    """Register the pull target that a packet of flow i brings to the pacer of its destination.

    The flow joins the active list if the target advances or the packet is a request. The target may not exceed what was
    granted. With NDP every packet earns one pull. An idle pacer starts in this tick (``Pacers.due`` becomes ``now``).

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    g: the receivers, changed in place (:class:`~flitlab.models.rules.spray.layout.Receivers`).
    p: the pacers, changed in place (:class:`Pacers`).
    host: the receiving host.
    i: the flow.
    target: cumulative pull target of the packet, quanta.
    is_request: whether the packet was trimmed or requests to send.
    now: the present tick.
    """
    got = g.got[i]
    new_target = got.target + 1 if r.credit == Credit.NDP else np.int64(target)
    joins = is_request or new_target > got.target
    got.target = max(got.target, new_target)
    if joins and got.is_active == 0:
        got.is_active = 1
        _activate(p, host, i)
        if p.due[host] < 0:
            p.due[host] = now


@device_function
def next_pull(r: Rules, g: Receivers, p: Pacers, host: Int, now: Int) -> int:
    """Choose the flow that the pacer of a host sends a pull to, and grant its credit.

    With NDP a flow whose packets have all arrived gets no more pulls: it has nothing to send, and others wait for them.
    The pull carries the cumulative grant ``Receivers.got[flow, CREDIT_GRANTED]``. ``Pacers.due`` becomes the tick of
    the next pull.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    g: the receivers, changed in place (:class:`~flitlab.models.rules.spray.layout.Receivers`).
    p: the pacers, changed in place (:class:`Pacers`).
    host: the receiving host.
    now: the present tick.

    Returns
    -------
    The flow, or -1 if there is none.
    """
    _adjust_rate(r, p, host, now)
    while r.credit == Credit.NDP and p.head[host] >= 0 and g.got[p.head[host]].complete >= 0:
        g.got[p.head[host]].is_active = 0
        p.head[host] = p.after[p.head[host]]
    i, grant = np.int64(p.head[host]), np.int64(r.pull_quanta)
    if i >= 0:
        grant = np.int64(_grant(r, g, p, host, i))
    elif p.idle_first[host] < p.idle_end[host]:
        i = np.int64(_next_idle(r, g, p, host))
    else:
        p.due[host] = -1
        return np.int64(-1)
    g.got[i].credit_granted += grant
    g.got[i].pulls += 1
    paid = float((grant if grant > 0 else np.int64(r.empty_quanta)) * r.quantum)
    p.due[host] = now + max(int(np.rint(paid * r.byte_gap / p.rate[host])), 1)
    return np.int64(i)


@kernel
def _grant(r: Rules, g: Receivers, p: Pacers, host: Int, i: Int) -> int:
    """Grant quanta to flow i, the first active one. It stays active until its target is granted, then it is idle."""
    got = g.got[i]
    p.head[host] = p.after[i]
    grant = min(np.int64(r.pull_quanta), max(np.int64(got.target - got.credit_granted), np.int64(0)))
    if got.target > got.credit_granted + grant:
        _activate(p, host, i)
        return grant
    got.is_active = 0
    if r.credit == Credit.RCCC:
        _put_idle(g, p, host, i)
    return grant


@kernel
def _next_idle(r: Rules, g: Receivers, p: Pacers, host: Int) -> int:
    """The first flow of a non-empty idle list. Its entry is removed once this pull gives it the most credit."""
    i = np.int64(p.idle[p.idle_start[host] + p.idle_first[host] % (p.idle_start[host + 1] - p.idle_start[host])])
    p.idle_first[host] += 1
    g.got[i].idle_entries -= 1
    if (g.got[i].credit_granted + r.pull_quanta - g.got[i].target) * r.quantum < max_credit(r):
        _put_idle(g, p, host, i)
    return i


@kernel
def throttles(r: Rules) -> bool:
    """Whether receivers reduce their credit rate while the network trims or marks their packets.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    """
    return r.oversubscription > 1.0


@device_function
def count_arrival(r: Rules, p: Pacers, host: Int, what: Int, now: Int) -> None:
    """Count a data packet that arrived at a host.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    p: the pacers, changed in place (:class:`Pacers`).
    host: the receiving host.
    what: GOOD, MARKED, or TRIMMED before the last hop; TIMED_OUT for a packet trimmed on the last hop.
    now: the present tick.
    """
    _adjust_rate(r, p, host, now)
    count = p.counters[host]
    count.arrived += 1
    if what == Feedback.TRIMMED:
        count.trimmed_upstream += 1
    elif what <= Feedback.MARKED:
        count.untrimmed += 1
        count.untrimmed_marked += what


@kernel
def _period(r: Rules, p: Pacers, host: Int) -> int:
    """Ticks between two rate adjustments of a host: 1.5 round trips, varied by up to a quarter."""
    drawn = float(draw(r.seed, Stream.CREDIT_RATE, host, p.counters[host].adjustments)) / 2.0**63
    return np.int64(1.5 * float(r.rtt0) * (0.75 + 0.5 * drawn)) + 1


@kernel
def _adjust_rate(r: Rules, p: Pacers, host: Int, now: Int) -> None:
    """Make all rate adjustments of a host that were due before this tick.

    The adjustments follow a timer that starts at tick 0. Only pulls read the rate, and only arrivals change its inputs.
    Both catch up with the timer, so engines need no event for it.
    """
    if throttles(r):
        if p.adjust_at[host] < 0:
            p.adjust_at[host] = _period(r, p, host)
        while p.adjust_at[host] < now:
            _adjust_once(r, p, host)


@device_function
def _adjust_once(r: Rules, p: Pacers, host: Int) -> None:
    """Make the next rate adjustment of a host, from the arrivals since the last one."""
    count, share = p.counters[host], 0.0
    if count.untrimmed > 0:
        share = float(count.untrimmed_marked) / float(count.untrimmed)
    p.share[host] = 0.5 * p.share[host] + 0.5 * share
    rate = p.rate[host]
    if count.trimmed_upstream > 0:
        rate -= float(count.trimmed_upstream) / float(count.arrived)
    if p.share[host] > _HIGH_SHARE:
        rate *= 1.0 - 0.5 * (p.share[host] - _HIGH_SHARE)
    if count.trimmed_upstream == 0 and p.share[host] <= _HIGH_SHARE:
        rate += _STEP * (2.0 ** float(min(count.rises, 30)) if count.untrimmed_marked == 0 else 1.0)
        count.rises += 1
    else:
        count.rises = 0
    p.rate[host] = min(max(rate, _LEAST / r.oversubscription), 1.0)
    count.arrived = count.trimmed_upstream = count.untrimmed = count.untrimmed_marked = 0
    count.adjustments += 1
    p.adjust_at[host] += _period(r, p, host)
