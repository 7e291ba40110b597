# SPDX-License-Identifier: Apache-2.0
"""The metric known_orders against what the papers say, closed forms, and graphs that are built."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flitlab.models.metrics.bounds import largest_graph_order
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology

SMALL = make("topology", kind="kautz", degree=3, diameter=2).build()


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
