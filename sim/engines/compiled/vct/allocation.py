# SPDX-License-Identifier: Apache-2.0
"""Granting an output to a waiting head, where each head waits for one output and outputs are independent."""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import GRANTS
from flitlab.sim.engines.compiled.due import put
from flitlab.sim.engines.compiled.memory import AT_ONCE, FEW, prefetch, seldom
from flitlab.sim.engines.compiled.records import FLITS, HOP, INPUT_VC, LATE, NEXT, NOBODY, WAY, pair_of
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
    BUSY,
    CHANNEL_AT,
    END,
    FRONT,
    KEYS,
    LACKING,
    LEFT,
    QUEUED,
    ROOM,
    UPSTREAM,
    WAITING,
    WANTS,
)
from flitlab.sim.engines.compiled.wheel import wake


@inner
def grant(const, state, packet, vc, output, next_vc, tick):
    """Move the packet at the front of an input VC to an output, which is free.

    next_vc: the input VC at the far end that it goes to, in which there is room; NOBODY: the output ejects, and the
    packet goes to its host.
    """
    flits = np.int64(state.pool.packet[packet, FLITS])
    state.tally.scalars[GRANTS] += 1
    state.rows[output, BUSY] = tick + flits
    if state.rows[output, WAITING]:
        wake(state.outputs, output, tick + flits)

    # The VC it leaves: room returns upstream, and the packet behind it comes to the front.
    back = tick + flits - 1 + const.credit
    if crosses(state, vc):
        post_room(state, vc, back, flits)
    else:
        give_back(const, state, vc, back, flits)
    state.vc[vc, LEFT] = tick + flits
    if by_congestion(const.rule):
        state.vc[vc, QUEUED] -= np.uint32(flits)
    if const.shared_input:
        state.input_busy[vc // const.vcs] = tick + flits
    behind = np.int64(state.pool.packet[packet, NEXT])
    state.vc[vc, FRONT] = behind
    if behind != NOBODY:
        present(const, state, vc, behind, tick + flits)

    if next_vc == NOBODY:
        delivered = tick + flits - 1 + const.switch + const.ejection
        post_delivery(state.program, state, packet, delivered)
        prefetch(state.tally.pairs, pair_of(const.net, state.pool, packet))
        put(state.leaving, packet, delivered)
        return
    state.vc[next_vc, ROOM] -= flits
    state.pool.packet[packet, INPUT_VC] = next_vc
    state.pool.packet[packet, HOP] += 1
    if const.policy == ESCAPE and next_vc % const.vcs == ESCAPE_VC:
        state.pool.packet[packet, WAY] = ON_ESCAPE
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
    if state.rows[output, WAITING] == 0:
        return
    if state.rows[output, BUSY] > tick:
        wake(state.outputs, output, state.rows[output, BUSY])
        return
    ejects = entry_of(state, output) == NOBODY
    lacking, longest = np.uint64(0), np.int64(0)  # where heads have found no room, and the longest of them
    for i in range(state.rows[output, WAITING]):
        key, want = key_at(state, output, i), want_at(state, output, i)
        eligible = eligible_from(const, state, key)
        if eligible > tick:
            wake(state.outputs, output, eligible)
            if const.oldest_first:
                continue
            break  # the others in the row are eligible later still
        next_vc = NOBODY
        if not ejects:
            wanted = wanted_vcs(const, state, output, want)
            if wanted & ~lacking == 0 and flits_of(want) >= longest and const.resorts == 0:
                continue  # who has found no room in these VCs has had the output woken for it
            next_vc, when = room_for(const, state, want, tick)
            if next_vc == NOBODY:
                lacking |= wanted
                longest = max(longest, flits_of(want))
                if when < LATE:
                    wake(state.outputs, output, when)
                continue
        state.rows[output, LACKING] = np.int64(lacking)
        dequeue(state, output, i)
        vc = key & 0xFFFFFFFF
        grant(const, state, np.int64(state.vc[vc, FRONT]), vc, output, next_vc, tick)
        return
    state.rows[output, LACKING] = np.int64(lacking)


@inner
def serve_all(const, state, outputs, count, tick):
    """Serve the first ``count`` of some outputs; what they need begins to be loaded for many of them at a time.

    outputs: int64.
    """
    for i in range(count):
        if seldom(i & (AT_ONCE - 1) == 0 and count - i > FEW):
            ask_for_heads(
                state.rows,
                state.vc,
                state.pool,
                state.host,
                state.tally.channel_flits,
                outputs[i : min(count, i + AT_ONCE)],
            )
        serve(const, state, outputs[i], tick)


@routine
def ask_for_heads(rows, vcs, pool, hosts, channel_flits, outputs):
    """Begin to load what it takes to serve the first heads in the rows of some outputs.

    rows, vcs, pool, hosts, channel_flits: of a state. outputs: int64.
    """
    for output in outputs:
        prefetch(rows, output)
    for output in outputs:
        if rows[output, WAITING] > 0:
            prefetch(vcs, rows[output, KEYS] & 0xFFFFFFFF)
            prefetch(vcs, rows[output, WANTS] & 0xFFFFFFFF)
    for output in outputs:
        if rows[output, WAITING] > 0:
            if rows[output, END] & 0xFFFFFFFF != NOBODY:
                prefetch(channel_flits, rows[output, END] >> CHANNEL_AT)
            vc = rows[output, KEYS] & 0xFFFFFFFF
            prefetch(pool.packet, vcs[vc, FRONT])
            upstream = np.int64(vcs[vc, UPSTREAM])
            if upstream < len(rows):
                prefetch(rows, upstream)
            else:
                prefetch(hosts, upstream - len(rows))
