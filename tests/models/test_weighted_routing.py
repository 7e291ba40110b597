# SPDX-License-Identifier: Apache-2.0
"""Shortest paths by weights of channels, beside networkx and a plain Dijkstra, and networks of BookSim2 28f4329."""

from collections import Counter
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from flitlab.models.readable import Text
from flitlab.models.registry import FaultyError, SpecError, make
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.costs import route_costs
from flitlab.models.topology.formats import read, write
from flitlab.models.topology.formats.anynet import read_anynet
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import validate_topology

WG10 = """
router 0 node 0 router 1 4 router 2 16 router 4 2 router 9 10
router 1 node 1 router 0 4 router 2 6 router 6 9
router 2 node 2 router 0 16 router 1 6 router 3 11 router 5 8 router 9 7
router 3 node 3 router 2 11 router 4 22
router 4 node 4 router 0 2 router 3 22
router 5 node 5 router 2 8 router 7 4
router 6 node 6 router 1 9 router 8 24 router 9 23
router 7 node 7 router 5 4 router 8 8 router 9 30
router 8 node 8 router 6 24 router 7 8
router 9 node 9 router 0 10 router 2 7 router 6 23 router 7 30
"""
TRIANGLE = """
router 0 node 0 router 1 20 router 2 2
router 1 node 1 router 0 20 router 2 2
router 2 node 2 router 0 2 router 1 2
"""


def network(kind, seed):
    """A strongly connected graph of 3 to 14 switches whose channels have few different weights, so with ties."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 15))
    ring = [(v, (v + 1) % n) for v in range(n)]
    more = [tuple(pair) for pair in rng.integers(0, n, (int(rng.integers(1, 3 * n)), 2)) if pair[0] != pair[1]]
    ends = ring + more + (more if kind == "parallel" else [])
    delay = rng.integers(0, int(rng.choice([2, 4, 30])), len(ends))
    columns = {"cost": rng.integers(1, 6, len(ends))}
    build = Topology.from_links if kind == "links" else Topology.from_arcs
    return build("drawn", n, ends, delay=delay, columns=columns).with_hosts(1)


def as_graph(topology, weight):
    """The graph for networkx, which of parallel channels needs the lightest only."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(topology.switches))
    for u, v, w in zip(topology.src.tolist(), topology.dst.tolist(), weight.tolist(), strict=True):
        if not graph.has_edge(u, v) or graph[u][v]["weight"] > w:
            graph.add_edge(u, v, weight=w)
    return graph


def allowed(topology, routes, t, v):
    """The channels that routes allow from v to t."""
    ports = int(routes.ports[t, v])
    return [c for c in range(*topology.out_start[v : v + 2]) if ports >> (c - topology.out_start[v]) & 1]


def weights(topology, name):
    return {"hops": np.ones(topology.channels, int), "delay": topology.delay + 1, "latency": topology.delay + 5}.get(
        name, topology.columns.get("cost")
    )


@pytest.mark.parametrize("name", ["hops", "delay", "latency", "cost"])
@pytest.mark.parametrize("kind", ["links", "arcs", "parallel"])
def test_next_hops_are_all_that_lie_on_a_shortest_path(kind, name):
    for seed in range(8):
        topology = network(kind, seed)
        weight = weights(topology, name).astype(int)
        far = dict(nx.all_pairs_dijkstra_path_length(as_graph(topology, weight)))
        keys = {"hop_ticks": 5} if name == "latency" else {}
        for routing in ("minimal", "ecmp"):
            ways = {"ways": 64} if routing == "ecmp" else {}
            routes = make("routing", kind=routing, weight=name, **keys, **ways).build(topology)
            for t, v in product(range(topology.switches), repeat=2):
                right = [
                    c for c in range(*topology.out_start[v : v + 2])
                    if v != t and weight[c] + far[int(topology.dst[c])][t] == far[v][t]
                ]  # fmt: skip
                assert allowed(topology, routes, t, v) == right


