# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code: one folder per state of the sources, and one compiling process at a time.

Numba's own cache is keyed by the file of the compiled function only, so an edit in an *imported* compiled function
would leave stale machine code. The cache folder is therefore named by a hash of all our sources and of Numba's version.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numba
from numba.core import event

from flitlab.models.files import replace_file

try:
    import fcntl
except ImportError:  # not a Unix: processes compile side by side
    fcntl = None  # type: ignore[assignment]

OPT_SUFFIX = "" if numba.config.OPT == 3 else f"-O{int(numba.config.OPT)}"
"""Suffix of file names that depend on the optimisation level; '' for the default level."""

_ROOT = Path(__file__).resolve().parent.parent.parent


def source_hash() -> str:
    """Hash (16 hex digits) of every source file of the packages that hold compiled code."""
    digest = hashlib.sha256(numba.__version__.encode())
    for package in ("models", "fluid", "sim"):
        for path in sorted((_ROOT / package).rglob("*.py")):
            digest.update(path.relative_to(_ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """The folder of compiled code, in ``$FLITLAB_CACHE`` or ``~/.cache/flitlab``, one per state of the sources.

    Code compiled with another optimisation level than Numba's default (``NUMBA_OPT``) has folders of its own.
    """
    home = os.path.expanduser("~")
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join("/nonexistent" if home == "~" else home, ".cache")
    base = os.environ.get("FLITLAB_CACHE") or os.path.join(caches, "flitlab")
    return Path(base) / f"numba-{source_hash()}{OPT_SUFFIX}"


def folder_in_use() -> Path:
    """The folder in which Numba caches, also after it has read its variables again.

    It does so when a variable ``NUMBA_...`` has changed since its import, and would then cache beside the sources.
    """
    numba.config.CACHE_DIR = numba.config.CACHE_DIR or _FOLDER
    return Path(numba.config.CACHE_DIR)


_held_locks: list[str] = []


@contextmanager
def compile_lock(name: str) -> Iterator[None]:
    """Hold an exclusive lock between processes; no lock if this process holds one, or locks are unavailable.

    So a process never waits for a lock while it holds one, and processes cannot deadlock.
    """
    lock = None if _held_locks else _lock(name)
    if lock is None:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held_locks.append(name)
        try:
            yield
        finally:
            _held_locks.pop()


def _lock(name: str) -> IO[str] | None:
    """The open lock file in the cache folder; None if there cannot be one."""
    folder = folder_in_use()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return None if fcntl is None else (folder / f"{name}.lock").open("a")
    except OSError:
        return None


def mark_compiled(name: str) -> None:
    """Mark a name as compiled in the cache folder, if files can be written there."""
    with suppress(OSError):  # it is compiled again the next time
        (folder_in_use() / f"{name}.ready").touch()


def is_compiled(name: str) -> bool:
    """Whether a name is marked as compiled from these sources."""
    return (folder_in_use() / f"{name}.ready").exists()


def any_compiled() -> bool:
    """Whether any name is marked as compiled from these sources."""
    return any(folder_in_use().glob("*.ready"))


COUNT = "compilations"
"""File in the cache folder with a byte for every function that any process has compiled."""


class _Counter(event.Listener):  # type: ignore[misc]
    """Counts compiled functions, inlined ones too; what comes from the cache is not counted."""

    def on_start(self, event: event.Event) -> None:
        """Do nothing."""

    def on_end(self, event: event.Event) -> None:
        """Add a byte to :data:`COUNT`."""
        with suppress(OSError), (folder_in_use() / COUNT).open("ab") as file:
            file.write(b".")


def compilations() -> int:
    """The number of functions that all processes have compiled in the cache folder."""
    try:
        return (folder_in_use() / COUNT).stat().st_size
    except OSError:
        return 0


def needed_compilations(name: str) -> int | None:
    """How many functions a set of kernels took when it was compiled last, by any sources; None if it never was.

    name: of the set, as in :func:`mark_compiled`.
    """
    try:
        return int((folder_in_use().parent / f"{COUNT}-{name}").read_text("ascii"))
    except (OSError, ValueError):
        return None


def record_compilations(name: str, count: int) -> None:
    """Record how many functions a set of kernels took, if files can be written there."""
    with suppress(OSError):
        replace_file(folder_in_use().parent / f"{COUNT}-{name}", f"{count}", durable=False)


def _writable(folder: Path) -> Path:
    """The folder or, if it is not writable, a temporary one that is removed when the process ends.

    Numba would otherwise store compiled code beside the sources, where it outlives their changes, or fail.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        temporary = tempfile.mkdtemp(prefix="flitlab-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return Path(temporary)


_FOLDER = os.environ.get("NUMBA_CACHE_DIR") or str(_writable(cache_folder()))
numba.config.CACHE_DIR = _FOLDER
event.register("numba:compile", _Counter())
