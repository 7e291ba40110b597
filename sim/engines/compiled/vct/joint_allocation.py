# SPDX-License-Identifier: Apache-2.0
"""Allocation with dependent outputs: adaptive packets request several, or an input sends one packet at a time."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn, waits_for_drawn
from flitlab.models.rules.bits import contains, empty_set, is_empty, lowest, popcount, with_port, without_lowest
from flitlab.models.rules.polarized import detour
from flitlab.models.rules.route import route_word
from flitlab.models.rules.tables import RouteForm, Selection
from flitlab.models.rules.vc import is_reserved
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.memory import Batch, unlikely
from flitlab.sim.engines.compiled.records import NONE, Tick
from flitlab.sim.engines.compiled.replies import may_eject
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.vct.allocation import grant_output_to_head_packet, prefetch_records_for_allocation
from flitlab.sim.engines.compiled.vct.credits import downstream_credits_in_use, flag_credits_awaited_by_upstream
from flitlab.sim.engines.compiled.vct.requests import (
    allowed_ports_of_adaptive_packet,
    channel_of_output,
    count_older_requests_of_output,
    downstream_input_of_output,
    eligible_tick_of_request,
    head_packet_feeds_from,
    is_older_age_key,
    read_age_key_of_request,
    read_vc_range_and_flits_of_request,
    remove_request_at_index,
    remove_request_with_age_key,
    select_downstream_vc_for_request,
    unpack_vc_range_of_request,
)
from flitlab.sim.engines.compiled.vct.state import COST, OUT_VC


@inline
def _skip_and_schedule_ineligible_requests(const, state, output, index, tick):
    """Return the index of the first eligible request of an output, from ``index`` on.

    The output is scheduled for the requests before it.
    """
    while index < state.output[output].requests_waiting:
        eligible = eligible_tick_of_request(const, state, read_age_key_of_request(const, state, output, index))
        if eligible <= tick:
            break
        schedule(state.output_wheel, output, eligible)
        index += 1
    return index


@inline
def _cached_downstream_credits_in_use(const, state, output, tick):
    """Return the downstream credits in use behind an output, in flits: counted once a tick, grants added."""
    if state.credits_in_use_cache[output, 1] != tick:
        state.credits_in_use_cache[output, 0], state.credits_in_use_cache[output, 1] = (
            downstream_credits_in_use(const, state, output),
            tick,
        )
    return state.credits_in_use_cache[output, 0]


@inline
def _ticks_in_use(const, state, output, tick):
    """Return the ticks that an output takes for as many flits as there are downstream credits in use."""
    return held_ticks(const.output_ticks, output, _cached_downstream_credits_in_use(const, state, output, tick))


@inline
def _draw_random_word_for_routing(const, state, packet):
    """Return the random word of a packet's routing decision at its switch."""
    record = state.pool.packet[packet]
    return route_word(const.net.seed, np.int64(record.src_host), np.int64(record.sequence), np.int64(record.hop))


@inline
def _choose_least_cost_polarized_output(const, state, packet, switch, tick):
    """Find the allowed output of least cost for a polarized packet; ties are drawn.

    The cost, in flits, is the downstream credits in use plus the penalty of a detour.
    """
    record = state.pool.packet[packet]
    dst_switch = np.int64(const.net.ejection_switch[record.dst_host])
    src_switch, flits = np.int64(record.route), np.int64(record.flits)
    ports, base = (
        allowed_ports_of_adaptive_packet(const, state, packet, switch),
        np.int64(const.net.ports.out_base[switch]),
    )
    least_cost, ties = Tick.NEVER, empty_set(ports)
    while not is_empty(ports):
        port = lowest(ports)
        ports = without_lowest(ports)
        next_switch = np.int64(const.routes.dst[channel_of_output(state, base + port)])
        cost = _ticks_in_use(const, state, base + port, tick) + detour(
            const.routes, src_switch, dst_switch, switch, next_switch, flits
        )
        if cost < least_cost:
            least_cost, ties = cost, empty_set(ties)
        if cost == least_cost:
            ties = with_port(ties, port)
    if popcount(ties) == 1:
        return base + lowest(ties)
    return base + drawn_tie(ties, _draw_random_word_for_routing(const, state, packet))


@inline
def _write_grantable_vc_and_cost_of_output(const, state, index, output, next_vc, score, tick):
    """Record that an output can grant a VC to the visited head packet, and its cost.

    index: of the output among those allocated. score: of the VC.
    """
    state.candidate[index, OUT_VC] = next_vc
    last_resort = const.reserved_vcs > 0 and is_reserved(score)
    state.candidate[index, COST] = channel_cost(_ticks_in_use(const, state, output, tick), last_resort)


