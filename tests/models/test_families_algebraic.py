# SPDX-License-Identifier: Apache-2.0
"""Slim Fly, degree-diameter, Long Hop and small-world networks, and the fields and codes that they are made of."""

import csv
from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flitlab.models.registry import SpecError, make
from flitlab.models.topology import codes
from flitlab.models.topology.degree_diameter_graphs import (
    DATA,
    alegre_arcs,
    constructions,
    polarity_links,
    record_orders,
    shipped_links,
    shipped_orders,
)
from flitlab.models.topology.distances import aspl, diameter, distances
from flitlab.models.topology.families.slim_fly import slim_fly_links
from flitlab.models.topology.families.swdc import lattice_dims, random_links
from flitlab.models.topology.galois import field, prime_power
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import nearest_valid
from tests import long_rows_after

PRIME_POWERS = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27]


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def simple_graph(topology):
    graph = nx.Graph(topology.to_networkx())
    assert 2 * graph.number_of_edges() == topology.channels  # no parallel links
    return graph


def edge_set(links):
    return {tuple(sorted(pair)) for pair in np.asarray(links).tolist()}


# fields


def test_prime_powers():
    primes = [p for p in range(2, 300) if all(p % i for i in range(2, p))]
    expected = {p**m: (p, m) for p in primes for m in range(1, 9) if p**m < 300}
    assert {q: prime_power(q) for q in range(1, 300) if prime_power(q)} == expected


@pytest.mark.parametrize("q", [*PRIME_POWERS, 49, 64, 81, 121, 125])
def test_field_axioms(q):
    f = field(q)
    numbers = np.arange(q)
    assert sorted(f.power) == list(range(1, q))  # the powers of a primitive element
    assert (f.product[f.power[1 % (q - 1)], f.power] == np.roll(f.power, -1)).all()
    assert (f.sum[0] == numbers).all()
    assert (f.product[1] == numbers).all()
    assert (f.sum[numbers, f.negative] == 0).all()
    a, b, c = np.random.default_rng(q).integers(q, size=(3, 2000))
    for table in (f.sum, f.product):
        assert (table == table.T).all()
        assert (table[table[a, b], c] == table[a, table[b, c]]).all()
    assert (f.product[a, f.sum[b, c]] == f.sum[f.product[a, b], f.product[a, c]]).all()


def test_prime_fields_are_the_residues():
    numbers = np.arange(13)
    assert (field(13).product == np.outer(numbers, numbers) % 13).all()
    assert (field(13).sum == np.add.outer(numbers, numbers) % 13).all()


@given(st.integers(1, 400))
def test_nearest_values_enclose(value):
    squares = [i * i for i in range(1, 30)]
    below = [max(s for s in squares if s < value)] if value > 1 else []
    assert nearest_valid(value, squares.__contains__) == [*below, min(s for s in squares if s > value)]


# Slim Fly


