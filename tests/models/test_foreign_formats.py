# SPDX-License-Identifier: Apache-2.0
"""Files of other programs: what each means, checked by hand or by a program of its own; errors by line; conversion."""

import json
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import flitlab
from flitlab.models.application.goal import read_goal
from flitlab.models.readable import Text
from flitlab.models.registry import SpecError, SpecWarning, make
from flitlab.models.topology.file_delays import stated_delays
from flitlab.models.topology.formats import FORMATS, FormatError, detected, read, sndlib, write
from flitlab.models.topology.formats.ns3 import gbps, nanoseconds
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main

REPETITA = """NODES 4
label x y
0_Paris 2.3 48.8
1_Berlin 13.4 52.5
2_Rome 12.4 41.9
3_Oslo 10.7 59.9

EDGES 10
label src dest weight bw delay
edge_0 0 1 3 1000 5
edge_1 1 0 3 1000 5
edge_2 0 2 1 2000 7
edge_3 2 0 1 2000 7
edge_4 1 2 2 4000 1
edge_5 2 1 2 4000 1
edge_6 1 3 1 1000 2
edge_7 3 1 1 1000 2
edge_8 2 3 9 1000 2
edge_9 3 2 9 1000 2
"""
DEMANDS = "DEMANDS 3\nlabel src dest bw\nd_0 0 1 600\nd_1 0 3 200\nd_2 3 2 100\n"
NATIVE = """?SNDlib native format; type: network; version: 1.0
# network of three
META ( granularity = static )
NODES (
  Ulm ( 9.9 48.4 )
  Bonn (7.1 50.7)
  Kiel
)
LINKS (
  L1 ( Ulm Bonn ) 10.00 0.00 0.50 0.00 ( 40.00 1.00 160.00 3.00 )
  L2 ( Bonn Kiel ) 20.00 0.00 0.25 0.00 ( )
)
DEMANDS (
  D1 ( Ulm Kiel ) 1 12.50 UNLIMITED
  D2 ( Kiel Bonn ) 1 2.00 3
)
"""
XML = """<?xml version="1.0"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>
<nodes coordinatesType="geographical"><node id="Ulm"/><node id="Bonn"/><node id="Kiel"/></nodes>
<links>
<link id="L1"><source>Ulm</source><target>Bonn</target>
 <preInstalledModule><capacity>10.0</capacity><cost>0</cost></preInstalledModule><routingCost>0.5</routingCost>
 <additionalModules><addModule><capacity>40</capacity><cost>1</cost></addModule>
 <addModule><capacity>160</capacity><cost>3</cost></addModule></additionalModules></link>
<link id="L2"><source>Bonn</source><target>Kiel</target>
 <preInstalledModule><capacity>20.0</capacity><cost>0</cost></preInstalledModule><routingCost>0.25</routingCost></link>
</links></networkStructure>
<demands><demand id="D1"><source>Ulm</source><target>Kiel</target><routingUnit>1</routingUnit>
<demandValue>12.5</demandValue></demand>
<demand id="D2"><source>Kiel</source><target>Bonn</target><demandValue>2</demandValue></demand></demands></network>
"""
NS3 = """7 3 6
4 5 6
0 4 100Gbps 0.001ms 0
1 4 100Gbps 0.001ms 0
5 2 100Gbps 1us 0.0
3 5 100Gbps 1000ns 0
4 6 400Gbps 2us 0
6 5 50Gbps 2us 0
"""
LEAF_SPINE = """# two tiers
Nodes 8
Tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Oversubscribed 0.5
Downlink_Latency_ns 1000

Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Bundle 2
Downlink_Latency_ns 500
"""
HUGE = LEAF_SPINE.replace(" 8\n", " 8000000\n").replace("Oversubscribed 0.5\n", "")
HUGE = HUGE.replace("Radix_Up 4", "Radix_Up 4000000").replace("Radix_Down 4\nBundle", "Radix_Down 4000000\nBundle")
THREE_TIERS = """Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Downlink_Latency_ns 500
Radix_Down 2
Radix_Up 2
Tier 1
Downlink_speed_Gbps 100
Downlink_Latency_ns 500
Radix_Down 2
Radix_Up 2
Tier 2
Downlink_speed_Gbps 100
Downlink_Latency_ns 500
Radix_Down 4
"""
ASTRA = (
    "topology: [ Switch, Ring ]\nnpus_count: [ 4, 3 ]  # NPUs\nbandwidth: [ 400.0, 50.0 ]\nlatency: [ 936.25, 500 ]\n"
)
MESH = '{"topology": ["FullyConnected"], "npus_count": [4], "bandwidth": [1.0], "latency": [1]}'
ARIES = """c0-0c0s0a0l00(0:0:0) green -> c0-0c0s1a0l15(0:0:1)
c0-0c0s1a0l15(0:0:1) green -> c0-0c0s0a0l00(0:0:0)
c0-0c0s0a0l01(0:0:0) green -> c0-0c0s1a0l16(0:0:1)
c0-0c0s1a0l16(0:0:1) green -> c0-0c0s0a0l01(0:0:0)
c0-0c0s1a0l02(0:0:1) blue -> c1-0c0s0a0l02(0:1:0)
c1-0c0s0a0l02(0:1:0) blue -> c0-0c0s1a0l02(0:0:1)
"""
GEMINI = """c0-0c0s0g0l00[(0,0,0)]\tZ+\t->\tc0-0c0s1g0l32[(0,0,1)]\tLinkType: backplane
c0-0c0s1g0l32[(0,0,1)]\tZ-\t->\tc0-0c0s0g0l00[(0,0,0)]\tLinkType: backplane
"""

pytestmark = pytest.mark.filterwarnings("ignore::flitlab.models.registry.SpecWarning")


@pytest.mark.parametrize(
    ("text", "format", "switches", "channels", "hosts"),
    [
        (REPETITA, "repetita", 4, 10, 0),
        (NATIVE, "sndlib", 3, 4, 0),
        (XML, "sndlib", 3, 4, 0),
        (NS3, "ns3", 3, 4, 4),
        (LEAF_SPINE, "htsim", 4, 16, 8),
        (THREE_TIERS, "htsim", 8 + 8 + 4, 64, 16),
        (ASTRA, "astra_sim", 15, 2 * (12 + 12), 12),
        (MESH, "astra_sim", 4, 12, 4),
        (ARIES, "interconnect", 3, 6, 0),
        (GEMINI, "interconnect", 2, 2, 0),
    ],
)  # fmt: skip
def test_the_content_tells_the_format(tmp_path, text, format, switches, channels, hosts):
    assert detected(Text(text)) == format
    for path in (Text(text), tmp_path / "net.txt", tmp_path / "net"):
        if not isinstance(path, Text):
            path.write_text(text)
        topology = read(path)
        assert (topology.kind, topology.switches, topology.channels, topology.hosts) == (
            format, switches, channels, hosts,
        )  # fmt: skip


def between(topology, u, v, column=None):
    """Capacities, or values of a column, of the channels from one switch to another, by label."""
    labels = topology.notes.get("labels", [str(i) for i in range(topology.switches)])
    chosen = (topology.src == labels.index(u)) & (topology.dst == labels.index(v))
    return (topology.capacity if column is None else topology.columns[column])[chosen].tolist()


