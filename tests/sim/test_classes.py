# SPDX-License-Identifier: Apache-2.0
"""Classes of traffic: demands, source queues, VC ranges and priorities, by closed forms and in both engines."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.class_ranges import certify_ranges
from flitlab.models.rules.allocate import AllocatorKind
from flitlab.models.rules.tables import Selection, VcPolicy
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import ClassCounter, Scalar
from flitlab.sim.engines.compare import compare_logs, compare_snapshots
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests.models.test_traffic import dense
from tests.scenarios import (
    TRAFFIC,
    assert_order_is_immaterial,
    build,
    ideal,
    ideal_scenarios,
    reference,
    scenario,
    topologies,
    vct_scenarios,
    wormhole_scenarios,
)

PAIR = Topology.from_links("pair", 2, [(0, 1)]).with_hosts(1)
MESH = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2}
MANY = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LOADS = st.sampled_from([0.05, 0.3, 0.7, 1.0])


def classes(topology, *listed):
    """The traffic of some classes, named by their number."""
    named = [{"name": f"class {i}", **one} for i, one in enumerate(listed)]
    return make("traffic", kind="classes", classes=named).build(topology)


def carrying(case: Scenario, *listed) -> Scenario:
    """A scenario with classes in the place of its traffic."""
    traffic = classes(case.topology, *listed)
    flits, shares = traffic.lengths(1.0)
    source = replace(case.source, flits=flits, shares=shares)
    return replace(case, instance=replace(case.instance, traffic=traffic), work=source)


@st.composite
def with_classes(draw, cases, replies: bool = True) -> Scenario:
    """A scenario of any number of classes: patterns, loads, lengths, ranges of VCs, priorities and replies."""
    case = draw(cases)
    vcs, longest = case.switching.vcs, max(case.source.flits)
    keeps_all = case.switching.vc_policy in (VcPolicy.ESCAPE, VcPolicy.RESERVE)
    listed = []

    def vc_range() -> dict:
        if keeps_all or draw(st.booleans()):
            return {}
        return {"vcs": sorted(draw(st.lists(st.integers(0, vcs - 1), min_size=2, max_size=2)))}

    for i in range(draw(st.integers(1, 4))):
        one = {"name": f"class {i}", **draw(st.sampled_from(TRAFFIC)), "priority": draw(st.integers(-1, 1))}
        one |= {"share": draw(st.sampled_from([0.2, 0.5]))} if i == 0 or draw(st.booleans()) else {"load": 0.15}
        if draw(st.booleans()):
            one |= draw(st.sampled_from([{"arrivals": "poisson"}, {"arrivals": "onoff", "burst": 3}]))
        lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=2, unique=True))
        one["packet_flits"] = [{"flits": flits, "share": 1 + k} for k, flits in enumerate(lengths)]
        listed.append(one | vc_range())
        if replies and draw(st.booleans()):
            answers = {"name": f"replies {i}", "priority": draw(st.integers(-1, 1)), **vc_range()}
            lengths = draw(st.sampled_from([longest, [{"flits": 1, "share": 1}, {"flits": longest, "share": 2}]]))
            listed[-1]["reply"] = {
                "class": answers["name"], "packet_flits": lengths, "delay_ticks": draw(st.sampled_from([1, 2, 9, 300])),
                "queue": draw(st.sampled_from([None, 1, 3])),
            }  # fmt: skip
            listed.insert(draw(st.integers(0, len(listed))), answers)
    try:
        case = carrying(case, *listed)
    except SpecError as error:  # of drawn patterns, some hosts receive more than their share
        assert "fixed loads that exceed the rate of a host's channel" in str(error)
        reject()
    if case.switching.mode == "ideal":
        return case
    priority = draw(st.sampled_from(["none", "class", "age"]))
    keys: dict = {"oldest_first": priority == "age"}
    if case.switching.mode == "wormhole":
        takes_part = case.switching.matching in (AllocatorKind.ISLIP, AllocatorKind.OUTPUT_FIRST)
        keys = {"priority_at": draw(st.sampled_from(["all", "input_vcs"]))} if takes_part else {}
    return replace(case, switching=replace(case.switching, priority=priority, **keys))


@st.composite
def plain_vct(draw) -> Scenario:
    """Virtual cut-through in the variant whose kernel is compiled for other tests of classes, too."""
    return scenario(
        draw(topologies().filter(lambda topology: not topology.has_delays)), routing={"kind": "minimal"},
        traffic={"kind": "uniform"}, source=Source(draw(st.sampled_from(["bernoulli", "poisson", "onoff"])), (1, 4)),
        allow_deadlock=True, vcs=draw(st.integers(1, 5)), buffer_flits=draw(st.integers(4, 12)),
    )  # fmt: skip


def agree(case, load, seed):
    """Assert that both engines agree on packets and counters, those of classes too."""
    growing, offered = case.at(load)
    run = start("both", growing, offered, seed)
    for tick in (60, 250):
        run.advance(tick)
        counted = run.snapshot()
        run.deadlocked()
        totals = counted.classes.sum(axis=0)
        for name in ("CREATED_PACKETS", "CREATED_FLITS", "DELIVERED_PACKETS", "DELIVERED_FLITS", "LATENCY"):
            assert totals[getattr(ClassCounter, name)] == counted.scalars[getattr(Scalar, name)]
        np.testing.assert_array_equal(totals[len(ClassCounter) :], counted.histogram)


@pytest.mark.long
@given(with_classes(plain_vct(), replies=False), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=30)
def test_engines_agree(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(with_classes(vct_scenarios()), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=150)
def test_engines_agree_in_vct(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(with_classes(wormhole_scenarios()), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=120)
def test_engines_agree_in_wormhole(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(with_classes(ideal_scenarios()), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=80)
def test_engines_agree_in_ideal(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
def test_adaptive_packets_take_the_lowest_free_vc_to_a_host():
    """However many flits are in flight to it: a class that may take one VC only finds it as often in both engines."""
    case = scenario(
        build("torus", dims=[3, 3]), routing={"kind": "minimal", "select": "adaptive"}, source=Source(flits=(4,)),
        mode="wormhole", allow_deadlock=True, buffer_flits=1, header=1,
    )  # fmt: skip
    request = {"name": "read", "kind": "uniform", "vcs": [0, 0], "share": 0.2}
    request["reply"] = {"class": "data", "packet_flits": 4}
    agree(carrying(case, request, {"name": "data"}), 1.0, 1)


@pytest.mark.long
@given(with_classes(plain_vct()), LOADS, st.integers(1, 2**30))
@settings(MANY, max_examples=8)
def test_order_is_immaterial(case, load, shuffle):
    assert_order_is_immaterial(*case.at(load), shuffle)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["vct", pytest.param("wormhole", marks=pytest.mark.long),
                                  pytest.param("ideal", marks=pytest.mark.long)])  # fmt: skip
def test_one_class_is_the_same_as_none(mode):
    """Packets, counters and events of the engine, at several ticks."""
    keys = {"mode": "wormhole", "buffer_flits": 3} if mode == "wormhole" else {}
    torus = build("torus", dims=[3, 3])
    none = scenario(torus, source=Source(flits=(4,)), allow_deadlock=True, **keys)
    none = ideal(none) if mode == "ideal" else none
    one = carrying(none, {"kind": "uniform", "packet_flits": 4})
    for name in ("compiled", "reference"):
        runs = [start(name, case, 0.6, 5, log=True) for case in (none, one)]
        for tick in (10, 300):
            for run in runs:
                run.advance(tick)
            first, second = (run.snapshot() for run in runs)
            compare_logs(runs[0].log(), runs[1].log(), tick)
            compare_snapshots(first, second)
            np.testing.assert_array_equal(first.scalars, second.scalars)
            np.testing.assert_array_equal(runs[0].backlog(), runs[1].backlog())


def two_classes(**high) -> Scenario:
    """0.08 packets a tick of 5 flits, and 0.03 of 10, from a host to its neighbour."""
    case = scenario(PAIR, source=Source(flits=(10,)), vcs=4, buffer_flits=80, header=0, switch=1, link=1, injection=1,
                    ejection=1, credit=1)  # fmt: skip
    neighbour = {"kind": "shift", "by": 1}
    return carrying(
        case, {**neighbour, "share": 0.4, "packet_flits": 5, **high}, {**neighbour, "share": 0.3, "packet_flits": 10}
    )


LASTING = {"compiled": Measure(10_000, 1_000_000, None), "reference": Measure(2000, 60_000, None)}
"""As long as each engine can in a few seconds."""


def by_class(case, load, how, seed=1, engine="compiled"):
    """The rows of classes.csv of a point."""
    return measure(engine, case, load, seed, how).detail["classes"]


def test_waits_of_two_priorities_at_one_host(engine_name):
    """Geo/D/1 with two non-preemptive priorities in discrete time: with R = sum p S (S - 1) / 2 and rho = p S the waits
    are R / (1 - rho_1) and (R / (1 - rho_1) + rho_1) / (1 - rho_1 - rho_2).
    """
    rest = 0.08 * 5 * 4 / 2 + 0.03 * 10 * 9 / 2
    high, low = rest / 0.6, (rest / 0.6 + 0.4) / 0.3
    assert (high, low) == (pytest.approx(3.583, abs=1e-3), pytest.approx(13.28, abs=1e-2))
    case = replace(two_classes(priority=1), switching=replace(two_classes().switching, priority="class"))
    rows = by_class(case, 1.0, LASTING[engine_name], engine=engine_name)
    assert rows[0]["latency_mean"] - 9 == pytest.approx(high, rel=0.015)
    assert rows[1]["latency_mean"] - 14 == pytest.approx(low, rel=0.03)
    assert [row["offered"] for row in rows] == [pytest.approx(0.4, rel=0.01), pytest.approx(0.3, rel=0.02)]


@pytest.mark.long
def test_waits_of_one_priority_are_equal(engine_name):
    """Work is conserved: the mean of the waits, by load, is that with priorities (Kleinrock's law), and classes of one
    priority wait nearly as long.
    """
    rest = 0.08 * 5 * 4 / 2 + 0.03 * 10 * 9 / 2
    high, low = rest / 0.6, (rest / 0.6 + 0.4) / 0.3
    rows = by_class(two_classes(), 1.0, LASTING[engine_name], engine=engine_name)
    waits = rows[0]["latency_mean"] - 9, rows[1]["latency_mean"] - 14
    assert (0.4 * waits[0] + 0.3 * waits[1]) == pytest.approx(0.4 * high + 0.3 * low, rel=0.03)
    assert waits[1] < 0.7 * low and waits[0] > 1.5 * high


def mesh(priority="none", **keys) -> Scenario:
    """The 8x8 mesh of FLIT.md's table."""
    grid = make("topology", kind="mesh", dims=[8, 8]).build()
    case = scenario(
        grid, routing={"kind": "dor"}, source=Source(flits=(5,)), mode="wormhole", vcs=4, buffer_flits=8,
        shared_input=True, **MESH,
    )  # fmt: skip
    return replace(case, switching=replace(case.switching, priority=priority, **keys))


def on_mesh(case, high_vcs=None, low_vcs=None) -> Scenario:
    """Classes of 1 flit at load 0.1, and of 5 flits, that share all VCs or have their own."""
    uniform = {"kind": "uniform", "include_self": True}
    high = {**uniform, "load": 0.1, "priority": 1, "vcs": high_vcs}
    return carrying(case, high, {**uniform, "share": 1.0, "packet_flits": 5, "vcs": low_vcs})


BOOKSIM = {
    ("class", 0.1): (27.54, 37.29), ("class", 0.2): (29.72, 45.39),
    ("none", 0.1): (28.06, 36.39), ("none", 0.2): (31.82, 43.64),
}  # fmt: skip
"""Priorities and load of the low class -> latencies of both classes in BookSim2 (separable_input_first)."""


@pytest.mark.long
@pytest.mark.parametrize("matching", ["islip", "separable_input_first"])
@pytest.mark.parametrize(("priority", "load"), BOOKSIM)
def test_latencies_of_booksim2(priority, load, matching):
    """BookSim2's islip heeds priorities only in one choice: the next test."""
    rows = by_class(on_mesh(mesh(priority, matching=matching)), load, Measure(10_000, 40_000, None))
    assert [row["latency_mean"] for row in rows] == pytest.approx(BOOKSIM[priority, load], rel=0.02)


# BookSim2, both allocators islip: priority = class at {0.1, 0.1}, {0.1, 0.2}; age, one class, at 0.2 and 0.3
ISLIP = {
    ("class", "input_vcs", 0.1): (27.83, 36.96), ("class", "input_vcs", 0.2): (30.90, 45.02),
    ("class", "all", 0.2): (29.87, 45.51),  # separable_output_first, which differs from islip in priorities only
    ("age", "input_vcs", 0.2): (36.12,), ("age", "input_vcs", 0.3): (43.45,),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("priority", "at", "load"), ISLIP)
def test_priorities_of_islip_count_where_those_of_booksim2_do(priority, at, load):
    """BookSim2's islip chooses without regard to priorities; only of two VCs of an input that request one output the
    more urgent one goes first.
    """
    case = mesh(priority, matching="islip", priority_at=at)
    if priority == "age":
        traffic = make("traffic", kind="uniform", include_self=True).build(case.topology)
        case = replace(case, instance=replace(case.instance, traffic=traffic))
        rows = [measure("compiled", case, load, 1, Measure(10_000, 40_000, None)).row]
    else:
        rows = by_class(on_mesh(case), load, Measure(10_000, 40_000, None))
    assert [row["latency_mean"] for row in rows] == pytest.approx(ISLIP[priority, at, load], rel=0.01)


@pytest.mark.parametrize(
    ("keys", "at"),
    [("priority: age", "input_vcs"), ("priority: age, allocator: islip", "input_vcs"), ("allocator: islip", "all"),
     ("priority: age, priority_at: all", "all"), ("priority: age, allocator: separable_output_first", "all")],
)  # fmt: skip
def test_islip_heeds_priorities_as_in_booksim2_by_default(tmp_path, keys, at):
    path = tmp_path / "c.yaml"
    path.write_text(f"""
schema: 1
name: c
topology: {{kind: torus, dims: [4]}}
routing: {{kind: minimal}}
traffic: {{kind: uniform}}
switching: {{mode: wormhole, {keys}}}
loads: [0.1]
seeds: [1]
""")
    study = read(path)
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(study.resolved()))
    assert [one.cases[0].scenario.switching.priority_at for one in (study, read(again))] == [at, at]


