# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching against closed forms, cases traced by hand, bounds, and curves of another simulator."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.models.rules.allocate import first_after
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import ROOT
from tests.scenarios import TIMES, build, line, one_way_ring, scenario

# One delay in each stage is another, so that a mix-up shows.
DELAYS = {"header": 3, "switch": 2, "link": 4, "injection": 5, "ejection": 6, "credit": 1}
# A router whose stages are those of BookSim2: 4 H + 6 + L - 1 cycles at zero load.
BOOKSIM = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2}


def wormhole(topology, target=None, **keys):
    """A scenario; ``target``: the host that each host sends to, -1 for none."""
    case = scenario(topology, mode="wormhole", **keys)
    if target is None:
        return case
    traffic = fixed_traffic("fixed", topology, np.array(target))
    return replace(case, instance=replace(case.instance, traffic=traffic))


def play(name, case, ticks=1000, load=0.5, seed=1):
    run = start(name, case, load, seed, log=True)
    run.advance(ticks)
    return run


@pytest.fixture
def script(monkeypatch):
    """Plays packets by hand, {host: [(tick, destination, flits), ...]}, by the reference: delivery ticks by host."""
    from flitlab.sim.engines.reference.network import Network

    def start(case, packets, ticks=500):
        monkeypatch.setattr(Network, "draw_packets", lambda self, host: iter(packets.get(host, [])))
        log = play("reference", case, ticks).log()
        delivered: dict[int, list[int]] = {}
        for identity, tick in zip(log.identity.tolist(), log.delivered.tolist(), strict=True):
            delivered.setdefault(identity % case.topology.hosts, []).append(tick)
        return delivered

    return start


@given(st.integers(1, 2**64 - 1), st.integers(0, 63))
@settings(deadline=None)
def test_rotating_priority(mask, last):
    members = [place for place in range(64) if mask >> place & 1]
    assert first_after(np.uint64(mask), np.uint64(last)) == min(members, key=lambda m: (m - last - 1) % 64)


@pytest.mark.parametrize("buffer_flits", [1, 2, 5, 8, 9, 20])
def test_small_buffers_slow_a_packet_down(engine_name, buffer_flits):
    # A slot comes back credit ticks after its flit's grant, and the next flit needs switch + link to use it:
    # a buffer of B flits passes B flits in every 2 + 4 + 1 ticks, at most one a tick.
    flits, turn = 30, DELAYS["switch"] + DELAYS["link"] + DELAYS["credit"]
    case = wormhole(
        line(3), [2, -1, -1], vcs=2, source=Source(flits=(flits,)), buffer_flits=buffer_flits, **{**DELAYS, "header": 0}
    )
    run = play(engine_name, case, 6000, load=0.02)
    total = run.snapshot().scalars
    alone = 5 + 3 * 2 + 2 * 4 + 6
    rounds, rest = divmod(flits - 1, buffer_flits)
    last = rounds * max(turn, buffer_flits) + rest
    assert total[Scalar.DELIVERED_PACKETS] >= 2
    assert total[Scalar.NETWORK_LATENCY] == (alone + last) * total[Scalar.DELIVERED_PACKETS]


def test_a_tail_gives_its_vc_back_for_the_tick_after_its_grant(script):
    # Two packets of 1 flit want the only VC to host 2. They arrive at 2 and 3. The first gets the VC at 2 and is
    # granted at 3, when the second asks; that gets it at 4 and is granted at 5. A host is 3 ticks from a grant.
    net = Topology.from_arcs("pair", 2, [(0, 1), (1, 0)]).with_hosts([3, 1])
    case = wormhole(net, vcs=1, source=Source(flits=(1,)), buffer_flits=8, shared_input=True, **BOOKSIM)
    assert script(case, {0: [(0, 2, 1)], 1: [(1, 2, 1)]}) == {0: [3 + 3], 1: [5 + 3]}
    # Two packets of 3 flits want the only VC from switch 0 to 1. Their flits arrive at 2 3 4 and 3 4 5. The first
    # gets the VC at 2 and is granted at 3 4 5. The second gets it at 6 and is granted at 7 8 9. At switch 1, 3 ticks
    # later: the first arrives at 6 7 8 and is granted at 7 8 9. The second's flits arrive at 10 11 12 and are granted
    # at 11 12 13.
    net = Topology.from_arcs("pair", 2, [(0, 1), (1, 0)]).with_hosts([2, 2])
    case = wormhole(net, vcs=1, source=Source(flits=(3,)), buffer_flits=8, shared_input=True, **BOOKSIM)
    delivered = script(case, {0: [(0, 2, 3)], 1: [(1, 3, 3)]})
    assert delivered == {0: [9 + 3], 1: [13 + 3]}


@pytest.mark.parametrize("shared_input", [True, False])
def test_two_vcs_share_a_link_flit_by_flit(script, shared_input):
    # Two packets of 5 flits with a VC each. Flits arrive at 2 .. 6 and 3 .. 7; the output takes turns:
    # 3 5 7 9 11 and 4 6 8 10 12. They arrive at switch 1 at 6 8 10 12 14 and 7 9 11 13 15, by one input, which
    # reads a flit a tick: the first's at 7, then, both packets being there at 8, in turn: 9 11 13 15 and 8 10 12 14 16.
    # If both its VCs can be read at once, nobody waits: 7 8 10 12 14 and 8 9 11 13 15.
    net = Topology.from_arcs("pair", 2, [(0, 1), (1, 0)]).with_hosts([2, 2])
    case = wormhole(net, vcs=2, source=Source(flits=(5,)), buffer_flits=16, shared_input=shared_input, **BOOKSIM)
    delivered = script(case, {0: [(0, 2, 5)], 1: [(1, 3, 5)]})
    assert delivered == ({0: [15 + 3], 1: [16 + 3]} if shared_input else {0: [14 + 3], 1: [15 + 3]})


