# SPDX-License-Identifier: Apache-2.0
"""A run of mode flow, which proceeds from one instant with an event to the next."""

import numpy as np

from flitlab.models.application.messages import MessageStage, packets_of, total_flits
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats
from flitlab.models.jit import device_function, inline, kernel
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow as FlowSwitching
from flitlab.sim.engines.base import Execution, ProgramStatus
from flitlab.sim.engines.compiled.flow.sharing import release_load, resize, start_flow, update_shares
from flitlab.sim.engines.compiled.flow.state import (
    SUFFICIENT,
    Total,
    doubled_state,
    find_shortage,
    free_message,
    join_channels,
    leave_channels,
    make_state,
    never_full_share,
    new_message,
)
from flitlab.sim.engines.compiled.flow.tournament import NO_KEY, first, keys_of, set_key, smallest
from flitlab.sim.engines.compiled.ranks import (
    OUTBOX,
    execution_of,
    has_events,
    is_done,
    make_ranks,
    next_event,
    process_events,
    receiver,
    record_arrival,
    record_sent,
    sender,
    size,
)
from flitlab.sim.engines.flow import (
    FAILED_CAPACITY,
    RESOLUTION,
    Flowing,
    FlowStep,
    clear_channel_shares,
    compute_channel_shares,
    flits_in,
    has_later_step,
    make_channel_shares,
    make_network,
    make_steps,
    round_rate,
)

NEVER = 1 << 62
"""Time after all events."""

MIN_RATE = 1e-30
"""Least rate, against division by 0."""


@inline
def _start_message(network, path, ranks, host, state, send, now):
    """Start the message of a send.

    Returns SUFFICIENT, or the array that lacks capacity. host: int64 [ranks]. path: workspace of
    :mod:`flitlab.sim.engines.flow`.
    """
    src_host, dst_host, bytes_ = host[sender(ranks, send)], host[receiver(ranks, send)], size(ranks, send)
    stage, packets = np.int64(ranks.stage[send]), packets_of(bytes_, network.packet_bytes)
    count, latency = compute_channel_shares(network, path, src_host, dst_host, send, stage, packets)
    shortage = find_shortage(state, path, count)
    if shortage == SUFFICIENT:
        message = new_message(state)
        flits = np.float64(flits_in(network, bytes_))
        state.message[message].send = send
        state.message[message].bottleneck = -1
        state.message[message].rate_since = now
        state.message[message].latency = latency
        state.rate[message] = 0.0
        state.message[message].send_rate = 0.0
        state.message[message].remaining = flits * RESOLUTION
        state.message[message].flits = flits
        join_channels(state, message, path, count)
        start_flow(state, message, network.link[np.int64(network.channels + src_host)])
        state.totals[Total.IN_FLIGHT] += 1
    clear_channel_shares(path, count)
    return shortage


@inline
def _uses_failed_channel(state, message):
    """Tell whether a message uses a failed channel."""
    for entry in range(state.message[message].block, state.message[message].block + state.message[message].count):
        if state.channel[state.entry_channel[entry]].capacity == FAILED_CAPACITY:
            return True
    return False


@inline
def _reroute_message(network, path, ranks, host, state, message, now):
    """Re-route the rest of a message.

    Returns SUFFICIENT, or the array that lacks capacity. host: int64 [ranks]. path: workspace of
    :mod:`flitlab.sim.engines.flow`.
    """
    send = state.message[message].send
    src_host, dst_host = host[sender(ranks, send)], host[receiver(ranks, send)]
    stage, packets = np.int64(ranks.stage[send]), packets_of(size(ranks, send), network.packet_bytes)
    count, latency = compute_channel_shares(network, path, src_host, dst_host, send, stage, packets)
    shortage = find_shortage(state, path, count)
    if shortage == SUFFICIENT:
        flits = state.message[message].flits
        remaining = state.message[message].remaining - state.message[message].send_rate * (
            now - state.message[message].rate_since
        )
        sent = flits - max(0.0, remaining) / RESOLUTION
        block = state.message[message].block
        for entry in range(block, block + state.message[message].count):
            release_load(state, state.entry_channel[entry])
        state.message[message].flits = sent
        leave_channels(state, message)
        state.message[message].flits = flits - sent
        state.message[message].remaining = remaining
        state.message[message].rate_since = now
        state.message[message].latency = latency
        state.message[message].bottleneck = -1
        state.rate[message] = 0.0
        join_channels(state, message, path, count)
        start_flow(state, message, network.link[np.int64(network.channels + src_host)])
    clear_channel_shares(path, count)
    return shortage


@kernel
def _resize_all(network, state, never_full_share, now):
    """Apply new capacities to the channels between switches; never_full_share: float64 [channels]."""
    state.totals[Total.NOW] = now
    state.totals[Total.INSTANTS] += 1
    for channel in range(network.channels):
        if state.channel[channel].capacity != network.capacity[channel]:
            resize(state, channel, network.capacity[channel], never_full_share[channel])


