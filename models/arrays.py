# SPDX-License-Identifier: Apache-2.0
"""Names for the array types that signatures speak of: what the elements are, never how many there are.

Shapes, units and what an index means stand in the docstring of the function or field; NumPy's types cannot say them.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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

Integers: TypeAlias = npt.NDArray[np.integer[Any]]
"""Array of integers of any width: what a compiled function takes in several widths."""

Int: TypeAlias = int | np.integer[Any]
"""A whole number as compiled code hands it on: Python's, or NumPy's of any width."""


def sums(index: Integers, amount: Floats, size: int) -> Floats:
    """Sum of the amounts that go to every index: float64 [size].

    index: integers [n], below ``size``. amount: float64 [n].
    """
    total: npt.NDArray[Any] = np.bincount(index, amount, size)  # NumPy's stubs say integers, weights or not
    return total
