# SPDX-License-Identifier: Apache-2.0
"""The events of a program, the same in every compiled discipline (see docs/applications.md).

A discipline calls :func:`turn` in every tick for which :func:`next_event` or an :func:`arrived` message asks, and then
lets the messages in the outbox join the queues of their hosts.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.messages import CTS, DATA, DELIVERED, RTS, UNSENT, ticks_of
from flitlab.models.application.program import CALC, RECV, SEND
from flitlab.models.application.scratch import scratch
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Bools, Ints, Ints32
from flitlab.models.jit import inline, kernel
from flitlab.sim.engines.base import FINISHED, MESSAGE, PROCESSOR, STARTED, Execution

# What happens to an operation, in this order within a tick.
READY, BEGUN, QUEUED, ARRIVED, DONE = 0, 1, 2, 3, 4

_EARLY = 1
_NEVER = np.int64(1) << 62

# Places in Ranks.totals.
EVENTS, ENDED, OUTBOX = 0, 1, 2


class Ranks(NamedTuple):
    """A program and how far it has come; times in ticks / ``resolution``.

    kind .. successor: see :class:`~flitlab.models.application.program.Program`. rank: int32 [operations]. numerator,
    denominator: nanoseconds of a time unit. left: int32 [operations], dependencies that are not met. stage: int8
    [operations], of a send's message. asked: bool [operations], of a send, whether its RTS has arrived. ready .. cause:
    see :class:`~flitlab.sim.engines.base.Execution`. lane: int64 [ranks], 0; or, where several threads share a run and
    a rank's host is in the region of another one, that region, plus 1. free, holder: int64 [ranks * cpus], when a
    processor is free and the operation that held it last. when, what: a binary heap of events, ordered by time and 8 *
    operation + event. outbox: int64 [operations], sends whose message, as far as its stage says, joins a queue now.
    totals: see above.
    """

    kind: np.ndarray
    amount: Ints
    partner: Ints
    cpu: np.ndarray
    after: Ints
    successor: Ints
    rank: Ints32
    cpus: int
    rendezvous: int
    buffered: bool
    confirmed: bool
    overhead: int
    resolution: int
    numerator: int
    denominator: int
    left: Ints32
    stage: np.ndarray
    asked: Bools
    ready: Ints
    start: Ints
    finish: Ints
    queued: Ints
    delivered: Ints
    cause: Ints
    lane: Ints
    free: Ints
    holder: Ints
    when: Ints
    what: Ints
    outbox: Ints
    totals: Ints


def make_ranks(workload: Workload, resolution: int = 1) -> Ranks:
    """Make a program before its first event; resolution: units of time in a tick.

    Raises ``ValueError`` if it has times too long to be counted.
    """
    program, messages = workload.program, workload.messages
    unit = messages.tick_ns / resolution
    calculations = program.amount[program.kind == CALC]
    if int(calculations.max(initial=0)) * unit.denominator >= _NEVER:
        raise ValueError("a calculation is too long to be counted in ticks")
    operations, processors = program.operations, program.ranks * program.cpus
    events = 3 * operations + 1  # an operation may have two to come, and a send one of its message
    ranks = Ranks(
        kind=program.kind,
        amount=program.amount,
        partner=program.partner,
        cpu=program.cpu,
        after=program.after,
        successor=program.successor,
        rank=program.rank,
        cpus=program.cpus,
        rendezvous=messages.rendezvous,
        buffered=messages.buffered,
        confirmed=messages.confirmed,
        overhead=messages.overhead * resolution,
        resolution=resolution,
        numerator=unit.numerator,
        denominator=unit.denominator,
        left=program.need.copy(),
        stage=scratch(operations, np.int8, UNSENT),
        asked=scratch(operations, np.bool_),
        ready=scratch(operations, np.int64, -1),
        start=scratch(operations, np.int64, -1),
        finish=scratch(operations, np.int64, -1),
        queued=scratch(operations, np.int64, -1),
        delivered=scratch(operations, np.int64, -1),
        cause=scratch(operations, np.int64, -1),
        lane=np.zeros(program.ranks, np.int64),
        free=np.zeros(processors, np.int64),
        holder=np.full(processors, -1, np.int64),
        when=scratch(events, np.int64),
        what=scratch(events, np.int64),
        outbox=scratch(operations, np.int64),
        totals=np.zeros(3, np.int64),
    )
    _begin(ranks)
    return ranks


def is_done(ranks: Ranks) -> bool:
    """Tell whether every operation is done."""
    return bool(ranks.totals[ENDED] == len(ranks.kind))


def has_events(ranks: Ranks) -> bool:
    """Tell whether something will happen to an operation by itself."""
    return bool(ranks.totals[EVENTS] > 0)


def execution_of(ranks: Ranks) -> Execution:
    """Copy what became of the operations so far."""
    return Execution(
        resolution=ranks.resolution,
        ready=_copy(ranks.ready),
        start=_copy(ranks.start),
        finish=_copy(ranks.finish),
        queued=_copy(ranks.queued),
        delivered=_copy(ranks.delivered),
        cause=_copy(ranks.cause),
    )


def _copy(array: Ints) -> Ints:
    """Copy an array into scratch memory."""
    copy = scratch(len(array), array.dtype)
    copy[:] = array
    return copy


@inline
def _push(ranks, time, event):
    """Put an event, 8 * operation + what happens, into the heap."""
    i = ranks.totals[EVENTS]
    ranks.totals[EVENTS] = i + 1
    while i > 0:
        above = (i - 1) >> 1
        if ranks.when[above] < time or (ranks.when[above] == time and ranks.what[above] < event):
            break
        ranks.when[i], ranks.what[i] = ranks.when[above], ranks.what[above]
        i = above
    ranks.when[i], ranks.what[i] = time, event


@inline
def _pop(ranks):
    """Remove the first event from the heap and return it."""
    first = ranks.what[0]
    last = ranks.totals[EVENTS] - 1
    ranks.totals[EVENTS] = last
    time, event = ranks.when[last], ranks.what[last]
    i = np.int64(0)
    while True:
        below = 2 * i + 1
        if below >= last:
            break
        other = below + 1
        if other < last and (
            ranks.when[other] < ranks.when[below]
            or (ranks.when[other] == ranks.when[below] and ranks.what[other] < ranks.what[below])
        ):
            below = other
        if time < ranks.when[below] or (time == ranks.when[below] and event < ranks.what[below]):
            break
        ranks.when[i], ranks.what[i] = ranks.when[below], ranks.what[below]
        i = below
    ranks.when[i], ranks.what[i] = time, event
    return first


def divided(ranks: Ranks, region: Ints, regions: int) -> list[Ranks]:
    """Divide a program before its first event among regions; region: int64 [ranks], in which the host of each is.

    The parts share the arrays of which each entry belongs to one rank, or to a message that is in one region at a time.
    """
    parts = []
    for here in range(regions):
        part = ranks._replace(
            lane=np.where(region == here, 0, region + 1),
            when=scratch(len(ranks.when), np.int64),
            what=scratch(len(ranks.what), np.int64),
            outbox=scratch(len(ranks.outbox), np.int64),
            totals=np.zeros_like(ranks.totals),
        )
        _begin(part)
        parts.append(part)
    return parts


@kernel
def _begin(ranks):
    """Put the operations of the ranks here that wait for nothing into the heap."""
    for operation in range(len(ranks.left)):
        if ranks.left[operation] == 0 and ranks.lane[ranks.rank[operation]] == 0:
            _push(ranks, 0, 8 * operation + READY)


@inline
def _release(ranks, operation, early, now):
    """Count down what waits for the end of an operation (early 0) or for its start (early 1)."""
    for e in range(ranks.after[operation], ranks.after[operation + 1]):
        entry = ranks.successor[e]
        if entry & _EARLY == early:
            waiting = entry >> 1
            ranks.left[waiting] -= 1
            if ranks.left[waiting] == 0:
                ranks.cause[waiting] = 4 * operation + (STARTED if early else FINISHED)
                _push(ranks, now, 8 * waiting + READY)


@inline
def _take(ranks, operation, hold, now):
    """Give an operation its processor for the time ``hold`` as soon as that is free; the time of its start."""
    place = np.int64(ranks.rank[operation]) * ranks.cpus + ranks.cpu[operation]
    start = now
    if ranks.free[place] > now:
        start = ranks.free[place]
        ranks.cause[operation] = 4 * ranks.holder[place] + PROCESSOR
    ranks.free[place] = start + hold
    ranks.holder[place] = operation
    ranks.start[operation] = start
    return start


@inline
def _take_in(ranks, operation, now):
    """Let a receive that is ready, and whose message is there, take the message in."""
    _push(ranks, _take(ranks, operation, ranks.overhead, now) + ranks.overhead, 8 * operation + DONE)


@inline
def _join(ranks, operation, now):
    """Let the message of a send, as far as its stage says, join its host's queue."""
    if ranks.rank[operation] == ranks.rank[ranks.partner[operation]]:
        _push(ranks, now + ranks.resolution, 8 * operation + ARRIVED)
    else:
        ranks.outbox[ranks.totals[OUTBOX]] = operation
        ranks.totals[OUTBOX] += 1


