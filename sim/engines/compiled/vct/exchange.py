# SPDX-License-Identifier: Apache-2.0
"""Packets and room that cross from one region of a network to another.

A VC between two regions has two records. That at its own switch has the packets that are in it; the twin, in the
region that feeds it, says where they go.
"""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.sim.engines.base import CREATED_PACKETS, SENT_PACKETS
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
from flitlab.sim.engines.compiled.vct.credits import give_back, skip

SOON = 6
"""A packet so many entries ahead begins to be loaded; it is in the cache of another processor."""


@inner
def crosses(state, vc):
    """Tell whether the other end of an input VC's channel is in another region, which no network of one region has."""
    return unlikely(state.mailboxes.partitions > 1 and state.remote_partition[vc] > 0)


@inner
def post_room(state, vc, back, flits):
    """Let room of an input VC return to the region that feeds it, where it is usable from tick ``back`` on."""
    _note(state, np.int64(state.remote_partition[vc]), state.vc[vc].credit, back, flits)


@inner
def _note(state, lane, what, tick, flits):
    """Post a note to region ``remote_partition`` - 1."""
    notes = state.mailboxes.control
    entry = append_entry(state.mailboxes, notes, lane, CONTROL)
    notes[entry, 0] = what
    notes[entry, 1] = tick
    notes[entry, 2] = flits


@inner
def post_delivery(program, state, packet, tick):
    """Let the sender of a message whose last packet is delivered at ``tick`` know it, if it waits in another region.

    program: ``state.program``.
    """
    if program is None:
        return
    if state.mailboxes.partitions > 1:
        send = np.int64(state.pool.packet[packet].send)
        lane = awaiting_partition(program.ranks, send)
        if lane > 0 and count_ejection(program, send):
            _note(state, lane, send, tick, np.int64(0))


@inner
def post_packet(state, packet, twin, comes):
    """Let a packet go to another region, where it is ready to be routed at tick ``comes``.

    twin: of the input VC that it goes to, the record in this region.
    """
    packets = state.mailboxes.packets
    entry = append_entry(state.mailboxes, packets, np.int64(state.remote_partition[twin]), PACKETS)
    packets[entry] = state.pool.packet[packet]
    packets[entry].input_vc = state.vc[twin].twin
    packets[entry].next = comes
    free_record(state.pool, packet)


@routine
def exchange(const, state, tick, until):
    """Wait for all regions to come to the end of a window, ``tick``, and take in what is for this one.

    Returns the tick at which to go on: a later one if there are no packets until then, ``until`` if that is called off.
    """
    _sum_up(state.program, state)
    if not synchronize(state.mailboxes):
        return until
    end, tick = tick, _next_tick(state.program, state, tick, until)
    for region in range(state.mailboxes.partitions):
        box = mailbox_from(state.mailboxes, region)
        first = first_entry(state.mailboxes, state.mailboxes.packets, box)
        for entry in range(first, first + state.mailboxes.count[box, PACKETS]):
            _take_in(state, entry)
        first = first_entry(state.mailboxes, state.mailboxes.control, box)
        for entry in range(first, first + state.mailboxes.count[box, CONTROL]):
            _take_note(state.program, state, entry)
    swap_mailboxes(state.mailboxes)
    skip(state.program, const, state, end, tick)
    return tick


@inner
def _sum_up(program, state):
    """Tell the other regions whether there are packets in this one, and when its program goes on."""
    if program is None:
        return
    scalars, free = state.counters.scalars, state.pool.free
    waiting = scalars[CREATED_PACKETS] > scalars[SENT_PACKETS]
    active = waiting or free[len(free) - 1] < len(free) - 1
    publish_next_event(state.mailboxes, np.int64(active), next_event(program.ranks))


@inner
def _next_tick(program, state, tick, until):
    """Find the tick at which to go on after a window: that of the next event if there are no packets."""
    if program is None:
        return tick
    return max(tick, min(until, earliest_event(state.mailboxes)))


@inner
def _take_note(program, state, entry):
    """Take in what another region has to say: of room, or of a message that will have been delivered there."""
    what, tick = np.int64(state.mailboxes.control[entry, 0]), np.int64(state.mailboxes.control[entry, 1])
    flits = np.int64(
        state.mailboxes.control[entry, 2]
    )  # an int64, as elsewhere: of other types there would be another copy
    if flits > 0:
        give_back(state, what, tick, flits)
    else:
        _complete(program, what, tick)


@inner
def _complete(program, send, tick):
    """Note that all of the message of a send will have been delivered at ``tick``."""
    if program is None:
        return
    record_remote_delivery(program.ranks, send, tick)


@inner
def _take_in(state, entry):
    """Put a packet from another region among those that come to switches."""
    packets = state.mailboxes.packets
    prefetch(packets, entry + SOON)
    packet = allocate_record(state.pool)
    state.pool.packet[packet] = packets[entry]
    schedule_event(state.arriving, packet, np.int64(packets[entry].next))
