# SPDX-License-Identifier: Apache-2.0
"""Means with their confidence intervals."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

MEANING = (
    "± is the half-width of the 95 % confidence interval (Student's t over seeds; batch means for a single seed); "
    "saturation points add the distance to the farther end of the bracket"
)
"""The explanation shown with every interval; :func:`mean_and_half` computes them all."""


def mean_known(values: Iterable[float]) -> float:
    """Return the mean of the values that are finite; NaN if there are none."""
    known = [value for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan


def mean_and_half(
    values: Sequence[float], single_half: float = math.nan, resolution: float = 0.0
) -> tuple[float, float]:
    """Return the mean and the half-width of its 95 % confidence interval (Student's t). NaN propagates.

    single_half: half-width for a single value. resolution: error of each value, whatever their number; it is added.

    >>> mean, half = mean_and_half([1.0, 2.0, 3.0])
    >>> round(mean, 3), round(half, 3)
    (2.0, 2.484)
    """
    if len(values) < 2:
        return values[0], single_half + resolution
    if any(map(math.isnan, values)):
        return math.nan, math.nan
    from scipy.special import stdtrit

    error = stdev(values) / math.sqrt(len(values))
    return fmean(values), float(stdtrit(len(values) - 1, 0.975)) * error + resolution
