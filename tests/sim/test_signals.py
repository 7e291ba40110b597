# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM end a command within five seconds wherever it is, and the same command resumes it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flitlab.models import signals
from flitlab.models.signals import deferring, exit_code, interruptible, quiet_interruptions, starting_processes
from tests import ROOT, long_after
from tests.sim.ending import KINDS, MODEL, Commands, caught, end_at

LIMIT = 5.0
"""Seconds within which a run ends."""


def kill(number):
    os.kill(os.getpid(), number)
    time.sleep(0.01)


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_the_first_signal_interrupts_and_later_ones_are_recorded(number):
    with interruptible() as received:
        with pytest.raises(KeyboardInterrupt):
            kill(number)
        kill(signal.SIGTERM)
    assert received == [number, signal.SIGTERM]


def test_handlers_are_as_before_after_the_block():
    before = [signal.getsignal(number) for number in signals.SIGNALS]
    with interruptible(), interruptible(), deferring():
        assert [signal.getsignal(number) for number in signals.SIGNALS] != before
    assert [signal.getsignal(number) for number in signals.SIGNALS] == before


def test_a_deferred_signal_interrupts_at_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), interruptible(), deferring():
        kill(signal.SIGTERM)
        done.append("first")
        with deferring():
            kill(signal.SIGINT)
        done.append("second")
    assert done == ["first", "second"]


def test_processes_ignore_ctrl_c_from_their_first_instruction_on():
    """A shell without a handler of its own would end."""
    with starting_processes():
        process = subprocess.Popen(["sleep", "30"])
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.terminate()
    assert process.wait(5) == -signal.SIGTERM


STUCK = """\
import ctypes
from flitlab.models.files import replacing
from flitlab.models.signals import interruptible, watchdog
with interruptible(), watchdog(stays=True), replacing("result") as file:
    file.write(b"half")
    mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex)
    print("ready", flush=True)
    lock(mutex)  # native code that no signal interrupts
"""


@pytest.mark.parametrize("number", long_after(1, signals.SIGNALS))
def test_native_code_is_ended_after_the_grace_period(number, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)  # until the native code is entered
    began = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == exit_code(number) and time.monotonic() - began < LIMIT
    assert "Traceback" not in err and not list(tmp_path.iterdir())


class _Dropping:
    """Python drops what ``__del__`` raises."""

    def __del__(self):
        kill(signal.SIGINT)


def test_an_interruption_that_python_drops_is_raised_again(capfd):
    with interruptible() as received, quiet_interruptions(), pytest.raises(KeyboardInterrupt):
        began, dropping = time.monotonic(), _Dropping()
        del dropping
        time.sleep(5)
    assert time.monotonic() - began < 2  # what the main thread waits for does not delay it
    assert received == [signal.SIGINT] * 2 and not capfd.readouterr().err


COMPILED = """\
import os, signal, threading
from typing import NamedTuple
import numpy as np
from numba import njit
from flitlab.models.signals import interruptible
class Pair(NamedTuple):
    both: object
    tail: object
@njit
def spin(count, x):
    for i in range(count):
        x[0] = x[0] * 3 + i ^ (x[0] >> 7)
    return Pair(x, x[1:]), x.copy()
spin(1, np.zeros(4, np.int64))
try:
    with interruptible():
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        spin(200_000_000, np.zeros(4, np.int64))
        threading.Event().wait(5)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_while_compiled_code_runs_does_not_crash_the_conversion_of_its_results():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", COMPILED], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "interrupted\n"), ended.stderr


@pytest.mark.parametrize("moment", [0, 0.002, 0.01, 0.03, 0.1, 0.2])
def test_an_early_ctrl_c_shows_no_traceback(moment, tmp_path):
    """What Python itself does before the first line of flitlab is Python's."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    (tmp_path / "ended.yaml").write_text(MODEL)
    process = subprocess.Popen(
        [sys.executable, "-m", "flitlab", "check", "ended.yaml"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not caught(process.pid, signal.SIGTERM):
        assert process.poll() is None
        time.sleep(0.001)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    by_watchdog = "interrupted; the same command resumes\n"  # while a kernel compiles, to measure its price
    assert process.returncode == 130 and "Traceback" not in err and err.endswith(("interrupted\n", by_watchdog))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_ends_in_time_wherever_it_is(kind, tmp_path):
    for end in end_at(kind, 4, tmp_path):
        assert end["code"] == exit_code(end["signal"]), end
        assert end["seconds"] < LIMIT and "Traceback" not in end["said"], end


SMALL = MODEL.replace("100000000", "300000").replace("[8, 8]", "[4, 4]").replace("[0.1, 0.2]", "[0.1, 0.2, 0.3, 0.4]")


@pytest.mark.long
def test_interrupted_runs_resume_to_the_same_bytes(tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    words = ["run", "small.yaml", "--jobs", "1", "--out"]
    with Commands(tmp_path) as commands:
        assert commands.end([*words, "compiles"], None, 0)[0] == 0
        code, seconds, _ = commands.end([*words, "whole"], None, 0)
        assert code == 0
        moment = seconds / 5  # four interruptions, all before the end
        whole = (tmp_path / "whole" / "results.csv").read_text()
        for number in 2 * signals.SIGNALS:
            code, seconds, _ = commands.end([*words, "run"], number, moment)
            assert code == exit_code(number) and seconds < LIMIT
        assert commands.end([*words, "run"], None, 0)[0] == 0
    assert without_times((tmp_path / "run" / "results.csv").read_text()) == without_times(whole)
    assert not [path for path in (tmp_path / "run").rglob(".*")]


def without_times(table):
    head, *rows = (line.split(",") for line in table.splitlines())
    column = head.index("cpu_s")
    return [row[:column] + row[column + 1 :] for row in (head, *rows)]
