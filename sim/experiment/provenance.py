# SPDX-License-Identifier: Apache-2.0
"""What a result comes from: the source of flitlab, the libraries under it, and the machine."""

import os
import platform
import re
import subprocess
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from typing import Any

import flitlab

ROOT = Path(flitlab.__file__).resolve().parents[1]
"""The folder that holds the package: of a checkout, its own."""

LIBRARIES = (
    "highspy", "igraph", "llvmlite", "matplotlib", "networkx", "numba", "numpy", "pandas", "pydantic", "pymetis",
    "PyYAML", "rich", "scipy", "shtab", "simpy", "typing_extensions",
)  # fmt: skip
"""What flitlab is built on."""


def versions() -> dict[str, str | None]:
    """The versions of flitlab, of all libraries that it is built on, and of Python; None of what is not installed."""
    libraries = {name: _version(name) for name in LIBRARIES}
    return {"flitlab": flitlab.__version__, **libraries, "python": platform.python_version()}


@cache
def source() -> dict[str, Any]:
    """The source of flitlab: commit, whether files differ from it, and where the repository is; None of each unknown.

    Without a checkout the version alone says which source it is.
    """
    commit = _git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    changed = None if commit is None else bool(_git("status", "--porcelain", "--untracked-files=no"))
    remote = None if commit is None else _git("config", "--get", "remote.origin.url")
    return {"commit": commit, "modified": changed, "repository": _without_secret(remote) if remote else _published()}


def machine() -> dict[str, Any]:
    """The processor that this runs on, and how many of its cores there are."""
    return {"processor": processor(), "cores": os.cpu_count(), "architecture": platform.machine()}


@cache
def processor() -> str:
    """The name of the processor, as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def install_commands(source_record: dict[str, Any], number: str | None) -> list[str]:
    """The commands that install the flitlab of a run. found: as :func:`source` gave it. number: its version.

    >>> how_to_get({}, "0.1.0")
    ['pip install flitlab==0.1.0']
    >>> how_to_get({"commit": "1f3f44f", "modified": True, "repository": None}, "0.1.0")
    ['# flitlab 0.1.0, commit 1f3f44f with changes that are in no commit', 'git checkout 1f3f44f && pip install .']
    """
    commit, repository = source_record.get("commit"), source_record.get("repository")
    if not commit:
        return [
            f"pip install flitlab=={number}" if number else "# flitlab from its source, of a version that is not known"
        ]
    changes = " with changes that are in no commit" if source_record.get("modified") else ""
    get = f"git clone {repository} flitlab && cd flitlab && " if repository else ""
    return [f"# flitlab {number}, commit {commit}{changes}", f"{get}git checkout {commit} && pip install ."]


def _git(*words: str) -> str | None:
    """What a command of git prints about the checkout; None where there is no git, or no such thing."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _without_secret(url: str) -> str:
    """An address without the name and password that it may hold.

    >>> _without_secret("https://me:secret@example.org/flitlab"), _without_secret("git@example.org:flitlab")
    ('https://example.org/flitlab', 'git@example.org:flitlab')
    """
    return re.sub(r"^(\w+://)[^/@]*@", r"\1", url)


def _published() -> str | None:
    """The address of the repository that the checkout names, or the installed package."""
    try:
        described = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        return str(described["urls"]["Repository"])
    except (OSError, KeyError, TypeError, ValueError):
        pass
    try:
        urls = metadata("flitlab").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    return dict(url.split(", ", 1) for url in urls).get("Repository")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
