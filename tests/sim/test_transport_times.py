# SPDX-License-Identifier: Apache-2.0
"""Times of transports: defaults that follow the network and the run, warnings where a run is too short, and flows that
never begin or open."""

import csv
import json
import re

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.newreno import make_rules
from flitlab.models.transport.queues import Queues, tick_of
from flitlab.models.transport.session import ratio_of
from flitlab.models.transport.times import default_start_ms
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

FAST = """\
topology: {kind: leaf_spine, leaves: 2, spines: 4, hosts_per_leaf: 4}
routing: {kind: ecmp, ways: 4}
switching: {mode: datagram, packet_bytes: 1500, nic_mbps: 100000, link_us: 1, queue_packets: 100}
traffic: {kind: shift, by: 4}
transport: {kind: tcp}
measure: {seconds: 0.005, window: [0.001, 0.005]}
ceilings: []
outputs: {figures: [], html: false}
"""

OF_OLD = ["switching={mode: datagram}", "measure={seconds: 2}"]
"""64 Mb/s, 100 us, 2 seconds: the usual values."""

FAST_TRIP = 6 * (1e-3 + 1500 * 8 / 100e6)
"""Milliseconds over six links of 1 us at 100 Gb/s: stored and forwarded, and acknowledged at once."""


def case(*sets: str):
    (found,) = read("c.yaml", list(sets), text=FAST).cases
    return found


def times(*sets: str) -> dict[str, float]:
    return {key: value for key, value in case(*sets).resolved["transport"].items() if key.endswith("_ms")}


def near(start_ms: float, min_rto_ms: float, syn_rto_ms: float) -> dict[str, object]:
    """Values to four digits."""
    found = {"start_ms": start_ms, "min_rto_ms": min_rto_ms, "syn_rto_ms": syn_rto_ms}
    return {key: pytest.approx(value, rel=5e-4) for key, value in found.items()}


@pytest.mark.parametrize(
    "change",
    [
        "measure={seconds: 2, window: [1, 2]}", "measure={seconds: 8, window: [6, 8]}",
        "measure={seconds: 2, window: [0, 2]}", "switching={mode: datagram, link_us: 10}",
        "topology={kind: hyperx, dims: [1], hosts_per_switch: 8}", "topology={kind: fat_tree, k: 4}",
        "topology={kind: torus, dims: [4, 4, 4]}", "transport={kind: mptcp, subflows: 4}",
        "transport={kind: dctcp, ack_path: reverse_path}", "switching={mode: datagram, queue_packets: 1000}",
    ],
)  # fmt: skip
def test_at_64_mbps_and_in_seconds_they_are_the_classical_ones(change):
    assert times(*OF_OLD, change) == {"start_ms": 50.0, "min_rto_ms": 250.0, "syn_rto_ms": 3000.0}


@pytest.mark.parametrize(
    ("sets", "start_ms", "trip_ms"),
    [
        ([], 0.1, FAST_TRIP),
        (["measure={seconds: 0.5, window: [0.3, 0.5]}"], 30.0, FAST_TRIP),
        (["measure={seconds: 0.5, window: [0, 0.5]}"], 12.5, FAST_TRIP),
        (["topology={kind: mesh, dims: [9]}", "traffic.by=1"], 0.1, FAST_TRIP * 10 / 6),
        (["transport.ack_path=pure_delay"], 0.1, FAST_TRIP + 6 * 1e-3),
        (["transport.ack_path=reverse_path"], 0.1, FAST_TRIP + 6 * (1e-3 + 40 * 8 / 100e6)),
        (["capacity_of={links: [[0, 2]], factor: 0.1}"], 0.1, FAST_TRIP + 9 * 1500 * 8 / 100e6),
        (["switching.nic_mbps=25000", "switching.packet_bytes=1000"], 0.1, 6 * (1e-3 + 1000 * 8 / 25e6)),
    ],
)
def test_otherwise_they_follow_the_round_trip_and_the_warmup(sets, start_ms, trip_ms):
    assert times(*sets) == near(start_ms, 320 * trip_ms, 12 * 320 * trip_ms)


@given(st.floats(1e-6, 1e4), st.floats(0, 1))
def test_starts_are_over_long_before_the_window(end, share):
    begin = end * share
    start_ms = default_start_ms((begin, end))
    assert 0 < start_ms <= 50
    assert start_ms <= 100.1 * begin if begin > 0 else start_ms <= 25.1 * end


