# SPDX-License-Identifier: Apache-2.0
"""The traffic of every channel: sums over packets, load factors, closed forms, and equality of engines and threads."""

import csv

import numpy as np
import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.engines import partitions
from flitlab.sim.engines.base import ChannelCounter, Scalar
from flitlab.sim.engines.start import start
from tests import long_after
from tests.scenarios import build, ideal, scenario
from tests.sim.test_credit_delay import TREE7, tree7

MODES = {
    "vct": {"mode": "vct"},
    "wormhole": {"mode": "wormhole", "buffer_flits": 3},
    "ideal": {},
    "pool": {"mode": "deflection"},
    "vc": {"mode": "deflection", "rule": "vc"},
    "vc-flit": {"mode": "deflection", "rule": "vc", "by_flit": True},
    "frame": {"mode": "deflection", "rule": "frame", "packet_flits": 4},
}
FLITS = 4


def torus(mode):
    """A 3x3 torus in a mode, with packets of 4 flits."""
    keys = MODES[mode]
    routing = {"kind": "deflection" if keys.get("mode") == "deflection" else "minimal"}
    topology = build("torus", dims=[3, 3])
    case = scenario(topology, routing=routing, source=Source(flits=(FLITS,)), allow_deadlock=True, **keys)
    return ideal(case) if mode == "ideal" else case


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, MODES))
def test_engines_count_the_same_at_every_tick(mode):
    """A flit counts in the tick of its grant, so after the grant of its packet in modes that interleave packets."""
    case = torus(mode)
    run = start("both", case, 0.5, 1, channels=True)
    for tick in [*range(1, 100, 7), 160, 161, 163, 200]:
        run.advance(tick)
        run.snapshot()
    channels, hosts = case.topology.channels, case.topology.hosts
    counted = run.snapshot()
    flits, packets = counted.channels[:, ChannelCounter.FLITS], counted.channels[:, ChannelCounter.PACKETS]
    network, injection, ejection = np.split(np.arange(channels + 2 * hosts), [channels, channels + hosts])
    assert packets[injection].sum() == counted.scalars[Scalar.SENT_PACKETS]
    assert flits[ejection].sum() >= counted.scalars[Scalar.DELIVERED_FLITS]
    assert (packets * FLITS >= flits).all()
    assert (packets * FLITS - flits < 4 * FLITS).all()  # 4 VCs at most take turns
    if mode in ("vct", "wormhole", "pool"):
        assert flits[network].tolist() == counted.channel_flits.tolist()


def test_a_packet_that_waits_for_a_faster_channel_has_crossed_the_slow_one():
    """The link takes 4 ticks a flit, hosts' channels 1: a packet waits at the end of the link, where it has counted."""
    pair = build("hypercube", dim=1, capacity=0.25, host_capacity=1.0)
    run = start("both", ideal(scenario(pair, source=Source(flits=(16,)))), 0.2, 1, channels=True)
    counted = run.snapshot().channels
    for tick in range(1, 300):
        run.advance(tick)
        before, counted = counted, run.snapshot().channels
        assert (counted >= before).all()
    assert counted[0, ChannelCounter.PACKETS] > 1


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, ["ideal", "vct", "wormhole"]))
def test_flits_of_a_slow_channel_count_once(mode):
    """Channels between switches 0 and 1 take 3 ticks a flit, hosts' 2: a packet still has 4 flits on each."""
    topology = build("torus", dims=[3, 3], capacity_of={"links": [[0, 1]], "factor": 1 / 3}, host_capacity=0.5)
    case = scenario(topology, routing={"kind": "minimal"}, source=Source(flits=(FLITS,)), allow_deadlock=True,
                    **MODES[mode])  # fmt: skip
    run = start("both", ideal(case) if mode == "ideal" else case, 0.4, 1, channels=True)
    for tick in (30, 31, 32, 33, 500):
        run.advance(tick)
        run.snapshot()
    counted = run.snapshot()
    flits, packets = counted.channels[:, ChannelCounter.FLITS], counted.channels[:, ChannelCounter.PACKETS]
    assert (packets * FLITS - flits < 4 * FLITS).all() and packets.sum() > 500
    assert (flits <= packets * FLITS).all()


@pytest.mark.long
@pytest.mark.parametrize("own", [False, True])
def test_utilisation_is_load_times_load_factor(own):
    """12/7 between switch 0 and its neighbours, 6/7 elsewhere; within 4 standard deviations, whatever the credits."""
    case, load, ticks = tree7(own), 0.2, 20_000
    run = start("compiled", case, load, 1, channels=True)
    run.advance(1000)
    before = run.snapshot().channels
    run.advance(1000 + ticks)
    flits = (run.snapshot().channels - before)[: case.topology.channels, ChannelCounter.FLITS]
    at_root = (case.topology.src == 0) | (case.topology.dst == 0)
    expected = load * np.where(at_root, 12, 6) / 7
    assert (abs(flits / ticks - expected) < 4 * np.sqrt(expected / ticks)).all()