def test_repetita_has_weights_capacities_and_labels():
    topology = read(Text(REPETITA))
    assert topology.notes["labels"] == ["0_Paris", "1_Berlin", "2_Rome", "3_Oslo"]
    assert between(topology, "0_Paris", "2_Rome") == [2000] and topology.host_capacity == np.inf
    assert between(topology, "1_Berlin", "2_Rome", "weight") == [2]
    assert between(topology, "2_Rome", "0_Paris", "delay_us") == [7]


def test_delays_in_microseconds_are_read_and_say_so():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ns, _ = stated_delays(read(Text(REPETITA)))
    assert 7000 in ns and not [one for one in said if "delay_us" in str(one.message)]


def ecmp(text, demands):
    """Largest load over capacity of equal splits over shortest paths by weight, of a program of its own."""
    edges = [line.split() for line in text.split("EDGES")[1].splitlines()[2:] if line]
    graph = nx.DiGraph()
    for _, u, v, weight, bw, _ in edges:
        graph.add_edge(int(u), int(v), weight=int(weight), bw=float(bw), load=0.0)
    for _, s, t, amount in (line.split() for line in demands.splitlines()[2:]):
        left = nx.single_source_dijkstra_path_length(graph.reverse(), int(t))
        flow = {int(s): float(amount)}
        for u in sorted(graph, key=left.__getitem__, reverse=True):
            hops = [v for v in graph[u] if left[v] + graph[u][v]["weight"] == left[u] and u != int(t)]
            for v in hops:
                graph[u][v]["load"] += flow.get(u, 0.0) / len(hops)
                flow[v] = flow.get(v, 0.0) + flow.get(u, 0.0) / len(hops)
    return max(edge["load"] / edge["bw"] for _, _, edge in graph.edges(data=True))


@pytest.mark.parametrize("weight", ["weight", "hops"])
def test_equal_splits_over_the_weights_of_a_file(weight):
    """0 -> 1 has two paths of weight 3; by hops it is one."""
    found = flitlab.ceiling(
        {"kind": "file", "text": REPETITA, "hosts_per_switch": 1},
        {"kind": "matrix", "text": DEMANDS, "level": "switch", "normalise": "none"},
        routing={"kind": "ecmp", "weight": weight},
        kind="split",
    )
    text = REPETITA
    if weight == "hops":
        text = "".join(
            " ".join([*line.split()[:3], "1", *line.split()[4:]]) + "\n" if line.startswith("edge_") else line + "\n"
            for line in REPETITA.splitlines()
        )
    assert found.lower == pytest.approx(1 / ecmp(text, DEMANDS), rel=1e-9)


@pytest.mark.parametrize("text", [NATIVE, XML])
def test_sndlib_has_links_of_pre_installed_capacity_and_demands_by_name(text):
    topology = make("topology", kind="file", text=text).build()
    assert not topology.directed and topology.host_capacity == np.inf
    assert between(topology, "Ulm", "Bonn") == [10] and between(topology, "Kiel", "Bonn") == [20]
    assert between(topology, "Bonn", "Kiel", "routing_cost") == [0.25]
    traffic = make("traffic", kind="matrix", text=text, level="switch", normalise="none").build(topology)
    assert traffic.rate.tolist() == [12.5, 0, 2] and traffic.received(1.0).tolist() == [0, 2, 12.5]


def test_a_demand_of_sndlib_may_end_with_empty_parentheses():
    """As in the documentation of the format."""
    text = NATIVE.replace("12.50 UNLIMITED", "12.50 UNLIMITED ()").replace("2.00 3", "2.00 3 ()")
    assert sndlib.parsed(Text(text)).demands == [(14, "Ulm", "Kiel", "12.50"), (15, "Kiel", "Bonn", "2.00")]


def test_sections_of_sndlib_may_be_empty():
    network = NATIVE[: NATIVE.index("DEMANDS")] + "DEMANDS ( )"
    assert read(Text(network)).channels == 4
    links = network[network.index("LINKS") : network.index("DEMANDS")]
    unlinked = read(Text(network.replace(links, "LINKS ( )\n")))
    assert (unlinked.switches, unlinked.channels) == (3, 0)


def test_sndlib_says_which_capacity_it_takes():
    text = NATIVE.replace("10.00 0.00 0.50", "0.00 0.00 0.50").replace("( )", "( 155.00 2.00 )")
    with pytest.warns(SpecWarning, match="1 of 2 links without pre-installed capacity; that of one module is taken"):
        topology = read(Text(text))
    assert sorted(set(topology.capacity.tolist())) == [20, 40]
    with pytest.warns(SpecWarning, match="some have no module: all capacities are 1"):
        topology = read(Text(text.replace("( 40.00 1.00 160.00 3.00 )", "( )")))
    assert set(topology.capacity.tolist()) == {1}


def test_capacities_of_ns3_are_relative_to_the_rate_of_hosts():
    topology = read(Text(NS3))
    assert topology.notes["link_gbps"] == 100 and topology.host_count.tolist() == [2, 2, 0]
    assert between(topology, "4", "6") == [4] and between(topology, "5", "6") == [0.5]
    assert between(topology, "5", "6", "delay_ns") == [2000]
    assert "nodes" not in topology.notes  # hosts 0 .. 3 stand in the order of their switches


@pytest.mark.parametrize("header", ["4 0 4\n\n", "4 0 4\n", "4 1 0 0 4 X000 1\n"])
def test_nodes_of_ns3_without_switches_are_switches_with_a_host_each(header):
    """The ring is that of ASTRA-sim's analytical description; the sum of a node's links bounds its host."""
    links = "0 1 400Gbps 1us 0\n1 2 400Gbps 1us 0\n2 3 400Gbps 1us 0\n3 0 200Gbps 2us 0\n"
    with pytest.warns(SpecWarning, match="no switches: each node is one, with a host; packets pass through nodes"):
        topology = read(Text(header + links))
    assert topology.host_count.tolist() == [1] * 4 and topology.host_capacity == 2
    assert topology.notes["link_gbps"] == 400
    assert between(topology, "0", "1") == [1] and between(topology, "0", "3") == [0.5]
    assert between(topology, "3", "0", "delay_ns") == [2000]
    ring = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 1000 ]\n"
    assert read(Text(ring)).edge_hash == topology.edge_hash


def test_no_packet_passes_through_a_host_of_ns3_with_several_links():
    """Two servers of two GPUs, each with an NVSwitch (4, 5) and a network card at the switch of its rail (6, 7)."""
    nvlinks = "".join(f"{gpu} {4 + gpu // 2} 800Gbps 25ns 0\n" for gpu in range(4))
    cards = "".join(f"{gpu} {6 + gpu % 2} 200Gbps 500ns 0\n" for gpu in range(4))
    with pytest.warns(SpecWarning, match=":7: a host has several links: each host is two switches"):
        topology = read(Text("8 2 2 2 8 H100\n4 5 6 7\n" + nvlinks + cards))
    assert topology.notes["link_gbps"] == 200 and topology.host_capacity == 5
    labels = topology.notes["labels"]
    assert [labels[v] for v in topology.host_switch] == ["0", "1", "2", "3"]
    assert [labels[v] for v in topology.ejection_switch] == [f"{host} receives" for host in range(4)]
    assert between(topology, "0", "4") == between(topology, "4", "0 receives") == [4]
    assert between(topology, "3", "7", "delay_ns") == between(topology, "7", "3 receives", "delay_ns") == [500]
    assert topology.channels == 16
    assert not np.isin(topology.host_switch, topology.dst).any()
    assert not np.isin(topology.ejection_switch, topology.src).any()


