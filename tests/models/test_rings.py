# SPDX-License-Identifier: Apache-2.0
"""Rings of hosts: Hamiltonian cycles, and the least loaded orders where there are none."""

import json
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from flitlab.models.application.placement import PlacementSpec
from flitlab.models.collective.cycle import count_joined, cycle_cover, cycles_of, hamiltonian_cycle, join_cycles
from flitlab.models.collective.ring import MinimalPathLoad, find_ring, least_loaded_order, ring_of, ring_segment
from flitlab.models.registry import SpecError, make
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.manifest import manifest
from tests.models.test_placement import idle
from tests.scenarios import build, one_way_ring

HAMILTONIAN = [
    {"kind": "kautz", "degree": 4, "diameter": 3},
    {"kind": "imase", "n": 64, "degree": 4},
    {"kind": "mddp", "n": 64, "degree": 4},
    {"kind": "hypercube", "dim": 6},
    {"kind": "torus", "dims": [8, 8]},
    {"kind": "torus", "dims": [5, 4, 3]},
    {"kind": "mesh", "dims": [6, 7]},
    {"kind": "rrg", "n": 64, "degree": 6, "seed": 1},
    {"kind": "rrg", "n": 1024, "degree": 6, "seed": 1},
    {"kind": "random_digraph", "n": 200, "degree": 3, "seed": 1},
    {"kind": "slim_fly", "q": 5},
]


def arcs_of(graph):
    return [sorted(graph.successors(v)) for v in range(len(graph))]


def random_digraph(rng, count, degree):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    for v in range(count):
        graph.add_edges_from((v, int(w)) for w in rng.choice(count, degree, replace=False) if w != v)
    return graph


def has_cycle(out):
    """Whether one of all orders is a cycle."""
    return any(count_joined(out, (0, *rest)) == len(out) for rest in permutations(range(1, len(out))))


@pytest.mark.parametrize("keys", HAMILTONIAN, ids=lambda keys: f"{keys['kind']}{keys.get('n', '')}")
def test_neighbours_follow_each_other(keys):
    topology = build(**keys, hosts=2)
    ring = find_ring(topology)
    place = topology.host_switch[ring.order]
    channels = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    steps = list(zip(place.tolist(), np.roll(place, -1).tolist(), strict=True))
    assert sorted(ring.order.tolist()) == list(range(topology.hosts))
    assert all(u == v or (u, v) in channels for u, v in steps)
    assert sum(u != v for u, v in steps) == topology.switches
    assert (ring.hamiltonian, ring.load) == (True, 1.0)


def test_dragonflies_whose_groups_are_joined_in_pairs_too():
    for a, h in ((2, 1), (4, 2)):
        ring = find_ring(make("topology", kind="dragonfly", a=a, p=1, h=h).build())
        assert (ring.hamiltonian, ring.load) == (True, 1.0)


def test_a_cycle_is_found_where_there_is_one_and_only_there():
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(60):
        graph = random_digraph(rng, 7, 3)
        if rng.random() < 0.5:
            graph = graph.to_undirected().to_directed()
        out = arcs_of(graph)
        order, found = hamiltonian_cycle(out, rng)
        assert sorted(order) == list(range(7))
        assert found == (count_joined(out, order) == 7) == has_cycle(out)
        seen.append(found)
    assert 10 < sum(seen) < 50


def test_petersen_has_only_a_path():
    topology = Topology.from_networkx(nx.petersen_graph())
    out = [sorted(nx.petersen_graph()[v]) for v in range(10)]
    order, found = hamiltonian_cycle(out, np.random.default_rng(1))
    assert not found and count_joined(out, order) == 9
    ring = find_ring(topology.with_hosts(1))
    assert (ring.hamiltonian, ring.load) == (False, 1.0)


