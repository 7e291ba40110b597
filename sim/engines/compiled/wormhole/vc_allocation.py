"""VC allocation: packets that have come to the front of an input VC are given VCs of the output they go to.

Packets that wait for a VC wait in a line: one for each output, or, if routing is adaptive, one for each switch.
"""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.rules.allocate import first_after
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.tables import ADAPTIVE, ANY
from flitlab.models.rules.vc import appeal
from flitlab.sim.engines.compiled.records import FLITS, NOBODY
from flitlab.sim.engines.compiled.wormhole.flits import credits, line_of
from flitlab.sim.engines.compiled.wormhole.queues import push, take
from flitlab.sim.engines.compiled.wormhole.routing import choices_at, front_packet, output_of, outputs_of
from flitlab.sim.engines.compiled.wormhole.state import HEADERS, NO_CREDIT, ONE, UNREAD, U

_NOBODY = U(NOBODY)
_LAST = U(63)

# Bits of a bid: how far the input VC is from its turn and, above, the time, so that nothing has to be cleared.
_PLACES, _TIME_AT = U(0xFFFFFFFF), U(32)


@inner
def present_all(c, s):
    """List the input VCs to whose front a packet has come in ``s.asking``; how many there are."""
    count = take(s.new, s.asking)
    for i in range(count):
        v = U(s.asking[i])
        if c.rule != ADAPTIVE:
            p = front_packet(c, s, v)
            o = output_of(c, s, v, p)
            s.vc[v].output = o
            if c.policy != ANY:
                s.choices[v] = choices_at(c, s, v, p, o)
        if c.header > 1:
            s.vc[v].blocked |= UNREAD
            push(c, s, HEADERS, U(0), v)
    return count


@inner
def _give(c, s, v, o, chosen, given):
    """Give the front packet of an input VC a VC of an output; the new length of ``s.given``."""
    vc, output = s.vc[v], s.output[o]
    target = U(output.first) + chosen
    output.free &= ~(ONE << chosen)
    s.vc[target].holder = v
    vc.target = target
    blocked = (U(vc.blocked) & UNREAD) | U(credits(s, target) == 0) * NO_CREDIT
    vc.blocked = blocked
    s.given[given] = v
    return given + U(blocked == U(0))


@inner
def _wait(s, v, line):
    """Put an input VC at the end of a line."""
    queue = s.line[line]
    s.following[v] = NOBODY
    if queue.first == NOBODY:
        queue.first = v
    else:
        s.following[U(queue.last)] = v
    queue.last = v


@inner
def _empty(s, line, members, count):
    """Empty a line into a list, from its place ``count`` on; one past the last."""
    queue = s.line[line]
    v = U(queue.first)
    queue.first = NOBODY
    while v != _NOBODY:
        members[count] = v
        count += ONE
        v = U(s.following[v])
    return count


@inner
def _bid(s, v, target, time):
    """How an input VC stands against others that ask for the same VC: who was given it last, behind all others."""
    return time | ((U(s.vc_turn[target].asker) - v) & _PLACES)


@inner
def _bid_for_all(c, s, v, choices, first, time):
    """Let an input VC bid for all its choices, of the output whose first VC is given."""
    for k in range(U(c.vcs)):
        bid = ((choices >> k) & ONE) * _bid(s, v, first + k, time)
        s.offer[first + k] = max(s.offer[first + k], bid)


@inner
def _ask_all(c, s, count, time):
    """The first ``count`` in ``s.contender`` ask for free VCs; how many of these may take one.

    Bids are made for outputs at which several ask, and every free VC there offers itself to the best.
    """
    left = U(0)
    for i in range(count):
        v = U(s.contender[i])
        o = U(s.vc[v].output)
        output = s.output[o]
        free, asked = U(output.free), U(output.asked)
        choices = s.choices[v] & free
        if choices == U(0):
            _wait(s, v, o)
            continue
        s.contender[left] = v
        left += ONE
        if asked < time:
            output.asked = time | v
            continue
        first, other = U(output.first), asked & _PLACES
        if other != _NOBODY:
            output.asked = time | _NOBODY
            _bid_for_all(c, s, other, s.choices[other] & free, first, time)
        _bid_for_all(c, s, v, choices, first, time)
    return left