@pytest.mark.parametrize(("at", "accepted"), [("all", [1.0, 0.0]), ("input_vcs", [0.5, 0.5])])
def test_inputs_compete_by_priority_only_where_it_counts_everywhere(at, accepted):
    """Two saturated classes of single flits enter a switch by different inputs, for the same host: the urgent one has
    all of its channel, or by rotation half.
    """
    line = Topology.from_links("line", 3, [(0, 1), (1, 2)]).with_hosts(1)
    case = scenario(line, source=Source(flits=(1,)), mode="wormhole", vcs=4, buffer_flits=16, shared_input=True, **MESH)
    case = replace(case, switching=replace(case.switching, priority="class", priority_at=at))
    first, second = ({"kind": "matrix", "text": f"src,dst,demand\n{source},2,1\n"} for source in (0, 1))
    case = carrying(case, {**first, "priority": 1, "vcs": [0, 1]}, {**second, "vcs": [2, 3], "share": 0.5})
    rows = by_class(case, 2.0, Measure(200, 2000, None), engine="reference")
    assert [row["accepted"] * 3 for row in rows] == pytest.approx(accepted, abs=0.02)  # a mean over three hosts


@pytest.mark.long
def test_a_class_with_vcs_and_priority_of_its_own_keeps_its_latency_at_overload():
    """Zero load is 27 ticks; with shared VCs BookSim2 has 155 (FLIT.md, section 3)."""
    own = by_class(on_mesh(mesh("class"), [0, 1], [2, 3]), 0.9, Measure(10_000, 20_000, None))
    shared = by_class(on_mesh(mesh("class")), 0.9, Measure(10_000, 20_000, None))
    assert own[0]["latency_mean"] < 40 < 100 < shared[0]["latency_mean"]
    assert own[0]["accepted"] == pytest.approx(0.1, rel=0.03)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_priority_age_bounds_the_slowest_packets(mode):
    """The oldest first: the 99.9 % latency of a loaded mesh is less than without, at the same throughput."""
    if mode == "wormhole":
        none = scenario(build("mesh", dims=[6, 6]), routing={"kind": "dor"}, mode=mode, buffer_flits=8, **MESH)
        aged = replace(none, switching=replace(none.switching, priority="age"))
    else:
        none = scenario(build("mesh", dims=[6, 6]), routing={"kind": "dor"}, **MESH)
        aged = replace(none, switching=replace(none.switching, priority="age", oldest_first=True))
    rows = [measure("compiled", case, 0.4, 1, Measure(5000, 30_000, None)).row for case in (none, aged)]
    assert rows[0]["accepted"] == pytest.approx(rows[1]["accepted"], rel=0.02)
    assert rows[1]["latency_p999"] < rows[0]["latency_p999"]


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_packets_keep_to_the_vcs_of_their_class(mode):
    keys = {"mode": mode, "buffer_flits": 3} if mode == "wormhole" else {}
    case = scenario(build("torus", dims=[3, 3]), vcs=5, allow_deadlock=True, **keys)
    uniform = {"kind": "uniform", "packet_flits": 3}
    case = carrying(case, {**uniform, "vcs": [0, 1]}, {**uniform, "vcs": [2, 2]}, {**uniform, "vcs": [1, 4]})
    seen = set()
    run = reference(case, 0.9, 3)
    for tick in range(1, 150):
        run.advance(tick)
        for vc in (vc for switch in run.switches for vc in switch.input_vcs):
            stored = vc.queue if mode == "vct" else [flit.packet for flit in vc.flits]
            seen |= {(packet.sequence % 3, vc.index % 5) for packet in stored}
    assert seen == {(0, 0), (0, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 4)}


