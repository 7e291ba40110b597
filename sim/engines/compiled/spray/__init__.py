# SPDX-License-Identifier: Apache-2.0
"""The spray discipline, compiled.

In a tick services end first, then packets come to the ends of links, in an order that is drawn for every tick, then
timers ring, then a program has its turn. What hosts and switches decide is in :mod:`flitlab.models.rules.spray`.
"""

from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import device_function, inline, njit
from flitlab.models.rules.spray.ports import chosen_port, flow_key
from flitlab.models.transport.fabric import FabricChange, SpraySession
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.awaited import gather, has_members, line_up, next_slot
from flitlab.sim.engines.compiled.pool import NOBODY, doubled
from flitlab.sim.engines.compiled.ranks import execution_of, has_events, is_done, wakes
from flitlab.sim.engines.compiled.spray.ahead import foresee, foresee_packet, foresee_queues
from flitlab.sim.engines.compiled.spray.hosts import (
    begin_flow,
    deliver,
    expire,
    look_for_probe,
    pull,
    settle_nic,
)
from flitlab.sim.engines.compiled.spray.links import (
    accept,
    break_link,
    change_link,
    is_answer,
    is_whole,
    settle,
    take_head,
)
from flitlab.sim.engines.compiled.spray.messages import make_talk
from flitlab.sim.engines.compiled.spray.program import act
from flitlab.sim.engines.compiled.spray.state import (
    BUSY,
    ENDS,
    ENTROPY,
    FLOW,
    HOP,
    HOST,
    KIND,
    KIND_BITS,
    MARKED,
    MOST,
    PACE_TIMER,
    POOL,
    PROBE_TIMER,
    PULL_TIMER,
    SERVING,
    SETTLE_TIMER,
    SIZE,
    TAKEN,
    TIMEOUT_TIMER,
    TO,
    TRACE,
    TRACED,
    build,
    longer_trace,
)
from flitlab.sim.engines.compiled.timers import take_timer
from flitlab.sim.engines.spray.base import Counters, Trace, check_lossless, flow_table, have_ended, standing_of

_LOW, _ONE = np.int64(0xFFFFFFFF), np.int64(1)

_AHEAD, _SOON = 6, 2
"""How many arrivals ahead memory is asked for, and then for what that points to."""


@inline
def _look(const, ways, state, here, packet, now):
    """Let a switch choose the link onto which a packet goes, by what it sees of its queues."""
    record, switches, first, end = state.packet[packet], ways.switches, ways.out_start[here], ways.out_start[here + 1]
    for link in range(first, end):
        if now - switches.level_at[link] > switches.fresh:
            settle(const, state, link, now)
    kind, hop, entropy = record[KIND], np.int64(record[HOP]), np.int64(record[ENTROPY])
    key, target = flow_key(np.int64(record[FLOW]), is_answer(kind)), ways.host_switch[np.int64(record[HOST])]
    data = np.int64(record[SIZE]) if is_whole(kind) else np.int64(0)
    return first + chosen_port(
        ways.routes, ways.built, ways.moved, ways.salts, switches, ways.out_start, here, target, hop, key, entropy,
        data, now,
    )  # fmt: skip


@inline
def _arrive(const, ways, state, i, now):
    """Let the first packet of the i-th link of the tick come to its end."""
    link = state.members[i] & _LOW
    end = const.fixed[link, TO]
    if link >= const.inject and link < const.eject:
        settle_nic(const, state, link - const.inject, now)
    else:
        settle(const, state, link, now)
    packet = take_head(const, state, link, now)
    if link >= const.eject:
        settle_nic(const, state, end, now)
        deliver(const, state, end, packet, now)
        return
    onto = state.onto[i]
    if onto == NOBODY:
        onto = _look(const, ways, state, end, packet, now)
    accept(const, state, onto, packet, now)


@device_function
def _ring(const, state, key, now):
    """Let a timer ring."""
    kind, index = key >> const.index_bits & ((_ONE << KIND_BITS) - 1), key & ((_ONE << const.index_bits) - 1)
    host = index if kind >= PULL_TIMER and kind != PROBE_TIMER else const.ends[index, 0]
    settle_nic(const, state, host, now)
    if kind == TIMEOUT_TIMER:
        expire(const, state, host, index, now)
    elif kind == PULL_TIMER:
        pull(const, state, host, now)
    elif kind == PROBE_TIMER:
        look_for_probe(const, state, host, index, now)
    elif kind != SETTLE_TIMER:
        begin_flow(const, state, host, index, kind == PACE_TIMER, now)


@device_function
def _settle_all(const, state, now):
    """Find out what all servers have done up to and in a tick."""
    for link in range(const.links):
        if link >= const.inject and link < const.eject:
            settle_nic(const, state, link - const.inject, now)
        else:
            settle(const, state, link, now)


