# SPDX-License-Identifier: Apache-2.0
"""A mode of one's own with channels that fail, in tests/toys/relay: the procedure of faults is ours."""

import pytest

from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from flitlab.sim.report.folder.frames import read_csv
from tests.sim.test_timeline_vct import NEVER, RING, happening
from tests.toys.relay import Relay

CONFIG = """\
plugins: [tests.toys.relay]
topology: {kind: torus, dims: [4, 4]}
routing: {kind: minimal}
switching: {mode: relay, link: 2}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.4]
measure: {warmup: 0, ticks: 2000, ci: null}
timeline:
  - {at_tick: 500, fail: {links: [[0, 1]]}, reroute_after: 100}
  - {at_tick: 1200, restore: {links: [[0, 1]]}, reroute_after: 0}
ceilings: []
outputs: {figures: [], html: false}
"""


def scenario(topology, flits=(4,), **traffic) -> Scenario:
    routes = make("routing", kind="minimal").build(topology)
    demand = make("traffic", **(traffic or {"kind": "uniform"})).build(topology)
    source = Source(flits=flits, shares=(1.0,) * len(flits))
    return Scenario(Instance(topology, demand, routes), Relay(2), source)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_packets_wait_for_a_failed_channel_and_go_round_when_the_routing_learns(engine):
    event = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 100}
    run = start(engine, happening(scenario(RING, kind="shift", by=1), [event]), 0.2, 1, True)
    run.advance(4000)
    log = run.log()
    of_first = log.identity % RING.hosts == 0
    assert set(log.hops[of_first & (log.delivered < 1000)]) == {1}
    assert not (of_first & (log.delivered > 1020) & (log.delivered < 1100)).any()
    assert set(log.hops[of_first & (log.delivered > 1100)]) == {3}
    assert run.scalars()[Scalar.DROPPED_PACKETS] <= 4


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_without_a_reroute_packets_wait_until_the_link_returns(engine):
    down = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    up = {"at_tick": 2000, "restore": {"links": [[0, 1]]}, "reroute_after": NEVER}
    run = start(engine, happening(scenario(RING, kind="shift", by=1), [down, up]), 0.9, 1, True)
    run.advance(4000)
    log = run.log()
    of_first = log.identity % RING.hosts == 0
    assert not (of_first & (log.delivered > 1020) & (log.delivered < 2000)).any()
    assert set(log.hops) == {1} and (of_first & (log.delivered > 2000)).sum() > 400
    assert 1 <= run.scalars()[Scalar.DROPPED_PACKETS] <= 4


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_uncontended_packet_takes_the_closed_form(engine):
    case = scenario(RING, kind="shift", by=1)
    row = measure(engine, case, 0.01, 1, Measure(0, 4000, None)).row
    assert case.zero_load_latency >= row["latency_p50"] == (1 + 2) * (4 + 2) - 1
    run = start(engine, case, 0.1, 1)
    run.advance(500)
    assert run.scalars()[Scalar.HOPS] > 0


def test_it_runs_from_a_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.yaml").write_text(CONFIG)
    assert main(["toy.yaml", "--engine", "both", "--jobs", "1", "--out", "run"]) == 0
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    assert row["status"] == "ok" and int(row["lost_packets"]) > 0
