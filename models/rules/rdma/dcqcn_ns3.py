# SPDX-License-Identifier: Apache-2.0
"""DCQCN as the ns-3 of HPCC's authors has it: marks come with ACKs, and three timers run from the first mark on.

Source: Li et al., HPCC: high precision congestion control, SIGCOMM 2019, doi:10.1145/3341302.3342085, whose simulator
compares with it.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma.layout import Rdma

_ALPHA, _RATE = np.int64(1), np.int64(2)
"""Bits of ``notified``."""


@kernel
def on_ack(d: Rdma, i: Int, marked: bool, now: Int) -> None:
    """Let sender i know of a marked packet; the first one starts its timers.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    marked: whether the acknowledged packet had an ECN mark.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    if not marked:
        return
    flow.cnps += 1
    flow.notified = _ALPHA | _RATE
    if flow.alpha_at < 0:
        flow.notified = _RATE
        flow.alpha_at, flow.decrease_at = now + law.alpha_period, now + law.cnp_interval


@kernel
def next_tick(d: Rdma, i: Int) -> int:
    """The tick of the next timer of sender i, -1 before its first mark.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    flow = d.flow[i]
    tick = min(flow.alpha_at, flow.decrease_at)
    return np.int64(tick if flow.increase_at < 0 else min(tick, flow.increase_at))


@device_function
def on_timer(d: Rdma, i: Int, now: Int) -> None:
    """Adjust alpha of sender i, and lower or raise its rate, where their timers have expired.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    if flow.alpha_at >= 0 and flow.alpha_at <= now:
        flow.alpha *= 1.0 - law.gain
        if flow.notified & _ALPHA != 0:
            flow.alpha += law.gain
            flow.notified &= ~_ALPHA
        flow.alpha_at += law.alpha_period
    if flow.decrease_at >= 0 and flow.decrease_at <= now:
        _decrease(d, i, now)
    if flow.increase_at >= 0 and flow.increase_at <= now:
        _increase(d, i)


@kernel
def _decrease(d: Rdma, i: Int, now: Int) -> None:
    """Lower the rate if marks came; the target keeps its value if the rate has not risen since it last fell."""
    flow, law = d.flow[i], d.laws[d.kind[i]]
    flow.decrease_at += law.cnp_interval
    if flow.notified & _RATE == 0:
        return
    if flow.timer_stage > 0:
        flow.target = flow.rate
    flow.rate = max(flow.rate * (1.0 - 0.5 * flow.alpha), law.least)
    flow.timer_stage = 0
    flow.notified &= ~_RATE
    flow.increase_at = now + law.increase_period


@kernel
def _increase(d: Rdma, i: Int) -> None:
    """Raise the rate half way to the target; beyond fast recovery raise the target first."""
    flow, law = d.flow[i], d.laws[d.kind[i]]
    flow.increase_at += law.increase_period
    if flow.timer_stage >= law.stages:
        step = law.additive if flow.timer_stage == law.stages else law.hyper
        flow.target = min(flow.target + step, law.line)
    flow.rate = min(0.5 * (flow.target + flow.rate), law.line)
    flow.timer_stage += 1
