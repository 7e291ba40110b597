# SPDX-License-Identifier: Apache-2.0
"""Collectives along trees with the least possible channel load."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order, result_or_raise
from flitlab.fluid.collective.balanced import balanced_trees
from flitlab.fluid.collective.forest import all_gather_trees, broadcast_trees
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.collective.rooted import rooted_trees
from flitlab.models.collective.pipeline import (
    RankPair,
    Stream,
    all_gather_streams,
    all_reduce_streams,
    build_schedule,
    reduce_scatter_streams,
)
from flitlab.models.collective.program import build_program
from flitlab.models.collective.schedule import Schedule, check
from flitlab.models.collective.tree import Tree
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.paths import longest, path_notes
from flitlab.models.routing.planned import weighted_path_table
from flitlab.models.routing.routes import NO_PORTS, Routes
from flitlab.models.rules.tables import RouteForm, Selection
from flitlab.models.topology.graph import Topology

MESSAGES = 1 << 16
"""Messages of a program up to which pieces are divided into more chunks by default."""

LEAST = 1024
"""Bytes below which chunks are not divided by default."""

MAX_CHUNKS = 64
"""Default limit of the chunks of a part."""


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """Streams of a collective, before parts are divided into chunks.

    parts: parts of a piece. reaches: time of the streams, in units of a piece over a channel of capacity 1. routes:
    along their paths; None where they use single channels.
    """

    streams: Sequence[Stream]
    parts: int
    reaches: Fraction
    routes: Routes | None

    @property
    def sends(self) -> int:
        """Number of messages if every part is one chunk."""
        return sum(stream.count * len(stream.arcs) for stream in self.streams)


class Scheduled(AlgorithmSpec):
    """An algorithm that follows a schedule of streams, see :meth:`stream_plan`.

    A message leaves the ``window`` when it has left its host or, with ``messages: {confirmed: true}``, when it has been
    delivered. With a window of 1, messages to a peer do not share channels.
    """

    chunks: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Chunks of each part of the data. null: as many as keep the program short."""
    window: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Messages to a peer in flight at a time."""

    def stream_plan(self, question: Question) -> StreamPlan:
        """The streams of a collective. Raises ``SpecError`` or ``FluidError`` where there are none."""
        raise NotImplementedError

    def plan(self, question: Question, once: Once) -> Plan:
        network = question.topology.content_hash, question.collective, question.ranks, question.root
        stream_plan: StreamPlan = result_or_raise(
            once((self.kind, *network, repr(self)), lambda: self.stream_plan(question))
        )
        chunks = self.chunks or _chunks(stream_plan, question.piece)
        key = (self.kind, "schedule", *network, repr(self), chunks)
        schedule: Schedule = result_or_raise(once(key, lambda: _schedule(question, stream_plan, chunks)))
        program = build_program(
            schedule, question.piece, self.window, self.kind, question.size, question.ns_per_byte
        )  # fmt: skip
        return Plan(
            program, in_order(question), schedule=schedule, reaches=stream_plan.reaches,
            trees=stream_plan.parts, chunks=chunks * stream_plan.parts,
            depth=max(map(_depth, stream_plan.streams)), routes=stream_plan.routes,
        )  # fmt: skip


@register("algorithm", "trees")
class Trees(Scheduled):
    """Parts of every rank's data follow spanning trees whose channel loads reach the bound.

    An all-reduce is a reduce-scatter and then an all-gather. Where translations of the network are known, the trees of
    one rank are moved to the others; else they are packed, which serves some hundred ranks. ``parts``: trees of each
    rank, fewer than the bound needs.

    Example: ``algorithm: {kind: trees, chunks: 4}``

    Source: Edmonds 1973; Frank 1978; Zhao et al., arXiv:2402.06787 and arXiv:2202.03356.
    """

    collectives: ClassVar[tuple[str, ...]] = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce")

    parts: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Trees of each rank. null: as many as the bound needs."""

    def stream_plan(self, question: Question) -> StreamPlan:
        network, kind, count = question.network(), question.collective, question.count
        if kind in ("broadcast", "reduce"):
            forest = broadcast_trees(network if kind == "broadcast" else network.reversed(), question.root, self.parts)
            along = all_gather_streams if kind == "broadcast" else reduce_scatter_streams
            return routed_streams(question, along(forest.trees, numbered(forest.network)), forest.parts, forest.reached)
        out = self._forest(question, network) if kind != "reduce_scatter" else None
        into = self._forest(question, network.reversed()) if kind != "all_gather" else None
        if into is None:
            assert out is not None
            return routed_streams(question, all_gather_streams(out.trees, out.rank), out.parts, out.time)
        if out is None:
            return routed_streams(question, reduce_scatter_streams(into.trees, into.rank), into.parts, into.time)
        parts = lcm(out.parts, into.parts)
        pairs = list(_paired(_scaled(into.trees, parts // into.parts), _scaled(out.trees, parts // out.parts)))
        return routed_streams(
            question, all_reduce_streams(pairs, out.rank), parts * count, (into.time + out.time) / count
        )

    def _forest(self, question: Question, network: CollectiveNetwork) -> "_Forest":
        """Trees of every rank; a network that is its own reverse has the same in both directions.

        Translations need a rank on every switch. If a rank has a channel to its switch, the data of all other ranks
        passes it, as much as passes all channels of the switch.
        """
        topology = question.topology
        one_each = network.vertex_transitive and network.ranks == network.vertices
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

    parts: parts of each root's data. time: of an all-gather over the trees. rank: of every vertex.
    """

    trees: tuple[Tree, ...]
    parts: int
    time: Fraction
    rank: Mapping[int, int]


def numbered(network: CollectiveNetwork) -> dict[int, int]:
    """Vertex -> rank, for the vertices that have one."""
    return {vertex: r for r, vertex in enumerate(network.rank_vertex.tolist())}


def routed_streams(question: Question, streams: Sequence[Stream], parts: int, reaches: Fraction) -> StreamPlan:
    """A stream plan with the routes of its streams.

    Parameters
    ----------
    question : Question
        The collective.
    streams : sequence of Stream
        Its streams.
    parts : int
        Parts of a piece.
    reaches : Fraction
        Time, in units of a piece over a channel of capacity 1.
    """
    return StreamPlan(streams, parts, reaches, stream_routes(question.topology, streams))


def _scaled(trees: Iterable[Tree], factor: int) -> list[Tree]:
    return [replace(tree, count=tree.count * factor) for tree in trees]


def _paired(into: Sequence[Tree], out: Sequence[Tree]) -> Iterator[tuple[Tree, Tree]]:
    """Pairs of an in-tree and an out-tree with equal roots and counts; trees are divided where counts differ."""
    waiting: defaultdict[int, list[Tree]] = defaultdict(list)
    for tree in into:
        waiting[tree.root].append(tree)
    for tree in out:
        unpaired = tree.count
        while unpaired:
            other = waiting[tree.root].pop()
            count = min(unpaired, other.count)
            if other.count > count:
                waiting[tree.root].append(replace(other, count=other.count - count))
            unpaired -= count
            yield replace(other, count=count), replace(tree, count=count)


def _chunks(stream_plan: StreamPlan, piece: int) -> int:
    """Default number of chunks of a part."""
    return max(1, min(MAX_CHUNKS, MESSAGES // max(stream_plan.sends, 1), piece // (stream_plan.parts * LEAST)))


def _schedule(question: Question, stream_plan: StreamPlan, chunks: int) -> Schedule:
    """The schedule of streams, checked chunk by chunk."""
    schedule = build_schedule(
        question.collective, question.count, stream_plan.parts, stream_plan.streams, chunks,
        _rates(question, stream_plan), question.root
    )  # fmt: skip
    check(schedule)
    return schedule


def _rates(question: Question, stream_plan: StreamPlan) -> dict[RankPair, float]:
    """Parts per unit of time between ranks: the capacity of a channel, or the demand of the streams for a path."""
    network, demand, single = question.network(), Counter[RankPair](), dict[RankPair, float]()
    real = (network.capacity.astype(float) / float(network.scale) * stream_plan.parts).tolist()
    arc_rate = dict(zip(zip(network.tail.tolist(), network.head.tolist(), strict=True), real, strict=True))
    for stream in stream_plan.streams:
        for arc, path in zip(stream.arcs, stream.paths, strict=True):
            demand[arc] += stream.count
            single[arc] = arc_rate.get(path, 0.0) if len(path) == 2 and single.get(arc, 1.0) else 0.0
    return {arc: single[arc] or count / float(stream_plan.reaches) for arc, count in demand.items()}


def _depth(stream: Stream) -> int:
    """The longest chain of dependent arcs."""
    depth: list[int] = []
    for waited in stream.after:
        depth.append(1 + max((depth[index] for index in waited), default=0))
    return max(depth, default=0)


MAX_RANKS = 64
"""Ranks up to which the linear program is solved; it takes seconds for 36."""


@register("algorithm", "rooted_trees")
class RootedTrees(Scheduled):
    """Parts of the vector are reduced along in-trees to their roots, and spread from there along out-trees.

    Roots, trees and their shares are those of a linear program. On meshes they are up to twice as fast as a
    reduce-scatter and then an all-gather; where all ranks are alike, they are the same.

    Example: ``algorithm: rooted_trees``

    Source: Edmonds 1973, Edge-disjoint branchings; Frank 1978, On disjoint trees and arborescences.
    """

    collectives: ClassVar[tuple[str, ...]] = ("all_reduce",)

    def stream_plan(self, question: Question) -> StreamPlan:
        network = question.network()
        if network.ranks > MAX_RANKS:
            raise SpecError(f"solves a linear program for up to {MAX_RANKS} ranks, not {network.ranks}", "kind")
        forest = rooted_trees(network)
        streams = all_reduce_streams([(pair.into, pair.out) for pair in forest.trees], numbered(forest.network))
        return routed_streams(question, streams, forest.parts, forest.reached)


def stream_routes(topology: Topology, streams: Iterable[Stream]) -> Routes | None:
    """Routes of messages between ranks along the paths of streams; None if all messages go to neighbours.

    Each path between two switches gets its share of the parts of the streams. Other pairs of switches use a shortest
    path. Vertices beyond the switches are hosts.
    """
    used = _used(topology, streams)
    if all(len(path) == 2 for paths in used.values() for path in paths):
        return None
    pairs = sorted(used)
    channels, weight, counts = [], [], []
    for pair in pairs:
        paths = sorted(used[pair].items(), key=lambda item: (len(item[0]), item[0]))
        total = sum(count for _, count in paths)
        counts.append(len(paths))
        weight += [count / total for _, count in paths]
        channels += [_channels(topology, path) for path, _ in paths]
    lengths = np.array([len(path_channels) for path_channels in channels], np.int64)
    flat = np.array([channel for path_channels in channels for channel in path_channels], np.int32)
    own = np.array([s * topology.switches + t for s, t in pairs], np.int64)
    path_set = PathSet(starts(np.array(counts, np.int64)), starts(lengths), flat)
    table = weighted_path_table(topology, own, path_set, np.array(weight), 1, 0)
    return Routes(
        "trees",
        NO_PORTS,
        Selection.RANDOM,
        longest(table),
        notes=path_notes(topology, table),
        form=RouteForm.PATHS,
        paths=table,
    )


def _used(topology: Topology, streams: Iterable[Stream]) -> dict[tuple[int, int], Counter[tuple[int, ...]]]:
    """Parts per path of switches, by the ends of the path."""
    used: defaultdict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for stream in streams:
        for path in stream.paths:
            inner = tuple(v for v in path if v < topology.switches)
            if len(inner) > 1:
                used[inner[0], inner[-1]][inner] += stream.count
    return used


def _channels(topology: Topology, path: tuple[int, ...]) -> list[int]:
    """The first channel from each switch of a path to the next one."""
    n, ends = topology.switches, topology.src * topology.switches + topology.dst
    return [int(np.searchsorted(ends, u * n + v)) for u, v in itertools.pairwise(path)]
