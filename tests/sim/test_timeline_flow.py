# SPDX-License-Identifier: Apache-2.0
"""Networks that change while fluids flow: engines alike, closed forms, fairness, and how a run ends that cannot."""

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.config.timeline import epochs_of
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import ProgramMeasure, UnfinishedError, measure_program
from flitlab.sim.report.folder.frames import read_csv
from tests.scenarios import line
from tests.sim.test_flow import (
    assert_max_min_fair,
    capacity_of,
    delivered,
    flows,
    latency,
    message_flows,
    messages,
    walks,
)
from tests.sim.test_timeline_datagram import events_of
from tests.sim.test_timeline_vct import ONE_FIGURE

SPEC = make("routing", kind="ecmp", ways=2, routed="source", per="flow")
RING = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
NEVER = float("inf")


def happening(case: Scenario, events: list[dict], spec=None) -> Scenario:
    """A scenario to whose network this happens; its routing is found anew by ``spec``."""
    parsed = [Event.model_validate(event) for event in events]
    found = make_timeline(case.topology, parsed, spec or SPEC, case.routes, Fraction(1))
    case.switching.check_timeline(found, case.routes)
    return replace(case, timeline=found)


def sent(topology: Topology, sends, spec=SPEC) -> Scenario:
    """Messages (source, destination, bytes) from tick 0, rank r on host r; a flit has 8 bytes."""
    return flows(topology, message_flows(topology.hosts, sends), routing=spec.model_dump())


def test_a_message_whose_link_slows_by_half_at_half_time_takes_half_as_long_again(engine_name):
    case = sent(line(2), [(0, 1, 8000)])
    slow = happening(case, [{"at_tick": 500, "slow": {"links": [[0, 1]]}, "factor": 0.5}])
    assert delivered(case, engine_name) == [latency(1) + 1000 - 1]
    assert delivered(slow, engine_name) == [latency(1) + 1500 - 1]


