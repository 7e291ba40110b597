# SPDX-License-Identifier: Apache-2.0
"""Upper bounds on the throughput of a candidate before anything is solved: in closed form, then on the built network.

Both are of uniform traffic (every host sends equally to every other), and of the worst matching of switches.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flitlab.fluid.graph import Demand, Graph
from flitlab.fluid.problem import Problem
from flitlab.models.arrays import Floats, Ints
from flitlab.models.topology.candidates import Candidate, Equipment
from flitlab.models.topology.distances import distances
from flitlab.models.topology.equipment import equipment_bound
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.worst_matching import farthest_partner

ROUNDING = 1e-12
"""Relative error of the few operations of a bound, outwards."""

LEAST_MATCHED = 3
"""Hosts of a leaf from which a longest matching never leaves it to itself: see :func:`closed_form`."""


@dataclass(frozen=True)
class Upper:
    """An upper bound on theta, and the name of its proof."""

    value: float
    proof: str

    def least(self, *others: "Upper") -> "Upper":
        """The smallest one; of equal ones the first."""
        return min((self, *others), key=lambda one: one.value)


HOSTS = Upper(1.0, "rate of hosts")


def closed_form(candidate: Candidate, equipment: Equipment) -> tuple[Upper, Upper]:
    """Upper bounds of uniform traffic and of the worst matching, without building the network.

    With H hosts, h at most and l at least at the n switches that have some, and capacity C of all channels:

    * Moore levels: hops of all pairs are at least D = sum_k (H**2 - sum h_s**2 m_k)+, where m_k = 1 + d + d (d - 1) +
      ... switches are within k hops if all switches have hosts and at most d neighbours. Uniform: C (H - 1) / D. The
      cyclic shifts of the n switches take sum min(h_s, h_t) hops >= D / h altogether, so one takes D / (h (n - 1)), and
      a longest matching no less.
    * Half: if at most half of the n switches are nearer than k hops, Hall's theorem gives a matching of switches k or
      more hops apart: C / (l k n).
    * Cuts, with c the links out of x hosts: uniform c (H - 1) / (x (H - x)); worst c / x where all of them send out. A
      leaf with 3 hosts or more, and at most one host less than another, is never matched with itself: to insert it
      between two others adds to the length.

    Parameters
    ----------
    candidate : Candidate
        The network of one plane.
    equipment : Equipment
        Of one plane.
    """
    hosts, unit = equipment.hosts, 1 / equipment.split
    uniform = worst = HOSTS
    for cut in candidate.cuts:
        if cut.most < hosts:
            across = cut.links * unit * (hosts - 1) / (cut.most * (hosts - cut.most))
            uniform = uniform.least(Upper(across * (1 + ROUNDING), "cut in closed form"))
        if cut.matched and cut.least >= LEAST_MATCHED:
            worst = worst.least(Upper(cut.links * unit / cut.least * (1 + ROUNDING), "cut in closed form"))
    if candidate.neighbours is not None and candidate.with_hosts == candidate.switches:
        channels, n = 2 * candidate.links * unit * (1 + ROUNDING), candidate.switches
        far, half = _moore(n, candidate.neighbours, hosts)
        if far > 0:
            uniform = uniform.least(Upper(channels * (hosts - 1) / far, "Moore levels"))
            worst = worst.least(Upper(channels * (n - 1) * equipment.each(n) / far, "Moore levels"))
        worst = worst.least(Upper(channels / (hosts // n * half * n), "half of the switches"))
    return uniform, worst


@lru_cache(maxsize=100_000)
def _moore(switches: int, neighbours: int, hosts: int) -> tuple[int, int]:
    """Least hops of all pairs of hosts, and the hops that at most half of all switches are nearer than."""
    each, more = divmod(hosts, switches)
    squares = (switches - more) * each**2 + more * (each + 1) ** 2
    within, level, total, half = 1, neighbours, 0, 1
    for k in range(1, switches + 1):
        total += max(0, hosts**2 - squares * within)
        if 2 * within <= switches:
            half = k
        if within >= switches or level == 0:
            break
        within = min(switches, within + level)
        level *= neighbours - 1
    return total, half


def by_equipment(candidate: Candidate, equipment: Equipment) -> tuple[Upper, Upper]:
    """The bounds over all networks of as many switches, with the capacity of this one.

    Parameters
    ----------
    candidate : Candidate
        The network of one plane.
    equipment : Equipment
        Of one plane.
    """
    hosts, n = equipment.hosts, candidate.with_hosts
    bound = equipment_bound(candidate.switches, equipment.ports, hosts, equipment.split)
    if bound.hops == 0:
        return HOSTS, HOSTS
    each = 2 * candidate.links / equipment.split / float(bound.hops) * (1 + ROUNDING)
    name = "all networks of the equipment"
    worst = each * (n - 1) * equipment.each(n)
    return Upper(each * (hosts - 1), name), Upper(worst, name)


@dataclass(frozen=True, eq=False)
class Network:
    """A built network between switches, parallel links merged.

    graph: the channels; capacity in rates of a host's port. hosts: int64 [switches]. hops: [switches, switches].
    """

    topology: Topology
    graph: Graph
    hosts: Ints
    hops: np.ndarray

    @classmethod
    def of(cls, topology: Topology) -> "Network":
        """The network of a topology."""
        n = topology.switches
        pair, row = np.unique(topology.src * n + topology.dst, return_inverse=True)
        capacity = np.bincount(row, topology.capacity, len(pair))
        graph = Graph.from_channels(n, pair // n, pair % n, capacity)
        return cls(topology, graph, topology.host_count, distances(topology))

    def uniform(self) -> Floats:
        """Demand of uniform traffic between switches, float64 [switches, switches]."""
        demand: Floats = np.outer(self.hosts, self.hosts) / (self.hosts.sum() - 1)
        np.fill_diagonal(demand, 0)
        return demand

    def worst(self) -> Floats:
        """Demand of the worst matching of switches, float64 [switches, switches]."""
        switch, partner = farthest_partner(self.topology)
        demand = np.zeros((len(self.hosts), len(self.hosts)))
        demand[switch, partner] = np.minimum(self.hosts[switch], self.hosts[partner])
        np.fill_diagonal(demand, 0)
        return demand

    def upper(self, demand: Floats) -> Upper:
        """The least of the volumetric bound and the cuts of single switches.

        Parameters
        ----------
        demand : float64 [switches, switches]
            Flits/tick between different switches.
        """
        volume = float((demand * self.hops).sum())
        if volume == 0:
            return HOSTS
        graph, n = self.graph, len(self.hosts)
        best = Upper(float(graph.capacity.sum()) / volume * (1 + ROUNDING), "total capacity / demand x hops")
        for ends, axis in ((graph.src, 1), (graph.dst, 0)):
            capacity, sent = np.bincount(ends, graph.capacity, n), demand.sum(axis=axis)
            theta = np.divide(capacity, sent, out=np.full(n, np.inf), where=sent > 0)
            best = best.least(Upper(float(theta.min()) * (1 + ROUNDING), "cut of a switch"))
        return best

    def problem(self, demand: Floats) -> Problem:
        """The flow problem of a demand. demand: float64 [switches, switches]."""
        return Problem(self.graph, Demand.of(demand))
