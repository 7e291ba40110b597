# SPDX-License-Identifier: Apache-2.0
"""Small sessions of sprayed packets of every kind, many of which trim, drop or wait for timeouts."""

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from flitlab.fluid.weights import routes_for
from flitlab.models.registry import make
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.spray.ports import AtSwitch
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from tests.scenarios import build, line

OPTIMAL = {"kind": "optimal", "for": {"kind": "uniform"}, "paths": 3}

KINDS = ["nscc", "nscc", "rccc", "nscc_rccc", "ndp", "dctcp", "constant", "none"]


def session_of_number(number: int) -> SpraySession:
    """A session with any topology, routing, transport, way to spread packets and kind of flows."""
    return case_of_number(number)[0]


def case_of_number(number: int) -> tuple[SpraySession, dict, Routes]:
    """The session of a number, its routing, and the routes of it."""
    rng = Random(number)
    topology, kind, fabric = _topology(rng), rng.choice(KINDS), _fabric(rng)
    ecmp = {"kind": "ecmp", "ways": rng.choice([2, 64])}
    routing = rng.choice([ecmp, ecmp, {"kind": "minimal"}])
    if topology.kind in ("rrg", "torus") and rng.random() < 0.6:
        routing, fabric = rng.choice([{"kind": "ksp", "k": 3}, OPTIMAL]), replace(fabric, at_switch="ecmp")
    routes = _routes(topology, routing)
    session = make_spray_session(
        topology, routes, make("transport", **_transport(rng, kind)).spraying(), fabric, _flows(rng, topology, fabric),
        rng.randrange(2**40),
    )  # fmt: skip
    return session, routing, routes


def _routes(topology: Topology, routing: dict) -> Routes:
    return routes_for(make("routing", **routing), topology, make("traffic", kind="uniform").build(topology))


@cache
def _topologies() -> list[Topology]:
    return [
        line(1, hosts=4), line(2, hosts=4), line(3, hosts=2), build("rrg", hosts=2, n=6, degree=3, seed=4),
        build("fat_tree", k=4), build("fat_tree", k=4), build("torus", hosts=1, dims=[3, 3]),
    ]  # fmt: skip


def _topology(rng: Random) -> Topology:
    topology = rng.choice(_topologies())
    if rng.random() < 0.4:
        speeds = rng.choices([0.25, 0.5, 1.0, 3.0], k=2)
        capacity = np.where((topology.src + topology.dst) % 3 == 0, *speeds).astype(float)
        topology = replace(topology, capacity=capacity, host_capacity=rng.choice([1.0, 1.0, 2.0]))
    if rng.random() < 0.3:
        topology = replace(topology, delay=np.arange(topology.channels) % 4 * 100)
    return topology


def _fabric(rng: Random) -> Fabric:
    mtu = rng.choice([300, 1500, 4150, 4150])
    queue = rng.choice([None, None, mtu, 2 * mtu, 5 * mtu, 5 * mtu + 77, 20 * mtu])
    return Fabric(
        mtu_bytes=mtu, link_us=rng.choice([0.0, 0.2, 1.0, 10.0]), switch_ns=rng.choice([0.0, 0.0, 300.0]),
        queue_bytes=queue, ecn=rng.choice([None, None, (0.1, 0.5), (1, 3), (0, 2)]), trim=rng.random() < 0.8,
        at_switch=rng.choice(["ecmp", "ecmp", "ecmp", *(choice.name.lower() for choice in AtSwitch)]),
    )  # fmt: skip


def _transport(rng: Random, kind: str) -> dict:
    keys: dict = {"kind": kind, "paths": rng.choice([1, 2, 8, 64])}
    if kind == "none":
        return keys | {"rate": rng.choice([0.3, 1.0])}
    keys["spread"] = rng.choice(["oblivious", "bitmap", "reps", "mixed", "reps_list"])
    if kind == "dctcp":
        return keys
    keys |= {"sack_threshold": rng.choice([1, 4000, 16384, 100_000])}
    if kind == "rccc":
        keys["oversubscription"] = rng.choice([None, 1.0, 3.0])
    if rng.random() < 0.5:
        keys["init_window"] = rng.choice([1, 3, 20, 200])
    if rng.random() < 0.5:
        keys["timeout_us"] = rng.choice([1.0, 5.0, 20.0, 50.0])
    if kind == "nscc" and rng.random() < 0.5:
        keys["sleek"] = True
    return keys


def _flows(rng: Random, topology: Topology, fabric: Fabric) -> Flows:
    hosts, payload = topology.hosts, fabric.payload
    order = rng.sample(range(hosts), hosts)
    kind = rng.choice(["permutation", "incast", "incast", "random", "random"])
    if kind == "permutation":
        source, destination = order, order[1:] + order[:1]
    elif kind == "incast":
        source, destination = order[1:], [order[0]] * (hosts - 1)
    else:
        pairs = [rng.sample(range(hosts), 2) for _ in range(rng.randint(1, 3 * hosts))]
        source, destination = (list(side) for side in zip(*pairs, strict=True))
    most = rng.choice([1, 3, 20, 100, 300])
    sizes = [rng.randint(1, most * payload) if rng.random() < 0.7 else most * payload for _ in source]
    start = sorted(rng.choice([0, rng.randint(0, 100_000)]) for _ in source)
    return Flows(*(np.array(column, np.int64) for column in (source, destination, sizes, start)))
