# SPDX-License-Identifier: Apache-2.0
"""VC allocation: packets that have come to the front of an input VC are given VCs of the output they go to.

Packets that wait for a VC wait in a line: one for each output, or, if routing is adaptive, one for each switch.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.allocate import first_after
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.rules.route import route_word
from flitlab.models.rules.tables import ADAPTIVE, ANY
from flitlab.models.rules.vc import is_reserved, vc_score
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.records import NEVER, NOBODY
from flitlab.sim.engines.compiled.wormhole.bids import TIME_AT, ask_for, time_of
from flitlab.sim.engines.compiled.wormhole.flits import credits
from flitlab.sim.engines.compiled.wormhole.queues import mark, push, take
from flitlab.sim.engines.compiled.wormhole.routing import choices_at, front_flit, front_packet, output_of, outputs_of
from flitlab.sim.engines.compiled.wormhole.state import (
    AHEAD,
    FAR_AHEAD,
    HEADERS,
    NO_CREDIT,
    ONE,
    OUTPUT_AT,
    PACKET_AT,
    UNREAD,
    VC_OF,
    U,
)

_NOBODY = U(NOBODY)
_LAST = U(63)
_HEAD_AT = U(32)  # in an entry of ``state.asking``, above the VC
_PACKET_AT = _HEAD_AT + PACKET_AT

# Bits of a bid: how far the input VC is from its turn and, above, the time (see ``bids``).
_PLACES = (ONE << TIME_AT) - ONE


@inline
def _present(const, state, vc, head):
    """Find where the packet goes that has come to the front of an input VC, and let its header be read.

    Returns the output; 0 if routing is adaptive.
    """
    vc_record, output = state.vc[vc], U(0)
    if const.rule != ADAPTIVE:
        packet = head >> PACKET_AT
        output = output_of(const, state, vc, packet)
        vc_record.output = output
        if const.policy != ANY:
            vc_record.choices = choices_at(const, state, vc, packet, output)
    if const.header > 1:
        vc_record.blocked |= UNREAD
        push(state, HEADERS, U(0), vc)
    return output


@inline
def _give(state, request, vc_record, stock, next_vc, given):
    """Give the front packet of an input VC a VC of an output.

    request: of the input VC. stock: record of the output. ``given`` is the end of the list in ``state.ready`` to which
    the request is added if the packet's head can be sent now, and the end after is returned.
    """
    there = state.vc[next_vc]
    blocked = (U(vc_record.blocked) & UNREAD) | U(there.credits == 0) * NO_CREDIT
    stock.free &= ~(ONE << (next_vc - U(stock.first)))
    there.holder = request & VC_OF
    vc_record.next_vc = next_vc
    vc_record.blocked = blocked
    state.ready[given] = request
    return given + U(blocked == U(0))


@inline
def _wait(state, vc, line):
    """Put an input VC at the end of a line."""
    stock = state.stock[line]
    state.following[vc] = NOBODY
    if stock.waiting == NOBODY:
        stock.waiting = vc
    else:
        state.following[U(stock.last)] = vc
    stock.last = vc


@inline
def _empty_all(state, count):
    """Append the members of the lines in ``state.to_retry``, which are empty then, to ``state.contender``.

    ``count`` is the length of the list before, and its length after is returned. What is above a VC there is its line,
    which is its output unless routing is adaptive.
    """
    for i in range(take(state.to_retry, state.members)):
        line = U(state.members[i])
        stock = state.stock[line]
        vc = U(stock.waiting)
        stock.waiting = NOBODY
        while vc != _NOBODY:
            state.contender[count] = line << OUTPUT_AT | vc
            count += ONE
            vc = U(state.following[vc])
    return count


@inline
def _bid(state, vc, next_vc, time):
    """Make an input VC's bid for an output VC: who was given it last stands behind all others.

    time: of the iteration, above the bits of a bid.
    """
    return time | ((U(state.vc[next_vc].asker) - vc) & _PLACES)


@inline
def _bid_for_all(const, state, vc, output, time):
    """Let an input VC bid for all VCs of an output that it may take: every free one offers itself to the best."""
    stock = state.stock[output]
    choices, first = U(state.vc[vc].choices) & U(stock.free), U(stock.first)
    for k in range(U(const.vcs)):
        bid = ((choices >> k) & ONE) * _bid(state, vc, first + k, time)
        state.offer[first + k] = max(state.offer[first + k], bid)


@inline
def _foresee(const, state, i):
    """Begin to load what routing needs of those who come behind place ``i`` in ``state.asking``."""
    prefetch(state.pool.packet, np.int64(state.asking[i + FAR_AHEAD] >> _PACKET_AT))
    if len(const.only_port):
        following = state.asking[i + AHEAD]
        target = U(state.pool.packet[following >> _PACKET_AT].where)
        prefetch(const.only_port, np.int64(U(const.switch[following & VC_OF]) * U(const.net.switches) + target))


@inline
def _ask_all(const, state, asking, time):
    """Append the first ``asking`` in ``state.asking`` to ``state.contender``, and let all there ask for VCs.

    Returns the new length of ``state.contender``.
    """
    count = U(state.contender[-1])
    for i in range(count):
        ask_for(state.stock[state.contender[i] >> OUTPUT_AT], time)
    for i in range(asking):
        if const.large:
            _foresee(const, state, i)
        vc = state.asking[i] & VC_OF
        output = _present(const, state, vc, state.asking[i] >> _HEAD_AT)
        ask_for(state.stock[output], time)
        state.contender[count + i] = output << OUTPUT_AT | vc
    return count + asking


@inline
def _offers(const, state, vc, choices, first, time):
    """Find the VCs of an output that offer themselves to an input VC, a bit each.

    choices: those that are free and that it may take, a bit each. first: number of the output's first VC.
    """
    best = U(0)
    for k in range(U(const.vcs)):
        best |= U(state.offer[first + k] == _bid(state, vc, first + k, time)) << k
    return best & choices  # of those that are not free the turn has moved on


@inline
def _accept_all(const, state, count, time, rotates, given):
    """Let who can accept a VC: (how many are left in ``state.contender``, the new ``given``).

    At first those who alone ask for VCs of an output, of which any is theirs; then, if there are others, all these
    bid. count: of those in ``state.contender``. rotates: whether priorities move on. given: see :func:`_give`.
    """
    left = count
    for turn in range(2):
        count, left = left, U(0)
        if turn:
            for i in range(count):
                _bid_for_all(const, state, state.contender[i] & VC_OF, state.contender[i] >> OUTPUT_AT, time)
        for i in range(count):
            request = state.contender[i]
            vc, output = request & VC_OF, request >> OUTPUT_AT
            vc_record, stock = state.vc[vc], state.stock[output]
            offers, first = U(vc_record.choices) & U(stock.free), U(stock.first)
            if offers == U(0):
                _wait(state, vc, output)
                continue
            if stock.best != time + ONE:
                offers = _offers(const, state, vc, offers, first, time) if turn else U(0)
                if offers == U(0):
                    state.contender[left] = request
                    left += ONE
                    continue
            last = U(vc_record.given) - first  # another output's VC is none of these: begin at the lowest
            next_vc = first + U(first_after(offers, last if last < U(const.vcs) else _LAST))
            if rotates:
                state.vc[next_vc].asker = vc
                vc_record.given = next_vc
            given = _give(state, request, vc_record, stock, next_vc, given)
        if left == U(0):
            break
    return left, given


@inline
def _match_all(const, state, asking, given, tick):
    """Match those who ask with the free VCs of their outputs; the new ``given`` (see :func:`_give`).

    asking: length of the list ``state.asking`` of those who ask for the first time.
    """
    state.contender[-1] = _empty_all(state, U(state.contender[-1]))
    for iteration in range(U(const.iterations)):
        time = time_of(const, tick, iteration)
        count = _ask_all(const, state, asking, time)
        state.contender[-1], given = _accept_all(const, state, count, time, iteration == 0, given)
        asking = U(0)
    return given


@device_function
def _best_vc(const, state, vc, packet, output):
    """Find the free VC of an output that an adaptive packet prefers (ties: the lowest), and its appeal.

    The appeal is 0 if the packet can have none.
    """
    free = choices_at(const, state, vc, packet, output) & state.stock[output].free
    best, most, flits = _NOBODY, np.int64(0), np.int64(state.pool.packet[packet].flits)
    while free:
        k = U(lowest(free))
        free &= free - ONE
        next_vc = U(state.stock[output].first) + k
        worth = vc_score(const.resorts, np.int64(k), credits(state, next_vc), flits)
        if worth > most:
            best, most = next_vc, worth
    return best, most


@inline
def _cost(const, state, output, worth):
    """Find the cost of an output to a packet (see ``rules.adaptive``); worth: appeal of the VC that it would take.

    Counted are flits of credit in use, and those that the packets that hold its VCs have yet to send.
    """
    first, flits = U(state.stock[output].first), np.int64(0)
    for next_vc in range(first, first + U(const.vcs)):
        vc_record = state.vc[next_vc]
        flits += const.buffer_flits - np.int64(vc_record.credits)
        flits += np.int64((U(vc_record.asker) - U(vc_record.carried)) & VC_OF)
    return channel_cost(flits, const.resorts > 0 and is_reserved(worth))


@device_function
def _choose(const, state, vc):
    """Choose the output, and the VC there, that an adaptive packet takes (see ``rules.adaptive``); NOBODY: none."""
    packet = front_packet(state, vc)
    base, ports = outputs_of(const, state, vc, packet)
    if popcount(ports) == 1:
        output = base + U(lowest(ports))
        return output, _best_vc(const, state, vc, packet, output)[0]
    record, least, tied, left = state.pool.packet[packet], NEVER, U(0), ports
    while left:
        port = U(lowest(left))
        left &= left - ONE
        _, worth = _best_vc(const, state, vc, packet, base + port)
        if worth == 0:
            continue
        cost = _cost(const, state, base + port, worth)
        if cost < least:
            least, tied = cost, U(0)
        if cost == least:
            tied |= ONE << port
    if not tied:
        return U(0), _NOBODY
    word = route_word(const.net.seed, np.int64(record.source), np.int64(record.sequence), np.int64(record.hop))
    output = base + U(drawn_channel(ports, word))
    best, worth = _best_vc(const, state, vc, packet, output)
    if worth > 0 and keeps_drawn(_cost(const, state, output, worth), least, np.int64(record.flits)):
        return output, best
    output = base + U(drawn_tie(tied, word))
    return output, _best_vc(const, state, vc, packet, output)[0]


@inline
def _visit_all(const, state, asking, given):
    """Let adaptive packets take what they choose, those who wait first, oldest first; the new ``given``.

    asking: length of the list ``state.asking`` of those who ask for the first time.
    """
    waited = _empty_all(state, U(0))
    for i in range(asking):
        _present(const, state, state.asking[i] & VC_OF, state.asking[i] >> _HEAD_AT)
    for i in range(waited + asking):
        vc = (state.contender[i] if i < waited else state.asking[i - waited]) & VC_OF
        vc_record = state.vc[vc]
        output, next_vc = _choose(const, state, vc)
        vc_record.output = output
        if next_vc == _NOBODY:
            _wait(state, vc, U(vc_record.switch))
        else:
            flits = U(state.pool.packet[front_packet(state, vc)].flits)
            state.vc[next_vc].asker = U(state.vc[next_vc].carried) + flits
            given = _give(state, output << OUTPUT_AT | vc, vc_record, state.stock[output], next_vc, given)
    return given


@inline
def _sort(const, state, asking):
    """Sort the first ``asking`` in ``state.asking``: the order of visits, and that of records in memory.

    From then on, most of what comes up in the same order lies close together, which translation to addresses of pages
    needs in large networks.
    """
    for i in range(asking):
        mark(state.member, state.asking[i] & VC_OF, True)
    for i in range(take(state.member, state.members)):
        vc = U(state.members[i])
        state.asking[i] = front_flit(state, vc) << _HEAD_AT | vc


@inline
def allocate_all(const, state, asking, given, tick):
    """Give free VCs to packets that wait for them and to those of the first ``asking`` input VCs in ``state.asking``.

    Whoever gets none goes on contending, or waits. Those whose front flit can be sent with the VC that they were given
    are added to ``state.ready`` from ``given`` on; the end of that list is returned.
    """
    if const.large or const.rule == ADAPTIVE:
        _sort(const, state, asking)
    if const.rule == ADAPTIVE:
        return _visit_all(const, state, asking, given)
    return _match_all(const, state, asking, given, tick)
