# SPDX-License-Identifier: Apache-2.0
"""Ticks in which flits stall, by reason: closed forms of saturated flows, and equality of engines and threads."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.application.trace import trace_workload
from flitlab.models.rules.stalls import Stall
from flitlab.models.switching.buffers import ChannelBuffers
from flitlab.models.traffic.source import Recorded, Source
from flitlab.sim.engines import partitions
from flitlab.sim.engines.start import start
from tests.scenarios import build, line, scenario, vct_scenarios, wormhole_scenarios
from tests.sim.test_credit_delay import ROUTER, two

ONE_WAY = {"kind": "shift", "by": 1}
BUSY = {"kind": "hotspot", "hosts": [2], "fraction": 1}


def stalled(engine_name, case, before, ticks):
    """Ticks in which flits stall in a window of a saturated run: int64 [channels + hosts, sets of reasons]."""
    run = start(engine_name, case, 1 / case.traffic.rate.max(), 1, channels=True)
    run.advance(before)
    first = run.snapshot().stalls
    run.advance(before + ticks)
    return run.snapshot().stalls - first


def only(reason, ticks):
    """The counts of an input that stalls for a number of ticks, always for one reason."""
    counts = [0] * 8
    counts[reason] = ticks
    return counts


@pytest.mark.parametrize(("there", "back", "slots"), [(50, 50, 8), (50, 10, 20), (20, 20, 3)])
def test_flits_wait_for_the_credits_of_a_round_trip(engine_name, there, back, slots):
    """L = 1, V = 1: B flits in R ticks, each with a tick for its header and one of its grant."""
    trip = 1 + 2 + 1 + 2 + there + back - 2
    case = scenario(two(there, back), traffic=ONE_WAY, source=Source(flits=(1,)), allow_deadlock=True,
                    mode="wormhole", vcs=1, buffer_flits=slots, **ROUTER)  # fmt: skip
    counts = stalled(engine_name, case, 4 * trip, 3 * trip)
    assert counts[2].tolist() == only(Stall.CREDIT, 3 * (trip - 2 * slots))  # in front of 0 -> 1: host 0's buffer
    assert not counts[1].any()  # packets leave the network behind 1 -> 0 at once


@pytest.mark.parametrize("flits", [1, 4])
def test_packets_wait_for_the_credits_of_a_round_trip(engine_name, flits):
    """Vct, a buffer of one packet: granted every R + L - 1 ticks, and eligible once its predecessor's tail has left."""
    trip = 1 + 2 + 1 + 2 + 50 + 10 - 2
    buffers = {"buffer_flits": 20, "channel_buffers": ChannelBuffers((flits, flits, 20, 20), {})}
    case = scenario(two(50, 10), traffic=ONE_WAY, source=Source(flits=(flits,)), allow_deadlock=True, vcs=1,
                    **buffers, **ROUTER)  # fmt: skip
    counts = stalled(engine_name, case, 4 * (trip + flits - 1), 3 * (trip + flits - 1))
    assert counts[2].tolist() == only(Stall.CREDIT, 3 * (trip - 1))


@pytest.mark.parametrize("flits", [1, 5])
def test_packets_wait_for_the_vc_of_the_other_flow(engine_name, flits):
    """Wormhole, V = 1: two flows take turns on a channel; a turn is a tick of VC allocation and L flits.

    In its own turn a flow is granted, or its next head is read; in the other's it has no VC.
    """
    case = scenario(line(2, [2, 1]), traffic=BUSY, source=Source(flits=(flits,)), mode="wormhole", vcs=1,
                    buffer_flits=20, **ROUTER)  # fmt: skip
    counts = stalled(engine_name, case, 300, 20 * (flits + 1))
    for host in (0, 1):
        assert counts[2 + host].tolist() == only(Stall.VC, 10 * (flits + 1))


