# SPDX-License-Identifier: Apache-2.0
"""The list of files to touch in docs/architecture.md is true: toys that stand where it says are part of flitlab."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
NAMES = {
    "a topology": "ladder", "a routing": "highest", "a switching mode": "pipe",
    "a switching mode whose links fail": "relay", "a ceiling": "one_hop",
    "a column": "heard", "a figure": "heard_load", "a command": "hosts",
}  # fmt: skip
CONFIG = """\
name: toys
topology: {kind: ladder, rungs: 3, hosts_per_switch: 2}
routing: {kind: highest}
traffic: {kind: uniform, packet_flits: 2}
switching: {mode: pipe, delay: 7}
loads: [0.1, 0.3]
measure: {warmup: 50, ticks: 200, ci: null}
engine: both
ceilings: [mcf, one_hop]
outputs: {formats: [png]}
"""
FAILURE = """\
timeline:
  - {at_tick: 100, fail: {links: [[0, 1], [2, 3]]}, reroute_after: 20}
"""
LINES = {"a switching mode whose links fail": 240}
"""Lines that an example may take, where it is not 120."""


def listed():
    """What is added -> (files to touch, files of the example), as the table of the page has them."""
    table = PAGE[PAGE.index("| to add |") :].split("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return {what.strip(): tuple(re.findall(r"`([^`]+)`", cell) for cell in cells) for what, *cells in rows}


@pytest.fixture
def house(tmp_path):
    """A copy of the sources in which every toy stands at the place that the page names."""
    source = tmp_path / "src" / "flitlab"
    for folder in ("models", "fluid", "sim"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "flitlab" / "__init__.py", source)
    for what, (files, examples) in listed().items():
        for file, example in zip(files, examples, strict=True):
            place = source / file.replace("NAME", NAMES[what])
            assert place.parent.is_dir() and not place.exists(), f"{place}: the page names another place"
            place.write_text((ROOT / example).read_text("utf-8"), "utf-8")
    settle(source, "pipe", "tests.toys.discipline")
    settle(source, "relay", "tests.toys.relay")
    return tmp_path


def settle(source, name, package):
    """Moves the entry of a toy mode into a file of its own, as the page says of switching modes of flitlab's own."""
    place = "sim/engines/switching_modes/NAME.py"
    assert place in PAGE
    model, entry = source / "models" / "switching" / f"{name}.py", source / place.replace("NAME", name)
    text = model.read_text("utf-8")
    start = text.index("@runs(")
    for kind in ("compiled", "reference"):
        text = text.replace(f"{package}.{kind}", f"flitlab.sim.engines.{kind}.{name}")
    imports = [line for line in text.splitlines() if "sim.engines.table" in line]
    model.write_text("\n".join(line for line in text[:start].splitlines() if line not in imports) + "\n", "utf-8")
    imports.insert(0, f"from flitlab.models.switching.{name} import {name.capitalize()}")
    entry.write_text("\n".join(imports) + "\n\n\n" + text[start:], "utf-8")


def simrun(house, *words):
    environment = {**os.environ, "PYTHONPATH": str(house / "src")}
    command = [sys.executable, "-m", "flitlab", *words]
    done = subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_row_of_the_page_has_an_example():
    assert listed().keys() == NAMES.keys()
    for what, (files, examples) in listed().items():
        assert files and len(files) == len(examples), what
        lines = sum(len((ROOT / example).read_text("utf-8").splitlines()) for example in examples)
        assert lines <= LINES.get(what, 120), f"{what}: {lines} lines"


def test_files_that_the_page_names_are_there():
    named = set(re.findall(r"`((?:models|fluid|sim|tests|benchmarks|docs)/[\w/.]*)", PAGE))
    lost = sorted(name for name in named if "NAME" not in name and not (ROOT / name).exists())
    assert not lost


@pytest.mark.long
def test_a_command_is_one_file(house):
    (house / "toys.yaml").write_text(CONFIG.replace("{mode: pipe, delay: 7}", "{vcs: 8}"))
    assert simrun(house, "hosts", "toys.yaml").endswith(": 12 hosts\n")
    assert "print the number of hosts of every scenario" in simrun(house, "--help")
    (house / "src" / "flitlab" / "sim" / "cli" / "hosts.py").unlink()
    assert "hosts" not in simrun(house, "--help")


@pytest.mark.long
def test_toys_at_the_places_that_the_page_names(house):
    (house / "toys.yaml").write_text(CONFIG)
    everything = simrun(house, "list")
    names = ("ladder", "highest", "pipe", "relay", "one_hop", "hosts_heard", "heard_load")
    assert all(name in everything for name in names)
    assert "pipe" in simrun(house, "check", "toys.yaml")
    simrun(house, "toys.yaml", "--out", "out", "--jobs", "1")
    with (house / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok", "ok"] and all(float(row["hosts_heard"]) > 0 for row in rows)
    with (house / "out" / "ceilings.csv").open(newline="") as file:
        assert {row["ceiling"] for row in csv.DictReader(file)} >= {"mcf", "one_hop"}
    assert list((house / "out" / "figures").glob("heard_load.png"))  # by default, as its file says
    report = (house / "out" / "report.html").read_text("utf-8")
    assert '<th scope="col">hosts_heard' in report and "Hosts that are heard over offered traffic." in report

    failing = CONFIG.replace("{mode: pipe, delay: 7}", "{mode: relay}").replace("highest", "minimal") + FAILURE
    (house / "failing.yaml").write_text(failing)
    simrun(house, "failing.yaml", "--out", "failing", "--jobs", "1")
    with (house / "failing" / "results.csv").open(newline="") as file:
        assert sum(int(row["lost_packets"]) for row in csv.DictReader(file)) > 0


def test_the_toys_are_plugins_too(tmp_path):
    """The same files, named under ``plugins:``, without a copy of anything."""
    examples = [ROOT / examples[0] for what, (_, examples) in listed().items() if what in ("a topology", "a routing")]
    text = CONFIG.replace("{mode: pipe, delay: 7}", "{vcs: 8, buffer_flits: 8}").replace(", one_hop", "")
    text = text.replace("{formats: [png]}", "{figures: [], html: false}").replace("engine: both", "engine: reference")
    (tmp_path / "toys.yaml").write_text(text + "plugins: [" + ", ".join(map(str, examples)) + "]\n")
    from flitlab.sim.cli import main

    assert main([str(Path(tmp_path / "toys.yaml")), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
