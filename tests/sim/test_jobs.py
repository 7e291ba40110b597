# SPDX-License-Identifier: Apache-2.0
"""Several jobs as a user runs them: closed forms, every discipline, tables, and what is refused."""

import csv
import json
from math import ceil
from pathlib import Path

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.runner import run
from tests import long_after, long_rows_after

NS = 6.4
"""Nanoseconds of a flit of 32 bytes."""

FLITS = 1000
"""Of a message: 31 packets of 32 flits and a shorter one."""

BASE = """\
experiment: application
topology: {kind: mesh, dims: [8]}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4, switch_ns: 12.8}
messages: {rendezvous_bytes: null}
"""


def send(name: str, hosts: str, start_us: float = 0.0) -> str:
    """A job of one message between the hosts of a file."""
    size = 32 * FLITS
    program = f"kind: broadcast, ranks: 2, size_bytes: {size}, algorithm: binomial"
    return f"{{name: {name}, {program}, start_us: {start_us}, placement: {{kind: file, path: {hosts}.csv}}}}"


def jobs_of(folder: Path, *jobs: str, base: str = BASE, sets: tuple[str, ...] = (), code: int = 0) -> dict[str, dict]:
    """Rows of jobs.csv by the name of the job; hosts "02" are the file 02.csv."""
    for a in range(8):
        for b in range(8):
            (folder / f"{a}{b}.csv").write_text(f"{a}\n{b}\n")
    text = base + "application:\n" + "".join(f"  - {job}\n" for job in jobs)
    (folder / "jobs.yaml").write_text(text)
    report = run(read(folder / "jobs.yaml", list(sets)), folder / "run")
    assert report.exit_code == code, report.problems
    with (folder / "run" / "jobs.csv").open() as lines:
        return {row["job"]: row for row in csv.DictReader(lines)}


def number(row: dict, name: str) -> float:
    return float(row[name])


def alone_ns(hops: int) -> float:
    """One message over some channels: injection, a switch and a link for each, ejection, then its other flits."""
    return NS * (1 + (hops + 1) * 2 + hops + 1 + FLITS - 1)


def test_two_flows_that_share_a_channel_take_twice_as_long(tmp_path):
    found = jobs_of(tmp_path, send("a", "02"), send("b", "13"))  # both over 1 -> 2
    for row in found.values():
        assert number(row, "alone_ns") == pytest.approx(alone_ns(2), rel=1e-12)
        assert number(row, "time_ns") == pytest.approx(alone_ns(2) + NS * FLITS, rel=1e-12)
        assert number(row, "slowdown") == pytest.approx((alone_ns(2) + NS * FLITS) / alone_ns(2), rel=1e-12)
        assert number(row, "bound_ns") == pytest.approx(alone_ns(2), rel=1e-9) and row["bytes"] == str(32 * FLITS)


def test_the_second_arrives_when_the_first_is_half_done(tmp_path):
    late = NS * FLITS / 2000  # microseconds
    found = jobs_of(tmp_path, send("a", "02"), send("b", "13", late))
    for row in found.values():
        assert number(row, "alone_ns") == pytest.approx(alone_ns(2), rel=1e-9)
        assert number(row, "time_ns") == pytest.approx(alone_ns(2) + NS * FLITS / 2, rel=1e-9)
    assert number(found["b"], "start_ns") == 1000 * late


def test_the_second_arrives_when_the_first_is_done(tmp_path):
    found = jobs_of(tmp_path, send("a", "02"), send("b", "13", 100))
    assert [number(row, "slowdown") for row in found.values()] == [1, 1]
    with (tmp_path / "run" / "results.csv").open() as lines:
        (row,) = csv.DictReader(lines)
    end = 100_000 + alone_ns(2)
    assert number(row, "makespan_ns") == pytest.approx(end, rel=1e-9)
    assert number(row, "path_arrival") == pytest.approx(100_000 / end, rel=1e-9)
    assert number(row, "compute_ns") == 0 and number(row, "job_slowdown_max") == 1
    assert number(row, "efficiency") == pytest.approx(1, rel=1e-9)


