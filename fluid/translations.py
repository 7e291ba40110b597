# SPDX-License-Identifier: Apache-2.0
"""Translations of a Cayley graph of an abelian group: symmetries that map any switch to any other.

Switch numbers are coordinates, the last one fastest; a translation adds the same coordinates to all. A group is
verified by all channels of every switch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.jit import njit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic


@dataclass(frozen=True, eq=False)
class Translations:
    """A group of translations. dims: its extents, whose product is the number of switches.

    generator: int64 [channels]; translations map channels to channels of the same generator and capacity, and every
    switch has one channel of each generator.
    """

    dims: tuple[int, ...]
    generator: Ints

    @property
    def generators(self) -> int:
        return int(self.generator.max()) + 1

    def step(self, origin: np.ndarray, switch: np.ndarray) -> np.ndarray:
        """Difference of switches in the group.

        Parameters
        ----------
        origin, switch : int64
            Switches.

        Returns
        -------
        int64
            switch - origin: the image of ``switch`` under the translation that maps ``origin`` to 0.
        """
        return _steps(self.dims, origin, switch)

    def common_demand(self, traffic: Traffic) -> Floats | None:
        """float64 [switches]: the demand for switch 0 if translations map it to that for every other switch; else None.

        Amounts are equal up to rounding; those of switch 0 are returned.
        """
        topology, n = traffic.topology, traffic.topology.switches
        if traffic.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            if topology.host_count.min() < topology.host_count.max() or not _same(traffic.rate):
                return None
            row = np.full(n, traffic.rate[0] * topology.host_count[0])
            row *= topology.host_count[0] / (topology.hosts - (traffic.law == DestinationRule.UNIFORM))
            row[0] = 0
            return row
        source, target, amount = traffic.switch_pairs()
        if len(source) % n or len(source) == 0:
            return None
        step = self.step(target, source)
        order = np.argsort(step, kind="stable")
        table, steps = amount[order].reshape(-1, n), step[order].reshape(-1, n)
        if not (_same(steps.T) and _same(table.T)):
            return None
        row = np.zeros(n)
        at_zero = target == 0
        row[source[at_zero]] = amount[at_zero]
        return row


def _same(value: np.ndarray) -> bool:
    """Whether all rows are equal up to rounding."""
    return bool((np.abs(value - value[0]) <= 1e-12 * np.abs(value[0])).all())


def _steps(dims: tuple[int, ...], origin: np.ndarray, switch: np.ndarray) -> np.ndarray:
    coordinates = np.stack(np.unravel_index(np.arange(np.prod(dims)), dims), axis=1)
    return _difference(np.ascontiguousarray(coordinates), np.array(dims), origin, switch)


@njit
def _difference(coordinates: Ints, dims: Ints, origin: Ints, switch: Ints) -> Ints:
    index = np.zeros(len(switch), np.int64)
    for i in range(len(switch)):
        for d in range(len(dims)):
            step = coordinates[switch[i], d] - coordinates[origin[i], d]
            index[i] = index[i] * dims[d] + (step + dims[d] if step < 0 else step)
    return index


def translations(topology: Topology) -> Iterator[Translations]:
    """The translations of all groups that fit the switch numbers and make the network a Cayley graph."""
    for dims in _groups(topology):
        if (generator := _generators(topology, dims)) is not None:
            yield Translations(dims, generator)


def _groups(topology: Topology) -> list[tuple[int, ...]]:
    """Candidate groups: that of a grid, binary vectors, a ring."""
    n = topology.switches
    bits = n.bit_length() - 1
    stated = topology.grid.dims if topology.grid else topology.notes.get("dims", ())
    groups = [tuple(stated), (2,) * bits, (n,)]
    return [dims for dims in dict.fromkeys(groups) if dims and np.prod(dims) == n]


def _generators(topology: Topology, dims: tuple[int, ...]) -> Ints | None:
    """int64 [channels]: the generator of each channel; None if switches have different ones."""
    n, degree = topology.switches, topology.out_degree
    if n < 2 or topology.channels == 0 or degree.min() < degree.max():
        return None
    steps = _steps(dims, topology.src, topology.dst)
    order = np.lexsort((topology.capacity, steps, topology.src))
    for value in (steps, topology.capacity):
        table = value[order].reshape(n, -1)
        if (table != table[0]).any():
            return None
    generator = np.empty(topology.channels, np.int64)
    generator[order] = np.tile(np.arange(degree[0]), n)
    return generator
