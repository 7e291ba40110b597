# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: what is tested and how, and what must not differ."""

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import ttest_ind

from flitlab.sim.cli import main
from flitlab.sim.cli.run import _print_points
from flitlab.sim.experiment.saturation import ceiling_of, limit_of
from flitlab.sim.measure.interval import MEANING
from flitlab.sim.report.compare import Estimate, compare, differ, draw
from flitlab.sim.report.compare_configs import Configuration, changed, differences
from flitlab.sim.report.folder.curves import curves
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.frames import load as load_of
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.answer import scenario_summaries
from flitlab.sim.report.html.tables import results

BASE = {
    "schema": 1, "name": "x", "experiment": "load_sweep", "engine": "compiled",
    "topology": {"kind": "imase", "n": 16, "degree": 3}, "routing": {"kind": "minimal"},
    "switching": {"mode": "vct", "vcs": 4, "buffer_flits": 8, "allocator": "age", "link_ticks": 1},
    "traffic": {"kind": "uniform", "packet_flits": 4}, "loads": [0.1, 0.5], "seeds": [1, 2, 3],
    "measure": {"ticks": 100},
}  # fmt: skip
DEFLECTION = {"mode": "deflection", "hold_packets": 12, "slotted": False}
LOADS = (0.1, 0.3, 0.5)


def change(config, path, value):
    """A copy with one key changed; None removes it."""
    copy = json.loads(json.dumps(config))
    node, last = copy, path.split(".")[-1]
    for part in path.split(".")[:-1]:
        node = node[part]
    node[last] = value
    return copy


def folder_of(
    path, config=BASE, label="x", latency=20.0, limit=0.45, seeds=(1, 2, 3), flit_ns=None, columns=(), noise=1
):
    """A run folder: accepted = load up to ``limit``; replicates differ a little."""
    path.mkdir(parents=True)
    (path / "config.resolved.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    labels = [label] if isinstance(label, str) else label
    manifest = {
        "name": path.name, "status": "done", "semantics_version": 2, "flit_ns": flit_ns, "columns": list(columns),
        "mean_rate": dict.fromkeys(labels, 1.0),
        "scenarios": [{"label": one, "topology": {"hash": "t"}, "traffic": {"hash": "d"}} for one in labels],
    }  # fmt: skip
    (path / "manifest.json").write_text(json.dumps(manifest))
    lines = ["scenario,load,seed,offered,accepted,latency_mean,saturated,deadlocked,status"]
    draws = np.random.default_rng(1)
    for one in labels:
        for load in LOADS:
            for seed in seeds:
                accepted = min(load, limit) * (1 + 0.002 * noise * draws.standard_normal())
                slow = latency * (1 + load) * (1 + 0.01 * noise * draws.standard_normal())
                lines.append(f'"{one}",{load},{seed},{load},{accepted},{slow},{load > limit},False,ok')
    (path / "results.csv").write_text("\n".join(lines) + "\n")
    (path / "ceilings.csv").write_text(
        "scenario,load,ceiling,lower,upper,unit,method,seconds,note\n"
        + "".join(f'"{one}",,mcf,0.7,0.7,load,exact,0,\n' for one in labels)
    )
    return path


def refusal(tmp_path, *configs, allow=(), columns=()):
    found = []
    for i, config in enumerate(configs):
        path = folder_of(tmp_path / str(i), config, columns=columns)
        found.append(Configuration.read(path, Run.read(path).manifest))
    return differences(found, allow)


def test_a_run_that_has_only_bounds_has_one_ceiling(tmp_path, capsys):
    """Saturation, the report, the comparison and saturation.csv all take the bound for the ceiling that it is."""
    folders = [folder_of(tmp_path / name) for name in "ab"]
    for folder, bound in zip(folders, (0.449, 0.5), strict=True):
        rows = f"x,,bounds,,{bound},load,closed form,0,\nx,,bounds:hosts,,{bound},load,closed form,0,\n"
        (folder / "ceilings.csv").write_text(f"scenario,load,ceiling,lower,upper,unit,method,seconds,note\n{rows}")
    run = Run.read(folders[0])
    assert run.limit("x") == limit_of({"bounds": 0.449}) == 0.449
    assert ceiling_of(run.ceiling_columns("x")) == ceiling_of({"bounds": 0.449}) == ("bounds", 0.449, 0.449)
    (standing,) = scenario_summaries(run)
    assert (standing.name, standing.ceiling) == ("bounds", "bounds 0.449") and standing.value <= 0.449 + 1e-12
    first, second = compare({"a": run, "b": Run.read(folders[1])}).document()
    assert first["quantities"]["saturation"]["value"] == standing.value
    assert first["ceilings"] == {"bounds": {"lower": None, "upper": 0.449, "differs": None}}
    assert second["ceilings"]["bounds"] == {"lower": None, "upper": 0.5, "differs": None}  # neither is proven to differ
    assert main(["compare", *map(str, folders), "--out", str(tmp_path / "c")]) == 0
    assert "at most 0.449" in capsys.readouterr().out


def test_bounds_are_no_ceiling_beside_one_that_can_be_reached(tmp_path):
    folder = folder_of(tmp_path / "a")
    with (folder / "ceilings.csv").open("a") as file:
        file.write("x,,bounds,,0.8,load,closed form,0,\nx,,mcf,0.5,0.6,load,approx,0,\n")
    run = Run.read(folder)
    assert compare({"a": run}).document()[0]["ceilings"] == {"mcf": {"lower": 0.7, "upper": 0.7, "differs": None}}
    assert run.limit("x") == 0.7  # of a ceiling that is there twice, the first counts, as in saturation.csv


@pytest.mark.parametrize("key", ["loads", "seeds", "name", "engine"])
def test_what_may_always_differ(tmp_path, key):
    assert refusal(tmp_path, BASE, change(BASE, key, [0.2] if key == "loads" else "other")) == []


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("topology.n", 32, "16 | 32"), ("switching.vcs", 8, "4 | 8"),
        ("traffic.kind", "transpose", "uniform | transpose"), ("measure.ticks", 200, "100 | 200"),
        ("topology.seed", 3, "- | 3"),
    ],
)  # fmt: skip
def test_what_must_not_differ_is_listed_or_allowed(tmp_path, key, value, shown):
    other = change(BASE, key, value)
    assert refusal(tmp_path / "a", BASE, other) == [f"{key}: {shown}"]
    for allowed in (key, key.partition(".")[0]):
        assert refusal(tmp_path / allowed, BASE, other, allow=[allowed]) == []


