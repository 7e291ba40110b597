# SPDX-License-Identifier: Apache-2.0
"""Granting an output to a waiting head, where each head waits for one output and outputs are independent."""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import GRANTS
from flitlab.sim.engines.compiled.due import put
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, prefetch, seldom
from flitlab.sim.engines.compiled.records import LATE, NOBODY, pair_of
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.vct.exchange import crosses, post_delivery, post_packet, post_room
from flitlab.sim.engines.compiled.vct.rows import (
    channel_of,
    dequeue,
    eligible_from,
    entry_of,
    flits_of,
    give_back,
    key_at,
    present,
    room_for,
    want_at,
    wanted_vcs,
)
from flitlab.sim.engines.compiled.vct.state import (
    INLINE,
)
from flitlab.sim.engines.compiled.wheel import ask_for_bit, wake

_NONE = np.uint64(0)
_CAN, _EARLY, _LACKS = np.int64(0), np.int64(1), np.int64(2)


@inner
def grant(const, state, packet, vc, output, next_vc, tick):
    """Move the packet at the front of an input VC to an output, which is free.

    next_vc: the input VC at the far end that it goes to, in which there is room; NOBODY: the output ejects, and the
    packet goes to its host.
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
    if crosses(state, vc):
        post_room(state, vc, back, flits)
    else:
        give_back(const, state, vc, back, flits)
    vc_record.left = tick + flits
    if by_congestion(const.rule):
        vc_record.queued -= np.uint32(flits)
    if const.shared_input:
        state.input_busy[vc // const.vcs] = tick + flits
    behind = np.int64(record.next)
    vc_record.front = behind
    if behind != NOBODY:
        present(const, state, vc, behind, tick + flits)

    if next_vc == NOBODY:
        delivered = tick + flits - 1 + const.switch + const.ejection
        post_delivery(state.program, state, packet, delivered)
        prefetch(state.tally.pairs, pair_of(const.net, state.pool, packet))
        put(state.leaving, packet, delivered)
        return
    state.vc[next_vc].room -= flits
    record.input_vc = next_vc
    record.hop += 1
    if const.policy == ESCAPE and next_vc % const.vcs == ESCAPE_VC:
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


@inner
def serve(const, state, output, tick):
    """Grant an output, if it is free, to the first waiting head in its row that has room downstream.

    Each head waits for one output only. If nobody can be granted, the output is woken when that may change.
    """
    if state.rows[output].waiting == 0:
        return
    if state.rows[output].busy > tick:
        wake(state.outputs, output, state.rows[output].busy)
        return
    place, next_vc = _first_in_row(const, state, output, entry_of(state, output), tick)
    if place == NOBODY:
        return
    vc = key_at(state, output, place) & 0xFFFFFFFF
    dequeue(state, output, place)
    grant(const, state, np.int64(state.vc[vc].front), vc, output, next_vc, tick)


@inner
def _first_in_row(const, state, output, entry, tick):
    """Find the first head in an output's row that can be granted: (its place, the VC that it goes to).

    entry: the input at the end of the output; if it is NOBODY, the VC is so, too. The place is NOBODY if there is no
    such head. Nearly always it is the first of all, which hence is looked at apart.
    """
    found, next_vc, lacking, longest = _look_at(const, state, output, np.int64(0), entry, _NONE, np.int64(0), tick)
    place = np.int64(0) if found == _CAN else NOBODY
    if found > _CAN:
        i = np.int64(1)
        while i < state.rows[output].waiting:
            found, next_vc, lacking, longest = _look_at(const, state, output, i, entry, lacking, longest, tick)
            if found == _CAN:
                place = i
                break
            if found == _EARLY and not const.oldest_first:
                break  # the others in the row are eligible later still
            i += 1
    state.rows[output].lacking = np.int64(lacking)
    return place, next_vc


@inner
def _look_at(const, state, output, i, entry, lacking, longest, tick):
    """See whether the head at place ``i`` of an output's row can be granted; the output is woken for it if it cannot.

    lacking: where heads before it have found no room, a bit for each VC. longest: flits of the longest of those.
    Returns (_CAN, _EARLY or _LACKS, the VC that it goes to, both with this head).
    """
    key, want = key_at(state, output, i), want_at(state, output, i)
    eligible = eligible_from(const, state, key)
    if eligible > tick:
        wake(state.outputs, output, eligible)
        return _EARLY, NOBODY, lacking, longest
    if entry == NOBODY:
        return _CAN, NOBODY, lacking, longest
    wanted, flits = wanted_vcs(const, entry, want), flits_of(want)
    if wanted & ~lacking == 0 and flits >= longest and const.resorts == 0:
        return _LACKS, NOBODY, lacking, longest  # for those who have found no room in these VCs the output is woken
    next_vc, when = room_for(const, state, want, tick)
    if next_vc != NOBODY:
        return _CAN, next_vc, lacking, longest
    if when < LATE:
        wake(state.outputs, output, when)
    return _LACKS, NOBODY, lacking | wanted, max(longest, flits)


@inner
def serve_all(const, state, outputs, count, tick):
    """Serve the first ``count`` of some outputs; what they need begins to be loaded for many of them at a time.

    outputs: uint32.
    """
    for begin in range(0, count, AT_ONCE):
        end = min(count, begin + AT_ONCE)
        if seldom(count > FEW):
            ask_for_heads(state, outputs[begin:end], tick)
        for i in range(begin, end):
            serve(const, state, np.int64(outputs[i]), tick)


@routine
def ask_for_heads(state, outputs, tick):
    """Begin to load what it takes to serve the first heads in the rows of some outputs, uint32, at a tick."""
    rows, vcs, pool, first = state.rows, state.vc, state.pool, np.int64(0)
    for output in outputs:
        prefetch(rows, output)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if rows[output].waiting > 0:
            prefetch(vcs, key_at(state, output, first) & 0xFFFFFFFF)
            prefetch(vcs, want_at(state, output, first) & 0xFFFFFFFF)
        if rows[output].waiting > INLINE:
            prefetch(state.behind, output)
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if rows[output].waiting > 0:
            if entry_of(state, output) != NOBODY:
                prefetch(state.tally.channel_flits, channel_of(state, output))
            vc_record = vcs[key_at(state, output, first) & 0xFFFFFFFF]
            prefetch(pool.packet, vc_record.front)
            upstream = np.int64(vc_record.upstream)
            if upstream < len(rows):
                prefetch(rows, upstream)
            else:
                prefetch(state.host, upstream - len(rows))
    for i in range(len(outputs)):
        output = np.int64(outputs[i])
        if rows[output].waiting > 0:
            record = pool.packet[vcs[key_at(state, output, first) & 0xFFFFFFFF].front]
            if record.next != NOBODY:
                prefetch(pool.packet, record.next)
            if rows[output].waiting > 1:
                ask_for_bit(state.outputs, output, tick + np.int64(record.flits))
