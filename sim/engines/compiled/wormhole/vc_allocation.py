# SPDX-License-Identifier: Apache-2.0
"""VC allocation: packets that have come to the front of an input VC are given VCs of the output they go to.

Packets that wait for a VC wait in a line: one for each output, or, if routing is adaptive, one for each switch.
"""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.rules.allocate import first_after
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.tables import ADAPTIVE, ANY
from flitlab.models.rules.vc import appeal
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.wormhole.bids import TIME_AT, ask_for, time_of
from flitlab.sim.engines.compiled.wormhole.flits import credits, line_of
from flitlab.sim.engines.compiled.wormhole.queues import mark, push, take
from flitlab.sim.engines.compiled.wormhole.routing import choices_at, front_flit, front_packet, output_of, outputs_of
from flitlab.sim.engines.compiled.wormhole.state import HEADERS, NO_CREDIT, ONE, PACKET_AT, UNREAD, U

_NOBODY = U(NOBODY)
_LAST = U(63)
_32, _LOW32 = U(32), U(0xFFFFFFFF)

# Bits of a bid: how far the input VC is from its turn and, above, the time (see ``bids``).
_PLACES = (ONE << TIME_AT) - ONE


@inner
def _present(const, state, vc, head):
    """Find where the packet goes that has come to the front of an input VC, and let its header be read."""
    vc_record = state.vc[vc]
    if const.rule != ADAPTIVE:
        packet = head >> PACKET_AT
        output = output_of(const, state, vc, packet)
        vc_record.output = output
        if const.policy != ANY:
            vc_record.choices = choices_at(const, state, vc, packet, output)
    if const.header > 1:
        vc_record.blocked |= UNREAD
        push(state, HEADERS, U(0), vc)


@inner
def _give(state, vc, vc_record, output_record, chosen, given):
    """Give the front packet of an input VC a VC of an output.

    chosen: number of the VC at the output. ``given`` is the length of the list ``state.given`` before, and its length
    after is returned.
    """
    next_vc = U(output_record.first) + chosen
    there = state.vc[next_vc]
    blocked = (U(vc_record.blocked) & UNREAD) | U(there.credits == 0) * NO_CREDIT
    output_record.free &= ~(ONE << chosen)
    there.holder = vc
    vc_record.next_vc = next_vc
    vc_record.blocked = blocked
    state.given[given] = vc
    return given + U(blocked == U(0))


@inner
def _wait(state, vc, line):
    """Put an input VC at the end of a line."""
    line_record = state.output[line]
    state.following[vc] = NOBODY
    if line_record.waiting == NOBODY:
        line_record.waiting = vc
    else:
        state.following[U(state.last_waiting[line])] = vc
    state.last_waiting[line] = vc


@inner
def _empty_all(state, count):
    """Append the members of the lines in ``state.to_retry``, which are empty then, to ``state.contender``.

    ``count`` is the length of the list before, and its length after is returned.
    """
    for i in range(take(state.to_retry, state.calling)):
        line_record = state.output[U(state.calling[i])]
        vc = U(line_record.waiting)
        line_record.waiting = NOBODY
        while vc != _NOBODY:
            state.contender[count] = vc
            count += ONE
            vc = U(state.following[vc])
    return count


@inner
def _bid(state, vc, next_vc, time):
    """Make an input VC's bid for an output VC: who was given it last stands behind all others.

    time: of the iteration, above the bits of a bid.
    """
    return time | ((U(state.vc[next_vc].asker) - vc) & _PLACES)


@inner
def _bid_for_all(const, state, vc, time):
    """Let an input VC bid for all VCs that it may take: every free one offers itself to the best."""
    vc_record = state.vc[vc]
    output_record = state.output[U(vc_record.output)]
    choices, first = U(vc_record.choices) & U(output_record.free), U(output_record.first)
    for k in range(U(const.vcs)):
        bid = ((choices >> k) & ONE) * _bid(state, vc, first + k, time)
        state.offer[first + k] = max(state.offer[first + k], bid)


@inner
def _ask_all(const, state, asking, time):
    """Append the first ``asking`` in ``state.asking`` to ``state.contender``, and let all there ask for VCs.

    Returns the new length of ``state.contender``.
    """
    count = U(state.contender[-1])
    for i in range(count):
        ask_for(state.output[U(state.vc[U(state.contender[i])].output)], time)
    for i in range(asking):
        vc, head = state.asking[i] & _LOW32, state.asking[i] >> _32
        _present(const, state, vc, head)
        ask_for(state.output[U(state.vc[vc].output)], time)
        state.contender[count + i] = vc
    return count + asking


@inner
def _offers(const, state, vc, vc_record, output_record, time):
    """Find the VCs of an output that offer themselves to an input VC, a bit each."""
    choices, first = U(vc_record.choices) & U(output_record.free), U(output_record.first)
    best = U(0)
    for k in range(U(const.vcs)):
        best |= U(state.offer[first + k] == _bid(state, vc, first + k, time)) << k
    return best & choices  # of those that are not free the turn has moved on


