# SPDX-License-Identifier: Apache-2.0
"""Two-level collectives: within groups of nearby ranks, and between groups."""

from typing import Annotated, ClassVar

from pydantic import Field

from flitlab.fluid.collective.algorithms.library import rounds, with_algorithm
from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order
from flitlab.models.collective.shape import group_sizes
from flitlab.models.registry import register


@register("algorithm", "hierarchical")
class Hierarchical(AlgorithmSpec):
    """Groups gather or reduce, one rank of each group takes part in a ring, and groups spread the result.

    ``group``: ranks of a group, which follow each other; by default those of a switch or else of a pod, where all have
    equally many, else the greatest divisor of the number of ranks up to its root.

    Example: ``algorithm: {kind: hierarchical, group: 8}``
    """

    collectives: ClassVar[tuple[str, ...]] = with_algorithm("hierarchical")

    group: Annotated[int, Field(ge=1)] | None = None

    def plan(self, question: Question, once: Once) -> Plan:
        sizes = group_sizes(question.topology)
        group = self.group or sizes.get("switch") or sizes.get("pod")
        return Plan(rounds(question, "hierarchical", group=group), in_order(question))
