# SPDX-License-Identifier: Apache-2.0
"""Mode spray, compiled.

Order within a tick: ends of service; arrivals from links, in an order drawn for every tick; timers; the program.
Decisions of hosts and switches are in :mod:`flitlab.models.rules.spray`.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import device_function, inline, njit
from flitlab.models.rules.spray.layout import Credit
from flitlab.models.rules.spray.ports import chosen_port, flow_key
from flitlab.models.transport.fabric import FabricChange, SpraySession
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.compiled.link_wheel import has_arrivals, next_arrival_tick, sort_by_precedence, take_due_links
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.ranks import OUTBOX, has_events, next_event, next_program_tick, process_events
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
    settle,
    take_first,
    take_first_in_flight,
)
from flitlab.sim.engines.compiled.spray.lossless import (
    LinkEvent,
    causes_of,
    check_event_space,
    has_no_events,
    is_stale,
    release_event,
    take_events,
    with_more_events,
)
from flitlab.sim.engines.compiled.spray.lossless_queues import (
    accept_lossless,
    break_lossless_link,
    end_lossless_service,
    expire_watchdog,
    held_ticks,
    queues_of_ports,
    receive_storm,
    switch_server,
)
from flitlab.sim.engines.compiled.spray.messages import flow_of, make_spray_program
from flitlab.sim.engines.compiled.spray.prefetching import (
    prefetch_arrival,
    prefetch_events,
    prefetch_packet,
    prefetch_queues,
)
from flitlab.sim.engines.compiled.spray.rdma import cnps_of, with_more_records
from flitlab.sim.engines.compiled.spray.rdma_hosts import deliver_rdma, expire_rdma
from flitlab.sim.engines.compiled.spray.state import KIND_BITS, Fifo, Timer, build, is_response, is_untrimmed
from flitlab.sim.engines.compiled.transport import (
    NEAR_PREFETCH_DISTANCE,
    PREFETCH_DISTANCE,
    CompiledTransport,
    Growth,
    pop_timer,
    rules_of,
)
from flitlab.sim.engines.transport.spray import (
    Counters,
    are_finished,
    deadlock_cycle,
    flow_table,
    later_changes,
    pause_table,
    program_status,
)

_LOW, _ONE = np.int64(0xFFFFFFFF), np.int64(1)


@inline
def _choose_link(const, routing, state, switch, packet, now):
    """Choose the next link of a packet at a switch that routes by the lengths of its queues."""
    record, switches, first = state.packet[packet], routing.switches, routing.out_start[switch]
    for link in range(first, routing.out_start[switch + 1]):
        if now - switches.level_at[link] > switches.choice.fresh:
            settle(const, state, link, now)
    kind, hop, entropy = record.kind, np.int64(record.hop), np.int64(record.entropy)
    key, dst_switch = flow_key(np.int64(record.flow), is_response(kind)), routing.host_switch[np.int64(record.host)]
    data = np.int64(record.size) if is_untrimmed(kind) else np.int64(0)
    return first + chosen_port(routing, switch, dst_switch, hop, key, entropy, data, now)


@inline
def _arrive(const, routing, state, i, now):
    """Process the arrival of the first packet of the i-th link of the tick."""
    link = state.members[i] & _LOW
    end = const.fixed[link].end_node
    if link >= const.inject and link < const.eject:
        settle_nic(const, state, link - const.inject, now)
    else:
        settle(const, state, link, now)
    packet = take_first_in_flight(const, state, link, now)
    if link >= const.eject:
        settle_nic(const, state, end, now)
        _deliver(state.rdma, const, state, end, packet, now)
        return
    next_link = state.out_link[i]
    if next_link == NONE:
        next_link = _choose_link(const, routing, state, end, packet, now)
    accept(const, state, next_link, packet, now)


@inline
def _arrive_lossless(lossless, const, routing, state, link, now):
    """Process the arrival of a link's first packet in flight."""
    state.members[0] = link
    prefetch_arrival(const, routing, state, 0)  # chooses the next link
    end, packet = const.fixed[link].end_node, take_first(state, state.link[link], Fifo.IN_FLIGHT)
    if link >= const.eject:
        _deliver(state.rdma, const, state, end, packet, now)
        return
    next_link = state.out_link[0]
    if next_link == NONE:
        next_link = _choose_link(const, routing, state, end, packet, now)
    accept_lossless(lossless, const, state, next_link, packet, link, now)


@device_function
def _process_event(lossless, const, routing, state, link, kind, now):
    """Process an event of lossless queues; link: of PAUSE the port."""
    if is_stale(lossless, link, kind):
        return
    if kind == LinkEvent.ARRIVAL:
        _arrive_lossless(lossless, const, routing, state, link, now)
    elif kind == LinkEvent.SERVICE_END:
        end_lossless_service(lossless, const, state, link, now)
    else:
        switch_server(lossless, const, state, link, now)


