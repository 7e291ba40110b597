# SPDX-License-Identifier: Apache-2.0
"""Networks that change under wormhole switching: whole packets are cut, and hosts wait for the network to be empty."""

import numpy as np
import pytest

from flitlab.models.registry import SpecError
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import ChannelCounter, Scalar
from flitlab.sim.engines.start import start
from tests import long_after
from tests.scenarios import TIMES, line, scenario
from tests.sim.test_timeline_vct import (
    NEVER,
    RING,
    SWEEP,
    delivered,
    happening,
    ring,
    square,
)

WORM = SWEEP.replace("{mode: vct, vcs: 8}", "{mode: wormhole, vcs: 8, buffer_flits: 3}").replace(
    "[4, 4]}", "[4, 4], hosts_per_switch: 2}"
)
ENGINES = pytest.mark.parametrize("engine", long_after(1, ["reference", "compiled"]))


FLITS = 8
HEADER, CROSSING = TIMES["header"], TIMES["switch"] + TIMES["link"]


def lone(flits: int = FLITS) -> Scenario:
    """Two hosts that seldom send packets to each other, with buffers for two of 8 flits."""
    return scenario(line(2), traffic={"kind": "shift", "by": 1}, source=Source(flits=(flits,)), mode="wormhole", vcs=2)


def first_packet(engine: str, case: Scenario) -> tuple[int | None, int]:
    """When the first packet of host 0 is delivered, None where it is not, and how many packets are lost."""
    run = start(engine, case, 0.02, 1, True)
    run.advance(3000)
    log = run.log()
    found = log.delivered[log.identity == 0].tolist()
    return (found[0] if found else None), int(run.scalars()[Scalar.DROPPED_PACKETS])


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
def test_a_packet_that_is_cut_counts_with_the_flits_that_its_host_has_sent(engine):
    """Its link fails while the host sends it, a flit per tick; ``lone`` explains when its head comes to the switch."""
    case = lone(5 * FLITS)
    usual, _ = first_packet(engine, case)
    assert usual is not None
    begin = usual - case.switching.zero_load_latency(case.topology, 1, 5 * FLITS)
    fail = {"at_tick": begin + 3 * FLITS, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    run = start(engine, happening(case, [fail]), 0.02, 1, channels=True)
    for tick in (begin + 3 * FLITS, begin + 3 * FLITS + 2):
        run.advance(tick)
        counted = run.snapshot().channels[case.topology.channels]
        assert (counted[ChannelCounter.PACKETS], counted[ChannelCounter.FLITS]) == (1, 3 * FLITS)
    assert run.scalars()[Scalar.DROPPED_PACKETS] == 1


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
    assert before[Scalar.SENT_PACKETS] > before[Scalar.DELIVERED_PACKETS] + 1
    run.advance(1001)
    lost = run.scalars()[Scalar.DROPPED_PACKETS]
    assert lost == run.scalars()[Scalar.DROPPED_FLITS] / 40 >= 1
    for one in (plain, run):
        one.advance(5000)
    counts = run.scalars()
    assert counts[Scalar.DROPPED_PACKETS] == lost  # a link that returns at once cuts nobody else
    gaps = [np.diff(np.sort(one.log().delivered[one.log().identity % 5 == 0])) for one in (plain, run)]
    assert gaps[1][-1] == gaps[0][-1]  # as fast as ever: no credit is missing


@ENGINES
def test_what_is_on_a_link_is_lost_and_the_rest_waits_until_it_returns(engine):
    """At load .8 hosts catch up with what they could not send in 1000 ticks, as packets share the link by flits."""
    events = [{"at_tick": 2000, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}]
    events += [{"at_tick": 3000, "restore": {"links": [[0, 1]]}}]
    run = start(engine, happening(ring(mode="wormhole", buffer_flits=20), events), 0.8, 1, True)
    got = []
    for tick in (1000, 2000, 2020, 3000, 4000):
        run.advance(tick)
        got.append(delivered(run))
    assert 740 <= 4 * (got[1] - got[0]) <= 860  # 200 packets with a standard deviation of at most 14
    assert got[3] == got[2]
    assert 4 * (got[4] - got[3]) > 840  # more than is created
    run.advance(10000)
    counts = run.scalars()
    assert 2 <= counts[Scalar.DROPPED_PACKETS] <= 8  # in both directions; one of them is not used
    created = counts[Scalar.DELIVERED_PACKETS] + counts[Scalar.DROPPED_PACKETS]
    assert 0 <= counts[Scalar.CREATED_PACKETS] - created <= 4 * 20  # a queue with load .8 has 2 packets on average


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


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("switching={mode: wormhole, vcs: 1, allow_deadlock: true}", "timeline: needs routes with a certificate"),
        ("measure.ticks=1500", "timeline: 2 links return at tick 2000, after the end of the run, 1,500 ticks"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    (tmp_path / "given.yaml").write_text(WORM)
    with pytest.raises(ConfigError, match=expected):
        read(tmp_path / "given.yaml", [change])
