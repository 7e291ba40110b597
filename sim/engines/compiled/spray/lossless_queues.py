# SPDX-License-Identifier: Apache-2.0
"""Lossless queues: a FIFO for all packets of a class, charged to the input port by which they came, and never dropped.

With several classes a port is a link and a class (:class:`~flitlab.sim.engines.compiled.spray.lossless.Classes`), else
a link.
"""

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
from flitlab.models.rules.priority_classes import NO_CLASS, count_sent, next_class
from flitlab.models.rules.spray.layout import PacketKind
from flitlab.models.rules.watchdog import Action, obeys, on_timer, timer_tick
from flitlab.sim.engines.compiled import State
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.spray.hosts import serve_nic
from flitlab.sim.engines.compiled.spray.links import append, drop, end_service, start_service, take_first
from flitlab.sim.engines.compiled.spray.lossless import (
    LinkEvent,
    add_event,
    blame,
    class_of,
    is_paused,
    link_of,
    port_of,
    queue_of,
    record_pause,
    send_pause,
)
from flitlab.sim.engines.compiled.spray.rdma import stamp_telemetry
from flitlab.sim.engines.compiled.spray.state import NO_CAPACITY, Fifo, Flag, Timer, set_timer
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
    size, classes = np.int64(state.packet[packet].size), state.classes
    if const.fixed[link].capacity == NO_CAPACITY:
        drop(state, link, packet)
        return
    if lossless.strict and not _is_data(state, packet):
        _accept_control(lossless, const, state, link, packet, size, now)
        return
    number = class_of(classes, np.int64(state.packet[packet].flow))
    port, queue = port_of(classes, came_by, number), port_of(classes, link, number)
    charged = _is_charged(classes, number)
    if not (_admits(lossless.buffers, lossless.ports, port, size) if charged else _fits(classes, queue, size)):
        drop(state, link, packet)
        return
    link_record = state.link[link]
    append(state, queue_of(classes, state, queue), Fifo.DATA, packet)
    state.packet[packet].previous = port
    link_record.data_bytes += size
    _count_bytes(classes, queue, size)
    link_record.accepted += 1
    link_record.max_data_bytes = max(link_record.max_data_bytes, link_record.data_bytes)
    if charged and _charge(lossless.buffers, lossless.ports, port, size):
        blame(lossless, port, _cause(lossless, const, state, came_by, port, number, queue))
        send_pause(lossless, const, state, port, now)
    if link_record.serving == NONE:
        _start_next(lossless, const, state, link, now)


@inline
def _is_charged(classes, number):
    """Tell whether packets of a class are charged to input ports: whether it pauses."""
    return True if classes is None else classes.pauses[number] != 0


@inline
def _fits(classes, queue, size):
    """Tell whether the queue of a class that does not pause has space for a packet."""
    return True if classes is None else classes.queue[queue].data_bytes + size <= classes.limit[queue]


@inline
def _count_bytes(classes, queue, size):
    """Count bytes that join or leave the queue of one of several classes."""
    if classes is not None:
        classes.queue[queue].data_bytes += size


@inline
def _bytes_of(classes, state, link, queue):
    """Return the bytes in the queue of a class."""
    return state.link[link].data_bytes if classes is None else classes.queue[queue].data_bytes


@inline
def _cause(lossless, const, state, came_by, port, number, queue):
    """Return the queue in which most of the bytes wait that came by a port; ``queue`` if none has any."""
    most, switch = np.int64(0), const.fixed[came_by].end_node
    for k in range(lossless.first_output[switch], lossless.first_output[switch + 1]):
        output = port_of(state.classes, lossless.outputs[k], number)
        size, packet = np.int64(0), queue_of(state.classes, state, output).first[Fifo.DATA]
        for _ in range(SEARCHED):
            if packet == NONE:
                break
            record = state.packet[packet]
            if np.int64(record.previous) == port:
                size += np.int64(record.size)
            packet = np.int64(record.next)
        if size > most:
            queue, most = output, size
    return queue


