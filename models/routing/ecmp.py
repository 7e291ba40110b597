# SPDX-License-Identifier: Apache-2.0
"""Equal-cost multi-path routing."""

from typing import Literal

from pydantic import Field

from flitlab.models.arrays import Masks
from flitlab.models.jit import njit
from flitlab.models.registry import register
from flitlab.models.routing.ksp import MOST, SourceRouted
from flitlab.models.routing.paths import path_table, shortest_sets
from flitlab.models.routing.routes import PER, Routes
from flitlab.models.routing.weights import WeightedSpec, path_sets
from flitlab.models.rules.bits import popcount, select, without_port
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.rules.port_sets import ports_at, set_ports
from flitlab.models.topology.graph import Topology


@njit
def limit_next_hops(ports: Masks, most: int, seed: int) -> None:
    """Keep at most ``most`` channels in every set, drawn from the seed.

    Parameters
    ----------
    ports: table of port sets, changed in place.
    most: channels to keep.
    seed: of draws.
    """
    for t in range(len(ports)):
        for v in range(len(ports)):
            drawn, here = 0, ports_at(ports[t], v)
            while popcount(here) > most:
                word = draw(seed, Stream.PATH_TIES, v, (t << 7) | drawn)
                here = without_port(here, select(here, below(word, popcount(here))))
                drawn += 1
            set_ports(ports[t], v, here)


@register("routing", "ecmp")
class EqualCost(WeightedSpec, SourceRouted):
    """Equal-cost multi-path: shortest paths only, at most ``ways`` of them.

    ``routed: hop``: every switch has up to ``ways`` next channels to each destination and chooses one uniformly: drawn
    for each packet, or by a hash of the flow that differs between switches (``per: flow``). ``routed: source``: every
    pair has up to ``ways`` whole shortest paths, and one is drawn at the source. Where there are more, ``seed`` draws
    which are kept. ways 1 is single-path routing. ``weight``, ``ties``: length of paths, and the choice among equal
    ones, as for ``minimal``.

    Example: ``routing: {kind: ecmp, ways: 8, per: flow}``

    Example: ``routing: {kind: ecmp, ways: 8, routed: source}``

    Example: ``routing: {kind: ecmp, weight: delay}``

    Source: Hopps, RFC 2992, 2000; Singla, Hong, Popa, Godfrey, Jellyfish, NSDI 2012 (8-way ECMP).
    """

    ways: int = Field(default=8, ge=1, le=MOST)
    """The most next channels, or paths."""
    routed: Literal["hop", "source"] = "hop"
    """Whether switches choose channels, or sources paths."""
    seed: int = Field(default=0, ge=0)
    """Seed that draws which of equally long paths are kept."""

    def routes(self, topology: Topology) -> Routes:
        if self.routed == "source":
            if self.ties == "all" and self.weights(topology) is None:
                return self.along(topology, path_table(topology, shortest_sets(topology, self.ways, 0, self.seed)))
            hops = self.next_hops(topology)
            table = path_table(topology, path_sets(topology, hops, self.ways, self.seed))
            return self.along(topology, table, **hops.notes)
        hops = self.next_hops(topology)
        limit_next_hops(hops.ports, self.ways, self.seed)
        return Routes(self.kind, hops.ports, PER[self.per], hops.longest, notes=hops.notes)
