# SPDX-License-Identifier: Apache-2.0
"""The counters of the measured window of a point; the columns of results.csv are functions of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Scalar, Snapshot

MIN_PACKETS = 100
"""The least packets of a channel for which its delivered share is computed."""


class ChannelTraffic(NamedTuple):
    """Flits of the packets whose route contains a channel, float64 [channels]; a packet counts with all of its flits.

    channel: int64 [channels], the numbers of the channels. created, delivered: in the window.
    """

    channel: Ints
    created: Floats
    delivered: Floats


@dataclass(frozen=True)
class Window:
    """The counters of a run at the start and at the end of its window.

    batches: int64 [batches, scalars], increments of the scalar counters over parts of the window.
    """

    scenario: Scenario
    before: Snapshot
    after: Snapshot
    batches: Ints

    @property
    def ticks(self) -> int:
        """Length of the window in ticks."""
        return self.after.tick - self.before.tick

    @property
    def hosts(self) -> int:
        """All hosts of the topology, those without traffic included."""
        return self.scenario.topology.physical_hosts

    @cached_property
    def total(self) -> Ints:
        """Increments of the scalar counters over the window, int64 [scalars]; indices are those of
        ``flitlab.sim.engines.base``.
        """
        total: Ints = self.after.scalars - self.before.scalars
        return total

    @property
    def delivered_flits(self) -> int:
        """Flits delivered in the window."""
        return int(self.total[Scalar.DELIVERED_FLITS])

    @property
    def busiest(self) -> int:
        """Flits of the busiest channel in the window, between switches or from hosts."""
        between = self.after.channel_flits - self.before.channel_flits
        return max(int(between.max(initial=0)), int((self.after.created - self.before.created).max(initial=0)))

    @property
    def packets(self) -> int:
        """Packets delivered in the window."""
        return int(self.total[Scalar.DELIVERED_PACKETS])

    @cached_property
    def histogram(self) -> Ints:
        """Packets delivered by latency, int64 [buckets] (``flitlab.models.histogram``)."""
        counts: Ints = self.after.histogram - self.before.histogram
        return counts

    def mean(self, place: int) -> float:
        """Mean over delivered packets of a scalar counter; NaN without packets.

        place: index of the counter, such as LATENCY or HOPS.
        """
        return float(self.total[place] / self.packets) if self.packets else float("nan")

    def rate(self, place: int) -> float:
        """Rate of a counter of flits, in flits/tick/host; place: index of the counter, such as DELIVERED_FLITS."""
        return float(self.total[place] / (self.ticks * self.hosts))

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Shares that sending hosts get, float64 [hosts] each.

        Accepted / created flits of hosts that created any, and accepted flits / demand of hosts that have one.
        """
        rate = self.scenario.traffic.rate
        accepted = (self.after.delivered.sources - self.before.delivered.sources).astype(float)
        created = (self.after.created - self.before.created).astype(float)
        some = created > 0
        return accepted[some] / created[some], accepted[rate > 0] / rate[rate > 0]

    @cached_property
    def channels(self) -> ChannelTraffic | None:
        """The traffic of channels for which at least :data:`MIN_PACKETS` packets were created.

        None where outstanding traffic is not counted. Flits created for a channel have crossed it, or are still
        ungranted.
        """
        before, after = self.before.outstanding, self.after.outstanding
        if before is None or after is None:
            return None
        crossed = self.after.channel_flits - self.before.channel_flits
        created = crossed + after.ungranted - before.ungranted
        some = np.flatnonzero(created >= MIN_PACKETS * self.scenario.source.mean_flits)
        delivered = created - (after.on_route - before.on_route)
        return ChannelTraffic(some, created[some].astype(float), delivered[some].astype(float))


def latency_half_width(batches: Ints) -> float:
    """Return the half-width of the 95 % interval of the mean latency in ticks. batches: int64 [batches, scalars]."""
    from flitlab.sim.measure.batches import mean_half_width  # takes a second, and the table of columns has to be quick

    return mean_half_width(batches[:, [Scalar.LATENCY, Scalar.DELIVERED_PACKETS]])
