# SPDX-License-Identifier: Apache-2.0
"""Sizes of input buffers by channel, from the key ``buffer_flits``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Annotated, Self

import numpy as np
from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    Tag,
    model_validator,
)

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Keys
from flitlab.models.registry import Parameters, SpecError, whole
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import Pairs, channels_of

MOST_FLITS = 100_000

BufferSize = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MOST_FLITS)]
"""Type of a key for a buffer size, 1 to 100,000. The engines' memory grows with it."""


@dataclass(frozen=True)
class ChannelBuffers:
    """Buffer sizes that differ between channels.

    flits: of each VC at the end of every network channel, then of every host's injection channel. keys: the value of
    ``buffer_flits`` that gives these sizes.
    """

    flits: tuple[int, ...]
    keys: Keys = field(compare=False)


class LinkBuffers(Parameters):
    """Buffers of some links: ``{links: [[0, 1]], flits: 64}``."""

    links: Pairs
    """Pairs of switches: all channels between them, in both directions."""
    flits: BufferSize
    """Buffer of each VC at the ends of these channels."""
    directed: bool = False
    """Only from the first switch to the second."""


class BuffersByChannel(Parameters):
    """Buffers of each VC by kind of channel; the buffer is at the far end of the channel.

    Entries apply in the order in which they are written, so that later ones win.
    """

    network: BufferSize | None = None
    """Of channels between switches."""
    injection: BufferSize | None = None
    """Of the channels from hosts."""
    rtt: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """All: this times the credit round trip of the channel, divided by the VCs and rounded up."""
    of: list[LinkBuffers] = Field(default_factory=list)
    """Of single links."""
    _order: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        sizes = handler(value)
        if isinstance(value, dict):
            sizes._order = tuple(value)
        return sizes

    def plain(self) -> Keys:
        """The mapping as it stands in a configuration, in its order."""
        written = self.model_dump(mode="json", exclude_none=True)
        return {key: written[key] for key in self._order if key in written}

    def scaled(self, factor: int) -> Keys:
        """The mapping with all sizes multiplied by a factor."""
        scaled = self.plain()
        for key in ("network", "injection", "rtt"):
            if key in scaled:
                scaled[key] *= factor
        scaled["of"] = [{**one, "flits": one["flits"] * factor} for one in scaled.get("of", [])]
        return scaled

    def flits(
        self, topology: Topology, default: int, least: int, round_trips: Callable[[Topology], Ints], vcs: int
    ) -> Ints:
        """The buffer of each VC of every channel and host, int64 [channels + hosts].

        Parameters
        ----------
        topology: the network.
        default: flits of buffers that no entry sets.
        least: flits that ``rtt`` gives at least.
        round_trips: credit round trips, ticks, int64 [channels + hosts].
        vcs: virtual channels.

        Raises
        ------
        SpecError: a link does not exist, or ``rtt`` gives a buffer beyond :data:`MOST_FLITS` flits.
        """
        channels, hosts = topology.channels, topology.hosts
        flits = np.full(channels + hosts, default, np.int64)
        for key in self._order:
            value = getattr(self, key)
            if value is None:
                continue
            if key == "of":
                for i, one in enumerate(self.of):
                    where = f"switching.buffer_flits.of[{i}].links"
                    flits[channels_of(topology, one.links, [], where, one.directed)] = one.flits
            elif key == "rtt":
                flits[:] = [max(ceil(Fraction(str(value)) * int(trip) / vcs), least) for trip in round_trips(topology)]
                if flits.max(initial=0) > MOST_FLITS:
                    problem = f"gives a buffer of {flits.max()} flits; a buffer has at most {MOST_FLITS}"
                    raise SpecError(problem, key="switching.buffer_flits.rtt")
            else:
                flits[slice(channels) if key == "network" else slice(channels, None)] = value
        return flits

    def sizes(self) -> Iterator[tuple[str, int]]:
        """The keys below ``buffer_flits`` that give a number of flits, and these numbers."""
        yield from ((key, value) for key in ("network", "injection") if (value := getattr(self, key)) is not None)
        yield from ((f"of[{i}].flits", one.flits) for i, one in enumerate(self.of))


def _shape(value: object) -> str:
    return "<map>" if isinstance(value, dict | BuffersByChannel) else "<number>"


BufferFlits = Annotated[
    Annotated[BufferSize, Tag("<number>")] | Annotated[BuffersByChannel, Tag("<map>")], Discriminator(_shape)
]
"""Type of the key ``buffer_flits``: one size for all buffers, or sizes by kind of channel."""
