# SPDX-License-Identifier: Apache-2.0
"""The command that runs all benchmarks, on one that takes no time."""

import ast
import json
import runpy
import shutil
import subprocess
import sys

import pytest

from tests import ROOT

FOLDER = ROOT / "benchmarks"
BENCHMARKS = sorted(FOLDER.glob("bench_*.py"))
TOY = """
from measured import Row

RUNS = 3


def rows(runs):
    yield Row("sleep", "s", [1234.56, 1.0, 20.0][:runs], "deep")
"""


@pytest.fixture
def house(tmp_path):
    """The command in a folder with two benchmarks."""
    for name in ("run_all.py", "measured.py"):
        shutil.copy(FOLDER / name, tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"bench_{name}.py").write_text(TOY)
    return tmp_path


def run_all(house, *words):
    command = [sys.executable, "run_all.py", "--out", "out.json", *words]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((house / "out.json").read_text("utf-8"))


def test_everything_is_measured_and_kept_with_the_machine(house):
    printed, kept = run_all(house)
    assert kept.keys() == {"one", "two"}
    assert kept["one"]["rows"] == [{"work": "sleep", "unit": "s", "values": [1235.0, 1.0, 20.0], "note": "deep"}]
    assert "Numba" in kept["one"]["machine"] and "cores" in kept["one"]["machine"]
    line = "| work | s, median of 3 | least to most |  |\n| --- | --- | --- | --- |\n| sleep | 20 | 1 to 1,235 | deep |"
    assert printed.count(line) == 2, "what is printed"
    page = runpy.run_path(str(ROOT / "docs" / "performance.py"))
    assert line in page["table"](kept["one"])
    _, kept = run_all(house, "--only", "two", "--runs", "1")
    assert [len(kept[name]["rows"][0]["values"]) for name in ("one", "two")] == [3, 1], "what is not run stays"


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_has_what_the_command_asks_for(path):
    tree = ast.parse(path.read_text("utf-8"))
    functions = {node.name: node.args.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert [argument.arg for argument in functions["rows"]] == ["runs"]
    assert any(isinstance(node, ast.Assign) and node.targets[0].id == "RUNS" for node in tree.body)


def test_the_coverage_of_intervals_is_measured():
    # p = 0.1 / 8 for L = 8: W = 0.1 x 7 / (2 x 0.9) = 0.3889 ticks beyond the latency of a packet alone
    coverage = runpy.run_path(str(FOLDER / "interval_coverage.py"))
    alone = coverage["link"](8).zero_load_latency
    assert coverage["true_mean"](0.1, 8) == pytest.approx(alone + 0.3889, abs=1e-4)
    how = coverage["Measure"](1000, 20_000, None)
    mean, half = coverage["measured"]((0.1, 8, 1, how))
    assert 0 < half < 0.5 and abs(mean - alone - 0.3889) < 3 * half
