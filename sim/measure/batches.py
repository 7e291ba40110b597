# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals from the batches of one run."""

import numpy as np
from scipy.special import stdtrit

from flitlab.models.arrays import Floats, Ints

FEWEST, MOST = 10, 40
"""Groups of batches behind an interval: few are long, hence independent; many make t narrow and the spread known."""


def regroup(batches: Ints, groups: int = FEWEST) -> Ints:
    """Add neighbouring rows of [batches, columns] up into at most ``groups`` rows of equal length.

    Rows that do not fill a last group are left out of it, from the start.
    """
    size = -(-len(batches) // groups)
    count = len(batches) // size
    groups_of: Ints = batches[len(batches) - count * size :].reshape(count, size, -1).sum(axis=1)
    return groups_of


def ratio_half_width(numerator: Floats, denominator: Floats, confidence: float = 0.95) -> float:
    """Half-width of the interval of sum(numerator) / sum(denominator) over batches; NaN if there is none.

    The ratio estimator (Law, Simulation Modeling and Analysis, section 9.5.3): batches need not
    hold equally many packets, nor any.
    """
    count = len(numerator)
    if count < 2 or denominator.sum() == 0:
        return float("nan")
    mean = numerator.sum() / denominator.sum()
    spread = numerator - mean * denominator
    error = np.sqrt((spread**2).sum() / (count * (count - 1))) / denominator.mean()
    return float(stdtrit(count - 1, (1 + confidence) / 2) * error)


def mean_half_width(batches: Ints) -> float:
    """Half-width of the 95 % interval of the ratio of two columns, from neighbouring batches [batches, 2].

    Batches are added up by twos until the correlation of neighbours is within its standard error or few are left; what
    remains of it widens the interval as in a first-order autoregression (Tafazzoli, Wilson 2011,
    doi:10.1080/0740817X.2010.504688). The error of a mean delay grows like its square (Whitt 1989,
    doi:10.1287/mnsc.35.11.1341), so that an interval of equal sides misses the large truth behind a small mean; it is
    that of 1 / mean that has equal sides, and the longer one of the mean's is returned.
    ``benchmarks/interval_coverage.py`` measures how often the truth is covered.
    """
    groups = MOST
    while True:
        numerator, denominator = regroup(batches, groups).astype(float).T
        if len(numerator) < 2 or denominator.sum() == 0:
            return float("nan")
        mean = numerator.sum() / denominator.sum()
        correlation = neighbours(numerator - mean * denominator)
        if groups <= FEWEST or correlation <= 1 / np.sqrt(len(numerator)):
            break
        groups //= 2
    correlation = max(correlation, 0.0)
    half = ratio_half_width(numerator, denominator) * np.sqrt((1 + correlation) / (1 - correlation))
    return float(half / (1 - min(half / mean, 0.5)) if mean > 0 else half)


def neighbours(series: Floats) -> float:
    """Correlation of neighbours in a series of mean 0, float64 [batches]; 0 if it does not vary."""
    square = (series**2).sum()
    return float((series[1:] * series[:-1]).sum() / square) if square > 0 else 0.0


def exceeds_noise(difference: Floats, least: float, confidence: float = 0.999) -> bool:
    """Whether the mean over batches is above ``least`` and above zero beyond noise (one-sided t)."""
    count = len(difference)
    mean = difference.mean() if count else 0.0
    if count < 2 or mean <= least:
        return False
    error = difference.std(ddof=1) / np.sqrt(count)
    return bool(mean > stdtrit(count - 1, confidence) * error)
