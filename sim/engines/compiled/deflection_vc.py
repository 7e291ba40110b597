# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching by virtual channels, rule ``vc``, compiled.

A switch is evaluated when a header has been read, a host may inject, or heads wait. An output is *served* only when
its state is needed: a call of :func:`_serve` sends what it has sent since the last one. With ``share: packet`` the
times of a packet follow when it is bound. With ``share: flit`` each flit of a packet has the tick of its last arrival
in ``arrivals``, and all outputs are served every ``window`` ticks, within which no flit arrives anywhere.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.deflect import least_bound_port
from flitlab.models.rules.occupancy import vc_occupancy_bound
from flitlab.models.rules.order import outranks
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.port_sets import PortSets, pack_ports, ports_towards
from flitlab.models.rules.ports import make_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.topology.distances import distances
from flitlab.sim.engines.base import ChannelCounter, Scalar
from flitlab.sim.engines.compiled import records
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
from flitlab.sim.engines.compiled.deflection import schedule_host
from flitlab.sim.engines.compiled.invariants import DEFLECTED_PACKET, Violation
from flitlab.sim.engines.compiled.memory import aligned_records, unlikely
from flitlab.sim.engines.compiled.messages import Program, make_program, next_active_tick, record_injection
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import (
    HOST,
    NONE,
    TICK_LIMIT,
    Net,
    RunCounters,
    channels_of_outputs,
    count_flits,
    deliver_packets,
    draw_first_packets,
    ejection_channel,
    inject_packet,
    log_is_full,
    make_counters,
    make_net,
    pool_is_low,
    run_program,
)
from flitlab.sim.engines.compiled.timing_wheel import (
    TimingWheel,
    drain,
    make_timing_wheel,
    schedule,
    wheel_ticks,
)

# A switch. Counters of packets fall when outputs are served, so in between they are upper bounds.
_SWITCH_RECORD = np.dtype(
    [
        ("resident", np.uint32),  # packets whose head is in the switch, and whose tail has not left
        ("inbound", np.uint32),  # packets in flight from its hosts
        ("reading", np.uint32),  # first packet whose header is being read, or NONE
        ("last_reading", np.uint32),
        ("waiting", np.uint32),  # first head without output VC, by rank, or NONE
        ("blocked", np.uint32),  # 1: hosts wait until a packet leaves
        ("next_read", np.uint32),  # tick before which no further header is read
        ("next_sender", np.uint32),  # tick before which no host can inject that could not already
    ]
)

# A packet bound to an output.
_BOUND = np.dtype(
    [
        ("packet", np.uint32),
        ("entry", np.uint32),  # the input that it came by
        ("hop", np.uint32),  # channels between switches that it has taken to here
        ("progress", np.uint32),  # share flit: flits sent; share packet: tick from which its VC is free
    ]
)

_HOP_SHIFT = np.int64(32)


class VcConstants(NamedTuple):
    """Constants of a run under rule ``vc``; names that end with ``_ticks`` are times in ticks."""

    net: Net
    vcs: int  # packets that may be bound to an output
    by_flit: bool  # whether packets of an output take turns flit by flit
    window: int  # ticks after which all outputs are served
    slot: int  # 1: decisions are made at every tick
    flits: int  # of every packet
    header_ticks: int
    injection_ticks: int
    limit: Ints  # int64 [switches]: packets at a switch and inbound from which on its hosts wait
    occupancy_limit: Ints  # int64 [switches]: most packets that can be at a switch
    routes: PortSets  # ports on shortest paths
    distance: np.ndarray  # uint8 or uint16 [switches, switches]: channels from a switch to another
    out_switch: Ints  # int64 [outputs]: the switch of each
    delay: Ints  # int64 [outputs]: ticks from the sending of a flit to its arrival
    dst: Ints  # int64 [channels]: switch at the end of each
    access: Ints  # int64 [hosts]: ticks on top of ``injection_ticks``
    host_start: Ints  # int64 [switches + 1]: first host of each switch


