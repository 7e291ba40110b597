"""Random wiring: simple graphs with given degrees."""

from collections import Counter

import numpy as np

DRAWS = 100
"""Graphs drawn before the search for a suitable one is given up."""


def random_pairs(degrees: np.ndarray, directed: bool, rng: np.random.Generator) -> np.ndarray | None:
    """Pairs int64 [m, 2] of a random simple graph, nearly uniform among those with these degrees.

    Directed: ``degrees[v]`` arcs leave switch v and as many enter it. Undirected: ``degrees[v]`` links end
    at v; their sum must be even. None if no simple graph was found.
    """
    n = len(degrees)
    if 2 * degrees.sum() > n * (n - 1):
        # draw the sparser complement: below half density every bad pair has one to exchange ends with
        absent = random_pairs(n - 1 - degrees, directed, rng)
        if absent is None:
            return None
        u, v = np.nonzero(~np.eye(n, dtype=bool) if directed else np.triu(np.ones((n, n), bool), 1))
        ends = absent if directed else np.sort(absent, axis=1)
        return np.column_stack([u, v])[~np.isin(u * n + v, ends @ [n, 1])]
    ends = np.repeat(np.arange(n), degrees)
    for _ in range(DRAWS):
        if directed:
            pairs = np.column_stack([ends, rng.permutation(ends)])
        else:
            pairs = rng.permutation(ends).reshape(-1, 2)
        if _swap_until_simple(pairs, n, directed, rng):
            return pairs
    return None


def _swap_until_simple(pairs: np.ndarray, n: int, directed: bool, rng: np.random.Generator) -> bool:
    """Exchange the second end of each loop or repetition with a random pair's, in place; False if stuck."""

    def key(u, v):
        return u * n + v if directed or u < v else v * n + u

    copies = Counter(key(u, v) for u, v in pairs.tolist())
    for i, (u, x) in enumerate(pairs.tolist()):
        if u != x and copies[key(u, x)] == 1:
            continue
        for _ in range(100 * n):
            j = rng.integers(len(pairs))
            u, x = pairs[i].tolist()
            v, y = pairs[j].tolist()
            if not directed and rng.random() < 0.5:
                v, y = y, v
            new = key(u, y), key(v, x)
            if u == y or v == x or new[0] == new[1] or copies[new[0]] or copies[new[1]]:
                continue
            copies.subtract((key(u, x), key(v, y)))
            copies.update(new)
            pairs[i], pairs[j] = (u, y), (v, x)
            break
        else:
            return False
    return True
