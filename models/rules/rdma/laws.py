# SPDX-License-Identifier: Apache-2.0
"""The congestion control of an RDMA flow: the functions of each law, and the choice among them.

A law is a module with those of these functions that it needs, and a branch in each of them here: there is no other
place that knows which law a flow has.
"""

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma import dcqcn, dcqcn_ns3, hpcc, swift, timely
from flitlab.models.rules.rdma.layout import Control, Rdma, pace


@kernel
def fits_window(d: Rdma, i: Int, in_flight: Int) -> bool:
    """Whether the window of sender i allows another packet.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    in_flight: packets sent and not acknowledged.
    """
    law = d.laws[d.kind[i]]
    control = law.control
    if law.window > 0.0 and not _fits_fixed_window(d, i, in_flight):
        return False
    if control == Control.SWIFT:
        return swift.fits_window(d, i, in_flight)
    if control == Control.HPCC:
        return hpcc.fits_window(d, i, in_flight)
    return True


@kernel
def _fits_fixed_window(d: Rdma, i: Int, in_flight: Int) -> bool:
    """Whether the window that a transport with any congestion control can have allows another packet."""
    flow, law = d.flow[i], d.laws[d.kind[i]]
    window = law.window
    if law.scales_window != 0:
        window *= min(1.0, flow.rate / law.line)
    return bool(float(in_flight) * law.payload < window)


@kernel
def on_sent(d: Rdma, i: Int, size: Int) -> None:
    """Set the earliest tick of the next packet of sender i, which has sent one.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    size: bytes of the packet.
    """
    control = d.laws[d.kind[i]].control
    if control == Control.SWIFT:
        swift.on_sent(d, i)
        return
    if control == Control.DCQCN:
        dcqcn.on_sent(d, i, size)
    pace(d, i)


@device_function
def on_ack(
    d: Rdma, i: Int, acked: Int, expected: Int, delay: Int, marked: bool, row: Ints, now: Int
) -> None:  # fmt: skip
    """Let sender i react to an acknowledgement.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    acked: newly acknowledged packets.
    expected: first packet that is missing at the receiver.
    delay: ticks from the start of the packet to its acknowledgement.
    marked: whether the packet had an ECN mark.
    row: int64 [1 + FIELDS * HOPS], its telemetry.
    now: the present tick.
    """
    control = d.laws[d.kind[i]].control
    if control == Control.SWIFT:
        swift.on_ack(d, i, acked, delay, now)
    elif control == Control.HPCC:
        hpcc.on_ack(d, i, row, expected)
    elif control == Control.TIMELY:
        timely.on_ack(d, i, expected, delay)
    elif control == Control.DCQCN_NS3:
        dcqcn_ns3.on_ack(d, i, marked, now)


@kernel
def on_loss(d: Rdma, i: Int, timeouts: Int, now: Int) -> None:
    """Let sender i react to a loss.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    timeouts: in a row, 0: a NACK.
    now: the present tick.
    """
    if d.laws[d.kind[i]].control == Control.SWIFT:
        swift.on_loss(d, i, timeouts, now)


@kernel
def on_cnp(d: Rdma, i: Int, now: Int) -> None:
    """Let sender i react to a congestion notification packet.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    if d.laws[d.kind[i]].control == Control.DCQCN:
        dcqcn.on_cnp(d, i, now)


@kernel
def next_tick(d: Rdma, i: Int) -> int:
    """The next tick at which the congestion control of sender i acts by itself; -1: it does not.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    control = d.laws[d.kind[i]].control
    if control == Control.DCQCN:
        return dcqcn.next_tick(d, i)
    if control == Control.DCQCN_NS3:
        return dcqcn_ns3.next_tick(d, i)
    return np.int64(-1)


@kernel
def on_timer(d: Rdma, i: Int, now: Int) -> None:
    """Let the congestion control of sender i act by itself, if that is due.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    control = d.laws[d.kind[i]].control
    if control == Control.DCQCN:
        dcqcn.on_timer(d, i, now)
    elif control == Control.DCQCN_NS3:
        dcqcn_ns3.on_timer(d, i, now)
