# SPDX-License-Identifier: Apache-2.0
"""Measured values of proved properties of generalised de Bruijn graphs."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.paths.within import all_counts_within, even_load_within, k_shortest_lengths
from flitlab.models.registry import register
from flitlab.models.topology.bounds import covering_hops, shortest_paths_length
from flitlab.models.topology.distances import diameter
from flitlab.models.topology.families.imase import imase_arcs
from flitlab.models.topology.graph import Topology


@register("metric", "gdbg_lemmas")
class GdbgLemmas(MetricSpec):
    """Lemmas 5 to 10 on GDBG(N, r), each measured and compared; all None for topologies that are no GDBG.

    H is the least number with r**H >= N, the hop limit of ALLPATH(H).

    ``lemma5``: at most 2 r self-loops (``loops``).
    ``lemma6``: the r**H walks of H hops out of every switch, self-loops included, end at consecutive switches.
    ``lemma7``: diameter at most H.
    ``lemma8``: the average length of the ``k`` shortest loopless paths (``k_shortest``) is at most LK(N, r, k) +
    h (r**h - 1) / ((r - 1)**2 k (N - 1)) (``k_shortest_bound``), h the least number with r**h >= k N. None
    unless k is given.
    ``lemma9``: at least floor(r**H / N) (``paths_bound``) loopless paths of at most H hops between every pair
    (``paths_min``); ``lemma9_walks``: the same of walks of exactly H hops, which is what the proof counts. Two
    walks may become one path when their loops are cut out.
    ``lemma10``: largest load of a channel, all-to-all over ALLPATH(H) (``load_max``), at most ``load_bound``;
    ``lemma10_walks``: for every h up to H all walks of h hops use each channel, and each self-loop, h r**(h - 1) times.

    Example: ``metrics: [{kind: gdbg_lemmas, k: 2}]``

    Source: DBG section IV.
    """

    k: int | None = Field(default=None, ge=1)
    """Paths of a pair, for Lemma 8. null: without it."""

    def measure(self, topology: Topology) -> Row:
        degree = gdbg_degree(topology)
        if degree is None:
            return dict.fromkeys(NAMES)
        n = topology.switches
        hops = covering_hops(n, degree)
        values: Row = dict.fromkeys(NAMES)
        values["loops"] = n * degree - topology.channels
        values["lemma5"] = values["loops"] <= 2 * degree
        walks = walk_counts(n, degree, hops)
        values["lemma6"] = _consecutive(walks, degree**hops)
        values["lemma7"] = diameter(topology) <= hops
        if self.k is not None:
            values["k_shortest"], values["k_shortest_bound"] = self._k_shortest(topology, degree)
            values["lemma8"] = values["k_shortest"] <= values["k_shortest_bound"] + 1e-12
        paths = enumerate(all_counts_within(topology, hops))
        values["paths_min"] = min(int(np.delete(counts.sum(0), source).min()) for source, counts in paths)
        values["paths_bound"] = degree**hops // n
        values["lemma9"] = values["paths_min"] >= values["paths_bound"]
        values["lemma9_walks"] = int(walks.min()) >= values["paths_bound"]
        values["load_max"] = float(even_load_within(topology, hops)[0].max())
        uses = sum(h * degree ** (h - 1) for h in range(1, hops + 1))  # of a channel by all walks of at most H hops
        values["load_bound"] = uses / values["paths_bound"]
        values["lemma10"] = values["load_max"] <= values["load_bound"] + 1e-9
        values["lemma10_walks"] = all(
            bool((walk_uses(n, degree, h) == h * degree ** (h - 1)).all()) for h in range(1, hops + 1)
        )
        return values

    def _k_shortest(self, topology: Topology, degree: int) -> tuple[float, float]:
        n, k = topology.switches, self.k or 1
        by_length, _ = k_shortest_lengths(topology, k)
        hops = covering_hops(k * n, degree)
        slack = hops * (degree**hops - 1) / ((degree - 1) ** 2 * k * (n - 1))
        mean = int(by_length @ np.arange(n)) / int(by_length.sum())
        return mean, shortest_paths_length(n, degree, k) + slack


NAMES = (
    "loops", "lemma5", "lemma6", "lemma7", "k_shortest", "k_shortest_bound", "lemma8", "paths_min", "paths_bound",
    "lemma9", "lemma9_walks", "load_max", "load_bound", "lemma10", "lemma10_walks",
)  # fmt: skip


def gdbg_degree(topology: Topology) -> int | None:
    """Return r if the topology is GDBG(N, r) without its self-loops, switches in the same order; else None."""
    n, max_degree = topology.switches, int(topology.out_degree.max())
    for degree in (max_degree, max_degree + 1):  # every switch may have lost one channel to a self-loop
        if 2 <= degree <= n:
            arcs = imase_arcs(n, degree, a=1, b=0)
            arcs = arcs[arcs[:, 0] != arcs[:, 1]]
            arcs = arcs[np.lexsort((arcs[:, 1], arcs[:, 0]))]
            if np.array_equal(arcs, np.column_stack([topology.src, topology.dst])):
                return degree
    return None


def walk_counts(n: int, degree: int, hops: int) -> Ints:
    """Count the walks of exactly ``hops`` hops from s to t in GDBG(n, degree) with self-loops, int64 [n, n].

    Parameters
    ----------
    n, degree: order and degree of the graph.
    hops: length of the walks.
    """
    heads = imase_arcs(n, degree, a=1, b=0)[:, 1].reshape(n, degree)
    counts = np.eye(n, dtype=np.int64)
    for _ in range(hops):
        next_counts = np.zeros_like(counts)
        for alpha in range(degree):
            next_counts += counts[heads[:, alpha]]
        counts = next_counts
    return counts


def walk_uses(n: int, degree: int, hops: int) -> Ints:
    """Count how often all walks of ``hops`` hops in GDBG(n, degree) use a channel out of each switch, int64 [n].

    Parameters
    ----------
    n, degree: order and degree of the graph.
    hops: length of the walks.
    """
    heads = imase_arcs(n, degree, a=1, b=0)[:, 1].reshape(n, degree)
    arriving, uses = np.ones(n, np.int64), np.zeros(n, np.int64)
    for step in range(hops):
        uses += arriving * degree ** (hops - 1 - step)
        arriving = np.bincount(heads.ravel(), np.repeat(arriving, degree), n).astype(np.int64)
    return uses


def _consecutive(walks: np.ndarray, number: int) -> bool:
    """Whether row i counts the switches i number, i number + 1, … (modulo n), ``number`` of them."""
    n = len(walks)
    offset = (np.arange(n)[None, :] - np.arange(n)[:, None] * number) % n
    return bool((walks == number // n + (offset < number % n)).all())
