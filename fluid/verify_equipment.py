# SPDX-License-Identifier: Apache-2.0
"""The saved proof of the bound over all networks of some equipment: multipliers of its linear program.

Equipment is that of the scenario: its switches, ports and hosts. The bound that the multipliers prove is computed anew,
in whole numbers; wrong multipliers prove a weaker bound, or none.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flitlab.fluid.bounds import equipment_of
from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.hosts import load_of
from flitlab.fluid.problem import FluidError
from flitlab.fluid.saved import Saved
from flitlab.models.arrays import Floats, Ints
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields
from flitlab.models.topology.equipment import UNIT, bound_by_multipliers, equipment_bound


@dataclass(frozen=True, eq=False)
class EquipmentProof(Saved):
    """Multipliers of a bound over all networks of some equipment.

    ports, split: of the equipment, 0 and 1 where the ports are those that the network uses. level, row, weight: the
    multipliers of the bounds on pairs within ``level`` hops. link: of the links of a switch of 0, 1, ... hosts.
    per_host: of the number of hosts.
    """

    ports: Ints
    level: Ints
    row: Ints
    weight: Floats
    link: Floats
    per_host: Floats

    subject: ClassVar[str] = "theta of uniform traffic and of a worst demand"
    scope: ClassVar[str] = "on any network of this equipment"

    @classmethod
    def parts(cls, instance: Instance, row: Ceiling) -> Fields:
        """The multipliers of a row, whose ``flow`` has the ports and the split; without it, and as lower end, nan."""
        none = np.zeros(0, np.int64)
        if not isinstance(row.flow, tuple):
            real = none.astype(float)
            empty = {"level": none, "row": none, "weight": real, "link": real, "per_host": np.zeros(1)}
            return {"lower": np.nan, "upper": np.nan, "ports": np.array([0, 1]), **empty}
        radix, split = row.flow
        bound = equipment_bound(*equipment_of(instance.topology, radix, split)[0])
        levels = np.array(bound.levels, np.int64).reshape(-1, 3)
        return {
            "lower": np.nan, "ports": np.array([radix or 0, split], np.int64), "level": levels[:, 0].copy(),
            "row": levels[:, 1].copy(), "weight": levels[:, 2] / UNIT, "link": np.array(bound.links, float) / UNIT,
            "per_host": np.array([bound.per_host / UNIT]),
        }  # fmt: skip

    def check_form(self) -> None:
        """Raise :class:`~flitlab.fluid.saved.BadCertificate` unless the multipliers of levels have one length."""
        if not len(self.level) == len(self.row) == len(self.weight):
            self.reject("the multipliers of levels have different lengths")
        if len(self.ports) != 2 or len(self.per_host) != 1:
            self.reject("ports are not two numbers, or the multiplier of the number of hosts not one")

    def prove(self, instance: Instance, subjects: Collection[object]) -> tuple[float, float]:
        """The bound that the multipliers prove for the equipment of the scenario."""
        radix, split = self.ports.tolist()
        subject = (radix or None, split)
        if subject not in subjects:
            self.reject(f"is of {radix} ports, split {split}, which the configuration does not ask for")
        levels = zip(self.level.tolist(), self.row.tolist(), self.weight.tolist(), strict=True)
        try:
            numbers, capacity = equipment_of(instance.topology, *subject)
            bound = bound_by_multipliers(*numbers, list(levels), self.link.tolist(), self.per_host.item())
        except (FluidError, ValueError, OverflowError) as error:
            self.reject(str(error))
        return np.nan, load_of(instance.topology, instance.traffic, bound.throughput * capacity)
