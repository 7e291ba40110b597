# SPDX-License-Identifier: Apache-2.0
"""A discipline of one's own, in tests/toys/discipline: three files, and it can do what ours can."""

import csv
import json
import sys
from pathlib import Path

import pytest

from flitlab.models import registry
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import EngineMismatch
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import ROOT
from tests.scenarios import build
from tests.toys.discipline import Pipe
from tests.toys.discipline.compiled import CompiledPipe

CONFIG = """\
plugins: [tests.toys.discipline]
topology: {kind: torus, dims: [3, 3], hosts_per_switch: 2}
routing: {kind: minimal}
switching: {mode: pipe, delay: {sweep: [4, 20]}}
traffic: {kind: hotspot, hosts: [0], fraction: 0.2, packet_flits: [{flits: 1, share: 1}, {flits: 5, share: 1}]}
loads: [0.1, 0.2]
measure: {ticks: 2000, ci: null}
ceilings: [mcf]
"""


def scenario(delay=7, flits=(3,), **traffic) -> Scenario:
    topology = build("torus", dims=[3, 3], hosts=2)
    routes = make("routing", kind="minimal").build(topology)
    demand = make("traffic", **(traffic or {"kind": "uniform"})).build(topology)
    return Scenario(Instance(topology, demand, routes), Pipe(delay), Source(flits=flits, shares=(1.0,) * len(flits)))


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.yaml").write_text(CONFIG)
    return "toy.yaml"


def test_it_is_three_files_and_few_lines():
    files = list((ROOT / "tests" / "toys" / "discipline").glob("*.py"))
    assert len(files) <= 3
    assert sum(len(file.read_text().splitlines()) for file in files) <= 120


@pytest.mark.parametrize("flits", [(1,), (3,), (1, 5)])
@pytest.mark.parametrize("load", [0.05, 0.6, 1.0])
def test_both_engines_agree_on_every_packet(flits, load):
    case = scenario(4, flits, kind="hotspot", hosts=[0], fraction=0.3)
    run = start("both", case, load, 5)
    for tick in (1, 2, 50, 51, 400, 1500):
        run.advance(tick)
        run.snapshot()
    assert len(run.log().identity) > 20


def test_a_network_that_stays_as_it_is_refuses_events(config):
    event = "timeline=[{at_tick: 1, fail: {links: 1}}]"
    with pytest.raises(ConfigError, match=r"timeline: is not for mode pipe, .*; modes: datagram, .*vct, wormhole"):
        read(config, [event])


def test_a_difference_between_its_engines_is_found(monkeypatch):
    monkeypatch.setattr(CompiledPipe, "move", lambda run, first, until: None)
    run = start("both", scenario(), 0.5, 1)
    run.advance(500)
    with pytest.raises(EngineMismatch, match="first: compiled: no such packet"):
        run.snapshot()


@pytest.mark.parametrize("engine", ["reference", "compiled", "both"])
def test_packets_alone_take_the_closed_form_and_others_wait(engine):
    case = scenario(9, (4,))
    alone = measure(engine, case, 0.001, 1, Measure(0, 4000, None)).row
    full = measure(engine, case, 0.9, 1, Measure(0, 4000, None)).row
    assert case.zero_load_latency == 12
    assert alone["latency_p50"] == 12 <= alone["latency_mean"] < 12.5
    assert full["latency_mean"] > 20 and full["accepted"] > 0.8


def test_its_content_hash_is_its_own():
    hashes = {scenario(delay).content_hash for delay in (7, 8)} | {scenario(flits=(1, 3)).content_hash}
    assert len(hashes) == 3
    assert scenario(7).content_hash == scenario(7).content_hash
    assert Pipe(7).hashed(Source()) == ({"mode": "pipe", "delay": 7}, [])


def test_it_runs_from_a_configuration(config, capsys):
    assert main([config, "--engine", "both", "--jobs", "1", "--out", "run"]) == 0
    with open("run/results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and all(row["status"] == "ok" and row["engine"] == "both" for row in rows)
    slow, fast = ([float(row["latency_mean"]) for row in rows if row["switching.delay"] == d] for d in ("20", "4"))
    assert all(15 < a - b < 17 for a, b in zip(slow, fast, strict=True))
    manifest = json.loads(Path("run/manifest.json").read_text())
    assert [one["switching"] for one in manifest["scenarios"]] == [{"mode": "pipe", "delay": d} for d in (4, 20)]


def test_it_is_listed_shown_and_checked(config, capsys):
    assert main(["list", "switching", "--plugin", "tests.toys.discipline"]) == 0
    assert "  pipe                             A network that is a fixed delay" in capsys.readouterr().out
    assert main(["show", "switching", "pipe", "--plugin", "tests.toys.discipline"]) == 0
    assert "delay" in capsys.readouterr().out
    assert main(["check", config, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"][0]["config"]["switching"] == {"mode": "pipe", "delay": 4}


def test_wrong_keys_of_it_are_refused(config, capsys):
    assert main([config, "--set", "switching.delay=0"]) == 2
    assert "switching.delay = 0" in capsys.readouterr().err
    assert main([config, "--set", "switching.vcs=4"]) == 2
    assert "switching.vcs = 4" in capsys.readouterr().err


def test_what_it_cannot_do_is_said(config, capsys):
    assert main(["trace", config, "--packet", "3"]) == 2
    assert "packets are followed in deflection, vct, wormhole only" in capsys.readouterr().err


NOBODY = '''
from dataclasses import dataclass
from typing import ClassVar, Literal
from flitlab.models.registry import register
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec

@dataclass(frozen=True)
class Nobody(SwitchingMode):
    mode: ClassVar[str] = "nobody"
    def zero_load_latency(self, topology, hops, flits):
        return 1

@register("switching", "nobody")
class NobodySpec(SwitchingSpec):
    """A discipline that no engine runs."""
    switching_mode: ClassVar = Nobody
    mode: Literal["nobody"]
    def build(self, setting):
        return BUILT
'''


@pytest.mark.parametrize(
    ("built", "problem"),
    [
        ("Nobody()", "switching: no engine runs mode 'nobody'"),
        ("None", "build() must return a SwitchingMode, not NoneType"),
    ],
)
def test_a_discipline_that_cannot_run_is_refused_before_anything_does(built, problem, tmp_path, monkeypatch):
    monkeypatch.setitem(registry._registered, "switching", dict(registry._registered["switching"]))
    monkeypatch.delitem(sys.modules, "flitlab_plugin_nobody", raising=False)
    (tmp_path / "nobody.py").write_text(NOBODY.replace("BUILT", built))
    text = "topology: {kind: torus, dims: [3, 3]}\nrouting: {kind: dor}\ntraffic: {kind: uniform}\nloads: [0.1]\n"
    text += "switching: {mode: nobody}\nplugins: [nobody.py]\n"
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "c.yaml", text=text)
    assert problem in str(caught.value)
