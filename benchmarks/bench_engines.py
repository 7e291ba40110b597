# SPDX-License-Identifier: Apache-2.0
"""Speed of the engines: million flit-hops per CPU-second, of packets of 33 flits unless said otherwise.

    python benchmarks/bench_engines.py [--runs 3]

A flit-hop is one flit over one channel between switches; channels of hosts do not count. The kernel is compiled before
the clock starts. Nothing is asserted: machines differ.
"""

import statistics
import time
from collections.abc import Iterator

from measured import Row, command, digits

from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.vct import Vct
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start

RUNS = 3

TIMES = {"header": 34, "switch": 4, "link": 7, "injection": 8, "ejection": 8, "credit": 7}


def scenario(topology: dict, routing: str, vcs: int, flits: int = 33) -> Scenario:
    """Uniform traffic, two packets a VC, 4 hosts a switch unless the topology says otherwise."""
    graph = make("topology", **{"hosts_per_switch": 4} | topology).build()
    routes = make("routing", kind=routing, vc_policy="hop").build(graph)
    demand = make("traffic", kind="uniform").build(graph)
    keys = {"vcs": vcs, "buffer_flits": 2 * flits, **TIMES}
    hold = vcs * int(graph.out_degree.max())
    given = Deflection(**keys, hold_packets=hold) if routes.deflection else Vct(**keys)
    return Scenario(Instance(graph, demand, routes), given.certified(graph, routes)[0], Source(flits=(flits,)))


def mesh(flits: int) -> Scenario:
    """Wormhole on an 8x8 mesh: dimension order, 4 VCs."""
    return worms({"kind": "mesh", "dims": [8, 8]}, {"kind": "dor"}, 4, flits)


def worms(topology: dict, routing: dict, vcs: int, flits: int) -> Scenario:
    """Wormhole with VCs of 8 flits, and one tick per stage of the router."""
    graph = make("topology", **topology).build()
    routes = make("routing", **routing).build(graph)
    demand = make("traffic", kind="uniform").build(graph)
    times = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2}
    given = Wormhole(vcs=vcs, buffer_flits=8, shared_input=True, **times)
    return Scenario(Instance(graph, demand, routes), given.certified(graph, routes)[0], Source(flits=(flits,)))


def speed(name: str, case: Scenario, load: float, seed: int, ticks: int) -> tuple[float, float, float]:
    """(million flit-hops per CPU-second, nanoseconds a grant, accepted flits/tick/host)."""
    run = start(name, case, load, seed)
    run.advance(ticks // 5)
    before, began = run.scalars(), time.process_time()
    run.advance(ticks // 5 + ticks)
    spent = time.process_time() - began
    change = run.scalars() - before
    flits = case.source.flits[0]
    accepted = change[Scalar.DELIVERED_FLITS] / ticks / case.topology.hosts
    return change[Scalar.HOPS] * flits / spent / 1e6, spent / change[Scalar.GRANTS] * 1e9, accepted


def works() -> Iterator[tuple[str, Scenario, list[float], int]]:
    """(name, scenario, loads, ticks to measure) of each work."""
    mddp = {"kind": "mddp", "n": 256, "degree": 6, "seed": 1}
    yield "vct, RRG(256, 6), 5 VCs", scenario({**mddp, "kind": "rrg"}, "minimal", 5), [0.1, 0.24, 0.3, 0.6], 30_000
    yield "vct, MDDP(256, 6), 4 VCs", scenario(mddp, "minimal", 4), [0.1, 0.2, 0.3, 0.6], 30_000
    yield "deflection, MDDP(256, 6)", scenario(mddp, "deflection", 4), [0.1, 0.2, 0.3, 0.6], 30_000
    for length in (1, 5):
        yield f"wormhole, 8x8 mesh, packets of {length}", mesh(length), [0.1, 0.35], 40_000


def rows(runs: int) -> Iterator[Row]:
    """Every work at each of its loads, and how much faster the compiled engine is than the reference."""
    for name, case, loads, ticks in works():
        speed("compiled", case, loads[0], 1, 100)  # compiles
        for load in loads:
            yield row(f"{name}, load {load}", "compiled", case, load, ticks, runs)
    small = scenario({"kind": "imase", "n": 64, "degree": 6}, "minimal", 4)
    for name, ticks in (("compiled", 100_000), ("reference", 3_000)):
        yield row(f"vct, imase(64, 6), load 0.2, engine `{name}`", name, small, 0.2, ticks, runs)


def row(work: str, name: str, case: Scenario, load: float, ticks: int, runs: int) -> Row:
    """Runs with different seeds."""
    measured = [speed(name, case, load, seed, ticks) for seed in range(1, runs + 1)]
    grant, accepted = (statistics.median(one[i] for one in measured) for i in (1, 2))
    note = f"{digits(grant)} ns a grant; accepted {accepted:.3f}"
    return Row(work, "M flit-hops/CPU-s", [one[0] for one in measured], note)


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
