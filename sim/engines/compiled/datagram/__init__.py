# SPDX-License-Identifier: Apache-2.0
"""The datagram discipline, compiled.

In a tick come, in this order: packets that arrive at queues and hosts, and acknowledgements that come back without
queues; timers; what a program does. Packets and timers of one tick are in the order of
:func:`flitlab.models.rules.datagram.precedence`.
"""

from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, njit
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.newreno import CWND
from flitlab.models.transport.session import LATEST, Change, Session
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.awaited import gather, has_members, line_up, next_slot
from flitlab.sim.engines.compiled.datagram.ahead import (
    AHEAD,
    FEW,
    SOON,
    foresee,
    foresee_links,
    foresee_packet,
    foresee_queue,
)
from flitlab.sim.engines.compiled.datagram.hosts import deliver, ring
from flitlab.sim.engines.compiled.datagram.links import accept, break_link, change_rate, goes_on, take_head
from flitlab.sim.engines.compiled.datagram.messages import make_talk
from flitlab.sim.engines.compiled.datagram.program import act
from flitlab.sim.engines.compiled.datagram.state import (
    ACK_BIT,
    LINK_COUNTS,
    POOL,
    SUBFLOW_COUNTS,
    SYN,
    TRACE,
    TRACED,
    WINDOW,
    along,
    build,
    larger_windows,
    longer_trace,
)
from flitlab.sim.engines.compiled.memory import seldom
from flitlab.sim.engines.compiled.pool import doubled
from flitlab.sim.engines.compiled.ranks import execution_of, has_events, is_done, wakes
from flitlab.sim.engines.compiled.timers import take_timer
from flitlab.sim.engines.datagram.base import ARRIVED, Counters, Trace, check_lossless, standing_of

_LOW = np.int64(0xFFFFFFFF)
_SUBFLOW = np.int64(0xFFFFFF)


@inline
def _gather_timers(const, state, tick):
    """List the timers that ring in a tick in ``state.members``, each numbered after all links; how many they are."""
    count = np.int64(0)
    while state.timers[len(state.timers) - 1] > 0 and state.timers[0] >> 24 == tick:
        state.members[count] = const.links + (take_timer(state.timers) & _SUBFLOW)
        count += 1
    return count


@njit
def advance(const, state, tick, until):
    """Simulate the ticks from ``tick`` to ``until`` - 1.

    Returns the tick reached, which is earlier if something has to grow first (see ``state.wants``).
    """
    while True:
        timers = state.timers[len(state.timers) - 1]
        rings = state.timers[0] >> 24 if timers > 0 else until
        tick = next_slot(const, state, tick, wakes(state.talk, min(rings, until)))
        if tick >= until:
            return until
        if has_members(const, state, tick):
            count = gather(const, state, tick)
            many = seldom(count > FEW)
            if many:
                for k in range(count):
                    foresee_packet(state, state.members[k])
                foresee_links(const, state, tick + 1)
            line_up(state.members, state.scratch, count, const.seed, tick)
            if many:
                for k in range(min(count, AHEAD)):
                    foresee(const, state, state.members[k] & _LOW)
            for k in range(count):
                if many and k + AHEAD < count:
                    foresee(const, state, state.members[k + AHEAD] & _LOW)
                if many and k + SOON < count:
                    foresee_queue(const, state, state.members[k + SOON] & _LOW)
                link = state.members[k] & _LOW
                packet = take_head(const, state, link, tick)
                if goes_on(const, link):
                    record = state.packet[packet]
                    at, onto = np.int64(record.at) + 1, np.int64(record.onto)
                    record.at, record.onto = at, state.path[at + 1]
                    accept(const, state, onto, packet, tick)
                else:
                    deliver(const, state, link, packet, tick)
        count = _gather_timers(const, state, tick)
        if count > 0:
            line_up(state.members, state.scratch, count, const.seed, tick)
        for k in range(count):
            ring(const, state, (state.members[k] & _LOW) - const.links, tick)
        act(state.talk, const, state, tick)
        tick += 1
        if state.free[len(state.free) - 1] < const.reserve:
            state.wants[POOL] = 1
        if state.wants[POOL] | state.wants[WINDOW] | state.wants[TRACE]:
            return tick


