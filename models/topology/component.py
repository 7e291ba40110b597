# SPDX-License-Identifier: Apache-2.0
"""The largest strongly connected component of a topology."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.topology.failures import subtopology
from flitlab.models.topology.graph import Topology


def largest_component(topology: Topology) -> Topology:
    """Return the largest strongly connected component; among equals the one with the first switch.

    Switches keep their order. ``notes`` state how many switches were omitted, and keep the labels of the others. A
    connected topology is returned unchanged.
    """
    n = topology.switches
    matrix = csr_array((np.ones(topology.channels), (topology.src, topology.dst)), shape=(n, n))
    count, component_of = connected_components(matrix, directed=True, connection="strong")
    if count == 1:
        return topology
    sizes = np.bincount(component_of)
    is_member = component_of == next(one for one in component_of if sizes[one] == sizes.max())
    labels = topology.notes.get("labels", [str(v) for v in range(n)])
    whole = replace(topology, notes={**topology.notes, "labels": labels}, grid=None)
    component = subtopology(whole, is_member, is_member[topology.src] & is_member[topology.dst])
    return replace(component, notes={**component.notes, "switches_left_out": int(n - is_member.sum())})
