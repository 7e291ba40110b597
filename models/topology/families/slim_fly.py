# SPDX-License-Identifier: Apache-2.0
"""Slim Fly: McKay-Miller-Siran graphs of diameter 2."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.galois import field, prime_power
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import listed, nearest_valid
from flitlab.models.topology.spec import TopologySpec

MAX_Q = 181
"""The largest prime power that makes at most 2 * 10**7 channels."""


def is_slim_fly_order(q: int) -> bool:
    """Whether q >= 3 is a prime power 4 w + delta with delta = -1, 0 or 1: every one above 2 is."""
    return q >= 3 and prime_power(q) is not None


def slim_fly_degree(q: int) -> int:
    """(3 q - delta) / 2."""
    return (3 * q + 1) // 2 if q % 4 == 3 else 3 * q // 2


def generator_sets(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sets X and Y of differences that wire the two halves internally, as field elements.

    With q = 4 w + delta, powers xi**e of the primitive element: delta = 1, e even in X and odd in Y; delta = 0,
    likewise and 1 = xi**(q - 1) in both; delta = -1, e = 0, 2 .. 2 w - 2 and 2 w - 1, 2 w + 1 .. 4 w - 3 in X, one more
    each in Y.
    """
    if q % 4 == 3:
        half = (q + 1) // 2
        exponents = np.concatenate([np.arange(0, half, 2), np.arange(half - 1, q - 1, 2)])
    else:
        exponents = np.arange(0, q - 1, 2)
    power = field(q).power
    return power[exponents], power[(exponents + 1) % (q - 1)]


def slim_fly_links(q: int) -> Ints:
    """Return the links of the MMS graph, int64 [q**2 (3 q - delta) / 2, 2], for q that :func:`is_slim_fly_order`
    allows.

    Switch x q + y is (0, x, y), switch q**2 + m q + c is (1, m, c).
    """
    f = field(q)
    y, other = np.triu_indices(q, 1)
    difference = f.sum[y, f.negative[other]]
    base = np.arange(q)[:, None] * q
    links = []
    for half, differences in enumerate(generator_sets(q)):
        near = np.isin(difference, differences)
        first = half * q * q + base
        links.append(np.column_stack([(first + y[near]).ravel(), (first + other[near]).ravel()]))
    x, m, c = np.indices((q, q, q)).reshape(3, -1)
    links.append(np.column_stack([x * q + f.sum[f.product[m, x], c], q * q + m * q + c]))
    return np.concatenate(links)


@register("topology", "slim_fly")
class SlimFly(TopologySpec):
    """Slim Fly: the McKay-Miller-Siran graph of a prime power q = 4 w + delta, delta = -1, 0 or 1.

    Switches (0, x, y) and (1, m, c), with x, y, m, c in the field GF(q). Links: (0, x, y) - (0, x, y') if
    y - y' is in X; (1, m, c) - (1, m, c') if c - c' is in Y; (0, x, y) - (1, m, c) if y = m x + c. X and Y
    are sets of powers of a primitive element xi. delta = 1: X the even powers, Y the odd ones. delta = 0:
    the same, and 1 = xi**(q - 1) is in both. delta = -1: X = {xi**e, e = 0, 2 .. 2 w - 2 and 2 w - 1,
    2 w + 1 .. 4 w - 3}, Y = xi X.

    2 q**2 switches of degree (3 q - delta) / 2, diameter 2. Each has ceil(degree / 2) hosts unless
    ``hosts_per_switch`` says otherwise.

    Valid: q a prime power from 3 to 181 (2 * 10**7 channels).

    Example: ``topology: {kind: slim_fly, q: 5}``

    Source: McKay, Miller and Siran, J. Combinatorial Theory B 74, 1998; Hafner, Discrete Math. 276, 2004,
    for delta = -1 and 0. Besta and Hoefler, Slim Fly, SC 2014.
    """

    q: int = Field(le=MAX_Q)
    """Order of the field, a prime power: 2 q**2 switches."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any order that has no more switches."""
        for q in filter(is_slim_fly_order, range(3, MAX_Q + 1)):
            if 2 * q * q > equipment.most_switches:
                return
            degree = slim_fly_degree(q)
            yield from flat(equipment, {"kind": "slim_fly", "q": q}, 2 * q * q, degree, q * q * degree)

    def graph(self) -> Topology:
        if not is_slim_fly_order(self.q):
            what = "must be a prime power from 3" if self.q < 3 else "not a prime power"
            raise SpecError(f"{what}; nearest {listed(nearest_valid(self.q, is_slim_fly_order))}", key="q")
        notes = {"clusters": [[f"subgraph {i}", i * self.q, self.q] for i in range(2 * self.q)]}
        topology = Topology.from_links(self.kind, 2 * self.q**2, slim_fly_links(self.q), notes=notes)
        return topology.with_hosts((slim_fly_degree(self.q) + 1) // 2)
