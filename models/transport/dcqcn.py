# SPDX-License-Identifier: Apache-2.0
"""DCQCN: RoCE whose senders follow marks."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from flitlab.models.registry import register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.rdma import Marks, RdmaSpec, Scale

_NS3 = {
    "cnp_us": 4.0, "alpha_us": 1.0, "increase_us": 900.0, "byte_counter": 0, "stages": 1, "additive_mbps": 50.0,
    "hyper_mbps": 100.0, "least_mbps": 100.0,
}  # fmt: skip
"""The published configuration of the ns-3 of HPCC's authors."""


@register("transport", "dcqcn")
class Dcqcn(RdmaSpec):
    """RoCE with DCQCN: a receiver notifies the sender of ECN marks, and the sender lowers its rate.

    Defaults are those of the paper (hyper_mbps: ten times additive_mbps, as in ns-3). With ``profile: ns3`` they are
    those of the published configuration of HPCC's authors, a marked ACK is a CNP, and byte_counter has no effect.

    Example: ``transport: {kind: dcqcn, additive_mbps: 40}``

    Source: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, doi:10.1145/2785956.2787484.
    """

    control: ClassVar[Control] = Control.DCQCN

    profile: Literal["paper", "ns3"] = "paper"
    """As in the paper, or in the ns-3 of HPCC's authors, with its constants."""
    gain: float = Field(default=1.0 / 256.0, gt=0, le=1)
    """Weight g of alpha."""
    cnp_us: float = Field(default=50.0, ge=0, le=1e6)
    """Least time between notifications (CNPs) of a flow; ns3: between decreases."""
    alpha_us: float = Field(default=55.0, ge=0.1, le=1e6)
    """alpha decays after this time without CNP, and again each time; ns3: is adjusted each time."""
    increase_us: float = Field(default=55.0, ge=0.1, le=1e6)
    """The rate rises after this time without CNP, and again each time."""
    byte_counter: int = Field(default=10_000_000, ge=0, le=10**12)
    """The rate rises after these bytes, too; 0: there is no byte counter. [B]"""
    stages: int = Field(default=5, ge=1, le=1000)
    """Increases of fast recovery."""
    additive_mbps: float = Field(default=40.0, ge=0, le=1e7)
    """Step of the target rate after fast recovery."""
    hyper_mbps: float = Field(default=400.0, ge=0, le=1e7)
    """Step once the byte counter is beyond fast recovery, too."""
    least_mbps: float = Field(default=0.0, ge=0, le=1e7)
    """Lowest rate."""

    @model_validator(mode="before")
    @classmethod
    def _with_profile(cls, keys: object) -> object:
        """Fill in the defaults of the profile."""
        return _NS3 | keys if isinstance(keys, dict) and keys.get("profile") == "ns3" else keys

    @property
    def marks(self) -> Marks:
        """Of the paper at any rate; of ns-3 in proportion to the rate of a link."""
        return Marks(400_000, 1_600_000, 0.2, 100.0) if self._is_ns3 else Marks(5_000, 200_000, 0.01)

    @property
    def _is_ns3(self) -> bool:
        return self.profile == "ns3"

    def law(self, scale: Scale) -> Law:
        return (
            super()
            .law(scale)
            ._replace(
                control=int(Control.DCQCN_NS3 if self._is_ns3 else Control.DCQCN),
                cnps=int(not self._is_ns3), gain=float(self.gain),
                cnp_interval=max(int(self._is_ns3), scale.ticks(self.cnp_us)),
                alpha_period=max(1, scale.ticks(self.alpha_us)),
                increase_period=max(1, scale.ticks(self.increase_us)), stages=self.stages,
                byte_counter=self.byte_counter, additive=scale.rate(self.additive_mbps),
                hyper=scale.rate(self.hyper_mbps), least=min(scale.rate(self.least_mbps), scale.line),
            )
        )  # fmt: skip
