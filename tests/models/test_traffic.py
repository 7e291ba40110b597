# SPDX-License-Identifier: Apache-2.0
"""Every registered traffic pattern, then each against its definition."""

import json
import re
from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from flitlab.models.registry import SpecError, make, names, spec_class
from flitlab.models.rules.packets import destination, length, make_packets
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.table import table_traffic


def topology(**parameters):
    return make("topology", **parameters).build()


def build(on, **parameters):
    return make("traffic", **parameters).build(on)


def dense(traffic):
    source, target, amount = traffic.pairs()
    matrix = np.zeros((traffic.topology.hosts,) * 2)
    np.add.at(matrix, (source, target), amount)
    return matrix


NETWORKS = {
    "even": {"kind": "rrg", "n": 16, "degree": 4, "hosts_per_switch": 4},
    "directed": {"kind": "imase", "n": 16, "degree": 3},
    "uneven": {"kind": "rrg", "n": 10, "ports": 6, "hosts_total": 16},
    "some without hosts": {"kind": "fat_tree", "k": 4},
}

SERVED = {"adversarial": {"kind": "torus", "dims": [4, 4], "hosts_per_switch": 2}}
"""A network of those that a pattern serves, where these are not all."""


def examples():
    for kind in names("traffic"):
        documented = spec_class("traffic", kind).__doc__
        lines = re.findall(r"Example: ``(.+?)``", documented)
        assert lines, f"{kind}: the docstring needs a line: Example: ``traffic: {{kind: ...}}``"
        for line in lines:
            example = yaml.safe_load(line)["traffic"]
            assert example["kind"] == kind
            yield pytest.param({key: v for key, v in example.items() if key != "packet_flits"}, id=line)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the examples name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demand.csv").write_text("src,dst,demand\n0,1,2\n7,0,1.5\n")
    (tmp_path / "messages.csv").write_text("tick,src,dst,flits\n0,1,2,5\n3,0,1\n7,2,1,3\n")
    np.save(tmp_path / "racks.npy", np.random.default_rng(1).random((64, 64)))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("example", list(examples()))
def test_every_pattern_is_a_hose_matrix(example, network, files):
    on = topology(**SERVED.get(example["kind"], NETWORKS[network]))
    traffic = build(on, **example)
    assert traffic.kind == example["kind"]
    matrix = dense(traffic)
    assert (matrix >= 0).all()
    assert matrix.sum(axis=1) == pytest.approx(traffic.rate)
    assert matrix.sum(axis=0) == pytest.approx(traffic.column_sums)
    assert max(traffic.rate.max(), traffic.column_sums.max()) == pytest.approx(1, abs=1e-9)
    by_switch = np.zeros((on.switches,) * 2)
    np.add.at(by_switch, np.ix_(on.host_switch, on.host_switch), matrix)
    assert traffic.switch_demand == pytest.approx(by_switch)
    assert build(on, **example).content_hash == traffic.content_hash
    json.dumps(traffic.notes)


@pytest.mark.parametrize("example", list(examples()))
def test_a_host_alone_has_nobody_to_send_to(example, files):
    with pytest.raises((SpecError, OSError)):
        build(Topology.from_links("one", 1, []).with_hosts(1), **example)


@pytest.mark.parametrize("example", list(examples()))
def test_destinations_are_drawn_from_the_rows(example, files):
    """Of 400 packets of every host, each destination gets its share, and no other any."""
    network = topology(**SERVED.get(example["kind"], NETWORKS["directed"]))
    traffic, _ = build(network, **example).at(1.0)
    rules, matrix = make_packets(traffic, (1,), (1.0,)), dense(traffic)
    for host in np.flatnonzero(traffic.rate):
        drawn = np.bincount([destination(rules, 1, host, k) for k in range(400)], minlength=len(matrix)) / 400
        share = matrix[host] / matrix[host].sum()
        assert (drawn[share == 0] == 0).all()
        assert drawn == pytest.approx(share, abs=5 * np.sqrt((share * (1 - share)).max() / 400) + 1e-9)


