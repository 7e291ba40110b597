# SPDX-License-Identifier: Apache-2.0
"""Throughput models: definitions, theorems, and a naive lexicographic LP that shares no code with the package."""

import logging
from itertools import pairwise
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.problem import FluidError, Problem
from flitlab.fluid.sharing import levels, maxmin
from flitlab.fluid.sharing.filling import hoefler, jain
from flitlab.fluid.sharing.flows import CompetingFlows, flows_of, unrolled
from flitlab.fluid.sharing.levels import max_min_levels
from flitlab.fluid.sharing.maxmin import LevelLp, free_max_min, max_min, raised
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from tests.fluid.fluid_cases import INF, all_to_all, cycle, minimal, scenario, small_scenarios, table, torus
from tests.scenarios import asked_as_far_as_known


def flows(paths: list[list[list[int]]], capacity, weight=None) -> CompetingFlows:
    """Flows given by the links of each of their paths."""
    number = [len(own) for own in paths]
    every = [path for own in paths for path in own]
    first = np.concatenate([[0], np.cumsum(number)])
    start = np.concatenate([[0], np.cumsum([len(path) for path in every])])
    channel = np.array([link for path in every for link in path], np.int32)
    weight = np.ones(len(paths)) if weight is None else np.asarray(weight, float)
    ends = np.arange(len(paths))
    return CompetingFlows(
        ends, ends, weight, Paths(first, start, channel, np.zeros(len(every))), np.asarray(capacity, float)
    )


def rate(of: CompetingFlows, model) -> np.ndarray:
    return of.rates(model(of)).rate


def load(of: CompetingFlows, model) -> np.ndarray:
    return of.paths._replace(flow=model(of)).load(len(of.capacity)) / of.capacity


@st.composite
def small_flows(draw, paths_most=3):
    """A few flows over random sets of at most five links."""
    links = draw(st.integers(1, 5))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=3, unique=True)
    own = st.lists(path, min_size=1, max_size=paths_most)
    paths = draw(st.lists(own, min_size=1, max_size=6))
    capacity = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=links, max_size=links))
    weight = draw(st.lists(st.sampled_from([0.25, 1.0, 2.0]), min_size=len(paths), max_size=len(paths)))
    return flows(paths, capacity, weight)


def lexicographic(of: CompetingFlows) -> np.ndarray:
    """Max-min fair rates by their definition: raise all flows, ask which alone could get more, fix the others."""
    count, links = len(of.weight), len(of.capacity)
    use = np.zeros((links, len(of.paths.flow)))
    for path, (begin, end) in enumerate(pairwise(of.paths.start)):
        use[of.paths.channel[begin:end], path] = 1
    gives = np.zeros((count, len(of.paths.flow)))
    gives[of.paths.commodity, np.arange(len(of.paths.flow))] = 1

    def most(gain, least, part):
        """The largest gain . (rates, level) if flow i gets least[i] + part[i] * level or more."""
        less = np.block([[use, np.zeros((links, 1))], [-gives, np.asarray(part, float)[:, None]]])
        found = linprog(-np.asarray(gain), less, np.concatenate([of.capacity, -least]))
        assert found.status == 0
        return -found.fun

    fixed, rising = np.zeros(count), np.ones(count, bool)
    while rising.any():
        up = np.zeros(len(of.paths.flow) + 1)
        up[-1] = 1
        level = most(up, fixed * ~rising, of.weight * rising)
        least = np.where(rising, of.weight * level, fixed) * (1 - 1e-9)
        for i in np.flatnonzero(rising):
            if most(np.append(gives[i], 0), least, np.zeros(count)) <= of.weight[i] * level * (1 + 1e-6):
                fixed[i], rising[i] = of.weight[i] * level, False
    return fixed


def test_total_of_jain_can_exceed_that_of_max_min():
    of = flows([[[1, 2, 3]], [[0]], [[2, 3]], [[2]], [[0, 3, 4]], [[1, 4]], [[2]]], np.ones(5))
    assert rate(of, max_min).sum() == pytest.approx(2.5)
    assert rate(of, jain).sum() == pytest.approx(2.5 + 1 / 12)


