# SPDX-License-Identifier: Apache-2.0
"""Demands in tables: lists of pairs and square tables, by number or by name, and what is ambiguous."""

import io
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make, recorded_warnings

RING = {n: "\n".join(f"{v}--{(v + 1) % n}" for v in range(n)) for n in range(3, 8)}


def ring(n, labels=None, **keys):
    """A ring of n switches with a host each, whose labels are given."""
    lines = RING[n]
    if labels is not None:
        lines = "\n".join(f'"{labels[v]}"--"{labels[(v + 1) % n]}"' for v in range(n))
    return make("topology", kind="file", text=lines, **keys).build()


def demand(topology, text, **keys):
    """The matrix that a table gives, float64 [hosts, hosts]."""
    traffic = make("traffic", kind="matrix", text=text, normalise="none", **keys).build(topology)
    matrix = np.zeros((topology.hosts,) * 2)
    source, target, amount = traffic.pairs()
    np.add.at(matrix, (source, target), amount)
    return matrix


DENSE = "0,2,1\n1,0,2\n2,1,0\n"
MATRIX = np.array([[0, 2, 1], [1, 0, 2], [2, 1, 0.0]])
TRIPLES = np.zeros((3, 3))
TRIPLES[[0, 1, 2], [2, 0, 1]] = [1, 2, 0]


def test_three_lines_of_three_numbers_are_asked_about():
    with pytest.raises(
        SpecError, match="3 lines of 3 fields may be a matrix of 3 x 3 or demands src,dst,demand; say lay"
    ):
        demand(ring(3), DENSE)
    assert (demand(ring(3), DENSE, layout="dense") == MATRIX).all()
    assert (demand(ring(3), DENSE, layout="triples") == TRIPLES).all()
    assert (demand(ring(3), "src,dst,demand\n" + DENSE) == TRIPLES).all()
    assert (demand(ring(3), "# as exported\nsource;target;mbps\n" + DENSE.replace(",", ";")) == TRIPLES).all()


@pytest.mark.parametrize("level", ["host", "switch", "rack"])
def test_it_is_asked_at_every_level(level):
    with pytest.raises(SpecError, match="layout: dense or layout: triples"):
        demand(ring(3), DENSE, level=level)
    with pytest.raises(SpecError, match="layout: dense or layout: triples"):
        demand(ring(3), DENSE, level=level, downsample=True)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("0,1,2\n0,2,1\n1,0,2\n2,1,0\n", True),  # a header row of numbers, as pandas writes it, or four demands
        ("0,1,5\n1,2,5\n2,0,5\n", True),
        ("0,5,5\n5,0,5\n5,5,0\n", True),  # as demands there is no host 5, which may be a slip
        ("0,1.5,2\n1.5,0,2\n2,2,0\n", False),  # no host is 1.5
        ("0,1,5\n1,2,5\n", False),
        ("0,1,5\n1,2,5\n2,0,5\n0,2,1\n1,0,1\n", False),
        ("0,1,0.5\n0,2,0.5\n1,2,0.5\n2,1,0.5\n", False),  # a header names no 0.5
    ],
)
def test_only_what_may_be_both_is_asked_about(text, asked):
    if asked:
        with pytest.raises(SpecError, match="say layout"):
            demand(ring(3), text)
    else:
        assert demand(ring(3), text).sum() > 0


def test_three_demands_of_a_larger_network_are_demands():
    found = demand(ring(5), "0,1,5\n1,2,4\n2,0,3\n")
    assert (found[0, 1], found[1, 2], found[2, 0], found.sum()) == (5, 4, 3, 12)


