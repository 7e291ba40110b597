# SPDX-License-Identifier: Apache-2.0
"""Dense demands that fit on shortest paths: splits by channel weights, scaled until no channel is overloaded.

Where capacity over demand * hops is a tight bound, as for all-to-all on random regular graphs, some flow over paths of
least total 1 / capacity loads all channels equally. It is sought among the flows that split demand in proportion to the
product of channel weights along each path: one number per channel describes them all.

Sources: Dial, Transp. Res. 5 (1971), doi:10.1016/0041-1647(71)90012-8 (such splits, without listing paths); Darroch and
Ratcliff, Ann. Math. Stat. 43 (1972), doi:10.1214/aoms/1177692379 (scaling to given sums); Anderson, J. ACM 12 (1965),
doi:10.1145/321296.321305 (acceleration by earlier steps).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from flitlab.fluid.bidirectional import new_search, reset_search
from flitlab.fluid.delivered import SparseFlow, delivering_load_sparse
from flitlab.fluid.graph import Dags, Demand, Graph, blocks
from flitlab.fluid.problem import Problem
from flitlab.fluid.trees import alike, allows, tree
from flitlab.models.arrays import Bytes, Floats, Ints, Ints32, Masks, PortSet
from flitlab.models.jit import njit
from flitlab.models.rules.bits import empty_set, with_port
from flitlab.models.rules.port_sets import ports_at, set_ports
from flitlab.models.threads import parallel_map

STEP = 2.0
"""Power of the overload by which a channel's weight falls: a share of its flow has no other path."""
REMEMBERED = 3
"""Earlier steps that Anderson acceleration uses."""
LEAST_USE = 1e-3
"""Use of a channel, relative to the bound, below which its weight rises no faster."""
LARGEST = float(np.log(1e6))
"""Largest logarithm of a weight: what the gap leaves free is not pursued further."""
LISTED = 200_000_000
"""Channels of shortest-path DAGs, over all destinations, that are cached (4 bytes each); others are recomputed."""


T = TypeVar("T")


class ShortestDags(NamedTuple):
    """Shortest-path DAGs toward some targets: the channels toward the i-th are channel[start[i]:start[i + 1]].

    Channels are grouped by source; sources nearer to the target come first. start: int64 [targets + 1]. channel: int32.
    """

    start: Ints
    channel: Ints32


@njit
def _shortest_dags(graph: Graph, target: Ints, dags: Dags, length: Floats) -> tuple[Ints, Ints32]:
    nodes, level = len(graph.in_start) - 1, alike(length)
    search, order = new_search(nodes, len(length)), np.empty(nodes, np.int32)
    start = np.zeros(len(target) + 1, np.int64)
    channel = np.empty(3 * nodes * len(target) + len(length), np.int32)
    size = 0
    for i in range(len(target)):
        t = target[i]
        if size + len(length) > len(channel):
            channel = np.concatenate((channel, np.empty_like(channel)))
        reached = tree(graph, dags, t, length, level, search, order)
        for j in range(1, reached):
            v = order[j]
            for a in range(graph.out_start[v], graph.out_start[v + 1]):
                far = search.distance[graph.dst[a]]
                # tolerance: sums in another order differ by rounding; no branch, since it would be mispredicted
                shortest = (far < search.distance[v]) & (far + length[a] <= search.distance[v] * (1 + 1e-12))
                channel[size] = a
                size += shortest & allows(graph, dags, t, v, a)
        reset_search(search, reached)
        start[i + 1] = size
    return start, channel[:size].copy()


@njit
def _spread(graph: Graph, demand: Demand, dags: ShortestDags, weight: Floats, load: Floats, flow: Floats) -> None:
    """Add the load of all demands for the targets of ``dags``.

    flow: float64 [channels of the DAGs, or 0], set to the flow of each of these channels toward its target.
    """
    nodes = len(graph.in_start) - 1
    value, carried = np.zeros(nodes), np.zeros(nodes)
    for i in range(len(dags.start) - 1):
        begin, end = dags.start[i], dags.start[i + 1]
        value[:] = 0.0
        carried[:] = 0.0
        value[demand.target[i]] = 1.0  # sum over paths of the product of weights
        for j in range(begin, end):
            a = dags.channel[j]
            value[graph.src[a]] += weight[a] * value[graph.dst[a]]
        for k in range(demand.start[i], demand.start[i + 1]):
            carried[demand.source[k]] = demand.amount[k]
        u, rate = -1, 0.0
        for j in range(end - 1, begin - 1, -1):
            a = dags.channel[j]
            if graph.src[a] != u:
                u = graph.src[a]
                rate = carried[u] / value[u]
            if rate > 0.0:
                amount = rate * weight[a] * value[graph.dst[a]]
                carried[graph.dst[a]] += amount
                load[a] += amount
                if len(flow) > 0:
                    flow[j] = amount


