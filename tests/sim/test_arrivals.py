# SPDX-License-Identifier: Apache-2.0
"""Hosts create what they are asked for, whatever their packets' lengths, and no draw is made twice."""

from dataclasses import replace

import numpy as np
import pytest
import yaml

from flitlab import Experiment
from flitlab.models.registry import make
from flitlab.models.rules.arrivals import LONGEST_RUN, make_arrivals, next_arrival, survivors
from flitlab.models.rules.draw import Stream, draw, draw_with_block, paired, philox
from flitlab.models.rules.packets import length, make_packets
from flitlab.models.traffic.source import BurstRates, Source
from flitlab.models.traffic.table import table_traffic
from flitlab.sim.cli import main
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compiled.sources import COUNTER, FLITS, POSITION, count_created, start_cursor
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests.scenarios import build, line, scenario
from tests.sim.test_credit_delay import ROUTER

HOSTS, TICKS = 32, 200_000
MIXES = {"one length": ((4,), (1.0,)), "1 and 2": ((1, 2), (0.5, 0.5)), "1 and 64": ((1, 64), (0.99, 0.01))}


def tables(kind, load, mix, rate=None):
    """Arrivals and packets of 32 hosts."""
    flits, shares = mix
    source = Source(kind, flits, shares)
    traffic = make("traffic", kind="uniform").build(line(2, HOSTS // 2))
    rate = traffic.rate if rate is None else rate
    return make_arrivals(kind, load, source.mean_flits, rate, source.burst), make_packets(traffic, flits, shares)


def created(arrivals, packets):
    """Flits a tick that every host creates."""
    first = np.zeros((HOSTS, 4), np.int64)
    for host in range(HOSTS):
        first[host, [COUNTER, POSITION]] = next_arrival(arrivals, packets, 7, host, 0, -arrivals.base)
    cursor = start_cursor(HOSTS)
    count_created(arrivals, packets, 7, TICKS, first, cursor)
    return cursor[:, FLITS] / TICKS


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "onoff"])
def test_the_load_is_offered(kind, mix, load):
    offered = created(*tables(kind, load, MIXES[mix]))
    error = offered.std(ddof=1) / np.sqrt(HOSTS)
    assert abs(offered.mean() - load) <= 4 * error + 1e-4


