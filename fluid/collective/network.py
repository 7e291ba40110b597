# SPDX-License-Identifier: Apache-2.0
"""The network of a collective in whole numbers: capacities, and what starts where."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, inf, isfinite, lcm
from typing import get_args

import numpy as np

from flitlab.fluid.collective.collective import Ranks
from flitlab.fluid.problem import FluidError, check_capacities
from flitlab.fluid.translations import translations
from flitlab.models.arrays import Bools, Ints
from flitlab.models.topology.graph import Topology

MAX_DENOMINATOR = 2**20
"""Largest common denominator of capacities."""

MAX_PRODUCT = 2**60
"""Bound of the product of all capacities' sum and all units, so that every flow is an int64."""

ROUNDING = Fraction(1, 2**50)
"""By what part of it a capacity may differ from the fraction that it is read as: some steps of a double."""


@dataclass(frozen=True, eq=False)
class CollectiveNetwork:
    """Arcs between vertices (switches), and the ranks of a collective on them, all in whole numbers.

    tail, head: int64 [arcs], sorted by (tail, head), no pair twice: parallel channels are one arc. capacity: int64
    [arcs], above 0; in channels it is ``capacity / scale``. place: int64 [ranks], ascending, the vertex of every rank.
    amount: int64 [ranks], the units that start there, 0 or more.
    host: capacity of the channel from a rank to its switch and of that back, in the same whole numbers; None where
    ranks are switches, or those channels are infinite.
    alike: whether symmetries that are known take every vertex to every other one, and ranks to ranks of equal amounts.
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
        """The network of a topology with a rank on every switch that has hosts, or with every host as a rank.

        Where no switch has hosts, each is a rank of ``switches``. amounts: the units of each rank, in the order of
        switches or hosts; without, each has one.

        Raises :class:`~flitlab.fluid.problem.FluidError` for fewer than two ranks, amounts that are no whole numbers
        or all 0, capacities without a common denominator up to ``MAX_DENOMINATOR``, or numbers whose products overflow.
        """
        check_capacities(topology)
        place = _places(topology, ranks)
        host = topology.host_capacity if ranks == "hosts" and topology.host_capacity < inf else None
        whole, scale = integer_capacities([*topology.capacity.tolist(), *([] if host is None else [host])])
        tail, head, capacity = _merged(topology, whole[: topology.channels])
        network = cls(
            topology.switches, tail, head, capacity, scale, place, _amounts(len(place), amounts),
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
        """All units together: N where each rank has one."""
        return int(self.amount.sum())

    @cached_property
    def weight(self) -> Ints:
        """int64 [vertices]: the units that start at each vertex, at all its ranks together."""
        total = np.zeros(self.vertices, np.int64)
        np.add.at(total, self.rank_vertex, self.amount)
        return total

    @cached_property
    def is_rank(self) -> Bools:
        """bool [vertices]: whether a vertex has ranks."""
        return np.bincount(self.rank_vertex, minlength=self.vertices) > 0

    @cached_property
    def sinks(self) -> Ints:
        """int64: the vertices with ranks, one alone where all are alike."""
        having = np.flatnonzero(self.is_rank)
        return having[:1] if self.vertex_transitive else having

    @property
    def ranks_only(self) -> bool:
        """Whether there is nothing but ranks, without channels of their own."""
        return self.host is None and bool(self.is_rank.all())

    @property
    def host_limited(self) -> bool:
        """Whether nothing between switches is slower than the channel of a rank, so that it bounds no all-gather."""
        return self.host is not None and int(self.capacity.min(initial=self.host)) >= self.host

    @property
    def balanced(self) -> bool:
        """Whether as much capacity leaves every vertex as enters it."""
        net = np.zeros(self.vertices, np.int64)
        np.add.at(net, self.tail, self.capacity)
        np.subtract.at(net, self.head, self.capacity)
        return not net.any()

    @property
    def symmetric(self) -> bool:
        """Whether between any two vertices there is the same capacity both ways."""
        turned = self.reversed()
        return all(np.array_equal(getattr(self, name), getattr(turned, name)) for name in ("tail", "head", "capacity"))

    def out_of(self, side: Bools) -> int:
        """B+, the whole-number capacity of all arcs out of a side (bool [vertices])."""
        return int(self.capacity[side[self.tail] & ~side[self.head]].sum())

    def units_in(self, side: Bools) -> int:
        """The units that start in a side (bool [vertices])."""
        return int(self.weight[side].sum())

    def reversed(self) -> "CollectiveNetwork":
        """The network with all arcs turned round."""
        order = np.lexsort((self.tail, self.head))
        return replace(self, tail=self.head[order], head=self.tail[order], capacity=self.capacity[order])

    def even(self) -> "CollectiveNetwork":
        """The network with one unit at every rank."""
        same = len(set(self.amount.tolist())) == 1
        return replace(self, amount=np.ones(self.ranks, np.int64), vertex_transitive=self.vertex_transitive and same)

    def check(self) -> None:
        """Raise :class:`~flitlab.fluid.problem.FluidError` if products of units and capacities could pass int64."""
        capacity, units = sum(self.capacity.tolist()) + (self.host or 0), sum(self.amount.tolist())
        if capacity * max(units, self.ranks) >= MAX_PRODUCT:
            raise FluidError(
                f"{units} units and capacities of {capacity} / {self.scale} together are too many for exact "
                "bounds of a collective: give amounts in larger units, or capacities with a smaller common denominator"
            )


def integer_capacities(capacity: Sequence[float]) -> tuple[Ints, Fraction]:
    """Capacities as whole numbers without a common factor, and how many of the whole make one.

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
    """The fraction that a capacity is meant to be, of a denominator of ``MAX_DENOMINATOR`` at most.

    Raises :class:`~flitlab.fluid.problem.FluidError` if there is none.
    """
    if not (isfinite(value) and value > 0):
        raise FluidError(f"a capacity of {value} is none that collectives can use: it must be positive, finite")
    fraction = Fraction(value).limit_denominator(MAX_DENOMINATOR)
    if abs(fraction - Fraction(value)) > Fraction(value) * ROUNDING:
        raise FluidError(f"the capacity {value!r} is no fraction with a denominator up to {MAX_DENOMINATOR}")
    return fraction


