"""The collective operation reduce-scatter as a program."""

from typing import ClassVar

from flitlab.models.application.skeletons.collective import SizedCollective
from flitlab.models.registry import register


@register("application", "reduce_scatter")
class ReduceScatter(SizedCollective):
    """Every rank gets its p-th part of the sum of ``size_bytes`` bytes of each.

    algorithm: ``recursive_halving``, ``pairwise`` or ``ring``, by default as an MPI library chooses.

    Example: ``application: {kind: reduce_scatter, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.4.
    """

    collective: ClassVar[str] = "reduce_scatter"
