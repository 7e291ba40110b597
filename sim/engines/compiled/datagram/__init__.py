"""The datagram discipline, compiled.

In a tick come, in this order: packets that arrive at queues and hosts, and acknowledgements that come back without
queues; timers; what a program does. Packets and timers of one tick are in the order of
:func:`flitlab.models.rules.datagram.precedence`.
"""

from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inner, njit, routine
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.datagram import precedence
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.newreno import CWND
from flitlab.models.transport.session import LATEST, Change, Session
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.datagram.hosts import deliver, ring, take_timer
from flitlab.sim.engines.compiled.datagram.links import accept, break_link, take_head
from flitlab.sim.engines.compiled.datagram.messages import make_talk
from flitlab.sim.engines.compiled.datagram.program import act, wakes
from flitlab.sim.engines.compiled.datagram.state import (
    ACK_BIT,
    AT,
    FREE_AT,
    HEAD,
    KIND,
    NOBODY,
    POOL,
    SERVING,
    SUBFLOW,
    SYN,
    TAIL,
    TRACE,
    TRACED,
    WINDOW,
    along,
    build,
    larger_pool,
    larger_windows,
    longer_trace,
)
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.ranks import execution_of, has_events, is_done
from flitlab.sim.engines.datagram.base import LINK_COUNTS, RECEIVED, Counters, Trace, check_lossless

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.int64(0xFFFFFFFF)

_AHEAD, _SOON = 3, 1
"""How many arrivals ahead memory is asked for, and then for what that points to."""

_FEW = 8
"""Up to so many are put in order by exchanging neighbours."""


@inner
def _next_slot(const, state, tick, until):
    """Find the first tick from ``tick`` on, and before ``until``, in which a link awaits a packet; else ``until``."""
    around = min(tick + const.mask + 1, until)
    while tick < around:
        slot = np.uint64(tick & const.mask)
        word = state.bits[slot >> np.uint64(6)] & (_ALL << (slot & np.uint64(63)))
        if word:
            return min(tick - (tick & 63) + lowest(word), until)
        tick += 64 - (tick & 63)
    return until


@inner
def _gather(const, state, tick):
    """List the links that await a packet in a tick in ``state.members``; how many they are."""
    slot = np.uint64(tick & const.mask)
    link = np.int64(state.slot[slot])
    state.slot[slot] = NOBODY
    state.bits[slot >> np.uint64(6)] &= ~(_ONE << (slot & np.uint64(63)))
    count = np.int64(0)
    while link != NOBODY:
        state.members[count] = link
        count += 1
        prefetch(state.link, link)
        link = np.int64(state.after[link])
    return count


@inner
def _gather_timers(const, state, tick):
    """List the timers that ring in a tick in ``state.members``, each numbered after all links; how many they are."""
    count = np.int64(0)
    while state.timers[len(state.timers) - 1] > 0 and state.timers[0] >> 24 == tick:
        state.members[count] = const.links + take_timer(state)
        count += 1
    return count


@inner
def _line_up(members, scratch, count, seed, tick):
    """Put those who do something in a tick in the order of precedence.

    Where they are several, the precedence is put above their numbers. members: int64, the first ``count`` are used.
    scratch: int64 [2 * members + 1].
    """
    if count == 1:
        return
    for k in range(count):
        members[k] = precedence(seed, tick, members[k])
    if count > _FEW:
        _sort(members, scratch, count)
        return
    for i in range(1, count):
        for k in range(i, 0, -1):  # to exchange always is quicker than to mispredict whether
            low, high = min(members[k - 1], members[k]), max(members[k - 1], members[k])
            members[k - 1], members[k] = low, high


@routine
def _sort(members, scratch, count):
    """Sort many by distributing them over as many buckets by what was drawn, which is even.

    The little left to do is done by insertion. members: int64, the first ``count`` are used. scratch: int64 [2 *
    members + 1].
    """
    ends, spread = scratch[: count + 1], scratch[count + 1 :]
    ends[:] = 0
    for k in range(count):
        ends[((members[k] >> 32) * count >> 31) + 1] += 1
    for k in range(count):
        ends[k + 1] += ends[k]
    for k in range(count):
        bucket = (members[k] >> 32) * count >> 31
        spread[ends[bucket]] = members[k]
        ends[bucket] += 1
    for k in range(count):
        key, place = spread[k], np.int64(k)
        while place > 0 and members[place - 1] > key:
            members[place] = members[place - 1]
            place -= 1
        members[place] = key


@inner
def _goes_on(const, link):
    """Tell whether what comes off a link goes on another."""
    return link < const.eject or const.feeders <= link < const.links


@inner
def _next_link(const, state, link):
    """Find the link onto which the first packet of a link goes; at its host, that onto which its subflow sends."""
    packet = state.link[link, HEAD]
    if _goes_on(const, link):
        return np.int64(state.path[np.int64(state.packet[packet, AT]) + 1])
    return np.int64(state.path[state.path_start[state.packet[packet, SUBFLOW]]])


@inner
def _foresee(const, state, link):
    """Begin to load what is looked at when the first packet of a link arrives."""
    onto = _next_link(const, state, link)
    prefetch(state.link, onto)
    prefetch(state.link_counts, onto)
    prefetch(const.fixed, onto)
    if not _goes_on(const, link):
        subflow = np.int64(state.packet[state.link[link, HEAD], SUBFLOW])
        prefetch(state.senders.seq, subflow)
        prefetch(state.senders.win, subflow)
        prefetch(state.senders.rtt, subflow)
        prefetch(state.senders.window, subflow)
        prefetch(state.subflow_counts, subflow)
        prefetch(state.receiver, subflow)
        prefetch(state.held, subflow)


