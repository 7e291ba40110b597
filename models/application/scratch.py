# SPDX-License-Identifier: Apache-2.0
"""Arrays for programs of any size."""

import tempfile

import numpy as np
from numpy.typing import DTypeLike

IN_MEMORY = 1 << 26
"""Bytes up to which an array is in memory; a longer one is in a file, so that the system can page it out."""


def scratch(shape: int | tuple[int, ...], dtype: DTypeLike, fill: int = 0) -> np.ndarray:
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
