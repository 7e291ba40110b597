# SPDX-License-Identifier: Apache-2.0
"""The output that a packet takes under the rules ``vc`` and ``frame`` of hot-potato switching."""

import numpy as np

from flitlab.models.arrays import Int, Integers, PortSet
from flitlab.models.jit import kernel
from flitlab.models.rules.bits import empty_set, is_empty, lowest, popcount, with_port, without_lowest
from flitlab.models.rules.draw import Stream, draw
from flitlab.models.rules.route import pick

NO_PORT = np.int64(-1)


@kernel
def least_bound_port(
    ports: PortSet, bound: Integers, first: Int, vcs: Int, seed: Int, packet_id: Int, hops: Int
) -> int:
    """Choose the output to which the fewest packets are bound; ties are drawn.

    Parameters
    ----------
    ports: set of candidate ports.
    bound: integers [outputs], packets bound to each output.
    first: the output of port 0.
    vcs: packets that may be bound to an output.
    seed: of the run.
    packet_id: of the packet that chooses.
    hops: channels between switches that it has taken.

    Returns
    -------
    Port number; -1 if every candidate has ``vcs`` packets bound.
    """
    least, ties = np.int64(vcs), empty_set(ports)
    while not is_empty(ports):
        port = lowest(ports)
        ports = without_lowest(ports)
        count = np.int64(bound[first + port])
        if count < least:
            least, ties = count, with_port(empty_set(ports), port)
        elif count == least and least < vcs:
            ties = with_port(ties, port)
    if is_empty(ties):
        return NO_PORT
    if popcount(ties) == 1:
        return lowest(ties)
    return pick(ties, draw(seed, Stream.DEFLECT, packet_id, hops))
