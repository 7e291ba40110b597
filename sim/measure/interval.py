# SPDX-License-Identifier: Apache-2.0
"""Means with their confidence intervals."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

MEANING = (
    "± is half of the 95 % confidence interval: Student's over seeds, of a single seed that over its batches; at a "
    "saturation point half of the distance of the loads around it is added"
)
"""What is said wherever an interval is shown; :func:`mean_and_half` makes them all."""


def mean_and_half(values: Sequence[float], alone: float = math.nan, resolution: float = 0.0) -> tuple[float, float]:
    """Mean and half-width of its 95 % Student interval; ``alone`` is the half-width of one value. NaN spreads.

    resolution: how far each value may be off, whatever their number; it is added.

    >>> mean, half = mean_and_half([1.0, 2.0, 3.0])
    >>> round(mean, 3), round(half, 3)
    (2.0, 2.484)
    """
    if len(values) < 2:
        return values[0], alone + resolution
    if any(map(math.isnan, values)):
        return math.nan, math.nan
    from scipy.special import stdtrit

    error = stdev(values) / math.sqrt(len(values))
    return fmean(values), float(stdtrit(len(values) - 1, 0.975)) * error + resolution
