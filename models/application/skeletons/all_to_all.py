# SPDX-License-Identifier: Apache-2.0
"""The collective operation all-to-all as a program."""

from typing import ClassVar

from flitlab.models.application.skeletons.collective import SizedCollective
from flitlab.models.registry import register


@register("application", "all_to_all")
class AllToAll(SizedCollective):
    """Every rank sends ``size_bytes`` bytes to each of the others.

    algorithm: ``bruck``, ``scattered`` (32 messages at a time), ``linear`` (all at once) or ``pairwise``, by default as
    an MPI library chooses.

    Example: ``application: {kind: all_to_all, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.3.
    """

    collective: ClassVar[str] = "all_to_all"
