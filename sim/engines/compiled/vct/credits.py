# SPDX-License-Identifier: Apache-2.0
"""The room of input VCs, as those who feed them know it, and room that is on its way back to them.

Room is counted by who sends: that of all VCs behind an output, or behind a host, stands together. A sender is an
output, or the number of outputs + a host.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inner, routine
from flitlab.models.rules.vc import appeal, is_kept
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    prefetch_next_block,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.memory import prefetch, unlikely
from flitlab.sim.engines.compiled.records import NONE, ZERO
from flitlab.sim.engines.compiled.timing_wheel import schedule

# What is counted of a VC, packed: its room in flits, and whether the sender waits for more.
_ROOM_MASK, _AWAITED = np.uint32(0x7FFFFFFF), np.uint32(1 << 31)

# Room that returns, packed: where it is counted, and flits.
_FLITS_AT, _PLACE_MASK = 32, 0xFFFFFFFF


@inner
def _place(const, sender, vc):
    """Find where the room of a VC behind a sender is counted; vc: its number in its input."""
    return np.uint64((sender << const.vc_bits) + vc)


@inner
def room_of(const, state, sender, vc):
    """Return the room of a VC behind a sender, in flits, as far as that knows; vc: its number in its input."""
    return np.int64(state.room[_place(const, sender, vc)] & _ROOM_MASK)


@inner
def use_room(const, state, sender, vc, flits):
    """Let a sender use room of a VC; vc: its number in its input."""
    state.room[_place(const, sender, vc)] -= np.uint32(flits)


@inner
def wait_for_room(const, state, sender, low, high):
    """Have a sender looked at when room returns to it in one of the VCs from ``low`` to ``high`` - 1."""
    for vc in range(low, high):
        state.room[_place(const, sender, vc)] |= _AWAITED


@inner
def preferred(const, state, resorts, sender, low, high, flits):
    """Find the VC that a packet prefers among those from ``low`` to ``high`` - 1 behind a sender.

    resorts: how many of the first VCs are taken last. flits: length of the packet. Returns (the VC, its appeal); the
    VC is NOBODY if none has room.
    """
    best = NONE
    if resorts == 0:
        most = flits - 1
        for vc in range(low, high):
            room = room_of(const, state, sender, vc)
            best, most = (vc, room) if room > most else (best, most)
        return best, most
    most = ZERO
    for vc in range(low, high):
        room = room_of(const, state, sender, vc)
        if room < flits or is_kept(resorts, low, vc):
            continue
        worth = appeal(resorts, vc, room, flits)
        if worth > most:
            best, most = vc, worth
    return best, most


@inner
def used_behind(const, state, output):
    """Count the credit in use on the channel of an output, in flits."""
    used = ZERO
    for vc in range(const.vcs):
        used += const.buffer_flits - room_of(const, state, output, vc)
    return used


@inner
def give_back(state, place, back, flits):
    """Let room return to who feeds a VC, where it is usable from tick ``back`` on; place: where it is counted."""
    schedule_event(state.credits, np.int64(place) | np.int64(flits) << _FLITS_AT, back)


def places_of(returns: Ints) -> Ints:
    """Return where room that returns is counted."""
    return returns & _PLACE_MASK


@inner
def take_back(const, state, tick):
    """Take in the room that is usable from a tick on, and wake who waits for it."""
    _take_back(const.vc_bits, state.credits, state.room, state.rows, state.outputs, state.senders, np.int64(tick))


@inner
def skip(program, const, state, first, until):
    """Take in what room returns in ticks that are not simulated, from ``first`` to ``until`` - 1.

    program: ``state.program``; without one all are simulated.
    """
    if program is None:
        return
    for tick in range(first, min(until, first + state.credits.mask + 1)):
        take_back(const, state, tick)


@routine
def _take_back(vc_bits, credits, room, rows, outputs, senders, tick):
    """Take in the room that is usable from a tick on; arguments: of a run's constants and state."""
    block, count = take_bucket(credits, tick)
    while block != NONE:
        prefetch_next_block(credits, block)
        if unlikely(count == BLOCK_ENTRIES):
            for i in range(BLOCK_ENTRIES):
                prefetch(room, entry_in(credits, block, i) & _PLACE_MASK)
        for i in range(count):
            returns = entry_in(credits, block, i)
            place = returns & _PLACE_MASK
            now = room[np.uint64(place)] + np.uint32(returns >> _FLITS_AT)
            room[np.uint64(place)] = now & _ROOM_MASK
            if now & _AWAITED:
                sender = place >> vc_bits
                if sender >= len(rows):
                    schedule(senders, sender - len(rows), tick)
                elif rows[sender].busy <= tick:  # else it is looked at when it falls free
                    schedule(outputs, sender, tick)
        block, count = release_block(credits, block), BLOCK_ENTRIES
