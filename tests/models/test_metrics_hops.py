# SPDX-License-Identifier: Apache-2.0
"""Hop distribution and Moore-type bounds against closed forms and published values."""

from math import ceil, comb, log

import numpy as np
import pytest

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


def measure(metric: dict, **topology) -> dict:
    return make("metric", **metric).measure(make("topology", **topology).build())


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
