"""The collective operation all-gather as a program."""

from typing import ClassVar

from flitlab.models.application.skeletons.collective import SizedCollective
from flitlab.models.registry import register


@register("application", "all_gather")
class AllGather(SizedCollective):
    """Every rank gets ``size_bytes`` bytes of each.

    algorithm: ``recursive_doubling``, ``bruck`` or ``ring``, by default as an MPI library chooses.

    Example: ``application: {kind: all_gather, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.1.
    """

    collective: ClassVar[str] = "all_gather"
