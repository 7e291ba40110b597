# SPDX-License-Identifier: Apache-2.0
"""Hot-potato deflection, compiled.

A switch is looked at when a packet becomes eligible, an output falls free, or a host may send: one bit
of a wheel each. It keeps its packets in two lists: those whose header is being read, in order of arrival,
and the eligible ones, in order of rank.
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
from flitlab.sim.engines.base import EVENTS, GRANTS, OCCUPANCY_MAX
from flitlab.sim.engines.compiled.due import FULL, Due, ask_for_next, make_due, packet_in, put, release, take
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, prefetch, records_in_lines, seldom
from flitlab.sim.engines.compiled.messages import Program, leave, make_program, next_tick
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import (
    HOST,
    LATE,
    NOBODY,
    PACKET,
    Net,
    Tally,
    create,
    deliver_all,
    first_packets,
    log_is_full,
    make_net,
    make_tally,
    run_program,
)
from flitlab.sim.engines.compiled.wheel import Wheel, drain, make_wheel, ticks_for, wake, wake_all

# A switch. Before the last two, ticks, no header has been read and no host may send that could not before; so most
# looks at a switch touch neither its packets nor its hosts.
_SWITCH = np.dtype(
    [
        ("resident", np.uint32),  # packets in it
        ("inbound", np.uint32),  # on their way from its hosts
        ("reading", np.uint32),  # first of those whose header is being read
        ("last_reading", np.uint32),
        ("ranked", np.uint32),  # how many are eligible
        ("next_host", np.uint32),  # whose turn it is to send
        ("next_read", np.uint32),
        ("next_sender", np.uint32),
    ]
)

_RANKED = np.dtype(
    [
        ("ports", np.uint64),  # that are on shortest paths, a bit each; none if the packet is at its target
        ("packet", np.uint32),
        ("output", np.uint32),  # to its host if it is at its target, or NOBODY
    ]
)


class DeflectionConstants(NamedTuple):
    """The constants of a run of hot-potato deflection; times are in ticks."""

    net: Net
    hold: int  # packets that a switch holds without sending some on any free output
    slot: int  # decisions are made at multiples of this
    flits: int  # of every packet
    header: int
    switch: int
    link: int
    injection: int
    ejection: int
    bound: Ints  # int64 [switches]: most packets that can be resident
    routes: PortSets  # the ports on shortest paths
    out_start: Ints  # int64 [switches + 1]: first channel of each switch
    dst: Ints  # int64 [channels]: switch at the end of each
    delay: Ints  # int64 [channels]: ticks of each beyond ``link``
    access: Ints  # int64 [hosts]: ticks of each beyond ``injection`` and ``ejection``
    host_start: Ints  # int64 [switches + 1]: first host of each switch


class DeflectionState(NamedTuple):
    """The state of a run of hot-potato deflection: all that changes."""

    pool: Pool
    place: np.ndarray  # records [switches]
    ranked: np.ndarray  # records [switches, bound] of eligible packets, first in rank first
    busy: np.ndarray  # uint32 [outputs]: held until this tick
    host: np.ndarray  # HOST [hosts]
    asked: Ints  # int64 [hosts]: the tick at which the host's switch is woken for it
    arriving: Due  # packets by the tick at which their head arrives
    leaving: Due  # packets by the tick at which their tail is delivered
    members: Words  # uint32 [switches + 1]: scratch, who is looked at
    awake: Wheel
    program: Program | None
    tally: Tally


def build(
    scenario: Scenario[Deflection], arrivals: Arrivals, packets: Packets, seed: int
) -> tuple[DeflectionConstants, DeflectionState]:
    """Make the constants and the state of a run at tick 0.

    arrivals, packets: what hosts send. seed: of all draws.
    """
    topology, model = scenario.topology, scenario.switching
    ports, flits, hosts = make_ports(topology), int(packets.flits[0]), topology.hosts
    access, slowest_access = topology.access_delay, np.zeros(topology.switches, np.int64)
    np.maximum.at(slowest_access, topology.host_switch, access)
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
    at_hosts = max(model.ejection, model.injection) + int(access.max(initial=0))
    horizon = 2 * flits + model.switch + max(slowest, at_hosts, model.header) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    constants = DeflectionConstants(
        net=make_net(topology, ports, arrivals, packets, seed),
        hold=model.hold_packets,
        slot=flits if model.slotted else 1,
        flits=flits,
        header=model.header,
        switch=model.switch,
        link=model.link,
        injection=model.injection,
        ejection=model.ejection,
        bound=bound,
        routes=pack_ports(scenario.routes.ports),
        out_start=topology.out_start,
        dst=topology.dst,
        delay=topology.delay,
        access=access,
        host_start=topology.host_start,
    )
    on_channel = (model.switch + slowest) // flits + 2
    at_host = (flits + model.switch + model.ejection + model.injection + 2 * access) // flits + 3
    records = int(bound.sum()) + topology.channels * on_channel + int(at_host.sum())
    place = records_in_lines(topology.switches, _SWITCH)
    place["reading"] = place["last_reading"] = NOBODY
    state = DeflectionState(
        pool=make_pool(records, PACKET),
        place=place,
        ranked=np.zeros((topology.switches, int(bound.max()) + 1), _RANKED),
        busy=np.zeros(len(ports.out_input), np.uint32),
        host=records_in_lines(hosts, HOST),
        asked=np.full(hosts, -1, np.int64),
        arriving=make_due(ticks, records),
        leaving=make_due(ticks, records),
        members=np.zeros(topology.switches + 1, np.uint32),
        awake=make_wheel(topology.switches, ticks_for(ticks, topology.switches, typical_gap(arrivals))),
        program=make_program(scenario),
        tally=make_tally(topology),
    )
    first_packets(constants, state)
    wake_all(state.awake, np.arange(topology.switches), 0)
    return constants, state


@inline
def _look(const, state, switch, tick):
    """Have a switch decide at ``tick``, or at the next slot boundary."""
    if const.slot > 1:
        tick = (tick + const.slot - 1) // const.slot * const.slot
    wake(state.awake, switch, tick)


@inline
def _arrive(const, state, packet, tick):
    """Take in a packet whose head is in its switch: it is resident, and eligible once its header is read."""
    record = state.pool.packet[packet]
    switch = np.int64(record.where)
    if record.hop == 0:
        state.place[switch].inbound -= 1
    resident = state.place[switch].resident + 1
    state.place[switch].resident = resident
    state.tally.scalars[OCCUPANCY_MAX] = max(state.tally.scalars[OCCUPANCY_MAX], resident)
    record.eligible = tick + const.header
    record.next = NOBODY
    if state.place[switch].reading == NOBODY:
        state.place[switch].reading = packet
        state.place[switch].next_read = tick + const.header
    else:
        state.pool.packet[state.place[switch].last_reading].next = packet
    state.place[switch].last_reading = packet
    _look(const, state, switch, tick + const.header)
    if resident > const.hold:
        _look(const, state, switch, tick)


@inline
def set_ranked(const, state, switch, place, packet):
    """Put a packet at a place among the eligible ones of a switch, with where it may go from there."""
    destination, ranked = state.pool.packet[packet].destination, state.ranked[switch, place]
    target = const.net.host_switch[destination]
    ranked.packet = packet
    ranked.ports = np.uint64(0) if target == switch else ports_towards(const.routes, target, switch)
    ranked.output = const.net.ports.eject[destination] if target == switch else NOBODY


@inline
def _keep(state, switch, place, ranked):
    """Copy the record of an eligible packet to a place among those of its switch."""
    there = state.ranked[switch, place]
    there.packet = ranked.packet
    there.ports = ranked.ports
    there.output = ranked.output


@inline
def _rank(const, state, switch, packet):
    """Insert a packet among the eligible ones of a switch."""
    record = state.pool.packet[packet]
    hops, born = record.hop, record.born
    identity = np.int64(record.sequence) * const.net.hosts + record.source
    i = state.place[switch].ranked
    state.place[switch].ranked = i + 1
    while i > 0:
        before = state.ranked[switch, i - 1]
        other = state.pool.packet[before.packet]
        other_identity = np.int64(other.sequence) * const.net.hosts + other.source
        if outranks(other.hop, other.born, other_identity, hops, born, identity):
            break
        _keep(state, switch, i, before)
        i -= 1
    set_ranked(const, state, switch, i, packet)


@inline
def _admit(const, state, switch, tick):
    """Rank the packets of a switch whose header has been read by ``tick``."""
    switch_record = state.place[switch]
    if switch_record.next_read > tick:
        return
    packet, eligible = np.int64(switch_record.reading), LATE
    while packet != NOBODY:
        eligible = np.int64(state.pool.packet[packet].eligible)
        if eligible > tick:
            break
        following = np.int64(state.pool.packet[packet].next)
        _rank(const, state, switch, packet)
        packet = following
    switch_record.reading = packet
    switch_record.next_read = LATE if packet == NOBODY else eligible


@inline
def _choose(const, state, packet, ports):
    """Draw one of a non-empty set of ports; the draw belongs to the packet's decision at its switch.

    ports: uint64, a bit each.
    """
    record = state.pool.packet[packet]
    if popcount(ports) == 1:
        return lowest(ports)
    source, sequence = np.int64(record.source), np.int64(record.sequence)
    return pick(ports, route_word(const.net.seed, source, sequence, np.int64(record.hop)))


@inline
def _hold_output(const, state, switch, output, tick):
    """Take an output for a packet's flits; the switch decides again when it falls free."""
    state.busy[output] = tick + const.flits
    state.place[switch].resident -= 1
    state.tally.scalars[GRANTS] += 1
    _look(const, state, switch, tick + const.flits)


