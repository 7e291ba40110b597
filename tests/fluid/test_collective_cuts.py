# SPDX-License-Identifier: Apache-2.0
"""Cuts of collectives: against brute force over all sides, networkx, closed forms and published networks."""

from fractions import Fraction
from itertools import product

import networkx as nx
import numpy as np
import pytest

from flitlab.fluid.collective import cuts
from flitlab.fluid.collective.maxflow import Residual, first_unreached, mark_reachable
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.problem import FluidError
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF
from tests.scenarios import build


def lambda_of(topology: Topology, ranks="switches", amounts=None) -> Fraction:
    return cuts.all_gather(CollectiveNetwork.of(topology, ranks, amounts)).time


def random_network(seed: int, ranks="switches", most: int = 12) -> CollectiveNetwork:
    """A strongly connected random digraph with unequal capacities, hosts on some switches, and unequal amounts."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, most + 1))
    order = draw.permutation(n)
    ring = np.stack([order, np.roll(order, -1)], axis=1)
    more = draw.integers(0, n, (int(draw.integers(0, 3 * n)), 2))
    arcs = np.concatenate([ring, more])
    capacity = draw.choice([0.5, 1, 1.25, 2, 3, 10 / 3, 7], len(arcs))
    topology = Topology.from_arcs("random", n, arcs, capacity=capacity)
    hosts = draw.integers(0, 4, n)
    hosts[draw.choice(n, 2, replace=False)] += 1
    topology = topology.with_hosts(hosts, float(draw.choice([0.5, 1, 4, INF])))
    size = topology.hosts if ranks == "hosts" else int((hosts > 0).sum())
    amounts = None if draw.integers(2) else [1, *draw.integers(0, 5, size - 1).tolist()]
    return CollectiveNetwork.of(topology, ranks, amounts)


def expanded(network: CollectiveNetwork) -> tuple[nx.DiGraph, list]:
    """The network with a vertex of its own for every rank that has channels of its own, and where each rank is."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(network.vertices))
    for u, v, c in zip(network.tail.tolist(), network.head.tolist(), network.capacity.tolist(), strict=True):
        graph.add_edge(u, v, capacity=c)
    if network.host is None:
        return graph, network.rank_vertex.tolist()
    for rank, v in enumerate(network.rank_vertex.tolist()):
        graph.add_edge(("rank", rank), v, capacity=network.host)
        graph.add_edge(v, ("rank", rank), capacity=network.host)
    return graph, [("rank", rank) for rank in range(network.ranks)]


def by_brute_force(network: CollectiveNetwork, units, allowed) -> Fraction:
    """The greatest of units(ranks inside) / B+(S) over all sides with ``allowed`` ranks inside."""
    graph, at = expanded(network)
    nodes = list(graph.nodes)
    sides = np.array(list(product((False, True), repeat=len(nodes))))[1:-1]
    place = {node: i for i, node in enumerate(nodes)}
    out = np.zeros(len(sides), np.int64)
    for u, v, c in graph.edges(data="capacity"):
        out += c * (sides[:, place[u]] & ~sides[:, place[v]])
    inside = sides[:, [place[node] for node in at]]
    keep = allowed(inside.T)
    ratios = {
        Fraction(int(need), int(width)) for need, width in zip(units(inside)[keep], out[keep], strict=True) if need
    }
    return max(ratios, default=Fraction(0)) * network.scale


def each_kind(network: CollectiveNetwork, root: int):
    """The time that each kind of cut proves, and what brute force finds."""
    amount = network.amount
    within, beyond, one = lambda s: s @ amount, lambda s: ~s @ amount, lambda s: np.ones(len(s), np.int64)
    some, lacking = lambda s: s.any(axis=0), lambda s: ~s.all(axis=0)
    yield cuts.all_gather(network), by_brute_force(network, within, lacking)
    yield cuts.reduce_scatter(network), by_brute_force(network, beyond, some)
    yield cuts.gather(network, root), by_brute_force(network, within, lambda s: ~s[root])
    yield cuts.scatter(network, root), by_brute_force(network, beyond, lambda s: s[root])
    yield cuts.broadcast(network, root), by_brute_force(network, one, lambda s: s[root] & lacking(s))
    yield cuts.reduce(network, root), by_brute_force(network, one, lambda s: ~s[root] & some(s))
    yield cuts.all_reduce(network), by_brute_force(network, one, lambda s: some(s) & lacking(s))


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_all_gather_equals_brute_force_over_all_sides(first):
    for seed in range(first, first + 50):
        network = random_network(seed)
        inside = lambda side: side @ network.amount  # noqa: B023, E731
        found = cuts.all_gather(network).time
        assert found == by_brute_force(network, inside, lambda side: ~side.all(axis=0)), seed


