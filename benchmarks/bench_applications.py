# SPDX-License-Identifier: Apache-2.0
"""Speed of programs in the packet engines: an all-to-all of 10 kB per pair among 256 ranks on MDDP(256, 6).

    python benchmarks/bench_applications.py [--runs 3]

The kernels are compiled before the clock starts. Nothing is asserted: machines differ.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from measured import Row, command, digits

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.application.workload import Workload
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
FLITS, FLIT_BYTES, FLIT_NS = 32, 32, Fraction(32, 5)
EAGER, RENDEZVOUS = 1 << 40, 4096


def network(mode: str) -> Scenario:
    """MDDP(256, 6), a host a switch, minimal routing on 4 VCs of two packets, or deflection."""
    graph = make("topology", kind="mddp", n=256, degree=6, seed=1, hosts_per_switch=1).build()
    routes = make("routing", kind="deflection" if mode == "deflection" else "minimal").build(graph)
    demand = make("traffic", kind="all_to_all").build(graph)
    keys = {"vcs": 4, "buffer_flits": 2 * FLITS, **TIMES}
    given = (
        Deflection(**keys, hold_packets=24)
        if mode == "deflection"
        else {"vct": Vct, "wormhole": Wormhole}[mode](**keys)
    )
    return Scenario(Instance(graph, demand, routes), given.certified(graph, routes)[0], Source(flits=(FLITS,)))


def with_program(case: Scenario, what: Program, rendezvous: int) -> Scenario:
    """Rank r on host r."""
    whole = isinstance(case.switching, Deflection)
    how = Messages(FLITS * FLIT_BYTES, FLIT_BYTES, 0, FLITS, whole, rendezvous, 0, FLIT_NS)
    return replace(case, work=Workload(what, np.arange(what.ranks), how))


def run(case: Scenario) -> tuple[float, int, np.ndarray]:
    """(CPU-seconds, tick in which the program was done, scalar counters)."""
    running, tick, began = start("compiled", case, 1.0, 1), 0, time.process_time()
    while not running.done():
        tick += 1 << 14
        running.advance(tick)
    return time.process_time() - began, int(running.execution().finish.max()), running.scalars()


def rows(runs: int) -> Iterator[Row]:
    """Two algorithms and two protocols in three disciplines."""
    for mode in ("vct", "wormhole", "deflection"):
        case = network(mode)
        run(with_program(case, make("application", kind="all_to_all", ranks=4, size_bytes=1).build(256), EAGER))
        for algorithm in ("pairwise", "linear"):
            what = make("application", kind="all_to_all", size_bytes=10_000, algorithm=algorithm).build(256)
            for protocol, limit in (("eager", EAGER), ("rendezvous", RENDEZVOUS)):
                measured = [run(with_program(case, what, limit)) for _ in range(runs)]
                rates = [counts[Scalar.HOPS] / spent / 1e6 for spent, _, counts in measured]
                best, done, counts = min(measured, key=lambda result: result[0])
                makespan = f"{done * float(FLIT_NS) / 1000:,.0f} us of {counts[Scalar.DELIVERED_PACKETS]:,} packets"
                note = f"{makespan} in {digits(best)} CPU-s"
                yield Row(f"{mode}, all-to-all, {algorithm}, {protocol}", "M packet-hops/CPU-s", rates, note)


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
