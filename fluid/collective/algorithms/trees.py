# SPDX-License-Identifier: Apache-2.0
"""Collectives along trees that load channels as little as any algorithm can."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Annotated, ClassVar

from pydantic import Field

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order, made
from flitlab.fluid.collective.along import routes_along
from flitlab.fluid.collective.balanced import balanced_trees
from flitlab.fluid.collective.forest import all_gather_trees, broadcast_trees
from flitlab.fluid.collective.network import Network
from flitlab.models.collective.build import (
    all_gather_streams,
    all_reduce_streams,
    build_schedule,
    reduce_scatter_streams,
)
from flitlab.models.collective.pipeline import RankPair, Stream
from flitlab.models.collective.program import build_program
from flitlab.models.collective.schedule import Schedule, check
from flitlab.models.collective.tree import Tree
from flitlab.models.registry import register
from flitlab.models.routing.routes import Routes

MESSAGES = 1 << 16
"""Messages of a program up to which pieces are cut into more chunks by default."""

LEAST = 1024
"""Bytes of a chunk that is not cut further by default."""

MOST_CHUNKS = 64
"""Chunks of a part, at most, by default."""


@dataclass(frozen=True, eq=False)
class Ways:
    """Streams for a collective, before anything is cut into chunks.

    parts: of a piece. reaches: time over the streams, in units of a piece over a channel of capacity 1. routes: along
    their paths, None where they use single channels.
    """

    streams: Sequence[Stream]
    parts: int
    reaches: Fraction
    routes: Routes | None

    @property
    def sends(self) -> int:
        """Messages, if every part is a chunk."""
        return sum(stream.count * len(stream.arcs) for stream in self.streams)


class Scheduled(AlgorithmSpec):
    """An algorithm that follows a schedule of streams, which :meth:`ways` gives.

    chunks: into how many every part of the data is cut, by default as many as keep the program short. window: messages
    to a peer of which the last is not sent before the first is done, which is when it has left its host or, with
    ``messages: {confirmed: true}``, when it has been delivered. With 1, messages to a peer do not share channels.
    """

    chunks: Annotated[int, Field(ge=1, le=10_000)] | None = None
    window: Annotated[int, Field(ge=1, le=10_000)] = 1

    def ways(self, question: Question) -> Ways:
        """The streams of a collective. Raises ``SpecError`` or ``FluidError`` where there are none."""
        raise NotImplementedError

    def plan(self, question: Question, once: Once) -> Plan:
        network = question.topology.content_hash, question.collective, question.ranks, question.root
        found: Ways = made(once((self.kind, *network, repr(self)), lambda: self.ways(question)))
        chunks = self.chunks or _chunks(found, question.piece)
        key = (self.kind, "schedule", *network, repr(self), chunks)
        schedule: Schedule = made(once(key, lambda: _schedule(question, found, chunks)))
        program = build_program(
            schedule, question.piece, self.window, self.kind, question.size, question.ns_per_byte
        )  # fmt: skip
        return Plan(
            program, in_order(question), schedule=schedule, reaches=found.reaches,
            trees=found.parts, chunks=chunks * found.parts, depth=max(map(_depth, found.streams)), routes=found.routes,
        )  # fmt: skip


@register("algorithm", "trees")
class Trees(Scheduled):
    """Parts of every rank's data follow spanning trees that load every channel as little as the bound allows.

    An all-reduce is a reduce-scatter and then an all-gather. Where translations of the network are known, the trees of
    one rank are moved to the others; else they are packed, which serves some hundred ranks. ``parts``: trees of each
    rank, fewer than the bound needs.

    Example: ``algorithm: {kind: trees, chunks: 4}``

    Source: Edmonds 1973; Frank 1978; Zhao et al., arXiv:2402.06787 and arXiv:2202.03356.
    """

    collectives: ClassVar[tuple[str, ...]] = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce")

    parts: Annotated[int, Field(ge=1, le=10_000)] | None = None

    def ways(self, question: Question) -> Ways:
        network, kind, count = question.network(), question.collective, question.count
        if kind in ("broadcast", "reduce"):
            forest = broadcast_trees(network if kind == "broadcast" else network.reversed(), question.root, self.parts)
            along = all_gather_streams if kind == "broadcast" else reduce_scatter_streams
            return ways_of(question, along(forest.trees, numbered(forest.network)), forest.parts, forest.reached)
        out = self._forest(question, network) if kind != "reduce_scatter" else None
        into = self._forest(question, network.reversed()) if kind != "all_gather" else None
        if into is None:
            assert out is not None
            return ways_of(question, all_gather_streams(out.trees, out.rank), out.parts, out.time)
        if out is None:
            return ways_of(question, reduce_scatter_streams(into.trees, into.rank), into.parts, into.time)
        parts = lcm(out.parts, into.parts)
        pairs = list(_paired(_scaled(into.trees, parts // into.parts), _scaled(out.trees, parts // out.parts)))
        return ways_of(question, all_reduce_streams(pairs, out.rank), parts * count, (into.time + out.time) / count)

    def _forest(self, question: Question, network: Network) -> "_Forest":
        """Trees of every rank; a network that is its own reverse has the same ones.

        Where translations are used, every rank has a switch of its own. If it has a channel to it, too, as much leaves
        through this as through all channels of the switch: the data of all other ranks.
        """
        topology = question.topology
        one_each = network.alike and network.ranks == network.vertices
        if self.parts is None and one_each and network.is_rank.all() and (topology.reverse >= 0).all():
            moved = balanced_trees(topology)
            if moved is not None:
                at_hosts = Fraction(0) if network.host is None else network.scale * (network.ranks - 1) / network.host
                return _Forest(tuple(moved), moved.count, max(moved.reached, at_hosts), numbered(network))
        forest = all_gather_trees(network, self.parts)
        return _Forest(forest.trees, forest.parts, forest.reached, numbered(forest.network))


@dataclass(frozen=True, eq=False)
class _Forest:
    """Trees of all roots.

    parts: into how many each root's data is divided. time: of an all-gather over the trees. rank: of every vertex.
    """

    trees: tuple[Tree, ...]
    parts: int
    time: Fraction
    rank: Mapping[int, int]


def numbered(network: Network) -> dict[int, int]:
    """The rank at every vertex that has one."""
    return {vertex: r for r, vertex in enumerate(network.place.tolist())}


def ways_of(question: Question, streams: Sequence[Stream], parts: int, reaches: Fraction) -> Ways:
    """Streams with the routes that they take."""
    return Ways(streams, parts, reaches, routes_along(question.topology, streams))


def _scaled(trees: Iterable[Tree], factor: int) -> list[Tree]:
    return [replace(tree, count=tree.count * factor) for tree in trees]


def _paired(into: Sequence[Tree], out: Sequence[Tree]) -> Iterator[tuple[Tree, Tree]]:
    """Trees of the same root in pairs of equal counts, for which some are taken apart."""
    waiting: defaultdict[int, list[Tree]] = defaultdict(list)
    for tree in into:
        waiting[tree.root].append(tree)
    for tree in out:
        left = tree.count
        while left:
            other = waiting[tree.root].pop()
            count = min(left, other.count)
            if other.count > count:
                waiting[tree.root].append(replace(other, count=other.count - count))
            left -= count
            yield replace(other, count=count), replace(tree, count=count)


def _chunks(ways: Ways, piece: int) -> int:
    """Into how many chunks a part is cut, where nothing is said of it."""
    return max(1, min(MOST_CHUNKS, MESSAGES // max(ways.sends, 1), piece // (ways.parts * LEAST)))


def _schedule(question: Question, ways: Ways, chunks: int) -> Schedule:
    """The schedule of streams, once it has been followed to see that it does what it should."""
    schedule = build_schedule(
        question.collective, question.count, ways.parts, ways.streams, chunks, _rates(question, ways), question.root
    )  # fmt: skip
    check(schedule)
    return schedule


def _rates(question: Question, ways: Ways) -> dict[RankPair, float]:
    """Parts that ranks can send each other in a unit of time: what a channel carries, or what streams ask of a path."""
    network, asked, single = question.network(), Counter[RankPair](), dict[RankPair, float]()
    real = (network.capacity.astype(float) / float(network.scale) * ways.parts).tolist()
    carries = dict(zip(zip(network.tail.tolist(), network.head.tolist(), strict=True), real, strict=True))
    for stream in ways.streams:
        for lane, path in zip(stream.arcs, stream.paths, strict=True):
            asked[lane] += stream.count
            single[lane] = carries.get(path, 0.0) if len(path) == 2 and single.get(lane, 1.0) else 0.0
    return {lane: single[lane] or count / float(ways.reaches) for lane, count in asked.items()}


def _depth(stream: Stream) -> int:
    """How many arcs follow one another at most."""
    depth: list[int] = []
    for waited in stream.after:
        depth.append(1 + max((depth[place] for place in waited), default=0))
    return max(depth, default=0)
