# SPDX-License-Identifier: Apache-2.0
"""Sparse cuts: what each heuristic promises, against enumeration, networkx and exact theta."""

from fractions import Fraction
from itertools import combinations
from typing import get_args

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import verify_upper
from flitlab.fluid.cut import Crossing, CutNetwork
from flitlab.fluid.cuts import HEURISTICS, all_cuts, best
from flitlab.fluid.kinds.cuts import Heuristic
from flitlab.fluid.problem import FluidError
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic
from tests.fluid.fluid_cases import (
    INF,
    all_to_all,
    cycle,
    directed_circulant,
    hypercube,
    naive_lp,
    scenario,
    small_scenarios,
    table,
)


def build(**parameters):
    return make("topology", host_capacity=INF, **parameters).build()


def traffic(topology, **parameters):
    return make("traffic", **parameters).build(topology)


def sparsity(topology, demand, side):
    """Capacity over demand out of a set of switches, entry by entry."""
    room = sum(c for u, v, c in zip(topology.src, topology.dst, topology.capacity, strict=True) if side[u] > side[v])
    matrix = demand.switch_demand
    n = range(topology.switches)
    wanted = sum(matrix[s, t] for s in n for t in n if side[s] > side[t])
    return room / wanted if wanted > 0 else INF


def all_sides(n, sizes):
    for size in sizes:
        for members in combinations(range(n), size):
            yield np.isin(np.arange(n), members)


@settings(max_examples=25, deadline=None)
@given(small_scenarios())
def test_every_cut_is_what_it_says_and_above_theta(case):
    topology, demand = case.topology, case.traffic
    exact = naive_lp(topology, demand.switch_demand)
    cuts = all_cuts(topology, demand)
    for cut in cuts:
        assert cut.upper == pytest.approx(sparsity(topology, demand, cut.side))
        assert cut.upper == pytest.approx(cut.capacity / cut.demand)
        assert exact * (1 - 1e-7) <= verify_upper(topology, demand, cut.certificate) <= cut.upper * (1 + 1e-9)
        assert cut.name in HEURISTICS and f"capacity {cut.capacity:g} / demand" in cut.note
    n = topology.switches
    least = min(sparsity(topology, demand, side) for side in all_sides(n, range(1, n)))
    found = {cut.name: cut.upper for cut in cuts}
    assert found["brute_force"] == pytest.approx(least)
    assert best(cuts).upper == pytest.approx(least) and best(cuts).name == "brute_force"


CASES = {
    "uniform": (dict(kind="imase", n=18, degree=3), dict(kind="uniform")),
    "with self": (dict(kind="rrg", n=14, ports=6, hosts_total=40), dict(kind="all_to_all", include_self=True)),
    "matching": (dict(kind="imase", n=18, degree=2), dict(kind="longest_matching")),
    "dense": (dict(kind="torus", dims=[4, 4], hosts_per_switch=2), dict(kind="frontend_like")),
}


@pytest.mark.parametrize("case", CASES)
def test_single_and_double_cuts_are_the_best_of_their_kind(case):
    network, pattern = CASES[case]
    topology = build(**network)
    demand = traffic(topology, **pattern)
    n = topology.switches
    found = {cut.name: cut for cut in all_cuts(topology, demand)}
    assert set(found) == set(HEURISTICS)
    for name, size in (("one_node", 1), ("two_node", 2)):
        least = min(sparsity(topology, demand, side) for side in all_sides(n, [size, n - size]))
        assert found[name].upper == pytest.approx(least)
        assert min(found[name].side.sum(), n - found[name].side.sum()) == size
    for cut in found.values():
        assert cut.upper == pytest.approx(sparsity(topology, demand, cut.side))
        assert cut.upper >= found["brute_force"].upper * (1 - 1e-9)


