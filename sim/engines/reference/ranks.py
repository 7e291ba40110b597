# SPDX-License-Identifier: Apache-2.0
"""Programs: the operations of ranks and the messages that they send (see docs/applications.md)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

import numpy as np
from simpy.events import EventPriority

from flitlab.models.application.messages import MessageStage, flits_of, packets_of, ticks_of
from flitlab.models.application.program import Op
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

    holder: the operation that holds, or last held, it.
    """

    free_at: int = 0
    holder: int = -1


class Ranks:
    """The operations of a program as events; an operation may wait for the events of others.

    phase: the phase of a tick for all these events. resolution: times, and the clock, are ticks / resolution. The lists
    have an entry for every operation. ready ... cause: see :class:`flitlab.sim.engines.base.Execution`. needs:
    dependencies not yet met. stage: of a send, the stage of its message. requested: of a send, whether its request has
    arrived.
    """

    def __init__(
        self, clock: Clock, workload: Workload, hosts: Sequence[MessageHost], phase: EventPriority = Phase.CREATION,
        resolution: int = 1,
    ):  # fmt: skip
        program, host = workload.program, workload.host.tolist()
        self.clock = clock
        self.phase = phase
        self.messages = workload.messages
        self.resolution = resolution
        self.unit = workload.messages.tick_ns / resolution
        self.overhead = workload.messages.overhead * resolution
        self.hosts = hosts
        self.host = [host[rank] for rank in program.rank.tolist()]
        self.rank, self.cpu = program.rank.tolist(), program.cpu.tolist()
        self.kind, self.amount, self.partner = program.kind.tolist(), program.amount.tolist(), program.partner.tolist()
        self.after, self.successor = program.after.tolist(), program.successor.tolist()
        count = program.operations
        self.needs = program.need.tolist()
        self.stage = [MessageStage.UNSENT] * count
        self.requested = [False] * count
        self.ready, self.begun, self.finished = [-1] * count, [-1] * count, [-1] * count
        self.queued, self.delivered, self.cause = [-1] * count, [-1] * count, [-1] * count
        self.unfinished = count
        self._waiting = [] if program.window is None else program.window.waiting.tolist()
        self._following = [] if program.window is None else program.window.following.tolist()
        self._processors: defaultdict[tuple[int, int], Processor] = defaultdict(Processor)
        self._events: list[tuple[int, int, int]] = []  # a heap: tick, operation, what happens to it
        self._handlers = {
            READY: self._be_ready, BEGUN: self._begin, QUEUED: self._queue, ARRIVED: self._arrive, DONE: self._finish
        }  # fmt: skip
        for operation, needs in enumerate(self.needs):
            if needs == 0:
                self._schedule(READY, operation, 0)

    def receive(self, message: Message) -> None:
        """Count the delivery of a packet of a message; the last one completes the message."""
        message.missing -= 1
        if message.missing == 0:
            self._schedule(ARRIVED, message.send, self.clock.now + self.messages.notice * self.resolution)

    def tail_sent(self, message: Message, tick: int) -> None:
        """Record the tick at which the last flit of a message leaves its host, which completes an eager send."""
        send = message.send
        if self.stage[send] == MessageStage.DATA and not self.messages.buffered and not self._is_confirmed(send):
            self._schedule(DONE, send, tick)

    def has_events(self) -> bool:
        """Whether an event of an operation is scheduled."""
        return bool(self._events)

    def execution(self) -> Execution:
        """Times and causes of the operations so far, copied."""
        times = (self.ready, self.begun, self.finished, self.queued, self.delivered, self.cause)
        return Execution(self.resolution, *(np.array(each, np.int64) for each in times))

    def _schedule(self, event: int, operation: int, tick: int) -> None:
        """Schedule an event of an operation."""
        heappush(self._events, (tick, operation, event))
        Alarm(self.clock, tick, self.phase, self._process_events)  # one too many finds nothing to do

    def _process_events(self, _: object) -> None:
        """Process all events of this tick, lowest operation first, events caused at this tick included."""
        now = self.clock.now
        while self._events and self._events[0][0] <= now:
            _, operation, event = heappop(self._events)
            self._handlers[event](operation, now)

    def _be_ready(self, operation: int, now: int) -> None:
        self.ready[operation] = now
        kind = self.kind[operation]
        if kind == Op.CALC:
            ticks = ticks_of(self.amount[operation], self.unit.numerator, self.unit.denominator)
            begin = self._claim_processor(operation, ticks, now)
            self._schedule(BEGUN, operation, begin)
            self._schedule(DONE, operation, begin + ticks)
        elif kind == Op.SEND:
            begin = self._claim_processor(operation, self.overhead, now)
            self._schedule(BEGUN, operation, begin)
            self._schedule(QUEUED, operation, begin + self.overhead)
        else:
            self._release(operation, Cause.STARTED, now)  # others see a receive start when it can take a message
            send = self.partner[operation]
            if self.stage[send] == MessageStage.DELIVERED:
                self._begin_receive(operation, now)
            elif self.requested[send]:
                self._begin_stage(send, MessageStage.DATA if self._is_eager(send) else MessageStage.CTS, now)

    def _begin(self, operation: int, now: int) -> None:
        self._release(operation, Cause.STARTED, now)

    def _queue(self, send: int, now: int) -> None:
        """Queue the message of a send whose processor has finished."""
        self.queued[send] = now
        if self._is_eager(send):
            if self.messages.await_receive and self.ready[self.partner[send]] < 0:
                self.requested[send] = True
            else:
                self._begin_stage(send, MessageStage.DATA, now)
            if self.messages.buffered or self.rank[send] == self.rank[self.partner[send]]:
                self._schedule(DONE, send, now)
        else:
            self._begin_stage(send, MessageStage.RTS, now)

    def _arrive(self, send: int, now: int) -> None:
        """Complete the current stage of a message."""
        receive = self.partner[send]
        receive_ready = self.ready[receive] >= 0
        if self.stage[send] == MessageStage.RTS:
            self.requested[send] = True
            if receive_ready:
                self._begin_stage(send, MessageStage.CTS, now)
        elif self.stage[send] == MessageStage.CTS:
            self._begin_stage(send, MessageStage.DATA, now)
        else:
            self.stage[send] = MessageStage.DELIVERED
            self.delivered[send] = now
            if self._is_confirmed(send):
                self._schedule(DONE, send, now)
            if receive_ready:
                self.cause[receive] = 4 * send + Cause.MESSAGE
                self._begin_receive(receive, now)

    def _finish(self, operation: int, now: int) -> None:
        self.finished[operation] = now
        self.unfinished -= 1
        self._release(operation, Cause.FINISHED, now)
        if self._waiting and self.kind[operation] == Op.SEND:
            self._open_window(operation, now)

    def _open_window(self, operation: int, now: int) -> None:
        """Release the next send of the rank that waits for a send of the rank to end."""
        waiting = self._waiting[self.rank[operation]]
        if waiting >= 0:
            self._waiting[self.rank[operation]] = self._following[waiting]
            self._meet(waiting, operation, Cause.FINISHED, now)

    def _is_eager(self, send: int) -> bool:
        return bool(self.amount[send] <= self.messages.rendezvous)

    def _is_confirmed(self, send: int) -> bool:
        """Whether a send to another rank completes with the delivery of its message."""
        own = self.rank[send] == self.rank[self.partner[send]]
        return not self._is_eager(send) or (self.messages.confirmed and not own)

    def _release(self, operation: int, edge: int, now: int) -> None:
        """Meet the dependencies on the end (FINISHED) or the start (STARTED) of an operation."""
        for entry in self.successor[self.after[operation] : self.after[operation + 1]]:
            waiting, early = divmod(entry, 2)
            if early == (edge == Cause.STARTED):
                self._meet(waiting, operation, edge, now)

    def _meet(self, waiting: int, operation: int, edge: int, now: int) -> None:
        """Meet a dependency of an operation, on the end or the start of another one."""
        self.needs[waiting] -= 1
        if self.needs[waiting] == 0:
            self.cause[waiting] = 4 * operation + edge
            self._schedule(READY, waiting, now)

    def _claim_processor(self, operation: int, ticks: int, now: int) -> int:
        """Return the tick from which an operation holds its processor for ``ticks``, after all earlier claims."""
        processor = self._processors[self.rank[operation], self.cpu[operation]]
        if processor.free_at > now:
            self.cause[operation] = 4 * processor.holder + Cause.PROCESSOR
        begin = self.begun[operation] = max(now, processor.free_at)
        processor.free_at = begin + ticks
        processor.holder = operation
        return begin

    def _begin_receive(self, receive: int, now: int) -> None:
        """Start a receive that is ready and whose message is delivered."""
        self._schedule(DONE, receive, self._claim_processor(receive, self.overhead, now) + self.overhead)

    def _begin_stage(self, send: int, stage: int, now: int) -> None:
        """Start the next stage of a message: a host sends."""
        self.stage[send] = stage
        ends = self.host[send], self.host[self.partner[send]]
        if self.rank[send] == self.rank[self.partner[send]]:
            self._schedule(ARRIVED, send, now + self.resolution)
            return
        source, destination = reversed(ends) if stage == MessageStage.CTS else ends
        size = self.amount[send] if stage == MessageStage.DATA else 0
        packets = packets_of(size, self.messages.packet_bytes)
        flits = (packets - 1) * self.messages.packet_flits + self.flits(size, 1)
        self.hosts[source].join(Message(send, source, destination, size, now, packets, packets, flits))

    def flits(self, size: int, unsent: int) -> int:
        """Flits of the next packet of a message with ``unsent`` unsent packets."""
        m = self.messages
        return flits_of(size, unsent, m.packet_bytes, m.flit_bytes, m.header_flits, m.packet_flits, m.whole)