class CompiledDatagrams:
    """A simulation of datagrams under way, compiled (see :class:`flitlab.sim.engines.datagram.base.DatagramRun`)."""

    latest = LATEST

    def __init__(self, session: Session, trace: bool = False):
        self.given = session
        session = with_feeders(session)
        self._talk: Any = make_talk(session)
        self._constants, self._state = build(session, trace, self._talk)
        self._channels = session.topology.channels
        self._changes = list(session.changes)
        self._tick = 0

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``; links break and subflows move as the session says.

        Raises ``OverflowError`` beyond the last tick that timers are made for, and
        :class:`~flitlab.sim.engines.datagram.base.MessageLost` if a packet of a program without a transport is dropped.
        """
        while self._changes and self._changes[0].tick < until:
            change = self._changes.pop(0)
            self._run(change.tick)
            self._apply(change)
        self._run(until)

    def _apply(self, change: Change) -> None:
        for link in change.broken.tolist():
            break_link(self._constants, self._state, link, change.tick)
        self._state.link["limit"][change.mended] = self.given.queues.queue_bytes
        for link, ratio in zip(change.other.tolist(), change.ratio.tolist(), strict=True):
            change_rate(self._constants, self._state, link, ratio, change.tick)
        if len(change.moved):
            self._state = along(self._constants, self._state, change.moved, change.paths, change.back)

    def _run(self, until: int) -> None:
        if until > LATEST:
            raise OverflowError(f"a run takes more than {LATEST} ticks, and timers are not made for more")
        while self._tick < until:
            self._tick = advance(self._constants, self._state, self._tick, until)
            if self._talk is not None and self._constants.paced:
                check_lossless(self._state.subflow["dropped"])
            self._grow()

    def _grow(self) -> None:
        wants = self._state.wants
        for flag, grow in ((POOL, doubled), (WINDOW, larger_windows), (TRACE, longer_trace)):
            if wants[flag]:
                self._state = grow(self._state)
                wants[flag] = 0

    def counters(self) -> Counters:
        state, link = self._state, self._state.link[: self._constants.links]
        return Counters(
            self._tick, self._subflow_counts(), np.stack([link[name] for name in LINK_COUNTS], axis=1),
            state.finished.copy(), state.senders.win[:, CWND].copy(),
        )  # fmt: skip

    def _subflow_counts(self) -> Ints:
        record = self._state.subflow
        counts = np.stack([record[name] for name in SUBFLOW_COUNTS], axis=1)
        counts[:, ARRIVED] += record["again"]
        return counts

    def in_flight(self) -> Ints:
        state = self._state
        used = np.ones(len(state.packet), bool)
        used[state.free[: state.free[-1]]] = False
        used &= (state.packet["kind"] & ACK_BIT == 0) & (state.packet["kind"] != SYN)
        return np.bincount(state.packet["subflow"][used], minlength=len(state.subflow))

    def trace(self) -> Trace:
        if not len(self._state.trace):
            raise ValueError("the run was started without trace=True")
        return Trace(*self._state.trace[: self._state.wants[TRACED]].T.copy())

    def done(self) -> bool:
        return is_done(self._talk.ranks)

    def standing(self) -> Standing:
        state = self._state
        return standing_of(
            self.given, state.senders, state.subflow["received"], state.left, self.in_flight(), self._tick,
            has_events(self._talk.ranks),
        )  # fmt: skip

    def execution(self) -> Execution:
        return execution_of(self._talk.ranks)

    def carried(self) -> Ints:
        channels = slice(0, self._channels)
        ahead = np.maximum(0, self._state.link["free_at"][channels] - self._tick)
        carried: Ints = self._talk.busy[channels] - ahead
        return carried
