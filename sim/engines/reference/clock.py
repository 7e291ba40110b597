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
"""The tick that no run goes beyond."""

T = TypeVar("T")


class Clock(simpy.Environment):
    """Integer time in phases: everything of one phase of a tick happens before anything of the next.

    Within a phase the order is no part of the model: with a ``shuffle`` seed it is drawn at random.
    """

    def __init__(self, shuffle: int = 0):
        super().__init__()
        self.events = 0
        self._random = random.Random(shuffle) if shuffle else None

    @property
    def now(self) -> int:
        """The present tick."""
        return self._now  # type: ignore[return-value]  # SimPy allows floats; all our delays are integers

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event as SimPy does, and count it; with a ``shuffle`` seed its place in its phase is random.

        priority: the phase. delay: ticks from now.
        """
        self.events += 1
        if self._random and priority >= CHANGES:
            priority = EventPriority((priority << 32) | self._random.getrandbits(32))
        super().schedule(event, priority, delay)

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """A list of the items, in random order if there is a ``shuffle`` seed, otherwise in theirs."""
        listed = list(items)
        return self._random.sample(listed, len(listed)) if self._random else listed


class Alarm(simpy.Event):
    """An event that happens in a phase of a tick.

    A process waits for it, or it calls an ``action`` with itself as the argument, whose ``value`` is the given one.
    tick: no earlier than the present one. phase: CHANGES, DECISIONS, ARRIVALS, CREDITS, CREATION, SENDING or
    ALLOCATION.
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
    """An event that a process waits for before anybody knows when it will happen."""

    def set(self, tick: int, phase: EventPriority, value: Any) -> None:
        """Let the event happen in a phase of a tick, with a value for those who wait."""
        self._ok = True
        self._value = value
        self.env.schedule(self, phase, tick - self.env.now)


class Allocator:
    """Somebody who decides in the allocation phase: a switch, or a host that sends.

    It looks at its own state only, at the ticks at which that may have changed. Being woken once
    too often changes nothing, so whoever changes the state simply calls :meth:`wake`.
    phase: SENDING or ALLOCATION. waiting: what it could not decide yet.
    """

    phase = ALLOCATION
    waiting: Sized

    def __init__(self, clock: Clock):
        self.clock = clock
        self._alarms: set[int] = set()

    def schedule_at(self, tick: int) -> None:
        """Have :meth:`allocate` called at a tick, the present or a later one; at most one alarm is kept for each."""
        if tick not in self._alarms:
            self._alarms.add(tick)
            Alarm(self.clock, tick, self.phase, self._expire, tick)

    def _expire(self, alarm: Any) -> None:
        now = alarm.value
        self._alarms.remove(now)
        self.allocate(now)

    def allocate(self, now: int) -> None:
        """Decide at tick ``now`` what is granted or sent; whatever this causes happens at a later tick."""
        raise NotImplementedError
