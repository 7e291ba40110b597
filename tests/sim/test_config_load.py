# SPDX-License-Identifier: Apache-2.0
"""YAML reading: types, duplicate keys, lines."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yaml.scanner import Scanner

from flitlab.sim.config import text as yaml_text
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics
from flitlab.sim.config.text import base_of, load_file, load_text
from tests import ROOT, long_after


def plain(text):
    return load_text(text, "f", Diagnostics()).plain()


def mistakes(text):
    diagnostics = Diagnostics()
    load_text(text, "f", diagnostics)
    return [str(error) for error in diagnostics.errors]


def test_scalars_follow_the_yaml_1_2_core_schema():
    text = "[no, yes, on, off, 1e-3, 0x10, 0o17, .inf, -1, 1., ~, true, '5', 2001-01-01, 1_0]"
    expected = ["no", "yes", "on", "off", 0.001, 16, 15, float("inf"), -1, 1.0, None, True, "5", "2001-01-01", "1_0"]
    assert plain(text) == expected


def test_every_value_knows_its_line():
    node = load_text("a: 1\nb:\n  c: 2\n  d: [3,\n    4]\n", "f", Diagnostics())
    assert [node.get(*path).line for path in (["a"], ["b"], ["b", "c"], ["b", "d", 1])] == [1, 2, 3, 5]


def test_duplicate_keys_are_refused_at_every_level():
    assert mistakes("a: {b: 1, b: 2}\na: 3\n") == [
        "f:1: a.b: duplicate key (first on line 1)",
        "f:2: a: duplicate key (first on line 1)",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: .nan", "f:1: a = .nan: must be a number, not NaN"),
        ("a: !!python/object:os.system x", "f:1: a: the tag !!python/object:os.system is not supported"),
        ("a: !t 1", "f:1: a: the tag !t is not supported"),
        ("a: &x [*x]", "f:1: a[0]: an alias inside its own anchor"),
        ("[1]: 2", "f:1: a key must be a plain name"),
    ],
)
def test_what_cannot_be_meant_is_refused(text, expected):
    assert mistakes(text) == [expected]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "is empty"),
        (b"- a\n", ":1: [a]: must be a mapping of keys to values"),
        (b"a: [1\nb: 2\n", ":2: YAML syntax: "),
        (b"a: 1\n---\nb: 2\n", "another document"),
        (b"\xff\xfe\x00\x01", "is not a text file"),
        (b"a: \x00", "is not a text file"),
        (b"[" * 5000, "is nested too deeply"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, expected):
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_file(path, Diagnostics())
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pipe_is_read_as_often_as_its_file(tmp_path, monkeypatch):
    """Relative paths in it start from the current folder."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="pipe: is a pipe that nothing was written to"):
        load_file(pipe, Diagnostics())
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # as of a shell, it keeps what is written
    pipe.write_text("a: 1\n")
    assert [load_file(pipe, Diagnostics()).plain() for _ in range(2)] == [{"a": 1}] * 2
    os.close(reader)
    monkeypatch.chdir(ROOT)
    assert (base_of(pipe), base_of(tmp_path / "c.yaml")) == (Path.cwd(), tmp_path.resolve())


def test_aliases_that_explode_are_refused():
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for one, other in zip("abcdefg", "bcdefgh", strict=True):
        text += f"{other}: &{other} [{', '.join([f'*{one}'] * 10)}]\n"
    with pytest.raises(ConfigError, match="more than 200,000 values"):
        load_text(text, "f", Diagnostics())


def read(text):
    """Values with their lines, what is wrong with them, or why there are none."""
    diagnostics = Diagnostics()
    try:
        return places(load_text(text, "f", diagnostics)), list(map(str, diagnostics.errors))
    except ConfigError as error:
        return str(error), list(map(str, diagnostics.errors))


def places(node):
    value = node.value
    if node.is_map:
        value = {key: places(child) for key, child in value.items()}
    elif node.is_list:
        value = [places(child) for child in value]
    return value if node.is_map or node.is_list else repr(value), node.line


def by_both(text):
    """What is read with libyaml, where it is used at all, and without."""
    with_libyaml = read(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_text, "CParser", None)
        return with_libyaml, read(text)


CONFIGURATIONS = [*sorted((ROOT / "configs").rglob("*.yaml")), *sorted((ROOT / "sim/cli/starters").glob("*.yaml"))]

MALFORMED = [
    "a: [1\nb: 2\n", "a: 1\n---\nb: 2\n", "a: b: c", "a: 'x", 'a: "\\q"', "{a: 1", "a: *x", "a: &x 1\nb: &x 2",
    "- a\nb: 1", "a: |x\n b", "a: %b", "a: @b", "---", "--- # nothing", "a: \x00", "a:\n\t- b", "a:\tb", "? a\n: b",
    "a: |# b", "a: >1#b", "a: x?y", "{a?b: 1}", "[a, ?]", "a: !t b", "a: !<t b", "b: 1\n\ufeff",
    "[" * 102 + "]" * 102, "[" * 5000, "- " * 5000, "a: b\n c: d", "a: .nan\na: 1", "a: 1 # what?", 'a: "# b" ? c',
    "\ud800", "a: 1\x85b: 2\u2028c: 3\r\nd: 4\re: 5",
]  # fmt: skip

PIECES = [
    "a", "b: ", "- ", "\n", "\n  ", "{", "}", "[", "]", ", ", ":", "? ", "?", "&x ", "*x", "!t ", '"', "'", "|",
    ">\n  ", "#", " # c", "%", "@", "1", "-", "...", "---", "\t", "\x85", "\u2028", "\ufeff", "\r\n", "\\n", "a:b",
    "%YAML 1.1\n---\n", "<<: ",
]  # fmt: skip


@pytest.mark.parametrize("path", long_after(30, CONFIGURATIONS), ids=lambda path: path.stem)
def test_both_parsers_read_the_same_from_files(path):
    ours, theirs = by_both(path.read_text())
    assert ours == theirs and not ours[1]


@pytest.mark.parametrize("text", MALFORMED)
def test_both_parsers_say_the_same_of_what_is_malformed(text):
    ours, theirs = by_both(text)
    assert ours == theirs


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_both_parsers_read_the_same_from_anything(text):
    ours, theirs = by_both(text)
    assert ours == theirs


@pytest.mark.skipif(yaml_text.CParser is None, reason="PyYAML was built without libyaml")
def test_libyaml_reads_what_it_can(monkeypatch):
    monkeypatch.setattr(Scanner, "fetch_more_tokens", None)  # of PyYAML's own
    text = "# what?\na: {b: [1, 2], c: 'x'} # it is!\nd: |\n  e\n"
    assert plain(text) == {"a": {"b": [1, 2], "c": "x"}, "d": "e\n"}


def test_the_limit_of_depth_has_a_line():
    assert load_text("a:\n " + "[" * 99 + "1" + "]" * 99, "f", Diagnostics()).get("a").is_list
    with pytest.raises(ConfigError, match=r"^f:2: YAML syntax: is nested too deeply, in more than 100 mappings"):
        load_text("a:\n " + "[" * 100 + "1" + "]" * 100, "f", Diagnostics())
