# SPDX-License-Identifier: Apache-2.0
"""Lossless queues whose input ports share the buffer of a switch, against the ns-3 of HPCC's authors."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.lossless import admits, charge_shared, release_shared
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric
from flitlab.models.transport.lossless import Lossless, Storm
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount, PauseCount
from tests import long_after
from tests.sim.lossless_cases import completed, fabric, ns3_fabric, racks, rebuilt, session, star
from tests.sim.spray_cases import case_of_number
from tests.sim.test_lossless import TREE, agree

MIB = 1 << 20

ROCE = {"kind": "roce"}


def state(**keys):
    """Ports and buffers of two switches with eight hosts each, joined by a third one."""
    case = session(racks(), [(0, 8)], queues=ns3_fabric(1048, 83, Lossless(**keys)))
    return case, *case.ports.state()


def test_a_port_uses_its_reserve_then_the_shared_part_then_headroom():
    case, ports, buffers = state(buffer_bytes=400_000, headroom_bytes=2500)
    port = 4  # from the first host
    own = 9 * (4096 + 2500)
    assert buffers.size[0] == 400_000 - own and case.ports.shared.reserve == 4096
    limit = (400_000 - own) >> 3
    sent = 0
    while not charge_shared(ports, buffers, port, 1000):
        sent += 1000
        assert buffers.used[0] == max(0, sent - 4096)
    assert ports.headroom[port] == 0 and ports.charged[port] == sent + 1000
    assert ports.charged[port] - 4096 >= (buffers.size[0] - buffers.used[0]) >> 3, "PAUSE at the threshold"
    assert 8 * limit / 9 - 2000 < ports.charged[port] - 4096 < 8 * limit / 9 + 2000, "of what is free with it"
    used = buffers.used[0]
    for packet in range(2):
        assert admits(ports, buffers, port, 1000) and not charge_shared(ports, buffers, port, 1000)
        assert ports.headroom[port] == 1000 * (packet + 1) and buffers.used[0] == used
    assert not admits(ports, buffers, port, 1000)
    released = 0
    while not release_shared(ports, buffers, port, 1000):
        released += 1000
    assert ports.headroom[port] == 0
    use = ports.charged[port] - 4096
    assert use + 3072 <= (buffers.size[0] - buffers.used[0]) >> 3 < use + 1000 + 3072 + 125
    while ports.charged[port] > 0:
        release_shared(ports, buffers, port, min(1000, int(ports.charged[port])))
    assert buffers.used[0] == 0


def test_headroom_is_what_comes_in_three_delays_and_faster_ports_have_a_larger_share():
    topology = Topology.from_links("racks", 2, np.array([(0, 1)])).with_hosts(np.array([8, 8]))
    topology = replace(topology, capacity=np.full(2, 4.0))
    case = session(topology, [(0, 8)], queues=ns3_fabric(1048, 83, Lossless(buffer_bytes=2 * MIB)))
    shared = case.ports.shared
    assert shared.shift[:3].tolist() == [1, 1, 3]
    rate = 100e9 * 83.84 / 83 / 8 * 3e-6
    assert shared.headroom[2] == pytest.approx(rate, rel=1e-3)
    assert shared.headroom[0] == pytest.approx(4 * rate, rel=1e-3)


def ns3(buffer):
    """Queues of the ns-3 simulator with a buffer of a size in MiB."""
    return ns3_fabric(1048, 83, Lossless(buffer_bytes=buffer * MIB, release="start"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("senders", "size", "buffer", "mean", "longest", "pauses"),
    [(1, 2_000_000, 32, 170.091, 170.091, 0), (8, 2_000_000, 2, 1329.1, 1332.1, 416),
     (8, 2_000_000, 32, 1331.8, 1332.1, 0), (64, 256_000, 8, 1339.3, 1364.0, 405)],
)  # fmt: skip
def test_an_incast_at_one_switch_is_that_of_ns3(senders, size, buffer, mean, longest, pauses):
    found, counters = completed(star(senders, ROCE, ns3(buffer), size, 65 if senders > 16 else 17), "compiled")
    assert found.mean() == pytest.approx(mean, rel=0.007)
    assert found.max() == pytest.approx(longest, rel=1e-4)
    assert counters.pause[:, PauseCount.FRAMES].sum() == pytest.approx(pauses, rel=0.03)
    assert counters.link[:, LinkCount.DROPS].sum() == 0


@pytest.mark.long
def test_the_victim_is_that_of_ns3():
    topology = Topology.from_links("racks", 2, np.array([(0, 1)])).with_hosts(np.array([8, 8]))
    pairs = [(10, 8), (11, 8), (12, 8), (0, 8), (1, 9)]
    found, counters = completed(session(topology, pairs, queues=ns3(2)), "compiled")
    assert found[4] == pytest.approx(660.1, rel=0.003) and found.max() == pytest.approx(669.1, rel=1e-4)
    assert counters.pause[:, PauseCount.FRAMES].sum() == pytest.approx(242, rel=0.03)


@pytest.mark.long
def test_congestion_control_avoids_pauses():
    hpcc = {"kind": "hpcc", "round_trip_us": 4.16, "stages": 0, "expected_flows": 100}
    for transport in (hpcc, {"kind": "roce", "window_bytes": 52_000}):
        _, counters = completed(star(8, transport, ns3(2)), "compiled")
        assert not counters.pause[:, PauseCount.FRAMES].any()


@pytest.mark.long
@pytest.mark.parametrize(
    ("senders", "size", "buffer", "mean", "pauses"),
    [(8, 2_000_000, 2, (1704, 162), (276, 43)), (8, 2_000_000, 32, (3848, 73), (0, 0)),
     (16, 2_000_000, 32, (4407, 581), (0, 0)), (64, 256_000, 8, (1958, 17), (95, 4))],
)  # fmt: skip
def test_dcqcn_of_ns3_has_the_distribution_of_ns3(senders, size, buffer, mean, pauses):
    """Marks are random: means and standard deviations of 40 runs of ns-3 with a clock of picoseconds."""
    topology = make("topology", kind="mesh", dims=[1], hosts_per_switch=65 if senders > 16 else 17).build()
    queues = Fabric(
        mtu_bytes=1048, header_bytes=48, control_bytes=60, trim=False,
        lossless=Lossless(buffer_bytes=buffer * MIB, release="start"),
    )  # fmt: skip
    pairs, transport = [(sender, 0) for sender in range(1, senders + 1)], {"kind": "dcqcn", "profile": "ns3"}
    means, frames, seeds = [], [], range(1, 17)
    for seed in seeds:
        found, counters = completed(session(topology, pairs, size, transport, queues, seed=seed), "compiled", 0.1)
        means.append(found.mean())
        frames.append(counters.pause[:, PauseCount.FRAMES].sum())
    for found, (expected, deviation) in ((means, mean), (frames, pauses)):
        error = deviation * (1 / 40 + 1 / len(seeds)) ** 0.5
        assert abs(np.mean(found) - expected) <= 3 * error + 0.01 * expected


@pytest.mark.parametrize("engine", [pytest.param("compiled", marks=pytest.mark.long), "reference"])
def test_packets_beyond_a_small_headroom_are_dropped_and_repaired(engine):
    queues = ns3_fabric(1048, 83, Lossless(buffer_bytes=120_000, headroom_bytes=2000))
    _, counters = completed(star(3, {"kind": "roce", "timeout_us": 100.0}, queues, 200_000), engine)
    assert counters.link[:, LinkCount.DROPS].sum() > 0 and counters.flow[:, FlowCount.RESENT].sum() > 0


@pytest.mark.parametrize("number", long_after(0, range(100)))
def test_engines_agree_on_shared_buffers(number):
    case, _, routes = case_of_number(number)
    rng, mtu = Random(number), case.fabric.mtu_bytes
    ports = int(
        (case.topology.out_degree + np.bincount(case.topology.host_switch, minlength=case.topology.switches)).max()
    )
    headroom, reserve = rng.choice([0, mtu, 20_000, 300_000]), rng.choice([0, 4096])
    lossless = Lossless(
        release=rng.choice(["start", "end"]), ack_class=rng.choice(["data", "strict"]), headroom_bytes=headroom,
        reserve_bytes=reserve,
        alpha_shift=rng.choice([0, 1, 3]), buffer_bytes=ports * (headroom + reserve) + rng.choice([2, 20, 500]) * mtu,
    )  # fmt: skip
    kinds = [{"kind": "roce"}, {"kind": "dcqcn", "cnp_us": 1.0}, {"kind": "timely"}, {"kind": "nscc", "paths": 8}]
    transport = kinds[number % (3 if number < 12 else 4)]  # another kernel for nscc is compiled in the long run only
    if transport["kind"] != "nscc":
        transport["timeout_us"] = rng.choice([20.0, 100.0])
    agree(rebuilt(case, routes, transport, lossless, number))


@pytest.mark.parametrize(
    ("keys", "key", "wrong"),
    [
        ({"buffer_bytes": MIB, "xoff": 3}, "xoff", "are dynamic"),
        ({"headroom_bytes": 3}, "headroom_bytes", "needs buffer_bytes"),
    ],
)
def test_keys_that_do_not_apply_are_rejected(keys, key, wrong):
    (error,) = make("switching", mode="spray", queue="lossless", pfc=keys).errors(TREE, None, None)
    assert wrong in str(error) and error.key == f"switching.pfc.{key}"


def test_a_buffer_below_the_reserves_of_its_ports_is_rejected():
    with pytest.raises(SpecError, match="ports of a switch take 7") as error:
        star(2, ROCE, ns3_fabric(1048, 83, Lossless(buffer_bytes=100_000)))
    assert error.value.key == "pfc.buffer_bytes"


def test_plain_keys_are_those_that_apply():
    assert set(Lossless().plain()) == {"xoff", "xon", "mark_probability", "mark_own"}
    lossless = Lossless(buffer_bytes=MIB, release="start")
    shared = {key: value for key, value in lossless.plain().items() if not key.startswith("mark_")}
    spec = make("switching", mode="spray", queue="lossless", pfc=shared)
    assert spec.fabric.lossless == lossless and not list(spec.errors(TREE, None, None))


@pytest.mark.parametrize(("headroom", "drops"), [(8 * 4064, False), (8 * 4064 - 1, True)])
def test_headroom_for_both_delays_and_a_packet_in_service_is_just_enough(headroom, drops):
    """Two delays of 12,500 bytes hold 7 packets of 4,064 bytes; nothing leaves, as a storm pauses the receiver."""
    storm = Storm(2, 5.0, until_us=100.0)
    queues = fabric(buffer_bytes=2 << 20, headroom_bytes=headroom, pfc_storm=storm)
    pair = Topology.from_links("pair", 2, np.array([(0, 1)])).with_hosts(np.array([2, 2]))
    case = session(pair, [(0, 2)], 1_000_000, queues=queues)
    assert bool(list(case.cautions())) == drops
    _, counters = completed(case, "reference")
    assert bool(counters.link[:, LinkCount.DROPS].sum()) == drops
