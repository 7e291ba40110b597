"""A user's own demand matrix."""

import csv
from pathlib import Path
from typing import Literal

import numpy as np

from models.registry import SpecError, register
from models.topology.graph import Topology
from models.traffic.table import table_traffic
from models.traffic.traffic import Traffic, TrafficSpec


def read_pairs(path: Path, size: int) -> np.ndarray:
    """float64 [size, size] from a CSV of ``src,dst,demand`` (a header line is allowed; repeated pairs add up).

    Raises ``SpecError`` that names the line.
    """
    matrix = np.zeros((size, size))
    with path.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), start=1):
            if not row or row[0].lstrip().startswith("#") or (number == 1 and row[0].strip() == "src"):
                continue
            where = f"{path}:{number}: {','.join(row)}"
            try:
                source, target, amount = int(row[0]), int(row[1]), float(row[2])
            except (ValueError, IndexError):
                raise SpecError(f"{where}: expected src,dst,demand", key="path") from None
            if not (0 <= source < size and 0 <= target < size):
                raise SpecError(f"{where}: src and dst must lie in 0..{size - 1}", key="path")
            if not 0 <= amount < float("inf"):
                raise SpecError(f"{where}: demand must be finite and not negative", key="path")
            matrix[source, target] += amount
    return matrix


def read_dense(path: Path, size: int) -> np.ndarray:
    """float64 [size, size] from a .npy file. Raises ``SpecError``."""
    try:
        matrix = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise SpecError(f"{path}: not a numpy array file: {error}", key="path") from None
    if matrix.shape != (size, size):
        raise SpecError(f"{path}: shape {matrix.shape}, expected {(size, size)}", key="path")
    if not np.issubdtype(matrix.dtype, np.number) or np.iscomplexobj(matrix):
        raise SpecError(f"{path}: entries are {matrix.dtype}, not numbers", key="path")
    bad = np.argwhere(~((matrix >= 0) & np.isfinite(matrix)))
    if len(bad):
        i, j = bad[0]
        raise SpecError(
            f"{path}: entry [{i}, {j}] = {matrix[i, j]}: must be finite and not negative", key="path"
        )
    return matrix.astype(float)


@register("traffic", "matrix")
class Matrix(TrafficSpec):
    """A demand matrix from a file: a CSV of ``src,dst,demand`` or a dense ``.npy``.

    ``level: host`` numbers hosts; ``level: switch`` numbers switches and splits every entry equally
    over the hosts at both. ``normalise: hose`` scales the largest row or column sum to 1, ``none``
    leaves the numbers as they are. A host may send to itself only where the matrix says so.

    Example: ``traffic: {kind: matrix, path: demand.csv, level: switch, normalise: hose}``
    """

    path: Path
    level: Literal["host", "switch"] = "host"
    normalise: Literal["hose", "none"] = "hose"

    def build(self, topology: Topology) -> Traffic:
        size = topology.hosts if self.level == "host" else topology.switches
        if not self.path.is_file():
            raise SpecError("no such file", key="path")
        matrix = (read_dense if self.path.suffix == ".npy" else read_pairs)(self.path, size)
        if self.level == "switch":
            matrix = self._per_host(matrix, topology)
        if not matrix.any():
            raise SpecError("no demand at all", key="path")
        return table_traffic(self.kind, topology, matrix, hose=self.normalise == "hose")

    def _per_host(self, matrix: np.ndarray, topology: Topology) -> np.ndarray:
        count, place = topology.host_count, topology.host_switch
        used = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
        if (used & (count == 0)).any():
            bare = int(np.flatnonzero(used & (count == 0))[0])
            raise SpecError(f"switch {bare} has demand but no hosts", key="path")
        return matrix[np.ix_(place, place)] / np.outer(count[place], count[place])
