# SPDX-License-Identifier: Apache-2.0
"""Networks that change under classes of traffic: what is lost of each, and the replies that hosts owe."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError
from flitlab.models.reply_queues import reply_cycle
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.network_changes import network_changes
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import ClassCounter, Scalar
from flitlab.sim.engines.compiled.records import in_flight_records
from flitlab.sim.engines.start import start
from flitlab.sim.report.folder.frames import read_csv
from tests import long_after
from tests.conformance.cases import changing, horizon, with_events
from tests.conformance.conservation import assert_conserved, engines
from tests.scenarios import TIMES, ideal, scenario, topologies
from tests.sim.test_classes import MANY, PAIR, carrying, with_classes
from tests.sim.test_reply_queues import DELAY, closed_loop
from tests.sim.test_subnets import in_subnets
from tests.sim.test_timeline_vct import DIAGONALS, NEVER, RING, happening, square

BUSY = st.sampled_from([0.3, 0.7, 1.0])
MODES = ["vct", "wormhole", "ideal"]


def certified(draw, case: Scenario) -> Scenario:
    """The scenario with certificates, and with limits of replies where these have VCs of their own."""
    if case.switching.mode == "ideal":
        return case
    vcs, classes = case.switching.vcs, case.traffic.classes
    if draw(st.booleans()):
        halves = (0, vcs // 2), (vcs // 2, vcs)
        classes = tuple(replace(one, vcs=halves[one.request is not None]) for one in classes)
        limits = st.sampled_from([1, 2, 5])
        classes = tuple(one if one.request is None else replace(one, queue=draw(limits)) for one in classes)
    elif reply_cycle(case.topology, classes, vcs) is not None:
        classes = tuple(replace(one, queue=None) for one in classes)
    case = replace(case, instance=replace(case.instance, traffic=replace(case.traffic, classes=classes)))
    ranges = tuple(sorted({one.vcs or (0, vcs) for one in classes}))
    try:
        switching, _ = replace(case.switching, vc_ranges=ranges).certified(case.topology, case.routes)
    except SpecError:
        reject()
    return replace(case, switching=switching)


@st.composite
def changing_classes(draw, mode: str, count: int = 1) -> Scenario:
    """A network that changes, of ``count`` subnets, with classes; at least one has replies."""
    topology = draw(topologies().filter(lambda one: one.channels >= 12 and not one.directed and not one.has_delays))
    kinds = [{"kind": "updown"}, {"kind": "minimal"}, {"kind": "ksp", "k": 1}]
    kinds.append({"kind": "minimal", "select": "adaptive"})
    routing, flits = draw(st.sampled_from(kinds)), draw(st.sampled_from([(1, 4), (2, 5)]))
    keys = {"mode": "wormhole", "header": draw(st.integers(1, 4))} if mode == "wormhole" else {}
    keys["buffer_flits"] = draw(st.integers(1, 8)) if mode == "wormhole" else draw(st.integers(5, 15))
    try:
        case = scenario(
            topology, routing=routing, source=Source(flits=flits), vcs=draw(st.integers(4, 8)),
            shared_input=draw(st.booleans()), **keys,
        )  # fmt: skip
    except SpecError:
        reject()
    case = draw(with_classes(st.just(ideal(case) if mode == "ideal" else case)))
    if all(one.request is None for one in case.traffic.classes):
        reject()
    if mode == "wormhole" and case.switching.priority == "none":  # one variant of the kernel
        case = replace(case, switching=replace(case.switching, priority="class"))
    case = certified(draw, case)
    if count == 1:
        return changing(case, routing, draw(st.integers(0, 2**32)))
    limited = {n for number, one in enumerate(case.traffic.classes) if one.queue for n in (number, one.request)}
    own = [n in limited or draw(st.booleans()) for n in range(len(case.traffic.classes))]
    classes = tuple(
        replace(one, subnet=draw(st.integers(0, count - 1)) if named else None)
        for one, named in zip(case.traffic.classes, own, strict=True)
    )
    case = replace(case, instance=replace(case.instance, traffic=replace(case.traffic, classes=classes)))
    return changing(in_subnets(case, count), routing, draw(st.integers(0, 2**32)), topology)


def assert_classes_conserved(run) -> None:
    """Assert that packets of each class are delivered, dropped, in the network or in a source queue, and no others."""
    (compiled, ours), counted = engines(run), run.snapshot()
    number = len(counted.classes)

    def by_class(sequences) -> np.ndarray:
        return np.bincount(np.array(sequences, np.int64) % number, minlength=number)

    created, delivered, dropped = (
        counted.classes[:, getattr(ClassCounter, f"{what}_PACKETS")] for what in ("CREATED", "DELIVERED", "DROPPED")
    )
    assert dropped.sum() == counted.scalars[Scalar.DROPPED_PACKETS]
    assert counted.classes[:, ClassCounter.DROPPED_FLITS].sum() == counted.scalars[Scalar.DROPPED_FLITS]
    np.testing.assert_array_equal(by_class(run.log().identity // ours.scenario.topology.hosts), delivered)
    waiting = by_class([packet.sequence for host in ours.hosts for packet in host.waiting])
    sent = by_class([packet.sequence for packet in ours.sent()])
    np.testing.assert_array_equal(created, delivered + dropped + sent + waiting)
    records = in_flight_records(compiled._state)
    np.testing.assert_array_equal(by_class(records["sequence"][records["flits"] > 0]), sent)


def assert_limits_hold(run) -> None:
    """Assert that every host owes at least no reply, and at most as many as it may, in both engines."""
    compiled, ours = engines(run)
    replies, classes = compiled._state.pool.replies, ours.classes
    limit = np.repeat(classes.reply_limit[classes.request], classes.hosts)  # of a class of requests, its own
    sending = replies.sending_until >= compiled._tick
    assert (replies.outstanding >= 0).all() and (replies.outstanding + sending <= limit)[replies.made[:, 0] > 0].all()
    for (request, _), count in ours.replies.outstanding.items():
        assert 0 <= count <= classes.reply_limit[request]


@pytest.mark.long
@pytest.mark.parametrize("subnets", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_engines_agree_and_conserve_packets_of_every_class(mode, subnets):
    @given(changing_classes(mode, subnets), BUSY, st.integers(0, 2**40))
    @settings(MANY, max_examples=100)
    def check(case, load, seed):
        growing, offered = case.at(load)
        run, last = start("both", growing, offered, seed, log=True), horizon(case)
        for tick in range(last // 5, last + 1, last // 5):
            run.advance(tick)
            run.deadlocked()
            assert_conserved(run, growing)
            assert_classes_conserved(run)
            assert_limits_hold(run)

    check()


def failing(case: Scenario, tick: int, back: int | None = None, reroute_after: float = NEVER) -> Scenario:
    """A pair of switches whose link fails at a tick and returns at another; reroute_after: the return."""
    events = [{"at_tick": tick, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}]
    if back is not None:
        events.append({"at_tick": back, "restore": {"links": [[0, 1]]}, "reroute_after": reroute_after})
    return happening(case, events)


@pytest.mark.parametrize("mode", ["vct", "ideal"])
def test_what_is_on_a_link_is_lost_of_each_class(engine_name, mode):
    """A host that always sends alternates packets of 4 and 2 flits, so that one of each is granted every 6 ticks.

    A head is on the link for the ticks of switch and link after its grant. Over 6 consecutive ticks of failure as many
    are lost of each class and direction, and none else.
    """
    case = scenario(PAIR, source=Source(flits=(4,)), vcs=4, buffer_flits=60)
    case = ideal(case) if mode == "ideal" else case
    one = {"kind": "shift", "by": 1, "share": 1.5}
    case = carrying(case, {**one, "packet_flits": 4}, {**one, "packet_flits": 2})
    lost = np.zeros(2, np.int64)
    for tick in range(300, 306):
        run = start(engine_name, failing(case, tick, tick + 40), 1.0, 1)
        run.advance(500)
        lost += run.snapshot().classes[:, ClassCounter.DROPPED_PACKETS]
    on_link = TIMES["switch"] + TIMES["link"]
    assert lost.tolist() == [2 * on_link, 2 * on_link]


def test_what_has_a_vc_of_a_link_is_lost_of_each_class_in_wormhole(engine_name):
    """Classes of single flits, on a VC each that takes a head in every second tick, share a link that is never idle.

    A flit is on the link for the ticks of switch and link after its grant, and has its VC a tick before that. So over 2
    consecutive ticks of failure one tick more than these is lost of each class and direction.
    """
    case = scenario(PAIR, source=Source(flits=(1,)), vcs=2, buffer_flits=24, mode="wormhole", header=1)
    one = {"kind": "shift", "by": 1, "share": 0.9, "packet_flits": 1}
    case = carrying(case, {**one, "vcs": [0, 0]}, {**one, "vcs": [1, 1]})
    lost = np.zeros(2, np.int64)
    for tick in (300, 301):
        run = start(engine_name, failing(case, tick, tick + 40), 1.0, 1)
        run.advance(500)
        lost += run.snapshot().classes[:, ClassCounter.DROPPED_PACKETS]
    on_link = TIMES["switch"] + TIMES["link"]
    assert lost.tolist() == [2 * (on_link + 1), 2 * (on_link + 1)]


@pytest.mark.parametrize("reroute_after", [NEVER, 0.0])
@pytest.mark.parametrize("queue", long_after(1, [1, 2]))
@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_requests_and_replies_go_on_as_before_when_their_link_returns(engine_name, mode, queue, reroute_after):
    """Whatever is dropped, no reply stays outstanding: a host answers ``queue`` requests in L - 1 + switch + ejection +
    delay + R ticks again, when the link has returned, with and without a drain.
    """
    flits = 12  # of requests and replies, which wormhole buffers do not hold, but do not slow
    case = closed_loop(mode, queue, flits, flits, buffer_flits=9 if mode == "wormhole" else 24)
    loop = flits - 1 + case.switching.switch + case.switching.ejection + DELAY + flits
    lost = np.zeros(2, np.int64)
    for tick in range(300, 300 + loop, 4 if engine_name == "reference" else 1):
        run = start(engine_name, failing(case, tick, tick + 40, reroute_after), 1.0, 3)
        counted = []
        for end in (600, 600 + 5 * loop):
            run.advance(end)
            counted.append(run.snapshot().classes)
        delivered, dropped = (
            counted[1][:, column] - counted[0][:, column]
            for column in (ClassCounter.DELIVERED_PACKETS, ClassCounter.DROPPED_PACKETS)
        )
        assert delivered[0] == 5 * queue and not dropped.any()
        lost += counted[0][:, ClassCounter.DROPPED_PACKETS]
    assert (lost > 0).all()


SWEEP = """
topology: {kind: torus, dims: [4, 4]}
routing: {kind: minimal}
switching: {mode: %s%s}
traffic:
  classes:
  - {name: control, kind: uniform, load: 0.05, priority: 1%s}
  - {name: read, kind: uniform, packet_flits: 2%s, reply: {class: data, packet_flits: 5, queue: 3}}
  - {name: data%s}
