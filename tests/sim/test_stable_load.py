# SPDX-License-Identifier: Apache-2.0
"""What of its traffic every channel delivers, and the load up to which all of them deliver what they are given."""

import csv
from itertools import takewhile

import numpy as np
import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.config.study import read
from flitlab.sim.engines.base import CREATED_PACKETS, DELIVERED_PACKETS, MOST_OWED, SCALARS, few_owed
from flitlab.sim.engines.start import start
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from flitlab.sim.measure.saturation import CHANNEL, bracket, overloaded
from flitlab.sim.measure.verdict import CARRIED, overloaded_channels
from flitlab.sim.measure.window import ChannelTraffic
from tests.scenarios import build, ideal, line, reference, scenario


def share(case, load, engine="compiled", how=None):
    return measure(engine, case, load, 1, how or Measure(1000, 4000, None)).row["least_channel_share"]


@pytest.mark.parametrize("mode", ["vct", "ideal"])
def test_a_channel_delivers_what_it_carries(engine_name, mode):
    """Three hosts at either end of one link offer 2.7 flits a tick to channels that carry one."""
    case = scenario(line(2, hosts=3), traffic={"kind": "shift", "by": 3}, vcs=4, buffer_flits=32)
    case = ideal(case) if mode == "ideal" else case
    assert share(case, 0.9, engine_name) == pytest.approx(1 / 2.7, rel=0.03)
    assert share(case, 0.2, engine_name) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("routing", [{"kind": "minimal"}, {"kind": "valiant"}, {"kind": "ksp", "k": 2}])
def test_all_that_is_created_for_a_channel_has_crossed_it_or_has_it_ahead(routing):
    topology, now, load = build("random_digraph", hosts=2, n=8, degree=3, seed=2), 500, 0.8
    case = scenario(topology, routing=routing, source=Source(flits=(2, 5), shares=(1, 1)), allow_deadlock=True)
    drawn, created = reference(case, load, 3), np.zeros(topology.channels, np.int64)
    for host in range(topology.hosts):
        coming = enumerate(takewhile(lambda packet: packet[0] < now, drawn.draw_packets(host)))
        for sequence, (_, to, flits) in coming:
            packet = drawn.packet(host, sequence, to, flits)
            np.add.at(
                created, list(drawn._route(packet, packet.way, packet.origin, 0)), flits
            )  # a channel may be on it twice
    for one in (case, ideal(case)):
        under_way = start("compiled", one, load, 3)
        under_way.advance(now)
        snapshot = under_way.snapshot()
        assert (snapshot.channel_flits + snapshot.owed.ahead == created).all()
        assert (snapshot.owed.crossing >= snapshot.owed.ahead).all() and snapshot.owed.ahead.any()


@pytest.mark.parametrize("routing", [{"kind": "minimal", "select": "adaptive"}, {"kind": "ugal"}])
def test_routes_that_are_decided_on_the_way_have_no_share(routing):
    case = scenario(build("torus", hosts=1, dims=[3, 3]), routing={**routing, "vc_policy": "hop"}, vcs=5)
    assert share(case, 0.3) is None


def test_what_is_owed_is_counted_as_long_as_it_is_little():
    scalars = np.zeros(SCALARS, np.int64)
    for created, delivered, few in ((MOST_OWED, 0, True), (MOST_OWED + 1, 0, False), (16 * 10**5, 15 * 10**5, True)):
        scalars[[CREATED_PACKETS, DELIVERED_PACKETS]] = created, delivered
        assert few_owed(scalars) == few


def test_a_point_is_overloaded_by_one_channel():
    row = {"saturated": False, "overloaded_channels": 1}
    assert overloaded(row) == {"saturated": True, "saturated_by": CHANNEL}
    assert overloaded({key: str(value) for key, value in row.items()}) == overloaded(row)
    for other in ({"overloaded_channels": 0}, {"overloaded_channels": None}, {"saturated": None}):
        assert overloaded({**row, **other}) == {}
    assert overloaded({**row, "saturated": True}) == {}