@inline
def _forward(const, state, switch, packet, minimal, port, tick):
    """Send a packet out of a network port.

    minimal: ports on its shortest paths, uint64, a bit each.
    """
    record = state.pool.packet[packet]
    _hold_output(const, state, switch, const.net.ports.out_base[switch] + port, tick)
    channel = const.out_start[switch] + port
    if not (minimal >> np.uint64(port)) & np.uint64(1):
        record.deflected += 1
    record.hop += 1
    record.where = const.dst[channel]
    record.output = const.net.ports.out_base[switch] + port
    state.tally.channel_flits[channel] += const.flits
    put(state.arriving, packet, tick + const.switch + const.link + const.delay[channel])


@inline
def _eject(const, state, switch, packet, output, tick):
    """Send a packet to its host if the ejection channel is free, and tell whether it was."""
    if state.busy[output] > tick:
        return False
    _hold_output(const, state, switch, output, tick)
    access = const.access[state.pool.packet[packet].destination]
    put(state.leaving, packet, tick + const.flits - 1 + const.switch + const.ejection + access)
    return True


@inline
def _free_ports(const, state, switch, tick):
    """Find the network ports of a switch that are not held, a bit each, uint64."""
    free = np.uint64(0)
    base = const.net.ports.out_base[switch]
    for port in range(const.net.ports.network_outs[switch]):
        if state.busy[base + port] <= tick:
            free |= np.uint64(1) << np.uint64(port)
    return free


