# SPDX-License-Identifier: Apache-2.0
"""Graphs as others write them: edge lists of many forms, GML and GraphML with attributes of their own names."""

import json

import networkx as nx
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make, recorded_warnings
from flitlab.models.topology.families.file import largest_component
from flitlab.models.topology.formats import read
from flitlab.models.topology.formats.gml import read_gml, write_gml
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read as read_study
from tests.models.test_topology_files import topologies

ZOO = """\
Creator "Topology Zoo Toolset"
graph [
  directed 0
  Network "Small [1999]"
  node [
    id 0
    label "Oslo # 1"
    Longitude -0.5
  ]
  node [ id 1 label "Bern" servers 4 ]
  node [ id 2 label "Bern" ]  # twice
  node [ id 3 ]
  edge [
    source 0
    target 1
    LinkSpeedRaw 155000000.0
    delayed 2.6
  ]
  edge [ source 1 target 2 LinkSpeedRaw 10e9 ]
  edge [ source 2 target 0 LinkLabel "OC-3" ]
]
"""


def text(content, **keys):
    return make("topology", kind="file", text=content, **keys).build()


@pytest.mark.parametrize(
    "lines",
    [
        "0 -- 1\n1 -- 2\n2 -- 0", "0--1;\n1--2;\n2--0;", "0 <-> 1\n1<->2\n2 <-> 0",
        "0 -> 1\n1->0\n1 -> 2\n2->1\n2->0\n0->2",
        "# directed: false\n0;1\n1;2\n2;0", "# directed: false\n0,1,1.0\n1,2,1.0\n2,0,1.0",
        "% comment\n0\t1\n1\t2\n2\t0\n1 0\n2 1\n0 2",
        "# directed: false\nsource,target,weight\n0,1,1\n1,2,1\n2,0,1",
        "# directed: false\n0 1 {}\n1 2 {}\n2 0 {'weight': 1}",
        "a -- b 1\nb -- c, 1, 0\nc -- a; 1",
    ],
)  # fmt: skip
def test_a_triangle_is_a_triangle(lines):
    triangle = text(lines)
    assert (triangle.switches, triangle.channels) == (3, 6)
    assert set(zip(triangle.src.tolist(), triangle.dst.tolist(), strict=True)) == {
        (u, v) for u in range(3) for v in range(3) if u != v
    }
    assert (triangle.capacity == 1).all() and not triangle.delay.any()


def test_arrows_say_what_is_a_channel_and_what_a_link():
    mixed = text("0 -> 1\n1 -- 2\n2 -> 0")
    assert mixed.channels == 4 and (mixed.reverse >= 0).sum() == 2


def test_weights_are_capacities():
    for lines in ("0--1 2.5", "0 -- 1, 2.5", "# directed: false\n0;1;2.5", "# directed: false\n0 1 {'weight': 2.5}"):
        assert text(lines).capacity.tolist() == [2.5, 2.5], lines
    assert text("0--1 2.5 3").delay.tolist() == [3, 3]


def test_what_networkx_writes_is_read(tmp_path):
    graph = nx.random_regular_graph(3, 10, seed=1)
    for i, (_, _, data) in enumerate(graph.edges(data=True)):
        data |= {"capacity": i + 1.0, "speed": 2.0 * i + 1}
    expected = Topology.from_networkx(nx.Graph(graph))
    nx.write_edgelist(graph, tmp_path / "g.edges")
    nx.write_gml(graph, tmp_path / "g.gml")
    for name in ("g.edges", "g.gml"):
        found = read(tmp_path / name, directed=False)
        assert (found.capacity.sum(), found.channels) == (expected.capacity.sum(), 30)
        faster = make("topology", kind="file", path=str(tmp_path / name), directed=False, capacity_from="speed").build()
        assert faster.capacity.sum() == 2 * sum(2.0 * i + 1 for i in range(15))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("0 ->", r"text:1: .*fields where"),
        ("-> 1", "text:1: .*fields where"),
        ("0 -- 1 x", "text:1: capacity 'x' is not a number"),
        ("0 1\n0 1 2 3 4", "text:2: 5 fields"),
        ("0 1 {capacity: 2}", "is no mapping of attributes"),
        ("0 -- 1\n1 -- 0", "text:2: link 1 0 repeats line 1 backwards"),
    ],
)
def test_wrong_lines_are_named(lines, said):
    with pytest.raises(SpecError, match=said):
        text(lines)


