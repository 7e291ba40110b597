# SPDX-License-Identifier: Apache-2.0
"""DCQCN: RoCE whose senders follow marks."""

from typing import ClassVar

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.rdma import RdmaSpec, Scale


@register("transport", "dcqcn")
class Dcqcn(RdmaSpec):
    """RoCE with DCQCN: a receiver notifies the sender of ECN marks, and the sender lowers its rate.

    gain: g. cnp_us: least time between notifications (CNPs) of a flow. alpha_us: alpha decays after this time without
    CNP, and again each time. increase_us, byte_counter: the rate rises after this time, and after these bytes; 0: it
    has no byte counter. stages: increases of fast recovery. additive_mbps, hyper_mbps: steps of the target rate after
    it. least_mbps: lowest rate. Defaults are those of the paper (hyper_mbps: ten times additive_mbps, as in ns-3).

    Example: ``transport: {kind: dcqcn, additive_mbps: 40}``

    Source: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, doi:10.1145/2785956.2787484.
    """

    control: ClassVar[Control] = Control.DCQCN
    marked: ClassVar[bool] = True

    gain: float = Field(default=1.0 / 256.0, gt=0, le=1)
    cnp_us: float = Field(default=50.0, ge=0, le=1e6)
    alpha_us: float = Field(default=55.0, ge=0.1, le=1e6)
    increase_us: float = Field(default=55.0, ge=0.1, le=1e6)
    byte_counter: int = Field(default=10_000_000, ge=0, le=10**12)
    stages: int = Field(default=5, ge=1, le=1000)
    additive_mbps: float = Field(default=40.0, ge=0, le=1e7)
    hyper_mbps: float = Field(default=400.0, ge=0, le=1e7)
    least_mbps: float = Field(default=0.0, ge=0, le=1e7)

    def law(self, scale: Scale) -> Law:
        return (
            super()
            .law(scale)
            ._replace(
                cnps=1, gain=float(self.gain), cnp_interval=scale.ticks(self.cnp_us),
                alpha_period=max(1, scale.ticks(self.alpha_us)),
                increase_period=max(1, scale.ticks(self.increase_us)), stages=self.stages,
                byte_counter=self.byte_counter, additive=scale.rate(self.additive_mbps),
                hyper=scale.rate(self.hyper_mbps), least=scale.rate(self.least_mbps),
            )
        )  # fmt: skip
