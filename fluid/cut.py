# SPDX-License-Identifier: Apache-2.0
"""A cut, and the capacity and demand across many cuts of a network at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from flitlab.fluid.certificate import Certificate
from flitlab.models.arrays import Bools, Floats, Ints
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic

NAMED = 16
"""Switches that a note lists, at most."""

MAX_AMOUNT_RATIO = 1e6
"""Ratio of the largest to the least amount up to which sums may be subtracted: nine digits remain."""

ROUNDING = 4 * np.finfo(float).eps
"""Largest rounding error of a sum of n amounts, relative to it and to n."""

BLOCK = 1 << 22
"""Entries of the tables cuts x switches that are evaluated together."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut: the switches of ``side`` send at most ``upper`` times their demand to the other switches.

    name: of the heuristic. side: bool [switches]. capacity, demand: from the side to the others, flits/tick at load 1.
    certificate: price 1 on the channels that leave the side.
    """

    name: str
    upper: float
    side: Bools
    capacity: float
    demand: float
    note: str
    certificate: Certificate


class Crossing:
    """What a matrix between switches sends out of and into sets of switches; its diagonal is 0.

    Amounts may differ by twelve orders of magnitude; then sums are used without differences. rows, columns: float64
    [switches], sums of the matrix. matrix: [switches, switches], dense or sparse, or, for uniform demand, a pair
    (share, count) whose outer product it is, except for the diagonal.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, matrix: sparse.csr_array) -> None:
        self.rows, self.columns, self.matrix = rows, columns, matrix

    @classmethod
    def of_pairs(cls, switches: int, source: Ints, target: Ints, amount: Floats) -> "Crossing":
        """The matrix of amounts between different switches; sparse if few entries are positive.

        Parameters
        ----------
        switches : int
            Number of switches.
        source, target : int64 [pairs]
            Different switches; amounts of equal pairs are summed.
        amount : float64 [pairs]
            Flits/tick.
        """
        matrix = sparse.csr_array((amount, (source, target)), (switches, switches))
        thin = matrix.nnz * 10 < switches**2
        return cls(matrix.sum(axis=1), matrix.sum(axis=0), matrix if thin else matrix.toarray())

    @classmethod
    def of_demand(cls, traffic: Traffic) -> "Crossing":
        """The demand between switches at load 1."""
        topology = traffic.topology
        if topology.is_multistage or traffic.law not in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
            source, target, amount = traffic.switch_pairs()
            return cls.of_pairs(topology.switches, source, target, amount)
        share = np.bincount(topology.host_switch, traffic.rate, topology.switches)
        count = topology.host_count / (topology.hosts - (traffic.law == DestinationRule.UNIFORM))
        return cls(share * (count.sum() - count), (share.sum() - share) * count, (share, count))

    def leaving(self, inside: np.ndarray) -> Floats:
        """What leaves sets of switches.

        Parameters
        ----------
        inside : float64 [cuts, switches]
            Sets: 0 or 1.

        Returns
        -------
        float64 [cuts]
            Sum of the matrix from inside to outside.
        """
        outside = 1 - inside
        if isinstance(self.matrix, tuple):
            share, count = self.matrix
            crossing: Floats = (inside @ share) * (outside @ count)
            return crossing
        crossing = np.einsum("ij,ij->i", inside @ self.matrix, outside)
        return crossing

    def across(self, inside: np.ndarray) -> Floats:
        """What leaves, and what enters, sets of switches.

        Parameters
        ----------
        inside : float64 [cuts, switches]
            Sets: 0 or 1.

        Returns
        -------
        float64 [2, cuts]
            Out of the sets, and into them.
        """
        if isinstance(self.matrix, tuple) or not self._alike:
            return np.array([self.leaving(inside), self.leaving(1 - inside)])
        sent = inside @ self.matrix
        rest = self.columns - sent
        rest[rest < ROUNDING * len(self.columns) * self.columns] = 0
        pairs = (sent, 1 - inside), (rest, inside)
        return np.array([np.einsum("ij,ij->i", *pair) for pair in pairs])

    @cached_property
    def _alike(self) -> bool:
        """Whether amounts are similar enough for differences of sums."""
        amounts = self.matrix.data if sparse.issparse(self.matrix) else self.matrix[self.matrix > 0]
        return len(amounts) == 0 or amounts.max() <= MAX_AMOUNT_RATIO * amounts.min()

    def of_pair(self, u: int) -> Floats:
        """float64 [2, switches]: what leaves, and what enters, the sets {u, v} for every v."""
        if isinstance(self.matrix, tuple):
            share, count = self.matrix
            out = (share[u] + share) * np.maximum(count.sum() - count[u] - count, 0)
            into = (count[u] + count) * np.maximum(share.sum() - share[u] - share, 0)
            return np.array([out, into])
        row, column = self._dense_row(u), self._transposed._dense_row(u)
        leaves = self._largest.without(u, row) + self._largest.of_others_without(u, column)
        other = self._transposed._largest
        return np.array([leaves, other.without(u, column) + other.of_others_without(u, row)])

    def dense(self) -> Floats:
        """float64 [switches, switches]: the matrix."""
        if isinstance(self.matrix, tuple):
            whole = np.outer(*self.matrix)
            np.fill_diagonal(whole, 0)
            return whole
        return self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.toarray()

    def of_first(self, count: int) -> Floats:
        """The matrix with all but the first switches merged into one.

        Parameters
        ----------
        count : int
            Number of switches that stay; fewer than there are.

        Returns
        -------
        float64 [count + 1, count + 1]
            The merged switch is the last.
        """
        if isinstance(self.matrix, tuple):
            share, count_of = (np.append(part[:count], part[count:].sum()) for part in self.matrix)
            merged: Floats = np.outer(share, count_of)
        else:
            part = self.matrix[:count], self.matrix[:, :count]
            rows, columns = (half if isinstance(half, np.ndarray) else half.toarray() for half in part)
            merged = np.zeros((count + 1, count + 1))
            merged[:count, :count] = rows[:, :count]
            merged[:count, count] = rows[:, count:].sum(axis=1)
            merged[count, :count] = columns[count:].sum(axis=0)
        np.fill_diagonal(merged, 0)
        return merged

    def _dense_row(self, u: int) -> Floats:
        """float64 [switches]: row u of the matrix."""
        row = self.matrix[[u]]
        dense_row: np.ndarray = (row if isinstance(row, np.ndarray) else row.toarray())[0]
        return dense_row

    @cached_property
    def _transposed(self) -> "Crossing":
        matrix = self.matrix.T
        return Crossing(self.columns, self.rows, matrix if isinstance(matrix, np.ndarray) else matrix.tocsr())

    @cached_property
    def _largest(self) -> "_Largest":
        return _Largest.of(self.rows, self.matrix)


