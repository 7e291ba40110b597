# SPDX-License-Identifier: Apache-2.0
"""How often the verdict ``saturated`` is wrong: on scenarios whose capacity is known, below it and above it.

    python benchmarks/saturation_verdict.py [--seeds 40] [--ticks 10000 30000] [--jobs 2]

Every scenario is simulated at four loads, 0.9, 0.97, 1.03 and 1.1 of its capacity. The capacity is that of the channel
which is full first, as its traffic is fixed; buffers are roomy, so that nothing else limits what the network carries.
Two verdicts are counted: that of the run alone (loss and growing queues), and that with the certified limit, which a
scenario has whose routing draws for every packet anew. Those of ``select: hash`` and ``adaptive`` have none.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context

import numpy as np

from flitlab.fluid.split import certified_limit
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.start import start
from flitlab.sim.measure.point import Measure, measure_batches, warm_up
from flitlab.sim.measure.verdict import verdict

PARTS = (0.9, 0.97, 1.03, 1.1)
"""Loads, of the capacity."""

LINE = [(0, 1)]


def scenario(topology: Topology, routing: dict, traffic: dict, source: Source, **more: int) -> Scenario:
    """A scenario of virtual cut-through with room for eight packets in every VC."""
    routes = make("routing", **routing).build(topology)
    demand = make("traffic", **traffic).build(topology)
    given = Vct(vcs=more.get("vcs", 8), buffer_flits=8 * max(source.flits))
    return Scenario(Instance(topology, demand, routes), given.certified(topology, routes)[0], source)


def shared(hosts: int, source: Source, select: str = "random", links: int = 1) -> Scenario:
    """So many hosts send over one link, or several parallel ones, to as many at its other end."""
    topology = Topology.from_links("line", 2, LINE * links).with_hosts(hosts)
    return scenario(topology, {"kind": "minimal", "select": select}, {"kind": "shift", "by": hosts}, source)


def one_pair(source: Source) -> Scenario:
    """128 hosts, of which two share a link beyond its rate; all others send to a host of their own switch."""
    case = shared(64, source, "hash")
    target = np.arange(128) ^ 1
    target[[0, 1, 64, 65]] = [64, 65, 0, 1]
    return replace(case, instance=replace(case.instance, traffic=replace(case.traffic, fixed=target)))


def mesh(traffic: dict, source: Source) -> Scenario:
    """Dimension order on a grid of 8 x 8 switches with a host each."""
    topology = make("topology", kind="mesh", dims=[8, 8], hosts_per_switch=1).build()
    return scenario(topology, {"kind": "dor"}, traffic, source)


def complete(traffic: dict, source: Source) -> Scenario:
    """Eight switches, each joined to each, with 12 hosts each."""
    topology = make("topology", kind="hyperx", dims=[8], hosts_per_switch=12).build()
    return scenario(topology, {"kind": "minimal"}, traffic, source)


SHORT, LONG = Source(flits=(1,)), Source(flits=(8,))

SCENARIOS = {
    "2 hosts on a link": (lambda: shared(2, LONG), 1 / 2),
    "4 hosts on a link, hash, single flits": (lambda: shared(4, SHORT, "hash"), 1 / 4),
    "4 hosts on two links, adaptive": (lambda: shared(4, LONG, "adaptive", 2), 1 / 2),
    "3 hosts on a link, Poisson": (lambda: shared(3, Source("poisson", (8,)), "hash"), 1 / 3),
    "2 hosts on a link, bursts of 8": (lambda: shared(2, Source("onoff", (8,), burst=8.0), "hash"), 1 / 2),
    "4 hosts on a link, bursts of 50": (lambda: shared(4, Source("onoff", (4,), burst=50.0), "hash"), 1 / 4),
    "2 of 128 hosts on a link": (lambda: one_pair(LONG), 1 / 2),
    "8 x 8 mesh, transpose": (lambda: mesh({"kind": "transpose"}, LONG), 1 / 7),
    "96 hosts, half of all to one": (lambda: complete({"kind": "hotspot", "hosts": [0], "fraction": 0.5}, LONG), 1.0),
    "complete graph, to the next switch": (lambda: complete({"kind": "shift", "by": 12}, LONG), 1 / 12),
}
"""Name -> (scenario, capacity)."""

Job = tuple[str, float, int, int]
"""(scenario, part of its capacity, seed, ticks)."""

built = cache(lambda name: SCENARIOS[name][0]())


def verdicts(job: Job) -> tuple[bool | None, bool | None]:
    """(of the run alone, with the certified limit)."""
    name, part, seed, ticks = job
    case, load = built(name), part * SCENARIOS[name][1]
    run, measure = start("compiled", case, load, seed), Measure(None, ticks, None)
    first, _ = warm_up(run, case, load, measure)
    before = run.snapshot().created
    batches, backlog = measure_batches(run, case, load, first, measure)
    shown, _ = verdict(case, load, batches, run.snapshot().created - before, backlog)
    return shown, True if load >= certified_limit(case) else shown


def told(found: Iterable[bool | None], truth: bool) -> str:
    """Wrong verdicts, and those that leave it open."""
    counts = Counter(found)
    return f"{counts[not truth]}" + (f" ({counts[None]} open)" if counts[None] else "")


def main() -> None:
    """Prints a table for every length of the window."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--ticks", type=int, nargs="+", default=[10_000, 30_000])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for ticks in options.ticks:
            print(f"\nwrong verdicts of {options.seeds}, windows of {ticks} ticks: of the run / with the limit\n")
            print("| scenario | " + " | ".join(f"{part:g}" for part in PARTS) + " |")
            print("|---|" + "---|" * len(PARTS))
            for name in SCENARIOS:
                cells = []
                for part in PARTS:
                    jobs = [(name, part, seed, ticks) for seed in range(1, options.seeds + 1)]
                    alone, limited = zip(*pool.map(verdicts, jobs, chunksize=10), strict=True)
                    cells.append(f"{told(alone, part > 1)} / {told(limited, part > 1)}")
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
