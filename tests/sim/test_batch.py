# SPDX-License-Identifier: Apache-2.0
"""Batches: closed forms of one flow for each host, the limit of outstanding packets, equal engines, and errors."""

import csv

import numpy as np
import pytest

from flitlab.sim.cli import main
from tests import long_after
from tests.sim.test_trace import MODES, column, latency

HOSTS, FLITS = 6, 4


def batch(folder, mode, keys, *options, engine="reference"):
    """The time of a batch on a ring of six switches with a host each, and the rows of packets.csv."""
    routing = "deflection" if mode == "pool" else "minimal"
    (folder / "a.yaml").write_text(
        f"topology: {{kind: torus, dims: [{HOSTS}]}}\nrouting: {{kind: {routing}}}\nswitching: {MODES[mode]}\n"
        f"traffic: {{kind: batch, flits: {FLITS}, {keys}}}\n"
        f"outputs: {{figures: [], html: false}}\nceilings: []\nengine: {engine}\n"
    )
    assert main(["run", str(folder / "a.yaml"), "--out", str(folder / "out"), *options]) == 0
    tables = {}
    for name in ("results", "packets"):
        with (folder / "out" / f"{name}.csv").open() as file:
            tables[name] = list(csv.DictReader(file))
    return int(tables["results"][0]["ticks"]), tables["packets"]


ENGINES = ["reference", pytest.param("both", marks=pytest.mark.long)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", long_after(2, ["vct", "wormhole", "ideal", "pool"]))
@pytest.mark.parametrize("outstanding", [1, 2, 4, None])
def test_a_flow_of_each_host_takes_its_round_trips(tmp_path, mode, outstanding, engine):
    """Latency z: a window of n packets leaves every z + 1 ticks, its packets L ticks apart, if n L <= z + 1."""
    count, z = 12, latency(1, FLITS)
    assert z + 1 >= 4 * FLITS
    limit = "null" if outstanding is None else outstanding
    ticks, rows = batch(
        tmp_path, mode, f"of: {{kind: shift, by: 1}}, packets: {count}, outstanding: {limit}", engine=engine
    )
    window = outstanding or count
    assert ticks == (count // window - 1) * (z + 1) + (window - 1) * FLITS + z + 1
    assert column(rows, "destination") == [(source + 1) % HOSTS for source in column(rows, "source")]
    assert np.bincount(column(rows, "source")).tolist() == [count] * HOSTS


@pytest.mark.parametrize("engine", ENGINES)
def test_every_delivery_releases_one_packet(tmp_path, engine):
    """The k-th packet of a host after the first n is created in the tick after its k-th delivery."""
    count, outstanding = 40, 5
    keys = f"of: {{kind: uniform, include_self: true}}, packets: {count}, outstanding: {outstanding}, seed: 7"
    ticks, rows = batch(tmp_path, "vct", keys, engine=engine)
    source, created, delivered = (np.array(column(rows, name)) for name in ("source", "created", "delivered"))
    for host in range(HOSTS):
        own = source == host
        assert created[own].tolist() == sorted(created[own])
        assert created[own][:outstanding].tolist() == [0] * outstanding
        assert created[own][outstanding:].tolist() == (np.sort(delivered[own])[:-outstanding] + 1).tolist()
    assert ticks == delivered.max() + 1


def test_another_seed_draws_other_destinations(tmp_path):
    drawn = []
    for place, seed in enumerate((1, 1, 2)):
        (folder := tmp_path / str(place)).mkdir()
        _, rows = batch(folder, "vct", f"of: {{kind: uniform}}, packets: 50, seed: {seed}")
        drawn.append(column(rows, "destination"))
    assert drawn[0] == drawn[1] != drawn[2]
    assert (np.abs(np.bincount(drawn[2]) - 50) < 4 * np.sqrt(50)).all()


def test_hosts_without_traffic_send_nothing(tmp_path):
    (tmp_path / "d.csv").write_text("source,destination,demand\n0,3,1\n2,3,1\n")
    _, rows = batch(tmp_path, "vct", "of: {kind: matrix, path: d.csv}, packets: 3")
    assert column(rows, "source") == [0, 2] * 3
    assert column(rows, "destination") == [3] * 6


@pytest.mark.long
@pytest.mark.parametrize(("outstanding", "ticks"), [("null", 2850), (1, 8441)])
def test_booksim2_agrees(tmp_path, outstanding, ticks):
    """BookSim2 28f4329: the mean of 20 batches, with a standard error of 35 cycles; here of 10, so about 50."""
    (tmp_path / "a.yaml").write_text(
        "topology: {kind: mesh, dims: [8, 8]}\nrouting: {kind: dor}\n"
        "switching: {mode: wormhole, vcs: 4, buffer_flits: 8, credit_path: own, header_ticks: 1, switch_ticks: 1,\n"
        "            link_ticks: 2, injection_ticks: 2, ejection_ticks: 2, credit_ticks: 2}\n"
        "traffic: {kind: batch, of: {kind: uniform, include_self: true}, flits: 5, packets: 200,\n"
        f"          outstanding: {outstanding}, seed: {{sweep: {{from: 1, to: 10, step: 1}}}}}}\n"
        "ceilings: []\noutputs: {figures: [], html: false}\n"
    )
    assert main(["run", str(tmp_path / "a.yaml"), "--out", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "results.csv").open() as file:
        times = column(list(csv.DictReader(file)), "ticks")
    assert len(times) == 10
    assert abs(np.mean(times) - ticks) < 3 * np.hypot(35, 50)


RING = f"topology: {{kind: torus, dims: [{HOSTS}]}}\nrouting: {{kind: minimal}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "traffic: {kind: batch, of: {kind: uniform}}\nloads: [0.1]\n",
            "loads = [0.1]: is not for traffic.kind: batch, whose hosts send at once; its time is the result",
        ),
        (
            "traffic: {kind: batch, of: {kind: uniform}}\nswitching: {mode: datagram}\n",
            "traffic.kind = batch: batch is for modes that simulate packets",
        ),
        ("traffic: {kind: batch, of: {kind: uniform}, outstanding: 0}\n", "traffic.outstanding = 0: must be"),
        ("traffic: {kind: batch, of: {kind: unifrom}}\n", "traffic.of.kind = unifrom: unknown traffic"),
        ("traffic: {kind: batch}\n", "traffic.of: is missing"),
        (
            "traffic: {kind: batch, of: {kind: batch, of: {kind: uniform}}}\n",
            "must be one pattern without background, alternates or trace",
        ),
        ("traffic: {kind: batch, of: {kind: uniform}, packets: 9999999}\n", "59999994 packets; at most 10000000"),
    ],
)
def test_bad_batches_are_rejected(tmp_path, capsys, text, problem):
    (tmp_path / "a.yaml").write_text(RING + text)
    assert main(["check", str(tmp_path / "a.yaml")]) == 2
    assert problem in capsys.readouterr().err