@inline
def _is_data(state, packet):
    """Tell whether a packet is data."""
    return state.packet[packet].kind & Flag.KIND_MASK == PacketKind.DATA


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
def _admits(buffers, ports, port, size):
    """Tell whether there is space for a packet; always where no buffer is shared: overflow is only reported."""
    return True if buffers is None else admits(ports, buffers, port, size)


@inline
def _charge(buffers, ports, port, size):
    """Charge a packet to an input port; returns whether it sends PAUSE."""
    return charge(ports, port, size) if buffers is None else charge_shared(ports, buffers, port, size)


@inline
def _release_charge(lossless, const, state, port, size, now):
    """Release a packet from the charge of an input port, which may send RESUME."""
    if not _is_charged(state.classes, _class_of_port(state.classes, port)):
        return
    if _release_from(lossless.buffers, lossless.ports, port, size):
        send_pause(lossless, const, state, port, now)


@inline
def _class_of_port(classes, port):
    """Return the class of a port."""
    return np.int64(0) if classes is None else port % classes.count


@inline
def _release_from(buffers, ports, port, size):
    """Release a packet from the charge of an input port; returns whether it sends RESUME."""
    return release(ports, port, size) if buffers is None else release_shared(ports, buffers, port, size)


@inline
def _start_next(lossless, const, state, link, now):
    """Let the idle server of a switch's output start the next packet, unless it is paused."""
    link_record, classes = state.link[link], state.classes
    if lossless.strict and link_record.first[Fifo.CONTROL] != NONE:
        packet = take_first(state, link_record, Fifo.CONTROL)
        lossless.ports[port_of(classes, link, 0)].sent += np.int64(state.packet[packet].size)
        start_service(const, state, link, packet, now)
        return
    number = _next_class(classes, lossless, state, link)
    if number == NO_CLASS:
        return
    packet = take_first(state, queue_of(classes, state, port_of(classes, link, number)), Fifo.DATA)
    size = np.int64(state.packet[packet].size)
    _count_sent(classes, link, number, size)
    if _is_data(state, packet):
        queued = link_record.data_bytes - (np.int64(0) if lossless.mark_own else size)
        stamp_telemetry(state.rdma, const, link, packet, lossless.ports[port_of(classes, link, 0)].sent, queued, now)
    lossless.ports[port_of(classes, link, 0)].sent += size
    if lossless.at_start:
        _release(lossless, const, state, link, packet, now)
    start_service(const, state, link, packet, now)


@inline
def _next_class(classes, lossless, state, link):
    """Return the class that a switch's output serves next; NO_CLASS if there is none, or all are paused."""
    if classes is None:
        idle = state.link[link].first[Fifo.DATA] == NONE or is_paused(lossless, link)
        return NO_CLASS if idle else np.int64(0)
    ready = np.int64(0)
    for number in range(classes.count):
        port = link * classes.count + number
        if classes.queue[port].first[Fifo.DATA] != NONE and not is_paused(lossless, port):
            ready |= np.int64(1) << number
    return next_class(classes.service, link, ready)


@inline
def _count_sent(classes, link, number, size):
    """Count a packet that a server sends against the turn of its class."""
    if classes is not None:
        count_sent(classes.service, link, number, size)


@inline
def _leave_queue(state, link, packet):
    """Count a packet that leaves the queue of a switch's output; returns the bytes left in the queue of its class."""
    classes, record = state.classes, state.packet[packet]
    queue = port_of(classes, link, class_of(classes, np.int64(record.flow)))
    state.link[link].data_bytes -= np.int64(record.size)
    _count_bytes(classes, queue, -np.int64(record.size))
    return _bytes_of(classes, state, link, queue)


@inline
def _release(lossless, const, state, link, packet, now):
    """Mark a packet that leaves the queue of a switch's output, and release its charge."""
    record = state.packet[packet]
    size, port = np.int64(record.size), np.int64(record.previous)
    queued = _leave_queue(state, link, packet)
    if _is_data(state, packet):
        _mark(lossless, const, state, link, record, queued + (size if lossless.mark_own else np.int64(0)))
    _release_charge(lossless, const, state, port, size, now)


