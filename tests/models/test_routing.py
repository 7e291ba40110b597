# SPDX-License-Identifier: Apache-2.0
"""Routings against networkx, definitions and each other."""

from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.weights import routes_for
from flitlab.models import threads
from flitlab.models.registry import SpecError, make
from flitlab.models.routing.bit_parallel import longest_paths, shortest_ports
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.port_sets import pack_ports
from flitlab.models.rules.route import at_destination, choose_route, next_hops, next_port
from flitlab.models.rules.tables import RouteForm, Selection, VcPolicy
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from tests import long_after
from tests.scenarios import build, line, topologies


def routes_of(topology: Topology, kind: str, **parameters) -> Routes:
    return make("routing", kind=kind, **parameters).build(topology)


def paths_of(topology: Topology, routes: Routes, s: int, t: int) -> list[tuple[int, ...]]:
    """The channels of every path of a pair."""
    table = routes.paths
    found = []
    for p in range(*table.pair_start[[s * topology.switches + t, s * topology.switches + t + 1]]):
        v, channels = s, []
        for port in table.port[table.path_start[p] : table.path_start[p + 1]]:
            channels.append(int(topology.out_start[v]) + int(port))
            assert topology.out_start[v] <= channels[-1] < topology.out_start[v + 1]
            v = int(topology.dst[channels[-1]])
        assert v == t
        found.append(tuple(channels))
    return found


def visited(topology: Topology, channels) -> list[int]:
    return [int(topology.src[channels[0]]), *(int(topology.dst[c]) for c in channels)]


def simple_paths(topology: Topology, s: int, t: int, cutoff: int) -> set[tuple[int, ...]]:
    """All loopless channel sequences, by networkx."""
    graph = topology.to_networkx()
    return {tuple(key for _, _, key in path) for path in nx.all_simple_edge_paths(graph, s, t, cutoff)}


def walk(topology: Topology, routes: Routes, source: int, destination: int, sequence: int, seed: int = 1):
    """(way, channels) of one packet between two hosts."""
    r, hosts = routes.tables(topology), topology.hosts
    origin, target = (int(topology.host_switch[h]) for h in (source, destination))
    way = choose_route(r, seed, source, destination, hosts, sequence, origin, target)
    v, channels = origin, []
    while not at_destination(r, way, len(channels), v, target):
        port = next_port(r, way, seed, v, target, source, destination, hosts, sequence, len(channels))
        channels.append(int(topology.out_start[v] + port))
        v = int(topology.dst[channels[-1]])
        assert len(channels) <= routes.hops_max
    return way, channels


PAIRS = [
    build("rrg", n=12, degree=3, seed=2), build("imase", n=10, degree=3), build("hyperx", dims=[2, 3], multiplicity=2)
]  # fmt: skip


@pytest.mark.parametrize("topology", PAIRS, ids=lambda t: t.kind)
def test_lexicographic_ties_are_the_first_of_all_paths_in_order(topology):
    routes = routes_of(topology, "ksp", k=5, ties="lexicographic")
    for s, t in [(0, 5), (1, 4), (5, 2)]:
        every = sorted(simple_paths(topology, s, t, 8), key=lambda path: (len(path), visited(topology, path), path))
        assert paths_of(topology, routes, s, t) == every[:5]


@pytest.mark.parametrize("ties", ["drawn", "lexicographic"])
@pytest.mark.parametrize("topology", PAIRS, ids=lambda t: t.kind)
def test_max_hops_limits_the_paths_of_all_pairs_but_those_farther_apart(topology, ties):
    """Of k that exceeds the number of short paths: all of networkx's paths up to the limit, or the shortest ones."""
    for limit in (1, 2, 3):
        routes = routes_of(topology, "ksp", k=40, max_hops=limit, ties=ties)
        for s, t in [(0, 5), (1, 4), (5, 2), (7 % topology.switches, 3)]:
            every = sorted(simple_paths(topology, s, t, 8), key=len)
            short = [path for path in every if len(path) <= max(limit, len(every[0]))]
            assert sorted(paths_of(topology, routes, s, t)) == sorted(short[:40])


