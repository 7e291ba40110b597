# SPDX-License-Identifier: Apache-2.0
"""Mode spray, compiled.

Order within a tick: ends of service; arrivals from links, in an order drawn for every tick; timers; the program.
Decisions of hosts and switches are in :mod:`flitlab.models.rules.spray`.
"""

from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import device_function, inline, njit
from flitlab.models.rules.spray.ports import chosen_port, flow_key
from flitlab.models.transport.fabric import FabricChange, SpraySession
from flitlab.sim.engines.base import Execution, ProgramStatus
from flitlab.sim.engines.compiled.link_wheel import has_arrivals, next_arrival_tick, sort_by_precedence, take_due_links
from flitlab.sim.engines.compiled.pool import NONE, doubled
from flitlab.sim.engines.compiled.ranks import execution_of, has_events, is_done, next_program_tick
from flitlab.sim.engines.compiled.spray.hosts import (
    begin_flow,
    check_probe,
    check_timeout,
    deliver,
    pull,
    settle_nic,
)
from flitlab.sim.engines.compiled.spray.links import (
    accept,
    break_link,
    change_link,
    is_response,
    is_untrimmed,
    settle,
    take_first_in_flight,
)
from flitlab.sim.engines.compiled.spray.messages import make_spray_program
from flitlab.sim.engines.compiled.spray.prefetching import prefetch_arrival, prefetch_packet, prefetch_queues
from flitlab.sim.engines.compiled.spray.program import run_program
from flitlab.sim.engines.compiled.spray.state import (
    ACCEPTED,
    BUSY_TICKS,
    END_NODE,
    ENTROPY,
    FLOW,
    HOP,
    HOST,
    KIND,
    KIND_BITS,
    MARKED,
    MAX_DATA_BYTES,
    PACE_TIMER,
    POOL,
    PROBE_TIMER,
    PULL_TIMER,
    SERVICE_END,
    SERVING,
    SETTLE_TIMER,
    SIZE,
    TIMEOUT_TIMER,
    TRACE,
    TRACED,
    build,
    longer_trace,
)
from flitlab.sim.engines.compiled.timers import pop_timer
from flitlab.sim.engines.spray.base import Counters, Trace, are_finished, check_lossless, flow_table, program_status

_LOW, _ONE = np.int64(0xFFFFFFFF), np.int64(1)

_PREFETCH_DISTANCE, _NEAR_PREFETCH_DISTANCE = 6, 2
"""Arrivals by which prefetching is ahead: of what a packet refers to, and of what that refers to."""


@inline
def _choose_link(const, routing, state, switch, packet, now):
    """Choose the next link of a packet at a switch that routes by the lengths of its queues."""
    record, switches, first, end = (
        state.packet[packet],
        routing.switches,
        routing.out_start[switch],
        routing.out_start[switch + 1],
    )
    for link in range(first, end):
        if now - switches.level_at[link] > switches.fresh:
            settle(const, state, link, now)
    kind, hop, entropy = record[KIND], np.int64(record[HOP]), np.int64(record[ENTROPY])
    key, dst_switch = flow_key(np.int64(record[FLOW]), is_response(kind)), routing.host_switch[np.int64(record[HOST])]
    data = np.int64(record[SIZE]) if is_untrimmed(kind) else np.int64(0)
    return first + chosen_port(
        routing.routes, routing.built, routing.moved, routing.salts, switches, routing.out_start, switch, dst_switch,
        hop, key, entropy,
        data, now,
    )  # fmt: skip


@inline
def _arrive(const, routing, state, i, now):
    """Process the arrival of the first packet of the i-th link of the tick."""
    link = state.members[i] & _LOW
    end = const.fixed[link, END_NODE]
    if link >= const.inject and link < const.eject:
        settle_nic(const, state, link - const.inject, now)
    else:
        settle(const, state, link, now)
    packet = take_first_in_flight(const, state, link, now)
    if link >= const.eject:
        settle_nic(const, state, end, now)
        deliver(const, state, end, packet, now)
        return
    next_link = state.out_link[i]
    if next_link == NONE:
        next_link = _choose_link(const, routing, state, end, packet, now)
    accept(const, state, next_link, packet, now)


@device_function
def _expire_timer(const, state, key, now):
    """Process an expired timer."""
    kind, index = key >> const.index_bits & ((_ONE << KIND_BITS) - 1), key & ((_ONE << const.index_bits) - 1)
    host = index if kind >= PULL_TIMER and kind != PROBE_TIMER else const.hosts_of_flow[index, 0]
    settle_nic(const, state, host, now)
    if kind == TIMEOUT_TIMER:
        check_timeout(const, state, host, index, now)
    elif kind == PULL_TIMER:
        pull(const, state, host, now)
    elif kind == PROBE_TIMER:
        check_probe(const, state, host, index, now)
    elif kind != SETTLE_TIMER:
        begin_flow(const, state, host, index, kind == PACE_TIMER, now)


@device_function
def _settle_all(const, state, now):
    """Settle all links and interfaces: account for what their servers have done up to and in a tick."""
    for link in range(const.links):
        if link >= const.inject and link < const.eject:
            settle_nic(const, state, link - const.inject, now)
        else:
            settle(const, state, link, now)


