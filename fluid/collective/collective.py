# SPDX-License-Identifier: Apache-2.0
"""Description of a collective, for bounds."""

from dataclasses import dataclass
from typing import Literal

from flitlab.models.collective.schedule import CollectiveName

Ranks = Literal["switches", "hosts"]
"""Who takes part in a collective: every switch that has hosts, or every host."""

ROOTED = ("broadcast", "reduce", "scatter", "gather")
"""Collectives with a root."""


@dataclass(frozen=True)
class Collective:
    """A collective between ranks, to be bounded for any algorithm.

    ranks: every switch that has hosts (each if none has), or every host. root: of rooted collectives. amounts: units of
    each rank, all 1 where None: its contribution to an all-gather or a gather, its share of a reduce-scatter or a
    scatter, and what it sends to each other rank in an all-to-all. multicast, reduce: whether switches copy, or combine
    messages.
    """

    kind: CollectiveName
    ranks: Ranks = "switches"
    root: int = 0
    amounts: tuple[int, ...] | None = None
    multicast: bool = False
    reduce: bool = False

    @property
    def able(self) -> str:
        """Abilities of the switches besides forwarding: ``multicast``, ``reduce``, both or ''."""
        return " ".join(name for name in ("multicast", "reduce") if getattr(self, name))
