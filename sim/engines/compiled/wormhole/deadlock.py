"""Whether packets wait for each other for ever."""

from models.jit import njit
from models.routing.routes import ADAPTIVE
from sim.engines.compiled.records import NOBODY
from sim.engines.compiled.wormhole.sets import ONE, U, has, member_of, slot, words
from sim.engines.compiled.wormhole.state import (
    COUNT,
    HELD,
    HOLDER,
    MEMBER,
    SETS,
    SWITCH,
    TARGET_VC,
    VC_RECORD,
    at,
)


@njit
def stuck(c, s, now):
    """Whether the flit at the front of some input VC can never move.

    It can if the buffer ahead has room or itself can move a flit; if its packet has no VC yet, if it
    may take one that is free or whose holder can move. (Routing that is adaptive waits for room in a free VC too.)
    """
    live = s.vc[COUNT : (len(s.flits) >> c.ring_bits) * VC_RECORD : VC_RECORD] == 0
    changed = True
    while changed:
        changed = False
        for v in range(len(live)):
            if not live[v] and _can_move(c, s, U(v), live):
                live[v] = True
                changed = True
    return not live.all()


@njit
def _drains(c, s, to, live):
    """Whether the buffer at the end of an output VC will take a flit."""
    return to >= len(live) or s.vc[at(to, COUNT)] < c.buffer_flits or live[to]


@njit
def _can_move(c, s, v, live):
    """Whether the front flit of VC v can move, given the VCs known to be live."""
    switch = U(s.vc[at(v, SWITCH)])
    if has(c.size, s.sets, switch * U(SETS) + U(HELD), U(s.vc[at(v, MEMBER)])):
        return _drains(c, s, s.vc[at(v, TARGET_VC)], live)
    for w in range(words(c.size)):
        word = s.allowed[slot(c.size, v, w)]
        while word:
            to = c.target_vc[c.first_out[switch] + member_of(w, word)]
            word &= word - ONE
            holder = s.vc[at(to, HOLDER)]
            if holder != NOBODY:
                if live[holder]:
                    return True
            elif c.rule != ADAPTIVE or _drains(c, s, to, live):
                return True
    return False
