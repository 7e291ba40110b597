# SPDX-License-Identifier: Apache-2.0
"""Graph500: breadth-first search."""

from typing import Annotated

from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives import all_to_all
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.collectives.communicator import Communicator
from flitlab.models.application.skeletons.skeleton import Skeleton, everyone
from flitlab.models.mappings import Notes
from flitlab.models.registry import register

PAIR, BUFFER = 16, 4096
"""Bytes of a (vertex, parent) pair, and of a full buffer of 256 of them."""

ROOTS = 64
"""Searches of the benchmark."""

Share = Annotated[float, Field(ge=0, le=1)]


@register("application", "graph500")
class Graph500(Skeleton):
    """Graph500: a breadth-first search by levels in a Kronecker graph of 2^scale vertices, dealt out among ranks.

    In every level, each rank looks at all edges of the vertices it has found, sends (vertex, parent) pairs of 16 bytes
    to the vertices' owners in buffers of 4 kB, the last of each level not full, perhaps empty, and then takes part in
    an all-reduce of 8 bytes. There are 2 * edge_factor * 2^scale edge ends; the default ``levels`` are of scale 20.

    Example: ``application: {kind: graph500, scale: 20, ranks: 64}``

    Source: Graph500 2.1.4, ``mpi/bfs_simple.c``; Murphy et al. 2010, "Introducing the Graph 500".
    """

    scale: int = Field(20, ge=1, le=48)
    """Logarithm of the number of vertices."""
    edge_factor: int = Field(16, ge=1, le=1024)
    """Edges per vertex."""
    levels: Annotated[tuple[Share, ...], Field(min_length=1, max_length=1000)] = (0, 0.002, 0.416, 0.545, 0.037, 0, 0)
    """Share of all edge ends that each level looks at; the default is the mean of eight searches."""
    operations: float = Field(10.0, ge=0, le=1e6)
    """Operations for an edge end."""
    iterations: int = Field(1, ge=1, le=ROOTS)
    """Simulated searches; the benchmark has 64."""

    def extent(self, ranks: int) -> tuple[int, int]:
        return self.iterations, ROOTS

    def iterate(self, builder: Builder) -> None:
        groups = everyone(builder)
        ends = 2 * self.edge_factor * 2**self.scale / builder.ranks
        for share in self.levels:
            builder.begin("look")
            builder.calculate(self.time(self.operations * share * ends))
            size = PAIR * round(share * ends / builder.ranks)
            _send_buffers(builder, size)
            collective(builder, "all_reduce", groups, 8, ns_per_byte=self.ns_per_byte, label="found")

    def notes(self, ranks: int) -> Notes:
        return {"vertices": 2**self.scale, "searches": ROOTS}


def _send_buffers(builder: Builder, size: int) -> None:
    """``size`` bytes from each rank to each other: full buffers, then one that is not, round by round."""
    builder.begin("pairs", "linear", size, synchronising=True)
    if builder.ranks > 1:
        builder.expect(2 * builder.ranks * (builder.ranks - 1) * (size // BUFFER + 1))
        for remaining in range(size, -1, -BUFFER):
            all_to_all.linear(Communicator(builder, everyone(builder)), min(remaining, BUFFER))