@njit
def advance(const, routing, state, tick, until):
    """Simulate the ticks from ``tick`` to ``until`` - 1.

    Returns the tick reached: an earlier one, with timers yet to expire, if an array has to grow first
    (``state.growth_needed``).

    Parameters
    ----------
    routing: data by which switches route.
    tick, until: int64.
    """
    count_at, shift = len(state.timers) - 1, const.index_bits + KIND_BITS
    while True:
        next_timer = state.timers[0] >> shift if state.timers[count_at] > 0 else until
        tick = next_arrival_tick(const, state, tick, next_program_tick(state.program, min(next_timer, until)))
        if tick >= until:
            break
        if has_arrivals(const, state, tick):
            count = take_due_links(const, state, tick)
            sort_by_precedence(state.members, state.scratch, count, const.rules.seed, tick)
            for i in range(count):
                prefetch_packet(state, i)
            for i in range(min(count, _PREFETCH_DISTANCE)):
                prefetch_arrival(const, routing, state, i)
            for i in range(count):
                if i + _PREFETCH_DISTANCE < count:
                    prefetch_arrival(const, routing, state, i + _PREFETCH_DISTANCE)
                if i + _NEAR_PREFETCH_DISTANCE < count:
                    prefetch_queues(const, state, i + _NEAR_PREFETCH_DISTANCE)
                _arrive(const, routing, state, i, tick)
        while state.timers[count_at] > 0 and state.timers[0] >> shift == tick:
            if state.free[len(state.free) - 1] < const.reserve:
                break
            _expire_timer(const, state, pop_timer(state.timers), tick)
        if state.free[len(state.free) - 1] < const.reserve:
            state.growth_needed[POOL] = 1
        if state.growth_needed[POOL] | state.growth_needed[TRACE]:
            return tick
        run_program(state.program, const, state, tick)
        tick += 1
    _settle_all(const, state, until - 1)
    return until


class CompiledSpray:
    """A compiled simulation of sprayed packets.

    See :class:`flitlab.sim.engines.spray.base.SprayApplicationRun`.
    """

    def __init__(self, session: SpraySession, trace: bool = False):
        self.session = session
        self._program: Any = make_spray_program(session)
        self._constants, self._state, self._routing = build(session, trace, self._program)
        self._changes = list(session.changes)
        self._tick = 0

    @property
    def latest(self) -> int:
        """The last tick that a run may reach."""
        return self._constants.latest

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``, with the link events and route changes of the session.

        Raises
        ------
        OverflowError
            Timers do not reach so far.
        """
        while self._changes and self._changes[0].tick < until:
            change = self._changes.pop(0)
            self._run(change.tick)
            self._apply(change)
        self._run(until)

    def _apply(self, change: FabricChange) -> None:
        constants, state, routing = self._constants, self._state, self._routing
        for link in change.broken.tolist():
            break_link(constants, state, link, change.tick)
        for link, ratio, capacity, low, high in np.column_stack([change.other, *change.settings]).tolist():
            change_link(constants, state, link, ratio, capacity, low, high, change.tick)
        routing.switches.queue_bytes[change.other] = change.settings.queue_bytes
        if change.routes is not None:
            self._routing = routing._replace(routes=change.routes, moved=change.moved)

    def _run(self, until: int) -> None:
        if until > self.latest:
            raise OverflowError(f"a run may take at most {self.latest} ticks, the range of timers; simulate less time")
        while self._tick < until:
            self._tick = advance(self._constants, self._routing, self._state, self._tick, until)
            for flag, grow in ((POOL, doubled), (TRACE, longer_trace)):
                if self._state.growth_needed[flag]:
                    self._state = grow(self._state)
                    self._state.growth_needed[flag] = 0
        if self._program is not None and not self.session.rules.acknowledges:
            check_lossless(int(self._state.dropped.sum()))

    def counters(self) -> Counters:
        state = self._state
        flows = flow_table(self.session, state.senders, state.receivers)
        link = state.link
        links = [link[:, ACCEPTED], *state.dropped.T, link[:, MARKED], link[:, MAX_DATA_BYTES], link[:, BUSY_TICKS]]
        return Counters(self._tick, flows, np.stack(links, axis=1))

    def ended(self) -> bool:
        state = self._state
        return are_finished(self.session, state.senders, state.receivers)

    def done(self) -> bool:
        return is_done(self._program.ranks)

    def program_status(self) -> ProgramStatus:
        state = self._state
        return program_status(self.session, state.senders, state.receivers, self._tick, has_events(self._program.ranks))

    def execution(self) -> Execution:
        return execution_of(self._program.ranks)

    def carried(self) -> Ints:
        link = self._state.link[: self._constants.inject]
        unsent_ticks = np.where(link[:, SERVING] == NONE, 0, np.maximum(0, link[:, SERVICE_END] - self._tick))
        carried: Ints = link[:, BUSY_TICKS] - unsent_ticks
        return carried

    def trace(self) -> Trace:
        if not len(self._state.trace):
            raise ValueError("the run was started without trace=True")
        return Trace(*self._state.trace[: self._state.growth_needed[TRACED]].T.copy())
