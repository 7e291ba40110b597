# SPDX-License-Identifier: Apache-2.0
"""Warm-up, intervals, percentiles and saturation, against known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.fairness import jain
from flitlab.models.histogram import BUCKETS, bucket, edges, percentile
from flitlab.models.traffic.source import Source
from flitlab.sim.measure.batches import exceeds_noise, mean_half_width, ratio_half_width, regroup
from flitlab.sim.measure.growth import source_settling
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure, is_steady, mser5
from tests.scenarios import build, carrying, line, scenario


def test_mser5_drops_the_transient():
    rng = np.random.default_rng(1)
    series = np.concatenate([np.linspace(9, 0, 60), np.zeros(240)]) + rng.normal(0, 0.3, 300)
    assert 35 <= mser5(series) <= 75
    assert is_steady(series)


def test_mser5_keeps_a_steady_series_and_distrusts_a_growing_one():
    rng = np.random.default_rng(2)
    assert mser5(rng.normal(5, 1, 400)) <= 200
    assert not is_steady(np.arange(200) + rng.normal(0, 1, 200))


def test_ratio_interval_covers():
    # 95 % of intervals of a ratio of means should hold it; 400 trials, so 90-99 % with certainty
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        size = rng.poisson(50, 20).astype(float)
        total = rng.normal(3 * size, np.sqrt(size))
        hits += abs(total.sum() / size.sum() - 3) <= ratio_half_width(total, size)
    assert 0.90 <= hits / 400 <= 0.99


def correlated(rng, batches, phi):
    """A first-order autoregression of mean 20, in batches of 50 packets each: [batches, 2]."""
    series = np.zeros(batches)
    shocks = rng.normal(0, 1, batches)
    for i in range(1, batches):
        series[i] = phi * series[i - 1] + shocks[i]
    return np.column_stack([50 * (20 + series), np.full(batches, 50.0)])


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_intervals_of_correlated_batches_cover(phi):
    # 400 intervals at a time: 90-99 % with certainty; without regard to the correlation 60 % at phi = 0.8
    rng = np.random.default_rng(4)
    found = [correlated(rng, 400, phi) for _ in range(400)]
    hits = [abs(rows[:, 0].sum() / rows[:, 1].sum() - 20) <= mean_half_width(rows) for rows in found]
    assert 0.90 <= np.mean(hits) <= 0.99
    naive = [abs(r[:, 0].sum() / r[:, 1].sum() - 20) <= ratio_half_width(r[:, 0], r[:, 1]) for r in found]
    assert phi < 0.8 or np.mean(naive) < 0.7


def test_the_longer_side_of_the_interval_is_reported():
    rows = np.column_stack([np.tile([90.0, 110.0], 20), np.full(40, 10.0)])
    plain = ratio_half_width(rows[:, 0], rows[:, 1])
    assert mean_half_width(rows) == pytest.approx(plain / (1 - plain / 10))
    wild = np.column_stack([np.tile([0.0, 0.0, 0.0, 400.0], 10), np.full(40, 10.0)])
    plain = ratio_half_width(wild[:, 0], wild[:, 1])
    assert plain < mean_half_width(wild) <= 2 * plain


def test_a_missing_replicate_leaves_the_mean_unknown():
    assert all(map(np.isnan, mean_and_half([1.0, float("nan"), 2.0])))


def test_interval_needs_batches():
    assert np.isnan(mean_half_width(np.array([[1.0, 1.0]])))
    assert np.isnan(mean_half_width(np.zeros((40, 2))))
    assert mean_half_width(np.column_stack([np.full(40, 6.0), np.full(40, 2.0)])) == 0
    few = np.zeros((40, 2))
    few[:9] = 12.0, 1.0  # nine packets of the same latency say nothing of the next
    assert np.isnan(mean_half_width(few))
    few[9] = 12.0, 1.0
    assert mean_half_width(few) == 0
    assert np.isnan(ratio_half_width(np.array([1.0]), np.array([1.0])))
    assert np.isnan(ratio_half_width(np.zeros(5), np.zeros(5)))


def test_regroup_adds_up_neighbours():
    rows = np.arange(45)[:, None]
    grouped = regroup(rows, 20)
    assert grouped.shape == (15, 1)
    assert grouped[0, 0] == 0 + 1 + 2
    assert grouped[-1, 0] == 42 + 43 + 44


@pytest.mark.parametrize(("load", "ticks"), [(0.95, 47_900), (0.7, 984.7), (1.0, 0)])
def test_a_warm_up_lasts_until_source_queues_settle(load, ticks):
    """2 I L u / (1 - u)^2 of 64-flit packets, of which I = 1 - u / 64 (Bernoulli)."""
    case = scenario(line(2, hosts=1), source=Source(flits=(64,)), buffer_flits=128)
    assert source_settling(case, load) == pytest.approx(ticks, rel=1e-3)


def test_a_warm_up_that_is_too_short_for_source_queues_says_so():
    case = scenario(line(2, hosts=1), source=Source(flits=(32,)), buffer_flits=64)
    rows = {load: measure("compiled", case, load, 1, Measure(None, 8000, None)).row for load in (0.5, 0.95)}
    assert rows[0.5]["steady"] and rows[0.5]["warmup_ticks"] < 4000
    assert not rows[0.95]["steady"] and rows[0.95]["warmup_ticks"] > 4000  # 2 * 0.97 * 32 * 0.95 / 0.05^2 = 23,600


def test_exceeds_noise():
    rng = np.random.default_rng(4)
    assert not exceeds_noise(rng.normal(0, 1, 20), 0.0)
    assert exceeds_noise(rng.normal(5, 1, 20), 1.0)
    assert not exceeds_noise(rng.normal(5, 1, 20), 6.0)


@given(st.integers(0, 2**31 - 1))
@settings(deadline=None)  # the first call compiles
def test_a_value_lies_in_its_bucket(value):
    low, high = edges()[bucket(value) : bucket(value) + 2]
    assert low <= value < high
    assert high - low <= max(1, value / 64)


def test_percentiles_are_exact_for_small_values():
    histogram = np.zeros(BUCKETS, np.int64)
    for value in range(1, 101):
        histogram[bucket(value)] += 1
    assert [percentile(histogram, p) for p in (0.5, 0.99, 0.999)] == [50, 99, 100]
    assert np.isnan(percentile(np.zeros(BUCKETS, np.int64), 0.5))


def test_jain():
    assert jain(np.ones(7)) == 1
    assert jain(np.array([1.0, 0, 0, 0])) == 0.25
    assert np.isnan(jain(np.zeros(3)))


def test_jain_is_1_for_equal_shares_and_never_above():
    """The square of the sum over the sum of squares is above 1 for 3,000 of these 8,000."""
    rng = np.random.default_rng(1)
    for count in range(1, 401):
        for share in rng.random(20):
            assert jain(np.full(count, share)) == 1.0
        shares = rng.random(count) ** 3
        assert jain(shares) <= 1.0
        assert jain(shares) == pytest.approx(shares.sum() ** 2 / (count * (shares**2).sum()), rel=1e-12)


def test_window_is_exactly_ticks_without_ci():
    case = scenario(build("imase", hosts=1, n=6, degree=2))
    for warmup, ticks in ((0, 7), (13, 100), (None, 1000)):
        result = measure("compiled", case, 0.2, 1, Measure(warmup, ticks, None))
        assert result.row["ticks"] == result.window == ticks
        assert warmup is None or result.row["warmup_ticks"] == warmup


def test_window_grows_until_it_is_precise():
    case = scenario(build("imase", hosts=1, n=6, degree=2))
    loose = measure("compiled", case, 0.3, 1, Measure(500, 500, 0.5, 50_000)).row
    tight = measure("compiled", case, 0.3, 1, Measure(500, 500, 0.04, 50_000)).row
    assert loose["ticks"] == 500 < tight["ticks"] <= 50_000
    assert tight["latency_ci95"] <= 0.04 * tight["latency_mean"]


@pytest.mark.parametrize(("load", "saturated"), [(0.3, False), (0.45, False), (0.55, True), (0.9, True)])
def test_saturation_of_a_shared_link(load, saturated):
    # two hosts share a link of rate 1: it saturates at 0.5 each
    case = scenario(line(2, hosts=2), traffic={"kind": "shift", "by": 2}, buffer_flits=32)
    assert measure("compiled", case, load, 1, Measure(None, 40_000, None)).row["saturated"] == saturated


def test_a_single_starving_host_is_seen():
    # 126 hosts are idle neighbours; two share a link beyond its rate, under 1 % of all traffic is lost

    topology = line(2, hosts=64)
    case = scenario(topology, traffic={"kind": "permutation", "seed": 3}, source=Source(flits=(4,)), buffer_flits=32)
    target = np.arange(128) ^ 1
    target[[0, 1, 64, 65]] = [64, 65, 0, 1]
    case = carrying(case, fixed=target)
    row = measure("compiled", case, 0.51, 1, Measure(None, 60_000, None)).row
    assert row["accepted"] > 0.99 * row["offered"]
    assert row["min_flow_ratio"] < 0.99
    assert not measure("compiled", case, 0.4, 1, Measure(None, 60_000, None)).row["saturated"]
    assert measure("compiled", case, 0.59, 1, Measure(None, 60_000, None)).row["saturated"]


def test_engines_give_the_same_point():
    case = scenario(build("imase", hosts=2, n=8, degree=2))
    rows = [measure(name, case, 0.4, 2, Measure(None, 800, None)).row for name in ("compiled", "reference", "both")]
    for row in rows:
        for own in ("events", "cpu_s"):
            row.pop(own)
    assert rows[0] == rows[1] == rows[2]
