# SPDX-License-Identifier: Apache-2.0
"""Figures and page of a synthetic run: what is on them, and the same bytes every time."""

import base64
import csv
import doctest
import json
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from flitlab.models.registry import make
from flitlab.sim.cli import main
from flitlab.sim.config.reporting import OutputsConfig
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import number
from flitlab.sim.report import html
from flitlab.sim.report.figures import draw as figures
from flitlab.sim.report.figures.registry import figures as registered
from flitlab.sim.report.folder import names
from flitlab.sim.report.folder.ceilings import Ceiling
from flitlab.sim.report.folder.curves import curves
from flitlab.sim.report.folder.frames import column, load
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.units import Units
from flitlab.sim.report.html import answer, charts, network, tables

COLUMNS = [
    *("scenario", "routing", "load", "seed", "offered", "accepted", "accepted_flit_per_ns_per_host"),
    *("latency_mean", "latency_ci95", "latency_p50", "latency_p99", "latency_p999"),
    *("hops_mean", "saturated", "deadlocked", "status"),
]
CEILINGS = ["scenario", "load", "ceiling", "lower", "upper", "unit", "method", "seconds", "note"]


def point(routing, load, seed, knee, flit_ns, base=135.0):
    """One synthetic row: latency like 1/(1 - load/knee), a hundredfold jump and a flat end past the knee."""
    rng = random.Random(f"{routing} {load} {seed}")
    past = load > knee
    accepted = knee * (0.985 if past else 1) * (1 + rng.gauss(0, 0.004)) if past else load
    latency = base * (100 + 60 * (load - knee) if past else 0.75 + 0.25 / (1.03 - load / knee))
    return {
        "scenario": f"routing={routing}", "routing": routing, "load": load, "seed": seed, "offered": load,
        "accepted": accepted, "accepted_flit_per_ns_per_host": accepted / flit_ns if flit_ns else "",
        "latency_mean": latency * (1 + rng.gauss(0, 0.02 if past else 0.004)), "latency_ci95": 0.02 * latency,
        "latency_p50": 0.95 * latency, "latency_p99": 2.1 * latency, "latency_p999": 3 * latency,
        "hops_mean": 2.85 * (1 + (0.5 * min(load / knee, 1) ** 4 if routing == "deflection" else 0)),
        "saturated": past, "deadlocked": False, "status": "done",
    }  # fmt: skip


def total(load, theta):
    """A concave bound on accepted traffic that leaves the diagonal at theta."""
    return load if load <= theta else theta + 0.35 * (load - theta)


def write_csv(path, rows, columns):
    """Writes dicts; what a row lacks is empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def ceiling_rows(loads, theta=0.562, split=0.44, paths=0.5581):
    """Ceilings of two routings over one topology: mcf is shared, the paths of deflection mean nothing."""
    rows = []
    for scenario in ("routing=minimal", "routing=deflection"):
        base = {"scenario": scenario, "unit": "load", "method": "approx", "seconds": 1.5}
        rows.append(base | {"ceiling": "mcf", "lower": theta - 0.004, "upper": theta + 0.001})
        for name, value in (("mcf_paths", paths), ("split", split)):
            known = {"lower": value, "upper": value, "method": "exact"}
            why = {"note": "deflection has no path set: any channel may be taken"}
            rows.append(base | {"ceiling": name} | (known if scenario.endswith("minimal") else why))
        rows += [base | {"ceiling": "total", "load": x, "lower": 0, "upper": total(x, theta)} for x in loads]
    return rows


def write_run(folder, flit_ns=2.667, seeds=3, loads=12):
    """A run folder: two routings, loads to past saturation."""
    folder.mkdir(parents=True, exist_ok=True)
    loads = [round(0.05 * (i + 1), 3) for i in range(loads)]
    rows = [
        point(routing, load, seed, knee, flit_ns)
        for routing, knee in (("minimal", 0.427), ("deflection", 0.512))
        for load in loads
        for seed in range(1, seeds + 1)
    ]
    write_csv(folder / "results.csv", rows, COLUMNS)
    write_csv(folder / "ceilings.csv", ceiling_rows(loads), CEILINGS)
    manifest = {"name": "uniform_mddp", "flit_ns": flit_ns, "versions": {"flitlab": "0.1.0"}, "seeds": [1, 2]}
    manifest |= {"semantics_version": 1, "config_hash": ""}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "config.yaml").write_text("schema: 1\nname: uniform_mddp   # <the quick one>\n")
    return folder


def figure(folder, kind="latency_load") -> Figure:
    """A figure as matplotlib objects."""
    drawn = figures.figure_of(Run.read(folder), kind)
    assert drawn is not None
    return drawn


def lines(drawn, gid):
    """Lines of one sort on the axes."""
    return [line for line in drawn.axes[0].lines if line.get_gid() == gid]


def texts(drawn, gid):
    """Texts of one sort on the axes."""
    return [text.get_text() for text in drawn.axes[0].texts if text.get_gid() == gid]


def key(drawn):
    """Texts of the legend."""
    return [text.get_text() for text in drawn.legends[0].get_texts()]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The usual run folder, read only."""
    return write_run(tmp_path_factory.mktemp("runs") / "usual")