def test_what_was_swept_may_differ_with_what_follows(tmp_path):
    deflected = change(change(BASE, "routing", {"kind": "deflection"}), "switching", BASE["switching"] | DEFLECTION)
    assert refusal(tmp_path / "one", BASE, deflected) == ["routing.kind: minimal | deflection"]
    assert refusal(tmp_path / "two", BASE, deflected, columns=["routing"]) == []
    cases = {key: value for key, value in BASE.items() if key not in ("topology", "routing")}
    cases["cases"] = [
        {"label": str(n), "topology": BASE["topology"] | {"n": n}, "routing": BASE["routing"]} for n in (8, 16)
    ]
    assert refusal(tmp_path / "three", cases, BASE) == []
    assert refusal(tmp_path / "four", cases, change(BASE, "topology.degree", 4)) == ["topology.degree: 3 | 4"]


def test_a_file_that_has_changed_is_noticed(tmp_path):
    one, other = folder_of(tmp_path / "a"), folder_of(tmp_path / "b")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["scenarios"][0]["topology"]["hash"] = "another"
    found = [Configuration.read(path, given) for path, given in ((one, Run.read(one).manifest), (other, manifest))]
    (line,) = differences(found)
    assert line.startswith("topology: equal in the configurations, but another one was built")
    assert differences(found, ["topology"]) == []


def test_welch_by_hand():
    a, b = (3.0, 4.0, 5.0, 6.0), (5.0, 7.5, 8.0)
    # t = 2.3333 / sqrt(1.6667 / 4 + 2.5833 / 3) = 2.064, df = 3.8: the 5 % point is 2.84
    assert differ(Estimate(a), Estimate(b)) is False
    assert differ(Estimate(a), Estimate(tuple(x + 2 for x in b))) is True
    assert differ(Estimate(a), Estimate(tuple(x + 2 for x in b), resolution=3.0)) is False
    assert differ(Estimate((1.0, 1.0)), Estimate((1.0, 1.0))) is False
    assert differ(Estimate((1.0, 1.0)), Estimate((2.0, 2.0))) is True
    assert differ(Estimate((1.0,)), Estimate((2.0, 3.0))) is None
    half = 3.182446 * math.sqrt(5 / 3) / 2
    assert Estimate(a, 0.1).half == pytest.approx(half + 0.1)
    assert Estimate((3.0,), single_half=0.2).half == 0.2 and math.isnan(Estimate((3.0,)).half)


