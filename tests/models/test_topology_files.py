# SPDX-License-Identifier: Apache-2.0
"""Topologies written to files and read back, and every way in which a file is refused."""

import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.readable import Text
from flitlab.models.registry import SpecError, make
from flitlab.models.topology.distances import distances
from flitlab.models.topology.formats import WRITTEN, CannotWriteError, FormatError, format_of, read, write
from flitlab.models.topology.formats.common import BY_DELAY, PAIRS
from flitlab.models.topology.formats.edgelist import read_edgelist
from flitlab.models.topology.formats.graphml import read_graphml, write_graphml
from flitlab.models.topology.formats.own_json import read_json, write_json
from flitlab.models.topology.graph import Topology


def load(path, **parameters):
    return make("topology", kind="file", path=str(path), **parameters).build()


@st.composite
def topologies(draw):
    """Strongly connected, with parallel channels, links and channels mixed, odd capacities and hosts."""
    n = draw(st.integers(2, 8))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    arcs = [(v, (v + 1) % n) for v in range(n)] + draw(st.lists(ends, max_size=6))
    links = draw(st.lists(ends, max_size=6))
    pairs = arcs + [end for link in links for end in (link, link[::-1])]
    reverse = [-1] * len(arcs) + [len(arcs) + (i ^ 1) for i in range(2 * len(links))]
    count = len(pairs)
    capacity = draw(st.lists(st.floats(1e-3, 1e3), min_size=count, max_size=count))
    delay = draw(st.lists(st.integers(0, 99), min_size=count, max_size=count))
    topology = Topology.from_channels("drawn", n, pairs, reverse, capacity=capacity, delay=delay)
    hosts = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    return topology.with_hosts(hosts, draw(st.sampled_from([1.0, 0.1, float("inf")])))


@given(topologies())
@settings(max_examples=60, deadline=None)
def test_json_loses_nothing_and_graphml_only_the_host_capacity(tmp_path_factory, topology):
    folder = tmp_path_factory.mktemp("files")
    write(topology, folder / "x.json")
    assert read(folder / "x.json").content_hash == topology.content_hash
    assert load(folder / "x.json").content_hash == topology.content_hash
    write(topology, folder / "x.graphml")
    assert read(folder / "x.graphml").content_hash == replace(topology, host_capacity=1.0).content_hash
    write(topology, folder / "x.txt")
    back = read(folder / "x.txt", directed=True)
    assert back.edge_hash == topology.edge_hash
    assert (back.capacity == topology.capacity).all()
    assert (back.delay == topology.delay).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "torus", "dims": [3, 4], "hosts_per_switch": 2, "host_capacity": float("inf")},
        {"kind": "mddp", "n": 30, "degree": 4},
        {"kind": "rrg", "n": 12, "ports": 6, "hosts_total": 23},
    ],
)
def test_written_topologies_come_back(parameters, tmp_path):
    topology = make("topology", **parameters).build()
    write_json(topology, tmp_path / "x.json")
    back = read_json(tmp_path / "x.json")
    assert back.content_hash == topology.content_hash
    assert (back.kind, back.notes) == (topology.kind, topology.notes)
    if topology.grid is not None:
        assert (back.grid.dims, back.grid.wrap) == (topology.grid.dims, topology.grid.wrap)
        assert (back.grid.coordinates == topology.grid.coordinates).all()
    read_by_spec = load(tmp_path / "x.json")
    assert read_by_spec.content_hash == topology.content_hash
    assert read_by_spec.kind == "file"
    assert read_by_spec.notes["file_kind"] == parameters["kind"]
    write(topology, tmp_path / "x.txt")
    again = load(tmp_path / "x.txt", directed=topology.directed, hosts=topology.host_count.tolist())
    assert replace(again, host_capacity=topology.host_capacity).content_hash == topology.content_hash


def test_hosts_and_capacities_of_the_spec_come_first(tmp_path):
    write_json(make("topology", kind="mesh", dims=[2, 2], hosts=[1, 2, 3, 4]).build(), tmp_path / "x.json")
    assert load(tmp_path / "x.json").host_count.tolist() == [1, 2, 3, 4]
    assert load(tmp_path / "x.json", hosts_per_switch=2).host_count.tolist() == [2, 2, 2, 2]
    assert load(tmp_path / "x.json", hosts=[0, 0, 0, 1]).host_count.tolist() == [0, 0, 0, 1]
    assert load(tmp_path / "x.json", host_capacity=2.5).host_capacity == 2.5
    assert (load(tmp_path / "x.json", capacity=3).capacity == 3).all()


