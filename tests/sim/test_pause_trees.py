# SPDX-License-Identifier: Apache-2.0
"""Trees of pauses: which queue paused which channel, and the flows that waited for a queue that they do not use."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.transport.fabric import make_spray_session
from flitlab.models.transport.flow_links import links_of_flows
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import Storm
from flitlab.sim.engines.transport.spray import NO_QUEUE, PauseCause, PauseCount
from flitlab.sim.measure.pauses import LinkNames, pause_time_rows, pause_trees
from flitlab.sim.measure.spray import measure_sprayed
from flitlab.sim.measure.transport import Window
from flitlab.sim.report.figures.draw import captions
from flitlab.sim.report.figures.kinds.pauses import pauses
from flitlab.sim.report.folder.run import Run
from tests.sim.lossless_cases import ENGINES, clockwise, completed, fabric, racks, ring, session

both = pytest.mark.parametrize("engine", ENGINES)

PAIRS = [(10, 8), (11, 8), (12, 8), (0, 8), (1, 9)]
"""Four flows to one host, and one that shares the link between the racks with one of them."""


@both
def test_a_flow_to_an_idle_host_is_the_victim_of_the_queue_to_a_busy_one(engine):
    run = ENGINES[engine](session(racks(), PAIRS))
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.01)))
    rows = result.detail["pauses"]
    parents = {f"{row['from']}->{row['to']}": row["paused_by"] for row in rows}
    assert parents == {
        "1->host 8": "", "host 10->1": "1->host 8", "host 11->1": "1->host 8", "host 12->1": "1->host 8",
        "2->1": "1->host 8", "0->2": "2->1", "host 0->0": "0->2", "host 1->0": "0->2",
    }  # fmt: skip
    assert {row["root"] for row in rows} == {"1->host 8"} and sorted(row["depth"] for row in rows) == [
        0,
        *4 * [1],
        2,
        3,
        3,
    ]
    assert rows[0]["depth"] == 0 and rows[0]["victims"] == 1 and rows[0]["pause_frames"] == 0
    assert [row["victim_of"] for row in result.detail["flows"]] == ["", "", "", "", "1->host 8"]
    waited = [row["victim_us"] for row in result.detail["flows"]]
    assert waited[:4] == [0, 0, 0, 0] and 0 < waited[4] <= sum(row["paused_us"] for row in rows if row["depth"] > 1)
    assert result.row["pause_root"] == "1->host 8" and result.row["victims"] == 1
    times = result.detail["pauses_time"]
    for row in rows[1:]:
        name = f"{row['from']}->{row['to']}"
        assert sum(time["paused_us"] for time in times if time["channel"] == name) == pytest.approx(row["paused_us"])
    assert all(time["paused_us"] <= time["to_us"] - time["from_us"] + 1e-9 for time in times)


@both
def test_every_pause_has_one_cause(engine):
    case = session(racks(), [(sender, 0) for sender in range(1, 8)], 400_000)
    run = ENGINES[engine](case)
    run.advance(400_000)  # some last then
    counters = run.counters()
    by_link = np.zeros_like(counters.pause[:, :2])
    np.add.at(by_link, counters.causes[:, PauseCause.LINK], counters.causes[:, [PauseCause.FRAMES, PauseCause.PAUSED]])
    np.testing.assert_array_equal(by_link, counters.pause[:, [PauseCount.FRAMES, PauseCount.PAUSED]])
    assert by_link.any() and (counters.causes[:, PauseCause.QUEUE] == racks().channels + 16).all()


def test_the_root_of_a_storm_is_the_channel_to_the_host():
    run = ENGINES["compiled"](session(racks(), [(0, 8), (1, 9)], 400_000, queues=fabric(pfc_storm=Storm(8, 5.0))))
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.001)))
    first = result.detail["pauses"][0]
    assert first["root"] == "1->host 8" and first["paused_by"] == "host 8" and first["victims"] == 1


def test_the_root_of_a_deadlock_is_a_cycle_of_which_no_flow_is_a_victim():
    pairs, routes = clockwise(ring(5), 2)
    run = ENGINES["reference"](session(ring(5), pairs, 20_000_000, routes=routes))
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.01)))
    rows = [row for row in result.detail["pauses"] if not row["from"].startswith("host")]
    assert [row["depth"] for row in rows] == [0, 1, 2, 3, 4] and {row["root"] for row in rows} == {"0->1"}
    assert rows[0]["paused_by"] == "1->2" and result.row["victims"] == 0


def trees_of(causes):
    """Trees of synthetic pauses: channel, queue, ticks."""
    case = session(racks(), [(0, 8)])
    rows = np.array([[link, queue, 1, ticks, 0, ticks] for link, queue, ticks in causes])
    counters = SimpleNamespace(causes=rows, tick=1000, flow=np.full((1, 11), -1), held=np.zeros((1, 4), np.int64))
    return case, pause_trees(case, counters)


def test_a_queue_that_was_hardly_paused_is_a_root():
    _, trees = trees_of([(0, 3, 500), (3, 28, 49)])
    assert [(pause.link, pause.root, pause.depth) for pause in trees.pauses] == [(3, 3, 0), (0, 3, 1), (28, 28, 0)]
    _, trees = trees_of([(0, 3, 500), (3, 28, 50)])
    assert [(pause.link, pause.root, pause.depth) for pause in trees.pauses] == [(28, 28, 0), (3, 28, 1), (0, 28, 2)]


def test_the_main_cause_is_that_of_most_of_the_time():
    _, trees = trees_of([(3, 26, 40), (3, 28, 60), (4, 0, 10)])
    assert [(pause.link, pause.queue) for pause in trees.pauses] == [(28, NO_QUEUE), (3, 28), (0, NO_QUEUE), (4, 0)]
    assert trees.pauses[1].paused == 100


def test_what_waits_for_a_cycle_is_below_it():
    _, trees = trees_of([(0, 3, 9), (3, 0, 9), (4, 0, 9)])
    assert {pause.root for pause in trees.pauses} == {0} and len(trees.pauses) == 3
    assert trees.blocking == {0: frozenset({0, 3})} and trees.victims == {}


def test_intervals_over_time_are_merged_to_a_hundred():
    case, trees = trees_of([(3, 28, 300)])
    samples = [(10 * i, np.full(60, 5 * i)) for i in range(301)]
    rows = pause_time_rows(case, trees, samples)
    assert len(rows) == 100 and rows[0]["channel"] == LinkNames(case).name(3) == "2->1"
    assert sum(row["paused_us"] for row in rows) == pytest.approx(1500 * float(case.tick_s) * 1e6)


@both
def test_a_flow_that_waits_for_no_paused_channel_is_no_victim(engine):
    """Host 1 sends one packet to host 9 before the queue to host 8 fills: its channels are paused later, without it."""
    case = session(racks(), [*PAIRS[:4], (1, 9)], 400_000)
    sizes = np.array([400_000] * 4 + [4_000])
    flows = Flows(case.flows.source, case.flows.destination, sizes, np.zeros(5, np.int64))
    routes = make("routing", kind="ecmp", ways=64).build(case.topology)
    late = make_spray_session(case.topology, routes, make("transport", kind="roce").spraying(), fabric(), flows, 1)
    result = measure_sprayed(ENGINES[engine](late), None, 1.0, Window((0.0, 0.01)))
    assert result.row["pause_frames"] > 0 and result.row["victims"] == 0


@both
def test_what_holds_a_flow_lasts_no_longer_than_the_flow(engine):
    """Flows of an exchange between racks: pauses of a link that hold a flow, beside its own completion time."""
    pairs = [(a, b) for a in range(0, 16, 4) for b in range(0, 16, 4) if a != b] + [(a, 0) for a in range(1, 6)]
    found, counters = completed(session(racks(), pairs, 100_000), engine)
    held = counters.held * 1e6 * float(session(racks(), pairs, 100_000).tick_s)
    assert held.any() and (held.max(axis=1) <= found).all()
    links = links_of_flows(session(racks(), pairs, 100_000))
    paused = np.append(counters.pause[:, PauseCount.PAUSED], 0)  # of link -1, which no flow has
    assert (counters.held <= paused[links]).all()


def test_victims_are_unknown_where_switches_choose_ports():
    run = ENGINES["reference"](session(racks(), PAIRS, 40_000, queues=replace(fabric(), at_switch="adaptive")))
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.01)))
    assert result.row["victims"] is None and "victim_of" not in result.detail["flows"][0]


def test_the_figure_shows_channels_below_their_root():
    head = {"scenario": "a", "load": "1.0", "seed": "1"}
    tree = [("1", "host 8", 0), ("2", "1", 1), ("0", "2", 2)]
    rows = [{**head, "from": start, "to": end, "depth": str(depth)} for start, end, depth in tree]
    times = [
        {**head, "from_us": str(10 * i), "to_us": str(10 * i + 10), "channel": "2->1", "paused_us": str(i)}
        for i in range(1, 11)
    ]  # fmt: skip
    result = {**head, "host_throughput": "1", "seconds": "1.5e-4", "deadlocked": "True"}
    run = Run([result, {**result, "scenario": "b"}], [], [], {}, tables={"pauses": rows, "pauses_time": times})
    assert pauses(replace(run, tables={}), (3.5, 2.4)) is None
    ax = pauses(run, (3.5, 2.4)).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1->host 8", "· 2->1", "· · 0->2"]
    cells = [patch for patch in ax.patches if patch.get_gid() == "paused"]
    assert [cell.get_x() for cell in cells] == pytest.approx([10 * i for i in range(1, 11)])
    shades = [cell.get_facecolor()[0] for cell in cells]
    assert shades == sorted(shades, reverse=True) and shades[-1] == 0
    assert ax.get_xlim()[1] == pytest.approx(150) and ax.get_title() == "a: deadlock"
    assert "pauses" in captions(run)