READ, WRITE = {"packet_flits": 1, "reply": {"class": "data", "packet_flits": 5}}, {"packet_flits": 5}
REQUESTS = ({"name": "read", **READ}, {"name": "write", **WRITE, "reply": {"class": "done"}})
REPLIES = ({"name": "data"}, {"name": "done"})


@pytest.mark.parametrize("mode", ["vct", "wormhole", "ideal"])
def test_a_reply_alone_takes_the_zero_load_latency(engine_name, mode):
    """Every request has one reply, created ``delay_ticks`` after its delivery; both cross an empty network."""
    keys = {"mode": "wormhole"} if mode == "wormhole" else {}
    case = scenario(PAIR, source=Source(flits=(5,)), vcs=4, buffer_flits=20, **keys)
    case = ideal(case) if mode == "ideal" else case
    request = {"name": "read", "kind": "shift", "by": 1, "share": 1.0, "packet_flits": 1}
    request["reply"] = {"class": "data", "packet_flits": 5, "delay_ticks": 7}
    case = carrying(case, request, {"name": "data"})
    run = start(engine_name, case, 0.001, 4, log=True)
    run.advance(20_000)
    log, counted = run.log(), run.snapshot().classes
    requests, replies = log.identity // 2 % 2 == 0, log.identity // 2 % 2 == 1
    assert 20 < replies.sum() == requests.sum()
    latency = log.delivered - log.created
    assert np.median(latency[requests]) == case.switching.zero_load_latency(case.topology, 1, 1)
    assert np.median(latency[replies]) == case.switching.zero_load_latency(case.topology, 1, 5)
    answered = np.stack([log.delivered[requests] + 7, log.destination[requests]])
    created = np.stack([log.created[replies], log.identity[replies] % 2])
    assert set(map(tuple, created.T)) == set(map(tuple, answered.T))
    assert counted[1, ClassCounter.CREATED_FLITS] == 5 * counted[0, ClassCounter.DELIVERED_PACKETS]


