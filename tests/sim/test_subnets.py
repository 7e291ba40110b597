# SPDX-License-Identifier: Apache-2.0
"""Subnets: copies of a network that share hosts, in all modes that have them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.ceilings import ceilings
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.routing.certificate import certify
from flitlab.models.scenario import Scenario
from flitlab.models.subnets import mode_in_subnets, routes_in_subnets, topology_in_subnets, traffic_in_subnets
from flitlab.models.switching.buffers import ChannelBuffers
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_after
from tests.scenarios import build, ideal, ideal_scenarios, scenario, vct_scenarios, wormhole_scenarios
from tests.sim.test_classes import LOADS, MANY, agree, by_class, carrying, mesh, plain_vct, with_classes

UNIFORM = {"kind": "uniform", "include_self": True}


def in_subnets(case: Scenario, count: int) -> Scenario:
    """A scenario over several subnets."""
    topology = topology_in_subnets(case.topology, count)
    routes = routes_in_subnets(case.routes, topology, count)
    instance = Instance(topology, traffic_in_subnets(case.traffic, topology, count), routes)
    return replace(case, instance=instance, switching=mode_in_subnets(case.switching, case.topology, count))


@st.composite
def with_subnets(draw, cases, replies: bool = True) -> Scenario:
    """A scenario of classes over subnets, which classes name or draw."""
    case = draw(with_classes(cases, replies).filter(lambda case: case.routes.form in (0, 1)))
    count = draw(st.integers(2, 3))
    subnets = st.sampled_from([None, *range(count)])
    limited = {number for n, one in enumerate(case.traffic.classes) if one.queue for number in (n, one.request)}
    listed = tuple(
        replace(one, subnet=draw(subnets if number not in limited else st.integers(0, count - 1)))
        for number, one in enumerate(case.traffic.classes)
    )
    traffic = replace(case.traffic, classes=listed)
    return in_subnets(replace(case, instance=replace(case.instance, traffic=traffic)), count)


@pytest.mark.long
@given(with_subnets(plain_vct(), replies=False), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=15)
def test_engines_agree(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(with_subnets(vct_scenarios()), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=60)
def test_engines_agree_in_vct(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(with_subnets(wormhole_scenarios()), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=60)
def test_engines_agree_in_wormhole(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(with_subnets(ideal_scenarios()), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=60)
def test_engines_agree_in_ideal(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@pytest.mark.parametrize(("load", "quantity", "expected"), [(0.3, "latency_mean", 34.93), (1.0, "accepted", 0.7955)])
def test_two_subnets_of_booksim2(load, quantity, expected):
    """A random subnet for each packet (FLIT.md, section 2); one network accepts 0.3976."""
    case = mesh()
    traffic = make("traffic", **UNIFORM).build(case.topology)
    case = in_subnets(replace(case, instance=replace(case.instance, traffic=traffic)), 2)
    row = measure("compiled", case, load, 1, Measure(10_000, 40_000, None)).row
    assert row[quantity] == pytest.approx(expected, rel=0.02)
    assert row["offered"] == pytest.approx(load, rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize(("load", "latency"), [(0.1, 29.47), (0.5, 35.01)])
def test_requests_and_replies_in_queues_of_their_own(load, latency):
    """Reads of 1 flit and writes of 5 in equal numbers on subnet 0, replies on 1, 2 VCs each (FLIT.md, section 3).

    BookSim2 with a source queue for replies of their own, whose latency counts from a tick after the delivery of the
    request; unchanged it has 30.23 and 36.87 (``test_source_queues.py``).
    """
    mix = [{"flits": 1, "share": 1}, {"flits": 5, "share": 1}]
    request = {**UNIFORM, "subnet": 0, "packet_flits": mix, "share": load / 2}
    request |= {"reply": {"class": "reply", "packet_flits": mix}, "source_queue": "requests"}
    case = carrying(mesh(vcs=2), request, {"name": "reply", "subnet": 1, "source_queue": "replies"})
    result = measure("compiled", in_subnets(case, 2), 1.0, 1, Measure(10_000, 40_000, None))
    assert result.row["latency_mean"] == pytest.approx(latency, rel=0.01)
    assert result.row["accepted"] == pytest.approx(load, rel=0.02)


@pytest.mark.parametrize("engine", long_after(1, ["reference", "compiled"]))
def test_replies_to_requests_of_one_tick_are_in_order_of_destination(engine):
    """A host receives a request over each subnet at a time, and sends both replies over one that it draws."""
    case = carrying(mesh(vcs=2), {**UNIFORM, "reply": {"class": "reply", "packet_flits": 1}}, {"name": "reply"})
    run = start(engine, in_subnets(ideal(case), 2), 0.3, 1, True)
    run.advance(600)
    log, hosts = run.log(), 2 * case.topology.hosts
    number = log.identity // hosts
    rows = zip(log.identity % hosts, log.created, number, log.destination, strict=True)
    replies = sorted(row for row in rows if row[2] % 2 == 1)
    pairs = [(one, two) for one, two in pairwise(replies) if one[:2] == two[:2] and one[3] != two[3]]
    assert len(pairs) > 20 and all(one[3] < two[3] for one, two in pairs)


def test_copies_are_disjoint_and_named():
    torus = replace(build("torus", dims=[3, 3], hosts=2), columns={"length": np.arange(36.0)})
    both = topology_in_subnets(torus, 2)
    assert (both.switches, both.channels, both.hosts, both.physical_hosts) == (18, 72, 36, 18)
    assert ((both.src < 9) == (both.dst < 9)).all() and (both.reverse[36:] >= 36).all()
    np.testing.assert_array_equal(both.host_switch, [*torus.host_switch, *(torus.host_switch + 9)])
    np.testing.assert_array_equal(both.columns["length"], 2 * [*range(36)])
    assert both.notes["labels"][13] == "4@1" and both.notes["nodes"][19] == "1@1"
    assert both.content_hash != topology_in_subnets(torus, 3).content_hash


@pytest.mark.parametrize("routing", [{"kind": "dor"}, {"kind": "ksp", "k": 2}, {"kind": "updown"},
                                     {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"},
                                     {"kind": "minimal", "vc_policy": "layered"}])  # fmt: skip
def test_routes_of_every_subnet_are_certified_alike(routing):
    """The union has the certificate of one copy, and no route between copies."""
    torus = build("torus", dims=[3, 4])
    routes = make("routing", **routing).build(torus)
    both = topology_in_subnets(torus, 2)
    copied = routes_in_subnets(routes, both, 2)
    if routes.escape is None:  # whose certificate follows escape channels between all switches
        assert certify(both, copied, 8).policy == certify(torus, routes, 8).policy
    if routes.paths is None:
        assert not copied.ports[:12, 12:].any() and (copied.ports[12:, 12:] == routes.ports).all()
    else:
        assert copied.paths.pair_start[-1] == 2 * routes.paths.pair_start[-1]


def test_too_few_vcs_for_all_subnets_are_an_error():
    """As for one subnet: a timeline certifies the routes of all subnets at once."""
    grid = build("mesh", dims=[3, 3])
    both = topology_in_subnets(grid, 2)
    for routing in ({"kind": "minimal"}, {"kind": "minimal", "select": "adaptive"}):
        routes = routes_in_subnets(make("routing", **routing).build(grid), both, 2)
        with pytest.raises(SpecError, match="rising needs a VC for each channel of the longest route, which has 4"):
            certify(both, routes, 1)


def test_ceilings_and_zero_load_follow():
    """n subnets carry n times as much; a class that names one has only that of it."""
    torus = build("torus", dims=[3, 3])
    routes = make("routing", kind="dor").build(torus)
    kinds = [make("ceiling", kind=kind) for kind in ("mcf", "mcf_paths", "split")]
    one = Instance(torus, make("traffic", **UNIFORM).build(torus), routes)
    both = topology_in_subnets(torus, 2)
    of_both = routes_in_subnets(routes, both, 2)

    def theta(instance):
        return [ceiling.upper for ceiling in ceilings(instance, kinds)]

    two = Instance(both, traffic_in_subnets(one.traffic, both, 2), of_both)
    assert theta(two) == pytest.approx([2 * value for value in theta(one)], rel=1e-6)
    named = {"name": "a", **UNIFORM, "subnet": 1}
    traffic = make("traffic", kind="classes", classes=[named]).build(torus)
    assert theta(Instance(both, traffic_in_subnets(traffic, both, 2), of_both)) == pytest.approx(theta(one), rel=1e-6)
    case = scenario(torus, routing={"kind": "dor"}, source=Source(flits=(4,)))
    assert in_subnets(case, 3).zero_load_latency == case.zero_load_latency


@pytest.mark.parametrize("mode", ["vct", "ideal"])
def test_hosts_send_into_every_subnet_at_once(mode):
    """One host saturates its channel of each subnet; packets of a class keep to theirs."""
    pair = Topology.from_links("pair", 2, [(0, 1)]).with_hosts(1)
    case = scenario(pair, source=Source(flits=(4,)), vcs=4, buffer_flits=32)
    case = ideal(case) if mode == "ideal" else case
    shift = {"kind": "shift", "by": 1, "packet_flits": 4, "share": 3.0}
    case = in_subnets(carrying(case, {**shift, "subnet": 0}, {**shift, "subnet": 1}), 2)
    run = start("reference", case, 1.0, 1, log=True)
    run.advance(1000)
    log = run.log()
    assert (log.destination // 2 == log.identity // 4 % 2).all()  # hosts of subnet 1 are 2 and 3
    rows = by_class(case, 1.0, Measure(100, 1000, None), engine="reference")
    assert [row["accepted"] for row in rows] == pytest.approx([1.0, 1.0], abs=0.01)


def test_buffers_are_those_of_every_copy():
    case = scenario(build("mesh", dims=[2, 2]), source=Source(flits=(2,)), buffer_flits=9)
    buffers = ChannelBuffers(tuple(range(2, 14)), {})
    both = in_subnets(replace(case, switching=replace(case.switching, channel_buffers=buffers)), 2)
    expected = [*2 * [*range(2, 10)], *2 * [*range(10, 14)]]
    np.testing.assert_array_equal(both.switching.buffers_of(both.topology), expected)


CONFIG = """
topology: {kind: mesh, dims: [3, 3]}
routing: {kind: dor}
switching: {vcs: 2, subnets: 2}
traffic: {classes: [{name: a, kind: uniform, subnet: 0, load: 0.1}, {name: b, kind: uniform}]}
loads: [0.2]
measure: {warmup: 100, ticks: 400, ci: null}
ceilings: []
engine: reference
"""


def write(tmp_path):
    file = tmp_path / "subnets.yaml"
    file.write_text(CONFIG)
    return file


def test_a_configuration_builds_subnets(tmp_path):
    case = read(write(tmp_path)).cases[0]
    assert case.topology.subnets == 2 and case.resolved["switching"]["subnets"] == 2
    assert "18" not in str(case.scenario.topology.physical_hosts)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"traffic": "{classes: [{name: a, kind: uniform, subnet: 2}]}"}, "from 0 to 1: switching.subnets is 2"),
        ({"switching.subnets": "17"}, "switching.subnets"),
        ({"switching.subnets": "0"}, "switching.subnets"),
        ({"routing": "{kind: valiant}", "switching.vcs": "8"}, "routing.kind.*subnets need a table or paths"),
        ({"timeline": "[{at_tick: 5, fail: {links: [[0, 9]]}}]"}, r"timeline\[0\].fail.links\[0\]"),
        ({"timeline": "[{at_tick: 5, fail: {links: [[0, 1]]}}]", "routing": "{kind: optimal}", "switching.vcs": "8",
          "traffic": "{kind: uniform}"}, "timeline: is not for subnets with routing optimal"),
        ({"switching": "{mode: deflection, subnets: 2}", "routing": "{kind: deflection}",
          "traffic": "{kind: uniform}"}, "must be 1 where the routing deflects"),
        ({"experiment": "relative", "traffic": "{kind: uniform}"}, "experiment: relative"),
    ],
)  # fmt: skip
def test_subnets_are_refused_where_they_have_no_meaning(tmp_path, changes, problem):
    with pytest.raises(ConfigError, match=problem):
        read(write(tmp_path), sets=[f"{key}={value}" for key, value in changes.items()])


def test_routes_that_draw_switches_are_refused():
    torus = build("torus", dims=[3, 3])
    routes = make("routing", kind="valiant").build(torus)
    with pytest.raises(SpecError, match="draws or computes"):
        routes_in_subnets(routes, topology_in_subnets(torus, 2), 2)