def first_found(topology, weight, source):
    """The channel by which a packet leaves for each switch, as the loops of BookSim2's anynet find it."""
    n, infinite = topology.switches, 10**9
    far, before, left = [infinite] * n, [-1] * n, set(range(n))
    far[source] = 0
    while left:
        settled = min(sorted(left), key=lambda v: far[v])
        left.remove(settled)
        for c in range(*topology.out_start[settled : settled + 2]):
            w = int(topology.dst[c])
            if far[settled] + weight[c] < far[w]:
                far[w], before[w] = far[settled] + weight[c], c
    first = {}
    for t in range(n):
        c = before[t]
        while c >= 0 and topology.src[c] != source:
            c = before[topology.src[c]]
        first[t] = c
    return first


@pytest.mark.parametrize("name", ["hops", "delay", "cost"])
@pytest.mark.parametrize("kind", ["links", "arcs", "parallel"])
def test_of_ties_the_first_is_that_of_booksim2(kind, name):
    for seed in range(8):
        topology = network(kind, seed)
        weight = weights(topology, name).astype(int)
        for routing in ("minimal", "ecmp"):
            routes = make("routing", kind=routing, weight=name, ties="first").build(topology)
            for v in range(topology.switches):
                right = first_found(topology, weight, v)
                found = {t: allowed(topology, routes, t, v) for t in range(topology.switches)}
                assert found == {t: [c] if t != v else [] for t, c in right.items()}


@pytest.mark.parametrize("kind", ["links", "arcs", "parallel"])
def test_longest_route_is_that_of_the_graph_of_next_hops(kind):
    for seed in range(8):
        topology = network(kind, seed)
        for ties in ("all", "first"):
            routes = make("routing", kind="minimal", weight="delay", ties=ties).build(topology)
            longest = 0
            for t in range(topology.switches):
                graph = nx.DiGraph(
                    (v, int(topology.dst[c])) for v in range(topology.switches) for c in allowed(topology, routes, t, v)
                )
                longest = max(longest, nx.dag_longest_path_length(graph))
            assert routes.hops_max == longest


@pytest.mark.parametrize("kind", ["links", "arcs", "parallel"])
def test_whole_paths_are_the_shortest_ones(kind):
    for seed in range(8):
        topology = network(kind, seed)
        weight = topology.delay + 1
        graph = as_graph(topology, weight)
        for ways in (1, 3, 1000):
            routes = make("routing", kind="ecmp", routed="source", weight="delay", ways=ways).build(topology)
            table, n = routes.paths, topology.switches
            for s, t in product(range(n), repeat=2):
                paths = [
                    walk(topology, s, table.port[table.path_start[p] : table.path_start[p + 1]].tolist())
                    for p in range(table.pair_start[s * n + t], table.pair_start[s * n + t + 1])
                ]
                assert all(topology.dst[path[-1]] == t for path in paths)
                assert (
                    len({tuple(path) for path in paths})
                    == len(paths)
                    == min(ways, counted(topology, weight, graph, s, t))
                )
                far = nx.dijkstra_path_length(graph, s, t)
                assert all(sum(weight[c] for c in path) == far for path in paths)


def test_up_and_down_routes_are_the_lightest_that_go_down_as_soon_as_they_can():
    for seed in range(8):
        topology = network("links", seed)
        weight = topology.columns["cost"].astype(int)
        graph = as_graph(topology, weight)
        routes = make("routing", kind="updown", roots=[0], weight="cost").build(topology)
        level = nx.single_source_dijkstra_path_length(graph, 0)
        below = nx.DiGraph((u, v, w) for u, v, w in graph.edges(data=True) if (level[v], v) > (level[u], u))
        below.add_nodes_from(graph)
        down = {v: dict(far) for v, far in nx.all_pairs_dijkstra_path_length(below)}
        for t in range(topology.switches):
            best = {}
            for v in sorted(graph, key=lambda v: (level[v], v)):
                up = [w["weight"] + best[u] for _, u, w in graph.out_edges(v, data=True) if u in best]
                best[v] = down[v][t] if t in down[v] else min(up)
                for c in allowed(topology, routes, t, v):
                    after = int(topology.dst[c])
                    rest = down[after][t] if t in down[v] else best[after]
                    assert weight[c] + rest == best[v]
                assert bool(allowed(topology, routes, t, v)) == (v != t)
        assert certify(topology, routes, 1, False).acyclic


