# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: one FIFO for all packets, charged to the input port by which they came, and never dropped."""

from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, njit
from flitlab.models.rules.lossless import (
    SEARCHED,
    admits,
    charge,
    charge_shared,
    is_marked,
    release,
    release_shared,
    switch_pause,
)
from flitlab.models.rules.spray.layout import Kind
from flitlab.models.rules.watchdog import Action, obeys, on_timer, timer_tick
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.spray.hosts import serve_nic
from flitlab.sim.engines.compiled.spray.links import append, drop, end_service, start_service, take_first
from flitlab.sim.engines.compiled.spray.lossless import (
    ARRIVAL,
    PAUSE,
    add_event,
    blame,
    is_paused,
    record_pause,
    send_pause,
)
from flitlab.sim.engines.compiled.spray.packets import set_timer
from flitlab.sim.engines.compiled.spray.rdma import stamp_telemetry
from flitlab.sim.engines.compiled.spray.state import NO_CAPACITY, Fifo, Flag, Timer
from flitlab.sim.engines.transport.spray import NO_QUEUE

_NO_QUEUE = np.int64(NO_QUEUE)


@inline
def accept_lossless(lossless, const, state, link, packet, came_by, now):
    """Accept a packet into the queue of a switch's output, and charge it to the input port by which it came.

    Parameters
    ----------
    link, packet: int64.
    came_by: int64, link that ends at the input port.
    now: int64, tick.
    """
    size = np.int64(state.packet[packet].size)
    if const.fixed[link].capacity == NO_CAPACITY:
        drop(state, link, packet)
        return
    if lossless.strict and not _is_data(state, packet):
        _accept_control(lossless, const, state, link, packet, size, now)
        return
    if not _admits(lossless.buffers, lossless.ports, came_by, size):
        drop(state, link, packet)
        return
    link_record = state.link[link]
    append(state, link_record, Fifo.DATA, packet)
    state.packet[packet].previous = came_by
    link_record.data_bytes += size
    link_record.accepted += 1
    link_record.max_data_bytes = max(link_record.max_data_bytes, link_record.data_bytes)
    if _charge(lossless.buffers, lossless.ports, came_by, size):
        blame(lossless, came_by, _cause(lossless, const, state, came_by, link))
        send_pause(lossless, const, state, came_by, now)
    if link_record.serving == NONE:
        _start_next(lossless, const, state, link, now)


@inline
def _cause(lossless, const, state, came_by, queue):
    """Return the queue in which most of the bytes wait that came by a link; ``queue`` if none has any."""
    most, switch = np.int64(0), const.fixed[came_by].end_node
    for k in range(lossless.first_output[switch], lossless.first_output[switch + 1]):
        size, packet = np.int64(0), state.link[lossless.outputs[k]].first[Fifo.DATA]
        for _ in range(SEARCHED):
            if packet == NONE:
                break
            record = state.packet[packet]
            if np.int64(record.previous) == came_by:
                size += np.int64(record.size)
            packet = np.int64(record.next)
        if size > most:
            queue, most = lossless.outputs[k], size
    return queue


@inline
def _is_data(state, packet):
    """Tell whether a packet is data."""
    return state.packet[packet].kind & Flag.KIND_MASK == Kind.DATA


@inline
def _accept_control(lossless, const, state, link, packet, size, now):
    """Accept a control packet of a class of its own: it goes first, is not charged and not paused."""
    link_record = state.link[link]
    append(state, link_record, Fifo.CONTROL, packet)
    link_record.control_bytes += size
    link_record.accepted += 1
    if link_record.serving == NONE:
        _start_next(lossless, const, state, link, now)


@inline
def _admits(buffers, ports, link, size):
    """Tell whether there is space for a packet; always where no buffer is shared: overflow is only reported."""
    return True if buffers is None else admits(ports, buffers, link, size)


@inline
def _charge(buffers, ports, link, size):
    """Charge a packet to an input port; returns whether it sends PAUSE."""
    return charge(ports, link, size) if buffers is None else charge_shared(ports, buffers, link, size)


@inline
def _release_charge(buffers, ports, link, size):
    """Release a packet from the charge of an input port; returns whether it sends RESUME."""
    return release(ports, link, size) if buffers is None else release_shared(ports, buffers, link, size)


