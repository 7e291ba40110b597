# SPDX-License-Identifier: Apache-2.0
"""How flits move: from buffer to buffer, and the credits that they leave behind."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ADAPTIVE, ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import EVENTS, GRANTS
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.wormhole.queues import due_entries, flit_and_vc, push, set_bit
from flitlab.sim.engines.compiled.wormhole.state import (
    EJECTED,
    EMPTY,
    FAR_PREFETCH_DISTANCE,
    HEAD,
    HEADERS,
    INJECTED,
    NO_CREDIT,
    NO_VC,
    ONE,
    OUTPUT_SHIFT,
    PACKET_SHIFT,
    RETURNED,
    TAIL,
    UNLIMITED_CREDITS,
    UNREAD,
    VC_MASK,
    U,
)

_NONE = U(NONE)
_32 = U(32)


@inner
def flit_index(const, vc, flit_number):
    """Find the place of a VC's flit in ``WormholeState.flits``.

    number: of the flit, counted as ``front`` and ``landed`` of the VC are.
    """
    return (flit_number & const.buffer_mask) * const.inputs + vc


@inner
def free_credits(state, vc):
    """Return how many flits may be sent to a VC, int64."""
    return np.int64(state.vc[vc].credits)


@inner
def request_of(vc, vc_record):
    """Make the request of an input VC for the output that its front packet goes to."""
    return U(vc_record.output) << OUTPUT_SHIFT | vc


@inner
def unblock(state, vc, reason, ready):
    """Take away a reason why the front flit of a VC cannot be sent; if it was the only one, list the VC as ready.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    vc_record = state.vc[vc]
    before = U(vc_record.blocked)
    state.ready[ready] = request_of(vc, vc_record)
    vc_record.blocked = before & ~reason
    return ready + U(before == reason)


@inner
def receive_flits(const, state, tick, ready, new_heads):
    """Put the flits that arrive in this tick into the buffers of their VCs.

    ``ready`` is the end of the list in ``state.ready`` and ``new_heads`` the length of ``state.new_heads`` before, and
    what they are after is returned.
    """
    for queue_index in range(INJECTED, const.ejected):
        first, end = due_entries(const, state, queue_index, tick)
        for i in range(first, end):
            if const.exceeds_cache:
                prefetch(state.vc, np.int64(flit_and_vc(state, i + FAR_PREFETCH_DISTANCE)[1]))
            entry, (flit, vc) = state.entries[i], flit_and_vc(state, i)
            vc_record = state.vc[vc]
            landed, blocked = U(vc_record.landed), U(vc_record.blocked)
            vc_record.landed = landed + ONE
            if not blocked & EMPTY:
                state.flits[flit_index(const, vc, landed)] = flit
                continue
            state.ready[ready] = request_of(vc, vc_record)
            vc_record.flit = flit
            vc_record.blocked = blocked - EMPTY
            state.new_heads[new_heads] = entry
            ready += U(blocked == EMPTY)
            new_heads += U(blocked & NO_VC == NO_VC)
        state.counters.scalars[EVENTS] += np.int64(end - first)
    return ready, new_heads


@inner
def eject_flits(const, state, tick):
    """Take in the flits that come to their hosts in this tick."""
    for queue_index in range(const.ejected - ONE, const.returned):
        first, end = due_entries(const, state, queue_index if queue_index >= const.ejected else EJECTED, tick)
        for i in range(first, end):
            flit, vc = flit_and_vc(state, i)
            vc_record = state.vc[vc]
            vc_record.credits = U(vc_record.credits) + ONE
            if flit & TAIL:
                records.deliver_packet(const, state, np.int64(flit >> PACKET_SHIFT), tick)


@inner
def _notify_upstream(const, state, vc, tick, ready):
    """Tell whoever sends to an input VC that there is a credit again.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    holder, upstream = U(state.vc[vc].holder), U(state.vc[vc].upstream)
    if upstream >= const.wait_queues:
        schedule(state.host_wheel, upstream - const.wait_queues, tick)
    elif holder != _NONE:
        return unblock(state, holder, NO_CREDIT, ready)
    elif const.rule == ADAPTIVE:
        set_bit(state.to_retry, upstream, True)
    return ready


@inner
def collect_credits(const, state, tick, ready):
    """Give back the credits that return in this tick.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    notify_limit = (
        U(UNLIMITED_CREDITS) if const.reserved_vcs > 0 else U(0)
    )  # with last resorts packets wait for more credits than one
    for queue_index in range(const.returned - ONE, U(len(state.queue))):
        first, end = due_entries(const, state, queue_index if queue_index >= const.returned else RETURNED, tick)
        for i in range(first, end):
            if const.exceeds_cache:
                prefetch(state.vc, np.int64(state.entries[i + FAR_PREFETCH_DISTANCE]))
            vc = state.entries[i]  # its flit is 0, so the entry is the VC itself
            vc_record = state.vc[vc]
            credit = U(vc_record.credits)
            vc_record.credits = credit + ONE
            if credit <= notify_limit:
                ready = _notify_upstream(const, state, vc, tick, ready)
        state.counters.scalars[EVENTS] += np.int64(end - first)
    return ready


