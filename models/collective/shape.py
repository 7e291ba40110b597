# SPDX-License-Identifier: Apache-2.0
"""The shape that hosts have in a network: the torus that they form, the pods and switches that they belong to.

Ranks that run on hosts in the order of their numbers (``placement: {kind: linear}``) have the same shape, which is what
the algorithms ``bucket`` (dims) and ``hierarchical`` (group) of :mod:`flitlab.models.application.collectives` ask for.
"""

from collections.abc import Iterator
from math import prod

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology


def torus_dims(topology: Topology) -> tuple[int, ...] | None:
    """The sides of the torus that hosts form in the order of their numbers, the last coordinate changing fastest.

    Hosts of a switch, if there are several, are its last dimension. None where they form none: the topology has no
    sides, its switches have different numbers of hosts, or one has no channel to the next in some dimension.
    """
    sides = tuple(topology.grid.dims if topology.grid is not None else topology.notes.get("dims", ()))
    each = np.unique(topology.host_count)
    if not sides or prod(sides) != topology.switches or len(each) != 1 or each[0] == 0:
        return None
    channels = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    dims = next((dims for dims in (sides, sides[::-1]) if channels.issuperset(_neighbours(dims))), None)
    return None if dims is None else dims + (int(each[0]),) * int(each[0] > 1)


def _neighbours(dims: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """All pairs of neighbours, both ways, in a torus whose last coordinate changes fastest."""
    place = np.arange(prod(dims)).reshape(dims)
    for axis in np.flatnonzero(np.array(dims) > 1).tolist():
        for direction in (1, -1):
            yield from zip(place.ravel().tolist(), np.roll(place, direction, axis).ravel().tolist(), strict=True)


def group_sizes(topology: Topology) -> dict[str, int]:
    """How many hosts in a row belong to one switch and to one pod, where all have equally many.

    Pods are the groups of a dragonfly, and what the switches of the top tier join in a network of tiers. A key is left
    out where hosts have no such groups of more than one and less than all.
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
    """The length of the runs of equal numbers, 0 if they differ in length or a number comes back."""
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(begins, append=len(group))
    different = len(np.unique(group)) == len(begins)
    return int(lengths[0]) if len(lengths) and different and (lengths == lengths[0]).all() else 0