def test_arrows_must_agree_with_what_is_asked_for():
    with pytest.raises(SpecError, match="text:1: -> contradicts directed: false"):
        text("0 -> 1", directed=False)
    with pytest.raises(SpecError, match="text:1: -- contradicts directed: true"):
        text("0 -- 1", directed=True)


def gml(tmp_path, content=ZOO, **keys):
    (tmp_path / "zoo.gml").write_text(content)
    return make("topology", kind="file", path=str(tmp_path / "zoo.gml"), component="largest", **keys).build()


def test_the_zoo_is_read_with_its_own_attributes(tmp_path):
    found = gml(tmp_path, capacity_from="LinkSpeedRaw", missing=155e6, capacity=1 / 155e6)
    assert (
        found.switches == 3
        and found.notes["switches_left_out"] == 1
        and found.notes["labels"] == ["Oslo # 1", "1", "2"]
    )
    assert sorted(found.capacity.tolist()) == pytest.approx([1, 1, 1, 1, 10e9 / 155e6, 10e9 / 155e6])
    assert found.host_count.tolist() == [1, 1, 1] and not found.directed
    assert found.notes["capacity_missing"] == 1
    assert gml(tmp_path, hosts_from="servers").host_count.tolist() == [0, 4, 0]
    assert sorted(gml(tmp_path, delay_from="delayed").delay.tolist()) == [0, 0, 0, 0, 3, 3]


def test_a_zoo_of_which_some_have_no_speeds_is_read_with_what_is_missing(tmp_path):
    found = gml(tmp_path, ZOO.replace("LinkSpeedRaw", "LinkSpeed"), capacity_from="LinkSpeedRaw", missing=2.0)
    assert set(found.capacity.tolist()) == {2.0} and found.notes["capacity_missing"] == "all"
    for name in ("one", "two"):
        (tmp_path / f"{name}.gml").write_text(ZOO.replace("LinkSpeedRaw", f"Speed{name}"))
    study = """\
experiment: ceilings
topology: {kind: file, path: {glob: '*.gml'}, component: largest, capacity_from: Speedone, missing: 1.0}
traffic: {kind: uniform}
ceilings: [bounds]
"""
    (tmp_path / "study.yaml").write_text(study)
    found = read_study(tmp_path / "study.yaml")
    assert [case.topology.notes["capacity_missing"] for case in found.cases] == [1, "all", "all"]
    (warning,) = (line for line in found.warnings if "capacity_from = Speedone" in line)
    assert "warning: is an attribute of no edge in the file" in warning


@pytest.mark.parametrize(
    ("change", "keys", "said"),
    [
        (("", ""), {"capacity_from": "LinkSpeedRaw"}, r"zoo.gml:20: edge 2-0 has no LinkSpeedRaw \(it has"),
        (("", ""), {"capacity_from": "Speed"}, "no edge has an attribute 'Speed'; there are LinkLabel, Li"),
        (("", ""), {"hosts_from": "hosts_here"}, "no node has an attribute"),
        (("", ""), {"delay_from": "LinkLabel"}, "LinkLabel 'OC-3' is not a number"),
        (("10e9", '"fast"'), {"capacity_from": "LinkSpeedRaw", "missing": 1.0}, "zoo.gml:19: capacity 'fast' is no"),
        (("id 1", "id 0"), {}, "zoo.gml:10: node '0' stands on line 5 too"),
        (("target 2", "target 7"), {}, "zoo.gml:19: unknown node '7'"),
        (("target 2", ""), {}, "zoo.gml:19: edge without target"),
        (("  edge [ source 2", "  edge source 2"), {}, "zoo.gml:20: '2' is no key"),
        (("graph [", "grph ["), {}, "no graphs where one is expected"),
        (("\n]\n", "\n"), {}, r"zoo.gml:2: \[ is never closed"),
        (("Creator", "]"), {}, "zoo.gml:1: ] closes nothing"),
    ],
)  # fmt: skip
def test_wrong_gml_is_named_with_its_line(tmp_path, change, keys, said):
    with pytest.raises(SpecError, match=said):
        gml(tmp_path, ZOO.replace(*change, 1) if change[0] else ZOO, **keys)


def test_attributes_of_formats_that_have_none_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(SpecError, match=r"json files have no attributes; those of edgelist, .*sndlib have some"):
        make("topology", kind="file", path=str(tmp_path / "a.json"), capacity_from="speed").build()


