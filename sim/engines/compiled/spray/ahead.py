# SPDX-License-Identifier: Apache-2.0
"""What is about to come in a tick: where it goes, and which memory it takes.

Links that await a packet are known all at once, so that what they need is asked for a few of them ahead.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.spray.layout import FIRST
from flitlab.models.rules.spray.ports import BY_HASH, flow_key, spray_port, spray_route
from flitlab.sim.engines.compiled.memory import prefetch, prefetch_line
from flitlab.sim.engines.compiled.pool import NOBODY
from flitlab.sim.engines.compiled.spray.chosen import rules_of
from flitlab.sim.engines.compiled.spray.links import is_answer
from flitlab.sim.engines.compiled.spray.state import (
    CONTROL,
    ENTROPY,
    FIRST_TURN,
    FLOW,
    FLYING,
    HOP,
    HOST,
    KIND,
    NUMBER,
    SERVING,
    TO,
    WAITING,
    WAY,
    WHOLE,
)

_LOW = np.int64(0xFFFFFFFF)

_SEQ_LINES, _GOT_LINES = 5, 3
"""Cache lines of a sender and of a receiver that a packet takes."""


@inline
def _link_of(state, i):
    """Return the i-th link of the tick."""
    return state.members[i] & _LOW


@inline
def _packet_of(state, link):
    """Return the packet that comes off a link, though it may not be known yet that it is not served any more."""
    packet = state.link[link, FLYING]
    return state.link[link, SERVING] if packet == NOBODY else packet


@inline
def foresee_packet(state, i):
    """Ask for the packet that comes off the i-th link of the tick."""
    link = _link_of(state, i)
    prefetch(state.packet, _packet_of(state, link))
    prefetch_line(state.link, link, 1)


@inline
def foresee(const, ways, state, i):
    """Find out onto which link the packet goes that comes off the i-th link, in ``state.onto``; NOBODY: it depends.

    Asks for that link or, at a host, for the flow.
    """
    link = _link_of(state, i)
    packet, end = _packet_of(state, link), const.fixed[link, TO]
    record = state.packet[packet]
    flow, kind = np.int64(record[FLOW]), record[KIND]
    if link >= const.eject:
        if is_answer(kind):
            _ask_for_sender(state, flow)
        else:
            for line in range(_GOT_LINES):
                prefetch_line(state.receivers.got, flow, line)
        return
    host, entropy, key = np.int64(record[HOST]), np.int64(record[ENTROPY]), flow_key(flow, is_answer(kind))
    target = ways.host_switch[host]
    if link >= const.inject:
        record[WAY] = spray_route(ways.routes, ways.salts, rules_of(const, flow).paths, end, target, key, entropy)
        nic = state.nic[link - const.inject]
        if nic[WAITING] > 0:
            _ask_for_sender(state, nic[FIRST_TURN])
    else:
        record[HOP] += np.uint32(1)
    onto = NOBODY
    if end == target:
        onto = const.eject + host
    elif ways.at_switch == BY_HASH:
        way, hop = np.int64(record[WAY]), np.int64(record[HOP])
        onto = ways.out_start[end] + spray_port(
            ways.routes, ways.built, ways.moved, ways.salts, way, hop, end, target, key, entropy
        )
    state.onto[i] = onto
    if onto != NOBODY:
        prefetch(state.link, onto)
        prefetch_line(state.link, onto, 1)
        prefetch(const.fixed, onto)


@inline
def _ask_for_sender(state, flow):
    """Ask for a sender."""
    for line in range(_SEQ_LINES):
        prefetch_line(state.senders.seq, flow, line)
    prefetch(state.senders.win, flow)


@inline
def foresee_queues(const, state, i):
    """Ask for the packets that are next in the queues of the i-th link and of that onto which its packet goes."""
    link = _link_of(state, i)
    _ask_for_queue(state, link)
    if link < const.eject:
        if state.onto[i] != NOBODY:
            _ask_for_queue(state, state.onto[i])
        return
    record = state.packet[_packet_of(state, link)]
    if is_answer(record[KIND]):
        prefetch(state.senders.sent, state.senders.seq[np.int64(record[FLOW]), FIRST] + np.int64(record[NUMBER]))


@inline
def _ask_for_queue(state, link):
    """Ask for the packets of a link that are looked at when it is settled or takes another one."""
    line = state.link[link]
    for place in (SERVING, CONTROL, WHOLE, WHOLE + 1, FLYING + 1):
        if line[place] != NOBODY:
            prefetch(state.packet, line[place])