@inline
def _allocate(const, state, switch, tick):
    """Make the decisions of one switch in one tick."""
    _admit(const, state, switch, tick)
    if state.place[switch].ranked > 0:
        _send_ranked(const, state, switch, tick)
    if state.place[switch].next_sender <= tick:
        _let_hosts_send(const, state, switch, tick)


@inline
def _send_ranked(const, state, switch, tick):
    """Send the eligible packets of a switch, in order of rank, as far as outputs are free."""
    switch_record = state.place[switch]
    free = _free_ports(const, state, switch, tick)
    kept = 0
    for i in range(np.int64(switch_record.ranked)):
        ranked = state.ranked[switch, i]
        packet, ports = np.int64(ranked.packet), free & ranked.ports
        if ports:
            port = _choose(const, state, packet, ports)
            free &= ~(np.uint64(1) << np.uint64(port))
            _forward(const, state, switch, packet, ranked.ports, port, tick)
        elif ranked.output == NOBODY or not _eject(const, state, switch, packet, ranked.output, tick):
            _keep(state, switch, kept, ranked)
            kept += 1
    while switch_record.resident > const.hold and free and kept > 0:
        kept -= 1
        ranked = state.ranked[switch, kept]
        packet = np.int64(ranked.packet)
        port = _choose(const, state, packet, free)
        free &= ~(np.uint64(1) << np.uint64(port))
        _forward(const, state, switch, packet, ranked.ports, port, tick)
    switch_record.ranked = kept


@inline
def _let_send(const, state, switch, host, tick):
    """Let a host of a switch start a packet if it has one, and the switch has room for it."""
    switch_record = state.place[switch]
    if max(state.host[host].born, state.host[host].free) > tick:
        if state.asked[host] <= tick:
            notice(const, state, host, tick)
        return
    if switch_record.resident + switch_record.inbound >= const.hold:
        return
    packet = create(const, state, host, tick)
    leave(state.program, state.pool.packet[packet].send, tick + const.flits)
    switch_record.inbound += 1
    following = host + 1 - const.host_start[switch]
    switch_record.next_host = following if host + 1 < const.host_start[switch + 1] else 0
    state.pool.packet[packet].where = switch
    put(state.arriving, packet, tick + const.injection + const.access[host])
    notice(const, state, host, tick)


