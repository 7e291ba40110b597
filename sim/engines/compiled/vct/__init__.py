# SPDX-License-Identifier: Apache-2.0
"""Virtual cut-through, compiled.

Credits are counted at the upstream of each input VC and return through a calendar queue. Each output stores the
requests of head packets in order of age. An output is allocated when a head packet becomes eligible, when the output
falls free, or when credits return: each sets a bit in a timing wheel. Packets are records of a pool.
"""

from flitlab.models.jit import inline, kernel
from flitlab.models.rules.tables import Selection
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.messages import next_active_tick
from flitlab.sim.engines.compiled.records import deliver_packets, log_is_full, run_program
from flitlab.sim.engines.compiled.stalls import count_stalls
from flitlab.sim.engines.compiled.timing_wheel import drain
from flitlab.sim.engines.compiled.vct.allocation import allocate_independent_outputs
from flitlab.sim.engines.compiled.vct.arrival import (
    inject_from_scheduled_hosts,
    route_and_enqueue_arrivals,
    schedule_host,
)
from flitlab.sim.engines.compiled.vct.credits import add_credits_of_skipped_ticks, add_returned_credits_at_upstreams
from flitlab.sim.engines.compiled.vct.deadlock import has_deadlocked_packet
from flitlab.sim.engines.compiled.vct.exchange import exchange_mailboxes_at_barrier
from flitlab.sim.engines.compiled.vct.joint_allocation import allocate_dependent_outputs
from flitlab.sim.engines.compiled.vct.partitions import (
    inputs_of_partitions,
    merge_partition_states,
    split_state_into_partitions,
)
from flitlab.sim.engines.compiled.vct.stalls import note_stalls
from flitlab.sim.engines.compiled.vct.state import VctConstants, VctState, make_constants_and_state

__all__ = [
    "advance", "has_deadlocked_packet", "inputs_of_partitions", "make_constants_and_state", "merge_partition_states",
    "split_state_into_partitions",
]  # fmt: skip


def advance(const: VctConstants, state: VctState, now: int, until: int) -> int:
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Parameters
    ----------
    const, state: see :mod:`flitlab.sim.engines.compiled.vct.state`.
    now, until: int64, ticks.

    Returns
    -------
    The tick reached: less than ``until`` if the log is full.
    """
    advance_loop = (
        _advance_with_dependent_outputs
        if const.shared_input or const.rule == Selection.ADAPTIVE
        else _advance_with_independent_outputs
    )
    return int(advance_loop(const, state, now, until))


@kernel
def _advance_with_independent_outputs(const, state, now, until):
    """Simulate with independent outputs: each head packet requests one output, and inputs are not shared."""
    return _simulate(allocate_independent_outputs, const, state, now, until)


@kernel
def _advance_with_dependent_outputs(const, state, now, until):
    """Simulate with dependent outputs: head packets request several, or an input sends one packet at a time."""
    return _simulate(allocate_dependent_outputs, const, state, now, until)


@inline
def _simulate(allocate, const, state, now, until):
    """Simulate with one of the allocators; each has a kernel of its own, since compiling both takes 4 s more."""
    tick, single_partition = now, state.mailboxes.partitions == 1
    while tick < until:
        end = min(until, tick + state.mailboxes.lookahead)
        while tick < end:
            if log_is_full(const, state):
                return tick
            route_and_enqueue_arrivals(const, state, tick)
            # after re-routing, which sees the credits of the previous tick:
            add_returned_credits_at_upstreams(const, state, tick)
            deliver_packets(const, state, tick)
            run_program(state.program, const, state, tick, schedule_host)
            inject_from_scheduled_hosts(const, state, tick)
            grants_before = state.counters.scalars[Scalar.GRANTS]
            note_stalls(state.stalls, const, state, tick)
            count = drain(state.output_wheel, tick, state.members)
            allocate(const, state, state.members, count, tick)
            count_stalls(state.stalls, const)
            state.counters.scalars[Scalar.EVENTS] += state.counters.scalars[Scalar.GRANTS] - grants_before
            last, tick = tick, next_active_tick(state.program, state, tick, end, 0) if single_partition else tick + 1
            add_credits_of_skipped_ticks(state.program, const, state, last + 1, tick)
        if not single_partition:
            tick = exchange_mailboxes_at_barrier(const, state, tick, until)
    return tick