def test_draw_writes_png_and_svg_of_each_kind(run):
    written = figures.draw(run, ["latency_load", "accepted_load"])
    names = ["latency_load.png", "latency_load.svg", "accepted_load.png", "accepted_load.svg"]
    assert [path.name for path in written] == names
    assert all(path.parent == run / "figures" and path.stat().st_size > 5000 for path in written)


def test_the_figures_of_a_run_are_those_whose_files_say_so():
    assert OutputsConfig().figures == sorted(name for name, kind in registered().items() if kind.usual)


def test_same_bytes_twice(run):
    first = [path.read_bytes() for path in figures.draw(run, ["latency_load"])]
    assert first == [path.read_bytes() for path in figures.draw(run, ["latency_load"])]
    assert b"dc:date" not in first[1]


def test_unknown_kind_lists_the_right_ones(run):
    with pytest.raises(ValueError, match="no figure named latency; choices: latency_load, accepted_load"):
        figures.draw(run, ["latency"])


@pytest.mark.parametrize(
    "kind",
    [
        name for name, kind in registered().items()
        if "packets" in kind.of and not kind.is_whole and name != "throughput_time"
    ],
)  # fmt: skip
def test_one_curve_per_scenario_and_a_key(run, kind):
    drawn = figure(run, kind)
    assert len(lines(drawn, "curve")) == 2 * (3 if kind == "percentiles" else 1)
    assert key(drawn)[:2] == ["minimal", "deflection"]
    assert key(drawn)[-1] == "past saturation"
    assert drawn.legends[0].get_title().get_text() == "routing"


def test_latency_load_is_in_ns_over_accepted_traffic(run):
    drawn = figure(run)
    ax = drawn.axes[0]
    assert ax.get_xlabel() == "accepted traffic (flit/ns/host)"
    assert ax.get_ylabel() == "mean packet latency (ns)"
    assert ax.child_axes[0].get_xlabel() == "flit/tick/host"
    x, y = lines(drawn, "curve")[0].get_data()
    assert len(x) == 12
    assert x[0] == pytest.approx(0.05 / 2.667)
    rows = [row for row in Run.read(run).rows if row["routing"] == "minimal" and row["load"] == "0.05"]
    assert y[0] == pytest.approx(2.667 * np.mean([number(row, "latency_mean") for row in rows]))


def test_no_point_is_clipped_and_the_knee_stays_readable(run):
    drawn = figure(run)
    ax = drawn.axes[0]
    low, high = ax.get_ylim()
    assert low == 0
    assert all(max(line.get_ydata()) < high for line in lines(drawn, "curve"))
    below_the_log_part = ax.transData.transform((0, 1500))[1] - ax.transData.transform((0, 0))[1]
    assert below_the_log_part > 0.6 * ax.get_window_extent().height
    assert texts(drawn, "log") == ["log scale"]