@inline
def _next_look(state, host, tick):
    """Find the tick at which a host is to be looked at after ``tick``, ``tick`` itself if it lacks only room."""
    if max(state.host[host].born, state.host[host].free) <= tick:
        return tick
    return state.asked[host] if state.asked[host] > tick else LATE


@inline
def _let_hosts_send(const, state, switch, tick):
    """Let the hosts of a switch, in turn, start packets while the switch has room for them."""
    first, count = const.host_start[switch], const.host_start[switch + 1] - const.host_start[switch]
    host, following = first + np.int64(state.place[switch].next_host), LATE
    for _ in range(count):
        _let_send(const, state, switch, host, tick)
        following = min(following, _next_look(state, host, tick))
        host = host + 1 if host + 1 < first + count else first
    state.place[switch].next_sender = following


@inline
def notice(const, state, host, tick):
    """Have a host's switch look when the host may send its next packet, or, if that is far away, before."""
    ready = max(state.host[host].born, state.host[host].free, tick)
    if ready < LATE:
        switch = np.int64(const.net.host_switch[host])
        state.asked[host] = min(ready, tick + state.awake.mask - const.slot)
        state.place[switch].next_sender = min(np.int64(state.place[switch].next_sender), state.asked[host])
        _look(const, state, switch, state.asked[host])


@device_function
def _ask_for_places(arriving, pool, place, chunk):
    """Begin to load the packets of a full chunk, and the switches to which they come."""
    for i in range(FULL):
        prefetch(pool.packet, packet_in(arriving, chunk, i))
    for i in range(FULL):
        prefetch(place, pool.packet[packet_in(arriving, chunk, i)].where)


@inline
def _arrive_all(const, state, tick):
    """Take in the packets whose head arrives now.

    Returns False if a switch has come to hold more than :func:`~flitlab.models.rules.occupancy.occupancy_bound`.
    """
    arriving, within = state.arriving, True
    chunk, filled = take(arriving, tick)
    while chunk != NOBODY:
        ask_for_next(arriving, chunk)
        if seldom(filled == FULL):
            _ask_for_places(arriving, state.pool, state.place, chunk)
        for i in range(filled):
            packet = packet_in(arriving, chunk, i)
            _arrive(const, state, packet, tick)
            switch = state.pool.packet[packet].where
            within &= state.place[switch].resident <= const.bound[switch]
        state.tally.scalars[EVENTS] += filled
        chunk, filled = release(arriving, chunk), FULL
    return within


@device_function
def _ask_for_packets(net, routes, state, switches):
    """Begin to load what it takes to decide at some switches: their packets, and where the first of them may go."""
    pool, place, ranked, busy = state.pool, state.place, state.ranked, state.busy
    for switch in switches:
        prefetch(place, switch)
        prefetch(ranked, switch)
        prefetch(busy, net.ports.out_base[switch])
    for switch in switches:
        if place[switch].reading != NOBODY:
            prefetch(pool.packet, place[switch].reading)
    for switch in switches:
        if place[switch].reading != NOBODY:
            target = np.int64(net.host_switch[pool.packet[place[switch].reading].destination])
            prefetch(routes.bytes, set_offset(routes, target, switch))
        if place[switch].ranked > 0:
            prefetch(pool.packet, ranked[switch, 0].packet)


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns the tick reached, which is less than ``until`` if the log is full, or -1 if a switch holds more packets than
    :func:`~flitlab.models.rules.occupancy.occupancy_bound` allows, which is a bug.
    """
    tick = now
    while tick < until:
        if log_is_full(const, state):
            return tick
        if not _arrive_all(const, state, tick):
            return -1
        deliver_all(const, state, tick)
        run_program(state.program, const, state, tick, notice)
        count = drain(state.awake, tick, state.members)
        for begin in range(0, count, AT_ONCE):
            end = min(count, begin + AT_ONCE)
            if seldom(count > FEW):
                _ask_for_packets(const.net, const.routes, state, state.members[begin:end])
            for i in range(begin, end):
                _allocate(const, state, np.int64(state.members[i]), tick)
        state.tally.scalars[EVENTS] += count
        tick = next_tick(state.program, state, tick, until, state.awake.mask)
    return tick


def moved(state: DeflectionState) -> int:
    """Return how many packets have been granted so far."""
    return int(state.tally.scalars[GRANTS])


def stuck(const: DeflectionConstants, state: DeflectionState, now: int) -> bool:
    """Return False: a packet under hot-potato routing waits for no buffer, so nothing can be stuck."""
    return False
