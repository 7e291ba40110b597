# SPDX-License-Identifier: Apache-2.0
"""Certified gaps, CPU seconds and memory of the fluid solvers: ``bench_fluid.py [--small] [--goals] [--threads N]``.

Random regular graphs of degree 10 with one server per switch and infinite host channels; demands in the hose
model. Every row runs in a process of its own, so that its peak memory is its own, with compiled code loaded before
the clock starts. What is required stands beside what was measured; ``!`` marks a line that falls short.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import measured
import numpy as np
from scipy.optimize import linear_sum_assignment

from flitlab.fluid.certificate import distances
from flitlab.fluid.graph import Demand, Graph, Product
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.problem import MAX_LISTED_PAIRS, Problem
from flitlab.models.registry import make
from flitlab.models.threads import set_thread_limit, threads

DEGREE = 10
RUNS = 1


class Row(NamedTuple):
    """One line of the table: what to solve, the gap to reach, and at most how many CPU seconds and MiB it may take."""

    switches: int
    demand: str
    gap: float
    seconds: float | None
    memory: float | None = None


def both(switches: int, gap: float, seconds: float | None, memory: float | None = None) -> list[Row]:
    """A row for a longest matching and one for a permutation."""
    return [Row(switches, demand, gap, seconds, memory) for demand in ("longest matching", "permutation")]


SMALL = [
    *both(256, 0.01, 0.4), *both(256, 0.001, 1.0),
    *both(1024, 0.01, 3.0), *both(1024, 0.001, 6.0),
    Row(1024, "all-to-all", 0.01, 8.0),
]  # fmt: skip
LARGE = [
    *both(4096, 0.01, 20.0, 400), *both(4096, 0.001, 50.0, 400),
    Row(4096, "all-to-all", 0.01, 120.0, 1536),
    Row(8192, "permutation", 0.01, 18.0), Row(8192, "all-to-all", 0.01, 70.0, 2048),
    Row(16384, "permutation", 0.01, 100.0), Row(16384, "all-to-all", 0.01, 700.0, 8192),
]  # fmt: skip
GOALS = [Row(4096, "all-to-all", 0.001, None)]


def matching(graph: Graph, kind: str) -> np.ndarray:
    """int64 [nodes]: where every switch sends, as far away as possible on average or at random."""
    if kind == "longest matching":
        return linear_sum_assignment(distances(graph, np.ones(graph.channels)), maximize=True)[1]
    rng = np.random.default_rng(1)
    while True:
        target = rng.permutation(graph.nodes)
        if (target != np.arange(graph.nodes)).all():
            return target


def one_each(target: np.ndarray) -> Demand:
    """A demand of 1 from every switch to the one that ``target`` names."""
    nodes = len(target)
    return Demand(np.arange(nodes), np.arange(nodes + 1), np.argsort(target), np.ones(nodes))


def all_to_all(nodes: int) -> Demand | Product:
    """A demand of 1 / nodes between any two switches, of many of them without a list as in scenarios."""
    product = Product(np.full(nodes, 1 / nodes), np.ones(nodes), np.arange(nodes))
    return product if product.size > MAX_LISTED_PAIRS else product.listed()


def problem(row: Row) -> Problem:
    """The flow problem of a line of the table."""
    topology = make("topology", kind="rrg", n=row.switches, degree=DEGREE, host_capacity=float("inf")).build()
    graph = Graph.of(topology)
    if row.demand == "all-to-all":
        return Problem(graph, all_to_all(graph.nodes))
    # the assignment is not part of the solve, and its matrix not of the memory: another process computes it
    command = [sys.executable, __file__, "--matching", json.dumps(row)]
    target = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Problem(graph, one_each(np.array(json.loads(target))))


def print_matching(row: Row) -> None:
    """Where every switch sends, as JSON."""
    topology = make("topology", kind="rrg", n=row.switches, degree=DEGREE, host_capacity=float("inf")).build()
    print(json.dumps(matching(Graph.of(topology), row.demand).tolist()))


def measure(row: Row, most: int) -> None:
    """Solve one line in this process with so many threads; prints the figures as JSON."""
    set_thread_limit(most)
    for demand in ("permutation", "all-to-all"):  # compiles, or loads compiled code
        for size in (16, 400):
            solve(problem(Row(size, demand, 0.05, None)), 0.05, "approx")
    case = problem(row)
    cpu, wall = time.process_time(), time.perf_counter()
    found = solve(case, row.gap, "approx")
    result = {
        "gap": found.upper / found.lower - 1,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "theta": found.lower,
        "method": found.method,
    }
    print(json.dumps(result))


def figures(row: Row, most: int) -> dict[str, Any]:
    """Measure a line in a process of its own."""
    command = [sys.executable, __file__, "--measure", json.dumps(row), "--threads", str(most)]
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    return json.loads(done.stdout)


def rows(runs: int) -> Iterator[measured.Row]:
    """Permutations and all-to-all of up to 4,096 switches, to 1 %, on one thread."""
    for row in SMALL + LARGE:
        if row.gap == 0.01 and row.switches <= 4096 and row.demand != "longest matching":
            got = [figures(row, 1) for _ in range(runs)]
            name = f"mcf, {row.demand}, RRG({row.switches}, {DEGREE}), to {row.gap:.0%}"
            note = f"{got[0]['memory']:,.0f} MiB; gap {got[0]['gap']:.2%}"
            yield measured.Row(name, "CPU-s", [one["cpu"] for one in got], note)


def report(row: Row, most: int) -> None:
    """Measure a line and print it."""
    got = figures(row, most)
    late = row.seconds is not None and got["cpu"] > row.seconds
    large = row.memory is not None and got["memory"] > row.memory
    short = "!" if late or large or got["gap"] > row.gap * (1 + 1e-9) else " "
    seconds = f"{row.seconds:7.1f}" if row.seconds else "      -"
    memory = f"{row.memory:7.0f}" if row.memory else "      -"
    print(
        f"{row.switches:6}  {row.demand:16} {row.gap:6.1%} {got['gap']:8.3%} {got['cpu']:8.2f} {seconds} "
        f"{got['wall']:8.2f} {got['memory']:7.0f} {memory} {short} {got['theta']:9.5f}  {got['method']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="only up to 1,024 switches")
    parser.add_argument("--goals", action="store_true", help="also what is not required")
    parser.add_argument("--only", type=int, metavar="N", help="only rows of so many switches")
    parser.add_argument("--threads", type=int, default=threads(), metavar="N", help="default: all processors")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--matching", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.matching:
        return print_matching(Row(*json.loads(arguments.matching)))
    if arguments.measure:
        return measure(Row(*json.loads(arguments.measure)), arguments.threads)
    print("     n  demand              asked      gap    CPU s required   wall s     MiB required      theta  method")
    for row in SMALL + LARGE * (not arguments.small) + GOALS * arguments.goals:
        if arguments.only in (None, row.switches):
            report(row, arguments.threads)
    return None


if __name__ == "__main__":
    main()
