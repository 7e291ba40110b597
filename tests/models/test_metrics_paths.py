# SPDX-License-Identifier: Apache-2.0
"""Metrics of hops, path sets and loads, and their bounds, against enumeration, closed forms and published values."""

import json
from collections import Counter
from itertools import product
from math import ceil, comb, log

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flitlab.models.metrics.bounds import largest_graph_order
from flitlab.models.metrics.gdbg_lemmas import gdbg_degree, walk_counts, walk_uses
from flitlab.models.registry import make
from flitlab.models.topology.bounds import (
    covering_hops,
    link_load_bound,
    moore_diameter,
    moore_order,
    paths_within_bound,
    shortest_paths_length,
)
from flitlab.models.topology.graph import Topology

SMALL = make("topology", kind="kautz", degree=3, diameter=2).build()


def measure(metric: dict, **topology) -> dict:
    return make("metric", **metric).measure(make("topology", **topology).build())


def complete(n: int) -> Topology:
    return Topology.from_links("complete", n, np.argwhere(np.triu(np.ones((n, n)), 1))).with_hosts(1)


def test_every_metric_is_json_and_the_same_again():
    for name in ("k_shortest", "link_load", "lemma_bounds", "paths_within", "path_counts", "gdbg_lemmas"):
        for kind, degree in (("gdbg", 3), ("rrg", 4)):
            topology = make("topology", kind=kind, n=20, degree=degree).build()
            found = make("metric", kind=name).columns(topology)
            assert json.loads(json.dumps(found)) == found
            assert make("metric", kind=name).columns(topology) == found


def test_complete_graphs():
    # one path of 1 hop, n - 2 of 2 hops, (n - 2)(n - 3) of 3
    found = make("metric", kind="paths_within", hops=3).measure(complete(7))
    assert (found["min"], found["mean"], found["max"], found["none"]) == (26, 26, 26, 0)
    assert make("metric", kind="k_shortest", k=10).measure(complete(7))[""] == pytest.approx((1 + 5 * 2 + 4 * 3) / 10)
    load = make("metric", kind="link_load").measure(complete(7))
    assert (load["min"], load["max"], load["ratio"]) == (1, 1, 1)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_loads_of_hypercubes(dim):
    for routing in ("minimal", "allpath"):
        found = measure({"kind": "link_load", "routing": routing, "hops": dim}, kind="hypercube", dim=dim)
        assert found["min"] == pytest.approx(found["max"])
        if routing == "minimal":  # every switch sends dim / 2 hops to each of 2**dim, itself included
            assert found["mean"] == pytest.approx(2**dim / 2)


def test_loads_of_rings():
    found = measure({"kind": "link_load"}, kind="torus", dims=[9])
    assert (found["min"], found["max"]) == (pytest.approx(10), pytest.approx(10))  # (n**2 - 1) / 8
    both_ways = measure({"kind": "link_load", "routing": "ksp", "k": 2}, kind="torus", dims=[9])
    assert both_ways["mean"] == both_ways["max"] == pytest.approx(9 * 8 / 2 / 2)  # 9 hops a pair, half on either way
    assert (both_ways["paths_mean"], both_ways["none"]) == (2, 0)


def test_pairs_out_of_reach_are_counted():
    found = measure({"kind": "link_load", "routing": "allpath", "hops": 2}, kind="torus", dims=[9])
    assert found["none"] == 4 / 8
    assert found["mean"] == pytest.approx(9 * (2 * 1 + 2 * 2) / 18)
    assert measure({"kind": "paths_within", "hops": 2}, kind="torus", dims=[9])["none"] == 4 / 8
    assert measure({"kind": "k_shortest", "k": 3}, kind="torus", dims=[9])["missing"] == 1


