# SPDX-License-Identifier: Apache-2.0
"""A column with a figure takes two files: where it is measured, and how it is drawn."""

import csv
import json
import sys
from pathlib import Path

import pytest
import yaml

from flitlab import Experiment
from flitlab.sim.cli import main
from flitlab.sim.measure.columns import registry as columns
from flitlab.sim.report.figures import registry as figures
from tests import ROOT, long_after

TOYS = ROOT / "tests" / "toys" / "column"
FILES = ["heard.py", "heard_load.py"]
CONFIG = {
    "topology": {"kind": "torus", "dims": [2, 2]}, "routing": {"kind": "dor"}, "traffic": {"kind": "uniform"},
    "loads": [0.1, 0.2], "seeds": [1, 2], "measure": {"warmup": 10, "ticks": 20, "ci": None}, "engine": "reference",
    "ceilings": [], "outputs": {"figures": ["latency_load", "heard_load"]},
    "plugins": [str(TOYS / name) for name in FILES],
}  # fmt: skip


IMPORTS = """\
from flitlab.sim.measure.columns.registry import column
from flitlab.sim.report.figures.registry import figure
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the configuration; what the plugins register is forgotten again."""
    monkeypatch.chdir(tmp_path)
    columns.columns("packets")
    monkeypatch.setattr(columns, "_registered", {table: dict(found) for table, found in columns._registered.items()})
    figures.figures()
    monkeypatch.setattr(figures, "_registered", dict(figures._registered))
    write(CONFIG)
    yield tmp_path
    for name in [*FILES, "other.py"]:
        sys.modules.pop(f"flitlab_plugin_{Path(name).stem}", None)


def write(config):
    Path("toy.yaml").write_text(yaml.safe_dump(config))


def without(*keys, **more):
    return {key: value for key, value in CONFIG.items() if key not in keys} | more


def header(folder="run"):
    with (Path(folder) / "results.csv").open() as file:
        return next(csv.reader(file))


def run(*more, jobs="1"):
    return main(["toy.yaml", "--out", "run", "--jobs", jobs, *more])


@pytest.mark.parametrize("jobs", long_after(1, ["1", "2"]))
def test_a_column_with_a_figure_is_two_files(here, capsys, jobs):
    assert run(jobs=jobs) == 0
    assert "hosts_heard" in header()
    found = Experiment.open("run")
    assert set(found.results["hosts_heard"]) <= {0, 0.25, 0.5, 0.75, 1} and found.results["hosts_heard"].nunique() > 1
    assert found.columns.loc["hosts_heard", "meaning"] == "Share of the hosts of which a flit arrived in the window."
    assert found.columns.loc["hosts_heard", "label"] == "share of hosts that are heard"
    page = Path("run/report.html").read_text("utf-8")
    assert '<th scope="col">hosts_heard' in page and "Hosts that are heard over offered traffic." in page
    assert {file.name for file in Path("run/figures").glob("heard_load.*")} == {
        "heard_load.png",
        "heard_load.svg",
    }
    axes = Experiment.open("run").plot("heard_load")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "offered traffic (flit/tick/host)", "share of hosts that are heard",
    )  # fmt: skip
    assert len(axes.lines[0].get_xdata()) == 2
    capsys.readouterr()
    plugins = [word for name in FILES for word in ("--plugin", str(TOYS / name))]
    assert main(["list", *plugins, "column"]) == 0 and "hosts_heard" in capsys.readouterr().out
    assert main(["list", *plugins, "figure"]) == 0 and "heard_load" in capsys.readouterr().out
    assert main(["show", *plugins, "hosts_heard"]) == 0 and "a flit arrived" in capsys.readouterr().out
    write(without(engine="both"))
    assert main(["toy.yaml", "--out", "both", "--jobs", "1", "--set", "outputs.html=false"]) == 0
    ours, theirs = Experiment.open("run").results, Experiment.open("both").results
    assert ours["hosts_heard"].equals(theirs["hosts_heard"])


def test_json_has_it(here, capsys):
    assert run("--json") == 0
    assert all("hosts_heard" in row for row in json.loads(capsys.readouterr().out)["results"])


def test_only_runs_that_list_the_plugin_have_the_column(here):
    write(without("plugins", outputs={"figures": [], "html": False}))
    assert run() == 0
    before = header()
    write(CONFIG)
    assert main(["toy.yaml", "--out", "other", "--jobs", "1"]) == 0
    write(without("plugins", outputs={"figures": [], "html": False}))
    assert main(["toy.yaml", "--out", "third", "--jobs", "1"]) == 0  # the same process still has it registered
    assert header("third") == before and "hosts_heard" not in before
    assert not any("hosts_heard" in path.read_text() for path in Path("third/points").iterdir())


