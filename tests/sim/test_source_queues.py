# SPDX-License-Identifier: Apache-2.0
"""Source queues that classes or subnets share: closed forms, BookSim2 28f4329, both engines, and configurations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import make
from flitlab.models.rules.source_queues import make_source_queues
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_after
from tests.scenarios import scenario, wormhole_scenarios
from tests.sim.test_classes import LASTING, LOADS, MANY, PAIR, agree, by_class, carrying, mesh, with_classes
from tests.sim.test_subnets import UNIFORM, in_subnets, with_subnets

TO_NEIGHBOUR = {"kind": "shift", "by": 1}


def pair(*listed, subnets: int = 1, vcs: int = 4) -> Scenario:
    """Two hosts, ample buffers: the source queue alone delays packets."""
    case = scenario(PAIR, source=Source(flits=(5,)), mode="wormhole", vcs=vcs, buffer_flits=80, header=0, switch=1,
                    link=1, injection=1, ejection=1, credit=1)  # fmt: skip
    return in_subnets(carrying(case, *listed), subnets)


@pytest.mark.long
def test_a_class_that_draws_its_subnet_waits_in_one_queue(engine_name):
    """Half of p packets a tick of S flits for each of two subnets, Bernoulli: the mean of A packets that arrive in a
    tick is p, of A (A - 1) p^2 / 2, and that of the work X = A S of X (X - 1) gives the wait of a discrete queue,
    E[X (X - 1)] / (2 (1 - p S)), and S p / 4 behind the other packet of the tick.
    """
    flits, packets = 5, 0.12
    case = pair({**TO_NEIGHBOUR, "packet_flits": flits, "share": flits * packets}, subnets=2)
    row = measure(engine_name, case, 1.0, 1, LASTING[engine_name]).row
    work = flits * (flits - 1) * packets + flits**2 * packets**2 / 2
    wait = work / (2 * (1 - flits * packets)) + flits * packets / 4
    assert wait == pytest.approx(3.375)
    zero_load = case.switching.zero_load_latency(case.topology, 1, flits)
    assert row["latency_mean"] - zero_load == pytest.approx(wait, rel=0.015 if engine_name == "compiled" else 0.05)


def test_a_class_that_draws_its_subnet_sends_a_flit_a_tick(engine_name):
    """Not one into every subnet, as two classes do; and no subnet gets more than the other."""
    case = pair({**TO_NEIGHBOUR, "packet_flits": 5, "share": 2.0}, subnets=2)
    row = measure(engine_name, case, 1.0, 1, Measure(200, 4000, None)).row
    assert row["accepted"] == pytest.approx(1.0, abs=0.002)
    named = [{**TO_NEIGHBOUR, "packet_flits": 5, "share": 1.0, "subnet": subnet} for subnet in (0, 1)]
    row = measure(engine_name, pair(*named, subnets=2), 1.0, 1, Measure(200, 4000, None)).row
    assert row["accepted"] > 1.9


@pytest.mark.parametrize("subnets", long_after(1, [1, 2]))
def test_priorities_in_a_shared_queue_do_not_interrupt_packets(engine_name, subnets):
    """The closed form of two priorities without pre-emption (see ``test_classes.py``), also where each class has a
    subnet of its own.
    """
    high, low = {"packet_flits": 5, "share": 0.4, "priority": 1}, {"packet_flits": 10, "share": 0.3}
    listed = [{**TO_NEIGHBOUR, "source_queue": "one", **one} for one in (high, low)]
    listed = [{**one, "subnet": number % subnets} for number, one in enumerate(listed)]
    how = LASTING["compiled"] if engine_name == "compiled" else Measure(2000, 30_000, None)
    rows = by_class(pair(*listed, subnets=subnets), 1.0, how, engine=engine_name)
    rest = 0.08 * 5 * 4 / 2 + 0.03 * 10 * 9 / 2
    waits = rest / 0.6, (rest / 0.6 + 0.4) / 0.3
    exact = engine_name == "compiled"
    assert rows[0]["latency_mean"] - 9 == pytest.approx(waits[0], rel=0.015 if exact else 0.05)
    assert rows[1]["latency_mean"] - 14 == pytest.approx(waits[1], rel=0.03 if exact else 0.1)


def test_classes_of_one_queue_send_packet_by_packet(engine_name):
    """Saturated, with one VC for each class: without the queue the classes alternate flit by flit, on two VCs."""
    one = {**TO_NEIGHBOUR, "packet_flits": 5, "share": 1.0}
    apart = [{**one, "vcs": [number, number]} for number in range(2)]
    accepted = []
    for queue in ({}, {"source_queue": "one"}):
        case = pair(*({**part, **queue} for part in apart), vcs=2)
        accepted.append([row["accepted"] for row in by_class(case, 1.0, Measure(500, 4000, None), engine=engine_name)])
    assert [sum(pair_) for pair_ in accepted] == [pytest.approx(1.0, abs=0.01)] * 2
    assert accepted[0] == pytest.approx([0.5, 0.5], abs=0.01)


def test_sources_of_queues():
    """Source c * hosts + h; two hosts in each of two subnets."""
    listed = [
        {**TO_NEIGHBOUR, "source_queue": "one", "subnet": 1, "priority": 3}, {**TO_NEIGHBOUR, "share": 0.2},
        {**TO_NEIGHBOUR, "source_queue": "one", "subnet": 0, "share": 0.1}, {**TO_NEIGHBOUR, "subnet": 0, "share": 0.1},
    ]  # fmt: skip
    queues = make_source_queues(pair(*listed, subnets=2).traffic)
    assert queues is not None
    np.testing.assert_array_equal(queues.members, [[2, 8], [3, 9], [4, 6], [5, 7]])
    np.testing.assert_array_equal(queues.queue, [-1, -1, 0, 1, 2, 3, 2, 3, 0, 1, -1, -1, -1, -1, -1, -1])
    np.testing.assert_array_equal(queues.priority, np.repeat([6, 0, 0, 0], 4))
    assert make_source_queues(pair(listed[3], subnets=2).traffic) is None
    assert make_source_queues(PAIR_TRAFFIC) is None


@pytest.mark.parametrize(
    ("reply", "request_queue", "shared"),
    [({}, {}, [[0, 2], [1, 3]]), ({"queue": 2}, {}, None), ({}, {"source_queue": "own"}, None)],
)
def test_requests_and_replies_share_a_queue_unless_replies_are_limited(reply, request_queue, shared):
    request = {**TO_NEIGHBOUR, **request_queue, "reply": {"class": "reply", **reply}}
    queues = make_source_queues(pair(request, {"name": "reply"}).traffic)
    assert (None if queues is None else queues.members.tolist()) == shared
    assert queues is None or queues.priority.tolist() == [0, 0, 1, 1]


PAIR_TRAFFIC = make("traffic", kind="uniform").build(PAIR)


@st.composite
def sharing(draw, cases) -> Scenario:
    """Scenarios in which some classes share a source queue."""
    case = draw(cases)
    names = st.sampled_from([None, "one", "one", "two"])
    listed = tuple(one if one.queue else replace(one, source_queue=draw(names)) for one in case.traffic.classes)
    return replace(case, instance=replace(case.instance, traffic=replace(case.traffic, classes=listed)))


@pytest.mark.long
@given(sharing(with_classes(wormhole_scenarios())), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=60)
def test_engines_agree(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@given(sharing(with_subnets(wormhole_scenarios())), LOADS, st.integers(0, 2**40))
@settings(MANY, max_examples=60)
def test_engines_agree_in_subnets(case, load, seed):
    agree(case, load, seed)


@pytest.mark.long
@pytest.mark.parametrize(("load", "latency"), [(0.1, 31.91), (0.3, 34.93), (0.5, 40.90), (0.6, 46.31)])
def test_packets_of_two_subnets_wait_as_in_booksim2(load, latency):
    """8 x 8 mesh, 4 VCs of 8 flits, packets of 5 flits, subnets = 2 (FLIT.md, section 2, and further runs)."""
    case = mesh()
    traffic = make("traffic", **UNIFORM).build(case.topology)
    case = in_subnets(replace(case, instance=replace(case.instance, traffic=traffic)), 2)
    row = measure("compiled", case, load, 1, Measure(10_000, 40_000, None)).row
    assert row["latency_mean"] == pytest.approx(latency, rel=0.02)


# BookSim2, use_read_write = 1: requests of 1 and 5 flits, replies of 5 and 1; VCs 0, 1 and 2, 3, or a subnet each
READS_AND_WRITES = {
    (1, 0.05): 29.97, (1, 0.1): 30.73, (1, 0.2): 33.16, (1, 0.25): 35.49,
    (2, 0.1): 30.23, (2, 0.3): 32.17, (2, 0.5): 36.87,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("subnets", "load"), READS_AND_WRITES)
def test_requests_and_replies_in_one_queue_wait_as_in_booksim2(subnets, load):
    """Half a tick is added: BookSim2 counts the latency of a reply from the delivery of its request (FLIT.md)."""
    case = mesh(vcs=4 // subnets)
    keys: list[dict] = [{"vcs": [0, 1]}, {"vcs": [2, 3]}] if subnets == 1 else [{"subnet": 0}, {"subnet": 1}]
    listed = []
    for name, request, reply in (("read", 1, 5), ("write", 5, 1)):
        answer = {"class": f"{name} reply", "packet_flits": reply}
        share = load / 12 * request
        listed.append({"name": name, **UNIFORM, "packet_flits": request, "share": share, "reply": answer, **keys[0]})
        listed.append({"name": f"{name} reply", **keys[1]})
    case = in_subnets(carrying(case, *listed), subnets)
    row = measure("compiled", case, 1.0, 1, Measure(10_000, 40_000, None)).row
    assert row["latency_mean"] + 0.5 == pytest.approx(READS_AND_WRITES[subnets, load], rel=0.015)


CONFIG = """\
schema: 1
name: queues
topology: {kind: mesh, dims: [3, 3]}
routing: {kind: dor}
switching: {mode: wormhole, vcs: 2, buffer_flits: 4}
traffic:
  classes:
    - {name: read, kind: uniform, source_queue: all, reply: {class: data}}
    - {name: data, source_queue: all}
loads: [0.1]
seeds: [1]
measure: {warmup: 10, ticks: 100, ci: null}
ceilings: []
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("mode: wormhole", "mode: vct", r"classes\[0\].source_queue = all: needs switching.mode: wormhole"),
        ("{class: data}", "{class: data, queue: 2}", r"classes\[1\].source_queue = all: must be null: data has a"),
        ("source_queue: all, reply", "source_queue: '', reply", r"classes\[0\].source_queue"),
        ("vcs: 2,", "vcs: 2, priority_at: input_vcs,", r"priority_at = input_vcs: must be all where"),
    ],
)
def test_keys_are_refused_where_they_have_no_meaning(tmp_path, old, new, problem):
    path = tmp_path / "queues.yaml"
    path.write_text(CONFIG)
    assert [one.source_queue for one in read(path).cases[0].scenario.traffic.classes] == ["all", "all"]
    path.write_text(CONFIG.replace(old, new))
    with pytest.raises(ConfigError, match=problem):
        read(path)


def test_a_queue_belongs_to_the_content_hash():
    apart, shared = (
        pair({**TO_NEIGHBOUR, **queue}, {**TO_NEIGHBOUR, **queue}).content_hash for queue in ({}, {"source_queue": "x"})
    )
    assert apart != shared
