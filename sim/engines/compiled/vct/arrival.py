# SPDX-License-Identifier: Apache-2.0
"""Packets that come to a switch, from other switches and from hosts."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import at_target, next_port
from flitlab.models.rules.tables import ADAPTIVE, PROGRESSIVE
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.messages import leave
from flitlab.sim.engines.compiled.records import (
    DESTINATION,
    FLITS,
    H_BORN,
    H_FLITS,
    H_FREE,
    HOP,
    INPUT_VC,
    LATE,
    NEXT,
    NOBODY,
    OUTPUT,
    SEND,
    SEQUENCE,
    SOURCE,
    WAY,
    ZERO,
    create,
)
from flitlab.sim.engines.compiled.ugal import by_congestion, set_way, think_again
from flitlab.sim.engines.compiled.vct.rows import preferred, present
from flitlab.sim.engines.compiled.vct.state import BACK, FRONT, LEFT, QUEUED, ROOM, SWITCH
from flitlab.sim.engines.compiled.vct.ugal import ahead
from flitlab.sim.engines.compiled.wheel import drain, wake


@inner
def _route(const, state, packet, tick):
    """Set the output of a packet that has come to a switch; NOBODY if that is decided every tick."""
    here = np.int64(state.vc[state.pool.packet[packet, INPUT_VC], SWITCH])
    if const.rule == PROGRESSIVE:
        think_again(const, state, packet, here, ahead, tick)
    destination = np.int64(state.pool.packet[packet, DESTINATION])
    target = np.int64(const.net.host_switch[destination])
    way, hop = np.int64(state.pool.packet[packet, WAY]), np.int64(state.pool.packet[packet, HOP])
    if at_target(const.routes, way, hop, here, target):
        state.pool.packet[packet, OUTPUT] = const.net.ports.eject[destination]
    elif const.rule == ADAPTIVE:
        state.pool.packet[packet, OUTPUT] = NOBODY
    else:
        source, sequence = np.int64(state.pool.packet[packet, SOURCE]), np.int64(state.pool.packet[packet, SEQUENCE])
        port = next_port(
            const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
        )
        state.pool.packet[packet, OUTPUT] = const.net.ports.out_base[here] + port


@inner
def _arrive(const, state, packet, tick):
    """Let a packet, whose header has been read, join its input VC.

    If it is alone there it is at the front, and asks for its output.
    """
    vc = np.int64(state.pool.packet[packet, INPUT_VC])
    state.pool.packet[packet, NEXT] = NOBODY
    if by_congestion(const.rule):
        state.vc[vc, QUEUED] += state.pool.packet[packet, FLITS]
    if state.vc[vc, FRONT] == NOBODY:
        state.vc[vc, FRONT] = packet
        state.vc[vc, BACK] = packet
        present(const, state, vc, packet, max(tick, np.int64(state.vc[vc, LEFT])))
    else:
        state.pool.packet[state.vc[vc, BACK], NEXT] = packet
        state.vc[vc, BACK] = packet


@inner
def _send(const, state, host, tick):
    """Start a host's oldest packet if that is possible, and wake the host when that may change."""
    host_record = state.host[host]
    if host_record[H_BORN] > tick:
        if host_record[H_BORN] < LATE:
            wake(state.senders, host, min(host_record[H_BORN], tick + state.senders.mask))
        return
    if host_record[H_FREE] > tick:
        wake(state.senders, host, host_record[H_FREE])
        return
    flits = host_record[H_FLITS]
    first = const.net.ports.inject[host] * const.vcs
    vc, when = preferred(const, state, ZERO, first, first + const.vcs, flits, tick)
    if vc == NOBODY:
        if when < LATE:
            wake(state.senders, host, when)
        return
    packet = create(const, state, host, tick)
    leave(state.program, state.pool.packet[packet, SEND], tick + flits)
    set_way(const, state, packet, ahead, tick)
    state.pool.packet[packet, INPUT_VC] = vc
    state.vc[vc, ROOM] -= flits
    ready = (tick + const.injection + const.header) & state.senders.mask
    state.pool.packet[packet, NEXT] = state.arriving[ready]
    state.arriving[ready] = packet
    wake(state.senders, host, min(max(host_record[H_BORN], tick + flits), tick + state.senders.mask))


@inner
def notice(const, state, host, tick):
    """Have a host that has a packet to send looked at in this tick."""
    wake(state.senders, host, tick)


@inner
def arrive_all(const, state, tick):
    """Take in the packets whose header has been read by now.

    All are routed before the first joins its VC, so that look-ups in memory overlap.
    """
    slot = tick & state.outputs.mask
    first = np.int64(state.arriving[slot])
    state.arriving[slot] = NOBODY
    packet = first
    while packet != NOBODY:
        _route(const, state, packet, tick)
        output = np.int64(state.pool.packet[packet, OUTPUT])
        if output != NOBODY:
            prefetch(state.rows, output)
        packet = np.int64(state.pool.packet[packet, NEXT])
    packet = first
    while packet != NOBODY:
        following = np.int64(state.pool.packet[packet, NEXT])
        _arrive(const, state, packet, tick)
        packet = following
        state.tally.scalars[EVENTS] += 1


@inner
def send_all(const, state, tick):
    """Let every host send that is to be looked at in this tick and can."""
    count = drain(state.senders, tick, state.members)
    for i in range(count):
        _send(const, state, state.members[i], tick)
    state.tally.scalars[EVENTS] += count
