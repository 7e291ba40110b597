# SPDX-License-Identifier: Apache-2.0
"""Pairs of opposite channels: when they are links, and what is said of files that name both directions."""

from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, SpecWarning, make, recorded_warnings
from flitlab.models.topology.formats import write
from flitlab.models.topology.graph import Topology

ARC = st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([1.0, 2.0]), st.integers(0, 1))


@given(st.lists(ARC, max_size=30))
@settings(max_examples=200)
def test_as_many_links_as_there_are_opposite_channels(arcs):
    """Counted apart: of k forward and m backward min(k, m) pair, and as many alike ones as there can be."""
    arcs = [arc for arc in arcs if arc[0] != arc[1]]
    topology = Topology.from_arcs(
        "drawn", 5, [arc[:2] for arc in arcs], capacity=[arc[2] for arc in arcs], delay=[arc[3] for arc in arcs]
    )
    found = topology.pair_directions()
    links, alike = Counter(), Counter()
    for c in np.flatnonzero(found.reverse >= 0):
        other = found.reverse[c]
        assert found.reverse[other] == c and (found.src[c], found.dst[c]) == (found.dst[other], found.src[other])
        ends = tuple(sorted((int(found.src[c]), int(found.dst[c]))))
        links[ends] += 1
        alike[ends] += (found.capacity[c], found.delay[c]) == (found.capacity[other], found.delay[other])
    expected, same = Counter(), defaultdict(int)
    count, exact = Counter(arc[:2] for arc in arcs), Counter(arcs)
    for (u, v), k in count.items():
        expected[tuple(sorted((u, v)))] += min(k, count[v, u])
    for (u, v, capacity, delay), k in exact.items():
        same[tuple(sorted((u, v)))] += min(k, exact[v, u, capacity, delay])
    assert links == +expected and +alike == +Counter(same)
    assert topology.paired_count == (int((found.reverse >= 0).sum()), len(arcs))


def text(content, **keys):
    return make("topology", kind="file", text=content, **keys).build()


TRIANGLE = "0 1\n1 0\n1 2\n2 1\n2 0\n0 2\n"
ENDS = [tuple(map(int, line.split())) for line in TRIANGLE.splitlines()]
GRAPHML = '<graphml><graph edgedefault="directed">{}{}</graph></graphml>'.format(
    "".join(f'<node id="{v}"/>' for v in range(3)), "".join(f'<edge source="{u}" target="{v}"/>' for u, v in ENDS)
)
GML = "graph [ directed 1 {} {} ]".format(
    " ".join(f"node [ id {v} ]" for v in range(3)), " ".join(f"edge [ source {u} target {v} ]" for u, v in ENDS)
)
JSON = '{{"kind": "own", "switches": 3, "hosts": [1, 1, 1], "channels": [{}]}}'.format(
    ", ".join(f"[{u}, {v}, 1.0, 0, -1]" for u, v in ENDS)
)
BOTH = {
    "edges": TRIANGLE, "arrows": TRIANGLE.replace(" ", " -> "), "csv": TRIANGLE.replace(" ", ","),
    "semicolons": "source;target\n" + TRIANGLE.replace(" ", ";"), "tabs": TRIANGLE.replace(" ", "\t"),
    "graphml": GRAPHML, "gml": GML, "json": JSON,
}  # fmt: skip


@pytest.mark.parametrize("form", BOTH)
def test_files_that_name_both_directions(form):
    with recorded_warnings() as said:
        one_way = text(BOTH[form])
    assert one_way.directed and one_way.channels == 6
    (warning,) = (str(one) for one in said)
    assert "6 of 6 uni-directional channels are opposite pairs" in warning
    assert "a failed link fails in one direction only; pair_directions: true makes links of them" in warning
    with recorded_warnings() as said:
        paired = text(BOTH[form], pair_directions=True)
        failed = text(BOTH[form], pair_directions=True, failures={"links": 1, "seed": 1})
        meant = text(BOTH[form], pair_directions=False)
    assert not said and not paired.directed and paired.channels == 6 and meant.directed
    assert failed.channels == 4 and failed.notes["failed"]["links"] == 1
    assert text(BOTH[form], failures={"links": 1, "seed": 1}, pair_directions=False).channels == 5