def test_welch_as_in_scipy():
    draws = np.random.default_rng(0)
    found = []
    for _ in range(200):
        a, b = draws.normal(size=4), draws.normal(2, 2, size=3)
        found.append(differ(Estimate(tuple(a)), Estimate(tuple(b))))
        assert found[-1] == (ttest_ind(a, b, equal_var=False).pvalue < 0.05)
    assert 20 < sum(found) < 180


def test_the_table(tmp_path):
    runs = {
        "slow": Run.read(folder_of(tmp_path / "slow", label=["r=1", "r=2"])),
        "fast": Run.read(folder_of(tmp_path / "fast", label=["r=2", "r=1"], latency=15.0)),
    }
    document = compare(runs).document()
    assert [(one["run"], one["scenario"], one["reference"]) for one in document] == [
        ("slow", "r=1", None), ("slow", "r=2", None),
        ("fast", "r=2", "run=slow, r=2"), ("fast", "r=1", "run=slow, r=1"),
    ]  # fmt: skip
    zero = document[2]["quantities"]["latency"]
    assert zero["at_load"] == 0.1 and zero["replicates"] == 3 and zero["significant"] is True
    assert zero["value"] == pytest.approx(15 * 1.1, rel=0.02) and zero["relative"] == pytest.approx(-0.25, abs=0.02)
    saturation = document[2]["quantities"]["saturation"]
    assert saturation["significant"] is False and 0.3 <= saturation["value"] <= 0.5
    assert saturation["ci95"] >= saturation["resolution"] > 0.02
    assert document[2]["ceilings"]["mcf"] == {"lower": 0.7, "upper": 0.7, "differs": False}


def test_one_seed_gives_no_test_and_says_so(tmp_path):
    runs = {name: Run.read(folder_of(tmp_path / name, seeds=(1,), latency=x)) for name, x in (("a", 20), ("b", 40))}
    quantity = compare(runs).document()[1]["quantities"]["latency"]
    assert quantity["significant"] is None and "too few replicates" in quantity["note"]
    assert math.isnan(quantity["ci95"]) and quantity["relative"] == pytest.approx(1, abs=0.05)


def test_flits_of_different_length_are_compared_in_ns(tmp_path):
    folders = {name: folder_of(tmp_path / name, flit_ns=ns, noise=0) for name, ns in (("a", 2.0), ("b", 1.0))}
    for folder in folders.values():
        with (folder / "ceilings.csv").open("a") as file:
            file.write("x,0.8,total,0.5,0.5,flits/tick/host,exact,0,\n")
    comparison = compare({name: Run.read(folder) for name, folder in folders.items()})
    first, second = comparison.document()
    ends = [(*total.offered, *total.accepted) for total in comparison.run.totals()]
    assert ends == [(0.8, 0.5), (1.6, 1.0)]  # in flits per tick of the first
    assert first["quantities"]["latency"]["value"] == pytest.approx(44.0)
    assert second["quantities"]["latency"]["value"] == pytest.approx(22.0)
    assert first["quantities"]["accepted_max"]["value"] == pytest.approx(0.225)
    assert second["quantities"]["accepted_max"]["value"] == pytest.approx(0.45)
    assert second["quantities"]["accepted_max"]["unit"] == "flit/ns/host"


def test_the_most_accepted_is_compared_only_where_both_saturate(tmp_path):
    """The same network, measured up to load 0.5 (it accepts 0.45), and up to 0.3."""
    folders = {name: folder_of(tmp_path / name) for name in "ab"}
    table = (folders["b"] / "results.csv").read_text().splitlines()
    (folders["b"] / "results.csv").write_text("\n".join(row for row in table if ",0.5," not in row) + "\n")
    quantity = compare({name: Run.read(folder) for name, folder in folders.items()}).document()[1]["quantities"]
    assert quantity["accepted_max"]["value"] == pytest.approx(0.3, rel=0.01)
    note = quantity["accepted_max"]["note"]
    assert quantity["accepted_max"]["significant"] is None and "run=b is not known to saturate" in note
    assert quantity["latency"]["significant"] is False


