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
from flitlab.sim.engines.compiled.wormhole.flits import credits, line_of
from flitlab.sim.engines.compiled.wormhole.queues import push, take
from flitlab.sim.engines.compiled.wormhole.routing import choices_at, front_packet, output_of, outputs_of
from flitlab.sim.engines.compiled.wormhole.state import HEADERS, NO_CREDIT, ONE, UNREAD, U

_NOBODY = U(NOBODY)
_LAST = U(63)

# Bits of a bid: how far the input VC is from its turn and, above, the time, so that nothing has to be cleared.
_PLACES, _TIME_AT = U(0xFFFFFFFF), U(32)


@inner
def present_all(const, state):
    """List the input VCs to whose front a packet has come in ``state.asking``; how many there are."""
    count = take(state.new, state.asking)
    for i in range(count):
        vc = U(state.asking[i])
        if const.rule != ADAPTIVE:
            packet = front_packet(const, state, vc)
            output = output_of(const, state, vc, packet)
            state.vc[vc].output = output
            if const.policy != ANY:
                state.choices[vc] = choices_at(const, state, vc, packet, output)
        if const.header > 1:
            state.vc[vc].blocked |= UNREAD
            push(state, HEADERS, U(0), vc)
    return count


@inner
def _give(const, state, vc, output, chosen, given):
    """Give the front packet of an input VC a VC of an output.

    chosen: number of the VC at the output. ``given`` is the length of the list ``state.given`` before, and its length
    after is returned.
    """
    vc_record, output_record = state.vc[vc], state.output[output]
    next_vc = U(output_record.first) + chosen
    output_record.free &= ~(ONE << chosen)
    state.vc[next_vc].holder = vc
    vc_record.next_vc = next_vc
    blocked = (U(vc_record.blocked) & UNREAD) | U(credits(state, next_vc) == 0) * NO_CREDIT
    vc_record.blocked = blocked
    state.given[given] = vc
    return given + U(blocked == U(0))


@inner
def _wait(state, vc, line):
    """Put an input VC at the end of a line."""
    queue = state.line[line]
    state.following[vc] = NOBODY
    if queue.first == NOBODY:
        queue.first = vc
    else:
        state.following[U(queue.last)] = vc
    queue.last = vc


@inner
def _empty(state, line, members, count):
    """Empty a line into a list, from its place ``count`` on; one past the last.

    members: uint32.
    """
    queue = state.line[line]
    vc = U(queue.first)
    queue.first = NOBODY
    while vc != _NOBODY:
        members[count] = vc
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
def _bid_for_all(const, state, vc, choices, first, time):
    """Let an input VC bid for all its choices, of the output whose first VC is given.

    choices: VCs of the output, a bit each. time: of the iteration, above the bits of a bid.
    """
    for k in range(U(const.vcs)):
        bid = ((choices >> k) & ONE) * _bid(state, vc, first + k, time)
        state.offer[first + k] = max(state.offer[first + k], bid)


@inner
def _ask_all(const, state, count, time):
    """Let the first ``count`` in ``state.contender`` ask for free VCs; how many of these may take one.

    Bids are made for outputs at which several ask, and every free VC there offers itself to the best. time: of the
    iteration, above the bits of a bid.
    """
    left = U(0)
    for i in range(count):
        vc = U(state.contender[i])
        output = U(state.vc[vc].output)
        output_record = state.output[output]
        free, asked = U(output_record.free), U(output_record.asked)
        choices = state.choices[vc] & free
        if choices == U(0):
            _wait(state, vc, output)
            continue
        state.contender[left] = vc
        left += ONE
        if asked < time:
            output_record.asked = time | vc
            continue
        first, other = U(output_record.first), asked & _PLACES
        if other != _NOBODY:
            output_record.asked = time | _NOBODY
            _bid_for_all(const, state, other, state.choices[other] & free, first, time)
        _bid_for_all(const, state, vc, choices, first, time)
    return left


@inner
def _offers(const, state, vc, output, time):
    """Find the VCs of an output that offer themselves to an input VC, a bit each.

    time: of the iteration, above the bits of a bid.
    """
    output_record = state.output[output]
    choices, first = state.choices[vc] & U(output_record.free), U(output_record.first)
    if U(output_record.asked) == time | vc:
        return choices
    best = U(0)
    for k in range(U(const.vcs)):
        best |= U(state.offer[first + k] == _bid(state, vc, first + k, time)) << k
    return best & choices  # of those that are not free the turn has moved on


@inner
def _accept_all(const, state, count, time, rotates, given):
    """Let those that are offered a VC accept one: (how many are left in ``state.contender``, the new ``given``).

    rotates: whether priorities move on. time: of the iteration, above the bits of a bid. given: length of the list
    ``state.given``.
    """
    left = U(0)
    for i in range(count):
        vc = U(state.contender[i])
        output = U(state.vc[vc].output)
        first, offers = U(state.output[output].first), _offers(const, state, vc, output, time)
        if offers == U(0):
            state.contender[left] = vc
            left += ONE
            continue
        last = U(state.vc[vc].given) - first  # another output's VC is none of these: begin at the lowest
        chosen = U(first_after(offers, last if last < U(const.vcs) else _LAST))
        given = _give(const, state, vc, output, chosen, given)
        if rotates:
            state.vc[first + chosen].asker = vc
            state.vc[vc].given = first + chosen
    return left, given


@inner
def _match_all(const, state, count, tick):
    """Match those who ask with the free VCs of their outputs; the length of ``state.given``.

    count: of those who ask for the first time.
    """
    contenders, given = U(state.contender[-1]), U(0)
    for i in range(count):
        state.contender[contenders + i] = state.asking[i]
    contenders += count
    for i in range(take(state.to_retry, state.calling)):
        contenders = _empty(state, U(state.calling[i]), state.contender, contenders)
    iterations = U(const.iterations)
    for iteration in range(iterations):
        time = ((U(tick) + ONE) * iterations + iteration) << _TIME_AT
        contenders = _ask_all(const, state, contenders, time)
        contenders, given = _accept_all(const, state, contenders, time, iteration == 0, given)
    state.contender[-1] = contenders
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
def _visit_all(const, state, count):
    """Let adaptive packets take what they prefer, those who wait first, oldest first; the length of ``state.given``.

    count: of those who ask for the first time.
    """
    waited, given = U(0), U(0)
    for i in range(take(state.to_retry, state.calling)):
        waited = _empty(state, U(state.calling[i]), state.contender, waited)
    for i in range(waited + count):
        vc = U(state.contender[i]) if i < waited else U(state.asking[i - waited])
        output, chosen = _preferred(const, state, vc)
        state.vc[vc].output = output
        if chosen == _NOBODY:
            _wait(state, vc, line_of(const, state, vc))
        else:
            given = _give(const, state, vc, output, chosen, given)
    return given


@inner
def allocate_all(const, state, count, tick):
    """Give free VCs to packets that wait for them and to the first ``count`` in ``state.asking``, who ask first now.

    Whoever gets none goes on contending, or waits. Those whose front flit can be sent with the VC that they were given
    are listed in ``state.given``; how many they are.
    """
    if const.rule == ADAPTIVE:
        return _visit_all(const, state, count)
    return _match_all(const, state, count, tick)


@inner
def append_given(state, given, ready):
    """Append the first ``given`` in ``state.given`` to ``state.ready``; its new length."""
    for i in range(given):
        state.ready[ready + i] = state.given[i]
    return ready + given