@pytest.mark.long_on("reference")
def test_injection_channel_is_a_queue(engine_name):
    # one host sends to one: Geo/D/1 with service L (Takagi, Queueing Analysis 3): p s (s - 1) / 2 (1 - p s)
    flits, load = 8, 0.6
    case = wormhole(line(2), [1, -1], source=Source(flits=(flits,)), vcs=4, buffer_flits=64, **TIMES)
    row = measure(
        engine_name, case, load, 5, Measure(2000, 60_000 if engine_name == "reference" else 200_000, None)
    ).row
    wait = load * (flits - 1) / (2 * (1 - load))
    assert abs(row["latency_mean"] - row["network_latency_mean"] - wait) < 2 * row["latency_ci95"]


def test_more_iterations_match_more():
    accepted = []
    for iterations in (1, 4):
        case = wormhole(
            build("hypercube", dim=4), routing={"kind": "dor"}, vcs=4, source=Source(flits=(1,)), buffer_flits=8,
            iterations=iterations, shared_input=True, **BOOKSIM,
        )  # fmt: skip
        accepted.append(measure("compiled", case, 1.0, 1, Measure(500, 5000, None)).row["accepted"])
    assert accepted[0] + 0.01 < accepted[1] < 1.0


@pytest.mark.long_on("reference")
def test_throughput_stays_below_its_ceilings(engine_name):
    case = wormhole(build("torus", dims=[4, 4]), routing={"kind": "dor", "vc_policy": "dateline"}, buffer_flits=8)
    row = measure(engine_name, case, 0.9, 1, Measure(500, 2000, None)).row
    (bound,) = ceilings(case.instance, [ceiling_spec("mcf")])
    assert 0.3 < row["accepted"] <= 1.02 * bound.upper


def test_deadlock_is_found(engine_name):
    # four packets go half way round a one-way ring with one VC of one flit: each holds what the next one needs
    case = wormhole(
        one_way_ring(4), [2, 3, 0, 1], vcs=1, source=Source(flits=(6,)), buffer_flits=1, allow_deadlock=True
    )
    run = play(engine_name, case, 1500, 0.9, seed=2)
    assert run.deadlocked()
    before = run.scalars()[Scalar.DELIVERED_FLITS]
    run.advance(2500)
    assert run.scalars()[Scalar.DELIVERED_FLITS] == before


@pytest.mark.parametrize("policy", ["hop", "dateline"])
def test_certified_runs_do_not_deadlock(engine_name, policy):
    case = wormhole(
        build("torus", dims=[5, 4]),
        routing={"kind": "dor", "vc_policy": policy},
        buffer_flits=1,
        source=Source(flits=(5,)),
    )
    run = play(engine_name, case, 1, 1.0)
    for tick in range(100, 900, 200):
        run.advance(tick)
        assert not run.deadlocked()
    assert run.scalars()[Scalar.DELIVERED_PACKETS] > 100


def test_large_switches_work(engine_name):
    # 12 hosts x 8 VCs and more at one switch: input VCs do not fit into one word
    case = wormhole(line(2, hosts=12), vcs=8, source=Source(flits=(2,)), buffer_flits=4, shared_input=True)
    total = play(engine_name, case, 600, 0.1).scalars()
    assert total[Scalar.DELIVERED_PACKETS] > 0.9 * 600 * 24 * 0.1 / 2


@pytest.mark.parametrize(
    ("name", "kind", "parameters", "loads"),
    [
        ("mesh8x8_dor_uniform_1flit", "mesh", {"dims": [8, 8]}, [0.2, 0.35]),
        ("hypercube64_dor_uniform_1flit", "hypercube", {"dim": 6}, [0.7, 0.8]),
    ],
)
def test_curves_of_another_simulator(name, kind, parameters, loads):
    curves = ROOT / "benchmarks" / "booksim2_curves.json"
    points = json.loads(curves.read_text())["configs"][name]["points"]
    case = wormhole(
        build(kind, **parameters), routing={"kind": "dor"}, traffic={"kind": "uniform", "include_self": True}, vcs=4,
        buffer_flits=8, shared_input=True, source=Source(flits=(1,)), **BOOKSIM,
    )  # fmt: skip
    for point in points:
        if point["offered"] in loads:
            row = measure("compiled", case, point["offered"], 1, Measure(2000, 10_000, None)).row
            own = row["latency_mean"] - 4 * (row["hops_mean"] - point["hops"] + 1)  # each run has its own distances
            assert own == pytest.approx(point["packet_latency"], rel=0.01)


def test_many_inputs_contend_as_in_another_simulator():
    # 4-ary 3-tree: level l joins words of two digits that differ in digit l. BookSim2 has 28.86 ticks at this load.
    links = [
        (16 * level + word, 16 * (level + 1) + word + (digit - word // 4**level % 4) * 4**level)
        for level in range(2)
        for word in range(16)
        for digit in range(4)
    ]
    tree = Topology.from_links("tree", 48, links).with_hosts([4] * 16 + [0] * 32)
    case = wormhole(
        tree, routing={"kind": "minimal"}, traffic={"kind": "uniform", "include_self": True}, vcs=4, buffer_flits=8,
        shared_input=True, source=Source(flits=(1,)), **BOOKSIM,
    )  # fmt: skip
    row = measure("compiled", case, 0.6, 1, Measure(2000, 10_000, None)).row
    assert row["latency_mean"] == pytest.approx(28.86, rel=0.01)