def test_points_past_saturation_are_hollow(run):
    hollow = lines(figure(run), "saturated")
    assert [len(line.get_xdata()) for line in hollow] == [4, 2]
    assert {line.get_markerfacecolor() for line in hollow} == {"white"}


def test_shared_ceiling_is_drawn_and_named_once(run):
    drawn = figure(run)
    assert texts(drawn, "theta") == ["split (\u200a⚫\u200a)", "mcf_paths (\u200a⚫\u200a)", "mcf"]
    at = [line.get_xdata()[0] * 2.667 for line in lines(drawn, "ceiling")]
    assert at == pytest.approx([0.44, 0.5581, 0.563])
    interval = next(patch for patch in drawn.axes[0].patches if patch.get_gid() == "interval")
    assert interval.get_x() * 2.667 == pytest.approx(0.558)


def test_names_keep_apart_and_inside(run):
    for kind in ("latency_load", "accepted_load"):
        drawn = figure(run, kind)
        ax, renderer = drawn.axes[0], drawn.canvas.get_renderer()
        boxes = [text.get_window_extent(renderer) for text in ax.texts]
        frame = ax.get_window_extent(renderer)
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)


def test_total_is_a_curve_and_bounds_what_is_accepted(run):
    drawn = figure(run, "accepted_load")
    (bound,) = lines(drawn, "total")
    assert texts(drawn, "total") == ["total"]
    assert bound.get_ydata()[-1] * 2.667 == pytest.approx(total(0.6, 0.562))
    assert len(lines(drawn, "diagonal")) == 1


def test_mean_rate_turns_theta_into_accepted_traffic(tmp_path):
    write_run(tmp_path, flit_ns=None)
    (tmp_path / "manifest.json").write_text(json.dumps({"mean_rate": {"routing=minimal": 0.5}}))
    marks = {(mark.name, mark.scenarios): mark.upper for mark in Run.read(tmp_path).thetas()}
    assert marks["split", ("routing=minimal",)] == pytest.approx(0.22)
    assert marks["mcf", ("routing=deflection",)] == pytest.approx(0.563)


def test_ticks_without_flit_ns_and_the_argument_wins(tmp_path):
    write_run(tmp_path, flit_ns=None, seeds=1, loads=3)
    ax = figure(tmp_path).axes[0]
    assert ax.get_xlabel() == "accepted traffic (flit/tick/host)"
    assert not ax.child_axes
    assert Run.read(tmp_path).units(2.0) == Units(2.0)


def test_flit_ns_is_found_in_the_columns(tmp_path):
    write_run(tmp_path, flit_ns=4.0, seeds=1, loads=2)
    (tmp_path / "manifest.json").unlink()
    assert Run.read(tmp_path).units().flit_ns == pytest.approx(4.0)


def test_confidence_band_over_replicates_or_from_the_run_itself():
    assert mean_and_half([1.0, 2.0, 3.0]) == pytest.approx((2.0, 4.302653 / 3**0.5))
    rows = [{"scenario": "a", "load": "0.1", "latency_mean": "10", "latency_ci95": "0.5"}]
    by = {"x": load, "y": column("latency_mean"), "half": column("latency_ci95")}
    assert curves(rows, **by)[0].half[0] == 0.5
    rows.append(rows[0] | {"latency_mean": "12"})
    (curve,) = curves(rows, **by)
    assert (curve.y[0], curve.replicates[0]) == (11, 2)
    assert curve.half[0] == pytest.approx(12.7062)


def test_failed_points_and_nan_are_left_out_and_counted(tmp_path):
    rows = [point("minimal", x, 1, 0.4, None) for x in (0.1, 0.2, 0.3)]
    rows[0]["status"] = "failed"
    rows[1]["latency_mean"] = ""
    write_csv(tmp_path / "results.csv", rows, COLUMNS)
    drawn = figure(tmp_path)
    assert [len(line.get_xdata()) for line in lines(drawn, "curve")] == [1]
    assert "1 failed point left out" in drawn.legends[0].get_title().get_text()


