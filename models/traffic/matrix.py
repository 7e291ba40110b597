# SPDX-License-Identifier: Apache-2.0
"""A user's own demand matrix."""

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.readable import source_of
from flitlab.models.registry import SpecError, register, warnings_below
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Names, Which, host_names, rack_names, switch_names
from flitlab.models.traffic.demand_file import Layout, read_demand, read_dense
from flitlab.models.traffic.racks import evenly_spaced, on_racks, racks_of, shuffled
from flitlab.models.traffic.table import per_host, table_traffic, validate_scale
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "matrix")
class Matrix(TrafficSpec):
    """A demand matrix from a file: a table of ``src,dst,demand``, a square table, or a dense ``.npy``.

    In place of the ``path`` of a file, ``text`` may hold the lines of the table. Fields are separated by commas,
    semicolons, tabs or blanks. A square table is one row a line; a header row and a header column may have the names of
    its ends, in any order. ``layout`` resolves an ambiguous table: ``triples`` or ``dense``; a table of 3 x 3
    numbers may be either, and is rejected without the key.

    Files of other programs are recognised by their content: REPETITA's ``.demands`` and SNDlib's networks (native or
    XML) with ``level: switch``, sizes of connections in htsim's ``.cm`` and of flows of ns-3, injection rates in
    Noxim's traffic tables, and RapidChiplet's traffic between chiplets.

    ``level: host`` means hosts; ``level: switch`` switches and ``level: rack`` the switches that have
    hosts, and both split every entry equally over the hosts at its ends. All go by their numbers or by the labels that
    the topology has; ``names: labels`` or ``numbers`` says which count, where a label is the number of another.

    ``downsample``: a matrix of more hosts (switches, racks) than there are loses some, so that evenly spaced ones
    remain. ``shuffle``: which host (switch, rack) is which is random (``seed``). ``normalise: hose`` scales the largest
    row or column sum to 1, ``none`` leaves the numbers as they are. A host may send to itself only where the matrix
    says so.

    Example: ``traffic: {kind: matrix, path: demand.csv, level: switch, normalise: hose}``

    Example: ``traffic: {kind: matrix, path: racks.npy, level: rack, downsample: true, shuffle: true, seed: 2}``

    Source: MUT section IV-B (downsample, shuffle).
    """

    path: Path | None = None
    """The file."""
    text: str | None = None
    """The table itself, in place of a file."""
    layout: Layout | None = None
    """Whether lines are triples or rows. null: as it looks."""
    names: Which | None = None
    """What a name means that is a label and the number of another."""
    level: Literal["host", "switch", "rack"] = "host"
    """What rows and columns stand for."""
    normalise: Literal["hose", "none"] = "hose"
    """Whether the largest sum of a row or column is scaled to 1."""
    downsample: bool = False
    """Whether a larger matrix loses evenly spaced rows and columns."""
    shuffle: bool = False
    """Whether hosts are in random order."""
    seed: int = Field(default=1, ge=0)
    """Seed of this order."""

    def demand(self, topology: Topology) -> Traffic:
        try:
            with warnings_below(self._key):
                matrix = self._read(self._ends(topology).only(self.names))
        except SpecError as error:
            error.key = self._key
            raise
        if self.shuffle:
            matrix = shuffled(matrix, self.seed)
        if not matrix.count_nonzero():
            raise SpecError("no demand at all", key=self._key)
        with np.errstate(over="ignore"):
            if not np.isfinite(matrix.data.sum()):
                raise SpecError("the demands add up to more than a number can hold", key=self._key)
        if self.level == "switch":
            matrix = per_host(topology, matrix)
        elif self.level == "rack":
            matrix = on_racks(topology, matrix)
        traffic = table_traffic(self.kind, topology, matrix, hose=self.normalise == "hose")
        validate_scale(traffic)
        return traffic

    @property
    def _key(self) -> str:
        """The key that contains the table."""
        return "path" if self.text is None else "text"

    def _ends(self, topology: Topology) -> Names:
        """Return the names of the ends of a demand."""
        if self.level == "rack":
            return rack_names(topology, racks_of(topology).tolist())
        return host_names(topology) if self.level == "host" else switch_names(topology)

    def _read(self, names: Names) -> sparse.csr_array:
        source, size = source_of(self.path, self.text), names.count
        required_size = None if self.downsample else size
        if isinstance(source, Path) and source.suffix == ".npy":
            if self.layout == "triples":
                raise SpecError("a .npy file is dense")
            matrix = sparse.csr_array(read_dense(source, required_size))
        else:
            matrix = read_demand(source, names, required_size, self.layout)
        if not self.downsample:
            return matrix
        if matrix.shape[0] < size:
            raise SpecError(f"{source}: a matrix of {matrix.shape[0]}; {size} or more are needed", key="path")
        remaining = evenly_spaced(matrix.shape[0], size)
        return sparse.csr_array(matrix[remaining][:, remaining])
