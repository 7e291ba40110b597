# SPDX-License-Identifier: Apache-2.0
"""Names of switches and hosts: labels, ids and numbers, and what is ambiguous among them."""

from unicodedata import normalize

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.formats import CannotWriteError, read, write
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Names, host_names, join_path, rack_names, split_path, switch_names

ODD = [
    "New York", "c0-0c0s1", 'a"b', "a,b", "a;b", "x--y", "u -> v", "0", "1", "2", "10", "007", "1e3", "null", "#", "%a",
    "{", "Zürich", "東京", "-", "--", "a b  c", "&amp;", "<b>", "$x_1",
]  # fmt: skip
LABELS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6) | st.sampled_from(ODD)
"""Labels of one word in any script, and those that formats may trip over."""


PLAIN = st.text("abcäöü東 &\"'<>", min_size=1, max_size=5).map(str.strip).filter(bool)
"""Labels that networkx writes into both of its formats."""


def ring(labels, **keys):
    """A ring of switches with these labels."""
    pairs = [(v, (v + 1) % len(labels)) for v in range(len(labels))]
    notes = {"labels": list(labels)} | keys
    return Topology.from_links("ring", len(labels), pairs, notes=notes).with_hosts(1)


@given(st.lists(LABELS, min_size=2, max_size=12, unique_by=lambda label: normalize("NFC", label)))
@settings(max_examples=200)
def test_a_label_means_its_switch_unless_it_is_the_number_of_another(labels):
    names = switch_names(ring(labels))
    for v, label in enumerate(labels):
        clash = label.isascii() and label.isdecimal() and int(label) < len(labels) and int(label) != v
        if clash:
            with pytest.raises(SpecError, match=r"topology\.names says which of the two count"):
                names.number(label)
        else:
            assert names.number(label) == v
        assert switch_names(ring(labels, names="labels")).number(label) == v and names.label(v) == label
        assert names.only("labels").number(label) == v and names.only("numbers").number(v) == v


@pytest.mark.parametrize(
    ("labels", "name", "said"),
    [
        (["a", "b"], "c", r"^'c' is no switch: labels are a, b, and switches are numbered 0 to 1$"),
        (["Berlin", "Bern"], "Berlln", "'Berlln' is no switch: .*; did you mean 'Berlin'\\?$"),
        (["Berlin", "Bern"], 2, "'2' is no switch"),
        (["Berlin", "Bern"], -1, "'-1' is no switch"),
        (["x", "x", "y"], "x", "'x' is the name of 2 switches, of numbers 0, 1"),
        (["1", "2", "3"], 1, "'1' is the number of one switch and the label of another, whose number is 0"),
        (list("abcdefghijkl"), "zz", "labels are a, b, c, d, e, f, g, h, ..., and"),
    ],
)
def test_what_is_no_name_is_said_with_what_is(labels, name, said):
    with pytest.raises(SpecError, match=said):
        switch_names(ring(labels)).number(name)


def test_numbers_of_other_scripts_are_no_numbers():
    for name in ("٣", "²", "1_0", "+1", "1.0", ""):
        with pytest.raises(SpecError, match="is no host"):
            Names("host", 20).number(name)
    assert Names("host", 20).number(" 07 ") == 7


def test_ids_of_a_file_are_names_too():
    graph = "graph [ directed 0 " + " ".join(f'node [ id {i} label "n{i}" ]' for i in (1, 2, 3))
    found = make(
        "topology", kind="file", text=f"{graph} edge [ source 1 target 2 ] edge [ source 2 target 3 ] ]"
    ).build()
    names = switch_names(found)
    assert found.notes["labels"] == ["n1", "n2", "n3"] and found.notes["ids"] == ["1", "2", "3"]
    assert [names.number(name) for name in ("n1", "n3", "3", 0)] == [0, 2, 2, 0]
    with pytest.raises(SpecError, match="'2' is the number of one switch and the id of another, whose number is 1"):
        names.number(2)


