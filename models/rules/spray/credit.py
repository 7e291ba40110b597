# SPDX-License-Identifier: Apache-2.0
"""Credit: what senders ask for, and the pacer of a host that grants it.

Times are ticks, credit is in units of ``Rules.quantum`` bytes and counted cumulatively.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.jit import kernel, routine
from flitlab.models.rules.draw import draw
from flitlab.models.rules.spray.layout import (
    AGAIN,
    CREDIT,
    GIVEN,
    GRANTED,
    LISTED,
    MARKED,
    NDP,
    NEXT,
    NO_WINDOW,
    OWED,
    PACKETS,
    PULLS,
    RCCC,
    SPECULATES,
    TARGET,
    TRIMMED,
    WINDOW,
    WORD,
    Receivers,
    Rules,
    Senders,
    has,
    size_of,
)
from flitlab.models.rules.spray.streams import CREDIT_RATE

PULL_ENTROPIES = 128
"""Entropies that the pulls of a connection go through, one after the other."""

_ACTIVE, _IDLE = 1, 2

# Columns of Pacers.tally, int64: packets that came since the last look.
ALL, CUT, WHOLE, HEEDED = 0, 1, 2, 3  # of any kind, trimmed before the last hop, not trimmed, those of them with a mark
RISES = 4  # increases of the rate in a row
LOOKS = 5  # at the rate so far
COUNTS = 8

_LEAST, _HIGH_SHARE, _STEP = 0.9, 0.3, 0.01


class Pacers(NamedTuple):
    """The pacers of all hosts, each with a list of connections to be granted credit, and one of those satisfied.

    due: int64 [hosts], tick of the next pull, -1: nobody waits. look: int64 [hosts], tick at which the rate is looked
    at, -1: not. head, tail: int64 [3, hosts], first and last flow of a list, -1 if it is empty; rows 1 and 2 are used.
    after, before: int64 [flows], neighbours in the list. rate: float64 [hosts], part of the full rate. share: float64
    [hosts], running share of marked packets. tally: int64 [hosts, COUNTS].
    """

    due: Ints
    look: Ints
    head: Ints
    tail: Ints
    after: Ints
    before: Ints
    rate: Floats
    share: Floats
    tally: Ints


def make_pacers(hosts: int, flows: int) -> Pacers:
    """The pacers of so many hosts, to whom there are so many flows; nobody waits."""
    nobody = np.full(hosts, -1, np.int64)
    lists = np.full((3, hosts), -1, np.int64)
    links = np.full(flows, -1, np.int64)
    return Pacers(
        nobody, nobody.copy(), lists, lists.copy(), links, links.copy(), np.ones(hosts), np.zeros(hosts),
        np.zeros((hosts, COUNTS), np.int64),
    )  # fmt: skip


@kernel
def most_credit(r: Rules) -> int:
    """The most credit that a sender keeps, in bytes."""
    return np.int64(r.most_bdp * float(r.rtt0) * r.rate)


@kernel
def backlog(r: Rules, s: Senders, i: Int) -> int:
    """Bytes that sender i has to send, for the first time or again."""
    seq = s.seq[i]
    last = seq[PACKETS] - 1
    fresh = seq[PACKETS] - seq[NEXT]
    total = (fresh + seq[AGAIN]) * np.int64(r.mtu)
    short = r.mtu - size_of(r, s, i, last)
    if fresh > 0 or has(s.again, seq[WORD], last):
        total -= short
    return total


@kernel
def pull_target(r: Rules, s: Senders, i: Int, waiting: Int) -> int:
    """The credit, cumulative, that sender i asks for, while ``waiting`` others of its host wait to send."""
    seq = s.seq[i]
    if r.credit != RCCC:
        return np.int64(0)
    want = np.int64(backlog(r, s, i))
    want = min(want, np.int64(most_credit(r)))
    if r.window != NO_WINDOW:
        want = min(want, np.int64(s.win[i, WINDOW]) + np.int64(r.mtu))
    want = max(want - seq[CREDIT], np.int64(0))
    if seq[SPECULATES] != 0 and seq[NEXT] < seq[PACKETS]:
        want = max(want, np.int64(r.mtu))
    if waiting > 1:
        want = want // np.int64(waiting)
    return seq[GRANTED] + (want + r.quantum - 1) // r.quantum


@kernel
def heard(r: Rules, s: Senders, i: Int) -> None:
    """Sender i has heard of its receiver for the first time: what remains of its first credit is lost."""
    seq = s.seq[i]
    if r.credit == RCCC and seq[SPECULATES] != 0:
        seq[SPECULATES] = 0
        seq[CREDIT] = min(seq[CREDIT], 0)


@routine
def on_pull(r: Rules, s: Senders, i: Int, granted: Int) -> None:
    """A pull comes to sender i; granted: cumulative."""
    heard(r, s, i)
    seq = s.seq[i]
    more = granted - seq[GRANTED]
    if more <= 0:
        return
    seq[GRANTED] = granted
    seq[CREDIT] += more * r.quantum
    if r.credit == RCCC:
        seq[CREDIT] = min(seq[CREDIT], most_credit(r))


@kernel
def _append(p: Pacers, g: Receivers, which: Int, host: Int, i: Int) -> None:
    g.got[i, LISTED] = which
    p.after[i], p.before[i] = -1, p.tail[which, host]
    if p.tail[which, host] >= 0:
        p.after[p.tail[which, host]] = i
    else:
        p.head[which, host] = i
    p.tail[which, host] = i


@kernel
def _remove(p: Pacers, g: Receivers, host: Int, i: Int) -> None:
    which, before, after = g.got[i, LISTED], p.before[i], p.after[i]
    if which == 0:
        return
    if before >= 0:
        p.after[before] = after
    else:
        p.head[which, host] = after
    if after >= 0:
        p.before[after] = before
    else:
        p.tail[which, host] = before
    g.got[i, LISTED] = 0


@routine
def claim(r: Rules, g: Receivers, p: Pacers, host: Int, i: Int, target: Int, owed: bool, now: Int) -> None:
    """What a packet of flow i says to the pacer of its destination: a pull target, cumulative.

    owed: whether it came trimmed or asks to send, so that a pull is due in any case. With NDP each packet earns one.
    The pacer that has been waiting for somebody serves at its next turn in this tick (``Pacers.due`` is ``now``).
    """
    got = g.got[i]
    if r.credit == NDP:
        got[TARGET] += 1
    else:
        got[TARGET] = max(got[TARGET], np.int64(target))
        if owed:
            got[OWED] = 1
    if got[LISTED] != _ACTIVE and (got[TARGET] > got[GIVEN] or got[OWED] != 0):
        _remove(p, g, host, i)
        _append(p, g, _ACTIVE, host, i)
        if p.due[host] < 0:
            p.due[host] = now


@routine
def next_pull(r: Rules, g: Receivers, p: Pacers, host: Int, now: Int) -> int:
    """The flow to whose sender the pacer of a host sends a pull now, -1: to none; ``due`` is then when it does next.

    The pull carries what the flow was granted so far, ``Receivers.got[flow, GIVEN]``.
    """
    i, grant = p.head[_ACTIVE, host], np.int64(0)
    if i >= 0:
        got = g.got[i]
        _remove(p, g, host, i)
        grant = min(np.int64(r.pull_quanta), max(np.int64(got[TARGET] - got[GIVEN]), np.int64(0)))
        got[OWED] = 0
        if got[TARGET] > got[GIVEN] + grant:
            _append(p, g, _ACTIVE, host, i)
        elif r.credit == RCCC:
            _append(p, g, _IDLE, host, i)
    else:
        i = np.int64(_satisfied(r, g, p, host))
        if i < 0:
            p.due[host] = -1
            return np.int64(-1)
        grant = np.int64(r.pull_quanta)
    g.got[i, GIVEN] += grant
    g.got[i, PULLS] += 1
    paid = float((grant if grant > 0 else np.int64(r.empty_quanta)) * r.quantum)
    p.due[host] = now + max(int(np.rint(paid * r.byte_gap / p.rate[host])), 1)
    return np.int64(i)


@kernel
def _satisfied(r: Rules, g: Receivers, p: Pacers, host: Int) -> int:
    """The next connection without a claim that may have credit beyond it; those that have enough leave the list."""
    while p.head[_IDLE, host] >= 0:
        i = p.head[_IDLE, host]
        _remove(p, g, host, i)
        if (g.got[i, GIVEN] - g.got[i, TARGET]) * r.quantum < most_credit(r):
            _append(p, g, _IDLE, host, i)
            return np.int64(i)
    return np.int64(-1)


@kernel
def throttles(r: Rules) -> bool:
    """Whether receivers look at what the network does to their packets."""
    return r.oversubscription > 1.0


@routine
def count_arrival(r: Rules, p: Pacers, host: Int, what: Int, now: Int) -> None:
    """A data packet came to a host: GOOD, MARKED, or TRIMMED before the last hop, or TIMED_OUT for one on the last."""
    count = p.tally[host]
    count[ALL] += 1
    if what == TRIMMED:
        count[CUT] += 1
    elif what <= MARKED:
        count[WHOLE] += 1
        count[HEEDED] += what
    if p.look[host] < 0:
        p.look[host] = now + _period(r, p, host)


@kernel
def _period(r: Rules, p: Pacers, host: Int) -> int:
    """Ticks until the rate of a host is looked at again: 1.5 round trips, a quarter more or less."""
    drawn = float(draw(r.seed, CREDIT_RATE, host, p.tally[host, LOOKS])) / 2.0**63
    return np.int64(1.5 * float(r.rtt0) * (0.75 + 0.5 * drawn)) + 1


@routine
def look(r: Rules, p: Pacers, host: Int, now: Int) -> None:
    """Let a host look at its rate; it stops where nothing came and the rate is full."""
    count, share = p.tally[host], 0.0
    if count[WHOLE] > 0:
        share = float(count[HEEDED]) / float(count[WHOLE])
    p.share[host] = 0.5 * p.share[host] + 0.5 * share
    rate = p.rate[host]
    if count[CUT] > 0:
        rate -= float(count[CUT]) / float(count[ALL])
    if p.share[host] > _HIGH_SHARE:
        rate *= 1.0 - 0.5 * (p.share[host] - _HIGH_SHARE)
    if count[CUT] == 0 and p.share[host] <= _HIGH_SHARE:
        rate += _STEP * (2.0 ** float(min(count[RISES], 30)) if count[HEEDED] == 0 else 1.0)
        count[RISES] += 1
    else:
        count[RISES] = 0
    p.rate[host] = min(max(rate, _LEAST / r.oversubscription), 1.0)
    rests = count[ALL] == 0 and p.rate[host] == 1.0
    count[: HEEDED + 1] = 0
    count[LOOKS] += 1
    p.look[host] = -1 if rests else now + _period(r, p, host)
