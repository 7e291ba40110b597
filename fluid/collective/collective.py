# SPDX-License-Identifier: Apache-2.0
"""What a collective is, as bounds are asked for it."""

from dataclasses import dataclass
from typing import Literal

from flitlab.models.collective.schedule import CollectiveName

Ranks = Literal["switches", "hosts"]
"""What takes part in a collective: every switch that has hosts, or every host."""

ROOTED = ("broadcast", "reduce", "scatter", "gather")
"""Collectives that one rank begins or ends."""


@dataclass(frozen=True)
class Collective:
    """A collective between ranks, of which any algorithm is bounded.

    ranks: what takes part: every switch that has hosts (each if none has), or every host. root: the rank that begins or
    ends it, where one does. amounts: units of each rank, all 1 where None: what it gives to an all-gather or a gather,
    gets of a reduce-scatter or a scatter, and sends to each other rank in an all-to-all. multicast, reduce: whether
    switches copy messages, or combine them.
    """

    kind: CollectiveName
    ranks: Ranks = "switches"
    root: int = 0
    amounts: tuple[int, ...] | None = None
    multicast: bool = False
    reduce: bool = False

    @property
    def able(self) -> str:
        """What switches do besides forwarding, in words: ``multicast``, ``reduce``, both or neither."""
        return " ".join(name for name in ("multicast", "reduce") if getattr(self, name))
