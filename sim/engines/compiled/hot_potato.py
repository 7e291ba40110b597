# SPDX-License-Identifier: Apache-2.0
"""What the kernels of all rules of hot-potato switching share: constants, arrival of heads, rank, and hosts.

Functions take the constants and the state of a rule. ``state.switch`` is that of rules ``pool`` and ``vc``; packets are
DEFLECTED_PACKET under rules ``vc`` and ``frame``.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.mappings import Fields
from flitlab.models.rules.allocate import outranks
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.port_sets import pack_ports
from flitlab.models.rules.ports import Ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    prefetch_next_block,
    release_block,
    take_bucket,
)
from flitlab.sim.engines.compiled.invariants import Violation
from flitlab.sim.engines.compiled.memory import aligned_records, prefetch, unlikely
from flitlab.sim.engines.compiled.records import NONE, Tick, count_flits, ejection_channel, inject_packet, make_net
from flitlab.sim.engines.compiled.timing_wheel import make_timing_wheel, schedule, wheel_ticks


def switch_record(*own: str) -> np.dtype:
    """Return the record of a switch; own: its two fields, uint32, that only one rule has.

    resident: packets in the switch. inbound: packets in flight from its hosts. reading, last_reading: ends of the list
    of packets whose header is being read, or NONE. Before tick next_read no further header has been read, and before
    next_sender no host can inject that could not already; so most evaluations touch neither packets nor hosts.
    """
    names = "resident", "inbound", "reading", "last_reading", *own, "next_read", "next_sender"
    return np.dtype([(name, np.uint32) for name in names])


def make_constants(
    scenario: Scenario[Deflection], ports: Ports, arrivals: Arrivals, packets: Packets, seed: int
) -> Fields:
    """Make the constants that every rule has, by name.

    Parameters
    ----------
    scenario: topology, routes, traffic and switching parameters.
    ports: port numbers of the topology.
    arrivals: when hosts create packets.
    packets: lengths in flits, and destinations, of these packets.
    seed: of all draws.
    """
    topology, model = scenario.topology, scenario.switching
    return {
        "net": make_net(topology, ports, arrivals, packets, seed),
        "flits": int(packets.flits[0]),
        "header_ticks": model.header,
        "injection_ticks": model.injection,
        "routes": pack_ports(scenario.routes.ports),
        "dst": topology.dst,
        "host_start": topology.host_start,
    }


def make_vc_constants(scenario: Scenario[Deflection], ports: Ports) -> Fields:
    """Make the constants that rules ``vc`` and ``frame`` have beside these, by name. ports: of the topology."""
    topology, model = scenario.topology, scenario.switching
    delay = model.switch + model.link + np.append(topology.delay, 0)[ports.out_channel]
    delay[ports.eject] = model.switch + model.ejection + topology.access_delay
    return {"vcs": model.vcs, "distance": distances(topology), "delay": delay}


def make_switches(topology: Topology, record: np.dtype, arrivals: Arrivals, ticks: int) -> Fields:
    """Make the fields of a state that evaluates single switches, by name.

    Parameters
    ----------
    topology: of the run.
    record: :func:`switch_record`.
    arrivals: when hosts create packets.
    ticks: horizon, a power of two.
    """
    switches = topology.switches
    records = aligned_records(switches, record)
    for name in {"reading", "last_reading", "waiting"} & set(record.names or ()):
        records[name] = NONE
    return {
        "switch": records,
        "host_scheduled_at": np.full(topology.hosts, -1, np.int64),
        "members": np.zeros(switches + 1, np.uint32),
        "switch_wheel": make_timing_wheel(switches, wheel_ticks(ticks, switches, typical_gap(arrivals))),
    }


@inline
def packet_id(const, record):
    """Return the number by which both engines know a packet. record: of the packet."""
    return np.int64(record.sequence) * const.net.hosts + record.src_host


@inline
def goes_before(const, record, other):
    """Tell whether a packet has a higher rank than another. record, other: of the packets."""
    return outranks(
        record.hop, record.created_at, packet_id(const, record), other.hop, other.created_at, packet_id(const, other)
    )


@inline
def insert_by_rank(const, state, first, packet):
    """Insert a packet into a linked list of packets by rank, and return the first packet of the list.

    first, packet: int64; ``first`` is NONE if the list is empty.
    """
    packets = state.pool.packet
    record, before, after = packets[packet], NONE, first
    while after != NONE:
        if goes_before(const, record, packets[after]):
            break
        before, after = after, np.int64(packets[after].next)
    record.next = after
    if before == NONE:
        return packet
    packets[before].next = packet
    return first


@inline
def schedule_switch(const, state, switch, tick):
    """Schedule the evaluation of a switch at ``tick``, or at the next slot boundary."""
    if const.slot > 1:
        tick = (tick + const.slot - 1) // const.slot * const.slot
    schedule(state.switch_wheel, switch, tick)


@inline
def schedule_host(const, state, host, tick):
    """Schedule a host's switch for when the host may inject its next packet, or earlier beyond the horizon."""
    ready = max(state.host[host].created_at, state.host[host].free_at, tick)
    if ready < Tick.LIMIT:
        switch = np.int64(const.net.host_switch[host])
        state.host_scheduled_at[host] = min(ready, tick + state.switch_wheel.mask - const.slot)
        state.switch[switch].next_sender = min(
            np.int64(state.switch[switch].next_sender), state.host_scheduled_at[host]
        )
        schedule_switch(const, state, switch, state.host_scheduled_at[host])


