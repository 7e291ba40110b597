# SPDX-License-Identifier: Apache-2.0
"""Programs whose messages are sprayed: closed forms, both engines alike, several jobs, and what is refused."""

import csv

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.fluid.makespan import makespan_bounds
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.spray import Spray
from flitlab.models.transport.fabric import Fabric
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines.base import MessageDropped
from flitlab.sim.engines.start import start
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure.application import ProgramMeasure, measure_program
from flitlab.sim.measure.unfinished import UnfinishedError
from tests.scenarios import build, line
from tests.sim.test_application_datagram import calc, program, programs, receive, send
from tests.sim.test_application_engines import DONE

MTU, HEADER, LINK = 4150, 64, 12_500
"""Bytes of a full packet and of its header; ticks of a link's delay of 1 us at 100 Gb/s."""


def scenario(
    topology, work, *, rendezvous=1 << 40, overhead_ns=0.0, host=None, routing=None, done=None, fabric=None,
    **transport,
) -> Scenario:  # fmt: skip
    host = np.arange(work.ranks) if host is None else np.array(host)
    given = Spray(make("transport", **{"kind": "nscc", **transport}), fabric or Fabric())
    workload = Workload(work, host, given.messages(topology, rendezvous, overhead_ns, **(done or {})))
    routes = make("routing", **(routing or {"kind": "ecmp"})).build(topology)
    return Scenario(Instance(topology, traffic_of(work, host, topology), routes), given, workload)


def run_through(case: Scenario, engine="reference", seed=1):
    """A run, until the program is through."""
    run = start(engine, case, 1.0, seed)
    for tick in range(100_000, 200_000_000, 100_000):
        run.advance(tick)
        if run.done():
            return run
    raise AssertionError("the program does not come to its end")


