# SPDX-License-Identifier: Apache-2.0
"""Saturation points: from rows, by bisection, along a curve; and what a run makes of them."""

import csv
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment import points as points_module
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import run
from flitlab.sim.experiment.saturation import COLLAPSE_DRAWS, DRAWS, bisect, curve, highest_load, search
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from flitlab.sim.measure.probe import fresh_seeds, until_verdicts_differ
from flitlab.sim.measure.result import Result
from flitlab.sim.measure.saturation import bracket, saturation

CONFIG = """\
name: s
topology: {kind: imase, n: 4, degree: 2, hosts_per_switch: 1}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
traffic: {kind: uniform}
loads: {saturation: {tolerance: 0.02}}
seeds: [1, 2]
measure: {warmup: 50, ticks: 400, ci: null}
ceilings: [mcf]
outputs: {html: false, figures: []}
"""


def row(load, seed=1, point=0.42, **more):
    """A point of a network that carries at most ``point``."""
    accepted = min(load, point)
    return {"load": load, "seed": seed, "offered": load, "accepted": accepted, "saturated": load > point,
            "latency_mean": 10 / max(1 - load / point, 0.02), **more}  # fmt: skip


# ---- from rows


def test_the_point_of_a_sweep_is_what_is_carried_at_the_first_saturated_load():
    found = saturation([row(load, seed, 0.41 + seed / 100) for load in (0.1, 0.4, 0.5, 0.9) for seed in (1, 2, 3)])
    assert found.value == pytest.approx(0.43)
    assert found.resolution == pytest.approx(0.08)  # the distance of the farther of the loads around it
    assert found.half == pytest.approx(4.3027 * 0.01 / math.sqrt(3) + 0.08, rel=1e-4)
    assert found.plus_minus == found.half and (found.low, found.high) == (
        found.value - found.half,
        found.value + found.half,
    )
    assert (found.lower, found.upper) == (0.4, 0.5)
    assert found.seeds[2].value == pytest.approx(0.43) and found.seeds[2].over["load"] == 0.5
    assert found.at("latency_mean") == pytest.approx(500)


def test_rows_of_a_file_say_the_same():
    rows = [row(load, seed) for load in (0.1, 0.4, 0.5) for seed in (1, 2)]
    texts = [{key: str(value) for key, value in one.items()} for one in rows]
    of_rows, of_texts = saturation(rows), saturation(texts)
    assert (of_rows.value, of_rows.lower, of_rows.upper) == (of_texts.value, of_texts.lower, of_texts.upper)


def test_without_a_saturated_load_only_a_lower_end_is_known():
    found = saturation([row(0.1), row(0.3)])
    assert math.isnan(found.value) and (found.lower, found.upper) == (0.3, math.inf)
    assert math.isnan(found.at("jain"))
    assert saturation([row(0.1), row(0.3)], limit=0.5).upper == 0.5
    assert math.isnan(saturation([row(0.1, 1), row(0.5, 1), row(0.1, 2)]).value)


def test_from_the_limit_on_everything_is_saturated():
    found = bracket([row(0.2, point=1), row(0.5, point=1), row(0.8, point=1)], limit=0.45)
    assert (found.lower, found.upper, found.over["load"]) == (0.2, 0.45, 0.5)


def test_what_is_delivered_beyond_the_limit_is_no_saturation_point():
    """Of five demands of equal rate one has a channel of 0.4: at load 1 the rest delivers 0.88, more than the limit."""
    found = bracket([row(0.3, point=1), row(1.0, point=0.88)], limit=0.4)
    assert (found.lower, found.upper) == (0.3, 0.4) and math.isnan(found.value)
    assert bracket([row(0.3, point=1), row(0.5, point=0.402)], limit=0.4).value == 0.4  # as much, but for noise


def test_a_network_that_collapses_is_worth_what_it_carried_before():
    found = bracket([row(0.3), row(0.5, accepted=0.05, saturated=True)])
    assert (found.lower, found.value, found.upper) == (0.3, 0.3, 0.5)