def test_a_host_of_anynet_with_two_links_is_an_error_that_says_what_is_possible():
    with pytest.raises(
        FormatError, match=r":2: node 0 is at router 0 by line 1: .* a host with several links is two switches"
    ):
        read(Text("router 0 node 0 router 1\nrouter 1 node 0 node 1\n"))


def test_simai_announces_nvswitches_and_switches():
    text = NS3.replace("7 3 6\n", "7 2 1 2 6 H100\n")
    assert read(Text(text)).capacity.tolist() == read(Text(NS3)).capacity.tolist()


def test_what_follows_the_announced_links_is_not_read():
    with pytest.warns(SpecWarning, match=":9: 6 links are announced: what follows them is not read"):
        assert read(Text(NS3 + "4 5 100Gbps 1us 0\n")).channels == 4


def test_htsim_bundles_are_parallel_links_of_the_speed_of_their_tier():
    topology = read(Text(LEAF_SPINE))
    assert between(topology, "0", "2") == [2, 2] and between(topology, "1", "3", "delay_ns") == [500, 500]
    assert topology.host_count.tolist() == [4, 4, 0, 0]


def test_delays_of_switches_in_htsim_are_read_by_nothing_and_a_warning_says_so():
    line = LEAF_SPINE.splitlines().index("Tier 1") + 2
    with pytest.warns(SpecWarning, match=f":{line}: switch_latency_ns is not read: set switching.switch_ns"):
        read(Text(LEAF_SPINE.replace("Tier 1\n", "Tier 1\nSwitch_Latency_ns 300\n")))


def test_three_tiers_of_htsim_are_a_fat_tree():
    graph = nx.Graph(
        zip(*(ends.tolist() for ends in (read(Text(THREE_TIERS)).src, read(Text(THREE_TIERS)).dst)), strict=True)
    )
    tree = make("topology", kind="fat_tree", k=4).build()
    assert nx.faster_could_be_isomorphic(graph, nx.Graph(zip(tree.src.tolist(), tree.dst.tolist(), strict=True)))
    assert nx.is_isomorphic(graph, nx.Graph(zip(tree.src.tolist(), tree.dst.tolist(), strict=True)))


