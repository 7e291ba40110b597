# SPDX-License-Identifier: Apache-2.0
"""GOAL text: what is read is what was written, whatever its layout; and what is wrong with which line."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.application import goal
from flitlab.models.application.goal import label_of, read_goal, write_goal
from flitlab.models.application.matching import DTYPES, check
from flitlab.models.application.program import Op, Program
from flitlab.models.registry import SpecError, make
from tests.programs import program, programs

BROADCAST = """\
num_ranks 4

rank 0 {
l1: send 1b to 1 tag 0
l2: send 1b to 2 tag 0
}

rank 1 {
l1: recv 1b from 0 tag 0
l2: send 1b to 3 tag 0
l2 requires l1
}

rank 2 {
l1: recv 1b from 0 tag 0
}

rank 3 {
l1: recv 1b from 1 tag 0
}
"""


def read(text: str | bytes) -> Program:
    path = Path("made.goal")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    made = read_goal(path)
    check(made)
    return made


def same(one: Program, other: Program) -> bool:
    names = [name for name in DTYPES if name != "step"]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.long
@settings(deadline=None)
@given(programs(most_operations=20), st.sampled_from([1, 2, 1 << 16]))
def test_written_programs_come_back(made, block):
    original, goal.BLOCK = goal.BLOCK, block
    try:
        write_goal(made, Path("made.goal"))
    finally:
        goal.BLOCK = original
    back = read_goal(Path("made.goal"))
    assert same(made, back)
    assert all(getattr(back, name).dtype == DTYPES[name] for name in DTYPES)


@pytest.mark.long
def test_a_capital_b_and_a_byte_order_mark_are_read():
    """As Windows' editors write them; a text in another encoding is refused by name."""
    assert same(read(BROADCAST), read("\ufeff" + BROADCAST.replace("1b", "1B")))
    with pytest.raises(SpecError, match=r"made\.goal: is UTF-16; save it as UTF-8"):
        read(BROADCAST.encode("utf-16"))
    with pytest.raises(SpecError, match=r"made\.goal:4: 'l1: send 1k to 1 tag 0': expected to"):
        read("\ufeff" + BROADCAST.replace("1b to 1", "1k to 1"))


def test_labels_are_found_again():
    made = read(BROADCAST.replace("l2: send 1b to 3", "send 1b to 3").replace("l2 requires l1\n", ""))
    labels = [label_of(made, o) for o in range(made.operations)]
    assert labels == ["l1", "l2", "l1", "", "l1", "l1"]
    Path("made.goal").write_text(BROADCAST.replace("l1: recv 1b from 1 tag 0", ""))
    assert label_of(made, 0) == ""
    Path("made.goal").unlink()
    assert label_of(made, 0) == label_of(program([[(Op.CALC, 5, -1, 0, 0, [])]]), 0) == ""


@settings(deadline=None)
@given(programs(most_operations=20), st.randoms(use_true_random=False))
def test_layout_does_not_matter(made, random):
    """Comments, blank lines, other labels, ranks in any order, dependencies before the labels they name."""
    write_goal(made, Path("made.goal"))
    head, *ranks = Path("made.goal").read_text().split("\nrank ")
    random.shuffle(ranks)
    text = "/* made\n by hand */\r\n# and this\n" + head
    for rank in ranks:
        number, rest = rank.split(" {\n")
        lines = rest.split("}")[0].splitlines()
        operations, dependencies = ([x for x in lines if (":" in x) is one] for one in (True, False))
        text += f"\n// rank 7\n\n \trank\t{number}{{//}}\n"
        for line in dependencies + operations:
            line = re.sub(r"\bl(\d+)", r"a_long_label_\1_of_its_own", line)
            line = line.replace("b to", random.choice([" b to", " to"])).replace(":", random.choice([" :", ":\t"]))
            line = re.sub(r"( tag \d+)( cpu \d+)", random.choice([r"\2\1", r"\1 nic 3\2"]), line)
            text += f"  {line} {random.choice(['', '// calc 1', '/* l1: */', '# x'])}\r\n{random.choice(['', chr(10)])}"
        text += "  }"
    assert same(made, read(text))


def test_published_example():
    made = read(BROADCAST)
    one = [(Op.SEND, 1, 1, 0, 0, []), (Op.SEND, 1, 2, 0, 0, [])]
    two = [(Op.RECV, 1, 0, 0, 0, []), (Op.SEND, 1, 3, 0, 0, [(0, 0)])]
    assert same(made, program([one, two, [(Op.RECV, 1, 0, 0, 0, [])], [(Op.RECV, 1, 1, 0, 0, [])]]))
    assert [(step.name, step.ranks) for step in made.steps] == [("made", 4)] and not made.notes


def test_start_dependencies_processors_and_nics():
    made = read("num_ranks 1\nrank 0 { a: calc 7 cpu 2 nic 1\nb: calc 000008\n b irequires a }")
    assert same(made, program([[(Op.CALC, 7, -1, 0, 2, []), (Op.CALC, 8, -1, 0, 0, [(0, 1)])]]))
    assert made.notes == {"nics": "1 operations name another nic than 0; every host has one"}


