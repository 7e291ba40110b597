# SPDX-License-Identifier: Apache-2.0
"""Polarized routing: every walk that it allows arrives, both engines take the same, and it goes around what is full."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make, spec_class
from flitlab.models.routing.certificate import certify
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.route import choose_route, next_hops
from flitlab.models.rules.tables import RouteForm, VcPolicy
from flitlab.models.rules.vc import NOT_HELD, allowed_vcs, make_rings
from flitlab.models.switching.ideal import Ideal
from flitlab.models.topology.distances import diameter, distances
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.scenarios import TRAFFIC, build, line, one_way_ring, scenario, sources, topologies

SMALL = [
    build("rrg", n=10, degree=3, seed=2), build("torus", dims=[5, 2]), build("hypercube", dim=3),
    build("random_digraph", n=8, degree=2, seed=1), build("kautz", degree=2, diameter=2), line(5), one_way_ring(5),
    Topology.from_links("lollipop", 7, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (1, 6)]).with_hosts(1),
]  # fmt: skip


@pytest.mark.parametrize("extra", [0, 1, 3])
@pytest.mark.parametrize("topology", SMALL, ids=lambda t: t.kind)
def test_every_walk_arrives_and_rises(topology, extra):
    """All states (switch, channels taken) that packets of all pairs can come to, by all ports that they are allowed."""
    hops = diameter(topology) + extra
    routes = make("routing", kind="polarized", hops=hops).build(topology)
    r, far, rings = routes.tables(topology, VcPolicy.RISING), distances(topology).astype(int), make_rings(topology)
    for s in range(topology.switches):
        for t in range(topology.switches):
            way = choose_route(r, 1, s, t, topology.switches, 0, s, t)
            states = {(s, NOT_HELD)}
            for hop in range(hops + 1):
                states = {(v, held) for v, held in states if v != t}
                reached = set()
                for v, held in states:
                    for w, port in allowed(r, topology, way, hop, v, t):
                        check_step(far, s, t, v, w, hops - hop)
                        channel = topology.out_start[v] + port
                        low, high = allowed_vcs(r, way, VcPolicy.RISING, hops, hop, rings, s, t, channel, v, port, held)
                        assert held < low < high <= hops
                        reached |= {(w, vc) for vc in range(low, high)}
                states = reached
            assert not states  # all have arrived, and no packet takes more than this number of channels


def allowed(r, topology, way, hop, v, t):
    ports, found = next_hops(r, way, hop, v, t), []
    while ports:
        port = lowest(ports)
        ports &= ports - np.uint64(1)
        found.append((int(topology.dst[topology.out_start[v] + port]), port))
    assert found
    return found


def check_step(far, s, t, v, w, left):
    """A step is polarized, or a shortest one, and leaves hops enough."""
    before, after = far[s, v] - far[v, t], far[s, w] - far[w, t]
    if far[s, v] < far[v, t]:
        level = far[s, w] > far[s, v] and far[w, t] > far[v, t]
    else:
        level = far[s, w] < far[s, v] and far[w, t] < far[v, t]
    assert after > before or (after == before and level) or far[w, t] < far[v, t]
    assert far[w, t] <= left - 1


def test_where_nothing_is_longer_it_is_minimal():
    topology = build("rrg", n=10, degree=3, seed=2)
    far = distances(topology)
    routes = make("routing", kind="polarized", hops=diameter(topology)).build(topology)
    tables = routes.tables(topology)
    ends = [(s, t) for s in range(10) for t in range(10) if far[s, t] == diameter(topology)]
    for s, t in ends:
        assert {w for w, _ in allowed(tables, topology, s, 0, s, t)} <= {w for w in range(10) if far[w, t] < far[s, t]}


def test_a_packet_comes_back_from_a_leaf():
    """From 0 to 4 the leaf 2 is farther from both ends than 1, and 0 nearer: behind it there is only the way back."""
    links = [(0, 1), (1, 2), (1, 3), (3, 5), (5, 4), (4, 6)]
    topology = Topology.from_links("spur", 7, links).with_hosts(1)
    r = make("routing", kind="polarized").build(topology).tables(topology, VcPolicy.RISING)
    way = choose_route(r, 1, 0, 4, 7, 0, 0, 4)
    onwards = [{w for w, _ in allowed(r, topology, way, hop, v, 4)} for hop, v in enumerate([0, 1, 2, 1])]
    assert onwards == [{1}, {2, 3}, {1}, {3}]


@st.composite
def cases(draw):
    topology, source = draw(topologies()), draw(sources(one_length=False))
    far = max(1, diameter(topology))
    hops = draw(st.integers(far, 2 * far))
    policy = draw(st.sampled_from(["rising", "rising", "hop"]))
    vcs = hops + draw(st.integers(0, 3))
    assume(vcs <= 20)
    routing = {"kind": "polarized", "hops": hops, "penalty": draw(st.sampled_from([0, 1, 3])), "vc_policy": policy}
    longest = max(source.flits)
    keys = {
        "vcs": vcs, "buffer_flits": draw(st.integers(longest, 3 * longest)), "shared_input": draw(st.booleans()),
        "oldest_first": draw(st.booleans()), "header": draw(st.integers(0, 6)),
        **{name: draw(st.integers(1, 5)) for name in ("switch", "link", "injection", "ejection", "credit")},
    }  # fmt: skip
    return scenario(topology, routing=routing, traffic=draw(st.sampled_from(TRAFFIC)), source=source, **keys)


@given(cases(), st.sampled_from([0.05, 0.3, 0.7, 1.0]), st.integers(0, 2**40))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_engines_agree(case, load, seed):
    run = start("both", case, load, seed)
    for tick in (130, 400):
        run.advance(tick)
        run.snapshot()
        assert not run.deadlocked()


@pytest.mark.long  # a kernel of its own
@pytest.mark.parametrize("priority", ["class", "age"])
def test_a_packet_is_visited_once_a_tick(priority):
    """A granted packet may uncover one of a greater rank, which must not lead to others that tick a second time."""
    case = scenario(
        build("random_digraph", n=6, degree=2, seed=1), vcs=6, buffer_flits=2, header=2, switch=1, link=1,
        routing={"kind": "polarized", "penalty": 0, "vc_policy": "hop"}, source=Source(flits=(1,)),
    )  # fmt: skip
    shares = [{"name": name, "kind": "uniform", "share": 0.45, "priority": rank} for rank, name in enumerate("ab")]
    traffic = make("traffic", kind="classes", classes=shares).build(case.topology)
    case = replace(case, instance=replace(case.instance, traffic=traffic))
    switching = replace(case.switching, priority=priority, oldest_first=priority == "age")
    for seed in range(6):
        growing, offered = replace(case, switching=switching).at(0.9)
        run = start("both", growing, offered, seed)
        run.advance(300)
        run.snapshot()


@given(cases(), st.sampled_from([0.3, 0.9]), st.integers(0, 2**40))
@settings(max_examples=20)
def test_engines_agree_on_ideal_switches(case, load, seed):
    times = {name: getattr(case.switching, name) for name in ("header", "switch", "link", "injection", "ejection")}
    run = start("both", replace(case, switching=Ideal(**times)), load, seed)
    run.advance(300)
    run.snapshot()


def test_it_goes_around_what_is_full():
    """All minimal routes go one way round the ring, whose channels carry a quarter of each; polarized ones go both."""
    topology, delivered = build("torus", dims=[9]), {}
    for kind in ("minimal", "polarized"):
        case = scenario(topology, routing={"kind": kind, "vc_policy": "rising"}, vcs=8,
                        traffic={"kind": "shift", "by": 4})  # fmt: skip
        run = start("compiled", case, 0.4, 1)
        run.advance(4000)
        delivered[kind] = run.snapshot().scalars[Scalar.DELIVERED_PACKETS]
    assert delivered["polarized"] > 1.25 * delivered["minimal"]


def test_what_it_is_certified_by():
    topology = build("rrg", n=10, degree=3, seed=2)
    routes = make("routing", kind="polarized").build(topology)
    assert (routes.form, routes.vc_policy, routes.hops_max) == (
        RouteForm.POLARIZED,
        VcPolicy.RISING,
        2 * diameter(topology),
    )
    assert certify(topology, routes, routes.hops_max).acyclic
    assert make("routing", kind="polarized", hops=30).build(topology).hops_max == 9  # more visit one twice
    by_hop = make("routing", kind="polarized", vc_policy="hop").build(topology)
    assert certify(topology, by_hop, routes.hops_max).policy == VcPolicy.HOP
    with pytest.raises(SpecError, match="longest route, which has"):
        certify(topology, routes, routes.hops_max - 1)


@pytest.mark.parametrize(
    ("keys", "message"),
    [({"hops": 1}, "at least the diameter"), ({"vc_policy": "layered"}, "or hop"), ({"vc_policy": "any"}, "or hop")],
)  # fmt: skip
def test_what_it_refuses(keys, message):
    with pytest.raises(SpecError, match=message):
        make("routing", kind="polarized", **keys).build(build("rrg", n=10, degree=3, seed=2))


def test_wormhole_is_refused():
    topology = build("rrg", n=10, degree=3, seed=2)
    routes = make("routing", kind="polarized").build(topology)
    refused = {
        mode: [error.key for error in spec_class("switching", mode)(mode=mode, vcs=8).errors(topology, routes, (4,))]
        for mode in ("vct", "wormhole")
    }
    assert refused == {"vct": [], "wormhole": ["routing.kind"]}
