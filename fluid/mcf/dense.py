# SPDX-License-Identifier: Apache-2.0
"""Dense demands: Garg and Koenemann's multiplicative weights, one tree a destination and phase.

Sources: Garg and Koenemann, SIAM J. Comput. 37 (2007), doi:10.1137/S0097539704446232; the upper bound per
phase is that of Karakostas, doi:10.1145/1328911.1328918 (lengths only grow, so distances may be summed).
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
"""Phases after which a new mean begins for the first time."""


@njit
def send(graph: Graph, demand: Demand, dags: Dags, length: Floats, rate: float, load: Floats, flow: Floats) -> float:
    """Send every demand down the shortest-path tree of its destination, one destination after another.

    length [channels] is multiplied by exp(rate * what is sent / capacity) after each (rate 0: kept), but by no more
    than exp(BOLDEST).
    load [channels] and flow [targets or 0, channels] are added to. Returns the sum of demand * distance.
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
    """The mean flow of all phases, and that of the latest: whenever their number has doubled, a new one begins.

    load: float64 [channels] and flow: float64 [rows, channels], the sums over the phases since it began.
    """

    def __init__(self, channels: int, rows: int) -> None:
        self.load, self.flow = np.zeros(channels), np.zeros((rows, channels))
        self._before, self._flow_before = np.zeros_like(self.load), np.zeros_like(self.flow)
        self._begun = 0

    def better(self, phase: int, capacity: Floats) -> tuple[float, Floats, Floats]:
        """What part of the demand the better mean carries after so many phases, its load and its flow."""
        recent, whole = self.load / (phase - self._begun), (self.load + self._before) / phase
        late, all_in_all = (1 / float((load / capacity).max()) for load in (recent, whole))
        if late >= all_in_all:
            return late, recent, self.flow / (phase - self._begun)
        return all_in_all, whole, (self.flow + self._flow_before) / phase

    def renew(self, phase: int) -> None:
        """Begin anew if phases have doubled: lengths are better then than those by which earlier flow was sent."""
        if phase >= 2 * max(self._begun, FIRST):
            self._before, self._flow_before = self._before + self.load, self._flow_before + self.flow
            self.load[:], self.flow[:], self._begun = 0.0, 0.0, phase


def garg_koenemann(
    problem: Problem, gap: float, enough: float, keep_flow: bool, phases: int = 200
) -> tuple[Floats, Floats, Floats]:
    """Lengths and a flow, until their bounds differ by less than ``gap`` or the flow carries ``enough``.

    Returns (lengths float64 [channels], load float64 [channels] and flow float64 [targets or 0, channels]
    of a routing of the whole demand). That is the mean of all phases, or of the latest: whenever their number has
    doubled, a new mean begins.
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
