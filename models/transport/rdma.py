# SPDX-License-Identifier: Apache-2.0
"""Transports of RDMA over Ethernet: the keys of all, and RoCE at line rate.

A transport with a congestion control is a file beside this one, with a module in :mod:`flitlab.models.rules.rdma`.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.rules.rdma.layout import Control, Law
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.queues import exact
from flitlab.models.transport.spraying import Spraying


@dataclass(frozen=True)
class Scale:
    """The units of a run, and what parameters depend on.

    tick: seconds. line: rate of a host, bytes per tick. payload: bytes of a full packet without its header. round_trip:
    ticks of the longest round trip of the empty network.
    """

    tick: Fraction
    line: float
    payload: int
    round_trip: int

    def ticks(self, microseconds: float) -> int:
        """A time in ticks, rounded up."""
        return ceil(exact(microseconds) / 10**6 / self.tick)

    def rate(self, mbps: float) -> float:
        """A rate in bytes per tick."""
        return float(exact(mbps) * 10**6 / 8 * self.tick)


class Marks(NamedTuple):
    """ECN marks of an output: bytes up to which there are none, and above which all packets get one.

    probability: at ``high``. gbps: rate of the link to which low and high apply, others in proportion; None: to any.
    """

    low: int
    high: int
    probability: float
    gbps: float | None = None


_TIMEOUT_US = {"go_back_n": 1000.0, "selective": 320.0}
"""Default of ``timeout_us`` by recovery; those of selective repeat as in its paper."""

_SHORT_TIMEOUT_US = 100.0


class RdmaSpec(TransportSpec):
    """Keys of RDMA transports: packets over one path, each acknowledged, repeated from the first missing one."""

    control: ClassVar[Control] = Control.NONE
    """The congestion control."""
    telemetry: ClassVar[bool] = False
    """Whether it reads the reports of outputs."""

    subflows: Literal[1] = 1
    """A flow has one."""
    start_ms: float = Field(default=0.0, ge=0, le=0)
    """Flows start together."""
    recovery: Literal["go_back_n", "selective"] = "go_back_n"
    """Senders repeat all from the first missing packet on, or (IRN) lost packets only."""
    timeout_us: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """Time without progress after which packets are repeated. null: 1000, selective 320."""
    short_timeout_us: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """The same with at most three packets in flight, selective. null: 100."""
    extra: Literal[0, 1] = 0
    """1: one packet more for messages of full packets only, as htsim sends; a test option."""
    reorder: int = Field(default=0, ge=0, le=64)
    """Packets beyond the missing one that a receiver keeps; selective: that do not prove it lost. [packet]"""
    window_bytes: Annotated[int, Field(ge=1, le=10**12)] | None = None
    """Payload in flight below which a sender starts a packet. null: no such window."""
    window_bdp: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """The same in what a host sends in the longest round trip of the empty network. null: none; selective 1."""
    scale_window: bool = False
    """The window shrinks in proportion to the rate."""

    @property
    def marks(self) -> Marks | None:
        """The ECN marks that it needs from lossless queues, unless the configuration has others; None: none."""
        return None

    def transport(self) -> Transport:
        raise SpecError(f"kind {self.kind} needs switching.mode: spray", key="transport")

    def law(self, scale: Scale) -> Law:
        """The parameters in ticks, bytes and bytes per tick.

        Parameters
        ----------
        scale: units, rates and round trip of the run.
        """
        selective = self.recovery == "selective"
        in_products = self.window_bdp or (1.0 if selective else 0.0)
        window = float(self.window_bytes or in_products * scale.line * scale.round_trip)
        short = scale.ticks(self.short_timeout_us or _SHORT_TIMEOUT_US)
        return Law(
            control=int(self.control), timeout=max(1, scale.ticks(self._timeout_us)), extra=self.extra,
            selective=int(selective), short_timeout=min(max(1, short), scale.ticks(self._timeout_us)),
            line=float(scale.line), payload=float(scale.payload), window=window,
            scales_window=int(self.scale_window), telemetry=int(self.telemetry), reorder=self.reorder,
        )  # fmt: skip

    @property
    def _timeout_us(self) -> float:
        """The timeout, or its default."""
        return self.timeout_us or _TIMEOUT_US[self.recovery]

    def spraying(self) -> Spraying:
        if self.short_timeout_us is not None and self.recovery != "selective":
            raise SpecError("short_timeout_us: only with recovery: selective", key="transport")
        if self.window_bytes is not None and self.window_bdp is not None:
            raise SpecError("give either window_bytes or window_bdp", key="transport")
        return Spraying(
            paths=1, spread="oblivious", ack_bytes=1, timeout_us=self._timeout_us, flows=self.flows, rdma=self
        )


@register("transport", "roce")
class Roce(RdmaSpec):
    """RDMA over Ethernet without congestion control: line rate, no window, go-back-N.

    For ``switching.queue: lossless``, whose pauses limit senders, or queues that drop (``ecn``, ``drop_tail``).

    Example: ``transport: {kind: roce}``

    Source: InfiniBand Architecture Specification 1.2.1, annex A17 (RoCEv2).
    """
