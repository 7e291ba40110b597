# SPDX-License-Identifier: Apache-2.0
"""``experiment: search``: bisection with verification draws, each network solved once and only as far as it takes."""

import csv
from itertools import product

import pytest

from flitlab.fluid.concurrent import reaches
from flitlab.models.registry import make
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.experiment import search
from flitlab.sim.experiment.network import build, is_drawn, redrawn
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import run

CONFIG = """\
experiment: search
topology: {kind: rrg, n: 8, ports: 4, hosts_total: 8, host_capacity: .inf}
traffic: {kind: permutation}
search: {vary: hosts_total, until: 1.0, verify: 3, draws: 2}
"""


def ask(first, last, start, holds, few=2, many=5):
    """(what the search returns, its questions), with ``holds(value, draws)`` in place of networks."""
    steps, asked = search.largest(first, last, start, few, many), []
    try:
        question = next(steps)
        while True:
            asked.append(question)
            question = steps.send(holds(*question))
    except StopIteration as end:
        return end.value, asked


@pytest.mark.parametrize(("first", "last"), [(1, 12), (0, 7), (5, 5), (3, 40)])
def test_every_threshold_is_found_from_every_start(first, last):
    for threshold, start in product(range(first - 1, last + 1), range(first, last + 1)):
        found, asked = ask(first, last, start, lambda value, draws, t=threshold: value <= t)
        assert found == (threshold if threshold >= first else None)
        assert all(first <= value <= last for value, _ in asked) and len(asked) == len(set(asked))
        assert sum(draws == 5 for _, draws in asked) == (found is not None)


def test_what_the_verification_refutes_is_given_up_for_the_next_that_stands_it():
    found, asked = ask(1, 100, 50, lambda value, draws: value <= (60 if draws == 2 else 41))
    assert found == 41
    assert max(value for value, draws in asked if draws == 5) == 60
    assert ask(1, 100, 50, lambda value, draws: draws == 2)[0] is None


def test_a_long_range_takes_few_questions():
    assert len(ask(1, 10**6, 1000, lambda value, draws: value <= 77_777)[1]) < 40


def table(folder):
    with open(folder / "probes.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_value_found_is_what_trying_all_draws_says(study, tmp_path):
    report = run(study(), tmp_path / "out")
    found = report.metrics[0]["found"]

    def theta_reached(hosts, draw):
        topology = make("topology", kind="rrg", n=8, ports=4, hosts_total=hosts, host_capacity=float("inf"),
                        seed=1 + draw).build()  # fmt: skip
        traffic = make("traffic", kind="permutation", seed=1 + draw).build(topology)
        return reaches(topology, traffic, 1.0, 1e-3).reached

    assert all(theta_reached(found, draw) for draw in range(5))
    assert not all(theta_reached(found + 1, draw) for draw in range(5))
    tried = {(int(row["value"]), int(row["draw"])): row["reached"] == "True" for row in table(tmp_path / "out")}
    assert all(theta_reached(*probe) == answer for probe, answer in tried.items())
    assert report.metrics[0]["probes"] == len(tried)


def test_resumed_network_by_network(study, tmp_path, monkeypatch):
    first = run(study(), tmp_path / "out")
    before = (tmp_path / "out/probes.csv").read_bytes()
    files = sorted((tmp_path / "out/probes").iterdir())
    files[0].unlink()
    calls = []

    def counted(*arguments, real=search.reaches_theta):
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(search, "reaches_theta", counted)
    again = run(study(), tmp_path / "out")
    assert len(calls) == 1 and again.metrics == first.metrics
    assert _without_seconds(tmp_path / "out/probes.csv") == _without_seconds(before)


def _without_seconds(given):
    text = given.decode() if isinstance(given, bytes) else given.read_text()
    return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(text.splitlines())]


@pytest.mark.long
def test_any_number_of_processes_tries_the_same(study, tmp_path):
    for jobs in (1, 2):
        run(study(), tmp_path / str(jobs), RunOptions(jobs))
    assert _without_seconds(tmp_path / "1/probes.csv") == _without_seconds(tmp_path / "2/probes.csv")


def test_a_share_of_the_draws_may_be_enough(study, tmp_path):
    strict = run(study(), tmp_path / "strict").metrics[0]["found"]
    lax = run(study(sets=["search.share=0.5"]), tmp_path / "lax").metrics[0]["found"]
    assert lax > strict


