# SPDX-License-Identifier: Apache-2.0
"""The largest total accepted at a load: LP against first-order method against a naive LP."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import Certificate, verify_total
from flitlab.fluid.problem import FluidError
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, all_to_all, complete, cycle, naive_lp, scenario, small_scenarios, table


def totals(case, loads, method="exact", gap=0.01):
    return ceilings(case, [ceiling_spec("total", method=method, gap=gap)], loads)


@settings(max_examples=25, deadline=None)
@given(small_scenarios(), st.sampled_from([0.4, 1.0, 2.5]))
def test_against_a_naive_lp(case, load):
    matrix = case.traffic.switch_demand
    hosts = case.topology.hosts
    local = load * np.trace(matrix)
    value = (naive_lp(case.topology, matrix - np.diag(np.diag(matrix)), load) + local) / hosts
    (exact,) = totals(case, [load])
    assert exact.lower == pytest.approx(value, rel=1e-6)
    assert exact.upper == pytest.approx(value, rel=1e-6)
    (approx,) = totals(case, [load], "approx", 0.03)
    assert approx.lower <= value * (1 + 1e-7) and value <= approx.upper * (1 + 1e-7)
    assert approx.upper <= approx.lower * 1.03 * (1 + 1e-9), approx.note


@settings(max_examples=15, deadline=None)
@given(small_scenarios(host_capacity=1.0))
def test_host_channels_are_respected_beyond_their_rate(case):
    load = 2.0
    value = naive_lp(case.topology, case.traffic.switch_demand, load, most=1.0) / case.topology.hosts
    (exact,) = totals(case, [load])
    assert exact.lower == pytest.approx(value, rel=1e-6) and exact.upper == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_each_host_channel_is_a_limit_of_its_own(seed):
    """Against an LP over pairs of hosts: two switches whose hosts offer up to three times their rate."""
    rng = np.random.default_rng(seed)
    network = Topology.from_arcs("pair", 2, [(0, 1), (1, 0)], capacity=[1.5, 0.7]).with_hosts([3, 2], 1.0)
    offer = rng.uniform(0, 1, (5, 5)) * (1 - np.eye(5)) * rng.choice([0.2, 3], (5, 1))
    source, target = np.nonzero(offer)
    switch = np.array([0, 0, 0, 1, 1])
    limits = [source == h for h in range(5)] + [target == h for h in range(5)]
    limits += [(switch[source] == a) & (switch[target] == 1 - a) for a in (0, 1)]
    best = linprog(-np.ones(len(source)), np.array(limits, float), [1.0] * 10 + [1.5, 0.7], bounds=[
        (0, float(most)) for most in offer[source, target]
    ])  # fmt: skip
    (row,) = totals(scenario(network, table(network, offer)), [1.0])
    assert (5 * row.lower, 5 * row.upper) == pytest.approx((-best.fun, -best.fun), rel=1e-6)


def test_below_theta_the_total_is_the_offer():
    topology = cycle(9)
    below, above = totals(scenario(topology, all_to_all(topology)), [0.5, 1.5])
    assert (below.lower, below.upper, below.load) == (0.5, 0.5, 0.5)
    assert below.unit == "flits/tick/host"
    assert above.upper < 1.5 and above.lower == pytest.approx(above.upper, rel=1e-6)


def test_above_theta_more_is_carried_than_theta_but_less_than_the_offer():
    topology = make("topology", kind="imase", n=32, degree=3, hosts_per_switch=2).build()
    case = scenario(topology, make("traffic", kind="uniform").build(topology))
    theta = ceilings(case, [ceiling_spec("mcf", gap=0.001)])[0]
    rows = totals(case, [theta.upper * 1.1, theta.upper * 1.6], "approx", 0.005)
    assert theta.lower < rows[0].lower <= rows[1].upper
    assert rows[0].upper < theta.upper * 1.1
    for row in rows:
        assert row.upper <= row.lower * 1.005 * (1 + 1e-9)
        again = verify_total(topology, case.traffic, row.load, row.certificate)
        assert again / 64 == pytest.approx(row.upper)


def test_a_permutation_beyond_the_host_rate_is_cut_to_it():
    topology = complete(6).with_hosts(1, 1.0)
    ring = table(topology, np.roll(np.eye(6), 1, axis=1))
    for method in ("exact", "approx"):
        (row,) = totals(scenario(topology, ring), [1.5], method)
        assert row.lower == pytest.approx(1, rel=0.01) and row.upper == pytest.approx(1, rel=0.01)


def test_any_lengths_bound_the_total():
    topology = cycle(6)
    traffic = all_to_all(topology)
    (row,) = totals(scenario(topology, traffic), [2.5])
    random = np.random.default_rng(3)
    for _ in range(20):
        z = Certificate.on_network(topology, random.uniform(0, 1, topology.channels))
        assert verify_total(topology, traffic, 2.5, z) / 6 >= row.lower * (1 - 1e-9)


def test_without_network_demand_everything_local_is_accepted():
    topology = cycle(3).with_hosts(1, INF)
    (row,) = totals(scenario(topology, table(topology, np.eye(3))), [4.0])
    assert (row.lower, row.upper) == (4.0, 4.0)


def test_where_the_lp_fails_the_first_order_method_takes_over(monkeypatch):
    def failing(problem):
        raise FluidError("HiGHS ended with Unknown")

    topology = cycle(9)
    case = scenario(topology, all_to_all(topology))
    (best,) = totals(case, [1.5])
    monkeypatch.setattr("flitlab.fluid.mcf.arcs.total_flow", failing)
    (row,) = totals(case, [1.5], "auto")
    assert row.method == "multipliers" and row.note == "arc LP gave up: HiGHS ended with Unknown"
    assert row.lower <= best.upper * (1 + 1e-9) and best.lower <= row.upper * (1 + 1e-9)


@pytest.mark.parametrize("factor", [30, 1e3, 1e6])
def test_offers_far_above_what_fits_are_bounded_as_closely(factor):
    """Flows that fill channels a million times over are no place to start from."""
    topology = make("topology", kind="imase", n=12, degree=2, host_capacity=INF).build()
    case = scenario(topology, all_to_all(topology))
    best, rough = (totals(case, [factor], method)[0] for method in ("exact", "approx"))
    assert rough.lower <= best.upper * (1 + 1e-9) and best.lower <= rough.upper * (1 + 1e-9)
    assert rough.upper <= rough.lower * 1.01 * (1 + 1e-9)
