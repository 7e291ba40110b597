# SPDX-License-Identifier: Apache-2.0
"""What size costs: speed, set-up and memory on thousands of switches.

    python benchmarks/bench_scale.py [--runs 3]

Random regular graphs: 1,024 and 4,096 switches of degree 6, and 10,000 of degree 24 with 100,000 hosts. Those with
packets of 16 flits are those of ``configs/scale_10000.yaml``; worms have 8, other packets 33. Every network has a
process of its own, so that the peak of its memory is known. Kernels are compiled before the clock starts.
"""

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench_engines import scenario, worms
from measured import Row, command, digits

from flitlab.models.scenario import Scenario
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start

RUNS = 3

CONFIG = Path(__file__).parents[1] / "configs" / "scale_10000.yaml"


class Work(NamedTuple):
    """A discipline and its network, how to make it, a load, and how many ticks are measured, after as many."""

    name: str
    make: Callable[[], Scenario]
    load: float
    ticks: int


def graph(n: int, degree: int, hosts: int, vcs: int, routing: str = "minimal") -> Scenario:
    """A random regular graph with so many hosts a switch and a VC for each hop."""
    return scenario(random(n, degree, hosts), routing, vcs)


def random(n: int, degree: int, hosts: int) -> dict:
    """What is said of a random regular graph in a configuration."""
    return {"kind": "rrg", "n": n, "degree": degree, "seed": 1, "hosts_per_switch": hosts}


def wormhole(n: int, degree: int) -> Scenario:
    """Packets of 8 flits on a random regular graph with 4 hosts a switch and a VC for each hop."""
    return worms(random(n, degree, 4), {"kind": "minimal", "vc_policy": "hop"}, 7, 8)


def whole(select: str) -> Scenario:
    """That of the configuration which chooses its next hop so."""
    found = read(CONFIG, sets=[f"routing.select={select}"]).cases[0].scenario
    assert found is not None
    return found


WORKS = [
    Work("vct, RRG(1024, 6)", partial(graph, 1024, 6, 4, 6), 0.15, 4_000),
    Work("vct, RRG(4096, 6)", partial(graph, 4096, 6, 4, 7), 0.15, 2_000),
    Work("deflection, RRG(1024, 6)", partial(graph, 1024, 6, 4, 6, "deflection"), 0.15, 4_000),
    Work("deflection, RRG(4096, 6)", partial(graph, 4096, 6, 4, 7, "deflection"), 0.15, 2_000),
    Work("wormhole, RRG(1024, 6)", partial(wormhole, 1024, 6), 0.15, 4_000),
    Work("wormhole, RRG(4096, 6)", partial(wormhole, 4096, 6), 0.15, 2_000),
    Work("vct, RRG(10000, 24), 100,000 hosts", partial(graph, 10_000, 24, 10, 4), 0.4, 400),
    Work("vct, RRG(10000, 24), 100,000 hosts, 16 flits", partial(whole, "random"), 0.4, 400),
    Work("vct, RRG(10000, 24), 100,000 hosts, 16 flits, adaptive", partial(whole, "adaptive"), 0.4, 400),
]


def measure(work: Work, runs: int) -> list[Row]:
    """A row of speed, one of set-up and one of memory."""
    began = time.process_time()
    case = work.make()
    built = time.process_time() - began
    start("compiled", case, work.load, 1).advance(10)  # compiles
    began = time.process_time()
    run = start("compiled", case, work.load, 1)
    built += time.process_time() - began
    run.advance(now := work.ticks)
    rates, grants = [], []
    for _ in range(runs):
        before, began = run.scalars(), time.process_time()
        run.advance(now := now + work.ticks)
        spent, change = time.process_time() - began, run.scalars() - before
        rates.append(change[Scalar.HOPS] * case.source.flits[0] / spent / 1e6)
        grants.append(spent / change[Scalar.GRANTS] * 1e9)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        Row(f"{work.name}, load {work.load}", "M flit-hops/CPU-s", rates, f"{digits(median(grants))} ns a grant"),
        Row(f"{work.name}: set-up", "CPU-s", [built]),
        Row(f"{work.name}: peak of memory", "GiB", [peak]),
    ]


def rows(runs: int) -> Iterator[Row]:
    """Every work in a process of its own."""
    for work in WORKS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield from pool.submit(measure, work, runs).result()


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
