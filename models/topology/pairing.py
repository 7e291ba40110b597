# SPDX-License-Identifier: Apache-2.0
"""Pairing of opposite channels to links."""

from collections import defaultdict, deque
from collections.abc import Hashable

import numpy as np

from flitlab.models.arrays import Floats, Ints

NEARLY_ALL = 0.9
"""Share of the uni-directional channels above which opposite pairs are probably links."""


def opposite_pairs(src: Ints, dst: Ints, capacity: Floats, delay: Ints, reverse: Ints) -> tuple[Ints, Ints]:
    """Pair opposite channels among those without a reverse.

    Of k channels from u to v and m from v to u, min(k, m) pairs are made: first of channels with equal capacity and
    delay, then of the others, in the order of the channels. Every channel is in at most one pair.

    Parameters
    ----------
    src, dst, delay, reverse: int64 [channels].
    capacity: float64 [channels].

    Returns
    -------
    The two channels of each pair, int64 [pairs] twice.
    """
    ends = list(zip(src.tolist(), dst.tolist(), strict=True))
    values = list(zip(capacity.tolist(), delay.tolist(), strict=True))
    unpaired, pairs = np.flatnonzero(reverse < 0).tolist(), []
    for require_equal in (True, False):
        unmatched: dict[Hashable, deque[int]] = defaultdict(deque)  # by ends: channels whose opposite has not come yet
        for c in unpaired:
            value = values[c] if require_equal else None
            if opposite := unmatched[ends[c][::-1], value]:
                pairs.append((opposite.popleft(), c))
            else:
                unmatched[ends[c], value].append(c)
        unpaired = sorted(c for channels in unmatched.values() for c in channels)
    pair_array = np.array(pairs, np.int64).reshape(-1, 2)
    return pair_array[:, 0], pair_array[:, 1]


def pairs_warning(paired: int, single: int, advice: str) -> str:
    """Return a warning that opposite channels are probably links; '' where they are not.

    Parameters
    ----------
    paired: uni-directional channels that have an opposite one.
    single: all uni-directional channels.
    advice: what makes links of them.
    """
    if not paired or paired < NEARLY_ALL * single:
        return ""
    return (
        f"{paired} of {single} uni-directional channels are opposite pairs, so that a failed link fails in one "
        f"direction only; {advice} makes links of them"
    )


def unpaired_warning(single: int) -> str:
    """Return a warning that some channels have no opposite one; '' if all have."""
    return f"{single} channels have no opposite channel and stay uni-directional" if single else ""