@inline
def _consent(ranks, operation, now):
    """Let the receiver of a send consent to its data."""
    ranks.stage[operation] = CTS
    _join(ranks, operation, now)


@inline
def _ready(ranks, operation, now):
    """Begin with an operation, all of whose dependencies are met."""
    ranks.ready[operation] = now
    if ranks.kind[operation] == RECV:
        _release(ranks, operation, 1, now)
        send = ranks.partner[operation]
        if ranks.stage[send] == DELIVERED:
            _take_in(ranks, operation, now)
        elif ranks.stage[send] == RTS and ranks.asked[send]:
            _consent(ranks, send, now)
        return
    hold = ranks.overhead
    if ranks.kind[operation] == CALC:
        hold = ticks_of(ranks.amount[operation], ranks.numerator, ranks.denominator)
    start = _take(ranks, operation, hold, now)
    _push(ranks, start, 8 * operation + BEGUN)
    _push(ranks, start + hold, 8 * operation + (QUEUED if ranks.kind[operation] == SEND else DONE))


@inline
def _queued(ranks, operation, now):
    """Hand over the message of a send that has had its processor."""
    ranks.queued[operation] = now
    if ranks.amount[operation] > ranks.rendezvous:
        ranks.stage[operation] = RTS
    else:
        ranks.stage[operation] = DATA
        if ranks.buffered or ranks.rank[operation] == ranks.rank[ranks.partner[operation]]:
            _push(ranks, now, 8 * operation + DONE)
    _join(ranks, operation, now)


