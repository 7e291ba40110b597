# SPDX-License-Identifier: Apache-2.0
"""The one way compiled code is made here: Numba with a disk cache that notices every edit.

What is compiled has two forms. The *whole* is what Python calls: optimised together with all that it calls, made into
machine code and kept on disk (:mod:`flitlab.models.jit.cache`). The *part* is what other compiled code gets instead:
it is optimised there, with its caller, and never by itself (:mod:`flitlab.models.jit.compilers`).
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock

from flitlab.models.jit.cache import OPT_SUFFIX, cache_folder, compile_lock, source_hash
from flitlab.models.uncollected import uncollected

__all__ = ["OPT_SUFFIX", "Compile", "cache_folder", "inner", "interpreted", "kernel", "njit", "routine", "source_hash"]

NUMBA_TESTED: bool = numba.__version__.startswith("0.68.")
"""Whether parts were tried with this version of Numba; with any other, compiled code, too, gets the whole."""

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # no GIL, and division as in C


def _whole(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function for Python, with the disk cache.

    Of processes that call it for the first time one compiles it; the others, which would only have compiled the same,
    wait and load it.
    """
    compiled = numba.njit(function, cache=True, **_OPTIONS, **options)
    compile_or_load, save = compiled.compile, compiled._cache.save_overload

    def save_if_possible(*overload: Any) -> None:
        with suppress(OSError):  # on a full disk it is compiled again the next time
            save(*overload)

    def compile_once(signature: Any) -> Any:
        signature_text = f"{function.__code__.co_filename}:{function.__qualname__}{signature}"
        with (
            global_compiler_lock,
            compile_lock(hashlib.sha256(signature_text.encode()).hexdigest()[:16]),
            uncollected(),
        ):
            return compile_or_load(signature)

    compiled.compile, compiled._cache.save_overload = compile_once, save_if_possible
    return compiled


def _decorator(for_python: bool = True, parts: bool = NUMBA_TESTED, **options: Any) -> Any:
    """Make a decorator.

    for_python: whether Python calls the function, or compiled code alone. parts: whether compiled code gets a part.
    options: of ``numba.njit``.
    """
    if not parts:
        unwrapped = {} if for_python else {"no_cpython_wrapper": True}
        return lambda function: _whole(function, options | unwrapped)
    from flitlab.models.jit.compilers import KernelCompiler, PartCompiler, WholeCompiler

    as_part = {**_OPTIONS, **options, "no_cpython_wrapper": True, "pipeline_class": PartCompiler}
    as_whole = {**options, "pipeline_class": WholeCompiler if options.get("_nrt", True) else KernelCompiler}

    def decorate(function: Callable[..., Any]) -> Any:
        part = numba.njit(function, **as_part)
        if not for_python:
            return part
        whole = _whole(function, as_whole)
        whole.get_call_template, whole.get_overload = part.get_call_template, part.get_overload  # of compiled callers
        return whole

    return decorate


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

inner: Compile = _decorator(for_python=False, _nrt=False, forceinline=True)
"""Decorator: a :data:`kernel` that only compiled code calls.

It is spared the code by which Python calls it, which for arguments of dozens of arrays takes a third of the time.
"""
