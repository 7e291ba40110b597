# SPDX-License-Identifier: Apache-2.0
"""TIMELY: a rate that follows the gradient of the round-trip time.

Source: Mittal et al., TIMELY: RTT-based congestion control for the datacenter, SIGCOMM 2015,
doi:10.1145/2785956.2787510.
"""

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function
from flitlab.models.rules.rdma.layout import Rdma


@device_function
def on_ack(d: Rdma, i: Int, expected: Int, delay: Int) -> None:
    """Adjust the rate of sender i to the round-trip time of an acknowledged packet, once per round trip.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    expected: first packet that is missing at the receiver.
    delay: ticks from the start of the packet to its acknowledgement.
    """
    flow = d.flow[i]
    if expected <= flow.reference_end:
        return
    trip = float(delay)
    if flow.reference_end > 0:
        _adjust(d, i, trip)
    flow.reference_end, flow.round_trip = flow.cursor, trip


@device_function
def _adjust(d: Rdma, i: Int, trip: float) -> None:
    flow, law = d.flow[i], d.laws[d.kind[i]]
    flow.change = (1.0 - law.gain) * flow.change + law.gain * (trip - flow.round_trip)
    gradient = flow.change / law.round_trip
    if trip < law.base_delay or (trip <= law.most_delay and gradient <= 0.0):
        flow.rate = min(flow.rate + (law.additive if flow.stage < law.stages else law.hyper), law.line)
        flow.stage += 1
        return
    cut = gradient if trip <= law.most_delay else 1.0 - law.most_delay / trip
    flow.rate = max(flow.rate * max(0.0, 1.0 - law.decrease * cut), law.least)
    flow.stage = 0
