# SPDX-License-Identifier: Apache-2.0
"""Several classes of lossless queues, against closed forms."""

from dataclasses import replace
from math import inf
from random import Random

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.priority_classes import NO_CLASS, count_sent, make_service, next_class
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import PriorityClass, Storm
from flitlab.sim.engines.transport.run import compare_counters
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount, PauseCause, PauseCount
from flitlab.sim.measure.pauses import pause_rows, pause_trees
from flitlab.sim.measure.spray import measure_sprayed
from flitlab.sim.measure.transport import Window
from tests import long_after
from tests.sim.lossless_cases import (
    ENGINES,
    TAU,
    TAU_ACK,
    clockwise,
    completed,
    drawn_queues,
    fabric,
    lossless_of_number,
    racks,
    rebuilt,
    ring,
    session,
)
from tests.sim.spray_cases import case_of_number
from tests.sim.test_lossless import TREE, agree
from tests.sim.test_lossless_changes import events_of
from tests.sim.test_spray_changes import happening

both = pytest.mark.parametrize("engine", long_after(1, sorted(ENGINES, reverse=True)))

STORAGE, BULK = PriorityClass("storage", weight=3), PriorityClass("bulk")
VOICE = PriorityClass("voice", pause=False, strict=True)

STAR = make("topology", kind="mesh", dims=[1], hosts_per_switch=9).build()


def of_classes(topology, flows, classes, size=2_000_000, transport=None, routes=None, seed=1, **keys) -> SpraySession:
    """RoCE flows of one size, (source, destination, number of the class) each, that begin together."""
    used = sorted({number for *_, number in flows})
    sprayings = [
        make("transport", kind="roce", priority_class=classes[number].name, **(transport or {})).classified()
        for number in used
    ]
    source, destination, kind = np.array(flows, np.int64).T
    routes = routes or make("routing", kind="ecmp", ways=64).build(topology)
    sizes = np.broadcast_to(np.array(size, np.int64), len(flows))
    return make_spray_session(
        topology, routes, sprayings, fabric(classes=tuple(classes), **keys),
        Flows(source, destination, sizes, np.zeros(len(flows), np.int64), np.searchsorted(used, kind)), seed,
        names=tuple(classes[number].name for number in used),
    )  # fmt: skip


def received(run):
    """Packets' bytes that each flow has received."""
    return run.counters().flow[:, FlowCount.RECEIVED]


@both
def test_backlogged_classes_share_an_output_by_their_weights(engine):
    case = of_classes(STAR, [(1, 0, 0), (2, 0, 1), (3, 0, 1)], [STORAGE, BULK], 2_400_000)
    run = ENGINES[engine](case)
    run.advance(case.ticks(0.00005))
    before = received(run)
    run.advance(case.ticks(0.00025))
    moved = (received(run) - before) / 4064
    assert moved.sum() == pytest.approx(200 / TAU, abs=1)
    assert moved[0] == pytest.approx(0.75 * 200 / TAU, abs=3), "to a turn, of three packets"
    assert moved[1] == pytest.approx(moved[2], abs=16), "input ports share the part of their class, to a threshold"
    pause = run.counters().pause
    assert pause[:, PauseCount.FRAMES].sum() > 0


@both
def test_weights_hold_for_packets_of_other_sizes(engine):
    """Packets of 65 bytes against full ones: turns count bytes."""
    case = of_classes(STAR, [(1, 0, 0), *([(2, 0, 1)] * 1500)], [STORAGE, BULK], [4_000_000] + [1] * 1500)
    run = ENGINES[engine](case)
    run.advance(case.ticks(0.00001))
    before = received(run)
    run.advance(case.ticks(0.000025))
    moved = received(run) - before
    assert moved[1:].sum() == pytest.approx(15 * 12_500 / 4, abs=4064 + 65)


