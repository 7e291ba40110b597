# SPDX-License-Identifier: Apache-2.0
"""Multipath TCP with linked increases."""

from typing import Literal

from pydantic import Field

from flitlab.models.arrays import Floats, Int
from flitlab.models.registry import register
from flitlab.models.transport.law import Transport, WindowedSpec, law
from flitlab.models.transport.tcp import additive


def linked(windows: Floats, rtts: Floats, i: int, credit: float, mss: float, memory: Floats, now: Int) -> float:
    """Linked increase: the flow takes as much as TCP on the best of its paths, and no subflow more than TCP.

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

    Source: Raiciu, Handley, Wischik, RFC 6356, 2011.
    """
    total = best = speed = 0.0
    for j in range(len(windows)):
        total += windows[j]
        if rtts[j] > 0.0:
            best = max(best, windows[j] / (rtts[j] * rtts[j]))
            speed += windows[j] / rtts[j]
    uncoupled = credit * mss / windows[i]
    if speed == 0.0:
        return uncoupled
    aggressiveness = total * best / (speed * speed)
    return min(aggressiveness * credit * mss / total, uncoupled)


def halve_to_one(window: float, mss: float, memory: Floats) -> float:
    """``back_off`` of MPTCP: half of the outstanding bytes, at least one packet.

    Parameters
    ----------
    window: outstanding bytes.
    mss: bytes of a packet.
    memory: float64 [MEMORY], state of the subflow; not used.

    Returns
    -------
    Slow start threshold, bytes.

    Source: RFC 5681, equation 4, with a lower limit of one packet instead of two.
    """
    return max(window / 2.0, mss)


@register("transport", "mptcp")
class Mptcp(WindowedSpec):
    """Multipath TCP: the subflows of a flow share its data, and with ``coupling: lia`` their windows grow as one.

    Slow start and losses affect a single subflow. There is no window for the flow as a whole.

    Times that are left out follow from the network and the length of the run (docs/datagram.md, Times).

    Example: ``transport: {kind: mptcp, subflows: 8}``

    Source: Raiciu, Handley, Wischik, RFC 6356, 2011; Wischik, Raiciu, Greenhalgh, Handley, NSDI 2011.
    """

    subflows: int = Field(default=8, ge=1, le=1024)
    """Subflows of a flow, each on its own path."""
    coupling: Literal["lia", "none"] = "lia"
    """Whether the windows of a flow grow as one."""

    def transport(self) -> Transport:
        return self.windowed(law(linked if self.coupling == "lia" else additive, halve_to_one))
