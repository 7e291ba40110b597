"""PolarStar: star products of polarity graphs, of diameter 3."""

from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.degree_diameter_graphs import polarity_links
from flitlab.models.topology.families.polarfly import MAX_Q, is_polarfly_order
from flitlab.models.topology.galois import field, prime_power
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import refuse_if_huge
from flitlab.models.topology.nearest import listed, nearest
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

    (q**2 + q + 1) (2 d + 2) or (q**2 + q + 1) (2 d + 1) switches, numbered supernode by supernode, of diameter at most
    3. Each has ceil((q + 1 + d) / 3) hosts unless ``hosts_per_switch`` says otherwise.

    Valid: q a prime power; d as above; up to 2 * 10**7 channels.

    Example: ``topology: {kind: polarstar, q: 3, d: 3}``

    Example: ``topology: {kind: polarstar, q: 2, d: 2, supernode: paley}``

    Source: Lakhotia, Monroe, Isham, Besta, Blach, Hoefler and Petrini, PolarStar, SPAA 2024, arXiv:2302.07217. Star
    product: Bermond, Delorme and Farhi, Ann. Discrete Math. 20, 1984. The paper's inductive quads have the same orders,
    degrees and property; which of two pairs has the hub is our choice, and so are the quadrics' supernodes under Paley.
    """

    q: int = Field(le=MAX_Q)
    d: int = Field(ge=0)
    supernode: Supernode | None = None

    def graph(self) -> Topology:
        q, d = self.q, self.d
        if not is_polarfly_order(q):
            what = "must be a prime power" if q < 2 else "not a prime power"
            raise SpecError(f"{what}; nearest {listed(nearest(q, is_polarfly_order))}", key="q")
        points = q * q + q + 1
        refuse_if_huge(points * (2 * d + 2) * (q + 1 + d), "d")
        quad = self._takes_quad()
        size = 2 * d + 2 if quad else 2 * d + 1
        member = np.arange(size)
        image = member ^ 1 if quad else field(size).product[field(size).power[1], member]
        links, quadrics = polarity_links(q)
        between = (links[:, None] * size + np.column_stack([member, image])).reshape(-1, 2)
        inner = inductive_quad_links(d) if quad else paley_links(size)
        inside = (np.arange(points)[:, None, None] * size + inner).reshape(-1, 2)
        partners = np.column_stack([member[::2], member[1::2]]) if quad else np.zeros((0, 2), np.int64)
        looped = (quadrics[:, None, None] * size + partners).reshape(-1, 2)
        clusters = [[f"supernode {x}", x * size, size] for x in range(points)]
        notes = {"supernode": "inductive_quad" if quad else "paley", "clusters": clusters}
        wired = np.concatenate([between, inside, looped])
        topology = Topology.from_links(self.kind, points * size, wired, notes=notes)
        return topology.with_hosts((q + 1 + d + 2) // 3)

    def _takes_quad(self) -> bool:
        """Whether supernodes are inductive quads; raises SpecError where there is no supernode of this degree."""
        valid = {"inductive_quad": is_quad_degree, "paley": is_paley_degree}
        able = [name for name in valid if self.supernode in (None, name)]
        if any(valid[name](self.d) for name in able):
            return valid[able[0]](self.d) and able[0] == "inductive_quad"
        near = nearest(self.d, lambda d: any(valid[name](d) for name in able), low=0)
        raise SpecError(f"no {' or '.join(able)} of that degree; nearest {listed(near)}", key="d")