@inline
def receive_heads(const, state, switches, tick, receive_packet):
    """Receive the packets whose head arrives at ``tick``.

    switches: array [switches], to be prefetched. receive_packet: function (const, state, packet, tick).
    """
    arriving = state.arriving
    block, count = take_bucket(arriving, tick)
    while block != NONE:
        prefetch_next_block(arriving, block)
        if unlikely(count == BLOCK_ENTRIES):
            _prefetch_switches(arriving, state.pool, switches, block)
        for i in range(count):
            receive_packet(const, state, entry_in(arriving, block, i), tick)
        state.counters.scalars[Scalar.EVENTS] += count
        block, count = release_block(arriving, block), BLOCK_ENTRIES


@device_function
def _prefetch_switches(arriving, pool, switches, block):
    """Prefetch the packets of a full block, and the records of their switches."""
    for i in range(BLOCK_ENTRIES):
        prefetch(pool.packet, entry_in(arriving, block, i))
    for i in range(BLOCK_ENTRIES):
        prefetch(switches, pool.packet[entry_in(arriving, block, i)].switch)


@inline
def start_reading(const, state, packet, tick):
    """Receive a packet whose head has arrived: it is resident, and eligible once its header is read."""
    record = state.pool.packet[packet]
    switch = np.int64(record.switch)
    switch_record = state.switch[switch]
    if record.hop == 0:
        switch_record.inbound -= 1
    switch_record.resident += 1
    record.eligible_at = tick + const.header_ticks
    record.next = NONE
    if switch_record.reading == NONE:
        switch_record.reading = packet
        switch_record.next_read = tick + const.header_ticks
    else:
        state.pool.packet[switch_record.last_reading].next = packet
    switch_record.last_reading = packet
    schedule_switch(const, state, switch, tick + const.header_ticks)


@inline
def finish_reading(const, state, switch, tick, insert_packet):
    """Rank the packets of a switch whose header has been read by ``tick``.

    insert_packet: function (const, state, switch, packet).
    """
    switch_record = state.switch[switch]
    if switch_record.next_read > tick:
        return
    packet, eligible = np.int64(switch_record.reading), Tick.LIMIT
    while packet != NONE:
        eligible = np.int64(state.pool.packet[packet].eligible_at)
        if eligible > tick:
            break
        next_packet = np.int64(state.pool.packet[packet].next)
        insert_packet(const, state, switch, packet)
        packet = next_packet
    switch_record.reading = packet
    switch_record.next_read = Tick.LIMIT if packet == NONE else eligible


@inline
def inject_deflected(const, state, switch, host, tick):
    """Inject the next packet of a host as a :data:`DEFLECTED_PACKET` at its switch, and return it."""
    packet = inject_packet(const, state, host, tick)
    record = state.pool.packet[packet]
    record.switch = switch
    record.entry = len(state.counters.channel_flits) + host
    record.detour = 0
    record.distance = const.distance[switch, np.int64(const.net.host_switch[record.dst_host])]
    return packet


@inline
def count_grant(const, state, packet, channel):
    """Count the channel that a :data:`DEFLECTED_PACKET` is granted, NONE for ejection, and check where that is."""
    record, flits = state.pool.packet[packet], const.flits
    state.counters.scalars[Scalar.GRANTS] += 1
    if channel == NONE:
        src_switch, dst_switch = np.int64(const.net.host_switch[record.src_host]), np.int64(record.switch)
        if np.int64(record.hop) != np.int64(const.distance[src_switch, dst_switch]) + np.int64(record.detour):
            state.violated[0] = Violation.HOPS
        count_flits(state.counters.channels, ejection_channel(const, state, record.dst_host), flits)
    else:
        state.counters.channel_flits[channel] += flits
        count_flits(state.counters.channels, channel, flits)


@inline
def move_to_next_switch(const, state, packet, channel):
    """Move a :data:`DEFLECTED_PACKET` to the switch at the end of a channel, and return that switch."""
    record = state.pool.packet[packet]
    switch, dst_switch = np.int64(const.dst[channel]), np.int64(const.net.host_switch[record.dst_host])
    distance = np.int64(const.distance[switch, dst_switch])
    record.detour = np.int64(record.detour) + 1 + distance - np.int64(record.distance)
    record.distance = distance
    record.hop += 1
    record.switch = switch
    record.entry = channel
    return switch


@inline
def conserves_packets(state):
    """Tell whether the packets sent are those delivered and those in flight."""
    scalars, pool = state.counters.scalars, state.pool
    in_flight = len(pool.packet) - np.int64(pool.free[len(pool.free) - 1])
    return scalars[Scalar.SENT_PACKETS] == scalars[Scalar.DELIVERED_PACKETS] + in_flight
