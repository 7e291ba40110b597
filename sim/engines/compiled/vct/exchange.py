# SPDX-License-Identifier: Apache-2.0
"""Packets and credits that cross cut edges between partitions.

A VC of a cut edge has two records: the local record, at its switch, stores its packets; the remote copy, in the
partition that feeds it, stores where to send them.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.calendar_queue import schedule_event
from flitlab.sim.engines.compiled.mailbox import (
    CONTROL,
    PACKETS,
    append_entry,
    earliest_event,
    first_entry,
    mailbox_from,
    publish_next_event,
    swap_mailboxes,
    synchronize,
)
from flitlab.sim.engines.compiled.memory import prefetch, unlikely
from flitlab.sim.engines.compiled.messages import count_ejection
from flitlab.sim.engines.compiled.pool import allocate_record, free_record
from flitlab.sim.engines.compiled.ranks import awaiting_partition, next_event, record_remote_delivery
from flitlab.sim.engines.compiled.vct.credits import add_credits_of_skipped_ticks, schedule_credit_return

PREFETCH_DISTANCE = 6
"""Entries of a mailbox by which prefetching is ahead: they are in the cache of another processor."""


@inline
def is_vc_of_cut_edge(state, vc):
    """Tell whether the upstream of an input VC, or for a remote copy the VC, is in another partition."""
    return unlikely(state.mailboxes.partitions > 1 and state.remote_partition[vc] > 0)


@inline
def export_credits_to_upstream_partition(state, vc, usable_at, flits):
    """Return credits of an input VC to the partition that feeds it.

    Parameters
    ----------
    vc: int64, the local record.
    usable_at: int64, tick from which on the credits are usable.
    flits: int64.
    """
    _export_credits_or_message_delivery(
        state, np.int64(state.remote_partition[vc]), state.vc[vc].credit_index, usable_at, flits
    )


@inline
def _export_credits_or_message_delivery(state, remote_partition, subject, tick, flits):
    """Append (subject, tick, flits) to the mailbox of partition ``remote_partition`` - 1."""
    control = state.mailboxes.control
    entry = append_entry(state.mailboxes, control, remote_partition, CONTROL)
    control[entry, 0] = subject
    control[entry, 1] = tick
    control[entry, 2] = flits


@inline
def export_message_delivery(program, state, packet, tick):
    """Announce the delivery of a message's last packet if its sender waits in another partition.

    Parameters
    ----------
    program: ``state.program``, or None.
    packet: int64.
    tick: int64, of the delivery.
    """
    if program is None:
        return
    if state.mailboxes.partitions > 1:
        send = np.int64(state.pool.packet[packet].send)
        remote_partition = awaiting_partition(program.ranks, send)
        if remote_partition > 0 and count_ejection(program, send):
            _export_credits_or_message_delivery(state, remote_partition, send, tick, np.int64(0))


@inline
def export_packet_to_downstream_partition(state, packet, remote_vc, ready_at):
    """Send a packet to another partition.

    Parameters
    ----------
    packet: int64; its record is freed.
    remote_vc: int64, the remote copy of the input VC.
    ready_at: int64, tick at which the packet is ready to be routed.
    """
    packets = state.mailboxes.packets
    entry = append_entry(state.mailboxes, packets, np.int64(state.remote_partition[remote_vc]), PACKETS)
    packets[entry] = state.pool.packet[packet]
    packets[entry].input_vc = state.vc[remote_vc].remote_copy
    packets[entry].next = ready_at
    free_record(state.pool, packet)


@device_function
def exchange_mailboxes_at_barrier(const, state, tick, until):
    """Wait at the barrier after a lookahead window that ends at ``tick``, and read all mailboxes.

    Returns
    -------
    The tick to continue at: a later one if no packet is in flight until then, ``until`` if the run is cancelled.
    """
    _publish_activity_and_next_event_of_program(state.program, state)
    if not synchronize(state.mailboxes):
        return until
    window_end, tick = tick, _start_of_next_lookahead_window(state.program, state, tick, until)
    for partition in range(state.mailboxes.partitions):
        mailbox = mailbox_from(state.mailboxes, partition)
        first = first_entry(state.mailboxes, state.mailboxes.packets, mailbox)
        for entry in range(first, first + state.mailboxes.count[mailbox, PACKETS]):
            _import_packet_and_schedule_arrival(state, entry)
        first = first_entry(state.mailboxes, state.mailboxes.control, mailbox)
        for entry in range(first, first + state.mailboxes.count[mailbox, CONTROL]):
            _import_credits_or_message_delivery(state.program, state, entry)
    swap_mailboxes(state.mailboxes)
    add_credits_of_skipped_ticks(state.program, const, state, window_end, tick)
    return tick


@inline
def _publish_activity_and_next_event_of_program(program, state):
    """Publish whether this partition has packets, and the next event of its program."""
    if program is None:
        return
    scalars, free = state.counters.scalars, state.pool.free
    has_unsent = scalars[Scalar.CREATED_PACKETS] > scalars[Scalar.SENT_PACKETS]
    active = has_unsent or free[len(free) - 1] < len(free) - 1
    publish_next_event(state.mailboxes, np.int64(active), next_event(program.ranks))


@inline
def _start_of_next_lookahead_window(program, state, tick, until):
    """Return the tick of the next window: that of the next event if no partition has packets."""
    if program is None:
        return tick
    return max(tick, min(until, earliest_event(state.mailboxes)))


@inline
def _import_credits_or_message_delivery(program, state, entry):
    """Read a control entry: returned credits, or the completion of a message."""
    subject, tick = np.int64(state.mailboxes.control[entry, 0]), np.int64(state.mailboxes.control[entry, 1])
    flits = np.int64(state.mailboxes.control[entry, 2])  # int64 as elsewhere: each type compiles its own copy
    if flits > 0:
        schedule_credit_return(state, subject, tick, flits)
    else:
        _import_message_delivery(program, subject, tick)


@inline
def _import_message_delivery(program, send, tick):
    """Record that the message of a send will have been delivered at ``tick``."""
    if program is None:
        return
    record_remote_delivery(program.ranks, send, tick)


@inline
def _import_packet_and_schedule_arrival(state, entry):
    """Move a packet from a mailbox into the calendar of arrivals."""
    packets = state.mailboxes.packets
    prefetch(packets, entry + PREFETCH_DISTANCE)
    packet = allocate_record(state.pool)
    state.pool.packet[packet] = packets[entry]
    schedule_event(state.arriving, packet, np.int64(packets[entry].next))
