# SPDX-License-Identifier: Apache-2.0
"""Hosts: a packet at a time, a flit a tick."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.messages import leave
from flitlab.sim.engines.compiled.records import LATE, NOBODY, create
from flitlab.sim.engines.compiled.ugal import set_way
from flitlab.sim.engines.compiled.wheel import drain, wake
from flitlab.sim.engines.compiled.wormhole.flits import credits
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.state import HEAD, ONE, PACKET_AT, TAIL, U
from flitlab.sim.engines.compiled.wormhole.ugal import ahead


@inline
def _next_vc(const, state, host):
    """Find the next of a host's injection VCs that has credits, after the last one used; NOBODY if none has."""
    vc, first = U(state.sending[host].vc), U(const.net.ports.inject[host]) * U(const.vcs)
    for _ in range(const.vcs):
        vc = vc + ONE if vc + ONE < first + U(const.vcs) else first
        if credits(state, vc) > 0:
            return vc
    return U(NOBODY)


@inline
def _note_target(const, state, packet):
    """Note in a packet's record where it leaves the network, for every switch on its way."""
    record = state.pool.packet[packet]
    destination = record.destination
    record.where = const.net.host_switch[destination]
    record.output = const.net.ports.eject[destination]


@inline
def _send(const, state, host, tick):
    """Let a host send a flit if it can; a credit that it lacks wakes it again."""
    sending, flit = state.sending[host], U(0)
    if sending.packet == NOBODY:
        if state.host[host].born > tick:
            if state.host[host].born < LATE:
                wake(state.senders, host, min(state.host[host].born, tick + state.senders.mask))
            return
        vc = _next_vc(const, state, host)
        if vc == U(NOBODY):
            return
        sending.left = state.host[host].flits
        packet = create(const, state, np.int64(host), tick)
        _note_target(const, state, packet)
        set_way(const, state, packet, ahead, tick)
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
        leave(state.program, state.pool.packet[sending.packet].send, tick + 1)
        sending.packet = NOBODY
        following = min(max(state.host[host].born, following), tick + state.senders.mask)
    push(state, U(sending.queue), flit, vc)
    wake(state.senders, host, following)


@inline
def notice(const, state, host, tick):
    """Have a host that has a packet to send looked at in this tick."""
    wake(state.senders, host, tick)


@inline
def send_all(const, state, tick):
    """Let every host send that is to be looked at in this tick and can."""
    count = drain(state.senders, tick, state.sender)
    for i in range(count):
        _send(const, state, U(state.sender[i]), tick)
    state.tally.scalars[EVENTS] += count
