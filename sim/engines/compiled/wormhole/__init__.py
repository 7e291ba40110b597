# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching, compiled.

An input VC stores the reasons why its front flit cannot be sent. When the last one is cleared, it joins the ready list.
Flits and credits in flight are in delay queues, one for each length of delay. Each step of a tick is hence a loop over
its participants, almost without mispredicted branches, which would dominate the run time.
"""

import numpy as np

from flitlab.models.jit import inline, kernel
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
    """Return the number of flits granted so far."""
    return int(state.vc["flits_sent"].sum(dtype=np.int64))


@inline
def _count_flits(const, state):
    """Update the counters of channels."""
    for output in range(U(len(state.vc_set))):
        channel = U(const.net.ports.out_channel[output])
        if channel != U(NONE):
            ready_start, flits = U(state.vc_set[output].first), U(0)
            for vc in range(ready_start, ready_start + U(const.vcs)):
                flits += U(state.vc[vc].flits_sent)
            state.counters.channel_flits[channel] = flits


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Parameters
    ----------
    const, state: see :mod:`flitlab.sim.engines.compiled.wormhole.state`.
    now, until: int64, ticks.

    Returns
    -------
    The tick reached: less than ``until`` if the log is full.
    """
    ready_start, ready_end, new_heads, tick, sparse = U(0), U(state.ready[-1]), U(state.new_heads[-1]), now, True
    while tick < until and not log_is_full(const, state):
        ready_end, new_heads = receive_flits(const, state, tick, ready_end, new_heads)
        eject_flits(const, state, tick)
        ready_end = collect_credits(const, state, tick, ready_end)
        if const.header_ticks > 1:
            ready_end = read_headers(const, state, tick, ready_end)
        next_ready = const.ready_capacity - ready_start  # begin of the ready list of the next tick
        granted_end = vc_allocation.allocate_all(
            const, state, new_heads, ready_end if const.header_ticks == 0 else next_ready, tick
        )
        run_program(state.program, const, state, tick, schedule_host)
        inject_flits(const, state, tick)
        if const.header_ticks == 0:  # a head flit can be sent in the tick of its VC grant
            ready_end, granted_end = granted_end, next_ready
        ready_end, new_heads, sparse = switch_allocation.allocate_all(
            const, state, tick, ready_start, ready_end, granted_end, sparse
        )
        ready_start = next_ready
        close_tick(const, state, tick)
        tick = next_active_tick(state.program, state, tick, until, np.int64(ONE << const.due_bits))
    for i in range(ready_end - ready_start):
        state.ready[i] = state.ready[ready_start + i]
    state.ready[-1], state.new_heads[-1] = ready_end - ready_start, new_heads
    _count_flits(const, state)
    return tick
