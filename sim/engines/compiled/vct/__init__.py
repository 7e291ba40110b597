"""Virtual cut-through, compiled.

There are no credit events. An input VC keeps the ticks at which the room of the packets that left it
becomes usable upstream, and whoever needs room reads them. For every output there is a row of the
heads that wait for it, sorted by age; an output is looked at when a head becomes eligible, when it
falls free or when room returns, each a bit on a wheel. Packets are records that are used again.
"""

import numpy as np

from models.jit import kernel
from sim.engines.base import DELIVERED_PACKETS, EVENTS
from sim.engines.compiled.records import NEXT, NOBODY, deliver
from sim.engines.compiled.vct.allocation import serve_all
from sim.engines.compiled.vct.arrival import arrive, route, send_all
from sim.engines.compiled.vct.deadlock import stuck
from sim.engines.compiled.vct.state import build

__all__ = ["advance", "build", "stuck"]


@kernel
def advance(c, s, now, until):
    """Simulate ticks now .. until - 1; returns the tick reached, less than ``until`` if the log is full."""
    mask = s.outputs.mask
    for tick in range(now, until):
        if len(s.log) and s.scalars[DELIVERED_PACKETS] + c.hosts > len(s.log):
            return tick
        slot = tick & mask
        p = np.int64(s.arriving[slot])
        if p != NOBODY:
            s.arriving[slot] = NOBODY
            first = p
            while p != NOBODY:
                route(c, s, p)
                p = np.int64(s.packet[p, NEXT])
            p = first
            while p != NOBODY:
                following = np.int64(s.packet[p, NEXT])
                arrive(c, s, p, tick)
                p = following
                s.scalars[EVENTS] += 1
        p = np.int64(s.leaving[slot])
        if p != NOBODY:
            s.leaving[slot] = NOBODY
            while p != NOBODY:
                following = np.int64(s.packet[p, NEXT])
                deliver(c, s, p, tick)
                p = following
                s.scalars[EVENTS] += 1
        send_all(c, s, tick)
        serve_all(c, s, tick)
    return until
