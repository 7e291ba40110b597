# SPDX-License-Identifier: Apache-2.0
"""Valiant's routing by weighted legs: the weights are the best on shortest paths, and what they guarantee holds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.weights import routes_for
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.rules.route import choose_route, intermediate_of, next_port
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.topology.distances import distances
from flitlab.sim.api import Experiment
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.engines.start import start
from tests.scenarios import build, scenario
from tests.sim.test_optimal import demand_of, hop_loads

RANDOM = build("rrg", n=16, degree=4, seed=1)
HOSTS = [2, 0, 1, 3, 1, 0, 1, 1, 2, 1, 1, 1]
UNEVEN = make("topology", kind="rrg", n=12, degree=3, seed=1, hosts=HOSTS).build()
FAST = replace(RANDOM, capacity=np.random.default_rng(1).choice([1.0, 2.0, 4.0], RANDOM.channels))


def by_legs(topology, legs="optimal", **keys):
    return routes_for(make("routing", kind="valiant", legs=legs, **keys), topology, None)


def best_on_shortest_paths(topology) -> float:
    """theta of all-to-all traffic over shortest paths, from a linear program of its own."""
    demand, far = demand_of(topology, include_self=True).switch_demand, distances(topology).astype(int)
    n, src, dst = topology.switches, topology.src, topology.dst
    own = [(t, a) for t in range(n) for a in range(topology.channels) if far[dst[a], t] == far[src[a], t] - 1]
    keep, use = np.zeros((n * n, len(own) + 1)), np.zeros((topology.channels, len(own) + 1))
    for i, (t, a) in enumerate(own):
        keep[t * n + src[a], i] += 1
        if dst[a] != t:
            keep[t * n + dst[a], i] -= 1
        use[a, i] = 1
    apart = demand.T * (1 - np.eye(n))
    keep[:, -1] = -apart.ravel()
    found = linprog(-np.eye(len(own) + 1)[-1], A_ub=use, b_ub=topology.capacity, A_eq=keep, b_eq=np.zeros(n * n))
    return -found.fun


@pytest.mark.parametrize(
    ("topology", "worst"),
    [
        (RANDOM, 0.941), (build("rrg", n=16, degree=4, seed=2), 0.8),
        (build("random_digraph", n=16, degree=4, seed=1), 1.105),
        (build("random_digraph", n=16, degree=3, seed=1), 0.629),
        (build("torus", dims=[8]), 0.5), (build("torus", dims=[4, 4]), 1.0), (UNEVEN, None), (FAST, None),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)  # fmt: skip
def test_no_shares_of_shortest_paths_carry_more_whatever_is_sent(topology, worst):
    topology = replace(topology, host_capacity=np.inf)
    routes = by_legs(topology)
    best, notes = best_on_shortest_paths(topology), routes.notes
    assert 0.994 * best <= notes["theta"] <= best * (1 + 1e-7)
    assert notes["theta_upper"] >= best * (1 - 1e-7) and notes["worst_case"] == notes["theta"] / 2
    if worst is not None:
        assert notes["worst_case"] == pytest.approx(worst, abs=0.002)
    demand = demand_of(topology, "longest_matching")
    found = ceilings(Instance(topology, demand, routes), [ceiling_spec("worst_case")])[0]
    assert found.lower == pytest.approx(notes["worst_case"], rel=1e-9)


@pytest.mark.parametrize("topology", [RANDOM, UNEVEN, FAST], ids=["alike", "hosts", "capacities"])
def test_the_notes_tell_what_the_tables_carry(topology):
    topology = replace(topology, host_capacity=np.inf)
    routes = by_legs(topology)
    leg = hop_loads(topology, demand_of(topology, include_self=True), routes) / topology.capacity
    assert routes.notes["theta"] == pytest.approx(1 / leg.max(), rel=1e-9)
    equal = by_legs(topology, "minimal")
    for kind in ("uniform", "longest_matching", "random_matching"):
        instance = Instance(topology, demand_of(topology, kind), routes)
        split, paths, most = ceilings(instance, [ceiling_spec(name) for name in ("split", "mcf_paths", "mcf")])
        assert routes.notes["worst_case"] * (1 - 1e-9) <= split.lower <= paths.upper * (1 + 1e-9)
        assert paths.lower <= most.upper * (1 + 1e-9)
        assert split.method == "split by weight"
    assert ceilings(replace(instance, routes=equal), [ceiling_spec("worst_case")])[0].lower < 0.93 * split.lower


def test_host_channels_bound_what_is_guaranteed():
    assert by_legs(build("slim_fly", q=5)).notes["worst_case"] == 1
    assert by_legs(build("rrg", n=4, degree=3, hosts=0).with_hosts([3, 0, 0, 0])).notes["worst_case"] == 1


def test_each_leg_is_drawn_by_the_weights_for_its_end():
    routes = by_legs(RANDOM)
    r, target = routes.tables(RANDOM), 5
    counts = np.bitwise_count(routes.ports)
    for origin in (0, 3):
        drawn, by_weight = np.zeros(4), np.zeros(4)
        for sequence in range(6000):
            way = choose_route(r, 1, origin, target, RANDOM.hosts, sequence, origin, target)
            middle = intermediate_of(way)
            if middle == origin:
                continue
            drawn[next_port(r, way, 1, origin, target, origin, target, RANDOM.hosts, sequence, 0)] += 1
            begin, ports = 0, [p for p in range(4) if int(routes.ports[middle, origin]) >> p & 1]
            for p in ports:
                end = 256 if p == ports[-1] else int(routes.port_threshold[middle, origin, p])
                by_weight[p] += (end - begin) / 256
                begin = end
        assert counts[:, origin].max() > 1
        assert drawn == pytest.approx(by_weight, abs=4 * np.sqrt(6000) / 2)
        assert drawn.sum() == pytest.approx(by_weight.sum(), rel=1e-12)


def test_where_equal_shares_are_best_there_are_no_weights():
    torus = build("torus", dims=[4, 4])
    routes, minimal = by_legs(torus), by_legs(torus, "minimal")
    assert routes.port_threshold is None and not routes.weighed
    assert routes.content_hash == minimal.content_hash
    assert by_legs(RANDOM).content_hash != by_legs(RANDOM, "minimal").content_hash


@pytest.mark.parametrize(("mode", "per"), [("vct", "packet"), ("vct", "flow"), ("wormhole", "packet")])
def test_engines_agree(mode, per):
    case = scenario(UNEVEN, routing={"kind": "valiant", "legs": "optimal", "per": per}, mode=mode, vcs=9)
    assert case.switching.vc_policy == VcPolicy.RISING
    run = start("both", case, 0.3, 1)
    run.advance(500)
    assert run.snapshot().hops.sum() > 50


STUDY = {
    "schema": 1, "experiment": "ceilings", "ceilings": ["split", "worst_case"],
    "topology": {"kind": "random_digraph", "n": 12, "degree": 3, "seed": 1},
    "traffic": {"sweep": [{"kind": "uniform"}, {"kind": "shift", "by": 5}]},
}  # fmt: skip


def test_the_legs_are_the_same_for_any_traffic():
    cases = Experiment.load(STUDY | {"routing": {"kind": "valiant", "legs": "optimal"}}).study.cases
    assert len(cases) == 2 and cases[0].routes is cases[1].routes


@pytest.mark.parametrize(
    ("routing", "text"),
    [
        ({"kind": "ugal", "legs": "optimal"}, "routing.legs = optimal: .*choices: minimal, dor, updown, dragonfly"),
        ({"kind": "valiant", "legs": "optimum"}, "routing.legs = optimum: .*did you mean 'optimal'"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_refused(routing, text):
    with pytest.raises(ConfigError, match=text):
        Experiment.load(STUDY | {"routing": routing})


def test_weights_take_a_solver():
    with pytest.raises(SpecError, match="made for a demand before anything runs"):
        make("routing", kind="valiant", legs="optimal").build(RANDOM)
