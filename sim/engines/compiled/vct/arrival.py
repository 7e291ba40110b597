# SPDX-License-Identifier: Apache-2.0
"""Packets that come to a switch, from other switches and from hosts."""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.port_sets import place_of
from flitlab.models.rules.route import at_target, next_port, toward_of
from flitlab.models.rules.tables import ADAPTIVE, PROGRESSIVE, TABLE, VIA
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    next_block,
    prefetch_next_block,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.memory import MIN_BATCH, PREFETCH_BATCH, prefetch, unlikely
from flitlab.sim.engines.compiled.messages import record_injection
from flitlab.sim.engines.compiled.records import (
    NONE,
    TICK_LIMIT,
    ZERO,
    inject_packet,
)
from flitlab.sim.engines.compiled.timing_wheel import drain, prefetch_bucket, schedule
from flitlab.sim.engines.compiled.ugal import reroute, uses_congestion
from flitlab.sim.engines.compiled.vct.credits import preferred, use_room, wait_for_room
from flitlab.sim.engines.compiled.vct.requests import ports_of, present
from flitlab.sim.engines.compiled.vct.ugal import ahead, choose_route


@inner
def _route(const, state, packet, tick):
    """Set the output of a packet that has come to a switch; NOBODY if that is decided every tick."""
    record = state.pool.packet[packet]
    here = _switch_of(state, packet)
    destination = np.int64(record.dst_host)
    target = np.int64(const.net.host_switch[destination])
    way, hop = np.int64(record.route), np.int64(record.hop)
    if at_target(const.routes, way, hop, here, target):
        record.output = const.net.ports.eject[destination]
    elif const.rule == ADAPTIVE:
        record.output = NONE
    else:
        source, sequence = np.int64(record.src_host), np.int64(record.sequence)
        port = next_port(
            const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
        )
        record.output = const.net.ports.out_base[here] + port


@inner
def _arrive(const, state, packet, tick):
    """Let a packet, whose header has been read, join its input VC.

    If it is alone there it is at the front, and asks for its output.
    """
    record = state.pool.packet[packet]
    vc = np.int64(record.input_vc)
    record.next = NONE
    if uses_congestion(const.rule):
        state.vc[vc].queued += record.flits
    if state.vc[vc].front == NONE:
        state.vc[vc].front = packet
        state.vc[vc].back = packet
        present(const, state, vc, packet, max(tick, np.int64(state.vc[vc].left)))
    else:
        state.pool.packet[state.vc[vc].back].next = packet
        state.vc[vc].back = packet


@inner
def _send(const, state, host, tick):
    """Start a host's oldest packet if that is possible, and wake the host when that may change."""
    host_record = state.host[host]
    if host_record.created_at > tick:
        if host_record.created_at < TICK_LIMIT:
            schedule(state.senders, host, min(host_record.created_at, tick + state.senders.mask))
        return
    if host_record.free_at > tick:
        schedule(state.senders, host, host_record.free_at)
        return
    flits = host_record.flits
    sender = len(state.rows) + host
    place, _ = preferred(const, state, ZERO, sender, ZERO, const.vcs, flits)
    if place == NONE:
        wait_for_room(const, state, sender, ZERO, const.vcs)
        return
    packet = inject_packet(const, state, host, tick)
    record_injection(state.program, state.pool.packet[packet].send, tick + flits)
    choose_route(const.compares, const, state, packet, tick)
    state.pool.packet[packet].input_vc = const.net.ports.inject[host] * const.vcs + place
    use_room(const, state, sender, place, flits)
    comes = tick + const.injection + const.header
    if const.delayed:
        comes += const.access[host]
    schedule_event(state.arriving, packet, comes)
    schedule(state.senders, host, min(max(host_record.created_at, tick + flits), tick + state.senders.mask))


@inner
def notice(const, state, host, tick):
    """Have a host that has a packet to send looked at in this tick."""
    schedule(state.senders, host, tick)


