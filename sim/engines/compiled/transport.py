# SPDX-License-Identifier: Apache-2.0
"""What compiled runs of hosts with transports share: timers, rules of flows, traces, and runs whose arrays grow."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, Generic

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.heap import sift_down, sift_up
from flitlab.models.jit import inline
from flitlab.sim.engines.base import Execution
from flitlab.sim.engines.compiled import Constants, State
from flitlab.sim.engines.compiled.pool import doubled
from flitlab.sim.engines.compiled.ranks import execution_of, is_done
from flitlab.sim.engines.transport.run import S, Trace, check_lossless

PREFETCH_DISTANCE, NEAR_PREFETCH_DISTANCE = 6, 2
"""Arrivals by which prefetching is ahead: of what a packet refers to, and of what that refers to."""


class Growth(IntEnum):
    """Entries of a state's ``growth_needed``: arrays to enlarge before the next tick; 0: none."""

    POOL = 0
    TRACE = 1
    WINDOW = 2  # packets that a receiver of mode datagram may have to store
    TRACED = 3  # no flag: entries of the trace
    EVENTS = 4  # of lossless queues


def make_trace(hosts: int, traced: bool) -> Ints:
    """Make an empty trace, int64 [entries, 3]: tick, subflow and number of each untrimmed data packet received."""
    return np.zeros(((1 << 12) + 2 * hosts if traced else 0, 3), np.int64)


@inline
def trace_packet(state, subflow, number, most, now):
    """Append a received data packet to the trace, if one is kept; most: packets that arrive in a tick at most."""
    if len(state.trace):
        entry = state.trace[state.growth_needed[Growth.TRACED]]
        entry[0], entry[1], entry[2] = now, subflow, number
        state.growth_needed[Growth.TRACED] += 1
        if state.growth_needed[Growth.TRACED] + most > len(state.trace):
            state.growth_needed[Growth.TRACE] = 1


@inline
def push_timer(heap, key):
    """Push a key onto the heap of timers, from which the earliest tick is taken first.

    Parameters
    ----------
    heap: int64 [keys + 1]; the number of keys is in the last entry.
    key: int64.
    """
    last = heap[len(heap) - 1]
    heap[len(heap) - 1] += 1
    heap[last] = key
    sift_up(heap, last)


@inline
def pop_timer(heap):
    """Pop the least key off the heap of timers (:func:`push_timer`), which is not empty."""
    least = heap[0]
    heap[len(heap) - 1] -= 1
    size = heap[len(heap) - 1]
    heap[0] = heap[size]
    sift_down(heap, size)
    return least


@inline
def rules_of(const, flow):
    """Return the rules of a flow's transport.

    Parameters
    ----------
    const: has ``rules`` and, with several transports, ``transport_rules`` of each and ``kind``, the transport of each
        flow; else None.
    flow: int64.
    """
    return _select_rules(const.transport_rules, const.kind, const.rules, flow)


@inline
def _select_rules(others, kind, rules, flow):
    """Return the rules of a flow; others: those of every transport, None where all flows have ``rules``."""
    if others is None:  # known at compile time
        return rules
    return others[kind[flow]]


def _longer_trace(state: State) -> State:
    """Double the capacity of the trace."""
    return state._replace(trace=np.concatenate([state.trace, np.zeros_like(state.trace)]))


class CompiledTransport(Generic[S]):
    """A compiled simulation of a session up to, not including, ``tick``.

    state: its arrays, with ``trace`` and ``growth_needed``. grow: returns the state with a larger array. latest: the
    last tick.
    """

    latest: int
    grow: ClassVar[dict[Growth, Callable[[State], State]]] = {Growth.POOL: doubled, Growth.TRACE: _longer_trace}

    def __init__(self, session: S, program: Any, constants: Constants, state: State):
        self.session: S = session
        self._program, self._constants, self._state = program, constants, state
        self._tick = 0
        self._changes: list[Any] = list(session.changes)

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``, with the link events and new routes of the session.

        Raises
        ------
        OverflowError
            Timers do not reach so far.
        MessageDropped
            A packet of a program without retransmissions is dropped.
        """
        while self._changes and self._changes[0].tick < until:
            self._run(self._changes[0].tick)
            if self._has_ended():
                return
            self._apply(self._changes.pop(0))
        self._run(until)

    def _run(self, until: int) -> None:
        if until > self.latest:
            raise OverflowError(f"a run may take at most {self.latest} ticks, the range of timers; simulate less time")
        while self._tick < until and not self._has_ended():
            self._tick = self._simulate(until)
            if self._program is not None and not self.session.retransmits:
                check_lossless(self._dropped())
            wants = self._state.growth_needed
            for flag, grow in self.grow.items():
                if wants[flag]:
                    self._state = grow(self._state)
                    wants[flag] = 0

    def _simulate(self, until: int) -> int:
        """Run the kernel to tick ``until``, or to an earlier one: an array has to grow after it, or the run ends."""
        raise NotImplementedError

    def _has_ended(self) -> bool:
        """Whether a run that ends with its last flow has ended."""
        return False

    def _apply(self, change: Any) -> None:
        """Apply a change of the network."""
        raise NotImplementedError

    def _dropped(self) -> int:
        """Return the packets dropped or trimmed so far."""
        raise NotImplementedError

    def deadlock(self) -> tuple[int, ...]:
        """Return the ports of a cycle of paused servers, in order; none here, where nothing pauses."""
        return ()

    def done(self) -> bool:
        return is_done(self._program.ranks)

    def execution(self) -> Execution:
        return execution_of(self._program.ranks)

    def trace(self) -> Trace:
        if not len(self._state.trace):
            raise ValueError("the run was started without trace=True")
        return Trace(*self._state.trace[: self._state.growth_needed[Growth.TRACED]].T.copy())
