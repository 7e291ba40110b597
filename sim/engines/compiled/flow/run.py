"""A run at flow level, which goes from one instant at which something happens to the next."""

import numpy as np

from flitlab.models.application.messages import packets_of
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.jit import inner, kernel, routine
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow as FlowSwitching
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.compiled.flow.sharing import relieve, set_out, share
from flitlab.sim.engines.compiled.flow.state import (
    BLOCK,
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
    make_state,
    new_message,
)
from flitlab.sim.engines.compiled.flow.tournament import OUT, first, set_key, smallest
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
        state.rate[message] = 0.0
        state.amounts[message, GOING] = 0.0
        state.amounts[message, LEFT] = flits * RESOLUTION
        state.amounts[message, FLITS] = flits
        join(state, message, way, count)
        set_out(state, message, network.link[np.int64(network.channels + source)])
        state.totals[UNDER_WAY] += 1
    leave_way(way, count)
    return lack


@inner
def _end(ranks, state, message, now):
    """Note that the last flit of a message has left its source."""
    left(ranks, state.message[message, SEND], now)
    for entry in range(state.message[message, BLOCK], state.message[message, BLOCK] + state.message[message, COUNT]):
        relieve(state, state.entry_channel[entry])
    leave(state, message)
    set_key(state.agenda, message, now + state.message[message, LATENCY])


@inner
def _deliver(ranks, state, message, now):
    """Hand a message over to its receiver's host, and forget it."""
    arrived(ranks, state.message[message, SEND], now)
    set_key(state.agenda, message, OUT)
    state.totals[UNDER_WAY] -= 1
    state.totals[DELIVERED] += 1
    forget(state, message)


@inner
def _change_rate(state, message, now):
    """Let a message go at its fair share from now on."""
    rate = steady(state.rate[message])
    if rate == state.amounts[message, GOING]:
        return
    state.amounts[message, LEFT] -= state.amounts[message, GOING] * (now - state.message[message, SINCE])
    state.amounts[message, GOING] = rate
    state.message[message, SINCE] = now
    set_key(state.agenda, message, now + np.int64(np.ceil(max(0.0, state.amounts[message, LEFT]) / rate)))


@inner
def _next(ranks, state):
    """Return the time of what happens next."""
    return min(next_event(ranks), smallest(state.agenda))


@inner
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
