# SPDX-License-Identifier: Apache-2.0
"""Every command that writes, on a file system that is full: an exit code, one line of reason, and no half file."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flitlab.sim.cli import main

CONFIG = """\
name: tiny
topology: {kind: torus, dims: [3, 3]}
routing: {kind: dor}
traffic: {kind: uniform, packet_flits: 2}
switching: {mode: vct, vcs: 2, buffer_flits: 4}
loads: [0.1]
seeds: [1]
measure: {warmup: 10, ticks: 100, ci: null}
engine: reference
ceilings: [mcf]
outputs: {figures: [latency_load], formats: [png], html: true}
"""
CLAIM = """\
topology: {kind: torus, dims: [3, 3]}
traffic: uniform
switching: {vcs: 2}
reported: [{load: 0.1, throughput: 0.1}]
"""
PROGRAM = "num_ranks 2\nrank 0 {\nl1: send 10b to 1 tag 7\n}\nrank 1 {\nl1: recv 10b from 0 tag 7\n}\n"
COLLECTIVE = """\
experiment: collective
topology: {kind: torus, dims: [3, 3]}
collective: {kind: all_gather, ranks: switches, size_bytes: 4 KiB, algorithm: trees}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4, switch_ns: 100}
"""

DESIGN = "experiment: design\nname: fabric\nhosts: 16\nswitches: [{ports: 6}]\nfamilies: [leaf_spine, rrg]\n"

COMMANDS = {
    "run": ["run", "tiny.yaml", "--out", "DISK/run", "--jobs", "1"],
    "worker": ["worker", "tiny.yaml", "--shard", "1/1", "--out", "DISK/run", "--jobs", "1"],
    "budget": ["budget", "tiny.yaml", "--out", "DISK/run", "--jobs", "1"],
    "ceilings --out": ["ceilings", "tiny.yaml", "--out", "DISK/run", "--jobs", "1"],
    "ceilings --save": ["ceilings", "tiny.yaml", "--save", "DISK/saved", "--jobs", "1"],
    "ceilings --draw": ["ceilings", "tiny.yaml", "--draw", "DISK/drawn.png", "--jobs", "1"],
    "merge": ["merge", "ran", "--out", "DISK/run"],
    "report": ["report", "DISK/ran"],
    "plot": ["plot", "DISK/ran"],
    "compare": ["compare", "ran", "other", "--out", "DISK/compared"],
    "judge": ["judge", "claim.yaml", "--out", "DISK/judged"],
    "view": ["view", "tiny.yaml", "--out", "DISK/view.html"],
    "export-routing": ["export-routing", "tiny.yaml", "--out", "DISK/routing"],
    "topology --export": ["topology", "kind=torus,dims=[9,9]", "--export", "DISK/t.json"],
    "topology --export graphml": ["topology", "kind=torus,dims=[9,9]", "--export", "DISK/t.graphml"],
    "topology --draw": ["topology", "kind=torus,dims=[9,9]", "--draw", "DISK/t.png"],
    "goal": ["goal", "two.goal", "--out", "DISK/two.program"],
    "goal text": ["goal", "two.goal", "--out", "DISK/other.goal"],
    "schedule": ["schedule", "collective.yaml", "--out", "DISK/s.schedule.json"],
    "design": ["design", "fabric.yaml", "--out", "DISK/design", "--write", "1", "--certificates"],
    "new": ["new", "main", "DISK/new.yaml"],
    "reproduce --pages": ["reproduce", "--pages", "--out", "DISK/pages"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the inputs and two runs."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in (
            ("tiny.yaml", CONFIG), ("claim.yaml", CLAIM), ("two.goal", PROGRAM), ("collective.yaml", COLLECTIVE),
            ("fabric.yaml", DESIGN),
        ):  # fmt: skip
            Path(name).write_text(text)
        assert main(["run", "tiny.yaml", "--out", "ran", "--jobs", "1"]) == 0
        shutil.copytree("ran", "other")
        yield folder


@pytest.fixture
def disk(home, monkeypatch):
    """A file system of 64 kB."""
    monkeypatch.chdir(home)
    place = home / "disk"
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(place):
    """Leaves no block of a file system free."""
    with (
        pytest.raises(OSError, match="No space left"),
        open(place / "ballast", "wb", buffering=0) as file,
    ):
        while True:
            file.write(bytes(4096))


def contents(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_what_was_there_and_is_reported(disk, command, capsys):
    words = [word.replace("DISK", "disk") for word in COMMANDS[command]]
    if "disk/ran" in words:
        (disk / "ran").mkdir()
        for name in ("manifest.json", "results.csv"):  # as much of a run as there is space for
            shutil.copy(Path("ran", name), disk / "ran" / name)
    fill(disk)
    before = contents(disk)
    capsys.readouterr()
    code = main(words)
    err = capsys.readouterr().err
    assert code in (1, 2), err
    assert "No space left on device" in err and "Traceback" not in err
    after = contents(disk)
    assert all(after.get(path) == content for path, content in before.items())
    added = [path for path in after.keys() - before.keys() if path.name != ".lock"]
    assert not added, added


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_can_only_be_read_is_reported(disk, command, capsys):
    words = [word.replace("DISK", "disk") for word in COMMANDS[command]]
    if "disk/ran" in words:
        (disk / "ran").mkdir()
        for name in ("manifest.json", "results.csv"):
            shutil.copy(Path("ran", name), disk / "ran" / name)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    capsys.readouterr()
    code = main(words)
    err = capsys.readouterr().err
    assert code in (1, 2) and "Read-only file system" in err and "Traceback" not in err, err


FOLDERS = {
    "judge": (["judge", "claim.yaml", "--out", "out"], "judge.json"),
    "export-routing": (["export-routing", "tiny.yaml", "--out", "out"], "routing.json"),
    "ceilings --save": (["ceilings", "tiny.yaml", "--save", "out", "--jobs", "1"], "certificates.json"),
    "compare": (["compare", "ran", "other", "--out", "out"], "compare.json"),
    "reproduce": (["reproduce", "--pages", "--out", "out"], "reproduction.json"),
    "design": (["design", "fabric.yaml", "--out", "out"], "design.yaml"),
}


@pytest.mark.long
@pytest.mark.parametrize("command", FOLDERS)
@pytest.mark.parametrize("link", ["figures", "claim.yaml", ".hidden"])
def test_no_command_writes_through_a_link(home, tmp_path, monkeypatch, command, link, capsys):
    monkeypatch.chdir(home)
    words, mark = FOLDERS[command]
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / mark).write_text("[]")
    (out / link).symlink_to(elsewhere)
    assert main([str(out) if word == "out" else word for word in words]) == 2
    assert f"holds {link}, which is a link, not a file" in capsys.readouterr().err
    assert not os.listdir(elsewhere)
