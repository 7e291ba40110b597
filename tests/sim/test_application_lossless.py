# SPDX-License-Identifier: Apache-2.0
"""Programs over lossless queues with RDMA."""

import numpy as np
import pytest

from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.spray import Spray
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import ProgramMeasure, measure_program
from flitlab.sim.measure.spray import measure_sprayed
from flitlab.sim.measure.transport import Window
from flitlab.sim.measure.unfinished import UnfinishedError
from tests.scenarios import line
from tests.sim.lossless_cases import clockwise, fabric, racks, ring, session
from tests.sim.test_application_datagram import program, receive, send

LINK, MTU, HEADER = 12_500, 4064, 64


def scenario(topology, ranks, routes=None, kind="roce"):
    """A program whose messages are RDMA flows, one rank per host."""
    work = program(ranks)
    mode, host = Spray(make("transport", kind=kind), fabric(6, 4)), np.arange(len(ranks))
    workload = Workload(work, host, mode.messages(topology, 1 << 40, 0.0))
    routes = routes or make("routing", kind="ecmp").build(topology)
    return Scenario(Instance(topology, traffic_of(work, host, topology), routes), mode, workload)


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 1, 4000, 4001, 100_000])
def test_a_message_alone_is_a_pipeline_of_its_packets(size):
    case = scenario(line(2), [[send(1, size)], [receive(0, size)]])
    run = start("reference", case, 1.0, 1)
    run.advance(3_000_000)
    packets = max(1, -(-size // 4000))
    last = size - (packets - 1) * 4000 + HEADER
    first = MTU if packets > 1 else last
    ticks = 3 * (first + LINK) + max(packets - 2, 0) * MTU + (last if packets > 1 else 0)
    assert run.done() and run.execution().delivered[0] == ticks


@pytest.mark.long
def test_a_program_that_deadlocks_ends_with_the_cycle():
    pairs, routes = clockwise(ring(5), 2)
    sources = {target: source for source, target in pairs}
    ranks = [[send((rank + 2) % 5, 2_000_000), receive(sources[rank], 2_000_000)] for rank in range(5)]
    case = scenario(ring(5), ranks, routes)
    with pytest.raises(UnfinishedError, match=r"deadlocked: \(0->1, VC \*\) waits for \(1->2, VC \*\)"):
        measure_program(start("reference", case, 1.0, 1), case, 1.0, ProgramMeasure())


def test_messages_that_are_sent_at_once_pause_what_flows_that_begin_together_pause():
    senders, size = range(1, 8), 200_000
    ranks = [[receive(sender, size) for sender in senders], *([send(0, size)] for _ in senders)]
    case = scenario(racks(), ranks)
    found = measure_program(start("reference", case, 1.0, 1), case, 1.0, ProgramMeasure())
    flows = session(racks(), [(sender, 0) for sender in senders], size, queues=fabric(6, 4))
    expected = measure_sprayed(ReferenceSpray(flows), None, 1.0, Window((0.0, 0.01)))
    assert found.row["pause_frames"] > 20 and found.row["pause_root"] == "0->host 0"
    for name in ("pause_frames", "longest_pause_us", "most_paused", "pause_root", "peak_ingress_bytes"):
        assert found.row[name] == expected.row[name]
    for ours, theirs in zip(found.detail["pauses"], expected.detail["pauses"], strict=True):
        assert ours == theirs | {"victims": ours["victims"]}
        parts = [row for row in found.detail["pauses_time"] if row["channel"] == f"{ours['from']}->{ours['to']}"]
        assert sum(row["paused_us"] for row in parts) == pytest.approx(ours["paused_us"])


@pytest.mark.long
@pytest.mark.parametrize("kind", ["roce", "dcqcn", "swift", "hpcc"])
def test_engines_agree_on_an_exchange_between_all_hosts(kind):
    topology = make("topology", kind="fat_tree", k=4).build()
    ranks = [
        [operation for shift in range(1, 16) for operation in
         (send((rank + shift) % 16, 30_000), receive((rank - shift) % 16, 30_000))]
        for rank in range(16)
    ]  # fmt: skip
    case = scenario(topology, ranks, kind=kind)
    row = measure_program(start("both", case, 1.0, 1), case, 1.0, ProgramMeasure()).row
    assert row["ticks"] > 15 * 30_000 * 4064 // 4000
