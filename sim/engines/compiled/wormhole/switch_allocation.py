# SPDX-License-Identifier: Apache-2.0
"""Switch allocation: matching of crossbar inputs with outputs (see :mod:`flitlab.models.rules.allocate`).

An uncontended request, the only one for its output and of its input, is granted at once. The others are *contended*:
each makes a bid, and the highest wins. A bid holds the rotating priority and, above it, the time. (Treating uncontended
requests as contended ones would give the same grants, whatever the allocator.)
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.stalls import end_stall
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.crossbar import hold_credit, tick_of_step
from flitlab.sim.engines.compiled.wormhole.flits import prefetch_send, send_flit, waits_for_reply
from flitlab.sim.engines.compiled.wormhole.layout import U, add_request, crossbar_input_of, time_of
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.urgency import (
    accepts_for_vc,
    bids_for_output,
    choose_urgent_vcs,
    rank_all_at_inputs,
    rank_at_outputs,
    rank_offered_at_inputs,
    rank_selected_at_outputs,
)
from flitlab.sim.engines.compiled.wormhole.wavefront import (
    distance_of,
    have_equal_ranks,
    note_rank,
    sort_by_diagonal,
    sort_by_rank,
    turn_diagonals,
)

# Bits of a bid: the rotating distance of the VC at its input and, above, of the output (or of the input at the output),
# whether the output has offered itself, and the time.
_VC_TURN_MASK, _PORT_TURN_MASK, _INPUT_TURN_MASK = U(0xFF), U(0xFFFF), U(0xFFFFFF)
_OFFERED_SHIFT = U(24)


@inline
def _unpack_request(const, request):
    """Unpack a request: (input VC, crossbar input, output)."""
    vc = request & layout.VC_MASK
    return vc, crossbar_input_of(const.inputs_per_port, const, vc), request >> layout.OUTPUT_SHIFT


@inline
def _prefetch_request(const, state, i):
    """Prefetch the output and input records of the request ``FAR_PREFETCH_DISTANCE`` entries behind ``i``."""
    _, crossbar_input, output = _unpack_request(const, state.ready[i + layout.FAR_PREFETCH_DISTANCE])
    prefetch(state.output, np.int64(output))
    prefetch(state.crossbar_input, np.int64(crossbar_input))


@inline
def _add_requests(const, state, first, end, time):
    """Count the requests of a part of ``state.ready`` at their outputs and inputs."""
    for i in range(first, end):
        if const.exceeds_cache:
            _prefetch_request(const, state, i)
        _, crossbar_input, output = _unpack_request(const, state.ready[i])
        add_request(state.output[output], time)
        add_request(state.crossbar_input[crossbar_input], time)


@inline
def _make_offers(const, state, first, contended, time):
    """Let every output offer itself to the contended input with the best bid."""
    rank_at_outputs(state.urgency, const, state, first, contended, time)
    for i in range(contended):
        if const.exceeds_cache:
            _prefetch_request(const, state, first + i)
        vc, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        output_record = state.output[output]
        bid = time | ((U(output_record.last_input) - crossbar_input) & _INPUT_TURN_MASK)
        if (
            const.iterations > 1 and state.crossbar_input[crossbar_input].best_bid >= time
        ):  # matched in this tick already
            bid = U(0)
        bid *= bids_for_output(state.urgency, vc, output)
        state.bids[i] = bid
        output_record.best_bid = max(output_record.best_bid, bid)


@inline
def _accept_offers(const, state, first, contended, time):
    """Let every input accept one offer, for one of its VCs."""
    rank_offered_at_inputs(state.urgency, const, state, first, contended, time)
    for i in range(contended):
        if const.exceeds_cache:
            _prefetch_request(const, state, first + i)
        vc, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        input_record = state.crossbar_input[crossbar_input]
        bid = (
            time
            | (((U(input_record.output) - output) & _PORT_TURN_MASK) << layout.PORT_SHIFT)
            | ((U(input_record.vc) - vc) & _VC_TURN_MASK)
        )
        offered = U(state.output[output].best_bid == state.bids[i])
        bid |= (offered & accepts_for_vc(state.urgency, vc, crossbar_input)) << _OFFERED_SHIFT
        state.bids[i] = bid
        input_record.best_bid = max(input_record.best_bid, bid)
    choose_urgent_vcs(state.urgency, const, state, first, contended, time)


@inline
def _select_outputs(const, state, first, contended, time):
    """Let every contended input select one output, and then every output one of these inputs."""
    rank_all_at_inputs(state.urgency, const, state, first, contended, time)
    for i in range(contended):
        vc, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        input_record = state.crossbar_input[crossbar_input]
        bid = time | (((U(input_record.output) - output) & _PORT_TURN_MASK) << layout.PORT_SHIFT)
        bid |= (U(input_record.vc) - vc) & _VC_TURN_MASK
        state.bids[i] = bid * accepts_for_vc(state.urgency, vc, crossbar_input)
        input_record.best_bid = max(input_record.best_bid, state.bids[i])
    rank_selected_at_outputs(state.urgency, const, state, first, contended, time)
    for i in range(contended):
        vc, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        output_record = state.output[output]
        if state.bids[i] == state.crossbar_input[crossbar_input].best_bid:
            bid = time | ((U(output_record.last_input) - crossbar_input) & _INPUT_TURN_MASK)
            bid *= bids_for_output(state.urgency, vc, output)
            output_record.best_bid = max(output_record.best_bid, bid)
    for i in range(contended):
        _, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        input_record, output_record = state.crossbar_input[crossbar_input], state.output[output]
        bid = time | ((U(output_record.last_input) - crossbar_input) & _INPUT_TURN_MASK)
        if state.bids[i] == input_record.best_bid and bid == output_record.best_bid:
            state.bids[i] |= U(1) << _OFFERED_SHIFT
            input_record.best_bid = state.bids[i]


@inline
def _match_diagonals(wavefront, const, state, first, contended, time):
    """Match the contended requests diagonal by diagonal; of the VCs of a pair of ports the next one in rotation wins.

    With priorities all diagonals come for each urgency, the greatest first. A bid holds the rotating priority of the
    VC, and the time; it is 0 where the input or the output is matched. A matched output has the time as its bid.
    """
    for i in range(contended):
        vc, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        note_rank(wavefront.rank, state.urgency, i, vc)
        wavefront.diagonal[i] = distance_of(
            wavefront.crossbar, np.int64(const.switch[vc]), np.int64(crossbar_input), np.int64(output)
        )
    sort_by_diagonal(wavefront, contended)
    sort_by_rank(wavefront.rank, wavefront, np.int64(contended))
    begin = np.int64(0)
    while begin < np.int64(contended):
        end = _end_of_diagonal(wavefront, begin, np.int64(contended))
        for place in range(begin, end):
            i = wavefront.order[place]
            vc, crossbar_input, output = _unpack_request(const, state.ready[first + U(i)])
            input_record, bid = state.crossbar_input[crossbar_input], U(0)
            if state.output[output].best_bid < time and input_record.best_bid < time:
                bid = time | U(1) << _OFFERED_SHIFT | ((U(input_record.vc) - vc) & _VC_TURN_MASK)
            state.bids[i] = bid
        for place in range(begin, end):
            i = wavefront.order[place]
            _, crossbar_input, _ = _unpack_request(const, state.ready[first + U(i)])
            input_record = state.crossbar_input[crossbar_input]
            input_record.best_bid = max(input_record.best_bid, state.bids[i])
        for place in range(begin, end):
            i = wavefront.order[place]
            _, crossbar_input, output = _unpack_request(const, state.ready[first + U(i)])
            if state.bids[i] == state.crossbar_input[crossbar_input].best_bid:
                state.output[output].best_bid = time
        begin = end


@inline
def _end_of_diagonal(wavefront, begin, requests):
    """Return the end of the requests of one diagonal, and one urgency, from place ``begin`` of the order on."""
    entry, end = wavefront.order[begin], begin + 1
    while (
        end < requests
        and wavefront.diagonal[wavefront.order[end]] == wavefront.diagonal[entry]
        and have_equal_ranks(wavefront.rank, wavefront.order[end], entry)
    ):
        end += 1
    return end


@inline
def _turn_diagonals(wavefront, const, state, first, end, step):
    """Advance the first diagonal of every switch with requests. wavefront: ``state.wavefront``."""
    if wavefront is None:
        return
    for i in range(first, end):
        turn_diagonals(wavefront.crossbar, np.int64(const.switch[state.ready[i] & layout.VC_MASK]), step)


@inline
def _match_otherwise(wavefront, input_first, const, state, first, contended, time):
    """Match the contended requests with an allocator other than iSLIP; tell whether there is one.

    wavefront, input_first: ``state.wavefront``, ``const.input_first``.
    """
    if wavefront is not None:
        _match_diagonals(wavefront, const, state, first, contended, time)
        return True
    if input_first is not None:
        _select_outputs(const, state, first, contended, time)
        return True
    return False


@inline
def _separate_matched(const, state, first, contended, closed_bid):
    """Move the matched requests among the contended ones to the third part of ``state.ready``.

    closed_bid: of a time without bids: no later bid of this tick exceeds it. Returns (contended requests that remain,
    end of the matched ones).
    """
    remaining, matched = U(0), const.ready_capacity + const.ready_capacity
    for i in range(contended):
        request, bid = state.ready[first + i], state.bids[i]
        _, crossbar_input, _ = _unpack_request(const, request)
        state.ready[first + remaining] = request
        state.ready[matched] = request
        wins = U(state.crossbar_input[crossbar_input].best_bid == bid) & (bid >> _OFFERED_SHIFT)
        matched += wins
        remaining += U(1) - wins
    if const.iterations > 1:
        for i in range(const.ready_capacity + const.ready_capacity, matched):
            _, crossbar_input, output = _unpack_request(const, state.ready[i])
            state.output[output].best_bid = closed_bid
            state.crossbar_input[crossbar_input].best_bid = closed_bid
    return remaining, matched


@inline
def _match_contended(const, state, first, contended, step, iteration):
    """Match the contended requests once more; returns what :func:`_separate_matched` does."""
    iterations = U(const.iterations)
    time = time_of(const, step, iterations + U(1) + iteration)
    if not _match_otherwise(state.wavefront, const.input_first, const, state, first, contended, time):
        _make_offers(const, state, first, contended, time)
        _accept_offers(const, state, first, contended, time)
    return _separate_matched(const, state, first, contended, time_of(const, step, iterations + iterations + U(1)))


@inline
def _hold_output(output_ticks, state, output, tick):
    """Let an output that is granted in ``tick`` take no flit before this one is sent.

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is not None:
        state.free_at[output] = tick + output_ticks[output]


