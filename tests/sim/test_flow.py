# SPDX-License-Identifier: Apache-2.0
"""Messages as flows: closed forms, fairness, both engines alike, and what the packets of ``vct`` make of the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from flitlab.fluid.graph import Demand
from flitlab.fluid.problem import Problem
from flitlab.fluid.split import split_load
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Op, Program
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.compiled.flow.tournament import NO_KEY, enlarged, keys_of, make_tournament
from flitlab.sim.engines.flow import (
    RESOLUTION,
    Flowing,
    clear_channel_shares,
    compute_channel_shares,
    make_channel_shares,
    make_network,
)
from flitlab.sim.engines.reference.flow import FlowNetwork
from flitlab.sim.engines.start import start
from flitlab.sim.measure.critical_path import critical_path
from tests.programs import messages, program, programs
from tests.scenarios import TIMES, build, line, one_way_ring, scenario

SLOW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
END = 1 << 40
ROUTINGS = [
    {"kind": "minimal", "select": "hash"},
    {"kind": "minimal"},
    {"kind": "ksp", "k": 3},
    {"kind": "ecmp", "ways": 2, "routed": "source", "per": "flow"},
    {"kind": "valiant"},
    {"kind": "valiant", "per": "flow"},
]


def flows(topology: Topology, what: Program, how: Messages | None = None, routing: dict | None = None) -> Scenario:
    """Rank r of a program on host r of a topology, at flow level."""
    routes = make("routing", **(routing or ROUTINGS[0])).build(topology)
    traffic = make("traffic", kind="uniform").build(topology)
    workload = Workload(what, np.arange(what.ranks), how or messages())
    return Scenario(Instance(topology, traffic, routes), Flow(**TIMES), workload)


def message_flows(ranks: int, sends) -> Program:
    """Messages (source, destination, bytes) that are all sent at tick 0."""
    rows: list[list] = [[] for _ in range(ranks)]
    for source, destination, size in sends:
        rows[source].append((Op.SEND, size, destination, 0, 0, []))
        rows[destination].append((Op.RECV, size, source, 0, 0, []))
    return program(rows)


def walks(rng: np.random.Generator, ranks: int, count: int, length: int, most_bytes: int) -> Program:
    """Messages that are passed on to a random rank, each of a random size, ``count`` at a time."""
    rows: list[list] = [[] for _ in range(ranks)]
    for walk in range(count):
        here, needs = int(rng.integers(ranks)), []
        for _ in range(length):
            there, size = int((here + rng.integers(1, ranks)) % ranks), int(rng.integers(most_bytes))
            rows[here].append((Op.SEND, size, there, walk, 0, needs))
            rows[there].append((Op.RECV, size, here, walk, 0, []))
            here, needs = there, [(len(rows[there]) - 1, False)]
    return program(rows)


def delivered(case: Scenario, engine_name: str = "compiled") -> np.ndarray:
    """Ticks at which the messages have arrived, in the order of their sends."""
    run = start(engine_name, case, 1.0, 1)
    run.advance(END)
    assert run.done()
    execution = run.execution()
    return execution.delivered[case.work.program.kind == Op.SEND] / execution.resolution


def latency(hops: int) -> int:
    """From the tick in which a flit leaves its host to its delivery (INTERFACE.md, Time)."""
    ends = TIMES["injection"] + TIMES["ejection"] + TIMES["header"] + TIMES["switch"]
    return ends + hops * (TIMES["header"] + TIMES["switch"] + TIMES["link"])


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 8, 32, 33, 5000])
@pytest.mark.parametrize("there", [0, 1, 4])
def test_a_message_alone_takes_what_it_takes_in_vct(engine_name, there, size):
    topology = line(5, hosts=2)
    what = message_flows(10, [(0, 2 * there + 1, size)])
    flits = max(1, -(-size // 8))
    case = flows(topology, what)
    assert delivered(case, engine_name) == [latency(there) + flits - 1]
    packets = scenario(topology, buffer_flits=100)
    packets = replace(packets, work=case.work)
    assert delivered(packets, engine_name) == [latency(there) + flits - 1]


def test_slow_channels_and_long_ones(engine_name):
    topology = replace(line(3), capacity=np.array([0.5, 1.0, 0.25, 1.0]), delay=np.array([3, 0, 4, 0]))
    assert delivered(flows(topology, message_flows(3, [(0, 2, 800)])), engine_name) == [latency(2) + 7 + 100 / 0.25 - 1]


def test_two_messages_have_half_a_channel_each(engine_name):
    topology = line(2, hosts=2)
    ends = delivered(flows(topology, message_flows(4, [(0, 2, 800), (1, 3, 1600)])), engine_name)
    # 100 flits of each at 1/2, then 100 more alone
    assert ends.tolist() == [latency(1) + 200 - 1, latency(1) + 300 - 1]


def test_half_duplex_links_are_shared_by_both_directions(engine_name):
    there_and_back = message_flows(4, [(0, 2, 800), (3, 1, 800)])
    case = flows(line(2, hosts=2), there_and_back)
    assert delivered(case, engine_name).tolist() == [latency(1) + 100 - 1] * 2
    half = replace(case, switching=replace(case.switching, half_duplex=True))
    assert delivered(half, engine_name).tolist() == [latency(1) + 200 - 1] * 2
    run = start(engine_name, half, 1.0, 1)
    run.advance(END)
    assert run.carried().tolist() == [200, 200]


def test_half_duplex_links_delay_each_direction_by_its_own_delay(engine_name):
    topology = replace(line(2), delay=np.array([0, 40]))
    for sends, delay in (((0, 1, 800), 0), ((1, 0, 800), 40)):
        case = flows(topology, message_flows(2, [sends]))
        half = replace(case, switching=replace(case.switching, half_duplex=True))
        assert delivered(half, engine_name).tolist() == [latency(1) + delay + 100 - 1]


def test_half_duplex_links_of_hosts_are_shared_by_both_directions(engine_name):
    there_and_back = message_flows(2, [(0, 1, 800), (1, 0, 800)])
    case = flows(line(1, hosts=2), there_and_back)
    half = replace(case, switching=replace(case.switching, half_duplex=True))
    hosts = replace(half, switching=replace(half.switching, half_duplex_hosts=True))
    assert delivered(half, engine_name).tolist() == [latency(0) + 100 - 1] * 2
    assert delivered(hosts, engine_name).tolist() == [latency(0) + 200 - 1] * 2
    disciplines = [it.switching for it in (case, half, hosts)]
    assert [discipline.plain()["duplex"] for discipline in disciplines] == ["full", "half", "half_hosts"]
    assert len({str(discipline.hashed(case.source)) for discipline in disciplines}) == 3


@pytest.mark.parametrize("local", [[1, 1, 1], [1, 3, 2], [0, 2, 0]])
def test_parking_lot(engine_name, local):
    """One message over a line of channels that have messages of their own: the most crowded one decides."""
    hosts = 4
    topology = line(4, hosts)
    sends = [(0, 3 * hosts, 80000)]
    for channel, count in enumerate(local):
        sends += [(channel * hosts + 1 + i, (channel + 1) * hosts + 1 + i, 80000) for i in range(count)]
    case = flows(topology, message_flows(4 * hosts, sends))
    run = start(engine_name, case, 1.0, 1)
    run.advance(1)
    rates = run.flowing().rate
    slowest = 1 / (1 + max(local))
    expected = [slowest] + [(1 - slowest) / count for count in local for _ in range(count)]
    assert np.allclose(rates, expected, rtol=0, atol=1e-9)


def capacity_of(topology: Topology) -> np.ndarray:
    """Of all channels, those of the hosts at the end."""
    return np.append(topology.capacity, np.full(2 * topology.hosts, topology.host_capacity))


def assert_max_min_fair(sharing: Flowing, capacity: np.ndarray) -> None:
    """No channel is over-full, and all messages cross a full one in which none is faster, which no other rates have.

    Bertsekas and Gallager, Data Networks, second edition, section 6.5.2.
    """
    message = np.repeat(np.arange(len(sharing.rate)), np.diff(sharing.start))
    load = np.bincount(sharing.channel, sharing.share * sharing.rate[message], len(capacity))
    assert (load <= capacity * (1 + 1e-9)).all()
    fastest = np.zeros(len(capacity))
    np.maximum.at(fastest, sharing.channel, sharing.rate[message])
    full = load >= capacity * (1 - 1e-9)
    held = full[sharing.channel] & (sharing.rate[message] >= fastest[sharing.channel] * (1 - 1e-9))
    assert np.bincount(message, held, len(sharing.rate)).all()


@st.composite
def networks(draw) -> Topology:
    """Small connected topologies, some of their channels slow."""
    kind = draw(
        st.sampled_from(
            [
                {"kind": "mddp", "n": 8, "degree": 2}, {"kind": "torus", "dims": [3, 3]},
                {"kind": "rrg", "n": 8, "degree": 3}, {"kind": "hypercube", "dim": 3},
            ]
        )
    )  # fmt: skip
    topology = make("topology", hosts_per_switch=draw(st.integers(1, 3)), **kind).build()
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        slow = replace(topology, capacity=rng.choice([0.3, 0.5, 1.0], topology.channels))
        return replace(slow, delay=rng.integers(4, size=topology.channels), host_capacity=float(rng.choice([0.7, 1])))
    return topology


@st.composite
def cases(draw) -> Scenario:
    """Random messages over a random network, with every kind of way."""
    topology, rng = draw(networks()), np.random.default_rng(draw(st.integers(0, 2**32)))
    how = messages(
        rendezvous=draw(st.sampled_from([0, 500, 1 << 40])), overhead=draw(st.integers(0, 3)),
        **draw(st.sampled_from([{}, {"buffered": True}, {"buffered": True, "await_receive": True}])),
    )  # fmt: skip
    what = walks(rng, topology.hosts, draw(st.integers(1, 40)), draw(st.integers(1, 6)), 4000)
    try:
        return flows(topology, what, how, draw(st.sampled_from(ROUTINGS)))
    except SpecError:
        return flows(topology, what, how)


@SLOW
@given(cases(), st.lists(st.integers(1, 800), min_size=1, max_size=8))
def test_rates_are_fair_at_every_instant(case, steps):
    run = start("compiled", case, 1.0, 1)
    capacity = capacity_of(case.topology)
    before, now = run.carried(), 0
    for step in steps:
        now += step
        run.advance(now)
        assert_max_min_fair(run.flowing(), capacity)
        after = run.carried()
        assert (after - before <= case.topology.capacity * step * (1 + 1e-9) + 1e-9).all()
        before = after


def lexicographic(sharing: Flowing, capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates by linear programs: the least rate as large as can be, then the least of the others, ..."""
    count = len(sharing.rate)
    message = np.repeat(np.arange(count), np.diff(sharing.start))
    use = np.zeros((len(capacity), count + 1))
    np.add.at(use, (sharing.channel, message), sharing.share)
    fixed = np.full(count, np.nan)
    while np.isnan(fixed).any():
        free = np.isnan(fixed)
        floor = np.column_stack([-np.eye(count)[free], np.ones(free.sum())])  # least <= rate of all that are free
        bounds = [(0, None) if is_free else (rate, rate) for is_free, rate in zip(free, fixed, strict=True)]
        matrix, limits = np.vstack([use, floor]), np.append(capacity, np.zeros(free.sum()))
        best = linprog(-np.eye(count + 1)[-1], matrix, limits, bounds=[*bounds, (0, None)])
        assert best.success
        duals = -best.ineqlin.marginals[len(capacity) :]  # positive for those that can have no more
        fixed[np.flatnonzero(free)[duals > 1e-7]] = best.x[-1]
    return fixed


