# SPDX-License-Identifier: Apache-2.0
"""The congestion control of TCP NewReno."""

from flitlab.models.arrays import Floats, Int
from flitlab.models.registry import register
from flitlab.models.transport.law import Transport, WindowedSpec, law


def additive(windows: Floats, rtts: Floats, i: int, credit: float, mss: float, memory: Floats, now: Int) -> float:
    """Additive increase of one packet per round trip.

    Parameters
    ----------
    windows: float64 [subflows], congestion windows of the flow, bytes.
    rtts: float64 [subflows], round trips of the flow, ticks; 0 before the first sample.
    i: the subflow.
    credit: newly acknowledged bytes.
    mss: bytes of a packet.
    memory: float64 [MEMORY], state of the subflow.
    now: the present tick.

    Returns
    -------
    Bytes by which the window grows.

    Source: RFC 5681, section 3.1.
    """
    return credit * mss / windows[i]


@register("transport", "tcp", aliases=("newreno",))
class Tcp(WindowedSpec):
    """The transport protocol TCP NewReno. With several subflows, each of them is a connection of its own.

    Times that are left out follow from the network and the length of the run (docs/datagram.md, Times).

    Example: ``transport: {kind: tcp, subflows: 8}``

    Source: Henderson, Floyd, Gurtov, Nishida, RFC 6582, 2012; Allman, Paxson, Blanton, RFC 5681, 2009.
    """

    def transport(self) -> Transport:
        return self.windowed(law(additive))