def test_lexicographic_ties_are_refused_where_the_search_is_too_long(monkeypatch):
    monkeypatch.setattr("flitlab.models.paths.first.MAX_STEPS_PER_PAIR", 3)
    with pytest.raises(SpecError, match="steps in search of 5 paths"):
        routes_of(PAIRS[0], "ksp", k=5, ties="lexicographic")


@pytest.mark.parametrize("topology", PAIRS, ids=lambda t: t.kind)
def test_ksp_gives_as_short_paths_as_networkx(topology):
    k = 6
    routes = routes_of(topology, "ksp", k=k)
    for s, t in [(0, 5), (1, 4), (5, 2)]:
        paths = paths_of(topology, routes, s, t)
        every = sorted(len(path) for path in simple_paths(topology, s, t, 8))
        assert [len(path) for path in paths] == every[:k]
        assert len(set(paths)) == len(paths)
        assert all(len(set(visited(topology, path))) == len(path) + 1 for path in paths)


@pytest.mark.parametrize("topology", PAIRS, ids=lambda t: t.kind)
def test_allpath_is_every_path_up_to_its_length(topology):
    hops = int(distances(topology).max())
    routes = routes_of(topology, "allpath", hops=hops)
    for s in range(3):
        for t in range(topology.switches):
            if s != t:
                paths = paths_of(topology, routes, s, t)
                assert len(paths) == len(set(paths))
                assert set(paths) == simple_paths(topology, s, t, hops)


@pytest.mark.parametrize("topology", PAIRS, ids=lambda t: t.kind)
def test_source_routed_ecmp_and_llskr_are_limited_in_length_and_number(topology):
    apart = distances(topology)
    ecmp = routes_of(topology, "ecmp", routed="source", ways=3)
    spread = routes_of(topology, "llskr", k=5, spread=1)
    for s, t in [(0, 5), (2, 4), (3, 1)]:
        shortest, longer = simple_paths(topology, s, t, apart[s, t]), simple_paths(topology, s, t, apart[s, t] + 1)
        chosen = paths_of(topology, ecmp, s, t)
        assert set(chosen) <= shortest
        assert len(set(chosen)) == min(3, len(shortest))
        chosen = paths_of(topology, spread, s, t)
        assert set(chosen) <= longer
        assert sorted(map(len, chosen)) == sorted(map(len, longer))[:5]


def test_a_ring_has_two_paths_for_every_pair():
    ring = build("torus", dims=[5])
    for kind, k in (("ksp", 2), ("llskr", 2), ("llskr", 3)):
        routes = routes_of(ring, kind, k=k, **({"spread": 3} if kind == "llskr" else {}))
        assert (routes.notes["paths_per_pair_min"], routes.notes["paths_per_pair_mean"]) == (2, 2)
        assert routes.hops_max == 4


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_ecmp_by_hop_keeps_some_of_the_next_hops(ways):
    topology = build("hyperx", dims=[3, 3], multiplicity=2)
    minimal = routes_of(topology, "minimal").ports
    ports = routes_of(topology, "ecmp", ways=ways).ports
    assert not (ports & ~minimal).any()
    np.testing.assert_array_equal(np.bitwise_count(ports), np.minimum(np.bitwise_count(minimal), ways))
    other = routes_of(topology, "ecmp", ways=ways, seed=1).ports
    assert (ports != other).any()


@given(st.integers(2, 40), st.integers(2, 5), st.booleans(), st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_arithmetic_finds_the_next_hops_of_the_table(n, degree, gdbg, data):
    n += degree
    more = {} if gdbg else {"b": data.draw(st.integers(0, 3))}
    topology = build("gdbg" if gdbg else "imase", n=n, degree=degree, **more)
    routes = routes_of(topology, "imase")
    table, r = routes_of(topology, "minimal"), routes.tables(topology)
    assert routes.hops_max == table.hops_max
    for t in range(n):
        for v in range(n):
            if v != t:
                assert next_hops(r, 0, 0, v, t) == table.ports[t, v]


def two_way(seed: int, n: int = 14) -> Topology:
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.5, seed=seed)
    return Topology.from_links("random", n, list(graph.edges)).with_hosts(1)


