# SPDX-License-Identifier: Apache-2.0
"""VC allocation: head packets of input VCs are granted VCs of their outputs.

Packets without a VC wait in a queue: one for each output, or for each switch if routing is adaptive.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.allocate import first_after
from flitlab.models.rules.bits import empty_set, is_empty, lowest, popcount, with_port, without_lowest
from flitlab.models.rules.route import route_word
from flitlab.models.rules.tables import Selection
from flitlab.models.rules.vc import is_reserved, vc_score
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.records import NONE, Tick
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.flits import buffer_of, free_credits
from flitlab.sim.engines.compiled.wormhole.layout import TIME_SHIFT, U, add_request, time_of
from flitlab.sim.engines.compiled.wormhole.queues import drain_bitmap, push, set_bit
from flitlab.sim.engines.compiled.wormhole.routing import (
    allowed_outputs,
    allowed_vcs_at,
    front_flit,
    front_packet,
    output_of,
    restricts_vcs,
)
from flitlab.sim.engines.compiled.wormhole.urgency import (
    adaptive_head,
    bids_for_vc,
    note_front_packet,
    order_adaptive_heads,
    rank_vc_requests,
)
from flitlab.sim.engines.compiled.wormhole.wavefront import (
    distance_of,
    note_rank,
    sort_by_diagonal,
    sort_by_rank,
    turn_diagonals,
)

_NONE = U(NONE)
_LAST_BIT = U(63)
_HEAD_SHIFT = U(32)  # in an entry of ``state.new_heads``, above the VC
_PACKET_SHIFT = _HEAD_SHIFT + layout.PACKET_SHIFT

# Bits of a bid: the rotating distance of the input VC and, above, the time (see ``layout.py``).
_TURN_MASK = (U(1) << TIME_SHIFT) - U(1)


@inline
def _route_head(const, state, vc, head):
    """Route the packet at the front of an input VC, and start the reading of its header.

    Returns the output; 0 if routing is adaptive.
    """
    vc_record, output = state.vc[vc], U(0)
    note_front_packet(state.urgency, const.net.classes, state, vc, head >> layout.PACKET_SHIFT)
    if const.rule != Selection.ADAPTIVE:
        packet = head >> layout.PACKET_SHIFT
        output = output_of(const, state, vc, packet)
        vc_record.output = output
        if restricts_vcs(const.net.classes, const):
            vc_record.allowed_vcs = allowed_vcs_at(const, state, vc, packet, output)
    if const.reads_headers:
        vc_record.blocked |= layout.UNREAD
        push(state, layout.HEADERS, U(0), vc)
    return output


@inline
def _grant_vc(state, request, vc_record, vc_set, next_vc, ready_end):
    """Grant a VC of an output to the packet at the front of an input VC.

    Parameters
    ----------
    request: of the input VC.
    vc_record, vc_set: records of the input VC and of the output's VCs.
    next_vc: the VC granted.
    ready_end: end of the list in ``state.ready`` that takes the request if the head flit can be sent; returned after
    that.
    """
    next_record = state.vc[next_vc]
    blocked = (U(vc_record.blocked) & layout.UNREAD) | U(next_record.credits == 0) * layout.NO_CREDIT
    vc_set.free &= ~(U(1) << (next_vc - U(vc_set.first)))
    next_record.holder = request & layout.VC_MASK
    vc_record.next_vc = next_vc
    vc_record.blocked = blocked
    state.ready[ready_end] = request
    return ready_end + U(blocked == U(0))


@inline
def _join_wait_queue(state, vc, wait_queue):
    """Append an input VC to a wait queue."""
    vc_set = state.vc_set[wait_queue]
    state.next_waiting[vc] = NONE
    if vc_set.first_waiting == NONE:
        vc_set.first_waiting = vc
    else:
        state.next_waiting[U(vc_set.last_waiting)] = vc
    vc_set.last_waiting = vc


@inline
def _drain_wait_queues(state, count):
    """Move the wait queues in ``state.to_retry`` to ``state.contenders``, and return its new length.

    Above a VC there is its wait queue, which is its output unless routing is adaptive.
    """
    for i in range(drain_bitmap(state.to_retry, state.members)):
        wait_queue = U(state.members[i])
        vc_set = state.vc_set[wait_queue]
        vc = U(vc_set.first_waiting)
        vc_set.first_waiting = NONE
        while vc != _NONE:
            state.contenders[count] = wait_queue << layout.OUTPUT_SHIFT | vc
            count += U(1)
            vc = U(state.next_waiting[vc])
    return count


@inline
def _bid_for_vc(state, vc, next_vc, time):
    """Make an input VC's bid for an output VC: the last grantee has the lowest priority."""
    return time | ((U(state.vc[next_vc].last_requester) - vc) & _TURN_MASK)


