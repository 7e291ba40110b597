# SPDX-License-Identifier: Apache-2.0
"""Granting an output to a waiting head, where each head waits for one output and outputs are independent."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import GRANTS
from flitlab.sim.engines.compiled.due import put
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, prefetch, seldom
from flitlab.sim.engines.compiled.records import NOBODY, ZERO, pair_of
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.vct.exchange import crosses, post_delivery, post_packet, post_room
from flitlab.sim.engines.compiled.vct.room import give_back, use_room, wait_for_room
from flitlab.sim.engines.compiled.vct.rows import (
    channel_of,
    dequeue,
    eligible_from,
    entry_of,
    head_at,
    key_at,
    present,
    room_for,
    vcs_in,
    want_at,
)
from flitlab.sim.engines.compiled.vct.state import INLINE
from flitlab.sim.engines.compiled.wheel import ask_for_bit, wake

_CAN, _EARLY, _LACKS = np.int64(0), np.int64(1), np.int64(2)


@inline
def grant(const, state, packet, vc, output, place, tick):
    """Move the packet at the front of an input VC to an output, which is free.

    place: the VC that it goes to, in which there is room, by its number in the input at the far end; NOBODY: the output
    ejects, and the packet goes to its host.
    """
    vc_record = state.vc[vc]
    record = state.pool.packet[packet]
    flits = np.int64(record.flits)
    state.tally.scalars[GRANTS] += 1
    state.rows[output].busy = tick + flits
    if state.rows[output].waiting:
        wake(state.outputs, output, tick + flits)

    # The VC it leaves: room returns upstream, and the packet behind it comes to the front.
    back = tick + flits - 1 + const.credit
    if const.delayed:
        back += const.credit_delay[vc // const.vcs]
    if crosses(state, vc):
        post_room(state, vc, back, flits)
    else:
        give_back(state, vc_record.credit, back, flits)
    vc_record.left = tick + flits
    if by_congestion(const.rule):
        vc_record.queued -= np.uint32(flits)
    if const.shared_input:
        state.input_busy[vc // const.vcs] = tick + flits
    behind = np.int64(record.next)
    vc_record.front = behind
    if behind != NOBODY:
        present(const, state, vc, behind, tick + flits)

    if place == NOBODY:
        delivered = tick + flits - 1 + const.switch + const.ejection
        if const.delayed:
            delivered += const.access[record.destination]
        post_delivery(state.program, state, packet, delivered)
        prefetch(state.tally.pairs, pair_of(const.net, state.pool, packet))
        put(state.leaving, packet, delivered)
        return
    use_room(const, state, output, place, flits)
    next_vc = entry_of(state, output) * const.vcs + place
    record.input_vc = next_vc
    record.hop += 1
    if const.policy == ESCAPE and place == ESCAPE_VC:
        record.way = ON_ESCAPE
    channel = channel_of(state, output)
    state.tally.channel_flits[channel] += flits
    comes = tick + const.switch + const.link + const.header
    if const.delayed:
        comes += const.delay[channel]
    if crosses(state, next_vc):
        post_packet(state, packet, next_vc, comes)
        return
    put(state.arriving, packet, comes)


@inline
def serve(const, state, output, tick):
    """Grant an output, if it is free, to the first waiting head in its row that has room downstream.

    Each head waits for one output only. If nobody can be granted, the output is woken when that may change.
    """
    if state.rows[output].waiting == 0 or state.rows[output].busy > tick:
        return  # it is woken by who comes, and when it falls free
    i, place = _first_in_row(const, state, output, tick)
    if i == NOBODY:
        return
    vc = key_at(const, state, output, i) & 0xFFFFFFFF
    dequeue(const, state, output, i)
    grant(const, state, np.int64(state.vc[vc].front), vc, output, place, tick)


@inline
def _first_in_row(const, state, output, tick):
    """Find the first head in an output's row that can be granted: (where it is in the row, the VC that it goes to).

    The VC is NOBODY if the output ejects, and both are if there is no such head. Nearly always it is the first of all,
    which hence is looked at apart.
    """
    ejects = entry_of(state, output) == NOBODY
    found, place = _look_at(const, state, output, np.int64(0), ejects, tick)
    if found == _CAN:
        return np.int64(0), place
    i = np.int64(1)
    while i < state.rows[output].waiting:
        if found == _EARLY and not const.oldest_first:
            break  # the others in the row are eligible later still
        found, place = _look_at(const, state, output, i, ejects, tick)
        if found == _CAN:
            return i, place
        i += 1
    return NOBODY, NOBODY


@inline
def _look_at(const, state, output, i, ejects, tick):
    """See whether the head at place ``i`` of an output's row can be granted; if not, have the output looked at for it.

    ejects: whether the output does. Returns (_CAN, _EARLY or _LACKS, the VC that it goes to).
    """
    key, want = key_at(const, state, output, i), want_at(const, state, output, i)
    eligible = eligible_from(const, state, key)
    if eligible > tick:
        wake(state.outputs, output, eligible)
        return _EARLY, NOBODY
    if ejects:
        return _CAN, NOBODY
    place, _ = room_for(const, state, output, want)
    if place != NOBODY:
        return _CAN, place
    low, high = vcs_in(want)
    wait_for_room(const, state, output, low, high)
    return _LACKS, NOBODY


@inline
def serve_all(const, state, outputs, count, tick):
    """Serve the first ``count`` of some outputs; what they need begins to be loaded for many of them at a time.

    outputs: uint32.
    """
    for begin in range(0, count, AT_ONCE):
        end = min(count, begin + AT_ONCE)
        if seldom(count > FEW):
            ask_for_heads(const, state, outputs[begin:end], tick)
        for i in range(begin, end):
            serve(const, state, np.int64(outputs[i]), tick)


@device_function
def ask_for_heads(const, state, outputs, tick):
    """Begin to load what it takes to serve the first heads in the rows of some outputs, uint32, at a tick.

    What only some of them need is asked for in all cases, as nobody foresees which.
    """
    rows, vcs, pool, first = state.rows, state.vc, state.pool, np.int64(0)
    for output in outputs:
        prefetch(rows, output)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        prefetch(vcs, key_at(const, state, output, first) & 0xFFFFFFFF)
        prefetch(state.room, output << const.vc_bits)
        prefetch(state.heads, np.int64(head_at(const, output, INLINE)))
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if rows[output].waiting > 0:
            channel = channel_of(state, output)
            prefetch(state.tally.channel_flits, ZERO if channel == NOBODY else channel)
            prefetch(pool.packet, vcs[key_at(const, state, output, first) & 0xFFFFFFFF].front)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if rows[output].waiting > 0:
            packet = np.int64(vcs[key_at(const, state, output, first) & 0xFFFFFFFF].front)
            behind = np.int64(pool.packet[packet].next)
            prefetch(pool.packet, packet if behind == NOBODY else behind)
            ask_for_bit(state.outputs, output, tick + np.int64(pool.packet[packet].flits))
