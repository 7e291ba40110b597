# SPDX-License-Identifier: Apache-2.0
"""The runner: resuming, the cross-check, failures, saturation, and the same bytes whatever happens."""

import csv
import gc
import json
import re
import shutil
import tomllib
import weakref
from concurrent.futures import BrokenExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import flitlab.fluid.ceilings
import flitlab.sim.measure.measure
from flitlab.fluid.ceilings import Ceiling
from flitlab.fluid.certificate import Certificate
from flitlab.fluid.crosscheck import FlowCount
from flitlab.models.pairs import PairCounts
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import EngineMismatch
from flitlab.sim.experiment import runner, task
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.progress import Quiet
from flitlab.sim.experiment.store import Store, StoreError
from flitlab.sim.experiment.task import failure, solve_point
from tests import ROOT
from tests.scenarios import build, scenario

CONFIG = """\
name: tiny
topology: {kind: imase, n: 4, degree: 2, hosts_per_switch: 1}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
traffic: {kind: uniform}
loads: [0.2, 0.4, 0.6]
seeds: [1, 2]
measure: {ticks: 100, ci: null}
ceilings: [mcf, mcf_paths, total]
"""


class Fakes:
    """Stands in for the engines and for fluid; counts what is asked of it."""

    def __init__(self):
        self.points = []
        self.ceilings = []
        self.delivered = 1
        self.length = 1.0
        self.raises = {}

    def measure(self, engine, scenario, load, seed, how, threads):
        self.points.append((scenario.routes.kind, load, seed))
        if error := self.raises.get((load, seed)):
            raise error
        row = {"accepted": min(load, 0.4), "hops_mean": 2 + load, "latency_mean": float("nan"), "saturated": load > 0.3}
        n, hosts = scenario.topology.switches, scenario.topology.hosts
        flits = np.full((n, n), self.delivered) * (1 - np.eye(n, dtype=int))
        some = FlowCount(PairCounts.of_table(n, flits), np.zeros(hosts, int), np.zeros(hosts, int))
        none = FlowCount(PairCounts.none(n), np.zeros(hosts, int), np.zeros(hosts, int))
        return SimpleNamespace(
            row=row, detail={}, delivered=some, present=none, window=100, capacity=None, parts=(), limited=False
        )

    def compute(self, scenario, specs, loads, **more):
        kinds = [spec.kind for spec in specs]
        self.ceilings.append((getattr(scenario.routes, "kind", None), kinds))
        z = Certificate.on_network(scenario.topology, np.full(scenario.topology.channels, self.length))
        rows = []
        for kind in kinds:
            for load in loads if kind == "total" else [None]:
                rows.append(Ceiling(kind, load, 0.5, 0.5, "load", "fake", 0.0, "", z))
        return rows


@pytest.fixture
def fakes(monkeypatch):
    found = Fakes()
    monkeypatch.setattr(flitlab.sim.measure.measure, "measure", found.measure)
    monkeypatch.setattr(flitlab.fluid.ceilings, "ceilings", found.compute)
    return found


@pytest.fixture
def run(tmp_path, fakes):
    """Runs a configuration text into a folder of that name."""

    def go(text=CONFIG, folder="run", sets=()):
        (tmp_path / "c.yaml").write_text(text)
        return runner.run(read(tmp_path / "c.yaml", sets), tmp_path / folder)

    return go


def rows(report, name="results.csv"):
    with (report.folder / name).open() as file:
        return list(csv.DictReader(file))


def test_rows_in_order_with_the_swept_key_and_no_nan(run):
    report = run()
    found = rows(report)
    assert report.exit_code == 0
    expected = [(k, load, s) for k in ("minimal", "deflection") for load in ("0.2", "0.4", "0.6") for s in "12"]
    assert [(row["routing"], row["load"], row["seed"]) for row in found] == expected
    assert found[0]["scenario"] == "routing=minimal" and found[0]["latency_mean"] == "" and found[0]["status"] == "ok"
    assert "accepted_flit_per_ns_per_host" not in found[0]
    in_ns = run(folder="ns", sets=["switching.flit_ns=2"])
    assert rows(in_ns)[0]["accepted_flit_per_ns_per_host"] == "0.1"


