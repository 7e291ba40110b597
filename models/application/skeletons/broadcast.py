# SPDX-License-Identifier: Apache-2.0
"""The collective operation broadcast as a program."""

from typing import ClassVar

from flitlab.models.application.skeletons.collective import SizedCollective
from flitlab.models.registry import register


@register("application", "broadcast")
class Broadcast(SizedCollective):
    """Rank 0 sends ``size_bytes`` bytes to all others.

    algorithm: ``binomial``, ``scatter_doubling`` or ``van_de_geijn``, by default as an MPI library chooses.

    Example: ``application: {kind: broadcast, size_bytes: 65536, ranks: 64}``

    Source: Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521, section 4.2.
    """

    collective: ClassVar[str] = "broadcast"
