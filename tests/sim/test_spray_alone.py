# SPDX-License-Identifier: Apache-2.0
"""Flows of sprayed packets that have the network to themselves, and the round trips of networks without queues.

What is right comes from networkx and from a small program that moves packets along one path.
"""

from dataclasses import replace
from itertools import pairwise
from random import Random

import networkx as nx
import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.rules.spray.layout import Spread, make_senders
from flitlab.models.rules.spray.ports import AtSwitch
from flitlab.models.rules.spray.spread import choose_entropy, first_entropy
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.uncontended_spray import uncontended_ticks
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.transport.spray import finished_at
from tests.scenarios import build
from tests.sim.spray_cases import session_of_number

MTU, ANSWER, LINK = 4150, 64, 12_500  # bytes, bytes, ticks of 1 us at 100 Gb/s

ENDLESS = {"kind": "constant", "init_window": 400}
"""A window that is larger than any flow here, so that it never waits."""

SPREADS = [spread.name.lower() for spread in Spread]


def session(topology, flows, transport=None, routing=None, fabric=None, seed=1) -> SpraySession:
    """Flows (source, destination, bytes, tick)."""
    columns = [np.array(column, np.int64) for column in zip(*flows, strict=True)]
    routes = make("routing", **(routing or {"kind": "minimal"})).build(topology)
    spraying = make("transport", **(transport or {"kind": "nscc"})).spraying()
    return make_spray_session(topology, routes, spraying, fabric or Fabric(), Flows(*columns), seed)


def run(of: SpraySession) -> np.ndarray:
    """Ticks from each flow's start to its end."""
    engine, until = CompiledSpray(of), 0
    while not engine.ended():
        until += of.ticks(1e-4)
        engine.advance(until)
    return finished_at(of, engine.counters().flow) - of.flows.start


def directed_ring(hosts: int = 1) -> Topology:
    return Topology.from_arcs("ring", 5, [(v, (v + 1) % 5) for v in range(5)]).with_hosts(hosts)


def star() -> Topology:
    """A tree: paths are unique, and both directions of a link differ below."""
    return Topology.from_links("star", 6, [(0, 1), (0, 2), (2, 3), (2, 4), (4, 5)]).with_hosts([1, 2, 1, 3, 1, 2])


NETWORKS = {
    "directed ring": directed_ring(),
    "three hosts on a switch": directed_ring(3),
    "tree": star(),
    "fast hosts": replace(star(), host_capacity=2.0),
    "slow hosts": replace(star(), host_capacity=0.5),
    "de Bruijn": build("gdbg", hosts=1, n=8, degree=2),
    "one switch": Topology.from_arcs("one", 1, np.zeros((0, 2), int)).with_hosts(4),
}
"""Networks in which every pair of switches has one shortest path."""


def varied(topology: Topology, draw: Random) -> Topology:
    """The network with channels of many rates and delays, and hosts with delays of their own."""
    rates = (0.25, 0.5, 1.0, 2.0, 3.0)
    return replace(
        topology,
        host_delay=np.array([draw.choice([0, 3, 70_000]) for _ in range(topology.hosts)], np.int64),
        capacity=np.array([draw.choice(rates) for _ in range(topology.channels)]),
        delay=np.array([draw.choice([0, 1, 500, 40_000]) for _ in range(topology.channels)], np.int64),
    )


def channel_path(topology: Topology, source: int, target: int) -> list[int]:
    """The channels of the only shortest path between switches."""
    graph = nx.DiGraph(list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)))
    graph.add_nodes_from(range(topology.switches))
    (path,) = nx.all_shortest_paths(graph, source, target)
    number = {ends: c for c, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))}
    return [number[hop] for hop in pairwise(path)]


