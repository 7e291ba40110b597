# SPDX-License-Identifier: Apache-2.0
"""What nothing expected becomes one line, an exit code and a file; what the environment lacks is reported likewise."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from flitlab.sim.cli import main
from flitlab.sim.exit import ExitCode
from tests import ROOT
from tests.sim.test_full_disk import CONFIG

LINE = re.compile(r"simrun: unexpected error: (.*); its traceback is in (\S+); please report it\n")


@pytest.fixture
def raises(tmp_path, monkeypatch):
    """Makes the command raise; files for tracebacks go into a folder of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def prepare(error):
        def run(_):
            raise error

        monkeypatch.setattr("flitlab.sim.cli.parser.parse", lambda _: argparse.Namespace(run=run))

    return prepare


ERRORS = [ValueError("two\nlines"), MemoryError(), RecursionError("deep"), OSError(24, "Too many open files")]


@pytest.mark.parametrize("error", ERRORS)
def test_an_unexpected_error_is_one_line_and_a_file(raises, error, capsys):
    raises(error)
    assert main([]) == ExitCode.INTERNAL
    found = LINE.fullmatch(capsys.readouterr().err)
    assert found and found[1].startswith(type(error).__name__)
    text = Path(found[2]).read_text()
    assert "Traceback (most recent call last)" in text and "in run" in text


def test_a_long_message_is_cut_and_the_file_has_all(raises, capsys):
    raises(ValueError("x" * 5000))
    assert main([]) == ExitCode.INTERNAL
    err = capsys.readouterr().err
    assert len(err) < 600 and "x" * 5000 in Path(LINE.fullmatch(err)[2]).read_text()


def test_without_a_folder_for_temporary_files_there_is_still_a_line(raises, tmp_path, monkeypatch, capsys):
    raises(ValueError("no"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert main([]) == ExitCode.INTERNAL
    expected = "unexpected error: ValueError: no; its traceback cannot be written: No such file or directory\n"
    assert capsys.readouterr().err == f"simrun: {expected}"


def simrun(folder, line, **environment):
    """What a shell runs, with SIMRUN in the line for the command: (exit code, standard output, standard error)."""
    known = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **environment}
    known = {name: value for name, value in known.items() if value is not None}
    line = line.replace("SIMRUN", f"{sys.executable} -m flitlab")
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=known, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


FULL = "simrun: standard output: No space left on device\n"


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["--help", "schema"])
def test_a_full_device_as_output_is_reported(tmp_path, command):
    assert simrun(tmp_path, f"SIMRUN {command} > /dev/full") == (ExitCode.FAILED, "", FULL)


@pytest.mark.long
def test_a_reader_that_has_seen_enough_ends_nothing_loudly(tmp_path):
    code, out, err = simrun(tmp_path, "SIMRUN schema | head -1; exit ${PIPESTATUS[0]}")
    assert code in (0, ExitCode.BROKEN_PIPE) and out == "{\n" and not err


@pytest.mark.long
@pytest.mark.parametrize(
    "closed", ["<&- >&- 2>&-", *(pytest.param(f"{n}>&-", marks=pytest.mark.long) for n in range(3))]
)
def test_closed_streams_are_no_files(tmp_path, closed):
    """A file that is opened next would get the number of a closed stream, and what is printed there."""
    code, _, err = simrun(tmp_path, f"SIMRUN new main new.yaml {closed}")
    assert code == 0 and "Traceback" not in err
    (tmp_path / "other").mkdir()
    assert main(["new", "main", str(tmp_path / "other" / "new.yaml")]) == 0
    assert (tmp_path / "new.yaml").read_bytes() == (tmp_path / "other" / "new.yaml").read_bytes()


LABEL = "cases: [{label: größe ∞}]\n"


@pytest.mark.long
@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_labels_that_a_locale_cannot_show_are_escaped(tmp_path, locale):
    (tmp_path / "tiny.yaml").write_text(CONFIG + LABEL, "utf-8")
    code, out, err = simrun(tmp_path, "SIMRUN check tiny.yaml", **locale)
    assert code == 0 and r"gr\xf6\xdfe \u221e" in out and "Traceback" not in err


def test_files_whose_names_are_no_unicode(tmp_path, monkeypatch, capsys):
    """Their default names show U+FFFD, and pages and figures are written."""
    monkeypatch.chdir(tmp_path)
    run, claim = os.fsdecode(b"a\xff.yaml"), os.fsdecode(b"b\xff.yaml")
    Path(run).write_text(CONFIG.replace("name: tiny\n", ""))
    Path(claim).write_text("topology: {kind: torus, dims: [4]}\ntraffic: uniform\nreported: [{throughput: 0.9}]\n")
    assert main([run, "--jobs", "1"]) == 0
    folder = os.fsdecode(b"out\xff")
    assert main([run, "--jobs", "1", "--out", folder]) == 0 and main(["report", folder]) == 0
    assert main(["judge", claim]) in (0, 3)
    assert "unexpected" not in capsys.readouterr().err
    for page in ("runs/a\ufffd/report.html", f"{folder}/report.html", "runs/b\ufffd-judge/judge.html"):
        assert Path(page).read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.long
@pytest.mark.parametrize("limit", ["-n 20", "-n 8", "-v 100000", "-v 300000", "-v 500000"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_low_limits_are_reported_in_a_line(tmp_path, limit, jobs):
    """A library that aborts for want of memory says so itself, and Python cannot keep it from that."""
    (tmp_path / "tiny.yaml").write_text(CONFIG.replace("[0.1]", "[0.1, 0.2]"))
    code, out, err = simrun(tmp_path, f"ulimit {limit}; SIMRUN run tiny.yaml --out run --jobs {jobs}")
    assert code in (0, 1, 2, ExitCode.INTERNAL, 134), err
    assert "Traceback" not in err and (code == 0 or err.strip())
    # results that are stored stay where a figure cannot be drawn, and the exit code is not 0
    assert ("results in run" in out) == (code == 0 or err.startswith("figures:")), err


COMPILED = CONFIG.replace("engine: reference", "engine: compiled").replace("[latency_load]", "[]")


@pytest.mark.long
def test_without_a_home_nothing_is_written_elsewhere(tmp_path):
    """A user without an entry in the list of users and without HOME, whose home Python calls ``~``."""
    from flitlab.models.jit import cache

    script = (
        "import os.path; os.path.expanduser = lambda path: path\n"
        "from flitlab.models.jit import cache; print(cache.cache_folder(), cache.numba.config.CACHE_DIR)"
    )
    code, out, _ = simrun(tmp_path, f"{sys.executable} -c '{script}'", FLITLAB_CACHE=None, NUMBA_CACHE_DIR="")
    place = f"/nonexistent/.cache/flitlab/{cache.cache_folder().name}"
    assert code == 0 and out.split()[0] == place and not list(tmp_path.glob("~*"))


@pytest.mark.long
@pytest.mark.parametrize("options", ["size=64k", "size=64k,ro"])
def test_compiled_code_that_cannot_be_kept_is_used(tmp_path, options):
    (tmp_path / "tiny.yaml").write_text(COMPILED)
    cache = tmp_path / "cache"
    cache.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(cache)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        line = "SIMRUN run tiny.yaml --out run --jobs 1"
        code, out, err = simrun(tmp_path, line, FLITLAB_CACHE=str(cache), NUMBA_CACHE_DIR="", NUMBA_OPT="0")
    finally:
        subprocess.run(["umount", str(cache)], check=True)
    assert code == 0 and "results in run" in out and "Traceback" not in err
    assert not list(tmp_path.glob("flitlab-*"))
