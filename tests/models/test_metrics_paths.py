# SPDX-License-Identifier: Apache-2.0
"""Metrics of path sets and loads against exhaustive enumeration, closed forms and published values."""

import json
from collections import Counter
from itertools import product
from math import ceil

import networkx as nx
import numpy as np
import pytest

from flitlab.models.metrics.gdbg_lemmas import gdbg_degree, walk_counts, walk_uses
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology


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
