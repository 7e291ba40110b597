# SPDX-License-Identifier: Apache-2.0
"""Programs over datagrams: both engines alike, every message once and in order, and what theory says of small cases."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.application.matching import match
from flitlab.models.application.messages import packets_of
from flitlab.models.application.program import Op, Program, Step
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.transport.failures import LinkFailures
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines.base import MessageDropped
from flitlab.sim.engines.start import start
from flitlab.sim.engines.transport.datagram import SubflowCount
from tests.scenarios import build, line
from tests.sim.test_application_engines import DONE

ECMP = {"kind": "ecmp", "ways": 8, "routed": "source"}
pytestmark = pytest.mark.long  # they need a kernel of their own

LINK = 1800
"""Ticks that a packet takes for a link of the default queues: 1000 bytes and 100 us at 64 Mbit/s."""


def program(ranks: list[list[tuple]]) -> Program:
    """From each rank's operations (kind, amount, peer, [(operation of the rank that it needs, early), ...])."""
    start = np.cumsum([0, *map(len, ranks)]).astype(np.int64)
    rows = [operation for rank in ranks for operation in rank]
    first = np.repeat(start[:-1], np.diff(start)).tolist()
    waiting: list[list[int]] = [[] for _ in rows]
    for o, operation in enumerate(rows):
        for other, early in operation[3]:
            waiting[first[o] + other].append(2 * o + early)
    kind = np.array([operation[0] for operation in rows], np.int8)
    amount = np.array([operation[1] for operation in rows], np.int64)
    peer = np.array([operation[2] for operation in rows], np.int32)
    zero, need = np.zeros(len(rows), np.int32), np.array([len(operation[3]) for operation in rows], np.int32)
    after = np.cumsum([0, *map(len, waiting)]).astype(np.int64)
    successor = np.array([entry for mine in waiting for entry in mine], np.int64)
    return Program(
        start, kind, amount, peer, zero, zero.astype(np.int16), zero, match(start, kind, peer, zero), need, after,
        successor, (Step("all"),),
    )  # fmt: skip


def send(to: int, size: int, *needs: int) -> tuple:
    return Op.SEND, size, to, [(need, 0) for need in needs]


def receive(source: int, size: int, *needs: int) -> tuple:
    return Op.RECV, size, source, [(need, 0) for need in needs]


def calc(ns: int, *needs: int) -> tuple:
    return Op.CALC, ns, -1, [(need, 0) for need in needs]


def scenario(
    topology, work, kind="tcp", *, rendezvous=1 << 40, overhead_ns=0.0, routing=None, host=None, queues=None,
    failures=None, done=None, **keys,
) -> Scenario:  # fmt: skip
    queues = queues or Queues()
    host = np.arange(work.ranks) if host is None else np.array(host)
    routing = make("routing", **(routing or ECMP))
    given = Datagram(
        make("transport", kind=kind, **keys), queues, routing, PathDraw.WITH_REPLACEMENT, failures=failures
    )
    workload = Workload(work, host, given.messages(topology, rendezvous, overhead_ns, **(done or {})))
    return Scenario(Instance(topology, traffic_of(work, host, topology), routing.build(topology)), given, workload)


def session_of(case: Scenario[Datagram]):
    return case.switching.session(case.instance, case.work, 1.0, 1)


def run_through(case: Scenario, engine="both", seed=1, most=60):
    """A run, until the program ends; at most ``most`` times ten million ticks."""
    run = start(engine, case, 1.0, seed)
    for k in range(1, 10 * most):
        run.advance(k * 1_000_000)
        if run.done():
            return run
    raise AssertionError("the program does not come to its end")


@st.composite
def programs(draw) -> Program:
    """Ranks that calculate and send each other messages; each operation waits for some before it."""
    count = draw(st.integers(2, 5))
    ranks: list[list[tuple]] = [[] for _ in range(count)]

    def add(rank: int, kind: int, amount: int, peer: int) -> None:
        mine = ranks[rank]
        needs = draw(st.sets(st.integers(max(0, len(mine) - 3), len(mine) - 1), max_size=2)) if mine else ()
        early = draw(st.integers(0, 1))
        mine.append((kind, amount, peer, [(need, early) for need in sorted(needs)]))

    for _ in range(draw(st.integers(1, 14))):
        if draw(st.integers(0, 3)) == 0:
            add(draw(st.integers(0, count - 1)), Op.CALC, draw(st.integers(0, 3_000_000)), -1)
            continue
        source, target = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        size = draw(st.sampled_from([0, 1, 1000, 1001, 7000, 40_000]))
        size = 0 if source == target else size  # a rank that waited for its own consent would wait for ever
        add(source, Op.SEND, size, target)
        add(target, Op.RECV, size, source)
    ranks[0].append(send(1, 500))
    ranks[1].append(receive(0, 500))
    return program(ranks)