def test_petersen_graph_from_an_edge_list(tmp_path):
    edges = "\n".join(f"{u} {v}" for u, v in nx.petersen_graph().edges)
    (tmp_path / "petersen").write_text(edges)
    topology = load(tmp_path / "petersen", directed=False, hosts_per_switch=3)
    arcs = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    assert arcs == set(nx.petersen_graph().to_directed().edges)
    assert topology.hosts == 30
    assert not topology.directed


def test_edge_list_fields_comments_and_loops(tmp_path):
    (tmp_path / "x").write_text("# ring\n\n0 1 0.5 7  # slow\n1 2\n2 0 2\n1 1\n")
    topology = load(tmp_path / "x")
    assert topology.capacity.tolist() == [0.5, 1, 2]
    assert topology.delay.tolist() == [7, 0, 0]
    assert topology.directed
    assert topology.notes["self_loops_dropped"] == 1


def test_labels_are_numbered_as_they_appear_unless_they_are_numbers(tmp_path):
    (tmp_path / "x").write_text("b a\na 7\n7 b\n")
    topology = load(tmp_path / "x")
    assert topology.notes["labels"] == ["b", "a", "7"]
    assert list(zip(topology.src, topology.dst, strict=True)) == [(0, 1), (1, 2), (2, 0)]
    (tmp_path / "x").write_text("2 0\n0 1\n1 2\n")
    topology = load(tmp_path / "x")
    assert "labels" not in topology.notes
    assert list(zip(topology.src, topology.dst, strict=True)) == [(0, 1), (1, 2), (2, 0)]


def test_graphml_of_others_and_ours_is_understood_both_ways(tmp_path):
    graph = nx.Graph()
    graph.add_node("x", hosts=2)
    graph.add_node("y", hosts=0)
    graph.add_edge("x", "y", capacity=0.25, delay=3)
    graph.add_edge("y", "z")
    nx.write_graphml_xml(graph, tmp_path / "a.graphml")
    topology = load(tmp_path / "a.graphml")
    assert topology.notes["labels"] == ["x", "y", "z"]
    assert topology.host_count.tolist() == [2, 0, 0]
    assert topology.capacity.tolist() == [0.25, 0.25, 1, 1]
    assert topology.delay.tolist() == [3, 3, 0, 0]
    assert not topology.directed
    torus = make("topology", kind="torus", dims=[3, 3]).build()
    write_graphml(torus, tmp_path / "b.graphml")
    theirs = nx.read_graphml(tmp_path / "b.graphml", node_type=int)
    assert sorted(theirs.edges()) == list(zip(torus.src.tolist(), torus.dst.tolist(), strict=True))


def test_nodes_of_yed_are_called_as_they_are_drawn():
    """A label may have lines, a layout and more labels after it; it may be empty; an attribute takes precedence."""
    drawn = [
        "<y:NodeLabel>New\n York<y:LabelModel><y:S d='4'/></y:LabelModel></y:NodeLabel><y:NodeLabel>b</y:NodeLabel>",
        "<y:Geometry height='3'/><y:NodeLabel>Leaf 1</y:NodeLabel>", "<y:NodeLabel hasText='false'/>",
        "<y:NodeLabel>drawn</y:NodeLabel></data><data key='label'>stated",
    ]  # fmt: skip
    nodes = "".join(f"<node id='n{i}'><data key='d6'>{text}</data></node>" for i, text in enumerate(drawn))
    edges = "".join(f"<edge source='n{i}' target='n{i + 1}'/>" for i in range(3))
    text = f"<graphml xmlns:y='urn:y'><graph edgedefault='undirected'>{nodes}{edges}</graph></graphml>"
    assert read(Text(text)).notes["labels"] == ["New York", "Leaf 1", "n2", "stated"]


def test_graphml_defaults_apply(tmp_path):
    (tmp_path / "x.graphml").write_text(
        '<graphml><key id="c" for="edge" attr.name="capacity"><default>4</default></key>\n'
        '<graph edgedefault="undirected"><node id="0"/><node id="1"/>\n'
        '<edge source="0" target="1"/></graph></graphml>'
    )
    assert load(tmp_path / "x.graphml").capacity.tolist() == [4, 4]


