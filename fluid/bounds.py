# SPDX-License-Identifier: Apache-2.0
"""Bounds without optimisation: hop counts, Moore bound, simple cuts, host channels.

The :class:`Bound` of a scenario is a certified upper bound on its theta, for any routing. Bounds for a class of
demands, or in expectation, are functions at the end of the module.
"""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.certificate import Certificate, verify_upper
from flitlab.fluid.cut import Cut, CutNetwork
from flitlab.fluid.cuts import one_node
from flitlab.fluid.hosts import host_bound, host_certificate
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Ints
from flitlab.models.layout.prices import ports
from flitlab.models.topology.bounds import moore_aspl
from flitlab.models.topology.distances import distance_counts, distances
from flitlab.models.topology.equipment import equipment_bound
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.longest_matching import longest_assignment
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.traffic.units import Units


@dataclass(frozen=True, eq=False)
class Bound:
    """An upper bound on theta. certificate: the prices that prove it; None if the proof is another one."""

    name: str
    upper: float
    note: str
    certificate: Certificate | None


def volumetric(topology: Topology, traffic: Traffic) -> Bound:
    """Total capacity over total demand * hops: every flit uses one channel per hop."""
    z = Certificate.on_network(topology, np.ones(topology.channels))
    note = "total capacity / demand x hop distance"
    return Bound("volumetric", verify_upper(topology, traffic, z), note, z)


