# SPDX-License-Identifier: Apache-2.0
"""SUMMA: matrix multiplication by broadcasts."""

from math import isqrt

import numpy as np

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.skeletons.matrix import MatrixProduct
from flitlab.models.registry import register


@register("application", "summa")
class Summa(MatrixProduct):
    """SUMMA on q x q ranks, ranks of a row next to each other.

    Step k: the k-th rank of each row broadcasts its block of A, 8 order^2 / p bytes, within the row, the k-th of each
    column its block of B within the column; then all multiply. algorithm: of the broadcasts, by default as an MPI
    library chooses.

    Example: ``application: {kind: summa, order: 4096, ranks: 64, iterations: 8}``

    Source: van de Geijn and Watts 1997, doi:10.1002/(SICI)1096-9128(199704)9:4<255::AID-CPE250>3.0.CO;2-2.
    """

    algorithm: str | None = None

    def iterate(self, builder: Builder) -> None:
        side, size = isqrt(builder.ranks), self.block(builder.ranks)
        ranks = np.arange(builder.ranks).reshape(side, side)
        for name, groups in (("rows", ranks), ("columns", ranks.T)):
            first = np.roll(groups, -builder.iteration, axis=1)
            collective(builder, "broadcast", first, size, self.algorithm, label=name)
        builder.begin("multiply")
        builder.calculate(self.step_time(builder.ranks))
