# SPDX-License-Identifier: Apache-2.0
"""Transports of mode spray: NSCC, RCCC, NDP and a constant window, and the keys that they share."""

from collections.abc import Set
from typing import Any, Literal

from pydantic import BaseModel, Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import Parameters, SpecError, register
from flitlab.models.rules.spray.layout import Credit, WindowControl
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.spraying import Paths, Spraying, Spread
from flitlab.models.transport.times import LONGEST


class SprayedSpec(TransportSpec):
    """Keys of spraying transports: every packet takes one of ``paths`` by its own entropy value."""

    subflows: Literal[1] = 1
    """A flow has one; its packets take all paths."""
    start_ms: float = Field(default=0.0, ge=0, le=0)
    """Flows start together."""
    paths: Paths = 64
    """Entropy values of a flow."""
    spread: Spread = "mixed"
    """How a sender chooses one: round robin, without marked or trimmed ones, good ones again, or both."""
    sack_threshold: int = Field(default=16384, ge=1, le=10**9)
    """Received bytes that cause an ACK. [B]"""
    init_window: int | None = Field(default=None, ge=1, le=10**6)
    """Packets of the first window. null: 1.5 bandwidth-delay products. [packet]"""
    timeout_us: float | None = Field(default=None, gt=0, le=1e9)
    """Retransmission timeout. null: 15 us plus the time of six full queues."""

    def transport(self) -> Transport:
        raise SpecError(f"kind {self.kind} needs switching.mode: spray", key="transport")

    def sprayed(self, **more: Any) -> Spraying:
        """How hosts spray with these keys, and with those of the transport itself."""
        return Spraying(
            paths=self.paths, spread=self.spread, ack_bytes=self.sack_threshold, init_window=self.init_window,
            timeout_us=self.timeout_us, flows=self.flows, **more,
        )  # fmt: skip


SPRAYED = frozenset({"paths", "spread"})
"""Keys of transports with another mode that apply in mode spray only."""


def reject_keys(spec: BaseModel, keys: Set[str], mode: str) -> None:
    """Reject keys of a two-mode transport that do not apply in this mode.

    Default values count as not given, as in the resolved configuration of a run; so do times with their longest
    default, which earlier versions wrote there.

    Parameters
    ----------
    spec: the keys.
    keys: names that do not apply.
    mode: the switching mode.

    Raises
    ------
    SpecError: some of them are given.
    """
    fields = type(spec).model_fields
    misplaced = sorted(
        key for key in spec.model_fields_set & keys
        if getattr(spec, key) not in (fields[key].default, LONGEST.get(key))
    )  # fmt: skip
    if misplaced:
        raise SpecError(f"{', '.join(misplaced)}: not for switching.mode {mode}", key="transport")


def sprayed_keys(spec: Parameters) -> Keys:
    """The values of :data:`SPRAYED` that a two-mode transport has."""
    return {key: getattr(spec, key) for key in sorted(SPRAYED) if getattr(spec, key) is not None}


@register("transport", "nscc")
class Nscc(SprayedSpec):
    """Network signalled congestion control of Ultra Ethernet: a window that follows marks and queueing delay.

    It widens while packets come early or unmarked, narrows when they are late and marked, and loses each trimmed packet.
    With ``sleek`` a packet counts as dropped when as many came beyond it as 1.5 windows have, or by a probe.

    Example: ``transport: {kind: nscc, paths: 128, spread: bitmap}``

    Source: Ultra Ethernet Specification 1.0, 2025, section 3.6 (congestion management).
    """  # noqa: E501

    target: float | None = Field(default=None, gt=0, le=100)
    """Queueing delay aimed at, in longest round trips. null: 0.75, without trimming 1."""
    sleek: bool = False
    """Senders find dropped packets before the timeout, for switches that do not trim."""

    def spraying(self) -> Spraying:
        return self.sprayed(window=WindowControl.NSCC, target=self.target, sleek=self.sleek)


@register("transport", "rccc")
class Rccc(SprayedSpec):
    """Receiver credit congestion control of Ultra Ethernet: receivers grant senders what they may send.

    After a first window nothing is sent without credit, which each receiver grants its senders round robin, at 0.99 of
    its rate; below ``oversubscription`` less, while packets are trimmed before their last hop.

    Example: ``transport: {kind: rccc, paths: 64, spread: reps}``

    Source: Ultra Ethernet Specification 1.0, 2025, section 3.6 (congestion management).
    """

    oversubscription: float | None = Field(default=None, ge=1, le=1e6)
    """Of the network; receivers grant less below it. null: from the topology; 1: they do not."""

    def spraying(self) -> Spraying:
        return self.sprayed(credit=Credit.RCCC, oversubscription=self.oversubscription)


@register("transport", "nscc_rccc")
class Both(Nscc):
    """Both congestion controls of Ultra Ethernet: a sender needs window space and receiver credit.

    Queues towards hosts do not mark, as credit limits them. target: as of ``nscc``.

    Example: ``transport: {kind: nscc_rccc}``

    Source: Ultra Ethernet Specification 1.0, 2025, section 3.6 (congestion management).
    """

    def spraying(self) -> Spraying:
        return self.sprayed(window=WindowControl.NSCC, credit=Credit.RCCC, target=self.target, sleek=self.sleek)


@register("transport", "ndp")
class Ndp(SprayedSpec):
    """A first window at the rate of the host, and then a packet for each pull of the receiver.

    Each packet that arrives, trimmed or not, earns a pull, which the receiver sends at its own rate; packets that were
    trimmed are sent again first. If all transports of a run are of this kind, queues have space for 8 packets by
    default, at any rate of the channel, mark only where ``switching.ecn`` says so, and serve ten control packets for
    each data packet while both wait. There is no return to sender and no path penalty.

    Example: ``transport: {kind: ndp, init_window: 23}``

    Source: Handley et al., Re-architecting datacenter networks and stacks for low latency and high performance,
    SIGCOMM 2017, doi:10.1145/3098822.3098825.
    """

    spread: Spread = "oblivious"
    """How a sender chooses a path, as of nscc."""
    sack_threshold: int = 1
    """Received bytes that cause an ACK. [B]"""
    init_window: int | None = Field(default=None, ge=1, le=10**6)
    """Packets of the first window. null: 15. [packet]"""

    def spraying(self) -> Spraying:
        spraying = self.sprayed(credit=Credit.NDP)
        return spraying if self.init_window is not None else self.model_copy(update={"init_window": 15}).spraying()


@register("transport", "constant")
class Constant(SprayedSpec):
    """A constant congestion window, whatever is marked or trimmed.

    Example: ``transport: {kind: constant, init_window: 40}``

    Source: the constant window of the Ultra Ethernet simulator, which runs it as a baseline.
    """

    def spraying(self) -> Spraying:
        return self.sprayed(window=WindowControl.CONSTANT)