@given(st.integers(0, 50), st.integers(0, 13))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_updown_never_goes_up_again(seed, root):
    topology = two_way(seed)
    routes = routes_of(topology, "updown", roots=[root])
    level = nx.single_source_shortest_path_length(nx.Graph(topology.to_networkx()), root)
    apart = distances(topology)
    for s in range(14):
        for t in range(14):
            for sequence in range(3 if s != t else 0):
                _, channels = walk(topology, routes, s, t, sequence)
                falls = [(level[u], u) < (level[v], v) for u, v in pairwise(visited(topology, channels))]
                assert falls == sorted(falls)
                assert apart[s, t] <= len(channels) <= routes.hops_max


def test_updown_on_trees_and_fat_trees_is_shortest():
    for topology in (line(6), build("fat_tree", k=4, hosts=2)):
        ends = np.flatnonzero(topology.host_count)
        updown, minimal = routes_of(topology, "updown").ports, routes_of(topology, "minimal").ports
        np.testing.assert_array_equal(updown[np.ix_(ends, ends)], minimal[np.ix_(ends, ends)])


def test_dor_on_hyperx_corrects_one_dimension_after_the_other():
    topology = build("hyperx", dims=[3, 2, 4], multiplicity=[1, 3, 2])
    routes = routes_of(topology, "dor")
    assert routes.hops_max == 3
    place = np.indices([3, 2, 4]).reshape(3, -1).T
    for s, t in [(0, 23), (5, 18), (7, 8)]:
        _, channels = walk(topology, routes, s, t, 0)
        at = place[s].copy()
        for v in visited(topology, channels)[1:]:
            d = np.flatnonzero(at != place[t])[0]
            at[d] = place[t][d]
            np.testing.assert_array_equal(place[v], at)
    assert sorted(set(np.bitwise_count(routes.ports).ravel().tolist())) == [0, 1, 2, 3]
    flat = routes_of(build("flattened_butterfly", k=3, n=3, hosts=2), "dor")
    assert flat.hops_max == 2


DRAGONFLIES = [
    {"a": 4, "h": 2}, {"a": 4, "h": 2, "groups": 5}, {"a": 3, "h": 1}, {"a": 1, "h": 3}, {"a": 4, "h": 4, "groups": 2},
]  # fmt: skip


@pytest.mark.parametrize("arrangement", ["consecutive", "palmtree", "circulant"])
@pytest.mark.parametrize("shape", long_after(4, DRAGONFLIES), ids=lambda p: "-".join(map(str, p.values())))
def test_a_dragonfly_is_crossed_locally_globally_locally(shape, arrangement):
    """Every route is a shortest of those that networkx finds where stages allow a channel of each kind in turn."""
    topology = build("dragonfly", **shape, arrangement=arrangement)
    routes, n = routes_of(topology, "dragonfly"), topology.switches
    group = np.arange(n) // shape["a"]
    stages = nx.DiGraph()
    for v, w in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        if group[v] == group[w]:
            stages.add_edges_from([((v, 0), (w, 1)), ((v, 2), (w, 3))])
        else:
            stages.add_edges_from([((v, 0), (w, 2)), ((v, 1), (w, 2))])
    for s in range(n):
        hops = nx.single_source_shortest_path_length(stages, (s, 0)) if (s, 0) in stages else {}
        for t in range(n):
            if s != t:
                near = [1] if group[s] == group[t] else [2, 3]
                _, channels = walk(topology, routes, s, t, 0)
                ways = sorted(hops[t, stage] for stage in near if (t, stage) in hops)
                assert len(channels) == ways[0]
                crossed = group[topology.src[channels]] != group[topology.dst[channels]]
                assert crossed.sum() == (group[s] != group[t])
    assert routes.hops_max == max(len(walk(topology, routes, 0, t, 0)[1]) for t in range(1, n))
    for legs, vcs in ((routes, 2), (routes_of(topology, "ugal", legs="dragonfly"), 4)):
        certified = certify(topology, legs, vcs)
        assert certified.acyclic
        if shape["a"] == 1 and legs is routes:
            assert certified.policy == VcPolicy.ANY
        elif vcs >= legs.hops_max:
            assert certified.policy == VcPolicy.RISING
        else:
            assert certified.policy == (VcPolicy.LEGS if shape["a"] == 1 else VcPolicy.GROUPS)
        with pytest.raises(SpecError, match=f"groups needs {vcs} VCs or more"):
            certify(topology, replace(legs, vc_policy=VcPolicy.GROUPS), vcs - 1)