def test_far_ceilings_do_not_squash_the_data(tmp_path):
    write_csv(tmp_path / "results.csv", [point("minimal", 0.1, 1, 0.4, None)], COLUMNS)
    ceiling = {"scenario": "routing=minimal", "ceiling": "mcf", "lower": 0.9, "upper": 0.95}
    write_csv(tmp_path / "ceilings.csv", [ceiling], CEILINGS)
    drawn = figure(tmp_path)
    assert drawn.axes[0].get_xlim()[1] < 0.2
    assert texts(drawn, "far") == ["mcf at 0.95 →"]


@pytest.mark.long
def test_ceilings_alone_and_nothing_at_all(tmp_path):
    assert figures.draw(tmp_path) == []
    write_csv(tmp_path / "ceilings.csv", ceiling_rows([0.2, 0.4, 0.6, 0.8]), CEILINGS)
    assert [path.name for path in figures.draw(tmp_path)] == ["accepted_load.png", "accepted_load.svg"]
    assert key(figure(tmp_path, "accepted_load")) == ["minimal", "deflection"]


def test_missing_columns(tmp_path):
    (tmp_path / "results.csv").write_text("scenario,offered,accepted\na,0.1,0.1\na,0.2,0.19\n")
    assert [path.stem for path in figures.draw(tmp_path)] == ["accepted_load"] * 2
    (tmp_path / "results.csv").write_text("scenario,throughput_mean\na,0.9\n")
    assert figures.draw(tmp_path) == []


def test_ceilings_merge_only_if_equal_or_overlapping_by_the_same_method():
    def marks(*ends):
        ceilings = [Ceiling(str(i), "mcf", np.nan, *end, "load", how, "") for i, (*end, how) in enumerate(ends)]
        return [(m.scenarios, m.lower, m.upper) for m in Run([], [], ceilings, {}).thetas()]

    assert marks((0.5, 0.5, "exact"), (0.5 + 1e-12, 0.5, "approx")) == [(("0", "1"), 0.5, 0.5)]
    assert marks((0.5, 0.51, "approx"), (0.505, 0.52, "approx")) == [(("0", "1"), 0.5, 0.52)]
    assert len(marks((0.5, 0.51, "approx"), (0.505, 0.52, "exact"))) == 2
    assert len(marks((0.5, 0.5, "exact"), (0.6, 0.6, "exact"))) == 2


def test_examples_in_docstrings():
    assert doctest.testmod(names).failed == doctest.testmod(answer).failed == doctest.testmod(tables).failed == 0


def test_short_names():
    names = Names([f"topology.degree={d}, routing={r}" for d in (6, 8) for r in ("minimal", "deflection")])
    assert names[names.labels[1]] == "degree=6, deflection"
    assert names.title == ""
    assert Names(["Imase, d = 8", "Kautz"])["Imase, d = 8"] == "Imase, d = 8"
    assert Names(["routing=minimal"])["routing=minimal"] == "minimal"


OUTSIDE = re.compile(
    r"""(?:src|href)="(?!data:|#)|url\((?!#)|@import|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org)"""
)
"""What would load something from elsewhere."""


def test_page_is_self_contained_and_escaped(run):
    figures.draw(run, ["latency_load"])
    page = html.write(run)
    text = page.read_text("utf-8")
    assert page == run / "report.html"
    assert 'src="data:image/svg+xml;base64,' in text
    assert not OUTSIDE.search(text)
    assert "default-src 'none'" in text
    assert "&lt;the quick one&gt;" in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text
    assert "deflection has no path set" in text
    assert "versions.flitlab" in text
    assert text.count('<tr><td class="text">routing=minimal') == 1 + 12 + 3 + 12  # scenarios, loads, ceilings, totals
    assert text == html.write(run).read_text("utf-8")


