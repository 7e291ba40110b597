# SPDX-License-Identifier: Apache-2.0
"""``experiment: metrics``: each topology measured once, resumed, in any number of processes, with a plugin's metric."""

import csv
import json

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config import components
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import run

PLUGIN = """
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register

@register("metric", "odd_one")
class OddOne(MetricSpec):
    '''Switches times a factor.'''
    factor: int = 1

    def measure(self, topology):
        if topology.switches == 13:
            raise ValueError("thirteen is unlucky")
        return {"": topology.switches * self.factor, "list": [topology.switches]}
"""

CONFIG = """\
experiment: metrics
topology: {kind: imase, n: {sweep: {from: 10, to: 12, step: 1}}, degree: 2}
metrics: [odd_one, {kind: odd_one, factor: 3, label: three}]
plugins: [odd.py]
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(PLUGIN)

    def write(text=CONFIG):
        (tmp_path / "c.yaml").write_text(text)
        return "c.yaml"

    return write


def table(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_rows_are_the_same_in_any_number_of_processes(config, tmp_path):
    study = read(config())
    alone, together = (run(study, tmp_path / str(jobs), RunOptions(jobs)) for jobs in (1, 2))
    assert alone.exit_code == together.exit_code == 0
    assert (tmp_path / "1/metrics.csv").read_bytes() == (tmp_path / "2/metrics.csv").read_bytes()
    rows = table(tmp_path / "1")
    assert [row["topology.n"] for row in rows] == ["10", "11", "12"]
    assert [row["odd_one"] for row in rows] == ["10", "11", "12"]
    assert [row["three"] for row in rows] == ["30", "33", "36"]
    assert [json.loads(row["three_list"]) for row in rows] == [[10], [11], [12]]
    assert {row["status"] for row in rows} == {"ok"}


def test_a_second_run_measures_only_what_is_missing(config, tmp_path, monkeypatch):
    study = read(config())
    run(study, tmp_path / "out")
    points = sorted((tmp_path / "out/points").iterdir())
    assert len(points) == 3
    points[0].unlink()
    kept = {path: path.stat().st_mtime_ns for path in points[1:]}
    before = (tmp_path / "out/metrics.csv").read_bytes()
    run(study, tmp_path / "out")
    assert (tmp_path / "out/metrics.csv").read_bytes() == before
    assert points[0].exists()
    assert {path: path.stat().st_mtime_ns for path in points[1:]} == kept


@pytest.mark.long
def test_one_topology_that_cannot_be_measured_leaves_the_others(config, tmp_path):
    report = run(read(config(CONFIG.replace("to: 12", "to: 13"))), tmp_path / "out", RunOptions(2))
    assert report.exit_code == 1
    assert report.problems == ["n=13: thirteen is unlucky; thirteen is unlucky"]
    rows = table(tmp_path / "out")
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "partial"]
    assert rows[3]["message"] == "thirteen is unlucky; thirteen is unlucky"
    assert (rows[3]["switches"], rows[3]["odd_one"]) == ("13", "")


def test_topologies_are_forgotten_and_built_again(config, tmp_path, monkeypatch):
    monkeypatch.setattr(components, "MAX_CACHED_CHANNELS", 30)
    study = read(config())
    first = study.cases[0].topology
    assert study.cases[2].topology.switches == 12
    assert study.cases[0].topology is not first
    assert study.cases[0].topology.content_hash == first.content_hash


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        ("[odd_one, odd_one]", "c.yaml:3: metrics[1] = odd_one: odd_one is listed twice: give one a label"),
        ("[odd_on]", "c.yaml:3: metrics[0] = odd_on: unknown metric; choices: "),
        ("[{kind: odd_one, factor: x}]", "c.yaml:3: metrics[0].factor = x: must be a valid integer"),
        ("[{kind: odd_one, foo: 1}]", "c.yaml:3: metrics[0].foo = 1: unknown key; choices: "),
        ("odd_one", "c.yaml:3: metrics = odd_one: must be a list"),
        ("[{kind: odd_one, label: aspl}]", "c.yaml:3: metrics[0].label = aspl: is the name of a column that every"),
        ("[{kind: odd_one, factor:3}]", "metrics[0].factor:3 = null: unknown key; a space must follow the colon"),
    ],
)
def test_mistakes_in_metrics(config, capsys, metrics, problem):
    text = CONFIG.replace("[odd_one, {kind: odd_one, factor: 3, label: three}]", metrics)
    assert main(["check", config(text)]) == 2
    assert problem in capsys.readouterr().err


def test_metrics_on_the_command_line(config, capsys):
    read(config())  # loads the plugin
    assert main(["topology", "kind=torus,dims=[3,3]", "--json", "--metrics", "{kind: odd_one, factor: 2}"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["odd_one"] == 18
    assert measured["diameter"] == 2
    assert main(["topology", "kind=imase,n=13,degree=2", "--metrics", "odd_one"]) == 1
    assert "thirteen is unlucky" in capsys.readouterr().err
    assert main(["topology", "kind=imase,n=13,degree=2", "--metrics", "[["]) == 2
    assert main(["topology", "kind=imase,n=13,n=14,degree=2"]) == 2
    assert "n=14: duplicate key" in capsys.readouterr().err


def test_equal_graphs_keep_their_kinds(config, tmp_path):
    text = "experiment: metrics\ntopology: {sweep: [{kind: hypercube, dim: 3}, {kind: torus, dims: [2, 2, 2]}]}\n"
    assert run(read(config(text)), tmp_path / "out").exit_code == 0
    assert [row["kind"] for row in table(tmp_path / "out")] == ["hypercube", "torus"]


def test_constants_are_a_profile_or_a_file_beside_the_configuration(tmp_path):
    (tmp_path / "mine.yaml").write_text("profile: 800g\nswitch: {per_port: 1}\n")
    text = (
        "experiment: metrics\ntopology: {kind: torus, dims: [4], hosts_per_switch: 2}\n"
        "metrics: [{kind: cost, constants: 800g}, {kind: cost, constants: mine.yaml, label: own}]\n"
    )
    by_profile, by_file = (spec.constants for spec in read(tmp_path / "c.yaml", text=text).cases[0].metrics)
    assert (by_profile.switch.per_port, by_file.switch.per_port) == (1560, 1)
    assert by_profile.cable == by_file.cable
