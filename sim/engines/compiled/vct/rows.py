# SPDX-License-Identifier: Apache-2.0
"""The heads that wait for an output, in the order in which they are served, and what they want of it.

An output's record, a cache line, has what is known of all heads that wait for it, and a key and a want for each of the
first ones; those of the others are elsewhere. A head's key is its :func:`~flitlab.models.rules.order.age_key`, or,
where the packet created first goes first, one with the tick of its creation in place of that from which on it may be
granted.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.order import age_key
from flitlab.models.rules.route import usable_ports
from flitlab.models.rules.tables import ADAPTIVE, RISING
from flitlab.models.rules.vc import NOT_HELD, allowed_vcs
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.vct.room import preferred
from flitlab.sim.engines.compiled.vct.state import (
    HEADS_AT,
    INLINE,
    OUTPUT_WORDS,
)
from flitlab.sim.engines.compiled.wheel import wake

# What a head in an output's row wants, packed: its first VC in the input downstream, how many VCs, its flits.
_COUNT_AT, _FLITS_AT = 32, 40
_LOW_MASK, _COUNT_MASK = 0xFFFFFFFF, 0xFF

_ONE = np.uint64(1)


@inline
def entry_of(state, output):
    """Return the input at the end of an output; NOBODY if it ejects."""
    return np.int64(state.rows[output].entry)


@inline
def channel_of(state, output):
    """Return the channel of an output between switches."""
    return np.int64(state.rows[output].channel)


@inline
def vcs_of(const, state, packet, output):
    """Find the VCs at the far end of a network output that a packet may take: (first, one past the last).

    Both are numbers in the input there.
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
    return allowed_vcs(
        const.routes, way, const.policy, const.vcs, hop, const.rings, source, target, channel, here, port, held
    )


@inline
def ports_of(const, state, packet, here):
    """Find the set of ports that an adaptive packet may take at a switch, a bit each, uint64."""
    record = state.pool.packet[packet]
    target = np.int64(const.net.host_switch[record.destination])
    way, hop = np.int64(record.way), np.int64(record.hop)
    return usable_ports(const.routes, way, hop, here, target)


@inline
def _want(const, state, packet, output):
    """Pack what a packet wants of an output: VCs and flits; no VC of an ejection channel."""
    flits = np.int64(state.pool.packet[packet].flits) << _FLITS_AT
    if entry_of(state, output) == NOBODY:
        return flits
    low, high = vcs_of(const, state, packet, output)
    return flits | ((high - low) << _COUNT_AT) | low


@inline
def room_for(const, state, output, want):
    """Find the VC that the owner of a packed want prefers; what is returned is what :func:`preferred` returns."""
    low, high = vcs_in(want)
    return preferred(const, state, const.resorts, output, low, high, flits_of(want))


@inline
def vcs_in(want):
    """Unpack the VCs of a packed want: (first, one past the last)."""
    low = want & _LOW_MASK
    return low, low + ((want >> _COUNT_AT) & _COUNT_MASK)


@inline
def flits_of(want):
    """Unpack the length of the owner of a packed want, in flits."""
    return want >> _FLITS_AT


@inline
def head_at(const, output, i):
    """Find in ``VctState.heads`` the key of the head at place ``i`` of an output's row; what it wants is behind it.

    Which of the two places it is depends on what nobody foresees, so both are calculated, and there is no branch.
    """
    near, far = output * OUTPUT_WORDS + HEADS_AT, output * const.behind_words + const.behind_at
    return np.uint64((near if i < INLINE else far) + 2 * i)


@inline
def key_at(const, state, output, i):
    """Read the key of the head at place ``i`` of an output's row."""
    return state.heads[head_at(const, output, i)]


@inline
def want_at(const, state, output, i):
    """Read what the head at place ``i`` of an output's row wants, packed."""
    return state.heads[head_at(const, output, i) + _ONE]


@inline
def _put(const, state, output, i, key, want):
    """Write the key and the want of the head at place ``i`` of an output's row."""
    at = head_at(const, output, i)
    state.heads[at] = key
    state.heads[at + _ONE] = want


@inline
def eligible_from(const, state, key):
    """Return the tick from which on the head with a key may be granted."""
    return np.int64(state.vc[key & _LOW_MASK].eligible) if const.oldest_first else key >> 32


@inline
def precedes(const, state, key, other):
    """Tell whether the head with a key goes before that with another one."""
    if const.oldest_first and key >> 32 == other >> 32:
        vc, other_vc = key & _LOW_MASK, other & _LOW_MASK
        return age_key(eligible_from(const, state, key), vc) < age_key(eligible_from(const, state, other), other_vc)
    return key < other


@inline
def enqueue(const, state, packet, output, eligible, key):
    """Insert a head into an output's row, which is sorted, and see that the output is looked at.

    eligible: tick from which on the packet may be granted. key: of the head.
    """
    i = np.int64(state.rows[output].waiting)
    state.rows[output].waiting = i + 1
    while i > 0 and precedes(const, state, key, key_at(const, state, output, i - 1)):
        _put(const, state, output, i, key_at(const, state, output, i - 1), want_at(const, state, output, i - 1))
        i -= 1
    _put(const, state, output, i, key, _want(const, state, packet, output))
    wake(state.outputs, output, max(eligible, np.int64(state.rows[output].busy)))


@inline
def dequeue(const, state, output, i):
    """Remove the entry at place ``i`` of an output's row."""
    count = np.int64(state.rows[output].waiting) - 1
    state.rows[output].waiting = count
    while i < count:
        _put(const, state, output, i, key_at(const, state, output, i + 1), want_at(const, state, output, i + 1))
        i += 1


@inline
def withdraw(const, state, output, key):
    """Remove the head with a key from an output's row."""
    for i in range(np.int64(state.rows[output].waiting)):
        if key_at(const, state, output, i) == key:
            dequeue(const, state, output, i)
            return


@inline
def first_not_before(const, state, output, key):
    """Count the heads of an output's row that go before ``key``."""
    i = 0
    while i < state.rows[output].waiting and precedes(const, state, key_at(const, state, output, i), key):
        i += 1
    return i


@inline
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