def test_page_says_what_share_of_the_ceiling_is_reached(run):
    text = html.write(run).read_text("utf-8")
    found = answer.scenario_summaries(Run.read(run))
    assert [s.ceiling for s in found] == ["mcf 0.563"] * 2
    assert [s.share for s in found] == pytest.approx([0.427 * 0.985 / 0.563, 0.512 * 0.985 / 0.563], rel=0.02)
    assert answer.sentence(Run.read(run), found) in text
    of = "of the load that any routing could carry on the same network"
    assert re.search(rf"deflection reaches 8\d\xa0% {of} \(saturation at 0\.5\d+\), the best of 2", text)
    assert re.search(r"; minimal reaches 7\d\xa0% \(saturation at 0\.4\d+\), the worst\.", text)


def test_what_the_share_is_of_is_said(tmp_path):
    rows = [point("minimal", x, 1, 0.4, None) for x in (0.1, 0.3, 0.5)]
    write_csv(tmp_path / "results.csv", rows, COLUMNS)
    assert "No ceiling is known" in answer.sentence(Run.read(tmp_path), answer.scenario_summaries(Run.read(tmp_path)))
    write_csv(tmp_path / "ceilings.csv", [row for row in ceiling_rows([]) if row["ceiling"] != "mcf"], CEILINGS)
    run = Run.read(tmp_path)
    (found,) = (s for s in answer.scenario_summaries(run) if s.value > 0)
    assert (found.name, found.share) == ("mcf_paths", pytest.approx(found.value / 0.5581))
    assert "of the load that the best use of its routes could carry" in answer.sentence(run, [found])


def test_charts_hold_the_curves_and_ceilings_of_the_figures(run):
    found = {chart["name"]: chart for chart in charts.charts(Run.read(run), run)}
    assert list(found) == ["latency_load", "accepted_load", "percentiles", "hops_load"]
    latency = found["latency_load"]
    assert [line["name"] for line in latency["series"]] == ["minimal", "deflection"]
    assert [len(line["hollow"]) for line in latency["series"]] == [4, 2]
    assert latency["series"][0]["seeds"] == [3] * 12
    assert [(mark["name"], mark["upper"], mark["keys"]) for mark in latency["marks"]] == [
        ("split", 0.44, [0]), ("mcf_paths", 0.5581, [0]), ("mcf", 0.563, []),
    ]  # fmt: skip
    assert len(found["percentiles"]["series"]) == 6
    assert found["accepted_load"]["totals"][0]["y"][-1] == pytest.approx(total(0.6, 0.562), rel=1e-4)


@pytest.mark.long
def test_labels_are_data(tmp_path):
    evil = "</script><img src=x onerror=alert(1)>&"
    rows = [point("minimal", x, 1, 0.4, None) | {"scenario": evil} for x in (0.1, 0.2)]
    write_csv(tmp_path / "results.csv", rows, COLUMNS)
    (tmp_path / "manifest.json").write_text(json.dumps({"name": evil, "command": ["simrun", evil], "versions": {}}))
    text = html.write(tmp_path).read_text("utf-8")
    assert "<img src=x" not in text
    assert text.count("</script>") == 2
    data = text[text.index('id="data">') + len('id="data">') :]
    assert json.loads(data[: data.index("</script>")])["scenarios"] == [evil]


def test_channels_of_a_single_switch_are_used_by_nothing(run):
    known = Run.read(run)
    switch = make("topology", kind="mesh", dims=[1], hosts_per_switch=2).build()
    state = network.State(np.zeros(0), replicates=1)
    drawn = network.data(known, [network.NetworkUse(known.scenarios[0], switch, {0.1: state})])
    assert json.loads(json.dumps(drawn, allow_nan=False))["scenarios"][0]["states"][0]["mean"] == 0