def test_keys_that_are_given_win():
    given = "transport={kind: tcp, start_ms: 50, min_rto_ms: 250, syn_rto_ms: 3000}"
    assert times(given) == {"start_ms": 50.0, "min_rto_ms": 250.0, "syn_rto_ms": 3000.0}
    assert times("transport={kind: tcp, min_rto_ms: 1ms}") == near(0.1, 1.0, 12 * 320 * FAST_TRIP)
    assert times("transport={kind: none}") == {"start_ms": 0.1}
    assert times("transport={kind: none, start_ms: 0}") == {"start_ms": 0.0}


def test_finite_flows_and_programs_start_at_once():
    sizes = ["traffic.sizes={kind: fixed, bytes: 5000}", "traffic.arrivals=together"]
    assert times(*sizes)["start_ms"] == 0.0
    program = ["experiment=application", "traffic=null", "measure={}"]
    assert times(*program, "application={kind: all_to_all, size_bytes: 1000}")["start_ms"] == 0.0


def test_the_resolved_configuration_gives_them_and_is_the_same():
    given = read("c.yaml", [], text=FAST)
    again = read("c.yaml", [], text=yaml.safe_dump(given.resolved()))
    assert again.cases[0].scenario.content_hash == given.cases[0].scenario.content_hash
    assert again.cases[0].resolved["transport"] == given.cases[0].resolved["transport"]


LATE_START = r"c.yaml:5: transport.start_ms = 50: .* the run ends after 5 ms, and flows start up to 50 ms: the later"
EARLY_WINDOW = (
    r"transport.start_ms.*flows start up to 2 ms, and the window starts at 1 ms: until they start, they count as 0"
)
RTO = r"c.yaml:5: transport.min_rto_ms = 250: .* the run ends after 5 ms, before a retransmission timeout of 250 ms"
SYN_RTO = r"c.yaml:5: transport.syn_rto_ms.* the run ends after 5 ms, before a timeout of a SYN of 3000 ms can expire"


@pytest.mark.parametrize(
    ("transport", "says"),
    [
        ("{kind: tcp, syn_rto_ms: 2}", []),
        ("{kind: none}", []),
        ("{kind: none, start_ms: 50}", [LATE_START]),
        ("{kind: tcp, syn_rto_ms: 2, start_ms: 2}", [EARLY_WINDOW]),
        ("{kind: tcp, syn_rto_ms: 2, min_rto_ms: 250}", [RTO]),
        ("{kind: mptcp, subflows: 2, syn_rto_ms: 3000}", [SYN_RTO]),
        ("{kind: tcp, start_ms: 50, min_rto_ms: 250, syn_rto_ms: 3000}", [LATE_START, RTO, SYN_RTO]),
    ],
)
def test_a_run_that_is_too_short_for_its_times_is_warned_of(transport, says, capsys, tmp_path):
    (tmp_path / "c.yaml").write_text(FAST.replace("{kind: tcp}", transport))
    assert main(["check", str(tmp_path / "c.yaml")]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning:" in line]
    assert len(warnings) == len(says)
    for line, expected in zip(warnings, says, strict=True):
        assert re.search(expected, line), line


LINE = (
    "topology: {kind: file, text: '0 1', directed: false}\nrouting: minimal\nswitching: {mode: spray, %s}\n"
    "transport: %s\ntraffic: {kind: uniform, sizes: {kind: fixed, bytes: 4086}}\nloads: [0.1]\nceilings: []\n"
)
"""Three links between hosts of different switches; a packet of 4,150 bytes takes .332 us, a control packet .005."""


@pytest.mark.parametrize(
    ("switching", "transport", "says"),
    [
        ("link_us: 20", "ndp", ["transport: warning: 30.94 us .* less than the zero-load round trip .* 121 us: "]),
        ("link_us: 20", "{kind: ndp, timeout_us: 122}", []),
        ("link_us: 20", "nscc", []),
        ("link_us: 2", "ndp", []),
        ("link_us: 200, queue: lossless", "{kind: swift, timeout_us: 5000}",
         ["transport: warning: a target delay of .* us is less than the zero-load round trip .*, 1201 us: windows"]),
        ("link_us: 200, queue: lossless", "hpcc", ["transport: warning: 1000 us until a packet is sent again"]),
        ("link_us: 1, queue: lossless", "swift", []),
    ],
)  # fmt: skip
def test_timeouts_and_targets_below_the_round_trip_are_warned_of(switching, transport, says):
    study = read("c.yaml", [], text=LINE % (switching, transport))
    warnings = [line for line in study.warnings if "zero-load round trip" in line]
    assert len(warnings) == len(says)
    for line, expected in zip(warnings, says, strict=True):
        assert re.search(expected, line), line


SHARED = "queue: lossless, link_us: %s, pfc: {buffer_bytes: 2000000%s}"


@pytest.mark.parametrize(
    ("link_us", "headroom", "says"),
    [
        (1, "", ""),  # what comes in three delays, 37,500 bytes
        (1, ", headroom_bytes: 33200", ""),  # two delays of 12,500 bytes are 7 packets of 4,150, and one is in service
        (
            1,
            ", headroom_bytes: 33199",
            "33199 bytes is less than the 33200 that arrive .*: full ports may drop packets",
        ),
        (0.1, "", "3750 bytes is less than the 8300 that arrive .*: full ports send no PAUSE, and drop packets"),
    ],
)
def test_headrooms_that_hold_less_than_what_arrives_are_warned_of(link_us, headroom, says):
    study = read("c.yaml", [], text=LINE % (SHARED % (link_us, headroom), "roce"))
    warnings = [line for line in study.warnings if "a headroom of" in line]
    assert len(warnings) == bool(says) and all(re.search(says, line) for line in warnings)


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["switching.link_failures={links: 1, at_ms: 5}"], r"failures.at_ms = 5: is after the end of the run, 5 ms"),
        (["timeline=[{at_us: 4000, fail: {links: [[0, 2]]}}]", "measure.window=[0.001, 0.004]"],
         r"timeline\[0\].*is after the end of the run, 0.004 s"),
    ],
)  # fmt: skip
def test_what_happens_after_the_window_is_refused(sets, says):
    with pytest.raises(ConfigError, match=says):
        case(*sets)


