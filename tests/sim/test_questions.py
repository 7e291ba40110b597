# SPDX-License-Identifier: Apache-2.0
"""Single questions in memory: a graph, a demand and a load go in, numbers come out."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from flitlab import ConfigError, Experiment, Topology, ceiling, simulate
from flitlab.models.registry import make

QUICK = {"engine": "reference", "measure__warmup": 100, "measure__ticks": 300, "measure__ci": None}
RING = nx.cycle_graph(8, create_using=nx.DiGraph)


def shift(n, by):
    """A demand of 1 from every i to i + by."""
    return np.roll(np.eye(n), by, axis=1)


@pytest.mark.parametrize("by", [1, 2, 5])
def test_a_one_way_ring_carries_one_over_the_distance(by, tmp_path):
    bound = ceiling(RING, shift(8, by))
    assert bound.lower <= 1 / by + 1e-9 and bound.upper >= 1 / by - 1e-9 and bound.upper - bound.lower < 0.02
    assert not list(tmp_path.iterdir())


def test_a_matrix_is_taken_as_it_is():
    once, twice = ceiling(RING, shift(8, 3)), ceiling(RING, 2 * shift(8, 3))
    assert once.upper == pytest.approx(2 * twice.upper)


def test_what_may_stand_for_a_topology_is_the_same_network():
    torus = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4, periodic=True), ordering="sorted")
    spec = make("topology", kind="torus", dims=[4, 4])
    given = [torus, Topology.from_networkx(torus), {"kind": "torus", "dims": (4, 4)}, spec, spec.build()]
    bounds = [ceiling(one, shift(16, 5)) for one in given]
    assert {(bound.lower, bound.upper) for bound in bounds[1:]} == {(bounds[0].lower, bounds[0].upper)}


def test_what_may_stand_for_a_demand_is_the_same_demand():
    matrix = shift(8, 3)
    topology = {"kind": "imase", "n": 8, "degree": 3}
    built = make("topology", **topology).build()
    traffic = make("traffic", kind="shift", by=3).build(built)
    given = [matrix, sparse.csr_array(matrix), traffic, {"kind": "shift", "by": 3}]
    assert len({ceiling(topology, one).upper for one in given}) == 1


def test_a_matrix_of_switches_is_split_over_their_hosts():
    topology = {"kind": "imase", "n": 8, "degree": 3, "hosts_per_switch": 2}
    case = Experiment.load(
        {"experiment": "ceilings", "topology": topology, "traffic": shift(8, 3), "ceilings": ["mcf"]}
    ).study.cases[0]
    assert np.allclose(case.instance.traffic.switch_demand, shift(8, 3)) and case.topology.hosts == 16


def test_attributes_of_a_graph_count():
    graph = nx.path_graph(2)
    graph.add_edge(0, 1, capacity=0.25)
    assert ceiling(graph, shift(2, 1)).upper == pytest.approx(0.25)
    nx.set_node_attributes(graph, {0: 3, 1: 0}, "hosts")
    assert Topology.from_networkx(graph).host_count.tolist() == [3, 0]


def test_labels_are_kept():
    graph = nx.cycle_graph(["Rome", "Oslo", "Bern"])
    assert Topology.from_networkx(graph).notes["labels"] == ["Rome", "Oslo", "Bern"]
    assert "labels" not in Topology.from_networkx(RING).notes


def test_a_simulation_is_that_of_the_configuration(tmp_path):
    point = simulate(RING, "minimal", shift(8, 2), 0.3, switching__vcs=7, **QUICK)
    config = {"topology": RING, "routing": "minimal", "traffic": shift(8, 2), "loads": [0.3], "ceilings": []}
    table = Experiment.load(config, switching__vcs=7, **QUICK).run(jobs=1).results
    assert point.accepted == table["accepted"][0] and point.accepted == pytest.approx(0.3, abs=0.05)
    assert point.latency_mean == table["latency_mean"][0] and point.hops_mean == 2
    assert point.frame.attrs["units"]["latency_mean"] == "ticks" and "0.3" in repr(point)
    assert not list(tmp_path.iterdir())


def test_several_loads_and_seeds_are_rows():
    curve = simulate({"kind": "imase", "n": 8, "degree": 3}, load=np.array([0.1, 0.2]), seeds=[1, 2], **QUICK)
    assert curve.frame[["load", "seed"]].values.tolist() == [[0.1, 1], [0.1, 2], [0.2, 1], [0.2, 2]]
    assert curve.accepted[0] < curve.accepted[2] and len(curve.accepted) == 4
    assert curve._repr_html_().startswith("<table")
    with pytest.raises(AttributeError, match="no column 'acepted'; did you mean 'accepted'"):
        _ = curve.acepted
    with pytest.raises(AttributeError):
        curve.frame = None


def test_a_ceiling_of_a_routing_and_one_at_a_load():
    torus = {"kind": "torus", "dims": [4, 4]}
    any_routing = ceiling(torus, shift(16, 5))
    minimal = ceiling(torus, shift(16, 5), "split", routing="minimal")
    assert minimal.upper <= any_routing.upper + 1e-9
    assert ceiling(torus, shift(16, 5), "total", load=0.1).load == 0.1


FEEDER = nx.DiGraph([*((f"feeder {i}", "main") for i in range(10)), ("main", "sink")])
"""Ten feeders of one link, which carries a tenth of each: acyclic, so that most pairs of switches have no path."""
nx.set_node_attributes(FEEDER, {node: int(node != "main") for node in FEEDER}, "hosts")
TO_SINK = {"kind": "matrix", "level": "switch", "normalise": "none", "text": "src,dst,demand\n"}
TO_SINK["text"] += "".join(f"feeder {i},sink,1\n" for i in range(10))


@pytest.mark.parametrize(("kind", "routing"), [("mcf", None), ("bounds", None), ("split", "minimal"), ("split", "ksp")])
def test_an_acyclic_network_has_ceilings(kind, routing):
    options = {"routing": {"kind": "ksp", "k": 1} if routing == "ksp" else routing} if routing else {}
    assert ceiling(FEEDER, TO_SINK, kind, **options, topology__host_capacity=math.inf).upper == pytest.approx(0.1)


def test_a_ceiling_is_printed_in_three_lines():
    lines = str(ceiling(nx.cycle_graph(4), "uniform", "bounds")).splitlines()
    assert lines[0] == "bounds: at most 1 load" and lines[1].startswith("closed form, ") and len(lines) == 3


def test_demand_without_a_path_is_named_and_other_modes_require_all_paths():
    back = {**TO_SINK, "text": "src,dst,demand\nsink,feeder 3,1\n"}
    with pytest.raises(ConfigError, match="switch sink has demand for switch feeder 3 but no path to it"):
        ceiling(FEEDER, back)
    with pytest.raises(ConfigError, match=r"topology.*not strongly connected: no path from switch feeder 0 to switch"):
        simulate(FEEDER, "minimal", TO_SINK, 0.5)
    with pytest.raises(ConfigError, match="no path leads from switch"):
        ceiling(FEEDER, TO_SINK, "cuts")


LAME = nx.path_graph(2)
LAME.add_edge(0, 1, capacity=-1)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: ceiling("petersen"), r"topology.kind = petersen: unknown topology; choices: .*"),
        (lambda: ceiling(3), "topology: is a int; must be a name, a mapping, a Topology, a networkx graph or"),
        (lambda: ceiling(nx.Graph()), "topology: a graph without nodes is no network"),
        (lambda: ceiling(nx.Graph([(0, 1), (2, 3)])), "switch 2 has demand for switch 0 but no path to it; .*largest"),
        (lambda: ceiling(LAME), r"topology: edge 0-1: capacity = -1 must be a positive number"),
        (lambda: ceiling(RING, np.ones((8, 7))), "traffic: a matrix of demands is square; this one is 8 x 7"),
        (lambda: ceiling(RING, np.ones((7, 7))), "traffic: a matrix of 7; there are 8 hosts and 8 switches"),
        (lambda: ceiling(RING, -np.ones((8, 8))), "demand must be finite and not negative"),
        (lambda: ceiling(RING, np.zeros((8, 8))), "no demand at all"),
        (lambda: ceiling(RING, np.full((8, 8), "a")), "traffic: is a matrix of <U1; demands are real numbers"),
        (lambda: ceiling(RING, "uniform", "mfc"), "mfc: unknown ceiling"),
        (lambda: ceiling(RING, "uniform", "mcf_paths"), "needs|no routing"),
        (lambda: ceiling(RING, "uniform", "total"), "depends on the load; loads is missing"),
        (lambda: simulate(RING, "minimal", "uniform", 1.5), "loads.* = 1.5: must be"),
        (lambda: simulate(RING, "minimal", 2 * shift(8, 1), 0.9), "load"),
        (lambda: simulate(RING, "minimal", "uniform", 0.5, seed=3), "seed = 3: unknown key.*did you mean 'seeds'"),
        (lambda: simulate(RING, "dor"), "routing"),
    ],
)
def test_what_is_wrong_is_said(ask, said):
    with pytest.raises(ConfigError, match=said):
        ask()
