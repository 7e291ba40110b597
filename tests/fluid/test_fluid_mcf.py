# SPDX-License-Identifier: Apache-2.0
"""Maximum concurrent flow: closed forms, a naive LP, theorems, and what certificates promise."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import flitlab.fluid.problem
from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import Certificate, verify_upper
from flitlab.fluid.delivered import verify_flow, verify_paths
from flitlab.fluid.mcf import arcs, choose
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.mcf.dense import garg_koenemann
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.mcf.sparse import effort, multipliers
from flitlab.fluid.problem import FluidError, Problem
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import (
    INF,
    all_to_all,
    complete,
    cycle,
    directed_circulant,
    hypercube,
    minimal,
    naive_lp,
    scenario,
    small_scenarios,
    table,
    torus,
)
from tests.scenarios import asked_as_far_as_known


def theta(case, kind="mcf", method="exact", gap=0.01):
    (row,) = ceilings(case, [asked_as_far_as_known(kind, method=method, gap=gap)])
    return row


def shifted(topology, by):
    """One demand of 1 from every switch to the one ``by`` further on."""
    return table(topology, np.roll(np.eye(topology.switches), by, axis=1))


def antipodal(topology):
    """The longest matching of a hypercube."""
    return table(topology, np.eye(topology.switches)[::-1])


CLOSED_FORMS = {
    "hypercube3": (hypercube(3), all_to_all, 2.0),
    "hypercube5": (hypercube(5), all_to_all, 2.0),
    "hypercube4 longest matching": (hypercube(4), antipodal, 1.0),
    "cycle9": (cycle(9), all_to_all, 0.9),
    "cycle10": (cycle(10), all_to_all, 0.8),
    "K12": (complete(12), all_to_all, 12.0),
    "K12 cyclic permutation": (complete(12), lambda t: shifted(t, 1), 6.0),
    "torus 6x6": (torus(6), all_to_all, 4 / 3),
    "torus 5x5": (torus(5), all_to_all, 8 * 5 / (5 * 5 - 1)),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_exact_reaches_the_closed_form(name):
    topology, pattern, value = CLOSED_FORMS[name]
    row = theta(scenario(topology, pattern(topology)))
    assert row.lower == pytest.approx(value, rel=1e-6)
    assert row.upper == pytest.approx(value, rel=1e-6)
    assert row.unit == "theta_hose" and row.note == ""
    assert "arc LP" in row.method or "column generation" in row.method


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_approximation_brackets_the_closed_form_within_the_gap(name):
    topology, pattern, value = CLOSED_FORMS[name]
    row = theta(scenario(topology, pattern(topology)), method="approx", gap=0.01)
    assert row.lower <= value * (1 + 1e-9) and value <= row.upper * (1 + 1e-9)
    assert row.upper <= 1.01 * row.lower * (1 + 1e-9)
    assert row.method in ("multipliers", "scaled shortest paths")


def test_a_commodity_gets_as_many_paths_as_fill_the_network():
    """The optimum has 1 on the channel to the next switch, and half of it on each of the 78 ways over another one."""
    topology = complete(80)
    row = theta(scenario(topology, shifted(topology, 1)), method="approx", gap=0.05)
    assert row.lower <= 40 * (1 + 1e-9) and row.upper * (1 + 1e-9) >= 40
    assert row.upper <= 1.05 * row.lower * (1 + 1e-9)


@pytest.mark.parametrize("k, value", [(16, 0.5)])
def test_large_torus(k, value):
    row = theta(scenario(torus(k), all_to_all(torus(k))), method="auto")
    assert row.lower <= value * (1 + 1e-9) <= row.upper * (1 + 2e-9)
    assert row.upper <= 1.01 * row.lower


def test_excluding_self_multiplies_by_what_crosses_the_network():
    topology = cycle(9)
    with_self = theta(scenario(topology, all_to_all(topology))).lower
    without = theta(scenario(topology, make("traffic", kind="uniform").build(topology))).lower
    assert without == pytest.approx(with_self * 8 / 9, rel=1e-6)


@pytest.mark.parametrize("degree, diameter", [(2, 3), (3, 2)])
def test_kautz_approximation_agrees_with_the_exact_value(degree, diameter):
    topology = make("topology", kind="kautz", degree=degree, diameter=diameter, host_capacity=INF).build()
    for kind in ("mcf", "mcf_paths"):
        case = scenario(topology, all_to_all(topology), minimal(topology))
        exact, approx = theta(case, kind), theta(case, kind, "approx", 0.005)
        assert exact.upper <= exact.lower * (1 + 1e-6)
        assert approx.lower <= exact.upper * (1 + 1e-9) and exact.lower <= approx.upper * (1 + 1e-9)
        assert approx.upper <= approx.lower * 1.005 * (1 + 1e-9)


def test_garg_koenemann_closes_on_the_same_value():
    topology = torus(6)
    problem = Problem.of(topology, all_to_all(topology))
    lengths, load, flow = garg_koenemann(problem, 0.02, INF, True)
    np.testing.assert_allclose(flow.sum(axis=0), load)
    lower = (verify_flow(problem, flow) / problem.demand.amount).min()
    upper = verify_upper(topology, all_to_all(topology), Certificate.on_network(topology, lengths))
    assert lower <= 4 / 3 * (1 + 1e-9) and upper * (1 + 1e-9) >= 4 / 3
    assert upper <= 1.02 * lower


@settings(max_examples=25, deadline=None)
@given(small_scenarios())
def test_exact_and_approximate_against_a_naive_lp(case):
    matrix = case.traffic.switch_demand
    if np.trace(matrix) == matrix.sum():
        return
    value = naive_lp(case.topology, matrix - np.diag(np.diag(matrix)))
    exact = theta(case)
    assert exact.lower == pytest.approx(value, rel=1e-6)
    assert exact.upper == pytest.approx(value, rel=1e-6)
    approx = theta(case, method="approx", gap=0.02)
    assert approx.lower <= value * (1 + 1e-7) and value <= approx.upper * (1 + 1e-7)
    assert approx.upper <= approx.lower * 1.02 * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(small_scenarios())
def test_restricted_to_routes_against_a_naive_lp(case):
    topology, matrix, routes = case.topology, case.traffic.switch_demand, minimal(case.topology)

    def allowed(t, channel):
        v = int(topology.src[channel])
        return int(routes.ports[t, v]) >> (channel - int(topology.out_start[v])) & 1

    value = naive_lp(topology, matrix - np.diag(np.diag(matrix)), allowed=allowed)
    case = scenario(topology, case.traffic, routes)
    exact, approx = theta(case, "mcf_paths"), theta(case, "mcf_paths", "approx", 0.02)
    assert exact.lower == pytest.approx(value, rel=1e-6)
    assert exact.upper == pytest.approx(value, rel=1e-6)
    assert approx.lower <= value * (1 + 1e-7) and value <= approx.upper * (1 + 1e-7)
    assert approx.upper <= approx.lower * 1.02 * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(small_scenarios(host_capacity=1.0))
def test_ceilings_are_ordered(case):
    case = scenario(case.topology, case.traffic, minimal(case.topology))
    specs = [ceiling_spec(kind, method="exact") for kind in ("mcf", "mcf_paths")]
    rows = {row.ceiling: row for row in ceilings(case, [*specs, *map(spec, ("split", "bounds"))])}
    order = [rows[kind] for kind in ("split", "mcf_paths", "mcf", "bounds")]
    for less, more in pairwise(order):
        assert less.lower <= more.upper * (1 + 1e-9)
    assert rows["mcf"].unit == "load"


def spec(kind):
    return ceiling_spec(kind)


@settings(max_examples=20, deadline=None)
@given(small_scenarios())
def test_adding_a_channel_never_lowers_theta(case):
    topology = case.topology
    more = np.column_stack([topology.src, topology.dst]).tolist()
    capacity = [*topology.capacity, 1.0]
    wider = Topology.from_arcs("wider", topology.switches, [*more, [0, 2]], capacity=capacity).with_hosts(1, INF)
    after = theta(scenario(wider, table(wider, dense(case.traffic))))
    assert theta(case).lower <= after.upper * (1 + 1e-9)


def dense(traffic):
    source, target, amount = traffic.pairs()
    matrix = np.zeros((traffic.topology.hosts,) * 2)
    matrix[source, target] = amount
    return matrix


def test_host_channels_bind_where_the_network_is_wide():
    topology = complete(5).with_hosts(1, 1.0)
    row = theta(scenario(topology, all_to_all(topology)), method="approx")
    assert (row.lower, row.upper) == (1.0, 1.0)
    assert "host channels" in row.note
    assert verify_upper(topology, all_to_all(topology), row.certificate) == 1.0
    assert row.certificate.network.sum() == 0


def test_demand_within_switches_needs_no_network():
    topology = cycle(4).with_hosts(2, 1.0)
    local = table(topology, np.kron(np.eye(4), [[0, 1], [1, 0]]))
    row = theta(scenario(topology, local))
    assert (row.lower, row.upper) == (1.0, 1.0)
    hose = topology.with_hosts(2, INF)
    assert theta(scenario(hose, table(hose, dense(local)))).upper == INF


def test_parallel_channels_add_up():
    topology = Topology.from_arcs("pair", 2, [(0, 1), (0, 1), (1, 0)]).with_hosts(1, INF)
    assert theta(scenario(topology, table(topology, [[0, 1], [0, 0]]))).lower == pytest.approx(2)


@pytest.mark.long
def test_each_size_and_gap_names_its_method():
    topology = make("topology", kind="imase", n=48, degree=3, host_capacity=INF).build()
    problem = Problem.of(topology, all_to_all(topology))
    assert arcs.columns(problem) > arcs.SIMPLEX_COLUMNS
    exact = solve(problem, 0.01, "exact")
    assert exact.method == solve(problem, 1e-6, "auto").method == "column generation"
    assert exact.upper <= exact.lower * (1 + 1e-6)
    assert solve(problem, 0.01, "auto").method == "multipliers"


def test_an_exact_solution_that_would_not_fit_is_refused_with_its_size_and_approximated_by_auto(monkeypatch):
    topology = make("topology", kind="imase", n=48, degree=3, host_capacity=INF).build()
    case = scenario(topology, shifted(topology, 6))
    for limit in ("MAX_MEMORY", "MAX_FINISH_MEMORY"):
        monkeypatch.setattr(choose, limit, 1 << 18)
    monkeypatch.setattr(flitlab.fluid.problem, "MAX_MEMORY", 1 << 18)
    monkeypatch.setattr(arcs, "SIMPLEX_COLUMNS", 0)
    with pytest.raises(FluidError, match=r"exact solution needs about \S+ GiB of memory, more than .* method: approx"):
        theta(case)
    row = theta(case, method="auto", gap=1e-6)
    assert row.method == "multipliers" and row.upper <= row.lower * (1 + 1e-3)


def failing(*args, **kwargs):
    raise FluidError("HiGHS ended with Unknown")


@pytest.mark.parametrize(
    "method, fail, takes_over",
    [
        ("exact", ["arcs.concurrent_flow"], "column generation"),
        ("exact", ["arcs.concurrent_flow", "columns.generate"], "multipliers"),
        ("auto", ["arcs.concurrent_flow"], "multipliers"),
        ("auto", ["arcs.concurrent_flow", "multipliers"], "Garg-Koenemann"),
        ("approx", ["multipliers"], "Garg-Koenemann"),
    ],
)
def test_where_a_method_fails_another_takes_over_and_the_note_says_why(method, fail, takes_over, monkeypatch):
    topology = make("topology", kind="imase", n=20, degree=3, host_capacity=INF).build()
    case = scenario(topology, shifted(topology, 6))
    value = theta(case)
    for name in fail:
        monkeypatch.setattr(f"flitlab.fluid.mcf.choose.{name}", failing)
    row = theta(case, method=method)
    assert row.method == takes_over
    assert row.note.count("gave up: HiGHS ended with Unknown") >= len(fail)
    assert row.lower <= value.upper * (1 + 1e-9) and value.lower <= row.upper * (1 + 1e-9)
    for name in ("arcs.concurrent_flow", "multipliers", "columns.generate", "garg_koenemann"):
        monkeypatch.setattr(f"flitlab.fluid.mcf.choose.{name}", failing)
    with pytest.raises(FluidError, match=r"multipliers gave up: .*; Garg-Koenemann gave up: HiGHS ended"):
        theta(case, method=method)


def spoil(monkeypatch, change) -> None:
    """The arc LP gives other lengths."""
    right = arcs.concurrent_flow

    def wrong(problem):
        found = right(problem)
        return replace(found, prices=change(found.prices))

    monkeypatch.setattr(arcs, "concurrent_flow", wrong)


@pytest.mark.parametrize("wrong", [np.nan, 0.0, np.inf])
def test_bounds_that_are_none_are_not_taken(wrong, monkeypatch):
    topology = directed_circulant(6)
    spoil(monkeypatch, lambda lengths: np.full_like(lengths, wrong))
    demand = np.triu(np.ones((6, 6)), 1) / 5
    row = theta(scenario(topology, table(topology, demand)), method="auto")
    assert row.upper <= row.lower * 1.01 and row.note.startswith("arc LP gave up: arc LP (simplex) ended with bounds")


def test_a_gap_that_an_exact_method_leaves_is_closed_by_another(monkeypatch):
    topology = directed_circulant(6)
    spoil(monkeypatch, lambda lengths: lengths + lengths.max() * np.arange(len(lengths)))
    demand = np.triu(np.ones((6, 6)), 1) / 5
    row = theta(scenario(topology, table(topology, demand)))
    assert row.upper <= row.lower * (1 + 1e-6)
    assert row.note.startswith("arc LP (simplex) left a gap of ")
    assert row.method == "arc LP (simplex); upper bound: column generation"


def test_a_list_of_pairs_that_would_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(flitlab.fluid.problem, "MAX_MEMORY", 1 << 20)
    topology = make("topology", kind="imase", n=400, degree=3).build()
    with pytest.raises(FluidError, match="the list of switch pairs with demand needs about"):
        Problem.of(topology, all_to_all(topology))


def test_same_input_same_bytes():
    topology = directed_circulant(20, (1, 3, 8))
    problem = Problem.of(topology, shifted(topology, 7))
    first, second = (multipliers(problem, 1e-3, INF, effort(problem)) for _ in range(2))
    assert first[0].tobytes() == second[0].tobytes()
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first[1], second[1], strict=True))


def test_errors_say_what_is_wrong():
    topology = cycle(4)
    with pytest.raises(FluidError, match="zero"):
        theta(scenario(topology, table(topology, np.zeros((4, 4)))))
    parts = Topology.from_links("parts", 4, [(0, 1), (2, 3)]).with_hosts(1, INF)
    with pytest.raises(FluidError, match="no path"):
        theta(scenario(parts, all_to_all(parts)))
    for gap in (0, -0.1, 1):
        with pytest.raises(ValueError, match="gap"):
            ceiling_spec("mcf", gap=gap)


def test_a_wrong_certificate_is_refused():
    topology = cycle(4)
    traffic = all_to_all(topology)
    with pytest.raises(ValueError, match="negative"):
        verify_upper(topology, traffic, Certificate.on_network(topology, -np.ones(8)))
    with pytest.raises(ValueError, match="prices of shape"):
        verify_upper(topology, traffic, Certificate.on_network(topology, np.ones(7)))
    problem = Problem.of(topology, shifted(topology, 1))
    with pytest.raises(ValueError, match="negative"):
        verify_flow(problem, np.full((4, 8), -1.0))
    wrong = Paths(np.arange(5), np.arange(5), np.array([1, 0, 0, 0], np.int32), np.ones(4))
    with pytest.raises(ValueError, match="does not lead"):
        verify_paths(problem, wrong)


def test_what_a_flow_loses_on_its_way_counts_where_it_would_have_to_go():
    """0 -> 3 over 1, and 1 -> 3; what ends at 1 has only the channel 1 -> 3 to go on."""
    topology = Topology.from_arcs("y", 4, [(0, 1), (1, 3), (3, 2), (2, 0), (1, 2)]).with_hosts(1, INF)
    demand = np.zeros((4, 4))
    demand[0, 3] = demand[1, 3] = 0.5
    problem = Problem.of(topology, table(topology, demand))
    whole = np.array([[0.5, 0, 1.0, 0, 0]])  # channels in order: 0 -> 1, 1 -> 2, 1 -> 3, 2 -> 0, 3 -> 2
    assert verify_flow(problem, whole) == pytest.approx([0.5, 0.5])
    for part in (0.9, 0.5, 0.0):
        assert verify_flow(problem, part * whole) == pytest.approx([0.5, 0.5])
    elsewhere = whole.copy()
    elsewhere[0, 1] = 0.25  # to a switch from which it must come back
    assert verify_flow(problem, elsewhere) == pytest.approx([0.4, 0.4])


def test_a_remainder_that_tiny_channels_could_not_take_goes_by_wide_ones():
    """Conservation is a sum of doubles: next to a flow of 1e6, amounts below 1e-10 are not seen."""
    arcs_of = [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)]
    topology = Topology.from_arcs("wide", 3, arcs_of, capacity=[1e6, 1e6, 1e6, 1e-6, 1e-6, 1e-6]).with_hosts(1, INF)
    demand = np.array([[0, 1e-3, 1.0], [0.3, 0, 1e-4], [0, 0.2, 0]])
    problem = Problem.of(topology, table(topology, demand))
    exact = solve(problem, 0.01, "exact")
    assert exact.upper <= exact.lower * (1 + 1e-9)
    assert isinstance(exact.flow, np.ndarray)
    shaken = exact.flow * (1 + 1e-15 * np.random.default_rng(1).integers(-4, 5, exact.flow.shape))
    assert (verify_flow(problem, shaken) / problem.demand.amount).min() == pytest.approx(exact.lower, rel=1e-9)
