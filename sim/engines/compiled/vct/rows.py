# SPDX-License-Identifier: Apache-2.0
"""The heads that wait for an output, in the order in which they are served, and the room that they wait for.

An output's record, a cache line, has what is known of all heads that wait for it, and a key and a want for each of the
first ones; those of the others are elsewhere. A head's key is its :func:`~flitlab.models.rules.order.age_key`, or,
where the packet created first goes first, one with the tick of its creation in place of that from which on it may be
granted.
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.order import age_key
from flitlab.models.rules.route import usable_ports
from flitlab.models.rules.tables import ADAPTIVE, RISING
from flitlab.models.rules.vc import NOT_HELD, allowed_vcs, appeal, is_kept
from flitlab.sim.engines.compiled.memory import prefetch, seldom
from flitlab.sim.engines.compiled.records import (
    LATE,
    NOBODY,
    ZERO,
)
from flitlab.sim.engines.compiled.vct.state import (
    CHANNEL_AT,
    HEADS_AT,
    INLINE,
    OUTPUT_WORDS,
)
from flitlab.sim.engines.compiled.wheel import wake

# What a head in an output's row wants, packed: its first VC downstream, how many VCs, its flits.
_COUNT_AT, _FLITS_AT = 32, 40
_LOW_MASK, _COUNT_MASK = 0xFFFFFFFF, 0xFF

_ONE = np.uint64(1)


@inner
def entry_of(state, output):
    """Return the input at the end of an output; NOBODY if it ejects."""
    return state.rows[output].end & _LOW_MASK


@inner
def channel_of(state, output):
    """Return the channel of an output between switches."""
    return state.rows[output].end >> CHANNEL_AT


@inner
def _return_at(const, vc, i):
    """Find in ``VctState.returns`` the i-th entry of an input VC's ring of returning room."""
    return (np.uint64(vc) << np.uint64(const.ring_shift)) + np.uint64(const.ring_at) + np.uint64(i) + np.uint64(i)


@inner
def reclaim(const, state, vc, tick):
    """Take back the room of packets that has become usable by a tick, and return the room of the input VC in flits."""
    vc_record = state.vc[vc]
    while vc_record.returning > 0:
        first = vc_record.first_return
        if state.returns[_return_at(const, vc, first)] > tick:
            break
        vc_record.room += state.returns[_return_at(const, vc, first) + _ONE]
        vc_record.first_return = (first + 1) & (const.ring - 1)
        vc_record.returning -= 1
    return vc_record.room


@inner
def give_back(const, state, vc, back, flits):
    """Let room of an input VC return upstream, where it is usable from tick ``back`` on, and wake who waits for it."""
    vc_record = state.vc[vc]
    last = np.int64((vc_record.first_return + vc_record.returning) & (const.ring - 1))
    state.returns[_return_at(const, vc, last)] = back
    state.returns[_return_at(const, vc, last) + _ONE] = flits
    vc_record.returning += 1
    upstream = np.int64(vc_record.upstream)
    if upstream >= len(state.rows):  # a host
        host = upstream - len(state.rows)
        if state.host[host].born <= back:
            wake(state.senders, host, back)
    elif state.rows[upstream].busy <= back:  # if held, it is looked at when it falls free
        lacking = np.uint64(state.rows[upstream].lacking)
        if lacking and lacking >> np.uint64(vc - entry_of(state, upstream) * const.vcs) & np.uint64(1):
            wake(state.outputs, upstream, back)


@inner
def preferred(const, state, resorts, low, high, flits, tick):
    """Find the VC that a packet prefers among those from ``low`` to ``high`` - 1, all of one input.

    resorts: how many of the first VCs are taken last. flits: length of the packet. Returns (the VC, its appeal),
    or, if none has room, (NOBODY, the tick of the next return of room, LATE if none is known).
    """
    best, most, soonest = NOBODY, ZERO, LATE
    for vc in range(low, high):
        if resorts > 0 and is_kept(resorts, low % const.vcs, vc % const.vcs):
            continue
        room = np.int64(reclaim(const, state, vc, tick))
        if room == const.buffer_flits and resorts == 0:
            return vc, room  # no other can have more
        if room >= flits:
            worth = appeal(resorts, vc % const.vcs, room, flits) if resorts > 0 else room
            if worth > most:
                best, most = vc, worth
        elif state.vc[vc].returning > 0:
            soonest = min(soonest, np.int64(state.returns[_return_at(const, vc, state.vc[vc].first_return)]))
    if best == NOBODY:
        return NOBODY, soonest
    return best, most


@inner
def vcs_of(const, state, packet, output, entry):
    """Find the input VCs at the far end of a network output that a packet may take: (first, one past the last).

    entry: the input there.
    """
    record = state.pool.packet[packet]
    channel = channel_of(state, output)
    source = const.net.host_switch[record.source]
    target = const.net.host_switch[record.destination]
    input_vc = np.int64(record.input_vc)
    here = np.int64(state.vc[input_vc].switch)
    way, hop = np.int64(record.way), np.int64(record.hop)
    port = output - const.net.ports.out_base[here]
    held = input_vc % const.vcs if const.policy == RISING and hop > 0 else NOT_HELD
    low, high = allowed_vcs(
        const.routes, way, const.policy, const.vcs, hop, const.rings, source, target, channel, here, port, held
    )
    base = entry * const.vcs
    return base + low, base + high


