# SPDX-License-Identifier: Apache-2.0
"""Allocation with independent outputs: each head packet requests one output."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import GRANTS
from flitlab.sim.engines.compiled.calendar_queue import schedule_event
from flitlab.sim.engines.compiled.memory import MIN_BATCH, PREFETCH_BATCH, prefetch, unlikely
from flitlab.sim.engines.compiled.records import NONE, ZERO, switch_pair
from flitlab.sim.engines.compiled.timing_wheel import prefetch_bucket, schedule
from flitlab.sim.engines.compiled.ugal import uses_congestion
from flitlab.sim.engines.compiled.vct.credits import await_credits, consume_credits, return_credits
from flitlab.sim.engines.compiled.vct.exchange import is_remote, send_completion, send_credits, send_packet
from flitlab.sim.engines.compiled.vct.requests import (
    channel_of,
    downstream_input,
    eligible_tick,
    remove_request,
    request_age,
    request_at,
    request_index,
    request_outputs,
    requested_vcs,
    select_requested_vc,
)
from flitlab.sim.engines.compiled.vct.state import INLINE_REQUESTS

_GRANTABLE, _NOT_ELIGIBLE, _NO_CREDIT = np.int64(0), np.int64(1), np.int64(2)


@inline
def grant(const, state, packet, vc, output, out_vc, tick):
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
    state.counters.scalars[GRANTS] += 1
    state.output[output].busy_until = tick + flits
    if state.output[output].requests_waiting:
        schedule(state.output_wheel, output, tick + flits)

    # The input VC: its credits return upstream, and the next packet becomes the head packet.
    credit_at = tick + flits - 1 + const.credit_ticks
    if const.delayed:
        credit_at += const.credit_delay[vc // const.vcs]
    if is_remote(state, vc):
        send_credits(state, vc, credit_at, flits)
    else:
        return_credits(state, vc_record.credit_index, credit_at, flits)
    vc_record.predecessor_left_at = tick + flits
    if uses_congestion(const.rule):
        vc_record.queued_flits -= np.uint32(flits)
    if const.shared_input:
        state.input_busy[vc // const.vcs] = tick + flits
    next_packet = np.int64(record.next)
    vc_record.head_packet = next_packet
    if next_packet != NONE:
        request_outputs(const, state, vc, next_packet, tick + flits)

    if out_vc == NONE:
        delivered_at = tick + flits - 1 + const.switch_ticks + const.ejection_ticks
        if const.delayed:
            delivered_at += const.access[record.dst_host]
        send_completion(state.program, state, packet, delivered_at)
        prefetch(state.counters.pairs, switch_pair(const.net, state.pool, packet))
        schedule_event(state.ejecting, packet, delivered_at)
        return
    consume_credits(const, state, output, out_vc, flits)
    next_vc = downstream_input(state, output) * const.vcs + out_vc
    record.input_vc = next_vc
    record.hop += 1
    if const.policy == ESCAPE and out_vc == ESCAPE_VC:
        record.route = ON_ESCAPE
    channel = channel_of(state, output)
    state.counters.channel_flits[channel] += flits
    ready_at = tick + const.switch_ticks + const.link_ticks + const.header_ticks
    if const.delayed:
        ready_at += const.delay[channel]
    if is_remote(state, next_vc):
        send_packet(state, packet, next_vc, ready_at)
        return
    schedule_event(state.arriving, packet, ready_at)


@inline
def allocate_output(const, state, output, tick):
    """Grant a free output to the oldest request that is eligible and has credits.

    Without a grant the output is scheduled for when one may become possible.
    """
    if state.output[output].requests_waiting == 0 or state.output[output].busy_until > tick:
        return  # a new request, or the end of the current packet, schedules it
    i, out_vc = _first_grantable(const, state, output, tick)
    if i == NONE:
        return
    vc = request_age(const, state, output, i) & 0xFFFFFFFF
    remove_request(const, state, output, i)
    grant(const, state, np.int64(state.vc[vc].head_packet), vc, output, out_vc, tick)


@inline
def _first_grantable(const, state, output, tick):
    """Find the oldest request that can be granted: (its index, the VC granted).

    The VC is NONE if the output ejects; both are NONE if no request can be granted. Nearly always the oldest request is
    granted, so it is evaluated apart.
    """
    ejects = downstream_input(state, output) == NONE
    status, out_vc = _evaluate_request(const, state, output, np.int64(0), ejects, tick)
    if status == _GRANTABLE:
        return np.int64(0), out_vc
    i = np.int64(1)
    while i < state.output[output].requests_waiting:
        if status == _NOT_ELIGIBLE and not const.oldest_first:
            break  # younger requests are eligible later
        status, out_vc = _evaluate_request(const, state, output, i, ejects, tick)
        if status == _GRANTABLE:
            return i, out_vc
        i += 1
    return NONE, NONE


@inline
def _evaluate_request(const, state, output, i, ejects, tick):
    """Tell whether request ``i`` of an output can be granted; if not, schedule the output for when it may.

    ejects: whether the output does. Returns (_GRANTABLE, _NOT_ELIGIBLE or _NO_CREDIT, the VC granted).
    """
    age, request = request_age(const, state, output, i), request_at(const, state, output, i)
    eligible = eligible_tick(const, state, age)
    if eligible > tick:
        schedule(state.output_wheel, output, eligible)
        return _NOT_ELIGIBLE, NONE
    if ejects:
        return _GRANTABLE, NONE
    out_vc, _ = select_requested_vc(const, state, output, request)
    if out_vc != NONE:
        return _GRANTABLE, out_vc
    first_vc, end_vc = requested_vcs(request)
    await_credits(const, state, output, first_vc, end_vc)
    return _NO_CREDIT, NONE


@inline
def allocate_outputs(const, state, outputs, count, tick):
    """Allocate the first ``count`` of ``outputs``, in batches whose records are prefetched.

    Parameters
    ----------
    outputs: uint32, outputs of a tick.
    count: int64.
    tick: int64.
    """
    for first in range(0, count, PREFETCH_BATCH):
        end = min(count, first + PREFETCH_BATCH)
        if unlikely(count > MIN_BATCH):
            prefetch_requests(const, state, outputs[first:end], tick)
        for i in range(first, end):
            allocate_output(const, state, np.int64(outputs[i]), tick)


@device_function
def prefetch_requests(const, state, outputs, tick):
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
        prefetch(vcs, request_age(const, state, output, first) & 0xFFFFFFFF)
        prefetch(state.free_flits, output << const.vc_bits)
        prefetch(state.requests, np.int64(request_index(const, output, INLINE_REQUESTS)))
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if output_records[output].requests_waiting > 0:
            channel = channel_of(state, output)
            prefetch(state.counters.channel_flits, ZERO if channel == NONE else channel)
            prefetch(pool.packet, vcs[request_age(const, state, output, first) & 0xFFFFFFFF].head_packet)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if output_records[output].requests_waiting > 0:
            packet = np.int64(vcs[request_age(const, state, output, first) & 0xFFFFFFFF].head_packet)
            next_packet = np.int64(pool.packet[packet].next)
            prefetch(pool.packet, packet if next_packet == NONE else next_packet)
            prefetch_bucket(state.output_wheel, output, tick + np.int64(pool.packet[packet].flits))
