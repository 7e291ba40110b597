# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: one FIFO for all packets, charged to the input port by which they came, and never dropped."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.lossless import charge, is_marked, release, switch_pause
from flitlab.models.rules.spray.layout import Kind
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.spray.hosts import serve_nic
from flitlab.sim.engines.compiled.spray.links import append, end_service, start_service, take_first
from flitlab.sim.engines.compiled.spray.lossless import ARRIVAL, add_event, is_paused, send_pause
from flitlab.sim.engines.compiled.spray.rdma import stamp_telemetry
from flitlab.sim.engines.compiled.spray.state import Fifo, Flag


@inline
def accept_lossless(lossless, const, state, link, packet, came_by, now):
    """Accept a packet into the queue of a switch's output, and charge it to the input port by which it came.

    Parameters
    ----------
    link, packet: int64.
    came_by: int64, link that ends at the input port.
    now: int64, tick.
    """
    link_record, size = state.link[link], np.int64(state.packet[packet].size)
    append(state, link_record, Fifo.DATA, packet)
    state.packet[packet].previous = came_by
    link_record.data_bytes += size
    link_record.accepted += 1
    link_record.max_data_bytes = max(link_record.max_data_bytes, link_record.data_bytes)
    if charge(lossless.ports, came_by, size):
        send_pause(lossless, const, state, came_by, now)
    if link_record.serving == NONE:
        _start_next(lossless, const, state, link, now)


@inline
def _start_next(lossless, const, state, link, now):
    """Let the idle server of a switch's output start the next packet, unless it is paused."""
    link_record = state.link[link]
    if link_record.first[Fifo.DATA] == NONE or is_paused(lossless, link):
        return
    packet = take_first(state, link_record, Fifo.DATA)
    size = np.int64(state.packet[packet].size)
    if state.packet[packet].kind & Flag.KIND_MASK == Kind.DATA:
        queued = link_record.data_bytes - (np.int64(0) if lossless.mark_own else size)
        stamp_telemetry(state.rdma, const, link, packet, lossless.ports[link].sent, queued, now)
    lossless.ports[link].sent += size
    start_service(const, state, link, packet, now)


@inline
def _release(lossless, const, state, link, packet, now):
    """Mark a packet that leaves the queue of a switch's output, and release its charge."""
    link_record, record = state.link[link], state.packet[packet]
    size, came_by = np.int64(record.size), np.int64(record.previous)
    link_record.data_bytes -= size
    if record.kind & Flag.KIND_MASK == Kind.DATA:
        queued = link_record.data_bytes + (size if lossless.mark_own else np.int64(0))
        _mark(lossless, const, state, link, record, queued)
    if release(lossless.ports, came_by, size):
        send_pause(lossless, const, state, came_by, now)


@inline
def _mark(lossless, const, state, link, record, queued):
    """Mark a data packet (ECN) that leaves a queue of ``queued`` bytes; between the thresholds at random."""
    link_record, low, high = state.link[link], const.fixed[link].mark_low, const.fixed[link].mark_high
    if queued <= low:
        return
    marked = is_marked(
        const.rules.seed, link, link_record.mark_draws, queued, low, high, lossless.mark_span[link]
    )  # fmt: skip
    link_record.mark_draws += 1
    if marked and record.kind & Flag.ECN_MARK == 0:
        record.kind |= Flag.ECN_MARK
        link_record.marked += 1


@inline
def switch_server(lossless, const, state, link, now):
    """Pause or resume the server of a link; if it is resumed and idle, it starts the next packet."""
    if switch_pause(lossless.ports, link, now) or state.link[link].serving != NONE:
        return
    if link >= const.inject and link < const.eject:
        serve_nic(const, state, link - const.inject, now)
    else:
        _start_next(lossless, const, state, link, now)


@inline
def end_lossless_service(lossless, const, state, link, now):
    """End the service of a packet: of a switch's output it is marked and its charge released; start the next one."""
    is_host = link >= const.inject and link < const.eject
    packet = end_service(state, state.link[link])
    if not is_host:
        _release(lossless, const, state, link, packet, now)
    add_event(lossless, const, state, now + const.fixed[link].delay, link, ARRIVAL)
    if is_host:
        serve_nic(const, state, link - const.inject, now)
    else:
        _start_next(lossless, const, state, link, now)
