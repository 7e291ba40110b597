# SPDX-License-Identifier: Apache-2.0
"""Messages of a program on its connections: which packets are whose, and when a message is delivered.

A connection has the packets of its messages one behind the other, and its subflows take the next one whenever their
windows admit it. What a subflow carries is therefore in order, and a message is delivered, with all before it, when
every subflow has delivered in order what it had taken by the time when the message's last packet was.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import packets_of
from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.transport.newreno import HIGH
from flitlab.models.transport.session import Session
from flitlab.sim.engines.compiled.ranks import Ranks, arrived, left, make_ranks, size

_NOBODY = np.int64(-1)


class Talk(NamedTuple):
    """A program, and its messages in the order in which they joined each connection.

    A message is called by its send's operation. forth, back: see
    :class:`~flitlab.models.transport.connections.Connections`. end: int64 [operations], packets of the connection up to
    the end of the message. bound: int64 [operations, subflows of a connection], packets that its subflows had taken
    when the last one of the message was. behind: int64 [operations], the next message. joined: int64 [connections],
    packets of all messages so far. taking, coming, last: int64 [connections], the first message of which some packet
    has not been taken, the first that has not been delivered, and the last one. busy: int64 [links], ticks that a link
    takes for all it has accepted.
    """

    ranks: Ranks
    packet_bytes: int
    forth: Ints
    back: Ints
    end: Ints
    bound: Ints
    behind: Ints
    joined: Ints
    taking: Ints
    coming: Ints
    last: Ints
    busy: Ints


def make_talk(session: Session) -> Talk | None:
    """Make the program of a session before its first event; None where there is none."""
    program = session.program
    if program is None:
        return None
    operations, flows = program.workload.program.operations, len(program.flows.source)
    nobody = np.full(flows, _NOBODY)
    return Talk(
        ranks=make_ranks(program.workload),
        packet_bytes=program.workload.messages.packet_bytes,
        forth=program.forth,
        back=program.back,
        end=np.zeros(operations, np.int64),
        bound=np.zeros((operations, session.transport.subflows), np.int64),
        behind=np.full(operations, _NOBODY),
        joined=np.zeros(flows, np.int64),
        taking=nobody,
        coming=nobody.copy(),
        last=nobody.copy(),
        busy=np.zeros(len(session.delay), np.int64),
    )


@inline
def add_message(talk, left, message, flow):
    """Let a message join a connection.

    left: int64 [connections], packets that have not been taken.
    """
    packets = packets_of(size(talk.ranks, message), talk.packet_bytes)
    left[flow] += packets
    talk.joined[flow] += packets
    talk.end[message] = talk.joined[flow]
    talk.behind[message] = _NOBODY
    if talk.coming[flow] == _NOBODY:
        talk.coming[flow] = message
    else:
        talk.behind[talk.last[flow]] = message
    if talk.taking[flow] == _NOBODY:
        talk.taking[flow] = message
    talk.last[flow] = message


@inline
def note_taken(talk, const, state, flow, now):
    """Note that a subflow has taken the next packet of a connection; it is on the host's link from the next tick on."""
    if talk is None:
        return
    message = talk.taking[flow]
    if talk.joined[flow] - state.left[flow] == talk.end[message]:
        first = const.first[flow]
        for k in range(talk.bound.shape[1]):
            talk.bound[message, k] = state.senders.seq[first + k, HIGH]
        talk.taking[flow] = talk.behind[message]
        left(talk.ranks, message, now + 1)


@inline
def note_received(talk, const, state, flow, now):
    """Note that the receiver of a connection has got a packet that it did not have."""
    if talk is None:
        return
    message = talk.coming[flow]
    while message != _NOBODY and _is_there(talk, const, state, flow, message):
        message = talk.behind[message]
        arrived(talk.ranks, talk.coming[flow], now)
        talk.coming[flow] = message


@inline
def _is_there(talk, const, state, flow, message):
    """Tell whether a message has been delivered, with all before it on its connection."""
    if talk.joined[flow] - state.left[flow] < talk.end[message]:
        return False
    first = const.first[flow]
    lacking = 0
    for k in range(talk.bound.shape[1]):
        lacking += np.int64(state.subflow[first + k].expected) < talk.bound[message, k]
    return lacking == 0


@inline
def note_busy(talk, link, ticks):
    """Note that a link has accepted a packet that it takes ``ticks`` to send."""
    if talk is not None:
        talk.busy[link] += ticks