def test_the_most_accepted_is_of_one_load(tmp_path):
    """The largest of several noisy values of each seed would grow with the number of loads past saturation."""
    folder = folder_of(tmp_path / "a", noise=0)
    table = (folder / "results.csv").read_text().splitlines()
    rows = [f"x,{load},{seed},{load},{accepted},20,True,False,ok" for load, seed, accepted in (
        (0.6, 1, 0.46), (0.6, 2, 0.44), (0.6, 3, 0.44), (0.7, 1, 0.43), (0.7, 2, 0.46), (0.7, 3, 0.44), (0.8, 1, 0.49),
    )]  # fmt: skip
    (folder / "results.csv").write_text("\n".join([*table, *rows]) + "\n")
    estimate = compare({"a": Run.read(folder)}).scenarios[0].estimates["accepted_max"]
    assert estimate.values == pytest.approx((0.45, 0.45, 0.45))


def test_never_saturated(tmp_path):
    runs = {name: Run.read(folder_of(tmp_path / name, limit=0.6)) for name in "ab"}
    quantity = compare(runs).document()[1]["quantities"]["saturation"]
    assert quantity["note"].startswith("no saturation point, 0.") and quantity["significant"] is None


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder_of(Path("runs/a"), columns=["routing"])
    folder_of(Path("runs/b"), change(BASE, "topology.n", 32), latency=15.0)
    assert main(["compare", "runs/a", "runs/b"]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == ["topology.n: 16 | 32"]
    assert main(["compare", "runs/a", "runs/b", "--allow", "topology.n", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {Path(file).name for file in printed["figures"]} == {
        f"{kind}.{suffix}" for kind in ("latency_load", "accepted_load") for suffix in ("png", "svg")
    }
    assert all(Path(file).stat().st_size > 1000 for file in printed["figures"])
    assert main(["compare", "runs/a", "runs/b", "--allow", "topology"]) == 0
    out = capsys.readouterr().out
    assert "-25" in out and "*" in out and "differences are from run=a" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "no results to compare"),
        (["runs/a", "runs/a"], "given twice"),
        (["runs/a", "--allow", "topolgy"], "no run has this key"),
    ],
)
def test_what_cannot_be_compared(tmp_path, monkeypatch, capsys, arguments, problem):
    monkeypatch.chdir(tmp_path)
    folder_of(Path("runs/a"))
    assert main(["compare", *arguments]) == 2
    err = capsys.readouterr().err
    assert problem in err and len(err.splitlines()) == 1


def test_flows(tmp_path):
    def write(name, throughput):
        path = folder_of(tmp_path / name)
        head = "scenario,load,seed,host_throughput,throughput_mean,throughput_max,throughput_min,status"
        means = {seed: throughput + 0.001 * seed for seed in (1, 2, 3)}
        rows = [f"x,1.0,{seed},{mean},{mean},{mean},{throughput / 2},ok" for seed, mean in means.items()]
        (path / "results.csv").write_text("\n".join([head, *rows]) + "\n")
        return Run.read(path)

    one = compare({"tcp": write("tcp", 0.5), "mptcp": write("mptcp", 0.8)})
    quantities = one.document()[1]["quantities"]
    assert list(quantities) == ["host_throughput", "throughput_min"]
    assert quantities["host_throughput"]["significant"] is True
    assert quantities["host_throughput"]["difference"] == pytest.approx(0.3)
    assert [path.name for path in draw(one, tmp_path / "figures")] == ["throughput.png", "throughput.svg"]


def test_every_view_shows_the_same_interval(tmp_path, capsys):
    folder = tmp_path / "one"
    folder.mkdir()
    lines = ["scenario,load,seed,offered,accepted,latency_mean,latency_ci95,saturated,status"]
    points = [(x, seed) for x in (0.1, 0.2) for seed in (1, 2, 3)]
    lines += [f"x,{x},{seed},{x},{x},{100 + seed * 4},{900 * seed},False,ok" for x, seed in points]
    (folder / "results.csv").write_text("\n".join(lines) + "\n")
    run = Run.read(folder)
    expected = 4.302653 * 4 / math.sqrt(3)
    shown = compare({"one": run}).document()[0]["quantities"]["latency"]
    assert shown["ci95"] == pytest.approx(expected, rel=1e-5)
    latency = column("latency_mean")
    drawn = curves(run.rows, load_of, latency, column("latency_ci95"))[0]
    assert drawn.half == pytest.approx([expected] * 2, rel=1e-5)
    table = results(run)
    assert all("108 ± 9.9" in row for row in table.rows) and MEANING in table.caption
    rows = [{key: float(row[key]) for key in ("load", "latency_mean", "latency_ci95")} for row in run.rows]
    rows = [{**row, "saturated": False, "status": "ok"} for row in rows]
    _print_points("x", rows)
    assert "108 ± 9.9" in capsys.readouterr().out
    _print_points("x", rows[:1])
    assert "104 ± 900" in capsys.readouterr().out  # of a single seed, that over its batches


