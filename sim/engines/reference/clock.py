# SPDX-License-Identifier: Apache-2.0
"""Time: SimPy's environment with the model's phases in a tick."""

import random
from collections.abc import Callable, Iterable, Iterator, Sized
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


class Clock(simpy.Environment):
    """Integer time in phases: all events of a phase of a tick come before those of the next phase.

    The model does not define an order within a phase; a ``shuffle`` seed draws it at random. events: SimPy's, and
    calls.
    """

    def __init__(self, shuffle: int = 0):
        super().__init__()
        self.events = 0
        self._random = random.Random(shuffle) if shuffle else None
        self._calls: dict[tuple[int, int], list[tuple[Callable[[Any], None], Any]]] = {}

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
        super().schedule(event, priority, delay)

    def call(self, tick: int, phase: EventPriority, action: Callable[[Any], None], value: Any) -> None:
        """Call ``action`` with ``value`` in a phase of a tick, the current one or later.

        All calls of a phase of a tick share one SimPy event.
        """
        self.events += 1
        calls = self._calls.get((tick, phase))
        if calls is None:
            calls = self._calls[tick, phase] = []
            Alarm(self, tick, phase, self._make_calls, (tick, phase))
        calls.append((action, value))

    def _make_calls(self, alarm: Any) -> None:
        """Make the calls of a phase of this tick, including those that they add to it."""
        calls = self._calls[alarm.value]
        for action, value in self._drawn(calls) if self._random else calls:
            action(value)
        del self._calls[alarm.value]

    def _drawn(self, items: list[T]) -> Iterator[T]:
        """Remove and yield the items of a list, which may grow meanwhile, in random order."""
        assert self._random is not None
        while items:
            place = self._random.randrange(len(items))
            items[place], items[-1] = items[-1], items[place]
            yield items.pop()

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """Return a list of the items, in random order with a ``shuffle`` seed, otherwise in their own."""
        listed = list(items)
        return self._random.sample(listed, len(listed)) if self._random else listed


class Alarm(simpy.Event):
    """An event in a phase of a tick.

    A process waits for it, or it calls ``action`` with itself as argument, which carries ``value``. tick: the current
    one or later. phase: CHANGES, DECISIONS, ARRIVALS, CREDITS, CREATION, SENDING or ALLOCATION.
    """

    def __init__(
        self,
        clock: Clock,
        tick: int,
        phase: EventPriority,
        action: Callable[[Any], None] | None = None,
        value: Any = None,
    ):
        super().__init__(clock)
        if action is not None:
            self.callbacks.append(action)
        self._ok = True
        self._value = value
        clock.schedule(self, phase, tick - clock.now)


class Allocator:
    """A switch or a sending host, which decides in the allocation phase.

    It reads only its own state, at the ticks at which that may have changed. An extra call of :meth:`allocate` changes
    nothing, so any change of the state calls :meth:`schedule_at`. phase: SENDING or ALLOCATION. waiting: what it could
    not grant or send yet. slot: ticks; it decides at multiples of them.
    """

    phase = Phase.ALLOCATION
    waiting: Sized

    def __init__(self, clock: Clock, slot: int = 1):
        self.clock = clock
        self.slot = slot
        self._scheduled: set[int] = set()

    def schedule_at(self, tick: int) -> None:
        """Schedule :meth:`allocate` at the current tick or a later one, or the next slot; once for each tick."""
        if self.slot > 1:
            tick = -(-tick // self.slot) * self.slot
        if tick not in self._scheduled:
            self._scheduled.add(tick)
            self.clock.call(tick, self.phase, self._allocate_at, tick)

    def _allocate_at(self, now: int) -> None:
        self._scheduled.remove(now)
        self.allocate(now)

    def allocate(self, now: int) -> None:
        """Decide at tick ``now`` what is granted or sent. All effects come at later ticks."""
        raise NotImplementedError
