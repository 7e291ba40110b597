# SPDX-License-Identifier: Apache-2.0
"""Completion times of sprayed messages beside the least time that any routing needs for the last of them."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from flitlab import Experiment
from flitlab.sim.experiment.prices import sprayed_hops
from flitlab.sim.measure.transport import completion as columns_of
from flitlab.sim.report.figures.draw import draw
from flitlab.sim.report.figures.flows import messages_of
from flitlab.sim.report.figures.kinds.busbw_size import busbw_size
from flitlab.sim.report.figures.kinds.completion import completion
from flitlab.sim.report.figures.kinds.time_size import time_size
from flitlab.sim.report.figures.programs import figure_of, label_groups
from flitlab.sim.report.figures.style import SIZES, in_style
from flitlab.sim.report.folder.run import Run
from tests import long_after

BYTES = 20_000
WIRE = BYTES + 64 * 5  # of five packets, with their headers

GIVEN = {
    "name": "messages",
    "topology": {"sweep": [{"kind": "leaf_spine", "leaves": 2, "spines": n, "hosts_per_leaf": 2} for n in (1, 2)]},
    "routing": "ecmp",
    "switching": {"mode": "spray", "nic_mbps": 100_000},
    "traffic": {"kind": "shift", "by": 2, "arrivals": "together", "sizes": {"kind": "fixed", "bytes": BYTES}},
    "transport": {"sweep": [{"kind": "nscc", "spread": "oblivious"}, {"kind": "rccc"}]},
    "ceilings": ["mcf"],
    "engine": "reference",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages") / "run"
    return Experiment.load(GIVEN).run(folder, jobs=1)


def test_the_bound_is_the_time_of_the_concurrent_flow(run):
    """Two spines carry what four hosts send; with one, each of its channels carries the flows of two hosts."""
    alone = 8 * WIRE / 100e9 * 1000
    bounds = run.results.groupby("topology")["fct_ms_bound"].agg(["min", "max"])
    assert bounds.loc["leaf_spine spines=2"].tolist() == pytest.approx([alone] * 2)
    assert bounds.loc["leaf_spine spines=1"].tolist() == pytest.approx([2 * alone] * 2)
    assert (run.results["fct_ms_bound"] < run.results["fct_ms_max"]).all()


@pytest.mark.parametrize("mode", ["spray", "datagram"])
def test_the_bound_does_not_depend_on_the_window(mode):
    """A window that begins when part of the data has arrived measures less than all flows send."""
    switching = {"mode": mode, "nic_mbps": 100_000, "link_us": 1}
    alone = 8 * (WIRE if mode == "spray" else BYTES) / 100e9 * 1000
    transport = "nscc" if mode == "spray" else "dctcp"
    for window in ([0.0, 0.1], [0.00002, 0.1]):
        changed = {"switching": switching, "transport": transport, "measure": {"seconds": 0.1, "window": window}}
        found = Experiment.load(GIVEN | changed).run(jobs=1)
        assert sorted(found.results["fct_ms_bound"]) == pytest.approx([alone, 2 * alone]), window


def test_a_run_of_datagrams_ends_with_the_last_message_too():
    """So that transports of both modes stand beside each other."""
    switching = {"mode": "datagram", "packet_bytes": 1000, "nic_mbps": 100_000, "link_us": 1}
    changed = {"switching": switching, "transport": "tcp", "measure": {"seconds": 0.1}}
    found = Experiment.load(GIVEN | changed).run(jobs=1).results
    assert (found["flows_complete"] == 4).all()
    assert found["fct_ms_max"].tolist() == pytest.approx((found["seconds"] * 1e3).tolist(), rel=1e-4)
    received = BYTES * 8 / 100e9 / found["seconds"]  # of a host, in parts of its rate
    assert found["host_throughput"].tolist() == pytest.approx(received.tolist())
    alone = 8 * BYTES / 100e9 * 1000
    assert sorted(found["fct_ms_bound"]) == pytest.approx([alone, 2 * alone])
    assert (found["fct_ms_bound"] < found["fct_ms_max"]).all()


@pytest.mark.parametrize("transport", ["ndp", "nscc"])
def test_what_happens_after_the_last_flow_does_not_count(transport):
    """A run of exactly that length counts the same: pulls and packets in flight are left out."""
    traffic = {"kind": "incast", "senders": 3, "arrivals": "together", "sizes": {"kind": "fixed", "bytes": 400_000}}
    given = GIVEN | {"topology": GIVEN["topology"]["sweep"][0], "traffic": traffic, "transport": transport}
    (whole,) = Experiment.load(given).run(jobs=1).results.to_dict("records")
    cut = Experiment.load(given | {"measure": {"seconds": whole["seconds"]}}).run(jobs=1).results
    counted = ["pulls", "acks", "packet_hops", "seconds", "fct_ms_max"]
    assert cut[counted].to_dict("records") == [{name: whole[name] for name in counted}]


LATER = 6250
"""Ticks until a PAUSE of a host takes effect: the delay of its link."""

LINE = {
    "topology": {"kind": "file", "text": "0 -- 1", "hosts_per_switch": 1},
    "routing": "minimal",
    "traffic": {"kind": "shift", "by": 1, "arrivals": "together", "sizes": {"kind": "fixed", "bytes": 100_000}},
    "measure": {"seconds": 0.001},
    "ceilings": [],
    "engine": "both",
}


def test_a_run_ends_where_an_array_has_to_grow_in_its_last_tick():
    """The table of received packets of both engines, which holds 4096 at first, is full with the last packet."""
    switching = {"mode": "spray", "nic_mbps": 100_000, "link_us": 0.5, "mtu_bytes": 1064, "header_bytes": 64}
    sizes = {**LINE["traffic"], "sizes": {"kind": "fixed", "bytes": 2_050_000}}
    given = LINE | {"switching": switching, "transport": {"kind": "none", "rate": 0.5}, "traffic": sizes}
    (row,) = Experiment.load(given).run(jobs=1).results.to_dict("records")
    assert row["status"] == "ok" and row["flows_complete"] == 2
    assert row["fct_ms_max"] == pytest.approx(row["seconds"] * 1e3, rel=1e-3)


@pytest.mark.parametrize("ticks", [151_340, 151_341, 151_342])
def test_a_run_ends_before_what_happens_in_the_next_tick(ticks):
    """A host begins to send PAUSE in the last tick, in the next, and in the one after it."""
    storm = {"pfc_storm": {"host": 0, "at_us": round((ticks - LATER) * 8e-5, 6)}}
    switching = {
        "mode": "spray", "nic_mbps": 100_000, "link_us": 0.5, "queue": "lossless", "mtu_bytes": 1064,
        "header_bytes": 64, "pfc": storm,
    }  # fmt: skip
    (row,) = (
        Experiment.load(LINE | {"switching": switching, "transport": "roce"}).run(jobs=1).results.to_dict("records")
    )
    assert (row["status"], row["flows_complete"], row["ticks"]) == ("ok", 2, 151_341)


def test_messages_of_unlike_sizes_have_no_such_bound():
    traffic = GIVEN["traffic"] | {"sizes": {"kind": "pareto", "mean_bytes": 5000}}
    found = Experiment.load(GIVEN | {"traffic": traffic, "transport": "nscc"}).run(jobs=1).results
    assert found["fct_ms_max"].notna().all() and "fct_ms_bound" not in found.dropna(axis=1, how="all")


def test_networks_are_groups_and_transports_series(run):
    points = messages_of(Run.read(run.folder))
    networks, transports = ("leaf_spine spines=1", "leaf_spine spines=2"), ("nscc", "rccc")
    assert [(point.group, point.series) for point in points] == list(product(networks, transports))
    assert {point.panel for point in points} == {""}
    assert sorted(file.name for file in draw(run.folder, ["completion"])) == ["completion.png", "completion.svg"]


CASES, TOPOLOGIES, FACTORS, PATTERNS = (
    ["RoCE", "DCQCN", "TCP"],
    ["leaf_spine", "rail"],
    ["1", "0.25"],
    ["shift", "incast"],
)


def many(networks):
    """A run of cases on networks under patterns; each completes at a time of its own."""
    rows = [
        {
            "scenario": f"{i}", "case": case, "topology": topology, "capacity_of.factor": factor, "traffic": pattern,
            "load": "1", "seed": "1", "flows": "4", "flows_complete": "4", "fct_ms_mean": f"{1 + i}",
            "fct_ms_p99": f"{2 + i}", "fct_ms_max": f"{3 + i}", "fct_ms_bound": "0.5",
        }
        for i, (topology, factor, pattern, case) in enumerate(product(networks, FACTORS, PATTERNS, CASES))
    ]  # fmt: skip
    return Run(rows, [], [], {"columns": ["case", "topology", "capacity_of.factor", "traffic"]})


@pytest.mark.parametrize("width", long_after(1, [3.5, 5.0, 7.16]))
def test_many_networks_are_panels_of_rows(width):
    figure = completion(many(TOPOLOGIES), (width, 2.4))
    assert len(figure.axes) == 4 * len(PATTERNS)  # a line of panels for each network, a column for each pattern
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == CASES
    assert [ax.get_title(loc="left") for ax in figure.axes[:: len(PATTERNS)]] == [
        f"{topology}, factor={factor}" for topology in TOPOLOGIES for factor in FACTORS
    ]
    means = [line.get_xdata()[0] for ax in figure.axes for line in ax.lines if line.get_gid() == "curve"]
    assert sorted(means) == [1.0 + i for i in range(24)]
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in first.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    key = figure.legends[0].get_window_extent()
    assert not any(ax.xaxis.label.get_window_extent().overlaps(key) for ax in figure.axes[-len(PATTERNS) :])


def test_scenarios_whose_messages_do_not_all_complete_are_named():
    run = many(TOPOLOGIES)
    run.rows[0]["flows_complete"] = "3"
    figure = completion(run, (7.16, 2.4))
    assert len([line for ax in figure.axes for line in ax.lines if line.get_gid() == "curve"]) == 23
    assert "1 of 24 scenarios are left out" in figure.legends[0].get_title().get_text()


def test_times_that_differ_much_have_a_logarithmic_axis():
    run = many(TOPOLOGIES)
    assert {ax.get_xscale() for ax in completion(run, (7.16, 2.4)).axes} == {"log"}
    run.rows[:] = [{**row, "fct_ms_bound": "20", "fct_ms_mean": "21", "fct_ms_p99": "25"} for row in run.rows]
    assert {ax.get_xscale() for ax in completion(run, (7.16, 2.4)).axes} == {"linear"}


def test_few_networks_stand_side_by_side():
    (ax, _) = completion(many(TOPOLOGIES[:1]), (3.5, 2.4)).axes
    assert len(ax.get_xticks()) == len(CASES) * len(FACTORS)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_long_names_of_groups_leave_space_for_the_axes(count):
    """In one column of a paper; names stand clear of each other."""
    names = [f"leaf_spine leaves=4 spines={i} hosts_per_leaf=4, ecmp ways=8" for i in range(count)]

    @in_style
    def drawn():
        figure, ax = figure_of(SIZES["column"])
        label_groups(ax, names)
        figure.draw_without_rendering()
        return ax.get_position(), ax.get_xticklabels()

    position, labels = drawn()
    assert position.width > 0.5 and position.height > 0.3
    if not labels[0].get_rotation():
        assert all(a.get_window_extent().x1 < b.get_window_extent().x0 for a, b in pairwise(labels))
    assert len({label.get_text() for label in labels}) == count


def test_collectives_of_one_size_are_bars_with_the_bound():
    rows = [
        {"scenario": name, "algorithm": name, "collective.algorithm": name, "size_bytes": "1048576", "time_ns": time,
         "bound_ns": "80000", "busbw": "20", "busbw_bound": "25"}
        for name, time in (("ring", "100000"), ("tree", "160000"))
    ]  # fmt: skip
    run = Run([], [], [], {"columns": ["collective.algorithm"]}, tables={"collectives": rows})
    ax = time_size(run, (3.5, 2.4)).axes[0]
    assert [bar.get_width() for bar in ax.patches] == [100, 160] and ax.get_xlabel() == "time (µs)"
    assert [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "ceiling"] == [80]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ring", "tree"]
    assert len(busbw_size(run, (3.5, 2.4)).axes[0].patches) == 2
    several = replace(run, tables={"collectives": [*rows, {**rows[0], "size_bytes": "2"}]})
    assert not time_size(several, (3.5, 2.4)).axes[0].patches


def test_a_run_is_priced_by_its_packets(run):
    """Four messages of five packets cross four links each, and so do their answers, a few."""
    hops = sprayed_hops(run.study.cases[0], 1.0)
    assert 4 * 5 * 3 < hops < 4 * 5 * 8


def test_the_99th_percentile_lies_between_the_two_largest_of_six_flows():
    """At place 1 + .99 x 5 = 5.95 of six: .95 of the way from the fifth to the sixth."""
    row = columns_of(
        np.full(6, 1000), np.array([6.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 1.0, 1.0, 1.0, 2.0, 4.0])
    )
    assert (row["fct_ms_p99"], row["slowdown_p99"]) == (pytest.approx(5.95), pytest.approx(3.9))
    assert row["fct_ms_p99_small"] == row["fct_ms_p99"]
