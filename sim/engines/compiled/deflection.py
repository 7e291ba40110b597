# SPDX-License-Identifier: Apache-2.0
"""Deflection (hot-potato) routing, compiled.

A switch is evaluated when a packet becomes eligible, an output falls free, or a host may inject: each sets a bit in a
timing wheel. It has two lists of packets: those whose header is being read, in order of arrival, and the eligible ones,
in order of rank.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.rules.occupancy import occupancy_bound
from flitlab.models.rules.order import outranks
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.port_sets import PortSets, pack_ports, ports_towards, set_offset
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import pick, route_word
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    CalendarQueue,
    entry_in,
    make_calendar_queue,
    prefetch_next_block,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.memory import MIN_BATCH, PREFETCH_BATCH, aligned_records, prefetch, unlikely
from flitlab.sim.engines.compiled.messages import Program, make_program, next_active_tick, record_injection
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import (
    HOST,
    NONE,
    PACKET,
    TICK_LIMIT,
    Net,
    RunCounters,
    count_flits,
    deliver_packets,
    draw_first_packets,
    ejection_channel,
    inject_packet,
    log_is_full,
    make_counters,
    make_net,
    run_program,
)
from flitlab.sim.engines.compiled.timing_wheel import (
    TimingWheel,
    drain,
    make_timing_wheel,
    schedule,
    schedule_all,
    wheel_ticks,
)

# A switch. Before next_read no further header has been read, and before next_sender no host can inject that could not
# already; so most evaluations touch neither packets nor hosts.
_SWITCH_RECORD = np.dtype(
    [
        ("resident", np.uint32),  # packets in the switch
        ("inbound", np.uint32),  # packets in flight from its hosts
        ("reading", np.uint32),  # first packet whose header is being read, or NONE
        ("last_reading", np.uint32),
        ("ranked", np.uint32),  # eligible packets
        ("next_host", np.uint32),  # first in the round-robin order of hosts
        ("next_read", np.uint32),  # tick
        ("next_sender", np.uint32),  # tick
    ]
)

# An eligible packet.
_RANKED = np.dtype(
    [
        ("ports", np.uint64),  # ports on shortest paths, a bit each; none at the destination switch
        ("packet", np.uint32),
        ("output", np.uint32),  # ejecting output at the destination switch, else NONE
    ]
)


class DeflectionConstants(NamedTuple):
    """Constants of a run of deflection routing; names that end with ``_ticks`` are times in ticks."""

    net: Net
    hold_packets: int  # packets that a switch holds before it deflects some to any free output
    slot: int  # decisions are made at multiples of this tick
    flits: int  # of every packet
    header_ticks: int
    switch_ticks: int
    link_ticks: int
    injection_ticks: int
    ejection_ticks: int
    bound: Ints  # int64 [switches]: most packets that can be resident
    routes: PortSets  # ports on shortest paths
    out_start: Ints  # int64 [switches + 1]: first channel of each switch
    dst: Ints  # int64 [channels]: switch at the end of each
    delay: Ints  # int64 [channels]: ticks on top of ``link_ticks``
    access: Ints  # int64 [hosts]: ticks on top of ``injection_ticks`` and ``ejection_ticks``
    host_start: Ints  # int64 [switches + 1]: first host of each switch


class DeflectionState(NamedTuple):
    """State of a run of deflection routing: all that changes."""

    pool: Pool
    switch: np.ndarray  # _SWITCH_RECORD [switches]
    ranked: np.ndarray  # _RANKED [switches, bound]: eligible packets, in order of rank
    busy: np.ndarray  # uint32 [outputs]: tick at which the output is free again
    host: np.ndarray  # HOST [hosts]
    host_scheduled_at: Ints  # int64 [hosts]: tick for which the host has scheduled its switch
    arriving: CalendarQueue  # packets, by the tick at which their head arrives
    ejecting: CalendarQueue  # packets, by the tick at which their tail is delivered
    members: Words  # uint32 [switches + 1]: scratch, the switches of a tick
    switch_wheel: TimingWheel  # switches to evaluate, by tick
    program: Program | None
    counters: RunCounters


def make_constants_and_state(
    scenario: Scenario[Deflection], arrivals: Arrivals, packets: Packets, seed: int
) -> tuple[DeflectionConstants, DeflectionState]:
    """Make the constants and the state of a run at tick 0.

    Parameters
    ----------
    scenario: topology, routes, traffic and switching parameters.
    arrivals: when hosts create packets.
    packets: lengths in flits, and destinations, of these packets.
    seed: of all draws.
    """
    topology, model = scenario.topology, scenario.switching
    ports, flits, hosts = make_ports(topology), int(packets.flits[0]), topology.hosts
    access_delay, slowest_access = topology.access_delay, np.zeros(topology.switches, np.int64)
    np.maximum.at(slowest_access, topology.host_switch, access_delay)
    each = zip(topology.in_degree.tolist(), topology.host_count.tolist(), slowest_access.tolist(), strict=True)
    bound = np.array(
        [
            occupancy_bound(
                model.hold_packets, d, hosts_here, flits, model.header, model.injection + slow, scenario.events
            )
            for d, hosts_here, slow in each
        ],
        np.int64,
    )
    slowest = int(topology.delay.max(initial=0)) + model.link
    at_hosts = max(model.ejection, model.injection) + int(access_delay.max(initial=0))
    horizon = 2 * flits + model.switch + max(slowest, at_hosts, model.header) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    constants = DeflectionConstants(
        net=make_net(topology, ports, arrivals, packets, seed),
        hold_packets=model.hold_packets,
        slot=flits if model.slotted else 1,
        flits=flits,
        header_ticks=model.header,
        switch_ticks=model.switch,
        link_ticks=model.link,
        injection_ticks=model.injection,
        ejection_ticks=model.ejection,
        bound=bound,
        routes=pack_ports(scenario.routes.ports),
        out_start=topology.out_start,
        dst=topology.dst,
        delay=topology.delay,
        access=access_delay,
        host_start=topology.host_start,
    )
    on_channel = (model.switch + slowest) // flits + 2
    at_host = (flits + model.switch + model.ejection + model.injection + 2 * access_delay) // flits + 3
    records = int(bound.sum()) + topology.channels * on_channel + int(at_host.sum())
    switch_records = aligned_records(topology.switches, _SWITCH_RECORD)
    switch_records["reading"] = switch_records["last_reading"] = NONE
    state = DeflectionState(
        pool=make_pool(records, PACKET),
        switch=switch_records,
        ranked=np.zeros((topology.switches, int(bound.max()) + 1), _RANKED),
        busy=np.zeros(len(ports.out_input), np.uint32),
        host=aligned_records(hosts, HOST),
        host_scheduled_at=np.full(hosts, -1, np.int64),
        arriving=make_calendar_queue(ticks, records),
        ejecting=make_calendar_queue(ticks, records),
        members=np.zeros(topology.switches + 1, np.uint32),
        switch_wheel=make_timing_wheel(topology.switches, wheel_ticks(ticks, topology.switches, typical_gap(arrivals))),
        program=make_program(scenario),
        counters=make_counters(topology),
    )
    draw_first_packets(constants, state)
    schedule_all(state.switch_wheel, np.arange(topology.switches), 0)
    return constants, state


@inline
def _schedule_switch(const, state, switch, tick):
    """Schedule the evaluation of a switch at ``tick``, or at the next slot boundary."""
    if const.slot > 1:
        tick = (tick + const.slot - 1) // const.slot * const.slot
    schedule(state.switch_wheel, switch, tick)


@inline
def _receive_packet(const, state, packet, tick):
    """Receive a packet whose head has arrived: it is resident, and eligible once its header is read."""
    record = state.pool.packet[packet]
    switch = np.int64(record.switch)
    if record.hop == 0:
        state.switch[switch].inbound -= 1
    resident = state.switch[switch].resident + 1
    state.switch[switch].resident = resident
    state.counters.scalars[Scalar.OCCUPANCY_MAX] = max(state.counters.scalars[Scalar.OCCUPANCY_MAX], resident)
    record.eligible_at = tick + const.header_ticks
    record.next = NONE
    if state.switch[switch].reading == NONE:
        state.switch[switch].reading = packet
        state.switch[switch].next_read = tick + const.header_ticks
    else:
        state.pool.packet[state.switch[switch].last_reading].next = packet
    state.switch[switch].last_reading = packet
    _schedule_switch(const, state, switch, tick + const.header_ticks)
    if resident > const.hold_packets:
        _schedule_switch(const, state, switch, tick)


@inline
def set_ranked(const, state, switch, position, packet):
    """Write a packet, with its allowed ports, to a position among the eligible packets of a switch.

    Parameters
    ----------
    switch: int64.
    position: int64, in order of rank.
    packet: int64.
    """
    dst_host, ranked = state.pool.packet[packet].dst_host, state.ranked[switch, position]
    dst_switch = const.net.host_switch[dst_host]
    ranked.packet = packet
    ranked.ports = np.uint64(0) if dst_switch == switch else ports_towards(const.routes, dst_switch, switch)
    ranked.output = const.net.ports.eject[dst_host] if dst_switch == switch else NONE


@inline
def _copy_ranked(state, switch, position, ranked):
    """Copy the record of an eligible packet to another position."""
    copy = state.ranked[switch, position]
    copy.packet = ranked.packet
    copy.ports = ranked.ports
    copy.output = ranked.output


@inline
def _insert_ranked(const, state, switch, packet):
    """Insert a packet among the eligible packets of a switch, in order of rank."""
    record = state.pool.packet[packet]
    hops, created_at = record.hop, record.created_at
    identity = np.int64(record.sequence) * const.net.hosts + record.src_host
    i = state.switch[switch].ranked
    state.switch[switch].ranked = i + 1
    while i > 0:
        predecessor = state.ranked[switch, i - 1]
        other = state.pool.packet[predecessor.packet]
        other_identity = np.int64(other.sequence) * const.net.hosts + other.src_host
        if outranks(other.hop, other.created_at, other_identity, hops, created_at, identity):
            break
        _copy_ranked(state, switch, i, predecessor)
        i -= 1
    set_ranked(const, state, switch, i, packet)


@inline
def _rank_read_headers(const, state, switch, tick):
    """Rank the packets of a switch whose header has been read by ``tick``."""
    switch_record = state.switch[switch]
    if switch_record.next_read > tick:
        return
    packet, eligible = np.int64(switch_record.reading), TICK_LIMIT
    while packet != NONE:
        eligible = np.int64(state.pool.packet[packet].eligible_at)
        if eligible > tick:
            break
        next_packet = np.int64(state.pool.packet[packet].next)
        _insert_ranked(const, state, switch, packet)
        packet = next_packet
    switch_record.reading = packet
    switch_record.next_read = TICK_LIMIT if packet == NONE else eligible


@inline
def _draw_port(const, state, packet, ports):
    """Draw one of a non-empty set of ports, uint64, a bit each, for the packet's decision at its switch."""
    record = state.pool.packet[packet]
    if popcount(ports) == 1:
        return lowest(ports)
    src_host, sequence = np.int64(record.src_host), np.int64(record.sequence)
    return pick(ports, route_word(const.net.seed, src_host, sequence, np.int64(record.hop)))