def test_deadlocks_count_and_failed_points_do_not():
    assert bracket([row(0.1), row(0.2, deadlocked=True)]).upper == 0.2
    assert saturation([{"load": 0.1, "seed": 1, "status": "failed"}]) is None
    assert saturation([{"load": 1.0, "seed": 1, "throughput_mean": 0.7}]) is None


def probe(load, saturated, resolution=0.01, seed=1, searched=True, point=0.42, **more):
    """A probe of a search."""
    return row(load, seed, point) | {"saturated": saturated, "resolution": resolution, "searched": searched} | more


def test_a_search_counts_its_probes_and_nothing_else():
    """Its value is the middle of the loads around it; what a probe carries it carries as far as it would have seen."""
    probes = [probe(0.2, False, 0.1), probe(0.4, False, 0.02), probe(0.41, None, 0.02), probe(0.42, True, 0.02)]
    found = bracket(probes)
    assert (found.lower, found.value, found.upper) == (pytest.approx(0.98 * 0.4), pytest.approx(0.41), 0.42)
    assert bracket([*probes, row(0.3, point=0.1), row(0.9, point=2)]) == found
    texts = [{key: "" if value is None else str(value) for key, value in one.items()} for one in probes]
    of_texts = bracket(texts)
    assert (of_texts.lower, of_texts.value, of_texts.upper) == (found.lower, found.value, found.upper)


def test_the_value_of_a_search_is_no_more_than_its_probes_deliver():
    """Where windows are too short to narrow the bracket, throughput that no longer rises is the better estimate."""
    probes = [probe(0.40, False, 0.02, point=0.43), probe(0.44, False, 0.04, point=0.43)]
    found = bracket([*probes, probe(0.46, None, 0.05, point=0.43), probe(0.5, True, 0.05, point=0.43)])
    assert (found.lower, found.value, found.upper) == (pytest.approx(0.96 * 0.44), pytest.approx(0.43), 0.5)


def test_a_search_that_has_not_ended_has_no_value():
    found = saturation([probe(0.2, False, searched=False), probe(0.4, True, searched=False)], limit=0.5)
    assert math.isnan(found.value) and not found.ended and (found.upper, found.lower) == (0.4, pytest.approx(0.198))


def test_an_interval_ends_at_what_is_possible():
    """Of two seeds that differ, Student's interval would reach far beyond the limit, and below 0."""
    rows = [
        probe(low, over, seed=seed)
        for seed, point in ((1, 0.25), (2, 0.37))
        for low, over in ((point, False), (point + 0.01, True))
    ]
    found = saturation(rows, limit=0.38)
    assert found.value == pytest.approx(0.315) and found.half > 0.7
    assert (found.low, found.high) == (0.0, 0.38) and math.isnan(found.plus_minus)


# ---- the loads that are asked for


def ask(steps, answers, point, finest=0.0, unclear=(1, 0)):
    """(what a search returns, its loads) if the network saturates above ``point``.

    finest: the resolution that its longest windows have. unclear: loads between which they are too short to tell.
    """
    asked, rows = [], None
    while True:
        try:
            question = steps.send(rows)
        except StopIteration as end:
            return end.value, asked
        load, wanted, draws = question
        assert draws in (0, DRAWS) and (not draws or load > point)  # throughput does not collapse
        if not draws:
            asked.append(load)
        if wanted is None:
            rows = [row(load, point=point)]
        else:
            saturated = None if unclear[0] <= load <= unclear[1] else load > point
            rows = [probe(load, saturated, max(wanted, finest), point=point)]
        answers[load] = rows


@pytest.mark.parametrize("point", [0.0004, 0.013, 0.31, 0.5, 0.9999])
@pytest.mark.parametrize("tolerance", [0.2, 0.01, 0.001])
def test_bisection_ends_in_a_narrow_bracket_around_the_point(point, tolerance):
    answers = {}
    (carried, over), asked = ask(bisect(1.0, tolerance), answers, point)
    found = bracket(row for rows in answers.values() for row in rows)
    assert carried <= point <= over and over - found.lower <= tolerance * over * (1 + 1e-9)
    assert len(set(asked)) <= len(asked) <= math.ceil(math.log2(1 / tolerance / point)) + 4


