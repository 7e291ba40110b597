"""The datagram discipline, compiled.

In a tick come, in this order: packets that arrive at queues and hosts, and acknowledgements that come back without
queues; timers; what a program does. Packets and timers of one tick are in the order of
:func:`flitlab.models.rules.datagram.precedence`.
"""

from typing import Any

import numpy as np

from flitlab.models.jit import inner, njit, routine
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.datagram import precedence
from flitlab.models.transport.newreno import CWND
from flitlab.models.transport.session import LATEST, Change, Session
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.datagram.hosts import deliver, ring, take_timer
from flitlab.sim.engines.compiled.datagram.links import accept, break_link, take_head
from flitlab.sim.engines.compiled.datagram.messages import make_talk
from flitlab.sim.engines.compiled.datagram.program import act, wakes
from flitlab.sim.engines.compiled.datagram.state import (
    ACK_BIT,
    AFTER,
    AT,
    FREE_AT,
    KIND,
    NOBODY,
    POOL,
    SUBFLOW,
    SYN,
    TRACE,
    TRACED,
    WINDOW,
    along,
    build,
    larger_pool,
    larger_windows,
    longer_trace,
)
from flitlab.sim.engines.compiled.ranks import execution_of, has_events, is_done
from flitlab.sim.engines.datagram.base import RECEIVED, Counters, Trace, check_lossless

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.int64(0xFFFFFFFF)

_FEW = 8
"""Up to so many are put in order by exchanging neighbours."""


@inner
def _next_slot(c, s, tick, until):
    """The first tick from ``tick`` on, and before ``until``, in which a link awaits a packet; else ``until``."""
    around = min(tick + c.mask + 1, until)
    while tick < around:
        slot = np.uint64(tick & c.mask)
        word = s.bits[slot >> np.uint64(6)] & (_ALL << (slot & np.uint64(63)))
        if word:
            return min(tick - (tick & 63) + lowest(word), until)
        tick += 64 - (tick & 63)
    return until


@inner
def _gather(c, s, tick):
    """The links that await a packet in a tick in ``s.members``; how many."""
    slot = np.uint64(tick & c.mask)
    link = np.int64(s.slot[slot])
    s.slot[slot] = NOBODY
    s.bits[slot >> np.uint64(6)] &= ~(_ONE << (slot & np.uint64(63)))
    count = np.int64(0)
    while link != NOBODY:
        s.members[count] = link
        count += 1
        link = s.link[link, AFTER]
    return count


@inner
def _gather_timers(c, s, tick):
    """The timers that ring in a tick in ``s.members``, each numbered after all links; how many."""
    count = np.int64(0)
    while s.timers[len(s.timers) - 1] > 0 and s.timers[0] >> 24 == tick:
        s.members[count] = c.links + take_timer(s)
        count += 1
    return count


@inner
def _line_up(members, scratch, count, seed, tick):
    """Those who do something in a tick by precedence, which is put above their numbers where they are several."""
    if count == 1:
        return
    for k in range(count):
        members[k] = precedence(seed, tick, members[k])
    if count > _FEW:
        _sort(members, scratch, count)
        return
    for i in range(1, count):
        for k in range(i, 0, -1):  # to exchange always is quicker than to mispredict whether
            low, high = min(members[k - 1], members[k]), max(members[k - 1], members[k])
            members[k - 1], members[k] = low, high


@routine
def _sort(members, scratch, count):
    """Distribute many over as many buckets by what was drawn, which is even, and put the little left in order."""
    ends, spread = scratch[: count + 1], scratch[count + 1 :]
    ends[:] = 0
    for k in range(count):
        ends[((members[k] >> 32) * count >> 31) + 1] += 1
    for k in range(count):
        ends[k + 1] += ends[k]
    for k in range(count):
        bucket = (members[k] >> 32) * count >> 31
        spread[ends[bucket]] = members[k]
        ends[bucket] += 1
    for k in range(count):
        key, place = spread[k], np.int64(k)
        while place > 0 and members[place - 1] > key:
            members[place] = members[place - 1]
            place -= 1
        members[place] = key


