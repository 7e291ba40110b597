# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching by virtual channels, rule ``vc``, compiled.

A switch is evaluated when a header has been read, a host may inject, or heads wait. An output is *served* only when
its state is needed: a call of :func:`_serve` sends what it has sent since the last one. With ``share: packet`` the
times of a packet follow when it is bound. With ``share: flit`` each flit of a packet has the tick of its last arrival
in ``arrivals``. Every ``window`` ticks, within which no flit arrives anywhere, outputs are served, but for those whose
next flits no switch or host needs before the next window (``needed_at``). Which VCs of an output are taken changes only
when a packet is bound or a tail leaves, and no tail leaves before the tick ``tail``.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Masks, Words
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.deflect import least_bound_port, vc_occupancy_bound
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.port_sets import PortSets, ports_towards
from flitlab.models.rules.ports import make_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.base import ChannelCounter, Scalar
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.calendar_queue import (
    CalendarQueue,
    calendar_ticks,
    make_calendar_queue,
    schedule_event,
)
from flitlab.sim.engines.compiled.hot_potato import (
    conserves_packets,
    count_grant,
    finish_reading,
    inject_deflected,
    insert_by_rank,
    make_constants,
    make_switches,
    make_vc_constants,
    move_to_next_switch,
    receive_heads,
    schedule_host,
    start_reading,
    switch_record,
)
from flitlab.sim.engines.compiled.invariants import DEFLECTED_PACKET, Violation
from flitlab.sim.engines.compiled.memory import unlikely
from flitlab.sim.engines.compiled.messages import Program, next_active_tick, record_injection
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.records import (
    NONE,
    Net,
    RunCounters,
    Tick,
    channels_of_outputs,
    deliver_packets,
    draw_first_packets,
    log_is_full,
    make_common_state,
    pool_is_low,
    run_program,
)
from flitlab.sim.engines.compiled.timing_wheel import (
    TimingWheel,
    drain,
    schedule,
)

