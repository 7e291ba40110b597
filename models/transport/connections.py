# SPDX-License-Identifier: Apache-2.0
"""The connections that carry a program's messages."""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.program import SEND
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError
from flitlab.models.transport.flows import Flows


class Connections(NamedTuple):
    """One connection for every ordered pair of hosts with messages of a program, in the order of the pairs.

    flows: of all connections, empty until messages join them. forth: int64 [operations], the connection of a send's
    message and of its request to send. back: int64 [operations], that of its receiver's consent. -1: none.
    """

    workload: Workload
    flows: Flows
    forth: Ints
    back: Ints


def connections(workload: Workload, hosts: int) -> Connections:
    """The connections of a program on a network of ``hosts`` hosts. Raises ``SpecError`` if it needs none."""
    program, host = workload.program, workload.host
    sends = np.flatnonzero(program.kind == SEND)
    source, destination = host[program.rank[sends]], host[program.peer[sends]]
    apart = source != destination
    sends, source, destination = sends[apart], source[apart], destination[apart]
    if not len(sends):
        raise SpecError("has no messages between hosts", key="application")
    is_rendezvous = program.amount[sends] > workload.messages.rendezvous
    keys = np.concatenate([source * hosts + destination, (destination * hosts + source)[is_rendezvous]])
    pairs, pair_index = np.unique(keys, return_inverse=True)
    forth, back = (np.full(program.operations, -1, np.int64) for _ in range(2))
    forth[sends], back[sends[is_rendezvous]] = pair_index[: len(sends)], pair_index[len(sends) :]
    nothing = np.zeros(len(pairs), np.int64)
    return Connections(workload, Flows(pairs // hosts, pairs % hosts, nothing, nothing), forth, back)
