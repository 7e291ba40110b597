# SPDX-License-Identifier: Apache-2.0
"""A priority queue of channels, by the rate at which each has to be processed.

Few channels are queued at a time, so their keys are in an unordered array, and the smallest is found by vector
operations: for dozens of channels this is faster than a tree, whose branches are mispredicted. For every block of keys
there is a lower bound; with hundreds of channels, only blocks that may have the smallest key are searched.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.flow.state import KEYS, Total
from flitlab.sim.engines.compiled.flow.tournament import NO_KEY
from flitlab.sim.engines.compiled.simd import KEYS_PER_VECTOR, index_of, minimum


@inline
def _set_queue_key(state, index, key):
    """Write a key to a position of the queue."""
    state.keys[index] = key
    block = index // KEYS
    state.block_minimum[block] = min(state.block_minimum[block], key)


@inline
def schedule_channel(state, channel, rate):
    """Schedule a channel for when a rate is reached."""
    index = state.channel[channel].queued
    if index < 0:
        index = state.totals[Total.QUEUE]
        state.totals[Total.QUEUE] = index + 1
        state.channel[channel].queued = index
        state.queue[index] = channel
    _set_queue_key(state, index, np.float64(rate).view(np.int64))  # same order as the rates, which are not negative


@inline
def scheduled_rate(state, channel):
    """Return the rate for which a channel is scheduled."""
    return np.int64(state.keys[state.channel[channel].queued]).view(np.float64)


@inline
def cancel_channel(state, channel):
    """Remove a channel from the queue."""
    index, last = state.channel[channel].queued, state.totals[Total.QUEUE] - 1
    moved = state.queue[last]
    state.totals[Total.QUEUE] = last
    state.queue[index] = moved
    state.channel[moved].queued = index
    state.channel[channel].queued = -1
    _set_queue_key(state, index, state.keys[last])
    state.keys[last] = NO_KEY


@inline
def _search(keys, begin, end):
    """Return the smallest key from ``begin`` to ``end`` - 1, and the start of the vector that has it."""
    smallest_key, vector_start = np.int64(NO_KEY), begin
    for vector in range(begin, end, KEYS_PER_VECTOR):
        smallest = minimum(keys, vector)
        if smallest < smallest_key:
            smallest_key, vector_start = smallest, vector
    return smallest_key, vector_start


@inline
def next_channel(state):
    """Return the channel with the lowest scheduled rate."""
    size, block, vector_start = state.totals[Total.QUEUE], -1, 0
    if size == 1:
        return state.queue[0]
    if size <= KEYS:
        smallest_key, vector_start = _search(state.keys, 0, size)
        return state.queue[index_of(state.keys, vector_start, smallest_key)]
    while True:
        smallest_key, vector = _search(state.block_minimum, 0, (size + KEYS - 1) // KEYS)
        first = index_of(state.block_minimum, vector, smallest_key)
        if first == block:
            return state.queue[index_of(state.keys, vector_start, smallest_key)]
        block = first
        state.block_minimum[block], vector_start = _search(state.keys, block * KEYS, min(size, (block + 1) * KEYS))