@settings(SLOW, max_examples=10)
@given(cases(), st.integers(1, 500))
def test_rates_are_those_of_linear_programs(case, now):
    run = start("compiled", case, 1.0, 1)
    run.advance(now)
    sharing = run.flowing()
    assert np.allclose(sharing.rate, lexicographic(sharing, capacity_of(case.topology)), rtol=0, atol=1e-6)


@SLOW
@given(cases(), st.integers(1, 2000))
def test_engines_agree(case, now):
    run = start("both", case, 1.0, 1)
    for until in (now, END):
        run.advance(until)
        run.execution()
        reference = run._reference
        assert np.allclose(run.carried(), reference.carried(), rtol=1e-9, atol=1e-6)
    assert run.done() and reference.done()


def test_data_wait_for_the_receive_and_the_sender_does_not(engine_name):
    """The receiver computes until 100; the second message to it, whose receive is ready, does not wait."""
    rows = [
        [(Op.SEND, 80, 1, 0, 0, []), (Op.SEND, 80, 1, 1, 0, [(0, False)])],
        [(Op.CALC, 100, -1, 0, 0, []), (Op.RECV, 80, 0, 0, 0, [(0, False)]), (Op.RECV, 80, 0, 1, 0, [])],
    ]  # fmt: skip
    case = flows(line(2), program(rows), messages(buffered=True, await_receive=True, overhead=2))
    run = start(engine_name, case, 1.0, 1)
    run.advance(END)
    got = run.execution()
    assert (got.finish[:2] / got.resolution).tolist() == [2, 4]
    assert (got.delivered[:2] / got.resolution).tolist() == [100 + latency(1) + 10 - 1, 4 + latency(1) + 10 - 1]
    segments = critical_path(case.work.program, case.work.messages, got, 0)
    assert [segment.kind for segment in segments][:2] == ["compute", "message"]


