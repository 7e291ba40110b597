# SPDX-License-Identifier: Apache-2.0
"""Parts that bound an all-reduce: against brute force over all families, and closed forms."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.parts import Parts, all_reduce_parts
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import complete, cycle
from tests.fluid.test_collective_cuts import cliques, expanded, random_network
from tests.scenarios import build


def parts_of(network: CollectiveNetwork, counted="both") -> Parts:
    return all_reduce_parts(network, cuts.all_reduce(network).capacity, counted)


def best_by_brute_force(network: CollectiveNetwork, counted) -> Fraction:
    """The greatest 2 (k - 1) / capacity over all ways to put vertices into parts or none."""
    graph, at = expanded(network)
    nodes = list(graph.nodes)
    arcs = [(nodes.index(u), nodes.index(v), c) for u, v, c in graph.edges(data="capacity")]
    ranks = [nodes.index(node) for node in at]
    best = Fraction(0)
    for labels in product(range(-1, len(nodes)), repeat=len(nodes)):
        used = [label for label in labels if label >= 0]
        firsts = list(dict.fromkeys(used))
        k = len(firsts)
        if firsts != list(range(k)) or {labels[r] for r in ranks} != set(firsts) or k < 2:
            continue
        out = sum(c for u, v, c in arcs if labels[u] >= 0 and labels[u] != labels[v])
        into = sum(c for u, v, c in arcs if labels[v] >= 0 and labels[u] != labels[v])
        best = max(best, Fraction(2 * (k - 1), {"out": out, "in": into, "both": min(out, into)}[counted]))
    return best * network.scale


def recomputed(network: CollectiveNetwork, parts: Parts) -> Fraction:
    """What the labels prove, summed arc by arc over the expanded network."""
    graph, at = expanded(network)
    label = {v: int(parts.part[v]) for v in range(network.vertices)}
    label |= {node: int(of) for node, of in zip(at, parts.of_rank, strict=True)}
    out = sum(c for u, v, c in graph.edges(data="capacity") if label[u] >= 0 and label[u] != label[v])
    into = sum(c for u, v, c in graph.edges(data="capacity") if label[v] >= 0 and label[u] != label[v])
    assert set(parts.of_rank.tolist()) == set(range(parts.count))
    return Fraction(2 * (parts.count - 1), min(out, into)) * network.scale


def test_parts_are_the_best_where_every_vertex_is_a_rank():
    for seed in range(40):
        network = random_network(seed, most=5)
        network = CollectiveNetwork.of(
            Topology.from_arcs(
                "drawn", network.vertices, np.stack([network.tail, network.head], axis=1), capacity=network.capacity
            )
        )
        assert parts_of(network).time == best_by_brute_force(network, "both"), seed


@pytest.mark.parametrize(("ranks", "most"), [("switches", 5), ("hosts", 3)])
def test_parts_and_cuts_elsewhere_are_as_good_as_any_parts(ranks, most):
    """Nothing proves that they are; of these networks it is so."""
    tried = 0
    for seed in range(60):
        network = random_network(seed, ranks, most)
        if network.host is not None and network.vertices + network.ranks > 5:
            continue
        for counted in ("both", "out", "in"):
            parts, most_of_all = parts_of(network, counted), best_by_brute_force(network, counted)
            assert parts.time <= most_of_all
            assert counted != "both" or parts.count < 2 or parts.time == recomputed(network, parts)
            assert max(parts.time, cuts.all_reduce(network).time) >= most_of_all, (seed, counted)
            tried += 1
    assert tried > 30


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (complete(5), "2/5"), (cycle(6), "5/6"), (build("torus", dims=[4, 4]), "15/32"),
        (build("kautz", degree=3, diameter=2), "11/18"), (build("mesh", dims=[2, 3]), "5/7"),
        (build("mesh", dims=[6, 6]), "7/12"),
    ],
)  # fmt: skip
def test_parts_of_known_networks(topology, expected):
    assert parts_of(CollectiveNetwork.of(topology)).time == Fraction(expected)


def test_parts_may_be_larger_than_switches():
    ring = CollectiveNetwork.of(cliques(3, 5, [(0, 5, 1.0), (5, 10, 1.0), (10, 0, 1.0)]))
    parts = parts_of(ring)
    assert (parts.time, parts.count) == (Fraction(2, 3), 3)


def pods(count: int) -> Topology:
    """Pods of two edge and two inner switches with four hosts, and a slow uplink each to one core switch."""
    links, capacity = [], []
    for pod in range(count):
        edge, inner = [4 * pod, 4 * pod + 1], [4 * pod + 2, 4 * pod + 3]
        links += [(e, i) for e in edge for i in inner] + [(i, 4 * count) for i in inner]
        capacity += [2.0] * 4 + [0.25] * 2
    topology = Topology.from_links("pods", 4 * count + 1, links, capacity=capacity)
    return topology.with_hosts([2, 2, 0, 0] * count + [0])


def test_pods_behind_slow_links_are_found_and_the_core_is_left_out():
    network = CollectiveNetwork.of(pods(4), "hosts")
    parts = parts_of(network)
    assert (parts.count, parts.part[-1]) == (4, -1)
    assert parts.time == Fraction(2 * 3, 4) / Fraction(1, 2)
    assert parts.time > cuts.all_reduce(network).time


def test_single_hosts_give_the_known_bound():
    network = CollectiveNetwork.of(build("torus", dims=[4, 4]).with_hosts(2), "hosts")
    assert parts_of(network).time == Fraction(2 * 31, 32)


def test_switches_that_copy_leave_what_enters_and_those_that_reduce_what_leaves():
    star = Topology.from_arcs("star", 4, [(0, 3), (1, 3), (2, 3), (3, 0), (3, 1), (3, 2)], capacity=[1] * 3 + [2] * 3)
    network = CollectiveNetwork.of(star.with_hosts([1, 1, 1, 0]))
    found = {counted: parts_of(network, counted).time for counted in ("both", "out", "in")}
    assert found == {"both": Fraction(4, 3), "out": Fraction(4, 3), "in": Fraction(2, 3)}
