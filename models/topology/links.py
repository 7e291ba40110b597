# SPDX-License-Identifier: Apache-2.0
"""Which links of a network a configuration means: by their ends, by their share, or by their number."""

from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from flitlab.models.arrays import Bools, Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology


def _form(value: Any) -> Any:
    """Refuses, in one sentence, what is no form of ``links``."""
    if isinstance(value, list) and all(_is_pair(pair) for pair in value):
        return [tuple(pair) for pair in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value)
    raise ValueError("must be a list of pairs of switches such as [[0, 8], [1, 9]], a share below 1, or a whole number")


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(end, int) and not isinstance(end, bool) for end in value)
    )


def amount(value: int | float) -> int | float:
    """A share of all there are, or how many of them. Raises ``ValueError`` for what is neither."""
    if not value >= 0:
        raise ValueError("must be 0 or more")
    if isinstance(value, float) and value >= 1:
        raise ValueError("a share is below 1; a whole number, without a point, counts them")
    return value


Links = Annotated[list[tuple[int, int]] | int | float, BeforeValidator(_form)]
"""Links by their ends, a share below 1 of all links, or how many of them: what is written with a point is a share."""


def numbers(topology: Topology) -> Ints:
    """The link that each channel belongs to, int64 [channels]: the number of the first of the link's channels."""
    own = np.arange(topology.channels)
    return np.minimum(np.where(topology.reverse < 0, own, topology.reverse), own)


def drawn(amount: float, count: int, seed: list[int], key: str) -> Ints:
    """Which of ``count`` things are meant by a share or a number, int64, drawn uniformly without replacement.

    With the same seed more of them include the fewer. Raises :class:`~flitlab.models.registry.SpecError` at ``key``
    where there are not so many.
    """
    number = round(amount * count) if isinstance(amount, float) else amount
    if number > count:
        raise SpecError(f"there are only {count}", key=key)
    return np.random.default_rng(seed).permutation(count)[:number]


def channels_of(
    topology: Topology, links: list[tuple[int, int]] | int | float, seed: list[int], key: str, directed: bool = False
) -> Ints:
    """The channels of some links, int64 and ascending.

    [u, v] means every channel from switch u to switch v and the other direction of its link, if it has one; with
    ``directed`` not that. Of drawn links, ``directed`` takes the first channel, that from the lower switch.

    Raises :class:`~flitlab.models.registry.SpecError` below ``key`` for links that are not there.
    """
    if isinstance(links, list):
        meant = np.zeros(topology.channels, bool)
        for place, (u, v) in enumerate(links):
            meant |= _joining(topology, u, v, f"{key}[{place}]")
    else:
        link = numbers(topology)
        known = np.unique(link)
        meant = np.zeros(topology.channels, bool)
        meant[known[drawn(links, len(known), seed, key)]] = True
    if not directed:
        back = topology.reverse[meant]
        meant[back[back >= 0]] = True
    return np.flatnonzero(meant)


def _joining(topology: Topology, u: int, v: int, key: str) -> Bools:
    """Whether each channel goes from switch u to switch v, bool [channels]."""
    found: Bools = (topology.src == u) & (topology.dst == v)
    if found.any():
        return found
    if not (0 <= u < topology.switches and 0 <= v < topology.switches):
        raise SpecError(f"names no link: switches are numbered 0 to {topology.switches - 1}", key=key)
    reached = topology.dst[topology.src == u].tolist()
    ends = [str(switch) for switch in dict.fromkeys(reached)]
    raise SpecError(f"names no link: switch {u} has none to switch {v}; it has some to {', '.join(ends[:12])}", key=key)
