# SPDX-License-Identifier: Apache-2.0
"""The transportation problem: shipments of the largest total value."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bools, Floats, Int, Ints
from flitlab.models.jit import kernel, njit

START, UNREACHED = -1, -2


class _State(NamedTuple):
    """Costs, shipments, prices, and labels of the search for the cheapest augmenting path; the last target is a dummy.

    cost: float64, shipped: int64 [sources, targets + 1]. free_capacity: int64 [targets + 1]. of_source, of_target:
    float64, prices with cost - of_source - of_target >= 0. far: float64 [targets + 1], distances; by: int64, the source
    before. source_far: float64 [sources], distances; via: int64, the target before. settled: bool [targets + 1].
    """

    cost: Floats
    shipped: Ints
    free_capacity: Ints
    of_source: Floats
    of_target: Floats
    far: Floats
    by: Ints
    source_far: Floats
    via: Ints
    settled: Bools


@njit
def max_value_shipment(value: Floats, supply: Ints, capacity: Ints) -> tuple[Ints, Floats]:
    """The shipment of largest value, and prices of the sources that prove it.

    Every unit follows the cheapest augmenting path; prices keep all reduced costs >= 0. With supplies and capacities of
    1 it is the assignment problem.

    Parameters
    ----------
    value : float64 [sources, targets]
        Value >= 0 of a unit from s to t.
    supply : int64 [sources]
        Units that leave a source at most; at least 1.
    capacity : int64 [targets]
        Units that enter a target at most; at least 1.

    Returns
    -------
    int64 [sources, targets]
        Shipment.
    float64 [sources]
        Prices u >= 0. With v(t) = max(0, max over s of value(s, t) - u(s)) no shipment is worth more than the sum of
        supply * u and of capacity * v, and this shipment is worth as much.

    Sources: Kuhn, Nav. Res. Logist. Q. 2 (1955), doi:10.1002/nav.3800020109; Edmonds and Karp, J. ACM 19 (1972),
    doi:10.1145/321694.321699.
    """
    sources, targets = value.shape
    state = _State(
        np.zeros((sources, targets + 1)), np.zeros((sources, targets + 1), np.int64), np.append(capacity, supply.sum()),
        np.zeros(sources), np.zeros(targets + 1), np.empty(targets + 1), np.empty(targets + 1, np.int64),
        np.empty(sources), np.empty(sources, np.int64), np.empty(targets + 1, np.bool_),
    )  # fmt: skip
    state.cost[:, :targets] = -value
    for s in range(sources):
        remaining = supply[s]
        while remaining > 0:
            remaining -= _augment(state, _search(state, s), remaining)
    return state.shipped[:, :targets].copy(), np.maximum(-state.of_source, 0.0)


@kernel
def _search(state: _State, s: Int) -> int:
    """The target with free capacity that is cheapest to reach from source s; updates the prices along the path."""
    state.far[:] = np.inf
    state.settled[:] = False
    state.via[:] = UNREACHED
    state.via[s], state.source_far[s] = START, 0.0
    _leave(state, s)
    while True:
        end = -1
        for t in range(len(state.far)):
            if not state.settled[t] and (end < 0 or _is_before(state, t, end)):
                end = t
        state.settled[end] = True
        if state.free_capacity[end] > 0:
            break
        for r in range(len(state.via)):
            if state.via[r] == UNREACHED and state.shipped[r, end] > 0:
                state.via[r], state.source_far[r] = end, state.far[end]
                _leave(state, r)
    for r in range(len(state.via)):
        if state.via[r] != UNREACHED:
            state.of_source[r] += state.far[end] - state.source_far[r]
    for t in range(len(state.far)):
        if state.settled[t]:
            state.of_target[t] -= state.far[end] - state.far[t]
    return end


@kernel
def _is_before(state: _State, t: Int, other: Int) -> bool:
    """Whether target t is nearer than another one, or equally near and with free capacity where the other has none."""
    far, other_far = state.far[t], state.far[other]
    return bool(
        far < other_far or (far == other_far and state.free_capacity[t] > 0 and state.free_capacity[other] == 0)
    )


@kernel
def _leave(state: _State, r: Int) -> None:
    """Relax the arcs from source r to all targets."""
    for t in range(len(state.far)):
        if not state.settled[t]:
            far = state.source_far[r] + (state.cost[r, t] - state.of_source[r] - state.of_target[t])
            if far < state.far[t]:
                state.far[t], state.by[t] = far, r


@kernel
def _augment(state: _State, end: Int, most: Int) -> int:
    """Ship up to ``most`` units along the path to ``end``; returns the number of units."""
    amount, t = np.int64(min(most, state.free_capacity[end])), end
    while state.via[state.by[t]] != START:
        r = state.by[t]
        t = state.via[r]
        amount = min(amount, state.shipped[r, t])
    t = end
    while True:
        r = state.by[t]
        state.shipped[r, t] += amount
        if state.via[r] == START:
            break
        t = state.via[r]
        state.shipped[r, t] -= amount
    state.free_capacity[end] -= amount
    return int(amount)