def test_path_numbers_equal_walks_without_repetition():
    topology = make("topology", kind="rrg", n=40, degree=5, seed=4).build()
    a = nx.to_numpy_array(nx.Graph(topology.to_networkx()), dtype=int)
    # walks of 3 hops less those that go back and forth: over the source, over the target, over both
    degree = a.sum(1)
    walks = a + a @ a + a @ a @ a - a * degree[:, None] - a * degree[None, :] + a
    expected = walks[~np.eye(40, dtype=bool)]
    found = make("metric", kind="paths_within", hops=3).measure(topology)
    assert (found["min"], found["max"]) == (expected.min(), expected.max())
    assert found["mean"] == pytest.approx(expected.mean())


def test_nothing_beats_the_lemmas():
    for kind, n, degree in (("rrg", 60, 4), ("random_digraph", 50, 3), ("gdbg", 64, 4), ("kautz", 36, 3)):
        size = {"degree": 3, "diameter": 3} if kind == "kautz" else {"n": n, "degree": degree}
        topology = make("topology", kind=kind, **size).build()
        bounds = make("metric", kind="lemma_bounds", k=5).measure(topology)
        paths = make("metric", kind="k_shortest", k=5).measure(topology)
        assert paths["bound"] == bounds["k_shortest"] <= paths[""] <= paths["longest"]
        within = make("metric", kind="paths_within", hops=bounds["hops"]).measure(topology)
        assert within["min"] <= within["bound"] == bounds["paths_within"]
        for routing in ("minimal", "ksp", "allpath"):
            load = make("metric", kind="link_load", routing=routing).measure(topology)
            assert bounds["link_load"] == load["bound"]
            if load.get("none"):
                assert load["ratio"] is None
            else:
                assert load["max"] / load["bound"] == load["ratio"] >= 1


@pytest.mark.long
def test_gdbg_3000_40_has_twenty_paths_of_three_hops():
    # DBG section IV-A says 21; that is the number of *walks*, but some become the same path without their loops
    assert measure({"kind": "paths_within", "hops": 3}, kind="gdbg", n=3000, degree=40)["min"] == 20
    assert 40**3 // 3000 == 21


@pytest.mark.long
def test_gdbg_is_near_the_bounds_and_random_is_not():
    # DBG Figures 7 and 10, smaller
    found, paths = {}, 0.0
    for kind in ("gdbg", "rrg"):
        topology = make("topology", kind=kind, n=201, degree=12).build()
        found[kind] = make("metric", kind="k_shortest", k=8).measure(topology)["ratio"]
        # at random, as many paths as on average in the other
        routing = {"routing": "allpath"} if kind == "gdbg" else {"routing": "ksp", "k": ceil(paths)}
        load = make("metric", kind="link_load", **routing).measure(topology)
        found[kind, "load"] = load["ratio"]
        paths = load["paths_mean"]
    assert found["gdbg"] < 1.001 < 1.01 < found["rrg"] < 1.06
    assert found["gdbg", "load"] < found["rrg", "load"]


def test_lemmas_hold_on_walks():
    walks_only = 0
    for degree in (2, 3, 5, 8):
        for n in (*range(max(3, degree), 24), 64, 81):
            topology = make("topology", kind="gdbg", n=n, degree=degree).build()
            found = make("metric", kind="gdbg_lemmas").measure(topology)
            assert all(found[name] for name in ("lemma5", "lemma6", "lemma7", "lemma9_walks", "lemma10_walks")), (
                n,
                degree,
                found,
            )
            walks_only += not found["lemma9"]
    assert walks_only
    found = measure({"kind": "gdbg_lemmas", "k": 2}, kind="gdbg", n=140, degree=12)
    assert found["lemma8"] and found["lemma9"] and found["lemma10"]


@pytest.mark.parametrize(("n", "degree", "hops"), [(6, 2, 2), (6, 2, 3), (7, 3, 3)])
def test_uses_are_those_of_all_walks(n, degree, hops):
    used = Counter()
    for walk in product(range(n), *[range(degree)] * hops):
        at = walk[0]
        for port in walk[1:]:
            used[at, port] += 1
            at = (at * degree + port) % n
    assert set(used.values()) == {hops * degree ** (hops - 1)}
    assert walk_uses(n, degree, hops).tolist() == [used[v, 0] for v in range(n)]


