# SPDX-License-Identifier: Apache-2.0
"""Deadlock certificates against dependency graphs that networkx and plain Python make from the routes themselves."""

import re
from dataclasses import replace
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.routing.bit_parallel import has_dependency_cycle
from flitlab.models.routing.certificate import certify, dependencies, width_of
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.route import LEG_SHIFT
from flitlab.models.rules.tables import RouteForm, Selection, VcPolicy
from flitlab.models.rules.ugal import MINIMAL_ROUTE
from flitlab.models.rules.vc import (
    NOT_HELD,
    allowed_vcs,
    is_reserved_for_others,
    make_rings,
    reserved_vcs,
    share,
    vc_score,
)
from flitlab.models.subnets import routes_in_subnets, topology_in_subnets
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.scenarios import build, least_vcs, line, one_way_ring, routings, scenario, topologies


def routes_of(topology: Topology, kind: str, **parameters) -> Routes:
    return make("routing", kind=kind, **parameters).build(topology)


def channels_of(topology: Topology, mask: int, v: int) -> list[int]:
    return [int(topology.out_start[v]) + p for p in range(64) if int(mask) >> p & 1]


def walks(topology: Topology, ports, s: int, t: int):
    """Every way from s to t along next hops, as channels."""
    if s == t:
        yield []
        return
    for c in channels_of(topology, ports[t, s], s):
        for rest in walks(topology, ports, int(topology.dst[c]), t):
            yield [c, *rest]


def every_route(topology: Topology, routes: Routes):
    """(pair, way, channels) of everything that a packet may do; the way is None where routes go by next hops alone."""
    n, ends = topology.switches, topology.src_switches.tolist()
    for s in ends:
        for t in ends:
            if routes.form == RouteForm.PATHS:
                table = routes.paths
                for p in range(table.pair_start[s * n + t], table.pair_start[s * n + t + 1]):
                    v, channels = s, []
                    for port in table.port[table.path_start[p] : table.path_start[p + 1]].tolist():
                        channels.append(int(topology.out_start[v]) + port)
                        v = int(topology.dst[channels[-1]])
                    yield (s, t), p, channels
            elif routes.form == RouteForm.VIA:
                for middle in ends:
                    for one in walks(topology, routes.ports, s, middle):
                        for two in walks(topology, routes.ports, middle, t):
                            yield (s, t), middle | len(one) << LEG_SHIFT, [*one, *two]
                if routes.select in (Selection.UGAL_LOCAL, Selection.UGAL_GLOBAL):
                    for channels in walks(topology, routes.ports, s, t):
                        yield (s, t), MINIMAL_ROUTE, channels
            elif s != t:
                computed = routes.form == RouteForm.DIGITS
                for channels in walks(topology, minimal_ports(topology)[0] if computed else routes.ports, s, t):
                    yield (s, t), None, channels


def dependency_graph(topology: Topology, routes: Routes, policy: int) -> set[tuple[int, int]]:
    """Edges between channel * width + class, from the routes."""
    edges, n = set(), topology.switches
    for (s, t), p, channels in every_route(topology, routes):
        kind = (
            int(routes.layer[p if routes.form == RouteForm.PATHS else s * n + t]) if policy == VcPolicy.LAYERED else 0
        )
        width = routes.layers if policy == VcPolicy.LAYERED else 1
        edges |= {(a * width + kind, b * width + kind) for a, b in pairwise(channels)}
    return edges


def as_set(edges: np.ndarray) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in edges}


def acyclic(edges) -> bool:
    return nx.is_directed_acyclic_graph(nx.DiGraph(list(edges)))


KINDS = [
    {"kind": "minimal"}, {"kind": "ecmp", "ways": 1}, {"kind": "ecmp", "routed": "source"}, {"kind": "llskr", "k": 3},
    {"kind": "updown"}, {"kind": "valiant"}, {"kind": "minimal", "vc_policy": "layered"},
    {"kind": "llskr", "k": 3, "spread": 9, "vc_policy": {"kind": "layered", "order": "random"}},
    {"kind": "ecmp", "ways": 1, "vc_policy": {"kind": "layered", "order": "long_first", "layers": 9}},
]  # fmt: skip