@both
def test_a_flow_ends_at_the_share_of_its_class_though_another_class_is_paused(engine):
    """Two flows of storage fill the link between the racks, which has paused their hosts when that of bulk begins."""
    flows = [(0, 8, 0), (1, 9, 0), (2, 10, 1)]
    case = of_classes(racks(), flows, [STORAGE, BULK], SIZES)
    times, counters = completed(case, engine)
    assert times[2] == pytest.approx(49 * 4 * TAU + 4 * TAU + 4 + 4 * (TAU_ACK + 1), abs=4 * TAU)
    assert 1.2 * times[2] < times[:2].min()
    (single, _) = completed(of_classes(racks(), [(*flow, 0) for flow in PAIRS], [STORAGE, BULK], SIZES), engine)
    assert single[2] < times[2], "one of three flows of a class has a third, not a quarter"
    assert counters.pause[::2, PauseCount.FRAMES].sum() > 0


PAIRS, SIZES = [(0, 8), (1, 9), (2, 10)], [800_000, 800_000, 200_000]


@both
def test_a_flow_on_links_that_another_class_leaves_idle_ends_as_if_alone(engine):
    """A storm stops storage for ever; its queues are full, and its hosts paused."""
    case = of_classes(
        racks(), [(0, 8, 0), (1, 9, 1)], [STORAGE, BULK], 400_000, pfc_storm=Storm(8, 0.0, None, "storage")
    )
    flows = replace(case.flows, start=case.flows.start + np.array([0, 12_500 * 200]))
    run = ENGINES[engine](replace(case, flows=flows))
    run.advance(12_500 * 300)
    counters = run.counters()
    took = (counters.flow[:, FlowCount.FINISHED] - flows.start) * 8e-5
    assert counters.flow[0, FlowCount.FINISHED] < 0
    assert took[1] == pytest.approx(103 * TAU + 4 + 4 * (TAU_ACK + 1), abs=1e-6)
    paused = counters.pause[:, PauseCount.LONGEST].reshape(-1, 2)
    assert (paused[:, 0] > 200 * 12_500).sum() == 4 and not paused[:, 1].any()
    trees = pause_trees(case, counters)
    assert {pause.link % 2 for pause in trees.pauses} == {0} and not trees.victims
    rows = pause_rows(case, trees, counters.pause)
    assert [(row["root"], row["class"]) for row in rows] == 4 * [("1->host 8 (storage)", "storage")]


@both
def test_a_strict_class_takes_its_time_alone(engine):
    """Its packets wait for at most one packet of another class at each output."""
    classes = [STORAGE, PriorityClass("control", strict=True)]
    flows = [(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 1)]
    times, _ = completed(of_classes(STAR, flows, classes, 400_000), engine)
    alone = 101 * TAU + 2 + 2 * (TAU_ACK + 1)
    assert alone <= times[3] <= alone + 2 * TAU
    assert times[:3].max() == pytest.approx(TAU + 1 + 4 * 100 * TAU + 1 + 2 * (TAU_ACK + 1), abs=2 * TAU)


@both
def test_a_class_that_does_not_pause_drops_and_pauses_nothing(engine):
    bulk = PriorityClass("bulk", pause=False, queue_packets=10)
    flows = [(1, 0, 0), (2, 0, 0), (3, 0, 1), (4, 0, 1)]
    case = of_classes(STAR, flows, [STORAGE, bulk], 400_000, {"timeout_us": 100.0})
    run = ENGINES[engine](case)
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.01)))
    counters = run.counters()
    assert run.ended() and result.row["drops"] > 0
    assert (counters.flow[:2, FlowCount.RESENT] == 0).all() and (counters.flow[2:, FlowCount.RESENT] > 0).all()
    assert not counters.pause[1::2].any() and counters.pause[::2, PauseCount.FRAMES].sum() > 0
    ports = (run.ports if engine == "reference" else run._state.lossless).ports
    assert not ports.charged.any() and not ports.is_pausing.any()


