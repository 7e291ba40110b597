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
    reorder: int = 0
    gain: float = 0.0
    cnp_us: float = 0.0
    alpha_us: float = 0.0
    increase_us: float = 0.0
    stages: int = 0
    byte_counter: int = 0
    additive_mbps: float = 0.0
    hyper_mbps: float = 0.0
    least_mbps: float = 0.0
    additive_packets: float = 0.0
    init_window: float = 0.0
    least_window: float = 0.0
    most_window: float = 0.0
    base_us: float = 0.0
    link_us: float = 0.0
    scaling_us: float = 0.0
    scaling_least: float = 0.0
    scaling_most: float = 0.0
    decrease: float = 0.0
    most_decrease: float = 0.0
    eta: float = 0.0
    round_trip_us: float | None = None
    first_use: float = 0.0
    expected_flows: int = 1

    @property
    def marked(self) -> bool:
        """Whether the congestion control reacts to ECN marks."""
        return self.control == Control.DCQCN

    def law(self, tick: Fraction, line: float, payload: int, round_trip: int) -> Law:
        """The parameters in ticks, bytes and bytes per tick.

        Parameters
        ----------
        tick: seconds.
        line: rate of a host, bytes per tick.
        payload: bytes of a full packet without its header.
        round_trip: ticks of the longest round trip of the empty network.
        """

        def ticks(microseconds: float) -> int:
            return ceil(exact(microseconds) / 10**6 / tick)

        def rate(mbps: float) -> float:
            return float(exact(mbps) * 10**6 / 8 * tick)

        law = Law(
            control=int(self.control), timeout=max(1, ticks(self.timeout_us)), extra=self.extra, line=float(line),
            payload=float(payload), reorder=self.reorder,
            gain=float(self.gain), cnp_interval=ticks(self.cnp_us), alpha_period=max(1, ticks(self.alpha_us)),
            increase_period=max(1, ticks(self.increase_us)), stages=self.stages, byte_counter=self.byte_counter,
            additive=rate(self.additive_mbps), hyper=rate(self.hyper_mbps), least=rate(self.least_mbps),
        )  # fmt: skip
        if self.control == Control.SWIFT:
            return law._replace(
                additive=float(self.additive_packets), least_window=float(self.least_window),
                first_window=float(self.init_window), most_window=float(self.most_window),
                base_delay=float(ticks(self.base_us)), link_delay=float(exact(self.link_us) / 10**6 / tick),
                scaling_range=float(ticks(self.scaling_us)), scaling_least=float(self.scaling_least),
                scaling_most=float(self.scaling_most), decrease=float(self.decrease),
                most_decrease=float(self.most_decrease), round_trip=float(round_trip),
            )  # fmt: skip
        if self.control == Control.HPCC:
            trip = float(round_trip if self.round_trip_us is None else ticks(self.round_trip_us))
            window = line * trip
            return law._replace(
                eta=float(self.eta), round_trip=trip, first_use=float(self.first_use), first_window=window,
                additive=window * (1.0 - self.eta) / self.expected_flows,
                least_window=min(max(law.least * trip, 1.0), window),
            )  # fmt: skip
        return law


