# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching in frames, rule ``frame``, compiled.

Decisions are made at the boundaries of frames, for all switches; in between, packets only arrive and leave. A packet
that takes a slot of a channel is at once linked into the list of heads that its next switch has at a later boundary.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.deflect import least_bound_port
from flitlab.models.rules.packets import Packets, destination
from flitlab.models.rules.port_sets import PortSets, ports_towards
from flitlab.models.rules.ports import make_ports
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.sim.engines.base import ChannelCounter, Scalar
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    CalendarQueue,
    calendar_ticks,
    entry_in,
    make_calendar_queue,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.hot_potato import (
    conserves_packets,
    count_grant,
    inject_deflected,
    insert_by_rank,
    make_constants,
    make_vc_constants,
    move_to_next_switch,
    packet_id,
    receive_heads,
)
from flitlab.sim.engines.compiled.invariants import DEFLECTED_PACKET, Violation
from flitlab.sim.engines.compiled.memory import unlikely
from flitlab.sim.engines.compiled.messages import FIRST, Program, next_active_tick, record_injection
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.ranks import receiver
from flitlab.sim.engines.compiled.records import (
    NONE,
    Net,
    RunCounters,
    channels_of_outputs,
    deliver_packets,
    draw_first_packets,
    log_is_full,
    make_common_state,
    run_program,
)


class FrameConstants(NamedTuple):
    """Constants of a run under rule ``frame``; names that end with ``_ticks`` are times in ticks."""

    net: Net
    vcs: int  # slots of a channel in a frame
    flits: int  # of every packet
    frame_ticks: int
    hop_frames: int  # frames from one slot of a packet to the next
    header_ticks: int
    injection_ticks: int
    routes: PortSets  # ports on shortest paths
    distance: np.ndarray  # uint8 or uint16 [switches, switches]: channels from a switch to another
    delay: Ints  # int64 [outputs]: ticks from the sending of a flit to its arrival
    dst: Ints  # int64 [channels]: switch at the end of each
    host_start: Ints  # int64 [switches + 1]: first host of each switch


class FrameState(NamedTuple):
    """State of a run under rule ``frame``: all that changes."""

    pool: Pool
    heads: Words  # uint32 [hop_frames + 1, switches]: first packet that takes a slot at a boundary, by rank, or NONE
    taken: Words  # uint32 [outputs]: slots of the present frame
    resident: Words  # uint32 [switches]: packets whose head is in the switch, and whose tail has not left
    of_entry: Words  # uint32 [channels + hosts]: these packets by input
    host: np.ndarray  # HOST [hosts]
    arriving: CalendarQueue  # packets, by the tick at which their head arrives
    leaving: CalendarQueue  # inputs, by the tick after which the tail of one of their packets has left
    ejecting: CalendarQueue  # packets, by the tick at which their tail is delivered
    violated: Ints  # int64 [1]: a Violation, 0 if there is none
    program: Program | None
    counters: RunCounters