def test_the_capacity_of_a_class_is_that_of_queues_that_drop_or_its_own_by_the_rate_of_links():
    topology = replace(racks(), capacity=np.array([1.0, 0.5, 1.0, 4.0]))
    classes = [STORAGE, VOICE._replace(queue_packets=8), BULK._replace(pause=False)]
    case = of_classes(topology, [(0, 8, 0)], classes)
    limits = case.ports.classes.limit.reshape(-1, 3)
    assert limits[:4, 1].tolist() == [8 * 4064, 4 * 4064, 8 * 4064, 32 * 4064] and limits[-1, 1] == 8 * 4064
    np.testing.assert_array_equal(limits[:, 2], case.queue_bytes)


@both
def test_input_ports_hold_no_more_than_headroom_beyond_the_threshold_of_each_class(engine):
    flows = [(host, (host + 8) % 16, host % 2) for host in range(16)]
    routes = make("routing", kind="ecmp", ways=1).build(TREE)
    case = of_classes(TREE, flows, [STORAGE, BULK], 100_000, routes=routes, xoff=6, xon=4)
    run = ENGINES[engine](case)
    run.advance(case.ticks(0.002))
    counters = run.counters()
    assert run.ended() and counters.link[:, LinkCount.DROPS].sum() == 0
    peak = counters.pause[:, PauseCount.PEAK].reshape(-1, 2)
    assert (peak.max(axis=0) <= 6 * 4000 + 2 * 12_500 + 2 * 4064).all() and (peak.max(axis=0) > 6 * 4000).all()
    ports = (run.ports if engine == "reference" else run._state.lossless).ports
    assert not ports.charged.any() and not ports.is_pausing.any() and (ports.paused_at < 0).all()


@both
def test_a_host_serves_its_classes_as_an_output_does(engine):
    """Turns of three packets and of one: the last one of storage is the 133rd of the host, that of bulk the 200th."""
    times, _ = completed(of_classes(STAR, [(1, 2, 0), (1, 3, 1)], [STORAGE, BULK], 400_000), engine)
    alone = 101 * TAU + 2 + 2 * (TAU_ACK + 1)
    np.testing.assert_allclose(times, [alone + 33 * TAU, alone + 100 * TAU], atol=1e-6)


def test_a_single_class_is_the_default():
    flows, single = [(1, 0, 0), (2, 0, 0), (3, 0, 0)], PriorityClass("storage", weight=7, strict=False)
    case = of_classes(STAR, flows, [single], 400_000)
    default = session(STAR, [flow[:2] for flow in flows], 400_000)
    assert case.ports.classes is None
    found, counters = completed(case, "reference")
    expected, others = completed(default, "reference")
    np.testing.assert_array_equal(found, expected)
    compare_counters(counters, others)


@pytest.mark.parametrize("engine", [pytest.param("compiled", marks=pytest.mark.long), "reference"])
@pytest.mark.parametrize("number", long_after(1, range(60)))
def test_a_class_without_flows_changes_nothing(number, engine):
    case = lossless_of_number(number)
    idle = replace(case.fabric.lossless, classes=(PriorityClass("idle", weight=3), BULK), ack_class="data")
    alone = replace(idle, classes=())
    counters = []
    for lossless in (idle, alone):
        _, _, routes = case_of_number(number)
        keys = {"kind": "roce", "timeout_us": 20.0 + number % 7} | (
            {"priority_class": "bulk"} if lossless is idle else {}
        )
        built = rebuilt(case, routes, keys, lossless, number)
        run = ENGINES[engine](built)
        run.advance(300_000)
        counters.append(run.counters())
    shared, single = counters
    np.testing.assert_array_equal(shared.flow, single.flow)
    np.testing.assert_array_equal(shared.link, single.link)
    np.testing.assert_array_equal(shared.pause[1::2], single.pause)


