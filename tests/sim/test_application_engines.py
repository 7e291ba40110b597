# SPDX-License-Identifier: Apache-2.0
"""Programs in the packet engines: both give the same operations and packets, and what they give is what was written."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.application.messages import Messages, packets_of, ticks_of, total_flits
from flitlab.models.application.program import Op, Program
from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic
from flitlab.sim.engines.base import Cause, Execution, Scalar
from flitlab.sim.engines.compare import compare_executions, compare_logs
from flitlab.sim.engines.start import start
from tests.programs import messages, program
from tests.scenarios import (
    TIMES,
    build,
    line,
    one_way_ring,
    reference,
    scenario,
)

SLOW = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
MODES = ["vct", "wormhole", "deflection"]

pytestmark = pytest.mark.long  # programs on packets need a kernel for each discipline


def random_program(rng: np.random.Generator, ranks: int, operations: int, packet_bytes: int, cpus: int) -> Program:
    """A program that never waits for itself: operations wait only for what was put down before them.

    Half of the programs give every message a tag of its own, and then number each rank's operations at random.
    """
    rows: list[list[tuple]] = [[] for _ in range(ranks)]
    sizes = [0, 1, packet_bytes - 1, packet_bytes, packet_bytes + 1, 5 * packet_bytes + packet_bytes // 2]
    renumbered = rng.random() < 0.5

    def needs(rank):
        picked = rng.permutation(len(rows[rank]))[: rng.integers(4)]
        return [(int(i), bool(rng.random() < 0.3)) for i in picked]

    for number in range(operations):
        rank, peer = (int(r) for r in rng.integers(ranks, size=2))
        if rng.random() < 0.3:
            ns = int(rng.choice([0, 1, 7, 100, 3000]))
            rows[rank].append((Op.CALC, ns, -1, 0, int(rng.integers(cpus)), needs(rank)))
            continue
        size, tag = int(rng.choice(sizes)), number if renumbered else 0
        ends = [
            (rank, (Op.SEND, size, peer, tag, int(rng.integers(cpus)), needs(rank))),
            (peer, (Op.RECV, size, rank, tag, int(rng.integers(cpus)), needs(peer))),
        ]
        for place, operation in ends:
            rows[place].append(operation)
    return program([_renumber(rng, row) for row in rows] if renumbered else rows)


def _renumber(rng: np.random.Generator, row: list[tuple]) -> list[tuple]:
    order = rng.permutation(len(row))
    place = np.argsort(order).tolist()
    return [(*row[i][:5], [(place[other], early) for other, early in row[i][5]]) for i in order]


DONE = [{}, {}, {"buffered": True}, {"confirmed": True}]
"""Rules for when an eager send is done."""


def with_program(case: Scenario, what: Program, how: Messages, host=None) -> Scenario:
    """The scenario with hosts that run a program, rank r on host r unless ``host`` says otherwise."""
    hosts = np.arange(what.ranks) if host is None else np.asarray(host)
    return replace(case, work=Workload(what, hosts.astype(np.int64), how))


@st.composite
def applications(draw, scenarios) -> Scenario:
    """A random program on some hosts of a random network."""
    case, rng = draw(scenarios), np.random.default_rng(draw(st.integers(0, 2**32)))
    flits = max(case.source.flits)
    header = int(rng.integers(min(flits, 3)))
    packet_bytes = (flits - header) * 8 - int(rng.integers(4))
    how = messages(
        packet_bytes=packet_bytes, header_flits=header, packet_flits=flits,
        whole=isinstance(case.switching, Deflection),
        rendezvous=int(rng.choice([0, packet_bytes, 3 * packet_bytes, 1 << 40])), overhead=int(rng.integers(4)),
        tick_ns=Fraction(*(int(part) for part in rng.choice([[1, 1], [32, 5], [3, 2]]))),
        **DONE[int(rng.integers(4))],
    )  # fmt: skip
    hosts = case.topology.hosts
    ranks = int(rng.integers(2, min(hosts, 6) + 1))
    what = random_program(rng, ranks, draw(st.integers(1, 60)), packet_bytes, int(rng.integers(1, 3)))
    return with_program(case, what, how, rng.permutation(hosts)[:ranks])


def finish(run, ticks: int = 1 << 16) -> bool:
    """Advance until the program is done; whether it ever is."""
    tick = 0
    while not run.done() and tick < ticks:
        tick += 257
        run.advance(tick)
    return run.done()


SAFE = st.one_of(
    st.builds(
        lambda topology, routing, mode, vcs: scenario(topology, routing=routing, mode=mode, vcs=vcs),
        st.sampled_from([build("imase", hosts=2, n=9, degree=2), build("torus", dims=[3, 3])]),
        st.sampled_from([{"kind": "minimal", "select": select} for select in ("random", "hash", "adaptive")]),
        st.sampled_from(["vct", "wormhole"]),
        st.integers(5, 6),
    ),
    st.builds(
        lambda topology, hold: scenario(topology, routing={"kind": "deflection"}, hold_packets=hold),
        st.sampled_from([build("mddp", n=12, degree=3, seed=2), one_way_ring(5)]),
        st.sampled_from([4, 40]),
    ),
)


@given(applications(SAFE), st.integers(0, 2**40))
@settings(SLOW, max_examples=200)
def test_programs_end_as_they_were_written(case, seed):
    run = start("compiled", case, 1.0, seed)
    assert finish(run)
    check_execution(case.work, run.execution())
    check_conservation(case.work, run)


@given(applications(SAFE), st.integers(1, 2**20))
@settings(SLOW, max_examples=40)
def test_order_of_creation_is_immaterial(case, shuffle):
    runs = [reference(case, 1.0, 3, log=True, shuffle=order) for order in (0, shuffle)]
    for run in runs:
        run.advance(1000)
    compare_executions(*(run.execution() for run in runs))
    compare_logs(*(run.log() for run in runs), tick=1000)


def check_execution(workload: Workload, got: Execution) -> None:
    """Operations began and ended exactly when docs/applications.md says, given when messages were delivered."""
    what, how = workload.program, workload.messages
    hold = np.full(what.operations, how.overhead)
    is_calc, is_send, is_receive = (what.kind == kind for kind in (Op.CALC, Op.SEND, Op.RECV))
    unit = how.tick_ns
    hold[is_calc] = [ticks_of(int(ns), unit.numerator, unit.denominator) for ns in what.amount[is_calc]]

    due = np.zeros(what.operations, np.int64)
    begun = np.where(is_receive, got.ready, got.start)
    for operation in range(what.operations):
        for entry in what.successor[what.after[operation] : what.after[operation + 1]]:
            waiting, early = divmod(int(entry), 2)
            due[waiting] = max(due[waiting], (begun if early else got.finish)[operation])
    np.testing.assert_array_equal(got.ready, due)

    late = is_send & (what.amount > how.rendezvous)
    eager = is_send & ~late & (what.rank != what.peer)
    confirmed, leaves = eager & how.confirmed, eager & (not how.buffered) & (not how.confirmed)
    delivered = np.where(is_receive, got.delivered[what.partner], -1)
    asked = np.maximum(got.ready, delivered)
    assert (got.finish[leaves] >= got.queued[leaves] + total_flits(what.amount[leaves], how)).all()
    assert (got.finish[leaves] <= got.delivered[leaves]).all()
    done = np.where(late | confirmed, got.delivered, np.where(leaves, got.finish, got.start + hold))
    np.testing.assert_array_equal(got.finish, done)
    np.testing.assert_array_equal(got.queued, np.where(is_send, got.start + hold, -1))
    assert (got.delivered[is_send] > got.queued[is_send]).all()
    assert (got.delivered[late] >= got.ready[what.partner[late]] + 2).all()
    assert (got.delivered[~is_send] == -1).all()

    served = defaultdict(list)
    for o in range(what.operations):
        served[what.rank[o], what.cpu[o]].append((asked[o], o))
    for operations in served.values():
        for asked_at, o in operations:
            others = [p for _, p in operations if p != o and got.start[p] <= asked_at < got.start[p] + hold[p]]
            assert len(others) <= 1  # one at a time
            assert got.start[o] == asked_at or (got.start[o] > asked_at and others)
        for earlier, o in operations:
            assert all(got.start[o] + hold[o] <= got.start[p] for later, p in operations if earlier < later)

    happened = {Cause.FINISHED: got.finish, Cause.STARTED: begun, Cause.MESSAGE: got.delivered}
    for o in range(what.operations):
        other, why = divmod(int(got.cause[o]), 4)
        if got.cause[o] == -1:
            assert what.need[o] == 0 and got.start[o] == asked[o] == 0
        elif why == Cause.PROCESSOR:
            assert got.start[o] == got.start[other] + hold[other] > asked[o]
        else:
            assert got.start[o] == asked[o] == happened[why][other]


def check_conservation(workload: Workload, run) -> None:
    """Every packet of every message, and of requests and consents, was delivered once; what was sent was carried."""
    what, how = workload.program, workload.messages
    sends = np.flatnonzero((what.kind == Op.SEND) & (what.rank != what.peer))
    packets = sum(int(packets_of(int(size), how.packet_bytes)) for size in what.amount[sends])
    packets += 2 * int((what.amount[sends] > how.rendezvous).sum())
    counts = run.scalars()
    assert counts[Scalar.DELIVERED_PACKETS] == packets
    assert counts[Scalar.DELIVERED_FLITS] == counts[Scalar.CREATED_FLITS]
    assert run.snapshot().present.pairs.total == 0
    np.testing.assert_array_equal(run.carried(), run.snapshot().channel_flits)


# Closed forms


def latency(hops: int, flits: int) -> int:
    """Zero-load latency of a packet, or of packets one behind the other with a total of flits."""
    t = TIMES
    once = t["injection"] + t["ejection"] + (hops + 1) * (t["header"] + t["switch"]) + hops * t["link"]
    return once + flits - 1


def network(topology: Topology, mode: str) -> Scenario:
    if mode == "deflection":
        return scenario(topology, routing={"kind": "deflection"}, hold_packets=64)
    return scenario(topology, mode=mode, vcs=6, buffer_flits=64)


def executed(case: Scenario, ticks: int = 1 << 16) -> Execution:
    """What became of the operations of a program that ends, in both engines."""
    run = start("both", case, 1.0, 1)
    run.advance(ticks)
    run.snapshot()
    assert run.done()
    return run.execution()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [0, 5, 32, 33, 100, 128])
def test_ping_pong(mode, size):
    how = messages(whole=mode == "deflection", overhead=3)
    there = [(Op.SEND, size, 1, 0, 0, []), (Op.RECV, size, 1, 0, 0, [(0, False)])]
    back = [(Op.RECV, size, 0, 0, 0, []), (Op.SEND, size, 0, 0, 0, [(0, False)])]
    got = executed(with_program(network(line(4), mode), program([there, back]), how, [0, 3]))
    flits = 4 * packets_of(size, 32) if how.whole else max(1, -(-size // 8))
    assert got.finish[1] == 2 * (latency(3, flits) + 2 * how.overhead)


@pytest.mark.parametrize("mode", MODES)
def test_rendezvous(mode):
    how = messages(whole=mode == "deflection", rendezvous=99, overhead=2)
    late = [(Op.CALC, 1000, -1, 0, 1, []), (Op.RECV, 100, 0, 0, 0, [(0, False)])]
    got = executed(with_program(network(line(3), mode), program([[(Op.SEND, 100, 1, 0, 0, [])], late]), how, [0, 2]))
    control, data = (4, 16) if how.whole else (1, 13)
    assert got.queued[0] == 2
    assert got.delivered[0] == got.finish[0] == 1000 + latency(2, control) + latency(2, data)
    assert got.finish[2] == got.finish[0] + 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("topology", [one_way_ring(5), build("torus", dims=[6])], ids=["one-way", "two-way"])
def test_ring_all_reduce(mode, topology):
    ranks, size = topology.switches, 32
    rows = []
    for rank in range(ranks):
        row = []
        for _ in range(2 * (ranks - 1)):
            row.append((Op.SEND, size, (rank + 1) % ranks, 0, 0, [(len(row) - 1, False)] if row else []))
            row.append((Op.RECV, size, (rank - 1) % ranks, 0, 0, [(len(row) - 2, False)] if len(row) > 1 else []))
        rows.append(row)
    got = executed(with_program(network(topology, mode), program(rows), messages(whole=mode == "deflection")))
    assert (got.finish[np.arange(1, ranks + 1) * 4 * (ranks - 1) - 1] == 2 * (ranks - 1) * latency(1, 4)).all()


@pytest.mark.parametrize("mode", MODES)
def test_messages_of_a_host_take_turns(mode):
    rows = [
        [(Op.SEND, 320, 1, 0, 0, []), (Op.SEND, 64, 2, 0, 0, [])],
        [(Op.RECV, 320, 0, 0, 0, [])],
        [(Op.RECV, 64, 0, 0, 0, [])],
    ]
    case = with_program(network(line(3), mode), program(rows), messages(whole=mode == "deflection"), [1, 0, 2])
    got = executed(case)
    assert got.delivered[1] == latency(1, 16)  # its second packet is the fourth
    assert got.delivered[0] == latency(1, 48)
    assert got.finish[:2].tolist() == [48, 16]


@pytest.mark.parametrize("mode", MODES)
def test_an_eager_send_is_done_when_its_last_flit_has_left(mode):
    """Buffered, it is done at once, and the message that waits for it takes turns; confirmed, when it is there."""
    rows = [
        [(Op.SEND, 320, 1, 0, 0, []), (Op.SEND, 64, 2, 0, 0, [(0, False)])], [(Op.RECV, 320, 0, 0, 0, [])],
        [(Op.RECV, 64, 0, 0, 0, [])],
    ]  # fmt: skip
    for rule in (DONE[1], *DONE[2:]):
        how = messages(whole=mode == "deflection", overhead=2, **rule)
        got = executed(with_program(network(line(3), mode), program(rows), how, [1, 0, 2]))
        if "buffered" in rule:
            assert got.finish[:2].tolist() == [2, 4]
            assert got.delivered[0] == 2 + latency(1, 48)
        elif "confirmed" in rule:
            first = 2 + latency(1, 40)
            assert got.finish[:2].tolist() == got.delivered[:2].tolist() == [first, first + 2 + latency(1, 8)]
        else:
            assert got.finish[:2].tolist() == [2 + 40, 2 + 40 + 2 + 8]
            assert got.delivered[:2].tolist() == [2 + latency(1, 40), 44 + latency(1, 8)]


def test_a_rank_talks_to_itself_without_the_network():
    rows = [
        [
            (Op.SEND, 500, 0, 0, 0, []),
            (Op.RECV, 500, 0, 0, 0, []),
            (Op.SEND, 100, 0, 0, 0, []),
            (Op.RECV, 100, 0, 0, 0, []),
        ]
    ]
    case = with_program(network(line(2), "vct"), program(rows), messages(rendezvous=200))
    got = executed(case)
    assert got.delivered.tolist() == [3, -1, 1, -1]


def test_a_program_may_send_nothing():
    topology = line(2)
    nothing = Traffic("nothing", topology, DestinationRule.TABLE, np.zeros(2), start=np.zeros(3, np.int64))
    rows = [[(Op.CALC, 7, -1, 0, 0, []), (Op.CALC, 5, -1, 0, 0, [(0, True)]), (Op.CALC, 0, -1, 0, 1, [(1, False)])]]
    case = with_program(network(topology, "vct"), program(rows), messages())
    got = executed(replace(case, instance=replace(case.instance, traffic=nothing)))
    assert got.start.tolist() == [0, 7, 12]
    assert got.cause.tolist() == [-1, 0 * 4 + Cause.PROCESSOR, 1 * 4 + Cause.FINISHED]


@pytest.mark.parametrize("mode", MODES)
def test_idle_time_costs_nothing(mode):
    rows = [[(Op.CALC, 1 << 29, -1, 0, 0, []), (Op.SEND, 32, 1, 0, 0, [(0, False)])], [(Op.RECV, 32, 0, 0, 0, [])]]
    case = with_program(network(line(2), mode), program(rows), messages(whole=mode == "deflection"))
    assert executed(case, 1 << 30).finish[2] == (1 << 29) + latency(1, 4)


def test_more_ticks_than_are_counted():
    case = with_program(network(line(2), "vct"), program([[(Op.CALC, 1 << 31, -1, 0, 0, [])]]), messages())
    run = start("compiled", case, 1.0, 1)
    with pytest.raises(ValueError, match=r"2\*\*30 ticks"):
        run.advance(1 << 32)
