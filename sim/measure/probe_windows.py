# SPDX-License-Identifier: Apache-2.0
"""The lengths of the windows of a probe (:mod:`flitlab.sim.measure.probe`)."""

from flitlab.models.rules.arrivals import LONGEST_RUN

GROWTH = 4
"""Ratio of the lengths of consecutive windows."""


def longer(ticks: int, longest: int) -> int:
    """Return the length of the window after one of ``ticks`` ticks, at most ``longest``."""
    return min(GROWTH * ticks, longest)


def longest_probe(warmup: int, ticks: int, longest: int) -> int:
    """Return the most ticks of a probe: its warm-up and all its windows, of which the longest may be measured twice.

    ticks: its first window. longest: the last one, as a multiple of the first.
    """
    last, total = ticks, warmup + ticks
    while last < longest * ticks:
        last = longer(last, longest * ticks)
        total += last
    return min(total + last, LONGEST_RUN)
