# SPDX-License-Identifier: Apache-2.0
"""Movement of flits between buffers, and their credits.

``ready_end`` and ``new_heads`` are the lengths of the lists in ``state.ready`` and ``state.new_heads``: functions take
them before, and return them after.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE_VC, Selection, VcPolicy
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.replies import commit_reply, may_eject
from flitlab.sim.engines.compiled.timing_wheel import schedule
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.crossbar import forward_flit
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.queues import due_entries, flit_and_vc, set_bit

_NONE = U(NONE)
_32 = U(32)


@inline
def flit_index(const, vc, flit_number):
    """Return the index in ``WormholeState.flits`` of flit ``flit_number`` of a VC, in its ring buffer."""
    return (flit_number & const.buffer_mask) * const.input_vcs + vc


@inline
def free_credits(state, vc):
    """Return the flits that may be sent into a VC, int64."""
    return np.int64(state.vc[vc].credits)


@inline
def buffer_of(vc_buffers, const, vc):
    """Return the flits that an input VC holds. vc_buffers: ``const.vc_buffers``."""
    if vc_buffers is None:
        return const.buffer_flits
    return vc_buffers[vc]


@inline
def request_of(vc, vc_record):
    """Make the request of an input VC for the output of its packet."""
    return U(vc_record.output) << layout.OUTPUT_SHIFT | vc


@inline
def unblock(state, vc, reason, ready_end):
    """Clear a reason why the front flit of a VC cannot be sent; if it was the last, add the VC to the ready list.

    Parameters
    ----------
    vc: uint64, an input VC.
    reason: NO_VC ...
    ready_end: uint64, length of the ready list.

    Returns
    -------
    The new length.
    """
    vc_record = state.vc[vc]
    before = U(vc_record.blocked)
    state.ready[ready_end] = request_of(vc, vc_record)
    vc_record.blocked = before & ~reason
    return ready_end + U(before == reason)


@inline
def receive_flits(const, state, tick, ready_end, new_heads):
    """Put the flits that arrive at switches in this tick into the buffers of their VCs.

    Parameters
    ----------
    tick: int64.
    ready_end, new_heads: uint64, lengths of the lists.

    Returns
    -------
    The new lengths.
    """
    for queue_index in range(layout.INJECTED, const.switch_queues_end):
        first, end = due_entries(const, state, queue_index, tick)
        for i in range(first, end):
            if const.exceeds_cache:
                prefetch(state.vc, np.int64(flit_and_vc(state, i + layout.FAR_PREFETCH_DISTANCE)[1]))
            entry, (flit, vc) = state.entries[i], flit_and_vc(state, i)
            vc_record = state.vc[vc]
            write_index, blocked = U(vc_record.write_index), U(vc_record.blocked)
            vc_record.write_index = write_index + U(1)
            if not blocked & layout.EMPTY:
                state.flits[flit_index(const, vc, write_index)] = flit
                continue
            state.ready[ready_end] = request_of(vc, vc_record)
            vc_record.front_flit = flit
            vc_record.blocked = blocked - layout.EMPTY
            state.new_heads[new_heads] = entry
            ready_end += U(blocked == layout.EMPTY)
            new_heads += U(blocked & layout.NO_VC == layout.NO_VC)
        state.counters.scalars[Scalar.EVENTS] += np.int64(end - first)
    return ready_end, new_heads


@inline
def eject_flits(const, state, tick):
    """Receive the flits that arrive at hosts in this tick."""
    for queue_index in range(const.switch_queues_end - U(1), const.host_queues_end):
        first, end = due_entries(
            const, state, queue_index if queue_index >= const.switch_queues_end else layout.EJECTED, tick
        )
        for i in range(first, end):
            flit, vc = flit_and_vc(state, i)
            vc_record = state.vc[vc]
            vc_record.credits = U(vc_record.credits) + U(1)
            if flit & layout.TAIL:
                records.deliver_packet(const, state, np.int64(flit >> layout.PACKET_SHIFT), tick)


@inline
def _notify_upstream(const, state, vc, tick, ready_end):
    """Notify the upstream of an input VC of a returned credit."""
    holder, upstream = U(state.vc[vc].holder), U(state.vc[vc].upstream)
    if upstream >= const.wait_queues:
        schedule(state.host_wheel, upstream - const.wait_queues, tick)
    elif holder != _NONE:
        return unblock(state, holder, layout.NO_CREDIT, ready_end)
    elif const.rule == Selection.ADAPTIVE:
        set_bit(state.to_retry, upstream, True)
    return ready_end


@inline
def receive_credits(const, state, tick, ready_end):
    """Collect the credits that return in this tick, and notify upstreams that lack credits."""
    notify_limit = (
        U(layout.UNLIMITED_CREDITS) if const.reserved_vcs > 0 else U(0)
    )  # with reserved VCs packets may wait for several credits
    for queue_index in range(const.host_queues_end - U(1), U(len(state.queue))):
        first, end = due_entries(
            const, state, queue_index if queue_index >= const.host_queues_end else layout.RETURNED, tick
        )
        for i in range(first, end):
            if const.exceeds_cache:
                prefetch(state.vc, np.int64(state.entries[i + layout.FAR_PREFETCH_DISTANCE]))
            vc = state.entries[i]  # the flit is 0, so that the entry is the VC
            vc_record = state.vc[vc]
            credit = U(vc_record.credits)
            vc_record.credits = credit + U(1)
            if credit <= notify_limit:
                ready_end = _notify_upstream(const, state, vc, tick, ready_end)
        state.counters.scalars[Scalar.EVENTS] += np.int64(end - first)
    return ready_end


@inline
def read_headers(const, state, tick, ready_end):
    """Unblock packets whose header delay ends in this tick."""
    first, end = due_entries(const, state, layout.HEADERS, tick)
    for i in range(first, end):
        _, vc = flit_and_vc(state, i)
        ready_end = unblock(state, vc, layout.UNREAD, ready_end)
    return ready_end


@inline
def _count_hop(const, state, flit, output, next_vc):
    """Count the hop of a head flit that is sent to an output, unless it goes to a host."""
    record = state.pool.packet[flit >> layout.PACKET_SHIFT]
    if state.counters.channels is not None:
        ejects, channel = next_vc >= const.input_vcs, np.int64(const.net.ports.out_channel[output])
        row = records.ejection_channel(const, state, record.dst_host) if ejects else channel
        records.count_flits(state.counters.channels, row, np.int64(0))  # flits are counted by VC
    record.hop += U(next_vc < const.input_vcs)
    if next_vc >= const.input_vcs:
        commit_reply(state.pool.replies, const, record)
    if const.policy == VcPolicy.ESCAPE and next_vc < const.input_vcs and next_vc % U(const.vcs) == U(ESCAPE_VC):
        record.route = ON_ESCAPE
    state.counters.scalars[Scalar.GRANTS] += 1


@inline
def waits_for_reply(replies, const, state, vc, tick):
    """Tell whether the front flit of an input VC is a head flit whose host may owe no further reply.

    replies: ``state.pool.replies``.
    """
    if replies is None:
        return False
    vc_record = state.vc[vc]
    flit = U(vc_record.front_flit)
    if U(vc_record.next_vc) < const.input_vcs or not flit & layout.HEAD:
        return False
    return not may_eject(replies, const, state.pool.packet[flit >> layout.PACKET_SHIFT], tick)


@inline
def _release_vc(const, state, vc_record, output, next_vc):
    """Release the VC of a packet whose tail is sent, and have the packets that wait for one retried."""
    state.vc[next_vc].holder = _NONE
    vc_set = state.vc_set[output]
    vc_set.free |= U(1) << (next_vc - U(vc_set.first))
    wait_queue = U(vc_record.switch) if const.rule == Selection.ADAPTIVE else output
    if state.vc_set[wait_queue].first_waiting != NONE:
        set_bit(state.to_retry, wait_queue, True)


@inline
def prefetch_send(const, state, request):
    """Prefetch what sending the front flit of an input VC touches."""
    vc, output = request & layout.VC_MASK, request >> layout.OUTPUT_SHIFT
    vc_record = state.vc[vc]
    flit, next_number = U(vc_record.front_flit), U(vc_record.read_index) + U(1)
    has_next, head = U(next_number != U(vc_record.write_index)), (flit & layout.HEAD) // layout.HEAD
    prefetch(state.vc, np.int64(vc_record.next_vc))
    prefetch(
        state.flits, np.int64(flit_index(const, vc, next_number) * has_next)
    )  # what is not touched is the first, at hand
    prefetch(state.vc_set, np.int64(output * (flit & layout.TAIL)))
    prefetch(state.pool.packet, np.int64((flit >> layout.PACKET_SHIFT) * head))


@inline
def send_flit(const, state, request, queue, ready_end, new_heads):
    """Send the front flit of an input VC, which nothing blocks; a sendable next flit joins the list of the next tick.

    Parameters
    ----------
    request: uint64, of the input VC.
    queue: delay queue of the output.
    """
    vc, output = request & layout.VC_MASK, request >> layout.OUTPUT_SHIFT
    vc_record = state.vc[vc]
    read_index, write_index, next_vc = U(vc_record.read_index) + U(1), U(vc_record.write_index), U(vc_record.next_vc)
    flit, next_record = U(vc_record.front_flit), state.vc[next_vc]
    credit = U(next_record.credits) - U(1)
    next_record.credits = credit
    next_record.flits_sent = U(next_record.flits_sent) + U(1)
    forward_flit(state.crossbar, state, queue, output, flit, next_vc)
    next_flit, blocked = U(0), U(credit == U(0)) * layout.NO_CREDIT
    if read_index == write_index:
        read_index = write_index = U(0)
        blocked |= layout.EMPTY
    else:
        next_flit = U(state.flits[flit_index(const, vc, read_index)])
        vc_record.front_flit = next_flit
    vc_record.read_index = read_index
    vc_record.write_index = write_index
    if flit & layout.HEAD:
        _count_hop(const, state, flit, output, next_vc)
    if flit & layout.TAIL:
        _release_vc(const, state, vc_record, output, next_vc)
        vc_record.blocked = (blocked & layout.EMPTY) | layout.NO_VC
        if not blocked & layout.EMPTY:
            state.new_heads[new_heads] = next_flit << _32 | vc
            new_heads += U(1)
        return ready_end, new_heads
    vc_record.blocked = blocked
    state.ready[ready_end] = request
    return ready_end + U(blocked == U(0)), new_heads