@njit
def advance(const, ways, state, tick, until):
    """Simulate the ticks from ``tick`` to ``until`` - 1.

    Returns the tick reached, which is earlier, and has timers that did not ring yet, if something has to grow first
    (see ``state.wants``).
    """
    count_at, shift = len(state.timers) - 1, const.index_bits + KIND_BITS
    while True:
        rings = state.timers[0] >> shift if state.timers[count_at] > 0 else until
        tick = next_slot(const, state, tick, wakes(state.talk, min(rings, until)))
        if tick >= until:
            break
        if has_members(const, state, tick):
            count = gather(const, state, tick)
            line_up(state.members, state.scratch, count, const.rules.seed, tick)
            for i in range(count):
                foresee_packet(state, i)
            for i in range(min(count, _AHEAD)):
                foresee(const, ways, state, i)
            for i in range(count):
                if i + _AHEAD < count:
                    foresee(const, ways, state, i + _AHEAD)
                if i + _SOON < count:
                    foresee_queues(const, state, i + _SOON)
                _arrive(const, ways, state, i, tick)
        while state.timers[count_at] > 0 and state.timers[0] >> shift == tick:
            if state.free[len(state.free) - 1] < const.reserve:
                break
            _ring(const, state, take_timer(state.timers), tick)
        if state.free[len(state.free) - 1] < const.reserve:
            state.wants[POOL] = 1
        if state.wants[POOL] | state.wants[TRACE]:
            return tick
        act(state.talk, const, state, tick)
        tick += 1
    _settle_all(const, state, until - 1)
    return until


class CompiledSpray:
    """A simulation of sprayed packets under way, compiled.

    See :class:`flitlab.sim.engines.spray.base.SprayApplicationRun`.
    """

    def __init__(self, session: SpraySession, trace: bool = False):
        self.given = session
        self._talk: Any = make_talk(session)
        self._constants, self._state, self._ways = build(session, trace, self._talk)
        self._changes = list(session.changes)
        self._tick = 0

    @property
    def latest(self) -> int:
        """The last tick that a run may reach."""
        return self._constants.latest

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``; links and routes change as the session says.

        Raises ``OverflowError`` beyond the last tick that timers are made for.
        """
        while self._changes and self._changes[0].tick < until:
            change = self._changes.pop(0)
            self._run(change.tick)
            self._apply(change)
        self._run(until)

    def _apply(self, change: FabricChange) -> None:
        constants, state, ways = self._constants, self._state, self._ways
        for link in change.broken.tolist():
            break_link(constants, state, link, change.tick)
        for link, ratio, room, low, high in np.column_stack([change.other, *change.settings]).tolist():
            change_link(constants, state, link, ratio, room, low, high, change.tick)
        ways.switches.queue_bytes[change.other] = change.settings.queue_bytes
        if change.routes is not None:
            self._ways = ways._replace(routes=change.routes, moved=change.moved)

    def _run(self, until: int) -> None:
        if until > self.latest:
            raise OverflowError(f"a run takes more than {self.latest} ticks, and timers are not made for more")
        while self._tick < until:
            self._tick = advance(self._constants, self._ways, self._state, self._tick, until)
            for flag, grow in ((POOL, doubled), (TRACE, longer_trace)):
                if self._state.wants[flag]:
                    self._state = grow(self._state)
                    self._state.wants[flag] = 0
        if self._talk is not None and not self.given.rules.acknowledges:
            check_lossless(int(self._state.lost.sum()))

    def counters(self) -> Counters:
        state = self._state
        flows = flow_table(self.given, state.senders, state.receivers)
        link = state.link
        links = [link[:, TAKEN], *state.lost.T, link[:, MARKED], link[:, MOST], link[:, BUSY]]
        return Counters(self._tick, flows, np.stack(links, axis=1))

    def ended(self) -> bool:
        state = self._state
        return have_ended(self.given, state.senders, state.receivers)

    def done(self) -> bool:
        return is_done(self._talk.ranks)

    def standing(self) -> Standing:
        state = self._state
        return standing_of(self.given, state.senders, state.receivers, self._tick, has_events(self._talk.ranks))

    def execution(self) -> Execution:
        return execution_of(self._talk.ranks)

    def carried(self) -> Ints:
        link = self._state.link[: self._constants.inject]
        ahead = np.where(link[:, SERVING] == NOBODY, 0, np.maximum(0, link[:, ENDS] - self._tick))
        carried: Ints = link[:, BUSY] - ahead
        return carried

    def trace(self) -> Trace:
        if not len(self._state.trace):
            raise ValueError("the run was started without trace=True")
        return Trace(*self._state.trace[: self._state.wants[TRACED]].T.copy())