@given(topologies())
@settings(max_examples=30)
def test_gml_loses_only_what_it_says(tmp_path_factory, topology):
    path = tmp_path_factory.mktemp("gml") / "x.gml"
    write_gml(topology, path)
    again = read_gml(path)
    for part in ("src", "dst", "capacity", "delay", "reverse", "host_switch"):
        assert np.array_equal(getattr(again, part), getattr(topology, part)), part


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
@settings(max_examples=60)
def test_the_largest_component_is_that_of_networkx(arcs):
    topology = Topology.from_arcs("drawn", 8, arcs, delay=list(range(len(arcs)))).with_hosts(list(range(8)))
    found = largest_component(topology)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(8))
    graph.add_edges_from((u, v, {"delay": i}) for i, (u, v) in enumerate(arcs) if u != v)
    best = max(
        (sorted(part) for part in nx.strongly_connected_components(graph)), key=lambda part: (len(part), -part[0])
    )
    assert found.host_count.tolist() == best and found.unreachable_pair() is None
    inner = graph.subgraph(best)
    ends = sorted((best.index(u), best.index(v), data["delay"]) for u, v, data in inner.edges(data=True))
    assert sorted(zip(found.src.tolist(), found.dst.tolist(), found.delay.tolist(), strict=True)) == ends


def test_a_part_keeps_its_pairs():
    found = largest_component(Topology.from_links("two", 6, [(0, 5), (1, 2), (2, 3), (3, 1)]))
    assert found.switches == 3 and (found.reverse[found.reverse] == np.arange(6)).all()
    assert found.notes == {"labels": ["1", "2", "3"], "switches_left_out": 3}


def test_what_is_not_connected_is_refused_with_a_way_out():
    with pytest.raises(SpecError, match="no path from switch 0 to switch 2; component: largest takes the largest part"):
        text("0--1\n2--3\n3--4")
    assert text("0--1\n2--3\n3--4", component="largest").switches == 3


STUDY = {"experiment": "metrics", "topology": {"kind": "file", "path": {"glob": "zoo/*.gml"}}}


def test_a_folder_of_graphs_is_a_sweep(tmp_path):
    (tmp_path / "zoo").mkdir()
    for n in (4, 3, 5):
        nx.write_gml(nx.cycle_graph(n), tmp_path / "zoo" / f"ring{n}.gml")
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(STUDY))
    study = read_study(tmp_path / "a.yaml")
    assert [case.topology.switches for case in study.cases] == [3, 4, 5]
    assert [case.keys["topology.path"] for case in study.cases] == ["zoo/ring3.gml", "zoo/ring4.gml", "zoo/ring5.gml"]
    (tmp_path / "b.yaml").write_text(
        "cases:\n- {label: a, topology: {kind: file, path: {glob: '*.gml'}}}\nexperiment: metrics\n"
    )
    with pytest.raises(ConfigError, match=r"b.yaml:2: cases\[0\].topology.path.glob = \*.gml: matches no file in"):
        read_study(tmp_path / "b.yaml")


