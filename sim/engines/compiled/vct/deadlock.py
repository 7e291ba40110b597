"""Whether packets wait for each other for ever."""

import numpy as np

from models.jit import njit
from models.routing.routes import ADAPTIVE
from models.rules.bits import lowest
from sim.engines.compiled.records import FLITS, NOBODY, OUTPUT, TARGET
from sim.engines.compiled.vct.rows import reclaim, vcs_of
from sim.engines.compiled.vct.state import FRONT, RETURNS, SWITCH


@njit
def stuck(c, s, now):
    """Whether the packet at the front of some VC can never move: no VC it may take will ever have room.

    A VC will have room if it has it, if room is on its way back, if a packet on its way into it will
    come to its front, or if the packet at its front can move.
    """
    count = len(s.vc)
    live = np.zeros(count, np.bool_)
    for v in range(count):
        live[v] = s.vc[v, FRONT] == NOBODY or s.vc[v, RETURNS] > 0
    changed = True
    while changed:
        changed = False
        for v in range(count):
            if not live[v] and _can_move(c, s, v, live, now):
                live[v] = True
                changed = True
    return not live.all()


@njit
def _can_move(c, s, v, live, now):
    """Whether the front packet of VC v finds room now or in a VC known to be live."""
    p = np.int64(s.vc[v, FRONT])
    here = np.int64(s.vc[v, SWITCH])
    there = c.host_switch[s.packet[p, TARGET]]
    if there == here:
        return True
    base = c.ports.out_base[here]
    ports = c.routes[there, here]
    if c.rule != ADAPTIVE:
        ports = np.uint64(1) << np.uint64(s.packet[p, OUTPUT] - base)
    while ports:
        low, high = vcs_of(c, s, p, base + lowest(ports))
        ports &= ports - np.uint64(1)
        for w in range(low, high):
            if live[w] or reclaim(c, s, w, now) >= s.packet[p, FLITS]:
                return True
    return False
