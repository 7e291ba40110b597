# SPDX-License-Identifier: Apache-2.0
"""UGAL: both engines measure and decide alike, and it is minimal or valiant where it should be."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.registry import make
from flitlab.models.routing.certificate import certify
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.rules.ugal import choose_leg_count
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests import long_after
from tests.models.test_routing import routes_of
from tests.scenarios import assert_order_is_immaterial, build, scenario, vct_scenarios, wormhole_scenarios

SLOW = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
KERNELS = long_after(1, ["wormhole", "vct"])
"""Modes: that of virtual cut-through has a kernel of its own for adaptive routing, which compiles for 15 s."""


@st.composite
def ugal_scenarios(draw):
    """Scenarios of both modes, routed by ugal."""
    case = draw(st.one_of(vct_scenarios(), wormhole_scenarios()))
    vcs = case.switching.vcs
    routes = make(
        "routing", kind="ugal", mode=draw(st.sampled_from(["local", "global"])), threshold=draw(st.integers(0, 9)),
        legs=draw(st.sampled_from(["minimal"] + ["updown"] * (not case.topology.directed))),
        vc_policy=draw(st.sampled_from([None, "any", "hop"] + ["legs"] * (vcs > 1))),
    ).build(case.topology)  # fmt: skip
    switching = replace(case.switching, vc_policy=certify(case.topology, routes, vcs, allow_deadlock=True).policy)
    return replace(case, instance=replace(case.instance, routes=routes), switching=switching)


@pytest.mark.long
@given(ugal_scenarios(), st.sampled_from([0.3, 0.7, 1.0]), st.integers(0, 2**40))
@settings(SLOW, max_examples=60)
def test_engines_agree(case, load, seed):
    run = start("both", case, load, seed)
    for tick in (133, 400):
        run.advance(tick)
        run.snapshot()
        run.deadlocked()


@given(ugal_scenarios(), st.integers(1, 2**20))
@settings(SLOW, max_examples=15)
def test_what_is_granted_in_the_same_tick_does_not_count(case, shuffle):
    """Else who decides first in a tick would matter."""
    assert_order_is_immaterial(case, 0.8, shuffle)


def measure(case, load, ticks=4000, seed=3):
    """(mean hops, flits delivered a host and tick)."""
    run = start("compiled", case, load, seed)
    run.advance(ticks)
    first = run.scalars()
    run.advance(3 * ticks)
    counted = run.scalars() - first
    return counted[Scalar.HOPS] / counted[Scalar.DELIVERED_PACKETS], counted[Scalar.DELIVERED_FLITS] / (
        2 * ticks * case.topology.hosts
    )


@pytest.mark.parametrize("switching", KERNELS)
@pytest.mark.parametrize("mode", ["local", "global"])
def test_an_idle_network_is_crossed_minimally(switching, mode):
    topology = build("torus", dims=[8])
    cases = [
        scenario(topology, routing={**routing, "vc_policy": "hop"}, mode=switching, vcs=8)
        for routing in ({"kind": "ugal", "mode": mode}, {"kind": "minimal"}, {"kind": "valiant"})
    ]
    ugal, minimal, valiant = (measure(case, 0.001, 30000)[0] for case in cases)
    assert ugal == pytest.approx(minimal, rel=0.01)
    assert valiant > 1.7 * minimal


@pytest.mark.parametrize("switching", KERNELS)
@pytest.mark.parametrize("mode", ["local", "global"])
def test_a_tornado_is_spread(switching, mode):
    """Minimal routes of a shift by 3 on a ring of 8 take 3 channels in one direction: at most 1 / 3 of the load."""
    topology = build("torus", dims=[8])
    through = {}
    for kind, more in {"ugal": {"mode": mode}, "minimal": {}, "valiant": {}}.items():
        routing = {"kind": kind, **more, "vc_policy": "hop"}
        case = scenario(
            topology, routing=routing, traffic={"kind": "shift", "by": 3}, mode=switching, vcs=8, buffer_flits=16
        )
        through[kind] = measure(case, 1.0)[1]
    assert through["minimal"] <= 0.334  # measured over whole ticks
    assert through["ugal"] > 1.1 * through["minimal"]
    # what the choice costs with these buffers: 0.94 (local) and 0.90 (global) of valiant were measured in wormhole
    assert through["ugal"] > {"local": 0.9, "global": 0.85}[mode] * through["valiant"]


@pytest.mark.parametrize("switching", KERNELS)
def test_who_knows_all_queues_does_better_on_a_dragonfly(switching):
    """Group to next group: over one global channel each of eight hosts gets an eighth, over all of them a half."""
    topology = build("dragonfly", hosts=2, a=4, p=2, h=2)
    load, latency = 0.3, {}
    for mode in ("local", "global"):
        case = scenario(
            topology, routing={"kind": "ugal", "mode": mode, "legs": "dragonfly", "vc_policy": "hop"}, mode=switching,
            traffic={"kind": "shift", "by": 8}, source=Source(flits=(1,)), vcs=6, buffer_flits=64,
            header=1, switch=1, link=1, injection=1,
        )  # fmt: skip
        run = start("compiled", case, load, 3)
        run.advance(4000)
        first = run.scalars()
        run.advance(8000)
        counted = run.scalars() - first
        latency[mode] = counted[Scalar.LATENCY] / counted[Scalar.DELIVERED_PACKETS]
        through = counted[Scalar.DELIVERED_FLITS] / (4000 * topology.hosts)
        if mode == "global" or switching == "vct":
            assert through == pytest.approx(load, rel=0.02)
    assert latency["global"] < 0.9 * latency["local"]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["local", "global"])
def test_a_large_threshold_is_minimal(mode):
    topology = build("rrg", n=10, degree=3, seed=2)
    logs = []
    for routing in ({"kind": "ugal", "mode": mode, "threshold": 10**6}, {"kind": "minimal"}):
        any_vc = {**routing, "vc_policy": "any"}  # under hop, packets that might have gone farther keep off some VCs
        case = scenario(topology, routing=any_vc, source=Source(flits=(3,)), vcs=8, allow_deadlock=True)
        run = start("compiled", case, 0.8, 5, log=True)
        run.advance(800)
        logs.append(run.log())
    for a, b in zip(*logs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("mode", "minimal", "other"), [("local", 3, 5), ("global", 1, 1)])
def test_who_waits_less_is_told_from_queue_times_hops_or_from_all_queues(mode, minimal, other):
    ring = build("torus", dims=[8])
    for threshold in (0, 5):
        r = make("routing", kind="ugal", mode=mode, threshold=threshold).build(ring).tables(ring)
        via = 6 | 2 << 24  # from 0 over 6 to 3: 2 + 3 channels, against 3
        for one in range(12):
            for two in range(12):
                assert choose_leg_count(r, via, 0, 3, one, two) == (
                    0 if minimal * one <= other * two + threshold else via
                )


def test_between_hosts_of_one_switch_nothing_is_queued():
    ring = build("torus", dims=[8])
    for mode in ("local", "global"):
        r = make("routing", kind="ugal", mode=mode).build(ring).tables(ring)
        assert choose_leg_count(r, 6 | 2 << 24, 4, 4, 0, 100) == 0


def test_certificate_is_that_of_valiant():
    mesh = build("mesh", dims=[3, 3])
    for legs, vcs, policy in (("dor", 2, VcPolicy.LEGS), ("minimal", 8, VcPolicy.RISING)):
        certified = certify(mesh, routes_of(mesh, "ugal", legs=legs), vcs)
        assert certified == certify(mesh, routes_of(mesh, "valiant", legs=legs), vcs)
        assert (certified.policy, certified.acyclic) == (policy, True)


def test_traffic_decides_the_split():
    routes = routes_of(build("torus", dims=[4]), "ugal")
    assert not routes.oblivious
    assert routes.content_hash != replace(routes, threshold=1).content_hash
