"""Ceilings of routings over paths and over intermediate switches."""

import math

import numpy as np
import pytest

from fluid.ceilings import CeilingSpec, ceilings
from fluid.certificate import verify_paths
from fluid.mcf.choose import solve
from fluid.problem import Problem
from models.registry import make
from models.topology.graph import Topology
from tests.fluid_cases import INF, all_to_all, complete, hypercube, scenario, table
from tests.scenarios import build
from tests.test_routing import routes_of, walk


def theta(topology, traffic, routes, kind, **more):
    (row,) = ceilings(scenario(topology, traffic, routes), [CeilingSpec(kind=kind, **more)])
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
    row = theta(topology, shifted(topology, 1), routes, "mcf_paths")
    assert math.isnan(row.lower)
    assert "intermediate" in row.note


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
