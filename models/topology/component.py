# SPDX-License-Identifier: Apache-2.0
"""The largest part of a topology in which every switch reaches every other."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.topology.graph import Topology


def largest_component(topology: Topology) -> Topology:
    """The largest strongly connected part, of several the one with the first switch; a connected topology as it is.

    Switches keep their order. ``notes`` say how many were left out, and keep the labels of those that stay.
    """
    n = topology.switches
    matrix = csr_array((np.ones(topology.channels), (topology.src, topology.dst)), shape=(n, n))
    count, part = connected_components(matrix, directed=True, connection="strong")
    if count == 1:
        return topology
    sizes = np.bincount(part)
    wanted = next(one for one in part if sizes[one] == sizes.max())
    stays = part == wanted
    number = np.cumsum(stays) - 1
    channel = np.flatnonzero(stays[topology.src] & stays[topology.dst])
    place = np.full(topology.channels + 1, -1)  # place[-1] stays -1: no reverse
    place[channel] = np.arange(len(channel))
    labels = topology.notes.get("labels", [str(v) for v in range(n)])
    kept = [labels[v] for v in np.flatnonzero(stays)]
    notes = {**topology.notes, "labels": kept, "switches_left_out": int(n - stays.sum())}
    ends = np.stack([number[topology.src[channel]], number[topology.dst[channel]]], axis=1)
    found = Topology.from_channels(
        topology.kind, int(stays.sum()), ends, place[topology.reverse[channel]], capacity=topology.capacity[channel],
        delay=topology.delay[channel], notes=notes,
    )  # fmt: skip
    if topology.hosts_stated:
        return found.with_hosts(topology.host_count[stays], topology.host_capacity)
    return replace(found, host_capacity=topology.host_capacity)
