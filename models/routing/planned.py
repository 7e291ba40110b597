# SPDX-License-Identifier: Apache-2.0
"""Routings optimised for a demand: the problem for a solver, and the routes from its solution.

Models have no solver. A routing states which paths its demand may take (:class:`PathPlan`), or which next hops
(:class:`NextHopPlan`). The caller's solver returns the weights (:class:`PathWeights`, :class:`NextHopWeights`), from
which the routing builds its routes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from flitlab.models.arrays import Bytes, Floats, Ints, Masks, Words
from flitlab.models.jit import njit
from flitlab.models.mappings import Notes
from flitlab.models.paths.bounded import sampled_shortest
from flitlab.models.paths.pathset import PathSet, concatenate
from flitlab.models.registry import SpecError, is_third_party
from flitlab.models.routing.paths import path_table
from flitlab.models.routing.route_set import LAST_WORD, PathTable
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.bits import is_empty, lowest, popcount, without_lowest
from flitlab.models.rules.port_sets import ports_at
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.traffic.validation import validate_traffic

ROUNDING = 1e-6
"""Allowed deviation of the sum of a pair's weights from 1."""


@dataclass(frozen=True, eq=False)
class PathPlan:
    """The paths that a demand may take, and the limits of their weights.

    source, target: int64 [pairs], the different switches with demand, sorted by target and source. hops: the most
    channels of a path. listed: all paths of every pair; None where they are too many to list. keep: used paths per
    pair. entries: weights are multiples of 1 / entries; None: any. gap: relative gap of the solution.
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
    """The next hops that a demand may take, and the accuracy of their weights.

    ports: uint64 [switches, switches], as :class:`~flitlab.models.routing.routes.Routes` has them, acyclic. gap:
    relative gap of the solution.
    """

    demand: Traffic
    ports: Masks
    gap: float


@dataclass(frozen=True, eq=False)
class PathWeights:
    """The used paths of every pair of a plan. weight: float64 [paths], sum 1 per pair; notes: of the solution."""

    paths: PathSet
    weight: Floats
    notes: Notes = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class NextHopWeights:
    """The used next hops: ``ports`` and ``port_threshold`` as routes have them."""

    ports: Masks
    port_threshold: Bytes | None
    notes: Notes = field(default_factory=dict)


Weigh = Callable[[Topology, PathPlan | NextHopPlan], PathWeights | NextHopWeights]
"""The solver of a plan; a plan of next hops has a solution of next hops."""


class PlannedSpec(RoutingSpec):
    """A routing optimised for a demand by a solver.

    It defines :meth:`demand` and :meth:`planned` instead of ``routes``.
    """

    @property
    def weighed(self) -> bool:
        """Whether these keys need weights; otherwise the routing needs no solver."""
        return True

    @property
    def for_scenario(self) -> bool:
        """Whether the routing is optimised for the scenario's demand."""
        return False

    def demand(self, topology: Topology, traffic: Traffic | None) -> Traffic:
        """The demand that the routing is optimised for; traffic: of the scenario, None where there is none.

        Raises ``SpecError`` where there is no such demand.
        """
        raise NotImplementedError

    def validated_demand(self, topology: Topology, traffic: Traffic | None) -> Traffic:
        """The validated result of :meth:`demand` (see :mod:`flitlab.models.traffic`)."""
        if not is_third_party(self):
            return self.demand(topology, traffic)
        with unchanged(topology, self.demand, traffic):
            demand = self.demand(topology, traffic)
        return validate_traffic(topology, demand, copy=True, method="demand")

    def planned(self, topology: Topology, demand: Traffic, weigh: Weigh) -> Routes:
        """The routes for a demand.

        Parameters
        ----------
        topology: the network.
        demand: the traffic that the routing is optimised for.
        weigh: the solver.

        Raises
        ------
        SpecError: the routing cannot serve the demand.
        """
        raise NotImplementedError

    def routes(self, topology: Topology) -> Routes:
        """Raise ``SpecError``: without a demand and a solver there are no routes."""
        raise SpecError(f"{self.kind} is made for a demand before anything runs; on a topology alone it is not defined")


def needs_solver(spec: RoutingSpec) -> TypeGuard[PlannedSpec]:
    """Whether the routes of a specification need a solver."""
    return isinstance(spec, PlannedSpec) and spec.weighed


def thresholds(pair_start: Ints, weight: Floats) -> Words:
    """Draw thresholds of paths from their weights: uint32 [paths].

    The probability of a path is its weight, rounded to 2**-32.

    Parameters
    ----------
    pair_start: int64 [pairs + 1], first path of each pair.
    weight: float64 [paths], sum 1 per pair.

    Raises
    ------
    SpecError: invalid weights.
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
    """``port_threshold`` of routes with equally likely next hops: uint8 [switches, switches, degree].

    Parameters
    ----------
    ports: table of port sets, next hops of switch v towards t.
    degree: the largest number of channels of a switch.
    """
    threshold = np.zeros((len(ports), len(ports), degree), np.uint8)
    for t in range(len(ports)):
        for v in range(len(ports)):
            unassigned, k = ports_at(ports[t], v), 0
            size = popcount(unassigned)
            while not is_empty(unassigned):
                k += 1
                threshold[t, v, lowest(unassigned)] = min((256 * k + size // 2) // size, 255)
                unassigned = without_lowest(unassigned)
    return threshold


def weighted_path_table(
    topology: Topology, pairs: Ints, paths: PathSet, weight: Floats, spare: int, seed: int
) -> PathTable:
    """The table of the paths of all pairs of switches with hosts.

    Pairs without weights have up to ``spare`` shortest paths, equally likely.

    Parameters
    ----------
    topology: the network.
    pairs: int64, different ones, s * switches + t.
    paths: paths of these pairs.
    weight: float64 [paths], sum 1 per pair.
    spare: the most paths of the other pairs.
    seed: of draws.
    """
    n = topology.switches
    bare = _unweighed_pairs(topology, pairs)
    shortest = sampled_shortest(topology, bare // n, bare % n, spare, seed)
    every = np.concatenate([pairs, bare])
    order = np.argsort(every, kind="stable")
    joined, weights = _in_pair_order(paths, shortest, weight, order)
    table = path_table(topology, [(every[order], joined)])
    return table._replace(threshold=thresholds(table.pair_start, weights))


def _unweighed_pairs(topology: Topology, pairs: Ints) -> Ints:
    """The pairs of different switches with hosts, s * switches + t, that are not among ``pairs``: int64."""
    n = topology.switches
    other = np.zeros((n, n), bool)
    other[np.ix_(topology.src_switches, topology.dst_switches)] = True
    np.fill_diagonal(other, False)
    other.ravel()[pairs] = False
    return np.flatnonzero(other)


def _in_pair_order(weighed: PathSet, spare: PathSet, weight: Floats, order: Ints) -> tuple[PathSet, Floats]:
    """Both sets as one whose pair i is pair ``order[i]``, and its weights; those of ``spare`` are equal."""
    counts = np.concatenate([weighed.counts, spare.counts])
    weights = np.concatenate([weight, np.repeat(1 / spare.counts, spare.counts)])
    first = np.cumsum(counts) - counts
    paths = concatenate([weighed, spare], order)
    index = np.repeat(first[order] - paths.pair_start[:-1], paths.counts) + np.arange(len(weights))
    return paths, weights[index]
