# SPDX-License-Identifier: Apache-2.0
"""A run at flow level, which goes from one instant at which something happens to the next."""

import numpy as np

from flitlab.models.application.messages import DATA, packets_of, total_flits
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow as FlowSwitching
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.flow.sharing import relieve, resize, set_out, share
from flitlab.sim.engines.compiled.flow.state import (
    BLOCK,
    CAPACITY,
    COUNT,
    DELIVERED,
    ENOUGH,
    FLITS,
    GOING,
    INSTANTS,
    LATENCY,
    LEFT,
    NECK,
    NOW,
    PENDING,
    RECORDS,
    SEND,
    SINCE,
    TOUCHED,
    UNDER_WAY,
    forget,
    grown,
    join,
    lacking,
    leave,
    loose_of,
    make_state,
    new_message,
)
from flitlab.sim.engines.compiled.flow.tournament import OUT, first, keys_of, set_key, smallest
from flitlab.sim.engines.compiled.ranks import (
    OUTBOX,
    arrived,
    execution_of,
    has_events,
    is_done,
    left,
    make_ranks,
    next_event,
    receiver,
    sender,
    size,
    turn,
)
from flitlab.sim.engines.flow.model import (
    DEAD,
    RESOLUTION,
    Flowing,
    NetworkStep,
    comes_more,
    find_way,
    flits_in,
    leave_way,
    make_network,
    make_steps,
    make_way,
    steady,
)

NEVER = 1 << 62
"""A time that nothing is known to happen at."""

STILL = 1e-30
"""A rate that is none; what has nothing left has left in no time at it."""


@inline
def _begin(network, way, ranks, host, state, send, now):
    """Let the message of a send begin to flow.

    host: int64 [ranks]. Returns ENOUGH, or what there is too little room of for it.
    """
    source, destination, bytes_ = host[sender(ranks, send)], host[receiver(ranks, send)], size(ranks, send)
    stage, packets = np.int64(ranks.stage[send]), packets_of(bytes_, network.packet_bytes)
    count, latency = find_way(network, way, source, destination, send, stage, packets)
    lack = lacking(state, way, count)
    if lack == ENOUGH:
        message = new_message(state)
        flits = np.float64(flits_in(network, bytes_))
        state.message[message, SEND] = send
        state.message[message, NECK] = -1
        state.message[message, SINCE] = now
        state.message[message, LATENCY] = latency
        state.rate[message] = 0.0
        state.amounts[message, GOING] = 0.0
        state.amounts[message, LEFT] = flits * RESOLUTION
        state.amounts[message, FLITS] = flits
        join(state, message, way, count)
        set_out(state, message, network.link[np.int64(network.channels + source)])
        state.totals[UNDER_WAY] += 1
    leave_way(way, count)
    return lack


@inline
def _is_cut(state, message):
    """Tell whether a message takes a channel that does not work."""
    for entry in range(state.message[message, BLOCK], state.message[message, BLOCK] + state.message[message, COUNT]):
        if state.level[state.entry_channel[entry], CAPACITY] == DEAD:
            return True
    return False


@inline
def _lead_anew(network, way, ranks, host, state, message, now):
    """Let what is left of a message go the way that it finds now.

    host: int64 [ranks]. Returns ENOUGH, or what there is too little room of for it.
    """
    send = state.message[message, SEND]
    source, destination = host[sender(ranks, send)], host[receiver(ranks, send)]
    stage, packets = np.int64(ranks.stage[send]), packets_of(size(ranks, send), network.packet_bytes)
    count, latency = find_way(network, way, source, destination, send, stage, packets)
    lack = lacking(state, way, count)
    if lack == ENOUGH:
        flits = state.amounts[message, FLITS]
        left = state.amounts[message, LEFT] - state.amounts[message, GOING] * (now - state.message[message, SINCE])
        sent = flits - max(0.0, left) / RESOLUTION
        block = state.message[message, BLOCK]
        for entry in range(block, block + state.message[message, COUNT]):
            relieve(state, state.entry_channel[entry])
        state.amounts[message, FLITS] = sent
        leave(state, message)
        state.amounts[message, FLITS] = flits - sent
        state.amounts[message, LEFT] = left
        state.message[message, SINCE] = now
        state.message[message, LATENCY] = latency
        state.message[message, NECK] = -1
        state.rate[message] = 0.0
        join(state, message, way, count)
        set_out(state, message, network.link[np.int64(network.channels + source)])
    leave_way(way, count)
    return lack


