# SPDX-License-Identifier: Apache-2.0
"""Both engines against closed forms that nobody here wrote into them."""

from itertools import islice

import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests.scenarios import TIMES, build, carrying, line, one_way_ring, reference, scenario

WITHIN = 1.5
"""Half-widths of a 95 % interval within which a mean must lie: a right engine misses with 1 seed in 300."""

TICKS = {"compiled": 200_000, "reference": 60_000}
"""Of queues measured at length."""

MODES = [{"kind": "minimal"}, {"kind": "deflection"}]


def started(name, case, load, seed=1, ticks=1000):
    run = start(name, case, load, seed, log=True)
    run.advance(ticks)
    return run


def closed_form(hops, flits, times=TIMES):
    """INTERFACE.md, Time: creation to tail at the destination host."""
    through = (hops + 1) * (times["header"] + times["switch"]) + hops * times["link"]
    return times["injection"] + through + times["ejection"] + flits - 1


@pytest.mark.parametrize("routing", MODES, ids=lambda r: r["kind"])
def test_zero_load_latency(engine_name, routing):
    flits = 6
    # one packet at a time: a shift by k around a one-way ring takes k hops, each host on its own
    for by in (1, 3):
        ring = one_way_ring(5)
        case = scenario(
            ring, routing=routing, traffic={"kind": "shift", "by": by}, source=Source(flits=(flits,)), vcs=5
        )
        lone = carrying(case, rate=np.array([1.0, 0, 0, 0, 0]))
        row = measure(engine_name, lone, 0.001 * flits, 1, Measure(0, 30000, None)).row
        assert row["packets"] > 10
        assert row["hops_mean"] == by
        assert row["latency_p50"] == pytest.approx(closed_form(by, flits), rel=1 / 64)
        assert min(row["latency_mean"], row["network_latency_mean"]) == closed_form(by, flits)


BOOKSIM = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2}

DATELINES = [{"kind": "dateline", "choose": choose} for choose in ("on_entry", "at_crossing")]

NETWORKS = {
    "mesh 8x8": ({"kind": "mesh", "dims": [8, 8]}, {"kind": "dor"}),
    "torus 8x8": ({"kind": "torus", "dims": [8, 8]}, {"kind": "dor", "vc_policy": DATELINES[0]}),
    "torus 4x4x4": ({"kind": "torus", "dims": [4, 4, 4]}, {"kind": "dor", "vc_policy": DATELINES[1]}),
    "hypercube": ({"kind": "hypercube", "dim": 6}, {"kind": "dor"}),
    "fat tree": ({"kind": "fat_tree", "k": 4}, {"kind": "minimal"}),
    "kautz": ({"kind": "kautz", "degree": 3, "diameter": 3}, {"kind": "minimal"}),
    "dragonfly": ({"kind": "dragonfly", "a": 4, "p": 2, "h": 2}, {"kind": "dragonfly"}),
}
"""Topology and routing."""

DELAYS = {"1": (1, BOOKSIM), "5": (5, BOOKSIM), "33 slow": (33, TIMES), "5 no header": (5, {**TIMES, "header": 0})}
"""Flits of a packet, and ticks of each step; those of TIMES all differ, so that a mix-up shows."""

CASES = [("compiled", network) for network in NETWORKS]
CASES += [("reference", network) for network in ("fat tree", "kautz", "dragonfly")]


@pytest.mark.parametrize("mode", ["vct", "wormhole", "deflection"])
@pytest.mark.parametrize(("name", "network"), CASES)
@pytest.mark.parametrize(("flits", "times"), DELAYS.values(), ids=DELAYS)
def test_a_packet_alone_takes_the_closed_form_to_the_tick(name, network, mode, flits, times):
    kind, routing = NETWORKS[network]
    topology = make("topology", **kind).build()
    if mode == "deflection":
        routing = {"kind": "deflection"}
    case = scenario(topology, routing=routing, source=Source(flits=(flits,)), mode=mode, **times)
    lone = carrying(case, rate=np.eye(topology.hosts)[0])
    load, apart = 0.002 * flits, 200 + flits
    run = start(name, lone, load, 7, log=True)
    run.advance(40_000)
    log, distance = run.log(), distances(topology)[topology.host_switch[0], topology.host_switch]
    packets = islice(reference(lone, load, 7).draw_packets(0), len(log.identity))
    alone, before = 0, -apart
    for delivered, hops, (created, to, _) in zip(log.delivered, log.hops, packets, strict=True):
        if created - before >= apart:
            assert delivered - created == closed_form(hops, flits, times)
            # a dragonfly's routes over one global channel are not all shortest
            assert hops == distance[to] or (distance[to] < hops <= 3 and network == "dragonfly")
            alone += 1
        before = created
    assert alone > 30


