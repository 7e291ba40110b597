# SPDX-License-Identifier: Apache-2.0
"""Lossless queues and RDMA over Ethernet, against closed forms and an independent simulator.

Values of htsim are those of ``htsim_roce`` (ultraethernet/uet-htsim 40ccb05), which sends one packet more for messages
of full packets (``extra``), so that receivers of n flows are busy for n packets longer, but for those that come too
late.
"""

from dataclasses import replace

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.switching.switching_mode import SwitchingContext
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.lossless import Lossless, Storm
from flitlab.sim.engines.transport.run import Lockstep, compare_counters
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount, PauseCount
from flitlab.sim.measure.result import StallError
from flitlab.sim.measure.spray import measure_sprayed, uncontended_ticks
from flitlab.sim.measure.transport import Window
from tests import long_after
from tests.sim.lossless_cases import (
    ENGINES,
    EXTRA,
    ROCE,
    TAU,
    TAU_ACK,
    clockwise,
    completed,
    explicit_routes,
    fabric,
    lossless_of_number,
    racks,
    rebuilt,
    ring,
    session,
)
from tests.sim.spray_cases import case_of_number

both = pytest.mark.parametrize("engine", ENGINES)

TREE = make("topology", kind="fat_tree", k=4).build()


@both
@pytest.mark.parametrize(("target", "links", "published"), [(1, 2, 166.895), (15, 6, 176.216)])
def test_a_flow_alone_takes_the_time_of_the_closed_form(engine, target, links, published):
    case = session(TREE, [(0, target)])
    (found,), counters = completed(case, engine)
    assert found == pytest.approx((500 + links - 1) * TAU + links + links * (TAU_ACK + 1), abs=1e-6)
    assert found == pytest.approx(published, abs=5e-4)
    assert uncontended_ticks(case)[0] == counters.flow[0, FlowCount.FINISHED]
    assert counters.flow[0, FlowCount.ACKS] == 500
    assert not counters.pause[:, PauseCount.FRAMES].any()


def test_the_last_packet_of_a_message_is_short():
    case = session(TREE, [(0, 15)], 4001)
    (found,), counters = completed(case, "reference")
    assert counters.flow[0, FlowCount.SENT] == 4064 + 65
    assert found == pytest.approx(6 * TAU + 65 * 8e-5 + 6 + 6 * (TAU_ACK + 1), abs=1e-6)


HTSIM = {
    "rack of 2": ([(1, 0), (2, 0)], [329.13, 329.455], 48),
    "rack of 7": (
        [(sender, 0) for sender in range(1, 8)],
        [1130.23, 1135.43, 1140.3, 1144.21, 1112.67, 1119.82, 1126.32],
        169,
    ),
    "victim": ([(10, 8), (11, 8), (12, 8), (0, 8), (1, 9)], [617.187, 608.733, 613.935, 688.497, 688.822], 176),
    "bidirectional": (
        [(host, 8 + host) for host in range(4)] + [(8 + host, host) for host in range(4)],
        2 * [666.369, 670.031, 666.144, 666.257],
        192,
    ),
}
"""Flows, completion times in microseconds, and PAUSE frames."""


@both
@pytest.mark.parametrize("name", long_after(2, HTSIM))
def test_flows_and_pauses_in_two_racks_are_those_of_htsim(name, engine):
    pairs, times, pauses = HTSIM[name]
    found, counters = completed(session(racks(), pairs, transport=EXTRA), engine)
    np.testing.assert_allclose(np.sort(found), np.sort(times), atol=6e-3 if name == "rack of 7" else 6e-4)
    assert counters.pause[:, PauseCount.FRAMES].sum() == pauses
    if name != "rack of 2":  # flows that begin together may exchange their roles
        np.testing.assert_allclose(found, times, atol=6e-3)


PATHS_OF_HTSIM = [
    [2, 34, 0], [0, 35, 2], [6, 36, 67, 32, 0], [0, 32, 67, 36, 6], [10, 40, 65, 32, 0], [0, 33, 71, 41, 10],
    [14, 46, 72, 34, 0], [0, 32, 67, 44, 14], [18, 51, 79, 35, 0], [0, 35, 76, 51, 18], [22, 53, 70, 33, 0],
    [0, 34, 72, 54, 22], [26, 57, 68, 33, 0], [0, 33, 68, 57, 26], [30, 61, 68, 33, 0], [0, 35, 78, 63, 30],
]  # fmt: skip
"""Switches of the paths that htsim drew (seed 1) in a fat tree of 128 hosts, of data and of ACKs."""