def test_hosts_have_the_labels_of_their_switches():
    topology = ring(["Bern", "Ulm", "Rom"]).with_hosts([1, 2, 0])
    names = host_names(topology)
    assert [names.label(host) for host in range(3)] == ["Bern", "Ulm/0", "Ulm/1"]
    assert [names.number(name) for name in ("Bern", "Ulm/0", "Ulm/1")] == [0, 1, 2]
    with pytest.raises(SpecError, match="'Ulm' is a switch, whose 2 hosts are Ulm/0 to Ulm/1"):
        names.number("Ulm")
    with pytest.raises(SpecError, match="'Rom' is a switch, which has no hosts"):
        names.number("Rom")
    racks = rack_names(topology, [0, 1])
    assert [racks.number(name) for name in ("Bern", "Ulm", 1)] == [0, 1, 1]
    with pytest.raises(SpecError, match="'Rom' is no rack"):
        racks.number("Rom")


def test_numbers_of_hosts_that_are_labels_of_switches_are_asked_about():
    topology = ring(["1", "2", "3"]).with_hosts(2)
    with pytest.raises(
        SpecError, match=r"'2' is the number of a host, and is a switch, whose 2 hosts are 2/0 to 2/1; top"
    ):
        host_names(topology).number(2)
    assert host_names(topology).number("2/1") == 3 and host_names(topology).number(0) == 0
    assert host_names(topology).only("numbers").number(2) == 2


def test_blanks_and_forms_of_letters_do_not_matter():
    names = switch_names(ring([" Zu\u0308rich", "Bern "]))
    assert names.number("Z\u00fcrich") == 0 and names.number("Bern") == 1
    assert names.label(0) == " Zu\u0308rich"


def test_nodes_of_a_booksim_file_are_names_of_hosts(tmp_path):
    (tmp_path / "net.anynet").write_text("router 0 node 3 node 1 router 1\nrouter 1 node 0 node 2\n")
    topology = make("topology", kind="file", path=str(tmp_path / "net.anynet")).build()
    names = host_names(topology)
    assert [names.label(host) for host in range(4)] == ["1", "3", "0", "2"]
    with pytest.raises(SpecError, match=r"topology\.names"):
        names.number(1)
    sure = make("topology", kind="file", path=str(tmp_path / "net.anynet"), names="labels").build()
    assert [host_names(sure).number(node) for node in range(4)] == [2, 0, 3, 1]
    plain = make("topology", kind="file", path=str(tmp_path / "net.anynet"), names="numbers").build()
    assert host_names(plain).number(1) == 1 and "nodes" not in plain.notes
    other = make("topology", kind="file", path=str(tmp_path / "net.anynet"), hosts_per_switch=2).build()
    assert host_names(other).number(1) == 1


@pytest.mark.long
@given(st.lists(st.text(max_size=8), min_size=1, max_size=6))
@settings(max_examples=300)
def test_paths_come_back_whatever_the_labels(names):
    assert split_path(join_path(names)) == names


def test_texts_that_are_no_paths_are_refused():
    for text in ("", "a-", "-a", "a--b", 'a-"b', '"a"b'):
        with pytest.raises(ValueError, match="is no path"):
            split_path(text)


@given(st.lists(LABELS, min_size=3, max_size=9, unique=True), st.sampled_from(["gml", "graphml", "json"]))
@settings(max_examples=120, deadline=None)
def test_labels_and_numbers_survive_a_file(tmp_path_factory, labels, suffix):
    topology = ring(labels)
    path = tmp_path_factory.mktemp("names") / f"x.{suffix}"
    assert not {"labels", "names of hosts"} & set(write(topology, path))
    again = read(path)
    own = again.notes.get("labels", [str(v) for v in range(len(labels))])
    order = [own.index(label) for label in labels]  # labels 0 .. n-1 give the numbers
    assert order == list(range(len(labels))) or set(labels) == {str(v) for v in range(len(labels))}
    ends = {(own[u], own[v]) for u, v in zip(again.src, again.dst, strict=True)}
    assert ends == {(labels[u], labels[v]) for u, v in zip(topology.src, topology.dst, strict=True)}


