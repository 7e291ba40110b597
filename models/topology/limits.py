# SPDX-License-Identifier: Apache-2.0
"""How large networks may become."""

from flitlab.models.registry import SpecError

MAX_SIZE = 20_000_000
"""Switches, channels and hosts of a network, each."""

MAX_RANDOM_CHANNELS = 5_000_000
"""Channels of a network whose wiring is drawn at random, link by link."""


def limit_size(count: int, key: str | None, what: str = "channels", limit: int = MAX_SIZE) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` for a network of more than ``limit`` channels (or switches,
    hosts).

    To be asked before anything of that size is made. count: exact, so no numpy integer, which may overflow.
    """
    if count > limit:
        shown = count if count < 10**18 else "more than 10**18"
        raise SpecError(f"{shown} {what}; at most {limit} are built", key=key)


def limit_random_size(channels: int, key: str | None) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` for a network of too many channels to be drawn at random."""
    limit_size(channels, key, limit=MAX_RANDOM_CHANNELS)
