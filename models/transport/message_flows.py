# SPDX-License-Identifier: Apache-2.0
"""The messages of a program, each as a flow."""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.program import SEND
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError
from flitlab.models.transport.flows import MOST_FLOWS, Flows


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


def message_flows(workload: Workload) -> MessageFlows:
    """The messages of a program as flows. Raises ``SpecError`` if there are none, or too many."""
    program, host = workload.program, workload.host
    sends = np.flatnonzero(program.kind == SEND)
    apart = host[program.rank[sends]] != host[program.peer[sends]]
    sends = sends[apart]
    if not len(sends):
        raise SpecError("has no messages between hosts", key="application")
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