GRAPHML = """<graphml>
<key id="h" for="node" attr.name="hosts"/><key id="c" for="edge" attr.name="capacity"/>
<graph edgedefault="directed">
<node id="0"><data key="h">1</data></node>
<node id="1"/>
<edge source="0" target="1"/>
<edge source="1" target="0"><data key="c">2</data></edge>
</graph></graphml>
"""
JSON = """{"format": "flitlab-topology", "version": 1, "kind": "hand",
"switches": 2,
"hosts": [1, 1],
"channels": [
[0, 1, 1.0, 0, 1],
[1, 0, 1, 0, 0]
]}
"""
GRID = '"grid": {"dims": [3], "wrap": true, "coordinates": [[0]]}'


def test_the_templates_of_the_next_test_are_sound(tmp_path):
    (tmp_path / "x.graphml").write_text(GRAPHML)
    (tmp_path / "x.json").write_text(JSON)
    assert load(tmp_path / "x.graphml").capacity.tolist() == [1, 2]
    assert load(tmp_path / "x.json").reverse.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x", "0 1\n0\n", ":2: 1 fields"),
        ("x", "0 1\n1 0 1 0 5\n", ":2: 5 fields"),
        ("x", "0 1\n1 0 fast\n", ":2: capacity 'fast' is not a number"),
        ("x", "0 1\n\n1 0 -1\n", ":3: capacity -1 must be positive"),
        ("x", "0 1\n1 0 nan\n", ":2: capacity nan must be positive"),
        ("x", "0 1\n1 0 inf\n", ":2: capacity inf must be positive and finite"),
        ("x", "0 1 1 -2\n1 0\n", ":1: delay -2 must be 0 or more"),
        ("x", "0 1 1 2.5\n1 0\n", ":1: delay '2.5' is not an integer"),
        ("x", "# nothing\n", ":1: no channels"),
        ("x", "a b\nb a\nb c\n", ": not strongly connected: no path from switch c to switch a"),
        ("x", "1 0\n2 0\n0 1\n", ": not strongly connected: no path from switch 0 to switch 2"),
        ("x", b"0 1\n1 0 \xff\n", ":2: not UTF-8"),
        ("x.graphml", GRAPHML.replace("</graph>", ""), ":8: not XML"),
        ("x.graphml", GRAPHML.replace('target="1"', 'target="5"'), ":6: unknown node '5'"),
        ("x.graphml", GRAPHML.replace(' target="1"', ""), ":6: <edge> without target"),
        ("x.graphml", GRAPHML.replace(">2<", ">-2<"), ":7: capacity -2 must be positive"),
        ("x.graphml", GRAPHML.replace(">1<", ">many<"), ":4: hosts 'many' is not an integer"),
        ("x.graphml", GRAPHML.replace('id="1"', 'id="0"'), ":5: node '0' stands on line 4 too"),
        ("x.graphml", GRAPHML.replace("<edge", "<hyperedge"), ":6: a hyperedge is no channel"),
        ("x.graphml", GRAPHML.replace('"capacity"', '"reverse"').replace(">2<", ">0<"), ":7: reverse 0 is"),
        ("x.json", JSON.replace("[1, 1]", "[1, 1"), ":4: not JSON"),
        ("x.json", JSON.replace("[0, 1, 1.0", "[0, 1, -1.0"), ":5: channels.0"),
        ("x.json", JSON.replace("[0, 1, 1.0", "[0, 1, NaN"), ":5: channels.0"),
        ("x.json", JSON.replace("[1, 0, 1,", "[1, 2, 1,"), ":6: channels.1: unknown switch 2"),
        ("x.json", JSON.replace("0, 0]", "0, 1]"), ":5: channels.0: reverse 1 is not"),
        ("x.json", JSON.replace("[1, 1]", "[1]"), ":3: hosts: 1 entries for 2 switches"),
        ("x.json", JSON.replace('"hosts"', f"{GRID},\n" '"hosts"'), ":3: grid: coordinates do not place"),
        ("x.json", JSON.replace("switches", "switch"), ":1: switches: Field required"),
        ("x.json", JSON.replace("\n", "\n\t").replace("[1, 1]", "[1]"), ":3: hosts: 1 entries"),
        ("x.json", JSON.replace("[1, 1]", f"[1, {10**12}]"), ":3: hosts: 1000000000001 in all; at most 20000000"),
        ("x.json", JSON.replace('"hosts"', '"hosts": [2, 2],\n"hosts"'), ":4: duplicate key 'hosts'"),
        ("x.json", "[]", ":1: topology: Input should be an object"),
        ("x.anynet", "router 0 node 0 router\n", ":1: router without a number"),
        ("x.anynet", "router 0 node 0\nrouter a\n", ":2: router 'a' is not an integer"),
        ("x.anynet", "router 0 router 1\n\nlink 1 2\n", ":3: 'link' where 'node' or 'router'"),
        ("x.anynet", "router 0 router 1 2 3\n", ":1: '3' where"),
        ("x.anynet", "router 0 5 router 1\n", ":1: 5 where"),
        ("x.anynet", "router 0 router 1 0\n", ":1: latency 0 must be 1 or more"),
        ("x.anynet", "node 0 router 0\nnode 1 node 0\n", ":2: node 1 cannot be joined to node 0"),
        ("x.anynet", "router 0 node 0 router 1\nrouter 1 node 0\n", ":2: node 0 is at router 0 by line 1"),
        ("x.anynet", "router 0 router 1 3\nrouter 0 router 1\n", ":2: latency 1 from router 0 to 1 contradicts 3"),
        ("x.anynet", "\n", ":1: no switches"),
        ("x.anynet", "router 0\nrouter 1\n", ": not strongly connected"),
        ("x.anynet", "router 0 router 1\nrouter 2\n", ": not strongly connected"),
        ("x.topobench", "0 1\n1 x\n", ":2: entry 'x' is not an integer"),
        ("x.topobench", "0 1\n# 2\n", ":2: entry '#'"),
        ("x.topobench", "0 -1\n", ":1: entry -1 must be 0 or more"),
        ("x.topobench", "", ":1: no switches"),
        ("x.topobench_servers", f"0 {10**12} 1\n", ":1: 1000000000000 hosts; at most 20000000"),
        ("x.dot", "digraph {}", ":1: dot files are written, not read"),
        ("x.xml", "<platform/>", ":1: simgrid files are written, not read"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_file_and_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SpecError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}{message}")
    assert error.value.key == "path"


