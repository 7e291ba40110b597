# SPDX-License-Identifier: Apache-2.0
"""No schedule takes less than what is proved: random trees on random networks, in mode flow."""

from fractions import Fraction

import numpy as np
import pytest

from flitlab.fluid.collective.bounds import bounds
from flitlab.fluid.collective.collective import Collective
from flitlab.fluid.collective.latency import Latency
from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.collective.pipeline import build_schedule
from flitlab.models.collective.program import build_program
from flitlab.models.collective.schedule import check
from flitlab.models.collective.tree import Tree
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines.start import start
from tests.models.test_schedules import streams_of

FLIT, WIDE = 32, 1000.0
"""Bytes of a flit; capacity of host channels, which bind nothing."""


def network(rng: np.random.Generator) -> Topology:
    """A ring with more arcs, each the only one of its ends, of unequal capacities, and a host on every switch."""
    n = int(rng.integers(3, 9))
    others = [(u, v) for u in range(n) for v in range(n) if u != v and v != (u + 1) % n]
    more = [others[i] for i in rng.permutation(len(others))[: int(rng.integers(len(others) + 1))]]
    arcs = [*((v, (v + 1) % n) for v in range(n)), *more]
    capacity = rng.choice([0.5, 1.0, 2.0], len(arcs))
    return Topology.from_arcs("random", n, arcs, capacity=capacity).with_hosts(1, WIDE)


def tree(rng: np.random.Generator, topology: Topology, root: int, back: bool) -> Tree:
    """A random tree out of a root along the arcs of a network, or of its reverse."""
    ends = topology.dst, topology.src
    arcs = np.stack(ends if back else ends[::-1], axis=1)
    inside, paths = {root}, []
    while len(inside) < topology.switches:
        for u, v in rng.permutation(arcs).tolist():
            if u in inside and v not in inside:
                inside.add(v)
                paths.append((u, v))
    return Tree(root, 1, tuple(paths))


def schedule(rng: np.random.Generator, kind: str, topology: Topology):
    """A schedule of random trees, a few for each root."""
    n = topology.switches
    each = int(rng.integers(1, 3))
    roots = [v for v in range(n) for _ in range(each)] if kind != "all_reduce" else rng.integers(n, size=each).tolist()
    out = [tree(rng, topology, root, back=False) for root in roots]
    into = [tree(rng, topology, root, back=True) for root in roots]
    streams = streams_of(kind, n, out, into)
    rate = {arc: 1.0 for stream in streams for arc in stream.arcs}
    return build_schedule(kind, n, each, streams, int(rng.integers(1, 4)), rate)


def efficiency(seed: int) -> float:
    """The bound on a random collective over the time of a random schedule."""
    rng = np.random.default_rng(seed)
    topology, kind = network(rng), str(rng.choice(["all_gather", "reduce_scatter", "all_reduce"]))
    made = schedule(rng, kind, topology)
    check(made)
    piece = int(rng.integers(1, 200)) * FLIT
    program = build_program(made, piece, int(rng.integers(1, 4)))
    switching = Flow(header=int(rng.integers(1, 4)), switch=int(rng.integers(3)), link=int(rng.integers(4)))
    messages = Messages(4 * FLIT, FLIT, 0, 4, False, 1 << 40, 0, Fraction(1), confirmed=bool(rng.random() < 0.5))
    host = np.arange(program.ranks)
    instance = Instance(topology, traffic_of(program, host, topology), make("routing", kind="minimal").build(topology))
    run = start("compiled", Scenario(instance, switching, Workload(program, host, messages)), 1.0, 1)
    run.advance(1 << 24)
    assert run.done()
    execution = run.execution()
    found = bounds(topology, Collective(kind, ranks="switches"))
    least = found.at(Fraction(piece, FLIT), Latency.of(topology, switching))
    return float(least.time) / float(execution.finish.max() / execution.resolution)


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 300), marks=pytest.mark.long)])
def test_no_schedule_is_below_its_bound(seeds):
    found = [efficiency(seed) for seed in seeds]
    assert max(found) <= 1 + 1e-9
    assert max(found) > 0.8  # some come near to it, so that the bound is no trivial one
