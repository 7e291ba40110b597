# SPDX-License-Identifier: Apache-2.0
"""The bucket algorithm on tori: every channel carries a part of the data."""

from typing import ClassVar

from flitlab.fluid.collective.algorithms.library import rounds, with_algorithm
from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order
from flitlab.models.collective.shape import torus_dims
from flitlab.models.registry import SpecError, register


@register("algorithm", "bucket")
class Bucket(AlgorithmSpec):
    """Rings in every dimension in turn; each direction of each dimension starts with a part of the data.

    It needs ranks that form a torus (torus, hypercube); hosts of a switch, if there are several, are a dimension.

    Example: ``algorithm: bucket``

    Source: Jain and Sabharwal, Optimal bucket algorithms for large MPI collectives on torus interconnects, ICS 2010.
    """

    collectives: ClassVar[tuple[str, ...]] = with_algorithm("bucket")

    def plan(self, question: Question, once: Once) -> Plan:
        dims = torus_dims(question.topology)
        if dims is None:
            raise SpecError("needs ranks that form a torus", "kind")
        return Plan(rounds(question, "bucket", dims=dims), in_order(question))