class VcState(NamedTuple):
    """State of a run under rule ``vc``: all that changes."""

    pool: Pool
    arrivals: np.ndarray  # int64 [records, flits]: hops << 32 | tick of the last arrival of each flit; share flit
    switch: np.ndarray  # _SWITCH_RECORD [switches]
    bound: Words  # uint32 [outputs]: packets bound to each
    bound_packets: np.ndarray  # _BOUND [outputs, vcs]: these packets, in the order in which they were bound
    pointer: Words  # uint32 [outputs]: index of the packet whose turn it is; share flit
    served: Ints  # int64 [outputs]: share flit: tick before which flits are sent; share packet: tick of the next start
    of_entry: Words  # uint32 [channels + hosts]: packets of each input that are at its switch
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
) -> tuple[VcConstants, VcState]:
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
    outputs, access, limits = len(ports.out_input), topology.access_delay, model.limits(topology)
    delay = np.zeros(outputs, np.int64)
    channel = ports.out_channel >= 0
    delay[channel] = model.switch + model.link + topology.delay[ports.out_channel[channel]]
    delay[ports.eject] = model.switch + model.ejection + access
    out_switch = np.repeat(np.arange(topology.switches), np.diff(ports.out_base))
    longest = model.vcs * flits + model.header + model.injection + int(access.max(initial=0)) + int(delay.max()) + 2
    ticks = 1 << int(longest - 1).bit_length()
    constants = VcConstants(
        net=make_net(topology, ports, arrivals, packets, seed),
        vcs=model.vcs,
        by_flit=model.by_flit,
        window=int(delay.min()) if model.by_flit else 1 << 40,
        slot=1,
        flits=flits,
        header_ticks=model.header,
        injection_ticks=model.injection,
        limit=limits,
        occupancy_limit=_occupancy_limits(scenario, limits, flits),
        routes=pack_ports(scenario.routes.ports),
        distance=distances(topology),
        out_switch=out_switch,
        delay=delay,
        dst=topology.dst,
        access=access,
        host_start=topology.host_start,
    )
    size = 2 * int(limits.sum()) + 2 * hosts + topology.channels
    heads = topology.channels * (int(delay.max()) + model.vcs + 1) + hosts * (model.injection + int(access.max()) + 1)
    switch_records = aligned_records(topology.switches, _SWITCH_RECORD)
    switch_records["reading"] = switch_records["last_reading"] = switch_records["waiting"] = NONE
    state = VcState(
        pool=make_pool(size, DEFLECTED_PACKET),
        arrivals=np.zeros((size if model.by_flit else 0, flits), np.int64),
        switch=switch_records,
        bound=np.zeros(outputs, np.uint32),
        bound_packets=np.zeros((outputs, model.vcs), _BOUND),
        pointer=np.zeros(outputs, np.uint32),
        served=np.zeros(outputs, np.int64),
        of_entry=np.zeros(topology.channels + hosts, np.uint32),
        host=aligned_records(hosts, HOST),
        host_scheduled_at=np.full(hosts, -1, np.int64),
        arriving=make_calendar_queue(ticks, heads),
        ejecting=make_calendar_queue(ticks, hosts * (int(delay.max()) + model.vcs + 1)),
        members=np.zeros(topology.switches + 1, np.uint32),
        switch_wheel=make_timing_wheel(topology.switches, wheel_ticks(ticks, topology.switches, typical_gap(arrivals))),
        violated=np.zeros(1, np.int64),
        program=make_program(scenario),
        counters=make_counters(topology),
    )
    draw_first_packets(constants, state)
    _schedule_hosts(constants, state)
    return constants, state


def _occupancy_limits(scenario: Scenario[Deflection], limits: Ints, flits: int) -> Ints:
    """The most packets that can be at each switch, int64 [switches]; no limit is known with ``share: flit``."""
    topology, model = scenario.topology, scenario.switching
    if model.by_flit:
        return np.full(topology.switches, TICK_LIMIT)
    slowest = np.zeros(topology.switches, np.int64)
    np.maximum.at(slowest, topology.host_switch, topology.access_delay)
    columns = limits, topology.in_degree, topology.host_count, model.injection + slowest
    each = zip(*(column.tolist() for column in columns), strict=True)
    bounds = [vc_occupancy_bound(k, d, h, model.vcs, flits, model.header, slow) for k, d, h, slow in each]
    return np.array(bounds, np.int64)


def enlarged(state: VcState, hosts: int) -> VcState:
    """Return the state with the log, or the records of packets, doubled where there are too few for one more tick."""
    state = records.enlarged(state, hosts)
    more = len(state.pool.packet) - len(state.arrivals)
    if len(state.arrivals) and more:
        state = state._replace(
            arrivals=np.concatenate([state.arrivals, np.zeros((more, state.arrivals.shape[1]), np.int64)])
        )
    return state


