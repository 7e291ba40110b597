# SPDX-License-Identifier: Apache-2.0
"""Max-min fair rates, brought up to date where messages have come and gone.

Every message is held back by one full channel, its neck: it goes at the rate of that, its level, and nothing that
crosses the neck goes faster (Bertsekas and Gallager, Data Networks, section 6.5.2). After a change, full channels of
which a message came, left or changed its rate have their turns, that with the lowest level first. Either it is full at
a lower rate than before: then it holds back all that go faster. Or at a higher one: then those that it held back go
faster. In both cases other full channels have their turns at higher levels.

What channels that are not full carry is only added up. When no turn is left, those that carry too much become full at
the rate at which they are so, and so on until there is none. As levels settle from the lowest one up, this ends, with
the only rates that are fair.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import lowest
from flitlab.sim.engines.compiled.flow.state import (
    BLOCK,
    CAPACITY,
    COUNT,
    HELD,
    INSTANTS,
    LEVEL,
    LOAD,
    MEMBERS,
    NECK,
    QUEUE,
    QUEUED,
    STALE,
    SUSPECT,
    SUSPECTS,
    TOUCHED,
    TOUCHED_AT,
    USED,
    WEIGHT,
)
from flitlab.sim.engines.compiled.flow.turns import cancel_turn, next_turn, set_turn, turn_of
from flitlab.sim.engines.compiled.lanes import RATES, faster_than, taken_at

TIE = 1e-12
"""Two rates that differ by no more than this part are the same, added up in another order."""

_ALMOST = 1.0 - 1e-9  # of what is added up in another order, and again and again


@inline
def _changed(state, channel, rate):
    """Note that a channel, which is full or has its turn, has changed for rates above ``rate``, in flits a tick."""
    state.channel[channel, STALE] = 1
    if state.channel[channel, QUEUED] < 0 or rate < turn_of(state, channel):
        set_turn(state, channel, rate)


@inline
def relieve(state, channel):
    """Note that a channel carries less than before at all rates above some rate below its level."""
    if state.channel[channel, QUEUED] >= 0 or state.level[channel, LEVEL] < np.inf:
        _changed(state, channel, state.level[channel, LEVEL])


@inline
def touch(state, message):
    """Note that the rate of a message may change at this instant."""
    if state.message[message, TOUCHED_AT] != state.totals[INSTANTS]:
        state.message[message, TOUCHED_AT] = state.totals[INSTANTS]
        state.touched[state.totals[TOUCHED]] = message
        state.totals[TOUCHED] += 1


@inline
def _suspect(state, channel):
    """Note that a channel that was not full may carry too much."""
    if not state.channel[channel, SUSPECT]:
        state.channel[channel, SUSPECT] = 1
        state.suspects[state.totals[SUSPECTS]] = channel
        state.totals[SUSPECTS] += 1


@inline
def _reconsider(state, channel):
    """Let a full channel, which carries more or less than before, have its turn when it may be full again.

    That is not before it would be if only those whose neck it is had to make room: at lower rates, others have to, too.
    """
    capacity, level, held = state.level[channel, CAPACITY], state.level[channel, LEVEL], state.level[channel, HELD]
    excess = state.level[channel, LOAD] - capacity
    state.channel[channel, STALE] = 1
    if excess <= 0.0:
        set_turn(state, channel, level)
    else:
        at_first = capacity / state.level[channel, WEIGHT]
        set_turn(state, channel, max(at_first, level - excess / held if held > 0.0 else 0.0) * _ALMOST)


@inline
def _hold(state, channel, message, rate):
    """Let a channel that is full at a rate hold a message back to it."""
    old, neck = state.rate[message], state.message[message, NECK]
    touch(state, message)
    state.rate[message] = rate
    state.message[message, NECK] = channel
    block = state.message[message, BLOCK]
    for entry in range(block, block + state.message[message, COUNT]):
        other = state.entry_channel[entry]
        share = state.entry_share[entry]
        load = state.level[other, LOAD] + share * (rate - old)
        state.level[other, LOAD] = load
        if other == neck:
            state.level[other, HELD] -= share
        if other == channel:
            state.level[other, HELD] += share
        elif state.level[other, LEVEL] < np.inf:
            _reconsider(state, other)
        elif state.channel[other, QUEUED] >= 0:
            _changed(state, other, old if rate > old else np.inf)
        elif load > state.level[other, CAPACITY] * _ALMOST and state.level[other, WEIGHT] > state.loose[other]:
            _suspect(state, other)


@inline
def set_out(state, message, channel):
    """Let a message, which has joined its channels, go as fast as others that its host's channel holds back."""
    state.level[channel, LEVEL] = min(state.level[channel, LEVEL], state.level[channel, CAPACITY])
    _hold(state, channel, message, state.level[channel, LEVEL])
    _reconsider(state, channel)


