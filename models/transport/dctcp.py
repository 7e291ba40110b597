# SPDX-License-Identifier: Apache-2.0
"""Data center TCP."""

from pydantic import Field

from flitlab.models.arrays import Floats
from flitlab.models.registry import register
from flitlab.models.rules.spray.layout import WindowControl
from flitlab.models.transport.law import Transport, WindowedSpec, halve, law
from flitlab.models.transport.sprayed import SPRAYED, reject_keys, sprayed_keys
from flitlab.models.transport.spraying import Paths, Spraying, Spread
from flitlab.models.transport.tcp import additive

GAIN = 1.0 / 16.0

FIRST_WINDOW = 10
"""Packets of the first window in mode datagram, as of TCP."""


def by_share(window: float, share: float, mss: float, memory: Floats) -> float:
    """Reduce the window by half the running mean of the share of marked packets, at most once per round trip.

    The mean (alpha) begins with 1, as in RFC 8257: the memory, 0 at first, has what it is below 1.

    Parameters
    ----------
    window: congestion window, bytes.
    share: fraction of marked packets.
    mss: bytes of a packet.
    memory: float64 [MEMORY], state of the subflow.

    Returns
    -------
    The window, bytes.

    Source: Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192.
    """
    memory[0] += GAIN * (1.0 - share - memory[0])
    alpha = 1.0 - memory[0]
    return window if share == 0.0 else max(window * (1.0 - alpha / 2.0), mss)


@register("transport", "dctcp")
class Dctcp(WindowedSpec):
    """Data center TCP: queues above ``mark_packets`` mark packets, and senders back off by how many.

    A queue marks a packet with which it holds more. The running mean of the marked share begins with 1 and has gain
    1/16. Losses are treated as TCP does. Times that are left out follow from the network and the length of the run
    (docs/datagram.md, Times).

    In mode spray it is another control: a window that grows by a packet a round trip, and shrinks by a third of what a
    marked acknowledgement reports and by what is trimmed. Its keys are then ``paths`` and ``spread``, as of ``nscc``,
    and ``init_window``, by default 1.5 products of bandwidth and delay, where it is 10 in mode datagram.

    Example: ``transport: {kind: dctcp, mark_packets: 20}``

    Source: Alizadeh et al., Data Center TCP, SIGCOMM 2010, doi:10.1145/1851182.1851192; RFC 8257.
    """

    init_window: int | None = Field(default=None, ge=1, le=10**5)  # type: ignore[assignment]
    """Packets of the first window. null: 10, in mode spray 1.5 bandwidth-delay products. [packet]"""
    mark_packets: int = Field(default=20, ge=1, le=10**6)
    """Queue above which packets are marked, the arriving one included. [packet]"""
    paths: Paths | None = None
    """Entropy values of a flow, in mode spray."""
    spread: Spread | None = None
    """How a sender chooses one, in mode spray."""

    def transport(self) -> Transport:
        reject_keys(self, SPRAYED, "datagram")
        return self.windowed(
            law(additive, halve, by_share), mark_packets=self.mark_packets,
            init_window=FIRST_WINDOW if self.init_window is None else self.init_window,
        )  # fmt: skip

    def spraying(self) -> Spraying:
        used = {"kind", "flows", "init_window", "priority_class", *SPRAYED}
        reject_keys(self, {*type(self).model_fields} - used, "spray")
        return Spraying(WindowControl.DCTCP, **sprayed_keys(self), init_window=self.init_window, flows=self.flows)