@inline
def _schedule_candidate_outputs_for_retry(const, state, outputs, candidates, tick):
    """Schedule the candidate outputs of a head packet for ``tick``, and for when credits return."""
    while not is_empty(candidates):
        output = np.int64(outputs[lowest(candidates)])
        candidates = without_lowest(candidates)
        schedule(state.output_wheel, output, tick)
        flag_credits_awaited_by_upstream(const, state, output, np.int64(0), const.vcs)


@device_function
def _choose_adaptive_output_or_wait(const, state, outputs, candidates, age, since, tick):
    """Select one of the candidate outputs of an adaptive packet (see :mod:`flitlab.models.rules.adaptive`).

    Parameters
    ----------
    outputs: uint32, outputs of the switch, ascending.
    candidates: set of the indices in ``outputs`` that can grant a VC.
    age: int64, age key of the head packet.
    since: int64, tick from which on it could have been granted an idle output.

    Returns
    -------
    The index in ``outputs``, or NONE if the packet waits for its drawn channel.
    """
    vc = age & 0xFFFFFFFF
    packet, switch = np.int64(state.vc[vc].head_packet), np.int64(state.vc[vc].switch)
    ports, flits = (
        allowed_ports_of_adaptive_packet(const, state, packet, switch),
        np.int64(state.pool.packet[packet].flits),
    )
    if popcount(ports) == 1:
        return lowest(candidates)
    least_cost, ties, remaining = Tick.NEVER, empty_set(candidates), candidates
    while not is_empty(remaining):
        k = lowest(remaining)
        remaining = without_lowest(remaining)
        cost = state.candidate[k, COST]
        if cost < least_cost:
            least_cost, ties = cost, empty_set(ties)
        if cost == least_cost:
            ties = with_port(ties, k)
    draw = _draw_random_word_for_routing(const, state, packet)
    drawn = np.int64(const.net.ports.out_base[switch]) + drawn_channel(ports, draw)
    length = held_ticks(const.output_ticks, drawn, flits)
    since = max(since, head_packet_feeds_from(const.output_ticks, state, packet, drawn))
    busy = np.int64(state.output[drawn].busy_until)
    if busy <= tick:
        for k in range(len(outputs)):
            if (
                outputs[k] == drawn
                and contains(candidates, k)
                and keeps_drawn(state.candidate[k, COST], least_cost, length)
            ):
                return k
    elif waits_for_drawn(busy, since, length):
        request = read_vc_range_and_flits_of_request(
            const, state, drawn, count_older_requests_of_output(const, state, drawn, age)
        )
        next_vc, score = select_downstream_vc_for_request(const, state, drawn, request)
        if next_vc != NONE:
            last_resort = const.reserved_vcs > 0 and is_reserved(score)
            cost = channel_cost(_ticks_in_use(const, state, drawn, tick), last_resort)
            if keeps_drawn(cost, least_cost, length):
                _schedule_candidate_outputs_for_retry(const, state, outputs, candidates, busy)
                return NONE
    return drawn_tie(ties, draw)