@kernel
def _schedule_hosts(const, state):
    """Schedule the switches of all hosts for their first packets."""
    for host in range(const.net.hosts):
        schedule_host(const, state, host, np.int64(0))


@inline
def _release(const, state, output, place):
    """Remove a packet, whose tail has left, from those bound to an output."""
    switch, bound = const.out_switch[output], state.bound_packets[output]
    state.switch[switch].resident -= 1
    state.of_entry[bound[place].entry] -= 1
    last = np.int64(state.bound[output]) - 1
    for i in range(place, last):
        bound[i].packet = bound[i + 1].packet
        bound[i].entry = bound[i + 1].entry
        bound[i].hop = bound[i + 1].hop
        bound[i].progress = bound[i + 1].progress
    state.bound[output] = last


@inline
def _serve(const, state, output, until):
    """Let an output send what it sends before tick ``until``."""
    if const.by_flit:
        if state.served[output] < until:
            if state.bound[output] > 0:
                _send_flits(const, state, output, until)
            state.served[output] = until
    else:
        while state.bound[output] > 0 and state.bound_packets[output, 0].progress <= until:
            _release(const, state, output, np.int64(0))


@device_function
def _send_flits(const, state, output, until):
    """Send the flits of an output that leave from its last service on, before tick ``until``."""
    bound, tick, pointer = state.bound_packets[output], state.served[output], np.int64(state.pointer[output])
    channel, delay = np.int64(const.net.ports.out_channel[output]), const.delay[output]
    flits, count = np.int64(const.flits), np.int64(state.bound[output])
    while tick < until and count > 0:
        turn, next_tick = np.int64(-1), until
        place = pointer
        for _ in range(count):
            due = state.arrivals[bound[place].packet, bound[place].progress] - (
                np.int64(bound[place].hop) << _HOP_SHIFT
            )
            if due >= 0:  # else the flit has not been sent yet, and arrives after ``until``
                if due <= tick:
                    turn = place
                    break
                next_tick = min(next_tick, due)
            place = place + 1 if place + 1 < count else np.int64(0)
        if turn < 0:
            tick = next_tick
            continue
        packet, sent, hop = np.int64(bound[turn].packet), np.int64(bound[turn].progress), np.int64(bound[turn].hop)
        if sent == 0 and channel != NONE:
            _start(const, state, packet, channel, tick + delay)
        key = ((hop + 1) << _HOP_SHIFT) + delay
        hop_key = hop << _HOP_SHIFT
        while True:  # one flit; more where the packet is the only one
            state.arrivals[packet, sent] = key + tick
            sent += 1
            tick += 1
            if count > 1 or sent == flits or tick >= until:
                break
            if np.uint64(state.arrivals[packet, sent] - hop_key) > np.uint64(tick):
                break
        if sent < flits:
            bound[turn].progress = sent
            pointer = turn + 1 if turn + 1 < count else np.int64(0)
        else:
            if channel == NONE:
                schedule_event(state.ejecting, packet, tick - 1 + delay)
            _release(const, state, output, turn)
            count -= 1
            pointer = turn if turn < count else np.int64(0)
    state.pointer[output] = pointer


@inline
def _start(const, state, packet, channel, arrival):
    """Send the head of a packet into a channel; arrival: tick at which it reaches the next switch."""
    record = state.pool.packet[packet]
    switch, dst_switch = np.int64(const.dst[channel]), np.int64(const.net.host_switch[record.dst_host])
    distance = np.int64(const.distance[switch, dst_switch])
    record.detour = np.int64(record.detour) + 1 + distance - np.int64(record.distance)
    record.distance = distance
    record.hop += 1
    record.switch = switch
    record.entry = channel
    schedule_event(state.arriving, packet, arrival)


@inline
def _serve_all(const, state, switch, until):
    """Let all outputs of a switch send what they send before tick ``until``."""
    for output in range(const.net.ports.out_base[switch], const.net.ports.out_base[switch + 1]):
        _serve(const, state, output, until)


