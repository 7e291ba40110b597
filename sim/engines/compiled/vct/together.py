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
def _serve_switch(const, state, awake, count, tick):
    """Serve ``count`` outputs, all of one switch, visiting heads by age across them.

    awake: int64, the outputs, ascending.
    """
    cursor = state.cursor
    for k in range(count):
        cursor[k] = 0
        output = awake[k]
        if state.waiting[output] and state.busy[output] > tick:
            wake(state.outputs, output, np.int64(state.busy[output]))
            cursor[k] = LATE
    while True:
        oldest = np.int64(LATE) << 32
        for k in range(count):
            if cursor[k] < state.waiting[awake[k]]:
                oldest = min(oldest, state.rows[awake[k], cursor[k]])
        if oldest >> 32 > tick:
            break
        vc = oldest & 0xFFFFFFFF
        packet = np.int64(state.vc[vc, FRONT])
        blocked_until = np.int64(state.input_busy[vc // const.vcs])
        best, best_vc, most = NOBODY, NOBODY, np.int64(0)
        for k in range(count):
            output = awake[k]
            if cursor[k] >= state.waiting[output] or state.rows[output, cursor[k]] != oldest:
                continue
            cursor[k] += 1
            if blocked_until > tick:
                wake(state.outputs, output, blocked_until)
            elif const.net.ports.out_input[output] == NOBODY:
                best = k
            else:
                next_vc, worth = room_for(const, state, state.wants[output, cursor[k] - 1], tick)
                if next_vc != NOBODY:
                    if worth > most:
                        best, best_vc, most = k, next_vc, worth
                elif worth < LATE:  # then it is the tick in which there may be room
                    wake(state.outputs, output, worth)
        if best == NOBODY:
            continue
        granted = awake[best]
        if state.pool.packet[packet, OUTPUT] == NOBODY:
            here = np.int64(state.vc[vc, SWITCH])
            ports = ports_of(const, state, packet, here)
            while ports:
                withdraw(const, state, const.net.ports.out_base[here] + lowest(ports), oldest)
                ports &= ports - np.uint64(1)
            for k in range(count):  # rows from which it went have moved up by one
                if cursor[k] < LATE and cursor[k] > 0:
                    cursor[k] = first_not_before(state, awake[k], oldest)
        else:
            dequeue(state, granted, cursor[best] - 1)
        cursor[best] = LATE
        grant(const, state, packet, vc, granted, best_vc, tick)
    for k in range(count):
        output = awake[k]
        if cursor[k] < state.waiting[output]:
            wake(state.outputs, output, state.rows[output, cursor[k]] >> 32)


@inner
def serve_together(const, state, outputs, count, tick):
    """Serve the first ``count`` of some outputs, which are ascending and so come switch by switch.

    outputs: int64.
    """
    first = np.int64(0)
    here = np.int64(0)
    while first < count:
        while outputs[first] >= const.net.ports.out_base[here + 1]:
            here += 1
        last = first + 1
        while last < count and outputs[last] < const.net.ports.out_base[here + 1]:
            last += 1
        _serve_switch(const, state, outputs[first:last], last - first, tick)
        first = last