@inline
def _process_arrivals(lossless, const, routing, state, tick):
    """Process the arrivals of a tick, and all other events of lossless queues."""
    if lossless is not None:
        entry = take_events(const, state, tick)
        prefetch_events(lossless, const, state, tick)
        while entry != NONE:
            link, kind, entry = release_event(lossless, entry)
            _process_event(lossless, const, routing, state, link, kind, tick)
        return
    count = take_due_links(const, state, tick)
    sort_by_precedence(state.members, state.scratch, count, const.rules.seed, tick)
    for i in range(count):
        prefetch_packet(state, i)
    for i in range(min(count, PREFETCH_DISTANCE)):
        prefetch_arrival(const, routing, state, i)
    for i in range(count):
        if i + PREFETCH_DISTANCE < count:
            prefetch_arrival(const, routing, state, i + PREFETCH_DISTANCE)
        if i + NEAR_PREFETCH_DISTANCE < count:
            prefetch_queues(const, state, i + NEAR_PREFETCH_DISTANCE)
        _arrive(const, routing, state, i, tick)


@inline
def _deliver(rdma, const, state, host, packet, now):
    """Deliver a packet to a host."""
    if rdma is not None:
        deliver_rdma(rdma, const, state, host, packet, now)
    else:
        deliver(const, state, host, packet, now)


@device_function
def _expire_timer(const, state, key, now):
    """Process an expired timer."""
    kind, index = key >> const.index_bits & ((_ONE << KIND_BITS) - 1), key & ((_ONE << const.index_bits) - 1)
    if expire_watchdog(state.lossless, const, state, kind, index, now):
        return
    host = index if kind == Timer.PULL or kind == Timer.SETTLE else const.hosts_of_flow[index, 0]
    settle_nic(const, state, host, now)
    _expire(state.rdma, const, state, kind, host, index, now)


@inline
def _expire(rdma, const, state, kind, host, index, now):
    """Process an expired timer of a flow or host; the interface of the host is settled."""
    if rdma is not None:
        if kind != Timer.SETTLE:
            expire_rdma(rdma, const, state, kind, index, now)
        return
    if kind == Timer.TIMEOUT:
        check_timeout(const, state, host, index, now)
    elif kind == Timer.PULL:
        pull(const, state, host, now)
    elif kind == Timer.PROBE:
        check_probe(const, state, host, index, now)
    elif kind != Timer.SETTLE:
        begin_flow(const, state, host, index, kind == Timer.PACE, now)


@device_function
def _settle_all(const, state, now):
    """Settle all links and interfaces: account for what their servers have done up to and in a tick."""
    for link in range(const.links):
        if link >= const.inject and link < const.eject:
            settle_nic(const, state, link - const.inject, now)
        else:
            settle(const, state, link, now)


@inline
def _run_program(program, const, state, now):
    """Process the program's events of a tick, and start the messages of its outbox."""
    if program is not None and next_event(program.ranks) <= now:
        process_events(program.ranks, now)
        totals = program.ranks.totals
        for k in range(totals[OUTBOX]):
            flow = flow_of(program, program.ranks.outbox[k])
            host = const.hosts_of_flow[flow, 0]
            settle_nic(const, state, host, now)
            begin_flow(const, state, host, flow, rules_of(const, flow).credit == Credit.PACED, now)
        totals[OUTBOX] = 0


@inline
def _all_ended(const, state, first):
    """Whether all flows have ended; ``first`` is as in :func:`advance`."""
    flow = first[0]
    if flow < 0:
        return False
    while flow < len(state.senders.seq):
        acknowledged = rules_of(const, flow).acknowledges != 0
        end = state.senders.seq[flow].finished if acknowledged else state.receivers.got[flow].complete
        if end < 0:
            break
        flow += 1
    first[0] = flow
    return flow == len(state.senders.seq)


@njit
def advance(const, routing, state, tick, until, first):
    """Simulate the ticks from ``tick`` to ``until`` - 1, or to that in which the last flow ends.

    Returns the tick reached: an earlier one, with timers yet to expire, if an array has to grow first
    (``state.growth_needed``).

    Parameters
    ----------
    routing: data by which switches route.
    tick, until: int64.
    first: int64 [1], all flows before it have ended, changed in place; -1: go on after the last flow.
    """
    count_at, shift, resumes = len(state.timers) - 1, const.index_bits + KIND_BITS, True
    while True:
        next_timer = state.timers[0] >> shift if state.timers[count_at] > 0 else until
        later = next_arrival_tick(const, state, tick, next_program_tick(state.program, min(next_timer, until)))
        if resumes and later > tick and _all_ended(const, state, first):  # in a tick after which an array grew
            until = tick + 1
            break
        resumes, tick = False, later
        if tick >= until:
            break
        if has_arrivals(const, state, tick):
            _process_arrivals(state.lossless, const, routing, state, tick)
        while state.timers[count_at] > 0 and state.timers[0] >> shift == tick:
            if state.free[len(state.free) - 1] < const.reserve:
                break
            _expire_timer(const, state, pop_timer(state.timers), tick)
        if state.free[len(state.free) - 1] < const.reserve:
            state.growth_needed[Growth.POOL] = 1
        check_event_space(state.lossless, state)
        if state.growth_needed[Growth.POOL] | state.growth_needed[Growth.TRACE] | state.growth_needed[Growth.EVENTS]:
            return tick
        _run_program(state.program, const, state, tick)
        tick += 1
        if _all_ended(const, state, first):
            until = tick
            break
    _settle_all(const, state, until - 1)
    return until