def test_gdbg_is_recognised_by_its_channels():
    for n, degree in ((7, 7), (12, 3), (6, 2), (50, 7)):
        assert gdbg_degree(make("topology", kind="gdbg", n=n, degree=degree).build()) == degree
    imase = make("topology", kind="imase", n=50, degree=7).build()
    assert gdbg_degree(imase) is None
    assert set(make("metric", kind="gdbg_lemmas").measure(imase).values()) == {None}


def test_walks_are_powers_of_the_adjacency():
    n, degree = 11, 3
    a = np.zeros((n, n), int)
    for i in range(n):
        for j in range(degree):
            a[i, (degree * i + j) % n] += 1
    assert (walk_counts(n, degree, 4) == np.linalg.matrix_power(a, 4)).all()


def test_path_counts_of_a_jellyfish():
    # SIN Figure 6.1: about 55 % and 6 % of the links are on at most two paths
    share = {"ecmp": [], "ksp": []}
    for seed in (1, 2, 3):
        topology = make("topology", kind="rrg", n=245, ports=14, hosts_total=686, seed=seed).build()
        for routing, shares in share.items():
            found = make("metric", kind="path_counts", routing=routing, seed=seed).measure(topology)
            assert len(found["counts"]) == topology.channels
            shares.append(found["share_at_most_2"])
    assert np.mean(share["ecmp"]) == pytest.approx(0.55, abs=0.06)
    assert np.mean(share["ksp"]) == pytest.approx(0.06, abs=0.03)


def test_path_counts_need_channels():
    with pytest.raises(ValueError, match="needs two switches"):
        make("metric", kind="path_counts").measure(Topology.from_links("one", 1, []).with_hosts(3))


def test_path_counts_of_a_complete_graph():
    found = make("metric", kind="path_counts", routing="ecmp").measure(complete(9))
    assert found["counts"] == [0] * (72 - 9) + [1] * 9
    assert found["mean"] == pytest.approx(1 / 8)
    assert found["unused"] == pytest.approx(7 / 8)
    # hosts of one switch that talk to hosts of one other bring the same paths
    two = Topology.from_links("two", 2, [(0, 1)]).with_hosts(40)
    assert make("metric", kind="path_counts").measure(two)["counts"] == [1, 1]


def test_the_distribution_of_a_hypercube_is_binomial():
    found = measure({"kind": "hop_distribution", "within": 3}, kind="hypercube", dim=10, hosts_per_switch=3)
    assert found["counts"] == {str(h): 1024 * comb(10, h) for h in range(1, 11)}
    assert sum(found["shares"].values()) == pytest.approx(1)
    assert found["mean"] == found["host_mean"] == pytest.approx(5 * 1024 / 1023)
    within = np.cumsum([comb(10, h) for h in range(1, 11)]) / 1023
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p9999", 0.9999)):
        assert found[name] == 1 + int((within < share).sum())
    assert found["within"] == pytest.approx(within[2])
    # 3 server hops: the two other hosts of the switch, or those of a neighbour
    assert found["host_within"] == pytest.approx((2 + 10 * 3) / (3 * 1024 - 1))
    assert found["host_max"] == 10


def test_hosts_weigh_the_distances():
    line = Topology.from_links("line", 3, [(0, 1), (1, 2)]).with_hosts([2, 0, 3])
    found = make("metric", kind="hop_distribution", within=4).measure(line)
    assert (found["mean"], found["host_mean"], found["host_max"]) == (pytest.approx(4 / 3), 2.0, 2)
    assert found["host_within"] == 1.0
    assert make("metric", kind="hop_distribution", within=3).measure(line)["host_within"] == pytest.approx(8 / 20)
    one = make("metric", kind="hop_distribution", within=2).measure(line.with_hosts([0, 1, 0]))
    assert (one["host_mean"], one["host_max"], one["host_within"]) == (None, None, None)


