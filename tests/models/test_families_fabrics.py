# SPDX-License-Identifier: Apache-2.0
"""Fabrics of today: PolarFly, PolarStar, Dragonfly+, HammingMesh, twisted tori, DRing, FatClique, Clos and planes."""

from collections import Counter
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.degree_diameter_graphs import polarity_links
from flitlab.models.topology.distances import aspl, diameter, distance_counts, distances
from flitlab.models.topology.families.polarstar import inductive_quad_links, paley_links
from flitlab.models.topology.graph import Topology

PRIME_POWERS = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16]


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def adjacency(topology):
    """int64 [switches, switches]: channels from row to column."""
    table = np.zeros((topology.switches, topology.switches), np.int64)
    np.add.at(table, (topology.src, topology.dst), 1)
    return table


def parts(topology, key="clusters"):
    """Name -> slice of the switches, of clusters or tiers."""
    return {name: slice(first, first + count) for name, first, count in topology.notes[key]}


def between(topology):
    """int64 [clusters, clusters]: channels from cluster to cluster."""
    cluster = np.repeat(np.arange(len(topology.notes["clusters"])), [k for _, _, k in topology.notes["clusters"]])
    count = np.zeros((cluster[-1] + 1, cluster[-1] + 1), np.int64)
    np.add.at(count, (cluster[topology.src], cluster[topology.dst]), 1)
    return count


def refusal(kind, **parameters):
    with pytest.raises(SpecError) as error:
        build(kind, **parameters)
    return error.value


# PolarFly


