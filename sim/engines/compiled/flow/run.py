"""From one instant at which something happens to the next."""

import numpy as np

from flitlab.models.application.messages import packets_of
from flitlab.models.jit import inner, kernel, routine
from flitlab.models.scenario import Scenario
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
def _begin(n, w, r, host, s, o, now):
    """The message of a send begins to flow; or what there is too little room of."""
    source, destination, bytes_ = host[sender(r, o)], host[receiver(r, o)], size(r, o)
    stage, packets = np.int64(r.stage[o]), packets_of(bytes_, n.packet_bytes)
    count, latency = find_way(n, w, source, destination, o, stage, packets)
    lack = lacking(s, w, count)
    if lack == ENOUGH:
        m = new_message(s)
        flits = np.float64(flits_in(n, bytes_))
        s.message[m, SEND] = o
        s.message[m, NECK] = -1
        s.message[m, SINCE] = now
        s.message[m, LATENCY] = latency
        s.amounts[m, RATE] = np.inf
        s.amounts[m, GOING] = 0.0
        s.amounts[m, LEFT] = flits * RESOLUTION
        s.amounts[m, FLITS] = flits
        join(s, m, w, count)
        for i in range(count):
            look_into(s, w.channel[i], 0.0)
        touch(s, m)
        s.message[m, WHEN] = NEVER
        under_way = s.totals[UNDER_WAY]
        s.totals[UNDER_WAY] = under_way + 1
        rise(s.heap, under_way, m, s.message, WHEN, s.message, PLACE)
    leave_way(w, count)
    return lack


@inner
def _end(r, s, m, now):
    """The last flit of a message has left its source."""
    left(r, s.message[m, SEND], now)
    for e in range(s.message[m, BLOCK], s.message[m, BLOCK] + s.message[m, COUNT]):
        relieve(s, s.entries[e, CHANNEL])
    leave(s, m)
    s.message[m, WHEN] = now + s.message[m, LATENCY]
    sink(s.heap, s.totals[UNDER_WAY], s.message[m, PLACE], m, s.message, WHEN, s.message, PLACE)


@inner
def _deliver(r, s, m, now):
    arrived(r, s.message[m, SEND], now)
    take_first(s.heap, s.totals[UNDER_WAY], s.message, WHEN, s.message, PLACE)
    s.totals[UNDER_WAY] -= 1
    s.totals[DELIVERED] += 1
    forget(s, m)


@inner
def _change_rate(s, m, now):
    """A message goes at its fair share from now on."""
    rate = steady(s.amounts[m, RATE])
    if rate == s.amounts[m, GOING]:
        return
    s.amounts[m, LEFT] -= s.amounts[m, GOING] * (now - s.message[m, SINCE])
    s.amounts[m, GOING] = rate
    s.message[m, SINCE] = now
    s.message[m, WHEN] = now + np.int64(np.ceil(max(0.0, s.amounts[m, LEFT]) / rate))
    move(s.heap, s.totals[UNDER_WAY], m, s.message, WHEN, s.message, PLACE)


@inner
def _next(r, s):
    """The time of what happens next."""
    when = next_event(r)
    return min(when, s.message[s.heap[0], WHEN]) if s.totals[UNDER_WAY] > 0 else when


@inner
def _happen(r, s, now):
    """Messages leave their sources and arrive, and the program goes on."""
    s.totals[NOW] = now
    s.totals[INSTANTS] += 1
    while s.totals[UNDER_WAY] > 0 and s.message[s.heap[0], WHEN] <= now:
        m = s.heap[0]
        if s.message[m, COUNT] > 0:
            _end(r, s, m, now)
        else:
            _deliver(r, s, m, now)
    turn(r, now)
    s.totals[PENDING] = 0


@inner
def _begin_all(n, w, r, host, s):
    """The messages of the outbox begin to flow; or what there is too little room of."""
    while s.totals[PENDING] < r.totals[OUTBOX]:
        lack = _begin(n, w, r, host, s, r.outbox[s.totals[PENDING]], s.totals[NOW])
        if lack != ENOUGH:
            return lack
        s.totals[PENDING] += 1
    r.totals[OUTBOX] = 0
    s.totals[PENDING] = -1
    return ENOUGH


@kernel
def _advance(n, w, r, host, s, until):
    """Go on for as long as something happens before ``until``, or to where there is too little room."""
    while True:
        if s.totals[PENDING] < 0:
            now = _next(r, s)
            if now >= until:
                return ENOUGH
            _happen(r, s, now)
        lack = _begin_all(n, w, r, host, s)
        if lack != ENOUGH:
            return lack
        share(s)
        for i in range(s.totals[TOUCHED]):
            _change_rate(s, s.touched[i], s.totals[NOW])
        s.totals[TOUCHED] = 0


@routine
def _add_under_way(s, now, carried):
    """Add what messages under way have sent to ``carried``, flits by channel."""
    for i in range(s.totals[UNDER_WAY]):
        m = s.heap[i]
        left = s.amounts[m, LEFT] - s.amounts[m, GOING] * (now - s.message[m, SINCE])
        sent = s.amounts[m, FLITS] - max(0.0, left) / RESOLUTION
        for e in range(s.message[m, BLOCK], s.message[m, BLOCK] + s.message[m, COUNT]):
            c = s.entries[e, CHANNEL]
            carried[c] += sent * s.parts[s.channel[c, MEMBERS] + s.entries[e, AT], SHARE]


class FlowRun:
    """A run under way (see :class:`flitlab.sim.engines.base.ApplicationRun`)."""

    latest = NEVER // RESOLUTION

    def __init__(self, scenario: Scenario, seed: int):
        workload = scenario.workload
        assert workload is not None
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

    def carried(self) -> np.ndarray:
        carried = self._state.carried.copy()
        _add_under_way(self._state, self._now, carried)
        return carried[self._network.link]

    def flowing(self) -> Flowing:
        """The messages that have not left their sources, and how they share the channels."""
        s = self._state
        under_way = s.heap[: s.totals[UNDER_WAY]]
        records = under_way[s.message[under_way, COUNT] > 0]
        records = records[np.argsort(s.message[records, SEND])]
        count = s.message[records, COUNT]
        start = np.append(0, np.cumsum(count))
        entry = np.repeat(s.message[records, BLOCK] - start[:-1], count) + np.arange(start[-1])
        channel, at = s.entries[entry].T.astype(np.int64)
        share = s.parts[s.channel[channel, MEMBERS] + at, SHARE]
        return Flowing(s.message[records, SEND], s.amounts[records, GOING], start, channel, share)

    @property
    def delivered(self) -> int:
        """Messages delivered so far, requests and consents included."""
        return int(self._state.totals[DELIVERED])
