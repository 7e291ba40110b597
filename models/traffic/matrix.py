# SPDX-License-Identifier: Apache-2.0
"""A user's own demand matrix."""

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.readable import source_of
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.demand_file import read_dense, read_pairs
from flitlab.models.traffic.racks import evenly_spaced, on_racks, racks_of, shuffled
from flitlab.models.traffic.table import per_host, table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "matrix")
class Matrix(TrafficSpec):
    """A demand matrix from a file: a CSV of ``src,dst,demand`` or a dense ``.npy``.

    In place of the ``path`` of a file, ``text`` may hold the lines of the CSV.

    ``level: host`` numbers hosts; ``level: switch`` numbers switches and ``level: rack`` the switches that have
    hosts, and both split every entry equally over the hosts at its ends. ``downsample``: a matrix of more hosts
    (switches, racks) than there are loses some, so that evenly spaced ones remain. ``shuffle``: which host (switch,
    rack) is which is random (``seed``). ``normalise: hose`` scales the largest row or column sum to 1, ``none``
    leaves the numbers as they are. A host may send to itself only where the matrix says so.

    Example: ``traffic: {kind: matrix, path: demand.csv, level: switch, normalise: hose}``

    Example: ``traffic: {kind: matrix, path: racks.npy, level: rack, downsample: true, shuffle: true, seed: 2}``

    Source: MUT section IV-B (downsample, shuffle).
    """

    path: Path | None = None
    text: str | None = None
    level: Literal["host", "switch", "rack"] = "host"
    normalise: Literal["hose", "none"] = "hose"
    downsample: bool = False
    shuffle: bool = False
    seed: int = Field(default=1, ge=0)

    def demand(self, topology: Topology) -> Traffic:
        try:
            matrix = self._read(self._size(topology))
        except SpecError as error:
            error.key = "path" if self.text is None else "text"
            raise
        if self.shuffle:
            matrix = shuffled(matrix, self.seed)
        if not matrix.count_nonzero():
            raise SpecError("no demand at all", key="path")
        with np.errstate(over="ignore"):
            if not np.isfinite(matrix.data.sum()):
                raise SpecError("the demands add up to more than a number can hold", key="path")
        if self.level == "switch":
            matrix = per_host(topology, matrix)
        elif self.level == "rack":
            matrix = on_racks(topology, matrix)
        return table_traffic(self.kind, topology, matrix, hose=self.normalise == "hose")

    def _size(self, topology: Topology) -> int:
        if self.level == "rack":
            return len(racks_of(topology))
        return topology.hosts if self.level == "host" else topology.switches

    def _read(self, size: int) -> sparse.csr_array:
        source = source_of(self.path, self.text)
        wanted = None if self.downsample else size
        if isinstance(source, Path) and source.suffix == ".npy":
            matrix = sparse.csr_array(read_dense(source, wanted))
        else:
            matrix = read_pairs(source, wanted)
        if not self.downsample:
            return matrix
        if matrix.shape[0] < size:
            raise SpecError(f"{source}: a matrix of {matrix.shape[0]}; {size} or more are needed", key="path")
        kept = evenly_spaced(matrix.shape[0], size)
        return sparse.csr_array(matrix[kept][:, kept])
