"""Whether packets wait for each other for ever."""

from flitlab.models.jit import njit
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.wormhole.routing import choices_at, front_packet, outputs_of
from flitlab.sim.engines.compiled.wormhole.state import NO_VC, ONE, U


@njit
def stuck(c, s, now):
    """Whether the flit at the front of some input VC can never move.

    It can if the buffer ahead has room or itself can move a flit; if its packet has no VC yet, if it
    may take one that is free or whose holder can move. (Routing that is adaptive waits for room in a free VC too.)
    """
    live = s.vc.landed[: c.inputs] == s.vc.front[: c.inputs]
    changed = True
    while changed:
        changed = False
        for v in range(c.inputs):
            if not live[v] and _can_move(c, s, v, live):
                live[v] = True
                changed = True
    return not live.all()


@njit
def _drains(c, s, to, live):
    """Whether the buffer at the end of an output VC will take a flit."""
    return to >= c.inputs or s.vc[to].landed - s.vc[to].front < c.buffer_flits or live[to]


@njit
def _comes_free(c, s, o, choices, live):
    """Whether a packet will get one of some VCs of an output."""
    while choices:
        to = U(s.output[o].first) + U(lowest(choices))
        choices &= choices - ONE
        holder = U(s.vc[to].holder)
        if holder != U(NOBODY):
            if live[holder]:
                return True
        elif c.rule != ADAPTIVE or _drains(c, s, to, live):
            return True
    return False


@njit
def _can_move(c, s, v, live):
    """Whether the front flit of VC v can move, given the VCs known to be live."""
    vc = s.vc[v]
    if not U(vc.blocked) & NO_VC:
        return _drains(c, s, U(vc.target), live)
    if c.rule != ADAPTIVE:
        return _comes_free(c, s, U(vc.output), s.choices[v], live)
    p = front_packet(c, s, v)
    base, ports = outputs_of(c, s, v, p)
    while ports:
        o = base + U(lowest(ports))
        ports &= ports - ONE
        if _comes_free(c, s, o, choices_at(c, s, v, p, o), live):
            return True
    return False
