# SPDX-License-Identifier: Apache-2.0
"""Capacities and demands that are twelve decades apart: bounds against rational arithmetic, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.problem import FluidError
from flitlab.fluid.verify import saved_of, verify
from flitlab.models.instance import Instance
from flitlab.models.registry import FaultyError, make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, scenario, table
from tests.fluid.rational import exact
from tests.scenarios import asked_as_far_as_known


def wide(seed: int, switches: int, decades: float = 6, rarest: float = 2) -> Instance:
    """A strongly connected random digraph with capacities of 10**-decades to 10**decades, and its minimal routes."""
    rng = np.random.default_rng(seed)
    more = rng.integers(0, switches, (2 * switches, 2))
    pairs = [(v, (v + 1) % switches) for v in range(switches)] + more[more[:, 0] != more[:, 1]].tolist()
    capacity = 10 ** rng.uniform(-decades, decades, len(pairs))
    topology = Topology.from_arcs("wide", switches, pairs, capacity=capacity).with_hosts(1, INF)
    demand = 10 ** rng.uniform(-rarest, 0, (switches, switches)) * (rng.random((switches, switches)) < 0.6)
    np.fill_diagonal(demand, 0)
    demand[0, 1] = 1
    traffic = table(topology, demand / max(demand.sum(0).max(), demand.sum(1).max()))
    return scenario(topology, traffic, make("routing", kind="minimal").build(topology))


def rows(case: Instance, kind: str, method: str, loads=()):
    found = ceilings(case, [asked_as_far_as_known(kind, method=method)], loads, keep_flow=True)
    for row in found:
        claim = saved_of(case, row)
        assert not np.isnan(claim.lower) and verify(case, claim).confirms(claim)
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method, gap", [("exact", 1e-6), ("auto", 0.01), ("approx", 0.01)])
def test_bounds_hold_the_rational_value(seed, method, gap):
    case = wide(seed, 4 + seed % 2)
    theta = float(exact(case.topology, case.traffic.switch_demand))
    load = 10 * theta
    total = float(exact(case.topology, case.traffic.switch_demand, load)) / case.topology.hosts
    for value, kind, loads in ((theta, "mcf", ()), (total, "total", [load])):
        (row,) = rows(case, kind, method, loads)
        assert row.lower <= value * (1 + 1e-9) and value <= row.upper * (1 + 1e-9)
        assert row.upper <= row.lower * (1 + gap) and "gap" not in row.note


@pytest.mark.long
@pytest.mark.parametrize("method, gap", [("exact", 1e-6), ("approx", 0.01)])
@pytest.mark.parametrize("kind", ["mcf", "mcf_paths"])
def test_larger_networks_are_bounded_as_closely(kind, method, gap):
    for seed in range(3):
        (row,) = rows(wide(seed, 20, rarest=6), kind, method)
        assert row.upper <= row.lower * (1 + gap)


def test_totals_far_above_what_fits():
    case = wide(3, 12)
    (theta,) = rows(case, "mcf", "exact")
    for method, gap in (("exact", 1e-6), ("approx", 0.01)):
        for row in rows(case, "total", method, [theta.lower * factor for factor in (3, 1e3, 1e6)]):
            assert row.upper <= row.lower * (1 + gap)


@pytest.mark.parametrize("axes", [(1e-6, 1e6), (1e6, 1e-6)])
def test_a_torus_whose_dimensions_are_far_apart_is_still_symmetric(axes):
    torus = make("topology", kind="torus", dims=[5, 5], host_capacity=INF).build()
    change = torus.grid.coordinates[torus.src] != torus.grid.coordinates[torus.dst]
    topology = replace(torus, capacity=np.where(change[:, 0], *axes))
    case = scenario(topology, make("traffic", kind="uniform").build(topology))
    (row,) = rows(case, "mcf", "exact")
    assert row.method == "column generation (translations)" and row.upper <= row.lower * (1 + 1e-6)
    # of 24 others 20 are 1.5 narrow hops away on average, and there are 2 narrow channels a switch
    assert row.lower == pytest.approx(1e-6 * 24 / 15, rel=1e-5)


KINDS = ["mcf", "mcf_paths", "split", "total", "bounds", "cuts", "mmf", "hm", "jm"]


@pytest.mark.parametrize("factor", [1e-30, 1e-6, 1e6, 1e30])
def test_the_unit_of_capacity_does_not_matter(factor):
    case = wide(1, 6, decades=1)
    topology = replace(case.topology, capacity=case.topology.capacity * factor)
    other = Instance(topology, replace(case.traffic, topology=topology), case.routes)
    specs = [asked_as_far_as_known(kind, method="exact") for kind in KINDS]
    load = 2 * ceilings(case, specs[:1])[0].upper
    for one, two in zip(ceilings(case, specs, [load]), ceilings(other, specs, [load * factor]), strict=True):
        scale = 1 if one.unit == "1" else factor
        assert two.note == one.note or one.ceiling.startswith(("cuts", "bounds"))
        for end in ("lower", "upper"):
            assert getattr(two, end) == pytest.approx(getattr(one, end) * scale, rel=2e-6, nan_ok=True)


def changed(case: Instance, capacity: float) -> Instance:
    """The same with another capacity of the first channel."""
    topology = replace(case.topology, capacity=np.append(capacity, case.topology.capacity[1:]))
    return Instance(topology, replace(case.traffic, topology=topology), case.routes)


@pytest.mark.parametrize("kind", ["mcf", "mcf_paths", "split", "total", "bounds", "cuts", "decomposition"])
def test_what_is_farther_apart_is_refused_with_the_range(kind):
    case = wide(1, 5, decades=0)
    for capacity in (2e12, 0.4e-12):
        with pytest.raises(FluidError, match=r"capacities from \S+ to \S+, more than a factor of 1e\+12 apart"):
            ceilings(changed(case, capacity), [ceiling_spec(kind)], [0.5])
    for capacity in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(FaultyError, match=r"capacity of channel 0 is \S+: it must be positive"):
            changed(case, capacity)
    demand = case.traffic.switch_demand
    demand[0, 1] = demand[demand > 0].max() * 1e-13
    far = scenario(case.topology, table(case.topology, demand), case.routes)
    with pytest.raises(FluidError, match=r"demands from \S+ to \S+, more than a factor of 1e\+12 apart"):
        ceilings(far, [ceiling_spec(kind)], [0.5])


def test_max_min_rates_are_left_out_where_the_lps_could_not_tell_them_apart():
    near, far = (ceilings(wide(2, 6, decades), [ceiling_spec("mmf")]) for decades in (2, 5))
    assert near[0].lower > 0
    assert far[0].method == "omitted" and "more than the factor of 1e+06 that the LPs can tell apart" in far[0].note
