# SPDX-License-Identifier: Apache-2.0
"""Modified degree-diameter graphs (MDDP): any order, edited from the degree-diameter graph of nearest order."""

from collections.abc import Callable

import numpy as np
from pydantic import Field
from scipy.optimize import linear_sum_assignment

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.degree_diameter_graphs import bases
from flitlab.models.topology.distances import distance_counts, mean_hops
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec

GREEDY_TRIES = 10
"""Alternatives compared at each step of the greedy variant."""


def insert(pairs: np.ndarray, degree: int, directed: bool, rng: np.random.Generator) -> np.ndarray:
    """Put a new switch into ``degree`` arcs of distinct tails and heads, or degree // 2 disjoint links.

    Parameters
    ----------
    pairs: int64 [m, 2], arcs or links.
    degree: of the new switch.
    directed: whether pairs are arcs.
    rng: source of all draws.
    """
    edge_count = degree if directed else degree // 2
    new = pairs.max() + 1
    while True:
        chosen: list[int] = []
        tails: set[int] = set()
        heads = set[int]() if directed else tails
        for i in rng.integers(len(pairs), size=10 * edge_count).tolist():
            u, v = pairs[i].tolist()
            if len(chosen) < edge_count and u not in tails and v not in heads:
                chosen.append(i)
                tails.add(u)
                heads.add(v)
        if len(chosen) == edge_count:
            break
    after = np.column_stack([np.full(edge_count, new), pairs[chosen, 1]])
    pairs = np.concatenate([pairs, after])
    pairs[chosen, 1] = new
    return pairs


def remove(pairs: np.ndarray, degree: int, directed: bool, rng: np.random.Generator) -> np.ndarray:
    """Remove a random switch and join the free channel ends, without loops or parallel channels.

    Directed: a perfect matching of the ends, so that degrees stay; another switch is drawn if there is none.
    Undirected: unmatched ends stay free.

    Parameters
    ----------
    pairs: int64 [m, 2], arcs or links.
    degree: of the graph.
    directed: whether pairs are arcs.
    rng: source of all draws.
    """
    for x in rng.permutation(np.unique(pairs)):
        kept_pairs = pairs[(pairs != x).all(axis=1)]
        tails, heads = pairs[pairs[:, 1] == x, 0], pairs[pairs[:, 0] == x, 1]
        if not directed:
            return np.concatenate([kept_pairs, _match_ends(np.concatenate([tails, heads]), kept_pairs, rng)])
        number = np.array([pairs.max() + 1, 1])  # makes one number of a pair
        new = tails[:, None] * number[0] + heads
        near = kept_pairs[np.isin(kept_pairs[:, 0], tails)]
        barred = np.isin(new, near @ number) | (tails[:, None] == heads)
        row, column = linear_sum_assignment(rng.random(barred.shape) + barred * 2.0 * degree)
        if not barred[row, column].any():
            return np.concatenate([kept_pairs, np.column_stack([tails[row], heads[column]])])
    raise SpecError("no switch can be removed without repeating a channel", key="n")


def _match_ends(ends: np.ndarray, links: np.ndarray, rng: np.random.Generator) -> Ints:
    """Return random new links between free ports, without loops or parallels, int64 [k, 2]; the most of ten attempts.

    ends: the switch of every free port. links: the existing links.
    """
    near = links[np.isin(links, ends).all(axis=1)]
    adjacent = set(map(tuple, np.concatenate([near, near[:, ::-1]]).tolist()))
    best: list[tuple[int, int]] = []
    for _ in range(10):
        free, used_pairs = rng.permutation(ends).tolist(), set(adjacent)
        pairs = []
        while free:
            u = free.pop()
            v = next((v for v in free if v != u and (u, v) not in used_pairs), None)
            if v is not None:
                free.remove(v)
                pairs.append((u, v))
                used_pairs |= {(u, v), (v, u)}
        best = max(best, pairs, key=len)
        if len(best) == len(ends) // 2:
            break
    return np.array(best, np.int64).reshape(-1, 2)


def _cost(topology: Topology) -> tuple[float, float]:
    """(diameter, ASPL); infinite if some switch cannot be reached."""
    try:
        counts = distance_counts(topology)
    except ValueError:
        return np.inf, np.inf
    return len(counts) - 1, mean_hops(counts)


