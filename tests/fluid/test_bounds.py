# SPDX-License-Identifier: Apache-2.0
"""Bounds on theta: never below the exact value, and equal to the papers' formulas where those apply."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from flitlab.fluid.bounds import (
    TwoClusters,
    all_bounds,
    clusters,
    half_of_all_to_all,
    path_length_bound,
    tub,
    two_cluster,
    volumetric,
)
from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import verify_upper
from flitlab.fluid.problem import FluidError
from flitlab.models.registry import make
from flitlab.models.topology.distances import aspl, distances
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import (
    INF,
    all_to_all,
    complete,
    cycle,
    directed_circulant,
    hypercube,
    naive_lp,
    scenario,
    small_scenarios,
    table,
    torus,
)


def build(**parameters):
    return make("topology", host_capacity=INF, **parameters).build()


def traffic(topology, **parameters):
    return make("traffic", **parameters).build(topology)


def theta(topology, demand):
    return naive_lp(topology, demand.switch_demand)


@settings(max_examples=25, deadline=None)
@given(small_scenarios())
def test_no_bound_is_below_theta(case):
    exact = theta(case.topology, case.traffic)
    for bound in all_bounds(case.topology, case.traffic):
        assert bound.upper >= exact * (1 - 1e-7), bound.name
        if bound.certificate is not None:
            assert verify_upper(case.topology, case.traffic, bound.certificate) <= bound.upper * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(small_scenarios())
def test_every_hose_demand_gets_half_of_all_to_all(case):
    topology = case.topology
    exact = theta(topology, case.traffic)
    with_self = theta(topology, all_to_all(topology))
    without = theta(topology, traffic(topology, kind="all_to_all"))
    least = half_of_all_to_all(case.traffic, with_self, include_self=True)
    assert least <= exact * (1 + 1e-7)
    assert half_of_all_to_all(case.traffic, without) == pytest.approx(least, rel=1e-6)


def test_half_of_all_to_all_is_reached_by_the_hypercube():
    """All-to-all 2, longest matching 1: the theorem is tight."""
    cube = hypercube(3)
    longest = traffic(cube, kind="longest_matching")
    assert half_of_all_to_all(longest, 2.0, include_self=True) == 1
    assert theta(cube, longest) == pytest.approx(1)
    assert tub(cube).upper == pytest.approx(1)


def test_half_of_all_to_all_respects_units():
    ring = cycle(6)
    demand = traffic(ring, kind="permutation")
    twice = type(demand)("twice", ring, demand.law, 2 * demand.rate, fixed=demand.fixed)
    assert half_of_all_to_all(twice, 1.0) == pytest.approx(half_of_all_to_all(demand, 1.0) / 2)
    slow = ring.with_hosts(1, 0.25)
    assert half_of_all_to_all(traffic(slow, kind="permutation"), 1.0) == 0.25


@pytest.mark.parametrize(
    ("topology", "upper"),
    [
        (hypercube(5), 1),
        (complete(7), 6),
        (torus(6), 4 / 6),
        (torus(5), 1),  # two hops in either dimension
        (cycle(6), 2 / 3),
        (directed_circulant(5, steps=(1,)), 1 / 4),
        (build(kind="fat_tree", k=4), 1),
        (build(kind="slim_fly", q=5, hosts_per_switch=4), 7 / 8),
        (build(kind="kautz", degree=3, diameter=3, capacity=2.0), 2),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_tub_where_the_longest_matching_is_known(topology, upper):
    assert tub(topology).upper == pytest.approx(upper)


@pytest.mark.parametrize("topology", [torus(3), hypercube(3), cycle(7), directed_circulant(7)])
def test_tub_is_the_least_volumetric_bound(topology):
    least = tub(topology).upper
    for seed in range(5):
        demand = traffic(topology, kind="permutation", seed=seed)
        assert volumetric(topology, demand).upper >= least * (1 - 1e-12)
    for kind in ("longest_matching", "kodialam"):
        assert volumetric(topology, traffic(topology, kind=kind)).upper == pytest.approx(least)


@settings(max_examples=15, deadline=None)
@given(small_scenarios(), st.data())
def test_tub_bounds_what_is_carried_of_a_longest_matching(case, data):
    """Random digraphs of uneven capacities; then uneven numbers of hosts, where a transportation LP is the judge."""
    topology = case.topology
    upper = tub(topology).upper
    assert upper >= theta(topology, traffic(topology, kind="longest_matching")) * (1 - 1e-7)
    n = topology.switches
    hosts = data.draw(
        st.lists(st.sampled_from([0, 1, 2, 4]), min_size=n, max_size=n).filter(lambda h: sum(map(bool, h)) > 1)
    )
    sums = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    longest = -linprog(-distances(topology).astype(float).ravel(), sums, hosts * 2).fun
    assert tub(topology.with_hosts(hosts)).upper == pytest.approx(topology.capacity.sum() / longest)


def bounds_of(topology, demand):
    return {row.ceiling: row for row in ceilings(scenario(topology, demand), [ceiling_spec("bounds")])}


def test_tub_is_never_taken_for_a_bound_on_another_demand():
    """Neighbours on a ring exchange 2; across the ring it is 1/2."""
    ring = cycle(8)
    found = bounds_of(ring, traffic(ring, kind="shift", by=1))
    assert found["bounds:tub"].upper == pytest.approx(0.5)
    assert found["bounds"].upper == pytest.approx(2)
    assert found["bounds:tub"].certificate is None
    longest = bounds_of(ring, traffic(ring, kind="longest_matching"))
    assert longest["bounds"].upper == pytest.approx(longest["bounds:tub"].upper)


def test_tub_is_omitted_where_it_means_nothing(monkeypatch):
    ring = cycle(4)
    with pytest.raises(FluidError, match="two switches"):
        tub(ring.with_hosts([2, 0, 0, 0]))
    line = Topology.from_arcs("line", 2, [(0, 1)]).with_hosts(1, INF)
    row = bounds_of(line, table(line, [[0, 1], [0, 0]]))["bounds:tub"]
    assert (row.method, row.note) == ("omitted", "no path from switch 1 to switch 0")
    monkeypatch.setattr("flitlab.fluid.bounds.MAX_TUB_GROUPS", 3)
    assert "at most 3" in bounds_of(ring, all_to_all(ring))["bounds:tub"].note


def test_path_length_bound():
    """SIN Theorem 3 equals the volumetric bound of all-to-all, and is larger with the distance of Cerf et al."""
    graph = build(kind="rrg", n=20, degree=4, seed=1)
    demand = traffic(graph, kind="all_to_all")
    exact_distance = path_length_bound(20, 4, flows=20, distance=aspl(graph))
    assert exact_distance == pytest.approx(volumetric(graph, demand).upper)
    assert path_length_bound(20, 4, flows=20) >= exact_distance
    # 4 at one hop, 12 at two, 3 at three
    assert path_length_bound(20, 4, flows=20) == pytest.approx(20 * 4 / (20 * (4 + 24 + 9) / 19))
    bounds = {bound.name: bound.upper for bound in all_bounds(graph, demand)}
    assert bounds["moore"] == pytest.approx(path_length_bound(20, 4, flows=20))


def test_moore_puts_the_largest_demands_nearest():
    """Demands 3, 2, 1 of every switch of a one-way ring of degree 1 go 1, 2 and 3 hops at best."""
    ring = directed_circulant(4, steps=(1,))
    demand = table(ring, sum(w * np.roll(np.eye(4), shift, 1) for w, shift in ((1, 1), (3, 2), (2, 3))) / 6)
    bounds = {bound.name: bound.upper for bound in all_bounds(ring, demand)}
    assert bounds["moore"] == pytest.approx(4 / (4 * (3 * 1 + 2 * 2 + 1 * 3) / 6))
    assert bounds["volumetric"] == pytest.approx(4 / (4 * (1 * 1 + 3 * 2 + 2 * 3) / 6))


def barbell(cross):
    return build(
        kind="two_cluster", large={"count": 4, "ports": 7, "servers": 3}, small={"count": 4, "ports": 5, "servers": 1},
        cross_links=cross,
    )  # fmt: skip


@pytest.mark.parametrize("cross", [1, 4, 10])
def test_two_clusters(cross):
    topology = barbell(cross)
    side = clusters(topology)
    assert side.tolist() == [True] * 4 + [False] * 4
    demand = traffic(topology, kind="all_to_all")
    bounds = TwoClusters.of(topology, side)
    assert bounds.hosts == (12, 4) and bounds.crossing == 2 * cross
    assert bounds.by_paths == pytest.approx(volumetric(topology, demand).upper)
    assert bounds.by_cut == pytest.approx(2 * cross * 16 / (2 * 12 * 4))
    exact = theta(topology, demand)
    assert bounds.upper >= exact * (1 - 1e-7)
    cut = two_cluster(topology, demand)
    assert cut.upper == pytest.approx(cross / (12 * 4 / 15))
    assert exact <= cut.upper * (1 + 1e-7)
    assert exact * (1 - 1e-7) <= verify_upper(topology, demand, cut.certificate) <= cut.upper * (1 + 1e-9)
    assert "two_cluster" in {bound.name for bound in all_bounds(topology, demand)}
    assert bounds.threshold(bounds.by_paths) == pytest.approx(bounds.drop)
    assert (bounds.crossing < bounds.drop) == (bounds.by_cut < bounds.by_paths)
    if bounds.crossing < bounds.threshold(peak=1.0):
        assert exact < 1.0


def test_equal_clusters_drop_at_half_the_capacity_per_hop():
    """Equation 5.2 as printed: C / (2 <D>)."""
    graph = build(kind="clustered", n=12, degree=4, cross=1)
    bounds = TwoClusters.of(graph, np.arange(12) < 6)
    assert bounds.drop == pytest.approx(bounds.capacity / (2 * aspl(graph)))
    assert clusters(graph) is None and two_cluster(graph, all_to_all(graph)) is None