@pytest.mark.parametrize("kind", ["perm", "random", "random_matching", "chunky", "longest_matching", "frontend_like"])
def test_seeds_draw_different_patterns(kind):
    on = topology(kind="rrg", n=24, degree=5, hosts_per_switch=2)
    more = {"perm": {"x": 2}, "random": {"x": 2}, "chunky": {"percent": 50}, "frontend_like": {"shuffle": True}}
    hashes = {build(on, kind=kind, seed=seed, **more.get(kind, {})).content_hash for seed in range(4)}
    assert len(hashes) == 4


def test_what_is_hardly_ever_drawn_leaves_the_rest_alone():
    """The shares before a last one of less than a draw's step add up to 1, which is no threshold of a word."""
    on = Topology.from_links("three", 3, [(0, 1), (1, 2)]).with_hosts(1)
    traffic = table_traffic("table", on, np.array([[0, 1, 1e-17], [1, 0, 0], [1, 0, 0]]))
    rules = make_packets(traffic, (1, 9), (1.0, 1e-17))
    assert {(destination(rules, 1, 0, k), length(rules, 1, 0, k)) for k in range(100)} == {(1, 1)}


def test_perm_superposes_permutations():
    on = topology(**NETWORKS["uneven"])
    matrix = dense(build(on, kind="perm", x=3, seed=5))
    assert matrix.sum(axis=0) == pytest.approx(1) and matrix.sum(axis=1) == pytest.approx(1)
    assert (np.diag(matrix) == 0).all() and set(np.round(matrix * 3).ravel()) <= {0, 1, 2, 3}
    assert (dense(build(on, kind="perm", x=1, seed=5)) == dense(build(on, kind="permutation", seed=5))).all()


def derangements(n):
    return [p for p in permutations(range(n)) if all(i != to for i, to in enumerate(p))]


@pytest.mark.parametrize(
    ("among", "every"),
    [
        ("cycle", [p for p in derangements(4) if p[p[0]] != 0]),
        ("derangement", derangements(4)),
        ("any", [p for p in permutations(range(4)) if p != (0, 1, 2, 3)]),
    ],
)
def test_a_permutation_is_drawn_uniformly_among_those_asked_for(among, every):
    """All 6 cycles, 9 derangements, or 24 permutations of four hosts come up equally often (chi-square, 0.1 %).

    Of all permutations the identity, with which nobody sends, is an error.
    """
    on = Topology.from_links("four", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    counts = dict.fromkeys(every, 0)
    for seed in range(1200):
        try:
            matrix = dense(build(on, kind="permutation", among=among, seed=seed))
        except SpecError as error:
            assert among == "any" and "no host sends" in str(error)
            continue
        drawn = tuple(int(row.argmax()) if row.any() else i for i, row in enumerate(matrix))
        assert sorted(drawn) == [0, 1, 2, 3]
        counts[drawn] += 1
    expected = sum(counts.values()) / len(every)
    assert len(counts) == len(every)
    assert (
        sum((count - expected) ** 2 / expected for count in counts.values()) < {6: 20.5, 9: 26.1, 23: 48.3}[len(every)]
    )


def test_perm_among_all_permutations_sends_nothing_from_a_host_to_itself():
    on = topology(**NETWORKS["uneven"])
    matrix = dense(build(on, kind="perm", x=3, among="any", seed=5))
    assert (np.diag(matrix) == 0).all() and max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max()) == pytest.approx(1)
    one = [
        dense(build(on, kind=kind, among="any", seed=5, **more))
        for kind, more in (("perm", {"x": 1}), ("permutation", {}))
    ]
    assert (one[0] == one[1]).all() and (one[0].sum(axis=1) == 0).any()


def test_random_has_distinct_receivers():
    on = topology(**NETWORKS["even"])
    for x in (1, 7, 63):
        matrix = dense(build(on, kind="random", x=x))
        assert ((matrix > 0).sum(axis=1) == x).all() and (np.diag(matrix) == 0).all()
        assert matrix[matrix > 0] == pytest.approx(1 / (matrix > 0).sum(axis=0).max())
    with pytest.raises(SpecError, match="less than the number of hosts, 64"):
        build(on, kind="random", x=64)


