# SPDX-License-Identifier: Apache-2.0
"""Compilation: Numba with a disk cache that notices every edit.

Compiled code has two forms. The *entry point* is what Python calls: optimised together with all that it calls, compiled
to machine code and cached on disk (:mod:`flitlab.models.jit.cache`). The *device function* is what other compiled code
gets instead: it is optimised there, with its caller, and never by itself (:mod:`flitlab.models.jit.compilers`).
"""

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing import Signature

from flitlab.models.gc_disabled import gc_disabled
from flitlab.models.jit.cache import OPT_SUFFIX, cache_folder, compile_lock, folder_in_use, source_hash
from flitlab.models.mappings import Fields
from flitlab.models.signals import deferring

__all__ = [
    "OPT_SUFFIX", "Compile", "cache_folder", "device_function", "inline", "interpreted", "kernel", "njit",
    "source_hash",
]  # fmt: skip

NUMBA_TESTED: bool = numba.__version__.startswith("0.68.")
"""Whether device functions were tested with this version of Numba. Without, compiled code gets entry points, too."""

UNCOMPILED = "flitlab_uncompiled"
"""Option ``-X`` of Python that leaves all functions uncompiled, for routes of networks of a few switches.

No run may use it: integers of Python have no 64 bits, and wrap nowhere. So it is no variable of the environment, which
runs would inherit.
"""

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # no GIL, and division as in C


def _entry_point(function: Callable[..., object], options: Fields) -> Any:
    """An entry point for Python, with the disk cache.

    Of several processes that call it first, one compiles it. The others wait, and load the result.
    """
    folder_in_use()
    compiled = numba.njit(function, cache=True, **_OPTIONS, **options)
    compile_or_load, save = compiled.compile, compiled._cache.save_overload

    def save_if_possible(*overload: object) -> None:
        with suppress(OSError):  # with a full disk it is compiled again the next time
            save(*overload)

    def compile_once(signature: Signature) -> object:
        signature_text = f"{function.__code__.co_filename}:{function.__qualname__}{signature}"
        with (
            deferring(),  # LLVM calls Python, which would drop the interruption and leave a half-compiled module
            global_compiler_lock,
            compile_lock(hashlib.sha256(signature_text.encode()).hexdigest()[:16]),
            gc_disabled(),
        ):
            return compile_or_load(signature)

    compiled.compile, compiled._cache.save_overload = compile_once, save_if_possible
    return compiled


def _same(function: Callable[..., object]) -> Callable[..., object]:
    return function


def _decorator(for_python: bool = True, device_functions: bool = NUMBA_TESTED, **options: bool) -> Any:
    """Make a decorator.

    for_python: whether Python calls the function, or only compiled code. device_functions: whether compiled code gets
    a device function. options: of ``numba.njit``.
    """
    if UNCOMPILED in sys._xoptions:
        return _same
    if numba.config.DISABLE_JIT:
        problem = "NUMBA_DISABLE_JIT is set, and results need the 64-bit integers of compiled code: unset it"
        raise ImportError(problem, name=numba.__name__)
    if not device_functions:
        unwrapped = {} if for_python else {"no_cpython_wrapper": True}
        return lambda function: _entry_point(function, options | unwrapped)
    from flitlab.models.jit.compilers import DeviceFunctionCompiler, EntryPointCompiler, KernelCompiler

    device_options = {**_OPTIONS, **options, "no_cpython_wrapper": True, "pipeline_class": DeviceFunctionCompiler}
    entry_options = {**options, "pipeline_class": EntryPointCompiler if options.get("_nrt", True) else KernelCompiler}

    def decorate(function: Callable[..., object]) -> Any:
        device_function = numba.njit(function, **device_options)
        if not for_python:
            return device_function
        entry_point = _entry_point(function, entry_options)
        entry_point.get_call_template, entry_point.get_overload = (
            device_function.get_call_template,
            device_function.get_overload,
        )  # of compiled callers
        return entry_point

    return decorate


Function = TypeVar("Function", bound=Callable[..., object])


class Compile(Protocol):
    """Type of a decorator that compiles a function and keeps its signature."""

    def __call__(self, function: Function, /) -> Function:
        """Compile ``function`` when it is first called."""
        ...


def interpreted(compiled: Callable[..., object]) -> Callable[..., Any]:
    """The Python function of a compiled one, which takes arrays in the place of numbers."""
    original: Callable[..., Any] = getattr(compiled, "py_func", compiled)
    return original


njit: Compile = _decorator()
"""Decorator: ``numba.njit`` with the disk cache, without GIL, and with C division semantics."""

kernel: Compile = _decorator(_nrt=False, forceinline=True)
"""Decorator for compiled code without allocations: without Numba's reference counting.

With it, taking an array from a named tuple costs two atomic operations; measured on the virtual cut-through engine,
that made it 50 times slower.
"""

device_function: Compile = _decorator(_nrt=False)
"""Decorator: a :data:`kernel` that is called instead of inlined.

For rare calls: every inlined copy would be compiled again.
"""

inline: Compile = _decorator(for_python=False, _nrt=False, forceinline=True)
"""Decorator: a :data:`kernel` that only compiled code calls.

It has no wrapper for Python, which takes a third of the compile time for dozens of array arguments.
"""