def links(topology: Topology, source: int, target: int) -> list[tuple[float, int]]:
    """Ticks of a byte and delay of all links of the path between two hosts."""
    fastest = max(topology.capacity.max(initial=0), topology.host_capacity)
    link = -(-LINK * int(fastest * 2) // 2)
    first, last = ((fastest / topology.host_capacity, link + int(topology.access_delay[h])) for h in (source, target))
    path = channel_path(topology, int(topology.host_switch[source]), int(topology.host_switch[target]))
    between = [(fastest / topology.capacity[c], link + int(topology.delay[c])) for c in path]
    return [first, *between, last]


def arrival(path: list[tuple[float, int]], sizes: list[int]) -> float:
    """When the last of some packets is at the end of a path, which they enter one behind the other."""
    free, last = [0.0] * len(path), 0.0
    for size in sizes:
        at = 0.0
        for k, (per_byte, delay) in enumerate(path):
            free[k] = max(free[k], at) + np.ceil(size * per_byte - 1e-9)
            at = free[k] + delay
        last = at
    return last


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("number", range(4))
def test_a_lone_flow_takes_the_time_of_its_packets_along_its_path(name, number):
    """In both directions, each by its own channels, and so its slowdown is 1."""
    draw = Random(number)
    topology = NETWORKS[name] if number == 0 else varied(NETWORKS[name], draw)
    for size in (1, 5_000, 10_000, 90_000, 600_000):
        source, target = draw.sample(range(topology.hosts), 2)
        of = session(topology, [(source, target, size, 77)], ENDLESS, fabric=Fabric(queue_bytes=10**7))
        sizes = [MTU] * (int(of.flows.packets[0]) - 1) + [int(of.flows.last_size[0])]
        expected = arrival(links(topology, source, target), sizes)
        expected += arrival(links(topology, target, source), [ANSWER])
        assert uncontended_ticks(of).tolist() == [pytest.approx(expected, abs=0.5)]
        found = run(of)[0] - expected
        if int(of.flows.last_size[0]) < ANSWER * max(per_byte for per_byte, _ in links(topology, target, source)):
            assert -0.5 < found < 12 * ANSWER  # the last answer may wait for the one before it
        else:
            assert abs(found) < 0.5


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("number", range(4))
def test_the_longest_round_trip_is_that_of_the_pair_for_which_it_is_longest(name, number):
    topology = NETWORKS[name] if number == 0 else varied(NETWORKS[name], Random(number))
    pairs = [(s, t) for s in range(topology.hosts) for t in range(topology.hosts) if s != t]
    trips = [arrival(links(topology, s, t), [MTU]) + arrival(links(topology, t, s), [ANSWER]) for s, t in pairs]
    assert session(topology, [(0, 1, 1, 0)]).rules.rtt0 == pytest.approx(max(trips), abs=0.5)


def test_the_windows_of_a_directed_ring_are_not_those_of_a_round_trip_that_no_pair_has():
    """Of four switches every round trip has four channels and four of hosts: 9.67548 us, 20.8 % less than before."""
    topology = Topology.from_arcs("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    of = session(topology, [(0, 3, 1, 0)])
    assert of.rules.rtt0 == 8 * LINK + 5 * MTU + 3 * ANSWER
    assert of.rules.first_window == pytest.approx(1.5 * of.rules.rtt0)
    packets = -(-of.rules.rtt0 // MTU)
    assert of.queue_bytes.tolist() == [packets * MTU] * 12
    assert (of.low[0], of.high[0]) == (np.ceil(0.2 * packets) * MTU, np.ceil(0.8 * packets) * MTU)


@pytest.mark.parametrize("routing", [{"kind": "ecmp", "ways": 16}, {"kind": "ecmp", "ways": 16, "routed": "source"}])
def test_a_slow_channel_beside_others_does_not_lengthen_windows_and_the_only_one_does(routing):
    """As in the reference simulator, whose slow links leave its round trip as it is."""
    spines = make("topology", kind="leaf_spine", leaves=4, spines=4, hosts_per_leaf=2).build()
    as_built = session(spines, [(0, 7, 1, 0)], routing=routing).rules.rtt0
    for spine, expected in (([4], as_built), ([4, 5, 6, 7], as_built + 2 * 3 * (MTU + ANSWER))):
        slow = np.isin(spines.src, spine) | np.isin(spines.dst, spine)
        topology = replace(spines, capacity=np.where(slow, 0.25, 1.0))
        assert session(topology, [(0, 7, 1, 0)], routing=routing).rules.rtt0 == expected


def test_a_long_path_beside_a_short_one_counts_and_so_do_the_delays_of_equal_ones():
    ring = Topology.from_links("ring", 5, [(v, (v + 1) % 5) for v in range(5)]).with_hosts(1)
    long_way = 2 * (6 * LINK) + 6 * (MTU + ANSWER)
    assert session(ring, [(0, 1, 1, 0)], routing={"kind": "ksp", "k": 2}).rules.rtt0 == long_way
    square = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)], delay=[0, 0, 900, 0]).with_hosts(1)
    assert session(square, [(0, 2, 1, 0)]).rules.rtt0 == 2 * (4 * LINK + 900) + 4 * (MTU + ANSWER)


