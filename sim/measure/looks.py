# SPDX-License-Identifier: Apache-2.0
"""Looks at a run of sprayed packets whose network changes: how much has arrived, and what was lost, over time."""

from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.spray.base import DROPS, RECEIVED, RESENT, Counters, SprayRun
from flitlab.sim.measure.over_time import interval

MOST = 200
"""Equal intervals at most: where there are more, each two of them become one."""

_OF_TRIP = 16
"""Intervals of a round trip at first."""


class Look(NamedTuple):
    """What had happened before a tick: bytes that had arrived, packets that were sent again, packets that were lost."""

    received: int
    resent: int
    drops: int


class Looks:
    """A run that is looked at in equal intervals, and as each epoch of its network begins.

    counters: by tick, as each epoch begins and wherever else ``at`` says. The intervals are as long as the length of
    the run, which nobody knows beforehand, makes them.
    """

    def __init__(self, run: SprayRun, timeline: Timeline, at: Collection[int]):
        self.run = run
        self.counters: dict[int, Counters] = {}
        self._kept = {epoch.tick for epoch in timeline.epochs} | set(at)
        self._seen: dict[int, Look] = {}
        self._width = max(1, run.session.rules.rtt0 // _OF_TRIP)

    def go_on(self, last: int, least: int) -> None:
        """Advance the run until its last flow has ended and tick ``least`` is reached, but not beyond ``last``."""
        tick = 0
        self._look(tick)
        while tick < last and not (tick >= least and self.run.ended()):
            later = [kept for kept in self._kept if kept > tick]
            tick = min(last, tick - tick % self._width + self._width, *later)
            self.run.advance(tick)
            self._look(tick)
            even = [seen for seen in self._seen if seen % self._width == 0]
            if len(even) > MOST:
                self._width *= 2
                self._seen = {t: look for t, look in self._seen.items() if t in self._kept or t % self._width == 0}

    def _look(self, tick: int) -> None:
        counters = self.run.counters()
        flow = counters.flow.sum(axis=0)
        self._seen[tick] = Look(int(flow[RECEIVED]), int(flow[RESENT]), int(counters.link[:, DROPS].sum()))
        if tick in self._kept:
            self.counters[tick] = counters

    def rows(self, end: int) -> list[dict[str, Any]]:
        """Rows of throughput_time.csv: what hosts receive on average, and what is lost, from each look to the next.

        end: the tick after which nothing more arrived.
        """
        session, rows = self.run.session, []
        rate, last = session.rules.rate * session.topology.hosts, self._seen[max(self._seen)]
        seen = {tick: look for tick, look in sorted(self._seen.items()) if tick < end} | {end: last}
        for (start, before), (until, after) in pairwise(seen.items()):
            per_host = (after.received - before.received) / (rate * (until - start))
            counted = {"drops": after.drops - before.drops, "retransmissions": after.resent - before.resent}
            rows.append(interval(start, until, float(session.tick_s * 10**9), per_host, **counted))
        return rows
