# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""A mode with channels that fail: store and forward, with an unlimited queue at every channel."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.switching.buffered import unit_capacity_errors
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.switching.switching_mode import SwitchingContext, SwitchingSpec


@dataclass(frozen=True)
class StoreAndForward(DynamicTopology):
    """Store and forward. link: ticks from the last flit on a channel to the whole packet at its end."""

    mode: ClassVar[str] = "store_and_forward"
    link: int

    def zero_load_latency(self, topology, hops, flits):
        return (hops + 2) * (flits + self.link) - 1

    def next_channels(self, topology, routes):
        """The channel towards a switch t at a switch v, int64 [t, v]; any number where there is none."""
        first = np.array([[int(port) & -int(port) for port in row] for row in routes.ports])
        return topology.out_start[:-1] + np.log2(np.maximum(first, 1)).astype(np.int64)


@register("switching", "store_and_forward")
class StoreAndForwardSpec(SwitchingSpec):
    """Store and forward: a switch forwards a packet by its first shortest path once all of it has arrived."""

    switching_mode: ClassVar = StoreAndForward
    mode: Literal["store_and_forward"]
    link: Annotated[int, Field(ge=0, le=10**6)] = 1

    def errors(self, topology, routes, flits):
        yield from super().errors(topology, routes, flits)
        yield from unit_capacity_errors(topology, self.mode)
        if topology.has_delays:
            yield SpecError("mode store_and_forward has the same delay on all channels", key="topology")
        if routes is not None and routes.kind != "minimal":
            yield SpecError("mode store_and_forward needs routing.kind: minimal", key="routing.kind")

    def build(self, setting: SwitchingContext) -> StoreAndForward:
        return StoreAndForward(self.link)