@settings(SLOW, max_examples=100)
@given(programs(most_bytes=300), st.integers(0, 2), st.integers(0, 1), st.booleans())
def test_dependencies_hold_and_nothing_is_lost(what, overhead, early, awaits):
    """Of any program: all operations are done, none before those that it depends on, no message too early."""
    topology = build("hypercube", dim=2)
    how = messages(overhead=overhead, rendezvous=1 << 40, buffered=awaits, await_receive=awaits)
    case = flows(topology, what, how)
    run = start("both", case, 1.0, early)
    run.advance(END)
    execution = run.execution()
    assert run.done()
    before = np.repeat(np.arange(what.operations), np.diff(what.after))
    waiting, only_start = what.successor >> 1, what.successor & 1 == 1
    begun = np.where(what.kind == Op.RECV, execution.ready, execution.start)
    assert (execution.ready[waiting] >= np.where(only_start, begun[before], execution.finish[before])).all()
    send = np.flatnonzero(what.kind == Op.SEND)
    apart = what.peer[send] != what.rank[send]
    least = np.where(apart, latency(0) * RESOLUTION, RESOLUTION)
    assert (execution.delivered[send] >= execution.queued[send] + least).all()
    if awaits:
        assert (execution.delivered[send] >= execution.ready[what.partner[send]] + least).all()
    assert (execution.start[what.partner[send]] >= execution.delivered[send]).all()


