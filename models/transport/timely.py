# SPDX-License-Identifier: Apache-2.0
"""TIMELY: RoCE whose senders follow the gradient of the round-trip time."""

from typing import ClassVar

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.rdma import RdmaSpec, Scale
from flitlab.models.transport.spraying import Spraying


@register("transport", "timely")
class Timely(RdmaSpec):
    """RoCE with TIMELY: a rate that follows the round-trip time, once per round trip.

    Between ``low_us`` and ``high_us`` the rate falls by ``decrease`` times the gradient, the smoothed change of the
    round trip over ``least_us``, and rises where that is not positive. Defaults are those of the paper; least_mbps: of
    the ns-3 of HPCC's authors.

    Example: ``transport: {kind: timely, window_bdp: 1}``

    Source: Mittal et al., TIMELY: RTT-based congestion control for the datacenter, SIGCOMM 2015,
    doi:10.1145/2785956.2787510.
    """

    control: ClassVar[Control] = Control.TIMELY

    low_us: float = Field(default=50.0, gt=0, le=1e6)
    """Round trip below which the rate rises."""
    high_us: float = Field(default=500.0, gt=0, le=1e6)
    """Round trip above which it falls by decrease (1 - high_us / round trip)."""
    least_us: float = Field(default=20.0, gt=0, le=1e6)
    """Round trip to which the gradient is relative."""
    gain: float = Field(default=0.875, gt=0, le=1)
    """Weight of a new change in the smoothed one."""
    decrease: float = Field(default=0.8, gt=0, le=1)
    """Factor of a decrease."""
    stages: int = Field(default=5, ge=0, le=1000)
    """Increases in a row after which the step is hyper_mbps."""
    additive_mbps: float = Field(default=10.0, ge=0, le=1e7)
    """Step of an increase."""
    hyper_mbps: float = Field(default=50.0, ge=0, le=1e7)
    """Step after stages increases."""
    least_mbps: float = Field(default=100.0, gt=0, le=1e7)
    """Lowest rate."""

    def law(self, scale: Scale) -> Law:
        return (
            super()
            .law(scale)
            ._replace(
                gain=float(self.gain), stages=self.stages, additive=scale.rate(self.additive_mbps),
                hyper=scale.rate(self.hyper_mbps), least=min(scale.rate(self.least_mbps), scale.line),
                base_delay=float(scale.ticks(self.low_us)), most_delay=float(scale.ticks(self.high_us)),
                round_trip=float(scale.ticks(self.least_us)), decrease=float(self.decrease),
            )
        )  # fmt: skip

    def spraying(self) -> Spraying:
        if self.low_us >= self.high_us:
            raise SpecError(f"low_us: {self.low_us:g} must be below high_us", key="transport")
        return super().spraying()
