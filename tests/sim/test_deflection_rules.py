# SPDX-License-Identifier: Apache-2.0
"""Rules vc and frame of hot-potato switching: exact cases, closed forms, invariants, equal engines, errors."""

import csv
import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.application.program import Op
from flitlab.models.rules.allocate import outranks
from flitlab.models.rules.deflect import vc_occupancy_bound
from flitlab.models.scenario import Scenario
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import packet_watch, start
from flitlab.sim.engines.table import single_thread_reason
from flitlab.sim.engines.trace.all_packets import record_all_packets
from tests.programs import messages, program
from tests.scenarios import (
    TRAFFIC,
    assert_order_is_immaterial,
    build,
    carrying,
    reference,
    scenario,
    sources,
    topologies,
)
from tests.sim.test_application_engines import with_program

PACKET, FLIT, FRAME = {"rule": "vc"}, {"rule": "vc", "by_flit": True}, {"rule": "frame"}
RULES = [PACKET, FLIT, FRAME]
HOT = {"kind": "deflection"}
SLOW = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def hot(topology: Topology, flits: int, rule: dict, **keys) -> Scenario:
    """A scenario under a rule, of packets of equal length."""
    length = {"packet_flits": flits} if rule["rule"] == "frame" else {}
    source = keys.pop("source", Source(flits=(flits,)))
    return scenario(topology, routing=HOT, source=source, **{"hold_packets": 0, **rule, **length, **keys})


def four(rule: dict, engine: str, seed: int):
    """A run in which hosts 0 .. 3 of one switch send a packet each to hosts 4 .. 7 of the next switch at tick 0."""
    arcs = [(v, (v + step) % 4) for v in range(4) for step in (1, 2)]
    topology = Topology.from_arcs("four", 4, arcs).with_hosts(4)
    sends = [[(Op.SEND, 24, host + 4, 0, 0, [])] for host in range(4)]
    receives = [[(Op.RECV, 24, host, 0, 0, [])] for host in range(4)]
    case = hot(topology, 3, rule, vcs=3, header=1, switch=1, link=2, injection=2, ejection=2)
    how = messages(packet_bytes=24, packet_flits=3, whole=True)
    run = start(engine, with_program(case, program([*sends, *receives]), how), 0, seed, log=True)
    run.advance(60)
    return run


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rule", "minimal"), [(PACKET, [12, 15, 18]), (FLIT, [15, 16, 17])], ids=["packet", "flit"])
def test_the_fourth_packet_of_three_vcs_is_deflected(engine_name, rule, minimal, seed):
    """By switch 3 it arrives at 20; by switch 0, whose channel the others hold up to tick 11, a tick later."""
    run = four(rule, engine_name, seed)
    log, counted = run.log(), run.snapshot()
    by_switch_0 = counted.channel_flits[4] > 0  # channel 4: from switch 2 to 0
    assert log.delivered.tolist() == [*minimal, 21 if by_switch_0 else 20]
    assert log.hops.tolist() == [1, 1, 1, 3] and counted.scalars[Scalar.DEFLECTIONS] == 1
    assert counted.scalars[Scalar.VC_WAITS] == 0 and counted.scalars[Scalar.OCCUPANCY_MAX] == 4


def test_both_paths_of_the_fourth_packet_occur():
    assert {four(PACKET, "reference", seed).log().delivered[3] for seed in range(4)} == {20, 21}


def test_a_frame_takes_three_of_four_packets(engine_name):
    """P = 9; hosts 1, 2, 3 in the frame of tick 9, host 0 in the next one."""
    log = four(FRAME, engine_name, 1).log()
    assert log.delivered.tolist() == [36, 27, 27, 27] and log.hops.tolist() == [1, 1, 1, 1]


def test_a_pool_waits_instead(engine_name):
    log = four({"rule": "pool", "hold_packets": 6}, engine_name, 1).log()
    assert log.delivered.tolist() == [12, 15, 18, 21] and log.hops.max() == 1


