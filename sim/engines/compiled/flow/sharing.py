# SPDX-License-Identifier: Apache-2.0
"""Max-min fair rates, updated where messages start or end.

Every message has a bottleneck, one full channel that limits it: its rate is the channel's level, and no message is
faster on that channel (Bertsekas and Gallager, Data Networks, section 6.5.2). After a change, the full channels with a
message that started, ended or changed its rate are processed in order of level. A channel that is full at a lower rate
than before limits all faster messages; one that is full at a higher rate raises those that it limited. Both schedule
other full channels, at higher levels.

For channels that are not full only the load is added up. When the queue is empty, overloaded ones become full at the
rate at which they are, until there are none. Levels settle from the lowest up, so this ends, with the unique fair
rates.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import lowest
from flitlab.sim.engines.compiled.flow.rate_queue import cancel_channel, next_channel, schedule_channel, scheduled_rate
from flitlab.sim.engines.compiled.flow.state import Total
from flitlab.sim.engines.compiled.simd import RATES_PER_VECTOR, faster_than, load_at_rate

RATE_TOLERANCE = 1e-12
"""Relative difference up to which two rates are equal: they may be sums in different orders."""

_ROUNDING = 1.0 - 1e-9  # tolerance of repeated sums in different orders


@inline
def _note_change(state, channel, rate):
    """Schedule a channel, which is full or queued, that has changed for rates above ``rate``, in flits/tick."""
    state.channel[channel].stale = 1
    if state.channel[channel].queued < 0 or rate < scheduled_rate(state, channel):
        schedule_channel(state, channel, rate)


@inline
def release_load(state, channel):
    """Record that a channel has less load at all rates above some rate below its level."""
    if state.channel[channel].queued >= 0 or state.channel[channel].level < np.inf:
        _note_change(state, channel, state.channel[channel].level)


@inline
def touch(state, message):
    """Record that the rate of a message may change at this instant."""
    if state.message[message].touched_at != state.totals[Total.INSTANTS]:
        state.message[message].touched_at = state.totals[Total.INSTANTS]
        state.touched[state.totals[Total.TOUCHED]] = message
        state.totals[Total.TOUCHED] += 1


@inline
def _mark_suspect(state, channel):
    """Record that a channel that was not full may be overloaded."""
    if not state.channel[channel].is_suspect:
        state.channel[channel].is_suspect = 1
        state.suspects[state.totals[Total.SUSPECTS]] = channel
        state.totals[Total.SUSPECTS] += 1


@inline
def _reschedule(state, channel):
    """Schedule a full channel, whose load has changed, for the rate at which it may be full again.

    The rate is a lower bound: it assumes that only messages limited by this channel adapt.
    """
    capacity, level, limited_share = (
        state.channel[channel].capacity,
        state.channel[channel].level,
        state.channel[channel].limited_share,
    )
    excess = state.channel[channel].load - capacity
    state.channel[channel].stale = 1
    if excess <= 0.0:
        schedule_channel(state, channel, level)
    else:
        first_rate = capacity / state.channel[channel].total_share
        schedule_channel(
            state, channel, max(first_rate, level - excess / limited_share if limited_share > 0.0 else 0.0) * _ROUNDING
        )


@inline
def _limit_message(state, channel, message, rate):
    """Limit a message to the rate at which a channel is full."""
    old, bottleneck = state.rate[message], state.message[message].bottleneck
    touch(state, message)
    state.rate[message] = rate
    state.message[message].bottleneck = channel
    block = state.message[message].block
    for entry in range(block, block + state.message[message].count):
        other = state.entry_channel[entry]
        share = state.entry_share[entry]
        load = state.channel[other].load + share * (rate - old)
        state.channel[other].load = load
        if other == bottleneck:
            state.channel[other].limited_share -= share
        if other == channel:
            state.channel[other].limited_share += share
        elif state.channel[other].level < np.inf:
            _reschedule(state, other)
        elif state.channel[other].queued >= 0:
            _note_change(state, other, old if rate > old else np.inf)
        elif (
            load > state.channel[other].capacity * _ROUNDING
            and state.channel[other].total_share > state.never_full_share[other]
        ):
            _mark_suspect(state, other)


@inline
def start_flow(state, message, channel):
    """Start a message, which has joined its channels, at the rate of others that its host's channel limits."""
    state.channel[channel].level = min(state.channel[channel].level, state.channel[channel].capacity)
    _limit_message(state, channel, message, state.channel[channel].level)
    _reschedule(state, channel)


