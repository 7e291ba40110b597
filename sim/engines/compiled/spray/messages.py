# SPDX-License-Identifier: Apache-2.0
"""Messages of a program, each of which is a flow: when its last packet is sent, and when all of it has come."""

from typing import NamedTuple

from flitlab.models.application.messages import CTS, RTS
from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.spray.layout import COMPLETE, PACKETS
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.compiled.ranks import Ranks, arrived, left, make_ranks


class Talk(NamedTuple):
    """A program and the flow of each message (:class:`~flitlab.models.transport.message_flows.MessageFlows`)."""

    ranks: Ranks
    data: Ints
    request: Ints
    consent: Ints
    send: Ints


def make_talk(session: SpraySession) -> Talk | None:
    """Make the program of a session before its first event; None where there is none."""
    program = session.program
    if program is None:
        return None
    return Talk(
        ranks=make_ranks(program.workload), data=program.data, request=program.request, consent=program.consent,
        send=program.send,
    )  # fmt: skip


@inline
def flow_of(talk, send):
    """Find the flow that the message of a send is, as far as its stage says."""
    stage = talk.ranks.stage[send]
    if stage == RTS:
        return talk.request[send]
    return talk.consent[send] if stage == CTS else talk.data[send]


@inline
def note_sent(talk, state, flow, number, now):
    """Note that a packet is sent for the first time; after its last one a message has left in the next tick."""
    if talk is None:
        return
    if number == state.senders.seq[flow, PACKETS] - 1:
        left(talk.ranks, talk.send[flow], now + 1)


@inline
def note_received(talk, state, flow, now):
    """Note that a packet has come whole: the only one that its host gets in this tick."""
    if talk is None:
        return
    if state.receivers.got[flow, COMPLETE] == now:
        arrived(talk.ranks, talk.send[flow], now)
