# SPDX-License-Identifier: Apache-2.0
"""The base classes of transports, and all that a transport is written with."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from flitlab.models.mappings import Keys
from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.transport.control import MEMORY, AckPath, Law, Transport, halve, ignore, law
from flitlab.models.transport.spraying import SPRAYING, Spraying
from flitlab.models.transport.validation import validate_transport

__all__ = [
    "MEMORY", "AckPath", "Law", "Transport", "TransportSpec", "WindowedSpec",
    "halve", "ignore", "law",
]  # fmt: skip


class TransportSpec(Spec):
    """Keys that all transports have; a transport defines :meth:`transport`."""

    flows: int = Field(default=1, ge=1, le=1024)
    """Flows per pair of hosts."""
    subflows: int = Field(default=1, ge=1, le=1024)
    """Subflows of a flow, each on its own path."""
    start_ms: float | None = Field(default=None, ge=0, le=1e6)
    """Subflows start at random within it. null: a tenth of the warm-up, 50 at most; finite flows at once."""
    priority_class: str | None = Field(default=None, repr=False)
    """Of ``switching.pfc.classes``, the class of its packets. null: the first."""

    @model_serializer(mode="wrap")
    def _without_default(self, serialize: SerializerFunctionWrapHandler) -> Keys:
        """The keys, without a class that is not set."""
        keys: Keys = serialize(self)
        if self.priority_class is None:
            keys.pop("priority_class", None)
        return keys

    def transport(self) -> Transport:
        """How hosts send. Raises ``SpecError``."""
        raise NotImplementedError

    def build(self) -> Transport:
        """How hosts send, validated. Raises ``SpecError``."""
        if self.priority_class is not None:
            raise SpecError("needs switching.mode spray with switching.pfc.classes", key="priority_class")
        return self.validated(self.transport)

    def transports(self) -> dict[str, Transport]:
        """How hosts send, by transport; ``several`` has more than one. Raises ``SpecError``."""
        return {self.kind: self.build()}

    def spraying(self) -> Spraying:
        """How hosts spray. Raises ``SpecError`` for transports that do not."""
        raise SpecError(f"kind {self.kind} does not spray", key="transport", choices=SPRAYING)

    def sprayings(self) -> dict[str, Spraying]:
        """How hosts spray, by transport; ``several`` has more than one. Raises ``SpecError``."""
        return {self.kind: self.classified()}

    def classified(self) -> Spraying:
        """How hosts spray, with the class of their packets. Raises ``SpecError`` as :meth:`spraying`."""
        return replace(self.spraying(), priority_class=self.priority_class)

    def validated(self, give: Callable[[], Transport]) -> Transport:
        """The validated transport of a method; a third-party congestion control is tried out."""
        return validate_transport(give(), tried=is_third_party(self), method=give.__name__)


class WindowedSpec(TransportSpec):
    """Keys of the transports with a congestion window. A packet of one byte opens a connection."""

    ack_path: Literal["instant", "pure_delay", "reverse_path"] = "instant"
    """ACKs return at once, after the delay of the path's links, or as packets through the queues."""
    ack_bytes: int = Field(default=40, ge=1, le=65535)
    """Size of an ACK on the reverse path."""
    min_rto_ms: float | None = Field(default=None, gt=0, le=1e6)
    """Least retransmission timeout. null: 320 base round trips, 250 at most."""
    syn_rto_ms: float | None = Field(default=None, gt=0, le=1e7)
    """Timeout of the packet that opens a connection. null: 3840 base round trips, 3000 at most."""
    init_window: int = Field(default=10, ge=1, le=10**5)
    """Packets of the first congestion window. [packet]"""
    ssthresh: int = Field(default=100, ge=1, le=10**6)
    """Packets of the window up to which slow start goes. [packet]"""

    def windowed(self, control: Law, **more: object) -> Transport:
        """The transport of a congestion control with these keys."""
        keys = ("flows", "subflows", "ack_bytes", "start_ms", "min_rto_ms", "syn_rto_ms", "init_window", "ssthresh")
        own = {key: getattr(self, key) for key in keys}
        return Transport(self._name(), control, ack_path=getattr(AckPath, self.ack_path.upper()), **{**own, **more})

    def _name(self) -> str:
        return repr(self)
