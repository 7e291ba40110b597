# SPDX-License-Identifier: Apache-2.0
"""Figures and page of the experiment ``metrics``: which curves there are, what they mean, how they are told apart."""

import csv
import doctest
import json
import statistics

import numpy as np
import pytest

from flitlab.sim.cli import main
from flitlab.sim.report import html
from flitlab.sim.report.figures import draw as figures
from flitlab.sim.report.figures.metrics import curves, quantity, rows, specification
from flitlab.sim.report.figures.metrics.figure import figure_of
from flitlab.sim.report.figures.metrics.rows import axis_title
from flitlab.sim.report.figures.metrics.series import series
from flitlab.sim.report.figures.metrics.specification import plots_of
from flitlab.sim.report.figures.style import in_style
from flitlab.sim.report.folder.run import Run


def write_run(folder, rows, **manifest):
    """A run folder of the experiment; what a row lacks is empty."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*names, *({"status", "message"} - set(names))], restval="")
        writer.writeheader()
        writer.writerows([{"status": "ok", **row} for row in rows])
    manifest = {"name": "synthetic", "experiment": "metrics"} | manifest
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def network(keys, n, aspl, **more):
    """A row of metrics.csv."""
    label = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in keys.items())
    kind = keys.get("topology.kind") or str(keys.get("topology", "rrg")).split()[0]
    return {"scenario": label, **keys, "kind": kind, "switches": n, "aspl": aspl, **more}


def sweep(folder, kinds=("imase", "rrg"), sizes=(16, 32, 64), degrees=(3,), seeds=(1,), **manifest):
    """Kinds x sizes x degrees x seeds; the bound depends on size and degree."""
    keys = ["topology.kind", "topology.n", "topology.degree", "topology.seed"]
    rows = [
        network(
            dict(zip(keys, (kind, n, degree, seed), strict=True)), n, 1.0 + n / 100 - degree / 10 + i + seed**2 / 50,
            moore_aspl=1 + n / 100 - degree / 10, degree_max=degree, diameter=2 * i + 3,
        )
        for i, kind in enumerate(kinds) for n in sizes for degree in degrees for seed in seeds
    ]  # fmt: skip
    return write_run(folder, rows, columns=keys, **manifest)


@pytest.mark.parametrize(
    ("key", "values", "title"),
    [
        ("topology.failures.links", ["0", "0.05", "0.1"], "share of links that fail"),
        ("topology.failures.links", ["0", "3", "12"], "number of links that fail"),
        ("topology.failures.links", ["0.05", "3"], "links that fail"),
        ("topology.failures.switches", ["0", "0.25"], "share of switches that fail"),
        ("switching.link_failures.links", ["1", "2"], "number of links that fail"),
        ("topology.bisection", ["0.4", "0.5"], "relative bisection"),
        ("traffic.hosts", ["1", "2"], "hot hosts"),
        ("links", ["10", "20"], "number of links"),
        ("bisection", ["10", "20"], "bisection (links)"),
    ],
)
def test_what_fails_is_called_what_it_is(tmp_path, key, values, title):
    run = Run.read(write_run(tmp_path, [{"scenario": value, key: value, "mcf": "1"} for value in values]))
    assert axis_title(run, key) == title


def only_plot(folder):
    """The one plot of a run folder."""
    (plot,), mistakes = plots_of(Run.read(folder))
    assert not mistakes
    return plot


def drawn(folder):
    """The one figure of a run folder, as matplotlib objects."""
    figure = in_style(figure_of)(Run.read(folder), only_plot(folder))
    assert figure is not None
    return figure


def lines(figure, gid):
    """Lines of one sort on the axes."""
    return [line for line in figure.axes[0].lines if line.get_gid() == gid]


def legend(figure):
    """Texts of the key."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_examples_in_docstrings():
    for module in (curves, quantity, rows, specification):
        assert doctest.testmod(module).failed == 0