@pytest.mark.parametrize(("arrangement", "shorter"), [("consecutive", 24), ("palmtree", 36), ("circulant", 54)])
def test_some_shortest_paths_of_a_dragonfly_cross_two_global_channels(arrangement, shorter):
    topology = build("dragonfly", a=4, h=2, arrangement=arrangement)
    routes, apart, n = routes_of(topology, "dragonfly"), distances(topology), topology.switches
    pairs = [(s, t) for s in range(n) for t in range(n) if s != t]
    longer = sum(len(walk(topology, routes, s, t, 0)[1]) > apart[s, t] for s, t in pairs)
    assert longer == shorter


@pytest.mark.parametrize("legs", ["minimal", "updown"])
def test_valiant_visits_its_intermediate_switch(legs):
    topology = build("rrg", n=10, degree=3, seed=1).with_hosts([0, 1, 2, 1, 1, 0, 1, 1, 1, 2])
    routes = routes_of(topology, "valiant", legs=legs)
    assert routes.form == RouteForm.VIA
    leg = routes.leg
    count = np.zeros(10)
    for sequence in range(400):
        way, channels = walk(topology, routes, 0, 7, sequence)
        middle = way & 0xFFFFFF
        count[middle] += 1
        s, t = (int(topology.host_switch[h]) for h in (0, 7))
        assert len(channels) == int(leg[s, middle]) + int(leg[middle, t])
        assert (visited(topology, channels) if channels else [s])[leg[s, middle]] == middle
    expected = 400 * topology.host_count / topology.hosts
    assert not count[topology.host_count == 0].any()
    used = expected > 0
    assert ((count - expected)[used] ** 2 / expected[used]).sum() < 24.3  # chi-square, 7 degrees, 0.1 %
    if legs == "minimal":
        np.testing.assert_array_equal(leg, distances(topology))


def test_paths_are_drawn_evenly_by_packet_and_fixed_by_flow():
    topology = build("rrg", n=12, degree=4, seed=3)
    routes = routes_of(topology, "ksp", k=4)
    assert routes.form == RouteForm.PATHS
    assert routes.select == Selection.RANDOM
    ways = [walk(topology, routes, 1, 7, sequence)[0] for sequence in range(400)]
    count = np.bincount(np.array(ways) - min(ways), minlength=4)
    assert ((count - 100) ** 2 / 100).sum() < 16.3  # chi-square, 3 degrees, 0.1 %
    fixed = routes_of(topology, "ksp", k=4, per="flow")
    assert fixed.select == Selection.HASH
    assert len({walk(topology, fixed, 1, 7, sequence)[0] for sequence in range(20)}) == 1
    assert len({walk(topology, fixed, 1, 7, 0, seed)[0] for seed in range(20)}) == 4


KINDS = ["minimal", "ecmp", "ksp", "allpath", "llskr", "updown", "valiant"]


@pytest.mark.parametrize(("n", "degree"), [(65, 2), (130, 5), (70, 9)])
def test_shortest_ports_lead_one_channel_nearer_in_every_word_of_targets(n, degree):
    topology = build("random_digraph", n=n, degree=degree)
    ports, diameter = shortest_ports(topology)
    apart = distances(topology)
    assert diameter == apart.max()
    for c, (v, w) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        allowed = ports[:, v] >> np.uint64(c - topology.out_start[v]) & np.uint64(1)
        assert np.array_equal(allowed, apart[w].astype(int) == apart[v].astype(int) - 1)
    assert np.array_equal(longest_paths(topology, ports), apart.T)


