"""Wormhole switching, compiled.

Every condition under which a flit may move is a set of a switch's input VCs, one bit each: there is a flit,
its packet has an output VC, that has a credit. A switch is looked at while their conjunction is not empty, or
while packets ask for output VCs of which some are free. Flits on their way are already written into the buffer
that they will come to, where credits keep a place; what remains to be told is when they arrive, and that is
a queue for each length of delay. Input and output VC of a channel have the same number.
"""

import numpy as np

from models.jit import inner, kernel
from models.rules.bits import lowest
from sim.engines.compiled.records import deliver_all, log_is_full
from sim.engines.compiled.wormhole import switch_allocation, vc_allocation
from sim.engines.compiled.wormhole.deadlock import stuck
from sim.engines.compiled.wormhole.flits import land_all, present_all, read_headers, restore_all
from sim.engines.compiled.wormhole.hosts import send_all
from sim.engines.compiled.wormhole.sets import ONE, SIX, U
from sim.engines.compiled.wormhole.state import build

__all__ = ["advance", "build", "stuck"]


@inner
def _switch_all(c, s, tick):
    """Switch allocation wherever a flit can be sent; what is granted moves together, so that look-ups overlap."""
    count = np.int64(0)
    for w in range(len(s.to_switch)):
        word = s.to_switch[w]
        s.to_switch[w] = 0
        while word:
            count = switch_allocation.allocate(c, s, (U(w) << SIX) | U(lowest(word)), count)
            word &= word - ONE
    for i in range(count):
        switch_allocation.serve(c, s, U(s.granted[i]), tick)


@inner
def _assign_all(c, s):
    """VC allocation wherever a packet can get a VC."""
    for w in range(len(s.to_assign)):
        word = s.to_assign[w]
        s.to_assign[w] = 0
        while word:
            vc_allocation.allocate(c, s, (U(w) << SIX) | U(lowest(word)))
            word &= word - ONE


@kernel
def advance(c, s, now, until):
    """Simulate ticks now .. until - 1; returns the tick reached, less than ``until`` if the log is full."""
    for tick in range(now, until):
        if log_is_full(c, s):
            return tick
        land_all(c, s, tick)
        present_all(c, s, tick)
        deliver_all(c, s, tick, c.leaving)
        restore_all(c, s, tick)
        if c.header > 1:
            read_headers(c, s, tick)
        send_all(c, s, tick)
        if c.header > 0:
            _switch_all(c, s, tick)
            _assign_all(c, s)
        else:
            _assign_all(c, s)
            _switch_all(c, s, tick)
    return until
