# SPDX-License-Identifier: Apache-2.0
"""How long the windows of a probe are (:mod:`flitlab.sim.measure.probe`)."""

from flitlab.models.rules.arrivals import LONGEST_RUN

GROWTH = 4
"""A window over the one before it."""


def longer(ticks: int, longest: int) -> int:
    """The window after one of ``ticks``, of at most ``longest`` ticks."""
    return min(GROWTH * ticks, longest)


def longest_probe(warmup: int, ticks: int, longest: int) -> int:
    """Ticks of a probe, at most: of its warm-up and of all its windows, of which the longest may be measured twice.

    ticks: its first window. longest: the last one, as a multiple of the first.
    """
    last, total = ticks, warmup + ticks
    while last < longest * ticks:
        last = longer(last, longest * ticks)
        total += last
    return min(total + last, LONGEST_RUN)
