# SPDX-License-Identifier: Apache-2.0
"""Random changes of small inputs end with an exit code that is promised, and ``quick`` runs what ``check`` accepts.

The seed is today's date, so each day tries other inputs; a failure names the command that repeats it.
``.ci/run`` tries 300 of a day, and ``python -m tests.sim.fuzz --count 3000`` more.
"""

import pytest

import flitlab
from tests.sim.fuzz import BASES, SECONDS, Mutation, fuzz, mutation, run, today, write

COUNT = 40


@pytest.mark.long
def test_mutated_input_ends_as_promised():
    seed = today()
    ends = {number: end for number, end in fuzz(seed, COUNT) if end}
    assert not ends, "\n".join(
        f"python -m tests.sim.fuzz --seed {seed} --first {number} --count 1\n{end}" for number, end in ends.items()
    )


def test_a_mutation_depends_on_seed_and_number_only():
    assert mutation(1, 7) == mutation(1, 7)
    drawn = [mutation(1, number) for number in range(300)]
    assert len({repr(one) for one in drawn}) > 290
    assert {one.command for one in drawn} == {"check", "judge", "simulate", "ceiling"}
    assert {one.base for one in drawn} >= {*BASES["configs"], *BASES["claims"]}


def test_an_input_without_a_change_ends_as_it_should(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command, group in (("check", "configs"), ("judge", "claims")):
        text = BASES[group]["sweep" if group == "configs" else "csv"]
        case = Mutation(command, "", {"input.yaml": text, **BASES["files"]})
        write(case, tmp_path)
        assert run(case) == ""


@pytest.mark.parametrize("code", [1, 4, None])
def test_another_exit_code_is_reported(monkeypatch, code):
    monkeypatch.setattr("flitlab.sim.cli.main", lambda arguments: 0 if arguments[0] == "check" else code)
    assert "quick" in run(Mutation("check", ""))


def test_an_exception_is_reported(monkeypatch):
    def simulate(**_):
        raise KeyError("x")

    monkeypatch.setattr(flitlab, "simulate", simulate)
    assert "KeyError: 'x'" in run(Mutation("simulate", ""))


def test_a_process_that_dies_or_hangs_is_reported_and_replaced(monkeypatch):
    commands = iter([
        'print(\'{"number": 3}\', flush=True); import os; os._exit(9)',
        'print(\'{"number": 4}\', flush=True); import time; time.sleep(60)',
        'print(\'{"number": 5, "said": ""}\', flush=True)',
    ])  # fmt: skip
    monkeypatch.setattr("tests.sim.fuzz.SECONDS", 3)
    monkeypatch.setattr("tests.sim.fuzz.worker", lambda *_: [__import__("sys").executable, "-c", next(commands)])
    assert dict(fuzz(1, 3, 3)) == {3: "the process ends with 9", 4: "does not end in 3 s", 5: ""}
    assert SECONDS == 60
