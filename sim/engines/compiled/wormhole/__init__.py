# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching, compiled.

An input VC knows for what reasons its front flit cannot be sent. When the last of them is gone it joins the list of
those that are ready; what is on its way, to a switch, to a host, or back to the sender as a credit, is in a queue for
each length of delay. So every step of a tick is a loop over those that take part in it, and these loops have hardly a
branch that could be mispredicted, which would cost more than all the rest.
"""

import numpy as np

from flitlab.models.jit import inline, kernel
from flitlab.sim.engines.compiled.messages import next_tick
from flitlab.sim.engines.compiled.records import NOBODY, log_is_full, run_program
from flitlab.sim.engines.compiled.wormhole import switch_allocation, vc_allocation
from flitlab.sim.engines.compiled.wormhole.deadlock import stuck
from flitlab.sim.engines.compiled.wormhole.flits import deliver_all, land_all, read_headers, restore_all
from flitlab.sim.engines.compiled.wormhole.hosts import notice, send_all
from flitlab.sim.engines.compiled.wormhole.queues import close
from flitlab.sim.engines.compiled.wormhole.state import ONE, U, WormholeState, build

__all__ = ["advance", "build", "moved", "stuck"]


def moved(state: WormholeState) -> int:
    """Return how many flits have been granted so far."""
    return int(state.vc["carried"].sum(dtype=np.int64))


@inline
def _count_flits(const, state):
    """Bring the counters of the channels up to date."""
    for output in range(U(len(state.stock))):
        channel = U(const.net.ports.out_channel[output])
        if channel != U(NOBODY):
            first, flits = U(state.stock[output].first), U(0)
            for vc in range(first, first + U(const.vcs)):
                flits += U(state.vc[vc].carried)
            state.tally.channel_flits[channel] = flits


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns the tick reached, which is less than ``until`` if the log is full.
    """
    first, ready, asking, tick, sparse = U(0), U(state.ready[-1]), U(state.asking[-1]), now, True
    while tick < until and not log_is_full(const, state):
        ready, asking = land_all(const, state, tick, ready, asking)
        deliver_all(const, state, tick)
        ready = restore_all(const, state, tick, ready)
        if const.header > 1:
            ready = read_headers(const, state, tick, ready)
        following = const.spare - first  # where those who can send in the next tick are listed
        given = vc_allocation.allocate_all(const, state, asking, ready if const.header == 0 else following, tick)
        run_program(state.program, const, state, tick, notice)
        send_all(const, state, tick)
        if const.header == 0:  # a head can be switched in the tick in which it gets its VC
            ready, given = given, following
        ready, asking, sparse = switch_allocation.allocate_all(const, state, tick, first, ready, given, sparse)
        first = following
        close(const, state, tick)
        tick = next_tick(state.program, state, tick, until, np.int64(ONE << const.ticks))
    for i in range(ready - first):
        state.ready[i] = state.ready[first + i]
    state.ready[-1], state.asking[-1] = ready - first, asking
    _count_flits(const, state)
    return tick