def test_usual_figure_is_the_aspl_over_the_swept_number_with_most_values(tmp_path):
    figure = drawn(sweep(tmp_path))
    ax = figure.axes[0]
    assert [path.name for path in figures.draw(tmp_path)] == ["aspl_n.png", "aspl_n.svg"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of switches", "average shortest path length (hops)")
    assert [line.get_xdata().tolist() for line in lines(figure, "curve")] == [[16, 32, 64]] * 2
    assert lines(figure, "curve")[1].get_ydata() == pytest.approx([1.88, 2.04, 2.36])
    assert legend(figure) == ["imase", "rrg"]
    assert ax.get_xscale() == "log"  # the sizes double


def test_a_bound_that_all_share_is_one_thin_named_line(tmp_path):
    figure = drawn(sweep(tmp_path))
    (bound,) = lines(figure, "bound")
    assert bound.get_ydata() == pytest.approx([0.86, 1.02, 1.34])
    assert bound.get_linewidth() < lines(figure, "curve")[0].get_linewidth()
    assert [text.get_text() for text in figure.axes[0].texts] == ["Moore bound"]


@pytest.mark.long
def test_a_bound_without_room_for_its_name_is_named_in_the_key(tmp_path):
    rows = [
        network({"topology.n": n, "topology": f"kind{i}"}, n, 1 + i / 40 + 0.02 * (n % 3), moore_aspl=1.2)
        for i in range(24) for n in range(4, 40)
    ]  # fmt: skip
    figure = drawn(write_run(tmp_path, rows, columns=["topology.n", "topology"]))
    assert len(lines(figure, "bound")) == 1 and "Moore bound" in legend(figure)
    assert "Moore bound" not in [text.get_text() for text in figure.axes[0].texts]


def test_two_swept_keys_have_colours_and_dashes_and_bounds_the_dashes_of_their_degree(tmp_path):
    figure = drawn(sweep(tmp_path, degrees=(3, 4, 5)))
    curves = lines(figure, "curve")
    assert len(curves) == 6
    assert legend(figure) == ["imase", "rrg", "degree=3", "degree=4", "degree=5", "Moore bound (thin)"]
    assert len({(line.get_color(), line.get_marker()) for line in curves}) == 2
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in curves}) == 3
    assert len(lines(figure, "bound")) == 3
    unscaled = {str(line._unscaled_dash_pattern) for line in curves}
    assert {str(line._unscaled_dash_pattern) for line in lines(figure, "bound")} == unscaled


def test_seeds_are_replicates_with_a_band(tmp_path):
    folder = sweep(tmp_path, kinds=("rrg",), seeds=(1, 2, 3, 4))
    (entry, _) = series(Run.read(folder), only_plot(folder))
    values = [1.0 + 0.16 - 0.3 + seed**2 / 50 for seed in (1, 2, 3, 4)]
    assert entry.curve.replicates.tolist() == [4, 4, 4]
    assert entry.curve.y[0] == pytest.approx(statistics.mean(values))
    assert entry.curve.half[0] == pytest.approx(3.182446 * statistics.stdev(values) / 2)
    assert [band.get_gid() for band in drawn(folder).axes[0].collections] == ["band"]


def test_a_mean_over_other_things_than_draws_has_no_band(tmp_path):
    plot = {"y": ["aspl"], "x": "topology.n", "by": ["topology.kind"]}
    folder = sweep(tmp_path, degrees=(3, 5), plots=[plot])
    figure = drawn(folder)
    assert lines(figure, "curve")[0].get_ydata()[0] == pytest.approx(1.16 - 0.4 + 0.02)
    assert not figure.axes[0].collections


def test_ratio_of_two_columns(tmp_path):
    figure = drawn(sweep(tmp_path, plots=[{"y": ["aspl / moore_aspl"]}]))
    assert lines(figure, "curve")[0].get_ydata() == pytest.approx([0.88 / 0.86, 1.04 / 1.02, 1.36 / 1.34])
    assert figure.axes[0].get_ylabel().replace("\n", " ") == "average shortest path length / Moore bound"
    assert only_plot(tmp_path).name == "aspl_per_moore_aspl_n"


