"""Hosts: a packet at a time, a flit a tick."""

import numpy as np

from models.jit import inner
from sim.engines.base import EVENTS
from sim.engines.compiled.records import H_BORN, H_FLITS, NOBODY, create
from sim.engines.compiled.ugal import set_way
from sim.engines.compiled.wheel import drain, wake
from sim.engines.compiled.wormhole.flits import later, place_flit
from sim.engines.compiled.wormhole.sets import U
from sim.engines.compiled.wormhole.state import (
    CREDITS,
    HEAD,
    INJECTED,
    LEFT,
    ON_VC,
    PACKET_AT,
    SENDING,
    TAIL,
    at,
)
from sim.engines.compiled.wormhole.ugal import ahead


@inner
def _roomiest(c, s, host):
    """The injection VC with most credits (ties: the lowest), NOBODY if none has any."""
    first = np.int64(c.ports.inject[host]) * c.vcs
    best, most = NOBODY, np.int64(0)
    for vc in range(first, first + c.vcs):
        credit = np.int64(s.vc[at(U(vc), CREDITS)])
        if credit > most:
            best, most = vc, credit
    return best


@inner
def _send(c, s, h, tick):
    """A host sends a flit if it can; a credit that it lacks wakes it again."""
    flit = np.int64(0)
    if s.sending[h, SENDING] == NOBODY:
        if s.host[h, H_BORN] > tick:
            wake(s.senders, h, min(s.host[h, H_BORN], tick + s.senders.mask))
            return
        vc = _roomiest(c, s, h)
        if vc == NOBODY:
            return
        s.sending[h, LEFT] = s.host[h, H_FLITS]
        p = create(c, s, h, tick)
        set_way(c, s, p, ahead, tick)
        s.sending[h, SENDING] = p
        s.sending[h, ON_VC] = vc
        flit = np.int64(HEAD)
    vc = U(s.sending[h, ON_VC])
    if s.vc[at(vc, CREDITS)] == 0:
        return
    s.vc[at(vc, CREDITS)] -= 1
    flit |= np.int64(s.sending[h, SENDING]) << PACKET_AT
    left = s.sending[h, LEFT] - 1
    s.sending[h, LEFT] = left
    following = tick + 1
    if left == 0:
        flit |= TAIL
        s.sending[h, SENDING] = NOBODY
        following = min(max(s.host[h, H_BORN], following), tick + s.senders.mask)
    place_flit(s.vc, s.flits, c.ring_bits, c.ring, vc, flit)
    later(s.queues, INJECTED, tick, vc)
    wake(s.senders, h, following)


@inner
def send_all(c, s, tick):
    """Every host sends that is to be looked at now and can."""
    count = drain(s.senders, tick, s.members)
    for i in range(count):
        _send(c, s, U(s.members[i]), tick)
    s.tally.scalars[EVENTS] += count
