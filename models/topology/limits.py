# SPDX-License-Identifier: Apache-2.0
"""How large networks may become."""

from flitlab.models.registry import SpecError

MOST = 20_000_000
"""Switches, channels and hosts of a network, each."""

MOST_DRAWN = 5_000_000
"""Channels of a network whose wiring is drawn at random, link by link."""


def refuse_if_huge(count: int, key: str | None, what: str = "channels", most: int = MOST) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` for a network of more than ``most`` channels (or switches,
    hosts).

    To be asked before anything of that size is made. count: exact, so no numpy integer, which may overflow.
    """
    if count > most:
        shown = count if count < 10**18 else "more than 10**18"
        raise SpecError(f"{shown} {what}; at most {most} are built", key=key)


def refuse_if_long_to_draw(channels: int, key: str | None) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` for a network of too many channels to be drawn at random."""
    refuse_if_huge(channels, key, most=MOST_DRAWN)