@inline
def _allocate_dependent_outputs_of_switch(const, state, outputs, count, tick):
    """Allocate ``count`` outputs of one switch: visit head packets in order of age, across outputs.

    outputs: uint32, ascending.
    """
    cursor = state.cursor
    for k in range(count):
        cursor[k] = 0
        output = np.int64(outputs[k])
        if state.output[output].busy_until > tick:
            cursor[k] = Tick.LIMIT
    while True:
        oldest = Tick.NEVER
        for k in range(count):
            if const.by_rank:
                cursor[k] = _skip_and_schedule_ineligible_requests(const, state, np.int64(outputs[k]), cursor[k], tick)
            if cursor[k] < state.output[outputs[k]].requests_waiting:
                age = read_age_key_of_request(const, state, np.int64(outputs[k]), cursor[k])
                oldest = age if is_older_age_key(const, state, age, oldest) else oldest
        if oldest == Tick.NEVER or (oldest >> 32 > tick and not const.by_rank):  # a rank is no tick
            break
        vc = oldest & 0xFFFFFFFF
        packet = np.int64(state.vc[vc].head_packet)
        blocked_until = np.int64(state.input_busy[vc // const.vcs])
        best, best_vc, candidates, required_output = NONE, NONE, empty_set(const.routes.ports.mask), NONE
        is_adaptive = const.rule == Selection.ADAPTIVE and state.pool.packet[packet].output == NONE
        if const.routes.form == RouteForm.POLARIZED and is_adaptive:
            required_output = _choose_least_cost_polarized_output(
                const, state, packet, np.int64(state.vc[vc].switch), tick
            )
        for k in range(count):
            output = np.int64(outputs[k])
            if (
                cursor[k] >= state.output[output].requests_waiting
                or read_age_key_of_request(const, state, output, cursor[k]) != oldest
            ):
                continue
            cursor[k] += 1
            if required_output != NONE:
                schedule(state.output_wheel, output, tick + 1)  # every grant changes costs
            if required_output != NONE and output != required_output:
                continue
            grantable_from = max(blocked_until, head_packet_feeds_from(const.output_ticks, state, packet, output))
            if grantable_from > tick:
                schedule(state.output_wheel, output, grantable_from)
            elif downstream_input_of_output(state, output) == NONE:
                if may_eject(state.pool.replies, const, state.pool.packet[packet], tick):
                    best = k
            else:
                next_vc, score = select_downstream_vc_for_request(
                    const, state, output, read_vc_range_and_flits_of_request(const, state, output, cursor[k] - 1)
                )
                if next_vc != NONE:
                    best, best_vc = k, next_vc
                    if is_adaptive and required_output == NONE:
                        candidates = with_port(candidates, k)
                        _write_grantable_vc_and_cost_of_output(const, state, k, output, next_vc, score, tick)
                    continue
                first_vc, end_vc = unpack_vc_range_of_request(
                    read_vc_range_and_flits_of_request(const, state, output, cursor[k] - 1)
                )
                flag_credits_awaited_by_upstream(const, state, output, first_vc, end_vc)
        if not is_empty(candidates):
            since = max(eligible_tick_of_request(const, state, oldest), blocked_until)
            best = _choose_adaptive_output_or_wait(const, state, outputs[:count], candidates, oldest, since, tick)
            best_vc = state.candidate[best, OUT_VC] if best != NONE else NONE
        if best == NONE:
            continue
        granted_output = np.int64(outputs[best])
        if is_adaptive:
            switch = np.int64(state.vc[vc].switch)
            ports = allowed_ports_of_adaptive_packet(const, state, packet, switch)
            while not is_empty(ports):
                remove_request_with_age_key(const, state, const.net.ports.out_base[switch] + lowest(ports), oldest)
                ports = without_lowest(ports)
            for k in range(count):  # its requests are removed, so later ones have moved up by one
                if cursor[k] < Tick.LIMIT and cursor[k] > 0:
                    cursor[k] = count_older_requests_of_output(const, state, np.int64(outputs[k]), oldest)
        else:
            remove_request_at_index(const, state, granted_output, cursor[best] - 1)
        cursor[best] = Tick.LIMIT
        if is_adaptive:
            state.credits_in_use_cache[granted_output, 0] += np.int64(state.pool.packet[packet].flits)
        grant_output_to_head_packet(const, state, packet, vc, granted_output, best_vc, tick)
        if const.by_rank:  # the next head packet of the VC may rank before visited ones, which have moved down by one
            for k in range(count):
                for i in range(cursor[k] if cursor[k] < Tick.LIMIT else np.int64(0)):
                    if read_age_key_of_request(const, state, np.int64(outputs[k]), i) & 0xFFFFFFFF == vc:
                        cursor[k] += 1
                        break
    for k in range(count):
        output = np.int64(outputs[k])
        if cursor[k] < state.output[output].requests_waiting:
            schedule(state.output_wheel, output, read_age_key_of_request(const, state, output, cursor[k]) >> 32)


@inline
def allocate_dependent_outputs(const, state, outputs, count, tick):
    """Allocate the first ``count`` of ``outputs``.

    Parameters
    ----------
    outputs: uint32, ascending and hence grouped by switch.
    count: int64.
    tick: int64.
    """
    first = np.int64(0)
    switch = np.int64(0)
    prefetched = np.int64(0)
    while first < count:
        if unlikely(first >= prefetched and count - first > Batch.MIN):
            prefetched = min(count, first + Batch.SIZE)
            prefetch_records_for_allocation(const, state, outputs[first:prefetched], tick)
        while outputs[first] >= const.net.ports.out_base[switch + 1]:
            switch += 1
        last = first + 1
        while last < count and outputs[last] < const.net.ports.out_base[switch + 1]:
            last += 1
        _allocate_dependent_outputs_of_switch(const, state, outputs[first:last], last - first, tick)
        first = last
