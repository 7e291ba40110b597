# SPDX-License-Identifier: Apache-2.0
"""Detection of the end of the warm-up."""

import numpy as np

from flitlab.models.arrays import Floats, Ints


def mser5(series: Ints | Floats) -> int:
    """Return how many leading observations to drop by the MSER-5 rule (a multiple of 5).

    Batches of five are averaged. Of all truncations up to half of the batches, the rule takes the one that minimises
    the standard error of the rest (beyond, few batches may agree by chance). White 1997,
    doi:10.1177/003754979706900601.

    Parameters
    ----------
    series : int64 or float64 [observations]
        One value per equal interval.
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
    """Whether the truncation point of a series lies in its first half, the usual condition for trusting it."""
    return mser5(series) < len(series) // 5 // 2 * 5