@pytest.mark.parametrize("pattern", [3, "", [1]])
def test_a_pattern_is_a_text(pattern, tmp_path):
    study = {**STUDY, "topology": {"kind": "file", "path": {"glob": pattern}}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(ConfigError, match="must be a pattern of names"):
        read_study(tmp_path / "a.yaml")


# What files say beside channels, and what of it is not read

SNDLIB = """\
Creator  "sndlib.ext.generators.gml.GmlGenerator"
Version  "1.0"

graph [
  label     "square--D-B-E-N-C-A-N-N"
  directed  1

  node [
    id     0
    label  "Gdansk"

    graphics [
      x     363.0
      type  "ellipse"
    ]
  ]
  node [ id 1 label "Krakow" ]
  node [ id 2 label "Lodz" ]
  node [ id 3 label "Warsaw" ]

  edge [
    id      0
    source  0
    target  1

    graphics [
      width        1
      sourceArrow  "standard"
      targetArrow  "standard"
    ]
  ]
  edge [ id 1 source 0 target 2 ]
  edge [ id 2 source 1 target 3 ]
  edge [ id 3 source 2 target 3 ]
]
"""
"""As SNDlib writes its networks: each link once, in a graph that says that it is directed."""


def told(content, **keys):
    """The topology of a text, and what is warned of."""
    with recorded_warnings() as said:
        topology = text(content, **keys)
    return topology, [str(one) for one in said]


def test_sndlib_names_each_link_once():
    with pytest.raises(SpecError, match=r"no path from switch \w+ to switch \w+; directed: false if edges are bi-dir"):
        text(SNDLIB)
    with pytest.raises(
        SpecError, match=r"has only 1 of 4 switches \(25 %\), 0 of 4 channels \(0 %\), which is less than "
    ):
        text(SNDLIB, component="largest")
    found, said = told(SNDLIB, directed=False)
    assert not said and not found.directed and found.channels == 8
    assert found.notes["labels"] == ["Gdansk", "Krakow", "Lodz", "Warsaw"]
    assert text(SNDLIB, component="largest", component_share=0).switches == 1


def test_the_largest_part_says_what_it_keeps():
    parts = "graph [ node [ id 9 hosts 3 ] node [ id 0 hosts 1 ] node [ id 1 hosts 2 ] node [ id 2 ] node [ id 3 ]"
    parts += " edge [ source 0 target 1 ] edge [ source 1 target 2 ] edge [ source 2 target 3 ] ]"
    found, said = told(parts, component="largest")
    assert found.switches == 4 and said == [
        "text: the largest part is kept: 4 of 5 switches (80 %), 3 of 3 links (100 %), 3 of 6 hosts (50 %)"
    ]
    with pytest.raises(SpecError, match=r"3 of 8 hosts \(38 %\), which is less than component_share: 0.5") as error:
        text(parts.replace("hosts 3", "hosts 5"), component="largest")
    assert error.value.key == "component"


def test_edges_may_say_themselves_whether_they_are_directed():
    nodes = "".join(f'<node id="{v}"/>' for v in range(3))
    edges = '<edge source="0" target="1" directed="false"/><edge source="1" target="2"/><edge source="2" target="0"/>'
    found = text(f'<graphml><graph edgedefault="directed">{nodes}{edges}</graph></graphml>')
    assert found.channels == 4 and (found.reverse >= 0).sum() == 2


def test_defaults_of_graphml_are_for_nodes_or_for_edges():
    keys = '<key id="a" for="node" attr.name="capacity"><default>7</default></key>'
    keys += '<key id="b" for="edge" attr.name="delay"><default>4</default></key>'
    graph = '<node id="0"/><node id="1"/><edge source="0" target="1"/>'
    found = text(f'<graphml>{keys}<graph edgedefault="undirected">{graph}</graph></graphml>')
    assert found.capacity.tolist() == [1, 1] and found.delay.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("lines", "ends"),
    [
        ("target,source\n0,1\n1,2\n2,0", [(0, 2), (1, 0), (2, 1)]),
        ("from;to\n0;1\n1;2\n2;0", [(0, 1), (1, 2), (2, 0)]),
        ("to_node from_node capacity\n1 0 5\n2 1 5\n0 2 5", [(0, 1), (1, 2), (2, 0)]),
        ("id,dst,src\nx,1,0\ny,2,1\nz,0,2", [(0, 1), (1, 2), (2, 0)]),
        ('"Source";"Target"\n"0";"1"\n"1";"2"\n"2";"0"', [(0, 1), (1, 2), (2, 0)]),
    ],
)
def test_headers_say_which_end_is_which(lines, ends):
    found = text(lines)
    assert list(zip(found.src.tolist(), found.dst.tolist(), strict=True)) == ends


def test_headers_say_what_the_columns_are():
    found, said = told("# directed: false\nsource,target,delay,note,capacity\n0,1,5,x,2.5\n1,2,6,,1\n")
    assert (
        not said
        and sorted(found.capacity.tolist()) == [1, 1, 2.5, 2.5]
        and sorted(found.delay.tolist()) == [5, 5, 6, 6]
    )
    lines = "# directed: false\nsource,target,bandwidth_gbps,latency\n0,1,100,5\n1,2,400,6\n"
    found, said = told(lines)
    assert (
        (found.capacity == 1).all()
        and not found.delay.any()
        and said
        == [
            "text: attribute bandwidth_gbps of edges is not read; capacity_from: bandwidth_gbps reads it",
            "text: attribute latency of edges is not read; delay_from: latency reads it",
        ]
    )
    found, said = told(lines, capacity_from="bandwidth_gbps", delay_from="latency")
    assert not said and set(found.capacity) == {100, 400} and set(found.delay) == {5, 6}
    assert not told(lines, capacity_from="capacity", missing=1.0, delay_from="delay")[1]
    gephi = "Source,Target,Type,Id,Label,Weight\n1,2,Undirected,0,,1\n2,3,Undirected,1,,4\n3,1,Directed,2,,1\n"
    assert text(gephi).channels == 5


