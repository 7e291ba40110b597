# SPDX-License-Identifier: Apache-2.0
"""Swift: RoCE whose senders follow delay."""

from typing import ClassVar

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.queues import exact
from flitlab.models.transport.rdma import RdmaSpec, Scale
from flitlab.models.transport.spraying import Spraying


@register("transport", "swift")
class Swift(RdmaSpec):
    """RoCE with Swift: a window that widens while packets come early, and narrows when they are late.

    Defaults are those of htsim, where all paths count as equally long. There is no window of the receiving host.

    Example: ``transport: {kind: swift, base_us: 20}``

    Source: Kumar et al., Swift: delay is simple and effective for congestion control in the datacenter, SIGCOMM 2020,
    doi:10.1145/3387514.3406591.
    """

    control: ClassVar[Control] = Control.SWIFT

    base_us: float = Field(default=20.0, gt=0, le=1e6)
    """Target delay of a path without links."""
    link_us: float = Field(default=20.0 / 6.55, ge=0, le=1e6)
    """Target delay of each link."""
    scaling_us: float = Field(default=100.0, ge=0, le=1e6)
    """Target delay added for small windows, at most."""
    scaling_least: float = Field(default=0.1, gt=0, le=1e6)
    """Window at which all of it is added. [packet]"""
    scaling_most: float = Field(default=100.0, gt=0, le=1e6)
    """Window from which on none is. [packet]"""
    additive: float = Field(default=1.0, gt=0, le=1e3)
    """Packets per round trip by which the window widens. [packet]"""
    decrease: float = Field(default=0.8, gt=0, le=1)
    """beta: part of the relative excess delay by which the window narrows."""
    most_decrease: float = Field(default=0.5, gt=0, lt=1)
    """Largest part by which it narrows, at most once per round trip."""
    init_window: float = Field(default=15.0, ge=1e-6, le=1e6)
    """First window. [packet]"""
    least_window: float = Field(default=0.0025, ge=1e-6, le=1e6)
    """Smallest window; below one, packets are paced. [packet]"""
    most_window: float = Field(default=1000.0, gt=0, le=1e6)
    """Largest window. [packet]"""

    def law(self, scale: Scale) -> Law:
        return (
            super()
            .law(scale)
            ._replace(
                additive=float(self.additive), least_window=float(self.least_window),
                first_window=float(self.init_window), most_window=float(self.most_window),
                base_delay=float(scale.ticks(self.base_us)),
                link_delay=float(exact(self.link_us) / 10**6 / scale.tick),
                scaling_range=float(scale.ticks(self.scaling_us)), scaling_least=float(self.scaling_least),
                scaling_most=float(self.scaling_most), decrease=float(self.decrease),
                most_decrease=float(self.most_decrease), round_trip=float(scale.round_trip),
            )
        )  # fmt: skip

    def spraying(self) -> Spraying:
        if self.scaling_least >= self.scaling_most:
            raise SpecError(f"scaling_least: {self.scaling_least:g} must be below scaling_most", key="transport")
        if not self.least_window <= self.init_window <= self.most_window:
            raise SpecError("init_window: must be between least_window and most_window", key="transport")
        return super().spraying()
