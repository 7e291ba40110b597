# SPDX-License-Identifier: Apache-2.0
"""A mergeable log-linear histogram of non-negative integers, exact below 128, within 1/64 above."""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import kernel

_BITS = 6
BUCKETS = ((32 - _BITS) << _BITS) + (1 << _BITS)
"""Number of buckets; they cover every value below 2**31."""


@kernel
def bucket(value: int) -> int:
    """Return the bucket of a value: the value itself below 128, then 64 buckets per octave."""
    shift = 0
    while value >> shift >= 1 << (_BITS + 1):
        shift += 1
    return (shift << _BITS) + (value >> shift)


def edges() -> Ints:
    """Return int64 [BUCKETS + 1]: bucket b holds the values edges[b] .. edges[b + 1] - 1."""
    index = np.arange(BUCKETS + 1)
    shift = np.maximum(index >> _BITS, 1) - 1
    edge: Ints = (index - (shift << _BITS)) << shift
    return edge


def percentile(histogram: np.ndarray, share: float) -> float:
    """Return the smallest value that a ``share`` of the entries does not exceed, linear inside a bucket; NaN if empty.

    Parameters
    ----------
    histogram: integers [BUCKETS], entries per bucket.
    share: 0 to 1.
    """
    total = histogram.sum()
    if total == 0:
        return float("nan")
    cumulative = np.cumsum(histogram)
    rank = max(int(np.ceil(share * total)), 1)
    b = int(np.searchsorted(cumulative, rank))
    low, high = edges()[b : b + 2]
    inside = (rank - (cumulative[b] - histogram[b])) / histogram[b]
    return float(low + (high - 1 - low) * inside)
