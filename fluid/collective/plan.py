# SPDX-License-Identifier: Apache-2.0
"""What arcs give to trees, by linear programs: to in-trees, along which parts go to their roots, and to out-trees.

Trees of given capacities exist if every set of vertices can be left (toward roots) or entered (from them) by all parts
that have their root elsewhere. Each such set is a row, and only those are written down that a solution broke: flows
from single ranks find them. The solution is read as fractions, and that no row is broken is shown in whole numbers.

As much enters a vertex without ranks as leaves it, because it only forwards; then it can be split off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import highspy
import numpy as np

from flitlab.fluid.collective.maxflow import Residual, first_short, reach
from flitlab.fluid.collective.network import Network
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Floats, Ints

INTO, OUT = 0, 1
"""Ways that parts go: toward the roots, along in-trees, and from them, along out-trees."""

FINE = 2**40
"""Whole numbers that stand for 1 where flows look for rows that a solution breaks."""
BROKEN = 1e-9
"""By how much a row counts as broken, where solutions are no fractions yet."""
DENOMINATORS = (100, 1_000, 10_000, 100_000)
"""Denominators up to which the numbers of a solution are taken for fractions, one limit after the other."""
ROUNDED = 2**30
"""Parts if the numbers of a solution are no such fractions."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Which parts have which root, and what arcs take of them.

    parts: their number. roots: int64 [vertices], how many have their root there. uses: for each way, int64 [arcs].
    """

    parts: int
    roots: Ints
    uses: tuple[Ints, ...]


def planned(network: Network, ways: Sequence[int], shares: Sequence[Fraction] | None = None) -> Plan:
    """The plan of the least time for parts that go all these ways, with the best roots or with given ones.

    shares: [vertices], what part of all has its root there; 0 where there are no ranks.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is no plan.
    """
    return solved(Program(network, ways, shares), Flows(network, ways), shares)


def solved(program: "Program", flows: "Flows", shares: Sequence[Fraction] | None) -> Plan:
    """The plan of an optimum of a program, which gets the rows that it lacks.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is none.
    """
    while True:
        roots, uses = program.solved()
        if not program.add(flows.broken(_rounded(roots, uses, FINE), int(FINE * BROKEN))):
            break
    for plan in _readings(roots, uses, shares):
        if _forwards_all(program.network, plan) and next(flows.broken(plan), None) is None:
            return plan
    raise FluidError("what arcs give to the trees of a collective cannot be read as fractions")


class Program:
    """The linear program: the least time in which arcs take all parts.

    Columns are the time, the share of parts that have their root at each vertex, and what arcs take, way after way.
    """

    def __init__(self, network: Network, ways: Sequence[int], shares: Sequence[Fraction] | None) -> None:
        self.network, self.ways, self.known = network, ways, set[tuple[int, bytes]]()
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        for tolerance in ("primal_feasibility", "dual_feasibility"):
            self.highs.setOptionValue(f"{tolerance}_tolerance", 1e-10)
        given, uses = np.array(shares or (), float), len(ways) * len(network.tail)
        roots = network.is_rank * 1.0 if shares is None else given
        most = np.concatenate([[np.inf], roots, np.full(uses, float(network.ranks))])  # sent once to every rank
        self.highs.addVars(len(most), np.concatenate([[0], given, np.zeros(len(most) - len(given) - 1)]), most)
        self.highs.changeColCost(0, 1.0)
        if shares is None:
            self._row(1.0, 1.0, 1 + np.arange(network.vertices))
        self._limit_arcs()
        self._keep_forwarded()
        ranks = np.eye(network.vertices, dtype=bool)[network.is_rank]
        self.add((way, alone) for way in ways for alone in ranks)

    def prefer(self, roots: Floats, uses: Sequence[Floats]) -> None:
        """Look for the least cost from now on, of all solutions of the time that was found.

        roots: [vertices], what it costs to be a root. uses: for each way, [arcs], what it costs to use an arc.
        """
        self.highs.changeColBounds(0, 0.0, self.highs.getSolution().col_value[0])
        cost = np.concatenate([[0.0], roots, *uses])
        self.highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def _limit_arcs(self) -> None:
        """Let arcs take no more than they can in the time."""
        capacity = self.network.capacity / self.network.capacity.mean()
        arcs = np.arange(len(capacity))
        uses = np.stack([self._uses(way, arcs) for way in self.ways], axis=1)
        for arc in arcs.tolist():
            self._row(-highspy.kHighsInf, 0.0, uses[arc], less=np.array([0]), by=float(capacity[arc]))

    def _keep_forwarded(self) -> None:
        """Let as much leave a vertex without ranks as enters it."""
        for vertex in np.flatnonzero(~self.network.is_rank).tolist():
            into, out = (np.flatnonzero(ends == vertex) for ends in (self.network.head, self.network.tail))
            for way in self.ways:
                self._row(0.0, 0.0, self._uses(way, into), less=self._uses(way, out))

    def _uses(self, way: int, arcs: Ints) -> Ints:
        """int64: the columns of what some arcs take of parts that go a way."""
        return 1 + self.network.vertices + self.ways.index(way) * len(self.network.tail) + arcs

    def _row(self, low: float, high: float, more: Ints, less: Ints | None = None, by: float = 1.0) -> None:
        """Add a row, the sum of the columns ``more`` less ``by`` times those of ``less``."""
        less = np.zeros(0, np.int64) if less is None else less
        columns = np.concatenate([more, less]).astype(np.int32)
        self.highs.addRow(low, high, len(columns), columns, np.repeat([1.0, -by], [len(more), len(less)]))

    def add(self, broken: Iterator[tuple[int, Bools]]) -> int:
        """Add the rows of sets of vertices (way, bool [vertices]) that have none yet; how many those are."""
        before = len(self.known)
        for way, side in broken:
            if (way, side.tobytes()) not in self.known:
                self.known.add((way, side.tobytes()))
                near, far = _ends(self.network, way)
                crossing = np.flatnonzero(side[near] & ~side[far])
                self._row(1.0, highspy.kHighsInf, np.concatenate([1 + np.flatnonzero(side), self._uses(way, crossing)]))
        return len(self.known) - before

    def solved(self) -> tuple[Floats, list[Floats]]:
        """Shares of roots [vertices], and what arcs [arcs] take of parts that go each way, all parts being 1.

        Raises :class:`~flitlab.fluid.problem.FluidError` if HiGHS finds no optimum.
        """
        self.highs.run()
        if (status := self.highs.getModelStatus()) != highspy.HighsModelStatus.kOptimal:
            raise FluidError(f"HiGHS ended with {self.highs.modelStatusToString(status)}")
        value = np.maximum(np.array(self.highs.getSolution().col_value), 0)
        roots, uses = np.split(value[1:], [self.network.vertices])
        return roots, np.split(uses, len(self.ways))


class Flows:
    """Flows from single ranks that show whether a plan leaves enough to all sets of vertices."""

    def __init__(self, network: Network, ways: Sequence[int]) -> None:
        self.ranks, self.ways, n = np.flatnonzero(network.is_rank), ways, network.vertices
        self.vertices, self.sink = n, np.array([n])
        every, sinks = np.arange(n), np.full(n, n)
        ends = [_ends(network, way) for way in ways]
        self.residuals = [
            Residual.of(n + 1, np.concatenate([near, every]), np.concatenate([far, sinks])) for near, far in ends
        ]

    def broken(self, plan: Plan, slack: int = 0) -> Iterator[tuple[int, Bools]]:
        """Sets of vertices that lack more than ``slack`` parts (way, bool [vertices]), the least of each rank."""
        for way, residual, use in zip(self.ways, self.residuals, plan.uses, strict=True):
            capacity = np.concatenate([use, plan.roots])
            for v in self.ranks.tolist():
                if first_short(residual, capacity, v, self.sink, 0, plan.parts - slack) == 0:
                    side = np.zeros(self.vertices + 1, bool)
                    reach(residual, v, side)
                    yield way, side[:-1]


def _forwards_all(network: Network, plan: Plan) -> bool:
    """Whether as much leaves every vertex without ranks as enters it."""
    net = np.zeros(network.vertices, np.int64)
    for use in plan.uses:
        net[:] = 0
        np.add.at(net, network.head, use)
        np.subtract.at(net, network.tail, use)
        if net[~network.is_rank].any():
            return False
    return True


def _ends(network: Network, way: int) -> tuple[Ints, Ints]:
    """The near and the far ends of arcs as a rank sees them that looks for roots."""
    return (network.tail, network.head) if way == INTO else (network.head, network.tail)


def _readings(roots: Floats, uses: list[Floats], shares: Sequence[Fraction] | None) -> Iterator[Plan]:
    """Plans that a solution may stand for: of fractions near to its numbers, and last one that is rounded up."""
    numbers, vertices = np.concatenate([roots, *uses]), len(roots)
    for most in DENOMINATORS:
        fractions = [Fraction(value).limit_denominator(most) for value in numbers.tolist()]
        fractions[:vertices] = shares or fractions[:vertices]
        parts = lcm(*(value.denominator for value in fractions))
        near = bool(np.abs(np.array(fractions, float) - numbers).max() < BROKEN)
        if near and parts < FINE and sum(fractions[:vertices]) == 1:
            whole = np.array([int(value * parts) for value in fractions])
            yield Plan(parts, whole[:vertices], tuple(np.split(whole[vertices:], len(uses))))
    unit = lcm(*(share.denominator for share in shares or ()))
    plan = _rounded(roots, uses, unit * max(1, ROUNDED // unit))
    plan.roots[plan.roots.argmax()] += plan.parts - plan.roots.sum()
    yield replace(plan, uses=tuple(use + vertices for use in plan.uses))


def _rounded(roots: Floats, uses: list[Floats], parts: int) -> Plan:
    """The plan nearest to the numbers of a solution; its roots need not add up to all parts."""
    root, *rounded = (np.rint(values * parts).astype(np.int64) for values in (roots, *uses))
    return Plan(parts, root, tuple(rounded))
