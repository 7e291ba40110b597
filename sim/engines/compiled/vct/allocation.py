# SPDX-License-Identifier: Apache-2.0
"""Allocation with independent outputs: each head packet requests one output."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE_VC, VcPolicy
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.calendar_queue import schedule_event
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.memory import Batch, prefetch, unlikely
from flitlab.sim.engines.compiled.records import NONE, count_flits, ejection_channel, switch_pair
from flitlab.sim.engines.compiled.replies import commit_reply, may_eject
from flitlab.sim.engines.compiled.stalls import end_stall
from flitlab.sim.engines.compiled.timing_wheel import prefetch_bucket, schedule
from flitlab.sim.engines.compiled.ugal import uses_congestion
from flitlab.sim.engines.compiled.vct.credits import (
    consume_credits_of_downstream_vc,
    flag_credits_awaited_by_upstream,
    schedule_credit_return,
)
from flitlab.sim.engines.compiled.vct.exchange import (
    export_credits_to_upstream_partition,
    export_message_delivery,
    export_packet_to_downstream_partition,
    is_vc_of_cut_edge,
)
from flitlab.sim.engines.compiled.vct.requests import (
    array_index_of_request,
    channel_of_output,
    downstream_input_of_output,
    eligible_tick_of_request,
    insert_requests_of_head_packet,
    keep_tail_arrival,
    read_age_key_of_request,
    read_vc_range_and_flits_of_request,
    remove_request_at_index,
    select_downstream_vc_for_request,
    unpack_vc_range_of_request,
)
from flitlab.sim.engines.compiled.vct.state import INLINE_REQUESTS

_GRANTABLE, _NOT_ELIGIBLE, _NO_CREDIT = np.int64(0), np.int64(1), np.int64(2)


@inline
def grant_output_to_head_packet(const, state, packet, vc, output, out_vc, tick):
    """Grant an output to the head packet of an input VC.

    Parameters
    ----------
    packet, vc, output: int64; the output is free.
    out_vc: int64, number of the granted VC in the downstream input; NONE if the output ejects.
    tick: int64.
    """
    vc_record = state.vc[vc]
    record = state.pool.packet[packet]
    flits = np.int64(record.flits)
    state.counters.scalars[Scalar.GRANTS] += 1
    end_stall(state.stalls, vc)
    free_at = tick + held_ticks(const.output_ticks, output, flits)
    last_flit_at = tick + held_ticks(const.output_ticks, output, flits - 1)
    state.output[output].busy_until = free_at
    if state.output[output].requests_waiting:
        schedule(state.output_wheel, output, free_at)

    # The input VC: its credits return upstream, and the next packet becomes the head packet.
    credit_at = last_flit_at + const.credit_ticks
    if const.delayed:
        credit_at += const.credit_delay[vc // const.vcs]
    if is_vc_of_cut_edge(state, vc):
        export_credits_to_upstream_partition(state, vc, credit_at, flits)
    else:
        schedule_credit_return(state, vc_record.credit_index, credit_at, flits)
    vc_record.predecessor_left_at = free_at
    if uses_congestion(const.rule):
        vc_record.queued_flits -= np.uint32(flits)
    if const.shared_input:
        state.input_busy[vc // const.vcs] = free_at
    next_packet = np.int64(record.next)
    vc_record.head_packet = next_packet
    if next_packet != NONE:
        insert_requests_of_head_packet(const, state, vc, next_packet, free_at)

    if out_vc == NONE:
        commit_reply(state.pool.replies, const, record)
        count_flits(state.counters.channels, ejection_channel(const, state, record.dst_host), flits)
        delivered_at = last_flit_at + const.switch_ticks + const.ejection_ticks
        if const.delayed:
            delivered_at += const.access[record.dst_host]
        export_message_delivery(state.program, state, packet, delivered_at)
        prefetch(state.counters.pairs, switch_pair(const.net, state.pool, packet))
        schedule_event(state.ejecting, packet, delivered_at)
        return
    consume_credits_of_downstream_vc(const, state, output, out_vc, flits)
    next_vc = downstream_input_of_output(state, output) * const.vcs + out_vc
    record.input_vc = next_vc
    record.hop += 1
    if const.policy == VcPolicy.ESCAPE and out_vc == ESCAPE_VC:
        record.route = ON_ESCAPE
    channel = channel_of_output(state, output)
    state.counters.channel_flits[channel] += flits
    count_flits(state.counters.channels, channel, flits)
    ready_at = tick + const.switch_ticks + const.link_ticks + const.header_ticks
    if const.delayed:
        ready_at += const.delay[channel]
    keep_tail_arrival(const.output_ticks, const, state, packet, output, ready_at)
    if is_vc_of_cut_edge(state, next_vc):
        export_packet_to_downstream_partition(state, packet, next_vc, ready_at)
        return
    schedule_event(state.arriving, packet, ready_at)


@inline
def allocate_output(const, state, output, tick):
    """Grant a free output to the oldest request that is eligible and has credits.

    Without a grant the output is scheduled for when one may become possible.
    """
    if state.output[output].requests_waiting == 0 or state.output[output].busy_until > tick:
        return  # a new request, or the end of the current packet, schedules it
    i, out_vc = _oldest_grantable_request_of_output(const, state, output, tick)
    if i == NONE:
        return
    vc = read_age_key_of_request(const, state, output, i) & 0xFFFFFFFF
    remove_request_at_index(const, state, output, i)
    grant_output_to_head_packet(const, state, np.int64(state.vc[vc].head_packet), vc, output, out_vc, tick)


@inline
def _oldest_grantable_request_of_output(const, state, output, tick):
    """Find the oldest request that can be granted: (its index, the VC granted).

    The VC is NONE if the output ejects; both are NONE if no request can be granted. Nearly always the oldest request is
    granted, so it is evaluated apart.
    """
    ejects = downstream_input_of_output(state, output) == NONE
    status, out_vc = _check_request_or_schedule_output(const, state, output, np.int64(0), ejects, tick)
    if status == _GRANTABLE:
        return np.int64(0), out_vc
    i = np.int64(1)
    while i < state.output[output].requests_waiting:
        if status == _NOT_ELIGIBLE and not const.by_rank:
            break  # younger requests are eligible later
        status, out_vc = _check_request_or_schedule_output(const, state, output, i, ejects, tick)
        if status == _GRANTABLE:
            return i, out_vc
        i += 1
    return NONE, NONE


@inline
def _check_request_or_schedule_output(const, state, output, i, ejects, tick):
    """Tell whether request ``i`` of an output can be granted; if not, schedule the output for when it may.

    ejects: whether the output does. Returns (_GRANTABLE, _NOT_ELIGIBLE or _NO_CREDIT, the VC granted).
    """
    age, request = (
        read_age_key_of_request(const, state, output, i),
        read_vc_range_and_flits_of_request(const, state, output, i),
    )
    eligible = eligible_tick_of_request(const, state, age)
    if eligible > tick:
        schedule(state.output_wheel, output, eligible)
        return _NOT_ELIGIBLE, NONE
    if ejects:
        packet = np.int64(state.vc[age & 0xFFFFFFFF].head_packet)
        if may_eject(state.pool.replies, const, state.pool.packet[packet], tick):
            return _GRANTABLE, NONE
        return _NO_CREDIT, NONE  # the host that sends a reply schedules the output
    out_vc, _ = select_downstream_vc_for_request(const, state, output, request)
    if out_vc != NONE:
        return _GRANTABLE, out_vc
    first_vc, end_vc = unpack_vc_range_of_request(request)
    flag_credits_awaited_by_upstream(const, state, output, first_vc, end_vc)
    return _NO_CREDIT, NONE


@inline
def allocate_independent_outputs(const, state, outputs, count, tick):
    """Allocate the first ``count`` of ``outputs``, in batches whose records are prefetched.

    Parameters
    ----------
    outputs: uint32, outputs of a tick.
    count: int64.
    tick: int64.
    """
    for first in range(0, count, Batch.SIZE):
        end = min(count, first + Batch.SIZE)
        if unlikely(count > Batch.MIN):
            prefetch_records_for_allocation(const, state, outputs[first:end], tick)
        for i in range(first, end):
            allocate_output(const, state, np.int64(outputs[i]), tick)


@device_function
def prefetch_records_for_allocation(const, state, outputs, tick):
    """Prefetch the records that the oldest requests of some outputs need.

    Records that only some requests need are always prefetched: a branch would often be mispredicted.

    Parameters
    ----------
    outputs: uint32, the outputs.
    tick: int64, that of their allocation.
    """
    output_records, vcs, pool, first = state.output, state.vc, state.pool, np.int64(0)
    for output in outputs:
        prefetch(output_records, output)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        prefetch(vcs, read_age_key_of_request(const, state, output, first) & 0xFFFFFFFF)
        prefetch(state.free_flits, output << const.vc_bits)
        prefetch(state.requests, np.int64(array_index_of_request(const, output, INLINE_REQUESTS)))
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if output_records[output].requests_waiting > 0:
            channel = channel_of_output(state, output)
            prefetch(state.counters.channel_flits, np.int64(0) if channel == NONE else channel)
            prefetch(pool.packet, vcs[read_age_key_of_request(const, state, output, first) & 0xFFFFFFFF].head_packet)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if output_records[output].requests_waiting > 0:
            packet = np.int64(vcs[read_age_key_of_request(const, state, output, first) & 0xFFFFFFFF].head_packet)
            next_packet = np.int64(pool.packet[packet].next)
            prefetch(pool.packet, packet if next_packet == NONE else next_packet)
            held = held_ticks(const.output_ticks, output, np.int64(pool.packet[packet].flits))
            prefetch_bucket(state.output_wheel, output, tick + held)