@given(topologies(), st.sampled_from(KINDS))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_dependencies_are_those_of_the_routes(topology, routing):
    if routing["kind"] == "updown" and topology.directed:
        routing = {"kind": "minimal"}
    routes = routes_of(topology, **routing)
    policy = VcPolicy.LAYERED if routes.layers else VcPolicy.ANY
    edges = dependencies(topology, routes, 16, policy)
    reference = dependency_graph(topology, routes, policy)
    if routes.form == RouteForm.VIA:  # what any leg may follow on any other
        assert reference <= as_set(edges)
    else:
        assert as_set(edges) == reference
    if routes.form == RouteForm.TABLE and policy == VcPolicy.ANY:
        assert has_dependency_cycle(topology, routes.ports, topology.src_switches) != acyclic(reference)
    certified = certify(topology, routes, 16, allow_deadlock=True)
    if certified.policy in (VcPolicy.ANY, VcPolicy.LAYERED):
        assert certified.acyclic == acyclic(reference)
    if policy == VcPolicy.LAYERED or routes.kind == "updown":
        assert certified.acyclic
    if routes.layers == 9:
        assert set(routes.layer.tolist()) <= set(range(9))


def test_the_graph_of_valiant_has_only_what_its_routes_do():
    for topology in (build("rrg", n=8, degree=3), one_way_ring(4), line(4), build("fat_tree", k=2, hosts=1)):
        routes = routes_of(topology, "valiant")
        assert as_set(dependencies(topology, routes, 4, VcPolicy.ANY)) == dependency_graph(
            topology, routes, VcPolicy.ANY
        )


def test_each_leg_of_valiant_has_its_vcs_where_that_is_enough():
    mesh = build("mesh", dims=[3, 3])
    certified = certify(mesh, routes_of(mesh, "valiant", legs="dor"), 2)
    assert certified.policy == VcPolicy.LEGS
    assert "each leg" in certified.note
    with pytest.raises(SpecError, match="which has 8"):
        certify(mesh, routes_of(mesh, "valiant"), 7)
    assert certify(mesh, routes_of(mesh, "valiant"), 8).policy == VcPolicy.RISING
    with pytest.raises(SpecError, match="legs may deadlock"):
        certify(mesh, routes_of(mesh, "valiant", vc_policy="legs"), 8)


def held_and_wanted(topology: Topology, routes: Routes, policy: int, vcs: int) -> set[tuple[int, int]]:
    """From every (channel, VC) that a packet may hold to every one that it may then ask for, route by route."""
    tables, rings, edges = routes.tables(topology, policy), make_rings(topology), set()
    for (s, t), way, channels in every_route(topology, routes):
        held, before = {NOT_HELD}, -1
        for hop, c in enumerate(channels):
            tail, wanted = int(topology.src[c]), set()
            port = c - int(topology.out_start[tail])
            for vc in held:
                first, end = allowed_vcs(tables, way or 0, policy, vcs, hop, rings, s, t, c, tail, port, vc)
                assert 0 <= first < end <= vcs
                wanted |= set(range(first, end))
                if hop:
                    edges |= set(product([before * vcs + vc], range(c * vcs + first, c * vcs + end)))
            held, before = wanted, c
    return edges


@given(st.data(), st.integers(2, 13))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_what_is_certified_has_no_cycle_in_what_packets_may_hold_and_ask_for(data, vcs):
    topology = data.draw(st.one_of(topologies(), st.just(build("torus", dims=[5]))))
    routing = data.draw(routings(topology, "wormhole"))
    routes, vcs = routes_of(topology, **routing), max(vcs, least_vcs(topology, routing, True))
    certified = certify(topology, routes, vcs, allow_deadlock=True)
    if certified.acyclic and certified.policy != VcPolicy.ESCAPE:  # under which it asks for more than it waits for
        assert acyclic(held_and_wanted(topology, routes, certified.policy, vcs))


