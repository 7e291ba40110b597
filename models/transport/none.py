"""No transport: packets at a constant rate."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.transport.law import Transport, TransportSpec


@register("transport", "none")
class Unresponsive(TransportSpec):
    """Packets at a constant rate, never acknowledged nor sent again (UDP).

    rate: of a flow, as a fraction of the network interface's; its subflows share it evenly. A finite flow that has lost
    a packet is never complete.

    Example: ``transport: {kind: none, rate: 0.5}``

    Source: Postel, RFC 768, 1980.
    """

    rate: float = Field(default=1.0, gt=0, le=1)

    def transport(self) -> Transport:
        return Transport(repr(self), None, self.flows, self.subflows, start_ms=self.start_ms, rate=self.rate)
