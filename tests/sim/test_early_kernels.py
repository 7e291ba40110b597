# SPDX-License-Identifier: Apache-2.0
"""Compilation in the background: it is the kernel that the run needs, and a process that ends with it."""

import os
import pickle
import subprocess
import sys

import pytest
import yaml

from flitlab.models.jit import UNCOMPILED
from flitlab.models.jit.cache import any_compiled
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.table import kernel_key
from flitlab.sim.experiment import early_kernels
from flitlab.sim.experiment.early_kernels import scenario_of, small_networks
from tests import ROOT


@pytest.mark.parametrize("name", ["uniform_mddp", "quick", "transpose_mddp", "routing/ksp", "routing/valiant"])
def test_the_kernel_is_that_of_the_run(name):
    file = ROOT / "configs" / f"{name}.yaml"
    scenario = scenario_of(small_networks(file))
    assert kernel_key(scenario) in {kernel_key(one.scenario) for one in read(file).cases}


def test_python_builds_the_same_network_uncompiled():
    files = [str(ROOT / "configs" / f"{name}.yaml") for name in ("uniform_mddp", "quick", "uniform_jellyfish")]
    program = "import sys; from flitlab.sim.experiment.early_kernels import scenario_of, small_networks\n"
    program += "for file in sys.argv[1:]: print(scenario_of(list(small_networks(file))[:1]).content_hash)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-X", UNCOMPILED, "-W", "error::RuntimeWarning", "-c", program, *files]
    built = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert built == [scenario_of(small_networks(file)).content_hash for file in files]


def test_the_kernel_is_compiled_by_a_process_that_compiles(monkeypatch):
    handed = []

    def execv(program, command):
        assert program == command[0] == sys.executable and UNCOMPILED not in command
        with os.fdopen(os.dup(int(command[-1])), "rb") as file:
            handed.append(pickle.load(file))

    monkeypatch.setattr(os, "execv", execv)
    early_kernels.hand_over("configs/quick.yaml")
    assert kernel_key(handed[0]) == kernel_key(read("configs/quick.yaml").cases[0].scenario)


@pytest.mark.parametrize(
    "config", [None, [], {}, {"switching": {"mode": "vct"}}, {"switching": "vct", "traffic": {"kind": "uniform"}},
               {"switching": {}, "traffic": {"kind": "uniform"}, "engine": "reference"},
               {"switching": {}, "traffic": {"kind": "uniform"}, "application": {"kind": "all_to_all"}}],
)  # fmt: skip
def test_where_the_kernel_is_unknown_nothing_is_compiled(config, tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert list(small_networks(tmp_path / "c.yaml")) == []
    early_kernels.hand_over(str(tmp_path / "c.yaml"))  # this process is not replaced


def test_the_process_ends_with_the_run(monkeypatch):
    started = []

    class Sleeping(subprocess.Popen):
        def __init__(self, command, **streams):
            started.append(self)
            super().__init__(["sleep", "60"], **streams)

    monkeypatch.setattr(subprocess, "Popen", Sleeping)
    monkeypatch.setattr(early_kernels, "cores", lambda: 2)
    for compiled, processes, expected in ((True, None, 0), (False, 1, 0), (False, None, 1), (False, 4, 2)):
        monkeypatch.setattr(early_kernels, "any_compiled", lambda compiled=compiled: compiled)
        with early_kernels.compiling_kernels("c.yaml", processes):
            assert len(started) == expected
        assert all(process.poll() is not None for process in started)


@pytest.mark.parametrize(("text", "status"), [("a: [1", 1), ("switching: 3", 0)])
def test_the_process_ends_by_itself(tmp_path, text, status):
    """By no signal, which would leave a core dump where the run is started, and while its standard input is open."""
    (tmp_path / "c.yaml").write_text(text)
    command, nowhere = [*early_kernels.UNCOMPILED_COMMAND, str(tmp_path / "c.yaml")], subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere) as process:
        assert process.wait(60) == status


def test_modules_of_the_current_folder_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "yaml.py").write_text("import pathlib; pathlib.Path('seen').touch()")
    (tmp_path / "c.yaml").write_text("switching: 3\n")
    monkeypatch.setattr(early_kernels, "cores", lambda: 2)
    monkeypatch.setattr(early_kernels, "any_compiled", lambda: False)
    monkeypatch.setattr(subprocess.Popen, "kill", subprocess.Popen.wait)
    with early_kernels.compiling_kernels(tmp_path / "c.yaml", None):
        pass
    assert not (tmp_path / "seen").exists()


def test_marks_of_sets_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    assert not any_compiled()
    (tmp_path / "0123.ready").touch()
    assert any_compiled()