@inline
def _is_confirmed(ranks, send):
    """Tell whether a send to another rank is done when its message has been delivered."""
    if ranks.amount[send] > ranks.rendezvous:
        return True
    return ranks.confirmed and ranks.rank[send] != ranks.rank[ranks.partner[send]]


@inline
def _arrived(ranks, operation, now):
    """Go on with a send whose message, as far as its stage says, is all at its receiver's host."""
    receive = ranks.partner[operation]
    if ranks.stage[operation] == RTS:
        ranks.asked[operation] = True
        if ranks.ready[receive] >= 0:
            _consent(ranks, operation, now)
    elif ranks.stage[operation] == CTS:
        ranks.stage[operation] = DATA
        _join(ranks, operation, now)
    else:
        ranks.stage[operation] = DELIVERED
        ranks.delivered[operation] = now
        if _is_confirmed(ranks, operation) and ranks.lane[ranks.rank[operation]] == 0:
            _push(ranks, now, 8 * operation + DONE)
        if ranks.ready[receive] >= 0:
            ranks.cause[receive] = 4 * operation + MESSAGE
            _take_in(ranks, receive, now)


@inline
def arrived(ranks, send, now):
    """Note that all packets of a send's message, as far as its stage says, have been delivered.

    It is to be called before the :func:`turn` of ``now``.
    """
    _push(ranks, now, 8 * send + ARRIVED)


@inline
def left(ranks, send, time):
    """Note that the last flit of a send's message, as far as its stage says, has left its host by ``time``."""
    if ranks.stage[send] == DATA and not ranks.buffered and not _is_confirmed(ranks, send):
        _push(ranks, time, 8 * send + DONE)


@inline
def lane_of_waiting(ranks, send):
    """Return the lane of the rank that waits until all of a message is delivered; 0: nobody in another region does."""
    if ranks.stage[send] == DATA and _is_confirmed(ranks, send):
        return ranks.lane[ranks.rank[send]]
    return np.int64(0)


@inline
def will_be_delivered(ranks, send, time):
    """Note that all of the message of a send that waits for that will have been delivered in another region."""
    _push(ranks, time, 8 * send + DONE)


@inline
def next_event(ranks):
    """Return the time of the next event that is known, far away if there is none."""
    return ranks.when[0] if ranks.totals[EVENTS] > 0 else _NEVER


@inline
def turn(ranks, now):
    """Work through the events of ``now``; the messages that join queues are then in the outbox, in order.

    Returns how many events there were. The discipline empties the outbox by setting ``totals[OUTBOX]`` to 0.
    """
    events = 0
    while ranks.totals[EVENTS] > 0 and ranks.when[0] <= now:
        event = _pop(ranks)
        operation, what = event >> 3, event & 7
        events += 1
        if what == READY:
            _ready(ranks, operation, now)
        elif what == BEGUN:
            _release(ranks, operation, 1, now)
        elif what == QUEUED:
            _queued(ranks, operation, now)
        elif what == ARRIVED:
            _arrived(ranks, operation, now)
        else:
            ranks.finish[operation] = now
            ranks.totals[ENDED] += 1
            _release(ranks, operation, 0, now)
    return events


@inline
def sender(ranks, send):
    """Return the rank that a send's message comes from, as far as its stage says: a consent comes from the receiver."""
    return ranks.rank[ranks.partner[send]] if ranks.stage[send] == CTS else ranks.rank[send]


@inline
def receiver(ranks, send):
    """Return the rank that a send's message, as far as its stage says, goes to."""
    return ranks.rank[send] if ranks.stage[send] == CTS else ranks.rank[ranks.partner[send]]


@inline
def size(ranks, send):
    """Return the bytes of a send's message, as far as its stage says."""
    return ranks.amount[send] if ranks.stage[send] == DATA else np.int64(0)


@inline
def wakes(talk, until):
    """Find the next tick in which a program does something, at most ``until``; talk: has its ranks, or is None."""
    return until if talk is None else min(next_event(talk.ranks), until)