def test_a_shared_buffer_has_reserve_and_headroom_for_each_class_that_pauses():
    case = of_classes(racks(), [(0, 8, 0)], [STORAGE, BULK, VOICE], buffer_bytes=400_000, headroom_bytes=2500)
    ports, buffers = case.ports.state()
    assert buffers.size[0] == 400_000 - 2 * 9 * (4096 + 2500)
    assert len(ports) == 3 * len(case.delay) and (ports.most_headroom == 2500).all()
    assert ports.switch[: 3 * 4].tolist() == np.repeat(racks().dst, 3).tolist()


@both
def test_a_storm_of_a_class_holds_no_other(engine):
    storm = Storm(8, 5.0, priority_class="bulk")
    flows = [(0, 8, 0), (1, 8, 1), (2, 9, 1), (3, 9, 0)]
    run = ENGINES[engine](of_classes(racks(), flows, [STORAGE, BULK], 400_000, pfc_storm=storm))
    run.advance(12_500 * 2000)
    counters = run.counters()
    assert (counters.flow[:, FlowCount.FINISHED] >= 0).tolist() == [True, False, False, True]
    assert (counters.causes[:, PauseCause.LINK] % 2 == 1).any()
    watched = of_classes(
        racks(), flows, [STORAGE, BULK], 400_000, {"timeout_us": 200.0}, pfc_storm=storm, watchdog_us=100.0,
        restore_us=50.0,
    )  # fmt: skip
    run = ENGINES[engine](watched)
    run.advance(12_500 * 3000)
    counters = run.counters()
    fired = counters.pause[:, PauseCount.FIRED].reshape(-1, 2)
    assert (counters.flow[:, FlowCount.FINISHED] >= 0)[[0, 2, 3]].all()
    assert not fired[:, 0].any() and fired[:, 1].any(), "a watchdog is that of a class"


@both
def test_a_deadlock_of_one_class_is_found_when_the_others_have_ended(engine):
    pairs, routes = clockwise(ring(3), 2)
    flows = [(*pair, number) for number in (0, 1) for pair in pairs]
    sizes = [20_000_000] * 3 + [4_000] * 3
    run = ENGINES[engine](of_classes(ring(3), flows, [STORAGE, BULK], sizes, routes=routes))
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.01)))
    done = run.counters().flow[:, FlowCount.FINISHED] >= 0
    assert result.row["deadlocked"] and done.tolist() == [False] * 3 + [True] * 3
    assert result.row["deadlock_cycle"].startswith("(0->1, class storage) waits for ")


def classes_of_number(number: int) -> tuple[PriorityClass, ...]:
    """Classes of any kind."""
    rng = Random(number)
    classes = []
    for place in range(rng.randint(2, 4)):
        one = PriorityClass(f"c{place}", rng.random() < 0.7, strict=rng.random() < 0.3)
        if not one.strict:
            one = one._replace(weight=rng.choice([1, 1, 2, 5]))
        if not one.pause:
            one = one._replace(queue_packets=rng.choice([None, 1, 4, 20]))
        classes.append(one)
    return tuple(classes)


def drawn(number: int, kinds: list[dict], shared: bool = False) -> SpraySession:
    """A session of transports in any classes, on any topology."""
    case, _, routes = case_of_number(number)
    rng, classes, mtu = Random(number), classes_of_number(number), case.fabric.mtu_bytes
    lossless = replace(drawn_queues(rng), classes=classes)
    if lossless.pfc_storm is not None and lossless.pausing:
        name = rng.choice([None, classes[lossless.pausing[0]].name])
        lossless = replace(lossless, pfc_storm=lossless.pfc_storm._replace(priority_class=name))
    if shared:
        ports = case.topology.channels + case.topology.hosts
        headroom = rng.choice([mtu, 20_000])
        lossless = replace(
            lossless, headroom_bytes=headroom, reserve_bytes=rng.choice([0, 4096]), alpha_shift=rng.choice([0, 1, 3]),
            buffer_bytes=4 * ports * (headroom + 4096) + rng.choice([2, 20, 500]) * mtu,
        )  # fmt: skip
    keys = [{**rng.choice(kinds), "priority_class": rng.choice(classes).name} for _ in range(3)]
    flows = Flows(case.flows.source, case.flows.destination, case.flows.bytes, case.flows.start)
    queues = replace(
        case.fabric, trim=False, ecn=(1.0, 4.0) if number % 2 else None, lossless=lossless, queue_bytes=None
    )  # fmt: skip
    flows = flows._replace(kind=np.array([rng.randrange(3) for _ in flows.source]))
    return make_spray_session(
        case.topology, routes, [make("transport", **one).classified() for one in keys], queues, flows, number,
        names=("a", "b", "c"),
    )  # fmt: skip


