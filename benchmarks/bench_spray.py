# SPDX-License-Identifier: Apache-2.0
"""Speed of mode ``spray``: million packet-hops per CPU-second of a permutation on fat trees.

    python benchmarks/bench_spray.py [--runs 3]

Every host sends one message at once: by NSCC or RCCC over 64 paths, or by RDMA over one path with lossless queues. A
packet-hop is a packet of any kind, 64 bytes or full, that the queue of a link of a host or between switches has taken.
Kernels are compiled before the clock starts; the note says how long a run takes and how long messages do. Nothing is
asserted: machines differ.
"""

import resource
import statistics
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from measured import Row, command, digits

from flitlab.models.registry import make
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import Lossless
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount

RUNS = 3

WORK = [
    (8, 2_000_000, {"kind": "nscc", "spread": "mixed"}),
    (8, 2_000_000, {"kind": "nscc", "spread": "oblivious"}),
    (8, 2_000_000, {"kind": "rccc", "spread": "reps"}),
    (16, 2_000_000, {"kind": "nscc", "spread": "mixed"}),
    (32, 1_000_000, {"kind": "nscc", "spread": "mixed"}),
    (8, 20_000_000, {"kind": "roce"}),
    (16, 4_000_000, {"kind": "roce"}),
    (16, 4_000_000, {"kind": "hpcc"}),
    (32, 1_000_000, {"kind": "roce"}),
]
"""Ports of the fat tree's switches, bytes of each message, and transport."""

LOSSLESS = Fabric(mtu_bytes=4064, header_bytes=64, trim=False, lossless=Lossless(xoff=15, xon=12))
"""Queues with priority flow control, for RDMA."""


def session(ports: int, size: int, transport: dict) -> SpraySession:
    """A message from every host to another, at once."""
    tree = make("topology", kind="fat_tree", k=ports).build()
    traffic = make("traffic", kind="permutation", seed=1).build(tree)
    source, destination, _ = traffic.pairs()
    flows = Flows(source, destination, np.full(len(source), size), np.zeros(len(source), np.int64))
    routes = make("routing", kind="ecmp", ways=64).build(tree)
    fabric = Fabric() if "spread" in transport else LOSSLESS
    return make_spray_session(tree, routes, make("transport", **transport).spraying(), fabric, flows, seed=1)


def until_done(what: SpraySession) -> tuple[CompiledSpray, float]:
    """A run until all messages have ended, and the CPU-seconds that it took."""
    run, step, until, began = CompiledSpray(what), what.ticks(Fraction(1, 10**4)), 0, time.process_time()
    while not run.ended():
        until += step
        run.advance(until)
    return run, time.process_time() - began


def rows(runs: int) -> Iterator[Row]:
    """Every fabric, each after a run that compiles."""
    for ports, size, transport in WORK:
        until_done(session(4, 100_000, transport))
        what = session(ports, size, transport)
        measured = [until_done(what) for _ in range(runs)]
        counters, spent = measured[0][0].counters(), statistics.median(seconds for _, seconds in measured)
        hops, ended = (
            int(counters.link[:, LinkCount.ACCEPTED].sum()),
            counters.flow[:, FlowCount.FINISHED].max() * float(what.tick_s),
        )
        note = f"{digits(spent)} CPU-s; the last message ends after {ended * 1e6:.0f} us"
        if what.topology.hosts > 4096:
            note += f"; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2g} GiB"
        queues = "lossless" if what.ports else "spray"
        name = f"{queues}, {', '.join(transport.values())}, {what.topology.hosts:,} hosts x {size / 1e6:g} MB"
        yield Row(name, "M packet-hops/CPU-s", [hops / seconds / 1e6 for _, seconds in measured], note)


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
