# SPDX-License-Identifier: Apache-2.0
"""How evenly something is shared."""

import numpy as np


def jain(shares: np.ndarray) -> float:
    """Jain's fairness index: 1 if all are equal, 1 / n if one has all, NaN if nobody has anything.

    It is computed as 1 / (1 + c^2) from the coefficient of variation c, which no rounding takes above 1. The square of
    the sum over the sum of the squares, which is the same, comes out as 1.000000000000002 for many that are equal.

    Source: Jain, Chiu, Hawe, A quantitative measure of fairness, DEC-TR-301, 1984.
    """
    total = shares.sum()
    if not total > 0:
        return float("nan")
    return float(1.0 / (1.0 + ((shares * (len(shares) / total) - 1.0) ** 2).mean()))
