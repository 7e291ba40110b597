# SPDX-License-Identifier: Apache-2.0
"""The animation of a short run: what it shows is what happened, and what it refuses."""

import json
import re

import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.engines.trace import trace
from flitlab.sim.engines.trace.all_packets import record_all_packets
from flitlab.sim.report.html import view
from tests.scenarios import build, scenario

UNTIL = 150
CASES = {
    "vct": lambda: scenario(build("kautz", hosts=2, degree=2, diameter=2), source=Source(flits=(2, 5), shares=(1, 1))),
    "wormhole": lambda: scenario(
        build("torus", hosts=1, dims=[3, 3]),
        routing={"kind": "dor", "vc_policy": "dateline"},
        mode="wormhole",
        source=Source(flits=(2, 5), shares=(1, 1)),
        buffer_flits=3,
    ),
    "deflection": lambda: scenario(build("imase", hosts=2, n=8, degree=2), routing={"kind": "deflection"}),
}

CONFIG = """
schema: 1
name: short
topology: {kind: imase, n: 8, degree: 2, hosts_per_switch: 2}
routing: {kind: minimal}
switching: {mode: vct, vcs: 4, buffer_flits: 8}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.4]
"""


@pytest.mark.parametrize("mode", CASES)
def test_every_packet_has_the_life_that_either_engine_tells(mode):
    case = CASES[mode]()
    lives = record_all_packets(case, 0.6, 5, UNTIL)
    run = start("compiled", case, 0.6, 5)
    run.advance(UNTIL)
    delivered = [life for life in lives if life.delivered is not None]
    assert len(delivered) == run.scalars()[Scalar.DELIVERED_PACKETS] > 20
    for life in lives[:: len(lives) // 8]:
        assert life == trace("compiled", case, 0.6, 5, life.identity, UNTIL)


def document(path):
    """What the page's script is given."""
    text = path.read_text("utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def test_page_holds_the_network_and_the_lives(tmp_path, capsys):
    file = tmp_path / "short.yaml"
    file.write_text(CONFIG)
    page = tmp_path / "short.html"
    assert main(["view", str(file), "--ticks", "60", "--seed", "3", "--out", str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    shown = document(page)
    assert shown["ticks"] == 60
    assert (len(shown["map"]["xy"]), len(shown["map"]["hosts"])) == (8, 16)
    assert all(0 <= value <= 1000 for spot in shown["map"]["hosts"] for value in spot)
    identities = [packet[0] for packet in shown["packets"]]
    assert len(identities) == len(set(identities)) > 10
    created = [packet[4] for packet in shown["packets"]]
    assert created == sorted(created) and created[-1] < 60
    first = page.read_bytes()
    main(["view", str(file), "--ticks", "60", "--seed", "3", "--out", str(page)])
    assert page.read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "topology.n=200", "--set", "switching.vcs=8"], "200 switches are too many"),
        (["--ticks", "100000"], "packets are too many"),
        (["--scenario", "other"], "no such scenario"),
    ],
)
def test_refusals_say_what_is_wrong(tmp_path, capsys, arguments, said):
    file = tmp_path / "short.yaml"
    file.write_text(CONFIG)
    assert main(["view", str(file), "--out", str(tmp_path / "no.html"), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "no.html").exists()


def test_datagrams_are_refused_with_the_reason(tmp_path, capsys):
    file = tmp_path / "flows.yaml"
    file.write_text(
        "schema: 1\nname: flows\ntopology: {kind: fat_tree, k: 4}\nrouting: {kind: ecmp, ways: 4}\n"
        "switching: {mode: datagram}\ntraffic: {kind: permutation, seed: 1}\ntransport: {kind: tcp}\n"
    )
    assert main(["view", str(file)]) == 2
    assert "switching.mode = 'datagram'" in capsys.readouterr().err


def test_limits_hold_for_hosts_and_channels():
    with pytest.raises(ValueError, match="channels are too many"):
        view._reject_large(scenario(build("rrg", hosts=1, n=100, degree=9)), 0.1, 10)
