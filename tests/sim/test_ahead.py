# SPDX-License-Identifier: Apache-2.0
"""Kernels are compiled beside ceilings: what is called first, what is compiled before any point, and for whom."""

from itertools import combinations, islice

import numba
import pytest

from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.compiled import vct
from flitlab.sim.engines.start import start
from flitlab.sim.engines.table import kernel_key
from flitlab.sim.experiment import runner
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.compile_order import IDLE_LOAD, ordered_tasks, preparations
from flitlab.sim.experiment.points import PointRuns
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.progress import Quiet
from flitlab.sim.experiment.store import Memory
from flitlab.sim.experiment.task import Outcome, solve_ceilings, solve_point
from tests.scenarios import build, scenario

CONFIG = """\
name: tiny
topology: {kind: imase, n: {sweep: [12, 8]}, degree: 3, hosts_per_switch: 1}
routing:
  sweep: [{kind: minimal}, {kind: minimal, select: hash}, {kind: minimal, select: adaptive}, {kind: deflection}]
switching: {vcs: 4, input_speedup: vcs}
traffic: {kind: uniform}
loads: %s
seeds: [1, 2]
measure: {warmup: 200, ticks: 200, ci: null}
ceilings: [mcf, split, bounds]
"""
SEARCH = "{saturation: {tolerance: 0.2}}"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The ceilings and points of a configuration whose kernels nobody has compiled."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def of(text):
        (tmp_path / "c.yaml").write_text(text)
        study, store = read(tmp_path / "c.yaml"), Memory()
        bounds = CeilingRuns(study, store)
        return bounds, PointRuns(study, store, bounds)

    return of


def test_the_first_calls_are_one_of_ceilings_and_one_for_each_set_of_kernels(runs):
    bounds, points = runs(CONFIG % "[0.1, 0.2]")
    sets = {kernel_key(point.scenario) for point in points.missing}
    calls = list(ordered_tasks(bounds, points, Quiet(), True))
    assert len(sets) == 3 and len({kernel_key(point.scenario) for point in points.missing[:3]}) == 3
    assert [task.call for task in calls[:5]] == [solve_ceilings, *[solve_point] * 3, solve_ceilings]
    assert [task.name for task in calls if task.call is solve_point][:3] == [
        f"{point.case.label}, load {point.load}, seed {point.seed}" for point in points.missing[:3]
    ]
    assert len(calls) == len(bounds.jobs) + len(points.points)


def test_where_loads_follow_from_ceilings_a_tick_of_the_smallest_network_compiles(runs):
    bounds, points = runs(CONFIG % SEARCH)
    calls = list(islice(ordered_tasks(bounds, points, Quiet(), True), 5))
    assert [task.call for task in calls] == [solve_ceilings, *[solve_point] * 3, solve_ceilings]
    assert all(task.name.startswith("n=8") and task.arguments[2] == IDLE_LOAD for task in calls[1:4])
    unprepared = islice(ordered_tasks(bounds, points, Quiet(), False), len(bounds.jobs))
    assert {task.call for task in unprepared} == {solve_ceilings}


def test_nothing_is_compiled_beforehand_twice_or_where_a_point_needs_it(runs):
    for text in (CONFIG % "[0.1]", CONFIG % SEARCH + "engine: reference\n"):
        assert list(preparations(*runs(text))) == []
    bounds, points = runs(CONFIG % SEARCH)
    first, *others = preparations(bounds, points)
    first.done(Outcome(problem="no memory"))
    assert len(list(preparations(bounds, points))) == 3
    first.done(first.call(*first.arguments))
    assert [task.name for task in preparations(bounds, points)] == [task.name for task in others]
    assert not points.records and points.count == runs(CONFIG % SEARCH)[1].count


def test_what_a_point_has_compiled_is_not_prepared_again(runs):
    one = CONFIG[: CONFIG.index("routing:")] + "routing: {kind: minimal}\n" + CONFIG[CONFIG.index("switching:") :]
    sweep = [task for task in ordered_tasks(*runs(one % "[0.1]"), Quiet(), True) if task.call is solve_point]
    assert len(list(preparations(*runs(one % SEARCH)))) == 1
    sweep[0].done(sweep[0].call(*sweep[0].arguments))
    assert list(preparations(*runs(one % SEARCH))) == []


MODES = {
    "vct": ["random", "hash", "adaptive", "ugal"], "wormhole": ["random", "adaptive"], "deflection": ["deflection"],
}  # fmt: skip


def test_sets_of_kernels_are_told_apart_as_numba_tells_them(monkeypatch):
    """Numba compiles a kernel anew where the types of constants and state are others."""
    topology, found, called = build("imase", n=8, degree=3), [], []
    for name in ("_advance_with_independent_outputs", "_advance_with_dependent_outputs"):
        monkeypatch.setattr(vct, name, lambda *given, name=name: called.append(name) or given[-1])
    for mode, selects in MODES.items():
        for select in selects:
            own = select in ("ugal", "deflection")
            routing = {"kind": select} if own else {"kind": "minimal", "select": select}
            for shared_input in (False, True):
                keys = {"shared_input": shared_input} if mode == "vct" else {}
                one = scenario(topology, routing=routing, mode=mode, allow_deadlock=True, **keys)
                run = start("compiled", one, 0.1)
                called.clear()
                if mode == "vct":
                    run.advance(1)
                found.append((kernel_key(one), (*called, numba.typeof((run._constants, run._state)))))
    assert len({kernels for kernels, _ in found}) == 6
    for (kernels, needed), (others, theirs) in combinations(found, 2):
        assert (kernels == others) == (needed == theirs)


@pytest.mark.long
def test_results_are_the_same_bytes(runs, tmp_path):
    text = CONFIG[: CONFIG.index("routing:")] + "routing: {kind: minimal}\n" + CONFIG[CONFIG.index("switching:") :]
    given, tables = runs((text % SEARCH).replace("{sweep: [12, 8]}", "8")), []
    for jobs in (1, 2):
        report = runner.run(read(tmp_path / "c.yaml"), tmp_path / str(jobs), RunOptions(jobs))
        assert report.exit_code == 0 and bool(list(preparations(*given))) == (jobs == 1)
        tables.append([{key: row[key] for key in row if key != "cpu_s"} for row in report.results])
    assert tables[0] == tables[1] and len(tables[0]) > 4
