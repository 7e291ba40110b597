# SPDX-License-Identifier: Apache-2.0
"""RDMA flows at the interface of their host: what they may send, and their timers.

Decisions are in :mod:`flitlab.models.rules.rdma`.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.rdma.hpcc import stamp
from flitlab.models.rules.rdma.layout import Rdma
from flitlab.models.rules.rdma.receiver import cnp_tick
from flitlab.models.rules.rdma.sender import law_tick, pacing_tick, send_next
from flitlab.models.rules.spray.layout import PacketKind
from flitlab.sim.engines.compiled import State
from flitlab.sim.engines.compiled.pool import doubled
from flitlab.sim.engines.compiled.spray.messages import record_first_send
from flitlab.sim.engines.compiled.spray.state import Flag, Timer, make_packet, set_timer

TIMEOUT, LAW, CNP = np.uint8(1), np.uint8(2), np.uint8(4)
"""Bits of ``state.timers_set``."""


def cnps_of(rdma: Rdma | None) -> Ints | None:
    """Return the CNPs that the receiver of each flow has sent, int64 [flows]; None without RDMA flows."""
    return None if rdma is None else rdma.flow.cnps.copy()


@inline
def telemetry_row(rdma, packet):
    """Return the row of a packet in ``Rdma.telemetry``; all have the first, if none is collected."""
    return packet if len(rdma.telemetry) > 1 else np.int64(0)


@inline
def stamp_telemetry(rdma, const, link, packet, sent, queued, now):
    """Append the report of a switch's output to a data packet that it starts to send, if telemetry is collected."""
    if rdma is None:
        return
    if len(rdma.telemetry) > 1:
        stamp(rdma.telemetry, packet, link, const.fixed[link].ratio, sent, queued, now)


def with_more_records(state: State) -> State:
    """Double the number of packets."""
    larger = doubled(state)
    rdma = state.rdma
    if rdma is None or len(rdma.telemetry) <= 1:
        return larger
    telemetry = np.concatenate([rdma.telemetry, np.zeros_like(rdma.telemetry)])
    return larger._replace(rdma=rdma._replace(telemetry=telemetry))


@inline
def make_rdma_data(rdma, const, state, flow, now):
    """Let a flow, which is ready, send its next packet; returns the packet."""
    number, size, again = send_next(rdma, state.senders, flow, const.rules.mtu, now)
    kind = PacketKind.DATA
    if again:
        kind |= Flag.RETRANSMISSION
    else:
        record_first_send(state.program, state, flow, number, now)
    packet = make_packet(const, state, flow, kind, size, np.int64(0), number)
    state.packet[packet].received = now
    rdma.telemetry[telemetry_row(rdma, packet), 0] = 0
    _set_once(const, state, rdma.flow[flow].deadline, Timer.TIMEOUT, flow, TIMEOUT)
    return packet


@inline
def _set_once(const, state, tick, kind, flow, bit):
    """Set a timer of a flow that is not set; tick: -1: it is not needed."""
    if tick >= 0 and state.timers_set[flow] & bit == 0:
        state.timers_set[flow] |= bit
        set_timer(const, state, tick, kind, flow)


@inline
def set_sender_timers(rdma, const, state, flow, now):
    """Set the timers of a sender that are not set: of its rate, and of its congestion control.

    A timer that is set may expire too early; then it is set again. rdma: None: there are none.
    """
    if rdma is None:
        return
    tick = pacing_tick(rdma, state.senders, flow, now)
    if tick >= 0:
        set_timer(const, state, tick, Timer.PACE, flow)
    _set_once(const, state, law_tick(rdma, state.senders, flow), Timer.LAW, flow, LAW)


@inline
def set_cnp_timer(rdma, const, state, flow):
    """Set the timer of a receiver that will notify its sender of marks."""
    _set_once(const, state, cnp_tick(rdma, flow), Timer.CNP, flow, CNP)