@inline
def _hold_output(const, state, switch, output, tick):
    """Occupy an output for a packet, and schedule the switch for when it falls free."""
    state.busy[output] = tick + const.flits
    state.switch[switch].resident -= 1
    state.counters.scalars[Scalar.GRANTS] += 1
    _schedule_switch(const, state, switch, tick + const.flits)


@inline
def _forward(const, state, switch, packet, minimal, port, tick):
    """Send a packet through a network port; minimal: ports on its shortest paths, uint64, a bit each."""
    record = state.pool.packet[packet]
    _hold_output(const, state, switch, const.net.ports.out_base[switch] + port, tick)
    channel = const.out_start[switch] + port
    if not (minimal >> np.uint64(port)) & np.uint64(1):
        record.deflections += 1
    record.hop += 1
    record.switch = const.dst[channel]
    record.output = const.net.ports.out_base[switch] + port
    state.counters.channel_flits[channel] += const.flits
    count_flits(state.counters.channels, channel, const.flits)
    schedule_event(state.arriving, packet, tick + const.switch_ticks + const.link_ticks + const.delay[channel])


@inline
def _eject(const, state, switch, packet, output, tick):
    """Eject a packet if the ejection channel is free, and tell whether it was."""
    if state.busy[output] > tick:
        return False
    _hold_output(const, state, switch, output, tick)
    dst_host = state.pool.packet[packet].dst_host
    count_flits(state.counters.channels, ejection_channel(const, state, dst_host), const.flits)
    access_delay = const.access[dst_host]
    schedule_event(
        state.ejecting, packet, tick + const.flits - 1 + const.switch_ticks + const.ejection_ticks + access_delay
    )
    return True