@pytest.mark.long
def test_threads_count_the_same(monkeypatch):
    monkeypatch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
    case = scenario(build("imase", hosts=2, n=12, degree=3))
    counted = []
    for threads in (1, 3):
        run = start("compiled", case, 0.6, 2, threads=threads, channels=True)
        for tick in (50, 51, 300):
            run.advance(tick)
            counted.append(run.snapshot().channels)
    assert np.array_equal(counted[:3], counted[3:])
    assert counted[-1].any()


def test_nothing_is_counted_unless_asked_for(engine_name):
    run = start(engine_name, torus("vct"), 0.5, 1)
    run.advance(50)
    assert run.snapshot().channels is None


CONFIG = """
topology:  {kind: file, path: tree7.anynet}
routing:   {kind: minimal}
switching: {mode: wormhole, vcs: 2, buffer_flits: 16, header_ticks: 1, link_ticks: 2, credit_ticks: 2}
traffic:   {kind: uniform, packet_flits: 2}
loads:     [0.2]
measure:   {warmup: 500, ticks: 2000, ci: null}
ceilings:  []
outputs:   {channels: true, figures: [], html: false}
"""


def rows_of(folder, text, *options):
    """The rows of channels.csv of a configuration."""
    (folder / "tree7.anynet").write_text(TREE7)
    (folder / "a.yaml").write_text(text)
    out = folder / ("out" + "-".join(options).replace("/", ""))
    assert main(["run", str(folder / "a.yaml"), "--out", str(out), *options]) == 0
    with (out / "channels.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_the_table_names_every_channel(tmp_path):
    rows = rows_of(tmp_path, CONFIG)
    assert list(rows[0])[:17] == [
        "scenario", "load", "seed", "channel", "kind", "source", "target", "parallel", "tau", "delay", "flits",
        "packets", "utilisation", "stalled_credit", "stalled_vc", "stalled_switch", "class",
    ]  # fmt: skip
    kinds = [row["kind"] for row in rows]
    assert kinds == ["network"] * 12 + ["injection"] * 7 + ["ejection"] * 7
    longest = next(row for row in rows if (row["kind"], row["source"], row["target"]) == ("network", "1", "4"))
    assert (longest["delay"], longest["parallel"], longest["tau"]) == ("13", "0", "1")
    for row in rows:
        assert float(row["utilisation"]) == int(row["flits"]) / 2000
        assert abs(int(row["flits"]) - 2 * int(row["packets"])) <= 2  # a packet of each VC at the ends of the window
        stalls = [row[f"stalled_{reason}"] for reason in ("credit", "vc", "switch")]
        assert stalls == [""] * 3 if row["kind"] == "ejection" else sum(map(int, stalls)) <= 2000
    assert rows_of(tmp_path, CONFIG, "--set", "engine=reference") == rows


RING = "topology: {kind: torus, dims: [4]}\nrouting: {kind: minimal}\ntraffic: {kind: uniform}\n"
COUNTED = "outputs: {channels: true}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (RING + "switching: {mode: datagram}\n", "is not for mode datagram, which grants no flits"),
        (
            "topology: {kind: torus, dims: [4]}\nexperiment: metrics\nmetrics: [paths]\n",
            "is not for experiment: metrics",
        ),
        (
            RING + "loads: [0.1]\nswitching: {mode: ideal, flit_ns: 1}\n"
            "timeline: [{at_us: 1, fail: {links: [[0, 1]]}}]\n",
            "is not for mode ideal with a timeline",
        ),
    ],
    ids=["datagram", "metrics", "ideal"],
)
def test_channels_are_rejected_where_they_cannot_be_counted(tmp_path, capsys, text, problem):
    (tmp_path / "a.yaml").write_text(text + COUNTED)
    assert main(["check", str(tmp_path / "a.yaml")]) == 2
    assert f"outputs.channels = true: {problem}" in capsys.readouterr().err


def test_ceilings_of_a_run_that_counts_channels(tmp_path, capsys):
    (tmp_path / "a.yaml").write_text(RING + "loads: [0.1]\nceilings: [mcf]\n" + COUNTED)
    assert main(["ceilings", str(tmp_path / "a.yaml")]) == 0
    assert "mcf" in capsys.readouterr().out