def test_names_may_hold_what_separates_others():
    found = text('"New York" -- "a,b" 2\n"a,b"--"c;d, ""e"""\n"c;d, ""e""" <-> x#1 # a comment\nx#1 -- "New York"')
    assert found.notes["labels"] == ["New York", "a,b", 'c;d, "e"', "x#1"] and found.channels == 8
    found = text("# directed: false\nNew York\tSan José\t2\nSan José\tRack 1\t2\n")
    assert found.notes["labels"] == ["New York", "San José", "Rack 1"]
    with pytest.raises(SpecError, match="text:1: separates fields by tabs and by blanks; use one of them, or quotes"):
        text("0\t1 2\n1\t0 2\n")
    with pytest.raises(SpecError, match="text:1: has a comma in a number; write a point, or quotes"):
        text("0 1 1,5\n1 0 2,0\n")
    assert text('"New York 1",2\n2,"New York 1"\n').notes["labels"] == ["New York 1", "2"]
    found = text("# directed: false\nLeaf 1,Spine 2,10\nSpine 2, Leaf 3,5\n")
    assert found.notes["labels"] == ["Leaf 1", "Spine 2", "Leaf 3"] and found.capacity.tolist() == [10, 10, 5, 5]
    assert text("Leaf 1,Spine 2\nSpine 2,Leaf 1\n").notes["labels"] == ["Leaf 1", "Spine 2"]
    with pytest.raises(SpecError, match="text:1: 'New York' before -> is no name; one with blanks needs quotes"):
        text("New York -> Boston")
    with pytest.raises(SpecError, match="text:1: capacity '2,5' is not a number"):
        text("a;b;2,5")


def test_what_repeats_and_what_loops_is_said():
    found, said = told("# directed: false\n0 0\n0 1\n1 2\n2 2\n1 2\n2 1\n".replace("\n2 1\n", "\n"))
    assert found.channels == 6 and said == [
        "text:2: 2 self-loops are dropped", "text:6: this edge repeats the ends of others: they are parallel channels",
    ]  # fmt: skip
    found, said = told("0 1 1\n1 2\n2 0", format="topobench")
    assert found.channels == 6 and said == ["text:1: 1 neighbour is named twice: each is one link"]


def test_labels_of_several_nodes_are_said():
    said = told(ZOO, component="largest", capacity_from="LinkSpeedRaw", missing=1.0)[1]
    assert "text: label 'Bern': not unique, so that these 2 nodes go by their ids" in said
    assert "text: attribute servers of nodes is not read; hosts_from: servers reads it" in said
    assert not any("LinkSpeed" in one for one in said)
    (only,) = (one for one in told(ZOO, component="largest")[1] if "LinkSpeed" in one)
    assert only == "text: attribute LinkSpeedRaw of edges is not read; capacity_from: LinkSpeedRaw reads it"