@given(st.lists(LABELS, min_size=3, max_size=9, unique=True))
@settings(max_examples=150, deadline=None)
def test_edge_lists_name_switches(tmp_path_factory, labels):
    topology = ring(labels)
    path = tmp_path_factory.mktemp("names") / "x.edges"
    write(topology, path)
    again = read(path)
    own = again.notes.get("labels", [str(v) for v in range(len(labels))])
    assert sorted(own) == sorted(labels) and not again.directed
    ends = {(own[u], own[v]) for u, v in zip(again.src, again.dst, strict=True)}
    assert ends == {(labels[u], labels[v]) for u, v in zip(topology.src, topology.dst, strict=True)}


def test_labels_that_a_line_cannot_hold_are_not_written(tmp_path):
    with pytest.raises(CannotWriteError, match="does not fit on one line"):
        write(ring(["a\nb", "c", "d"]), tmp_path / "x.edges")


@pytest.mark.parametrize("suffix", ["gml", "graphml"])
@given(labels=st.lists(PLAIN, min_size=2, max_size=7, unique=True))
@settings(max_examples=40, deadline=None)
def test_labels_of_networkx_are_those_of_networkx(tmp_path_factory, suffix, labels):
    graph = nx.path_graph(labels)
    path = tmp_path_factory.mktemp("nx") / f"x.{suffix}"
    (nx.write_gml if suffix == "gml" else nx.write_graphml_xml)(graph, path)
    found = read(path)
    assert found.notes["labels"] == labels
    ends = {(labels[u], labels[v]) for u, v in zip(found.src, found.dst, strict=True)}
    assert ends == {pair for u, v in graph.edges for pair in ((u, v), (v, u))}


def test_labels_of_networkx_graphs():
    graph = nx.relabel_nodes(nx.path_graph(3), dict(enumerate(["x", "y", "z"])))
    assert Topology.from_networkx(graph).notes == {"labels": ["x", "y", "z"]}
    named = nx.path_graph(3)
    nx.set_node_attributes(named, {0: "Ulm", 1: "Bern", 2: "Rom"}, "label")
    assert Topology.from_networkx(named).notes == {"labels": ["Ulm", "Bern", "Rom"]}
    turned = nx.Graph([(2, 0), (0, 1)])
    topology = Topology.from_networkx(turned)
    assert topology.notes == {"labels": ["2", "0", "1"]}
    with pytest.raises(SpecError, match="number of one switch and the label of another"):
        switch_names(topology).number(0)
    assert Topology.from_networkx(topology.to_networkx()).notes == topology.notes


RING = {"kind": "file", "text": "a--b\nb--c\nc--d\nd--a"}


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({"kind": "planes", "count": 2, "of": RING}, "a b c d a@0 b@0 c@0 d@0 a@1 b@1 c@1 d@1"),
        ({"kind": "planes", "count": 1, "of": RING | {"hosts": {"c": 2}}}, "c/0 c/1 a@0 b@0 c@0 d@0"),
        ({"kind": "subdivided", "base": RING, "p": 2}, "a b c d 4 5 6 7"),
        ({"kind": "same_equipment", "as": RING}, "a b c d"),
        ({"kind": "expanded", "base": RING, "steps": [{"switches": 1, "ports": 4, "servers": 2}]}, "a b c d 4"),
        (RING | {"failures": {"switches": ["b"]}}, "a c d"),
        ({"kind": "file", "text": RING["text"] + "\ne--f", "component": "largest"}, "a b c d"),
    ],
)  # fmt: skip
def test_networks_made_of_others_keep_the_names(spec, labels):
    topology = make("topology", **spec).build()
    names = switch_names(topology)
    assert [names.label(v) for v in range(topology.switches)] == labels.split()


def test_names_are_a_part_of_what_results_depend_on():
    one, other = ring(["a", "b", "c"]), ring(["a", "c", "b"])
    assert len({one.content_hash, other.content_hash, ring(["0", "1", "2"], names="labels").content_hash}) == 3
