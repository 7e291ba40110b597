# SPDX-License-Identifier: Apache-2.0
"""Wheels that wake many members at once are as if they had been woken one by one, and runs begin so."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.jit import interpreted
from flitlab.sim.engines.compiled import timing_wheel
from flitlab.sim.engines.compiled.timing_wheel import drain, make_timing_wheel, schedule_all
from flitlab.sim.engines.start import start
from tests.scenarios import build, scenario

TICKS = 4
one_by_one = interpreted(timing_wheel.schedule)


@given(st.sets(st.integers(0, 9000), max_size=80), st.integers(0, 9000), st.integers(0, 2 * TICKS))
@settings(deadline=None)
def test_many_are_woken_as_one_by_one(some, whole, tick):
    members = np.union1d(np.array(sorted(some), np.int64), np.arange(whole)[-200:])
    one, all_ = (make_timing_wheel(9001, TICKS) for _ in range(2))
    for member in members.tolist():
        one_by_one(one, member, tick)
    schedule_all(all_, members, tick)
    assert np.array_equal(one.words, all_.words)


@pytest.mark.parametrize("mode", ["vct", "deflection"])
def test_a_run_begins_without_a_step_for_each_switch_or_host(mode):
    """At 100,000 hosts a call of compiled code for each takes seconds."""
    routing = {"kind": "deflection" if mode == "deflection" else "minimal"}
    small, large = (scenario(build("imase", hosts, n=n, degree=3), routing=routing) for n, hosts in ((8, 1), (64, 9)))
    start("compiled", small, 0.1)  # what is compiled, or loaded, the first time
    assert _steps(lambda: start("compiled", large, 0.1)) < _steps(lambda: start("compiled", small, 0.1)) + 64


def _steps(call):
    """Lines that the compiled engines execute in Python."""
    count, engines = 0, str(Path(timing_wheel.__file__).resolve().parent)

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(engines):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5, 1.0])
def test_who_is_drained_is_who_was_woken(share):
    woken = np.flatnonzero(np.random.default_rng(3).random(9001) < share)
    wheel, members = make_timing_wheel(9001, TICKS), np.full(9002, 77, np.uint32)
    schedule_all(wheel, woken, 5)
    schedule_all(wheel, woken[:3], 6)
    assert drain(wheel, 5, members) == len(woken)
    np.testing.assert_array_equal(members[: len(woken)], woken)
    assert (members[len(woken) + 1 :] == 77).all()  # one more may be written, and no other
    assert drain(wheel, 5, members) == 0
    assert drain(wheel, 6, members) == len(woken[:3])
