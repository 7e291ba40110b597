# SPDX-License-Identifier: Apache-2.0
"""Time: SimPy's environment with the model's phases in a tick."""

import random
from collections.abc import Callable, Iterable, Sized
from typing import Any, TypeVar

import simpy
from simpy.events import NORMAL, EventPriority

# Phases of a tick, as SimPy priorities; 0 and 1 are SimPy's own and run first.
# Allocation comes in two: hosts decide by what they see before any switch grants anything. What is decided as a tick
# begins comes before: it follows from what the tick before has left, and from what happens to the network itself.
CHANGES, DECISIONS, ARRIVALS, CREDITS, CREATION, SENDING, ALLOCATION = map(EventPriority, range(2, 9))

LATEST = 1 << 62
"""The last tick of any run."""

T = TypeVar("T")


class Clock(simpy.Environment):
    """Integer time in phases: all events of a phase of a tick come before those of the next phase.

    The model does not define an order within a phase; a ``shuffle`` seed draws it at random.
    """

    def __init__(self, shuffle: int = 0):
        super().__init__()
        self.events = 0
        self._random = random.Random(shuffle) if shuffle else None

    @property
    def now(self) -> int:
        """The current tick."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; all our delays are integers

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event as SimPy does, and count it; a ``shuffle`` seed randomises its order within its phase.

        priority: the phase. delay: ticks from now.
        """
        self.events += 1
        if self._random and priority >= CHANGES:
            priority = EventPriority((priority << 32) | self._random.getrandbits(32))
        super().schedule(event, priority, delay)

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


class Signal(simpy.Event):
    """An event whose tick is set after processes have begun to wait for it."""

    def set(self, tick: int, phase: EventPriority, value: Any) -> None:
        """Schedule the event in a phase of a tick, with a value for the waiting processes."""
        self._ok = True
        self._value = value
        self.env.schedule(self, phase, tick - self.env.now)


class Allocator:
    """A switch or a sending host, which decides in the allocation phase.

    It reads only its own state, at the ticks at which that may have changed. An extra call of :meth:`allocate` changes
    nothing, so any change of the state calls :meth:`schedule_at`. phase: SENDING or ALLOCATION. waiting: what it could
    not grant or send yet.
    """

    phase = ALLOCATION
    waiting: Sized

    def __init__(self, clock: Clock):
        self.clock = clock
        self._alarms: set[int] = set()

    def schedule_at(self, tick: int) -> None:
        """Schedule :meth:`allocate` at the current tick or a later one; each tick has one alarm at most."""
        if tick not in self._alarms:
            self._alarms.add(tick)
            Alarm(self.clock, tick, self.phase, self._expire, tick)

    def _expire(self, alarm: Any) -> None:
        now = alarm.value
        self._alarms.remove(now)
        self.allocate(now)

    def allocate(self, now: int) -> None:
        """Decide at tick ``now`` what is granted or sent. All effects come at later ticks."""
        raise NotImplementedError
