# SPDX-License-Identifier: Apache-2.0
"""Folders and claims of others are data: no command imports code that they name, or writes outside of the folder.

A run folder and certificates are changed as an attacker would; every command that takes a folder then reads each
of them while an audit hook of Python watches imports, compiled files, processes and files that are opened to write.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from matplotlib import pyplot

from flitlab.models.hashing import content_hash
from flitlab.models.jit.cache import cache_folder
from flitlab.sim.api import Experiment
from flitlab.sim.cli import main
from flitlab.sim.cli.parser import commands
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.experiment.certificates import CONFIGURATION, INDEX, sha256
from flitlab.sim.experiment.store import read_record
from tests import ROOT

CONFIG = """\
name: run
topology: {kind: torus, dims: [3]}
routing: {kind: minimal}
switching: {vcs: 4}
traffic: {kind: uniform, packet_flits: 2}
loads: [0.1, 0.3]
measure: {warmup: 10, ticks: 40, ci: null}
ceilings: [bounds]
engine: reference
outputs: {figures: [latency_load], html: true}
"""

CLAIM = """\
topology: {kind: torus, dims: [4], hosts_per_switch: 1}
traffic: uniform
reported: [{throughput: 0.9, unit: load}]
"""

EVIL = """\
import pathlib
pathlib.Path(__file__).resolve().parent.parent.joinpath("outside", "owned").write_text("by a plugin")
"""

# What watches

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """The events of a process that a folder must not cause. hostile: the folder whose code must not run."""

    def __init__(self) -> None:
        self.hostile: Path | None = None
        self.allowed: list[str] = []
        self.events: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.hostile is not None:
            with suppress(ValueError, OSError, TypeError):
                self._see(event, arguments)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and flags & WRITES:
                self._write(event, path)
            elif isinstance(path, str) and path.endswith((".py", ".pyc")) and self._is_hostile(path):
                self.events.append(f"read code {path}")
        elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate"):
            self._write(event, arguments[0])
        elif event in ("os.rename", "os.link", "os.symlink"):
            self._write(event, arguments[1])
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            if "git" not in str(arguments[0]):  # which commit flitlab is of
                self.events.append(f"{event} {arguments}")
        elif event in ("exec", "import"):
            name = getattr(arguments[0], "co_filename", None) or arguments[1]
            if isinstance(name, str) and self._is_hostile(name):
                self.events.append(f"{event} {name}")
        elif event == "pickle.find_class" and arguments[0] in ("os", "posix", "nt"):  # not those of a run's own workers
            self.events.append(f"{event} {arguments}")

    def _is_hostile(self, path: str) -> bool:
        return os.path.realpath(path).startswith(f"{self.hostile}{os.sep}")

    def _write(self, event: str, path: str | bytes) -> None:
        place = os.path.realpath(os.fsdecode(path))
        if place != os.devnull and not any(f"{place}{os.sep}".startswith(f"{home}{os.sep}") for home in self.allowed):
            self.events.append(f"{event} {place}")


WATCH = Watch()
sys.addaudithook(WATCH)


@contextmanager
def watched(hostile: Path, *allowed: Path) -> Iterator[Watch]:
    """Records what happens that must not. allowed: folders that may be written to."""
    WATCH.hostile, WATCH.events = hostile.resolve(), []
    WATCH.allowed = [os.path.realpath(path) for path in allowed]
    try:
        yield WATCH
    finally:
        WATCH.hostile = None


# What is hostile: each changes a run folder, and the certificates below it


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    """A folder with a run, its certificates in ``proofs``, a claim, and the configuration that its user keeps."""
    home = tmp_path_factory.mktemp("honest")
    (home / "own.yaml").write_text(CONFIG)
    assert main([str(home / "own.yaml"), "--out", str(home / "run"), "--jobs", "1"]) == 0
    assert main(["ceilings", str(home / "own.yaml"), "--save", str(home / "run/proofs"), "--jobs", "1"]) == 0
    (home / "run/claim.yaml").write_text(CLAIM)
    return home


@pytest.fixture
def home(honest, tmp_path, monkeypatch) -> Path:
    """A copy of that, in which ``run`` is to become hostile, beside a folder ``outside`` that nothing may touch."""
    shutil.copytree(honest, tmp_path / "home")
    (tmp_path / "home/outside").mkdir()
    (tmp_path / "home/outside/kept").write_text("kept")
    (tmp_path / "home/run/evil.py").write_text(EVIL)
    (tmp_path / "home/run/evil_module.py").write_text(EVIL)
    monkeypatch.syspath_prepend(tmp_path / "home/run")
    (tmp_path / "home/work").mkdir()
    monkeypatch.chdir(tmp_path / "home/work")
    return tmp_path / "home"


def manifest(run: Path, **changes: Any) -> dict[str, Any]:
    """The manifest with these changes."""
    described = {**json.loads((run / "manifest.json").read_text()), **changes}
    (run / "manifest.json").write_text(json.dumps(described))
    return described


def rewritten(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = yaml.safe_load(file.read_text())
    change(value)
    file.write_text(yaml.safe_dump(value, sort_keys=False))


def indexed(run: Path) -> None:
    """Makes the index name the configuration of the certificates as it is."""
    index = json.loads((run / "proofs" / INDEX).read_text())
    index["configuration"] = sha256(run / "proofs" / CONFIGURATION)
    for entry in index["certificates"]:
        entry["sha256"] = sha256(run / "proofs" / entry["file"])
    (run / "proofs" / INDEX).write_text(json.dumps(index))


def with_plugins(run: Path, plugins: list[str]) -> None:
    """Names plugins wherever a configuration stands, and a figure that only they can know."""
    for name in ("config.yaml", "config.resolved.yaml", "proofs/config.resolved.yaml", "claim.yaml"):
        rewritten(run / name, lambda value: value.update(plugins=plugins))
    resolved = yaml.safe_load((run / "config.resolved.yaml").read_text())
    name = resolved.pop("name")
    manifest(run, figures=["evil"], config_hash=content_hash(resolved), name=name)
    indexed(run)


def a_plugin_by_its_path(run: Path) -> None:
    with_plugins(run, [str(run / "evil.py")])


def a_plugin_beside_it(run: Path) -> None:
    with_plugins(run, ["evil.py", "../run/evil.py"])


def a_plugin_by_its_module(run: Path) -> None:
    with_plugins(run, ["evil_module"])


def changes_in_the_manifest(run: Path) -> None:
    """What a worker was called with, as the manifest has it, names a plugin that no YAML there names."""
    evil = f"--set plugins=[{run / 'evil.py'}]"
    manifest(run, changes=[evil, "--quick"], path=str(run / "config.yaml"), file=str(run / "evil.py"),
             command=["simrun", evil], engine="compiled", plugins=[str(run / "evil.py")])  # fmt: skip


def an_engine_by_its_path(run: Path) -> None:
    manifest(run, engine="evil_module:Engine")
    for name in ("config.resolved.yaml", "proofs/config.resolved.yaml"):
        rewritten(run / name, lambda value: value.update(engine="evil_module:Engine"))
    indexed(run)


def kinds_by_their_paths(run: Path) -> None:
    for name in ("config.resolved.yaml", "proofs/config.resolved.yaml", "claim.yaml"):
        rewritten(run / name, lambda value: value.update(topology={"kind": "evil_module.Topology"}))
    manifest(run, figures=["evil_module", "../evil_module"], metrics=["evil_module"])
    indexed(run)


def names_that_lead_outside(run: Path) -> None:
    """Every name from which a file's could be made."""
    out = "../outside/x"
    described = json.loads((run / "manifest.json").read_text())
    scenario = described["scenarios"][0]
    scenario |= {"label": out, "ceilings": [out], "hash": "x"}
    manifest(
        run, name=out, scenarios=[scenario], figures=["latency_load"], tables={"results.csv": "0"},
        drawn={"stamp": "x", "files": {out: "x", f"{out}.png": "x"}}, path=str(run.parent / "outside/kept"),
    )  # fmt: skip
    for name in ("results.csv", "ceilings.csv"):
        text = (run / name).read_text()
        (run / name).write_text(text.replace("\nrun,", f"\n{out},"))
    for name in ("config.resolved.yaml", "config.yaml", "claim.yaml"):
        rewritten(run / name, lambda value: value.update(name=out))
    index = json.loads((run / "proofs" / INDEX).read_text())
    for entry in index["certificates"]:
        entry["file"] = str(run.parent / "outside/kept")
    (run / "proofs" / INDEX).write_text(json.dumps(index))


