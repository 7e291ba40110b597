# SPDX-License-Identifier: Apache-2.0
"""Programs over transports: a packet that waits for its timer is progress to come, and a true stall is still found."""

import numpy as np
import pytest

from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.transport.fabric import Fabric
from flitlab.models.transport.session import Queues
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import ProgramMeasure, measure_program
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.unfinished import UnfinishedError
from tests.scenarios import line
from tests.sim import test_application_spray as sprayed
from tests.sim.test_application import case_of
from tests.sim.test_application_datagram import LINK, program, receive, scenario, send

MS = 8000
"""Ticks of a millisecond at 64 Mbit/s."""

ALL_TO_ALL = """\
experiment: application
topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 4}
routing: {kind: ecmp, ways: 2}
switching: {mode: datagram}
transport: {kind: tcp}
application: {kind: all_to_all, ranks: 8, size_bytes: 1MB}
"""

ENGINES = ["reference", *(pytest.param(name, marks=pytest.mark.long) for name in ("compiled", "both"))]
"""A program over a transport needs compiled kernels of its own."""


def finish(engine: str, case: Scenario, seed: int = 1) -> int:
    """The tick in which a program ends; measured as ``simrun`` does."""
    run = start(engine, case, 1.0, seed)
    measure_program(run, case, 1.0, ProgramMeasure())
    return int(run.execution().finish.max())


def message(size: int):
    return program([[send(1, size)], [receive(0, size)]])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("min_rto_ms", "rto"), [(20.0, 20 * MS), (250.0, 250 * MS), (400_000.0, 400_000 * MS)])
def test_a_lost_tail_comes_after_the_retransmission_timeout(engine, min_rto_ms, rto):
    """The third of three packets finds two in its host's queue. RFC 6298: the timer restarts with every new ACK.

    The second packet, and its ACK, comes a service after the first. The third then goes over three links alone.
    """
    queues = Queues(queue_bytes=2000, random_drop=False)
    case = scenario(line(2), message(3000), queues=queues, min_rto_ms=min_rto_ms)
    assert finish(engine, case) == pytest.approx(3 * LINK + 1000 + rto + 3 * LINK, abs=1)  # the timer is rounded up


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dropped_packet_is_sent_again_at_twice_the_time_until_its_link_works(engine):
    """The link fails before the message and returns after 2.9 s: timeouts after 0.25, 0.75, 1.75 and 3.75 s."""
    case = scenario(line(2), message(1000), min_rto_ms=250.0)
    case = with_events(case, [fails(at_us=0.0), {"at_us": 2.9e6, "restore": {"links": [[0, 1]]}}])
    assert finish(engine, case) == pytest.approx(3750 * MS + 3 * LINK, abs=4)


def fails(at_us: float) -> dict:
    return {"at_us": at_us, "fail": {"links": [[0, 1]]}, "reroute_after": float("inf")}


def with_events(case: Scenario, events: list[dict]) -> Scenario:
    """The scenario with what happens to the link between two switches."""
    tick_ns = case.switching.tick_ns(case.topology, None)
    routing = getattr(case.switching, "routing", None)
    parts = [Event(**event) for event in events]
    routes: Routes | None = case.instance.routes
    timeline = make_timeline(case.topology, parts, routing, routes, tick_ns, None)
    return Scenario(case.instance, case.switching, case.work, timeline)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ack_path", ["instant", "reverse_path"])
def test_a_link_that_never_works_again_is_a_stall(engine, ack_path):
    """Ten timeouts in a row from 20 ms on take 20.46 s; the run ends long before ticks are not counted any more."""
    case = scenario(line(2), message(3000), min_rto_ms=20.0, ack_path=ack_path)
    case = with_events(case, [fails(at_us=0.0)])
    run = start(engine, case, 1.0, 1)
    with pytest.raises(UnfinishedError, match=r"no packet has reached its receiver .*\(0 in the network, 3 at hosts\)"):
        measure_program(run, case, 1.0, ProgramMeasure())
    assert run.counters().subflow.sum(axis=0)[5] > 10, "timeouts"
    assert run.counters().tick < 2**37


@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_that_wait_for_each_other_are_a_stall_at_once(engine):
    """Each sends only after it has received, but for a message that is under way and arrives."""
    work = program(
        [[receive(1, 10), send(1, 10, 0), send(1, 3000)], [receive(0, 10), send(0, 10, 0), receive(0, 3000)]]
    )
    case = scenario(line(2), work, queues=Queues(queue_bytes=2000, random_drop=False), min_rto_ms=20.0)
    run = start(engine, case, 1.0, 1)
    with pytest.raises(UnfinishedError, match="the program stalls: no message is in flight"):
        measure_program(run, case, 1.0, ProgramMeasure())
    assert run.execution().delivered[2] > 20 * MS, "its tail was lost meanwhile"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slow_constant_rate_is_no_stall(engine):
    """Two packets an hour apart: 64 Mbit/s * 1 / 28,800,000."""
    case = scenario(line(2), message(2000), "none", rate=1000 / (3600 * 1000 * MS))
    assert finish(engine, case) == pytest.approx(3600 * 1000 * MS + 3 * LINK, abs=1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("timeout_us", [30.0, 2e6])
def test_a_sprayed_packet_that_was_dropped_waits_for_its_timeout(engine, timeout_us):
    """Two hosts of a switch send a third a packet each at once, for whose queue two are too many; nothing is trimmed.

    The timer runs from the tick in which the packet begins to leave its host.
    """
    work = program([[send(2, 4000)], [send(2, 4000)], [receive(0, 4000), receive(1, 4000)]])
    fabric, packet = Fabric(queue_bytes=4064, mtu_bytes=4064, trim=False), 4064
    case = sprayed.scenario(line(1, hosts=3), work, fabric=fabric, timeout_us=timeout_us, paths=1)
    assert finish(engine, case) == round(timeout_us * 12_500) + 2 * (packet + sprayed.LINK)


@pytest.mark.parametrize("engine", ENGINES)
def test_sprayed_packets_over_a_link_that_never_works_again_are_a_stall(engine):
    case = sprayed.scenario(line(2), message(3000), paths=1)
    case = with_events(case, [fails(at_us=0.0)])
    run = start(engine, case, 1.0, 1)
    with pytest.raises(UnfinishedError, match="no packet has reached its receiver"):
        measure_program(run, case, 1.0, ProgramMeasure())
    assert np.flatnonzero(run.execution().delivered >= 0).size == 0


@pytest.mark.long  # it needs a kernel of its own
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_all_to_all_over_tcp_ends_by_its_timers(seed):
    """Eight ranks of a leaf-spine network send each other 1 MB: at the end only dropped packets are left."""
    case = case_of(ALL_TO_ALL)
    row = measure("compiled", case.scenario, 1.0, seed, ProgramMeasure()).row
    assert 1e9 < row["makespan_ns"] < 3e9
