# SPDX-License-Identifier: Apache-2.0
"""Programs: the operations of ranks and the messages that they send (see docs/applications.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import Protocol

import numpy as np
from simpy.events import EventPriority

from flitlab.models.application.messages import MessageStage, flits_of, packets_of, ticks_of
from flitlab.models.application.program import Op, Program
from flitlab.models.application.workload import Workload
from flitlab.sim.engines.base import Cause, Execution
from flitlab.sim.engines.reference.clock import Alarm, Clock, Phase

# What happens to an operation, in this order if it is in the same tick.
READY, BEGUN, QUEUED, ARRIVED, DONE = range(5)


@dataclass(slots=True, eq=False)
class Message:
    """A message of a send: its data or, before them, a request to send (RTS) or the consent to it (CTS).

    send: the operation. source, destination: hosts. size: bytes. joined: tick at which it joined the queue of its host.
    unsent, missing: packets not yet sent, and not yet delivered. flits: of all packets.
    """

    send: int
    source: int
    destination: int
    size: int
    joined: int
    unsent: int
    missing: int
    flits: int


class MessageHost(Protocol):
    """An object that sends messages: a host, or all hosts in one (``flow``)."""

    def join(self, message: Message) -> None:
        """Put a message into the queue of its source host."""


@dataclass(slots=True)
class Processor:
    """A processor of a rank; free_at: tick from which it is free.

    holder: the number of the operation that holds, or last held, it.
    """

    rank: int
    free_at: int = 0
    holder: int = -1


@dataclass(slots=True, eq=False)
class Operation:
    """An operation of a program.

    kind, amount: as in :class:`~flitlab.models.application.program.Program`. partner: the receive of a send, and the
    send of a receive. successors: the operations that wait for it, and whether they wait for its start only. needs:
    dependencies not yet met. stage: of a send, the stage of its message. requested: of a send, whether its request has
    arrived. ready ... cause: see :class:`flitlab.sim.engines.base.Execution`.
    """

    number: int
    kind: int
    amount: int
    processor: Processor
    needs: int
    partner: "Operation" = field(init=False)
    successors: "list[tuple[Operation, bool]]" = field(init=False)
    stage: int = MessageStage.UNSENT
    requested: bool = False
    ready: int = -1
    begun: int = -1
    finished: int = -1
    queued: int = -1
    delivered: int = -1
    cause: int = -1

    @property
    def stays_local(self) -> bool:
        """Whether the message of a send is for its own rank."""
        return self.processor.rank == self.partner.processor.rank


def make_operations(program: Program) -> list[Operation]:
    """The operations of a program, none of which is ready."""
    processors: dict[tuple[int, int], Processor] = {}
    operations = []
    columns = (program.kind, program.amount, program.rank, program.cpu, program.need)
    for number, (kind, amount, rank, cpu, need) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        processor = processors.setdefault((rank, cpu), Processor(rank))
        operations.append(Operation(number, kind, amount, processor, need))
    after, successor = program.after.tolist(), program.successor.tolist()
    for operation, partner, (first, end) in zip(operations, program.partner.tolist(), pairwise(after), strict=True):
        if partner >= 0:
            operation.partner = operations[partner]
        operation.successors = [(operations[entry // 2], entry % 2 == 1) for entry in successor[first:end]]
    return operations


class Ranks:
    """The operations of a program as events; an operation may wait for the events of others.

    phase: the phase of a tick for all these events. resolution: times, and the clock, are ticks / resolution.
    operations: by number. unfinished: their number.
    """

    def __init__(
        self, clock: Clock, workload: Workload, hosts: Sequence[MessageHost], phase: EventPriority = Phase.CREATION,
        resolution: int = 1,
    ):  # fmt: skip
        program = workload.program
        self.clock = clock
        self.phase = phase
        self.messages = workload.messages
        self.resolution = resolution
        self.unit = workload.messages.tick_ns / resolution
        self.overhead = workload.messages.overhead * resolution
        self.hosts = hosts
        self.host = workload.host.tolist()
        self.operations = make_operations(program)
        self.unfinished = len(self.operations)
        self._waiting = [] if program.window is None else program.window.waiting.tolist()
        self._following = [] if program.window is None else program.window.following.tolist()
        self._events: list[tuple[int, int, int]] = []  # a heap: tick, operation, what happens to it
        self._handlers = {
            READY: self._be_ready, BEGUN: self._begin, QUEUED: self._queue, ARRIVED: self._arrive, DONE: self._finish
        }  # fmt: skip
        for operation in self.operations:
            if operation.needs == 0:
                self._schedule(READY, operation, 0)

    def stage(self, message: Message) -> int:
        """The MessageStage of the send of a message."""
        return self.operations[message.send].stage

    def receive(self, message: Message) -> None:
        """Count the delivery of a packet of a message; the last one completes the message."""
        message.missing -= 1
        if message.missing == 0:
            arrives = self.clock.now + self.messages.notice * self.resolution
            self._schedule(ARRIVED, self.operations[message.send], arrives)

    def tail_sent(self, message: Message, tick: int) -> None:
        """Record the tick at which the last flit of a message leaves its host, which completes an eager send."""
        send = self.operations[message.send]
        if send.stage == MessageStage.DATA and not self.messages.buffered and not self._is_confirmed(send):
            self._schedule(DONE, send, tick)

    def has_events(self) -> bool:
        """Whether an event of an operation is scheduled."""
        return bool(self._events)

    def execution(self) -> Execution:
        """Times and causes of the operations so far, copied."""
        columns = "ready", "begun", "finished", "queued", "delivered", "cause"
        times = (map(attrgetter(column), self.operations) for column in columns)
        return Execution(self.resolution, *(np.fromiter(each, np.int64) for each in times))

    def _schedule(self, event: int, operation: Operation, tick: int) -> None:
        """Schedule an event of an operation."""
        heappush(self._events, (tick, operation.number, event))
        Alarm(self.clock, tick, self.phase, self._process_events)  # one too many finds nothing to do

    def _process_events(self, _: object) -> None:
        """Process all events of this tick, lowest operation first, events caused at this tick included."""
        now = self.clock.now
        while self._events and self._events[0][0] <= now:
            _, number, event = heappop(self._events)
            self._handlers[event](self.operations[number], now)

    def _be_ready(self, operation: Operation, now: int) -> None:
        operation.ready = now
        if operation.kind == Op.CALC:
            ticks = ticks_of(operation.amount, self.unit.numerator, self.unit.denominator)
            begin = self._claim_processor(operation, ticks, now)
            self._schedule(BEGUN, operation, begin)
            self._schedule(DONE, operation, begin + ticks)
        elif operation.kind == Op.SEND:
            begin = self._claim_processor(operation, self.overhead, now)
            self._schedule(BEGUN, operation, begin)
            self._schedule(QUEUED, operation, begin + self.overhead)
        else:
            self._release(operation, Cause.STARTED, now)  # others see a receive start when it can take a message
            send = operation.partner
            if send.stage == MessageStage.DELIVERED:
                self._begin_receive(operation, now)
            elif send.requested:
                self._begin_stage(send, MessageStage.DATA if self._is_eager(send) else MessageStage.CTS, now)

    def _begin(self, operation: Operation, now: int) -> None:
        self._release(operation, Cause.STARTED, now)

    def _queue(self, send: Operation, now: int) -> None:
        """Queue the message of a send whose processor has finished."""
        send.queued = now
        if self._is_eager(send):
            if self.messages.await_receive and send.partner.ready < 0:
                send.requested = True
            else:
                self._begin_stage(send, MessageStage.DATA, now)
            if self.messages.buffered or send.stays_local:
                self._schedule(DONE, send, now)
        else:
            self._begin_stage(send, MessageStage.RTS, now)

    def _arrive(self, send: Operation, now: int) -> None:
        """Complete the current stage of a message."""
        receive = send.partner
        receive_ready = receive.ready >= 0
        if send.stage == MessageStage.RTS:
            send.requested = True
            if receive_ready:
                self._begin_stage(send, MessageStage.CTS, now)
        elif send.stage == MessageStage.CTS:
            self._begin_stage(send, MessageStage.DATA, now)
        else:
            send.stage = MessageStage.DELIVERED
            send.delivered = now
            if self._is_confirmed(send):
                self._schedule(DONE, send, now)
            if receive_ready:
                receive.cause = 4 * send.number + Cause.MESSAGE
                self._begin_receive(receive, now)

    def _finish(self, operation: Operation, now: int) -> None:
        operation.finished = now
        self.unfinished -= 1
        self._release(operation, Cause.FINISHED, now)
        if self._waiting and operation.kind == Op.SEND:
            self._open_window(operation, now)

    def _open_window(self, operation: Operation, now: int) -> None:
        """Release the next send of the rank that waits for a send of the rank to end."""
        rank = operation.processor.rank
        waiting = self._waiting[rank]
        if waiting >= 0:
            self._waiting[rank] = self._following[waiting]
            self._meet(self.operations[waiting], operation, Cause.FINISHED, now)

    def _is_eager(self, send: Operation) -> bool:
        return bool(send.amount <= self.messages.rendezvous)

    def _is_confirmed(self, send: Operation) -> bool:
        """Whether a send to another rank completes with the delivery of its message."""
        return not self._is_eager(send) or (self.messages.confirmed and not send.stays_local)

    def _release(self, operation: Operation, edge: int, now: int) -> None:
        """Meet the dependencies on the end (FINISHED) or the start (STARTED) of an operation."""
        for waiting, early in operation.successors:
            if early == (edge == Cause.STARTED):
                self._meet(waiting, operation, edge, now)

    def _meet(self, waiting: Operation, operation: Operation, edge: int, now: int) -> None:
        """Meet a dependency of an operation, on the end or the start of another one."""
        waiting.needs -= 1
        if waiting.needs == 0:
            waiting.cause = 4 * operation.number + edge
            self._schedule(READY, waiting, now)

    def _claim_processor(self, operation: Operation, ticks: int, now: int) -> int:
        """Return the tick from which an operation holds its processor for ``ticks``, after all earlier claims."""
        processor = operation.processor
        if processor.free_at > now:
            operation.cause = 4 * processor.holder + Cause.PROCESSOR
        begin = operation.begun = max(now, processor.free_at)
        processor.free_at = begin + ticks
        processor.holder = operation.number
        return begin

    def _begin_receive(self, receive: Operation, now: int) -> None:
        """Start a receive that is ready and whose message is delivered."""
        self._schedule(DONE, receive, self._claim_processor(receive, self.overhead, now) + self.overhead)

    def _begin_stage(self, send: Operation, stage: int, now: int) -> None:
        """Start the next stage of a message: a host sends."""
        send.stage = stage
        if send.stays_local:
            self._schedule(ARRIVED, send, now + self.resolution)
            return
        ends = self.host[send.processor.rank], self.host[send.partner.processor.rank]
        source, destination = reversed(ends) if stage == MessageStage.CTS else ends
        size = send.amount if stage == MessageStage.DATA else 0
        packets = packets_of(size, self.messages.packet_bytes)
        flits = (packets - 1) * self.messages.packet_flits + self.flits(size, 1)
        self.hosts[source].join(Message(send.number, source, destination, size, now, packets, packets, flits))

    def flits(self, size: int, unsent: int) -> int:
        """Flits of the next packet of a message with ``unsent`` unsent packets."""
        m = self.messages
        return flits_of(size, unsent, m.packet_bytes, m.flit_bytes, m.header_flits, m.packet_flits, m.whole)
