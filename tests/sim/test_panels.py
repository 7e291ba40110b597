# SPDX-License-Identifier: Apache-2.0
"""Figures with panels: what stands where, what is averaged, and that nothing moves, collides or is left out unsaid."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.report.figures import draw as figures
from flitlab.sim.report.figures.kinds.performance import ACROSS, performance
from flitlab.sim.report.figures.kinds.saturation import bars_of, saturation
from flitlab.sim.report.figures.kinds.timeline import timeline
from flitlab.sim.report.figures.load_curves import round_up
from flitlab.sim.report.figures.marks import Name
from flitlab.sim.report.figures.panels import MOST_CURVES, MOST_PANELS, layout
from flitlab.sim.report.figures.registry import figures as registered
from flitlab.sim.report.figures.style import in_style
from flitlab.sim.report.folder.ceilings import Ceiling
from flitlab.sim.report.folder.curves import curves
from flitlab.sim.report.folder.frames import column
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.charts import charts
from tests import long_after

LOADS = (0.1, 0.3, 0.5, 0.7)


def run_of(sweeps, knee=0.55, latency=20.0, loads=LOADS, seeds=(1, 2), **manifest):
    """A run that sweeps keys over values; latency grows by the number of a scenario, and past the knee tenfold."""
    rows, ceilings, scenarios = [], [], []
    for i, values in enumerate(itertools.product(*sweeps.values())):
        keys = dict(zip(sweeps, map(str, values), strict=True))
        label = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in keys.items())
        scenarios.append({"label": label, "keys": keys, "zero_load_latency": latency - 1})
        ceilings.append(Ceiling(label, "mcf", math.nan, 0.6 + 0.01 * i, 0.6 + 0.01 * i, "load", "exact", ""))
        ceilings.append(Ceiling(label, "split", math.nan, 0.5, 0.5, "load", "exact", ""))
        for load, seed in itertools.product(loads, seeds):
            past = load > knee
            took = (latency + i + seed / 10) * (10 if past else 1)
            rows.append(
                {"scenario": label, **keys}
                | {name: str(value) for name, value in {
                    "load": load, "seed": seed, "offered": load, "accepted": min(load, knee), "latency_mean": took,
                    "latency_ci95": 1.0, "hops_mean": 2, "saturated": past, "latency_p99": 2 * took,
                }.items()}
            )  # fmt: skip
    return Run(rows, [], ceilings, {"columns": list(sweeps), "scenarios": scenarios, **manifest})


FACETS = {"topology": ["imase", "torus", "rrg"], "routing": ["minimal", "valiant"], "traffic.kind": ["uniform", "ring"]}


def drawn(run, name="latency_load"):
    found = figures.figure_of(run, name)
    assert found is not None
    found.draw_without_rendering()
    return found


def of(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def key(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()], legend.get_title().get_text()


def test_topologies_and_traffic_are_panels_and_routings_keep_their_colour():
    run = run_of(FACETS)
    plan = layout(run)
    assert [panel.name for panel in plan.panels] == [
        f"{topology}, {traffic}" for topology in FACETS["topology"] for traffic in FACETS["traffic.kind"]
    ]
    assert list(plan.curves) == ["routing=minimal", "routing=valiant"]
    figure = drawn(run)
    colours = [[to_hex(line.get_color()) for line in of(ax, "curve")] for ax in figure.axes]
    assert colours == [["#0072b2", "#d55e00"]] * 6
    assert len({(*ax.get_xlim(), *ax.get_ylim()) for ax in figure.axes}) == 1
    assert [ax.get_title() for ax in figure.axes] == [panel.name for panel in plan.panels]
    assert key(figure)[0][:2] == ["minimal", "valiant"]
    rows = sorted({round(ax.get_position().y0, 6) for ax in figure.axes})
    assert len(rows) == 3  # a topology each


@pytest.mark.long
def test_a_curve_without_a_value_in_one_panel_has_its_own_colour_in_the_others():
    run = run_of({"topology": ["a", "b"], "routing": ["x", "y", "z"]})
    run = replace(run, rows=[row for row in run.rows if row["scenario"] != "topology=a, routing=x"])
    first, second = drawn(run).axes
    assert [to_hex(line.get_color()) for line in of(first, "curve")] == ["#d55e00", "#009e73"]
    assert [to_hex(line.get_color()) for line in of(second, "curve")] == ["#0072b2", "#d55e00", "#009e73"]


def test_ceilings_stand_in_the_panel_of_their_scenario_only():
    run = run_of({"topology": ["a", "b"], "routing": ["x", "y"]})
    values = [sorted({round(line.get_xdata()[0], 9) for line in of(ax, "ceiling")}) for ax in drawn(run).axes]
    assert values == [[0.5, 0.6, 0.61], [0.5, 0.62, 0.63]]


def test_draws_of_a_topology_are_one_curve_with_their_spread():
    run = run_of({"topology.seed": [1, 2, 3], "routing": ["x", "y"]})
    (panel,) = layout(run).panels
    curve, _ = curves(panel.run.rows, column("accepted"), column("latency_mean"), column("latency_ci95"))
    means = [20.15 + i for i in (0, 2, 4)]  # of two seeds each
    assert (curve.y[0], curve.half[0]) == pytest.approx(mean_and_half(means))
    assert (curve.low[0], curve.high[0]) == pytest.approx((means[0], means[-1]))
    mcf = next(one for one in panel.run.ceilings if one.name == "mcf")
    assert (mcf.upper, *mcf.range) == pytest.approx((0.62, 0.6, 0.64))
    figure = drawn(run)
    entries, title = key(figure)
    assert "whiskers: range of 3 draws" in entries
    assert "means over 3 draws" in title
    assert len(of(figure.axes[0], "curve")) == 2


def test_only_loads_that_all_draws_have_are_averaged():
    run = run_of({"topology.seed": [1, 2]})
    run = replace(run, rows=[row for row in run.rows if (row["topology.seed"], row["load"]) != ("2", "0.7")])
    (panel,) = layout(run).panels
    (curve,) = curves(panel.run.rows, column("accepted"), column("latency_mean"))
    assert curve.load.tolist() == [0.1, 0.3, 0.5]


def test_averaged_ceilings_are_weighted_by_traffic():
    run = run_of({"traffic.seed": [1, 2]}, mean_rate={"seed=1": 0.5, "seed=2": 1.0})
    (panel,) = layout(run).panels
    mcf = next(mark for mark in panel.run.thetas() if mark.name == "mcf")
    assert mcf.upper == pytest.approx((0.6 * 0.5 + 0.61 * 1.0) / 2)


@pytest.mark.parametrize("count", long_after(1, [MOST_CURVES + 1, MOST_CURVES]))
def test_twelve_curves_are_the_limit(count):
    run = run_of({"switching.vcs": range(count)})
    plan = layout(run)
    assert [len(panel.run.scenarios) for panel in plan.panels] == ([12] if count == 12 else [12, 1])
    assert sum(len(of(ax, "curve")) for ax in drawn(run).axes) == count


def test_further_keys_make_panels_before_routings_do():
    plan = layout(run_of({"switching.vcs": [2, 4, 8], "routing": list("abcdefg")}))
    assert [panel.name for panel in plan.panels] == ["vcs=2", "vcs=4", "vcs=8"]


@pytest.mark.long
def test_panels_that_are_left_out_are_told():
    run = run_of({"topology.n": range(MOST_PANELS + 2)}, loads=(0.1,), seeds=(1,))
    figure = drawn(run)
    assert len(figure.axes) == MOST_PANELS
    assert "the first 24 of 26 panels" in key(figure)[1].replace("\n", " ")


@pytest.mark.long
def test_one_pair_of_axes_has_all_curves_or_refuses():
    run = run_of(FACETS)
    figure = drawn(run_of({"routing": ["a"]}))
    ax = figure.axes[0]
    ax.clear()
    figures.draw_on(ax, run, "latency_load")
    assert len(of(ax, "curve")) == 12
    with pytest.raises(ValueError, match="13 curves are more than one pair of axes can show"):
        figures.draw_on(ax, run_of({"switching.vcs": range(13)}), "latency_load")


def test_probes_of_a_search_are_markers_without_bands():
    run = run_of({"routing": ["a", "b"]}, seeds=(1,))
    run.manifest["scenarios"][0]["searched"] = True
    figure = drawn(run)
    ax = figure.axes[0]
    (probes,), (joined,) = of(ax, "probes"), of(ax, "curve")
    assert (probes.get_linestyle(), joined.get_linestyle()) == ("None", "--")
    assert len([one for one in ax.collections if one.get_gid() == "band"]) == 1
    assert "not joined" in key(figure)[1]
    first, second = (chart["series"] for chart in charts(run, None)[:2])
    assert [line.get("apart", False) for line in first] == [True, False]
    assert not any(line.get("apart") for line in second)


def test_probes_over_the_load_are_joined_by_a_thin_line():
    run = run_of({"routing": ["a", "b"]}, seeds=(1,))
    run.manifest["scenarios"][0]["searched"] = True
    figure = drawn(run, "accepted_load")
    (probes,), (thin,) = of(figure.axes[0], "probes"), of(figure.axes[0], "between")
    assert probes.get_linestyle() == "None" and thin.get_linewidth() < 1
    assert thin.get_xdata().tolist() == probes.get_xdata().tolist() == sorted(probes.get_xdata())
    assert "not joined" not in key(figure)[1] and "probes of a search" in key(figure)[1]


@pytest.mark.long
def test_the_break_of_the_axis_does_not_move_with_what_was_measured():
    def ends(**more):
        ax = drawn(run_of({"routing": ["a", "b"]}, **more)).axes[0]
        return ax.yaxis.get_transform().linthresh

    assert ends() == ends(seeds=(1,)) == ends(loads=(0.5, 0.6, 0.9)) == ends(knee=0.2) == round_up(3 * 19)
    below = drawn(run_of({"routing": ["a", "b"]}, loads=(0.1, 0.2))).axes[0]
    assert (below.get_yscale(), below.get_ylim()) == ("linear", (0, round_up(3 * 19)))


def test_the_axis_may_be_all_linear_or_all_logarithmic_and_says_so():
    figure = drawn(run_of({"routing": ["a"]}, y="linear"))
    assert (figure.axes[0].get_yscale(), figure.axes[0].get_ylim()) == ("linear", (0, 60))
    assert "2 points above the axis, up to 202" in key(figure)[0]
    figure = drawn(run_of({"routing": ["a"]}, y="log"))
    assert figure.axes[0].get_yscale() == "log"
    assert figure.axes[0].get_ylabel().endswith(", log scale")


def boxes(figure):
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        yield ax, [text.get_window_extent(renderer) for text in ax.texts if isinstance(text, Name)]


@pytest.mark.parametrize("name", ["latency_load", "accepted_load"])
@pytest.mark.parametrize("routings", long_after(1, [5, 2]))
def test_names_of_ceilings_cover_no_marker_no_curve_and_no_other_name(name, routings):
    dense = tuple(np.linspace(0.05, 0.7, 40).round(3))
    run = run_of({"topology": ["a", "b"], "routing": list("abcde")[:routings]}, loads=dense, seeds=(1,))
    figure = drawn(run, name)
    for ax, found in boxes(figure):
        frame = ax.get_window_extent()
        assert not any(one.overlaps(other) for one, other in itertools.combinations(found, 2))
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in found)
        for line in (*of(ax, "curve"), *of(ax, "saturated")):
            points = line.get_transform().transform(line.get_xydata())
            assert not any(box.contains(*point) for box in found for point in points)
        for line in of(ax, "curve"):
            along = line.get_transform().transform_path(line.get_path())
            assert not any(along.intersects_bbox(box, filled=False) for box in found)
    named = {text.instead.get_label() for ax in figure.axes for text in ax.texts if isinstance(text, Name)}
    assert {"mcf", "split"} <= named | set(key(figure)[0])


def test_saturation_is_bars_below_the_chain_of_ceilings():
    run = run_of({"topology": ["a", "b"], "routing": ["x", "y"]})
    figure = saturation(run, (3.5, 2.4))
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "x", "y", "b", "x", "y"]
    assert [patch.get_width() for patch in ax.patches] == pytest.approx([0.55] * 4)
    ends = of(ax, "ceiling")
    assert [line.get_xdata()[0] for line in ends[:2]] == [0.6, 0.5]
    assert [text.get_text() for text in ax.texts if text.get_gid() == "share"] == ["92", "90", "89", "87"]
    assert key(figure)[0] == ["mcf", "split"]


def test_the_saturation_of_a_single_seed_has_the_range_of_its_sweep():
    """A load of 0.5 is carried and 0.6 is not: nothing between them was run."""
    run = run_of({"routing": ["x"]}, seeds=(1,))
    (bar,) = bars_of(run, layout(run).panels[0])
    assert (bar.low, bar.high, bar.bracket) == (0.5, 0.6, True)
    (drawn,) = of(saturation(run, (3.5, 2.4)).axes[0], "interval")
    assert drawn.get_xdata() == pytest.approx([bar.low, bar.high])


def test_a_scenario_that_delivers_more_than_the_limit_is_a_hollow_bar_with_its_range():
    """Beyond the limit of 0.53 an uneven demand delivers 0.55 of a load: all but what its busiest channel refuses."""
    run = run_of({"routing": ["x"]}, seeds=(1,))
    run = replace(run, ceilings=[replace(one, lower=0.53, upper=0.53) for one in run.ceilings if one.name == "mcf"])
    figure = saturation(run, (3.5, 2.4))
    assert [(patch.get_gid(), patch.get_width()) for patch in figure.axes[0].patches] == [("carried", 0.5)]
    assert of(figure.axes[0], "interval")[0].get_xdata() == pytest.approx([0.5, 0.53])


def test_a_scenario_that_is_not_saturated_has_a_hollow_bar():
    run = run_of({"routing": ["x", "y"]})
    rows = [row | ({"saturated": "False"} if row["routing"] == "y" else {}) for row in run.rows]
    ceilings = [one for one in run.ceilings if one.name == "mcf" and one.scenario != "routing=y"]
    run = replace(run, rows=[row | ({"accepted": row["load"]} if row["routing"] == "y" else {}) for row in rows])
    run = replace(run, ceilings=ceilings)
    figure = saturation(run, (3.5, 2.4))
    assert [patch.get_gid() for patch in figure.axes[0].patches] == ["bar", "carried"]
    assert "hollow: load carried, no saturation point" in key(figure)[0]


def test_the_bar_of_draws_is_their_mean():
    run = run_of({"topology.seed": [1, 2]})
    rows = [
        row | ({"accepted": "0.5"} if row["topology.seed"] == "2" and row["load"] == "0.7" else {}) for row in run.rows
    ]
    run = replace(run, rows=rows)
    (panel,) = layout(run).panels
    (bar,) = bars_of(run, panel)
    assert bar.value == pytest.approx((0.55 + 0.5) / 2)


def test_interactive_charts_have_the_same_panels_and_ends():
    found = [chart for chart in charts(run_of(FACETS), None) if chart["name"].startswith("latency_load")]
    assert [chart["name"] for chart in found] == ["latency_load", *(f"latency_load.{i}" for i in range(2, 7))]
    assert {chart["panel"] for chart in found} == {panel.name for panel in layout(run_of(FACETS)).panels}
    assert len({json.dumps(chart["ends"]) for chart in found}) == 1
    assert all([line["look"] for line in chart["series"]] == [0, 1] for chart in found)
    assert found[0]["y"]["zero"] == 19


PROGRAMS = {"application": ["a_program_of_a_long_name", "b"], "case": ["uni-directional", "bi-directional"]}


def programs(**tables):
    """A run of two programs on two networks, with relative performance and bounds."""
    rows = [
        {"scenario": f"{case}, {kind}", "application": kind, "case": case, "seed": "1"}
        | {"relative_performance": str(1 + 0.1 * i), "efficiency": "0.5"}
        for i, case in enumerate(PROGRAMS["case"]) for kind in PROGRAMS["application"]
    ]  # fmt: skip
    manifest = {"experiment": "application", "columns": ["application", "case"]}
    return Run(rows, [], [], manifest, tables=tables)


def test_bars_of_means_over_programs_are_hatched_across_and_nowhere_dark():
    figure = performance(programs(), (3.5, 2.4))
    rest = [patch for patch in figure.axes[0].patches if patch.get_gid() == "rest"]
    means = [patch for patch in rest if ACROSS in patch.get_hatch()]
    assert [patch.get_height() for patch in means] == pytest.approx([1.0, 1.1])
    assert len(rest) == 6
    assert "mean over programs" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_panels_of_a_program_have_the_same_time_and_whole_titles():
    rows = [
        {"scenario": f"{case}, {kind}", "seed": "1", "rank": str(rank), "compute": "1", "overhead": "0", "message": "0"}
        | {"from_ns": "0", "to_ns": str(1000 * (i + 1) * (10 if kind == "b" else 1))}
        for i, case in enumerate(PROGRAMS["case"]) for kind in PROGRAMS["application"] for rank in range(2)
    ]  # fmt: skip
    figure = timeline(programs(timeline=rows), (3.5, 2.4))
    assert [ax.get_xlim()[1] for ax in figure.axes] == [2.0, 2.0, 20.0, 20.0]
    titles = [ax.get_title().replace("\n", " ") for ax in figure.axes]
    assert titles[0] == "a_program_of_a_long_name, uni-directional, time (µs)"


def test_the_caption_of_a_figure_is_the_first_paragraph_of_its_meaning():
    for kind in registered().values():
        assert "\n" not in kind.caption and kind.caption.endswith(".")
        assert " ".join(kind.meaning.split()).startswith(kind.caption)
    assert "hollow" in registered()["latency_load"].meaning


@pytest.mark.parametrize("name", ["latency_load", "accepted_load", "saturation"])
@pytest.mark.parametrize("key_of_panels", long_after(1, ["topology", "vcs"]))
def test_labels_of_300_characters_leave_axes_their_place(name, key_of_panels):
    """Both labels begin and end alike, and each has its own entry."""
    long = ["a" * 300, "a" * 150 + "b" + "a" * 149]
    run = run_of({key_of_panels: long, "routing": long} if key_of_panels == "topology" else {"routing": long})
    figure = drawn(run, name) if name != "saturation" else in_style(saturation)(run, (3.5, 2.4))
    assert figure is not None
    figure.draw_without_rendering()
    page = figure.bbox
    for ax in figure.axes:
        assert ax.bbox.width > 0.25 * page.width and ax.bbox.height > 0.15 * page.height
    for legend in figure.legends:
        assert legend.get_window_extent().width <= page.width
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()] if name == "saturation" else key(figure)[0]
    shown = [one for one in names if "…" in one]
    assert len(set(shown)) == 2 and max(map(len, shown)) < 60
