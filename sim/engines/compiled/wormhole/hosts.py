# SPDX-License-Identifier: Apache-2.0
"""Hosts inject one packet at a time, a flit per tick."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.messages import record_injection
from flitlab.sim.engines.compiled.records import NONE, TICK_LIMIT, inject_packet
from flitlab.sim.engines.compiled.timing_wheel import drain, schedule
from flitlab.sim.engines.compiled.ugal import choose_route
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.flits import free_credits
from flitlab.sim.engines.compiled.wormhole.layout import ONE, U
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.ugal import queue_estimate


@inline
def _next_injection_vc(const, state, host):
    """Return the next injection VC with credits, after the one used last; NONE if none has any."""
    vc, first = U(state.injecting[host].vc), U(const.net.ports.inject[host]) * U(const.vcs)
    for _ in range(const.vcs):
        vc = vc + ONE if vc + ONE < first + U(const.vcs) else first
        if free_credits(state, vc) > 0:
            return vc
    return U(NONE)


@inline
def _set_target(const, state, packet):
    """Store in a packet's record the switch and the output that eject it."""
    record = state.pool.packet[packet]
    dst_host = record.dst_host
    record.switch = const.net.host_switch[dst_host]
    record.output = const.net.ports.eject[dst_host]


@inline
def _hold_channel(output_ticks, const, state, host, tick):
    """Return the tick from which a host that sends a flit in ``tick`` can send another.

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return tick + 1
    state.host[host].free_at = tick + const.host_ticks
    return tick + const.host_ticks


@inline
def _is_sending(output_ticks, state, host, tick):
    """Tell whether a host still sends its last flit, and if so schedule it again.

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return False
    free_at = state.host[host].free_at
    if free_at > tick:
        schedule(state.host_wheel, host, free_at)
    return free_at > tick


@inline
def _inject_flit(const, state, host, tick):
    """Inject a flit of a host if possible; a returning credit schedules the host again."""
    injecting, flit = state.injecting[host], U(0)
    if _is_sending(const.output_ticks, state, host, tick):
        return
    if injecting.packet == NONE:
        if state.host[host].created_at > tick:
            if state.host[host].created_at < TICK_LIMIT:
                schedule(state.host_wheel, host, min(state.host[host].created_at, tick + state.host_wheel.mask))
            return
        vc = _next_injection_vc(const, state, host)
        if vc == U(NONE):
            return
        injecting.flits_left = state.host[host].flits
        packet = inject_packet(const, state, np.int64(host), tick)
        _set_target(const, state, packet)
        choose_route(const, state, packet, queue_estimate, tick)
        injecting.packet = packet
        injecting.vc = vc
        flit = layout.HEAD
    vc = U(injecting.vc)
    if free_credits(state, vc) == 0:
        return
    state.vc[vc].credits = U(state.vc[vc].credits) - ONE
    flit |= U(injecting.packet) << layout.PACKET_SHIFT
    flits_left = U(injecting.flits_left) - ONE
    injecting.flits_left = flits_left
    next_tick = _hold_channel(const.output_ticks, const, state, host, tick)
    if flits_left == U(0):
        flit |= layout.TAIL
        record_injection(state.program, state.pool.packet[injecting.packet].send, next_tick)
        injecting.packet = NONE
        next_tick = min(max(state.host[host].created_at, next_tick), tick + state.host_wheel.mask)
    push(state, U(injecting.queue), flit, vc)
    schedule(state.host_wheel, host, next_tick)


@inline
def schedule_host(const, state, host, tick):
    """Schedule the evaluation of a host that has packets to send."""
    schedule(state.host_wheel, host, tick)


@inline
def inject_flits(const, state, tick):
    """Inject flits at all hosts scheduled for ``tick``."""
    count = drain(state.host_wheel, tick, state.active_hosts)
    for i in range(count):
        _inject_flit(const, state, U(state.active_hosts[i]), tick)
    state.counters.scalars[Scalar.EVENTS] += count