def test_several_columns_have_dashes_and_labels_can_be_given(tmp_path):
    plot = {"y": ["aspl", "diameter"], "log": "y", "x_label": "size", "y_label": "far", "name": "both"}
    figure = drawn(sweep(tmp_path, plots=[plot]))
    ax = figure.axes[0]
    assert legend(figure) == ["imase", "rrg", "average shortest path length", "diameter"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()) == ("size", "far", "linear", "log")
    assert [path.stem for path in figures.draw(tmp_path, ["both"])] == ["both"] * 2


def test_points_are_not_joined(tmp_path):
    figure = drawn(sweep(tmp_path, sizes=(64, 16), plots=[{"y": ["aspl"], "x": "moore_aspl", "style": "points"}]))
    assert {line.get_linestyle() for line in lines(figure, "curve")} == {"None"}
    assert all(line.get_marker() for line in lines(figure, "curve"))
    assert legend(figure) == ["imase", "rrg"]


def test_points_have_an_interval_each_and_nothing_between_them(tmp_path):
    plots = [{"y": ["aspl"], "x": "moore_aspl", "style": "points"}]
    folder = sweep(tmp_path, kinds=("rrg",), seeds=(1, 2, 3, 4), plots=plots)
    (entry,) = series(Run.read(folder), only_plot(folder))
    (band,) = drawn(folder).axes[0].collections
    ends = zip(entry.curve.x, entry.curve.y - entry.curve.half, entry.curve.y + entry.curve.half, strict=True)
    assert [segment.tolist() for segment in band.get_segments()] == [[[x, low], [x, high]] for x, low, high in ends]


def test_a_swept_number_that_only_some_networks_have_is_no_axis_for_all(tmp_path):
    rows = [network({"case": "rrg", "topology.n": 16}, 16, 2.0), network({"case": "torus"}, 16, 3.0)]
    figure = drawn(write_run(tmp_path, rows, columns=["case", "topology.n"]))
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["rrg, n=16", "torus"]


def test_what_is_not_swept_in_a_case_is_not_in_its_name(tmp_path):
    rows = [network({"case": "rrg", "topology.degree": d}, n, 2.0 + d / n) for d in (3, 4) for n in (16, 32)]
    rows += [network({"case": "torus", "topology.degree": ""}, n, 3.0) for n in (16, 64)]
    plot = {"y": ["aspl"], "x": "switches", "by": ["case", "topology.degree"]}
    figure = drawn(write_run(tmp_path, rows, columns=["case", "topology.degree"], plots=[plot]))
    assert legend(figure) == ["rrg, degree=3", "rrg, degree=4", "torus"]


def test_the_label_of_a_charts_names_fits_into_it(tmp_path):
    rows = [network({"case": "torus"}, 64, 4.06), network({"case": "b"}, 64, 2.64)]
    plot = {"y": ["aspl"], "x": "case", "x_label": "the networks that are compared"}
    figure = drawn(write_run(tmp_path, rows, columns=["case"], plots=[plot]))
    figure.canvas.draw()
    title = figure.axes[0].get_title("left")
    box = figure.axes[0]._left_title.get_window_extent()
    assert title == "the networks that are compared"
    assert 0 <= box.y0 < box.y1 <= figure.bbox.y1 and 0 <= box.x0 < box.x1 <= figure.bbox.x1


@pytest.mark.long
def test_x_may_be_measured(tmp_path):
    folder = sweep(tmp_path, sizes=(64, 16, 32), seeds=(1, 2), plots=[{"y": ["aspl"], "x": "moore_aspl"}])
    figure = drawn(folder)
    assert [len(line.get_xdata()) for line in lines(figure, "curve")] == [3, 3]
    assert lines(figure, "curve")[0].get_xdata() == pytest.approx([0.86, 1.02, 1.34])


def test_a_swept_n_that_does_not_count_switches_is_called_n(tmp_path):
    rows = [network({"topology.n": n}, 5**n, 2.0 + n) for n in (2, 3, 4)]
    assert drawn(write_run(tmp_path, rows, columns=["topology.n"])).axes[0].get_xlabel() == "n"


