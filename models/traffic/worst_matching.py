# SPDX-License-Identifier: Apache-2.0
"""Matchings of switches that take the most capacity: a worst demand where switches have unequal numbers of hosts."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec
from flitlab.models.traffic.units import MAX_UNITS


def farthest_partner(topology: Topology) -> tuple[Ints, Ints]:
    """Return the switches with hosts, int64 [n], and the partner that each sends to, int64 [n].

    The sum of min(hosts, hosts of the partner) * hops is the largest of all matchings, exactly; of equal ones as few
    as possible stay within a switch.

    Parameters
    ----------
    topology: the network; hosts at two switches or more.
    """
    switch = np.flatnonzero(topology.host_count)
    hosts = topology.host_count[switch]
    hops = distances(topology)[np.ix_(switch, switch)]
    length = np.minimum(hosts[:, None], hosts) * hops.astype(np.float64) * (len(switch) + 1) + (hops > 0)
    return switch, switch[linear_sum_assignment(length, maximize=True)[1]]


@register("traffic", "worst_matching")
class WorstMatching(TrafficSpec):
    """Every switch sends to one other at the full rate of its hosts, or of the other's, as far as it can be.

    Switch s sends min(h_s, h_t) to its partner t, with h the numbers of hosts, so that the sum of that times the hops
    is largest (an assignment problem, solved exactly). The k-th host of s sends to the k-th host of t; hosts that the
    partner has no counterpart of send nothing. Where all switches have equally many hosts it is a ``longest_matching``.
    Elsewhere it is harder: ``longest_matching`` joins groups of hosts, which splits the traffic of a switch.

    ``notes`` has the matching as [from switch, to switch, hosts] and its mean distance.

    Example: ``traffic: {kind: worst_matching}``

    Source: Namyar et al., SIGCOMM 2021, doi:10.1145/3452296.3472913, for equal numbers of hosts.
    """

    def demand(self, topology: Topology) -> Traffic:
        topology.require_one_switch("matches switches by their distance", "kind")
        if np.count_nonzero(topology.host_count) < 2:
            raise SpecError("needs hosts at two switches or more", key="kind")
        if (switches := np.count_nonzero(topology.host_count)) > MAX_UNITS:
            raise SpecError(f"{switches} switches to match; at most {MAX_UNITS}", key="kind")
        switch, partner = farthest_partner(topology)
        count = topology.host_count
        served = np.zeros(topology.switches, np.int64)
        served[switch] = np.where(partner == switch, 0, np.minimum(count[switch], count[partner]))
        to = np.arange(topology.switches)
        to[switch] = partner
        first = np.cumsum(count) - count
        of, place = topology.host_switch, np.arange(topology.hosts) - first[topology.host_switch]
        target = np.where(place < served[of], first[to[of]] + place, -1)
        names, hops = switch_names(topology), distances(topology)[switch, partner]
        flows = [
            [*names.values(ends), n]
            for ends, n in zip(np.column_stack([switch, partner]), served[switch].tolist(), strict=True)
        ]
        mean = float(hops @ served[switch] / max(served.sum(), 1))
        return fixed_traffic(self.kind, topology, target, notes={"matching": flows, "mean_distance": mean})