@inline
def _free_ports(const, state, switch, tick):
    """Return the free network ports of a switch, uint64, a bit each."""
    free = np.uint64(0)
    base = const.net.ports.out_base[switch]
    for port in range(const.net.ports.network_outs[switch]):
        if state.busy[base + port] <= tick:
            free |= np.uint64(1) << np.uint64(port)
    return free


@inline
def _allocate(const, state, switch, tick):
    """Allocate the outputs of a switch in one tick."""
    _rank_read_headers(const, state, switch, tick)
    if state.switch[switch].ranked > 0:
        _send_ranked(const, state, switch, tick)
    if state.switch[switch].next_sender <= tick:
        _inject_from_hosts(const, state, switch, tick)


@inline
def _send_ranked(const, state, switch, tick):
    """Send the eligible packets of a switch, in order of rank, through free outputs."""
    switch_record = state.switch[switch]
    free = _free_ports(const, state, switch, tick)
    remaining = 0
    for i in range(np.int64(switch_record.ranked)):
        ranked = state.ranked[switch, i]
        packet, ports = np.int64(ranked.packet), free & ranked.ports
        if ports:
            port = _draw_port(const, state, packet, ports)
            free &= ~(np.uint64(1) << np.uint64(port))
            _forward(const, state, switch, packet, ranked.ports, port, tick)
        elif ranked.output == NONE or not _eject(const, state, switch, packet, ranked.output, tick):
            _copy_ranked(state, switch, remaining, ranked)
            remaining += 1
    while switch_record.resident > const.hold_packets and free and remaining > 0:
        remaining -= 1
        ranked = state.ranked[switch, remaining]
        packet = np.int64(ranked.packet)
        port = _draw_port(const, state, packet, free)
        free &= ~(np.uint64(1) << np.uint64(port))
        _forward(const, state, switch, packet, ranked.ports, port, tick)
    switch_record.ranked = remaining