def test_windows_that_tell_no_more_end_a_bisection():
    answers = {}
    (carried, over), asked = ask(bisect(1.0, 0.001), answers, 0.31, finest=0.05)
    assert over - carried <= 0.05 * over / 2 and len(asked) < 9


def test_a_load_at_which_nothing_is_decided_is_left_inside_the_bracket():
    answers = {}
    (carried, over), asked = ask(bisect(1.0, 0.01), answers, 0.42, unclear=(0.41, 0.43))
    assert 0.39 < carried < 0.41 and 0.43 < over < 0.45 and len(asked) < 16


def test_a_scenario_that_carries_nothing_ends_at_some_time():
    (lower, upper), asked = ask(bisect(1.0, 0.01), {}, 1e-9)
    assert lower == 0 and upper <= 1e-4 and len(asked) < 16


def test_a_search_begins_with_the_limit_and_ends_at_half():
    answers = {}
    _, asked = ask(search(answers, 0.5, 1.0, 0.01), answers, 0.42)
    assert all(load < 0.5 for load in asked[:-1])
    assert asked[-1] == pytest.approx(0.21, rel=0.01)


def test_a_search_that_meets_no_saturation_tries_the_highest_load():
    _, asked = ask(search({}, math.inf, 0.8, 0.1), {}, 2.0)
    assert max(asked) == 0.8


def test_an_adaptive_curve_ends_just_past_saturation_and_is_densest_where_latency_bends():
    answers = {}
    _, asked = ask(curve(answers, math.inf, 1.0, 16), answers, 0.42)
    on_curve = sorted(load for load in answers if load <= 0.42 * 1.1)
    assert len(on_curve) == 16 and min(on_curve) == pytest.approx(0.1 * max(on_curve), rel=1e-3)
    assert 0.42 < max(on_curve) <= 0.42 * 1.1
    gaps = [b - a for a, b in pairwise(on_curve)]
    assert max(gaps) < 0.12
    unhurried = [row(load)["latency_mean"] for load in on_curve]
    assert all(b <= 4 * a for a, b in pairwise(unhurried[:-1]))
    assert len(asked) == len(set(asked))


class Collapse:
    """A network whose runs collapse at a load with a probability: that of a normal distribution.

    spread: its standard deviation over its mean. collapsed: what a run that collapses delivers of its load.
    """

    def __init__(self, seed, spread, collapsed=0.97):
        self.rng, self.mean, self.spread = np.random.default_rng(seed), 0.4 + seed / 1000, spread
        self.collapsed, self.runs = collapsed, []

    def run(self, load):
        """Whether a run collapses."""
        self.runs.append(load)
        return bool(self.rng.random() < ndtr((load / self.mean - 1) / self.spread))

    def search(self):
        """(bracket, what the search returns, its questions)."""
        steps, rows, questions, answer = bisect(1.0, 0.01), {}, [], None
        while True:
            try:
                questions.append(steps.send(answer))
            except StopIteration as end:
                return bracket(rows.values(), 1.0), end.value, questions
            load, wanted, draws = questions[-1]
            over = self.run(load)
            differ = any(self.run(load) != over for _ in range(draws - 1))  # which ends with the first that does
            point = self.collapsed * load if over else load
            verdict = {"saturated_by": "draws differ"} if differ else {}
            rows[load] = probe(load, None if differ else over, wanted, point=point, **verdict)
            answer = [rows[load]]


@pytest.mark.parametrize("spread", [0.0015, 0.003, 0.006])
def test_a_search_of_a_bistable_network_holds_the_load_that_half_of_its_runs_carry(spread):
    """A verdict there is a coin toss: brackets of single runs miss that load in 16 to 50 % of searches."""
    networks = [Collapse(seed, spread) for seed in range(500)]
    found = [network.search()[0] for network in networks]
    missed = sum(not one.lower <= network.mean <= one.upper for network, one in zip(networks, found, strict=True))
    assert missed <= 0.02 * len(networks)
    assert np.mean([(one.upper - one.lower) / one.upper for one in found]) < 0.01 + 2 * spread


