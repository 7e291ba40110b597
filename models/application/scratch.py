# SPDX-License-Identifier: Apache-2.0
"""Arrays that a program of any size finds room for."""

import tempfile

import numpy as np
from numpy.typing import DTypeLike

IN_MEMORY = 1 << 26
"""Bytes up to which an array lies in memory; a longer one lies in a file, so that the system can page it out."""


def scratch(shape: int | tuple[int, ...], dtype: DTypeLike, fill: int = 0) -> np.ndarray:
    """An array with ``fill`` everywhere, for what is needed once for every operation of a program.

    Of more than :data:`IN_MEMORY` bytes it is a mapped file in the folder for temporary files (``$TMPDIR``), of which
    nothing is left when the process ends. Raises ``OSError`` where that folder is full.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= IN_MEMORY:
        return np.full(shape, fill, dtype)
    with tempfile.TemporaryFile(prefix="flitlab-") as file:
        array = np.asarray(np.memmap(file, dtype, "w+", shape=shape))
    if fill:
        array[...] = fill
    return array
