# SPDX-License-Identifier: Apache-2.0
"""Suggestions in error messages for a number for which no graph exists."""

from collections.abc import Callable, Iterable


def nearest_valid(value: int, valid: Callable[[int], bool], low: int = 1) -> list[int]:
    """Return the largest valid number below ``value``, if any, and the smallest valid one above it.

    Parameters
    ----------
    value: an invalid number.
    valid: tells valid numbers; must hold for some number above ``value``.
    low: smallest number to return.
    """
    below = next(([v] for v in range(value - 1, low - 1, -1) if valid(v)), [])
    above = max(value + 1, low)
    while not valid(above):
        above += 1
    return [*below, above]


def listed(values: Iterable[int]) -> str:
    """Format values with commas."""
    return ", ".join(map(str, values))
