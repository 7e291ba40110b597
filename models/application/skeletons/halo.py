# SPDX-License-Identifier: Apache-2.0
"""Halo exchange with the neighbours in a grid."""

from math import prod
from typing import Annotated

import numpy as np
from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.skeletons.collective import Bytes, Repeats, Side
from flitlab.models.application.skeletons.skeleton import Skeleton
from flitlab.models.arrays import Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import register


@register("application", "halo")
class Halo(Skeleton):
    """Every rank sends ``size_bytes`` bytes to both neighbours in each dimension of a grid, again and again.

    Example: ``application: {kind: halo, dims: [4, 4, 4], size_bytes: 8192, repeats: 10}``

    Source: the nearest-neighbour pattern of stencil codes, e.g. Dally and Towles, section 3.2.
    """

    dims: Annotated[tuple[Side, ...], Field(min_length=1, max_length=8)] | None = None
    """Sides of the grid, the last changes fastest. null: a ring of all ranks."""
    size_bytes: Bytes = 8192
    """Bytes to each neighbour."""
    periodic: bool = True
    """Whether the grid is a torus."""
    calculate_ns: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    """Time of a calculation before each exchange."""
    repeats: Repeats = 1
    """Number of exchanges."""

    def allows(self, ranks: int) -> bool:
        return self.dims is None or ranks == prod(self.dims)

    def requirement(self) -> str:
        return f"{prod(self.dims)}, the product of dims" if self.dims else self.rule

    def extent(self, ranks: int) -> tuple[int, int]:
        return self.repeats, self.repeats

    def iterate(self, builder: Builder) -> None:
        grid = np.arange(builder.ranks).reshape(self.dims or builder.ranks)
        pairs = [self._neighbours(grid, axis) for axis in range(grid.ndim)]
        source, target = np.concatenate(pairs, axis=1)
        builder.begin("calculate")
        builder.calculate(self.calculate_ns)
        builder.begin("exchange", size=self.size_bytes)
        builder.exchange(source, target, self.size_bytes)

    def notes(self, ranks: int) -> Notes:
        return {"dims": list(self.dims or (ranks,))}

    def _neighbours(self, grid: np.ndarray, axis: int) -> Ints:
        """int64 [2, messages]: source and target along an axis, up and down."""
        up = np.stack([grid, np.roll(grid, -1, axis)])
        if not self.periodic or grid.shape[axis] == 2:  # two neighbours that are one get one message
            up = np.take(up, np.arange(grid.shape[axis] - 1), axis + 1)
        up = up.reshape(2, -1)
        return np.concatenate([up, up[::-1]], axis=1)