def run(tmp_path, capsys, *sets: str) -> tuple[dict, list[dict], str]:
    """The row of results.csv, those of flows.csv, and what was said on stderr."""
    (tmp_path / "c.yaml").write_text(FAST)
    more = [word for one in sets for word in ("--set", one)]
    assert main(["run", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1", "--json", *more]) == 0
    said = capsys.readouterr()
    with (tmp_path / "out" / "flows.csv").open() as lines:
        flows = list(csv.DictReader(lines))
    (row,) = json.loads(said.out)["results"]
    return row, flows, said.err


def test_flows_that_never_begin_are_counted(tmp_path, capsys):
    """Starts within 50 ms, of which the run is the first 5."""
    row, flows, said = run(tmp_path, capsys, "transport={kind: tcp, start_ms: 50, syn_rto_ms: 2}")
    late = [flow for flow in flows if float(flow["start_ms"]) >= 5]
    assert 0 < row["not_begun"] == len(late) < row["subflows"] == 8
    assert all(flow["state"] == "not begun" and flow["received_bytes"] == "0" for flow in late)
    assert f"{len(late)} of 8 subflows in 1 of 1 points had not begun when the run ended (transport.start_ms" in said
    assert row["throughput_mean"] < 0.2


def test_by_default_all_flows_begin_and_get_what_their_paths_carry(tmp_path, capsys):
    """Four flows of each leaf draw one of four spines each: what they get together is what the links drawn carry."""
    row, flows, said = run(tmp_path, capsys)
    used = {tuple(flow["path"].split("-")) for flow in flows}
    assert row["not_begun"] == row["not_opened"] == 0 and "subflows in" not in said
    assert len(used) == 5 and row["throughput_mean"] == pytest.approx(5 / 8, abs=0.002)


INCAST = [
    "topology={kind: hyperx, dims: [1], hosts_per_switch: 33}", "traffic={kind: incast, senders: 32, receiver: 0}",
    "switching.queue_packets=4", "measure={seconds: 0.02, window: [0.01, 0.02]}",
]  # fmt: skip


def test_connections_that_never_open_are_counted(tmp_path, capsys):
    """32 senders share a queue of four packets: SYNs are dropped, and sent again only after the end of the run."""
    keys = "transport={kind: dctcp, start_ms: 1, min_rto_ms: 1, syn_rto_ms: 3000}"
    row, flows, said = run(tmp_path, capsys, *INCAST, keys)
    closed = [flow for flow in flows if flow["state"] == "not opened"]
    assert 0 < row["not_opened"] == len(closed) and row["not_begun"] == 0
    assert all(flow["received_bytes"] == "0" and flow["rtt_ms"] in ("", "nan") for flow in closed)
    assert f"{len(closed)} of 32 subflows in 1 of 1 points never opened, as a SYN" in said


def test_by_default_connections_open_within_the_run(tmp_path, capsys):
    row, _, _ = run(tmp_path, capsys, *INCAST, "transport={kind: dctcp}", "measure={seconds: 0.2, window: [0.1, 0.2]}")
    assert row["not_opened"] == 0


def test_a_dropped_syn_is_sent_again_after_its_timeout(tmp_path, capsys):
    """The only link between two switches fails with the start of a flow and returns after 3 ms."""
    sets = [
        "topology={kind: mesh, dims: [2]}", "traffic={kind: shift, by: 1, sizes: {kind: fixed, bytes: 15000}}",
        "traffic.arrivals=together", "transport={kind: tcp, syn_rto_ms: 2}", "measure={seconds: 0.01}", "loads=null",
    ]  # fmt: skip
    lone, _, _ = run(tmp_path, capsys, *sets)
    link = "{links: [[0, 1]]}"
    events = f"[{{at_us: 0, fail: {link}, reroute_after: .inf}}, {{at_us: 3000, restore: {link}}}]"
    again, _, _ = run(tmp_path, capsys, *sets, f"timeline={events}")
    assert again["fct_ms_mean"] - lone["fct_ms_mean"] == pytest.approx(2.0 + 4.0)  # RFC 6298, rule 5.5


@pytest.mark.parametrize(("packets", "window"), [(2, 2), (3, 2), (62, 2), (63, 2), (100, 3), (500, 1)])
def test_slow_start_doubles_the_window_every_round_trip(packets, window, tmp_path, capsys):
    """Closed form (RFC 5681): round k, of W * 2**k packets, begins a round trip after the one before.

    The first packet of a round crosses three links, of 1 ms and 10 us of service each; each further one comes a service
    later, as long as no round takes longer than a round trip. The SYN of a byte takes a round trip of its own.
    """
    row, _, _ = run(
        tmp_path, capsys, "topology={kind: mesh, dims: [2]}", "routing={kind: minimal}",
        "switching={mode: datagram, packet_bytes: 1000, nic_mbps: 800, link_us: 1000, queue_packets: 1000}",
        f"traffic={{kind: shift, by: 1, sizes: {{kind: fixed, bytes: {packets * 1000}}}, arrivals: together}}",
        f"transport={{kind: tcp, init_window: {window}, ssthresh: 1000}}", "measure={seconds: 1}",
    )  # fmt: skip
    service, delay, syn = 0.01, 1.0, 0.00001
    crossing, place, size, rounds = 3 * (service + delay), packets, window, 0
    while place > size:
        place, size, rounds = place - size, 2 * size, rounds + 1
    assert size * service < crossing
    expected = 3 * (syn + delay) + (rounds + 1) * crossing + (place - 1) * service
    assert row["fct_ms_mean"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("mbps", [64, 640, 1_000, 6_400, 100_000])
def test_timeouts_are_whole_numbers_of_bytes_at_any_rate(mbps):
    """A millisecond has 125 bytes per Mb/s: 2,000,000 in 250 ms at 64 Mb/s."""
    link = Topology.from_links("line", 2, [(0, 1)]).with_hosts(1)
    for ms in (1, 5, 50, 250):
        transport = make("transport", kind="tcp", min_rto_ms=float(ms), syn_rto_ms=12.0 * ms).build()
        rules = make_rules(transport, 1000, tick_of(link, Queues(nic_mbps=mbps)))
        assert (rules.min_rto, rules.syn_rto) == (125 * mbps * ms, 12 * 125 * mbps * ms)


def test_a_byte_takes_a_whole_number_of_ticks_where_the_fastest_channel_is_so_many_times_as_fast():
    """2.1 / 0.7 is slightly more than 3 in floating point."""
    line = Topology.from_links("line", 3, [(0, 1), (1, 2)], capacity=[2.1, 0.7]).with_hosts(1)
    assert ratio_of(line, np.array([2.1, 0.7, 0.3])).tolist() == [1 << 16, 3 << 16, 7 << 16]
