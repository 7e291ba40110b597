# SPDX-License-Identifier: Apache-2.0
"""When a point counts as saturated: certain limits, loss, a growing queue, and windows that are too short to tell."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest

from flitlab.fluid.split import certified_limit
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.table import table_traffic
from flitlab.sim.cli.tables import print_saturation
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.start import start
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from flitlab.sim.measure.rows import number
from flitlab.sim.measure.saturation import SaturatedBy, bracket, is_saturated, limited
from flitlab.sim.measure.verdict import has_starving_host, is_losing, noise_of, verdict
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.tables import hot_hosts
from tests.scenarios import build, line, scenario

SHARED = {"kind": "shift", "by": 2}


def point(case, load, ticks, seed=1):
    row = measure("compiled", case, load, seed, Measure(None, ticks, None)).row
    row |= limited(row, load, certified_limit(case))
    return row["saturated"], row["saturated_by"]


def test_from_the_split_of_a_routing_on_a_point_is_saturated_however_short_its_window():
    case = scenario(line(2, hosts=2), traffic=SHARED, buffer_flits=32)
    assert certified_limit(case) == pytest.approx(0.5)
    assert point(case, 0.505, 400) == (True, SaturatedBy.LIMIT)
    assert point(case, 0.48, 4000) == (False, "")
    assert certified_limit(scenario(line(2, hosts=1))) == pytest.approx(1)  # the host channels


def test_only_a_split_that_is_drawn_for_every_packet_is_a_limit():
    # a hash may happen to spread flows better than equal shares would
    for kind, select in (("hash", "hash"), ("adaptive", "adaptive")):
        case = scenario(line(2, hosts=2), routing={"kind": "minimal", "select": select}, traffic=SHARED)
        assert certified_limit(case) == pytest.approx(1), kind
    case = scenario(line(2, hosts=2), routing={"kind": "minimal", "select": "hash"}, traffic=SHARED, buffer_flits=32)
    assert point(case, 0.6, 20_000)[0] is True


@pytest.mark.long
def test_a_large_loss_counts_however_unevenly_it_comes():
    routing = {"kind": "ugal", "mode": "global", "vc_policy": "hop"}
    case = scenario(
        build("dragonfly", 2, a=4, p=2, h=2), routing=routing, traffic={"kind": "shift", "by": 8}, allow_deadlock=True
    )
    saturated = [measure("compiled", case, 0.46, seed, Measure(None, 3000, None)).row for seed in (1, 2, 3)]
    for row in saturated:
        assert row["accepted"] < 0.95 * row["offered"] and row["saturated"] is True


def test_bursts_in_a_short_window_are_no_evidence():
    bursts = Source("onoff", (4,), burst=50.0)
    case = scenario(line(2, hosts=4), traffic={"kind": "shift", "by": 4}, source=bursts, buffer_flits=32)
    short = [point(case, 0.18, 3000, seed) for seed in range(1, 9)]
    assert not any(saturated for saturated, _ in short)
    assert (None, SaturatedBy.SHORT) in short


def batches_of(lost, created=1000.0, count=40):
    rows = np.zeros((count, 13))
    rows[:, 1], rows[:, 4] = created, created - np.asarray(lost)
    return rows


def test_loss_is_compared_with_what_arrivals_may_vary():
    hosts = scenario(line(2, hosts=50), traffic={"kind": "shift", "by": 50}, source=Source(flits=(1,)))
    assert is_losing(hosts, 0.4, batches_of(np.zeros(40))) is False
    assert is_losing(hosts, 0.4, batches_of(np.full(40, 5.0))) is False  # half a per cent
    assert is_losing(hosts, 0.4, batches_of(np.full(40, 30.0))) is True
    uneven = np.where(np.arange(40) < 4, 900.0, 0.0)  # 9 %, all of it in a tenth of the window
    assert is_losing(hosts, 0.4, batches_of(uneven)) is True
    bursty = scenario(line(2, hosts=50), traffic={"kind": "shift", "by": 50}, source=Source("onoff", (1,), burst=500.0))
    assert is_losing(bursty, 0.4, batches_of(np.full(40, 30.0))) is None
    assert is_losing(hosts, 0.4, np.zeros((40, 13))) is False


def test_one_queue_that_grows_steadily_is_seen_and_one_that_jumps_is_not():
    case = scenario(line(2, hosts=50), traffic={"kind": "shift", "by": 50}, source=Source(flits=(1,)))
    created = np.full(100, 10_000)
    backlog = np.zeros((41, 100), np.int64)
    backlog[:, 7] = np.linspace(0, 600, 41)  # 6 % of what host 7 creates, 0.06 % of all
    assert has_starving_host(case, 0.4, created, backlog)
    batches = batches_of(np.diff(backlog.sum(axis=1)), 25_000.0)
    assert verdict(case, 0.001, batches, created, backlog) == (True, SaturatedBy.STARVING)
    backlog[:, 7] = np.where(np.arange(41) > 30, 600, 0)
    assert not has_starving_host(case, 0.4, created, backlog)
    backlog[:, 7] = np.linspace(0, 200, 41)
    assert not has_starving_host(case, 0.4, created, backlog)


@pytest.mark.parametrize("source", [
    Source(flits=(2,)), Source("poisson", (1, 5), (1.0, 1.0)), Source("onoff", (2,), burst=10.0),
])  # fmt: skip
def test_noise_is_the_spread_of_what_hosts_create(source):
    case = scenario(line(2, hosts=100), traffic={"kind": "shift", "by": 100}, source=source, buffer_flits=64)
    engine_run = start("compiled", case, 0.004, 1)
    engine_run.advance(60_000)
    first = engine_run.snapshot().created
    engine_run.advance(360_000)
    created = engine_run.snapshot().created - first
    assert created.std() == pytest.approx(noise_of(case, 0.004, created).mean(), rel=0.2)


def test_a_point_that_is_left_open_is_carried_as_far_as_it_was():
    def row(load, saturated, by=""):
        return {"load": load, "offered": load, "accepted": 0.99 * load, "saturated": saturated, "saturated_by": by}

    rows = [row(0.2, False), row(0.4, None, SaturatedBy.SHORT), row(0.5, True, SaturatedBy.LOSS)]
    assert [is_saturated(one) for one in rows] == [False, False, True]
    assert is_saturated({"load": 0.2, "saturated": None}) is None
    assert bracket(rows).lower == pytest.approx(0.99 * 0.4)
    assert bracket([{**one, "saturated_from": 0.3} for one in rows]).upper == 0.3
    texts = [{key: "" if value is None else str(value) for key, value in one.items()} for one in rows]
    assert [is_saturated(one) for one in texts] == [False, False, True]


CONFIG = """\
name: s
topology: {kind: torus, dims: [4, 4]}
routing: {kind: dor}
switching: {vcs: 4, buffer_flits: 16}
traffic: {kind: permutation, seed: 3, packet_flits: 4}
loads: %s
measure: {warmup: 200, ticks: 600, ci: null}
ceilings: %s
outputs: {html: false, figures: []}
"""


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("ceilings", ["[]", "[split, mcf]"])
def test_no_bracket_reaches_above_the_split_whatever_ceilings_are_asked_for(tmp_path, ceilings):
    def of(loads, name):
        file = tmp_path / f"{name}.yaml"
        file.write_text(CONFIG % (loads, ceilings))
        run(read(file), tmp_path / name)
        return tmp_path / name, certified_limit(read(file).cases[0].scenario)

    found, split = of("{saturation: {tolerance: 0.05}}", "search")
    assert 0.3 < split < 0.7
    for name in ("saturation.csv", "saturation_seeds.csv"):
        for row in rows_of(found / name):
            assert float(row["lower"]) <= float(row["saturation"]) <= float(row["upper"]) <= split
    swept = rows_of(of("[0.3, 0.7, 0.8]", "sweep")[0] / "results.csv")
    assert [row["saturated"] for row in swept][1:] == ["True", "True"]
    assert {row["saturated_by"] for row in swept[1:]} == {SaturatedBy.LIMIT}
    assert all(float(row["saturated_from"]) <= split for row in swept)


def test_a_certified_limit_makes_a_point_saturated_that_the_run_does_not(tmp_path):
    file = tmp_path / "a.yaml"
    text = CONFIG.replace("{kind: dor}", "{kind: minimal, select: adaptive}") % ("[0.2, 0.99]", "[mcf]")
    text = text.replace("[4, 4]", "[4], hosts_per_switch: 4")
    file.write_text(text.replace("ticks: 600", "ticks: 40"))
    report = run(read(file), tmp_path / "out")
    limit = next(row["upper"] for row in report.ceilings if row["ceiling"] == "mcf")
    assert limit < 0.99 and math.isclose(report.results[0]["saturated_from"], limit)
    assert report.results[1]["saturated"] is True and report.results[1]["saturated_by"] == SaturatedBy.LIMIT


TEXTS = ("scenario", "ceiling", "note")


def test_a_ceiling_that_is_a_hot_hosts_own_channel_is_said_to_be_so(tmp_path, capsys):
    def found(traffic, name):
        file = tmp_path / f"{name}.yaml"
        file.write_text((CONFIG % ("[0.2, 0.9, 1.0]", "[mcf]")).replace("{kind: permutation, seed: 3,", traffic))
        run(read(file), tmp_path / name)
        return rows_of(tmp_path / name / "saturation.csv")

    (hot,) = found("{kind: hotspot, hosts: [5], fraction: 0.5,", "hot")
    assert float(hot["ceiling_upper"]) == pytest.approx(1)
    assert hot["note"].startswith("the ejection channel of host 5 binds")
    print_saturation([{**hot, **{key: number(hot, key) for key in hot if key not in TEXTS}}])
    assert "not the network" in capsys.readouterr().out
    assert "not the network" in hot_hosts(Run.read(tmp_path / "hot"))[0]
    (even,) = found("{kind: uniform,", "even")
    assert even["note"] == ""


def test_one_of_many_queues_has_to_grow_by_more_than_the_largest_of_so_many_may():
    """Of 100 queues that are just full, the largest grows by 2 deviations in most windows, by 4.1 in one of a hundred.

    A host creates 10,000 single flits at a load of 0.5, so a deviation is sqrt(10,000 / 2) = 70.7 flits; 5 % are 500.
    """
    case = scenario(line(2, hosts=50), traffic={"kind": "shift", "by": 50}, source=Source(flits=(1,)))
    bursty = scenario(
        line(2, hosts=50), traffic={"kind": "shift", "by": 50}, source=Source("onoff", (1,), burst=20.0)
    )  # (2 * 20 - 1) * 0.5**2 = 9.75 times the variance: a deviation is 312 flits
    created, backlog = np.full(100, 10_000), np.zeros((41, 100), np.int64)
    verdicts = {}
    for deviations in (1, 2, 3.5, 4.5):
        backlog[:, 7] = np.linspace(0, deviations * 312.2, 41)
        verdicts[deviations] = has_starving_host(bursty, 0.5, created, backlog)
    assert verdicts == {1: False, 2: None, 3.5: None, 4.5: True}
    backlog[:, 7] = np.linspace(0, 600, 41)
    assert has_starving_host(case, 0.5, created, backlog) is True  # 8 deviations


@pytest.mark.parametrize(("load", "saturated"), [(0.72, False), (0.78, True)])
def test_a_search_sees_a_limit_within_a_switch(load, saturated):
    """Two inputs and outputs with queues in which the first packet blocks the others pass 3/4 (Karol et al. 1987)."""
    case = scenario(
        build("hyperx", 2, dims=[1]), traffic={"kind": "uniform", "include_self": True}, source=Source(flits=(1,)),
        mode="wormhole", vcs=1, buffer_flits=8, header=0, switch=1, link=1, credit=1,
    )  # fmt: skip
    row = measure("compiled", case, load, 1, Measure(None, 3000, None, resolution=0.01, longest=16)).row
    assert row["saturated"] is saturated
    matrix = np.zeros((16, 16))  # the same two hosts beside six that send little, to another switch
    matrix[:2, :2] = 0.5
    matrix[np.arange(2, 8), np.arange(10, 16)] = 0.03
    uneven = scenario(line(2, hosts=8), source=Source(flits=(1,)), mode="wormhole", vcs=1, buffer_flits=8, header=0,
                      switch=1, link=1, credit=1)  # fmt: skip
    demand = table_traffic("two", uneven.topology, matrix, hose=False)
    uneven = replace(uneven, instance=replace(uneven.instance, traffic=demand))
    beside = measure("compiled", uneven, load, 1, Measure(None, 3000, None, resolution=0.01, longest=16)).row
    assert beside["saturated"] is saturated
    if not saturated:  # 4 / sqrt(N) of the N flits that a host has sent
        assert row["resolution"] == pytest.approx(4 / math.sqrt(0.72 * (48_000 + row["warmup_ticks"])), rel=0.02)