@inner
def ports_of(const, state, packet, here):
    """Find the set of ports that an adaptive packet may take at a switch, a bit each, uint64."""
    record = state.pool.packet[packet]
    target = np.int64(const.net.host_switch[record.destination])
    way, hop = np.int64(record.way), np.int64(record.hop)
    return usable_ports(const.routes, way, hop, here, target)


@inner
def _want(const, state, packet, output):
    """Pack what a packet wants of an output: VCs and flits; no VC of an ejection channel."""
    flits = np.int64(state.pool.packet[packet].flits) << _FLITS_AT
    entry = entry_of(state, output)
    if entry == NOBODY:
        return flits
    low, high = vcs_of(const, state, packet, output, entry)
    prefetch(state.vc, np.int64(low))
    return flits | ((high - low) << _COUNT_AT) | low


@inner
def room_for(const, state, want, tick):
    """Find the VC that the owner of a packed want prefers; what is returned is what :func:`preferred` returns."""
    low, flits = want & _LOW_MASK, flits_of(want)
    high = low + ((want >> _COUNT_AT) & _COUNT_MASK)
    return preferred(const, state, const.resorts, low, high, flits, tick)


@inner
def wanted_vcs(const, entry, want):
    """Unpack the VCs of a packed want: the set of them at an input, ``entry``, a bit each, uint64."""
    low, count = want & _LOW_MASK, (want >> _COUNT_AT) & _COUNT_MASK
    first = low - entry * const.vcs
    return (~np.uint64(0) >> np.uint64(64 - count)) << np.uint64(first)


@inner
def flits_of(want):
    """Unpack the length of the owner of a packed want, in flits."""
    return want >> _FLITS_AT


@inner
def _head_at(output, i):
    """Find in ``VctState.heads`` the key of the head at place ``i`` of an output's row; what it wants is behind it."""
    return np.uint64(output * OUTPUT_WORDS + HEADS_AT + 2 * i)


@inner
def key_at(state, output, i):
    """Read the key of the head at place ``i`` of an output's row."""
    if seldom(i >= INLINE):
        return state.behind[output, np.uint64(2 * (i - INLINE))]
    return state.heads[_head_at(output, i)]


@inner
def want_at(state, output, i):
    """Read what the head at place ``i`` of an output's row wants, packed."""
    if seldom(i >= INLINE):
        return state.behind[output, np.uint64(2 * (i - INLINE) + 1)]
    return state.heads[_head_at(output, i) + _ONE]


@inner
def _put(state, output, i, key, want):
    """Write the key and the want of the head at place ``i`` of an output's row."""
    if seldom(i >= INLINE):
        state.behind[output, np.uint64(2 * (i - INLINE))] = key
        state.behind[output, np.uint64(2 * (i - INLINE) + 1)] = want
    else:
        state.heads[_head_at(output, i)] = key
        state.heads[_head_at(output, i) + _ONE] = want


@inner
def eligible_from(const, state, key):
    """Return the tick from which on the head with a key may be granted."""
    return np.int64(state.vc[key & _LOW_MASK].eligible) if const.oldest_first else key >> 32


@inner
def precedes(const, state, key, other):
    """Tell whether the head with a key goes before that with another one."""
    if const.oldest_first and key >> 32 == other >> 32:
        vc, other_vc = key & _LOW_MASK, other & _LOW_MASK
        return age_key(eligible_from(const, state, key), vc) < age_key(eligible_from(const, state, other), other_vc)
    return key < other


@inner
def enqueue(const, state, packet, output, eligible, key):
    """Insert a head into an output's row, which is sorted, and see that the output is looked at.

    eligible: tick from which on the packet may be granted. key: of the head.
    """
    i = state.rows[output].waiting
    state.rows[output].waiting = i + 1
    while i > 0 and precedes(const, state, key, key_at(state, output, i - 1)):
        _put(state, output, i, key_at(state, output, i - 1), want_at(state, output, i - 1))
        i -= 1
    _put(state, output, i, key, _want(const, state, packet, output))
    wake(state.outputs, output, max(eligible, state.rows[output].busy))


@inner
def dequeue(state, output, i):
    """Remove the entry at place ``i`` of an output's row."""
    count = state.rows[output].waiting - 1
    state.rows[output].waiting = count
    while i < count:
        _put(state, output, i, key_at(state, output, i + 1), want_at(state, output, i + 1))
        i += 1


@inner
def withdraw(const, state, output, key):
    """Remove the head with a key from an output's row."""
    for i in range(state.rows[output].waiting):
        if key_at(state, output, i) == key:
            dequeue(state, output, i)
            return


@inner
def first_not_before(const, state, output, key):
    """Count the heads of an output's row that go before ``key``."""
    i = 0
    while i < state.rows[output].waiting and precedes(const, state, key_at(state, output, i), key):
        i += 1
    return i


@inner
def present(const, state, vc, packet, eligible):
    """Let the packet at the front of an input VC ask for its output, or if it is adaptive for all it may take.

    eligible: tick from which on it may be granted.
    """
    record = state.pool.packet[packet]
    state.vc[vc].eligible = eligible
    key = age_key(np.int64(record.born) if const.oldest_first else eligible, vc)
    if const.rule == ADAPTIVE and record.output == NOBODY:
        here = np.int64(state.vc[vc].switch)
        base = const.net.ports.out_base[here]
        ports = ports_of(const, state, packet, here)
        while ports:
            output = base + lowest(ports)
            ports &= ports - np.uint64(1)
            enqueue(const, state, packet, output, eligible, key)
    else:
        enqueue(const, state, packet, np.int64(record.output), eligible, key)
