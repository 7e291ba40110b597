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

from flitlab.fluid.collective.maxflow import Residual, first_unreached, mark_reachable
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Bools, Floats, Ints

INTO, OUT = 0, 1
"""Ways that parts go: toward the roots, along in-trees, and from them, along out-trees."""

UNIT = 2**40
"""Whole numbers that stand for 1 where flows look for rows that a solution breaks."""
TOLERANCE = 1e-9
"""By how much a row counts as broken, where solutions are no fractions yet."""
DENOMINATORS = (100, 1_000, 10_000, 100_000)
"""Denominators up to which the numbers of a solution are taken for fractions, one limit after the other."""
ROUNDED = 2**30
"""Parts if the numbers of a solution are no such fractions."""


@dataclass(frozen=True, eq=False)
class ArcPlan:
    """Which parts have which root, and what arcs take of them.

    parts: their number. roots: int64 [vertices], how many have their root there. uses: for each way, int64 [arcs].
    """

    parts: int
    roots: Ints
    uses: tuple[Ints, ...]


def arc_plan(
    network: CollectiveNetwork, directions: Sequence[int], shares: Sequence[Fraction] | None = None
) -> ArcPlan:
    """The plan of the least time for parts that go all these ways, with the best roots or with given ones.

    shares: [vertices], what part of all has its root there; 0 where there are no ranks.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is no plan.
    """
    return solve_plan(PlanProgram(network, directions, shares), SeparationFlows(network, directions), shares)


def solve_plan(program: "PlanProgram", flows: "SeparationFlows", shares: Sequence[Fraction] | None) -> ArcPlan:
    """The plan of an optimum of a program, which gets the rows that it lacks.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is none.
    """
    while True:
        roots, uses = program.solve()
        if not program.add(flows.violated(_rounded(roots, uses, UNIT), int(UNIT * TOLERANCE))):
            break
    for plan in _readings(roots, uses, shares):
        if _forwards_all(program.network, plan) and next(flows.violated(plan), None) is None:
            return plan
    raise FluidError("what arcs give to the trees of a collective cannot be read as fractions")


class PlanProgram:
    """The linear program: the least time in which arcs take all parts.

    Columns are the time, the share of parts that have their root at each vertex, and what arcs take, way after way.
    """

    def __init__(
        self, network: CollectiveNetwork, directions: Sequence[int], shares: Sequence[Fraction] | None
    ) -> None:
        self.network, self.directions, self.known = network, directions, set[tuple[int, bytes]]()
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        for tolerance in ("primal_feasibility", "dual_feasibility"):
            self.highs.setOptionValue(f"{tolerance}_tolerance", 1e-10)
        root_shares, uses = np.array(shares or (), float), len(directions) * len(network.tail)
        roots = network.is_rank * 1.0 if shares is None else root_shares
        most = np.concatenate([[np.inf], roots, np.full(uses, float(network.ranks))])  # sent once to every rank
        self.highs.addVars(
            len(most), np.concatenate([[0], root_shares, np.zeros(len(most) - len(root_shares) - 1)]), most
        )
        self.highs.changeColCost(0, 1.0)
        if shares is None:
            self._row(1.0, 1.0, 1 + np.arange(network.vertices))
        self._limit_arcs()
        self._keep_forwarded()
        ranks = np.eye(network.vertices, dtype=bool)[network.is_rank]
        self.add((direction, single_rank) for direction in directions for single_rank in ranks)

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
        uses = np.stack([self._uses(direction, arcs) for direction in self.directions], axis=1)
        for arc in arcs.tolist():
            self._row(-highspy.kHighsInf, 0.0, uses[arc], negative=np.array([0]), factor=float(capacity[arc]))

    def _keep_forwarded(self) -> None:
        """Let as much leave a vertex without ranks as enters it."""
        for vertex in np.flatnonzero(~self.network.is_rank).tolist():
            into, out = (np.flatnonzero(ends == vertex) for ends in (self.network.head, self.network.tail))
            for direction in self.directions:
                self._row(0.0, 0.0, self._uses(direction, into), negative=self._uses(direction, out))

    def _uses(self, direction: int, arcs: Ints) -> Ints:
        """int64: the columns of what some arcs take of parts that go a way."""
        return 1 + self.network.vertices + self.directions.index(direction) * len(self.network.tail) + arcs

    def _row(self, low: float, high: float, positive: Ints, negative: Ints | None = None, factor: float = 1.0) -> None:
        """Add a row, the sum of the columns ``positive`` less ``factor`` times those of ``negative``."""
        negative = np.zeros(0, np.int64) if negative is None else negative
        columns = np.concatenate([positive, negative]).astype(np.int32)
        self.highs.addRow(low, high, len(columns), columns, np.repeat([1.0, -factor], [len(positive), len(negative)]))

    def add(self, violated: Iterator[tuple[int, Bools]]) -> int:
        """Add the rows of sets of vertices (way, bool [vertices]) that have none yet; how many those are."""
        before = len(self.known)
        for direction, side in violated:
            if (direction, side.tobytes()) not in self.known:
                self.known.add((direction, side.tobytes()))
                near, far = _ends(self.network, direction)
                crossing = np.flatnonzero(side[near] & ~side[far])
                self._row(
                    1.0, highspy.kHighsInf, np.concatenate([1 + np.flatnonzero(side), self._uses(direction, crossing)])
                )
        return len(self.known) - before

    def solve(self) -> tuple[Floats, list[Floats]]:
        """Shares of roots [vertices], and what arcs [arcs] take of parts that go each way, all parts being 1.

        Raises :class:`~flitlab.fluid.problem.FluidError` if HiGHS finds no optimum.
        """
        self.highs.run()
        if (status := self.highs.getModelStatus()) != highspy.HighsModelStatus.kOptimal:
            raise FluidError(f"HiGHS ended with {self.highs.modelStatusToString(status)}")
        value = np.maximum(np.array(self.highs.getSolution().col_value), 0)
        roots, uses = np.split(value[1:], [self.network.vertices])
        return roots, np.split(uses, len(self.directions))