def test_the_lower_end_of_a_bracket_is_confirmed_only_where_throughput_collapses():
    def draws(questions):
        return [question.draws for question in questions if question.draws]

    assert draws(Collapse(1, 1e-9, collapsed=0.9999).search()[2]) == [DRAWS]
    assert draws(Collapse(1, 1e-9).search()[2]) == [DRAWS, COLLAPSE_DRAWS]  # which agree


@pytest.mark.parametrize("seed", range(20))
def test_a_search_returns_ends_that_fresh_draws_agree_on(seed):
    """Whatever verdicts are: also where they differ over half of the loads."""
    found, (carried, over), questions = Collapse(seed, 0.3, collapsed=0.5).search()
    confirmed = {question.load for question in questions if question.draws}
    assert carried in confirmed | {0.0} and over in confirmed | {1.0}
    assert found.lower <= carried < over == found.upper


# ---- runs


@pytest.fixture
def study(tmp_path):
    def write(text=CONFIG, sets=(), experiment=None):
        (tmp_path / "c.yaml").write_text(text)
        return read(tmp_path / "c.yaml", sets, experiment=experiment)

    return write


def table(folder, name="saturation.csv"):
    with (folder / name).open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def networks(monkeypatch):
    """Stands in for the simulation: minimal routing saturates at 0.31, deflection at 0.52; counts calls."""
    calls = []

    def solve(file, engine, load, seed, measure, kinds=(), threads=1):
        import pickle
        from types import SimpleNamespace

        import numpy as np

        from flitlab.fluid.crosscheck import FlowCount
        from flitlab.models.pairs import PairCounts
        from flitlab.sim.experiment.task import Outcome

        scenario = pickle.loads(file.path.read_bytes())
        calls.append((scenario.routes.kind, load, seed))
        point = (0.31 if scenario.routes.kind == "minimal" else 0.52) + seed / 1000
        hosts, switches = scenario.topology.hosts, scenario.topology.switches
        none = FlowCount(PairCounts.none(switches), np.zeros(hosts, int), np.zeros(hosts, int))
        probed = {"resolution": measure["resolution"]} if "resolution" in measure else {}
        measured = row(load, seed, point, min_flow_ratio=min(1, point / load), jain=0.9, ticks=400, **probed)
        del measured["load"], measured["seed"]
        return Outcome(
            SimpleNamespace(
                row=measured,
                detail={},
                delivered=none,
                present=none,
                window=400,
                capacity=None,
                parts=(),
                limited=False,
            )
        )

    monkeypatch.setattr(points_module, "solve_point", solve)
    return calls


def by_seed(tmp_path):
    return table(tmp_path / "out", "saturation_seeds.csv")


def test_a_confirming_probe_is_a_run_of_another_seed(study):
    """The same for every run of the study; others for every seed."""
    scenario = study(sets=["routing={kind: minimal}"]).cases[0].scenario
    how = Measure(50, 400, resolution=0.5, longest=1, draws=1)
    fresh = fresh_seeds(2, 3)
    assert fresh[:1] == fresh_seeds(2, 1) and len({1, 2, 3, *fresh, *fresh_seeds(1, 3), *fresh_seeds(3, 3)}) == 12
    confirming = measure("reference", scenario, 0.2, 2, how)
    same, other = (measure("reference", scenario, 0.2, seed, replace(how, draws=0)) for seed in (fresh[0], 2))
    assert confirming.detail["latency_histogram"] == same.detail["latency_histogram"]
    assert confirming.detail["latency_histogram"] != other.detail["latency_histogram"]


@pytest.mark.parametrize(
    ("verdicts", "runs", "together"),
    [
        ([True, True, True], 3, (True, "loss")),
        ([False, False], 2, (False, "")),
        ([True, False, True], 2, (None, "draws differ")),
        ([False, True], 2, (None, "draws differ")),
        ([None, None], 2, (None, "short window")),
        ([True, None, True], 2, (None, "draws differ")),
    ],
)
def test_fresh_draws_are_run_until_verdicts_differ(verdicts, runs, together):
    by = {True: "loss", False: "", None: "short window"}
    results = [Result({"saturated": verdict, "saturated_by": by[verdict]}, {}, None, None, 1) for verdict in verdicts]
    left = iter(results)
    row = until_verdicts_differ(left).row
    assert (row["saturated"], row["saturated_by"]) == together
    assert len(list(left)) == len(verdicts) - runs


