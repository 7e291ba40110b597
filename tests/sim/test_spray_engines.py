# SPDX-License-Identifier: Apache-2.0
"""The compiled engine of sprayed packets against the reference, packet by packet."""

from dataclasses import replace

import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.sim.engines.base import EngineMismatch
from flitlab.sim.engines.compiled.pool import NONE
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.transport.run import Lockstep, compare_counters, compare_traces
from flitlab.sim.engines.transport.spray import FlowCount
from tests import long_after
from tests.sim.spray_cases import session_of_number

TICKS = (1_000, 50_000, 500_000)


def session(transport: dict, pairs: list[tuple[int, int]], size: int, **fabric) -> SpraySession:
    """Flows of equal size on a small fat tree, all at once."""
    topology, count = make("topology", kind="fat_tree", k=4).build(), len(pairs)
    source, destination = np.array(pairs, np.int64).T
    flows = Flows(source, destination, np.full(count, size, np.int64), np.zeros(count, np.int64))
    routes = make("routing", kind="ecmp", ways=4).build(topology)
    return make_spray_session(topology, routes, make("transport", **transport).spraying(), Fabric(**fabric), flows, 1)


def incast(receiver: int = 0) -> list[tuple[int, int]]:
    """Pairs of every other host and the receiver."""
    return [(host, receiver) for host in range(16) if host != receiver]


def check(case: SpraySession, ticks: tuple[int, ...] = TICKS) -> CompiledSpray:
    """Assert that both engines do the same, look by look, and nothing impossible; the compiled run."""
    compiled = CompiledSpray(case, trace=True)
    both = Lockstep(compiled, ReferenceSpray(case, trace=True))
    for tick in ticks:
        both.advance(tick)
        counters = both.counters()  # compares
    flows, wire = counters.flow, case.flows.bytes + case.flows.packets * case.rules.header
    assert (flows[:, FlowCount.RECEIVED] <= wire).all()
    np.testing.assert_array_equal(flows[:, FlowCount.COMPLETE] >= 0, flows[:, FlowCount.RECEIVED] == wire)
    ended = flows[:, FlowCount.FINISHED] >= 0
    assert (flows[ended, FlowCount.COMPLETE] >= 0).all() and (
        flows[ended, FlowCount.FINISHED] > flows[ended, FlowCount.COMPLETE]
    ).all()
    assert not compiled._state.senders.seq[ended].flight.any()
    _assert_each_packet_in_one_place(compiled)
    return compiled


def _assert_each_packet_in_one_place(run: CompiledSpray) -> None:
    """Every record that is in use is in exactly one list of one link, or served."""
    state = run._state
    found = []
    for line in state.link:
        for first in line["first"].tolist():
            while first != NONE:
                found.append(first)
                first = int(state.packet[first]["next"])
    found += [packet for packet in state.link["serving"].tolist() if packet != NONE]
    unused = state.free[: state.free[-1]].tolist()
    assert sorted(found + unused) == list(range(len(state.packet)))


@pytest.mark.parametrize("number", long_after(12, range(120)))
def test_engines_agree_on_every_packet_and_counter(number):
    check(session_of_number(number))


@pytest.mark.parametrize("kind", ["nscc", "rccc", "nscc_rccc", "ndp", "dctcp"])
@pytest.mark.parametrize("spread", long_after(1, ["mixed", "oblivious", "bitmap", "reps"]))
def test_engines_agree_on_incasts_that_trim(kind, spread):
    case = session({"kind": kind, "spread": spread, "paths": 8}, incast(), 150_000)
    run = check(case, (100_000, 800_000))
    assert run.counters().flow[:, FlowCount.TRIMS].sum() > 100


def test_pausing_changes_nothing():
    """Messages of a byte: hosts send hundreds of packets before somebody looks at what they have done."""
    case = session({"kind": "nscc", "paths": 64}, incast() * 40, 1)
    whole, parts = (CompiledSpray(case, trace=True) for _ in range(2))
    whole.advance(300_000)
    for tick in range(3_000, 303_000, 3_000):
        parts.advance(tick)
    compare_traces(whole.trace(), parts.trace())
    compare_counters(whole.counters(), parts.counters())
    assert whole.ended() and len(whole.trace().tick) == 600


def test_memory_grows_when_needed():
    """Windows of 600 packets in queues that hold them all, and more entries of the trace than there is room for."""
    case = session({"kind": "constant", "init_window": 600}, incast(), 2_500_000, queue_bytes=40_000_000)
    compiled, reference = CompiledSpray(case, trace=True), ReferenceSpray(case, trace=True)
    records, entries = len(compiled._state.packet), len(compiled._state.trace)
    for tick in (600_000, 20_000_000):
        compiled.advance(tick)
        if tick < 1_000_000:
            reference.advance(tick)
            compare_traces(compiled.trace(), reference.trace())
            compare_counters(compiled.counters(), reference.counters())
    assert len(compiled._state.packet) > 4 * records and len(compiled._state.trace) > entries


def test_a_timeout_that_comes_before_anybody_looks_is_not_missed():
    """A link delay of 10 us and a timeout of 1 us: a sender's alarm rings before its packet has come anywhere."""
    case = session({"kind": "nscc", "timeout_us": 1.0, "init_window": 1}, [(0, 5), (1, 9)], 40_000, link_us=10.0)
    run = check(case)
    assert run.counters().flow[:, 1].min() > 10  # timeouts


def test_a_difference_is_reported_with_its_packet():
    case = session({"kind": "nscc"}, [(0, 5), (1, 9)], 40_000)
    flows = replace(case.flows, start=np.array([0, 1]))
    both = Lockstep(CompiledSpray(case, trace=True), ReferenceSpray(replace(case, flows=flows), trace=True))
    both.advance(150_000)
    with pytest.raises(EngineMismatch, match=r"compiled: packet \d+ of subflow \d received at \d+; reference: packet"):
        both.counters()


def test_no_run_is_longer_than_its_timers():
    run = CompiledSpray(session({"kind": "nscc"}, [(0, 5)], 1000))
    with pytest.raises(OverflowError, match="the range of timers"):
        run.advance(run.latest + 1)
