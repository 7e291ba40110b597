# SPDX-License-Identifier: Apache-2.0
"""Hosts that send PAUSE (pause storms), and watchdogs of outputs that are paused for too long."""

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.lossless import Lossless, Storm
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount, PauseCount
from flitlab.sim.measure.spray import measure_sprayed
from flitlab.sim.measure.transport import Window
from tests import long_after
from tests.sim.lossless_cases import ENGINES, TAU, TAU_ACK, clockwise, completed, fabric, racks, ring, session
from tests.sim.test_lossless import TREE

both = pytest.mark.parametrize("engine", long_after(1, sorted(ENGINES, reverse=True)))

PAIRS = [(0, 8), (1, 9), (2, 3)]
"""Flows of two hosts to the other rack, and one within a rack."""


@both
def test_a_storm_holds_a_flow_for_as_long_as_it_lasts(engine):
    (found,), counters = completed(session(racks(), [(0, 8)], queues=fabric(pfc_storm=Storm(8, 20.0, 70.0))), engine)
    assert found == pytest.approx(503 * TAU + 4 + 4 * (TAU_ACK + 1) + 50, abs=TAU)
    downlink = counters.pause[racks().channels + 16 + 8]
    assert downlink[PauseCount.FRAMES] == 1 and downlink[PauseCount.LONGEST] == 50 * 12_500
    assert counters.most_paused == 4, "the downlink, both links between the racks, and the host"


@both
def test_an_endless_storm_stops_all_who_share_a_link_and_no_other(engine):
    run = ENGINES[engine](session(racks(), PAIRS, 400_000, queues=fabric(pfc_storm=Storm(8, 5.0))))
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.002)))
    done = run.counters().flow[:, FlowCount.FINISHED] >= 0
    assert done.tolist() == [False, False, True] and not result.row["deadlocked"]
    assert result.row["most_paused"] == 5 and result.row["watchdogs"] == 0
    paused = {(row["from"], row["to"]) for row in result.detail["pauses"]}
    assert paused == {("1", "host 8"), ("2", "1"), ("0", "2"), ("host 0", "0"), ("host 1", "0")}


@both
def test_a_watchdog_frees_the_others_and_discards_the_queue_again_and_again(engine):
    queues = fabric(pfc_storm=Storm(8, 5.0), watchdog_us=100.0, restore_us=50.0)
    run = ENGINES[engine](session(racks(), PAIRS, 400_000, {"kind": "roce", "timeout_us": 200.0}, queues))
    run.advance(12_500 * 3000)
    counters = run.counters()
    done = counters.flow[:, FlowCount.FINISHED] >= 0
    assert done[1:].all()
    downlink = racks().channels + 16 + 8
    assert counters.pause[downlink, PauseCount.FIRED] > 0
    assert counters.pause[:, PauseCount.LONGEST].max() <= 100 * 12_500
    assert counters.link[downlink, LinkCount.DROPS] > 0
    ports = (run.ports if engine == "reference" else run._state.lossless).ports
    assert not ports.charged.any()


@pytest.mark.long
def test_watchdogs_break_a_deadlock():
    pairs, routes = clockwise(ring(5), 2)
    transport = {"kind": "roce", "timeout_us": 300.0}
    queues = fabric(watchdog_us=50.0, restore_us=20.0)
    case = session(ring(5), pairs, 400_000, transport, queues, routes)
    _, counters = completed(case, "compiled", 1.0)
    assert counters.pause[:, PauseCount.FIRED].sum() > 0 and counters.link[:, LinkCount.DROPS].sum() > 0


@pytest.mark.parametrize(("keys", "pause"), [({}, 5.92), ({"xoff": 1, "xon": 1}, 4.0), ({"response_ns": 1000.0}, 7.92)])
@both
def test_two_ports_that_share_an_output_pause_for_what_watchdogs_are_warned_of(engine, keys, pause):
    """At rate r, both pause 2 (two delays + (XOFF - XON) / r) us, and up to four packet times longer."""
    topology = Topology.from_links("star", 3, np.array([(0, 2), (1, 2)])).with_hosts(np.array([1, 1, 1]))
    pairs, transport = [(0, 2), (1, 2)], {"kind": "roce", "timeout_us": 5000.0}
    _, counters = completed(session(topology, pairs, 400_000, transport, fabric(**keys)), engine)
    channels = counters.pause[: topology.channels][topology.dst == 2]
    assert (channels[:, PauseCount.FRAMES] > 1).all()
    mean = channels[:, PauseCount.PAUSED] / channels[:, PauseCount.FRAMES] * 8e-5
    assert (mean >= pause - TAU).all() and (channels[:, PauseCount.LONGEST] * 8e-5 <= pause + 4 * TAU).all()
    for watchdog, fires in ((pause - 0.001, True), (pause + 4 * TAU, False)):
        case = session(topology, pairs, 400_000, transport, fabric(watchdog_us=watchdog, **keys))
        warnings = [str(caution) for caution in case.cautions()]
        assert [f"shorter than the {pause:.4g} us" in text for text in warnings] == [True] * fires
        run = ENGINES[engine](case)
        run.advance(12_500 * 1000)
        assert bool(run.counters().pause[:, PauseCount.FIRED].any()) == fires


def test_rows_and_keys_of_storms():
    keys = {"pfc_storm": {"host": 3, "at_us": 10.0}, "watchdog_us": 200.0}
    spec = make("switching", mode="spray", queue="lossless", pfc=keys)
    lossless = spec.fabric.lossless
    assert lossless.pfc_storm == Storm(3, 10.0) and not list(spec.errors(TREE, None, None))
    plain = {key: value for key, value in lossless.plain().items() if not key.startswith("mark_")}
    assert plain["pfc_storm"] == {"host": 3, "at_us": 10.0, "until_us": None} and plain["restore_us"] == 100.0
    assert make("switching", mode="spray", queue="lossless", pfc=plain).fabric.lossless == lossless
    assert "watchdog_us" not in Lossless().plain()
    (error,) = make("switching", mode="spray", queue="lossless", pfc={"restore_us": 3.0}).errors(TREE, None, None)
    assert "needs watchdog_us" in str(error)


@pytest.mark.parametrize(
    ("storm", "wrong"), [(Storm(16, 0.0), "host 16 does not exist"), (Storm(0, 9.0, 9.0), "later")]
)
def test_storms_that_cannot_be_are_rejected(storm, wrong):
    with pytest.raises(SpecError, match=wrong) as error:
        session(racks(), [(0, 8)], queues=fabric(pfc_storm=storm))
    assert error.value.key == "pfc.pfc_storm"


def test_most_paused_is_0_without_pauses():
    _, counters = completed(session(racks(), [(0, 8)]), "reference")
    assert counters.most_paused == 0 and not np.any(counters.pause[:, PauseCount.FIRED])
