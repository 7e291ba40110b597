# SPDX-License-Identifier: Apache-2.0
"""Selection of links in a configuration: by their ends, by a share, or by a number; and links of another capacity."""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from flitlab.models.arrays import Bools, Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Name, switch_names

_CAPACITY_STREAM = 2
"""Random stream, different from those of :mod:`flitlab.models.topology.failures`: the draws are independent."""


def _pairs(value: object) -> object:
    """Reject, with one message, anything but pairs of switches."""
    if isinstance(value, list) and all(_is_pair(pair) for pair in value):
        return [tuple(pair) for pair in value]
    raise ValueError("must be a list of pairs of switches such as [[0, 8], [1, 9]]")


def _form(value: object) -> object:
    """Reject, with one message, anything that is no form of ``links``."""
    if isinstance(value, list) and all(_is_pair(pair) for pair in value):
        return _pairs(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value)
    raise ValueError("must be a list of pairs of switches such as [[0, 8], [1, 9]], a share below 1, or a whole number")


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_name, value))


def is_name(value: object) -> bool:
    """Whether a value may be the name of a switch or host: a whole number or a text."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def amount(number: int | float) -> int | float:
    """Validate a share of all links or switches, or their number. Raises ``ValueError``."""
    if not number >= 0:
        raise ValueError("must be 0 or more")
    if isinstance(number, float) and number >= 1:
        raise ValueError("a share is below 1; a whole number, without a point, counts them")
    return number


Amount = Annotated[int | float, AfterValidator(amount)]
"""A share below 1 of all links or switches, or their number; a number with a decimal point is a share."""

Pairs = Annotated[list[tuple[Name, Name]], BeforeValidator(_pairs)]
"""Links by the names of the switches at their ends."""

Links = Annotated[Pairs | int | float, BeforeValidator(_form)]
"""Links by their ends, a share below 1 of all links, or their number; a number with a decimal point is a share."""


def link_numbers(topology: Topology) -> Ints:
    """Return the link of each channel, int64 [channels]: the index of the link's first channel."""
    own = np.arange(topology.channels)
    return np.minimum(np.where(topology.reverse < 0, own, topology.reverse), own)


def draw_links(amount: float, count: int, seed: list[int], key: str) -> Ints:
    """Draw indices uniformly without replacement; with the same seed a larger number includes the smaller one.

    Parameters
    ----------
    amount: a share of ``count`` (float), or a number (int).
    count: number of things to draw from.
    seed: seed sequence of the draw.
    key: configuration key, for the message.

    Returns
    -------
    int64 [drawn], below ``count``.

    Raises
    ------
    SpecError: ``amount`` exceeds ``count``.
    """
    number = round(amount * count) if isinstance(amount, float) else amount
    if number > count:
        raise SpecError(f"there are only {count}", key=key)
    return np.random.default_rng(seed).permutation(count)[:number]


def channels_of(
    topology: Topology, links: Pairs | int | float, seed: list[int], key: str, directed: bool = False
) -> Ints:
    """Return the channels of selected links, int64, ascending.

    [u, v] selects every channel from switch u to switch v and the opposite channels of these links.

    Parameters
    ----------
    topology: the network.
    links: pairs of switches, a share, or a number.
    seed: seed sequence of drawn links.
    key: configuration key, for messages.
    directed: whether to omit opposite channels; of a drawn link, the channel from the lower switch is taken.

    Raises
    ------
    SpecError: a link does not exist.
    """
    if isinstance(links, list):
        selected = np.zeros(topology.channels, bool)
        for index, ends in enumerate(links):
            selected |= _channels_between(topology, ends, f"{key}[{index}]")
    else:
        link = link_numbers(topology)
        all_links = np.unique(link)
        selected = np.zeros(topology.channels, bool)
        selected[all_links[draw_links(links, len(all_links), seed, key)]] = True
    if not directed:
        opposite = topology.reverse[selected]
        selected[opposite[opposite >= 0]] = True
    return np.flatnonzero(selected)


def _channels_between(topology: Topology, ends: tuple[Name, Name], key: str) -> Bools:
    """Return whether each channel leads from the first switch to the second, bool [channels]. Raises ``SpecError``."""
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


class CapacityOf(BaseModel):
    """Links with another capacity: ``capacity_of: {links: [[0, 8]], factor: 0.1}``.

    ``links`` are pairs of switches (their numbers or labels), a share below 1 of all links, or their number, drawn from
    ``seed``. The capacity of their channels is multiplied by ``factor``, in both directions; with ``directed`` only
    from the first switch to the second (of drawn links: from the lower one). A pair means all its parallel links.
    Switches have the numbers of the network as built; :class:`~flitlab.models.topology.failures.Failures` come after
    that, so that a slow link may fail.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    links: Links
    """Pairs of switches; or a share or number of links, drawn from ``seed``."""
    factor: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Factor of their capacity."""
    directed: bool = False
    """Only from the first switch to the second."""
    seed: int = Field(default=1, ge=0)
    """Seed of the draw."""

    def apply_to(self, topology: Topology) -> Topology:
        """Return the topology with these capacities; ``notes["capacity_of"]`` has the number of channels and the
        factor.

        Raises :class:`~flitlab.models.registry.SpecError` (key: capacity_of.links) for links that do not exist.
        """
        of = channels_of(topology, self.links, [self.seed, _CAPACITY_STREAM], "capacity_of.links", self.directed)
        capacity = topology.capacity.copy()
        capacity[of] *= self.factor
        notes = {**topology.notes, "capacity_of": {"channels": len(of), "factor": self.factor}}
        return replace(topology, capacity=capacity, notes=notes)
