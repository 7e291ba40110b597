# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of one run by batch means."""

import numpy as np
from scipy.special import stdtrit

from flitlab.models.arrays import Floats, Ints

MIN_GROUPS, MAX_GROUPS = 10, 40
"""Groups of batches behind an interval: few are long, hence independent; many make t narrow and the spread known."""


def regroup(batches: Ints, groups: int = MIN_GROUPS) -> Ints:
    """Sum neighbouring rows of [batches, columns] into at most ``groups`` rows of equal length.

    Leading rows that do not fill a group are dropped.
    """
    size = -(-len(batches) // groups)
    count = len(batches) // size
    groups_of: Ints = batches[len(batches) - count * size :].reshape(count, size, -1).sum(axis=1)
    return groups_of


def ratio_half_width(numerator: Floats, denominator: Floats) -> float:
    """Return the half-width of the 95 % interval of sum(numerator) / sum(denominator) over batches; NaN if undefined.

    The ratio estimator (Law, Simulation Modeling and Analysis, section 9.5.3): batches may hold different numbers of
    packets, or none.

    Parameters
    ----------
    numerator, denominator : float64 [batches]
        Sums of the batches.
    """
    count = len(numerator)
    if count < 2 or denominator.sum() == 0:
        return float("nan")
    mean = numerator.sum() / denominator.sum()
    spread = numerator - mean * denominator
    error = np.sqrt((spread**2).sum() / (count * (count - 1))) / denominator.mean()
    return float(stdtrit(count - 1, 0.975) * error)


def mean_half_width(batches: Ints) -> float:
    """Return the half-width of the 95 % interval of the ratio of two columns of neighbouring batches, int64 [batches,
    2]; NaN where fewer than MIN_GROUPS groups, of MAX_GROUPS at most, have packets.

    Batches are merged in pairs until the correlation of neighbours is within its standard error or few are left; the
    remaining correlation widens the interval as in a first-order autoregression (Tafazzoli, Wilson 2011,
    doi:10.1080/0740817X.2010.504688). The error of a mean delay grows like its square (Whitt 1989,
    doi:10.1287/mnsc.35.11.1341), so a symmetric interval misses a large true value behind a small mean. The interval of
    1 / mean is symmetric instead, and the longer side of the mean's interval is returned.
    ``benchmarks/interval_coverage.py`` measures the coverage.
    """
    groups = MAX_GROUPS
    if np.count_nonzero(regroup(batches, groups)[:, 1]) < MIN_GROUPS:
        return float("nan")
    while True:
        numerator, denominator = regroup(batches, groups).astype(float).T
        mean = numerator.sum() / denominator.sum()
        correlation = neighbours(numerator - mean * denominator)
        if groups <= MIN_GROUPS or correlation <= 1 / np.sqrt(len(numerator)):
            break
        groups //= 2
    correlation = max(correlation, 0.0)
    half = ratio_half_width(numerator, denominator) * np.sqrt((1 + correlation) / (1 - correlation))
    return float(half / (1 - min(half / mean, 0.5)) if mean > 0 else half)


def neighbours(series: Floats) -> float:
    """Return the lag-1 correlation of a series of mean 0, float64 [batches]; 0 for a constant series."""
    square = (series**2).sum()
    return float((series[1:] * series[:-1]).sum() / square) if square > 0 else 0.0


def exceeds_noise(difference: Floats, least: float) -> bool:
    """Whether the mean over batches is above ``least`` and significantly above zero (one-sided t, level 0.999).

    difference: float64 [batches]. least: in its unit.
    """
    count = len(difference)
    mean = difference.mean() if count else 0.0
    if count < 2 or mean <= least:
        return False
    error = difference.std(ddof=1) / np.sqrt(count)
    return bool(mean > stdtrit(count - 1, 0.999) * error)