@pytest.mark.parametrize("number", [1, 3])
def test_tables_made_in_several_parts_are_those_made_in_one(monkeypatch, number):
    topology = build("random_digraph", n=150, degree=4)
    whole, diameter = shortest_ports(topology)
    expected, packed = longest_paths(topology, whole).copy(), pack_ports(whole)
    monkeypatch.setattr(threads, "ROWS_PER_TASK", 64)
    monkeypatch.setattr(threads, "cores", lambda: number)
    ports, farthest = shortest_ports(topology)
    assert farthest == diameter and np.array_equal(ports, whole)
    assert np.array_equal(longest_paths(topology, ports), expected)
    assert np.array_equal(pack_ports(ports).bytes, packed.bytes)


def test_parts_of_which_one_is_without_paths_are_told():
    one_way = Topology.from_arcs("line", 100, [(v, v + 1) for v in range(99)])
    assert shortest_ports(one_way)[1] == -1


def test_longest_ways_count_channels_and_are_none_where_a_way_does_not_end():
    n = 300
    ring = Topology.from_arcs("ring", n, [*((v, (v + 1) % n) for v in range(n)), (7, 3)])
    ports = np.ones((n, n), np.uint64)
    ports[:, 7] = 2  # its first channel is the one back to 3
    np.fill_diagonal(ports, 0)
    around = (np.arange(n)[:, None] - np.arange(n)) % n
    assert np.array_equal(longest_paths(ring, ports), np.minimum(around, 255))
    ports[150, 7] = 1
    ports[100, 9] = 0
    longest = longest_paths(ring, ports)
    for target, stuck in ((150, 7), (100, 9)):
        ends = (target - np.arange(n)) % n < target - stuck
        assert np.array_equal(longest[target], np.where(ends, around[target], 0))


def test_routes_that_only_select_otherwise_share_a_table_as_long_as_it_is_what_it_was():
    topology = build("rrg", n=40, degree=4)
    drawn, adaptive = (routes_of(topology, "minimal", select=select) for select in ("random", "adaptive"))
    assert drawn.ports is adaptive.ports
    assert longest_paths(topology, drawn.ports) is longest_paths(topology, adaptive.ports)
    before = drawn.ports.copy()
    drawn.ports[3, [5, 6]] = drawn.ports[3, [6, 5]] + np.uint64(1)  # somebody's own routing, made of this one
    assert np.array_equal(routes_of(topology, "minimal").ports, before)


@given(topologies(), st.sampled_from(KINDS), st.integers(0, 9))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_every_packet_arrives(topology, kind, sequence):
    if kind == "updown" and topology.directed:
        kind = "minimal"
    more = {"allpath": {"hops": int(distances(topology).max(initial=1))}, "ksp": {"k": 1}}.get(kind, {})
    routes = routes_of(topology, kind, **more)
    for source in range(min(topology.hosts, 4)):
        for destination in range(topology.hosts):
            walk(topology, routes, source, destination, sequence)


def test_only_switches_with_hosts_have_paths():
    topology = build("fat_tree", k=4, hosts=2)
    counts = np.diff(routes_of(topology, "ksp", k=2).paths.pair_start).reshape(20, 20)
    ends = topology.host_count > 0
    assert not counts[~ends].any()
    assert not counts[:, ~ends].any()
    assert (counts[np.ix_(ends, ends)] == 2 * (1 - np.eye(8))).all()


CHAIN = Topology.from_arcs("chain", 3, [(0, 1), (1, 2)]).with_hosts(1)


