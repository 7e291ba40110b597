# SPDX-License-Identifier: Apache-2.0
"""``simrun trace`` rejects what it cannot list or follow, before a run starts."""

import pytest

from flitlab.sim.cli import main
from tests.sim.test_rejected import COLLECTIVE, FLOWS, JOBS, SPRAY

RING = """\
topology: {kind: torus, dims: [4], hosts_per_switch: 1}
routing: {kind: minimal}
switching: {mode: vct, vcs: 4}
traffic: {kind: uniform}
loads: [0.3]
"""
RECORDED = RING.replace("{kind: uniform}\nloads: [0.3]", "{kind: trace, path: packets.csv}")
PACKETS = "source,destination,flits,tick\n2,1,4,0\n2,3,4,5\n1,2,2,50\n"
LOSSLESS = SPRAY.replace("mode: spray", "mode: spray, queue: lossless").replace(
    "{kind: nscc, paths: 4, spread: mixed}", "{kind: roce}"
)
CLASSES = RING.replace("{kind: uniform}", "{classes: [{name: a, kind: uniform}, {name: b, kind: uniform}]}")

LISTED = "delivered packets are listed in deflection, ideal, vct, wormhole"
FOLLOWED = "packets are followed in deflection, vct, wormhole only"
NOT_FOLLOWED = {
    "spray": (SPRAY, f"switching.mode = 'spray': {FOLLOWED}"),
    "lossless": (LOSSLESS, f"switching.mode = 'spray': {FOLLOWED}"),
    "datagram": (FLOWS, f"switching.mode = 'datagram': {FOLLOWED}"),
    "ideal": (RING.replace("mode: vct, vcs: 4", "mode: ideal"), f"switching.mode = 'ideal': {FOLLOWED}"),
    "trace": (RECORDED, "traffic: single packets are followed only where hosts draw them, at a load"),
    "timeline": (
        RING + "timeline: [{at_tick: 50, fail: {links: [[0, 1]]}}]\n",
        "timeline: single packets are followed only in networks that stay as they are",
    ),
    "speeds": (
        RING + "capacity_of: {links: 1, factor: 0.5}\n",
        "topology.capacity: single packets are followed only where all channels are equally fast",
    ),
    "classes": (CLASSES, "following a packet is not for traffic with classes"),
    "program": (JOBS, "experiment = application: this command needs a load sweep"),
    "collective": (
        COLLECTIVE.replace("ALGORITHM", "pairwise"), "experiment = collective: this command needs a load sweep",
    ),
}  # fmt: skip
NOT_LISTED = {
    "spray": f"switching.mode = 'spray': {LISTED}",
    "lossless": f"switching.mode = 'spray': {LISTED}",
    "datagram": f"switching.mode = 'datagram': {LISTED}",
    "program": NOT_FOLLOWED["program"][1],
    "collective": NOT_FOLLOWED["collective"][1],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packets.csv").write_text(PACKETS)
    return tmp_path


@pytest.mark.parametrize("engine", ["compiled", "reference", "both"])
@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_a_packet_is_not_followed(folder, capsys, name, engine):
    text, message = NOT_FOLLOWED[name]
    (folder / "c.yaml").write_text(text)
    assert main(["trace", "c.yaml", "--packet", "2", "--set", f"engine={engine}"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", NOT_LISTED)
def test_packets_are_not_listed(folder, capsys, monkeypatch, name):
    monkeypatch.setattr("flitlab.sim.cli.trace.start", lambda *_, **__: pytest.fail("a run starts"))
    (folder / "c.yaml").write_text(NOT_FOLLOWED[name][0])
    assert main(["trace", "c.yaml", "--to", "100"]) == 2
    assert NOT_LISTED[name] in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED.keys() - NOT_LISTED.keys()))
def test_all_other_packets_are_listed(folder, capsys, name, engine_name):
    (folder / "c.yaml").write_text(NOT_FOLLOWED[name][0])
    assert main(["trace", "c.yaml", "--to", "100", "--set", f"engine={engine_name}"]) == 0
    assert "packets delivered in ticks 0 .. 99" in capsys.readouterr().out


def test_packets_of_a_trace_are_listed_with_their_source(folder, capsys, engine_name):
    (folder / "c.yaml").write_text(RECORDED)
    assert main(["trace", "c.yaml", "--to", "100", "--set", f"engine={engine_name}"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:5]]
    assert [row[:2] + row[3:] for row in rows] == [["2", "2", "1"], ["6", "2", "1"], ["1", "1", "1"]]
