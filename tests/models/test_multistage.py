# SPDX-License-Identifier: Apache-2.0
"""Uni-directional multistage networks, whose hosts inject at one switch and eject at another."""

from dataclasses import replace
from itertools import permutations

import networkx as nx
import numpy as np
import pytest

from flitlab.models.metrics.summary import summary
from flitlab.models.registry import SpecError, make
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.costs import route_costs
from flitlab.models.rules.ports import make_ports
from flitlab.models.subnets import topology_in_subnets
from flitlab.models.topology.distances import distances, host_distance_counts, nearest_hosts
from flitlab.models.topology.failures import subtopology
from flitlab.models.topology.formats import read, write
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import topology_errors

SIZES = [(2, 1), (2, 2), (2, 4), (3, 3), (4, 2)]


def butterfly(k: int, n: int) -> Topology:
    return make("topology", kind="butterfly", k=k, n=n).build()


def two_planes() -> Topology:
    """Three hosts at switches 0 and 1, two middle switches, and ejection in another order at 4 and 5."""
    arcs = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5)]
    return Topology.from_arcs("planes", 6, arcs).with_hosts([2, 1, 0, 0, 0, 0], ejection=[5, 4, 5])


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_butterfly_has_the_channels_of_booksim2(k, n):
    """``_InChannel`` and ``_OutChannel`` of src/networks/fly.cpp of BookSim 2, github.com/booksim/booksim2."""
    row, ends = k ** (n - 1), {}
    for stage in range(n):
        for address in range(row):
            for port in range(k):
                if stage < n - 1:
                    ends.setdefault(stage * k**n + address * k + port, {})["src"] = stage * row + address
                if stage > 0:
                    digit = k ** (n - stage - 1)
                    before = address // digit % k
                    origin = address - before * digit + port * digit
                    ends.setdefault((stage - 1) * k**n + origin * k + before, {})["dst"] = stage * row + address
    topology = butterfly(k, n)
    expected = sorted((end["src"], end["dst"]) for end in ends.values())
    assert list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)) == expected
    assert topology.host_switch.tolist() == [host // k for host in range(k**n)]
    assert topology.ejection_switch.tolist() == [(n - 1) * row + host // k for host in range(k**n)]
    assert topology.directed == (n > 1)
    assert topology.is_multistage == (n > 1)


def test_no_moore_bound_holds_for_distances_between_some_switches_only():
    """Each of the 2 hops from the first stage to the last; the bound for the mean of all pairs is 2.489."""
    columns = summary(butterfly(4, 3))
    assert columns["aspl"] == 2 and columns["moore_aspl"] is None


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_destination_tags_lead_to_every_host(k, n):
    """``dest_tag_fly`` of src/routefunc.cpp of BookSim 2: the output of stage i is digit n - 1 - i of the host."""
    topology = butterfly(k, n)
    routes = make("routing", kind="minimal").build(topology)
    assert routes.hops_max == n - 1
    for source in range(topology.hosts):
        for host in range(topology.hosts):
            v, target = int(topology.host_switch[source]), int(topology.ejection_switch[host])
            for stage in range(n - 1):
                assert int(routes.ports[target, v]) == 1 << (host // k ** (n - 1 - stage) % k)
                v = int(topology.dst[topology.out_start[v] + host // k ** (n - 1 - stage) % k])
            assert v == target


def test_one_virtual_channel_suffices_for_a_butterfly():
    topology = butterfly(2, 4)
    certified = certify(topology, make("routing", kind="minimal").build(topology), 1)
    assert certified.acyclic


@pytest.mark.parametrize("topology", [butterfly(3, 2), two_planes()], ids=["butterfly", "planes"])
def test_distances_and_demand_are_between_injection_and_ejection(topology):
    graph = nx.MultiDiGraph(list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)))
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    ends = list(zip(topology.host_switch.tolist(), topology.ejection_switch.tolist(), strict=True))
    pairs = [(i, j) for i in range(topology.hosts) for j in range(topology.hosts) if i != j]
    table, counts = distances(topology), np.zeros(topology.switches, int)
    demand = np.zeros((topology.switches, topology.switches))
    for i, j in pairs:
        s, t = ends[i][0], ends[j][1]
        assert table[s, t] == hops[s][t]
        counts[hops[s][t]] += 1
        demand[s, t] += 1 / (topology.hosts - 1)
    assert host_distance_counts(topology).tolist() == np.trim_zeros(counts, "b").tolist()
    assert nearest_hosts(topology) == np.flatnonzero(counts)[0]
    for kind in ("all_to_all", "uniform"):
        traffic = make("traffic", kind=kind).build(topology)
        np.testing.assert_allclose(traffic.switch_demand, demand)
        source, target, amount = traffic.switch_pairs()
        np.testing.assert_allclose(amount, demand[source, target])
        assert len(amount) == np.count_nonzero(demand)


@pytest.mark.parametrize("topology", [butterfly(3, 2), two_planes()], ids=["butterfly", "planes"])
def test_every_host_has_an_input_and_an_output_of_its_own(topology):
    ports = make_ports(topology)
    for base, degree, port, switch, count in (
        (ports.in_base, topology.in_degree, ports.inject, topology.host_switch, topology.host_count),
        (ports.out_base, topology.out_degree, ports.eject, topology.ejection_switch, topology.ejection_count),
    ):
        nth = port - base[switch] - degree[switch]
        for v in range(topology.switches):
            assert nth[switch == v].tolist() == list(range(count[v]))
        assert np.array_equal(np.diff(base), degree + count)


def test_files_keep_where_hosts_eject(tmp_path):
    topology = two_planes()
    assert write(topology, tmp_path / "net.json") == []
    assert read(tmp_path / "net.json").content_hash == topology.content_hash
    assert Topology.from_networkx(topology.to_networkx()).content_hash == topology.content_hash
    assert "ejection switches" in write(topology, tmp_path / "net.txt")


def test_an_edge_list_with_ejection_switches(tmp_path):
    (tmp_path / "net.txt").write_text("a -> m\nb -> m\nm -> x\nm -> y\n")
    keys = {"kind": "file", "path": str(tmp_path / "net.txt"), "hosts": {"a": 1, "b": 2}}
    topology = make("topology", **keys, ejection=["y", "x", "x"]).build()
    assert topology.host_switch.tolist() == [0, 2, 2]  # a, m, b, x, y
    assert topology.ejection_switch.tolist() == [4, 3, 3]
    for wrong, message in (
        ({"ejection": ["x", "y"]}, "2 switches for 3 hosts"),
        ({"ejection": ["x", "y", "b"]}, "no path from switch a to switch b"),
        ({"ejection": ["x", "y", "q"]}, "q"),
        ({}, "not strongly connected"),
    ):
        with pytest.raises(SpecError, match=message):
            make("topology", **keys, **wrong).build()


def test_invalid_ejection_is_rejected():
    with pytest.raises(SpecError, match="from 0 to 5"):
        two_planes().with_hosts([1, 0, 0, 0, 0, 0], ejection=[6])
    wrong = replace(two_planes(), ejection=np.array([5, 4, 9]))
    assert ["host 2 ejects at switch 9" in text for _, text in topology_errors(wrong)] == [True]


def test_parts_and_copies_keep_ejection():
    topology = two_planes()
    part = subtopology(topology, np.arange(6) != 3, (topology.src != 3) & (topology.dst != 3))
    assert part.ejection_switch.tolist() == [4, 3, 4]
    copies = topology_in_subnets(topology, 2)
    assert copies.ejection_switch.tolist() == [5, 4, 5, 11, 10, 11]
    assert copies.unreachable_pair() is not None  # none leads from one copy to the other
    assert topology.unreachable_pair() is None


@pytest.mark.parametrize(
    ("component", "parameters"),
    [
        ("routing", {"kind": "valiant"}), ("routing", {"kind": "updown"}), ("routing", {"kind": "deflection"}),
        ("routing", {"kind": "ugal"}), ("traffic", {"kind": "longest_matching"}),
        ("traffic", {"kind": "chunky", "percent": 100}), ("traffic", {"kind": "worst_matching"}),
    ],
)  # fmt: skip
def test_components_for_hosts_of_one_switch_are_rejected(component, parameters):
    with pytest.raises(SpecError, match="inject at one switch and eject at another"):
        make(component, **parameters).build(butterfly(2, 3))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "planes", "count": 2, "of": {"kind": "butterfly", "k": 2, "n": 2}}, "hosts have one switch"),
        ({"kind": "butterfly", "k": 2, "n": 2, "hosts_per_switch": 1}, "leave this out"),
        ({"kind": "butterfly", "k": 2, "n": 3, "failures": {"links": [[0, 4]]}}, "no path from switch"),
    ],
)
def test_topologies_that_cannot_be_are_rejected(parameters, message):
    with pytest.raises(SpecError, match=message):
        make("topology", **parameters).build()


