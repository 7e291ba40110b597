# SPDX-License-Identifier: Apache-2.0
"""The first-order flow solvers: shortest paths, splits over them, multipliers, against solvers that share no code."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from flitlab.fluid import pricing
from flitlab.fluid.delivered import SparseFlow, delivering_load_sparse, verify_flow, verify_paths
from flitlab.fluid.graph import Demand, Graph, Product, blocks
from flitlab.fluid.mcf import arcs, shortest
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.shortest import PathSplit, nearest_weights, scaled_weights
from flitlab.fluid.mcf.sparse import effort, multipliers
from flitlab.fluid.pricing import price
from flitlab.fluid.problem import Problem
from flitlab.models import threads
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, all_to_all, hypercube, table

GAP = 1e-3


def built(kind, **parameters):
    return make("topology", kind=kind, host_capacity=INF, **parameters).build()


def two_clusters():
    """Two random regular graphs and three thin links between them."""
    halves = [nx.random_regular_graph(4, 10, seed=side) for side in (1, 2)]
    links = [(u + 10 * side, v + 10 * side) for side in (0, 1) for u, v in halves[side].edges()]
    capacity = [1.0] * len(links) + [0.25, 0.5, 0.5]
    return Topology.from_links("two", 20, [*links, (0, 10), (1, 11), (2, 12)], capacity=capacity).with_hosts(1, INF)


def uneven():
    """Capacities of three orders of magnitude, and parallel channels."""
    links = list(nx.random_regular_graph(4, 16, seed=3).edges())
    links += links[:8]
    capacity = np.random.default_rng(5).choice([0.1, 1.0, 10.0], len(links))
    return Topology.from_links("uneven", 16, links, capacity=capacity).with_hosts(1, INF)


TOPOLOGIES = {
    "kautz": lambda: built("kautz", degree=3, diameter=2),
    "imase": lambda: built("imase", n=20, degree=3),
    "hypercube": lambda: hypercube(4),
    "torus": lambda: built("torus", dims=[4, 4]),
    "fat tree": lambda: built("fat_tree", k=4),
    "hyperx": lambda: built("hyperx", dims=[4, 4]),
    "two clusters": two_clusters,
    "uneven": uneven,
}


def pattern(topology, kind):
    """A permutation of all hosts, or every fourth pair with amounts of four orders of magnitude."""
    rng, hosts = np.random.default_rng(7), topology.hosts
    if kind == "permutation":
        matrix = np.eye(hosts)[np.roll(rng.permutation(hosts), 1)]
    else:
        matrix = 10.0 ** rng.uniform(-3, 1, (hosts, hosts)) * (rng.random((hosts, hosts)) < 0.25)
    np.fill_diagonal(matrix, 0)
    return table(topology, matrix / max(matrix.sum(0).max(), matrix.sum(1).max()))


def brackets(problem, value):
    """Assert that the multipliers' bounds, recomputed, lie around ``value`` and within GAP of each other."""
    lengths, paths = multipliers(problem, GAP, INF, effort(problem))
    lower = (verify_paths(problem, paths) / problem.demand.amount).min()
    volume = problem.demand.amount @ problem.distances(lengths)
    upper = problem.graph.capacity @ lengths / volume
    assert lower <= value * (1 + 1e-7) and value <= upper * (1 + 1e-7)
    assert upper <= (1 + GAP) * lower * (1 + 1e-9)


def exact(problem):
    return (verify_flow(problem, arcs.concurrent_flow(problem).flow) / problem.demand.amount).min()


@pytest.mark.parametrize("kind", ["permutation", "uneven amounts"])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_multipliers_reach_the_lp(name, kind):
    topology = TOPOLOGIES[name]()
    problem = Problem.of(topology, pattern(topology, kind))
    brackets(problem, exact(problem))


@pytest.mark.parametrize("kind", ["permutation", "uneven amounts"])
@pytest.mark.parametrize("name", ["torus", "fat tree", "kautz"])
def test_multipliers_reach_the_lp_over_minimal_routes(name, kind):
    topology = TOPOLOGIES[name]()
    routes = make("routing", kind="minimal").build(topology)
    problem = Problem.of(topology, pattern(topology, kind), routes)
    assert problem.restricted
    brackets(problem, exact(problem))


