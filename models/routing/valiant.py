# SPDX-License-Identifier: Apache-2.0
"""Valiant's routing over a random intermediate switch."""

from dataclasses import replace
from typing import Literal

import numpy as np

from flitlab.models.arrays import Bytes, Masks
from flitlab.models.registry import SpecError, make, register
from flitlab.models.routing.bit_parallel import longest_paths
from flitlab.models.routing.dor import dimension_order_ports, line_grid
from flitlab.models.routing.dragonfly import dragonfly_ports, router_groups, warn_of_two_global_channels
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.planned import NextHopPlan, NextHopWeights, PlannedSpec, Weigh
from flitlab.models.routing.routes import PER, Routes, RoutingSpec
from flitlab.models.routing.updown import updown_ports
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic

MAX_SWITCHES = 1 << 24
LEGS_GAP = 1e-3
"""Relative gap of the solved leg weights."""


def route_hops(topology: Topology, ports: Masks) -> Bytes:
    """Channels of the routes from s to t, uint8 [s, t]; 0 where there are none.

    Parameters
    ----------
    topology: the network.
    ports: table of port sets, next hops of equal length.
    """
    return np.ascontiguousarray(longest_paths(topology, ports).T)


class ViaSpec(RoutingSpec):
    """The common part of routings over an intermediate switch: the ``legs`` to it and from it."""

    legs: Literal["minimal", "optimal", "dor", "updown", "dragonfly"] = "minimal"
    """The routing to the intermediate switch and from it."""

    def over_all(self, topology: Topology, select: int, threshold: int = 0) -> Routes:
        """The routes over every switch.

        Parameters
        ----------
        topology: the network.
        select: RANDOM, HASH, ...
        threshold: of UGAL and PROGRESSIVE.

        Raises
        ------
        SpecError: the legs cannot serve the topology.
        """
        return self.by_legs(topology, *self.leg_ports(topology), select, threshold)

    def leg_ports(self, topology: Topology) -> tuple[Masks, int]:
        """The next hops of legs, a table of port sets, and the channels of the longest leg. Raises ``SpecError``.

        Parameters
        ----------
        topology: the network.
        """
        try:
            return self._leg_ports(topology)
        except SpecError as error:
            raise SpecError(f"{self.legs} {error}", key="legs") from error

    def by_legs(self, topology: Topology, ports: Masks, longest: int, select: int, threshold: int = 0) -> Routes:
        """The routes by legs with given next hops.

        Parameters
        ----------
        topology: the network.
        ports: table of port sets, next hops of switch v towards t.
        longest: channels of the longest leg.
        select: RANDOM, HASH, ...
        threshold: of UGAL and PROGRESSIVE.

        Raises
        ------
        SpecError: too many switches, or too long legs.
        """
        if self.legs in ("minimal", "optimal"):
            warn_of_two_global_channels(topology, ports, "legs")
        leg = route_hops(topology, ports)
        if longest > 127 or topology.switches > MAX_SWITCHES:
            raise SpecError("serves at most 2**24 switches at most 127 hops apart", key="kind")
        return Routes(
            self.kind, ports, select, 2 * longest, form=RouteForm.VIA, leg=leg,
            notes={"legs": self.legs, **_intermediate(topology), "hops_mean": mean_hops(topology, leg)},
            threshold=threshold,
            group=router_groups(topology) if self.legs == "dragonfly" else None,
        )  # fmt: skip

    def _leg_ports(self, topology: Topology) -> tuple[Masks, int]:
        if self.legs == "updown":
            return updown_ports(topology)[:2]
        if self.legs in ("minimal", "optimal"):
            return minimal_ports(topology)
        if self.legs == "dragonfly":
            return dragonfly_ports(topology)
        grid = line_grid(topology)
        if grid is None:
            raise SpecError(f"needs the coordinates of a grid, and this {topology.kind} has none (minimal serves it)")
        return dimension_order_ports(topology, grid)