@inner
def read_headers(const, state, tick, ready):
    """Let packets be routed whose header delay ends in this tick.

    ``ready`` is the end of the list in ``state.ready`` before, and its end after is returned.
    """
    first, end = due_entries(const, state, HEADERS, tick)
    for i in range(first, end):
        _, vc = flit_and_vc(state, i)
        ready = unblock(state, vc, UNREAD, ready)
    return ready


@inner
def _count_hop(const, state, flit, next_vc):
    """Note that a head has been granted a VC: its packet is one hop farther, unless it goes to a host."""
    record = state.pool.packet[flit >> PACKET_SHIFT]
    record.hop += U(next_vc < const.inputs)
    if const.policy == ESCAPE and next_vc < const.inputs and next_vc % U(const.vcs) == U(ESCAPE_VC):
        record.route = ON_ESCAPE
    state.counters.scalars[GRANTS] += 1


@inner
def _release_vc(const, state, vc_record, output, next_vc):
    """Take the VC that it was given from a packet whose tail is sent, and have those called who wait for one."""
    state.vc[next_vc].holder = _NONE
    vc_set = state.vc_set[output]
    vc_set.free |= ONE << (next_vc - U(vc_set.first))
    wait_queue = U(vc_record.switch) if const.rule == ADAPTIVE else output
    if state.vc_set[wait_queue].first_waiting != NONE:
        set_bit(state.to_retry, wait_queue, True)


@inner
def prefetch_send(const, state, request):
    """Begin to load what is touched when an input VC sends its front flit."""
    vc, output = request & VC_MASK, request >> OUTPUT_SHIFT
    vc_record = state.vc[vc]
    flit, next_number = U(vc_record.flit), U(vc_record.front) + ONE
    has_next, head = U(next_number != U(vc_record.landed)), (flit & HEAD) // HEAD
    prefetch(state.vc, np.int64(vc_record.next_vc))
    prefetch(
        state.flits, np.int64(flit_index(const, vc, next_number) * has_next)
    )  # what is not touched is the first, at hand
    prefetch(state.vc_set, np.int64(output * (flit & TAIL)))
    prefetch(state.pool.packet, np.int64((flit >> PACKET_SHIFT) * head))


@inner
def send_flit(const, state, request, queue, ready, new_heads):
    """Send the front flit of an input VC, which nothing blocks: (``ready``, ``new_heads``).

    If the next flit can be sent too, the VC is listed for the next tick. queue: of the output. ``ready`` is the end of
    the list in ``state.ready`` and ``new_heads`` the length of ``state.new_heads`` before, and what they are after is
    returned.
    """
    vc, output = request & VC_MASK, request >> OUTPUT_SHIFT
    vc_record = state.vc[vc]
    front, landed, next_vc = U(vc_record.front) + ONE, U(vc_record.landed), U(vc_record.next_vc)
    flit, next_record = U(vc_record.flit), state.vc[next_vc]
    credit = U(next_record.credits) - ONE
    next_record.credits = credit
    next_record.carried = U(next_record.carried) + ONE
    push(state, queue, flit, next_vc)
    next_flit, blocked = U(0), U(credit == U(0)) * NO_CREDIT
    if front == landed:
        front = landed = U(0)
        blocked |= EMPTY
    else:
        next_flit = U(state.flits[flit_index(const, vc, front)])
        vc_record.flit = next_flit
    vc_record.front = front
    vc_record.landed = landed
    if flit & HEAD:
        _count_hop(const, state, flit, next_vc)
    if flit & TAIL:
        _release_vc(const, state, vc_record, output, next_vc)
        vc_record.blocked = (blocked & EMPTY) | NO_VC
        if not blocked & EMPTY:
            state.new_heads[new_heads] = next_flit << _32 | vc
            new_heads += ONE
        return ready, new_heads
    vc_record.blocked = blocked
    state.ready[ready] = request
    return ready + U(blocked == U(0)), new_heads
