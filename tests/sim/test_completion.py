# SPDX-License-Identifier: Apache-2.0
"""Completion times of sprayed messages beside the least time that any routing needs for the last of them."""

from itertools import product

import pytest

from flitlab import Experiment
from flitlab.sim.experiment.prices import sprayed_hops
from flitlab.sim.report.figures.draw import draw
from flitlab.sim.report.figures.flows import messages_of
from flitlab.sim.report.folder.run import Run

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


def test_a_run_is_priced_by_its_packets(run):
    """Four messages of five packets cross four links each, and so do their answers, a few."""
    hops = sprayed_hops(run.study.cases[0], 1.0)
    assert 4 * 5 * 3 < hops < 4 * 5 * 8