class SeparationFlows:
    """Flows from single ranks that show whether a plan leaves enough to all sets of vertices."""

    def __init__(self, network: CollectiveNetwork, directions: Sequence[int]) -> None:
        self.ranks, self.directions, n = np.flatnonzero(network.is_rank), directions, network.vertices
        self.vertices, self.sink = n, np.array([n])
        every, sinks = np.arange(n), np.full(n, n)
        ends = [_ends(network, direction) for direction in directions]
        self.residuals = [
            Residual.of(n + 1, np.concatenate([near, every]), np.concatenate([far, sinks])) for near, far in ends
        ]

    def violated(self, plan: ArcPlan, slack: int = 0) -> Iterator[tuple[int, Bools]]:
        """Sets of vertices that lack more than ``slack`` parts (way, bool [vertices]), the least of each rank."""
        for direction, residual, use in zip(self.directions, self.residuals, plan.uses, strict=True):
            capacity = np.concatenate([use, plan.roots])
            for v in self.ranks.tolist():
                if first_unreached(residual, capacity, v, self.sink, 0, plan.parts - slack) == 0:
                    side = np.zeros(self.vertices + 1, bool)
                    mark_reachable(residual, v, side)
                    yield direction, side[:-1]


def _forwards_all(network: CollectiveNetwork, plan: ArcPlan) -> bool:
    """Whether as much leaves every vertex without ranks as enters it."""
    net = np.zeros(network.vertices, np.int64)
    for use in plan.uses:
        net[:] = 0
        np.add.at(net, network.head, use)
        np.subtract.at(net, network.tail, use)
        if net[~network.is_rank].any():
            return False
    return True


def _ends(network: CollectiveNetwork, direction: int) -> tuple[Ints, Ints]:
    """The near and the far ends of arcs as a rank sees them that looks for roots."""
    return (network.tail, network.head) if direction == INTO else (network.head, network.tail)


def _readings(roots: Floats, uses: list[Floats], shares: Sequence[Fraction] | None) -> Iterator[ArcPlan]:
    """Plans that a solution may stand for: of fractions near to its numbers, and last one that is rounded up."""
    numbers, vertices = np.concatenate([roots, *uses]), len(roots)
    for most in DENOMINATORS:
        fractions = [Fraction(value).limit_denominator(most) for value in numbers.tolist()]
        fractions[:vertices] = shares or fractions[:vertices]
        parts = lcm(*(value.denominator for value in fractions))
        near = bool(np.abs(np.array(fractions, float) - numbers).max() < TOLERANCE)
        if near and parts < UNIT and sum(fractions[:vertices]) == 1:
            whole = np.array([int(value * parts) for value in fractions])
            yield ArcPlan(parts, whole[:vertices], tuple(np.split(whole[vertices:], len(uses))))
    unit = lcm(*(share.denominator for share in shares or ()))
    plan = _rounded(roots, uses, unit * max(1, ROUNDED // unit))
    plan.roots[plan.roots.argmax()] += plan.parts - plan.roots.sum()
    yield replace(plan, uses=tuple(use + vertices for use in plan.uses))


def _rounded(roots: Floats, uses: list[Floats], parts: int) -> ArcPlan:
    """The plan nearest to the numbers of a solution; its roots need not add up to all parts."""
    root, *rounded = (np.rint(values * parts).astype(np.int64) for values in (roots, *uses))
    return ArcPlan(parts, root, tuple(rounded))