@register("topology", "mddp")
class Mddp(TopologySpec):
    """Modified degree-diameter graph: the one nearest in order, randomly edited to n switches.

    The base is a Kautz graph, or with ``directed: false`` the graph of this degree and of some diameter to 10 that
    ``degree_diameter`` builds. *Adding* a switch: it is
    put into ``degree`` random channels with different tails and different heads (bi-directional: into
    degree // 2 disjoint links). *Removing* a random switch: the channels that it leaves open are joined at
    random into simple ones. Uni-directional graphs stay regular; in bi-directional ones, ports that are free
    in the end are joined at random where that repeats no link.

    Of ``best_of`` graphs edited independently the one of least (diameter, ASPL) is kept. ``greedy`` takes
    the best of ten alternatives, by ASPL, at every single step: better graphs than published, and slower.

    Valid: 2 <= degree < n. Far from every base an MDDP graph is about as good as a random one; ``notes``
    names the base, its construction and the numbers of switches added or removed. Up to 5 * 10**6 channels.

    Example: ``topology: {kind: mddp, n: 64, degree: 6, directed: true, best_of: 5, seed: 1}``

    Example: ``topology: {kind: mddp, n: 76, degree: 5, directed: false, seed: 1}``

    Source: UNI section III-A, after Koibuchi et al., CANDAR 2016. The edits are our reading: they reproduce
    UNI Table I within 1 %.
    """

    n: int = Field(ge=3)
    """Switches."""
    degree: int = Field(ge=2)
    """Channels out, or links, of a switch."""
    directed: bool = True
    """Whether channels are uni-directional."""
    best_of: int = Field(default=5, ge=1, le=1000)
    """Graphs that are drawn; the best is kept."""
    greedy: bool = False
    """Whether each edit is the best of ten."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        if self.degree >= self.n:
            raise SpecError(f"must be below n = {self.n}", key="degree")
        limit_random_size(self.n * self.degree, "n")
        graphs = bases(self.degree, self.directed, self.n)
        diameter = min(graphs, key=lambda k: (abs(graphs[k].order - self.n), k))
        order, construction, make = graphs[diameter]
        base = make()
        if order == self.n:
            best = self._topology(base)
        else:
            draws = [self._edited(base, self.n - order, [self.seed, i]) for i in range(self.best_of)]
            best = min(draws, key=_cost)
        cost = _cost(best)
        best.notes.update(
            base=f"{'Kautz' if self.directed else 'degree-diameter'} graph ({self.degree}, {diameter})",
            base_construction=construction,
            base_order=order,
            added=max(0, self.n - order),
            removed=max(0, order - self.n),
            free_ports=int((self.degree - best.out_degree).sum()),
        )
        if np.isfinite(cost[0]):
            best.notes.update(diameter=int(cost[0]), aspl=cost[1])
        return best

    def _edited(self, base: np.ndarray, growth: int, seed: list[int]) -> Topology:
        """One random edit of the base; ``growth`` switches are added, or removed if negative."""
        rng = np.random.default_rng(seed)
        edit = insert if growth > 0 else remove
        tries = GREEDY_TRIES if self.greedy else 1
        pairs = base
        for _ in range(abs(growth)):
            options = [edit(pairs, self.degree, self.directed, rng) for _ in range(tries)]
            pairs = options[0] if tries == 1 else min(options, key=lambda p: _cost(self._topology(p))[1])
        topology = self._topology(pairs)
        if self.directed:
            return topology
        links = np.column_stack([topology.src, topology.dst])[topology.src < topology.dst]
        free = np.repeat(np.arange(topology.switches), self.degree - topology.out_degree)
        return self._topology(np.concatenate([links, _match_ends(free, links, rng)]))

    def _topology(self, pairs: np.ndarray) -> Topology:
        """From pairs of switch numbers that may have gaps."""
        switches, number = np.unique(pairs, return_inverse=True)
        make: Callable[..., Topology] = Topology.from_arcs if self.directed else Topology.from_links
        return make(self.kind, len(switches), number.reshape(-1, 2))
