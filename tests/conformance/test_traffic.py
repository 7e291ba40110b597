# SPDX-License-Identifier: Apache-2.0
"""Hosts that create packets or flows, in every mode that counts them: engines, conservation, partitions, zero load."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.traffic.source import Source
from flitlab.sim.engines import partitions
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.conformance.cases import (
    EXAMPLES,
    FALLBACKS,
    LOADS,
    SEEDS,
    assert_same,
    built,
    cases,
    horizon,
    modes,
    observed,
)
from tests.conformance.conservation import assert_conserved
from tests.scenarios import carrying, one_way_ring, reference

MANY = settings(EXAMPLES, max_examples=60)
COMPILED_ELSEWHERE = {"spray": pytest.mark.long}  # of the short tests by tests/sim/test_spray_engines.py
TRAFFIC_MODES = [pytest.param(mode, marks=COMPILED_ELSEWHERE.get(mode, ())) for mode in modes(lambda mode: mode.counts)]


@pytest.mark.parametrize("mode", TRAFFIC_MODES)
@given(st.data(), LOADS, SEEDS)
@MANY
def test_engines_agree_and_conserve_packets(mode, data, load, seed):
    case = data.draw(cases(mode))
    run, last = start("both", case, load, seed, log=True), horizon(case)  # the kernels of the next test
    for tick in (last // 3, last):  # the first stop finds packets in flight
        run.advance(tick)
        observed(run)
        assert_conserved(run, case)


@pytest.mark.parametrize("mode", TRAFFIC_MODES)
@given(st.data(), LOADS, SEEDS, st.integers(1, 4))
@settings(MANY, max_examples=30)
def test_neither_threads_nor_pauses_change_anything(mode, data, load, seed, threads):
    case = data.draw(cases(mode))
    last = horizon(case) // 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
        whole = start("compiled", case, load, seed, log=True)
        parts = start("compiled", case, load, seed, log=True, threads=threads)
        whole.advance(last)
        for tick in (last // 3, last // 3 + 1, last // 2, last):
            parts.advance(tick)
            observed(parts)
        assert_same(whole, parts, last, program=False)


@pytest.mark.parametrize("mode", TRAFFIC_MODES)
@given(st.data(), st.integers(1, 2**20))
@settings(MANY, max_examples=20)
def test_the_order_within_a_phase_of_a_tick_is_immaterial(mode, data, shuffle):
    case = data.draw(cases(mode))
    try:
        drawn = reference(case, 0.6, 3, log=True, shuffle=shuffle)
    except TypeError:
        pytest.skip("its reference draws no order")
    last = horizon(case) // 2
    fixed = start("reference", case, 0.6, 3, log=True)
    for run in (fixed, drawn):
        run.advance(last)
    assert_same(fixed, drawn, last, program=False)


@pytest.mark.parametrize("mode", modes(lambda mode: mode.counts == "packets"))
@pytest.mark.parametrize("flits", [1, 5])
def test_a_packet_alone_takes_the_zero_load_latency(engine_name, mode, flits):
    """A shift by k around a one-way ring takes k channels; one host sends, so seldom that no two packets meet."""
    ring, seldom = one_way_ring(5), 0.001 * flits
    for by in (1, 3):
        base = {"topology": ring, "traffic": {"kind": "shift", "by": by}, "source": Source(flits=(flits,))}
        supported = (built(mode, {}, routing=routing, **base) for routing in FALLBACKS)
        case = carrying(next(filter(None, supported)), rate=np.array([1.0, 0, 0, 0, 0]))
        run = start(engine_name, case, seldom, 1, log=True)
        run.advance(20_000)
        log, latency = run.log(), case.switching.zero_load_latency(ring, by, flits)
        assert len(log.delivered) > 8 and set(log.hops) <= {0, by}  # 0: channels are not modelled
        assert run.scalars()[Scalar.NETWORK_LATENCY] == latency * len(log.delivered)
