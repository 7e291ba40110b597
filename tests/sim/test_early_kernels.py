# SPDX-License-Identifier: Apache-2.0
"""Compilation in the background: it is the kernel that the run needs, and a process that ends with it."""

import subprocess

import pytest
import yaml

from flitlab.models.jit.cache import any_compiled
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.table import kernel_key
from flitlab.sim.experiment import early_kernels
from tests import ROOT


@pytest.mark.parametrize("name", ["uniform_mddp", "quick", "transpose_mddp", "routing/ksp", "routing/valiant"])
def test_the_kernel_is_that_of_the_run(name):
    file = ROOT / "configs" / f"{name}.yaml"
    scenario = early_kernels.scenario_of(yaml.safe_load(file.read_text()))
    assert kernel_key(scenario) in {kernel_key(one.scenario) for one in read(file).cases}


@pytest.mark.parametrize(
    "config", [None, [], {}, {"switching": {"mode": "vct"}}, {"switching": "vct", "traffic": {"kind": "uniform"}},
               {"switching": {}, "traffic": {"kind": "uniform"}, "engine": "reference"},
               {"switching": {}, "traffic": {"kind": "uniform"}, "application": {"kind": "all_to_all"}}],
)  # fmt: skip
def test_where_the_kernel_is_unknown_nothing_is_compiled(config):
    assert list(early_kernels.small(config)) == []


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
