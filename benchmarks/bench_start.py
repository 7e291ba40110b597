# SPDX-License-Identifier: Apache-2.0
"""What a run costs before it simulates: imports, and compilation where nothing is compiled yet.

    python benchmarks/bench_start.py [--runs 1]

Every measurement is a process of its own with its children. Compiled code is kept in a folder (``FLITLAB_CACHE``) that
is empty at first.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measured import Row, command

RUNS = 1
ROOT = Path(__file__).parents[1]
QUICK = ["-m", "flitlab.sim.cli", str(ROOT / "configs" / "quick.yaml"), "--jobs", "1", "--out"]
VCT = """
import sys; sys.path.insert(0, "benchmarks")
from bench_engines import scenario, speed

speed("compiled", scenario({"kind": "imase", "n": 16, "degree": 3}, "minimal", 4), 0.1, 1, 100)
"""


def spent(words: list[str], cache: str) -> float:
    """CPU-seconds of Python and its children, with compiled code in a folder."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"FLITLAB_CACHE": cache, "PYTHONPATH": str(ROOT)}
    before = os.times()
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def rows(runs: int) -> Iterator[Row]:
    """Imports, a whole run without and with compiled code, and one kernel."""
    cold, warm, kernel, again, imports = ([] for _ in range(5))
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            cache = f"{folder}/cache"
            kernel.append(spent(["-c", VCT], cache))
            again.append(spent(["-c", VCT], cache))
        with tempfile.TemporaryDirectory() as folder:
            cache = f"{folder}/cache"
            cold.append(spent([*QUICK, f"{folder}/cold"], cache))
            warm.append(spent([*QUICK, f"{folder}/warm"], cache))
            imports.append(spent(["-c", "from flitlab import Experiment"], cache))
    yield Row("`simrun configs/quick.yaml --jobs 1`, nothing compiled", "CPU-s", cold)
    yield Row("`simrun configs/quick.yaml --jobs 1`, everything compiled", "CPU-s", warm)
    yield Row("compiling vct", "CPU-s", [a - b for a, b in zip(kernel, again, strict=True)])
    yield Row("`from flitlab import Experiment`", "CPU-s", imports)


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
