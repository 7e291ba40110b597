# SPDX-License-Identifier: Apache-2.0
"""Amounts of pairs of switches against tables of all pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.pairs import PairCounts

TABLES = st.lists(st.sampled_from([0, 0, 0, 1, 7, 1 << 33]), min_size=16, max_size=16).map(np.array)


@given(TABLES, TABLES)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_sums_and_differences_are_those_of_tables(one, other):
    a, b = PairCounts.of_table(4, one), PairCounts.of_table(4, other.reshape(4, 4))
    assert np.array_equal((a + b).table().ravel(), one + other)
    assert np.array_equal((a + b - b).table().ravel(), one)
    assert (a + b).total == one.sum() + other.sum()
    assert (a.amount > 0).all() and (np.diff(a.place.astype(int)) > 0).all()


def test_amounts_of_one_pair_in_any_order_are_added_up():
    place, amount = np.array([5, 0, 5, 3, 0]), np.array([1, 2, 3, 0, 5])
    counts = PairCounts.of(4, place, amount)
    assert counts.place.tolist() == [0, 5]
    assert counts.amount.tolist() == [7, 4]
    assert (counts.place.dtype, counts.amount.dtype) == (np.uint32, np.uint32)
    assert PairCounts.none(4).total == 0
