"""Speed of the engines: million flit-hops per CPU-second, and the ratio of compiled to reference.

    python benchmarks/bench_engines.py [--runs 3]

A flit-hop is one flit over one channel between switches; the rate with injection and ejection channels is printed
beside it.
The kernel is compiled before the clock starts. Nothing is asserted: machines differ.
"""

import argparse
import statistics
import time

from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.vct import Vct
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import DELIVERED_FLITS, GRANTS, HOPS
from flitlab.sim.engines.start import start

TIMES = {"header": 34, "switch": 4, "link": 7, "injection": 8, "ejection": 8, "credit": 7}


def scenario(topology: dict, routing: str, vcs: int, flits: int = 33) -> Scenario:
    """4 hosts a switch, uniform traffic, two packets a VC."""
    graph = make("topology", hosts_per_switch=4, **topology).build()
    routes = make("routing", kind=routing, vc_policy="hop").build(graph)
    demand = make("traffic", kind="uniform").build(graph)
    keys = {"vcs": vcs, "buffer_flits": 2 * flits, **TIMES}
    hold = vcs * int(graph.out_degree.max())
    given = Deflection(**keys, hold_packets=hold) if routes.deflection else Vct(**keys)
    return Scenario(Instance(graph, demand, routes), given.certified(graph, routes)[0], Source(flits=(flits,)))


def mesh(flits: int) -> Scenario:
    """Wormhole on an 8x8 mesh: dimension order, 4 VCs of 8 flits, one tick per stage of the router."""
    graph = make("topology", kind="mesh", dims=[8, 8]).build()
    routes = make("routing", kind="dor").build(graph)
    demand = make("traffic", kind="uniform").build(graph)
    times = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2}
    given = Wormhole(vcs=4, buffer_flits=8, shared_input=True, **times)
    return Scenario(Instance(graph, demand, routes), given.certified(graph, routes)[0], Source(flits=(flits,)))


def speed(name: str, case: Scenario, load: float, seed: int, ticks: int) -> tuple[float, float, float, float]:
    """(million flit-hops per CPU-second, the same over all channels, thousand grants, accepted flits/tick/host)."""
    run = start(name, case, load, seed)
    run.advance(ticks // 5)
    before, began = run.scalars(), time.process_time()
    run.advance(ticks // 5 + ticks)
    spent = time.process_time() - began
    change = run.scalars() - before
    flits = case.source.flits[0]
    accepted = change[DELIVERED_FLITS] / ticks / case.topology.hosts
    hops = change[HOPS] * flits
    every = hops + 2 * change[DELIVERED_FLITS]
    return hops / spent / 1e6, every / spent / 1e6, change[GRANTS] / spent / 1e3, accepted


def table(title: str, name: str, case: Scenario, loads: list[float], ticks: int, runs: int) -> dict[float, float]:
    """Print a row per load; the median speed in grants at each."""
    print(f"\n{title} [{name}]")
    print("  load  accepted   Mflit-hops/CPU-s (min median max)   all channels   k packet-hops/CPU-s")
    medians = {}
    for load in loads:
        rows = [speed(name, case, load, seed, ticks) for seed in range(1, runs + 1)]
        rates = sorted(row[0] for row in rows)
        middle, every, medians[load] = (statistics.median(row[i] for row in rows) for i in range(3))
        print(
            f"  {load:<5} {rows[0][3]:8.4f}   {rates[0]:8.1f} {middle:8.1f} {rates[-1]:8.1f}"
            f"   {every:14.1f}   {medians[load]:14.1f}"
        )
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    rrg = scenario({"kind": "rrg", "n": 256, "degree": 6, "seed": 1}, "minimal", 5)
    mddp = scenario({"kind": "mddp", "n": 256, "degree": 6, "seed": 1}, "minimal", 4)
    potato = scenario({"kind": "mddp", "n": 256, "degree": 6, "seed": 1}, "deflection", 4)
    small = scenario({"kind": "imase", "n": 64, "degree": 6}, "minimal", 4)
    flits = {1: mesh(1), 5: mesh(5)}
    for case in (mddp, potato, small, flits[1]):  # compile
        speed("compiled", case, 0.1, 1, 100)

    table("vct, RRG(256, 6), 5 hop-indexed VCs", "compiled", rrg, [0.1, 0.24, 0.3, 0.6], 30_000, runs)
    table("vct, MDDP(256, 6), 4 hop-indexed VCs", "compiled", mddp, [0.1, 0.2, 0.3, 0.6], 30_000, runs)
    table("deflection, MDDP(256, 6)", "compiled", potato, [0.1, 0.2, 0.3, 0.6], 30_000, runs)
    for length, case in flits.items():
        table(f"wormhole, 8x8 mesh, packets of {length}", "compiled", case, [0.1, 0.35], 40_000, runs)
    slow = table("vct, imase(64, 6)", "reference", small, [0.2], 3_000, runs)
    fast = table("vct, imase(64, 6)", "compiled", small, [0.2], 100_000, runs)
    print(f"\ncompiled : reference = {fast[0.2] / slow[0.2]:.0f} : 1")


if __name__ == "__main__":
    main()
