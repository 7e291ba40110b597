# SPDX-License-Identifier: Apache-2.0
"""The two engines, written apart, give the same packets and the same counters; creation order is immaterial."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from flitlab.sim.engines import compiled
from flitlab.sim.engines.base import PacketLog, Scalar, Snapshot
from flitlab.sim.engines.compare import compare_logs, compare_snapshots
from flitlab.sim.engines.start import start
from tests.scenarios import (
    build,
    line,
    scenario,
)

LOADS = st.sampled_from([0.05, 0.3, 0.7, 1.0])
SLOW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.long
def test_a_larger_network_agrees():
    case = scenario(build("mddp", hosts=2, n=24, degree=3, seed=4), vcs=5)
    run = start("both", case, 0.5, 11)
    run.advance(2000)
    assert run.snapshot().scalars[Scalar.DELIVERED_PACKETS] > 3000


@pytest.mark.parametrize("mode", ["vct", "wormhole", "deflection"])
@pytest.mark.parametrize("switches", [1, 2])
def test_the_smallest_networks_agree(mode, switches):
    """Without channels between switches, and with one link."""
    routing = {"kind": "deflection" if mode == "deflection" else "minimal"}
    keys = {"hold_packets": 4} if mode == "deflection" else {"mode": mode}
    run = start("both", scenario(line(switches, 3), routing=routing, **keys), 0.4, 3)
    run.advance(600)
    assert run.snapshot().scalars[Scalar.DELIVERED_PACKETS] > 60
    assert not run.deadlocked()


def test_counters_of_pairs_are_read_before_they_overflow(monkeypatch):
    case = scenario(build("imase", hosts=2, n=12, degree=3))
    whole = start("compiled", case, 0.6, 2)
    monkeypatch.setattr(compiled.engine, "MAX_PAIR_FLITS", 5 * 100)  # of 3 channels and 2 hosts: every 100 ticks
    often = start("compiled", case, 0.6, 2)
    for tick in (350, 750):
        whole.advance(tick)
        often.advance(tick)
        compare_snapshots(whole.snapshot(), often.snapshot())
    assert whole.snapshot().delivered.pairs.amount.max() > 100


def test_a_difference_is_reported_with_its_packet():
    same = [np.array([1, 1])] * (len(PacketLog._fields) - 2)
    one = PacketLog(np.array([1, 2]), np.array([10, 20]), *same)
    two = PacketLog(np.array([1, 2]), np.array([10, 21]), *same)
    with pytest.raises(Exception, match=r"packet 2 delivered at 20 .* packet 2 delivered at 21"):
        compare_logs(one, two, 30)


def test_a_differing_counter_is_reported():
    case = scenario(build("imase", hosts=1, n=6, degree=2))
    run = start("compiled", case, 0.5, 1)
    run.advance(100)
    first = run.snapshot()
    changed = Snapshot(**{**first.__dict__, "channel_flits": first.channel_flits + 1})
    with pytest.raises(Exception, match=r"channel_flits\[0\]"):
        compare_snapshots(first, changed)
