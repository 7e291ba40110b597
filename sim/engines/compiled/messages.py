# SPDX-License-Identifier: Apache-2.0
"""Hosts that run a program: queues of messages, which are cut into packets.

A state's ``program`` is a :class:`Program`, or None where hosts draw their packets. Functions that differ take it as
their first argument: where it is None, Numba compiles only the branch for that.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import Messages, flits_of, packets_of
from flitlab.models.application.program import SEND
from flitlab.models.application.scratch import scratch
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, kernel
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import CREATED_PACKETS, DELIVERED_PACKETS
from flitlab.sim.engines.compiled.ranks import Ranks, arrived, left, make_ranks, next_event, receiver, sender, size

# Fields of a host's queue: its first and its last message (their sends; -1: none); what has joined it so far.
FIRST, LAST, PACKETS, FLITS = range(4)


class Lengths(NamedTuple):
    """The rules by which messages are cut into packets (see :class:`flitlab.models.application.messages.Messages`)."""

    packet_bytes: int
    flit_bytes: int
    header_flits: int
    packet_flits: int
    whole: bool


class Program(NamedTuple):
    """The program that hosts run, and the messages in their queues, each called by the send that it belongs to.

    A message is what the stage of its send says. following: int64 [operations], the one behind it in its queue, -1 at
    the end. joined: int64 [operations], tick. unsent, missing: int64 [operations], packets that have not been sent, and
    that have not been delivered. ejected: int64 [operations], packets that have been granted the way to their host, of
    messages for which a rank in another region waits. host: int64 [ranks]. queue: int64 [hosts, 4], see above. active:
    int64 [1], last tick in which there was a packet.
    """

    ranks: Ranks
    lengths: Lengths
    host: Ints
    queue: Ints
    following: Ints
    joined: Ints
    unsent: Ints
    missing: Ints
    ejected: Ints
    active: Ints


def make_program(scenario: Scenario) -> Program | None:
    """Make a program before its first event, or None where hosts draw their packets.

    Raises ``ValueError`` if it has times too long to be counted.
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
        following=scratch(sends, np.int64, -1),
        joined=scratch(sends, np.int64, -1),
        unsent=scratch(sends, np.int64, -1),
        missing=scratch(sends, np.int64, -1),
        ejected=scratch(sends, np.int64),
        active=np.zeros(1, np.int64),
    )


def _lengths(messages: Messages) -> Lengths:
    """Collect what decides on the lengths of packets."""
    return Lengths(
        packet_bytes=messages.packet_bytes,
        flit_bytes=messages.flit_bytes,
        header_flits=messages.header_flits,
        packet_flits=messages.packet_flits,
        whole=messages.whole,
    )


def packet_lengths(workload: Workload) -> tuple[int, int]:
    """Find the flits of the shortest packet of a workload and of the longest."""
    program, messages = workload.program, workload.messages
    shortest = _shortest(program.kind, program.amount, messages.rendezvous, _lengths(messages))
    return int(shortest), messages.packet_flits


@kernel
def _shortest(kind, amount, rendezvous, lengths):
    """Find the flits of the shortest packet of a program.

    kind, amount: int [operations], see :class:`~flitlab.models.application.program.Program`. rendezvous: bytes above
    which a message asks first.
    """
    least = np.int64(lengths.packet_flits)
    for operation in range(len(kind)):
        if kind[operation] == SEND:
            least = min(least, _flits(lengths, amount[operation], np.int64(1)))
            if amount[operation] > rendezvous:
                least = min(least, _flits(lengths, np.int64(0), np.int64(1)))
    return least


@inline
def _flits(lengths, bytes_, unsent):
    """Count the flits of the next packet of a message of which ``unsent`` packets are unsent."""
    return flits_of(
        bytes_, unsent, lengths.packet_bytes, lengths.flit_bytes, lengths.header_flits, lengths.packet_flits,
        lengths.whole,
    )  # fmt: skip


@inline
def first_in_queue(program, host):
    """Look at the next packet of a host: (the send that its message belongs to, -1 if there is none; flits)."""
    send = program.queue[host, FIRST]
    if send < 0:
        return send, np.int64(0)
    return send, _flits(program.lengths, size(program.ranks, send), program.unsent[send])


@inline
def _append(program, host, send):
    """Put a message at the end of a host's queue."""
    queue = program.queue[host]
    program.following[send] = -1
    if queue[FIRST] < 0:
        queue[FIRST] = send
    else:
        program.following[queue[LAST]] = send
    queue[LAST] = send


@inline
def cut(program, host):
    """Take a packet from the first message in a host's queue, which goes to the end if it has more.

    Returns the host that the packet goes to.
    """
    send = program.queue[host, FIRST]
    program.queue[host, FIRST] = program.following[send]
    program.unsent[send] -= 1
    if program.unsent[send] > 0:
        _append(program, host, send)
    return program.host[receiver(program.ranks, send)]


@inline
def join(program, send, tick):
    """Put a send's message, as far as its stage says, into the queue of its host: (the host, packets)."""
    host = program.host[sender(program.ranks, send)]
    bytes_ = size(program.ranks, send)
    packets = packets_of(bytes_, program.lengths.packet_bytes)
    program.joined[send] = tick
    program.unsent[send] = packets
    program.missing[send] = packets
    _append(program, host, send)
    last = _flits(program.lengths, bytes_, np.int64(1))
    program.queue[host, PACKETS] += packets
    program.queue[host, FLITS] += (packets - 1) * program.lengths.packet_flits + last
    return host, packets


@inline
def leave(program, send, tick):
    """Note that the tail of a packet of a send's message has left its host by ``tick``."""
    if program is None:
        return
    if program.unsent[send] == 0:
        left(program.ranks, np.int64(send), tick)


@inline
def deliver_part(program, send, tick):
    """Note that a packet of a send's message has been delivered at ``tick``."""
    if program is None:
        return
    program.missing[send] -= 1
    if program.missing[send] == 0:
        arrived(program.ranks, np.int64(send), tick)


@inline
def last_ejected(program, send):
    """Count a packet of a send's message that has been granted the way to its host; whether it is the last."""
    program.ejected[send] += 1
    return program.ejected[send] == packets_of(size(program.ranks, send), program.lengths.packet_bytes)


@inline
def next_tick(program, state, tick, until, rest):
    """Find the tick to be simulated next, ``until`` at most.

    It is that of the next event if there has been no packet for ``rest`` ticks, and else the next one. program:
    ``state.program``.
    """
    if program is None:
        return tick + 1
    scalars = state.tally.scalars
    if scalars[DELIVERED_PACKETS] < scalars[CREATED_PACKETS]:
        program.active[0] = tick
    if tick <= program.active[0] + rest:
        return tick + 1
    return max(tick + 1, min(until, next_event(program.ranks)))
