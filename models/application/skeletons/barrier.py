# SPDX-License-Identifier: Apache-2.0
"""The collective operation barrier as a program."""

from typing import ClassVar

from flitlab.models.application.skeletons.collective import CollectiveProgram
from flitlab.models.registry import register


@register("application", "barrier")
class Barrier(CollectiveProgram):
    """No rank goes on before all have come.

    algorithm: ``dissemination``.

    Example: ``application: {kind: barrier, repeats: 10, ranks: 64}``

    Source: Hensgen, Finkel and Manber 1988, doi:10.1007/BF01379320.
    """

    collective: ClassVar[str] = "barrier"
