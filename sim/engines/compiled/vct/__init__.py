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
from flitlab.sim.engines.compiled.vct.allocation import serve_all
from flitlab.sim.engines.compiled.vct.arrival import arrive_all, notice, send_all
from flitlab.sim.engines.compiled.vct.credits import skip, take_back
from flitlab.sim.engines.compiled.vct.deadlock import is_deadlocked
from flitlab.sim.engines.compiled.vct.exchange import exchange
from flitlab.sim.engines.compiled.vct.joint_allocation import serve_together
from flitlab.sim.engines.compiled.vct.partitions import fold, split
from flitlab.sim.engines.compiled.vct.state import VctConstants, VctState, build

__all__ = ["advance", "build", "fold", "count_grants", "split", "is_deadlocked"]


def count_grants(state: VctState) -> int:
    """Return how many packets have been granted so far."""
    return int(state.counters.scalars[GRANTS])


def advance(const: VctConstants, state: VctState, now: int, until: int) -> int:
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns the tick reached, which is less than ``until`` if the log is full.
    """
    loop = _advance_together if const.shared_input or const.rule == ADAPTIVE else _advance
    return int(loop(const, state, now, until))


# Two loops that differ in one call: in a single one Numba would compile both ways to allocate, 4 s more.


@kernel
def _advance(const, state, now, until):
    """Simulate where every head waits for one output and an input may send several packets at a time."""
    tick, alone = now, state.mailboxes.partitions == 1
    while tick < until:
        end = min(until, tick + state.mailboxes.lookahead)
        while tick < end:
            if log_is_full(const, state):
                return tick
            arrive_all(const, state, tick)
            take_back(const, state, tick)  # not before: who thinks again does so by what the tick before has left
            deliver_packets(const, state, tick)
            run_program(state.program, const, state, tick, notice)
            send_all(const, state, tick)
            granted = state.counters.scalars[GRANTS]
            count = drain(state.outputs, tick, state.members)
            serve_all(const, state, state.members, count, tick)
            state.counters.scalars[EVENTS] += state.counters.scalars[GRANTS] - granted
            last, tick = tick, next_active_tick(state.program, state, tick, end, 0) if alone else tick + 1
            skip(state.program, const, state, last + 1, tick)
        if not alone:
            tick = exchange(const, state, tick, until)
    return tick


@kernel
def _advance_together(const, state, now, until):
    """Simulate where heads wait for several outputs, or where an input sends one packet at a time."""
    tick, alone = now, state.mailboxes.partitions == 1
    while tick < until:
        end = min(until, tick + state.mailboxes.lookahead)
        while tick < end:
            if log_is_full(const, state):
                return tick
            arrive_all(const, state, tick)
            take_back(const, state, tick)  # not before: who thinks again does so by what the tick before has left
            deliver_packets(const, state, tick)
            run_program(state.program, const, state, tick, notice)
            send_all(const, state, tick)
            granted = state.counters.scalars[GRANTS]
            count = drain(state.outputs, tick, state.members)
            serve_together(const, state, state.members, count, tick)
            state.counters.scalars[EVENTS] += state.counters.scalars[GRANTS] - granted
            last, tick = tick, next_active_tick(state.program, state, tick, end, 0) if alone else tick + 1
            skip(state.program, const, state, last + 1, tick)
        if not alone:
            tick = exchange(const, state, tick, until)
    return tick