def test_missing_files_and_folders_are_refused(tmp_path):
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(SpecError, match=why) as error:
            load(path)
        assert str(path) in str(error.value)
        assert error.value.key == "path"


def test_links_listed_in_both_directions_are_not_doubled(tmp_path):
    (tmp_path / "x").write_text("0 1\n1 2\n2 0\n1 0\n")
    with pytest.raises(SpecError, match=r"x:4: link 1 0 repeats line 1 backwards"):
        load(tmp_path / "x", directed=False)
    (tmp_path / "x").write_text("0 1\n1 0\n")
    assert load(tmp_path / "x", directed=True).reverse.tolist() == [-1, -1]
    (tmp_path / "x").write_text("0 1\n0 1\n")
    assert load(tmp_path / "x", directed=False).channels == 4


def test_directed_must_agree_with_the_file(tmp_path):
    write_json(make("topology", kind="mesh", dims=[2, 2]).build(), tmp_path / "x.json")
    assert load(tmp_path / "x.json", directed=False).channels == 8
    with pytest.raises(SpecError, match="bi-directional") as error:
        load(tmp_path / "x.json", directed=True)
    assert error.value.key == "directed"


def test_readers_work_alone(tmp_path):
    (tmp_path / "x").write_text("0 1\n")
    assert read_edgelist(tmp_path / "x", directed=False).channels == 2
    (tmp_path / "g").write_text(GRAPHML)
    assert read_graphml(tmp_path / "g").host_count.tolist() == [1, 0]
    assert np.array_equal(read(tmp_path / "g", "graphml").src, [0, 1])


