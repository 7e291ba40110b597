# SPDX-License-Identifier: Apache-2.0
"""The sparsest cuts of heuristics."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.fluid.saved import Saved
from flitlab.models.instance import Instance
from flitlab.models.registry import register
from flitlab.models.topology.names import switch_names

Heuristic = Literal["brute_force", "one_node", "two_node", "expanding", "eigenvector", "bisection"]
"""A heuristic of ``flitlab.fluid.cuts``."""


@register("ceiling", "cuts")
class Cuts(CeilingSpec):
    """Sparse cuts, the best of each heuristic and of all: upper bounds on any flow across them."""

    rank = 5
    label = "sparsest cut found"
    minor = ("",)
    line = False
    limit = True

    heuristics: Annotated[list[Heuristic], Field(min_length=1)] | None = None
    """Names of heuristics. null: all."""

    def absent(self, instance: Instance) -> str:
        """Why there are no cuts of a network that is not strongly connected; the row of ``bounds`` has one."""
        if pair := instance.topology.unreachable_pair():
            u, v = map(switch_names(instance.topology).label, pair)
            return f"cuts are searched in strongly connected networks, and no path leads from switch {u} to switch {v}"
        return super().absent(instance)

    @classmethod
    def proof(cls, row: str) -> type[Saved]:
        """Of all rows with channel prices."""
        from flitlab.fluid.verify_flow import BoundProof

        return BoundProof

    def provable_rows(self) -> Mapping[str, None]:
        """The rows that a saved certificate can prove: all of them."""
        return dict.fromkeys([self.kind, *(f"{self.kind}:{name}" for name in self.heuristics or get_args(Heuristic))])

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the sparsest cut, then the best cut of each heuristic."""
        from flitlab.fluid.cuts import all_cuts, best
        from flitlab.fluid.problem import Problem

        Problem.of(instance.topology, instance.traffic)  # for its errors
        unit, every = theta_unit(instance.topology), all_cuts(instance.topology, instance.traffic, self.heuristics)
        if not every:
            yield Ceiling.omitted("cuts", unit, "no heuristic finds a cut that demand crosses")
            return
        for name, cut in [("cuts", best(every)), *((f"cuts:{cut.name}", cut) for cut in every)]:
            yield Ceiling(name, None, math.nan, cut.upper, unit, cut.name, 0.0, cut.note, cut.certificate)
