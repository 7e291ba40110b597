"""Means with their confidence intervals."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.special import stdtrit


def mean_and_half(values: Sequence[float], alone: float = math.nan) -> tuple[float, float]:
    """Mean and half-width of its 95 % Student interval; ``alone`` is the half-width of one value. NaN spreads.

    >>> mean, half = mean_and_half([1.0, 2.0, 3.0])
    >>> round(mean, 3), round(half, 3)
    (2.0, 2.484)
    """
    if len(values) < 2:
        return values[0], alone
    if any(map(math.isnan, values)):
        return math.nan, math.nan
    return fmean(values), float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / math.sqrt(len(values))
