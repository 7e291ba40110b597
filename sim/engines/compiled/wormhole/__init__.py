# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching, compiled.

An input VC stores the reasons why its front flit cannot be sent. When the last one is cleared, it joins the ready list.
Flits and credits in flight are in delay queues, one for each length of delay. Each step of a tick is hence a loop over
its participants, almost without mispredicted branches, which would dominate the run time.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, kernel
from flitlab.sim.engines.base import ChannelCounter
from flitlab.sim.engines.compiled.messages import next_active_tick
from flitlab.sim.engines.compiled.records import NONE, channels_of_outputs, log_is_full, run_program
from flitlab.sim.engines.compiled.stalls import count_stalls
from flitlab.sim.engines.compiled.wormhole import switch_allocation, vc_allocation
from flitlab.sim.engines.compiled.wormhole.crossbar import (
    deliver_due,
    first_step,
    lacks_records,
    send_queued,
    set_aside_blocked,
    start_step,
)
from flitlab.sim.engines.compiled.wormhole.deadlock import has_deadlocked_packet
from flitlab.sim.engines.compiled.wormhole.flits import eject_flits, read_headers, receive_credits, receive_flits
from flitlab.sim.engines.compiled.wormhole.hosts import inject_flits, schedule_host
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.queues import close_tick
from flitlab.sim.engines.compiled.wormhole.stalls import note_stalls
from flitlab.sim.engines.compiled.wormhole.state import WormholeConstants, WormholeState, make_constants_and_state

__all__ = ["advance", "has_deadlocked_packet", "make_constants_and_state", "settle_channels", "total_grants"]


def total_grants(state: WormholeState) -> int:
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


def settle_channels(const: WormholeConstants, state: WormholeState, tick: int, channels: Ints) -> None:
    """Complete a copy of ``state.counters.channels`` in place: the kernel counts heads, and whole packets from hosts.

    tick: not used.
    """
    vcs = state.vc_set["first"][:, None].astype(np.int64) + np.arange(const.vcs)
    channels[channels_of_outputs(const, state), ChannelCounter.FLITS] = state.vc["flits_sent"][vcs].sum(
        axis=1, dtype=np.int64
    )
    subtract_unsent(const, state, np.flatnonzero(state.injecting["packet"] != NONE), channels)


def subtract_unsent(const: WormholeConstants, state: WormholeState, sources: Ints, channels: Ints) -> None:
    """Count only the flits that hosts have sent of packets that they are injecting.

    Parameters
    ----------
    sources: int64, those of the packets.
    channels: ``state.counters.channels`` or a copy, changed in place.
    """
    rows = len(state.counters.channel_flits) + sources % const.net.hosts
    np.subtract.at(channels[:, ChannelCounter.FLITS], rows, state.injecting["flits_left"][sources])


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Parameters
    ----------
    const, state: see :mod:`flitlab.sim.engines.compiled.wormhole.state`.
    now, until: int64, ticks.

    Returns
    -------
    The tick reached: less than ``until`` if the log is full, or the pool is used up (with a speed-up).
    """
    ready_start, ready_end, new_heads, tick, sparse = U(0), U(state.ready[-1]), U(state.new_heads[-1]), now, True
    while tick < until and not log_is_full(const, state) and not lacks_records(state.crossbar, const, state):
        ready_end, new_heads = receive_flits(const, state, tick, ready_end, new_heads)
        eject_flits(const, state, tick)
        deliver_due(state.crossbar, const, state, tick)
        ready_end = receive_credits(const, state, tick, ready_end)
        if const.reads_headers:
            ready_end = read_headers(const, state, tick, ready_end)
        first = first_step(state.crossbar, tick)
        for step in range(first, first_step(state.crossbar, tick + 1)):
            start_step(state.crossbar, tick, step)
            if const.header_ticks > 0:
                note_stalls(state.stalls, const, state, new_heads, tick)
            next_ready = const.ready_capacity - ready_start  # begin of the ready list of the next step
            granted_end = vc_allocation.allocate_all(
                const, state, new_heads, ready_end if const.header_ticks == 0 else next_ready, step
            )
            if step == first:
                run_program(state.program, const, state, tick, schedule_host)
                inject_flits(const, state, tick)
            if const.header_ticks == 0:  # a head flit can be sent in the step of its VC grant
                ready_end, granted_end = granted_end, next_ready
                note_stalls(state.stalls, const, state, U(0), tick)
            ready_end, granted_end = set_aside_blocked(state.crossbar, state, ready_start, ready_end, granted_end)
            ready_end, new_heads, sparse = switch_allocation.allocate_all(
                const, state, step, ready_start, ready_end, granted_end, sparse
            )
            ready_start = next_ready
        count_stalls(state.stalls, const)
        send_queued(state.crossbar, const, state)
        close_tick(const, state, tick)
        tick = next_active_tick(state.program, state, tick, until, np.int64(U(1) << const.due_bits))
    for i in range(ready_end - ready_start):
        state.ready[i] = state.ready[ready_start + i]
    state.ready[-1], state.new_heads[-1] = ready_end - ready_start, new_heads
    _count_flits(const, state)
    return tick