def test_attributes_that_are_no_numbers_or_mean_something_else_are_not_mentioned():
    graph = (
        'graph [ node [ id 0 Latitude 3.5 ] node [ id 1 ] edge [ source 0 target 1 LinkLabel "2 Gbps" key 0 id 7 ] ]'
    )
    assert not told(graph)[1]
    inner = "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 module [ capacity 40 cost 2 ] ] ]"
    assert told(inner)[1] == [
        "text: attribute module.capacity of edges is not read; capacity_from: module.capacity reads it"
    ]
    assert text(inner, capacity_from="module.capacity").capacity.tolist() == [40, 40]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", "?SNDlib native format; type: network\n", "no switches"),
        ("x.json", '{"directed": false, "nodes": [], "links": []}', "no switches"),
        ("x.net", "*Vertices 2\n1 a\n2 b\n", "Pajek's format is not read; networkx.write_graphml"),
        ("x.txt", "digraph G {\n a -> b;\n}\n", "dot files are written, not read; networkx reads them"),
        ("x.dot", "graph { a -- b }", "networkx reads them and writes GraphML"),
        ("x.txt", "a b black\n", "a header, as in source,target,name, names other columns"),
        ("x.gml", "graph [ node [ id 0 label \"Z\xfcrich\" ] ]", "not UTF-8 text; save the file in this encoding"),
    ],
)  # fmt: skip
def test_other_formats_are_refused_with_a_way_out(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(SpecError, match=rf"{name}:1: .*{said}"):
        make("topology", kind="file", path=str(tmp_path / name)).build()


@pytest.mark.parametrize(
    ("encoding", "content", "said"),
    [
        ("ISO-8859-1", b"Z\xfcrich", "Z\xfcrich"),
        ("utf-8", "Z\xfcrich".encode(), "Z\xfcrich"),
        ("utf-8", b"Z\xfcrich", ":1: not UTF-8 text; save"),
        ("ascii", b"Z\xfcrich", ":1: not ascii, as declared"),
        ("klingon", b"Zuerich", ":1: unknown encoding 'klingon'"),
        ("undefined", b"Zuerich", ":1: unknown encoding 'undefined'"),
        ("utf-16", "Z\xfcrich".encode(), "Z\xfcrich"),  # as .NET declares text in memory, whatever it is saved in
    ],
)
def test_xml_has_the_encoding_that_it_declares(tmp_path, encoding, content, said):
    graph = b'<graphml><graph edgedefault="undirected"><node id="%s"/></graph></graphml>' % content
    (tmp_path / "x.graphml").write_bytes(b'<?xml version="1.0" encoding="%s"?>' % encoding.encode() + graph)
    network = make("topology", kind="file", path=str(tmp_path / "x.graphml"))
    if said.startswith(":"):
        with pytest.raises(SpecError, match=said):
            network.build()
    else:
        assert network.build().notes["labels"] == [said]


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_a_byte_order_mark_says_that_a_file_is_utf_16(tmp_path, mark, encoding):
    graph = '<?xml version="1.0" encoding="UTF-16"?><graphml><graph edgedefault="undirected"><node id="Z\xfcrich"/>'
    (tmp_path / "x.xml").write_bytes(mark + f"{graph}</graph></graphml>".encode(encoding))
    network = make("topology", kind="file", path=str(tmp_path / "x.xml"))
    assert network.build().notes["labels"] == ["Z\xfcrich"]
    (tmp_path / "x.xml").write_bytes(mark + f"{graph}</graph></graphml>".encode(encoding)[:-1])
    with pytest.raises(SpecError, match=":1: not UTF-16, as its first bytes say"):
        network.build()


def test_graphml_is_known_by_what_it_begins_with(tmp_path):
    (tmp_path / "x.xml").write_text('<graphml><graph edgedefault="undirected"><node id="a"/></graph></graphml>')
    assert make("topology", kind="file", path=str(tmp_path / "x.xml")).build().switches == 1
    assert text("# a comment\ngraph [\nnode [ id 0 ] ]").switches == 1


GROUPS = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
<key for="node" id="d0" yfiles.type="nodegraphics"/><graph edgedefault="undirected">
<node id="n0" yfiles.foldertype="group"><data key="d0"><y:NodeLabel>Pod 0</y:NodeLabel></data>
<graph edgedefault="undirected" id="n0:">
<node id="n0::n0"><data key="d0"><y:NodeLabel>Leaf</y:NodeLabel></data></node>
<node id="n0::n1" yfiles.foldertype="group"><graph edgedefault="undirected" id="n0::n1:"><node id="n0::n1::n0"/>
</graph></node>
<edge source="n0::n0" target="n0::n1::n0"/></graph></node>
<node id="n1"><data key="d0"><y:NodeLabel>Spine</y:NodeLabel></data></node>
<edge source="n0::n0" target="n1"/><edge source="n1" target="n0::n1::n0"/></graph></graphml>
"""


def test_nodes_in_groups_of_graphml_are_switches_and_groups_are_none():
    """yEd nests the graph of a group in its node."""
    found, said = told(GROUPS)
    assert (found.switches, found.channels) == (3, 6)
    assert found.notes["labels"] == ["Leaf", "n0::n1::n0", "Spine"]
    assert "2 groups are not read, only the nodes in them" in said[0]
    more = GROUPS.replace("</graph></graphml>", '<node id="n2"/><edge source="n2" target="n1"/></graph></graphml>')
    assert text(more).switches == 4
    for old, new, problem in (
        ('<edge source="n0::n0" target="n1"/>', '<edge source="n0" target="n1"/>', "text:10: an edge of group 'n0'"),
        ('"undirected" id="n0:"', '"directed" id="n0:"', "text:4: edgedefault of group 'n0' is another one"),
        ("</graphml>", '<graph edgedefault="undirected"/></graphml>', "text:10: only one graph is allowed"),
    ):
        with pytest.raises(SpecError, match=problem):
            text(GROUPS.replace(old, new))


@pytest.mark.parametrize("number", ["1_000", "\uff11\uff12"])
def test_numbers_have_ascii_digits_only(number, tmp_path):
    """Python reads more; programs that write such files, and read them, do not."""
    demands = {"path": tmp_path / "demands.txt"}
    flow = f"1\n0 1 3 100 {number} 0\n"
    for content in (
        f"0 1 {number}", f"0 1 1 {number}", f"source,target,capacity\n0,1,{number}", f"0 1 {{'capacity': '{number}'}}",
        f"graph [ node [ id 0 hosts {number} ] node [ id 1 ] edge [ source 0 target 1 ] ]",
        f"router 0 node 0 router 1 {number}", f"NODES 1\nlabel x y\na 0 0\n\nEDGES {number}\nlabel src dest\n",
        f"2 0 1\n0 1 {number}Gbps 1us 0\n", f"Nodes {number}\nTiers 2\nTier 0\nRadix_Down 4\n",
        '?SNDlib native format\nNODES ( a b )\nLINKS ( l ( a b ) ' + number + ' 0 0 0 ( ) )\n',
    ):  # fmt: skip
        with pytest.raises(SpecError, match="text:"):
            text(content)
    topology = text("0 1\n1 0", hosts_per_switch=1)
    for content in (
        f"0,1,{number}", f"% pir\n0 1 {number}\n", f"DEMANDS 1\nlabel src dest bw\nd 0 1 {number}\n", flow,
        f"?SNDlib native format\nDEMANDS ( d ( 0 1 ) 1 {number} )\n", f"Nodes {number}\nConnections 1\n0->1 size 4\n",
    ):  # fmt: skip
        demands["path"].write_text(content)
        with pytest.raises(SpecError):
            make("traffic", kind="matrix", **demands).build(topology)


def test_a_first_line_that_may_count_nodes_and_edges_is_named():
    """Abilene of github.com/THU-INSC-NAD/Traffic-Matrix-Prediction begins with ``12 15``."""
    keys = {"component": "largest", "component_share": 0, "directed": False}
    warning = "text:1: is read as an edge; if it counts 4 nodes and 5 edges, begin it with #"
    for lines, is_warned in (
        ("4 5\n0 1 9920 1\n1 2 9920 1\n2 3 9920 1\n3 0 9920 1\n1 3 2480 1\n", True),
        ("# of Abilene\n\n1,5\n0,1\n1,2\n2,3\n3,0\n1,3\n", False),
        ("# 4 5\n0 1\n1 2\n2 3\n3 0\n1 3\n", False),
        ("4 6\n0 1\n1 2\n2 3\n3 0\n1 3\n", False),
    ):
        _, said = told(lines, **keys)
        assert (warning in said) == is_warned, lines


def test_nodes_with_coordinates_before_the_edges_are_no_edges():
    """Inet 3.0: counts, then ``id x y`` of each node, then ``u v weight`` of each edge."""
    edges = "0 1 5\n1 2 7\n2 0 3\n"
    with pytest.raises(SpecError, match=r"text:1: nodes and edges are counted here .* an edge list begins at line 5"):
        text(f"3 3\n0 9650 1240\n1 2 11\n2 700 35\n{edges}")
    assert told(edges, directed=False)[0].switches == 3


def test_links_before_nodes():
    """D3's order of keys does not matter, whatever the length of the first list."""
    ends = [(i, (i + 1) % 400) for i in range(400)]
    links = [{"source": u, "target": v} for u, v in ends]
    content = json.dumps({"links": links, "nodes": [{"id": i} for i in range(400)]})
    assert content.index("nodes") > 10_000 and text(content).channels == 800


def test_the_largest_part_is_no_way_out_where_hosts_eject_elsewhere():
    lines = "0 2\n1 2\n2 3"
    with pytest.raises(SpecError, match="no path from switch 0 to switch 1") as error:
        text(lines, hosts=[1, 1, 0, 0], ejection=[1, 3])
    assert "component: largest" not in str(error.value)
