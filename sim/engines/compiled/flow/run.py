"""A run at flow level, which goes from one instant at which something happens to the next."""

import numpy as np

from flitlab.models.application.messages import packets_of
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.jit import inner, kernel, routine
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow as FlowSwitching
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.flow.heap import move, rise, sink, take_first
from flitlab.sim.engines.compiled.flow.sharing import look_into, relieve, share, touch
from flitlab.sim.engines.compiled.flow.state import (
    AT,
    BLOCK,
    CHANNEL,
    COUNT,
    DELIVERED,
    ENOUGH,
    FLITS,
    GOING,
    INSTANTS,
    LATENCY,
    LEFT,
    MEMBERS,
    NECK,
    NOW,
    PENDING,
    PLACE,
    RATE,
    SEND,
    SHARE,
    SINCE,
    TOUCHED,
    UNDER_WAY,
    WHEN,
    forget,
    grown,
    join,
    lacking,
    leave,
    make_state,
    new_message,
)
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
    RESOLUTION,
    Flowing,
    find_way,
    flits_in,
    leave_way,
    make_network,
    make_way,
    steady,
)

NEVER = 1 << 62
"""A time that nothing is known to happen at."""


@inner
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
        state.amounts[message, RATE] = np.inf
        state.amounts[message, GOING] = 0.0
        state.amounts[message, LEFT] = flits * RESOLUTION
        state.amounts[message, FLITS] = flits
        join(state, message, way, count)
        for i in range(count):
            look_into(state, way.channel[i], 0.0)
        touch(state, message)
        state.message[message, WHEN] = NEVER
        under_way = state.totals[UNDER_WAY]
        state.totals[UNDER_WAY] = under_way + 1
        rise(state.heap, under_way, message, state.message, WHEN, state.message, PLACE)
    leave_way(way, count)
    return lack


@inner
def _end(ranks, state, message, now):
    """Note that the last flit of a message has left its source."""
    left(ranks, state.message[message, SEND], now)
    for entry in range(state.message[message, BLOCK], state.message[message, BLOCK] + state.message[message, COUNT]):
        relieve(state, state.entries[entry, CHANNEL])
    leave(state, message)
    state.message[message, WHEN] = now + state.message[message, LATENCY]
    sink(
        state.heap,
        state.totals[UNDER_WAY],
        state.message[message, PLACE],
        message,
        state.message,
        WHEN,
        state.message,
        PLACE,
    )


@inner
def _deliver(ranks, state, message, now):
    """Hand a message over to its receiver's host, and forget it."""
    arrived(ranks, state.message[message, SEND], now)
    take_first(state.heap, state.totals[UNDER_WAY], state.message, WHEN, state.message, PLACE)
    state.totals[UNDER_WAY] -= 1
    state.totals[DELIVERED] += 1
    forget(state, message)


@inner
def _change_rate(state, message, now):
    """Let a message go at its fair share from now on."""
    rate = steady(state.amounts[message, RATE])
    if rate == state.amounts[message, GOING]:
        return
    state.amounts[message, LEFT] -= state.amounts[message, GOING] * (now - state.message[message, SINCE])
    state.amounts[message, GOING] = rate
    state.message[message, SINCE] = now
    state.message[message, WHEN] = now + np.int64(np.ceil(max(0.0, state.amounts[message, LEFT]) / rate))
    move(state.heap, state.totals[UNDER_WAY], message, state.message, WHEN, state.message, PLACE)


@inner
def _next(ranks, state):
    """Return the time of what happens next."""
    when = next_event(ranks)
    return min(when, state.message[state.heap[0], WHEN]) if state.totals[UNDER_WAY] > 0 else when


@inner
def _happen(ranks, state, now):
    """Let messages leave their sources and arrive, and the program go on, at one instant."""
    state.totals[NOW] = now
    state.totals[INSTANTS] += 1
    while state.totals[UNDER_WAY] > 0 and state.message[state.heap[0], WHEN] <= now:
        message = state.heap[0]
        if state.message[message, COUNT] > 0:
            _end(ranks, state, message, now)
        else:
            _deliver(ranks, state, message, now)
    turn(ranks, now)
    state.totals[PENDING] = 0


@inner
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
        share(state)
        for i in range(state.totals[TOUCHED]):
            _change_rate(state, state.touched[i], state.totals[NOW])
        state.totals[TOUCHED] = 0


@routine
def _add_under_way(state, now, carried):
    """Add what messages under way have sent to ``carried``, float64 [channels], in flits."""
    for i in range(state.totals[UNDER_WAY]):
        message = state.heap[i]
        left = state.amounts[message, LEFT] - state.amounts[message, GOING] * (now - state.message[message, SINCE])
        sent = state.amounts[message, FLITS] - max(0.0, left) / RESOLUTION
        block = state.message[message, BLOCK]
        for entry in range(block, block + state.message[message, COUNT]):
            channel = state.entries[entry, CHANNEL]
            carried[channel] += sent * state.parts[state.channel[channel, MEMBERS] + state.entries[entry, AT], SHARE]


class FlowRun:
    """A run of mode flow under way, compiled (see :class:`flitlab.sim.engines.base.ApplicationRun`)."""

    latest = NEVER // RESOLUTION

    def __init__(self, scenario: Scenario[FlowSwitching, Workload], seed: int):
        workload = scenario.work
        self._network = make_network(scenario, seed)
        self._way = make_way(self._network, scenario.topology.switches)
        self._ranks = make_ranks(workload, RESOLUTION)
        self._host = workload.host
        self._state = make_state(self._network)
        self._now = 0

    def advance(self, until: int) -> None:
        self._now = max(self._now, min(until * RESOLUTION, NEVER))
        while lack := _advance(self._network, self._way, self._ranks, self._host, self._state, self._now):
            self._state = grown(self._state, lack)

    def done(self) -> bool:
        return is_done(self._ranks)

    def standing(self) -> Standing:
        totals = self._state.totals
        under_way = int(totals[UNDER_WAY])
        return Standing(int(totals[INSTANTS]), 0, under_way, under_way > 0 or has_events(self._ranks))

    def execution(self) -> Execution:
        return execution_of(self._ranks)

    def carried(self) -> Floats:
        by_link = self._state.carried.copy()
        _add_under_way(self._state, self._now, by_link)
        carried: Floats = by_link[self._network.link[: self._network.channels]]
        return carried

    def flowing(self) -> Flowing:
        """List the messages that have not left their sources, and how they share the channels."""
        state = self._state
        under_way = state.heap[: state.totals[UNDER_WAY]]
        records = under_way[state.message[under_way, COUNT] > 0]
        records = records[np.argsort(state.message[records, SEND])]
        count = state.message[records, COUNT]
        start = np.append(0, np.cumsum(count))
        entry = np.repeat(state.message[records, BLOCK] - start[:-1], count) + np.arange(start[-1])
        channel, at = state.entries[entry].T.astype(np.int64)
        share = state.parts[state.channel[channel, MEMBERS] + at, SHARE]
        return Flowing(state.message[records, SEND], state.amounts[records, GOING], start, channel, share)

    @property
    def delivered(self) -> int:
        """Count the messages delivered so far, requests and consents included."""
        return int(self._state.totals[DELIVERED])
