# SPDX-License-Identifier: Apache-2.0
"""Lossless queues on a network that changes: links that slow or fail while they pause others or are paused."""

from math import inf
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.transport.lossless import Lossless, Storm
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount, PauseCount
from tests import long_after
from tests.sim.lossless_cases import ENGINES, ROCE, drawn_queues, rebuilt
from tests.sim.spray_cases import case_of_number
from tests.sim.test_lossless import TREE, agree, mode
from tests.sim.test_spray_changes import LINK, MTU, happening, one_flow

both = pytest.mark.parametrize("engine", [pytest.param("compiled", marks=pytest.mark.long), "reference"])


def line_of(hops: int, packets: int, **keys):
    """A RoCE flow along a line of switches with lossless queues."""
    return one_flow({**ROCE, **keys}, packets * (MTU - 64), hops, trim=False, lossless=Lossless())


def ports_of(run):
    """The input ports of a run."""
    return (run.ports if hasattr(run, "ports") else run._state.lossless).ports


@both
def test_a_flow_whose_link_slows_by_half_pauses_its_host_and_takes_twice_as_long_for_the_rest(engine):
    """Of 100 packets 40 have left the middle link when it slows, the last of them in that tick."""
    slow = {"at_tick": MTU + LINK + 40 * MTU, "slow": {"links": [[0, 1]]}, "factor": 0.5}
    run = ENGINES[engine](happening(*line_of(1, 100), [slow]))
    run.advance(2_000_000)
    counters = run.counters()
    assert counters.flow[0, FlowCount.COMPLETE] == 102 * MTU + 3 * LINK + 60 * MTU
    assert counters.pause[2, PauseCount.FRAMES] > 0 and counters.link[:, LinkCount.DROPS].sum() == 0


@both
@pytest.mark.parametrize("failing", [[0, 1], [1, 2]])
def test_a_link_that_fails_forgets_its_pause_and_frees_those_that_it_paused(engine, failing):
    """The last link is slow, so that the one before it and the host are paused when one of both fails."""
    slow = {"at_tick": 1, "slow": {"links": [[1, 2]]}, "factor": 0.1}
    cut, back = {"fail": {"links": [failing]}, "reroute_after": inf}, {"restore": {"links": [failing]}}
    at = 200 * LINK
    case = happening(*line_of(2, 200, timeout_us=100.0), [
        slow, {"at_tick": at, **cut}, {"at_tick": at + 50 * LINK, **back}
    ])  # fmt: skip
    run = ENGINES[engine](case)
    run.advance(at)
    topology, before = case.topology, ports_of(run)
    (paused,) = np.flatnonzero((topology.src == 0) & (topology.dst == 1))
    assert before.paused_at[paused] >= 0 and before.paused_at[topology.channels] >= 0
    run.advance(at + 12 * LINK)
    during = run.counters()
    assert (ports_of(run).paused_at < 0).all(), "what was paused goes on, and its packets are dropped"
    assert during.pause[paused, PauseCount.LONGEST] <= at
    assert during.link[:, LinkCount.DROPS].sum() > 0 and not run.deadlock()
    run.advance(at + 2_000 * LINK)
    assert run.ended()
    after = ports_of(run)
    assert not after.charged.any() and not after.is_pausing.any() and (after.paused_at < 0).all()


@pytest.mark.long
def test_a_deadlock_is_none_while_a_link_may_return():
    case = line_of(1, 10)
    back = {"at_tick": 10**7, "slow": {"links": [[0, 1]]}, "factor": 0.5}
    for run in (engine(happening(*case, [back])) for engine in ENGINES.values()):
        run.advance(10**6)
        assert run.deadlock() == ()


