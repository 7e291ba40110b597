# SPDX-License-Identifier: Apache-2.0
"""Search for a cyclic order of switches in which the busiest channel has little to carry."""

from collections.abc import Iterable

import numpy as np

from flitlab.models.collective.ways import Ways

WORK = 1_000_000
"""Channels that are looked at, over all changes of an order that are tried; two seconds or three."""

PATIENCE = 10
"""Changes in a row, for each pair of switches and some more, after which an order is left as it is."""

POWER = 8
"""The power of channels' loads whose sum is lowered: the busiest count most, and all others a little."""

CONTEST = 8
"""Places that are drawn, of which a change takes the best: to begin at a busy one, or to end at a near one."""


def least_loaded(ways: Ways, orders: Iterable[list[int]], enough: float, rng: np.random.Generator) -> list[int]:
    """The best of some cyclic orders of the same switches, changed while that lowers the load of busy channels.

    Each switch sends 1 to the next one by minimal routing. enough: loads up to this are as good as none; of orders that
    have no greater one, and of equally good ones, that is better which takes fewer hops.
    """

    def rank(order: list[int]) -> tuple[float, float]:
        loads = ways.load(order)
        return max(round(float(loads.max(initial=0.0)), 9), enough), float(loads.sum())

    best = min(orders, key=rank)
    if len(best) < 3 or rank(best)[0] <= enough:
        return best
    descent = _Descent(ways, best, rng)
    descent.run(enough)
    return min(best, descent.order, key=rank)


class _Descent:
    """An order of switches whose parts move to other places if that lowers the sum of powers of all loads."""

    def __init__(self, ways: Ways, order: list[int], rng: np.random.Generator) -> None:
        self.ways, self.order, self.rng = ways, order, rng
        self.load: list[float] = ways.load(order).tolist()
        self.looked = 0

    def run(self, enough: float) -> None:
        """Try changes until the busiest channel has little enough to carry, or many changes gained nothing."""
        most = PATIENCE * len(self.order) ** 2 + 1000
        since = 0
        while since < most and self.looked < WORK:
            gained = self._try(*self._draw())
            since = 0 if gained else since + 1
            if gained and max(self.load) <= enough * (1 + 1e-9):
                break

    def _draw(self) -> tuple[int, int, int]:
        """(first place of a part, its length, how many of the others stand before its new place)."""
        count = len(self.order)
        first = max(self.rng.integers(count, size=CONTEST).tolist(), key=self._worst)
        most = count - 2 if self.rng.random() < 0.5 else min(3, count - 2)
        length = 1 + int(self.rng.integers(most))
        hops = self.ways.hops(self.order[first])
        places = self.rng.integers(count - length - 1, size=CONTEST).tolist()
        return first, length, 1 + min(places, key=lambda k: hops[self.order[(first + length + k) % count]])

    def _worst(self, place: int) -> float:
        """The load of the busiest channel on the way to the switch at a place."""
        shares = self.ways.shares(self.order[place - 1], self.order[place])
        return max(map(self.load.__getitem__, shares), default=0.0)

    def _try(self, first: int, length: int, behind: int) -> bool:
        """Move a part if that gains something; whether it did."""
        order, count = self.order, len(self.order)
        a, b = order[first - 1], order[first]
        c, d = order[(first + length - 1) % count], order[(first + length) % count]
        e, f = order[(first + length + behind - 1) % count], order[(first + length + behind) % count]
        change: dict[int, float] = {}
        for pairs, sign in ((((a, b), (c, d), (e, f)), -1.0), (((a, d), (e, b), (c, f)), 1.0)):
            for pair in pairs:
                for channel, share in self.ways.shares(*pair).items():
                    change[channel] = change.get(channel, 0.0) + sign * share
        self.looked += len(change)
        before = sum(self.load[channel] ** POWER for channel in change)
        after = sum((self.load[channel] + more) ** POWER for channel, more in change.items())
        if after >= before * (1 - 1e-9):
            return False
        for channel, more in change.items():
            self.load[channel] += more
        turned = order[first:] + order[:first]
        part, others = turned[:length], turned[length:]
        self.order = others[:behind] + part + others[behind:]
        return True
