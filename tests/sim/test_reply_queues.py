# SPDX-License-Identifier: Apache-2.0
"""Limits of the replies that a host owes: closed forms, deadlocks of requests and replies, and their certificate."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import make
from flitlab.models.reply_queues import reply_cycle
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import ClassCounter
from flitlab.sim.engines.start import start
from tests.scenarios import build, line, reference, scenario, topologies
from tests.sim.test_classes import LOADS, MANY, PAIR, agree, carrying, plain_vct, with_classes

DELAY = 7


def closed_loop(mode: str, queue: int, flits: int = 3, request_flits: int = 2, **keys) -> Scenario:
    """A host sends requests to another without end, which owes at most ``queue`` replies of ``flits`` flits."""
    keys = {"buffer_flits": 24, **keys} | ({"mode": mode} if mode == "wormhole" else {})
    case = scenario(PAIR, source=Source(flits=(max(3, flits),)), vcs=4, **keys)
    request = {"kind": "hotspot", "hosts": [1], "fraction": 1, "share": 1.5, "vcs": [0, 1]}
    request["packet_flits"] = request_flits
    request["reply"] = {"class": "data", "packet_flits": flits, "delay_ticks": DELAY, "queue": queue}
    return carrying(case, {"name": "read", **request}, {"name": "data", "vcs": [2, 3], "priority": 1})


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
@pytest.mark.parametrize("queue", [1, 2])
def test_a_host_receives_the_next_request_when_a_reply_has_left(engine_name, mode, queue):
    """A request granted at g is delivered at g + L - 1 + switch + ejection, its reply created the delay later, sent at
    once, and gone after R ticks: ``queue`` requests in as many ticks.
    """
    case = closed_loop(mode, queue)
    loop = 2 - 1 + case.switching.switch + case.switching.ejection + DELAY + 3
    run = start(engine_name, case, 1.0, 3)
    counted = []
    for tick in (20 * loop, 120 * loop):
        run.advance(tick)
        counted.append(run.snapshot().classes[0, ClassCounter.DELIVERED_PACKETS])
    assert counted[1] - counted[0] == 100 * queue


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_a_host_never_owes_more_replies(mode):
    """Every request that was granted the channel to a host, and whose reply has not left, counts."""
    run, most = reference(closed_loop(mode, 2), 1.0, 3), 0
    for tick in range(1, 300):
        run.advance(tick)
        most = max(most, *run.replies.outstanding.values(), 0)
        assert most <= 2
    assert most == 2


@st.composite
def plain_wormhole(draw) -> Scenario:
    """Wormhole switching in one variant of the kernel."""
    return scenario(
        draw(topologies().filter(lambda topology: not topology.has_delays)), routing={"kind": "minimal"},
        traffic={"kind": "uniform"}, source=Source(flits=(1, 4)), allow_deadlock=True, mode="wormhole",
        vcs=draw(st.integers(1, 5)), buffer_flits=draw(st.integers(1, 5)), header=draw(st.integers(1, 3)),
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("cases", [plain_vct(), plain_wormhole()], ids=["vct", "wormhole"])
def test_engines_agree(cases):
    """Replies with and without limits, and with those that a shared VC deadlocks."""

    @given(with_classes(cases), LOADS, st.integers(0, 2**40))
    @settings(MANY, max_examples=60)
    def check(case, load, seed):
        agree(case, load, seed)

    check()


def mutual(mode: str, shared: bool) -> Scenario:
    """Requests and replies of long packets in both directions over a row of three switches, one VC or two."""
    keys = {"mode": mode, "buffer_flits": 2} if mode == "wormhole" else {"buffer_flits": 4}
    case = scenario(line(3), source=Source(flits=(4,)), vcs=2, **keys)
    one = {"kind": "uniform", "packet_flits": 4, "share": 3.0, "vcs": [0, 0]}
    one["reply"] = {"class": "data", "packet_flits": 4, "queue": 1}
    return carrying(case, {"name": "read", **one}, {"name": "data", "vcs": [0, 0] if shared else [1, 1]})


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_requests_and_replies_on_one_vc_deadlock(engine_name, mode):
    """With VCs of their own replies drain, and so do requests."""
    moved = {}
    for shared in (True, False):
        run = start(engine_name, mutual(mode, shared), 1.0, 1)
        run.advance(3000)
        before = run.snapshot().classes[1, ClassCounter.DELIVERED_PACKETS]
        run.advance(4000)
        moved[shared] = run.snapshot().classes[1, ClassCounter.DELIVERED_PACKETS] - before
        assert run.deadlocked() == shared
    assert moved[True] == 0 < moved[False]


def cycle(topology: Topology, *listed, vcs: int = 4):
    return reply_cycle(topology, make("traffic", kind="classes", classes=list(listed)).build(topology).classes, vcs)


def read_class(name: str, reply: str, **keys) -> dict:
    limit = {"class": reply, "queue": 2}
    return {"name": name, "kind": "uniform", "reply": limit, **keys}


def test_the_cycle_names_classes_channels_and_vcs():
    mesh = build("mesh", dims=[2, 2])
    number, text = cycle(mesh, read_class("request", "reply"), {"name": "reply"})
    assert number == 0
    assert text == "(request, 0->1, VC 0) waits for (reply, 1->0, VC 0) waits for (request, 0->1, VC 0)"
    _, text = cycle(mesh, read_class("request", "reply", vcs=[0, 2]), {"name": "reply", "vcs": [2, 3]})
    assert "(request, 0->1, VC 2) waits for (reply, 1->0, VC 2)" in text


def test_disjoint_vcs_or_subnets_have_no_cycle():
    mesh = build("mesh", dims=[2, 2])
    assert cycle(mesh, read_class("a", "b", vcs=[0, 1]), {"name": "b", "vcs": [2, 3]}) is None
    assert cycle(mesh, read_class("a", "b", subnet=0), {"name": "b", "subnet": 1}) is None
    unlimited = read_class("a", "b")
    unlimited["reply"] = {"class": "b"}
    assert cycle(mesh, unlimited, {"name": "b"}) is None


def test_classes_are_joined_by_a_third_or_in_a_ring():
    mesh = build("mesh", dims=[2, 2])
    apart = read_class("a", "b", vcs=[0, 1]), {"name": "b", "vcs": [2, 3]}
    assert cycle(mesh, *apart, {"name": "bulk", "kind": "uniform", "vcs": [1, 2]}) is not None
    assert cycle(mesh, *apart, read_class("c", "d", vcs=[2, 2]), {"name": "d", "vcs": [3, 3]}) is not None
    _, text = cycle(mesh, *apart, read_class("c", "d", vcs=[2, 3]), {"name": "d", "vcs": [0, 1]})
    assert text.split(" waits for ") == [
        "(a, 0->1, VC 0)", "(b, 1->0, VC 2)", "(c, 1->0, VC 2)", "(d, 0->1, VC 0)", "(a, 0->1, VC 0)"
    ]  # fmt: skip


def test_hosts_of_one_switch_wait_for_one_another():
    _, text = cycle(Topology.from_links("one", 1, []).with_hosts(3), read_class("a", "b"), {"name": "b"})
    assert "(a, host 0->0, VC 0)" in text


CONFIG = """
topology: {kind: mesh, dims: [3, 3]}
routing: {kind: dor}
switching: {vcs: 2}
traffic:
  classes:
    - {name: request, kind: uniform, reply: {class: reply, queue: 4}}
    - {name: reply}
