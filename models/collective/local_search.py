# SPDX-License-Identifier: Apache-2.0
"""Local search for a cyclic order of switches that minimises the load of the busiest channel."""

from collections.abc import Iterable

import numpy as np

from flitlab.models.collective.minimal_path_load import MinimalPathLoad

MAX_CHANNEL_EVALUATIONS = 1_000_000
"""Limit of channel evaluations over all tried moves; two or three seconds."""

MAX_FAILED_CHANGES = 10
"""Consecutive moves without improvement, per pair of switches, after which the search stops; small orders get more."""

POWER = 8
"""The search minimises the sum of this power of all channel loads: busy channels dominate, the others count a
little.
"""

TOURNAMENT_SIZE = 8
"""Candidates of a tournament: the start of a move is the busiest of them, its end the nearest."""


def least_loaded_order(
    path_load: MinimalPathLoad, orders: Iterable[list[int]], sufficient_load: float, rng: np.random.Generator
) -> list[int]:
    """Improve the best of some cyclic orders of the same switches while the load of busy channels decreases.

    Each switch sends 1 to the next one by minimal routing.

    Parameters
    ----------
    path_load: channel loads of minimal routing.
    orders: cyclic orders of the same switches.
    sufficient_load: loads up to this count as equal; among orders with equal loads the one with fewer hops is better.
    rng: source of all draws.

    Returns
    -------
    The best order.
    """

    def rank(order: list[int]) -> tuple[float, float]:
        loads = path_load.load(order)
        return max(round(float(loads.max(initial=0.0)), 9), sufficient_load), float(loads.sum())

    best = min(orders, key=rank)
    if len(best) < 3 or rank(best)[0] <= sufficient_load:
        return best
    search = _LocalSearch(path_load, best, rng)
    search.run(sufficient_load)
    return min(best, search.order, key=rank)


class _LocalSearch:
    """Moves segments of an order wherever that decreases the sum of powers of all loads."""

    def __init__(self, path_load: MinimalPathLoad, order: list[int], rng: np.random.Generator) -> None:
        self.path_load, self.order, self.rng = path_load, order, rng
        self.load: list[float] = path_load.load(order).tolist()
        self.evaluations = 0

    def run(self, sufficient_load: float) -> None:
        """Try moves until the busiest channel carries at most ``sufficient_load``, or many moves have not improved the
        order.
        """
        max_failed = MAX_FAILED_CHANGES * len(self.order) ** 2 + 1000
        failed = 0
        while failed < max_failed and self.evaluations < MAX_CHANNEL_EVALUATIONS:
            improved = self._try_move(*self._draw_move())
            failed = 0 if improved else failed + 1
            if improved and max(self.load) <= sufficient_load * (1 + 1e-9):
                break

    def _draw_move(self) -> tuple[int, int, int]:
        """Draw (first index of a segment, its length, how many of the other switches precede its new position)."""
        count = len(self.order)
        first = max(self.rng.integers(count, size=TOURNAMENT_SIZE).tolist(), key=self._max_load_before)
        max_length = count - 2 if self.rng.random() < 0.5 else min(3, count - 2)
        length = 1 + int(self.rng.integers(max_length))
        hops = self.path_load.hops(self.order[first])
        candidates = self.rng.integers(count - length - 1, size=TOURNAMENT_SIZE).tolist()
        return first, length, 1 + min(candidates, key=lambda k: hops[self.order[(first + length + k) % count]])

    def _max_load_before(self, index: int) -> float:
        """Return the load of the busiest channel on the paths to the switch at an index of the order."""
        shares = self.path_load.shares(self.order[index - 1], self.order[index])
        return max(map(self.load.__getitem__, shares), default=0.0)

    def _try_move(self, first: int, length: int, offset: int) -> bool:
        """Move a segment if that decreases the objective; return whether it did."""
        order, count = self.order, len(self.order)
        a, b = order[first - 1], order[first]
        c, d = order[(first + length - 1) % count], order[(first + length) % count]
        e, f = order[(first + length + offset - 1) % count], order[(first + length + offset) % count]
        change: dict[int, float] = {}
        for pairs, sign in ((((a, b), (c, d), (e, f)), -1.0), (((a, d), (e, b), (c, f)), 1.0)):
            for pair in pairs:
                for channel, share in self.path_load.shares(*pair).items():
                    change[channel] = change.get(channel, 0.0) + sign * share
        self.evaluations += len(change)
        before = sum(self.load[channel] ** POWER for channel in change)
        after = sum((self.load[channel] + difference) ** POWER for channel, difference in change.items())
        if after >= before * (1 - 1e-9):
            return False
        for channel, difference in change.items():
            self.load[channel] += difference
        rotated = order[first:] + order[:first]
        segment, others = rotated[:length], rotated[length:]
        self.order = others[:offset] + segment + others[offset:]
        return True