def tables_that_lead_outside(run: Path) -> None:
    manifest(run, tables={"../outside/kept": "0", str(run.parent / "outside/kept"): "0"})


def plots_that_lead_outside(run: Path) -> None:
    manifest(run, plots=[{"y": "accepted", "x": "load", "name": "../../outside/x"}], experiment="search")


class Bomb:
    """An object whose pickle runs code."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("echo by a pickle > ../outside/owned",)


def pickles(run: Path) -> None:
    """Pickles in place of every file that a run keeps, and arrays of objects in the certificates."""
    bomb = pickle.dumps(Bomb())
    for file in (*run.glob("points/*"), *run.glob("ceilings/*"), *run.glob("topologies/*"), run / "results.csv"):
        file.write_bytes(bomb)
    (run / ".scenarios-0").mkdir()
    (run / ".scenarios-0" / f"{json.loads((run / 'manifest.json').read_text())['scenarios'][0]['hash']}.pickle"
     ).write_bytes(bomb)  # fmt: skip
    for file in run.glob("proofs/*/*.npz"):
        arrays = dict(np.load(file)) | {"network": np.array([Bomb()], object)}
        np.savez(file, **arrays)
    indexed(run)


def tags(run: Path) -> None:
    for name in ("config.yaml", "config.resolved.yaml", "proofs/config.resolved.yaml", "claim.yaml"):
        text = (run / name).read_text()
        (run / name).write_text(f"{text}\nx: !!python/object/apply:os.system ['echo > ../outside/owned']\n")
    indexed(run)


def files_that_libraries_look_for(run: Path) -> None:
    """What Python, pytest, NumPy, Numba and matplotlib would read in the current folder, or in one of them."""
    for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "numpy.py", "flitlab.py", "matplotlib.py"):
        (run / name).write_text(EVIL)
    (run / "matplotlibrc").write_text("backend: module://evil_module\ntext.usetex: True\n")
    (run / ".numba_config.yaml").write_text("cache_dir: ../outside\n")
    (run / ".env").write_text("PYTHONSTARTUP=evil.py\nPYTHONPATH=.\n")


HOSTILE = [
    a_plugin_by_its_path, a_plugin_beside_it, a_plugin_by_its_module, changes_in_the_manifest, an_engine_by_its_path,
    kinds_by_their_paths, names_that_lead_outside, tables_that_lead_outside, plots_that_lead_outside, pickles, tags,
    files_that_libraries_look_for,
]  # fmt: skip

# What reads it

READERS: dict[str, Callable[[str, str, str], list[list[str]]]] = {
    "report": lambda run, own, out: [["report", run]],
    "plot": lambda run, own, out: [
        ["plot", run], ["plot", run, "--figures", "evil"], ["plot", run, "--figures", "latency_load", "network"],
    ],
    "compare": lambda run, own, out: [
        ["compare", run, f"{run}/../kept"], ["compare", f"{run}/../kept", run, "--out", out],
    ],
    "merge": lambda run, own, out: [["merge", run, "--out", out], ["merge", own, run], ["merge", run]],
    "ceilings": lambda run, own, out: [
        ["ceilings", "--verify", f"{run}/proofs"], ["ceilings", "--verify", run],
        ["ceilings", own, "--out", run], ["ceilings", own, "--save", f"{run}/proofs"],
    ],
    "judge": lambda run, own, out: [
        ["judge", f"{run}/claim.yaml", "--out", out], ["judge", f"{run}/../claim.yaml", "--out", run],
        ["judge", f"{run}/claim.yaml"],
    ],
    "reproduce": lambda run, own, out: [
        ["reproduce", "--pages", f"{run}/..", "--out", out], ["reproduce", "--pages", "--out", run],
    ],
    "run": lambda run, own, out: [["run", own, "--out", run]],
    "worker": lambda run, own, out: [["worker", "--shard", "1/2", own, "--out", run]],
    "budget": lambda run, own, out: [["budget", own, "--out", run, "--set", "budget.of=[]"]],
    "export-routing": lambda run, own, out: [["export-routing", own, "--out", run]],
    "view": lambda run, own, out: [["view", own, "--ticks", "20", "--out", f"{run}/view.html"]],
    "trace": lambda run, own, out: [["trace", own]],
    "goal": lambda run, own, out: [["goal", run], ["goal", f"{run}/manifest.json"]],
    "schedule": lambda run, own, out: [["schedule", f"{run}/manifest.json"]],
    "convert": lambda run, own, out: [
        ["convert", f"{run}/{name}", "--to", kind, "--out", f"{out}.x"]
        for name in ("manifest.json", "config.yaml", ".") for kind in ("json", "demands", "goal")
    ],
    "topology": lambda run, own, out: [
        ["topology", run], ["topology", f"kind=file,path={run}/manifest.json"],
        ["topology", own, "--export", f"{run}/t.json"],
    ],
    "show": lambda run, own, out: [["show", "latency_load"], ["show", "evil"]],
    "list": lambda run, own, out: [["list"]],
    "check": lambda run, own, out: [["check", own], ["check", run]],
    "quick": lambda run, own, out: [["quick", own, "--jobs", "1"]],
}  # fmt: skip
"""Command -> calls of it on a run folder, with a configuration of the user's own, and a place to write to."""

