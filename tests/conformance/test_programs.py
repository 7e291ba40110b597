# SPDX-License-Identifier: Apache-2.0
"""Programs on hosts, in every mode that runs them: engines, rules of operations, partitions, zero load."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.application.messages import total_flits
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.traffic.source import Source
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines import partitions
from flitlab.sim.engines.base import MessageDropped
from flitlab.sim.engines.start import start
from tests.conformance.cases import (
    EXAMPLES,
    FALLBACKS,
    SEEDS,
    assert_same,
    built,
    horizon,
    messages_of,
    modes,
    observed,
    programs,
)
from tests.conformance.conservation import assert_conserved
from tests.programs import program
from tests.scenarios import line

MANY = settings(EXAMPLES, max_examples=60)
PROGRAM_MODES = modes(lambda mode: mode.programs)

pytestmark = pytest.mark.long  # programs need kernels of their own


@pytest.mark.parametrize("mode", PROGRAM_MODES)
@given(st.data(), SEEDS)
@MANY
def test_engines_agree_and_conserve_packets(mode, data, seed):
    case = data.draw(programs(mode))
    run, last = start("both", case, 1.0, seed), horizon(case)
    try:
        for tick in (last // 4, last, 4 * last):
            run.advance(tick)
            observed(run)
            assert_conserved(run, case)
    except MessageDropped:  # by a transport that retransmits none
        return
    done, carried = run.execution(), run.carried()
    finished = done.finish >= 0
    assert (done.finish[finished] >= done.start[finished]).all() and (done.start >= done.ready)[finished].all()
    assert (carried >= 0).all()


@pytest.mark.parametrize("mode", PROGRAM_MODES)
@given(st.data(), SEEDS, st.integers(1, 4))
@settings(MANY, max_examples=30)
def test_neither_threads_nor_pauses_change_anything(mode, data, seed, threads):
    case = data.draw(programs(mode))
    last = horizon(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
        whole = start("compiled", case, 1.0, seed, log=True)
        parts = start("compiled", case, 1.0, seed, log=True, threads=threads)
        try:
            whole.advance(last)
        except MessageDropped:
            return
        for tick in (last // 3, last // 3 + 1, last):
            parts.advance(tick)
        assert_same(whole, parts, last, program=True)


@pytest.mark.parametrize("mode", PROGRAM_MODES)
@pytest.mark.parametrize("hops", [1, 3])
def test_a_message_of_a_packet_alone_takes_the_zero_load_latency(engine_name, mode, hops):
    topology = line(hops + 1)
    base = {"topology": topology, "source": Source(flits=(4,)), "transport": None}
    case = next(filter(None, (built(mode, {}, routing=routing, **base) for routing in FALLBACKS)))
    how = replace(messages_of(case, 4, np.random.default_rng(1), {"buffered": False, "confirmed": False}), overhead=0)
    how = replace(how, rendezvous=1 << 40)
    size = how.packet_bytes
    what = program([[(Op.SEND, size, 1, 0, 0, [])], [(Op.RECV, size, 0, 0, 0, [])]])
    host = np.array([0, topology.hosts - 1])
    instance = replace(case.instance, traffic=traffic_of(what, host, topology))
    run = start(engine_name, replace(case, instance=instance, work=Workload(what, host, how)), 1.0, 1)
    run.advance(horizon(case) // 5)
    flits = int(total_flits(what.amount[:1], how)[0]) * case.switching.weight(how)
    assert run.done()
    execution = run.execution()
    assert execution.delivered[0] / execution.resolution == case.switching.zero_load_latency(topology, hops, flits)