@inner
def _foresee_queue(const, state, link):
    """Begin to load the packets of the queue that the first packet of a link, or the next of its subflow, joins."""
    onto = _next_link(const, state, link)
    if state.link[onto, SERVING] != NOBODY:
        prefetch(state.packet, state.link[onto, SERVING])
        prefetch(state.packet, state.link[onto, TAIL])


@njit
def advance(const, state, tick, until):
    """Simulate the ticks from ``tick`` to ``until`` - 1.

    Returns the tick reached, which is earlier if something has to grow first (see ``state.wants``).
    """
    while True:
        timers = state.timers[len(state.timers) - 1]
        rings = state.timers[0] >> 24 if timers > 0 else until
        tick = _next_slot(const, state, tick, wakes(state.talk, min(rings, until)))
        if tick >= until:
            return until
        slot = np.uint64(tick & const.mask)
        if state.bits[slot >> np.uint64(6)] >> (slot & np.uint64(63)) & _ONE:
            count = _gather(const, state, tick)
            _line_up(state.members, state.scratch, count, const.seed, tick)
            if count > 1:
                for k in range(count):
                    prefetch(state.packet, state.link[state.members[k] & _LOW, HEAD])
                for k in range(min(count, _AHEAD)):
                    _foresee(const, state, state.members[k] & _LOW)
            for k in range(count):
                if k + _AHEAD < count:
                    _foresee(const, state, state.members[k + _AHEAD] & _LOW)
                if k + _SOON < count:
                    _foresee_queue(const, state, state.members[k + _SOON] & _LOW)
                link = state.members[k] & _LOW
                packet = take_head(const, state, link, tick)
                if _goes_on(const, link):
                    at = np.int64(state.packet[packet, AT]) + 1
                    state.packet[packet, AT] = at
                    accept(const, state, np.int64(state.path[at]), packet, tick)
                else:
                    deliver(const, state, link, packet, tick)
        count = _gather_timers(const, state, tick)
        if count > 0:
            _line_up(state.members, state.scratch, count, const.seed, tick)
        for k in range(count):
            ring(const, state, (state.members[k] & _LOW) - const.links, tick)
        act(state.talk, const, state, tick)
        tick += 1
        if state.free[len(state.free) - 1] < const.reserve:
            state.wants[POOL] = 1
        if state.wants[POOL] | state.wants[WINDOW] | state.wants[TRACE]:
            return tick


class CompiledDatagrams:
    """A simulation of datagrams under way, compiled (see :class:`flitlab.sim.engines.datagram.base.DatagramRun`)."""

    latest = LATEST

    def __init__(self, session: Session, trace: bool = False):
        self.given = session
        session = with_feeders(session)
        self._talk: Any = make_talk(session)
        self._constants, self._state = build(session, trace, self._talk)
        self._channels = session.topology.channels
        self._changes = list(session.changes)
        self._tick = 0

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``; links break and subflows move as the session says.

        Raises ``OverflowError`` beyond the last tick that timers are made for, and
        :class:`~flitlab.sim.engines.datagram.base.MessageLost` if a packet of a program without a transport is dropped.
        """
        while self._changes and self._changes[0].tick < until:
            change = self._changes.pop(0)
            self._run(change.tick)
            self._apply(change)
        self._run(until)

    def _apply(self, change: Change) -> None:
        for link in change.broken.tolist():
            break_link(self._constants, self._state, link, change.tick)
        self._state = along(self._state, change.moved, change.paths, change.back)

    def _run(self, until: int) -> None:
        if until > LATEST:
            raise OverflowError(f"a run takes more than {LATEST} ticks, and timers are not made for more")
        while self._tick < until:
            self._tick = advance(self._constants, self._state, self._tick, until)
            if self._talk is not None and self._constants.paced:
                check_lossless(self._state.subflow_counts)
            self._grow()

    def _grow(self) -> None:
        wants = self._state.wants
        for flag, grow in ((POOL, larger_pool), (WINDOW, larger_windows), (TRACE, longer_trace)):
            if wants[flag]:
                self._state = grow(self._state)
                wants[flag] = 0

    def counters(self) -> Counters:
        state, links = self._state, self._constants.links
        return Counters(
            self._tick, state.subflow_counts.copy(), state.link_counts[:links, :LINK_COUNTS].copy(),
            state.finished.copy(), state.senders.win[:, CWND].copy(),
        )  # fmt: skip

    def in_flight(self) -> Ints:
        state = self._state
        used = np.ones(len(state.packet), bool)
        used[state.free[: state.free[-1]]] = False
        used &= (state.packet[:, KIND] & ACK_BIT == 0) & (state.packet[:, KIND] != SYN)
        return np.bincount(state.packet[used, SUBFLOW], minlength=len(state.receiver))

    def trace(self) -> Trace:
        if not len(self._state.trace):
            raise ValueError("the run was started without trace=True")
        return Trace(*self._state.trace[: self._state.wants[TRACED]].T.copy())

    def done(self) -> bool:
        return is_done(self._talk.ranks)

    def standing(self) -> Standing:
        received = int(self._state.subflow_counts[:, RECEIVED].sum())
        return Standing(
            received, int(self._state.left.sum()), int(self.in_flight().sum()), has_events(self._talk.ranks)
        )

    def execution(self) -> Execution:
        return execution_of(self._talk.ranks)

    def carried(self) -> Ints:
        channels = slice(0, self._channels)
        ahead = np.maximum(0, self._state.link[channels, FREE_AT] - self._tick)
        carried: Ints = self._talk.busy[channels] - ahead
        return carried