def test_an_incast_over_three_tiers_is_that_of_htsim():
    topology = make("topology", kind="fat_tree", k=8).build()
    pairs = [(8 + 16 * pod, 0) for pod in range(8)]
    case = session(topology, pairs, transport=EXTRA, routes=explicit_routes(topology, PATHS_OF_HTSIM))
    found, counters = completed(case, "compiled")
    published = [1130.66, 1152.5, 1152.83, 1150.23, 648.892, 1144.7, 1313.11, 1313.44]
    np.testing.assert_allclose(found, published, atol=6e-3)
    assert counters.pause[:, PauseCount.FRAMES].sum() == 1124


def test_the_last_flow_of_an_incast_has_its_least_time():
    found, counters = completed(session(racks(), [(sender, 0) for sender in range(1, 8)]), "compiled")
    assert found.max() == pytest.approx(TAU + 1 + 7 * 500 * TAU + 1 + 2 * (TAU_ACK + 1), abs=1e-6)
    assert (counters.pause[:, PauseCount.PAUSED] >= counters.pause[:, PauseCount.LONGEST]).all()


@both
def test_a_late_response_lets_as_many_bytes_more_in(engine):
    peaks = []
    for response in (0.0, 800.0):
        queues = fabric(response_ns=response)
        _, counters = completed(session(racks(), [(1, 0), (2, 0)], 400_000, queues=queues), engine)
        peaks.append(counters.pause[:, PauseCount.PEAK].max())
    assert peaks[1] - peaks[0] == pytest.approx(0.8 * 12_500 / 2, abs=4064)  # half of what arrives leaves meanwhile
    assert peaks[1] <= 15 * 4000 + 2.8 * 12_500 + 2 * 4064


@both
@pytest.mark.parametrize(
    ("response_ns", "frames", "peak", "longest_us"),
    [(300, 8, 30_856, 5.27744), (500, 6, 31_920, 5.61792), (2000, 6, 40_432, 8.512)],
)
def test_pauses_that_take_longer_than_a_packet_on_any_link(engine, response_ns, frames, peak, longest_us):
    """Two senders of 200 packets over one link: values of an independent simulator of a page."""
    queues = Fabric(mtu_bytes=1064, header_bytes=64, trim=False, lossless=Lossless(15, 12, response_ns=response_ns))
    topology = Topology.from_links("pair", 2, np.array([(0, 1)])).with_hosts(np.array([2, 1]))
    case = session(topology, [(0, 2), (1, 2)], 200_000, queues=queues)
    _, counters = completed(case, engine)
    assert counters.pause[:, PauseCount.FRAMES].sum() == frames
    assert counters.pause[:, PauseCount.PEAK].max() == peak
    assert counters.pause[:, PauseCount.LONGEST].max() * float(case.tick_s) * 1e6 == pytest.approx(longest_us, abs=1e-3)


