# SPDX-License-Identifier: Apache-2.0
"""Prefetching of what the arrivals of a tick will touch.

All links with an arrival are known at the beginning of the tick; prefetching is a few of them ahead. Before lossless
queues most ticks have one event: there it is a few ticks ahead.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.spray.ports import AtSwitch, flow_key, spray_port, spray_route
from flitlab.sim.engines.compiled.link_wheel import next_arrival_tick
from flitlab.sim.engines.compiled.memory import prefetch, prefetch_line
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.spray.lossless import LinkEvent, event_of
from flitlab.sim.engines.compiled.spray.state import (
    Fifo,
    is_response,
)
from flitlab.sim.engines.compiled.transport import rules_of

_LOW = np.int64(0xFFFFFFFF)

_MANY_LINKS, _SEARCHED_TICKS = 2048, 64
"""Links from which on events of lossless queues are worth prefetching (at 768 it costs 6 %, at 6,144 it saves a third),
and ticks that are searched for them.
"""

_SEQ_LINES, _GOT_LINES = 5, 3
"""Cache lines of a sender and of a receiver that a packet touches."""


@inline
def _link_of(state, i):
    """Return the i-th link of the tick."""
    return state.members[i] & _LOW


@inline
def _packet_of(state, link):
    """Return the packet that arrives from a link, which may not be settled yet."""
    packet = state.link[link].first[Fifo.IN_FLIGHT]
    return state.link[link].serving if packet == NONE else packet


@inline
def prefetch_packet(state, i):
    """Prefetch the packet that arrives from the i-th link of the tick."""
    link = _link_of(state, i)
    prefetch(state.packet, _packet_of(state, link))
    prefetch_line(state.link, link, 1)


@inline
def prefetch_arrival(const, routing, state, i):
    """Prefetch the next link of the packet that arrives from the i-th link, or at a host its flow.

    The next link is stored in ``state.out_link``; NONE if the choice depends on queues.
    """
    link = _link_of(state, i)
    packet, end = _packet_of(state, link), const.fixed[link].end_node
    record = state.packet[packet]
    flow, kind = np.int64(record.flow), record.kind
    if link >= const.eject:
        if is_response(kind):
            _prefetch_sender(state, flow)
        else:
            for link_record in range(_GOT_LINES):
                prefetch_line(state.receivers.got, flow, link_record)
        return
    host, entropy, key = np.int64(record.host), np.int64(record.entropy), flow_key(flow, is_response(kind))
    dst_switch = routing.host_switch[host]
    if link >= const.inject:
        record.path = spray_route(
            routing.routes.present, routing.routes.salts, rules_of(const, flow).paths, end, dst_switch, key, entropy
        )
        nic = state.nic[link - const.inject]
        if nic.waiting > 0:
            _prefetch_sender(state, nic.first_turn)
    else:
        record.hop += np.uint32(1)
    next_link = NONE
    if end == dst_switch:
        next_link = const.eject + host
    elif routing.switches.choice.policy == AtSwitch.ECMP:
        path, hop = np.int64(record.path), np.int64(record.hop)
        next_link = routing.out_start[end] + spray_port(routing.routes, path, hop, end, dst_switch, key, entropy)
    state.out_link[i] = next_link
    if next_link != NONE:
        prefetch(state.link, next_link)
        prefetch_line(state.link, next_link, 1)
        prefetch(const.fixed, next_link)


@inline
def _prefetch_sender(state, flow):
    """Prefetch the record of a sender."""
    for link_record in range(_SEQ_LINES):
        prefetch_line(state.senders.seq, flow, link_record)
    prefetch(state.senders.win, flow)


@inline
def prefetch_queues(const, state, i):
    """Prefetch the packets that are next in the queues of the i-th link and of its packet's next link."""
    link = _link_of(state, i)
    _prefetch_queue(state, link)
    if link < const.eject:
        if state.out_link[i] != NONE:
            _prefetch_queue(state, state.out_link[i])
        return
    record = state.packet[_packet_of(state, link)]
    if is_response(record.kind):
        prefetch(state.senders.sent, state.senders.seq[np.int64(record.flow)].first + np.int64(record.number))


@inline
def _prefetch_queue(state, link):
    """Prefetch the packets of a link that are touched when it is settled or accepts a packet."""
    link_record = state.link[link]
    first, last = link_record.first, link_record.last
    for packet in (
        link_record.serving, first[Fifo.CONTROL], first[Fifo.DATA], last[Fifo.DATA], last[Fifo.IN_FLIGHT]
    ):  # fmt: skip
        if packet != NONE:
            prefetch(state.packet, packet)


@inline
def prefetch_events(lossless, const, state, tick):
    """Prefetch what the events of lossless queues after a tick will touch, in a network that exceeds the caches.

    Of the next tick with events these are their packets, of the one after it the links.
    """
    if const.links < _MANY_LINKS:
        return
    near = next_arrival_tick(const, state, tick + 1, tick + _SEARCHED_TICKS)
    far = next_arrival_tick(const, state, near + 1, tick + _SEARCHED_TICKS)
    entry = np.int64(state.bucket[near & const.mask])
    while entry != NONE:
        link, kind, entry = event_of(lossless, entry)
        if kind != LinkEvent.PAUSE:
            _prefetch_packets(state.link[link], state, kind)
    entry = np.int64(state.bucket[far & const.mask])
    while entry != NONE:
        link, kind, entry = event_of(lossless, entry)
        if kind != LinkEvent.PAUSE:
            _prefetch_link(lossless, const, state, link)


@inline
def _prefetch_packets(link_record, state, kind):
    """Prefetch the packets of a link that an event touches."""
    if kind == LinkEvent.ARRIVAL:
        prefetch(state.packet, link_record.first[Fifo.IN_FLIGHT])
        return
    for packet in (link_record.serving, link_record.first[Fifo.DATA]):
        if packet != NONE:
            prefetch(state.packet, packet)


@inline
def _prefetch_link(lossless, const, state, link):
    """Prefetch a link, its constants, and the port at its end."""
    prefetch(const.fixed, link)
    for line in range(2):
        prefetch_line(state.link, link, line)
        prefetch_line(lossless.ports, link, line)