@pytest.mark.parametrize("rule", RULES, ids=["packet", "flit", "frame"])
def test_a_packet_alone_takes_the_closed_form(engine_name, rule):
    topology, times = build("kautz", degree=3, diameter=3), {"header": 5, "switch": 2, "link": 3, "injection": 2}
    case = hot(topology, 5, rule, vcs=3, ejection=1, **times)
    lone = carrying(case, rate=np.eye(topology.hosts)[0])
    run = start(engine_name, lone, 0.01, 7, log=True)
    run.advance(40_000)
    log, frame = run.log(), 15
    packets = islice(reference(lone, 0.01, 7).draw_packets(0), len(log.identity))
    far, before, alone = distances(topology)[0], -1000, 0
    for delivered, hops, (created, to, _) in zip(log.delivered, log.hops, packets, strict=True):
        if created - before > 200:
            assert hops == far[to]
            if rule["rule"] == "frame":  # q = ceil((V - 1 + 2 + 3 + 5) / P) = 1
                begin = -(-(created + 2 + 5) // frame) * frame
                assert delivered == begin + hops * frame + 4 * 3 + 2 + 1
            else:
                assert delivered - created == 2 + (hops + 1) * (5 + 2) + 3 * hops + 1 + 4
            alone += 1
        before = created
    assert alone > 20
    best = lone.switching.zero_load_latency(topology, 3, 5)
    assert best == (2 + 5 + 3 * frame + 12 + 3 if rule["rule"] == "frame" else 2 + 4 * 7 + 9 + 1 + 4)


@st.composite
def rule_scenarios(draw) -> Scenario:
    """Rules vc and frame: few and many VCs, no reserve and all but one, short packets and long ones, all timings."""
    balanced = topologies().filter(lambda t: (t.in_degree == t.out_degree).all() and t.out_degree.min() > 0)
    topology = draw(balanced.filter(lambda t: not t.has_delays))
    source, rule, vcs = draw(sources(one_length=True)), draw(st.sampled_from(RULES)), draw(st.integers(2, 5))
    keys = {"header": draw(st.integers(0, 6))}
    keys |= {name: draw(st.integers(1, 5)) for name in ("switch", "link", "injection", "ejection")}
    if rule["rule"] == "vc":
        keys["reserve"] = draw(st.sampled_from([None, 0, 1, int(topology.out_degree.min()) * vcs - 1]))
    traffic = draw(st.sampled_from(TRAFFIC))
    return hot(topology, source.flits[0], rule, vcs=vcs, traffic=traffic, source=source, **keys)


@pytest.mark.long
@SLOW
@given(rule_scenarios(), st.sampled_from([0.05, 0.3, 0.7, 1.0]), st.integers(0, 2**40), st.integers(1, 400))
def test_engines_agree(case, load, seed, first):
    run = start("both", case, load, seed)
    for tick in (first, first + 1, first + 300):
        run.advance(tick)
        run.snapshot()


@pytest.mark.long
@settings(SLOW, max_examples=15)
@given(rule_scenarios(), st.integers(1, 1000))
def test_the_order_within_a_tick_is_immaterial(case, shuffle):
    assert_order_is_immaterial(case, 0.7, shuffle)


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES, ids=["packet", "flit", "frame"])
@pytest.mark.parametrize("reserve", [None, 0])
def test_invariants_hold_in_overload(rule, reserve):
    """Both engines assert most of them; here what shows from outside: conservation, bounds, paths."""
    keys = {"reserve": reserve} if rule["rule"] == "vc" else {}
    case = hot(build("imase", hosts=2, n=9, degree=2), 5, rule, vcs=3, header=6, **keys)
    run = start("both", case, 1.0, 3)
    run.advance(3000)
    counted, log = run.snapshot(), run.log()
    total = counted.scalars
    assert total[Scalar.CREATED_FLITS] == total[Scalar.DELIVERED_FLITS] + run.backlog().sum()
    hosts, topology = case.topology.hosts, case.topology
    packets = {host: list(islice(reference(case, 1.0, 3).draw_packets(host), 600)) for host in range(hosts)}
    far = distances(topology)[np.ix_(topology.host_switch, topology.host_switch)].astype(int)
    for identity, hops in zip(log.identity.tolist(), log.hops.tolist(), strict=True):
        sequence, source = divmod(identity, hosts)
        assert hops >= far[source, packets[source][sequence][1]]
    assert counted.deflections[1:].sum() > 0
    if rule == FRAME:
        assert total[Scalar.VC_WAITS] == 0
    elif rule == PACKET:
        limit = 2 * 3 - (2 if reserve is None else 0)
        assert total[Scalar.OCCUPANCY_MAX] <= vc_occupancy_bound(limit, 2, 2, 3, 5, 6, 2)


def test_the_bound_of_the_specification():
    """256 switches of degree 6 and 8, 4 hosts, 4 VCs, packets of 33 flits, header 34, injection 8."""
    assert [vc_occupancy_bound(3 * d, d, 4, 4, 33, 34, 8) for d in (6, 8)] == [66, 80]


def test_heads_go_by_hops_then_age_then_id():
    assert outranks(2, 9, 9, 1, 0, 0) and outranks(1, 0, 9, 1, 1, 0) and outranks(1, 1, 0, 1, 1, 1)


CONFIG = """\
topology: {kind: imase, n: 8, degree: 2, hosts_per_switch: 2}
routing: {kind: deflection}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.1]
switching: {mode: deflection, %s}
"""


