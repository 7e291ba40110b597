# SPDX-License-Identifier: Apache-2.0
"""Which links of a network a configuration means: by their ends, by their share, or by their number."""

from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator

from flitlab.models.arrays import Bools, Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Name, switch_names


def _form(value: Any) -> Any:
    """Refuses, in one sentence, what is no form of ``links``."""
    if isinstance(value, list) and all(_is_pair(pair) for pair in value):
        return [tuple(pair) for pair in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value)
    raise ValueError("must be a list of pairs of switches such as [[0, 8], [1, 9]], a share below 1, or a whole number")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_name, value))


def is_name(value: Any) -> bool:
    """Whether a value may be the name of a switch or host: a whole number or a text."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def amount(value: int | float) -> int | float:
    """A share of all there are, or how many of them. Raises ``ValueError`` for what is neither."""
    if not value >= 0:
        raise ValueError("must be 0 or more")
    if isinstance(value, float) and value >= 1:
        raise ValueError("a share is below 1; a whole number, without a point, counts them")
    return value


Amount = Annotated[int | float, AfterValidator(amount)]
"""A share below 1 of all there are, or how many of them: what is written with a point is a share."""

Pairs = list[tuple[Name, Name]]
"""Links by the names of the switches at their ends."""

Links = Annotated[Pairs | int | float, BeforeValidator(_form)]
"""Links by their ends, a share below 1 of all links, or how many of them: what is written with a point is a share."""


def link_numbers(topology: Topology) -> Ints:
    """The link that each channel belongs to, int64 [channels]: the number of the first of the link's channels."""
    own = np.arange(topology.channels)
    return np.minimum(np.where(topology.reverse < 0, own, topology.reverse), own)


def draw_links(amount: float, count: int, seed: list[int], key: str) -> Ints:
    """Which of ``count`` things are meant by a share or a number, int64, drawn uniformly without replacement.

    With the same seed more of them include the fewer. Raises :class:`~flitlab.models.registry.SpecError` at ``key``
    where there are not so many.
    """
    number = round(amount * count) if isinstance(amount, float) else amount
    if number > count:
        raise SpecError(f"there are only {count}", key=key)
    return np.random.default_rng(seed).permutation(count)[:number]


def channels_of(
    topology: Topology, links: Pairs | int | float, seed: list[int], key: str, directed: bool = False
) -> Ints:
    """The channels of some links, int64 and ascending.

    [u, v] means every channel from switch u to switch v and the other direction of its link, if it has one; with
    ``directed`` not that. Of drawn links, ``directed`` takes the first channel, that from the lower switch.

    Raises :class:`~flitlab.models.registry.SpecError` below ``key`` for links that are not there.
    """
    if isinstance(links, list):
        selected = np.zeros(topology.channels, bool)
        for index, ends in enumerate(links):
            selected |= _channels_between(topology, ends, f"{key}[{index}]")
    else:
        link = link_numbers(topology)
        known = np.unique(link)
        selected = np.zeros(topology.channels, bool)
        selected[known[draw_links(links, len(known), seed, key)]] = True
    if not directed:
        back = topology.reverse[selected]
        selected[back[back >= 0]] = True
    return np.flatnonzero(selected)


def _channels_between(topology: Topology, ends: tuple[Name, Name], key: str) -> Bools:
    """Whether each channel goes from the first switch to the second, bool [channels]."""
    names = switch_names(topology)
    try:
        u, v = (names.number(end) for end in ends)
    except SpecError as error:
        raise SpecError(f"names no link: {error}", key=key) from None
    channels: Bools = (topology.src == u) & (topology.dst == v)
    if channels.any():
        return channels
    neighbours = [names.label(switch) for switch in dict.fromkeys(topology.dst[topology.src == u].tolist())]
    others = f"it has some to {', '.join(neighbours[:12])}" if neighbours else "it has none at all"
    raise SpecError(f"names no link: switch {names.label(u)} has none to switch {names.label(v)}; {others}", key=key)
