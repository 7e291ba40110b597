# SPDX-License-Identifier: Apache-2.0
"""The Python interface: the same names, tables and messages as the command line, in a folder or in memory."""

import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from flitlab import Experiment, RunError
from flitlab.models.registry import make
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.exit import ExitCode
from tests import ROOT

SCENARIO = {
    "name": "tiny",
    "topology": {"kind": "imase", "n": 8, "degree": 3, "hosts_per_switch": 2},
    "routing": {"sweep": [{"kind": "minimal"}, {"kind": "deflection"}]},
    "switching": {"vcs": 4, "header_ticks": 2},
    "traffic": {"kind": "uniform", "packet_flits": 3},
    "loads": [0.1, 0.3],
    "seeds": [1, 2],
    "measure": {"warmup": 100, "ticks": 300, "ci": None},
    "ceilings": ["mcf", "split"],
    "engine": "reference",
}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """One that has run."""
    return Experiment.load(SCENARIO).run(tmp_path_factory.mktemp("runs") / "tiny", jobs=1)


def test_importing_flitlab_imports_nothing_that_can_wait():
    heavy = {"pandas", "matplotlib", "scipy.special", "rich"}
    code = f"""import flitlab, sys; dir(flitlab); print(sorted({heavy | {"numpy", "yaml"}} & set(sys.modules)))
from flitlab import Experiment, ceiling
print(sorted({heavy | {"networkx", "asyncio", "flitlab.sim.report.figures.draw"}} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n[]\n", done.stderr


def test_a_name_that_is_not_there_is_no_module():
    with pytest.raises(ImportError):
        from flitlab.sim import nothing  # noqa: F401


def test_results_are_those_of_the_command_line(experiment, tmp_path):
    import yaml

    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(SCENARIO | {"outputs": {"figures": [], "html": False}}))
    assert main([str(tmp_path / "tiny.yaml"), "--out", "there", "--jobs", "1"]) == 0
    for frame, name in ((experiment.results, "results.csv"), (experiment.ceilings, "ceilings.csv")):
        table = pd.read_csv(tmp_path / "there" / name)
        assert list(frame.columns) == list(table.columns) and len(frame) == len(table)
        pd.testing.assert_frame_equal(frame.drop(columns=["cpu_s", "seconds"], errors="ignore"),
                                      table.drop(columns=["cpu_s", "seconds"], errors="ignore"))  # fmt: skip


def without_seconds(frame):
    return frame.drop(columns=["cpu_s", "seconds"], errors="ignore")


def test_a_run_in_memory_writes_nothing_and_gives_the_same(experiment, tmp_path):
    within = Experiment.load(SCENARIO).run(jobs=1)
    assert not list(tmp_path.iterdir()) and within.folder is None and "in memory" in repr(within)
    for name in ("results", "ceilings", "saturation"):
        one, other = getattr(within, name), getattr(experiment, name)
        pd.testing.assert_frame_equal(without_seconds(one), without_seconds(other))
        assert one.attrs == other.attrs
    assert within.columns.equals(experiment.columns)
    assert within.dataset().drop_vars("cpu_s").identical(experiment.dataset().drop_vars("cpu_s"))
    plt.switch_backend("Agg")
    lines = [[line.get_xydata() for line in one.plot("latency_load").lines] for one in (within, experiment)]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*lines, strict=True)) and lines[0]
    plt.close("all")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match=r"memory: this run has no flows\.csv; it has ceilings\.csv"):
        _ = within.flows


@pytest.mark.long
def test_what_was_computed_in_memory_is_kept_in_a_folder(experiment, monkeypatch):
    within = Experiment.load(SCENARIO).run(jobs=1)
    from flitlab.sim.experiment import task

    monkeypatch.setattr(task, "failure", lambda error: pytest.fail(f"computed again: {error}"))
    before = within.results
    kept = within.run(out="kept", jobs=1)
    assert kept.folder.name == "kept" and kept.results["cpu_s"].equals(before["cpu_s"])
    assert main(["report", "kept"]) == 0
    assert Experiment.open("kept").results.equals(before)


def test_units_and_meanings_are_with_the_frame(experiment):
    attrs = experiment.results.attrs
    assert attrs["units"]["accepted"] == "flits/tick/host" and attrs["units"]["latency_mean"] == "ticks"
    assert attrs["meaning"]["accepted"] == "Flits that hosts received."
    assert experiment.columns.loc["accepted", "unit"] == "flits/tick/host"
    assert "lower" in experiment.ceilings.attrs["meaning"]


def test_datasets_hold_every_row_at_its_place(experiment):
    data, frame = experiment.dataset(), experiment.results
    assert list(data.sizes.items()) == [("routing", 2), ("load", 2), ("seed", 2)]
    assert list(data.routing.values) == ["minimal", "deflection"], "not in the order of the sweep"
    for row in frame.to_dict("records"):
        there = data.sel({name: row[name] for name in data.dims})
        assert (there.accepted, there.latency_mean, there.status) == (row["accepted"], row["latency_mean"], "ok")
    assert data.latency_mean.attrs["units"] == "ticks" and data.latency_mean.attrs["description"]


def test_ceilings_align_with_results(experiment):
    bounds, frame = experiment.dataset("ceilings"), experiment.ceilings
    assert bounds.sel(routing="minimal", ceiling="split").upper.size == 1
    row = frame[(frame["scenario"] == "routing=minimal") & (frame["ceiling"] == "split")].iloc[0]
    share = experiment.dataset().accepted / bounds.upper.sel(ceiling="split")
    assert share.sizes == {"routing": 2, "load": 2, "seed": 2}
    one = share.sel(routing="minimal", load=0.3, seed=2).item()
    there = experiment.results.query("routing == 'minimal' and load == 0.3 and seed == 2").iloc[0]
    assert one == there["accepted"] / row["upper"]


def test_ceilings_that_hold_at_any_load_stand_at_all_of_them():
    scenario = {**SCENARIO, "routing": "minimal", "experiment": "ceilings", "ceilings": ["mcf", "total"]}
    data = Experiment.load(scenario).run(jobs=1).dataset("ceilings")
    assert data.sizes == {"ceiling": len(data.ceiling), "load": 2}
    assert data.upper.notnull().all() and len(set(data.upper.sel(ceiling="mcf").values)) == 1
    assert data.upper.sel(ceiling="total", load=0.1) < data.upper.sel(ceiling="total", load=0.3)


def test_combinations_that_were_not_run_are_empty(tmp_path):
    from flitlab.sim.api.frames import dataset_of

    frame = pd.DataFrame({"scenario": ["a", "b"], "seed": [1, 2], "n": [3, 4], "good": [True, False], "s": ["x", "y"]})
    data = dataset_of(frame, {"a": {"kind": "u"}, "b": {"kind": "v"}}, (), (), {})
    assert data.n.sel(kind="u", seed=1) == 3 and np.isnan(data.n.sel(kind="u", seed=2))
    assert (
        data.good.dtype == float and data.good.sel(kind="v", seed=2) == 0 and np.isnan(data.good.sel(kind="v", seed=1))
    )
    assert data.s.sel(kind="u", seed=2).item() == ""
    with pytest.raises(ValueError, match="not unique by seed alone"):
        dataset_of(frame.assign(seed=1), {}, (), (), {})
    assert dataset_of(frame.assign(seed=1), {}, (), ["n"], {}).sizes == {"n": 2, "seed": 1}
    with pytest.raises(KeyError, match="did you mean 'seed'"):
        dataset_of(frame, {}, (), ["sed"], {})


def test_without_xarray_a_message_says_how_to_get_it(experiment, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'flitlab\[xarray\]'"):
        experiment.dataset()


def test_notebooks_show_tables(experiment):
    case = experiment.scenarios["routing=minimal"]
    for shown, said in ((experiment, "results.csv"), (case, "imase"), (case.topology, "channels out of a switch")):
        html = shown._repr_html_()
        assert html.startswith("<table") and html.count("<table") == html.count("</table>") and said in html


def test_overrides_replace_keys_as_set_does():
    sets = {"topology.n": np.int64(6), "loads": np.array([0.2])}
    for case in (
        Experiment.load(SCENARIO, topology__n=6, loads=[0.2]).scenarios["routing=minimal"],
        Experiment.load(SCENARIO, sets=sets).scenarios["routing=minimal"],
    ):
        assert case.topology.switches == 6 and case.loads == [0.2]
    resolved = Experiment.load(SCENARIO, topology={"kind": "torus", "dims": (3, 3), "host_capacity": float("inf")},
                               experiment="ceilings", name="no").study.cases[0].resolved  # fmt: skip
    assert resolved["topology"]["host_capacity"] == float("inf") and resolved["topology"]["dims"] == [3, 3]


@pytest.mark.parametrize("pack", [list, tuple])
@pytest.mark.parametrize("override", [False, True])
def test_jobs_are_a_list_as_in_a_file(pack, override):
    jobs = pack([{"name": "a", "kind": "barrier", "ranks": 2}, make("application", kind="ping_pong", size_bytes=64)])
    config = {
        "experiment": "application", "topology": {"kind": "mesh", "dims": [2, 2]},
        "routing": "minimal", "switching": {"mode": "flow", "flit_ns": 1},
    }  # fmt: skip
    jobs_given = {"application": jobs} if override else {}
    experiment = Experiment.load(config if override else {**config, "application": jobs}, **jobs_given)
    (case,) = experiment.study.cases
    assert [(one.job.name, one.job.program.ranks) for one in case.jobs] == [("a", 2), ("ping_pong", 2)]


def test_a_file_and_its_quick_variant():
    experiment = Experiment.load(ROOT / "configs" / "paper" / "uni-f05.yaml", quick=True, loads=[0.1], topology__n=32)
    assert set(experiment.check()["switches"]) == {32} and experiment.study.name == "uni-f05-quick"


def test_mistakes_are_raised_with_the_text_of_the_command_line():
    with pytest.raises(ConfigError) as found:
        Experiment.load(SCENARIO, topology__kind="imasse", loads=[2])
    assert str(found.value).splitlines()[0].startswith("--set: loads[0] = 2: must be")
    assert "topology.kind = imasse: unknown topology; choices: " in str(found.value)
    with pytest.raises(ConfigError, match=r"^no\.yaml: No such file or directory$"):
        Experiment.load("no.yaml")
    with pytest.raises(ConfigError, match="configuration: topology: is missing"):
        Experiment.load({})


def test_check_has_a_row_for_each_scenario(experiment):
    table = experiment.check()
    assert list(table.index) == ["routing=minimal", "routing=deflection"]
    assert table.loc["routing=minimal", ["switches", "hosts", "points"]].tolist() == [8, 16, 4]
    assert "VC" in table.loc["routing=minimal", "certificate"]


def test_scenarios_lead_to_the_objects(experiment):
    case = experiment.scenarios["routing=minimal"]
    assert case.topology.hosts == 16 and case.routes.kind == "minimal" and case.certificate
    assert repr(case) == "<Case routing=minimal>" and "tiny" in repr(experiment)


def test_plots_are_axes(experiment):
    plt.switch_backend("Agg")
    ax = experiment.plot("latency_load")
    assert ax.get_xlabel() == "accepted traffic (flit/tick/host)" and len(ax.figure.legends) == 1
    figure, mine = plt.subplots()
    assert experiment.plot("hops_load", ax=mine) is mine and mine.get_legend() is not None and not figure.legends
    with pytest.raises(ValueError, match="no figure named latency; choices: latency_load"):
        experiment.plot("latency")
    with pytest.raises(ValueError, match="nothing to show"):
        experiment.plot("throughput")
    plt.close("all")


def test_metrics_and_their_plots():
    sweep = {"kind": "rrg", "n": {"sweep": [8, 10]}, "degree": 3, "seed": 1}
    experiment = Experiment.load({"experiment": "metrics", "topology": sweep, "outputs": {"plots": [{"y": "aspl"}]}})
    experiment.run("m", jobs=1)
    assert experiment.metrics["topology.n"].tolist() == [8, 10]
    assert len(experiment.plot("aspl_n").lines) > 0
    plt.close("all")


def test_tables_that_are_not_there(experiment, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no flows\.csv; it has ceilings\.csv, results\.csv"):
        _ = experiment.flows
    with pytest.raises(RuntimeError, match="has not run"):
        _ = Experiment.load(SCENARIO).results
    with pytest.raises(FileNotFoundError, match="no run folder"):
        Experiment.open(tmp_path)


def test_an_earlier_run_is_opened(experiment):
    again = Experiment.open(experiment.folder)
    assert again.results.equals(experiment.results)
    assert [case.topology.switches for case in again.scenarios.values()] == [8, 8]


def test_labels_such_as_na_are_no_missing_numbers(tmp_path):
    scenario = {key: value for key, value in SCENARIO.items() if key not in ("routing", "ceilings")}
    cases = [{"label": "NA", "routing": {"kind": "minimal"}}]
    experiment = Experiment.load({**scenario, "cases": cases, "ceilings": []}, loads=[0.1], seeds=[1])
    assert experiment.run("na", jobs=1).results["scenario"].tolist() == ["NA"]


def test_points_that_fail_are_raised_after_the_others_ran(monkeypatch):
    from flitlab.sim.experiment import runner

    monkeypatch.setattr(runner, "compare", lambda *_: [])
    experiment = Experiment.load(SCENARIO, ceilings=[])
    original = runner._save

    def save(report, store):
        report.problems.append("a point failed")
        original(report, store)
        report.exit_code = ExitCode.FAILED

    monkeypatch.setattr(runner, "_save", save)
    with pytest.raises(RunError, match="a point failed"):
        experiment.run("failed", jobs=1)
    assert len(experiment.results) == 8


@pytest.mark.long
def test_a_script_without_a_guard_may_use_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"from flitlab import Experiment\nscenario = {SCENARIO!r}\n"
        "print(len(Experiment.load(scenario, ceilings=[]).run('out', jobs=2).results))\nprint(__file__, __spec__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"8\n{script} None\n", done.stderr
