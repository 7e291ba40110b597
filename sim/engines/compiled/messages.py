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
from flitlab.models.jit import inner, kernel
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import CREATED_PACKETS, DELIVERED_PACKETS
from flitlab.sim.engines.compiled.ranks import Ranks, arrived, left, make_ranks, next_event, receiver, sender, size

# Fields of a host's queue: its first and its last message (their sends; -1: none); what has joined it so far.
FIRST, LAST, PACKETS, FLITS = range(4)


class Lengths(NamedTuple):
    """How messages are cut (see :class:`flitlab.models.application.messages.Messages`)."""

    packet_bytes: int
    flit_bytes: int
    header_flits: int
    packet_flits: int
    whole: bool


class Program(NamedTuple):
    """What hosts run. Of a send's message, as far as its stage says:

    following: int64 [operations], the one behind it in its queue, -1 at the end. joined: int64 [operations], tick.
    unsent, missing: int64 [operations], packets that have not been sent, and that have not been delivered.
    host: int64 [ranks]. queue: int64 [hosts, 4], see above. active: int64 [1], last tick in which there was a packet.
    """

    ranks: Ranks
    lengths: Lengths
    host: np.ndarray
    queue: np.ndarray
    following: np.ndarray
    joined: np.ndarray
    unsent: np.ndarray
    missing: np.ndarray
    active: np.ndarray


def make_program(scenario: Scenario) -> Program | None:
    """A program before its first event. Raises ``ValueError`` if it has times too long to be counted."""
    workload = scenario.workload
    if workload is None:
        return None
    queue = np.zeros((scenario.topology.hosts, 4), np.int64)
    queue[:, [FIRST, LAST]] = -1
    sends = workload.program.operations
    following, joined, unsent, missing = (scratch(sends, np.int64, -1) for _ in range(4))
    return Program(
        make_ranks(workload), _lengths(workload.messages), workload.host, queue, following, joined, unsent, missing,
        np.zeros(1, np.int64),
    )  # fmt: skip


def _lengths(messages: Messages) -> Lengths:
    return Lengths(
        messages.packet_bytes, messages.flit_bytes, messages.header_flits, messages.packet_flits, messages.whole
    )


def packet_lengths(workload: Workload) -> tuple[int, int]:
    """Flits of the shortest packet and of the longest."""
    program, messages = workload.program, workload.messages
    shortest = _shortest(program.kind, program.amount, messages.rendezvous, _lengths(messages))
    return int(shortest), messages.packet_flits


@kernel
def _shortest(kind, amount, rendezvous, lengths):
    least = np.int64(lengths.packet_flits)
    for o in range(len(kind)):
        if kind[o] == SEND:
            least = min(least, _flits(lengths, amount[o], np.int64(1)))
            if amount[o] > rendezvous:
                least = min(least, _flits(lengths, np.int64(0), np.int64(1)))
    return least


@inner
def _flits(lengths, bytes_, unsent):
    """Flits of the next packet of a message of which so many packets are unsent."""
    return flits_of(
        bytes_, unsent, lengths.packet_bytes, lengths.flit_bytes, lengths.header_flits, lengths.packet_flits,
        lengths.whole,
    )  # fmt: skip


@inner
def first_in_queue(program, h):
    """The next packet of a host: (the send that its message belongs to, -1 if there is none; flits)."""
    send = program.queue[h, FIRST]
    if send < 0:
        return send, np.int64(0)
    return send, _flits(program.lengths, size(program.ranks, send), program.unsent[send])


@inner
def _append(program, h, send):
    """A message joins a queue at its end."""
    queue = program.queue[h]
    program.following[send] = -1
    if queue[FIRST] < 0:
        queue[FIRST] = send
    else:
        program.following[queue[LAST]] = send
    queue[LAST] = send


@inner
def cut(program, h):
    """The first message in a host's queue gives a packet, and goes to the end if it has more; the packet's target."""
    send = program.queue[h, FIRST]
    program.queue[h, FIRST] = program.following[send]
    program.unsent[send] -= 1
    if program.unsent[send] > 0:
        _append(program, h, send)
    return program.host[receiver(program.ranks, send)]


@inner
def join(program, send, tick):
    """A message, as far as its stage says, joins the queue of its host: (the host, packets)."""
    h = program.host[sender(program.ranks, send)]
    bytes_ = size(program.ranks, send)
    packets = packets_of(bytes_, program.lengths.packet_bytes)
    program.joined[send] = tick
    program.unsent[send] = packets
    program.missing[send] = packets
    _append(program, h, send)
    last = _flits(program.lengths, bytes_, np.int64(1))
    program.queue[h, PACKETS] += packets
    program.queue[h, FLITS] += (packets - 1) * program.lengths.packet_flits + last
    return h, packets


@inner
def leave(program, send, tick):
    """The tail of a packet of a send's message has left its host by ``tick``."""
    if program is None:
        return
    if program.unsent[send] == 0:
        left(program.ranks, np.int64(send), tick)


@inner
def deliver_part(program, send, tick):
    """A packet of a send's message has been delivered."""
    if program is None:
        return
    program.missing[send] -= 1
    if program.missing[send] == 0:
        arrived(program.ranks, np.int64(send), tick)


@inner
def next_tick(program, s, tick, until, rest):
    """The tick to be simulated next: that of the next event, if there has been no packet for ``rest`` ticks."""
    if program is None:
        return tick + 1
    scalars = s.tally.scalars
    if scalars[DELIVERED_PACKETS] < scalars[CREATED_PACKETS]:
        program.active[0] = tick
    if tick <= program.active[0] + rest:
        return tick + 1
    return max(tick + 1, min(until, next_event(program.ranks)))
