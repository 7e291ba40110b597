# SPDX-License-Identifier: Apache-2.0
"""The datagram discipline: both engines packet for packet, conservation, and what theory says of small networks."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.datagram import precedence
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.transport.failures import LinkFailures, with_failures
from flitlab.models.transport.flows import Flows, _in_ticks, arriving, long_lived, together
from flitlab.models.transport.law import law
from flitlab.models.transport.newreno import (
    ConnectionState,
    acknowledge,
    make_rules,
    make_senders,
    opened,
    time_out,
)
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import SYN_BYTES, Queues, Session, make_session
from flitlab.models.transport.sizes import SizesSpec
from flitlab.models.transport.tcp import additive
from flitlab.models.transport.uncontended import uncontended_ticks
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import EngineMismatch
from flitlab.sim.engines.transport.datagram import LinkCount, SubflowCount
from flitlab.sim.engines.transport.run import Trace, compare_traces
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.transport import Window
from tests import long_after
from tests.scenarios import build, line
from tests.sim.datagram_cases import ECMP, check, run_session, session_of_number, start

QUICK = {"min_rto_ms": 20.0, "syn_rto_ms": 60.0, "start_ms": 5.0}


def transport(kind="tcp", **keys):
    quick = QUICK if kind != "none" else {"start_ms": 5.0}
    return make("transport", kind=kind, **{**quick, **keys}).build()


def endless(pairs) -> Flows:
    source, target = np.array(pairs, np.int64).T
    return Flows(source.copy(), target.copy(), np.zeros(len(source), np.int64), np.zeros(len(source), np.int64))


def session(
    topology: Topology, pairs, control=None, *, routing=None, packets=0, draw="distinct", seed=1, **queues
) -> Session:
    """Flows between pairs of hosts, endless or of a number of packets."""
    flows = endless(pairs)
    flows = flows._replace(packets=np.full(len(flows.source), packets, np.int64))
    routes = make("routing", **(routing or ECMP)).build(topology)
    return make_session(
        topology, routes, control or transport(), Queues(**queues), flows, path_draw=getattr(PathDraw, draw.upper()),
        seed=seed,
    )  # fmt: skip


def throughput(case: Session, window=(0.5, 1.5)) -> np.ndarray:
    return run_session("compiled", case, window).throughput


@pytest.mark.parametrize("number", long_after(1, range(60)))
def test_engines_agree_on_every_packet_counter_and_row(number):
    """``python -m benchmarks.fuzz_datagram`` does this with more of them, and longer."""
    check(session_of_number(number), ((0.0, 0.025), (0.015, 0.025))[number % 2])


def test_pausing_changes_nothing_and_memory_grows_when_needed():
    case = session(line(2, hosts=4), [(0, 4), (1, 5), (2, 4)], transport(init_window=1), queue_bytes=3_000_000)
    whole, parts = (start("compiled", case, trace=True) for _ in range(2))
    whole.advance(case.ticks(0.5))
    for k in range(1, 51):
        parts.advance(case.ticks(0.01 * k))
    compare_traces(whole.trace(), parts.trace())


@pytest.mark.parametrize("packets", [0, 2500])
def test_without_a_transport_every_packet_is_counted_once(packets):
    """Two flows of full rate over one channel: one of two packets is lost, and nobody closes the gap."""
    case = session(line(2, hosts=2), [(0, 2), (1, 3)], transport("none"), packets=packets, queue_bytes=20_000)
    counters = check(case, (0.2, 0.5))
    got, dropped = counters.subflow[:, SubflowCount.RECEIVED], counters.subflow[:, SubflowCount.DROPPED]
    assert got.sum() == pytest.approx(dropped.sum(), rel=0.1) and got.sum() > 2000
    np.testing.assert_array_equal(got, counters.subflow[:, SubflowCount.ARRIVED])
    assert (counters.finished == -1).all()  # a finite flow that has lost a packet never has all of them


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_queue_counts_up_to_the_tick_that_is_looked_at(engine):
    """Four hosts of full rate share a channel of their rate: its queue grows by three packets in every service time."""
    case = session(
        line(2, hosts=4), [(i, 4 + i) for i in range(4)], transport("none", start_ms=0.0), queue_bytes=10**8,
        random_drop=False,
    )  # fmt: skip
    run, channel, injection = start(engine, case), 0, case.paths.link[case.paths.start[0]]
    service, delay = round(case.queues.packet_bytes * case.ratio[channel] / 2**16), case.delay[injection]
    until = int(delay) + 100 * service + service // 4
    run.advance(until)
    counted = run.counters().link[channel]
    arrivals = [delay + k * service for k in range(1, 101) for _ in range(4)]
    leaves = [delay + (n + 2) * service for n in range(400)]
    assert counted[LinkCount.SENT] == sum(tick <= until for tick in leaves) == 99
    inside = [min(out, until) - into for into, out in zip(arrivals, leaves, strict=True)]
    assert counted[LinkCount.QUEUE_TICKS] == sum(inside)
    assert counted[LinkCount.BYTES] == pytest.approx(99.25 * case.queues.packet_bytes, abs=1)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_link_counts_the_bytes_of_acknowledgements(engine):
    control = transport(ack_path="reverse_path", ack_bytes=60, start_ms=0.0)
    case = session(line(2, hosts=1), [(0, 1)], control, packets=400, queue_bytes=10**7)
    run = start(engine, case)
    run.advance(case.ticks(5.0))
    there, back = run.counters().link[:2]
    assert there[LinkCount.BYTES] == 400 * case.queues.packet_bytes + SYN_BYTES
    assert back[LinkCount.BYTES] == 400 * 60 + 60  # the first of them answers the SYN


def test_windows_of_any_size_have_room():
    """A law that opens its window by thousands of packets at once, of which the first ones are lost."""

    def wide(window, mss, memory):
        return 4e6

    control = replace(transport(start_ms=0.0, init_window=30), law=law(additive, wide))
    counters = check(session(line(2, hosts=2), [(0, 2), (1, 3)], control, queue_bytes=20_000), (0.1, 0.5))
    assert (counters.subflow[:, SubflowCount.SENT] > 4000).all() and (
        counters.subflow[:, SubflowCount.DROPPED] > 3000
    ).all()


def test_an_acknowledgement_may_be_larger_than_a_packet():
    control = transport(ack_path="reverse_path", ack_bytes=60_000, init_window=4, start_ms=0.0)
    check(session(line(3, hosts=2), [(0, 4), (1, 5)], control), (0.0, 0.3))


def test_timers_beyond_the_longest_run_never_ring():
    """A least timeout of 2**39 ticks, which would not fit beside the number of a subflow."""
    control = transport(min_rto_ms=2**39 * 8e-10, syn_rto_ms=1000.0, start_ms=0.0)
    check(session(line(2, hosts=2), [(0, 2), (1, 3)], control, nic_mbps=1e7, link_us=0.0), (0.0, 1e-6))
    case = session(line(2), [(0, 1)], transport("none", rate=1e-300, start_ms=0.0))
    assert check(case, (0.0, 0.1)).subflow[:, SubflowCount.SENT].tolist() == [1]


def test_a_difference_is_reported_with_its_packet():
    one = Trace(*np.array([[1, 0, 0], [2, 0, 1]]).T)
    two = Trace(*np.array([[1, 0, 0], [3, 0, 1]]).T)
    with pytest.raises(EngineMismatch, match=r"packet 1 of subflow 0 received at 2.*received at 3"):
        compare_traces(one, two)


@pytest.mark.parametrize("kind", ["tcp", "mptcp", "dctcp"])
def test_one_flow_fills_its_path(kind):
    case = session(line(2), [(0, 1)], transport(kind, subflows=1))
    assert throughput(case) == pytest.approx(1.0, abs=0.01)


def test_a_constant_rate_is_kept():
    case = session(line(2), [(0, 1)], transport("none", rate=0.25))
    assert throughput(case) == pytest.approx(0.25, abs=0.001)


def test_first_packet_takes_the_closed_form():
    """Uplink, one channel, ejection: each a service of 1000 byte times and 800 of delay; the handshake 801 each."""
    case = session(line(2), [(0, 1)], transport(start_ms=0.0), packets=1)
    run = start("both", case)
    run.advance(case.ticks(0.1))
    assert run.counters().finished.tolist() == [3 * 801 + 3 * 1800]
    assert uncontended_ticks(case).tolist() == [3 * 801 + 3 * 1800]


@pytest.mark.parametrize("kind", ["tcp", "dctcp"])
def test_two_flows_share_a_link_fairly(kind):
    case = session(line(2, hosts=2), [(0, 2), (1, 3)], transport(kind))
    shares = throughput(case, (1.0, 9.0))
    assert shares.sum() == pytest.approx(1.0, abs=0.02)
    assert shares.min() > 0.4


def in_step(kind: str, flows: int, seed: int, seconds: float) -> np.ndarray:
    """Shares of flows with the same timing to the tick, over a queue that drops only what finds no room."""
    pairs = [(i, flows + i) for i in range(flows)]
    case = session(line(2, hosts=flows), pairs, transport(kind, start_ms=0.0), seed=seed, random_drop=False)
    shares = throughput(case, (0.0, seconds))
    return shares / shares.sum()


def test_flows_that_always_come_together_share_as_chance_has_it():
    """By number, the first would have everything: the other's packet comes second whenever there is room for one."""
    shares = np.array([in_step("tcp", 2, seed, 10.0)[0] for seed in range(1, 9)])
    assert shares.min() > 0.3 and shares.max() < 0.7
    assert shares.mean() == pytest.approx(0.5, abs=0.08)
    assert (shares < 0.5).any() and (shares > 0.5).any()
    np.testing.assert_allclose(in_step("none", 3, 1, 5.0), 1 / 3, atol=0.02)