def test_multipliers_keep_to_given_paths():
    """0 -> 2 directly (capacity 1) or over 1 (capacity 3): 4 of it fits, but 1 only if the way round is not given."""
    topology = Topology.from_arcs("given", 3, [(0, 1), (0, 2), (1, 2), (2, 0)], capacity=[3, 1, 3, 1])
    graph = Graph.of(topology.with_hosts(1, INF))
    demand = Demand(np.array([2]), np.array([0, 1]), np.array([0]), np.array([1.0]))
    channel = {(int(u), int(v)): a for a, (u, v) in enumerate(zip(graph.src, graph.dst, strict=True))}
    direct, around = [channel[0, 2]], [channel[0, 1], channel[1, 2]]
    for ways, value in (([direct], 1.0), ([direct, around], 4.0)):
        start = np.cumsum([0, *map(len, ways)])
        given_paths = Paths(np.array([0, len(ways)]), start, np.concatenate(ways).astype(np.int32), np.ones(len(ways)))
        given_paths = given_paths._replace(flow=given_paths.flow / len(ways))
        brackets(Problem(graph, demand, paths=given_paths), value)


@st.composite
def lengths_and_demands(draw):
    """A strongly connected random digraph, lengths over three orders of magnitude, demands for some targets."""
    n, seed = draw(st.integers(3, 300)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    extra = rng.integers(0, n, (draw(st.integers(0, 4 * n)), 2))
    cycle = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    ends = np.concatenate([cycle, extra[extra[:, 0] != extra[:, 1]]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    graph = Graph.from_channels(n, ends[:, 0], ends[:, 1], np.ones(len(ends)))
    matrix = rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.004, 0.5])))
    matrix[0, 1] = 1.0
    return graph, Demand.of(matrix), 10.0 ** rng.uniform(-2, 1, len(ends))


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(lengths_and_demands())
def test_prices_are_those_of_scipy_and_paths_have_them(case):
    graph, demand, length = case
    least = np.full((graph.nodes, graph.nodes), np.inf)
    np.minimum.at(least, (graph.src, graph.dst), length)
    matrix = csr_array((least[graph.src, graph.dst], (graph.src, graph.dst)), least.shape)
    matrix.sum_duplicates()
    u, v = matrix.nonzero()
    expected = dijkstra(csr_array((least[u, v], (u, v)), least.shape))[demand.source, demand.destination]
    none = np.zeros((0, 0), np.uint64), np.zeros((0, 0), np.int32)
    dags = Problem(graph, demand).dags
    assert all(map(np.array_equal, dags, none))
    alone, _ = price(graph, demand, dags, length)
    np.testing.assert_allclose(alone, expected, rtol=1e-12)

    limit = expected * np.where(np.arange(demand.size) % 2, 1.01, 0.99)
    distance, found = price(graph, demand, dags, length, limit)
    np.testing.assert_allclose(distance, np.minimum(limit, expected), rtol=1e-12)
    for k in range(demand.size):
        way = found.channel[found.start[k] : found.start[k + 1]]
        if k % 2:
            assert graph.src[way[0]] == demand.source[k] and graph.dst[way[-1]] == demand.destination[k]
            assert (graph.dst[way[:-1]] == graph.src[way[1:]]).all()
            assert length[way].sum() == pytest.approx(expected[k], rel=1e-12)
        else:
            assert len(way) == 0


def test_any_number_of_threads_gives_the_same_bytes(monkeypatch):
    problem = Problem.of(TOPOLOGIES["imase"](), pattern(TOPOLOGIES["imase"](), "uneven amounts"))
    results = []
    monkeypatch.setattr(pricing, "SINGLE_THREAD_WORK", 0)
    for number in (1, 5):
        monkeypatch.setattr(threads, "cores", lambda number=number: number)
        lengths, paths = multipliers(problem, GAP, INF, effort(problem))
        results.append([array.tobytes() for array in (lengths, *paths)])
    assert results[0] == results[1]