def test_astra_sim_is_a_product_of_its_dimensions():
    """Four NPUs at each of three switches; four rings of three across them, at an eighth of the speed."""
    topology = read(Text(ASTRA))
    assert topology.notes["link_gbps"] == 3200 and topology.host_capacity == 1 + 2 / 8
    assert [between(topology, str(npu), str(12 + npu // 4)) for npu in range(12)] == [[1]] * 12
    assert [between(topology, str(npu), str((npu + 4) % 12)) for npu in range(12)] == [[0.125]] * 12
    assert read(Text(ASTRA.replace("Ring", "FullyConnected"))).channels == topology.channels  # a ring of three
    two = "topology: [Ring]\nnpus_count: [2]\nbandwidth: [1]\nlatency: [1]\n"
    assert read(Text(two)).channels == 2


def test_cray_channels_between_two_routers_are_parallel_links():
    topology = read(Text(ARIES))
    assert between(topology, "c0-0c0s0a0", "c0-0c0s1a0") == [1, 1] and not topology.directed


def test_one_more_number_in_the_first_line_of_simai():
    first = read(Text(NS3.replace("7 3 6", "7 1 0 3 6 X000 1", 1)))
    assert (first.switches, first.hosts, first.channels) == (3, 4, 4)


FIRST_ASTRA = """{"topology-name": "Hierarchical", "topologies-per-dim": ["Ring", "AllToAll", "Switch"],
 "dimensions-count": 3, "units-count": [2, 3, 2], "links-count": [2, 2, 3], "link-latency": [500, 20, 30],
 "link-bandwidth": [250, 25, 12.5]}
"""


def test_links_of_astra_sim_1_are_counted_by_npu():
    """NPU a + 2 b + 6 c is (a, b, c): pairs with two links of 250, triangles of 25, three links of 12.5 to a switch."""
    topology = read(Text(FIRST_ASTRA))
    assert (topology.switches, topology.hosts, topology.notes["link_gbps"]) == (12 + 6, 12, 8 * 500)
    rate = {}
    for u, v, capacity in zip(topology.src.tolist(), topology.dst.tolist(), topology.capacity.tolist(), strict=True):
        rate.setdefault((u, v), []).append(capacity * 500)
    npu = [(a, b, c) for c in range(2) for b in range(3) for a in range(2)]
    for u in range(12):
        for v in range(12):
            differs = [x != y for x, y in zip(npu[u], npu[v], strict=True)]
            expected = {(True, False, False): [500], (False, True, False): [25]}.get(tuple(differs))
            assert rate.get((u, v)) == (pytest.approx(expected) if expected else None)
        (switch,) = [v for v in range(12, 18) if (u, v) in rate]
        assert rate[u, switch] == pytest.approx([37.5])
        assert sum(w != u and (w, switch) in rate for w in range(12)) == 1


CHIPLETS = """[
 {"ep1": {"type": "chiplet", "outer_id": 0, "inner_id": 2}, "ep2": {"type": "irouter", "outer_id": 0, "inner_id": 0}},
 {"ep1": {"type": "irouter", "outer_id": 0, "inner_id": 1}, "ep2": {"type": "chiplet", "outer_id": 2, "inner_id": 1}},
 {"ep1": {"type": "chiplet", "outer_id": 1, "inner_id": 0}, "ep2": {"type": "chiplet", "outer_id": 2, "inner_id": 0}}
]
"""


def test_routers_of_the_interposer_follow_the_chiplets():
    topology = read(Text(CHIPLETS))
    assert topology.host_count.tolist() == [1, 1, 1, 0]
    pairs = sorted(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    assert pairs == [(0, 3), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]


def test_ends_of_json_graphs_are_no_columns():
    text = '{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1, "km": 3}]}'
    assert list(read(Text(text)).columns) == ["km"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (REPETITA.replace("edge_3 2 0 1 2000 7", "edge_3 2 0 1 2000"), ":13: 5 fields where 6 are expected, on line 4"),
        (REPETITA.replace("EDGES 10", "EDGES 11"), ":18: 0 fields|fields where 6"),
        (REPETITA.replace("edge_9 3 2", "edge_9 3 4"), ":19: unknown node '4'"),
        (REPETITA.replace("2000 7", "-2 7"), "capacity -2 must be positive"),
        (NATIVE.replace("( Ulm Bonn )", "( Ulm )"), r":10: expected \( source target \)"),
        (NATIVE.replace("UNLIMITED\n", "UNLIMITED\n  D3 ( Ulm Bonn ) 1\n"), ":15: demand D3 has no value"),
        (NATIVE.rstrip()[:-1], r":13: \( is never closed"),
        (NATIVE.replace("( 40.00 1.00 160.00 3.00 )", ""), ":11: 'L2' after the 4 values of L1"),
        (NATIVE.replace("L1 ( Ulm", "L0 L1 ( Ulm"), r":10: 'L0' where an id \( source target \) is expected"),
        (REPETITA.replace("EDGES 10", "EDGES 9"), ":19: 'edge_9 3 2 9 1000 2' after the edges that are announced"),
        (NATIVE + ")", r":17: \) without \("),
        (NATIVE + "x ( ( ( ( (", "more than 3 parentheses are open"),
        (XML.replace("<target>Bonn</target>", "", 1), ":5: <link> without source and target"),
        (XML.replace("</links>", ""), "not XML"),
        (NS3.replace("1 4 100Gbps", "1 4 40Gbps"), "hosts have links of 40 and 100 Gbit/s: one rate is read"),
        (NS3.replace("4 6 400Gbps", "0 1 400Gbps"), ":7: nodes 0 and 1 are both hosts"),
        (NS3.replace("4 6 400Gbps", "4 7 400Gbps"), ":7: node 7 where nodes are 0 .. 6"),
        (NS3.replace("7 3 6", "7 2 6"), ":2: 3 switches below 7 are expected to be 2"),
        (NS3.replace("7 3 6", "7 3 8"), ":1: 8 links are announced, 6 follow"),
        (NS3.replace("400Gbps 2us", "400Gbps 2xs"), ":7: '2xs' is no time"),
        ("3 0 1\n0 1 1Gbps 1us 0\n", ":1: node 2 is no switch and has no link"),
        ("0 0 0\n0 1 1Gbps 1us 0\n", ":1: no nodes"),
        (NS3.replace("7 3 6", "7 1 24 0 0 1 1"), ":1: expected: nodes switches links, or nodes gpus_per_server"),
        (FIRST_ASTRA.replace("[2, 2, 3]", "[2, 2]"), ":2: 2 values of links-count for 3 dimensions"),
        (FIRST_ASTRA.replace("[2, 3, 2]", "[2, 3, 1]"), ":2: units-count 1 must be 2 or more"),
        (CHIPLETS.replace('"outer_id": 2', '"outer_id": -2', 1), r":1: \[1\].ep2 needs a type, chiplet or irouter"),
        (LEAF_SPINE.replace("Oversubscribed 0.5", "Oversubscribed 4"), ":10: Oversubscribed, but the radices give 0.5"),
        (LEAF_SPINE.replace("Radix_Down 4\nBun", "Radix_Down 5\nBun"), ":15: radix_down 5, but 4 links lead down"),
        (LEAF_SPINE.replace("Radix_Up", "Radix_Upwards"), ":9: unknown key 'Radix_Upwards' of a tier; choices: "),
        (LEAF_SPINE.replace("Nodes 8", "Nodes 9"), "Nodes 9 is no multiple of Radix_Down of tier 0, 4"),
        (LEAF_SPINE.replace("Tiers 2", "Tiers 3"), "2 tiers where Tiers is 3"),
        (LEAF_SPINE.replace("Nodes 8", "Nodes 8\nNodes 16"), ":3: Nodes is there twice"),
        (LEAF_SPINE.replace("Bundle 2", "Bundle 2\nBundle 1"), ":17: Bundle of tier 1 stands on line 16 too"),
        (LEAF_SPINE.replace("Nodes 8\n", ""), "Nodes is missing"),
        (LEAF_SPINE.replace("Downlink_Latency_ns 500\n", ""), "tier 1 needs a positive downlink_latency_ns"),
        (LEAF_SPINE.replace("Nodes 8", "Nodes many"), ":2: Nodes 'many' is not an integer"),
        (LEAF_SPINE.replace("Podsize 8", "Podsize 4"), "Podsize 4, but with two tiers nothing joins pods"),
        (ASTRA.replace("Ring", "Mesh"), ":1: 'Mesh': choices are Ring, FullyConnected, Switch"),
        (ASTRA.replace("[ 4, 3 ]", "[ 4 ]"), ":2: 1 values of npus_count for 2 dimensions"),
        (ASTRA.replace("50.0", ".nan"), ":3: bandwidth nan is not a number"),
        (ASTRA.replace("50.0", "5_0.0"), ":3: 5_0.0 is a number in YAML 1.1 only"),
        (ASTRA.replace("[ 4,", "[ 1:4,"), ":2: 1:4 is a number in YAML 1.1 only"),
        (ARIES + "c0-0c0s0a0l09 green\n", ":7: expected tile -> tile"),
        (ARIES + ARIES.splitlines()[0], ":7: tile c0-0c0s0.0l0. stands on line 1 too"),
        (ASTRA + "bandwidth: [ 1.0, 1.0 ]\n", ":5: bandwidth is there twice"),
        (NS3.replace("400Gbps 2us 0", "400Gbps 2us low", 1), "error_rate 'low' is not a number"),
        (NS3.replace("7 3 6", f"{10**15} 3 6"), "nodes; at most 20000000 are built"),
        (HUGE, ":1: 8000000 hosts, 4000000 switches and 16000000000000 channels; at most 20000000 of each"),
        (ASTRA.replace("Switch", "FullyConnected").replace("[ 4,", "[ 40000,"), "NPUs and .* channels; at most"),
        *((f"2 0 1\n0 1 {rate} 1us 0\n", f":2: '{rate}' is no rate") for rate in ("nanGbps", "infGbps", "-1Gbps")),
        ("3 1 2\n2\n0 2 1Gbps nanus 0\n1 2 1Gbps 1us 0\n", ":3: 'nanus' is no time"),
        (NS3.replace("400Gbps 2us", "1e400Gbps 2us"), ":7: 1e400Gbps is more than a number can hold"),
        (NS3.replace("400Gbps 2us", "400Gbps 1e400us"), ":7: 1e400us is more than a number can hold"),
        (REPETITA.replace("edge_3 2 0 1", "edge_3 2 0 x"), ":13: weight 'x' is not a finite number"),
        (REPETITA.replace("1 2000 7\nedge_4", "1 2000 nan\nedge_4"), ":13: delay_us 'nan' is not a finite number"),
        (NATIVE.replace("0.50", "cheap"), ":10: routing_cost 'cheap' is not a finite number"),
        (NATIVE.replace("L2 (", "L1 ("), ":11: link 'L1' stands on line 10 too"),
        (NATIVE.replace("D2 (", "D1 ("), ":15: demand 'D1' stands on line 14 too"),
        ("?SNDlib native format\nNODES ( a b ) LINKS ( l ( a b ) 1 0 0 0 ( ) l ( b a ) 1 0 0 0 ( ) )\n",
         ":2: link 'l' stands on line 2 too"),
    ],
)  # fmt: skip
def test_errors_name_the_line(text, said):
    with pytest.raises(FormatError, match=said):
        read(Text(text))


@pytest.mark.parametrize(
    ("text", "pairs", "said"),
    [
        (DEMANDS, {("0", "1"): 600, ("0", "3"): 200, ("3", "2"): 100}, None),
        ("Nodes 4\nConnections 2\n0->1 id 1 start 0 size 500\n0->2 id 2 start 7 size 300 trigger 4\n"
         "trigger id 4 oneshot\n", {("0", "1"): 500, ("0", "2"): 300}, "starts and triggers of 1 connections are not"),
        ("Nodes 4\nConnections 1\nFailures 1\n0->1 id 1 addon start 0 size 500\nfailure switch_type TOR switch_id 0 "
         "link_id 0\n", {("0", "1"): 500}, "failure lines are not read"),
        ('{"__tuple__:[0, 1]": 0.5, "__tuple__:[3, 2]": 0.25}', {("0", "1"): 0.5, ("3", "2"): 0.25}, None),
        ("% src dst pir por\n0 3 0.02 0.1\n1 2 0.05\n", {("0", "3"): 0.02, ("1", "2"): 0.05}, "of 1 lines are not"),
        ("% defaults\n0 3 0.02 -1 -1 -1 -1\n1 2 0.05 2\n", {("0", "3"): 0.02, ("1", "2"): 0.05}, "of 2 lines"),
    ],
)  # fmt: skip
def test_demands_of_other_programs(text, pairs, said):
    topology = make("topology", kind="mesh", dims=[4], hosts_per_switch=1).build()
    spec = make("traffic", kind="matrix", text=text, normalise="none")
    if said is None:
        traffic = spec.build(topology)
    else:
        with pytest.warns(SpecWarning, match=said):
            traffic = spec.build(topology)
    total = sum(pairs.values())
    assert traffic.rate.sum() == pytest.approx(total)
    for source in range(4):
        assert traffic.rate[source] == pytest.approx(sum(v for (s, _), v in pairs.items() if int(s) == source))


BEYOND = "9" * 5000
"""A number of more digits than Python converts."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DEMANDS.replace("d_1 0 3 200", "d_1 0 3"), ":4: 3 fields where label, source, target and demand are expected"),
        (DEMANDS.replace("DEMANDS 3", "DEMANDS 4"), ":5: 3 demands where 4 are announced"),
        ("Nodes 2\nConnections 1\n0->1 start 0\n", ":3: a connection without size has no demand"),
        ("Nodes 2\nConnections 1\n0->1 start 0 size 0\n", ":3: size 0 is a long-lived connection, which has no demand"),
        ('{"__tuple__:[0, 1]": 0.5, "a": 1}', ":1: 'a' where __tuple__"),
        ("0 1 2 3 4 5 6 7 8\n" * 4, "9 fields are no square matrix.* if each line is a matrix of 3 x 3"),
        ("Nodes 2\nConnections 1\n0=>1 size 4\n", ":3: '0=>1 size 4' where source->target is expected"),
        ("Nodes 2\nConnections 2\n0->1 start 0 size 4\n", ":2: 2 connections are announced, 1 follow"),
        ("Nodes 2\nConnections 1\n0->1 start 0 bytes 3 size 4\n", ":3: unknown 'bytes'; choices: id, start, size"),
        ("Nodes 2\nConnections 1\n0->1 start 0 size 500 size 3\n", ":3: size is there twice"),
        ("Nodes 2\nConnections 1\n0->1 start 0 size 500 prio\n", ":3: prio has no value"),
        ("Nodes 2\nConnections 1\n0->1\n", ":3: a connection without size has no demand"),
        (NATIVE.replace("D2 ( Kiel Bonn )", "D2"), ":15: 'D2' after the 3 values of D1"),
        (DEMANDS.replace("200", "x"), "'x' is no demand"),
        ("% src dst pir\n0 3 0.02\n1 2 5\n", ":3: pir 5 is no rate"),
        (DEMANDS.replace("0 3 200", "0 9 200"), "9"),
        ("% src dst pir\n0 3 0.02 0.1 x\n", ":2: t_on 'x' is not a finite number"),
        ("% src dst pir\n0 3 0.02 0.1 0 9.5 20\n", ":2: t_off 9.5 is no number of cycles"),
        ("% src dst pir\n0 3 -0.02\n", ":2: pir -0.02 is no rate"),
        ("Nodes 3\nConnections 1\n0->3 start 0 size 4\n", ":3: host 3 where Nodes is 3"),
        (f"Nodes {BEYOND}\nConnections 1\n0->1 size 4\n", ":1: 'Nodes 999.*' where Nodes and their number"),
        (f"Nodes 4\nConnections 1\n0->{BEYOND} size 4\n", ":3: '0->999.*' where source->target is expected"),
        (f"1\n0 1 3 100 {BEYOND} 0\n", ":2: '0 1 3 100 999.*' where source, target, priority"),
        ("Nodes many\nConnections 1\n0->1 start 0 size 4\n", ":1: 'Nodes many' where Nodes and their number"),
    ],
)
def test_errors_in_demands_name_the_line(text, said):
    topology = make("topology", kind="mesh", dims=[4], hosts_per_switch=1).build()
    with pytest.raises(SpecError, match=said):
        make("traffic", kind="matrix", text=text).build(topology)


def test_rates_and_times_have_units():
    assert [gbps(text) for text in ("100Gbps", "12.5GB/s", "1.6Tbps", ".8Gb/s")] == [100, 100, 1600, 0.8]
    assert [nanoseconds(text) for text in ("1us", "0.0005ms", "3ps")] == [1000, 500, 0.003]
    for text in ("100", "100G", "Gbps", "-1Gbps"):
        with pytest.raises(ValueError):
            gbps(text)


@pytest.mark.parametrize("format", ["repetita", "ns3"])
def test_what_is_written_is_read_back(tmp_path, format):
    topology = make("topology", kind="leaf_spine", leaves=3, spines=2, hosts_per_leaf=2).build()
    omitted = write(topology, tmp_path / "net", format)
    again = read(tmp_path / "net")
    assert again.kind == format and "capacities" not in omitted
    for name in ("src", "dst", "capacity"):
        assert getattr(again, name).tolist() == getattr(topology, name).tolist()
    assert again.host_count.tolist() == topology.host_count.tolist() or "hosts" in omitted


def test_convert_writes_and_says_what_is_lost(tmp_path, capsys):
    (tmp_path / "net.topo").write_text(LEAF_SPINE)
    assert main(["convert", str(tmp_path / "net.topo"), "--to", "ns3"]) == 0
    printed = capsys.readouterr()
    assert "htsim, 4 switches, 16 channels, 8 hosts" in printed.out and "net.ns3: written" in printed.out
    assert read(tmp_path / "net.ns3").capacity.tolist() == read(tmp_path / "net.topo").capacity.tolist()
    (tmp_path / "a.graph").write_text(REPETITA)
    assert main(["convert", str(tmp_path / "a.graph"), "--to", "ns3"]) == 2
    assert "bi-directional links only" in capsys.readouterr().err and not (tmp_path / "a.ns3").exists()
    assert main(["convert", str(tmp_path / "a.graph"), "--to", "ns3", "--pair-directions"]) == 0


def test_convert_of_demands(tmp_path, capsys):
    (tmp_path / "a.demands").write_text(DEMANDS)
    assert main(["convert", str(tmp_path / "a.demands"), "--to", "demands"]) == 0
    assert (tmp_path / "a.csv").read_text() == "src,dst,demand\n0,1,600\n0,3,200\n3,2,100\n"
    assert main(["convert", str(tmp_path / "a.demands"), "--to", "json"]) == 2
    assert "a table of demands, which --to demands converts" in capsys.readouterr().err
    (tmp_path / "table.txt").write_text("src;dst;demand\n0;3;0.00001\n1;2;4\n")
    assert main(["convert", str(tmp_path / "table.txt"), "--to", "demands"]) == 0
    assert (tmp_path / "table.csv").read_text() == "src,dst,demand\n0,3,1e-05\n1,2,4.0\n"
    assert main(["convert", str(tmp_path / "none"), "--to", "json"]) == 2
    assert main(["convert", str(tmp_path / "a.csv"), "--to", "demands"]) == 2  # its own input


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (",2,0,1\n2,5,0,1\n0,1,0,7\n1,0,0,1\n", ["2,2,5.0", "2,1,1.0", "0,2,1.0", "0,1,7.0", "1,1,1.0"]),
        ('of,"B, C",D\nD,1,0\n"B, C",2,3\n', ['D,"B, C",1.0', '"B, C","B, C",2.0', '"B, C",D,3.0']),
        ("of,A,B,C\nB,1,0,2\n", ["B,A,1.0", "B,C,2.0"]),
        ("A,B,1\nB,C,2\nA,B,3\n#C,A,4\nC,A,5\n", ["A,B,4.0", "B,C,2.0", "C,A,5.0"]),
    ],
)
def test_converted_demands_have_the_names_of_the_table(table, lines, tmp_path):
    (tmp_path / "table.txt").write_text(table)
    assert main(["convert", str(tmp_path / "table.txt"), "--to", "demands"]) == 0
    assert (tmp_path / "table.csv").read_text().splitlines() == ["src,dst,demand", *lines]


def test_a_numpy_array_of_demands_is_converted_and_what_may_be_names_or_demands_is_not(tmp_path, capsys):
    np.save(tmp_path / "a.npy", [[0, 1], [2, 0.5]])
    assert main(["convert", str(tmp_path / "a.npy"), "--to", "demands"]) == 0
    assert (tmp_path / "a.csv").read_text() == "src,dst,demand\n0,1,1.0\n1,0,2.0\n1,1,0.5\n"
    for text, said in (
        ("A 0 1\nB 1 0\n", "the first line may be names or demands"),
        ("A B C\n0 1 2\n1 0 2\n1 2 0\n", "the first column may be names or demands"),
        ("of A B\nA 0 1\nA 1 0\n", "rows and columns must have names that occur once"),
    ):
        (tmp_path / "b.txt").write_text(text)
        assert main(["convert", str(tmp_path / "b.txt"), "--to", "demands"]) == 2
        assert f"b.txt:1: {said}" in capsys.readouterr().err


def test_what_a_written_list_of_edges_changes_is_said(tmp_path):
    topology = Topology.from_links("net", 4, [(0, 1), (1, 3)], notes={"labels": ["Bern", "New York", "Kiel", "Ulm"]})
    assert "switches without channels" in write(topology, tmp_path / "net.txt")
    assert read(tmp_path / "net.txt").switches == 3
    assert "blanks in labels (_ is written)" in write(topology, tmp_path / "net.graph")
    assert read(tmp_path / "net.graph").notes["labels"] == ["Bern", "New_York", "Kiel", "Ulm"]
    empty = replace(topology, notes={"labels": ["", "New York", "Kiel", "Ulm"]})
    assert "blanks in labels (_ is written)" in write(empty, tmp_path / "net.graph")
    assert read(tmp_path / "net.graph").notes["labels"] == ["_", "New_York", "Kiel", "Ulm"]
    plain = Topology.from_links("net", 3, [(0, 1), (1, 2)])
    assert write(plain, tmp_path / "net.txt") == []


@pytest.mark.parametrize("amount", ["many", "-5", "nan", "1e400"])
def test_what_is_no_demand_is_not_converted(amount, tmp_path, capsys):
    (tmp_path / "one.cm").write_text(f"Nodes 2\nConnections 1\n0->1 start 0 size {amount}\n")
    assert main(["convert", str(tmp_path / "one.cm"), "--to", "demands"]) == 2
    assert "one.cm:3: " in capsys.readouterr().err and not (tmp_path / "one.csv").exists()


CONNECTIONS = """Nodes 4
Connections 4
Triggers 2
0->1 id 1 start 0 size 50000 recv_done_trigger 1
1->2 id 2 trigger 1 size 60000 send_done_trigger 2
3->2 id 3 start 5000000 size 1000 send_done_trigger 2
1->3 id 4 trigger 2 size 777
trigger id 1 oneshot
trigger id 2 barrier 2
"""


@pytest.mark.long
def test_triggers_of_htsim_become_dependencies(tmp_path, capsys):
    """Trigger 1 goes off on the host that it starts, trigger 2 on two hosts, one of which sends a byte."""
    (tmp_path / "a.cm").write_text(CONNECTIONS)
    assert main(["convert", str(tmp_path / "a.cm"), "--to", "goal"]) == 0
    assert "messages of one byte stand for 1 signals to other hosts" in capsys.readouterr().err
    program = read_goal(tmp_path / "a.goal")
    assert program.ranks == 4
    lines = (tmp_path / "a.goal").read_text().splitlines()
    assert [line.strip() for line in lines if "requires" in line] == [
        "s1 requires r0", "s3 requires s1", "s3 requires t3_1", "s2 requires c0", "t3_1 requires s2",
    ]  # fmt: skip
    assert "  c0: calc 5000 cpu 1" in lines  # 5,000,000 ps


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Nodes 4\n", "", ":3: host 1 where Nodes is 0"),
        ("id 1 start 0", "id 1", ":4: a connection has either a start or a trigger"),
        ("0->1", "0->4", ":4: host 4 where Nodes is 4"),
        ("0->1", "1->1", ":4: a connection sends a byte or more to another host"),
        ("size 777", "bytes 777", ":7: unknown 'bytes'; choices: id, start, size"),
        ("size 777", "size x", ":7: size 'x' is no number"),
        ("barrier 2", "barrier 3", ":9: 2 signals of trigger 2: one, or as many as a barrier counts"),
        ("recv_done_trigger 1", "", ":5: nothing signals trigger 1"),
        ("Connections 4", "Connections 5", ":2: 5 connections are announced, 4 follow"),
        ("trigger id 1 oneshot\n", "", ":4: trigger 1 is not declared; choices: 2"),
        ("trigger id 1 oneshot\n", "trigger id 2 oneshot\n", ":9: trigger 2 stands on line 8 too"),
        ("Triggers 2", "Triggers 3", ":3: 3 triggers are announced, 2 follow"),
        ("size 777", "size 777 size 3", ":7: size is there twice"),
        ("size 777", "size 777 prio", ":7: prio has no value"),
        ("size 777", "size 777 addon", ":7: addon: bytes that a trigger adds"),
        ("oneshot", "twoshot", ":8: 'trigger id 1 twoshot' where a connection or a trigger is expected"),
        ("oneshot", f"barrier {BEYOND}", ":8: 'trigger id 1 barrier 999"),
    ],
)
def test_errors_in_connections_name_the_line(tmp_path, capsys, old, new, said):
    (tmp_path / "a.cm").write_text(CONNECTIONS.replace(old, new))
    assert main(["convert", str(tmp_path / "a.cm"), "--to", "goal"]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "a.goal").exists()


def test_failures_of_htsim_are_none_of_a_program(tmp_path, capsys):
    failures = "Triggers 2\nFailures 1\nfailure switch_type TOR switch_id 0 link_id 0\n"
    for name, text in (("a", CONNECTIONS), ("b", CONNECTIONS.replace("Triggers 2\n", failures))):
        (tmp_path / f"{name}.cm").write_text(text)
        assert main(["convert", str(tmp_path / f"{name}.cm"), "--to", "goal"]) == 0
        assert ("failure lines are not read (1)" in capsys.readouterr().err) == (name == "b")
    assert (tmp_path / "a.goal").read_text() == (tmp_path / "b.goal").read_text()


FLOWS = """3
0 2 3 100 1000 2.25
1 2 3 101 20 2
2 0 3 100 7 2.000001
"""


def test_flows_of_ns3_are_demands_or_a_program_whose_clock_begins_with_the_first(tmp_path, capsys):
    (tmp_path / "flow.txt").write_text(FLOWS + "unread\n")
    assert main(["convert", str(tmp_path / "flow.txt"), "--to", "demands"]) == 0
    assert (tmp_path / "flow.csv").read_text() == "src,dst,demand\n0,2,1000\n1,2,20\n2,0,7\n"
    assert "sizes are read; starts are not" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "flow.txt"), "--to", "goal"]) == 0
    said = capsys.readouterr().err
    assert ":5: what follows the announced number of flows (3) is not read" in said
    assert "starts count from that of the first flow, 2 s" in said and "rank n is node n; where hosts have" in said
    lines = [line.strip() for line in (tmp_path / "flow.goal").read_text().splitlines()]
    assert read_goal(tmp_path / "flow.goal").ranks == 3
    assert [line for line in lines if "calc" in line] == ["c0: calc 250000000 cpu 1", "c1: calc 1000 cpu 1"]
    assert [line for line in lines if "requires" in line] == ["s0 requires c0", "s2 requires c1"]


def test_starts_of_a_host_do_not_add_up(tmp_path, monkeypatch, capsys):
    """Four flows of 1,250 bytes, 100 ns each at 100 Gbit/s, and other overheads: the last starts at 30 us."""
    monkeypatch.chdir(tmp_path)
    starts = (0, 30, 10, 10)
    (tmp_path / "flow.txt").write_text("4\n" + "".join(f"0 1 3 100 1250 {2 + us * 1e-6:.6f}\n" for us in starts))
    assert main(["convert", "flow.txt", "--to", "goal"]) == 0
    (tmp_path / "a.yaml").write_text(
        "experiment: application\ntopology: {kind: hypercube, dim: 1}\nrouting: minimal\nengine: reference\n"
        "switching: {mode: flow, link_gbps: 100}\nmessages: {flit_bytes: 10, overhead_ns: 500}\n"
        "application: {kind: goal, path: flow.goal}\nceilings: []\noutputs: {figures: []}\n"
    )
    capsys.readouterr()
    assert main(["run", "a.yaml", "--json", "--out", "r", "--jobs", "1"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["makespan_ns"] == pytest.approx(30_000 + 500 + 100 + 500, abs=60)  # delays of switches and links


@pytest.mark.parametrize("form", ["native", "xml"])
def test_a_demand_of_sndlib_takes_its_routing_unit_a_unit(form, tmp_path, capsys):
    text = NATIVE.replace("D1 ( Ulm Kiel ) 1 12.50", "D1 ( Ulm Kiel ) 2 12.50")
    if form == "xml":
        demand = '<demand id="D1"><source>Ulm</source><target>Kiel</target><routingUnit>2</routingUnit>'
        text = (
            '<network xmlns="http://sndlib.zib.de/network"><networkStructure><nodes><node id="Ulm"/><node id="Kiel"/>'
            '</nodes><links><link id="L"><source>Ulm</source><target>Kiel</target></link></links></networkStructure>'
            f"<demands>{demand}<demandValue>12.50</demandValue></demand></demands></network>"
        )
    (tmp_path / "net").write_text(text)
    assert main(["convert", str(tmp_path / "net"), "--to", "demands"]) == 0
    assert "Ulm,Kiel,25.00\n" in (tmp_path / "net.csv").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("3\n0", "4\n0", ":4: 3 flows where 4 are announced"),
        ("20 2\n", "20\n", ":3: '1 2 3 101 20' where source, target, priority, port, bytes and start (s)"),
        ("20 2\n", "20 -2\n", ":3: '1 2 3 101 20 -2' where source,"),
        ("20 2\n", "20 nan\n", ":3: '1 2 3 101 20 nan' where source,"),
        ("2 0 3", "2 2 3", ":4: a flow sends a byte or more to another node"),
        ("2 0 3", "2 9999999 3", ":4: node 9,999,999: at most 1,000,000 nodes are read"),
    ],
)
def test_errors_in_flows_of_ns3_name_the_line(tmp_path, capsys, old, new, said):
    (tmp_path / "flow.txt").write_text(FLOWS.replace(old, new))
    assert main(["convert", str(tmp_path / "flow.txt"), "--to", "goal"]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "flow.goal").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "router 0 node 0 router 1\nrouter 1 node 1\n",
            "this is a topology (anynet): simrun topology FILE, or topology:",
        ),
        ("<algo name='a'>", "this is a schedule of MSCCL: simrun schedule FILE"),
        ('{"1-Epoch_Duration": 1, "6-Demand_Met": {}}', "this is a schedule of TE-CCL: simrun schedule FILE"),
        ('{"TopologyParams": {}}', "this is an input of TE-CCL"),
        (FLOWS, "these are flows of ns-3: traffic: {kind: matrix, path: FILE}"),
        (
            "ENABLE_QCN 1\n\nTOPOLOGY_FILE mix/topology.txt\n",
            "this is a configuration of ns-3 (HPCC): its TOPOLOGY_FILE as",
        ),
    ],
)
def test_what_is_given_in_place_of_a_configuration_is_named(tmp_path, capsys, text, said):
    (tmp_path / "file").write_text(text)
    assert main(["check", str(tmp_path / "file")]) == 2
    assert f"file: is no configuration of flitlab; {said}" in capsys.readouterr().err


def test_a_graph_without_a_suffix_is_known_by_its_content(tmp_path, capsys):
    (tmp_path / "anynet_file").write_text("router 0 node 0 router 1\nrouter 1 node 1\n")
    assert main(["topology", str(tmp_path / "anynet_file")]) == 0
    assert "hosts       2" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["ns3", "topobench_capacities"])
def test_what_differs_by_direction_is_said_where_links_are_written(kind, tmp_path, capsys):
    """From a to b the link has capacity 2, back 1."""
    said = []
    for back in (2, 1):
        (tmp_path / "a.csv").write_text(f"# directed: true\nsource,target,capacity\na,b,2\nb,a,{back}\n")
        assert main(["convert", str(tmp_path / "a.csv"), "--pair-directions", "--to", kind]) == 0
        said.append("capacities that differ by direction" in capsys.readouterr().err)
    assert said == [False, True]


@pytest.mark.parametrize("kind", ["json", "gml", "graphml", "anynet", "topobench_servers"])
def test_a_graph_that_states_no_hosts_is_written_with_those_that_it_is_read_with(kind, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("# directed: false\nsource,target\n0,1\n1,2\n")
    out = tmp_path / "out"
    assert main(["convert", str(tmp_path / "a.csv"), "--to", kind, "--out", str(out)]) == 0
    assert "3 hosts (none are stated: one a switch)" in capsys.readouterr().out
    assert make("topology", kind="file", path=str(out), format=kind).build().host_count.tolist() == [1, 1, 1]


def test_hosts_that_a_file_does_not_state_keep_their_unlimited_rate_in_conversions(tmp_path, capsys):
    (tmp_path / "a.graph").write_text(REPETITA)
    assert main(["convert", str(tmp_path / "a.graph"), "--to", "json"]) == 0
    assert read(tmp_path / "a.json").host_capacity == np.inf
    assert main(["convert", str(tmp_path / "a.graph"), "--to", "graphml"]) == 0
    assert "graphml does not hold host_capacity" in capsys.readouterr().err


def test_every_format_is_listed_once():
    assert all(one.read or one.write for one in FORMATS.values())
    assert {"repetita", "sndlib", "ns3", "htsim", "astra_sim", "interconnect"} <= set(FORMATS)


NODE_LINK = """{"directed": false, "nodes": [{"name": "Bern", "id": 4}, {"name": "Basel", "id": 7}],
"edges": [
{"source": 4, "target": 7, "capacity": 2.5, "dist": 95}]}"""


def test_graphs_of_nodes_and_links_are_those_of_networkx(tmp_path):
    (tmp_path / "a.json").write_text(NODE_LINK)
    topology = make("topology", kind="file", path=str(tmp_path / "a.json")).build()
    assert topology.capacity.tolist() == [2.5, 2.5] and topology.columns["dist"].tolist() == [95, 95]
    assert topology.notes["labels"] == ["Bern", "Basel"]
    graph = nx.random_regular_graph(3, 8, seed=1)
    (tmp_path / "b.json").write_text(json.dumps(nx.node_link_data(graph)))
    read = make("topology", kind="file", path=str(tmp_path / "b.json")).build()
    assert nx.utils.graphs_equal(
        nx.Graph(graph.edges), nx.Graph(zip(read.src.tolist(), read.dst.tolist(), strict=True))
    )
    (tmp_path / "c.json").write_text(NODE_LINK.replace("7,", "8,"))
    with pytest.raises(SpecError, match=r"c.json:3: unknown node '8'"):
        make("topology", kind="file", path=str(tmp_path / "c.json")).build()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("DEMANDS 1\nlabel src dest bw\nd 0 1 5\n", "demands of REPETITA: traffic: {kind: matrix"),
        ("Nodes 2\nConnections 1\n0->1 id 1 start 0 size 9\n", "connections of htsim: traffic: {kind: matrix"),
        ("num_ranks 2\nrank 0 {\n}\n", "a program in GOAL: application"),
        ('<algo name="a" nchunksperloop="2"></algo>', "a schedule of MSCCL: simrun schedule"),
        ("topology = anynet;\n", "configuration of BookSim 2: its network_file"),
        ('{"logical-dims": ["16"]}', "logical dimensions of ASTRA-sim"),
        ('{"nnodes": 1, "intranode_sketch": {}}', "communication sketch of TACCL"),
        ('{"name": "n", "alpha": 30, "node_invbws_list": [32.25]}', "costs of TACCL's links without the links"),
        ('{"sccl_type": "algorithm"}', "a schedule of TACCL: simrun schedule"),
        ('{"1-Epoch_Duration": 1, "6-Demand_Met": {}}', "a schedule of TE-CCL: simrun schedule"),
        ("% src dst pir por\n0 1 0.1 0.1\n", "a traffic table of Noxim: traffic: {kind: matrix"),
        ('{"__tuple__:[0, 1]": 0.5}', "demands of RapidChiplet: traffic: {kind: matrix"),
        (
            '{"__tuple__:[\\"__tuple__:[0, 0]\\", \\"__tuple__:[1, 0]\\"]": 0.5}',
            "units of RapidChiplet: those of chiplets",
        ),
        ('{"type": "default", "table": {}}', "a routing table of RapidChiplet: routing: {kind: table"),
    ],
)
def test_a_file_that_belongs_elsewhere_says_where(tmp_path, text, reason):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(SpecError, match=f"a.txt:1: is no topology; th(is is|ese are) .*{reason}"):
        make("topology", kind="file", path=str(tmp_path / "a.txt")).build()


def test_a_topology_is_no_demand(tmp_path):
    (tmp_path / "a.graph").write_text("NODES 2\nlabel x y\na 0 0\nb 0 0\n\nEDGES 1\nlabel src dest weight bw delay\n"
                                      "e 0 1 1 5 1\n")  # fmt: skip
    with pytest.raises(SpecError, match=r"is no demand; this is a topology \(repetita\)"):
        make("traffic", kind="matrix", path=str(tmp_path / "a.graph")).build(
            Topology.from_links("pair", 2, [(0, 1)]).with_hosts(1)
        )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"ep1": {"type": "chiplet", "outer_id": 2147483647}, "ep2": {"type": "chiplet", "outer_id": 0}}]', "built"),
        ('[{"ep1": ' + "[" * 100_000, "nested too deeply"),
        ('{"links": [], "nodes": [{"id": ' + "9" * 5000 + "}]}", "too many digits"),
        ('{"links": [], "nodes": [{"id": 1}', "not JSON"),
    ],
)
def test_json_that_is_too_much_is_rejected_at_once(text, said):
    with pytest.raises(ValueError, match=said):
        make("topology", kind="file", text=text).build()


def test_what_a_network_does_not_say_is_not_made_up(tmp_path):
    """Files for ns-3 and REPETITA need rates, delays and weights: delays are 0, and an unknown rate is said."""
    ring = make("topology", kind="torus", dims=[4]).build()
    omitted = write(ring, tmp_path / "ring.txt", "ns3")
    assert any("rate of links is unknown (100 Gbit/s is written)" in one for one in omitted)
    assert " 100Gbps 0ns 0" in (tmp_path / "ring.txt").read_text()
    write(ring, tmp_path / "ring.graph")
    again = read(tmp_path / "ring.graph")
    assert not again.columns["delay_us"].any() and (again.columns["weight"] == 1).all()
    stated = read(Text(REPETITA))
    write(stated, tmp_path / "same.graph")
    assert (read(tmp_path / "same.graph").columns["delay_us"] == stated.columns["delay_us"]).all()


def test_a_weight_that_is_read_as_the_capacity_is_said():
    lines = "# directed: false\nsource,target,weight\na,b,10\nb,c,3\n"
    with pytest.warns(SpecWarning, match="weight is read as the capacity; a cost of routing needs another name"):
        assert sorted(set(read(Text(lines)).capacity.tolist())) == [3, 10]
    both = lines.replace("weight", "weight,capacity").replace("10", "10,1").replace(",3", ",3,1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(read(Text(both)).capacity.tolist()) == {1}


def test_queues_of_htsim_tiers_are_named_as_its_files_name_them():
    tier = "Tier {}\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 500\nRadix_Down 2\nRadix_Up 2\n"
    tier += "Queue_Up 100\nQueue_Down 100\n"
    text = "Nodes 4\nTiers 2\nPodsize 4\n" + tier.format(0) + tier.format(1).replace("Radix_Up 2\n", "")
    with pytest.warns(SpecWarning, match="queue_up is not read: set switching.queue_bytes"):
        read(Text(text))