class RdmaSpec(TransportSpec):
    """Keys of RDMA transports: packets over one path, each acknowledged, repeated from the first missing one.

    reorder: packets beyond the missing one that a receiver keeps, without answer, for switches that spray; others are
    dropped, and the sender goes back.
    timeout_us: a sender goes back to the first unacknowledged packet after this time without progress. extra: 1 sends one
    packet more for messages of full packets only, as the htsim simulator does; a test option.
    """  # noqa: E501

    subflows: Literal[1] = 1
    start_ms: float = Field(default=0.0, ge=0, le=0)
    timeout_us: float = Field(default=1000.0, gt=0, le=1e9)
    extra: Literal[0, 1] = 0
    reorder: int = Field(default=0, ge=0, le=64)

    def transport(self) -> Transport:
        raise SpecError(f"kind {self.kind} needs switching.mode: spray", key="transport")

    def keys(self) -> RdmaKeys:
        """The keys, of every RDMA transport."""
        return RdmaKeys(timeout_us=self.timeout_us, extra=self.extra, reorder=self.reorder)

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
    CNP, and again each time. increase_us, byte_counter: the rate rises after this time, and after these bytes; 0: it
    has no byte counter. stages: increases of fast recovery. additive_mbps, hyper_mbps: steps of the target rate after
    it. least_mbps: lowest rate. Defaults are those of the paper (hyper_mbps: ten times additive_mbps, as in ns-3).

    Example: ``transport: {kind: dcqcn, additive_mbps: 40}``

    Source: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, doi:10.1145/2785956.2787484.
    """

    gain: float = Field(default=1.0 / 256.0, gt=0, le=1)
    cnp_us: float = Field(default=50.0, ge=0, le=1e6)
    alpha_us: float = Field(default=55.0, ge=0.1, le=1e6)
    increase_us: float = Field(default=55.0, ge=0.1, le=1e6)
    byte_counter: int = Field(default=10_000_000, ge=0, le=10**12)
    stages: int = Field(default=5, ge=1, le=1000)
    additive_mbps: float = Field(default=40.0, ge=0, le=1e7)
    hyper_mbps: float = Field(default=400.0, ge=0, le=1e7)
    least_mbps: float = Field(default=0.0, ge=0, le=1e7)

    def keys(self) -> RdmaKeys:
        own = {name: getattr(self, name) for name in Dcqcn.model_fields if name in RdmaKeys.__dataclass_fields__}
        return RdmaKeys(control=Control.DCQCN, **own)


@register("transport", "swift")
class Swift(RdmaSpec):
    """RoCE with Swift: a window that widens while packets come early, and narrows when they are late.

    The target delay is base_us and link_us for each link of the path, and up to scaling_us more for windows below
    scaling_most packets (all of it at scaling_least). additive: packets per round trip by which the window widens;
    decrease: beta; most_decrease: largest part by which it narrows, at most once per round trip. init_window,
    least_window, most_window: packets; below one, packets are paced. Defaults are those of htsim, where all paths count
    as equally long. There is no window of the receiving host, and losses are repaired by go-back-N.

    Example: ``transport: {kind: swift, base_us: 20}``

    Source: Kumar et al., Swift: delay is simple and effective for congestion control in the datacenter, SIGCOMM 2020,
    doi:10.1145/3387514.3406591.
    """

    base_us: float = Field(default=20.0, gt=0, le=1e6)
    link_us: float = Field(default=20.0 / 6.55, ge=0, le=1e6)
    scaling_us: float = Field(default=100.0, ge=0, le=1e6)
    scaling_least: float = Field(default=0.1, gt=0, le=1e6)
    scaling_most: float = Field(default=100.0, gt=0, le=1e6)
    additive: float = Field(default=1.0, gt=0, le=1e3)
    decrease: float = Field(default=0.8, gt=0, le=1)
    most_decrease: float = Field(default=0.5, gt=0, lt=1)
    init_window: float = Field(default=15.0, ge=1e-6, le=1e6)
    least_window: float = Field(default=0.0025, ge=1e-6, le=1e6)
    most_window: float = Field(default=1000.0, gt=0, le=1e6)

    def keys(self) -> RdmaKeys:
        if self.scaling_least >= self.scaling_most:
            raise SpecError(f"scaling_least: {self.scaling_least:g} must be below scaling_most", key="transport")
        if not self.least_window <= self.init_window <= self.most_window:
            raise SpecError("init_window: must be between least_window and most_window", key="transport")
        own = {name: getattr(self, name) for name in Swift.model_fields if name in RdmaKeys.__dataclass_fields__}
        return RdmaKeys(control=Control.SWIFT, additive_packets=self.additive, **own)


@register("transport", "hpcc")
class Hpcc(RdmaSpec):
    """RoCE with HPCC: a window that follows the utilisation of links, which switches report in each packet.

    eta: utilisation aimed at; stages: additive increases in a row. round_trip_us: base round trip T, by default the
    longest of the empty network; the first and largest window is what a host sends in T. expected_flows: n, for additive
    increases of (1 - eta) / n of that. least_mbps: the lowest rate. first_use: utilisation assumed at first. Reports have
    no size; those of the first five switches count. It needs lossless queues; ``queue.mark_own`` says whether the queue
    reported includes the packet.

    Example: ``transport: {kind: hpcc, expected_flows: 10}``

    Source: Li et al., HPCC: high precision congestion control, SIGCOMM 2019, doi:10.1145/3341302.3342085.
    """  # noqa: E501

    eta: float = Field(default=0.95, gt=0, lt=1)
    stages: int = Field(default=5, ge=0, le=1000)
    round_trip_us: float | None = Field(default=None, gt=0, le=1e6)
    expected_flows: int = Field(default=10, ge=1, le=10**6)
    least_mbps: float = Field(default=100.0, ge=0, le=1e7)
    first_use: float = Field(default=1.0, gt=0, le=10)

    def keys(self) -> RdmaKeys:
        own = {name: getattr(self, name) for name in Hpcc.model_fields if name in RdmaKeys.__dataclass_fields__}
        return RdmaKeys(control=Control.HPCC, **own)