RISING_CASES = [
    ("torus", {"dims": [4, 4]}, {"kind": "minimal"}), ("torus", {"dims": [4, 4]}, {"kind": "dor"}),
    ("imase", {"n": 12, "degree": 2}, {"kind": "imase"}), ("imase", {"n": 8, "degree": 2}, {"kind": "valiant"}),
    ("imase", {"n": 8, "degree": 2}, {"kind": "ugal"}), ("rrg", {"n": 8, "degree": 3}, {"kind": "updown"}),
    ("rrg", {"n": 10, "degree": 3}, {"kind": "llskr", "k": 3, "spread": 9}),
    ("random_digraph", {"n": 16, "degree": 3}, {"kind": "minimal"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "parameters", "routing"), RISING_CASES)
def test_rising_vcs_lead_to_no_cycle_and_leave_room_for_what_is_to_come(kind, parameters, routing):
    topology = build(kind, **parameters)
    routes = routes_of(topology, **routing, vc_policy="rising")
    longest = routes.hops_max
    for vcs in (longest, longest + 1, 2 * longest + 1):
        assert certify(topology, routes, vcs).policy == VcPolicy.RISING
        edges = held_and_wanted(topology, routes, VcPolicy.RISING, vcs)
        assert edges
        assert all(a % vcs < b % vcs for a, b in edges)
        assert acyclic(edges)
    used = {vc % vcs for edge in edges for vc in edge}
    assert used == set(range(vcs))  # also by routes that are shorter than the longest
    with pytest.raises(SpecError, match=f"route, which has {longest}, and there are {longest - 1}") as refused:
        certify(topology, routes, longest - 1)
    assert refused.value.key == "vcs"
    assert not certify(topology, routes, longest - 1, allow_deadlock=True).acyclic


def test_reserve_needs_a_vc_to_spare_and_whole_packets():
    topology = build("imase", n=12, degree=2)
    routes = routes_of(topology, "minimal", vc_policy="reserve")
    longest = routes.hops_max
    certified = certify(topology, routes, longest + 1)
    assert certified.policy == VcPolicy.RESERVE and certified.acyclic
    with pytest.raises(SpecError, match=f"more VCs than the longest route has channels, {longest}, and there are"):
        certify(topology, routes, longest, allow_deadlock=True)
    with pytest.raises(SpecError, match="reserve needs mode vct") as refused:
        scenario(topology, routing={"kind": "minimal", "vc_policy": "reserve"}, mode="wormhole", vcs=longest + 1)
    assert refused.value.key == "vc_policy"


def test_under_reserve_a_vc_of_a_hop_holds_packets_of_that_hop_only():
    """What a head waits for at the last, VC h, leads to heads of hop h + 1 alone, and no other hop may take it."""
    topology = build("imase", n=8, degree=2)
    routes = routes_of(topology, "ecmp", vc_policy="reserve")
    longest = routes.hops_max
    vcs = longest + 2
    tables, rings = routes.tables(topology, VcPolicy.RESERVE), make_rings(topology)
    resorts = reserved_vcs(tables, VcPolicy.RESERVE)
    assert resorts == longest
    for hop in range(longest):
        first, end = allowed_vcs(tables, 0, VcPolicy.RESERVE, vcs, hop, rings, 0, 1, 0, 0, 0, NOT_HELD)
        allowed = {vc for vc in range(first, end) if not is_reserved_for_others(resorts, first, vc)}
        assert allowed == {hop, longest, longest + 1}
        assert vc_score(resorts, longest, 4, 4) > vc_score(resorts, hop, 99, 4)


@pytest.mark.parametrize("last", [3, 70, 126])
def test_a_circle_is_found_whichever_targets_close_it(last):
    """On a ring of 130 switches packets go along the line 0 .. 129; those to one switch go up, around the ring."""
    n = 130
    ring = Topology.from_links("ring", n, [(v, (v + 1) % n) for v in range(n)]).with_hosts(1)
    higher = np.array([list(ring.dst[ring.out_start[v] : ring.out_start[v + 1]]).index((v + 1) % n) for v in range(n)])
    up, down = np.uint64(1) << higher.astype(np.uint64), np.uint64(1) << (1 - higher).astype(np.uint64)
    t, v = np.indices((n, n))
    ports = np.where(v < t, up[v], down[v])
    np.fill_diagonal(ports, 0)
    assert not has_dependency_cycle(ring, ports, np.arange(n))
    ports[last] = up
    ports[last, last] = 0
    assert has_dependency_cycle(ring, ports, np.arange(n))
    assert not has_dependency_cycle(ring, ports, np.delete(np.arange(n), last))


@given(topologies(), st.sampled_from(["minimal", "ecmp", "updown"]))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_channels_left_are_those_of_the_longest_way(topology, kind):
    if kind == "updown" and topology.directed:
        kind = "minimal"
    routes = routes_of(topology, kind)
    rest = routes.tables(topology, VcPolicy.RISING).rest
    for s, t in product(topology.src_switches.tolist(), repeat=2):
        assert rest[t, s] == max(map(len, walks(topology, routes.ports, s, t)))


def test_valiant_has_the_layers_of_minimal_for_each_leg():
    topology = build("dragonfly", hosts=1, a=2, h=1)
    routes = routes_of(topology, "valiant", vc_policy="layered")
    vcs = 2 * routes.layers
    assert vcs < routes.hops_max
    assert acyclic(held_and_wanted(topology, routes, VcPolicy.LAYERED, vcs))
    certified = certify(topology, routes, vcs)
    assert certified.policy == VcPolicy.LAYERED
    assert f"layered in {routes.layers} for each leg" in certified.note
    with pytest.raises(SpecError, match=f"need {vcs} layers, {routes.layers} for each leg"):
        certify(topology, routes, vcs - 1)


@pytest.mark.parametrize(
    ("vcs", "parts", "ranges"),
    [(4, 4, [1, 1, 1, 1]), (16, 4, [4] * 4), (8, 3, [3, 3, 2]), (11, 4, [3, 3, 3, 2]), (5, 1, [5])],
)
def test_classes_have_all_vcs_and_the_first_ones_the_rest(vcs, parts, ranges):
    shares = [share(vcs, parts, part) for part in range(parts)]
    assert [end - first for first, end in shares] == ranges
    assert [vc for first, end in shares for vc in range(first, end)] == list(range(vcs))


def test_where_vcs_are_fewer_than_classes_the_last_share_one():
    assert [share(3, 5, part) for part in range(5)] == [(0, 1), (1, 2), (2, 3), (2, 3), (2, 3)]


@pytest.mark.parametrize(("p", "vcs", "layers"), [({"a": 4, "p": 2, "h": 2}, 3, 2), ({"a": 8, "p": 4, "h": 4}, 3, 3)])
def test_a_dragonfly_takes_fewer_layers_than_hops(p, vcs, layers):
    topology = make("topology", kind="dragonfly", **p).build()
    order = "short_first" if p["a"] == 4 else "long_first"
    assert routes_of(topology, "minimal").hops_max == vcs
    assert routes_of(topology, "minimal", vc_policy={"kind": "layered", "order": order}).layers == layers


@pytest.mark.parametrize(
    ("kind", "degree", "needed"), [("mddp", 6, 4), ("mddp", 8, 4), ("random_digraph", 6, 5)]
)  # fmt: skip
def test_hop_indexed_vcs_of_256_switches(kind, degree, needed):
    topology = build(kind, hosts=4, n=256, degree=degree, seed=1)
    routes = routes_of(topology, "minimal", vc_policy="hop")
    assert certify(topology, routes, needed).acyclic
    with pytest.raises(SpecError, match=f"one for each channel of the longest route, which has {needed}"):
        certify(topology, routes, needed - 1)


@pytest.mark.parametrize(("hosts", "longest", "safe"), [([1, 1, 0, 0, 0, 0], 5, True), ([1, 0, 0, 1, 0, 0], 7, False)])
def test_packets_take_escape_channels_at_switches_without_hosts_too(hosts, longest, safe):
    """A ring whose escape channels all lead the same way round, in the routes of a plugin.

    Hosts at switches 0 and 1 are neighbours, so packets leave switch 0 by 0->1 and switch 1 by 1->2, .., 5->0 only: no
    channel depends on itself. From 3 to 0 shortest paths lead both ways, and a packet at switch 2 may take 2->3. So
    packets to 0 hold 1->2, 2->3, 3->4, 4->5 and request the next up to 5->0, those to 3 likewise from 4->5 up to 2->3:
    six dependencies round the ring.
    """
    topology = Topology.from_links("ring", 6, [(v, (v + 1) % 6) for v in range(6)]).with_hosts(hosts)
    routes = routes_of(topology, "minimal", select="adaptive", vc_policy="escape")
    channels = {end: c for c, end in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))}
    round_the_ring = [channels[v, (v + 1) % 6] - topology.out_start[v] for v in range(6)]
    routes = replace(routes, escape=np.tile(np.array(round_the_ring, np.uint8), (6, 1)), hops_max=longest)
    if safe:
        assert certify(topology, routes, 2).acyclic
        return
    cycle = r"\(0->1, VC 0\) waits for .*\(5->0, VC 0\) waits for \(0->1, VC 0\)"
    with pytest.raises(SpecError, match="escape may deadlock: " + cycle):
        certify(topology, routes, 2)


