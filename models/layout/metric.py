# SPDX-License-Identifier: Apache-2.0
"""Layout parameters that the metrics of cables, cost and power share."""

from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from flitlab.models.arrays import Ints
from flitlab.models.layout.constants import Constants, NotNegative, Positive, load
from flitlab.models.layout.floor import Cables, cables_of, lengths, optimised_cabinets, ordered_cabinets
from flitlab.models.layout.nodes import are_switches
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.topology.graph import Topology


class PhysicalSpec(MetricSpec):
    """A metric with prices and dimensions from ``constants``."""

    constants: Constants = Field(default_factory=load)
    """Prices and dimensions."""

    @field_validator("constants", mode="before", json_schema_input_type=Any)
    @classmethod
    def _loaded(cls, value: Any) -> object:
        return value if isinstance(value, Constants) else load(value)


class LayoutSpec(PhysicalSpec):
    """A metric of the cables between cabinets on a floor.

    Its own keys override ``constants``.
    """

    switches_per_cabinet: int | None = Field(default=None, ge=1)
    """Switches of a cabinet. null: of constants."""
    pitch: tuple[Positive, Positive] | None = None
    """Distance of cabinets in a row, and of rows. null: of constants. [m]"""
    reach: NotNegative | None = None
    """Longest electric cable. null: of constants. [m]"""
    placement: Literal["order", "optimised"] = "order"
    """Whether switches fill cabinets in order, or are exchanged for short cables."""
    seed: int = Field(default=1, ge=0)
    """Seed of the exchanges."""
    hosts: bool = False
    """Whether cables of hosts count."""

    @cached_property
    def effective_constants(self) -> Constants:
        """The constants with this metric's own keys applied."""
        floor = {"switches_per_cabinet": self.switches_per_cabinet, "pitch": self.pitch}
        floor = {key: value for key, value in floor.items() if value is not None}
        constants = self.constants
        return constants.model_copy(
            update={
                "floor": constants.floor.model_copy(update=floor),
                "cable": constants.cable.model_copy(
                    update={} if self.reach is None else {"reach": self.reach}
                ),
            }
        )  # fmt: skip

    def cabinets(self, topology: Topology) -> Ints:
        """Return the cabinet of each node, int64 [switches], under the configured placement."""
        floor = self.effective_constants.floor
        if self.placement == "optimised":
            return optimised_cabinets(topology, floor, self.seed)
        return ordered_cabinets(topology, floor)

    def cables(self, topology: Topology, cabinet: np.ndarray) -> tuple[Cables, np.ndarray]:
        """Return the cables and their lengths in metres; host cables, if they count, come last.

        A host is in the cabinet of its switch; a card or server with a host has host cables to its switches.

        Parameters
        ----------
        topology: the network.
        cabinet: int64 [switches].

        Raises
        ------
        ValueError: the capacity of host cables is infinite.
        """
        every = cables_of(topology)
        cables = every.only(~every.to_host)
        if self.hosts and topology.hosts:
            of_hosts = topology.host_switch[are_switches(topology)[topology.host_switch]]
            count = len(of_hosts)
            if count and not np.isfinite(topology.host_capacity):
                raise ValueError("host cables of infinite capacity have no price: give a finite host_capacity")
            own = Cables(
                np.repeat(of_hosts, 2).reshape(-1, 2), np.full(count, topology.host_capacity), np.zeros(count, bool),
                np.ones(count, bool),
            )  # fmt: skip
            parts = zip(cables, every.only(every.to_host), own, strict=True)
            cables = Cables(*(np.concatenate(part) for part in parts))
        return cables, lengths(cabinet, cables.ends, self.effective_constants.floor)