@pytest.mark.parametrize("ranks", ["switches", "hosts"])
def test_every_kind_equals_brute_force(ranks):
    for seed in range(30):
        network = random_network(1000 + seed, ranks, 5)
        if network.host is not None and network.vertices + network.ranks > 13:
            continue
        for kind, (cut, expected) in enumerate(each_kind(network, seed % network.ranks)):
            assert cut.time == expected, (seed, kind)


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("torus", {"dims": [64]}, "63/2"), ("torus", {"dims": [8, 8]}, "63/4"), ("hypercube", {"dim": 6}, "21/2"),
        ("kautz", {"degree": 4, "diameter": 3}, "79/4"), ("rrg", {"n": 64, "degree": 6, "seed": 1}, "21/2"),
        ("fat_tree", {"k": 4}, "7/2"), ("mesh", {"dims": [3, 5]}, "7"), ("torus", {"dims": [3, 4]}, "11/4"),
        ("kautz", {"degree": 3, "diameter": 2}, "11/3"), ("hyperx", {"dims": [16]}, "1"),
    ],
)  # fmt: skip
def test_lambda_of_known_networks(kind, parameters, expected):
    topology = build(kind, **parameters)
    if not topology.hosts:
        topology = topology.with_hosts(1)
    assert lambda_of(topology) == Fraction(expected)
    assert lambda_of(topology, "hosts") == topology.hosts - 1


def test_a_ring_one_way():
    assert lambda_of(Topology.from_arcs("ring", 16, [(v, (v + 1) % 16) for v in range(16)])) == 15


def cliques(count: int, size: int, between) -> Topology:
    """Cliques of capacity 1, and links (u, v, capacity) between vertices."""
    links = [
        (c * size + i, c * size + j, 1.0) for c in range(count) for i in range(size) for j in range(i)
    ] + between  # fmt: skip
    return Topology.from_links("cliques", count * size, [x[:2] for x in links], capacity=[x[2] for x in links])


def test_cuts_that_are_no_single_vertex():
    ring = CollectiveNetwork.of(cliques(3, 5, [(0, 5, 1.0), (5, 10, 1.0), (10, 0, 1.0)]))
    cut = cuts.all_gather(ring)
    assert (cut.time, cut.units, cut.capacity) == (5, 10, 2)
    assert cut.side.sum() == 10
    assert lambda_of(cliques(2, 4, [(0, 4, 2.0)])) == Fraction(7, 3)
    steps = [(v, (v + s) % 9) for v in range(9) for s in (1, 3)]
    assert lambda_of(Topology.from_arcs("circulant", 9, steps, capacity=[1, 2] * 9)) == Fraction(8, 3)


def boxes_of_a100(boxes: int = 2) -> Topology:
    """Boxes of 8 GPUs with a switch of 300 GB/s each, and a network card a GPU to one of two switches, by parity."""
    links = []
    for gpu in range(8 * boxes):
        inside, card = 8 * boxes + gpu // 8, 9 * boxes + gpu
        links += [(gpu, inside, 300), (gpu, card, 25), (card, 17 * boxes + gpu % 2, 25)]
    hosts = [1] * (8 * boxes) + [0] * (9 * boxes + 2)
    topology = Topology.from_links("boxes", len(hosts), [x[:2] for x in links], capacity=[x[2] for x in links])
    return topology.with_hosts(hosts)


def test_boxes_of_accelerators():
    assert lambda_of(boxes_of_a100()) == Fraction(3, 65)


