# SPDX-License-Identifier: Apache-2.0
"""Speed of mode ``datagram``: million data packet-hops per CPU-second, MPTCP with 8 subflows.

    python benchmarks/bench_datagram.py [--runs 3]

A random permutation of long-lived flows, with queues and links as in ``configs/paper/sin-t601.yaml``. A packet-hop is a
data packet that has left a queue, of a link of a host or between switches; the rate of the latter alone is printed
beside it. The kernel is compiled before the clock starts. Nothing is asserted: machines differ.
"""

import statistics
import time
from collections.abc import Iterator

from measured import Row, command, digits

from flitlab.models.registry import make
from flitlab.models.transport.flows import long_lived
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues, Session, make_session
from flitlab.sim.engines.compiled.datagram import CompiledDatagrams
from flitlab.sim.engines.transport.datagram import LinkCount

RUNS = 3

NETWORKS = {
    "fat tree": {"kind": "fat_tree", "k": 4},
    "fat tree, 128 hosts": {"kind": "fat_tree", "k": 8},
    "fat tree, 686 hosts": {"kind": "fat_tree", "k": 14},
    "random graph, 3000 hosts": {"kind": "rrg", "n": 750, "ports": 14, "hosts_total": 3000, "seed": 1},
}


def session(topology: dict) -> Session:
    """A flow of MPTCP from every host, over equal-cost paths."""
    graph = make("topology", **topology).build()
    routes = make("routing", kind="ecmp", ways=64).build(graph)
    transport = make("transport", kind="mptcp", subflows=8).build()
    traffic = make("traffic", kind="permutation", seed=1).build(graph)
    flows = long_lived(traffic, transport.flows)
    return make_session(graph, routes, transport, Queues(), flows, path_draw=PathDraw.WITH_REPLACEMENT, seed=1)


def speed(what: Session, seconds: float) -> tuple[float, float]:
    """Million packet-hops per CPU-second, over all links and between switches, after a warm-up of the same length."""
    run, ticks = CompiledDatagrams(what), round(seconds / what.tick_s)
    run.advance(ticks)
    before, began = run.counters().link[:, LinkCount.SENT], time.process_time()
    run.advance(2 * ticks)
    spent = time.process_time() - began
    hops = run.counters().link[:, LinkCount.SENT] - before
    return hops.sum() / spent / 1e6, hops[: what.topology.channels].sum() / spent / 1e6


def rows(runs: int) -> Iterator[Row]:
    """Every network, after one that compiles."""
    cases = {name: session(topology) for name, topology in NETWORKS.items()}
    speed(cases.pop("fat tree"), 0.01)
    for name, case in cases.items():
        measured = [speed(case, 300 / case.topology.hosts) for _ in range(runs)]
        note = f"{digits(statistics.median(one[1] for one in measured))} between switches"
        yield Row(f"datagram, {name}", "M packet-hops/CPU-s", [one[0] for one in measured], note)


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