def test_bounds_and_what_cannot_be_built_are_said(study, tmp_path):
    text = CONFIG.replace("until: 1.0", "until: 0.01")
    (row,) = run(study(text), tmp_path / "free").metrics
    assert f"{row['found'] + 1} cannot be built" in row["search_note"]
    (row,) = run(study(text.replace("vary", "to: 9, vary")), tmp_path / "to").metrics
    assert (row["found"], row["search_note"]) == (9, "the last value that was allowed")
    (row,) = run(study(text.replace("until: 0.01", "until: 99")), tmp_path / "none").metrics
    assert row["found"] is None and row["search_note"] == "no value reaches it"


def test_one_draw_is_enough_where_nothing_is_drawn(study, tmp_path):
    text = (
        "experiment: search\ntopology: {kind: torus, dims: [4, 4], host_capacity: .inf}\n"
        "traffic: {kind: all_to_all}\nsearch: {vary: 'topology.dims[0]', until: 1.0, to: 12}\n"
    )
    (row,) = run(study(text), tmp_path / "out").metrics
    assert {probe["draw"] for probe in table(tmp_path / "out")} == {"0"}
    network = {"topology": {"kind": "torus", "dims": [row["found"], 4], "host_capacity": float("inf")}}
    network["traffic"] = {"kind": "all_to_all"}
    assert reaches(*build(network), 1.0, 1e-3).reached
    network["topology"]["dims"][0] += 1
    assert not reaches(*build(network), 1.0, 1e-3).reached


def test_a_network_that_cannot_be_solved_ends_its_search_only(study, tmp_path, monkeypatch):
    def fails(network, *_):
        return search.Outcome(problem="too hard")

    monkeypatch.setattr(search, "reaches_theta", fails)
    report = run(study(), tmp_path / "out")
    assert report.exit_code == 1 and "hosts_total 8: too hard" in report.problems[0]


def test_a_search_of_slow_host_channels_ends(study, tmp_path):
    """Their capacities bound the load, by a number of NumPy, and a record is JSON."""
    slow = study(CONFIG.replace("host_capacity: .inf", "host_capacity: 1.0e-19"))
    assert run(slow, tmp_path / "out").metrics[0]["probes"] == len(table(tmp_path / "out"))


def test_redrawing_moves_every_seed():
    network = {
        "topology": {"kind": "rrg", "n": 8, "degree": 3, "seed": 5, "failures": {"links": 1}},
        "traffic": {"kind": "permutation"},
    }
    found = redrawn(network, 2)
    assert found["topology"]["seed"] == 7 and found["topology"]["failures"] == {"links": 1, "seed": 3}
    assert found["traffic"]["seed"] == 3 and network["topology"]["seed"] == 5
    assert is_drawn(network)
    assert not is_drawn({"topology": {"kind": "hypercube", "dim": 3}, "traffic": {"kind": "all_to_all"}})


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("hosts_total,", "hosts,"), "c.yaml:4: search.vary = hosts: names no key that topology or traffic "
         "has a value for; choices: topology.n, topology.ports, topology.hosts_total"),
        (("hosts_total,", "topology.kind,"), "search.vary = topology.kind: must name a key that is a whole number; "
         "topology.kind is rrg"),
        (("hosts_total,", "host_capacity,"), "search.vary = host_capacity: must name a key that is a whole number"),
        (("until: 1.0", "until: 0"), "c.yaml:4: search.until = 0: must be greater than 0"),
        (("until: 1.0", "until: -1"), "search.until = -1: must be greater than 0"),
        (("draws: 2", "draws: 0"), "search.draws = 0: must be greater than or equal to 1"),
        (("until: 1.0", "till: 1.0"), "search.till = 1.0: unknown key; choices: draws, from, share, to, tolerance"),
        (("until: 1.0", "from: 9, to: 3"), "c.yaml:4: search: from is above to"),
        (("vary: hosts_total, ", ""), "search.vary: is missing"),
        ((CONFIG[CONFIG.index("search: {vary") :], ""), "search: is missing: experiment search needs it"),
    ],
)  # fmt: skip
def test_mistakes(study, change, line):
    with pytest.raises(ConfigError) as caught:
        study(CONFIG.replace(*change))
    assert any(line in str(mistake) for mistake in caught.value.errors), caught.value.errors