@inline
def _bind(const, state, packet, output, tick):
    """Give a packet a VC of an output, which is served up to ``tick``."""
    record = state.pool.packet[packet]
    count = np.int64(state.bound[output])
    if count >= const.vcs:
        state.violated[0] = Violation.VCS
        return
    channel = np.int64(const.net.ports.out_channel[output])
    bound = state.bound_packets[output, count]
    bound.packet = packet
    bound.entry = record.entry
    bound.hop = record.hop
    bound.progress = 0
    state.bound[output] = count + 1
    state.counters.scalars[Scalar.GRANTS] += 1
    if channel == NONE:
        dst_switch, src_switch = np.int64(record.switch), np.int64(const.net.host_switch[record.src_host])
        if np.int64(record.hop) != np.int64(const.distance[src_switch, dst_switch]) + np.int64(record.detour):
            state.violated[0] = Violation.HOPS
    else:
        state.counters.channel_flits[channel] += const.flits
    row = ejection_channel(const, state, record.dst_host) if channel == NONE else channel
    count_flits(state.counters.channels, row, const.flits)
    if const.by_flit:
        return
    start = max(tick, state.served[output])
    if start > tick + (const.vcs - 1) * const.flits:
        state.violated[0] = Violation.LATE_START
    state.served[output] = start + const.flits
    bound.progress = start + const.flits
    if channel == NONE:
        schedule_event(state.ejecting, packet, start + const.flits - 1 + const.delay[output])
    else:
        _start(const, state, packet, channel, start + const.delay[output])


@inline
def _receive_packet(const, state, packet, tick):
    """Receive a packet whose head has arrived: it may be bound once its header is read."""
    record = state.pool.packet[packet]
    switch, entry = np.int64(record.switch), np.int64(record.entry)
    switch_record, scalars = state.switch[switch], state.counters.scalars
    if record.hop == 0:
        switch_record.inbound -= 1
    switch_record.resident += 1
    state.of_entry[entry] += 1
    if unlikely(
        switch_record.resident > scalars[Scalar.OCCUPANCY_MAX]
        or state.of_entry[entry] > scalars[Scalar.INPUT_PACKETS_MAX]
    ):
        _count_occupancy(const, state, switch, entry, tick)
    record.eligible_at = tick + const.header_ticks
    record.next = NONE
    if switch_record.reading == NONE:
        switch_record.reading = packet
        switch_record.next_read = tick + const.header_ticks
    else:
        state.pool.packet[switch_record.last_reading].next = packet
    switch_record.last_reading = packet
    schedule(state.switch_wheel, switch, tick + const.header_ticks)


@device_function
def _count_occupancy(const, state, switch, entry, tick):
    """Count the packets of a switch and an input, those that have left excluded."""
    _serve_all(const, state, switch, tick)
    scalars, resident = state.counters.scalars, np.int64(state.switch[switch].resident)
    scalars[Scalar.OCCUPANCY_MAX] = max(scalars[Scalar.OCCUPANCY_MAX], resident)
    scalars[Scalar.INPUT_PACKETS_MAX] = max(scalars[Scalar.INPUT_PACKETS_MAX], np.int64(state.of_entry[entry]))
    if resident > const.occupancy_limit[switch]:
        state.violated[0] = Violation.OCCUPANCY


@inline
def _insert_waiting(const, state, switch, packet):
    """Insert a packet among the heads of a switch that wait for an output VC, by rank."""
    record = state.pool.packet[packet]
    hops, created_at = record.hop, record.created_at
    identity = np.int64(record.sequence) * const.net.hosts + record.src_host
    before, after = NONE, np.int64(state.switch[switch].waiting)
    while after != NONE:
        other = state.pool.packet[after]
        other_identity = np.int64(other.sequence) * const.net.hosts + other.src_host
        if outranks(hops, created_at, identity, other.hop, other.created_at, other_identity):
            break
        before, after = after, np.int64(other.next)
    record.next = after
    if before == NONE:
        state.switch[switch].waiting = packet
    else:
        state.pool.packet[before].next = packet


@inline
def _read_headers(const, state, switch, tick):
    """Let the packets of a switch whose header has been read by ``tick`` wait for an output VC."""
    switch_record = state.switch[switch]
    if switch_record.next_read > tick:
        return
    packet, eligible = np.int64(switch_record.reading), TICK_LIMIT
    while packet != NONE:
        eligible = np.int64(state.pool.packet[packet].eligible_at)
        if eligible > tick:
            break
        next_packet = np.int64(state.pool.packet[packet].next)
        _insert_waiting(const, state, switch, packet)
        packet = next_packet
    switch_record.reading = packet
    switch_record.next_read = TICK_LIMIT if packet == NONE else eligible