def test_patching_leaves_one_cycle_of_a_line_digraph():
    """Vertices that share a follower share all, so no exchange can fail."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        graph = nx.MultiDiGraph(list(zip(range(12), [*range(1, 12), 0], strict=True)))
        for _ in range(2):
            graph.add_edges_from(enumerate(rng.permutation(12).tolist()))
        line = nx.convert_node_labels_to_integers(nx.line_graph(graph))
        out = [[w for w in heads if w != v] for v, heads in enumerate(arcs_of(line))]
        cover = cycle_cover(out, rng)
        if cover is None:
            continue
        assert sorted(cover) == list(range(len(out))) and all(w in out[v] for v, w in enumerate(cover))
        assert len(cycles_of(join_cycles(out, cover))) == 1


def test_no_cycle_cover_is_a_proof():
    """A mesh with an odd number of switches has more of one colour than of the other."""
    out = arcs_of(nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 5)).to_directed())
    assert cycle_cover(out, np.random.default_rng(1)) is None


@pytest.mark.parametrize(
    ("keys", "load"),
    [
        ({"kind": "kautz", "degree": 4, "diameter": 3}, 2),
        ({"kind": "imase", "n": 64, "degree": 4}, 3),
        ({"kind": "rrg", "n": 64, "degree": 6, "seed": 1}, 2.25),
        ({"kind": "mddp", "n": 64, "degree": 4}, 17 / 6),
    ],
)
def test_load_in_the_order_of_numbers(keys, load):
    topology = build(**keys)
    ring = ring_of(topology, np.arange(topology.hosts))
    assert (ring.hamiltonian, ring.load) == (False, pytest.approx(load))


def test_loads_are_those_of_equal_shares_of_all_next_hops():
    """Against the expected way of a packet that draws a next hop on a shortest path, followed with networkx."""
    topology = build("rrg", n=20, degree=4, seed=3)
    graph = nx.DiGraph(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    order = np.random.default_rng(5).permutation(20).tolist()
    expected = dict.fromkeys(graph.edges, 0.0)

    def follow(v, target, part):
        left = nx.shortest_path_length(graph, v, target)
        near = [w for w in graph[v] if left and nx.shortest_path_length(graph, w, target) == left - 1]
        for w in near:
            expected[v, w] += part / len(near)
            follow(w, target, part / len(near))

    for i in range(20):
        follow(order[i - 1], order[i], 1.0)
    load = MinimalPathLoad(topology).load(order)
    assert load == pytest.approx([expected[u, v] for u, v in zip(topology.src, topology.dst, strict=True)])


def test_fast_channels_are_preferred():
    """Eight switches in a fast ring with slow chords: only one Hamiltonian cycle has no slow channel."""
    links = [(v, (v + 1) % 8) for v in range(8)] + [(v, (v + k) % 8) for v in range(8) for k in (2, 3)]
    capacity = np.repeat([2.0, 0.5], [8, 16])
    topology = Topology.from_links("ring", 8, links, capacity=capacity).with_hosts(1, host_capacity=2.0)
    for seed in range(5):
        ring = find_ring(topology, seed)
        assert (ring.hamiltonian, ring.load) == (True, 0.5)


def test_a_cycle_of_slow_channels_is_not_taken_where_others_carry_less():
    """Two cliques, joined by two links of half the capacity: the cycle takes each, shortest paths share both."""
    inside = [(u, v) for u in range(4) for v in range(u)]
    links = [*inside, *((u + 4, v + 4) for u, v in inside), (0, 4), (1, 5)]
    topology = Topology.from_links("cliques", 8, links, capacity=np.repeat([1.0, 0.5], [12, 2])).with_hosts(1)
    cycle = ring_of(topology, np.array([0, 2, 3, 1, 5, 6, 7, 4]))
    assert (cycle.hamiltonian, cycle.load) == (True, 2.0)
    ring = find_ring(topology)
    assert (ring.hamiltonian, ring.load) == (False, 1.0)


def test_parallel_channels_share():
    topology = Topology.from_links("pair", 2, [(0, 1), (0, 1)]).with_hosts(3)
    ring = find_ring(topology)
    assert (ring.hamiltonian, ring.load) == (True, 0.5)


def test_the_least_loaded_order_is_no_worse_than_any_it_is_given():
    rng = np.random.default_rng(4)
    for seed in range(4):
        topology = build("random_digraph", n=30, degree=2, seed=seed)
        ways = MinimalPathLoad(topology)
        orders = [rng.permutation(30).tolist() for _ in range(3)]
        found = least_loaded_order(ways, orders, 1.0, rng)
        assert sorted(found) == list(range(30))
        assert ways.max_load(found) < min(map(ways.max_load, orders))


def test_the_least_loaded_order_is_the_best_of_all_small_ones():
    rng = np.random.default_rng(7)
    for seed in range(8):
        tree = nx.random_labeled_tree(7, seed=seed)
        tree.add_edge(*rng.choice(7, 2, replace=False).tolist())
        ways = MinimalPathLoad(Topology.from_networkx(tree))
        best = min(ways.max_load((0, *rest)) for rest in permutations(range(1, 7)))
        assert ways.max_load(least_loaded_order(ways, [list(range(7))], 0.0, rng)) == pytest.approx(best)


def test_pods_of_a_fat_tree_stay_together():
    """Only edge switches have hosts, so none is a neighbour; each goes up once, whatever the order."""
    topology = build("fat_tree", k=4, hosts=2)
    ring = find_ring(topology)
    assert (ring.hamiltonian, ring.load) == (False, 0.5)
    pod = topology.host_switch[ring.order] // 2
    assert (np.diff(pod) != 0).sum() == len(np.unique(pod)) - 1


@pytest.mark.parametrize("hosts", [[3], [0, 5, 0], [1, 0, 1]])
def test_few_switches_with_hosts(hosts):
    links = [(v, v + 1) for v in range(len(hosts) - 1)]
    topology = Topology.from_links("line", len(hosts), links).with_hosts(hosts)
    ring = find_ring(topology)
    assert ring.order.tolist() == list(range(topology.hosts))
    many = np.count_nonzero(hosts) > 1
    assert (ring.hamiltonian, ring.load) == (not many, float(many))


def test_one_way_rings_and_no_way():
    ring = find_ring(one_way_ring(6, 2))
    assert (ring.hamiltonian, ring.load) == (True, 1.0) and ring.order.tolist() == list(range(12))
    with pytest.raises(ValueError, match="no path from switch 1 to switch 0"):
        find_ring(Topology.from_arcs("one way", 2, [(0, 1)]).with_hosts(1))


def test_placement():
    topology = build("kautz", degree=2, diameter=3, hosts=2)
    spec = make("placement", kind="ring")
    host = spec.build(topology, idle(24))
    assert host.tolist() == find_ring(topology, 1).order.tolist() == spec.build(topology, idle(24)).tolist()
    assert host.tolist() != make("placement", kind="ring", seed=3).build(topology, idle(24)).tolist()
    assert spec.validated_notes(topology, host) == {"hamiltonian": True, "ring_load": 1.0}


def test_a_part_of_a_ring_is_closed_where_it_can_be():
    """A torus of 4 x 4 has two colours of switches, so odd numbers of them never close."""
    topology = build("torus", dims=[4, 4], hosts=2)
    order = find_ring(topology).order
    for ranks in range(1, 32):
        part = ring_segment(topology, order, ranks)
        start = order.tolist().index(part[0])
        assert start % 2 == 0 and part.tolist() == np.roll(order, -start)[:ranks].tolist()
        switches = (ranks + 1) // 2
        closes = any(
            (topology.host_switch[order[2 * i]], topology.host_switch[order[(2 * (i + switches) - 2) % 32]])
            in set(zip(topology.dst.tolist(), topology.src.tolist(), strict=True))
            for i in range(16)
        )
        assert ring_of(topology, part).hamiltonian == (closes or switches == 1)
        assert not (closes and switches % 2)
    host = make("placement", kind="ring").build(topology, idle(7))
    assert host.tolist() == ring_segment(topology, order, 7).tolist()


CONFIG = """
experiment: application
topology: {kind: kautz, degree: 2, diameter: 3}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4}
application: {kind: all_gather, size_bytes: 32768, algorithm: ring}
placement: {kind: ring}
"""


def test_readers_of_results_are_told_how_good_a_ring_is():
    study = read("c.yaml", text=CONFIG)
    (case,) = study.cases
    assert case.workload.notes == {"hamiltonian": True, "ring_load": 1.0}
    (scenario,) = manifest(study)["scenarios"]
    assert scenario["placement"] == {"kind": "ring", "seed": 1, "hamiltonian": True, "ring_load": 1.0}


@pytest.mark.long
def test_users_are_told_how_good_a_ring_is(capsys):
    Path("c.yaml").write_text(CONFIG)
    assert main(["check", "c.yaml", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["scenarios"]
    assert told["application"]["notes"] == {"hamiltonian": True, "ring_load": 1.0}


def test_notes_of_a_stranger_s_placement_are_looked_at():
    class Odd(PlacementSpec):
        def hosts(self, topology, program):
            return np.arange(program.ranks)

        def notes(self, topology, host):
            return {"array": host}

    with pytest.raises(SpecError, match="notes must be plain"):
        Odd(kind="odd").validated_notes(build("torus", dims=[3, 3]), np.arange(9))
