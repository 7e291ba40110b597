# SPDX-License-Identifier: Apache-2.0
"""Sparse amounts per pair of switches."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Integers, Ints


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Integer amounts by source and destination switch, stored only for pairs with a non-zero amount.

    switches: number of switches. place: [pairs], src_switch * switches + dst_switch, ascending. amount: [pairs], above
    0. Both arrays have the narrowest unsigned type that holds their numbers: few bytes per pair even if all pairs are
    stored.
    """

    switches: int
    place: Integers
    amount: Integers

    @classmethod
    def none(cls, switches: int) -> "PairCounts":
        """Return the amounts of a network in which every pair has 0."""
        return cls.of(switches, *np.zeros((2, 0), np.int64))

    @classmethod
    def of(cls, switches: int, place: Integers, amount: Integers) -> "PairCounts":
        """Sum amounts by pair.

        Parameters
        ----------
        switches: number of switches.
        place: integers [n], src_switch * switches + dst_switch, in any order, repeated or not.
        amount: integers [n], 0 or more.
        """
        order = np.argsort(place, kind="stable")
        place, amount = place[order], amount[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        total = np.add.reduceat(amount, first) if len(first) else amount
        return cls(switches, _narrow(place[first][total > 0]), _narrow(total[total > 0]))

    @classmethod
    def of_table(cls, switches: int, table: Integers) -> "PairCounts":
        """Return the non-zero amounts of a table, [switches * switches] or [switches, switches], (source,
        destination).

        Parameters
        ----------
        switches: number of switches.
        table: integers, 0 or more.
        """
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
        """Sum of all amounts."""
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
        """Subtract amounts that are part of these."""
        difference = self.amount.astype(np.int64)
        difference[np.searchsorted(self.place, other.place)] -= other.amount.astype(np.int64)
        return PairCounts(self.switches, self.place[difference > 0], _narrow(difference[difference > 0]))


def _narrow(numbers: Integers) -> Integers:
    """Convert numbers, 0 or more, to the narrowest unsigned type that holds them, at least 32 bits."""
    return numbers.astype(np.uint64 if numbers.max(initial=0) >> 32 else np.uint32, copy=False)
