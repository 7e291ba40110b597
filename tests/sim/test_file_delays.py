# SPDX-License-Identifier: Apache-2.0
"""Rates and delays that a topology's file states in units of its own are those of the run."""

import json
from dataclasses import replace

import pytest

from flitlab.models.readable import Text
from flitlab.models.registry import SpecWarning, make
from flitlab.models.topology.formats import FormatError, read, write
from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read as read_config

NETWORK = """6 2 5
4 5
0 4 100Gbps 0.001ms 0
1 4 100Gbps 0.005ms 0
2 5 100Gbps 0.001ms 0
3 5 100Gbps 0.001ms 0
4 5 400Gbps 0.010ms 0
"""
"""Two switches, 10 us from each other at 400 Gbit/s, with two hosts each, at 100 Gbit/s, 1 us away but for one."""

MESSAGE = """num_ranks 4
rank 0 {
s: send 1000b to 2 tag 0
}
rank 1 {
}
rank 2 {
r: recv 1000b from 0 tag 0
}
rank 3 {
}
"""


def makespan(folder, capsys, switching, topology="path: t.txt", flits=True):
    (folder / "t.txt").write_text(NETWORK)
    (folder / "m.goal").write_text(MESSAGE)
    (folder / "a.yaml").write_text(
        f"experiment: application\ntopology: {{kind: file, {topology}}}\nrouting: minimal\nengine: reference\n"
        f"switching: {{{switching}}}\napplication: {{kind: goal, path: m.goal}}\nceilings: []\n"
        f"outputs: {{figures: [], html: false}}\n{'messages: {flit_bytes: 10, packet_flits: 100}' if flits else ''}\n"
    )
    capsys.readouterr()
    for config, out in (("a.yaml", "r"), ("r/config.resolved.yaml", "again")):
        assert main(["run", str(folder / config), "--json", "--out", str(folder / out), "--jobs", "1"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["results"]
        yield row["makespan_ns"]


@pytest.mark.parametrize(
    ("switching", "flits", "by_hand"),
    [
        ("mode: flow", True, 12_000 + 80),  # 1 + 10 + 1 us, and 1,000 bytes at 100 Gbit/s
        ("mode: datagram", False, 12_000 + 80 + 20 + 80),  # stored and forwarded on three links
        ("mode: spray, mtu_bytes: 1064", False, 12_000 + 1.064 * (80 + 20 + 80)),  # 64 bytes of headers
        ("mode: flow, link_ns: 500, injection_ns: 50, ejection_ns: 50", True, 600 + 80),  # instead of the file's
        ("mode: datagram, link_us: 2", False, 6_000 + 180),
        ("mode: datagram, link_gbps: 10", False, 12_000 + 1800),
    ],
)
def test_delays_and_rates_of_a_file_are_those_of_the_run(tmp_path, capsys, switching, flits, by_hand):
    """Within two ticks of a flit of 10 bytes for the switches, of which mode flow has a tick each."""
    once, again = makespan(tmp_path, capsys, switching, flits=flits)
    assert once == again == pytest.approx(by_hand, abs=2 * 0.8 + 0.2)


def test_delays_of_a_file_are_added_to_those_of_switching_on_request(tmp_path, capsys):
    once, again = makespan(tmp_path, capsys, "mode: datagram, link_us: 2", "path: t.txt, delays: file", flits=False)
    assert once == again == pytest.approx(18_000 + 180, abs=0.2)
    once, again = makespan(
        tmp_path, capsys, "mode: datagram, link_us: 2", "path: t.txt, delays: switching", flits=False
    )
    assert once == again == pytest.approx(6_000 + 180, abs=0.2)


def test_delays_stay_with_hosts_and_channels_in_other_formats_and_parts(tmp_path, capsys):
    (tmp_path / "t.txt").write_text(NETWORK)
    topology = read(tmp_path / "t.txt")
    assert topology.notes["host_delay_ns"] == [1000, 5000, 1000, 1000]
    write(topology, tmp_path / "t.json")
    write(topology, tmp_path / "again.txt", "ns3")
    assert read(tmp_path / "again.txt", "ns3").notes["host_delay_ns"] == [1000, 5000, 1000, 1000]
    once, again = makespan(tmp_path, capsys, "mode: datagram", "path: t.json", flits=False)
    assert once == again == pytest.approx(12_180, abs=0.2)


@pytest.mark.parametrize(
    ("topology", "switching", "said"),
    [
        (
            "path: t.txt",
            "mode: vct",
            "topology: warning: delays of its links (1000 to 10000 ns) are not applied: ticks",
        ),
        (
            "path: t.txt, delays: file",
            "mode: vct",
            "topology.delays = file: ticks have no duration without switching.f",
        ),
        (
            "path: e.txt, delays: file",
            "mode: vct, flit_ns: 1",
            "topology.delays = file: the file states no delays in a",
        ),
        ("path: slow.txt", "mode: vct, flit_ns: 1", "delays of 1e+13 to 1e+13 ns must be from 0 to 1e+09 ticks"),
    ],
)
def test_delays_without_ticks_of_time_are_not_silent(tmp_path, capsys, topology, switching, said):
    (tmp_path / "t.txt").write_text(NETWORK)
    (tmp_path / "slow.txt").write_text(NETWORK.replace("0.010ms", "10000s"))
    (tmp_path / "e.txt").write_text("0 1\n1 0\n")
    (tmp_path / "c.yaml").write_text(
        f"topology: {{kind: file, {topology}}}\nrouting: minimal\nswitching: {{{switching}}}\nloads: [0.1]\n"
        "traffic: {kind: uniform, packet_flits: 1}\nceilings: []\n"
    )
    assert main(["check", str(tmp_path / "c.yaml")]) == (0 if "warning" in said else 2)
    out = capsys.readouterr()
    assert said in out.err + out.out


TRIANGLE = """6 3 6
3 4 5
0 3 100Gbps 1us 0
1 4 100Gbps 1us 0
2 5 100Gbps 1us 0
3 4 100Gbps 1us 0
4 5 100Gbps 1us 0
3 5 100Gbps 10us 0
"""


@pytest.mark.parametrize("experiment", ["ceilings", "load_sweep"])
@pytest.mark.parametrize("weight", ["delay", "latency"])
def test_ceilings_weigh_the_delays_of_a_file(tmp_path, capsys, experiment, weight):
    """Traffic from 3 to 5 goes over 4, so that a channel carries 4/5 + 4/5 of a host's rate."""
    (tmp_path / "t.txt").write_text(TRIANGLE)
    (tmp_path / "c.yaml").write_text(
        f"experiment: {experiment}\ntopology: {{kind: file, path: t.txt, hosts_per_switch: 2}}\n"
        f"routing: {{kind: ecmp, weight: {weight}}}\nswitching: {{flit_bytes: 100}}\ntraffic: uniform\n"
        "ceilings: [split]\n" + "loads: [0.1]\n" * (experiment == "load_sweep")
    )
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["upper"] == pytest.approx(1 / 1.6)


DERIVED = [
    ({"kind": "same_equipment", "as": NETWORK}, 4, 4), ({"kind": "trunked", "of": NETWORK, "links": 2}, 4, 4),
    ({"kind": "subdivided", "base": NETWORK, "p": 2, "path_hosts": 1}, 5, 4),
    ({"kind": "expanded", "base": NETWORK, "steps": [{"switches": 1, "ports": 4, "servers": 1}]}, 5, 4),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "hosts", "of_file"), DERIVED, ids=[keys["kind"] for keys, _, _ in DERIVED])
def test_networks_made_of_a_file_keep_its_rate_and_delays(keys, hosts, of_file):
    keys = {key: {"kind": "file", "text": value} if value == NETWORK else value for key, value in keys.items()}
    topology = make("topology", **keys).build()
    assert topology.notes["link_gbps"] == 100 and (topology.columns["delay_ns"] == 10_000).all()
    stated = topology.notes["host_delay_ns"]
    assert len(stated) == topology.hosts == hosts and stated[:of_file] == [1000, 5000, 1000, 1000]
    assert stated[of_file:] == [0] * (hosts - of_file)


def test_ports_of_cards_have_the_delays_of_hosts():
    topology = make("topology", kind="planes", count=2, of={"kind": "file", "text": NETWORK}).build()
    of_cards = topology.src < 4
    assert topology.notes["link_gbps"] == 100
    assert sorted(topology.columns["delay_ns"][of_cards]) == [1000] * 6 + [5000] * 2
    assert set(topology.columns["delay_ns"][(topology.src >= 4) & (topology.dst >= 4)]) == {10_000}


def test_hosts_that_are_placed_anew_keep_a_delay_that_all_have():
    keys = {"kind": "file", "text": NETWORK}
    assert make("topology", **keys, hosts=[2, 2]).build().notes["host_delay_ns"] == [1000, 5000, 1000, 1000]
    with pytest.warns(SpecWarning, match="the delays of 4 hosts' channels are dropped"):
        assert "host_delay_ns" not in make("topology", **keys, hosts=[1, 2]).build().notes
    keys["text"] = NETWORK.replace("0.005ms", "0.001ms")
    assert make("topology", **keys, hosts_per_switch=3).build().notes["host_delay_ns"] == [1000] * 6


ONE = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 2us 0\n2 3 100Gbps 1us 0\n"
SLOW_LINK = "4 2 3\n2 3\n0 2 100Gbps 1500ns 0\n1 3 100Gbps 1500ns 0\n2 3 33.3Gbps 300ns 0\n"
NODES = "3 0 2\n0 1 100Gbps 1us 0\n1 2 50Gbps 2us 0\n"


@pytest.mark.filterwarnings("ignore:.*no switches")
@pytest.mark.parametrize("text", [ONE, SLOW_LINK, NODES, NETWORK], ids=["one switch", "slow link", "nodes", "two"])
def test_ns3_reads_back_what_it_wrote(tmp_path, text):
    topology = read(Text(text))
    left_out = write(topology, tmp_path / "t.txt", "ns3")
    again = read(tmp_path / "t.txt", "ns3")
    assert set(left_out) <= {"labels"}
    assert again.content_hash == replace(topology, notes=again.notes).content_hash
    for key in ("link_gbps", "host_delay_ns"):
        assert again.notes.get(key) == topology.notes.get(key)


def test_simgrid_has_the_rates_and_latencies_of_the_file(tmp_path):
    write(read(Text(SLOW_LINK)), tmp_path / "t.xml", "simgrid")
    text = (tmp_path / "t.xml").read_text()
    assert '"h0-s0" bandwidth="100Gbps" latency="1500ns"' in text
    assert '"s0-s1" bandwidth="33.3Gbps" latency="300ns"' in text


def test_an_error_rate_is_not_silent():
    with pytest.warns(SpecWarning, match=":7: error_rate 0.01 is not read"):
        read(Text(NETWORK.replace("0.010ms 0", "0.010ms 0.01")))


HOSTILE = [None, "x", True, [], [1, 2], [None] * 4, [[1]] * 4, [-1] * 4, [1e999] * 4, {"a": 1}, -5, 1e999]


@pytest.mark.parametrize("key", ["link_gbps", "host_delay_ns"])
@pytest.mark.parametrize(
    "value", [None, "x", True, [], [1, 2], [None] * 4, [[1]] * 4, [-1] * 4, [1e999] * 4, {"a": 1}, -5, 1e999]
)
def test_notes_of_no_rate_and_no_delays_are_named(tmp_path, key, value):
    (tmp_path / "t.txt").write_text(NETWORK)
    write(read(tmp_path / "t.txt"), tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    document["notes"][key] = value
    (tmp_path / "t.json").write_text(json.dumps(document))
    with pytest.raises(FormatError, match=rf"notes\['{key}'\] must "):
        read(tmp_path / "t.json")


def test_ranks_that_are_switches_have_no_delay_of_a_host(tmp_path):
    (tmp_path / "t.txt").write_text(NETWORK)
    text = (
        f"experiment: collective\ntopology: {{kind: file, path: {tmp_path / 't.txt'}}}\nswitching: {{mode: flow}}\n"
        "collective: {kind: all_gather, size_bytes: 4096, ranks: switches}\nrouting: minimal\n"
        "messages: {flit_bytes: 125}\n"
    )
    (case,) = read_config("c.yaml", [], text=text).cases
    assert case.topology.hosts == 2 and case.topology.host_delay is None
    assert case.topology.delay.tolist() == [999, 999]  # 10 us, less the tick of any link
