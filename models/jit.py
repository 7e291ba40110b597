"""The one way compiled code is made here: Numba with a disk cache that notices every edit.

Numba's own cache keys on the file of the compiled function only, so an edit in an *imported*
compiled function would leave stale machine code behind. The cache folder is therefore named by
a hash of all our sources and of Numba's version.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # not a Unix: processes compile side by side
    fcntl = None  # type: ignore[assignment]

LEVEL = "" if numba.config.OPT == 3 else f"-O{int(numba.config.OPT)}"
"""What names of files end in that depend on how well code is optimised: '' where nobody asks for another level."""

_ROOT = Path(__file__).resolve().parent.parent


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
    base = os.environ.get("FLITLAB_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "flitlab"
    )
    return Path(base) / f"numba-{source_hash()}{LEVEL}"


_held: list[str] = []


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Let one process at a time be in here for ``name``; at once if this process is in here or locks cannot be made.

    So a process never waits for a lock while it holds one, and no two wait for each other.
    """
    lock = None if _held else _lock(name)
    if lock is None:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held.append(name)
        try:
            yield
        finally:
            _held.pop()


def _lock(name: str) -> IO[str] | None:
    """A file to be locked, in the folder of compiled code; None if there cannot be one."""
    folder = Path(numba.config.CACHE_DIR)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return None if fcntl is None else (folder / f"{name}.lock").open("w")
    except OSError:
        return None


def _decorator(**options: Any) -> Any:
    """Make a decorator: ``numba.njit`` with the disk cache above, no GIL, and C division semantics.

    Of processes that call a function for the first time one compiles it; the others, which would only have compiled the
    same, wait and load it.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(function, cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
        compile_or_load = compiled.compile

        def compile_once(signature: Any) -> Any:
            what = f"{function.__code__.co_filename}:{function.__qualname__}{signature}"
            with global_compiler_lock, _alone(hashlib.sha256(what.encode()).hexdigest()[:16]):
                return compile_or_load(signature)

        compiled.compile = compile_once
        return compiled

    return decorate


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(cache_folder())

Function = TypeVar("Function", bound=Callable[..., Any])


class Compile(Protocol):
    """Type of a decorator that compiles a function and leaves its signature as it is."""

    def __call__(self, function: Function, /) -> Function:
        """Compile ``function`` when it is first called."""
        ...


def interpreted(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function that a compiled one was made of, which takes whole arrays where that takes numbers."""
    original: Callable[..., Any] = compiled.py_func  # type: ignore[attr-defined]  # Numba's, of which mypy sees nothing
    return original


njit: Compile = _decorator()
"""Decorator: ``numba.njit`` with the disk cache above, no GIL, and C division semantics."""

kernel: Compile = _decorator(_nrt=False, forceinline=True)
"""Decorator for compiled code that allocates nothing: without Numba's reference counting.

Taking an array out of a named tuple otherwise costs two atomic operations; measured on the
virtual cut-through engine, that made it 50 times slower.
"""

routine: Compile = _decorator(_nrt=False)
"""Decorator: a :data:`kernel` that is called rather than copied to where it is used.

For what a run needs rarely or never: every copy of it would be compiled again.
"""

inner: Compile = _decorator(_nrt=False, forceinline=True, no_cpython_wrapper=True)
"""Decorator: a :data:`kernel` that only compiled code calls.

It is spared the code by which Python calls it, which for arguments of dozens of arrays takes a third of the time.
"""
