# SPDX-License-Identifier: Apache-2.0
"""Networks with more than 64 channels out of a switch: routings beside networkx, errors, and sets of ports."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from flitlab.models.registry import FaultyError, SpecError, make
from flitlab.models.routing.bit_parallel import has_dependency_cycle, longest_paths, shortest_ports
from flitlab.models.routing.dor import dimension_order_ports, line_grid
from flitlab.models.routing.next_hops import survey_of
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import RouteForm, Routes, Selection
from flitlab.models.routing.validation import validate_routes
from flitlab.models.routing.weights import weighted_ports
from flitlab.models.rules.bits import (
    contains,
    empty_set,
    is_empty,
    lowest,
    popcount,
    port_list,
    port_set,
    select,
    with_port,
    without_lowest,
)  # fmt: skip
from flitlab.models.rules.port_sets import (
    allow,
    allows,
    pack_ports,
    ports_at,
    ports_towards,
    set_ports,
    table_shape,
)  # fmt: skip
from flitlab.models.rules.route import is_stranded, next_port, usable_ports
from flitlab.models.rules.spray.ports import (
    AtSwitch,
    PortChoice,
    Routing,
    SprayRoutes,
    chosen_port,
    make_salts,
    make_switches,
    spray_port,
)
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.zero_load import channels_of, fastest, slowest


def fan(counts: list[int], links: list[tuple[int, int]] | None = None, hosts: int = 2) -> Topology:
    """A hub, switch 0, with parallel links to each of some switches, and further links between these."""
    every = [(0, 1 + i) for i, count in enumerate(counts) for _ in range(count)] + (links or [])
    size = len(counts) + 1
    return Topology.from_links("fan", size, every).with_hosts([hosts] * size)


def drawn_fan(seed: int) -> Topology:
    """A hub with 65 to 128 channels to 3 to 6 switches in a row of links."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 7))
    counts = rng.multinomial(int(rng.integers(65, 129)) - count, [1 / count] * count) + 1
    return fan(counts.tolist(), [(i, i + 1) for i in range(1, count)])


def next_hops(topology: Topology, ports: np.ndarray) -> np.ndarray:
    """bool [switches, channels]: whether each channel is a next hop to each switch."""
    tail = topology.src
    return allows(
        ports, np.arange(topology.switches)[:, None], tail, np.arange(topology.channels) - topology.out_start[tail]
    )


def graph_of(topology: Topology, weight: np.ndarray) -> nx.DiGraph:
    """The graph, with the least weight of parallel channels."""
    graph = nx.DiGraph()
    for u, v, w in zip(topology.src.tolist(), topology.dst.tolist(), weight.tolist(), strict=True):
        if not graph.has_edge(u, v) or graph[u][v]["weight"] > w:
            graph.add_edge(u, v, weight=w)
    return graph


@pytest.mark.parametrize("seed", range(6))
def test_next_hops_are_on_shortest_paths(seed):
    topology = drawn_fan(seed)
    weight = np.random.default_rng(seed).integers(1, 4, topology.channels)
    for lengths, tables in (
        (np.ones_like(weight), [shortest_ports(topology)[0], weighted_ports(topology, None, False)[0]]),
        (weight, [weighted_ports(topology, weight, False)[0]]),
    ):
        distance = dict(nx.all_pairs_dijkstra_path_length(graph_of(topology, lengths)))
        far = np.array([[distance[v][t] for v in range(topology.switches)] for t in range(topology.switches)])
        expected = lengths + far[:, topology.dst] == far[:, topology.src]
        for ports in tables:
            assert ports.shape == (topology.switches, topology.switches, 2)
            assert np.array_equal(next_hops(topology, ports), expected)
    first = next_hops(topology, weighted_ports(topology, weight, True)[0])
    assert (first <= expected).all()
    assert all(np.bincount(topology.src[row], minlength=topology.switches).max() == 1 for row in first)


@pytest.mark.parametrize("seed", range(4))
def test_cycles_of_dependencies_and_longest_paths_are_those_of_networkx(seed):
    topology = drawn_fan(seed)
    for ports in (shortest_ports(topology)[0], make("routing", kind="updown").build(topology).ports):
        hops, waits, n = next_hops(topology, ports), nx.DiGraph(), topology.switches
        for t in range(n):
            used = [c for c in range(topology.channels) if hops[t, c]]
            waits.add_edges_from((c, e) for c in used for e in used if topology.dst[c] == topology.src[e])
            graph = nx.DiGraph((int(topology.src[c]), int(topology.dst[c])) for c in used)
            longest = [max(map(len, nx.all_simple_paths(graph, v, t))) - 1 if v != t else 0 for v in range(n)]
            assert longest_paths(topology, ports)[t].tolist() == longest
        acyclic = nx.is_directed_acyclic_graph(waits)
        assert has_dependency_cycle(topology, ports, np.arange(n)) != acyclic