def test_whoever_comes_first_in_a_tick_is_drawn_evenly():
    orders = [sorted(range(700, 703), key=lambda number: precedence(5, 1000 * tick, number)) for tick in range(6000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and abs(counts - 1000).max() < 120  # four standard deviations
    assert precedence(2**63 - 1, 2**39, 2**32 - 1) & 0xFFFFFFFF == 2**32 - 1


def parking_lot(control):
    """Three links in a row, a flow over all of them and one over each."""
    topology = line(4, hosts=2)
    return session(topology, [(0, 6), (1, 2), (3, 4), (5, 7)], control)


def test_parking_lot_favours_short_paths_as_one_over_rtt():
    """The long flow has three times the loss and more delay: far less than a third of the others, but not nothing."""
    shares = throughput(parking_lot(transport()), (2.0, 12.0))
    assert 0.05 < shares[0] < 0.3
    np.testing.assert_allclose(shares[1:] + shares[0], 1.0, atol=0.05)


def test_coupled_subflows_of_one_path_in_the_parking_lot_are_as_one():
    plain = throughput(parking_lot(transport()), (2.0, 12.0))
    coupled = throughput(parking_lot(replace(transport("mptcp", subflows=1))), (2.0, 12.0))
    np.testing.assert_allclose(plain, coupled, atol=0.1)


@pytest.mark.parametrize(("coupling", "least", "most"), [("lia", 0.4, 0.57), ("none", 0.62, 0.8)])
def test_coupled_subflows_take_no_more_than_one_tcp_at_a_shared_bottleneck(coupling, least, most):
    """Four flows of two subflows against four of one: uncoupled they take two thirds, coupled a half.

    Queues that drop what comes last favour small windows, hence both a little more.
    """
    topology = line(2, hosts=8)
    flows = endless([(i, 8 + i) for i in range(8)])
    routes = make("routing", **ECMP).build(topology)
    control = transport("mptcp", subflows=2, coupling=coupling)
    case = make_session(topology, routes, control, Queues(), flows, path_draw=PathDraw.WITH_REPLACEMENT)
    never = (np.arange(16) >= 8) & (np.arange(16) % 2 == 1)
    share = throughput(replace(case, start=np.where(never, np.int64(1) << 35, case.start)), (2.0, 22.0))
    assert share.sum() > 0.95
    assert least < share[:4].sum() / share.sum() < most


def test_limited_flows_have_no_more_subflows_than_their_pair_has_paths():
    """In a fat tree of 4 ports: one path within a switch, two within a pod, four between pods, drawn one by one."""
    topology, pairs = build("fat_tree", hosts=2, k=4), [(0, 1), (0, 2), (0, 4), (1, 5)]
    case = session(topology, pairs, transport("mptcp", subflows=3), packets=50, draw="limited", seed=2)
    assert np.diff(case.first).tolist() == [1, 2, 3, 3]
    assert (np.diff(case.paths.start) == np.repeat([2, 4, 6, 6], [1, 2, 3, 3])).all()
    runs = [start(engine, case, trace=True) for engine in ("compiled", "reference")]
    for run in runs:
        run.advance(case.ticks(0.5))
    compare_traces(*(run.trace() for run in runs))
    assert runs[0].counters().subflow[:, SubflowCount.RECEIVED].sum() == 200
    assert (uncontended_ticks(case) > 0).all()


def test_nothing_overtakes_on_a_single_path():
    case = session(line(3, hosts=2), [(0, 4), (1, 5)], transport("none"))
    run = start("compiled", case, trace=True)
    run.advance(case.ticks(0.2))
    trace = run.trace()
    for subflow in (0, 1):
        assert (np.diff(trace.number[trace.subflow == subflow]) > 0).all()
    assert run.counters().subflow[:, SubflowCount.DROPPED].sum() > 100


@given(st.integers(1, 3), st.integers(1, 120), st.integers(0, 2**30), st.sampled_from(["tcp", "mptcp", "dctcp"]))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_every_packet_of_a_finite_flow_arrives(room, packets, seed, kind):
    """Whatever the queues drop: they are tiny, and drop at random as well."""
    control = transport(kind, subflows=2, syn_rto_ms=20.0)
    topology = build("rrg", hosts=2, n=6, degree=3, seed=4)
    pairs = [(i, (i + 5) % 12) for i in range(12)]
    case = session(topology, pairs, control, packets=packets, seed=seed, queue_bytes=1000 * room)
    run = start("compiled", case)
    run.advance(case.ticks(60.0))
    after = run.counters()
    assert (after.finished > 0).all()
    assert np.add.reduceat(after.subflow[:, SubflowCount.RECEIVED], case.first[:-1]).tolist() == [packets] * 12
    assert run.in_flight().sum() == 0
    assert (
        after.subflow[:, SubflowCount.SENT]
        == after.subflow[:, SubflowCount.RECEIVED] + after.subflow[:, SubflowCount.RESENT]
    ).all()


def test_a_loss_and_the_marks_before_it_reduce_a_window_once():
    """RFC 8257, section 3.5. Oracle: packets received by 0.5 and 1 s in a program of its own; 776 and 1,612 with a cut
    for the marks on the acknowledgement that ends the recovery, too."""
    chain = Topology.from_links("chain", 3, [(0, 1), (1, 2)], capacity=[1, 0.5], delay=[200_000, 0])
    times = {"start_ms": 0.0, "min_rto_ms": 250.0, "syn_rto_ms": 3000.0}
    control = transport("dctcp", ssthresh=1000, mark_packets=20, **times)
    network = {"nic_mbps": 64.0, "link_us": 100.0, "queue_bytes": 60_000, "random_drop": False}
    case = session(chain.with_hosts(np.array([1, 0, 1])), [(0, 1)], control, **network)
    run = start("compiled", case)
    received = []
    for seconds in (0.5, 1.0):
        run.advance(case.ticks(seconds))
        received.append(int(run.counters().subflow[0, SubflowCount.RECEIVED]))
    assert received == [864, 2012]


def test_marks_of_a_recovery_do_not_reduce_the_window_after_it():
    """A partial acknowledgement begins a round in the recovery; what is acknowledged after it has no mark."""
    rules, senders = make_rules(transport("dctcp", min_rto_ms=1.0, syn_rto_ms=1.0), 1000, 1e-6), make_senders(1)
    opened(rules, senders, 0, 100, 0)
    sequence, window = senders.seq[0], senders.win[0]
    window["cwnd"] = senders.window[0] = 50_000.0
    window["ssthresh"], senders.memory[0][0] = 25_000.0, 0.9  # its alpha
    sequence["una"] = sequence["round_end"] = 100
    sequence["next"] = sequence["high"] = 150
    acknowledge(rules, senders, 0, 0, 1, 101, 100, True, 1000)  # ends a round; the next one ends with 150
    sequence["next"] = sequence["high"] = 151
    for _ in range(48):  # 101 is lost, and the third duplicate begins the recovery
        acknowledge(rules, senders, 0, 0, 1, 101, 100, True, 1000)
    assert sequence["state"] == ConnectionState.RECOVERY
    sequence["next"] = sequence["high"] = 172
    for una in (150, 151):
        acknowledge(rules, senders, 0, 0, 1, una, 100, True, 1000)
    after = float(window["ssthresh"])
    for una in range(152, 180):
        acknowledge(rules, senders, 0, 0, 1, una, 100, False, 1000)
    assert sequence["state"] == ConnectionState.OPEN
    assert window["ssthresh"] == after <= window["cwnd"]


@pytest.mark.long
def test_flows_go_on_after_a_link_fails():
    topology = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    case = session(topology, [(0, 1), (1, 2), (2, 3), (3, 0)])
    failures = LinkFailures(links=1, at_ms=300.0, reroute_ms=100.0, seed=2)
    failing = with_failures(case, failures, make("routing", **ECMP))
    broken = failing.changes[0].broken
    assert len(broken) == 2 and len(failing.changes[1].moved) == 1
    hit = failing.changes[1].moved
    run = start("both", failing)
    marks = []
    for seconds in (0.299, 0.301, 0.4, 1.5):
        run.advance(failing.ticks(seconds))
        marks.append(run.counters().subflow[hit, SubflowCount.RECEIVED].sum())
    assert marks[1] - marks[0] < 20 and marks[2] - marks[1] < 20  # what was past the failure still arrives
    assert marks[3] - marks[2] > 2000


@pytest.mark.long
@given(st.lists(st.integers(0, 2**40), max_size=5), st.integers(1, 2**70), st.integers(1, 2**70))
def test_positions_in_ticks_are_exact(positions, over, under):
    """Oracle: fractions. Positions and ticks of a run fit into 64 bits, their factors may not."""
    ticks = Fraction(over, under)
    exact = [min(int(position * ticks), 2**63 - 1) for position in positions]
    assert _in_ticks(np.array(positions, np.int64), ticks).tolist() == exact


def test_arrivals_offer_the_load():
    topology = build("fat_tree", hosts=2, k=4)
    traffic = make("traffic", kind="uniform").build(topology)
    sizes = SizesSpec(kind="fixed", bytes=10_000).build()
    case = session(topology, [(0, 1)])
    flows = arriving(traffic, 0.5, sizes, 1000, sizes.mean_packets(1000), 1000, case.ticks(4.0), 3)
    offered = flows.packets.sum() * 1000 / (16 * 4.0 * 8e6)
    assert offered == pytest.approx(0.5, rel=0.05)
    assert (np.diff(flows.start) >= 0).all() and (flows.source != flows.destination).all()


@pytest.mark.parametrize(("mode", "kind", "seconds"), [("datagram", "tcp", 0.2), ("spray", "ndp", 0.0005)])
def test_flows_arrive_until_the_window_ends(mode, kind, seconds):
    """The run ends with the window: flows of later arrivals are none of it, and earlier ones are the same."""
    text = (
        "topology: {kind: fat_tree, k: 4}\nrouting: ecmp\nloads: [0.3]\n"
        "traffic: {kind: uniform, arrivals: poisson, sizes: {kind: fixed, bytes: 10000}}\n"
        f"switching: {{mode: {mode}}}\ntransport: {kind}\n"
    )
    rows = []
    for measured in (f"{{seconds: {2 * seconds}, window: [0, {seconds}]}}", f"{{seconds: {seconds}}}"):
        (case,) = read("c.yaml", [], text=f"{text}measure: {measured}\n").cases
        rows.append(measure("compiled", case.scenario, 0.3, 1, Window((0.0, seconds))).row)
    assert rows[0]["flows"] > 20
    for column in ("flows", "flows_complete", "not_begun", "fct_ms_mean", "host_throughput"):
        assert rows[0].get(column) == rows[1].get(column), column


def test_incast_is_served_in_turn():
    topology = build("fat_tree", hosts=2, k=4)
    traffic = make("traffic", kind="incast", senders=6, receiver=3).build(topology)
    flows = together(traffic, 1, SizesSpec(kind="fixed", bytes=60_000).build(), 1000, 1)
    case = make_session(topology, make("routing", **ECMP).build(topology), transport(), Queues(), flows)
    row = run_session("both", case, (0.0, 0.4)).row
    assert row["flows_complete"] == 6
    assert 60 * 6 * 0.125 <= row["fct_ms_p99"] + 5 < 200
    assert row["slowdown_mean"] > 1 and row["flows_small"] == 6


@pytest.mark.parametrize(
    ("hosts", "control", "packets", "queues"),
    [
        (2, {}, 1, {}),
        (6, {}, 90, {}),  # a window of 10 packets is less than a round trip
        (6, {"init_window": 1, "ack_path": "reverse_path"}, 300, {"link_us": 900.0, "queue_bytes": 10**6}),
        (3, {"init_window": 2, "ack_path": "pure_delay"}, 50, {"feeder_packets": 100}),
        (4, {"kind": "dctcp", "mark_packets": 200}, 200, {"queue_bytes": 10**6}),
        (4, {"kind": "none", "rate": 0.7}, 50, {}),
    ],
)
def test_a_flow_alone_has_a_slowdown_of_one(hosts, control, packets, queues):
    case = session(line(hosts), [(0, hosts - 1)], transport(**control), packets=packets, **queues)
    row = run_session("both", case, (0.0, 2.0)).row
    assert row["flows_complete"] == 1 and row["slowdown_mean"] == 1.0


def test_nothing_is_quicker_than_several_subflows_alone():
    """Each path has half of the host's rate: two subflows together are as fast as the host."""
    topology = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    topology = replace(topology, capacity=np.full(8, 0.5))
    slowdown = []
    for kind, subflows in (("mptcp", 2), ("tcp", 1), ("none", 2)):
        control = transport(kind, subflows=subflows, start_ms=0.0)
        case = session(topology, [(0, 2)], control, packets=400, queue_bytes=10**6)
        row = run_session("compiled", case, (0.0, 2.0)).row
        slowdown.append(row["slowdown_mean"])
        assert row["fct_ms_mean"] < (60 if subflows == 2 else 110)
    assert slowdown[0] == pytest.approx(1.0, abs=0.02) and slowdown[0] >= 1
    assert slowdown[1:] == [1.0, pytest.approx(1.0, abs=0.01)]


def senders_with(window: float, sent: int, state=ConnectionState.OPEN):
    """Rules of packets of one byte, and a sender whose packets 0 .. sent - 1 are under way."""
    control = transport("tcp", ack_path="instant")
    rules, senders = make_rules(control, 1, 1e-6), make_senders(1)
    opened(rules, senders, 0, 100, 0)
    senders.seq[["next", "high", "state"]][0] = sent, sent, state
    senders.win["cwnd"][0] = senders.window[0] = window
    return rules, senders


def test_a_timeout_halves_what_is_outstanding():
    """RFC 5681, equation 4; and what has been sent again by the timer holds the threshold where it is."""
    rules, senders = senders_with(window=40.0, sent=12)
    time_out(rules, senders, 0, 1000)
    assert senders.win[["ssthresh", "cwnd"]][0].tolist() == (6.0, 1.0)
    assert senders.seq[["next", "recover"]][0].tolist() == (0, 12)
    senders.seq["next"][0] = 1
    time_out(rules, senders, 0, 5000)
    assert senders.win[["ssthresh", "cwnd"]][0].tolist() == (6.0, 1.0)
    acknowledge(rules, senders, 0, 0, 1, 3, 100, False, 6000)
    senders.seq["next"][0], senders.window[0] = 8, 20.0
    time_out(rules, senders, 0, 9000)
    assert senders.win["ssthresh"][0] == 2.5 and senders.seq["recover"][0] == 12  # the highest one ever sent


def test_a_timeout_in_recovery_does_not_see_the_inflated_window():
    rules, senders = senders_with(window=16.0, sent=16)
    for duplicate in range(15):
        assert acknowledge(rules, senders, 0, 0, 1, 0, 100, False, duplicate) == (duplicate == 2)
    assert senders.win[["ssthresh", "cwnd"]][0].tolist() == (8.0, 8.0 + 15.0)
    senders.seq[["next", "high"]][0] = 23, 23
    time_out(rules, senders, 0, 1000)
    assert senders.win["ssthresh"][0] == 4.0


def test_a_law_of_ones_own():
    """One that never widens its window keeps what it starts with."""

    def stay(windows, rtts, i, credit, mss, memory, now):
        return 0.0

    control = replace(transport(ssthresh=4, init_window=4), law=law(stay))
    case = session(line(2), [(0, 1)], control)
    share = throughput(case)
    assert share[0] == pytest.approx(4 * 1000 / (3 * 1800), rel=0.02)


def test_a_law_that_cannot_be_compiled_is_named():
    def wrong(windows, rtts, i, credit, mss, memory, now):
        return open("x")

    with pytest.raises(SpecError, match=r"grow \(.*test_datagram.py:\d+\) cannot be compiled"):
        law(wrong)
    assert law(additive)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"control": transport("mptcp", subflows=8)}, "8 subflows of a pair .* no pair has more than 1 path"),
        ({"queue_bytes": 0}, "a queue must hold a packet"),
        ({"queue_bytes": 500}, "a packet does not fit into a queue of 500 bytes"),
        ({"control": transport(min_rto_ms=1e-5)}, "below the tick"),
        ({"control": transport(ack_path="reverse_path", ack_bytes=1500), "queue_bytes": 1000},
         "an acknowledgement does not fit"),
        ({"topology": replace(line(2), capacity=np.array([1.0, 1e-5])), "control": transport(ack_path="reverse_path")},
         "a packet may be in flight for"),
        ({"pairs": [(0, 0)]}, "host 0 would send to itself"),
        ({"routing": {"kind": "minimal"}, "draw": "limited"}, "limited needs a routing of whole paths"),
        ({"pairs": np.zeros((0, 2), int)}, "no host sends anything"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong, says):
    keys = {"topology": line(2), "pairs": [(0, 1)], **wrong}
    with pytest.raises(SpecError, match=says):
        session(**keys)


