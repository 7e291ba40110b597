# SPDX-License-Identifier: Apache-2.0
"""Names of the array types in signatures, conversions of other values to them, and arrays larger than memory.

A name states the element type, not the shape. The docstring of a function or field states shape, unit and what an index
means; NumPy's types cannot.
"""

import re
import tempfile
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from flitlab.models.registry import SpecError

Ints: TypeAlias = npt.NDArray[np.int64]
"""Array of 64-bit integers: ids, counts, ticks, bytes."""

Floats: TypeAlias = npt.NDArray[np.float64]
"""Array of 64-bit floating-point numbers: rates, weights, shares, seconds."""

Bools: TypeAlias = npt.NDArray[np.bool_]
"""Array of truth values: masks."""

Ints32: TypeAlias = npt.NDArray[np.int32]
"""Array of 32-bit integers: channels of paths, peers and tags of programs, indices of sparse matrices."""

Bytes: TypeAlias = npt.NDArray[np.uint8]
"""Array of bytes: a text as compiled code reads it."""

Words: TypeAlias = npt.NDArray[np.uint32]
"""Array of unsigned 32-bit integers: thresholds of draws."""

Masks: TypeAlias = npt.NDArray[np.uint64]
"""Array of unsigned 64-bit integers, each a set of the numbers 0 to 63: output ports, one bit each."""

PortSet: TypeAlias = np.uint64 | tuple[np.uint64, np.uint64]
"""A set of output ports, one bit each; two masks, low and high, in a network with over 64 channels out of a switch."""

Integers: TypeAlias = npt.NDArray[np.integer]
"""Array of integers of any width: what a compiled function takes in several widths."""

Int: TypeAlias = int | np.integer
"""A whole number as compiled code hands it on: Python's, or NumPy's of any width."""

LEAST, LARGEST = 1e-100, 1e100
"""Range of the magnitudes that are read; 0 and infinity are accepted too. The product of three is a finite double, not
0.
"""

OUT_OF_RANGE = f"must be 0 or have a magnitude from {LEAST:g} to {LARGEST:g}"

LARGEST_INTEGER = 2**63 - 1
"""The largest number of an int64."""

IN_MEMORY = 1 << 26
"""Bytes up to which an array is in memory; a longer one is in a file, so that the system can page it out."""


def is_in_range(text: str) -> bool:
    """Whether a decimal number is 0, or between :data:`LEAST` and :data:`LARGEST` in magnitude, whatever its exponent.

    >>> [is_in_range(text) for text in ("-2.5", "0e999999999", "1e-320", "1e-999999999", "1e101")]
    [True, True, False, False, False]
    """
    value = abs(float(text))
    return LEAST <= value <= LARGEST or not re.search("[1-9]", re.split("[eE]", text)[0])


def to_floats(name: str, value: object, *shape: int) -> Floats:
    """Convert real numbers to a float64 array of ``shape``; a copy. A single number is broadcast.

    Parameters
    ----------
    name: name of the argument, for errors.
    value: a number or an array of integers or floating-point numbers; not masked, complex, text or objects.
    shape: shape of the array; by default the shape of ``value``.

    Returns
    -------
    float64 [``shape``].

    Raises
    ------
    SpecError: ``value`` is no such array, or has another shape. ``key`` is the name.
    """
    return _shaped(name, _numbers(name, value).astype(np.float64), shape)


def to_integers(name: str, value: object, *shape: int) -> Ints:
    """Convert whole numbers to an int64 array of ``shape``; a copy. The only conversion of floating-point numbers to
    int64.

    Parameters
    ----------
    name: name of the argument, for errors.
    value: as in :func:`to_floats`; floating-point numbers must be whole.
    shape: shape of the array; by default the shape of ``value``.

    Returns
    -------
    int64 [``shape``].

    Raises
    ------
    SpecError: ``value`` is no such array, has another shape, or holds a number that is not finite, not whole or beyond
        64 bits. ``key`` is the name.
    """
    array = _numbers(name, value)
    if array.dtype.kind == "f":
        wrong = ~(np.abs(array) < 2.0**63) | (np.trunc(array) != array)
    else:
        wrong = array > LARGEST_INTEGER if array.dtype == np.uint64 else np.zeros(array.shape, bool)
    if wrong.any():
        first = array[wrong].flat[0]
        raise SpecError(f"{name} must hold whole numbers below 2**63 in magnitude, not {first}", name)
    return _shaped(name, array.astype(np.int64), shape)


def _numbers(name: str, value: object) -> np.ndarray:
    """An array of integers or floating-point numbers. Raises ``SpecError``."""
    if isinstance(value, np.ma.MaskedArray):
        raise SpecError(f"{name} is a masked array: fill in its masked entries", name)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise SpecError(f"{name} is no array of numbers: {error}", name) from None
    if array.dtype.kind not in "biuf":
        raise SpecError(f"{name} must hold real numbers, not {_describe(value, array)}", name)
    return array


def _describe(value: object, array: np.ndarray) -> str:
    return f"{type(value).__name__} {value!r}" if array.ndim == 0 else f"elements of type {array.dtype}"


def _shaped(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A copy of the array in a shape. Raises ``SpecError``."""
    if shape and array.ndim and array.shape != shape:
        raise SpecError(f"{name} must have the shape {shape}, not {array.shape}", name)
    return np.array(np.broadcast_to(array, shape)) if shape else array


def sums(index: Integers, amount: Floats, size: int) -> Floats:
    """Sum amounts by index.

    Parameters
    ----------
    index: integers [n], each below ``size``.
    amount: float64 [n].
    size: number of sums.

    Returns
    -------
    float64 [size]: the sum of the amounts of each index.
    """
    total: np.ndarray = np.bincount(index, amount, size)  # NumPy's stubs say integers, weights or not
    return total


def scratch(shape: int | tuple[int, ...], dtype: npt.DTypeLike, fill: int = 0) -> np.ndarray:
    """An array for data of every operation of a program.

    Above :data:`IN_MEMORY` bytes it is a mapped file in the folder for temporary files (``$TMPDIR``), which disappears
    with the process. Raises ``OSError`` where that folder is full.

    Parameters
    ----------
    shape: of the array.
    dtype: of its entries.
    fill: initial value of all entries.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= IN_MEMORY:
        return np.full(shape, fill, dtype)
    with tempfile.TemporaryFile(prefix="flitlab-") as file:
        array = np.asarray(np.memmap(file, dtype, "w+", shape=shape))
    if fill:
        array[...] = fill
    return array
