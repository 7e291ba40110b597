"""Two routings of a user's own: one of next hops, one of whole paths that brings its own VC policy."""

from itertools import pairwise

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import NO_PORTS, PathTable, RouteForm, Routes, RoutingSpec, Selection, VcPolicy
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


@register("routing", "first_shortest")
class FirstShortest(RoutingSpec):
    """Of the channels on a shortest path always the one to the switch with the lowest number.

    Example: ``routing: {kind: first_shortest}``

    Source: docs/routing.md.
    """

    def routes(self, topology: Topology) -> Routes:
        if topology.out_degree.max() > 64:
            raise SpecError("serves at most 64 channels out of a switch")
        hops = distances(topology).astype(int)  # [v, t]
        ports = np.zeros(hops.shape, np.uint64)  # [t, v]; bit p allows the p-th channel out of v
        for c in reversed(range(topology.channels)):  # sorted: the lowest number is written last
            v, w = topology.src[c], topology.dst[c]
            ports[hops[w] == hops[v] - 1, v] = np.uint64(1) << np.uint64(c - topology.out_start[v])
        return Routes(self.kind, ports, Selection.RANDOM, int(hops.max()))


@register("routing", "trees")
class Trees(RoutingSpec):
    """Every packet keeps to one of several spanning trees, drawn at its source; every tree has VCs of its own.

    The trees are those of shortest paths from roots that are drawn. On a tree a packet goes towards the root and
    then away from it, so no channels wait for each other in a cycle.

    Example: ``routing: {kind: trees, trees: 2}``

    Source: docs/routing.md.
    """

    trees: int = Field(default=2, ge=1, le=64)
    seed: int = Field(default=0, ge=0)

    def routes(self, topology: Topology) -> Routes:
        if topology.directed:
            raise SpecError("needs bi-directional links: a tree is used in both directions", key="kind")
        n = topology.switches
        if self.trees > n:
            raise SpecError(f"there are only {n} roots", key="trees")
        roots = np.random.default_rng(self.seed).choice(n, self.trees, replace=False)
        parents = [spanning_tree(topology, root) for root in roots]
        port = {  # of the first channel from v to w
            (int(topology.src[c]), int(topology.dst[c])): c - topology.out_start[topology.src[c]]
            for c in reversed(range(topology.channels))
        }
        counts, lengths, ports = np.zeros(n * n, int), [], []
        for s in topology.src_switches:
            for t in topology.dst_switches:
                if s != t:
                    counts[s * n + t] = self.trees
                    for parent in parents:
                        way = tree_path(parent, s, t)
                        lengths.append(len(way) - 1)
                        ports += [port[step] for step in pairwise(way)]
        table = PathTable(running(counts), running(lengths), np.array(ports, np.uint8))
        layer = np.tile(np.arange(self.trees, dtype=np.uint8), len(lengths) // self.trees)
        return Routes(
            self.kind, NO_PORTS, Selection.RANDOM, max(lengths), form=RouteForm.PATHS, paths=table,
            notes={"roots": roots.tolist()}, vc_policy=VcPolicy.LAYERED, layer=layer, layers=self.trees,
        )  # fmt: skip


def spanning_tree(topology: Topology, root: int) -> list[int]:
    """The parent of every switch in a tree of shortest paths; that of the root is negative."""
    links = csr_array((np.ones(topology.channels), (topology.src, topology.dst)))
    return breadth_first_order(links, root)[1].tolist()


def tree_path(parent: list[int], s: int, t: int) -> list[int]:
    """The switches from s up to the nearest common ancestor and down to t."""
    up, down = ([v] for v in (int(s), int(t)))
    for way in (up, down):
        while parent[way[-1]] >= 0:
            way.append(parent[way[-1]])
    while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
        up.pop()
        down.pop()
    return up + down[-2::-1]


def running(counts) -> np.ndarray:
    """Where each of consecutive ranges starts, and the end of the last."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