@inline
def resize(state, channel, capacity, never_full_share):
    """Change the capacity of a channel.

    Parameters
    ----------
    channel: int64.
    capacity: float64, flits/tick.
    never_full_share: float64, total share up to which it never is full.
    """
    state.channel[channel].capacity = capacity
    state.never_full_share[channel] = never_full_share
    if state.channel[channel].level < np.inf:
        _reschedule(state, channel)
    elif state.channel[channel].used > 0:
        _mark_suspect(state, channel)


@inline
def _blocks(state, channel):
    """Return begin and end of the blocks of a channel's members."""
    first, used = np.int64(state.channel[channel].members), np.int64(state.channel[channel].used)
    return first, first + (used + (RATES_PER_VECTOR - 1) & -RATES_PER_VECTOR)


@inline
def _raise_members(state, channel, full):
    """Raise the messages that a channel has limited, up to the rate at which it is full."""
    level = state.channel[channel].level
    state.channel[channel].level = full
    if full == np.inf:
        state.channel[channel].limited_share = 0.0  # except for rounding
    first, end = _blocks(state, channel)
    for block in range(first, end, RATES_PER_VECTOR):
        fast = np.uint64(faster_than(state.rate, state.member, block, level * (1.0 - RATE_TOLERANCE)))
        while fast != 0:
            message = state.member[block + lowest(fast)]
            fast &= fast - np.uint64(1)
            if state.message[message].bottleneck == channel:
                _limit_message(state, channel, message, full)
            else:  # another full channel, with the same level, limits it
                _note_change(state, channel, level)


@inline
def _limit_faster(state, channel, rate):
    """Let a channel, which is full at a rate, limit all faster messages."""
    state.channel[channel].level = rate
    first, end = _blocks(state, channel)
    for block in range(first, end, RATES_PER_VECTOR):
        fast = np.uint64(faster_than(state.rate, state.member, block, rate))
        while fast != 0:
            _limit_message(state, channel, state.member[block + lowest(fast)], rate)
            fast &= fast - np.uint64(1)


@inline
def _saturation_rate(state, channel, rate):
    """Return the rate, at least ``rate``, at which a channel is full if those that it limits rise; or inf."""
    first, end = _blocks(state, channel)
    level = state.channel[channel].level
    while True:  # Newton's method from below: the load is concave in the rate
        fixed_load, rising_share, next_rate = load_at_rate(
            state.rate, state.member, state.member_share, first, end, rate, level
        )
        if rising_share == 0.0:
            return np.inf
        rate = (state.channel[channel].capacity - fixed_load) / rising_share
        if rate <= next_rate:
            return rate


@inline
def _has_faster_member(state, channel, rate):
    """Tell whether a member of a channel is faster than a rate."""
    first, end = _blocks(state, channel)
    fast = 0
    for block in range(first, end, RATES_PER_VECTOR):
        fast |= faster_than(state.rate, state.member, block, rate)
    return fast != 0


@inline
def _process_channel(state, channel):
    """Process the channel with the lowest scheduled rate, or reschedule it."""
    rate, level = scheduled_rate(state, channel), state.channel[channel].level
    if state.channel[channel].stale:
        full = _saturation_rate(state, channel, rate)
        if full > level * (1.0 + RATE_TOLERANCE) and rate < level:
            schedule_channel(state, channel, level)
            return
        state.channel[channel].stale = 0
        if full > level * (1.0 + RATE_TOLERANCE):
            cancel_channel(state, channel)
            _raise_members(state, channel, full)
            return
        if full >= level * (1.0 - RATE_TOLERANCE):
            full = level if level < np.inf and _has_faster_member(state, channel, level) else np.inf
        if rate < full < np.inf:
            schedule_channel(state, channel, full)
            return
        rate = full
    cancel_channel(state, channel)
    if rate < np.inf:
        _limit_faster(state, channel, rate)


@inline
def _check_suspect(state, channel):
    """Schedule a channel that is not full if it is overloaded."""
    first, end = _blocks(state, channel)
    load, _, _ = load_at_rate(state.rate, state.member, state.member_share, first, end, np.inf, np.inf)
    state.channel[channel].load = load
    if load > state.channel[channel].capacity * (1.0 + RATE_TOLERANCE):
        _note_change(state, channel, state.channel[channel].capacity / state.channel[channel].total_share * _ROUNDING)


@device_function
def update_shares(state):
    """Update the fair rates of all messages; those that may have changed are in ``state.touched``."""
    while True:
        while state.totals[Total.QUEUE] > 0:
            _process_channel(state, next_channel(state))
        if state.totals[Total.SUSPECTS] == 0:
            return
        for i in range(state.totals[Total.SUSPECTS]):
            channel = state.suspects[i]
            state.channel[channel].is_suspect = 0
            if state.channel[channel].level == np.inf:
                _check_suspect(state, channel)
        state.totals[Total.SUSPECTS] = 0
