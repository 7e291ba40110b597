"""Hosts: a packet at a time, a flit a tick."""

from flitlab.models.jit import inner
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.messages import leave
from flitlab.sim.engines.compiled.records import H_BORN, H_FLITS, LATE, NOBODY, SEND, create
from flitlab.sim.engines.compiled.ugal import set_way
from flitlab.sim.engines.compiled.wheel import drain, wake
from flitlab.sim.engines.compiled.wormhole.flits import credits
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.state import HEAD, INJECTED, ONE, PACKET_AT, TAIL, U
from flitlab.sim.engines.compiled.wormhole.ugal import ahead


@inner
def _next_vc(c, s, h):
    """The injection VC that comes next, after the last one, of those that have credits; NOBODY if none has."""
    v, first = U(s.sending[h].vc), U(c.net.ports.inject[h]) * U(c.vcs)
    for _ in range(c.vcs):
        v = v + ONE if v + ONE < first + U(c.vcs) else first
        if credits(s, v) > 0:
            return v
    return U(NOBODY)


@inner
def _send(c, s, h, tick):
    """A host sends a flit if it can; a credit that it lacks wakes it again."""
    sending, flit = s.sending[h], U(0)
    if sending.packet == NOBODY:
        if s.host[h, H_BORN] > tick:
            if s.host[h, H_BORN] < LATE:
                wake(s.senders, h, min(s.host[h, H_BORN], tick + s.senders.mask))
            return
        v = _next_vc(c, s, h)
        if v == U(NOBODY):
            return
        sending.left = s.host[h, H_FLITS]
        p = create(c, s, h, tick)
        set_way(c, s, p, ahead, tick)
        sending.packet = p
        sending.vc = v
        flit = HEAD
    v = U(sending.vc)
    if credits(s, v) == 0:
        return
    s.vc[v].credits = U(s.vc[v].credits) - ONE
    flit |= U(sending.packet) << PACKET_AT
    left = U(sending.left) - ONE
    sending.left = left
    following = tick + 1
    if left == U(0):
        flit |= TAIL
        leave(s.program, s.pool.packet[sending.packet, SEND], tick + 1)
        sending.packet = NOBODY
        following = min(max(s.host[h, H_BORN], following), tick + s.senders.mask)
    push(c, s, INJECTED, flit, v)
    wake(s.senders, h, following)


@inner
def notice(c, s, h, tick):
    """See that host h is looked at, which has a packet to send."""
    wake(s.senders, h, tick)


@inner
def send_all(c, s, tick):
    """Every host sends that is to be looked at now and can."""
    count = drain(s.senders, tick, s.members)
    for i in range(count):
        _send(c, s, U(s.members[i]), tick)
    s.tally.scalars[EVENTS] += count
