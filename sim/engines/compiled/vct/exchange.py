# SPDX-License-Identifier: Apache-2.0
"""Packets and room that cross from one region of a network to another.

A VC between two regions has two records. That at its own switch has the packets that are in it; the twin, in the
region that feeds it, says where they go.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.sim.engines.base import CREATED_PACKETS, SENT_PACKETS
from flitlab.sim.engines.compiled.due import put
from flitlab.sim.engines.compiled.mail import (
    NOTES,
    PACKETS,
    all_posted,
    box_from,
    first_entry,
    next_entry,
    next_in_all,
    say_whether_idle,
    turn_over,
)
from flitlab.sim.engines.compiled.memory import prefetch, seldom
from flitlab.sim.engines.compiled.messages import last_ejected
from flitlab.sim.engines.compiled.pool import free_record, take_record
from flitlab.sim.engines.compiled.ranks import lane_of_waiting, next_event, will_be_delivered
from flitlab.sim.engines.compiled.vct.room import give_back, skip

SOON = 6
"""A packet so many entries ahead begins to be loaded; it is in the cache of another processor."""


@inline
def crosses(state, vc):
    """Tell whether the other end of an input VC's channel is in another region, which no network of one region has."""
    return seldom(state.mail.regions > 1 and state.lane[vc] > 0)


@inline
def post_room(state, vc, back, flits):
    """Let room of an input VC return to the region that feeds it, where it is usable from tick ``back`` on."""
    _note(state, np.int64(state.lane[vc]), state.vc[vc].credit, back, flits)


@inline
def _note(state, lane, what, tick, flits):
    """Post a note to region ``lane`` - 1."""
    notes = state.mail.notes
    entry = next_entry(state.mail, notes, lane, NOTES)
    notes[entry, 0] = what
    notes[entry, 1] = tick
    notes[entry, 2] = flits


@inline
def post_delivery(program, state, packet, tick):
    """Let the sender of a message whose last packet is delivered at ``tick`` know it, if it waits in another region.

    program: ``state.program``.
    """
    if program is None:
        return
    if state.mail.regions > 1:
        send = np.int64(state.pool.packet[packet].send)
        lane = lane_of_waiting(program.ranks, send)
        if lane > 0 and last_ejected(program, send):
            _note(state, lane, send, tick, np.int64(0))


@inline
def post_packet(state, packet, twin, comes):
    """Let a packet go to another region, where it is ready to be routed at tick ``comes``.

    twin: of the input VC that it goes to, the record in this region.
    """
    packets = state.mail.packets
    entry = next_entry(state.mail, packets, np.int64(state.lane[twin]), PACKETS)
    packets[entry] = state.pool.packet[packet]
    packets[entry].input_vc = state.vc[twin].twin
    packets[entry].next = comes
    free_record(state.pool, packet)


@device_function
def exchange(const, state, tick, until):
    """Wait for all regions to come to the end of a window, ``tick``, and take in what is for this one.

    Returns the tick at which to go on: a later one if there are no packets until then, ``until`` if that is called off.
    """
    _sum_up(state.program, state)
    if not all_posted(state.mail):
        return until
    end, tick = tick, _next_tick(state.program, state, tick, until)
    for region in range(state.mail.regions):
        box = box_from(state.mail, region)
        first = first_entry(state.mail, state.mail.packets, box)
        for entry in range(first, first + state.mail.count[box, PACKETS]):
            _take_in(state, entry)
        first = first_entry(state.mail, state.mail.notes, box)
        for entry in range(first, first + state.mail.count[box, NOTES]):
            _take_note(state.program, state, entry)
    turn_over(state.mail)
    skip(state.program, const, state, end, tick)
    return tick


@inline
def _sum_up(program, state):
    """Tell the other regions whether there are packets in this one, and when its program goes on."""
    if program is None:
        return
    scalars, free = state.tally.scalars, state.pool.free
    waiting = scalars[CREATED_PACKETS] > scalars[SENT_PACKETS]
    active = waiting or free[len(free) - 1] < len(free) - 1
    say_whether_idle(state.mail, np.int64(active), next_event(program.ranks))


@inline
def _next_tick(program, state, tick, until):
    """Find the tick at which to go on after a window: that of the next event if there are no packets."""
    if program is None:
        return tick
    return max(tick, min(until, next_in_all(state.mail)))


@inline
def _take_note(program, state, entry):
    """Take in what another region has to say: of room, or of a message that will have been delivered there."""
    what, tick = np.int64(state.mail.notes[entry, 0]), np.int64(state.mail.notes[entry, 1])
    flits = np.int64(state.mail.notes[entry, 2])  # an int64, as elsewhere: of other types there would be another copy
    if flits > 0:
        give_back(state, what, tick, flits)
    else:
        _complete(program, what, tick)


@inline
def _complete(program, send, tick):
    """Note that all of the message of a send will have been delivered at ``tick``."""
    if program is None:
        return
    will_be_delivered(program.ranks, send, tick)


@inline
def _take_in(state, entry):
    """Put a packet from another region among those that come to switches."""
    packets = state.mail.packets
    prefetch(packets, entry + SOON)
    packet = take_record(state.pool)
    state.pool.packet[packet] = packets[entry]
    put(state.arriving, packet, np.int64(packets[entry].next))
