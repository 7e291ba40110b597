# SPDX-License-Identifier: Apache-2.0
"""What a run at flow level is made of, and how it grows with the messages under way."""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints, Ints32
from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.flow.tournament import NO_KEY, enlarged, make_tournament
from flitlab.sim.engines.compiled.memory import aligned
from flitlab.sim.engines.compiled.simd import KEYS_PER_VECTOR, RATES_PER_VECTOR
from flitlab.sim.engines.flow.model import Network

# Fields of a message under way, in ``message`` (int64) and, from GOING to FLITS, in ``amounts`` (float64), which are
# the same memory: whatever one looks at together is in one cache line. BLOCK, COUNT: its entries, none once it has left
# its source. NECK: the full channel that holds it back. TOUCHED_AT: the last instant at which its rate was looked into.
# SINCE: since when it has gone at its rate. SEND: the operation. LATENCY: from its leaving the source to its delivery.
# GOING: the rate at which it goes. LEFT: what has not left its
# source at SINCE, in flits times units of a tick. FLITS: of all its packets.
BLOCK, COUNT, BOTTLENECK, TOUCHED_AT, SEND_RATE, REMAINING, RATE_SINCE, SEND, FLITS, LATENCY = range(10)
_MESSAGE = 16

# Fields of a channel, in ``channel`` (int32) and, from CAPACITY on, in ``level`` (float64), again the same memory.
# MEMBERS, SIZE, USED: its block of members, the size of that and how many there are. QUEUED: its place in the queue of
# channels whose turn is to come, -1 if it is not in it. STALE: whether it has changed since its turn was found.
# SUSPECT: whether it is to be examined.
# LEVEL: the rate of those that it holds back, inf if it holds none. HELD: the shares of these.
# WEIGHT: the shares of all members. LOAD: what it carries of those that have a rate, in flits a tick.
MEMBERS, SIZE, USED, QUEUED, STALE, IS_SUSPECT = range(6)
CAPACITY, LEVEL, LIMITED_SHARE, TOTAL_SHARE, LOAD = range(3, 8)
_CHANNEL = 8

# Places in FlowState.totals. RECORDS: message records that have been used; SPARE: the first of those that are free, -1
# if there is none. UNDER_WAY: messages not delivered yet. QUEUE: channels in the queue. SUSPECTS: channels to be
# examined. TOUCHED: messages whose rate was looked into at this instant. INSTANTS: how many there were. NOW: the
# present one. PENDING: sends of the outbox that are under way already, -1 if all are. DELIVERED: messages.
RECORDS, FIRST_FREE, IN_FLIGHT, QUEUE, SUSPECTS, TOUCHED, INSTANTS, NOW, PENDING, DELIVERED = range(10)
_TOTALS = 10

_SIZES = 48
_MIN_MEMBERS = RATES_PER_VECTOR
KEYS = 16 * KEYS_PER_VECTOR
"""Channels of the queue of which one number is kept that is no larger than any of their keys."""

# What there may be too few of.
SUFFICIENT, MESSAGES_FULL, ENTRIES_FULL, MEMBERS_FULL = range(4)


class FlowState(NamedTuple):
    """The state of a run at flow level: all that changes.

    message, amounts: the messages under way, by record, but the first, which is nobody's. rate: float64 [records],
    their fair shares in flits a tick, 0 of nobody. agenda: a tournament of them, by the time
    at which something happens to them next. touched: scratch, of them.
    entry_channel, entry_at, entry_share: int32, int32 and float64, by entry of a message: a channel, the message's
    place among the members of that, and what the channel carries of every flit of the message. member, member_entry,
    member_share: int32, int32 and float64, by member of a channel: a message, which of its entries this is, and its
    share. They are in blocks of a power of two; those of members are at least ``RATES_PER_VECTOR``, filled up with
    nobody's, who
    have no share. entry_blocks, member_blocks: int64 [_SIZES + 1], the first free block of each size, -1 if there is
    none, and where the blocks end.
    channel, level: the channels. loose: float64 [channels], the weight with which they are never full, since the hosts'
    channels are earlier. queue, keys, least: channels whose turn is to come (see ``turns``). suspects: scratch, of
    channels. carried: float64 [channels], flits of the messages that have left their source.
    """

    message: Ints
    amounts: Floats
    rate: Floats
    agenda: Ints
    touched: Ints
    entry_channel: Ints32
    entry_position: Ints32
    entry_share: Floats
    member: Ints32
    member_entry: Ints32
    member_share: Floats
    entry_blocks: Ints
    member_blocks: Ints
    channel: Ints32
    level: Floats
    never_full_share: Floats
    queue: Ints
    keys: Ints
    block_minimum: Ints
    suspects: Ints
    carried: Floats
    totals: Ints


