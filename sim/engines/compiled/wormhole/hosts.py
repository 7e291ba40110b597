# SPDX-License-Identifier: Apache-2.0
"""Hosts inject a flit per tick, of one packet at a time of each class of traffic."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.classes import goes_before
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.messages import record_injection
from flitlab.sim.engines.compiled.records import NONE, Tick, inject_packet
from flitlab.sim.engines.compiled.replies import end_reply
from flitlab.sim.engines.compiled.timing_wheel import drain, schedule
from flitlab.sim.engines.compiled.ugal import choose_route
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.flits import buffer_of, free_credits
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.shared_queues import may_start, occupy, release


@inline
def _next_injection_vc(classes, const, state, host, source):
    """Return the next injection VC with credits for a packet, after the one that its source used last.

    Parameters
    ----------
    classes: ``const.net.classes``.
    host, source: uint64, see :data:`~flitlab.sim.engines.compiled.records.HOST`.

    Returns
    -------
    The VC, uint64; NONE if none has credits, or packets of other classes of traffic are on those that have.
    """
    base = U(const.net.ports.inject[host]) * U(const.vcs)
    first, end = _injection_vcs(classes, const, source)
    first, end, vc = base + first, base + end, U(state.injecting[source].vc)
    for _ in range(end - first):
        vc = vc + U(1) if vc + U(1) < end else first
        if free_credits(state, vc) > 0 and not _is_taken(classes, const, state, host, vc):
            return vc
    return U(NONE)


@inline
def _injection_vcs(classes, const, source):
    """Return the first VC of packets of a source, and one past the last. classes: ``const.net.classes``."""
    if classes is None:
        return U(0), U(const.vcs)
    c = np.int64(source) // const.net.hosts
    return U(classes.first_vc[c]), U(classes.end_vc[c])


@inline
def _is_taken(classes, const, state, host, vc):
    """Tell whether a packet of a host is being injected on a VC. classes: ``const.net.classes``."""
    if classes is None:
        return False
    for c in range(classes.class_count):
        injecting = state.injecting[c * const.net.hosts + np.int64(host)]
        if injecting.packet != NONE and U(injecting.vc) == vc:
            return True
    return False


@inline
def _set_target(const, state, packet):
    """Store in a packet's record the switch and the output that eject it."""
    record = state.pool.packet[packet]
    dst_host = record.dst_host
    record.switch = const.net.ejection_switch[dst_host]
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
def _inject_flit(classes, const, state, host, tick):
    """Inject a flit of a host if possible; a returning credit schedules the host again.

    classes: ``const.net.classes``.
    """
    if _is_sending(const.output_ticks, state, host, tick):
        return
    if classes is not None:
        _inject_flit_of_class(classes, const, state, host, tick)
    else:
        injecting, flit = state.injecting[host], U(0)
        if injecting.packet == NONE:
            if state.host[host].created_at > tick:
                if state.host[host].created_at < Tick.LIMIT:
                    schedule(state.host_wheel, host, min(state.host[host].created_at, tick + state.host_wheel.mask))
                return
            if not may_start(state.shared_queues, state, host, tick):
                return
            vc = _next_injection_vc(classes, const, state, host, host)
            if vc == U(NONE):
                return
            flit = _start_packet(const, state, host, vc, tick)
        if free_credits(state, U(injecting.vc)) == 0:
            return
        next_tick = _push_flit(const, state, host, host, flit, tick)
        if injecting.packet == NONE:
            next_tick = min(max(state.host[host].created_at, next_tick), tick + state.host_wheel.mask)
        schedule(state.host_wheel, host, next_tick)


