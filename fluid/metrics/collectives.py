# SPDX-License-Identifier: Apache-2.0
"""Least times of collectives on a topology, as metrics."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from flitlab.fluid.collective.collective import Collective, Ranks
from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology

LISTED = 64
"""Switches of a side that are listed, at most; of a larger side, the switches outside, if these are few."""


@register("metric", "collectives")
class Collectives(MetricSpec):
    """Least times of collectives by any algorithm, in units over a channel of capacity 1, and what is possible.

    With ``ranks: switches`` a rank is on every switch that has hosts, or on each if none has.
    ``all_gather_lambda`` is the least time of an all-gather in which each rank gives a unit, as a fraction, and
    ``useful_bandwidth`` (N - 1) / λ, channels' worth that every rank receives; ``cut`` says what bounds it, and
    ``cut_inside`` or ``cut_outside`` lists the switches on one side. ``all_reduce_lower`` and ``all_reduce_upper`` are
    times over the size of a rank's vector, ``broadcast`` over that of the root's; ``all_to_all`` is an interval, for
    one unit from every rank to every other. Where nothing is known to be possible, an upper end is None.

    Example: ``metrics: [{kind: collectives, ranks: switches}]``

    Source: docs/collectives.md has the proofs.
    """

    unprefixed: ClassVar[bool] = True

    ranks: Ranks = "switches"
    """Where ranks are: on every switch with hosts, or every host."""
    root: int = Field(default=0, ge=0)
    """Root of the broadcast."""
    gap: float | None = Field(default=None, gt=0, lt=1)
    """Relative gap of the all-to-all. null: 1e-4, on more than 128 switches 1e-2."""

    def measure(self, topology: Topology) -> Row:
        from flitlab.fluid.collective.bounds import bounds  # imports compilers

        if self.ranks == "hosts" and topology.hosts < 2:
            raise ValueError("collectives: with ranks: hosts there must be two hosts or more")

        gathered, scattered, reduced, spread, exchanged = (
            bounds(topology, collective, self.gap)
            for collective in (
                Collective("all_gather", self.ranks),
                Collective("reduce_scatter", self.ranks),
                Collective("all_reduce", self.ranks),
                Collective("broadcast", self.ranks, self.root),
                Collective("all_to_all", self.ranks),
            )
        )
        n, cut = gathered.network.ranks, gathered.cut
        high = exchanged.upper
        return {
            "ranks": n,
            "all_gather_lambda": str(gathered.lower.time),
            "useful_bandwidth": float((n - 1) / gathered.lower.time) if gathered.lower.time else None,
            "reduce_scatter_lambda": str(scattered.lower.time),
            "all_reduce_lower": float(reduced.lower.time),
            "all_reduce_by": reduced.lower.by,
            "all_reduce_upper": None if reduced.upper is None else float(reduced.upper[0]),
            "all_reduce_possible": None if reduced.upper is None else reduced.upper[1],
            "all_to_all": [float(exchanged.lower.time), None if high is None else float(high[0])],
            "broadcast": float(spread.lower.time),
            "cut": cut.text,
            **_sides(cut.side),
            "collectives_note": gathered.note or None,
        }


def _sides(side: np.ndarray) -> dict[str, list[int]]:
    """The switches of a side, or of the other side if that is smaller; neither if there are too many."""
    name, smaller = min((("cut_inside", side), ("cut_outside", ~side)), key=lambda one: int(one[1].sum()))
    return {name: np.flatnonzero(smaller).tolist()} if smaller.sum() <= LISTED else {}