@kernel
def _resize_all(network, state, loose, now):
    """Give the channels between switches the capacities that they have from now on; loose: float64 [channels]."""
    state.totals[NOW] = now
    state.totals[INSTANTS] += 1
    for channel in range(network.channels):
        if state.level[channel, CAPACITY] != network.capacity[channel]:
            resize(state, channel, network.capacity[channel], loose[channel])


@kernel
def _reroute(network, way, ranks, host, state):
    """Lead messages anew that take a channel that does not work; it can be called again with more room.

    host: int64 [ranks]. Returns ENOUGH, or what there is too little room of.
    """
    for message in range(state.totals[RECORDS]):
        if state.message[message, COUNT] > 0 and _is_cut(state, message):
            lack = _lead_anew(network, way, ranks, host, state, message, state.totals[NOW])
            if lack != ENOUGH:
                return lack
    return ENOUGH


@inline
def _end(ranks, state, message, now):
    """Note that the last flit of a message has left its source."""
    left(ranks, state.message[message, SEND], now)
    for entry in range(state.message[message, BLOCK], state.message[message, BLOCK] + state.message[message, COUNT]):
        relieve(state, state.entry_channel[entry])
    leave(state, message)
    set_key(state.agenda, message, now + state.message[message, LATENCY])


@inline
def _deliver(ranks, state, message, now):
    """Hand a message over to its receiver's host, and forget it."""
    arrived(ranks, state.message[message, SEND], now)
    set_key(state.agenda, message, OUT)
    state.totals[UNDER_WAY] -= 1
    state.totals[DELIVERED] += 1
    forget(state, message)


@inline
def _change_rate(state, message, now):
    """Let a message go at its fair share from now on."""
    rate = steady(state.rate[message])
    if rate == state.amounts[message, GOING]:
        return
    state.amounts[message, LEFT] -= state.amounts[message, GOING] * (now - state.message[message, SINCE])
    state.amounts[message, GOING] = rate
    state.message[message, SINCE] = now
    ends = np.int64(OUT)
    if rate > 0.0 or state.amounts[message, LEFT] <= 0.0:  # else it is stalled
        ends = now + np.int64(np.ceil(max(0.0, state.amounts[message, LEFT]) / max(rate, STILL)))
    set_key(state.agenda, message, ends)


@kernel
def _share_all(state):
    """Give every message its fair share again, and let those whose share has changed go at it."""
    share(state)
    for i in range(state.totals[TOUCHED]):
        _change_rate(state, state.touched[i], state.totals[NOW])
    state.totals[TOUCHED] = 0


@inline
def _next(ranks, state):
    """Return the time of what happens next."""
    return min(next_event(ranks), smallest(state.agenda))


@inline
def _happen(ranks, state, now):
    """Let messages leave their sources and arrive, and the program go on, at one instant."""
    state.totals[NOW] = now
    state.totals[INSTANTS] += 1
    while smallest(state.agenda) <= now:
        message = first(state.agenda)
        if state.message[message, COUNT] > 0:
            _end(ranks, state, message, now)
        else:
            _deliver(ranks, state, message, now)
    turn(ranks, now)
    state.totals[PENDING] = 0


@inline
def _begin_all(network, way, ranks, host, state):
    """Let the messages of the outbox begin to flow.

    host: int64 [ranks]. Returns ENOUGH, or what there is too little room of for it.
    """
    while state.totals[PENDING] < ranks.totals[OUTBOX]:
        lack = _begin(network, way, ranks, host, state, ranks.outbox[state.totals[PENDING]], state.totals[NOW])
        if lack != ENOUGH:
            return lack
        state.totals[PENDING] += 1
    ranks.totals[OUTBOX] = 0
    state.totals[PENDING] = -1
    return ENOUGH


@kernel
def _advance(network, way, ranks, host, state, until):
    """Go on for as long as something happens before ``until``, or to where there is too little room.

    host: int64 [ranks]. Returns ENOUGH, or what there is too little room of.
    """
    while True:
        if state.totals[PENDING] < 0:
            now = _next(ranks, state)
            if now >= until:
                return ENOUGH
            _happen(ranks, state, now)
        lack = _begin_all(network, way, ranks, host, state)
        if lack != ENOUGH:
            return lack
        _share_all(state)


@device_function
def _add_under_way(state, now, carried):
    """Add what messages under way have sent to ``carried``, float64 [channels], in flits."""
    for message in range(state.totals[RECORDS]):
        if state.message[message, COUNT] == 0:
            continue
        left = state.amounts[message, LEFT] - state.amounts[message, GOING] * (now - state.message[message, SINCE])
        sent = state.amounts[message, FLITS] - max(0.0, left) / RESOLUTION
        block = state.message[message, BLOCK]
        for entry in range(block, block + state.message[message, COUNT]):
            carried[state.entry_channel[entry]] += sent * state.entry_share[entry]


