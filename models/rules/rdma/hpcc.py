# SPDX-License-Identifier: Apache-2.0
"""HPCC: a window that follows the utilisation of links, which switches report in every packet (telemetry).

Source: Li et al., HPCC: high precision congestion control, SIGCOMM 2019, doi:10.1145/3341302.3342085;
draft-miao-tsv-hpcc.
"""

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma.layout import FIELDS, HOPS, Rdma, pace


@kernel
def stamp(telemetry: Ints, packet: Int, link: Int, ratio: Int, sent: Int, queued: Int, now: Int) -> None:
    """Append the report of an output to a packet that it starts to send; beyond ``HOPS`` reports there is no space.

    At the end of a service the queue would hold what came during it, more of it behind packets of slow flows.

    Parameters
    ----------
    telemetry: int64 [packets, 1 + FIELDS * HOPS], changed in place: reports of each packet, after their number.
    packet: index of the packet.
    link: the link behind the output.
    ratio: ticks of a byte on it, times 2**16.
    sent: bytes that the output sent before.
    queued: bytes in its queue.
    now: the present tick.
    """
    row = telemetry[packet]
    if row[0] >= HOPS:
        return
    first = 1 + FIELDS * row[0]
    row[first], row[first + 1], row[first + 2], row[first + 3], row[first + 4] = link, now, sent, queued, ratio
    row[0] += 1


@kernel
def fits_window(d: Rdma, i: Int, in_flight: Int) -> bool:
    """Whether the window of sender i allows another packet; it may exceed the window by less than one.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    in_flight: packets sent and not acknowledged.
    """
    return bool(float(in_flight) * d.laws[d.kind[i]].payload < d.flow[i].window)


@device_function
def on_ack(d: Rdma, i: Int, row: Ints, expected: Int) -> None:
    """Adjust the window of sender i, and the tick of its next packet, to the telemetry of an acknowledged packet.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    row: int64 [1 + FIELDS * HOPS], the reports.
    expected: first packet that is missing at the receiver.
    """
    flow, law, last = d.flow[i], d.laws[d.kind[i]], d.last[i]
    if last[0] == 0:
        _copy(row, last)
        flow.reference_end = flow.cursor
        return
    use, ticks = _utilisation(row, last, law.round_trip)
    _copy(row, last)
    weight = min(ticks, law.round_trip) / law.round_trip
    flow.utilisation = (1.0 - weight) * flow.utilisation + weight * use
    stage = np.int64(0)
    if flow.utilisation >= law.eta or flow.stage >= law.stages:
        flow.window = flow.reference * law.eta / flow.utilisation + law.additive
    else:
        flow.window = flow.reference + law.additive
        stage = flow.stage + 1
    flow.window = min(max(flow.window, law.least_window), law.first_window)
    if expected > flow.reference_end:
        flow.reference, flow.stage, flow.reference_end = flow.window, stage, flow.cursor
    flow.rate = flow.window / law.round_trip
    pace(d, i)


@kernel
def _copy(row: Ints, last: Ints) -> None:
    for k in range(len(row)):
        last[k] = row[k]


@kernel
def _utilisation(row: Ints, last: Ints, round_trip: float) -> tuple[float, float]:
    """The largest utilisation of an output between two reports, and the ticks between these."""
    use, ticks = 0.0, 0.0
    for hop in range(min(row[0], last[0])):
        first = 1 + FIELDS * hop
        if row[first] != last[first] or row[first + 1] <= last[first + 1]:
            continue
        passed = float(row[first + 1] - last[first + 1])
        rate = 65536.0 / float(row[first + 4])
        queued = float(min(row[first + 3], last[first + 3]))
        of_hop = queued / (rate * round_trip) + float(row[first + 2] - last[first + 2]) / (passed * rate)
        if of_hop > use:
            use, ticks = of_hop, passed
    return use, ticks