def test_ceilings_that_do_not_depend_on_the_routing_are_computed_once(run, fakes):
    report = run()
    assert fakes.ceilings == [(None, ["mcf", "total"]), ("minimal", ["mcf_paths"]), ("deflection", ["mcf_paths"])]
    found = rows(report, "ceilings.csv")
    assert [row["ceiling"] for row in found] == ["mcf", "mcf_paths", "total", "total", "total"] * 2
    assert [row["load"] for row in found[:5]] == ["", "", "0.2", "0.4", "0.6"]


def test_resuming_runs_nothing_twice_and_writes_the_same(run, fakes):
    report = run()
    before = {name: (report.folder / name).read_bytes() for name in ("results.csv", "ceilings.csv")}
    fakes.points.clear(), fakes.ceilings.clear()
    points = sorted((report.folder / "points").iterdir())
    points[3].unlink()
    points[5].write_text('{"cut sh')
    report = run()
    assert len(fakes.points) == 2 and not fakes.ceilings
    assert {name: (report.folder / name).read_bytes() for name in before} == before


def test_another_configuration_in_the_same_folder_keeps_the_old_points(run, fakes):
    run()
    fakes.points.clear()
    report = run(sets=["loads=[0.2, 0.3]"])
    assert {load for _, load, _ in fakes.points} == {0.3}
    assert {row["load"] for row in rows(report)} == {"0.2", "0.3"}
    assert len(list((report.folder / "points").iterdir())) == 16


def test_another_engine_runs_again(run, fakes):
    run()
    fakes.points.clear()
    report = run(sets=["engine=both"])
    assert len(fakes.points) == 12 and rows(report)[0]["engine"] == "both"


def test_a_failing_point_does_not_end_the_others_and_is_tried_again(run, fakes):
    fakes.raises[0.4, 1] = RuntimeError("no\nluck")
    report = run()
    assert report.exit_code == 1
    bad = [row for row in rows(report) if row["status"] != "ok"]
    assert len(bad) == 2 and bad[0]["status"] == "failed" and bad[0]["message"].startswith("RuntimeError: no luck (")
    fakes.raises.clear(), fakes.points.clear()
    assert run().exit_code == 0 and len(fakes.points) == 2


def test_engines_that_disagree(run, fakes):
    fakes.raises[0.4, 1] = EngineMismatch("packet 7")
    report = run()
    assert report.exit_code == 3
    assert {row["status"] for row in rows(report)} == {"ok", "engine_mismatch"}


@pytest.mark.parametrize(("delivered", "length"), [(10**6, 1.0), (1, np.inf)], ids=["too much", "not comparable"])
def test_a_point_above_a_ceiling(run, fakes, delivered, length):
    fakes.delivered, fakes.length = delivered, length
    report = run()
    assert report.exit_code == 3
    assert {row["status"] for row in rows(report)} == {"ceiling_violated"}
    assert "mcf" in rows(report)[0]["message"]
    fakes.points.clear()
    assert run().exit_code == 3 and not fakes.points  # kept, and said again


def test_a_point_that_was_not_checked_is_run_again(run, fakes):
    report = run()
    path = sorted((report.folder / "points").iterdir())[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), "checked": False}))
    fakes.points.clear()
    run()
    assert len(fakes.points) == 1


def test_ceilings_that_fail_are_rows_too(run, monkeypatch):
    def fail(*_, **__):
        raise ValueError("too hard")

    monkeypatch.setattr(flitlab.fluid.ceilings, "ceilings", fail)
    report = run()
    assert report.exit_code == 1
    assert {row["method"] for row in rows(report, "ceilings.csv")} == {"failed"}
    assert "too hard" in rows(report, "ceilings.csv")[0]["note"]


def test_stop_when_saturated_does_not_depend_on_what_ran_before(run, fakes):
    report = run(sets=["measure.stop_when_saturated=true"])
    assert [row["load"] for row in rows(report)] == ["0.2", "0.2", "0.4", "0.4"] * 2
    assert 0.6 not in {load for _, load, _ in fakes.points}
    run(folder="all")
    other = run(folder="all", sets=["measure.stop_when_saturated=true"])
    assert (other.folder / "results.csv").read_bytes() == (report.folder / "results.csv").read_bytes()