@kernel
def _reroute_all(network, path, ranks, host, state):
    """Re-route the messages on failed channels; with more capacity it can be called again.

    Returns SUFFICIENT, or the array that lacks capacity. host: int64 [ranks]. path: workspace of
    :mod:`flitlab.sim.engines.flow`.
    """
    for message in range(state.totals[Total.RECORDS]):
        if state.message[message].count > 0 and _uses_failed_channel(state, message):
            shortage = _reroute_message(network, path, ranks, host, state, message, state.totals[Total.NOW])
            if shortage != SUFFICIENT:
                return shortage
    return SUFFICIENT


@inline
def _finish_sending(ranks, state, message, now):
    """Process the last flit of a message leaving its source."""
    record_sent(ranks, state.message[message].send, now)
    for entry in range(state.message[message].block, state.message[message].block + state.message[message].count):
        release_load(state, state.entry_channel[entry])
    leave_channels(state, message)
    set_key(state.agenda, message, now + state.message[message].latency)


@inline
def _deliver(ranks, state, message, now):
    """Deliver a message to its receiver, and free its record."""
    record_arrival(ranks, state.message[message].send, now)
    set_key(state.agenda, message, NO_KEY)
    state.totals[Total.IN_FLIGHT] -= 1
    state.totals[Total.DELIVERED] += 1
    free_message(state, message)


@inline
def _change_rate(state, message, now):
    """Apply the fair rate of a message from now on."""
    rate = round_rate(state.rate[message])
    if rate == state.message[message].send_rate:
        return
    state.message[message].remaining -= state.message[message].send_rate * (now - state.message[message].rate_since)
    state.message[message].send_rate = rate
    state.message[message].rate_since = now
    ends = np.int64(NO_KEY)
    if rate > 0.0 or state.message[message].remaining <= 0.0:  # otherwise the message is stalled
        ends = now + np.int64(np.ceil(max(0.0, state.message[message].remaining) / max(rate, MIN_RATE)))
    set_key(state.agenda, message, ends)


@kernel
def _update_rates(state):
    """Update all fair rates, and apply those that have changed."""
    update_shares(state)
    for i in range(state.totals[Total.TOUCHED]):
        _change_rate(state, state.touched[i], state.totals[Total.NOW])
    state.totals[Total.TOUCHED] = 0


@inline
def _next_time(ranks, state):
    """Return the time of the next event."""
    return min(next_event(ranks), smallest(state.agenda))


@inline
def _process_instant(ranks, state, now):
    """Process all ends of transmission, deliveries and program events of an instant."""
    state.totals[Total.NOW] = now
    state.totals[Total.INSTANTS] += 1
    while smallest(state.agenda) <= now:
        message = first(state.agenda)
        if state.message[message].count > 0:
            _finish_sending(ranks, state, message, now)
        else:
            _deliver(ranks, state, message, now)
    process_events(ranks, now)
    state.totals[Total.PENDING] = 0


@inline
def _start_messages(network, path, ranks, host, state):
    """Start the messages of the outbox.

    Returns SUFFICIENT, or the array that lacks capacity. host: int64 [ranks]. path: workspace of
    :mod:`flitlab.sim.engines.flow`.
    """
    while state.totals[Total.PENDING] < ranks.totals[OUTBOX]:
        shortage = _start_message(
            network, path, ranks, host, state, ranks.outbox[state.totals[Total.PENDING]], state.totals[Total.NOW]
        )
        if shortage != SUFFICIENT:
            return shortage
        state.totals[Total.PENDING] += 1
    ranks.totals[OUTBOX] = 0
    state.totals[Total.PENDING] = -1
    return SUFFICIENT


@kernel
def _advance(network, path, ranks, host, state, until):
    """Process all events before ``until``, or until an array lacks capacity.

    Returns SUFFICIENT, or the array that lacks capacity. host: int64 [ranks]. path: workspace of
    :mod:`flitlab.sim.engines.flow`.
    """
    while True:
        if state.totals[Total.PENDING] < 0:
            now = _next_time(ranks, state)
            if now >= until:
                return SUFFICIENT
            _process_instant(ranks, state, now)
        shortage = _start_messages(network, path, ranks, host, state)
        if shortage != SUFFICIENT:
            return shortage
        _update_rates(state)


@device_function
def _add_in_flight(state, now, carried):
    """Add the flits that messages in flight have sent to ``carried``, float64 [channels]."""
    for message in range(state.totals[Total.RECORDS]):
        if state.message[message].count == 0:
            continue
        remaining = state.message[message].remaining - state.message[message].send_rate * (
            now - state.message[message].rate_since
        )
        sent = state.message[message].flits - max(0.0, remaining) / RESOLUTION
        block = state.message[message].block
        for entry in range(block, block + state.message[message].count):
            carried[state.entry_channel[entry]] += sent * state.entry_share[entry]