def test_labels_tell_a_matrix_from_demands():
    names = ["a", "b", "c"]
    assert (demand(ring(3, names), "a,b,c\n" + DENSE) == MATRIX).all()
    found = demand(ring(3, names), "a,b,1\nb,c,2\nc,a,3\n")
    assert (found[0, 1], found[1, 2], found[2, 0], found.sum()) == (1, 2, 3, 6)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_what_pandas_writes_is_read(data):
    """Oracle: the frame itself. Any order of rows and columns, any delimiter, with header, index or both."""
    n = data.draw(st.integers(3, 7))
    labels = data.draw(st.none() | st.just([f"s w{v}" if v % 2 else f"É-{v}" for v in range(n)]))
    amounts = data.draw(st.lists(st.integers(0, 4).map(float), min_size=n * n, max_size=n * n).filter(any))
    matrix = np.reshape(amounts, (n, n))
    names = list(range(n)) if labels is None else labels
    rows, columns = (data.draw(st.permutations(range(n))) for _ in range(2))
    both = data.draw(st.booleans())
    columns = columns if both else rows
    frame = pd.DataFrame(matrix[np.ix_(rows, columns)], [names[r] for r in rows], [names[c] for c in columns])
    text = frame.to_csv(index=both, sep=data.draw(st.sampled_from(",;\t")))
    assert (demand(ring(n, labels), text) == matrix).all()


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_matrices_of_few_switches_are_no_traffic_tables(n):
    """Of zeros and ones with a header column, and of as many lines as fields."""
    ones = np.roll(np.eye(n, dtype=int), 1, axis=1)
    numbered = "\n".join(" ".join(map(str, [i, *row])) for i, row in enumerate(ones))
    assert (demand(ring(n), numbered + "\n") == ones).all()
    wider = "\n".join(["0 1 .5 .5" + " 0" * (n - 3)] * (n + 1))
    assert demand(ring(n + 1), wider + "\n")[:, 2].tolist() == [0.5] * (n + 1)


@pytest.mark.parametrize("first", ["0,1,2,3", "0,1,2,4", "0,1.5,2,3"])
def test_demands_of_a_named_row_are_no_names_of_columns(first):
    text = f"a,{first}\nb,1,0,2,3\nc,1,0,0,3\nd,5,6,7,0\n"
    expected = [[*map(float, first.split(","))], [1, 0, 2, 3], [1, 0, 0, 3], [5, 6, 7, 0]]
    assert (demand(ring(4, ["a", "b", "c", "d"]), text) == expected).all()


@given(st.integers(4, 7), st.data())
@settings(max_examples=60, deadline=None)
def test_what_numpy_writes_is_read(n, data):
    matrix = np.reshape(data.draw(st.lists(st.integers(0, 9), min_size=n * n, max_size=n * n).filter(any)), (n, n))
    text = io.StringIO()
    np.savetxt(text, matrix, fmt="%g", delimiter=data.draw(st.sampled_from([",", ";", " ", "\t"])))
    assert (demand(ring(n), text.getvalue()) == matrix).all()


@pytest.mark.parametrize("order", [*itertools.permutations(["src", "dst", "demand"])])
@pytest.mark.parametrize("words", [{}, {"src": "Source", "dst": "Target", "demand": "Mbps"}])
def test_a_header_says_where_the_columns_are(order, words):
    row = {"src": "1", "dst": "2", "demand": "7"}
    lines = [",".join(words.get(name, name) for name in order), ",".join(row[name] for name in order)]
    assert demand(ring(3), "\n".join(lines))[1, 2] == 7


def test_columns_that_are_not_read_are_named():
    with recorded_warnings() as said:
        found = demand(ring(3), "src,dst,priority,demand\n0,1,9,4\n")
    assert found[0, 1] == 4 and [str(one) for one in said] == ["text:1: not read: column priority"]
    with pytest.raises(SpecError, match="no column is called demand"):
        demand(ring(3), "src,dst,low,high\n0,1,1,2\n")


def test_demands_by_name_in_any_form():
    topology = ring(4, ["New York", "Zürich", "7", "東京"])
    found = demand(topology, 'src;dst;demand\n"New York";Zürich;3\n東京;New York;1\n7;東京;2\n0;1;1\n')
    assert (found[0, 1], found[3, 0], found[2, 3]) == (4, 1, 2)
    found = demand(topology, 'New_York 1 2\n"New York" 7 5\n'.replace("New_York", "0"))
    assert (found[0, 1], found[0, 2]) == (2, 5)
    dense = demand(topology, ",東京,Zürich\n7,1,2\nNew York,3,4\n")
    assert (dense[2, 3], dense[2, 1], dense[0, 3], dense[0, 1], dense.sum()) == (1, 2, 3, 4, 10)


