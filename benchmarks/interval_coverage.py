# SPDX-License-Identifier: Apache-2.0
"""How often the 95 % intervals of this project hold the true mean: of a Geo/D/1 queue, whose mean is known.

    python benchmarks/interval_coverage.py [--seeds 500] [--ticks 100000] [--jobs 2]
        [--flits 8] [--utilisations 0.3 0.6 0.8] [--intervals fixed growing replicates default]

One host sends packets of L flits over one link; in every tick it creates one with probability p. Its channel is a
server that takes L ticks for each, so the mean latency is that of a packet alone and the wait of a Geo/D/1 queue,

    W = p L (L - 1) / 2 (1 - p L).

Waits follow Lindley's recursion W' = max(0, W + L - A), where A >= 1 are the ticks between two arrivals, geometric
with p. Let I = W' - (W + L - A), the time that the server idles; W' I = 0. In a steady state E[I] = E[A] - L, and
squaring W' - I = W + L - A gives E[W] = (E[(A - L)^2] - E[I^2]) / 2 (E[A] - L). A has no memory: where I is not 0 it
is distributed as A, so E[I^2] = E[I] E[A^2] / E[A]. With E[A] = 1/p and E[A^2] = (2 - p) / p^2 the formula follows.
For long packets at p L = rho it tends to L rho / 2 (1 - rho), that of M/D/1.

Four intervals are tried at every utilisation: of the batches of one run of fixed length (``fixed``), of the batches of
a run that begins with the usual 30,000 ticks and goes on until its interval is as narrow as ``measure.ci`` asks
(``growing``), of the means of five replicates (``replicates``), and of the batches of a run with the default
``measure``, which goes on to 60,000 ticks at most (``default``). At a utilisation of 0.8 a run of 30,000 ticks (3,000
packets) is too short for any of this: its half-width is 16 % of the mean, and 91 % of such intervals hold the truth.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context

import numpy as np

from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure

FLITS = 8
UTILISATIONS = (0.3, 0.6, 0.8)
REPLICATES = 5
USUAL_TICKS = 30_000
CI = 0.05
INTERVALS = ("fixed", "growing", "replicates", "default")

Estimate = tuple[float, float]
"""Mean latency and the half-width of its interval, in ticks."""


@cache
def link(flits: int) -> Scenario:
    """Two switches with a host each, of which only the first sends, packets of ``flits``."""
    topology = Topology.from_links("link", 2, [(0, 1)]).with_hosts(1)
    routes = make("routing", kind="minimal").build(topology)
    demand = replace(make("traffic", kind="shift", by=1).build(topology), rate=np.array([1.0, 0.0]))
    given = Vct(vcs=4, buffer_flits=4 * flits).certified(topology, routes)[0]
    return Scenario(Instance(topology, demand, routes), given, Source(flits=(flits,)))


def true_mean(utilisation: float, flits: int) -> float:
    """Mean latency in ticks."""
    wait = utilisation * (flits - 1) / (2 * (1 - utilisation))
    return link(flits).zero_load_latency + wait


def measured(job: tuple[float, int, int, Measure]) -> Estimate:
    """What one run says of the mean latency; job: utilisation, flits, seed, window."""
    utilisation, flits, seed, how = job
    row = measure("compiled", link(flits), utilisation, seed, how).row
    return row["latency_mean"], row["latency_ci95"]


def covered(estimates: Iterable[Estimate], truth: float) -> str:
    """The share of intervals that hold the truth, their mean relative half-width, and the bias."""
    means, halves = np.array(list(estimates)).T
    share = np.mean(np.abs(means - truth) <= halves)
    bias = means.mean() / truth - 1
    error = means.std() / np.sqrt(len(means)) / truth
    return f"{share:8.1%} {np.mean(halves / means):10.1%} {bias:+10.2%} ± {error:.2%}"


def main() -> None:
    """Prints a line for every utilisation and kind of interval."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--ticks", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--flits", type=int, default=FLITS)
    parser.add_argument("--utilisations", type=float, nargs="+", default=UTILISATIONS)
    parser.add_argument("--intervals", nargs="+", choices=INTERVALS, default=INTERVALS)
    options = parser.parse_args()
    fixed = Measure(None, options.ticks, None)
    growing = Measure(None, USUAL_TICKS, CI, 40 * USUAL_TICKS)
    default = Measure(None, USUAL_TICKS, CI, 2 * USUAL_TICKS)
    started = time.monotonic()
    print(f"{options.seeds} seeds, {options.ticks} ticks, packets of {options.flits} flits, ci {CI:.0%}\n")
    print("utilisation  interval                covers   half-width      bias")
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:

        def runs(utilisation: float, count: int, how: Measure) -> list[Estimate]:
            jobs = [(utilisation, options.flits, seed, how) for seed in range(1, count + 1)]
            return list(pool.map(measured, jobs, chunksize=20))

        def replicates(utilisation: float) -> list[Estimate]:
            means = np.array(runs(utilisation, REPLICATES * options.seeds, fixed))[:, 0]
            return [mean_and_half(some) for some in means.reshape(-1, REPLICATES).tolist()]

        kinds: dict[str, tuple[str, Callable[[float], list[Estimate]]]] = {
            "fixed": ("batches", lambda utilisation: runs(utilisation, options.seeds, fixed)),
            "growing": ("batches until ci", lambda utilisation: runs(utilisation, options.seeds, growing)),
            "replicates": (f"{REPLICATES} replicates", replicates),
            "default": ("batches by default", lambda utilisation: runs(utilisation, options.seeds, default)),
        }
        for utilisation in options.utilisations:
            truth = true_mean(utilisation, options.flits)
            for name in options.intervals:
                title, estimates = kinds[name]
                print(f"{utilisation:11.2f}  {title:<18}{covered(estimates(utilisation), truth)}", flush=True)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