class FlowRun:
    """A compiled run of mode flow (see :class:`flitlab.sim.engines.base.ApplicationRun`)."""

    latest = NEVER // RESOLUTION

    def __init__(self, scenario: Scenario[FlowSwitching, Workload], seed: int):
        workload = scenario.work
        self._network = make_network(scenario, seed)
        self._steps = make_steps(scenario, self._network)
        self._steps_applied = 0  # steps
        self._program, self._messages = workload.program, workload.messages
        self._path_work = make_channel_shares(self._network, scenario.topology.switches)
        self._ranks = make_ranks(workload, RESOLUTION)
        self._host = workload.host
        self._state = make_state(self._network)
        self._now = 0

    def advance(self, until: int) -> None:
        until = max(self._now, min(until * RESOLUTION, NEVER))
        while (
            self._steps_applied < len(self._steps)
            and (step := self._steps[self._steps_applied]).tick * RESOLUTION < until
        ):
            self._advance_to(step.tick * RESOLUTION)
            self._apply_step(step)
            self._steps_applied += 1
        self._advance_to(until)

    def _advance_to(self, until: int) -> None:
        """Advance to a time, in ticks / ``RESOLUTION``."""
        self._now = until
        while shortage := _advance(self._network, self._path_work, self._ranks, self._host, self._state, until):
            self._state = doubled_state(self._state, shortage)

    def _apply_step(self, step: FlowStep) -> None:
        """Apply new capacities of channels, and new routes of messages."""
        self._network = self._network._replace(capacity=step.capacity, routes=step.routes or self._network.routes)
        loose = never_full_share(step.capacity, self._network.channels)
        _resize_all(self._network, self._state, loose, self._now)
        if step.routes is not None:
            while shortage := _reroute_all(self._network, self._path_work, self._ranks, self._host, self._state):
                self._state = doubled_state(self._state, shortage)
        _update_rates(self._state)

    def done(self) -> bool:
        return is_done(self._ranks)

    def program_status(self) -> ProgramStatus:
        totals, state = self._state.totals, self._state
        in_flight = int(totals[Total.IN_FLIGHT])
        stalled = int(((state.message["count"] > 0) & (state.message["send_rate"] == 0.0)).sum())
        coming = in_flight > stalled or has_events(self._ranks) or has_later_step(self._steps, self._now)
        return ProgramStatus(int(totals[Total.INSTANTS]), 0, in_flight, coming, stalled)

    def execution(self) -> Execution:
        return execution_of(self._ranks)

    def carried(self) -> Floats:
        by_link = self._state.carried.copy()
        _add_in_flight(self._state, self._now, by_link)
        carried: Floats = by_link[self._network.link[: self._network.channels]]
        return carried

    def progress(self) -> Floats:
        state, ranks, program = self._state, self._ranks, self._program
        progress = np.zeros(program.operations)
        used = np.arange(state.totals[Total.RECORDS])
        in_flight = used[keys_of(state.agenda)[used] < NO_KEY]
        in_flight = np.union1d(in_flight, used[state.message["count"][used] > 0])
        send = state.message["send"][in_flight]
        data = np.asarray(ranks.stage)[send] == MessageStage.DATA
        in_flight, send = in_flight[data], send[data]
        delivered = np.flatnonzero(self.execution().delivered >= 0)
        remote_sends = delivered[self._host[program.rank[delivered]] != self._host[program.peer[delivered]]]
        for operations in (remote_sends, send):
            progress[operations] = total_flits(program.amount[operations], self._messages)
        flowing = state.message["count"][in_flight] > 0
        remaining = state.message["remaining"][in_flight]
        remaining = remaining - state.message["send_rate"][in_flight] * (
            self._now - state.message["rate_since"][in_flight]
        )
        progress[send[flowing]] -= np.maximum(remaining[flowing], 0.0) / RESOLUTION
        return progress

    def flowing(self) -> Flowing:
        """List the messages that have not left their sources, and their shares of channels."""
        state = self._state
        records = np.flatnonzero(state.message["count"])
        records = records[np.argsort(state.message["send"][records])]
        count = state.message["count"][records]
        start = np.append(0, np.cumsum(count))
        entry = np.repeat(state.message["block"][records] - start[:-1], count) + np.arange(start[-1])
        channel, share = state.entry_channel[entry].astype(np.int64), state.entry_share[entry]
        return Flowing(state.message["send"][records], state.message["send_rate"][records], start, channel, share)

    @property
    def delivered(self) -> int:
        """Number of messages delivered so far, including rendezvous control messages."""
        return int(self._state.totals[Total.DELIVERED])