PACKETS = "experiment: application\ntopology: {kind: mesh, dims: [8]}\nmessages: {rendezvous_bytes: null}\n"

MODES = {
    "flow": BASE,
    "vct": PACKETS + "routing: {kind: minimal}\nswitching: {mode: vct, flit_ns: 6.4, buffer_flits: 64}\n",
    "wormhole": PACKETS + "routing: {kind: minimal}\nswitching: {mode: wormhole, flit_ns: 6.4}\n",
    "ideal": PACKETS + "routing: {kind: minimal}\nswitching: {mode: ideal, flit_ns: 6.4}\n",
    "datagram": PACKETS + "routing: {kind: ecmp, ways: 2}\nswitching: {mode: datagram}\ntransport: {kind: tcp}\n",
}


FEW = ("flow", "vct")
"""Modes whose kernels other tests need, too."""

LATER = [pytest.param(mode, marks=pytest.mark.long) for mode in MODES if mode not in FEW]


@pytest.mark.long
@pytest.mark.parametrize("mode", [*FEW, *LATER])
def test_jobs_in_every_discipline(mode, tmp_path):
    """Both engines agree; jobs on channels of their own are not slowed, those that share one are."""
    jobs = send("a", "01"), send("b", "64", 3.7), send("c", "75", 2)
    found = jobs_of(tmp_path, *jobs, base=MODES[mode], sets=("engine=both",))
    assert number(found["a"], "slowdown") == 1
    assert all(number(found[job], "slowdown") > 1.3 for job in "bc")
    assert all(number(row, "bound_ns") <= number(row, "alone_ns") for row in found.values())


@pytest.mark.parametrize("engine", long_after(1, ["reference", "compiled"]))
def test_alone_is_what_the_same_program_takes_by_itself(tmp_path, engine):
    jobs = (
        "{name: a, kind: all_to_all, ranks: 4, size_bytes: 4096, placement: random}",
        "{name: b, kind: background, ranks: 4, gbps: 20, for_us: 4, placement: {kind: random, seed: 5}}",
    )  # fmt: skip
    base = MODES["vct"] + f"engine: {engine}\n"
    found = jobs_of(tmp_path, *jobs, base=base)
    with (tmp_path / "run" / "ranks.csv").open() as lines:
        ranks = list(csv.DictReader(lines))
    assert [row["job"] for row in ranks] == ["a"] * 4 + ["b"] * 4
    assert len({row["host"] for row in ranks}) == 8
    (tmp_path / "a.csv").write_text("".join(f"{row['host']}\n" for row in ranks[:4]))
    text = base + "application: {kind: all_to_all, ranks: 4, size_bytes: 4096}\n"
    (tmp_path / "a.yaml").write_text(text + "placement: {kind: file, path: a.csv}\n")
    (row,) = run(read(tmp_path / "a.yaml"), tmp_path / "a").results
    assert number(found["a"], "alone_ns") == row["makespan_ns"] and number(found["a"], "bound_ns") == row["bound_ns"]
    assert number(found["a"], "slowdown") > 1


def test_one_job_is_the_program_itself(tmp_path):
    jobs = "application: [{kind: all_reduce, size_bytes: 4096}]\n"
    (listed,) = read("c.yaml", text=BASE + jobs).cases
    (single,) = read("c.yaml", text=BASE + "application: {kind: all_reduce, size_bytes: 4096}\n").cases
    assert listed.scenario.content_hash == single.scenario.content_hash
    assert listed.jobs[0].isolated.scenario.content_hash == single.scenario.content_hash
    assert listed.jobs[0].job.name == "all_reduce"