NO_FOLDER = {"new", "schema", "completion", "simgrid", "design"}
"""Commands that read no folder: of ``simgrid`` and ``design`` the folder is one to write to."""


def test_every_command_is_tried():
    assert READERS.keys() | NO_FOLDER == commands().keys()


def in_python(run: Path) -> None:
    """What Python offers in place of the commands."""
    experiment = Experiment.open(run)
    for use in (
        lambda: experiment.study, lambda: experiment.results, lambda: experiment.ceilings, lambda: experiment.check(),
        lambda: experiment.plot(), lambda: experiment.plot("evil"), lambda: experiment.dataset(),
        lambda: experiment.scenarios, lambda: experiment.columns, lambda: repr(experiment),
        lambda: experiment.run(jobs=1),
    ):  # fmt: skip
        with suppress(Exception):  # what it says does not matter here
            use()
    pyplot.close("all")


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def call(arguments: list[str]) -> None:
    jobs = ["--jobs", "1"] if arguments[0] in ("run", "worker", "budget", "ceilings") else []
    with suppress(SystemExit):
        assert main([*arguments, *jobs]) in (0, 1, 2, 3)


def tried(home: Path, use: Callable[[], None]) -> list[str]:
    """What a use of the hostile folder did that it must not."""
    before, modules = content_of(home / "outside"), set(sys.modules)
    allowed = [*(home / name for name in ("run", "out", "work", "tmp")), Path(cache_folder()).parent]
    with watched(home / "run", *allowed) as watch:
        use()
    imported = [name for name in set(sys.modules) - modules if "evil" in name]
    for name in imported:
        del sys.modules[name]
    changed = content_of(home / "outside") != before
    return [*watch.events, *imported, *["outside has changed"] * changed]


