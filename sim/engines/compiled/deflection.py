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
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.rules.deflect import occupancy_bound
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.port_sets import PortSets, ports_towards, set_offset
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import pick, route_word
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.calendar_queue import (
    CalendarQueue,
    calendar_ticks,
    make_calendar_queue,
    schedule_event,
)
from flitlab.sim.engines.compiled.hot_potato import (
    finish_reading,
    goes_before,
    make_constants,
    make_switches,
    receive_heads,
    schedule_host,
    schedule_switch,
    start_reading,
    switch_record,
)
from flitlab.sim.engines.compiled.invariants import Violation
from flitlab.sim.engines.compiled.memory import Batch, prefetch, unlikely
from flitlab.sim.engines.compiled.messages import Program, next_active_tick, record_injection
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.records import (
    NONE,
    Net,
    RunCounters,
    Tick,
    count_flits,
    deliver_packets,
    draw_first_packets,
    ejection_channel,
    inject_packet,
    log_is_full,
    make_common_state,
    run_program,
)
from flitlab.sim.engines.compiled.timing_wheel import (
    TimingWheel,
    drain,
    schedule_all,
)

# ranked: eligible packets. next_host: first in the round-robin order of hosts.
_SWITCH_RECORD = switch_record("ranked", "next_host")

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
    violated: Ints  # int64 [1]: a Violation, 0 if there is none
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
    ports, flits = make_ports(topology), int(packets.flits[0])
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
    ticks = calendar_ticks(horizon)
    constants = DeflectionConstants(
        **make_constants(scenario, ports, arrivals, packets, seed),
        hold_packets=model.hold_packets,
        slot=flits if model.slotted else 1,
        switch_ticks=model.switch,
        link_ticks=model.link,
        ejection_ticks=model.ejection,
        bound=bound,
        out_start=topology.out_start,
        delay=topology.delay,
        access=access_delay,
    )
    on_channel = (model.switch + slowest) // flits + 2
    at_host = (flits + model.switch + model.ejection + model.injection + 2 * access_delay) // flits + 3
    records = int(bound.sum()) + topology.channels * on_channel + int(at_host.sum())
    state = DeflectionState(
        **make_common_state(scenario, constants.net, records),
        **make_switches(topology, _SWITCH_RECORD, arrivals, ticks),
        ranked=np.zeros((topology.switches, int(bound.max()) + 1), _RANKED),
        busy=np.zeros(len(ports.out_input), np.uint32),
        arriving=make_calendar_queue(ticks, records),
        ejecting=make_calendar_queue(ticks, records),
        violated=np.zeros(1, np.int64),
    )
    draw_first_packets(constants, state)
    schedule_all(state.switch_wheel, np.arange(topology.switches), 0)
    return constants, state


@inline
def _receive_packet(const, state, packet, tick):
    """Receive a packet whose head has arrived."""
    start_reading(const, state, packet, tick)
    switch, scalars = np.int64(state.pool.packet[packet].switch), state.counters.scalars
    resident = state.switch[switch].resident
    scalars[Scalar.OCCUPANCY_MAX] = max(scalars[Scalar.OCCUPANCY_MAX], resident)
    if unlikely(resident > const.bound[switch]):
        state.violated[0] = Violation.OCCUPANCY
    if resident > const.hold_packets:
        schedule_switch(const, state, switch, tick)


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
    record, i = state.pool.packet[packet], state.switch[switch].ranked
    state.switch[switch].ranked = i + 1
    while i > 0:
        predecessor = state.ranked[switch, i - 1]
        if goes_before(const, state.pool.packet[predecessor.packet], record):
            break
        _copy_ranked(state, switch, i, predecessor)
        i -= 1
    set_ranked(const, state, switch, i, packet)


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
    schedule_switch(const, state, switch, tick + const.flits)


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
    finish_reading(const, state, switch, tick, _insert_ranked)
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
    return state.host_scheduled_at[host] if state.host_scheduled_at[host] > tick else Tick.LIMIT


@inline
def _inject_from_hosts(const, state, switch, tick):
    """Let the hosts of a switch inject, round-robin, while the switch has space."""
    first_host, count = const.host_start[switch], const.host_start[switch + 1] - const.host_start[switch]
    host, next_evaluation = first_host + np.int64(state.switch[switch].next_host), Tick.LIMIT
    for _ in range(count):
        _inject(const, state, switch, host, tick)
        next_evaluation = min(next_evaluation, _next_evaluation(state, host, tick))
        host = host + 1 if host + 1 < first_host + count else first_host
    state.switch[switch].next_sender = next_evaluation


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
    The tick reached: less than ``until`` if the log is full; the negative number of a
    :data:`~flitlab.sim.engines.compiled.invariants.Violation`, which is a bug.
    """
    tick = now
    while tick < until:
        if log_is_full(const, state):
            return tick
        receive_heads(const, state, state.switch, tick, _receive_packet)
        deliver_packets(const, state, tick)
        run_program(state.program, const, state, tick, schedule_host)
        count = drain(state.switch_wheel, tick, state.members)
        for begin in range(0, count, Batch.SIZE):
            end = min(count, begin + Batch.SIZE)
            if unlikely(count > Batch.MIN):
                _prefetch_packets(const.net, const.routes, state, state.members[begin:end])
            for i in range(begin, end):
                _allocate(const, state, np.int64(state.members[i]), tick)
        state.counters.scalars[Scalar.EVENTS] += count
        if unlikely(state.violated[0] > 0):
            return -state.violated[0]
        tick = next_active_tick(state.program, state, tick, until, state.switch_wheel.mask)
    return tick