@inline
def _inject_flit_of_class(classes, const, state, host, tick):
    """Inject a flit of a class of traffic at a host if possible.

    classes: ``const.net.classes``.
    """
    best, best_vc, later, hosts = np.int64(-1), U(NONE), Tick.NEVER, const.net.hosts
    for k in range(1, classes.class_count + 1):
        c = (state.host[host].last_class + k) % classes.class_count
        source = U(c * hosts) + host
        vc, is_next = U(NONE), goes_before(classes.priority, c, best)
        if state.injecting[source].packet != NONE:
            if free_credits(state, U(state.injecting[source].vc)) > 0:
                vc = U(state.injecting[source].vc)
        elif state.host[source].created_at > tick:
            later = min(later, state.host[source].created_at)
        elif is_next and may_start(state.shared_queues, state, source, tick):
            vc = _next_injection_vc(classes, const, state, host, source)
        if vc != U(NONE) and is_next:
            best, best_vc = c, vc
    if best < 0:
        if later < Tick.LIMIT:
            schedule(state.host_wheel, host, min(later, tick + state.host_wheel.mask))
        return
    source, flit = U(best * hosts) + host, U(0)
    if state.injecting[source].packet == NONE:
        flit = _start_packet(const, state, source, best_vc, tick)
    state.host[host].last_class = best
    free_at = _push_flit(const, state, source, host, flit, tick)
    next_tick = Tick.NEVER
    for c in range(classes.class_count):
        source = U(c * hosts) + host
        is_partial = state.injecting[source].packet != NONE
        next_tick = min(next_tick, free_at if is_partial else max(state.host[source].created_at, free_at))
    schedule(state.host_wheel, host, min(next_tick, tick + state.host_wheel.mask))


@inline
def _start_packet(const, state, source, vc, tick):
    """Start the oldest packet of a source on a VC; return the flag of its head flit."""
    injecting = state.injecting[source]
    occupy(state.shared_queues, source)
    injecting.flits_left = state.host[source].flits
    packet = inject_packet(const, state, np.int64(source), tick)
    _set_target(const, state, packet)
    choose_route(const, state, packet, queue_estimate, tick)
    injecting.packet = packet
    injecting.vc = vc
    return layout.HEAD


@inline
def _push_flit(const, state, source, host, flit, tick):
    """Send the next flit of the packet that a source injects, on a VC with credits.

    Parameters
    ----------
    source, host: uint64, see :data:`~flitlab.sim.engines.compiled.records.HOST`.
    flit: uint64, HEAD for the first flit, else 0.
    tick: int64.

    Returns
    -------
    The tick from which the host can send another flit.
    """
    injecting = state.injecting[source]
    vc = U(injecting.vc)
    state.vc[vc].credits = U(state.vc[vc].credits) - U(1)
    flit |= U(injecting.packet) << layout.PACKET_SHIFT
    flits_left = U(injecting.flits_left) - U(1)
    injecting.flits_left = flits_left
    next_tick = _hold_channel(const.output_ticks, const, state, host, tick)
    if flits_left == U(0):
        flit |= layout.TAIL
        record_injection(state.program, state.pool.packet[injecting.packet].send, next_tick)
        injecting.packet = NONE
        release(state.shared_queues, const, state, source, next_tick)
        end_reply(state.pool.replies, const, source, next_tick)
    push(state, U(injecting.queue), flit, vc)
    return next_tick


@inline
def schedule_host(const, state, host, tick):
    """Schedule the evaluation of a host that has packets to send."""
    schedule(state.host_wheel, host, tick)


@inline
def inject_flits(const, state, tick):
    """Inject flits at all hosts scheduled for ``tick``."""
    count = drain(state.host_wheel, tick, state.active_hosts)
    for i in range(count):
        _inject_flit(const.net.classes, const, state, U(state.active_hosts[i]), tick)
    state.counters.scalars[Scalar.EVENTS] += count


@inline
def queue_estimate(const, state, switch, port, tick):
    """Return the queue estimate of a channel, in flits, and the switch at its end.

    The estimate is the flits in input buffers whose packet at the front requests the channel, plus the downstream
    credits in use; in ticks of the channel where channels differ in speed.

    Parameters
    ----------
    switch, port: int64, the switch that the channel leaves, and the port there.
    tick: int64.

    Returns
    -------
    (flits, switch), int64.
    """
    switch_index, vcs, flits = U(switch), U(const.vcs), np.int64(0)
    output = U(const.net.ports.out_base[switch_index]) + U(port)
    for vc in range(
        U(const.net.ports.in_base[switch_index]) * vcs, U(const.net.ports.in_base[switch_index + U(1)]) * vcs
    ):
        vc_record = state.vc[vc]
        if U(vc_record.output) == output:
            flits += np.int64(vc_record.write_index) - np.int64(vc_record.read_index)
    first = U(state.vc_set[output].first)
    for vc in range(first, first + vcs):
        flits += buffer_of(const.vc_buffers, const, vc) - free_credits(state, vc)
    return held_ticks(const.output_ticks, output, flits), np.int64(const.switch[first])