@inline
def _inject(const, state, switch, host, tick):
    """Inject a packet of a host if it has one, and the switch has space for it."""
    switch_record = state.switch[switch]
    if max(state.host[host].created_at, state.host[host].free_at) > tick:
        if state.host_scheduled_at[host] <= tick:
            schedule_host(const, state, host, tick)
        return
    if switch_record.resident + switch_record.inbound >= const.hold_packets:
        return
    packet = inject_packet(const, state, host, tick)
    record_injection(state.program, state.pool.packet[packet].send, tick + const.flits)
    switch_record.inbound += 1
    next_host = host + 1 - const.host_start[switch]
    switch_record.next_host = next_host if host + 1 < const.host_start[switch + 1] else 0
    state.pool.packet[packet].switch = switch
    schedule_event(state.arriving, packet, tick + const.injection_ticks + const.access[host])
    schedule_host(const, state, host, tick)


@inline
def _next_evaluation(state, host, tick):
    """Return the next tick to evaluate a host at: ``tick`` itself if it lacks only space in the switch."""
    if max(state.host[host].created_at, state.host[host].free_at) <= tick:
        return tick
    return state.host_scheduled_at[host] if state.host_scheduled_at[host] > tick else TICK_LIMIT


@inline
def _inject_from_hosts(const, state, switch, tick):
    """Let the hosts of a switch inject, round-robin, while the switch has space."""
    first_host, count = const.host_start[switch], const.host_start[switch + 1] - const.host_start[switch]
    host, next_evaluation = first_host + np.int64(state.switch[switch].next_host), TICK_LIMIT
    for _ in range(count):
        _inject(const, state, switch, host, tick)
        next_evaluation = min(next_evaluation, _next_evaluation(state, host, tick))
        host = host + 1 if host + 1 < first_host + count else first_host
    state.switch[switch].next_sender = next_evaluation


