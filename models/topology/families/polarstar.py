# SPDX-License-Identifier: Apache-2.0
"""PolarStar: star products of polarity graphs, of diameter 3."""

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.degree_diameter_graphs import polarity_links
from flitlab.models.topology.families.polarfly import MAX_Q, is_polarfly_order
from flitlab.models.topology.galois import field, prime_power
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size, listed, nearest_valid
from flitlab.models.topology.spec import TopologySpec

Supernode = Literal["inductive_quad", "paley"]


def is_quad_degree(degree: int) -> bool:
    """Whether there is an inductive quad of this degree: 0 or 3 modulo 4."""
    return degree % 4 in (0, 3)


def is_paley_degree(degree: int) -> bool:
    """Whether there is a Paley graph of this degree, which is even: one for each prime power 2 degree + 1."""
    return degree > 0 and degree % 2 == 0 and prime_power(2 * degree + 1) is not None


def inductive_quad_links(degree: int) -> Ints:
    """int64 [m, 2]: links of a graph of 2 degree + 2 vertices whose partners are 2 i and 2 i + 1.

    Of any two pairs of partners one has a *hub*, a vertex that is joined to both vertices of the other pair; there
    are no other links. So of the links u - v and partner(u) - partner(v) between different pairs there is always
    exactly one. A vertex has degree d if it and its partner are hubs equally often. Pairs come in fours, the first
    one alone if the degree is a multiple of 4: of each four, three beat the next one in a circle and the last one; and
    all pairs before them beat all four.
    """
    links = []
    for first in range((degree + 1) % 4, degree + 1, 4):
        a, b, c, d = range(first, first + 4)
        beaten = [(pair, [a, b, c, d]) for pair in range(first)] + [(a, [b, d]), (b, [c, d]), (c, [a, d])]
        for winner, losers in beaten:
            for place, loser in enumerate(losers):
                hub = 2 * winner + (2 * place >= len(losers))
                links += [(hub, 2 * loser), (hub, 2 * loser + 1)]
    return np.array(links, np.int64).reshape(-1, 2)


def paley_links(order: int) -> Ints:
    """int64 [m, 2]: pairs of elements of GF(order) that differ by a square; order 1 modulo 4."""
    f = field(order)
    u, v = np.triu_indices(order, 1)
    near = np.isin(f.sum[u, f.negative[v]], f.power[::2])
    return np.column_stack([u[near], v[near]])


EXISTS = {"inductive_quad": is_quad_degree, "paley": is_paley_degree}
"""Kind of supernode -> whether there is one of a degree."""


def order_of(q: int, d: int, supernode: Supernode) -> int:
    """Switches of the star product.

    Parameters
    ----------
    q: order of the polarity graph's field.
    d: degree of the supernode.
    supernode: its kind.
    """
    return (q * q + q + 1) * (2 * d + (2 if supernode == "inductive_quad" else 1))


