# SPDX-License-Identifier: Apache-2.0
"""Networks, routes and flows of lossless runs, and small sessions of every kind."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from flitlab.models.registry import make
from flitlab.models.routing.route_set import PathTable
from flitlab.models.routing.routes import NO_PORTS, RouteForm, Routes, Selection
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import Lossless, Storm
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.transport.spray import Counters, FlowCount
from tests.sim.spray_cases import case_of_number

ENGINES = {"reference": ReferenceSpray, "compiled": CompiledSpray}

ROCE = {"kind": "roce"}
EXTRA = {"kind": "roce", "extra": 1}
"""As the htsim simulator: one packet more for messages of full packets only."""

TAU, TAU_ACK = 4064 * 8e-5, 64 * 8e-5
"""Microseconds of a packet, and of an acknowledgement, at 100 Gb/s."""


def fabric(xoff: int = 15, xon: int = 12, **keys: Any) -> Fabric:
    """Lossless queues with packets of 4,000 bytes and a header of 64."""
    ecn = keys.pop("ecn", None)
    lossless = Lossless(xoff, xon, **keys)
    return Fabric(mtu_bytes=4064, header_bytes=64, trim=False, ecn=ecn, lossless=lossless)


def explicit_routes(topology: Topology, paths: Iterable[Sequence[int]]) -> Routes:
    """Routes with these paths, switch by switch, at most one for each pair."""
    by_pair = {(path[0], path[-1]): path for path in paths}
    pair_start, path_start, ports = [0], [0], []
    for pair in np.ndindex(topology.switches, topology.switches):
        if pair in by_pair:
            path = by_pair[pair]
            for switch, following in pairwise(path):
                first = topology.out_start[switch]
                ports.append(topology.dst[first : topology.out_start[switch + 1]].tolist().index(following))
            path_start.append(len(ports))
        pair_start.append(len(path_start) - 1)
    table = PathTable(np.array(pair_start), np.array(path_start), np.array(ports, np.uint8))
    longest = max(len(path) - 1 for path in by_pair.values())
    return Routes("explicit", NO_PORTS, Selection.HASH, longest, form=RouteForm.PATHS, paths=table)


def session(
    topology: Topology, pairs: Sequence[tuple[int, int]], size: int = 2_000_000, transport: dict | None = None,
    queues: Fabric | None = None, routes: Routes | None = None, seed: int = 1,
) -> SpraySession:  # fmt: skip
    """Flows of one size that begin together."""
    source, destination = np.array(pairs, np.int64).T
    flows = Flows(source, destination, np.full(len(pairs), size), np.zeros(len(pairs), np.int64))
    if routes is None:
        routes = make("routing", kind="ecmp", ways=64).build(topology)
    spraying = make("transport", **(transport or ROCE)).spraying()
    return make_spray_session(topology, routes, spraying, queues or fabric(), flows, seed)


def racks() -> Topology:
    """Two racks of eight hosts, joined by one switch."""
    return Topology.from_links("racks", 3, np.array([(0, 2), (1, 2)])).with_hosts(np.array([8, 8, 0]))


def ring(switches: int) -> Topology:
    """A ring of switches with a host each."""
    links = np.array([(switch, (switch + 1) % switches) for switch in range(switches)])
    return Topology.from_links("ring", switches, links).with_hosts(np.ones(switches, np.int64))


def clockwise(topology: Topology, hops: int) -> tuple[list[tuple[int, int]], Routes]:
    """Flows from each host of a ring over a number of channels clockwise; ACKs return by the same switches."""
    size = topology.switches
    paths = [[(start + hop) % size for hop in range(hops + 1)] for start in range(size)]
    pairs = [(path[0], path[-1]) for path in paths]
    return pairs, explicit_routes(topology, [*paths, *(path[::-1] for path in paths)])


def completed(case: SpraySession, engine: str, seconds: float = 0.02) -> tuple[np.ndarray, Counters]:
    """Completion times at senders, microseconds, and the counters, of a run whose flows all end."""
    run = ENGINES[engine](case)
    tick = 0
    while not run.ended():
        tick += 1_000_000
        assert tick < case.ticks(seconds) and not run.deadlock()
        run.advance(tick)
    counters = run.counters()
    wire = case.flows.bytes + case.flows.packets * case.rules.header
    assert (counters.flow[:, FlowCount.RECEIVED] == wire).all()
    return (counters.flow[:, FlowCount.FINISHED] - case.flows.start) * float(case.tick_s) * 1e6, counters


def lossless_of_number(number: int) -> SpraySession:
    """A session with lossless queues and RDMA, on any topology, with links of any rate, that may deadlock."""
    case, _, routes = case_of_number(number)
    rng = Random(number)
    transport = {
        "kind": "roce", "timeout_us": rng.choice([20.0, 100.0, 1000.0]), "extra": rng.choice([0, 1]),
        "reorder": rng.choice([0, 0, 3, 64]),
    }  # fmt: skip
    if number % 3 == 2:
        transport |= {"recovery": "selective", "short_timeout_us": rng.choice([10.0, 100.0])}
    return rebuilt(case, routes, transport, drawn_queues(rng), number)


def drawn_queues(rng: Random) -> Lossless:
    """Lossless queues with any thresholds."""
    xoff = rng.choice([1, 2, 5, 15])
    keys = xoff, rng.randint(1, xoff), rng.choice([0.1, 1.0]), rng.random() < 0.5
    release, ack_class = rng.choice(["end", "end", "start"]), rng.choice(["data", "data", "strict"])
    watchdog = rng.choice([None, None, 0.5, 5.0])
    return Lossless(
        *keys, release=release, ack_class=ack_class, watchdog_us=watchdog, restore_us=rng.choice([0.3, 20.0]),
        pfc_storm=rng.choice([None, None, Storm(0, 1.0), Storm(1, 0.5, 12.0)]),
    )  # fmt: skip


def rebuilt(
    case: SpraySession, routes: Routes, transport: dict, lossless: Lossless | None, seed: int
) -> SpraySession:  # fmt: skip
    """A session with another transport and other queues."""
    ecn = (1.0, 4.0) if seed % 2 else None
    queues = replace(case.fabric, trim=False, ecn=ecn, lossless=lossless)
    if lossless is not None:
        queues = replace(queues, queue_bytes=None)
    flows = Flows(case.flows.source, case.flows.destination, case.flows.bytes, case.flows.start)
    return make_spray_session(
        case.topology, routes, make("transport", **transport).classified(), queues, flows, seed
    )  # fmt: skip


def star(
    senders: int, transport: dict, queues: Fabric, size: int = 2_000_000, hosts: int = 17
) -> SpraySession:  # fmt: skip
    """Hosts 1 to ``senders`` of one switch send to host 0."""
    topology = make("topology", kind="mesh", dims=[1], hosts_per_switch=hosts).build()
    return session(topology, [(sender, 0) for sender in range(1, senders + 1)], size, transport, queues)


def ns3_fabric(mtu: int, service_ns: int, lossless: Lossless | None = None, **keys: Any) -> Fabric:
    """Packets of 1,000 bytes of the ns-3 of HPCC's authors, which rounds their service time down to ``service_ns``."""
    rate = 100_000 * mtu * 0.08 / service_ns
    return Fabric(
        mtu_bytes=mtu, header_bytes=mtu - 1000, control_bytes=60, nic_mbps=rate, trim=False,
        lossless=lossless or Lossless(10**6, 10**6), **keys,
    )  # fmt: skip
