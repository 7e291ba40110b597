# SPDX-License-Identifier: Apache-2.0
"""HammingMesh: boards of accelerators, whose rows and columns are connected by switches."""

from typing import NamedTuple

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec


class LineNetworks(NamedTuple):
    """Networks of the lines of one direction. links: int64 [m, 2]. leaves, spines: total numbers of switches."""

    links: Ints
    leaves: int
    spines: int


def trees(ends: Ints, first: int, radix: int) -> LineNetworks:
    """Return a switch for each line, or a two-level fat tree where a line has more ends than a switch has ports.

    Parameters
    ----------
    ends: int64 [lines, ends], the accelerators to connect.
    first: number of the first switch. Leaves come first, line by line; half of a leaf's ports lead up, round-robin over
        the spines of its line.
    """
    lines, count = ends.shape
    if count <= radix:
        switch = np.repeat(first + np.arange(lines), count)
        return LineNetworks(np.column_stack([ends.ravel(), switch]), lines, 0)
    half = radix // 2
    leaves = -(-count // half)
    spines = -(-leaves * half // radix)
    line = np.arange(lines)[:, None]
    down = np.stack([ends, first + line * leaves + np.arange(count) // half], axis=-1)
    port = np.arange(leaves * half)
    up = np.stack(
        [first + line * leaves + port // half, first + lines * leaves + line * spines + port % spines], axis=-1
    )
    return LineNetworks(np.concatenate([down.reshape(-1, 2), up.reshape(-1, 2)]), lines * leaves, lines * spines)


@register("topology", "hammingmesh")
class HammingMesh(TopologySpec):
    """HammingMesh: x by y boards of a by b accelerators, meshes inside and joined along rows and columns by switches.

    Every accelerator, a node of its own with one host, has a link to each of its neighbours on the board, which has a
    columns and b rows. Boards stand in x columns and y rows. Each row of accelerators through a row of boards has a
    network of its own, which joins the first and the last accelerator that it has on each board: 2 x links, two from an
    accelerator where a is 1. Each column has one with 2 y links likewise. Such a network is one switch or, if it has
    more links than ``radix``, a fat tree of two levels without oversubscription. Where x is 1, the two ends of a row
    are linked if a is more than 2; likewise columns where y is 1.

    This is one plane; the paper's systems have four such planes, and a ``capacity`` of 4 stands for them.

    a b x y accelerators, numbered board by board and row by row, then the switches of rows and those of columns; on
    each board b (a - 1) + a (b - 1) links. What goes to another column of boards takes a channel to the switches of a
    row, of which there are 2 / a for each accelerator: of the rate of its four ports, all-to-all reaches about
    1 / (2 a), 1/4 on 2 by 2 boards (Hx2Mesh) and 1/8 on 4 by 4.
    Valid: a, b, x, y from 1; radix even; at most radix * radix / 2 ends of a row or column; up to 2 * 10**7 channels.

    Example: ``topology: {kind: hammingmesh, a: 2, b: 2, x: 4, y: 4}``

    Source: Hoefler et al., HammingMesh, SC 2022, arXiv:2209.01346. A network for each row of accelerators, and what
    happens where x or y is 1, are our interpretation.
    """

    a: int = Field(ge=1)
    """Columns of accelerators on a board."""
    b: int = Field(ge=1)
    """Rows of accelerators on a board."""
    x: int = Field(ge=1)
    """Columns of boards."""
    y: int = Field(ge=1)
    """Rows of boards."""
    radix: int = Field(default=64, ge=2)
    """Ports of the switches that join boards."""

    def graph(self) -> Topology:
        a, b, x, y = self.a, self.b, self.x, self.y
        if self.radix % 2:
            raise SpecError(f"must be even; nearest {self.radix - 1}, {self.radix + 1}", key="radix")
        for key, count in (("x", x), ("y", y)):
            if 2 * count > self.radix * self.radix // 2:
                raise SpecError(f"more than two levels of switches; at most {self.radix**2 // 4}", key=key)
        accelerators = a * b * x * y
        limit_size(6 * accelerators + 8 * x * y * (a + b), "x")
        node = np.arange(accelerators).reshape(y, x, b, a)
        boards = [
            np.column_stack([near.ravel(), far.ravel()])
            for near, far in ((node[..., :-1], node[..., 1:]), (node[..., :-1, :], node[..., 1:, :]))
        ]
        rows = node[..., [0, -1]].transpose(0, 2, 1, 3).reshape(y * b, 2 * x)
        columns = node[..., [0, -1], :].transpose(1, 3, 0, 2).reshape(x * a, 2 * y)
        row = self._joined(rows, accelerators, a)
        column = self._joined(columns, accelerators + row.leaves + row.spines, b)
        links = np.concatenate([*boards, row.links, column.links])
        counts = [accelerators, row.leaves, row.spines, column.leaves, column.spines]
        names = ["accelerator", "row switch", "row spine", "column switch", "column spine"]
        tiers = [[name, sum(counts[:i]), count] for i, (name, count) in enumerate(zip(names, counts, strict=True))]
        tiers = [tier for tier in tiers if tier[2]]
        notes = {"tiers": tiers, "boards": {"columns": x, "rows": y, "size": [a, b]}}
        switches = sum(counts)
        topology = Topology.from_links(self.kind, switches, links, notes=notes)
        return topology.with_hosts(np.arange(switches) < accelerators)

    def _joined(self, ends: Ints, first: int, extent: int) -> LineNetworks:
        """The network of each line, and none where a line is on one board."""
        if ends.shape[1] > 2:
            return trees(ends, first, self.radix)
        return LineNetworks(ends if extent > 2 else np.zeros((0, 2), np.int64), 0, 0)