@inline
def schedule_host(const, state, host, tick):
    """Schedule a host's switch for when the host may inject its next packet, or earlier beyond the horizon."""
    ready = max(state.host[host].created_at, state.host[host].free_at, tick)
    if ready < TICK_LIMIT:
        switch = np.int64(const.net.host_switch[host])
        state.host_scheduled_at[host] = min(ready, tick + state.switch_wheel.mask - const.slot)
        state.switch[switch].next_sender = min(
            np.int64(state.switch[switch].next_sender), state.host_scheduled_at[host]
        )
        _schedule_switch(const, state, switch, state.host_scheduled_at[host])


@device_function
def _prefetch_switches(arriving, pool, switch_records, block):
    """Prefetch the packets of a full block, and the records of their switches."""
    for i in range(BLOCK_ENTRIES):
        prefetch(pool.packet, entry_in(arriving, block, i))
    for i in range(BLOCK_ENTRIES):
        prefetch(switch_records, pool.packet[entry_in(arriving, block, i)].switch)


@inline
def _receive_packets(const, state, tick):
    """Receive the packets whose head arrives at ``tick``.

    Returns False if a switch exceeds :func:`~flitlab.models.rules.occupancy.occupancy_bound`.
    """
    arriving, within_bound = state.arriving, True
    block, count = take_bucket(arriving, tick)
    while block != NONE:
        prefetch_next_block(arriving, block)
        if unlikely(count == BLOCK_ENTRIES):
            _prefetch_switches(arriving, state.pool, state.switch, block)
        for i in range(count):
            packet = entry_in(arriving, block, i)
            _receive_packet(const, state, packet, tick)
            switch = state.pool.packet[packet].switch
            within_bound &= state.switch[switch].resident <= const.bound[switch]
        state.counters.scalars[Scalar.EVENTS] += count
        block, count = release_block(arriving, block), BLOCK_ENTRIES
    return within_bound


@device_function
def _prefetch_packets(net, routes, state, switches):
    """Prefetch what some switches need for allocation: their packets, and the ports of the first ones."""
    pool, switch_records, ranked, busy = state.pool, state.switch, state.ranked, state.busy
    for switch in switches:
        prefetch(switch_records, switch)
        prefetch(ranked, switch)
        prefetch(busy, net.ports.out_base[switch])
    for switch in switches:
        if switch_records[switch].reading != NONE:
            prefetch(pool.packet, switch_records[switch].reading)
    for switch in switches:
        if switch_records[switch].reading != NONE:
            dst_switch = np.int64(net.host_switch[pool.packet[switch_records[switch].reading].dst_host])
            prefetch(routes.bytes, set_offset(routes, dst_switch, switch))
        if switch_records[switch].ranked > 0:
            prefetch(pool.packet, ranked[switch, 0].packet)


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns
    -------
    The tick reached: less than ``until`` if the log is full; -1 if a switch holds more packets than
    :func:`~flitlab.models.rules.occupancy.occupancy_bound` allows, which is a bug.
    """
    tick = now
    while tick < until:
        if log_is_full(const, state):
            return tick
        if not _receive_packets(const, state, tick):
            return -1
        deliver_packets(const, state, tick)
        run_program(state.program, const, state, tick, schedule_host)
        count = drain(state.switch_wheel, tick, state.members)
        for begin in range(0, count, PREFETCH_BATCH):
            end = min(count, begin + PREFETCH_BATCH)
            if unlikely(count > MIN_BATCH):
                _prefetch_packets(const.net, const.routes, state, state.members[begin:end])
            for i in range(begin, end):
                _allocate(const, state, np.int64(state.members[i]), tick)
        state.counters.scalars[Scalar.EVENTS] += count
        tick = next_active_tick(state.program, state, tick, until, state.switch_wheel.mask)
    return tick


def total_grants(state: DeflectionState) -> int:
    """Return the number of grants so far: a packet counts at every hop, and again when it is ejected."""
    return int(state.counters.scalars[Scalar.GRANTS])


def has_deadlocked_packet(const: DeflectionConstants, state: DeflectionState, now: int) -> bool:
    """Return False: with deflection, no packet waits for a buffer."""
    return False
