# SPDX-License-Identifier: Apache-2.0
"""Large graphs of a degree and a diameter: shipped edge lists, and constructions.

Two families import from here: ``degree_diameter`` takes the largest graph, ``mddp`` starts from it.
"""

import csv
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.topology.families.imase import kautz_arcs, kautz_order
from flitlab.models.topology.families.slim_fly import is_slim_fly_order, slim_fly_degree, slim_fly_links
from flitlab.models.topology.galois import field, prime_power

DATA = Path(__file__).parent / "families" / "data"
"""Undirected degree-diameter graphs, one edge list ``und_d<degree>_k<diameter>_n<order>.txt`` each; the lifts in
``voltage_graphs.csv``; the record orders in ``degree_diameter_records.csv``."""


MAX_BASE_DIAMETER = 10
"""Greatest diameter of undirected base graphs: that of the table of record orders."""


class Construction(NamedTuple):
    """A graph that can be built: its order, the name of its construction, and its links (or arcs), int64 [m, 2]."""

    order: int
    name: str
    links: Callable[[], np.ndarray]


def bases(degree: int, directed: bool, n: int) -> dict[int, Construction]:
    """Return base graphs of MDDP graphs of n switches by diameter, including the nearest in order.

    Directed: Kautz graphs, up to the first one of n switches or more. Undirected: :func:`largest_graph` for each
    diameter up to :data:`MAX_BASE_DIAMETER`; of degree 2 only the cycle of n or n + 1.

    Parameters
    ----------
    degree: of the graphs.
    directed: whether graphs are uni-directional.
    n: order of the MDDP graph.
    """
    if not directed:
        diameters = [n // 2] if degree == 2 else range(1, MAX_BASE_DIAMETER + 1)
        return {k: graph for k in diameters if (graph := largest_graph(degree, k))}
    graphs = {1: kautz(degree, 1)}
    while graphs[len(graphs)].order < n:
        graphs[len(graphs) + 1] = kautz(degree, len(graphs) + 1)
    return graphs


def kautz(degree: int, diameter: int) -> Construction:
    """Return the Kautz graph as arcs."""
    arcs = partial(kautz_arcs, degree, diameter)
    return Construction(kautz_order(degree, diameter), f"Kautz graph K({degree}, {diameter})", arcs)


def largest_graph(degree: int, diameter: int) -> Construction | None:
    """Return the largest of :func:`constructions`; None if there are none."""
    return max(constructions(degree, diameter), key=lambda graph: graph.order, default=None)


def shipped_links(degree: int, diameter: int) -> Ints:
    """Return the links of the edge list in ``DATA`` of this degree and diameter, int64 [m, 2]."""
    return np.loadtxt(_path(degree, diameter), dtype=np.int64)


@lru_cache(maxsize=1)
def shipped_orders() -> dict[tuple[int, int], int]:
    """Return (degree, diameter) -> order of the edge lists in ``DATA``."""
    files = (path.stem.split("_") for path in sorted(DATA.glob("und_d*_k*_n*.txt")))
    return {(int(d[1:]), int(k[1:])): int(order[1:]) for _, d, k, order in files}


@lru_cache(maxsize=1)
def record_orders() -> dict[tuple[int, int], int]:
    """Return (degree, diameter) -> largest known order of an undirected graph, Combinatorics Wiki, July 2022."""
    lines = (DATA / "degree_diameter_records.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {
        (int(row["degree"]), int(k)): int(order) for row in rows for k, order in row.items() if k != "degree" and order
    }


def complete_links(n: int) -> Ints:
    """Return every pair of n switches, int64 [n (n - 1) / 2, 2]."""
    return np.column_stack(np.triu_indices(n, 1))


def cycle_links(n: int) -> Ints:
    """Return the links of a ring of n switches, int64 [n, 2]; also its arcs in one direction."""
    return np.column_stack([np.arange(n), (np.arange(n) + 1) % n])


def lift_links(group: tuple[int, int, int], darts: list[tuple[int, int, int]]) -> Ints:
    """Return the links of a voltage graph (lift), int64 [m, 2].

    Parameters
    ----------
    group: (a, b, r), the semidirect product of Z_a and Z_b whose element x + a y, times u + a v, is (x + r**y u) mod a
        + a ((y + v) mod b).
    darts: (i, j, s) joins element g of fibre i to element g s of fibre j, for all g. Element g of fibre i is switch i a
        b + g.
    """
    a, b, r = group
    y, x = np.divmod(np.arange(a * b), a)
    twist = np.array([pow(r, e, a) for e in range(b)])[y]
    links = []
    for i, j, s in darts:
        image = (x + twist * (s % a)) % a + a * ((y + s // a) % b)
        links.append(np.column_stack([i * a * b + np.arange(a * b), j * a * b + image]))
    return np.unique(np.sort(np.concatenate(links), axis=1), axis=0)


ALEGRE_DARTS = (
    [(0, 1, 3), (0, 3, 4), (1, 2, 0), (1, 4, 0), (2, 4, 1), (2, 2, 1), (3, 1, 3), (3, 3, 4), (4, 0, 1), (4, 0, 3)]
)  # fmt: skip
"""Arcs i -> j with voltage s in Z_5: element g of fibre i reaches element g + s of fibre j."""


def alegre_arcs(diameter: int) -> Ints:
    """Return the arcs of a digraph of degree 2 and this diameter, 4 or more, int64 [50 * 2**(diameter - 4), 2].

    It has 25 * 2**(diameter - 4) switches, as many as Alegre's digraph and its line digraphs. The one of diameter 4 is
    a lift over Z_5, a result of simulated annealing; each line digraph has one switch per arc and one hop more.
    """
    g = np.arange(5)
    arcs = np.concatenate([np.column_stack([5 * i + g, 5 * j + (g + s) % 5]) for i, j, s in ALEGRE_DARTS])
    for _ in range(diameter - 4):
        arcs = arcs[np.argsort(arcs[:, 0], kind="stable")]  # so arcs 2 v and 2 v + 1 leave switch v
        number = np.arange(len(arcs))
        arcs = np.column_stack([np.repeat(number, 2), (2 * arcs[:, 1, None] + [0, 1]).ravel()])
    return arcs


def polarity_links(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the links of the polarity graph ER_q, int64 [q (q + 1)**2 / 2, 2], and its absolute switches, int64 [q +
    1].

    Points of PG(2, q) are joined if their dot product is 0. Point (1, a, b) is switch a q + b, (0, 1, b) is q**2 + b,
    (0, 0, 1) is q**2 + q. Absolute points are orthogonal to themselves; they have degree q.
    """
    f = field(q)
    a = np.arange(q)
    inverse = (f.product == 1).argmax(axis=1)
    neighbours = np.empty((q * q + q + 1, q + 1), np.int64)

    def quotient(u: Ints, v: Ints) -> Ints:
        element: Ints = f.negative[f.product[u, inverse[v]]]
        return element

    x = np.repeat([1, 0, 0], [q * q, q, 1])
    y = np.concatenate([np.repeat(a, q), np.ones(q, np.int64), [0]])
    z = np.concatenate([np.tile(a, q), a, [1]])
    points = z > 0  # meets (1, a, -(x + a y) / z) and (0, 1, -y / z)
    along = f.sum[x[points, None], f.product[y[points, None], a]]
    neighbours[points, :q] = a * q + quotient(along, z[points, None])
    neighbours[points, q] = q * q + quotient(y[points], z[points])
    points = (z == 0) & (y > 0)  # meets (1, -x / y, b) and (0, 0, 1)
    neighbours[points, :q] = quotient(x[points], y[points])[:, None] * q + a
    neighbours[points, q] = q * q + q
    neighbours[0] = q * q + np.arange(q + 1)  # (1, 0, 0)
    u = np.repeat(np.arange(len(neighbours)), q + 1)
    v = neighbours.ravel()
    return np.column_stack([u, v])[u < v], u[u == v]


def duplicated(links: np.ndarray, chosen: np.ndarray, looped: np.ndarray) -> Ints:
    """Return the links with a duplicate of each switch of ``chosen``, which has the same neighbours, int64 [m, 2].

    A polarity graph keeps its diameter if its absolute switches are looped: any two points, even equal or adjacent
    ones, have a walk of that length between them, which their duplicates can take too.

    Parameters
    ----------
    links: int64 [links, 2].
    chosen: int64 [n], switches to duplicate.
    looped: int64 [k], switches that count as their own neighbours.
    """
    ends = np.concatenate([links, links[:, ::-1], np.column_stack([looped, looped])])
    new = [links]
    for number, switch in enumerate(chosen, links.max() + 1):
        neighbours = ends[ends[:, 0] == switch, 1]
        new.append(np.column_stack([neighbours, np.full(len(neighbours), number)]))
    return np.concatenate(new)


def extended_polarity_links(q: int, extra: int) -> Ints:
    """Return the links of ER_q with additional switches, of degree q + 1 + ``extra`` and diameter 2, int64 [m, 2].

    q even, extra = 0: one switch joined to all absolute ones, which are the points of a line. q odd: extra // 2
    duplicates of each absolute switch, at most two of which a switch has as neighbours; if extra is odd, also of the
    three points where the polar lines of three absolute ones meet.
    """
    links, absolute = polarity_links(q)
    if q % 2 == 0:
        return np.concatenate([links, np.column_stack([absolute, np.full(q + 1, q * q + q + 1)])])
    chosen = np.tile(absolute, extra // 2)
    if extra % 2:
        ends = np.concatenate([links, links[:, ::-1]])
        touched = [set(ends[ends[:, 0] == v, 1].tolist()) for v in absolute[:3]]
        corners = [touched[i] & touched[j] for i, j in ((0, 1), (0, 2), (1, 2))]
        chosen = np.append(chosen, [corner.pop() for corner in corners])
    return duplicated(links, chosen, absolute)


def quadrangle_links(times: int) -> Ints:
    """Return the links of the polarity quotient of the symplectic quadrangle W(8), int64 [m, 2].

    It has degree 9 + ``times``, diameter 3, 585 switches and ``times`` duplicates of the 65 absolute ones; every switch
    has one of these as its neighbour.
    """
    links = shipped_links(9, 3)
    absolute = np.flatnonzero(np.bincount(links.ravel()) == 8)
    return duplicated(links, np.tile(absolute, times), absolute)


def constructions(degree: int, diameter: int) -> list[Construction]:
    """Return all available undirected graphs of this largest degree and this diameter, in no order."""
    graphs = [*_general(degree, diameter), *_lifts(degree, diameter)]
    if diameter == 2:
        graphs += _polarity(degree)
        graphs += (
            Construction(2 * q * q, f"McKay-Miller-Siran (Slim Fly) graph, q = {q}", partial(slim_fly_links, q))
            for q in (2 * degree // 3, 2 * degree // 3 + 1)
            if is_slim_fly_order(q) and slim_fly_degree(q) == degree
        )
    return graphs


def _general(degree: int, diameter: int) -> Iterator[Construction]:
    """Yield complete graphs, odd cycles, edge lists, and the duplicates of (9, 3)."""
    if diameter == 1:
        yield Construction(degree + 1, "complete graph", partial(complete_links, degree + 1))
    if degree == 2:
        yield Construction(2 * diameter + 1, "cycle", partial(cycle_links, 2 * diameter + 1))
    order = shipped_orders().get((degree, diameter))
    if order:
        with _path(degree, diameter).open() as file:
            name = [next(file) for _ in range(2)][1].removeprefix("# ").split("; darts")[0].strip().rstrip(".")
        yield Construction(order, name, partial(shipped_links, degree, diameter))
    if diameter == 3 and degree > 9:
        times = degree - 9
        name = f"polarity quotient of the symplectic quadrangle W(8), absolute switches duplicated (times {times})"
        yield Construction(585 + 65 * times, name, partial(quadrangle_links, times))


def _polarity(degree: int) -> Iterator[Construction]:
    """Yield polarity graphs of diameter 2."""
    for q in range(2, degree):
        extra = degree - q - 1
        if prime_power(q) is None or (q % 2 == 0 and extra):
            continue
        name = f"polarity (Brown, Erdos-Renyi) graph of PG(2, {q})"
        order = q * q + q + 1
        if q % 2 == 0:
            order, name = order + 1, f"{name}, a switch added"
        elif extra:
            order += (q + 1) * (extra // 2) + 3 * (extra % 2)
            name += ", switches duplicated"
        yield Construction(order, name, partial(extended_polarity_links, q, extra))


def _lifts(degree: int, diameter: int) -> Iterator[Construction]:
    """Yield voltage graphs of ``voltage_graphs.csv``."""
    lines = (DATA / "voltage_graphs.csv").read_text().splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if (int(row["degree"]), int(row["diameter"])) != (degree, diameter):
            continue
        a, b, r, fibres = (int(row[key]) for key in ("a", "b", "r", "fibres"))
        darts = [(int(i), int(j), int(s)) for i, j, s in (dart.split("-") for dart in row["darts"].split())]
        name = f"voltage graph, {fibres} fibres over Z_{a}"
        name += f" : Z_{b} (r = {r})" if b > 1 else ""
        yield Construction(fibres * a * b, name, partial(lift_links, (a, b, r), darts))


def _path(degree: int, diameter: int) -> Path:
    return DATA / f"und_d{degree}_k{diameter}_n{shipped_orders()[degree, diameter]}.txt"
