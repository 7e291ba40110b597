# SPDX-License-Identifier: Apache-2.0
"""Messages of a program on its connections: their packets, and their completion.

A connection has the packets of its messages one after another, and its subflows take the next one whenever their
windows allow. Each subflow hence carries its packets in order; a message is delivered, with all before it, when every
subflow has delivered all that it had taken when the last packet of the message was taken.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import packets_of
from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.transport.session import Session
from flitlab.sim.engines.compiled.ranks import Ranks, make_ranks, record_arrival, record_sent, size

_NONE = np.int64(-1)


class DatagramProgram(NamedTuple):
    """A program, and its messages in the order in which they joined each connection. A send identifies its message.

    forth, back: see :class:`~flitlab.models.transport.messages.Connections`. end: int64 [operations], packets of the
    connection up to the end of the message. sent_bound: int64 [operations, subflows of a connection], packets that its
    subflows had taken when the last one of the message was. next_message: int64 [operations]. enqueued_packets: int64
    [connections], packets of all messages so far. next_to_send, next_to_deliver, last: int64 [connections], the first
    message with packets not taken, the first one not delivered, and the last one. busy_ticks: int64 [links], service
    time of all accepted packets.
    """

    ranks: Ranks
    packet_bytes: int
    forth: Ints
    back: Ints
    end: Ints
    sent_bound: Ints
    next_message: Ints
    enqueued_packets: Ints
    next_to_send: Ints
    next_to_deliver: Ints
    last: Ints
    busy_ticks: Ints


def make_datagram_program(session: Session) -> DatagramProgram | None:
    """Make the program of a session before its first event; None where there is none."""
    program = session.program
    if program is None:
        return None
    operations, flows = program.workload.program.operations, len(program.flows.source)
    none = np.full(flows, _NONE)
    return DatagramProgram(
        ranks=make_ranks(program.workload),
        packet_bytes=program.workload.messages.packet_bytes,
        forth=program.forth,
        back=program.back,
        end=np.zeros(operations, np.int64),
        sent_bound=np.zeros((operations, session.transport.subflows), np.int64),
        next_message=np.full(operations, _NONE),
        enqueued_packets=np.zeros(flows, np.int64),
        next_to_send=none,
        next_to_deliver=none.copy(),
        last=none.copy(),
        busy_ticks=np.zeros(len(session.delay), np.int64),
    )


@inline
def add_message(program, unsent, message, flow):
    """Add a message to a connection.

    Parameters
    ----------
    program: the program.
    unsent: int64 [connections], packets not taken.
    message: int64, its send.
    flow: int64, the connection.
    """
    packets = packets_of(size(program.ranks, message), program.packet_bytes)
    unsent[flow] += packets
    program.enqueued_packets[flow] += packets
    program.end[message] = program.enqueued_packets[flow]
    program.next_message[message] = _NONE
    if program.next_to_deliver[flow] == _NONE:
        program.next_to_deliver[flow] = message
    else:
        program.next_message[program.last[flow]] = message
    if program.next_to_send[flow] == _NONE:
        program.next_to_send[flow] = message
    program.last[flow] = message


@inline
def record_sent_packet(program, const, state, flow, now):
    """Record that a subflow has taken the next packet of a connection; it is on the link from the next tick on.

    Parameters
    ----------
    program: ``state.program``, or None.
    flow: int64, the connection.
    now: int64, tick.
    """
    if program is None:
        return
    message = program.next_to_send[flow]
    if program.enqueued_packets[flow] - state.unsent[flow] == program.end[message]:
        first = const.first[flow]
        for k in range(program.sent_bound.shape[1]):
            program.sent_bound[message, k] = state.senders.seq[first + k].high
        program.next_to_send[flow] = program.next_message[message]
        record_sent(program.ranks, message, now + 1)


@inline
def record_received(program, const, state, flow, now):
    """Record that the receiver of a connection has got a distinct packet.

    Parameters
    ----------
    program: ``state.program``, or None.
    flow: int64, the connection.
    now: int64, tick.
    """
    if program is None:
        return
    message = program.next_to_deliver[flow]
    while message != _NONE and _is_delivered(program, const, state, flow, message):
        message = program.next_message[message]
        record_arrival(program.ranks, program.next_to_deliver[flow], now)
        program.next_to_deliver[flow] = message


@inline
def _is_delivered(program, const, state, flow, message):
    """Tell whether a message has been delivered, with all before it on its connection."""
    if program.enqueued_packets[flow] - state.unsent[flow] < program.end[message]:
        return False
    first = const.first[flow]
    incomplete = 0
    for k in range(program.sent_bound.shape[1]):
        incomplete += np.int64(state.subflow[first + k].expected) < program.sent_bound[message, k]
    return incomplete == 0


@inline
def add_busy_ticks(program, link, ticks):
    """Count the service time of an accepted packet.

    Parameters
    ----------
    program: ``state.program``, or None.
    link: int64.
    ticks: int64, negative to correct an earlier count.
    """
    if program is not None:
        program.busy_ticks[link] += ticks
