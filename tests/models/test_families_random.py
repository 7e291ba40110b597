# SPDX-License-Identifier: Apache-2.0
"""Random wiring, and the families that are made by it, against counts, networkx and each other."""

from collections import Counter

import networkx as nx
import numpy as np
import pymetis
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.optimize import Bounds, LinearConstraint, milp

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.distances import aspl, distances
from flitlab.models.topology.families.power_law import shared_out
from flitlab.models.topology.wiring import evenly, join_parts, random_links, random_pairs, wireable


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def is_simple(topology):
    return len(set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))) == topology.channels


def links_between(topology, first, second):
    """Links from switches ``first`` to others ``second`` (bool [switches]); inside, if they are the same."""
    return int((first[topology.src] & second[topology.dst]).sum()) // (2 if first is second else 1)


def degrees_of(pairs, n):
    return np.bincount(pairs[:, 0], minlength=n), np.bincount(pairs[:, 1], minlength=n)


# xpander


@pytest.mark.parametrize(("degree", "lift"), [(3, 2), (5, 8), (6, 1), (10, 13)])
def test_xpander_links_any_two_nodes_by_a_matching(degree, lift):
    topology = build("xpander", degree=degree, lift=lift)
    assert (topology.switches, topology.channels) == ((degree + 1) * lift, (degree + 1) * lift * degree)
    node = np.arange(topology.switches) // lift
    to_node = np.zeros((topology.switches, degree + 1), int)
    np.add.at(to_node, (topology.src, node[topology.dst]), 1)
    assert (to_node == (node[:, None] != np.arange(degree + 1))).all()
    assert (topology.reverse >= 0).all() and is_simple(topology)


def test_xpander_matchings_are_drawn_evenly():
    """820 pairs of nodes, three switches each: all six matchings are equally likely."""
    topology = build("xpander", degree=40, lift=3)
    ends = topology.dst.reshape(41, 3, 40).swapaxes(1, 2) % 3  # by node, other node, switch
    counts = Counter(map(tuple, ends[np.triu_indices(41, 0, 40)].tolist()))
    assert len(counts) == 6
    assert sum((count - 820 / 6) ** 2 / (820 / 6) for count in counts.values()) < 20.5  # 5 degrees: p = 0.001


@pytest.mark.long
def test_xpander_expands_like_a_random_graph():
    """What a lift adds to the eigenvalues of the complete graph is near 2 sqrt(degree - 1), as in random graphs."""
    topology = build("xpander", degree=6, lift=60)
    adjacency = np.zeros((topology.switches, topology.switches))
    adjacency[topology.src, topology.dst] = 1
    second = np.sort(np.abs(np.linalg.eigvalsh(adjacency)))[-2]
    assert 0.9 < second / (2 * np.sqrt(5)) < 1.05


def test_xpander_refuses_what_is_never_connected():
    with pytest.raises(SpecError) as error:
        build("xpander", degree=1, lift=2)
    assert error.value.key == "lift"


# wiring


def test_bipartite_wiring_is_drawn_evenly():
    rng = np.random.default_rng(1)
    out, into = np.array([1, 1, 1, 0, 0, 0]), np.array([0, 0, 0, 1, 1, 1])
    counts = Counter(tuple(sorted(map(tuple, random_pairs(out, True, rng, into).tolist()))) for _ in range(600))
    assert len(counts) == 6
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 20.5  # chi-square, 5 degrees: p = 0.001


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(2, 8), st.data())
def test_bipartite_wiring_has_its_degrees_at_every_density(left, right, data):
    cells = data.draw(st.lists(st.booleans(), min_size=left * right, max_size=left * right))
    table = np.array(cells).reshape(left, right)  # any table proves that its own degrees are possible
    out = np.concatenate([table.sum(1), np.zeros(right, int)])
    into = np.concatenate([np.zeros(left, int), table.sum(0)])
    pairs = random_links(out, True, np.random.default_rng(1), into)
    assert [list(ends) for ends in degrees_of(pairs, left + right)] == [out.tolist(), into.tolist()]
    assert len(np.unique(pairs, axis=0)) == len(pairs)


