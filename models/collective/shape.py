# SPDX-License-Identifier: Apache-2.0
"""The structure of hosts in a network: the torus that they form, and the switches and pods that group them.

Ranks on hosts in ascending order (``placement: {kind: linear}``) have the same structure, which the algorithms
``bucket`` (dims) and ``hierarchical`` (group) of :mod:`flitlab.models.application.collectives` require.
"""

from collections.abc import Iterator
from math import prod

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology


def torus_dims(topology: Topology) -> tuple[int, ...] | None:
    """Return the sides of the torus that hosts form in ascending order, the last coordinate changing fastest.

    Several hosts per switch are its last dimension. None without a torus: the topology has no sides, its switches have
    different numbers of hosts, or a switch lacks a channel to a neighbour.
    """
    sides = tuple(topology.grid.dims if topology.grid is not None else topology.notes.get("dims", ()))
    each = np.unique(topology.host_count)
    if not sides or prod(sides) != topology.switches or len(each) != 1 or each[0] == 0:
        return None
    channels = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    dims = next((dims for dims in (sides, sides[::-1]) if channels.issuperset(_neighbours(dims))), None)
    return None if dims is None else dims + (int(each[0]),) * int(each[0] > 1)


def _neighbours(dims: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield all ordered pairs of neighbours in a torus whose last coordinate changes fastest."""
    switches = np.arange(prod(dims)).reshape(dims)
    for axis in np.flatnonzero(np.array(dims) > 1).tolist():
        for direction in (1, -1):
            yield from zip(switches.ravel().tolist(), np.roll(switches, direction, axis).ravel().tolist(), strict=True)


def group_sizes(topology: Topology) -> dict[str, int]:
    """Return the numbers of consecutive hosts per switch and per pod, where all switches or pods have equally many.

    Pods are the groups of a dragonfly, or what the top tier's switches connect. A key is omitted where hosts have no
    such groups of more than one and less than all.
    """
    group_of_host = {"switch": topology.host_switch}
    notes, size = topology.notes, topology.switches
    if "group_size" in notes:
        group_of_host["pod"] = topology.host_switch // notes["group_size"]
    elif "tiers" in notes:
        top = min(first for _, first, _ in notes["tiers"][-1:])
        below = (topology.src < top) & (topology.dst < top)
        links = csr_array((np.ones(below.sum()), (topology.src[below], topology.dst[below])), shape=(size, size))
        group_of_host["pod"] = connected_components(links)[1][topology.host_switch]
    sizes = {name: _equal_runs(group) for name, group in group_of_host.items()}
    return {name: length for name, length in sizes.items() if 1 < length < topology.hosts}


def _equal_runs(group: Ints) -> int:
    """Return the length of the runs of equal numbers; 0 if lengths differ or a number recurs."""
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(begins, append=len(group))
    different = len(np.unique(group)) == len(begins)
    return int(lengths[0]) if len(lengths) and different and (lengths == lengths[0]).all() else 0
