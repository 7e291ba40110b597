# SPDX-License-Identifier: Apache-2.0
"""Small scenarios for the engines' tests."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from flitlab.fluid.kinds.spec import CeilingSpec, ceiling_spec, kind_of
from flitlab.fluid.weights import routes_for
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make, spec_class
from flitlab.models.routing.certificate import certify
from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffers import ChannelBuffers
from flitlab.models.topology.distances import diameter
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines import switching_modes as switching_modes
from flitlab.sim.engines.table import engines_of

TIMES = {"header": 5, "switch": 2, "link": 3, "injection": 2, "ejection": 1, "credit": 2}


def scenario(
    topology: Topology,
    *,
    routing: dict | None = None,
    traffic: dict | None = None,
    source: Source | None = None,
    allow_deadlock: bool = False,
    mode: str = "vct",
    **switching,
) -> Scenario:
    """A scenario from plain values; switching keys override 4 VCs, room for two packets, TIMES."""
    source = source or Source(flits=(4,))
    demand = make("traffic", **(traffic or {"kind": "uniform"})).build(topology)
    routes = routes_for(make("routing", **(routing or {"kind": "minimal"})), topology, demand)
    mode = "deflection" if routes.deflection else mode
    keys = {"vcs": 4, "buffer_flits": 2 * max(source.flits), **TIMES, **switching}
    if mode == "deflection":
        keys.setdefault("hold_packets", 4 * int(topology.out_degree.max()))
    given = discipline(mode, allow_deadlock=allow_deadlock, **keys)
    return Scenario(Instance(topology, demand, routes), given.certified(topology, routes)[0], source)


def discipline(mode: str, **keys: Any) -> Any:
    """A discipline from its fields."""
    found: Any = spec_class("switching", mode)
    return found.switching_mode(**keys)


def reference(scenario: Scenario, load: float, seed: int, log: bool = False, shuffle: int = 0) -> Any:
    """A run of the reference engine in which everything that the model leaves open comes in another order."""
    return engines_of(scenario.switching).reference(scenario, load, seed, log, shuffle=shuffle)  # type: ignore[call-arg]


def assert_order_is_immaterial(scenario: Scenario, load: float, shuffle: int) -> None:
    """Assert that the same packets arrive at the same time whatever comes first of all that happens in a tick."""
    logs = []
    for order in (0, shuffle):
        run = reference(scenario, load, 3, log=True, shuffle=order)
        run.advance(150)
        logs.append(run.log())
    for a, b in zip(*logs, strict=True):
        np.testing.assert_array_equal(a, b)


def carrying(scenario: Scenario, **traffic: Any) -> Scenario:
    """The scenario with changes to its traffic."""
    instance = scenario.instance
    return replace(scenario, instance=replace(instance, traffic=replace(instance.traffic, **traffic)))


def build(kind: str, hosts: int = 1, **parameters) -> Topology:
    """A topology of the registry."""
    return make("topology", kind=kind, hosts_per_switch=hosts, **parameters).build()


def line(switches: int, hosts: int = 1) -> Topology:
    """Switches in a row, joined by bi-directional links."""
    links = [(v, v + 1) for v in range(switches - 1)]
    return Topology.from_links("line", switches, links).with_hosts(hosts)


def one_way_ring(switches: int, hosts: int = 1) -> Topology:
    """A uni-directional ring."""
    arcs = [(v, (v + 1) % switches) for v in range(switches)]
    return Topology.from_arcs("ring", switches, arcs).with_hosts(hosts)


def slow_channels(topology: Topology, draw: Callable) -> Topology:
    """The same graph with extra delays on its channels, and on those of its hosts."""
    longest = draw(st.sampled_from([5, 40]))
    delay, access = (
        draw(st.lists(st.integers(0, longest), min_size=count, max_size=count))
        for count in (topology.channels, topology.hosts)
    )
    host_delay = np.array(access, np.int64) if draw(st.booleans()) else None
    return replace(topology, delay=np.array(delay, np.int64), host_delay=host_delay)


def with_flit_times(draw: Callable, topology: Topology) -> Topology:
    """The same graph with flit times of 1 to 5 ticks on its channels, and up to 4 on those of hosts."""
    count = topology.channels
    ticks = draw(st.lists(st.sampled_from([1, 1, 2, 3, 5]), min_size=count, max_size=count))
    return replace(topology, capacity=1 / np.array(ticks, float), host_capacity=1 / draw(st.sampled_from([1, 2, 4])))


@st.composite
def topologies(draw) -> Topology:
    """Small graphs of every kind: one-way, two-way, grids, groups, parallel channels, hosts spread unevenly."""
    kinds = ["imase", "kautz", "rrg", "torus", "mesh", "hypercube", "line", "ring", "parallel", "one"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("ring", "parallel", "one"):  # which show less
        kind = draw(st.sampled_from([kind, "dragonfly"]))
    if kind == "imase":
        topology = build(kind, n=draw(st.integers(4, 9)), degree=2)
    elif kind == "kautz":
        topology = build(kind, degree=2, diameter=draw(st.integers(1, 3)))
    elif kind == "rrg":
        topology = build(kind, n=draw(st.sampled_from([6, 8])), degree=3, seed=draw(st.integers(0, 99)))
    elif kind == "torus":
        topology = build(kind, dims=draw(st.sampled_from([[4], [3, 4], [5, 2]])))
    elif kind == "mesh":
        topology = build(kind, dims=draw(st.sampled_from([[4], [3, 3]])))
    elif kind == "hypercube":
        topology = build(kind, dim=3)
    elif kind == "line":
        topology = line(draw(st.integers(2, 4)))
    elif kind == "ring":
        topology = one_way_ring(draw(st.integers(2, 5)))
    elif kind == "one":
        topology = line(1)
    elif kind == "dragonfly":
        a, h = draw(st.sampled_from([(2, 1), (3, 1), (2, 2)]))
        topology = build(kind, a=a, h=h, groups=draw(st.integers(2, a * h + 1)))
    else:
        topology = Topology.from_links("parallel", 3, [(0, 1), (0, 1), (1, 2), (2, 0)])
    fewest = draw(st.sampled_from([0, 1, 1])) if kind == "dragonfly" else 0  # par needs hosts on all routers
    hosts = draw(st.lists(st.integers(fewest, 3), min_size=topology.switches, max_size=topology.switches))
    if sum(hosts) < 2:
        hosts[0] = 2
    topology = topology.with_hosts(hosts)
    return slow_channels(topology, draw) if draw(st.booleans()) else topology


@st.composite
def sources(draw, one_length: bool) -> Source:
    """Arrivals and packet lengths."""
    flits = draw(st.sampled_from([(1,), (2,), (5,)] if one_length else [(1,), (3,), (1, 4), (2, 3, 7)]))
    shares = tuple(1.0 + i for i in range(len(flits)))
    return Source(draw(st.sampled_from(["bernoulli", "poisson", "onoff"])), flits, shares, burst=3.0)


TRAFFIC = [
    {"kind": "uniform"},
    {"kind": "uniform", "include_self": True},
    {"kind": "permutation", "seed": 5},
    {"kind": "shift", "by": 1},
    {"kind": "hotspot", "hosts": [0], "fraction": 0.5},
]


@st.composite
def routings(draw, topology: Topology, mode: str) -> dict:
    """Every routing that serves a topology and a switching mode, with every VC policy that can serve it."""
    groups = topology.kind == "dragonfly"
    kinds = ["minimal", "minimal", "ecmp", "ksp", "llskr", "allpath", "valiant", "ugal"]
    kinds += ["updown"] * (not topology.directed)
    kinds += ["imase"] * 2 * (topology.kind == "imase") + ["dragonfly"] * 3 * groups
    kinds += ["polarized"] * (mode in ("vct", "ideal"))
    kinds += ["par"] * 10 * (mode == "vct" and groups and bool(topology.host_count.all()))
    kinds += ["dor"] * 2 * (topology.grid is not None)
    kind = draw(st.sampled_from(kinds))
    if kind == "dor" and topology.grid.wrap:
        choose = draw(st.sampled_from(["on_entry", "at_crossing"]))
        return {"kind": kind, "vc_policy": {"kind": "dateline", "choose": choose}}
    routing: dict = {"kind": kind}
    layered = {"kind": "layered", "order": draw(st.sampled_from(["random", "long_first"]))}
    policies = [None, "any", "hop", "rising", "rising", layered] + ["reserve"] * (mode == "vct")
    if kind in ("minimal", "imase"):
        routing["select"] = draw(st.sampled_from(["random", "hash", "adaptive"]))
        if kind == "minimal" and routing["select"] == "adaptive" and not topology.directed:
            policies = ["escape"] * 3 + policies
    elif kind == "polarized":
        far, policies = max(1, diameter(topology)), [None, "rising", "hop"]
        routing |= {"hops": draw(st.integers(far, 2 * far)), "penalty": draw(st.sampled_from([0, 1, 3]))}
    elif kind == "par":
        policies, routing["threshold"] = [None, "groups", "rising", "hop"], draw(st.integers(0, 9))
    elif kind == "dragonfly":
        policies += ["groups"]
    elif kind == "ugal":
        routing |= {"mode": draw(st.sampled_from(["local", "global"])), "threshold": draw(st.integers(0, 9))}
    elif kind not in ("dor", "updown"):
        routing["per"] = draw(st.sampled_from(["packet", "flow"]))
    if kind in ("minimal", "ecmp"):
        routing |= {"weight": draw(st.sampled_from(["hops", "delay"])), "ties": draw(st.sampled_from(["all", "first"]))}
    if kind == "ecmp":
        routing |= {"ways": draw(st.integers(1, 2)), "routed": draw(st.sampled_from(["hop", "source"]))}
    elif kind in ("ksp", "llskr"):
        every = make("routing", kind="llskr", k=4, spread=99).build(topology)
        routing["k"] = draw(st.integers(1, 4 if kind == "llskr" else max(1, every.notes["paths_per_pair_min"])))
    elif kind == "allpath":
        routing["hops"] = max(1, diameter(topology)) + draw(st.integers(0, 1))
    elif kind in ("valiant", "ugal"):
        policies += ["legs"]
        legs = ["minimal"] + ["updown"] * (not topology.directed) + ["dor"] * (topology.grid is not None)
        routing["legs"] = draw(st.sampled_from(legs + ["dragonfly"] * 2 * groups))
        policies += ["groups"] * 2 * (routing["legs"] == "dragonfly")
    policy = draw(st.sampled_from(policies))
    return routing if policy is None else {**routing, "vc_policy": policy}


def least_vcs(topology: Topology, routing: dict, allow_deadlock: bool) -> int:
    """The fewest VCs with which a routing is certified, or accepted if deadlock is allowed or no number excludes it."""
    routes = make("routing", **routing).build(topology)
    numbers = {1, 2, 4, 5, routes.hops_max, routes.hops_max + 1, routes.layers, 2 * routes.layers} - {0}
    for allowed, vcs in product([allow_deadlock, True], sorted(numbers)):
        with suppress(SpecError):
            certify(topology, routes, vcs, allowed)
            return vcs
    raise AssertionError(f"strategy drew an impossible routing: {routing}")


def unequal(draw, topology: Topology, least: int) -> dict[str, Any]:
    """Buffers of ``least`` flits or a few more, that differ between channels in half of the cases."""
    if draw(st.booleans()):
        return {"buffer_flits": draw(st.integers(least, 3 * least + 6))}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    flits = rng.integers(least, 3 * least + 7, topology.channels + topology.hosts).tolist()
    return {"buffer_flits": max(flits), "channel_buffers": ChannelBuffers(tuple(flits), {})}


@st.composite
def vct_scenarios(draw, mode: str = "vct") -> Scenario:
    """Virtual cut-through: every routing, buffer, arbitration and timing. mode: whose routings are drawn."""
    topology, source = draw(topologies()), draw(sources(one_length=False))
    routing = draw(routings(topology, mode))
    longest = max(source.flits)
    keys = {
        "vcs": max(draw(st.sampled_from([2, 3, 4, 5, 8, 11])), least_vcs(topology, routing, draw(st.booleans()))),
        **unequal(draw, topology, longest),
        "shared_input": draw(st.booleans()),
        "oldest_first": draw(st.booleans()),
        "own_credit_path": draw(st.booleans()),
        "header": draw(st.integers(0, 6)),
        **{name: draw(st.integers(1, 5)) for name in ("switch", "link", "injection", "ejection", "credit")},
    }
    return scenario(
        topology, routing=routing, traffic=draw(st.sampled_from(TRAFFIC)), source=source, allow_deadlock=True, **keys
    )


@st.composite
def wormhole_scenarios(draw) -> Scenario:
    """Wormhole: every routing, buffers smaller than packets and larger, every matching and timing."""
    topology, source = draw(topologies()), draw(sources(one_length=False))
    routing = draw(routings(topology, "wormhole"))
    least = least_vcs(topology, routing, draw(st.booleans()))
    keys = {
        "vcs": max(draw(st.sampled_from([1, 2, 3, 4, 5, 17])), least),  # 17: more than 64 VCs at a switch
        **unequal(draw, topology, 1),
        "shared_input": draw(st.booleans()),
        "iterations": draw(st.integers(1, 3)),
        "speedup": draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7, 3), Fraction(4)])),
        "output_flits": draw(st.sampled_from([None, 1, 2, 5])),
        "own_credit_path": draw(st.booleans()),
        "header": draw(st.integers(0, 6)),
        **{name: draw(st.integers(1, 5)) for name in ("switch", "link", "injection", "ejection", "credit")},
    }
    return scenario(
        topology, routing=routing, traffic=draw(st.sampled_from(TRAFFIC)), source=source, allow_deadlock=True,
        mode="wormhole", **keys,
    )  # fmt: skip


@st.composite
def deflection_scenarios(draw) -> Scenario:
    """Hot-potato: slotted and not, nearly bufferless and roomy."""
    topology = draw(topologies().filter(lambda t: (t.in_degree == t.out_degree).all()))
    source = draw(sources(one_length=True))
    keys = {
        "hold_packets": draw(st.integers(1, 8)),
        "slotted": draw(st.booleans()),
        "header": draw(st.integers(0, 6)),
        **{name: draw(st.integers(1, 5)) for name in ("switch", "link", "injection", "ejection")},
    }
    try:
        return scenario(
            topology, routing={"kind": "deflection"}, traffic=draw(st.sampled_from(TRAFFIC)), source=source, **keys
        )
    except SpecError as error:
        raise AssertionError(f"strategy drew an impossible scenario: {error}") from error


def ideal_scenarios() -> st.SearchStrategy[Scenario]:
    """Ideal switches: every routing and timing."""
    return vct_scenarios("ideal").map(ideal)


def ideal(case: Scenario) -> Scenario:
    """The scenario with ideal switches of the same delays."""
    delays = {name: ticks for name, ticks in case.switching.delays.items() if name != "credit"}
    return replace(case, switching=discipline("ideal", **delays))


def asked_as_far_as_known(kind: str, **keys) -> CeilingSpec:
    """A ceiling with those of the keys that its kind has."""
    return ceiling_spec(kind, **{key: value for key, value in keys.items() if key in kind_of(kind).model_fields})