def _places(topology: Topology, ranks: Ranks) -> Ints:
    """int64 [ranks]: the switch of every rank. Raises :class:`~flitlab.fluid.problem.FluidError` below two."""
    if ranks not in get_args(Ranks):
        raise FluidError(f"ranks are {' or '.join(get_args(Ranks))}, not {ranks}")
    if ranks == "hosts":
        place = topology.host_switch
    else:
        place = np.flatnonzero(topology.host_count if topology.hosts else np.ones(topology.switches))
    if len(place) < 2:
        raise FluidError(f"a collective needs at least two ranks; of {ranks} with hosts there are {len(place)}")
    return place.astype(np.int64)


def _amounts(ranks: int, amounts: Sequence[int] | None) -> Ints:
    """int64 [ranks]: the units of every rank; raises :class:`~flitlab.fluid.problem.FluidError` if they are none."""
    if amounts is None:
        return np.ones(ranks, np.int64)
    if len(amounts) != ranks:
        raise FluidError(f"there are {len(amounts)} amounts for {ranks} ranks")
    wrong = [amount for amount in amounts if not (amount == int(amount) and 0 <= amount < MAX_PRODUCT)]
    if wrong or not any(amounts):
        raise FluidError(f"amounts are whole numbers, not all of them 0; {wrong[0] if wrong else 'all'} is not")
    return np.array([int(amount) for amount in amounts], np.int64)


def _merged(topology: Topology, capacity: Ints) -> tuple[Ints, Ints, Ints]:
    """Tail, head and capacity of arcs, parallel channels (whose capacities are given) being one."""
    pair = topology.src * topology.switches + topology.dst
    arc, index = np.unique(pair, return_inverse=True)
    total = np.zeros(len(arc), np.int64)
    np.add.at(total, index, capacity)
    return arc // topology.switches, arc % topology.switches, total