def test_wiring_between_groups_never_stays_inside_one():
    groups = np.repeat(np.arange(4), 5)
    for degree in (2, 9, 14, 15):  # 15 is complete
        pairs = random_pairs(np.full(20, degree), False, np.random.default_rng(2), groups=groups)
        assert (groups[pairs[:, 0]] != groups[pairs[:, 1]]).all()
        assert (sum(degrees_of(pairs, 20)) == degree).all()
        assert len(np.unique(np.sort(pairs, axis=1), axis=0)) == 10 * degree


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=10), st.integers(0, 99))
@example([0, 0, 0, 2, 2, 1, 2, 2, 5], 0)
def test_any_degrees_are_wired_simply_if_that_is_possible(wanted, seed):
    degrees = wireable(np.array(wanted))
    pairs = random_links(degrees, False, np.random.default_rng(seed))
    assert (sum(degrees_of(pairs, len(degrees))) == degrees).all()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    repeats = len(pairs) - len(np.unique(np.sort(pairs, axis=1), axis=0))
    assert (repeats == 0) == nx.is_graphical(degrees.tolist())
    assert repeats >= sum(max(0, d - sum(degrees > 0) + 1) for d in degrees[degrees > 0].tolist()) / 2


def fewest_repeats(out, into):
    """Parallel channels that no loopless graph with these degrees can do without; undirected if ``into`` is None."""
    n = len(out)
    pairs = [(i, j) for i in range(n) for j in range(n) if (i != j if into is not None else i < j)]
    ends = np.zeros((2 * n, len(pairs)))
    for column, (i, j) in enumerate(pairs):
        ends[i, column] = ends[n + j if into is not None else j, column] = 1
    wanted = np.concatenate([out, np.zeros(n) if into is None else into])
    once, more = np.ones(len(pairs)), np.full(len(pairs), np.inf)
    found = milp(
        np.concatenate([0 * once, once]), integrality=np.ones(2 * len(pairs)),
        bounds=Bounds(0, np.concatenate([once, more])),
        constraints=LinearConstraint(np.hstack([ends, ends]), wanted, wanted),
    )  # fmt: skip
    return round(found.fun)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=9, max_size=16), st.booleans())
def test_no_more_pairs_are_repeated_than_must_be(table, directed):
    # a loopless multigraph of 7 switches
    pairs = np.array([(u, v) for u, v in table * 2 if u != v], int).reshape(-1, 2)
    out, into = degrees_of(pairs, 7)
    rng = np.random.default_rng(1)
    drawn = random_links(out, True, rng, into) if directed else random_links(out + into, False, rng)
    assert (drawn[:, 0] != drawn[:, 1]).all()
    repeats = len(drawn) - len(np.unique(drawn if directed else np.sort(drawn, axis=1), axis=0))
    assert repeats == (fewest_repeats(out, into) if directed else fewest_repeats(out + into, None))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=10))