@st.composite
def simple_topologies(draw, delays=0, capacities=1):
    """Connected, with bi-directional links, none of them parallel; delays may differ between the two ways."""
    n = draw(st.integers(2, 8))
    possible = [(u, v) for u in range(n) for v in range(u + 2, n)]
    more = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    links = [(v, v + 1) for v in range(n - 1)] + more
    count = len(links)
    pairs = links + [(v, u) for u, v in links]
    reverse = [*range(count, 2 * count), *range(count)]
    delay = draw(st.lists(st.integers(0, delays), min_size=2 * count, max_size=2 * count))
    capacity = draw(st.lists(st.integers(1, capacities), min_size=count, max_size=count))
    topology = Topology.from_channels("drawn", n, pairs, reverse, delay=delay, capacity=capacity * 2)
    return topology.with_hosts(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))


@given(simple_topologies(delays=9))
@settings(max_examples=60, deadline=None)
def test_anynet_gives_back_links_delays_and_hosts(tmp_path_factory, topology):
    path = tmp_path_factory.mktemp("files") / "x.anynet"
    differ = len(set(topology.delay.tolist())) > 1
    assert write(topology, path) == ["routing by hops"] * differ
    by_delay = replace(topology, default_weight="delay" if differ else "hops")
    assert read(path).content_hash == by_delay.content_hash
    assert write(by_delay, path) == []


@given(simple_topologies(capacities=40))
@settings(max_examples=60, deadline=None)
def test_topobench_gives_back_links_hosts_and_whole_capacities(tmp_path_factory, topology):
    path = tmp_path_factory.mktemp("files") / "x"
    assert write(topology, path, "topobench_capacities") == []
    assert read(path, "topobench_capacities").content_hash == topology.content_hash
    plain = replace(topology, capacity=np.ones(topology.channels))
    assert write(plain, path, "topobench_servers") == []
    assert read(path, "topobench_servers").content_hash == plain.content_hash
    assert write(plain, path, "topobench") == ["hosts"]
    assert read(path, "topobench").content_hash == plain.with_hosts(0).content_hash


def test_booksim_example_and_readme(tmp_path):
    """The file of src/examples/anynet and the latencies that its README explains."""
    path = tmp_path / "x.anynet"
    path.write_text(
        "router 0 node 0 node 1 node 2 router 1\n"
        "router 1 node 3 node 4 node 5\n"
        "router 2 node 6 node 7 node 8 router 1 router 0\n"
    )
    triangle = load(path)
    assert list(zip(triangle.src, triangle.dst, strict=True)) == sorted(nx.complete_graph(3).to_directed().edges)
    assert not triangle.directed
    assert triangle.host_switch.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    path.write_text("Router 0 Router 1 10 Router 2 5\nnode 0 router 2\n")
    star = load(path)
    ends = list(zip(star.src.tolist(), star.dst.tolist(), star.delay.tolist(), strict=True))
    assert ends == [(0, 1, 9), (0, 2, 4), (1, 0, 0), (2, 0, 0)]
    assert star.host_count.tolist() == [0, 0, 1]


def test_anynet_numbers_of_nodes_and_routers(tmp_path):
    path = tmp_path / "x.anynet"
    path.write_text("router 7 node 1 router 3\nrouter 3 node 0 3 node 2 router 3\n")
    topology = load(path)
    assert topology.notes["labels"] == ["7", "3"]
    assert topology.notes["nodes"] == [1, 0, 2]
    assert topology.host_delay.tolist() == [0, 2, 0]
    assert topology.notes["self_loops_dropped"] == 1
    assert topology.host_count.tolist() == [1, 2]
    assert topology.channels == 2


def test_topobench_files(tmp_path):
    path = tmp_path / "x.topobench"
    path.write_text("2 1\n3 1 2\n2 3\n \n")  # as in graphRepo: numbered from 1, several lines a switch, a blank line
    triangle = load(path)
    assert triangle.notes["labels"] == ["2", "1", "3"]
    assert triangle.channels == 6
    assert triangle.host_count.tolist() == [1, 1, 1]
    path.write_text("0 4 1 10 2 1\n1 0 0 10\n2 1\n")
    servers = load(path, format="topobench_capacities")
    assert servers.host_count.tolist() == [4, 0, 1]
    assert servers.capacity.tolist() == [10, 1, 10, 1]
    for format, content, message in [
        ("topobench_servers", "0 1 1\n0 2 1\n", ":2: servers of switch 0: 2 contradicts 1 on line 1"),
        ("topobench_servers", "0 1 1\n1\n", ":2: switch 1 without its number of servers"),
        ("topobench_capacities", "0 1 1\n", ":1: neighbour 1 without a capacity"),
        ("topobench_capacities", "0 1 1 5\n1 1 0 6\n", ":2: capacity between 1 and 0: 6 contradicts 5 on line 1"),
        ("topobench_capacities", "0 1 1 0\n", ":1: capacity 0 must be positive"),
    ]:
        path.write_text(content)
        with pytest.raises(FormatError) as error:
            read(path, format)
        assert str(error.value).startswith(f"{path}{message}")