loads: [0.15]
measure: {ticks: 500}
timeline:
- {at_tick: 100, fail: {links: [[0, 1], [5, 6]]}, reroute_after: 80}
- {at_tick: 350, restore: {links: [[0, 1], [5, 6]]}}
ceilings: [mcf]
engine: reference
outputs: {figures: []}
"""
RANGES = ", vcs: [0, 3]", ", vcs: [0, 3]", ", vcs: [4, 7]"


def keys(mode: str, *ranges: str) -> str:
    """The configuration in a mode; ranges: of the VCs of every class."""
    router = "" if mode == "ideal" else ", vcs: 8, buffer_flits: 8, priority: class"
    return SWEEP % (mode, router, *(ranges or ("", "", "") if mode == "ideal" else ranges or RANGES))


@pytest.mark.parametrize("mode", long_after(1, MODES))
def test_a_point_counts_what_is_lost_of_each_class(tmp_path, mode):
    """Each epoch has ceilings of the sum of the classes, which its deliveries are checked against."""
    (tmp_path / "given.yaml").write_text(keys(mode))
    assert main(["run", str(tmp_path / "given.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1"]) == 0
    (row,) = read_csv(tmp_path / "run" / "results.csv")
    rows = read_csv(tmp_path / "run" / "classes.csv")
    assert [row["class"] for row in rows] == ["control", "read", "data"]
    for column in ("lost_packets", "lost_flits", "packets"):
        assert sum(int(one[column]) for one in rows) == int(row[column]) > 0
    assert all(
        int(one["lost_flits"]) == flits * int(one["lost_packets"]) for one, flits in zip(rows, (1, 2, 5), strict=True)
    )
    (record,) = [json.loads(path.read_text()) for path in (tmp_path / "run" / "points").iterdir()]
    assert set(record["slack"]) == {"mcf", "mcf:epoch_1", "mcf:epoch_2", "mcf:epoch_3"}


def test_routes_of_a_changed_network_need_certificates_for_every_range():
    """Between four switches that are all joined no packet takes two channels; without the diagonals some take two."""
    uniform = {"kind": "uniform", "packet_flits": 4}
    for vcs in (1, 2):
        case = replace(square(), switching=replace(square().switching, vcs=2 * vcs))
        case = carrying(case, {**uniform, "vcs": [0, vcs - 1]}, {**uniform, "vcs": [vcs, 2 * vcs - 1]})
        switching = replace(case.switching, vc_ranges=((0, vcs), (vcs, 2 * vcs)))
        case = replace(case, switching=switching.certified(case.topology, case.routes)[0])
        if vcs == 1:
            with pytest.raises(SpecError, match=r"at tick 100 has no certificate .* classes on VC 0: rising needs"):
                happening(case, [DIAGONALS])
        else:
            assert happening(case, [DIAGONALS]).timeline is not None


def test_replies_that_may_deadlock_are_rejected_with_a_timeline(tmp_path):
    (tmp_path / "given.yaml").write_text(keys("vct", "", "", ""))
    with pytest.raises(ConfigError, match=r"may deadlock: \(read, 0->1, VC 0\) waits for \(data"):
        read(tmp_path / "given.yaml")
    with pytest.raises(ConfigError, match="a network that deadlocks is never empty"):
        read(tmp_path / "given.yaml", ["switching.allow_deadlock=true"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("event", [{"fail": {"links": [["0@1", "1@1"]]}}, {"slow": {"links": [[4, 5]]}, "factor": 0.5}])
def test_an_event_in_a_subnet_leaves_others_as_they_are(engine_name, mode, event):
    """Every second packet of four hosts in a ring takes subnet 1; without rerouting subnet 0 never hears of it. In mode
    wormhole packets that draw their subnet wait for one another at their host: there each subnet has a class.
    """
    case = scenario(RING, mode="vct" if mode == "ideal" else mode, vcs=4)
    if mode == "wormhole":
        case = carrying(case, *({"kind": "uniform", "share": 0.5, "subnet": subnet} for subnet in (0, 1)))
    case = in_subnets(ideal(case) if mode == "ideal" else case, 2)
    minimal = {"kind": "minimal"}
    changed = with_events(case, minimal, [{"at_tick": 200, "reroute_after": NEVER, **event}], subnet=RING)
    logs = []
    for one in (case, changed):
        run = start(engine_name, one, 0.4, 1, log=True)
        run.advance(600)
        logs.append(run.log())
    times = [dict(zip(log.identity.tolist(), log.delivered.tolist(), strict=True)) for log in logs]
    of_subnet = [{k: t for k, t in one.items() if k % 8 // 4 == subnet} for one in times for subnet in (0, 1)]
    assert of_subnet[0] == of_subnet[2] and len(of_subnet[0]) > 100
    assert of_subnet[1] != of_subnet[3]


def test_routes_of_a_subnet_learn_of_its_failures_only():
    """Both copies have the routes that each has as a network of its own, of next hops and of paths."""
    for routing in ({"kind": "minimal"}, {"kind": "ksp", "k": 1}, {"kind": "updown"}):
        whole = in_subnets(scenario(RING, routing=routing, vcs=4), 2)
        event = {"at_tick": 9, "fail": {"links": [["0@1", "1@1"]]}}
        timeline = with_events(whole, routing, [event], subnet=RING).timeline
        alone = with_events(scenario(RING, routing=routing, vcs=4), routing, [{**event, "fail": {"links": [[0, 1]]}}])
        (ours,), (own,) = (network_changes(t, r) for t, r in ((timeline, whole.routes), (alone.timeline, alone.routes)))
        for first, single in ((0, alone.routes), (4, own.routes)):
            for source in range(4):
                for target in range(4):
                    if source != target:
                        assert hops(ours.routes, first, source, target, 8) == hops(single, 0, source, target, 4)


def hops(routes: Routes, first: int, source: int, target: int, switches: int) -> list[int]:
    """The port set, or the ports of all paths, of a pair of switches; first: switch of the subnet."""
    if routes.paths is None:
        return np.atleast_1d(routes.ports[first + target, first + source]).tolist()
    pair = (first + source) * switches + first + target
    paths = range(routes.paths.pair_start[pair], routes.paths.pair_start[pair + 1])
    return [routes.paths.port[routes.paths.path_start[p] : routes.paths.path_start[p + 1]].tolist() for p in paths]
