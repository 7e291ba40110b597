"""A cut, and what crosses many cuts of a network at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from fluid.certificate import Certificate
from models.topology.graph import Topology
from models.traffic.traffic import UNIFORM, UNIFORM_SELF, Traffic

NAMED = 16
"""Switches that a note lists, at most."""

BLOCK = 1 << 22
"""Entries of the tables of cuts x switches that are looked at together."""


@dataclass(frozen=True, eq=False)
class Cut:
    """The switches of ``side`` can send no more than ``upper`` times their demand to the other switches.

    name: of the heuristic that found it. side: bool [switches]. capacity, demand: from side to the others, at
    load 1. certificate: length 1 on the channels that leave the side.
    """

    name: str
    upper: float
    side: np.ndarray
    capacity: float
    demand: float
    note: str
    certificate: Certificate


class Crossing:
    """What a matrix between switches sends out of and into sets of them; its diagonal, which never crosses, is 0.

    rows, columns: float64 [switches], its sums. matrix: [switches, switches], dense or sparse, or, for uniform
    demand, a pair (share, count) of which it is the outer product but for the diagonal.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, matrix):
        self.rows, self.columns, self.matrix = rows, columns, matrix

    @classmethod
    def of_pairs(cls, switches: int, source: np.ndarray, target: np.ndarray, amount: np.ndarray) -> "Crossing":
        """From amounts between different switches, those of equal pairs summed; few are kept sparse."""
        matrix = sparse.csr_array((amount, (source, target)), (switches, switches))
        thin = matrix.nnz * 10 < switches**2
        return cls(matrix.sum(axis=1), matrix.sum(axis=0), matrix if thin else matrix.toarray())

    @classmethod
    def of_demand(cls, traffic: Traffic) -> "Crossing":
        """The demand between switches at load 1."""
        topology = traffic.topology
        if traffic.law not in (UNIFORM, UNIFORM_SELF):
            source, target, amount = traffic.switch_pairs()
            return cls.of_pairs(topology.switches, source, target, amount)
        share = np.bincount(topology.host_switch, traffic.rate, topology.switches)
        count = topology.host_count / (topology.hosts - (traffic.law == UNIFORM))
        return cls(share * (count.sum() - count), (share.sum() - share) * count, (share, count))

    def across(self, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """float64 [cuts] each: what leaves, and what enters, the sets ``inside`` (float64 [cuts, switches], 0 or 1)."""
        within = self._within(inside)
        return inside @ self.rows - within, inside @ self.columns - within

    def _within(self, inside: np.ndarray) -> np.ndarray:
        if isinstance(self.matrix, tuple):
            share, count = self.matrix
            return (inside @ share) * (inside @ count) - inside @ (share * count)
        return np.einsum("ij,ij->i", inside @ self.matrix, inside)

    def exchanged(self, v: int) -> np.ndarray:
        """float64 [switches]: what v and every other switch send each other, in both directions together."""
        if isinstance(self.matrix, tuple):
            share, count = self.matrix
            both = share[v] * count + share * count[v]
            both[v] = 0
            return both
        row = self._symmetric[[v]]
        return (row if isinstance(row, np.ndarray) else row.toarray())[0]

    @cached_property
    def _symmetric(self):
        return self.matrix + self.matrix.T


@dataclass(frozen=True, eq=False)
class Network:
    """Capacity and demand of a scenario, for cuts to be judged by."""

    topology: Topology
    capacity: Crossing
    demand: Crossing

    @classmethod
    def of(cls, topology: Topology, traffic: Traffic) -> "Network":
        capacity = Crossing.of_pairs(topology.switches, topology.src, topology.dst, topology.capacity)
        return cls(topology, capacity, Crossing.of_demand(traffic))

    def sparsity(self, inside: np.ndarray) -> np.ndarray:
        """float64 [2, cuts]: capacity / demand out of the sets ``inside`` (bool [cuts, switches]) and into them."""
        inside = inside.astype(float)
        return self.ratio(np.array(self.capacity.across(inside)), np.array(self.demand.across(inside)))

    def ratio(self, capacity: np.ndarray, demand: np.ndarray) -> np.ndarray:
        """Elementwise capacity / demand, inf where there is no demand (but for rounding)."""
        nothing = demand <= 1e-12 * self.demand.rows.sum()
        return np.where(nothing, np.inf, capacity / np.where(nothing, 1.0, demand))

    def sparsest(self, families: Iterable[np.ndarray]) -> np.ndarray | None:
        """The side of the sparsest of all the sets and their complements; None if no demand crosses any.

        families: tables of sets, bool [cuts, switches] each.
        """
        least, side = np.inf, None
        for family in families:
            step = max(1, BLOCK // family.shape[1])
            for first in range(0, len(family), step):
                block = family[first : first + step]
                found = self.sparsity(block)
                way, which = np.unravel_index(found.argmin(), found.shape)
                if found[way, which] < least * (1 - 1e-12):
                    least, side = float(found[way, which]), block[which] ^ bool(way)
        return side

    def cut(self, name: str, side: np.ndarray) -> Cut:
        """The cut of a set of sending switches."""
        inside = side[None].astype(float)
        capacity, demand = (float(what.across(inside)[0][0]) for what in (self.capacity, self.demand))
        upper = float(self.ratio(np.array(capacity), np.array(demand)))
        z = (side[self.topology.src] & ~side[self.topology.dst]).astype(float)
        note = f"{_named(side)}: capacity {capacity:g} / demand {demand:g}"
        return Cut(name, upper, side, capacity, demand, note, Certificate.on_network(self.topology, z))


def _named(side: np.ndarray) -> str:
    """Where the cut is, by its smaller part."""
    few, word = (side, "out of") if 2 * side.sum() <= len(side) else (~side, "into")
    switches = np.flatnonzero(few)
    listed = " ".join(map(str, switches[:NAMED])) + (" ..." if len(switches) > NAMED else "")
    return f"{word} {len(switches)} of {len(side)} switches ({listed})"
