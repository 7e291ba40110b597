"""Whether packets wait for each other for ever."""

import numpy as np

from flitlab.models.jit import njit
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.route import at_target
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.sim.engines.compiled.records import FLITS, HOP, NOBODY, OUTPUT, TARGET, WAY
from flitlab.sim.engines.compiled.vct.rows import ports_of, reclaim, vcs_of
from flitlab.sim.engines.compiled.vct.state import FRONT, RETURNS, ROOM, SWITCH


@njit
def stuck(c, s, now):
    """Whether the packet at the front of some VC can never move: no VC it may take will ever have room.

    A VC will have room if it has it, if room is on its way back, if a packet on its way into it will
    come to its front, or if the packet at its front can move.
    """
    count = len(s.vc)
    live = np.zeros(count, np.bool_)
    for v in range(count):
        reclaim(c, s, v, now - 1)  # what is back by now is no longer on its way
        live[v] = s.vc[v, FRONT] == NOBODY or s.vc[v, RETURNS] > 0
    changed = True
    while changed:
        changed = False
        for v in range(count):
            if not live[v] and _can_move(c, s, v, live):
                live[v] = True
                changed = True
    return not live.all()


@njit
def _can_move(c, s, v, live):
    """Whether the front packet of VC v finds room now or in a VC known to be live."""
    p = np.int64(s.vc[v, FRONT])
    here = np.int64(s.vc[v, SWITCH])
    there = np.int64(c.net.host_switch[s.pool.packet[p, TARGET]])
    if at_target(c.routes, np.int64(s.pool.packet[p, WAY]), np.int64(s.pool.packet[p, HOP]), here, there):
        return True
    base = c.net.ports.out_base[here]
    if c.rule != ADAPTIVE:
        return _opens(c, s, p, np.int64(s.pool.packet[p, OUTPUT]), live)
    ports = ports_of(c, s, p, here)
    while ports:
        if _opens(c, s, p, base + lowest(ports), live):
            return True
        ports &= ports - np.uint64(1)
    return False


@njit
def _opens(c, s, p, output, live):
    """Whether some VC of an output that packet p may take has room or will have it."""
    low, high = vcs_of(c, s, p, output)
    opens = False
    for w in range(low, high):
        opens |= live[w] or s.vc[w, ROOM] >= s.pool.packet[p, FLITS]
    return opens
