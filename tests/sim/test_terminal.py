# SPDX-License-Identifier: Apache-2.0
"""Labels that others wrote do not control a terminal."""

import json
import unicodedata

import pytest

from flitlab.sim.cli import main
from flitlab.sim.cli.common import json_text, print_table
from flitlab.sim.terminal import MAX_LABEL_LENGTH, complain, printable, say, shown_label
from tests.sim.test_compare import folder_of

OBEYED = ("Cc", "Cf", "Zl", "Zp", "Cs")
"""Unicode categories of what a terminal obeys, or shows elsewhere than it stands."""

HOSTILE = "a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\r\ne\u202ef\u2066g\u2028h\x00\x08\x7fi"


def obeyed(text):
    return [one for one in text if unicodedata.category(one) in OBEYED and one != "\n"]


def test_nothing_is_left_that_a_terminal_obeys():
    everything = "".join(map(chr, range(0xD800))) + HOSTILE
    assert not obeyed(printable(everything)) and "\n" not in printable(everything)
    assert printable("ünïcödé 网络 \U0001f600 $x^2$ [red]") == "ünïcödé 网络 \U0001f600 $x^2$ [red]"
    assert printable("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07") == "red link"


@pytest.mark.parametrize("length", [MAX_LABEL_LENGTH, MAX_LABEL_LENGTH + 1, 10_000])
def test_labels_are_cut(length):
    label = "x" * (length - 1) + "y"
    shown = shown_label(label)
    assert len(shown) == MAX_LABEL_LENGTH and shown.endswith("y") and ("…" in shown) == (length > MAX_LABEL_LENGTH)


def test_tables_and_messages(capsys):
    print_table(HOSTILE, [("scenario", str), ("note", str)], [HOSTILE, "y" * 200])
    say(HOSTILE)
    complain(HOSTILE)
    found = capsys.readouterr()
    assert not obeyed(found.out + found.err) and len(found.out.splitlines()) == 5
    assert "y" * 64 + "…" + "y" * 15 in found.out and "y" * 200 in found.out  # a label is cut, and a note is not


def test_json_keeps_labels_and_escapes_them():
    text = json_text({"label": HOSTILE})
    assert not obeyed(text) and json.loads(text) == {"label": HOSTILE}


CONFIG = (
    "experiment: ceilings\ntopology: {kind: mesh, dims: [2, 2]}\ntraffic: {kind: uniform}\nceilings: [bounds, total]\n"
    f"cases: [{{label: a}}, {{label: {'z' * 300}}}]\nloads: [0.5]\noutputs: {{figures: [], html: false}}\n"
)


def test_commands_cut_labels(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG)
    for command in (["check", "c.yaml"], ["quick", "c.yaml", "--jobs", "1"], ["c.yaml", "--out", "o", "--jobs", "1"]):
        assert main(command) == 0
        found = capsys.readouterr().out
        assert "z" * 64 + "…" + "z" * 15 in found and "z" * 80 not in found


@pytest.mark.long
def test_a_folder_with_a_hostile_label(tmp_path, capsys):
    folders = [folder_of(tmp_path / name, label="a\x1b[31mb\u202ec") for name in "xy"]
    assert main(["compare", *map(str, folders), "--out", str(tmp_path / "c")]) == 0
    found = capsys.readouterr()
    assert "abc" in found.out and not obeyed(found.out + found.err)
