# SPDX-License-Identifier: Apache-2.0
"""Topologies improved for a demand by exchanging ends of links."""

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.jit import njit
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, nested, register
from flitlab.models.topology.distances import distances
from flitlab.models.topology.file_delays import notes_of_links, stated_delays
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec, build_nested
from flitlab.models.traffic.traffic import Traffic

HOTTEST = 3e-4
"""First temperature of the annealing, as a share of the sum of loads, for power 1."""

COLDEST = 1e-6
"""Last temperature, likewise."""


@njit
def unbalanced_load(neighbours: Ints, degree: Ints, demand: Floats, power: int) -> float:
    """Sum over all channels of load ** power, if the demand of each pair is split equally over all its shortest paths.

    With power 1 that is the sum of demand times hops. inf where a demand has no path.

    Parameters
    ----------
    neighbours: int64 [switches, most links], those of each switch first.
    degree: int64 [switches], their number.
    demand: float64 [switches, switches], flits/tick.
    power: 1 or more.
    """
    n, total = len(degree), 0.0
    load = np.zeros(neighbours.shape)
    hops, queue, paths, toward = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n)
    for s in range(n):
        hops[:] = -1
        paths[:] = 0.0
        hops[s], queue[0], paths[s], first, last = 0, s, 1.0, 0, 1
        while first < last:
            v = queue[first]
            first += 1
            for k in range(degree[v]):
                u = neighbours[v, k]
                if hops[u] < 0:
                    hops[u] = hops[v] + 1
                    queue[last] = u
                    last += 1
                if hops[u] == hops[v] + 1:
                    paths[u] += paths[v]
        if last < n:
            for t in range(n):
                if demand[s, t] > 0.0 and hops[t] < 0:
                    return np.inf
        if power == 1:
            for t in range(n):
                total += demand[s, t] * max(hops[t], 0)
            continue
        toward[:] = demand[s]  # flow into each switch from s, what passes through included
        for i in range(last - 1, 0, -1):
            v = queue[i]
            each = toward[v] / paths[v]
            for k in range(degree[v]):
                u = neighbours[v, k]
                if hops[u] == hops[v] - 1:
                    load[v, k] += each * paths[u]  # of the channel from u to v
                    toward[u] += each * paths[u]
    if power > 1:
        for v in range(n):
            for k in range(degree[v]):
                total += load[v, k] ** power
    return total


@njit
def _exchange(ends: Ints, slot: Ints, neighbours: Ints, e: int, f: int, crossed: bool) -> bool:
    """Exchange the second end of link e with the first of f (crossed: the second); False, undone, if that is no link.

    Links are then (a, c) and (b, d), of (a, b) and (c, d). The same call undoes it. ends: int64 [links, 2]. slot: int64
    [links, 2], positions in the neighbours of both ends.
    """
    if crossed:
        for table in (ends, slot):
            table[f, 0], table[f, 1] = table[f, 1], table[f, 0]
    a, b, c, d = ends[e, 0], ends[e, 1], ends[f, 0], ends[f, 1]
    valid = a != c and b != d
    for k in range(neighbours.shape[1]):
        valid = valid and neighbours[a, k] != c and neighbours[b, k] != d
    if valid:
        neighbours[a, slot[e, 0]], neighbours[c, slot[f, 0]] = c, a
        neighbours[b, slot[e, 1]], neighbours[d, slot[f, 1]] = d, b
        ends[e, 1], ends[f, 0] = c, b
        slot[e, 1], slot[f, 0] = slot[f, 0], slot[e, 1]
    elif crossed:
        for table in (ends, slot):
            table[f, 0], table[f, 1] = table[f, 1], table[f, 0]
    return bool(valid)


@njit
def anneal(
    ends: Ints, demand: Floats, degree: Ints, picks: Ints, crossed: Bools, luck: Floats, power: int
) -> Ints:  # fmt: skip
    """Exchange ends of links so that the sum of :func:`unbalanced_load` falls, by simulated annealing.

    Parameters
    ----------
    ends: int64 [links, 2]. At most one link joins two switches.
    demand: float64 [switches, switches].
    degree: int64 [switches], links of each.
    picks: int64 [steps, 2], links whose ends are exchanged.
    crossed: bool [steps], which ends.
    luck: float64 [steps], exponentially distributed: an exchange that adds less than this times the temperature is
        kept.
    power: of the loads.

    Returns
    -------
    int64 [links, 2], of the least sum.
    """
    n, links, steps = len(degree), len(ends), len(picks)
    ends, slot, count = ends.copy(), np.empty((links, 2), np.int64), np.zeros(n, np.int64)
    neighbours = np.full((n, degree.max()), -1, np.int64)
    for e in range(links):
        for side in range(2):
            v = ends[e, side]
            slot[e, side] = count[v]
            neighbours[v, count[v]] = ends[e, 1 - side]
            count[v] += 1
    hot = HOTTEST * power  # the first temperature, as a share of the sum; the last one is COLDEST
    cost = unbalanced_load(neighbours, degree, demand, power)
    least, best, scale = cost, ends.copy(), cost
    for i in range(steps):
        e, f = picks[i, 0], picks[i, 1]
        if e == f or not _exchange(ends, slot, neighbours, e, f, crossed[i]):
            continue
        changed = unbalanced_load(neighbours, degree, demand, power)
        if changed - cost <= luck[i] * scale * hot * (COLDEST / hot) ** (i / steps):
            cost = changed
            if cost < least - 1e-12 * scale:
                least, best = cost, ends.copy()
        else:  # (a, c), (b, d) become (a, b), (c, d) again
            _exchange(ends, slot, neighbours, e, f, False)
    return best


