"""Confidence intervals from the batches of one run."""

import numpy as np
from scipy import stats

GROUPS = 10
"""Batches behind an interval: few enough to be long, many enough for a narrow t."""


def regroup(batches: np.ndarray, groups: int = GROUPS) -> np.ndarray:
    """Add neighbouring rows of [batches, columns] up into at most ``groups`` rows of equal length.

    Rows that do not fill a last group are left out of it, from the start.
    """
    size = -(-len(batches) // groups)
    count = len(batches) // size
    return batches[len(batches) - count * size :].reshape(count, size, -1).sum(axis=1)


def ratio_half_width(numerator: np.ndarray, denominator: np.ndarray, confidence: float = 0.95) -> float:
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
    return float(stats.t.ppf((1 + confidence) / 2, count - 1) * error)


def exceeds_noise(difference: np.ndarray, least: float, confidence: float = 0.999) -> bool:
    """Whether the mean over batches is above ``least`` and above zero beyond noise (one-sided t)."""
    count = len(difference)
    mean = difference.mean() if count else 0.0
    if count < 2 or mean <= least:
        return False
    error = difference.std(ddof=1) / np.sqrt(count)
    return bool(mean > stats.t.ppf(confidence, count - 1) * error)