@pytest.mark.parametrize("routing", ROUTINGS, ids=str)
def test_all_flits_are_carried(engine_name, routing):
    """Every channel has carried what its messages' ways say, and no flit is lost where ways part."""
    topology = build("torus", dims=[4, 4])
    rng = np.random.default_rng(3)
    what = walks(rng, topology.hosts, 30, 5, 3000)
    case = flows(topology, what, routing=routing)
    run = start(engine_name, case, 1.0, 1)
    run.advance(END)
    network = make_network(case, 1)
    way = make_channel_shares(network, topology.switches)
    expected, balance = np.zeros(topology.channels), np.zeros(topology.switches)
    for send in np.flatnonzero(what.kind == Op.SEND):
        source, destination = int(what.rank[send]), int(what.peer[send])
        size = int(what.amount[send])
        count, _ = compute_channel_shares(network, way, source, destination, send, 3, max(1, -(-size // 32)))
        flits = max(1, -(-size // 8))
        channel = way.channel[: count - 2]
        expected[channel] += flits * way.share[channel]
        balance[[source, destination]] += flits, -flits
        clear_channel_shares(way, count)
    carried = run.carried()
    assert np.allclose(carried, expected, rtol=1e-9)
    out = np.bincount(topology.src, carried, topology.switches) - np.bincount(topology.dst, carried, topology.switches)
    assert np.allclose(out, balance, atol=1e-6)


@pytest.mark.long
def test_shares_are_those_of_the_split_ceiling():
    topology = build("torus", dims=[4, 4])
    case = flows(topology, message_flows(16, [(0, 10, 8)]), routing={"kind": "minimal"})
    network = make_network(case, 1)
    way = make_channel_shares(network, topology.switches)
    count, ticks = compute_channel_shares(network, way, 0, 10, 0, 3, 1)
    demand = np.zeros((16, 16))
    demand[0, 10] = 1.0
    problem = Problem.of(topology, case.traffic, case.routes)
    assert ticks == (latency(4) - 1) * RESOLUTION
    assert np.allclose(way.share[: topology.channels], split_load(problem.graph, Demand.of(demand), problem.dags))
    assert count == 2 + np.count_nonzero(way.share[: topology.channels])


@pytest.mark.parametrize("routing", [{"kind": "minimal", "select": "adaptive"}, {"kind": "ugal"}], ids=str)
def test_routing_by_congestion_is_refused(engine_name, routing):
    case = flows(build("torus", dims=[3, 3]), message_flows(9, [(0, 1, 8)]), routing=routing)
    with pytest.raises(ValueError, match="depends on congestion, which mode 'flow' does not model"):
        start(engine_name, case, 1.0, 1)


def test_the_order_of_what_happens_at_once_is_no_part_of_the_model():
    topology = build("torus", dims=[4, 4])
    case = flows(topology, walks(np.random.default_rng(1), 16, 40, 4, 100), routing={"kind": "minimal"})
    runs = [FlowNetwork(case, 1, shuffle) for shuffle in range(3)]
    for run in runs:
        run.advance(END)
    first, *others = [run.execution() for run in runs]
    assert all((first.finish == other.finish).all() and (first.cause == other.cause).all() for other in others)


def shifts(ranks: int, rounds, size: int) -> Program:
    """In round k every rank sends to the one ``rounds[k]`` further, when it has what was sent in the round before."""
    rows: list[list] = []
    for rank in range(ranks):
        row: list = []
        for k, by in enumerate(rounds):
            needs = [(2 * k - 2, False), (2 * k - 1, False)] if k else []
            row.append((Op.SEND, size, (rank + by) % ranks, k, 0, needs))
            row.append((Op.RECV, size, (rank - by) % ranks, k, 0, needs))
        rows.append(row)
    return program(rows)


AT_ONCE = message_flows(16, [(a, b, 4_000) for a in range(16) for b in range(16) if a != b])


@pytest.mark.long
@pytest.mark.parametrize("routing", ROUTINGS[:2], ids=str)
@pytest.mark.parametrize(
    ("topology", "what", "part"),
    [
        (build("mddp", n=16, degree=3), shifts(16, [5], 64_000), 0.001),  # a permutation
        (one_way_ring(8), shifts(8, [1] * 7, 16_000), 1e-9),  # all-gather on a ring
        (build("torus", dims=[4, 4]), AT_ONCE, 0.01),  # all-to-all
        (build("mddp", n=16, degree=3), AT_ONCE, 0.02),
    ],
    ids=["permutation", "ring", "torus", "mddp"],
)
def test_large_messages_take_what_they_take_in_vct(topology, what, part, routing):
    """With buffers in which packets hardly wait for others that go elsewhere."""
    case = flows(topology, what, routing=routing)
    routing = {**routing, "vc_policy": "any"}
    packets = scenario(topology, routing=routing, vcs=8, buffer_flits=400, allow_deadlock=True)
    packets = replace(packets, work=case.work)
    assert delivered(case).max() == pytest.approx(delivered(packets).max(), rel=part)


@pytest.mark.long
def test_small_messages_share_where_packets_take_turns():
    """Of 4 messages of a packet of 4 flits, flows end together; packets come one after another, the last with them."""
    topology = line(2, hosts=4)
    case = flows(topology, message_flows(8, [(0, 4 + k, 32) for k in range(4)]))
    packets = replace(scenario(topology), work=case.work)
    assert delivered(case).tolist() == [latency(1) + 16 - 1] * 4
    assert delivered(packets).tolist() == [latency(1) + 4 * (k + 1) - 1 for k in range(4)]


def test_room_grows_with_the_messages_under_way():
    """Thousands at once, more than there is room for at first, over channels that all have their turn."""
    topology = build("torus", dims=[4, 4], hosts=4)
    sends = [(a, b, 400) for a in range(64) for b in range(64) if a != b]
    case = flows(topology, message_flows(64, sends), routing={"kind": "minimal"})
    run = start("compiled", case, 1.0, 1)
    run.advance(1)
    assert len(run.flowing().send) == len(sends)
    assert_max_min_fair(run.flowing(), capacity_of(topology))
    run.advance(1 << 60)
    assert run.done() and len(run.flowing().send) == 0 and run.delivered == len(sends)


def all_pairs(ranks: int, most_bytes: int) -> list:
    """A message of another size from every rank to every other."""
    rng = np.random.default_rng(5)
    return [(a, b, int(rng.integers(most_bytes))) for a in range(ranks) for b in range(ranks) if a != b]


@pytest.mark.parametrize("routing", ROUTINGS[:2], ids=str)
def test_rates_are_fair_where_hundreds_of_channels_are_full(routing):
    """All messages of an all-to-all have their rates found at once, and every one that ends changes those of many."""
    topology = build("mddp", n=64, degree=6)
    case = flows(topology, message_flows(64, all_pairs(64, 20_000)), routing=routing)
    run = start("compiled", case, 1.0, 1)
    under_way = []
    for now in (1, 5_000, 20_000, 40_000):
        run.advance(now)
        under_way.append(len(run.flowing().send))
        assert_max_min_fair(run.flowing(), capacity_of(topology))
    assert under_way[0] == 64 * 63 and sorted(set(under_way), reverse=True) == under_way and under_way[-1] > 100


def test_engines_agree_where_every_end_changes_many_rates():
    topology = replace(build("mddp", n=12, degree=3), host_capacity=2.5)  # rates beyond 1 and 2 flits a tick
    run = start("both", flows(topology, message_flows(12, all_pairs(12, 4_000))), 1.0, 1)
    run.advance(END)
    run.execution()
    assert run.done()


def test_a_tournament_is_the_same_when_more_may_take_part():
    few = make_tournament(20)
    assert (keys_of(few) == NO_KEY).all()
    keys_of(few)[:20] = np.random.default_rng(1).permutation(20) + 5
    for items in (20, 300, 5_000):
        more = enlarged(few, items)
        keys = keys_of(more)
        assert len(keys) >= items and (keys[:20] == keys_of(few)[:20]).all() and (keys[20:] == NO_KEY).all()
        assert more[15] == keys.min() == 5