@pytest.mark.long
def test_k_shortest_paths_go_by_the_weight_of_a_column():
    topology = Topology.from_links(
        "three", 3, [(0, 1), (0, 2), (1, 2)], columns={"cost": [1_000_000, 300, 300]}
    ).with_hosts(1)
    routes = make("routing", kind="ksp", k=1, weight="cost").build(topology)
    assert routes.notes["weight"] == "cost"
    assert routes.notes["hops_mean"] == pytest.approx(8 / 6)  # between 0 and 1 over 2
    assert make("routing", kind="ksp", k=1).build(topology).notes["hops_mean"] == 1
    with pytest.raises(SpecError, match="choices: drawn") as error:
        make("routing", kind="ksp", k=1, weight="cost", ties="lexicographic").build(topology)
    assert error.value.key == "ties"


def test_max_hops_counts_channels_where_the_lightest_path_has_more():
    topology = Topology.from_links(
        "four", 4, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 1)], columns={"cost": [9, 1, 9, 1, 1]}
    ).with_hosts([1, 1, 0, 0])
    for k, most in ((1, 3), (2, 1), (3, 1)):  # 0-2-3-1 weighs 3, 0-1 weighs 9, 0-2-1 weighs 10
        assert make("routing", kind="ksp", k=k, weight="cost", max_hops=1).build(topology).notes["hops_mean"] == most
    assert make("routing", kind="ksp", k=3, weight="cost", max_hops=2).build(topology).notes["hops_mean"] == 1.5


def walk(topology, v, ports):
    path = []
    for port in ports:
        path.append(int(topology.out_start[v]) + port)
        v = int(topology.dst[path[-1]])
    return path


def counted(topology, weight, graph, s, t):
    """How many shortest paths there are, parallel channels of the same weight told apart."""
    if s == t:
        return 0
    alike = Counter(zip(topology.src.tolist(), topology.dst.tolist(), weight.tolist(), strict=True))
    paths = nx.all_shortest_paths(graph, s, t, weight="weight")
    return sum(int(np.prod([alike[u, v, graph[u][v]["weight"]] for u, v in pairwise(path)])) for path in paths)


def test_wg10_has_the_routes_that_booksim2_takes():
    topology = read_anynet(Text(WG10))
    means = {}
    for weight in ("delay", "hops"):
        routes = make("routing", kind="minimal", weight=weight).build(topology)
        hops, delay = lengths(topology, routes)
        means[weight] = hops
        if weight == "delay":
            assert 3 * hops + delay + hops + 6 == pytest.approx(27.6)  # a channel of latency w takes 3 + w cycles
            assert certify(topology, routes, 1, False).acyclic
    assert means == {"delay": pytest.approx(2.22), "hops": pytest.approx(1.76)}
    default = make("routing", kind="minimal").build(topology)
    assert (default.ports == make("routing", kind="minimal", weight="delay").build(topology).ports).all()
    assert default.notes["weight"].startswith("delay")


def lengths(topology, routes):
    """Mean channels and mean delay of routes over all pairs of switches, each with itself too, ways drawn alike."""
    n, hops, delay = topology.switches, 0.0, 0.0
    for s, t in product(range(n), repeat=2):
        at = {s: 1.0} if s != t else {}
        while at:
            after: Counter = Counter()
            for v, share in at.items():
                ways = allowed(topology, routes, t, v)
                for c in ways:
                    hops += share / len(ways) / n**2
                    delay += share / len(ways) * topology.delay[c] / n**2
                    if topology.dst[c] != t:
                        after[int(topology.dst[c])] += share / len(ways)
            at = after
    return hops, delay


def test_an_anynet_file_is_routed_by_latencies_only_where_they_differ():
    triangle = read_anynet(Text(TRIANGLE))
    assert triangle.default_weight == "delay"
    assert read_anynet(Text(TRIANGLE.replace("20", "2"))).default_weight == "hops"
    by_hops = make("routing", kind="minimal", weight="hops").build(triangle)
    assert allowed(triangle, by_hops, 1, 0) == [0]
    by_delay = make("routing", kind="minimal").build(triangle)
    assert allowed(triangle, by_delay, 1, 0) == [1]
    assert by_delay.hops_max == 2