@pytest.mark.parametrize("name, value", [("hypercube", 2.0), ("torus", 2.0), ("hyperx", 4.0)])
def test_splits_over_shortest_paths_reach_the_hop_bound(name, value):
    problem = Problem.of(TOPOLOGIES[name](), all_to_all(TOPOLOGIES[name]()))
    split = PathSplit(problem)
    weight = scaled_weights(split, 1e-6, INF)
    assert weight is not None
    flow = np.concatenate([rows.dense(problem.graph.channels) for rows in split.flow(weight)])
    np.testing.assert_allclose(flow.sum(axis=0), split.load(weight))
    assert (verify_flow(problem, flow) / problem.demand.amount).min() == pytest.approx(value, rel=1e-6)


def test_any_number_of_threads_gives_the_same_split():
    problem = Problem.of(*demanded(built("rrg", n=128, degree=4)))
    results = []
    for number in (1, 2, 3):
        threads.set_thread_limit(number)
        try:
            found = solve(problem, 0.05, "approx")
        finally:
            threads.set_thread_limit(0)
        results.append((found.lower, found.upper, found.load.tobytes(), found.prices.tobytes()))
    assert results == results[:1] * 3


def uneven_hosts(links, switches, kind):
    """Uniform traffic where switches have 0 to 3 hosts."""
    topology = Topology.from_links("uneven", switches, links).with_hosts(np.arange(switches) % 4, INF)
    return topology, make("traffic", kind=kind).build(topology)


def test_every_demand_is_in_one_piece_so_that_kernels_are_compiled_once():
    topology = built("imase", n=16, degree=3)
    found = [Demand.of_traffic(make("traffic", kind=kind).build(topology)) for kind in ("uniform", "all_to_all")]
    for demand in (*found, Demand.of(np.ones((4, 4)))):
        assert all(part.flags.c_contiguous for part in demand)


@pytest.mark.parametrize("kind", ["uniform", "all_to_all"])
def test_a_demand_without_a_list_is_the_listed_one(kind):
    _, traffic = uneven_hosts(nx.random_regular_graph(4, 18, seed=2).edges(), 18, kind)
    product, listed = Product.of_traffic(traffic), Demand.of_traffic(traffic)
    assert all(map(np.array_equal, product.listed(), listed))
    assert product.size == listed.size and product.total == pytest.approx(listed.total, rel=1e-14)
    for demand in (product, listed):
        assert all(map(np.array_equal, demand.part(3, 9), listed.part(3, 9)))
    assert sum(product.part(*ends).size for ends in blocks(product)) == listed.size


@pytest.mark.parametrize("name", ["random", "two clusters"])  # of the latter shortest paths balance nothing
def test_a_uniform_demand_is_solved_without_a_list(name, monkeypatch):
    if name == "random":
        topology = built("rrg", n=48, degree=6)
    else:
        topology = two_clusters()
    case = topology, make("traffic", kind="uniform").build(topology)
    listed = solve(Problem.of(*case), 0.2, "approx")
    monkeypatch.setattr("flitlab.fluid.problem.MAX_LISTED_PAIRS", 0)
    monkeypatch.setattr("flitlab.fluid.mcf.choose.MAX_PATH_PAIRS", 0)
    monkeypatch.setattr(Product, "listed", lambda self: pytest.fail("a list of all pairs"))
    monkeypatch.setattr("flitlab.fluid.mcf.choose.MAX_DENSE_FLOW", 0)
    found = solve(Problem.of(*case), 0.2, "approx")
    assert found.method == ("scaled shortest paths" if name == "random" else "Garg-Koenemann")
    assert found.lower <= listed.upper and listed.lower <= found.upper <= found.lower * 1.2 * (1 + 1e-9)


def test_trees_of_equal_lengths_are_as_long_as_those_of_dijkstra():
    graph = Graph.of(built("imase", n=40, degree=3))
    pairs = Demand.of(np.ones((40, 40)))
    for z in (0.7, 3.0, 1e308, np.inf):  # of the last two no path of several channels has a length
        length = np.full(graph.channels, z)
        with np.errstate(over="ignore"):
            expected = dijkstra(csr_array((length, (graph.src, graph.dst)), (40, 40)))[pairs.source, pairs.destination]
        np.testing.assert_allclose(price(graph, pairs, Problem(graph, pairs).dags, length)[0], expected, rtol=1e-12)