def test_a_message_stalls_until_its_link_returns(engine_name):
    fail = {"at_tick": 300, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    case = happening(sent(line(2), [(0, 1, 8000)]), [fail, {"at_tick": 1000, "restore": {"links": [[0, 1]]}}])
    assert delivered(case, engine_name) == [latency(1) + 1000 + 700 - 1]


def test_what_is_left_of_a_message_goes_another_way_after_the_reroute(engine_name):
    """Around the ring it is 3 channels in place of 1; 200 ticks pass in which nothing goes."""
    case = sent(RING, [(0, 1, 8000)])
    lost = happening(case, [{"at_tick": 300, "fail": {"links": [[0, 1]]}, "reroute_after": 200}])
    assert delivered(lost, engine_name) == [latency(3) + 1000 + 200 - 1]
    run = start(engine_name, lost)
    run.advance(4000)
    carried = dict(zip(zip(RING.src.tolist(), RING.dst.tolist(), strict=True), run.carried(), strict=True))
    assert carried[0, 1] == pytest.approx(300) and carried[3, 2] == pytest.approx(700)
    assert run.progress().sum() == pytest.approx(1000)


def test_what_begins_before_the_routing_learns_takes_the_old_way_and_waits(engine_name):
    fail = {"at_tick": 0, "fail": {"links": [[0, 1]]}, "reroute_after": 100}
    ends = delivered(happening(sent(RING, [(0, 1, 80), (1, 2, 80)]), [fail]), engine_name)
    assert ends.tolist() == [100 + latency(3) + 10 - 1, latency(1) + 10 - 1]


def test_others_go_faster_while_a_message_stalls(engine_name):
    """Two messages of host 0 share its channel; while the link of the first is away the second has all of it."""
    fail = {"at_tick": 200, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    events = [fail, {"at_tick": 300, "restore": {"links": [[0, 1]]}}]
    ends = delivered(happening(sent(RING, [(0, 1, 8000), (0, 3, 8000)]), events), engine_name)
    # of 1,000 flits the second has 100 + 100 + (1000 - 200) at 1/2, then the first the rest of its own alone
    assert ends.tolist() == [latency(1) + 2000 - 1, latency(1) + 300 + 1600 - 1]


@pytest.mark.parametrize("engine", ["compiled", "reference", "both"])
def test_a_run_whose_messages_wait_for_ever_ends_and_counts_them(engine):
    fail = {"at_tick": 100, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    case = happening(sent(line(2, hosts=2), [(0, 2, 8000), (1, 3, 8000), (1, 0, 80)]), [fail])
    with pytest.raises(UnfinishedError, match="2 messages are stalled on failed links"):
        measure_program(start(engine, case), case, 1.0, ProgramMeasure())


@pytest.mark.long
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_both_engines_do_the_same(number):
    rng = Random(number)
    kinds = [{"kind": "torus", "dims": [3, 3]}, {"kind": "rrg", "n": 8, "degree": 3}, {"kind": "hypercube", "dim": 3}]
    topology = make("topology", hosts_per_switch=rng.randint(1, 2), **rng.choice(kinds)).build()
    specs = [
        {"kind": "minimal"}, {"kind": "ksp", "k": 3}, {"kind": "minimal", "select": "hash"}, {"kind": "valiant"},
        {"kind": "ecmp", "ways": 2, "routed": "source", "per": "flow"},
    ]  # fmt: skip
    spec = make("routing", **rng.choice(specs))
    what = walks(np.random.default_rng(number), topology.hosts, rng.randint(1, 40), rng.randint(1, 6), 4000)
    how = messages(rendezvous=rng.choice([0, 500, 1 << 40]))
    case = flows(topology, what, how, spec.model_dump())
    if rng.random() < 0.3:
        case = replace(case, switching=replace(case.switching, half_duplex=True))
    kept: list[dict] = []
    for event in events_of(rng, topology, 4000):
        with suppress(SpecError):
            happening(case, [*kept, event], spec)
            kept.append(event)
    case = happening(case, kept, spec)
    runs = [start(engine, case) for engine in ("compiled", "reference")]
    for tick in (*sorted(rng.sample(range(1, 5000), 6)), 1 << 40):
        for run in runs:
            run.advance(tick)
        ours, theirs = (run.execution() for run in runs)
        for name in ("ready", "start", "finish", "delivered", "cause"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        assert runs[0].program_status()[1:] == runs[1].program_status()[1:]
        for counted in ("progress", "carried"):
            one, other = (getattr(run, counted)() for run in runs)
            assert np.allclose(one, other, rtol=1e-6, atol=1e-6)
        assert_fair(case, runs[0], tick)
    assert runs[0].done() == (not runs[0].program_status().stalled)


def assert_fair(case: Scenario, run, tick: int) -> None:
    """Rates are max-min fair with the capacities that channels have in the tick before, and 0 on those that fail."""
    epoch = case.timeline.epoch_at(tick - 1)
    capacity = capacity_of(case.topology)
    capacity[: case.topology.channels] *= epoch.rate * epoch.works(case.topology)
    if case.switching.half_duplex:
        first = np.minimum(np.arange(case.topology.channels), case.topology.reverse)
        capacity[: case.topology.channels] = capacity[: case.topology.channels][first]
    assert_max_min_fair(run.flowing(), capacity)


PROGRAM = """
experiment: application
topology: {kind: fat_tree, k: 4}
routing: {kind: ecmp, ways: 8, per: flow}
switching: {mode: flow, flit_ns: 2}
application: {kind: all_to_all, size_bytes: 64KiB}
timeline:
- {at_us: 40, fail: {switches: [19]}, reroute_after: 20}
- {at_us: 90, restore: {switches: [19]}}
ceilings: [mcf]
"""


def run(tmp_path, text: str) -> int:
    (tmp_path / "given.yaml").write_text(text)
    return main(["run", str(tmp_path / "given.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1",
                 *ONE_FIGURE])  # fmt: skip


def test_a_program_has_throughput_over_time_and_ceilings_of_every_epoch(tmp_path):
    assert run(tmp_path, PROGRAM + "engine: both\n") == 0
    rows = read_csv(tmp_path / "run" / "throughput_time.csv")
    starts, ends, got = (np.array([float(row[key]) for row in rows]) for key in ("from_us", "to_us", "host_throughput"))
    assert {40.0, 90.0} <= set(starts) and (starts[1:] == ends[:-1]).all()
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    flits = int(row["messages"]) * 65536 / 32  # all of them have left, at a flit each 2 ns
    assert (got * (ends - starts)).sum() * 1000 / 2 * 16 == pytest.approx(flits)
    (record,) = [json.loads(path.read_text()) for path in (tmp_path / "run" / "points").iterdir()]
    assert {"mcf:epoch_1", "mcf:epoch_2", "mcf:epoch_3"} <= set(record["slack"])
    assert (tmp_path / "run" / "figures" / "throughput_time.png").exists()


def test_more_than_the_certificate_of_an_epoch_allows_fails_the_run(tmp_path, monkeypatch):
    def wrong(timeline, instance):
        first = replace(timeline.epochs[0], rate=timeline.epochs[0].rate / 4)
        return epochs_of(replace(timeline, epochs=(first, *timeline.epochs[1:])), instance)

    monkeypatch.setattr("flitlab.sim.config.case.epochs_of", wrong)
    assert run(tmp_path, PROGRAM) == 3
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    assert "mcf:epoch_1" in row["message"] and "epoch_3" not in row["message"]
