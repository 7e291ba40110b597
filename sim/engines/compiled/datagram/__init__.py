# SPDX-License-Identifier: Apache-2.0
"""Mode datagram, compiled.

Order within a tick: arrivals at queues and hosts, and ACKs that bypass queues; timers; the program. Packets and timers
of a tick are in the order of :func:`flitlab.models.rules.datagram.precedence`.
"""

from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, njit
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.newreno import CWND
from flitlab.models.transport.session import LATEST, Change, Session
from flitlab.sim.engines.base import Execution, ProgramStatus
from flitlab.sim.engines.compiled.datagram.hosts import deliver, expire
from flitlab.sim.engines.compiled.datagram.links import accept, break_link, change_rate, is_internal, take_first_packet
from flitlab.sim.engines.compiled.datagram.messages import make_datagram_program
from flitlab.sim.engines.compiled.datagram.prefetching import (
    MIN_BATCH,
    NEAR_PREFETCH_DISTANCE,
    PREFETCH_DISTANCE,
    prefetch_arrival,
    prefetch_links,
    prefetch_packet,
    prefetch_queue,
)
from flitlab.sim.engines.compiled.datagram.program import run_program
from flitlab.sim.engines.compiled.datagram.state import (
    ACK_BIT,
    LINK_COUNTS,
    POOL,
    SUBFLOW_COUNTS,
    SYN,
    TRACE,
    TRACED,
    WINDOW,
    build,
    larger_windows,
    longer_trace,
    with_paths,
)
from flitlab.sim.engines.compiled.link_wheel import has_arrivals, next_arrival_tick, sort_by_precedence, take_due_links
from flitlab.sim.engines.compiled.memory import unlikely
from flitlab.sim.engines.compiled.pool import doubled
from flitlab.sim.engines.compiled.ranks import execution_of, has_events, is_done, next_program_tick
from flitlab.sim.engines.compiled.timers import pop_timer
from flitlab.sim.engines.datagram.base import ARRIVED, Counters, Trace, check_lossless, program_status

_LOW = np.int64(0xFFFFFFFF)
_SUBFLOW = np.int64(0xFFFFFF)


@inline
def _gather_timers(const, state, tick):
    """List the timers that expire in a tick in ``state.members``, numbered behind all links; returns their number."""
    count = np.int64(0)
    while state.timers[len(state.timers) - 1] > 0 and state.timers[0] >> 24 == tick:
        state.members[count] = const.links + (pop_timer(state.timers) & _SUBFLOW)
        count += 1
    return count


@njit
def advance(const, state, tick, until):
    """Simulate the ticks from ``tick`` to ``until`` - 1.

    Returns the tick reached: an earlier one if an array has to grow first (``state.growth_needed``).
    """
    while True:
        timers = state.timers[len(state.timers) - 1]
        next_timer = state.timers[0] >> 24 if timers > 0 else until
        tick = next_arrival_tick(const, state, tick, next_program_tick(state.program, min(next_timer, until)))
        if tick >= until:
            return until
        if has_arrivals(const, state, tick):
            count = take_due_links(const, state, tick)
            is_batch = unlikely(count > MIN_BATCH)
            if is_batch:
                for k in range(count):
                    prefetch_packet(state, state.members[k])
                prefetch_links(const, state, tick + 1)
            sort_by_precedence(state.members, state.scratch, count, const.seed, tick)
            if is_batch:
                for k in range(min(count, PREFETCH_DISTANCE)):
                    prefetch_arrival(const, state, state.members[k] & _LOW)
            for k in range(count):
                if is_batch and k + PREFETCH_DISTANCE < count:
                    prefetch_arrival(const, state, state.members[k + PREFETCH_DISTANCE] & _LOW)
                if is_batch and k + NEAR_PREFETCH_DISTANCE < count:
                    prefetch_queue(const, state, state.members[k + NEAR_PREFETCH_DISTANCE] & _LOW)
                link = state.members[k] & _LOW
                packet = take_first_packet(const, state, link, tick)
                if is_internal(const, link):
                    record = state.packet[packet]
                    path_index, next_link = np.int64(record.path_index) + 1, np.int64(record.next_link)
                    record.path_index, record.next_link = path_index, state.path[path_index + 1]
                    accept(const, state, next_link, packet, tick)
                else:
                    deliver(const, state, link, packet, tick)
        count = _gather_timers(const, state, tick)
        if count > 0:
            sort_by_precedence(state.members, state.scratch, count, const.seed, tick)
        for k in range(count):
            expire(const, state, (state.members[k] & _LOW) - const.links, tick)
        run_program(state.program, const, state, tick)
        tick += 1
        if state.free[len(state.free) - 1] < const.reserve:
            state.growth_needed[POOL] = 1
        if state.growth_needed[POOL] | state.growth_needed[WINDOW] | state.growth_needed[TRACE]:
            return tick


class CompiledDatagrams:
    """A compiled simulation of datagrams (see :class:`flitlab.sim.engines.datagram.base.DatagramRun`)."""

    latest = LATEST

    def __init__(self, session: Session, trace: bool = False):
        self.session = session
        session = with_feeders(session)
        self._program: Any = make_datagram_program(session)
        self._constants, self._state = build(session, trace, self._program)
        self._channels = session.topology.channels
        self._changes = list(session.changes)
        self._tick = 0

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``, with the link events and path changes of the session.

        Raises
        ------
        OverflowError
            Timers do not reach so far. :class:`~flitlab.sim.engines.datagram.base.MessageLost` A packet of a program
            without a transport is dropped.
        """
        while self._changes and self._changes[0].tick < until:
            change = self._changes.pop(0)
            self._run(change.tick)
            self._apply(change)
        self._run(until)

    def _apply(self, change: Change) -> None:
        for link in change.broken.tolist():
            break_link(self._constants, self._state, link, change.tick)
        self._state.link["capacity"][change.mended] = self.session.queues.queue_bytes
        for link, ratio in zip(change.other.tolist(), change.ratio.tolist(), strict=True):
            change_rate(self._constants, self._state, link, ratio, change.tick)
        if len(change.moved):
            self._state = with_paths(self._constants, self._state, change.moved, change.paths, change.back)

    def _run(self, until: int) -> None:
        if until > LATEST:
            raise OverflowError(f"a run may take at most {LATEST} ticks, the range of timers; simulate less time")
        while self._tick < until:
            self._tick = advance(self._constants, self._state, self._tick, until)
            if self._program is not None and self._constants.paced:
                check_lossless(self._state.subflow["dropped"])
            self._grow()

    def _grow(self) -> None:
        wants = self._state.growth_needed
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
        counts[:, ARRIVED] += record["duplicates"]
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
        return Trace(*self._state.trace[: self._state.growth_needed[TRACED]].T.copy())

    def done(self) -> bool:
        return is_done(self._program.ranks)

    def program_status(self) -> ProgramStatus:
        state = self._state
        return program_status(
            self.session, state.senders, state.subflow["received"], state.unsent, self.in_flight(), self._tick,
            has_events(self._program.ranks),
        )  # fmt: skip

    def execution(self) -> Execution:
        return execution_of(self._program.ranks)

    def carried(self) -> Ints:
        channels = slice(0, self._channels)
        unsent_ticks = np.maximum(0, self._state.link["free_at"][channels] - self._tick)
        carried: Ints = self._program.busy_ticks[channels] - unsent_ticks
        return carried