@inline
def resize(state, channel, capacity, loose):
    """Give a channel another capacity; loose: the weight with which it is then never full."""
    state.level[channel, CAPACITY] = capacity
    state.loose[channel] = loose
    if state.level[channel, LEVEL] < np.inf:
        _reconsider(state, channel)
    elif state.channel[channel, USED] > 0:
        _suspect(state, channel)


@inline
def _blocks(state, channel):
    """Find where the blocks of a channel's members begin and end."""
    first, used = np.int64(state.channel[channel, MEMBERS]), np.int64(state.channel[channel, USED])
    return first, first + (used + (RATES - 1) & -RATES)


@inline
def _rise(state, channel, full):
    """Let those that a channel has held back go faster, up to the rate at which it is full."""
    level = state.level[channel, LEVEL]
    state.level[channel, LEVEL] = full
    if full == np.inf:
        state.level[channel, HELD] = 0.0  # but for rounding
    first, end = _blocks(state, channel)
    for block in range(first, end, RATES):
        fast = np.uint64(faster_than(state.rate, state.member, block, level * (1.0 - TIE)))
        while fast != 0:
            message = state.member[block + lowest(fast)]
            fast &= fast - np.uint64(1)
            if state.message[message, NECK] == channel:
                _hold(state, channel, message, full)
            else:  # another full channel, with the same level, holds it back
                _changed(state, channel, level)


@inline
def _stop(state, channel, rate):
    """Let a channel, which is full at a rate, hold back all that go faster."""
    state.level[channel, LEVEL] = rate
    first, end = _blocks(state, channel)
    for block in range(first, end, RATES):
        fast = np.uint64(faster_than(state.rate, state.member, block, rate))
        while fast != 0:
            _hold(state, channel, state.member[block + lowest(fast)], rate)
            fast &= fast - np.uint64(1)


@inline
def _full_at(state, channel, rate):
    """Find the rate at which a channel is full if those that it holds back rise on, no less than ``rate``; or inf."""
    first, end = _blocks(state, channel)
    level = state.level[channel, LEVEL]
    while True:  # Newton's method from below: what is carried grows ever more slowly with the rate
        taken, rising, next_stop = taken_at(state.rate, state.member, state.member_share, first, end, rate, level)
        if rising == 0.0:
            return np.inf
        rate = (state.level[channel, CAPACITY] - taken) / rising
        if rate <= next_stop:
            return rate


@inline
def _is_passed(state, channel, rate):
    """Find whether a member of a channel goes faster than a rate."""
    first, end = _blocks(state, channel)
    fast = 0
    for block in range(first, end, RATES):
        fast |= faster_than(state.rate, state.member, block, rate)
    return fast != 0


@inline
def _turn(state, channel):
    """Do what there is to do in a channel whose turn it is, or find when its turn is."""
    rate, level = turn_of(state, channel), state.level[channel, LEVEL]
    if state.channel[channel, STALE]:
        full = _full_at(state, channel, rate)
        if full > level * (1.0 + TIE) and rate < level:
            set_turn(state, channel, level)
            return
        state.channel[channel, STALE] = 0
        if full > level * (1.0 + TIE):
            cancel_turn(state, channel)
            _rise(state, channel, full)
            return
        if full >= level * (1.0 - TIE):
            full = level if level < np.inf and _is_passed(state, channel, level) else np.inf
        if rate < full < np.inf:
            set_turn(state, channel, full)
            return
        rate = full
    cancel_turn(state, channel)
    if rate < np.inf:
        _stop(state, channel, rate)


@inline
def _examine(state, channel):
    """Let a channel that is not full have its turn if it carries too much."""
    first, end = _blocks(state, channel)
    load, _, _ = taken_at(state.rate, state.member, state.member_share, first, end, np.inf, np.inf)
    state.level[channel, LOAD] = load
    if load > state.level[channel, CAPACITY] * (1.0 + TIE):
        _changed(state, channel, state.level[channel, CAPACITY] / state.level[channel, WEIGHT] * _ALMOST)


@device_function
def share(state):
    """Give every message its fair share again; those whose rate may have changed are in ``state.touched``."""
    while True:
        while state.totals[QUEUE] > 0:
            _turn(state, next_turn(state))
        if state.totals[SUSPECTS] == 0:
            return
        for i in range(state.totals[SUSPECTS]):
            channel = state.suspects[i]
            state.channel[channel, SUSPECT] = 0
            if state.level[channel, LEVEL] == np.inf:
                _examine(state, channel)
        state.totals[SUSPECTS] = 0