TRANSPORTS = [
    ("none", {"rate": 0.3}),
    ("none", {"subflows": 2}),
    *(
        (kind, {"subflows": subflows, "ack_path": ack, "min_rto_ms": 5.0, "init_window": 2})
        for kind, subflows in (("tcp", 1), ("mptcp", 3), ("dctcp", 2))
        for ack in ("instant", "pure_delay", "reverse_path")
    ),
]


@given(programs(), st.sampled_from(TRANSPORTS), st.data())
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_engines_agree_on_every_packet_and_operation(work, control, data):
    kind, keys = control
    room = 200_000 if kind == "none" else data.draw(st.sampled_from([2000, 5000, 100_000]))
    queues = Queues(
        queue_bytes=room, random_drop=kind != "none", link_us=data.draw(st.sampled_from([0.0, 10.0, 300.0])),
        feeder_packets=data.draw(st.sampled_from([0, 0, 200])),
    )  # fmt: skip
    topology = data.draw(st.sampled_from([line(3, hosts=2), build("rrg", hosts=1, n=6, degree=3, seed=4)]))
    host = data.draw(st.permutations(range(6)))[: work.ranks]
    meshed = topology.kind == "rrg"
    failing = meshed and kind != "none" and data.draw(st.booleans())
    case = scenario(
        topology, work, kind, rendezvous=data.draw(st.sampled_from([0, 2000, 1 << 40])), host=host, queues=queues,
        overhead_ns=data.draw(st.sampled_from([0.0, 700.0])), routing={"kind": "ksp", "k": 3} if meshed else ECMP,
        failures=LinkFailures(1, 5.0, 10.0) if failing else None, done=data.draw(st.sampled_from(DONE)), **keys,
    )  # fmt: skip
    run = run_through(case, seed=data.draw(st.integers(0, 99)))
    execution, counters = run.execution(), run.counters()
    np.testing.assert_array_equal(run.carried(), run._reference.carried())
    assert (execution.finish >= execution.start).all() and (execution.start >= execution.ready).all()
    if not case.work.messages.buffered:
        assert_sends_are_done_in_time(case, execution)
    assert_every_message_once_and_in_order(case, execution, counters)


def assert_sends_are_done_in_time(case: Scenario, execution) -> None:
    """Eager sends, between the tick after the message has joined the queue and its delivery."""
    work = case.work.program
    apart = (work.kind == Op.SEND) & (work.rank != work.peer) & (work.amount <= case.work.messages.rendezvous)
    assert (execution.finish[apart] > execution.queued[apart]).all()
    assert (execution.finish[apart] <= execution.delivered[apart]).all()


def assert_every_message_once_and_in_order(case: Scenario, execution, counters) -> None:
    work, session = case.work.program, session_of(case)
    sends = np.flatnonzero(work.kind == Op.SEND)
    assert (execution.delivered[sends] >= execution.queued[sends]).all()
    size, forth, back = work.amount[sends], session.program.forth[sends], session.program.back[sends]
    packets = np.array([packets_of(amount, case.switching.queues.packet_bytes) for amount in size.tolist()])
    expected = np.zeros(len(session.flows.source), np.int64)
    np.add.at(expected, forth[forth >= 0], (packets + (back >= 0))[forth >= 0])
    np.add.at(expected, back[back >= 0], 1)
    received = np.add.reduceat(counters.subflow[:, SubflowCount.RECEIVED], session.first[:-1])
    np.testing.assert_array_equal(received, expected)
    eager = (back < 0) & (forth >= 0)
    for flow in np.unique(forth[eager]):
        mine = sends[eager & (forth == flow)]
        order = np.lexsort((mine, execution.queued[mine]))
        assert (np.diff(execution.delivered[mine[order]]) >= 0).all()


@pytest.mark.parametrize("kind", ["tcp", "mptcp", "dctcp", "none"])
def test_a_packet_takes_the_latency_of_the_textbook(kind):
    """Uplink, one channel, ejection: each a service and a delay, whatever the transport; connections are open."""
    keys = {} if kind != "mptcp" else {"subflows": 1}
    work = program([[send(1, 1000), receive(1, 10)], [receive(0, 1000), send(0, 10, 0)]])
    execution = run_through(scenario(line(2), work, kind, **keys)).execution()
    assert execution.delivered.tolist() == [3 * LINK, -1, -1, 6 * LINK]
    assert execution.finish.tolist() == [1, 6 * LINK, 3 * LINK, 3 * LINK + 1]


@pytest.mark.parametrize("kind", ["tcp", "none"])
def test_a_send_is_done_when_the_link_has_its_last_packet(kind):
    """Ten packets each to two hosts: the second message waits for the first to leave, or takes turns with it."""
    work = program([[send(1, 10_000), send(2, 10_000, 0)], [receive(0, 10_000)], [receive(0, 10_000)]])
    queues, routing = Queues(random_drop=False), {"kind": "minimal"}
    case = scenario(build("hyperx", dims=[3]), work, kind, queues=queues, routing=routing)
    execution = run_through(case).execution()
    given = 1 if kind == "tcp" else 9001  # the window admits all ten at once; without one there is one a service
    assert execution.finish[:2].tolist() == [given, 2 * given]
    assert execution.delivered[:2].tolist() == [3 * LINK + 9000, 3 * LINK + 19_000]