def test_random_receivers_are_uniform():
    on = topology(kind="torus", dims=[3, 3])
    counts = sum(dense(build(on, kind="random", x=2, seed=seed)) > 0 for seed in range(600))
    off = counts[~np.eye(9, dtype=bool)]
    assert off == pytest.approx(600 * 2 / 8, abs=5 * np.sqrt(600 * 0.25 * 0.75))


def test_random_matching_matches_imagined_servers():
    for network in ("even", "some without hosts"):
        on = topology(**NETWORKS[network])
        hosts = on.host_count[on.host_count > 0][0]
        for servers in (1, 5):
            demand = build(on, kind="random_matching", servers=servers).switch_demand
            flows = demand / hosts * servers
            assert flows == pytest.approx(np.round(flows))
            used = on.host_count > 0
            assert flows.sum(axis=0)[used] == pytest.approx(servers) and flows.sum(axis=1)[used] == pytest.approx(
                servers
            )
        assert (np.diag(build(on, kind="random_matching", servers=1).switch_demand) == 0).all()


# Longest matching


def longest_by_lp(on: Topology) -> float:
    """The greatest total distance of the transportation problem between switches."""
    n, hops = on.switches, distances(on).astype(float)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    return -linprog(-hops.ravel(), A_ub=np.concatenate([rows, columns]), b_ub=np.tile(on.host_count, 2)).fun


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 7), st.integers(0, 1000))
def test_longest_matching_by_enumeration(n, seed):
    rng = np.random.default_rng(seed)
    arcs = [(i, (i + 1) % n) for i in range(n)] + rng.integers(0, n, (n, 2)).tolist()
    on = Topology.from_arcs("random", n, arcs).with_hosts(1)
    hops = distances(on).astype(int)
    longest = max(sum(hops[i, p[i]] for i in range(n)) for p in permutations(range(n)))
    traffic = build(on, kind="longest_matching", tie_breaks=3)
    for one in (traffic, *traffic.alternates):
        assert (one.switch_demand * hops).sum() == pytest.approx(longest)
        assert one.notes["mean_distance"] * n == pytest.approx(longest)
        for s, t, hosts in one.notes["matching"]:
            assert s == t or one.switch_demand[s, t] == pytest.approx(hosts)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", ["longest_matching", "kodialam"])
def test_longest_matching_and_kodialam_solve_the_transportation_problem(network, kind):
    on = topology(**NETWORKS[network])
    demand = build(on, kind=kind).switch_demand
    assert (demand * distances(on)).sum() == pytest.approx(longest_by_lp(on))


def test_a_hub_with_most_hosts_cannot_send_all_away():
    """A star: 6 hosts in the middle, 1 at each of 3 leaves; the middle keeps 3 to itself."""
    star = Topology.from_links("star", 4, [(0, 1), (0, 2), (0, 3)]).with_hosts([6, 1, 1, 1])
    for kind in ("longest_matching", "kodialam"):
        traffic = build(star, kind=kind)
        assert (traffic.switch_demand * distances(star)).sum() == pytest.approx(longest_by_lp(star))


