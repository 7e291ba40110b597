# SPDX-License-Identifier: Apache-2.0
"""How flits move: from buffer to buffer, and the credits that they leave behind."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ADAPTIVE, ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import EVENTS, GRANTS
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
    OUTPUT_AT,
    PACKET_AT,
    RETURNED,
    TAIL,
    UNREAD,
    VC_OF,
    U,
)

_NOBODY = U(NOBODY)
_32 = U(32)


@inline
def place_of(const, vc, number):
    """Find the place of a VC's flit in ``WormholeState.flits``.

    number: of the flit, counted as ``front`` and ``landed`` of the VC are.
    """
    return (number & const.ring) * const.inputs + vc


@inline
def credits(state, vc):
    """Return how many flits may be sent to a VC, int64."""
    return np.int64(state.vc[vc].credits)


@inline
def request_of(vc, vc_record):
    """Make the request of an input VC for the output that its front packet goes to."""
    return U(vc_record.output) << OUTPUT_AT | vc


@inline
def unblock(state, vc, reason, ready):
    """Take away a reason why the front flit of a VC cannot be sent; if it was the only one, list the VC as ready.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    vc_record = state.vc[vc]
    before = U(vc_record.blocked)
    state.ready[ready] = request_of(vc, vc_record)
    vc_record.blocked = before & ~reason
    return ready + U(before == reason)


@inline
def land_all(const, state, tick, ready, asking):
    """Put the flits that arrive in this tick into the buffers of their VCs.

    ``ready`` is the end of the list in ``state.ready`` and ``asking`` the length of ``state.asking`` before, and
    what they are after is returned.
    """
    for which in range(INJECTED, const.ejected):
        first, end = due(const, state, which, tick)
        for i in range(first, end):
            if const.large:
                prefetch(state.vc, np.int64(entry_of(state, i + FAR_AHEAD)[1]))
            entry, (flit, vc) = state.entries[i], entry_of(state, i)
            vc_record = state.vc[vc]
            landed, blocked = U(vc_record.landed), U(vc_record.blocked)
            vc_record.landed = landed + ONE
            if not blocked & EMPTY:
                state.flits[place_of(const, vc, landed)] = flit
                continue
            state.ready[ready] = request_of(vc, vc_record)
            vc_record.flit = flit
            vc_record.blocked = blocked - EMPTY
            state.asking[asking] = entry
            ready += U(blocked == EMPTY)
            asking += U(blocked & NO_VC == NO_VC)
        state.tally.scalars[EVENTS] += np.int64(end - first)
    return ready, asking


@inline
def deliver_all(const, state, tick):
    """Take in the flits that come to their hosts in this tick."""
    for which in range(const.ejected - ONE, const.returned):
        first, end = due(const, state, which if which >= const.ejected else EJECTED, tick)
        for i in range(first, end):
            flit, vc = entry_of(state, i)
            vc_record = state.vc[vc]
            vc_record.credits = U(vc_record.credits) + ONE
            if flit & TAIL:
                records.deliver(const, state, np.int64(flit >> PACKET_AT), tick)


@inline
def _wake_sender(const, state, vc, tick, ready):
    """Tell whoever sends to an input VC that there is a credit again.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    holder, feeder = U(state.vc[vc].holder), U(state.vc[vc].feeder)
    if feeder >= const.lines:
        wake(state.senders, feeder - const.lines, tick)
    elif holder != _NOBODY:
        return unblock(state, holder, NO_CREDIT, ready)
    elif const.rule == ADAPTIVE:
        mark(state.to_retry, feeder, True)
    return ready


@inline
def restore_all(const, state, tick, ready):
    """Give back the credits that return in this tick.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    few = U(ENDLESS) if const.resorts > 0 else U(0)  # with last resorts packets wait for more credits than one
    for which in range(const.returned - ONE, U(len(state.queue))):
        first, end = due(const, state, which if which >= const.returned else RETURNED, tick)
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


@inline
def read_headers(const, state, tick, ready):
    """Let packets be routed whose header delay ends in this tick.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    first, end = due(const, state, HEADERS, tick)
    for i in range(first, end):
        _, vc = entry_of(state, i)
        ready = unblock(state, vc, UNREAD, ready)
    return ready


@inline
def _count_hop(const, state, flit, next_vc):
    """Note that a head has been granted a VC: its packet is one hop farther, unless it goes to a host."""
    record = state.pool.packet[flit >> PACKET_AT]
    record.hop += U(next_vc < const.inputs)
    if const.policy == ESCAPE and next_vc < const.inputs and next_vc % U(const.vcs) == U(ESCAPE_VC):
        record.way = ON_ESCAPE
    state.tally.scalars[GRANTS] += 1


@inline
def _give_back(const, state, vc_record, output, next_vc):
    """Take the VC that it was given from a packet whose tail is sent, and have those called who wait for one."""
    state.vc[next_vc].holder = _NOBODY
    stock = state.stock[output]
    stock.free |= ONE << (next_vc - U(stock.first))
    line = U(vc_record.switch) if const.rule == ADAPTIVE else output
    if state.stock[line].waiting != NOBODY:
        mark(state.to_retry, line, True)


@inline
def foresee(const, state, request):
    """Begin to load what is touched when an input VC sends its front flit."""
    vc, output = request & VC_OF, request >> OUTPUT_AT
    vc_record = state.vc[vc]
    flit, behind = U(vc_record.flit), U(vc_record.front) + ONE
    more, head = U(behind != U(vc_record.landed)), (flit & HEAD) // HEAD
    prefetch(state.vc, np.int64(vc_record.next_vc))
    prefetch(state.flits, np.int64(place_of(const, vc, behind) * more))  # what is not touched is the first, at hand
    prefetch(state.stock, np.int64(output * (flit & TAIL)))
    prefetch(state.pool.packet, np.int64((flit >> PACKET_AT) * head))


@inline
def send(const, state, request, queue, ready, asking):
    """Send the front flit of an input VC, which nothing blocks: (``ready``, ``asking``).

    If the next flit can be sent too, the VC is listed for the next tick. queue: of the output. ``ready`` is the end of
    the list in ``state.ready`` and ``asking`` the length of ``state.asking`` before, and what they are after is
    returned.
    """
    vc, output = request & VC_OF, request >> OUTPUT_AT
    vc_record = state.vc[vc]
    front, landed, next_vc = U(vc_record.front) + ONE, U(vc_record.landed), U(vc_record.next_vc)
    flit, there = U(vc_record.flit), state.vc[next_vc]
    credit = U(there.credits) - ONE
    there.credits = credit
    there.carried = U(there.carried) + ONE
    push(state, queue, flit, next_vc)
    following, blocked = U(0), U(credit == U(0)) * NO_CREDIT
    if front == landed:
        front = landed = U(0)
        blocked |= EMPTY
    else:
        following = U(state.flits[place_of(const, vc, front)])
        vc_record.flit = following
    vc_record.front = front
    vc_record.landed = landed
    if flit & HEAD:
        _count_hop(const, state, flit, next_vc)
    if flit & TAIL:
        _give_back(const, state, vc_record, output, next_vc)
        vc_record.blocked = (blocked & EMPTY) | NO_VC
        if not blocked & EMPTY:
            state.asking[asking] = following << _32 | vc
            asking += ONE
        return ready, asking
    vc_record.blocked = blocked
    state.ready[ready] = request
    return ready + U(blocked == U(0)), asking
