# SPDX-License-Identifier: Apache-2.0
"""Arrivals at switches, and injection by hosts, which may choose routes by congestion.

``const.congestion_aware`` is None where routes do not depend on congestion: for a None argument Numba compiles only
that branch.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.classes import goes_before
from flitlab.models.rules.port_sets import set_offset
from flitlab.models.rules.route import at_destination, leg_target
from flitlab.models.rules.tables import RouteForm, Selection
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    next_block,
    prefetch_next_block,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.memory import Batch, prefetch, unlikely
from flitlab.sim.engines.compiled.messages import record_injection
from flitlab.sim.engines.compiled.records import (
    NONE,
    Tick,
    draw_packet_route,
    first_creation,
    inject_packet,
    port_of_route,
)
from flitlab.sim.engines.compiled.replies import end_reply
from flitlab.sim.engines.compiled.timing_wheel import drain, prefetch_bucket, schedule
from flitlab.sim.engines.compiled.ugal import choose_route, reroute, uses_congestion
from flitlab.sim.engines.compiled.vct.credits import (
    consume_credits_of_downstream_vc,
    downstream_credits_in_use,
    flag_credits_awaited_by_upstream,
    select_downstream_vc,
)
from flitlab.sim.engines.compiled.vct.requests import (
    allowed_ports_of_adaptive_packet,
    downstream_input_of_output,
    insert_requests_of_head_packet,
    keep_tail_arrival,
    read_age_key_of_request,
)


@inline
def _choose_output_at_arrival(const, state, packet):
    """Choose the output of a packet that has arrived; NONE if the output is chosen in every tick (adaptive)."""
    record = state.pool.packet[packet]
    switch = _switch_of_arrived_packet(state, packet)
    dst_host = np.int64(record.dst_host)
    dst_switch = np.int64(const.net.ejection_switch[dst_host])
    route, hop = np.int64(record.route), np.int64(record.hop)
    if at_destination(const.routes, route, hop, switch, dst_switch):
        record.output = const.net.ports.eject[dst_host]
    elif const.rule == Selection.ADAPTIVE:
        record.output = NONE
    else:
        port = port_of_route(const, record, route, switch, dst_switch, hop)
        record.output = const.net.ports.out_base[switch] + port


@inline
def _enqueue_packet_in_input_vc(const, state, packet, tick):
    """Append a packet, whose header has been read, to its input VC.

    In an empty VC it is the head packet, and requests its output.
    """
    record = state.pool.packet[packet]
    vc = np.int64(record.input_vc)
    record.next = NONE
    if uses_congestion(const.rule):
        state.vc[vc].queued_flits += record.flits
    if state.vc[vc].head_packet == NONE:
        state.vc[vc].head_packet = packet
        state.vc[vc].last_packet = packet
        insert_requests_of_head_packet(const, state, vc, packet, max(tick, np.int64(state.vc[vc].predecessor_left_at)))
    else:
        state.pool.packet[state.vc[vc].last_packet].next = packet
        state.vc[vc].last_packet = packet


@inline
def _inject_packet_or_schedule_host(classes, const, state, host, tick):
    """Start a host's oldest packet if possible; else schedule the host for when that may change.

    classes: ``const.net.classes``.
    """
    if classes is not None:
        _inject_packet_of_class_or_schedule_host(classes, const, state, host, tick)
    else:
        host_record = state.host[host]
        if host_record.created_at > tick:
            if host_record.created_at < Tick.LIMIT:
                schedule(state.host_wheel, host, min(host_record.created_at, tick + state.host_wheel.mask))
            return
        if host_record.free_at > tick:
            schedule(state.host_wheel, host, host_record.free_at)
            return
        upstream = len(state.output) + host
        vc_number, _ = select_downstream_vc(
            const, state, np.int64(0), upstream, np.int64(0), const.vcs, host_record.flits
        )
        if vc_number == NONE:
            flag_credits_awaited_by_upstream(const, state, upstream, np.int64(0), const.vcs)
            return
        free_at = _start_packet(const, state, host, host, vc_number, tick)
        schedule(state.host_wheel, host, min(max(host_record.created_at, free_at), tick + state.host_wheel.mask))


@inline
def _inject_packet_of_class_or_schedule_host(classes, const, state, host, tick):
    """Start the oldest packet of a class of traffic at a host if possible; else schedule the host.

    classes: ``const.net.classes``.
    """
    created_at, host_record = first_creation(const, state, host), state.host[host]
    if created_at > tick:
        if created_at < Tick.LIMIT:
            schedule(state.host_wheel, host, min(created_at, tick + state.host_wheel.mask))
        return
    if host_record.free_at > tick:
        schedule(state.host_wheel, host, host_record.free_at)
        return
    upstream, best, best_vc, later = len(state.output) + host, np.int64(-1), NONE, Tick.NEVER
    for k in range(1, classes.class_count + 1):
        c = (host_record.last_class + k) % classes.class_count
        record = state.host[c * const.net.hosts + host]
        if record.created_at > tick:
            later = min(later, record.created_at)
        elif goes_before(classes.priority, c, best):
            first_vc, end_vc = classes.first_vc[c], classes.end_vc[c]
            vc_number, _ = select_downstream_vc(const, state, np.int64(0), upstream, first_vc, end_vc, record.flits)
            if vc_number == NONE:
                flag_credits_awaited_by_upstream(const, state, upstream, first_vc, end_vc)
            else:
                best, best_vc = c, vc_number
    if best < 0:
        if later < Tick.LIMIT:
            schedule(state.host_wheel, host, min(later, tick + state.host_wheel.mask))
        return
    host_record.last_class = best
    free_at = _start_packet(const, state, best * const.net.hosts + host, host, best_vc, tick)
    created_at = first_creation(const, state, host)
    schedule(state.host_wheel, host, min(max(created_at, free_at), tick + state.host_wheel.mask))


@inline
def _start_packet(const, state, source, host, vc_number, tick):
    """Start the oldest packet of a source queue on an injection VC; return the tick from which the host is free.

    Parameters
    ----------
    source: int64, see :data:`~flitlab.sim.engines.compiled.records.HOST`.
    host: int64, of the source queue.
    vc_number: int64, of a VC with space for the packet.
    tick: int64.
    """
    flits = state.host[source].flits
    packet = inject_packet(const, state, source, tick)
    ejecting_output = np.int64(const.net.ports.eject[host])
    free_at = tick + held_ticks(const.output_ticks, ejecting_output, flits)
    state.host[host].free_at = free_at
    waiting_output = end_reply(state.pool.replies, const, source, free_at)
    if waiting_output >= 0:
        schedule(state.output_wheel, waiting_output, free_at)
    record_injection(state.program, state.pool.packet[packet].send, free_at)
    choose_route_at_injection(const.congestion_aware, const, state, packet, tick)
    state.pool.packet[packet].input_vc = const.net.ports.inject[host] * const.vcs + vc_number
    consume_credits_of_downstream_vc(const, state, len(state.output) + host, vc_number, flits)
    ready_at = tick + const.injection_ticks + const.header_ticks
    if const.delayed:
        ready_at += const.access[host]
    keep_tail_arrival(const.output_ticks, const, state, packet, ejecting_output, ready_at)
    schedule_event(state.arriving, packet, ready_at)
    return free_at


@inline
def schedule_host(const, state, host, tick):
    """Schedule the evaluation of a host that has packets to send."""
    schedule(state.host_wheel, host, tick)


@inline
def route_and_enqueue_arrivals(const, state, tick):
    """Route the packets whose headers have been read by ``tick``, and append them to their input VCs.

    Full blocks of the calendar are prefetched.
    """
    arriving = state.arriving
    block, count = take_bucket(arriving, tick)
    _revise_progressive_routes_at_arrival(const.congestion_aware, const, state, block, count, tick)
    while block != NONE:
        prefetch_next_block(arriving, block)
        if unlikely(count == BLOCK_ENTRIES):
            _prefetch_routing_entries_of_arrivals(const.net, const.routes, arriving, state.pool, state.vc, block)
        for i in range(count):
            packet = entry_in(arriving, block, i)
            _choose_output_at_arrival(const, state, packet)
            _prefetch_output_records_of_packet(const, state, packet)
        if unlikely(count == BLOCK_ENTRIES):
            _prefetch_output_wheel_of_arrivals(arriving, state.pool, state.output_wheel, block, tick)
        for i in range(count):
            _enqueue_packet_in_input_vc(const, state, entry_in(arriving, block, i), tick)
        state.counters.scalars[Scalar.EVENTS] += count
        block, count = release_block(arriving, block), BLOCK_ENTRIES


@inline
def _prefetch_output_records_of_packet(const, state, packet):
    """Prefetch the records of the outputs that a packet will request."""
    output = np.int64(state.pool.packet[packet].output)
    if output != NONE:
        prefetch(state.output, output)
    elif const.rule == Selection.ADAPTIVE:
        switch = _switch_of_arrived_packet(state, packet)
        ports = allowed_ports_of_adaptive_packet(const, state, packet, switch)
        while not is_empty(ports):
            prefetch(state.output, const.net.ports.out_base[switch] + lowest(ports))
            ports = without_lowest(ports)


@inline
def _revise_progressive_routes_at_arrival(congestion_aware, const, state, block, count, tick):
    """Re-route all packets of a bucket, with progressive routing, before the first joins its VC.

    Parameters
    ----------
    congestion_aware: ``const.congestion_aware``.
    block, count: the first block of the bucket, and the packets in it.
    """
    if congestion_aware is None:
        return
    while const.rule == Selection.PROGRESSIVE and block != NONE:
        for i in range(count):
            packet = entry_in(state.arriving, block, i)
            reroute(const, state, packet, _switch_of_arrived_packet(state, packet), queue_estimate, tick)
        block, count = next_block(state.arriving, block), BLOCK_ENTRIES


@inline
def _switch_of_arrived_packet(state, packet):
    """Return the switch at which a packet has arrived."""
    return np.int64(state.vc[state.pool.packet[packet].input_vc].switch)


@device_function
def _prefetch_routing_entries_of_arrivals(net, routes, arriving, pool, vc, block):
    """Prefetch the records, and the table entries, by which the packets of a full block are routed.

    vc: VC [input VCs]. pool, arriving: as in the state.
    """
    for i in range(BLOCK_ENTRIES):
        prefetch(pool.packet, entry_in(arriving, block, i))
    for i in range(BLOCK_ENTRIES):
        prefetch(vc, pool.packet[entry_in(arriving, block, i)].input_vc)
    if routes.form == RouteForm.TABLE or routes.form == RouteForm.VIA:
        for i in range(BLOCK_ENTRIES):
            record = pool.packet[entry_in(arriving, block, i)]
            switch, dst_switch = np.int64(vc[record.input_vc].switch), np.int64(net.ejection_switch[record.dst_host])
            toward = leg_target(routes, np.int64(record.route), np.int64(record.hop), dst_switch)
            prefetch(routes.ports.bytes, set_offset(routes.ports, toward, switch))


@device_function
def _prefetch_output_wheel_of_arrivals(arriving, pool, outputs, block, tick):
    """Prefetch the words of the timing wheel that the packets of a full block will set.

    outputs: the timing wheel of outputs.
    """
    for i in range(BLOCK_ENTRIES):
        output = np.int64(pool.packet[entry_in(arriving, block, i)].output)
        if output != NONE:
            prefetch_bucket(outputs, output, tick)


@inline
def inject_from_scheduled_hosts(const, state, tick):
    """Inject packets at all hosts scheduled for ``tick``."""
    count = drain(state.host_wheel, tick, state.members)
    for first in range(0, count, Batch.SIZE):
        end = min(count, first + Batch.SIZE)
        if unlikely(count > Batch.MIN):
            _prefetch_injection_state_of_hosts(
                const.net, const.vc_bits, state.host, state.free_flits, len(state.output), state.members[first:end]
            )
        for i in range(first, end):
            _inject_packet_or_schedule_host(const.net.classes, const, state, np.int64(state.members[i]), tick)
    state.counters.scalars[Scalar.EVENTS] += count


@device_function
def _prefetch_injection_state_of_hosts(net, vc_bits, records, free, outputs, hosts):
    """Prefetch the records of hosts, their arrival rates and the free flits of their injection channels.

    records: HOST [all hosts]. hosts: uint32, those to prefetch. outputs: number of outputs.
    """
    for host in hosts:
        prefetch(records, host)
        prefetch(net.arrivals.keep, host)
        prefetch(free, (outputs + np.int64(host)) << vc_bits)


@inline
def queue_estimate(const, state, switch, port, tick):
    """Return the queue estimate of a channel, in flits, and the switch at its end.

    The estimate is the flits in input buffers whose head packet requests the channel, plus the downstream credits in
    use; in ticks of the channel where channels differ in speed.

    Parameters
    ----------
    switch, port: int64, the switch that the channel leaves, and the port there.
    tick: int64.

    Returns
    -------
    (flits, switch), int64.
    """
    output, flits = const.net.ports.out_base[switch] + port, np.int64(0)
    for i in range(np.int64(state.output[output].requests_waiting)):
        flits += np.int64(state.vc[read_age_key_of_request(const, state, output, i) & 0xFFFFFFFF].queued_flits)
    flits += downstream_credits_in_use(const, state, output)
    flits = held_ticks(const.output_ticks, output, flits)
    return flits, np.int64(const.net.ports.in_switch[downstream_input_of_output(state, output)])


@inline
def choose_route_at_injection(congestion_aware, const, state, packet, tick):
    """Choose the route of a packet at injection.

    Parameters
    ----------
    congestion_aware: ``const.congestion_aware``.
    packet: int64.
    tick: int64.
    """
    if congestion_aware is None:
        draw_packet_route(const, state, packet)
    else:
        choose_route(const, state, packet, queue_estimate, tick)
