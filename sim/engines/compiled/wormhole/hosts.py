# SPDX-License-Identifier: Apache-2.0
"""Hosts: a packet at a time, a flit a tick."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.messages import record_injection
from flitlab.sim.engines.compiled.records import NONE, TICK_LIMIT, inject_packet
from flitlab.sim.engines.compiled.timing_wheel import drain, schedule
from flitlab.sim.engines.compiled.ugal import choose_route
from flitlab.sim.engines.compiled.wormhole.flits import credits
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.state import HEAD, ONE, PACKET_AT, TAIL, U
from flitlab.sim.engines.compiled.wormhole.ugal import queue_estimate


@inner
def _next_vc(const, state, host):
    """Find the next of a host's injection VCs that has credits, after the last one used; NOBODY if none has."""
    vc, first = U(state.sending[host].vc), U(const.net.ports.inject[host]) * U(const.vcs)
    for _ in range(const.vcs):
        vc = vc + ONE if vc + ONE < first + U(const.vcs) else first
        if credits(state, vc) > 0:
            return vc
    return U(NONE)


@inner
def _note_target(const, state, packet):
    """Note in a packet's record where it leaves the network, for every switch on its way."""
    record = state.pool.packet[packet]
    destination = record.dst_host
    record.switch = const.net.host_switch[destination]
    record.output = const.net.ports.eject[destination]


@inner
def _send(const, state, host, tick):
    """Let a host send a flit if it can; a credit that it lacks wakes it again."""
    sending, flit = state.sending[host], U(0)
    if sending.packet == NONE:
        if state.host[host].created_at > tick:
            if state.host[host].created_at < TICK_LIMIT:
                schedule(state.host_wheel, host, min(state.host[host].created_at, tick + state.host_wheel.mask))
            return
        vc = _next_vc(const, state, host)
        if vc == U(NONE):
            return
        sending.left = state.host[host].flits
        packet = inject_packet(const, state, np.int64(host), tick)
        _note_target(const, state, packet)
        choose_route(const, state, packet, queue_estimate, tick)
        sending.packet = packet
        sending.vc = vc
        flit = HEAD
    vc = U(sending.vc)
    if credits(state, vc) == 0:
        return
    state.vc[vc].credits = U(state.vc[vc].credits) - ONE
    flit |= U(sending.packet) << PACKET_AT
    left = U(sending.left) - ONE
    sending.left = left
    following = tick + 1
    if left == U(0):
        flit |= TAIL
        record_injection(state.program, state.pool.packet[sending.packet].send, tick + 1)
        sending.packet = NONE
        following = min(max(state.host[host].created_at, following), tick + state.host_wheel.mask)
    push(state, U(sending.queue), flit, vc)
    schedule(state.host_wheel, host, following)


@inner
def notice(const, state, host, tick):
    """Have a host that has a packet to send looked at in this tick."""
    schedule(state.host_wheel, host, tick)


@inner
def send_all(const, state, tick):
    """Let every host send that is to be looked at in this tick and can."""
    count = drain(state.host_wheel, tick, state.sender)
    for i in range(count):
        _send(const, state, U(state.sender[i]), tick)
    state.counters.scalars[EVENTS] += count