loads: [0.2]
measure: {warmup: 100, ticks: 400, ci: null}
ceilings: []
engine: reference
"""


def test_a_configuration_is_refused_or_certified(tmp_path):
    file = tmp_path / "replies.yaml"
    file.write_text(CONFIG)
    with pytest.raises(ConfigError, match=r"reply\.queue.*may deadlock: \(request, 0->1, VC 0\) waits for \(reply"):
        read(file)
    case = read(file, sets=["switching.allow_deadlock=true"]).cases[0]
    assert case.scenario.switching.may_deadlock and "may deadlock: (request" in case.certificate
    apart = "traffic.classes=[{name: request, kind: uniform, vcs: [0, 0], reply: {class: reply, queue: 4}}, \
{name: reply, vcs: [1, 1]}]"
    case = read(file, sets=[apart]).cases[0]
    assert not case.scenario.switching.may_deadlock and "share no virtual channel" in case.certificate
    study = read(file, sets=["switching={mode: ideal}"])
    assert any("is not used" in str(warning) for warning in study.warnings)
    with pytest.raises(ConfigError, match="needs a class that names its subnet, and request draws one"):
        read(file, sets=["switching.subnets=2"])


def test_the_limit_changes_the_identity_of_a_scenario():
    one, two = closed_loop("vct", 1), closed_loop("vct", 2)
    assert one.content_hash != two.content_hash
    assert replace(one).content_hash == one.content_hash