def test_zero_load_bound_is_the_longest_route():
    case = scenario(line(4), source=Source(flits=(7,)))
    assert case.zero_load_latency == closed_form(3, 7)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_md1_waiting_time(engine_name, load):
    # One host sends to one host through two switches: its injection channel is an M/D/1 queue with
    # service L (discrete Bernoulli arrivals: Geo/D/1), all that follows is uncontended.
    flits = 8
    case = scenario(line(2), traffic={"kind": "shift", "by": 1}, source=Source(flits=(flits,)), vcs=4, buffer_flits=64)
    lone = carrying(case, rate=np.array([1.0, 0.0]))
    row = measure(engine_name, lone, load, 5, Measure(2000, TICKS[engine_name], None)).row
    p = load / flits
    # Geo/D/1 with service s and at most one arrival a slot (Takagi, Queueing Analysis 3): p s (s - 1) / 2 (1 - p s)
    wait = p * flits * (flits - 1) / (2 * (1 - load))
    assert abs(row["latency_mean"] - row["network_latency_mean"] - wait) < WITHIN * row["latency_ci95"]
    assert abs(row["latency_mean"] - closed_form(1, flits) - wait) < WITHIN * row["latency_ci95"]


def test_poisson_arrivals_give_md1(engine_name):
    flits = 8
    source = Source("poisson", (flits,))
    case = scenario(line(2), traffic={"kind": "shift", "by": 1}, source=source, vcs=4, buffer_flits=64)
    lone = carrying(case, rate=np.array([1.0, 0.0]))
    row = measure(engine_name, lone, 0.6, 5, Measure(2000, TICKS[engine_name], None)).row
    # M/D/1: rho s / 2 (1 - rho), less the mean of half a tick by which creation is early within its tick:
    # a packet created at 3.7 may be sent at tick 3, so waits are those of the process rounded down
    wait = 0.6 * flits / (2 * 0.4)
    assert abs(row["latency_mean"] - row["network_latency_mean"] - wait) < 0.5 + WITHIN * row["latency_ci95"]


def test_hops_are_distances_under_minimal_routing(engine_name):
    topology = build("kautz", hosts=2, degree=2, diameter=3)
    case = scenario(topology)
    snap = started(engine_name, case, 0.1, ticks=4000).snapshot()
    hops = (snap.delivered.pairs.table() * distances(topology)).sum() // 4
    assert snap.scalars[Scalar.HOPS] == hops


def test_throughput_of_a_shared_link(engine_name):
    # three hosts at each end of one link, all sending across it: it carries a flit a tick, a third each
    case = scenario(line(2, hosts=3), traffic={"kind": "shift", "by": 3}, vcs=4, buffer_flits=32)
    row = measure(engine_name, case, 0.9, 1, Measure(1000, 4000, None)).row
    assert row["saturated"]
    assert row["accepted"] == pytest.approx(1 / 3, rel=0.02)


def test_a_full_load_crosses_an_idle_network(engine_name):
    # hosts of one switch exchanging packets: no network channel in between, so nothing is lost at load 1
    pair = Topology.from_links("pair", 2, [(0, 1)]).with_hosts([2, 0])
    case = scenario(pair, traffic={"kind": "shift", "by": 1}, buffer_flits=64)
    row = measure(engine_name, case, 1.0, 1, Measure(1000, 8000, None)).row
    assert 0.97 < row["accepted"] <= 1.001  # random arrivals leave the channel idle now and then
    assert row["hops_mean"] == 0


def test_seeds_matter_and_repeat(engine_name):
    case = scenario(build("imase", hosts=1, n=8, degree=2))
    one, again, other = (started(engine_name, case, 0.4, seed).scalars()[Scalar.LATENCY] for seed in (1, 1, 2))
    assert one == again != other
