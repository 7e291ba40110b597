# SPDX-License-Identifier: Apache-2.0
"""Description of a collective, for bounds, and proofs of its time as a certificate stores them."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.collective.schedule import CollectiveName
from flitlab.models.collective.tree import Tree
from flitlab.models.instance import Instance

if TYPE_CHECKING:  # these import compilers, which reading a certificate does not need
    from flitlab.fluid.certificate import Certificate
    from flitlab.fluid.mcf.paths import Paths

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


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Proofs of a time of a collective: prices and a flow of an all-to-all, labels of sets of the others.

    amount: int64 [ranks], units. instance: the demand of an all-to-all; prices, flow: as of a maximum concurrent flow.
    bound: the time over bandwidth, in units over a channel of capacity 1. part: int64 [switches], of_rank: int64
    [ranks]: 0 on the side of a cut and -1 outside, or the numbers of disjoint parts, -1 in none. into, out: trees
    toward their roots, and from them, both written as trees out of the root; ranks with channels of their own are
    vertices after all switches. reached: the time of all data along the trees.
    """

    collective: Collective
    amount: Ints
    instance: Instance | None = None
    prices: "Certificate | None" = None
    flow: "Floats | Paths | None" = None
    bound: Fraction | None = None
    part: Ints = field(default_factory=_none)
    of_rank: Ints = field(default_factory=_none)
    into: tuple[Tree, ...] = ()
    out: tuple[Tree, ...] = ()
    reached: Fraction | None = None
