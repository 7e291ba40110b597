# SPDX-License-Identifier: Apache-2.0
"""The collective operation reduce-scatter as a program."""

from typing import ClassVar

from flitlab.models.application.skeletons.collective import ArrangedCollective
from flitlab.models.registry import register


@register("application", "reduce_scatter")
class ReduceScatter(ArrangedCollective):
    """Every rank gets its p-th part of the sum of ``size_bytes`` bytes of each.

    algorithm: ``recursive_halving``, ``pairwise``, ``ring``, ``bucket`` or ``hierarchical``, by default as an
    MPI library chooses. dims: of ``bucket``, the sides of the torus that the ranks form, the last coordinate changing
    fastest; by default one ring. group: of ``hierarchical``, how many ranks in a row are close together, such as the
    hosts of a switch; by default the greatest divisor of the number of ranks up to its root.

    Example: ``application: {kind: reduce_scatter, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.4.
    """

    collective: ClassVar[str] = "reduce_scatter"
