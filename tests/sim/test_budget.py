# SPDX-License-Identifier: Apache-2.0
"""Loss budgets: their arithmetic, what is left out and why, and what a run makes of them."""

import csv
import json
import math
from dataclasses import replace

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.draft import BUDGET
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.budget import Level, Loss, loss
from flitlab.sim.experiment.task import measure_of
from flitlab.sim.measure.measure import how, measure
from flitlab.sim.report.folder.budget import LossBudget, is_insignificant, loss_budgets, sentence, warning

CONFIG = """\
name: b
topology: {kind: imase, n: 8, degree: 3, hosts_per_switch: 2}
routing: {kind: minimal}
switching: {vcs: 2, header_ticks: 2}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.1]
seeds: [1, 2]
measure: {warmup: 100, ticks: 400, ci: null}
ceilings: [bounds]
budget: {tolerance: 0.1, sensitivities: [speedup]}
outputs: {html: false, figures: [budget], formats: [svg]}
"""


def level(rung, *values, step=0.005, scenario=None):
    """A measured rung: what each seed carries."""
    mean = sum(values) / len(values)
    seeds = dict(enumerate(values, 1))
    return Level(rung, "measured", mean - 0.02, mean + 0.02, seeds=seeds, step=step, scenario=scenario or rung)


def exact(rung, value):
    return Level(rung, "exact", value, value)


# ---- arithmetic


def test_a_part_is_taken_seed_by_seed():
    """What two switches have in common, the luck of a seed, is not in their difference."""
    found = loss(level("full_speedup", 0.40, 0.44, 0.48), level("switch", 0.38, 0.41, 0.46))
    assert found.value == pytest.approx(0.07 / 3)
    error = math.sqrt(((0.02 - 0.07 / 3) ** 2 * 2 + (0.03 - 0.07 / 3) ** 2) / 2) / math.sqrt(3)
    assert found.high - found.value == pytest.approx(4.302653 * error + 0.01, rel=1e-6)  # a step of either end
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_parts_between_certified_rungs_go_by_their_ends():
    found = loss(Level("mcf", "certified", 0.50, 0.51), Level("mcf_paths", "certified", 0.49, 0.505))
    assert (found.low, found.high) == pytest.approx((0.50 - 0.505, 0.51 - 0.49))


def test_one_seed_is_known_within_the_bisection():
    found = loss(exact("split", 0.4), Level("ideal", "measured", 0.375, 0.385, seeds={1: 0.38}, step=0.005))
    assert (found.low, found.value, found.high) == pytest.approx((0.015, 0.02, 0.025))


