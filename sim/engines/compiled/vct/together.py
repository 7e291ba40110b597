# SPDX-License-Identifier: Apache-2.0
"""Allocation where outputs are not independent.

Heads may wait for several of them (adaptive routing), or an input may send one packet at a time.
"""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn, waits_for_drawn
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.rules.polarized import detour
from flitlab.models.rules.route import route_word
from flitlab.models.rules.tables import ADAPTIVE, POLARIZED
from flitlab.models.rules.vc import is_reserved
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, seldom
from flitlab.sim.engines.compiled.records import LATE, NEVER, NOBODY
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
from flitlab.sim.engines.compiled.vct.state import COST, VC_OFFERED
from flitlab.sim.engines.compiled.wheel import wake

_ONE = np.uint64(1)


@inline
def _first_eligible(const, state, output, place, tick):
    """Find the first place from ``place`` on in an output's row whose head is eligible; it is woken for the others."""
    while place < state.rows[output].waiting:
        eligible = eligible_from(const, state, key_at(const, state, output, place))
        if eligible <= tick:
            break
        wake(state.outputs, output, eligible)
        place += 1
    return place


@inline
def _used(const, state, output, tick):
    """Count the credit in use on a channel, in flits: once a tick, but for what is granted in it."""
    if state.used[output, 1] != tick:
        state.used[output, 0], state.used[output, 1] = used_behind(const, state, output), tick
    return state.used[output, 0]


@inline
def _word(const, state, packet):
    """Make the draw that belongs to the decision of a packet at the switch where it is."""
    record = state.pool.packet[packet]
    return route_word(const.net.seed, np.int64(record.source), np.int64(record.sequence), np.int64(record.hop))


@inline
def _cheapest(const, state, packet, here, tick):
    """Find the output of least cost to a polarized packet (ties are drawn), of those that it may take at a switch.

    The cost is in flits: the credit in use on the channel, and what its detour is put back by.
    """
    record = state.pool.packet[packet]
    target = np.int64(const.net.host_switch[record.destination])
    origin, flits = np.int64(record.way), np.int64(record.flits)
    ports, base = ports_of(const, state, packet, here), np.int64(const.net.ports.out_base[here])
    least, tied = NEVER, np.uint64(0)
    while ports:
        port = lowest(ports)
        ports &= ports - _ONE
        there = np.int64(const.routes.dst[channel_of(state, base + port)])
        cost = _used(const, state, base + port, tick) + detour(const.routes, origin, target, here, there, flits)
        if cost < least:
            least, tied = cost, np.uint64(0)
        if cost == least:
            tied |= _ONE << np.uint64(port)
    if popcount(tied) == 1:
        return base + lowest(tied)
    return base + drawn_tie(tied, _word(const, state, packet))


@inline
def _offer(const, state, place, output, next_vc, worth, tick):
    """Note that an output that is served has room for the head that is visited, in a VC, and at which cost.

    place: of the output among those that are served. worth: appeal of the VC.
    """
    state.offer[place, VC_OFFERED] = next_vc
    last_resort = const.resorts > 0 and is_reserved(worth)
    state.offer[place, COST] = channel_cost(_used(const, state, output, tick), last_resort)


@inline
def _defer(const, state, awake, offers, tick):
    """Have a head visited at a tick, and when credits return, for the outputs that have room for it.

    awake, offers: see :func:`_choose`.
    """
    while offers:
        output = np.int64(awake[lowest(offers)])
        offers &= offers - _ONE
        wake(state.outputs, output, tick)
        wait_for_room(const, state, output, np.int64(0), const.vcs)


@device_function
def _choose(const, state, awake, offers, key, since, tick):
    """Choose one of the outputs that have room for an adaptive head (see ``rules.adaptive``).

    awake: uint32, outputs of the switch, ascending. offers: uint64, places in ``awake`` of those that have room, a bit
    each. key: of the head. since: tick from which on it could have been granted an idle output. Returns the place in
    ``awake``, or NOBODY if the head waits for its drawn channel.
    """
    vc = key & 0xFFFFFFFF
    packet, here = np.int64(state.vc[vc].front), np.int64(state.vc[vc].switch)
    ports, flits = ports_of(const, state, packet, here), np.int64(state.pool.packet[packet].flits)
    if popcount(ports) == 1:
        return lowest(offers)
    least, tied, left = NEVER, np.uint64(0), offers
    while left:
        k = lowest(left)
        left &= left - _ONE
        cost = state.offer[k, COST]
        if cost < least:
            least, tied = cost, np.uint64(0)
        if cost == least:
            tied |= _ONE << np.uint64(k)
    word = _word(const, state, packet)
    drawn = np.int64(const.net.ports.out_base[here]) + drawn_channel(ports, word)
    busy = np.int64(state.rows[drawn].busy)
    if busy <= tick:
        for k in range(len(awake)):
            if awake[k] == drawn and offers >> np.uint64(k) & _ONE and keeps_drawn(state.offer[k, COST], least, flits):
                return k
    elif waits_for_drawn(busy, since, flits):
        want = want_at(const, state, drawn, first_not_before(const, state, drawn, key))
        next_vc, worth = room_for(const, state, drawn, want)
        if next_vc != NOBODY:
            last_resort = const.resorts > 0 and is_reserved(worth)
            cost = channel_cost(_used(const, state, drawn, tick), last_resort)
            if keeps_drawn(cost, least, flits):
                _defer(const, state, awake, offers, busy)
                return NOBODY
    return drawn_tie(tied, word)


@inline
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
        best, best_vc, offers, wanted = NOBODY, NOBODY, np.uint64(0), NOBODY
        chooses = const.rule == ADAPTIVE and state.pool.packet[packet].output == NOBODY
        if const.routes.form == POLARIZED and chooses:
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
                    best, best_vc = k, next_vc
                    if chooses and wanted == NOBODY:
                        offers |= _ONE << np.uint64(k)
                        _offer(const, state, k, output, next_vc, worth, tick)
                    continue
                low, high = vcs_in(want_at(const, state, output, cursor[k] - 1))
                wait_for_room(const, state, output, low, high)
        if offers:
            since = max(eligible_from(const, state, oldest), blocked_until)
            best = _choose(const, state, awake[:count], offers, oldest, since, tick)
            best_vc = state.offer[best, VC_OFFERED] if best != NOBODY else NOBODY
        if best == NOBODY:
            continue
        granted = np.int64(awake[best])
        if chooses:
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
        if chooses:
            state.used[granted, 0] += np.int64(state.pool.packet[packet].flits)
        grant(const, state, packet, vc, granted, best_vc, tick)
    for k in range(count):
        output = np.int64(awake[k])
        if cursor[k] < state.rows[output].waiting:
            wake(state.outputs, output, key_at(const, state, output, cursor[k]) >> 32)


@inline
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
