# SPDX-License-Identifier: Apache-2.0
"""Scenarios of routings, VC policies, allocators and disciplines, each known by its number; both engines run them."""

from random import Random
from typing import Any

from flitlab.fluid.weights import routes_for
from flitlab.models.registry import make
from flitlab.models.routing.certificate import POLICY_NAMES
from flitlab.models.routing.routes import RouteForm, Selection
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.scenarios import TRAFFIC, build, ideal, scenario

TOPOLOGIES: list[tuple[str, dict[str, Any]]] = [
    ("imase", {"n": 11, "degree": 2}), ("kautz", {"degree": 2, "diameter": 2}), ("rrg", {"n": 12, "degree": 3}),
    ("random_digraph", {"n": 10, "degree": 3}), ("torus", {"dims": [3, 4]}), ("mesh", {"dims": [3, 4]}),
    ("hypercube", {"dim": 3}), ("dragonfly", {"a": 3, "h": 1}),
]  # fmt: skip
SOURCES = [(1,), (4,), (1, 4), (2, 3, 7)]


NEXT_HOPS = {"candidates": 1, "gap": 0.9}
"""Keys under which ``optimal`` takes weighted next hops where nearly all pairs of more than nine switches send."""


def _routing(rng: Random, topology: Topology, mode: str) -> dict[str, Any]:
    """Next hops, computed next hops, paths or an intermediate switch, by weights or not, or by the network's state."""
    per, made_for = rng.choice(["packet", "flow"]), {"for": {"kind": rng.choice(["uniform", "longest_matching"])}}
    hops = {"kind": "optimal", **NEXT_HOPS, "for": {"kind": "uniform"}, "per": per}
    choices: list[dict[str, Any]] = [
        {"kind": "minimal", "select": rng.choice(["random", "hash", "adaptive"])}, {"kind": "ecmp", "ways": 2},
        {"kind": "ksp", "k": 2}, {"kind": "llskr", "k": 3, "spread": 2}, {"kind": "valiant"},
        {"kind": "ugal", "mode": rng.choice(["local", "global"])},
        {"kind": "optimal", "per": per}, {"kind": "optimal", "entries": rng.choice([3, 16]), "per": per, **made_for},
        {"kind": "optimal", "select": "adaptive", "draws": rng.choice([2, 4]), **made_for},
        hops, {**hops, "entries": 8}, {"kind": "valiant", "legs": "optimal", "per": per},
        {"kind": "valiant", "legs": "optimal"},
    ]  # fmt: skip
    if mode != "wormhole":
        choices += 2 * [{"kind": "polarized", "penalty": rng.choice([0, 1, 3])}]
    if topology.kind == "imase":
        choices += 2 * [{"kind": "imase", "select": rng.choice(["random", "adaptive"])}]
    if topology.grid is not None:
        choices.append({"kind": "dor"})
    if not topology.directed:
        choices += [{"kind": "updown"}, {"kind": "valiant", "legs": "updown"}]
    return rng.choice(choices)


def _hosts(rng: Random, topology: Topology) -> Topology:
    """As many hosts at every switch, or here more and there fewer, and at some switches none."""
    if rng.random() < 0.6:
        return topology
    hosts = [rng.choice([0, 1, 1, 2, 3]) for _ in range(topology.switches)]
    return topology.with_hosts([2, *hosts[1:-1], 1])


def case_of_number(number: int) -> tuple[Scenario, float]:
    """The scenario of a number, and its load."""
    rng = Random(number)
    kind, parameters = rng.choice(TOPOLOGIES)
    topology = _hosts(rng, build(kind, hosts=rng.randint(1, 3), **parameters))
    mode = rng.choice(["vct", "vct", "vct", "wormhole", "wormhole", "ideal"])
    routing, traffic = _routing(rng, topology, mode), rng.choice(TRAFFIC)
    demand = make("traffic", **traffic).build(topology)
    longest = max(1, routes_for(make("routing", **routing), topology, demand).hops_max)
    flits = rng.choice(SOURCES)
    source = Source(rng.choice(["bernoulli", "onoff"]), flits, tuple(1.0 + i for i in range(len(flits))), burst=3.0)
    most = max(flits)
    keys: dict[str, Any] = {
        "vcs": rng.choice([longest, longest + 1, 2 * longest + 1]), "shared_input": rng.random() < 0.5,
        "buffer_flits": rng.randint(1, 9) if mode == "wormhole" else rng.randint(most, 3 * most),
        **{name: rng.randint(1, 5) for name in ("header", "switch", "link", "injection", "ejection", "credit")},
    }  # fmt: skip
    if mode == "wormhole":
        keys["iterations"] = rng.randint(1, 3)
    else:
        keys["oldest_first"] = rng.random() < 0.5
    policies = ["rising", "rising", "hop"]
    if mode == "vct" and routing["kind"] != "polarized" and keys["vcs"] > longest:
        policies += ["reserve", "reserve"]
    routing["vc_policy"] = rng.choice(policies)
    switching = "vct" if mode == "ideal" else mode
    case = scenario(topology, routing=routing, traffic=traffic, source=source, mode=switching, **keys)
    return ideal(case) if mode == "ideal" else case, rng.choice([0.3, 0.7, 1.0])


def check(case: Scenario, load: float, seed: int, ticks: int) -> int:
    """How many packets both engines deliver, the same ones in the same ticks; raises unless they do."""
    run = start("both", case, load, seed)
    for tick in (ticks // 3, ticks):  # the first stop falls into the middle of things
        run.advance(tick)
        run.snapshot()
    assert not run.deadlocked()
    return int(run.scalars()[Scalar.DELIVERED_PACKETS])


def told(case: Scenario) -> str:
    """A scenario in a few words."""
    return f"{case.topology.kind}, " + ", ".join(sorts(case))


def sorts(case: Scenario) -> list[str]:
    """What is drawn of a scenario, each in a few words: routing, switching, VCs, hosts, lengths of packets."""
    switching, hosts = case.switching, case.topology.host_count
    found = [
        _routing_sort(case), "hosts vary" if hosts.min() < hosts.max() else "hosts alike",
        "lengths vary" if len(case.source.flits) > 1 else "one length",
    ]  # fmt: skip
    if switching.mode == "ideal":
        return ["ideal", *found]
    spare = switching.vcs - case.routes.hops_max
    vcs = ("V = C", "V = C + 1")[spare] if spare < 2 else "more VCs"
    return [f"{switching.mode} {switching.allocator}", POLICY_NAMES[switching.vc_policy], vcs, *found]


def _routing_sort(case: Scenario) -> str:
    routes = case.routes
    rules = {Selection.ADAPTIVE: "adaptive", Selection.LEAST_QUEUED: "least queued", Selection.HASH: "by flow"}
    ways = "by weight" if routes.kind == "valiant" and routes.weighed else ""
    if routes.kind == "optimal":
        ways = "paths" if routes.form == RouteForm.PATHS else "next hops"
        ways += f" of {routes.notes['entries']} entries" if routes.notes["entries"] else ""
    return " ".join(part for part in (routes.kind, ways, rules.get(routes.select, "")) if part)
