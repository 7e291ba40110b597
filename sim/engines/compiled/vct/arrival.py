# SPDX-License-Identifier: Apache-2.0
"""Packets that come to a switch, from other switches and from hosts."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.port_sets import set_offset
from flitlab.models.rules.route import at_destination, leg_target, next_port
from flitlab.models.rules.tables import ADAPTIVE, PROGRESSIVE, TABLE, VIA
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.due import FULL, ask_for_next, next_chunk, packet_in, put, release, take
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, prefetch, seldom
from flitlab.sim.engines.compiled.messages import leave
from flitlab.sim.engines.compiled.records import (
    LATE,
    NOBODY,
    ZERO,
    create,
)
from flitlab.sim.engines.compiled.ugal import by_congestion, think_again
from flitlab.sim.engines.compiled.vct.room import preferred, use_room, wait_for_room
from flitlab.sim.engines.compiled.vct.rows import ports_of, present
from flitlab.sim.engines.compiled.vct.ugal import ahead, set_way
from flitlab.sim.engines.compiled.wheel import ask_for_bit, drain, wake


@inline
def _route(const, state, packet, tick):
    """Set the output of a packet that has come to a switch; NOBODY if that is decided every tick."""
    record = state.pool.packet[packet]
    here = _switch_of(state, packet)
    destination = np.int64(record.destination)
    target = np.int64(const.net.host_switch[destination])
    way, hop = np.int64(record.way), np.int64(record.hop)
    if at_destination(const.routes, way, hop, here, target):
        record.output = const.net.ports.eject[destination]
    elif const.rule == ADAPTIVE:
        record.output = NOBODY
    else:
        source, sequence = np.int64(record.source), np.int64(record.sequence)
        port = next_port(
            const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
        )
        record.output = const.net.ports.out_base[here] + port


@inline
def _arrive(const, state, packet, tick):
    """Let a packet, whose header has been read, join its input VC.

    If it is alone there it is at the front, and asks for its output.
    """
    record = state.pool.packet[packet]
    vc = np.int64(record.input_vc)
    record.next = NOBODY
    if by_congestion(const.rule):
        state.vc[vc].queued += record.flits
    if state.vc[vc].front == NOBODY:
        state.vc[vc].front = packet
        state.vc[vc].back = packet
        present(const, state, vc, packet, max(tick, np.int64(state.vc[vc].left)))
    else:
        state.pool.packet[state.vc[vc].back].next = packet
        state.vc[vc].back = packet


@inline
def _send(const, state, host, tick):
    """Start a host's oldest packet if that is possible, and wake the host when that may change."""
    host_record = state.host[host]
    if host_record.born > tick:
        if host_record.born < LATE:
            wake(state.senders, host, min(host_record.born, tick + state.senders.mask))
        return
    if host_record.free > tick:
        wake(state.senders, host, host_record.free)
        return
    flits = host_record.flits
    sender = len(state.rows) + host
    place, _ = preferred(const, state, ZERO, sender, ZERO, const.vcs, flits)
    if place == NOBODY:
        wait_for_room(const, state, sender, ZERO, const.vcs)
        return
    packet = create(const, state, host, tick)
    leave(state.program, state.pool.packet[packet].send, tick + flits)
    set_way(const.compares, const, state, packet, tick)
    state.pool.packet[packet].input_vc = const.net.ports.inject[host] * const.vcs + place
    use_room(const, state, sender, place, flits)
    comes = tick + const.injection + const.header
    if const.delayed:
        comes += const.access[host]
    put(state.arriving, packet, comes)
    wake(state.senders, host, min(max(host_record.born, tick + flits), tick + state.senders.mask))


@inline
def notice(const, state, host, tick):
    """Have a host that has a packet to send looked at in this tick."""
    wake(state.senders, host, tick)