@pytest.mark.long
@pytest.mark.parametrize(("load", "latency"), [(0.05, 29.97), (0.1, 30.73), (0.2, 33.16)])
def test_latencies_of_requests_and_replies_of_booksim2(load, latency):
    """Reads of 1 flit and writes of 5 in equal numbers on VCs 0 and 1, replies of 5 and 1 on 2 and 3 (FLIT.md).

    BookSim2 counts the latency of a reply from the delivery of its request, a tick before the host can send it.
    """
    uniform, packets = {"kind": "uniform", "include_self": True}, load / 12  # of each kind, per tick and host
    case = mesh()
    requests = [{**uniform, **one, "vcs": [0, 1], "share": one["packet_flits"] * packets} for one in REQUESTS]
    case = carrying(case, *requests, *({**one, "vcs": [2, 3]} for one in REPLIES))
    result = measure("compiled", case, 1.0, 1, Measure(10_000, 40_000, None))
    assert result.row["latency_mean"] + 0.5 == pytest.approx(latency, rel=0.01)
    assert result.row["accepted"] == pytest.approx(load, rel=0.02)


def test_the_demand_has_the_replies():
    torus = build("torus", dims=[3, 3], hosts=2)
    shift = {"kind": "shift", "by": 3}
    both = classes(torus, {**shift, "share": 1.0, **READ}, {"name": "data"})
    one = dense(make("traffic", **shift).build(torus))
    assert dense(both) == pytest.approx(one + 5 * one.T)
    assert both.lengths(0.3) == ((1, 5), pytest.approx((0.3 * 18, 0.3 * 18)))