def test_what_formats_do_not_keep_is_said(tmp_path):
    links = Topology.from_links("links", 3, [(0, 1), (0, 1), (1, 2)], capacity=[0.5, 1, 2], delay=[1, 0, 0])
    links = replace(links.with_hosts(2, 4.0), notes={"found": 1})
    grid = make("topology", kind="torus", dims=[3, 3]).build()
    lost = {
        "json": [], "graphml": ["host_capacity", "notes"], "edgelist": ["hosts", "host_capacity", "notes"],
        "anynet": ["host_capacity", "capacities", "parallel channels", "notes"],
        "topobench": ["hosts", "host_capacity", "capacities", "delays", "parallel channels", "notes"],
        "topobench_servers": ["host_capacity", "capacities", "delays", "parallel channels", "notes"],
        "topobench_capacities": ["host_capacity", "delays", "parallel channels", "notes", "fractions of capacities"],
        "simgrid": ["parallel channels", PAIRS, "notes"], "dot": ["host_capacity", "notes"],
    }  # fmt: skip
    for format, features in lost.items():
        assert write(links, tmp_path / "x", format) == features
        assert ("grid" in write(grid, tmp_path / "y", format)) == (format != "json")
    write(links, tmp_path / "x", "topobench_capacities")
    assert (tmp_path / "x").read_text() == "0 2 1 2\n1 2 2 2\n2 2\n"  # 0.5 + 1 is rounded
    write(links, tmp_path / "x", "anynet")
    assert read(tmp_path / "x", "anynet").delay.tolist() == [0, 0, 0, 0]
    mixed = Topology.from_channels("mixed", 2, [(0, 1), (1, 0), (1, 0)], [1, 0, -1])
    assert write(mixed, tmp_path / "x") == [PAIRS]


@pytest.mark.parametrize("format", sorted({*WRITTEN} - {"json"}))
def test_formats_say_that_they_keep_neither_routing_by_delays_nor_subnets(format, tmp_path):
    by_delay = read(Text("router 0 node 0 router 1 9 router 2\nrouter 1 node 1 router 2\nrouter 2 node 2\n"), "anynet")
    assert (BY_DELAY in write(by_delay, tmp_path / "x", format)) == (format != "anynet")
    alike = replace(by_delay, delay=np.zeros_like(by_delay.delay))
    assert BY_DELAY not in write(alike, tmp_path / "x", format)
    assert "subnets" in write(replace(alike, subnets=3), tmp_path / "x", format)


def test_an_edge_list_does_not_keep_that_there_are_no_hosts(tmp_path):
    topology = make("topology", kind="mesh", dims=[2]).build()
    assert "hosts" in write(topology.with_hosts(0), tmp_path / "x.txt")


@pytest.mark.parametrize("format", ["anynet", "topobench", "topobench_servers", "topobench_capacities"])
def test_uni_directional_networks_are_not_written_as_bi_directional_ones(format, tmp_path):
    with pytest.raises(CannotWriteError, match="bi-directional links only"):
        write(make("topology", kind="imase", n=8, degree=2).build(), tmp_path / "x", format)
    assert not (tmp_path / "x").exists()


def test_suffixes_choose_the_format():
    names = ["a.json", "a.graphml", "a.ANYNET", "a.topobench", "a.xml", "a.dot", "a.gv", "a.txt", "a", "a.edges"]
    expected = ["json", "graphml", "anynet", "topobench", "simgrid", "dot", "dot", "edgelist", "edgelist", "edgelist"]
    assert [format_of(name) for name in names] == expected