@inline
def _choose_output(const, state, switch, packet, tick):
    """Choose the output to which a head is bound, NONE if all VCs are taken."""
    record, first = state.pool.packet[packet], np.int64(const.net.ports.out_base[switch])
    dst_host = np.int64(record.dst_host)
    dst_switch = np.int64(const.net.host_switch[dst_host])
    identity = np.int64(record.sequence) * const.net.hosts + record.src_host
    hops, minimal = np.int64(record.hop), np.uint64(0)
    if dst_switch == switch:
        output = np.int64(const.net.ports.eject[dst_host])
        _serve(const, state, output, tick)
        if state.bound[output] < const.vcs:
            return output
    else:
        minimal = ports_towards(const.routes, dst_switch, switch)
        remaining, one = minimal, np.uint64(1)
        while remaining:
            _serve(const, state, first + lowest(remaining), tick)
            remaining &= remaining - one
        port = least_bound_port(minimal, state.bound, first, const.vcs, const.net.seed, identity, hops)
        if port >= 0:
            return first + port
    return _deflect(const, state, switch, packet, minimal, tick)


@device_function
def _deflect(const, state, switch, packet, minimal, tick):
    """Choose an output off the shortest paths for a head, NONE if all VCs are taken; minimal: ports on these."""
    record, first = state.pool.packet[packet], np.int64(const.net.ports.out_base[switch])
    identity = np.int64(record.sequence) * const.net.hosts + record.src_host
    ports = np.uint64(0)
    for port in range(const.net.ports.network_outs[switch]):
        _serve(const, state, first + port, tick)
        ports |= np.uint64(1) << np.uint64(port)
    hops = np.int64(record.hop)
    port = least_bound_port(ports, state.bound, first, const.vcs, const.net.seed, identity, hops)
    if port < 0:
        return NONE
    if (minimal >> np.uint64(port)) & np.uint64(1):
        state.violated[0] = Violation.DEFLECTION
    record.deflections += 1
    return first + port


@inline
def _bind_heads(const, state, switch, tick):
    """Bind the heads of a switch, in order of rank; those without output VC wait for the next tick."""
    switch_record = state.switch[switch]
    packet, last, waits = np.int64(switch_record.waiting), NONE, np.int64(0)
    switch_record.waiting = NONE
    while packet != NONE:
        next_packet = np.int64(state.pool.packet[packet].next)
        output = _choose_output(const, state, switch, packet, tick)
        if output != NONE:
            _bind(const, state, packet, output, tick)
        else:
            waits += 1
            state.pool.packet[packet].next = NONE
            if last == NONE:
                switch_record.waiting = packet
            else:
                state.pool.packet[last].next = packet
            last = packet
        packet = next_packet
    if waits > 0:
        state.counters.scalars[Scalar.VC_WAITS] += waits
        schedule(state.switch_wheel, switch, tick + 1)


@inline
def _inject(const, state, switch, host, tick):
    """Inject the next packet of a host."""
    packet = inject_packet(const, state, host, tick)
    record = state.pool.packet[packet]
    record_injection(state.program, record.send, tick + const.flits)
    record.switch = switch
    record.entry = len(state.counters.channel_flits) + host
    record.detour = 0
    record.distance = const.distance[switch, np.int64(const.net.host_switch[record.dst_host])]
    arrival = tick + const.injection_ticks + const.access[host]
    if const.by_flit:
        for i in range(const.flits):
            state.arrivals[packet, i] = arrival + i
    state.switch[switch].inbound += 1
    if state.switch[switch].resident + state.switch[switch].inbound > const.limit[switch]:
        state.violated[0] = Violation.ADMISSION
    schedule_event(state.arriving, packet, arrival)
    schedule_host(const, state, host, tick)


@inline
def _inject_from_hosts(const, state, switch, tick):
    """Let the hosts of a switch inject while few enough packets are there, from one on that changes every tick."""
    first, count = const.host_start[switch], const.host_start[switch + 1] - const.host_start[switch]
    switch_record, next_sender, is_served, is_blocked = state.switch[switch], TICK_LIMIT, False, False
    host = first + tick % count
    for _ in range(count):
        if max(state.host[host].created_at, state.host[host].free_at) <= tick:
            if switch_record.resident + switch_record.inbound >= const.limit[switch] and not is_served:
                _serve_all(const, state, switch, tick + 1)
                is_served = True
            if switch_record.resident + switch_record.inbound < const.limit[switch]:
                _inject(const, state, switch, host, tick)
            else:
                is_blocked = True
        if max(state.host[host].created_at, state.host[host].free_at) > tick:
            if state.host_scheduled_at[host] <= tick:
                schedule_host(const, state, host, tick)
            if state.host_scheduled_at[host] > tick:
                next_sender = min(next_sender, state.host_scheduled_at[host])
        host = host + 1 if host + 1 < first + count else first
    if is_blocked:
        departure = _next_departure(const, state, switch, tick)
        schedule(state.switch_wheel, switch, departure)
        next_sender = min(next_sender, departure)
    switch_record.next_sender = next_sender
    switch_record.blocked = is_blocked


