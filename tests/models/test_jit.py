"""What is compiled at the same time by several processes is compiled by one of them."""

import json
import os
import subprocess
import sys

import pytest

from tests import ROOT

PROGRAM = """\
import json, sys
from flitlab.models.jit import inner, njit, routine

@inner
def next_of(number):
    return number + 1

@routine
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