def test_other_suffixes_are_read_as_edge_lists_and_not_written(tmp_path):
    ring = make("topology", kind="torus", dims=[5], hosts_per_switch=2).build()
    for name in ("q.pdf", "q.csv"):
        with pytest.raises(CannotWriteError, match=r"q\.\w+: unknown suffix; choices: \.anynet, .*\.json, .* or none"):
            write(ring, tmp_path / name)
        assert not (tmp_path / name).exists()
    (tmp_path / "q.dat").write_text("0 1\n1 0\n")
    assert load(tmp_path / "q.dat").channels == 2
    for suffix in ("servers", "capacities"):
        write(ring, tmp_path / f"x.topobench_{suffix}")
        assert load(tmp_path / f"x.topobench_{suffix}").content_hash == ring.content_hash


@pytest.mark.parametrize("suffix", ["json", "graphml", "anynet", "topobench_servers"])
def test_no_hosts_stay_no_hosts_unless_some_are_asked_for(suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    write(make("topology", kind="mesh", dims=[4], hosts=[0, 0, 0, 0]).build(), path)
    assert load(path).hosts == 0
    assert load(path, hosts_per_switch=2).host_count.tolist() == [2, 2, 2, 2]
    assert load(path, hosts=[0, 3, 0, 0]).host_count.tolist() == [0, 3, 0, 0]


def test_files_that_do_not_tell_of_hosts_get_one_a_switch(tmp_path):
    (tmp_path / "x.graphml").write_text(re.sub(r'<data key="h">.*?</data>', "", GRAPHML))
    write(make("topology", kind="mesh", dims=[2]).build(), tmp_path / "x.topobench")
    for suffix in ("graphml", "topobench"):
        assert load(tmp_path / f"x.{suffix}").host_count.tolist() == [1, 1]


@pytest.mark.parametrize("capacity", [1, 2.5])
@pytest.mark.parametrize("labels", [["u", "v", "z"], ["To", "From", "z"]])
def test_labels_of_a_written_edge_list_are_no_header(labels, capacity, tmp_path):
    topology = Topology.from_links("net", 3, [(0, 1), (1, 2)], capacity=capacity, notes={"labels": labels})
    write(topology, tmp_path / "x.txt")
    assert read(tmp_path / "x.txt").content_hash == topology.content_hash
    assert read(tmp_path / "x.txt").notes["labels"] == labels


def test_a_written_edge_list_says_whether_its_lines_are_links(tmp_path):
    for parameters in ({"kind": "torus", "dims": [5]}, {"kind": "kautz", "degree": 2, "diameter": 2}):
        topology = make("topology", **parameters).build()
        write(topology, tmp_path / "x.txt")
        assert load(tmp_path / "x.txt").content_hash == topology.content_hash
    write(make("topology", kind="mesh", dims=[3]).build(), tmp_path / "x.txt")
    with pytest.raises(SpecError, match="not strongly connected"):
        load(tmp_path / "x.txt", directed=True)
    (tmp_path / "x.txt").write_text("0 1\n1 2\n")
    with pytest.raises(SpecError, match="directed: false if lines are bi-directional links"):
        load(tmp_path / "x.txt")


@pytest.mark.parametrize(
    "text, warned",
    [
        ("a b 4\nb c 4\nc a 1\n", True),
        ("a b 4\nb c 4\nc a 1\nb a 4\n", False),  # its author writes both directions
        ("# directed: true\na b 4\nb c 4\nc a 1\n", False),
        ("a -> b 4\nb -> c 4\nc -> a 1\n", False),
    ],
)
def test_links_that_are_listed_once_are_not_taken_for_channels_silently(text, warned, tmp_path, recwarn):
    """A list of links is also the list of the channels of a ring that goes one way."""
    (tmp_path / "x.txt").write_text(text)
    assert load(tmp_path / "x.txt").directed
    assert any("none the reverse of another" in str(one.message) for one in recwarn) == warned


@pytest.mark.parametrize("suffix", ["json", "graphml", "anynet", "topobench"])
def test_one_switch_alone_comes_back(suffix, tmp_path):
    alone = make("topology", kind="torus", dims=[1]).build()
    write(alone, tmp_path / f"x.{suffix}")
    assert load(tmp_path / f"x.{suffix}").content_hash == alone.content_hash
    with pytest.raises(CannotWriteError, match="this topology has none"):
        write(alone, tmp_path / "x.txt")


def test_only_regular_files_of_bounded_size_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10**9 + 1)  # sparse
    for path, why in (
        (tmp_path / "pipe", "not a regular"),
        ("/dev/zero", "not a regular"),
        (tmp_path / "huge", "1 GB"),
    ):
        with pytest.raises(SpecError, match=why) as error:
            load(path)
        assert error.value.key == "path"


