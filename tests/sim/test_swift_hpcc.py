# SPDX-License-Identifier: Apache-2.0
"""Swift and HPCC over lossless queues: their laws in closed form, and independent simulators."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.rdma import hpcc, swift
from flitlab.models.rules.rdma.layout import FIELDS, HOPS
from flitlab.models.transport.fabric import Fabric
from flitlab.models.transport.lossless import Lossless
from flitlab.sim.engines.transport.spray import PauseCount
from tests.sim.lossless_cases import (
    TAU,
    TAU_ACK,
    completed,
    drawn_queues,
    explicit_routes,
    fabric,
    racks,
    rebuilt,
    session,
    star,
)
from tests.sim.spray_cases import case_of_number
from tests.sim.test_dcqcn import flow_of
from tests.sim.test_lossless import PATHS_OF_HTSIM, TREE, agree

US = 12_500
"""Ticks of a microsecond."""


DEEP = Fabric(mtu_bytes=4000, header_bytes=0, control_bytes=40, trim=False, lossless=Lossless(10**6, 10**6))
"""Packets of 4,000 bytes and ACKs of 40, in queues that never pause."""

# Swift


def test_the_target_delay_falls_with_the_window_and_rises_with_the_path():
    d, law = flow_of({"kind": "swift"})
    d.flow.links = 6
    base = 20 * US + 6 * law.link_delay
    for window, scaled in ((0.5, 100.0), (0.05, 100.0), (100.0, 0.0), (400.0, 0.0)):
        d.flow.window = window
        assert swift.target_delay(d, 0) == pytest.approx(base + scaled * US)
    d.flow.window = 4.7  # whole packets count
    slope = 100 / (0.1**-0.5 - 0.1)
    assert swift.target_delay(d, 0) == pytest.approx(base + slope * (0.5 - 0.1) * US)


def test_a_window_widens_by_a_packet_per_window_and_narrows_once_per_round_trip():
    d, law = flow_of({"kind": "swift", "init_window": 10.0})
    swift.on_ack(d, 0, 2, 5 * US, 10 * US)
    assert d.flow.window[0] == pytest.approx(10.2)
    target, delay = swift.target_delay(d, 0), 200 * US
    swift.on_ack(d, 0, 1, delay, 300 * US)
    narrow = 10.2 * max(1 - 0.8 * (delay - target) / delay, 0.5)
    assert d.flow.window[0] == pytest.approx(narrow)
    assert d.flow.round_trip[0] == pytest.approx(0.875 * 5 * US + 0.125 * delay)
    swift.on_ack(d, 0, 1, delay, 301 * US)
    assert d.flow.window[0] == pytest.approx(narrow), "less than a round trip later"
    swift.on_loss(d, 0, 0, 900 * US)
    assert d.flow.window[0] == pytest.approx(narrow / 2)
    swift.on_loss(d, 0, swift.MOST_TIMEOUTS, 901 * US)
    assert d.flow.window[0] == law.least_window
    swift.on_ack(d, 0, 1, 5 * US, 950 * US)
    assert d.flow.window[0] == pytest.approx(law.least_window + 1)


def of_htsim(pairs, size=2_004_000, **keys):
    """Flows of 501 packets, as in htsim_swift."""
    return session(TREE, pairs, size, {"kind": "swift", **keys}, DEEP)


@pytest.mark.parametrize(("target", "published"), [(1, 164.646), (15, 302.003)])
def test_one_flow_of_swift_is_that_of_htsim(target, published):
    (found,), _ = completed(of_htsim([(0, target)]), "compiled")
    assert found == pytest.approx(published, abs=6e-4)
    if target == 1:  # no window limits it
        assert found == pytest.approx(502 * 0.32 + 2 + 2 * 1.0032, abs=1e-6)


def test_an_incast_of_swift_over_three_tiers_is_near_that_of_htsim():
    """There all paths count as one link, so that the flow with the shortest one gets twice the share of others."""
    topology = make("topology", kind="fat_tree", k=8).build()
    pairs = [(8 + 16 * pod, 0) for pod in range(8)]
    transport = {"kind": "swift", "base_us": 20 + 20 / 6.55, "link_us": 0.0}
    routes = explicit_routes(topology, PATHS_OF_HTSIM)
    found, _ = completed(session(topology, pairs, 2_004_000, transport, DEEP, routes), "compiled")
    assert found.mean() == pytest.approx(1206.0, rel=0.02)  # of three seeds
    assert found.max() == pytest.approx(1293.54, rel=0.01)
    assert found.argmin() == 0 and 640 < found[0] < 730  # 713, 664 and 656


def test_below_one_packet_a_window_is_a_pace():
    case = of_htsim([(0, 1)], 40_000, init_window=0.5, most_window=0.5, additive=0.001)
    (found,), _ = completed(case, "reference")
    trip, longest = 2 * 1.32 + 2 * 1.0032, 6 * 1.32 + 6 * 1.0032  # assumed before the first acknowledgement
    assert found == pytest.approx(2 * longest + 8 * 2 * trip + trip, abs=0.01)


# HPCC


def report(tick, sent, queued, link=3, ratio=65536):
    """Telemetry of a packet that passed one output."""
    row = np.zeros((1, 1 + FIELDS * HOPS), np.int64)
    hpcc.stamp(row, 0, link, ratio, sent, queued, tick)
    return row[0]


def test_an_output_reports_up_to_the_limit():
    row = np.zeros((2, 1 + FIELDS * HOPS), np.int64)
    for hop in range(HOPS + 2):
        hpcc.stamp(row, 1, hop, 65536, 10 * hop, hop, 100 + hop)
    assert row[1, 0] == HOPS and not row[0].any()
    assert row[1, 1 + FIELDS : 1 + 2 * FIELDS].tolist() == [1, 101, 10, 1, 65536]


def test_the_window_follows_utilisation_and_its_reference_once_per_round_trip():
    d, law = flow_of({"kind": "hpcc", "round_trip_us": 16.0, "expected_flows": 10})
    trip, first = 200_000.0, 200_000.0
    assert (law.round_trip, law.first_window, law.additive) == (trip, first, pytest.approx(0.005 * first))
    d.flow.cursor = 50
    hpcc.on_ack(d, 0, report(1000, 0, 0), 1)
    assert d.flow.window[0] == first and d.flow.reference_end[0] == 50
    hpcc.on_ack(d, 0, report(21_000, 20_000, 4000), 2)
    use = 0.9 * 1.0 + 0.1 * (20_000 / 20_000 + 0.0)  # the smaller of both queues counts
    window = first * 0.95 / use + law.additive
    assert d.flow.window[0] == pytest.approx(window) and d.flow.reference[0] == first
    assert d.flow.rate[0] == pytest.approx(window / trip)
    hpcc.on_ack(d, 0, report(41_000, 40_000, 9000), 3)
    use = 0.9 * use + 0.1 * (1 + 4000 / trip)
    assert d.flow.window[0] == pytest.approx(first * 0.95 / use + law.additive), "from the same reference"
    hpcc.on_ack(d, 0, report(241_000, 100_000, 0), 51)
    assert d.flow.utilisation[0] == pytest.approx(0.3)  # of the last round trip only
    assert d.flow.window[0] == first and d.flow.reference[0] == first and d.flow.stage[0] == 1


@pytest.mark.parametrize("flows", [1, 8])
def test_equal_flows_have_the_fixed_point_of_the_paper(flows):
    d, law = flow_of({"kind": "hpcc", "round_trip_us": 16.0, "expected_flows": 100})
    tick = sent = 0
    d.flow.cursor = 10**6
    for ack in range(1, 4000):
        tick, sent = tick + 200_000, sent + flows * int(d.flow.window[0])
        d.flow.reference_end = 0  # each acknowledgement is of a new round trip
        hpcc.on_ack(d, 0, report(tick, sent, 0), ack)
    use = 0.95 + flows * law.additive / law.first_window
    assert d.flow.utilisation[0] == pytest.approx(use, rel=2e-3)
    assert d.flow.window[0] == pytest.approx(use * law.first_window / flows, rel=2e-3)


@pytest.mark.parametrize(("target", "links"), [(1, 2), (15, 6)])
def test_one_flow_of_hpcc_has_the_rate_of_the_fixed_point_after_a_round_trip_at_line_rate(target, links):
    case = session(TREE, [(0, target)], transport={"kind": "hpcc", "round_trip_us": 14.0, "first_use": 0.95})
    (found,), _ = completed(case, "compiled")
    rate, trip = 0.95 + 0.05 / 10, links * (TAU + 1 + TAU_ACK + 1)
    expected = (500 + links - 1) * TAU / rate + links + links * (TAU_ACK + 1) - trip * (1 / rate - 1)
    assert found == pytest.approx(expected, abs=0.1)


HTSIM = {
    "rack of 7": ([(sender, 0) for sender in range(1, 8)], 1210.491, 1256.48, 7),
    "victim": ([(10, 8), (11, 8), (12, 8), (0, 8), (1, 9)], 608.949, 739.089, 11),
    "bidirectional": (
        [(host, 8 + host) for host in range(4)] + [(8 + host, host) for host in range(4)], 716.533, 747.132, 22,
    ),
}  # fmt: skip
"""Flows, mean and longest completion time in microseconds, and PAUSE frames of htsim_hpcc, repaired to the paper."""


@pytest.mark.parametrize("name", HTSIM)
def test_flows_of_hpcc_in_two_racks_are_near_those_of_htsim(name):
    """There switches report at the end of a transmission, which favours fast flows."""
    pairs, mean, longest, pauses = HTSIM[name]
    transport = {"kind": "hpcc", "round_trip_us": 14.0, "first_use": 0.95, "least_mbps": 0.0}
    found, counters = completed(session(racks(), pairs, transport=transport, queues=fabric(mark_own=True)), "compiled")
    assert found.mean() == pytest.approx(mean, rel=0.015)
    assert found.max() == pytest.approx(longest, rel=0.03)
    assert counters.pause[:, PauseCount.FRAMES].sum() == pytest.approx(pauses, rel=0.2)


@pytest.mark.parametrize(
    ("senders", "size", "mean", "longest", "tolerance"),
    [(1, 2_000_000, 187.454, 187.454, 0.001), (8, 2_000_000, 1375.97, 1487.246, 0.01),
     (64, 256_000, 1397.27, 1504.568, 0.005)],
)  # fmt: skip
def test_an_incast_of_hpcc_at_one_switch_is_that_of_its_authors(senders, size, mean, longest, tolerance):
    """Of 64 senders each has a window of less than a packet, so that the pace decides, which every ACK changes."""
    queues = Fabric(
        mtu_bytes=1090, header_bytes=90, control_bytes=60, trim=False, lossless=Lossless(10**6, 10**6, release="start")
    )
    transport = {"kind": "hpcc", "round_trip_us": 4.16, "stages": 0, "expected_flows": 100}
    found, counters = completed(star(senders, transport, queues, size, 65 if senders > 16 else 17), "compiled")
    assert found.mean() == pytest.approx(mean, rel=tolerance)
    assert found.max() == pytest.approx(longest, rel=min(tolerance, 0.005))
    assert not counters.pause[:, PauseCount.FRAMES].any()


def test_an_acknowledgement_moves_the_packet_that_waits_for_its_turn():
    d, _ = flow_of({"kind": "hpcc", "round_trip_us": 10.0})
    flow = d.flow[0]
    flow.sent_at, flow.sent_size, flow.next_at = 1000, 4000, 900_000
    for tick, queued in ((2000, 10**6), (2000 + 10 * US, 10**6)):
        hpcc.on_ack(d, 0, report(tick, 0, queued), 1)
    assert flow.next_at == 1000 + int(np.ceil(4000 / flow.rate)) < 900_000


def test_an_incast_is_faster_with_less_control():
    """RoCE < Swift < HPCC < DCQCN, as in htsim."""
    pairs = [(sender, 0) for sender in range(1, 8)]
    ten = 10 * 4000 / 4064
    htsim_dcqcn = {"kind": "dcqcn", "additive_mbps": 5000.0, "hyper_mbps": 10_000.0, "stages": 6, "byte_counter": 0}
    mean = [
        completed(session(racks(), pairs, transport={"kind": "roce"}), "compiled")[0].mean(),
        completed(session(racks(), pairs, transport={"kind": "swift"}, queues=fabric(10**6, 10**6)), "compiled")[
            0
        ].mean(),
        completed(session(racks(), pairs, transport={"kind": "hpcc"}), "compiled")[0].mean(),
        completed(
            session(racks(), pairs, transport=htsim_dcqcn, queues=fabric(ecn=(ten, ten), mark_own=True)), "compiled"
        )[0].mean(),
    ]
    assert mean == sorted(mean)


def test_control_avoids_pauses():
    pairs = [(sender, 0) for sender in range(1, 8)]
    for kind in ("swift", "hpcc"):
        _, counters = completed(session(racks(), pairs, transport={"kind": kind}), "compiled")
        assert counters.pause[:, PauseCount.FRAMES].sum() < 169 / 4


@pytest.mark.long
@pytest.mark.parametrize("number", range(60))
def test_engines_agree_on_swift_and_hpcc(number):
    case, _, routes = case_of_number(number)
    rng = Random(number)
    transport = {"kind": "hpcc", "expected_flows": 2, "stages": rng.choice([0, 1, 5])}
    if number % 2:
        transport = {
            "kind": "swift", "base_us": rng.choice([0.1, 2.0, 20.0]), "scaling_us": rng.choice([0.0, 10.0]),
            "init_window": rng.choice([0.2, 1.0, 15.0]), "timeout_us": rng.choice([10.0, 1000.0]), "link_us": 0.5,
        }  # fmt: skip
    agree(rebuilt(case, routes, transport, drawn_queues(rng), number))


def test_keys_that_contradict_each_other_are_rejected():
    with pytest.raises(SpecError, match="between least_window and most_window"):
        make("transport", kind="swift", init_window=5.0, most_window=2.0).spraying()
    with pytest.raises(SpecError, match="must be below scaling_most"):
        make("transport", kind="swift", scaling_least=100.0).spraying()
    with pytest.raises(SpecError, match="whose outputs report"):
        session(TREE, [(0, 1)], transport={"kind": "hpcc"}, queues=replace(fabric(), lossless=None))