def test_what_may_be_chance_overloads_no_channel():
    """A channel that lacks 5 % of what it is given: of 100 packets that is nothing, of 1,000 it is."""
    case = scenario(line(2, hosts=3), source=Source(flits=(5,)))
    created, owed = np.array([500.0, 5000.0, 5000.0]), np.array([20.0, 300.0, 5000.0])
    found = ChannelTraffic(created, 0.95 * created, owed)
    assert overloaded_channels(case, 0.3, found) == 1
    assert overloaded_channels(case, 0.3, found._replace(delivered=0.98 * created)) == 0
    assert overloaded_channels(case, 0.3, None) is None
    bursts = scenario(line(2, hosts=3), source=Source("onoff", (5,), burst=50.0))
    assert overloaded_channels(bursts, 0.3, found) == 0


def test_the_stable_load_is_the_highest_that_is_carried():
    rows = [
        {"load": load, "offered": load, "accepted": 0.999 * load, "saturated": over, "saturated_by": CHANNEL * over}
        for load, over in ((0.2, False), (0.3, False), (0.31, True), (0.4, True))
    ]
    found = bracket(rows)
    assert (found.lower, found.value, found.upper) == (0.3, 0.3, 0.31)
    assert bracket(rows[2:]).value == 0


SEARCH = """\
topology: {kind: %s, hosts_per_switch: %d}
routing: {kind: %s}
switching: {mode: ideal}
traffic: {kind: uniform, packet_flits: 20}
experiment: saturation
ceilings: []
outputs: {html: false, figures: []}
"""

RANDOM, SLIM_FLY = ("random_digraph, n: 24, degree: 3, seed: 1", 2, "minimal"), ("slim_fly, q: 5", 4, "minimal")


@pytest.mark.parametrize(("parts", "times"), [(RANDOM, 45_000 / 20), (SLIM_FLY, 6000)])
def test_the_window_follows_from_how_many_channels_fill_alike(parts, times):
    case = read("c.yaml", text=SEARCH % parts).cases[0]
    found = case.measure
    assert found.warmup + found.ticks == 20 * times and found.ci is None
    assert found.warmup == (found.warmup + found.ticks) // 3
    assert case.resolved["measure"]["ticks"] == found.ticks
    long = read("c.yaml", ["traffic.packet_flits=100"], text=SEARCH % parts).cases[0].measure
    assert long.warmup + long.ticks == (600_000 if parts is SLIM_FLY else 150_000)


@pytest.mark.parametrize("given", ["measure={ticks: 700}", "measure={ci: 0.1}", "measure={warmup: 5}"])
def test_a_window_that_is_given_stays(given):
    found = read("c.yaml", [given], text=SEARCH % SLIM_FLY).cases[0].measure
    unset = {"ticks": 30_000, "ci": 0.05, "warmup": "auto"}
    assert {key: getattr(found, key) for key in unset if key not in found.model_fields_set} == {
        key: value for key, value in unset.items() if key not in found.model_fields_set
    }


def test_a_search_finds_the_load_up_to_which_every_channel_keeps_up(tmp_path):
    """One link among many is overloaded long before a hundredth of all traffic, or a tenth of a host's, is lost."""
    text = SEARCH % RANDOM + "measure: {warmup: 5000, ticks: 10000, ci: null}\nloads: {saturation: {tolerance: 0.04}}\n"
    study = read("c.yaml", ["routing.select=hash"], text=text.replace("experiment: saturation\n", ""))
    report = run(study, tmp_path, 1)
    with (tmp_path / "saturation.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    found, lower, upper = (float(row[name]) for name in ("saturation", "lower", "upper"))
    over = [point for point in report.results if point["saturated"]]
    assert CHANNEL in {point["saturated_by"] for point in over}
    assert found == lower < upper
    for point in report.results:
        fine = point["load"] <= lower
        assert fine == (not point["saturated"])
        assert point["overloaded_channels"] is None or (point["overloaded_channels"] == 0) == fine
        assert point["overloaded_channels"] in (None, 0) or point["least_channel_share"] < CARRIED
