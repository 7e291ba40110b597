# SPDX-License-Identifier: Apache-2.0
"""Amounts that belong to pairs of switches, kept for those that have any."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Integers, Ints


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Whole amounts by source and destination switch, of the pairs that have any.

    switches: how many there are. place: [pairs], source * switches + destination, ascending. amount: [pairs], above 0.
    Both are unsigned and as narrow as their numbers allow: few bytes a pair, also where all pairs have some.
    """

    switches: int
    place: Integers
    amount: Integers

    @classmethod
    def none(cls, switches: int) -> "PairCounts":
        """Return the amounts of a network in which no pair has any."""
        return cls.of(switches, *np.zeros((2, 0), np.int64))

    @classmethod
    def of(cls, switches: int, place: Integers, amount: Integers) -> "PairCounts":
        """Add up amounts, 0 or more, that come in any order, several of one pair among them."""
        order = np.argsort(place, kind="stable")
        place, amount = place[order], amount[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        total = np.add.reduceat(amount, first) if len(first) else amount
        return cls(switches, _narrow(place[first][total > 0]), _narrow(total[total > 0]))

    @classmethod
    def of_table(cls, switches: int, table: Integers) -> "PairCounts":
        """Take the amounts of all pairs, [switches * switches] or [switches, switches], (source, destination)."""
        flat = table.reshape(-1)
        place = np.flatnonzero(flat)
        return cls(switches, _narrow(place), _narrow(flat[place]))

    def table(self) -> Ints:
        """Return the amounts of all pairs, int64 [switches, switches], (source, destination)."""
        table = np.zeros(self.switches**2, np.int64)
        table[self.place] = self.amount
        return table.reshape(self.switches, self.switches)

    @property
    def total(self) -> int:
        """All amounts together."""
        return int(self.amount.sum(dtype=np.int64))

    def __add__(self, other: "PairCounts") -> "PairCounts":
        if len(self.place) == 0:
            return other
        return PairCounts.of(
            self.switches,
            np.concatenate([self.place, other.place]).astype(np.int64),
            np.concatenate([self.amount, other.amount]).astype(np.int64),
        )

    def __sub__(self, other: "PairCounts") -> "PairCounts":
        """Take amounts away that are among these."""
        left = self.amount.astype(np.int64)
        left[np.searchsorted(self.place, other.place)] -= other.amount.astype(np.int64)
        return PairCounts(self.switches, self.place[left > 0], _narrow(left[left > 0]))


def _narrow(numbers: Integers) -> Integers:
    """Return numbers, 0 or more, in the narrowest unsigned type that holds them, of 32 bits at least."""
    return numbers.astype(np.uint64 if numbers.max(initial=0) >> 32 else np.uint32, copy=False)
