# SPDX-License-Identifier: Apache-2.0
"""When a run has become steady."""

import numpy as np

from flitlab.models.arrays import Floats, Ints


def mser5(series: Ints | Floats) -> int:
    """How many leading observations to drop, by the MSER-5 rule (a multiple of 5).

    Batches of five are averaged; of all truncations up to half of them the one is taken that minimises
    the standard error of what remains (beyond, few batches may be alike by chance). White 1997,
    doi:10.1177/003754979706900601.
    """
    batches = series[: len(series) // 5 * 5].reshape(-1, 5).mean(axis=1)
    count = len(batches)
    if count < 2:
        return 0
    # sums over batches d .. count - 1, for every d at once
    total = np.cumsum(batches[::-1])[::-1]
    square = np.cumsum(batches[::-1] ** 2)[::-1]
    left = count - np.arange(count)
    statistic = (square - total**2 / left) / left**2
    return 5 * int(np.argmin(statistic[: count // 2 + 1]))


def is_steady(series: Ints | Floats) -> bool:
    """Whether the truncation point lies before half of the series, the usual condition for trusting it."""
    return mser5(series) < len(series) // 5 // 2 * 5
