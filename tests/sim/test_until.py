# SPDX-License-Identifier: Apache-2.0
"""Draws of ceilings until their mean is known precisely: where they end, against the definition."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from flitlab.sim.cli import main
from flitlab.sim.experiment import ceilings
from flitlab.sim.experiment.store import Store

CONFIG = """\
schema: 1
name: draws
experiment: ceilings
ceilings: [{{kind: mcf, method: exact}}, hm]
topology: {{kind: rrg, n: 12, degree: {{sweep: [3, 4]}}, host_capacity: .inf}}
routing: {{kind: ksp, k: 2}}
traffic: {{kind: permutation, seed: {{sweep: {{from: 1, to: {most}, step: 1}}}}}}
{until}
published: [{{where: mean, scenario: {{degree: 3}}, over: mean, quantity: mcf, value: 1}}]
"""


def run(folder, until="", most=10, jobs="1"):
    file = Path("c.yaml")
    file.write_text(CONFIG.format(most=most, until=until))
    return main([str(file), "--out", folder, "--jobs", jobs])


def rows(folder, name="ceilings.csv"):
    return list(csv.DictReader(Path(folder, name).open()))


def values(folder, degree, kind):
    return [float(row["lower"]) for row in rows(folder)
            if f"degree={degree}," in row["scenario"] and row["ceiling"] == kind]  # fmt: skip


def first_enough(every, ci, least):
    """The first n of ``least`` or more whose 95 % interval is narrow enough for all kinds; all draws without one."""
    for n in range(least, len(every[0]) + 1):
        widths = [stats.sem(kind[:n]) * stats.t.ppf(0.975, n - 1) / np.mean(kind[:n]) for kind in every]
        if max(widths) <= ci:
            return n
    return len(every[0])


def test_draws_end_where_all_intervals_are_narrow_enough():
    assert run("all") == 0
    assert run("some", "until: {ci: 15%, least: 3}") == 0
    kinds = ("mcf", "hm", "hm:total", "hm:min", "hm:theta", "hm:jain")
    kept = []
    for degree in (3, 4):
        every = [values("all", degree, kind) for kind in kinds]
        ends = first_enough(every, 0.15, 3)
        assert [values("some", degree, kind) for kind in kinds] == [kind[:ends] for kind in every]
        kept.append(ends)
    assert min(kept) < 10
    (published,) = rows("some", "published.csv")
    assert float(published["measured"]) == pytest.approx(np.mean(values("some", 3, "mcf")))
    assert len(rows("some", "metrics.csv")) == sum(kept)


def test_draws_of_several_graphs_are_ordered_by_their_seed():
    """Cases that share their ``keys`` are one series: draws alternate between the graphs of the cases."""
    graphs = "".join(
        f"""  - {{label: graph {graph}, keys: {{case: all}}, topology: {{kind: rrg, n: 12, degree: 3, seed: {graph}}},
     traffic: {{kind: permutation, seed: {{sweep: {{from: {graph}, to: {8 + graph}, step: 2}}}}}}}}
"""
        for graph in (1, 2)
    )
    config = f"""\
schema: 1
name: graphs
experiment: ceilings
ceilings: [{{kind: mcf, method: exact}}]
topology: {{host_capacity: .inf}}
until: {{ci: 30%, over: traffic.seed, least: 3}}
cases:
{graphs}"""
    Path("c.yaml").write_text(config)
    assert main(["c.yaml", "--out", "some", "--jobs", "1"]) == 0
    Path("c.yaml").write_text(config.replace("ci: 30%", "ci: 0.01%"))
    assert main(["c.yaml", "--out", "all", "--jobs", "1"]) == 0
    by_seed = sorted(rows("all", "metrics.csv"), key=lambda row: int(row["traffic.seed"]))
    assert len(by_seed) == 10
    end = first_enough([[float(row["mcf"]) for row in by_seed]], 0.3, 3)
    assert end < 10
    kept = sorted(int(row["traffic.seed"]) for row in rows("some", "metrics.csv"))
    assert kept == list(range(1, end + 1))


def test_processes_do_not_change_the_draws():
    """Two processes compute draws beyond the end, which no table shows."""
    for jobs in ("1", "2"):
        assert run(jobs, "until: {ci: 15%, least: 3}", jobs=jobs) == 0
    for name in ("metrics.csv", "published.csv"):
        assert Path("1", name).read_bytes() == Path("2", name).read_bytes()
    one, two = (
        [{key: value for key, value in row.items() if key != "seconds"} for row in rows(jobs)] for jobs in ("1", "2")
    )
    assert one == two


def test_each_number_of_draws_is_evaluated_once(monkeypatch):
    """The cost of a series that never ends is linear in its draws, so that 200 draws take no minutes."""
    calls = []

    def counted(values):
        calls.append(len(values))
        return mean_and_half(values)

    mean_and_half = ceilings.mean_and_half
    monkeypatch.setattr(ceilings, "mean_and_half", counted)
    assert run("all", "until: {ci: 0.01%, least: 3}") == 0
    assert len(rows("all", "metrics.csv")) == 20
    # two series, each with 3 to 10 draws; the first of six ceilings is too wide already
    assert len(calls) <= 2 * 8
    assert max(calls) <= 10


def test_only_calls_in_flight_have_a_file(monkeypatch):
    """A pickled instance with routes may take 50 MB: none is written of draws left out, and none is kept."""
    known = []

    def counted(self, scenario, name):
        file = pickled(self, scenario, name)
        known.append(len(list(self.folder.glob("*/*.pickle"))))
        return file

    pickled = Store.scenario
    monkeypatch.setattr(Store, "scenario", counted)
    assert run("some", "until: {ci: 15%, least: 3}") == 0
    draws = len(rows("some", "metrics.csv"))
    assert draws < 20
    assert len(known) == 2 * draws  # a call for each of the two ceilings
    assert set(known) == {1}


def test_until_needs_ceilings_and_a_swept_key(capsys):
    assert run("wrong", "until: {ci: 1%, over: traffic.x}") == 2
    assert "until.over = traffic.x: is no swept key" in capsys.readouterr().err
    file = Path("c.yaml")
    file.write_text(file.read_text().replace("experiment: ceilings", "experiment: metrics"))
    assert main([str(file)]) == 2
    assert "is for experiment: ceilings" in capsys.readouterr().err