@register("routing", "valiant", aliases=("vlb",))
class Valiant(ViaSpec, PlannedSpec):
    """Every packet goes over an intermediate switch, that of a host drawn uniformly from all hosts.

    It goes there, and on to its destination, by ``legs``: ``minimal``, ``optimal``, ``dor``, ``updown`` or
    ``dragonfly``; equally good next hops are drawn at every hop. ``per: flow`` draws by a hash of the pair of hosts. If
    the drawn switch is the source or the destination, one leg is left. A packet that passes its destination on the
    first leg continues. On a dragonfly, too, a switch is drawn, not a group as in Kim et al. 2008, and legs with at
    most one global channel each are ``dragonfly``.

    ``legs: optimal`` are shortest paths with weighted next hops (8 bits). Whatever hosts send, each leg carries at most
    all-to-all traffic between all hosts, each to itself too, and the weights are those of its maximum concurrent flow
    over shortest paths. So traffic in which no host sends or receives more than one unit reaches at least half of that.
    The notes give ``theta``, what the final tables carry of all-to-all traffic, ``theta_upper``, the limit of any legs,
    and ``worst_case``, the guaranteed load. On small graphs with few shortest paths ``theta`` is up to a tenth below
    ``theta_upper``, more where channels have different capacities.

    ``vc_policy: rising`` (the default where needed) takes as many VCs as the two longest legs have channels together;
    ``legs`` one half of the VCs before and one half after the intermediate switch, enough where each leg needs one (dor
    on a mesh, updown); ``layered`` the layers of the leg, before and after. With ``dragonfly`` legs the default for
    fewer VCs is ``groups``, which needs 4 VCs.

    Example: ``routing: {kind: valiant}``

    Example: ``routing: {kind: valiant, legs: optimal}``

    Example: ``routing: {kind: valiant, legs: updown, vc_policy: legs}``

    Source: Valiant, SIAM J. Computing 11, 1982, doi:10.1137/0211027; Shahrokhi and Matula, J. ACM 37 (1990),
    doi:10.1145/77600.77620 (the flow behind optimal legs).
    """

    per: Literal["packet", "flow"] = "packet"
    """Whether every packet draws its path, or every pair of hosts by a hash."""

    @property
    def weighed(self) -> bool:
        return self.legs == "optimal"

    def demand(self, topology: Topology, traffic: Traffic | None) -> Traffic:
        """The demand of all switches on either leg at load 1, whatever the traffic is."""
        uniform: Traffic = make("traffic", kind="uniform", include_self=True).build(topology)
        return uniform

    def planned(self, topology: Topology, demand: Traffic, weigh: Weigh) -> Routes:
        ports, longest = self.leg_ports(topology)
        weighed = weigh(topology, NextHopPlan(demand, ports, LEGS_GAP))
        assert isinstance(weighed, NextHopWeights)
        routes = self.by_legs(topology, weighed.ports, longest, PER[self.per])
        return replace(routes, port_threshold=weighed.port_threshold, notes={**routes.notes, **weighed.notes})

    def routes(self, topology: Topology) -> Routes:
        return super().routes(topology) if self.weighed else self.over_all(topology, PER[self.per])


def _intermediate(topology: Topology) -> dict[str, str]:
    """The note for a dragonfly, as Kim et al. 2008 draw a group and use any of its switches."""
    return {"intermediate": "a switch, not a group"} if topology.kind == "dragonfly" else {}


def mean_hops(topology: Topology, leg: Bytes) -> float:
    """Mean channels of a route between two hosts drawn uniformly, which may be the same.

    Parameters
    ----------
    topology: the network.
    leg: uint8 [s, t], channels of a leg.
    """
    ends = topology.src_switches
    weight = topology.host_count[ends] if topology.hosts else np.ones(len(ends))
    share = weight / weight.sum()
    return float(2 * share @ leg[np.ix_(ends, ends)] @ share)


def without_mean_hops(routes: Routes) -> Routes:
    """The routes without the note on their mean length, which depends on congestion.

    Parameters
    ----------
    routes: routes on it.
    """
    return replace(routes, notes={name: value for name, value in routes.notes.items() if name != "hops_mean"})
