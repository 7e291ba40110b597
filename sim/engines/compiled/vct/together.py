# SPDX-License-Identifier: Apache-2.0
"""Allocation where outputs are not independent.

Heads may wait for several of them (adaptive routing), or an input may send one packet at a time.
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.polarized import detour
from flitlab.models.rules.tables import POLARIZED
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, seldom
from flitlab.sim.engines.compiled.records import LATE, NOBODY
from flitlab.sim.engines.compiled.vct.allocation import ask_for_heads, grant
from flitlab.sim.engines.compiled.vct.room import used_behind, wait_for_room
from flitlab.sim.engines.compiled.vct.rows import (
    channel_of,
    dequeue,
    eligible_from,
    entry_of,
    first_not_before,
    key_at,
    ports_of,
    precedes,
    room_for,
    vcs_in,
    want_at,
    withdraw,
)
from flitlab.sim.engines.compiled.wheel import wake


@inner
def _first_eligible(const, state, output, place, tick):
    """Find the first place from ``place`` on in an output's row whose head is eligible; it is woken for the others."""
    while place < state.rows[output].waiting:
        eligible = eligible_from(const, state, key_at(const, state, output, place))
        if eligible <= tick:
            break
        wake(state.outputs, output, eligible)
        place += 1
    return place


@inner
def _used(const, state, output, tick):
    """Count the credit in use on a channel, in flits: once a tick, but for what is granted in it."""
    if state.used[output, 1] != tick:
        state.used[output, 0], state.used[output, 1] = used_behind(const, state, output), tick
    return state.used[output, 0]


@inner
def _cheapest(const, state, packet, here, tick):
    """Find the output of least cost to a polarized packet (ties: the lowest), of those that it may take at a switch.

    The cost is in flits: the credit in use on the channel, and what its detour is put back by.
    """
    record = state.pool.packet[packet]
    target = np.int64(const.net.host_switch[record.destination])
    origin, flits = np.int64(record.way), np.int64(record.flits)
    ports, base = ports_of(const, state, packet, here), const.net.ports.out_base[here]
    cheapest, least = NOBODY, np.int64(0)
    while ports:
        output = base + lowest(ports)
        ports &= ports - np.uint64(1)
        there = np.int64(const.routes.dst[channel_of(state, output)])
        cost = _used(const, state, output, tick) + detour(const.routes, origin, target, here, there, flits)
        if cheapest == NOBODY or cost < least:
            cheapest, least = output, cost
    return cheapest


@inner
def _serve_switch(const, state, awake, count, tick):
    """Serve ``count`` outputs, all of one switch, visiting heads across them in the order in which they are served.

    awake: uint32, the outputs, ascending.
    """
    cursor = state.cursor
    for k in range(count):
        cursor[k] = 0
        output = np.int64(awake[k])
        if state.rows[output].busy > tick:
            cursor[k] = LATE
    while True:
        oldest = np.int64(LATE) << 32
        for k in range(count):
            if const.oldest_first:
                cursor[k] = _first_eligible(const, state, np.int64(awake[k]), cursor[k], tick)
            if cursor[k] < state.rows[awake[k]].waiting:
                key = key_at(const, state, np.int64(awake[k]), cursor[k])
                oldest = key if precedes(const, state, key, oldest) else oldest
        if oldest >> 32 > tick:
            break
        vc = oldest & 0xFFFFFFFF
        packet = np.int64(state.vc[vc].front)
        blocked_until = np.int64(state.input_busy[vc // const.vcs])
        best, best_vc, most = NOBODY, NOBODY, np.int64(0)
        wanted = NOBODY
        if const.routes.form == POLARIZED and state.pool.packet[packet].output == NOBODY:
            wanted = _cheapest(const, state, packet, np.int64(state.vc[vc].switch), tick)
        for k in range(count):
            output = np.int64(awake[k])
            if cursor[k] >= state.rows[output].waiting or key_at(const, state, output, cursor[k]) != oldest:
                continue
            cursor[k] += 1
            if wanted != NOBODY:
                wake(state.outputs, output, tick + 1)  # what an output costs changes with every grant
            if wanted != NOBODY and output != wanted:
                continue
            if blocked_until > tick:
                wake(state.outputs, output, blocked_until)
            elif entry_of(state, output) == NOBODY:
                best = k
            else:
                next_vc, worth = room_for(const, state, output, want_at(const, state, output, cursor[k] - 1))
                if next_vc != NOBODY:
                    if worth > most:
                        best, best_vc, most = k, next_vc, worth
                    continue
                low, high = vcs_in(want_at(const, state, output, cursor[k] - 1))
                wait_for_room(const, state, output, low, high)
        if best == NOBODY:
            continue
        granted = np.int64(awake[best])
        if state.pool.packet[packet].output == NOBODY:
            here = np.int64(state.vc[vc].switch)
            ports = ports_of(const, state, packet, here)
            while ports:
                withdraw(const, state, const.net.ports.out_base[here] + lowest(ports), oldest)
                ports &= ports - np.uint64(1)
            for k in range(count):  # rows from which it went have moved up by one
                if cursor[k] < LATE and cursor[k] > 0:
                    cursor[k] = first_not_before(const, state, np.int64(awake[k]), oldest)
        else:
            dequeue(const, state, granted, cursor[best] - 1)
        cursor[best] = LATE
        if wanted != NOBODY:
            state.used[granted, 0] += np.int64(state.pool.packet[packet].flits)
        grant(const, state, packet, vc, granted, best_vc, tick)
    for k in range(count):
        output = np.int64(awake[k])
        if cursor[k] < state.rows[output].waiting:
            wake(state.outputs, output, key_at(const, state, output, cursor[k]) >> 32)


@inner
def serve_together(const, state, outputs, count, tick):
    """Serve the first ``count`` of some outputs, which are ascending and so come switch by switch.

    outputs: uint32.
    """
    first = np.int64(0)
    here = np.int64(0)
    asked = np.int64(0)
    while first < count:
        if seldom(first >= asked and count - first > FEW):
            asked = min(count, first + AT_ONCE)
            ask_for_heads(const, state, outputs[first:asked], tick)
        while outputs[first] >= const.net.ports.out_base[here + 1]:
            here += 1
        last = first + 1
        while last < count and outputs[last] < const.net.ports.out_base[here + 1]:
            last += 1
        _serve_switch(const, state, outputs[first:last], last - first, tick)
        first = last