def test_a_loss_from_a_ceiling_to_a_simulated_level_has_the_interval_of_its_seeds():
    """Student's t of three seeds, 4.3027, and the distance to the farther end of the bracket."""
    seeds = {1: 0.573046, 2: 0.570503, 3: 0.575280}
    ideal = Level("ideal", "measured", 0.47692, 0.61364, seeds=seeds, step=0.09009, middle=0.572943)
    found = loss(exact("split", 0.613636), ideal)
    assert found.value == pytest.approx(0.040693, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((0.040693 - 0.09603, 0.040693 + 0.09603), abs=1e-5)


def test_equal_switches_differ_by_nothing_at_all():
    one, two = level("full_speedup", 0.4, 0.5, scenario="same"), level("switch", 0.4, 0.5, scenario="same")
    assert (loss(one, two).low, loss(one, two).value, loss(one, two).high) == (0, 0, 0)


def test_a_gain_stays_negative():
    found = loss(level("infinite_buffers", 0.40, 0.41), level("full_speedup", 0.45, 0.46))
    assert found.value == pytest.approx(-0.05) and found.high < 0


@pytest.mark.parametrize(
    ("above", "below", "name"),
    [("mcf", "mcf_paths", "paths"), ("split", "ideal", "window"), ("split", "infinite_buffers", "window+blocking"),
     ("full_speedup", "switch", "crossbar"), ("mcf", "switch", "paths+weights+window+blocking+buffers+crossbar")],
)  # fmt: skip
def test_a_part_bears_the_names_of_all_that_lies_between(above, below, name):
    assert Loss(exact(above, 1), exact(below, 1), 0, 0, 0).name == name


# ---- what it says


def table(percents, **more):
    """A ladder of these parts: name -> (percent, half-width)."""
    switch = {"scenario": "a", "rung": "switch", "kind": "measured", "percent": 70, "note": ""}
    parts = [
        {"part": name, "from": "", "to": "", "value": value, "low": value - half, "high": value + half,
         "percent": value, "percent_low": value - half, "percent_high": value + half}
        for name, (value, half) in percents.items()
    ]  # fmt: skip
    return LossBudget("a", [switch], parts, more.get("changes", []), [])


def gain(name, percent, half=0.5):
    return {"change": name, "value": percent, "percent": percent, "low": percent - half, "high": percent + half}


def test_the_sentence_names_the_largest_loss_and_what_gains_most():
    ladder = table(
        {"weights": (5, 0), "window": (12, 1), "buffers": (9, 1), "crossbar": (1, 2)},
        changes=[gain("vcs", 6), gain("buffers", 8), gain("speedup", 20, 30)],
    )
    told = sentence(ladder)
    assert "waiting for buffer space: 9.0\xa0% (8.0 to 10.0)" in told
    assert "four times the buffers gains most, 8.0\xa0%" in told  # not what may be no gain
    assert "Increase measure.ticks" in warning(ladder) and not warning(table({"window": (1.9, 1)}))


def test_no_switch_recovers_what_the_routing_loses():
    assert "other weights on the same paths" in sentence(table({"weights": (29, 0), "buffers": (9, 1)}))
    assert "largest loss does not differ significantly" in sentence(table({"buffers": (1, 2)}))
    assert is_insignificant(gain("vcs", 0.2)) and not is_insignificant(gain("vcs", 1))


# ---- what a configuration comes to


def test_without_figure_there_is_no_budget(study):
    assert study(sets=["outputs.figures=[]"]).budgets == []


def test_a_budget_alone_needs_no_loads(study, tmp_path):
    asked = study(sets=["loads=null"])
    assert [list(one.levels) for one in asked.budgets] == [["ideal", "infinite_buffers", "full_speedup", "switch"]]
    assert [spec.kind for spec in asked.cases[0].ceilings] == ["bounds", "mcf", "mcf_paths", "split"]
    alone = read(tmp_path / "c.yaml", experiment=BUDGET)
    assert (alone.name, alone.cases[0].loads, alone.outputs.figures) == ("b-budget", [], ["budget"])


def test_buffers_without_limit_hold_what_a_channel_carries_in_a_run(study):
    [budget] = study().budgets
    infinite_buffers, full_speedup = (
        budget.levels[name].case.scenario.switching for name in ("infinite_buffers", "full_speedup")
    )
    assert infinite_buffers.buffer_flits == 100 + 9 * 400 + 4 and full_speedup.buffer_flits == 8
    assert not infinite_buffers.shared_input and not full_speedup.shared_input
    assert "all of what a channel can carry" in budget.levels["infinite_buffers"].note


@pytest.mark.parametrize(
    "sets",
    [
        [],
        ["measure={}"],
        ["measure={}", "budget.window=20000"],
        ["loads=null", "measure={}", "experiment=saturation"],
    ],
)
def test_what_was_resolved_measures_the_same(study, tmp_path, sets):
    import yaml

    first = study(sets=sets)
    again = study(yaml.safe_dump(first.resolved()))
    for one, other in zip(first.all_cases, again.all_cases, strict=True):
        assert one.scenario.content_hash == other.scenario.content_hash
        assert measure_of(one.measure, one.scenario) == measure_of(other.measure, other.scenario)


def test_probes_are_long_where_nothing_is_said(study):
    """The longest run of each: a warm-up, a window, and one that is four times as long, which may be repeated."""
    ticks = [study(sets=sets).budgets[0].window for sets in ([], ["measure={}"], ["measure={}", "budget.window=20000"])]
    assert ticks == [100 + 9 * 400, 15_000 + 9 * 30_000, 26_666 + 9 * 53_334]


def test_buffers_that_would_take_too_much_memory_are_left_out(study):
    [budget] = study(sets=["measure.ticks=100000000", "switching.vcs=64"]).budgets
    assert (
        budget.levels["infinite_buffers"].case is None and "too much memory" in budget.levels["infinite_buffers"].note
    )


def test_packets_that_are_deflected_have_no_switch_to_compare_with(study):
    [budget] = study(sets=["routing.kind=deflection"]).budgets
    assert [name for name, rung in budget.levels.items() if rung.case is not None] == ["switch"]
    assert "follow no routes" in budget.levels["ideal"].note


def test_a_change_that_cannot_be_made_says_why(study):
    [budget] = study(
        sets=["switching.vcs=64", "switching.input_speedup=vcs", "budget.sensitivities=[vcs, speedup]"]
    ).budgets
    assert "128" in budget.changes["vcs"].note and "set already" in budget.changes["speedup"].note
    assert all(rung.case is None for rung in budget.changes.values())
    assert "crossbar loses nothing" in budget.levels["full_speedup"].note


@pytest.mark.parametrize(
    ("sets", "rungs"),
    [
        (["routing={kind: minimal, select: adaptive}"], ["ideal", "infinite_buffers", "full_speedup", "switch"]),
        (["switching={mode: wormhole, vcs: 2}"], ["ideal", "infinite_buffers", "full_speedup", "switch"]),
        (["switching={mode: ideal}"], ["ideal", "switch"]),
    ],
)
def test_rungs_of_other_switches_and_routings(study, sets, rungs):
    [budget] = study(sets=[*sets, "budget.sensitivities=[]"]).budgets
    assert [name for name, rung in budget.levels.items() if rung.case is not None] == rungs
    assert all(rung.note for rung in budget.levels.values() if rung.case is None)


def test_a_change_can_be_run_by_itself(study):
    """What is printed as --set gives the very scenario that was measured."""
    [budget] = study(sets=["budget.sensitivities=[vcs, buffers, packets, vcs_and_buffers]"]).budgets
    for rung in budget.changes.values():
        again = study(sets=list(rung.set)).cases[0]
        assert again.scenario.content_hash == rung.case.scenario.content_hash


@pytest.mark.parametrize(
    "change", ["budget.tolerance=0", "budget.sensitivities=[cpu]", "budget.sensitivities=[vcs, vcs]"]
)
def test_wrong_keys_are_refused(study, change):
    with pytest.raises(ConfigError, match=change.partition("=")[0].replace(".", r"\.")):
        study(sets=[change])


def test_some_of_the_scenarios_have_one(study):
    text = CONFIG.replace("budget: {", "budget: {of: [two], ")
    text += "cases: [{label: one}, {label: two, switching: {vcs: 3}}]\n"
    (budget,) = study(text).budgets
    assert budget.case.label == "two"
    with pytest.raises(ConfigError, match=r"budget.of\[0\] = tow: names no scenario; choices: one, two"):
        study(text.replace("[two]", "[tow]"))


def test_only_packets_have_budgets(tmp_path, study):
    study()
    with pytest.raises(ConfigError, match="has no budget"):
        read(tmp_path / "c.yaml", ["switching={mode: datagram}", "traffic={kind: uniform}"], experiment=BUDGET)


# ---- a run


def rows(folder, name):
    with (folder / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with the budget of the configuration, and what was printed as JSON."""
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("budget")
    (folder / "c.yaml").write_text(CONFIG.replace("html: false", "html: true"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["budget", str(folder / "c.yaml"), "--out", str(folder / "run"), "--jobs", "1", "--json"]) == 0
    return folder / "run", json.loads(out.getvalue())


def test_a_rung_whose_bracket_stays_wide_says_so(tmp_path):
    """A slow link whose credits are back after 46 ticks, 8 flits each, in windows that are too short to tell more."""
    (tmp_path / "c.yaml").write_text(
        "topology: {kind: file, directed: false, text: '0 1 0.5 20'}\nrouting: minimal\nengine: reference\n"
        "switching: {vcs: 2, buffer_flits: 4}\ntraffic: {kind: uniform, packet_flits: 2}\nseeds: [1]\n"
        "measure: {warmup: 100, ticks: 300, ci: null}\nbudget: {tolerance: 0.01, longest: 1, sensitivities: []}\n"
        "ceilings: [mcf]\noutputs: {figures: [], html: false}\n"
    )
    assert main(["budget", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1"]) == 0
    (switch,) = (row for row in rows(tmp_path / "run", "budget") if row["rung"] == "switch")
    assert float(switch["value"]) == pytest.approx(2 * 4 / 46, rel=0.15)
    assert "of the lowest ceiling, not 1.0%: needs longer windows (budget.longest)" in switch["note"]


@pytest.mark.long
def test_parts_add_up(done):
    folder, document = done
    values = {row["rung"]: float(row["value"]) for row in rows(folder, "budget") if row["kind"] != "omitted"}
    parts = rows(folder, "budget_parts")
    assert sum(float(row["value"]) for row in parts) == pytest.approx(values["mcf"] - values["switch"], abs=1e-15)
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in parts)
    assert [row["to"] for row in parts] == list(values)[1:]
    for row in document["parts"]:
        assert row.keys() >= {"scenario", "part", "low", "high"}
    for row in document["rungs"]:
        assert row.keys() >= {"scenario", "rung", "lower", "upper", "kind"} and row["lower"] <= row["upper"]


@pytest.mark.long
def test_rungs_are_bracketed_to_the_tolerance(done):
    """The stable load of each seed is known to a tenth of the least ceiling, and no rung exceeds it."""
    folder, _ = done
    limit = min(float(row["upper"]) for row in rows(folder, "budget") if row["kind"] in ("certified", "exact"))
    measured = [row for row in rows(folder, "budget") if row["kind"] == "measured"]
    assert len(measured) == 4
    assert all(0 < float(row["value"]) <= limit * (1 + 1e-9) for row in measured)


@pytest.mark.long
def test_the_speedup_that_is_tried_is_the_crossbar_that_is_lost(done):
    folder, _ = done
    [change], crossbar = rows(folder, "budget_sensitivities"), rows(folder, "budget_parts")[-1]
    assert (change["value"], change["low"], change["high"]) == (crossbar["value"], crossbar["low"], crossbar["high"])
    assert change["set"] == "switching.input_speedup=vcs"


@pytest.mark.long
def test_the_same_command_simulates_nothing_again(done, monkeypatch, capsys):
    folder, _ = done
    before = {file.name: file.read_bytes() for file in folder.glob("budget*.csv")}
    monkeypatch.setattr("flitlab.sim.experiment.points.solve_point", None)
    config = folder.parent / "c.yaml"
    assert main(["budget", str(config), "--out", str(folder), "--jobs", "1"]) == 0
    assert {file.name: file.read_bytes() for file in folder.glob("budget*.csv")} == before
    printed = capsys.readouterr().out
    assert "one change at a time (gains do not add up)" in printed and "carries" in printed


@pytest.mark.long
def test_the_report_begins_with_it(done):
    folder, document = done
    page = (folder / "report.html").read_text()
    assert page.index('id="budget"') < page.index('id="configuration"')
    said = sentence(loss_budgets({"budget": rows(folder, "budget"), "budget_parts": rows(folder, "budget_parts"),
                             "budget_sensitivities": rows(folder, "budget_sensitivities")})[0])  # fmt: skip
    assert said and document["sentences"][0]["sentence"].startswith(said.replace("\xa0", " "))
    assert said.removeprefix("It") in page  # which names the scenario
    assert page.count("data:image/svg+xml") == 1  # the waterfall, once


@pytest.mark.long
def test_a_budget_beside_a_sweep_leaves_its_table_alone(study, tmp_path):
    from flitlab.sim.experiment.runner import run

    asked = study(sets=["budget.sensitivities=[]", "seeds=[1]", "budget.tolerance=0.3"])
    report = run(asked, tmp_path / "run")
    assert [row["load"] for row in report.results] == [0.1]
    assert {row["ceiling"].partition(":")[0] for row in report.ceilings} == {"bounds", "mcf", "mcf_paths", "split"}
    assert len(report.tables["budget.csv"]) == 7 and report.problems == []


@pytest.mark.long
def test_an_interrupted_budget_goes_on_to_the_same_bytes(done, capsys):
    folder, _ = done
    before = {file.name: file.read_bytes() for file in folder.glob("budget*.csv")}
    points = sorted(folder.glob("points/*.json"))
    for file in points[::2]:
        file.unlink()
    assert main(["budget", str(folder.parent / "c.yaml"), "--out", str(folder), "--jobs", "1"]) == 0
    assert sorted(folder.glob("points/*.json")) == points
    assert {file.name: file.read_bytes() for file in folder.glob("budget*.csv")} == before


@pytest.mark.long
def test_any_number_of_processes_gives_the_same_bytes(done, tmp_path):
    folder, _ = done
    assert main(["budget", str(folder.parent / "c.yaml"), "--out", str(tmp_path / "run"), "--jobs", "3", "--json"]) == 0
    for file in folder.glob("budget*.csv"):
        assert (tmp_path / "run" / file.name).read_bytes() == file.read_bytes()


def test_larger_buffers_than_without_limit_change_nothing(study):
    """Not at a load that fills every smaller buffer either."""
    [budget] = study(sets=["budget.sensitivities=[]"]).budgets

    def row(name, factor=1):
        case = budget.levels[name].case
        switching = replace(case.scenario.switching, buffer_flits=factor * case.scenario.switching.buffer_flits)
        scenario = replace(case.scenario, switching=switching)
        found = measure("compiled", scenario, 1.0, 1, how(scenario, measure_of(case.measure, scenario))).row
        return {column: value for column, value in found.items() if column != "cpu_s"}

    assert row("infinite_buffers") == row("infinite_buffers", 2)
    assert row("full_speedup") != row("infinite_buffers")