@pytest.mark.parametrize("ack_path", ["instant", "pure_delay", "reverse_path"])
def test_a_message_within_the_window_is_a_pipeline_of_its_packets(ack_path):
    work = program([[send(1, 8500)], [receive(0, 8500)]])
    execution = run_through(scenario(line(2), work, ack_path=ack_path), most=1).execution()
    assert execution.delivered[0] == 3 * LINK + 8 * 1000


def test_rendezvous_takes_three_trips_and_overheads_are_paid():
    """125 ns are a tick. The request leaves after the sender's overhead; the receiver pays when all is there."""
    work = program([[send(1, 3000)], [receive(0, 3000)]])
    case = scenario(line(2), work, rendezvous=2999, overhead_ns=1250.0)
    execution = run_through(case).execution()
    there = 10 + 9 * LINK + 2 * 1000
    assert execution.queued[0] == 10 and execution.delivered[0] == there
    assert execution.finish.tolist() == [there, there + 10]


def test_the_window_lasts_from_message_to_message():
    """What 60 packets have opened admits 30 at once, also after ten idle seconds; a new connection takes turns."""
    work = program(
        [[send(1, 60_000), calc(10_000_000_000, 0), send(1, 30_000, 1)], [receive(0, 60_000), receive(0, 30_000, 0)]]
    )
    execution = run_through(scenario(line(2), work, init_window=1, ack_path="pure_delay"), most=10).execution()
    took = execution.delivered - execution.queued
    assert took[2] == 3 * LINK + 29 * 1000
    short = program([[send(1, 30_000)], [receive(0, 30_000)]])
    first = run_through(scenario(line(2), short, init_window=1, ack_path="pure_delay"))
    assert first.execution().delivered[0] > took[2] + 3 * LINK


def test_a_lost_tail_is_sent_again_after_the_timeout():
    """An incast into a queue of three packets: the last of a message has none behind it that would tell of its loss."""
    ranks = [[send(6, 4000)] for _ in range(6)]
    work = program([*ranks, [receive(source, 4000) for source in range(6)]])
    queues = Queues(queue_bytes=3000)
    case = scenario(line(2, hosts=6), work, queues=queues, min_rto_ms=20.0)
    run = run_through(case)
    counts = run.counters().subflow
    assert counts[:, SubflowCount.TIMEOUTS].sum() > 0 and counts[:, SubflowCount.DROPPED].sum() > 0
    assert (counts[:, SubflowCount.SENT] > counts[:, SubflowCount.RECEIVED]).any()
    assert_every_message_once_and_in_order(case, run.execution(), run.counters())


def test_a_long_idle_program_costs_no_timers():
    """An hour of calculation between two messages: nothing is simulated in between, and the second one is on time."""
    hour = 3600 * 10**9
    work = program([[send(1, 100), calc(hour, 0), send(1, 100, 1)], [receive(0, 100), receive(0, 100, 0)]])
    run = start("compiled", scenario(line(2), work))
    run.advance(hour // 125 + 10_000)
    execution = run.execution()
    assert run.done() and execution.delivered[2] - execution.queued[2] == 3 * LINK


def test_a_loss_without_a_transport_is_reported():
    work = program([[send(2, 90_000)], [send(2, 90_000)], [receive(0, 90_000), receive(1, 90_000)]])
    case = scenario(line(1, hosts=3), work, "none", queues=Queues(queue_bytes=20_000))
    for engine in ("compiled", "reference"):
        with pytest.raises(
            MessageDropped, match=r"^packets of messages were dropped, and transport none retransmits none"
        ):
            run_through(case, engine)


def test_pausing_changes_nothing():
    work = program([[send((r + 1) % 4, 50_000), receive((r - 1) % 4, 50_000)] for r in range(4)])
    case = scenario(line(4), work, "mptcp", subflows=2)
    whole, parts = (start("compiled", case, 1.0, 3, log=True) for _ in range(2))
    whole.advance(1_000_000)
    for tick in range(0, 1_000_001, 12_345):
        parts.advance(tick)
    parts.advance(1_000_000)
    assert whole.done()
    np.testing.assert_array_equal(np.column_stack(whole.trace()), np.column_stack(parts.trace()))
    np.testing.assert_array_equal(whole.execution().finish, parts.execution().finish)


def test_two_connections_of_a_pair_are_refused():
    with pytest.raises(SpecError, match="a program has one connection"):
        session_of(scenario(line(2), program([[send(1, 5)], [receive(0, 5)]]), flows=2))