@pytest.mark.parametrize("q", PRIME_POWERS[1:])
def test_slim_fly_is_regular_and_has_diameter_two(q):
    delta = {1: 1, 3: -1, 0: 0}[q % 4]
    topology = build("slim_fly", q=q)
    degree = (3 * q - delta) // 2
    assert topology.switches == 2 * q * q
    assert (topology.out_degree == degree).all()
    assert topology.hosts == 2 * q * q * ((degree + 1) // 2)
    assert diameter(topology) == 2
    n = topology.switches
    assert aspl(topology) == pytest.approx(2 - degree / (n - 1))
    assert len(edge_set(slim_fly_links(q))) * 2 == topology.channels


def test_slim_fly_of_5_is_the_hoffman_singleton_graph():
    assert nx.is_isomorphic(simple_graph(build("slim_fly", q=5)), nx.hoffman_singleton_graph())


def test_slim_fly_of_19_is_the_network_of_the_paper():
    topology = build("slim_fly", q=19)  # Besta and Hoefler, SC 2014: 722 routers, radix 29 + 15, 10830 endpoints
    assert (topology.switches, topology.hosts, topology.out_degree[0]) == (722, 10830, 29)
    assert build("slim_fly", q=19, hosts_per_switch=2).hosts == 1444


@pytest.mark.parametrize(("q", "degree"), [(4, 6), (7, 11), (9, 13), (13, 19), (17, 25), (19, 29)])
def test_slim_fly_equals_the_shipped_edge_list(q, degree):
    assert edge_set(slim_fly_links(q)) == edge_set(shipped_links(degree, 2))


# degree-diameter graphs


@pytest.mark.parametrize("q", [2, 3, 5, 7, 11])
def test_polarity_graph_by_its_definition(q):
    points = np.array([(1, a, b) for a in range(q) for b in range(q)] + [(0, 1, b) for b in range(q)] + [(0, 0, 1)])
    orthogonal = points @ points.T % q == 0
    links, absolute = polarity_links(q)
    assert edge_set(links) == edge_set(np.argwhere(np.triu(orthogonal, 1)))
    assert absolute.tolist() == np.flatnonzero(orthogonal.diagonal()).tolist()


@pytest.mark.parametrize(("q", "degree"), [(4, 5), (7, 8), (8, 9), (9, 10), (16, 17)])
def test_polarity_graph_equals_the_shipped_edge_list(q, degree):
    links, absolute = polarity_links(q)
    assert len(absolute) == q + 1
    assert edge_set(links) == edge_set(shipped_links(degree, 2))


def at_hand():
    return [(d, k, graph) for d in range(1, 29) for k in range(1, 7) for graph in constructions(d, k)]


@pytest.mark.parametrize(("degree", "hops", "graph"), at_hand(), ids=lambda value: getattr(value, "name", value))
def test_every_construction_has_its_order_degree_and_diameter(degree, hops, graph):
    links = graph.links()
    assert len(edge_set(links)) == len(links)
    topology = Topology.from_links("x", graph.order, links)
    assert topology.channels == 2 * len(links)
    assert topology.out_degree.max() == degree
    assert diameter(topology) == hops
    assert graph.order <= record_orders().get((degree, hops), 10**9)


def test_records_that_are_at_hand():
    reached = set()
    for (degree, hops), order in record_orders().items():
        if hops <= 6 and constructions(degree, hops):
            topology = build("degree_diameter", degree=degree, diameter=hops, directed=False)
            notes = topology.notes
            assert notes["best_known_order"] == order
            assert notes["record"] == (topology.switches == order)
            assert notes["order"] == topology.switches <= notes["moore_bound"]
            if notes["record"]:
                reached.add((degree, hops))
    diameter_two = {(d, 2) for d in (3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14)}
    diameter_three = {(d, 3) for d in (3, 5, 6, 8, 9, 10, 11)}
    assert reached >= diameter_two | diameter_three | {(3, 4), (5, 4), (8, 4), (3, 5), (4, 5)}


def test_all_edge_lists_are_used():
    for (degree, hops), order in shipped_orders().items():
        assert build("degree_diameter", degree=degree, diameter=hops, directed=False).switches >= order


def test_voltage_graphs_are_read_as_documented():
    rows = [line for line in (DATA / "voltage_graphs.csv").read_text().splitlines() if not line.startswith("#")]
    for row in csv.DictReader(rows):
        order = int(row["fibres"]) * int(row["a"]) * int(row["b"])
        graphs = constructions(int(row["degree"]), int(row["diameter"]))
        assert any(graph.order == order and graph.name.startswith("voltage") for graph in graphs)


@pytest.mark.parametrize(
    ("degree", "hops", "graph"),
    [
        (3, 2, nx.petersen_graph()),
        (7, 2, nx.hoffman_singleton_graph()),
        (2, 4, nx.cycle_graph(9)),
        (5, 1, nx.complete_graph(6)),
    ],
)
def test_moore_graphs(degree, hops, graph):
    topology = build("degree_diameter", degree=degree, diameter=hops, directed=False)
    assert nx.is_isomorphic(simple_graph(topology), graph)
    assert topology.switches == topology.notes["moore_bound"]
    assert topology.notes["record"]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("hops", [1, 2, 3, 4, 5])
def test_directed_graphs(degree, hops):
    topology = build("degree_diameter", degree=degree, diameter=hops)
    assert (topology.out_degree == degree).all()
    assert (topology.in_degree == degree).all()
    assert diameter(topology) == hops
    assert topology.notes["record"]
    if degree > 2 or (degree == 2 and hops < 4):
        assert topology.edge_hash == build("kautz", degree=degree, diameter=hops).edge_hash
    else:
        assert topology.switches == (hops + 1 if degree == 1 else 25 * 2 ** (hops - 4))


def test_the_digraphs_of_degree_two_are_line_digraphs():
    base, line = (nx.DiGraph(alegre_arcs(k).tolist()) for k in (4, 5))
    assert nx.is_isomorphic(nx.line_graph(base), line)


# codes


def test_golay_code_has_the_known_weights():
    columns = codes.shortened(codes.quadratic_residue(23), 12)
    assert Counter(codes.weights(columns, 12).tolist()) == {0: 1, 8: 759, 12: 2576, 16: 759, 24: 1}


@pytest.mark.parametrize(
    ("basis", "length", "dimension", "distance"),
    [
        (codes.bch(5, 2), 32, 21, None),
        (codes.bch(5, 5), 32, 11, 12),
        (codes.bch(6, 11), 64, 16, 24),
        (codes.reed_muller(1, 5), 32, 6, 16),
        (codes.reed_muller(2, 5), 32, 16, 8),
        (codes.quadratic_residue(7), 8, 4, 4),
        (codes.quadratic_residue(17), 18, 9, 6),
        (codes.quadratic_residue(31), 32, 16, 8),
        (codes.quadratic_residue(47), 48, 24, None),
    ],
)
def test_classical_codes_have_the_published_parameters(basis, length, dimension, distance):
    assert (max(basis).bit_length(), len(basis)) == (length, dimension)
    if distance:
        assert codes.minimum_distance(codes.shortened(basis, dimension), dimension) == distance


@given(st.integers(1, 7), st.data())
@settings(max_examples=30, deadline=None)
def test_weights_and_the_transform_by_definition(k, data):
    size = 2**k
    columns = np.array(data.draw(st.lists(st.integers(1, size - 1), min_size=1, unique=True)))
    words = np.arange(size)
    expected = [sum((u & c).bit_count() % 2 for c in columns.tolist()) for u in words.tolist()]
    assert codes.weights(columns, k).tolist() == expected
    signs = 1.0 - 2 * (np.bitwise_count(words[:, None] & words) & 1)
    values = np.random.default_rng(k).random(size)
    assert codes.walsh_hadamard(values) == pytest.approx(signs @ values)


@given(st.integers(1, 8), st.data())
@settings(max_examples=12, deadline=None)
def test_codes_that_are_found(k, data):
    m = data.draw(st.integers(k, 2**k - 1))
    code = codes.find_code(m, k)
    assert len(set(code.columns.tolist())) == m
    assert code.columns.min() > 0
    assert code.columns.max() < 2**k
    assert code.distance == codes.minimum_distance(code.columns, k) > 0
    assert code.distance <= codes.griesmer_bound(m, k)


# distances of the tables of best codes (codetables.de)
BEST = {
    (8, 5): 2, (10, 5): 4, (12, 5): 4, (16, 5): 8, (9, 6): 2, (12, 6): 4, (16, 6): 6, (18, 6): 8, (32, 6): 16,
    (10, 7): 2, (14, 7): 4, (16, 7): 6, (19, 7): 8, (64, 7): 32, (11, 8): 2, (16, 8): 5, (20, 8): 8, (13, 9): 3,
    (18, 9): 6, (21, 9): 8, (14, 10): 3, (16, 10): 4, (20, 10): 6, (22, 10): 8, (24, 10): 8, (32, 11): 12,
    (24, 12): 8,
}  # fmt: skip


@pytest.mark.parametrize(("m", "k"), long_rows_after(12, BEST))
def test_distances_of_the_code_tables_are_reached(m, k):
    assert codes.find_code(m, k).distance == BEST[m, k]


# Long Hop


@pytest.mark.parametrize(("dim", "degree"), [(3, 3), (3, 4), (3, 5), (3, 7), (4, 5), (4, 8)])
def test_long_hop_bisection_is_that_of_the_best_cut(dim, degree):
    topology = build("long_hop", dim=dim, degree=degree)
    n = topology.switches
    halves = [set(half) for half in combinations(range(n), n // 2) if 0 in half]
    links = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    cut = min(sum(u in half and v not in half for u, v in links) for half in halves)
    assert cut == topology.notes["bisection_links"]


@pytest.mark.long
@pytest.mark.parametrize(("dim", "degree"), [(6, 9), (6, 18), (7, 19), (8, 16)])
def test_long_hop_eigenvalues_follow_from_the_weights(dim, degree):
    topology = build("long_hop", dim=dim, degree=degree)
    assert topology.channels == 2**dim * degree
    graph = simple_graph(topology)
    assert set(dict(graph.degree).values()) == {degree}
    spectrum = np.sort(nx.adjacency_spectrum(graph).real)
    assert spectrum[-2] == pytest.approx(degree - 2 * topology.notes["distance"])
    assert topology.notes["bisection_links"] == 2 ** (dim - 1) * topology.notes["distance"]
    neighbours = topology.dst[: topology.out_degree[0]]
    assert neighbours.tolist() == topology.notes["generators"]


def test_long_hop_at_the_ends_of_its_range():
    cube = simple_graph(build("long_hop", dim=5, degree=5))
    assert nx.is_isomorphic(cube, nx.hypercube_graph(5))
    assert simple_graph(build("long_hop", dim=4, degree=15)).number_of_edges() == 120
    folded = build("long_hop", dim=4, degree=5)  # [5, 4, 2] is the parity code: the folded hypercube
    assert diameter(folded) == 2
    assert nx.is_isomorphic(simple_graph(folded), nx.from_edgelist(
        [(v, v ^ g) for v in range(16) for g in (1, 2, 4, 8, 15)]))  # fmt: skip


# small-world data centres


@pytest.mark.parametrize(
    ("lattice", "degree", "dims", "graph"),
    [
        ("ring", 2, [7], nx.cycle_graph(7)),
        ("torus2d", 4, [4, 5], nx.grid_2d_graph(4, 5, periodic=True)),
        ("torus2d", 4, [3, 3], nx.grid_2d_graph(3, 3, periodic=True)),
    ],
)
def test_swdc_without_random_links_is_the_lattice(lattice, degree, dims, graph):
    topology = build("swdc", lattice=lattice, n=int(np.prod(dims)), degree=degree)
    assert nx.is_isomorphic(simple_graph(topology), graph)
    assert topology.notes["random_links"] == 0
    assert topology.notes["lattice_dims"] == dims


def test_hexagonal_lattice_is_hexagonal_in_every_layer():
    topology = build("swdc", lattice="hextorus3d", dims=[6, 4, 3], degree=5)
    assert (topology.out_degree == 5).all()
    layer = simple_graph(topology).subgraph(range(0, 72, 3))
    assert set(dict(layer.degree).values()) == {3}
    assert nx.is_bipartite(layer)
    assert nx.girth(layer) == 6


def test_odd_columns_break_the_hexagonal_rule():
    topology = build("swdc", lattice="hextorus3d", n=450)
    assert topology.notes["lattice_dims"] == [10, 15, 3]
    assert (topology.out_degree == 6).all()
    with pytest.raises(SpecError, match="from 6 for hextorus3d with an odd number of columns"):
        build("swdc", lattice="hextorus3d", n=450, degree=5)
    assert (build("swdc", lattice="hextorus3d", dims=[15, 10, 3], degree=5).out_degree == 5).all()


@given(
    st.sampled_from([("ring", 2), ("torus2d", 4), ("hextorus3d", 6)]),
    st.integers(3, 90), st.integers(0, 5), st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_swdc_never_exceeds_the_degree(kind, n, more, seed):
    lattice, least = kind
    if lattice_dims(lattice, n) is None:
        with pytest.raises(SpecError):
            build("swdc", lattice=lattice, n=n)
        return
    topology = build("swdc", lattice=lattice, n=n, degree=least + more, seed=seed)
    notes = topology.notes
    free = least + more - topology.out_degree
    assert free.min() >= 0
    assert free.sum() == notes["free_ports"] <= 2
    assert topology.channels == 2 * (notes["lattice_links"] + notes["random_links"])
    simple = len({*zip(topology.src.tolist(), topology.dst.tolist(), strict=True)})
    assert notes["parallel_links"] == (topology.channels - simple) // 2


@pytest.mark.parametrize("exponent", [1, 2])
def test_random_links_follow_the_power_law(exponent):
    n = 400
    ring = build("swdc", lattice="ring", n=n, degree=2)
    hops = distances(ring)
    ports = np.full(n, 4)
    seen = np.zeros(n // 2 + 1)
    for seed in range(10):
        links, free = random_links(ports, hops, exponent, np.random.default_rng(seed))
        assert free == 0
        assert (np.bincount(links.ravel(), minlength=n) == 4).all()
        seen += np.bincount(hops[links[:, 0], links[:, 1]], minlength=n // 2 + 1)
    chance = np.append(0, np.arange(1.0, n // 2 + 1) ** -exponent)
    chance[-1] /= 2  # one switch is opposite, two are at every other distance
    expected = seen.sum() * chance / chance.sum()
    for low, high in ((1, 2), (2, 4), (4, 8), (8, 32), (32, 201)):
        assert seen[low:high].sum() == pytest.approx(expected[low:high].sum(), rel=0.1)


def test_swdc_sizes_of_the_thesis():
    for lattice, n, dims in (("ring", 484, [484]), ("torus2d", 484, [22, 22]), ("hextorus3d", 450, [10, 15, 3])):
        topology = build("swdc", lattice=lattice, n=n, hosts_per_switch=2)
        assert topology.notes["lattice_dims"] == dims
        assert (topology.switches, topology.hosts, topology.channels) == (n, 2 * n, 6 * n)
        assert topology.edge_hash != build("swdc", lattice=lattice, n=n, seed=2).edge_hash


# wrong parameters


@pytest.mark.parametrize(
    ("parameters", "key", "words"),
    [
        ({"kind": "slim_fly", "q": 6}, "q", "not a prime power; nearest 5, 7"),
        ({"kind": "slim_fly", "q": 2}, "q", "nearest 3"),
        ({"kind": "degree_diameter", "degree": 7, "diameter": 4, "directed": False}, "diameter", "diameter 1, 2, 3;"),
        ({"kind": "degree_diameter", "degree": 1, "diameter": 2, "directed": False}, "diameter", "nearest 1"),
        ({"kind": "degree_diameter", "degree": 9000, "diameter": 3}, "degree", "too many; valid up to 4471"),
        ({"kind": "degree_diameter", "degree": 900, "diameter": 2, "directed": False}, "diameter", "nearest 1"),
        ({"kind": "degree_diameter", "degree": 10, "diameter": 9}, "diameter", "too many; nearest 6"),
        ({"kind": "degree_diameter", "degree": 2, "diameter": 60}, "diameter", "too many; nearest 22"),
        ({"kind": "long_hop", "dim": 6, "degree": 5}, "degree", "from dim = 6 to 2\\*\\*dim - 1 = 63"),
        ({"kind": "long_hop", "dim": 6, "degree": 64}, "degree", "from dim = 6"),
        ({"kind": "long_hop", "dim": 19, "degree": 100}, "degree", "up to 38"),
        ({"kind": "swdc", "lattice": "torus2d", "n": 38}, "n", "nearest 36, 39"),
        ({"kind": "swdc", "lattice": "ring", "n": 2}, "n", "nearest 3"),
        ({"kind": "swdc", "lattice": "hextorus3d", "n": 100}, "n", "nearest 99, 105"),
        ({"kind": "swdc", "lattice": "ring"}, "n", "missing"),
        ({"kind": "swdc", "lattice": "ring", "n": 10**6}, "n", "up to 4096"),
        ({"kind": "swdc", "lattice": "ring", "n": 9, "degree": 1}, "degree", "from 2 for ring"),
        ({"kind": "swdc", "lattice": "torus2d", "dims": [2, 9]}, "dims", "3.. x 3.."),
        ({"kind": "swdc", "lattice": "torus2d", "dims": [9]}, "dims", "2 extents"),
        ({"kind": "swdc", "lattice": "torus2d", "dims": [900, 900]}, "dims", "up to 4096"),
        ({"kind": "swdc", "lattice": "torus2d", "dims": [4, 4], "n": 12}, "dims", "n = 12"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(parameters, key, words):
    with pytest.raises(SpecError, match=words) as error:
        build(**parameters)
    assert error.value.key == key


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "slim_fly", "q": 191},
        {"kind": "degree_diameter", "degree": 3, "diameter": 65},
        {"kind": "long_hop", "dim": 21, "degree": 30},
        {"kind": "swdc", "lattice": "hex", "n": 30},
        {"kind": "swdc", "lattice": "ring", "n": 30, "degree": 65},
    ],
)
def test_values_out_of_range_are_refused(parameters):
    with pytest.raises(ValidationError):
        make("topology", **parameters)
