# SPDX-License-Identifier: Apache-2.0
"""Rooted trees of an all-reduce: parts of the vector are reduced along in-trees to a root, and spread along out-trees.

A linear program (:mod:`flitlab.fluid.collective.plan`) chooses the share of the vector of each root and the capacities
of in-trees and out-trees. Rooted trees are never slower than a reduce-scatter followed by an all-gather. Whether they
are always optimal among element-wise algorithms is unknown.

The program returns some solution of the least time, which may wind through the whole network. Around a centre, a
solution is preferred whose roots are near it and whose arcs lead straight to it and away from it. The mean of several
such plans has the least time, too, uses more of the network, and has less deep trees.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.forest import check_spanning, longest_arc_time, packed_trees, with_hosts_as_vertices
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.plan import INTO, OUT, ArcPlan, PlanProgram, SeparationFlows, solve_plan
from flitlab.fluid.problem import FluidError
from flitlab.models.arrays import Ints
from flitlab.models.collective.tree import Tree


@dataclass(frozen=True)
class RootedPair:
    """An in-tree and an out-tree of one root: parts are reduced along ``into``, results return along ``out``.

    Both are written as trees out of the root; data on ``into`` moves against its arcs.
    """

    into: Tree
    out: Tree

    @property
    def root(self) -> int:
        return self.out.root

    @property
    def count(self) -> int:
        """Parts of the vector that use these trees."""
        return self.out.count


@dataclass(frozen=True, eq=False)
class RootedForest:
    """Rooted trees of all parts of the vector.

    network: that of the trees; ranks with channels of their own are vertices after all others. parts: of the vector;
    each has its trees. reached: time of an all-reduce, in vectors over a channel of capacity 1.
    """

    network: CollectiveNetwork
    trees: tuple[RootedPair, ...]
    parts: int
    reached: Fraction


def rooted_trees(network: CollectiveNetwork) -> RootedForest:
    """The fastest rooted trees of an all-reduce on a network; amounts are ignored.

    Raises :class:`~flitlab.fluid.collective.splitting.SplittingError` if a vertex without ranks cannot be split off,
    :class:`~flitlab.fluid.problem.FluidError` if ranks are cut off from each other, or HiGHS finds no optimum.
    """
    network = with_hosts_as_vertices(network)
    cuts.all_reduce(network)  # rejects ranks that are cut off
    plan = plan_around_centres(network)
    inward, outward = (replace(network, capacity=use) for use in plan.uses)
    trees = tuple(_paired(_by_root(inward.reversed(), plan.roots), _by_root(outward, plan.roots)))
    return RootedForest(network, trees, plan.parts, rooted_time(network, trees))


def rooted_time(network: CollectiveNetwork, trees: tuple[RootedPair, ...]) -> Fraction:
    """The time of an all-reduce over rooted trees, in vectors over a channel of capacity 1.

    Raises ``ValueError`` if a tree does not reach every rank or uses a missing arc, or the trees of a pair have
    different roots or counts.
    """
    for pair in trees:
        if (pair.into.root, pair.into.count) != (pair.root, pair.count) or pair.count <= 0:
            raise ValueError(f"the in-tree and the out-tree of root {pair.root} have different roots or counts")
        check_spanning(network, pair.into)
        check_spanning(network, pair.out)
    parts = sum(pair.count for pair in trees)
    against = (Tree(path[-1], pair.count, (path[::-1],)) for pair in trees for path in pair.into.paths)
    return longest_arc_time(network, [*against, *(pair.out for pair in trees)]) / parts


def _by_root(network: CollectiveNetwork, roots: Ints) -> dict[int, list[Tree]]:
    """Out-trees by root, within the arc capacities."""
    trees: dict[int, list[Tree]] = {}
    for tree in packed_trees(network, roots):
        trees.setdefault(tree.root, []).append(tree)
    return trees


def _paired(into: dict[int, list[Tree]], out: dict[int, list[Tree]]) -> Iterator[RootedPair]:
    """In-trees and out-trees of equal roots in pairs of equal counts, deep ones with shallow ones."""
    for root, first in into.items():
        waiting, others = sorted(first, key=_depth), sorted(out[root], key=_depth, reverse=True)
        while waiting:
            one, other = waiting.pop(), others.pop()
            count = min(one.count, other.count)
            yield RootedPair(replace(one, count=count), replace(other, count=count))
            for tree, rest in ((one, waiting), (other, others)):
                if tree.count > count:
                    rest.append(replace(tree, count=tree.count - count))


def _depth(tree: Tree) -> int:
    """Hops from the root to the farthest vertex along the tree."""
    depth = {tree.root: 0}
    for path in tree.paths:
        depth[path[-1]] = depth[path[0]] + len(path) - 1
    return max(depth.values())


CENTRES = 4
"""Largest number of centres."""
MAX_PARTS = 256
"""Parts up to which the mean of plans may have more than the least time needs."""

TIE_BREAK = 0.1
"""Random cost in hops that breaks ties between equally straight arcs, so that plans differ."""


def plan_around_centres(network: CollectiveNetwork) -> ArcPlan:
    """A plan of the least time for an all-reduce: the mean of plans around the most central vertices.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is no plan.
    """
    program, flows = PlanProgram(network, (INTO, OUT), None), SeparationFlows(network, (INTO, OUT))
    anywhere, plans = solve_plan(program, flows, None), list[ArcPlan]()
    most = max(MAX_PARTS, anywhere.parts)
    for plan in _around_centres(network, program, flows):
        if (len(plans) + 1) * lcm(plan.parts, *(other.parts for other in plans)) > most:
            break
        plans.append(plan)
    plan = _mean(plans or [anywhere])
    return _filled(network, plan) if network.is_rank.all() else plan


def _around_centres(network: CollectiveNetwork, program: PlanProgram, flows: SeparationFlows) -> Iterator[ArcPlan]:
    """Plans around the centres, the most central one first."""
    arcs = csr_array((np.ones(len(network.tail)), (network.tail, network.head)), shape=2 * (network.vertices,))
    hops = np.minimum(shortest_path(arcs, unweighted=True), network.vertices)  # distances may be infinite
    round_trip = hops + hops.T
    order = np.lexsort((round_trip[network.is_rank].sum(axis=0), round_trip[network.is_rank].max(axis=0)))
    for centre in order[:CENTRES].tolist():
        out, into = hops[centre], hops[:, centre]
        draw = np.random.default_rng(centre).uniform(0, TIE_BREAK, (2, len(network.tail)))
        detour = 1 + into[network.head] - into[network.tail], 1 + out[network.tail] - out[network.head]
        program.prefer(round_trip[centre], detour + draw)
        try:
            yield solve_plan(program, flows, None)
        except FluidError:  # infeasible because of the rounding of the least time
            return


def _mean(plans: Sequence[ArcPlan]) -> ArcPlan:
    """The mean of plans, each with an equal share of the parts."""
    common = lcm(*(plan.parts for plan in plans))
    scaled = [np.concatenate([plan.roots, *plan.uses]) * (common // plan.parts) for plan in plans]
    total = np.sum(scaled, axis=0)
    factor = gcd(common * len(plans), *total.tolist())
    roots, *uses = np.split(total // factor, np.cumsum([len(plans[0].roots), *map(len, plans[0].uses)])[:-1])
    return ArcPlan(common * len(plans) // factor, roots, tuple(uses))


def _filled(network: CollectiveNetwork, plan: ArcPlan) -> ArcPlan:
    """A plan that gives each direction half of the unused capacity of the arcs."""
    used = np.sum(plan.uses, axis=0)
    time = max(map(Fraction, used.tolist(), network.capacity.tolist()))
    arc_parts = [int(time * c) for c in network.capacity.tolist()]
    unused = np.array(arc_parts) - used
    return ArcPlan(plan.parts, plan.roots, (plan.uses[0] + unused // 2, plan.uses[1] + unused - unused // 2))
