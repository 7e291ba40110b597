# SPDX-License-Identifier: Apache-2.0
"""Credits take the delay of the channel over which they return: closed forms, and BookSim2 28f4329."""

import json

import numpy as np
import pytest

from flitlab.models.readable import Text
from flitlab.models.topology.formats.anynet import read_anynet
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.partitions import lookahead
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_rows_after
from tests.scenarios import scenario

ROUTER = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2, "shared_input": True}
"""The router of BookSim2, in which a channel of latency w has a delay of w - 1."""

TREE7 = """
router 0 node 0 router 1 3 router 2 9
router 1 node 1 router 0 3 router 3 2 router 4 14
router 2 node 2 router 0 9 router 5 5 router 6 1
router 3 node 3 router 1 2
router 4 node 4 router 1 14
router 5 node 5 router 2 5
router 6 node 6 router 2 1
"""


def two(there: int, back: int, paired: bool = True) -> Topology:
    """Two switches with a host each, and channels with a delay in cycles as BookSim2 counts them."""
    reverse = [1, 0] if paired else [-1, -1]
    return Topology.from_channels("two", 2, [(0, 1), (1, 0)], reverse, delay=[there - 1, back - 1]).with_hosts(1)


def carried(engine_name, topology, rounds, trip, flits=1, **keys):
    """Flits that each channel carries in some round trips in steady state, where every host sends all it can."""
    case = scenario(
        topology,
        traffic={"kind": "shift", "by": 1},
        source=Source(flits=(flits,)),
        allow_deadlock=True,
        **ROUTER,
        **keys,
    )
    run = start(engine_name, case, 1.0, 1)
    run.advance(4 * trip)
    before = run.snapshot().channel_flits
    run.advance((4 + rounds) * trip)
    return (run.snapshot().channel_flits - before).tolist()


