"""VC allocation: packets that have come to the front of an input VC are given VCs of the output they go to."""

import numpy as np

from models.jit import inner, routine
from models.routing.routes import ADAPTIVE, ANY
from models.rules.allocate import first_after
from models.rules.bits import lowest
from models.rules.vc import appeal
from sim.engines.compiled.records import FLITS, NOBODY
from sim.engines.compiled.wormhole.flits import credits, line_of
from sim.engines.compiled.wormhole.queues import push, take
from sim.engines.compiled.wormhole.routing import choices_at, front_packet, output_of, outputs_of
from sim.engines.compiled.wormhole.state import HEADERS, NO_CREDIT, ONE, UNREAD, U

_NOBODY = U(NOBODY)


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
def _next_in_turn(c, s, v):
    """The VC whose turn it is of those that the front packet may take and nobody has, NOBODY if there is none."""
    o, choices = U(s.vc[v].output), s.choices[v]
    free = s.output[o].free & choices
    turn = o * U(c.vcs) + U(lowest(choices))
    chosen = U(first_after(free, s.vc_turn[turn]))
    if free == U(0):
        return _NOBODY
    s.vc_turn[turn] = chosen
    return chosen


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
            worth = appeal(c.policy, np.int64(k), credits(s, U(s.output[o].first) + k), np.int64(s.packet[p, FLITS]))
            if worth > most:
                output, best, most = o, k, worth
    return output, best


@inner
def _give(c, s, v, ready):
    """Give the front packet of an input VC an output VC; whether there is one, and the new length of ``s.ready``."""
    vc = s.vc[v]
    if c.rule == ADAPTIVE:
        o, chosen = _preferred(c, s, v)
        vc.output = o
    else:
        chosen = _next_in_turn(c, s, v)
    if chosen == _NOBODY:
        return False, ready
    output = s.output[U(vc.output)]
    target = U(output.first) + chosen
    output.free &= ~(ONE << chosen)
    there = s.vc[target]
    there.holder = v
    vc.target = target
    blocked = (U(vc.blocked) & UNREAD) | U(credits(s, target) == 0) * NO_CREDIT
    vc.blocked = blocked
    s.ready[ready] = v
    return True, ready + U(blocked == U(0))


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
def _call_up(c, s):
    """Empty the lines in which a packet may be given a VC into ``s.called``, oldest first; how many there are."""
    count = U(0)
    for i in range(take(s.to_retry, s.calling)):
        queue = s.line[U(s.calling[i])]
        v = U(queue.first)
        queue.first = NOBODY
        while v != _NOBODY:
            s.called[count] = v
            count += ONE
            v = U(s.following[v])
    return count


@inner
def allocate_all(c, s, count, ready):
    """Give free VCs to packets that wait for them, and then to the first ``count`` in ``s.asking``, ascending.

    Whoever gets none waits. Returns the new length of ``s.ready``.
    """
    waited = _call_up(c, s)
    for i in range(waited + count):
        v = U(s.called[i]) if i < waited else U(s.asking[i - waited])
        given, ready = _give(c, s, v, ready)
        if not given:
            _wait(s, v, line_of(c, s, v))
    return ready