def test_resolved_is_read_back_and_the_rest_of_the_hosts_is_taken():
    jobs = "application: [{kind: halo, dims: [2, 2], start_us: 1.5}, {kind: all_reduce, placement: random}]\n"
    (case,) = read("c.yaml", text=BASE + jobs).cases
    assert [one.job.program.ranks for one in case.jobs] == [4, 4]
    text = json.dumps({"schema": 1, "experiment": "application", **case.resolved})
    (again,) = read("c.yaml", text=text).cases
    assert again.scenario.content_hash == case.scenario.content_hash and again.resolved == case.resolved


def test_units():
    sized = "{kind: all_reduce, ranks: 2, size_bytes: 1KiB}"
    jobs = f"application: [{{kind: barrier, ranks: 2, start_us: 1.5 ms}}, {sized}]\n"
    (case,) = read("c.yaml", text=BASE + jobs).cases
    assert [one.job.start_ns for one in case.jobs] == [1_500_000, 0] and case.jobs[1].job.spec.size_bytes == 1024


TO_ITSELF = """\
num_ranks 2
rank 0 {
a: send 1000b to 0 tag 0 cpu 0
b: recv 1000b from 0 tag 0 cpu 1
c: calc 300 cpu 0
c requires a
}
rank 1 {
}
"""


@pytest.mark.parametrize("engine", long_after(1, ["reference", "compiled", "both"]))
@pytest.mark.parametrize(("mode", "tick"), long_rows_after(1, [("spray", 0.08), ("datagram", 125), ("flow", 1)]))
def test_a_job_that_sends_nothing_takes_its_own_time(mode, tick, engine, tmp_path):
    """A product of 64 x 64 at 100 Gflop/s takes 2 * 64**3 / 100 ns, and what follows a message to oneself 300 ns.

    These are whole nanoseconds, 5243 and 300, and then whole ticks, except in mode flow.
    """
    spray = PACKETS + "routing: {kind: ecmp}\nswitching: {mode: spray}\ntransport: {kind: nscc}\n"
    base = {**MODES, "spray": spray}[mode]
    (tmp_path / "own.goal").write_text(TO_ITSELF)
    one, own = "{name: one, kind: summa, ranks: 1, order: 64}", "{name: own, kind: goal, path: own.goal}"
    others = "{name: others, kind: all_reduce, ranks: 4, size_bytes: 1000}"
    found = jobs_of(tmp_path, one, own, others, base=base, sets=(f"engine={engine}",))
    for name, ns in (("one", 5243), ("own", 300)):
        row = found[name]
        assert row["status"] == "ok" and number(row, "slowdown") == 1
        assert number(row, "time_ns") == number(row, "alone_ns") == pytest.approx(ceil(ns / tick) * tick, abs=0.01)
    assert found["others"]["status"] == "ok" and number(found["others"], "slowdown") == 1


def test_the_best_algorithm_is_that_of_the_job_alone():
    """On a line it is the same as for a program by itself on the same hosts, and not that of a library."""
    own, other = "kind: all_gather, ranks: 4, size_bytes: 65536", "{kind: barrier, ranks: 2}"
    (listed,) = read("c.yaml", text=BASE + f"application: [{{{own}, algorithm: best}}, {other}]\n").cases
    (single,) = read("c.yaml", text=BASE + f"application: {{{own}, algorithm: best}}\n").cases
    (usual,) = read("c.yaml", text=BASE + f"application: {{{own}}}\n").cases
    algorithms = [{step.algorithm for step in case.workload.program.steps} for case in (single, usual)]
    assert listed.jobs[0].isolated.workload.program.content_hash == single.workload.program.content_hash
    assert algorithms[0] <= {step.algorithm for step in listed.workload.program.steps}
    assert algorithms[0] != algorithms[1]


@pytest.mark.long
def test_sweeps_in_a_list(tmp_path, capsys):
    jobs = "application: [{name: a, kind: all_reduce, ranks: 4}, {name: b, kind: barrier, ranks: {sweep: [2, 4]}}]\n"
    (tmp_path / "c.yaml").write_text(BASE + jobs)
    study = read(tmp_path / "c.yaml")
    assert [case.label for case in study.cases] == ["ranks=2", "ranks=4"]
    assert len(study.all_cases) == 2 + 4
    assert main(["check", str(tmp_path / "c.yaml")]) == 0
    assert "job          b: barrier, linear, from 0 µs" in capsys.readouterr().out


