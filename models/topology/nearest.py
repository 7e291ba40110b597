# SPDX-License-Identifier: Apache-2.0
"""What an error message offers instead of a number for which no graph exists."""

from collections.abc import Callable, Iterable


def nearest_valid(value: int, valid: Callable[[int], bool], low: int = 1) -> list[int]:
    """The largest number below ``value`` (not under ``low``), if any, and the smallest above it that are valid.

    valid: must hold for some number above ``value``.
    """
    below = next(([v] for v in range(value - 1, low - 1, -1) if valid(v)), [])
    above = max(value + 1, low)
    while not valid(above):
        above += 1
    return [*below, above]


def listed(values: Iterable[int]) -> str:
    """The values, separated by commas."""
    return ", ".join(map(str, values))