def test_packets_wait_while_the_other_flow_has_the_output(engine_name):
    """Vct, ample buffers: two flows take turns of L ticks, and each waits for that of the other."""
    case = scenario(line(2, [2, 1]), traffic=BUSY, source=Source(flits=(4,)), vcs=1, buffer_flits=40, **ROUTER)
    counts = stalled(engine_name, case, 400, 160)
    for host in (0, 1):
        assert counts[2 + host].tolist() == only(Stall.SWITCH, 80)


def test_a_slow_output_without_credits_is_two_reasons(engine_name):
    """Vct, two flows over a channel of 2 ticks a flit into a buffer of one packet: a grant every P ticks.

    P: the packet arrives, never starves the host's channel of 1 tick a flit, and its credits return. In the tick of a
    grant the other flow loses the arbitration; while the packet is sent, it lacks both output and credits; then both
    flows lack credits.
    """
    flits, period = 4, (1 + 2 + 49 + 1) + (3 + 3) + (2 + 9)
    topology = replace(two(50, 10), capacity=np.array([0.5, 1.0])).with_hosts([2, 1])
    buffers = {"buffer_flits": 20, "channel_buffers": ChannelBuffers((flits, 20, 20, 20, 20), {})}
    case = scenario(topology, traffic=BUSY, source=Source(flits=(flits,)), vcs=1, **buffers, **ROUTER)
    counts = stalled(engine_name, case, 10 * period, 4 * period)
    expected = only(Stall.CREDIT, 4 * (period - 2 * flits))
    expected[Stall.SWITCH], expected[Stall.CREDIT | Stall.SWITCH] = 2, 2 * (2 * flits - 1)
    for host in (0, 1):
        assert counts[2 + host].tolist() == expected


def two_long_packets(flits):
    """Two hosts of a switch each send a packet to the same host at tick 0, over two VCs."""
    case = scenario(line(2, [2, 1]), mode="wormhole", vcs=2, buffer_flits=20, **ROUTER)
    zero, none = np.zeros(2, np.int64), np.full(2, -1)
    hosts, target, size = np.array([0, 1]), np.full(2, 2), np.full(2, flits)
    trace = Recorded((Fraction(0),), False, zero, hosts, target, size, none, (), False, "", none)
    return replace(case, work=trace_workload(trace, 3, None, one_length=True))


def test_flits_of_two_vcs_take_turns(engine_name):
    """Host 0 gets the offers of both VCs, and sends its first flit; from then on the hosts take turns."""
    flits = 100
    run = start(engine_name, two_long_packets(flits), 1.0, 1, channels=True)
    run.advance(3 * flits)
    stalls = run.snapshot().stalls
    assert stalls[2].tolist() == only(Stall.SWITCH, flits - 1)
    expected = only(Stall.SWITCH, flits - 1)
    expected[Stall.VC] = 1
    assert stalls[3].tolist() == expected


@pytest.mark.long
@pytest.mark.parametrize("scenarios", [vct_scenarios(), wormhole_scenarios()], ids=["vct", "wormhole"])
def test_engines_stall_alike(scenarios):
    """On drawn scenarios, at every tick of a short run and at the end of a longer one."""

    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(scenarios, st.sampled_from([0.3, 1.0]))
    def agree(case, load):
        run = start("both", case, load, 3, channels=True)
        for tick in (7, 23, 60, 61, 62, 200):
            run.advance(tick)
            run.snapshot()

    agree()


@pytest.mark.long
def test_threads_count_the_same_stalls(monkeypatch):
    monkeypatch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
    case, counted = scenario(build("imase", hosts=2, n=12, degree=3)), []
    for threads in (1, 3):
        run = start("compiled", case, 0.9, 2, threads=threads, channels=True)
        for tick in (50, 51, 300):
            run.advance(tick)
            counted.append(run.snapshot().stalls)
    assert np.array_equal(counted[:3], counted[3:])
    assert (counted[-1].sum(axis=0)[[Stall.CREDIT, Stall.SWITCH]] > 0).all()