def test_page_draws_the_figures_that_its_run_lacks(tmp_path):
    write_csv(tmp_path / "results.csv", [point("minimal", x, 1, 0.4, None) for x in (0.1, 0.2)], COLUMNS)
    assert "data:image" in html.write(tmp_path).read_text("utf-8")


def test_page_of_an_empty_folder(tmp_path):
    assert "<h1>" in html.write(tmp_path).read_text("utf-8")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    """A real run of few ticks."""
    folder = tmp_path_factory.mktemp("runs")
    file = folder / "tiny.yaml"
    file.write_text(TINY)
    assert main(["run", str(file), "--out", str(folder / "tiny"), "--jobs", "1"]) == 0
    return folder / "tiny"


TINY = """
schema: 1
name: tiny
topology: {kind: imase, n: 8, degree: 2, hosts_per_switch: 2}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
switching: {mode: vct, vcs: 4, buffer_flits: 8, input_speedup: vcs}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.1, 0.7]
seeds: [1, 2]
measure: {warmup: 200, ticks: 400, ci: null}
ceilings: [mcf]
outputs: {figures: [latency_load]}
"""


@pytest.mark.long
def test_points_keep_what_went_on_inside(simulated):
    for file in simulated.glob("points/*.json"):
        record = json.loads(file.read_text())
        row, detail = record["row"], record["detail"]
        hops = detail["hops_histogram"]
        assert sum(count for _, count in hops) == row["packets"]
        assert sum(value * count for value, count in hops) == pytest.approx(row["hops_mean"] * row["packets"])
        deflections = sum(value * count for value, count in detail["deflections_histogram"])
        assert deflections == pytest.approx(row["deflections_mean"] * row["packets"])
        carried = sum(detail["channel_use"]) * row["ticks"] / 4  # packets of 4 flits
        assert carried == pytest.approx(row["hops_mean"] * row["packets"], rel=0.1)


def test_inside_of_the_network(simulated):
    run = Run.read(simulated)
    found = network.network_use(run, simulated)
    assert [sorted(one.states) for one in found] == [[0.1, 0.7]] * 2
    assert all(one.optimum.max() == pytest.approx(1, abs=1e-6) for one in found)
    document = network.data(run, found)
    (only,) = document["maps"]
    assert (only["n"], len(only["src"]), len(only["xy"])) == (8, found[0].topology.channels, 8)
    first = document["scenarios"][0]["states"][0]
    use = np.frombuffer(base64.b64decode(first["use"]), np.uint8) / document["levels"]
    state = found[0].states[0.1]
    assert use == pytest.approx(state.use / state.replicates, abs=0.003)
    assert sum(share for _, share in first["hops"]) == pytest.approx(1, abs=1e-3)


def test_loads_and_scenarios_beyond_the_limit_are_left_out(simulated, monkeypatch):
    run = Run.read(simulated)
    monkeypatch.setattr(network, "MOST_BYTES", 130)
    document = network.data(run, network.network_use(run, simulated))
    assert [len(scenario["states"]) for scenario in document["scenarios"]] == [1, 1]
    assert "1 loads" in document["left_out"]
    monkeypatch.setattr(network, "MOST_BYTES", 70)
    assert len(network.data(run, network.network_use(run, simulated))["scenarios"]) == 1


def test_page_of_a_run_that_was_killed_shows_its_points(simulated, tmp_path, capsys):
    killed = tmp_path / "killed"
    shutil.copytree(simulated, killed)
    for name in ("results.csv", "ceilings.csv", "report.html"):
        (killed / name).unlink()
    manifest = json.loads((killed / "manifest.json").read_text()) | {"status": "running"}
    (killed / "manifest.json").write_text(json.dumps(manifest))
    whole, part = Run.read(simulated), Run.read(killed)
    columns = ("scenario", "load", "seed", "accepted", "latency_mean", "saturated", "status")
    assert [[row[c] for c in columns] for row in part.rows] == [[row[c] for c in columns] for row in whole.rows]
    assert repr(part.ceilings) == repr(whole.ceilings)
    assert main(["report", str(killed)]) == 0
    assert capsys.readouterr().out.strip() == str(killed / "report.html")
    assert "not finished" in (killed / "report.html").read_text()