@inline
def _mark(lossless, const, state, link, record, queued):
    """Mark a data packet (ECN) that leaves a queue of ``queued`` bytes; between the thresholds at random."""
    link_record, low, high = state.link[link], const.fixed[link].mark_low, const.fixed[link].mark_high
    if queued <= low:
        return
    marked = is_marked(const.rules.seed, link, link_record.mark_draws, queued, low, high, lossless.mark_span[link])
    link_record.mark_draws += 1
    if marked and record.kind & Flag.ECN_MARK == 0:
        record.kind |= Flag.ECN_MARK
        link_record.marked += 1


@inline
def switch_server(lossless, const, state, port, now):
    """Let the server of a port follow a PAUSE or RESUME, unless its watchdog ignores it."""
    if _obeys(lossless.watchdog, port):
        _switch_server(lossless, const, state, port, now)
        _watch(lossless.watchdog, lossless, const, state, port)


@inline
def _switch_server(lossless, const, state, port, now):
    """Pause or resume the server of a port; if it is resumed and idle, it starts the next packet."""
    since, link = lossless.ports[port].paused_at, link_of(state.classes, port)
    paused = switch_pause(lossless.ports, lossless.totals, port, now)
    record_pause(lossless, port, paused, since, now)
    if not paused:
        record_held(lossless.held, const, state, port, since, now)
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
def record_held(held, const, state, port, since, now):
    """Record the flows that a pause since a tick held, which ends now."""
    if held is None:
        return
    classes = state.classes
    link = link_of(classes, port)
    held.last[len(held.last) - 1] += 1
    if link >= const.inject and link < const.eject:
        nic = state.nic[port - port_of(classes, const.inject, 0)]
        flow = nic.first_turn
        for _ in range(nic.waiting):
            hold_flow(held, flow, link, now - since)
            flow = state.next_in_turn[flow]
        return
    packet = queue_of(classes, state, port).first[Fifo.DATA]
    while packet != NONE:
        hold_flow(held, np.int64(state.packet[packet].flow), link, now - since)
        packet = np.int64(state.packet[packet].next)


def queues_of_ports(state: State) -> Any:
    """Return the lists of packets of each port: LINK [ports]."""
    classes = state.classes
    return state.link if classes is None else classes.queue


def held_ticks(state: State, inject: int, eject: int, tick: int) -> Ints | None:
    """Return ``Counters.held``: with the pauses that last; None without lossless queues, and where it is not known.

    inject, eject: the first links from hosts, and to hosts.
    """
    lossless = state.lossless
    if lossless is None or lossless.held is None:
        return None
    count = 1 if state.classes is None else state.classes.count
    links: Ints = lossless.held.links
    ticks: Ints = lossless.held.ticks.copy()
    for port in np.flatnonzero(lossless.ports.paused_at >= 0).tolist():
        flows, link = set(), port // count
        if inject <= link < eject:
            nic = state.nic[port - count * inject]
            flow = int(nic["first_turn"])
            for _ in range(int(nic["waiting"])):
                flows.add(flow)
                flow = int(state.next_in_turn[flow])
        else:
            packet = int(queues_of_ports(state)[port]["first"][Fifo.DATA])
            while packet != NONE:
                flows.add(int(state.packet[packet]["flow"]))
                packet = int(state.packet[packet]["next"])
        for flow in flows:
            ticks[flow, links[flow] == link] += tick - int(lossless.ports.paused_at[port])
    return ticks


@inline
def _obeys(watchdog, port):
    """Tell whether a server obeys a PAUSE or RESUME that came now."""
    return True if watchdog is None else obeys(watchdog, port)


