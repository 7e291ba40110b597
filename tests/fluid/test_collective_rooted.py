# SPDX-License-Identifier: Apache-2.0
"""Rooted trees of an all-reduce, against closed forms and a linear program of flows that shares no code with them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from flitlab.fluid.collective import cuts, plan
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.rooted import RootedPair, rooted_time, rooted_trees
from flitlab.fluid.problem import FluidError
from flitlab.models.collective.tree import Tree
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, complete
from tests.fluid.test_collective_trees import boxes_of_a100, depth, edge_ranks, random_network, ring
from tests.scenarios import build


def star(*capacity):
    """Ranks at one switch, by links of these capacities."""
    n = len(capacity)
    links = [(v, n) for v in range(n)]
    return Topology.from_links("star", n + 1, links, capacity=capacity).with_hosts([1] * n + [0], INF)


def slow_link():
    """Four fast ranks, and one that a slow link joins to the first."""
    links = [(u, v) for u in range(4) for v in range(u)] + [(0, 4)]
    return Topology.from_links("slow", 5, links, capacity=[100] * 6 + [1])


NETWORKS = {
    "mesh 2x3": (lambda: build("mesh", dims=[2, 3]), "5/7"),
    "mesh 3x3": (lambda: build("mesh", dims=[3, 3]), "2/3"),
    "mesh 4x4": (lambda: build("mesh", dims=[4, 4]), "5/8"),
    "mesh 5x5": (lambda: build("mesh", dims=[5, 5]), "3/5"),
    "mesh 6x6": (lambda: build("mesh", dims=[6, 6]), "7/12"),
    "complete": (lambda: complete(5), "2/5"),
    "ring": (lambda: ring(6), "5/6"),
    "torus": (lambda: build("torus", dims=[4, 4]), "15/32"),
    "kautz": (lambda: build("kautz", degree=3, diameter=2), "11/18"),
    "star": (lambda: star(1, 1, 1, 1), "3/2"),
    "uneven star": (lambda: star(1, 4, 4, 4), "1"),
    "slow link": (slow_link, "1"),
    "fat tree": (lambda: edge_ranks(4), "7/8"),
    "a100": (boxes_of_a100, "3/520"),
}
"""Networks -> the time of an all-reduce of one vector."""


@pytest.mark.parametrize("name", NETWORKS)
def test_times_are_those_of_closed_forms(name):
    make, time = NETWORKS[name]
    network = CollectiveNetwork.of(make())
    forest = rooted_trees(network)
    assert forest.reached == rooted_time(network, forest.trees) == Fraction(time)
    assert sum(pair.count for pair in forest.trees) == forest.parts


def test_hosts_with_slow_channels_are_vertices_of_their_own():
    forest = rooted_trees(CollectiveNetwork.of(build("torus", dims=[3, 3]).with_hosts(1), "hosts"))
    assert forest.reached == Fraction(2 * 8, 9)
    assert all(pair.root >= 9 for pair in forest.trees)


def by_flows(network: CollectiveNetwork) -> float:
    """The least time, by a program with flows from and to every rank as columns."""
    arcs, ranks, n = len(network.tail), np.flatnonzero(network.is_rank), network.vertices
    width = arcs + len(ranks)
    columns = 1 + len(ranks) + 2 * arcs + 2 * len(ranks) * width
    most, most_of, equal, equal_to = [], [], [], []

    def row(entries, bounds, to, value):
        line = np.zeros(columns)
        for column, amount in entries:
            line[column] += amount
        bounds.append(line)
        to.append(value)

    row([(1 + i, 1) for i in range(len(ranks))], equal, equal_to, 1)
    use = [1 + len(ranks), 1 + len(ranks) + arcs]
    for a in range(arcs):
        row([(0, -network.capacity[a]), (use[0] + a, 1), (use[1] + a, 1)], most, most_of, 0)
    for z in np.flatnonzero(~network.is_rank):
        for first in use:
            row(
                [(first + a, int(network.head[a] == z) - int(network.tail[a] == z)) for a in range(arcs)],
                equal,
                equal_to,
                0,
            )
    flow = use[1] + arcs
    for way in range(2):
        for v in ranks:
            for a in range(arcs):
                row([(flow + a, 1), (use[way] + a, -1)], most, most_of, 0)
            for i in range(len(ranks)):
                row([(flow + arcs + i, 1), (1 + i, -1)], most, most_of, 0)
            for u in range(n):
                sign = 1 if way else -1  # from the roots to v, or from v to the roots
                entries = [
                    (flow + a, sign * (int(network.head[a] == u) - int(network.tail[a] == u))) for a in range(arcs)
                ]
                entries += [(flow + arcs + i, 1) for i in range(len(ranks)) if ranks[i] == u]
                row(entries, equal, equal_to, int(u == v))
            flow += width
    gain = np.zeros(columns)
    gain[0] = 1
    found = linprog(gain, A_ub=np.array(most), b_ub=most_of, A_eq=np.array(equal), b_eq=equal_to, method="highs")
    assert found.status == 0
    return found.fun * float(network.scale)


@given(st.integers(0, 2**32), st.integers(2, 6), st.booleans())
def test_times_are_those_of_a_program_of_flows(seed, n, some):
    draw = np.random.default_rng(seed)
    hosts = draw.permutation(n) < max(2, n - 2) if some else np.ones(n)
    network = CollectiveNetwork.of(random_network(draw, n, some).with_hosts(hosts.astype(int), INF))
    forest = rooted_trees(network)
    assert float(forest.reached) == pytest.approx(by_flows(network), rel=1e-7)
    both_ways = cuts.all_gather(network).time + cuts.reduce_scatter(network).time
    assert cuts.all_reduce(network).time <= forest.reached <= both_ways / network.units


def test_trees_are_not_deep():
    """In and out of the middle of a mesh it is 12 hops; trees of any solution of the least time take up to 51."""
    trees = rooted_trees(CollectiveNetwork.of(build("mesh", dims=[6, 6]))).trees
    hops = [depth(pair.into) + depth(pair.out) for pair in trees]
    assert max(hops) <= 32 and np.mean(hops) < 22


def test_what_channels_have_left_makes_trees_less_deep():
    """One slow link decides on the time, and all others are free for straight ways."""
    trees = rooted_trees(CollectiveNetwork.of(slow_link())).trees
    assert all(depth(pair.into) == depth(pair.out) <= 2 for pair in trees)


@pytest.mark.parametrize("name", ["mesh 3x3", "kautz", "slow link"])
def test_a_solution_that_cannot_be_read_as_fractions_is_rounded(name, monkeypatch):
    monkeypatch.setattr(plan, "DENOMINATORS", ())
    make, time = NETWORKS[name]
    forest = rooted_trees(CollectiveNetwork.of(make()))
    assert Fraction(time) <= forest.reached <= Fraction(time) * (1 + Fraction(1, 10**6))
    assert forest.parts == plan.ROUNDED


def test_a_rounded_solution_in_which_a_switch_would_not_forward_all_is_refused(monkeypatch):
    monkeypatch.setattr(plan, "DENOMINATORS", ())
    monkeypatch.setattr(plan, "ROUNDED", 10)
    thirds = [(0, 4), (4, 1), (4, 2), (4, 3), (1, 0), (2, 0), (3, 0), (1, 2), (2, 3), (3, 1)]
    network = CollectiveNetwork.of(Topology.from_arcs("thirds", 5, thirds).with_hosts([1] * 4 + [0], INF))
    with pytest.raises(FluidError, match="has no solution in fractions"):
        rooted_trees(network)


def test_ranks_that_are_cut_off_are_refused():
    with pytest.raises(FluidError, match="the collective is not possible"):
        rooted_trees(CollectiveNetwork.of(Topology.from_arcs("chain", 3, [(0, 1), (1, 2), (2, 1)])))


def test_what_are_no_rooted_trees_is_refused():
    network = CollectiveNetwork.of(ring(3))
    pair = RootedPair(Tree(0, 2, ((0, 1), (0, 2))), Tree(0, 2, ((0, 1), (1, 2))))
    assert rooted_time(network, (pair,)) == 1
    for wrong, fault in (
        (replace(pair, into=Tree(0, 1, ((0, 1), (0, 2)))), "different roots or counts"),
        (replace(pair, into=Tree(1, 2, ((1, 0), (0, 2)))), "different roots or counts"),
        (replace(pair, out=Tree(0, 2, ((0, 1),))), "does not reach the rank at 2"),
    ):
        with pytest.raises(ValueError, match=fault):
            rooted_time(network, (wrong,))