@register("topology", "polarstar")
class PolarStar(TopologySpec):
    """PolarStar: every point of a polarity graph becomes a supernode, and every link a matching of two supernodes.

    The star product of the polarity graph of GF(q) (see polarfly) and a graph of degree d, the supernode, with a
    one-to-one map f of its vertices: switches (x, u), where x is a point and u a vertex of the supernode; (x, u) and
    (x, v) are linked if u and v are; and for each link x - y with x < y, (x, u) and (y, f(u)) for all u.

    ``supernode: inductive_quad``: 2 d + 2 vertices in pairs of partners, d = 0 or 3 modulo 4; f exchanges partners. A
    quadric x also has the links (x, u) - (x, f(u)), so that all switches have degree q + 1 + d. ``paley``: the
    2 d + 1 elements of a field, d even, linked if they differ by a square; f multiplies by a primitive element. The
    supernodes of quadrics get no links more then, since f is not its own inverse, and have degree q + d. Without
    ``supernode`` it is the larger of the two that exist.

    Either q and d are set, or the largest ``degree`` of a switch: then the q and d with q + 1 + d = degree are chosen
    that maximise the switches; ``notes`` state them.

    (q**2 + q + 1) (2 d + 2) or (q**2 + q + 1) (2 d + 1) switches, numbered supernode by supernode, of diameter at most
    3. Each has ceil((q + 1 + d) / 3) hosts unless ``hosts_per_switch`` says otherwise.

    Valid: q a prime power; d as above; any degree from 3; up to 2 * 10**7 channels.

    Example: ``topology: {kind: polarstar, q: 3, d: 3}``

    Example: ``topology: {kind: polarstar, q: 2, d: 2, supernode: paley}``

    Example: ``topology: {kind: polarstar, degree: 6}``

    Source: Lakhotia, Monroe, Isham, Besta, Blach, Hoefler and Petrini, PolarStar, SPAA 2024, arXiv:2302.07217. Star
    product: Bermond, Delorme and Farhi, Ann. Discrete Math. 20, 1984. The paper's inductive quads have the same orders,
    degrees and property; which of two pairs has the hub is our choice, and so are the quadrics' supernodes under Paley.
    """

    q: int | None = Field(default=None, le=MAX_Q)
    """Order of the field of the polarity graph, a prime power."""
    d: int | None = Field(default=None, ge=0)
    """Links of a switch inside its supernode."""
    degree: int | None = Field(default=None, ge=3, le=2 * MAX_Q)
    """The most links of a switch, in place of q and d."""
    supernode: Supernode | None = None
    """Graph inside a supernode. null: the larger one that exists."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any order and supernode that have no more switches."""
        for q in filter(is_polarfly_order, range(2, MAX_Q + 1)):
            if (q * q + q + 1) * 5 > equipment.most_switches:
                return
            for d in range(2, equipment.most_links):
                for supernode in get_args(Supernode):
                    switches = order_of(q, d, supernode)
                    if EXISTS[supernode](d) and switches <= equipment.most_switches:
                        quadrics = 0 if supernode == "inductive_quad" else (q + 1) * (2 * d + 1)
                        links = (switches * (q + 1 + d) - quadrics) // 2
                        keys = {"kind": "polarstar", "q": q, "d": d, "supernode": supernode}
                        yield from flat(equipment, keys, switches, q + 1 + d, links)

    def graph(self) -> Topology:
        q, d, supernode = self._chosen()
        size = order_of(q, d, supernode) // (q * q + q + 1)
        limit_size(order_of(q, d, supernode) * (q + 1 + d), "d" if self.degree is None else "degree")
        quad, member = supernode == "inductive_quad", np.arange(size)
        image = member ^ 1 if quad else field(size).product[field(size).power[1], member]
        links, quadrics = polarity_links(q)
        points = np.arange(q * q + q + 1)[:, None, None]
        inner = inductive_quad_links(d) if quad else paley_links(size)
        partners = np.column_stack([member[::2], member[1::2]]) if quad else np.zeros((0, 2), np.int64)
        wired = [
            links[:, None] * size + np.column_stack([member, image]),
            points * size + inner,
            quadrics[:, None, None] * size + partners,
        ]
        clusters = [[f"supernode {x}", x * size, size] for x in range(len(points))]
        notes = {"q": q, "d": d, "supernode": supernode, "clusters": clusters}
        ends = np.concatenate([part.reshape(-1, 2) for part in wired])
        return Topology.from_links(self.kind, len(points) * size, ends, notes=notes).with_hosts((q + 1 + d + 2) // 3)

    def _able(self) -> list[Supernode]:
        """The kinds of supernode that may be taken, the larger one first."""
        return [self.supernode] if self.supernode else ["inductive_quad", "paley"]

    def _chosen(self) -> tuple[int, int, Supernode]:
        """q, d and the kind of supernode; raises SpecError where there is no such product."""
        if self.degree is not None:
            for key in ("q", "d"):
                if key in self.model_fields_set:
                    raise SpecError("degree already chooses it: leave this out", key=key)
            return self._largest(self.degree)
        if self.q is None or self.d is None:
            raise SpecError("missing: give q and d, or degree", key="q" if self.q is None else "d")
        if not is_polarfly_order(self.q):
            what = "must be a prime power" if self.q < 2 else "not a prime power"
            raise SpecError(f"{what}; nearest {listed(nearest_valid(self.q, is_polarfly_order))}", key="q")
        able = self._able()
        for supernode in able:
            if EXISTS[supernode](self.d):
                return self.q, self.d, supernode
        near = nearest_valid(self.d, lambda d: any(EXISTS[name](d) for name in able), low=0)
        raise SpecError(f"no {' or '.join(able)} of that degree; nearest {listed(near)}", key="d")

    def _largest(self, degree: int) -> tuple[int, int, Supernode]:
        """The most switches of this degree; of equally many the largest q."""
        products = [
            (order_of(q, degree - q - 1, supernode), q, supernode)
            for q in range(2, min(degree, MAX_Q + 1))
            for supernode in self._able()
            if is_polarfly_order(q) and EXISTS[supernode](degree - q - 1)
        ]
        if not products:
            raise SpecError(f"no q and d with q + 1 + d = {degree} for supernode {self.supernode}", key="degree")
        _, q, supernode = max(products)
        return q, degree - q - 1, supernode