@inline
def _next_vc(const, vc_record, first, offers):
    """Return the one of some VCs of an output that comes first after the last one granted to an input VC.

    Parameters
    ----------
    vc_record: of the input VC.
    first: uint64, the output's first VC.
    offers: uint64, the VCs, a bit each, at least one.
    """
    last = U(vc_record.last_granted) - first  # a VC of another output: begin at the lowest
    return first + U(first_after(offers, last if last < U(const.vcs) else _LAST_BIT))


@inline
def _requested_vcs(input_first, const, state, vc, output):
    """Return the free VCs of an output that an input VC bids for, a bit each: all allowed ones, or only the next.

    input_first: ``const.input_first``.
    """
    vc_record, vc_set = state.vc[vc], state.vc_set[output]
    free = U(vc_record.allowed_vcs) & U(vc_set.free)
    if input_first is None:
        return free
    if free == U(0):
        return free
    first = U(vc_set.first)
    return U(1) << (_next_vc(const, vc_record, first, free) - first)


@inline
def _bid_for_vcs(const, state, vc, output, time):
    """Bid for VCs of an output: every free one offers itself to the highest bid."""
    allowed, first = _requested_vcs(const.input_first, const, state, vc, output), U(state.vc_set[output].first)
    for k in range(U(const.vcs)):
        bids = (allowed >> k) & bids_for_vc(state.urgency, vc, first + k) & U(1)
        bid = bids * _bid_for_vc(state, vc, first + k, time)
        state.best_offer[first + k] = max(state.best_offer[first + k], bid)


@inline
def _prefetch_routing(const, state, i):
    """Prefetch what routing needs of the entries behind ``i`` in ``state.new_heads``."""
    prefetch(state.pool.packet, np.int64(state.new_heads[i + layout.FAR_PREFETCH_DISTANCE] >> _PACKET_SHIFT))
    if len(const.single_port):
        following = state.new_heads[i + layout.PREFETCH_DISTANCE]
        target = U(state.pool.packet[following >> _PACKET_SHIFT].switch)
        prefetch(
            const.single_port, np.int64(U(const.switch[following & layout.VC_MASK]) * U(const.net.switches) + target)
        )


@inline
def _add_requests(const, state, new_heads, time):
    """Append the first ``new_heads`` entries to ``state.contenders``, and count all requests for VCs.

    Returns the new length of ``state.contenders``.
    """
    count = U(state.contenders[-1])
    for i in range(count):
        add_request(state.vc_set[state.contenders[i] >> layout.OUTPUT_SHIFT], time)
    for i in range(new_heads):
        if const.exceeds_cache:
            _prefetch_routing(const, state, i)
        vc = state.new_heads[i] & layout.VC_MASK
        output = _route_head(const, state, vc, state.new_heads[i] >> _HEAD_SHIFT)
        add_request(state.vc_set[output], time)
        state.contenders[count + i] = output << layout.OUTPUT_SHIFT | vc
    return count + new_heads


@inline
def _offered_vcs(const, state, vc, allowed, first, time):
    """Return the VCs of an output that offer themselves to an input VC, a bit each.

    allowed: free and allowed VCs, a bit each. first: number of the output's first VC.
    """
    best = U(0)
    for k in range(U(const.vcs)):
        best |= U(state.best_offer[first + k] == _bid_for_vc(state, vc, first + k, time)) << k
    return best & allowed  # offers of other VCs are stale


@inline
def _accept_offers(const, state, count, time, rotate_priority, ready_end):
    """Let input VCs accept offers: (requests that remain in ``state.contenders``, the new ``ready_end``).

    First the uncontended requests take any allowed VC; the others, if any, then bid.

    Parameters
    ----------
    count: of requests in ``state.contenders``.
    rotate_priority: whether grants rotate the priorities.
    ready_end: see :func:`_grant_vc`.
    """
    remaining = count
    for round_ in range(2):
        count, remaining = remaining, U(0)
        if round_:
            rank_vc_requests(state.urgency, const, state, count, _requested_vcs)
            for i in range(count):
                _bid_for_vcs(
                    const, state, state.contenders[i] & layout.VC_MASK, state.contenders[i] >> layout.OUTPUT_SHIFT, time
                )
        for i in range(count):
            request = state.contenders[i]
            vc, output = request & layout.VC_MASK, request >> layout.OUTPUT_SHIFT
            vc_record, vc_set = state.vc[vc], state.vc_set[output]
            offers, first = U(vc_record.allowed_vcs) & U(vc_set.free), U(vc_set.first)
            if offers == U(0):
                _join_wait_queue(state, vc, output)
                continue
            if vc_set.best_bid != time + U(1):
                requested = _requested_vcs(const.input_first, const, state, vc, output)
                offers = _offered_vcs(const, state, vc, requested, first, time) if round_ else U(0)
                if offers == U(0):
                    state.contenders[remaining] = request
                    remaining += U(1)
                    continue
            next_vc = _next_vc(const, vc_record, first, offers)
            if rotate_priority:
                state.vc[next_vc].last_requester = vc
                vc_record.last_granted = next_vc
            ready_end = _grant_vc(state, request, vc_record, vc_set, next_vc, ready_end)
        if remaining == U(0):
            break
    return remaining, ready_end


