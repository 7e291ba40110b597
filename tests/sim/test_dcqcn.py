# SPDX-License-Identifier: Apache-2.0
"""DCQCN over lossless queues: its law in closed form, marks, and an independent simulator."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.lossless import is_marked
from flitlab.models.rules.rdma import dcqcn_ns3
from flitlab.models.rules.rdma.dcqcn import next_tick, on_cnp, on_sent, on_timer
from flitlab.models.rules.rdma.layout import make_rdma
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import Lossless
from flitlab.models.transport.rdma import Scale
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount, PauseCount
from flitlab.sim.measure.spray import measure_sprayed
from flitlab.sim.measure.transport import Window
from tests import long_after
from tests.sim.lossless_cases import ENGINES, completed, drawn_queues, fabric, ns3_fabric, racks, rebuilt, session, star
from tests.sim.spray_cases import case_of_number
from tests.sim.test_lossless import agree

TICK = Fraction(8, 10**11)
"""Seconds of a byte at 100 Gb/s."""

HTSIM = {"kind": "dcqcn", "extra": 1, "additive_mbps": 5000.0, "hyper_mbps": 10_000.0, "stages": 6, "byte_counter": 0}
"""The parameters of htsim, whose byte counter counts packets and never fires."""


def flow_of(keys):
    """An RDMA flow at 100 Gb/s, with a transport of these keys, and its law."""
    law = make("transport", **keys).spraying().rdma.law(Scale(TICK, 1.0, 4000, 200_000))
    one = np.ones(1, np.int64)
    return make_rdma([law], np.zeros(1, np.int64), 1000 * one, 4064 * one, 4064), law


def flow(**keys):
    """An RDMA flow with the law of DCQCN, and the law."""
    return flow_of({"kind": "dcqcn", **keys})


def test_keys_are_those_of_the_paper_in_ticks_and_bytes_per_tick():
    _, law = flow()
    assert (law.cnp_interval, law.alpha_period, law.increase_period) == (625_000, 687_500, 687_500)
    assert (law.gain, law.stages, law.byte_counter) == (1 / 256, 5, 10_000_000)
    assert law.additive == pytest.approx(40 / 100_000)


def test_a_notification_halves_the_rate_and_fast_recovery_halves_what_is_missing():
    d, law = flow()
    on_cnp(d, 0, 1000)
    assert d.flow.rate[0] == 0.5 and d.flow.alpha[0] == 1.0
    for stage in range(1, 5):
        assert next_tick(d, 0) == 1000 + stage * law.increase_period
        on_timer(d, 0, 1000 + stage * law.increase_period)
        assert d.flow.rate[0] == 1 - 2.0 ** -(stage + 1)
        assert d.flow.alpha[0] == pytest.approx((255 / 256) ** stage)


def test_a_packet_that_fills_the_byte_counter_several_times_raises_the_rate_as_often():
    d, _ = flow(byte_counter=1000)
    on_cnp(d, 0, 0)
    on_sent(d, 0, 4064)
    assert (d.flow.byte_stage[0], d.flow.counted[0], d.flow.rate[0]) == (4, 64, 1 - 2.0**-5)


def test_a_flow_with_a_very_low_rate_sends_again_once_the_rate_has_risen():
    d, law = flow(additive_mbps=5000.0, hyper_mbps=10_000.0)
    d.flow.sent_size[0], now = 4064, 0
    for now in range(0, 1_000_000, 50_000):  # 20 notifications, before any increase
        on_cnp(d, 0, now)
    assert d.flow.rate[0] == 2.0**-20 and d.flow.next_at[0] == 4064 << 20
    while d.flow.next_at[0] > now:
        now = next_tick(d, 0)
        on_timer(d, 0, now)
    assert d.flow.timer_stage[0] == 6  # the fifth increase is the first that adds 5 Gb/s to the target
    assert now == 950_000 + 6 * law.increase_period and d.flow.rate[0] > 0.025


def test_beyond_fast_recovery_the_target_rises_additively_then_by_multiples():
    d, law = flow(stages=2, byte_counter=10_000, additive_mbps=1000.0, hyper_mbps=5000.0)
    on_cnp(d, 0, 0)
    rate, target = 0.5, 1.0
    timer = counter = 0
    for event in "tbbtbttb":
        if event == "t":
            timer += 1
            on_timer(d, 0, timer * law.increase_period)
        else:
            counter += 1
            on_sent(d, 0, 10_000)
        if min(timer, counter) > 2:
            target += (min(timer, counter) - 2) * 0.05
        elif max(timer, counter) >= 2:
            target += 0.01
        rate = min((rate + target) / 2, 1.0)
        assert d.flow.rate[0] == pytest.approx(rate)


def test_a_second_notification_cuts_by_the_present_alpha():
    d, law = flow(gain=0.25)
    on_cnp(d, 0, 0)
    on_timer(d, 0, law.alpha_period)
    on_cnp(d, 0, 700_000)
    assert d.flow.rate[0] == pytest.approx(0.75 * (1 - 0.75 / 2))
    assert d.flow.alpha[0] == pytest.approx(0.75 * 0.75 + 0.25)


def test_marks_rise_with_the_queue_to_their_probability():
    low, high, span = 5_000, 200_000, 19_500_000
    marks = [is_marked(1, 7, times, 102_500, low, high, span) for times in range(40_000)]
    assert np.mean(marks) == pytest.approx(0.005, abs=5 * (0.005 / 40_000) ** 0.5)
    assert is_marked(1, 7, 0, high + 1, low, high, span)


def test_the_variant_of_ns3_has_three_timers_from_the_first_mark_on():
    d, law = flow(profile="ns3", least_mbps=1000.0, gain=0.25)
    us = 12_500
    assert (law.alpha_period, law.cnp_interval, law.increase_period) == (us, 4 * us, 900 * us)
    dcqcn_ns3.on_ack(d, 0, False, 0)
    assert dcqcn_ns3.next_tick(d, 0) == -1
    dcqcn_ns3.on_ack(d, 0, True, 0)
    for microsecond in range(1, 4):
        assert dcqcn_ns3.next_tick(d, 0) == microsecond * us
        dcqcn_ns3.on_timer(d, 0, microsecond * us)
        assert d.flow.rate[0] == 1.0 and d.flow.alpha[0] == pytest.approx(0.75**microsecond)
    dcqcn_ns3.on_ack(d, 0, True, 3 * us + 1)
    dcqcn_ns3.on_timer(d, 0, 4 * us)
    alpha = 0.75**4 + 0.25
    first = 1 - alpha / 2
    assert d.flow.alpha[0] == pytest.approx(alpha) and d.flow.rate[0] == pytest.approx(first)
    for microsecond in range(5, 8):
        dcqcn_ns3.on_timer(d, 0, microsecond * us)
    dcqcn_ns3.on_ack(d, 0, True, 8 * us - 1)
    dcqcn_ns3.on_timer(d, 0, 8 * us)
    second = first * (1 - (alpha * 0.75**4 + 0.25) / 2)
    assert d.flow.rate[0] == pytest.approx(second)
    assert d.flow.target[0] == 1.0, "the rate has not risen in between"
    d.flow.alpha_at = d.flow.decrease_at = 10**9
    for stage in range(4):
        assert dcqcn_ns3.next_tick(d, 0) == (8 + 900 * (stage + 1)) * us
        dcqcn_ns3.on_timer(d, 0, (8 + 900 * (stage + 1)) * us)
        second = (second + 1) / 2  # the target is at most the line rate
        assert d.flow.rate[0] == pytest.approx(second)
    d.flow.decrease_at, d.flow.notified, d.flow.alpha = 9 * us, 2, 2.0
    dcqcn_ns3.on_timer(d, 0, 5000 * us)
    assert d.flow.target[0] == pytest.approx(second) and d.flow.rate[0] == pytest.approx(0.01)


@pytest.mark.long
def test_an_incast_of_the_variant_of_ns3_is_that_of_ns3():
    """Marks are random, so that flows differ."""
    queues = ns3_fabric(1048, 83, Lossless(10**6, 10**6, release="start"))
    found, counters = completed(star(8, {"kind": "dcqcn", "profile": "ns3"}, queues), "compiled", 0.1)
    assert found.mean() == pytest.approx(3867.6, rel=0.01)
    assert found.max() == pytest.approx(4055.4, rel=0.02)
    assert counters.cnps.sum() == counters.flow[:, FlowCount.MARKS].sum()


def test_marks_of_the_variant_of_ns3_are_in_proportion_to_the_rate():
    topology = Topology.from_links("line", 2, np.array([(0, 1)])).with_hosts(np.ones(2, np.int64))
    topology = replace(topology, capacity=np.full(2, 0.25))
    case = session(topology, [(0, 1)], transport={"kind": "dcqcn", "profile": "ns3"})
    assert case.low[0] == 100_000 and case.high[0] == 400_000 and case.low[-1] == 400_000
    assert case.ports.mark_span[0] == 300_000 / 0.2
    keys = make("transport", kind="dcqcn", profile="ns3", stages=3)
    assert (keys.stages, keys.alpha_us, make("transport", **keys.model_dump()).stages) == (3, 1.0, 3)


@pytest.mark.long
def test_without_congestion_a_flow_sends_at_line_rate():
    pairs = [(0, 8)]
    plain, _ = completed(session(racks(), pairs), "compiled")
    controlled, counters = completed(session(racks(), pairs, transport={"kind": "dcqcn"}), "compiled")
    assert plain[0] == controlled[0] and counters.cnps.sum() == 0


@pytest.mark.parametrize(("senders", "mean", "longest", "cnps"), [(2, 598.505, 598.799, 6), (7, 1830.141, 1850.94, 76)])
def test_an_incast_in_a_rack_is_that_of_htsim_but_for_ties(senders, mean, longest, cnps):
    ten = 10 * 4000 / 4064
    queues = fabric(ecn=(ten, ten), mark_own=True)
    case = session(racks(), [(sender, 0) for sender in range(1, senders + 1)], transport=HTSIM, queues=queues)
    found, counters = completed(case, "compiled")
    assert found.mean() == pytest.approx(mean, rel=0.01)
    assert found.max() == pytest.approx(longest, rel=0.003)
    assert counters.cnps.sum() == pytest.approx(cnps, abs=2)
    assert counters.flow[:, FlowCount.MARKS].sum() == counters.link[:, LinkCount.MARKED].sum()


def test_an_incast_of_more_senders_than_the_control_resolves_ends_as_in_htsim():
    ten = 10 * 4000 / 4064
    topology, queues = make("topology", kind="fat_tree", k=8).build(), fabric(ecn=(ten, ten), mark_own=True)
    case = session(topology, [(sender, 0) for sender in range(64, 128)], 256_000, HTSIM, queues)
    found, counters = completed(case, "compiled")
    assert found.mean() == pytest.approx(1278.8, rel=0.03) and found.max() < 2_000
    assert counters.cnps.sum() == pytest.approx(1149, rel=0.05)


def test_control_spares_a_victim_most_of_its_pauses():
    pairs = [(10, 8), (11, 8), (12, 8), (0, 8), (1, 9)]
    before, uncontrolled = completed(session(racks(), pairs), "compiled")
    row = measure_sprayed(
        ENGINES["compiled"](session(racks(), pairs, transport={"kind": "dcqcn"})), None, 1.0, Window((0.0, 0.1))
    ).row
    assert row["cnps"] > 0 and 2 * row["pause_frames"] < uncontrolled.pause[:, PauseCount.FRAMES].sum()
    after, counters = completed(session(racks(), pairs, transport={"kind": "dcqcn"}), "compiled", 0.1)
    assert after[4] < after[:4].max() and before[4] == pytest.approx(before.max(), rel=0.01)
    assert counters.pause[:, PauseCount.FRAMES].sum() == row["pause_frames"]


@pytest.mark.parametrize("number", long_after(1, range(60)))
def test_engines_agree_on_dcqcn(number):
    case, _, routes = case_of_number(number)
    rng = Random(number)
    transport = {
        "kind": "dcqcn", "cnp_us": rng.choice([0.0, 1.0, 50.0]), "alpha_us": rng.choice([0.5, 5.0]), "gain": 0.1,
        "increase_us": rng.choice([0.7, 3.0]), "byte_counter": rng.choice([0, 5000, 100_000]),
        "additive_mbps": rng.choice([40.0, 5000.0]), "stages": rng.choice([1, 5]), "least_mbps": 10.0,
    }  # fmt: skip
    if number % 3 == 0:
        transport = {
            "kind": "dcqcn", "profile": "ns3", "cnp_us": rng.choice([0.0, 1.0]), "alpha_us": 0.3, "gain": 0.1,
            "increase_us": rng.choice([0.7, 3.0]), "additive_mbps": 5000.0, "least_mbps": 10.0,
        }  # fmt: skip
    agree(rebuilt(case, routes, transport, drawn_queues(rng), 2 * number + 1))


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_engines_agree_on_two_rdma_transports_and_on_dropping_queues(number):
    case, _, routes = case_of_number(number)
    several = {"kind": "several", "of": [{"kind": "roce"}, {"kind": "dcqcn", "cnp_us": 2.0, "increase_us": 1.0}]}
    queues = fabric(5, 3, ecn=(1.0, 4.0))
    agree(_of_several(case, routes, several, queues))
    agree(rebuilt(case, routes, {"kind": "dcqcn", "timeout_us": 50.0, "cnp_us": 1.0}, None, number))


def _of_several(case, routes, transport, queues):
    """The session of a case with flows of two transports in turn."""
    sprayings = make("transport", **transport).sprayings()
    kind = np.arange(len(case.flows.source)) % 2
    flows = Flows(case.flows.source, case.flows.destination, case.flows.bytes, case.flows.start, kind)
    fabric_of_case = replace(queues, mtu_bytes=case.fabric.mtu_bytes, link_us=case.fabric.link_us)
    return make_spray_session(
        case.topology, routes, tuple(sprayings.values()), fabric_of_case, flows, 3, names=tuple(sprayings)
    )


def test_rdma_shares_a_run_with_rdma_only():
    sprayings = make("transport", kind="several", of=[{"kind": "roce"}, {"kind": "nscc"}]).sprayings()
    one = np.ones(1, np.int64)
    topology = racks()
    routes = make("routing", kind="ecmp").build(topology)
    with pytest.raises(SpecError, match="with RDMA transports only"):
        make_spray_session(
            topology, routes, tuple(sprayings.values()), Fabric(trim=False), Flows(0 * one, one, 100 * one, 0 * one), 1
        )
