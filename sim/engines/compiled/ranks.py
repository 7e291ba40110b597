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
from flitlab.models.jit import inner, kernel
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
    [operations], of a send's message. asked: bool [operations], of a send, whether its RTS has arrived. ready ..
    cause: see :class:`~flitlab.sim.engines.base.Execution`. free, holder: int64 [ranks * cpus], when a processor is
    free and the operation that held it last. when, what: a binary heap of events, ordered by time and 8 * operation +
    event. outbox: int64 [operations], sends whose message, as far as its stage says, joins a queue now. totals: see
    above.
    """

    kind: np.ndarray
    amount: np.ndarray
    partner: np.ndarray
    cpu: np.ndarray
    after: np.ndarray
    successor: np.ndarray
    rank: np.ndarray
    cpus: int
    rendezvous: int
    buffered: bool
    overhead: int
    resolution: int
    numerator: int
    denominator: int
    left: np.ndarray
    stage: np.ndarray
    asked: np.ndarray
    ready: np.ndarray
    start: np.ndarray
    finish: np.ndarray
    queued: np.ndarray
    delivered: np.ndarray
    cause: np.ndarray
    free: np.ndarray
    holder: np.ndarray
    when: np.ndarray
    what: np.ndarray
    outbox: np.ndarray
    totals: np.ndarray


def make_ranks(workload: Workload, resolution: int = 1) -> Ranks:
    """A program before its first event. Raises ``ValueError`` if it has times too long to be counted."""
    program, messages = workload.program, workload.messages
    unit = messages.tick_ns / resolution
    calculations = program.amount[program.kind == CALC]
    if int(calculations.max(initial=0)) * unit.denominator >= _NEVER:
        raise ValueError("a calculation is too long to be counted in ticks")
    n, processors = program.operations, program.ranks * program.cpus
    ready, start, finish, queued, delivered, cause = (scratch(n, np.int64, -1) for _ in range(6))
    events = 3 * n + 1  # an operation may have two to come, and a send one of its message
    ranks = Ranks(
        program.kind, program.amount, program.partner, program.cpu, program.after, program.successor, program.rank,
        program.cpus, messages.rendezvous, messages.buffered, messages.overhead * resolution, resolution,
        unit.numerator, unit.denominator, program.need.copy(), scratch(n, np.int8, UNSENT), scratch(n, np.bool_),
        ready, start, finish, queued, delivered, cause, np.zeros(processors, np.int64),
        np.full(processors, -1, np.int64), scratch(events, np.int64), scratch(events, np.int64), scratch(n, np.int64),
        np.zeros(3, np.int64),
    )  # fmt: skip
    _begin(ranks)
    return ranks


def is_done(r: Ranks) -> bool:
    """Whether every operation is done."""
    return bool(r.totals[ENDED] == len(r.kind))


def has_events(r: Ranks) -> bool:
    """Whether something will happen to an operation by itself."""
    return bool(r.totals[EVENTS] > 0)


def execution_of(r: Ranks) -> Execution:
    """What became of the operations so far, copied."""
    times = (r.ready, r.start, r.finish, r.queued, r.delivered, r.cause)
    copies = [scratch(len(array), array.dtype) for array in times]
    for copy, array in zip(copies, times, strict=True):
        copy[:] = array
    return Execution(r.resolution, *copies)


@inner
def _push(r, time, event):
    i = r.totals[EVENTS]
    r.totals[EVENTS] = i + 1
    while i > 0:
        above = (i - 1) >> 1
        if r.when[above] < time or (r.when[above] == time and r.what[above] < event):
            break
        r.when[i], r.what[i] = r.when[above], r.what[above]
        i = above
    r.when[i], r.what[i] = time, event


@inner
def _pop(r):
    """Remove the first event; what it is."""
    first = r.what[0]
    last = r.totals[EVENTS] - 1
    r.totals[EVENTS] = last
    time, event = r.when[last], r.what[last]
    i = np.int64(0)
    while True:
        below = 2 * i + 1
        if below >= last:
            break
        other = below + 1
        if other < last and (
            r.when[other] < r.when[below] or (r.when[other] == r.when[below] and r.what[other] < r.what[below])
        ):
            below = other
        if time < r.when[below] or (time == r.when[below] and event < r.what[below]):
            break
        r.when[i], r.what[i] = r.when[below], r.what[below]
        i = below
    r.when[i], r.what[i] = time, event
    return first


@kernel
def _begin(r):
    for o in range(len(r.left)):
        if r.left[o] == 0:
            _push(r, 0, 8 * o + READY)


@inner
def _release(r, o, early, now):
    """Those that wait for the end, or the start, of an operation need wait no longer."""
    for e in range(r.after[o], r.after[o + 1]):
        entry = r.successor[e]
        if entry & _EARLY == early:
            waiting = entry >> 1
            r.left[waiting] -= 1
            if r.left[waiting] == 0:
                r.cause[waiting] = 4 * o + (STARTED if early else FINISHED)
                _push(r, now, 8 * waiting + READY)


@inner
def _take(r, o, hold, now):
    """An operation gets its processor for a time as soon as that is free."""
    place = np.int64(r.rank[o]) * r.cpus + r.cpu[o]
    start = now
    if r.free[place] > now:
        start = r.free[place]
        r.cause[o] = 4 * r.holder[place] + PROCESSOR
    r.free[place] = start + hold
    r.holder[place] = o
    r.start[o] = start
    return start


@inner
def _take_in(r, o, now):
    """A receive that is ready and whose message is there."""
    _push(r, _take(r, o, r.overhead, now) + r.overhead, 8 * o + DONE)


@inner
def _join(r, o, now):
    """The message of a send, as far as its stage says, joins its host's queue."""
    if r.rank[o] == r.rank[r.partner[o]]:
        _push(r, now + r.resolution, 8 * o + ARRIVED)
    else:
        r.outbox[r.totals[OUTBOX]] = o
        r.totals[OUTBOX] += 1


