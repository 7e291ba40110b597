# SPDX-License-Identifier: Apache-2.0
"""Bounds and records of order, diameter, distance and bisection."""

from math import log, sqrt

import numpy as np
from pydantic import Field

from flitlab.models.layout.prices import ports
from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.bounds import (
    covering_hops,
    link_load_bound,
    moore_aspl,
    moore_diameter,
    moore_order,
    paths_within_bound,
    shortest_paths_length,
)
from flitlab.models.topology.degree_diameter_graphs import record_orders
from flitlab.models.topology.distances import distance_counts, mean_hops
from flitlab.models.topology.equipment import host_aspl_bound
from flitlab.models.topology.families.degree_diameter import MAX_DIAMETER, largest_digraph
from flitlab.models.topology.graph import Topology


@register("metric", "moore")
class Moore(MetricSpec):
    """Distance of a topology from the Moore bounds of its largest degree d (channels out of a switch).

    ``order``: most switches within the same diameter D, 1 + d + d (d - 1) + … + d (d - 1)**(D - 1), and with
    uni-directional channels 1 + d + … + d**D; ``order_ratio``: switches / order. ``diameter``: least diameter
    of that many switches, ``diameter_excess``: difference of the diameter and it. ``aspl``: the lower bound of
    Cerf et al. on the average distance, ``aspl_ratio``: average distance / bound (1 for a single switch).
    ``host_aspl``: the least mean hops from host to host, channels of hosts included, of any network with as many hosts
    and as many ports of a switch (the largest number in use), whatever its switches (the Order/Radix Problem);
    ``host_aspl_ratio``: mean hops from host to host / bound. Both are None for uni-directional networks, and for fewer
    than two hosts.

    Example: ``metrics: [{kind: moore}]``

    Source: Cerf, Cowan, Mullin and Stanton, Networks 4, 1974, doi:10.1002/net.3230040405. UNI section III-A. Order and
    radix: models/topology/equipment.py.
    """

    def measure(self, topology: Topology) -> Row:
        n, degree, directed = topology.switches, int(topology.out_degree.max()), topology.directed
        counts = distance_counts(topology)
        diameter = len(counts) - 1
        order, least_diameter = moore_order(degree, diameter, directed), moore_diameter(n, degree, directed)
        bound = moore_aspl(n, degree, directed)
        return {
            "order": order,
            "order_ratio": n / order,
            "diameter": least_diameter,
            "diameter_excess": diameter - least_diameter,
            "aspl": bound,
            "aspl_ratio": mean_hops(counts) / bound if bound else 1.0,
            **self._of_hosts(topology),
        }

    @staticmethod
    def _of_hosts(topology: Topology) -> dict[str, float | None]:
        if topology.directed or topology.hosts < 2:
            return {"host_aspl": None, "host_aspl_ratio": None}
        bound, _ = host_aspl_bound(topology.hosts, int(ports(topology).max()))
        counts = distance_counts(topology, topology.host_count)
        hops = 2 + int(counts @ np.arange(len(counts))) / (topology.hosts * (topology.hosts - 1))
        return {"host_aspl": bound, "host_aspl_ratio": hops / bound}


@register("metric", "known_orders")
class KnownOrders(MetricSpec):
    """Orders of the largest known networks of this degree and diameter, uni- and bi-directional.

    ``degree``, ``diameter``: by default those of the topology (its largest degree, in channels out of a switch);
    if set, the metric is independent of the topology.

    ``directed``: the largest known digraph (see ``degree_diameter``; the Kautz graph from degree 3), and
    ``undirected``, the largest known graph (Combinatorics Wiki, July 2022; the Moore bound for diameter 1 and up to
    degree 2; None where the table ends). ``directed_bound``, ``undirected_bound``: the Moore bounds;
    ``directed_share``, ``undirected_share``: of the bound. ``ratio``: directed / undirected.

    Example: ``metrics: [{kind: known_orders, degree: 8, diameter: 4}]``

    Source: UNI section I, Figure 1, and section IV-A.
    """

    degree: int | None = Field(default=None, ge=1)
    """Degree. null: the largest of the topology."""
    diameter: int | None = Field(default=None, ge=1, le=MAX_DIAMETER)
    """Diameter. null: that of the topology."""

    def measure(self, topology: Topology) -> Row:
        if topology.switches < 2 and not (self.degree and self.diameter):
            raise ValueError("known_orders: a single switch has no degree and no diameter")
        degree = self.degree or int(topology.out_degree.max())
        diameter = self.diameter or len(distance_counts(topology)) - 1
        directed, undirected = largest_digraph(degree, diameter).order, largest_graph_order(degree, diameter)
        bounds = {kind: moore_order(degree, diameter, kind == "directed") for kind in ("directed", "undirected")}
        return {
            "directed": directed,
            "undirected": undirected,
            "directed_bound": bounds["directed"],
            "undirected_bound": bounds["undirected"],
            "directed_share": directed / bounds["directed"],
            "undirected_share": undirected and undirected / bounds["undirected"],
            "ratio": undirected and directed / undirected,
        }


