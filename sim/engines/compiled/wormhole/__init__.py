# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching, compiled.

An input VC knows for what reasons its front flit cannot be sent. When the last of them is gone it joins the list of
those that are ready; what is on its way, to a switch, to a host, or back to the sender as a credit, is in a queue for
each length of delay. So every step of a tick is a loop over those that take part in it, and these loops have hardly a
branch that could be mispredicted, which would cost more than all the rest.
"""

import numpy as np

from flitlab.models.jit import inner, kernel
from flitlab.sim.engines.compiled.messages import next_active_tick
from flitlab.sim.engines.compiled.records import NONE, log_is_full, run_program
from flitlab.sim.engines.compiled.wormhole import switch_allocation, vc_allocation
from flitlab.sim.engines.compiled.wormhole.deadlock import is_deadlocked
from flitlab.sim.engines.compiled.wormhole.flits import collect_credits, eject_flits, read_headers, receive_flits
from flitlab.sim.engines.compiled.wormhole.hosts import inject_flits, schedule_host
from flitlab.sim.engines.compiled.wormhole.queues import close_tick
from flitlab.sim.engines.compiled.wormhole.state import ONE, U, WormholeState, build

__all__ = ["advance", "build", "count_grants", "is_deadlocked"]


def count_grants(state: WormholeState) -> int:
    """Return how many flits have been granted so far."""
    return int(state.vc["carried"].sum(dtype=np.int64))


@inner
def _count_flits(const, state):
    """Bring the counters of the channels up to date."""
    for output in range(U(len(state.vc_set))):
        channel = U(const.net.ports.out_channel[output])
        if channel != U(NONE):
            ready_start, flits = U(state.vc_set[output].first), U(0)
            for vc in range(ready_start, ready_start + U(const.vcs)):
                flits += U(state.vc[vc].carried)
            state.counters.channel_flits[channel] = flits


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns the tick reached, which is less than ``until`` if the log is full.
    """
    ready_start, ready_end, new_heads, tick, sparse = U(0), U(state.ready[-1]), U(state.new_heads[-1]), now, True
    while tick < until and not log_is_full(const, state):
        ready_end, new_heads = receive_flits(const, state, tick, ready_end, new_heads)
        eject_flits(const, state, tick)
        ready_end = collect_credits(const, state, tick, ready_end)
        if const.header_ticks > 1:
            ready_end = read_headers(const, state, tick, ready_end)
        next_ready = const.ready_capacity - ready_start  # where those who can send in the next tick are listed
        granted_end = vc_allocation.allocate_all(
            const, state, new_heads, ready_end if const.header_ticks == 0 else next_ready, tick
        )
        run_program(state.program, const, state, tick, schedule_host)
        inject_flits(const, state, tick)
        if const.header_ticks == 0:  # a head can be switched in the tick in which it gets its VC
            ready_end, granted_end = granted_end, next_ready
        ready_end, new_heads, sparse = switch_allocation.allocate_all(
            const, state, tick, ready_start, ready_end, granted_end, sparse
        )
        ready_start = next_ready
        close_tick(const, state, tick)
        tick = next_active_tick(state.program, state, tick, until, np.int64(ONE << const.ticks))
    for i in range(ready_end - ready_start):
        state.ready[i] = state.ready[ready_start + i]
    state.ready[-1], state.new_heads[-1] = ready_end - ready_start, new_heads
    _count_flits(const, state)
    return tick