@both
def test_pauses_take_the_delay_of_the_reverse_channel(engine):
    """Host 1 takes nothing: channel 0->1 fills its input port until the PAUSE is back."""
    topology = Topology.from_channels("pair", 2, [(0, 1), (1, 0)], [1, 0], delay=[100_000, 10_000])
    case = session(topology.with_hosts([1, 1]), [(0, 1)], queues=fabric(pfc_storm=Storm(1, 0.0)))
    run = ENGINES[engine](case)
    run.advance(case.ticks(0.0005))
    packets = 15 + (2 * 12_500 + 110_000) // 4064 + 1  # 15 exceed XOFF, and one is in service
    assert run.counters().pause[0, PauseCount.PEAK] == 4064 * packets
    shared = fabric(buffer_bytes=10**7)
    headroom = session(topology.with_hosts([1, 1]), [(0, 1)], queues=shared).ports.shared.headroom
    assert headroom[:2].tolist() == [3 * (2 * 12_500 + 110_000) // 2] * 2, "one and a half round trips of the link"


@both
def test_nothing_is_dropped_and_input_ports_hold_no_more_than_headroom_beyond_the_threshold(engine):
    pairs = [(host, (host + 8) % 16) for host in range(16)]
    routes = make("routing", kind="ecmp", ways=1).build(TREE)  # one path for all flows of two switches
    case = session(TREE, pairs, 400_000, queues=fabric(6, 4), routes=routes)
    run = ENGINES[engine](case)
    run.advance(case.ticks(0.002))
    counters = run.counters()
    assert run.ended()
    assert counters.pause[:, PauseCount.FRAMES].sum() > 0
    assert counters.link[:, LinkCount.DROPS].sum() == 0
    assert counters.pause[:, PauseCount.PEAK].max() <= 6 * 4000 + 2 * 12_500 + 2 * 4064
    ports = (run.ports if engine == "reference" else run._state.lossless).ports
    assert not ports.charged.any() and not ports.is_pausing.any() and (ports.paused_at < 0).all()


@both
@pytest.mark.parametrize("switches", [3, 5])
def test_a_ring_deadlocks_where_every_packet_takes_two_channels(switches, engine):
    pairs, routes = clockwise(ring(switches), 2)
    case = session(ring(switches), pairs, 20_000_000, routes=routes)
    run = ENGINES[engine](case)
    result = measure_sprayed(run, None, 1.0, Window((0.0, 0.01)))
    assert result.row["deadlocked"] and result.row["pause_frames"] == 3 * switches  # values of another program
    assert (run.counters().flow[:, FlowCount.ACKS] == 24).all()
    assert result.row["ticks"] < case.ticks(0.01) and not run.ended()
    steps = result.row["deadlock_cycle"].split(" waits for ")
    assert len(steps) == switches + 1 and steps[0] == steps[-1] == "(0->1, VC *)"
    with pytest.raises(StallError, match="in spite of the certificate"):
        measure_sprayed(run, _Certified(), 1.0, Window((0.0, 0.01)))


class _Certified:
    """A scenario whose certificate excludes a deadlock."""

    timeline = None

    class switching:
        may_deadlock = False


def test_a_larger_threshold_only_postpones_the_deadlock():
    pairs, routes = clockwise(ring(5), 2)
    run = ENGINES["compiled"](session(ring(5), pairs, 20_000_000, routes=routes, queues=fabric(250, 240)))
    run.advance(12_500 * 2000)
    assert run.deadlock() and (run.counters().flow[:, FlowCount.ACKS] > 300).all()


def test_a_ring_of_single_channels_does_not_deadlock():
    pairs, routes = clockwise(ring(5), 1)
    found, counters = completed(session(ring(5), pairs, routes=routes), "compiled")
    assert found == pytest.approx(np.full(5, 502 * TAU + 3 + 3 * (TAU_ACK + 1)), rel=0.02)
    assert not counters.pause[:, PauseCount.FRAMES].any()


def mode(routing: dict, topology=None, **keys):
    """The mode of a configuration, certified."""
    topology = topology or make("topology", kind="torus", dims=[5], hosts_per_switch=1).build()
    spec = make("routing", **routing)
    setting = SwitchingContext(topology, spec.build(topology), routing=spec)
    built = make("switching", mode="spray", queue="lossless", **keys).build(setting)
    return built.certified(topology, setting.routes)


def test_a_certificate_excludes_deadlock_or_names_the_cycle():
    cycle = r"may deadlock: \(0->1, VC \*\) waits for \(1->2, VC \*\)"
    with pytest.raises(SpecError, match=cycle) as error:
        mode({"kind": "dor"})
    assert error.value.key == "allow_deadlock" and "allow_deadlock: true" in str(error.value)
    built, text = mode({"kind": "dor"}, allow_deadlock=True)
    assert built.may_deadlock and "may deadlock" in text
    for routing, topology in (({"kind": "updown"}, None), ({"kind": "ecmp"}, TREE)):
        built, text = mode(routing, topology)
        assert not built.may_deadlock and "acyclic" in text


@pytest.mark.long
@pytest.mark.parametrize("at_switch", ["adaptive", "ecmp_adaptive"])
def test_go_back_n_repairs_reordering(at_switch):
    pairs = [(host, (host + 8) % 16) for host in range(16)]
    queues = replace(fabric(), at_switch=at_switch)
    _, counters = completed(session(TREE, pairs, 200_000, queues=queues), "reference", 0.1)
    nacks, resent = counters.flow[:, FlowCount.NACKS].sum(), counters.flow[:, FlowCount.RESENT].sum()
    assert nacks > 0 and resent >= nacks


@pytest.mark.long
@both
def test_a_receiver_that_keeps_packets_needs_no_repetition_of_reordered_ones(engine):
    pairs = [(host, (host + 8) % 16) for host in range(16)]
    queues = replace(fabric(), at_switch="adaptive")
    found, counters = completed(session(TREE, pairs, 400_000, {**ROCE, "reorder": 64}, queues), engine)
    assert not counters.flow[:, [FlowCount.NACKS, FlowCount.RESENT]].any()
    in_order, _ = completed(session(TREE, pairs, 400_000, queues=queues), engine, 0.1)
    fixed, _ = completed(session(TREE, pairs, 400_000), engine)
    assert found.mean() < fixed.mean() < in_order.mean()


def test_go_back_n_repairs_drops():
    queues = Fabric(mtu_bytes=4064, header_bytes=64, trim=False, queue_bytes=20 * 4064)
    pairs = [(sender, 0) for sender in range(1, 8)]
    _, counters = completed(session(racks(), pairs, 400_000, queues=queues), "reference", 0.1)
    assert counters.link[:, LinkCount.DROPS].sum() > 0
    assert counters.flow[:, FlowCount.NACKS].sum() > 0 and counters.flow[:, FlowCount.TIMEOUTS].sum() > 0


def agree(case, ticks=(1_000, 50_000, 500_000)):
    """Assert that both engines do the same, packet by packet."""
    runs = [ENGINES[engine](case, trace=True) for engine in ("compiled", "reference")]
    both_engines = Lockstep(*runs)
    for tick in ticks:
        both_engines.advance(tick)
        counters = both_engines.counters()
        both_engines.deadlock()
    flows, wire = counters.flow, case.flows.bytes + case.flows.packets * case.rules.header
    assert (flows[:, FlowCount.RECEIVED] <= wire).all()
    np.testing.assert_array_equal(flows[:, FlowCount.COMPLETE] >= 0, flows[:, FlowCount.RECEIVED] == wire)
    return counters


@pytest.mark.parametrize("number", long_after(0, range(100)))
def test_engines_agree_on_lossless_queues(number):
    counters = agree(lossless_of_number(number))
    assert counters.link[:, LinkCount.DROPS].sum() == 0 or counters.pause[:, PauseCount.FIRED].sum() > 0


@pytest.mark.long
@pytest.mark.parametrize("number", range(40))
def test_engines_agree_on_rdma_over_queues_that_drop(number):
    case, _, routes = case_of_number(number)
    agree(rebuilt(case, routes, {"kind": "roce", "timeout_us": 50.0}, None, number))


@pytest.mark.long
@pytest.mark.parametrize("number", range(40))
def test_engines_agree_on_spraying_over_lossless_queues(number):
    case, _, routes = case_of_number(number)
    kind = ["nscc", "rccc", "dctcp", "constant", "none"][number % 5]
    agree(rebuilt(case, routes, {"kind": kind, "paths": 8}, fabric(5, 3).lossless, number))


@pytest.mark.long
@both
def test_acks_of_a_strict_class_are_neither_charged_nor_paused(engine):
    pairs = [(host, 8 + host) for host in range(4)] + [(8 + host, host) for host in range(4)]
    shared, with_data = completed(session(racks(), pairs), engine)
    found, counters = completed(session(racks(), pairs, queues=fabric(ack_class="strict")), engine)
    assert 4 * counters.pause[:, PauseCount.FRAMES].sum() < 5 * with_data.pause[:, PauseCount.FRAMES].sum()
    assert counters.pause[:, PauseCount.PEAK].max() <= 60_000 + 25_000 + 2 * 4064
    assert 4 * 500 * TAU < found.mean() < shared.mean(), "ACKs do not wait behind data"
    (alone,), _ = completed(session(racks(), [(0, 8)], queues=fabric(ack_class="strict")), engine)
    assert alone == pytest.approx(503 * TAU + 4 + 4 * (TAU_ACK + 1), abs=1e-6)


@pytest.mark.parametrize("engine", long_after(1, ["reference", "compiled"]))
def test_acks_of_a_strict_class_go_before_data_at_hosts_of_any_transport(engine):
    """Host 1 sends without a break; its ACK of a packet from host 0 waits for one of its packets at most."""
    topology = make("topology", kind="mesh", dims=[1], hosts_per_switch=3).build()
    start = 62_500
    flows = Flows(*(np.array(values) for values in ((1, 0), (2, 1), (400_000, 1000), (0, start))))
    spraying, routes = make("transport", kind="nscc", paths=1).spraying(), make("routing", kind="ecmp").build(topology)
    case = make_spray_session(topology, routes, spraying, fabric(ack_class="strict"), flows, 1)
    run = ENGINES[engine](case)
    run.advance(case.ticks(0.0001))
    posted = start + 2 * (1064 + 12_500)
    served = -(-posted // 4064) * 4064
    assert run.counters().flow[1, FlowCount.FINISHED] == served + 2 * (64 + 12_500)


def test_pauses_are_counted_alike_at_any_tick():
    case = session(racks(), [(sender, 0) for sender in range(1, 4)], 400_000)
    runs = [run(case) for run in ENGINES.values()]
    for tick in (300_000, 300_777, 900_000):
        for run in runs:
            run.advance(tick)
        compare_counters(*(run.counters() for run in runs))


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ({"queue_packets": 10}, "have no capacity"),
        ({"trim": True}, "never trim"),
        ({"ecn": [0.2, 0.8]}, "give packets"),
        ({"pfc": {"xoff": 3, "xon": 4}}, "at most xoff: 3"),
        ({"queue": None, "allow_deadlock": True}, "is for queue: lossless"),
        ({"queue": "ecn", "pfc": {"xoff": 3}}, "is for queue: lossless"),
        ({"queue": "trim", "trim": False}, "contradicts queue: trim"),
        ({"queue": "drop_tail", "ecn": [1.0, 4.0]}, "choose queue: ecn"),
    ],
)
def test_keys_that_do_not_apply_are_rejected(keys, wrong):
    spec = make("switching", mode="spray", **{"queue": "lossless", **keys})
    (error,) = spec.errors(TREE, None, None)
    assert wrong in str(error)