def test_the_warning_stands_at_the_key_that_names_the_file(tmp_path):
    (tmp_path / "sym.txt").write_text(TRIANGLE)
    with recorded_warnings() as said:
        make("topology", kind="file", path=str(tmp_path / "sym.txt")).build()
        make("topology", kind="planes", count=2, of={"kind": "file", "path": str(tmp_path / "sym.txt")}).build()
    assert [one.key for one in said] == ["path", "of.path"]


def test_directions_may_differ():
    found = text("0 1 10 3\n1 0 2.5 7\n1 2\n2 1\n", pair_directions=True)
    assert not found.directed and found.capacity.tolist() == [10, 2.5, 1, 1] and found.delay.tolist() == [3, 7, 0, 0]


def test_what_is_left_over_stays_and_is_said():
    with recorded_warnings() as said:
        found = text("0 1\n1 0\n1 2\n2 0\n", pair_directions=True)
    assert found.directed and (found.reverse >= 0).sum() == 2
    assert [str(one) for one in said] == ["text: 2 channels have no opposite channel and stay uni-directional"]


def test_few_pairs_are_no_reason_to_warn():
    with recorded_warnings() as said:
        text("0 1\n1 0\n1 2\n2 3\n3 0\n")
        make("topology", kind="kautz", degree=2, diameter=3).build()
    assert not said


def test_nearly_all_pairs_are(tmp_path):
    lines = "".join(f"{v} {v + 1}\n{v + 1} {v}\n" for v in range(20)) + "0 20\n"
    with recorded_warnings() as said:
        text(lines)
    assert "40 of 41 uni-directional channels" in str(said[0])


def test_parallel_channels_pair_one_by_one():
    found = text("0 1\n0 1\n0 1\n1 0\n1 0\n", pair_directions=True)
    assert (found.reverse >= 0).sum() == 4 and (found.reverse < 0).sum() == 1


def test_directed_graphs_of_networkx():
    graph = nx.DiGraph(ENDS)
    with pytest.warns(SpecWarning, match=r"6 of 6 .*; Topology.from_networkx\(graph, pair_directions=True\) makes"):
        assert Topology.from_networkx(graph).directed
    with recorded_warnings() as said:
        paired = Topology.from_networkx(graph, pair_directions=True)
        again = Topology.from_networkx(paired.to_networkx())
    assert not said and not paired.directed and again.content_hash == paired.content_hash
    multi = nx.MultiDiGraph([(0, 1, {"capacity": 2.0}), (0, 1), (1, 0), (1, 0, {"capacity": 2.0})])
    found = Topology.from_networkx(multi, pair_directions=True)
    assert (found.capacity == found.capacity[found.reverse]).all()


def test_links_of_networkx_stay_links():
    found = Topology.from_networkx(nx.Graph([(0, 1), (1, 2)]), pair_directions=True)
    assert not found.directed and found.channels == 4


@pytest.mark.parametrize("form", ["gml", "graphml"])
def test_directed_false_makes_a_link_of_every_edge(form):
    once = {"gml": GML, "graphml": GRAPHML}[form]
    for u, v in ((1, 0), (2, 1), (0, 2)):  # each link once, in a graph that says that it is directed
        once = once.replace(f"edge [ source {u} target {v} ]", "").replace(f'<edge source="{u}" target="{v}"/>', "")
    ring = text(once)
    assert ring.directed and ring.channels == 3
    links = text(once, directed=False)
    assert not links.directed and links.channels == 6
    with pytest.raises(SpecError, match=r"link 1 0 repeats line 1 backwards; .*pair_directions: true"):
        text({"gml": GML, "graphml": GRAPHML}[form], directed=False)
    with pytest.raises(SpecError, match="an undirected edge has no direction"):
        text(once.replace("directed 1", "directed 0").replace('"directed"', '"undirected"'), directed=True)


def test_files_of_our_own_say_which_channels_are_links(tmp_path):
    topology = make("topology", kind="torus", dims=[3, 3]).build()
    for suffix in ("gml", "graphml", "json", "edges"):
        write(topology, tmp_path / f"x.{suffix}")
        with recorded_warnings() as said:
            found = make("topology", kind="file", path=str(tmp_path / f"x.{suffix}"), directed=False).build()
        assert not said and found.channels == topology.channels and not found.directed