@pytest.fixture(scope="module", autouse=True)
def _warm(honest):
    """Lets libraries write their caches, and import all that they import late, before anybody watches."""
    Experiment.open(honest / "run").plot()
    main(["report", str(honest / "run")])


@pytest.mark.long
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda change: change.__name__)
def test_nothing_runs_and_nothing_is_written_outside(hostile, home, monkeypatch):
    (home / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(home / "tmp"))
    shutil.copytree(home / "run", home / "kept")
    (home / "claim.yaml").write_text(CLAIM)
    hostile(home / "run")
    whole = home / "whole"
    shutil.copytree(home / "run", whole, symlinks=True)
    wrong: list[str] = []
    for calls in READERS.values():
        for arguments in calls(str(home / "run"), str(home / "own.yaml"), str(home / "out")):
            wrong += (f"{arguments}: {did}" for did in tried(home, lambda arguments=arguments: call(arguments)))
            shutil.rmtree(home / "run")
            shutil.copytree(whole, home / "run", symlinks=True)
            shutil.rmtree(home / "out", ignore_errors=True)
    wrong += (f"Python: {did}" for did in tried(home, lambda: in_python(home / "run")))
    assert not wrong, "\n".join(wrong)


def test_the_watch_sees_what_it_must(home):
    """Every plugin, pickle and file outside is seen: a test that sees nothing would prove nothing."""
    a_plugin_by_its_path(home / "run")
    did = tried(home, lambda: call(["merge", str(home / "run"), "--out", str(home / "out"), "--trust-plugins"]))
    assert any(event.startswith("exec ") for event in did) and "outside has changed" in did
    (home / "outside/owned").unlink()
    did = tried(home, lambda: pickle.loads(pickle.dumps(Bomb())))
    assert any(event.startswith("pickle.find_class") for event in did)
    did = tried(home, lambda: (home / "outside/other").write_text("x"))
    assert did[0].startswith("open ") and "outside has changed" in did
    did = tried(home, lambda: subprocess.run(["true"], check=True))
    assert any(event.startswith("subprocess.Popen") for event in did)


