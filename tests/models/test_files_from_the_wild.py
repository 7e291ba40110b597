# SPDX-License-Identifier: Apache-2.0
"""Graphs as others write them: edge lists of many forms, GML and GraphML with attributes of their own names."""

import networkx as nx
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.component import largest_component
from flitlab.models.topology.formats import read, read_gml, write_gml
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import read as read_study
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
    assert found.switches == 3 and found.notes["switches_left_out"] == 1 and found.notes["labels"] == ["0", "1", "2"]
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
    (warning,) = found.warnings
    assert "topology.capacity_from = Speedone: warning: is at no edge of a file" in warning


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
    with pytest.raises(SpecError, match="json files have no attributes; those of graphml, gml, edgelist have some"):
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
    with pytest.raises(
        ConfigError, match=r"b.yaml:2: cases\[0\].topology.path.glob = \*.gml: no file in .* has such a name"
    ):
        read_study(tmp_path / "b.yaml")


@pytest.mark.parametrize("pattern", [3, "", [1]])
def test_a_pattern_is_a_text(pattern, tmp_path):
    study = {**STUDY, "topology": {"kind": "file", "path": {"glob": pattern}}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(ConfigError, match="must be a pattern of names"):
        read_study(tmp_path / "a.yaml")
