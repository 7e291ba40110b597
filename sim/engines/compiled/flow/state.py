# SPDX-License-Identifier: Apache-2.0
"""State of a run of mode flow, which grows with the messages in flight."""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints, Ints32
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.flow.tournament import NO_KEY, enlarged, make_tournament
from flitlab.sim.engines.compiled.memory import aligned
from flitlab.sim.engines.compiled.simd import KEYS_PER_VECTOR, RATES_PER_VECTOR
from flitlab.sim.engines.flow.model import FlowConstants

# Fields of a message in flight, in ``message`` (int64) and, SEND_RATE, REMAINING and FLITS, in ``amounts`` (float64),
# which is the same memory. BLOCK, COUNT: its entries; none once it has left its source. BOTTLENECK: the full channel
# that limits its rate. TOUCHED_AT: last instant at which its rate was updated. SEND_RATE: flits/tick, constant since
# the time RATE_SINCE. REMAINING: flits not sent at RATE_SINCE, times RESOLUTION. SEND: the operation. FLITS: of all its
# packets. LATENCY: from the end of transmission to delivery, in ticks / RESOLUTION.
BLOCK, COUNT, BOTTLENECK, TOUCHED_AT, SEND_RATE, REMAINING, RATE_SINCE, SEND, FLITS, LATENCY = range(10)
_MESSAGE = 16

# Fields of a channel, in ``channel`` (int32) and, from CAPACITY on, in ``level`` (float64), again the same memory.
# MEMBERS, SIZE, USED: its block of members, the block's size, and its members. QUEUED: its position in the queue, -1 if
# it is not in it. STALE: whether it has changed since it was scheduled. IS_SUSPECT: whether it may be overloaded.
# CAPACITY: flits/tick. LEVEL: the rate of the messages that it limits, inf if it limits none. LIMITED_SHARE: their
# shares. TOTAL_SHARE: the shares of all members. LOAD: flits/tick.
MEMBERS, SIZE, USED, QUEUED, STALE, IS_SUSPECT = range(6)
CAPACITY, LEVEL, LIMITED_SHARE, TOTAL_SHARE, LOAD = range(3, 8)
_CHANNEL = 8

# Entries of FlowState.totals. RECORDS: message records used so far. FIRST_FREE: first free record, -1 if there is none.
# IN_FLIGHT: messages not delivered. QUEUE: channels in the queue. SUSPECTS: channels that may be overloaded. TOUCHED:
# messages whose rate may change at this instant. INSTANTS: how many there were. NOW: the present one. PENDING: messages
# of the outbox that have started, -1 if all have. DELIVERED: messages.
RECORDS, FIRST_FREE, IN_FLIGHT, QUEUE, SUSPECTS, TOUCHED, INSTANTS, NOW, PENDING, DELIVERED = range(10)
_TOTALS = 10

_SIZES = 48
_MIN_MEMBERS = RATES_PER_VECTOR
KEYS = 16 * KEYS_PER_VECTOR
"""Keys of the queue that share a lower bound."""

# Arrays that may lack capacity.
SUFFICIENT, MESSAGES_FULL, ENTRIES_FULL, MEMBERS_FULL = range(4)