def test_interruption_keeps_what_is_done_and_resumes(run, fakes):
    fakes.raises[0.4, 2] = KeyboardInterrupt()
    report = run()
    assert report.exit_code == 130
    done = len(rows(report))
    assert 0 < done < 12
    assert json.loads((report.folder / "manifest.json").read_text())["status"] == "interrupted"
    fakes.raises.clear(), fakes.points.clear()
    report = run()
    assert report.exit_code == 0 and len(fakes.points) == 12 - done
    assert json.loads((report.folder / "manifest.json").read_text())["status"] == "done"


def test_a_worker_that_dies(run, fakes, monkeypatch):
    def die(*_):
        raise BrokenExecutor("gone")

    monkeypatch.setattr(runner, "run_all", die)
    report = run()
    assert report.exit_code == 1 and "a worker process died" in report.problems[-1]


def test_the_resolved_configuration_gives_the_same_points(run, fakes, tmp_path):
    report = run(sets=["topology.n={sweep: [4, 5]}"])
    fakes.points.clear()
    text = (report.folder / "config.resolved.yaml").read_text()
    again = run(text)
    assert not fakes.points
    assert [row["accepted"] for row in rows(again)] == [row["accepted"] for row in rows(report)]


def dependencies():
    """The names of what flitlab is built on, as pyproject.toml has them."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return {re.match(r"[\w-]+", one)[0] for one in listed}


def test_the_manifest_says_what_was_run(run):
    manifest = json.loads((run(sets=["switching={flit_ns: 2.667, link_ns: 18}"]).folder / "manifest.json").read_text())
    assert manifest["flit_ns"] == 2.667 and manifest["changes"] and manifest["versions"]["numpy"]
    assert manifest["versions"].keys() == {"flitlab", "python", "llvmlite", *dependencies()}
    assert manifest["source"].keys() == {"commit", "modified", "repository"} and manifest["machine"]["processor"]
    first, second = manifest["scenarios"]
    assert first["ticks"]["link"] == 7 and first["switching"]["mode"] == "vct"
    assert second["switching"]["mode"] == "deflection" and second["switching"]["hold_packets"] == 8
    assert first["topology"]["edge_hash"] == second["topology"]["edge_hash"]
    assert manifest["mean_rate"]["routing=minimal"] == 1.0


def test_published_values(run):
    text = CONFIG + (
        "published:\n"
        "- {where: routing=minimal.accepted_max, value: 0.41, tolerance: 5%}\n"
        "- {where: Fig. 1, scenario: routing=minimal, quantity: hops_mean@0.3, value: 2.3}\n"
        "- {where: Fig. 2, scenario: {routing: deflection}, quantity: efficiency, value: 0.7, compare: less_than}\n"
        "- {where: Fig. 3, scenario: {routing: deflection}, quantity: saturation_load, value: 0.5, tolerance: 0.2}\n"
        "- {where: T, scenario: {routing: deflection}, relative_to: {routing: minimal}, quantity: mcf, value: 1}\n"
        "- {where: Fig. 4, value: 1}\n"
    )
    report = run(text)
    found = rows(report, "published.csv")
    assert [row["verdict"] for row in found] == [
        "agrees", "agrees", "differs: unexplained", "agrees", "agrees", "not measured",
    ]  # fmt: skip
    assert [row["measured"] for row in found[:3]] == ["0.4", "2.3", "0.8"]
    assert report.exit_code == 0
    assert json.loads((report.folder / "manifest.json").read_text())["published"][0]["verdict"] == "agrees"


def test_metrics(run):
    report = run(
        "experiment: metrics\ntopology: {kind: hypercube, dim: {sweep: [2, 3]}}\n"
        "published: [{where: dim=3.aspl, value: 1.714}, {where: dim=3.diameter, value: 4}]"
    )
    found = rows(report, "metrics.csv")
    assert [(row["topology.dim"], row["switches"], row["diameter"]) for row in found] == [
        ("2", "4", "2"),
        ("3", "8", "3"),
    ]
    assert [row["verdict"] for row in report.published] == ["agrees", "differs: unexplained"]
    assert not (report.folder / "results.csv").exists()


def test_ceilings_only(run, fakes):
    report = run("experiment: ceilings\ntopology: {kind: imase, n: 8, degree: 2, host_capacity: .inf}\n"
                 "traffic: {kind: uniform}\nrouting: {kind: minimal}\nceilings: [mcf]")  # fmt: skip
    assert [row["ceiling"] for row in rows(report, "ceilings.csv")] == ["mcf"]
    assert not fakes.points and not (report.folder / "results.csv").exists()


def test_two_runs_in_one_folder_are_refused(tmp_path):
    store = Store(tmp_path / "run")
    with pytest.raises(StoreError, match="another run"):
        Store(tmp_path / "run")
    store.close()
    Store(tmp_path / "run").close()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "file" / "run")


def test_the_experiment_ceilings_simulates_nothing_although_total_has_loads(run, fakes):
    report = run(CONFIG.replace("routing: {sweep: [{kind: minimal}, {kind: deflection}]}", "experiment: ceilings"))
    assert report.exit_code == 0 and report.results == [] and fakes.points == []
    assert not (report.folder / "results.csv").exists()
    assert rows(report, "metrics.csv")[0]["total@0.4"] == "0.5"


def test_files_of_another_shape_are_as_good_as_none(run, fakes):
    first = run(CONFIG)
    before = rows(first)
    points, ceilings = len(fakes.points), len(fakes.ceilings)
    for folder in ("points", "ceilings"):
        files = sorted((first.folder / folder).iterdir())
        for file, text in zip(files, ("[]", '{"id": 3}', "{", "[{}]"), strict=False):
            file.write_text(text)
    assert rows(run(CONFIG)) == before
    assert len(fakes.points) > points and len(fakes.ceilings) > ceilings


def test_a_file_that_cannot_be_written_is_said_in_one_line(run, fakes, tmp_path):
    run(CONFIG)
    shutil.rmtree(tmp_path / "run" / "points")
    (tmp_path / "run" / "points").write_text("in the way")
    with pytest.raises(StoreError, match=r"^points/.*json cannot be written: "):
        run(CONFIG)


def test_a_demand_matrix_is_part_of_the_resolved_configuration(run, fakes, tmp_path):
    (tmp_path / "demand.csv").write_text("0,1,2\n1,3,1\n")
    report = run(CONFIG.replace("{kind: uniform}", "{kind: matrix, path: demand.csv}"))
    assert report.exit_code == 0
    resolved = (report.folder / "config.resolved.yaml").read_text()
    assert f"path: {tmp_path / 'demand.csv'}" in resolved


def test_an_interruption_inside_a_kernel_is_no_failure():
    inner = SystemError("returned a result with an exception set")
    inner.__cause__ = KeyboardInterrupt()
    outer = SystemError("the same")
    outer.__cause__ = inner
    with pytest.raises(KeyboardInterrupt):
        failure(outer)
    assert "SystemError: another" in failure(SystemError("another")).problem


@pytest.mark.long
@pytest.mark.parametrize("room", [0, 1 << 20])
def test_a_worker_forgets_large_scenarios_before_it_reads_another(tmp_path, monkeypatch, room):
    monkeypatch.setattr(task._ScenarioCache, "MAX_BYTES", room)
    monkeypatch.setattr(task, "_scenario_cache", task._ScenarioCache())
    store = Store(tmp_path / "run")
    files = [store.scenario(scenario(build("imase", n=n, degree=2)), str(n)) for n in (4, 5)]
    measure = {"warmup": 0, "ticks": 10, "ci": None, "max_ticks": 10}
    routes = []
    for file in files:
        assert not solve_point(file, "reference", 0.2, 1, measure).problem
        routes.append(weakref.ref(task._scenario(file).routes))
    gc.collect()
    assert [of() is not None for of in routes] == [room > 0, True]
    store.close()


def test_only_ceilings_that_depend_on_routes_are_sent_them(tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    with_routes = {}
    store = Store(tmp_path / "run")
    for call in CeilingRuns(read(tmp_path / "c.yaml"), store).tasks(Quiet()):
        file, specs = call.arguments[:2]
        with_routes |= {spec.kind: task._scenario(file).routes is not None for spec in specs}
    store.close()
    assert with_routes == {"mcf": False, "mcf_paths": True, "total": False}
