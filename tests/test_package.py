# SPDX-License-Identifier: Apache-2.0
"""What users install: a wheel with the one name ``flitlab``, the same from a checkout and from an sdist."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import flitlab
from tests import ROOT

pytestmark = pytest.mark.long

DATA = ("*.yaml", "*.html", "*.css", "*.js", "*.csv", "*.mplstyle")
PACKAGES = ("models", "fluid", "sim")
NOT_OF_A_CHECKOUT = shutil.ignore_patterns(
    ".git", ".*cache", "__pycache__", "build", "*.egg-info", "runs", "site", ".venv"
)


def python(*arguments, cwd):
    """Runs Python with what it needs installed; nothing is downloaded, and our folder is not on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel_of(source, folder):
    """The wheel that ``pip`` makes of a folder or an sdist."""
    python(
        "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, source, cwd=folder.parent
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel of a checkout, the sdist, and the wheel of the sdist."""
    folder = tmp_path_factory.mktemp("package")
    for copy in ("one", "two"):  # builds leave files behind
        shutil.copytree(ROOT, folder / copy, symlinks=True, ignore=NOT_OF_A_CHECKOUT)
    backend = f"from setuptools import build_meta; build_meta.build_sdist({str(folder / 'sdist')!r})"
    (folder / "sdist").mkdir()
    python("-c", backend, cwd=folder / "two")
    (sdist,) = (folder / "sdist").glob("*.tar.gz")
    return wheel_of(folder / "one", folder / "direct"), sdist, wheel_of(sdist, folder / "indirect")


def files_of(wheel):
    """Names and bytes of what is in a wheel; of RECORD, which lists them with the order of building, only its lines."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return {name: sorted(data.split()) if name.endswith("/RECORD") else data for name, data in files.items()}


def ours(pattern):
    """Names in the wheel of our files that match a pattern."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob(pattern)]
    return {f"flitlab/{path.relative_to(ROOT).as_posix()}" for path in found}


def test_the_wheel_holds_one_name(built):
    with zipfile.ZipFile(built[0]) as archive:
        (top,) = (name for name in archive.namelist() if name.endswith("/top_level.txt"))
        assert archive.read(top).decode().split() == ["flitlab"]
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert {folder.partition("-")[0] for folder in folders} == {"flitlab"}


def test_the_wheel_of_the_sdist_is_that_of_the_checkout(built):
    direct, indirect = files_of(built[0]), files_of(built[2])
    assert sorted(direct) == sorted(indirect)
    assert [name for name in direct if direct[name] != indirect[name]] == []
    assert built[0].name == built[2].name


@pytest.mark.parametrize("pattern", ["*.py", *DATA])
def test_every_file_is_in_the_wheel(built, pattern):
    assert ours(pattern), "there are such files"
    assert ours(pattern) <= set(files_of(built[0]))


def test_published_configurations_are_in_the_wheel(built):
    names = set(files_of(built[0]))
    wanted = {path.name for path in (ROOT / "configs" / "paper").glob("*.yaml")}
    assert wanted == {Path(name).name for name in names if "/share/flitlab/configs/paper/" in name}


def test_all_configurations_are_in_the_wheel(built):
    names = {name.partition("/share/flitlab/configs/")[2] for name in files_of(built[0])}
    wanted = {path.relative_to(ROOT / "configs").as_posix() for path in (ROOT / "configs").rglob("*.*")}
    assert {"quick.yaml", "lossless_victim.csv", "routing/ksp.yaml"} <= wanted <= names


def test_the_sdist_has_tests_and_configurations_and_the_wheel_no_tests(built):
    with tarfile.open(built[1]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for folder, pattern in (("tests", "*.py"), ("configs", "*.yaml"), ("benchmarks", "*.py"), ("docs", "*.md")):
        wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern)}
        assert wanted and wanted <= inside
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "SECURITY.md", "paper.md"} <= inside
    assert not [name for name in files_of(built[0]) if "tests" in Path(name).parts]


def test_the_wheel_says_that_it_is_typed_and_which_version_it_is(built):
    files = files_of(built[0])
    (metadata,) = (data.decode() for name, data in files.items() if name.endswith(".dist-info/METADATA"))
    assert "flitlab/py.typed" in files
    assert f"\nVersion: {flitlab.__version__}\n" in metadata and "\nClassifier: Typing :: Typed\n" in metadata


def test_every_file_has_the_licence_of_the_package():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (said,) = tomllib.loads((ROOT / "REUSE.toml").read_text("utf-8"))["annotations"]
    assert (said["path"], said["SPDX-License-Identifier"]) == ("**", package["license"])
    assert said["SPDX-FileCopyrightText"] == package["authors"][0]["name"]
    text = (ROOT / "LICENSES" / f"{package['license']}.txt").read_text("utf-8")
    assert text == (ROOT / "LICENSE").read_text("utf-8")
    line = f"# SPDX-License-Identifier: {package['license']}\n"
    sources = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    assert not [path for path in sources if not path.read_text("utf-8").startswith(line)]


def test_those_who_cite_are_told_the_same_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == flitlab.__version__ and cited["cff-version"] == "1.2.0"
    assert f"({flitlab.__version__})" in (ROOT / "CHANGELOG.md").read_text("utf-8")


SMALL = """
topology: {kind: imase, n: 6, degree: 2}
routing: {kind: minimal}
traffic: {kind: uniform}
loads: [0.1]
engine: reference
measure: {warmup: 50, ticks: 200, ci: null}
ceilings: [mcf]
"""
"""A run that compiles little: the machine code of other sources is of no use to those that were installed."""


def test_what_is_installed_runs_without_the_checkout(built, tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL)
    with zipfile.ZipFile(built[2]) as archive:
        archive.extractall(tmp_path)
    code = (
        f"import flitlab, flitlab.sim.cli as c; assert flitlab.__file__.startswith({str(tmp_path)!r});"
        f"assert c.main(['small.yaml', '--out', 'run', '--jobs', '1']) == 0"
    )
    python("-c", code, cwd=tmp_path)
    assert (tmp_path / "run" / "results.csv").exists() and (tmp_path / "run" / "report.html").exists()
