# SPDX-License-Identifier: Apache-2.0
"""What is compiled at the same time by several processes is compiled by one of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flitlab.models.jit import NUMBA_TESTED
from tests import ROOT

PROGRAM = """\
import json, sys
from flitlab.models.jit import device_function, inline, njit

@inline
def next_of(number):
    return number + 1

@device_function
def twice(number):
    return 2 * next_of(number)

@njit
def fails(number):
    return number.nothing

if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        fails(1)
    except Exception:
        pass
    assert twice(3) == 8 and twice(1.5) == 5.0
    print(json.dumps([sum(twice.stats.cache_misses.values()), sum(twice.stats.cache_hits.values())]))
"""


def together(tmp_path, count, **environment):
    """What processes that call the same function at the same time compiled, and what they loaded."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": "", **environment}
    processes = [
        subprocess.Popen(
            [sys.executable, "program.py"], cwd=tmp_path, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(count)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert not [error for _, error in outputs if error]
    return [tuple(json.loads(out)) for out, _ in outputs]


@pytest.mark.long
def test_one_of_several_processes_compiles_and_the_others_load(tmp_path):
    compiled, loaded = zip(*together(tmp_path, 3, FLITLAB_CACHE=str(tmp_path / "cache")), strict=True)
    assert sum(compiled) == 2 and sum(loaded) == 2 * 2, "two signatures"


@pytest.mark.long
def test_a_process_alone_compiles(tmp_path):
    assert together(tmp_path, 1, FLITLAB_CACHE=str(tmp_path / "cache")) == [(2, 0)]
    assert together(tmp_path, 1, FLITLAB_CACHE=str(tmp_path / "cache")) == [(0, 2)]


def test_a_variable_of_numba_that_changes_later_leaves_the_cache_where_it_is(tmp_path):
    script = (
        "import os; from flitlab.models.jit import njit; os.environ['NUMBA_DEBUG'] = '0'; import numba\n"
        "numba.njit(lambda x: x + 1)(1)  # Numba reads its variables again\n"
        "print(njit(lambda x: x)._cache.cache_path)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLITLAB_CACHE": str(tmp_path / "cache")}
    environment = {name: value for name, value in environment.items() if not name.startswith("NUMBA")}
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "script.py").write_text(script)
    output = subprocess.check_output([sys.executable, "script.py"], cwd=tmp_path / "here", env=environment, text=True)
    assert Path(output.strip()).is_relative_to(tmp_path / "cache")
    assert [file.name for file in (tmp_path / "here").iterdir()] == ["script.py"]


RULES = """\
from typing import NamedTuple
import numpy as np

class Rule(NamedTuple):
    by: int
    counted: np.ndarray
    halves: bool

class Rules(NamedTuple):
    rule: Rule
    other: Rule | None
"""

SUMS = """\
import sys
import numpy as np
from flitlab.models.jit import _decorator
from rules import Rule, Rules
parts = sys.argv[1] == "parts"
njit, kernel = _decorator(device_functions=parts), _decorator(device_functions=parts, _nrt=False, forceinline=True)
device_function = _decorator(device_functions=parts, _nrt=False)
inline = _decorator(for_python=False, device_functions=parts, _nrt=False)

rule = Rule(2, np.zeros(1, np.int64), True)

@inline
def half(rules, number):
    rules.rule.counted[0] += 1
    return number // rules.rule.by if rules.rule.halves else number

@kernel
def steps(rules, number):
    count = 0
    while number > 0:
        number, count = half(rules, number), count + 1
        rules = rules
    return count

@device_function
def total(rules, numbers):
    most = 0
    for number in numbers:
        most += steps(rules, number)
    return most

@njit
def totals(rules, rows):
    if rows.shape[1] == 0:
        raise ValueError("no columns")
    return np.array([total(rules, row) for row in rows])

rows, rules = np.arange(12).reshape(3, 4), Rules(rule, None)
assert totals(rules, rows).tolist() == [5, 12, 16] and total(rules, rows[1]) == 12 and steps(rules, 9) == 4
assert rule.counted == 33 + 12 + 4
try:
    totals(rules, rows[:, :0])
except ValueError as error:
    print(error)
print(sum(sum(function.stats.cache_misses.values()) for function in (totals, total, steps)))
"""


@pytest.mark.long
@pytest.mark.parametrize("way", ["parts", "as Numba does it"])
def test_compiled_code_does_the_same_whole_or_in_parts(way, tmp_path):
    if way == "parts" and not NUMBA_TESTED:
        pytest.skip("this version of Numba is not one with which parts were tried")
    (tmp_path / "sums.py").write_text(SUMS)
    (tmp_path / "rules.py").write_text(RULES)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "1"}
    command = [sys.executable, "sums.py", way]
    runs = [subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True) for _ in range(2)]
    assert not [ran.stderr for ran in runs if ran.returncode]
    compiled = [ran.stdout.split("\n")[1] for ran in runs]
    assert compiled == ["3" if way == "parts" else "4", "0"], "Numba also compiles what compiled code calls"
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert ("sums.half" in kept) == (way != "parts"), "a part is never compiled by itself"
