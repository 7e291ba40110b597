# SPDX-License-Identifier: Apache-2.0
"""No transport: packets at a constant rate."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.rules.spray.layout import Credit
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.sprayed import SPRAYED, reject_keys, sprayed_keys
from flitlab.models.transport.spraying import Paths, Spraying, Spread


@register("transport", "none")
class Unresponsive(TransportSpec):
    """Packets at a constant rate, never acknowledged nor sent again (UDP).

    A finite flow that loses a packet never completes.

    Example: ``transport: {kind: none, rate: 0.5}``

    Source: Postel, RFC 768, 1980.
    """

    rate: float = Field(default=1.0, gt=0, le=1)
    """Rate of a flow as a fraction of the interface's; its subflows share it evenly."""
    paths: Paths | None = None
    """Entropy values of a flow, in mode spray."""
    spread: Spread | None = None
    """How packets take them, without feedback, in mode spray."""

    def transport(self) -> Transport:
        reject_keys(self, SPRAYED, "datagram")
        return Transport(repr(self), None, self.flows, self.subflows, start_ms=self.start_ms, rate=self.rate)

    def spraying(self) -> Spraying:
        reject_keys(self, {"subflows", "start_ms"}, "spray")
        return Spraying(credit=Credit.PACED, **sprayed_keys(self), rate=self.rate, flows=self.flows)
