# SPDX-License-Identifier: Apache-2.0
"""Bounds without optimisation."""

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from flitlab.fluid.ceiling import Ceiling, theta_unit
from flitlab.fluid.context import Context
from flitlab.fluid.kinds.spec import THETA, CeilingSpec, Quantities
from flitlab.fluid.saved import Saved
from flitlab.models.instance import Instance
from flitlab.models.registry import register

ROUNDING = 1e-12
"""Relative difference below which bounds are equal: then the first one is named."""

BY_PRICES = ("volumetric", "cuts", "two_cluster", "hosts")
"""Bounds that channel prices prove."""


EQUIPMENT = "bounds:equipment"
"""The row of the bound over all networks."""


@register("ceiling", "bounds")
class Bounds(CeilingSpec):
    """Bounds that need no optimisation (volume and path length, host channels, cuts).

    Beside them stands ``bounds:tub``, the throughput upper bound of Namyar et al. (SIGCOMM 2021): what the network can
    guarantee at most for every demand of the hose model, as the load at which the busiest host sends or receives that
    much. It bounds longest matchings, not the demand at hand, and is never the least that the row ``bounds`` names.
    ``bounds:equipment`` bounds all networks of as many switches, each with as many ports as the largest one uses: no
    wiring has more under uniform traffic, or under a worst demand. ``ports`` of capacity 1 stand in their place.
    """

    ports: int | None = Field(default=None, ge=1, le=10**6)
    """Ports of every switch in the row bounds:equipment. null: those of the largest one."""
    split: int = Field(default=1, ge=1, le=10**6)
    """Links that a port makes."""

    rank = 4
    usual = True
    label = "bound"
    quantities: ClassVar[Quantities] = {
        "volumetric": ("volumetric bound", THETA),
        "moore": ("Moore bound on the throughput", THETA),
        "cuts": ("single-switch cut", THETA),
        "hosts": ("host channels", THETA),
        "tub": ("TUB, of the worst demand", THETA),
        "equipment": ("bound over all networks of this equipment", THETA),
    }
    minor = ("",)
    line = False
    share = "Of the load that bounds allow on the same network"
    limit = True
    quick = True
    growth = 0.8

    @classmethod
    def proof(cls, row: str) -> type[Saved]:
        """Of all rows with channel prices, and of that of the equipment."""
        from flitlab.fluid.verify_equipment import EquipmentProof
        from flitlab.fluid.verify_flow import BoundProof

        return EquipmentProof if row == EQUIPMENT else BoundProof

    def provable_rows(self) -> Mapping[str, tuple[int | None, int] | None]:
        """The rows that a saved certificate can prove: those with channel prices, and that of the equipment."""
        by_prices = dict.fromkeys([self.kind, *(f"{self.kind}:{name}" for name in BY_PRICES)])
        return {**by_prices, EQUIPMENT: (self.ports, self.split)}

    def rows(self, instance: Instance, context: Context) -> Iterator[Ceiling]:
        """The row of the least bound, then one of each bound, then those of the worst demand and of all networks."""
        from flitlab.fluid.bounds import all_bounds, equipment, tub
        from flitlab.fluid.hosts import load_of
        from flitlab.fluid.problem import FluidError, Problem

        Problem.of(instance.topology, instance.traffic)  # for its errors
        every, unit = all_bounds(instance.topology, instance.traffic), theta_unit(instance.topology)
        upper = min(bound.upper for bound in every) * (1 + ROUNDING)
        least = next(bound for bound in every if bound.upper <= upper)
        for name, bound in [("bounds", least)] + [(f"bounds:{bound.name}", bound) for bound in every]:
            note = f"{bound.name}: {bound.note}" if name == "bounds" else bound.note
            yield Ceiling(name, None, math.nan, bound.upper, unit, "closed form", 0.0, note, bound.certificate)
        own = (self.ports, self.split)
        for name, method, of_all, subject in (
            ("tub", "assignment", tub, ()), ("equipment", "linear program", equipment, own),
        ):  # fmt: skip
            try:
                bound = of_all(instance.topology, *subject)
                upper = load_of(instance.topology, instance.traffic, bound.upper)
                yield Ceiling(
                    f"bounds:{name}", None, math.nan, upper, unit, method, 0.0, bound.note, flow=subject or None
                )
            except FluidError as error:
                yield Ceiling.omitted(f"bounds:{name}", unit, str(error))
