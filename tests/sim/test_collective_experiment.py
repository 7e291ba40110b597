# SPDX-License-Identifier: Apache-2.0
"""The experiment ``collective``: what is written beside each time, and what is refused."""

import csv
import json
from fractions import Fraction

import pytest

from flitlab.models.collective.schedule_file import read_schedule
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.collective import collectives

CONFIG = """\
experiment: collective
topology: {kind: torus, dims: [4, 4]}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4, switch_ns: 100}
collective: {kind: all_gather, ranks: switches, size_bytes: 1MiB, algorithm: trees}
"""


def study(tmp_path, text=CONFIG, *sets):
    return read(tmp_path / "c.yaml", sets, text=text)


def rows(folder, name):
    with (folder / name).open() as file:
        return list(csv.DictReader(file))


def test_a_run_writes_times_beside_their_bounds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CONFIG.replace("trees}", "{sweep: [trees, hamiltonian_ring, bucket]}}"))
    assert main(["c.yaml", "--jobs", "1"]) == 0
    found = {row["algorithm"]: row for row in rows(tmp_path / "runs/c", "collectives.csv")}
    bound = (1 << 20) / 16 / 32 * 6.4 * Fraction(15, 4)  # flits of a unit, over channels of 1 flit in 6.4 ns
    for row in found.values():
        assert float(row["bound_ns"]) >= float(row["reachable_ns"]) == pytest.approx(bound, rel=1e-12)
        assert row["bound_by"] == "cut with latency"
        assert float(row["efficiency"]) == pytest.approx(float(row["bound_ns"]) / float(row["time_ns"]))
        assert float(row["algbw"]) == pytest.approx((1 << 20) / float(row["time_ns"]))
        assert float(row["busbw"]) == pytest.approx(float(row["algbw"]) * 15 / 16)
    assert float(found["trees"]["efficiency"]) > 0.98
    assert float(found["bucket"]["efficiency"]) > 0.95
    assert float(found["hamiltonian_ring"]["efficiency"]) == pytest.approx(0.25, rel=0.05)
    assert found["trees"]["trees"] == "4"
    drawn = {path.name for path in (tmp_path / "runs/c/figures").glob("*.png")}
    assert drawn == {"busbw_size.png", "time_size.png", "cut_1_torus_all_gather.png"}


