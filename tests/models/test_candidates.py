# SPDX-License-Identifier: Apache-2.0
"""Members of families in closed form, and the families, demands and prices that designs need."""

from itertools import pairwise, permutations
from random import Random

import networkx as nx
import numpy as np
import pytest

from flitlab.models.layout.design_prices import KEYS, design_prices, profiles
from flitlab.models.registry import SpecError, make, names, spec_class
from flitlab.models.topology.candidates import Equipment
from flitlab.models.topology.distances import distances
from flitlab.models.topology.families.improved import unbalanced_load
from flitlab.models.topology.graph import Topology

FAMILIES = (
    "clos", "dragonfly", "dring", "hypercube", "hyperx", "leaf_spine", "polarfly", "polarstar", "rrg", "slim_fly",
    "torus", "xpander",
)  # fmt: skip


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def candidates(equipment):
    """Family -> its candidates."""
    every = {kind: list(spec_class("topology", kind).candidates(equipment)) for kind in names("topology")}
    return {kind: members for kind, members in every.items() if members}


def test_what_is_built_has_the_size_that_the_family_says():
    rng, seen = Random(1), set()
    for equipment in (Equipment(256, 16, 1, 80), Equipment(100, 12, 4, 60), Equipment(250, 32, 1, 40)):
        for kind, members in candidates(equipment).items():
            seen.add(kind)
            for one in rng.sample(members, min(len(members), 4)):
                topology = make("topology", **one.parameters).build()
                hosts, degree = topology.host_count, topology.out_degree
                assert one.kind == kind
                assert (topology.hosts, topology.switches) == (equipment.hosts, one.switches)
                assert (hosts - (-degree // equipment.split)).max() <= equipment.ports
                assert one.links - 1 <= topology.channels // 2 <= one.links  # one port may be left over
                assert np.count_nonzero(hosts) == one.with_hosts
                assert (hosts.max(), hosts[hosts > 0].min()) == (one.cuts[0].most, one.cuts[0].least)
                assert hosts.max() - hosts[hosts > 0].min() <= 1
                assert degree.max() <= one.degree
                assert degree[hosts > 0].max() <= max(one.cuts[0].links, one.degree)
    assert seen == set(FAMILIES)


def test_numbers_of_candidates():
    """An independent program had 339, 1,106 and 3,247, with the largest trunk of each network only."""
    counts = [sum(map(len, candidates(Equipment(*one)).values())) for one in ((256, 16, 1, 82), (1024, 32, 1, 162))]
    assert counts == [782, 3388]


def test_clos():
    tree = build("clos", pods=4, leaves=2, aggregations=2, cores=4, hosts_per_leaf=2)
    assert nx.is_isomorphic(nx.Graph(tree.to_networkx()), nx.Graph(build("fat_tree", k=4).to_networkx()))
    assert tree.notes["oversubscription"] == tree.notes["pod_oversubscription"] == 1
    clos = build(
        "clos", pods=3, leaves=4, aggregations=2, cores=2, hosts_per_leaf=6, multiplicity=2, core_multiplicity=3
    )
    assert clos.notes["tiers"] == [["leaf", 0, 12], ["aggregation", 12, 6], ["core", 18, 2]]
    assert clos.out_degree.tolist() == [4] * 12 + [8 + 3] * 6 + [9] * 2
    assert (clos.notes["oversubscription"], clos.notes["pod_oversubscription"]) == (1.5, 24 / 6)
    hops = distances(clos)
    assert (hops[0, 1], hops[0, 4], hops[0, 13], hops.max()) == (2, 4, 1, 4)
    with pytest.raises(SpecError, match=r"multiple of aggregations = 2; nearest 2, 4"):
        build("clos", pods=2, leaves=2, aggregations=2, cores=3, hosts_per_leaf=2)


def test_trunked():
    base = build("torus", dims=[3, 4], hosts_per_switch=2)
    trunked = build("trunked", links=3, of={"kind": "torus", "dims": [3, 4], "hosts_per_switch": 2})
    assert trunked.host_count.tolist() == base.host_count.tolist()
    assert trunked.channels == 3 * base.channels
    assert np.array_equal(trunked.reverse[trunked.reverse], np.arange(trunked.channels))
    assert np.array_equal(trunked.src[trunked.reverse], trunked.dst)
    failing = build("trunked", links=3, of={"kind": "torus", "dims": [3, 4]}, failures={"links": 5})
    assert failing.channels == trunked.channels - 10
    assert build("trunked", links=2, of={"kind": "kautz", "degree": 2, "diameter": 2}).directed


@pytest.mark.long
def test_improved():
    of = {"kind": "rrg", "n": 24, "degree": 4, "seed": 2, "hosts_per_switch": 3}
    demand = {"kind": "shift", "by": 12}
    base, better, again = build(**of), *(build("improved", of=of, demand=demand, steps=1500) for _ in range(2))
    assert np.array_equal(better.src, again.src) and np.array_equal(better.dst, again.dst)
    assert better.out_degree.tolist() == base.out_degree.tolist()
    assert better.host_count.tolist() == base.host_count.tolist()
    assert better.notes["mean_hops"] < better.notes["mean_hops_before"]
    with pytest.raises(SpecError, match="at most one between two"):
        build("improved", of={"kind": "kautz", "degree": 2, "diameter": 2})
    with pytest.raises(SpecError, match="at most one between two"):
        build("improved", of={"kind": "hyperx", "dims": [4], "multiplicity": 2})
    with pytest.raises(SpecError, match="equal capacity"):
        build("improved", of={"kind": "torus", "dims": [4, 4], "capacity_of": {"links": [[0, 1]], "factor": 0.5}})


@pytest.mark.long
def test_the_sum_of_loads_is_that_of_the_equal_split():
    network = build("rrg", n=12, degree=3, seed=4)
    n, rng = network.switches, np.random.default_rng(1)
    demand = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(demand, 0)
    neighbours = network.dst.reshape(n, 3)
    degree = np.full(n, 3)
    hops = distances(network)
    assert unbalanced_load(neighbours, degree, demand, 1) == pytest.approx((demand * hops).sum())
    load = np.zeros((n, n))  # all shortest paths of a pair alike
    for s, t in np.argwhere(demand > 0):
        paths = list(nx.all_shortest_paths(nx.DiGraph(network.to_networkx()), s, t))
        for path in paths:
            for u, v in pairwise(path):
                load[u, v] += demand[s, t] / len(paths)
    assert unbalanced_load(neighbours, degree, demand, 2) == pytest.approx((load**2).sum())


def test_rrg_of_split_ports():
    graph = build("rrg", n=20, ports=8, hosts_total=50, split=2, seed=1)
    assert (graph.host_count * 2 + graph.out_degree == 16).all()
    with pytest.raises(SpecError, match="goes with ports"):
        build("rrg", n=20, degree=4, split=2)
    with pytest.raises(SpecError, match="at most"):
        build("rrg", n=6, ports=8, hosts_total=12, split=2)


def test_worst_matching_of_small_networks():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = 5
        links = np.concatenate([np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), rng.integers(0, n, (2, 2))])
        topology = Topology.from_links("x", n, links[links[:, 0] != links[:, 1]]).with_hosts(rng.integers(0, 5, n))
        if np.count_nonzero(topology.host_count) < 2:
            continue
        hosts, hops = topology.host_count, distances(topology)
        best = max(sum(min(hosts[s], hosts[p[s]]) * hops[s, p[s]] for s in range(n)) for p in permutations(range(n)))
        traffic = make("traffic", kind="worst_matching").build(topology)
        source, target, amount = traffic.switch_pairs()
        assert (amount * hops[source, target]).sum() == pytest.approx(best)
        assert set(np.bincount(source)) <= {0, 1}  # one partner each
    equal = build("rrg", n=16, degree=4, hosts_per_switch=3)
    lengths = [
        make("traffic", kind=kind).build(equal).notes["mean_distance"]
        for kind in ("worst_matching", "longest_matching")
    ]
    assert lengths[0] == pytest.approx(lengths[1])
    with pytest.raises(SpecError, match="two switches"):
        make("traffic", kind="worst_matching").build(build("torus", dims=[3, 3], hosts={"0": 4}))


def test_prices():
    assert {"800g", "400g", "slimfly2014", "perseus2011"} == set(profiles())
    prices = design_prices("800g", {"optic": 700})
    assert (prices.optic, prices.of_switch(64)) == (700, 64 * 1560)
    assert [key for key, _, source in prices.assumptions() if source == "given"] == ["optic"]
    assert [key for key, _, _ in prices.assumptions()] == list(KEYS)
    with pytest.raises(KeyError, match="optics"):
        design_prices("800g", {"optics": 1})


@pytest.mark.parametrize(
    ("hosts", "switches", "links", "published"),
    [(2048, 96, 2048, 4.39), (16384, 768, 16384, 4.39), (65536, 5120, 131072, 7.5)],
)
def test_prices_of_a_published_table(hosts, switches, links, published):
    """Thousands of dollars an endpoint, Table 3 of Zhao et al.: two tiers, eight planes of them, three tiers."""
    prices = design_prices("400g")
    cost = switches * prices.of_switch(64) + links * (2 * prices.optic + prices.fibre) + hosts * prices.copper
    assert cost / hosts / 1000 == pytest.approx(published, abs=0.01)