def largest_graph_order(degree: int, diameter: int) -> int | None:
    """Return the order of the largest known bi-directional network; None if the table of records does not contain it.

    Complete graphs, single links and odd cycles reach the Moore bound.
    """
    if diameter == 1 or degree <= 2:
        return moore_order(degree, diameter, directed=False)
    return record_orders().get((degree, diameter))


@register("metric", "bollobas")
class Bollobas(MetricSpec):
    """Links that every equal bisection of a *random* regular graph of this order and degree cuts, almost surely.

    n (r / 4 - sqrt(r ln 2) / 2), at least 0, with n switches of r links each (the average, where degrees differ):
    it holds for almost every r-regular graph as n grows, and says nothing about other topologies of
    the same degree. ``per_switch``: / (n / 2); ``per_host``: / (half the capacity of the hosts' channels), None without
    hosts. All None for uni-directional topologies.

    Example: ``metrics: [{kind: bollobas}]``

    Source: Bollobás, European J. Combinatorics 9, 1988, doi:10.1016/S0195-6698(88)80014-3. SIN section 4.2.1,
    Figure 4.2.
    """

    def measure(self, topology: Topology) -> Row:
        if topology.directed:
            return {"": None, "per_switch": None, "per_host": None}
        n, degree = topology.switches, topology.channels / topology.switches
        cut = max(n * (degree / 4 - sqrt(degree * log(2)) / 2), 0.0)
        hosts = topology.hosts / 2 * topology.host_capacity
        return {"": cut, "per_switch": cut / (n / 2), "per_host": cut / hosts if hosts else None}


@register("metric", "lemma_bounds")
class LemmaBounds(MetricSpec):
    """Bounds for directed regular graphs with the order N and the largest degree r of the topology.

    r counts the channels out of a switch, so that a bi-directional link gives 1 to either end, and RRG(N, r) with r
    links a switch is compared with a uni-directional graph of as many channels.

    ``diameter``: at least (Lemma 1). ``k_shortest``: LK(N, r, k), least average length of the ``k`` shortest
    paths (Lemma 2). ``paths_within``: most paths of at most ``hops`` hops that all pairs can have (Lemma 3);
    hops: by default the least H with r**H >= N, and repeated as ``hops``. ``link_load``: ML(N, r), least
    maximum load of a channel if every ordered pair of switches sends 1 (Lemma 4).

    Example: ``metrics: [{kind: lemma_bounds, k: 8}]``

    Source: DBG section III.
    """

    k: int = Field(default=1, ge=1)
    """Paths of a pair, for Lemma 2."""
    hops: int | None = Field(default=None, ge=1)
    """The most hops of a path, for Lemma 3. null: the least that serves all pairs."""

    def measure(self, topology: Topology) -> Row:
        n, degree = topology.switches, int(topology.out_degree.max())
        if n < 2 or (degree < 2 and self.hops is None):
            raise ValueError("lemma_bounds: needs two switches and a degree of 2 or more")
        hops = self.hops or covering_hops(n, degree)
        return {
            "diameter": moore_diameter(n, degree, directed=True),
            "k_shortest": shortest_paths_length(n, degree, self.k),
            "hops": hops,
            "paths_within": paths_within_bound(n, degree, hops),
            "link_load": link_load_bound(n, degree),
        }