@njit
def advance(c, s, tick, until):
    """Simulate ticks up to ``until``; the tick reached, earlier if something has to grow first."""
    while True:
        timers = s.timers[len(s.timers) - 1]
        rings = s.timers[0] >> 24 if timers > 0 else until
        tick = _next_slot(c, s, tick, wakes(s.talk, min(rings, until)))
        if tick >= until:
            return until
        slot = np.uint64(tick & c.mask)
        if s.bits[slot >> np.uint64(6)] >> (slot & np.uint64(63)) & _ONE:
            count = _gather(c, s, tick)
            _line_up(s.members, s.scratch, count, c.seed, tick)
            for k in range(count):
                link = s.members[k] & _LOW
                p = take_head(c, s, link, tick)
                if link < c.eject or c.feeders <= link < c.links:
                    at = np.int64(s.packet[p, AT]) + 1
                    s.packet[p, AT] = at
                    accept(c, s, np.int64(s.path[at]), p, tick)
                else:
                    deliver(c, s, link, p, tick)
        count = _gather_timers(c, s, tick)
        if count > 0:
            _line_up(s.members, s.scratch, count, c.seed, tick)
        for k in range(count):
            ring(c, s, (s.members[k] & _LOW) - c.links, tick)
        act(s.talk, c, s, tick)
        tick += 1
        if s.free[len(s.free) - 1] < c.reserve:
            s.wants[POOL] = 1
        if s.wants[POOL] | s.wants[WINDOW] | s.wants[TRACE]:
            return tick


class CompiledDatagrams:
    """One simulation under way (see :class:`flitlab.sim.engines.datagram.DatagramRun`)."""

    latest = LATEST

    def __init__(self, session: Session, trace: bool = False):
        self._talk: Any = make_talk(session)
        self._constants, self._state = build(session, trace, self._talk)
        self._channels = session.topology.channels
        self._changes = list(session.changes)
        self._tick = 0

    def advance(self, until: int) -> None:
        while self._changes and self._changes[0].tick < until:
            change = self._changes.pop(0)
            self._run(change.tick)
            self._apply(change)
        self._run(until)

    def _apply(self, change: Change) -> None:
        for link in change.broken.tolist():
            break_link(self._constants, self._state, link, change.tick)
        self._state = along(self._state, change.moved, change.paths, change.back)

    def _run(self, until: int) -> None:
        if until > LATEST:
            raise OverflowError(f"a run takes more than {LATEST} ticks, and timers are not made for more")
        while self._tick < until:
            self._tick = advance(self._constants, self._state, self._tick, until)
            if self._talk is not None and self._constants.paced:
                check_lossless(self._state.subflow_counts)
            self._grow()

    def _grow(self) -> None:
        wants = self._state.wants
        for flag, grow in ((POOL, larger_pool), (WINDOW, larger_windows), (TRACE, longer_trace)):
            if wants[flag]:
                self._state = grow(self._state)
                wants[flag] = 0

    def counters(self) -> Counters:
        s, links = self._state, self._constants.links
        return Counters(
            self._tick, s.subflow_counts.copy(), s.link_counts[:links].copy(), s.finished.copy(),
            s.senders.win[:, CWND].copy(),
        )  # fmt: skip

    def in_flight(self) -> np.ndarray:
        s = self._state
        used = np.ones(len(s.packet), bool)
        used[s.free[: s.free[-1]]] = False
        used &= (s.packet[:, KIND] & ACK_BIT == 0) & (s.packet[:, KIND] != SYN)
        return np.bincount(s.packet[used, SUBFLOW], minlength=len(s.receiver))

    def trace(self) -> Trace:
        if not len(self._state.trace):
            raise ValueError("the run was started without trace=True")
        return Trace(*self._state.trace[: self._state.wants[TRACED]].T.copy())

    def done(self) -> bool:
        return is_done(self._talk.ranks)

    def standing(self) -> Standing:
        received = int(self._state.subflow_counts[:, RECEIVED].sum())
        return Standing(
            received, int(self._state.left.sum()), int(self.in_flight().sum()), has_events(self._talk.ranks)
        )

    def execution(self) -> Execution:
        return execution_of(self._talk.ranks)

    def carried(self) -> np.ndarray:
        channels = slice(0, self._channels)
        return self._talk.busy[channels] - np.maximum(0, self._state.link[channels, FREE_AT] - self._tick)