@inline
def _watch(watchdog, lossless, const, state, port):
    """Set the timer of a watchdog, if it needs one."""
    if watchdog is None:
        return
    tick = timer_tick(watchdog, lossless.ports, port)
    if tick >= 0:
        set_timer(const, state, tick, Timer.WATCHDOG, port)


@inline
def expire_watchdog(lossless, const, state, kind, port, now):
    """Process a timer if it is that of a watchdog; returns whether it was."""
    if lossless is None:
        return False
    return _expire_watchdog(lossless.watchdog, lossless, const, state, kind, port, now)


@inline
def _expire_watchdog(watchdog, lossless, const, state, kind, port, now):
    """Process a timer if it is that of a watchdog, where there are some; returns whether it was."""
    if watchdog is None:
        return False
    if kind != Timer.WATCHDOG:
        return False
    action = on_timer(watchdog, lossless.ports, port, now)
    if action == Action.DISCARD:
        _discard(lossless, const, state, port, now)
    if action != Action.NONE:
        _switch_server(lossless, const, state, port, now)
    _watch(watchdog, lossless, const, state, port)
    return True


@inline
def _discard(lossless, const, state, queue, now):
    """Discard all data in the queue of a port of a switch's output, and release their charges."""
    classes = state.classes
    link, lists = link_of(classes, queue), queue_of(classes, state, queue)
    while lists.first[Fifo.DATA] != NONE:
        packet = take_first(state, lists, Fifo.DATA)
        size, port = np.int64(state.packet[packet].size), np.int64(state.packet[packet].previous)
        _leave_queue(state, link, packet)
        drop(state, link, packet)
        _release_charge(lossless, const, state, port, size, now)


@njit
def break_lossless_link(const, state, link, now):
    """Fail a link: drop all of its packets, release their charges, end its pause, and accept no more packets."""
    lossless, link_record = state.lossless, state.link[link]
    const.fixed[link].capacity = NO_CAPACITY
    while link_record.first[Fifo.IN_FLIGHT] != NONE:
        drop(state, link, take_first(state, link_record, Fifo.IN_FLIGHT))
        lossless.stale[link, LinkEvent.ARRIVAL] += 1
    if link_record.serving != NONE:
        packet = link_record.serving
        link_record.busy_ticks -= link_record.service_end - now
        link_record.serving = NONE
        size, port = np.int64(state.packet[packet].size), np.int64(state.packet[packet].previous)
        queued = not lossless.at_start and not (lossless.strict and not _is_data(state, packet))
        if queued:
            _leave_queue(state, link, packet)
        drop(state, link, packet)
        if queued:
            _release_charge(lossless, const, state, port, size, now)
    while link_record.first[Fifo.CONTROL] != NONE:
        drop(state, link, take_first(state, link_record, Fifo.CONTROL))
    link_record.control_bytes = 0
    for number in range(len(lossless.ports) // const.links):
        _break_port(lossless, const, state, port_of(state.classes, link, number), now)


@inline
def _break_port(lossless, const, state, port, now):
    """Discard the queue of a port of a failed link, and end its pause."""
    _discard(lossless, const, state, port, now)
    lossless.stale[port, LinkEvent.PAUSE] = lossless.frames[port]
    record = lossless.ports[port]
    record.is_pausing = 0
    since = record.paused_at
    if since >= 0:
        record_pause(lossless, port, switch_pause(lossless.ports, lossless.totals, port, now), since, now)


@njit
def receive_storm(const, state, port, begins, now):
    """Let a PAUSE, or a RESUME, of a host reach the server before it.

    Parameters
    ----------
    port: int64.
    begins: whether it is a PAUSE.
    now: int64, tick.
    """
    state.lossless.ports[port].frames += np.int64(begins)
    if begins:
        blame(state.lossless, port, _NO_QUEUE)
    switch_server(state.lossless, const, state, port, now)


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
    add_event(lossless, const, state, now + const.fixed[link].delay, link, LinkEvent.ARRIVAL)
    if is_host:
        serve_nic(const, state, link - const.inject, now)
    else:
        _start_next(lossless, const, state, link, now)
