"""What a run at flow level is made of, and how it grows with the messages under way."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints, Ints32
from flitlab.models.jit import inner
from flitlab.sim.engines.flow.model import Network

# Fields of a message under way, in ``message`` (int64) and, from RATE on, in ``amounts`` (float64), which are the same
# memory: whatever one looks at together is in one cache line. SEND: the operation. BLOCK, COUNT: its entries, none once
# it has left its source. NECK: the full channel that holds it back, -1 while it rises. TOUCHED_AT: the last instant at
# which its rate was looked into. PLACE: in the heap of what happens next to messages; WHEN it does. SINCE: since when
# it has gone at its rate. LATENCY: from its leaving the source to its delivery.
# RATE: its fair share, inf while it rises. GOING: the rate at which it goes. LEFT: what has not left its source at
# SINCE, in flits times units of a tick. FLITS: of all its packets.
BLOCK, COUNT, NECK, TOUCHED_AT, PLACE, WHEN, SINCE, SEND, LATENCY = range(9)
RATE, GOING, LEFT, FLITS = range(9, 13)
_MESSAGE = 16

# Fields of an entry of a message, int32: a channel, and the message's place among the members of that.
CHANNEL, AT = range(2)
# Fields of a member of a channel, int32: a message, and which of its entries this is; and float64: its RATE, and SHARE,
# what the channel carries of every flit of the message.
MESSAGE, ENTRY = range(2)
SPEED, SHARE = range(2)

# Fields of a channel, in ``channel`` (int32) and, from CAPACITY on, in ``level`` (float64), again the same memory.
# MEMBERS, SIZE, USED: its block of members, the size of that and how many there are. QUEUED: its place in the queue of
# channels to be looked into, -1 if it is not in it. STALE: whether it has changed since its KEY was found. LETS_GO:
# whether it is then to let go of those that it holds.
# LEVEL: the rate of those that it holds back, inf if it holds none. KEY: the rate at which it is its turn, or less.
# WEIGHT: the shares of all members. LOOSE: it is never full with no more than this weight.
MEMBERS, SIZE, USED, QUEUED, STALE, LETS_GO = range(6)
CAPACITY, LEVEL, KEY, WEIGHT, LOOSE = range(3, 8)
_CHANNEL = 8

# Places in FlowState.totals. RECORDS: message records that have been used; SPARE: the first of those that are free, -1
# if there is none. UNDER_WAY: messages in the heap. QUEUE: channels in the queue. TOUCHED: messages whose rate was
# looked into at this instant. INSTANTS: how many there were. NOW: the present one. PENDING: sends of the outbox that
# are under way already, -1 if all are. DELIVERED: messages.
RECORDS, SPARE, UNDER_WAY, QUEUE, TOUCHED, INSTANTS, NOW, PENDING, DELIVERED = range(9)
_TOTALS = 9

_SIZES = 48
_FEW = 4

# What there may be too few of.
ENOUGH, MESSAGES_FULL, ENTRIES_FULL, MEMBERS_FULL = range(4)


class FlowState(NamedTuple):
    """The state of a run at flow level: all that changes.

    message, amounts: the messages under way, by record. heap: of them, by WHEN. touched: scratch, of them. entries: of
    messages, and members, parts: of channels, in blocks of a power of two. entry_blocks, member_blocks: int64
    [_SIZES + 1], the first free block of each size, -1 if there is none, and where the blocks end. channel, level: the
    channels. queue: of them, by KEY. carried: float64 [channels], flits of the messages that have left their source.
    """

    message: Ints
    amounts: Floats
    heap: Ints
    touched: Ints
    entries: Ints32
    members: Ints32
    parts: Floats
    entry_blocks: Ints
    member_blocks: Ints
    channel: Ints32
    level: Floats
    queue: Ints
    carried: Floats
    totals: Ints


def make_state(network: Network) -> FlowState:
    """Make a state with nothing under way."""
    channels = len(network.capacity)
    level = np.zeros((channels, _CHANNEL))
    level[:, CAPACITY] = network.capacity
    level[:, LEVEL] = np.inf
    level[: network.channels, LOOSE] = network.capacity[: network.channels] / network.capacity[-1]
    channel = level.view(np.int32)
    channel[:, MEMBERS] = np.arange(channels) * _FEW
    channel[:, SIZE] = _FEW
    channel[:, QUEUED] = -1
    entry_blocks, member_blocks = np.full(_SIZES + 1, -1), np.full(_SIZES + 1, -1)
    entry_blocks[_SIZES], member_blocks[_SIZES] = 0, channels * _FEW
    totals = np.zeros(_TOTALS, np.int64)
    totals[SPARE] = totals[PENDING] = -1
    messages, members = 256, 2 * channels * _FEW
    message = np.zeros((messages, _MESSAGE), np.int64)
    return FlowState(
        message=message,
        amounts=message.view(np.float64),
        heap=np.zeros(messages, np.int64),
        touched=np.zeros(messages, np.int64),
        entries=np.zeros((1024, 2), np.int32),
        members=np.zeros((members, 2), np.int32),
        parts=np.zeros((members, 2)),
        entry_blocks=entry_blocks,
        member_blocks=member_blocks,
        channel=channel,
        level=level,
        queue=np.zeros(channels, np.int64),
        carried=np.zeros(channels),
        totals=totals,
    )


def grown(state: FlowState, full: int) -> FlowState:
    """Make twice the room for what there is too much of; full: MESSAGES_FULL, ENTRIES_FULL or MEMBERS_FULL."""
    names = {
        MESSAGES_FULL: ("message", "heap", "touched"), ENTRIES_FULL: ("entries",), MEMBERS_FULL: ("members", "parts")
    }  # fmt: skip
    arrays = {name: getattr(state, name) for name in names[full]}
    state = state._replace(**{name: np.concatenate([array, np.zeros_like(array)]) for name, array in arrays.items()})
    return state._replace(amounts=state.message.view(np.float64))


@inner
def _size_of(count):
    """Find the exponent of the smallest block for ``count`` entries."""
    size = 0
    while 1 << size < count:
        size += 1
    return size


@inner
def _take_block(pool, blocks, size):
    """Take a free block of 2**size entries from a pool; its first entry."""
    first = blocks[size]
    if first >= 0:
        blocks[size] = pool[first, 0]
        return first
    first = blocks[_SIZES]
    blocks[_SIZES] = first + (1 << size)
    return first


@inner
def _give_block(pool, blocks, size, first):
    """Give a block of 2**size entries back to its pool."""
    pool[first, 0] = blocks[size]
    blocks[size] = first


@inner
def lacking(state, way, count):
    """Find what there is too little of for one more message on ``count`` channels; ENOUGH if nothing."""
    if state.totals[SPARE] < 0 and state.totals[RECORDS] == len(state.message):
        return MESSAGES_FULL
    if state.entry_blocks[_SIZES] + (1 << _size_of(count)) > len(state.entries):
        return ENTRIES_FULL
    wanted = state.member_blocks[_SIZES]
    for i in range(count):
        channel = way.channel[i]
        if state.channel[channel, USED] == state.channel[channel, SIZE]:
            wanted += 2 * state.channel[channel, SIZE]
    return MEMBERS_FULL if wanted > len(state.members) else ENOUGH


@inner
def new_message(state):
    """Take a free record for a message."""
    message = state.totals[SPARE]
    if message >= 0:
        state.totals[SPARE] = state.message[message, BLOCK]
        return message
    message = state.totals[RECORDS]
    state.totals[RECORDS] = message + 1
    return message


@inner
def forget(state, message):
    """Free the record of a message."""
    state.message[message, BLOCK] = state.totals[SPARE]
    state.totals[SPARE] = message


@inner
def _widen(state, channel):
    """Make twice the room for the members of a channel."""
    old, size = state.channel[channel, MEMBERS], state.channel[channel, SIZE]
    new = _take_block(state.members, state.member_blocks, _size_of(2 * size))
    for i in range(size):
        for field in range(2):
            state.members[new + i, field] = state.members[old + i, field]
            state.parts[new + i, field] = state.parts[old + i, field]
    _give_block(state.members, state.member_blocks, _size_of(size), old)
    state.channel[channel, MEMBERS] = new
    state.channel[channel, SIZE] = 2 * size


@inner
def join(state, message, way, count):
    """Make a message a member of the channels of its way; its rate is to be found.

    count: of the channels in ``way.channel``.
    """
    block = _take_block(state.entries, state.entry_blocks, _size_of(count))
    state.message[message, BLOCK] = block
    state.message[message, COUNT] = count
    for i in range(count):
        channel = way.channel[i]
        used = state.channel[channel, USED]
        if used == state.channel[channel, SIZE]:
            _widen(state, channel)
        state.channel[channel, USED] = used + 1
        state.level[channel, WEIGHT] += way.share[channel]
        state.entries[block + i, CHANNEL] = channel
        state.entries[block + i, AT] = used
        place = state.channel[channel, MEMBERS] + used
        state.members[place, MESSAGE] = message
        state.members[place, ENTRY] = block + i
        state.parts[place, SPEED] = np.inf
        state.parts[place, SHARE] = way.share[channel]


@inner
def leave(state, message):
    """Take a message out of all its channels; all of its flits have been carried."""
    block, count = state.message[message, BLOCK], state.message[message, COUNT]
    for entry in range(block, block + count):
        channel, at = state.entries[entry, CHANNEL], state.entries[entry, AT]
        first, used = state.channel[channel, MEMBERS], state.channel[channel, USED] - 1
        part = state.parts[first + at, SHARE]
        state.channel[channel, USED] = used
        state.level[channel, WEIGHT] = state.level[channel, WEIGHT] - part if used > 0 else 0.0
        state.carried[channel] += part * state.amounts[message, FLITS]
        if at != used:
            for field in range(2):
                state.members[first + at, field] = state.members[first + used, field]
                state.parts[first + at, field] = state.parts[first + used, field]
            state.entries[state.members[first + at, ENTRY], AT] = at
    _give_block(state.entries, state.entry_blocks, _size_of(count), block)
    state.message[message, COUNT] = 0