@inline
def _is_held(output_ticks, const, state, request, tick):
    """Tell whether the output of a request still sends a flit. output_ticks: ``const.output_ticks``."""
    return state.free_at[request >> layout.OUTPUT_SHIFT] > tick


@inline
def _waits_for_reply(replies, const, state, request, tick):
    """Tell whether a request is that of a head flit whose host may owe no further reply."""
    return waits_for_reply(replies, const, state, request & layout.VC_MASK, tick)


@inline
def _withhold_requests(feature, waits, const, state, first, end, ready_end, tick):
    """Move the requests that wait to the ready list of the next tick.

    Parameters
    ----------
    feature: what makes them wait; None where it is not used.
    waits: function (feature, const, state, request, tick).
    first, end: uint64, the requests in ``state.ready``.
    ready_end: see :func:`allocate_all`.
    tick: int64.

    Returns
    -------
    The new ``end`` and ``ready_end``.
    """
    if feature is None:
        return end, ready_end
    kept = first
    for i in range(first, end):
        request = state.ready[i]
        later = U(waits(feature, const, state, request, tick))
        state.ready[kept] = request
        state.ready[ready_end] = request
        kept += U(1) - later
        ready_end += later
    return kept, ready_end


@inline
def _send_granted(const, state, first, end, uncontended, rotate_priority, ready_end, new_heads, tick):
    """Send the front flits of a part of ``state.ready_end``; contended requests move to its beginning.

    Parameters
    ----------
    first, end: uint64, the part.
    uncontended: ``best_bid`` of a resource with a single request; 0 if all requests are matched.
    rotate_priority: whether grants rotate the priorities.
    tick: int64.

    Returns
    -------
    (ready_end, new_heads, contended requests). A VC that sends a flit returns a credit.
    """
    contended, credit = U(0), state.queue[layout.RETURNED].end
    for i in range(first, end):
        if const.exceeds_cache:
            prefetch(state.vc, np.int64(state.ready[i + layout.FAR_PREFETCH_DISTANCE] & layout.VC_MASK))
            prefetch_send(const, state, state.ready[i + layout.PREFETCH_DISTANCE])
        request = state.ready[i]
        vc, crossbar_input, output = _unpack_request(const, request)
        output_record, input_record = state.output[output], state.crossbar_input[crossbar_input]
        if uncontended and (output_record.best_bid != uncontended or input_record.best_bid != uncontended):
            state.ready[first + contended] = request
            contended += U(1)
            continue
        end_stall(state.stalls, vc)
        input_record.vc = vc
        if rotate_priority:
            input_record.output = output
            output_record.last_input = crossbar_input
        _hold_output(const.output_ticks, state, output, tick)
        credit = _return_credit(state.crossbar, const.credit_queue, const, state, vc, credit)
        ready_end, new_heads = send_flit(const, state, request, U(output_record.queue), ready_end, new_heads)
    if const.credit_queue is None:
        state.queue[layout.RETURNED].end = credit
    return ready_end, new_heads, contended


