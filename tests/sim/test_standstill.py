# SPDX-License-Identifier: Apache-2.0
"""A network in which nothing moves although packets wait says so, with a certificate or without."""

from dataclasses import replace

import numpy as np
import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure import measure as door
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure, is_deadlocked
from flitlab.sim.measure.result import StallError
from tests.scenarios import line, one_way_ring, scenario

ENGINES = pytest.mark.parametrize("name", ["compiled", "reference", "both"])
MODES = pytest.mark.parametrize("mode", ["vct", "wormhole"])
WINDOW = Measure(500, 2000, None)


def half_way_round(mode):
    """Four hosts send half-way round a one-way ring of one VC, which soon stands still."""
    return scenario(
        one_way_ring(4), routing={"kind": "minimal", "vc_policy": "any"}, traffic={"kind": "shift", "by": 2},
        source=Source(flits=(4,)), mode=mode, vcs=1, buffer_flits=4, allow_deadlock=True,
    )  # fmt: skip


@MODES
@ENGINES
def test_a_deadlock_is_a_result_where_no_certificate_excludes_it(name, mode):
    row = measure(name, half_way_round(mode), 0.9, 1, WINDOW).row
    assert row["deadlocked"] and row["saturated"] and row["accepted"] == 0


@MODES
@ENGINES
def test_a_false_certificate_is_found_out(name, mode):
    with pytest.raises(StallError, match=r"in spite of the certificate \([1-9].* in the network, .* at hosts\)"):
        case = half_way_round(mode)
        measure(name, replace(case, switching=replace(case.switching, may_deadlock=False)), 0.9, 1, WINDOW)


@MODES
@pytest.mark.parametrize("name", ["compiled", "reference"])
def test_a_standstill_that_is_no_deadlock_is_found(name, mode, monkeypatch):
    def blind(*given, **options):
        """A run that sees no deadlock."""
        run = start(*given, **options)
        run.deadlocked = lambda: False
        return run

    monkeypatch.setattr(door, "start", blind)
    with pytest.raises(StallError, match=r"nothing has moved for 2,000 ticks, though packets wait"):
        measure(name, half_way_round(mode), 0.9, 1, WINDOW)


class Quiet:
    """A run that has come to some counts."""

    def __init__(self, created, sent, delivered):
        self.counts = np.array([created, 0, sent, delivered], np.int64)

    def deadlocked(self):
        return False

    def scalars(self):
        return self.counts


def test_silence_without_waiting_packets_is_no_standstill():
    case = scenario(line(2))
    batches = np.zeros((40, len(Scalar)), np.int64)
    batches[0, [Scalar.SENT_PACKETS, Scalar.GRANTS]] = 1
    assert not is_deadlocked(Quiet(5, 5, 5), case, batches, 40_000)
    with pytest.raises(StallError, match=r"39,000 ticks, though packets wait \(1 in the network, 0 at hosts\)"):
        is_deadlocked(Quiet(5, 5, 4), case, batches, 40_000)
    on_its_way = case.switching.deadlock_timeout(case.topology, max(case.source.flits))
    assert not is_deadlocked(Quiet(5, 5, 4), case, batches, on_its_way)
    batches[-1, Scalar.CREATED_PACKETS] = 1  # created at the very end
    assert not is_deadlocked(Quiet(5, 4, 4), case, batches, 40_000)
