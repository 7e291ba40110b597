# SPDX-License-Identifier: Apache-2.0
"""Slow links from the beginning, as a user asks for them: closed forms, engines, and modes that have none."""

import csv

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

RING = """
topology: {kind: torus, dims: [3]}
capacity_of: {links: [[0, 1]], factor: 0.1}
routing: {kind: ecmp}
switching: {mode: datagram}
traffic: {kind: shift, by: 1}
transport: {kind: none, start_ms: 0}
measure: {seconds: 2}
engine: both
ceilings: [mcf, mcf_paths]
"""


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(tmp_path, text, *options):
    (tmp_path / "given.yaml").write_text(text)
    folder = tmp_path / "run"
    assert main(["run", str(tmp_path / "given.yaml"), "--out", str(folder), "--jobs", "1", *options]) == 0
    return folder


def read_text(tmp_path, text, *sets):
    (tmp_path / "given.yaml").write_text(text)
    return read(tmp_path / "given.yaml", sets)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["none", "tcp", "dctcp"])
def test_a_flow_has_the_rate_of_its_slow_link(tmp_path, kind):
    """The flow over the slow link has a tenth, and the others have the rate of their hosts."""
    folder = run(tmp_path, RING.replace("kind: none", f"kind: {kind}"))
    got = {row["source"]: float(row["throughput"]) for row in rows(folder / "flows.csv")}
    assert got["0"] == pytest.approx(0.1, rel=0.01 if kind != "tcp" else 0.1)
    assert (got["1"], got["2"]) == pytest.approx((1.0, 1.0), rel=0.01)
    (row,) = rows(folder / "results.csv")
    assert float(row["throughput_min"]) <= 0.1 * (1 + 1e-9)
    paths = next(row for row in rows(folder / "ceilings.csv") if row["ceiling"] == "mcf_paths")
    assert float(paths["upper"]) == pytest.approx(0.1)  # of three switches in a ring minimal paths are unique


def test_the_place_of_the_key_makes_no_difference(tmp_path):
    above = read_text(tmp_path, RING).cases[0]
    text = RING.replace("\ncapacity_of: {links: [[0, 1]], factor: 0.1}", "")
    within = read_text(tmp_path, text, "topology.capacity_of={links: [[0, 1]], factor: 0.1}").cases[0]
    assert above.scenario.content_hash == within.scenario.content_hash
    assert above.resolved == within.resolved
    assert above.resolved["topology"]["capacity_of"]["links"] == [[0, 1]]
    with pytest.raises(ConfigError, match="capacity_of: is also in topology"):
        read_text(tmp_path, RING, "topology.capacity_of={links: 1, factor: 0.5}")


def test_factors_can_be_swept_and_differ_between_cases(tmp_path):
    text = RING.replace("factor: 0.1", "factor: {sweep: [0.1, 0.5, 2]}")
    study = read_text(tmp_path, text)
    assert [case.label for case in study.cases] == ["factor=0.1", "factor=0.5", "factor=2"]
    assert [case.topology.capacity[0] for case in study.cases] == [0.1, 0.5, 2]
    text = RING + "cases: [{label: slow}, {label: slower, capacity_of: {factor: 0.01}}]\n"
    assert [case.topology.capacity[0] for case in read_text(tmp_path, text).cases] == [0.1, 0.01]


def test_half_duplex_refuses_directions_of_two_rates(tmp_path):
    text = (
        "topology: {kind: torus, dims: [3]}\ncapacity_of: {links: [[0, 1]], factor: 0.5, directed: true}\n"
        "routing: {kind: minimal}\nswitching: {mode: flow, duplex: half, flit_ns: 1}\nexperiment: application\n"
        "application: {kind: all_to_all}\n"
    )
    with pytest.raises(ConfigError, match=r"switching.duplex = half: the two directions of a link share one capacity"):
        read_text(tmp_path, text)
    assert read_text(tmp_path, text, "switching.duplex=full").cases
    assert read_text(tmp_path, text, "capacity_of.directed=false").cases


def test_a_message_flows_at_the_rate_of_its_slow_link(tmp_path):
    """A message of 1,000 flits takes 10,000 ticks over a link of a tenth, and its latency besides."""
    text = (
        "topology: {kind: torus, dims: [3]}\ncapacity_of: {links: [[0, 1]], factor: 0.1}\n"
        "routing: {kind: minimal, select: hash}\nswitching: {mode: flow, flit_ns: 1}\nexperiment: application\n"
        "application: {kind: ping_pong, ranks: 2, size_bytes: 32000}\nengine: both\n"
        "messages: {flit_bytes: 32, rendezvous_bytes: null}\n"
    )
    folder = run(tmp_path, text)
    (row,) = rows(folder / "results.csv")
    assert float(row["makespan_ns"]) == pytest.approx(2 * 10_000, rel=0.01)
    assert float(row["bound_ns"]) <= float(row["makespan_ns"])