def test_no_packet_takes_escape_channels_to_another_subnet():
    """Two copies of a network have no more dependencies than one, though hosts of each have channels to no other."""
    one = make("topology", kind="torus", dims=[4, 4]).build()
    routes = routes_of(one, "minimal", select="adaptive", vc_policy="escape")
    assert certify(one, routes, 2).acyclic
    assert certify(topology_in_subnets(one, 2), routes_in_subnets(routes, one, 2), 2).acyclic


@pytest.mark.parametrize("kind", ["mesh", "hypercube", "rrg", "hyperx", "fat_tree"])
def test_escape_channels_reach_everything_without_a_cycle(kind):
    parameters = {
        "mesh": {"dims": [3, 4]}, "hypercube": {"dim": 3}, "rrg": {"n": 10, "degree": 4},
        "hyperx": {"dims": [3, 3]}, "fat_tree": {"k": 4},
    }  # fmt: skip
    topology = build(kind, **parameters[kind])
    routes = routes_of(topology, "minimal", select="adaptive", vc_policy="escape")
    assert routes.notes["escape"].startswith("updown" if kind in ("rrg", "fat_tree") else "dor")
    edges = set()
    for t in topology.src_switches.tolist():
        for s in range(topology.switches):  # a packet may enter them anywhere on a shortest path
            if s == t or not routes.ports[t, s]:
                continue
            v, channels = s, []
            while v != t:
                channels.append(int(topology.out_start[v]) + int(routes.escape[t, v]))
                v = int(topology.dst[channels[-1]])
                assert len(channels) <= routes.hops_max
            edges |= set(pairwise(channels))
    assert acyclic(edges)
    assert as_set(dependencies(topology, routes, 3, VcPolicy.ESCAPE)) <= edges
    certified = certify(topology, routes, 3)
    assert certified.policy == VcPolicy.ESCAPE
    with pytest.raises(SpecError, match="needs 2 VCs or more"):
        certify(topology, routes, 1)


