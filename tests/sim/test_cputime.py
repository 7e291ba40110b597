# SPDX-License-Identifier: Apache-2.0
"""CPU time: what compiles is counted, and apart from what works."""

import json
import time
from pathlib import Path

import numba
import pytest

from flitlab.models.cputime import CpuTime
from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure import point
from flitlab.sim.report import html
from tests.sim.test_cli import results
from tests.sim.test_shards import CONFIG


def compiles():
    """Compiles something that nobody has compiled before."""

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * inner(2 * x)

    assert outer(1) == 6


def works(seconds):
    """So much CPU time, about."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_compilation_is_apart_from_work():
    compiles()  # what Numba needs for its first kernel of all
    spent = CpuTime()
    began = time.process_time()
    compiles()
    works(0.05)
    assert spent.compile_s > 0.01 and 0.05 <= spent.seconds < 0.05 + 0.5 * spent.compile_s + 0.05
    assert spent.seconds + spent.compile_s == pytest.approx(time.process_time() - began, abs=0.01)
    before = spent.compile_s
    works(0.02)
    assert spent.compile_s == before and CpuTime().compile_s == 0


@pytest.mark.long
def test_the_time_of_a_point_is_without_compilation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(CONFIG.replace("[0.1, 0.3, 0.6]", "[0.1]"))
    real = point.warm_up

    def slowly(*arguments):
        for _ in range(5):
            compiles()
        return real(*arguments)

    monkeypatch.setattr(point, "warm_up", slowly)
    assert main(["tiny.yaml", "--out", "run", "--jobs", "1"]) == 0
    records = [json.loads(path.read_text()) for path in Path("run/points").glob("*.json")]
    compiled = [record["detail"]["compile_s"] for record in records]
    taken = [record["row"]["cpu_s"] for record in records]
    assert len(records) == 4 and min(compiled) > 0.05 and max(taken) < min(compiled)
    manifest = json.loads(Path("run/manifest.json").read_text())
    assert manifest["compile_s"] == pytest.approx(sum(compiled)) and manifest["cpu_s"] == pytest.approx(sum(taken))
    assert "compile_s" not in results("run")[0]
    again = run(read("tiny.yaml"), Path("run"))
    assert again.compiled_s == 0 and again.cpu["compile_s"] == pytest.approx(sum(compiled))
    html.write(Path("run"))
    assert f"<li>{sum(taken):,.1f} s of CPU time" in Path("run/report.html").read_text()