@inline
def arrive_all(const, state, tick):
    """Take in the packets whose header has been read by now.

    What a full chunk of them needs begins to be loaded before it is used.
    """
    arriving = state.arriving
    chunk, filled = take(arriving, tick)
    _think_again(const.compares, const, state, chunk, filled, tick)
    while chunk != NOBODY:
        ask_for_next(arriving, chunk)
        if seldom(filled == FULL):
            _ask_for_routes(const.net, const.routes, arriving, state.pool, state.vc, chunk)
        for i in range(filled):
            packet = packet_in(arriving, chunk, i)
            _route(const, state, packet, tick)
            _ask_for_rows(const, state, packet)
        if seldom(filled == FULL):
            _ask_for_bits(arriving, state.pool, state.outputs, chunk, tick)
        for i in range(filled):
            _arrive(const, state, packet_in(arriving, chunk, i), tick)
        state.tally.scalars[EVENTS] += filled
        chunk, filled = release(arriving, chunk), FULL


@inline
def _ask_for_rows(const, state, packet):
    """Begin to load the rows of the outputs that a packet waits for."""
    output = np.int64(state.pool.packet[packet].output)
    if output != NOBODY:
        prefetch(state.rows, output)
    elif const.rule == ADAPTIVE:
        here = _switch_of(state, packet)
        ports = ports_of(const, state, packet, here)
        while ports:
            prefetch(state.rows, const.net.ports.out_base[here] + lowest(ports))
            ports &= ports - np.uint64(1)


@inline
def _think_again(compares, const, state, chunk, filled, tick):
    """Decide the ways of all packets of a list once more, if routes ask for that, before the first joins its VC.

    compares: ``const.compares``. chunk, filled: the first of the list, and how many packets are in it.
    """
    if compares is None:
        return
    while const.rule == PROGRESSIVE and chunk != NOBODY:
        for i in range(filled):
            packet = packet_in(state.arriving, chunk, i)
            think_again(const, state, packet, _switch_of(state, packet), ahead, tick)
        chunk, filled = next_chunk(state.arriving, chunk), FULL


@inline
def _switch_of(state, packet):
    """Return the switch to which a packet has come."""
    return np.int64(state.vc[state.pool.packet[packet].input_vc].switch)


@device_function
def _ask_for_routes(net, routes, arriving, pool, vc, chunk):
    """Begin to load what it takes to route the packets of a full chunk: next hops where they are in a table.

    vc: the records of VCs.
    """
    for i in range(FULL):
        prefetch(pool.packet, packet_in(arriving, chunk, i))
    for i in range(FULL):
        prefetch(vc, pool.packet[packet_in(arriving, chunk, i)].input_vc)
    if routes.form == TABLE or routes.form == VIA:
        for i in range(FULL):
            record = pool.packet[packet_in(arriving, chunk, i)]
            here, target = np.int64(vc[record.input_vc].switch), np.int64(net.host_switch[record.destination])
            toward = leg_target(routes, np.int64(record.way), np.int64(record.hop), target)
            prefetch(routes.ports.bytes, set_offset(routes.ports, toward, here))


@device_function
def _ask_for_bits(arriving, pool, outputs, chunk, tick):
    """Begin to load the words by which the packets of a full chunk will wake the outputs that they ask for.

    outputs: the wheel of outputs.
    """
    for i in range(FULL):
        output = np.int64(pool.packet[packet_in(arriving, chunk, i)].output)
        if output != NOBODY:
            ask_for_bit(outputs, output, tick)


@inline
def send_all(const, state, tick):
    """Let every host send that is to be looked at in this tick and can."""
    count = drain(state.senders, tick, state.members)
    for begin in range(0, count, AT_ONCE):
        end = min(count, begin + AT_ONCE)
        if seldom(count > FEW):
            _ask_for_hosts(const.net, const.vc_bits, state.host, state.room, len(state.rows), state.members[begin:end])
        for i in range(begin, end):
            _send(const, state, np.int64(state.members[i]), tick)
    state.tally.scalars[EVENTS] += count


@device_function
def _ask_for_hosts(net, vc_bits, records, room, outputs, hosts):
    """Begin to load what it takes to let some hosts send.

    vc_bits, room: of the run's constants and state. records: of all hosts. outputs: how many there are. hosts: uint32.
    """
    for host in hosts:
        prefetch(records, host)
        prefetch(net.arrivals.keep, host)
        prefetch(room, (outputs + np.int64(host)) << vc_bits)