@pytest.mark.parametrize(("keys", "key"), [
    ("rule: vc, hold_packets: 8", "hold_packets"), ("rule: frame, hold_packets: 8", "hold_packets"),
    ("rule: vc, slotted: true", "slotted"), ("rule: frame, slotted: true", "slotted"),
    ("share: flit", "share"), ("rule: frame, share: packet", "share"), ("reserve: 0", "reserve"),
    ("rule: frame, reserve: 2", "reserve"), ("rule: vc, vcs: 1", "vcs"), ("rule: frame, vcs: 1", "vcs"),
    ("rule: vc, vcs: 3, reserve: 6", "reserve"), ("rule: vc, reserve: -1", "reserve"), ("rule: slot", "rule"),
])  # fmt: skip
def test_wrong_combinations_name_the_key(tmp_path, keys, key):
    (tmp_path / "c.yaml").write_text(CONFIG % keys)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "c.yaml")
    assert all(f"c.yaml:5: switching.{key}" in str(error) for error in caught.value.errors)


def test_channels_must_be_alike(tmp_path):
    text = CONFIG % "rule: vc"
    graph = 'topology: {kind: file, format: anynet, text: "router 0 node 0 router 1 3\\nrouter 1 node 1 router 0 5"}'
    (tmp_path / "c.yaml").write_text(text.replace(text.splitlines()[0], graph))
    with pytest.raises(ConfigError, match="rule vc needs channels that are all alike"):
        read(tmp_path / "c.yaml")


@pytest.mark.parametrize("keys", ["rule: vc", "rule: frame"])
def test_failures_during_the_run_are_for_rule_pool(tmp_path, keys):
    events = "timeline: [{at_tick: 10, fail: {links: [[0, 1]]}}]\n"
    (tmp_path / "c.yaml").write_text((CONFIG % keys).replace("imase, n: 8, degree: 2", "hypercube, dim: 3") + events)
    with pytest.raises(ConfigError, match=r"timeline.*needs switching\.rule: pool"):
        read(tmp_path / "c.yaml")


@pytest.mark.parametrize("keys", ["rule: vc, share: flit, reserve: 1", "rule: vc", "rule: frame, vcs: 3"])
def test_the_resolved_configuration_gives_the_same_scenario(tmp_path, keys):
    (tmp_path / "c.yaml").write_text(CONFIG % keys)
    (case,) = read(tmp_path / "c.yaml").cases
    again = (CONFIG % "").split("switching:")[0] + f"switching: {json.dumps(case.resolved['switching'])}\n"
    (tmp_path / "d.yaml").write_text(again)
    (same,) = read(tmp_path / "d.yaml").cases
    assert same.scenario.content_hash == case.scenario.content_hash


def test_rules_have_different_hashes():
    topology = build("imase", n=8, degree=2, hosts=2)
    rules = [{"rule": "pool"}, *RULES, {**PACKET, "reserve": 0}]
    assert len({hot(topology, 4, rule).content_hash for rule in rules}) == len(rules)


def test_single_packets_are_followed_under_rule_pool():
    case = hot(build("imase", n=8, degree=2, hosts=2), 4, PACKET)
    with pytest.raises(ValueError, match=r"switching\.rule = 'vc'.*'pool' only"):
        packet_watch("compiled", case.switching)
    with pytest.raises(ValueError, match=r"switching\.rule = 'vc'.*'pool' only"):
        record_all_packets(case, 0.3, 1, 50)


@pytest.mark.parametrize("rule", RULES, ids=["packet", "flit", "frame"])
def test_one_thread_runs_every_rule(rule):
    case = hot(build("imase", n=8, degree=2, hosts=2), 4, rule)
    assert "mode deflection is single-threaded" in single_thread_reason("compiled", case)


@pytest.mark.parametrize("keys", ["rule: pool", "rule: vc, vcs: 3, share: flit", "rule: frame, vcs: 3"])
def test_a_budget_tries_no_keys_that_have_no_effect(tmp_path, keys):
    (tmp_path / "c.yaml").write_text(CONFIG % keys)
    [budget] = read(tmp_path / "c.yaml", experiment="budget").budgets
    for name in ("buffers", "speedup", "oldest"):
        assert "without effect on this switch" in budget.changes[name].note
    assert budget.changes["vcs"].case is not None and budget.levels["switch"].case is not None


@pytest.mark.long
@pytest.mark.parametrize("keys", ["rule: vc, vcs: 3, share: flit", "rule: frame, vcs: 3"])
def test_the_saturation_point_is_what_overload_accepts(tmp_path, capsys, keys):
    """At load 1 the network accepts what it saturates at, or less where deflections cost it channels."""
    text = (CONFIG % keys).replace("loads: [0.1]", "seeds: [1]\nmeasure: {warmup: 300, ticks: 2000, ci: null}")
    (tmp_path / "c.yaml").write_text(f"name: s\nexperiment: saturation\n{text}")
    assert main(["run", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    with (tmp_path / "out" / "saturation.csv").open() as file:
        [row] = csv.DictReader(file)
    (case,) = read(tmp_path / "c.yaml").cases
    run = start("compiled", case.scenario, 1.0, 1)
    run.advance(3000)
    accepted = run.scalars()[Scalar.DELIVERED_FLITS] / 3000 / case.scenario.topology.hosts
    assert float(row["saturation"]) > 0.25 and 0.75 * float(row["saturation"]) < accepted < 1.1 * float(
        row["saturation"]
    )
