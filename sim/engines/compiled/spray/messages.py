# SPDX-License-Identifier: Apache-2.0
"""Messages of a program, each of which is a flow: their last transmission, and their completion."""

from typing import NamedTuple

from flitlab.models.application.messages import MessageStage
from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.compiled.ranks import Ranks, make_ranks, record_arrival, record_sent


class SprayProgram(NamedTuple):
    """A program and the flow of each message (:class:`~flitlab.models.transport.messages.MessageFlows`)."""

    ranks: Ranks
    data: Ints
    request: Ints
    consent: Ints
    send: Ints


def make_spray_program(session: SpraySession) -> SprayProgram | None:
    """Make the program of a session before its first event; None where there is none."""
    program = session.program
    if program is None:
        return None
    return SprayProgram(
        ranks=make_ranks(program.workload), data=program.data, request=program.request, consent=program.consent,
        send=program.send,
    )  # fmt: skip


@inline
def flow_of(program, send):
    """Return the flow of a send's message in its present stage."""
    stage = program.ranks.stage[send]
    if stage == MessageStage.RTS:
        return program.request[send]
    return program.consent[send] if stage == MessageStage.CTS else program.data[send]


@inline
def record_first_send(program, state, flow, number, now):
    """Record the first transmission of a packet; a message has left in the tick after its last one.

    Parameters
    ----------
    program: ``state.program``, or None.
    flow: int64.
    number: int64, of the packet in its flow.
    now: int64, tick.
    """
    if program is None:
        return
    if number == state.senders.seq[flow].packets - 1:
        record_sent(program.ranks, program.send[flow], now + 1)


@inline
def record_received(program, state, flow, now):
    """Record an untrimmed packet, the only one that its host receives in this tick.

    Parameters
    ----------
    program: ``state.program``, or None.
    flow: int64.
    now: int64, tick.
    """
    if program is None:
        return
    if state.receivers.got[flow].complete == now:
        record_arrival(program.ranks, program.send[flow], now)
