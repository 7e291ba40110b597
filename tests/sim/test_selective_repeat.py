# SPDX-License-Identifier: Apache-2.0
"""Selective repeat of RDMA transports: what is repeated, when, and how long it takes."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.transport.fabric import Fabric
from flitlab.sim.engines.transport.spray import Counters, FlowCount, LinkCount
from tests import long_after
from tests.sim.lossless_cases import ENGINES, ROCE, TAU, TAU_ACK, completed, fabric, racks, rebuilt, session
from tests.sim.spray_cases import case_of_number
from tests.sim.test_lossless import TREE, agree
from tests.sim.test_spray_changes import LINK, MTU, happening, one_flow

both = pytest.mark.parametrize("engine", [pytest.param("compiled", marks=pytest.mark.long), "reference"])

SELECTIVE = {**ROCE, "recovery": "selective"}

SHALLOW = Fabric(mtu_bytes=4064, header_bytes=64, trim=False, queue_bytes=20 * 4064)
"""Queues that drop."""

SENDERS = [(sender, 0) for sender in range(1, 8)]


@both
def test_without_loss_it_takes_the_time_of_go_back_n(engine):
    (found,), counters = completed(session(TREE, [(0, 15)], transport=SELECTIVE), engine)
    assert found == pytest.approx((500 + 6 - 1) * TAU + 6 + 6 * (TAU_ACK + 1), abs=1e-6)
    assert counters.flow[0, FlowCount.ACKS] == 500 and not counters.flow[0, [FlowCount.NACKS, FlowCount.RESENT]].any()


@both
def test_every_dropped_packet_is_repeated_once(engine):
    """The receiver of a rack is hardly idle, so that the last flow ends nearly as if nothing were dropped."""
    transport = {**SELECTIVE, "window_bdp": 0.3}
    found, counters = completed(session(racks(), SENDERS, transport=transport, queues=SHALLOW), engine)
    drops, flow = counters.link[:, LinkCount.DROPS].sum(), counters.flow.sum(axis=0)
    assert flow[FlowCount.RESENT] == drops > 20 and flow[FlowCount.NACKS] > 20
    least = TAU + 1 + 7 * 500 * TAU + 1 + 2 * (TAU_ACK + 1)
    assert least - 1e-6 <= found.max() < 1.25 * least


@pytest.mark.long
def test_go_back_n_repeats_many_times_as_much():
    queues = replace(SHALLOW, queue_bytes=100 * 4064)
    (found, counters), (slow, went_back) = (
        completed(session(racks(), SENDERS, 400_000, transport, queues), "compiled", 0.1)
        for transport in (SELECTIVE, ROCE)
    )  # fmt: skip
    assert counters.flow[:, FlowCount.RESENT].sum() == counters.link[:, LinkCount.DROPS].sum()
    assert went_back.flow[:, FlowCount.RESENT].sum() > 5 * counters.flow[:, FlowCount.RESENT].sum()
    assert found.max() < slow.max() / 2


@both
@pytest.mark.parametrize(("keys", "wait_us"), [
    ({"recovery": "selective"}, 100.0), ({"recovery": "selective", "short_timeout_us": 30.0}, 30.0), ({}, 1000.0),
])  # fmt: skip
def test_a_single_packet_is_repeated_after_the_timeout(engine, keys, wait_us):
    """The only link fails while it sends the packet, for a microsecond; the timeout runs since the packet was sent."""
    case = one_flow({**ROCE, **keys}, MTU - 64, trim=False)
    cut, back = {"fail": {"links": [[0, 1]]}, "reroute_after": inf}, {"restore": {"links": [[0, 1]]}}
    at = MTU + LINK + 5
    run = ENGINES[engine](happening(*case, [{"at_tick": at, **cut}, {"at_tick": at + LINK, **back}]))
    run.advance(20_000_000)
    counters = run.counters()
    assert counters.flow[0, FlowCount.FINISHED] == wait_us * LINK + 3 * (MTU + LINK) + 3 * (64 + LINK)
    assert counters.flow[0, FlowCount.TIMEOUTS] == counters.flow[0, FlowCount.RESENT] == 1


def counters_of_a_failure(keys: dict, packets: int, first: int, ticks: int, engine: str) -> Counters:
    """The counters of a flow whose only channel has no delay, and fails for some ticks while it sends a packet.

    Packet n is in service from (n + 1) MTU + LINK on, for MTU ticks. The next one arrives when its service ends.
    """
    case, routes, routing = one_flow({**SELECTIVE, **keys}, packets * (MTU - 64), trim=False)
    case = replace(case, delay=np.where(np.arange(len(case.delay)) == 0, 0, case.delay))
    cut, back = {"fail": {"links": [[0, 1]]}, "reroute_after": inf}, {"restore": {"links": [[0, 1]]}}
    begin = (first + 1) * MTU + LINK + 1
    run = ENGINES[engine](
        happening(case, routes, routing, [{"at_tick": begin, **cut}, {"at_tick": begin + ticks, **back}])
    )
    run.advance(20_000_000)
    return run.counters()


@both
@pytest.mark.parametrize(("packets", "lost"), [(6, 1), (6, 3), (6, 4), (7, 5), (8, 8)])
def test_the_last_packets_are_repeated_after_one_timeout_a_round_trip_each(engine, packets, lost):
    """No later packet proves their loss: the acknowledgement of a repeated one uncovers the next.

    The timeout restarts with the acknowledgement of the last packet that arrives, or with the first that is sent.
    """
    arrived = packets - lost
    counters = counters_of_a_failure({}, packets, arrived, lost * MTU, engine)
    assert counters.link[0, LinkCount.DROPS] == counters.flow[0, FlowCount.RESENT] == lost
    assert counters.flow[0, FlowCount.TIMEOUTS] == 1
    round_trip = 3 * MTU + 2 * LINK + 3 * (64 + LINK)
    restarted = 0 if arrived == 0 else round_trip + (arrived - 1) * MTU
    assert counters.flow[0, FlowCount.FINISHED] == restarted + (100 if lost <= 3 else 320) * LINK + lost * round_trip


@both
def test_of_many_packets_in_flight_only_lost_ones_are_repeated_and_no_timeout_is_needed(engine):
    """A link fails for 2 us: what it held, and what came to it, is dropped, and nothing else is sent twice.

    The host is never idle, so that the flow ends as many packets later as were dropped.
    """
    case = one_flow({**SELECTIVE, "window_bdp": 3}, 200 * (MTU - 64), trim=False)
    cut, back = {"fail": {"links": [[0, 1]]}, "reroute_after": inf}, {"restore": {"links": [[0, 1]]}}
    run = ENGINES[engine](happening(*case, [{"at_tick": 30 * LINK, **cut}, {"at_tick": 32 * LINK, **back}]))
    run.advance(20_000_000)
    counters = run.counters()
    drops = counters.link[0, LinkCount.DROPS]
    assert counters.flow[0, FlowCount.RESENT] == drops > 5 and counters.flow[0, FlowCount.TIMEOUTS] == 0
    path = 3 * LINK + 3 * (64 + LINK)
    assert counters.flow[0, FlowCount.FINISHED] == (202 + drops) * MTU + path


@both
@pytest.mark.parametrize(("reorder", "timeouts"), [(0, 0), (1, 0), (2, 1)])
def test_a_packet_is_lost_if_one_more_than_reorder_beyond_it_was_acknowledged(engine, reorder, timeouts):
    """Of six packets the fourth is lost, at the beginning of its service, and two follow."""
    counters = counters_of_a_failure({"reorder": reorder}, 6, 3, 2, engine)
    assert counters.link[0, LinkCount.DROPS] == counters.flow[0, FlowCount.RESENT] == 1
    assert counters.flow[0, FlowCount.TIMEOUTS] == timeouts


@pytest.mark.long
def test_packets_in_flight_are_at_most_a_product_of_bandwidth_and_delay():
    case = session(racks(), SENDERS, 400_000, SELECTIVE, fabric(10**5, 10**5))
    run = ENGINES["compiled"](case)
    most = int(np.ceil(case.rules.rtt0 * case.rules.rate / 4000))
    for tick in range(10_000, 1_000_000, 50_000):
        run.advance(tick)
        state = run._state
        assert (state.rdma.flow.cursor - state.senders.seq.una).max() <= most
    assert most == pytest.approx(4 * (4064 * 8e-5 + 1 + 64 * 8e-5 + 1) * 12_500 / 4000, abs=2)


@pytest.mark.long
@both
def test_packets_may_overtake_each_other_within_the_tolerance(engine):
    pairs = [(host, (host + 8) % 16) for host in range(16)]
    queues = replace(fabric(), at_switch="adaptive")
    _, counters = completed(session(TREE, pairs, 400_000, {**SELECTIVE, "reorder": 64}, queues), engine)
    assert not counters.flow[:, [FlowCount.NACKS, FlowCount.RESENT]].any()
    _, counters = completed(session(TREE, pairs, 400_000, SELECTIVE, queues), engine)
    assert counters.flow[:, FlowCount.RESENT].sum() > 0


@pytest.mark.parametrize("number", long_after(0, range(60)))
def test_engines_agree_on_selective_repeat_over_queues_that_drop(number):
    case, _, routes = case_of_number(number)
    kind = ["roce", "dcqcn", "swift", "timely"][number % 4]
    keys = {"timeout_us": 50.0, "short_timeout_us": 20.0, "reorder": [0, 0, 5][number % 3]}
    agree(rebuilt(case, routes, {**SELECTIVE, "kind": kind, **keys}, None, number))


def test_a_short_timeout_needs_selective_repeat():
    with pytest.raises(SpecError, match="only with recovery: selective"):
        make("transport", kind="roce", short_timeout_us=3.0).spraying()