def test_report_refuses_what_is_no_run_folder(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(("size", "width"), [("column", 3.5), ("double", 7.16)])
def test_figures_at_paper_sizes(run, tmp_path, size, width):
    shutil.copytree(run, tmp_path / "run")
    asked = ["--figures", "latency_load", "--format", "pdf", "svg", "--size", size]
    assert main(["plot", str(tmp_path / "run"), *asked]) == 0
    pdf, svg = ((tmp_path / "run" / "figures" / f"latency_load.{suffix}").read_bytes() for suffix in ("pdf", "svg"))
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf)
    assert box is not None and float(box[1]) / 72 == pytest.approx(width, abs=0.01)
    assert re.search(rb'width="([\d.]+)pt"', svg)[1] == box[1]
    assert b"CreationDate" not in pdf and b"/Type3" not in pdf


def collective(topology: str, algorithm: str, size: int, time_ns: float, efficiency: float) -> dict[str, str]:
    row = {"scenario": f"{topology}, {algorithm}, {size}", "topology": topology, "algorithm": algorithm}
    return row | {"size_bytes": str(size), "time_ns": str(time_ns), "efficiency": str(efficiency)}


def test_the_answer_names_the_fastest_algorithm_its_time_and_its_share_of_the_bound():
    rows = [
        collective("torus", "ring", 2**20, 828_000.0, 0.25), collective("torus", "bucket", 2**20, 207_600.0, 0.994),
        collective("torus", "ring", 4096, 1.0, 1.0), collective("kautz", "ring", 2**20, 520_800.0, 0.9941),
    ]  # fmt: skip
    manifest = {"experiment": "collective", "columns": ["topology", "collective.size_bytes", "collective.algorithm"]}
    assert answer.sentence(Run([], [], [], manifest, tables={"collectives": rows}), []) == (
        "torus: bucket is fastest, 207.6 µs for 1 MiB, 99\xa0% of the speed that any algorithm could reach; "
        "kautz: ring is fastest, 520.8 µs for 1 MiB, 99\xa0% of the speed that any algorithm could reach."
    )


def test_the_answer_about_flows_has_completion_times_of_the_best_and_the_worst():
    rows = [
        {"scenario": f"spread={name}", "host_throughput": "0.5", "fct_ms_mean": mean, "slowdown_mean": "2",
         "fct_ms_max": last, "fct_ms_bound": "0.2"}
        for name, mean, last in (("reps", "0.15", "0.25"), ("oblivious", "0.2", "0.4"))
    ]  # fmt: skip
    assert answer.sentence(Run(rows, [], [], {}), []) == (
        "reps completes flows in 0.15 ms on average, 2 times their uncontended time, the last after 0.25 ms (80\xa0% "
        "of the speed that any routing could reach), the best of 2; oblivious completes flows in 0.2 ms on average, 2 "
        "times their uncontended time, the last after 0.4 ms (50\xa0% of the speed that any routing could reach), "
        "the worst."
    )


def test_a_scenario_that_is_not_saturated_is_not_worse_than_one_that_is(tmp_path):
    """Its saturation point is only known to be above its highest load."""
    rows = [point("minimal", x, 1, 0.4, None) for x in (0.1, 0.3, 0.5)]
    rows += [point("deflection", x, 1, 0.6, None) for x in (0.1, 0.3)]
    write_csv(tmp_path / "results.csv", rows, COLUMNS)
    write_csv(tmp_path / "ceilings.csv", ceiling_rows([]), CEILINGS)
    run = Run.read(tmp_path)
    text = answer.sentence(run, answer.scenario_summaries(run))
    assert text.startswith("1 of 2 scenarios has no saturation point at these loads, and carries at least 5")
    assert "best" not in text and "; minimal has one, and reaches 7" in text
