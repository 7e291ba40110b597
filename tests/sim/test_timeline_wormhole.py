# SPDX-License-Identifier: Apache-2.0
"""Networks that change under wormhole switching: both engines alike, whole packets cut, every credit given back."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import read
from flitlab.sim.engines.base import DELIVERED_PACKETS, DROPPED_FLITS, DROPPED_PACKETS, SENT_PACKETS
from flitlab.sim.engines.compiled.wormhole.state import UNLIMITED_CREDITS
from flitlab.sim.engines.start import start
from flitlab.sim.report.folder.frames import read_csv
from tests.scenarios import TIMES, build, line, scenario, some_delays
from tests.sim.test_timeline_vct import (
    NEVER,
    RING,
    SWEEP,
    assert_same_and_complete,
    delivered,
    drawn_events,
    happening,
    possible,
    ring,
    square,
)
from tests.sim.test_timeline_vct import sweep as run_sweep

WORM = SWEEP.replace("{mode: vct, vcs: 8}", "{mode: wormhole, vcs: 8, buffer_flits: 3}").replace(
    "[4, 4]}", "[4, 4], hosts_per_switch: 2}"
)
ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])


def drawn(number: int) -> Scenario:
    """A network, a routing, packets, buffers and up to five events that a number says."""
    rng = Random(number)
    hosts = rng.choice([1, 2, 3])
    topologies = [
        lambda: build("torus", hosts=hosts, dims=[3, 3]), lambda: build("rrg", hosts=hosts, n=8, degree=3, seed=3),
        lambda: build("fat_tree", hosts=2, k=4), lambda: build("hypercube", hosts=hosts, dim=3),
        lambda: build("imase", hosts=hosts, n=9, degree=3),
    ]  # fmt: skip
    topology = some_delays(rng.choice(topologies)(), number)
    routing = rng.choice([
        {"kind": "minimal"}, {"kind": "minimal", "select": "adaptive"}, {"kind": "ksp", "k": 3}, {"kind": "valiant"},
        {"kind": "ugal"}, {"kind": "updown"}, {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"},
        {"kind": "minimal", "vc_policy": "layered"}, {"kind": "minimal", "vc_policy": "hop"},
    ])  # fmt: skip
    if topology.directed:
        routing = {"kind": "minimal", "select": rng.choice(["random", "adaptive"])}
    flits = rng.choice([(1,), (4,), (2, 7), (8,)])
    least = max(flits) if routing.get("vc_policy") == "escape" else 1
    keys = {"buffer_flits": max(least, rng.choice([1, 2, 3, 9, 20])), "iterations": rng.choice([1, 2])}
    if rng.random() < 0.3:
        keys |= {"shared_input": True}
    if number % 2:
        keys |= {"own_credit_path": True}
    if rng.random() < 0.6:
        keys |= {"header": rng.choice([0, 1, 2]), "switch": 1, "link": 1, "credit": rng.choice([1, 4])}
    source = Source(flits=flits, shares=(1.0,) * len(flits))
    case = with_vcs_enough(topology, rng.choice([1, 2, 3, 5]), routing=routing, source=source, **keys)
    return possible(case, drawn_events(rng, topology), routing)


def with_vcs_enough(topology: Topology, vcs: int, **keys) -> Scenario:
    """A scenario with no fewer VCs than given, as many as its routes need for a certificate."""
    try:
        return scenario(topology, mode="wormhole", vcs=vcs, **keys)
    except SpecError:
        return with_vcs_enough(topology, vcs + 2, **keys)


LOADS = st.sampled_from([0.05, 0.3, 0.7])


def runs(examples: int) -> settings:
    """So many examples, the same every time."""
    return settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@given(st.integers(0, 10**6), LOADS, st.integers(0, 2**40))
@runs(10)
def test_both_engines_do_the_same_and_every_packet_is_somewhere(number, load, seed):
    assert_same_and_complete(drawn(number), load, seed)


@pytest.mark.long
@given(st.integers(0, 10**6), LOADS, st.integers(0, 2**40))
@runs(25)
def test_both_engines_do_the_same_on_many_networks(number, load, seed):
    assert_same_and_complete(drawn(number), load, seed)


def assert_credits_complete(run) -> None:
    """Assert that credits, flits in buffers and under way, and credits under way are the room of every buffer."""
    state, inputs, room = run._state, int(run._constants.input_vcs), run._constants.buffer_flits
    found = state.vc["credits"].astype(np.int64)
    found[:inputs] += (state.vc["write_index"] - state.vc["read_index"])[:inputs]
    for which in range(len(state.queue)):
        if which != 1:  # headers
            np.add.at(found, run._queue_entries(which)[2], 1)
    assert (found[:inputs] == room).all() and (found[inputs:] == UNLIMITED_CREDITS).all()


@given(st.integers(0, 10**6), LOADS)
@runs(8)
def test_all_credits_are_somewhere(number, load):
    run = start("compiled", drawn(number), load, 1)
    for tick in range(100, 700, 7):
        run.advance(tick)
        assert_credits_complete(run)


FLITS = 8
HEADER, CROSSING = TIMES["header"], TIMES["switch"] + TIMES["link"]


def lone() -> Scenario:
    """Two hosts that seldom send packets of 8 flits to each other, with buffers for two of them."""
    return scenario(line(2), traffic={"kind": "shift", "by": 1}, source=Source(flits=(FLITS,)), mode="wormhole", vcs=2)


def first_packet(engine: str, case: Scenario) -> tuple[int | None, int]:
    """When the first packet of host 0 is delivered, None where it is not, and how many packets are lost."""
    run = start(engine, case, 0.02, 1, True)
    run.advance(3000)
    log = run.log()
    found = log.delivered[log.identity == 0].tolist()
    return (found[0] if found else None), int(run.scalars()[DROPPED_PACKETS])


@ENGINES
def test_a_packet_is_cut_from_the_tick_after_it_gets_its_vc_until_its_tail_is_over(engine):
    """Its head gets a VC in the tick in which it comes to the switch; its tail is granted header + 7 ticks later."""
    case = lone()
    usual, _ = first_packet(engine, case)
    assert usual is not None
    came = usual - case.switching.zero_load_latency(case.topology, 1, FLITS) + TIMES["injection"]
    over = came + HEADER + FLITS - 1 + CROSSING
    returns = came + 60
    restore = {"at_tick": returns, "restore": {"links": [[0, 1]]}, "reroute_after": NEVER}
    got = {}
    for tick in (came, came + 1, came + HEADER + 1, over, over + 1):
        fail = {"at_tick": tick, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
        got[tick], lost = first_packet(engine, happening(case, [fail, restore]))
        assert lost == (got[tick] is None)
    late = usual + returns + 1 - (came + HEADER)  # it gets its VC as the link returns, and is granted in the next tick
    assert got == {came: late, came + 1: None, came + HEADER + 1: None, over: None, over + 1: usual}


@ENGINES
def test_a_packet_across_many_switches_is_cut_everywhere_and_the_next_goes_through(engine):
    """A packet of 40 flits in buffers of 2 lies across a line from its host on, and is cut at the last link."""
    case = scenario(
        line(5, 1), traffic={"kind": "shift", "by": 4}, source=Source(flits=(40,)), mode="wormhole", vcs=1,
        buffer_flits=2,
    )  # fmt: skip
    down = {"at_tick": 1000, "fail": {"links": [[3, 4]]}, "reroute_after": NEVER}
    up = {"at_tick": 1001, "restore": {"links": [[3, 4]]}, "reroute_after": NEVER}
    plain, run = start(engine, case, 1.0, 1, True), start(engine, happening(case, [down, up]), 1.0, 1, True)
    for one in (plain, run):
        one.advance(1000)
    before = run.scalars()
    assert before[SENT_PACKETS] > before[DELIVERED_PACKETS] + 1
    run.advance(1001)
    lost = run.scalars()[DROPPED_PACKETS]
    assert lost == run.scalars()[DROPPED_FLITS] / 40 >= 1
    for one in (plain, run):
        one.advance(5000)
    counts = run.scalars()
    assert counts[DROPPED_PACKETS] == lost  # a link that returns at once cuts nobody else
    gaps = [np.diff(np.sort(one.log().delivered[one.log().identity % 5 == 0])) for one in (plain, run)]
    assert gaps[1][-1] == gaps[0][-1]  # as fast as ever: no credit is missing


@ENGINES
def test_what_is_on_a_link_is_lost_and_the_rest_waits_until_it_returns(engine):
    """At full load a flit crosses in every tick: packets of 4 flits that take 5 ticks to come over."""
    events = [{"at_tick": 2000, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}]
    events += [{"at_tick": 3000, "restore": {"links": [[0, 1]]}}]
    run = start(engine, happening(ring(mode="wormhole", buffer_flits=20), events), 1.0, 1, True)
    got = []
    for tick in (1000, 2000, 2020, 3000, 4000):
        run.advance(tick)
        got.append(delivered(run))
    assert got[1] - got[0] == 250
    assert got[3] == got[2]
    assert 1000 - 5 * 12 <= 4 * (got[4] - got[3]) <= 1000
    run.advance(6000)
    assert 2 <= run.scalars()[DROPPED_PACKETS] <= 8  # in both directions, of which one is not used


@ENGINES
def test_hosts_finish_what_they_send_and_then_wait_for_the_network_to_be_empty(engine):
    event = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 100}
    run = start(engine, happening(ring(mode="wormhole", buffer_flits=1), [event]), 0.1, 1, True)
    run.advance(1100)
    before, tick = run.scalars(), 1100
    while True:
        tick += 1
        run.advance(tick)
        now = run.scalars()
        if now[SENT_PACKETS] > before[SENT_PACKETS]:
            break
        last = now
    assert last[SENT_PACKETS] == last[DELIVERED_PACKETS] + last[DROPPED_PACKETS]
    assert last[DROPPED_PACKETS] > before[DROPPED_PACKETS]  # those that waited for the link
    run.advance(tick + 2000)
    log = run.log()
    of_first = log.identity % RING.hosts == 0
    assert set(log.hops[of_first & (log.delivered < tick)]) == {1}
    assert set(log.hops[of_first & (log.delivered > tick)]) == {3}
    assert run.scalars()[DROPPED_PACKETS] == last[DROPPED_PACKETS]


@ENGINES
def test_a_switch_that_fails_loses_what_is_in_it(engine):
    case = scenario(build("fat_tree", hosts=2, k=4), routing={"kind": "updown"}, mode="wormhole", vcs=2)
    event = {"at_tick": 700, "fail": {"switches": [case.topology.switches - 1]}, "reroute_after": NEVER}
    run = start(engine, happening(case, [event], {"kind": "updown"}), 0.5, 1)
    run.advance(700)
    assert run.scalars()[DROPPED_PACKETS] == 0
    run.advance(701)
    assert run.scalars()[DROPPED_PACKETS] > 8


def test_what_waits_for_a_link_for_ever_is_no_deadlock():
    event = {"at_tick": 100, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    run = start("both", happening(ring(mode="wormhole", vcs=2, buffer_flits=2), [event]), 0.5, 1)
    run.advance(1500)
    assert not run.deadlocked()


def test_what_has_no_certificate_is_refused():
    diagonals = {"at_tick": 100, "fail": {"links": [[0, 2], [1, 3]]}, "reroute_after": 50}
    case = scenario(square().topology, vcs=1, mode="wormhole")
    problem = "what the routing learns at tick 150 has no certificate .* rising needs"
    with pytest.raises(SpecError, match=problem) as error:
        happening(case, [diagonals])
    assert error.value.key == "timeline"


def test_a_point_counts_what_is_lost_and_has_ceilings_of_every_epoch(tmp_path):
    assert run_sweep(tmp_path, WORM) == 0
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    over_time = read_csv(tmp_path / "run" / "throughput_time.csv")
    assert int(row["lost_packets"]) == sum(int(one["lost_packets"]) for one in over_time) > 0
    steps = [row for row in read_csv(tmp_path / "run" / "epochs.csv") if row["ceiling"] == "mcf"]
    best = {int(step["from_tick"]): float(step["host_throughput"]) for step in steps}
    assert sorted(best) == [0, 1000, 2000] and best[1000] < best[0] == best[2000]
    for since, until in ((0, 1000), (1000, 2000), (2000, 3000)):
        part = [one for one in over_time if since <= int(one["from_tick"]) < until]
        got = [float(one["host_throughput"]) * (int(one["to_tick"]) - int(one["from_tick"])) for one in part]
        assert 0.2 < sum(got) / (until - since) < best[since]
    assert (tmp_path / "run" / "figures" / "throughput_time.png").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("timeline=[{at_tick: 1, slow: {links: 1}, factor: 0.5}]", "timeline: slow needs another mode than wormhole"),
        ("switching={mode: wormhole, vcs: 1, allow_deadlock: true}", "timeline: needs routes with a certificate"),
        ("measure.ticks=1500", "timeline: 2 links return at tick 2000, after the end of the run, 1,500 ticks"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    (tmp_path / "given.yaml").write_text(WORM)
    with pytest.raises(ConfigError, match=expected):
        read(tmp_path / "given.yaml", [change])
