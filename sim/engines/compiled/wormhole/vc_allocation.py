"""VC allocation: packets that have come to the front of an input VC are given VCs of the output they go to."""

import numpy as np

from models.jit import inner
from models.routing.routes import ADAPTIVE
from models.rules.bits import lowest
from models.rules.order import age_key
from models.rules.vc import appeal
from sim.engines.compiled.records import FLITS
from sim.engines.compiled.wormhole.flits import look
from sim.engines.compiled.wormhole.sets import ONE, U, bit, drop, first, member_of, put, slot, words
from sim.engines.compiled.wormhole.state import (
    ASKING,
    CREDITED,
    CREDITS,
    FIRST,
    FREE,
    HELD,
    HOLDER,
    OUTPUT,
    PACKET_AT,
    RANGE,
    SETS,
    SINCE,
    TARGET_VC,
    at,
)


@inner
def _appeal(c, s, switch, vc, member):
    """How much the packet at the front of an input VC prefers an output VC; 0: it cannot get it."""
    p = U(s.flits[(vc << c.ring_bits) | U(s.vc[at(vc, FIRST)])] >> PACKET_AT)
    credits = np.int64(s.vc[at(c.target_vc[c.first_out[switch] + member], CREDITS)])
    return appeal(c.policy, np.int64(member) % c.vcs, credits, np.int64(s.packet[p, FLITS]))


@inner
def _find(c, s, switch, vc):
    """Put the output VCs that a packet can get into ``s.left``; 0 if there are none.

    They are free, and if routing is adaptive have the credits that it asks for.
    """
    some = U(0)
    for w in range(words(c.size)):
        free = s.allowed[slot(c.size, vc, w)] & s.sets[slot(c.size, switch * U(SETS) + U(FREE), w)]
        if c.rule == ADAPTIVE:
            word = free
            while word:
                member = member_of(w, word)
                word &= word - ONE
                if _appeal(c, s, switch, vc, member) == 0:
                    free &= ~bit(member)
        s.left[slot(c.size, 0, w)] = free
        some |= free
    return some


@inner
def _preferred(c, s, switch, vc):
    """Of the output VCs in ``s.left``, the one that a packet prefers (ties: the lowest)."""
    best, most = U(0), np.int64(0)
    for w in range(words(c.size)):
        word = s.left[slot(c.size, 0, w)]
        while word:
            member = member_of(w, word)
            word &= word - ONE
            worth = _appeal(c, s, switch, vc, member)
            if worth > most:
                best, most = member, worth
    return best


@inner
def _assign(c, s, switch, member):
    """A packet gets one of the output VCs in ``s.left``."""
    vc, row = c.first_in[switch] + member, switch * U(SETS)
    if c.rule == ADAPTIVE:
        chosen = _preferred(c, s, switch, vc)
        output = U(c.ports.out_base[switch]) + chosen // U(c.vcs)
        s.vc[at(vc, OUTPUT)] = output
    else:
        output, turn = U(s.vc[at(vc, OUTPUT)]), U(s.vc[at(vc, RANGE)])
        chosen = first(c.size, s.left, 0, U(s.vc_turn[turn]))
        s.vc_turn[turn] = chosen
    target = U(c.target_vc[c.first_out[switch] + chosen])
    s.vc[at(vc, TARGET_VC)] = target
    s.vc[at(target, HOLDER)] = vc
    drop(c.size, s.sets, row + U(FREE), chosen)
    drop(c.size, s.sets, row + U(ASKING), member)
    put(c.size, s.sets, row + U(HELD), member)
    put(c.size, s.holders, output, member)
    if s.vc[at(target, CREDITS)]:
        put(c.size, s.sets, row + U(CREDITED), member)
    else:
        drop(c.size, s.sets, row + U(CREDITED), member)
    look(c, s, switch, member)


@inner
def allocate(c, s, switch):
    """Give one switch's free output VCs to the packets that ask for them, oldest first."""
    base, row, count = c.first_in[switch], switch * U(SETS), np.int64(0)
    if len(c.size) == 1:
        asking = s.sets[slot(c.size, row + U(ASKING), 0)]
        if asking & (asking - ONE) == 0:  # the common case
            if asking and _find(c, s, switch, base + U(lowest(asking))):
                _assign(c, s, switch, U(lowest(asking)))
            return
    for w in range(words(c.size)):
        word = s.sets[slot(c.size, row + U(ASKING), w)]
        while word:
            member = member_of(w, word)
            word &= word - ONE
            if _find(c, s, switch, base + member):
                key = age_key(np.int64(s.vc[at(base + member, SINCE)]), np.int64(member))
                place = count
                while place > 0 and s.members[place - 1] > key:
                    s.members[place] = s.members[place - 1]
                    place -= 1
                s.members[place] = key
                count += 1
    for k in range(count):
        member = U(s.members[k] & 0xFFFFFFFF)
        if _find(c, s, switch, base + member):
            _assign(c, s, switch, member)
