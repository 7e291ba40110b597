"""Allocation where outputs are not independent.

Heads may wait for several of them (adaptive routing), or an input may send one packet at a time.
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest
from flitlab.sim.engines.compiled.records import LATE, NOBODY, OUTPUT
from flitlab.sim.engines.compiled.vct.allocation import grant
from flitlab.sim.engines.compiled.vct.rows import dequeue, first_not_before, ports_of, room_for, withdraw
from flitlab.sim.engines.compiled.vct.state import FRONT, SWITCH
from flitlab.sim.engines.compiled.wheel import wake


@inner
def _serve_switch(c, s, awake, count, tick):
    """Serve ``count`` outputs, all of one switch, visiting heads by age across them."""
    cursor = s.cursor
    for k in range(count):
        cursor[k] = 0
        output = awake[k]
        if s.waiting[output] and s.busy[output] > tick:
            wake(s.outputs, output, np.int64(s.busy[output]))
            cursor[k] = LATE
    while True:
        oldest = np.int64(LATE) << 32
        for k in range(count):
            if cursor[k] < s.waiting[awake[k]]:
                oldest = min(oldest, s.rows[awake[k], cursor[k]])
        if oldest >> 32 > tick:
            break
        v = oldest & 0xFFFFFFFF
        p = np.int64(s.vc[v, FRONT])
        blocked_until = np.int64(s.input_busy[v // c.vcs])
        best, best_vc, most = NOBODY, NOBODY, np.int64(0)
        for k in range(count):
            output = awake[k]
            if cursor[k] >= s.waiting[output] or s.rows[output, cursor[k]] != oldest:
                continue
            cursor[k] += 1
            if blocked_until > tick:
                wake(s.outputs, output, blocked_until)
            elif c.net.ports.out_input[output] == NOBODY:
                best = k
            else:
                next_vc, worth = room_for(c, s, s.wants[output, cursor[k] - 1], tick)
                if next_vc != NOBODY:
                    if worth > most:
                        best, best_vc, most = k, next_vc, worth
                elif worth < LATE:  # then it is the tick in which there may be room
                    wake(s.outputs, output, worth)
        if best == NOBODY:
            continue
        granted = awake[best]
        if s.pool.packet[p, OUTPUT] == NOBODY:
            here = np.int64(s.vc[v, SWITCH])
            ports = ports_of(c, s, p, here)
            while ports:
                withdraw(c, s, c.net.ports.out_base[here] + lowest(ports), oldest)
                ports &= ports - np.uint64(1)
            for k in range(count):  # rows from which it went have moved up by one
                if cursor[k] < LATE and cursor[k] > 0:
                    cursor[k] = first_not_before(s, awake[k], oldest)
        else:
            dequeue(s, granted, cursor[best] - 1)
        cursor[best] = LATE
        grant(c, s, p, v, granted, best_vc, tick)
    for k in range(count):
        output = awake[k]
        if cursor[k] < s.waiting[output]:
            wake(s.outputs, output, s.rows[output, cursor[k]] >> 32)


@inner
def serve_together(c, s, outputs, count, tick):
    """Serve ``count`` outputs, ascending and so switch by switch."""
    first = np.int64(0)
    here = np.int64(0)
    while first < count:
        while outputs[first] >= c.net.ports.out_base[here + 1]:
            here += 1
        last = first + 1
        while last < count and outputs[last] < c.net.ports.out_base[here + 1]:
            last += 1
        _serve_switch(c, s, outputs[first:last], last - first, tick)
        first = last