def test_families_of_several_sizes_are_curves_over_the_number_of_switches(tmp_path):
    sizes = [("fat_tree k=4", 20), ("fat_tree k=6", 45), ("rrg n=20", 20), ("rrg n=45", 45)]
    rows = [network({"topology": name}, n, 2 + n / 50) for name, n in sizes]
    figure = drawn(write_run(tmp_path, rows, columns=["topology"]))
    assert legend(figure) == ["fat_tree", "rrg"]
    assert [line.get_xdata().tolist() for line in lines(figure, "curve")] == [[20, 45]] * 2


def test_networks_of_one_size_are_bars_from_zero(tmp_path):
    rows = [network({"case": "torus"}, 64, 4.06, moore_aspl=2.86), network({"case": "b"}, 64, 2.64, moore_aspl=2.62)]
    ax = drawn(write_run(tmp_path, rows, columns=["case"])).axes[0]
    bars = [patch for patch in ax.patches if patch.get_gid() == "bar"]
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(0, 4.06), (0, 2.64)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["torus", "b"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is on top
    assert ax.get_xlabel() == "average shortest path length (hops)"
    (bound,) = [line for line in ax.lines if line.get_gid() == "bound"]
    assert bound.get_xdata().tolist() == [2.86, 2.62]


def test_draws_of_one_network_are_one_bar(tmp_path):
    rows = [network({"topology.seed": seed}, 64, 2.0 + seed / 10) for seed in (1, 2, 3)]
    ax = drawn(write_run(tmp_path, rows, columns=["topology.seed"])).axes[0]
    assert [patch.get_width() for patch in ax.patches if patch.get_gid() == "bar"] == pytest.approx([2.2])
    assert [artist.get_gid() for artist in ax.collections] == ["band"]


def test_a_chart_of_several_columns_has_a_marker_each(tmp_path):
    rows = [network({"case": name}, 64, 2.5, diameter=4) for name in "ab"]
    plot = {"y": ["aspl", "diameter"]}
    figure = drawn(write_run(tmp_path, rows, columns=["case"], plots=[plot]))
    assert legend(figure) == ["average shortest path length", "diameter"]
    assert len({line.get_marker() for line in lines(figure, "curve")}) == 2
    assert figure.axes[0].get_xlabel() == "hops"


def test_a_sweep_may_be_a_chart(tmp_path):
    ax = drawn(sweep(tmp_path, plots=[{"y": ["aspl"], "x": "scenario"}])).axes[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [f"{kind}, n={n}" for kind in ("imase", "rrg") for n in (16, 32, 64)]
    sweep(tmp_path, plots=[{"y": ["aspl"], "x": "topology.kind"}])
    figure = drawn(tmp_path)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["imase", "rrg"]
    assert legend(figure) == ["n=16", "n=32", "n=64"]


def distribution_run(folder, **plot):
    """Two cases of two draws, with a mapping and a list."""
    rows = []
    for seed in (1, 2):
        keys = {"case": "jellyfish", "topology.seed": seed}
        shares, counts = {"1": 0.2, "2": 0.6 + seed / 10, "3": 0.2 - seed / 10}, [seed, 3, 3, 7]
        distributions = {"hop_distribution_shares": json.dumps(shares), "path_counts_counts": json.dumps(counts)}
        rows.append(network(keys, 64, 2.0, **distributions))
        keys["case"] = "fat_tree"
        rows.append(network(keys, 64, 3.0, hop_distribution_shares='{"2": 0.1, "10": 0.9}', path_counts_counts="[0]"))
    return write_run(folder, rows, columns=["case", "topology.seed"], plots=[plot])


def test_a_mapping_is_grouped_bars_in_the_order_of_numbers(tmp_path):
    figure = drawn(distribution_run(tmp_path, y=["hop_distribution_shares"]))
    ax = figure.axes[0]
    bars = [patch for patch in ax.patches if patch.get_gid() == "bar"]
    assert [bar.get_height() for bar in bars[:10]] == pytest.approx([0.2, 0.75, 0.05] + [0] * 7)  # the mean of draws
    assert [bar.get_height() for bar in bars[10:]] == pytest.approx([0, 0.1] + [0] * 7 + [0.9])
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(hops) for hops in range(1, 11)]
    assert len({bar.get_hatch() for bar in bars}) == 2
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance (hops)", "share of switch pairs")
    assert legend(figure) == ["jellyfish", "fat_tree"]


def test_a_mapping_may_be_cumulative(tmp_path):
    figure = drawn(distribution_run(tmp_path, y=["hop_distribution_shares"], cumulative=True))
    assert [line.get_ydata()[-1] for line in lines(figure, "curve")] == pytest.approx([1, 1])
    assert lines(figure, "curve")[0].get_ydata()[:3] == pytest.approx([0.2, 0.95, 1])


def test_a_list_is_a_curve_over_the_rank(tmp_path):
    figure = drawn(distribution_run(tmp_path, y=["path_counts_counts"]))
    first = lines(figure, "curve")[0]
    # 1, 2, 3, 3, 3, 3, 7, 7 of two draws of four
    assert first.get_xdata().tolist() == [0, 0.5, 0.5, 1, 1, 3, 3, 4]
    assert first.get_ydata().tolist() == [1, 1, 2, 2, 3, 3, 7, 7]


def test_metrics_asked_for_have_a_figure_each(tmp_path):
    more = {"cost_switches": 9.0, "cost_total": 12.0, "cables_number": 4, "k_shortest": 3.1, "k_shortest_bound": 3.0}
    rows = [network({"case": name}, 64, 2.5, **more) for name in "ab"]
    write_run(tmp_path, rows, columns=["case"], metrics=["cost", "k_shortest", "nothing"])
    plots, mistakes = plots_of(Run.read(tmp_path))
    assert [[quantity.expression for quantity in plot.y] for plot in plots] == [
        ["aspl"], ["cost_total"], ["k_shortest", "k_shortest_bound"],
    ]  # fmt: skip
    assert not mistakes


@pytest.mark.long
def test_many_points_are_lines_without_markers(tmp_path):
    figure = drawn(sweep(tmp_path, kinds=("rrg",), sizes=range(20, 8001)))
    (curve,) = lines(figure, "curve")
    assert len(curve.get_xdata()) == 7981
    assert curve.get_marker() == ""


def test_what_cannot_be_drawn_is_named_after_the_rest_is_drawn(tmp_path):
    plots = [{"y": ["asp"]}, {"y": ["kind"]}, {"y": ["aspl"], "name": "good"}, {"y": ["aspl"], "by": ["nowhere"]}]
    sweep(tmp_path, plots=plots)
    with pytest.raises(ValueError, match=r"no column 'asp'; did you mean 'aspl'.*kind: holds no numbers.*'nowhere'"):
        figures.draw(tmp_path)
    assert (tmp_path / "figures" / "good.png").exists()
    assert 'data-chart="good"' in html.write(tmp_path).read_text("utf-8")


def test_lists_and_numbers_do_not_mix(tmp_path):
    distribution_run(tmp_path, y=["aspl", "path_counts_counts"])
    assert plots_of(Run.read(tmp_path))[1] == [
        "plot of aspl, path_counts_counts: lists and numbers do not go into one figure"
    ]


def test_names_are_unique_and_good_for_files(tmp_path):
    sweep(tmp_path, plots=[{"y": ["aspl"]}, {"y": ["aspl"], "log": "x"}, {"y": ["aspl/diameter"]}])
    plots, _ = plots_of(Run.read(tmp_path))
    assert [plot.name for plot in plots] == ["aspl_n", "aspl_n_2", "aspl_per_diameter_n"]


@pytest.mark.long
def test_same_bytes_twice(tmp_path):
    def everything():
        return [path.read_bytes() for path in figures.draw(tmp_path)]

    distribution_run(tmp_path, y=["hop_distribution_shares"])
    assert everything() == everything()
    sweep(tmp_path, degrees=(3, 4, 5), seeds=(1, 2))
    assert everything() == everything()


def test_failed_topologies_are_left_out_and_counted(tmp_path):
    rows = [network({"topology.n": n}, n, 2.0 + n) for n in (8, 16, 24)]
    rows[1] |= {"aspl": "", "status": "failed", "message": "not connected"}
    figure = drawn(write_run(tmp_path, rows, columns=["topology.n"]))
    assert lines(figure, "curve")[0].get_xdata().tolist() == [8, 24]
    assert figure.legends[0].get_title().get_text() == "1 failed point left out"
    assert "not connected" in html.write(tmp_path).read_text("utf-8")


def test_page_has_figures_tables_and_verdicts(tmp_path):
    sweep(tmp_path, scenarios=[{"label": "a"}])
    (tmp_path / "published.csv").write_text(
        "where,scenario,quantity,compare,published,tolerance,measured,verdict,why\n"
        'Fig. 3,imase,aspl,at_most,2.5,2%,2.123456789,agrees,"<read off>"\n'
    )
    (tmp_path / "config.yaml").write_text("experiment: metrics\n")
    text = html.write(tmp_path).read_text("utf-8")
    order = ["<h2>Figures", "<h2>Published values", "<h2>Metrics", "<h2>Configuration", "<h2>Provenance"]
    assert [text.index(title) for title in order] == sorted(text.index(title) for title in order)
    assert "Average shortest path length against number of switches" in text
    assert "≤ 2.5 ± 2%" in text and "2.12346" in text and "agrees" in text and "&lt;read off&gt;" in text
    metrics = text[text.index("<h2>Metrics") : text.index("<h2>Configuration")]
    assert metrics.count("<tr>") == 1 + 6
    assert "<h2>Results" not in text
    assert text == html.write(tmp_path).read_text("utf-8")


@pytest.mark.long
def test_run_and_plot_draw_the_same_figures(tmp_path, capsys):
    file = tmp_path / "study.yaml"
    file.write_text(
        "schema: 1\nexperiment: metrics\n"
        "topology: {kind: imase, n: {sweep: [8, 12, 16]}, degree: {sweep: [2, 3]}}\n"
        "outputs: {plots: [{y: [aspl, moore_aspl]}, {y: diameter, log: x, name: far}]}\n"
    )
    out = tmp_path / "out"
    assert main(["run", str(file), "--out", str(out), "--jobs", "1"]) == 0
    paths = sorted((out / "figures").iterdir())
    assert [path.name for path in paths] == ["aspl_n.png", "aspl_n.svg", "far.png", "far.svg"]
    before = [path.read_bytes() for path in paths]
    assert 'data-chart="far"' in (out / "report.html").read_text("utf-8")
    for path in paths:
        path.unlink()
    capsys.readouterr()
    assert main(["plot", str(out)]) == 0
    assert [path.read_bytes() for path in paths] == before
    assert len(capsys.readouterr().out.split()) == 4
    assert main(["plot", str(out), "--figures", "latency_load"]) == 2
    assert "choices: aspl_n, far" in capsys.readouterr().err


def test_x_axis_begins_at_no_special_place_and_no_point_is_clipped(tmp_path):
    ax = drawn(sweep(tmp_path, sizes=(100, 200, 300, 8000))).axes[0]
    for line in ax.lines:
        assert np.all((line.get_xdata() >= ax.get_xlim()[0]) & (line.get_xdata() <= ax.get_xlim()[1]))
        assert np.all((line.get_ydata() >= ax.get_ylim()[0]) & (line.get_ydata() <= ax.get_ylim()[1]))


@pytest.mark.parametrize("chosen", [{"kind": "rrg"}, {"kind": ["rrg"], "topology.n": [16, 64]}])
def test_a_plot_of_some_of_the_rows(tmp_path, chosen):
    figure = drawn(sweep(tmp_path, plots=[{"y": ["aspl"], "x": "switches", "where": chosen}]))
    (curve,) = lines(figure, "curve")
    sizes = chosen.get("topology.n", [16, 32, 64])
    assert curve.get_xdata().tolist() == sizes
    assert curve.get_ydata() == pytest.approx([1.72 + n / 100 for n in sizes])


def test_a_plot_of_no_rows_says_so(tmp_path):
    sweep(tmp_path, plots=[{"y": ["aspl"], "where": {"kind": "torus"}}, {"y": ["aspl"], "where": {"sort": "rrg"}}])
    plots, mistakes = plots_of(Run.read(tmp_path))
    assert not plots
    assert mistakes[0] == "plot of aspl: no row is as where says"
    assert "no column 'sort'" in mistakes[1]
