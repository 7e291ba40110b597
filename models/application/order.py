# SPDX-License-Identifier: Apache-2.0
"""The execution order of a program, its shortest time, and its cyclic waits.

Every operation has two events: *ready*, and *done*. The graph of their dependencies:

* the done of an operation waits for its ready;
* a dependent of an operation is ready after its done, or, if it depends on the start, after its ready;
* the done of a receive waits for the done of its send, which is when the message has left its host (eager; buffered:
  when it has joined the queue) or has been delivered (rendezvous);
* the done of a rendezvous send waits for the ready of its receive.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.matching import ProgramError, describe
from flitlab.models.application.program import Op, Program
from flitlab.models.arrays import Floats, Integers, Ints, Ints32, scratch
from flitlab.models.jit import device_function, inline

READY, DONE = 0, 1
"""Event 2 * operation + READY or DONE."""

SHOWN = 12
"""Operations of a waiting cycle that a message shows."""

_FIXED = 2
"""Edges of an event besides those to dependents; see :func:`_edge`."""


class Times(NamedTuple):
    """Earliest times of operations, with unlimited processors and channels.

    start, finish: float64 [operations]; a receive starts when it is ready and its whole message has arrived. tail:
    float64 [operations], shortest time from the end of an operation to that of the program. path: int64, the operations
    of a critical path, first to last. makespan: its length, a lower bound on the time of every run.
    """

    start: Floats
    finish: Floats
    tail: Floats
    path: Ints
    makespan: float


class _Graph(NamedTuple):
    kind: Integers
    amount: Integers
    partner: Integers
    after: Integers
    successor: Integers
    rendezvous: int


class _Costs(NamedTuple):
    hold: Floats
    latency: Floats
    request: Floats
    consent: Floats
    leaving: Floats


@inline
def _edge(graph: _Graph, event: int, k: int) -> int:
    """The event that the k-th edge of an event leads to, -1 if there is none.

    Edge 0 of a ready leads to the same operation's done, edge 0 of a send's done to the done of its receive; edge 1 of
    the ready of a receive to the done of its send (rendezvous). The others lead to dependents.
    """
    o, stage = event >> 1, event & 1
    if k >= _FIXED:
        waiting = graph.successor[graph.after[o] + k - _FIXED]
        return 2 * (waiting >> 1) + READY if (waiting & 1) != stage else -1
    if k == 0 and stage == READY:
        return 2 * o + DONE
    if k == 0 and graph.kind[o] == Op.SEND:
        return 2 * graph.partner[o] + DONE
    if k == 1 and stage == READY and graph.kind[o] == Op.RECV and graph.amount[o] > graph.rendezvous:
        return 2 * graph.partner[o] + DONE
    return -1


@inline
def _weight(graph: _Graph, costs: _Costs, event: int, k: int) -> float:
    """The time of the k-th edge of an event."""
    o, stage = event >> 1, event & 1
    if k >= _FIXED:
        return 0.0
    is_rendezvous = graph.amount[o] > graph.rendezvous
    other = graph.partner[o]
    if k == 1:
        return costs.consent[other] + costs.latency[other]
    if stage == DONE:
        return costs.hold[other] + (0.0 if is_rendezvous else costs.latency[o] - costs.leaving[o])
    if graph.kind[o] == Op.SEND:
        after = costs.request[o] + costs.consent[o] + costs.latency[o] if is_rendezvous else costs.leaving[o]
        return costs.hold[o] + after
    return costs.hold[o]


@inline
def _edges(graph: _Graph, event: int) -> int:
    """The number of edges of :func:`_edge`."""
    return _FIXED + graph.after[(event >> 1) + 1] - graph.after[event >> 1]


@device_function
def _sort(graph: _Graph, waits: Ints32, queue: Ints) -> int:
    """Kahn's algorithm: write events into ``queue``, each after all that it waits for; returns their number.

    waits: int32 [events], becomes the number of unmet dependencies. Events in a cycle, and events that wait for them,
    are not queued.
    """
    for event in range(len(waits)):
        for k in range(_edges(graph, event)):
            to = _edge(graph, event, k)
            if to >= 0:
                waits[to] += 1
    count = 0
    for event in range(len(waits)):
        if waits[event] == 0:
            queue[count] = event
            count += 1
    done = 0
    while done < count:
        event = queue[done]
        done += 1
        for k in range(_edges(graph, event)):
            to = _edge(graph, event, k)
            if to >= 0:
                waits[to] -= 1
                if waits[to] == 0:
                    queue[count] = to
                    count += 1
    return count


@device_function
def _find_blocked(graph: _Graph, waits: Ints32, awaited: Ints) -> int:
    """Set awaited[e] to an event that e waits for forever, int64 [events]; returns such an e, or -1."""
    last = -1
    for event in range(len(waits)):
        if waits[event] > 0:
            for k in range(_edges(graph, event)):
                to = _edge(graph, event, k)
                if to >= 0:
                    awaited[to] = event
                    last = to
    return last


@device_function
def _heads(graph: _Graph, costs: _Costs, queue: Ints, head: Floats) -> None:
    """Fill head, float64 [events], zeros, with the earliest time of every event."""
    for event in queue:
        for k in range(_edges(graph, event)):
            to = _edge(graph, event, k)
            if to >= 0:
                head[to] = max(head[to], head[event] + _weight(graph, costs, event, k))


@device_function
def _tails(graph: _Graph, costs: _Costs, queue: Ints, tail: Floats) -> None:
    """Fill tail, float64 [events], zeros, with the longest path from every event to the end."""
    for i in range(len(queue) - 1, -1, -1):
        event = queue[i]
        for k in range(_edges(graph, event)):
            to = _edge(graph, event, k)
            if to >= 0:
                tail[event] = max(tail[event], tail[to] + _weight(graph, costs, event, k))


@device_function
def _follow(graph: _Graph, costs: _Costs, event: int, tail: Floats) -> int:
    """The next event of a longest path to the end, -1 at the end."""
    for k in range(_edges(graph, event)):
        to = _edge(graph, event, k)
        if to >= 0 and tail[event] == tail[to] + _weight(graph, costs, event, k):
            return to
    return -1


def check_order(program: Program, rendezvous: int) -> None:
    """Raise ``ProgramError`` for a program with cyclic waits, and show the cycle.

    rendezvous: bytes above which a message waits for its receive.
    """
    _sorted(program, rendezvous)


def earliest(
    program: Program, rendezvous: int, hold: np.ndarray, latency: np.ndarray, request: np.ndarray, consent: np.ndarray,
    leaving: np.ndarray | None = None,
) -> Times:  # fmt: skip
    """The earliest times of all operations, and a critical path.

    No run is faster: contention for processors and channels only adds to these times. All times are in one unit.

    Parameters
    ----------
    program: the program.
    rendezvous: bytes above which a message waits for its receive.
    hold: float64 [operations], time for which an operation occupies its processor.
    latency: float64 [operations], of sends: time from joining the host's queue until delivery in an empty network;
        after a rendezvous, of the data.
    request, consent: float64 [operations], the same of RTS and CTS (messages above ``rendezvous`` bytes).
    leaving: float64 [operations], time from joining the queue until an eager send is done, at most ``latency``; None:
        no time.

    Returns
    -------
    The times.

    Raises
    ------
    ProgramError: the program has cyclic waits.
    """
    graph, queue = _sorted(program, rendezvous)
    leaving = scratch(program.operations, float) if leaving is None else leaving
    costs = _Costs(*(np.ascontiguousarray(cost, float) for cost in (hold, latency, request, consent, leaving)))
    head, tail = scratch(len(queue), float), scratch(len(queue), float)
    _heads(graph, costs, queue, head)
    _tails(graph, costs, queue, tail)
    path: list[int] = []
    event = int(np.argmax(tail)) if len(tail) else -1
    while event >= 0:
        if not path or path[-1] != event >> 1:
            path.append(event >> 1)
        event = _follow(graph, costs, event, tail)
    start, finish = head[READY::2], head[DONE::2]
    np.subtract(finish, costs.hold, out=start, where=program.kind == Op.RECV)
    makespan = float(finish.max(initial=0.0))
    return Times(start, finish, tail[DONE::2], np.array(path, np.int64), makespan)


def busiest(program: Program, hold: np.ndarray, times: Times) -> float:
    """A lower bound on the time of every run: the sequential work of one processor.

    No operation of a processor begins before the earliest of them can, and after the last of them follows at least the
    shortest of their tails.

    Parameters
    ----------
    program: the program.
    hold: float64 [operations], time for which an operation occupies its processor.
    times: from :func:`earliest`.

    Returns
    -------
    The time, in the unit of ``hold``.
    """
    return max((_busiest(program, hold, times, part) for part in program.blocks()), default=0.0)


def _busiest(program: Program, hold: np.ndarray, times: Times, part: slice) -> float:
    """The bound of :func:`busiest` for the processors of some ranks."""
    used = part.start + np.flatnonzero(hold[part] > 0)
    if not len(used):
        return 0.0
    processor = program.rank[used].astype(np.int64) * program.cpus + program.cpu[used]
    order = np.argsort(processor, kind="stable")
    used, first = used[order], np.flatnonzero(np.diff(processor[order], prepend=-1))
    begin = np.minimum.reduceat(times.start[used], first)
    end = np.minimum.reduceat(times.tail[used], first)
    return float((begin + np.add.reduceat(hold[used], first) + end).max())


def _sorted(program: Program, rendezvous: int) -> tuple[_Graph, np.ndarray]:
    graph = _Graph(
        program.kind, program.amount, program.partner, program.after, program.successor, rendezvous
    )  # fmt: skip
    events = 2 * program.operations
    waits, queue = scratch(events, np.int32), scratch(events, np.int64)
    if _sort(graph, waits, queue) < events:
        raise _cycle(program, graph, waits)
    return graph, queue


def _cycle(program: Program, graph: _Graph, waits: np.ndarray) -> ProgramError:
    awaited = scratch(len(waits), np.int64, fill=-1)
    event, seen = _find_blocked(graph, waits, awaited), set()
    while event not in seen:
        seen.add(event)
        event = int(awaited[event])
    first = event
    operations: list[int] = []
    while not operations or event != first:
        if not operations or operations[-1] != event >> 1:
            operations.append(event >> 1)
        event = int(awaited[event])
    if len(operations) > 1 and operations[0] == operations[-1]:
        operations.pop()
    shown = [_describe_operation(program, operation) for operation in operations[:SHOWN]]
    if len(operations) > SHOWN:
        shown.append(f"one of {len(operations) - SHOWN} more")
    text = ", which waits for ".join([*shown[1:], describe(program.start, operations[0])])
    return ProgramError(f"the program waits for itself: {shown[0]} waits for {text}", operations)


def _describe_operation(program: Program, operation: int) -> str:
    """An operation in words, with its kind."""
    what = describe(program.start, operation)
    kind, peer, amount = program.kind[operation], program.peer[operation], program.amount[operation]
    if kind == Op.SEND:
        return f"{what} (send of {amount} bytes to rank {peer}, tag {program.tag[operation]})"
    if kind == Op.RECV:
        return f"{what} (receive of {amount} bytes from rank {peer}, tag {program.tag[operation]})"
    return f"{what} (calculation)"
