# SPDX-License-Identifier: Apache-2.0
"""How flits move: from buffer to buffer, and the credits that they leave behind."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ADAPTIVE, ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import EVENTS
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.wheel import wake
from flitlab.sim.engines.compiled.wormhole.queues import due, entry_of, mark, push
from flitlab.sim.engines.compiled.wormhole.state import (
    EJECTED,
    EMPTY,
    ENDLESS,
    FAR_AHEAD,
    HEAD,
    HEADERS,
    INJECTED,
    NO_CREDIT,
    NO_VC,
    ONE,
    PACKET_AT,
    RETURNED,
    TAIL,
    UNREAD,
    U,
)

_NOBODY = U(NOBODY)
_32 = U(32)


@inner
def place_of(const, vc, number):
    """Find the place of a VC's flit in ``WormholeState.flits``.

    number: of the flit, counted as ``front`` and ``landed`` of the VC are.
    """
    return (number & const.ring) * const.inputs + vc


@inner
def credits(state, vc):
    """Return how many flits may be sent to a VC, int64."""
    return np.int64(state.vc[vc].credits)


@inner
def line_of(const, state, vc):
    """Find the line in which the front packet of an input VC waits for an output VC."""
    return U(state.vc[vc].switch) if const.rule == ADAPTIVE else U(state.vc[vc].output)


@inner
def unblock(state, vc, reason, ready):
    """Take away a reason why the front flit of a VC cannot be sent; if it was the only one, list the VC as ready.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    vc_record = state.vc[vc]
    before = U(vc_record.blocked)
    vc_record.blocked = before & ~reason
    state.ready[ready] = vc
    return ready + U(before == reason)


@inner
def land_all(const, state, tick, ready, asking):
    """Put the flits that arrive in this tick into the buffers of their VCs.

    ``ready`` and ``asking`` are the lengths of the lists ``state.ready`` and ``state.asking`` before, and their lengths
    after are returned.
    """
    for which in range(INJECTED, U(len(state.queue))):
        first, end = due(const, state, which, tick)
        for i in range(first, end):
            if const.large:
                prefetch(state.vc, np.int64(entry_of(state, i + FAR_AHEAD)[1]))
            entry, (flit, vc) = state.entries[i], entry_of(state, i)
            vc_record = state.vc[vc]
            landed, blocked = U(vc_record.landed), U(vc_record.blocked)
            state.flits[place_of(const, vc, landed)] = flit
            vc_record.landed = landed + ONE
            vc_record.blocked = blocked & ~EMPTY
            state.ready[ready] = vc
            ready += U(blocked == EMPTY)
            state.asking[asking] = entry
            asking += U(blocked & (EMPTY | NO_VC) == EMPTY | NO_VC)
        state.tally.scalars[EVENTS] += np.int64(end - first)
    return ready, asking


@inner
def deliver_all(const, state, tick):
    """Take in the flits that come to their hosts in this tick."""
    first, end = due(const, state, EJECTED, tick)
    for i in range(first, end):
        flit, vc = entry_of(state, i)
        vc_record = state.vc[vc]
        vc_record.credits = U(vc_record.credits) + ONE
        if flit & TAIL:
            records.deliver(const, state, np.int64(flit >> PACKET_AT), tick)


@inner
def _wake_sender(const, state, vc, tick, ready):
    """Tell whoever sends to an input VC that there is a credit again.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    holder, feeder = U(state.vc[vc].holder), U(state.vc[vc].feeder)
    if feeder >= const.lines:
        wake(state.senders, feeder - const.lines, tick)
    elif holder != _NOBODY:
        return unblock(state, holder, NO_CREDIT, ready)
    elif const.rule == ADAPTIVE:
        mark(state.to_retry, feeder, True)
    return ready


@inner
def restore_all(const, state, tick, ready):
    """Give back the credits that return in this tick.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    few = U(ENDLESS) if const.resorts > 0 else U(0)  # with last resorts packets wait for more credits than one
    first, end = due(const, state, RETURNED, tick)
    for i in range(first, end):
        if const.large:
            prefetch(state.vc, np.int64(state.entries[i + FAR_AHEAD]))
        vc = state.entries[i]  # its flit is 0, so the entry is the VC itself
        vc_record = state.vc[vc]
        credit = U(vc_record.credits)
        vc_record.credits = credit + ONE
        if credit <= few:
            ready = _wake_sender(const, state, vc, tick, ready)
    state.tally.scalars[EVENTS] += np.int64(end - first)
    return ready


@inner
def read_headers(const, state, tick, ready):
    """Let packets be routed whose header delay ends in this tick.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    first, end = due(const, state, HEADERS, tick)
    for i in range(first, end):
        _, vc = entry_of(state, i)
        ready = unblock(state, vc, UNREAD, ready)
    return ready


@inner
def _count_hop(const, state, flit, next_vc):
    """Note that a flit has been granted a VC: the head takes its packet one hop farther, unless it goes to a host."""
    head = (flit & HEAD) // HEAD & U(next_vc < const.inputs)
    packet = (flit >> PACKET_AT) * head  # other flits add 0 to the first record, which is at hand
    state.pool.packet[packet].hop += head
    if const.policy == ESCAPE and head and next_vc % U(const.vcs) == U(ESCAPE_VC):
        state.pool.packet[packet].way = ON_ESCAPE


@inner
def foresee_next(const, state, vc):
    """Begin to load what an input VC touches when it sends its front flit."""
    vc_record = state.vc[vc]
    prefetch(state.vc, np.int64(vc_record.next_vc))
    prefetch(state.flits, np.int64(place_of(const, vc, U(vc_record.front))))


@inner
def send(const, state, vc, vc_record, output_record, ready, asking):
    """Send the front flit of an input VC, which nothing blocks: (``ready``, ``asking``, whether it is a head).

    If the next flit can be sent too, the VC stays listed. ``ready`` and ``asking`` are the lengths of the lists
    ``state.ready`` and ``state.asking`` before, and their lengths after are returned.
    """
    front, landed, next_vc = U(vc_record.front), U(vc_record.landed), U(vc_record.next_vc)
    flit, there = U(state.flits[place_of(const, vc, front)]), state.vc[next_vc]
    line = line_of(const, state, vc)
    tail, more, credit = flit & TAIL, U(front + ONE != landed), U(there.credits) - ONE
    blocked = (ONE - more) * EMPTY | U(credit == U(0)) * NO_CREDIT | tail * NO_VC
    push(state, U(there.queue), flit, next_vc)
    there.credits = credit
    there.holder = _NOBODY if tail else vc
    vc_record.front = front + ONE if more else U(0)
    vc_record.landed = landed if more else U(0)
    vc_record.blocked = blocked
    output_record.carried = U(output_record.carried) + ONE
    output_record.free |= tail << (next_vc - U(output_record.first))
    if tail & U(state.output[line].waiting != NOBODY):
        mark(state.to_retry, line, True)
    _count_hop(const, state, flit, next_vc)
    state.ready[ready] = vc
    if tail & more:
        state.asking[asking] = U(state.flits[place_of(const, vc, front + ONE)]) << _32 | vc
        asking += ONE
    return ready + U(blocked == U(0)), asking, (flit & HEAD) // HEAD
