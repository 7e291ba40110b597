# SPDX-License-Identifier: Apache-2.0
"""Cuts of the graph: the bisection that a graph partitioner finds, and the edge connectivity."""

import signal
from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


@register("metric", "bisection")
class Bisection(MetricSpec):
    """Links cut between two equal halves, the best of ``tries`` runs of METIS: an upper bound on the minimum.

    ``balance``: halves of equally many ``switches`` (they differ by one if the number is odd), or ``hosts``.
    ``weight``: METIS minimises the number of ``links`` or their ``capacity``. ``seed``: of the first run.

    The metric itself counts a bi-directional link once, and uni-directional channels in both directions: the
    edges cut of the underlying undirected multigraph. ``channels``: directed channels cut, both directions.
    ``capacity``: what one half can send to the other, in the direction in which that is less; it compares
    bi-directional and uni-directional topologies of as many channels. ``share``: of all links. ``per_switch``:
    capacity / (switches / 2). ``per_host``: capacity / (capacity of half the hosts' channels), 1 for full
    bisection bandwidth; None without hosts. ``imbalance``: difference of the halves.

    Example: ``metrics: [{kind: bisection, tries: 10}]``

    Source: METIS, Karypis and Kumar, SIAM J. Scientific Computing 20, 1998, doi:10.1137/S1064827595287997. UNI Table 1
    (the metric itself), DBG Figure 12 (per_switch), SIN section 4.2 (per_host).
    """

    tries: int = Field(default=20, ge=1)
    """Runs of METIS."""
    seed: int = Field(default=1, ge=0)
    """Seed of the first run."""
    balance: Literal["switches", "hosts"] = "switches"
    """What both halves have equally many of."""
    weight: Literal["links", "capacity"] = "links"
    """What is minimised across the cut."""

    def measure(self, topology: Topology) -> Row:
        if topology.switches < 2:
            raise ValueError("bisection: needs two switches")
        if self.balance == "hosts" and topology.hosts < 2:
            raise ValueError("bisection: balance hosts needs two hosts")
        size = topology.host_count if self.balance == "hosts" else np.ones(topology.switches, np.int64)
        # a link is two channels and counts once
        count = np.where(topology.reverse >= 0, 0.5, 1.0)
        value = count if self.weight == "links" else count * topology.capacity
        halves = metis_halves(topology, size, value, self.tries, self.seed, whole=self.weight == "links")
        best = min(
            (self._imbalance_and_cut(half, topology, size, value) for half in halves),
            key=lambda judged: judged[:2],
        )
        imbalance, _, half = best
        forward = ~half[topology.src] & half[topology.dst]
        backward = half[topology.src] & ~half[topology.dst]
        cut = float(count[forward | backward].sum())
        capacity = float(min(topology.capacity[forward].sum(), topology.capacity[backward].sum()))
        return {
            "": int(cut),
            "channels": int((forward | backward).sum()),
            "capacity": capacity,
            "share": cut / float(count.sum()),
            "per_switch": capacity / (topology.switches / 2),
            "per_host": capacity / (topology.hosts / 2 * topology.host_capacity) if topology.hosts else None,
            "imbalance": imbalance,
        }

    def _imbalance_and_cut(
        self, half: Bools, topology: Topology, size: Ints, value: Floats
    ) -> tuple[int, float, np.ndarray]:
        crossing = half[topology.src] != half[topology.dst]
        return abs(int(size[half].sum() - size[~half].sum())), float(value[crossing].sum()), half


def metis_halves(
    topology: Topology, size: Ints, value: Floats, tries: int, seed: int, whole: bool = False
) -> Iterator[np.ndarray]:
    """Partition a topology ``tries`` times with METIS into halves of equal ``size`` that cut little ``value``.

    Parameters
    ----------
    topology: the network.
    size: int64 [switches], weights to balance.
    value: float64 [channels], 0 or more, weights of the cut.
    tries: number of runs.
    seed: seed of the first run.
    whole: whether the sums of both directions are integers; else they are scaled to 32-bit integers for METIS.

    Returns
    -------
    An iterator of bool [switches].
    """
    import pymetis  # takes a while to load

    n = topology.switches
    matrix = csr_array((value, (topology.src, topology.dst)), shape=(n, n))
    matrix = csr_array(matrix + matrix.T)
    if not whole:  # of 32 bits
        matrix.data = np.maximum(np.rint(matrix.data * (2**30 / matrix.data.sum())), 1)
    adjacency = pymetis.CSRAdjacency(matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32))
    weights = matrix.data.astype(np.int32)
    for attempt in range(tries):
        try:
            _, part = pymetis.part_graph(
                2, adjacency, vweights=size.astype(np.int32), eweights=weights, recursive=True,
                options=pymetis.Options(seed=seed + attempt),
            )  # fmt: skip
        except RuntimeError as error:
            if "unknown exception" in str(error):
                _return_sigterm()
            raise
        yield np.asarray(part, bool)


def _return_sigterm() -> None:
    """Deliver the SIGTERM that METIS has caught: it uses this signal for its own errors and leaves its handler
    installed.
    """
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    signal.raise_signal(signal.SIGTERM)


@register("metric", "edge_connectivity")
class EdgeConnectivity(MetricSpec):
    """Fewest channels whose removal leaves some switch without a path to some other.

    For bi-directional topologies that is the fewest links whose removal cuts the topology in two. ``excess``:
    smallest degree (in or out, channels) - connectivity, 0 where isolating a switch is the cheapest cut. By one
    maximum flow per switch: a few seconds for 256 switches.

    Example: ``metrics: [{kind: edge_connectivity}]``

    Source: Schnorr, SIAM J. Computing 8, 1979, doi:10.1137/0208020.
    """

    def measure(self, topology: Topology) -> Row:
        n = topology.switches
        if n < 2:
            raise ValueError("edge_connectivity: needs two switches")
        ones = np.ones(topology.channels, np.int32)
        matrix = csr_array((ones, (topology.src, topology.dst)), shape=(n, n))
        # the cycle over all switches crosses every cut in both directions
        connectivity = min(maximum_flow(matrix, v, (v + 1) % n).flow_value for v in range(n))
        degree = int(min(topology.out_degree.min(), topology.in_degree.min()))
        return {"": int(connectivity), "excess": degree - int(connectivity)}