def test_simgrid_platform_routes_as_the_network_does(tmp_path):
    """Its routes, weighed by the latencies of their links, are the network's channels with its shortest paths."""
    topology = make("topology", kind="imase", n=12, degree=2, hosts_per_switch=2, capacity=0.5).build()
    write(topology, tmp_path / "x.xml")
    root = ElementTree.parse(tmp_path / "x.xml").getroot()
    zone = root.find("zone")
    assert (root.tag, root.get("version"), zone.get("routing")) == ("platform", "4.1", "Dijkstra")
    links = {link.get("id"): link for link in zone.findall("link")}
    assert len(links) == topology.channels + 2 * topology.hosts
    graph = nx.DiGraph()
    for route in zone.findall("route"):
        assert route.get("symmetrical") == "NO"
        (hop,) = route.findall("link_ctn")
        name = hop.get("id")
        latency = float(links[name].get("latency").removesuffix("ns"))
        graph.add_edge(route.get("src"), route.get("dst"), latency=latency, link=name)
    assert len({data["link"] for _, _, data in graph.edges(data=True)}) == graph.number_of_edges() == len(links)
    hops = distances(topology)
    for source, target in [(0, 23), (5, 2), (20, 21)]:
        expected = 2 * 20 + 118 * int(hops[topology.host_switch[source], topology.host_switch[target]])
        assert nx.shortest_path_length(graph, f"h{source}", f"h{target}", weight="latency") == expected
    assert links[f"s{topology.src[0]}-s{topology.dst[0]}"].get("bandwidth") == "20Gbps"
    assert links["h0-s0"].get("bandwidth") == "40Gbps"
    tags = [element.tag for element in zone]
    assert tags == sorted(tags, key=["host", "router", "link", "route"].index)


def test_simgrid_merges_parallel_channels_and_bounds_endless_hosts(tmp_path):
    topology = Topology.from_links("two", 2, [(0, 1), (0, 1)], capacity=[1, 2], delay=[5, 2])
    lost = write(topology.with_hosts(1, float("inf")), tmp_path / "x.xml")
    assert lost == ["parallel channels", PAIRS, "an infinite host_capacity (1e+06 is written)"]
    zone = ElementTree.parse(tmp_path / "x.xml").getroot().find("zone")
    links = {link.get("id"): (link.get("bandwidth"), link.get("latency")) for link in zone.findall("link")}
    assert links["s0-s1"] == ("120Gbps", "123.334ns")
    assert links["h0-s0"][0] == "40000000Gbps"


@given(topologies())
@settings(max_examples=30, deadline=None)
def test_dot_holds_every_switch_channel_and_host(tmp_path_factory, topology):
    path = tmp_path_factory.mktemp("files") / "x.dot"
    write(topology, path)
    lines = path.read_text().splitlines()
    assert lines[0] == 'digraph "drawn" {'
    assert lines[-1] == "}"
    found = []
    for line in lines:
        if edge := re.fullmatch(r"  (\d+) -> (\d+)(?: \[(.*)\])?;", line):
            u, v = int(edge[1]), int(edge[2])
            values = dict(part.split("=") for part in (edge[3] or "").split(", ") if part)
            about = float(values.get("capacity", 1)), int(values.get("delay", 0))
            found += [(u, v, *about)] + ([(v, u, *about)] if values.get("dir") == "none" else [])
    columns = (topology.src, topology.dst, topology.capacity, topology.delay)
    assert sorted(found) == sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert sum(bool(re.match(r"  h\d+ -> \d+ ", line)) for line in lines) == topology.hosts
    assert sum(bool(re.fullmatch(r"  \d+;", line)) for line in lines) == topology.switches


def test_delays_may_be_written_as_decimals():
    """networkx writes the delay of an edge as 3.0 if it was a float."""
    lines = "# directed: false\n0 1 1 3.0\n1 2 1 1e1\n"
    assert sorted(read(Text(lines)).delay.tolist()) == [3, 3, 10, 10]
