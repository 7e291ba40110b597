# SPDX-License-Identifier: Apache-2.0
"""Samples of a run of sprayed packets with a timeline: received bytes and drops over time."""

from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.spray.base import DROPS, RECEIVED, RESENT, Counters, SprayRun
from flitlab.sim.measure.throughput_time import interval

MAX_INTERVALS = 200
"""The most equal intervals; beyond, neighbours are merged."""

_INTERVALS_PER_RTT = 16
"""Intervals of a round trip at first."""


class Sample(NamedTuple):
    """Totals before a tick: bytes received, packets retransmitted, packets dropped."""

    received: int
    resent: int
    drops: int


class Samples:
    """Advances a run and samples it in equal intervals, and at the start of each epoch.

    counters: by tick, at the start of each epoch and at the ticks ``at``. The interval doubles as the run gets longer.
    """

    def __init__(self, run: SprayRun, timeline: Timeline, at: Collection[int]):
        self.run = run
        self.counters: dict[int, Counters] = {}
        self._sample_ticks = {epoch.tick for epoch in timeline.epochs} | set(at)
        self._samples: dict[int, Sample] = {}
        self._width = max(1, run.session.rules.rtt0 // _INTERVALS_PER_RTT)

    def advance_to_end(self, last: int, least: int) -> None:
        """Advance the run until its last flow has ended and tick ``least`` is reached, but not beyond ``last``."""
        tick = 0
        self._sample(tick)
        while tick < last and not (tick >= least and self.run.ended()):
            later = [kept for kept in self._sample_ticks if kept > tick]
            tick = min(last, tick - tick % self._width + self._width, *later)
            self.run.advance(tick)
            self._sample(tick)
            even = [seen for seen in self._samples if seen % self._width == 0]
            if len(even) > MAX_INTERVALS:
                self._width *= 2
                self._samples = {
                    t: look for t, look in self._samples.items() if t in self._sample_ticks or t % self._width == 0
                }

    def _sample(self, tick: int) -> None:
        counters = self.run.counters()
        flow = counters.flow.sum(axis=0)
        self._samples[tick] = Sample(int(flow[RECEIVED]), int(flow[RESENT]), int(counters.link[:, DROPS].sum()))
        if tick in self._sample_ticks:
            self.counters[tick] = counters

    def rows(self, end: int) -> list[dict[str, Any]]:
        """Rows of throughput_time.csv: mean received by a host, and drops, from each sample to the next.

        end: the tick after which nothing arrived.
        """
        session, rows = self.run.session, []
        rate, last = session.rules.rate * session.topology.hosts, self._samples[max(self._samples)]
        samples = {tick: look for tick, look in sorted(self._samples.items()) if tick < end} | {end: last}
        for (start, before), (until, after) in pairwise(samples.items()):
            per_host = (after.received - before.received) / (rate * (until - start))
            counted = {"drops": after.drops - before.drops, "retransmissions": after.resent - before.resent}
            rows.append(interval(start, until, float(session.tick_s * 10**9), per_host, **counted))
        return rows