A = "{name: a, kind: barrier, ranks: 2}"


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ("[]", "application = []: must have at least 1 item"),
        ("4", "application = 4: must be the name of a kind, or a mapping"),
        ("[4]", "application[0] = 4: must be a mapping"),
        (f"[{A}, {A}]", "application[1].name = a: another job is called a"),
        ("[{kind: barrier, ranks: 2}, {kind: barrier, ranks: 2}]", "application[1].name: another job is called"),
        (f"[{A}, {{kind: barrier, ranks: 7}}]", "the jobs have 9 ranks together, which are more than the 8 hosts"),
        ("[{kind: barrier, ranks: 9}]", "application[0].ranks = 9: is more than the 8 hosts"),
        ("[{kind: barrier, ranks: 0}]", "application[0].ranks = 0: must be greater than or equal to 1"),
        ("[{kind: barrier, ranks: 7}, {kind: all_gather, ranks: 2}]", "the jobs have 9 ranks together"),
        ("[{kind: barrier}, {kind: all_gather}]", "application[1]: has no host left: the jobs before it have all 8"),
        ("[{kind: barrier, start_us: -1}]", "application[0].start_us = -1: must be greater than or equal to 0"),
        ("[{kind: barrier, start_us: soon}]", "application[0].start_us = soon: "),
        ("[{kind: barriers}]", "application[0].kind = barriers: unknown application; choices: "),
        ("[{name: a}]", "application[0].kind: is missing"),
        ("[{kind: barrier, size: 3}]", "application[0].size = 3: unknown key"),
        ("[{kind: barrier, nme: 3}]", "application[0].nme = 3: unknown key"),
        ('[{kind: barrier, name: " "}]', "application[0].name"),
        ("[{kind: barrier, placement: lineer}]", "application[0].placement = lineer: unknown placement"),
        ("[{kind: barrier, placement: {kind: linear, sed: 1}}]", "application[0].placement.sed = 1: unknown key"),
        ("[{kind: barrier, placement: {kind: groups}}]", "application[0].placement.switches: is missing"),
        ("[{kind: goal, path: none.goal}]", "application[0].path = none.goal: "),
    ],
)  # fmt: skip
def test_refused(jobs, expected):
    with pytest.raises(ConfigError) as caught:
        read("c.yaml", text=BASE + f"application: {jobs}\n")
    found = [str(mistake) for mistake in caught.value.errors]
    assert len(found) == 1 and expected in found[0], found


def test_an_arrival_is_a_calculation_that_must_fit_into_ticks():
    """1,000 ns in units of 10^-16 ns, the denominator of the tick, exceed 64 bits."""
    switching = "vcs: 8, buffer_flits: 256, flit_ns: 1.6400000000000001"
    text = BASE.replace("mode: flow, flit_ns: 6.4, switch_ns: 12.8", switching)
    with pytest.raises(
        ConfigError, match=r"application\[0\]: a calculation of 1e\+03 ns is too long for ticks of 1.64 ns"
    ):
        read("c.yaml", text=text + "application: [{kind: barrier, ranks: 2, start_us: 1}]\n")


def test_hosts_of_two_jobs_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"application\[1\].placement: puts a rank of b on host 2, where one of a is"):
        jobs_of(tmp_path, send("a", "02"), send("b", "23"))


def test_named_hosts_are_given_first(tmp_path):
    for name, hosts in (("first", "0\n1\n"),):
        (tmp_path / f"{name}.csv").write_text(hosts)
    text = f"application: [{A}, {{kind: all_gather, ranks: 2, placement: {{kind: file, path: first.csv}}}}]\n"
    (tmp_path / "c.yaml").write_text(BASE + text)
    (case,) = read(tmp_path / "c.yaml").cases
    assert [one.job.host.tolist() for one in case.jobs] == [[2, 3], [0, 1]]
