# SPDX-License-Identifier: Apache-2.0
"""Time: SimPy's environment with the model's phases in a tick."""

import random
from collections.abc import Callable, Collection, Generator, Sized
from heapq import heappush
from typing import Any, NamedTuple, TypeVar

import simpy
from simpy.events import NORMAL, EventPriority


class _Phase(NamedTuple):
    """Phases of a tick, as SimPy priorities; 0 and 1 are SimPy's own and run first.

    Allocation comes in two: hosts decide by what they see before any switch grants anything. What is decided as a tick
    begins comes before: it follows from what the tick before has left, and from what happens to the network itself.
    """

    CHANGES: EventPriority = EventPriority(2)
    DECISIONS: EventPriority = EventPriority(3)
    ARRIVALS: EventPriority = EventPriority(4)
    CREDITS: EventPriority = EventPriority(5)
    CREATION: EventPriority = EventPriority(6)
    SENDING: EventPriority = EventPriority(7)
    ALLOCATION: EventPriority = EventPriority(8)


Phase = _Phase()

LATEST = 1 << 62
"""The last tick of any run."""

T = TypeVar("T")
Call = tuple[Callable[[Any], None], Any]
Process = Generator[int, None, None]
"""It yields the ticks at which it goes on."""


class Clock(simpy.Environment):
    """Integer time in phases: all events of a phase of a tick come before those of the next phase.

    The model does not define an order within a phase; a ``shuffle`` seed draws it at random. events: SimPy's, calls and
    allocations so far. calls, allocations: by phase, then by tick, those that are scheduled.
    """

    def __init__(self, shuffle: int = 0):
        super().__init__()
        self.events = 0
        self._random = random.Random(shuffle) if shuffle else None
        self.calls: list[dict[int, list[Call]]] = [{} for _ in range(Phase.ALLOCATION + 1)]
        self.allocations: list[dict[int, dict[Allocator, None]]] = [{} for _ in range(Phase.ALLOCATION + 1)]

    @property
    def now(self) -> int:
        """The current tick."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; all our delays are integers

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event as SimPy does, and count it; a ``shuffle`` seed randomises its order within its phase.

        priority: the phase. delay: ticks from now.
        """
        self.events += 1
        if self._random and priority >= Phase.CHANGES:
            priority = EventPriority((priority << 32) | self._random.getrandbits(32))
        heappush(self._queue, (self._now + delay, priority, next(self._eid), event))

    def call(self, tick: int, phase: EventPriority, action: Callable[[T], None], value: T) -> None:
        """Call ``action`` with ``value`` in a phase of a tick, the current one or later.

        All calls of a phase of a tick share one SimPy event.
        """
        calls = self.calls[phase].get(tick)
        if calls is None:
            calls = self.calls[phase][tick] = []
            Alarm(self, tick, phase, self._make_calls, phase)
        calls.append((action, value))

    def _make_calls(self, alarm: "Alarm") -> None:
        """Make the calls of a phase of this tick."""
        calls = self.calls[alarm.value].pop(self.now)
        self.events += len(calls)
        for action, value in self.shuffled(calls):
            action(value)

    def add_allocation(self, tick: int, phase: EventPriority) -> "dict[Allocator, None]":
        """A new set of allocators that decide in a phase of a tick, in the order of their entry."""
        allocators = self.allocations[phase][tick] = dict[Allocator, None]()
        Alarm(self, tick, phase, self._allocate, phase)
        return allocators

    def _allocate(self, alarm: "Alarm") -> None:
        """Let the allocators of a phase of this tick decide."""
        now = self.now
        allocators = self.allocations[alarm.value].pop(now)
        self.events += len(allocators)
        for allocator in self.shuffled(allocators):
            allocator.allocate(now)

    def resume(self, process: Process) -> None:
        """Run a process up to the next tick that it yields; there it goes on, in the phase of creation."""
        tick = next(process, None)
        if tick is not None:
            self.call(tick, Phase.CREATION, self.resume, process)

    def shuffled(self, items: Collection[T]) -> list[T]:
        """Return a list of the items, in random order with a ``shuffle`` seed, otherwise in their own."""
        return self._random.sample([*items], len(items)) if self._random else [*items]


class Alarm(simpy.Event):
    """An event in a phase of a tick.

    A process waits for it, or it calls ``action`` with itself as argument, which carries ``value``. tick: the current
    one or later. phase: CHANGES, DECISIONS, ARRIVALS, CREDITS, CREATION, SENDING or ALLOCATION.
    """

    value: Any  # SimPy's property

    def __init__(
        self,
        clock: Clock,
        tick: int,
        phase: EventPriority,
        action: "Callable[[Alarm], None] | None" = None,
        value: object = None,
    ):
        self.env = clock
        self.callbacks = [] if action is None else [action]
        self._ok = True
        self._value = value
        clock.schedule(self, phase, tick - clock.now)


def next_slot(tick: int, slot: int) -> int:
    """The first multiple of ``slot`` ticks that is not before a tick."""
    return -(-tick // slot) * slot


class Allocator:
    """A switch or a sending host, which decides in the allocation phase.

    It reads only its own state, at the ticks at which that may have changed. An extra call of :meth:`allocate` changes
    nothing, so any change of the state calls :meth:`schedule_at`. phase: SENDING or ALLOCATION. waiting: what it could
    not grant or send yet.
    """

    phase = Phase.ALLOCATION
    waiting: Sized

    def __init__(self, clock: Clock):
        self.clock = clock
        self._allocations = clock.allocations[self.phase]

    def schedule_at(self, tick: int) -> None:
        """Schedule :meth:`allocate` at the current tick or a later one; once for each tick."""
        allocators = self._allocations.get(tick)
        if allocators is None:
            allocators = self.clock.add_allocation(tick, self.phase)
        allocators[self] = None

    def allocate(self, now: int) -> None:
        """Decide at tick ``now`` what is granted or sent. All effects come at later ticks."""
        raise NotImplementedError
