"""How flits move: from buffer to buffer, and the credits that they leave behind."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ADAPTIVE, ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import EVENTS, GRANTS
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.records import HOP, NOBODY, WAY
from flitlab.sim.engines.compiled.wheel import wake
from flitlab.sim.engines.compiled.wormhole.queues import due, entry_of, mark, push
from flitlab.sim.engines.compiled.wormhole.state import (
    EJECTED,
    EMPTY,
    HEAD,
    HEADERS,
    INJECTED,
    NO_CREDIT,
    NO_VC,
    ONE,
    PACKET_AT,
    RETURNED,
    TAIL,
    UNREAD,
    U,
)

_NOBODY = U(NOBODY)


@inner
def place_of(c, v, number):
    """Place of a VC's flit in ``State.flits``."""
    return (number & c.ring) * c.inputs + v


@inner
def credits(s, v):
    """Flits that may be sent to a VC."""
    return np.int64(s.vc[v].credits)


@inner
def line_of(c, s, v):
    """The line in which the front packet of an input VC waits for an output VC."""
    return U(c.switch[v]) if c.rule == ADAPTIVE else U(s.vc[v].output)


@inner
def unblock(s, v, reason, ready):
    """Take away a reason why the front flit cannot be sent; the new length of ``s.ready``, if it was the only one."""
    vc = s.vc[v]
    before = U(vc.blocked)
    vc.blocked = before & ~reason
    s.ready[ready] = v
    return ready + U(before == reason)


@inner
def _land(c, s, flit, v, ready):
    """A flit arrives."""
    vc = s.vc[v]
    landed = U(vc.landed)
    s.flits[place_of(c, v, landed)] = flit
    vc.landed = landed + ONE
    mark(s.new, v, U(vc.blocked) & (EMPTY | NO_VC) == EMPTY | NO_VC)
    return unblock(s, v, EMPTY, ready)


@inner
def land_all(c, s, tick, ready):
    """Flits that arrive now."""
    for which in range(INJECTED, U(len(s.queue))):
        first, end = due(c, s, which, tick)
        for i in range(first, end):
            flit, v = entry_of(c, s, which, i)
            ready = _land(c, s, flit, v, ready)
        s.tally.scalars[EVENTS] += np.int64(end - first)
    return ready


@inner
def deliver_all(c, s, tick):
    """Flits that come to their hosts now."""
    first, end = due(c, s, EJECTED, tick)
    for i in range(first, end):
        flit, v = entry_of(c, s, EJECTED, i)
        vc = s.vc[v]
        vc.credits = U(vc.credits) + ONE
        if flit & TAIL:
            records.deliver(c, s, np.int64(flit >> PACKET_AT), tick)


@inner
def _wake_sender(c, s, v, tick, ready):
    """Tell whoever sends to an input VC that there is a credit again."""
    holder, feeder = U(s.vc[v].holder), U(c.feeder[v])
    if feeder >= c.lines:
        wake(s.senders, feeder - c.lines, tick)
    elif holder != _NOBODY:
        return unblock(s, holder, NO_CREDIT, ready)
    elif c.rule == ADAPTIVE:
        mark(s.to_retry, feeder, True)
    return ready


@inner
def restore_all(c, s, tick, ready):
    """Credits that come back now."""
    first, end = due(c, s, RETURNED, tick)
    for i in range(first, end):
        _, v = entry_of(c, s, RETURNED, i)
        vc = s.vc[v]
        credit = U(vc.credits)
        vc.credits = credit + ONE
        if credit == U(0) or c.policy == ESCAPE:  # under ESCAPE, packets wait for more credits than one
            ready = _wake_sender(c, s, v, tick, ready)
    s.tally.scalars[EVENTS] += np.int64(end - first)
    return ready


@inner
def read_headers(c, s, tick, ready):
    """Packets whose header delay ends now."""
    first, end = due(c, s, HEADERS, tick)
    for i in range(first, end):
        _, v = entry_of(c, s, HEADERS, i)
        ready = unblock(s, v, UNREAD, ready)
    return ready


@inner
def _count_hop(c, s, flit, target):
    """A flit has been granted a VC of a network channel: if it is a head, its packet has gone one hop farther."""
    p, head = flit >> PACKET_AT, (flit & HEAD) // HEAD
    s.pool.packet[p, HOP] += head
    if c.policy == ESCAPE and head and target % U(c.vcs) == U(ESCAPE_VC):
        s.pool.packet[p, WAY] = ON_ESCAPE


@inner
def send(c, s, v, ready):
    """The front flit of an input VC is sent; the new length of ``s.ready``."""
    vc = s.vc[v]
    front, landed, target = U(vc.front), U(vc.landed), U(vc.target)
    flit = U(s.flits[place_of(c, v, front)])
    more = front + ONE != landed
    vc.front = front + ONE if more else U(0)
    vc.landed = landed if more else U(0)
    there, output = s.vc[target], s.output[U(vc.output)]
    credit = U(there.credits) - ONE
    there.credits = credit
    output.carried = U(output.carried) + ONE
    push(c, s, U(output.queue), flit, target)
    tail = flit & TAIL
    there.holder = _NOBODY if tail else v
    output.free |= tail << (target - U(output.first))
    mark(s.new, v, tail & U(more))
    line = line_of(c, s, v)
    if tail and s.line[line].first != NOBODY:
        mark(s.to_retry, line, True)
    blocked = U(not more) * EMPTY | U(credit == U(0)) * NO_CREDIT | tail * NO_VC
    vc.blocked = blocked
    s.ready[ready] = v
    s.tally.scalars[GRANTS] += np.int64((flit & HEAD) // HEAD)
    if target < c.inputs:
        _count_hop(c, s, flit, target)
    return ready + U(blocked == U(0))
