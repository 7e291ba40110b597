"""Packets that come to a switch, from other switches and from hosts."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import at_target, next_port
from flitlab.models.rules.tables import ADAPTIVE, ANY
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled.messages import leave
from flitlab.sim.engines.compiled.records import (
    FLITS,
    H_BORN,
    H_FLITS,
    H_FREE,
    HOP,
    INPUT_VC,
    LATE,
    NEXT,
    NOBODY,
    OUTPUT,
    SEND,
    SEQUENCE,
    SOURCE,
    TARGET,
    WAY,
    create,
)
from flitlab.sim.engines.compiled.ugal import by_congestion, set_way
from flitlab.sim.engines.compiled.vct.rows import preferred, present
from flitlab.sim.engines.compiled.vct.state import BACK, FRONT, LEFT, QUEUED, ROOM, SWITCH
from flitlab.sim.engines.compiled.vct.ugal import ahead
from flitlab.sim.engines.compiled.wheel import drain, wake


@inner
def _route(c, s, p):
    """Set the output of a packet that has come to a switch; NOBODY if that is decided every tick."""
    here = np.int64(s.vc[s.pool.packet[p, INPUT_VC], SWITCH])
    target = np.int64(s.pool.packet[p, TARGET])
    there = np.int64(c.net.host_switch[target])
    way, hop = np.int64(s.pool.packet[p, WAY]), np.int64(s.pool.packet[p, HOP])
    if at_target(c.routes, way, hop, here, there):
        s.pool.packet[p, OUTPUT] = c.net.ports.eject[target]
    elif c.rule == ADAPTIVE:
        s.pool.packet[p, OUTPUT] = NOBODY
    else:
        source, sequence = np.int64(s.pool.packet[p, SOURCE]), np.int64(s.pool.packet[p, SEQUENCE])
        port = next_port(c.routes, way, c.net.seed, here, there, source, target, c.net.hosts, sequence, hop)
        s.pool.packet[p, OUTPUT] = c.net.ports.out_base[here] + port


@inner
def _arrive(c, s, p, tick):
    """A packet's header has been read: it joins its VC, and asks for its output if it is at the front."""
    v = np.int64(s.pool.packet[p, INPUT_VC])
    s.pool.packet[p, NEXT] = NOBODY
    if by_congestion(c.rule):
        s.vc[v, QUEUED] += s.pool.packet[p, FLITS]
    if s.vc[v, FRONT] == NOBODY:
        s.vc[v, FRONT] = p
        s.vc[v, BACK] = p
        present(c, s, v, p, max(tick, np.int64(s.vc[v, LEFT])))
    else:
        s.pool.packet[s.vc[v, BACK], NEXT] = p
        s.vc[v, BACK] = p


@inner
def _send(c, s, h, tick):
    """Host h starts its oldest packet if it can, and is woken when that may change."""
    host = s.host[h]
    if host[H_BORN] > tick:
        if host[H_BORN] < LATE:
            wake(s.senders, h, min(host[H_BORN], tick + s.senders.mask))
        return
    if host[H_FREE] > tick:
        wake(s.senders, h, host[H_FREE])
        return
    flits = host[H_FLITS]
    first = c.net.ports.inject[h] * c.vcs
    v, when = preferred(c, s, np.int64(ANY), first, first + c.vcs, flits, tick)
    if v == NOBODY:
        if when < LATE:
            wake(s.senders, h, when)
        return
    p = create(c, s, h, tick)
    leave(s.program, s.pool.packet[p, SEND], tick + flits)
    set_way(c, s, p, ahead, tick)
    s.pool.packet[p, INPUT_VC] = v
    s.vc[v, ROOM] -= flits
    ready = (tick + c.injection + c.header) & s.senders.mask
    s.pool.packet[p, NEXT] = s.arriving[ready]
    s.arriving[ready] = p
    wake(s.senders, h, min(max(host[H_BORN], tick + flits), tick + s.senders.mask))


@inner
def notice(c, s, h, tick):
    """See that host h is looked at, which has a packet to send."""
    wake(s.senders, h, tick)


@inner
def arrive_all(c, s, tick):
    """Packets whose header has been read by now; all are routed first, so that look-ups overlap."""
    slot = tick & s.outputs.mask
    first = np.int64(s.arriving[slot])
    s.arriving[slot] = NOBODY
    p = first
    while p != NOBODY:
        _route(c, s, p)
        p = np.int64(s.pool.packet[p, NEXT])
    p = first
    while p != NOBODY:
        following = np.int64(s.pool.packet[p, NEXT])
        _arrive(c, s, p, tick)
        p = following
        s.tally.scalars[EVENTS] += 1


@inner
def send_all(c, s, tick):
    """Every host sends that is to be looked at now and can."""
    count = drain(s.senders, tick, s.members)
    for i in range(count):
        _send(c, s, s.members[i], tick)
    s.tally.scalars[EVENTS] += count