@register("topology", "improved")
class Improved(TopologySpec):
    """A topology improved for a demand: ends of links are exchanged so that the loads of shortest paths fall.

    ``of`` is the topology to start from, ``demand`` the traffic on it; a host keeps its switch, and a switch its number
    of links. Simulated annealing: each of ``steps`` takes two links a - b and c - d at random and makes a - c and
    b - d, or a - d and b - c, of them, unless two switches would be linked twice; what increases the sum over all
    channels of load**power is kept the less likely, the later it comes. Loads are those of equal splits over shortest
    paths. The best network is the result. With ``power`` 1 the sum is that of demand times hops, and its least value
    may cut a network into parts with few links between them; 2 balances loads as well. The ceiling ``mcf`` proves what
    is reached. A demand without structure gains least. ``notes`` have the mean hops of the demand before and after.

    Valid: bi-directional links of equal capacity and delay, at most one between two switches; a demand between
    different switches, without a background. 4,000 steps a second with 64 switches of 8 links (power 1: 9,000); the
    time grows with switches times links.

    Example: ``topology: {kind: improved, of: {kind: rrg, n: 16, degree: 4}, steps: 500}``

    Example: ``topology: {kind: improved, of: {kind: torus, dims: [4, 4]}, demand: {kind: shift, by: 5}, steps: 500}``

    Source: Kirkpatrick, Gelatt and Vecchi, Science 220, 1983, doi:10.1126/science.220.4598.671; exchanges of two links
    for short distances: Graph Golf, research.nii.ac.jp/graphgolf.
    """

    of: Keys
    """The topology to start from."""
    demand: Keys = Field(default_factory=lambda: {"kind": "uniform"})
    """The traffic for which it is improved."""
    steps: int = Field(default=50_000, ge=1, le=10**8)
    """Exchanges that are tried."""
    power: int = Field(default=2, ge=1, le=16)
    """Power of the channel loads whose sum is minimised."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        base = build_nested(self.of, "of")
        self._check(base)
        traffic: Traffic = nested("traffic", self.demand, "demand", lambda spec: spec.build(base))
        if traffic.background is not None:
            raise SpecError("has a background, which is not improved for", key="demand")
        source, target, amount = traffic.switch_pairs()
        demand = np.zeros((base.switches, base.switches))
        np.add.at(demand, (source, target), amount)
        if not demand.any():
            raise SpecError("no demand between different switches", key="demand")
        first = np.flatnonzero(base.reverse > np.arange(base.channels))
        ends = np.column_stack([base.src[first], base.dst[first]])
        rng = np.random.default_rng(self.seed)
        picks = rng.integers(0, len(ends), (self.steps, 2))
        crossed, luck = rng.random(self.steps) < 0.5, rng.exponential(size=self.steps)
        degree = np.ascontiguousarray(base.out_degree, np.int64)
        better = anneal(ends, demand, degree, picks, crossed, luck, self.power)
        kept = {key: base.notes[key] for key in ("tiers", "labels", "names") if key in base.notes}
        stated = stated_delays(base)
        columns = {} if stated is None else {"delay_ns": np.full(len(better), stated[0][0])}
        topology = Topology.from_links(
            self.kind, base.switches, better, capacity=base.capacity[0], delay=base.delay[0],
            default_weight=base.default_weight, columns=columns, notes=kept | notes_of_links(base),
        )  # fmt: skip
        hops = [self._mean_hops(one, demand) for one in (base, topology)]
        topology.notes.update(mean_hops_before=hops[0], mean_hops=hops[1])
        return topology.with_hosts(base.host_count, base.host_capacity, base.host_delay)

    @staticmethod
    def _check(base: Topology) -> None:
        pairs = base.src * base.switches + base.dst
        if base.directed or len(np.unique(pairs)) < len(pairs):
            raise SpecError("needs bi-directional links, at most one between two switches", key="of")
        if base.channels < 4:
            raise SpecError("needs two links or more", key="of")
        stated = stated_delays(base)
        if np.ptp(base.capacity) or np.ptp(base.delay) or (stated is not None and np.ptp(stated[0])):
            raise SpecError("needs links of equal capacity and delay", key="of")

    @staticmethod
    def _mean_hops(topology: Topology, demand: Floats) -> float:
        return float((demand * distances(topology)).sum() / demand.sum())
