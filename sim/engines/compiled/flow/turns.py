# SPDX-License-Identifier: Apache-2.0
"""The channels whose turn is to come: the one at the lowest rate is found first, and rates change.

There are mostly few of them out of many, so their keys stand one after another in any order, and the smallest is
searched for, ``LANES`` at a time: for dozens that is faster than a tree, in which no branch can be foreseen. Of every
block of keys a number is known that is no larger than any of them: where there are hundreds of channels and more, only
blocks that may have the smallest are searched.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.flow.state import KEYS, QUEUE, QUEUED
from flitlab.sim.engines.compiled.flow.tournament import OUT
from flitlab.sim.engines.compiled.lanes import LANES, least_of, place_of


@inline
def _give_key(state, place, key):
    """Put a key at a place of the queue."""
    state.keys[place] = key
    block = place // KEYS
    state.least[block] = min(state.least[block], key)


@inline
def set_turn(state, channel, rate):
    """Let it be the turn of a channel when a rate is reached."""
    place = state.channel[channel, QUEUED]
    if place < 0:
        place = state.totals[QUEUE]
        state.totals[QUEUE] = place + 1
        state.channel[channel, QUEUED] = place
        state.queue[place] = channel
    _give_key(state, place, np.float64(rate).view(np.int64))  # in the order of the rates, which are not negative


@inline
def turn_of(state, channel):
    """Return the rate at which it is the turn of a channel."""
    return np.int64(state.keys[state.channel[channel, QUEUED]]).view(np.float64)


@inline
def cancel_turn(state, channel):
    """Take a channel out of the queue."""
    place, last = state.channel[channel, QUEUED], state.totals[QUEUE] - 1
    moved = state.queue[last]
    state.totals[QUEUE] = last
    state.queue[place] = moved
    state.channel[moved, QUEUED] = place
    state.channel[channel, QUEUED] = -1
    _give_key(state, place, state.keys[last])
    state.keys[last] = OUT


@inline
def _search(keys, begin, end):
    """Find the smallest of the keys from ``begin`` to ``end``, and where the ``LANES`` begin that it is one of."""
    least, at = np.int64(OUT), begin
    for lanes in range(begin, end, LANES):
        here = least_of(keys, lanes)
        if here < least:
            least, at = here, lanes
    return least, at


@inline
def next_turn(state):
    """Find the channel whose turn comes first."""
    size, block, at = state.totals[QUEUE], -1, 0
    if size == 1:
        return state.queue[0]
    if size <= KEYS:
        least, at = _search(state.keys, 0, size)
        return state.queue[place_of(state.keys, at, least)]
    while True:
        least, lanes = _search(state.least, 0, (size + KEYS - 1) // KEYS)
        first = place_of(state.least, lanes, least)
        if first == block:
            return state.queue[place_of(state.keys, at, least)]
        block = first
        state.least[block], at = _search(state.keys, block * KEYS, min(size, (block + 1) * KEYS))
