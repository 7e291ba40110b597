# SPDX-License-Identifier: Apache-2.0
"""Arc capacities of in-trees (toward the roots) and out-trees (from them), by linear programs with cut generation.

The trees exist if every set of vertices has enough capacity out of it (toward roots) or into it (from them) for all
parts with roots elsewhere. Each set is a row; only violated rows are added, which maximum flows from single ranks find.
The solution is read as fractions, and that no row is violated is verified in integers.

A vertex without ranks only forwards: inflow equals outflow. Then it can be split off.
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
"""Directions of parts: toward the roots along in-trees, and from them along out-trees."""

UNIT = 2**40
"""Integer that represents 1 in the flows that search for violated rows."""
TOLERANCE = 1e-9
"""Violation of a row below which it holds, for solutions in doubles."""
DENOMINATORS = (100, 1_000, 10_000, 100_000)
"""Limits of denominators with which a solution is read as fractions, tried in order."""
ROUNDED = 2**30
"""Parts if a solution is not read as such fractions."""


@dataclass(frozen=True, eq=False)
class ArcPlan:
    """Parts by root, and parts on each arc.

    parts: their number. roots: int64 [vertices], parts of each root. uses: for each direction, int64 [arcs].
    """

    parts: int
    roots: Ints
    uses: tuple[Ints, ...]


def arc_plan(
    network: CollectiveNetwork, directions: Sequence[int], shares: Sequence[Fraction] | None = None
) -> ArcPlan:
    """The plan of the least time, with the best roots or with given ones.

    Parameters
    ----------
    network : CollectiveNetwork
        The network.
    directions : sequence of int
        ``INTO``, ``OUT`` or both: every part travels in all of them.
    shares : sequence of Fraction or None
        [vertices], share of the parts of each root; 0 where there are no ranks. None: free.

    Raises
    ------
    FluidError
        There is no plan.
    """
    return solve_plan(PlanProgram(network, directions, shares), SeparationFlows(network, directions), shares)


def solve_plan(program: "PlanProgram", flows: "SeparationFlows", shares: Sequence[Fraction] | None) -> ArcPlan:
    """The plan of an optimum of a program, to which violated rows are added.

    Parameters
    ----------
    program : PlanProgram
        The linear program.
    flows : SeparationFlows
        Search for violated rows.
    shares : sequence of Fraction or None
        See :func:`arc_plan`.

    Raises
    ------
    FluidError
        There is no plan.
    """
    while True:
        roots, uses = program.solve()
        if not program.add(flows.violated(_rounded(roots, uses, UNIT), int(UNIT * TOLERANCE))):
            break
    for plan in _readings(roots, uses, shares):
        if _forwards_all(program.network, plan) and next(flows.violated(plan), None) is None:
            return plan
    raise FluidError("the linear program for the trees of a collective has no solution in fractions")


class PlanProgram:
    """The linear program: the least time in which arcs carry all parts.

    Columns: the time; the share of parts of each root; the use of each arc, direction by direction.
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
        most = np.concatenate(
            [[np.inf], roots, np.full(uses, float(network.ranks))]
        )  # every part reaches each rank once
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
        """Minimise a cost from here on, over all solutions of the least time.

        Parameters
        ----------
        roots : float64 [vertices]
            Cost of a root.
        uses : sequence of float64 [arcs]
            Cost of an arc, for each direction.
        """
        self.highs.changeColBounds(0, 0.0, self.highs.getSolution().col_value[0])
        cost = np.concatenate([[0.0], roots, *uses])
        self.highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def _limit_arcs(self) -> None:
        """Limit the use of every arc to its capacity times the time."""
        capacity = self.network.capacity / self.network.capacity.mean()
        arcs = np.arange(len(capacity))
        uses = np.stack([self._uses(direction, arcs) for direction in self.directions], axis=1)
        for arc in arcs.tolist():
            self._row(-highspy.kHighsInf, 0.0, uses[arc], negative=np.array([0]), factor=float(capacity[arc]))

    def _keep_forwarded(self) -> None:
        """Conserve flow at vertices without ranks."""
        for vertex in np.flatnonzero(~self.network.is_rank).tolist():
            into, out = (np.flatnonzero(ends == vertex) for ends in (self.network.head, self.network.tail))
            for direction in self.directions:
                self._row(0.0, 0.0, self._uses(direction, into), negative=self._uses(direction, out))

    def _uses(self, direction: int, arcs: Ints) -> Ints:
        """int64: the columns of arcs in a direction."""
        return 1 + self.network.vertices + self.directions.index(direction) * len(self.network.tail) + arcs

    def _row(self, low: float, high: float, positive: Ints, negative: Ints | None = None, factor: float = 1.0) -> None:
        """Add a row: the sum of the columns ``positive`` minus ``factor`` times the sum of ``negative``."""
        negative = np.zeros(0, np.int64) if negative is None else negative
        columns = np.concatenate([positive, negative]).astype(np.int32)
        self.highs.addRow(low, high, len(columns), columns, np.repeat([1.0, -factor], [len(positive), len(negative)]))

    def add(self, violated: Iterator[tuple[int, Bools]]) -> int:
        """Add the rows of violated sets that have none yet.

        Parameters
        ----------
        violated : iterator of (int, bool [vertices])
            Direction and set of vertices.

        Returns
        -------
        int
            Number of added rows.
        """
        before = len(self.known)
        for direction, side in violated:
            if (direction, side.tobytes()) not in self.known:
                self.known.add((direction, side.tobytes()))
                begin, end = _ends(self.network, direction)
                crossing = np.flatnonzero(side[begin] & ~side[end])
                self._row(
                    1.0, highspy.kHighsInf, np.concatenate([1 + np.flatnonzero(side), self._uses(direction, crossing)])
                )
        return len(self.known) - before

    def solve(self) -> tuple[Floats, list[Floats]]:
        """Shares of roots [vertices], and uses of arcs [arcs] for each direction, where all parts are 1.

        Raises :class:`~flitlab.fluid.problem.FluidError` if HiGHS finds no optimum.
        """
        self.highs.run()
        if (status := self.highs.getModelStatus()) != highspy.HighsModelStatus.kOptimal:
            raise FluidError(f"HiGHS ended with {self.highs.modelStatusToString(status)}")
        value = np.maximum(np.array(self.highs.getSolution().col_value), 0)
        roots, uses = np.split(value[1:], [self.network.vertices])
        return roots, np.split(uses, len(self.directions))


