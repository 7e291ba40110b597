# SPDX-License-Identifier: Apache-2.0
"""Proofs of both ends of a collective's time, as a certificate stores them."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from flitlab.fluid.collective.collective import Collective
from flitlab.models.arrays import Floats, Ints
from flitlab.models.collective.tree import Tree
from flitlab.models.instance import Instance

if TYPE_CHECKING:  # these import compilers, which reading a certificate does not need
    from flitlab.fluid.certificate import Certificate
    from flitlab.fluid.mcf.paths import Paths


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