@pytest.mark.parametrize("q", PRIME_POWERS)
def test_polarfly_has_the_counts_of_a_projective_plane(q):
    topology = build("polarfly", q=q)
    n = q * q + q + 1
    assert topology.switches == n
    assert topology.channels == q * (q + 1) ** 2
    assert Counter(topology.out_degree.tolist()) == {q: q + 1, q + 1: q * q}
    assert (topology.out_degree[: q + 1] == q).all()  # the quadrics come first
    assert (topology.host_count == -(-(q + 1) // 2)).all()
    assert diameter(topology) == 2
    assert aspl(topology) == pytest.approx(2 - topology.channels / (n * (n - 1)))
    # any two points are on one line, through each there are q + 1, once the quadrics' own loops are counted
    table = adjacency(topology)
    table[range(q + 1), range(q + 1)] = 1
    assert (table @ table == q * np.eye(n, dtype=int) + 1).all()


@pytest.mark.parametrize("q", [2, 3, 4, 5])
def test_polarfly_is_the_polarity_graph(q):
    ours = nx.Graph(build("polarfly", q=q).to_networkx())
    assert nx.is_isomorphic(ours, nx.Graph(polarity_links(q)[0].tolist()))


@pytest.mark.parametrize("q", [3, 5, 7, 9, 13])
def test_polarfly_racks_of_the_paper(q):
    # section V: fans of (q - 1) / 2 triangles; q + 1 links to the quadrics' rack and q - 2 between any two others
    topology = build("polarfly", q=q)
    table = adjacency(topology)
    names = [name for name, _, _ in topology.notes["clusters"]]
    assert names == ["quadrics", *(f"cluster {i}" for i in range(1, q + 1))]
    count = between(topology)
    assert (count[0] == [0] + [q + 1] * q).all()
    assert (np.diagonal(count)[1:] == 3 * (q - 1)).all()
    assert (count[1:, 1:][~np.eye(q, dtype=bool)] == q - 2).all()
    for name, rack in parts(topology).items():
        if name == "quadrics":
            continue
        inside = table[rack, rack]
        assert len(inside) == q
        assert (inside[0, 1:] == 1).all()  # the centre
        assert (inside[1:, 1:].sum(axis=1) == 1).all()
        assert table[0, rack].tolist() == [1] + [0] * (q - 1)  # next to the first quadric


@pytest.mark.parametrize("q", [2, 4, 8, 16])
def test_polarfly_racks_of_even_order(q):
    # all quadrics are on one line, whose pole is next to all of them
    sizes = [count for _, _, count in build("polarfly", q=q).notes["clusters"]]
    assert sizes[0] == q + 1
    assert sorted(sizes[1:]) == [1] + [q + 1] * (q - 1)


def test_polarfly_of_the_paper():
    # SC 2022: q = 31, radix 32, 993 routers with 16 endpoints each
    topology = build("polarfly", q=31)
    assert (topology.switches, topology.out_degree.max(), topology.hosts) == (993, 32, 993 * 16)


@pytest.mark.long
def test_polarfly_of_16257_switches():
    topology = build("polarfly", q=127)
    n = 127**2 + 127 + 1
    assert (topology.switches, topology.channels, topology.hosts) == (n, 127 * 128**2, 64 * n)
    assert distance_counts(topology).tolist() == [n, topology.channels, n * (n - 1) - topology.channels]


def test_polarfly_refuses_what_is_no_field():
    assert str(refusal("polarfly", q=6)) == "not a prime power; nearest 5, 7"
    assert str(refusal("polarfly", q=1)) == "must be a prime power; nearest 2"
    assert refusal("polarfly", q=-3).key == "q"
    with pytest.raises(ValidationError):
        build("polarfly", q=271)


# PolarStar


@pytest.mark.parametrize("degree", [0, 3, 4, 7, 8, 11, 12, 15])
def test_inductive_quads_link_one_of_each_pair_and_its_partners(degree):
    order = 2 * degree + 2
    graph = nx.empty_graph(order)
    graph.add_edges_from(inductive_quad_links(degree).tolist())
    assert [d for _, d in graph.degree] == [degree] * order
    for u, v in combinations(range(order), 2):
        expected = 0 if v == u ^ 1 else 1
        assert graph.has_edge(u, v) + graph.has_edge(u ^ 1, v ^ 1) == (expected if v != u ^ 1 else 0)


@pytest.mark.parametrize("order", [5, 9, 13, 17, 25])
def test_paley_graphs_equal_those_of_networkx_and_are_self_complementary(order):
    graph = nx.Graph(paley_links(order).tolist())
    assert [d for _, d in graph.degree] == [order // 2] * order
    if order in (5, 13, 17):
        assert {tuple(sorted(e)) for e in nx.paley_graph(order).edges} == {tuple(sorted(e)) for e in graph.edges}
    assert nx.is_isomorphic(graph, nx.complement(graph))


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("d", [0, 3, 4, 7])
def test_polarstar_of_inductive_quads(q, d):
    topology = build("polarstar", q=q, d=d)
    assert topology.notes["supernode"] == "inductive_quad"
    assert topology.switches == (q * q + q + 1) * (2 * d + 2)
    assert (topology.out_degree == q + 1 + d).all()
    assert adjacency(topology).max() == 1
    assert diameter(topology) == 3
    assert (topology.host_count == -(-(q + 1 + d) // 3)).all()


@pytest.mark.parametrize(("q", "d"), [(2, 2), (3, 2), (5, 2), (4, 4), (2, 6), (3, 8), (5, 6)])
def test_polarstar_of_paley_graphs(q, d):
    topology = build("polarstar", q=q, d=d, supernode="paley")
    size = 2 * d + 1
    assert topology.switches == (q * q + q + 1) * size
    assert Counter(topology.out_degree.tolist()) == {q + d: (q + 1) * size, q + 1 + d: q * q * size}
    assert adjacency(topology).max() == 1
    assert diameter(topology) == 3


def test_polarstar_takes_the_larger_supernode():
    assert build("polarstar", q=2, d=4).switches == 7 * 10
    assert build("polarstar", q=2, d=4, supernode="paley").switches == 7 * 9
    assert build("polarstar", q=2, d=6).notes["supernode"] == "paley"


def test_polarstar_of_the_paper():
    # SPAA 2024: radix 15 as 12 + 3, 1064 routers with 5 endpoints
    topology = build("polarstar", q=11, d=3)
    assert (topology.switches, topology.out_degree.max(), topology.host_count.max()) == (1064, 15, 5)
    assert build("polarstar", degree=15).content_hash == topology.content_hash


@pytest.mark.parametrize("degree", range(3, 14))
def test_largest_polarstar_of_a_degree(degree):
    orders = []
    for q in range(2, degree):
        try:
            orders.append(build("polarstar", q=q, d=degree - q - 1).switches)
        except SpecError:
            continue
    topology = build("polarstar", degree=degree)
    assert topology.switches == max(orders)
    assert topology.notes["q"] + 1 + topology.notes["d"] == degree == topology.out_degree.max()


def test_polarstar_refuses_degrees_without_a_supernode():
    assert str(refusal("polarstar", q=3, d=5)) == "no inductive_quad or paley of that degree; nearest 4, 6"
    assert str(refusal("polarstar", q=3, d=10, supernode="paley")) == "no paley of that degree; nearest 8, 12"
    assert refusal("polarstar", q=3, d=2, supernode="inductive_quad").key == "d"
    assert refusal("polarstar", q=6, d=3).key == "q"
    assert refusal("polarstar", q=32, d=10**9).key == "d"
    assert refusal("polarstar", q=3).key == "d"
    assert refusal("polarstar", d=3).key == "q"
    assert refusal("polarstar", degree=7, q=3).key == "q"
    assert refusal("polarstar", degree=3, supernode="paley").key == "degree"
    assert refusal("polarstar", degree=200).key == "degree"


# Dragonfly+


@pytest.mark.parametrize("arrangement", ["consecutive", "palmtree", "circulant"])
@pytest.mark.parametrize(("leaves", "spines", "p", "h"), [(2, 2, 2, 2), (3, 2, 4, 3), (1, 3, 1, 1), (4, 4, 4, 4)])
def test_largest_dragonfly_plus(arrangement, leaves, spines, p, h):
    topology = build("dragonfly_plus", leaves=leaves, spines=spines, p=p, h=h, arrangement=arrangement)
    groups, size = spines * h + 1, leaves + spines
    assert topology.switches == groups * size
    assert topology.channels == groups * (2 * leaves * spines + spines * h)
    assert topology.hosts == groups * leaves * p
    group, place = np.divmod(np.arange(topology.switches), size)
    leaf = place < leaves
    assert (topology.out_degree == np.where(leaf, spines, leaves + h)).all()
    assert (topology.host_count == np.where(leaf, p, 0)).all()
    across = group[topology.src] != group[topology.dst]
    assert not leaf[topology.src[across]].any()
    pairs = Counter(zip(group[topology.src[across]].tolist(), group[topology.dst[across]].tolist(), strict=True))
    assert len(pairs) == groups * (groups - 1)
    assert set(pairs.values()) == {1}
    apart = distances(topology)[np.ix_(leaf, leaf)]
    same = group[leaf][:, None] == group[leaf]
    assert (apart[same & ~np.eye(len(apart), dtype=bool)] == 2).all()
    assert (apart[~same] == 3).all()
    assert diameter(topology) <= 5


def test_dragonfly_plus_of_identical_switches():
    # radix k = 2 h: k**2 / 4 + 1 groups of k switches, (k / 2)**4 + (k / 2)**2 hosts
    topology = build("dragonfly_plus", spines=4)
    assert (topology.switches, topology.hosts) == (17 * 8, 4**4 + 4**2)
    assert (topology.out_degree + topology.host_count == 8).all()
    assert build("dragonfly_plus", spines=4, groups=9).notes == {"groups": 9, "group_size": 8}
    assert str(refusal("dragonfly_plus", spines=2, groups=6)) == "more than spines * h + 1; nearest 5"


# DRing


@pytest.mark.parametrize(("supernodes", "size"), [(5, 1), (5, 3), (6, 2), (8, 4), (11, 2), (12, 5)])
def test_dring(supernodes, size):
    topology = build("dring", supernodes=supernodes, switches=supernodes * size)
    assert topology.channels == 4 * supernodes * size**2
    assert (topology.out_degree == 4 * size).all()
    node = np.arange(topology.switches) // size
    ahead = np.abs(node[:, None] - node)
    ahead = np.minimum(ahead, supernodes - ahead)
    expected = -(-ahead // 2) + 2 * (ahead == 0)
    np.fill_diagonal(expected, 0)
    assert (distances(topology) == expected).all()


@given(st.integers(5, 14), st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_dring_shares_switches_and_ports(supernodes, more):
    topology = build("dring", supernodes=supernodes, switches=supernodes + more, ports=64)
    sizes = [count for _, _, count in topology.notes["clusters"]]
    assert sum(sizes) == supernodes + more
    assert max(sizes) - min(sizes) <= 1
    assert (topology.out_degree + topology.host_count == 64).all()
    complete = np.outer(sizes, sizes)
    for i, j in product(range(supernodes), repeat=2):
        linked = min((i - j) % supernodes, (j - i) % supernodes) in (1, 2)
        assert between(topology)[i, j] == complete[i, j] * linked


def test_dring_of_the_authors():
    # their graph of 88 switches: 1548 links, the two supernodes of 8 switches with no neighbour in common
    topology = build("dring", supernodes=10, switches=88)
    assert topology.channels == 2 * 1548
    sizes = [count for _, _, count in topology.notes["clusters"]]
    small = [i for i, size in enumerate(sizes) if size == 8]
    assert sorted(sizes) == [8] * 2 + [9] * 8
    assert not (between(topology)[small] > 0).all(axis=0).any()


def test_dring_refusals():
    with pytest.raises(ValidationError):
        build("dring", supernodes=4, switches=8)
    assert str(refusal("dring", supernodes=6, switches=5)) == "fewer than one for each supernode; at least 6"
    assert str(refusal("dring", supernodes=6, switches=12, ports=7)) == "a switch has 8 links; at least 8"
    assert refusal("dring", supernodes=6, switches=12, ports=9, hosts_per_switch=2).key == "hosts_per_switch"


# FatClique


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=120, deadline=None)
def test_fatclique_levels(size, sub_blocks, blocks, block_ports, global_ports):
    block = size * sub_blocks
    inner = max(block_ports, -(-(sub_blocks - 1) // size)) if sub_blocks > 1 else 0
    outer = max(global_ports, -(-(blocks - 1) // block)) if blocks > 1 else 0
    topology = build(
        "fatclique", size=size, sub_blocks=sub_blocks, blocks=blocks, block_ports=inner, global_ports=outer
    )
    n = block * blocks
    assert topology.switches == n
    free = size - 1 + inner + outer - topology.out_degree
    assert free.min() >= 0
    assert free.sum() == blocks * (block * inner % 2) + (n * outer % 2)
    sub, of_block = np.arange(n) // size, np.arange(n) // block
    table = adjacency(topology)
    same_sub, same_block = sub[:, None] == sub, of_block[:, None] == of_block
    assert (table[same_sub & ~np.eye(n, dtype=bool)] == 1).all()
    for count, level, least in ((n // size, sub, same_block), (blocks, of_block, ~same_block)):
        links = np.zeros((count, count), np.int64)
        np.add.at(links, (level[topology.src], level[topology.dst]), 1)
        pairs = {(i, j) for i, j in combinations(range(count), 2) if least[level == i][:, level == j].all()}
        found = [int(links[i, j]) for i, j in pairs]
        assert not found or (max(found) - min(found) <= 1 and min(found) >= 1)
    assert topology.notes["parallel_links"] == np.maximum(np.triu(table) - 1, 0).sum()


def test_fatclique_special_cases():
    assert adjacency(build("fatclique", size=6, sub_blocks=1, blocks=1)).sum() == 30  # a complete graph
    # switches that have a port for each other sub-block, and each other block: a HyperX
    whole = build("fatclique", size=4, sub_blocks=3, blocks=2)
    assert whole.edge_hash == build("hyperx", dims=[2, 3, 4]).edge_hash
    assert (
        whole.edge_hash == build("fatclique", size=4, sub_blocks=3, blocks=2, block_ports=2, global_ports=1).edge_hash
    )
    # turns lead to different switches
    assert build("fatclique", size=3, sub_blocks=3, blocks=1, block_ports=6).notes["parallel_links"] == 0
    # sub-blocks that are blocks: a dragonfly
    flat = build("fatclique", size=4, sub_blocks=1, blocks=9, global_ports=2)
    dragonfly = build("dragonfly", a=4, h=2, arrangement="palmtree")
    assert flat.edge_hash == dragonfly.edge_hash


def test_fatclique_refusals():
    few = refusal("fatclique", size=2, sub_blocks=6, blocks=1, block_ports=2)
    assert (few.key, str(few)) == ("block_ports", "too few to link every two of 6 sub_blocks; at least 3")
    assert refusal("fatclique", size=2, sub_blocks=2, blocks=9, global_ports=1).key == "global_ports"
    assert refusal("fatclique", size=2, sub_blocks=1, blocks=2, block_ports=2).key == "block_ports"


# Twisted tori


def lattice_distances(basis):
    """Distances from the origin in the integer lattice modulo the rows of ``basis``, by brute force."""
    basis = np.array(basis)
    inverse = np.linalg.inv(basis)
    found, frontier, hops = {}, [(0,) * len(basis)], 0
    steps = [sign * row for row in np.eye(len(basis), dtype=int) for sign in (1, -1)]

    def name(point):
        return tuple(np.round((point @ inverse) % 1, 6) % 1)

    while frontier:
        fresh = []
        for point in frontier:
            if name(np.array(point)) not in found:
                found[name(np.array(point))] = hops
                fresh += [tuple(np.array(point) + step) for step in steps]
        frontier, hops = fresh, hops + 1
    return sorted(found.values())


@pytest.mark.parametrize(
    ("dims", "twist", "basis"),
    [
        ([8, 4], 4, [[8, 0], [4, 4]]),
        ([4, 8], 4, [[4, -4], [0, 8]]),
        ([7, 3], 2, [[7, 0], [-2, 3]]),
        ([9, 4], 5, [[9, 0], [-5, 4]]),
        ([6, 3, 3], 3, [[6, 0, 0], [3, 3, 0], [3, 0, 3]]),
        ([6, 6, 3], 3, [[6, 0, 0], [0, 6, 0], [3, 3, 3]]),
        ([5, 5], 2, [[5, 0], [-2, 5]]),
    ],
)
def test_twisted_tori_are_lattices(dims, twist, basis):
    topology = build("twisted_torus", dims=dims, twist=twist)
    table = distances(topology)
    expected = lattice_distances(basis)
    for row in (table[0], table[-1], table[topology.switches // 2]):  # every switch sees the same
        assert sorted(row.tolist()) == expected
    assert (topology.out_degree == 2 * len(dims)).all()


@pytest.mark.parametrize("a", [2, 3, 4, 5, 8])
def test_rectangular_twisted_torus_closed_forms(a):
    twisted, torus = build("twisted_torus", dims=[2 * a, a], twist=a), build("torus", dims=[2 * a, a])
    assert diameter(twisted) == a
    assert diameter(torus) == a + a // 2
    n = 2 * a * a  # 4 s switches at s < a hops, the others at a
    assert aspl(twisted) == pytest.approx((sum(4 * s * s for s in range(1, a)) + a * (2 * a - 1)) / (n - 1))
    assert aspl(twisted) < aspl(torus) or a == 2


@pytest.mark.parametrize("a", [2, 3, 4, 5])
def test_cubic_twisted_tori_closed_forms(a):
    for dims in ([2 * a, a, a], [2 * a, 2 * a, a], [a, a, 2 * a], [a, 2 * a, 2 * a]):
        twisted, torus = build("twisted_torus", dims=dims, twist=a), build("torus", dims=dims)
        assert diameter(twisted) == 3 * a // 2
        assert diameter(torus) == sum(extent // 2 for extent in dims)
        assert aspl(twisted) < aspl(torus)


def cut(topology, axis):
    """Fewest links between two halves, over the places at which coordinate ``axis`` can be cut in two runs."""
    place = np.indices(topology.notes["dims"])[axis].ravel()
    extent = topology.notes["dims"][axis]
    halves = [np.isin(place, (first + np.arange(extent // 2)) % extent) for first in range(extent)]
    return min(int((half[topology.src] & ~half[topology.dst]).sum()) for half in halves)


@pytest.mark.parametrize("a", [2, 4, 6])
def test_twisting_doubles_the_narrowest_straight_cut(a):
    # across the long dimension a torus has 2 a links; the links of the short dimension, once twisted, cross too
    torus = build("twisted_torus", dims=[2 * a, a], twist=0)
    twisted = build("twisted_torus", dims=[2 * a, a], twist=a)
    assert cut(torus, 0) == 2 * a
    assert cut(twisted, 0) == 2 * a + a * 2
    assert cut(twisted, 1) == 4 * a


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(-9, 30))
@settings(max_examples=80, deadline=None)
def test_twisted_tori_of_all_extents(dims, twist):
    topology = build("twisted_torus", dims=dims, twist=twist)
    assert adjacency(topology).max(initial=0) <= 1
    assert topology.edge_hash == build("twisted_torus", dims=dims, twist=twist + max(dims)).edge_hash
    if twist % max(dims) == 0:
        assert topology.edge_hash == build("torus", dims=dims).edge_hash
    rows = np.sort(distances(topology), axis=1)
    assert (rows == rows[0]).all()  # a Cayley graph looks the same from everywhere


# HammingMesh


@pytest.mark.parametrize(("a", "b", "x", "y"), [(2, 2, 4, 4), (1, 1, 3, 5), (4, 2, 2, 3), (3, 3, 2, 2), (2, 4, 5, 2)])
def test_hammingmesh(a, b, x, y):
    topology = build("hammingmesh", a=a, b=b, x=x, y=y)
    nodes, rows, columns = a * b * x * y, b * y, a * x
    assert topology.switches == nodes + rows + columns
    tier = parts(topology, "tiers")
    assert (topology.host_count == (np.arange(topology.switches) < nodes)).all()
    assert (topology.out_degree[tier["accelerator"]] == 4).all()
    assert (topology.out_degree[tier["row switch"]] == 2 * x).all()
    assert (topology.out_degree[tier["column switch"]] == 2 * y).all()
    # boards are meshes
    table = adjacency(topology)
    mesh = adjacency(build("mesh", dims=[b, a]))
    for first in range(0, nodes, a * b):
        assert (table[first : first + a * b, first : first + a * b] == mesh).all()
    # a row's switch reaches its 2 x ends: the same row of every board in a row of boards
    for j, r in product(range(y), range(b)):
        near = np.flatnonzero(table[nodes + j * b + r])
        assert near.tolist() == sorted({((j * x + i) * b + r) * a + c for i in range(x) for c in (0, a - 1)})
    if max(a, b) <= 2:  # every accelerator is at both ends: to a switch, along the row, to the other switch
        assert diameter(topology) <= 6


def test_hammingmesh_without_boards_is_a_hamming_graph():
    # 1 x 1 boards: any two in a row or column are two channels apart
    topology = build("hammingmesh", a=1, b=1, x=5, y=3)
    rook = nx.floyd_warshall_numpy(nx.cartesian_product(nx.complete_graph(3), nx.complete_graph(5)))
    assert (distances(topology)[:15, :15] == 2 * rook).all()


def test_hammingmesh_of_one_board_is_a_torus():
    for a, b in ((4, 3), (2, 5), (1, 4)):
        topology = build("hammingmesh", a=a, b=b, x=1, y=1)
        assert topology.edge_hash == build("torus", dims=[b, a]).edge_hash


@pytest.mark.parametrize(("radix", "x"), [(4, 3), (4, 4), (8, 6), (8, 11), (6, 9)])
def test_hammingmesh_trees_of_small_switches(radix, x):
    topology = build("hammingmesh", a=2, b=2, x=x, y=1, radix=radix)
    tier = parts(topology, "tiers")
    assert (topology.out_degree[tier["row switch"]] <= radix).all()
    assert (topology.out_degree[tier["row spine"]] <= radix).all()
    # up to half of the ports of a leaf lead down, the other half up: no oversubscription
    table = adjacency(topology)
    for row in range(2):
        leaves = [v for v in range(tier["row switch"].start, tier["row switch"].stop)][row::1]
        down = table[leaves, tier["accelerator"]].sum(axis=1)
        up = table[leaves, tier["row spine"]].sum(axis=1)
        assert (up == radix // 2).all()
        assert (down <= radix // 2).all()


def test_hammingmesh_sizes_of_the_paper():
    # SC 2022: 1,024 and 16,384 accelerators as Hx2Mesh and Hx4Mesh
    for a, x, accelerators in ((2, 16, 1024), (4, 8, 1024), (2, 64, 16384), (4, 32, 16384)):
        assert build("hammingmesh", a=a, b=a, x=x, y=x).hosts == accelerators


def test_hammingmesh_refusals():
    assert str(refusal("hammingmesh", a=2, b=2, x=4, y=4, radix=7)) == "must be even; nearest 6, 8"
    assert str(refusal("hammingmesh", a=2, b=2, x=5, y=4, radix=4)) == "more than two levels of switches; at most 4"
    assert refusal("hammingmesh", a=10**5, b=10**5, x=4, y=4).key == "x"


# Leaf-spine


@pytest.mark.parametrize(("leaves", "spines", "per_leaf", "multiplicity"), [(4, 2, 4, 1), (6, 3, 6, 2), (1, 1, 1, 1)])
def test_leaf_spine(leaves, spines, per_leaf, multiplicity):
    topology = build("leaf_spine", leaves=leaves, spines=spines, hosts_per_leaf=per_leaf, multiplicity=multiplicity)
    assert topology.switches == leaves + spines
    assert topology.channels == 2 * leaves * spines * multiplicity
    assert topology.host_count.tolist() == [per_leaf] * leaves + [0] * spines
    assert topology.out_degree.tolist() == [spines * multiplicity] * leaves + [leaves * multiplicity] * spines
    assert topology.notes["oversubscription"] == per_leaf / (spines * multiplicity)
    assert nx.is_isomorphic(nx.Graph(topology.to_networkx()), nx.complete_bipartite_graph(leaves, spines))


def test_leaf_spine_by_oversubscription():
    assert build("leaf_spine", leaves=3, spines=4).hosts == 12
    assert build("leaf_spine", leaves=3, spines=4, multiplicity=2, oversubscription=3).hosts == 3 * 24
    assert build("leaf_spine", leaves=3, spines=4, oversubscription=1.5).hosts == 18
    fast = build("leaf_spine", leaves=3, spines=4, capacity=4)  # links four times as fast as hosts
    assert (fast.hosts, fast.notes["oversubscription"]) == (48, 1)
    assert build("leaf_spine", leaves=3, spines=4, capacity=4, hosts_per_leaf=48).notes["oversubscription"] == 3
    error = refusal("leaf_spine", leaves=3, spines=4, oversubscription=1.2)
    assert error.key == "oversubscription"
    assert str(error) == "makes 4.8 hosts per leaf; in place of it, nearest hosts_per_leaf 4, 5"
    assert refusal("leaf_spine", leaves=3, spines=4, oversubscription=1, hosts_per_leaf=4).key == "oversubscription"
    assert refusal("leaf_spine", leaves=3, spines=4, hosts_per_leaf=4, hosts_per_switch=4).key == "hosts_per_switch"


# Planes


@given(st.integers(1, 4), st.sampled_from([
    {"kind": "leaf_spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 2}, {"kind": "torus", "dims": [3, 3]},
    {"kind": "imase", "n": 8, "degree": 2, "hosts_per_switch": 2, "capacity": 0.5, "host_capacity": 2.0},
]))  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_planes_are_copies_joined_by_cards(count, of):
    plane, topology = make("topology", **of).build(), build("planes", count=count, of=of)
    hosts = plane.hosts
    assert topology.switches == hosts + count * plane.switches
    assert (topology.host_count == (np.arange(topology.switches) < hosts)).all()
    assert topology.out_degree[:hosts].tolist() == [count] * hosts
    graph = topology.to_networkx()
    graph.remove_nodes_from(range(hosts))
    copies = list(nx.weakly_connected_components(graph))
    assert len(copies) == count
    for copy in copies:
        assert nx.is_isomorphic(
            nx.DiGraph(graph.subgraph(copy)), nx.DiGraph(plane.to_networkx()),
            edge_match=lambda one, other: one["capacity"] == other["capacity"],
        )  # fmt: skip
        # card h is linked to the switch of host h: hosts of the same switch share it, others do not
        switch = [next(v for v in topology.dst[topology.src == h] if v in copy) for h in range(hosts)]
        assert (np.equal.outer(switch, switch) == np.equal.outer(plane.host_switch, plane.host_switch)).all()
    port = topology.src < hosts
    assert (topology.capacity[port] == plane.host_capacity).all()
    apart, of_plane = distances(topology)[:hosts, :hosts], distances(plane)[plane.host_switch][:, plane.host_switch]
    assert (apart[~np.eye(hosts, dtype=bool)] == of_plane[~np.eye(hosts, dtype=bool)] + 2).all()


def test_planes_number_tier_by_tier():
    of = {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    topology = build("planes", count=3, of=of, capacity=0.25)
    assert topology.notes["tiers"] == [["NIC", 0, 4], ["leaf", 4, 6], ["spine", 10, 3]]
    assert topology.dst[topology.src == 2].tolist() == [5, 7, 9]  # the second leaf of every plane
    assert topology.dst[topology.src == 7].tolist() == [2, 3, 11]
    assert (topology.capacity == 0.25).all()
    assert topology.host_capacity == 1


def test_planes_refusals():
    assert refusal("planes", count=2, of={"kind": "torus", "dims": [4], "hosts_per_switch": 0}).key == "of"
    assert refusal("planes", count=2, of={"kind": "torus", "dims": [4], "host_capacity": ".inf"}).key
    infinite = {"kind": "torus", "dims": [4], "host_capacity": float("inf")}
    assert refusal("planes", count=2, of=infinite).key == "of.host_capacity"
    assert refusal("planes", count=2, of={"kind": "polarfly", "q": 6}).key == "of.q"
    assert refusal("planes", count=10**9, of={"kind": "torus", "dims": [4]}).key == "count"


# Rails


def test_rail():
    topology = build("rail", servers=8, gpus=4, servers_per_pod=4, spines=2, multiplicity=3, nvlink=9)
    tier = parts(topology, "tiers")
    assert {name: part.stop - part.start for name, part in tier.items()} == {
        "GPU": 32, "NVSwitch": 8, "rail": 8, "spine": 2,
    }  # fmt: skip
    assert topology.host_count.tolist() == [1] * 32 + [0] * 18
    assert (topology.out_degree[tier["GPU"]] == 2).all()
    assert (topology.out_degree[tier["rail"]] == 4 + 6).all()
    hops = distances(topology)[:32, :32]
    server, rail = np.divmod(np.arange(32), 4)
    same = server[:, None] == server
    pod = (server // 4)[:, None] == server // 4
    assert (hops[same & ~np.eye(32, dtype=bool)] == 2).all()
    assert (hops[~same & pod & (rail[:, None] == rail)] == 2).all()
    assert (hops[~same & ((rail[:, None] != rail) | ~pod)] == 4).all()  # by the spine, or by a server of the pod
    inside = (topology.src < 32) & (topology.dst < 40) & (topology.dst >= 32)
    assert (topology.capacity[inside] == 9).all()
    assert (topology.capacity[(topology.src >= 40) | (topology.dst >= 40)] == 1).all()


def test_rail_only_and_without_nvlink():
    assert build("rail", servers=4, gpus=2).notes["tiers"] == [["GPU", 0, 8], ["NVSwitch", 8, 4], ["rail", 12, 2]]
    plain = build("rail", servers=4, gpus=2, spines=1, nvlink=None)
    assert plain.notes["tiers"] == [["GPU", 0, 8], ["rail", 8, 2], ["spine", 10, 1]]
    assert "not strongly connected" in str(refusal("rail", servers=4, gpus=2, nvlink=None))
    assert str(refusal("rail", servers=6, gpus=2, servers_per_pod=4)) == "must divide servers = 6: 1, 2, 3, 6"
    assert refusal("rail", servers=6, gpus=2, servers_per_pod=3).key == "spines"


# What they have in common


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "polarfly", "q": 5}, {"kind": "dring", "supernodes": 6, "switches": 14},
        {"kind": "polarstar", "q": 2, "d": 3}, {"kind": "xpander", "degree": 4, "lift": 5},
    ],
)  # fmt: skip
def test_failures_leave_the_rest_of_each_cluster(parameters):
    whole = make("topology", **parameters).build()
    broken = make("topology", **parameters, failures={"switches": 4, "seed": 2}).build()
    gone = broken.notes["failed"]["switches"]
    left = {name: count for name, _, count in broken.notes["clusters"]}
    for name, first, count in whole.notes["clusters"]:
        assert left.get(name, 0) == count - sum(first <= v < first + count for v in gone)
    assert sum(left.values()) == broken.switches
    assert isinstance(broken, Topology)
