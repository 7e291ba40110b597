# SPDX-License-Identifier: Apache-2.0
"""Random wiring: simple graphs with given degrees, or with the fewest repeated links where no simple one exists."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology

DRAWS = 100
"""Graphs that are drawn before the search for a suitable one fails."""

SIDEWAYS = 300
"""Neutral exchanges on the way to the fewest parallel links."""


def random_pairs(
    degrees: Ints,
    directed: bool,
    rng: np.random.Generator,
    into: np.ndarray | None = None,
    groups: Ints | None = None,
    draws: int = DRAWS,
) -> np.ndarray | None:
    """Draw a random simple graph, nearly uniform among those with these degrees.

    Directed: ``degrees[v]`` arcs leave switch v and ``into[v]`` enter it. With degrees that are positive in one set of
    switches and ``into`` in another, the graph is bipartite, with arcs from the first set to the second. Undirected:
    ``degrees[v]`` links end at v.

    Parameters
    ----------
    degrees: int64 [switches]; the sum is even in an undirected graph.
    directed: whether pairs are arcs.
    rng: source of all draws.
    into: int64 [switches], in-degrees; by default ``degrees``.
    groups: int64 [switches]; no pair joins two switches of a group; by default each switch is its own group.
    draws: most attempts.

    Returns
    -------
    int64 [m, 2]; None if no simple graph was drawn.
    """
    n = len(degrees)
    into = degrees if into is None else into
    groups = np.arange(n) if groups is None else groups
    used = np.flatnonzero(degrees + into)
    if len(used) < n:
        pairs = random_pairs(degrees[used], directed, rng, into[used], groups[used], draws)
        return None if pairs is None else used[pairs]
    sources, targets = degrees > 0, into > 0
    same_group = np.bincount(groups, sources) @ np.bincount(groups, targets)
    if 2 * degrees.sum() > sources.sum() * targets.sum() - same_group:
        # draw the sparser complement: below half density every bad pair has one to exchange ends with
        possible = np.outer(sources, targets) & (groups[:, None] != groups)
        missing = possible.sum(1) - degrees, possible.sum(0) - into
        if min(missing[0][sources].min(), missing[1][targets].min()) < 0:
            return None
        missing = missing[0] * sources, missing[1] * targets
        absent = random_pairs(missing[0], directed, rng, missing[1], groups, draws)
        if absent is None:
            return None
        u, v = np.nonzero(possible if directed else np.triu(possible))
        ends = absent if directed else np.sort(absent, axis=1)
        return np.column_stack([u, v])[~np.isin(u * n + v, ends @ [n, 1])]
    tails, heads = np.repeat(np.arange(n), degrees), np.repeat(np.arange(n), into)
    for _ in range(draws):
        if directed:
            pairs = np.column_stack([tails, rng.permutation(heads)])
        else:
            pairs = rng.permutation(tails).reshape(-1, 2)
        if _swap_until_simple(pairs, groups, directed, rng):
            return pairs
    return None


def _keys(n: int, directed: bool) -> Callable[[int, int], int]:
    """Return a function that maps a pair to a number, an undirected one irrespective of its order."""

    def key(u: int, v: int) -> int:
        return u * n + v if directed or u < v else v * n + u

    return key


def _exchange(
    pairs: np.ndarray,
    i: int,
    j: int,
    flip: bool,
    copies: Counter[int],
    groups: list[int],
    key: Callable[[int, int], int],
) -> bool:
    """Exchange the second ends of two pairs in place, unless that makes a loop or a repetition; return whether it
    did.
    """
    u, x = pairs[i].tolist()
    v, y = pairs[j].tolist()
    if flip:
        v, y = y, v
    new = key(u, y), key(v, x)
    if groups[u] == groups[y] or groups[v] == groups[x] or new[0] == new[1] or copies[new[0]] or copies[new[1]]:
        return False
    copies.subtract((key(u, x), key(v, y)))
    copies.update(new)
    pairs[i], pairs[j] = (u, y), (v, x)
    return True


def _swap_until_simple(pairs: np.ndarray, groups: Ints, directed: bool, rng: np.random.Generator) -> bool:
    """Exchange the second end of each loop or repetition with a random pair's, in place; return False if that fails.

    A pair inside a group counts as a loop.
    """
    n, group = len(groups), groups.tolist()
    key = _keys(n, directed)
    copies = Counter(key(u, v) for u, v in pairs.tolist())
    for i, (u, x) in enumerate(pairs.tolist()):
        if group[u] != group[x] and copies[key(u, x)] == 1:
            continue
        for _ in range(100 * n):
            j = rng.integers(len(pairs))
            flip = not directed and rng.random() < 0.5
            if _exchange(pairs, i, int(j), flip, copies, group, key):
                break
        else:
            return False
    return True


def random_links(degrees: Ints, directed: bool, rng: np.random.Generator, into: np.ndarray | None = None) -> np.ndarray:
    """Draw a random graph with these degrees, simple where possible.

    Where no simple graph has these degrees, pairs are repeated, as few as exchanges of ends achieve; loops remain only
    where they are unavoidable (one switch has more than half of all ports). Where degrees are so uneven that random
    pairing fails, the graph is Havel and Hakimi's, shuffled by ten exchanges per pair.

    Parameters
    ----------
    degrees, directed, rng, into: as in :func:`random_pairs`.

    Returns
    -------
    int64 [m, 2].
    """
    import networkx as nx  # no other drawing of graphs needs it

    n = len(degrees)
    into = degrees if into is None else into
    graphical = nx.is_digraphical(into.tolist(), degrees.tolist()) if directed else nx.is_graphical(degrees.tolist())
    if not graphical:
        return _fewest_repeats(degrees, directed, rng, into)
    pairs = random_pairs(degrees, directed, rng, into, draws=3)
    if pairs is None:
        used = np.flatnonzero(degrees + into)  # networkx leaves out switches without links and numbers the others
        out_of, in_to = degrees[used].tolist(), into[used].tolist()
        realised = nx.directed_havel_hakimi_graph(in_to, out_of) if directed else nx.havel_hakimi_graph(out_of)
        pairs = used[np.array(realised.edges, np.int64).reshape(-1, 2)]
        key = _keys(n, directed)
        copies = Counter(key(u, v) for u, v in pairs.tolist())
        for i, j in rng.integers(len(pairs), size=(10 * len(pairs), 2)).tolist():
            _exchange(pairs, i, j, not directed and rng.random() < 0.5, copies, list(range(n)), key)
    return pairs


def _fewest_repeats(degrees: Ints, directed: bool, rng: np.random.Generator, into: np.ndarray) -> np.ndarray:
    """Draw a pairing in which no exchange of ends reduces the loops or, after those, the repetitions.

    :data:`SIDEWAYS` neutral exchanges are made as well, to leave plateaus.
    """
    n, size = len(degrees), int(degrees.sum()) if directed else int(degrees.sum()) // 2
    tails, heads = np.repeat(np.arange(n), degrees), np.repeat(np.arange(n), into)
    pairs = np.column_stack([tails, rng.permutation(heads)]) if directed else rng.permutation(tails).reshape(-1, 2)
    sideways = 0
    while sideways < SIDEWAYS:
        key = (pairs if directed else np.sort(pairs, axis=1)) @ [n, 1]
        _, kind, copies = np.unique(key, return_inverse=True, return_counts=True)
        # what a pair costs: all loops together count for more than all repetitions
        cost = np.where(pairs[:, 0] == pairs[:, 1], size, copies[kind] > 1)
        if not cost.any():
            break
        i = rng.choice(np.flatnonzero(cost == cost.max()))
        u, x = pairs[i]
        v, y = (pairs if directed else np.concatenate([pairs, pairs[:, ::-1]])).T
        from_u = np.bincount(y[v == u], minlength=n) > 0
        to_x = np.bincount(v[y == x], minlength=n) > 0
        added = np.where(y == u, size, from_u[y]) + np.where(v == x, size, to_x[v]) + ((u == x) & (v == y))
        change = added - cost[i] - (cost if directed else np.tile(cost, 2))
        change[(v == u) | (y == x)] = 2 * size  # these exchanges lead to the same graph
        best = change.min()
        if best <= 0:
            j = rng.choice(np.flatnonzero(change == best))
            pairs[i], pairs[j % size] = (u, y[j]), (v[j], x)
        sideways += best >= 0
    return pairs


def join_parts(pairs: np.ndarray, switches: int, rng: np.random.Generator, classes: Ints | None = None) -> None:
    """Exchange second ends of pairs, in place, until the graph is connected or no exchange joins further components.

    A pair on a cycle and a pair of another component suffice to join two components; degrees stay, and no pair is
    repeated. Directed graphs become weakly connected; that is strongly where every in-degree equals the out-degree.

    Parameters
    ----------
    pairs: int64 [pairs, 2], changed in place.
    switches: number of switches.
    rng: source of all draws.
    classes: int64 [pairs]; only pairs of equal class exchange ends.
    """
    classes = np.zeros(len(pairs), np.int64) if classes is None else classes
    while True:
        spare, component_of = _components(pairs, switches, rng)
        component_of_pair = component_of[pairs[:, 0]]
        for i in spare:
            others = np.flatnonzero((component_of_pair != component_of_pair[i]) & (classes == classes[i]))
            if len(others):
                j = rng.choice(others)
                pairs[[i, j], 1] = pairs[[j, i], 1]
                break
        else:
            return


def _components(pairs: np.ndarray, switches: int, rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
    """Return pairs that close a cycle with pairs drawn before them, and the component of every switch, int64
    [switches].
    """
    leader = list(range(switches))

    def find(v: int) -> int:
        while leader[v] != v:
            leader[v] = v = leader[leader[v]]
        return v

    spare = []
    for i in rng.permutation(len(pairs)).tolist():
        u, v = find(int(pairs[i, 0])), find(int(pairs[i, 1]))
        if u == v:
            spare.append(i)
        leader[u] = v
    return spare, np.array([find(v) for v in range(switches)])


def first_connected(draw: Callable[[], Topology | None], key: str | None) -> Topology:
    """Return the first strongly connected topology of at most :data:`DRAWS` draws; None is a failed draw.

    Raises :class:`~flitlab.models.registry.SpecError` with ``key`` if there is none.
    """
    for _ in range(DRAWS):
        topology = draw()
        if topology is not None and topology.unreachable_pair() is None:
            return topology
    raise SpecError(f"no connected graph among {DRAWS} drawn", key=key)


def evenly(total: int, places: int) -> Ints:
    """Divide ``total`` into integers, int64 [places]; any two (and sums of equally long runs) differ by at most 1."""
    return np.diff(np.arange(places + 1) * total // places)


def wireable(degrees: Ints) -> Ints:
    """Return degrees of some graph without loops: the largest is lowered if it exceeds the rest or the sum is odd.

    Parameters
    ----------
    degrees: int64 [switches].
    """
    lowered = max(2 * int(degrees.max()) - int(degrees.sum()), int(degrees.sum()) % 2)
    even: Ints = degrees - lowered * (np.arange(len(degrees)) == degrees.argmax())
    return even
