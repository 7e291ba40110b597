# SPDX-License-Identifier: Apache-2.0
"""Load of the channels under all-to-all traffic."""

from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Floats, Integers
from flitlab.models.jit import njit
from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.paths.ksp import all_k_shortest
from flitlab.models.paths.search import search_to
from flitlab.models.paths.within import even_load_within
from flitlab.models.registry import register
from flitlab.models.topology.bounds import covering_hops, link_load_bound
from flitlab.models.topology.graph import Topology


@register("metric", "link_load")
class LinkLoad(MetricSpec):
    """Load of each channel if every ordered pair of different switches sends 1, split evenly over its paths.

    ``routing``: ``minimal``, all shortest paths; ``ksp``, the ``k`` shortest loopless paths, of equally long
    ones some at random; ``allpath``, all loopless paths of at most ``hops`` hops, by default the least H with
    degree**H >= switches. ``seed``: of the choice that ksp makes.

    ``max``, ``mean`` and ``min`` over the channels (a bi-directional link is two); ``bound``: ML, the least
    maximum with that many switches of the largest degree (Lemma 4); ``ratio``: max / bound. Capacities do not
    matter. ``paths_mean``: paths of a pair on average (ksp and allpath). Pairs without a path among those allowed
    send nothing; ``none`` is their share, and where there are any, the bound does not hold and ratio is None.

    Example: ``metrics: [{kind: link_load, routing: ksp, k: 4}]``

    Source: DBG section III-C, Figures 10 and 11.
    """

    routing: Literal["minimal", "ksp", "allpath"] = "minimal"
    """Paths over which each pair splits what it sends."""
    k: int = Field(default=8, ge=1, le=1024)
    """Paths of a pair, with ksp."""
    hops: int | None = Field(default=None, ge=1)
    """The most hops of a path, with allpath. null: the least that serves all pairs."""
    seed: int = Field(default=0, ge=0)
    """Seed that chooses among equally long paths."""

    def measure(self, topology: Topology) -> Row:
        if topology.switches < 2:
            raise ValueError("link_load: needs two switches")
        degree = int(topology.out_degree.max())
        load, extra = getattr(self, f"_{self.routing}")(topology)
        bound = link_load_bound(topology.switches, degree)
        spread = {"max": float(load.max()), "mean": float(load.mean()), "min": float(load.min())}
        values: Row = spread | {"bound": bound, "ratio": None if extra.get("none") else spread["max"] / bound} | extra
        return values

    def _minimal(self, topology: Topology) -> tuple[Floats, Row]:
        return even_load_shortest(topology), {}

    def _ksp(self, topology: Topology) -> tuple[Floats, Row]:
        load, number, none = np.zeros(topology.channels), 0, 0
        for paths in all_k_shortest(topology, self.k, seed=self.seed):
            load += paths.even_load(topology.channels)
            number += len(paths.lengths)
            none += int((paths.counts == 0).sum())
        return load, _paths(topology, number, none)

    def _allpath(self, topology: Topology) -> tuple[Floats, Row]:
        hops = self.hops or covering_hops(topology.switches, int(topology.out_degree.max()))
        load, number, none = even_load_within(topology, hops)
        return load, _paths(topology, number, none) | {"hops": hops}


def _paths(topology: Topology, number: int, none: int) -> dict[str, float]:
    pairs = topology.switches * (topology.switches - 1)
    return {"paths_mean": number / pairs, "none": none / pairs}


@njit
def _even_load(out_start: Integers, dst: Integers, in_start: Integers, in_tail: Integers, load: Floats) -> None:
    """Add the load of one unit from every switch to every other to ``load``, float64 [channels].

    The parameters are those of :func:`~flitlab.models.paths.search.search_to` and of the topology.
    """
    n = len(out_start) - 1
    hops, order = np.empty(n, np.int64), np.empty(n, np.int64)
    paths, flow = np.empty(n), np.empty(n)
    for dst_switch in range(n):
        reached = search_to(dst_switch, in_start, in_tail, hops, order)
        paths[:] = 0.0
        paths[dst_switch] = 1.0
        for i in range(1, reached):
            v = order[i]
            for c in range(out_start[v], out_start[v + 1]):
                if hops[dst[c]] == hops[v] - 1:
                    paths[v] += paths[dst[c]]
        flow[:] = 1.0
        for i in range(reached - 1, 0, -1):  # farthest first, so that all transit has arrived
            v = order[i]
            for c in range(out_start[v], out_start[v + 1]):
                u = dst[c]
                if hops[u] == hops[v] - 1:
                    share = flow[v] * (paths[u] / paths[v])
                    load[c] += share
                    flow[u] += share


def even_load_shortest(topology: Topology) -> Floats:
    """Compute channel loads, float64 [channels], if every ordered pair sends 1, evenly over its shortest paths.

    Paths over different parallel channels are different paths. This is the edge betweenness, not normalised. Pairs
    without a path send nothing.

    Source: Brandes, J. Mathematical Sociology 25, 2001, doi:10.1080/0022250X.2001.9990249.
    """
    load = np.zeros(topology.channels)
    _even_load(topology.out_start, topology.dst, topology.in_start, topology.src[topology.in_channels], load)
    return load
