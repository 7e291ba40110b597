# SPDX-License-Identifier: Apache-2.0
"""The reference engine of mode ``flow``: all rates are recomputed whenever a message starts or ends."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flitlab.models.application.messages import MessageStage, packets_of
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow as FlowSwitching
from flitlab.sim.engines.base import Execution, ProgramStatus
from flitlab.sim.engines.flow import (
    FAILED_CAPACITY,
    RESOLUTION,
    Flowing,
    FlowStep,
    clear_channel_shares,
    compute_channel_shares,
    has_later_step,
    make_channel_shares,
    make_network,
    make_steps,
    round_rate,
)
from flitlab.sim.engines.reference.clock import LATEST, Alarm, Clock, Phase
from flitlab.sim.engines.reference.ranks import Message, Ranks


@dataclass(eq=False)
class FlowMessage:
    """A message in flight; times in ticks / ``RESOLUTION``.

    channel: int64, share: float64 [channels used]: flits on each channel per flit. latency: from the end at the source
    to the delivery. unsent: at time ``since``, flits times ``RESOLUTION``; it decreases at ``rate``, 0 if stalled.
    flits: on these channels. source_end: when nothing will be unsent, -1 if unknown.
    """

    message: Message
    channel: Ints
    share: Floats
    latency: Int
    unsent: float
    since: int
    flits: float
    rate: float = 0.0
    source_end: int = -1

    def unsent_at(self, now: int) -> float:
        """Unsent data at a time, flits times ``RESOLUTION``."""
        return self.unsent - self.rate * (now - self.since)

    def set_rate(self, rate: float, now: int) -> None:
        """Set the rate, in flits/tick, from ``now`` on."""
        self.unsent, self.since, self.rate = self.unsent_at(now), now, rate
        self.source_end = now + math.ceil(max(0.0, self.unsent) / rate) if rate else -1


def fair_rates(capacity: Floats, flows: Sequence[FlowMessage]) -> Floats:
    """Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, 1992).

    All rates rise together; the rates of flows over a full channel are then fixed.

    Parameters
    ----------
    capacity : float64 [channels]
        Flits/tick.
    flows : sequence of FlowMessage
        With channels and shares.

    Returns
    -------
    float64 [flows]
        Flits/tick.
    """
    channel = np.concatenate([flow.channel for flow in flows])
    share = np.concatenate([flow.share for flow in flows])
    flow = np.repeat(np.arange(len(flows)), [len(flow.channel) for flow in flows])
    rate = np.full(len(flows), np.inf)
    while np.isinf(rate).any():
        rises = np.isinf(rate[flow])
        taken = np.bincount(channel[~rises], (share * rate[flow])[~rises], len(capacity))
        weight = np.bincount(channel[rises], share[rises], len(capacity))
        full_at = np.divide(capacity - taken, weight, out=np.full(len(capacity), np.inf), where=weight > 0)
        first = int(full_at.argmin())
        rate[flow[rises & (channel == first)]] = full_at[first]
    return rate


class FlowNetwork:
    """A run of mode flow in SimPy (see :class:`flitlab.sim.engines.base.ApplicationRun`).

    It also stands for all hosts of the program. shuffle: seed for the order of events that the model leaves open.
    """

    latest = LATEST // RESOLUTION

    def __init__(self, scenario: Scenario[FlowSwitching, Workload], seed: int, shuffle: int = 0):
        self.clock = Clock(shuffle)
        self.network = make_network(scenario, seed)
        self._channel_shares = make_channel_shares(self.network, scenario.topology.switches)
        hosts = [self] * scenario.topology.hosts
        self.ranks = Ranks(self.clock, scenario.work, hosts, resolution=RESOLUTION)
        self.flows: list[FlowMessage] = []
        self._carried = np.zeros(len(self.network.capacity))
        self._progress = np.zeros(scenario.work.program.operations)
        self._changed = False
        self._arriving = 0  # messages that have left their sources
        self._steps = make_steps(scenario, self.network)
        for step in self._steps:
            Alarm(self.clock, step.tick * RESOLUTION, Phase.CHANGES, self._apply_step, step)

    def advance(self, until: int) -> None:
        if until * RESOLUTION > self.clock.now:
            self.clock.run(until * RESOLUTION)

    def done(self) -> bool:
        return self.ranks.unfinished == 0

    def program_status(self) -> ProgramStatus:
        in_flight, stalled = len(self.flows) + self._arriving, sum(flow.rate == 0.0 for flow in self.flows)
        event_pending = in_flight > stalled or self.ranks.has_events() or has_later_step(self._steps, self.clock.now)
        return ProgramStatus(self.clock.events, 0, in_flight, event_pending, stalled)

    def execution(self) -> Execution:
        return self.ranks.execution()

    def carried(self) -> Floats:
        carried = self._carried.copy()
        for flow in self.flows:
            carried[flow.channel] += flow.share * self._sent(flow)
        by_channel: Floats = carried[self.network.link[: self.network.channels]]
        return by_channel

    def progress(self) -> Floats:
        progress = self._progress.copy()
        for flow in self.flows:
            if self.ranks.stage(flow.message) == MessageStage.DATA:
                progress[flow.message.send] += self._sent(flow)
        return progress

    def _sent(self, flow: FlowMessage) -> float:
        """Flits of a message that have left the source on its current channels."""
        return flow.flits - max(0.0, flow.unsent_at(self.clock.now)) / RESOLUTION

    def flowing(self) -> Flowing:
        """The messages that have not left their sources, with their channels and shares."""
        flows = sorted(self.flows, key=lambda flow: flow.message.send)
        start = np.cumsum([0, *(len(flow.channel) for flow in flows)])
        channel = np.concatenate([np.zeros(0, np.int64), *(flow.channel for flow in flows)])
        share = np.concatenate([np.zeros(0), *(flow.share for flow in flows)])
        send = np.array([flow.message.send for flow in flows], np.int64)
        return Flowing(send, np.array([flow.rate for flow in flows]), start, channel, share)

    def join(self, message: Message) -> None:
        """Start a message."""
        channel, share, latency = self._route_message(message)
        flits = float(message.flits)
        self.flows.append(FlowMessage(message, channel, share, latency, flits * RESOLUTION, self.clock.now, flits))
        self._schedule_update()

    def _route_message(self, message: Message) -> tuple[Ints, Floats, Int]:
        """Channels, shares and latency of a message that starts."""
        shares, stage = self._channel_shares, self.ranks.stage(message)
        count, latency = compute_channel_shares(
            self.network, shares, message.source, message.destination, message.send, stage,
            packets_of(message.size, self.network.packet_bytes),
        )  # fmt: skip
        channel = shares.channel[:count].copy()
        share = shares.share[channel]
        clear_channel_shares(shares, count)
        return channel, share, latency

    def _apply_step(self, alarm: Alarm) -> None:
        """Apply changed capacities, and reroute messages where the routing reacts."""
        step: FlowStep = alarm.value
        self.network = self.network._replace(capacity=step.capacity, routes=step.routes or self.network.routes)
        self._schedule_update()
        for flow in self.flows if step.routes else ():
            if (step.capacity[flow.channel] == FAILED_CAPACITY).any():
                sent = self._sent(flow)
                self._carried[flow.channel] += flow.share * sent
                self._count_progress(flow, sent)
                flow.flits -= sent
                flow.channel, flow.share, flow.latency = self._route_message(flow.message)

    def _count_progress(self, flow: FlowMessage, sent: float) -> None:
        """Count flits of a message that have left the source on its current channels for good."""
        if self.ranks.stage(flow.message) == MessageStage.DATA:
            self._progress[flow.message.send] += sent

    def _schedule_update(self) -> None:
        """Schedule one update of the rates for all messages that start or end at this time."""
        if not self._changed:
            self._changed = True
            Alarm(self.clock, self.clock.now, Phase.ALLOCATION, self._update_rates)

    def _update_rates(self, _: object) -> None:
        self._changed = False
        if not self.flows:
            return
        self.flows = self.clock.shuffled(self.flows)
        for flow, fair in zip(self.flows, fair_rates(self.network.capacity, self.flows), strict=True):
            if (rate := round_rate(fair)) != flow.rate:
                flow.set_rate(rate, self.clock.now)
                if rate:
                    Alarm(self.clock, flow.source_end, Phase.ARRIVALS, self._end, flow)

    def _end(self, alarm: Alarm) -> None:
        """End a message at its source, unless its rate has changed since the alarm was set."""
        flow, now = alarm.value, self.clock.now
        if flow.source_end != now or flow not in self.flows:
            return
        self.flows.remove(flow)
        self._carried[flow.channel] += flow.share * flow.flits
        self._count_progress(flow, flow.flits)
        self.ranks.tail_sent(flow.message, now)
        self._schedule_update()
        self._arriving += 1
        Alarm(self.clock, now + flow.latency, Phase.ARRIVALS, self._deliver, flow.message)

    def _deliver(self, alarm: Alarm) -> None:
        message = alarm.value
        message.missing = 1
        self._arriving -= 1
        self.ranks.receive(message)
