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
"""The script for a Python that has SimGrid."""

WORKS = "import simgrid; simgrid.Comm.sendto_async; simgrid.NetZone.create_full_zone"
"""Code that succeeds in a Python that has SimGrid."""


class SimGridMissing(Exception):
    """SimGrid is not installed."""


class SimGridFailed(Exception):
    """SimGrid did not run the program; the message is its output."""


@dataclass(frozen=True)
class ProgramTimes:
    """Completion times of a program and of each of its ranks, float64 [ranks], in nanoseconds; wall_s: seconds of
    the run.
    """

    makespan: float
    ranks: np.ndarray
    wall_s: float


@cache
def python_with_simgrid(path: str | None = None) -> str:
    """A Python that has SimGrid's module: ``path``, or the first one that is found. Raises :class:`SimGridMissing`."""
    candidates = [sys.executable, shutil.which("python3"), "/usr/bin/python3"] if path is None else [path]
    for python in dict.fromkeys(filter(None, candidates)):
        try:
            probe = subprocess.run([python, "-c", WORKS], capture_output=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if probe.returncode == 0:
            return python
    raise SimGridMissing(MISSING if path is None else f"--python {path}: has no module 'simgrid'")


def by_flow(scenario: Scenario[Flow, Workload], seed: int) -> ProgramTimes:
    """Times of the program in mode ``flow``."""
    began, run = time.perf_counter(), start("compiled", scenario, 1.0, seed)
    run_to_end(run, scenario, None)
    tick_ns = float(scenario.work.messages.tick_ns)
    execution = run.execution()
    return _times(scenario, execution.finish * (tick_ns / execution.resolution), began)


def by_simgrid(
    scenario: Scenario[Flow, Workload], seed: int, python: str, by_latency: bool = False, folder: Path | None = None
) -> ProgramTimes:
    """Times of the program in SimGrid.

    Parameters
    ----------
    scenario : Scenario
        Of mode ``flow``, with a program.
    seed : int
        Draws the routes.
    python : str
        A Python that has SimGrid.
    by_latency : bool
        See :func:`~flitlab.sim.simgrid.plan.plan_of`.
    folder : Path or None
        Where the input and output files of SimGrid are kept.

    Raises
    ------
    SpecError
        The scenario cannot be expressed in SimGrid.
    OSError
        A file cannot be written.
    SimGridFailed
        SimGrid did not run the program.
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
            output = done.stderr.strip().splitlines() or ["it says nothing"]
            raise SimGridFailed(f"SimGrid ended with code {done.returncode}: {output[-1]}")
        finish = json.loads(files[1].read_text("utf-8"))["finish"]
    if None in finish:
        raise SimGridFailed(f"SimGrid did not come to the end of operation {finish.index(None)}")
    return _times(scenario, np.array(finish) * 1e9, began)


def _times(scenario: Scenario[Flow, Workload], finish: np.ndarray, began: float) -> ProgramTimes:
    """Times of the ranks from those of the operations."""
    program = scenario.work.program
    ranks = np.zeros(program.ranks)
    np.maximum.at(ranks, program.rank, finish)
    return ProgramTimes(float(finish.max(initial=0.0)), ranks, time.perf_counter() - began)
