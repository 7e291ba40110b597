# SPDX-License-Identifier: Apache-2.0
"""What of its traffic every channel delivers, and the load up to which all of them deliver what they are given."""

import csv
from dataclasses import replace
from itertools import takewhile
from statistics import NormalDist

import numpy as np
import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import MAX_OUTSTANDING, Outstanding, Scalar, can_count_outstanding
from flitlab.sim.engines.start import start
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure.growth import channel_scores, overload_score, overloaded_channels, resolution
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from flitlab.sim.measure.window import ChannelTraffic
from tests import long_after, long_rows_after
from tests.scenarios import build, ideal, line, reference, scenario


def share(case, load, engine="compiled", how=None):
    return measure(engine, case, load, 1, how or Measure(1000, 4000, None)).row["least_channel_share"]


@pytest.mark.parametrize("mode", long_after(1, ["vct", "ideal"]))
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
            np.add.at(created, list(drawn.routing.route_channels(packet)), flits)  # a channel may be on it twice
    for one in (case, ideal(case)):
        under_way = start("compiled", one, load, 3)
        under_way.advance(now)
        snapshot = under_way.snapshot()
        assert (snapshot.channel_flits + snapshot.outstanding.ungranted == created).all()
        assert (
            snapshot.outstanding.on_route >= snapshot.outstanding.ungranted
        ).all() and snapshot.outstanding.ungranted.any()


@pytest.mark.parametrize("routing", long_after(1, [{"kind": "minimal", "select": "adaptive"}, {"kind": "ugal"}]))
def test_routes_that_are_decided_on_the_way_have_no_share(routing):
    case = scenario(build("torus", hosts=1, dims=[3, 3]), routing={**routing, "vc_policy": "hop"}, vcs=5)
    assert share(case, 0.3) is None


def test_what_is_held_back_is_counted_as_long_as_it_is_little():
    scalars = np.zeros(len(Scalar), np.int64)
    for created, delivered, few in (
        (MAX_OUTSTANDING, 0, True),
        (MAX_OUTSTANDING + 1, 0, False),
        (16 * 10**5, 15 * 10**5, True),
    ):
        scalars[[Scalar.CREATED_PACKETS, Scalar.DELIVERED_PACKETS]] = created, delivered
        assert can_count_outstanding(scalars) == few


def traffic(created, lost):
    """What a window has counted of channels: flits created for them, and how many more are waiting at its end."""
    created = np.array(created, float)
    return ChannelTraffic(np.arange(len(created)), created, created - np.array(lost, float))


def test_growth_is_counted_in_deviations_of_arrivals():
    """Packets of 5 flits, Poisson: of 2,000 packets the deviation is sqrt(2,000), of their flits five times as much."""
    case = scenario(line(2, hosts=3), source=Source("poisson", (5,)))
    found = channel_scores(case, 0.3, traffic([10_000, 40_000], [223.6, 223.6]))
    assert found == pytest.approx([1.0, 0.5], rel=1e-3)
    bursts = scenario(line(2, hosts=3), source=Source("onoff", (5,), burst=50.0))
    assert (channel_scores(bursts, 0.3, traffic([10_000], [223.6])) < 0.2).all()


def test_what_may_be_chance_overloads_no_channel():
    """One channel that lacks 5 % of 2,000 packets is overloaded; of 3,000 channels one is so by chance now and then."""
    case = scenario(line(2, hosts=3), source=Source("poisson", (5,)))
    assert overloaded_channels(case, 0.3, traffic([10_000], [600])) == 1  # 2.7 deviations
    many = traffic([10_000] * 3000, [600] + [0] * 2999)
    assert overloaded_channels(case, 0.3, many) == 0
    assert overloaded_channels(case, 0.3, many._replace(delivered=many.created - 6 * 223.6)) == 3000
    assert overloaded_channels(case, 0.3, None) is None


@pytest.mark.parametrize(("channels", "windows"), [(1, 1), (3000, 1), (3000, 64)])
def test_false_alarms_of_a_search_add_up_to_one_in_a_hundred(channels, windows):
    tail = 2 * NormalDist().cdf(-overload_score(channels, windows))
    assert channels * windows * tail == pytest.approx(0.01, rel=1e-6)


def test_a_stable_queue_passes_its_threshold_as_seldom_as_promised():
    """A reflected walk that has no drift, the worst that is stable, against the bound for one channel."""
    steps = np.random.default_rng(1).choice([-1.0, 1.0], (4000, 2000))
    walk = np.cumsum(steps, 1)
    height = walk[:, -1] - np.minimum(walk.min(1), 0)
    alarms = (height > overload_score(1) * np.sqrt(2000)).mean()
    assert 0.004 < alarms < 0.016