def test_what_was_changed_on_the_command_line_may_differ(tmp_path):
    configurations = []
    for name, changes, vcs in (("a", [], 4), ("b", ["--set switching.vcs=8", "--quick"], 8)):
        (tmp_path / name).mkdir()
        resolved = {**BASE, "switching": {**BASE.get("switching", {}), "vcs": vcs}}
        (tmp_path / name / "config.resolved.yaml").write_text(yaml.safe_dump(resolved))
        configurations.append(Configuration.read(tmp_path / name, {"changes": changes}))
    assert differences(configurations) == [] and changed(configurations) == ["switching.vcs: 4 | 8"]
    asked = [replace(one, changed=frozenset({"switching.buffer_flits"})) for one in configurations]
    assert differences(asked) == ["switching.vcs: 4 | 8"] and changed(asked) == []


def test_what_follows_from_ticks_may_differ_with_them(tmp_path):
    shorter = BASE | {"measure": {"ticks": 100, "max_ticks": 100}}
    longer = BASE | {"measure": {"ticks": 900, "max_ticks": 900}}
    assert refusal(tmp_path / "a", shorter, longer, allow=["measure.ticks"]) == []
    assert refusal(tmp_path / "b", shorter, longer, allow=["measure.max_ticks"]) == ["measure.ticks: 100 | 900"]


DAMAGE = {
    "cut within a line": ("results.csv", lambda text: text[:-20], "its last line is cut off"),
    "cut within the last cell": ("results.csv", lambda text: text[:-2], "its last line is cut off"),
    "cut within a quoted cell": ("results.csv", lambda text: text[: text.rindex('"')], "is damaged"),
    "a name is missing": ("results.csv", lambda text: text.replace(",accepted", ""), "row 1 has 9 cells"),
    "a cell is missing": ("results.csv", lambda text: text.replace(",0.5,1,", ",0.5,"), "there are 9 columns"),
    "a column twice": ("results.csv", lambda text: text.replace("offered", "seed"), "two columns are called 'seed'"),
    "NaN": ("results.csv", lambda text: text.replace(",0.5,1,0.5,", ",0.5,1,NaN,"), "offered = NaN: must be a number"),
    "text": ("results.csv", lambda text: text.replace(",0.5,1,", ",0.5,one,"), "seed = one: must be a number"),
    "NaN in a ceiling": ("ceilings.csv", lambda text: text.replace("0.7,0.7", "0.7,nan"), "upper = nan: must be"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_tables(tmp_path, capsys, name):
    table, damage, problem = DAMAGE[name]
    folders = [folder_of(tmp_path / one, noise=1) for one in "ab"]
    text = (folders[1] / table).read_text()
    (folders[1] / table).write_text(damage(text))
    assert damage(text) != text
    assert main(["compare", *map(str, folders), "--out", str(tmp_path / "c")]) == 2
    found = capsys.readouterr()
    assert found.err.startswith(f"simrun compare: {folders[1] / table}: ") and problem in found.err and not found.out
    assert not (tmp_path / "c").exists()


def test_whole_lines_are_missing(tmp_path, capsys):
    """What no table shows, the digest in the manifest does."""
    folders = [folder_of(tmp_path / one) for one in "ab"]
    table = folders[1] / "results.csv"
    manifest = json.loads((folders[1] / "manifest.json").read_text())
    manifest["tables"] = {"results.csv": hashlib.sha256(table.read_bytes()).hexdigest()}
    (folders[1] / "manifest.json").write_text(json.dumps(manifest))
    assert main(["compare", *map(str, folders), "--out", str(tmp_path / "c")]) == 0
    capsys.readouterr()
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-3]))
    assert main(["compare", *map(str, folders), "--out", str(tmp_path / "d")]) == 2
    assert capsys.readouterr().err == (
        f"simrun compare: {table}: is not as the run wrote it; repeat the command of the run to restore it\n"
    )


def test_another_semantics_version(tmp_path, capsys):
    folders = [folder_of(tmp_path / one) for one in "ab"]
    manifest = json.loads((folders[1] / "manifest.json").read_text())
    (folders[1] / "manifest.json").write_text(json.dumps({**manifest, "semantics_version": 1}))
    assert main(["compare", *map(str, folders), "--out", str(tmp_path / "c")]) == 2
    assert "semantics_version: 2 | 1" in capsys.readouterr().err
