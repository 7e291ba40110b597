# SPDX-License-Identifier: Apache-2.0
"""Growing sets of paths per commodity, and compiled passes that balance flow over them.

A path without channels means unserved demand, at cost 1; only ``total`` has such paths.
"""

from typing import NamedTuple

import numpy as np

from flitlab.fluid.graph import Demand, Graph
from flitlab.fluid.pricing import PricedPaths
from flitlab.models.arrays import Floats, Int, Ints, Ints32, sums
from flitlab.models.jit import kernel, njit
from flitlab.models.routing.routes import PathTable

MAX_PATHS_PER_PAIR = 40
"""Limit of the paths per commodity, where there are many commodities."""
MAX_PATHS = 2_000_000
"""Limit of all paths, where it is larger: to fill many channels a commodity needs as many paths."""
MAX_LOG_STEP = 1.5
"""Largest change of the logarithm of a weight in one shift."""


class Paths(NamedTuple):
    """Paths of commodity k: first[k]:first[k + 1]; channels of path p: channel[start[p]:start[p + 1]].

    first: int64 [commodities + 1]. start: int64 [paths + 1]. channel: int32, from source to destination. flow: float64
    [paths], flits/tick.
    """

    first: Ints
    start: Ints
    channel: Ints32
    flow: Floats

    @classmethod
    def none(cls, commodities: int) -> "Paths":
        """An empty set of paths."""
        return cls(np.zeros(commodities + 1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))

    @classmethod
    def unserved(cls, amount: Floats) -> "Paths":
        """One path without channels per commodity, with all its demand. amount: float64 [commodities]."""
        count = len(amount)
        return cls(np.arange(count + 1), np.zeros(count + 1, np.int64), np.zeros(0, np.int32), amount.copy())

    @property
    def commodity(self) -> Ints:
        """int64 [paths]: the commodity of every path."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @property
    def hops(self) -> Ints:
        """int64 [paths]: number of channels of every path."""
        return np.diff(self.start)

    def carrying(self) -> "Paths":
        """The paths that have channels and carry flow."""
        carries = (self.hops > 0) & (self.flow > 0)
        first = np.searchsorted(self.commodity[carries], np.arange(len(self.first)))
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.hops[carries])])
        return Paths(first, start, self.channel[np.repeat(carries, self.hops)], self.flow[carries])

    def load(self, channels: int) -> Floats:
        """float64 [channels]: the flow on every channel."""
        return sums(self.channel, np.repeat(self.flow, self.hops), channels)


@njit
def _channels(
    table: PathTable, out_start: Ints, dst: Ints, source: Ints, target: Ints, first: Ints, start: Ints, channel: Ints32
) -> tuple[int, int]:  # fmt: skip
    """Fill first and, unless they are empty, start and channel of the paths of every commodity; returns both sizes."""
    switches, count, size = len(out_start) - 1, 0, 0
    for k in range(len(source)):
        pair = source[k] * switches + target[k]
        for p in range(table.pair_start[pair], table.pair_start[pair + 1]):
            v = source[k]
            for i in range(table.path_start[p], table.path_start[p + 1]):
                c = out_start[v] + np.int64(table.port[i])
                v = dst[c]
                if len(channel) > 0:
                    channel[size] = c
                size += 1
            count += 1
            if len(start) > 0:
                start[count] = size
        first[k + 1] = count
    return count, size


def paths_of(table: PathTable, graph: Graph, demand: Demand) -> Paths:
    """The paths of a routing for each commodity, with the demand split by their weights as flow.

    Parameters
    ----------
    table : PathTable
        Paths of all pairs of switches.
    graph : Graph
        The graph.
    demand : Demand
        Commodities.
    """
    first = np.zeros(demand.size + 1, np.int64)
    ends = (table, graph.out_start, graph.dst, demand.source, demand.destination, first)
    count, size = _channels(*ends, np.zeros(0, np.int64), np.zeros(0, np.int32))
    start, channel = np.zeros(count + 1, np.int64), np.zeros(size, np.int32)
    _channels(*ends, start, channel)
    number = np.diff(first)
    if not len(table.threshold):
        return Paths(first, start, channel, np.repeat(demand.amount / np.maximum(number, 1), number))
    own = table.pair_start[demand.source * graph.nodes + demand.destination]
    share = table.shares[np.repeat(own - first[:-1], number) + np.arange(count)]
    return Paths(first, start, channel, np.repeat(demand.amount, number) * share)


class _Loads(NamedTuple):
    """Arrays [channels] of :func:`balance`.

    scale: float64, alpha / capacity. load, z: float64. mark: int64, of the channels of a path, a number.
    """

    scale: Floats
    load: Floats
    z: Floats
    mark: Ints


@kernel
def _cost(paths: Paths, p: int, z: Floats) -> float:
    cost = 0.0
    for i in range(paths.start[p], paths.start[p + 1]):
        cost += z[paths.channel[i]]
    return cost if paths.start[p + 1] > paths.start[p] else 1.0


@kernel
def _shift(paths: Paths, p: int, best: int, stamp: Int, loads: _Loads) -> None:
    """Move flow from path p to ``best``, whose channels are marked ``stamp``: one Newton step of bounded size."""
    scale, z, mark = loads.scale, loads.z, loads.mark
    gain, curvature, steepest = 0.0, 0.0, 0.0
    for i in range(paths.start[p], paths.start[p + 1]):
        a = paths.channel[i]
        if mark[a] == stamp:
            mark[a] = stamp + 1  # shared by both paths: its load does not change
        else:
            gain += z[a]
            curvature += z[a] * scale[a]
            steepest = max(steepest, scale[a])
    if paths.start[p] == paths.start[p + 1]:
        gain = 1.0
    for i in range(paths.start[best], paths.start[best + 1]):
        a = paths.channel[i]
        if mark[a] == stamp:
            gain -= z[a]
            curvature += z[a] * scale[a]
            steepest = max(steepest, scale[a])
    if paths.start[best] == paths.start[best + 1]:
        gain -= 1.0
    step = min(paths.flow[p], gain / curvature, MAX_LOG_STEP / steepest) if gain > 0.0 else 0.0
    if step > 0.0:
        paths.flow[p] -= step
        paths.flow[best] += step
        _put(paths, p, -step, stamp + 1, loads)
        _put(paths, best, step, stamp + 1, loads)
    for i in range(paths.start[best], paths.start[best + 1]):
        mark[paths.channel[i]] = stamp


@kernel
def _put(paths: Paths, p: int, amount: float, skip: int, loads: _Loads) -> None:
    """Add ``amount`` to the channels of path p that are not marked ``skip``, and update z exponentially."""
    scale, load, z, mark = loads
    last, factor = 0.0, 1.0
    for i in range(paths.start[p], paths.start[p + 1]):
        a = paths.channel[i]
        if mark[a] != skip:
            load[a] += amount
            if scale[a] != last:
                last = scale[a]
                factor = np.exp(amount * last)
            z[a] *= factor


@kernel
def _balance(paths: Paths, order: Ints, passes: int, tolerance: float, loads: _Loads, cost: Floats) -> None:
    stamp = np.int64(0)
    for _ in range(passes):
        for k in order:
            low, high = paths.first[k], paths.first[k + 1]
            if high - low < 2:
                continue
            best = low
            for p in range(low, high):
                cost[p - low] = _cost(paths, p, loads.z)
                if cost[p - low] < cost[best - low]:
                    best = p
            enough = (1 + tolerance) * cost[best - low]
            stamp += 2
            for i in range(paths.start[best], paths.start[best + 1]):
                loads.mark[paths.channel[i]] = stamp
            for p in range(low, high):
                if paths.flow[p] > 0.0 and cost[p - low] > enough:
                    _shift(paths, p, best, stamp, loads)


@njit
def balance(
    graph: Graph, paths: Paths, order: Ints, alpha: float, passes: int, tolerance: float, load: Floats, z: Floats
) -> None:
    """Shift flow of each commodity from expensive paths to its cheapest one.

    The potential is the sum over channels of capacity * z / alpha, with z = exp(alpha * load / capacity) up to
    constants.

    Parameters
    ----------
    graph : Graph
        The graph.
    paths : Paths
        ``flow`` is updated.
    order : int64 [commodities]
        Order of the commodities.
    alpha : float
        Sharpness of the exponential.
    passes : int
        Passes over all commodities.
    tolerance : float
        Relative difference of costs below which paths are not changed.
    load : float64 [channels]
        Load of the flow; updated.
    z : float64 [channels]
        Prices; updated.
    """
    mark = np.zeros(len(graph.capacity), np.int64)
    most = 0
    for k in range(len(order)):
        most = max(most, paths.first[k + 1] - paths.first[k])
    _balance(paths, order, passes, tolerance, _Loads(alpha / graph.capacity, load, z, mark), np.empty(most))


@njit
def extend(paths: Paths, priced: PricedPaths, purge: bool, amount: Floats) -> tuple[Ints, Ints, Ints32, Floats]:
    """New path arrays with the priced paths added.

    Parameters
    ----------
    paths : Paths
        Present paths.
    priced : PricedPaths
        At most one path per commodity; ignored where a commodity has MAX_PATHS_PER_PAIR paths, or its share of
        MAX_PATHS.
    purge : bool
        Remove paths without flow, except those without channels, which no search would generate again.
    amount : float64 [commodities]
        Flow of the new paths.

    Returns
    -------
    tuple
        first, start, channel and flow of :class:`Paths`.
    """
    commodities = len(amount)
    most = max(MAX_PATHS_PER_PAIR, MAX_PATHS // max(commodities, 1))
    first = np.zeros(commodities + 1, np.int64)
    start = np.zeros(len(paths.flow) + commodities + 1, np.int64)
    channel = np.empty(len(paths.channel) + len(priced.channel), np.int32)
    flow = np.empty(len(paths.flow) + commodities)
    count, size = 0, 0
    for k in range(commodities):
        for p in range(paths.first[k], paths.first[k + 1]):
            if not purge or paths.flow[p] > 0.0 or paths.start[p] == paths.start[p + 1]:
                for i in range(paths.start[p], paths.start[p + 1]):
                    channel[size] = paths.channel[i]
                    size += 1
                flow[count] = paths.flow[p]
                count += 1
                start[count] = size
        if priced.start[k] < priced.start[k + 1] and count - first[k] < most:
            for i in range(priced.start[k], priced.start[k + 1]):
                channel[size] = priced.channel[i]
                size += 1
            flow[count] = amount[k]
            count += 1
            start[count] = size
        first[k + 1] = count
    return first, start[: count + 1].copy(), channel[:size].copy(), flow[:count].copy()


@njit
def cheapest(paths: Paths, z: Floats) -> Floats:
    """Cost of every commodity's cheapest path.

    Parameters
    ----------
    paths : Paths
        The paths.
    z : float64 [channels]
        Prices.

    Returns
    -------
    float64 [commodities]
        inf without a path.
    """
    cost = np.full(len(paths.first) - 1, np.inf)
    for k in range(len(cost)):
        for p in range(paths.first[k], paths.first[k + 1]):
            cost[k] = min(cost[k], _cost(paths, p, z))
    return cost


@njit
def _trim(paths: Paths, excess: Floats) -> Floats:
    flow = np.zeros(len(paths.flow))
    for p in range(len(flow)):
        most = 1.0
        for i in range(paths.start[p], paths.start[p + 1]):
            most = max(most, excess[paths.channel[i]])
        if paths.start[p + 1] > paths.start[p]:
            flow[p] = paths.flow[p] / most
    return flow


def trimmed(paths: Paths, excess: np.ndarray) -> Paths:
    """Feasible path flows: each divided by the largest overload on its path.

    Parameters
    ----------
    paths : Paths
        The paths.
    excess : float64 [channels]
        load / capacity, at least 1.
    """
    return paths._replace(flow=_trim(paths, excess))
