# SPDX-License-Identifier: Apache-2.0
"""Virtual cut-through, compiled.

Room of input VCs is counted by who feeds them, and returns to it in lists by tick. For every output there
is a row of the heads that wait for it, sorted by age; an output is looked at when a head becomes eligible,
when it falls free or when room returns, each a bit on a wheel. Packets are records that are used again.
"""

from flitlab.models.jit import kernel
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.sim.engines.base import EVENTS, GRANTS
from flitlab.sim.engines.compiled.messages import next_active_tick
from flitlab.sim.engines.compiled.records import deliver_packets, log_is_full, run_program
from flitlab.sim.engines.compiled.timing_wheel import drain
from flitlab.sim.engines.compiled.vct.allocation import allocate_outputs
from flitlab.sim.engines.compiled.vct.arrival import inject_packets, receive_packets, schedule_host
from flitlab.sim.engines.compiled.vct.credits import collect_credits, collect_skipped
from flitlab.sim.engines.compiled.vct.deadlock import is_deadlocked
from flitlab.sim.engines.compiled.vct.exchange import exchange
from flitlab.sim.engines.compiled.vct.joint_allocation import allocate_jointly
from flitlab.sim.engines.compiled.vct.partitions import make_partitions, merge_partitions
from flitlab.sim.engines.compiled.vct.state import VctConstants, VctState, build

__all__ = ["advance", "build", "merge_partitions", "count_grants", "make_partitions", "is_deadlocked"]


def count_grants(state: VctState) -> int:
    """Return how many packets have been granted so far."""
    return int(state.counters.scalars[GRANTS])


def advance(const: VctConstants, state: VctState, now: int, until: int) -> int:
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns the tick reached, which is less than ``until`` if the log is full.
    """
    advance_loop = _advance_joint if const.shared_input or const.rule == ADAPTIVE else _advance
    return int(advance_loop(const, state, now, until))


# Two loops that differ in one call: in a single one Numba would compile both ways to allocate, 4 s more.


@kernel
def _advance(const, state, now, until):
    """Simulate where every head waits for one output and an input may send several packets at a time."""
    tick, single_partition = now, state.mailboxes.partitions == 1
    while tick < until:
        end = min(until, tick + state.mailboxes.lookahead)
        while tick < end:
            if log_is_full(const, state):
                return tick
            receive_packets(const, state, tick)
            collect_credits(const, state, tick)  # not before: who thinks again does so by what the tick before has left
            deliver_packets(const, state, tick)
            run_program(state.program, const, state, tick, schedule_host)
            inject_packets(const, state, tick)
            grants_before = state.counters.scalars[GRANTS]
            count = drain(state.output_wheel, tick, state.members)
            allocate_outputs(const, state, state.members, count, tick)
            state.counters.scalars[EVENTS] += state.counters.scalars[GRANTS] - grants_before
            last, tick = tick, next_active_tick(state.program, state, tick, end, 0) if single_partition else tick + 1
            collect_skipped(state.program, const, state, last + 1, tick)
        if not single_partition:
            tick = exchange(const, state, tick, until)
    return tick


@kernel
def _advance_joint(const, state, now, until):
    """Simulate where heads wait for several outputs, or where an input sends one packet at a time."""
    tick, single_partition = now, state.mailboxes.partitions == 1
    while tick < until:
        end = min(until, tick + state.mailboxes.lookahead)
        while tick < end:
            if log_is_full(const, state):
                return tick
            receive_packets(const, state, tick)
            collect_credits(const, state, tick)  # not before: who thinks again does so by what the tick before has left
            deliver_packets(const, state, tick)
            run_program(state.program, const, state, tick, schedule_host)
            inject_packets(const, state, tick)
            grants_before = state.counters.scalars[GRANTS]
            count = drain(state.output_wheel, tick, state.members)
            allocate_jointly(const, state, state.members, count, tick)
            state.counters.scalars[EVENTS] += state.counters.scalars[GRANTS] - grants_before
            last, tick = tick, next_active_tick(state.program, state, tick, end, 0) if single_partition else tick + 1
            collect_skipped(state.program, const, state, last + 1, tick)
        if not single_partition:
            tick = exchange(const, state, tick, until)
    return tick