def test_rdma_needs_queues_that_do_not_trim():
    with pytest.raises(SpecError, match="cannot use trimmed packets"):
        session(TREE, [(0, 15)], queues=Fabric())
    with pytest.raises(SpecError, match=r"switching\.mode: spray"):
        make("transport", kind="roce").transport()


def test_queues_that_drop_mark_only_where_they_say_so():
    for queue, marks, trims in (("drop_tail", False, False), ("ecn", True, False), ("trim", True, True)):
        queues = make("switching", mode="spray", queue=queue, queue_packets=8).fabric
        case = session(racks(), [(1, 0)], 200_000, {"kind": "nscc", "paths": 1}, queues)
        assert (case.low < case.queue_bytes).all() == marks and (case.low > 10**12).all() == (not marks)
        assert queues.trim == trims


@pytest.mark.parametrize("engine", long_after(1, ["reference", "compiled"]))
@pytest.mark.parametrize("kind", long_after(1, ["hpcc", "roce", "dcqcn", "swift", "timely"]))
def test_nothing_depends_on_the_tick_at_which_flows_begin(kind, engine):
    """Across the ticks at which 32 bits are exceeded, with a sign and without."""
    case = session(racks(), [(1, 0), (2, 0), (9, 0), (10, 3)], 100_000, {"kind": kind}, fabric(6, 4, ecn=(5, 10)))
    found = []
    for begin in (0, 2**31 - 50_000, 2**32 - 50_000):
        later = replace(case, flows=replace(case.flows, start=case.flows.start + begin))
        run = ENGINES[engine](later)
        run.advance(begin + 1_000_000)
        counters = run.counters()
        assert run.ended()
        flow = counters.flow.copy()
        flow[:, [FlowCount.FINISHED, FlowCount.COMPLETE]] -= begin
        found.append((flow, counters.link, counters.pause))
    assert found[0][2][:, PauseCount.FRAMES].sum() > 0
    for later in found[1:]:
        for ours, theirs in zip(found[0], later, strict=True):
            assert (ours == theirs).all()
