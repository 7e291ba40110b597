# SPDX-License-Identifier: Apache-2.0
"""Transports of RDMA over Ethernet: RoCE at line rate, and with DCQCN."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.queues import exact
from flitlab.models.transport.spraying import Spraying


@dataclass(frozen=True)
class RdmaKeys:
    """The keys of an RDMA transport, in the units of the configuration; those of :class:`Law` have the same names.

    marked: whether its congestion control reacts to ECN marks.
    """

    control: Control = Control.NONE
    timeout_us: float = 1000.0
    extra: int = 0
    gain: float = 0.0
    cnp_us: float = 0.0
    alpha_us: float = 0.0
    increase_us: float = 0.0
    stages: int = 0
    byte_counter: int = 0
    additive_mbps: float = 0.0
    hyper_mbps: float = 0.0
    least_mbps: float = 0.0

    @property
    def marked(self) -> bool:
        """Whether the congestion control reacts to ECN marks."""
        return self.control == Control.DCQCN

    def law(self, tick: Fraction, line: float) -> Law:
        """The parameters in ticks and bytes per tick.

        Parameters
        ----------
        tick: seconds.
        line: rate of a host, bytes per tick.
        """

        def ticks(microseconds: float) -> int:
            return ceil(exact(microseconds) / 10**6 / tick)

        def rate(mbps: float) -> float:
            return float(exact(mbps) * 10**6 / 8 * tick)

        return Law(
            control=int(self.control), timeout=max(1, ticks(self.timeout_us)), extra=self.extra, line=float(line),
            gain=float(self.gain), cnp_interval=ticks(self.cnp_us), alpha_period=max(1, ticks(self.alpha_us)),
            increase_period=max(1, ticks(self.increase_us)), stages=self.stages, byte_counter=self.byte_counter,
            additive=rate(self.additive_mbps), hyper=rate(self.hyper_mbps), least=rate(self.least_mbps),
        )  # fmt: skip


class RdmaSpec(TransportSpec):
    """Keys of RDMA transports: packets in order over one path, each acknowledged, repeated from the first missing one.

    timeout_us: a sender goes back to the first unacknowledged packet after this time without progress. extra: 1 sends one
    packet more for messages of full packets only, as the htsim simulator does; a test option.
    """  # noqa: E501

    subflows: Literal[1] = 1
    start_ms: float = Field(default=0.0, ge=0, le=0)
    timeout_us: float = Field(default=1000.0, gt=0, le=1e9)
    extra: Literal[0, 1] = 0

    def transport(self) -> Transport:
        raise SpecError(f"kind {self.kind} needs switching.mode: spray", key="transport")

    def keys(self) -> RdmaKeys:
        """The keys, of every RDMA transport."""
        return RdmaKeys(timeout_us=self.timeout_us, extra=self.extra)

    def spraying(self) -> Spraying:
        return Spraying(
            paths=1, spread="oblivious", ack_bytes=1, timeout_us=self.timeout_us, flows=self.flows, rdma=self.keys()
        )


@register("transport", "roce")
class Roce(RdmaSpec):
    """RDMA over Ethernet without congestion control: line rate, no window, go-back-N.

    For ``switching.queue: {kind: lossless}``, whose pauses limit senders, or queues that drop (``switching.trim: false``).

    Example: ``transport: {kind: roce}``

    Source: InfiniBand Architecture Specification 1.2.1, annex A17 (RoCEv2).
    """  # noqa: E501


@register("transport", "dcqcn")
class Dcqcn(RdmaSpec):
    """RoCE with DCQCN: a receiver notifies the sender of ECN marks, and the sender lowers its rate.

    gain: g. cnp_us: least time between notifications (CNPs) of a flow. alpha_us: alpha decays after this time without
    CNP, and again each time. increase_us, byte_counter: the rate rises after this time, and after so many bytes; 0: it
    has no byte counter. stages: increases of fast recovery. additive_mbps, hyper_mbps: steps of the target rate after
    it. least_mbps: lowest rate. Defaults are those of the paper (hyper_mbps: ten times additive_mbps, as in ns-3).

    Example: ``transport: {kind: dcqcn, additive_mbps: 40}``

    Source: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, doi:10.1145/2785956.2787484.
    """

    gain: float = Field(default=1.0 / 256.0, gt=0, le=1)
    cnp_us: float = Field(default=50.0, ge=0, le=1e6)
    alpha_us: float = Field(default=55.0, gt=0, le=1e6)
    increase_us: float = Field(default=55.0, gt=0, le=1e6)
    byte_counter: int = Field(default=10_000_000, ge=0, le=10**12)
    stages: int = Field(default=5, ge=1, le=1000)
    additive_mbps: float = Field(default=40.0, ge=0, le=1e7)
    hyper_mbps: float = Field(default=400.0, ge=0, le=1e7)
    least_mbps: float = Field(default=0.0, ge=0, le=1e7)

    def keys(self) -> RdmaKeys:
        own = {name: getattr(self, name) for name in Dcqcn.model_fields if name in RdmaKeys.__dataclass_fields__}
        return RdmaKeys(control=Control.DCQCN, **own)