@inline
def _start_next(lossless, const, state, link, now):
    """Let the idle server of a switch's output start the next packet, unless it is paused."""
    link_record = state.link[link]
    if lossless.strict and link_record.first[Fifo.CONTROL] != NONE:
        packet = take_first(state, link_record, Fifo.CONTROL)
        lossless.ports[link].sent += np.int64(state.packet[packet].size)
        start_service(const, state, link, packet, now)
        return
    if link_record.first[Fifo.DATA] == NONE or is_paused(lossless, link):
        return
    packet = take_first(state, link_record, Fifo.DATA)
    size = np.int64(state.packet[packet].size)
    if _is_data(state, packet):
        queued = link_record.data_bytes - (np.int64(0) if lossless.mark_own else size)
        stamp_telemetry(state.rdma, const, link, packet, lossless.ports[link].sent, queued, now)
    lossless.ports[link].sent += size
    if lossless.at_start:
        _release(lossless, const, state, link, packet, now)
    start_service(const, state, link, packet, now)


@inline
def _release(lossless, const, state, link, packet, now):
    """Mark a packet that leaves the queue of a switch's output, and release its charge."""
    link_record, record = state.link[link], state.packet[packet]
    size, came_by = np.int64(record.size), np.int64(record.previous)
    link_record.data_bytes -= size
    if _is_data(state, packet):
        queued = link_record.data_bytes + (size if lossless.mark_own else np.int64(0))
        _mark(lossless, const, state, link, record, queued)
    if _release_charge(lossless.buffers, lossless.ports, came_by, size):
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
    """Let the server of a link follow a PAUSE or RESUME, unless its watchdog ignores it."""
    if _obeys(lossless.watchdog, link):
        _switch_server(lossless, const, state, link, now)
        _watch(lossless.watchdog, lossless, const, state, link)


@inline
def _switch_server(lossless, const, state, link, now):
    """Pause or resume the server of a link; if it is resumed and idle, it starts the next packet."""
    since = lossless.ports[link].paused_at
    paused = switch_pause(lossless.ports, lossless.totals, link, now)
    record_pause(lossless, link, paused, since, now)
    if not paused:
        record_held(lossless.held, const, state, link, since, now)
    if paused or state.link[link].serving != NONE:
        return
    if link >= const.inject and link < const.eject:
        serve_nic(const, state, link - const.inject, now)
    else:
        _start_next(lossless, const, state, link, now)


@inline
def hold_flow(held, flow, link, ticks):
    """Record that the pause that has just ended held a flow, once for each."""
    count = held.last[len(held.last) - 1]
    if held.last[flow] == count:
        return
    held.last[flow] = count
    for column in range(held.links.shape[1]):
        if held.links[flow, column] == link:
            held.ticks[flow, column] += ticks


@inline
def record_held(held, const, state, link, since, now):
    """Record the flows that a pause since a tick held, which ends now."""
    if held is None:
        return
    held.last[len(held.last) - 1] += 1
    if link >= const.inject and link < const.eject:
        nic = state.nic[link - const.inject]
        flow = nic.first_turn
        for _ in range(nic.waiting):
            hold_flow(held, flow, link, now - since)
            flow = state.next_in_turn[flow]
        return
    packet = state.link[link].first[Fifo.DATA]
    while packet != NONE:
        hold_flow(held, np.int64(state.packet[packet].flow), link, now - since)
        packet = np.int64(state.packet[packet].next)


def held_ticks(state: Any, inject: int, eject: int, tick: int) -> Ints | None:
    """Return ``Counters.held``: with the pauses that last; None without lossless queues, and where it is not known.

    inject, eject: the first links from hosts, and to hosts.
    """
    lossless = state.lossless
    if lossless is None or lossless.held is None:
        return None
    links: Ints = lossless.held.links
    ticks: Ints = lossless.held.ticks.copy()
    for link in np.flatnonzero(lossless.ports.paused_at >= 0).tolist():
        flows = set()
        if inject <= link < eject:
            nic = state.nic[link - inject]
            flow = int(nic["first_turn"])
            for _ in range(int(nic["waiting"])):
                flows.add(flow)
                flow = int(state.next_in_turn[flow])
        else:
            packet = int(state.link[link]["first"][Fifo.DATA])
            while packet != NONE:
                flows.add(int(state.packet[packet]["flow"]))
                packet = int(state.packet[packet]["next"])
        for flow in flows:
            ticks[flow, links[flow] == link] += tick - int(lossless.ports.paused_at[link])
    return ticks


@inline
def _obeys(watchdog, link):
    """Tell whether a server obeys a PAUSE or RESUME that came now."""
    return True if watchdog is None else obeys(watchdog, link)


