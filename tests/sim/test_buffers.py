# SPDX-License-Identifier: Apache-2.0
"""Buffers that differ between channels: closed forms of the credit loop, and the keys."""

import pytest

from flitlab.models.switching.buffers import ChannelBuffers
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.start import start
from tests.scenarios import scenario

ROUTER = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2, "shared_input": True}


def carried(engine_name, case, trip, rounds=4):
    """Flits that each channel carries in some round trips of steady state, where every host sends all it can."""
    run = start(engine_name, case, 1.0, 1)
    run.advance(6 * trip)
    before = run.snapshot().channel_flits
    run.advance((6 + rounds) * trip)
    return (run.snapshot().channel_flits - before).tolist()


@pytest.mark.parametrize(
    ("mode", "vcs", "flits", "sizes"),
    [
        ("wormhole", 1, 1, (8, 16)), ("wormhole", 4, 1, (3, 25)), ("vct", 1, 5, (9, 23)), ("vct", 3, 4, (4, 11)),
    ],
)  # fmt: skip
def test_each_channel_carries_what_its_own_buffer_allows(engine_name, mode, vcs, flits, sizes):
    """V B_c flits in R ticks, wormhole, and V floor(B_c / L) L in R + L - 1, vct: delays of 49 each way."""
    two = Topology.from_channels("two", 2, [(0, 1), (1, 0)], [1, 0], delay=[49, 49]).with_hosts(1)
    trip = 1 + 2 + 1 + 2 + 98 + (flits - 1 if mode == "vct" else 0)
    case = scenario(
        two, traffic={"kind": "shift", "by": 1}, source=Source(flits=(flits,)), mode=mode, vcs=vcs, buffer_flits=200,
        channel_buffers=ChannelBuffers((*sizes, 200, 200), {}), **ROUTER,
    )  # fmt: skip
    found = carried(engine_name, case, trip)
    whole = flits if mode == "vct" else 1
    assert found == [4 * min(vcs * (size // whole) * whole, trip) for size in sizes]


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_the_buffer_of_a_host_limits_its_injection(engine_name, mode):
    """Two hosts of a switch: B = 8 of 65 ticks and B = 3 of 19, R = injection + header + credit and twice the delay."""
    one = Topology.from_links("one", 1, []).with_hosts(2, host_delay=[30, 7])
    case = scenario(
        one, traffic={"kind": "shift", "by": 1}, source=Source(flits=(1,)), mode=mode, vcs=1, buffer_flits=8,
        channel_buffers=ChannelBuffers((8, 3), {}), **ROUTER,
    )  # fmt: skip
    run = start(engine_name, case, 1.0, 1)
    for host, (trip, size) in enumerate([(65, 8), (19, 3)]):
        run.advance(run.snapshot().tick + 10 * trip)
        before = run.snapshot()
        run.advance(before.tick + 6 * trip)
        assert run.snapshot().delivered.minus(before.delivered).sources[host] == 6 * size


CONFIG = """
topology: {kind: file, text: "# directed: false\\n0 1 1 9\\n1 2 1 19\\n2 0"}
routing: {kind: minimal}
switching:
  {mode: wormhole, vcs: 2, buffer_flits: BUFFERS, allow_deadlock: true}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.5]
measure: {warmup: 100, ticks: 400, ci: null}
ceilings: []
"""


def sizes(buffers, *sets):
    """Flits of the buffers at the ends of 0-1, 0-2, 1-0, 1-2, 2-0, 2-1, and those of the three hosts."""
    (case,) = read("c.yaml", sets, text=CONFIG.replace("BUFFERS", buffers)).cases
    return case.scenario.switching.buffers_of(case.scenario.topology).tolist()


@pytest.mark.parametrize(
    ("buffers", "flits"),
    [
        ("null", [8] * 9),
        ("5", [5] * 9),
        ("{network: 6}", [6] * 6 + [8] * 3),
        ("{injection: 3}", [8] * 6 + [3] * 3),
        ("{network: 6, of: [{links: [[0, 1]], flits: 64}]}", [64, 6, 64, 6, 6, 6, 8, 8, 8]),
        ("{of: [{links: [[0, 1], [1, 2]], flits: 64}, {links: [[1, 0]], flits: 2, directed: true}]}",
         [64, 8, 2, 64, 8, 64, 8, 8, 8]),
        # R = switch 1 + link 1 + credit 1 + twice the delay: 21, 3 and 41; hosts 2. Halves of that for each of 2 VCs
        ("{rtt: 1.0}", [11, 2, 11, 21, 2, 21, 1, 1, 1]),
        ("{rtt: 0.1}", [2, 1, 2, 3, 1, 3, 1, 1, 1]),
        ("{rtt: 1, network: 5}", [5] * 6 + [1] * 3),
        ("{network: 5, rtt: 1}", [11, 2, 11, 21, 2, 21, 1, 1, 1]),
        ("{of: [{links: [[0, 2]], flits: 7}], injection: 9}", [8, 7, 8, 8, 7, 8, 9, 9, 9]),
    ],
)  # fmt: skip
def test_later_entries_win(buffers, flits):
    assert sizes(buffers) == flits


def test_a_buffer_by_round_trip_holds_a_packet_where_it_must():
    assert sizes("{rtt: 0.1}", "switching.mode=vct") == [4] * 9
    assert sizes("{rtt: 1}", "switching.mode=vct") == [11, 4, 11, 21, 4, 21, 4, 4, 4]


def test_equal_buffers_are_the_same_scenario_however_they_are_written():
    hashes = {read("c.yaml", text=CONFIG.replace("BUFFERS", written)).cases[0].scenario.content_hash for written in (
        "8", "null", "{}", "{network: 8}", "{of: [{links: [[0, 1]], flits: 8}]}",
    )}  # fmt: skip
    assert len(hashes) == 1
    unequal = read("c.yaml", text=CONFIG.replace("BUFFERS", "{network: 9}")).cases[0]
    assert unequal.scenario.content_hash not in hashes
    assert unequal.resolved["switching"]["buffer_flits"] == {"network": 9}


@pytest.mark.parametrize(
    ("buffers", "sets", "problem"),
    [
        ("{inputs: 3}", (), "buffer_flits.inputs = 3: unknown key; choices: injection, network, of, rtt"),
        ("{network: 0}", (), "buffer_flits.network = 0: must be greater than or equal to 1"),
        ("{rtt: 0}", (), "buffer_flits.rtt = 0: must be greater than 0"),
        ("{rtt: 1e6}", (), "buffer_flits.rtt = 1000000.0: gives a buffer of 20500000 flits; a buffer has at most"),
        ("{of: [{links: [[0, 3]], flits: 2}]}", (), "buffer_flits.of[0].links[0] = [0, 3]: names no link: "),
        ("{of: [{links: 2, flits: 2}]}", (), "buffer_flits.of[0].links = 2: must be a list of pairs of switches such"),
        ("{of: [{links: [[0, 1]]}]}", (), "buffer_flits.of[0].flits: is missing"),
        ("{injection: 3}", ("switching.mode=vct",), "buffer_flits.injection = 3: must hold a whole packet, 4 flits"),
    ],
)  # fmt: skip
def test_errors_name_the_key(tmp_path, buffers, sets, problem):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.replace("BUFFERS", buffers))
    with pytest.raises(ConfigError) as caught:
        read(str(path), sets)
    (error,) = map(str, caught.value.errors)
    assert error.startswith(f"{path}:5: switching.{problem}")


def test_round_trips_in_ns_count_ticks_of_the_fastest_channel(study):
    """Channels of capacity 2 halve the tick: 2 + 40 + 2 + 2 ns and back at 2 ns a flit are 46 ticks, not 23."""
    ns = "flit_ns: 2, link_ns: 40, switch_ns: 2, header_ns: 2, injection_ns: 2, ejection_ns: 2, credit_ns: 2"
    case = study(
        "schema: 1\nname: c\ntopology: {kind: mesh, dims: [2, 2], capacity: 2, host_capacity: 2}\n"
        "routing: {kind: dor}\ntraffic: {kind: uniform}\nloads: [0.1]\n"
        f"switching: {{mode: wormhole, vcs: 1, buffer_flits: {{rtt: 1.0}}, {ns}}}\n"
    ).cases[0]
    assert (
        case.scenario.switching.buffers_of(case.scenario.topology)[: case.scenario.topology.channels].tolist()
        == [46] * 8
    )