@pytest.mark.parametrize("value", [0.5, 0, -3, 2.5, 1e15])
def test_weights_that_are_no_whole_numbers_are_refused(value):
    topology = Topology.from_links("two", 2, [(0, 1)], columns={"cost": [value]}).with_hosts(1)
    with pytest.raises(SpecError, match=r"cost of the channel from 0 to 1 is .*: weights must be whole numbers from 1"):
        make("routing", kind="minimal", weight="cost").build(topology)


def test_weights_that_are_not_there_are_refused_with_those_that_are():
    topology = Topology.from_links("two", 2, [(0, 1)], columns={"cost": [1]}).with_hosts(1)
    with pytest.raises(SpecError) as error:
        make("routing", kind="ecmp", weight="price").build(topology)
    assert error.value.key == "weight"
    assert error.value.choices == ("hops", "delay", "latency", "cost")
    with pytest.raises(SpecError, match="latency needs the ticks of a hop"):
        make("routing", kind="minimal", weight="latency").build(topology)


@pytest.mark.long
@pytest.mark.parametrize("routing", [
    {"kind": "minimal", "weight": "delay"}, {"kind": "minimal"}, {"kind": "ksp", "k": 2}, {"kind": "valiant"},
    {"kind": "ecmp", "routed": "source", "weight": "delay"},
])  # fmt: skip
def test_costs_of_routes_are_those_of_all_their_paths(routing):
    for seed in range(6):
        drawn = network("links", seed)
        topology = drawn.with_hosts(2, host_delay=np.arange(2 * drawn.switches) % 5)
        if routing["kind"] == "ksp":
            routing = {"kind": "llskr", "k": 2, "spread": 9}
        routes = make("routing", **routing).build(topology)
        found = route_costs(topology, routes, topology.delay + 3, topology.access_delay)
        costs = [
            topology.access_delay[a] + cost + topology.access_delay[b]
            for a, b in product(range(topology.hosts), repeat=2) if a != b
            for cost in every_cost(topology, routes, int(topology.host_switch[a]), int(topology.host_switch[b]))
        ]  # fmt: skip
        assert found.least == min(costs)
        if routes.leg is None:
            assert found.most == max(costs)
        else:  # two different hosts of a switch may have been taken for one
            assert max(costs) <= found.most <= max(costs) + topology.access_delay.max()


def every_cost(topology, routes, s, t):
    """The cost, 3 and the delay of each channel, of every path that a packet may take."""
    n, each = topology.switches, topology.delay + 3
    if routes.paths is not None:
        table = routes.paths
        paths = [
            walk(topology, s, table.port[table.path_start[p] : table.path_start[p + 1]].tolist())
            for p in range(table.pair_start[s * n + t], table.pair_start[s * n + t + 1])
        ]
        return {int(each[path].sum()) for path in paths} or {0}

    def leg(v, end):
        if v == end:
            return {0}
        return {
            int(each[c]) + rest for c in allowed(topology, routes, end, v) for rest in leg(int(topology.dst[c]), end)
        }

    if routes.leg is None:
        return leg(s, t)
    return {first + second for m in range(n) for first in leg(s, m) for second in leg(m, t)}


@pytest.mark.parametrize("suffix", ["json", "graphml", "gml"])
def test_files_give_columns_back(tmp_path, suffix):
    topology = network("parallel", 3)
    path = tmp_path / f"net.{suffix}"
    assert "other columns of channels" not in write(topology, path)
    back = read(path)
    assert back.columns.keys() == {"cost"}
    assert back.columns["cost"].tolist() == topology.columns["cost"].tolist()
    assert "other columns of channels" in write(topology, tmp_path / "net.txt")


def test_columns_cannot_have_the_names_of_fields():
    topology = Topology.from_links("two", 2, [(0, 1)], columns={"delay": [3]}).with_hosts(1)
    with pytest.raises(FaultyError, match="delay is a field of its own"):
        validate_topology(topology)
