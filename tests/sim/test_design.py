# SPDX-License-Identifier: Apache-2.0
"""simrun design: its file, tables, page, and the same from Python."""

import csv
import json
import re
from concurrent.futures import BrokenExecutor

import pytest
import yaml

import flitlab.models.registry as registry
from flitlab import design
from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.design import demands
from flitlab.models.layout.prices import ports
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.design.files import SOLVED
from flitlab.sim.design.reader import design_of, least_of_all
from flitlab.sim.experiment.certificates import INDEX

SMALL = {"name": "small", "experiment": "design", "hosts": 36, "switches": [{"name": "s", "ports": 6}]}


def written(tmp_path, keys):
    file = tmp_path / "d.yaml"
    file.write_text(yaml.safe_dump(SMALL | keys))
    return str(file)


def rows(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.long
def test_a_design_from_file_to_cable_list(tmp_path, capsys):
    file, out = written(tmp_path, {}), tmp_path / "out"
    assert main(["design", file, "--out", str(out), "--write", "2"]) == 0
    text = capsys.readouterr().out
    for part in ("small: the front, 36 hosts", "why not", "candidates: 0 exceed a limit", "profile 800g", "optic 1200"):
        assert part in text
    front, candidates = rows(out / "front.csv"), rows(out / "candidates.csv")
    assert [row["point"] for row in front] == [str(n) for n in range(1, len(front) + 1)]
    costs = [float(row["cost_per_host"]) for row in front]
    assert "Parts of the cost" in (out / "report.html").read_text()
    assert costs == sorted(costs)
    assert sum(row["stage"] == "front" for row in candidates) == len(front)
    for row in candidates:
        assert row["stage"] in ("closed form", "built", "one solve", "solved", "front")
        if row["dominated_by"]:
            assert float(candidates[int(row["dominated_by"])]["cost_per_host"]) <= float(row["cost_per_host"]) * 1.0151
    for row in front:
        assert float(row["uniform.lower"]) <= float(row["uniform.upper"]) <= float(row["uniform.lower"]) * 1.02 + 1e-9
        assert float(row["uniform.lower"]) <= float(row["bound"]) + 1e-12
        assert float(row["ecmp"]) <= float(row["uniform.upper"]) * (1 + 1e-9)
        assert int(row["least_switches"]) <= int(row["switches"])
    study = read(str(out / "point-2.yaml"))
    assert study.name == "small-point-2"
    (case,) = study.cases
    assert case.topology.hosts == 36
    assert case.topology.switches == int(front[1]["switches"])
    cables = rows(out / "point-2-cables.csv")
    assert len(cables) == 36 + int(front[1]["cables"])
    assert json.loads((out / "point-2-topology.json").read_text())
    page = (out / "report.html").read_text()
    assert "What is proven" in page and "data:image" in page
    assert {path.stem for path in (out / "figures").iterdir()} == {"design", "cost"}
    before = (out / "front.csv").read_bytes()
    assert main(["design", file, "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (out / "front.csv").read_bytes() == before
    assert len(document["front"]) == len(front)
    assert sum(document["stages"].values()) == document["candidates"] == len(candidates)
    assert main(["design", file, "--out", str(out), "--write", "99"]) == 2
    assert "the front has points 1 to" in capsys.readouterr().err


def test_the_same_from_python():
    answer = design(36, 6, families=["rrg", "torus"], demands=["uniform", {"kind": "shift", "by": 3, "weight": 0}])
    assert list(answer.front["uniform.lower"]) == sorted(answer.front["uniform.lower"])
    assert {"rrg", "torus"} == set(answer.candidates["family"])
    assert "shift.upper" in answer.front
    assert answer.configuration(1)["topology"]["kind"] in ("rrg", "torus")
    assert "candidates" in repr(answer)


def test_leaves_of_split_ports_are_built():
    answer = design(61, {"ports": 8, "split": [1, 2]}, families=["leaf_spine", "clos"], planes=[1, 2])
    assert set(answer.candidates["stage"]) <= {"closed form", "built", "one solve", "solved", "front"}


PLUGIN = """
import numpy as np
from flitlab.models.registry import register
from flitlab.models.topology.candidates import flat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec


@register("topology", "necklace")
class Necklace(TopologySpec):
    n: int

    @classmethod
    def candidates(cls, equipment):
        for n in range(3, 9):
            yield from flat(equipment, {"kind": "necklace", "n": n}, n, 2, n)

    def graph(self):
        return Topology.from_links(self.kind, self.n, [(v, (v + 1) % self.n) for v in range(self.n)])
"""


def test_a_family_of_a_plugin_and_a_demand_of_a_file(tmp_path, monkeypatch):
    known = {category: dict(kinds) for category, kinds in registry._registered.items()}
    monkeypatch.setattr(registry, "_registered", known)
    (tmp_path / "necklace.py").write_text(PLUGIN)
    (tmp_path / "m.csv").write_text("src,dst,demand\n0,11,1\n3,7,0.5\n")
    demands = ["uniform", {"kind": "matrix", "path": "m.csv", "name": "pairs", "floor": 0.5}]
    keys = {"hosts": 12, "switches": [{"ports": 8}], "plugins": ["necklace.py"], "demands": demands}
    assert main(["design", written(tmp_path, keys), "--out", str(tmp_path / "out")]) == 0
    assert "necklace" in {row["family"] for row in rows(tmp_path / "out" / "candidates.csv")}
    assert all(float(row["pairs.upper"]) >= 0.5 for row in rows(tmp_path / "out" / "front.csv"))


@pytest.mark.long
def test_an_interrupted_design_goes_on(tmp_path, monkeypatch, capsys):
    """What was solved before the interruption is not solved again, and the answer is that of one run."""
    keys = {"families": ["clos", "rrg"], "demands": ["uniform"]}
    file, whole, part = written(tmp_path, keys), tmp_path / "whole", tmp_path / "part"
    assert main(["design", file, "--out", str(whole)]) == 0
    solved, calls = demands.solve, []

    def interrupted(*arguments, **named):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return solved(*arguments, **named)

    monkeypatch.setattr(demands, "solve", interrupted)
    assert main(["design", file, "--out", str(part)]) == 130
    assert len(list((part / SOLVED).iterdir())) == 4
    (part / SOLVED / "half.json").write_text("[0.5, ")
    assert main(["design", file, "--out", str(part)]) == 0
    first = len(list((whole / SOLVED).iterdir()))
    assert len(calls) == first + 1  # the interrupted solve was repeated, no other
    assert (part / "front.csv").read_bytes() == (whole / "front.csv").read_bytes()
    assert main(["design", file, "--out", str(part)]) == 0
    assert len(calls) == first + 1
    capsys.readouterr()


@pytest.mark.long
def test_certificates_of_the_front_are_confirmed(tmp_path, capsys):
    keys = {"families": ["clos", "rrg"], "demands": ["uniform", "worst", {"kind": "collective", "of": "all_reduce"}]}
    out = tmp_path / "out"
    assert main(["design", written(tmp_path, keys), "--out", str(out), "--certificates"]) == 0
    capsys.readouterr()
    assert main(["ceilings", "--verify", str(out / "certificates"), "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in verdicts} == {"confirmed"}
    front = rows(out / "front.csv")
    flows = {row["scenario"]: row for row in verdicts if row["ceiling"] == "mcf"}
    assert len(flows) == 2 * len(front)
    bounds = {row["scenario"]: row["proven_upper"] for row in verdicts if row["ceiling"] == "bounds:equipment"}
    for row in front:
        assert min(bounds[f"point {row['point']}, uniform"], 1.0) == pytest.approx(float(row["bound"]), rel=1e-12)
        proven = flows[f"point {row['point']}, uniform"]
        assert proven["proven_lower"] <= float(row["uniform.upper"]) * (1 + 1e-9)
        assert proven["proven_upper"] >= float(row["uniform.lower"]) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(KeyboardInterrupt(), 130, "interrupted"), (BrokenExecutor("gone"), 1, "a worker process died")],
)
def test_certificates_that_are_not_solved_are_no_success(tmp_path, capsys, monkeypatch, error, code, said):
    """They ended with exit code 0, and an index of fewer certificates."""

    def end(*_):
        raise error

    monkeypatch.setattr("flitlab.sim.experiment.runner.run_all", end)
    out = tmp_path / "out"
    assert main(["design", written(tmp_path, {"families": ["clos"]}), "--out", str(out), "--certificates"]) == code
    assert said in capsys.readouterr().err
    assert (out / "front.csv").exists() and (code == 1 or not (out / "certificates" / INDEX).exists())


def test_an_interrupted_simulation_of_points_is_no_result(tmp_path, monkeypatch):
    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("flitlab.sim.experiment.runner.run_all", end)
    words = ["--out", str(tmp_path / "out"), "--simulate"]
    assert main(["design", written(tmp_path, {"families": ["clos"]}), *words]) == 130


@pytest.mark.long
@pytest.mark.parametrize("by", ["prices", "both"])
def test_a_random_graph_is_improved_for_a_demand(tmp_path, capsys, by):
    """The lower end grows, ports and hosts stay, and the ceiling of the file that is written confirms the interval."""
    keys = {
        "hosts": 64, "switches": [{"ports": 8}], "families": ["rrg"], "limits": {"switches": 22},
        "demands": [{"kind": "shift", "by": 24, "name": "far"}],
        "improve": {"by": by, "steps": 2000, "solves": 20},
    }  # fmt: skip
    out = tmp_path / "out"
    assert main(["design", written(tmp_path, keys), "--out", str(out), "--json"]) == 0
    (sentence,) = [one for one in json.loads(capsys.readouterr().out)["sentences"] if "improved for far" in one]
    lower, before = map(float, re.findall(r"certainly ([\d.]+) instead of ([\d.]+)", sentence)[0])
    assert lower > before * 1.05
    (case,) = read(str(out / "improved.yaml")).cases
    assert case.topology.hosts == 64 and ports(case.topology).max() <= 8
    (row,) = ceilings(case.instance, [ceiling_spec("mcf", gap=0.001)])
    assert lower - 1e-3 <= row.upper
    assert row.lower <= float(re.search(r"at most ([\d.]+)", sentence)[1].rstrip(".")) + 1e-3


@pytest.mark.long
def test_what_is_measured_on_the_front():
    keys = {
        "families": ["clos", "rrg"], "failures": {"links": [0.05], "switches": [1], "seeds": 2}, "growth": 48,
        "limits": {"uniform": 0.8, "moved_cables": 0.3, "worst@switches=1": 0.3, "longest_cable_m": 20},
        "routings": ["minimal", {"kind": "ksp", "k": 4, "name": "four"}],
    }  # fmt: skip
    answer = design(36, 6, **keys)
    front = answer.front
    assert (front["uniform@links=0.05"] <= front["uniform.upper"]).all()
    assert (front["worst@links=0.05"] <= front["worst@links=0.05.mean"]).all()
    assert (front["worst@switches=1"] >= 0.3 * 0.98).all()
    assert (front["moved_cables"] <= 0.3).all() and (front["new_switches"] > 0).all()
    assert (front["uniform@hosts=48"] >= 0.8 * 0.98).all()
    assert (front["longest_cable_m"] <= 20).all() and (front["mean_cable_m"] <= front["longest_cable_m"]).all()
    assert (front["longest_latency_ns"] <= 300 * (front["diameter"] + 1) + 5 * front["cable_m"]).all()
    assert (front["latency_ns"] >= 300 * (front["mean_hops"] + 1)).all()
    assert (front["uniform@minimal"] - front["ecmp"]).abs().max() < 1e-9
    assert (front["uniform@four"] <= front["uniform.upper"] * (1 + 1e-9)).all()
    limits = answer.candidates[answer.candidates["stage"] == "limit"]["note"]
    assert not limits.empty
    assert limits.str.contains("moved_cables|worst@switches=1|longest_cable_m").all()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"families": ["rgg"]}, "d.yaml:3: families[0] = rgg: unknown family rgg; choices: clos"),
        ({"families": ["bcube"]}, "bcube cannot be searched: its hosts relay"),
        ({"families": [{"rrg": {"sed": 1}}]}, "d.yaml:4: families[0].rrg.sed = 1: rrg has no such key; choices: "),
        ({"families": [{"rrg": {"n": 12}}]}, "families[0].rrg.n = 12: is chosen by the search"),
        ({"families": [{"rrg": {"seed": -1}}]}, "families[0].rrg.seed = -1: must be greater"),
        ({"families": []}, "must have at least 1 item"),
        ({"families": {"rrg": 3}}, "must be the name of a family, or {NAME: {its keys}}"),
        ({"demands": [{"kind": "matrix", "path": "no.csv"}]}, "demands[0].path = no.csv: no such file"),
        ({"demands": [{"kind": "uniform", "weight": -1}]}, "demands[0].weight = -1: must be from 0"),
        ({"demands": [{"kind": "uniform", "floor": 2}]}, "demands[0].floor = 2: must be from 0 to 1"),
        ({"demands": [{"kind": "bit_reversal"}]}, "demands[0]"),
        ({"demands": [{"kind": "collective", "off": "all_reduce"}]}, "demands[0].off = all_reduce: unknown key"),
        ({"demands": [{"kind": "collective", "ranks": "switches"}]}, "demands[0].ranks = switches: must be hosts"),
        ({"growth": 30}, "growth = 30: must be more than the 36 hosts of today"),
        ({"growth": {"hosts": 72, "kep": 1}}, "growth.kep = 1: unknown key; choices: hosts, keep"),
        ({"layout": {"reach": -1}}, "layout.reach = -1: must be greater"),
        ({"routings": ["minimul"]}, "routings[0] = minimul: unknown routing"),
        ({"routings": ["ecmp", "ecmp"]}, "ecmp is listed twice"),
        ({"limits": {"uniform@links=0.1": 0.5}}, "unknown limit; choices: cost_per_host"),
        ({"improve": {"demand": "worst"}}, "improve.demand = worst: is no demand that stays as links change"),
        ({"prices": {"optic": -5}}, "must be 0 or more"),
        (
            {"limits": {"unform": 1}},
            "unknown limit; choices: cost_per_host, watts_per_host, cables, switches, diameter",
        ),
        ({"limits": {"uniform": 2}}, "must be from 0 to 1"),
        ({"demands": ["unifrom"]}, "unknown demand unifrom"),
        ({"demands": [{"kind": "shift", "buy": 3}]}, "demands[0].buy = 3: unknown key; choices: by, floor"),
        ({"demands": ["uniform", "uniform"]}, "listed twice"),
        ({"prices": {"optics": 3}}, "unknown key; choices: profile, gbps"),
        ({"prices": {"profile": "900g"}}, "unknown profile"),
        ({"link_gbps": 200}, "has no prices"),
        ({"planes": [2]}, "no multiple of 2 planes"),
        ({"switches": [{"ports": 2}]}, "hosts = 36: cannot be connected"),
        ({"host": 3}, "unknown key"),
    ],
)
def test_wrong_files(tmp_path, capsys, keys, message):
    assert main(["design", written(tmp_path, keys), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_no_network_can_meet_is_refused_with_the_proof(tmp_path, capsys):
    keys = {"hosts": 256, "switches": [{"ports": 16}], "limits": {"uniform": 1.0, "switches": 43}}
    assert main(["design", written(tmp_path, keys)]) == 2
    expected = (
        "no network reaches uniform 1 with fewer than 44 switches, however it is wired (docs/bounds.md): at least 44"
    )
    assert expected in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"cost 4\d{3} a host without links"):
        design_of(
            SMALL | {"hosts": 256, "switches": [{"ports": 16}], "limits": {"uniform": 1.0, "cost_per_host": 3000}}
        )
    request = design_of(SMALL | {"hosts": 1024, "switches": [{"ports": 32, "split": [2]}], "planes": [2]})
    assert least_of_all(request, 0.999)[0] == 64


def test_a_search_ends_with_its_budget(tmp_path, capsys):
    assert main(["design", written(tmp_path, {"budget_s": 1e-9}), "--out", str(tmp_path / "o")]) == 1
    assert "were not examined" in capsys.readouterr().out


def test_no_candidate_within_the_limits(tmp_path, capsys):
    assert main(["design", written(tmp_path, {"limits": {"diameter": 1}}), "--out", str(tmp_path / "o")]) == 1
    assert "no candidate meets the limits" in capsys.readouterr().err


def test_check_says_what_would_be_searched(tmp_path, capsys):
    file = written(tmp_path, {"limits": {"uniform": 0.9, "switches": 20}})
    assert main(["check", file]) == 0
    text = capsys.readouterr().out
    for part in ("small: design, 36 hosts", "optic 1200", "candidates, in closed form", "estimate: "):
        assert part in text
    assert main(["check", file, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    families = document["families"]
    assert sum(row["candidates"] for row in families) == document["candidates"]
    assert all(row["limit"] + row["floor"] + row["left"] == row["candidates"] for row in families)
    assert sum(row["left"] for row in families) == document["left"] > 0
    for row in document["promising"]:
        assert row["uniform <="] >= 0.9
    assert document["estimate"]["cpu_s"] > 0
    assert {path.name for path in tmp_path.iterdir()} == {"d.yaml"}


def test_other_commands_name_the_one_that_searches(tmp_path, capsys):
    (tmp_path / "fabric.yaml").write_text("experiment: design\nhosts: 64\nswitches: [{ports: 8}]\n")
    for command in ([], ["ceilings"]):
        assert main([*command, str(tmp_path / "fabric.yaml")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "fabric.yaml:1: experiment = design: is no simulation: simrun design" in line
