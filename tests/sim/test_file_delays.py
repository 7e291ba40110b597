# SPDX-License-Identifier: Apache-2.0
"""Rates and delays that a topology's file states in units of its own are those of the run."""

import json

import pytest

from flitlab.models.topology.formats import read, write
from flitlab.sim.cli import main

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
        f"outputs: {{figures: []}}\n{'messages: {flit_bytes: 10, packet_flits: 100}' if flits else ''}\n"
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
