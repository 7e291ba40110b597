"""Virtual cut-through, compiled.

There are no credit events. An input VC keeps the ticks at which the room of the packets that left it
becomes usable upstream, and whoever needs room reads them. For every output there is a row of the
heads that wait for it, sorted by age; an output is looked at when a head becomes eligible, when it
falls free or when room returns, each a bit on a wheel. Packets are records that are used again.
"""

from flitlab.models.jit import kernel
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.sim.engines.base import EVENTS, GRANTS
from flitlab.sim.engines.compiled.messages import next_tick
from flitlab.sim.engines.compiled.records import deliver_all, log_is_full, run_program
from flitlab.sim.engines.compiled.vct.allocation import serve
from flitlab.sim.engines.compiled.vct.arrival import arrive_all, notice, send_all
from flitlab.sim.engines.compiled.vct.deadlock import stuck
from flitlab.sim.engines.compiled.vct.state import build
from flitlab.sim.engines.compiled.vct.together import serve_together
from flitlab.sim.engines.compiled.wheel import drain

__all__ = ["advance", "build", "moved", "stuck"]


def moved(s) -> int:
    """Packets granted so far."""
    return int(s.tally.scalars[GRANTS])


def advance(c, s, now, until):
    """Simulate ticks now .. until - 1; returns the tick reached, less than ``until`` if the log is full."""
    kernel = _advance_together if c.shared_input or c.rule == ADAPTIVE else _advance
    return kernel(c, s, now, until)


# Two loops that differ in one call: in a single one Numba would compile both ways to allocate, 4 s more.


@kernel
def _advance(c, s, now, until):
    tick = now
    while tick < until:
        if log_is_full(c, s):
            return tick
        arrive_all(c, s, tick)
        deliver_all(c, s, tick, s.outputs.mask)
        run_program(s.program, c, s, tick, notice)
        send_all(c, s, tick)
        count = drain(s.outputs, tick, s.members)
        for i in range(count):
            serve(c, s, s.members[i], tick)
        s.tally.scalars[EVENTS] += count
        tick = next_tick(s.program, s, tick, until, 0)
    return tick


@kernel
def _advance_together(c, s, now, until):
    tick = now
    while tick < until:
        if log_is_full(c, s):
            return tick
        arrive_all(c, s, tick)
        deliver_all(c, s, tick, s.outputs.mask)
        run_program(s.program, c, s, tick, notice)
        send_all(c, s, tick)
        count = drain(s.outputs, tick, s.members)
        serve_together(c, s, s.members, count, tick)
        s.tally.scalars[EVENTS] += count
        tick = next_tick(s.program, s, tick, until, 0)
    return tick
