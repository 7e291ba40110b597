# SPDX-License-Identifier: Apache-2.0
"""TIMELY and windows of any transport: the law in closed form, and the ns-3 of HPCC's authors."""

from random import Random

import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.rdma import laws, timely
from flitlab.sim.engines.transport.spray import PauseCount
from tests import long_after
from tests.sim.lossless_cases import completed, drawn_queues, ns3_fabric, racks, rebuilt, session, star
from tests.sim.spray_cases import case_of_number
from tests.sim.test_dcqcn import flow_of
from tests.sim.test_lossless import agree

US = 12_500
"""Ticks of a microsecond."""


def step(d, expected, trip_us):
    """Acknowledge a packet after a round trip; the sender is far ahead."""
    d.flow.cursor = expected + 10
    timely.on_ack(d, 0, expected, int(trip_us * US))


def test_the_rate_follows_the_gradient_between_the_thresholds():
    d, law = flow_of({"kind": "timely", "hyper_mbps": 60.0})
    step(d, 1, 100)
    assert d.flow.rate[0] == 1.0, "the first round trip has no gradient"
    step(d, 5, 200)
    assert d.flow.rate[0] == 1.0, "less than a round trip later"
    step(d, 12, 110)  # its gradient is 0.875 * 10 / 20
    assert d.flow.rate[0] == pytest.approx(1 - 0.8 * 0.4375)
    step(d, 23, 100)
    assert d.flow.change[0] == pytest.approx((0.125 * 8.75 - 0.875 * 10) * US)
    assert d.flow.rate[0] == pytest.approx(0.65 + law.additive)
    step(d, 34, 600)
    assert d.flow.rate[0] == pytest.approx((0.65 + law.additive) * (1 - 0.8 * (1 - 500 / 600)))
    before = d.flow.rate[0]
    for increase in range(1, 8):
        step(d, 34 + 11 * increase, 30)
        before += law.additive if increase <= 5 else law.hyper
        assert d.flow.rate[0] == pytest.approx(before)
    assert law.hyper == pytest.approx(6 * law.additive)
    step(d, 200, 300)
    assert d.flow.rate[0] == pytest.approx(law.least), "a gradient of 1.25 or more leaves nothing"


@pytest.mark.parametrize(
    ("senders", "size", "mean", "longest"),
    [(1, 2_000_000, 172.092, 172.092), (8, 2_000_000, 1347.8, 1348.1), (64, 256_000, 1976.0, 1980.2)],
)
def test_a_star_with_a_window_is_that_of_ns3(senders, size, mean, longest):
    transport = {"kind": "timely", "window_bytes": 52_000, "scale_window": True}
    found, counters = completed(star(senders, transport, ns3_fabric(1056, 84), size, 65), "compiled")
    assert found.mean() == pytest.approx(mean, rel=5e-4)
    assert found.max() == pytest.approx(longest, rel=5e-4)
    assert not counters.pause[:, PauseCount.FRAMES].any()


def test_a_window_limits_any_transport_and_may_shrink_with_the_rate():
    d, _ = flow_of({"kind": "roce", "window_bytes": 40_000})
    assert laws.fits_window(d, 0, 9) and not laws.fits_window(d, 0, 10)
    d, _ = flow_of({"kind": "dcqcn", "window_bdp": 1.0, "scale_window": True})
    assert laws.fits_window(d, 0, 49) and not laws.fits_window(d, 0, 50)
    d.flow.rate = 0.5
    assert laws.fits_window(d, 0, 24) and not laws.fits_window(d, 0, 25)


def test_a_window_of_one_round_trip_does_not_slow_a_flow():
    """Nor do senders with such windows pause: 7 windows of 4 packets are below XOFF of each."""
    alone, _ = completed(session(racks(), [(0, 8)]), "reference")
    found, _ = completed(session(racks(), [(0, 8)], transport={"kind": "roce", "window_bdp": 1.0}), "reference")
    assert found[0] == alone[0]
    pairs, transport = [(sender, 0) for sender in range(1, 8)], {"kind": "roce", "window_bytes": 16_000}
    _, counters = completed(session(racks(), pairs, 400_000, transport), "reference")
    assert not counters.pause[:, PauseCount.FRAMES].any()


@pytest.mark.long
@pytest.mark.parametrize("number", long_after(1, range(60)))
def test_engines_agree_on_timely_and_windows(number):
    case, _, routes = case_of_number(number)
    rng = Random(number)
    low = rng.choice([0.5, 5.0, 50.0])
    transport = {
        "kind": "timely", "low_us": low, "high_us": rng.choice([2.0, 10.0]) * low, "least_us": rng.choice([1.0, 20.0]),
        "additive_mbps": rng.choice([10.0, 10_000.0]), "scale_window": rng.random() < 0.5,
        "timeout_us": rng.choice([20.0, 1000.0]),
        **rng.choice([{}, {"window_bdp": 0.7}, {"window_bytes": 1}, {"window_bytes": 10_000}]),
    }  # fmt: skip
    agree(rebuilt(case, routes, transport, drawn_queues(rng) if number % 3 else None, number))


def test_two_windows_are_rejected():
    with pytest.raises(SpecError, match="either window_bytes or window_bdp"):
        make("transport", kind="roce", window_bytes=5, window_bdp=1.0).spraying()


def test_thresholds_in_the_wrong_order_are_rejected():
    with pytest.raises(SpecError, match="low_us: 50 must be below high_us"):
        make("transport", kind="timely", high_us=50.0).spraying()
