# SPDX-License-Identifier: Apache-2.0
"""Networks that change while packets are cut through: both engines alike, nothing lost uncounted, what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.timeline import epochs_of
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.report.folder.frames import read_csv
from tests.scenarios import scenario

NEVER = float("inf")
RING = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)


def happening(case: Scenario, events: list[dict], routing: dict | None = None) -> Scenario:
    """A scenario to whose network this happens."""
    parsed = [Event.model_validate(event) for event in events]
    spec = make("routing", **(routing or {"kind": "minimal"}))
    found = make_timeline(case.topology, parsed, spec, case.routes, None)
    case.switching.check_timeline(found, case.routes)
    return replace(case, timeline=found)


def assert_same_and_complete(case: Scenario, load: float, seed: int) -> Ints:
    """Assert that both engines do the same, and that every packet is somewhere; the scalar counters in the end."""
    run = start("both", case, load, seed)
    for tick in (150, 300, 601, 1200):
        run.advance(tick)
        found = run.snapshot()
        counts = found.scalars
        under_way = counts[Scalar.SENT_PACKETS] - counts[Scalar.DELIVERED_PACKETS] - counts[Scalar.DROPPED_PACKETS]
        assert under_way >= 0 and (found.present.sources >= 0).all()
        assert counts[Scalar.CREATED_PACKETS] >= counts[Scalar.SENT_PACKETS]
        flits = found.delivered.sources.sum() + found.present.sources.sum() + counts[Scalar.DROPPED_FLITS]
        assert flits + (run.backlog().sum() - found.present.sources.sum()) == found.created.sum()
    return counts


def ring(traffic: dict | None = None, **keys) -> Scenario:
    """Four switches in a ring, of which every host sends packets of 4 flits to the next one."""
    return scenario(RING, traffic=traffic or {"kind": "shift", "by": 1}, **keys)


def delivered(run) -> int:
    """Packets of host 0 that have been delivered."""
    return int((run.log().identity % RING.hosts == 0).sum())


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_is_on_a_link_is_lost_and_the_rest_waits_until_it_returns(engine):
    """At full load a packet of 4 flits is granted every 4 ticks, and its head takes 5 to come over: 1 or 2 are lost."""
    events = [{"at_tick": 2000, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}]
    run = start(engine, happening(ring(), [*events, {"at_tick": 3000, "restore": {"links": [[0, 1]]}}]), 1.0, 1, True)
    got = []
    for tick in (1000, 2000, 2020, 3000, 4000):
        run.advance(tick)
        got.append(delivered(run))
    assert run.scalars()[Scalar.DROPPED_PACKETS] in (1, 2)
    assert got[1] - got[0] == 250  # a flit a tick
    assert got[3] == got[2]  # but for those whose head was over the link
    assert 1000 - 5 * 12 <= 4 * (got[4] - got[3]) <= 1000
    run.advance(9000)  # after the restore the routing learns, and hosts wait for the network to be empty once
    counts = run.scalars()
    assert counts[Scalar.DROPPED_PACKETS] in (1, 2)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_hosts_send_by_the_new_routes_once_the_network_is_empty(engine):
    event = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 100}
    run = start(engine, happening(ring(vcs=4), [event]), 0.5, 1, True)
    run.advance(1100)
    before, tick = run.scalars(), 1100
    while True:
        tick += 1
        run.advance(tick)
        now = run.scalars()
        if now[Scalar.SENT_PACKETS] > before[Scalar.SENT_PACKETS]:
            break
        last = now
    assert last[Scalar.SENT_PACKETS] == last[Scalar.DELIVERED_PACKETS] + last[Scalar.DROPPED_PACKETS]
    assert last[Scalar.DROPPED_PACKETS] > before[Scalar.DROPPED_PACKETS]  # those that waited for the link
    run.advance(tick + 2000)
    log = run.log()
    of_first = log.identity % RING.hosts == 0
    assert set(log.hops[of_first & (log.delivered < tick)]) == {1}
    assert set(log.hops[of_first & (log.delivered > tick)]) == {3}
    assert run.scalars()[Scalar.DROPPED_PACKETS] == last[Scalar.DROPPED_PACKETS]


@pytest.mark.parametrize("back", [0, 50])
def test_a_reroute_is_none_when_the_link_has_returned_before_the_routing_learns(back):
    cut = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 2 * back}
    up = {"at_tick": 1000 + back, "restore": {"links": [[0, 1]]}, "reroute_after": 2 * back}
    assert happening(scenario(RING), [cut, up]).timeline.reroutes == ()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_link_that_fails_and_returns_within_a_tick_delays_no_packet(engine):
    """Such a link has not failed: every packet arrives when it would have without events."""
    events = [{"at_tick": 1000, what: {"links": [[0, 1]]}} for what in ("fail", "restore")]
    runs = [start(engine, case, 0.5, 1, True) for case in (scenario(RING), happening(scenario(RING), events))]
    for run in runs:
        run.advance(1500)
    undisturbed, other = (run.log() for run in runs)
    assert (undisturbed.identity == other.identity).all() and (undisturbed.delivered == other.delivered).all()


def square() -> Scenario:
    """All of four switches joined, with one VC: no packet takes two channels."""
    topology = Topology.from_links("square", 4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]).with_hosts(1)
    return scenario(topology, vcs=1)


DIAGONALS = {"at_tick": 100, "fail": {"links": [[0, 2], [1, 3]]}}


def test_what_has_no_certificate_is_refused():
    problem = "what the routing learns at tick 150 has no certificate .* rising needs"
    with pytest.raises(SpecError, match=problem) as error:
        happening(square(), [DIAGONALS | {"reroute_after": 50}])
    assert error.value.key == "timeline"


def test_a_cycle_of_what_is_left_is_named():
    with pytest.raises(SpecError, match=r"may deadlock: \(\d->\d, VC \*\) waits for"):
        happening(square(), [DIAGONALS], {"kind": "minimal", "vc_policy": "any"})


def test_routes_without_a_certificate_of_their_own_are_refused():
    case = scenario(RING, vcs=1, allow_deadlock=True)
    with pytest.raises(SpecError, match="needs routes with a certificate"):
        happening(case, [{"at_tick": 1, "fail": {"links": [[0, 1]]}}])


SWEEP = """
topology: {kind: torus, dims: [4, 4]}
routing: {kind: minimal}
switching: {mode: vct, vcs: 8}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.3]
measure: {ticks: 3000}
timeline:
- {at_tick: 1000, fail: {links: [[0, 1], [5, 6]]}, reroute_after: 200}
- {at_tick: 2000, restore: {links: [[0, 1], [5, 6]]}}
ceilings: [mcf]
"""


ONE_FIGURE = ("--set", "outputs={figures: [throughput_time], html: false}")


def sweep(tmp_path, text: str = SWEEP) -> int:
    (tmp_path / "given.yaml").write_text(text)
    return main(["run", str(tmp_path / "given.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1", *ONE_FIGURE])


def test_throughput_over_time_is_per_host_of_all_subnets(tmp_path):
    """Both copies of a link of two hosts are never busy: all that is offered arrives, in the unit of the ceilings."""
    text = """