def test_a_ring_by_high_ports_is_a_cycle():
    ring, way = fan([70, 1], [(1, 2)]), {0: 1, 1: 2, 2: 0}
    ports = empty_table(ring)
    for t, v in np.ndindex(3, 3):
        if t != v:
            last = np.flatnonzero(ring.dst[ring.out_start[v] : ring.out_start[v + 1]] == way[v])[-1:]
            allow(ports, t, v, last)
    assert has_dependency_cycle(ring, ports, np.arange(3))
    assert not has_dependency_cycle(ring, ports, np.arange(2))


def test_dimension_order_corrects_the_first_dimension_first():
    """HyperX of 2 x 67 switches, each with 67 channels."""
    topology = make("topology", kind="hyperx", dims=[2, 67], hosts_per_switch=1).build()
    x, y = np.divmod(np.arange(topology.switches), 67)
    t, v, w = np.arange(topology.switches)[:, None], topology.src, topology.dst
    expected = np.where(x[v] != x[t], (x[w] == x[t]) & (y[w] == y[v]), (w == t) & (v != t))
    ports, longest = dimension_order_ports(topology, line_grid(topology))
    assert np.array_equal(next_hops(topology, ports), expected) and longest == 2


def test_a_set_keeps_at_most_the_ways_of_ecmp():
    topology = fan([100, 28])
    for ways in (1, 64, 65, 99, 128):
        routes = make("routing", kind="ecmp", ways=ways).build(topology)
        hops = next_hops(topology, routes.ports)
        assert hops[1][topology.src == 0].sum() == min(ways, 100) and hops[2][topology.src == 0].sum() == min(ways, 28)


def test_errors_name_ports_beyond_a_switch():
    topology = fan([70, 20])
    good = make("routing", kind="minimal").build(topology)
    validate_routes(topology, good)
    assert survey_of(topology, good).longest(False) == 2
    for v, port in ((0, 90), (1, 70), (2, 20), (2, 64), (0, 127)):
        ports = good.ports.copy()
        allow(ports, (v + 1) % 3, v, port)
        with pytest.raises(FaultyError, match=f"is port {port}, and it has"):
            validate_routes(topology, replace(good, ports=ports))
    ports = good.ports.copy()
    allow(ports, 0, 0, 80)
    with pytest.raises(FaultyError, match=r"ports\[0, 0\] must be 0"):
        validate_routes(topology, replace(good, ports=ports))
    with pytest.raises(FaultyError, match="shape"):
        validate_routes(topology, replace(good, ports=good.ports[..., 0].copy()))


@pytest.mark.parametrize("kind", ["deflection", "polarized"])
def test_routings_of_one_mask_reject_wide_switches(kind):
    with pytest.raises(SpecError, match="serves at most 64 channels out of a switch; the topology has 90"):
        make("routing", kind=kind).build(fan([70, 20]))


@pytest.mark.parametrize("kind", ["minimal", "ecmp", "updown", "valiant"])
def test_more_than_128_channels_are_rejected(kind):
    with pytest.raises(SpecError, match="at most 128 channels out of a switch"):
        make("routing", kind=kind).build(fan([100, 29]))


def test_forms_of_one_mask_reject_wide_switches():
    routes = Routes("mine", np.zeros((0, 0), np.uint64), Selection.RANDOM, 2, form=RouteForm.DIGITS, digits=(2, 0))
    with pytest.raises(FaultyError, match="a set holds 64 ports, and a switch has 90"):
        validate_routes(fan([70, 20]), routes)


def test_a_table_of_next_hops_is_read_as_it_was_written(tmp_path):
    """Ports beyond 64 by number, with weights that are multiples of 1/256."""
    topology, lines = fan([70, 20]), ["target,switch,next,weight,port"]
    share = {(1, 0): {0: 128, 69: 64, 3: 64}, (2, 0): {70: 3, 89: 253}}
    for target, switch in np.ndindex(3, 3):
        if target != switch:
            to = target if switch == 0 else 0
            chosen = share.get((target, switch), {5: 1})
            lines += [f"{target},{switch},{to},{weight},{port}" for port, weight in chosen.items()]
    (tmp_path / "next_hops.csv").write_text("\n".join(lines) + "\n")
    routes = make("routing", kind="table", path=tmp_path / "next_hops.csv").build(topology)
    hops = next_hops(topology, routes.ports)
    assert np.flatnonzero(hops[1][:90]).tolist() == [0, 3, 69] and np.flatnonzero(hops[2][:90]).tolist() == [70, 89]
    assert routes.port_threshold[1, 0, [0, 3, 69]].tolist() == [128, 192, 255]
    assert routes.port_threshold[2, 0, [70, 89]].tolist() == [3, 255]