def test_a_search_of_every_scenario_and_seed(study, networks, tmp_path):
    report = run(study(), tmp_path / "out")
    assert report.exit_code == 0
    minimal, deflection = table(tmp_path / "out")
    assert float(minimal["saturation"]) == pytest.approx(0.3115, rel=0.005)
    assert float(deflection["saturation"]) == pytest.approx(0.5215, rel=0.005)
    seeds = [[float(one[name]) for name in ("saturation", "lower", "upper")] for one in by_seed(tmp_path)[:2]]
    resolution = max(max(value - lower, upper - value) for value, lower, upper in seeds)
    assert 0 < resolution <= 0.015 * 0.32
    spread = abs(seeds[0][0] - seeds[1][0]) / 2
    assert float(minimal["ci95"]) == pytest.approx(12.706 * spread + resolution, rel=1e-3)
    ends = float(minimal["ci95_low"]), float(minimal["ci95_high"])
    assert ends == pytest.approx([float(minimal["saturation"]) + sign * float(minimal["ci95"]) for sign in (-1, 1)])
    assert minimal["ceiling"] == "mcf" and minimal["seeds"] == "2" and minimal["routing"] == "minimal"
    assert float(minimal["efficiency"]) == pytest.approx(float(minimal["saturation"]) / float(minimal["ceiling_upper"]))
    assert float(minimal["min_flow_ratio"]) < 1 and float(minimal["latency_half"]) == pytest.approx(20, rel=0.01)
    seeds = by_seed(tmp_path)
    assert [(one["routing"], one["seed"]) for one in seeds] == [
        ("minimal", "1"), ("minimal", "2"), ("deflection", "1"), ("deflection", "2")
    ]  # fmt: skip
    for one in seeds:
        lower, upper = float(one["lower"]), float(one["upper"])
        assert lower <= float(one["saturation"]) <= upper and upper - lower <= 0.02 * upper
    assert len(table(tmp_path / "out", "results.csv")) == len(set(networks))  # the upper ends are confirmed


def test_a_search_resumes_point_by_point(study, networks, tmp_path):
    run(study(), tmp_path / "out")
    names = ("results.csv", "saturation.csv", "saturation_seeds.csv")
    before = {name: (tmp_path / "out" / name).read_bytes() for name in names}
    networks.clear()
    files = sorted((tmp_path / "out" / "points").iterdir())
    files[3].unlink(), files[8].unlink()
    run(study(), tmp_path / "out")
    assert len(networks) == 2
    assert {name: (tmp_path / "out" / name).read_bytes() for name in names} == before


def test_a_finer_search_goes_on_from_a_coarse_one(study, networks, tmp_path):
    run(study(), tmp_path / "out")
    coarse = len(networks)
    networks.clear()
    run(study(sets=["loads.saturation.tolerance=0.005"]), tmp_path / "out")
    assert 0 < len(networks) < coarse


def test_the_experiment_is_a_search_besides_the_loads_that_are_given(study, networks, tmp_path):
    text = CONFIG.replace("loads: {saturation: {tolerance: 0.02}}", "experiment: saturation\nloads: [0.1, 0.35]")
    report = run(study(text), tmp_path / "out")
    assert {0.1, 0.35} <= {row["load"] for row in report.results}
    rows = [row for row in report.results if row["load"] in (0.1, 0.35)]
    assert rows and all(row.get("resolution") is None for row in rows)
    alone = run(study(text.replace("loads: [0.1, 0.35]\n", "")), tmp_path / "alone")
    assert table(tmp_path / "out") == table(tmp_path / "alone") and len(alone.results) == len(report.results) - 8
    none = CONFIG.replace("loads: {saturation: {tolerance: 0.02}}", "experiment: saturation")
    assert study(none).cases[0].placing.tolerance == 0.01
    again = run(study((tmp_path / "out" / "config.resolved.yaml").read_text()), tmp_path / "again")
    assert [row["accepted"] for row in again.results] == [row["accepted"] for row in report.results]


