# SPDX-License-Identifier: Apache-2.0
"""Longest matchings: near-worst-case traffic."""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.optimize import linear_sum_assignment

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import register
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.draw import generator
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec
from flitlab.models.traffic.units import Units

EXACT = 1 << 50
"""Limit up to which sums of a few whole numbers in doubles are exact."""


class Heavy(BaseModel):
    """``percent`` of the flows, drawn at random, have ``weight`` times the demand of the others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    percent: float = Field(ge=0, le=100)
    weight: float = Field(default=10, gt=0, allow_inf_nan=False)


@register("traffic", "longest_matching")
class LongestMatching(TrafficSpec):
    """Every switch sends to one other and receives from one, so that the mean distance is as large as it can be.

    A maximum-weight perfect matching of senders with receivers (the exact optimum of the assignment problem) on
    the distance in hops from one to the other. It joins switches where all that have hosts have equally many, else
    groups of hosts of the largest size that divides all the numbers. The k-th host of a group sends to the k-th host
    of the other. As few as possible are matched within a switch, and those send nothing.

    Several matchings may be equally long, and throughput differs between them. Which of them is taken is random
    (``seed``), by whole numbers too small to matter for the length. ``ties: mirrored`` takes one that leads from as
    many switches i as possible to the i-th from the end, and is random in the rest: where numbers follow the
    structure, neighbours then send to neighbours, as in the matchings of MUT's own solver, and that is harder.
    ``tie_breaks``: number of draws; a ceiling is the least over all, a simulation takes the first. ``heavy``:
    ``percent`` of the flows between switches, drawn at random, are ``weight`` times as large as the others; with one
    seed a larger percent adds to the same flows.
    ``notes`` has the matching as [from switch, to switch, hosts] and its mean distance.

    Example: ``traffic: {kind: longest_matching}``

    Example: ``traffic: {kind: longest_matching, heavy: {percent: 5, weight: 10}, tie_breaks: 3, seed: 1}``

    Example: ``traffic: {kind: longest_matching, ties: mirrored}``

    Source: MUT section II-C; heavy flows: MUT section IV-A, Figs 10-12.
    """

    heavy: Heavy | None = None
    """Flows that are larger than the others, and by how much."""
    ties: Literal["random", "mirrored"] = "random"
    """Which of equally long matchings is taken."""
    tie_breaks: int = Field(default=1, ge=1, le=1000)
    """Matchings that are drawn; a ceiling is the least over all."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def demand(self, topology: Topology) -> Traffic:
        units = Units.of(topology)
        units.validate_size()
        hops = distances(topology)[np.ix_(units.switch, units.switch)]
        first, *others = (self._matching(units, hops, attempt) for attempt in range(self.tie_breaks))
        return replace(first, alternates=tuple(others))

    def _matching(self, units: Units, hops: np.ndarray, attempt: int) -> Traffic:
        rng = generator(self.seed, attempt)
        target = longest_assignment(hops, rng, mirrored=self.ties == "mirrored")
        pairs = np.column_stack([units.switch, units.switch[target]])
        flow, kind = np.unique(pairs, axis=0, return_inverse=True)
        names, hosts = switch_names(units.topology), np.bincount(kind.ravel()) * units.size
        notes = {
            "matching": [[*names.values(ends), count] for ends, count in zip(flow, hosts.tolist(), strict=True)],
            "mean_distance": float(hops[np.arange(units.count), target].mean()),
        }
        weight = self._weights(flow, rng)[kind.ravel()]
        return fixed_traffic(self.kind, units.topology, units.hosts_of(target), np.repeat(weight, units.size), notes)

    def _weights(self, flow: Floats, rng: np.random.Generator) -> Floats:
        """float64 [flows]: weight of each flow [from switch, to switch]."""
        weight = np.ones(len(flow))
        if self.heavy is not None:
            between = rng.permutation(np.flatnonzero(flow[:, 0] != flow[:, 1]))
            weight[between[: round(self.heavy.percent / 100 * len(between))]] = self.heavy.weight
        return weight


def lengths(hops: np.ndarray, units: int, dtype: type = np.int32) -> np.ndarray:
    """Return integer lengths that order assignments of ``units`` pairs by total hops, then by few pairs with 0 hops.

    Parameters
    ----------
    hops: [n, n], distances.
    units: number of pairs in an assignment.
    dtype: element type of the result.
    """
    length: np.ndarray = hops.astype(dtype)
    length *= units + 1
    length += hops > 0
    return length


def longest_assignment(hops: np.ndarray, rng: np.random.Generator | None = None, mirrored: bool = False) -> Ints:
    """Return the permutation p, int64 [n], that maximises the sum of hops[i, p[i]], with most of its terms above 0.

    Exact: doubles represent every sum.

    Parameters
    ----------
    hops: [n, n], distances.
    rng: breaks remaining ties at random, by small integers added to the lengths; None: arbitrary.
    mirrored: among the optima, prefer p[i] = n - 1 - i.
    """
    n = len(hops)
    cost = lengths(hops, n, np.float64)
    if mirrored:
        cost *= n + 1
        cost[np.arange(n), n - 1 - np.arange(n)] += 1
    if rng is not None:
        steps = int(np.clip(EXACT // (n * (cost.max() + 1)), 1, 1 << 16))
        cost *= n * steps
        for row in cost:  # a matrix of random numbers would take as much memory again
            row += rng.integers(0, steps, n, np.uint16)
    np.negative(cost, out=cost)
    assigned: Ints = linear_sum_assignment(cost)[1]
    return assigned
