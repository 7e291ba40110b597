# SPDX-License-Identifier: Apache-2.0
"""Random draws that several patterns make."""

import numpy as np

from flitlab.models.arrays import Ints


def generator(seed: int, *more: int) -> np.random.Generator:
    """The random numbers of a pattern's ``seed``; ``more`` tells several draws from one seed apart."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *more]) if more else seed))


def random_cycle(rng: np.random.Generator, count: int) -> Ints:
    """int64 [count]: a permutation that is one cycle through all in random order, so nothing maps to itself.

    Source: Sattolo 1986, doi:10.1016/0020-0190(86)90073-6.
    """
    order = rng.permutation(count)
    target = np.empty_like(order)
    target[order] = np.roll(order, -1)
    return target
