# SPDX-License-Identifier: Apache-2.0
"""State of a run of mode flow, which grows with the messages in flight."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flitlab.models.arrays import Floats, Ints, Ints32
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.flow.tournament import NO_KEY, enlarged, make_tournament
from flitlab.sim.engines.compiled.memory import aligned, aligned_records
from flitlab.sim.engines.compiled.simd import KEYS_PER_VECTOR, RATES_PER_VECTOR
from flitlab.sim.engines.flow import FlowConstants

# A message in flight, two cache lines.
_MESSAGE = np.dtype(
    [
        ("block", np.int64),  # first of its entries
        ("count", np.int64),  # entries; none once it has left its source
        ("bottleneck", np.int64),  # the full channel that limits its rate
        ("touched_at", np.int64),  # last instant at which its rate was updated
        ("send_rate", np.float64),  # flits/tick, constant since the time ``rate_since``
        ("remaining", np.float64),  # flits not sent at ``rate_since``, times RESOLUTION
        ("rate_since", np.int64),
        ("send", np.int64),  # the operation
        ("flits", np.float64),  # of all its packets
        ("latency", np.int64),  # from the end of transmission to delivery, in ticks / RESOLUTION
        ("unused", np.int64, 6),
    ]
)

# A channel, a cache line.
_CHANNEL = np.dtype(
    [
        ("members", np.int32),  # first of its block of members
        ("size", np.int32),  # of the block
        ("used", np.int32),  # members
        ("queued", np.int32),  # position in the queue, -1 if it is not in it
        ("stale", np.int32),  # whether it has changed since it was scheduled
        ("is_suspect", np.int32),  # whether it may be overloaded
        ("capacity", np.float64),  # flits/tick
        ("level", np.float64),  # the rate of the messages that it limits, inf if it limits none
        ("limited_share", np.float64),  # of these messages
        ("total_share", np.float64),  # of all members
        ("load", np.float64),  # flits/tick
    ]
)


class _Total(NamedTuple):
    """Entries of ``FlowState.totals``."""

    RECORDS: int = 0  # message records used so far
    FIRST_FREE: int = 1  # first free record, -1 if there is none
    IN_FLIGHT: int = 2  # messages not delivered
    QUEUE: int = 3  # channels in the queue
    SUSPECTS: int = 4  # channels that may be overloaded
    TOUCHED: int = 5  # messages whose rate may change at this instant
    INSTANTS: int = 6  # how many there were
    NOW: int = 7  # the present one
    PENDING: int = 8  # messages of the outbox that have started, -1 if all have
    DELIVERED: int = 9  # messages


Total = _Total()

_SIZES = 48
_MIN_MEMBERS = RATES_PER_VECTOR
KEYS = 16 * KEYS_PER_VECTOR
"""Keys of the queue that share a lower bound."""

# Arrays that may lack capacity.
SUFFICIENT, MESSAGES_FULL, ENTRIES_FULL, MEMBERS_FULL = range(4)


class FlowState(NamedTuple):
    """State of a run of mode flow: all that changes.

    message: _MESSAGE [records], messages in flight; record 0 stands for none. rate: float64 [records], fair rates in
    flits/tick, 0 of record 0. agenda: a tournament of the messages, by the time of their next event. touched: scratch,
    messages.

    entry_channel, entry_position, entry_share: int32, int32 and float64, by entry of a message: a channel, the
    message's position among the members of the channel, and the part of the message's flits that crosses it. member,
    member_entry, member_share: int32, int32 and float64, by member of a channel: a message, its entry, and its share.
    Both are in blocks of a power of two; blocks of members have at least ``RATES_PER_VECTOR``, padded with record 0 and
    share 0. entry_blocks, member_blocks: int64 [_SIZES + 1], the first free block of each size, -1 if there is none,
    and the end of all blocks.

    channel: _CHANNEL [channels]. never_full_share: float64 [channels], total share up to which a channel never is full,
    since the hosts' channels are full before. queue, keys, block_minimum: see ``rate_queue``. suspects: scratch,
    channels. carried: float64 [channels], flits of the messages that have left their source. totals: see above.
    """

    message: np.ndarray
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
    channel: np.ndarray
    never_full_share: Floats
    queue: Ints
    keys: Ints
    block_minimum: Ints
    suspects: Ints
    carried: Floats
    totals: Ints


def _aligned_row(count: int, dtype: npt.DTypeLike) -> np.ndarray:
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
    channel = aligned_records(channels, _CHANNEL)
    channel["members"] = np.arange(channels) * _MIN_MEMBERS
    channel["size"] = _MIN_MEMBERS
    channel["queued"] = -1
    channel["capacity"] = network.capacity
    channel["level"] = np.inf
    entry_blocks, member_blocks = np.full(_SIZES + 1, -1), np.full(_SIZES + 1, -1)
    entry_blocks[_SIZES], member_blocks[_SIZES] = 0, channels * _MIN_MEMBERS
    totals = np.zeros(len(Total), np.int64)
    totals[Total.FIRST_FREE] = totals[Total.PENDING] = -1
    totals[Total.RECORDS] = 1
    messages, entries, members = 256, 1024, 2 * channels * _MIN_MEMBERS
    keys, block_minimum = _aligned_row(channels, np.int64), _aligned_row(-(-channels // KEYS), np.int64)
    keys[:] = block_minimum[:] = NO_KEY
    return FlowState(
        message=aligned_records(messages, _MESSAGE),
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


def _doubled(array: np.ndarray) -> np.ndarray:
    """Copy an array to one of twice as many records; the others are zeros."""
    copy = aligned_records(2 * len(array), array.dtype)
    copy[: len(array)] = array
    return copy


def doubled_state(state: FlowState, full: int) -> FlowState:
    """Double the arrays that lack capacity; full: MESSAGES_FULL, ENTRIES_FULL or MEMBERS_FULL."""
    state = state._replace(**{name: _doubled(getattr(state, name)) for name in _ARRAYS_OF[full]})
    return state._replace(agenda=enlarged(state.agenda, len(state.message)))


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
    if state.totals[Total.FIRST_FREE] < 0 and state.totals[Total.RECORDS] == len(state.message):
        return MESSAGES_FULL
    if state.entry_blocks[_SIZES] + (1 << _size_of(count)) > len(state.entry_channel):
        return ENTRIES_FULL
    members_needed = state.member_blocks[_SIZES]
    for i in range(count):
        channel = path.channel[i]
        if state.channel[channel].used == state.channel[channel].size:
            members_needed += 2 * state.channel[channel].size
    return MEMBERS_FULL if members_needed > len(state.member) else SUFFICIENT


@inline
def new_message(state):
    """Allocate the record of a message."""
    message = state.totals[Total.FIRST_FREE]
    if message >= 0:
        state.totals[Total.FIRST_FREE] = state.message[message].block
        return message
    message = state.totals[Total.RECORDS]
    state.totals[Total.RECORDS] = message + 1
    return message


@inline
def free_message(state, message):
    """Free the record of a message."""
    state.message[message].block = state.totals[Total.FIRST_FREE]
    state.totals[Total.FIRST_FREE] = message


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
    old, size = state.channel[channel].members, state.channel[channel].size
    new = _allocate_block(state.member_entry, state.member_blocks, _size_of(2 * size))
    for i in range(size):
        _move_member(state, old + i, new + i)
    _free_block(state.member_entry, state.member_blocks, _size_of(size), old)
    state.channel[channel].members = new
    state.channel[channel].size = 2 * size


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
    state.message[message].block = block
    state.message[message].count = count
    for i in range(count):
        channel = path.channel[i]
        used = state.channel[channel].used
        if used == state.channel[channel].size:
            _double_members(state, channel)
        state.channel[channel].used = used + 1
        state.channel[channel].total_share += path.share[channel]
        state.entry_channel[block + i] = channel
        state.entry_position[block + i] = used
        state.entry_share[block + i] = path.share[channel]
        index = state.channel[channel].members + used
        state.member[index] = message
        state.member_entry[index] = block + i
        state.member_share[index] = path.share[channel]


@inline
def leave_channels(state, message):
    """Remove a message, all of whose flits are sent, from its channels."""
    block, count = state.message[message].block, state.message[message].count
    for entry in range(block, block + count):
        channel, share = state.entry_channel[entry], state.entry_share[entry]
        used, load = state.channel[channel].used - 1, share * state.rate[message]
        state.channel[channel].used = used
        state.channel[channel].total_share = state.channel[channel].total_share - share if used > 0 else 0.0
        state.channel[channel].load = state.channel[channel].load - load if used > 0 else 0.0
        if channel == state.message[message].bottleneck:
            state.channel[channel].limited_share -= share
        state.carried[channel] += share * state.message[message].flits
        index, last = (
            state.channel[channel].members + state.entry_position[entry],
            state.channel[channel].members + used,
        )
        state.member[index] = 0
        state.member_share[index] = 0.0
        if index != last:
            _move_member(state, last, index)
            state.entry_position[state.member_entry[index]] = state.entry_position[entry]
    _free_block(state.entry_channel, state.entry_blocks, _size_of(count), block)
    state.message[message].count = 0
