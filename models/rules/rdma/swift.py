# SPDX-License-Identifier: Apache-2.0
"""Swift: a window of packets that follows the delay of each packet.

Source: Kumar et al., Swift: delay is simple and effective for congestion control in the datacenter, SIGCOMM 2020,
doi:10.1145/3387514.3406591.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma.layout import Rdma

MOST_TIMEOUTS = 5
"""Timeouts in a row after which the window is the smallest."""


@kernel
def target_delay(d: Rdma, i: Int) -> float:
    """The delay that sender i aims at, ticks: more for longer paths, and for small windows.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    whole, scaled = np.floor(flow.window), law.scaling_range
    if whole > 0.0:
        slope = law.scaling_range / (1.0 / np.sqrt(law.scaling_least) - 1.0 / np.sqrt(law.scaling_most))
        scaled = max(0.0, min(slope / np.sqrt(whole) - slope / np.sqrt(law.scaling_most), law.scaling_range))
    return law.base_delay + float(flow.links) * law.link_delay + scaled


@kernel
def fits_window(d: Rdma, i: Int, in_flight: Int) -> bool:
    """Whether the window of sender i allows another packet; below one packet its pace replaces the window.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    in_flight: packets sent and not acknowledged.
    """
    window = d.flow[i].window
    return bool(window < 1.0 or float(in_flight) + 1.0 <= window)


@kernel
def on_sent(d: Rdma, i: Int) -> None:
    """Pace sender i, which has sent a packet, if its window is below one packet.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    flow = d.flow[i]
    if flow.window < 1.0:
        trip = flow.round_trip if flow.round_trip > 0.0 else d.laws[d.kind[i]].round_trip
        flow.next_at = flow.sent_at + np.int64(np.ceil(trip / flow.window))


@device_function
def on_ack(d: Rdma, i: Int, acked: Int, delay: Int, now: Int) -> None:
    """Adjust the window of sender i to the delay of an acknowledged packet.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    acked: newly acknowledged packets.
    delay: ticks from the start of the packet to its acknowledgement.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    target = target_delay(d, i)
    if float(delay) < target:
        growth = law.additive * float(acked)
        flow.window += growth / flow.window if flow.window >= 1.0 else growth
        flow.window = min(flow.window, law.most_window)
    else:
        _decrease(d, i, 1.0 - law.decrease * (float(delay) - target) / float(delay), now)
    smoothed = 0.875 * flow.round_trip + 0.125 * float(delay)
    flow.round_trip = smoothed if flow.round_trip > 0.0 else float(delay)
    if flow.window >= 1.0:
        flow.next_at = min(flow.next_at, np.int64(now))


@kernel
def on_loss(d: Rdma, i: Int, timeouts: Int, now: Int) -> None:
    """Adjust the window of sender i to a loss.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    timeouts: in a row, 0: a NACK.
    now: the present tick.
    """
    if timeouts >= MOST_TIMEOUTS:
        d.flow[i].window = d.laws[d.kind[i]].least_window
    else:
        _decrease(d, i, 0.0, now)


@kernel
def _decrease(d: Rdma, i: Int, factor: float, now: Int) -> None:
    """Multiply the window by a factor or the least allowed, unless it fell in the last round trip."""
    flow, law = d.flow[i], d.laws[d.kind[i]]
    if float(now - flow.cut_at) < flow.round_trip:
        return
    flow.window = max(flow.window * max(factor, 1.0 - law.most_decrease), law.least_window)
    flow.cut_at = now
