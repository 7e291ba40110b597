# SPDX-License-Identifier: Apache-2.0
"""Routings that are made for a demand: what they ask of a solver, and what they make of its answer.

Models know no solver. A routing says which paths its demand may take (:class:`Plan`), or which next hops
(:class:`HopPlan`); whoever has a solver says how much goes along each (:class:`Weighed`, :class:`WeighedHops`), and the
routing makes its routes of that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from flitlab.models.arrays import Bytes, Floats, Ints, Masks, Words
from flitlab.models.jit import njit
from flitlab.models.paths.pathset import PathSet
from flitlab.models.registry import SpecError, is_third_party
from flitlab.models.routing.route_set import LAST_WORD
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.sound import unchanged
from flitlab.models.traffic.sound import sound_traffic
from flitlab.models.traffic.traffic import Traffic

ROUNDING = 1e-6
"""By how much the weights of a pair may miss 1 together."""


@dataclass(frozen=True, eq=False)
class PathPlan:
    """Which paths a demand may take, and how they are to be weighed.

    source, target: int64 [pairs], the different switches with demand, sorted by target and source. hops: the most
    channels of a path. listed: all the paths of every pair; None where they are too many to list. keep: how many of
    a pair may be used. entries: weights are multiples of 1 / entries; None: any. gap: relative, of the solution.
    """

    demand: Traffic
    source: Ints
    target: Ints
    hops: int
    listed: PathSet | None
    keep: int
    entries: int | None
    gap: float


@dataclass(frozen=True, eq=False)
class NextHopPlan:
    """Which next hops a demand may take, and how near to the best their weights are to come.

    ports: uint64 [switches, switches], as :class:`~flitlab.models.routing.routes.Routes` has them, without a cycle.
    gap: relative, of the solution.
    """

    demand: Traffic
    ports: Masks
    gap: float


@dataclass(frozen=True, eq=False)
class PathWeights:
    """The paths of every pair of a plan that are used. weight: float64 [paths], of a pair 1 together; notes: of how."""

    paths: PathSet
    weight: Floats
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class NextHopWeights:
    """Next hops that are used, in place of paths: ``ports`` and ``port_threshold`` as routes have them."""

    ports: Masks
    port_threshold: Bytes | None
    notes: dict[str, Any] = field(default_factory=dict)


Weigh = Callable[[Topology, PathPlan | NextHopPlan], PathWeights | NextHopWeights]
"""What solves a plan; one of next hops always by next hops."""


class PlannedSpec(RoutingSpec):
    """A routing made for a demand by a solver. It defines :meth:`demand` and :meth:`planned` in place of ``routes``."""

    @property
    def weighed(self) -> bool:
        """Whether these keys ask for weights; otherwise the routing is one like any other."""
        return True

    @property
    def for_scenario(self) -> bool:
        """Whether it is the scenario's demand that the routing is made for."""
        return False

    def demand(self, topology: Topology, traffic: Traffic | None) -> Traffic:
        """The demand that the routing is made for; traffic: that of the scenario, None where there is none.

        Raises ``SpecError`` where there is no such demand.
        """
        raise NotImplementedError

    def validated_demand(self, topology: Topology, traffic: Traffic | None) -> Traffic:
        """What :meth:`demand` gives: a demand of these hosts (see :mod:`flitlab.models.traffic.sound`)."""
        if not is_third_party(self):
            return self.demand(topology, traffic)
        with unchanged(topology, self.demand, traffic):
            demand = self.demand(topology, traffic)
        return sound_traffic(topology, demand, copy=True, by="demand")

    def planned(self, topology: Topology, demand: Traffic, weigh: Weigh) -> Routes:
        """The routes for a demand. Raises ``SpecError`` where the routing cannot serve it."""
        raise NotImplementedError

    def routes(self, topology: Topology) -> Routes:
        """Raises ``SpecError``: without a demand and a solver there are no such routes."""
        raise SpecError(f"{self.kind} is made for a demand before anything runs; on a topology alone it is not defined")


def needs_solver(spec: RoutingSpec) -> TypeGuard[PlannedSpec]:
    """Whether the routes that a specification asks for take a solver."""
    return isinstance(spec, PlannedSpec) and spec.weighed


def thresholds(pair_start: Ints, weight: Floats) -> Words:
    """uint32 [paths]: what draws of 32 bits are compared with, for weights [paths] of which each pair's add up to 1.

    pair_start: int64 [pairs + 1]. The probability of a path is its weight, rounded to 2**-32. Raises ``SpecError`` for
    weights that are none.
    """
    counts = np.diff(pair_start)
    pair = np.repeat(np.arange(len(counts)), counts)
    if len(weight) != len(pair) or not (weight >= 0).all():
        raise SpecError("every path must have a weight, and none may be negative")
    if np.abs(np.bincount(pair, weight, len(counts))[counts > 0] - 1).max(initial=0.0) > ROUNDING:
        raise SpecError("the weights of the paths of a pair must add up to 1")
    words = np.maximum(np.rint(weight * (LAST_WORD + 1.0)).astype(np.int64), 1)
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(words)])
    upper = total[1:] - np.repeat(total[pair_start[:-1]], counts)
    upper[pair_start[1:][counts > 0] - 1] = LAST_WORD
    below: Words = upper.astype(np.uint32)
    return below


@njit
def equal_thresholds(ports: Masks, degree: int) -> Bytes:
    """uint8 [switches, switches, degree]: ``port_threshold`` of routes whose next hops are drawn alike.

    ports: uint64 [switches, switches], sets of ports. degree: the largest number of channels out of a switch.
    """
    threshold = np.zeros((*ports.shape, degree), np.uint8)
    for t in range(len(ports)):
        for v in range(len(ports)):
            unassigned, size, k = ports[t, v], popcount(ports[t, v]), 0
            while unassigned != 0:
                k += 1
                threshold[t, v, lowest(unassigned)] = min((256 * k + size // 2) // size, 255)
                unassigned &= unassigned - np.uint64(1)
    return threshold