@pytest.mark.long
def test_rules_of_a_wide_network_are_those_of_a_narrow_one():
    """70 channels from the hub to a switch that no route passes: every decision is the same."""
    narrow = fan([20, 9], [(1, 2)])
    wide = fan([20, 9, 70], [(1, 2)]).with_hosts([2, 2, 2, 0])
    rng = np.random.default_rng(1)
    for routing in ({"kind": "minimal"}, {"kind": "minimal", "select": "hash"}, {"kind": "ecmp", "ways": 5}):
        cases = []
        for topology in (narrow, wide):
            tables = make("routing", **routing).build(topology).tables(topology)
            salts = np.zeros(topology.switches + 1, np.int64)
            make_salts(1, salts)
            channels = np.arange(topology.channels)
            port = channels - topology.out_start[topology.src]
            fill = (port * 37 + topology.src * 11) % 64 * 1000
            cases.append((topology, tables, salts, fill))
        for _ in range(60):
            switch, target = rng.permutation(3)[:2]
            src, dst, sequence = (int(x) for x in rng.integers(0, 6, 3))
            key, entropy = int(rng.integers(0, 12)), int(rng.integers(0, 64))
            results = []
            for topology, r, salts, fill in cases:
                row = [next_port(r, 0, 7, switch, target, src, dst, 6, sequence, 0)]
                row += [port_list(usable_ports(r, 0, 0, switch, target)), is_stranded(r, switch, target)]
                row += [
                    int(spray_port(SprayRoutes(r, r, moved, salts), 0, 0, switch, target, key, entropy))
                    for moved in (False, True)
                ]
                for policy in AtSwitch:
                    queues = np.full(topology.channels, 64_000, np.int64)
                    w = make_switches(PortChoice(int(policy), 10, 5), 3, queues, topology.out_degree, 12)
                    w.low[:] = fill
                    routing = Routing(SprayRoutes(r, r, False, salts), topology.out_start, topology.host_switch, w)
                    port = chosen_port(routing, switch, target, 0, key, entropy, 5000, 100)
                    if policy == AtSwitch.ROUND_ROBIN:  # its order is of all ports
                        port = port in row[1]
                    row.append(int(port))
                results.append(row)
            assert results[0] == results[1]
        times = []
        for topology, r, _, _ in cases:
            links = topology.channels + 2 * topology.hosts
            for delay in (np.full(links, 3), np.arange(links) % 2):  # equal channels, and others
                inner = np.isin(topology.src, range(3)) & np.isin(topology.dst, range(3))
                values = delay.copy()
                values[: topology.channels][inner] = delay[: inner.sum()]
                n = channels_of(topology, values, np.full(links, 2 << 20))[0]
                pairs = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])
                times.append([fastest(r, n, *pairs, np.full(4, 900)).tolist(), slowest(r, n, *pairs, 900).tolist()])
        assert times[:2] == times[2:]


DEGREES = [0, 1, 8, 9, 24, 25, 63, 64, 65, 72, 73, 127, 128]


def drawn_table(degree: int) -> tuple[np.ndarray, list[list[list[int]]]]:
    """A table of sets of up to ``degree`` ports, one with all of them, and its sets as lists."""
    member = np.random.default_rng(degree).random((5, 5, degree)) < 0.3
    member[4, 4] = True
    ports = np.zeros(table_shape(5, degree), np.uint64)
    allow(ports, *np.nonzero(member))
    t, v, p = np.indices(member.shape)
    assert np.array_equal(allows(ports, t, v, p), member)
    return ports, [[np.flatnonzero(bits).tolist() for bits in row] for row in member]


@pytest.mark.parametrize("degree", DEGREES)
def test_sets_are_those_that_were_packed(degree):
    ports, lists = drawn_table(degree)
    sets = pack_ports(ports)
    assert sets.width == max(1, -(-degree // 8)) and len(sets.bytes) == 25 * sets.width + (7 if degree <= 64 else 15)
    assert [[port_list(ports_towards(sets, target, here)) for here in range(5)] for target in range(5)] == lists


@pytest.mark.parametrize("degree", [1, 63, 64, 65, 128])
def test_operations_are_those_of_sets(degree):
    ports, lists = drawn_table(degree)
    for t, v in np.ndindex(5, 5):
        members, word = lists[t][v], ports[t, v]
        here = word if ports.ndim == 2 else tuple(word)
        assert port_list(here) == port_list(ports_at(ports[t], v)) == members
        assert popcount(here) == len(members) and is_empty(here) == (not members)
        assert port_list(empty_set(here)) == []
        assert port_list(without_lowest(here)) == members[1:]
        assert [select(here, k) for k in range(len(members))] == members
        assert lowest(here) == (members[0] if members else 64 if degree <= 64 else 128)
        for port in {0, degree // 2, degree - 1}:
            assert contains(here, port) == (port in members)
            assert port_list(with_port(here, port)) == sorted({*members, port})
        assert port_list(port_set(members)) == members
        set_ports(ports[0], 0, here)
        assert port_list(ports_at(ports[0], 0)) == members


def test_forms_without_sets_have_none():
    assert len(pack_ports(np.zeros((0, 0), np.uint64)).bytes) == 7
