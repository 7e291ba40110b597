"""The reference engine of mode ``flow``: whenever a message comes or goes, the rates of all are found anew."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Int, Ints
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow as FlowSwitching
from flitlab.sim.engines.base import Execution, Standing
from flitlab.sim.engines.flow.model import RESOLUTION, Flowing, find_way, leave_way, make_network, make_way, steady
from flitlab.sim.engines.reference.clock import ALLOCATION, ARRIVALS, LATEST, Alarm, Clock
from flitlab.sim.engines.reference.ranks import Message, Ranks


@dataclass(eq=False)
class Flow:
    """A message under way; times in ticks / ``RESOLUTION``.

    channel: int64, share: float64: what it takes of each channel for every flit. latency: from its leaving the source
    to the delivery. left: what had not left the source at ``since``, flits times ``RESOLUTION``; since then it has gone
    at ``rate``. ends: when nothing will be left.
    """

    message: Message
    channel: Ints
    share: Floats
    latency: Int
    left: float
    since: int
    rate: float = 0.0
    ends: int = -1

    def left_at(self, now: int) -> float:
        """What has not left the source at a time, in flits times ``RESOLUTION``."""
        return self.left - self.rate * (now - self.since)

    def go(self, rate: float, now: int) -> None:
        """Go at another rate, in flits a tick, from ``now`` on."""
        self.left, self.since, self.rate = self.left_at(now), now, rate
        self.ends = now + math.ceil(max(0.0, self.left) / rate)


def fair_rates(capacity: Floats, flows: Sequence[Flow]) -> Floats:
    """Max-min fair rates, float64 [flows], in flits a tick.

    All rates rise together; those of flows over a channel that is full stop there.
    capacity: float64 [channels], flits a tick.
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
    """A run of mode flow under way in SimPy (see :class:`flitlab.sim.engines.base.ApplicationRun`).

    It stands for all hosts of the program, too. shuffle: a seed for the order of everything that the model leaves open.
    """

    latest = LATEST // RESOLUTION

    def __init__(self, scenario: Scenario[FlowSwitching, Workload], seed: int, shuffle: int = 0):
        self.clock = Clock(shuffle)
        self.network = make_network(scenario, seed)
        self._way = make_way(self.network, scenario.topology.switches)
        hosts = [self] * scenario.topology.hosts
        self.ranks = Ranks(self.clock, scenario.work, hosts, resolution=RESOLUTION)
        self.flows: list[Flow] = []
        self._carried = np.zeros(len(self.network.capacity))
        self._changed = False
        self._arriving = 0  # messages that have left their sources

    def advance(self, until: int) -> None:
        if until * RESOLUTION > self.clock.now:
            self.clock.run(until * RESOLUTION)

    def done(self) -> bool:
        return self.ranks.unfinished == 0

    def standing(self) -> Standing:
        under_way = len(self.flows) + self._arriving
        return Standing(self.clock.events, 0, under_way, under_way > 0 or self.ranks.has_events())

    def execution(self) -> Execution:
        return self.ranks.execution()

    def carried(self) -> Floats:
        carried = self._carried.copy()
        for flow in self.flows:
            sent = flow.message.flits - max(0.0, flow.left_at(self.clock.now)) / RESOLUTION
            carried[flow.channel] += flow.share * sent
        by_channel: Floats = carried[self.network.link[: self.network.channels]]
        return by_channel

    def flowing(self) -> Flowing:
        """The messages that have not left their sources, and how they share the channels."""
        flows = sorted(self.flows, key=lambda flow: flow.message.send)
        start = np.cumsum([0, *(len(flow.channel) for flow in flows)])
        channel = np.concatenate([np.zeros(0, np.int64), *(flow.channel for flow in flows)])
        share = np.concatenate([np.zeros(0), *(flow.share for flow in flows)])
        send = np.array([flow.message.send for flow in flows], np.int64)
        return Flowing(send, np.array([flow.rate for flow in flows]), start, channel, share)

    def join(self, message: Message) -> None:
        """Let a message begin to flow."""
        way, stage = self._way, self.ranks.stage[message.send]
        count, latency = find_way(
            self.network, way, message.source, message.destination, message.send, stage, message.missing
        )
        channel = way.channel[:count].copy()
        flow = Flow(message, channel, way.share[channel], latency, float(message.flits * RESOLUTION), self.clock.now)
        leave_way(way, count)
        self.flows.append(flow)
        self._change()

    def _change(self) -> None:
        """Have the rates found anew when all that comes and goes now has done so."""
        if not self._changed:
            self._changed = True
            Alarm(self.clock, self.clock.now, ALLOCATION, self._share)

    def _share(self, _: Any) -> None:
        self._changed = False
        if not self.flows:
            return
        self.flows = self.clock.shuffled(self.flows)
        for flow, rate in zip(self.flows, fair_rates(self.network.capacity, self.flows), strict=True):
            if steady(rate) != flow.rate:
                flow.go(steady(rate), self.clock.now)
                Alarm(self.clock, flow.ends, ARRIVALS, self._end, flow)

    def _end(self, alarm: Any) -> None:
        """A message has left its source, unless its rate has changed since the alarm was set."""
        flow, now = alarm.value, self.clock.now
        if flow.ends != now or flow not in self.flows:
            return
        self.flows.remove(flow)
        self._carried[flow.channel] += flow.share * flow.message.flits
        self.ranks.left(flow.message, now)
        self._change()
        self._arriving += 1
        Alarm(self.clock, now + flow.latency, ARRIVALS, self._deliver, flow.message)

    def _deliver(self, alarm: Any) -> None:
        message = alarm.value
        message.missing = 1
        self._arriving -= 1
        self.ranks.receive(message)
