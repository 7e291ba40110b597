"""Switch allocation: inputs are matched with outputs (see :mod:`models.rules.allocate`)."""

import numpy as np

from models.jit import inner
from models.rules.bits import popcount
from sim.engines.compiled.wormhole.flits import mark, send
from sim.engines.compiled.wormhole.sets import ONE, U, clear, first, member_of, put, slot, words
from sim.engines.compiled.wormhole.state import (
    CREDITED,
    HELD,
    MEMBER,
    OUT,
    OUTPUT,
    PRESENT,
    READ,
    SETS,
    SWITCH,
    VC,
    at,
)


@inner
def _find_ready(c, s, switch):
    """Put the input VCs whose front flit can be sent into row 0 of ``s.left``; how many there are."""
    row, count = switch * U(SETS), np.int64(0)
    for w in range(words(c.size)):
        word = s.sets[slot(c.size, row + U(PRESENT), w)] & s.sets[slot(c.size, row + U(HELD), w)]
        word &= s.sets[slot(c.size, row + U(CREDITED), w)] & s.sets[slot(c.size, row + U(READ), w)]
        s.left[slot(c.size, 0, w)] = word
        count += popcount(word)
    return count


@inner
def allocate(c, s, switch, count):
    """Put the VCs of one switch that may send a flit into ``s.granted``, from ``count`` on; the new count."""
    ready = _find_ready(c, s, switch)
    if ready == 0:
        return count
    if ready == 1:  # the common case
        s.granted[count] = ((c.first_in[switch] + first(c.size, s.left, U(0), U(0))) << ONE) | ONE
        return count + 1
    before = count
    for iteration in range(c.iterations):
        count = _match(c, s, switch, iteration, count)
    if count - before < ready:
        mark(s.to_switch, switch)
    return count


@inner
def _match(c, s, switch, iteration, count):
    """One iteration among the input VCs in ``s.left``, of which it takes out those that it settles."""
    base, low = c.first_in[switch], U(c.ports.out_base[switch])
    clear(c.size, s.left, U(2))
    for output in range(low, U(c.ports.out_base[switch + ONE])):
        if _askers(c, s, output):
            entry = U(c.entry[first(c.size, s.left, 1, U(s.turn[output]))])
            put(c.size, s.left, U(2), entry)
            put(c.size, s.offers, entry, output - low)
    for v in range(words(c.size)):
        word = s.left[slot(c.size, U(2), v)]
        while word:
            entry = member_of(v, word)
            word &= word - ONE
            output = low + first(c.size, s.offers, entry, U(s.served[((base + entry) << ONE) | U(OUT)]))
            clear(c.size, s.offers, entry)
            _askers(c, s, output)
            for w in range(words(c.size)):
                s.left[slot(c.size, 1, w)] &= c.readers[slot(c.size, entry, w)]
            member = first(c.size, s.left, 1, U(s.served[((base + entry) << ONE) | U(VC)]))
            for w in range(words(c.size)):
                s.left[slot(c.size, 0, w)] &= ~(s.holders[slot(c.size, output, w)] | c.readers[slot(c.size, entry, w)])
            s.granted[count] = ((base + member) << ONE) | U(iteration == 0)
            count += 1
    return count


@inner
def serve(c, s, grant, tick):
    """An input VC is matched with its output: priorities move on, and its front flit is sent."""
    vc = grant >> ONE
    switch, member = U(s.vc[at(vc, SWITCH)]), U(s.vc[at(vc, MEMBER)])
    entry = U(c.entry[member])
    place = (vc - member + entry) << ONE
    s.served[place | U(VC)] = member
    if grant & ONE:
        output = U(s.vc[at(vc, OUTPUT)])
        s.turn[output] = entry
        s.served[place | U(OUT)] = output - U(c.ports.out_base[switch])
    send(c, s, vc, tick)


@inner
def _askers(c, s, output):
    """Put the input VCs that ask for an output into row 1 of ``s.left``; 0 if there are none."""
    some = U(0)
    for w in range(words(c.size)):
        word = s.holders[slot(c.size, output, w)] & s.left[slot(c.size, 0, w)]
        s.left[slot(c.size, 1, w)] = word
        some |= word
    return some