@pytest.mark.parametrize("options", [["--trust-plugins"], ["--plugin"]])
def test_plugins_are_imported_that_the_user_trusts(options, home, capsys):
    run = home / "run"
    a_plugin_by_its_path(run)
    options = [*options, str(run / "evil.py")] if options == ["--plugin"] else options
    for arguments in (
        ["merge", str(run)], ["plot", str(run), "--figures", "evil"], ["ceilings", "--verify", str(run / "proofs")],
        ["judge", str(run / "claim.yaml"), "--out", str(home / "out")],
    ):  # fmt: skip
        code = main(arguments)
        assert code in (2, 3) and "--trust-plugins" in "".join(capsys.readouterr())
        assert not (home / "outside/owned").exists()
        main([*arguments, *options])
        assert "--trust-plugins" not in "".join(capsys.readouterr())
        (home / "outside/owned").unlink()
        del sys.modules["flitlab_plugin_evil"]


def test_python_imports_the_plugins_of_a_folder_that_is_trusted(home):
    a_plugin_by_its_path(home / "run")
    with pytest.raises(ConfigError, match="trust_plugins=True"):
        _ = Experiment.open(home / "run").study
    with pytest.raises(ConfigError, match="trust_plugins=True"):
        Experiment.open(home / "run").plot("evil")
    assert not (home / "outside/owned").exists()
    assert Experiment.open(home / "run", trust_plugins=True).study.name == "run"
    assert (home / "outside/owned").exists()
    del sys.modules["flitlab_plugin_evil"]


def test_a_configuration_that_the_user_names_imports_its_plugins(home):
    (home / "own.yaml").write_text(f"{CONFIG}plugins: [run/evil.py]\n")
    for arguments in (["check"], ["run", "--out", str(home / "out"), "--jobs", "1"], ["ceilings"]):
        assert main([arguments[0], str(home / "own.yaml"), *arguments[1:]]) == 0
        (home / "outside/owned").unlink()
        del sys.modules["flitlab_plugin_evil"]


def test_merge_builds_the_study_of_the_resolved_configuration(home, capsys):
    """What the manifest says that a worker was called with changes nothing, and another configuration is an error."""
    run = home / "run"
    changes_in_the_manifest(run)
    assert main(["merge", str(run), "--out", str(home / "out")]) == 0
    assert json.loads((home / "out/manifest.json").read_text())["engine"] == "reference"
    assert [len(list((home / name / "points").iterdir())) for name in ("out", "run")] == [2, 2]
    capsys.readouterr()
    rewritten(run / "config.resolved.yaml", lambda value: value.update(loads=[0.1]))
    assert main(["merge", str(run)]) == 2
    assert "manifest.json does not match config.resolved.yaml" in capsys.readouterr().err


@pytest.mark.long
def test_the_current_folder_is_data(home):
    """A run folder that one has changed into: what libraries look for there runs nothing. As ``simrun`` is installed,
    the current folder is no place of modules."""
    run = home / "run"
    files_that_libraries_look_for(run)
    words = {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    for arguments in (["report", "."], ["plot", "."], ["merge", "."], ["ceilings", "--verify", "proofs"]):
        done = subprocess.run(
            [sys.executable, "-m", "flitlab", *arguments], cwd=run, env={**os.environ, **words},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert content_of(home / "outside") == {"kept": b"kept"}


def test_records_are_read_as_records(home):
    """The points that a folder holds are still there after all of that: it is not the copies that are broken."""
    for file in (home / "run/points").iterdir():
        assert read_record(home / "run", f"points/{file.name}") is not None
