# SPDX-License-Identifier: Apache-2.0
"""Speed of mode ``flow``: thousand messages delivered per CPU-second on MDDP(256, 6).

    python benchmarks/bench_flow.py [--runs 3]

Every rank has some messages to random ranks under way and sends the next one when it has received one in its place.
The kernel is compiled before the clock starts. Nothing is asserted: machines differ.
"""

import time
from collections.abc import Iterator
from fractions import Fraction
from statistics import median

import numpy as np
from measured import Row, command, digits

from flitlab.models.application.builder import Builder
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.sim.engines.start import start

RUNS = 3

RANKS, MESSAGES = 256, 100_000
HOW = Messages(1024, 32, 0, 32, False, 1 << 40, 0, Fraction(32, 5))
TIMES = {"header": 34, "switch": 4, "link": 7, "injection": 8, "ejection": 8, "credit": 7}


def random_pairs(at_once: int, most_bytes: int, rounds: int) -> Program:
    """In every round of every lane a random permutation of the ranks, messages of 1 kB to ``most_bytes``."""
    rng, builder = np.random.default_rng(1), Builder(RANKS)
    for lane in range(at_once):
        with builder.on(lane):
            builder.begin("random pairs")
            for _ in range(rounds):
                sizes = rng.integers(1000, most_bytes, size=RANKS, endpoint=True)
                builder.exchange(np.arange(RANKS), rng.permutation(RANKS), sizes)
    return builder.build()


def network(select: str, what: Program) -> Scenario:
    """Rank r on host r, a host a switch."""
    graph = make("topology", kind="mddp", n=RANKS, degree=6, seed=1, hosts_per_switch=1).build()
    routes = make("routing", kind="minimal", select=select).build(graph)
    demand = make("traffic", kind="uniform").build(graph)
    workload = Workload(what, np.arange(RANKS), HOW)
    return Scenario(Instance(graph, demand, routes), Flow(**TIMES), workload)


def rate(case: Scenario) -> float:
    """Messages delivered per CPU-second."""
    run, began = start("compiled", case, 1.0, 1), time.process_time()
    run.advance(1 << 50)
    return run.delivered / (time.process_time() - began)


def rows(runs: int) -> Iterator[Row]:
    """Different numbers of messages under way, of like and of different sizes, on kept ways and on drawn ones."""
    rate(network("hash", random_pairs(1, 1000, 1)))  # compiles
    for at_once in (1, 2, 3, 4, 8):
        for most_bytes in (1000, 20_000):
            what = random_pairs(at_once, most_bytes, MESSAGES // RANKS // at_once // (1 if at_once < 8 else 4))
            each, random = (rates(network(select, what), runs) for select in ("hash", "random"))
            work = f"flow, MDDP(256, 6), {at_once} at once, 1000 to {most_bytes} B"
            yield Row(work, "k messages/CPU-s", each, f"{digits(median(random))} with `select: random`")


def rates(case: Scenario, runs: int) -> list[float]:
    """Thousand messages per CPU-second of so many runs."""
    return [rate(case) / 1000 for _ in range(runs)]


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
