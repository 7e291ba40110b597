# SPDX-License-Identifier: Apache-2.0
"""What carries a program's messages: connections in mode datagram, a flow for each in mode spray."""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError
from flitlab.models.transport.flows import MOST_FLOWS, Flows


class Connections(NamedTuple):
    """One connection for every ordered pair of hosts with messages of a program, in the order of the pairs.

    flows: of all connections, empty until messages join them. forth: int64 [operations], the connection of a send's
    message and of its request to send. back: int64 [operations], that of its receiver's consent. -1: none.
    """

    workload: Workload
    flows: Flows
    forth: Ints
    back: Ints


class MessageFlows(NamedTuple):
    """A flow for each message between hosts: the data of all sends, then requests to send, then consents.

    flows: with bytes in the place of packets; their start is not used, as each begins when its host sends it. data,
    request, consent: int64 [operations], the flow of each message of a send, -1: none. send: int64 [flows], the send of
    each message.
    """

    workload: Workload
    flows: Flows
    data: Ints
    request: Ints
    consent: Ints
    send: Ints


def _messages(workload: Workload) -> tuple[Ints, Ints, Ints]:
    """The sends between hosts, and their sources and destinations: int64 [sends] each."""
    program, host = workload.program, workload.host
    sends = np.flatnonzero(program.kind == Op.SEND)
    source, destination = host[program.rank[sends]], host[program.peer[sends]]
    apart = source != destination
    return sends[apart], source[apart], destination[apart]


def connections(workload: Workload, hosts: int) -> Connections:
    """The connections of a program on a network of ``hosts`` hosts; none where no message leaves its host."""
    program, (sends, source, destination) = workload.program, _messages(workload)
    is_rendezvous = program.amount[sends] > workload.messages.rendezvous
    keys = np.concatenate([source * hosts + destination, (destination * hosts + source)[is_rendezvous]])
    pairs, pair_index = np.unique(keys, return_inverse=True)
    forth, back = (np.full(program.operations, -1, np.int64) for _ in range(2))
    forth[sends], back[sends[is_rendezvous]] = pair_index[: len(sends)], pair_index[len(sends) :]
    nothing = np.zeros(len(pairs), np.int64)
    return Connections(workload, Flows(pairs // hosts, pairs % hosts, nothing, nothing), forth, back)


def message_flows(workload: Workload) -> MessageFlows:
    """The messages of a program as flows. Raises ``SpecError`` if there are too many."""
    program, host = workload.program, workload.host
    sends = _messages(workload)[0]
    asking = sends[program.amount[sends] > workload.messages.rendezvous]
    send = np.concatenate([sends, asking, asking])
    if len(send) > MOST_FLOWS:
        raise SpecError(f"has {len(send):,} messages; at most {MOST_FLOWS:,}", key="application")
    data, request, consent = (np.full(program.operations, -1, np.int64) for _ in range(3))
    data[sends] = np.arange(len(sends))
    request[asking] = len(sends) + np.arange(len(asking))
    consent[asking] = request[asking] + len(asking)
    source, target = host[program.rank[send]], host[program.peer[send]]
    back = np.arange(len(send)) >= len(sends) + len(asking)
    size = np.where(np.arange(len(send)) < len(sends), program.amount[send], 0)
    ends = np.where(back, target, source), np.where(back, source, target)
    return MessageFlows(workload, Flows(*ends, size, np.zeros(len(send), np.int64)), data, request, consent, send)
