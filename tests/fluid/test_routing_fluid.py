# SPDX-License-Identifier: Apache-2.0
"""Ceilings of routings over paths and over intermediate switches."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.delivered import verify_paths
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.problem import Problem
from flitlab.fluid.saved import BadCertificate
from flitlab.fluid.verify import saved_of, verify
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, all_to_all, complete, hypercube, scenario, table
from tests.models.test_routing import routes_of, walk
from tests.scenarios import asked_as_far_as_known, build


def theta(topology, traffic, routes, kind, **more):
    (row,) = ceilings(scenario(topology, traffic, routes), [asked_as_far_as_known(kind, **more)])
    return row


def shifted(topology: Topology, by: int):
    """Host h sends to host h + by."""
    return make("traffic", kind="shift", by=by).build(topology)


def network(kind: str, **parameters) -> Topology:
    return build(kind, **parameters).with_hosts(1, INF)


GRAPHS = [network("rrg", n=10, degree=3, seed=1), network("gdbg", n=9, degree=2)]


def test_two_paths_by_hand():
    """0 -> 1 directly and over 2: an equal split fills neither more than half as often as the best one."""
    topology = Topology.from_arcs("hand", 3, [(0, 1), (0, 2), (2, 1), (1, 0)], capacity=[1, 1, 3, 1]).with_hosts(1, INF)
    demand = np.zeros((3, 3))
    demand[0, 1] = 1
    traffic = table(topology, demand)
    routes = routes_of(topology, "ksp", k=2)
    assert theta(topology, traffic, routes, "split").lower == pytest.approx(2)
    best = theta(topology, traffic, routes, "mcf_paths")
    assert best.lower == pytest.approx(2) and best.upper == pytest.approx(2)
    single = routes_of(topology, "ksp", k=1)
    assert theta(topology, traffic, single, "mcf_paths").lower == pytest.approx(1)


@pytest.mark.parametrize("topology", GRAPHS, ids=lambda t: t.kind)
def test_all_paths_reach_the_maximum_and_the_shortest_those_of_minimal(topology):
    for traffic in (all_to_all(topology), shifted(topology, 3)):
        every = routes_of(topology, "allpath", hops=9)
        assert theta(topology, traffic, every, "mcf_paths").lower == pytest.approx(
            theta(topology, traffic, every, "mcf").lower, rel=1e-5
        )
        shortest = routes_of(topology, "ecmp", routed="source", ways=99)
        assert theta(topology, traffic, shortest, "mcf_paths").lower == pytest.approx(
            theta(topology, traffic, routes_of(topology, "minimal"), "mcf_paths").lower, rel=1e-5
        )


FEWER_THAN_SHORTEST = [
    {"kind": "dor"}, {"kind": "updown"}, {"kind": "ecmp", "ways": 2},
    {"kind": "valiant", "legs": "dor"}, {"kind": "valiant", "legs": "updown"},
]  # fmt: skip


@pytest.mark.parametrize("routing", FEWER_THAN_SHORTEST, ids=lambda routing: "-".join(map(str, routing.values())))
def test_dense_demands_keep_to_the_next_hops_of_a_routing(routing):
    """Some channels of these lie on shortest paths that the routing does not take, on an even torus above all."""
    topology = network("torus", dims=[4, 4])
    traffic, routes = all_to_all(topology), routes_of(topology, **routing)
    split, best = (theta(topology, traffic, routes, kind, method="exact") for kind in ("split", "mcf_paths"))
    rough = theta(topology, traffic, routes, "mcf_paths", method="approx")
    assert rough.lower <= best.upper * (1 + 1e-9) and best.lower <= rough.upper * (1 + 1e-9)
    assert split.lower <= best.upper * (1 + 1e-9) and rough.upper <= 1.01 * rough.lower * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["ksp", "llskr", "allpath", "ecmp"])
def test_split_paths_and_anything_in_this_order(kind):
    topology = GRAPHS[0]
    more = {"hops": 5} if kind == "allpath" else {"routed": "source"} if kind == "ecmp" else {"k": 4}
    routes, traffic = routes_of(topology, kind, **more), shifted(topology, 4)
    split, paths, free = (theta(topology, traffic, routes, name) for name in ("split", "mcf_paths", "mcf"))
    assert split.lower <= paths.lower * (1 + 1e-9) <= free.upper * (1 + 1e-6)
    assert paths.upper == pytest.approx(paths.lower, rel=1e-6)
    rough = theta(topology, traffic, routes, "mcf_paths", method="approx", gap=0.01)
    assert rough.lower <= paths.upper * (1 + 1e-9)
    assert rough.upper >= paths.lower * (1 - 1e-9)
    assert rough.upper <= 1.011 * rough.lower


def test_arithmetic_routing_has_the_ceilings_of_minimal():
    topology = GRAPHS[1]
    for name in ("split", "mcf_paths"):
        both = [routes_of(topology, kind) for kind in ("imase", "minimal")]
        one, two = (theta(topology, all_to_all(topology), routes, name) for routes in both)
        assert one.lower == two.lower


def test_valiant_makes_every_permutation_uniform():
    """Each of both legs puts 1 / n on every channel of a complete graph: theta = n / 2 whatever the permutation."""
    topology = complete(8).with_hosts(1, INF)
    routes = routes_of(topology, "valiant")
    for by in (1, 3):
        assert theta(topology, shifted(topology, by), routes, "split").lower == pytest.approx(4)
    cube = hypercube(3).with_hosts(1, INF)
    # 3 * 8 channels; legs of 1.5 hops on average, two for each of 8 hosts
    assert theta(cube, shifted(cube, 1), routes_of(cube, "valiant"), "split").lower == pytest.approx(24 / (8 * 3))
    row = theta(topology, shifted(topology, 1), routes, "jm")
    assert math.isnan(row.lower)
    assert "intermediate" in row.note


def legs(topology: Topology, ports: np.ndarray, s: int, t: int) -> list[tuple[int, ...]]:
    """All ways from s to t by next hops."""
    if s == t:
        return [()]
    hops = [p for p in range(int(topology.out_degree[s])) if int(ports[t, s]) >> p & 1]
    channels = [int(topology.out_start[s]) + p for p in hops]
    return [(c, *rest) for c in channels for rest in legs(topology, ports, int(topology.dst[c]), t)]


def best_over_others(topology: Topology, ports: np.ndarray, demand: np.ndarray) -> float:
    """Theta by an LP with a column for every way over every switch with hosts."""
    pairs = [(s, t) for s, t in np.argwhere(demand > 0).tolist() if s != t]
    middles = np.flatnonzero(topology.host_count).tolist()
    ways = [
        (k, first + last)
        for k, (s, t) in enumerate(pairs)
        for m in middles
        for first in legs(topology, ports, s, m)
        for last in legs(topology, ports, m, t)
    ]
    load, serve = np.zeros((topology.channels, len(ways) + 1)), np.zeros((len(pairs), len(ways) + 1))
    for p, (k, way) in enumerate(ways):
        np.add.at(load[:, p], list(way), 1)
        serve[k, p] = 1
    serve[:, -1] = [-demand[pair] for pair in pairs]
    gain = np.append(np.zeros(len(ways)), -1)
    found = linprog(gain, A_ub=load, b_ub=topology.capacity, A_eq=serve, b_eq=np.zeros(len(pairs)), method="highs")
    return -found.fun


VIA = [
    (network("rrg", n=8, degree=3, seed=1), "minimal"), (network("rrg", n=8, degree=3, seed=1), "updown"),
    (network("gdbg", n=7, degree=2), "minimal"), (network("torus", dims=[3, 3]), "dor"),
    (network("mddp", n=10, degree=2, directed=True), "minimal"),
    (Topology.from_links("star", 5, [(0, 4), (1, 4), (2, 4), (2, 3)]).with_hosts([1, 2, 0, 1, 0], INF), "minimal"),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "by"), VIA, ids=lambda value: getattr(value, "kind", value))
def test_valiant_against_an_lp_over_all_its_ways(topology, by):
    routes, rng = routes_of(topology, "valiant", legs=by), np.random.default_rng(4)
    matrix = rng.random((topology.hosts,) * 2) * (rng.random((topology.hosts,) * 2) < 0.4)
    for traffic in (table(topology, matrix / 4), shifted(topology, 2)):
        best = best_over_others(topology, routes.ports, traffic.switch_demand)
        exact = theta(topology, traffic, routes, "mcf_paths", method="exact")
        assert (exact.lower, exact.upper) == pytest.approx((best, best), rel=2e-6)
        rough = theta(topology, traffic, routes, "mcf_paths", method="approx", gap=0.02)
        assert rough.lower <= best * (1 + 1e-9) <= rough.upper * (1 + 2e-9)
        split, free = (theta(topology, traffic, routes, kind) for kind in ("split", "mcf"))
        assert split.lower <= best * (1 + 1e-9) <= free.upper * (1 + 2e-9)


def test_ways_that_valiant_has_not_are_refused():
    topology = network("rrg", n=12, degree=3, seed=1)
    traffic = shifted(topology, 3)
    valiant, others = routes_of(topology, "valiant"), routes_of(topology, "ksp", k=30)
    one, two = Problem.of(topology, traffic, valiant), Problem.of(topology, traffic, others)
    with pytest.raises(ValueError, match="do not allow"):
        verify_paths(one, two.paths)
    case = scenario(topology, traffic, valiant)
    (row,) = ceilings(case, [ceiling_spec("mcf_paths", gap=0.02)], keep_flow=True)
    saved = saved_of(case, row)
    assert verify(case, saved).confirms(saved)
    paths = dict(zip(("first", "start", "channel", "flow"), two.paths, strict=True))
    with pytest.raises(BadCertificate, match="does not have"):
        verify(case, replace(saved, **paths))


@pytest.mark.long
@pytest.mark.parametrize(("kind", "more"), [("ksp", {"k": 3}), ("valiant", {}), ("updown", {}), ("ecmp", {"ways": 2})])
def test_split_is_what_packets_do_on_average(kind, more):
    topology = build("rrg", n=8, degree=3, seed=5)
    routes = routes_of(topology, kind, **more)
    packets, used = 3000, np.zeros(topology.channels)
    for sequence in range(packets):
        for host in range(8):
            np.add.at(used, walk(topology, routes, host, (host + 3) % 8, sequence)[1], 1 / packets)
    found = theta(topology, shifted(topology, 3), routes, "split")
    expected = 1 / used.max()
    assert min(expected, 1) == pytest.approx(found.lower, rel=0.04)


def test_flow_on_other_paths_is_refused():
    topology = GRAPHS[0]
    few = Problem.of(topology, all_to_all(topology), routes_of(topology, "ksp", k=2))
    many = Problem.of(topology, all_to_all(topology), routes_of(topology, "ksp", k=3))
    with pytest.raises(ValueError, match="do not allow"):
        verify_paths(few, many.paths)
    assert solve(few, 0.01).lower <= solve(many, 0.01).upper
