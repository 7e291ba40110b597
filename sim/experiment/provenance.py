# SPDX-License-Identifier: Apache-2.0
"""The provenance of a result: source of flitlab, libraries, and machine."""

import os
import platform
import re
import subprocess
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import flitlab
from flitlab.models.mappings import JsonObject

ROOT = Path(flitlab.__file__).resolve().parents[1]
"""The folder that holds the package; the top folder of a checkout."""

LIBRARIES = (
    "highspy", "igraph", "Jinja2", "llvmlite", "markdown-it-py", "matplotlib", "networkx", "numba", "numpy", "pandas",
    "pydantic", "pymetis", "PyYAML", "rich", "scipy", "shtab", "simpy", "typing_extensions",
)  # fmt: skip
"""Libraries whose versions are recorded."""


def versions() -> dict[str, str | None]:
    """Versions of flitlab, of its libraries, and of Python; None for libraries that are not installed."""
    libraries = {name: _version(name) for name in LIBRARIES}
    return {"flitlab": flitlab.__version__, **libraries, "python": platform.python_version()}


@cache
def source() -> JsonObject:
    """The source of flitlab: commit, whether files are modified, and URL of the repository; None if unknown.

    Without a checkout, the version identifies the source.
    """
    commit = _git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    changed = None if commit is None else bool(_git("status", "--porcelain", "--untracked-files=no"))
    remote = None if commit is None else _git("config", "--get", "remote.origin.url")
    return {"commit": commit, "modified": changed, "repository": _without_secret(remote) if remote else _published()}


def machine() -> JsonObject:
    """The processor, its number of cores, and its architecture."""
    return {"processor": processor(), "cores": os.cpu_count(), "architecture": platform.machine()}


@cache
def processor() -> str:
    """The name of the processor, by the operating system."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def install_commands(source_record: JsonObject, number: str | None) -> list[str]:
    """The commands that install the flitlab of a run. source_record: of :func:`source`. number: its version.

    >>> install_commands({}, "0.1.0")
    ['pip install flitlab==0.1.0']
    >>> install_commands({"commit": "1f3f44f", "modified": True, "repository": None}, "0.1.0")
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
    """The output of a git command in the checkout; None if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _without_secret(url: str) -> str:
    """A URL without user name and password.

    >>> _without_secret("https://me:secret@example.org/flitlab"), _without_secret("git@example.org:flitlab")
    ('https://example.org/flitlab', 'git@example.org:flitlab')
    """
    return re.sub(r"^(\w+://)[^/@]*@", r"\1", url)


def _published() -> str | None:
    """The URL of the repository, by the checkout or the installed package."""
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


@cache  # reading the metadata of all libraries takes 60 ms, and a process may run many studies
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
