# SPDX-License-Identifier: Apache-2.0
"""Networks that change during a run, as a user asks for them: tables, checks, the figure, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.timeline import epochs_of
from flitlab.sim.report.folder.frames import read_csv

TREE = """
topology: {kind: fat_tree, k: 4}
routing: {kind: ecmp, ways: 8}
switching: {mode: datagram}
transport: {kind: mptcp, subflows: 4}
traffic: {kind: permutation, seed: 1}
measure: {seconds: 0.6, window: [0, 0.6]}
timeline:
- {at_us: 200000, fail: {switches: [19]}, reroute_after: 20000}
- {at_us: 400000, restore: {switches: [19]}}
ceilings: [mcf, mcf_paths]
"""


def study(tmp_path, text, *sets):
    (tmp_path / "given.yaml").write_text(text)
    return read(tmp_path / "given.yaml", sets)


def run(tmp_path, text, *options):
    (tmp_path / "given.yaml").write_text(text)
    return main(["run", str(tmp_path / "given.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1", *options])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of a fat tree whose core switch is away for a third of the time."""
    path = tmp_path_factory.mktemp("timeline")
    assert run(path, TREE) == 0
    return path / "run"


@pytest.mark.long
def test_every_epoch_has_its_ceilings(folder):
    """Of four up-links of a pod one is missing, so that each of its four hosts gets three quarters."""
    mcf = [row for row in read_csv(folder / "epochs.csv") if row["ceiling"] == "mcf"]
    assert [float(row["upper"]) for row in mcf] == pytest.approx([1, 0.75, 1])
    assert [float(row["lower"]) for row in mcf] == pytest.approx([1, 0.75, 1])
    assert [row["from_us"] for row in mcf] == ["0.0", "200000.0", "400000.0"]
    assert [row["to_us"] for row in mcf] == ["200000.0", "400000.0", ""]
    assert [row["what"] for row in mcf] == ["", "switch 19 fails", "switch 19 returns"]
    names = [row["ceiling"] for row in read_csv(folder / "ceilings.csv")]
    assert names[:4] == ["mcf", "mcf:epoch_1", "mcf:epoch_2", "mcf:epoch_3"]


def test_throughput_over_time_falls_and_comes_back(folder):
    rows = read_csv(folder / "throughput_time.csv")
    starts, ends, got = (np.array([float(row[key]) for row in rows]) for key in ("from_us", "to_us", "host_throughput"))
    assert (starts[1:] == ends[:-1]).all() and starts[0] == 0 and ends[-1] == pytest.approx(600_000)
    assert {200_000.0, 400_000.0} <= set(starts)
    whole, failed, back = ((starts >= a) & (ends <= b) for a, b in ((1e5, 2e5), (2.5e5, 4e5), (5e5, 6e5)))
    assert got[failed].mean() < 0.9 * min(got[whole].mean(), got[back].mean())
    (row,) = read_csv(folder / "results.csv")
    mean = (got * (ends - starts)).sum() / ends[-1]
    assert float(row["host_throughput"]) == pytest.approx(mean)
    assert int(row["drops"]) == sum(int(interval["drops"]) for interval in rows)
    assert "efficiency" not in row


def test_each_epoch_is_checked_against_its_own_ceilings(folder):
    (record,) = [json.loads(path.read_text()) for path in (folder / "points").iterdir()]
    assert record["status"] == "ok"
    names = {f"{kind}{end}" for kind in ("mcf", "mcf_paths") for end in ("", ":epoch_1", ":epoch_2", ":epoch_3")}
    assert set(record["slack"]) == names
    assert min(record["slack"].values()) > 0


