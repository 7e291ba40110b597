# SPDX-License-Identifier: Apache-2.0
"""Dense demands: Garg and Koenemann's multiplicative weights, with one tree per destination and phase.

Sources: Garg and Koenemann, SIAM J. Comput. 37 (2007), doi:10.1137/S0097539704446232; the upper bound per phase is that
of Karakostas, doi:10.1145/1328911.1328918 (lengths only grow, so distances may be summed).
"""

import numpy as np

from flitlab.fluid.bidirectional import new_search, reset_search
from flitlab.fluid.graph import Dags, Demand, Graph, blocks
from flitlab.fluid.mcf.paths import MAX_LOG_STEP
from flitlab.fluid.problem import Problem
from flitlab.fluid.trees import alike, tree
from flitlab.models.arrays import Floats
from flitlab.models.jit import njit

FIRST = 4
"""Phases after which the first new mean begins."""


@njit
def send(graph: Graph, demand: Demand, dags: Dags, length: Floats, rate: float, load: Floats, flow: Floats) -> float:
    """Send every demand down the shortest-path tree of its destination, one destination after another.

    Parameters
    ----------
    graph : Graph
        The graph.
    demand : Demand
        Commodities.
    dags : Dags
        Next hops that are allowed.
    length : float64 [channels]
        Lengths; multiplied by exp(rate * sent / capacity) after each destination, at most by exp(MAX_LOG_STEP).
    rate : float
        0: lengths do not change.
    load : float64 [channels]
        Load is added to it.
    flow : float64 [targets or 0, channels]
        Flow is added to it.

    Returns
    -------
    float
        Sum of demand * distance.
    """
    nodes = len(graph.in_start) - 1
    order = np.empty(nodes, np.int32)
    search, level = new_search(nodes, len(length)), rate == 0.0 and alike(length)
    carried = np.zeros(nodes)
    volume = 0.0
    for i in range(len(demand.target)):
        t = demand.target[i]
        reached = tree(graph, dags, t, length, level, search, order)
        for k in range(demand.start[i], demand.start[i + 1]):
            carried[demand.source[k]] = demand.amount[k]
            volume += demand.amount[k] * search.distance[demand.source[k]]
        for j in range(reached - 1, 0, -1):
            v = order[j]
            amount = carried[v]
            if amount > 0.0:
                a = search.channel[v]
                carried[graph.dst[a]] += amount
                carried[v] = 0.0
                load[a] += amount
                if len(flow) > 0:
                    flow[i, a] += amount
                if rate > 0.0:
                    length[a] *= np.exp(min(rate * amount / graph.capacity[a], MAX_LOG_STEP))
        carried[t] = 0.0
        reset_search(search, reached)
    return volume


class _Means:
    """The mean flow of all phases, and of the latest ones: a new mean begins whenever the number of phases has doubled.

    load: float64 [channels] and flow: float64 [rows, channels], sums over the phases since it began.
    """

    def __init__(self, channels: int, rows: int) -> None:
        self.load, self.flow = np.zeros(channels), np.zeros((rows, channels))
        self._before, self._flow_before = np.zeros_like(self.load), np.zeros_like(self.flow)
        self._begun = 0

    def better(self, phase: int, capacity: Floats) -> tuple[float, Floats, Floats]:
        """The better mean after ``phase`` phases: share of the demand that it carries, load and flow."""
        recent, whole = self.load / (phase - self._begun), (self.load + self._before) / phase
        late, all_in_all = (1 / float((load / capacity).max()) for load in (recent, whole))
        if late >= all_in_all:
            return late, recent, self.flow / (phase - self._begun)
        return all_in_all, whole, (self.flow + self._flow_before) / phase

    def renew(self, phase: int) -> None:
        """Begin a new mean if phases have doubled: later lengths are better than those of earlier flow."""
        if phase >= 2 * max(self._begun, FIRST):
            self._before, self._flow_before = self._before + self.load, self._flow_before + self.flow
            self.load[:], self.flow[:], self._begun = 0.0, 0.0, phase


def garg_koenemann(
    problem: Problem, gap: float, enough: float, keep_flow: bool, phases: int = 200
) -> tuple[Floats, Floats, Floats]:
    """Prices and a flow whose bounds differ by ``gap``, by Garg and Koenemann's method.

    The flow is the mean of all phases, or of the latest ones.

    Parameters
    ----------
    problem : Problem
        The flow problem.
    gap : float
        Relative gap at which the search ends.
    enough : float
        Theta of the flow at which the search ends.
    keep_flow : bool
        Whether the flow is stored, not only its load.
    phases : int
        Limit of the phases.

    Returns
    -------
    prices : float64 [channels]
    load : float64 [channels]
    flow : float64 [targets or 0, channels]
        Of a routing of the whole demand.

    Source: Garg and Koenemann, doi:10.1137/S0097539704446232.
    """
    graph, demand, dags = problem.graph, problem.compact_demand, problem.dags
    length = 1.0 / graph.capacity
    hop_bound = graph.channels / problem.volume(length)
    means = _Means(graph.channels, len(demand.target) if keep_flow else 0)
    shortest, upper = length.copy(), hop_bound
    best = (0.0, means.load, means.flow)
    for phase in range(1, phases + 1):
        volume = 0.0
        for low, high in blocks(demand):
            part, flow = demand.part(low, high), means.flow[low:high]
            volume += send(graph, part, dags, length, 0.1 * hop_bound, means.load, flow)
        bound = (graph.capacity * length).sum() / volume
        if bound < upper:
            upper, shortest = bound, length.copy()
        best = max(best, means.better(phase, graph.capacity), key=lambda one: one[0])
        lower, load, flow = best
        if upper <= (1 + gap) * lower or lower >= enough:
            break
        means.renew(phase)
        length /= length.max()
    return shortest, load, flow