def _aligned_row(count: int, dtype: Any) -> Any:
    """Make an array of zeros, whole blocks of which are whole cache lines."""
    return aligned(-(-count // KEYS_PER_VECTOR) * KEYS_PER_VECTOR, 1, dtype).ravel()


def never_full_share(capacity: Floats, channels: int) -> Floats:
    """The weight with which each channel is never full; channels: how many there are between switches."""
    never_full_share = np.zeros(len(capacity))
    never_full_share[:channels] = capacity[:channels] / capacity[-1]
    return never_full_share


def make_state(network: Network) -> FlowState:
    """Make a state with nothing under way."""
    channels = len(network.capacity)
    level = aligned(channels, _CHANNEL, np.float64)
    level[:, CAPACITY] = network.capacity
    level[:, LEVEL] = np.inf
    channel = level.view(np.int32)
    channel[:, MEMBERS] = np.arange(channels) * _MIN_MEMBERS
    channel[:, SIZE] = _MIN_MEMBERS
    channel[:, QUEUED] = -1
    entry_blocks, member_blocks = np.full(_SIZES + 1, -1), np.full(_SIZES + 1, -1)
    entry_blocks[_SIZES], member_blocks[_SIZES] = 0, channels * _MIN_MEMBERS
    totals = np.zeros(_TOTALS, np.int64)
    totals[FIRST_FREE] = totals[PENDING] = -1
    totals[RECORDS] = 1
    messages, entries, members = 256, 1024, 2 * channels * _MIN_MEMBERS
    message = aligned(messages, _MESSAGE, np.int64)
    keys, minimum = _aligned_row(channels, np.int64), _aligned_row(-(-channels // KEYS), np.int64)
    keys[:] = minimum[:] = NO_KEY
    return FlowState(
        message=message,
        amounts=message.view(np.float64),
        rate=np.zeros(messages),
        agenda=make_tournament(messages),
        touched=np.zeros(messages, np.int64),
        entry_channel=np.zeros(entries, np.int32),
        entry_position=np.zeros(entries, np.int32),
        entry_share=np.zeros(entries),
        member=_aligned_row(members, np.int32),
        member_entry=np.zeros(members, np.int32),
        member_share=_aligned_row(members, np.float64),
        entry_blocks=entry_blocks,
        member_blocks=member_blocks,
        channel=channel,
        level=level,
        never_full_share=never_full_share(network.capacity, network.channels),
        queue=np.zeros(channels, np.int64),
        keys=keys,
        block_minimum=minimum,
        suspects=np.zeros(channels, np.int64),
        carried=np.zeros(channels),
        totals=totals,
    )


_ARRAYS_OF = {
    MESSAGES_FULL: ("message", "rate", "touched"),
    ENTRIES_FULL: ("entry_channel", "entry_position", "entry_share"),
    MEMBERS_FULL: ("member", "member_entry", "member_share"),
}


def _doubled(array: Any) -> Any:
    """Copy an array to one of twice as many records; the others are zeros."""
    copy = aligned(2 * len(array), array.size // len(array), array.dtype).reshape(-1, *array.shape[1:])
    copy[: len(array)] = array
    return copy


def doubled_state(state: FlowState, full: int) -> FlowState:
    """Make twice the room for what there is too much of; full: MESSAGES_FULL, ENTRIES_FULL or MEMBERS_FULL."""
    state = state._replace(**{name: _doubled(getattr(state, name)) for name in _ARRAYS_OF[full]})
    return state._replace(amounts=state.message.view(np.float64), agenda=enlarged(state.agenda, len(state.message)))


@inner
def _size_of(count):
    """Find the exponent of the smallest block for ``count`` entries."""
    size = 0
    while 1 << size < count:
        size += 1
    return size


@inner
def _allocate_block(links, blocks, size):
    """Take a free block of 2**size records; its first one. links: int32, of the records."""
    first = blocks[size]
    if first >= 0:
        blocks[size] = links[first]
        return first
    first = blocks[_SIZES]
    blocks[_SIZES] = first + (1 << size)
    return first


@inner
def _free_block(links, blocks, size, first):
    """Give a block of 2**size records back."""
    links[first] = blocks[size]
    blocks[size] = first


@inner
def find_shortage(state, path, count):
    """Find what there is too little of for one more message on ``count`` channels; ENOUGH if nothing."""
    if state.totals[FIRST_FREE] < 0 and state.totals[RECORDS] == len(state.message):
        return MESSAGES_FULL
    if state.entry_blocks[_SIZES] + (1 << _size_of(count)) > len(state.entry_channel):
        return ENTRIES_FULL
    members_needed = state.member_blocks[_SIZES]
    for i in range(count):
        channel = path.channel[i]
        if state.channel[channel, USED] == state.channel[channel, SIZE]:
            members_needed += 2 * state.channel[channel, SIZE]
    return MEMBERS_FULL if members_needed > len(state.member) else SUFFICIENT


@inner
def new_message(state):
    """Take a free record for a message."""
    message = state.totals[FIRST_FREE]
    if message >= 0:
        state.totals[FIRST_FREE] = state.message[message, BLOCK]
        return message
    message = state.totals[RECORDS]
    state.totals[RECORDS] = message + 1
    return message


@inner
def free_message(state, message):
    """Free the record of a message."""
    state.message[message, BLOCK] = state.totals[FIRST_FREE]
    state.totals[FIRST_FREE] = message


@inner
def _move_member(state, old, new):
    """Move a member to a place that is nobody's; the one that it had is nobody's then."""
    state.member[new] = state.member[old]
    state.member_entry[new] = state.member_entry[old]
    state.member_share[new] = state.member_share[old]
    state.member[old] = 0
    state.member_share[old] = 0.0


@inner
def _double_members(state, channel):
    """Make twice the room for the members of a channel."""
    old, size = state.channel[channel, MEMBERS], state.channel[channel, SIZE]
    new = _allocate_block(state.member_entry, state.member_blocks, _size_of(2 * size))
    for i in range(size):
        _move_member(state, old + i, new + i)
    _free_block(state.member_entry, state.member_blocks, _size_of(size), old)
    state.channel[channel, MEMBERS] = new
    state.channel[channel, SIZE] = 2 * size


@inner
def join_channels(state, message, path, count):
    """Make a message a member of the channels of its way; its rate is to be found.

    count: of the channels in ``path.channel``.
    """
    block = _allocate_block(state.entry_channel, state.entry_blocks, _size_of(count))
    state.message[message, BLOCK] = block
    state.message[message, COUNT] = count
    for i in range(count):
        channel = path.channel[i]
        used = state.channel[channel, USED]
        if used == state.channel[channel, SIZE]:
            _double_members(state, channel)
        state.channel[channel, USED] = used + 1
        state.level[channel, TOTAL_SHARE] += path.share[channel]
        state.entry_channel[block + i] = channel
        state.entry_position[block + i] = used
        state.entry_share[block + i] = path.share[channel]
        index = state.channel[channel, MEMBERS] + used
        state.member[index] = message
        state.member_entry[index] = block + i
        state.member_share[index] = path.share[channel]


@inner
def leave_channels(state, message):
    """Take a message out of all its channels; all of its flits have been carried."""
    block, count = state.message[message, BLOCK], state.message[message, COUNT]
    for entry in range(block, block + count):
        channel, share = state.entry_channel[entry], state.entry_share[entry]
        used, load = state.channel[channel, USED] - 1, share * state.rate[message]
        state.channel[channel, USED] = used
        state.level[channel, TOTAL_SHARE] = state.level[channel, TOTAL_SHARE] - share if used > 0 else 0.0
        state.level[channel, LOAD] = state.level[channel, LOAD] - load if used > 0 else 0.0
        if channel == state.message[message, BOTTLENECK]:
            state.level[channel, LIMITED_SHARE] -= share
        state.carried[channel] += share * state.amounts[message, FLITS]
        index, last = (
            state.channel[channel, MEMBERS] + state.entry_position[entry],
            state.channel[channel, MEMBERS] + used,
        )
        state.member[index] = 0
        state.member_share[index] = 0.0
        if index != last:
            _move_member(state, last, index)
            state.entry_position[state.member_entry[index]] = state.entry_position[entry]
    _free_block(state.entry_channel, state.entry_blocks, _size_of(count), block)
    state.message[message, COUNT] = 0