def test_a_ceiling_of_an_epoch_that_is_too_low_fails_the_run(tmp_path, monkeypatch):
    """The links are said to be a third as fast as they are simulated, in the second of three epochs alone."""

    def wrong(timeline, instance):
        slow = replace(timeline.epochs[1], rate=timeline.epochs[1].rate / 3)
        epochs = (timeline.epochs[0], slow, timeline.epochs[2])
        return epochs_of(replace(timeline, epochs=epochs), instance)

    monkeypatch.setattr("flitlab.sim.config.case.epochs_of", wrong)
    assert run(tmp_path, TREE, "--set", "outputs={figures: [], html: false}") == 3
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    assert "mcf:epoch_2" in row["message"] and "epoch_1" not in row["message"]


def test_the_figure_names_events_and_ceilings(folder):
    from flitlab.sim.report.figures.draw import figure_of
    from flitlab.sim.report.folder.run import Run

    figure = figure_of(Run.read(folder), "throughput_time")
    (ax,) = figure.axes
    steps = [patch for patch in ax.patches if patch.get_gid() == "ceiling"]
    assert [patch.get_data().values.tolist() for patch in steps] == [pytest.approx([1, 0.75, 1])] * 2
    figure.draw_without_rendering()
    words = {text.get_text(): text.get_window_extent() for text in ax.texts if text.get_text()}
    assert set(words) == {"switch 19 fails", "switch 19 returns"}
    assert min(box.y0 for box in words.values()) > ax.get_window_extent().y1, "above the axes, over no curve"
    assert not words["switch 19 fails"].overlaps(words["switch 19 returns"])
    assert sum(line.get_gid() == "event" for line in ax.lines) == 2
    assert (folder / "figures" / "throughput_time.png").exists()


def test_runs_whose_networks_stay_as_they_are_have_none_of_it(tmp_path):
    text = TREE[: TREE.index("timeline")] + "ceilings: [mcf]\n"
    assert run(tmp_path, text) == 0
    assert not {"epochs.csv", "throughput_time.csv"} & {path.name for path in (tmp_path / "run").iterdir()}
    assert "efficiency" in read_csv(tmp_path / "run" / "results.csv")[0]


def test_what_was_understood_is_a_configuration_with_the_same_results(tmp_path, folder):
    again = read(folder / "config.resolved.yaml")
    assert again.cases[0].scenario.content_hash == study(tmp_path, TREE).cases[0].scenario.content_hash
    other = study(tmp_path, TREE, "timeline[0].at_us=200001").cases[0]
    assert other.scenario.content_hash != again.cases[0].scenario.content_hash


def test_a_cut_that_no_routing_learns_of_has_no_ceilings(tmp_path):
    text = TREE.replace("switches: [19]", "links: [[0, 8], [0, 9]]").replace("20000}", ".inf}")
    epochs = study(tmp_path, text).cases[0].epochs
    assert [epoch.instance is None for epoch in epochs] == [False, True, False]
    assert "cuts hosts off" in epochs[1].problem


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("timeline[1].at_us=600000", r"timeline\[1\]: is after the end of the run, 0.6 s"),
        ("timeline[1].at_us=1", r"timeline\[1\]: times must not decrease"),
        ("timeline[0].fail={switches: [0]}", r"timeline\[0\].fail.switches\[0\] = 0: has hosts"),
        ("timeline[0].fail={links: [[0, 1]]}", r"fail.links\[0\] = \[0, 1\]: names no link"),
        ("timeline=[{at_us: 1, fail: {links: [[0, 8], [0, 9]]}}]", r"timeline\[0\]: cuts hosts off"),
        ("timeline[1].restore={switches: [18]}", r"restore.switches\[0\] = 18: has not failed"),
        ("timeline[0].factor=0.5", r"timeline\[0\]: factor goes with slow"),
        ("timeline[0].reroute_after=-1", r"timeline\[0\].reroute_after = -1: must be greater than or equal to 0"),
        ("switching.link_failures={links: 1, at_ms: 1}", r"timeline: is given beside switching.link_failures"),
        ("experiment=metrics", r"timeline: is not for experiment metrics"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    with pytest.raises(ConfigError, match=expected):
        study(tmp_path, TREE, change)