def test_parking_lot_by_hand():
    """One flow over two links, one over each of them."""
    of = flows([[[0, 1]], [[0]], [[1]]], [1, 3])
    assert rate(of, max_min) == pytest.approx([0.5, 0.5, 2.5])
    assert rate(of, hoefler) == pytest.approx([0.5, 0.5, 1.5])
    assert rate(of, jain) == pytest.approx([0.5, 0.5, 2.5])


def test_every_path_counts_as_a_flow_of_its_own_in_hoeflers_model():
    of = flows([[[0], [1]], [[0]]], [1, 1])
    assert rate(of, hoefler) == pytest.approx([1.5, 0.5])
    assert rate(of, max_min) == pytest.approx([1, 1])


def test_weights_share_in_proportion():
    of = flows([[[0]], [[0]]], [1], [1, 3])
    for model in (max_min, hoefler, jain):
        assert rate(of, model) == pytest.approx([0.25, 0.75])


@settings(max_examples=60, deadline=None)
@given(small_flows())
def test_max_min_against_the_definition(of):
    assert rate(of, max_min) == pytest.approx(lexicographic(of), rel=1e-6, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(small_flows())
def test_interior_solutions_and_constant_splits_keep_to_the_definition(of):
    with patch.object(levels, "INTERIOR_LEAST", 1):  # every LP as if it were large
        assert rate(of, max_min) == pytest.approx(lexicographic(of), rel=1e-5, abs=1e-6)
        assert (load(of, max_min) <= 1 + 1e-6).all()


def test_equal_flows_over_a_cut_share_it():
    """Ten flows, each over any of three links of capacity 1, 2 and 3, and one flow over the last link only."""
    of = flows([[[0], [1], [2]]] * 10 + [[[2]]], [1, 2, 3])
    assert rate(of, max_min) == pytest.approx(np.full(11, 6 / 11))


def test_flow_with_a_path_that_nothing_else_limits_takes_it():
    """Link 0 is on every path of the first flow, link 1 only on one of them, which the other flow needs."""
    of = flows([[[0], [0, 1]], [[1]]], [2, 1])
    assert rate(of, max_min) == pytest.approx([2, 1])
    assert load(of, max_min) == pytest.approx([1, 1])


@pytest.mark.parametrize("interior", [levels.INTERIOR_LEAST, 1])
@pytest.mark.parametrize(("capacity", "traffic"), [(1.0, {"kind": "random", "x": 4}), (INF, {"kind": "permutation"})])
def test_small_lps_agree_with_one_lp_of_all_flows(monkeypatch, interior, capacity, traffic):
    """One persistent LP with all flows, links and paths, by the primal simplex method: a solver of its own."""
    monkeypatch.setattr(levels, "INTERIOR_LEAST", interior)
    topology = make("topology", kind="rrg", n=20, degree=4, seed=3).build().with_hosts(2, capacity)
    case = routed(scenario(topology, make("traffic", **traffic).build(topology)), kind="ksp", k=4)
    of = flows_of(case)
    nothing = sparse.csr_array((len(of.weight), len(of.capacity)))
    expected, _ = raised(LevelLp(of), of.capacity, nothing, lambda _: False)
    assert len(np.unique(expected.round(5))) > 3  # levels
    assert rate(of, max_min) == pytest.approx(expected, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("interior", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_a_basis_from_the_interior_point_method_gives_the_rates_of_one_lp(monkeypatch, seed, interior):
    """Flows that hosts and network limit, at many levels: interior first, then from basis to basis."""
    monkeypatch.setattr(levels, "INTERIOR_LEAST", 1 if interior else levels.INTERIOR_LEAST)
    monkeypatch.setattr(maxmin, "SLACK", (1e-10, *maxmin.SLACK))  # what that LP reduces rates by at each level
    topology = make("topology", kind="rrg", n=16 + 2 * (seed % 5), degree=3 + seed % 3, seed=seed).build()
    topology = topology.with_hosts(1 + seed % 4, 1.0)
    traffic = make("traffic", kind="random", x=2 + seed % 5, seed=seed).build(topology)
    of = flows_of(routed(scenario(topology, traffic), kind="ksp", k=2 + seed % 3))
    nothing = sparse.csr_array((len(of.weight), len(of.capacity)))
    expected, _ = raised(LevelLp(of), of.capacity, nothing, lambda _: False)
    assert rate(of, max_min) == pytest.approx(expected, rel=1e-5)
    assert (load(of, max_min) <= 1 + 1e-7).all()


@settings(max_examples=40, deadline=None)
@given(small_flows(paths_most=1))
def test_one_path_filling_equals_the_lps_and_models_are_ordered(of):
    by_filling = rate(of, max_min)
    assert rate(of, max_min_levels) == pytest.approx(by_filling, rel=1e-6)
    theta = (by_filling / of.weight).min()
    by_hoefler = rate(of, hoefler)
    assert (theta * of.weight <= by_hoefler * (1 + 1e-9)).all()
    assert (by_hoefler <= by_filling * (1 + 1e-9)).all()


def test_a_long_solution_reports_how_many_flows_have_their_rate(monkeypatch, caplog):
    monkeypatch.setattr(levels, "REPORT_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "flitlab.fluid")
    max_min_levels(flows([[[0], [1]], [[2], [3]]], [1.0, 1.0, 4.0, 4.0]))
    assert [record.getMessage() for record in caplog.records] == [
        "max-min fairness: 1 of 2 flows have their rate",
        "max-min fairness: 2 of 2 flows have their rate",
    ]


@settings(max_examples=60, deadline=None)
@given(small_flows())
def test_rates_fit_and_the_worst_flow_is_no_better_than_under_max_min(of):
    best = of.rates(max_min(of)).theta
    for model in (hoefler, jain, max_min):
        assert (load(of, model) <= 1 + 1e-7).all()
        assert of.rates(model(of)).theta <= best * (1 + 1e-7)
    assert (rate(of, hoefler) <= rate(of, jain) * (1 + 1e-9)).all()
    full = load(of, jain) > 1 - 1e-9
    assert np.logical_or.reduceat(full[of.paths.channel], of.paths.start[:-1]).all()


def routed(case: Scenario, **routing) -> Scenario:
    return scenario(case.topology, case.traffic, make("routing", **routing).build(case.topology))


def values(case: Scenario, *kinds: str, **options) -> dict[str, float]:
    specs = [asked_as_far_as_known(kind, **options) for kind in kinds]
    return {row.ceiling: row.lower for row in ceilings(case, specs)}


@settings(max_examples=25, deadline=None)
@given(small_scenarios(host_capacity=1.0), st.sampled_from([{"kind": "allpath", "hops": 6}, {"kind": "minimal"}]))
def test_worst_max_min_flow_gets_what_the_concurrent_flow_gives(case, routing):
    found = values(routed(case, **routing), "mcf_paths", "mmf", "hm", "jm", method="exact")
    assert found["mmf:theta"] == pytest.approx(found["mcf_paths"], rel=1e-6)
    assert max(found["hm:theta"], found["jm:theta"]) <= found["mcf_paths"] * (1 + 1e-6)


def test_flows_of_a_switch_need_its_host_channels_only():
    topology = cycle(4).with_hosts(2, 1.0)
    matrix = np.zeros((8, 8))
    matrix[0, 1] = matrix[2, 4] = 1
    of = flows_of(scenario(topology, table(topology, matrix), minimal(topology)))
    lengths = of.paths.hops
    assert lengths[: of.paths.first[1]].tolist() == [2] and (lengths[of.paths.first[1] :] == 3).all()
    assert rate(of, max_min) == pytest.approx([1, 1])
    endless = topology.with_hosts(2, INF)
    of = flows_of(scenario(endless, table(endless, matrix), minimal(endless)))
    assert of.local == 1 and of.source.tolist() == [2] and len(of.capacity) == topology.channels


@pytest.mark.parametrize("kind", ["minimal", "ecmp"])
def test_next_hops_are_unrolled_into_all_shortest_paths(kind):
    topology = torus(4)
    case = scenario(topology, all_to_all(topology), make("routing", kind=kind).build(topology))
    problem = Problem.of(topology, case.traffic, case.routes)
    paths = unrolled(problem) if problem.paths is None else problem.paths
    graph = nx.DiGraph(topology.to_networkx())
    for k, (s, t) in enumerate(zip(problem.demand.source, problem.demand.destination, strict=True)):
        found = set()
        for p in range(paths.first[k], paths.first[k + 1]):
            channel = paths.channel[paths.start[p] : paths.start[p + 1]]
            assert topology.src[channel[0]] == s and (topology.src[channel[1:]] == topology.dst[channel[:-1]]).all()
            found.add((*topology.src[channel].tolist(), int(topology.dst[channel[-1]])))
        assert found == set(map(tuple, nx.all_shortest_paths(graph, s, t)))


def test_rows_state_their_units_and_the_concurrent_flow_has_them_too():
    topology = torus(4).with_hosts(1, 1.0)
    traffic = make("traffic", kind="permutation", seed=2).build(topology)
    case = routed(scenario(topology, traffic), kind="ksp", k=2)
    specs = [ceiling_spec("mmf"), ceiling_spec("mcf_paths", per_flow=True, method="exact")]
    rows = {row.ceiling: row for row in ceilings(case, specs)}
    units = {name: rows[f"mmf{name}"].unit for name in ("", ":total", ":min", ":theta", ":jain")}
    assert units == {
        "": "flits/tick/flow", ":total": "flits/tick", ":min": "flits/tick/flow", ":theta": "load", ":jain": "1",
    }  # fmt: skip
    assert rows["mmf:total"].lower == pytest.approx(16 * rows["mmf"].lower)
    theta = rows["mcf_paths"].lower  # every flow of a permutation demands 1
    assert rows["mcf_paths:mean"].lower == rows["mcf_paths:min"].lower == pytest.approx(theta)
    assert rows["mcf_paths:total"].lower == pytest.approx(16 * theta) and rows["mcf_paths:jain"].lower == 1


@settings(max_examples=25, deadline=None)
@given(st.one_of(small_scenarios(), small_scenarios(host_capacity=1.0)))
def test_max_min_over_all_paths_is_that_of_a_routing_that_has_them_all(case):
    found = flows_of(routed(case, kind="allpath", hops=6))
    if len(found.weight):
        of, rates = free_max_min(case.topology, case.traffic)
        assert np.array_equal(of.source, found.source) and np.array_equal(of.target, found.target)
        assert rates.rate == pytest.approx(found.rates(max_min(found)).rate, rel=1e-6)


def test_max_min_over_all_paths_starts_at_the_maximum_concurrent_flow():
    topology = make("topology", kind="rrg", n=24, degree=3, seed=2).build().with_hosts(2, INF)
    case = scenario(topology, make("traffic", kind="random", x=2).build(topology))
    rows = {row.ceiling: row for row in ceilings(case, [ceiling_spec("mmf"), ceiling_spec("mcf", method="exact")])}
    assert rows["mmf:theta"].lower == pytest.approx(rows["mcf"].lower, rel=1e-5)
    assert rows["mmf"].lower > rows["mmf:min"].lower and "all paths" in rows["mmf"].note


def test_models_say_why_they_are_omitted(monkeypatch):
    topology = torus(4)
    case = scenario(topology, all_to_all(topology))
    (row,) = ceilings(case, [ceiling_spec("hm")])
    assert row.method == "omitted" and "no routing" in row.note
    (row,) = ceilings(routed(case, kind="minimal", select="adaptive"), [ceiling_spec("jm")])
    assert "does not fix the paths" in row.note
    monkeypatch.setattr(maxmin, "SIZE_MOST", 1000)
    (row,) = ceilings(case, [ceiling_spec("mmf")])
    assert row.method == "omitted" and "too many" in row.note
    monkeypatch.setattr(maxmin, "LEVEL_PATHS_MOST", 100)
    (row,) = ceilings(routed(case, kind="ksp", k=2), [ceiling_spec("mmf")])
    assert row.method == "omitted" and "more than 100" in row.note
    with pytest.raises(FluidError):
        max_min(flows_of(routed(case, kind="ksp", k=2)))


def test_per_flow_goes_with_concurrent_flows_only():
    with pytest.raises(ValueError, match="per_flow goes with mcf, mcf_paths, split, not with mmf"):
        ceiling_spec("mmf", per_flow=True)
