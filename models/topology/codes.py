# SPDX-License-Identifier: Apache-2.0
"""Binary linear codes of large distance: classical families, shortened and resized, and a tabu search.

A code [m, k, D] is stored as the columns of a generator matrix, int64 [m]: distinct integers in 1 .. 2**k - 1 whose
bits are the k rows. Word u = 1 .. 2**k - 1 has at position j the parity of u & columns[j].
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import hadamard

from flitlab.models.arrays import Floats, Ints
from flitlab.models.topology.galois import field

START_CODES = 6
"""Codes of the classical families that are resized to the required length."""

SEARCH_STEPS = 6000
"""Most steps of the tabu search."""

SEARCH_WORK = 2.0**21
"""Most steps of the tabu search times the number of words."""

TABU_PENALTY = 1e9
"""Penalty of a tabu column, above the importance of any column."""


class Code(NamedTuple):
    """A binary linear code. columns: int64 [m], see the module. distance: the minimum weight. name: its
    construction.
    """

    columns: Ints
    distance: int
    name: str


def walsh_hadamard(values: np.ndarray) -> Floats:
    """Compute the Walsh-Hadamard transform: for every u, the sum over c of values[c] * (-1)**(parity of u & c).

    Parameters
    ----------
    values: float64 [2**k].

    Returns
    -------
    float64 [2**k].
    """
    bits = len(values).bit_length() - 1
    while bits:
        step = min(bits, 4)
        # transform the lowest bits of the index and turn them to the top: after all steps they are in order again
        values = (values.reshape(-1, 1 << step) @ _hadamard(1 << step)).T.ravel()
        bits -= step
    return values


@lru_cache(maxsize=32)
def _hadamard(size: int) -> Floats:
    matrix: Floats = hadamard(size, float)
    return matrix


def weights(columns: np.ndarray, k: int) -> Ints:
    """Return the number of ones in every word, int64 [2**k]; word 0 has none.

    Parameters
    ----------
    columns: int64 [m], see the module.
    k: dimension of the code.
    """
    transform = walsh_hadamard(np.bincount(columns, minlength=2**k).astype(float))
    return (len(columns) - transform.astype(np.int64)) // 2


def minimum_distance(columns: np.ndarray, k: int) -> int:
    """Return the least weight of a word other than 0; 0 if the columns do not span F_2^k.

    Parameters
    ----------
    columns: int64 [m], see the module.
    k: dimension of the code.
    """
    return int(weights(columns, k)[1:].min())


def griesmer_bound(m: int, k: int) -> int:
    """Return the largest D with sum_{i < k} ceil(D / 2**i) <= m: no binary linear [m, k] code has a larger distance.

    Source: Griesmer, IBM J. Research and Development 4, 1960, doi:10.1147/rd.45.0532.
    """
    distance = 0
    while sum(-(-(distance + 1) // 2**i) for i in range(k)) <= m:
        distance += 1
    return distance


def _reduced(rows: Iterable[int]) -> list[int]:
    """Return a basis of the row space (bit j = position j); the highest bit of each basis row is 0 in all others."""
    basis: list[int] = []
    for row in rows:
        for other in basis:
            row = min(row, row ^ other)
        if row:
            top = 1 << row.bit_length() - 1
            basis = [other ^ row if other & top else other for other in basis]
            basis.append(row)
    return basis


def _extended_cyclic(polynomials: Iterable[int], n: int) -> list[int]:
    """Return a basis of the cyclic code of length n that polynomials (bit i: x**i) generate, with a parity bit at the
    end.
    """
    shifts = ((p << i | p >> n - i) & (1 << n) - 1 for p in polynomials for i in range(n))
    return _reduced(row | (row.bit_count() & 1) << n for row in shifts)


def bch(r: int, t: int) -> list[int]:
    """Return a basis of the extended primitive BCH code of length 2**r and distance at least 2 t + 2."""
    f, n = field(2**r), 2**r - 1
    polynomial = np.array([1])
    for exponent in {i * 2**j % n for i in range(1, 2 * t, 2) for j in range(r)}:
        scaled = f.product[polynomial, f.power[exponent]]
        polynomial = np.append(scaled, 0) ^ np.insert(polynomial, 0, 0)
    return _extended_cyclic([sum(1 << i for i in np.flatnonzero(polynomial).tolist())], n)


def quadratic_residue(p: int) -> list[int]:
    """Return a basis of the extended quadratic residue code [p + 1, (p + 1) / 2], p prime and +-1 modulo 8.

    p = 23: the Golay code [24, 12, 8].
    """
    squares = {i * i % p for i in range(1, p)}
    return _extended_cyclic([sum(1 << i for i in squares), (1 << p) - 1], p)


def reed_muller(order: int, r: int) -> list[int]:
    """Return a basis of RM(order, r), of length 2**r and distance 2**(r - order)."""
    points = range(2**r)
    monomials = (sum(1 << i for i in chosen) for size in range(order + 1) for chosen in combinations(range(r), size))
    return _reduced(sum(1 << x for x in points if x & monomial == monomial) for monomial in monomials)


@lru_cache(maxsize=1)
def classical() -> dict[str, list[int]]:
    """Return the bases of the codes from which the search starts, by name, of length at most 128."""
    codes = {f"extended quadratic residue code, p = {p}": quadratic_residue(p)
             for p in (7, 17, 23, 31, 41, 47, 71, 73, 79, 89, 97, 103, 113, 127)}  # fmt: skip
    for r in range(3, 8):
        for order in range(1, r - 1):
            codes[f"Reed-Muller code RM({order}, {r})"] = reed_muller(order, r)
        for t in range(1, 2 ** (r - 2)):
            basis = bch(r, t)
            if basis not in codes.values():
                codes[f"extended BCH code, length {2**r}, designed distance {2 * t + 2}"] = basis
    return codes


def shortened(basis: list[int], k: int) -> np.ndarray:
    """Return the columns of a k-dimensional shortened code: the words that are 0 at the highest bits of the other basis
    words.
    """
    bits = [[row >> j & 1 for row in basis[:k]] for j in range(max(basis).bit_length())]
    columns = np.unique(np.array(bits, np.int64) @ (1 << np.arange(k)))
    return columns[columns > 0]


def _start_codes(m: int, k: int) -> Iterator[tuple[np.ndarray, str]]:
    """Yield (columns, name) of codes of dimension k and about m columns, the most promising first."""
    if 2 * m >= 2**k:
        yield np.arange(1, 2**k), "simplex code"
    candidates = []
    for name, basis in classical().items():
        dropped = len(basis) - k
        length = max(basis).bit_length() - dropped
        if dropped < 0 or abs(length - m) > 16:
            continue
        columns = shortened(basis, k)
        distance = minimum_distance(columns, k)
        excess = len(columns) - m
        name += f", shortened (times {dropped})" if dropped else ""
        candidates.append((min(distance, distance - excess), -abs(excess), name, columns))
    candidates.sort(key=lambda entry: entry[:3], reverse=True)
    yield from ((columns, name) for *_, name, columns in candidates[:START_CODES])
    yield 1 << np.arange(k), "unit vectors"


class _Adjustable:
    """A code whose columns are added and removed one by one, always the most or the least important one.

    The importance of a column is the sum of 4**-weight over the words that have a one there, so light words dominate.
    One Walsh-Hadamard transform computes all of these sums.
    """

    def __init__(self, columns: np.ndarray, k: int):
        self.k = k
        self.present = np.zeros(2**k, bool)
        self.present[columns] = True
        self.weights = weights(columns, k)
        self.words = np.arange(2**k)

    @property
    def columns(self) -> np.ndarray:
        return np.flatnonzero(self.present)

    @property
    def rank(self) -> tuple[int, int]:
        """(distance, minus the number of words of that weight): larger is better."""
        distance = self.weights[1:].min()
        return int(distance), -int((self.weights[1:] == distance).sum())

    def importance(self) -> Floats:
        """Return the importance of every possible column, float64 [2**k], relative to the lightest word."""
        light = 4.0 ** np.minimum(self.weights[1:].min() - self.weights, 0.0)
        light[0] = 0
        transform = walsh_hadamard(light)
        weight: Floats = (transform[0] - transform) / 2
        return weight

    def flip(self, column: int) -> None:
        """Add the column, or remove it if present."""
        ones = np.bitwise_count(self.words & column).astype(np.int64) & 1
        self.weights += -ones if self.present[column] else ones
        self.present[column] ^= True

    def add(self, tabu: np.ndarray | None = None) -> int:
        """Add and return the most important column, a ``tabu`` one (bool [2**k]) only if there is no other."""
        gain = self.importance() - (0 if tabu is None else TABU_PENALTY * tabu)
        gain[self.present] = -np.inf
        gain[0] = -np.inf
        column = int(gain.argmax())
        self.flip(column)
        return column

    def remove(self, tabu: np.ndarray | None = None) -> int:
        """Remove and return the least important column, a ``tabu`` one only if there is no other."""
        loss = self.importance() + (0 if tabu is None else TABU_PENALTY * tabu)
        loss[~self.present] = np.inf
        column = int(loss.argmin())
        self.flip(column)
        return column


def _resized(columns: np.ndarray, m: int, k: int) -> _Adjustable:
    """Return the code with columns added or removed until there are m."""
    code = _Adjustable(columns, k)
    for _ in range(m - len(columns)):
        code.add()
    for _ in range(len(columns) - m):
        code.remove()
    return code


def _tabu_search(code: _Adjustable, target: int, rng: np.random.Generator) -> np.ndarray:
    """Return the columns of the best code of a tabu search that exchanges columns, until its distance is the target."""
    size, m = 2**code.k, int(code.present.sum())
    free_from = np.zeros(size, np.int64)  # the step from which a column may be moved again
    best, best_rank = code.columns, code.rank
    for step in range(int(min(SEARCH_STEPS, SEARCH_WORK / size))):
        if best_rank[0] >= target:
            break
        tabu = free_from > step
        removed = code.remove(tabu)
        tabu[removed] = True
        added = code.add(tabu)
        free_from[removed] = step + 2 + rng.integers(1 + m // 2)
        free_from[added] = step + 2 + rng.integers(1 + m // 4)
        if code.rank > best_rank:
            best, best_rank = code.columns, code.rank
    return best


@lru_cache(maxsize=64)
def find_code(m: int, k: int, seed: int = 1) -> Code:
    """Search for a binary linear [m, k] code of large distance with distinct columns.

    Candidates are classical codes shortened to k dimensions and resized greedily, the simplex code with columns
    removed, unit vectors with columns added, and a tabu search from the best of these. The search stops when the
    distance reaches the Griesmer bound.

    Parameters
    ----------
    m: length. k: dimension.
    seed: seed of the tenures of the tabu search.

    Raises
    ------
    ValueError: unless k <= m < 2**k; otherwise no such code exists.
    """
    if not 1 <= k <= m < 2**k:
        raise ValueError(f"no [{m}, {k}] code has distinct columns")
    bound = griesmer_bound(m, k)
    rank, best, name = (-1, 0), np.zeros(0, np.int64), ""
    for columns, start in _start_codes(m, k):
        code = _resized(columns, m, k)
        if code.rank > rank:
            change = m - len(columns)
            edit = f", {abs(change)} columns {'added' if change > 0 else 'removed'}" if change else ""
            rank, best, name = code.rank, code.columns, start + edit
        if rank[0] == bound:
            break
    columns_after_search = _tabu_search(_Adjustable(best, k), bound, np.random.default_rng(seed))
    distance = minimum_distance(columns_after_search, k)
    return Code(columns_after_search, distance, name if distance == rank[0] else f"{name}, columns exchanged")
