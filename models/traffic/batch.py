# SPDX-License-Identifier: Apache-2.0
"""Traffic of a batch: every host sends a number of packets, and the time until all are delivered counts."""

from fractions import Fraction

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.jit import kernel
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, nested, register
from flitlab.models.rules.packets import Packets, destination, make_packets
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.traffic.demand_file import pair_matrix
from flitlab.models.traffic.source import Recorded
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec

MAX_PACKETS = 10_000_000
"""Most packets of a batch."""

MAX_FLITS = 1_000_000
"""Flits of the longest packet."""


@register("traffic", "batch")
class Batch(TrafficSpec):
    """A batch: every host that sends in pattern ``of`` sends ``packets`` packets of ``flits`` flits, from tick 0 on.

    ``outstanding: n`` makes it a closed loop: at most n packets of a host are created and not delivered, and the next
    one is created in the tick after a delivery. null: a host creates all packets at tick 0. Destinations are drawn from
    ``seed`` in the proportions of the pattern: sweep ``traffic.seed`` for several batches.

    Simulated without ``loads`` in modes vct, wormhole, ideal and deflection. results.csv has the time of the batch as
    ``ticks``, and packets.csv each packet. T[i, j] is in proportion to the flits from host i to host j.

    Example: ``traffic: {kind: batch, of: {kind: uniform}, packets: 100, outstanding: 4}``

    Source: ``sim_type = batch`` of BookSim2 (Jiang et al. 2013, doi:10.1109/ISPASS.2013.6557149).
    """

    of: Keys
    """The pattern in whose proportions destinations are drawn."""
    packets: int = Field(default=1000, ge=1)
    """Packets of every host that sends."""
    outstanding: int | None = Field(default=None, ge=1)
    """Packets of a host that are not delivered yet, at most. null: any."""
    flits: int = Field(default=1, ge=1, le=MAX_FLITS)
    """Flits of a packet."""
    seed: int = Field(default=1, ge=0)
    """Seed of destinations."""

    def demand(self, topology: Topology) -> Traffic:
        pattern = nested("traffic", self.of, "of", lambda spec: spec.build(topology))
        if pattern.background is not None or pattern.alternates or pattern.recorded is not None:
            raise SpecError("must be one pattern without background, alternates or trace", key="of")
        senders = np.flatnonzero(pattern.rate > 0)
        limit_size(self.packets * len(senders), "packets", "packets", MAX_PACKETS)
        source = np.tile(senders, self.packets)  # all first packets, then all second ones
        target = np.empty_like(source)
        _draw_destinations(make_packets(pattern, (self.flits,), (1.0,)), self.seed, source, len(senders), target)
        size, none = np.full(len(source), self.flits), np.full(len(source), -1)
        recorded = Recorded(
            (Fraction(0),), False, np.zeros(len(source), np.int64), source, target, size, none, (), False,
            "traffic.of", none, self.outstanding,
        )  # fmt: skip
        demand = pair_matrix(source.tolist(), target.tolist(), size.astype(float).tolist(), topology.hosts)
        return table_traffic(self.kind, topology, demand, notes={"messages": len(source)}, recorded=recorded)


@kernel
def _draw_destinations(packets: Packets, seed: int, source: Ints, senders: int, target: Ints) -> None:
    """Draw the destinations of packets into ``target``, int64 [packets].

    Packet i is number i // senders of host ``source[i]``.
    """
    for i in range(len(source)):
        target[i] = destination(packets, seed, source[i], i // senders)
