# SPDX-License-Identifier: Apache-2.0
"""Demand between racks, mapped to the switches with hosts."""

from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy import sparse

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator
from flitlab.models.traffic.table import per_host, table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec

MEASURED_RACKS = 64
"""Racks of the measured clusters."""


def racks_of(topology: Topology) -> Ints:
    """Return the switches with hosts, int64 [racks]. Raises ``SpecError`` if there are fewer than two."""
    racks = np.flatnonzero(topology.host_count)
    if len(racks) < 2:
        raise SpecError("needs hosts at two switches or more", key="kind")
    return racks


def evenly_spaced(size: int, count: int) -> Ints:
    """Return ``count`` evenly spaced numbers of 0 .. size - 1, int64 [count], ascending."""
    return np.arange(count) * size // count


def shuffled(matrix: npt.NDArray[Any] | sparse.sparray, seed: int) -> sparse.csr_array:
    """Permute rows and columns of a demand matrix alike, at random.

    Parameters
    ----------
    matrix: [n, n].
    seed: seed of the permutation.
    """
    order = generator(seed).permutation(matrix.shape[0])
    return sparse.csr_array(sparse.csr_array(matrix)[order][:, order])


def on_racks(topology: Topology, matrix: npt.ArrayLike | sparse.sparray) -> sparse.csr_array:
    """Convert demand [racks, racks] to demand [hosts, hosts]; rack i is the i-th switch with hosts.

    Parameters
    ----------
    topology: the network.
    matrix: float64 [racks, racks].
    """
    racks = racks_of(topology)
    entries = sparse.coo_array(matrix)
    source, target = racks[entries.row], racks[entries.col]
    return per_host(topology, sparse.coo_array((entries.data, (source, target)), (topology.switches,) * 2))


class Cluster(TrafficSpec):
    """Demand between the racks of a cluster of MEASURED racks, synthesised by :meth:`racks`.

    On fewer racks, so many evenly spaced ones of the 64 remain; for more, the same rule makes a cluster of that many.
    """

    shuffle: bool = False
    seed: int = Field(default=1, ge=0)

    def racks(self, count: int, rng: np.random.Generator) -> Floats:
        """Return the demand between racks, float64 [count, count]; powers of ten. rng: the same for every ``seed``."""
        raise NotImplementedError

    def demand(self, topology: Topology) -> Traffic:
        count = len(racks_of(topology))
        size = max(count, MEASURED_RACKS)
        remaining = evenly_spaced(size, count)
        matrix = self.racks(size, generator(0))[np.ix_(remaining, remaining)]
        np.fill_diagonal(matrix, 0)
        if self.shuffle:
            matrix = shuffled(matrix, self.seed)
        return table_traffic(self.kind, topology, on_racks(topology, matrix), notes={"racks_of_cluster": size})