def test_an_adaptive_curve_has_the_same_loads_for_every_seed(study, networks, tmp_path):
    report = run(study(sets=["loads={adaptive: {points: 9}}"]), tmp_path / "out")
    loads = {
        seed: {r["load"] for r in report.results if r["seed"] == seed and r["routing"] == "minimal"} for seed in (1, 2)
    }
    assert loads[1] == loads[2]
    upper = float(table(tmp_path / "out")[0]["upper"])
    assert sum(load <= upper for load in loads[1]) == 9


def test_a_point_that_fails_ends_its_search_only(study, networks, tmp_path, monkeypatch):
    real = points_module.solve_point

    def fails(file, engine, load, seed, *rest):
        from flitlab.sim.experiment.task import Outcome

        return Outcome(problem="no luck") if seed == 2 else real(file, engine, load, seed, *rest)

    monkeypatch.setattr(points_module, "solve_point", fails)
    report = run(study(), tmp_path / "out")
    assert report.exit_code == 1 and len(report.problems) == 2
    assert {row["seed"] for row in report.tables["saturation_seeds.csv"]} == {1}


def test_loads_at_which_draws_differ_are_inside_the_bracket_and_in_the_note(study, networks, tmp_path, monkeypatch):
    """A load has one row, which says so; a search that goes on later asks for nothing again."""
    real, confirmed = points_module.solve_point, []

    def collapses(file, engine, load, seed, measure, *rest):
        outcome = real(file, engine, load, seed, measure, *rest)
        row = outcome.result.row
        if row["saturated"]:
            row["accepted"] = 0.3
        if "draws" in measure:
            confirmed.append(load)
            if 0.305 < load < 0.32:
                row |= {"saturated": None, "saturated_by": "draws differ"}
        return outcome

    monkeypatch.setattr(points_module, "solve_point", collapses)
    sets = ["seeds=[1]", "routing={kind: minimal}"]
    run(study(sets=sets), tmp_path / "out")
    (one,) = table(tmp_path / "out")
    rows = table(tmp_path / "out", "results.csv")
    assert len({row["load"] for row in rows}) == len(rows)
    differ = [float(row["load"]) for row in rows if row["saturated_by"] == "draws differ"]
    assert len(differ) > 1 and set(differ) < set(confirmed)
    assert float(one["lower"]) < min(differ) and max(differ) < float(one["upper"])
    assert one["note"] == (
        f"bistable: at loads from {min(differ):.4g} to {max(differ):.4g}, throughput collapses in some runs only"
    )
    networks.clear()
    run(study(sets=sets), tmp_path / "out")
    assert not networks


def test_a_search_that_is_interrupted_has_no_efficiency(study, networks, tmp_path, monkeypatch, capsys):
    """Its last bracket says what is known, and no more; the same run goes on where it was."""
    real, calls = points_module.solve_point, []

    def fails(*arguments):
        from flitlab.sim.experiment.task import Outcome

        calls.append(arguments)
        return Outcome(problem="no luck") if len(calls) == 5 else real(*arguments)

    monkeypatch.setattr(points_module, "solve_point", fails)
    run(study(sets=["seeds=[1]", "routing={kind: minimal}"]), tmp_path / "out")
    (one,) = table(tmp_path / "out")
    assert one["saturation"] == one["efficiency"] == one["ci95"] == "" and "has not ended" in one["note"]
    assert 0 < float(one["lower"]) < 0.311 < float(one["upper"])
    assert {row["searched"] for row in table(tmp_path / "out", "results.csv")} == {"False"}
    run(study(sets=["seeds=[1]", "routing={kind: minimal}"]), tmp_path / "out")
    assert float(table(tmp_path / "out")[0]["efficiency"]) > 0


def test_sweeps_have_a_saturation_table_too(study, networks, tmp_path):
    run(study(sets=["loads={from: 0.1, to: 0.7, step: 0.1}"]), tmp_path / "out")
    minimal, deflection = table(tmp_path / "out")
    assert float(minimal["saturation"]) == pytest.approx(0.3115)
    assert float(minimal["lower"]) == pytest.approx(0.3) and float(minimal["upper"]) == pytest.approx(0.4)
    assert float(deflection["latency_half"]) == pytest.approx(20, rel=0.05)


