# SPDX-License-Identifier: Apache-2.0
"""The room of input VCs, as those who feed them know it, and room that is on its way back to them.

Room is counted by who sends: that of all VCs behind an output, or behind a host, stands together. A sender is an
output, or the number of outputs + a host.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import device_function, inline
from flitlab.models.rules.vc import is_reserved_for_others, vc_score
from flitlab.sim.engines.compiled.due import FULL, ask_for_next, packet_in, put, release, take
from flitlab.sim.engines.compiled.memory import prefetch, seldom
from flitlab.sim.engines.compiled.records import NOBODY, ZERO
from flitlab.sim.engines.compiled.wheel import wake

# What is counted of a VC, packed: its room in flits, and whether the sender waits for more.
_ROOM_MASK, _AWAITED = np.uint32(0x7FFFFFFF), np.uint32(1 << 31)

# Room that returns, packed: where it is counted, and flits.
_FLITS_AT, _PLACE_MASK = 32, 0xFFFFFFFF


@inline
def _place(const, sender, vc):
    """Find where the room of a VC behind a sender is counted; vc: its number in its input."""
    return np.uint64((sender << const.vc_bits) + vc)


@inline
def room_of(const, state, sender, vc):
    """Return the room of a VC behind a sender, in flits, as far as that knows; vc: its number in its input."""
    return np.int64(state.room[_place(const, sender, vc)] & _ROOM_MASK)


@inline
def use_room(const, state, sender, vc, flits):
    """Let a sender use room of a VC; vc: its number in its input."""
    state.room[_place(const, sender, vc)] -= np.uint32(flits)


@inline
def wait_for_room(const, state, sender, low, high):
    """Have a sender looked at when room returns to it in one of the VCs from ``low`` to ``high`` - 1."""
    for vc in range(low, high):
        state.room[_place(const, sender, vc)] |= _AWAITED


@inline
def preferred(const, state, resorts, sender, low, high, flits):
    """Find the VC that a packet prefers among those from ``low`` to ``high`` - 1 behind a sender.

    resorts: how many of the first VCs are taken last. flits: length of the packet. Returns (the VC, its appeal); the
    VC is NOBODY if none has room.
    """
    best = NOBODY
    if resorts == 0:
        most = flits - 1
        for vc in range(low, high):
            room = room_of(const, state, sender, vc)
            best, most = (vc, room) if room > most else (best, most)
        return best, most
    most = ZERO
    for vc in range(low, high):
        room = room_of(const, state, sender, vc)
        if room < flits or is_reserved_for_others(resorts, low, vc):
            continue
        worth = vc_score(resorts, vc, room, flits)
        if worth > most:
            best, most = vc, worth
    return best, most


@inline
def used_behind(const, state, output):
    """Count the credit in use on the channel of an output, in flits."""
    used = ZERO
    for vc in range(const.vcs):
        used += const.buffer_flits - room_of(const, state, output, vc)
    return used


@inline
def give_back(state, place, back, flits):
    """Let room return to who feeds a VC, where it is usable from tick ``back`` on; place: where it is counted."""
    put(state.credits, np.int64(place) | np.int64(flits) << _FLITS_AT, back)


def places_of(returns: Ints) -> Ints:
    """Return where room that returns is counted."""
    return returns & _PLACE_MASK


@inline
def take_back(const, state, tick):
    """Take in the room that is usable from a tick on, and wake who waits for it."""
    _take_back(const.vc_bits, state.credits, state.room, state.rows, state.outputs, state.senders, np.int64(tick))


@inline
def skip(program, const, state, first, until):
    """Take in what room returns in ticks that are not simulated, from ``first`` to ``until`` - 1.

    program: ``state.program``; without one all are simulated.
    """
    if program is None:
        return
    for tick in range(first, min(until, first + state.credits.mask + 1)):
        take_back(const, state, tick)


@device_function
def _take_back(vc_bits, credits, room, rows, outputs, senders, tick):
    """Take in the room that is usable from a tick on; arguments: of a run's constants and state."""
    chunk, filled = take(credits, tick)
    while chunk != NOBODY:
        ask_for_next(credits, chunk)
        if seldom(filled == FULL):
            for i in range(FULL):
                prefetch(room, packet_in(credits, chunk, i) & _PLACE_MASK)
        for i in range(filled):
            returns = packet_in(credits, chunk, i)
            place = returns & _PLACE_MASK
            now = room[np.uint64(place)] + np.uint32(returns >> _FLITS_AT)
            room[np.uint64(place)] = now & _ROOM_MASK
            if now & _AWAITED:
                sender = place >> vc_bits
                if sender >= len(rows):
                    wake(senders, sender - len(rows), tick)
                elif rows[sender].busy <= tick:  # else it is looked at when it falls free
                    wake(outputs, sender, tick)
        chunk, filled = release(credits, chunk), FULL
