# SPDX-License-Identifier: Apache-2.0
"""Routing over paths from the source: the k shortest ones, those of limited length, or all up to a length."""

from typing import ClassVar, Literal

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.paths import (
    MAX_PATHS,
    farthest,
    first_sets,
    longest,
    missing_pair,
    path_notes,
    path_table,
    require_connected,
    sets_within,
    shortest_sets,
    within_hops,
)
from flitlab.models.routing.routes import NO_PORTS, PER, PathTable, Routes, RoutingSpec
from flitlab.models.routing.weights import ChannelWeightSpec
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names

MOST = 1024
"""The largest k. The search for the k-th path takes time that grows with k."""


class SourceRouted(RoutingSpec):
    """A routing that draws one of a pair's paths at the source: for each packet, or one for each flow by a hash."""

    supports_multistage: ClassVar[bool] = True

    per: Literal["packet", "flow"] = "packet"
    """Whether every packet draws its path, or every pair of hosts by a hash."""

    def along(self, topology: Topology, table: PathTable, **notes: object) -> Routes:
        """The routes over a table of paths.

        Parameters
        ----------
        topology: the network.
        table: the paths.
        """
        notes = {**notes, **path_notes(topology, table)}
        return Routes(
            self.kind, NO_PORTS, PER[self.per], longest(table), notes=notes,
            form=RouteForm.PATHS, paths=table,
        )  # fmt: skip


@register("routing", "ksp", aliases=("k_shortest_paths",))
class KShortest(ChannelWeightSpec, SourceRouted):
    """The k shortest loopless paths of every pair of switches with hosts; a packet takes one of them.

    The path is drawn uniformly at the source: for each packet (``per: packet``) or by a hash of the pair of hosts
    (``flow``). ``weight``: length of channels as for ``minimal``, by default ``hops``. Pairs with fewer than k paths
    use all they have; the notes count these pairs. ``max_hops`` keeps, of the k, the paths of at most that many
    channels; a pair without such paths keeps those of the fewest channels. ``seed`` draws which of equally long paths
    are among the k, uniformly for each pair; with ``ties: lexicographic`` they are the first by switch numbers, as in
    programs that list paths in that order. Such paths share their first hops, and the links of low numbers.

    Memory: 8 bytes per path and pair, and 1 per hop: 110 MB for the 8 shortest paths of 1,024 switches, which take
    about 20 s to compute.

    Example: ``routing: {kind: ksp, k: 8}``

    Example: ``routing: {kind: ksp, k: 4, ties: lexicographic}``

    Example: ``routing: {kind: ksp, k: 4, max_hops: 3}``

    Example: ``routing: {kind: ksp, k: 4, weight: delay}``

    Source: Singla, Hong, Popa, Godfrey, Jellyfish, NSDI 2012; Yen 1971, doi:10.1287/mnsc.17.11.712.
    """

    k: int = Field(default=8, ge=1, le=MOST)
    """Paths of every pair of switches."""
    max_hops: int | None = Field(default=None, ge=1)
    """The most channels of a path. null: any."""
    ties: Literal["drawn", "lexicographic"] = "drawn"
    """Which of equally long paths are kept: drawn, or the first by number (lengths in hops only)."""
    seed: int = Field(default=0, ge=0)
    """Seed that draws which of equally long paths are kept."""

    def routes(self, topology: Topology) -> Routes:
        drawn, weight = self.ties == "drawn", self.weights(topology)
        if weight is not None and not drawn:
            raise SpecError("lexicographic orders paths by hops, and weight is something else; choices: drawn", "ties")
        sets = shortest_sets(topology, self.k, None, self.seed, weight) if drawn else first_sets(topology, self.k)
        if self.max_hops is not None:
            sets = ((pairs, within_hops(paths, self.max_hops)) for pairs, paths in sets)
        table = path_table(topology, sets)
        counts = table.pair_start[1:] - table.pair_start[:-1]
        most = int(counts.max(initial=0))
        if 0 < most < self.k and self.max_hops is None:
            raise SpecError(
                f"no pair of switches has more than {most} loopless paths; llskr takes as many as there are, and "
                "minimal, ecmp and allpath serve too",
                key="k",
            )
        fewer = int(((counts > 0) & (counts < self.k)).sum())
        return self.along(topology, table, pairs_with_fewer_paths=fewer, **self.weight_notes(topology))


@register("routing", "llskr")
class LimitedSpread(SourceRouted):
    """The k shortest paths, but none over ``spread`` hops longer than the pair's shortest one.

    A pair with several short paths then uses no long ones, and a pair with few still has alternatives. spread 0 keeps
    the equal-cost paths. One path is drawn for each packet or flow, as in ``ksp``.

    Example: ``routing: {kind: llskr, k: 8, spread: 1}``

    Source: Yuan, Mahapatra, Nienaber, Pakin, Lang, A new routing scheme for Jellyfish and its performance with HPC
    workloads, SC 2013, doi:10.1145/2503210.2503229 (paths of limited spread; k and spread are parameters).
    """

    k: int = Field(default=8, ge=1, le=MOST)
    """Paths of every pair of switches."""
    spread: int = Field(default=1, ge=0)
    """Hops by which a path may exceed the shortest."""
    seed: int = Field(default=0, ge=0)
    """Seed that draws which of equally long paths are kept."""

    def routes(self, topology: Topology) -> Routes:
        table = path_table(topology, shortest_sets(topology, self.k, self.spread, self.seed))
        return self.along(topology, table)


def fewest_hops(switches: int, degree: int) -> int:
    """The least H with degree**H >= switches; 1 at least."""
    hops, reached = 1, degree
    while reached < switches and degree > 1:
        hops, reached = hops + 1, reached * degree
    return hops


@register("routing", "allpath")
class AllPath(SourceRouted):
    """ALLPATH(H): every loopless path of at most ``hops`` channels; a packet takes one of them.

    hops defaults to the least H with degree**H >= the number of switches, which serves every generalised de Bruijn
    graph. One of a pair's paths is drawn uniformly, for each packet or by flow.

    Example: ``routing: {kind: allpath, hops: 3}``

    Source: DBG section IV-B.
    """

    hops: int | None = Field(default=None, ge=1)
    """The most channels of a path. null: the least that serves a de Bruijn graph."""

    def routes(self, topology: Topology) -> Routes:
        require_connected(topology)
        degree = int(topology.out_degree.max(initial=1))
        hops = min(self.hops or fewest_hops(topology.switches, degree), max(1, topology.switches - 1))
        steps = topology.channels * max(1, degree - (not topology.directed)) ** min(hops - 1, 64)  # more is too many
        if steps > 10 * MAX_PATHS:
            raise SpecError(f"up to {steps:.0e} paths: too many to keep; use fewer hops, or ksp", key="hops")
        table = path_table(topology, sets_within(topology, hops))
        missing = missing_pair(topology, table)
        if missing is not None:
            s, t = map(switch_names(topology).label, missing)
            problem = f"switch {t} is farther than {hops} hops from switch {s}; nearest {farthest(topology)}"
            raise SpecError(problem, key="hops")
        return self.along(topology, table, hops_allowed=hops)