@inner
def _offers(c, s, v, o, time):
    """Bitmap of the VCs of an output that offer themselves to an input VC."""
    output = s.output[o]
    choices, first = s.choices[v] & U(output.free), U(output.first)
    if U(output.asked) == time | v:
        return choices
    best = U(0)
    for k in range(U(c.vcs)):
        best |= U(s.offer[first + k] == _bid(s, v, first + k, time)) << k
    return best & choices  # of those that are not free the turn has moved on


@inner
def _accept_all(c, s, count, time, rotates, given):
    """Those offered a VC accept one; how many are left in ``s.contender``, and the new length of ``s.given``."""
    left = U(0)
    for i in range(count):
        v = U(s.contender[i])
        o = U(s.vc[v].output)
        first, offers = U(s.output[o].first), _offers(c, s, v, o, time)
        if offers == U(0):
            s.contender[left] = v
            left += ONE
            continue
        last = U(s.vc_turn[v].target) - first  # another output's VC is none of these: begin at the lowest
        chosen = U(first_after(offers, last if last < U(c.vcs) else _LAST))
        given = _give(c, s, v, o, chosen, given)
        if rotates:
            s.vc_turn[first + chosen].asker = v
            s.vc_turn[v].target = first + chosen
    return left, given


@inner
def _match_all(c, s, count, tick):
    """Match those who ask with the free VCs of their outputs; the length of ``s.given``."""
    contenders, given = U(s.contender[-1]), U(0)
    for i in range(count):
        s.contender[contenders + i] = s.asking[i]
    contenders += count
    for i in range(take(s.to_retry, s.calling)):
        contenders = _empty(s, U(s.calling[i]), s.contender, contenders)
    iterations = U(c.iterations)
    for iteration in range(iterations):
        time = ((U(tick) + ONE) * iterations + iteration) << _TIME_AT
        contenders = _ask_all(c, s, contenders, time)
        contenders, given = _accept_all(c, s, contenders, time, iteration == 0, given)
    s.contender[-1] = contenders
    return given


@routine
def _preferred(c, s, v):
    """The output, and the VC there, that an adaptive packet prefers (ties: the lowest); NOBODY if it can have none."""
    p = front_packet(c, s, v)
    base, ports = outputs_of(c, s, v, p)
    output, best, most = U(0), _NOBODY, np.int64(0)
    while ports:
        o = base + U(lowest(ports))
        ports &= ports - ONE
        free = choices_at(c, s, v, p, o) & s.output[o].free
        while free:
            k = U(lowest(free))
            free &= free - ONE
            worth = appeal(
                c.policy, np.int64(k), credits(s, U(s.output[o].first) + k), np.int64(s.pool.packet[p, FLITS])
            )
            if worth > most:
                output, best, most = o, k, worth
    return output, best


@inner
def _visit_all(c, s, count):
    """Let adaptive packets take what they prefer, those who wait first, oldest first; the length of ``s.given``."""
    waited, given = U(0), U(0)
    for i in range(take(s.to_retry, s.calling)):
        waited = _empty(s, U(s.calling[i]), s.contender, waited)
    for i in range(waited + count):
        v = U(s.contender[i]) if i < waited else U(s.asking[i - waited])
        o, chosen = _preferred(c, s, v)
        s.vc[v].output = o
        if chosen == _NOBODY:
            _wait(s, v, line_of(c, s, v))
        else:
            given = _give(c, s, v, o, chosen, given)
    return given


@inner
def allocate_all(c, s, count, tick):
    """Give free VCs to packets that wait for them and to the first ``count`` in ``s.asking``, who ask the first time.

    Whoever gets none goes on contending, or waits. Those whose front flit can be sent with the VC that they were given
    are listed in ``s.given``; how many they are.
    """
    if c.rule == ADAPTIVE:
        return _visit_all(c, s, count)
    return _match_all(c, s, count, tick)


@inner
def append_given(s, given, ready):
    """Append the first ``given`` in ``s.given`` to ``s.ready``; its new length."""
    for i in range(given):
        s.ready[ready + i] = s.given[i]
    return ready + given
