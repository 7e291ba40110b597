"""Max-min fair rates, brought up to date where messages have come and gone.

The rates are those of progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): all rise together
from 0, and where a channel is full, those that cross it rise no more. After a change this is repeated only where it
goes differently from last time. In order of the rate that has been reached, a channel is looked into if one of its
messages came, left or stopped at another rate below this one. Either it becomes full earlier than last time: then it
stops all that still rise, also those that last time rose further. Or it is not full where it was last time: then it
lets go of those that it had stopped. Both change other channels at higher rates only, so none is done twice.
"""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.sim.engines.compiled.flow.heap import rise, sink, take_first
from flitlab.sim.engines.compiled.flow.state import (
    AT,
    BLOCK,
    CAPACITY,
    CHANNEL,
    COUNT,
    INSTANTS,
    KEY,
    LETS_GO,
    LEVEL,
    LOOSE,
    MEMBERS,
    MESSAGE,
    NECK,
    QUEUE,
    QUEUED,
    RATE,
    SHARE,
    SPEED,
    STALE,
    TOUCHED,
    TOUCHED_AT,
    USED,
    WEIGHT,
)

TIE = 1e-12
"""Two rates that differ by no more than this part are the same, added up in another order."""


@inner
def look_into(state, channel, rate):
    """Note that a channel has changed for rates above ``rate``, in flits a tick."""
    state.channel[channel, STALE] = 1
    rising = state.level[channel, CAPACITY] / state.level[channel, WEIGHT] * (1.0 - 1e-9)  # all are, at this rate
    rate = max(rate, rising)
    if state.channel[channel, QUEUED] < 0:
        if state.level[channel, LEVEL] == np.inf and state.level[channel, WEIGHT] <= state.level[channel, LOOSE]:
            return  # the hosts' channels are full earlier
        state.level[channel, KEY] = rate
        size = state.totals[QUEUE]
        state.totals[QUEUE] = size + 1
        rise(state.queue, size, channel, state.level, KEY, state.channel, QUEUED)
    elif rate < state.level[channel, KEY]:
        state.level[channel, KEY] = rate
        rise(state.queue, state.channel[channel, QUEUED], channel, state.level, KEY, state.channel, QUEUED)


@inner
def relieve(state, channel):
    """Note that a channel carries less than before at all rates above some rate below its level."""
    if state.channel[channel, QUEUED] >= 0:
        state.channel[channel, STALE] = 1
    elif state.level[channel, LEVEL] < np.inf:
        look_into(state, channel, state.level[channel, LEVEL])


@inner
def touch(state, message):
    """Note that the rate of a message may change at this instant."""
    if state.message[message, TOUCHED_AT] != state.totals[INSTANTS]:
        state.message[message, TOUCHED_AT] = state.totals[INSTANTS]
        state.touched[state.totals[TOUCHED]] = message
        state.totals[TOUCHED] += 1


@inner
def _full_at(state, channel):
    """Find the rate at which a channel is full if those that it holds back rise on; inf if it never is."""
    first, end = state.channel[channel, MEMBERS], state.channel[channel, MEMBERS] + state.channel[channel, USED]
    rate, level = state.level[channel, KEY], state.level[channel, LEVEL]
    while True:  # Newton's method from below: what is carried grows ever more slowly with the rate
        taken, rising, next_stop = 0.0, 0.0, np.inf
        for i in range(first, end):
            speed = state.parts[i, SPEED] if state.parts[i, SPEED] < level else np.inf
            if speed <= rate:
                taken += state.parts[i, SHARE] * speed
            else:
                rising += state.parts[i, SHARE]
                next_stop = min(next_stop, speed)
        if rising == 0.0:
            return np.inf
        rate = (state.level[channel, CAPACITY] - taken) / rising
        if rate <= next_stop:
            return rate


@inner
def _fastest(state, channel):
    """Find the highest rate of a channel's members."""
    fastest, first = 0.0, state.channel[channel, MEMBERS]
    for i in range(first, first + state.channel[channel, USED]):
        fastest = max(fastest, state.parts[i, SPEED])
    return fastest


@inner
def _plan(state, channel):
    """Find the rate at which something happens in a channel, inf if nothing does, and whether it then lets go."""
    level, full = state.level[channel, LEVEL], _full_at(state, channel)
    if level == np.inf or full < level * (1.0 - TIE):
        return full, 0
    if full > level * (1.0 + TIE):
        return level, 1
    return (level, 0) if _fastest(state, channel) > level else (np.inf, 0)


@inner
def _let_go(state, channel, rate):
    """Let a channel hold nobody back any more: those that it held rise on from ``rate``."""
    state.level[channel, LEVEL] = np.inf
    look_into(state, channel, rate)
    first = state.channel[channel, MEMBERS]
    for i in range(first, first + state.channel[channel, USED]):
        message = state.members[i, MESSAGE]
        if state.parts[i, SPEED] == rate and state.message[message, NECK] == channel:
            touch(state, message)
            state.message[message, NECK] = -1
            state.amounts[message, RATE] = np.inf
            block = state.message[message, BLOCK]
            for entry in range(block, block + state.message[message, COUNT]):
                other = state.entries[entry, CHANNEL]
                state.parts[state.channel[other, MEMBERS] + state.entries[entry, AT], SPEED] = np.inf
                look_into(state, other, rate)


@inner
def _stop(state, channel, rate):
    """Let a channel, which is full at a rate, stop all its members that go faster."""
    state.level[channel, LEVEL] = rate
    first = state.channel[channel, MEMBERS]
    for i in range(first, first + state.channel[channel, USED]):
        if state.parts[i, SPEED] > rate:
            message = state.members[i, MESSAGE]
            touch(state, message)
            state.message[message, NECK] = channel
            state.amounts[message, RATE] = rate
            block = state.message[message, BLOCK]
            for entry in range(block, block + state.message[message, COUNT]):
                other = state.entries[entry, CHANNEL]
                state.parts[state.channel[other, MEMBERS] + state.entries[entry, AT], SPEED] = rate
                if other != channel:
                    relieve(state, other)


@routine
def share(state):
    """Give every message its fair share again; those whose rate may have changed are in ``state.touched``."""
    while state.totals[QUEUE] > 0:
        channel, size = state.queue[0], state.totals[QUEUE]
        if state.channel[channel, STALE]:
            state.channel[channel, STALE] = 0
            state.level[channel, KEY], state.channel[channel, LETS_GO] = _plan(state, channel)
            if state.level[channel, KEY] < np.inf:
                sink(state.queue, size, 0, channel, state.level, KEY, state.channel, QUEUED)
                continue
        state.totals[QUEUE] = size - 1
        take_first(state.queue, size, state.level, KEY, state.channel, QUEUED)
        rate = state.level[channel, KEY]
        if rate < np.inf and state.channel[channel, LETS_GO]:
            _let_go(state, channel, rate)
        elif rate < np.inf:
            _stop(state, channel, rate)