topology: {kind: hypercube, dim: 1}
routing: minimal
switching: {mode: vct, subnets: 2, buffer_flits: 8}
traffic: {kind: shift, by: 1}
loads: [0.4]
measure: {ticks: 4000}
timeline: [{at_tick: 2000, slow: {links: [["0@0", "1@0"]]}, factor: 0.5}]
ceilings: [mcf]
engine: reference
outputs: {figures: []}
"""
    assert sweep(tmp_path, text) == 0
    rows = read_csv(tmp_path / "run" / "throughput_time.csv")
    spans = np.array([int(row["to_tick"]) - int(row["from_tick"]) for row in rows])
    assert spans @ [float(row["host_throughput"]) for row in rows] / 4000 == pytest.approx(0.4, abs=0.02)
    epochs = read_csv(tmp_path / "run" / "epochs.csv")
    mcf = [float(row["host_throughput"]) for row in epochs if row["ceiling"] == "mcf"]
    assert mcf == pytest.approx([2.0, 1.0])  # half of the traffic takes each copy; the slow one carries 1/2


def test_a_point_counts_what_is_lost_and_has_ceilings_of_every_epoch(tmp_path):
    assert sweep(tmp_path) == 0
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    over_time = read_csv(tmp_path / "run" / "throughput_time.csv")
    assert int(row["lost_packets"]) == sum(int(one["lost_packets"]) for one in over_time) > 0
    assert int(row["lost_flits"]) == 4 * int(row["lost_packets"])
    ticks = np.array([[int(one["from_tick"]), int(one["to_tick"])] for one in over_time])
    assert {1000, 2000} <= set(ticks[:, 0]) and (ticks[1:, 0] == ticks[:-1, 1]).all()
    got = np.array([float(one["host_throughput"]) for one in over_time])
    assert (got * np.diff(ticks)[:, 0]).sum() / 3000 == pytest.approx(float(row["accepted"]))
    mcf = [row for row in read_csv(tmp_path / "run" / "epochs.csv") if row["ceiling"] == "mcf"]
    assert [row["from_tick"] for row in mcf] == ["0", "1000", "2000"]
    assert [row["what"] for row in mcf] == ["", "2 links fail", "2 links return"]
    (record,) = [json.loads(path.read_text()) for path in (tmp_path / "run" / "points").iterdir()]
    assert set(record["slack"]) == {"mcf", "mcf:epoch_1", "mcf:epoch_2", "mcf:epoch_3"}
    assert min(record["slack"].values()) > 0
    assert (tmp_path / "run" / "figures" / "throughput_time.png").exists()


def test_more_than_the_certificate_of_an_epoch_allows_fails_the_run(tmp_path, monkeypatch):
    def wrong(timeline, instance):
        slow = replace(timeline.epochs[1], rate=timeline.epochs[1].rate / 8)
        return epochs_of(replace(timeline, epochs=(timeline.epochs[0], slow, timeline.epochs[2])), instance)

    monkeypatch.setattr("flitlab.sim.config.case.epochs_of", wrong)
    assert sweep(tmp_path) == 3
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    assert "mcf:epoch_2" in row["message"] and "epoch_1" not in row["message"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("measure.ticks=1500", "timeline: 2 links return at tick 2000, after the end of the run, 1,500 ticks"),
        ("loads={saturation: {}}", "timeline: is not for a search, which needs a static network"),
        ("timeline[0].at_tick=null", r"timeline\[0\]: an event needs exactly one of at_us and at_tick"),
        ("timeline=[{at_us: 1, fail: {links: 1}}]", r"timeline\[0\].at_us = 1: needs switching.flit_ns"),
        ("switching={mode: vct, vcs: 1, allow_deadlock: true}", "timeline: needs routes with a certificate"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    (tmp_path / "given.yaml").write_text(SWEEP)
    with pytest.raises(ConfigError, match=expected):
        read(tmp_path / "given.yaml", [change])
