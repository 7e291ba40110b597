# SPDX-License-Identifier: Apache-2.0
"""Hosts that run a program: queues of messages, which are sent packet by packet.

A state's ``program`` is a :class:`Program`, or None where hosts draw their packets. Functions that differ take it as
their first argument: for None, Numba compiles only that branch.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import Messages, flits_of, packets_of
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints, scratch
from flitlab.models.jit import inline, kernel
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.ranks import (
    Ranks,
    make_ranks,
    next_event,
    receiver,
    record_arrival,
    record_sent,
    sender,
    size,
)

# Columns of Program.queue: first and last message (their sends; -1: none); packets and flits enqueued so far.
FIRST, LAST, PACKETS, FLITS = range(4)


class Lengths(NamedTuple):
    """Rules by which messages become packets (see :class:`flitlab.models.application.messages.Messages`)."""

    packet_bytes: int
    flit_bytes: int
    header_flits: int
    packet_flits: int
    whole: bool


class Program(NamedTuple):
    """The program of the hosts, and their queues of messages. A message is identified by its send.

    next_message: int64 [operations], the next one in the same queue, -1 at the end. enqueued_at: int64 [operations],
    tick. unsent, undelivered: int64 [operations], packets. ejected: int64 [operations], packets granted an ejection
    channel, of messages that a rank in another partition awaits. host: int64 [ranks]. queue: int64 [hosts, 4], see
    above. last_active: int64 [1], last tick with a packet in the network.
    """

    ranks: Ranks
    lengths: Lengths
    host: Ints
    queue: Ints
    next_message: Ints
    enqueued_at: Ints
    unsent: Ints
    undelivered: Ints
    ejected: Ints
    last_active: Ints


def make_program(scenario: Scenario) -> Program | None:
    """Make a program before its first event, or None where hosts draw their packets.

    Raises
    ------
    ValueError
        The program has times too long to be counted in ticks.
    """
    workload = scenario.work
    if not isinstance(workload, Workload):
        return None
    queue = np.zeros((scenario.topology.hosts, 4), np.int64)
    queue[:, [FIRST, LAST]] = -1
    sends = workload.program.operations
    return Program(
        ranks=make_ranks(workload),
        lengths=_lengths(workload.messages),
        host=workload.host,
        queue=queue,
        next_message=scratch(sends, np.int64, -1),
        enqueued_at=scratch(sends, np.int64, -1),
        unsent=scratch(sends, np.int64, -1),
        undelivered=scratch(sends, np.int64, -1),
        ejected=scratch(sends, np.int64),
        last_active=np.zeros(1, np.int64),
    )


def _lengths(messages: Messages) -> Lengths:
    """Collect the parameters that determine packet lengths."""
    return Lengths(
        packet_bytes=messages.packet_bytes,
        flit_bytes=messages.flit_bytes,
        header_flits=messages.header_flits,
        packet_flits=messages.packet_flits,
        whole=messages.whole,
    )


def packet_lengths(workload: Workload) -> tuple[int, int]:
    """Return the flits of the shortest and of the longest packet of a workload."""
    program, messages = workload.program, workload.messages
    shortest = _shortest(program.kind, program.amount, messages.rendezvous, _lengths(messages))
    return int(shortest), messages.packet_flits


@kernel
def _shortest(kind, amount, rendezvous, lengths):
    """Return the flits of the shortest packet of a program.

    kind, amount: int [operations], see :class:`~flitlab.models.application.program.Program`. rendezvous: bytes above
    which a message uses the rendezvous protocol.
    """
    shortest = np.int64(lengths.packet_flits)
    for operation in range(len(kind)):
        if kind[operation] == Op.SEND:
            shortest = min(shortest, _flits(lengths, amount[operation], np.int64(1)))
            if amount[operation] > rendezvous:
                shortest = min(shortest, _flits(lengths, np.int64(0), np.int64(1)))
    return shortest


@inline
def _flits(lengths, bytes_, unsent):
    """Return the flits of the next packet of a message with ``unsent`` unsent packets."""
    return flits_of(
        bytes_, unsent, lengths.packet_bytes, lengths.flit_bytes, lengths.header_flits, lengths.packet_flits,
        lengths.whole,
    )  # fmt: skip


@inline
def next_packet(program, host):
    """Return the next packet of a host: (send of its message, -1 if there is none; flits)."""
    send = program.queue[host, FIRST]
    if send < 0:
        return send, np.int64(0)
    return send, _flits(program.lengths, size(program.ranks, send), program.unsent[send])


@inline
def _append_message(program, host, send):
    """Append a message to a host's queue."""
    queue = program.queue[host]
    program.next_message[send] = -1
    if queue[FIRST] < 0:
        queue[FIRST] = send
    else:
        program.next_message[queue[LAST]] = send
    queue[LAST] = send


