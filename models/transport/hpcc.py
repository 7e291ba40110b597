# SPDX-License-Identifier: Apache-2.0
"""HPCC: RoCE whose senders follow telemetry."""

from typing import ClassVar

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.rdma import RdmaSpec, Scale


@register("transport", "hpcc")
class Hpcc(RdmaSpec):
    """RoCE with HPCC: a window that follows the utilisation of links, which switches report in each packet.

    The first and largest window is what a host sends in T. Reports have no size; those of the first five switches
    count. It needs lossless queues; ``switching.mark_own`` says whether the queue reported includes the packet.

    Example: ``transport: {kind: hpcc, expected_flows: 10}``

    Source: Li et al., HPCC: high precision congestion control, SIGCOMM 2019, doi:10.1145/3341302.3342085.
    """

    control: ClassVar[Control] = Control.HPCC
    telemetry: ClassVar[bool] = True

    eta: float = Field(default=0.95, gt=0, lt=1)
    """Utilisation aimed at."""
    stages: int = Field(default=5, ge=0, le=1000)
    """Additive increases in a row."""
    round_trip_us: float | None = Field(default=None, gt=0, le=1e6)
    """Base round trip T. null: the longest of the empty network."""
    expected_flows: int = Field(default=10, ge=1, le=10**6)
    """n: additive increases are (1 - eta) / n of the largest window."""
    least_mbps: float = Field(default=100.0, ge=0, le=1e7)
    """Lowest rate."""
    first_use: float = Field(default=1.0, gt=0, le=10)
    """Utilisation assumed at first."""

    def law(self, scale: Scale) -> Law:
        trip = float(scale.round_trip if self.round_trip_us is None else scale.ticks(self.round_trip_us))
        window, least = scale.line * trip, scale.rate(self.least_mbps)
        return (
            super()
            .law(scale)
            ._replace(
                stages=self.stages, eta=float(self.eta), round_trip=trip, first_use=float(self.first_use),
                least=least, first_window=window, additive=window * (1.0 - self.eta) / self.expected_flows,
                least_window=min(max(least * trip, 1.0), window),
            )
        )  # fmt: skip
