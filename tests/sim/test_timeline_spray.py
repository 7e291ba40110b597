# SPDX-License-Identifier: Apache-2.0
"""Networks that change under sprayed packets, as a user asks for them: tables, checks, the figure, what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.timeline import epochs_of
from flitlab.sim.report.figures.kinds.throughput_time import Clock, _mean
from flitlab.sim.report.folder.frames import read_csv
from tests.sim.test_timeline import run, study

SPINES = """
topology: {kind: leaf_spine, leaves: 4, spines: 4, hosts_per_leaf: 4}
routing: {kind: ecmp, ways: 4}
switching: {mode: spray}
transport: {kind: nscc, paths: 16, spread: reps}
traffic: {kind: shift, by: 4, sizes: {kind: fixed, bytes: 500000}, arrivals: together}
timeline:
- {at_us: 15, fail: {switches: [7]}, reroute_after: 10}
- {at_us: 40, restore: {switches: [7]}}
ceilings: [mcf, mcf_paths]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of four leaves, of whose four spines one is away for 25 us."""
    path = tmp_path_factory.mktemp("timeline")
    assert run(path, SPINES + "engine: both\n") == 0
    return path / "run"


def test_every_epoch_has_its_ceilings(folder):
    """Four hosts of a leaf share three up-links while a spine is away."""
    rows = [row for row in read_csv(folder / "epochs.csv") if row["ceiling"] == "mcf"]
    assert [float(row["upper"]) for row in rows] == pytest.approx([1, 0.75, 1])
    assert [float(row["from_us"]) for row in rows] == pytest.approx([0, 15, 40])
    assert [row["what"] for row in rows] == ["", "switch 7 fails", "switch 7 returns"]


def test_throughput_over_time_adds_up_to_that_of_the_run(folder):
    """The intervals are equal but for those that an event ends, and at most 200."""
    rows = read_csv(folder / "throughput_time.csv")
    starts, ends, got = (np.array([float(row[key]) for row in rows]) for key in ("from_us", "to_us", "host_throughput"))
    assert (starts[1:] == ends[:-1]).all() and starts[0] == 0
    assert np.isin([15, 40], starts.round(6)).all() and 50 < len(rows) < 204
    inner = np.diff(np.unique([*(t for t in starts.round(6) if t not in (15, 40))]))
    assert np.ptp(inner) < 1e-3
    (row,) = read_csv(folder / "results.csv")
    assert (got * (ends - starts)).sum() / ends[-1] == pytest.approx(float(row["host_throughput"]))
    for column in ("drops", "retransmissions"):
        assert int(row[column]) == sum(int(interval[column]) for interval in rows) > 0
    lost = [start for start, interval in zip(starts, rows, strict=True) if int(interval["drops"])]
    assert min(lost) > 14 and max(lost) < 26
    assert ends[-1] == pytest.approx(float(row["seconds"]) * 1e6)


def test_each_epoch_is_checked_against_its_own_ceilings(folder):
    (record,) = [json.loads(path.read_text()) for path in (folder / "points").iterdir()]
    names = {f"{kind}{end}" for kind in ("mcf", "mcf_paths") for end in ("", ":epoch_1", ":epoch_2", ":epoch_3")}
    assert record["status"] == "ok" and set(record["slack"]) == names
    assert min(record["slack"].values()) > 0


def test_a_ceiling_of_an_epoch_that_is_too_low_fails_the_run(tmp_path, monkeypatch):
    """The links are said to be a tenth as fast as they are simulated, in the third of three epochs alone."""

    def wrong(timeline, instance):
        slow = replace(timeline.epochs[2], rate=timeline.epochs[2].rate / 10)
        return epochs_of(replace(timeline, epochs=(*timeline.epochs[:2], slow)), instance)

    monkeypatch.setattr("flitlab.sim.config.case.epochs_of", wrong)
    assert run(tmp_path, SPINES.replace("500000", "3000000")) == 3
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    assert "mcf:epoch_3" in row["message"] and "epoch_1" not in row["message"]


def test_events_after_the_last_flow_change_nothing(tmp_path):
    late = SPINES.replace("at_us: 40", "at_us: 900")
    assert run(tmp_path, late) == 0
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    assert float(row["seconds"]) < 900e-6 and row["status"] == "ok"
    assert len(read_csv(tmp_path / "run" / "epochs.csv")) == 6


def test_the_figure_averages_runs_of_other_lengths():
    """One run ends after 4 us, the other, in intervals twice as long, after 6."""
    short = [{"seed": "1", "from_us": str(t), "to_us": str(t + 1), "host_throughput": "1.0"} for t in range(4)]
    long = [{"seed": "2", "from_us": str(t), "to_us": str(t + 2), "host_throughput": "0.5"} for t in range(0, 6, 2)]
    edges, mean = _mean([*short, *long], Clock.of([*short, *long]))
    assert edges.tolist() == [0, 1, 2, 3, 4, 6]
    assert mean.tolist() == [0.75, 0.75, 0.75, 0.75, 0.25]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("timeline[1].at_us=3000000", r"timeline\[1\]: is after the end of the run, 2 s"),
        ("timeline[0].fail={switches: [0]}", r"timeline\[0\].fail.switches\[0\] = 0: has hosts"),
        ("timeline=[{at_us: 1, fail: {links: [[0, 4], [0, 5], [0, 6], [0, 7]]}}]", r"timeline\[0\]: cuts hosts off"),
        ("timeline=[{at_us: 1, slow: {links: [[0, 4]]}, factor: 1e-7}]", r"a packet takes \d+ ticks"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    with pytest.raises(ConfigError, match=expected):
        study(tmp_path, SPINES, change)
