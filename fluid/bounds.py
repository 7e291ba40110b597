# SPDX-License-Identifier: Apache-2.0
"""Bounds without optimisation: counted hops, the Moore bound, simple cuts, host channels.

The :class:`Bound` of a scenario is a certified upper bound on its theta, whatever the routing. What holds for a whole
class of demands, or in expectation, stands at the end as functions of its own.
"""

from dataclasses import dataclass

import numpy as np

from flitlab.fluid.certificate import Certificate, verify_upper
from flitlab.fluid.cuts import Cut, one_node
from flitlab.fluid.cuts.cut import CutNetwork
from flitlab.fluid.hosts import host_bound, host_certificate
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Ints
from flitlab.models.topology.bounds import moore_aspl
from flitlab.models.topology.distances import distance_counts, distances
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.longest_matching import longest_assignment
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.traffic.units import Units


@dataclass(frozen=True, eq=False)
class Bound:
    """One upper bound on theta, with the lengths that prove it, if lengths do."""

    name: str
    upper: float
    note: str
    certificate: Certificate | None


def volumetric(topology: Topology, traffic: Traffic) -> Bound:
    """Total capacity over total demand * hops: every flit uses a channel per hop."""
    z = Certificate.on_network(topology, np.ones(topology.channels))
    note = "total capacity / demand x hop distance"
    return Bound("volumetric", verify_upper(topology, traffic, z), note, z)


def moore(topology: Topology, traffic: Traffic) -> Bound:
    """The volumetric bound, with distances that no graph of this degree can beat (the demand-weighted Moore bound).

    Per source the largest demands are put nearest. Source: Cerf, Cowan, Mullin and Stanton, Networks 4
    (1974), doi:10.1002/net.3230040405 (average distance); here for the demand at hand.
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
    """int64 [switches - 1]: the least distances to all other switches from one, in increasing order."""
    growth = degree if directed else degree - 1
    distance = np.empty(switches - 1, np.int64)
    placed, layer, hops = 0, max(degree, 1), 1
    while placed < len(distance):
        distance[placed : placed + layer] = hops
        placed, layer, hops = placed + layer, max(layer * growth, 1), hops + 1
    return distance


def cuts(topology: Topology, traffic: Traffic) -> Bound:
    """The tightest cut around a single switch: its channels out (in) over its demand out (in)."""
    network = CutNetwork.of(topology, traffic)
    side = one_node.search(network)
    assert side is not None, "some switch has demand"
    return _of_cut(network.cut("cuts", side))


def two_cluster(topology: Topology, traffic: Traffic) -> Bound | None:
    """The cut between the two clusters, in the direction in which it is tighter; None where there are no two.

    With the volumetric bound it is SIN's bound for two clusters (equation 5.1), for the demand at hand.
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
    """bool [switches]: the first of two clusters, which its ``notes`` give as two ``tiers`` with hosts in both."""
    tiers = topology.notes.get("tiers", [])
    if len(tiers) != 2:
        return None
    first = np.arange(topology.switches) < tiers[0][2]
    return first if topology.host_count[first].any() and topology.host_count[~first].any() else None


def hosts(topology: Topology, traffic: Traffic) -> Bound:
    """The busiest host channel."""
    upper = host_bound(topology, traffic)
    if np.isinf(upper):
        return Bound("hosts", upper, "host channels are infinite", None)
    return Bound("hosts", upper, "busiest host channel", host_certificate(topology, traffic))


def all_bounds(topology: Topology, traffic: Traffic) -> list[Bound]:
    """Every bound on theta of this module that applies: the host channels alone if no demand leaves its switch."""
    if len(traffic.switch_pairs()[0]) == 0:
        return [hosts(topology, traffic)]
    bounds = [bound(topology, traffic) for bound in (volumetric, moore, cuts, two_cluster, hosts)]
    return [bound for bound in bounds if bound is not None]


# Over all demands, and in expectation


def half_of_all_to_all(traffic: Traffic, theta_all_to_all: float, include_self: bool = False) -> float:
    """A lower bound on theta: half of what all-to-all reaches on the same topology, whatever the hose demand.

    Every demand can go over a random host's switch; either leg is all-to-all traffic. theta_all_to_all: theta (or a
    lower bound) of ``all_to_all`` with that ``include_self``; with it, T[i, j] = 1 / hosts as in the theorem, without
    it the same demand between different hosts is hosts / (hosts - 1) times as large. A traffic whose largest row or
    column sum r is not 1 (``normalise: none``) reaches 1 / r times as much.

    Source: MUT Theorem 2.
    """
    size = traffic.topology.hosts
    scale = 1.0 if include_self else size / (size - 1)
    network = theta_all_to_all * scale / 2 / max(traffic.rate.max(), traffic.column_sums.max())
    bound: float = min(network, host_bound(traffic.topology, traffic))
    return bound