def own_switches() -> Topology:
    """Hosts 0, 1 and 2 inject at switches 0, 1, 2 and eject at 3, 4, 5; host 0 has a near switch, 1 and 2 a far one."""
    arcs = [(0, 6), (6, 3), (1, 7), (2, 7), (7, 4), (7, 5), (6, 7), (7, 6)]
    return Topology.from_arcs("own", 8, arcs, delay=[1, 2, 40, 50, 60, 70, 9, 9]).with_hosts(
        [1, 1, 1, 0, 0, 0, 0, 0], ejection=[3, 4, 5]
    )


def through() -> Topology:
    """Host 0 injects where hosts 1 and 2 eject."""
    return Topology.from_arcs("through", 3, [(0, 1), (1, 2), (2, 0)], delay=[5, 7, 11]).with_hosts(
        [1, 2, 0], ejection=[1, 0, 0]
    )


@pytest.mark.parametrize("routing", [{"kind": "minimal"}, {"kind": "ecmp", "routed": "source"}])
@pytest.mark.parametrize("network", [butterfly(2, 2), two_planes(), own_switches(), through()])
def test_costs_of_routes_leave_out_those_from_a_host_to_itself(network, routing):
    """Right values are lengths by Dijkstra; the shortest paths of a pair all have the same delay."""
    graph = nx.MultiDiGraph()
    graph.add_weighted_edges_from(zip(network.src, network.dst, network.delay + 1, strict=True))
    length = dict(nx.all_pairs_dijkstra_path_length(graph))
    ends = list(zip(network.host_switch, network.ejection_switch, strict=True))
    costs = [length[a[0]][b[1]] for a, b in permutations(ends, 2)]
    found = route_costs(network, make("routing", **routing).build(network), network.delay + 1, network.access_delay)
    assert found.least == min(costs)
    assert found.most == max(costs)


def test_a_single_host_has_no_costs():
    network = Topology.from_arcs("one", 2, [(0, 1)], delay=[3]).with_hosts([1, 0], ejection=[1])
    routes = make("routing", kind="minimal").build(network)
    assert route_costs(network, routes, network.delay, network.access_delay) == (0, 0)


@pytest.mark.parametrize("network", [butterfly(2, 2), two_planes(), own_switches()])
@pytest.mark.parametrize("kind", ["json", "graphml", "gml", "edgelist", "dot"])
def test_files_hold_their_channels(network, kind, tmp_path):
    omitted = write(network, tmp_path / "a", kind)
    assert ("ejection switches" in omitted) == (kind != "json")
    if kind != "dot":
        back = read(tmp_path / "a", kind)
        assert set(zip(back.src, back.dst, back.delay, strict=True)) == set(
            zip(network.src, network.dst, network.delay, strict=True)
        )