def test_nobody_is_matched_within_a_switch_without_need():
    """On a path of three, the middle to itself and the ends to each other is as long as the cycle of all."""
    path = topology(kind="mesh", dims=[3])
    traffic = build(path, kind="longest_matching", tie_breaks=5)
    assert all(one.rate.tolist() == [1, 1, 1] for one in (traffic, *traffic.alternates))
    demand = build(path, kind="kodialam").switch_demand
    assert demand == pytest.approx(np.array([[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]))


def test_mirrored_ties_are_as_long_and_lead_to_the_other_end():
    on = topology(kind="flattened_butterfly", k=5, n=3)
    hops = distances(on)
    random, mirrored = (build(on, kind="longest_matching", ties=ties) for ties in ("random", "mirrored"))
    assert mirrored.notes["mean_distance"] == random.notes["mean_distance"]
    at_end = [sum(s + t == 24 for s, t, _ in one.notes["matching"]) for one in (random, mirrored)]
    assert at_end[0] < at_end[1]
    # the switch in the middle has to send to and receive from corners, which are 2 hops away
    most = sum(hops[i, 24 - i] == 2 for i in range(25))
    assert at_end[1] in (most - 2, most - 1)


def test_longest_matching_of_a_cube_joins_opposite_corners():
    cube = topology(kind="hypercube", dim=4, hosts_per_switch=3)
    traffic = build(cube, kind="longest_matching")
    assert [t for _, t, _ in traffic.notes["matching"]] == [15 ^ v for v in range(16)]
    assert traffic.notes["mean_distance"] == 4 and {hosts for _, _, hosts in traffic.notes["matching"]} == {3}
    # host k of a switch sends to host k of the other
    assert (traffic.fixed % 3 == np.arange(48) % 3).all()


def test_tie_breaks():
    on = topology(kind="dragonfly", a=4, p=2, h=2)
    traffic = build(on, kind="longest_matching", tie_breaks=4)
    every = (traffic, *traffic.alternates)
    assert len({one.content_hash for one in every}) == len(every) == 4
    assert len({one.notes["mean_distance"] for one in every}) == 1
    # the first is the one without tie_breaks, and counts in the identity of all four
    alone = build(on, kind="longest_matching")
    assert (alone.fixed == traffic.fixed).all() and alone.content_hash != traffic.content_hash


def test_heavy_flows():
    on = topology(kind="rrg", n=40, degree=5, hosts_per_switch=2)
    plain = build(on, kind="longest_matching")
    heavy = {}
    for percent in (0, 10, 25, 100):
        traffic = build(on, kind="longest_matching", heavy={"percent": percent, "weight": 4})
        assert (traffic.fixed == plain.fixed).all()
        flows = traffic.switch_demand[traffic.switch_demand > 0]
        heavy[percent] = set(np.flatnonzero(traffic.rate == traffic.rate.max())) if 0 < percent < 100 else set()
        count = Counter(np.round(flows / 2, 6))
        expected = {0: {1: 40}, 10: {1: 4, 0.25: 36}, 25: {1: 10, 0.25: 30}, 100: {1: 40}}
        assert count == expected[percent]
    assert heavy[10] < heavy[25]


# Kodialam


def test_kodialam_spreads_over_all_longest_matchings():
    on = topology(kind="rrg", n=20, degree=3, seed=3)
    traffic = build(on, kind="kodialam")
    demand = traffic.switch_demand
    assert demand.sum(axis=0) == pytest.approx(1) and demand.sum(axis=1) == pytest.approx(1)
    longest = build(on, kind="longest_matching", tie_breaks=30)
    used = sum(one.switch_demand for one in (longest, *longest.alternates)) > 0
    assert (demand > 0)[used].all()
    assert (demand > 0).sum() == traffic.notes["pairs"] > 20
    # maximum entropy: a[s] b[t], so no exchange around a rectangle of used pairs would even it out
    found = 0
    for s, u in permutations(range(20), 2):
        shared = np.flatnonzero((demand[s] > 0) & (demand[u] > 0))
        for t, v in pairwise(shared):
            assert demand[s, t] * demand[u, v] == pytest.approx(demand[s, v] * demand[u, t], rel=1e-6)
            found += 1
    assert found


def test_kodialam_is_as_symmetric_as_the_topology():
    ring = topology(kind="torus", dims=[7])
    demand = build(ring, kind="kodialam").switch_demand
    for s in range(7):
        expected = np.zeros(7)
        expected[[(s + 3) % 7, (s + 4) % 7]] = 0.5
        assert demand[s] == pytest.approx(expected)


# Chunky


def test_chunky():
    on = topology(kind="vl2", da=4, di=6)
    racks = np.flatnonzero(on.host_count)
    hosts = on.host_count[racks[0]]
    for percent, count in ((0, 0), (50, len(racks) // 2), (100, len(racks))):
        traffic = build(on, kind="chunky", percent=percent)
        chunky = traffic.notes["chunky_racks"]
        assert len(chunky) == count
        demand = traffic.switch_demand
        for rack in chunky:
            assert sorted(demand[rack][demand[rack] > 0]) == pytest.approx([hosts])
            assert demand[rack].argmax() in chunky and demand[rack].argmax() != rack
            sender = np.flatnonzero(on.host_switch == rack)[0]
            assert (dense(traffic)[sender] > 0).sum() == hosts
        others = np.setdiff1d(racks, chunky)
        assert demand[np.ix_(others, others)].sum() == pytest.approx(hosts * len(others))
        assert demand.sum() == pytest.approx(on.hosts)
    few = topology(kind="torus", dims=[5])
    with pytest.raises(SpecError, match="one of 5 racks") as error:
        build(few, kind="chunky", percent=20)
    assert error.value.key == "percent"


def test_chunky_racks_of_different_sizes_stay_in_the_hose():
    on = topology(kind="torus", dims=[4], hosts=[4, 1, 4, 1])
    demand = build(on, kind="chunky", percent=100).switch_demand
    assert ((demand > 0).sum(axis=1) == 1).all()
    shares = demand.sum(axis=1) / on.host_count
    assert shares == pytest.approx(shares[0])


# Measured clusters


@pytest.mark.parametrize("kind", ["hadoop_like", "frontend_like"])
def test_clusters_come_in_powers_of_ten_and_are_thinned_evenly(kind):
    full = build(topology(kind="torus", dims=[8, 8]), kind=kind).switch_demand
    off = ~np.eye(64, dtype=bool)
    decades = np.log10(full[off] / full.max())
    assert decades == pytest.approx(np.round(decades), abs=1e-6)
    thin = build(topology(kind="torus", dims=[4, 4], hosts_per_switch=3), kind=kind).switch_demand
    kept = np.arange(16) * 4
    assert thin / thin.max() == pytest.approx(full[np.ix_(kept, kept)] / full[np.ix_(kept, kept)].max())
    large = build(topology(kind="torus", dims=[10, 10]), kind=kind)
    assert large.notes["racks_of_cluster"] == 100


@pytest.mark.parametrize("kind", ["hadoop_like", "frontend_like"])
def test_shuffling_moves_racks_only(kind):
    on = topology(kind="torus", dims=[8, 8])
    plain, mixed = (build(on, kind=kind, shuffle=shuffle, seed=2).switch_demand for shuffle in (False, True))
    assert (plain != mixed).any()
    assert sorted(plain.sum(axis=1)) == pytest.approx(sorted(mixed.sum(axis=1)))
    assert sorted(plain.sum(axis=0)) == pytest.approx(sorted(mixed.sum(axis=0)))


def test_hadoop_is_even_and_frontend_is_skewed():
    on = topology(kind="torus", dims=[8, 8])
    hadoop, frontend = (build(on, kind=kind).rate for kind in ("hadoop_like", "frontend_like"))
    assert hadoop.min() > 0.75
    web, cache = frontend[:48], frontend[48:61]
    assert cache.min() > 2 * web.max()


# Files


def test_matrix_of_racks(tmp_path):
    on = topology(kind="fat_tree", k=4)  # 8 racks of 2 hosts among 20 switches
    matrix = np.arange(64.0).reshape(8, 8)
    np.save(tmp_path / "m.npy", matrix)
    path = str(tmp_path / "m.npy")
    demand = build(on, kind="matrix", path=path, level="rack", normalise="none").switch_demand
    racks = np.flatnonzero(on.host_count)
    assert demand[np.ix_(racks, racks)] == pytest.approx(matrix) and demand.sum() == pytest.approx(matrix.sum())
    small = topology(kind="torus", dims=[4])
    thin = build(small, kind="matrix", path=path, downsample=True, normalise="none")
    assert thin.switch_demand == pytest.approx(matrix[::2, ::2])
    mixed = dense(build(small, kind="matrix", path=path, downsample=True, normalise="none", shuffle=True, seed=3))
    assert sorted(mixed.ravel()) == sorted(matrix[::2, ::2].ravel()) and sorted(np.diag(mixed)) == [0, 18, 36, 54]
    assert (mixed != matrix[::2, ::2]).any()
    with pytest.raises(SpecError, match="a matrix of 8; 9 or more"):
        build(topology(kind="torus", dims=[9]), kind="matrix", path=path, downsample=True)
    with pytest.raises(SpecError, match=r"shape \(8, 8\), expected \(4, 4\)"):
        build(small, kind="matrix", path=path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,2\n0,x,1\n", r":2: 0,x,1: 'x' is no host: hosts are numbered 0 to 3"),
        ("0,9,1\n", r":1: 0,9,1: '9' is no host"),
        ("0,-1,1\n", "'-1' is no host"),
        ("0,1,-1\n", "finite and not negative"),
        ("0,1,nan\n", "finite and not negative"),
        ("0,1\n", "expected src,dst,demand"),
        ("0,1,much\n", "'much' is no demand"),
        ("# nothing\n", "no demand at all"),
        ("0,1,1e308\n0,2,1e308\n", "more than a number can hold"),
    ],
)
def test_bad_demand_files_are_refused_with_the_line(text, message, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(SpecError, match=message) as error:
        build(topology(kind="torus", dims=[4]), kind="matrix", path=str(path))
    assert error.value.key == "path"


def test_trace(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("tick,src,dst,flits\n10,0,1,6\n12,0,1,3\n19,2,3\n")
    on = topology(kind="torus", dims=[4])
    traffic = build(on, kind="trace", path=str(path))
    assert dense(traffic)[0, 1] == 1 and dense(traffic)[2, 3] == pytest.approx(1 / 9)
    # nine flits from host 0 in ticks 10 to 19
    assert traffic.notes == {"messages": 3, "ticks": 10, "mean_load": 0.9}
    for text, message in (("0,1\n", "expected tick,src,dst,flits"), ("0,1,2,-3\n", "'-3' is not"), ("", "no message")):
        path.write_text(text)
        with pytest.raises(SpecError, match=message):
            build(on, kind="trace", path=str(path))
    with pytest.raises(SpecError, match="no such file"):
        build(on, kind="trace", path=str(tmp_path / "none.csv"))


@pytest.mark.parametrize("kind", ["random_matching", "longest_matching", "kodialam", "chunky", "hadoop_like"])
def test_patterns_between_switches_need_two(kind):
    lonely = topology(kind="torus", dims=[4], hosts=[5, 0, 0, 0])
    more = {"chunky": {"percent": 100}}.get(kind, {})
    with pytest.raises(SpecError, match="hosts at two switches"):
        build(lonely, kind=kind, **more)


def test_groups_of_hosts_are_limited():
    many = topology(kind="torus", dims=[2, 2], hosts=[20_001, 1, 1, 1])
    with pytest.raises(SpecError, match="20004 groups of 1 hosts"):
        build(many, kind="longest_matching")


def test_too_many_demands_are_refused_before_they_are_made():
    many = topology(kind="torus", dims=[8, 8], hosts_per_switch=200)
    with pytest.raises(SpecError, match="161280000 demands between hosts"):
        build(many, kind="hadoop_like")


def test_notes_name_switches():
    lines = "\n".join(f"s{v} -- s{(v + 1) % 6}" for v in range(6))
    on = topology(kind="file", text=lines)
    names = {f"s{v}" for v in range(6)}
    assert {end for s, t, _ in build(on, kind="longest_matching").notes["matching"] for end in (s, t)} == names
    assert set(build(on, kind="chunky", percent=50).notes["chunky_racks"]) < names
    assert build(on, kind="hotspot", hosts=["s3", 1]).notes["hot"] == ["s3", "s1"]


@pytest.mark.parametrize("kind", ["uniform", "uniform_self", "shift", "hotspot"])
@pytest.mark.parametrize("network", ["torus", "butterfly"])
def test_the_local_rate_is_that_of_the_matrix(kind, network):
    """The most that any host exchanges with its own switch, from all pairs of hosts."""
    keys = {"torus": {"dims": [2, 2], "hosts_per_switch": 3}, "butterfly": {"k": 2, "n": 2}}[network]
    topology = make("topology", kind=network, **keys).build()
    pattern = {
        "uniform": {"kind": "uniform"}, "uniform_self": {"kind": "uniform", "include_self": True},
        "shift": {"kind": "shift", "by": 1}, "hotspot": {"kind": "hotspot", "hosts": [0], "fraction": 0.5},
    }[kind]  # fmt: skip
    demand = make("traffic", **pattern).build(topology)
    matrix = np.zeros((topology.hosts, topology.hosts))
    np.add.at(matrix, demand.pairs()[:2], demand.pairs()[2])
    local = np.where(topology.host_switch[:, None] == topology.ejection_switch[None, :], matrix, 0)
    assert demand.local_rate == pytest.approx(max(local.sum(axis=0).max(), local.sum(axis=1).max()))
