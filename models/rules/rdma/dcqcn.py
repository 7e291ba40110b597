# SPDX-License-Identifier: Apache-2.0
"""DCQCN: receivers notify senders of marked packets, and senders follow with their rates.

Source: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, doi:10.1145/2785956.2787484.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma.layout import Rdma, pace


@kernel
def on_cnp(d: Rdma, i: Int, now: Int) -> None:
    """Lower the rate of sender i by alpha / 2, raise alpha, and restart timers and counters; the next packet is later.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    flow.target = flow.rate
    flow.rate = max(flow.rate * (1.0 - 0.5 * flow.alpha), law.least)
    flow.alpha = (1.0 - law.gain) * flow.alpha + law.gain
    flow.timer_stage = flow.byte_stage = flow.counted = 0
    flow.alpha_at, flow.increase_at = now + law.alpha_period, now + law.increase_period
    pace(d, i)


@kernel
def on_sent(d: Rdma, i: Int, size: Int) -> None:
    """Count the bytes of a packet that sender i sends; a full byte counter raises the rate.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    size: bytes of the packet.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    flow.counted += size
    while law.byte_counter > 0 and flow.counted >= law.byte_counter:
        flow.counted -= law.byte_counter
        flow.byte_stage += 1
        _increase(d, i)


@kernel
def next_tick(d: Rdma, i: Int) -> int:
    """The tick of the next timer of sender i, -1 before its first CNP.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    return np.int64(min(d.flow[i].alpha_at, d.flow[i].increase_at))


@device_function
def on_timer(d: Rdma, i: Int, now: Int) -> None:
    """Lower alpha of sender i, and raise its rate, where their timers have expired.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    if flow.alpha_at >= 0 and flow.alpha_at <= now:
        flow.alpha *= 1.0 - law.gain
        flow.alpha_at += law.alpha_period
    if flow.increase_at >= 0 and flow.increase_at <= now:
        flow.timer_stage += 1
        flow.increase_at += law.increase_period
        pace(d, i)  # by the increases before this one
        _increase(d, i)


@kernel
def _increase(d: Rdma, i: Int) -> None:
    """Raise the rate half way to the target; beyond fast recovery raise the target first."""
    flow, law = d.flow[i], d.laws[d.kind[i]]
    most, least = max(flow.timer_stage, flow.byte_stage), min(flow.timer_stage, flow.byte_stage)
    if least > law.stages:
        flow.target += float(least - law.stages) * law.hyper
    elif most >= law.stages:
        flow.target += law.additive
    flow.rate = min(0.5 * (flow.target + flow.rate), law.line)
