# SPDX-License-Identifier: Apache-2.0
"""Mode datagram, compiled.

Order within a tick: arrivals at queues and hosts, and ACKs that bypass queues; timers; the program. Packets and timers
of a tick are in the order of :func:`flitlab.models.rules.datagram.precedence`.
"""

from typing import Any, ClassVar

import numpy as np

from flitlab.models.application.messages import MessageStage
from flitlab.models.arrays import Ints
from flitlab.models.jit import device_function, inline, njit
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.newreno import ConnectionState, resume
from flitlab.models.transport.session import LATEST, Change, Session
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.compiled.datagram.hosts import deliver, expire, pace, send_on, set_timer
from flitlab.sim.engines.compiled.datagram.links import (
    accept,
    break_link,
    change_rate,
    is_internal,
    queued,
    take_first_packet,
)
from flitlab.sim.engines.compiled.datagram.messages import add_message, make_datagram_program
from flitlab.sim.engines.compiled.datagram.prefetching import (
    MIN_BATCH,
    prefetch_arrival,
    prefetch_links,
    prefetch_packet,
    prefetch_queue,
)
from flitlab.sim.engines.compiled.datagram.state import (
    LINK_COUNTS,
    SUBFLOW_COUNTS,
    Kind,
    build,
    larger_windows,
    with_paths,
)
from flitlab.sim.engines.compiled.link_wheel import has_arrivals, next_arrival_tick, sort_by_precedence, take_due_links
from flitlab.sim.engines.compiled.memory import unlikely
from flitlab.sim.engines.compiled.ranks import OUTBOX, has_events, next_event, next_program_tick, process_events
from flitlab.sim.engines.compiled.transport import (
    NEAR_PREFETCH_DISTANCE,
    PREFETCH_DISTANCE,
    CompiledTransport,
    Growth,
    pop_timer,
    rules_of,
)
from flitlab.sim.engines.transport.datagram import Counters, LinkCount, SubflowCount, program_status

_OF_QUEUED = [LinkCount.SENT, LinkCount.QUEUE_TICKS, LinkCount.BYTES]
"""Counts of a link from which those of queued packets are subtracted."""

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


@inline
def _run_program(program, const, state, now):
    """Process the program's events of a tick, and add the messages of its outbox to their connections."""
    if program is not None and next_event(program.ranks) <= now:
        process_events(program.ranks, now)
        totals = program.ranks.totals
        for k in range(totals[OUTBOX]):
            message = program.ranks.outbox[k]
            flow = program.back[message] if program.ranks.stage[message] == MessageStage.CTS else program.forth[message]
            add_message(program, state.unsent, message, flow)
            _resume_connection(const, state, flow, now)
        totals[OUTBOX] = 0


@device_function
def _resume_connection(const, state, flow, now):
    """Let the subflows of a connection send what their windows allow."""
    for subflow in range(const.first[flow], const.first[flow + 1]):
        if state.unsent[flow] == 0:
            return
        seq = state.senders.seq[subflow]
        if const.paced:
            if seq.state != ConnectionState.OPEN:
                pace(const, state, subflow, now)
            continue
        if seq.una == seq.next and resume(rules_of(const, subflow), state.senders, subflow, now):
            set_timer(state, min(seq.deadline, now + np.int64(np.ceil(rules_of(const, subflow).min_rto))), subflow)
        send_on(const, state, subflow, now)


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
                    deliver(const, state, packet, tick)
        count = _gather_timers(const, state, tick)
        if count > 0:
            sort_by_precedence(state.members, state.scratch, count, const.seed, tick)
        for k in range(count):
            expire(const, state, (state.members[k] & _LOW) - const.links, tick)
        _run_program(state.program, const, state, tick)
        tick += 1
        if state.free[len(state.free) - 1] < const.reserve:
            state.growth_needed[Growth.POOL] = 1
        if state.growth_needed[Growth.POOL] | state.growth_needed[Growth.WINDOW] | state.growth_needed[Growth.TRACE]:
            return tick


class CompiledDatagrams(CompiledTransport[Session]):
    """A compiled simulation of datagrams (see :class:`flitlab.sim.engines.transport.datagram.DatagramRun`)."""

    latest = LATEST
    grow: ClassVar = CompiledTransport.grow | {Growth.WINDOW: larger_windows}

    def __init__(self, session: Session, trace: bool = False):
        fed = with_feeders(session)
        program: Any = make_datagram_program(fed)
        super().__init__(session, program, *build(fed, trace, program))
        self._changes = list(fed.changes)
        self._pipes = self._constants.links + fed.subflows

    def _simulate(self, until: int) -> int:
        tick: int = advance(self._constants, self._state, self._tick, until)
        return tick

    def _apply(self, change: Change) -> None:
        for link in change.broken.tolist():
            break_link(self._constants, self._state, link, change.tick)
        self._state.link["capacity"][change.mended] = self.session.queues.queue_bytes
        for link, ratio in zip(change.other.tolist(), change.ratio.tolist(), strict=True):
            change_rate(self._constants, self._state, link, ratio, change.tick)
        if len(change.moved):
            pipe = self._pipes + np.arange(len(change.moved))
            self._pipes += len(pipe)
            self._state = with_paths(self._constants, self._state, change.moved, pipe, change.paths, change.back)

    def _dropped(self) -> int:
        return int(self._state.subflow["dropped"].sum())

    def counters(self) -> Counters:
        state, link = self._state, self._state.link[: self._constants.links]
        counts = np.stack([link[name] for name in LINK_COUNTS], axis=1)
        for number in np.flatnonzero(link["free_at"] > self._tick):
            counts[number, _OF_QUEUED] -= queued(self._constants, state, number, self._tick)
        return Counters(
            self._tick, self._subflow_counts(), counts, state.finished.copy(), state.senders.win["cwnd"].copy()
        )

    def _subflow_counts(self) -> Ints:
        record = self._state.subflow
        counts = np.stack([record[name] for name in SUBFLOW_COUNTS], axis=1)
        counts[:, SubflowCount.ARRIVED] += record["duplicates"]
        return counts

    def in_flight(self) -> Ints:
        state = self._state
        used = np.ones(len(state.packet), bool)
        used[state.free[: state.free[-1]]] = False
        used &= (state.packet["kind"] & Kind.ACK_BIT == 0) & (state.packet["kind"] != Kind.SYN)
        return np.bincount(state.packet["subflow"][used], minlength=len(state.subflow))

    def program_status(self) -> ProgramStatus:
        state = self._state
        return program_status(
            self.session, state.senders, state.subflow["received"], state.unsent, self.in_flight(), self._tick,
            has_events(self._program.ranks),
        )  # fmt: skip

    def carried(self) -> Ints:
        channels = slice(0, self.session.topology.channels)
        unsent_ticks = np.maximum(0, self._state.link["free_at"][channels] - self._tick)
        carried: Ints = self._program.busy_ticks[channels] - unsent_ticks
        return carried