def test_wireable_degrees_are_those_of_the_largest_multigraph(wanted):
    degrees = np.array(wanted)
    found = wireable(degrees)
    assert nx.is_multigraphical(found.tolist())
    rest = degrees.sum() - degrees.max()
    assert found.sum() == min(degrees.sum() // 2 * 2, 2 * rest)


def test_joining_parts_keeps_degrees_and_makes_no_parallel_links():
    rng = np.random.default_rng(3)
    triangles = np.array([[3 * i + a, 3 * i + b] for i in range(20) for a, b in ((0, 1), (1, 2), (2, 0))])
    pairs = triangles.copy()
    join_parts(pairs, 60, rng)
    graph = nx.Graph(pairs.tolist())
    assert nx.is_isomorphic(graph, nx.cycle_graph(60))
    apart = triangles.copy()
    join_parts(apart, 60, rng, classes=np.repeat(np.arange(20), 3))
    assert (apart == triangles).all()  # every triangle a class of its own: nothing to exchange


@given(st.integers(0, 500), st.integers(1, 40))
def test_even_shares(total, places):
    shares = evenly(total, places)
    assert shares.sum() == total
    assert shares.max() - shares.min() <= 1


# same_equipment

BASES = [
    {"kind": "torus", "dims": [4, 3, 2], "hosts_per_switch": 2},
    {"kind": "mesh", "dims": [17]},
    {"kind": "mesh", "dims": [1]},
    {"kind": "mesh", "dims": [2]},
    {"kind": "hypercube", "dim": 4, "host_capacity": 2.5},
    {"kind": "kautz", "degree": 2, "diameter": 3},
    {"kind": "imase", "n": 20, "degree": 3},
    {"kind": "mddp", "n": 20, "degree": 4, "seed": 1},
    {"kind": "rrg", "n": 9, "degree": 8},
    {"kind": "power_law", "n": 20, "mean_ports": 8, "max_ports": 18, "hosts_total": 50},
    {"kind": "clos_expansion", "hosts_total": 16, "switches": 9, "ports": 8, "servers": 4, "edges_per_pod": 2},
    {"kind": "two_cluster", "large": {"count": 6, "ports": 12, "servers": 6, "fast_ports": 2},
     "small": {"count": 6, "ports": 6, "servers": 2}},
    {"kind": "subdivided", "base": {"kind": "rrg", "n": 8, "degree": 4}, "p": 2},
    {"kind": "torus", "dims": [4, 4], "failures": {"links": 3, "switches": 1, "seed": 3}},
]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(BASES), st.integers(0, 9999))
def test_same_equipment_has_the_same_equipment(base, seed):
    ours, theirs = build("same_equipment", seed=seed, **{"as": base}), build(**base)
    assert ours.out_degree.tolist() == theirs.out_degree.tolist()
    assert ours.in_degree.tolist() == theirs.in_degree.tolist()
    assert ours.host_count.tolist() == theirs.host_count.tolist()
    assert ours.host_capacity == theirs.host_capacity
    for ends in ("src", "dst"):
        ports = [Counter(zip(getattr(t, ends).tolist(), t.capacity.tolist(), strict=True)) for t in (ours, theirs)]
        assert ports[0] == ports[1]
    assert (ours.reverse >= 0).sum() == (theirs.reverse >= 0).sum()
    assert nx.is_strongly_connected(nx.DiGraph(ours.to_networkx()))
    if len(np.unique(theirs.capacity)) == 1:
        possible = nx.is_digraphical if theirs.directed else (lambda into, out: nx.is_graphical(out))
        assert is_simple(ours) == possible(theirs.in_degree.tolist(), theirs.out_degree.tolist())
    assert (ours.notes["parallel_links"] == 0) == is_simple(ours)


def test_same_equipment_is_as_random_as_a_random_regular_graph():
    draws = [aspl(build("same_equipment", seed=s, **{"as": {"kind": "torus", "dims": [16, 16]}})) for s in range(4)]
    fresh = [aspl(build("rrg", n=256, degree=4, seed=s)) for s in range(4)]
    assert np.mean(draws) == pytest.approx(np.mean(fresh), rel=0.01)