@inline
def _return_credit(crossbar, credit_queue, const, state, vc, credit):
    """Return the credit of a flit that leaves an input VC.

    crossbar, credit_queue: ``state.crossbar``, ``const.credit_queue``. credit: the next index in the single queue of
    credits; the one after it is returned.
    """
    if crossbar is not None:
        hold_credit(crossbar, const, vc)
        return credit
    if credit_queue is None:
        state.entries[credit] = vc
        return credit + U(1)
    push(state, U(credit_queue[vc]), U(0), vc)
    return credit


@inline
def allocate_all(const, state, step, first, end, ready_end, sparse):
    """Match the requests in ``state.ready_end`` from ``first`` to ``end`` - 1 with outputs, and send their flits.

    Parameters
    ----------
    step: int64, of the crossbar; the tick where channels differ in speed, which excludes a speed-up.
    ready_end: end of the ready list of the next step.
    sparse: whether contention is likely to be rare, so that finding it pays; else all requests are treated as
    contended.

    Returns
    -------
    (end of the ready list of the next tick, length of ``state.new_heads``, whether nearly all requests were granted,
    the prediction for the next tick).
    """
    end, ready_end = _withhold_requests(const.output_ticks, _is_held, const, state, first, end, ready_end, step)
    end, ready_end = _withhold_requests(
        state.pool.replies, _waits_for_reply, const, state, first, end, ready_end, tick_of_step(state.crossbar, step)
    )
    _turn_diagonals(state.wavefront, const, state, first, end, step)
    uncontended = time_of(const, step, U(const.iterations)) + U(1)
    first_sent, end_sent, contended, new_heads = first, first, end - first, U(0)
    if sparse:
        _add_requests(const, state, first, end, uncontended - U(1))
        end_sent, contended = end, U(0)
    for round_ in range(U(const.iterations) + U(1)):
        if round_ > 0:
            contended, end_sent = _match_contended(const, state, first, contended, step, round_ - U(1))
            first_sent, uncontended = const.ready_capacity + const.ready_capacity, U(0)
        ready_end, new_heads, newly_contended = _send_granted(
            const, state, first_sent, end_sent, uncontended, round_ < 2, ready_end, new_heads, step
        )
        contended += newly_contended
        if contended == 0:
            break
    for i in range(contended):
        state.ready[ready_end + i] = state.ready[first + i]
    return ready_end + contended, new_heads, U(8) * (end - first - contended) >= U(7) * (end - first)
