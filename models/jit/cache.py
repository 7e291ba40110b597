# SPDX-License-Identifier: Apache-2.0
"""Where compiled code is kept: one folder for every state of the sources, and one process at a time that compiles.

Numba's own cache keys on the file of the compiled function only, so an edit in an *imported*
compiled function would leave stale machine code behind. The cache folder is therefore named by
a hash of all our sources and of Numba's version.
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

try:
    import fcntl
except ImportError:  # not a Unix: processes compile side by side
    fcntl = None  # type: ignore[assignment]

OPT_SUFFIX = "" if numba.config.OPT == 3 else f"-O{int(numba.config.OPT)}"
"""What names of files end in that depend on how well code is optimised: '' where nobody asks for another level."""

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
    """Where compiled code is kept: in ``$FLITLAB_CACHE`` or ``~/.cache/flitlab``, a folder a source state.

    Code that is compiled with another optimisation than Numba's usual one (``NUMBA_OPT``) has folders of its own.
    """
    home = os.path.expanduser("~")
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join("/nonexistent" if home == "~" else home, ".cache")
    base = os.environ.get("FLITLAB_CACHE") or os.path.join(caches, "flitlab")
    return Path(base) / f"numba-{source_hash()}{OPT_SUFFIX}"


_held_locks: list[str] = []


@contextmanager
def compile_lock(name: str) -> Iterator[None]:
    """Let one process at a time be in here for ``name``; at once if this process is in here or locks cannot be made.

    So a process never waits for a lock while it holds one, and no two wait for each other.
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
    """A file to be locked, in the folder of compiled code; None if there cannot be one."""
    folder = Path(numba.config.CACHE_DIR)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return None if fcntl is None else (folder / f"{name}.lock").open("a")
    except OSError:
        return None


def mark_compiled(name: str) -> None:
    """Note beside the compiled code, as far as files can be written there, that something has been compiled."""
    with suppress(OSError):  # it is made ready again the next time
        (Path(numba.config.CACHE_DIR) / f"{name}.ready").touch()


def is_compiled(name: str) -> bool:
    """Tell whether it was noted that something has been compiled from these sources."""
    return (Path(numba.config.CACHE_DIR) / f"{name}.ready").exists()


def _writable(folder: Path) -> Path:
    """The folder, or where no files can be written there one that is removed when the process ends.

    Numba would keep compiled code beside the sources instead, where it outlives their changes, or give up.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        temporary = tempfile.mkdtemp(prefix="flitlab-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return Path(temporary)


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(_writable(cache_folder()))