@pytest.mark.parametrize(
    ("kind", "topology", "parameters", "message"),
    [
        ("dor", build("rrg", n=8, degree=3), {}, "needs the coordinates .* this rrg has none .*minimal"),
        ("updown", build("imase", n=8, degree=2), {}, "bi-directional links.*minimal, .* valiant and ugal"),
        ("updown", build("rrg", n=8, degree=3), {"roots": [9]}, "switches are numbered 0 to 7"),
        ("updown", line(5), {"roots": [0, 4]}, "no up\\*/down\\* path"),
        ("imase", build("rrg", n=8, degree=3), {}, "undamaged imase"),
        ("imase", build("imase", n=15, degree=2, a=2), {}, "undamaged imase"),
        ("allpath", build("torus", dims=[6]), {"hops": 2}, "farther than 2 hops .* nearest 3"),
        ("valiant", build("rrg", n=8, degree=3), {"legs": "dor"}, "coordinates"),
        ("ugal", build("imase", n=8, degree=2), {"legs": "updown"}, "updown needs bi-directional links"),
        ("dragonfly", build("rrg", n=8, degree=3), {}, "this rrg has none .minimal, ecmp and ksp"),
        ("dragonfly", build("dragonfly", a=4, h=2, failures={"links": 0.2, "seed": 1}), {}, "local links of this one"),
        ("dragonfly", build("dragonfly", a=2, h=1, failures={"links": 0.2, "seed": 3}), {}, "are not linked"),
        ("ksp", build("torus", dims=[5]), {"k": 3}, "no pair of switches has more than 2 loopless paths; llskr"),
        ("ksp", build("rrg", n=8, degree=3), {"vc_policy": "legs"}, "valiant or ugal"),
        ("minimal", build("rrg", n=8, degree=3), {"vc_policy": "escape"}, "select: adaptive"),
        ("minimal", build("imase", n=8, degree=2), {"select": "adaptive", "vc_policy": "escape"}, "uni-directional"),
        ("allpath", CHAIN, {}, "not strongly connected"),
        ("polarized", CHAIN, {}, "not strongly connected"),
    ],
)  # fmt: skip
def test_a_routing_that_cannot_serve_says_why(kind, topology, parameters, message):
    with pytest.raises(SpecError, match=message):
        routes_of(topology, kind, **parameters)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("minimal", {}), ("minimal", {"ties": "first"}), ("ecmp", {"routed": "source"}),
        ("ksp", {"k": 1, "max_hops": 1}), ("llskr", {}),
    ],
)  # fmt: skip
def test_routes_where_paths_lead_one_way_only(kind, keys):
    routes = routes_of(CHAIN, kind, **keys)
    assert walk(CHAIN, routes, 0, 2, 0)[1] == [0, 1]
    assert routes.hops_max == 2


def test_paths_serve_switches_with_more_than_128_channels():
    star = Topology.from_links("star", 145, [(0, v) for v in range(1, 145)]).with_hosts([0] + [1] * 144)
    with pytest.raises(SpecError, match="at most 128"):
        routes_of(star, "minimal")
    routes = routes_of(star, "ksp", k=1)
    assert walk(star, routes, 0, 143, 0)[1] == [144, 143]


@pytest.mark.long
def test_examples_in_docstrings():
    import re

    import yaml

    from flitlab.models.registry import names, spec_class

    grid, digits, random = build("torus", dims=[4, 4]), build("gdbg", n=16, degree=3), build("rrg", n=12, degree=3)
    targets = [grid, digits, random, build("dragonfly", a=2, h=1)]
    hops = [(t, v, v + (1 if t > v else -1)) for t in range(3) for v in range(3) if t != v]
    Path("next_hops.csv").write_text("target,switch,next\n" + "".join(f"{t},{v},{u}\n" for t, v, u in hops))
    targets.append(line(3))
    for kind in names("routing"):
        lines = re.findall(r"Example: ``routing: (.*)``", spec_class("routing", kind).__doc__)
        assert lines, kind
        assert "Source: " in spec_class("routing", kind).__doc__
        for example in lines:
            spec = make("routing", **yaml.safe_load(example))
            assert any(serves(spec, topology) for topology in targets), example


def serves(spec, topology) -> bool:
    try:
        routes_for(spec, topology, make("traffic", kind="uniform").build(topology))
    except SpecError:
        return False
    return True


def test_ksp_on_a_larger_graph_agrees_with_networkx():
    topology = build("rrg", n=40, degree=4, seed=9)
    routes = routes_of(topology, "ksp", k=8)
    graph = nx.DiGraph(topology.to_networkx())
    for s, t in [(0, 39), (17, 3)]:
        reference = [len(path) - 1 for path in islice(nx.shortest_simple_paths(graph, s, t), 8)]
        assert [len(path) for path in paths_of(topology, routes, s, t)] == reference
