# SPDX-License-Identifier: Apache-2.0
"""What a run at flow level is made of, and how it grows with the messages under way."""

from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints, Ints32
from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.flow.tournament import OUT, enlarged, make_tournament
from flitlab.sim.engines.compiled.lanes import LANES, RATES
from flitlab.sim.engines.compiled.memory import aligned
from flitlab.sim.engines.flow.model import Network

# Fields of a message under way, in ``message`` (int64) and, from GOING to FLITS, in ``amounts`` (float64), which are
# the same memory: whatever one looks at together is in one cache line. BLOCK, COUNT: its entries, none once it has left
# its source. NECK: the full channel that holds it back. TOUCHED_AT: the last instant at which its rate was looked into.
# SINCE: since when it has gone at its rate. SEND: the operation. LATENCY: from its leaving the source to its delivery.
# GOING: the rate at which it goes. LEFT: what has not left its
# source at SINCE, in flits times units of a tick. FLITS: of all its packets.
BLOCK, COUNT, NECK, TOUCHED_AT, GOING, LEFT, SINCE, SEND, FLITS, LATENCY = range(10)
_MESSAGE = 16

# Fields of a channel, in ``channel`` (int32) and, from CAPACITY on, in ``level`` (float64), again the same memory.
# MEMBERS, SIZE, USED: its block of members, the size of that and how many there are. QUEUED: its place in the queue of
# channels whose turn is to come, -1 if it is not in it. STALE: whether it has changed since its turn was found.
# SUSPECT: whether it is to be examined.
# LEVEL: the rate of those that it holds back, inf if it holds none. HELD: the shares of these.
# WEIGHT: the shares of all members. LOAD: what it carries of those that have a rate, in flits a tick.
MEMBERS, SIZE, USED, QUEUED, STALE, SUSPECT = range(6)
CAPACITY, LEVEL, HELD, WEIGHT, LOAD = range(3, 8)
_CHANNEL = 8

# Places in FlowState.totals. RECORDS: message records that have been used; SPARE: the first of those that are free, -1
# if there is none. UNDER_WAY: messages not delivered yet. QUEUE: channels in the queue. SUSPECTS: channels to be
# examined. TOUCHED: messages whose rate was looked into at this instant. INSTANTS: how many there were. NOW: the
# present one. PENDING: sends of the outbox that are under way already, -1 if all are. DELIVERED: messages.
RECORDS, SPARE, UNDER_WAY, QUEUE, SUSPECTS, TOUCHED, INSTANTS, NOW, PENDING, DELIVERED = range(10)
_TOTALS = 10

_SIZES = 48
_FEW = RATES
KEYS = 16 * LANES
"""Channels of the queue of which one number is kept that is no larger than any of their keys."""

# What there may be too few of.
ENOUGH, MESSAGES_FULL, ENTRIES_FULL, MEMBERS_FULL = range(4)