def test_points_without_the_column_are_simulated_again(here):
    plain = without("plugins", outputs={"figures": [], "html": False})
    write(plain)
    assert run() == 0
    write(CONFIG)
    assert run() == 0 and "hosts_heard" in header()
    assert Experiment.open("run").results["hosts_heard"].notna().all()
    write(plain)
    assert run() == 0 and "hosts_heard" not in header()


def test_points_with_the_column_of_an_older_file_are_simulated_again(here):
    file = Path("mine.py")
    write(without(plugins=["mine.py"], outputs={"figures": [], "html": False}))
    for value in (1, 20):  # Python takes a file of the same size and second for the same
        file.write_text(f"{IMPORTS}@column('packets', 'mine')\ndef mine(window): return {value}\n")
        sys.modules.pop("flitlab_plugin_mine", None)
        assert run() == 0
        assert set(Experiment.open("run").results["mine"]) == {value}
    sys.modules.pop("flitlab_plugin_mine", None)


def test_a_name_that_another_table_has_is_no_loss_there(here):
    """Of flows, ``latency_mean`` is free; packets have it whatever a plugin of another run calls its columns."""
    plain = {"figures": [], "html": False}
    Path("other.py").write_text(f"{IMPORTS}@column('flows', 'latency_mean')\ndef f(counted): return 1\n")
    write(without(plugins=["other.py"], outputs=plain))
    assert run() == 0
    write(without("plugins", outputs=plain))
    assert main(["toy.yaml", "--out", "third", "--jobs", "1"]) == 0
    assert header("third") == header() and Experiment.open("third").results["latency_mean"].notna().all()


def test_the_figure_is_drawn_again_by_a_process_that_has_not_loaded_the_plugin(here, monkeypatch, capsys):
    assert run() == 0
    monkeypatch.setattr(figures, "_registered", {k: v for k, v in figures._registered.items() if k != "heard_load"})
    for name in FILES:
        sys.modules.pop(f"flitlab_plugin_{Path(name).stem}", None)
    first = Path("run/figures/heard_load.png").read_bytes()
    Path("run/figures/heard_load.png").unlink()
    assert main(["plot", "run"]) == 2 and "--trust-plugins" in capsys.readouterr().err
    assert not Path("run/figures/heard_load.png").exists()
    assert main(["plot", "run", "--trust-plugins"]) == 0
    assert Path("run/figures/heard_load.png").read_bytes() == first


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("@column('packets', 'jain')\ndef f(window): return 1", "column 'jain' of packets is registered already"),
        ("@column('packets', 'odd')\ndef f(window): return [1]", "'odd': must be a number or a text, and is a list"),
        ("@column('packets', 'odd')\ndef f(window): return 1 / 0", "ZeroDivisionError"),
        ("@figure('latency_load', 'packets')\ndef f(*_): pass", "figure 'latency_load' is registered already"),
        ("@figure('steps', 'packets')\ndef steps(*_): pass", "figure 'steps' is registered already"),
    ],
)  # fmt: skip
def test_what_a_plugin_does_wrong_is_said(here, text, problem, capsys):
    Path("other.py").write_text(f"{IMPORTS}\n{text}\n")
    write(without(plugins=["other.py"], outputs={"figures": [], "html": False}))
    assert run() in (1, 2)
    assert problem in capsys.readouterr().err


def test_a_figure_that_does_not_exist_is_a_mistake_of_the_configuration(here, capsys):
    write(without(outputs={"figures": ["herd_load"]}))
    assert run() == 2
    error = capsys.readouterr().err
    assert "outputs.figures[0] = herd_load: is not one of the choices" in error and "heard_load" in error
    assert not Path("run").exists()


def test_built_in_figures_are_the_files_of_their_names():
    kinds = {file.stem for file in (ROOT / "sim/report/figures/kinds").glob("*.py")} - {"__init__"}
    assert kinds == {name for name, kind in figures.figures().items() if kind.draw.__module__.startswith("flitlab.")}


def test_every_column_says_what_it_means():
    for table in columns._registered:
        for name, one in columns.columns(table).items():
            assert one.meaning.endswith("."), f"{table}.{name}"
