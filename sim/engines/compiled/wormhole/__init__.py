"""Wormhole switching, compiled.

An input VC knows for what reasons its front flit cannot be sent. When the last of them is gone it joins the list of
those that are ready; what is on its way, to a switch, to a host, or back to the sender as a credit, is in a queue for
each length of delay. So every step of a tick is a loop over those that take part in it, and these loops have hardly a
branch that could be mispredicted, which would cost more than all the rest.
"""

import numpy as np

from flitlab.models.jit import inner, kernel
from flitlab.sim.engines.compiled.messages import next_tick
from flitlab.sim.engines.compiled.records import NOBODY, log_is_full, run_program
from flitlab.sim.engines.compiled.wormhole import switch_allocation, vc_allocation
from flitlab.sim.engines.compiled.wormhole.deadlock import stuck
from flitlab.sim.engines.compiled.wormhole.flits import deliver_all, land_all, read_headers, restore_all
from flitlab.sim.engines.compiled.wormhole.hosts import notice, send_all
from flitlab.sim.engines.compiled.wormhole.queues import close
from flitlab.sim.engines.compiled.wormhole.state import ONE, U, build

__all__ = ["advance", "build", "moved", "stuck"]


def moved(s) -> int:
    """Flits granted so far."""
    return int(s.output["carried"].sum(dtype=np.int64))


@inner
def _count_flits(c, s):
    """Bring the counters of the channels up to date."""
    for o in range(U(len(s.output))):
        channel = U(c.net.ports.out_channel[o])
        if channel != U(NOBODY):
            s.tally.channel_flits[channel] = s.output[o].carried


@kernel
def advance(c, s, now, until):
    """Simulate ticks now .. until - 1; returns the tick reached, less than ``until`` if the log is full."""
    ready, tick = U(s.ready[-1]), now
    while tick < until and not log_is_full(c, s):
        ready = land_all(c, s, tick, ready)
        deliver_all(c, s, tick)
        ready = restore_all(c, s, tick, ready)
        if c.header > 1:
            ready = read_headers(c, s, tick, ready)
        asking = vc_allocation.present_all(c, s)
        run_program(s.program, c, s, tick, notice)
        send_all(c, s, tick)
        given = vc_allocation.allocate_all(c, s, asking, tick)
        if c.header == 0:  # a head can be switched in the tick in which it gets its VC
            ready = vc_allocation.append_given(s, given, ready)
        ready = switch_allocation.allocate_all(c, s, tick, ready)
        if c.header > 0:
            ready = vc_allocation.append_given(s, given, ready)
        close(c, s, tick)
        tick = next_tick(s.program, s, tick, until, np.int64(ONE << c.ticks))
    s.ready[-1] = ready
    _count_flits(c, s)
    return tick