@inline
def _next_departure(const, state, switch, tick):
    """Return the first tick after ``tick`` at which the tail of a bound packet may leave; all outputs are served."""
    departure = tick + const.vcs * const.flits
    for output in range(const.net.ports.out_base[switch], const.net.ports.out_base[switch + 1]):
        for i in range(state.bound[output]):
            progress = np.int64(state.bound_packets[output, i].progress)
            departure = min(departure, tick + const.flits - progress if const.by_flit else progress - 1)
    return departure


@inline
def _receive_packets(const, state, tick):
    """Receive the packets whose head arrives at ``tick``."""
    arriving = state.arriving
    block, count = take_bucket(arriving, tick)
    while block != NONE:
        prefetch_next_block(arriving, block)
        for i in range(count):
            _receive_packet(const, state, entry_in(arriving, block, i), tick)
        state.counters.scalars[Scalar.EVENTS] += count
        block, count = release_block(arriving, block), BLOCK_ENTRIES


@kernel
def _serve_outputs(const, state, until):
    """Let all outputs send what they send before tick ``until``."""
    for switch in range(const.net.switches):
        _serve_all(const, state, switch, until)


def settle_channels(const: VcConstants, state: VcState, tick: int, channels: Ints) -> None:
    """Subtract the flits that bound packets send from ``tick`` on from the counters of their channels, in place.

    A packet is counted when it is bound.
    """
    if const.by_flit:
        _serve_outputs(const, state, tick)
    bound = np.arange(const.vcs) < state.bound[:, None]
    progress = state.bound_packets["progress"].astype(np.int64)
    left = const.flits - progress if const.by_flit else np.clip(progress - tick, 0, const.flits)
    rows = channels_of_outputs(const, state)
    channels[rows, ChannelCounter.FLITS] -= np.where(bound, left, 0).sum(axis=1)
    channels[rows, ChannelCounter.PACKETS] -= (bound & (left == const.flits)).sum(axis=1)


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns
    -------
    The tick reached: less than ``until`` if the log is full or the pool is low; the negative number of a
    :data:`~flitlab.sim.engines.compiled.invariants.Violation`, which is a bug.
    """
    tick = now
    while tick < until:
        if log_is_full(const, state) or pool_is_low(const, state):
            return tick
        if tick % const.window == 0:
            for output in range(len(state.bound)):
                _serve(const, state, output, tick)
        _receive_packets(const, state, tick)
        deliver_packets(const, state, tick)
        run_program(state.program, const, state, tick, schedule_host)
        count = drain(state.switch_wheel, tick, state.members)
        for i in range(count):
            switch = np.int64(state.members[i])
            _read_headers(const, state, switch, tick)
            if state.switch[switch].waiting != NONE:
                _bind_heads(const, state, switch, tick)
                if state.switch[switch].blocked:  # packets that are bound now may be the next that leave
                    state.switch[switch].next_sender = tick
            if state.switch[switch].next_sender <= tick:
                _inject_from_hosts(const, state, switch, tick)
        state.counters.scalars[Scalar.EVENTS] += count
        if unlikely(state.violated[0] > 0):
            return -state.violated[0]
        tick = next_active_tick(state.program, state, tick, until, state.switch_wheel.mask)
    scalars, pool = state.counters.scalars, state.pool
    in_flight = len(pool.packet) - np.int64(pool.free[len(pool.free) - 1])
    if scalars[Scalar.SENT_PACKETS] != scalars[Scalar.DELIVERED_PACKETS] + in_flight:
        return -Violation.CONSERVATION
    return tick


def total_grants(state: VcState) -> int:
    """Return the number of grants so far: a packet counts at every hop, and again when it is ejected."""
    return int(state.counters.scalars[Scalar.GRANTS])


def has_deadlocked_packet(const: VcConstants, state: VcState, now: int) -> bool:
    """Return False: with deflection, no packet waits for a buffer."""
    return False