def test_flits_of_classes_alternate_at_a_host():
    """Two classes of long packets to one host, saturated: wormhole hosts take turns flit by flit, vct packet by packet;
    the greater priority sends alone.
    """
    for mode, priority, expected in (("wormhole", 0, 0.5), ("wormhole", 1, 1.0), ("vct", 0, 0.5), ("vct", 1, 1.0)):
        keys = {"mode": mode} if mode == "wormhole" else {}
        case = scenario(PAIR, source=Source(flits=(8,)), vcs=4, buffer_flits=40, **keys)
        one = {"kind": "shift", "by": 1, "packet_flits": 8, "share": 3.0}
        case = carrying(case, {**one, "priority": priority}, one)
        run = reference(case, 1.0, 1)
        run.advance(800)
        flits = run.snapshot().classes[:, ClassCounter.DELIVERED_FLITS]
        assert flits[0] / flits.sum() == pytest.approx(expected, abs=0.03)


def test_the_demand_is_the_sum_of_the_classes():
    torus = build("torus", dims=[3, 3], hosts=2)
    one, two, three = {"kind": "uniform"}, {"kind": "permutation", "seed": 5}, {"kind": "shift", "by": 3}
    both = classes(torus, {**one, "share": 0.25}, two, {**three, "load": 0.2})
    of = [dense(make("traffic", **pattern).build(torus)) for pattern in (one, two, three)]
    assert dense(both) == pytest.approx(0.25 * of[0] + 0.75 * of[1])
    assert dense(both.background) == pytest.approx(0.2 * of[2])
    at, load = both.at(0.4)
    assert load == 1.0
    assert dense(at) == pytest.approx(0.1 * of[0] + 0.3 * of[1] + 0.2 * of[2])
    assert [c.offered(load) for c in at.classes] == pytest.approx([0.1, 0.3, 0.2])
    halves = classes(torus, one, one)  # equal demands, and equal shares
    assert [c.share for c in halves.classes] == [0.5, 0.5]
    assert dense(halves) == pytest.approx(of[0])
    hashes = {traffic.content_hash for traffic in (both, at, halves, classes(torus, one))}
    assert len(hashes) == 4