@pytest.mark.long
def test_the_resolution_is_what_an_overload_would_have_shown(monkeypatch):
    """Queues that start empty and are overloaded by the resolution hold as little in one of a hundred cases."""
    case, generator, packets = (
        scenario(line(2, hosts=1), source=Source("poisson", (1,))),
        np.random.default_rng(2),
        2500,
    )
    channels = case.topology.channels
    for held in (5, 25, 60):
        held_back = Outstanding(np.full(channels, held), np.full(channels, 0))
        now = start("compiled", case, 0.5, 1).snapshot()
        now = replace(now, channel_flits=np.full(channels, packets), outstanding=held_back)
        overload = resolution(case, 0.5, now)
        service = packets / (1 + overload)  # ticks in which a queue of rate 1 - overload is served
        arrivals = generator.poisson(1 + overload, (4000, int(service)))
        left = np.zeros(4000)
        for tick in range(int(service)):
            left = np.maximum(left + arrivals[:, tick] - 1, 0)
        assert 0.002 < (left <= held).mean() < 0.025, held


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


@pytest.mark.parametrize("parts", [RANDOM, SLIM_FLY])
def test_the_first_window_follows_from_the_length_of_packets(parts):
    case = read("c.yaml", text=SEARCH % parts).cases[0]
    found = case.measure
    assert found.warmup + found.ticks == 45_000 and found.ci is None
    assert found.warmup == (found.warmup + found.ticks) // 3
    assert case.resolved["measure"]["ticks"] == found.ticks
    long = read("c.yaml", ["traffic.packet_flits=100"], text=SEARCH % parts).cases[0].measure
    assert long.warmup + long.ticks == 150_000


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
    report = run(study, tmp_path)
    with (tmp_path / "saturation.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    found, lower, upper = (float(row[name]) for name in ("saturation", "lower", "upper"))
    probes = [point for point in report.results if point.get("resolution") is not None]
    assert lower < found < upper
    for point in probes:
        assert point["saturated"] == (point["load"] >= upper) or point["saturated"] is None
        assert point["saturated"] is not False or point["load"] * (1 - point["resolution"]) <= lower


# ---- probes


def probe(case, load, seed=1, resolution=0.05, longest=16, ticks=2000):
    return measure("compiled", case, load, seed, Measure(1000, ticks, resolution=resolution, longest=longest)).row


def test_a_probe_is_as_long_as_its_verdict_needs():
    case = ideal(scenario(line(2, hosts=2), traffic={"kind": "shift", "by": 2}, source=Source(flits=(2,))))
    below, just_above, above = (probe(case, load) for load in (0.2, 0.51, 0.7))
    assert (below["saturated"], above["saturated"]) == (False, True)
    assert above["ticks"] < below["ticks"] < just_above["ticks"] == 16 * 2000
    assert below["resolution"] <= 0.05 and probe(case, 0.2, resolution=0.2)["ticks"] == 2000
    assert probe(case, 0.2, resolution=1e-3, longest=4)["ticks"] == 8000  # as long as it may be


def test_a_probe_draws_afresh_in_a_longer_window():
    case = ideal(scenario(line(2, hosts=2), traffic={"kind": "shift", "by": 2}, source=Source(flits=(2,))))
    row = probe(case, 0.3, resolution=0.02)
    assert row["warmup_ticks"] == 1000 + 2000 + 8000 and row["ticks"] == 32_000


@pytest.mark.parametrize(("part", "saturated"), long_rows_after(1, [(1.1, True), (0.9, False)]))
def test_probes_of_one_channel_among_many_are_right(part, saturated):
    """Two hosts of 64 share a link: neither the total nor a host says much."""
    case = scenario(line(2, hosts=32), traffic={"kind": "shift", "by": 32}, source=Source(flits=(4,)))
    target = np.arange(64) ^ 1
    target[[0, 1, 32, 33]] = [32, 33, 0, 1]
    case = ideal(replace(case, instance=replace(case.instance, traffic=replace(case.traffic, fixed=target))))
    found = [probe(case, part * 0.5, seed, 0.02)["saturated"] for seed in range(1, 21)]
    assert found.count(saturated) >= 19 and (not saturated) not in found


def test_both_engines_probe_alike():
    case = scenario(build("torus", hosts=1, dims=[3, 3]), routing={"kind": "dor", "vc_policy": "dateline"}, vcs=2)
    rows = [
        measure(name, case, 0.4, 2, Measure(100, 300, resolution=0.1, longest=4)).row
        for name in ("compiled", "reference")
    ]
    for name in ("saturated", "saturated_by", "resolution", "ticks", "warmup_ticks", "accepted"):
        assert rows[0][name] == rows[1][name]