def test_a_matrix_by_name_needs_no_row_for_who_sends_nothing():
    """Three lines of four fields, and of three."""
    topology = ring(3, ["Bern", "Ulm", "Rom"])
    found = demand(topology, "from/to,Bern,Ulm,Rom\nRom,1,2,0\nUlm,0.5,0,1\n")
    assert found.tolist() == [[0, 0, 0], [0.5, 0, 1], [1, 2, 0]]
    assert demand(topology, "from,Bern,Ulm\nRom,1,2\nUlm,0.5,0\n").tolist() == [[0, 0, 0], [0.5, 0, 0], [1, 2, 0]]
    with pytest.raises(SpecError, match=r"text:1: 'Ulmm' is no host: .*; did you mean 'Ulm'"):
        demand(topology, "from,Bern,Ulmm\nRom,1,2\nUlm,0.5,0\n")


def test_larger_matrices_keep_their_names_to_themselves():
    frame = pd.DataFrame(np.arange(36.0).reshape(6, 6), list("uvwxyz"), list("uvwxyz"))
    found = demand(ring(3), frame[list("zyxwvu")].to_csv(), downsample=True)
    assert (found == np.arange(36).reshape(6, 6)[::2, ::2]).all()
    with pytest.raises(SpecError, match="text:1: columns must have the names of the rows"):
        demand(ring(3), frame.to_csv().replace("u", "t", 1), downsample=True)


def test_names_of_hosts_switches_and_racks():
    topology = ring(4, list("abcd"), hosts={"a": 2, "b": 1, "d": 1})
    found = demand(topology, "src,dst,demand\na/1,d,2\nb,a/0,1\n")
    assert (found[1, 3], found[2, 0]) == (2, 1)
    found = demand(topology, "src,dst,demand\na,d,2\n", level="switch")
    assert (found[0, 3], found[1, 3]) == (1, 1)
    assert (demand(topology, "src,dst,demand\na,d,2\n", level="rack") == found).all()
    assert (demand(topology, "0,2,2\n", level="rack") == found).all()
    with pytest.raises(SpecError, match="switch c has demand but no hosts"):
        demand(topology, "src,dst,demand\na,c,2\n", level="switch")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("src,dst,demand\na,e,1\n", "text:2: a,e,1: 'e' is no host: labels are a, b, c, d, and hosts are"),
        (",a,b\na,1,2\na,3,4\n", "text:2: host a has two rows or columns"),
        (",a,e\na,1,2\nb,3,4\n", "text:1: 'e' is no host"),
        (",a,b\na,1,x\nb,3,4\n", "text:2: 1,x: 'x' is no demand"),
        (",a,b\na,1,-2\nb,3,4\n", "finite and not negative"),
        ("0,1,2\n1,0,2,3\n", "text:2: 1,0,2,3: expected src,dst,demand"),
        ("0,1,2,3\n1,0,2,3\n", "2 lines of 4 fields are no square matrix, nor are they src,dst,demand"),
        ("0 1 .1 .1 0 9 10\n1 2 .1 .1 0 9 10\n", "src,dst,demand; a traffic table of Noxim begins with a line of %"),
        ("0 1 .1 .1\n1 2 .1 .1\n2 0 .1 .1\n", "of 3 x 3 with a header column or a traffic table of Noxim; say"),
        ("0,1,2,3,4\n" * 5, "a matrix of 5; there are 4 hosts"),
        ("0,1,2,3\n1,0,2,3\n1,2,0,3\n1,2,3\n", "text:4: 3 fields where the first line has 4"),
        ("src,dst,demand\na,b\n", "text:2: a,b: 2 fields where the header has 3"),
        ("", "no demand at all"), ("src,dst,demand\na,b,0\n", "no demand at all"),
        ("src,dst,demand\na,b,1e308\na,c,1e308\n", "more than a number can hold"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text, said):
    with pytest.raises(SpecError) as error:
        demand(ring(4, list("abcd")), text)
    assert said in str(error.value) and error.value.key == "text"


