# SPDX-License-Identifier: Apache-2.0
"""A run that several threads share gives what one thread gives, to the last counter."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.cli import common, main
from flitlab.sim.cli import run as command
from flitlab.sim.engines import partitions
from flitlab.sim.engines.compare import compare_logs, compare_snapshots
from flitlab.sim.engines.compiled import vct
from flitlab.sim.engines.start import start
from flitlab.sim.engines.table import single_thread_reason
from tests.scenarios import build, scenario
from tests.sim.test_cli import results

TICKS = 50, 51, 160  # the first stops fall into the middle of windows


def run_to(ticks, case, load, seed, threads):
    """Everything that is seen of a run at the last of some ticks; it is also looked at before."""
    run = start("compiled", case, load, seed, log=True, threads=threads)
    for tick in ticks:
        run.advance(tick)
        seen = run.snapshot(), run.backlog(), run.log(), run.deadlocked()
    return seen


def same(one, other):
    compare_snapshots(one[0], other[0])
    np.testing.assert_array_equal(one[0].scalars, other[0].scalars)
    assert (one[0].outstanding is None) == (other[0].outstanding is None)
    np.testing.assert_array_equal(one[1], other[1])
    compare_logs(one[2], other[2], one[0].tick)
    assert one[3] == other[3]


def test_a_deadlock_between_regions_is_found(monkeypatch):
    monkeypatch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
    case = scenario(
        build("torus", dims=[6]), vcs=1, routing={"kind": "minimal", "vc_policy": "any"}, allow_deadlock=True,
        traffic={"kind": "shift", "by": 3}, buffer_flits=4,
    )  # fmt: skip
    one, two = (run_to([4000], case, 1.0, 1, threads) for threads in (1, 2))
    same(one, two)
    assert one[3]


def test_counters_of_pairs_are_read_before_they_overflow(monkeypatch):
    case = scenario(build("imase", hosts=2, n=12, degree=3))
    whole = run_to([750], case, 0.6, 2, 1)
    monkeypatch.setattr("flitlab.sim.engines.compiled.engine.MAX_PAIR_FLITS", 5 * 100)
    monkeypatch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
    same(whole, run_to([350, 750], case, 0.6, 2, 3))


def test_threads_that_fail_are_called_off(monkeypatch):
    monkeypatch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
    run = start("compiled", scenario(build("imase", hosts=2, n=12, degree=3)), 0.5, 1, threads=3)
    run.advance(100)
    team = run._partitioned

    def advance(const, region, now, until):
        if region is team._partitions[0] and until > now:
            raise MemoryError
        return vct.advance(const, region, now, until)

    team._kernel = SimpleNamespace(advance=advance)
    with pytest.raises(MemoryError):
        run.advance(5000)
    team._workers.shutdown()  # which waits for the others, who would wait for ever


@pytest.mark.parametrize(
    "given, why",
    [
        ({"mode": "wormhole"}, "mode wormhole is single-threaded"),
        ({"routing": {"kind": "deflection"}}, "mode deflection is single-threaded"),
        ({"routing": {"kind": "ugal", "mode": "global"}}, "ugal with mode global"),
        ({"header": 0, "switch": 1, "link": 2}, "64 switches with a lookahead of 3 ticks are too few"),
        ({"source": Source(flits=(1, 4)), "credit": 1}, "a lookahead of 1 tick are too few"),
        ({"header": 0, "switch": 1, "link": 3}, ""),
        ({"switch": 4, "link": 8, "credit": 1}, ""),
    ],
)
def test_it_is_said_why_one_thread_runs_something(given, why):
    found = single_thread_reason("compiled", scenario(build("hypercube", dim=6), **{"vcs": 12, **given}))
    assert why in found and bool(found) == bool(why)


CONFIG = """\
schema: 1
name: shared
topology: {kind: imase, n: 12, degree: 3, hosts_per_switch: 2}
routing: {sweep: [{kind: minimal}, {kind: minimal, select: adaptive}, {kind: deflection}]}
switching: {vcs: 4, header_ticks: 2}
traffic: {kind: uniform, packet_flits: 3}
loads: [0.2, 0.9]
seeds: [1]
measure: {warmup: 100, ticks: 300, ci: null}
ceilings: []
outputs: {figures: []}
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(common, "cores", lambda: 2)
    monkeypatch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
    Path("shared.yaml").write_text(CONFIG)
    return "shared.yaml"


@pytest.mark.long
def test_any_number_of_threads_gives_the_same_results(config, capsys):
    assert main([config, "--out", "one", "--jobs", "1"]) == 0
    assert main(["run", config, "--out", "three", "--jobs", "1", "--threads", "3"]) == 0
    assert results("one") == results("three") and len(results("one")) == 6
    assert capsys.readouterr().err.splitlines() == [
        "--threads 3: with --jobs 1 these are more threads than the 2 processors of this machine",
        "--threads 3: mode deflection is single-threaded (1 of 3 scenarios)",
    ]


def test_threads_and_processes_share_the_processors(config, monkeypatch):
    asked = []
    monkeypatch.setattr("flitlab.sim.experiment.pool.cores", lambda: 8)
    monkeypatch.setattr(command, "run_study", lambda study, folder, options: asked.append(options))
    monkeypatch.setattr(command, "finish", lambda report, as_json: 0)
    for more in ([], ["--threads", "3"], ["--threads", "9"], ["--threads", "2", "--jobs", "5"]):
        assert main([config, *more]) == 0
    assert [(options.jobs, options.threads) for options in asked] == [(8, 1), (2, 3), (1, 9), (5, 2)]
