# SPDX-License-Identifier: Apache-2.0
"""Finite fields GF(q) for every prime power q, as tables."""

from functools import lru_cache
from itertools import product

import numpy as np

from flitlab.models.arrays import Ints


def prime_power(q: int) -> tuple[int, int] | None:
    """Return (p, m) with q = p**m and p prime; None if q is no prime power."""
    p = next((p for p in range(2, int(q**0.5) + 1) if q % p == 0), q)
    m = 0
    while q > 1 and q % p == 0:
        q, m = q // p, m + 1
    return (p, m) if q == 1 and m else None


class GaloisField:
    """The field of q = p**m elements, numbered 0 .. q - 1.

    Element number sum c_i p**i is the polynomial sum c_i x**i over GF(p), taken modulo a primitive polynomial
    of degree m; x itself generates the non-zero elements. So 0 is zero, 1 is one, and for m = 1 the numbers
    are the residues modulo q.

    power: int64 [q - 1], power[i] is the i-th power of the primitive element.
    sum, product: int64 [q, q]. negative: int64 [q], the additive inverses.

    Raises ``ValueError`` if q is no prime power.
    """

    def __init__(self, q: int):
        parts = prime_power(q)
        if parts is None:
            raise ValueError(f"{q} is not a prime power")
        p, m = parts
        self.q = q
        self.power = _primitive_powers(p, m)
        weights = p ** np.arange(m)
        digits = np.arange(q)[:, None] // weights % p
        self.sum = (digits[:, None] + digits) % p @ weights
        self.negative = -digits % p @ weights
        logarithm = np.zeros(q, np.int64)
        logarithm[self.power] = np.arange(q - 1)
        self.product = self.power[(logarithm[:, None] + logarithm) % (q - 1)]
        self.product[0], self.product[:, 0] = 0, 0


def _primitive_powers(p: int, m: int) -> Ints:
    """Return 1, x, x**2, ... modulo the first polynomial for which these are all distinct, int64 [p**m - 1]."""
    top = p ** (m - 1)
    for coefficients in product(range(p), repeat=m):
        # x**m is the polynomial with these coefficients, highest first; with a constant, or x has no inverse
        # and its powers would not come back to 1
        if not coefficients[-1]:
            continue
        powers = [1]
        while len(powers) < p**m - 1:
            lead, rest = divmod(powers[-1], top)
            digits = [rest * p // p**i % p for i in reversed(range(m))]
            value = 0
            for digit, coefficient in zip(digits, coefficients, strict=True):
                value = value * p + (digit + lead * coefficient) % p
            if value == 1:
                break
            powers.append(value)
        else:
            return np.array(powers)
    raise AssertionError("every finite field has a primitive element")


@lru_cache(maxsize=8)
def field(q: int) -> GaloisField:
    """Return the field of q elements, cached. Raises ``ValueError`` if q is no prime power."""
    return GaloisField(q)
