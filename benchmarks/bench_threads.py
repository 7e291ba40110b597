# SPDX-License-Identifier: Apache-2.0
"""One run of virtual cut-through on one thread and on two: what ``--threads`` gains in wall time.

    python benchmarks/bench_threads.py [--runs 12]

Both runs simulate the same ticks, a slice of one after a slice of the other, and must count the same. On a machine that
does something else besides, threads wait for each other.
"""

import statistics
import time
from collections.abc import Iterator

import numpy as np
from bench_engines import scenario
from measured import Row, command, digits

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start

RUNS = 12

CASES = [
    ("MDDP(256, 6)", {"kind": "mddp", "n": 256, "degree": 6, "seed": 1}, 4, [(0.1, 40_000), (0.6, 10_000)]),
    ("RRG(1024, 6)", {"kind": "rrg", "n": 1024, "degree": 6, "seed": 1}, 6, [(0.15, 4_000)]),
    ("RRG(4096, 6)", {"kind": "rrg", "n": 4096, "degree": 6, "seed": 1}, 7, [(0.15, 1_000)]),
]
THREADS = 1, 2


def rates(case: Scenario, load: float, ticks: int, slices: int) -> list[list[float]]:
    """For each number of threads, million flit-hops per second of wall time in every slice of so many ticks."""
    runs = [start("compiled", case, load, 1, threads=number) for number in THREADS]
    now, found = 1000, [[] for _ in runs]
    for run in runs:
        run.advance(now)
    for _ in range(slices):
        now += ticks
        for run, rate in zip(runs, found, strict=True):
            before, began = run.scalars()[Scalar.HOPS], time.perf_counter()
            run.advance(now)
            spent = time.perf_counter() - began
            rate.append((run.scalars()[Scalar.HOPS] - before) * case.source.flits[0] / spent / 1e6)
    np.testing.assert_array_equal(*(run.scalars() for run in runs))
    return found


def rows(runs: int) -> Iterator[Row]:
    """Every network at each of its loads, on one thread and on two."""
    for name, topology, vcs, loads in CASES:
        case = scenario(topology, "minimal", vcs)
        for load, ticks in loads:
            one, two = rates(case, load, ticks, runs)
            ratio = statistics.median(b / a for a, b in zip(one, two, strict=True))
            yield Row(f"vct, {name}, load {load}, 1 thread", "M flit-hops/s", one)
            yield Row(f"vct, {name}, load {load}, 2 threads", "M flit-hops/s", two, f"{digits(ratio)} times as fast")


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
