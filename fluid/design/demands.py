# SPDX-License-Identifier: Apache-2.0
"""Demands of a design: flows between switches, and collectives, both as a share of the rate of hosts."""

import json
import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from flitlab.fluid.collective.bounds import bounds
from flitlab.fluid.design.bounds import Network, Upper
from flitlab.fluid.hosts import host_bound
from flitlab.fluid.kinds.collective import CollectiveCeiling
from flitlab.fluid.mcf.choose import solve
from flitlab.models.arrays import Floats
from flitlab.models.collective.schedule import KINDS
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, make

COLLECTIVE = "collective"
"""The kind of demands that are collectives; every other one is a traffic."""


class Ends(NamedTuple):
    """A certified interval of theta, and the name of the proof of its upper end."""

    lower: float
    upper: float
    proof: str


Memo = MutableMapping[str, Ends]
"""What was solved before: key -> ends."""


@dataclass(frozen=True, eq=False)
class Flow:
    """A demand between the switches of a network. demand: float64 [switches, switches]. at_hosts: what hosts allow."""

    network: Network
    demand: Floats
    at_hosts: float

    def upper(self) -> Upper:
        """The least bound that takes no solver."""
        return self.network.upper(self.demand).least(Upper(self.at_hosts, "rate of hosts"))

    def solve(self, gap: float, refuted: float) -> Ends:
        """Both ends. gap: at which the search ends. refuted: it also ends where theta is not larger."""
        if not self.demand.any():  # hosts of one switch
            return Ends(self.at_hosts, self.at_hosts, "rate of hosts")
        solution = solve(self.network.problem(self.demand), gap, "approx", self.at_hosts, refuted)
        return Ends(min(solution.lower, self.at_hosts), solution.upper, "channel prices")


@dataclass(frozen=True, eq=False)
class CollectiveTime:
    """A collective of all hosts. theta: least time with infinite links between switches over the time of the network.

    That is the bus bandwidth of any algorithm as a share of the rate of hosts.
    """

    network: Network
    kind: str
    spec: CollectiveCeiling

    def upper(self) -> Upper:
        """The bound by the channels of hosts."""
        return Upper(1.0, "rate of hosts")

    def solve(self, gap: float, refuted: float) -> Ends:
        """Both ends: a set of hosts that needs the time, and trees that take it; 0 where no trees are known."""
        collective = self.spec.collective_of(self.spec.of[0])
        known = bounds(self.network.topology, collective, gap)
        ranks, kind = self.network.topology.hosts, KINDS[self.kind]
        best = kind.bus(ranks) / kind.share(ranks)  # units over a channel of a host
        upper = outwards(best / known.lower.time, math.inf) if known.lower.time else math.inf
        lower = outwards(best / known.upper[0], 0.0) if known.upper and known.upper[0] else 0.0
        return Ends(lower, upper, f"{known.lower.by} of {self.kind}")


def outwards(value: Fraction, toward: float) -> float:
    """A number, rounded in one direction if it must be rounded. toward: 0 or inf."""
    near = float(value)
    if Fraction(near) == value or (Fraction(near) > value) == (toward > near):
        return near
    return math.nextafter(near, toward)


@dataclass(frozen=True)
class DesignDemand:
    """A demand of a design. traffic: its keys. floor: theta that a network must reach. weight: in the score; a demand
    of weight 0 is reported and strikes nothing.
    """

    name: str
    traffic: Keys
    floor: float = 0.0
    weight: float = 1.0

    @property
    def closed(self) -> Literal["uniform", "worst", ""]:
        """Which closed forms bound it."""
        if self.traffic in ({"kind": "uniform"}, {"kind": "all_to_all"}):
            return "uniform"
        return "worst" if self.traffic == {"kind": "worst_matching"} else ""

    @property
    def is_collective(self) -> bool:
        """Whether it is a collective."""
        return bool(self.traffic["kind"] == COLLECTIVE)

    def on(self, network: Network) -> "Flow | CollectiveTime":
        """The demand on a network. Raises ``SpecError`` if its hosts cannot have it."""
        if self.closed == "uniform":
            return Flow(network, network.uniform(), 1.0)
        if self.closed == "worst":
            return Flow(network, network.worst(), 1.0)
        if self.is_collective:
            spec = collective_spec(self.traffic)
            return CollectiveTime(network, spec.of[0], spec)
        traffic = make("traffic", **self.traffic).build(network.topology)
        source, target, amount = traffic.switch_pairs()
        demand = np.zeros((network.topology.switches,) * 2)
        np.add.at(demand, (source, target), amount)
        return Flow(network, demand, host_bound(network.topology, traffic))

    def ends(self, network: Network, gap: float, refuted: float = 0.0, memo: Memo | None = None) -> Ends:
        """Both ends of theta on a network, from the memory if they are there.

        Parameters
        ----------
        network : Network
            One plane.
        gap, refuted : float
            See :meth:`Flow.solve`.
        memo : mapping or None
            What was solved before; grows.
        """
        key = json.dumps([network.topology.content_hash, self.traffic, gap, refuted], sort_keys=True)
        known = None if memo is None else memo.get(key)
        if known is None:
            known = self.on(network).solve(gap, refuted)
            if memo is not None:
                memo[key] = known
        return known


def collective_spec(keys: Keys) -> CollectiveCeiling:
    """The collective of a demand: the keys of the ceiling of this kind, between hosts.

    Raises ``SpecError`` unless it is one collective of hosts of equal amounts.
    """
    spec: CollectiveCeiling = make("ceiling", **{"ranks": "hosts", "of": "all_reduce", **keys})
    if len(spec.of) > 1:
        raise SpecError("must be one collective: list each as a demand with a name", key="of")
    if spec.ranks != "hosts":
        raise SpecError("must be hosts: networks differ in their switches", key="ranks", choices=["hosts"])
    if spec.amounts is not None:
        raise SpecError("must be left out: all hosts have the same amount", key="amounts")
    return spec