class FlowRun:
    """A run of mode flow under way, compiled (see :class:`flitlab.sim.engines.base.ApplicationRun`)."""

    latest = NEVER // RESOLUTION

    def __init__(self, scenario: Scenario[FlowSwitching, Workload], seed: int):
        workload = scenario.work
        self._network = make_network(scenario, seed)
        self._steps = make_steps(scenario, self._network)
        self._met = 0  # steps
        self._program, self._messages = workload.program, workload.messages
        self._way = make_way(self._network, scenario.topology.switches)
        self._ranks = make_ranks(workload, RESOLUTION)
        self._host = workload.host
        self._state = make_state(self._network)
        self._now = 0

    def advance(self, until: int) -> None:
        until = max(self._now, min(until * RESOLUTION, NEVER))
        while self._met < len(self._steps) and (step := self._steps[self._met]).tick * RESOLUTION < until:
            self._move(step.tick * RESOLUTION)
            self._happen(step)
            self._met += 1
        self._move(until)

    def _move(self, until: int) -> None:
        """Go on to a time, in ticks / ``RESOLUTION``."""
        self._now = until
        while lack := _advance(self._network, self._way, self._ranks, self._host, self._state, until):
            self._state = grown(self._state, lack)

    def _happen(self, step: NetworkStep) -> None:
        """Give channels the capacities that they have from now on, and messages the ways that the routing learns."""
        self._network = self._network._replace(capacity=step.capacity, routes=step.routes or self._network.routes)
        loose = loose_of(step.capacity, self._network.channels)
        _resize_all(self._network, self._state, loose, self._now)
        if step.routes is not None:
            while lack := _reroute(self._network, self._way, self._ranks, self._host, self._state):
                self._state = grown(self._state, lack)
        _share_all(self._state)

    def done(self) -> bool:
        return is_done(self._ranks)

    def standing(self) -> Standing:
        totals, state = self._state.totals, self._state
        under_way = int(totals[UNDER_WAY])
        stalled = int(((state.message[:, COUNT] > 0) & (state.amounts[:, GOING] == 0.0)).sum())
        coming = under_way > stalled or has_events(self._ranks) or comes_more(self._steps, self._now)
        return Standing(int(totals[INSTANTS]), 0, under_way, coming, stalled)

    def execution(self) -> Execution:
        return execution_of(self._ranks)

    def carried(self) -> Floats:
        by_link = self._state.carried.copy()
        _add_under_way(self._state, self._now, by_link)
        carried: Floats = by_link[self._network.link[: self._network.channels]]
        return carried

    def progress(self) -> Floats:
        state, ranks, program = self._state, self._ranks, self._program
        found = np.zeros(program.operations)
        used = np.arange(state.totals[RECORDS])
        under_way = used[keys_of(state.agenda)[used] < OUT]
        under_way = np.union1d(under_way, used[state.message[used, COUNT] > 0])
        send = state.message[under_way, SEND]
        data = np.asarray(ranks.stage)[send] == DATA
        under_way, send = under_way[data], send[data]
        delivered = np.flatnonzero(self.execution().delivered >= 0)
        crossed = delivered[self._host[program.rank[delivered]] != self._host[program.peer[delivered]]]
        for all_of in (crossed, send):
            found[all_of] = total_flits(program.amount[all_of], self._messages)
        flowing = state.message[under_way, COUNT] > 0
        left = state.amounts[under_way, LEFT]
        left = left - state.amounts[under_way, GOING] * (self._now - state.message[under_way, SINCE])
        found[send[flowing]] -= np.maximum(left[flowing], 0.0) / RESOLUTION
        return found

    def flowing(self) -> Flowing:
        """List the messages that have not left their sources, and how they share the channels."""
        state = self._state
        records = np.flatnonzero(state.message[:, COUNT])
        records = records[np.argsort(state.message[records, SEND])]
        count = state.message[records, COUNT]
        start = np.append(0, np.cumsum(count))
        entry = np.repeat(state.message[records, BLOCK] - start[:-1], count) + np.arange(start[-1])
        channel, share = state.entry_channel[entry].astype(np.int64), state.entry_share[entry]
        return Flowing(state.message[records, SEND], state.amounts[records, GOING], start, channel, share)

    @property
    def delivered(self) -> int:
        """Count the messages delivered so far, requests and consents included."""
        return int(self._state.totals[DELIVERED])