def test_a_class_may_have_arrivals_of_its_own():
    """Back-to-back packets of an on-off class arrive in runs, at its rate; those of the other singly."""
    case = carrying(
        scenario(build("torus", dims=[3, 3])), {"kind": "uniform", "share": 0.5, "arrivals": "onoff", "burst": 20},
        {"kind": "uniform", "share": 0.5},
    )  # fmt: skip
    run = reference(case, 0.2, 2)
    for number, following in ((0, 0.9), (1, 0.2)):
        ticks = [[packet[0] for packet, _ in zip(run.draw_packets(9 * number + h), range(400), strict=False)]
                 for h in range(9)]  # fmt: skip
        gaps = np.diff(ticks)
        assert abs((gaps == 1).mean() - following) < 0.15
        assert gaps.mean() == pytest.approx(10, rel=0.2)
    hashes = {case.traffic.classes[0].content_hash, replace(case.traffic.classes[0], arrivals=None).content_hash}
    assert len(hashes) == 2


def test_each_class_has_its_rate_and_its_lengths():
    """Created packets of every class against its load, and independent draws: classes of one process differ."""
    case = carrying(
        scenario(build("torus", dims=[3, 3], hosts=2)),
        {"kind": "uniform", "share": 0.3}, {"kind": "uniform", "load": 0.3},
        {"kind": "shift", "by": 1, "share": 0.2, "packet_flits": [{"flits": 1, "share": 3}, {"flits": 4, "share": 1}]},
    )  # fmt: skip
    growing, load = case.at(0.5)
    run = reference(growing, load, 2)
    drawn = [[next(run.draw_packets(c * 18 + host)) for host in range(18)] for c in range(3)]
    assert drawn[0] != drawn[1]
    run.advance(1200)
    created = run.snapshot().classes[:, [ClassCounter.CREATED_PACKETS, ClassCounter.CREATED_FLITS]] / (18 * 1200)
    assert created[:, 1] == pytest.approx([0.15, 0.3, 0.1], rel=0.08)
    assert created[:, 1] / created[:, 0] == pytest.approx([1, 1, 1.75], rel=0.05)
    mean = np.dot(growing.source.flits, growing.source.shares) / sum(growing.source.shares)
    assert mean == pytest.approx(0.55 / (0.45 + 0.1 / 1.75))


