"""Scenarios of the VC policies and allocators that use all VCs, each known by its number; both engines run them."""

from random import Random
from typing import Any

from flitlab.models.registry import make
from flitlab.models.routing.routes import ADAPTIVE
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import DELIVERED_PACKETS
from flitlab.sim.engines.start import start
from tests.scenarios import TRAFFIC, build, scenario

TOPOLOGIES: list[tuple[str, dict[str, Any]]] = [
    ("imase", {"n": 9, "degree": 2}), ("kautz", {"degree": 2, "diameter": 2}), ("rrg", {"n": 8, "degree": 3}),
    ("random_digraph", {"n": 10, "degree": 3}), ("torus", {"dims": [3, 4]}), ("mesh", {"dims": [3, 3]}),
    ("hypercube", {"dim": 3}), ("dragonfly", {"a": 2, "h": 1}),
]  # fmt: skip
SOURCES = [(1,), (4,), (1, 4), (2, 3, 7)]


def _routing(rng: Random, topology: Topology) -> dict[str, Any]:
    """Next hops, computed next hops, paths or an intermediate switch, random or by the state of the network."""
    choices: list[dict[str, Any]] = [
        {"kind": "minimal", "select": rng.choice(["random", "hash", "adaptive"])}, {"kind": "ecmp", "ways": 2},
        {"kind": "ksp", "k": 2}, {"kind": "llskr", "k": 3, "spread": 2}, {"kind": "valiant"},
        {"kind": "ugal", "mode": rng.choice(["local", "global"])},
    ]  # fmt: skip
    if topology.kind == "imase":
        choices += 2 * [{"kind": "imase", "select": rng.choice(["random", "adaptive"])}]
    if topology.grid is not None:
        choices.append({"kind": "dor"})
    if not topology.directed:
        choices += [{"kind": "updown"}, {"kind": "valiant", "legs": "updown"}]
    return rng.choice(choices)


def case_of_number(number: int) -> tuple[Scenario, float]:
    """The scenario of a number, and its load."""
    rng = Random(number)
    kind, parameters = rng.choice(TOPOLOGIES)
    topology = build(kind, hosts=rng.randint(1, 3), **parameters)
    routing = _routing(rng, topology)
    longest = max(1, make("routing", **routing).build(topology).hops_max)
    flits = rng.choice(SOURCES)
    source = Source(rng.choice(["bernoulli", "onoff"]), flits, tuple(1.0 + i for i in range(len(flits))), burst=3.0)
    mode = rng.choice(["vct", "vct", "wormhole"])
    most = max(flits)
    keys: dict[str, Any] = {
        "vcs": rng.choice([longest, longest + 1, 2 * longest + 1]), "shared_input": rng.random() < 0.5,
        "buffer_flits": rng.randint(most, 3 * most) if mode == "vct" else rng.randint(1, 9),
        **{name: rng.randint(1, 5) for name in ("header", "switch", "link", "injection", "ejection", "credit")},
    }  # fmt: skip
    if mode == "vct":
        keys["oldest_first"] = rng.random() < 0.5
    else:
        keys["iterations"] = rng.randint(1, 3)
    policies = ["rising", "rising", "hop"]
    if mode == "vct" and keys["vcs"] > longest:
        policies += ["reserve", "reserve"]
    policy = rng.choice(policies)
    case = scenario(
        topology,
        routing={**routing, "vc_policy": policy},
        traffic=rng.choice(TRAFFIC),
        source=source,
        mode=mode,
        **keys,
    )
    return case, rng.choice([0.3, 0.7, 1.0])


def check(case: Scenario, load: float, seed: int, ticks: int) -> int:
    """How many packets both engines deliver, the same ones in the same ticks; raises unless they do."""
    run = start("both", case, load, seed)
    for tick in (ticks // 3, ticks):  # the first stop falls into the middle of things
        run.advance(tick)
        run.snapshot()
    assert not run.deadlocked()
    return int(run.scalars()[DELIVERED_PACKETS])


def told(case: Scenario) -> str:
    """A scenario in a few words."""
    switching, routes = case.switching, case.routes
    adaptive = " adaptive" if routes.select == ADAPTIVE else ""
    return (
        f"{switching.mode} {switching.allocator}, {case.topology.kind}, {routes.kind}{adaptive}, "
        f"policy {switching.vc_policy}, {switching.vcs} VCs for {routes.hops_max} channels"
    )
