# SPDX-License-Identifier: Apache-2.0
"""Fairness of an allocation."""

import numpy as np


def jain(shares: np.ndarray) -> float:
    """Compute Jain's fairness index: 1 if all shares are equal, 1 / n if one has everything, NaN if all are 0.

    It is computed as 1 / (1 + c^2) from the coefficient of variation c, which rounding cannot take above 1. The squared
    sum over the sum of squares is mathematically equal, but rounds to 1.000000000000002 for many equal shares.

    Parameters
    ----------
    shares: float64 [n], 0 or more.

    Source: Jain, Chiu, Hawe, A quantitative measure of fairness, DEC-TR-301, 1984.
    """
    total = shares.sum()
    if not total > 0:
        return float("nan")
    return float(1.0 / (1.0 + ((shares * (len(shares) / total) - 1.0) ** 2).mean()))