def test_hosts_of_lower_rates_offer_their_part():
    rate = np.tile([1.0, 0.3], HOSTS // 2)
    offered = created(*tables("onoff", 0.9, MIXES["1 and 2"], rate))
    assert offered[::2].mean() == pytest.approx(0.9, rel=0.01)
    assert offered[1::2].mean() == pytest.approx(0.27, rel=0.02)


def test_packets_of_a_burst_follow_each_other_when_the_channel_is_free():
    arrivals, packets = tables("onoff", 1.0, MIXES["1 and 64"])  # one burst without end
    counter, position = next_arrival(arrivals, packets, 3, 5, 0, -arrivals.base)
    for _ in range(300):
        later, at = next_arrival(arrivals, packets, 3, 5, counter + 1, position)
        assert at == position + length(packets, 3, 5, counter)
        counter, position = later, at


def test_a_burst_has_the_rate_of_the_channel_of_its_host():
    """Faster links elsewhere make ticks shorter: no packet of 4 flits waits for the one before it, at any speed."""
    text = (
        "topology: {kind: file, text: '0 -- 1', hosts_per_switch: 1, capacity: {sweep: [2, 10]}}\n"
        "routing: minimal\nswitching: {mode: ideal}\nmeasure: {warmup: 0, ticks: 200000, ci: null}\nceilings: []\n"
        "traffic: {kind: shift, by: 1, packet_flits: 4, arrivals: onoff, burst: 8}\nloads: [0.3]\nengine: both\n"
        "outputs: {channels: true}\n"  # as tests/sim/test_channels.py, so that the kernel is compiled once
    )
    found = Experiment.load(yaml.safe_load(text)).run(jobs=1).results
    assert (found["latency_mean"] / [2, 10]).tolist() == [8, 8]  # through the channels of both hosts
    accepted = found["accepted"] * [2, 10]  # with slow hosts, of some 3000 packets in bursts: +- 5 %
    assert accepted.tolist() == pytest.approx([0.3] * 2, rel=0.2)


@pytest.mark.parametrize("rates", [BurstRates(start=0.01, end=0.05), BurstRates(end=0.1, rate=0.9)])
def test_bursts_of_given_rates_offer_the_load(rates):
    flits, shares = MIXES["1 and 2"]
    source = Source("onoff", flits, shares, rates)
    rate = np.tile([1.0, 0.3], HOSTS // 2)
    arrivals = make_arrivals("onoff", 0.2, source.mean_flits, rate, source.burst)
    offered = created(arrivals, make_packets(make("traffic", kind="uniform").build(line(2, HOSTS // 2)), flits, shares))
    for part, load in ((offered[::2], 0.2), (offered[1::2], 0.06)):
        assert abs(part.mean() - load) <= 4 * part.std(ddof=1) / np.sqrt(len(part))


BURSTS = "traffic: {{kind: uniform, {}}}\nloads: [0.01, 0.4]\n"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("arrivals: onoff, burst: {start: 0.1}", "traffic.burst: needs two of start, end, rate"),
        ("arrivals: onoff, burst: {start: 0.1, end: 0.1, rate: 0.5}", "traffic.burst: needs two of start, end, rate"),
        ("burst: {start: 0.1, end: 0.1}", "traffic: rates of burst are for arrivals: onoff"),
        (
            "arrivals: onoff, burst: {start: 0.1, end: 0.5}",
            "load 0.4: 0.4 packets per tick need chances of a burst above",
        ),
        ("arrivals: onoff, burst: {start: 0.1, rate: 0.5}", "load 0.01: 0.01 packets per tick need chances of a burst"),
        ("arrivals: onoff, burst: {end: 0.1, rate: 0.3}", "burst.rate 0.3 must exceed the 0.4 packets per tick"),
        ("arrivals: onoff, burst: {end: 2, rate: 0.3}", "traffic.burst.end = 2: must be less than or equal to 1"),
    ],
)
def test_bursts_that_hosts_cannot_create_are_rejected(tmp_path, capsys, keys, problem):
    ring = "topology: {kind: torus, dims: [4]}\nrouting: {kind: minimal}\n"
    (tmp_path / "a.yaml").write_text(ring + BURSTS.format(keys))
    assert main(["check", str(tmp_path / "a.yaml")]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.long
def test_engines_create_the_same_bursts():
    case = scenario(build("mesh", dims=[2, 2]), source=Source("onoff", (1, 2), (1.0, 1.0), BurstRates(0.05, 0.1)))
    run = start("both", case, 0.3, 2)
    run.advance(3000)
    created = run.snapshot().scalars[Scalar.CREATED_FLITS] / (4 * 3000)
    assert created == pytest.approx(0.3, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize(("load", "latency", "tolerance"), [(0.1, 34.00, 0.02), (0.2, 41.05, 0.02), (0.3, 60.55, 0.04)])
def test_latency_under_bursts_is_that_of_booksim2(load, latency, tolerance):
    """BookSim2 28f4329, mesh 8 x 8: injection_process = on_off, burst_alpha = 0.02, burst_beta = 0.05."""
    case = scenario(
        build("mesh", dims=[8, 8]), routing={"kind": "dor"}, traffic={"kind": "uniform", "include_self": True},
        source=Source("onoff", (5,), (1.0,), BurstRates(0.02, 0.05)), mode="wormhole", vcs=4, buffer_flits=8, **ROUTER,
    )  # fmt: skip
    row = measure("compiled", case, load, 1, Measure(10_000, 100_000, None)).row
    assert row["latency_mean"] == pytest.approx(latency, rel=tolerance)


@pytest.mark.long
def test_both_engines_offer_the_load(engine_name):
    case = scenario(build("mesh", dims=[2, 2]), source=Source("onoff", (1, 2), (1.0, 1.0)), buffer_flits=8)
    run = start(engine_name, case, 0.9, 2)
    run.advance(8000)
    assert run.scalars()[Scalar.CREATED_FLITS] / (4 * 8000) == pytest.approx(0.9, rel=0.01)


def test_a_load_that_hosts_cannot_create_is_refused(study):
    refused = {"onoff": 1.01, "bernoulli": 1.51, "poisson": 1.51}
    for kind, load in refused.items():
        tables(kind, load - 0.01, MIXES["1 and 2"])
        with pytest.raises(ValueError, match="asks for more than"):
            tables(kind, load, MIXES["1 and 2"])
    rounded = np.array([1.0, 1 + 2**-52])  # what scaling a matrix may leave of 1
    make_arrivals("bernoulli", 1.0, 1.0, rounded, 8.0)


@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "onoff"])
def test_a_host_that_sends_after_the_longest_run_is_not_waited_for(kind):
    arrivals, packets = tables(kind, 1e-17, MIXES["one length"])
    counter, position = next_arrival(arrivals, packets, 1, 0, 0, -arrivals.base)
    assert counter == 0 and position >> arrivals.shift >= LONGEST_RUN
    hardly = np.array([1.0, 2.0**-62] * (HOSTS // 2))
    arrivals, packets = tables(kind, 1e-4, MIXES["one length"], hardly)
    assert next_arrival(arrivals, packets, 1, 1, 0, -arrivals.base)[1] >> arrivals.shift >= LONGEST_RUN


def test_no_run_is_longer_than_engines_count(engine_name):
    run = start(engine_name, scenario(line(2)), 0.1, 1)
    with pytest.raises(ValueError, match=r"no run is longer than 2\*\*30"):
        run.advance(LONGEST_RUN + 1)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(key, counter, words):
    # Those that its authors publish with Random123 1.14 (tests/kat_vectors).
    seed, place = (np.array(low | high << 32, np.uint64).view(np.int64)[()] for low, high in (key, counter[:2]))
    assert philox(seed, np.int64(counter[3]), np.int64(counter[2]), place) == words


def test_two_blocks_at_once_are_those_made_alone():
    for seed, host, counter in ((0, 0, 0), (-1, 2**31 - 1, 2**62), (2**40 + 3, 77, 2**32 + 5)):
        seed, host, counter = np.int64(seed), np.int64(host), np.int64(counter)
        word, block = draw_with_block(seed, host, Stream.DESTINATION, counter, Stream.ARRIVAL, counter + 1)
        assert word == draw(seed, Stream.DESTINATION, host, counter)
        assert block == philox(seed, Stream.ARRIVAL, host, counter + 1)


@pytest.mark.parametrize("load", [1e-3, 0.1, 0.9])
def test_gaps_are_those_that_their_thresholds_ask_for(load):
    arrivals, _ = tables("poisson", load, MIXES["1 and 64"])
    for table, guide in ((arrivals.coarse, arrivals.coarse_guide), (arrivals.fine, arrivals.fine_guide)):
        near = np.concatenate([table - 1, table, table + 1])
        words = np.concatenate([np.random.default_rng(1).integers(0, 2**63 - 1, 300), near[near >= 0], [0, 2**63 - 1]])
        counted = [(table > word).sum() for word in words]
        assert [survivors(table, guide, word) for word in words] == counted


def test_no_two_draws_are_of_one_counter():
    pairs = [(major, minor) for major in (0, 1, 7, 2**32 - 1) for minor in (0, 65535, 65536, 131072, 2**20, 2**32 - 1)]
    for bits in (16, 20):
        counters = [int(paired(np.int64(major), np.int64(minor), np.int64(bits))) for major, minor in pairs]
        assert len(set(counters)) == len(pairs)
        assert int(paired(np.int64(9), np.int64(5), np.int64(bits))) == (9 << bits) + 5
    beyond = paired(np.int64(3), np.int64(1 << 16), np.int64(16))
    assert draw(1, Stream.ARRIVAL_TAIL, 0, beyond) != draw(
        1, Stream.ARRIVAL_TAIL, 0, paired(np.int64(4), np.int64(0), np.int64(16))
    )


def test_rates_of_a_matrix_far_apart():
    """The busiest pair of hosts sets the pace; the other's packets come after any run."""
    topology = line(2, 1)
    case = scenario(topology, source=Source(flits=(4,)))
    traffic = table_traffic("table", topology, np.array([[0.0, 1.0], [1e-15, 0.0]]))
    assert traffic.rate.tolist() == [1.0, 1e-15]
    run = start("compiled", replace(case, instance=replace(case.instance, traffic=traffic)), 1e-3, 1)
    run.advance(20_000)
    assert run.snapshot().created[1] == 0