def test_most_servers_of_a_jellyfish_are_within_five_hops_and_few_of_a_fat_tree():
    within = {"kind": "hop_distribution", "within": 5}
    jellyfish = [measure(within, kind="rrg", n=245, ports=14, hosts_total=686, seed=s) for s in (1, 2, 3)]
    assert min(found["host_within"] for found in jellyfish) > 0.995  # SIN Figure 4.1
    tree = measure(within, kind="fat_tree", k=14)
    assert tree["host_within"] == 48 / 685  # the other 48 servers of the pod
    assert tree["host_max"] == 4


def test_a_sampled_distribution_says_how_exact_it_is():
    large = {"kind": "imase", "n": 3000, "degree": 4}
    sampled = measure({"kind": "hop_distribution", "sources": 640}, **large)
    exact = measure({"kind": "hop_distribution"}, **large)
    assert abs(sampled["mean"] - exact["mean"]) < 4 * sampled["mean_stderr"] < 0.1
    assert sampled["host_mean"] is None
    assert sum(sampled["counts"].values()) == 640 * 2999
    assert "mean_stderr" not in exact


@pytest.mark.parametrize("degree", [2, 3, 5, 20])
@pytest.mark.parametrize("directed", [False, True])
def test_moore_diameter_and_order_are_inverse(degree, directed):
    for diameter in range(1, 5):
        order = moore_order(degree, diameter, directed)
        assert moore_diameter(order, degree, directed) == diameter
        assert moore_diameter(order + 1, degree, directed) == diameter + 1
        if directed:
            assert diameter == ceil(log(order * (degree - 1) + 1, degree) - 1e-9) - 1


def test_optimal_and_reached_diameters_of_degree_20():
    # DBG Table I
    for first, last, diameter in ((2, 21, 1), (22, 421, 2), (422, 8421, 3)):
        assert {moore_diameter(n, 20, True) for n in (first, last)} == {diameter}
    for n, expected in ((20, 1), (21, 2), (400, 2), (401, 3), (421, 3), (422, 3)):
        found = measure({"kind": "moore"}, kind="gdbg", n=n, degree=20)
        assert found["diameter"] + found["diameter_excess"] == expected
    optimal = sum(covering_hops(n, 20) == moore_diameter(n, 20, True) for n in range(2, 8422))
    assert optimal / 8420 == pytest.approx(0.947, abs=0.0005)


def test_moore_graphs_and_kautz_graphs():
    petersen = measure({"kind": "moore"}, kind="mddp", n=10, degree=3, directed=False)
    assert petersen == {
        "order": 10, "order_ratio": 1, "diameter": 2, "diameter_excess": 0, "aspl": 5 / 3, "aspl_ratio": 1,
        "host_aspl": pytest.approx(10 / 3), "host_aspl_ratio": pytest.approx(1.1),
    }  # fmt: skip
    kautz = measure({"kind": "moore"}, kind="kautz", degree=4, diameter=3)
    assert (kautz["order"], kautz["diameter_excess"]) == (1 + 4 + 16 + 64, 0)
    assert kautz["order_ratio"] == 80 / 85
    assert make("metric", kind="moore").measure(Topology.from_arcs("one", 1, []))["aspl_ratio"] == 1