@inner
def _consent(r, o, now):
    """The receiver of a send lets the data come."""
    r.stage[o] = CTS
    _join(r, o, now)


@inner
def _ready(r, o, now):
    r.ready[o] = now
    if r.kind[o] == RECV:
        _release(r, o, 1, now)
        send = r.partner[o]
        if r.stage[send] == DELIVERED:
            _take_in(r, o, now)
        elif r.stage[send] == RTS and r.asked[send]:
            _consent(r, send, now)
        return
    hold = r.overhead
    if r.kind[o] == CALC:
        hold = ticks_of(r.amount[o], r.numerator, r.denominator)
    start = _take(r, o, hold, now)
    _push(r, start, 8 * o + BEGUN)
    _push(r, start + hold, 8 * o + (QUEUED if r.kind[o] == SEND else DONE))


@inner
def _queued(r, o, now):
    r.queued[o] = now
    if r.amount[o] > r.rendezvous:
        r.stage[o] = RTS
    else:
        r.stage[o] = DATA
        if r.buffered or r.rank[o] == r.rank[r.partner[o]]:
            _push(r, now, 8 * o + DONE)
    _join(r, o, now)


@inner
def _arrived(r, o, now):
    receive = r.partner[o]
    if r.stage[o] == RTS:
        r.asked[o] = True
        if r.ready[receive] >= 0:
            _consent(r, o, now)
    elif r.stage[o] == CTS:
        r.stage[o] = DATA
        _join(r, o, now)
    else:
        r.stage[o] = DELIVERED
        r.delivered[o] = now
        if r.amount[o] > r.rendezvous:
            _push(r, now, 8 * o + DONE)
        if r.ready[receive] >= 0:
            r.cause[receive] = 4 * o + MESSAGE
            _take_in(r, receive, now)


@inner
def arrived(r, send, now):
    """All packets of a send's message, as far as its stage says, have been delivered; to be called before the turn."""
    _push(r, now, 8 * send + ARRIVED)


@inner
def left(r, send, time):
    """The last flit of a send's message, as far as its stage says, has left its host by ``time``."""
    if r.stage[send] == DATA and r.amount[send] <= r.rendezvous and not r.buffered:
        _push(r, time, 8 * send + DONE)


@inner
def next_event(r):
    """The time of the next event that is known, far away if there is none."""
    return r.when[0] if r.totals[EVENTS] > 0 else _NEVER


@inner
def turn(r, now):
    """Work through the events of ``now``; the messages that join queues are then in the outbox, in order.

    Returns how many events there were. The discipline empties the outbox by setting ``totals[OUTBOX]`` to 0.
    """
    events = 0
    while r.totals[EVENTS] > 0 and r.when[0] <= now:
        event = _pop(r)
        o, what = event >> 3, event & 7
        events += 1
        if what == READY:
            _ready(r, o, now)
        elif what == BEGUN:
            _release(r, o, 1, now)
        elif what == QUEUED:
            _queued(r, o, now)
        elif what == ARRIVED:
            _arrived(r, o, now)
        else:
            r.finish[o] = now
            r.totals[ENDED] += 1
            _release(r, o, 0, now)
    return events


@inner
def sender(r, send):
    """The rank that sends a send's message, as far as its stage says: its consent comes from the receiver."""
    return r.rank[r.partner[send]] if r.stage[send] == CTS else r.rank[send]


@inner
def receiver(r, send):
    """The rank that a send's message, as far as its stage says, goes to."""
    return r.rank[send] if r.stage[send] == CTS else r.rank[r.partner[send]]


@inner
def size(r, send):
    """Bytes of a send's message, as far as its stage says."""
    return r.amount[send] if r.stage[send] == DATA else np.int64(0)