@pytest.mark.long
def test_any_number_of_processes_finds_the_same(study, tmp_path):
    for jobs in (1, 2):
        sets = ["engine=reference", "loads.saturation.tolerance=0.3", "measure.ticks=200"]
        run(study(sets=sets), tmp_path / str(jobs), RunOptions(jobs))
    for name in ("saturation.csv", "saturation_seeds.csv", "ceilings.csv"):
        one, two = (table(tmp_path / folder, name) for folder in "12")
        assert [{k: v for k, v in row.items() if k != "seconds"} for row in one] == [
            {k: v for k, v in row.items() if k != "seconds"} for row in two
        ]


def test_precision_that_was_not_reached_is_said(study, tmp_path):
    sets = [
        "loads=[0.1, 0.9]",
        "seeds=[1]",
        "measure={warmup: 50, ticks: 400, ci: 0.5, max_ticks: 400}",
        "engine=reference",
    ]
    report = run(study(sets=sets), tmp_path / "out")
    for found in report.results:
        assert found["precise"] == (found["latency_ci95"] <= 0.5 * found["latency_mean"])
    assert {row["precise"] for row in table(tmp_path / "out", "results.csv")} <= {"True", "False"}


@pytest.mark.parametrize(
    ("loads", "line"),
    [
        ("{saturation: {tolerance: 0}}", "loads.saturation.tolerance = 0: must be greater than or equal to 0.001"),
        ("{saturation: {tolerance: 1}}", "loads.saturation.tolerance = 1: must be less than 1"),
        ("{saturation: {tolerance: x}}", "loads.saturation.tolerance = x: must be a valid number"),
        ("{saturaton: {}}", "loads.saturaton: unknown key; choices: adaptive, at, from, saturation, step, to; "
         "did you mean 'saturation'?"),
        ("{saturation: {}, adaptive: {}}", "loads: must have one of saturation and adaptive"),
        ("{at: [0.1]}", "loads: must have one of saturation and adaptive"),
        ("{adaptive: {points: 3}}", "loads.adaptive.points = 3: must be greater than or equal to 4"),
        ("{saturation: {}, at: [2]}", "loads.at[0] = 2: must be less than or equal to 1"),
        ("{from: 0.1, to: 0.2, step: 0.1, saturation: {}}", "loads: a range beside a search must be under at"),
    ],
)  # fmt: skip
def test_mistakes(study, loads, line):
    with pytest.raises(ConfigError) as caught:
        study(CONFIG.replace("{saturation: {tolerance: 0.02}}", loads))
    assert any(f"c.yaml:5: {line}" in str(mistake) for mistake in caught.value.errors), caught.value.errors


def test_no_load_asks_for_more_than_a_packet_a_tick(study, tmp_path):
    (tmp_path / "demand.csv").write_text("src,dst,demand\n0,1,4\n1,0,4\n")
    text = CONFIG.replace("{kind: uniform}", "{kind: matrix, path: demand.csv, normalise: none}")
    case = study(text.replace("[mcf]", "[]")).cases[0]
    assert highest_load(case) == 0.25
    assert highest_load(study().cases[0]) == 1


def test_datagram_flows_have_no_saturation_point(study):
    text = (
        "topology: {kind: rrg, n: 8, degree: 3}\nrouting: {kind: ecmp}\nswitching: {mode: datagram}\n"
        "traffic: {kind: permutation}\nloads: {saturation: {}}\n"
    )
    with pytest.raises(ConfigError, match="mode datagram has no saturation point"):
        study(text)


def test_loads_of_another_form_replace_those_before(study):
    text = CONFIG.replace("seeds", "quick: {loads: [0.2]}\nseeds")
    assert read_quick(study, text).cases[0].loads == [0.2]
    text = CONFIG.replace("{saturation: {tolerance: 0.02}}", "{from: 0.1, to: 0.3, step: 0.1}")
    text += "quick: {loads: {adaptive: {points: 5}}}\n"
    assert read_quick(study, text).cases[0].placing.points == 5


def read_quick(study, text):
    return read(study(text).file, quick=True)