# waiting: first head without output VC, by rank, or NONE. blocked: 1 if hosts wait until a packet leaves. Counters of
# packets fall when outputs are served, so in between they are upper bounds.
_SWITCH_RECORD = switch_record("waiting", "blocked")

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
    window: int  # ticks after which outputs are served
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
    busy: Masks  # uint64 [outputs / 64]: outputs to which packets are bound, a bit each; share flit
    bound_packets: np.ndarray  # _BOUND [outputs, vcs]: these packets, in the order in which they were bound
    pointer: Words  # uint32 [outputs]: index of the packet whose turn it is; share flit
    served: Ints  # int64 [outputs]: share flit: tick before which flits are sent; share packet: tick of the next start
    needed_at: Ints  # int64 [outputs]: tick by which the next flits that it sends are needed; share flit
    tail: Ints  # int64 [outputs]: tick before which it sends no tail, Tick.LIMIT if no packet is bound
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
    """Make the constants and the state of a run at tick 0; parameters as under rule ``pool``."""
    topology, model = scenario.topology, scenario.switching
    ports, flits, hosts = make_ports(topology), int(packets.flits[0]), topology.hosts
    outputs, access, limits = len(ports.out_input), topology.access_delay, model.limits(topology)
    delays = make_vc_constants(scenario, ports)
    slowest = int(delays["delay"].max())
    longest = model.vcs * flits + model.header + model.injection + int(access.max(initial=0)) + slowest + 2
    ticks = calendar_ticks(longest)
    constants = VcConstants(
        **make_constants(scenario, ports, arrivals, packets, seed),
        **delays,
        by_flit=model.by_flit,
        window=int(delays["delay"].min()) if model.by_flit else 1 << 40,
        slot=1,
        limit=limits,
        occupancy_limit=_occupancy_limits(scenario, limits, flits),
        out_switch=np.repeat(np.arange(topology.switches), np.diff(ports.out_base)),
        access=access,
    )
    size = 2 * int(limits.sum()) + 2 * hosts + topology.channels
    heads = topology.channels * (slowest + model.vcs + 1) + hosts * (model.injection + int(access.max()) + 1)
    state = VcState(
        **make_common_state(scenario, constants.net, size, DEFLECTED_PACKET),
        arrivals=np.zeros((size if model.by_flit else 0, flits), np.int64),
        **make_switches(topology, _SWITCH_RECORD, arrivals, ticks),
        bound=np.zeros(outputs, np.uint32),
        busy=np.zeros(-(-outputs // 64), np.uint64),
        bound_packets=np.zeros((outputs, model.vcs), _BOUND),
        pointer=np.zeros(outputs, np.uint32),
        served=np.zeros(outputs, np.int64),
        needed_at=np.zeros(outputs, np.int64),
        tail=np.full(outputs, Tick.LIMIT),
        of_entry=np.zeros(topology.channels + hosts, np.uint32),
        arriving=make_calendar_queue(ticks, heads),
        ejecting=make_calendar_queue(ticks, hosts * (slowest + model.vcs + 1)),
        violated=np.zeros(1, np.int64),
    )
    draw_first_packets(constants, state)
    _schedule_hosts(constants, state)
    return constants, state


def _occupancy_limits(scenario: Scenario[Deflection], limits: Ints, flits: int) -> Ints:
    """The most packets that can be at each switch, int64 [switches]; no limit is known with ``share: flit``."""
    topology, model = scenario.topology, scenario.switching
    if model.by_flit:
        return np.full(topology.switches, Tick.LIMIT)
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
def _bit(output):
    """Return the bit of an output in its word of ``state.busy``."""
    return np.uint64(1) << np.uint64(output & 63)


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
    if last == 0:
        state.busy[output >> 6] &= ~_bit(output)


@inline
def _serve(const, state, output, until):
    """Let an output send what it sends before tick ``until``."""
    if const.by_flit:
        if state.bound[output] > 0 and state.served[output] < until:
            _send_flits(const, state, output, until)
            state.served[output] = until
    else:
        while state.tail[output] < until:
            _release(const, state, output, np.int64(0))
            bound = state.bound_packets[output]
            state.tail[output] = np.int64(bound[0].progress) - 1 if state.bound[output] > 0 else Tick.LIMIT


@inline
def _release_tails(const, state, output, until):
    """Release the VCs of an output whose tail it sends before tick ``until``."""
    if state.tail[output] < until:
        _serve(const, state, output, until)


@device_function
def _send_flits(const, state, output, until):
    """Send the flits of an output that leave from its last service on, before tick ``until``."""
    bound, tick, pointer = state.bound_packets[output], state.served[output], np.int64(state.pointer[output])
    channel, delay = np.int64(const.net.ports.out_channel[output]), const.delay[output]
    flits, count = np.int64(const.flits), np.int64(state.bound[output])
    started, started_at = NONE, tick
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
            move_to_next_switch(const, state, packet, channel)
            schedule_event(state.arriving, packet, tick + delay)
            started, started_at = packet, tick
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
    left = Tick.LIMIT
    for place in range(count):
        left = min(left, flits - np.int64(bound[place].progress))
    state.tail[output] = min(Tick.LIMIT, until + left - 1)
    if channel == NONE:
        state.needed_at[output] = state.tail[output] + delay
    elif count == 1 and np.int64(bound[0].packet) == started:  # the next switch reads its header first
        state.needed_at[output] = started_at + delay + const.header_ticks


@inline
def _release_all_tails(const, state, switch, until):
    """Release the VCs of a switch whose tail is sent before tick ``until``."""
    for output in range(const.net.ports.out_base[switch], const.net.ports.out_base[switch + 1]):
        _release_tails(const, state, output, until)


@inline
def _bind(const, state, packet, output, tick):
    """Give a packet a VC of an output."""
    record = state.pool.packet[packet]
    _serve(const, state, output, tick)
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
    count_grant(const, state, packet, channel)
    if const.by_flit:
        state.tail[output] = min(state.tail[output], tick + const.flits - 1)
        state.needed_at[output] = const.delay[output] + (state.tail[output] if channel == NONE else tick)
        if count == 0:
            state.busy[output >> 6] |= _bit(output)
            state.served[output] = tick
        return
    start = max(tick, state.served[output])
    if start > tick + (const.vcs - 1) * const.flits:
        state.violated[0] = Violation.LATE_START
    state.served[output] = start + const.flits
    bound.progress = start + const.flits
    if count == 0:
        state.tail[output] = start + const.flits - 1
    if channel == NONE:
        schedule_event(state.ejecting, packet, start + const.flits - 1 + const.delay[output])
    else:
        move_to_next_switch(const, state, packet, channel)
        schedule_event(state.arriving, packet, start + const.delay[output])


@inline
def _receive_packet(const, state, packet, tick):
    """Receive a packet whose head has arrived: it may be bound once its header is read."""
    start_reading(const, state, packet, tick)
    record, scalars = state.pool.packet[packet], state.counters.scalars
    switch, entry = np.int64(record.switch), np.int64(record.entry)
    state.of_entry[entry] += 1
    if unlikely(
        state.switch[switch].resident > scalars[Scalar.OCCUPANCY_MAX]
        or state.of_entry[entry] > scalars[Scalar.INPUT_PACKETS_MAX]
    ):
        _count_occupancy(const, state, switch, entry, tick)


@device_function
def _count_occupancy(const, state, switch, entry, tick):
    """Count the packets of a switch and an input, those that have left excluded."""
    _release_all_tails(const, state, switch, tick)
    scalars, resident = state.counters.scalars, np.int64(state.switch[switch].resident)
    scalars[Scalar.OCCUPANCY_MAX] = max(scalars[Scalar.OCCUPANCY_MAX], resident)
    scalars[Scalar.INPUT_PACKETS_MAX] = max(scalars[Scalar.INPUT_PACKETS_MAX], np.int64(state.of_entry[entry]))
    if resident > const.occupancy_limit[switch]:
        state.violated[0] = Violation.OCCUPANCY


@inline
def _insert_waiting(const, state, switch, packet):
    """Insert a packet among the heads of a switch that wait for an output VC, by rank."""
    state.switch[switch].waiting = insert_by_rank(const, state, np.int64(state.switch[switch].waiting), packet)


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
        _release_tails(const, state, output, tick)
        if state.bound[output] < const.vcs:
            return output
    else:
        minimal = ports_towards(const.routes, dst_switch, switch)
        remaining, one = minimal, np.uint64(1)
        while remaining:
            _release_tails(const, state, first + lowest(remaining), tick)
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
        _release_tails(const, state, first + port, tick)
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
    packet = inject_deflected(const, state, switch, host, tick)
    record_injection(state.program, state.pool.packet[packet].send, tick + const.flits)
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
def _is_full(const, state, switch):
    """Tell whether the hosts of a switch must wait, as enough packets are there or inbound."""
    return np.int64(state.switch[switch].resident) + np.int64(state.switch[switch].inbound) >= const.limit[switch]


@inline
def _inject_from_hosts(const, state, switch, tick):
    """Let the hosts of a switch inject while few enough packets are there, from one on that changes every tick."""
    first, count = const.host_start[switch], const.host_start[switch + 1] - const.host_start[switch]
    switch_record, next_sender, is_blocked = state.switch[switch], Tick.LIMIT, False
    host = first + tick % count
    for _ in range(count):
        if max(state.host[host].created_at, state.host[host].free_at) <= tick:
            if _is_full(const, state, switch):
                _release_all_tails(const, state, switch, tick + 1)
            if _is_full(const, state, switch):
                is_blocked = True
                break
            _inject(const, state, switch, host, tick)
        elif state.host_scheduled_at[host] <= tick:
            schedule_host(const, state, host, tick)
        if state.host_scheduled_at[host] > tick:
            next_sender = min(next_sender, state.host_scheduled_at[host])
        host = host + 1 if host + 1 < first + count else first
    if is_blocked:  # no host can inject before a packet leaves
        next_sender = _next_departure(const, state, switch, tick)
        schedule(state.switch_wheel, switch, next_sender)
    switch_record.next_sender = next_sender
    switch_record.blocked = is_blocked


@inline
def _next_departure(const, state, switch, tick):
    """Return the first tick after ``tick`` at which a tail may leave a switch, whose earlier tails are released."""
    departure = tick + const.vcs * const.flits
    for output in range(const.net.ports.out_base[switch], const.net.ports.out_base[switch + 1]):
        departure = min(departure, state.tail[output])
    return departure


@inline
def _expect_departure(state, switch, tick):
    """Schedule a switch whose hosts wait, as a packet may leave it at ``tick``."""
    if state.switch[switch].next_sender > tick:
        state.switch[switch].next_sender = tick
        schedule(state.switch_wheel, switch, tick)


@kernel
def _serve_outputs(const, state, until, needed_before):
    """Let outputs send what they send before tick ``until``, if it is needed before tick ``needed_before``."""
    for word in range(len(state.busy)):
        busy = state.busy[word]
        while busy:
            output = word * 64 + lowest(busy)
            busy &= busy - np.uint64(1)
            if state.needed_at[output] < needed_before:
                _serve(const, state, output, until)


def settle_channels(const: VcConstants, state: VcState, tick: int, channels: Ints) -> None:
    """Subtract the flits that bound packets send from ``tick`` on from the counters of their channels, in place.

    A packet is counted when it is bound.
    """
    if const.by_flit:
        _serve_outputs(const, state, tick, Tick.NEVER)
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
            _serve_outputs(const, state, tick, tick + const.window)
        receive_heads(const, state, state.switch, tick, _receive_packet)
        deliver_packets(const, state, tick)
        run_program(state.program, const, state, tick, schedule_host)
        count = drain(state.switch_wheel, tick, state.members)
        for i in range(count):
            switch = np.int64(state.members[i])
            finish_reading(const, state, switch, tick, _insert_waiting)
            if state.switch[switch].waiting != NONE:
                _bind_heads(const, state, switch, tick)
                if state.switch[switch].blocked:  # a packet that is bound now may be the next that leaves
                    _expect_departure(state, switch, tick + const.flits - 1)
            if state.switch[switch].next_sender <= tick:
                _inject_from_hosts(const, state, switch, tick)
        state.counters.scalars[Scalar.EVENTS] += count
        if unlikely(state.violated[0] > 0):
            return -state.violated[0]
        tick = next_active_tick(state.program, state, tick, until, state.switch_wheel.mask)
    return tick if conserves_packets(state) else -Violation.CONSERVATION