@pytest.mark.parametrize("spread", SPREADS)
def test_first_entropies_are_those_that_a_sender_chooses_before_it_hears_anything(spread):
    topology = build("fat_tree", hosts=2, k=4)
    for paths in (2, 8, 64):
        of = session(topology, [(0, 15, 10**6, 0)] * 3, {"kind": "nscc", "paths": paths, "spread": spread}, seed=paths)
        senders = make_senders(of.transports, of.flows.kinds, of.flows.packets, of.flows.last_size)
        for flow in range(3):
            chosen = [choose_entropy(of.rules, senders, flow) for _ in range(12)]
            assert chosen == [first_entropy(of.rules, flow, number) for number in range(12)]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("network", ["tree", "torus", "slow links", "delays"])
def test_a_lone_flow_of_few_packets_has_a_slowdown_of_one_where_its_paths_are_alike(network, spread):
    """Also where the last packet may overtake others. Where paths differ, another ACK may come back first."""
    topology = build("fat_tree", hosts=2, k=4) if network != "torus" else build("torus", hosts=2, dims=[4, 4])
    draw = Random(4)
    if network == "slow links":
        topology = replace(topology, capacity=np.array([draw.choice([1, 1, 0.5]) for _ in range(topology.channels)]))
    if network == "delays":
        delay = np.array([draw.choice([0, 700, 2_000]) for _ in range(topology.channels)])
        topology = replace(topology, delay=delay)
    for size in (1, 4_087, 5_000, 8_200, 9_000, 12_300):
        source, target = draw.sample(range(topology.hosts), 2)
        of = session(topology, [(source, target, size, 0)], {"kind": "nscc", "spread": spread}, seed=size)
        taken, least = run(of)[0], uncontended_ticks(of)[0]
        assert taken == least if network in ("tree", "torus") or size == 1 else least <= taken < 1.1 * least


def test_any_packet_may_be_the_last_to_arrive_and_its_ack_may_come_back_by_the_fastest_path():
    """From a switch of a ring to the next there are paths of one channel and of four; two packets take one each."""
    ring = Topology.from_links("ring", 5, [(v, (v + 1) % 5) for v in range(5)]).with_hosts(1)
    way, short_back, long_back = 6 * (MTU + LINK), 3 * (ANSWER + LINK), 6 * (ANSWER + LINK)
    found = set()
    for seed in range(40):
        of = session(ring, [(0, 1, 2 * (MTU - 64), 0)], {"kind": "nscc"}, {"kind": "ksp", "k": 2}, seed=seed)
        taken, least = int(run(of)[0]), int(uncontended_ticks(of)[0])
        assert taken - least in (0, long_back - short_back)
        found.add((least, taken - least))
    # the first or the second packet takes the long way, which the first leaves a packet time earlier
    leasts = {way + short_back, way + MTU + short_back}
    assert found == {(least, later) for least in leasts for later in (0, long_back - short_back)}


def test_packets_of_a_fast_host_wait_for_each_other_where_they_share_a_path():
    """A byte takes a tick on the links of hosts and two between switches; two paths of two channels."""
    square = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    links, back = 4 * (2 * LINK), 4 * (2 * LINK) + (1 + 2 + 2 + 1) * ANSWER
    apart = (2 + 2 + 2 + 1) * MTU  # the second packet leaves the host after two packet times, and never waits
    together = (1 + 2 + 2 + 2 + 1) * MTU  # it waits for the first at the first channel
    found = set()
    for seed in range(20):
        of = session(replace(square, host_capacity=2.0), [(0, 2, 2 * (MTU - 64), 0)], seed=seed)
        assert run(of).tolist() == uncontended_ticks(of).tolist()
        found.add(int(uncontended_ticks(of)[0]))
    assert found == {links + apart + back, links + together + back}


