# SPDX-License-Identifier: Apache-2.0
"""Size limits of networks, and suggestions for a number for which no graph exists."""

from collections.abc import Callable, Iterable

from flitlab.models.registry import SpecError

MAX_SIZE = 20_000_000
"""Most switches, channels and hosts of a network, each."""

MAX_RANDOM_CHANNELS = 5_000_000
"""Most channels of a network whose wiring is drawn at random, link by link."""


def limit_size(count: int, key: str | None, what: str = "channels", limit: int = MAX_SIZE) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` if a network is too large; called before memory is allocated.

    Parameters
    ----------
    count: exact size; no NumPy integer, which may overflow.
    key: configuration key, for the message.
    what: what is counted, for the message.
    limit: largest accepted count.
    """
    if count > limit:
        size_text = count if count < 10**18 else "more than 10**18"
        raise SpecError(f"{size_text} {what}; at most {limit} are built", key=key)


def limit_random_size(channels: int, key: str | None) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` if a network has too many channels to be drawn at random."""
    limit_size(channels, key, limit=MAX_RANDOM_CHANNELS)


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