def test_what_rows_of_a_flow_leave_short_is_sent_on_its_way():
    problem = Problem.of(*demanded(hypercube(3)))
    split, graph = PathSplit(problem), problem.graph
    (rows,) = split.flow(np.ones(graph.channels))
    whole = delivering_load_sparse(problem, problem.demand, rows)
    np.testing.assert_allclose(whole, rows.dense(graph.channels).sum(axis=0), rtol=1e-12)
    missing = np.where(np.arange(len(rows.amount)) == 5, 0.0, rows.amount)
    mended = delivering_load_sparse(problem, problem.demand, SparseFlow(rows.start, rows.channel, missing))
    assert mended.sum() >= whole.sum() * (1 - 1e-12)
    with pytest.raises(ValueError, match="negative"):
        delivering_load_sparse(problem, problem.demand, SparseFlow(rows.start, rows.channel, -rows.amount))


def test_splits_balance_a_random_graph_and_own_up_where_they_cannot():
    random = Problem.of(*demanded(built("rrg", n=128, degree=10)))
    weight = scaled_weights(PathSplit(random), GAP, INF)
    assert weight is not None and weight.std() > 0.01
    assert scaled_weights(PathSplit(Problem.of(*demanded(two_clusters()))), GAP, INF) is None


def test_steps_that_learn_from_those_before_reach_the_gap_in_few_rounds(monkeypatch):
    problem = Problem.of(*demanded(built("rrg", n=128, degree=8)))
    found = nearest_weights(PathSplit(problem), 1e-3, INF, rounds=16)
    upper = problem.graph.channels / problem.volume(1 / problem.graph.capacity)
    assert found.excess <= 1e-3
    assert found.theta * (1 + found.excess) == pytest.approx(upper, rel=1e-12)
    monkeypatch.setattr(shortest, "_mixed", lambda points, steps: points[-1] + steps[-1])
    assert nearest_weights(PathSplit(problem), 1e-3, INF, rounds=16).excess > 3e-3


def demanded(topology):
    return topology, all_to_all(topology)


def test_splits_by_blocks_are_the_same_as_at_once(monkeypatch):
    problem = Problem.of(*demanded(hypercube(5)))
    weight = np.random.default_rng(3).uniform(0.5, 2, problem.graph.channels)
    whole = PathSplit(problem).load(weight)
    monkeypatch.setattr("flitlab.fluid.graph.ROWS", 7)
    monkeypatch.setattr("flitlab.fluid.mcf.shortest.LISTED", 0)
    split = PathSplit(problem)
    np.testing.assert_allclose(split.load(weight), whole, rtol=1e-12)
    parts = [rows.dense(problem.graph.channels) for rows in split.flow(weight)]
    assert [len(flow) for flow in parts] == [7, 7, 7, 7, 4]
    np.testing.assert_allclose(sum(flow.sum(axis=0) for flow in parts), whole, rtol=1e-12)
    for (low, high), flow in zip(blocks(problem.demand), parts, strict=True):
        assert verify_flow(Problem(problem.graph, problem.demand.part(low, high)), flow).min() > 0
    np.testing.assert_allclose(split.carried(weight), whole, rtol=1e-11)  # with what rounding may hide


@pytest.mark.parametrize("kind", ["permutation", "all-to-all"])
def test_a_random_graph_of_256_switches(kind):
    topology = built("rrg", n=256, degree=10)
    if kind == "permutation":
        target = np.roll(np.random.default_rng(1).permutation(256), 1)
        demand = Demand.of(np.eye(256)[target] * (target != np.arange(256))[:, None])
        problem = Problem(Graph.of(topology), demand)
    else:
        problem = Problem.of(*demanded(topology))
    found = solve(problem, 1e-3, "approx")
    assert found.upper <= found.lower * 1.001 * (1 + 1e-9)