def test_minimal_routing_of_a_fat_tree_needs_one_vc():
    topology = build("fat_tree", k=4, hosts=2)
    certified = certify(topology, routes_of(topology, "minimal"), 1)
    assert certified.policy == VcPolicy.ANY
    assert certified.acyclic


@pytest.mark.parametrize(
    ("kind", "routing"),
    [("ring", {"kind": "minimal", "vc_policy": "any"}), ("rrg", {"kind": "ksp", "k": 4, "vc_policy": "any"})],
)
def test_the_refusal_shows_a_cycle_of_the_graph(kind, routing):
    topology = one_way_ring(5) if kind == "ring" else build("rrg", n=10, degree=3, seed=4)
    routes = routes_of(topology, **routing)
    with pytest.raises(SpecError, match="any may deadlock") as refused:
        certify(topology, routes, 4)
    named = [tuple(map(int, pair)) for pair in re.findall(r"\((\d+)->(\d+), VC \*\)", str(refused.value))]
    assert named[0] == named[-1]
    edges = dependency_graph(topology, routes, VcPolicy.ANY)
    ends = {(int(topology.src[a]), int(topology.dst[a]), int(topology.src[b]), int(topology.dst[b])) for a, b in edges}
    if "more" not in str(refused.value):
        assert all((*a, *b) in ends for a, b in pairwise(named))


@pytest.mark.parametrize(
    ("kind", "parameters", "routing", "policy"),
    [
        ("torus", {"dims": [4, 4]}, {"kind": "dor"}, VcPolicy.DATELINE_ENTRY),
        ("mesh", {"dims": [4, 4]}, {"kind": "dor"}, VcPolicy.ANY),
        ("mesh", {"dims": [4, 4]}, {"kind": "valiant", "legs": "dor"}, VcPolicy.LEGS),
        ("torus", {"dims": [4, 4]}, {"kind": "minimal"}, None),
        ("dragonfly", {"a": 4, "h": 2}, {"kind": "dragonfly"}, VcPolicy.GROUPS),
        ("dragonfly", {"a": 4, "h": 2}, {"kind": "ugal", "legs": "dragonfly"}, VcPolicy.GROUPS),
        ("dragonfly", {"a": 1, "h": 3}, {"kind": "dragonfly"}, VcPolicy.ANY),
    ],
)
def test_the_default_policy_is_the_first_that_serves(kind, parameters, routing, policy):
    """With a VC for each channel of the longest route it is rising, unless any VC serves; policy: with one VC fewer."""
    topology = build(kind, **parameters)
    routes = routes_of(topology, **routing)
    assert certify(topology, routes, routes.hops_max).policy == (
        VcPolicy.ANY if policy == VcPolicy.ANY else VcPolicy.RISING
    )
    if policy is None:
        with pytest.raises(SpecError, match=f"rising needs a VC .* has {routes.hops_max}, and there are"):
            certify(topology, routes, routes.hops_max - 1)
    else:
        assert certify(topology, routes, max(1, routes.hops_max - 1)).policy == policy