def events_of(rng: Random, topology) -> list[dict]:
    """One to three links slow down or fail, and some return."""
    events, tick = [], 0
    links = sorted({tuple(sorted(ends)) for ends in zip(topology.src.tolist(), topology.dst.tolist(), strict=True)})
    for link in rng.sample(links, min(len(links), rng.randint(1, 3))):
        tick += rng.choice([1, 500, 20_000, 60_000])
        if rng.random() < 0.5:
            events.append({"at_tick": tick, "slow": {"links": [link]}, "factor": rng.choice([0.1, 0.5])})
        else:
            events.append({"at_tick": tick, "fail": {"links": [link]}, "reroute_after": rng.choice([inf, inf, 3_000])})
        if rng.random() < 0.7:
            tick += rng.choice([1, 3_000, 50_000])
            events.append({"at_tick": tick, "restore": {"links": [link]}})
    return events


@pytest.mark.parametrize("number", long_after(0, range(120)))
def test_engines_agree_on_lossless_queues_of_a_network_that_changes(number):
    case, routing, routes = case_of_number(number)
    if not case.topology.channels:
        return
    rng = Random(number)
    transport = {**ROCE, "timeout_us": rng.choice([20.0, 100.0]), "recovery": rng.choice(["go_back_n", "selective"])}
    queues = drawn_queues(rng)
    if number % 4 == 3:
        queues = Lossless(buffer_bytes=10**6, headroom_bytes=rng.choice([None, 5_000]), watchdog_us=queues.watchdog_us)
    try:
        built = rebuilt(case, routes, transport, queues, number)
    except SpecError:
        return  # reserves and headrooms do not fit
    events = events_of(rng, case.topology)
    try:
        changed = happening(built, routes, routing, events)
    except SpecError:  # hosts would be cut off
        changed = happening(built, routes, routing, [event | {"reroute_after": inf} for event in events])
    agree(changed, (1_000, 22_000, 80_000, 500_000))


def test_pauses_of_a_storm_stay_beside_events():
    flow = one_flow(ROCE, 10_000, 1, trim=False, lossless=Lossless(pfc_storm=Storm(1, 3.0, 5.0)))
    case = happening(*flow, [{"at_tick": 5 * LINK, "slow": {"links": [[0, 1]]}, "factor": 0.5}])
    assert [(change.tick, change.storm is not None) for change in case.changes] == [
        (4 * LINK, True), (5 * LINK, False), (6 * LINK, True)
    ]  # fmt: skip


def test_marks_of_a_slow_link_are_those_that_the_transport_asks_for():
    case = one_flow({"kind": "dcqcn"}, 10_000, 1, trim=False, lossless=Lossless())
    (change,) = happening(*case, [{"at_tick": 5, "slow": {"links": [[0, 1]]}, "factor": 0.5}]).changes
    assert set(change.settings.low.tolist()) == {5_000} and set(change.settings.high.tolist()) == {200_000}
    assert case[0].ports.span(change.settings.low, change.settings.high).tolist() == 2 * [19_500_000]
    case = one_flow(ROCE, 10_000, 1, trim=False, lossless=Lossless())
    (change,) = happening(*case, [{"at_tick": 5, "slow": {"links": [[0, 1]]}, "factor": 0.5}]).changes
    assert (change.settings.low > 10**15).all()


def test_routes_after_a_failure_need_a_certificate_too():
    """The routing of the surviving network is that of a ring on which packets take two channels."""
    built, _ = mode({"kind": "ecmp"}, TREE)
    routes = make("routing", kind="ecmp").build(TREE)
    torus = make("topology", kind="torus", dims=[5], hosts_per_switch=1).build()
    timeline = SimpleNamespace(
        reroutes=(5,), epoch_at=lambda tick: None, surviving=lambda epoch: SimpleNamespace(topology=torus),
        routes=lambda remaining, routes: make("routing", kind="dor").build(torus),
    )  # fmt: skip
    with pytest.raises(SpecError, match=r"may deadlock: \(0->1") as error:
        built.check_timeline(timeline, routes)
    assert error.value.key == "timeline"
    fail = Event.model_validate({"at_tick": 5, "fail": {"links": [[8, 16]]}})
    built.check_timeline(make_timeline(TREE, [fail], make("routing", kind="ecmp"), routes, 0.08), routes)