def test_brute_force_puts_sets_together_beyond_the_first_switches():
    """Eighteen switches against enumeration by networkx's cut_size over all sets of at most three."""
    topology = build(kind="rrg", n=18, degree=3, seed=4)
    demand = all_to_all(topology)
    graph = nx.Graph(topology.to_networkx().to_undirected())
    found = HEURISTICS["brute_force"](CutNetwork.of(topology, demand))
    least = sparsity(topology, demand, found)
    for side in all_sides(18, [1, 2, 3]):
        crossing = nx.cut_size(graph, np.flatnonzero(side).tolist())
        assert crossing / (side.sum() * (18 - side.sum()) / 18) >= least * (1 - 1e-9)
    # local optimality over all single moves
    for v in range(18):
        other = found.copy()
        other[v] ^= True
        assert sparsity(topology, demand, other) >= least * (1 - 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_brute_force_of_larger_networks_searches_the_sets_of_the_lowest_numbers(case, monkeypatch):
    """Sets 1 to 300 and their complements, against enumeration."""
    monkeypatch.setattr("flitlab.fluid.cuts.MAX_BRUTE_FORCE_SWITCHES", 10)
    monkeypatch.setattr("flitlab.fluid.cuts.MAX_BRUTE_FORCE_CUTS", 300)
    network, pattern = CASES[case]
    topology = build(**network)
    demand = traffic(topology, **pattern)
    sides = [np.array([s >> v & 1 == 1 for v in range(topology.switches)]) for s in range(1, 301)]
    least = min(sparsity(topology, demand, one) for side in sides for one in (side, ~side))
    found = HEURISTICS["brute_force"](CutNetwork.of(topology, demand))
    assert sparsity(topology, demand, found) == pytest.approx(least)
    assert any((found == side).all() or (found == ~side).all() for side in sides)


def test_brute_force_finds_half_of_a_hypercube_up_to_five_dimensions():
    """SIN Table 3.1 has 3 of 7 hypercubes. A half of 16 switches is set 65,535; of 32 it is beyond 100,000 sets."""
    for dim, upper in ((3, 1), (4, 1), (5, 1), (6, 2), (7, 3)):
        cube = hypercube(dim)
        found = HEURISTICS["brute_force"](CutNetwork.of(cube, traffic(cube, kind="longest_matching")))
        assert sparsity(cube, traffic(cube, kind="longest_matching"), found) == upper


def test_closed_forms():
    """Halves of a ring and of a cube; a one-way ring of unequal channels is cut on either side of its worst."""
    ring = cycle(10)
    cuts = {cut.name: cut.upper for cut in all_cuts(ring, all_to_all(ring))}
    assert cuts["brute_force"] == cuts["bisection"] == cuts["expanding"] == pytest.approx(2 / (25 / 10))
    cube = hypercube(4)
    assert best(all_cuts(cube, all_to_all(cube))).upper == pytest.approx(2)
    path = build(kind="mesh", dims=[30])
    found = best(all_cuts(path, all_to_all(path)))
    assert found.upper == pytest.approx(1 / (15 * 15 / 30)) and found.side.sum() == 15


def test_directions_are_told_apart():
    """0 -> 1 -> 2 -> 0, of which 1 -> 2 is thin: what 0 and 1 send to 2 is limited, not what they receive."""
    ring = directed_circulant(3, steps=(1,))
    ring.capacity[1] = 0.25
    demand = table(ring, [[0, 0, 0.5], [0, 0, 0.5], [1, 0, 0]])
    found = best(all_cuts(ring, demand))
    assert found.upper == pytest.approx(0.25) and found.side.tolist() == [True, True, False]
    assert verify_upper(ring, demand, found.certificate) == pytest.approx(0.25)


def test_regions_and_spectrum_find_clusters():
    topology = build(kind="two_cluster", large={"count": 20, "ports": 7, "servers": 1},
                     small={"count": 20, "ports": 7, "servers": 1}, cross_links=2)  # fmt: skip
    cuts = {cut.name: cut for cut in all_cuts(topology, all_to_all(topology))}
    assert cuts["brute_force"].upper > 2 * cuts["eigenvector"].upper  # no set of 17 switches is the cluster of 20
    for name in ("eigenvector", "bisection"):
        assert cuts[name].upper == pytest.approx(2 / (20 * 20 / 40))
        assert sorted({tuple(cuts[name].side[:20]), tuple(cuts[name].side[20:])}) == [(False,) * 20, (True,) * 20]


@pytest.mark.long
def test_flattened_butterfly_of_mut():
    """MUT section III-B: sparsest cut 0.6 of 25 switches under a longest matching whose throughput is below."""
    topology = build(kind="flattened_butterfly", k=5, n=3)
    demand = traffic(topology, kind="longest_matching", tie_breaks=6)
    assert topology.hosts == 125
    sparsest = [best(all_cuts(topology, one)).upper for one in (demand, *demand.alternates)]
    assert min(sparsest) == pytest.approx(0.6)


def test_only_the_heuristics_asked_for_are_tried():
    """Without the others the best cut is that of the ones left: the half of a path, and its end."""
    topology = build(kind="mesh", dims=[30])
    case = scenario(topology, all_to_all(topology))
    few = ceilings(case, [ceiling_spec("cuts", heuristics=["eigenvector", "one_node"])])
    assert [row.ceiling for row in few] == ["cuts", "cuts:one_node", "cuts:eigenvector"]
    ends = ceiling_spec("cuts", heuristics=["one_node"])
    assert [row.upper for row in ceilings(case, [ends])] == [pytest.approx(1 / (29 / 30))] * 2
    half = ceiling_spec("cuts", heuristics=["brute_force"])
    assert [row.upper for row in ceilings(case, [half])] == [pytest.approx(1 / (15 * 15 / 30))] * 2


def test_heuristics_have_one_list_of_names():
    assert get_args(Heuristic) == tuple(HEURISTICS)
    with pytest.raises(ValueError, match="heuristics"):
        ceiling_spec("cuts", heuristics=["metis"])


def test_no_cut_without_demand_between_switches():
    topology = cycle(4).with_hosts(2, INF)
    inside = table(topology, np.kron(np.eye(4), [[0, 1], [1, 0]]))
    assert all_cuts(topology, inside) == []


def test_equal_input_gives_equal_cuts():
    topology = build(kind="rrg", n=40, degree=4)
    demand = traffic(topology, kind="longest_matching")
    first, again = all_cuts(topology, demand), all_cuts(topology, demand)
    assert [cut.note for cut in first] == [cut.note for cut in again]
    assert all((a.side == b.side).all() for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("arcs", [[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 0), (2, 3), (3, 2)]])
def test_a_network_that_is_not_strongly_connected_is_refused(arcs):
    topology = Topology.from_arcs("parts", 1 + max(map(max, arcs)), arcs).with_hosts(1, INF)
    demand = np.zeros((topology.switches, topology.switches))
    demand[0, 1] = 1
    case = scenario(topology, table(topology, demand))
    with pytest.raises(FluidError, match=r"no path leads from switch \d to switch \d: .*strongly connected"):
        all_cuts(topology, case.traffic)
    assert "strongly connected" in ceiling_spec("cuts").absent(case)


def far_apart(seed: int) -> tuple[Topology, Traffic]:
    """A strongly connected graph of 8 switches whose capacities are up to twelve decades apart."""
    rng = np.random.default_rng(seed)
    pairs = [(v, (v + 1) % 8) for v in range(8)] + rng.integers(0, 8, (20, 2)).tolist()
    topology = Topology.from_arcs("wide", 8, pairs, capacity=10 ** rng.uniform(-6, 6, 28)).with_hosts(1, INF)
    return topology, table(topology, rng.random((8, 8)) * 10 ** rng.uniform(-3, 0, (8, 8)))


@pytest.mark.parametrize("seed", range(6))
def test_cuts_of_capacities_far_apart(seed):
    """By differences of sums a cut of 1e-6 beside channels of 1e6 came out wrong by 1e-4, some below theta."""
    topology, demand = far_apart(seed)
    found = {cut.name: cut for cut in all_cuts(topology, demand)}
    for cut in found.values():
        assert cut.upper == pytest.approx(sparsity(topology, demand, cut.side), rel=1e-12)
    for name, sizes in (("brute_force", range(1, 8)), ("one_node", [1, 7]), ("two_node", [2, 6])):
        least = min(sparsity(topology, demand, side) for side in all_sides(8, sizes))
        assert found[name].upper == pytest.approx(least, rel=1e-12)
    (row,) = ceilings(scenario(topology, demand), [ceiling_spec("mcf", method="exact")])
    assert row.upper <= row.lower * (1 + 1e-6) and row.lower <= best(list(found.values())).upper * (1 + 1e-9)


@pytest.mark.parametrize("n", [40, 60, 90])
def test_sets_into_which_nothing_flows_have_no_demand(n):
    """Sums of the same amounts in two orders differ in the last digit, which is no demand."""
    rng = np.random.default_rng(1)
    matrix = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    matrix[: n // 2, n // 2 :] = 0
    np.fill_diagonal(matrix, 0)
    source, target = np.nonzero(matrix)
    crossing = Crossing.of_pairs(n, source, target, matrix[source, target])
    inside = rng.random((20, n)) < 0.5
    inside[0] = np.arange(n) >= n // 2  # nothing enters it
    found = crossing.across(inside.astype(float))
    for sides, crosses in zip((inside, ~inside), found, strict=True):
        exact = [sum(map(Fraction, matrix[np.ix_(side, ~side)].ravel()), Fraction()) for side in sides]
        assert np.allclose(crosses, np.array(exact, float), rtol=1e-12, atol=0)
    assert found[1, 0] == 0
