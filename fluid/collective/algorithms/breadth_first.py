# SPDX-License-Identifier: Apache-2.0
"""Breadth-first all-gather on networks with translations, for thousands of ranks."""

from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order, result_or_raise
from flitlab.fluid.symmetries import translations
from flitlab.models.application.builder import Builder
from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology

LEAST = 1e-6
"""Pieces, and bytes, below which a value is rounding of a linear program."""


class Levels(NamedTuple):
    """What switch 0 sends in each round; other switches send the same, translated.

    opposite: int64 [switches], the inverse translations. sent: for each round the receivers of switch 0 (int64) and the
    pieces that each gets (float64). time: of all rounds, in units of a piece over a channel of capacity 1.
    """

    opposite: Ints
    sent: list[tuple[Ints, Floats]]
    time: float


@register("algorithm", "breadth_first")
class BreadthFirst(AlgorithmSpec):
    """Every rank gets, in round t, the data of those t hops away from the neighbours that are t - 1 hops from them.

    Every switch needs a rank, and the network translations that are known (torus, hypercube, circulant). How much of
    it comes from which neighbour is such that the busiest channel of each round carries as little as possible. A rank
    begins a round when it is through with the one before. With one message to a neighbour a round, thousands of ranks
    have a short program.

    Example: ``algorithm: breadth_first``

    Source: Zhao et al., arXiv:2202.03356.
    """

    collectives: ClassVar[tuple[str, ...]] = ("all_gather",)

    def plan(self, question: Question, once: Once) -> Plan:
        topology, count = question.topology, question.count
        if count != topology.switches or question.ranks != "switches":
            raise SpecError("needs ranks: switches, and a rank on each", "kind")
        levels: Levels = result_or_raise(once((self.kind, topology.content_hash), lambda: _levels(topology)))
        group = next(translations(topology))
        builder = Builder(count)
        builder.begin("all_gather", self.kind, question.size, count, synchronising=True)
        every = np.arange(count)
        for to, pieces in levels.sent:
            target = np.concatenate([group.step(levels.opposite, np.full(count, v)) for v in to])
            size = np.ceil(pieces * question.piece - LEAST).astype(np.int64)
            builder.exchange(np.tile(every, len(to)), target, np.repeat(size, count))
        reaches = Fraction(levels.time).limit_denominator(10**9)
        return Plan(builder.build(), in_order(question), reaches=reaches, depth=len(levels.sent))


def _levels(topology: Topology) -> Levels:
    """The rounds of a topology. Raises ``SpecError`` if it has no translations."""
    group = next(translations(topology), None)
    if group is None:
        raise SpecError("needs a network with translations", "kind")
    every = np.arange(topology.switches)
    distance = distances(topology)[0].astype(np.int64)
    step = group.step(topology.src, topology.dst)
    neighbours, generator = np.unique(step, return_inverse=True)
    first = topology.src == 0
    capacity = np.zeros(len(neighbours))
    np.add.at(capacity, generator[first], topology.capacity[first])
    sent: list[tuple[Ints, Floats]] = []
    time = 0.0
    for hop in range(1, int(distance.max()) + 1):
        channel = np.flatnonzero((distance[topology.dst] == hop) & (distance[topology.src] == hop - 1))
        pieces, longest = _even(topology.dst[channel], generator[channel], capacity)
        used = np.flatnonzero(pieces > 0)
        sent.append((neighbours[used], pieces[used]))
        time += longest
    return Levels(group.step(every, np.zeros_like(every)), sent, time)


def _even(vertex: Ints, generator: Ints, capacity: Floats) -> tuple[Floats, float]:
    """Split of the vertices of a level over generators, such that the busiest channel carries as little as possible.

    vertex, generator: int64 [arcs], the last arcs of shortest paths to the vertices; each vertex gets one piece.
    capacity: float64 [generators], of the channels of a generator. Returns pieces, float64 [generators], and the time
    of the round.
    """
    vertices, index = np.unique(vertex, return_inverse=True)
    arcs, every = len(vertex), np.arange(len(vertex))
    to_vertex = coo_array((np.ones(arcs), (index, every)), (len(vertices), arcs + 1))
    load = csr_array((np.ones(arcs), (generator, every)), (len(capacity), arcs))
    above = hstack([load, coo_array(-capacity[:, None])])
    cost = np.append(np.zeros(arcs), 1.0)
    solution = linprog(cost, above, np.zeros(len(capacity)), to_vertex, np.ones(len(vertices)), method="highs")
    pieces = np.zeros(len(capacity))
    np.add.at(pieces, generator, np.maximum(solution.x[:-1], 0.0))
    pieces[pieces < LEAST] = 0.0
    return pieces, float((pieces / capacity).max())
