# SPDX-License-Identifier: Apache-2.0
"""Distances, histogram, ASPL and Moore bound against networkx and closed forms."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.metrics.summary import summary
from flitlab.models.registry import make
from flitlab.models.topology.bounds import moore_aspl
from flitlab.models.topology.distances import (
    aspl,
    diameter,
    distance_counts,
    distances,
    mean_hops,
    mean_of_reachable,
    sampled_distances,
)
from flitlab.models.topology.graph import Topology


@st.composite
def arcs(draw, most=80):
    """Arcs on at most ``most`` switches: more than one word of sources, loops and parallels included."""
    n = draw(st.integers(1, most))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    extra = rng.integers(n, size=(draw(st.integers(0, 2 * n)), 2))
    ring = np.column_stack([np.arange(n), np.roll(rng.permutation(n), 1)])
    return n, np.concatenate([ring, extra])


@given(arcs())
@settings(max_examples=80, deadline=None)
def test_metrics_equal_networkx(drawn):
    topology = Topology.from_arcs("drawn", *drawn)
    graph = nx.DiGraph(topology.to_networkx())
    if not nx.is_strongly_connected(graph):
        u, v = topology.unreachable_pair()
        assert not nx.has_path(graph, u, v)
        for metric in (distance_counts, distances, diameter, aspl):
            with pytest.raises(ValueError, match="no path from switch"):
                metric(topology)
        assert summary(topology)["diameter"] is summary(topology)["aspl"] is None
        lengths = nx.all_pairs_shortest_path_length(graph)
        hops = [h for s, by_end in lengths for t, h in by_end.items() if s != t]
        assert mean_of_reachable(topology) == pytest.approx(np.mean(hops) if hops else 0)
        return
    assert topology.unreachable_pair() is None
    expected = nx.floyd_warshall_numpy(graph, nodelist=range(topology.switches))
    assert (distances(topology) == expected).all()
    assert (distance_counts(topology) == np.bincount(expected.astype(int).ravel())).all()
    assert diameter(topology) == expected.max()
    assert aspl(topology) == pytest.approx(nx.average_shortest_path_length(graph))
    degree = int(topology.out_degree.max())
    assert moore_aspl(topology.switches, degree, directed=True) <= aspl(topology) + 1e-12


def test_distances_run_from_row_to_column():
    ring = Topology.from_arcs("ring", 3, [(0, 1), (1, 2), (2, 0)])
    assert distances(ring).tolist() == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    assert distances(ring).dtype == np.uint8


def test_long_distances_need_sixteen_bits():
    ring = make("topology", kind="torus", dims=[520]).build()
    table = distances(ring)
    assert table.dtype == np.uint16
    assert table.max() == 260
    assert (table == table.T).all()


@pytest.mark.parametrize(
    ("n", "degree", "directed", "expected"),
    [
        (64, 6, True, (6 + 2 * 36 + 3 * 21) / 63),
        (10, 3, False, (3 + 2 * 6) / 9),  # Petersen attains it
        (50, 7, False, (7 + 2 * 42) / 49),  # so does Hoffman-Singleton
        (5, 1, True, (1 + 2 + 3 + 4) / 4),
        (7, 2, False, (2 + 4 + 6) / 6),
        (4, 9, True, 1.0),
        (1, 0, False, 0.0),
    ],
)
def test_moore_bound(n, degree, directed, expected):
    assert moore_aspl(n, degree, directed) == pytest.approx(expected)


def test_moore_bound_refuses_what_cannot_be_connected():
    with pytest.raises(ValueError, match="cannot be connected"):
        moore_aspl(3, 1, directed=False)


def test_moore_graphs_reach_the_bound():
    for degree, n in ((3, 10), (7, 50)):
        topology = make("topology", kind="mddp", n=n, degree=degree, directed=False).build()
        assert aspl(topology) == moore_aspl(n, degree, directed=False)


def test_summary_is_json_and_complete():
    topology = make("topology", kind="mesh", dims=[3, 3], hosts_per_switch=2).build()
    found = summary(topology)
    assert json.loads(json.dumps(found)) == found
    assert {key: found[key] for key in found if key not in ("aspl", "moore_aspl", "edge_hash")} == {
        "kind": "mesh", "switches": 9, "channels": 24, "hosts": 18, "directed": False, "degree_min": 2,
        "degree_max": 4, "diameter": 4, "notes": {}, "links": 12,
    }  # fmt: skip
    assert found["aspl"] == 2.0
    assert found["moore_aspl"] == 1.5
    assert found["edge_hash"] == topology.edge_hash


def test_weights_count_pairs_of_hosts():
    rng = np.random.default_rng(3)
    topology = make("topology", kind="random_digraph", n=600, degree=3, seed=1).build()  # more than one batch
    for weight in (rng.integers(0, 9, 600), np.arange(600) == 7, np.ones(600, int)):
        found = distance_counts(topology, weight)
        expected = np.bincount(distances(topology).ravel(), np.outer(weight, weight).ravel())
        assert found.tolist() == np.trim_zeros(expected, "b").astype(int).tolist()


def test_a_sample_estimates_the_mean():
    topology = make("topology", kind="rrg", n=3000, degree=4, seed=2).build()
    exact = distance_counts(topology)
    sample = sampled_distances(topology, 1000)
    assert sample.sources == 1024
    assert sample.counts.sum() == 1024 * 3000
    assert len(sample.counts) <= len(exact)
    assert 0 < sample.stderr < 0.02
    assert abs(sample.mean - mean_hops(exact)) < 4 * sample.stderr
    everything = sampled_distances(topology, 2999)
    assert (everything.counts == exact).all()
    assert (everything.mean, everything.stderr, everything.sources) == (mean_hops(exact), 0.0, 3000)
    assert sampled_distances(topology, 64).stderr is None


def test_the_summary_of_a_huge_topology_says_that_it_is_a_sample(monkeypatch):
    topology = make("topology", kind="imase", n=5000, degree=4).build()
    whole = summary(topology)
    assert whole.keys().isdisjoint({"aspl_sources", "aspl_stderr", "diameter_at_least"})
    monkeypatch.setattr("flitlab.models.metrics.summary.EXACT", 10**6)
    part = summary(topology)
    assert part["diameter"] is None
    assert part["diameter_at_least"] <= whole["diameter"]
    assert part["aspl_sources"] == 2048
    assert abs(part["aspl"] - whole["aspl"]) <= 4 * part["aspl_stderr"]


def test_links_of_both_sorts_are_counted():
    arcs, reverse = [(0, 1), (1, 0), (1, 2), (2, 0)], [1, 0, -1, -1]
    assert summary(Topology.from_channels("mixed", 3, arcs, reverse))["links"] == 3


def test_large_topologies_need_little_memory():
    # 10,000 switches of degree 36; the n x n table alone would take 100 MB
    counts = distance_counts(make("topology", kind="imase", n=10_000, degree=36).build())
    assert counts.sum() == 10_000**2
    assert len(counts) == 4
    assert counts[0] == 10_000
