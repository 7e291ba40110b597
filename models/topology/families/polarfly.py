# SPDX-License-Identifier: Apache-2.0
"""PolarFly: polarity graphs of projective planes, of diameter 2."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.degree_diameter_graphs import polarity_links
from flitlab.models.topology.galois import prime_power
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import listed, nearest_valid
from flitlab.models.topology.spec import TopologySpec

MAX_Q = 269
"""The largest prime power that makes at most 2 * 10**7 channels."""


def is_polarfly_order(q: int) -> bool:
    """Whether a field has q elements."""
    return q > 1 and prime_power(q) is not None


def polarfly_clusters(links: np.ndarray, quadrics: np.ndarray) -> Ints:
    """Return the cluster of each switch of a polarity graph, int64 [switches]; cluster 0 contains the quadrics.

    The neighbours of the first quadric are the centres of the other clusters: they share no neighbour but that quadric,
    and every other switch is a centre or adjacent to exactly one.

    Parameters
    ----------
    links: int64 [m, 2], of the polarity graph.
    quadrics: int64 [q + 1], its absolute switches.
    """
    ends = np.concatenate([links, links[:, ::-1]])
    cluster = np.full(links.max() + 1, -1, np.int64)
    centres = np.sort(ends[ends[:, 0] == quadrics[0], 1])
    cluster[centres] = np.arange(1, len(centres) + 1)
    around = cluster[ends[:, 0]] > 0
    cluster[ends[around, 1]] = cluster[ends[around, 0]]
    cluster[quadrics] = 0
    return cluster


@register("topology", "polarfly")
class PolarFly(TopologySpec):
    """PolarFly: the polarity graph of the projective plane over the field of q elements, of diameter 2.

    Switches are the q**2 + q + 1 points of PG(2, q), that is, vectors of three elements of GF(q) up to a factor; two
    are linked if their dot product is 0. The q + 1 quadrics are orthogonal to themselves: a link of theirs would lead
    back to them and is left out, so their degree is q and that of all others q + 1. Any two switches have exactly
    one neighbour in common, except a quadric and its neighbour.

    Switches are numbered cluster by cluster (``notes["clusters"]``, a rack each): the quadrics; then, for each of the q
    neighbours of the first quadric, that neighbour and its own neighbours but for quadrics. With q odd every cluster
    but the first has q switches; with q even one of them has 1 and the others have q + 1.

    q (q + 1)**2 / 2 links. Each switch has ceil((q + 1) / 2) hosts unless ``hosts_per_switch`` says otherwise.

    Valid: q a prime power from 2 to 269 (2 * 10**7 channels).

    Example: ``topology: {kind: polarfly, q: 5}``

    Source: Lakhotia, Besta, Monroe, Isham, Iff, Hoefler and Petrini, PolarFly, SC 2022, arXiv:2208.01695; the graph:
    Erdos and Renyi 1962, and Brown, Canadian Math. Bulletin 9, 1966. The layout for odd q is that of the paper,
    section V; for even q the same rule is taken.
    """

    q: int = Field(le=MAX_Q)
    """Order of the field, a prime power: q**2 + q + 1 switches."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any order that has no more switches."""
        for q in filter(is_polarfly_order, range(2, MAX_Q + 1)):
            switches = q * q + q + 1
            if switches > equipment.most_switches:
                return
            yield from flat(equipment, {"kind": "polarfly", "q": q}, switches, q + 1, q * (q + 1) ** 2 // 2)

    def graph(self) -> Topology:
        q = self.q
        if not is_polarfly_order(q):
            what = "must be a prime power" if q < 2 else "not a prime power"
            raise SpecError(f"{what}; nearest {listed(nearest_valid(q, is_polarfly_order))}", key="q")
        links, quadrics = polarity_links(q)
        cluster = polarfly_clusters(links, quadrics)
        point = np.arange(len(cluster))
        centres = links[(links == quadrics[0]).any(axis=1)].ravel()
        order = np.lexsort((point, ~np.isin(point, centres), cluster))
        number = np.empty_like(order)
        number[order] = point
        sizes = np.bincount(cluster)
        names = ["quadrics", *(f"cluster {i}" for i in range(1, len(sizes)))]
        firsts = np.cumsum(sizes) - sizes
        clusters = [list(part) for part in zip(names, firsts.tolist(), sizes.tolist(), strict=True)]
        topology = Topology.from_links(self.kind, len(order), number[links], notes={"clusters": clusters})
        return topology.with_hosts((q + 2) // 2)
