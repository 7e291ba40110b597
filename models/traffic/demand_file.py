# SPDX-License-Identifier: Apache-2.0
"""Demand from files: CSV of pairs, dense arrays, traces."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from scipy import sparse

from flitlab.models.arrays import Floats
from flitlab.models.readable import Text
from flitlab.models.registry import SpecError


def read_lines(path: Path | Text, columns: tuple[str, ...], optional: int = 0) -> Iterator[tuple[str, list[str]]]:
    """(place for error messages, cells) of every line of a CSV; a header line, blanks and # comments are skipped.

    columns: what a line holds, the last ``optional`` of which may be missing. Raises ``SpecError``.
    """
    with _opened(path) as lines:
        for number, row in enumerate(csv.reader(lines), start=1):
            header = number == 1 and row and row[0].strip() == columns[0]
            if header or not row or row[0].lstrip().startswith("#"):
                continue
            where = f"{path}:{number}: {','.join(row)}"
            if not len(columns) - optional <= len(row) <= len(columns):
                raise SpecError(f"{where}: expected {','.join(columns)}", key="path")
            yield where, row


def _opened(path: Path | Text) -> TextIO:
    """The lines of a file or a text. Raises ``SpecError``."""
    if isinstance(path, Text):
        return io.StringIO(path.content)
    if not path.is_file():
        raise SpecError("no such file", key="path")
    return path.open(newline="")


def end_of_pair(cell: str, size: int | None, where: str) -> int:
    """The number of a host, switch or rack, below ``size`` if that is given. Raises ``SpecError``."""
    try:
        value = int(cell)
    except ValueError:
        raise SpecError(f"{where}: {cell.strip()!r} is not a whole number", key="path") from None
    if value < 0 or (size is not None and value >= size):
        limit = f"lie in 0..{size - 1}" if size is not None else "be 0 or more"
        raise SpecError(f"{where}: src and dst must {limit}", key="path")
    return value


def read_pairs(path: Path | Text, size: int | None) -> sparse.csr_array:
    """float64 [size, size] from a CSV of ``src,dst,demand`` (a header line is allowed; repeated pairs add up).

    size: None takes what the largest number in the file needs. Raises ``SpecError`` that names the line.
    """
    source, target, demand = [], [], []
    for where, row in read_lines(path, ("src", "dst", "demand")):
        try:
            amount = float(row[2])
        except ValueError:
            raise SpecError(f"{where}: expected src,dst,demand", key="path") from None
        if not 0 <= amount < float("inf"):
            raise SpecError(f"{where}: demand must be finite and not negative", key="path")
        source.append(end_of_pair(row[0], size, where))
        target.append(end_of_pair(row[1], size, where))
        demand.append(amount)
    return pair_matrix(source, target, demand, size)


def pair_matrix(source: list[int], target: list[int], demand: list[float], size: int | None) -> sparse.csr_array:
    """The sums over equal pairs, [size, size]."""
    if size is None:
        size = max(source + target, default=-1) + 1
    return sparse.csr_array(sparse.coo_array((np.array(demand, float), (source, target)), (size, size)))


def read_dense(path: Path, size: int | None) -> Floats:
    """float64 [size, size] from a .npy file; any square if ``size`` is None. Raises ``SpecError``."""
    if not path.is_file():
        raise SpecError("no such file", key="path")
    try:
        matrix = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise SpecError(f"{path}: not a numpy array file: {error}", key="path") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) != (len(matrix) if size is None else size):
        expected = "a square" if size is None else f"{(size, size)}"
        raise SpecError(f"{path}: shape {matrix.shape}, expected {expected}", key="path")
    if not np.issubdtype(matrix.dtype, np.number) or np.iscomplexobj(matrix):
        raise SpecError(f"{path}: entries are {matrix.dtype}, not numbers", key="path")
    bad = np.argwhere(~((matrix >= 0) & np.isfinite(matrix)))
    if len(bad):
        i, j = bad[0]
        raise SpecError(f"{path}: entry [{i}, {j}] = {matrix[i, j]}: must be finite and not negative", key="path")
    demand: Floats = matrix.astype(float)
    return demand