def test_many_labels_of_equal_beginnings():
    count = 3000
    lines = [f"{'x' * (i % 40)}l{i}: calc {i}" for i in range(count)]
    lines += [f"{'x' * (i % 40)}l{i} requires {'x' * ((i - 1) % 40)}l{i - 1}" for i in range(1, count)]
    made = read("num_ranks 1\nrank 0 {\n" + "\n".join(lines) + "\n}\n")
    assert made.successor.tolist() == [2 * i for i in range(1, count)]


def test_as_application():
    Path("made.goal").write_text(BROADCAST)
    assert make("application", kind="goal", path="made.goal").build(64).ranks == 4


RANK = "num_ranks 2\nrank 0 {{\nl1: calc 3\n{}\n}}\nrank 1 {{\n}}\n"


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("what 5", "expected :, requires or irequires after a label"),
        ("5", "expected rank, calc, send, recv, a label or }"),
        ("\xff", "expected rank, calc, send, recv, a label or }"),
        ("calc", "expected a whole number"),
        ("calc -5", "expected a whole number"),
        ("calc 1.5", "expected the end of the line"),
        ("calc 1234567890123456789", "more than 18 digits"),
        ("calc 5 tag 1", "expected tag, cpu, nic (calc: cpu, nic)"),
        ("calc 5 cpu 1 cpu 1", "each once"),
        ("calc 5 cpu 32768", "cpus in 0..32767"),
        ("calc 5;", "expected the end of the line"),
        ("send 5b from 1", "expected to"),
        ("recv 5b to 1", "expected from"),
        ("send 5kb to 1", "expected to"),
        ("send 5b to 1 tag 2147483648", "tags lie in 0..2147483647"),
        ("send 5b to 2", "no such rank"),
        ("recv 5b from 99999999999", "no such rank"),
        ("recv 5b from -1", "a receive from any rank (-1)"),
        ("recv 5b from 1 tag -1", "a receive with any tag (-1)"),
        ("l2: requires l1", "expected calc, send or recv"),
        ("l2 requires 5", "expected a label"),
        ("l1 requires l1 l1", "expected the end of the line"),
        ("l1 requires l2", "no operation of this rank has that label"),
        ("l11 irequires l1", "no operation of this rank has that label"),
        ("l1: calc 5", "another operation of this rank has that label"),
        ("rank 1 {", "a rank inside of another"),
        ("num_ranks 2", "num_ranks occurs twice"),
        ("}\ncalc 5", "an operation outside of any rank"),
    ],
)
def test_bad_lines_are_named(statement, says):
    with pytest.raises(SpecError) as caught:
        read(RANK.format(statement).encode("latin-1"))
    last = statement.splitlines()[-1].encode("latin-1").decode("utf-8", "replace")
    assert f"made.goal:{3 + len(statement.splitlines())}: {last!r}: " in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "made.goal: is empty"),
        ("rank 0 {\n}\n", "made.goal:1: 'rank 0 {': expected num_ranks"),
        ("\nnum_ranks 0\n", "made.goal:2: 'num_ranks 0': expected num_ranks"),
        ("num_ranks x\n", "made.goal:1: 'num_ranks x': expected a whole number"),
        ("num_ranks 1\nrank 0\n{\n}\n", "made.goal:2: 'rank 0': expected {"),
        ("num_ranks 1\nrank 1 {\n}\n", "made.goal:2: 'rank 1 {': no such rank"),
        ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n", "made.goal:4: 'rank 0 {': this rank occurs twice"),
        ("num_ranks 2\nrank 0 {\n}\n", "made.goal: rank 1 is missing; num_ranks is 2"),
        ("num_ranks 1\n}\n", "made.goal:2: '}': } without a rank"),
        ("num_ranks 1\nrank 0 {\ncalc 5\n", "made.goal:3: 'calc 5': the text ends inside of a rank"),
        ("num_ranks 1\nrank 0 {\ncalc 5 /*\n}\n", "the text ends inside of a rank"),
    ],
)
def test_texts_that_are_no_schedule(text, says):
    with pytest.raises(SpecError, match=re.escape(says)):
        read(text)


def two_ranks(zero: str, one: str) -> str:
    return f"num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n{one}\n}}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            two_ranks("calc 1\n\nsend 5b to 1 tag 4", "recv 5b from 0"),
            "made.goal:8: operation 0 of rank 1: no send is left for the receive: "
            "rank 0 sends 0 to rank 1 with tag 0, which receives 1",
        ),
        (
            two_ranks("send 5b to 1\nsend 5b to 1", "recv 5b from 0"),
            "made.goal:4: operation 1 of rank 0: the send is never received: "
            "rank 0 sends 2 to rank 1 with tag 0, which receives 1",
        ),
        (
            two_ranks("send 5b to 1", "recv 6b from 0"),
            "made.goal:6: operation 0 of rank 1 receives 6 bytes, but operation 0 of rank 0, which it belongs to, "
            "sends 5 (see also line 3)",
        ),
        (
            two_ranks(*(f"a: recv 5b from {other}\nb: send 5b to {other}\nb requires a" for other in (1, 0))),
            "made.goal:3: the program waits for itself: ",
        ),
        ("num_ranks 1\nrank 0 {\na: calc 1\na irequires a\n}", "made.goal:3: the program waits for itself: "),
    ],
)  # fmt: skip
def test_programs_that_cannot_run(text, says):
    with pytest.raises(SpecError, match=re.escape(says)):
        read(text)