RDMA = [{"kind": "roce", "timeout_us": 50.0}, {"kind": "dcqcn", "cnp_us": 1.0, "timeout_us": 100.0}]


@pytest.mark.parametrize("number", long_after(0, range(200)))
def test_engines_agree_on_classes(number):
    agree(drawn(number, RDMA))


@pytest.mark.long
@pytest.mark.parametrize("number", range(60))
def test_engines_agree_on_classes_of_a_shared_buffer(number):
    agree(drawn(number, RDMA, shared=True))


@pytest.mark.long
@pytest.mark.parametrize("number", range(60))
def test_engines_agree_on_classes_of_other_transports(number):
    agree(drawn(number, [{"kind": "nscc", "paths": 8}, {"kind": "dctcp", "paths": 1}, {"kind": "constant"}]))


@pytest.mark.long
@pytest.mark.parametrize("number", range(60))
def test_engines_agree_on_classes_of_a_network_that_changes(number):
    case, routing, routes = case_of_number(number)
    if not case.topology.channels:
        return
    events = [event | {"reroute_after": inf} for event in events_of(Random(number), case.topology)]
    agree(happening(drawn(number, RDMA), routes, routing, events), (1_000, 22_000, 80_000, 500_000))


def test_turns_are_of_bytes_and_what_is_sent_beyond_them_is_missing_later():
    service = make_service(np.array([0, 0, 1]), np.array([3000, 1000, 0]), 1)
    sizes = {0: 700, 1: 700}

    def sent(count, ready):
        order = []
        for _ in range(count):
            number = int(next_class(service, 0, ready))
            count_sent(service, 0, number, sizes.get(number, 100))
            order.append(number)
        return order

    # 5 x 700 = 3,500 of 3,000: 2,500 are left for the next turn, which takes 4 packets
    assert sent(14, 0b011) == [0] * 5 + [1] * 2 + [0] * 4 + [1] + [0, 0]
    assert sent(2, 0b111) == [2, 2], "strict"
    assert next_class(service, 0, 0) == NO_CLASS
    assert sent(3, 0b010) == [1, 1, 1]


def keys(*classes, **more):
    return {"classes": [{"name": "storage"}, *classes], **more}


@pytest.mark.parametrize(
    ("pfc", "at", "wrong"),
    [
        (keys({"name": "storage"}), "classes.1.name", "a class storage already"),
        (keys({"name": "voice", "strict": True, "weight": 2}), "classes.1.weight", "without a weight"),
        (keys({"name": "voice", "queue_packets": 3}), "classes.1.queue_packets", "no capacity"),
        (keys({"name": "voice", "pause": False, "queue_packets": 3, "queue_bytes": 10**5}), "classes.1.queue_bytes",
         "either"),
        (keys({"name": "voice", "pause": False, "queue_bytes": 99}), "classes.1.queue_bytes", "does not fit"),
    ],
)  # fmt: skip
def test_keys_that_do_not_apply_are_rejected(pfc, at, wrong):
    (error,) = make("switching", mode="spray", queue="lossless", pfc=pfc).errors(TREE, None, None)
    assert wrong in str(error) and error.key == f"switching.pfc.{at}"