RING = make("topology", kind="torus", dims=[4, 4]).build()
DATELINE = {"kind": "dor", "vc_policy": {"kind": "dateline", "choose": "on_entry"}}


def certificate(ranges, routing=DATELINE, topology=RING):
    return certify_ranges(topology, make("routing", **routing).build(topology), ranges, False, certify)


def test_ranges_of_vcs_are_certified_each():
    assert certificate([(0, 2), (2, 4)]).acyclic
    assert certificate([(0, 2), (2, 5)]).policy == VcPolicy.DATELINE_ENTRY
    with pytest.raises(SpecError, match="classes on VC 2: dateline needs 2 VCs"):
        certificate([(0, 2), (2, 3)])
    with pytest.raises(SpecError, match="VCs 0 to 2 and 2 to 4 overlap"):
        certificate([(0, 3), (2, 5)])
    mesh = make("topology", kind="mesh", dims=[4, 4]).build()
    assert certificate([(0, 3), (2, 5)], {"kind": "dor"}, mesh).policy == VcPolicy.ANY  # acyclic whatever the VCs
    escape = {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"}
    assert make("routing", **escape).build(RING).select == Selection.ADAPTIVE
    with pytest.raises(SpecError, match="escape reserves VCs"):
        certificate([(0, 2), (2, 4)], escape)


CONFIG = """
topology: {kind: torus, dims: [4, 4], hosts_per_switch: 1}
routing: {kind: dor}
switching: {vcs: 4%s}
traffic:
  classes:
    - {name: control, kind: uniform, load: 0.1, priority: 1%s}
    - {name: bulk, kind: shift, by: 5, packet_flits: 5%s}
loads: [0.2]
measure: {warmup: 100, ticks: 400, ci: null}
ceilings: []
engine: reference
"""


def write(tmp_path, switching="", first="", second=""):
    file = tmp_path / "classes.yaml"
    file.write_text(CONFIG % (switching, first, second))
    return file


def test_a_run_writes_a_row_per_class(tmp_path, capsys):
    file = write(tmp_path, ", priority: class", ", vcs: [0, 1]", ", vcs: [2, 3]")
    assert main(["run", str(file), "--out", str(tmp_path / "out"), "--set", "outputs.figures=[]"]) == 0
    printed = capsys.readouterr().out
    assert "control" in printed and "bulk" in printed
    with (tmp_path / "out" / "classes.csv").open() as table:
        rows = list(csv.DictReader(table))
    with (tmp_path / "out" / "results.csv").open() as table:
        (whole,) = csv.DictReader(table)
    assert [row["class"] for row in rows] == ["control", "bulk"]
    assert sum(float(row["accepted"]) for row in rows) == pytest.approx(float(whole["accepted"]))
    assert float(rows[0]["offered"]) == pytest.approx(0.1, rel=0.2)
    assert sum(int(row["packets"]) for row in rows) == int(whole["packets"])
    again, first = (read(path).cases[0] for path in (tmp_path / "out" / "config.resolved.yaml", file))
    assert again.scenario.content_hash == first.scenario.content_hash
    assert "Classes of traffic" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        (("", ", vcs: [2, 4]", ""), "traffic.classes[0].vcs", "ends at virtual channel 4"),
        (("", ", vcs: [2, 1]", ""), "traffic.classes[0].vcs", "first and the last virtual channel"),
        (("", ", share: 0.1", ""), "traffic.classes[0].share", "class without a load"),
        (("", "", ", load: 0.1"), "traffic.classes", "needs a class with a share"),
        (("", "", ", by2: 3"), "traffic.classes[1].by2", "unknown key"),
        (("", "", ", reply: {}"), "traffic.classes[1].reply.class", "is missing"),
        (("", "", ", reply: {class: none}"), "traffic.classes[1].reply.class", "is no name of a class"),
        (("", "", ", reply: {class: control}"), "traffic.classes[0].kind", "only name, priority, vcs, subnet and"),
        (("", "", ", reply: {class: control, queue: 0}"), "traffic.classes[1].reply.queue", "greater than or equal"),
        (("", ", vcs: [0, 0]", ", vcs: [1, 3]"), "routing", "classes on VC 0"),
        (("", ", arrivals: bursts", ""), "traffic.classes[0].arrivals", "not one of the choices"),
        ((", priority: class, allocator: oldest", "", ""), "switching.allocator", "priority age is the same order"),
        ((", priority: older", "", ""), "switching.priority", "not one of the choices"),
    ],
)  # fmt: skip
def test_errors_name_key_and_reason(tmp_path, keys, key, problem):
    with pytest.raises(ConfigError) as error:
        read(write(tmp_path, *keys))
    assert key in str(error.value) and problem in str(error.value)


def test_ideal_switches_have_no_vcs(tmp_path):
    study = read(write(tmp_path, "", ", vcs: [0, 1]"), sets=["switching={mode: ideal}"])
    assert ["channels are not divided in mode ideal" in str(warning) for warning in study.warnings] == [True]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"switching.mode": "deflection", "routing": "{kind: deflection}"}, "is not for mode deflection"),
        ({"traffic": "{kind: uniform}", "switching.priority": "class"}, "traffic.classes, of which there are none"),
        ({"traffic.packet_flits": "4"}, "a key of each class"),
        ({"switching": "{mode: ideal, priority: class}"}, "is not for mode ideal"),
    ],
)
def test_classes_are_refused_where_they_have_no_meaning(tmp_path, changes, problem):
    with pytest.raises(ConfigError, match=problem):
        read(write(tmp_path), sets=[f"{key}={value}" for key, value in changes.items()])