MAX_TUB_GROUPS = 8192
"""Groups of hosts up to which the longest matching is found for a bound: half a gigabyte, and seconds."""


def tub(topology: Topology) -> Bound:
    """TUB, an upper bound on theta of the worst hose demand: total capacity over the distance of a longest matching.

    To carry theta T, every demand takes a channel a hop: theta times the sum of T[s, t] * hops from s to t is at most
    the total capacity of the channels between switches. Of all T in which no host sends or receives more than 1, a
    permutation of the hosts with the largest sum of hops (a longest matching) allows the least theta. So that is what
    the network carries at most of any longest matching, and guarantees at most for every demand of the hose model; of
    another demand it may carry more. Host channels are left out.

    Hosts are matched in groups as large as divides their numbers at all switches, which changes no sum, so these may
    differ; switches without hosts add their channels. Channels may be uni-directional, parallel, and of unequal
    capacity. Raises :class:`~flitlab.fluid.problem.FluidError` where hosts are at one switch only or in over
    ``MAX_TUB_GROUPS`` groups, or where no path joins two switches.

    Source: Namyar et al., SIGCOMM 2021, doi:10.1145/3452296.3472913 (equally many hosts at all switches,
    or at all that have some); MUT section II-C.
    """
    if np.count_nonzero(topology.host_count) < 2:
        raise FluidError("needs hosts at two switches or more")
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


def path_length_bound(switches: int, degree: int, flows: float, distance: float | None = None) -> float:
    """N r / (<D> f): the most that each of ``flows`` equal flows gets in an r-regular network of unit links.

    distance: the mean distance of the flows, at least that of Cerf et al. for any graph of this size and degree,
    which is taken if it is not given. It holds for all-to-all (<D> is then the ASPL), and for random permutations of
    hosts on average over the permutations. Source: SIN Theorem 3 and section 4.3.
    """
    mean = moore_aspl(switches, degree, directed=False) if distance is None else distance
    return switches * degree / (mean * flows)


@dataclass(frozen=True)
class TwoClusters:
    """SIN's bounds on the throughput of two clusters under uniform traffic (equations 5.1 and 5.2).

    They hold for ``all_to_all`` with a host channel's rate as 1, and for random permutations of the hosts but for how
    many flows happen to cross. hosts: of both clusters. capacity: of all channels; crossing: of those between the
    clusters, both directions. distance: mean over ordered pairs of different hosts, 0 within a switch.
    """

    hosts: tuple[int, int]
    capacity: float
    crossing: float
    distance: float

    @classmethod
    def of(cls, topology: Topology, side: Bools) -> "TwoClusters":
        """side: bool [switches], one of the clusters."""
        counts = distance_counts(topology, topology.host_count)
        across = topology.capacity[side[topology.src] != side[topology.dst]].sum()
        sizes = int(topology.host_count[side].sum()), int(topology.host_count[~side].sum())
        pairs = topology.hosts * (topology.hosts - 1)
        distance = float(counts @ np.arange(len(counts))) / pairs
        return cls(sizes, float(topology.capacity.sum()), float(across), distance)

    @property
    def flows_across(self) -> float:
        """Expected number of flows of a random permutation that cross between the clusters: 2 n1 n2 / (n1 + n2)."""
        return 2 * self.hosts[0] * self.hosts[1] / sum(self.hosts)

    @property
    def by_paths(self) -> float:
        """C / (<D> (n1 + n2))."""
        return self.capacity / (self.distance * sum(self.hosts))

    @property
    def by_cut(self) -> float:
        """Capacity across / flows across; of both directions, of which the tighter one is no larger."""
        return self.crossing / self.flows_across

    @property
    def upper(self) -> float:
        """The upper bound of equation 5.1: the lesser of those by paths and by the cut."""
        return min(self.by_paths, self.by_cut)

    @property
    def drop(self) -> float:
        """The capacity across below which the cut limits the bound; C / (2 <D>) for equal clusters. Equation 5.2."""
        return self.by_paths * self.flows_across

    def threshold(self, peak: float) -> float:
        """C*: the capacity across below which throughput must be less than a ``peak`` found with more of it."""
        return peak * self.flows_across