def alone(size: int, links: int, fabric: Fabric | None = None) -> int:
    """Ticks of a message over some links of the same rate, within the first window: a pipeline of its packets."""
    packets = max(1, -(-size // (MTU - HEADER)))
    last = size - (packets - 1) * (MTU - HEADER) + HEADER
    first = MTU if packets > 1 else last
    return links * (first + LINK) + max(packets - 2, 0) * MTU + (last if packets > 1 else 0)


@pytest.mark.parametrize("size", [0, 1, 4086, 4087, 8172, 100_000])
@pytest.mark.parametrize("kind", ["nscc", "rccc", "ndp", "dctcp", "none"])
def test_a_message_alone_is_a_pipeline_of_its_packets(size, kind):
    keys = {"init_window": 30} if kind in ("ndp", "dctcp") else {}
    case = scenario(line(2), program([[send(1, size)], [receive(0, size)]]), kind=kind, **keys)
    execution = run_through(case).execution()
    assert execution.delivered[0] == execution.finish[1] == alone(size, 3)
    assert execution.finish[0] == alone(size, 1) - LINK - min(size + HEADER, _last(size)) + 1  # its last packet leaves


def _last(size: int) -> int:
    """Bytes of the last packet of a message."""
    return (size - 1) % (MTU - HEADER) + 1 + HEADER if size else HEADER


def test_sends_are_done_when_the_configuration_says():
    work = program([[send(1, 50_000), send(1, 10, 0)], [receive(0, 50_000), receive(0, 10)]])
    buffered, confirmed = ({"buffered": True}, {"confirmed": True})
    execution = run_through(scenario(line(2), work, done=buffered)).execution()
    assert execution.finish[0] == execution.queued[1] == 0
    execution = run_through(scenario(line(2), work, done=confirmed)).execution()
    assert execution.finish[0] == execution.queued[1] == execution.delivered[0] == alone(50_000, 3)


def test_rendezvous_takes_three_trips_and_overheads_are_paid():
    """A tick is 0.08 ns. Requests and consents have no payload; each is answered before the next message leaves."""
    work = program([[send(1, 3000)], [receive(0, 3000)]])
    execution = run_through(scenario(line(2), work, rendezvous=2999, overhead_ns=80.0)).execution()
    there = 1000 + 2 * (alone(0, 3) + HEADER) + alone(3000, 3)
    assert execution.queued[0] == 1000 and execution.delivered[0] == there
    assert execution.finish.tolist() == [there, there + 1000]


@pytest.mark.parametrize("hosts", [3, 5])
def test_the_rounds_of_a_ring_follow_each_other(hosts):
    """At one switch: a round takes a message of one packet, which leaves after the answer to the one before."""
    size, rounds = 4000, 2 * (hosts - 1)
    ranks = []
    for r in range(hosts):
        mine = []
        for k in range(rounds):
            mine += [send((r + 1) % hosts, size, *([2 * k - 1] if k else [])), receive((r - 1) % hosts, size)]
        ranks.append(mine)
    case = scenario(line(1, hosts=hosts), program(ranks))
    execution = run_through(case).execution()
    assert execution.finish.max() == rounds * alone(size, 2) + (rounds - 1) * HEADER


def test_messages_of_one_pair_are_flows_of_their_own():
    """Two messages in a row share the host in turn, so that the short one overtakes the long one."""
    work = program([[send(1, 200_000), send(1, 1000)], [receive(0, 200_000), receive(0, 1000)]])
    case = scenario(line(2), work)
    run = run_through(case)
    delivered = run.execution().delivered
    assert delivered[1] < delivered[0] == alone(200_000, 3) + 1000 + HEADER
    assert (run.counters().flow[:, FlowCount.COMPLETE] == delivered[:2]).all()


def test_nothing_happens_in_an_hour_of_calculation():
    """A heap of timers has no entry meanwhile, and the second message is as fast as the first."""
    hour = 30 * 10**9
    work = program([[send(1, 100), calc(hour, 0), send(1, 100, 1)], [receive(0, 100), receive(0, 100, 0)]])
    run = start("reference", scenario(line(2), work))
    run.advance(int(hour / 0.08) + 100_000)
    execution = run.execution()
    assert run.done() and execution.delivered[2] - execution.queued[2] == alone(100, 3)


def test_a_loss_that_nobody_repairs_is_reported():
    work = program([[send(2, 400_000)], [send(2, 400_000)], [receive(0, 400_000), receive(1, 400_000)]])
    case = scenario(line(1, hosts=3), work, kind="none", fabric=Fabric(queue_bytes=20_000))
    with pytest.raises(MessageDropped, match=r"^packets of messages were dropped, and transport none retransmits none"):
        run_through(case)
    with pytest.raises(UnfinishedError, match=r"retransmits none.*; waiting: operation 0 of rank"):
        measure_program(start("reference", case), case, 1.0, ProgramMeasure())


def test_two_flows_of_a_message_are_refused():
    case = scenario(line(2), program([[send(1, 5)], [receive(0, 5)]]), flows=2)
    with pytest.raises(SpecError, match="a message of a program is one flow"):
        case.switching.session(case.instance, case.work, 1.0, 1)


TRANSPORTS = [
    {"kind": "nscc", "paths": 8}, {"kind": "nscc", "spread": "reps", "timeout_us": 20.0},
    {"kind": "rccc", "oversubscription": 2.0}, {"kind": "rccc", "spread": "bitmap"}, {"kind": "nscc_rccc"},
    {"kind": "ndp"}, {"kind": "dctcp"}, {"kind": "constant", "init_window": 60}, {"kind": "none", "rate": 0.3},
]  # fmt: skip


@pytest.mark.long  # it needs a kernel of its own
@given(programs(), st.sampled_from(TRANSPORTS), st.data())
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_engines_agree_on_every_packet_and_operation(work, transport, data):
    none = transport["kind"] == "none"
    fabric = Fabric(
        mtu_bytes=data.draw(st.sampled_from([300, 1500, 4150])),
        link_us=data.draw(st.sampled_from([0.0, 0.3, 5.0])),
        queue_bytes=10**6 if none else data.draw(st.sampled_from([None, 4150, 20_000])),
        trim=data.draw(st.booleans()),
        at_switch="ecmp",
    )
    topology = data.draw(st.sampled_from([line(3, hosts=2), build("rrg", hosts=1, n=6, degree=3, seed=4)]))
    case = scenario(
        topology, work, rendezvous=data.draw(st.sampled_from([0, 2000, 1 << 40])),
        overhead_ns=data.draw(st.sampled_from([0.0, 700.0])), host=data.draw(st.permutations(range(6)))[: work.ranks],
        routing={"kind": "ksp", "k": 3} if topology.kind == "rrg" else None, done=data.draw(st.sampled_from(DONE)),
        fabric=fabric, **transport,
    )  # fmt: skip
    run = run_through(case, "both", data.draw(st.integers(0, 99)))
    execution, counters = run.execution(), run.counters()
    run.carried()
    session = run.session
    assert (counters.flow[:, FlowCount.COMPLETE] >= 0).all()
    wire = (session.flows.packets - 1) * fabric.mtu_bytes + session.flows.last_size
    assert (counters.flow[:, FlowCount.RECEIVED] == wire).all()
    sends = np.flatnonzero(work.kind == Op.SEND)
    assert (execution.delivered[sends] > execution.queued[sends]).all()
    assert execution.finish.max() >= makespan_bounds(case).ticks - 1e-6


@pytest.mark.long  # it needs a kernel of its own
def test_pausing_changes_nothing():
    work = program([[send((r + 1) % 4, 300_000), receive((r - 1) % 4, 300_000)] for r in range(4)])
    case = scenario(line(4), work, kind="rccc")
    whole, parts = (start("compiled", case, 1.0, 3, log=True) for _ in range(2))
    whole.advance(1_000_000)
    for tick in range(0, 1_000_001, 12_345):
        parts.advance(tick)
    parts.advance(1_000_000)
    assert whole.done()
    np.testing.assert_array_equal(np.column_stack(whole.trace()), np.column_stack(parts.trace()))
    np.testing.assert_array_equal(whole.execution().finish, parts.execution().finish)


@pytest.mark.long  # it needs a kernel of its own
def test_engines_agree_on_an_incast_that_trims():
    senders = 7
    ranks = [[send(senders, 100_000), receive(senders, 10), send(senders, 50_000, 1)] for _ in range(senders)]
    last = [receive(r, 100_000) for r in range(senders)]
    last += [send(r, 10, r) for r in range(senders)] + [receive(r, 50_000) for r in range(senders)]
    case = scenario(line(2, hosts=4), program([*ranks, last]), fabric=Fabric(queue_bytes=5 * MTU))
    run = run_through(case, "both")
    run.execution()
    assert run.counters().link[:, LinkCount.TRIMMED].sum() > 20


JOBS = """\
experiment: application
topology: {kind: mesh, dims: [4]}
routing: {kind: ecmp}
switching: {mode: spray}
application:
  - {name: a, kind: broadcast, ranks: 2, size_bytes: 2MB, algorithm: binomial, placement: {kind: file, path: a.csv}}
  - name: b
    kind: broadcast
    ranks: 2
    size_bytes: 2MB
    algorithm: binomial
    placement: {kind: file, path: b.csv}
    start_us: 7
messages: {rendezvous_bytes: null}
engine: ENGINE
"""


def jobs(folder, second: str, engine: str = "reference") -> list[dict[str, str]]:
    """Rows of jobs.csv: the first job sends from host 0 to 2."""
    (folder / "a.csv").write_text("0\n2\n")
    (folder / "b.csv").write_text(second)
    (folder / "jobs.yaml").write_text(JOBS.replace("ENGINE", engine))
    report = run(read(folder / "jobs.yaml", []), folder / "run")
    assert report.exit_code == 0, report.problems
    with (folder / "run" / "jobs.csv").open() as lines:
        return list(csv.DictReader(lines))


def test_two_jobs_on_one_channel_take_twice_as_long(tmp_path):
    found = jobs(tmp_path, "1\n3\n")
    for row in found:
        assert 1.8 < float(row["slowdown"]) < 2.1, row
        assert float(row["alone_ns"]) == pytest.approx(alone(2_000_000, 4) * 0.08)
        assert 0.9 < float(row["bound_ns"]) / float(row["alone_ns"]) <= 1.0


def test_jobs_that_share_no_channel_see_little_of_each_other(tmp_path):
    """Only answers of one are in the way of the other's data."""
    for row in jobs(tmp_path, "3\n1\n"):
        assert 1 <= float(row["slowdown"]) < 1.01
