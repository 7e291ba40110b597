# SPDX-License-Identifier: Apache-2.0
"""Ceilings are loads: c times the demand has a c-th of the load, and nothing else changes (``normalise: none``)."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.kinds.spec import kinds
from flitlab.fluid.verify import provable, saved_of, verify
from flitlab.models.registry import make
from flitlab.models.traffic.table import table_traffic
from tests.fluid.fluid_cases import INF, scenario
from tests.models.test_routing import routes_of
from tests.scenarios import build

KINDS = [kind for kind, spec in kinds().items() if not spec.of_program and kind != "collective"]
"""A program has no loads, and a collective brings a demand of its own."""

DEMAND = np.array(
    [[0, 3, 0, 1, 0, 2], [1, 0, 2, 0, 0, 1], [0, 1, 0, 1, 2, 0],
     [2, 0, 1, 0, 1, 0], [0, 0, 2, 1, 0, 1], [1, 2, 0, 0, 1, 0]]
)  # fmt: skip
BUSIEST = DEMAND.sum(axis=1).max()
"""What the first host sends, and none receives more."""

LOADS = [0.05, 0.4]


def topology_of(host_capacity, capacity):
    return replace(build("rrg", n=6, degree=3, seed=1), capacity=np.full(18, float(capacity))).with_hosts(
        1, host_capacity
    )


def rows_of(topology, factor, kind, loads=LOADS):
    traffic = table_traffic("table", topology, factor * DEMAND, hose=False)
    instance = scenario(topology, traffic, routes_of(topology, "minimal"))
    return instance, ceilings(instance, [ceiling_spec(kind)], loads, keep_flow=True)


@pytest.mark.parametrize(("host_capacity", "capacity"), [(1, 1), (2, 1), (INF, 1), (INF, 2), (1, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_multiple_of_the_demand_has_a_part_of_the_load(kind, host_capacity, capacity):
    topology = topology_of(host_capacity, capacity)
    unit = "theta_hose" if host_capacity == INF else "load"
    _, once = rows_of(topology, 1 / BUSIEST, kind)
    assert any(row.unit == unit for row in once) or kind in ("total", "decomposition", "utilisation")
    for factor in (1.0, 3.0 / BUSIEST, 1e-6):
        times = factor * BUSIEST
        instance, rows = rows_of(topology, factor, kind, [load / times for load in LOADS])
        assert [row.ceiling for row in rows] == [row.ceiling for row in once]
        for row, other in zip(rows, once, strict=True):
            scale = 1 / times if row.unit in ("load", "theta_hose") else 1
            assert row.unit == other.unit
            assert (row.lower, row.upper) == pytest.approx(
                (scale * other.lower, scale * other.upper), rel=2e-6, nan_ok=True
            )
            if provable(row.ceiling):
                saved = saved_of(instance, row)
                subjects = [row.flow] if isinstance(row.flow, tuple) else ()
                assert not saved.claims or verify(instance, saved, subjects).confirms(saved)


@pytest.mark.parametrize("factor", [1 / BUSIEST, 1.0, 20.0])
def test_no_ceiling_of_this_demand_is_below_that_of_the_worst(factor):
    """worst_case <= split <= mcf_paths <= mcf <= bounds and cuts, in one unit."""
    topology = topology_of(1, 1)
    ends = [
        rows_of(topology, factor, kind)[1][0].upper for kind in ("worst_case", "split", "mcf_paths", "mcf", "bounds")
    ]
    assert all(low <= high * (1 + 1e-6) for low, high in pairwise(ends)), ends


def test_a_load_at_the_worst_case_is_carried_whatever_is_sent():
    """At that load the busiest host sends as much as every host may under any demand that the split carries."""
    topology = topology_of(INF, 1)
    routes = routes_of(topology, "minimal")
    by_unit = ceilings(
        scenario(topology, make("traffic", kind="uniform").build(topology), routes), [ceiling_spec("worst_case")]
    )[0]
    (row,) = [row for row in rows_of(topology, 2.0, "worst_case")[1] if row.ceiling == "worst_case"]
    assert row.upper * 2 * BUSIEST == pytest.approx(by_unit.upper)


def test_beside_a_background_the_worst_case_is_a_load_too():
    """Host 0 receives 0.25 from a background; at load x every host sends x besides, and hosts may send theta."""
    topology = topology_of(1, 1)
    routes = routes_of(topology, "minimal")
    growing = table_traffic("table", topology, np.roll(np.eye(6), 1, axis=1), hose=False)
    fixed = table_traffic("table", topology, [[0] * 6, [0.25, 0, 0, 0, 0, 0], *[[0] * 6] * 4], hose=False)
    alone = ceilings(scenario(topology, growing, routes), [ceiling_spec("worst_case")])[0]
    instance = scenario(topology, replace(growing, background=fixed), routes)
    row = ceilings(instance, [ceiling_spec("worst_case")], keep_flow=True)[0]
    assert row.upper == pytest.approx(alone.upper - 0.25)
    saved = saved_of(instance, row)
    assert verify(instance, saved).confirms(saved)


@pytest.mark.parametrize("by_injection", [True, False])
def test_a_background_may_fill_a_host_channel_but_not_overload_it_even_where_nothing_grows(by_injection):
    """0 -> 1 grows on a torus beside two flows that leave host 2, or reach it; host channels carry 0.3."""
    topology = build("torus", dims=[6]).with_hosts(1, 0.3)
    growing, fixed = np.zeros((2, 6, 6))
    growing[0, 1] = 1.0
    fixed[[2, 2], [3, 4]] = 0.1, 0.2
    fixed = fixed if by_injection else fixed.T

    def uppers(background):
        traffic = replace(
            table_traffic("table", topology, growing, hose=False),
            background=table_traffic("table", topology, background, hose=False),
        )
        case = scenario(topology, traffic, routes_of(topology, "minimal"))
        kinds = ["mcf", "mcf_paths", "split", "total"]
        rows = ceilings(case, [ceiling_spec(kind) for kind in kinds], [0.1])
        assert all(row.lower == pytest.approx(row.upper) for row in rows)
        return [row.upper for row in rows]

    assert uppers(fixed) == pytest.approx([0.3, 0.3, 0.3, (0.1 + 0.3) / 6])
    assert uppers(fixed * 2) == pytest.approx([0, 0, 0, (0.1 + 0.3) / 6])
