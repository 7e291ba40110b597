"""Switch allocation: inputs are matched with outputs (see :mod:`models.rules.allocate`)."""

import numpy as np

from models.jit import kernel
from models.rules.bits import lowest
from sim.engines.compiled.wormhole.flits import send
from sim.engines.compiled.wormhole.sets import ONE, U, clear, first, is_empty, put, slot, words
from sim.engines.compiled.wormhole.state import (
    CREDITED,
    HELD,
    OUT,
    OUTPUT,
    PRESENT,
    READ,
    SETS,
    VC,
    at,
)


@kernel
def find_ready(c, s, switch):
    """Put the input VCs whose front flit can be sent into row 0 of ``s.left``; 0 if there are none."""
    row, some = switch * U(SETS), U(0)
    for w in range(words(c.size)):
        word = s.sets[slot(c.size, row + U(PRESENT), w)] & s.sets[slot(c.size, row + U(HELD), w)]
        word &= s.sets[slot(c.size, row + U(CREDITED), w)] & s.sets[slot(c.size, row + U(READ), w)]
        s.left[slot(c.size, 0, w)] = word
        some |= word
    return some


@kernel
def allocate(c, s, switch, tick):
    """Send one switch's flits of one tick; False if it has no more that can be sent."""
    some = find_ready(c, s, switch)
    if some == 0:
        return False
    if len(c.size) == 1 and some & (some - ONE) == 0:
        _serve(c, s, switch, U(lowest(some)), True, tick)
        return find_ready(c, s, switch) != 0
    for iteration in range(c.iterations):
        _match(c, s, switch, iteration, tick)
    return find_ready(c, s, switch) != 0


@kernel
def _match(c, s, switch, iteration, tick):
    """One iteration among the input VCs in ``s.left``, of which it takes out those that it settles."""
    base, low = c.first_in[switch], U(c.ports.out_base[switch])
    offered = np.int64(0)
    for output in range(low, U(c.ports.out_base[switch + ONE])):
        if _askers(c, s, output):
            entry = U(c.entry[first(c.size, s.left, 1, U(s.turn[output]))])
            if is_empty(c.size, s.offers, entry):
                s.members[offered] = entry
                offered += 1
            put(c.size, s.offers, entry, output - low)
    for k in range(offered):
        entry = U(s.members[k])
        output = low + first(c.size, s.offers, entry, U(s.served[((base + entry) << ONE) | U(OUT)]))
        clear(c.size, s.offers, entry)
        _askers(c, s, output)
        for w in range(words(c.size)):
            s.left[slot(c.size, 1, w)] &= c.readers[slot(c.size, entry, w)]
        member = first(c.size, s.left, 1, U(s.served[((base + entry) << ONE) | U(VC)]))
        for w in range(words(c.size)):
            s.left[slot(c.size, 0, w)] &= ~(s.holders[slot(c.size, output, w)] | c.readers[slot(c.size, entry, w)])
        _serve(c, s, switch, member, iteration == 0, tick)


@kernel
def _serve(c, s, switch, member, first_iteration, tick):
    """An input VC is matched with its output: priorities move on, and its front flit is sent."""
    base, entry = c.first_in[switch], U(c.entry[member])
    s.served[((base + entry) << ONE) | U(VC)] = member
    if first_iteration:
        output = U(s.vc[at(base + member, OUTPUT)])
        s.turn[output] = entry
        s.served[((base + entry) << ONE) | U(OUT)] = output - U(c.ports.out_base[switch])
    send(c, s, base + member, tick)


@kernel
def _askers(c, s, output):
    """Put the input VCs that ask for an output into row 1 of ``s.left``; 0 if there are none."""
    some = U(0)
    for w in range(words(c.size)):
        word = s.holders[slot(c.size, output, w)] & s.left[slot(c.size, 0, w)]
        s.left[slot(c.size, 1, w)] = word
        some |= word
    return some