class FlowState(NamedTuple):
    """The state of a run at flow level: all that changes.

    message, amounts: the messages under way, by record, but the first, which is nobody's. rate: float64 [records],
    their fair shares in flits a tick, 0 of nobody. agenda: a tournament of them, by the time
    at which something happens to them next. touched: scratch, of them.
    entry_channel, entry_at, entry_share: int32, int32 and float64, by entry of a message: a channel, the message's
    place among the members of that, and what the channel carries of every flit of the message. member, member_entry,
    member_share: int32, int32 and float64, by member of a channel: a message, which of its entries this is, and its
    share. They are in blocks of a power of two; those of members are at least ``RATES``, filled up with nobody's, who
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
    entry_at: Ints32
    entry_share: Floats
    member: Ints32
    member_entry: Ints32
    member_share: Floats
    entry_blocks: Ints
    member_blocks: Ints
    channel: Ints32
    level: Floats
    loose: Floats
    queue: Ints
    keys: Ints
    least: Ints
    suspects: Ints
    carried: Floats
    totals: Ints


def _row(count: int, dtype: Any) -> Any:
    """Make an array of zeros, whole blocks of which are whole cache lines."""
    return aligned(-(-count // LANES) * LANES, 1, dtype).ravel()


def loose_of(capacity: Floats, channels: int) -> Floats:
    """The weight with which each channel is never full; channels: how many there are between switches."""
    loose = np.zeros(len(capacity))
    loose[:channels] = capacity[:channels] / capacity[-1]
    return loose


def make_state(network: Network) -> FlowState:
    """Make a state with nothing under way."""
    channels = len(network.capacity)
    level = aligned(channels, _CHANNEL, np.float64)
    level[:, CAPACITY] = network.capacity
    level[:, LEVEL] = np.inf
    channel = level.view(np.int32)
    channel[:, MEMBERS] = np.arange(channels) * _FEW
    channel[:, SIZE] = _FEW
    channel[:, QUEUED] = -1
    entry_blocks, member_blocks = np.full(_SIZES + 1, -1), np.full(_SIZES + 1, -1)
    entry_blocks[_SIZES], member_blocks[_SIZES] = 0, channels * _FEW
    totals = np.zeros(_TOTALS, np.int64)
    totals[SPARE] = totals[PENDING] = -1
    totals[RECORDS] = 1
    messages, entries, members = 256, 1024, 2 * channels * _FEW
    message = aligned(messages, _MESSAGE, np.int64)
    keys, least = _row(channels, np.int64), _row(-(-channels // KEYS), np.int64)
    keys[:] = least[:] = OUT
    return FlowState(
        message=message,
        amounts=message.view(np.float64),
        rate=np.zeros(messages),
        agenda=make_tournament(messages),
        touched=np.zeros(messages, np.int64),
        entry_channel=np.zeros(entries, np.int32),
        entry_at=np.zeros(entries, np.int32),
        entry_share=np.zeros(entries),
        member=_row(members, np.int32),
        member_entry=np.zeros(members, np.int32),
        member_share=_row(members, np.float64),
        entry_blocks=entry_blocks,
        member_blocks=member_blocks,
        channel=channel,
        level=level,
        loose=loose_of(network.capacity, network.channels),
        queue=np.zeros(channels, np.int64),
        keys=keys,
        least=least,
        suspects=np.zeros(channels, np.int64),
        carried=np.zeros(channels),
        totals=totals,
    )


_TOGETHER = {
    MESSAGES_FULL: ("message", "rate", "touched"),
    ENTRIES_FULL: ("entry_channel", "entry_at", "entry_share"),
    MEMBERS_FULL: ("member", "member_entry", "member_share"),
}


def _doubled(array: Any) -> Any:
    """Copy an array to one of twice as many records; the others are zeros."""
    copy = aligned(2 * len(array), array.size // len(array), array.dtype).reshape(-1, *array.shape[1:])
    copy[: len(array)] = array
    return copy


def grown(state: FlowState, full: int) -> FlowState:
    """Make twice the room for what there is too much of; full: MESSAGES_FULL, ENTRIES_FULL or MEMBERS_FULL."""
    state = state._replace(**{name: _doubled(getattr(state, name)) for name in _TOGETHER[full]})
    return state._replace(amounts=state.message.view(np.float64), agenda=enlarged(state.agenda, len(state.message)))


@inline
def _size_of(count):
    """Find the exponent of the smallest block for ``count`` entries."""
    size = 0
    while 1 << size < count:
        size += 1
    return size


@inline
def _take_block(links, blocks, size):
    """Take a free block of 2**size records; its first one. links: int32, of the records."""
    first = blocks[size]
    if first >= 0:
        blocks[size] = links[first]
        return first
    first = blocks[_SIZES]
    blocks[_SIZES] = first + (1 << size)
    return first


@inline
def _give_block(links, blocks, size, first):
    """Give a block of 2**size records back."""
    links[first] = blocks[size]
    blocks[size] = first


@inline
def lacking(state, way, count):
    """Find what there is too little of for one more message on ``count`` channels; ENOUGH if nothing."""
    if state.totals[SPARE] < 0 and state.totals[RECORDS] == len(state.message):
        return MESSAGES_FULL
    if state.entry_blocks[_SIZES] + (1 << _size_of(count)) > len(state.entry_channel):
        return ENTRIES_FULL
    wanted = state.member_blocks[_SIZES]
    for i in range(count):
        channel = way.channel[i]
        if state.channel[channel, USED] == state.channel[channel, SIZE]:
            wanted += 2 * state.channel[channel, SIZE]
    return MEMBERS_FULL if wanted > len(state.member) else ENOUGH


@inline
def new_message(state):
    """Take a free record for a message."""
    message = state.totals[SPARE]
    if message >= 0:
        state.totals[SPARE] = state.message[message, BLOCK]
        return message
    message = state.totals[RECORDS]
    state.totals[RECORDS] = message + 1
    return message


@inline
def forget(state, message):
    """Free the record of a message."""
    state.message[message, BLOCK] = state.totals[SPARE]
    state.totals[SPARE] = message


@inline
def _move_member(state, old, new):
    """Move a member to a place that is nobody's; the one that it had is nobody's then."""
    state.member[new] = state.member[old]
    state.member_entry[new] = state.member_entry[old]
    state.member_share[new] = state.member_share[old]
    state.member[old] = 0
    state.member_share[old] = 0.0


@inline
def _widen(state, channel):
    """Make twice the room for the members of a channel."""
    old, size = state.channel[channel, MEMBERS], state.channel[channel, SIZE]
    new = _take_block(state.member_entry, state.member_blocks, _size_of(2 * size))
    for i in range(size):
        _move_member(state, old + i, new + i)
    _give_block(state.member_entry, state.member_blocks, _size_of(size), old)
    state.channel[channel, MEMBERS] = new
    state.channel[channel, SIZE] = 2 * size


@inline
def join(state, message, way, count):
    """Make a message a member of the channels of its way; its rate is to be found.

    count: of the channels in ``way.channel``.
    """
    block = _take_block(state.entry_channel, state.entry_blocks, _size_of(count))
    state.message[message, BLOCK] = block
    state.message[message, COUNT] = count
    for i in range(count):
        channel = way.channel[i]
        used = state.channel[channel, USED]
        if used == state.channel[channel, SIZE]:
            _widen(state, channel)
        state.channel[channel, USED] = used + 1
        state.level[channel, WEIGHT] += way.share[channel]
        state.entry_channel[block + i] = channel
        state.entry_at[block + i] = used
        state.entry_share[block + i] = way.share[channel]
        place = state.channel[channel, MEMBERS] + used
        state.member[place] = message
        state.member_entry[place] = block + i
        state.member_share[place] = way.share[channel]


@inline
def leave(state, message):
    """Take a message out of all its channels; all of its flits have been carried."""
    block, count = state.message[message, BLOCK], state.message[message, COUNT]
    for entry in range(block, block + count):
        channel, share = state.entry_channel[entry], state.entry_share[entry]
        used, load = state.channel[channel, USED] - 1, share * state.rate[message]
        state.channel[channel, USED] = used
        state.level[channel, WEIGHT] = state.level[channel, WEIGHT] - share if used > 0 else 0.0
        state.level[channel, LOAD] = state.level[channel, LOAD] - load if used > 0 else 0.0
        if channel == state.message[message, NECK]:
            state.level[channel, HELD] -= share
        state.carried[channel] += share * state.amounts[message, FLITS]
        place, last = state.channel[channel, MEMBERS] + state.entry_at[entry], state.channel[channel, MEMBERS] + used
        state.member[place] = 0
        state.member_share[place] = 0.0
        if place != last:
            _move_member(state, last, place)
            state.entry_at[state.member_entry[place]] = state.entry_at[entry]
    _give_block(state.entry_channel, state.entry_blocks, _size_of(count), block)
    state.message[message, COUNT] = 0