def moore(topology: Topology, traffic: Traffic) -> Bound:
    """The volumetric bound with the least distances of any graph of this degree (the demand-weighted Moore bound).

    The largest demands of each source get the least distances. Source: Cerf, Cowan, Mullin and Stanton, Networks 4
    (1974), doi:10.1002/net.3230040405 (average distance); here for the demand of the scenario.
    """
    source, _, amount = traffic.switch_pairs()
    order = np.lexsort((-amount, source))
    source, amount = source[order], amount[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    distance = moore_distances(topology.switches, int(topology.out_degree.max(initial=0)), topology.directed)
    least = float(amount @ distance[rank])
    upper = topology.capacity.sum() / least if least > 0 else np.inf
    return Bound("moore", float(upper), "total capacity / demand x Moore distance", None)


def moore_distances(switches: int, degree: int, directed: bool) -> Ints:
    """Moore bound on the distances from one switch to all others.

    Parameters
    ----------
    switches : int
        Switches of the graph.
    degree : int
        Channels out of a switch to other switches.
    directed : bool
        Whether channels have no opposite.

    Returns
    -------
    int64 [switches - 1]
        Least distances in hops, ascending.
    """
    growth = degree if directed else degree - 1
    distance = np.empty(switches - 1, np.int64)
    placed, layer, hops = 0, max(degree, 1), 1
    while placed < len(distance):
        distance[placed : placed + layer] = hops
        placed, layer, hops = placed + layer, max(layer * growth, 1), hops + 1
    return distance


def cuts(topology: Topology, traffic: Traffic) -> Bound:
    """The tightest cut around a single switch: capacity over demand, out of it or into it."""
    network = CutNetwork.of(topology, traffic)
    side = one_node(network)
    assert side is not None, "some switch has demand"
    return _of_cut(network.cut("cuts", side))


def two_cluster(topology: Topology, traffic: Traffic) -> Bound | None:
    """The cut between the two clusters, in its tighter direction; None unless there are two.

    With the volumetric bound it is SIN's bound for two clusters (equation 5.1), for the demand of the scenario.
    """
    side = clusters(topology)
    if side is None:
        return None
    network = CutNetwork.of(topology, traffic)
    sparsest = network.sparsest([side[None]])
    return None if sparsest is None else _of_cut(network.cut("two_cluster", sparsest))


def _of_cut(cut: Cut) -> Bound:
    return Bound(cut.name, cut.upper, cut.note, cut.certificate)


def clusters(topology: Topology) -> Bools | None:
    """bool [switches]: the first of two clusters, given as two ``tiers`` in the topology's ``notes``, both with
    hosts.
    """
    tiers = topology.notes.get("tiers", [])
    if len(tiers) != 2:
        return None
    first = np.arange(topology.switches) < tiers[0][2]
    return first if topology.host_count[first].any() and topology.host_count[~first].any() else None


def hosts(topology: Topology, traffic: Traffic) -> Bound:
    """The bound by the busiest host channel."""
    upper = host_bound(topology, traffic)
    if np.isinf(upper):
        return Bound("hosts", upper, "host channels are infinite", None)
    return Bound("hosts", upper, "busiest host channel", host_certificate(topology, traffic))


def all_bounds(topology: Topology, traffic: Traffic) -> list[Bound]:
    """All bounds on theta of this module that apply; only that of host channels if no demand leaves its switch."""
    if len(traffic.switch_pairs()[0]) == 0:
        return [hosts(topology, traffic)]
    bounds = [bound(topology, traffic) for bound in (volumetric, moore, cuts, two_cluster, hosts)]
    return [bound for bound in bounds if bound is not None]


# Over all demands, and in expectation


def half_of_all_to_all(traffic: Traffic, theta_all_to_all: float, include_self: bool = False) -> float:
    """Lower bound on theta of any hose demand: half of the theta of all-to-all on the same topology.

    Every demand can go by way of the switch of a random host; both legs are all-to-all traffic.

    Parameters
    ----------
    traffic : Traffic
        The demand. If its largest row or column sum r is not 1 (``normalise: none``), the bound is 1 / r times as
        large.
    theta_all_to_all : float
        Theta of ``all_to_all``, or a lower bound on it.
    include_self : bool
        Whether that is with ``include_self``: then T[i, j] = 1 / hosts as in the theorem, else a demand between
        different hosts is hosts / (hosts - 1) times as large.

    Returns
    -------
    float
        Load.

    Source: MUT Theorem 2.
    """
    size = traffic.topology.hosts
    scale = 1.0 if include_self else size / (size - 1)
    network = theta_all_to_all * scale / 2 / max(traffic.rate.max(), traffic.column_sums.max())
    bound: float = min(network, host_bound(traffic.topology, traffic))
    return bound


MAX_TUB_GROUPS = 8192
"""Groups of hosts up to which the longest matching is computed for a bound: half a gigabyte, some seconds."""


def tub(topology: Topology) -> Bound:
    """TUB, an upper bound on theta of the worst hose demand: total capacity over the distance of a longest matching.

    Demand theta T uses one channel per hop: theta times the sum of T[s, t] * hops(s, t) is at most the total capacity
    of the channels between switches. Among all T in which no host sends or receives more than 1, a permutation of the
    hosts with the largest sum of hops (a longest matching) has the least such theta. So it bounds the throughput of any
    longest matching, and what the network guarantees for every demand of the hose model; a particular demand may have a
    larger theta. Host channels are ignored.

    Hosts are matched in equal groups, as large as the greatest common divisor of the hosts per switch; this changes no
    sum. Switches may have different numbers of hosts, or none. Channels may be uni-directional, parallel, and of
    unequal capacity.

    Raises
    ------
    FluidError
        Hosts are at one switch only or form over ``MAX_TUB_GROUPS`` groups, no path joins two switches, or hosts inject
        at one switch and eject at another.

    Source: Namyar et al., SIGCOMM 2021, doi:10.1145/3452296.3472913 (equally many hosts at all switches, or at all that
    have some); MUT section II-C.
    """
    if np.count_nonzero(topology.host_count) < 2:
        raise FluidError("needs hosts at two switches or more")
    if topology.is_multistage:
        raise FluidError("matches switches with hosts, and here they inject at one switch and eject at another")
    units = Units.of(topology)
    if units.count > MAX_TUB_GROUPS:
        raise FluidError(f"{units.count} groups of {units.size} hosts to match; at most {MAX_TUB_GROUPS}")
    if pair := topology.unreachable_pair():
        u, v = map(switch_names(topology).label, pair)
        raise FluidError(f"no path from switch {u} to switch {v}")
    hops = distances(topology)[np.ix_(units.switch, units.switch)]
    farthest = units.size * int(hops[np.arange(units.count), longest_assignment(hops)].sum())
    note = "total capacity / distance of the longest matching: bounds the worst hose demand"
    return Bound("tub", float(topology.capacity.sum()) / farthest, note, None)


def equipment(topology: Topology, radix: int | None = None, split: int = 1) -> Bound:
    """Upper bound over all networks of as many switches and hosts: of uniform traffic, and of a worst hose demand.

    Every switch may have as many ports as the largest one uses, each of the capacity of the fastest channel, and hosts
    and links may be anywhere. Host channels are ignored.

    Parameters
    ----------
    topology : Topology
        The network.
    radix : int or None
        Ports of every switch, of capacity 1 each, in place of those that it uses.
    split : int
        Links that such a port makes, each of capacity 1 / split.

    Raises
    ------
    FluidError
        The network has uni-directional channels, or several subnets, or all hosts are at one switch, or has too many
        hosts for the ports.
    """
    numbers, capacity = equipment_of(topology, radix, split)
    try:
        bound = equipment_bound(*numbers)
    except ValueError as error:
        raise FluidError(str(error)) from None
    note = (
        f"any network of {topology.switches} switches of {numbers[1]} ports: {bound.mean_hops:.4f} mean hops at least"
    )
    return Bound("equipment", bound.throughput * capacity, note, None)


def equipment_of(topology: Topology, radix: int | None, split: int) -> tuple[tuple[int, int, int, int], float]:
    """Switches, ports, hosts and split of the equipment of :func:`equipment`, and the capacity of a port.

    Raises ``FluidError`` as it does for the network.
    """
    if topology.directed:
        raise FluidError("bounds networks of bi-directional links, and this one has others")
    if topology.subnets > 1:
        raise FluidError("bounds networks that join all hosts, and here no path joins the copies of a host in subnets")
    if np.count_nonzero(topology.host_count) < 2:
        raise FluidError("needs hosts at two switches or more")
    if radix is not None:
        return (topology.switches, radix, topology.hosts, split), 1.0
    return (topology.switches, int(ports(topology).max()), topology.hosts, 1), float(topology.capacity.max())


def path_length_bound(switches: int, degree: int, flows: float, distance: float | None = None) -> float:
    """N r / (<D> f): upper bound on the rate of each of f equal flows in an r-regular network of unit links.

    Parameters
    ----------
    switches : int
        N.
    degree : int
        r, channels out of a switch.
    flows : float
        f, the number of flows.
    distance : float or None
        <D>, mean distance of the flows in hops; by default the least one of any such graph (Cerf et al.).

    Returns
    -------
    float
        Flits/tick/flow. The bound holds for all-to-all (<D> is then the ASPL), and for random permutations of hosts on
        average over the permutations.

    Source: SIN Theorem 3 and section 4.3.
    """
    mean = moore_aspl(switches, degree, directed=False) if distance is None else distance
    return switches * degree / (mean * flows)


@dataclass(frozen=True)
class TwoClusters:
    """SIN's bounds on the throughput of two clusters under uniform traffic (equations 5.1 and 5.2).

    They hold for ``all_to_all`` with a host channel of rate 1, and for random permutations of the hosts with the
    expected number of flows between the clusters. hosts: of both clusters. capacity: of all channels; crossing: of the
    channels between the clusters, both directions. distance: mean over ordered pairs of different hosts, 0 within a
    switch.
    """

    hosts: tuple[int, int]
    capacity: float
    crossing: float
    distance: float

    @classmethod
    def of(cls, topology: Topology, side: Bools) -> "TwoClusters":
        """The bounds of a topology.

        Parameters
        ----------
        topology : Topology
            The network.
        side : bool [switches]
            One of the clusters.
        """
        counts = distance_counts(topology, topology.host_count)
        across = topology.capacity[side[topology.src] != side[topology.dst]].sum()
        sizes = int(topology.host_count[side].sum()), int(topology.host_count[~side].sum())
        pairs = topology.hosts * (topology.hosts - 1)
        distance = float(counts @ np.arange(len(counts))) / pairs
        return cls(sizes, float(topology.capacity.sum()), float(across), distance)

    @property
    def flows_across(self) -> float:
        """Expected number of flows of a random permutation between the clusters: 2 n1 n2 / (n1 + n2)."""
        return 2 * self.hosts[0] * self.hosts[1] / sum(self.hosts)

    @property
    def by_paths(self) -> float:
        """The path-length bound C / (<D> (n1 + n2))."""
        return self.capacity / (self.distance * sum(self.hosts))

    @property
    def by_cut(self) -> float:
        """Capacity across over flows across, both directions together; the tighter direction is at most as large."""
        return self.crossing / self.flows_across

    @property
    def upper(self) -> float:
        """The upper bound of equation 5.1: the lesser of the path-length bound and the cut."""
        return min(self.by_paths, self.by_cut)

    @property
    def drop(self) -> float:
        """The capacity across below which the cut is the tighter bound; C / (2 <D>) for equal clusters. Equation
        5.2.
        """
        return self.by_paths * self.flows_across

    def threshold(self, peak: float) -> float:
        """C*: the capacity across below which throughput is certainly less than the throughput ``peak``."""
        return peak * self.flows_across
