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
def look_into(s, c, rate):
    """A channel has changed for rates above ``rate``."""
    s.channel[c, STALE] = 1
    rate = max(rate, s.level[c, CAPACITY] / s.level[c, WEIGHT] * (1.0 - 1e-9))  # at this one all are still rising
    if s.channel[c, QUEUED] < 0:
        if s.level[c, LEVEL] == np.inf and s.level[c, WEIGHT] <= s.level[c, LOOSE]:
            return  # the hosts' channels are full earlier
        s.level[c, KEY] = rate
        size = s.totals[QUEUE]
        s.totals[QUEUE] = size + 1
        rise(s.queue, size, c, s.level, KEY, s.channel, QUEUED)
    elif rate < s.level[c, KEY]:
        s.level[c, KEY] = rate
        rise(s.queue, s.channel[c, QUEUED], c, s.level, KEY, s.channel, QUEUED)


@inner
def relieve(s, c):
    """A channel carries less than before at all rates above some rate below its level."""
    if s.channel[c, QUEUED] >= 0:
        s.channel[c, STALE] = 1
    elif s.level[c, LEVEL] < np.inf:
        look_into(s, c, s.level[c, LEVEL])


@inner
def touch(s, m):
    """The rate of a message may change at this instant."""
    if s.message[m, TOUCHED_AT] != s.totals[INSTANTS]:
        s.message[m, TOUCHED_AT] = s.totals[INSTANTS]
        s.touched[s.totals[TOUCHED]] = m
        s.totals[TOUCHED] += 1


@inner
def _full_at(s, c):
    """The rate at which a channel is full if those that it holds back rise on; inf if it never is."""
    first, end = s.channel[c, MEMBERS], s.channel[c, MEMBERS] + s.channel[c, USED]
    rate, level = s.level[c, KEY], s.level[c, LEVEL]
    while True:  # Newton's method from below: what is carried grows ever more slowly with the rate
        taken, rising, next_stop = 0.0, 0.0, np.inf
        for i in range(first, end):
            speed = s.parts[i, SPEED] if s.parts[i, SPEED] < level else np.inf
            if speed <= rate:
                taken += s.parts[i, SHARE] * speed
            else:
                rising += s.parts[i, SHARE]
                next_stop = min(next_stop, speed)
        if rising == 0.0:
            return np.inf
        rate = (s.level[c, CAPACITY] - taken) / rising
        if rate <= next_stop:
            return rate


@inner
def _fastest(s, c):
    fastest, first = 0.0, s.channel[c, MEMBERS]
    for i in range(first, first + s.channel[c, USED]):
        fastest = max(fastest, s.parts[i, SPEED])
    return fastest


@inner
def _plan(s, c):
    """The rate at which something happens in a channel, inf if nothing does, and whether it then lets go."""
    level, full = s.level[c, LEVEL], _full_at(s, c)
    if level == np.inf or full < level * (1.0 - TIE):
        return full, 0
    if full > level * (1.0 + TIE):
        return level, 1
    return (level, 0) if _fastest(s, c) > level else (np.inf, 0)


@inner
def _let_go(s, c, rate):
    """A channel holds nobody back any more."""
    s.level[c, LEVEL] = np.inf
    look_into(s, c, rate)
    first = s.channel[c, MEMBERS]
    for i in range(first, first + s.channel[c, USED]):
        m = s.members[i, MESSAGE]
        if s.parts[i, SPEED] == rate and s.message[m, NECK] == c:
            touch(s, m)
            s.message[m, NECK] = -1
            s.amounts[m, RATE] = np.inf
            for e in range(s.message[m, BLOCK], s.message[m, BLOCK] + s.message[m, COUNT]):
                other = s.entries[e, CHANNEL]
                s.parts[s.channel[other, MEMBERS] + s.entries[e, AT], SPEED] = np.inf
                look_into(s, other, rate)


@inner
def _stop(s, c, rate):
    """A channel is full at a rate: nobody in it goes faster."""
    s.level[c, LEVEL] = rate
    first = s.channel[c, MEMBERS]
    for i in range(first, first + s.channel[c, USED]):
        if s.parts[i, SPEED] > rate:
            m = s.members[i, MESSAGE]
            touch(s, m)
            s.message[m, NECK] = c
            s.amounts[m, RATE] = rate
            for e in range(s.message[m, BLOCK], s.message[m, BLOCK] + s.message[m, COUNT]):
                other = s.entries[e, CHANNEL]
                s.parts[s.channel[other, MEMBERS] + s.entries[e, AT], SPEED] = rate
                if other != c:
                    relieve(s, other)


@routine
def share(s):
    """Give every message its fair share again; those whose rate may have changed are in ``touched``."""
    while s.totals[QUEUE] > 0:
        c, size = s.queue[0], s.totals[QUEUE]
        if s.channel[c, STALE]:
            s.channel[c, STALE] = 0
            s.level[c, KEY], s.channel[c, LETS_GO] = _plan(s, c)
            if s.level[c, KEY] < np.inf:
                sink(s.queue, size, 0, c, s.level, KEY, s.channel, QUEUED)
                continue
        s.totals[QUEUE] = size - 1
        take_first(s.queue, size, s.level, KEY, s.channel, QUEUED)
        rate = s.level[c, KEY]
        if rate < np.inf and s.channel[c, LETS_GO]:
            _let_go(s, c, rate)
        elif rate < np.inf:
            _stop(s, c, rate)
