# SPDX-License-Identifier: Apache-2.0
"""Small datagram sessions of every kind, most of which lose packets, and what must hold in each of them."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import numpy as np

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.failures import LinkFailures, with_failures
from flitlab.models.transport.flows import Flows, arriving, long_lived, together
from flitlab.models.transport.law import Transport
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues, Session, make_session, tick_of
from flitlab.models.transport.sizes import SizesSpec
from flitlab.sim.engines.compiled.datagram import CompiledDatagrams
from flitlab.sim.engines.reference.datagram import ReferenceDatagrams
from flitlab.sim.engines.transport.datagram import Counters, SubflowCount
from flitlab.sim.engines.transport.run import Lockstep, Trace, compare_counters, compare_traces
from flitlab.sim.measure.datagram import measure_flows
from flitlab.sim.measure.result import FlowsResult
from flitlab.sim.measure.transport import Window
from tests.scenarios import build, line

ECMP = {"kind": "ecmp", "ways": 8, "routed": "source"}


def session_of_number(number: int) -> Session:
    """A session with any transport, way of acknowledgements, queues and kind of flows, in which links may fail."""
    rng = Random(number)
    topology, control, queues = _topology(rng), _transport(rng), _queues(rng)
    routing = rng.choice([ECMP, {"kind": "ecmp", "ways": 2, "per": "flow"}, {"kind": "minimal"}])
    if topology.kind in ("rrg", "torus"):
        routing = rng.choice([routing, {"kind": "ksp", "k": 3}])
    control = replace(control, ack_bytes=min(control.ack_bytes, queues.queue_bytes))
    flows, routes = _flows(rng, topology, control, queues), make("routing", **routing).build(topology)
    draw, seed = rng.choice([PathDraw.DISTINCT, PathDraw.WITH_REPLACEMENT]), rng.randrange(2**40)
    try:
        case = make_session(topology, routes, control, queues, flows, path_draw=draw, seed=seed)
    except SpecError:  # more subflows than paths
        case = make_session(topology, routes, control, queues, flows, path_draw=PathDraw.WITH_REPLACEMENT, seed=seed)
    if topology.kind in ("rrg", "torus", "fat_tree") and rng.random() < 0.4:
        failures = LinkFailures(links=rng.choice([1, 2]), at_ms=20.0, reroute_ms=rng.choice([0.0, 5.0, 15.0]))
        with suppress(SpecError):  # not all switches reach each other
            case = with_failures(case, failures, make("routing", **ECMP))
    return case


@cache
def _topologies() -> list[Topology]:
    return [
        line(1, hosts=4), line(2, hosts=4), line(3, hosts=2), build("rrg", hosts=2, n=6, degree=3, seed=4),
        build("fat_tree", hosts=2, k=4), build("torus", dims=[3, 3]),
    ]  # fmt: skip


def _topology(rng: Random) -> Topology:
    topology = rng.choice(_topologies())
    if rng.random() < 0.5:
        speeds = rng.choices([0.3, 0.5, 1.0, 3.0], k=2)
        capacity = np.where((topology.src + topology.dst) % 2 == 0, *speeds).astype(float)
        topology = replace(topology, capacity=capacity, host_capacity=rng.choice([1.0, 1.0, 2.0]))
    return topology


def _transport(rng: Random) -> Transport:
    kind = rng.choice(["tcp", "mptcp", "dctcp", "none"])
    keys: dict = {"subflows": rng.randint(1, 4), "flows": rng.randint(1, 2), "start_ms": rng.choice([0.0, 3.0])}
    if kind == "none":
        return make("transport", kind=kind, rate=rng.choice([0.3, 1.0, 1.0]), **keys).build()
    keys |= {
        "ack_path": rng.choice(["instant", "pure_delay", "reverse_path"]), "ack_bytes": rng.choice([1, 40, 40, 3000]),
        "init_window": rng.choice([1, 2, 10, 12, 100, 1000]), "ssthresh": rng.choice([2, 100, 100, 5000]),
        "min_rto_ms": rng.choice([0.5, 5.0, 20.0, 100.0]), "syn_rto_ms": rng.choice([5.0, 60.0]),
    }  # fmt: skip
    if kind == "mptcp":
        keys["coupling"] = rng.choice(["lia", "none"])
    if kind == "dctcp":
        keys["mark_packets"] = rng.randint(1, 5)
    return make("transport", kind=kind, **keys).build()


def _queues(rng: Random) -> Queues:
    size = rng.choice([300, 1000, 1000])
    return Queues(
        packet_bytes=size, queue_bytes=size * rng.choice([1, 2, 3, 5, 20, 100, 3000]), random_drop=rng.random() < 0.5,
        link_us=rng.choice([0.0, 10.0, 300.0, 3000.0]), feeder_packets=rng.choice([0, 0, 0, 4, 50]),
    )  # fmt: skip


def _flows(rng: Random, topology: Topology, control: Transport, queues: Queues) -> Flows:
    patterns = [{"kind": "permutation", "seed": rng.randrange(10)}, {"kind": "incast", "senders": 3, "receiver": 1}]
    traffic, kind = make("traffic", **rng.choice(patterns)).build(topology), rng.choice("eetp")
    if kind == "p":
        sizes = SizesSpec(kind="pareto", mean_bytes=20.0 * queues.packet_bytes, max_bytes=1e6).build()
        uniform, last = make("traffic", kind="uniform").build(topology), int(0.01 / tick_of(topology, queues))
        load, size = rng.choice([0.3, 0.9]), queues.packet_bytes
        flows = arriving(uniform, load, sizes, size, sizes.mean_packets(size), Fraction(size), last, rng.randrange(10))
        if len(flows.source):
            return flows
    if kind != "t":
        return long_lived(traffic, control.flows)
    sizes = SizesSpec(kind="fixed", bytes=queues.packet_bytes * rng.choice([1, 40, 200])).build()
    return together(traffic, control.flows, sizes, queues.packet_bytes, 1)


def start(engine: str, session: Session, trace: bool = False) -> Any:
    """A run of a session that no scenario stands for."""
    if engine == "both":
        return Lockstep(start("compiled", session, trace=True), start("reference", session, trace=True))
    return {"compiled": CompiledDatagrams, "reference": ReferenceDatagrams}[engine](session, trace)


def measured(run: Any, window: tuple[float, float]) -> FlowsResult:
    """What is known of a run of flows at the end of a window."""
    return measure_flows(run, None, 1.0, Window(window))


def run_session(engine: str, session: Session, window: tuple[float, float]) -> FlowsResult:
    """A session, run and measured."""
    return measured(start(engine, session), window)


def check(case: Session, window: tuple[float, float]) -> Counters:
    """Assert that both engines do the same, and nothing impossible, to the end of the window; what they counted."""
    compiled, reference = (start(engine, case, trace=True) for engine in ("compiled", "reference"))
    ours, theirs = (measured(run, window) for run in (compiled, reference))
    compare_traces(compiled.trace(), reference.trace())
    counters, flying = compiled.counters(), compiled.in_flight()
    compare_counters(counters, reference.counters())
    np.testing.assert_array_equal(flying, reference.in_flight())
    _assert_same_results(ours, theirs)
    _assert_each_packet_counted_once(case, counters, flying, compiled.trace())
    _assert_possible(case, ours)
    return counters


def _assert_same_results(ours: FlowsResult, theirs: FlowsResult) -> None:
    for a, b in ((ours.row, theirs.row), (ours.detail, theirs.detail), (ours.window, theirs.window)):
        assert repr(a) == repr(b)  # NaN of what has not happened included
    np.testing.assert_array_equal(ours.throughput, theirs.throughput)
    for a, b in ((ours.delivered, theirs.delivered), (ours.present, theirs.present)):
        np.testing.assert_array_equal(a.pairs.table(), b.pairs.table())
        np.testing.assert_array_equal(a.sources, b.sources)
        np.testing.assert_array_equal(a.destinations, b.destinations)


def _assert_each_packet_counted_once(case: Session, counters: Counters, flying: np.ndarray, trace: Trace) -> None:
    counts = counters.subflow
    np.testing.assert_array_equal(
        counts[:, SubflowCount.SENT], counts[:, SubflowCount.ARRIVED] + counts[:, SubflowCount.DROPPED] + flying
    )
    kept = np.unique(trace.subflow << 40 | trace.number) >> 40
    np.testing.assert_array_equal(counts[:, SubflowCount.ARRIVED], np.bincount(trace.subflow, minlength=case.subflows))
    np.testing.assert_array_equal(counts[:, SubflowCount.RECEIVED], np.bincount(kept, minlength=case.subflows))
    sizes = case.flows.packets
    received = np.add.reduceat(counts[:, SubflowCount.RECEIVED], case.first[:-1])
    np.testing.assert_array_equal((received == sizes) & (sizes > 0), counters.finished >= 0)
    if case.transport.law is None:
        assert not counts[:, SubflowCount.RESENT].any()


def _assert_possible(case: Session, result: FlowsResult) -> None:
    assert not result.row["jain"] > 1
    slowdown = np.array([row["slowdown"] for row in result.detail["flows"] if "slowdown" in row])
    if not case.changes:  # a path found afterwards may be shorter
        assert not (slowdown < 1 - 1e-12).any()
