# SPDX-License-Identifier: Apache-2.0
"""MDDP graphs: their bases, the two edits, and the values measured from UNI Table I's construction."""

import re

import networkx as nx
import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.topology.degree_diameter_graphs import DATA, bases, shipped_links, shipped_orders
from flitlab.models.topology.distances import aspl, diameter
from flitlab.models.topology.families.mddp import insert, remove


def mddp(**parameters):
    return make("topology", kind="mddp", **parameters).build()


@pytest.mark.parametrize("path", sorted(DATA.glob("*.txt")), ids=lambda path: path.stem)
def test_shipped_graphs_are_what_their_names_say(path):
    degree, hops, order = map(int, re.fullmatch(r"und_d(\d+)_k(\d+)_n(\d+)", path.stem).groups())
    assert shipped_orders()[degree, hops] == order
    pairs = shipped_links(degree, hops)
    graph = nx.Graph(pairs.tolist())
    assert sorted(graph) == list(range(order))
    assert graph.number_of_edges() == len(pairs)
    assert nx.number_of_selfloops(graph) == 0
    assert max(dict(graph.degree).values()) == degree
    topology = make("topology", kind="file", path=str(path), directed=False).build()
    assert diameter(topology) == hops
    assert len(path.read_text().split("\n# ")) == 3  # what it is, how it was made, where it is from


@pytest.mark.parametrize(
    ("n", "degree", "base", "low", "high"),
    [
        (64, 6, 42, 2.343, 2.371),
        (256, 6, 252, 2.853, 2.860),
        (256, 8, 72, 2.797, 2.810),
    ],
)
def test_aspl_of_directed_mddp(n, degree, base, low, high):
    for seed in (1, 2, 3):
        topology = mddp(n=n, degree=degree, seed=seed)
        assert low <= aspl(topology) <= high
        assert diameter(topology) == 4
        assert (topology.out_degree == degree).all()
        assert (topology.in_degree == degree).all()
        notes = topology.notes
        assert (notes["base_order"], notes["added"], notes["removed"]) == (base, n - base, 0)
        assert (notes["aspl"], notes["diameter"]) == (pytest.approx(aspl(topology)), diameter(topology))


def test_aspl_of_undirected_mddp():
    topology = mddp(n=256, degree=8, directed=False)
    assert topology.notes["base_order"] == 253
    assert not topology.directed
    assert aspl(topology) == pytest.approx(2.7445, abs=0.0015)
    assert (topology.out_degree == 8).all()


@pytest.mark.parametrize(("n", "degree", "base"), [(385, 20, 381), (43, 5, 24), (1000, 10, 650), (8, 2, 9), (9, 2, 9)])
def test_undirected_bases_are_the_graphs_of_degree_diameter(n, degree, base):
    topology = mddp(n=n, degree=degree, directed=False)
    notes = topology.notes
    assert (topology.switches, notes["base_order"]) == (n, base)
    hops = int(re.search(r"\d+\)", notes["base"])[0][:-1])
    assert diameter(topology) >= hops
    origin = make("topology", kind="degree_diameter", degree=degree, diameter=hops, directed=False).build()
    assert (origin.switches, origin.notes["construction"]) == (base, notes["base_construction"])


def test_best_of_and_greedy_improve():
    one, five = (mddp(n=64, degree=6, best_of=k) for k in (1, 5))
    greedy = mddp(n=64, degree=6, best_of=1, greedy=True)
    assert aspl(five) <= aspl(one)
    assert 2.315 < aspl(greedy) < 2.335


def test_the_base_itself_is_left_as_it_is():
    kautz = make("topology", kind="kautz", degree=3, diameter=2).build()
    assert mddp(n=12, degree=3).edge_hash == kautz.edge_hash
    petersen = mddp(n=10, degree=3, directed=False)
    assert nx.is_isomorphic(nx.Graph(petersen.to_networkx()), nx.petersen_graph())


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(("n", "degree"), [(5, 3), (9, 4), (16, 5), (33, 3), (60, 7), (70, 4), (200, 6)])
def test_edited_graphs_are_simple_and_nearly_regular(n, degree, directed):
    topology = mddp(n=n, degree=degree, directed=directed, best_of=2)
    assert topology.switches == n
    assert len({*zip(topology.src.tolist(), topology.dst.tolist(), strict=True)}) == topology.channels
    free = degree - topology.out_degree
    assert free.min() >= 0
    assert free.sum() == topology.notes["free_ports"]
    if directed:
        assert not free.any()
        assert (topology.in_degree == degree).all()
    else:
        assert free.sum() <= degree


@pytest.mark.parametrize("directed", [True, False])
def test_one_edit_changes_only_the_neighbourhood(directed):
    rng = np.random.default_rng(1)
    base = bases(4, directed, 15)[2].links()
    assert base.max() + 1 == (20 if directed else 15)
    old = set(map(tuple, base.tolist()))
    grown = set(map(tuple, insert(base, 4, directed, rng).tolist()))
    taken = 4 if directed else 2
    assert len(old - grown) == taken
    assert {v for pair in grown - old for v in pair} >= {int(base.max()) + 1}
    assert len(grown) == len(old) + taken
    shrunk = remove(base, 4, directed, rng)
    assert len(np.unique(shrunk)) == len(np.unique(base)) - 1
    gone = set(np.unique(base).tolist()) - set(np.unique(shrunk).tolist())
    assert all(gone & set(pair) for pair in old - set(map(tuple, shrunk.tolist())))