@inline
def _match_diagonals(wavefront, const, state, count, ready_end, step):
    """Match the requests in ``state.contenders`` with free VCs, diagonal by diagonal.

    Parameters
    ----------
    wavefront: ``state.wavefront``.
    count: uint64, of requests.
    ready_end: see :func:`_grant_vc`.
    step: int64.

    Returns
    -------
    (requests that remain in ``state.contenders``, the new ``ready_end``).
    """
    pairs = np.int64(0)
    for i in range(count):
        vc, output = state.contenders[i] & layout.VC_MASK, state.contenders[i] >> layout.OUTPUT_SHIFT
        switch, free = np.int64(const.switch[vc]), U(state.vc[vc].allowed_vcs) & U(state.vc_set[output].free)
        while free:
            k = np.int64(lowest(free))
            free &= free - U(1)
            turn_diagonals(wavefront.vc, switch, step)
            wavefront.request[pairs] = np.int64(i) * const.vcs + k
            note_rank(wavefront.rank, state.urgency, pairs, vc)
            wavefront.diagonal[pairs] = distance_of(
                wavefront.vc, switch, np.int64(vc), np.int64(output) * const.vcs + k
            )
            pairs += 1
    sort_by_diagonal(wavefront, pairs)
    sort_by_rank(wavefront.rank, wavefront, pairs)
    for place in range(pairs):
        pair = wavefront.request[wavefront.order[place]]
        request, k = state.contenders[U(pair // const.vcs)], U(pair % const.vcs)
        vc_record, vc_set = state.vc[request & layout.VC_MASK], state.vc_set[request >> layout.OUTPUT_SHIFT]
        if U(vc_record.blocked) & layout.NO_VC and U(vc_set.free) >> k & U(1):
            ready_end = _grant_vc(state, request, vc_record, vc_set, U(vc_set.first) + k, ready_end)
    remaining = U(0)
    for i in range(count):
        request = state.contenders[i]
        vc, output = request & layout.VC_MASK, request >> layout.OUTPUT_SHIFT
        if U(state.vc[vc].blocked) & layout.NO_VC:
            if U(state.vc[vc].allowed_vcs) & U(state.vc_set[output].free):
                state.contenders[remaining] = request
                remaining += U(1)
            else:
                _join_wait_queue(state, vc, output)
    return remaining, ready_end


@inline
def _match_requests(wavefront, const, state, new_heads, ready_end, step):
    """Match requests with the free VCs of their outputs; returns the new ``ready_end`` (see :func:`_grant_vc`).

    wavefront: ``state.wavefront``.
    """
    state.contenders[-1] = _drain_wait_queues(state, U(state.contenders[-1]))
    if wavefront is not None:
        count = _add_requests(const, state, new_heads, time_of(const, step, U(0)))
        state.contenders[-1], ready_end = _match_diagonals(wavefront, const, state, count, ready_end, step)
        return ready_end
    for iteration in range(U(const.iterations)):
        time = time_of(const, step, iteration)
        count = _add_requests(const, state, new_heads, time)
        state.contenders[-1], ready_end = _accept_offers(const, state, count, time, iteration == 0, ready_end)
        new_heads = U(0)
    return ready_end


@device_function
def _best_vc(const, state, vc, packet, output):
    """Return the free VC of an output with the best score for an adaptive packet (ties: the lowest), and the score.

    The score is 0 if no VC can be granted. Hosts have space however many flits are in flight to them.
    """
    free = allowed_vcs_at(const, state, vc, packet, output) & state.vc_set[output].free
    best, best_score, flits = _NONE, np.int64(0), np.int64(state.pool.packet[packet].flits)
    while free:
        k = U(lowest(free))
        free &= free - U(1)
        next_vc = U(state.vc_set[output].first) + k
        credits = free_credits(state, next_vc) if next_vc < const.input_vcs else np.int64(layout.UNLIMITED_CREDITS)
        score = vc_score(const.reserved_vcs, np.int64(k), credits, flits)
        if score > best_score:
            best, best_score = next_vc, score
    return best, best_score


@inline
def _channel_cost(const, state, output, score):
    """Return the cost of an output for a packet (see :mod:`flitlab.models.rules.adaptive`); score: of its VC.

    The cost is the downstream credits in use, plus the flits that the holders of its VCs have yet to send, in ticks.
    """
    first, flits = U(state.vc_set[output].first), np.int64(0)
    for next_vc in range(first, first + U(const.vcs)):
        vc_record = state.vc[next_vc]
        flits += buffer_of(const.vc_buffers, const, next_vc) - np.int64(vc_record.credits)
        flits += np.int64((U(vc_record.last_requester) - U(vc_record.flits_sent)) & layout.VC_MASK)
    return channel_cost(held_ticks(const.output_ticks, output, flits), const.reserved_vcs > 0 and is_reserved(score))


@device_function
def _choose_output(const, state, vc):
    """Choose (output, VC) for an adaptive packet (see :mod:`flitlab.models.rules.adaptive`); NONE: no VC."""
    packet = front_packet(state, vc)
    base, ports = allowed_outputs(const, state, vc, packet)
    if popcount(ports) == 1:
        output = base + U(lowest(ports))
        return output, _best_vc(const, state, vc, packet, output)[0]
    record, least_cost, ties, remaining = state.pool.packet[packet], Tick.NEVER, empty_set(ports), ports
    while not is_empty(remaining):
        port = U(lowest(remaining))
        remaining = without_lowest(remaining)
        _, score = _best_vc(const, state, vc, packet, base + port)
        if score == 0:
            continue
        cost = _channel_cost(const, state, base + port, score)
        if cost < least_cost:
            least_cost, ties = cost, empty_set(ties)
        if cost == least_cost:
            ties = with_port(ties, port)
    if is_empty(ties):
        return U(0), _NONE
    draw = route_word(const.net.seed, np.int64(record.src_host), np.int64(record.sequence), np.int64(record.hop))
    output = base + U(drawn_channel(ports, draw))
    best, score = _best_vc(const, state, vc, packet, output)
    length = held_ticks(const.output_ticks, output, np.int64(record.flits))
    if score > 0 and keeps_drawn(_channel_cost(const, state, output, score), least_cost, length):
        return output, best
    output = base + U(drawn_tie(ties, draw))
    return output, _best_vc(const, state, vc, packet, output)[0]


@inline
def _allocate_adaptive(const, state, new_heads, ready_end):
    """Let adaptive packets take the VC that they choose, the most urgent first, then waiting ones, oldest first.

    Returns the new ``ready_end``.
    """
    waiting = _drain_wait_queues(state, U(0))
    for i in range(new_heads):
        _route_head(const, state, state.new_heads[i] & layout.VC_MASK, state.new_heads[i] >> _HEAD_SHIFT)
    order_adaptive_heads(state.urgency, state, waiting, new_heads)
    for i in range(waiting + new_heads):
        vc = adaptive_head(state.urgency, state, waiting, i)
        vc_record = state.vc[vc]
        output, next_vc = _choose_output(const, state, vc)
        vc_record.output = output
        if next_vc == _NONE:
            _join_wait_queue(state, vc, U(vc_record.switch))
        else:
            flits = U(state.pool.packet[front_packet(state, vc)].flits)
            state.vc[next_vc].last_requester = U(state.vc[next_vc].flits_sent) + flits
            ready_end = _grant_vc(
                state, output << layout.OUTPUT_SHIFT | vc, vc_record, state.vc_set[output], next_vc, ready_end
            )
    return ready_end


@inline
def _sort_new_heads(state, new_heads):
    """Sort the first ``new_heads`` entries by input VC: the order of visits, and of records in memory.

    Later lists keep this order, which reduces TLB misses in large networks.
    """
    for i in range(new_heads):
        set_bit(state.member_bits, state.new_heads[i] & layout.VC_MASK, True)
    for i in range(drain_bitmap(state.member_bits, state.members)):
        vc = U(state.members[i])
        state.new_heads[i] = front_flit(state, vc) << _HEAD_SHIFT | vc


@inline
def allocate_all(const, state, new_heads, ready_end, step):
    """Allocate free VCs to waiting packets and to new head packets.

    A packet without a VC keeps contending, or joins a wait queue.

    Parameters
    ----------
    new_heads: uint64, length of the list ``state.new_heads``.
    ready_end: uint64, index in ``state.ready`` from which on input VCs are added whose head flit can be sent.
    step: int64, of the crossbar.

    Returns
    -------
    The end of the list in ``state.ready``.
    """
    if const.exceeds_cache or const.rule == Selection.ADAPTIVE:
        _sort_new_heads(state, new_heads)
    if const.rule == Selection.ADAPTIVE:
        return _allocate_adaptive(const, state, new_heads, ready_end)
    return _match_requests(state.wavefront, const, state, new_heads, ready_end, step)
