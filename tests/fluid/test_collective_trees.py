# SPDX-License-Identifier: Apache-2.0
"""Trees that reach the bounds of collectives: what they reach is recomputed from the network and the trees alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flitlab.fluid.collective.balanced import balanced_trees
from flitlab.fluid.collective.forest import all_gather_time, all_gather_trees, broadcast_trees
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.models.collective.tree import Tree
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, complete
from tests.scenarios import build

MI250 = {
    0: {1: 4, 4: 2, 8: 1}, 1: {5: 1, 9: 1, 10: 1}, 2: {3: 4, 6: 1, 9: 1, 10: 1}, 3: {7: 2, 11: 1}, 4: {5: 4, 6: 1},
    5: {6: 1, 7: 1}, 6: {7: 4}, 8: {9: 4, 12: 2}, 9: {13: 1}, 10: {11: 4, 14: 1}, 11: {15: 2}, 12: {13: 4, 14: 1},
    13: {14: 1, 15: 1}, 14: {15: 4},
}  # fmt: skip
"""Links of 50 GB/s between the accelerators of a box: u -> {v: how many}."""


def ring(n, both=True):
    arcs = [(i, (i + 1) % n) for i in range(n)]
    return Topology.from_links("ring", n, arcs) if both else Topology.from_arcs("ring", n, arcs)


def edge_ranks(k):
    """A fat tree with one rank at each of its edge switches."""
    topology = build("fat_tree", k=k)
    return topology.with_hosts((topology.host_count > 0).astype(int), INF)


def cliques(count, size, capacity=1):
    """Cliques in a ring, joined at their first vertices; of two, by a single link."""
    inside = [(size * c + i, size * c + j) for c in range(count) for i in range(size) for j in range(i)]
    between = [(size * c, size * ((c + 1) % count)) for c in range(count if count > 2 else 1)]
    return Topology.from_links(
        "cliques", count * size, inside + between, capacity=[1] * len(inside) + [capacity] * len(between)
    )


def circulant(n, steps):
    """A directed circulant: step -> capacity."""
    arcs = [(i, (i + step) % n) for i in range(n) for step in steps]
    return Topology.from_arcs("circulant", n, arcs, capacity=list(steps.values()) * n)


def boxes_of_a100():
    """Two boxes of eight: accelerators 0 to 15, NVSwitches 16 and 17, network cards 18 to 33, switches 34 and 35."""
    links = [(g, 16 + g // 8) for g in range(16)] + [(g, 18 + g) for g in range(16)]
    links += [(18 + g, 34 + g % 2) for g in range(16)]
    return Topology.from_links("a100", 36, links, capacity=[300] * 16 + [25] * 32).with_hosts([1] * 16 + [0] * 20, INF)


def boxes_of_mi250():
    """Two boxes of sixteen, and a switch (32) that all of them reach."""
    links = [(16 * b + u, 16 * b + v, 50 * many) for b in range(2) for u, to in MI250.items() for v, many in to.items()]
    links += [(g, 32, 16) for g in range(32)]
    ends, capacity = [link[:2] for link in links], [link[2] for link in links]
    return Topology.from_links("mi250", 33, ends, capacity=capacity).with_hosts([1] * 32 + [0], INF)


NETWORKS = {
    "ring": (lambda: ring(64), "63/2", 2),
    "one way": (lambda: ring(16, both=False), "15", 1),
    "complete": (lambda: complete(16), "1", 1),
    "torus": (lambda: build("torus", dims=[8, 8]), "63/4", 4),
    "hypercube": (lambda: build("hypercube", dim=6), "21/2", 2),
    "kautz": (lambda: build("kautz", degree=4, diameter=3), "79/4", 4),
    "rrg": (lambda: build("rrg", n=64, degree=6, seed=1), "21/2", 2),
    "fat tree": (lambda: edge_ranks(4), "7/2", 2),
    "larger fat tree": (lambda: edge_ranks(8), "31/4", 4),
    "mesh": (lambda: build("mesh", dims=[3, 5]), "7", 1),
    "small kautz": (lambda: build("kautz", degree=3, diameter=2), "11/3", 3),
    "small torus": (lambda: build("torus", dims=[3, 4]), "11/4", 4),
    "three cliques": (lambda: cliques(3, 5), "5", 1),
    "two cliques": (lambda: cliques(2, 4, 2), "7/3", 3),
    "circulant": (lambda: circulant(9, {1: 1, 3: 2}), "8/3", 3),
    "a100": (boxes_of_a100, "3/65", 13),
    "mi250": (boxes_of_mi250, "15/166", 83),
}
"""Networks with one rank a switch -> λ, and into how many parts it takes."""


@pytest.mark.parametrize("name", NETWORKS)
def test_trees_reach_the_bound(name):
    make, bound, parts = NETWORKS[name]
    network = CollectiveNetwork.of(make())
    forest = all_gather_trees(network)
    assert (forest.bound, forest.parts) == (Fraction(bound), parts)
    assert forest.reached == all_gather_time(network, forest.trees) == forest.bound


def depth(tree):
    """Hops from the root to the vertex that is farthest from it along the tree."""
    level = {tree.root: 0}
    for path in tree.paths:
        level[path[-1]] = level[path[0]] + len(path) - 1
    return max(level.values())


def test_no_trees_are_left_to_be_deep():
    """The least possible is 3; trees of one root after another become up to 18 deep."""
    trees = all_gather_trees(CollectiveNetwork.of(build("rrg", n=64, degree=6, seed=1))).trees
    assert max(map(depth, trees)) <= 10 and np.mean(list(map(depth, trees))) < 5


def random_network(draw, n, balanced):
    """A strongly connected digraph of closed walks, and so of equal capacities into and out of each switch, or not."""
    arcs, capacity = [], []
    for walk in [draw.permutation(n), *(draw.permutation(n)[: draw.integers(2, n + 1)] for _ in range(n))]:
        arcs += zip(walk.tolist(), np.roll(walk, -1).tolist(), strict=True)
        capacity += [int(draw.integers(1, 6))] * len(walk) if balanced else draw.integers(1, 6, len(walk)).tolist()
    return Topology.from_arcs("random", n, arcs, capacity=capacity)


@given(st.integers(0, 2**32), st.integers(2, 9), st.booleans())
def test_trees_reach_the_bound_of_random_networks(seed, n, switches_only):
    """Unequal capacities and amounts; where some switches have no ranks, as much can enter a switch as leave it."""
    draw = np.random.default_rng(seed)
    topology = random_network(draw, n, switches_only)
    hosts = draw.permutation(n) < max(2, n - 3) if switches_only else np.ones(n, int)
    topology = topology.with_hosts(hosts.astype(int), INF)
    amounts = [1, *draw.integers(0, 4, int(hosts.sum()) - 1).tolist()]
    forest = all_gather_trees(CollectiveNetwork.of(topology, amounts=amounts))
    assert forest.reached == forest.bound
    root = int(draw.integers(int(hosts.sum())))
    assert (
        broadcast_trees(CollectiveNetwork.of(topology), root).reached
        == broadcast_trees(CollectiveNetwork.of(topology), root).bound
    )


@pytest.mark.parametrize(("exchange", "reached"), [(None, 2), ("1/4", "4/3"), ("1/2", 1), (1, 1)])
def test_a_switch_that_only_forwards_may_reach_less_than_the_bound(exchange, reached):
    """Switch 3 gets a vector once and could send it twice, if it copied; it is up to ranks 1 and 2 to exchange it."""
    arcs = [(0, 3), (3, 1), (3, 2), (1, 0), (2, 0)] + ([(1, 2), (2, 1)] if exchange else [])
    capacity = [1.0] * 5 + [float(Fraction(exchange))] * 2 if exchange else 1.0
    network = CollectiveNetwork.of(
        Topology.from_arcs("copies", 4, arcs, capacity=capacity).with_hosts([1, 1, 1, 0], INF)
    )
    forest = broadcast_trees(network, 0)
    assert (forest.bound, forest.reached) == (1, Fraction(reached))


@given(st.integers(0, 2**32), st.integers(3, 7), st.integers(1, 4))
def test_a_chosen_number_of_parts_takes_the_least_time(seed, n, parts):
    """The time is one in which some arc takes a part more; in any shorter one some cut is too narrow."""
    network = CollectiveNetwork.of(random_network(np.random.default_rng(seed), n, True))
    forest = all_gather_trees(network, parts)
    assert forest.parts == parts and sum(tree.count for tree in forest.trees) == parts * n

    def suffices(time):
        room = np.array([int(time * c) for c in network.capacity.tolist()])
        for number in range(1, 2**n - 1):
            side = (number >> np.arange(n) & 1).astype(bool)
            if room[side[network.tail] & ~side[network.head]].sum() < parts * side.sum():
                return False
        return True

    times = {Fraction(i, c) for c in set(network.capacity.tolist()) for i in range(1, n * parts * c + 1)}
    assert forest.reached == network.scale * min(filter(suffices, times)) / parts


@pytest.mark.parametrize("parts", [1, 3])
def test_few_parts_lose_what_rounding_up_loses(parts):
    forest = all_gather_trees(CollectiveNetwork.of(build("torus", dims=[8, 8])), parts)
    assert forest.reached == Fraction(-(-63 * parts // 4), parts)


@pytest.mark.parametrize(("kind", "extent", "hosts"), [("torus", {"dims": [3, 3]}, 1), ("fat_tree", {"k": 4}, 2)])
def test_hosts_with_slow_channels_are_vertices_of_their_own(kind, extent, hosts):
    topology = build(kind, **extent)
    topology = topology.with_hosts(hosts * (topology.host_count > 0 if topology.hosts else 1))
    forest = all_gather_trees(CollectiveNetwork.of(topology, "hosts"))
    assert forest.reached == forest.bound == topology.hosts - 1
    assert {tree.root for tree in forest.trees} == set(range(topology.switches, topology.switches + topology.hosts))


@pytest.mark.parametrize(
    ("topology", "diameter"),
    [(build("torus", dims=[3, 5]), 3), (build("hypercube", dim=4), 4), (circulant(9, {1: 1, 3: 2}), 4), (ring(16), 8),
     (build("torus", dims=[5, 4, 3]), 5)],
)  # fmt: skip
def test_translations_of_balanced_trees_reach_the_bound(topology, diameter):
    forest, network = balanced_trees(topology), CollectiveNetwork.of(topology)
    trees = list(forest)
    assert all_gather_time(network, trees) == forest.reached == all_gather_trees(network).bound
    assert trees == [tree for root in range(topology.switches) for tree in forest.trees_of(root)]
    assert max(map(depth, trees)) <= diameter


def test_many_ranks_have_balanced_trees():
    forest = balanced_trees(build("torus", dims=[16, 16, 16]))
    assert (forest.count, forest.reached) == (2, Fraction(4095, 6))
    assert {len(tree.reached()) for tree in forest.trees_of(4000)} == {4096}


def test_there_are_no_balanced_trees_without_translations_or_over_channels_too_slow():
    assert balanced_trees(build("mesh", dims=[3, 5])) is None
    assert balanced_trees(circulant(4, {1: 1, 2: 10})) is None


LINE = CollectiveNetwork.of(ring(3, both=False))


@pytest.mark.parametrize(
    ("trees", "fault"),
    [
        ([Tree(0, 1, ((0, 1),))], "not reach the rank at 2"),
        ([Tree(0, 1, ((0, 1), (0, 2)))], r"the arc \(0, 2\)"),
        ([Tree(0, 1, ((1, 2), (0, 1)))], "does not add a vertex"),
        ([Tree(0, 1, ((0, 1), (1, 2))), Tree(0, 1, ((0, 1), (1, 2)))], "2 trees have the root 0"),
        ([Tree(0, 0, ((0, 1), (1, 2)))], "there must be at least 1"),
    ],
)
def test_what_is_no_forest_is_refused(trees, fault):
    others = [Tree(1, 1, ((1, 2), (2, 0))), Tree(2, 1, ((2, 0), (0, 1)))]
    with pytest.raises(ValueError, match=fault):
        all_gather_time(LINE, [*trees, *others])


def test_the_most_loaded_arc_says_what_is_reached():
    """Three trees on a ring one way round, and one of them twice over one arc of half the capacity."""
    slow = replace(LINE, capacity=np.array([2, 1, 2]), scale=Fraction(2))
    assert all_gather_time(slow, [Tree(v, 1, ((v, (v + 1) % 3), ((v + 1) % 3, (v + 2) % 3))) for v in range(3)]) == 4
