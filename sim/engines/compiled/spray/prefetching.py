# SPDX-License-Identifier: Apache-2.0
"""Prefetching of what the arrivals of a tick will touch.

All links with an arrival are known at the beginning of the tick; prefetching is a few of them ahead.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.spray.layout import FIRST
from flitlab.models.rules.spray.ports import BY_HASH, flow_key, spray_port, spray_route
from flitlab.sim.engines.compiled.memory import prefetch, prefetch_line
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.spray.flow_rules import rules_of
from flitlab.sim.engines.compiled.spray.links import is_response
from flitlab.sim.engines.compiled.spray.state import (
    CONTROL_FIFO,
    DATA_FIFO,
    END_NODE,
    ENTROPY,
    FIRST_TURN,
    FLOW,
    HOP,
    HOST,
    IN_FLIGHT,
    KIND,
    NUMBER,
    PATH,
    SERVING,
    WAITING,
)

_LOW = np.int64(0xFFFFFFFF)

_SEQ_LINES, _GOT_LINES = 5, 3
"""Cache lines of a sender and of a receiver that a packet touches."""


@inline
def _link_of(state, i):
    """Return the i-th link of the tick."""
    return state.members[i] & _LOW


@inline
def _packet_of(state, link):
    """Return the packet that arrives from a link, which may not be settled yet."""
    packet = state.link[link, IN_FLIGHT]
    return state.link[link, SERVING] if packet == NONE else packet


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
    packet, end = _packet_of(state, link), const.fixed[link, END_NODE]
    record = state.packet[packet]
    flow, kind = np.int64(record[FLOW]), record[KIND]
    if link >= const.eject:
        if is_response(kind):
            _prefetch_sender(state, flow)
        else:
            for link_record in range(_GOT_LINES):
                prefetch_line(state.receivers.got, flow, link_record)
        return
    host, entropy, key = np.int64(record[HOST]), np.int64(record[ENTROPY]), flow_key(flow, is_response(kind))
    dst_switch = routing.host_switch[host]
    if link >= const.inject:
        record[PATH] = spray_route(
            routing.routes, routing.salts, rules_of(const, flow).paths, end, dst_switch, key, entropy
        )
        nic = state.nic[link - const.inject]
        if nic[WAITING] > 0:
            _prefetch_sender(state, nic[FIRST_TURN])
    else:
        record[HOP] += np.uint32(1)
    next_link = NONE
    if end == dst_switch:
        next_link = const.eject + host
    elif routing.at_switch == BY_HASH:
        path, hop = np.int64(record[PATH]), np.int64(record[HOP])
        next_link = routing.out_start[end] + spray_port(
            routing.routes, routing.built, routing.moved, routing.salts, path, hop, end, dst_switch, key, entropy
        )
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
    if is_response(record[KIND]):
        prefetch(state.senders.sent, state.senders.seq[np.int64(record[FLOW]), FIRST] + np.int64(record[NUMBER]))


@inline
def _prefetch_queue(state, link):
    """Prefetch the packets of a link that are touched when it is settled or accepts a packet."""
    link_record = state.link[link]
    for field in (SERVING, CONTROL_FIFO, DATA_FIFO, DATA_FIFO + 1, IN_FLIGHT + 1):
        if link_record[field] != NONE:
            prefetch(state.packet, link_record[field])