@inline
def _watch(watchdog, lossless, const, state, link):
    """Set the timer of a watchdog, if it needs one."""
    if watchdog is None:
        return
    tick = timer_tick(watchdog, lossless.ports, link)
    if tick >= 0:
        set_timer(const, state, tick, Timer.WATCHDOG, link)


@inline
def expire_watchdog(lossless, const, state, kind, link, now):
    """Process a timer if it is that of a watchdog; returns whether it was."""
    if lossless is None:
        return False
    return _expire_watchdog(lossless.watchdog, lossless, const, state, kind, link, now)


@inline
def _expire_watchdog(watchdog, lossless, const, state, kind, link, now):
    """Process a timer if it is that of a watchdog, where there are some; returns whether it was."""
    if watchdog is None:
        return False
    if kind != Timer.WATCHDOG:
        return False
    action = on_timer(watchdog, lossless.ports, link, now)
    if action == Action.DISCARD:
        _discard(lossless, const, state, link, now)
    if action != Action.NONE:
        _switch_server(lossless, const, state, link, now)
    _watch(watchdog, lossless, const, state, link)
    return True


@inline
def _discard(lossless, const, state, link, now):
    """Discard all data in the queue of a switch's output, and release their charges."""
    link_record = state.link[link]
    while link_record.first[Fifo.DATA] != NONE:
        packet = take_first(state, link_record, Fifo.DATA)
        size, came_by = np.int64(state.packet[packet].size), np.int64(state.packet[packet].previous)
        link_record.data_bytes -= size
        drop(state, link, packet)
        if _release_charge(lossless.buffers, lossless.ports, came_by, size):
            send_pause(lossless, const, state, came_by, now)


@njit
def break_lossless_link(const, state, link, now):
    """Fail a link: drop all of its packets, release their charges, end its pause, and accept no more packets."""
    lossless, link_record = state.lossless, state.link[link]
    const.fixed[link].capacity = NO_CAPACITY
    while link_record.first[Fifo.IN_FLIGHT] != NONE:
        drop(state, link, take_first(state, link_record, Fifo.IN_FLIGHT))
        lossless.stale[link, ARRIVAL] += 1
    if link_record.serving != NONE:
        packet = link_record.serving
        link_record.busy_ticks -= link_record.service_end - now
        link_record.serving = NONE
        size, came_by = np.int64(state.packet[packet].size), np.int64(state.packet[packet].previous)
        charged = not lossless.at_start and not (lossless.strict and not _is_data(state, packet))
        drop(state, link, packet)
        if charged:
            link_record.data_bytes -= size
            if _release_charge(lossless.buffers, lossless.ports, came_by, size):
                send_pause(lossless, const, state, came_by, now)
    while link_record.first[Fifo.CONTROL] != NONE:
        drop(state, link, take_first(state, link_record, Fifo.CONTROL))
    link_record.control_bytes = 0
    _discard(lossless, const, state, link, now)
    lossless.stale[link, PAUSE] = lossless.frames[link]
    port = lossless.ports[link]
    port.is_pausing = 0
    since = port.paused_at
    if since >= 0:
        record_pause(lossless, link, switch_pause(lossless.ports, lossless.totals, link, now), since, now)


@njit
def receive_storm(const, state, link, begins, now):
    """Let a PAUSE, or a RESUME, of a host reach the server before it.

    Parameters
    ----------
    link: int64.
    begins: whether it is a PAUSE.
    now: int64, tick.
    """
    state.lossless.ports[link].frames += np.int64(begins)
    if begins:
        blame(state.lossless, link, _NO_QUEUE)
    switch_server(state.lossless, const, state, link, now)


@inline
def end_lossless_service(lossless, const, state, link, now):
    """End the service of a packet: of a switch's output it is marked and its charge released; start the next one."""
    is_host = link >= const.inject and link < const.eject
    if state.link[link].serving == NONE or state.link[link].service_end != now:
        return  # the link failed, or has another rate, since this was scheduled
    packet = end_service(state, state.link[link])
    if not is_host:
        if lossless.strict and not _is_data(state, packet):
            state.link[link].control_bytes -= np.int64(state.packet[packet].size)
        elif not lossless.at_start:
            _release(lossless, const, state, link, packet, now)
    add_event(lossless, const, state, now + const.fixed[link].delay, link, ARRIVAL)
    if is_host:
        serve_nic(const, state, link - const.inject, now)
    else:
        _start_next(lossless, const, state, link, now)