def test_same_equipment_deals_out_the_delays(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("".join(f"{i} {(i + 1) % 9} 1 {i}\n{i} {(i + 3) % 9} 2 {9 + i}\n" for i in range(9)))
    base = {"kind": "file", "path": str(path), "directed": False}
    ours, theirs = build("same_equipment", **{"as": base}), build(**base)
    cables = [Counter(zip(t.capacity.tolist(), t.delay.tolist(), strict=True)) for t in (ours, theirs)]
    assert cables[0] == cables[1]
    assert (ours.delay == ours.delay[ours.reverse]).all()


def test_same_equipment_writes_its_key_as_it_reads_it():
    spec = make("topology", kind="same_equipment", seed=2, **{"as": {"kind": "torus", "dims": [3, 3]}})
    assert make("topology", **spec.model_dump(exclude_none=True)) == spec
    with pytest.raises(SpecError) as error:
        build("same_equipment", **{"as": {"kind": "rrg", "n": 5, "degree": 3}})
    assert error.value.key == "as.degree"


# clustered and subdivided: Theorem 1


CLUSTERS = [(8, 3, 1), (64, 6, 1), (40, 12, 5), (20, 19, 10), (6, 3, 3), (12, 6, 1)]


@pytest.mark.parametrize(("n", "degree", "cross"), CLUSTERS)
def test_clusters_are_regular_inside_and_across(n, degree, cross):
    topology = build("clustered", n=n, degree=degree, cross=cross, seed=3)
    first = np.arange(n) < n // 2
    across = first[topology.src] != first[topology.dst]
    assert is_simple(topology)
    assert (np.bincount(topology.src[across], minlength=n) == cross).all()
    assert (topology.out_degree == degree).all()
    assert topology.notes["cross_links"] == across.sum() // 2 == n // 2 * cross


@pytest.mark.parametrize(
    "base",
    [
        {"kind": "torus", "dims": [4, 3]},
        {"kind": "kautz", "degree": 2, "diameter": 2},
        {"kind": "hypercube", "dim": 3},
    ],
)
@pytest.mark.parametrize("p", [1, 2, 5])
def test_subdividing_multiplies_distances(base, p):
    plain, topology = build(**base), build("subdivided", base=base, p=p)
    links = plain.channels if plain.directed else plain.channels // 2
    assert topology.switches == plain.switches + links * (p - 1)
    assert topology.channels == p * plain.channels
    assert topology.hosts == plain.hosts
    n = plain.switches
    assert (distances(topology)[:n, :n] == p * distances(plain).astype(int)).all()
    assert (topology.out_degree[n:] == (1 if plain.directed else 2)).all()


def test_pieces_keep_what_their_link_was(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("0 1 1 5\n1 2 2 6\n2 0 3 7\n")
    base = {"kind": "file", "path": str(path), "directed": False, "hosts_per_switch": 2}
    topology = build("subdivided", base=base, p=3, path_hosts=1)
    kinds = Counter(zip(topology.capacity.tolist(), topology.delay.tolist(), strict=True))
    assert kinds == {(1, 5): 6, (2, 6): 6, (3, 7): 6}
    assert (topology.capacity == topology.capacity[topology.reverse]).all()
    assert topology.host_count.tolist() == [2] * 3 + [1] * 6


# two_cluster, power_law

LARGE, SMALL = {"count": 20, "ports": 30, "servers": 12}, {"count": 40, "ports": 10, "servers": 4}


@pytest.mark.parametrize("cross", [0.1, 0.5, 1.0, 1.6])
def test_links_across_follow_their_ratio(cross):
    topology = build("two_cluster", large=LARGE, small=SMALL, cross=cross, seed=2)
    large = np.arange(60) < 20
    expected = 360 * 240 / 599
    assert links_between(topology, large, ~large) == round(cross * expected)
    assert topology.notes["cross_expected"] == pytest.approx(expected)
    assert is_simple(topology)
    assert topology.notes["free_ports"] == 600 - topology.channels in (0, 2)
    assert topology.host_count.tolist() == [12] * 20 + [4] * 40


def test_a_ratio_of_one_is_unbiased():
    rng = np.random.default_rng(5)
    degrees = np.where(np.arange(60) < 20, 9, 3)  # sparse, so that being simple hardly matters
    drawn = [random_links(degrees, False, rng) for _ in range(200)]
    mean = np.mean([((pairs < 20).sum(axis=1) == 1).sum() for pairs in drawn])
    expected = build(
        "two_cluster", large={"count": 20, "ports": 9, "servers": 0}, small={"count": 40, "ports": 3, "servers": 0}
    ).notes["cross_expected"]
    assert mean == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("ratio", "at_large"), [(1, 240), (0.5, 120), (1.5, 360)])
def test_servers_are_shared_between_the_types(ratio, at_large):
    types = {"large": {"count": 20, "ports": 30}, "small": {"count": 30, "ports": 20}}
    topology = build("two_cluster", **types, hosts_total=480, server_ratio=ratio)
    assert topology.host_count[:20].sum() == at_large  # half of the ports are at the large switches
    assert topology.hosts == 480
    assert np.ptp(topology.host_count[:20]) <= 1
    assert np.ptp(topology.host_count[20:]) <= 1
    ports = np.repeat([30, 20], [20, 30])
    assert (topology.out_degree + topology.host_count <= ports).all()
    assert (ports - topology.out_degree - topology.host_count).sum() == topology.notes["free_ports"]


def test_fast_ports_join_large_switches_only():
    topology = build(
        "two_cluster", large={"count": 20, "ports": 40, "servers": 32, "fast_ports": 3},
        small={"count": 20, "ports": 15, "servers": 11}, line_speed=4, cross_links=30,
    )  # fmt: skip
    fast = topology.capacity == 4
    assert (np.bincount(topology.src[fast], minlength=40) == [3] * 20 + [0] * 20).all()
    assert (topology.capacity[~fast] == 1).all()
    assert (np.bincount(topology.src[~fast], minlength=40) == [8] * 20 + [4] * 20).all()
    large = np.arange(40) < 20
    assert links_between(topology, large, ~large) == 30


def test_port_counts_follow_the_power_law():
    notes = build("power_law", n=4000, mean_ports=8, hosts_total=4000, max_ports=20, seed=1).notes
    sizes = np.arange(4, 21)
    chance = sizes ** -notes["exponent"] / (sizes ** -notes["exponent"]).sum()
    assert chance @ sizes == pytest.approx(8)
    counts = np.bincount(notes["ports"], minlength=21)[4:]
    assert ((counts - 4000 * chance) ** 2 / (4000 * chance)).sum() < 39.3  # chi-square, 16 degrees: p = 0.001


@pytest.mark.parametrize("beta", [0, 0.5, 1, 1.4])
def test_hosts_follow_a_power_of_the_ports(beta):
    topology = build("power_law", n=40, exponent=2, hosts_total=120, beta=beta, seed=4)
    ports = np.array(topology.notes["ports"])
    assert topology.notes["ports"] == build("power_law", n=40, exponent=2, hosts_total=80, seed=4).notes["ports"]
    share = 120 * ports**beta / (ports**beta).sum()
    free = topology.host_count < ports - 1
    assert np.abs(topology.host_count - share)[free].max() < 1.2
    assert topology.hosts == 120
    assert (ports - topology.host_count - topology.out_degree).sum() == topology.notes["free_ports"] in (0, 1)


@given(st.integers(0, 30), st.lists(st.floats(0.1, 100), min_size=3, max_size=8))
def test_shares_are_webster_s(total, weights):
    shares = shared_out(total, np.array(weights), np.full(len(weights), 30))
    assert shares.sum() == total
    # no thing would have a better claim elsewhere
    claims, held = np.array(weights) / (shares + 0.5), np.array(weights)[shares > 0] / (shares[shares > 0] - 0.5)
    assert not total or claims.max() <= held.min() * (1 + 1e-9)


# two_layer


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 0.6])
def test_local_links_stay_in_their_pod(fraction):
    pods = {"pods": 6, "switches_per_pod": 10, "ports": 8, "hosts_total": 130}
    topology = build("two_layer", **pods, local_fraction=fraction, seed=2)
    pod = np.arange(60) // 10
    local = int((pod[topology.src] == pod[topology.dst]).sum()) // 2
    assert is_simple(topology)
    assert (local, topology.channels // 2 - local) == (topology.notes["local_links"], topology.notes["global_links"])
    wanted = fraction * (480 - 130) / 2
    assert wanted - 6 <= local <= wanted + 6 / 2  # half a port more, or one and a half less, in each pod
    assert topology.hosts == 130
    free = 8 - topology.host_count - topology.out_degree
    assert free.min() >= 0
    assert free.sum() == topology.notes["free_ports"] in (0, 1)


def test_two_unequal_pods_leave_free_what_has_no_partner():
    topology = build("two_layer", pods=2, switches_per_pod=6, ports=6, hosts_total=23, local_fraction=0.4)
    first = np.arange(12) < 6
    assert links_between(topology, first, ~first) == topology.notes["global_links"]
    assert 0 < topology.notes["free_ports"] == 72 - 23 - topology.channels <= 3


def test_unbiased_locality_is_jellyfish():
    # of the 127 other switches 15 are in the same pod
    pods = {"pods": 8, "switches_per_pod": 16, "degree": 8, "local_fraction": 15 / 127}
    layered = [build("two_layer", **pods, seed=s) for s in range(3)]
    plain = [build("rrg", n=128, degree=8, seed=s) for s in range(3)]
    assert np.mean([aspl(t) for t in layered]) == pytest.approx(np.mean([aspl(t) for t in plain]), rel=0.01)


# expanded and clos_expansion

GROWTH = {"base": {"kind": "rrg", "n": 20, "ports": 12, "hosts_total": 80}}


@pytest.mark.parametrize("stage", [0, 1, 3, 7])
def test_expanded_networks_are_like_new_ones(stage):
    n = 20 * (stage + 1)
    steps = [{"switches": 20, "ports": 12, "servers": 4, "times": 7}]
    grown = [build("expanded", **GROWTH, steps=steps, stage=stage, seed=s) for s in range(4)]
    fresh = [build("rrg", n=n, ports=12, hosts_total=4 * n, seed=s) for s in range(4)]
    for topology in grown:
        assert is_simple(topology)
        assert (topology.out_degree == 8).all()
        assert (topology.host_count == 4).all()
        assert [step["links_moved"] for step in topology.notes["steps"]] == [80] * stage
    assert np.mean([aspl(t) for t in grown]) == pytest.approx(np.mean([aspl(t) for t in fresh]), rel=0.01)


def test_a_step_moves_as_many_links_as_it_says():
    before = build("expanded", **GROWTH, steps=[])
    after = build("expanded", **GROWTH, steps=[{"switches": 3, "ports": 9}])
    stay = (after.src < 20) & (after.dst < 20)
    old = set(zip(before.src.tolist(), before.dst.tolist(), strict=True))
    new = set(zip(after.src[stay].tolist(), after.dst[stay].tolist(), strict=True))
    assert new < old
    # a later switch may break a link that an earlier one has made
    assert len(old - new) // 2 <= after.notes["links_moved"] == 12
    assert after.out_degree.tolist() == [8] * 23
    assert after.hosts == before.hosts


def test_switches_with_too_many_ports_for_simple_links_use_them_all_the_same():
    topology = build("expanded", base={"kind": "rrg", "n": 6, "degree": 5}, steps=[{"switches": 1, "ports": 10}])
    assert topology.out_degree.tolist() == [5] * 6 + [10]
    assert topology.notes["parallel_links"] == 4


def test_a_budget_buys_as_many_switches_as_it_pays_for():
    prices = {"switch": 10, "cable": 0.25, "rewiring": 0.5}
    steps = [{"budget": 133, "ports": 16, "hosts_total": 41}, {"budget": 30, "ports": 16, "times": 2}]
    topology = build("expanded", base={"kind": "rrg", "n": 30, "degree": 9 - 1}, steps=steps, prices=prices)
    spent = 0.0
    for i, (step, money) in enumerate(zip(topology.notes["steps"], (133, 163, 193), strict=True)):
        assert step["cost"] == pytest.approx(10 * step["switches"] + 0.75 * step["links_moved"])
        spent += step["cost"]
        more = 10 + 0.75 * 8  # at most what another switch without hosts costs; hosts free cables
        assert spent <= money < spent + more + (0.75 * 41 if i == 0 else 0)
    assert topology.notes["initial_cost"] == 30 * 10 + 0.25 * 120
    assert topology.notes["cost"] == pytest.approx(330 + spent)
    new = topology.host_count[30 : 30 + topology.notes["steps"][0]["switches"]]
    assert new.sum() == 41
    assert np.ptp(new) <= 1


STEPS = [{"budget": 18, "hosts_total": 240}, {"budget": 6, "times": 7}]


@pytest.mark.parametrize("stage", [0, 1, 3, 8])
def test_clos_stages_are_clos_networks(stage):
    topology = build("clos_expansion", steps=STEPS, stage=stage)
    (_, _, edges), (_, first, aggregation), (_, _, core) = topology.notes["tiers"]
    assert (topology.out_degree + topology.host_count <= 48).all()
    assert topology.host_count.tolist() == [24] * edges + [0] * (aggregation + core)
    tier = np.repeat([0, 1, 2], [edges, aggregation, core])
    assert (np.abs(tier[topology.src] - tier[topology.dst]) == 1).all()
    if stage == 0:
        assert (topology.switches, topology.hosts) == (34, 480)
    # half of the pods send to the other half as much as the estimate says
    pods = edges // 5
    per_pod = aggregation // pods
    half = {*range(edges // 2), *range(first, first + per_pod * (pods // 2))}
    graph = nx.DiGraph()
    for u, v in zip(topology.src.tolist(), topology.dst.tolist(), strict=True):
        graph.add_edge(u, v, capacity=graph.get_edge_data(u, v, {"capacity": 0})["capacity"] + 1)
    for v in range(edges):
        graph.add_edge(*(("source", v) if v in half else (v, "sink")))
    assert nx.maximum_flow_value(graph, "source", "sink") == topology.notes["bisection_links"]
    assert topology.notes["bisection"] == 2 * topology.notes["bisection_links"] / topology.hosts


@pytest.mark.long
def test_clos_stages_cost_what_they_say_and_no_more_than_there_is():
    money, previous, cost = 0.0, build("clos_expansion", steps=STEPS, stage=0), 0.0
    for stage in range(1, 9):
        now = build("clos_expansion", steps=STEPS, stage=stage)
        step = now.notes["steps"][-1]
        cables = (now.channels - previous.channels) / 2
        assert step["switches"] == now.switches - previous.switches
        assert step["cost"] == pytest.approx(step["switches"] + 0.01 * cables + 0.01 * step["links_moved"])
        money += 18 if stage == 1 else 6
        cost += step["cost"]
        assert cost <= money
        assert now.notes["bisection"] >= previous.notes["bisection"]
        assert now.notes["cost"] == pytest.approx(now.notes["initial_cost"] + cost)
        previous = now
    assert previous.notes["bisection"] == 1


@pytest.mark.parametrize("budget", [0, 2, 3, 4, 5, 7, 9, 30])
def test_clos_stages_are_the_best_for_their_money(budget):
    small = {"hosts_total": 16, "switches": 8, "ports": 8, "servers": 4, "edges_per_pod": 2}
    prices = {"switch": 1, "cable": 0, "rewiring": 0}
    first = build("clos_expansion", **small)
    found = build("clos_expansion", **small, prices=prices, steps=[{"budget": budget}])
    aggregation, core = first.notes["tiers"][1][2] // 2, first.notes["tiers"][2][2]
    best = max(
        min(8, a * down, a * (8 - down), c * 8 // 2)
        for a in range(aggregation, 20)
        for c in range(core, 40)
        for down in range(1, 8)
        if 2 * (a - aggregation) + c - core <= budget
    )
    assert found.notes["bisection_links"] == best  # of 2 pods, half


def least_cut(topology):
    """METIS's smallest cut into nearly equal halves: links per host of the smaller half."""
    weight = Counter(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    start = np.searchsorted([u for u, _ in sorted(weight)], np.arange(topology.switches + 1))
    adjacency = pymetis.CSRAdjacency(start.tolist(), [v for _, v in sorted(weight)])
    found = []
    for seed in range(5):
        cut, part = pymetis.part_graph(
            2, adjacency, vweights=topology.host_count.tolist(), eweights=[weight[pair] for pair in sorted(weight)],
            recursive=True, options=pymetis.Options(seed=seed, ufactor=50, ncuts=5),
        )  # fmt: skip
        hosts = np.bincount(part, topology.host_count)
        found.append(cut / hosts.min())
    return min(found)


@pytest.mark.parametrize("stage", [0, 2, 5, 7, 8])
def test_metis_finds_no_smaller_cut_than_the_estimate(stage):
    topology = build("clos_expansion", steps=STEPS, stage=stage)
    assert least_cut(topology) >= 0.97 * topology.notes["bisection"]


def test_expanded_jellyfish_is_ahead_of_the_clos_network_as_in_the_thesis():
    """SIN Fig. 4.6: in stage 2 the random graph has the bisection that the Clos network has in stage 8.

    With these budgets it has by then had 41 % of the money spent on it; the thesis says 40 %, but not its budgets.
    """
    base = {"kind": "rrg", "n": 34, "ports": 47, "hosts_total": 480}
    random = build("expanded", base=base, steps=[step | {"ports": 48} for step in STEPS], stage=2)
    clos = build("clos_expansion", steps=STEPS, stage=8)
    assert random.hosts == clos.hosts == 720
    assert least_cut(random) > 0.97 * clos.notes["bisection"]
    spent = [topology.notes["cost"] - topology.notes["initial_cost"] for topology in (random, clos)]
    assert spent[0] < 0.45 * spent[1]


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"kind": "clustered", "n": 7, "degree": 4, "cross": 2}, "n"),
        ({"kind": "clustered", "n": 10, "degree": 4, "cross": 1}, "cross"),
        ({"kind": "clustered", "n": 8, "degree": 3, "cross": 4}, "cross"),
        ({"kind": "clustered", "n": 8, "degree": 5, "cross": 1}, "degree"),
        ({"kind": "subdivided", "p": 10**8, "base": {"kind": "torus", "dims": [4]}}, "p"),
        ({"kind": "same_equipment", "as": {"dims": [4]}}, "as.kind"),
        ({"kind": "two_cluster", "large": LARGE, "small": {"count": 4, "ports": 10}}, "small.servers"),
        ({"kind": "two_cluster", "large": LARGE | {"servers": 30}, "small": SMALL}, "large.servers"),
        ({"kind": "two_cluster", "large": LARGE, "small": SMALL, "hosts_total": 3}, "large.servers"),
        ({"kind": "two_cluster", "large": LARGE, "small": SMALL, "cross": 0}, "cross"),
        ({"kind": "two_cluster", "large": LARGE, "small": SMALL, "cross": 1.7}, "cross"),
        ({"kind": "two_cluster", "large": LARGE, "small": SMALL, "cross_links": 241}, "cross_links"),
        ({"kind": "two_cluster", "large": LARGE, "small": SMALL, "cross_links": 2, "cross": 1}, "cross_links"),
        ({"kind": "two_cluster", "large": LARGE, "small": SMALL, "hosts_per_switch": 2}, "hosts_per_switch"),
        ({"kind": "two_cluster", "large": {"count": 2, "ports": 9}, "small": {"count": 2, "ports": 3}, "hosts_total": 8,
          "server_ratio": 0.5}, "server_ratio"),
        ({"kind": "power_law", "n": 10, "hosts_total": 5}, "exponent"),
        ({"kind": "power_law", "n": 10, "hosts_total": 5, "exponent": 2, "mean_ports": 6}, "mean_ports"),
        ({"kind": "power_law", "n": 10, "hosts_total": 5, "mean_ports": 33}, "mean_ports"),
        ({"kind": "power_law", "n": 10, "hosts_total": 500, "mean_ports": 8}, "hosts_total"),
        ({"kind": "power_law", "n": 10, "hosts_total": 5, "mean_ports": 8, "min_ports": 40}, "min_ports"),
        ({"kind": "two_layer", "pods": 4, "switches_per_pod": 4, "degree": 6, "local_fraction": 0.7}, "local_fraction"),
        ({"kind": "two_layer", "pods": 4, "switches_per_pod": 4, "local_fraction": 0.5}, None),
        ({"kind": "two_layer", "pods": 4, "switches_per_pod": 4, "ports": 4, "hosts_total": 64, "local_fraction": 0.5},
         "hosts_total"),
        ({"kind": "expanded", "base": {"kind": "kautz", "degree": 2, "diameter": 2}, "steps": []}, "base"),
        ({"kind": "expanded", **GROWTH, "steps": [{"ports": 4}]}, "steps[0]"),
        ({"kind": "expanded", **GROWTH, "steps": [{"ports": 4, "switches": 1, "servers": 3}]}, "steps[0].servers"),
        ({"kind": "expanded", **GROWTH, "steps": [{"ports": 4, "budget": 1, "servers": 1}]}, "steps[0].servers"),
        ({"kind": "expanded", **GROWTH, "steps": [{"ports": 4, "budget": 1, "hosts_total": 9}]}, "steps[0].budget"),
        ({"kind": "expanded", **GROWTH, "steps": [{"ports": 4, "switches": 1}], "stage": 2}, "stage"),
        ({"kind": "clos_expansion", "hosts_total": 500}, "hosts_total"),
        ({"kind": "clos_expansion", "hosts_total": 120}, "hosts_total"),
        ({"kind": "clos_expansion", "switches": 20}, "switches"),
        ({"kind": "clos_expansion", "servers": 48}, "servers"),
        ({"kind": "clos_expansion", "steps": [{"budget": 3, "hosts_total": 240}]}, "steps[0].budget"),
        ({"kind": "clos_expansion", "steps": [{"budget": 3, "hosts_total": 7}]}, "steps[0].hosts_total"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(parameters, key):
    with pytest.raises(SpecError) as error:
        make("topology", **parameters).build()
    assert error.value.key == key


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "two_layer", "pods": 4, "switches_per_pod": 4, "degree": 4, "local_fraction": 1},
        {"kind": "subdivided", "p": 0, "base": {"kind": "torus", "dims": [4]}},
        {"kind": "two_cluster", "large": LARGE, "small": SMALL | {"fast_ports": 1}},
        {"kind": "expanded", **GROWTH, "steps": [{"ports": 4, "switches": 1, "price": 3}]},
        {"kind": "expanded", **GROWTH, "steps": [], "prices": {"switch": 0}},
    ],
)
def test_values_out_of_range_are_refused(parameters):
    with pytest.raises(ValidationError):
        make("topology", **parameters)