def test_unknown_laws_are_refused_with_the_choices():
    with pytest.raises(SpecError) as error:
        make("transport", kind="tpc")
    sprayed = {"constant", "ndp", "nscc", "nscc_rccc", "rccc", "several"}
    rdma = {"dcqcn", "hpcc", "roce", "swift", "timely"}
    assert [choice.partition(" (")[0] for choice in error.value.choices] == sorted(
        {"dctcp", "mptcp", "none", "tcp"} | sprayed | rdma
    )


def test_flow_rows_name_paths():
    topology = build("rrg", hosts=2, n=6, degree=3, seed=4)
    case = session(topology, [(0, 7)], transport("mptcp", subflows=2), routing={"kind": "ksp", "k": 3})
    rows = run_session("compiled", case, (0.1, 0.3)).detail["flows"]
    assert [row["subflow"] for row in rows] == ["", 0, 1]
    assert rows[0]["received_bytes"] == rows[1]["received_bytes"] + rows[2]["received_bytes"]
    assert all(row["path"].startswith("0-") and row["path"].endswith("-3") for row in rows[1:])
    assert rows[1]["path"] != rows[2]["path"]


def test_unused_traffic_pattern_is_fixed():
    topology = line(2, hosts=2)
    traffic = fixed_traffic("shift", topology, np.array([2, 3, 0, 1]))
    flows = long_lived(traffic, 2)
    assert flows.source.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert flows.destination.tolist() == [2, 2, 3, 3, 0, 0, 1, 1]