def make_constants_and_state(
    scenario: Scenario[Deflection], arrivals: Arrivals, packets: Packets, seed: int
) -> tuple[FrameConstants, FrameState]:
    """Make the constants and the state of a run at tick 0; parameters as under rule ``pool``."""
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    delays = make_vc_constants(scenario, ports)
    outputs, slowest = len(delays["delay"]), int(delays["delay"].max())
    ticks = calendar_ticks(model.frame_ticks + slowest + 1)
    constants = FrameConstants(
        **make_constants(scenario, ports, arrivals, packets, seed),
        **delays,
        frame_ticks=model.frame_ticks,
        hop_frames=model.hop_frames,
    )
    frames = 2 + -(-slowest // model.frame_ticks)  # in which an output has packets that have not arrived
    slots = model.vcs * outputs
    state = FrameState(
        **make_common_state(scenario, constants.net, slots * (frames + model.hop_frames), DEFLECTED_PACKET),
        heads=np.full((model.hop_frames + 1, topology.switches), NONE, np.uint32),
        taken=np.zeros(outputs, np.uint32),
        resident=np.zeros(topology.switches, np.uint32),
        of_entry=np.zeros(topology.channels + topology.hosts, np.uint32),
        arriving=make_calendar_queue(ticks, slots * frames),
        leaving=make_calendar_queue(ticks, slots * frames),
        ejecting=make_calendar_queue(ticks, slots * frames),
        violated=np.zeros(1, np.int64),
    )
    draw_first_packets(constants, state)
    return constants, state


@inline
def _minimal_output(const, state, switch, packet_id, hops, dst_host):
    """Return the least taken output on a shortest path, or to the host; NONE if all their slots are taken."""
    first, dst_switch = np.int64(const.net.ports.out_base[switch]), np.int64(const.net.host_switch[dst_host])
    if dst_switch == switch:
        output = np.int64(const.net.ports.eject[dst_host])
        return output if state.taken[output] < const.vcs else NONE
    ports = ports_towards(const.routes, dst_switch, switch)
    port = least_bound_port(ports, state.taken, first, const.vcs, const.net.seed, packet_id, hops)
    return first + port if port >= 0 else NONE


@inline
def _take_slot(const, state, packet, output, tick):
    """Give a packet the next slot of an output."""
    record, slot = state.pool.packet[packet], np.int64(state.taken[output])
    channel, delay = np.int64(const.net.ports.out_channel[output]), const.delay[output]
    state.taken[output] = slot + 1
    tail = tick + slot + (const.flits - 1) * const.vcs
    schedule_event(state.leaving, np.int64(record.entry), tail + 1)
    count_grant(const, state, packet, channel)
    if channel == NONE:
        schedule_event(state.ejecting, packet, tail + delay)
        return
    next_switch = move_to_next_switch(const, state, packet, channel)
    schedule_event(state.arriving, packet, tick + slot + delay)
    heads = state.heads[(tick // const.frame_ticks + const.hop_frames) % len(state.heads)]
    heads[next_switch] = insert_by_rank(const, state, np.int64(heads[next_switch]), packet)


@inline
def _forward_heads(const, state, switch, tick):
    """Give the heads of a switch their slots of the frame that begins at ``tick``."""
    heads = state.heads[tick // const.frame_ticks % len(state.heads)]
    first = np.int64(const.net.ports.out_base[switch])
    packet = np.int64(heads[switch])
    heads[switch] = NONE
    while packet != NONE:
        record = state.pool.packet[packet]
        next_packet, identity, hops = np.int64(record.next), packet_id(const, record), np.int64(record.hop)
        output = _minimal_output(const, state, switch, identity, hops, np.int64(record.dst_host))
        if output == NONE:
            ports = (np.uint64(2) << np.uint64(const.net.ports.network_outs[switch] - 1)) - np.uint64(1)
            port = least_bound_port(ports, state.taken, first, const.vcs, const.net.seed, identity, hops)
            record.deflections += 1
            output = first + port
            if port < 0:
                state.violated[0] = Violation.NO_SLOT
                return
        _take_slot(const, state, packet, output, tick)
        packet = next_packet


@inline
def _receive_packet(const, state, packet, tick):
    """Count a packet whose head arrives at a switch by an input."""
    record = state.pool.packet[packet]
    switch, entry = np.int64(record.switch), np.int64(record.entry)
    state.resident[switch] += np.uint32(1)
    state.of_entry[entry] += np.uint32(1)
    scalars = state.counters.scalars
    scalars[Scalar.OCCUPANCY_MAX] = max(scalars[Scalar.OCCUPANCY_MAX], np.int64(state.resident[switch]))
    scalars[Scalar.INPUT_PACKETS_MAX] = max(scalars[Scalar.INPUT_PACKETS_MAX], np.int64(state.of_entry[entry]))


@inline
def _inject_from_hosts(const, state, switch, tick):
    """Let the hosts of a switch, in rotation, take slots of outputs on shortest paths."""
    first, count = const.host_start[switch], const.host_start[switch + 1] - const.host_start[switch]
    for i in range(count):
        host = first + (tick // const.frame_ticks + i) % count
        sent_at = tick - const.header_ticks - const.injection_ticks
        for place in range(const.vcs):
            if state.host[host].created_at > sent_at:
                break
            if not _inject(const, state, switch, host, sent_at, place, tick):
                break


@inline
def _inject(const, state, switch, host, sent_at, place, tick):
    """Inject the next packet of a host, if an output on a shortest path has a slot; tell whether it had."""
    identity = state.host[host].sequence * const.net.hosts + host
    output = _minimal_output(
        const, state, switch, identity, np.int64(0), _next_destination(state.program, const, state, host)
    )
    if output == NONE:
        return False
    packet = inject_deflected(const, state, switch, host, sent_at)
    tail_left_at = max(tick, sent_at + place + (const.flits - 1) * const.vcs + 1)
    record_injection(state.program, state.pool.packet[packet].send, tail_left_at)
    _receive_packet(const, state, packet, tick)
    _take_slot(const, state, packet, output, tick)
    return True


@inline
def _next_destination(program, const, state, host):
    """Return the destination of a host's next packet."""
    if program is None:
        return destination(const.net.packets, const.net.seed, host, state.host[host].sequence)
    return program.host[receiver(program.ranks, program.queue[host, FIRST])]


@inline
def _remove_departed(const, state, tick):
    """Remove packets whose tail has left before ``tick``."""
    block, count = take_bucket(state.leaving, tick)
    channels = len(state.counters.channel_flits)
    while block != NONE:
        for i in range(count):
            entry = entry_in(state.leaving, block, i)
            switch = const.dst[entry] if entry < channels else np.int64(const.net.host_switch[entry - channels])
            state.resident[switch] -= np.uint32(1)
            state.of_entry[entry] -= np.uint32(1)
        block, count = release_block(state.leaving, block), BLOCK_ENTRIES


@inline
def _keep_created_at(const, state, host, tick):
    """Schedule nothing for a host with a new message: switches ask their hosts at every boundary."""


def settle_channels(const: FrameConstants, state: FrameState, tick: int, channels: Ints) -> None:
    """Subtract the flits of the present frame that are sent from ``tick`` on from the counters of channels, in place.

    A packet is counted when it takes its slot v, whose flit j is sent v + j V ticks after the boundary.
    """
    slots = np.arange(const.vcs)
    elapsed = (tick - 1) % const.frame_ticks + 1
    sent = np.clip(-((slots - elapsed) // const.vcs), 0, const.flits)
    taken, rows = slots < state.taken[:, None], channels_of_outputs(const, state)
    channels[rows, ChannelCounter.FLITS] -= (taken * (const.flits - sent)).sum(axis=1)
    channels[rows, ChannelCounter.PACKETS] -= (taken & (sent == 0)).sum(axis=1)


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
        _remove_departed(const, state, tick)
        receive_heads(const, state, state.resident, tick, _receive_packet)
        deliver_packets(const, state, tick)
        run_program(state.program, const, state, tick, _keep_created_at)
        if tick % const.frame_ticks == 0:
            state.taken[:] = 0
            for switch in range(const.net.switches):
                _forward_heads(const, state, switch, tick)
                _inject_from_hosts(const, state, switch, tick)
            state.counters.scalars[Scalar.EVENTS] += const.net.switches
            if unlikely(state.violated[0] > 0):
                return -state.violated[0]
        tick = next_active_tick(state.program, state, tick, until, 2 * const.frame_ticks)
    return tick if conserves_packets(state) else -Violation.CONSERVATION