@inline
def take_packet(program, host):
    """Take a packet from the first message in a host's queue; an unfinished message goes to the end.

    Returns the destination host.
    """
    send = program.queue[host, FIRST]
    program.queue[host, FIRST] = program.next_message[send]
    program.unsent[send] -= 1
    if program.unsent[send] > 0:
        _append_message(program, host, send)
    return program.host[receiver(program.ranks, send)]


@inline
def enqueue_message(program, send, tick):
    """Append a send's message, in its present stage, to its host's queue.

    Parameters
    ----------
    program: the program.
    send: int64, its operation.
    tick: int64.

    Returns
    -------
    (host, packets), int64.
    """
    host = program.host[sender(program.ranks, send)]
    bytes_ = size(program.ranks, send)
    packets = packets_of(bytes_, program.lengths.packet_bytes)
    program.enqueued_at[send] = tick
    program.unsent[send] = packets
    program.undelivered[send] = packets
    _append_message(program, host, send)
    last = _flits(program.lengths, bytes_, np.int64(1))
    program.queue[host, PACKETS] += packets
    program.queue[host, FLITS] += (packets - 1) * program.lengths.packet_flits + last
    return host, packets


@inline
def record_injection(program, send, tick):
    """Record that the tail of a packet of a send's message leaves its host by ``tick``.

    Parameters
    ----------
    program: ``state.program``, or None.
    send: the operation.
    tick: int64.
    """
    if program is None:
        return
    if program.unsent[send] == 0:
        record_sent(program.ranks, np.int64(send), tick)


@inline
def record_delivery(program, send, tick):
    """Record that a packet of a send's message is delivered at ``tick``; with the last one the message has arrived.

    Called before the program's events of ``tick`` are processed
    (:func:`~flitlab.sim.engines.compiled.records.run_program`), among which is then the arrival of the message.

    Parameters
    ----------
    program: ``state.program``; None, where hosts draw their packets: nothing is recorded.
    send: integer, the operation that sends the message.
    tick: int64, at which the tail of the packet reaches its host.
    """
    if program is None:
        return
    program.undelivered[send] -= 1
    if program.undelivered[send] == 0:
        record_arrival(program.ranks, np.int64(send), tick)


@inline
def count_ejection(program, send):
    """Count a packet of a send's message granted an ejection channel, and tell whether it is the last."""
    program.ejected[send] += 1
    return program.ejected[send] == packets_of(size(program.ranks, send), program.lengths.packet_bytes)


@inline
def next_active_tick(program, state, tick, until, idle_ticks):
    """Return the next tick to simulate, at most ``until``.

    Parameters
    ----------
    program: ``state.program``.
    tick, until: int64.
    idle_ticks: int64; without a packet for so long, the run skips to the next event of the program.
    """
    if program is None:
        return tick + 1
    scalars = state.counters.scalars
    if scalars[Scalar.DELIVERED_PACKETS] < scalars[Scalar.CREATED_PACKETS]:
        program.last_active[0] = tick
    if tick <= program.last_active[0] + idle_ticks:
        return tick + 1
    return max(tick + 1, min(until, next_event(program.ranks)))
