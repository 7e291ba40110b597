# SPDX-License-Identifier: Apache-2.0
"""Loopless paths against exhaustive enumeration, networkx and closed forms."""

from collections import Counter
from itertools import combinations, islice, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from flitlab.models.metrics.link_load import even_load_shortest
from flitlab.models.paths.ksp import all_k_shortest, k_shortest_paths, k_shortest_to
from flitlab.models.paths.pathset import concatenate
from flitlab.models.paths.within import (
    counts_within,
    even_load_within,
    k_shortest_lengths,
    paths_within,
    paths_within_from,
)
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology


@st.composite
def small(draw, most=7):
    """Any topology of a few switches: parallel channels, unreachable pairs and dead ends included."""
    n = draw(st.integers(2, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    arcs = rng.integers(n, size=(draw(st.integers(1, 3 * n)), 2))
    return (Topology.from_arcs if draw(st.booleans()) else Topology.from_links)("drawn", n, arcs)


def every_path(topology: Topology) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """All loopless paths by pair, as channels, shortest first."""
    graph = topology.to_networkx()
    return {
        (s, t): sorted((tuple(c for _, _, c in path) for path in nx.all_simple_edge_paths(graph, s, t)), key=len)
        for s, t in permutations(range(topology.switches), 2)
    }


@pytest.mark.long
@given(small(), st.integers(1, 12), st.integers(0, 3), st.sampled_from([1, 3, 50]))
@settings(max_examples=40, deadline=None)
def test_k_shortest_paths_by_weight_are_those_of_least_weight(topology, k, seed, most):
    weight = np.random.default_rng(seed).integers(1, most + 1, topology.channels)
    for t in range(topology.switches):
        found = k_shortest_to(topology, t, range(topology.switches), k, seed=seed, weight=weight)
        for s, every in ((s, every) for (s, end), every in every_path(topology).items() if end == t):
            paths = as_tuples(found.paths_of(s))
            assert len(set(paths)) == len(paths)
            assert set(paths) <= set(every)
            lightest = sorted(weight[list(path)].sum() for path in every)[:k]
            assert [weight[list(path)].sum() for path in paths] == lightest


@pytest.mark.long
def test_weighted_ties_are_drawn_with_equal_probability():
    """Two channels of weight 2 and 3 beside two of 1 and 4: four paths of weight 5, of which two are kept."""
    ends = [(0, 1), (0, 1), (1, 2), (1, 2), (0, 3), (3, 2)]
    topology, weight = Topology.from_arcs("drawn", 4, ends), np.array([2, 2, 1, 3, 3, 9])  # by source
    counts = Counter(
        path
        for seed in range(2000)
        for path in as_tuples(k_shortest_to(topology, 2, [0], 2, seed=seed, weight=weight).paths_of(0))
    )
    assert len(counts) == 4
    assert chisquare(list(counts.values())).pvalue > 1e-4


def as_tuples(paths) -> list[tuple[int, ...]]:
    return [tuple(path.tolist()) for path in paths]


@given(small(), st.integers(1, 12), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_k_shortest_paths_are_k_shortest_paths(topology, k, seed):
    every = every_path(topology)
    found = k_shortest_paths(topology, list(every), k, seed=seed)
    equal = k_shortest_paths(topology, list(every), 1000, extra=0, seed=seed)
    longer = k_shortest_paths(topology, list(every), 1000, extra=1, seed=seed)
    for i, expected in enumerate(every.values()):
        paths = as_tuples(found.paths_of(i))
        assert [len(path) for path in paths] == [len(path) for path in expected[:k]]
        assert len(set(paths)) == len(paths)
        assert set(paths) <= set(expected)
        assert set(as_tuples(equal.paths_of(i))) == {path for path in expected if len(path) == len(expected[0])}
        assert set(as_tuples(longer.paths_of(i))) == {path for path in expected if len(path) <= len(expected[0]) + 1}


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "pair", "k"),
    [
        ({"kind": "hypercube", "dim": 3}, (0, 7), 3),  # 3 of 6 of length 3
        ({"kind": "torus", "dims": [8, 8]}, (0, 10), 4),  # all 3 of length 3, and one of 11 of length 5
        ({"kind": "fat_tree", "k": 4}, (0, 6), 2),  # 2 of 4 of length 4
        ({"kind": "hyperx", "dims": [2, 3], "multiplicity": 2}, (0, 4), 2),  # 2 of 8, over parallel channels
    ],
)
def test_ties_are_drawn_with_equal_probability(parameters, pair, k):
    """Every choice of a number of the paths of one length, by a listing of all paths."""
    topology = make("topology", **parameters).build()
    lengths = k_shortest_paths(topology, [pair], k).lengths
    limit = int(lengths[-1])
    paths = nx.all_simple_edge_paths(topology.to_networkx(), *pair, cutoff=limit)
    tied = [path for path in (tuple(c for _, _, c in path) for path in paths) if len(path) == limit]
    choices = Counter(
        frozenset(
            path
            for path in as_tuples(k_shortest_paths(topology, [pair], k, seed=seed).paths_of(0))
            if len(path) == limit
        )
        for seed in range(4000)
    )
    assert set(choices) == set(map(frozenset, combinations(tied, int((lengths == limit).sum()))))
    assert chisquare(list(choices.values())).pvalue > 1e-3


def test_one_path_of_each_pair_loads_all_cores_of_a_fat_tree_alike():
    topology = make("topology", kind="fat_tree", k=8).build()
    edges = np.flatnonzero(topology.host_count)
    into = np.zeros(topology.switches)
    for target in edges:
        usage = k_shortest_to(topology, target, edges[edges != target], 1, extra=0).usage(topology.channels)
        into += np.bincount(topology.dst, usage, topology.switches)
    cores = into[-16:]
    assert cores.sum() == 32 * 28 and chisquare(cores).pvalue > 1e-3


@given(small(), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_lengths_alone_are_those_of_the_paths(topology, k):
    every = every_path(topology).values()
    histogram, missing = k_shortest_lengths(topology, k)
    lengths = [len(path) for paths in every for path in paths[:k]]
    assert histogram.tolist() == np.bincount(lengths, minlength=topology.switches).tolist()
    assert missing == sum(len(paths) < k for paths in every)


@pytest.mark.parametrize("kind", ["rrg", "random_digraph"])
def test_counted_and_searched_lengths_agree(kind):
    topology = make("topology", kind=kind, n=80, degree=4, seed=3).build()
    searched = np.concatenate([paths.lengths for paths in all_k_shortest(topology, 6)])
    assert (k_shortest_lengths(topology, 6)[0] == np.bincount(searched, minlength=80)).all()


@given(small(), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_paths_within_are_all_paths_within(topology, hops):
    every = every_path(topology)
    found = paths_within(topology, list(every), hops)
    for i, ((source, target), expected) in enumerate(every.items()):
        paths = as_tuples(found.paths_of(i))
        assert sorted(paths) == sorted(path for path in expected if len(path) <= hops)
        assert [len(path) for path in paths] == sorted(len(path) for path in paths)
        counts = counts_within(topology, source, hops)[:, target]
        assert counts.tolist() == [sum(len(path) == h for path in expected) for h in range(hops + 1)]


@given(small(), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_even_loads_are_sums_over_paths(topology, hops):
    every = every_path(topology)
    chosen = {
        "within": [[path for path in paths if len(path) <= hops] for paths in every.values()],
        "shortest": [[path for path in paths if len(path) == len(paths[0])] for paths in every.values()],
    }
    expected = {name: np.zeros(topology.channels) for name in chosen}
    for name, sets in chosen.items():
        for paths in sets:
            for path in paths:
                expected[name][list(path)] += 1 / len(paths)
    load, number, without = even_load_within(topology, hops)
    assert load == pytest.approx(expected["within"])
    assert number == sum(map(len, chosen["within"]))
    assert without == sum(not paths for paths in chosen["within"])
    assert even_load_shortest(topology) == pytest.approx(expected["shortest"])
    if hops >= topology.switches - 1:
        by_target = sum(paths.even_load(topology.channels) for paths in all_k_shortest(topology, 10**4))
        assert by_target == pytest.approx(expected["within"])


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "rrg", "n": 30, "degree": 4, "seed": 3},
        {"kind": "torus", "dims": [5, 5]},
        {"kind": "random_digraph", "n": 25, "degree": 3, "seed": 1},
        {"kind": "mesh", "dims": [3, 7]},
    ],
)
def test_lengths_equal_networkx(parameters):
    topology = make("topology", **parameters).build()
    graph = nx.DiGraph(topology.to_networkx())
    rng = np.random.default_rng(1)
    pairs = [rng.choice(topology.switches, 2, replace=False).tolist() for _ in range(15)]
    found = k_shortest_paths(topology, pairs, 12)
    for i, (s, t) in enumerate(pairs):
        expected = [len(path) - 1 for path in islice(nx.shortest_simple_paths(graph, s, t), 12)]
        assert [len(path) for path in found.paths_of(i)] == expected
        for path in found.switches(topology, i):
            assert path[0] == s and path[-1] == t
            assert nx.is_simple_path(graph, path.tolist())


def test_even_load_over_shortest_paths_is_the_edge_betweenness():
    topology = make("topology", kind="random_digraph", n=40, degree=3, seed=2).build()
    expected = nx.edge_betweenness_centrality(nx.DiGraph(topology.to_networkx()), normalized=False)
    load = even_load_shortest(topology)
    pairs = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    assert load == pytest.approx([expected[pair] for pair in pairs])


def test_where_no_detour_exists_the_search_ends():
    # a clique behind each end of one link: exponentially many dead ends, one path
    clique = [(u, v) for u in range(12) for v in range(u)]
    links = [*clique, *((u + 12, v + 12) for u, v in clique), (0, 24), (24, 12)]
    topology = Topology.from_links("dumbbell", 25, links)
    paths = k_shortest_paths(topology, [(0, 12), (24, 0)], 8)
    assert paths.counts.tolist() == [1, 1]
    assert paths.lengths.tolist() == [2, 1]


def test_the_two_ways_round_a_ring():
    topology = make("topology", kind="torus", dims=[300]).build()
    paths = k_shortest_to(topology, 0, [1, 150, 0], 5)
    assert paths.counts.tolist() == [2, 2, 0]
    assert paths.lengths.tolist() == [1, 299, 150, 150]


def test_a_pair_has_the_same_paths_in_any_company():
    topology = make("topology", kind="hypercube", dim=5).build()
    alone = k_shortest_paths(topology, [(3, 28)], 4, seed=5)
    among = k_shortest_paths(topology, [(1, 2), (3, 28), (9, 28), (3, 28)], 4, seed=5)
    for i in (1, 3):
        assert as_tuples(among.paths_of(i)) == as_tuples(alone.paths_of(0))
    draws = {tuple(as_tuples(k_shortest_paths(topology, [(3, 28)], 4, seed=seed).paths_of(0))) for seed in range(10)}
    assert len(draws) > 5  # 120 paths are equally short


def test_ties_are_broken_without_favour():
    # every channel of a torus looks the same, so does its share of 2 out of many shortest paths, but for chance
    topology = make("topology", kind="torus", dims=[7, 7]).build()
    load = sum(
        paths.even_load(topology.channels)
        for seed in range(20)
        for paths in all_k_shortest(topology, 2, extra=0, seed=seed)
    )
    assert load.sum() == pytest.approx(20 * 49 * 48 * 3.5)
    assert load.min() > 0.85 * load.mean()
    assert load.max() < 1.15 * load.mean()


def test_no_pairs_no_paths():
    topology = make("topology", kind="hypercube", dim=3).build()
    for paths in (k_shortest_paths(topology, [], 3), paths_within(topology, [], 3), concatenate([])):
        assert (paths.pairs, len(paths.lengths), len(paths.channel)) == (0, 0, 0)
    assert paths_within_from(topology, 5, 2).counts[5] == 0
    with pytest.raises(ValueError, match="at least 1"):
        k_shortest_paths(topology, [(0, 1)], 0)
    with pytest.raises(ValueError, match="fewer hops"):
        even_load_within(make("topology", kind="rrg", n=900, degree=40).build(), 8)
