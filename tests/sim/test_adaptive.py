# SPDX-License-Identifier: Apache-2.0
"""Adaptive routing: ties are drawn, and it is not slower than a random choice."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.rules.adaptive import channel_cost, drawn_channel, drawn_tie, keeps_drawn, waits_for_drawn
from flitlab.models.rules.bits import port_set
from flitlab.models.rules.route import route_word
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.reference import vct
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_after
from tests.scenarios import TIMES, ideal, scenario
from tests.sim.output_queues import at_drawn, at_random, latencies

FLITS = 8
ONE_TICK = dict.fromkeys(TIMES, 1)
MODES = {
    "ideal": {},
    "vct": {"mode": "vct", "buffer_flits": 32, "shared_input": True},
    "wormhole": {"mode": "wormhole", "buffer_flits": 32, "shared_input": True},
}


def case(topology, mode: str, select: str, traffic: dict, flits: int = FLITS, **keys):
    """A scenario of minimal routing with channels that are chosen at random or adaptively."""
    made = scenario(
        topology, routing={"kind": "minimal", "select": select}, traffic=traffic, source=Source(flits=(flits,)),
        **{**ONE_TICK, **MODES[mode], **keys},
    )  # fmt: skip
    return made if MODES[mode] else ideal(made)


def built(kind: str, **keys) -> Topology:
    """A topology with its own hosts."""
    return make("topology", kind=kind, **keys).build()


def with_delays(topology: Topology) -> Topology:
    """The same network with links that are up to 40 ticks longer than others."""
    ends = np.sort(np.stack([topology.src, topology.dst]), axis=0)
    return replace(topology, delay=np.array([0, 0, 10, 40])[(7 * ends[0] + 3 * ends[1]) % 4])


def extended_generalized_fat_tree(children: list[int], parents: list[int]) -> Topology:
    """XGFT(h; children; parents), whose level 0 are the hosts (Öhring et al., IPPS 1995).

    A switch of a level has a digit for each level: of ``parents`` up to its own, of ``children`` above.
    """
    levels = range(1, len(children) + 1)
    names = [(level, digits) for level in levels for digits in product(*map(range, parents[:level] + children[level:]))]
    number = {name: i for i, name in enumerate(names)}
    links = [
        (i, number[level + 1, (*digits[:level], parent, *digits[level + 1 :])])
        for (level, digits), i in number.items()
        if level < len(children)
        for parent in range(parents[level])
    ]
    hosts = [children[0] if level == 1 else 0 for level, _ in names]
    return Topology.from_links("xgft", len(names), links).with_hosts(hosts)


TREES = {  # and the largest load that the narrowest tier carries
    "fat tree, 8 ports": (lambda: built("fat_tree", k=8), 1.0),
    "fat tree, failed links": (lambda: built("fat_tree", k=8, failures={"links": 4}), 0.75),
    "XGFT": (lambda: extended_generalized_fat_tree([4, 4, 4], [1, 2, 2]), 0.25),
    "leaf-spine": (lambda: built("leaf_spine", leaves=8, spines=4, hosts_per_leaf=4), 1.0),
    "leaf-spine, two spines": (lambda: built("leaf_spine", leaves=16, spines=2, hosts_per_leaf=2), 1.0),
    "leaf-spine, 3 : 1": (lambda: built("leaf_spine", leaves=8, spines=4, hosts_per_leaf=12), 0.4),
    "VL2": (lambda: built("vl2", da=8, di=8, servers_per_tor=2, line_speed=1), 1.0),
    "Dragonfly+": (lambda: built("dragonfly_plus", spines=3, groups=4), 0.5),
    "leaf-spine, unequal links": (
        lambda: with_delays(built("leaf_spine", leaves=8, spines=4, hosts_per_leaf=4)), 1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=pytest.mark.long) if mode != "ideal" else mode for mode in MODES]
)
@pytest.mark.parametrize("name", TREES)
def test_adaptive_is_not_slower_than_random_on_trees(name, mode):
    make_topology, scale = TREES[name]
    topology = make_topology()
    random, adaptive = (
        measure(
            "compiled", case(topology, mode, select, {"kind": "permutation", "seed": 3}), 0.6 * scale, 1,
            Measure(2000, 8000, None),
        ).row
        for select in ("random", "adaptive")
    )  # fmt: skip
    for column in ("latency_mean", "latency_p999"):
        assert adaptive[column] <= random[column], column


@pytest.mark.parametrize("mode", MODES)
def test_two_flows_over_two_spines_carry_what_random_carries(mode):
    """Both uplinks are idle at nearly every decision: a tie. At the lowest they would share a channel, full at 0.5."""
    topology = built("leaf_spine", leaves=3, spines=2, hosts_per_leaf=2)
    flows = {"kind": "matrix", "text": "0,4,1\n2,5,1\n"}
    random, adaptive = (
        measure("compiled", case(topology, mode, select, flows), 0.9, 1, Measure(5000, 20_000, None)).row["accepted"]
        for select in ("random", "adaptive")
    )
    assert adaptive > 0.995 * random and random * topology.hosts / 2 > 0.87


@pytest.mark.parametrize("select", long_after(1, ["adaptive", "random"]))
def test_ideal_switches_have_the_latencies_of_an_independent_simulation(select):
    topology, load, how = built("fat_tree", k=8), 0.6, Measure(1000, 8000, None)
    delays = {"header": 0, "injection": 2}  # so that a packet is read two ticks after its start, wherever it comes from
    made = case(topology, "ideal", select, {"kind": "permutation", "seed": 3}, **delays)
    row = measure("compiled", made, load, 2, how).row
    choose = {"random": at_random, "adaptive": at_drawn}[select]
    found = latencies(8, made.instance.traffic.fixed.tolist(), load, FLITS, 5000, 1000, 5, choose)
    assert row["latency_mean"] == pytest.approx(np.mean(found), rel=0.03)
    assert row["latency_p999"] == pytest.approx(np.quantile(found, 0.999), rel=0.15)


@pytest.mark.parametrize("mode", ["ideal", "vct"])
def test_flows_do_not_keep_to_one_channel_each(mode):
    """A greedy choice by exact counts does, as packets that follow one another find their predecessor's channel idle.

    Then two flows meet in the same spine for long, and the network saturates before that with random channels.
    """
    topology = built("leaf_spine", leaves=16, spines=2, hosts_per_leaf=2)
    accepted = {
        select: measure(
            "compiled", case(topology, mode, select, {"kind": "permutation", "seed": 3}), 0.85, 1,
            Measure(5000, 20_000, None),
        ).row["accepted"]
        for select in ("random", "adaptive")
    }  # fmt: skip
    assert accepted["adaptive"] > 0.97 * accepted["random"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("routing", [{"kind": "minimal", "select": "adaptive"}, {"kind": "polarized"}])
def test_a_tie_goes_to_all_channels_alike(engine_name, mode, routing):
    """Of packets that are alone in the network."""
    if routing["kind"] == "polarized" and mode == "wormhole":
        pytest.skip("polarized routing serves vct and ideal")
    topology = built("leaf_spine", leaves=2, spines=4, hosts_per_leaf=1)
    made = scenario(
        topology, routing=routing, traffic={"kind": "matrix", "text": "0,1,1\n"}, source=Source(flits=(2,)),
        **{**ONE_TICK, **MODES[mode]},
    )  # fmt: skip
    run = start(engine_name, made if MODES[mode] else ideal(made), 0.02, 1)
    run.advance(20_000)
    up = run.snapshot().channel_flits[topology.src == 0] / 2
    assert up.sum() > 150 and (np.abs(up / up.sum() - 0.25) < 4 * np.sqrt(0.1875 / up.sum())).all()


def test_deflected_packets_take_all_free_outputs_alike(engine_name):
    """Three hosts send to one that takes half of it: what its switch cannot hold leaves by any channel."""
    topology = built("hyperx", dims=[6]).with_hosts([1, 1, 1, 1, 0, 0])
    made = scenario(
        topology, routing={"kind": "deflection"}, traffic={"kind": "matrix", "text": "1,0,1\n2,0,1\n3,0,1\n"},
        source=Source(flits=(2,)), hold_packets=4, **ONE_TICK,
    )  # fmt: skip
    run = start(engine_name, made, 0.95, 1)
    run.advance(6000)
    out = run.snapshot().channel_flits[topology.src == 0] / 2
    assert out.sum() > 1000 and (np.abs(out / out.sum() - 0.2) < 4 * np.sqrt(0.16 / out.sum())).all()


@pytest.mark.parametrize("keys", [{}, {"shared_input": False, "oldest_first": True}, {"header": 3, "credit": 6}])
def test_engines_agree_whenever_a_head_is_visited(keys, monkeypatch):
    """A head that waits for its drawn channel is granted in the same tick if it is visited in every tick meanwhile."""
    topology = with_delays(built("leaf_spine", leaves=4, spines=3, hosts_per_leaf=3))
    made = scenario(
        topology, source=Source(flits=(3, 8), shares=(1, 1)),
        routing={"kind": "minimal", "select": "adaptive"}, traffic={"kind": "permutation", "seed": 3},
        **{**ONE_TICK, **MODES["vct"], **keys},
    )  # fmt: skip
    logs = []
    for visits in ("compiled", "reference", "every tick"):
        if visits == "every tick":
            allocate = vct.VctSwitch.allocate

            def visit_again(switch, now, allocate=allocate):
                allocate(switch, now)
                if switch.waiting:
                    switch.schedule_at(now + 1)

            monkeypatch.setattr(vct.VctSwitch, "allocate", visit_again)
        run = start("compiled" if visits == "compiled" else "reference", made, 0.8, 1, log=True)
        run.advance(600)
        logs.append(run.log())
    for other in logs[1:]:
        for ours, theirs in zip(logs[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_draws_are_uniform_and_independent():
    words = [route_word(1, 5, sequence, 2) for sequence in range(20_000)]
    every, others = port_set(range(4)), port_set([1, 2, 3])
    drawn = Counter(int(drawn_channel(every, word)) for word in words)
    assert all(abs(drawn[port] - 5000) < 250 for port in range(4))
    instead = Counter(int(drawn_tie(others, word)) for word in words if drawn_channel(every, word) == 0)
    assert all(abs(instead[port] - drawn[0] / 3) < 150 for port in (1, 2, 3))


def test_a_packet_leaves_its_drawn_channel_for_one_that_is_much_better():
    cost, last = channel_cost(20, False), channel_cost(0, True)
    assert cost == 20 and last > cost
    for flits, drawn, least, keeps in [
        (8, 7, 0, True), (8, 8, 0, False), (8, 16, 8, True), (8, 17, 8, False), (1, 1, 1, True), (1, 1, 0, False),
        (8, last, cost, False), (8, last + 16, last + 8, True), (8, last + 17, last + 8, False),
    ]:  # fmt: skip
        assert keeps_drawn(drawn, least, flits) is keeps, (flits, drawn, least)
    assert waits_for_drawn(18, 10, 8) and not waits_for_drawn(19, 10, 8)
