"""YAML reading: types, duplicate keys, lines."""

import pytest

from sim.config.errors import ConfigError
from sim.config.load import load_file, load_text


def plain(text):
    return load_text(text, "f", []).plain()


def mistakes(text):
    found = []
    load_text(text, "f", found)
    return [str(mistake) for mistake in found]


def test_scalars_follow_the_yaml_1_2_core_schema():
    text = "[no, yes, on, off, 1e-3, 0x10, 0o17, .inf, -1, 1., ~, true, '5', 2001-01-01, 1_0]"
    expected = ["no", "yes", "on", "off", 0.001, 16, 15, float("inf"), -1, 1.0, None, True, "5", "2001-01-01", "1_0"]
    assert plain(text) == expected


def test_every_value_knows_its_line():
    node = load_text("a: 1\nb:\n  c: 2\n  d: [3,\n    4]\n", "f", [])
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
        load_file(path, [])
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_aliases_that_explode_are_refused():
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for one, other in zip("abcdefg", "bcdefgh", strict=True):
        text += f"{other}: &{other} [{', '.join([f'*{one}'] * 10)}]\n"
    with pytest.raises(ConfigError, match="too many values"):
        load_text(text, "f", [])
