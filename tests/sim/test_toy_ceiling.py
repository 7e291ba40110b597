# SPDX-License-Identifier: Apache-2.0
"""A ceiling is one file: a user's own goes wherever the built-in ones do."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from flitlab.fluid.kinds import spec
from flitlab.fluid.kinds.spec import CeilingSpec, column_label, kind_of
from flitlab.models import registry
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.certificates import INDEX, sha256
from flitlab.sim.report.figures.draw import figure_of
from flitlab.sim.report.folder.run import Run
from tests import ROOT

TOY = ROOT / "tests/toys/ceiling.py"
CONFIG = f"""\
name: toy
plugins: [{TOY}]
topology: {{kind: torus, dims: [3, 3], hosts_per_switch: 2}}
routing: {{kind: minimal}}
switching: {{vcs: 8, buffer_flits: 8}}
traffic: {{kind: all_to_all, packet_flits: 2}}
loads: [0.2, 0.4]
measure: {{warmup: 50, ticks: 200, ci: null}}
engine: reference
ceilings: [mcf, {{kind: one_hop, usable: 0.4}}]
outputs: {{figures: [accepted_load], formats: [png]}}
"""
BOUND = 0.4 * 36 / (18 * 16 / 17)
"""0.4 of 9 x 4 channels, over what 18 hosts send to the 16 of 17 others that are at other switches."""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Writes the configuration; the toy is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    registry.names("ceiling")
    monkeypatch.setitem(registry._registered, "ceiling", dict(registry._registered["ceiling"]))
    monkeypatch.delitem(sys.modules, "flitlab_plugin_ceiling", raising=False)
    Path("toy.yaml").write_text(CONFIG)
    yield "toy.yaml"
    sys.modules.pop("flitlab_plugin_ceiling", None)


def rows_of(folder):
    with (Path(folder) / "ceilings.csv").open(newline="") as file:
        return {row["ceiling"]: row for row in csv.DictReader(file)}


def lines(run):
    (ax,) = figure_of(run, "accepted_load").axes
    places = sorted(line.get_xdata()[0] for line in ax.lines if line.get_gid() == "ceiling")
    return places, {text.get_text() for text in ax.texts if text.get_gid() == "theta"}


def test_it_is_a_line_in_the_figure_rows_in_the_table_and_in_the_report(toy):
    assert main([toy, "--out", "out", "--jobs", "1"]) == 0
    rows = rows_of("out")
    assert list(rows) == ["mcf", "one_hop", "one_hop:capacity"]
    assert rows["one_hop"]["lower"] == "" and float(rows["one_hop"]["upper"]) == pytest.approx(BOUND)
    assert float(rows["mcf"]["upper"]) <= BOUND / 0.4
    places, names = lines(Run.read(Path("out")))
    assert names == {"mcf", "one_hop"} and any(place == pytest.approx(BOUND) for place in places)
    assert list(Path("out").rglob("accepted_load.png"))
    html = next(Path("out").rglob("*.html")).read_text("utf-8")
    assert "one_hop:capacity" in html and "all channels / all demand" in html
    del registry._registered["ceiling"]["one_hop"]  # as in a process that has not loaded the plugin
    assert kind_of("one_hop") is CeilingSpec and lines(Run.read(Path("out"))) == (places, names)


def test_it_is_what_saturation_is_compared_with_where_nothing_else_is_known(toy):
    changes = ["--set", "ceilings=[one_hop]", "--set", "loads=[0.4, 1.0]"]
    assert main([toy, "--out", "out", "--jobs", "1", *changes]) == 0
    assert "of the load that channels could carry if all paths were one hop long" in next(
        Path("out").rglob("*.html")
    ).read_text("utf-8")


@pytest.mark.long
def test_it_is_computed_alone_and_in_other_processes(toy, capsys):
    assert main(["ceilings", toy, "--jobs", "2", "--json"]) == 0
    found = {row["ceiling"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["one_hop"]["upper"] == pytest.approx(BOUND) and found["one_hop"]["lower"] is None
    assert found["one_hop:capacity"]["unit"] == "flits/tick"


def test_its_certificate_is_saved_and_confirmed(toy, capsys):
    assert main(["ceilings", toy, "--jobs", "1", "--save", "proofs"]) == 0
    (file,) = Path("proofs").rglob("*-one_hop.npz")
    assert set(np.load(file)) == {"topology", "traffic", "routes", "ceiling", "load", "lower", "upper", "capacity"}
    capsys.readouterr()
    assert main(["ceilings", "--verify", "proofs", "--trust-plugins", "--json"]) == 0
    verdicts = {row["ceiling"]: row for row in json.loads(capsys.readouterr().out)}
    assert verdicts["one_hop"]["claim"] == f"theta <= {BOUND:.9g}, by any routing"


MUTATIONS = {
    "a lower bound": ({"upper": BOUND * 0.99}, "not proven: upper end"),
    "one channel less": ({"capacity": np.append(np.full(35, 0.4), 0.3)}, "is not its usable part"),
    "all channels less": ({"capacity": np.full(36, 0.3), "upper": BOUND * 0.75}, "is not its usable part"),
    "no array": ({"capacity": np.zeros(0)}, "is not its usable part"),
    "whole numbers": ({"capacity": np.ones(36, int)}, "capacity must be numbers"),
    "more arrays": ({"network": np.ones(36)}, "it has unknown arrays"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_certificate_is_rejected(toy, capsys, name):
    changes, reason = MUTATIONS[name]
    assert (
        main(["ceilings", toy, "--jobs", "1", "--save", "proofs", "--set", "ceilings=[{kind: one_hop, usable: 0.4}]"])
        == 0
    )
    (file,) = Path("proofs").rglob("*.npz")
    with np.load(file) as arrays:
        np.savez(file, **dict(arrays) | changes)
    index = json.loads(Path("proofs", INDEX).read_text())
    index["certificates"][0] |= {"sha256": sha256(file)} | {key: changes[key] for key in ("upper",) if key in changes}
    Path("proofs", INDEX).write_text(json.dumps(index))
    capsys.readouterr()
    assert main(["ceilings", "--verify", "proofs", "--trust-plugins", "--json"]) == 3
    (row,) = json.loads(capsys.readouterr().out)
    assert reason in row["verdict"]


def test_it_is_a_column_of_the_experiment_ceilings(toy):
    assert main([toy, "--out", "out", "--jobs", "1", "--set", "experiment=ceilings"]) == 0
    run = Run.read(Path("out"))
    assert float(run.metrics[0]["one_hop"]) == pytest.approx(BOUND)
    assert column_label("one_hop") == ("one channel per flit", spec.THETA)
    assert column_label("one_hop:capacity") == ("one channel per flit, capacity", "")


def test_list_show_and_check_know_it(toy, capsys):
    assert main(["list", "ceiling", "--plugin", str(TOY)]) == 0
    assert "one_hop        All channels over all demand" in capsys.readouterr().out
    assert main(["show", "ceiling", "one_hop", "--plugin", str(TOY)]) == 0
    told = capsys.readouterr().out
    assert "usable" in told and "float" in told and "per_flow" not in told
    assert main(["check", toy, "--json"]) == 0
    (scenario,) = json.loads(capsys.readouterr().out)["scenarios"]
    assert scenario["ceilings"] == ["mcf", "one_hop"] and scenario["estimate"]["ceilings_cpu_s"]["one_hop"] >= 0


def test_the_reference_describes_it(toy, monkeypatch):
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from reference import components

    assert "## one_hop" not in components("ceiling")
    read(toy)
    page = components("ceiling")
    assert "## one_hop\n\n`ceilings: [one_hop]`" in page and "| `usable` | float (0, 1] | `1.0` |" in page


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{kind: one_hop, usable: 2}", "ceilings[0].usable = 2: must be less than or equal to 1"),
        ("{kind: one_hop, usabel: 1}", "ceilings[0].usabel = 1: unknown key; choices: kind, usable; did you mean"),
        ("{kind: one_hop, gap: 0.1}", "gap goes with mcf, mcf_paths, total, decomposition, utilisation, collective,"),
        ("{kind: mcf, usable: 1}", "usable goes with one_hop, not with mcf"),
        ("one_hpo", "ceilings[0] = one_hpo: unknown ceiling"),
    ],
)
def test_its_keys_are_its_own(toy, entry, message):
    with pytest.raises(ConfigError) as error:
        read(toy, sets=[f"ceilings=[{entry}]"])
    assert message in str(error.value)


def test_rows_of_another_name_are_refused(toy, capsys):
    Path("odd.py").write_text(TOY.read_text().replace('value("one_hop",', 'value("two_hops",'))
    Path(toy).write_text(CONFIG.replace(str(TOY), "odd.py").replace("mcf, ", ""))
    assert main(["ceilings", toy, "--jobs", "1"]) == 1
    assert "a row of ceiling one_hop is called 'two_hops'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("3", "rows() must return a Ceiling, not int"),
        ('Ceiling.value("one_hop", 2.0, 1.0, "load", "x")', "one_hop: its lower end 2 is above its upper end 1"),
        ('Ceiling.value("one_hop", math.nan, math.nan, "load", "x")', "one_hop has neither a lower nor an upper end"),
        ('instance.topology.capacity.put(0, 9) or Ceiling.value("one_hop", 1, 1, "load", "x")', "changes the topology"),
    ],
)
def test_what_is_no_row_is_refused(toy, capsys, row, problem):
    text = TOY.read_text()
    place = text.index("        bound = Ceiling.value(")
    Path("odd.py").write_text(text[:place] + f"        yield {row}\n")
    Path(toy).write_text(CONFIG.replace(str(TOY), "odd.py").replace("mcf, ", ""))
    assert main(["ceilings", toy, "--jobs", "1"]) == 1
    assert problem in capsys.readouterr().err