def test_a_run_prints_bounds_and_bus_bandwidths_as_in_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CONFIG + "outputs: {figures: [], html: false}\n")
    assert main(["c.yaml", "--jobs", "1"]) == 0
    title, head, line, *_ = capsys.readouterr().out.splitlines()
    assert title.startswith("collectives")
    (row,) = rows(tmp_path / "runs/c", "collectives.csv")
    names = ["bound (µs)", "bound by", "bound / time", "bus bandwidth (GB/s)", "at most"]
    shown = [line[head.index(name) :].split("  ")[0] for name in names]
    factors = {"bound_ns": 1e-3, "bound_by": None, "efficiency": 1, "busbw": 1, "busbw_bound": 1}
    for text, (name, factor) in zip(shown, factors.items(), strict=True):
        assert (
            text == row[name] if factor is None else float(text) == pytest.approx(factor * float(row[name]), rel=1e-4)
        )
    assert main(["c.yaml", "--jobs", "1", "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)["collectives"]
    assert {name: "" if value is None else str(value) for name, value in document.items()} == row


def test_what_a_collective_is_given_follows_from_its_size(tmp_path):
    """S is what a rank has in the end, at first, or sends, as NCCL's tests have it."""
    given = {"all_gather": 1 << 16, "reduce_scatter": 1 << 16, "all_reduce": 1 << 20, "broadcast": 1 << 20}
    for kind, piece in given.items():
        case = study(tmp_path, CONFIG, f"collective.kind={kind}").cases[0]
        assert case.collective.question.piece == piece
        assert case.collective.question.size == 1 << 20


def test_sizes_that_grow_by_a_factor_and_all_algorithms_are_sweeps(tmp_path):
    found = study(
        tmp_path, CONFIG, "collective.size_bytes={from: 4KiB, to: 4 MiB, per_decade: 1}", "collective.algorithm=all"
    )
    sizes = sorted({case.collective.question.size for case in found.cases})
    assert [sizes[0], sizes[-1], len(sizes)] == [4096, 1 << 22, 4]
    named = {case.collective.algorithm for case in found.cases}
    assert {"trees", "ring", "bucket", "hamiltonian_ring", "hierarchical", "library"} <= named
    assert "pairwise" not in named


def test_all_leaves_out_what_the_network_has_not(tmp_path):
    found = study(tmp_path, CONFIG, "topology={kind: rrg, n: 8, degree: 3, seed: 1}", "collective.algorithm=all")
    assert "bucket" not in {case.collective.algorithm for case in found.cases}
    assert any("bucket is left out" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("collective.algorithm=pairwise", "pairwise is not an algorithm of all_gather"),
        ("collective.algorithm=tree", "did you mean 'trees'"),
        ("collective.size_bytes=1 MIB", "is no size: must be a number, of B if it has no unit; choices: B, kB"),
        ("switching={mode: vct, flit_ns: 6.4}", "collective.ranks = switches: is for mode flow"),
        ("collective.root=16", "must be below 16, the number of ranks"),
        ("loads=[0.1]", "is not for experiment: collective: its program defines the traffic"),
        ("collective.kind=barrier", "is not one of the choices"),
        ("collective.kind=[all_gather]", "is not one of the choices"),
        ("collective.algorithm={sweep: [all, [x]]}", "collective.algorithm = [x]: must be"),
        ("collective.size_bytes={from: 1, to: 1e90, per_decade: 20000}", "more than 20,000 values are too many"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, change, problem):
    with pytest.raises(ConfigError) as caught:
        study(tmp_path, CONFIG, change)
    assert problem in str(caught.value)


def test_a_time_below_the_bound_is_a_violation(tmp_path):
    found = study(tmp_path)
    row = {"scenario": found.cases[0].label, "seed": 1, "total_ns": 1.0, "status": "ok", "message": ""}
    _, problems = collectives(found, [row])
    assert row["status"] == "ceiling_violated"
    assert "is done before the bound by" in problems[0]


def test_a_schedule_that_is_written_runs_alike(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert main(["schedule", "c.yaml", "--out", "a.schedule.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sends"] == 16 * 15 * 4 * 16
    assert read_schedule(tmp_path / "a.schedule.json").kind == "all_gather"
    ours = study(tmp_path).cases[0]
    theirs = study(tmp_path, CONFIG, "collective.algorithm={kind: file, path: a.schedule.json}").cases[0]
    assert theirs.workload.program.content_hash != ours.workload.program.content_hash  # it has another name
    for name in ("amount", "peer", "partner", "successor"):
        assert (getattr(theirs.workload.program, name) == getattr(ours.workload.program, name)).all()
    assert main(["schedule", "a.schedule.json"]) == 0


def test_a_file_that_is_no_schedule_is_refused(tmp_path):
    text = {"format": "flitlab schedule", "version": 1, "collective": "broadcast", "ranks": 3, "parts": 1}
    chunks = {"chunks": [[0, -1, 1]]}
    for sends, problem in (
        ([[0, 0, 1, 0]], "chunk 0 does not reach rank 2 complete"),
        ([[0, 1, 2, 0], [0, 0, 1, 1]], "is sent by rank 1, which has nothing of it then"),
        ([[0, 0, 3, 0]], "ranks are 0 to 2"),
        ([[1, 0, 1, 0]], "chunks are 0 to 0"),
        ([[0, 0, 1]], "sends.0"),
    ):
        (tmp_path / "a.schedule.json").write_text(json.dumps({**text, **chunks, "sends": sends}))
        path = tmp_path / "a.schedule.json"
        with pytest.raises(ConfigError) as caught:
            study(
                tmp_path, CONFIG, "topology={kind: rrg, n: 3, degree: 2}", "collective.kind=broadcast",
                f"collective.algorithm={{kind: file, path: {path}}}",
            )  # fmt: skip
        assert problem in str(caught.value)


def test_messages_of_trees_between_hosts_take_the_paths_of_the_trees(tmp_path):
    """In a fat tree, where switches without hosts only forward."""
    text = CONFIG.replace("{kind: torus, dims: [4, 4]}", "{kind: fat_tree, k: 4}")
    case = study(tmp_path, text).cases[0]
    assert case.scenario.routes.kind == "trees"
    assert case.collective.plan.reaches == Fraction(7, 2)
    near = study(tmp_path).cases[0]
    assert near.scenario.routes.kind == "minimal"


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("kind", ["all_gather", "all_reduce"])
def test_trees_between_hosts_are_not_said_to_reach_more_than_hosts_can(tmp_path, kind, each):
    """With one host a switch, the trees are those of switches; with two, hosts are vertices of their own."""
    text = CONFIG.replace("dims: [4, 4]", f"dims: [3, 3], hosts_per_switch: {each}").replace("ranks: switches, ", "")
    case = study(tmp_path, text, f"collective.kind={kind}").cases[0]
    hosts = 9 * each
    assert case.collective.plan.reaches == (hosts - 1 if kind == "all_gather" else Fraction(2 * (hosts - 1), hosts))


def test_a_resolved_configuration_gives_the_same_program(tmp_path):
    import yaml

    first = study(tmp_path)
    again = read(tmp_path / "again.yaml", text=yaml.safe_dump(first.resolved()))
    assert again.cases[0].scenario.content_hash == first.cases[0].scenario.content_hash
