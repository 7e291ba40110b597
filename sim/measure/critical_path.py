# SPDX-License-Identifier: Apache-2.0
"""The critical path of a program: the chain of operations and messages that determines its end."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from flitlab.models.application.jobs import arrivals
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Op, Program
from flitlab.models.arrays import Integers, Ints
from flitlab.sim.engines.base import Cause, Execution

COMPUTE, OVERHEAD, IN_FLIGHT, WAITING, ARRIVING = "compute", "overhead", "message", "processor", "arrival"
KINDS = (COMPUTE, OVERHEAD, IN_FLIGHT, WAITING, ARRIVING)
"""Kinds of segments: a calculation, the overhead of a send or receive, a message in flight, other work on the
processor that the next operation waited for, or the time before a job arrived.
"""

AS_LISTS = 3_000_000
"""The most operations for which lists are worth their memory."""

CACHED_RANKS = 256
"""Ranks whose dependencies are cached."""


class Segment(NamedTuple):
    """A segment of the critical path from ``start`` to ``end``, in time units, and its operation."""

    kind: str
    operation: int
    start: int
    end: int


def critical_path(program: Program, messages: Messages, execution: Execution, min_message_time: int) -> list[Segment]:
    """Return the segments from tick 0 to the end of the last operation, without empty ones.

    min_message_time: the least time units of a request to send. A rendezvous whose receive was ready later than that
    after the request was queued is attributed to the receiver.
    """
    if not program.operations:
        return []
    walk = _Walk(program, messages, execution, min_message_time)
    last = int(np.argmax(execution.finish))
    segments = [Segment(kind, int(o), int(begin), int(end)) for kind, o, begin, end in walk.back(last) if end > begin]
    return segments[::-1]


Explained: TypeAlias = Generator[Segment, None, "Event | None"]
"""Yields the segments before an event, the last first; returns the event that it waited for, if any."""

Event: TypeAlias = tuple[Callable[[int], Explained], int]
"""An event of an operation, as the function that explains it, and the operation."""


class _Walk:
    """Walks back from each event to the event that it waited for."""

    def __init__(self, program: Program, messages: Messages, execution: Execution, min_message_time: int):
        def quick(array: Integers) -> list[int] | Integers:
            return array.tolist() if program.operations <= AS_LISTS else array

        self.program, self.messages, self.min_message_time = program, messages, min_message_time
        self.kind, self.amount, self.partner = quick(program.kind), quick(program.amount), quick(program.partner)
        self.ready, self.start, self.finish = quick(execution.ready), quick(execution.start), quick(execution.finish)
        self.queued, self.delivered = quick(execution.queued), quick(execution.delivered)
        self.cause = quick(execution.cause)
        self.arrivals = set(arrivals(program).tolist())
        self._waited: dict[int, tuple[int, Ints, Ints]] = {}

    def back(self, last: int) -> Iterator[Segment]:
        """The segments, the last first."""
        event: Event | None = (self._done, last)
        while event is not None:
            explain, operation = event
            event = yield from explain(operation)

    def _done(self, o: int) -> Explained:
        """Explain the end of an operation."""
        if self.kind[o] == Op.SEND and (self.messages.confirmed or self.amount[o] > self.messages.rendezvous):
            return (yield from self._message(o, self.finish[o]))
        if self.kind[o] == Op.SEND:
            yield Segment(IN_FLIGHT, o, self.queued[o], self.finish[o])
            yield Segment(OVERHEAD, o, self.start[o], self.queued[o])
            return self._begun, o
        calc = ARRIVING if o in self.arrivals else COMPUTE
        yield Segment(calc if self.kind[o] == Op.CALC else OVERHEAD, o, self.start[o], self.finish[o])
        return self._begun, o

    def _message(self, send: int, arrived: int) -> Explained:
        """Explain the arrival of the message of a send."""
        receive = self.partner[send]
        is_rendezvous = self.amount[send] > self.messages.rendezvous
        earliest = self.queued[send] + (self.min_message_time if is_rendezvous else 0)
        if (is_rendezvous or self.messages.await_receive) and self.ready[receive] > earliest:
            yield Segment(IN_FLIGHT, send, self.ready[receive], arrived)
            return self._ready, receive
        yield Segment(IN_FLIGHT, send, self.queued[send], arrived)
        yield Segment(OVERHEAD, send, self.start[send], self.queued[send])
        return self._begun, send

    def _begun(self, o: int) -> Explained:
        """Explain when an operation got its processor."""
        cause = self.cause[o]
        if cause < 0:
            return None
        by, why = cause >> 2, cause & 3
        if why == Cause.MESSAGE:
            return (yield from self._message(by, self.start[o]))
        if why == Cause.PROCESSOR:
            yield Segment(WAITING, by, self.start[by], self.start[o])
            return self._begun, by
        return self._released(by, why == Cause.STARTED)

    def _released(self, by: int, early: bool) -> Event:
        """The event of an operation whose start, or end, another waited for."""
        if not early:
            return self._done, by
        return (self._ready if self.kind[by] == Op.RECV else self._begun), by

    def _ready(self, o: int) -> Explained:
        """Explain when an operation was ready: the last of its dependencies."""
        begin, first, waited = self._dependencies(int(self.program.rank[o]))
        best, chosen = -1, None
        for place in range(first[o - begin], first[o - begin + 1]):
            by, early = int(waited[place]) >> 1, bool(waited[place] & 1)
            times = self.finish if not early else self.ready if self.kind[by] == Op.RECV else self.start
            if times[by] > best:
                best, chosen = times[by], (by, early)
        return None if chosen is None else self._released(*chosen)
        yield  # an explanation without a segment is a generator, too

    def _dependencies(self, rank: int) -> tuple[int, Ints, Ints]:
        """Return a rank's first operation; by operation, the index of its first dependency; the dependencies as 2 *
        operation + early.
        """
        if rank not in self._waited:
            if len(self._waited) >= CACHED_RANKS:
                self._waited.pop(next(iter(self._waited)))
            begin, end = self.program.start[rank : rank + 2].tolist()
            after = self.program.after[begin : end + 1]
            successor = self.program.successor[after[0] : after[-1]]
            by = 2 * np.repeat(np.arange(begin, end), np.diff(after)) + (successor & 1)
            waiting = (successor >> 1) - begin
            first = np.concatenate([[0], np.cumsum(np.bincount(waiting, minlength=end - begin))])
            self._waited[rank] = begin, first, by[np.argsort(waiting, kind="stable")]
        return self._waited[rank]


def shares(segments: Sequence[Segment], total: int) -> dict[str, float]:
    """Return the share of the total time of each kind of segment; total: in time units."""
    lengths = dict.fromkeys(KINDS, 0)
    for segment in segments:
        lengths[segment.kind] += segment.end - segment.start
    return {kind: length / total if total else 0.0 for kind, length in lengths.items()}