class CompiledSpray(CompiledTransport[SpraySession]):
    """A compiled simulation of sprayed packets (see :class:`flitlab.sim.engines.transport.spray.SprayRun`)."""

    grow: ClassVar = CompiledTransport.grow | {
        Growth.POOL: with_more_records, Growth.EVENTS: with_more_events
    }  # fmt: skip

    def __init__(self, session: SpraySession, trace: bool = False):
        program: Any = make_spray_program(session)
        constants, state, self._routing = build(session, trace, program)
        super().__init__(session, program, constants, state)
        self.latest = constants.latest
        self._first = np.full(1, -1)

    def advance_to_end(self, until: int) -> None:
        self._first[0] = 0
        self.advance(until)
        self._first[0] = -1

    def _has_ended(self) -> bool:
        return bool(self._first[0] == len(self.session.flows.source))

    def _simulate(self, until: int) -> int:
        tick: int = advance(self._constants, self._routing, self._state, self._tick, until, self._first)
        return tick

    def _apply(self, change: FabricChange) -> None:
        constants, state, routing = self._constants, self._state, self._routing
        if change.storm is not None:
            receive_storm(constants, state, *change.storm, change.tick)
        lossless, ports = state.lossless, self.session.ports
        for link in change.broken.tolist():
            (break_link if lossless is None else break_lossless_link)(constants, state, link, change.tick)
            if lossless is not None and lossless.watchdog is not None:
                ports_of_link = len(lossless.ports) // constants.links
                lossless.watchdog.servers.asked[link * ports_of_link : (link + 1) * ports_of_link] = 0
        for link, ratio, capacity, low, high in np.column_stack([change.other, *change.settings]).tolist():
            change_link(constants, state, link, ratio, capacity, low, high, change.tick)
            if ports is not None:
                lossless.mark_span[link] = ports.span(low, high)
        routing.switches.queue_bytes[change.other] = change.settings.queue_bytes
        if change.routes is not None:
            routes = routing.routes._replace(present=change.routes, moved=change.moved)
            self._routing = routing._replace(routes=routes)

    def _dropped(self) -> int:
        return sum(int(count.sum()) for count in self._drops_and_trims())

    def counters(self, causes: bool = True) -> Counters:
        state = self._state
        flows = flow_table(self.session, state.senders, state.receivers)
        link = state.link
        links = [link[name] for name in ("accepted", "marked", "max_data_bytes", "busy_ticks")]
        links[1:1] = self._drops_and_trims()
        most_paused = 0 if state.lossless is None else int(state.lossless.totals[1])
        links_table = np.stack(links, axis=1)
        counters = Counters(self._tick, flows, links_table, self.pauses(), cnps_of(state.rdma), most_paused)
        if not causes:
            return counters
        held = held_ticks(state, self._constants.inject, self._constants.eject, self._tick)
        return replace(counters, causes=causes_of(state.lossless, self._tick), held=held)

    def pauses(self) -> Ints | None:
        lossless = self._state.lossless
        return pause_table(None if lossless is None else lossless.ports, self._tick)

    def _drops_and_trims(self) -> list[Ints]:
        """Return the packets dropped, and trimmed, by each link: int64 [links] each."""
        return [self._state.dropped["drops"], self._state.dropped["trims"]]

    def ended(self) -> bool:
        state = self._state
        return are_finished(self.session, state.senders, state.receivers)

    def deadlock(self) -> tuple[int, ...]:
        state = self._state
        if state.lossless is None or state.lossless.watchdog is not None or not has_no_events(state.lossless):
            return ()
        if later_changes(self.session, self._tick):
            return ()
        paused = np.flatnonzero(state.lossless.ports.paused_at >= 0).tolist()
        waits: dict[int, set[int]] = {port: set() for port in paused}
        for port, first in enumerate(queues_of_ports(state)["first"][:, Fifo.DATA].tolist()):
            while first != NONE:
                waits.get(int(state.packet[first]["previous"]), set()).add(port)
                first = int(state.packet[first]["next"])
        return deadlock_cycle(waits)

    def program_status(self) -> ProgramStatus:
        state = self._state
        return program_status(self.session, state.senders, state.receivers, self._tick, has_events(self._program.ranks))

    def carried(self) -> Ints:
        link = self._state.link[: self._constants.inject]
        unsent_ticks = np.where(link["serving"] == NONE, 0, np.maximum(0, link["service_end"] - self._tick))
        carried: Ints = link["busy_ticks"] - unsent_ticks
        return carried
