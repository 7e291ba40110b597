# SPDX-License-Identifier: Apache-2.0
"""How flits move: from buffer to buffer, and the credits that they leave behind."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ADAPTIVE, ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import EVENTS, GRANTS
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.wheel import wake
from flitlab.sim.engines.compiled.wormhole.queues import due, entry_of, mark, push
from flitlab.sim.engines.compiled.wormhole.state import (
    AHEAD,
    EJECTED,
    EMPTY,
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
def _land(const, state, flit, vc, ready):
    """Put a flit that arrives into the buffer of its VC.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    vc_record = state.vc[vc]
    landed = U(vc_record.landed)
    state.flits[place_of(const, vc, landed)] = flit
    vc_record.landed = landed + ONE
    mark(state.new, vc, U(vc_record.blocked) & (EMPTY | NO_VC) == EMPTY | NO_VC)
    return unblock(state, vc, EMPTY, ready)


@inner
def land_all(const, state, tick, ready):
    """Take in the flits that arrive in this tick.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    for which in range(INJECTED, U(len(state.queue))):
        first, end = due(const, state, which, tick)
        for i in range(first, end):
            if const.large:
                prefetch(state.vc, np.int64(entry_of(state, i + AHEAD)[1]))
            flit, vc = entry_of(state, i)
            ready = _land(const, state, flit, vc, ready)
        state.tally.scalars[EVENTS] += np.int64(end - first)
    return ready


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
    first, end = due(const, state, RETURNED, tick)
    for i in range(first, end):
        if const.large:
            prefetch(state.vc, np.int64(entry_of(state, i + AHEAD)[1]))
        _, vc = entry_of(state, i)
        vc_record = state.vc[vc]
        credit = U(vc_record.credits)
        vc_record.credits = credit + ONE
        if credit == U(0) or const.resorts > 0:  # then packets wait for more credits than one
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
    """Note that a flit has been granted a VC of a network channel: a head takes its packet one hop farther."""
    packet, head = flit >> PACKET_AT, (flit & HEAD) // HEAD
    state.pool.packet[packet].hop += head
    if const.policy == ESCAPE and head and next_vc % U(const.vcs) == U(ESCAPE_VC):
        state.pool.packet[packet].way = ON_ESCAPE


@inner
def foresee(const, state, vc):
    """Begin to load what an input VC touches when it sends its front flit."""
    vc_record = state.vc[vc]
    prefetch(state.vc, np.int64(vc_record.next_vc))
    prefetch(state.flits, np.int64(place_of(const, vc, U(vc_record.front))))


@inner
def send(const, state, vc, ready):
    """Send the front flit of an input VC, which nothing blocks.

    If the next flit can be sent too, the VC stays listed. ``ready`` is the length of the list ``state.ready`` before,
    and its length after is returned.
    """
    vc_record = state.vc[vc]
    front, landed, next_vc = U(vc_record.front), U(vc_record.landed), U(vc_record.next_vc)
    flit = U(state.flits[place_of(const, vc, front)])
    more = front + ONE != landed
    vc_record.front = front + ONE if more else U(0)
    vc_record.landed = landed if more else U(0)
    there, output = state.vc[next_vc], state.output[U(vc_record.output)]
    credit = U(there.credits) - ONE
    there.credits = credit
    output.carried = U(output.carried) + ONE
    push(state, U(output.queue), flit, next_vc)
    tail = flit & TAIL
    there.holder = _NOBODY if tail else vc
    output.free |= tail << (next_vc - U(output.first))
    mark(state.new, vc, tail & U(more))
    line = line_of(const, state, vc)
    if tail and state.line[line].first != NOBODY:
        mark(state.to_retry, line, True)
    blocked = U(not more) * EMPTY | U(credit == U(0)) * NO_CREDIT | tail * NO_VC
    vc_record.blocked = blocked
    state.ready[ready] = vc
    state.tally.scalars[GRANTS] += np.int64((flit & HEAD) // HEAD)
    if next_vc < const.inputs:
        _count_hop(const, state, flit, next_vc)
    return ready + U(blocked == U(0))