def test_bounds_by_hand():
    # 8 * 900 paths: 20 of 1 hop, 400 of 2, the others of 3
    assert shortest_paths_length(901, 20, 8) == pytest.approx((20 + 2 * 400 + 3 * (7200 - 420)) / 7200)
    assert link_load_bound(901, 20) == pytest.approx((20 + 2 * 400 + 3 * 480) / 20)
    assert paths_within_bound(3000, 40, 3) == (40 + 1600 + 64000) // 2999 == 21
    assert [covering_hops(n, 3) for n in (1, 2, 3, 4, 9, 10)] == [0, 1, 1, 2, 2, 3]
    found = measure({"kind": "lemma_bounds", "k": 8}, kind="rrg", n=901, degree=20)
    assert found == {
        "diameter": 3, "k_shortest": shortest_paths_length(901, 20, 8), "hops": 3, "paths_within": 9, "link_load": 113,
    }  # fmt: skip
    with pytest.raises(ValueError, match="degree"):
        covering_hops(3, 1)


def known(topology=SMALL, **parameters):
    return make("metric", kind="known_orders", **parameters).measure(topology)


@pytest.mark.parametrize(("degree", "diameter", "order", "percent"), [(8, 4, 4608, 98), (12, 4, 22464, 99)])
def test_kautz_graphs_come_as_near_to_the_bound_as_published(degree, diameter, order, percent):
    """UNI section IV-A."""
    found = known(degree=degree, diameter=diameter)
    assert found["directed"] == order
    assert int(100 * found["directed_share"]) == percent


@pytest.mark.parametrize(("diameter", "more_than_tenfold"), [(2, False), (4, False), (7, True), (8, True), (10, True)])
def test_at_large_diameters_the_digraph_of_degree_8_is_ten_times_larger(diameter, more_than_tenfold):
    """UNI section I, Figure 1."""
    assert (known(degree=8, diameter=diameter)["ratio"] > 10) == more_than_tenfold


@pytest.mark.parametrize(("diameter", "order"), [(2, 6), (3, 12), (4, 25), (5, 50), (10, 1600)])
def test_of_degree_2_alegres_digraph_and_its_line_digraphs_are_the_largest(diameter, order):
    """Combinatorics Wiki, general digraphs."""
    assert known(degree=2, diameter=diameter)["directed"] == order


@given(st.integers(1, 20), st.integers(1, 12))
def test_no_order_exceeds_its_bound(degree, diameter):
    found = known(degree=degree, diameter=diameter)
    assert found["directed_bound"] == sum(degree**i for i in range(diameter + 1))
    assert found["undirected_bound"] == 1 + degree * sum((degree - 1) ** i for i in range(diameter))
    assert 0 < found["directed_share"] <= 1
    if found["undirected"] is not None:
        assert degree + 1 <= found["undirected"] <= found["undirected_bound"]
        # a bi-directional network is a uni-directional one too
        assert found["ratio"] >= 1


@pytest.mark.parametrize(
    ("graph", "degree", "diameter"),
    [
        (nx.petersen_graph(), 3, 2),
        (nx.complete_graph(6), 5, 1),
        (nx.cycle_graph(9), 2, 4),
        (nx.hoffman_singleton_graph(), 7, 2),
        (nx.path_graph(2), 1, 1),
    ],
)
def test_moore_graphs_are_the_largest(graph, degree, diameter):
    assert nx.diameter(graph) == diameter
    assert max(dict(graph.degree).values()) == degree
    assert largest_graph_order(degree, diameter) == len(graph)


def test_degree_and_diameter_are_those_of_the_topology_unless_given():
    cube = make("topology", kind="hypercube", dim=3).build()
    assert known(cube) == known(degree=3, diameter=3)
    assert known(cube, diameter=2) == known(degree=3, diameter=2)
    assert known(SMALL)["directed"] == SMALL.switches


def test_what_nobody_tabulates_is_left_open():
    assert known(degree=17, diameter=2)["undirected"] is None
    assert known(degree=17, diameter=2)["ratio"] is None


def test_a_single_switch_has_neither_degree_nor_diameter():
    alone = Topology.from_links("file", 1, [])
    with pytest.raises(ValueError, match="single switch"):
        known(alone)
    assert known(alone, degree=3, diameter=2)["undirected"] == 10