def test_labels_that_are_the_numbers_of_others_are_asked_about():
    """Files number from 1 as often as from 0."""
    text = "src,dst,demand\n1,2,5\n"
    with pytest.raises(
        SpecError, match="'1' is the number of one host and the label of another, whose number is 0; topol"
    ):
        demand(ring(4, list("1234")), text)
    assert demand(ring(4, list("1234"), names="labels"), text)[0, 1] == 5
    assert demand(ring(4, list("1234"), names="numbers"), text)[1, 2] == 5
    assert demand(ring(4, list("1234")), text, names="numbers")[1, 2] == 5
    assert demand(ring(4, list("1234")), text, names="labels")[0, 1] == 5


def test_files_begin_with_a_byte_order_mark_or_not(tmp_path):
    (tmp_path / "d.csv").write_text("src,dst,demand\n0,1,4\n", "utf-8-sig")
    traffic = make("traffic", kind="matrix", path=str(tmp_path / "d.csv")).build(ring(4))
    assert traffic.rate.tolist() == [1, 0, 0, 0]


def trace(tmp_path, topology, text):
    (tmp_path / "t.csv").write_text(text, "utf-8")
    return make("traffic", kind="trace", path=str(tmp_path / "t.csv")).build(topology).recorded


@pytest.mark.parametrize(
    "text",
    [
        "tick,src,dst,flits\n3,a,New York,7\n9,b,a,1\n", "tick;dst;src;flits\n3;New York;a;7\n9;a;b;1\n",
        '3 a "New York" 7\n9 b a\n', "tick\tsource\tdestination\tbytes\n3\ta\tNew York\t7\n9\tb\ta\t1\n",
        "3,0,2,7\n9,1,0\n",
    ],
)  # fmt: skip
def test_traces_name_hosts(tmp_path, text):
    found = trace(tmp_path, ring(3, ["a", "b", "New York"]), text)
    assert (found.source.tolist(), found.destination.tolist(), found.size.tolist()) == ([0, 1], [2, 0], [7, 1])
    assert found.times == (3, 9) and not found.in_us


def test_traces_say_their_unit(tmp_path):
    assert trace(tmp_path, ring(3), "src,dst,start_us,bytes\n0,1,2.5,100\n").in_us
    capital = trace(tmp_path, ring(3), "Src,Dst,Start_us,Bytes\n0,1,2,100\n")
    assert capital.in_us and capital.size_unit == "bytes"
    assert trace(tmp_path, ring(3), "0,0,1,100\n").size_unit == ""
    with pytest.raises(SpecError, match="no column is called tick or start_us"):
        trace(tmp_path, ring(3), "time,src,dst\n1,0,1\n")
    with pytest.raises(SpecError, match=r"t.csv:2: 1,0,d: 'd' is no host"):
        trace(tmp_path, ring(3, list("abc")), "tick,src,dst\n1,0,d\n")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        "src;dst;demand\n0;2;1.5\n1;0;2\n",
        "Nodes 3\nConnections 2\n0->2 start 0 size 1.5\n1->0 start 0 size 2\n",
        "DEMANDS 2\nlabel src dest bw\na 0 2 1.5\nb 1 0 2\n",
    ],
)
def test_files_in_utf_16_are_read_by_their_mark(tmp_path, text, ends):
    """As spreadsheets save tables as Unicode text."""
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "x.txt").write_bytes(text.replace("\n", ends).encode(encoding))
        traffic = make("traffic", kind="matrix", path=str(tmp_path / "x.txt"), normalise="none").build(ring(3))
        assert [part.tolist() for part in traffic.pairs()] == [[0, 1], [2, 0], [1.5, 2.0]]
