# SPDX-License-Identifier: Apache-2.0
"""Topologies and demands of which the text stands in the configuration itself."""

import numpy as np
import pytest

from flitlab.models.readable import JsonError, parse_json
from flitlab.models.registry import SpecError, make
from flitlab.models.topology.formats.own_json import json_text

RING = "0 1\n1 2\n2 3\n3 0\n"


def test_a_text_is_read_as_its_file_would_be(tmp_path):
    (tmp_path / "ring.txt").write_text(RING)
    written = make("topology", kind="file", text=RING, directed=False).build()
    assert (
        written.content_hash
        == make("topology", kind="file", path=str(tmp_path / "ring.txt"), directed=False).build().content_hash
    )
    assert (written.switches, written.channels, written.hosts) == (4, 8, 4)


@pytest.mark.parametrize("kind", [{"kind": "torus", "dims": [3, 3]}, {"kind": "imase", "n": 9, "degree": 2}])
def test_json_is_known_by_how_it_begins(kind):
    topology = make("topology", **kind).build()
    again = make("topology", kind="file", text="\n" + json_text(topology)).build()
    assert again.content_hash == topology.content_hash and again.directed == topology.directed


def test_a_demand_stands_in_the_configuration():
    topology = make("topology", kind="file", text=RING).build()
    traffic = make("traffic", kind="matrix", text="src,dst,demand\n0,2,1\n2,0,3\n", normalise="none").build(topology)
    expected = np.zeros((4, 4))
    expected[0, 2], expected[2, 0] = 1, 3
    assert np.array_equal(traffic.switch_demand, expected)


@pytest.mark.parametrize(
    ("category", "keys", "key", "problem"),
    [
        ("topology", {"kind": "file"}, "path", "is missing"),
        ("topology", {"kind": "file", "path": "a", "text": "0 1"}, "text", "combined with path"),
        ("topology", {"kind": "file", "text": "0 1 x"}, "text", "text:1: capacity 'x' is not a number"),
        (
            "traffic",
            {"kind": "matrix", "text": "0,9,1"},
            "text",
            "text:1: 0,9,1: '9' is no host: hosts are numbered 0 to 3",
        ),
        ("traffic", {"kind": "matrix"}, "path", "is missing"),
    ],
)
def test_what_is_wrong_names_its_key(category, keys, key, problem):
    on = () if category == "topology" else (make("topology", kind="file", text=RING).build(),)
    with pytest.raises(SpecError, match=problem) as found:
        make(category, **keys).build(*on)
    assert found.value.key == key


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('{"a": 1,\n"b": {"c": 2,\n"c": 3}}', 3, "c"),
        ('{"a": [{"a": 1}, {"a": "a"}],\n"b": ["a", "a"],\n"\\u0061": {}}', 3, "a"),
        ('{"x": {"y": 1},\n"y": "{\\"y\\": 1, [",\n"z": 1,\n"y": 2}', 4, "y"),
        ('{"a": 1}\n{"a": 1, "a": 2}', 2, None),
    ],
)
def test_a_key_twice_in_an_object_has_its_line(text, line, key):
    """Equal keys of other objects, values and braces in strings are none; a syntax error before it is reported."""
    for content in (text, text.encode(), text.encode("utf-16")):
        with pytest.raises(JsonError, match=f"duplicate key '{key}'" if key else "not JSON") as found:
            parse_json(content)
        assert found.value.line == line


def test_equal_keys_of_several_objects_are_read():
    assert parse_json('[{"a": {"a": 1}, "b": "a"}, {"a": 2}]') == [{"a": {"a": 1}, "b": "a"}, {"a": 2}]