@pytest.mark.parametrize(("ring", "policy"), [(0, VcPolicy.ANY), (4, VcPolicy.RISING)])
def test_a_cycle_far_from_the_first_switches_is_found(ring, policy):
    both_ways = [(i, i + d) for i in range(70) for d in (-1, 1) if 0 <= i + d < 70]
    around = [(i, 69 + (i - 68) % ring) for i in range(69, 69 + ring)]
    topology = Topology.from_arcs("line with a ring", 70 + max(ring - 1, 0), both_ways + around)
    assert certify(topology, routes_of(topology, "minimal"), 80).policy == policy


@pytest.mark.parametrize(
    ("kind", "parameters", "routing", "named"),
    [
        ("torus", {"dims": [8, 8]}, {"kind": "minimal"}, "has 8; routing updown needs 1, routing dor needs 2"),
        ("torus", {"dims": [8, 8]}, {"kind": "dor"}, "has 8; vc_policy dateline needs 2, vc_policy layered"),
        ("dragonfly", {"a": 4, "h": 2}, {"kind": "valiant", "legs": "dragonfly"}, "has 6; vc_policy groups needs 4, "),
        ("imase", {"n": 12, "degree": 2}, {"kind": "valiant"}, "has 8; vc_policy layered needs 6"),
    ],
)
def test_a_message_that_asks_for_vcs_names_what_needs_fewer(kind, parameters, routing, named):
    topology = build(kind, **parameters)
    with pytest.raises(SpecError, match=re.escape(named)):
        certify(topology, routes_of(topology, **routing, vc_policy="hop"), 1)


def test_vcs_beyond_one_a_hop_carry_more():
    """A random digraph under its heaviest uniform load: one VC for each hop leaves a packet behind those that wait."""
    topology = build("random_digraph", hosts=3, n=48, degree=4, seed=1)
    carried = []
    for vcs in (5, 15):
        case = scenario(topology, routing={"kind": "minimal", "vc_policy": "hop"}, vcs=vcs)
        run = start("compiled", case, 0.6, 1)
        run.advance(3000)
        carried.append(int(run.scalars()[Scalar.DELIVERED_FLITS]))
    assert carried[1] > 1.1 * carried[0]


@pytest.mark.parametrize("degree", [6, 8])
def test_mddp_needs_four_hop_vcs(degree):
    topology = build("mddp", n=256, degree=degree, seed=1)
    certified = certify(topology, routes_of(topology, "minimal", vc_policy="hop"), 4)
    assert certified.policy == VcPolicy.HOP
    assert certified.acyclic


def test_a_random_digraph_needs_five_and_says_so():
    topology = build("random_digraph", n=256, degree=6, seed=1)
    with pytest.raises(SpecError, match="longest route, which has 5") as refused:
        certify(topology, routes_of(topology, "minimal"), 4)
    assert refused.value.key == "vcs"
    assert certify(topology, routes_of(topology, "minimal"), 5).policy == VcPolicy.RISING


def test_layers_are_as_few_as_others_find():
    """Single shortest paths; first fit of pairs in random order gave 4 layers and 6 (FACTS G: 7 for n = 256)."""
    topology = build("imase", n=64, degree=6)
    random = {"kind": "layered", "order": "random"}
    assert 3 <= routes_of(topology, "ecmp", ways=1, vc_policy=random).layers <= 4


def test_layers_can_be_spread_over_more():
    topology = build("imase", n=32, degree=3)
    few = routes_of(topology, "ecmp", ways=1, vc_policy="layered")
    many = routes_of(topology, "ecmp", ways=1, vc_policy={"kind": "layered", "layers": few.layers + 2})
    pairs = ~np.eye(32, dtype=bool).ravel()
    sizes = np.bincount(many.layer[pairs], minlength=many.layers)
    assert many.layers == few.layers + 2
    assert (sizes > 0).all()
    assert sizes.max() < np.bincount(few.layer[pairs]).max()
    assert certify(topology, many, many.layers).acyclic
    with pytest.raises(SpecError, match=f"need {many.layers} layers"):
        certify(topology, many, many.layers - 1)
    with pytest.raises(SpecError, match="more than 1 layers"):
        routes_of(topology, "ecmp", ways=1, vc_policy={"kind": "layered", "layers": 1})


def test_width_of_the_graph():
    topology = build("torus", dims=[4])
    assert width_of(routes_of(topology, "dor", vc_policy="dateline"), 4, 2) == 4
    assert width_of(routes_of(topology, "dor"), 4, VcPolicy.ANY) == 1
