# SPDX-License-Identifier: Apache-2.0
"""Exact methods against closed forms, against each other, and against what translations promise."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.delivered import verify_flow, verify_orbit, verify_paths
from flitlab.fluid.graph import Demand, Graph
from flitlab.fluid.mcf import arcs
from flitlab.fluid.mcf.columns import generate, solve_orbit, translated_flow
from flitlab.fluid.mcf.dense import garg_koenemann
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.sparse import effort, multipliers
from flitlab.fluid.problem import FluidError, Problem, network_cost
from flitlab.fluid.symmetries import translations
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from tests.fluid.fluid_cases import INF, all_to_all, scenario, small_scenarios, table


def built(kind, **keys):
    return make("topology", kind=kind, host_capacity=INF, **keys).build()


def exact(topology, traffic):
    """Theta, once both bounds agree to 1e-6."""
    (row,) = ceilings(scenario(topology, traffic), [ceiling_spec("mcf", method="exact")])
    assert row.lower <= row.upper <= row.lower * (1 + 1e-6)
    return row.upper


def bounds(problem, lengths, paths):
    upper = problem.graph.capacity @ lengths / network_cost(problem.graph, problem.demand, lengths)
    return (verify_paths(problem, paths) / problem.demand.amount).min(), upper


def by_columns(problem, gap=1e-7):
    lengths, paths = multipliers(problem, 1e-2, INF, effort(problem))
    return bounds(problem, *generate(problem, paths, lengths, gap))


# Closed forms: T = 1 / n, one host per switch, infinite host channels


@pytest.mark.parametrize(
    "keys, theta",
    [
        ({"kind": "hypercube", "dim": 6}, 2),
        ({"kind": "hypercube", "dim": 9}, 2),
        ({"kind": "torus", "dims": [9]}, 0.9),
        ({"kind": "torus", "dims": [10]}, 0.8),
        ({"kind": "hyperx", "dims": [12]}, 12),
        ({"kind": "torus", "dims": [6, 6]}, 4 / 3),
        ({"kind": "torus", "dims": [16, 16]}, 0.5),
        ({"kind": "torus", "dims": [32, 32]}, 0.25),
        ({"kind": "torus", "dims": [5, 5]}, 40 / 24),
        ({"kind": "torus", "dims": [9, 9]}, 72 / 80),
        ({"kind": "hyperx", "dims": [4, 4]}, 4),
        ({"kind": "hyperx", "dims": [8, 8, 8]}, 8),
    ],
)
def test_all_to_all(keys, theta):
    topology = built(**keys)
    assert exact(topology, all_to_all(topology)) == pytest.approx(theta, rel=1e-6)


@pytest.mark.parametrize("k", [4, 6])
def test_fat_tree(k):
    """Pairs of the same edge switch need no network: of n hosts, n - k/2 are elsewhere."""
    topology = built("fat_tree", k=k)
    n = topology.hosts
    assert exact(topology, all_to_all(topology)) == pytest.approx(n / (n - k / 2), rel=1e-6)
    far = fixed_traffic("far", topology, (np.arange(n) + k / 2).astype(int) % n)
    assert exact(topology, far) == pytest.approx(1, rel=1e-6)


def test_matchings():
    cube = built("hypercube", dim=7)
    assert exact(cube, make("traffic", kind="bit_complement").build(cube)) == pytest.approx(1, rel=1e-6)
    clique = built("hyperx", dims=[12])
    assert exact(clique, make("traffic", kind="shift", by=1).build(clique)) == pytest.approx(6, rel=1e-6)


# Column generation


@settings(max_examples=30, deadline=None)
@given(small_scenarios())
def test_every_method_brackets_the_same_value(case):
    """Uneven capacities, parallel channels: arc LP = column generation = LP over all simple paths."""
    problem = Problem.of(case.topology, case.traffic)
    if problem.demand.size == 0:
        return
    arc = arcs.concurrent_flow(problem)
    theta = (verify_flow(problem, arc.flow) / problem.demand.amount).min()
    lower, upper = by_columns(problem)
    assert upper <= lower * (1 + 1e-6)
    assert lower == pytest.approx(theta, rel=1e-6)
    every = Problem(problem.graph, problem.demand, paths=simple_paths(problem))
    assert every.paths is not None
    lengths, paths = generate(every, every.paths, np.ones(problem.graph.channels), 1e-7)
    within = every.graph.capacity @ lengths / (every.demand.amount @ every.distances(lengths))
    assert (verify_paths(every, paths) / every.demand.amount).min() == pytest.approx(theta, rel=1e-6)
    assert within == pytest.approx(theta, rel=1e-6)
    lower, upper = bounds(problem, *multipliers(problem, 0.05, INF, effort(problem)))
    assert lower <= theta * (1 + 1e-6) and theta <= upper * (1 + 1e-6)
    lengths, _, flow = garg_koenemann(problem, 0.1, INF, True)
    lower = (verify_flow(problem, flow) / problem.demand.amount).min()
    upper = problem.graph.capacity @ lengths / network_cost(problem.graph, problem.demand, lengths)
    assert lower <= theta * (1 + 1e-6) and theta <= upper * (1 + 1e-6)


def simple_paths(problem) -> Paths:
    """All simple paths of every commodity, by networkx, with equal shares."""
    graph, demand = problem.graph, problem.demand
    network = nx.MultiDiGraph()
    network.add_edges_from((s, t, c) for c, (s, t) in enumerate(zip(graph.src, graph.dst, strict=True)))
    first, start, channel, flow = [0], [0], [], []
    for s, t, amount in zip(demand.source, demand.destination, demand.amount, strict=True):
        found = list(nx.all_simple_edge_paths(network, s, t))
        for path in found:
            channel += [c for _, _, c in path]
            start.append(len(channel))
            flow.append(amount / len(found))
        first.append(len(flow))
    return Paths(np.array(first), np.array(start), np.array(channel, np.int32), np.array(flow))


@settings(max_examples=15, deadline=None)
@given(small_scenarios(), st.sampled_from([1e-3, 0.3, 7.0]))
def test_theta_is_inverse_to_the_demand(case, factor):
    problem = Problem.of(case.topology, case.traffic)
    if problem.demand.size == 0:
        return
    scaled = Problem(problem.graph, problem.demand.scaled(factor))
    assert by_columns(scaled)[0] * factor == pytest.approx(by_columns(problem)[0], rel=1e-6)


@pytest.mark.long
def test_demands_of_very_different_size_on_a_graph_of_some_size():
    topology = built("rrg", n=40, degree=5, seed=3)
    random = np.random.default_rng(5)
    matrix = 10.0 ** random.uniform(-4, 0, (40, 40)) * (random.random((40, 40)) < 0.2)
    problem = Problem.of(topology, table(topology, matrix / matrix.sum(axis=1).max()))
    lower, upper = by_columns(problem)
    assert upper <= lower * (1 + 1e-6)
    lp = arcs.concurrent_flow(problem)
    assert (verify_flow(problem, lp.flow) / problem.demand.amount).min() == pytest.approx(upper, rel=1e-6)


def test_the_solver_of_lps_writes_nothing_on_standard_output():
    """JSON goes there. It writes past Python, so that only another process sees it."""
    made = subprocess.run([sys.executable, "-c", "import highspy; highspy.Highs()"], capture_output=True, check=True)
    assert made.stdout == b""


def test_more_than_can_be_carried_is_a_theta_below_one():
    topology = built("torus", dims=[9])
    assert exact(topology, table(topology, 50 * np.roll(np.eye(9), 4, axis=1))) < 1


# Translations


@pytest.mark.long
@pytest.mark.parametrize(
    "keys",
    [
        {"kind": "torus", "dims": [6, 4]},
        {"kind": "torus", "dims": [3, 4, 5]},
        {"kind": "hypercube", "dim": 5},
        {"kind": "hyperx", "dims": [3, 4], "multiplicity": [2, 1]},
        {"kind": "flattened_butterfly", "k": 3, "n": 3, "hosts_per_switch": 1},
        {"kind": "long_hop", "dim": 5, "degree": 8},
    ],
)
def test_one_destination_stands_for_all(keys):
    """The flow written out for all destinations passes the ordinary certificate, and the arc LP agrees."""
    topology = built(**keys)
    problem = Problem.of(topology, make("traffic", kind="uniform").build(topology))
    assert problem.orbit is not None
    lengths, paths = solve_orbit(problem, 1e-7)
    theta, load = verify_orbit(problem, paths)
    flow = translated_flow(problem, paths)
    assert (verify_flow(problem, flow) / problem.demand.amount).min() == pytest.approx(theta, rel=1e-9)
    assert flow.sum(axis=0) * theta == pytest.approx(load, abs=1e-9)
    upper = problem.graph.capacity @ lengths / network_cost(problem.graph, problem.demand, lengths)
    assert theta <= upper * (1 + 1e-9) and upper <= theta * (1 + 1e-6)
    assert by_columns(Problem(problem.graph, problem.demand), 1e-6)[0] == pytest.approx(theta, rel=2e-6)


def test_a_circulant_from_a_list_of_links_is_recognised():
    links = [(v, (v + step) % 15) for v in range(15) for step in (1, 4)]
    topology = Topology.from_links("file", 15, links).with_hosts(1, INF)
    assert [group.dims for group in translations(topology)] == [(15,)]


def test_what_breaks_the_symmetry_disables_it():
    whole = built("torus", dims=[5, 4])
    assert Problem.of(whole, all_to_all(whole)).orbit is not None
    uneven = table(whole, np.diag(np.arange(1.0, 21.0))[np.roll(np.arange(20), 1)] / 20)
    assert Problem.of(whole, uneven).orbit is None
    broken = built("torus", dims=[5, 4], failures={"links": 0.1, "seed": 1})
    assert Problem.of(broken, all_to_all(broken)).orbit is None
    capacity = np.ones(40)
    capacity[3] = 2
    links = np.column_stack([whole.src, whole.dst])[whole.src < whole.dst]
    wide = Topology.from_links("torus", 20, links, capacity=capacity, notes={"dims": [5, 4]}).with_hosts(1, INF)
    assert list(translations(wide)) == []
    crowded = whole.with_hosts([2] + [1] * 19, INF)
    assert Problem.of(crowded, all_to_all(crowded)).orbit is None


# Demands as lists


def test_sparse_demands_never_become_a_matrix():
    topology = built("rrg", n=3000, degree=4, seed=1)
    traffic = make("traffic", kind="permutation", seed=2).build(topology)
    problem = Problem.of(topology, traffic)
    assert problem.demand.size == 3000 and "switch_demand" not in vars(traffic)


@settings(max_examples=20, deadline=None)
@given(small_scenarios())
def test_lists_and_matrices_agree(case):
    lists, matrix = Demand.of_traffic(case.traffic), Demand.of(case.traffic.switch_demand)
    for one, other in zip(lists, matrix, strict=True):
        np.testing.assert_allclose(one, other)
    n = case.topology.switches
    assert lists.find(n, lists.source, lists.destination).tolist() == list(range(lists.size))


@pytest.mark.parametrize("pattern", ["uniform", "all_to_all", "permutation"])
def test_several_hosts_a_switch(pattern):
    topology = built("rrg", n=10, degree=3, hosts=[3, 0, 2, 2, 2, 1, 0, 4, 1, 1])
    traffic = make("traffic", kind=pattern).build(topology)
    for one, other in zip(Demand.of_traffic(traffic), Demand.of(traffic.switch_demand), strict=True):
        np.testing.assert_allclose(one, other)


# Bad input


@pytest.mark.parametrize("value", [np.nan, -0.5, np.inf])
def test_a_demand_that_is_no_amount_is_named(value):
    topology = built("torus", dims=[5])
    matrix = np.roll(np.eye(5), 1, axis=1)
    matrix[2, 4] = value
    with pytest.raises(FluidError, match=r"host 2 for host 4 is (nan|-0.5|inf): it must be finite and not negative"):
        Problem.of(topology, table(topology, matrix))


def test_a_demand_without_a_path_is_named():
    parts = Topology.from_links("parts", 4, [(0, 1), (2, 3)]).with_hosts(1, INF)
    matrix = np.zeros((4, 4))
    matrix[1, 3] = 1
    with pytest.raises(FluidError, match="switch 1 has demand for switch 3 but no path to it"):
        Problem.of(parts, table(parts, matrix))
    one_way = Topology.from_arcs("one way", 3, [(0, 1), (1, 2)]).with_hosts(1, INF)
    matrix = np.zeros((3, 3))
    matrix[0, 2] = 1
    assert exact(one_way, table(one_way, matrix)) == pytest.approx(1)


def test_graphs_of_channels_in_any_order():
    graph = Graph.from_channels(3, [0, 0, 1], [1, 2, 2], [1, 2, 3])
    assert graph.matrix().toarray().tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
