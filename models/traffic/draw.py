# SPDX-License-Identifier: Apache-2.0
"""Random draws that several patterns share."""

from typing import Literal

import numpy as np

from flitlab.models.arrays import Ints

PermutationSet = Literal["cycle", "derangement", "any"]
"""The permutations among which one is drawn uniformly: single cycles, those without fixed points, or all."""


def generator(seed: int, *more: int) -> np.random.Generator:
    """Return the random generator of a pattern's ``seed``; ``more`` selects independent streams of one seed."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *more]) if more else seed))


def random_cycle(rng: np.random.Generator, count: int) -> Ints:
    """Draw a permutation that is a single cycle, int64 [count], so that nothing maps to itself.

    Source: Sattolo 1986, doi:10.1016/0020-0190(86)90073-6.
    """
    order = rng.permutation(count)
    target = np.empty_like(order)
    target[order] = np.roll(order, -1)
    return target


def random_permutation(rng: np.random.Generator, count: int, among: PermutationSet) -> Ints:
    """Draw a permutation uniformly among single cycles, derangements or all: int64 [count].

    A derangement is drawn by rejection: of all permutations about one in e has no fixed point.

    Parameters
    ----------
    rng: the generator.
    count: elements, at least 2.
    among: the permutations.
    """
    if among == "cycle":
        return random_cycle(rng, count)
    while True:
        target: Ints = rng.permutation(count)
        if among == "any" or (target != np.arange(count)).all():
            return target