class SeparationFlows:
    """Separation oracle: maximum flows from single ranks that find sets of vertices with too little capacity."""

    def __init__(self, network: CollectiveNetwork, directions: Sequence[int]) -> None:
        self.ranks, self.directions, n = np.flatnonzero(network.is_rank), directions, network.vertices
        self.vertices, self.sink = n, np.array([n])
        every, sinks = np.arange(n), np.full(n, n)
        ends = [_ends(network, direction) for direction in directions]
        self.residuals = [
            Residual.of(n + 1, np.concatenate([begin, every]), np.concatenate([end, sinks])) for begin, end in ends
        ]

    def violated(self, plan: ArcPlan, slack: int = 0) -> Iterator[tuple[int, Bools]]:
        """Sets that lack more than ``slack`` parts (direction, bool [vertices]): the minimum cut of each rank."""
        for direction, residual, use in zip(self.directions, self.residuals, plan.uses, strict=True):
            capacity = np.concatenate([use, plan.roots])
            for v in self.ranks.tolist():
                if first_unreached(residual, capacity, v, self.sink, 0, plan.parts - slack) == 0:
                    side = np.zeros(self.vertices + 1, bool)
                    mark_reachable(residual, v, side)
                    yield direction, side[:-1]


def _forwards_all(network: CollectiveNetwork, plan: ArcPlan) -> bool:
    """Whether flow is conserved at every vertex without ranks."""
    net = np.zeros(network.vertices, np.int64)
    for use in plan.uses:
        net[:] = 0
        np.add.at(net, network.head, use)
        np.subtract.at(net, network.tail, use)
        if net[~network.is_rank].any():
            return False
    return True


def _ends(network: CollectiveNetwork, direction: int) -> tuple[Ints, Ints]:
    """Ends of arcs in the direction from a rank to the roots."""
    return (network.tail, network.head) if direction == INTO else (network.head, network.tail)


def _readings(roots: Floats, uses: list[Floats], shares: Sequence[Fraction] | None) -> Iterator[ArcPlan]:
    """Candidate plans of a solution: fractions close to its numbers, and last a plan that is rounded up."""
    numbers, vertices = np.concatenate([roots, *uses]), len(roots)
    for limit in DENOMINATORS:
        fractions = [Fraction(value).limit_denominator(limit) for value in numbers.tolist()]
        fractions[:vertices] = shares or fractions[:vertices]
        parts = lcm(*(value.denominator for value in fractions))
        is_close = bool(np.abs(np.array(fractions, float) - numbers).max() < TOLERANCE)
        if is_close and parts < UNIT and sum(fractions[:vertices]) == 1:
            whole = np.array([int(value * parts) for value in fractions])
            yield ArcPlan(parts, whole[:vertices], tuple(np.split(whole[vertices:], len(uses))))
    unit = lcm(*(share.denominator for share in shares or ()))
    plan = _rounded(roots, uses, unit * max(1, ROUNDED // unit))
    plan.roots[plan.roots.argmax()] += plan.parts - plan.roots.sum()
    yield replace(plan, uses=tuple(use + vertices for use in plan.uses))


def _rounded(roots: Floats, uses: list[Floats], parts: int) -> ArcPlan:
    """The plan nearest to a solution; its roots need not sum to all parts."""
    root, *rounded = (np.rint(values * parts).astype(np.int64) for values in (roots, *uses))
    return ArcPlan(parts, root, tuple(rounded))