class PathSplit:
    """The shortest paths of a problem under lengths 1 / capacity, and the flows that channel weights define on them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._listed: dict[int, ShortestDags] = {}
        self._budget = LISTED

    def each(self, call: Callable[[Demand, ShortestDags], T]) -> Iterator[T]:
        """Results of a function of the demand and the DAGs of a few destinations at a time, in their order."""
        demand = self.problem.compact_demand

        def of_block(ends: tuple[int, int]) -> T:
            part = demand.part(*ends)
            return call(part, self._dags(ends[0], part.target))

        return parallel_map(of_block, blocks(demand))

    def _dags(self, low: int, target: Ints) -> ShortestDags:
        dags = self._listed.get(low)
        if dags is None:
            graph = self.problem.graph
            dags = ShortestDags(*_shortest_dags(graph, target, self.problem.dags, 1 / graph.capacity))
            if len(dags.channel) <= self._budget:
                self._budget -= len(dags.channel)
                self._listed[low] = dags
        return dags

    def load(self, weight: np.ndarray) -> Floats:
        """float64 [channels]: the load if demand is split by the products of weights (float64 [channels])."""
        graph = self.problem.graph

        def of_part(part: Demand, dags: ShortestDags) -> Floats:
            load = np.zeros(graph.channels)
            _spread(graph, part, dags, weight, load, np.zeros(0))
            return load

        return _sum(self.each(of_part), graph.channels)

    def flow(self, weight: np.ndarray) -> Iterator[SparseFlow]:
        """The flow of the split by weights (float64 [channels]), a few destinations at a time."""
        return self.each(partial(self._rows, weight))

    def carried(self, weight: np.ndarray) -> Floats:
        """float64 [channels]: a load at which the split by weights (float64 [channels]) certainly delivers the
        demand.
        """
        return _sum(
            self.each(lambda part, dags: delivering_load_sparse(self.problem, part, self._rows(weight, part, dags))),
            self.problem.graph.channels,
        )

    def _rows(self, weight: np.ndarray, part: Demand, dags: ShortestDags) -> SparseFlow:
        graph, amount = self.problem.graph, np.zeros(len(dags.channel))
        _spread(graph, part, dags, weight, np.zeros(graph.channels), amount)
        return SparseFlow(dags.start, dags.channel, amount)


def _sum(loads: Iterable[Floats], channels: int) -> Floats:
    total = np.zeros(channels)
    for load in loads:
        total += load
    return total


def scaled_weights(split: PathSplit, gap: float, enough: float) -> np.ndarray | None:
    """Channel weights whose flow comes within ``gap`` of the bound by lengths 1 / capacity; None if not found.

    Parameters
    ----------
    split : Split
        Shortest paths of the problem.
    gap : float
        Relative gap.
    enough : float
        Theta that suffices, whatever the gap.

    Returns
    -------
    float64 [channels] or None
        None usually means that there are no such weights.
    """
    scaled = nearest_weights(split, gap, enough)
    return scaled.weight if scaled.excess <= gap or scaled.theta >= enough else None


class Scaled(NamedTuple):
    """Channel weights, the theta of their flow, and the relative excess of the bound by lengths 1 / capacity over
    it.
    """

    weight: Floats
    theta: float
    excess: float


def nearest_weights(split: PathSplit, gap: float, enough: float, rounds: int = 100) -> Scaled:
    """The channel weights of the largest theta in an iteration, which ends when three rounds hardly improve it.

    Parameters
    ----------
    split : Split
        Shortest paths of the problem.
    gap : float
        Relative gap at which it ends.
    enough : float
        Theta at which it ends.
    rounds : int
        Limit of the iterations.
    """
    capacity = split.problem.graph.capacity
    logs, steps = [np.zeros(len(capacity))], []  # logarithms of weights, and their steps
    excess = [np.inf] * 3
    best = Scaled(np.ones(len(capacity)), 0.0, np.inf)
    for _ in range(rounds):
        weight = np.exp(logs[-1])
        use = split.load(weight) / capacity
        if not np.isfinite(use).all():
            break  # products of weights along long paths overflow
        # all splits over shortest paths have the same mean use, the least of any flow
        mean = use.mean()
        excess.append(float(use.max() / mean) - 1)
        if excess[-1] < best.excess:
            best = Scaled(weight, float(1 / use.max()), excess[-1])
        if excess[-1] <= gap or 1 / use.max() >= enough or excess[-1] > 0.9 * excess[-4]:
            break
        steps.append(-STEP * np.log(np.maximum(use / mean, LEAST_USE)))
        logs.append(np.minimum(_mixed(logs, steps), LARGEST))
        logs, steps = logs[-REMEMBERED - 1 :], steps[-REMEMBERED:]
    return best


def _mixed(points: list[Floats], steps: list[Floats]) -> Floats:
    """The next point by Anderson acceleration: the combination of earlier steps with the least residual, if all is
    linear.

    Sums do not use BLAS, whose threads would change the last digits.
    """
    moved = [after - before for before, after in pairwise(points)]
    learned = [after - before for before, after in pairwise(steps)]
    gram = np.array([[float((a * b).sum()) for b in learned] for a in learned]).reshape(len(learned), len(learned))
    share = np.linalg.lstsq(gram, np.array([float((a * steps[-1]).sum()) for a in learned]), rcond=None)[0]
    mixed = points[-1] + steps[-1]
    for part, x, f in zip(share, moved, learned, strict=True):
        mixed = mixed - part * (x + f)
    return mixed


def port_thresholds(split: PathSplit, weight: Floats, entries: int, ports: Masks, threshold: Bytes) -> None:
    """Write the split by channel weights to tables of next hops, for every target of the demand.

    Parameters
    ----------
    split : Split
        Shortest paths of the problem.
    weight : float64 [channels]
        Channel weights.
    entries : int
        Shares are multiples of 1 / entries; at most 256.
    ports : table of port sets
        Next hops; written.
    threshold : uint8 [nodes, nodes, ports]
        See ``port_threshold`` of :class:`~flitlab.models.routing.routes.Routes`; written.
    """
    graph = split.problem.graph
    for _ in split.each(lambda part, dags: _write_thresholds(graph, part, dags, weight, entries, ports, threshold)):
        pass


@njit
def _write_thresholds(
    graph: Graph, demand: Demand, dags: ShortestDags, weight: Floats, entries: int, ports: Masks, threshold: Bytes
) -> None:
    nodes = len(graph.in_start) - 1
    value, share = np.zeros(nodes), np.empty(threshold.shape[2])
    for i in range(len(dags.start) - 1):
        t = demand.target[i]
        value[:] = 0.0
        value[t] = 1.0
        begin = dags.start[i]
        while begin < dags.start[i + 1]:
            u, end = graph.src[dags.channel[begin]], begin
            while end < dags.start[i + 1] and graph.src[dags.channel[end]] == u:
                share[end - begin] = weight[dags.channel[end]] * value[graph.dst[dags.channel[end]]]
                value[u] += share[end - begin]
                end += 1
            share[: end - begin] *= entries / value[u]
            port = dags.channel[begin:end] - graph.out_start[u]
            none = empty_set(ports_at(ports[t], u))
            set_ports(ports[t], u, _rounded(port, share, entries, threshold[t, u], none))
            begin = end


@njit
def flow_thresholds(graph: Graph, target: Ints, flow: Floats, entries: int, ports: Masks, threshold: Bytes) -> None:
    """Write the split of a flow by destination to tables of next hops, like :func:`port_thresholds`.

    Parameters
    ----------
    graph : Graph
        The graph.
    target : int64 [targets]
        Destinations.
    flow : float64 [targets, channels]
        Flow; switches without flow toward a destination keep their entries.
    entries : int
        Shares are multiples of 1 / entries; at most 256.
    ports : table of port sets
        Written.
    threshold : uint8 [nodes, nodes, ports]
        Written.
    """
    port, share = np.empty(threshold.shape[2], np.int64), np.empty(threshold.shape[2])
    for i in range(len(target)):
        t = target[i]
        for v in range(len(ports)):
            count, whole = 0, 0.0
            for a in range(graph.out_start[v], graph.out_start[v + 1]):
                if flow[i, a] > 0.0 and v != t:
                    port[count], share[count] = a - graph.out_start[v], flow[i, a]
                    whole += flow[i, a]
                    count += 1
            if count > 0:
                none = empty_set(ports_at(ports[t], v))
                rounded = _rounded(port[:count], share[:count] * (entries / whole), entries, threshold[t, v], none)
                set_ports(ports[t], v, rounded)


@njit
def _rounded(port: Ints, share: Floats, entries: int, threshold: Bytes, none: PortSet) -> PortSet:
    """Thresholds of ports [k], ascending, by largest remainder; returns the set of ports with a share.

    share: float64 [k], sums to ``entries``. none: the empty set.
    """
    count = len(port)
    counts = np.floor(share[:count] + 1e-9)
    for _ in range(entries - int(counts.sum())):
        counts[np.argmax(share[:count] - counts)] += 1
    ports, total, last = none, 0.0, -1
    for k in range(count):
        if counts[k] > 0:
            total += counts[k]
            last = port[k]
            ports = with_port(ports, last)
            threshold[last] = min(int(total * 256.0 / entries + 0.5), 255)
    threshold[last] = 255
    return ports
