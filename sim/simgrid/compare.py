# SPDX-License-Identifier: Apache-2.0
"""One program in mode ``flow`` and in SimGrid."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.files import replace_file
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import run_to_end
from flitlab.sim.simgrid.plan import plan_of

MISSING = (
    "SimGrid is not installed: no Python here has its module 'simgrid' (tried with 3.32). On Debian and Ubuntu: "
    "apt-get install python3-simgrid (it is for the system's Python, which is then used); elsewhere: --python PATH of "
    "a Python that has it"
)

REPLAY = Path(__file__).with_name("replay.py")
"""The script that runs in a Python that has SimGrid."""

WORKS = "import simgrid; simgrid.Comm.sendto_async; simgrid.NetZone.create_full_zone"
"""What must not fail in a Python that has it."""


class SimGridMissing(Exception):
    """The error that SimGrid is not there to compare with."""


class SimGridFailed(Exception):
    """SimGrid did not run the program; the message is what it said."""


@dataclass(frozen=True)
class Times:
    """When a program was through, in nanoseconds, and each of its ranks, float64 [ranks]; seconds that this took."""

    makespan: float
    ranks: np.ndarray
    wall_s: float


@cache
def python_with_simgrid(path: str | None = None) -> str:
    """A Python that has SimGrid's module: the one given, or the first of those here. Raises :class:`SimGridMissing`."""
    candidates = [sys.executable, shutil.which("python3"), "/usr/bin/python3"] if path is None else [path]
    for python in dict.fromkeys(filter(None, candidates)):
        try:
            probe = subprocess.run([python, "-c", WORKS], capture_output=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if probe.returncode == 0:
            return python
    raise SimGridMissing(MISSING if path is None else f"--python {path}: has no module 'simgrid'")


def by_flow(scenario: Scenario[Flow, Workload], seed: int) -> Times:
    """The program in mode ``flow``."""
    began, run = time.perf_counter(), start("compiled", scenario, 1.0, seed)
    run_to_end(run, scenario, None)
    tick_ns = float(scenario.work.messages.tick_ns)
    execution = run.execution()
    return _times(scenario, execution.finish * (tick_ns / execution.resolution), began)


def by_simgrid(
    scenario: Scenario[Flow, Workload], seed: int, python: str, by_latency: bool = False, folder: Path | None = None
) -> Times:
    """The program in SimGrid, run by that Python; what it read and wrote stays in ``folder``, if given.

    by_latency: see :func:`~flitlab.sim.simgrid.plan.plan_of`.

    Raises ``SpecError`` if it cannot be said in SimGrid's terms, ``OSError`` where a file cannot be written, and
    :class:`SimGridFailed`.
    """
    plan = plan_of(scenario, seed, by_latency)
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch) / name for name in ("plan.json", "times.json")]
        replace_file(files[0], json.dumps(plan))
        began = time.perf_counter()
        done = subprocess.run([python, REPLAY, *files], capture_output=True, text=True, check=False)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for file in filter(Path.is_file, files):
                replace_file(folder / file.name, file.read_bytes())
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it says nothing"]
            raise SimGridFailed(f"SimGrid ended with code {done.returncode}: {said[-1]}")
        finish = json.loads(files[1].read_text("utf-8"))["finish"]
    if None in finish:
        raise SimGridFailed(f"SimGrid did not come to the end of operation {finish.index(None)}")
    return _times(scenario, np.array(finish) * 1e9, began)


def _times(scenario: Scenario[Flow, Workload], finish: np.ndarray, began: float) -> Times:
    """From the times at which operations were done."""
    program = scenario.work.program
    ranks = np.zeros(program.ranks)
    np.maximum.at(ranks, program.rank, finish)
    return Times(float(finish.max(initial=0.0)), ranks, time.perf_counter() - began)
