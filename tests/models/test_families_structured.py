# SPDX-License-Identifier: Apache-2.0
"""Structured families: fat tree, dragonfly, BCube, DCell, flattened butterfly, HyperX and VL2."""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.distances import diameter, distance_counts, distances
from flitlab.models.topology.families.hyperx_search import cheapest
from tests import long_after


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def simple_graph(topology):
    return nx.Graph(nx.DiGraph(topology.to_networkx()))


def tiers(topology):
    """Name of the tier -> slice of its switches; the tiers follow one another without gaps."""
    found, end = {}, 0
    for name, first, count in topology.notes["tiers"]:
        assert first == end
        end = first + count
        found[name] = slice(first, end)
    assert end == topology.switches
    return found


def linked(topology):
    """Counter of channels from switch to switch."""
    return Counter(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))


def bisection_by_hand(topology):
    """Fewest links between two halves of the switches, all halves tried."""
    n = topology.switches
    weight = np.zeros((n, n), np.int64)
    np.add.at(weight, (topology.src, topology.dst), 1)
    sets = np.arange(1, 2 ** (n - 1)) * 2  # switch 0 is in the other half
    side = sets[:, None] >> np.arange(n) & 1
    side = side[side.sum(1) == n // 2]
    return int((side @ weight * (1 - side)).sum(1).min())


# fat tree


@pytest.mark.parametrize("k", [2, 4, 6, 8, 14])
def test_fat_tree_counts(k):
    topology = build("fat_tree", k=k)
    tier = tiers(topology)
    assert topology.switches == 5 * k * k // 4
    assert topology.hosts == k**3 // 4
    assert topology.channels == k**3
    ports = topology.out_degree + topology.host_count
    assert (ports == k).all()
    assert (topology.host_count[tier["edge"]] == k // 2).all()
    assert topology.host_count[tier["aggregation"]].sum() + topology.host_count[tier["core"]].sum() == 0
    assert diameter(topology) == 4
    # from an edge switch, the other edge switches of its pod are 2 channels away, those of other pods 4
    apart = distances(topology)[0, tier["edge"]]
    assert apart.tolist() == [0] + [2] * (k // 2 - 1) + [4] * ((k - 1) * k // 2)
    # as many shortest paths between pods as there are core switches
    if k > 2:
        paths = nx.all_shortest_paths(simple_graph(topology), 0, k * k // 2 - 1)
        assert sum(1 for _ in paths) == (k // 2) ** 2


def test_fat_tree_is_rearrangeable_up_to_the_core():
    # every cut between pods is as wide as their hosts: max flow from the hosts of one pod to the others
    topology = build("fat_tree", k=6)
    graph = simple_graph(topology)
    nx.set_edge_attributes(graph, 1, "capacity")
    for v in range(3):
        graph.add_edge("s", v, capacity=3)
    for v in range(3, 18):
        graph.add_edge(v, "t", capacity=3)
    assert nx.maximum_flow_value(graph, "s", "t") == 9


def test_fat_tree_of_al_fares_et_al():
    # Al-Fares et al., Figure 3: pod p, switch s; core c joined to aggregation switch c // 2 of each pod
    graph = nx.Graph()
    for pod in range(4):
        graph.add_edges_from((("e", pod, i), ("a", pod, j)) for i in range(2) for j in range(2))
        graph.add_edges_from((("a", pod, c // 2), ("c", c)) for c in range(4))
    assert nx.is_isomorphic(simple_graph(build("fat_tree", k=4)), graph)


def test_thesis_fat_tree_of_686_servers():
    topology = build("fat_tree", k=14)
    assert (topology.switches, topology.hosts) == (245, 686)
    # within fewer than 6 channels, those of the hosts included, are the 48 other servers of the pod:
    # 7.0 % of pairs; SIN section 4.1 says 7.5 %
    near = np.repeat(np.repeat(distances(topology)[:98, :98], 7, axis=0), 7, axis=1) + 2 < 6
    assert (near.sum(axis=1) - 1 == 48).all()


# dragonfly


def group_links(topology):
    """Links between each pair of groups, int64 [groups, groups]."""
    size, groups = topology.notes["group_size"], topology.notes["groups"]
    count = np.zeros((groups, groups), np.int64)
    np.add.at(count, (topology.src // size, topology.dst // size), 1)
    return count


@pytest.mark.parametrize("arrangement", ["consecutive", "palmtree", "circulant"])
@pytest.mark.parametrize(("a", "h"), [(1, 3), (2, 1), (3, 1), (3, 3), (4, 2), (6, 3), (5, 2)])
def test_largest_dragonflies(arrangement, a, h):
    topology = build("dragonfly", a=a, p=2, h=h, arrangement=arrangement)
    groups = a * h + 1
    assert topology.switches == groups * a
    assert topology.hosts == a * 2 * groups
    assert (topology.out_degree == a - 1 + h).all()
    count = group_links(topology)
    assert (np.diagonal(count) == a * (a - 1)).all()
    assert (count[~np.eye(groups, dtype=bool)] == 1).all()
    assert diameter(topology) == (3 if a > 1 else 1)


@given(
    st.integers(1, 7), st.integers(1, 4), st.integers(2, 29), st.sampled_from(["consecutive", "palmtree", "circulant"])
)
@settings(max_examples=150, deadline=None)
def test_smaller_dragonflies_spread_their_global_links(a, h, groups, arrangement):
    groups = min(groups, a * h + 1)
    topology = build("dragonfly", a=a, h=h, groups=groups, arrangement=arrangement)
    between = group_links(topology)[~np.eye(groups, dtype=bool)]
    assert between.max() - between.min() <= 1
    free = a - 1 + h - topology.out_degree
    odd = groups * a * h % 2
    assert free.sum() == odd
    if odd:
        assert free[topology.notes["unwired_router"]] == 1
    else:
        assert "unwired_router" not in topology.notes
    assert diameter(topology) <= 3


def test_dragonfly_arrangements_of_hastings_et_al():
    # 9 groups of 4 routers with 2 global ports: groups that the 8 ports of group 3 lead to, in order
    expected = {
        "consecutive": [0, 1, 2, 4, 5, 6, 7, 8],
        "palmtree": [4, 5, 6, 7, 8, 0, 1, 2],
        "circulant": [4, 2, 5, 1, 6, 0, 7, 8],
    }
    for arrangement, order in expected.items():
        graph = simple_graph(build("dragonfly", a=4, h=2, arrangement=arrangement))
        for router in range(4):
            others = {w // 4 for w in graph[12 + router] if w // 4 != 3}
            assert others == set(order[2 * router : 2 * router + 2])
    graphs = [simple_graph(build("dragonfly", a=4, h=2, arrangement=name)) for name in expected]
    assert not nx.faster_could_be_isomorphic(graphs[0], graphs[2]) or not nx.is_isomorphic(graphs[0], graphs[2])


def test_dragonfly_of_kim_et_al():
    # Figure 5: p = h = 2, a = 4, N = 72; section 3: N = a p (a h + 1), 1,056 for p = h = 4 and a = 8
    topology = build("dragonfly", a=4)
    assert (topology.switches, topology.hosts) == (36, 72)
    assert build("dragonfly", a=8).hosts == 1056


# BCube and DCell


@pytest.mark.parametrize(("n", "k"), [(2, 0), (4, 1), (2, 3), (3, 2), (8, 1), (2, 5)])
def test_bcube(n, k):
    topology = build("bcube", n=n, k=k)
    tier = tiers(topology)
    servers = n ** (k + 1)
    assert topology.switches == servers + (k + 1) * n**k
    assert topology.host_count.tolist() == [1] * servers + [0] * ((k + 1) * n**k)
    assert (topology.out_degree[:servers] == k + 1).all()
    assert (topology.out_degree[servers:] == n).all()
    assert list(tier) == ["server", *(f"level {i}" for i in range(k + 1))]
    # servers are twice as many channels apart as their words differ in digits
    words = np.array(np.unravel_index(np.arange(servers), (n,) * (k + 1))).T
    apart = (words[:, None] != words[None]).sum(axis=2)
    table = distances(topology)
    assert (table[:servers, :servers] == 2 * apart).all()
    assert table.max() == 2 * (k + 1)
    # a switch of level l serves the servers that differ in digit l, counted from the least
    for level in range(k + 1):
        first = tier[f"level {level}"].start
        group = topology.dst[topology.src == first]
        assert (np.diff(words[group], axis=0) != 0).any(axis=0).nonzero()[0].tolist() == [k - level]


@pytest.mark.parametrize(("n", "k", "servers"), [(2, 0, 2), (4, 1, 20), (5, 1, 30), (2, 2, 42), (3, 2, 156)])
def test_dcell(n, k, servers):
    topology = build("dcell", n=n, k=k)
    tier = tiers(topology)
    assert tier["server"].stop == topology.hosts == servers
    assert topology.switches == servers + servers // n
    assert topology.channels == 2 * servers + k * servers
    assert (topology.out_degree[:servers] == k + 1).all()
    assert (topology.out_degree[servers:] == n).all()
    assert (topology.host_count[servers:] == 0).all()
    # one step from server to server, by a link or through a mini-switch
    graph = simple_graph(topology)
    steps = graph.subgraph(range(servers)).copy()
    for switch in range(servers, topology.switches):
        members = list(graph[switch])
        assert members == list(range(members[0], members[0] + n))
        steps.add_edges_from((u, v) for u in members for v in members if u < v)
    assert nx.diameter(steps) <= 2 ** (k + 1) - 1
    # every two copies of a cell are joined by one link
    for level in range(1, k + 1):
        inner = {1: n, 2: n * (n + 1)}[level]
        copies = servers // inner if level == k else inner + 1
        between = Counter((u // inner, v // inner) for u, v in steps.edges if u // inner != v // inner)
        pairs = {(u, v): c for (u, v), c in between.items() if max(u, v) < copies}
        assert len(pairs) == copies * (copies - 1) // 2
        assert set(pairs.values()) == {1}


def test_dcell_of_the_paper():
    # Guo et al., Figure 1: DCell_1 with n = 4: server [4, 0] is linked to [0, 3], [0, 0] to [1, 0]
    channels = linked(build("dcell", n=4, k=1))
    assert channels[4 * 4 + 0, 0 * 4 + 3] == channels[0, 4] == 1
    assert make("topology", kind="dcell", n=6, k=2).graph().hosts == 1806  # and k = 3: 3,263,442 servers


# HyperX and flattened butterfly


def test_hyperx_special_cases():
    cube = simple_graph(build("hyperx", dims=[2, 2, 2, 2]))
    assert nx.is_isomorphic(cube, nx.hypercube_graph(4))
    assert nx.is_isomorphic(simple_graph(build("hyperx", dims=[7])), nx.complete_graph(7))
    rook = nx.cartesian_product(nx.complete_graph(4), nx.complete_graph(3))
    topology = build("hyperx", dims=[4, 3])
    ours = {(u, v) for u, v in simple_graph(topology).edges}
    assert ours == {tuple(sorted((3 * i + j, 3 * p + q))) for (i, j), (p, q) in rook.edges}
    assert build("hyperx", dims=[1]).switches == 1


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_hyperx_counts(dims, data):
    multiplicity = data.draw(st.lists(st.integers(1, 3), min_size=len(dims), max_size=len(dims)))
    topology = build("hyperx", dims=dims, multiplicity=multiplicity, hosts_per_switch=2)
    assert topology.switches == prod(dims)
    assert topology.hosts == 2 * prod(dims)
    assert (topology.out_degree == sum(k * (s - 1) for s, k in zip(dims, multiplicity, strict=True))).all()
    points = np.array(np.unravel_index(np.arange(prod(dims)), dims)).T
    apart = points[:, None] != points[None]
    assert (distances(topology) == apart.sum(2)).all()
    channels = linked(topology)
    for (u, v), copies in channels.items():
        assert copies == multiplicity[int(apart[u, v].argmax())]


@pytest.mark.parametrize(
    ("dims", "multiplicity"),
    [([4], 1), ([2, 4], [1, 1]), ([2, 4], [3, 1]), ([4, 4], 1), ([2, 2, 2], [1, 2, 1]), ([2, 6], 2)],
)
def test_relative_bisection_is_the_fewest_links_between_halves(dims, multiplicity):
    topology = build("hyperx", dims=dims, multiplicity=multiplicity, hosts_per_switch=3)
    per_host = bisection_by_hand(topology) / (topology.hosts / 2)
    assert topology.notes["relative_bisection"] == pytest.approx(per_host)


@pytest.mark.parametrize(("k", "n"), [(2, 2), (5, 2), (2, 5), (3, 3), (4, 3)])
def test_flattened_butterfly(k, n):
    topology = build("flattened_butterfly", k=k, n=n)
    assert topology.switches == k ** (n - 1)
    assert (topology.host_count == k).all()
    assert (topology.out_degree + k == n * (k - 1) + 1).all()  # the radix of Kim et al., section 2.2
    assert diameter(topology) == n - 1
    product = nx.complete_graph(1)
    for _ in range(n - 1):
        product = nx.cartesian_product(product, nx.complete_graph(k))
    assert nx.is_isomorphic(simple_graph(topology), product)


def test_flattened_butterfly_of_mut():
    # MUT section III-B: 5-ary 3-stage, 25 switches, 125 servers
    topology = build("flattened_butterfly", k=5, n=3)
    assert (topology.switches, topology.hosts) == (25, 125)
    assert distance_counts(topology).tolist() == [25, 25 * 8, 25 * 16]
    # its sparsest cut is 0.6: between two rows and three, over the hosts of two
    cut = ((topology.src < 10) & (topology.dst >= 10)).sum()
    assert cut / topology.host_count[:10].sum() == pytest.approx(0.6)


def all_hyperx(hosts, radix, bisection):
    """Links and switches of every HyperX that qualifies, straight from the definition (fewer than 600 switches)."""
    for dimensions in range(0, 7):
        for dims in combinations_with_replacement(range(2, radix + 1), dimensions):
            if prod(dims) >= 600:
                continue
            for per_switch in range(1, radix + 1):
                copies = [next(k for k in range(1, 999) if k * s >= 2 * per_switch * bisection) for s in dims]
                degree = sum(k * (s - 1) for s, k in zip(dims, copies, strict=True))
                if per_switch * prod(dims) >= hosts and per_switch + degree <= radix:
                    yield prod(dims), prod(dims) * degree // 2


@pytest.mark.parametrize("radix", long_after(2, [4, 6, 9]))
@pytest.mark.parametrize("bisection", ["0.4", "0.5", "1", "1.5"])
def test_hyperx_search_misses_no_design(radix, bisection):
    for hosts in (3, 17, 40, 97):
        every = list(all_hyperx(hosts, radix, Fraction(bisection)))
        for objective, key in (("switches", lambda d: d), ("links", lambda d: d[::-1])):
            design = cheapest(hosts, radix, Fraction(bisection), objective)
            if not every:
                assert design is None
            else:
                assert (design.switches, design.links) == min(every, key=key)


@pytest.mark.parametrize("objective", ["switches", "links"])
@pytest.mark.parametrize(("hosts", "radix", "bisection"), [(648, 64, 0.4), (648, 24, 0.4), (999, 16, 0.5), (10, 12, 1)])
def test_hyperx_search_keeps_its_promises(hosts, radix, bisection, objective):
    topology = build("hyperx_search", hosts=hosts, radix=radix, bisection=bisection, objective=objective)
    notes = topology.notes
    assert topology.hosts == hosts
    assert topology.host_count.max() - topology.host_count.min() <= 1
    assert topology.host_count.max() == notes["hosts_per_switch"]
    assert (topology.out_degree + topology.host_count).max() == notes["radix_used"] <= radix
    if topology.switches > 1:
        again = build(
            "hyperx", dims=notes["dims"], multiplicity=notes["multiplicity"], hosts_per_switch=notes["hosts_per_switch"]
        )  # fmt: skip
        assert again.edge_hash == topology.edge_hash
        assert again.notes["relative_bisection"] == notes["relative_bisection"] >= bisection
    else:
        assert notes["relative_bisection"] is None


def test_hyperx_search_takes_common_keys():
    topology = build("hyperx_search", hosts=100, radix=16, bisection=0.5, capacity=2, host_capacity=3)
    assert (topology.capacity == 2).all()
    assert topology.host_capacity == 3


def test_hyperx_search_names_the_nearest_radix():
    with pytest.raises(SpecError, match="nearest 27") as error:
        build("hyperx_search", hosts=100_000, radix=8, bisection=2)
    assert error.value.key == "radix"
    assert cheapest(100_000, 27, Fraction(2), "switches")
    assert cheapest(100_000, 26, Fraction(2), "switches") is None


# VL2


@pytest.mark.parametrize(("da", "di"), [(2, 2), (4, 2), (4, 3), (6, 4), (8, 5), (10, 6), (20, 16)])
def test_vl2(da, di):
    topology = build("vl2", da=da, di=di)
    tier = tiers(topology)
    tors = da * di // 4
    assert [tier[name].stop - tier[name].start for name in ("ToR", "aggregation", "core")] == [tors, di, da // 2]
    assert topology.host_count.tolist() == [20] * tors + [0] * (di + da // 2)
    assert (topology.out_degree[tier["ToR"]] == 2).all()
    assert (topology.out_degree[tier["aggregation"]] == da).all()
    assert (topology.out_degree[tier["core"]] == di).all()
    assert set(linked(topology).values()) == {1}
    assert (topology.capacity == 10).all()
    assert topology.host_capacity == 1
    upper = simple_graph(topology).subgraph(range(tors, topology.switches))
    assert nx.is_isomorphic(upper, nx.complete_bipartite_graph(di, da // 2))


def test_vl2_of_the_thesis():
    # SIN section 5.5: the largest VL2 evaluated has 2,400 servers
    assert build("vl2", da=24, di=20).hosts == 2400
    topology = build("vl2", da=8, di=4, servers_per_tor=3, line_speed=4, capacity=0.5)
    assert topology.hosts == 24
    assert (topology.capacity == 2).all()


@given(st.integers(1, 10), st.integers(2, 12), st.data())
@settings(max_examples=80, deadline=None)
def test_vl2_rewired_uses_the_ports_of_vl2(half_da, di, data):
    da = 2 * half_da
    if da * di % 4:
        di += 1
    tors = data.draw(st.integers(1, 3 * da * di // 4))
    topology = build("vl2_rewired", da=da, di=di, tors=tors, seed=data.draw(st.integers(0, 99)))
    tier = tiers(topology)
    assert topology.hosts == 20 * tors
    assert (topology.out_degree[tier["ToR"]] == 2).all()
    assert (topology.out_degree[tier["aggregation"]] == da).all()
    assert (topology.out_degree[tier["core"]] == di).all()
    uplink = topology.src < tors
    assert (topology.dst[uplink] >= tors).all()
    assert max(linked(topology)[u, v] for u, v in zip(topology.src[uplink], topology.dst[uplink], strict=True)) == 1
    taken = np.bincount(topology.dst[uplink], minlength=topology.switches)
    aggregation, core = taken[tier["aggregation"]], taken[tier["core"]]
    assert abs(core.sum() - 2 * tors / 3) <= 0.5  # a third of the ports are those of core switches
    assert np.ptp(aggregation) <= 1
    assert np.ptp(core) <= 1


def test_vl2_rewired_at_the_thesis_sizes():
    topology = build("vl2_rewired", da=20, di=28, tors=180)
    assert set(linked(topology).values()) == {1}
    again = build("vl2_rewired", da=20, di=28, tors=180, seed=2)
    assert again.edge_hash != topology.edge_hash
    default = build("vl2_rewired", da=20, di=28)
    assert default.hosts == build("vl2", da=20, di=28).hosts
    assert default.channels == build("vl2", da=20, di=28).channels
    # random links are drawn within and between the tiers in proportion to the ends there
    tier = tiers(default)
    fabric = (default.src >= 140) & (default.dst >= 140)
    inside = fabric & (default.src < tier["core"].start) & (default.dst < tier["core"].start)
    assert inside.sum() / fabric.sum() == pytest.approx(4 / 9, abs=0.08)


# all of them


@pytest.mark.parametrize(
    ("parameters", "key", "says"),
    [
        ({"kind": "fat_tree", "k": 7}, "k", "nearest 6, 8"),
        ({"kind": "fat_tree", "k": 1000}, "k", "1000000000"),
        ({"kind": "dragonfly", "a": 4, "h": 2, "groups": 10}, "groups", "nearest 9"),
        ({"kind": "dragonfly", "a": 10_000}, "a", "channels"),
        ({"kind": "bcube", "n": 10, "k": 30}, "k", "channels"),
        ({"kind": "dcell", "n": 6, "k": 4}, "k", "channels"),
        ({"kind": "flattened_butterfly", "k": 10, "n": 64}, "n", "channels"),
        ({"kind": "hyperx", "dims": [4, 4], "multiplicity": [1]}, "multiplicity", "1 entries for 2"),
        ({"kind": "hyperx", "dims": [10_000]}, "dims", "channels"),
        ({"kind": "hyperx_search", "hosts": [4, 4], "radix": 8, "bisection": 1}, "hosts", "in all"),
        ({"kind": "hyperx_search", "hosts": 0, "radix": 8, "bisection": 1}, "hosts", "in all"),
        ({"kind": "hyperx_search", "hosts": 64, "radix": 3, "bisection": 1}, "radix", "nearest 7"),
        ({"kind": "hyperx_search", "hosts": 10**9, "radix": 99, "bisection": 1}, "hosts", "channels"),
        ({"kind": "vl2", "da": 5, "di": 4}, "da", "nearest 4, 6"),
        ({"kind": "vl2", "da": 6, "di": 5}, "di", "nearest 4, 6"),
        ({"kind": "vl2", "da": 10_000, "di": 10_000}, "da", "channels"),
        ({"kind": "vl2_rewired", "da": 6, "di": 5}, "di", "nearest 4, 6"),
        ({"kind": "vl2_rewired", "da": 8, "di": 4, "tors": 25}, "tors", "24 at most"),
    ],
)
def test_impossible_parameters_name_the_nearest(parameters, key, says):
    with pytest.raises(SpecError, match=says) as error:
        build(**parameters)
    assert error.value.key == key


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "fat_tree", "k": 0},
        {"kind": "dragonfly", "a": 4, "arrangement": "random"},
        {"kind": "dragonfly", "a": 4, "groups": 1},
        {"kind": "bcube", "n": 1, "k": 1},
        {"kind": "hyperx", "dims": [3], "multiplicity": 0},
        {"kind": "hyperx_search", "hosts": 8, "radix": 8, "bisection": 0},
        {"kind": "vl2", "da": 4, "di": 1},
    ],
)
def test_values_out_of_range_are_refused(parameters):
    with pytest.raises(ValidationError):
        make("topology", **parameters)


@pytest.mark.parametrize(
    ("parameters", "hosts"),
    [
        ({"kind": "fat_tree", "k": 4}, 8),
        ({"kind": "bcube", "n": 3, "k": 1}, 9),
        ({"kind": "dcell", "n": 3, "k": 1}, 12),
        ({"kind": "vl2", "da": 4, "di": 4}, 4),
        ({"kind": "dragonfly", "a": 4, "p": 2}, 36),
    ],
)
def test_hosts_per_switch_goes_where_hosts_are(parameters, hosts):
    assert build(**parameters, hosts_per_switch=3).hosts == 3 * hosts