@pytest.mark.parametrize(
    ("key", "value"), [("buffer_bytes", 10**7), ("pfc_storm", {"host": 0}), ("watchdog_us", 100.0)]
)
def test_keys_of_pauses_are_rejected_where_no_class_pauses(key, value):
    for pause, count in ((False, 1), (True, 0)):
        pfc = {"classes": [{"name": "storage", "pause": pause}, {"name": "bulk", "pause": False}], key: value}
        errors = list(make("switching", mode="spray", queue="lossless", pfc=pfc).errors(TREE, None, None))
        assert [error.key for error in errors] == [f"switching.pfc.{key}"] * count


def test_unknown_classes_are_rejected_with_the_choices():
    def of(*names, classes=(STORAGE, BULK), **keys):
        sprayings = [make("transport", kind="roce", priority_class=name).classified() for name in names]
        flows = Flows(*(np.array([value]) for value in (0, 8, 1000, 0)))
        routes = make("routing", kind="ecmp").build(racks())
        return make_spray_session(racks(), routes, sprayings, fabric(classes=classes, **keys), flows, 1)

    with pytest.raises(SpecError, match="unknown class bulky") as error:
        of("bulky")
    assert error.value.key == "priority_class" and error.value.choices == ("storage", "bulk")
    with pytest.raises(SpecError) as error:
        of("bulk", "bulky")
    assert error.value.key == "of.1.priority_class"
    with pytest.raises(SpecError, match=r"needs switching\.pfc\.classes"):
        of("bulk", classes=())
    with pytest.raises(SpecError, match="no class voice that pauses") as error:
        of(None, classes=(STORAGE, VOICE), pfc_storm=Storm(0, priority_class="voice", at_us=0.0))
    assert error.value.choices == ["storage"]
    with pytest.raises(SpecError, match=r"switching\.mode spray"):
        make("transport", kind="tcp", priority_class="bulk").build()


def test_plain_keys_are_those_that_are_set():
    pfc = keys({"name": "voice", "pause": False, "strict": True})
    lossless = make("switching", mode="spray", queue="lossless", pfc=pfc).fabric.lossless
    plain = {key: value for key, value in lossless.plain().items() if not key.startswith("mark_")}
    assert plain["classes"] == [{"name": "storage"}, {"name": "voice", "pause": False, "strict": True}]
    assert make("switching", mode="spray", queue="lossless", pfc=plain).fabric.lossless == lossless
    assert "priority_class" not in make("transport", kind="roce").model_dump(mode="json")


@pytest.mark.parametrize(("weight", "pause"), [(1, 11.84), (4, 29.6), (9, 59.2)])
def test_watchdogs_are_warned_of_the_pauses_of_the_class_with_the_least_weight(weight, pause):
    """Beside a class that always has packets, one of the share s drains at s r: pauses are 5.92 / s us, and longer."""
    topology = Topology.from_links("star", 3, np.array([(0, 2), (1, 2)])).with_hosts(np.array([2, 2, 2]))
    flows, classes = [(0, 4, 1), (2, 4, 1), (5, 4, 0)], [PriorityClass("heavy", weight=weight), PriorityClass("light")]
    sizes, transport = [400_000, 400_000, 8_000_000], {"timeout_us": 50_000.0}
    for watchdog in (pause - 0.01, 10 * pause):
        case = of_classes(topology, flows, classes, sizes, transport, watchdog_us=watchdog)
        warned = any(f"shorter than the {pause:.4g} us" in str(caution) for caution in case.cautions())
        run = ENGINES["compiled"](case)
        run.advance(12_500 * 1500)
        assert warned == (watchdog < pause) == bool(run.counters().pause[:, PauseCount.FIRED].any())
    counted = run.counters().pause.reshape(len(case.delay), 2, -1)[: topology.channels][topology.dst == 2, 1]
    assert (counted[:, PauseCount.PAUSED] * 8e-5 >= pause * counted[:, PauseCount.FRAMES]).all()