class FlowState(NamedTuple):
    """State of a run of mode flow: all that changes.

    message, amounts: messages in flight, by record; record 0 stands for none. rate: float64 [records], fair rates in
    flits/tick, 0 of record 0. agenda: a tournament of the messages, by the time of their next event. touched: scratch,
    messages.

    entry_channel, entry_position, entry_share: int32, int32 and float64, by entry of a message: a channel, the
    message's position among the members of the channel, and the part of the message's flits that crosses it. member,
    member_entry, member_share: int32, int32 and float64, by member of a channel: a message, its entry, and its share.
    Both are in blocks of a power of two; blocks of members have at least ``RATES_PER_VECTOR``, padded with record 0 and
    share 0. entry_blocks, member_blocks: int64 [_SIZES + 1], the first free block of each size, -1 if there is none,
    and the end of all blocks.

    channel, level: the channels. never_full_share: float64 [channels], total share up to which a channel never is full,
    since the hosts' channels are full before. queue, keys, block_minimum: see ``rate_queue``. suspects: scratch,
    channels. carried: float64 [channels], flits of the messages that have left their source. totals: see above.
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
    """Make an array of zeros whose vectors are whole cache lines."""
    return aligned(-(-count // KEYS_PER_VECTOR) * KEYS_PER_VECTOR, 1, dtype).ravel()


def never_full_share(capacity: Floats, channels: int) -> Floats:
    """Total share up to which each channel never is full; channels: number of those between switches."""
    never_full_share = np.zeros(len(capacity))
    never_full_share[:channels] = capacity[:channels] / capacity[-1]
    return never_full_share


def make_state(network: FlowConstants) -> FlowState:
    """Make a state without messages in flight."""
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
    keys, block_minimum = _aligned_row(channels, np.int64), _aligned_row(-(-channels // KEYS), np.int64)
    keys[:] = block_minimum[:] = NO_KEY
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
        block_minimum=block_minimum,
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
    """Double the arrays that lack capacity; full: MESSAGES_FULL, ENTRIES_FULL or MEMBERS_FULL."""
    state = state._replace(**{name: _doubled(getattr(state, name)) for name in _ARRAYS_OF[full]})
    return state._replace(amounts=state.message.view(np.float64), agenda=enlarged(state.agenda, len(state.message)))


@inline
def _size_of(count):
    """Return the exponent of the smallest block for ``count`` entries."""
    size = 0
    while 1 << size < count:
        size += 1
    return size


@inline
def _allocate_block(links, blocks, size):
    """Allocate a block of 2**size records, and return its first one; links: int32, of the records."""
    first = blocks[size]
    if first >= 0:
        blocks[size] = links[first]
        return first
    first = blocks[_SIZES]
    blocks[_SIZES] = first + (1 << size)
    return first


@inline
def _free_block(links, blocks, size, first):
    """Free a block of 2**size records."""
    links[first] = blocks[size]
    blocks[size] = first


@inline
def find_shortage(state, path, count):
    """Return which array lacks capacity for a message on ``count`` channels; SUFFICIENT if none does."""
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


@inline
def new_message(state):
    """Allocate the record of a message."""
    message = state.totals[FIRST_FREE]
    if message >= 0:
        state.totals[FIRST_FREE] = state.message[message, BLOCK]
        return message
    message = state.totals[RECORDS]
    state.totals[RECORDS] = message + 1
    return message


@inline
def free_message(state, message):
    """Free the record of a message."""
    state.message[message, BLOCK] = state.totals[FIRST_FREE]
    state.totals[FIRST_FREE] = message


@inline
def _move_member(state, old, new):
    """Move a member to an unused position."""
    state.member[new] = state.member[old]
    state.member_entry[new] = state.member_entry[old]
    state.member_share[new] = state.member_share[old]
    state.member[old] = 0
    state.member_share[old] = 0.0


@inline
def _double_members(state, channel):
    """Double the capacity for members of a channel."""
    old, size = state.channel[channel, MEMBERS], state.channel[channel, SIZE]
    new = _allocate_block(state.member_entry, state.member_blocks, _size_of(2 * size))
    for i in range(size):
        _move_member(state, old + i, new + i)
    _free_block(state.member_entry, state.member_blocks, _size_of(size), old)
    state.channel[channel, MEMBERS] = new
    state.channel[channel, SIZE] = 2 * size


@inline
def join_channels(state, message, path, count):
    """Make a message a member of its channels; its rate has yet to be computed.

    Parameters
    ----------
    message: int64, its record.
    path: workspace with ``channel``, int64, and ``share``, float64 [channels], of the message.
    count: int64, channels in ``path.channel``.
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


@inline
def leave_channels(state, message):
    """Remove a message, all of whose flits are sent, from its channels."""
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