@inner
def _accept_all(const, state, count, time, rotates, given):
    """Let who can accept a VC: (how many are left in ``state.contender``, the new ``given``).

    At first those who alone ask for VCs of an output, of which any is theirs; then, if there are others, all these
    bid. count: of those in ``state.contender``. rotates: whether priorities move on. given: length of the list
    ``state.given``.
    """
    left = count
    for turn in range(2):
        count, left = left, U(0)
        if turn:
            for i in range(count):
                _bid_for_all(const, state, U(state.contender[i]), time)
        for i in range(count):
            vc = U(state.contender[i])
            vc_record = state.vc[vc]
            output_record = state.output[U(vc_record.output)]
            offers = U(vc_record.choices) & U(output_record.free)
            if offers == U(0):
                _wait(state, vc, U(vc_record.output))
                continue
            if output_record.best != time + ONE:
                offers = _offers(const, state, vc, vc_record, output_record, time) if turn else U(0)
                if offers == U(0):
                    state.contender[left] = vc
                    left += ONE
                    continue
            first = U(output_record.first)
            last = U(vc_record.given) - first  # another output's VC is none of these: begin at the lowest
            chosen = U(first_after(offers, last if last < U(const.vcs) else _LAST))
            if rotates:
                state.vc[first + chosen].asker = vc
                vc_record.given = first + chosen
            given = _give(state, vc, vc_record, output_record, chosen, given)
        if left == U(0):
            break
    return left, given


@inner
def _match_all(const, state, asking, tick):
    """Match those who ask with the free VCs of their outputs; the length of ``state.given``.

    asking: length of the list ``state.asking`` of those who ask for the first time.
    """
    given = U(0)
    state.contender[-1] = _empty_all(state, U(state.contender[-1]))
    for iteration in range(U(const.iterations)):
        time = time_of(const, tick, iteration)
        count = _ask_all(const, state, asking, time)
        state.contender[-1], given = _accept_all(const, state, count, time, iteration == 0, given)
        asking = U(0)
    return given


@routine
def _preferred(const, state, vc):
    """Find the output, and the VC there, that an adaptive packet prefers (ties: the lowest); NOBODY if it gets none."""
    packet = front_packet(const, state, vc)
    base, ports = outputs_of(const, state, vc, packet)
    output_record, best, most, flits = U(0), _NOBODY, np.int64(0), np.int64(state.pool.packet[packet].flits)
    while ports:
        output = base + U(lowest(ports))
        ports &= ports - ONE
        free = choices_at(const, state, vc, packet, output) & state.output[output].free
        while free:
            k = U(lowest(free))
            free &= free - ONE
            worth = appeal(const.resorts, np.int64(k), credits(state, U(state.output[output].first) + k), flits)
            if worth > most:
                output_record, best, most = output, k, worth
    return output_record, best


@inner
def _visit_all(const, state, asking):
    """Let adaptive packets take what they prefer, those who wait first, oldest first; the length of ``state.given``.

    asking: length of the list ``state.asking`` of those who ask for the first time.
    """
    waited, given = _empty_all(state, U(0)), U(0)
    for i in range(asking):
        _present(const, state, state.asking[i] & _LOW32, state.asking[i] >> _32)
    for i in range(waited + asking):
        vc = U(state.contender[i]) if i < waited else state.asking[i - waited] & _LOW32
        output, chosen = _preferred(const, state, vc)
        state.vc[vc].output = output
        if chosen == _NOBODY:
            _wait(state, vc, line_of(const, state, vc))
        else:
            given = _give(state, vc, state.vc[vc], state.output[output], chosen, given)
    return given


@inner
def _sort(const, state, asking):
    """Sort the first ``asking`` in ``state.asking``: the order of visits, and that of records in memory.

    From then on, most of what comes up in the same order lies close together, which translation to addresses of pages
    needs in large networks.
    """
    for i in range(asking):
        mark(state.member, state.asking[i] & _LOW32, True)
    for i in range(take(state.member, state.rival)):
        vc = U(state.rival[i])
        state.asking[i] = front_flit(const, state, vc) << _32 | vc


@inner
def allocate_all(const, state, asking, tick):
    """Give free VCs to packets that wait for them and to those of the first ``asking`` input VCs in ``state.asking``.

    Whoever gets none goes on contending, or waits. Those whose front flit can be sent with the VC that they were given
    are listed in ``state.given``; how many they are.
    """
    if const.large or const.rule == ADAPTIVE:
        _sort(const, state, asking)
    if const.rule == ADAPTIVE:
        return _visit_all(const, state, asking)
    return _match_all(const, state, asking, tick)


@inner
def append_given(state, given, ready):
    """Append the first ``given`` in ``state.given`` to ``state.ready``; its new length."""
    for i in range(given):
        state.ready[ready + i] = state.given[i]
    return ready + given
