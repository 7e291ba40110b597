# SPDX-License-Identifier: Apache-2.0
"""Events of a program, the same in every compiled switching mode (see docs/applications.md).

A kernel calls :func:`process_events` in every tick with an event (:func:`next_event`), and then enqueues the messages
of the outbox at their hosts.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import MessageStage, ticks_of
from flitlab.models.application.program import Op, SendWindow
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Bools, Ints, Ints32, scratch
from flitlab.models.jit import inline, kernel
from flitlab.sim.engines.base import Cause, Execution

# Kinds of events, in their order within a tick.
OP_READY, OP_STARTED, SEND_QUEUED, MESSAGE_ARRIVED, OP_DONE = 0, 1, 2, 3, 4

_ON_START = 1
_NEVER = np.int64(1) << 62

# Entries of Ranks.totals.
EVENTS, ENDED, OUTBOX = 0, 1, 2


class Ranks(NamedTuple):
    """A program and its progress; times in ticks / ``resolution``.

    kind .. successor: see :class:`~flitlab.models.application.program.Program`. rank: int32 [operations]. numerator,
    denominator: nanoseconds of a time unit. unmet: int32 [operations], unmet dependencies. stage: int8 [operations], of
    a send's message. rts_received: bool [operations], of a send. ready .. cause: see
    :class:`~flitlab.sim.engines.base.Execution`. remote_partition: int64 [ranks]; the partition of the rank's host plus
    1, if it is another one, else 0. free_at, holder: int64 [ranks * cpus], when a processor is free, and the operation
    that held it last. event_time, event_code: a binary heap of events, ordered by time and 8 * operation + kind.
    outbox: int64 [operations], sends whose message, in its present stage, has to be enqueued. totals: see above.
    window: see :class:`~flitlab.models.application.program.SendWindow`; None where sends have no limit.
    """

    kind: np.ndarray
    amount: Ints
    partner: Ints
    cpu: np.ndarray
    after: Ints
    successor: Ints
    rank: Ints32
    cpus: int
    rendezvous: int
    buffered: bool
    confirmed: bool
    await_receive: bool
    overhead: int
    notice: int
    resolution: int
    numerator: int
    denominator: int
    unmet: Ints32
    stage: np.ndarray
    rts_received: Bools
    ready: Ints
    start: Ints
    finish: Ints
    queued: Ints
    delivered: Ints
    cause: Ints
    remote_partition: Ints
    free_at: Ints
    holder: Ints
    event_time: Ints
    event_code: Ints
    outbox: Ints
    totals: Ints
    window: SendWindow | None


def make_ranks(workload: Workload, resolution: int = 1) -> Ranks:
    """Make a program before its first event.

    Parameters
    ----------
    workload: program, placement and message parameters.
    resolution: units of time in a tick.

    Raises
    ------
    ValueError
        The program has times too long to be counted in ticks.
    """
    program, messages = workload.program, workload.messages
    unit = messages.tick_ns / resolution
    calculations = program.amount[program.kind == Op.CALC]
    if int(calculations.max(initial=0)) * unit.denominator >= _NEVER:
        raise ValueError("a calculation is too long to be counted in ticks")
    operations, processors = program.operations, program.ranks * program.cpus
    events = 3 * operations + 1  # an operation may have two to come, and a send one of its message
    ranks = Ranks(
        kind=program.kind,
        amount=program.amount,
        partner=program.partner,
        cpu=program.cpu,
        after=program.after,
        successor=program.successor,
        rank=program.rank,
        cpus=program.cpus,
        rendezvous=messages.rendezvous,
        buffered=messages.buffered,
        confirmed=messages.confirmed,
        await_receive=messages.await_receive,
        overhead=messages.overhead * resolution,
        notice=messages.notice * resolution,
        resolution=resolution,
        numerator=unit.numerator,
        denominator=unit.denominator,
        unmet=program.need.copy(),
        stage=scratch(operations, np.int8, MessageStage.UNSENT),
        rts_received=scratch(operations, np.bool_),
        ready=scratch(operations, np.int64, -1),
        start=scratch(operations, np.int64, -1),
        finish=scratch(operations, np.int64, -1),
        queued=scratch(operations, np.int64, -1),
        delivered=scratch(operations, np.int64, -1),
        cause=scratch(operations, np.int64, -1),
        remote_partition=np.zeros(program.ranks, np.int64),
        free_at=np.zeros(processors, np.int64),
        holder=np.full(processors, -1, np.int64),
        event_time=scratch(events, np.int64),
        event_code=scratch(events, np.int64),
        outbox=scratch(operations, np.int64),
        totals=np.zeros(3, np.int64),
        window=program.window and program.window._replace(waiting=program.window.waiting.copy()),
    )
    _push_initial(ranks)
    return ranks


def is_done(ranks: Ranks) -> bool:
    """Tell whether every operation is done."""
    return bool(ranks.totals[ENDED] == len(ranks.kind))


def has_events(ranks: Ranks) -> bool:
    """Tell whether an event is scheduled."""
    return bool(ranks.totals[EVENTS] > 0)


def execution_of(ranks: Ranks) -> Execution:
    """Copy the times of all operations so far."""
    return Execution(
        resolution=ranks.resolution,
        ready=_copy(ranks.ready),
        start=_copy(ranks.start),
        finish=_copy(ranks.finish),
        queued=_copy(ranks.queued),
        delivered=_copy(ranks.delivered),
        cause=_copy(ranks.cause),
    )


def _copy(array: Ints) -> Ints:
    """Copy an array into scratch memory."""
    copied = scratch(len(array), array.dtype)
    copied[:] = array
    return copied


@inline
def _push(ranks, time, event):
    """Push an event, 8 * operation + kind, onto the heap."""
    i = ranks.totals[EVENTS]
    ranks.totals[EVENTS] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if ranks.event_time[parent] < time or (ranks.event_time[parent] == time and ranks.event_code[parent] < event):
            break
        ranks.event_time[i], ranks.event_code[i] = ranks.event_time[parent], ranks.event_code[parent]
        i = parent
    ranks.event_time[i], ranks.event_code[i] = time, event


@inline
def _pop(ranks):
    """Pop the first event off the heap."""
    first = ranks.event_code[0]
    last = ranks.totals[EVENTS] - 1
    ranks.totals[EVENTS] = last
    time, event = ranks.event_time[last], ranks.event_code[last]
    i = np.int64(0)
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        sibling = child + 1
        if sibling < last and (
            ranks.event_time[sibling] < ranks.event_time[child]
            or (
                ranks.event_time[sibling] == ranks.event_time[child]
                and ranks.event_code[sibling] < ranks.event_code[child]
            )
        ):
            child = sibling
        if time < ranks.event_time[child] or (time == ranks.event_time[child] and event < ranks.event_code[child]):
            break
        ranks.event_time[i], ranks.event_code[i] = ranks.event_time[child], ranks.event_code[child]
        i = child
    ranks.event_time[i], ranks.event_code[i] = time, event
    return first


def partition_ranks(ranks: Ranks, partition_of_rank: Ints, partitions: int) -> list[Ranks]:
    """Partition a program before its first event.

    The partitions share the arrays whose entries belong to one rank, or to a message that is in one partition at a
    time.

    Parameters
    ----------
    ranks: the program.
    partition_of_rank: int64 [ranks], the partition of each rank's host.
    partitions: how many.
    """
    divided_ranks = []
    for partition in range(partitions):
        own_ranks = ranks._replace(
            remote_partition=np.where(partition_of_rank == partition, 0, partition_of_rank + 1),
            event_time=scratch(len(ranks.event_time), np.int64),
            event_code=scratch(len(ranks.event_code), np.int64),
            outbox=scratch(len(ranks.outbox), np.int64),
            totals=np.zeros_like(ranks.totals),
        )
        _push_initial(own_ranks)
        divided_ranks.append(own_ranks)
    return divided_ranks


@kernel
def _push_initial(ranks):
    """Push the operations without dependencies of the ranks in this partition."""
    for operation in range(len(ranks.unmet)):
        if ranks.unmet[operation] == 0 and ranks.remote_partition[ranks.rank[operation]] == 0:
            _push(ranks, 0, 8 * operation + OP_READY)


@inline
def _satisfy_dependents(ranks, operation, dependency, now):
    """Count down the dependents of an operation on its end (dependency 0) or its start (dependency 1)."""
    for edge in range(ranks.after[operation], ranks.after[operation + 1]):
        entry = ranks.successor[edge]
        if entry & _ON_START == dependency:
            waiting = entry >> 1
            ranks.unmet[waiting] -= 1
            if ranks.unmet[waiting] == 0:
                ranks.cause[waiting] = 4 * operation + (Cause.STARTED if dependency else Cause.FINISHED)
                _push(ranks, now, 8 * waiting + OP_READY)


@inline
def _open_window(window, ranks, operation, now):
    """Release the next send of a rank that waits for a send of the rank to end; operation has ended.

    window: ``ranks.window``.
    """
    if window is None:
        return
    if ranks.kind[operation] != Op.SEND:
        return
    waiting = window.waiting[ranks.rank[operation]]
    if waiting < 0:
        return
    window.waiting[ranks.rank[operation]] = window.following[waiting]
    ranks.unmet[waiting] -= 1
    if ranks.unmet[waiting] == 0:
        ranks.cause[waiting] = 4 * operation + Cause.FINISHED
        _push(ranks, now, 8 * waiting + OP_READY)


@inline
def _occupy_processor(ranks, operation, duration, now):
    """Give an operation its processor for ``duration``, as soon as that is free; returns its start."""
    processor = np.int64(ranks.rank[operation]) * ranks.cpus + ranks.cpu[operation]
    start = now
    if ranks.free_at[processor] > now:
        start = ranks.free_at[processor]
        ranks.cause[operation] = 4 * ranks.holder[processor] + Cause.PROCESSOR
    ranks.free_at[processor] = start + duration
    ranks.holder[processor] = operation
    ranks.start[operation] = start
    return start


@inline
def _receive_message(ranks, operation, now):
    """Let a ready receive, whose message has arrived, take the message."""
    _push(ranks, _occupy_processor(ranks, operation, ranks.overhead, now) + ranks.overhead, 8 * operation + OP_DONE)


@inline
def _enqueue_message(ranks, operation, now):
    """Put the message of a send, in its present stage, into the outbox; between ranks of one host it arrives."""
    if ranks.rank[operation] == ranks.rank[ranks.partner[operation]]:
        _push(ranks, now + ranks.resolution, 8 * operation + MESSAGE_ARRIVED)
    else:
        ranks.outbox[ranks.totals[OUTBOX]] = operation
        ranks.totals[OUTBOX] += 1


@inline
def _answer_request(ranks, send, now):
    """Let a ready receive answer a send: with a clear-to-send; an eager message, which awaits it, leaves at once."""
    ranks.stage[send] = MessageStage.CTS if ranks.amount[send] > ranks.rendezvous else MessageStage.DATA
    _enqueue_message(ranks, send, now)


@inline
def _ready(ranks, operation, now):
    """Start an operation whose dependencies are met."""
    ranks.ready[operation] = now
    if ranks.kind[operation] == Op.RECV:
        _satisfy_dependents(ranks, operation, 1, now)
        send = ranks.partner[operation]
        if ranks.stage[send] == MessageStage.DELIVERED:
            _receive_message(ranks, operation, now)
        elif ranks.stage[send] == MessageStage.RTS and ranks.rts_received[send]:
            _answer_request(ranks, send, now)
        return
    duration = ranks.overhead
    if ranks.kind[operation] == Op.CALC:
        duration = ticks_of(ranks.amount[operation], ranks.numerator, ranks.denominator)
    start = _occupy_processor(ranks, operation, duration, now)
    _push(ranks, start, 8 * operation + OP_STARTED)
    _push(ranks, start + duration, 8 * operation + (SEND_QUEUED if ranks.kind[operation] == Op.SEND else OP_DONE))


@inline
def _queued(ranks, operation, now):
    """Hand over the message of a send after its processor time."""
    ranks.queued[operation] = now
    if ranks.amount[operation] > ranks.rendezvous:
        ranks.stage[operation] = MessageStage.RTS
    else:
        ranks.stage[operation] = MessageStage.DATA
        if ranks.buffered or ranks.rank[operation] == ranks.rank[ranks.partner[operation]]:
            _push(ranks, now, 8 * operation + OP_DONE)
        if ranks.await_receive and ranks.ready[ranks.partner[operation]] < 0:
            ranks.stage[operation] = MessageStage.RTS
            ranks.rts_received[operation] = True
            return
    _enqueue_message(ranks, operation, now)


@inline
def _is_confirmed(ranks, send):
    """Tell whether a send completes when its message is delivered."""
    if ranks.amount[send] > ranks.rendezvous:
        return True
    return ranks.confirmed and ranks.rank[send] != ranks.rank[ranks.partner[send]]


@inline
def _arrived(ranks, operation, now):
    """Continue a send whose message, in its present stage, has arrived."""
    receive = ranks.partner[operation]
    if ranks.stage[operation] == MessageStage.RTS:
        ranks.rts_received[operation] = True
        if ranks.ready[receive] >= 0:
            _answer_request(ranks, operation, now)
    elif ranks.stage[operation] == MessageStage.CTS:
        ranks.stage[operation] = MessageStage.DATA
        _enqueue_message(ranks, operation, now)
    else:
        ranks.stage[operation] = MessageStage.DELIVERED
        ranks.delivered[operation] = now
        if _is_confirmed(ranks, operation) and ranks.remote_partition[ranks.rank[operation]] == 0:
            _push(ranks, now, 8 * operation + OP_DONE)
        if ranks.ready[receive] >= 0:
            ranks.cause[receive] = 4 * operation + Cause.MESSAGE
            _receive_message(ranks, receive, now)


@inline
def record_arrival(ranks, send, now):
    """Record the delivery of all packets of a send's message, in its present stage.

    Called before :func:`process_events` of ``now``.

    Parameters
    ----------
    ranks: the program.
    send: int64, its operation.
    now: int64, in ticks / ``resolution``.
    """
    _push(ranks, now + ranks.notice, 8 * send + MESSAGE_ARRIVED)


@inline
def record_sent(ranks, send, time):
    """Record that the last flit of a send's message, in its present stage, leaves its host by ``time``.

    Parameters
    ----------
    ranks: the program.
    send: int64, its operation.
    time: int64, in ticks / ``resolution``.
    """
    if ranks.stage[send] == MessageStage.DATA and not ranks.buffered and not _is_confirmed(ranks, send):
        _push(ranks, time, 8 * send + OP_DONE)


@inline
def awaiting_partition(ranks, send):
    """Return the partition, plus 1, of a rank that awaits delivery of a message; 0 if none in another does."""
    if ranks.stage[send] == MessageStage.DATA and _is_confirmed(ranks, send):
        return ranks.remote_partition[ranks.rank[send]]
    return np.int64(0)


@inline
def record_remote_delivery(ranks, send, time):
    """Record that the message of a send will have been delivered, at ``time``, in another partition.

    Parameters
    ----------
    ranks: the program.
    send: int64, its operation.
    time: int64, in ticks / ``resolution``.
    """
    _push(ranks, time, 8 * send + OP_DONE)


@inline
def next_event(ranks):
    """Return the time of the next event; far in the future if there is none."""
    return ranks.event_time[0] if ranks.totals[EVENTS] > 0 else _NEVER


@inline
def process_events(ranks, now):
    """Process the events of ``now``; messages to be enqueued are then in the outbox, in order.

    Returns the number of events. The kernel empties the outbox by setting ``totals[OUTBOX]`` to 0.
    """
    events = 0
    while ranks.totals[EVENTS] > 0 and ranks.event_time[0] <= now:
        event = _pop(ranks)
        operation, kind = event >> 3, event & 7
        events += 1
        if kind == OP_READY:
            _ready(ranks, operation, now)
        elif kind == OP_STARTED:
            _satisfy_dependents(ranks, operation, 1, now)
        elif kind == SEND_QUEUED:
            _queued(ranks, operation, now)
        elif kind == MESSAGE_ARRIVED:
            _arrived(ranks, operation, now)
        else:
            ranks.finish[operation] = now
            ranks.totals[ENDED] += 1
            _satisfy_dependents(ranks, operation, 0, now)
            _open_window(ranks.window, ranks, operation, now)
    return events


@inline
def sender(ranks, send):
    """Return the rank that sends a send's message in its present stage: a clear-to-send comes from the receiver."""
    return ranks.rank[ranks.partner[send]] if ranks.stage[send] == MessageStage.CTS else ranks.rank[send]


@inline
def receiver(ranks, send):
    """Return the rank that receives a send's message in its present stage."""
    return ranks.rank[send] if ranks.stage[send] == MessageStage.CTS else ranks.rank[ranks.partner[send]]


@inline
def size(ranks, send):
    """Return the bytes of a send's message in its present stage."""
    return ranks.amount[send] if ranks.stage[send] == MessageStage.DATA else np.int64(0)


@inline
def next_program_tick(program, until):
    """Return the tick of a program's next event, at most ``until``; program: has ``ranks``, or is None."""
    return until if program is None else min(next_event(program.ranks), until)
