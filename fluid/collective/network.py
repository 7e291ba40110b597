# SPDX-License-Identifier: Apache-2.0
"""The network of a collective with integer capacities, and the ranks on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, inf, isfinite, lcm
from typing import get_args

import numpy as np

from flitlab.fluid.collective.collective import Ranks
from flitlab.fluid.problem import FluidError, check_capacities
from flitlab.fluid.symmetries import translations
from flitlab.models.arrays import Bools, Ints
from flitlab.models.topology.graph import Topology

MAX_DENOMINATOR = 2**20
"""Largest common denominator of capacities."""

MAX_PRODUCT = 2**60
"""Limit of total capacity times total units, so that every flow is an int64."""

ROUNDING = Fraction(1, 2**50)
"""Relative difference that is allowed between a capacity and the fraction it is read as: some ulps of a double."""


@dataclass(frozen=True, eq=False)
class CollectiveNetwork:
    """Arcs between vertices (switches), and the ranks of a collective on them, all in integers.

    tail, head: int64 [arcs], sorted by (tail, head), without duplicates: parallel channels are one arc. capacity: int64
    [arcs], > 0; the capacity of channels is ``capacity / scale``. rank_vertex: int64 [ranks], ascending, the vertex of
    every rank. amount: int64 [ranks], units of each rank, >= 0. host: capacity of the channels between a rank and its
    switch, in the same integers; None where ranks are switches, or those channels are infinite. vertex_transitive:
    whether known symmetries map every vertex to every other one, and ranks to ranks of equal amounts.
    """

    vertices: int
    tail: Ints
    head: Ints
    capacity: Ints
    scale: Fraction
    rank_vertex: Ints
    amount: Ints
    host: int | None = None
    vertex_transitive: bool = False

    @classmethod
    def of(
        cls, topology: Topology, ranks: Ranks = "switches", amounts: Sequence[int] | None = None
    ) -> "CollectiveNetwork":
        """The network of a topology.

        Parameters
        ----------
        topology : Topology
            The network.
        ranks : str
            ``switches``: a rank on every switch that has hosts (on each, if none has); ``hosts``: every host is a rank.
        amounts : sequence of int or None
            Units of each rank, in the order of switches or hosts; by default 1.

        Raises
        ------
        FluidError
            Fewer than two ranks, amounts that are no integers or all 0, capacities without a common denominator up to
            ``MAX_DENOMINATOR``, or numbers whose products overflow.
        """
        check_capacities(topology)
        rank_vertex = _rank_vertices(topology, ranks)
        host = topology.host_capacity if ranks == "hosts" and topology.host_capacity < inf else None
        whole, scale = integer_capacities([*topology.capacity.tolist(), *([] if host is None else [host])])
        tail, head, capacity = _merged(topology, whole[: topology.channels])
        network = cls(
            topology.switches, tail, head, capacity, scale, rank_vertex, _amounts(len(rank_vertex), amounts),
            None if host is None else int(whole[-1]),
        )  # fmt: skip
        network.check()
        even = len(set(zip(network.weight.tolist(), network.is_rank.tolist(), strict=True))) == 1
        same = len(set(network.amount.tolist())) == 1
        return replace(network, vertex_transitive=even and same and next(translations(topology), None) is not None)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.rank_vertex)

    @cached_property
    def units(self) -> int:
        """Total units: N where each rank has one."""
        return int(self.amount.sum())

    @cached_property
    def weight(self) -> Ints:
        """int64 [vertices]: the total units of the ranks at each vertex."""
        total = np.zeros(self.vertices, np.int64)
        np.add.at(total, self.rank_vertex, self.amount)
        return total

    @cached_property
    def is_rank(self) -> Bools:
        """bool [vertices]: whether a vertex has ranks."""
        return np.bincount(self.rank_vertex, minlength=self.vertices) > 0

    @cached_property
    def sinks(self) -> Ints:
        """int64: the vertices with ranks, only one of them where the network is vertex-transitive."""
        having = np.flatnonzero(self.is_rank)
        return having[:1] if self.vertex_transitive else having

    @property
    def ranks_only(self) -> bool:
        """Whether every vertex is a rank, without channels of its own."""
        return self.host is None and bool(self.is_rank.all())

    @property
    def host_limited(self) -> bool:
        """Whether no channel between switches is slower than a rank's channel, so that these do not bound an
        all-gather.
        """
        return self.host is not None and int(self.capacity.min(initial=self.host)) >= self.host

    @property
    def balanced(self) -> bool:
        """Whether the capacities out of and into every vertex are equal."""
        net = np.zeros(self.vertices, np.int64)
        np.add.at(net, self.tail, self.capacity)
        np.subtract.at(net, self.head, self.capacity)
        return not net.any()

    @property
    def symmetric(self) -> bool:
        """Whether any two vertices have the same capacity in both directions."""
        turned = self.reversed()
        return all(np.array_equal(getattr(self, name), getattr(turned, name)) for name in ("tail", "head", "capacity"))

    def out_of(self, side: Bools) -> int:
        """B+, the integer capacity of all arcs out of a side.

        Parameters
        ----------
        side : bool [vertices]
            Vertices of the side.
        """
        return int(self.capacity[side[self.tail] & ~side[self.head]].sum())

    def units_in(self, side: Bools) -> int:
        """The units of the ranks on a side.

        Parameters
        ----------
        side : bool [vertices]
            Vertices of the side.
        """
        return int(self.weight[side].sum())

    def reversed(self) -> "CollectiveNetwork":
        """The network with all arcs reversed."""
        order = np.lexsort((self.tail, self.head))
        return replace(self, tail=self.head[order], head=self.tail[order], capacity=self.capacity[order])

    def even(self) -> "CollectiveNetwork":
        """The network with one unit at every rank."""
        same = len(set(self.amount.tolist())) == 1
        return replace(self, amount=np.ones(self.ranks, np.int64), vertex_transitive=self.vertex_transitive and same)

    def check(self) -> None:
        """Raise :class:`~flitlab.fluid.problem.FluidError` if products of units and capacities could overflow an
        int64.
        """
        capacity, units = sum(self.capacity.tolist()) + (self.host or 0), sum(self.amount.tolist())
        if capacity * max(units, self.ranks) >= MAX_PRODUCT:
            raise FluidError(
                f"{units} units and capacities of {capacity} / {self.scale} together are too many for exact "
                "bounds of a collective: give amounts in larger units, or capacities with a smaller common denominator"
            )


def integer_capacities(capacity: Sequence[float]) -> tuple[Ints, Fraction]:
    """Capacities as integers without a common factor, and the integer that represents 1.

    Raises :class:`~flitlab.fluid.problem.FluidError` if they have no common denominator up to ``MAX_DENOMINATOR``.
    """
    fractions = {value: _fraction(value) for value in set(capacity)}
    common = lcm(*(fraction.denominator for fraction in fractions.values()))
    if common > MAX_DENOMINATOR:
        raise FluidError(
            f"capacities have no common denominator up to {MAX_DENOMINATOR}, as exact bounds of a collective need: "
            f"{', '.join(f'{value:.9g}' for value in sorted(fractions)[:4])}{', ...' if len(fractions) > 4 else ''}"
        )
    whole = {value: int(fraction * common) for value, fraction in fractions.items()}
    if max(whole.values(), default=0) >= MAX_PRODUCT:
        raise FluidError(f"a capacity of {max(capacity):g} is too large for exact bounds of a collective")
    factor = gcd(*whole.values()) or 1
    return np.array([whole[value] // factor for value in capacity], np.int64), Fraction(common, factor)


def _fraction(value: float) -> Fraction:
    """The fraction that a capacity represents, with a denominator of ``MAX_DENOMINATOR`` at most.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is none.
    """
    if not (isfinite(value) and value > 0):
        raise FluidError(f"a capacity is {value}: it must be positive and finite")
    fraction = Fraction(value).limit_denominator(MAX_DENOMINATOR)
    if abs(fraction - Fraction(value)) > Fraction(value) * ROUNDING:
        raise FluidError(f"the capacity {value!r} is not a fraction with a denominator up to {MAX_DENOMINATOR}")
    return fraction


def _rank_vertices(topology: Topology, ranks: Ranks) -> Ints:
    """int64 [ranks]: the switch of every rank. Raises :class:`~flitlab.fluid.problem.FluidError` for fewer than two."""
    if ranks not in get_args(Ranks):
        raise FluidError(f"ranks are {' or '.join(get_args(Ranks))}, not {ranks}")
    if topology.is_multistage:
        raise FluidError("a rank has one switch, and here hosts inject at one switch and eject at another")
    if ranks == "hosts":
        rank_vertex = topology.host_switch
    else:
        rank_vertex = np.flatnonzero(topology.host_count if topology.hosts else np.ones(topology.switches))
    if len(rank_vertex) < 2:
        raise FluidError(f"a collective needs at least two ranks, not {len(rank_vertex)} (ranks: {ranks})")
    return rank_vertex.astype(np.int64)


def _amounts(ranks: int, amounts: Sequence[int] | None) -> Ints:
    """int64 [ranks]: the units of every rank; raises :class:`~flitlab.fluid.problem.FluidError` if they are invalid."""
    if amounts is None:
        return np.ones(ranks, np.int64)
    if len(amounts) != ranks:
        raise FluidError(f"there are {len(amounts)} amounts for {ranks} ranks")
    wrong = [amount for amount in amounts if not (amount == int(amount) and 0 <= amount < MAX_PRODUCT)]
    if wrong or not any(amounts):
        raise FluidError(f"amounts must be whole numbers from 0, not all 0: {wrong[0] if wrong else 'all are 0'}")
    return np.array([int(amount) for amount in amounts], np.int64)


def _merged(topology: Topology, capacity: Ints) -> tuple[Ints, Ints, Ints]:
    """Tail, head and capacity of the arcs; parallel channels become one. capacity: int64 [channels]."""
    pair = topology.src * topology.switches + topology.dst
    arc, index = np.unique(pair, return_inverse=True)
    total = np.zeros(len(arc), np.int64)
    np.add.at(total, index, capacity)
    return arc // topology.switches, arc % topology.switches, total
