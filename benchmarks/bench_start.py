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
from typing import NamedTuple

from measured import Row, command

RUNS = 1
ROOT = Path(__file__).parents[1]
QUICK = ["-m", "flitlab", str(ROOT / "configs" / "quick.yaml"), "--out"]
VCT = """
import sys; sys.path.insert(0, "benchmarks")
from bench_engines import scenario, speed

speed("compiled", scenario({"kind": "imase", "n": 16, "degree": 3}, "minimal", 4), 0.1, 1, 100)
"""


class Spent(NamedTuple):
    """What a process with its children took: CPU-seconds, and seconds of wall time."""

    cpu: float
    wall: float


def spent(words: list[str], cache: str) -> Spent:
    """What Python takes for a command, with compiled code in a folder."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"FLITLAB_CACHE": cache, "PYTHONPATH": str(ROOT)}
    before = os.times()
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(cpu, after.elapsed - before.elapsed)


def rows(runs: int) -> Iterator[Row]:
    """Imports, a whole run without and with compiled code, and one kernel."""
    cold, both, warm, kernel, again, imports = ([] for _ in range(6))
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            cache = f"{folder}/cache"
            kernel.append(spent(["-c", VCT], cache).cpu)
            again.append(spent(["-c", VCT], cache).cpu)
        with tempfile.TemporaryDirectory() as folder:
            cache = f"{folder}/cache"
            cold.append(spent([*QUICK, f"{folder}/cold", "--jobs", "1"], cache).cpu)
            warm.append(spent([*QUICK, f"{folder}/warm", "--jobs", "1"], cache).cpu)
            imports.append(spent(["-c", "from flitlab import Experiment"], cache).cpu)
            both.append(spent([*QUICK, f"{folder}/both", "--jobs", "2"], f"{folder}/other"))
    yield Row("`simrun configs/quick.yaml --jobs 1`, nothing compiled", "CPU-s", cold)
    yield Row("`simrun configs/quick.yaml --jobs 1`, everything compiled", "CPU-s", warm)
    two = "`simrun configs/quick.yaml --jobs 2`, nothing compiled"
    yield Row(two, "CPU-s", [one.cpu for one in both])
    yield Row(two, "s of wall time", [one.wall for one in both])
    yield Row("compiling vct", "CPU-s", [a - b for a, b in zip(kernel, again, strict=True)])
    yield Row("`from flitlab import Experiment`", "CPU-s", imports)


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
