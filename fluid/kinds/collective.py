# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the time of collectives, by any algorithm."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.collective.collective import Collective, Ranks
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import CeilingSpec, Quantities
from flitlab.fluid.saved import Saved
from flitlab.models.collective.schedule import CollectiveName
from flitlab.models.instance import Instance
from flitlab.models.registry import Parameters, register, whole

UNIT = "ticks/flit"
"""Unit of times over bandwidth: ticks if a unit (of an all-reduce, a broadcast, a reduction: the vector) is one
flit."""


class Switches(Parameters):
    """What switches do besides forwarding. multicast: copy messages. reduce: combine them."""

    multicast: bool = False
    reduce: bool = False


def listed(value: object) -> object:
    """A list with one name, in place of the name."""
    return [value] if isinstance(value, str) else value


_OneOrMore = CollectiveName | list[CollectiveName]

Collectives = Annotated[
    list[CollectiveName], BeforeValidator(listed, json_schema_input_type=_OneOrMore), Field(min_length=1)
]
"""Type of a key with one or more collectives."""

USUAL: list[CollectiveName] = ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all"]
"""Default collectives."""


@register("ceiling", "collective")
class CollectiveCeiling(CeilingSpec):
    """Least times of collectives over bandwidth alone, by any algorithm, beside the least that is known to be possible.

    The traffic and the routing of the scenario do not matter. A time is in ticks where a unit is one flit: what a rank
    gives to an all-gather, gets of a reduce-scatter, or the vector of an all-reduce or a broadcast.

    Example: ``ceilings: [{kind: collective, of: [all_gather, all_reduce], ranks: hosts}]``

    Source: docs/collectives.md has the proofs.
    """

    rank = 13
    label = "least time of a collective"
    unit = UNIT
    quantities: ClassVar[Quantities] = {name: (f"least time, {name.replace('_', '-')}", UNIT) for name in USUAL}
    line = False
    beside_background = True
    growth = 1.0

    of: Collectives = USUAL
    """The collectives, or one."""
    ranks: Ranks = "switches"
    """One for each host, or for each switch with hosts, on an infinite channel."""
    root: Annotated[int, BeforeValidator(whole), Field(ge=0)] = 0
    """The rank that begins or ends a rooted collective."""
    amounts: list[int] | None = None
    """Units of each rank. null: 1."""
    switches: Switches = Switches()
    """Whether switches copy messages, or combine them."""
    gap: float | None = Field(default=None, gt=0, lt=1)
    """Of all_to_all, relative. null: 1e-4, on more than 128 switches 1e-2."""

    @classmethod
    def proof(cls, row: str) -> type[Saved]:
        """Of all rows."""
        from flitlab.fluid.verify_collective import CollectiveProof

        return CollectiveProof

    def provable_rows(self) -> Mapping[str, Collective]:
        """The rows that a saved certificate can prove, all of them: name -> collective of the row."""
        rows = {f"{self.kind}:{kind}": self.collective_of(kind) for kind in dict.fromkeys(self.of)}
        return {self.kind: self.collective_of(self.of[0]), **rows}

    def absent(self, instance: Instance) -> str:
        """Why there is none of several subnets, whose copies of a host are one rank."""
        if instance.topology.subnets > 1:
            return "it is between the hosts of one network, and here they have a channel in each of several subnets"
        return super().absent(instance)

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the first collective, then one of each; omitted where it is not defined."""
        from flitlab.fluid.collective.bounds import bounds
        from flitlab.fluid.concurrent import join_notes
        from flitlab.fluid.problem import FluidError

        for kind in dict.fromkeys(self.of):
            names = [name for name, collective in self.provable_rows().items() if collective.kind == kind]
            try:
                collective_bounds = bounds(instance.topology, self.collective_of(kind), self.gap)
                lower, upper = collective_bounds.lower, collective_bounds.upper
            except FluidError as error:
                yield from (Ceiling.omitted(name, UNIT, str(error)) for name in names)
                continue
            reached = "nothing is known to reach it" if upper is None else f"possible: {upper[1]}"
            time = f"{float(lower.time):.7g}" if lower.by == "flow" else str(lower.time)
            text = f"{lower.proof.text}; " if lower.proof is not None else ""
            for name in names:
                yield Ceiling(
                    name, None, float(lower.time), math.nan if upper is None else float(upper[0]), UNIT, lower.by, 0.0,
                    join_notes(f"{kind}, {time}: {text}{reached}", collective_bounds.note),
                    flow=collective_bounds.evidence,
                )  # fmt: skip

    def collective_of(self, kind: CollectiveName) -> Collective:
        """The collective of a kind with these keys."""
        amounts = None if self.amounts is None else tuple(self.amounts)
        return Collective(kind, self.ranks, self.root, amounts, self.switches.multicast, self.switches.reduce)
