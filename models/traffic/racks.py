# SPDX-License-Identifier: Apache-2.0
"""Demand between racks, mapped to the switches with hosts."""

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy import sparse

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator
from flitlab.models.traffic.table import per_host, table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec

MEASURED_RACKS = 64
"""Racks of the measured clusters."""


def racks_of(topology: Topology) -> Ints:
    """Return the switches with hosts, int64 [racks]. Raises ``SpecError`` if there are fewer than two."""
    topology.require_one_switch("is demand between switches with hosts", "kind")
    racks = np.flatnonzero(topology.host_count)
    if len(racks) < 2:
        raise SpecError("needs hosts at two switches or more", key="kind")
    return racks


def evenly_spaced(size: int, count: int) -> Ints:
    """Return ``count`` evenly spaced numbers of 0 .. size - 1, int64 [count], ascending."""
    return np.arange(count) * size // count


def shuffled(matrix: np.ndarray | sparse.sparray, seed: int) -> sparse.csr_array:
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
    """Whether racks are in random order."""
    seed: int = Field(default=1, ge=0)
    """Seed of this order."""

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


WEB, CACHE, OTHER = 0, 1, 2

DEMAND = np.array([[0.001, 1.0, 0.1], [1.0, 0.1, 0.1], [0.01, 0.1, 0.01]])
"""Demand from a rack of one role (row) to a rack of another (column)."""


@register("traffic", "frontend_like")
class FrontendLike(Cluster):
    """Demand between racks as in a front-end cluster: web servers and caches exchange nearly everything.

    The measured matrix is not public. It is known to be heavy at the cache racks and light at the web racks, and was
    read off a plot in powers of ten. Here, in the order of the rack numbers, three quarters of the racks are web, a
    fifth cache and the rest other (multifeed, slb, misc). A web and a cache rack send each other 1, caches each other
    0.1, web racks each other 0.001; other racks receive 0.1 from web and cache racks, and send 0.01, 0.1 to caches;
    one pair in five (always the same ones) has a tenth of that. Demand inside a rack is left out. A rack is a switch
    with hosts: the cluster has 64, of which fewer are taken at even distances, and more follow the same rule. Split
    equally over the hosts of both racks. ``shuffle``: which switch is which rack is random (``seed``).

    Example: ``traffic: {kind: frontend_like, shuffle: true, seed: 3}``

    Source: TM-F of MUT section IV-B, Fig. 14; Roy, Zeng, Bagga, Porter and Snoeren 2015,
    doi:10.1145/2785956.2787472.
    """

    def racks(self, count: int, rng: np.random.Generator) -> Floats:
        share = (np.arange(count) + 0.5) / count
        role = np.where(share < 0.75, WEB, np.where(share < 0.95, CACHE, OTHER))
        demand: Floats = DEMAND[np.ix_(role, role)] * np.where(rng.random((count, count)) < 0.8, 1.0, 0.1)
        return demand


@register("traffic", "hadoop_like")
class HadoopLike(Cluster):
    """Demand between racks as in a Hadoop cluster: nearly the same for all pairs.

    The measured matrix is not public. It is known to be nearly uniform between racks, and was read off a plot in
    powers of ten; here nine pairs of ten (always the same ones) exchange 1 and the others 0.1. Demand inside a rack is
    left out. A rack is a switch with hosts: the cluster has 64, of which fewer are taken at even distances, and more
    follow the same rule. Split equally over the hosts of both racks. ``shuffle``: which switch is which rack is random
    (``seed``).

    Example: ``traffic: {kind: hadoop_like, shuffle: true, seed: 3}``

    Source: TM-H of MUT section IV-B, Fig. 13; Roy, Zeng, Bagga, Porter and Snoeren 2015,
    doi:10.1145/2785956.2787472.
    """

    def racks(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random((count, count)) < 0.9, 1.0, 0.1)