@pytest.mark.parametrize(
    ("there", "back", "own", "trips"),
    [
        (50, 50, False, (104, 104)), (50, 50, True, (104, 104)), (50, 10, False, (64, 64)), (50, 10, True, (104, 24)),
        (10, 30, False, (44, 44)), (10, 30, True, (24, 64)), (1, 1, False, (6, 6)),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("vcs", "slots"), long_rows_after(2, [(4, 8), (1, 8), (1, 32)]))
def test_flits_of_a_round_trip_fill_the_buffer(engine_name, there, back, own, trips, vcs, slots):
    """L = 1: V B flits in R = switch + link + D + header + credit + D' ticks; of a VC at most one every second tick."""
    for channel, trip in enumerate(trips):
        found = carried(
            engine_name, two(there, back), 2, trip, mode="wormhole", vcs=vcs, buffer_flits=slots, own_credit_path=own
        )
        assert found[channel] == 2 * min(vcs * slots, trip // 2 if vcs == 1 else trip)


@pytest.mark.parametrize(("vcs", "room", "flits"), [(1, 8, 1), (4, 8, 1), (1, 20, 5), (2, 9, 4), (1, 33, 33)])
@pytest.mark.parametrize(("there", "back", "own"), [(50, 10, False), (50, 10, True), (30, 90, False), (30, 90, True)])
def test_packets_of_a_round_trip_fill_the_buffer(engine_name, there, back, own, vcs, room, flits):
    """V floor(B / L) L flits in R + L - 1 ticks: all credits of a packet return behind its tail."""
    for channel, delay in enumerate([(there, there if own else back), (back, back if own else there)]):
        trip = 1 + 2 + 1 + 2 + sum(delay) - 2 + flits - 1
        keys = {"mode": "vct", "vcs": vcs, "buffer_flits": room, "own_credit_path": own}
        found = carried(engine_name, two(there, back), 2, trip, flits, **keys)
        assert found[channel] == 2 * min(vcs * (room // flits) * flits, trip)


def test_credits_without_a_reverse_channel_take_the_delay_of_their_own(engine_name):
    for own in (False, True):
        keys = {"mode": "wormhole", "vcs": 1, "buffer_flits": 8, "own_credit_path": own}
        assert carried(engine_name, two(50, 10, paired=False), 2, 104, **keys)[0] == 16
        assert carried(engine_name, two(50, 10, paired=False), 2, 24, **keys)[1] == 16


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_credits_of_an_injection_channel_take_its_delay(engine_name, mode):
    """Both hosts of a switch: R = injection + header + credit + 2 delays for the host's buffer of 8 flits."""
    topology = Topology.from_links("one", 1, []).with_hosts(2, host_delay=[30, 7])
    case = scenario(
        topology,
        traffic={"kind": "shift", "by": 1},
        source=Source(flits=(1,)),
        mode=mode,
        vcs=1,
        buffer_flits=8,
        **ROUTER,
    )
    run = start(engine_name, case, 1.0, 1)
    for host, trip in enumerate((65, 19)):
        run.advance(10 * trip + run.snapshot().tick if host else 10 * trip)
        before = run.snapshot()
        run.advance(before.tick + 6 * trip)
        received = run.snapshot().delivered.minus(before.delivered).sources
        assert received[host] == 48, (host, received)


# BookSim2 28f4329, anynet, min, traffic = neighbor, injection_rate = 1, sim_type = throughput; islip, 1 iteration
BOOKSIM = [
    ((50, 50), 1, 16, 5, 0.15504), ((50, 50), 2, 20, 5, 0.38465), ((50, 50), 4, 8, 1, 0.30773),
    ((50, 50), 1, 32, 1, 0.30768),
]  # fmt: skip


@pytest.mark.parametrize(("latency", "vcs", "room", "flits", "accepted"), long_rows_after(1, BOOKSIM))
def test_long_links_carry_what_booksim2_has_over_them(engine_name, latency, vcs, room, flits, accepted):
    found = carried(
        engine_name, two(*latency), 100, 104, flits, mode="wormhole", vcs=vcs, buffer_flits=room, own_credit_path=True
    )
    assert np.mean(found) / 10400 == pytest.approx(accepted, rel=0.01)


def tree7(own):
    source, traffic = Source(flits=(1,)), {"kind": "uniform", "include_self": True}
    keys = {"mode": "wormhole", "vcs": 2, "buffer_flits": 8, "own_credit_path": own, **ROUTER}
    return scenario(read_anynet(Text(TREE7)), traffic=traffic, source=source, **keys)


@pytest.mark.long
@pytest.mark.parametrize("own", [False, True])
def test_latency_on_a_tree_of_unequal_links_is_that_of_booksim2(own):
    for load, latency in ((0.05, 23.25), (0.1, 23.23), (0.2, 23.47), (0.25, 23.67), (0.35, 25.77)):
        row = measure("compiled", tree7(own), load, 1, Measure(2000, 60_000, None)).row
        assert row["latency_mean"] == pytest.approx(latency, rel=0.02)


@pytest.mark.long
def test_a_tree_of_unequal_links_saturates_where_booksim2_does():
    row = measure("compiled", tree7(False), 1.0, 1, Measure(5000, 60_000, None)).row
    assert row["accepted"] == pytest.approx(0.3970, rel=0.03)
    assert row["accepted"] < 16 / 22 / (12 / 7)  # what 16 flits in a round trip of 22 ticks let through from 0 to 2


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_a_credit_in_flight_is_no_deadlock(engine_name, mode):
    """One flit in a round trip of 606 ticks: for most of them nothing moves, and nothing is stuck."""
    traffic, keys = {"kind": "shift", "by": 1}, {"mode": mode, "vcs": 1, "buffer_flits": 1, **ROUTER}
    case = scenario(two(301, 301), traffic=traffic, source=Source(flits=(1,)), allow_deadlock=True, **keys)
    run = start(engine_name, case, 0.5, 1)
    for tick in range(50, 1500, 50):
        run.advance(tick)
        assert not run.deadlocked()
    row = measure(engine_name, case, 0.5, 1, Measure(0, 6060, None)).row
    assert not row["deadlocked"]
    assert row["packets"] == pytest.approx(2 * 10, abs=2)


@pytest.mark.parametrize("own", [False, True])
def test_threads_simulate_as_far_apart_as_the_least_delay_allows(own):
    keys = {"traffic": {"kind": "shift", "by": 1}, "source": Source(flits=(4,)), "own_credit_path": own, **ROUTER}
    assert lookahead(scenario(two(1, 1), **keys)) == min(1 + 2 + 1, 3 + 2)
    assert lookahead(scenario(two(50, 10), **keys)) == min(1 + 2 + 1, 3 + 2) + 9
    assert lookahead(scenario(two(50, 1), **keys)) == min(1 + 2 + 1, 3 + 2)


CONFIG = """
topology:  {kind: file, path: two.anynet}
routing:   {kind: minimal}
switching: {mode: wormhole, vcs: 1, buffer_flits: 8, header_ticks: 1, link_ticks: 2, credit_ticks: 2}
traffic:   {kind: uniform, packet_flits: 1}
loads:     [1.0]
measure:   {warmup: 1040, ticks: 6240, ci: null}
ceilings:  []
"""


def configured(tmp_path, network="router 0 node 0 router 1 50\nrouter 1 node 1 router 0 10\n"):
    """A configuration of two switches, whose links take 50 and 10 cycles."""
    (tmp_path / "two.anynet").write_text(network)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path / "c.yaml"


def run(tmp_path, capsys, *changes):
    """The JSON that a run prints."""
    sets = [part for change in changes for part in ("--set", change)]
    assert main(["run", str(configured(tmp_path)), "--json", *sets]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((), "from switch 0 to 1: credits are back after 64 ticks, so it carries at most 0.125 flits a tick (2 of 4"),
        (
            ("switching.credit_path=own",),
            "from switch 0 to 1: credits are back after 104 ticks, so it carries at most 0.0769",
        ),
        (("switching.vcs=4",), "4 x 8 flits are too few"),
        (("switching.vcs=4", "switching.buffer_flits=16"), None),
        (("switching.mode=vct", "traffic.packet_flits=4", "switching.vcs=4"), "after 67 ticks"),
        (("switching.mode=vct", "traffic.packet_flits=4", "switching.vcs=4", "switching.buffer_flits=20"), None),
    ],
)
def test_buffers_smaller_than_a_round_trip_are_warned_of(tmp_path, changes, said):
    warnings = read(configured(tmp_path), changes).warnings
    assert [str(one) for one in warnings if "switching.buffer_flits" in str(one)] == list(map(str, warnings))
    assert (said is None and not warnings) or said in str(warnings[0])


def test_the_buffers_of_injection_channels_are_warned_of(tmp_path):
    """Node 0 is 20 cycles from its router: 2 + 1 + 2 + 2 * 19 ticks for a buffer of 8 flits, and 6 of the link."""
    path = configured(tmp_path, "router 0 node 0 20 router 1\nrouter 1 node 1\n")
    said = str(read(path, ["switching.injection_ticks=2", "traffic.packet_flits=4"]).warnings)
    assert "the injection channel of host 0: credits are back after 42.25 ticks" in said
    assert "at most 0.189 flits a tick (1 of 4 channels carry less than 1); 44 flits a VC cover the round trip" in said


@pytest.mark.long
def test_the_rate_that_is_warned_of_is_the_one_that_is_reached(tmp_path, capsys):
    """8 flits in 64 ticks both ways; by the own delay of each channel 8 in 104 and 8 in 24."""
    found = run(tmp_path, capsys)
    assert found["results"][0]["accepted"] == pytest.approx(8 / 64, rel=0.01)
    found = run(tmp_path, capsys, "switching.credit_path=own")
    assert found["results"][0]["accepted"] == pytest.approx((8 / 104 + 8 / 24) / 2, rel=0.01)