@inner
def arrive_all(const, state, tick):
    """Take in the packets whose header has been read by now.

    What a full chunk of them needs begins to be loaded before it is used.
    """
    arriving = state.arriving
    block, count = take_bucket(arriving, tick)
    _think_again(const.compares, const, state, block, count, tick)
    while block != NONE:
        prefetch_next_block(arriving, block)
        if unlikely(count == BLOCK_ENTRIES):
            _ask_for_routes(const.net, const.routes, arriving, state.pool, state.vc, block)
        for i in range(count):
            packet = entry_in(arriving, block, i)
            _route(const, state, packet, tick)
            _ask_for_rows(const, state, packet)
        if unlikely(count == BLOCK_ENTRIES):
            _ask_for_bits(arriving, state.pool, state.outputs, block, tick)
        for i in range(count):
            _arrive(const, state, entry_in(arriving, block, i), tick)
        state.counters.scalars[EVENTS] += count
        block, count = release_block(arriving, block), BLOCK_ENTRIES


@inner
def _ask_for_rows(const, state, packet):
    """Begin to load the rows of the outputs that a packet waits for."""
    output = np.int64(state.pool.packet[packet].output)
    if output != NONE:
        prefetch(state.rows, output)
    elif const.rule == ADAPTIVE:
        here = _switch_of(state, packet)
        ports = ports_of(const, state, packet, here)
        while ports:
            prefetch(state.rows, const.net.ports.out_base[here] + lowest(ports))
            ports &= ports - np.uint64(1)


@inner
def _think_again(compares, const, state, block, count, tick):
    """Decide the ways of all packets of a list once more, if routes ask for that, before the first joins its VC.

    compares: ``const.compares``. chunk, filled: the first of the list, and how many packets are in it.
    """
    if compares is None:
        return
    while const.rule == PROGRESSIVE and block != NONE:
        for i in range(count):
            packet = entry_in(state.arriving, block, i)
            reroute(const, state, packet, _switch_of(state, packet), ahead, tick)
        block, count = next_block(state.arriving, block), BLOCK_ENTRIES


@inner
def _switch_of(state, packet):
    """Return the switch to which a packet has come."""
    return np.int64(state.vc[state.pool.packet[packet].input_vc].switch)


@routine
def _ask_for_routes(net, routes, arriving, pool, vc, block):
    """Begin to load what it takes to route the packets of a full chunk: next hops where they are in a table.

    vc: the records of VCs.
    """
    for i in range(BLOCK_ENTRIES):
        prefetch(pool.packet, entry_in(arriving, block, i))
    for i in range(BLOCK_ENTRIES):
        prefetch(vc, pool.packet[entry_in(arriving, block, i)].input_vc)
    if routes.form == TABLE or routes.form == VIA:
        for i in range(BLOCK_ENTRIES):
            record = pool.packet[entry_in(arriving, block, i)]
            here, target = np.int64(vc[record.input_vc].switch), np.int64(net.host_switch[record.dst_host])
            toward = toward_of(routes, np.int64(record.route), np.int64(record.hop), target)
            prefetch(routes.ports.bytes, place_of(routes.ports, toward, here))


@routine
def _ask_for_bits(arriving, pool, outputs, block, tick):
    """Begin to load the words by which the packets of a full chunk will wake the outputs that they ask for.

    outputs: the wheel of outputs.
    """
    for i in range(BLOCK_ENTRIES):
        output = np.int64(pool.packet[entry_in(arriving, block, i)].output)
        if output != NONE:
            prefetch_bucket(outputs, output, tick)


@inner
def send_all(const, state, tick):
    """Let every host send that is to be looked at in this tick and can."""
    count = drain(state.senders, tick, state.members)
    for begin in range(0, count, PREFETCH_BATCH):
        end = min(count, begin + PREFETCH_BATCH)
        if unlikely(count > MIN_BATCH):
            _ask_for_hosts(const.net, const.vc_bits, state.host, state.room, len(state.rows), state.members[begin:end])
        for i in range(begin, end):
            _send(const, state, np.int64(state.members[i]), tick)
    state.counters.scalars[EVENTS] += count


@routine
def _ask_for_hosts(net, vc_bits, records, room, outputs, hosts):
    """Begin to load what it takes to let some hosts send.

    vc_bits, room: of the run's constants and state. records: of all hosts. outputs: how many there are. hosts: uint32.
    """
    for host in hosts:
        prefetch(records, host)
        prefetch(net.arrivals.keep, host)
        prefetch(room, (outputs + np.int64(host)) << vc_bits)