def test_one_sink_is_asked_for_where_all_vertices_are_alike():
    torus = build("torus", dims=[4, 4])
    assert len(CollectiveNetwork.of(torus).sinks) == 1
    assert len(CollectiveNetwork.of(torus, amounts=[2] + [1] * 15).sinks) == 16
    assert len(CollectiveNetwork.of(torus.with_hosts([1] * 15 + [0])).sinks) == 15


@pytest.mark.parametrize("seed", range(20))
def test_lambda_scales_and_never_rises_with_an_arc(seed):
    network = random_network(seed)
    found = cuts.all_gather(network).time
    draw = np.random.default_rng(seed)
    u, v = draw.permutation(network.vertices)[:2].tolist()
    arcs = np.stack([network.tail, network.head], axis=1)
    capacity = network.capacity / float(network.scale)
    hosts = network.is_rank.astype(int)

    def of(arcs, factor, times):
        topology = Topology.from_arcs("drawn", network.vertices, arcs, capacity=factor).with_hosts(hosts)
        return cuts.all_gather(
            CollectiveNetwork.of(topology, amounts=[times * a for a in network.amount.tolist()])
        ).time

    assert of(arcs, capacity, 3) == 3 * found
    assert of(arcs, capacity * 4, 1) == found / 4
    assert of([*arcs.tolist(), (u, v)], [*capacity, 2.0], 1) <= found


def test_lambda_of_the_reversed_network_is_the_same_where_what_enters_also_leaves():
    for topology in (build("kautz", degree=3, diameter=2), cliques(3, 3, [(0, 3, 2.0), (4, 7, 1.0)])):
        network = CollectiveNetwork.of(topology)
        assert cuts.reduce_scatter(network).time == cuts.all_gather(network).time


def test_flows_equal_those_of_networkx():
    for seed in range(20):
        network = random_network(3000 + seed)
        graph, _ = expanded(CollectiveNetwork.of(Topology.from_arcs(
            "drawn", network.vertices, np.stack([network.tail, network.head], axis=1), capacity=network.capacity
        )))  # fmt: skip
        residual = Residual.of(network.vertices, network.tail, network.head)
        capacity = np.array([graph.edges[e]["capacity"] for e in zip(network.tail, network.head, strict=True)])
        for v in range(1, network.vertices):
            value = nx.maximum_flow_value(graph, 0, v)
            assert first_unreached(residual, capacity, 0, np.array([v]), 0, value) == 1
            assert first_unreached(residual, capacity, 0, np.array([v]), 0, value + 1) == 0
            side = np.zeros(network.vertices, bool)
            mark_reachable(residual, 0, side)
            assert capacity[side[network.tail] & ~side[network.head]].sum() == value


def test_ranks_on_one_switch_with_infinite_channels_need_no_network():
    two = Topology.from_links("two", 2, [(0, 1)]).with_hosts([3, 0], INF)
    network = CollectiveNetwork.of(two, "hosts")
    assert {cuts.all_gather(network).time, cuts.broadcast(network, 0).time, cuts.all_reduce(network).time} == {0}


@pytest.mark.parametrize(
    ("capacity", "hosts", "amounts", "message"),
    [
        (np.pi, 1, None, "not a fraction with a denominator"),
        (1.0, [1, 0, 0], None, "at least two ranks"),
        (1.0, 1, [1, 2], "2 amounts for 3 ranks"),
        (1.0, 1, [1, -1, 2], "whole numbers"),
        (1.0, 1, [0, 0, 0], "whole numbers"),
        (1.0, 1, [2**59, 2**59, 1], "too many"),
        ([1 / 1021, 1 / 1031, 1.0], 1, None, "no common denominator"),
    ],
)
def test_what_cannot_be_exact_is_refused(capacity, hosts, amounts, message):
    topology = Topology.from_arcs("ring", 3, [(0, 1), (1, 2), (2, 0)], capacity=capacity).with_hosts(hosts)
    with pytest.raises(FluidError, match=message):
        CollectiveNetwork.of(topology, "switches", amounts)


def test_a_rank_that_nothing_reaches_is_named():
    network = CollectiveNetwork.of(Topology.from_arcs("path", 3, [(0, 1), (1, 2)]))
    for cut in (cuts.all_gather, cuts.reduce_scatter, cuts.all_reduce):
        with pytest.raises(FluidError, match="is cut off"):
            cut(network)
