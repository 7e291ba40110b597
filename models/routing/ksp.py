# SPDX-License-Identifier: Apache-2.0
"""Routing over the k shortest paths."""

from typing import Any, Literal

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.paths import first_sets, longest, path_notes, path_table, require_connected, shortest_sets
from flitlab.models.routing.routes import NO_PORTS, PER, PathTable, Routes, RoutingSpec
from flitlab.models.rules.tables import PATHS
from flitlab.models.topology.graph import Topology

MOST = 1024
"""The largest k. The search for the k-th path takes time that grows with k."""


class SourceRouted(RoutingSpec):
    """A routing that draws one of a pair's paths at the source: for each packet, or one for each flow by a hash."""

    per: Literal["packet", "flow"] = "packet"

    def along(self, topology: Topology, table: PathTable, **notes: Any) -> Routes:
        """The routes over a table of paths.

        Parameters
        ----------
        topology: the network.
        table: the paths.
        """
        notes = {**notes, **path_notes(topology, table)}
        return Routes(
            self.kind, NO_PORTS, PER[self.per], longest(table), notes=notes,
            form=PATHS, paths=table,
        )  # fmt: skip


@register("routing", "ksp")
class KShortest(SourceRouted):
    """The k shortest loopless paths of every pair of switches with hosts; a packet takes one of them.

    The path is drawn uniformly at the source: for each packet (``per: packet``) or by a hash of the pair of hosts
    (``flow``). Pairs with fewer than k paths use all they have; the notes count these pairs. ``seed`` draws which of
    equally long paths are among the k, uniformly for each pair; with ``ties: lexicographic`` they are the first by
    switch numbers, as in programs that list paths in that order. Such paths share their first hops, and the links of
    low numbers.

    Memory: 8 bytes per path and pair, and 1 per hop: 110 MB for the 8 shortest paths of 1,024 switches, which take
    about 20 s to compute.

    Example: ``routing: {kind: ksp, k: 8}``

    Example: ``routing: {kind: ksp, k: 4, ties: lexicographic}``

    Source: Singla, Hong, Popa, Godfrey, Jellyfish, NSDI 2012; Yen 1971, doi:10.1287/mnsc.17.11.712.
    """

    k: int = Field(default=8, ge=1, le=MOST)
    ties: Literal["drawn", "lexicographic"] = "drawn"
    seed: int = Field(default=0, ge=0)

    def routes(self, topology: Topology) -> Routes:
        require_connected(topology)
        drawn = self.ties == "drawn"
        sets = shortest_sets(topology, self.k, None, self.seed) if drawn else first_sets(topology, self.k)
        table = path_table(topology, sets)
        counts = table.pair_start[1:] - table.pair_start[:-1]
        most = int(counts.max(initial=0))
        if 0 < most < self.k:
            raise SpecError(
                f"no pair of switches has more than {most} loopless paths; llskr takes as many as there are, and "
                "minimal, ecmp and allpath serve too",
                key="k",
            )
        fewer = int(((counts > 0) & (counts < self.k)).sum())
        return self.along(topology, table, pairs_with_fewer_paths=fewer)