@dataclass(frozen=True, eq=False)
class _Largest:
    """The largest entry of every row of a matrix, and the sum of the other entries.

    Any other entry is at most half of its row, so it may be subtracted from the sum.
    """

    rows: np.ndarray
    largest: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, matrix: sparse.csr_array) -> "_Largest":
        largest = np.asarray(matrix.argmax(axis=1)).ravel()
        entries = sparse.coo_array(matrix)
        other = entries.col != largest[entries.row]
        return cls(rows, largest, np.bincount(entries.row[other], entries.data[other], len(rows)))

    def without(self, u: int, row: np.ndarray) -> Floats:
        """float64 [switches]: the sum of row u without the entry of each switch. row: row u."""
        sums: np.ndarray = self.rows[u] - row
        sums[self.largest[u]] = self.rest[u]
        return sums

    def of_others_without(self, u: int, column: np.ndarray) -> Floats:
        """float64 [switches]: the sum of every row without its entry in column u. column: column u."""
        return np.where(self.largest == u, self.rest, self.rows - column)


@dataclass(frozen=True, eq=False)
class CutNetwork:
    """Capacity and demand of a scenario between its switches, to evaluate cuts."""

    topology: Topology
    capacity: Crossing
    demand: Crossing

    @classmethod
    def of(cls, topology: Topology, traffic: Traffic) -> "CutNetwork":
        capacity = Crossing.of_pairs(topology.switches, topology.src, topology.dst, topology.capacity)
        return cls(topology, capacity, Crossing.of_demand(traffic))

    def sparsity(self, inside: np.ndarray) -> Floats:
        """Capacity / demand of cuts.

        Parameters
        ----------
        inside : bool [cuts, switches]
            Sets of switches.

        Returns
        -------
        float64 [2, cuts]
            Out of the sets, and into them; inf where no demand crosses.
        """
        inside = inside.astype(float)
        return self.ratio(self.capacity.across(inside), self.demand.across(inside))

    def ratio(self, capacity: Floats, demand: np.ndarray) -> np.ndarray:
        """Elementwise capacity / demand.

        Parameters
        ----------
        capacity, demand : float64
            Arrays of equal shape.

        Returns
        -------
        float64
            inf where there is no demand.
        """
        no_demand = demand <= self._nothing
        return np.where(no_demand, np.inf, capacity / np.where(no_demand, 1.0, demand))

    @cached_property
    def _nothing(self) -> float:
        """Demand below which it is 0: for uniform demand, sums of shares of 1 have rounding errors."""
        return 1e-12 * float(self.demand.rows.sum()) if isinstance(self.demand.matrix, tuple) else 0.0

    def sparsest(self, families: Iterable[np.ndarray]) -> np.ndarray | None:
        """The side of the sparsest of all sets and their complements; None if no demand crosses any.

        Parameters
        ----------
        families : iterable of bool [cuts, switches]
            Tables of sets.

        Returns
        -------
        bool [switches] or None
            Side.
        """
        least, side = np.inf, None
        for family in families:
            step = max(1, BLOCK // family.shape[1])
            for first in range(0, len(family), step):
                block = family[first : first + step]
                sparsity = self.sparsity(block)
                direction, index = np.unravel_index(sparsity.argmin(), sparsity.shape)
                if sparsity[direction, index] < least * (1 - 1e-12):
                    least, side = float(sparsity[direction, index]), block[index] ^ bool(direction)
        return side

    def cut(self, name: str, side: np.ndarray) -> Cut:
        """The cut of a side.

        Parameters
        ----------
        name : str
            Name of the heuristic.
        side : bool [switches]
            Sending switches.
        """
        inside = side[None].astype(float)
        capacity, demand = (float(what.leaving(inside)[0]) for what in (self.capacity, self.demand))
        upper = float(self.ratio(np.array(capacity), np.array(demand)))
        z = (side[self.topology.src] & ~side[self.topology.dst]).astype(float)
        note = f"{_named(side)}: capacity {capacity:g} / demand {demand:g}"
        return Cut(name, upper, side, capacity, demand, note, Certificate.on_network(self.topology, z))


def _named(side: np.ndarray) -> str:
    """The smaller side of a cut in words."""
    smaller, word = (side, "out of") if 2 * side.sum() <= len(side) else (~side, "into")
    switches = np.flatnonzero(smaller)
    listed = " ".join(map(str, switches[:NAMED])) + (" ..." if len(switches) > NAMED else "")
    return f"{word} {len(switches)} of {len(side)} switches ({listed})"
