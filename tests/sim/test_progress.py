# SPDX-License-Identifier: Apache-2.0
"""Progress: on a terminal points, estimates and what is left; elsewhere a line each minute."""

import io
import sys
import time

import numba
import pytest
from rich.console import Console

from flitlab.models.jit import cache
from flitlab.sim.cli import parser
from flitlab.sim.experiment.progress import (
    COMPILING,
    MAX_SHOWN_SCENARIOS,
    Bar,
    Compiling,
    Heartbeat,
    Quiet,
    progress,
    seconds_left,
    stage,
)


class Terminal(io.StringIO):
    """Text that takes itself for a terminal."""

    def isatty(self):
        return True


def test_quiet_where_nobody_looks(capsys):
    with progress(3) as bar:
        bar.advance(100, "a", {"load": 0.1, "seed": 1, "saturated": False})
    assert isinstance(bar, Heartbeat)
    assert capsys.readouterr() == ("", "")
    with progress(0) as bar:
        assert isinstance(bar, Quiet)


def test_a_log_has_a_line_each_minute(capsys):
    with Heartbeat(4, every=0.02) as beats:
        time.sleep(0.1)
        beats.advance()
        time.sleep(0.1)
        beats.advance()
        time.sleep(0.1)
    time.sleep(0.05)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "0 of 4 points after 1 min" and "1 of 4 points after 1 min" in said
    assert said[-1] == "2 of 4 points after 1 min, about 1 min to go"
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_points_and_estimates(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress(4) as bar:
        for load in (0.2, 0.4, 0.6):
            bar.advance(1000, "routing=minimal", {"load": load, "seed": 1, "saturated": load > 0.5})
    shown = terminal.getvalue()
    assert "3/4" in shown and "ticks/s" in shown
    assert "routing=minimal: saturates between 0.4 and 0.6" in shown


def test_the_scenarios_that_are_at_work_are_shown():
    bar = Bar(100)
    for number in range(20):
        bar.advance(1, f"n={number:02}", {"load": 0.3, "seed": 1, "saturated": False})
    bar.advance(1, "n=03", {"load": 0.5, "seed": 1, "saturated": True})
    bar.advance(1, "n=19", {})  # a point that failed
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(bar)
    lines = [line for line in console.file.getvalue().splitlines() if "n=" in line]
    assert len(lines) == MAX_SHOWN_SCENARIOS and "n=03: saturates between 0.3 and 0.5" in lines[0]


def test_what_is_to_go_does_not_count_compilation():
    times = [0, 59, 100, *(100 + 0.5 * i for i in range(1, 10))]  # two sets of kernels, then a point each half second
    assert seconds_left(times, 51, 3) == pytest.approx(0.5 * 40)
    assert seconds_left(times[:4], 51, 3) is None


def test_a_log_tells_no_time_from_points_that_waited_for_kernels(capsys, monkeypatch):
    monkeypatch.setattr("flitlab.sim.experiment.progress.compilations", lambda: 0)  # tests beside this one compile
    with Heartbeat(54, every=0.05, compiling=Compiling.of({"a": 20, "b": 20})) as beats:
        for wait in (0.2, 0.2, 0.2):  # the start, and two sets of kernels
            time.sleep(wait)
            beats.advance()
        time.sleep(0.2)
        for _ in range(3):
            beats.advance()
        time.sleep(0.2)
    said = capsys.readouterr().err.splitlines()
    assert f"1 of 54 points after 1 min: {COMPILING}: 0 of about 40 functions" in said
    assert "3 of 54 points after 1 min" in said and said[-1] == "6 of 54 points after 1 min, about 1 min to go"


def test_compilation_is_a_stage_of_its_own():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    bar = Bar(54, Compiling(2))
    console.print(bar)
    assert COMPILING in console.file.getvalue() and "0/54" not in console.file.getvalue()
    bar.advance(10)  # of one set of kernels: the other is still compiled
    console.file = io.StringIO()
    console.print(bar)
    assert COMPILING in console.file.getvalue() and "1/54" in console.file.getvalue()
    bar.advance(10)
    console.file = io.StringIO()
    console.print(bar)
    assert COMPILING not in console.file.getvalue() and "2/54" in console.file.getvalue()


def test_a_rate_does_not_count_compilation(monkeypatch):
    clock = iter([0, 60, 140, 141, 143])  # two sets of kernels, then 2,000 ticks a second
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    bar = Bar(54, Compiling(1))
    for ticks in (5000, 5000, 2000, 4000):
        bar.advance(ticks)
    monkeypatch.undo()
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(bar)
    assert "2,000 ticks/s" in console.file.getvalue()


def test_loading_shows_how_long_it_takes(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with parser._loading():
        time.sleep(1.2)
    shown = terminal.getvalue()
    assert shown.startswith("loading flitlab, 0 s\r") and "1 s\r" in shown and shown.endswith("\x1b[2K\r")


def test_the_stage_counts_the_functions_that_any_process_compiles(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "sources"))
    (tmp_path / "sources").mkdir()
    assert cache.compilations() == 0 and cache.needed_compilations("a") is None
    before = Compiling.of({"a": None})
    numba.njit(lambda x: x + 1)(1)
    assert cache.compilations() == 1
    assert before.text() == f"{COMPILING}: 1 functions" and Compiling(1, None, 1).text() == COMPILING
    cache.record_compilations("a", 40)  # by these sources; others have a folder beside it
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "changed"))
    assert cache.needed_compilations("a") == 40 and cache.compilations() == 0
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / cache.COUNT).write_bytes(b"." * 12)
    assert Compiling(1, 40).text() == f"{COMPILING}: 12 of about 40 functions"
    assert Compiling(1, 40, 12).text() == f"{COMPILING}: 0 of about 40 functions"
    assert (
        Compiling.of({"a": 40, "b": 2}) == Compiling(2, 42, 12) and Compiling.of({"a": 4, "b": None}).functions is None
    )


def test_a_terminal_shows_stages(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with stage("reading [a].yaml"):
        time.sleep(0.2)
    assert "reading [a].yaml" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with stage("reading a.yaml"):
        pass
    assert sys.stderr.getvalue() == ""