@pytest.mark.parametrize("kind", ["ndp", "nscc", "rccc", "nscc_rccc", "constant"])
def test_no_flow_over_paths_of_two_and_four_channels_has_a_slowdown_below_one(kind):
    spines, draw = make("topology", kind="leaf_spine", leaves=4, spines=2, hosts_per_leaf=4).build(), Random(1)
    start = sorted(draw.randint(0, 4_000_000) for _ in range(1_000))
    flows = [(*draw.sample(range(16), 2), 4 * (MTU - 64), tick) for tick in start]
    of = session(
        spines, flows, {"kind": kind, "spread": "oblivious"}, {"kind": "ksp", "k": 4}, Fabric(nic_mbps=800_000)
    )
    assert (run(of) >= uncontended_ticks(of)).all()


def test_no_flow_of_a_fast_host_has_a_slowdown_below_one_where_other_traffic_changes_the_order_of_its_packets():
    tree, draw = replace(build("fat_tree", k=4), host_capacity=3.0), Random(2)
    start = sorted(draw.randint(0, 40_000_000) for _ in range(3_000))
    flows = [(*draw.sample(range(tree.hosts), 2), 4 * (MTU - 64) - 2_000, tick) for tick in start]
    of = session(tree, flows, {"kind": "none", "paths": 8}, fabric=Fabric(link_us=0.0, queue_bytes=10**7))
    assert (run(of) >= uncontended_ticks(of)).all()


def test_a_lone_flow_of_many_packets_has_a_slowdown_of_one_where_paths_are_alike():
    topology = build("fat_tree", hosts=2, k=4)
    for spread in SPREADS:
        for choice in AtSwitch:
            fabric = Fabric(at_switch=choice.name.lower())
            of = session(topology, [(0, 13, 300_000, 0)], {"kind": "nscc", "spread": spread}, fabric=fabric)
            assert run(of).tolist() == uncontended_ticks(of).tolist()


def test_a_flow_of_one_path_is_compared_with_that_one():
    """One of four spines is slow: a flow that the hash puts there is alone as slow as it is."""
    spines = make("topology", kind="leaf_spine", leaves=2, spines=4, hosts_per_leaf=4).build()
    slow = np.isin(spines.src, [2]) | np.isin(spines.dst, [2])
    topology = replace(spines, capacity=np.where(slow, 0.5, 1.0))
    times = set()
    for seed in range(12):
        of = session(topology, [(0, 7, 40_000, 0)], {"kind": "nscc", "paths": 1}, seed=seed)
        assert run(of).tolist() == uncontended_ticks(of).tolist()
        times.add(int(run(of)[0]))
    assert len(times) > 1


def test_hosts_that_are_faster_than_their_paths_together_wait_for_these():
    """Two paths, each of a third of the host's rate: alone, a flow takes at least half again as long as its host."""
    square = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    fabric = Fabric(queue_bytes=10**7, at_switch="round_robin")  # which divides packets evenly
    of = session(replace(square, host_capacity=3.0), [(0, 2, 400_000, 0)], ENDLESS, fabric=fabric)
    bytes_on_wire = 400_000 + 98 * 64
    assert uncontended_ticks(of)[0] > bytes_on_wire * 3 / 2
    assert 1 <= run(of)[0] / uncontended_ticks(of)[0] < 1.01


@pytest.mark.parametrize("number", range(60))
def test_no_flow_has_a_slowdown_below_one(number):
    """Any topology, rates, delays, routing, transport and spread, among other flows and losses."""
    of = session_of_number(number)
    engine = CompiledSpray(of)
    engine.advance(1_500_000)
    ended = finished_at(of, engine.counters().flow)
    took = (ended - of.flows.start)[ended >= 0]
    assert (took >= uncontended_ticks(of)[ended >= 0]).all()


def test_a_constant_rate_is_part_of_what_a_flow_takes_alone():
    of = session(build("fat_tree", hosts=2, k=4), [(0, 15, 400_000, 0)], {"kind": "none", "rate": 0.5})
    assert run(of).tolist() == uncontended_ticks(of).tolist()
    assert run(of)[0] > 2 * 97 * MTU
