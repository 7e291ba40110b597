# SPDX-License-Identifier: Apache-2.0
"""Networks that change while datagrams are under way: both engines alike, closed forms, and what is refused."""

from random import Random

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.failures import with_timeline
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues, Session, make_session
from flitlab.sim.engines.transport.datagram import SubflowCount
from tests import long_after
from tests.scenarios import build, line
from tests.sim.datagram_cases import ECMP, check, start

NIC = {"nic_mbps": 8.0, "link_us": 10.0}  # a byte a microsecond: a tick


def happening(case: Session, events: list[dict], routing: dict | None = None) -> Session:
    """A session in which these events happen, on its own network."""
    spec = make("routing", **(routing or ECMP))
    parsed = [Event.model_validate(event) for event in events]
    tick = case.tick_s * 10**9
    return with_timeline(case, make_timeline(case.topology, parsed, spec, case.routes, tick))


def session(topology: Topology, pairs, packets=0, kind="none", **queues) -> Session:
    """Flows between pairs of hosts, endless or of a number of packets of 1,000 bytes, from the beginning."""
    source, destination = np.array(pairs, np.int64).T
    flows = Flows(source, destination, np.full(len(pairs), packets), np.zeros(len(pairs), np.int64))
    control = make("transport", kind=kind, start_ms=0.0).build()
    return make_session(topology, make("routing", **ECMP).build(topology), control, Queues(**(NIC | queues)), flows)


def events_of(rng: Random, topology: Topology, last: int) -> list[dict]:
    """Some events in the order of their times, not all of which may be possible."""
    links = sorted({(int(min(e)), int(max(e))) for e in zip(topology.src, topology.dst, strict=True)})
    found = []
    for tick in sorted(rng.sample(range(last), rng.randint(1, 5))):
        some: list | float | int = [list(link) for link in rng.sample(links, min(len(links), rng.randint(1, 3)))]
        parts = {"links": rng.choice([some, some, 1, 0.3]), "seed": rng.randrange(9)}
        event = {"at_tick": tick, rng.choice(["fail", "slow", "slow", "restore"]): parts}
        if "slow" in event:
            event["factor"] = rng.choice([0.1, 0.5, 0.7, 1.0])
        if rng.random() < 0.7:
            event["reroute_after"] = rng.choice([0.0, 1.0, 700.0, 5000.0, float("inf")])
        found.append(event)
    return found


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_flow_whose_link_slows_by_half_at_half_time_takes_half_as_long_again(engine):
    """1,000 packets at a byte a tick: 500 pass in time, of the 501st some, and the rest takes twice as long."""
    case = session(line(2), [(0, 1)], packets=1000, queue_bytes=10**6)
    half = 500_000 + 1000 + 10  # the first 500 packets have left the middle link
    slow = happening(case, [{"at_tick": half, "slow": {"links": [[0, 1]]}, "factor": 0.5}])
    alone, late = (start(engine, one) for one in (case, slow))
    alone.advance(4_000_000)
    late.advance(4_000_000)
    whole = alone.counters().finished[0]
    assert whole == 1_000_000 + 2 * 1000 + 3 * 10
    assert late.counters().finished[0] == whole + 500_000


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_packet_in_service_goes_on_at_the_new_rate(engine):
    """A lone packet of 1,000 ticks slows to a fifth after 300 of them: the other 700 take 3,500."""
    case = session(line(2), [(0, 1)], packets=1)
    slow = happening(case, [{"at_tick": 1000 + 10 + 300, "slow": {"links": [[0, 1]]}, "factor": 0.2}])
    run = start(engine, slow)
    run.advance(100_000)
    assert run.counters().finished[0] == 3 * 1000 + 3 * 10 + 700 * 4


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_queue_speeds_up_when_its_link_is_restored(engine):
    """At a tenth of the rate 10 packets wait; when the link returns they pass in 1,000 ticks each."""
    case = session(line(2), [(0, 1)], packets=10, queue_bytes=10**6)
    slow, back = {"slow": {"links": [[0, 1]]}, "factor": 0.1}, {"restore": {"links": [[0, 1]]}}
    run = start(engine, happening(case, [{"at_tick": 0, **slow}, {"at_tick": 1010 + 5000, **back}]))
    run.advance(1_000_000)
    # half of the first packet has passed by then, which is 500 bytes; 9,500 are left, of which all have come by then
    # but those of the host, which sends until 10,000
    assert run.counters().finished[0] == max(1010 + 5000 + 9500, 10_000 + 1010) + 2 * 10 + 1000


def test_openings_wait_behind_data_while_rates_change():
    """Short packets join and leave a queue of long ones, whose link goes at another rate every 7,300 ticks."""
    flows = np.arange(20)
    connections = Flows(flows % 4, 4 + flows % 4, np.where(flows < 4, 0, 3), 12_000 * np.maximum(flows - 3, 0))
    routes, tcp = make("routing", **ECMP), make("transport", kind="tcp", start_ms=0.0, init_window=8).build()
    network = line(2, hosts=4)
    case = make_session(network, routes.build(network), tcp, Queues(**NIC, queue_bytes=15_000), connections)
    slow = {"slow": {"links": [[0, 1]]}}
    events = [{"at_tick": 7_300 * k, **slow, "factor": (0.5, 1.0, 0.7)[k % 3]} for k in range(1, 27)]
    assert check(happening(case, events), (0.0, 0.2)).subflow[:, SubflowCount.DROPPED].any()


RING = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_packets_are_lost_until_the_reroute_and_none_after(engine):
    """A constant rate of a packet each 1,000 ticks: for 20,000 of them all that comes to the link is lost."""
    case = session(RING, [(0, 1)], queue_bytes=10**6)
    event = {"at_tick": 100_000, "fail": {"links": [[0, 1]]}, "reroute_after": 20_000}
    run = start(engine, happening(case, [event]))
    lost = []
    for tick in (100_000, 122_000, 300_000):
        run.advance(tick)
        lost.append(int(run.counters().subflow[0, SubflowCount.DROPPED]))
    assert lost[0] == 0
    assert lost[1] == lost[2] in (20, 21, 22)  # and what was under way to the link, or on it
    before = run.counters().subflow[0, SubflowCount.RECEIVED]
    run.advance(400_000)
    assert run.counters().subflow[0, SubflowCount.RECEIVED] - before == 100


def acknowledged(starts, packets, link_us, events) -> Session:
    """Flows from host 0 to host 1 of a ring, whose ACKs take the delay of their path."""
    count = len(starts)
    flows = Flows(np.zeros(count, np.int64), np.ones(count, np.int64), np.full(count, packets), np.array(starts))
    control = make("transport", kind="tcp", start_ms=0.0, ack_path="pure_delay", init_window=8).build()
    queues = Queues(**NIC | {"link_us": link_us})
    return happening(make_session(RING, make("routing", **ECMP).build(RING), control, queues, flows), events)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_acknowledgements_take_the_delay_of_the_path_after_a_reroute(engine):
    """Over 3, 5 and again 3 links a SYN of a byte takes n (1 + 10), its ACK 10 n, a packet n (1,000 + 10)."""
    cut = {"at_tick": 50_000, "fail": {"links": [[0, 1]]}, "reroute_after": 0}
    back = {"at_tick": 150_000, "restore": {"links": [[0, 1]]}, "reroute_after": 0}
    starts = [0, 100_000, 200_000]
    run = start(engine, acknowledged(starts, 1, 10.0, [cut, back]))
    run.advance(300_000)
    counters = run.counters()
    links = np.array([3, 5, 3])
    assert (counters.finished - starts == links * (1 + 10 + 10 + 1000 + 10)).all()
    assert (counters.subflow[:, SubflowCount.RTT] == links * (1 + 10 + 10 + 1000 + 10 + 10)).all()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_acknowledgements_of_a_shorter_path_overtake_those_of_a_longer_one(engine):
    """Eight packets arrive over five links from 5,156 on, one each 1,000 ticks; ACKs take 5,000, then 3,000 ticks."""
    cut = {"at_tick": 0, "fail": {"links": [[0, 1]]}, "reroute_after": 0}
    opened, last = 5 * (1 + 1000) + 5 * 1000, 7 * 1000
    first = opened + 5 * (1000 + 1000)
    back = {"at_tick": first + 3500, "restore": {"links": [[0, 1]]}, "reroute_after": 0}
    run = start(engine, acknowledged([0], 8, 1000.0, [cut, back]))
    run.advance(first + last + 10_000)
    counters = run.counters()
    assert counters.finished[0] == first + last
    # four ACKs are sent on the longer path; those of the other four arrive two packet times earlier
    trips = [10_000 + 1000 * k + (5000 if k < 4 else 3000) for k in range(8)]
    assert counters.subflow[0, SubflowCount.RTT] == opened + sum(trips)
    assert counters.subflow[0, SubflowCount.RESENT] == 0


@pytest.mark.parametrize("number", long_after(8, range(60)))
def test_engines_agree_on_acknowledgements_of_paths_that_change(number):
    rng = Random(number)
    starts = sorted(rng.sample(range(60_000), 6))
    source = np.array([rng.randrange(4) for _ in starts])
    packets = np.array([rng.choice([1, 30, 100]) for _ in starts])
    flows = Flows(source, (source + rng.randint(1, 3)) % 4, packets, np.array(starts))
    queues = Queues(**(NIC | {"link_us": rng.choice([10.0, 700.0, 5000.0])}))
    control = make(
        "transport", kind=rng.choice(["tcp", "dctcp"]), start_ms=0.0, ack_path="pure_delay",
        subflows=rng.randint(1, 3), min_rto_ms=20.0, syn_rto_ms=60.0,
    ).build()  # fmt: skip
    case = make_session(
        RING, make("routing", **ECMP).build(RING), control, queues, flows, path_draw=PathDraw.WITH_REPLACEMENT
    )
    events = []
    for tick in range(0, 120_000, rng.choice([9_000, 30_000])):
        cut = [[tick // 3000 % 4, (tick // 3000 + 1) % 4]]
        events.append({"at_tick": tick, "fail": {"links": cut}, "reroute_after": rng.choice([0, 1000])})
        events.append({"at_tick": tick + rng.randint(1500, 8000), "restore": {"links": cut}, "reroute_after": 0})
    check(happening(case, events), (0.0, 0.4))


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_without_a_reroute_a_flow_waits_for_its_link(engine):
    events = [
        {"at_tick": 100_000, "fail": {"links": [[0, 1]]}, "reroute_after": float("inf")},
        {"at_tick": 200_000, "restore": {"links": [[0, 1]]}},
    ]
    run = start(engine, happening(session(RING, [(0, 1)]), events))
    got = []
    for tick in (100_000, 104_000, 200_000, 300_000):
        run.advance(tick)
        got.append(int(run.counters().subflow[0, SubflowCount.RECEIVED]))
    assert got[1] - got[0] <= 1 and got[1] == got[2]
    assert 95 <= got[3] - got[2] <= 100


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_reroute_learns_of_a_failure_that_alone_it_would_never_learn_of(engine):
    """From 200,000 on the flow goes the long way, over a link of half the rate: a packet each 2,000 ticks."""
    events = [
        {"at_tick": 100_000, "fail": {"links": [[0, 1]]}, "reroute_after": float("inf")},
        {"at_tick": 200_000, "slow": {"links": [[2, 3]]}, "factor": 0.5, "reroute_after": 0},
    ]
    run = start(engine, happening(session(RING, [(0, 1)]), events))
    got = []
    for tick in (104_000, 200_000, 300_000, 400_000):
        run.advance(tick)
        got.append(int(run.counters().subflow[0, SubflowCount.RECEIVED]))
    assert got[1] == got[0] and got[3] - got[2] == 50


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_timer_of_a_syn_doubles(engine):
    """RFC 6298, rule 5.5: the SYN is sent again after 1, 3 and 7 ms; the link is back after 5."""
    network = line(2)
    one, tcp = Flows(*np.array([[0], [1], [1], [0]])), make("transport", kind="tcp", start_ms=0.0, syn_rto_ms=1.0)
    undisturbed = make_session(network, make("routing", **ECMP).build(network), tcp.build(), Queues(**NIC), one)
    events = [
        {"at_tick": 0, "fail": {"links": [[0, 1]]}, "reroute_after": float("inf")},
        {"at_tick": 5000, "restore": {"links": [[0, 1]]}},
    ]
    finished, timeouts = [], []
    for case in (undisturbed, happening(undisturbed, events)):
        run = start(engine, case)
        run.advance(20_000)
        finished.append(int(run.counters().finished[0]))
        timeouts.append(int(run.counters().subflow[0, SubflowCount.TIMEOUTS]))
    assert 0 < finished[0] < 5000 and finished[1] == finished[0] + 7000
    assert timeouts == [0, 3]


def test_subflows_return_to_their_paths():
    case = session(RING, [(0, 1), (1, 2), (2, 3)])
    fail = {"at_tick": 1000, "fail": {"links": [[1, 2]]}, "reroute_after": 500}
    back = {"at_tick": 5000, "restore": {"links": [[1, 2]]}, "reroute_after": 500}
    failed, rerouted, restored, home = happening(case, [fail, back]).changes
    assert [change.tick for change in (failed, rerouted, restored, home)] == [1000, 1500, 5000, 5500]
    assert sorted(failed.broken) == sorted(restored.mended) and len(failed.broken) == 2
    assert rerouted.moved.tolist() == home.moved.tolist() == [1]
    assert RING.dst[rerouted.paths.link[1:-1]].tolist() == [0, 3, 2]
    assert home.paths.link.tolist() == case.paths.link[case.paths.start[1] : case.paths.start[2]].tolist()


def test_switches_without_hosts_fail_with_all_their_links():
    topology = build("fat_tree", hosts=2, k=4)
    case = session(topology, [(0, 15), (1, 14), (2, 13), (3, 12)])
    core = topology.switches - 1
    (change,) = happening(case, [{"at_tick": 100, "fail": {"switches": [core]}}]).changes
    assert set(change.broken) == set(np.flatnonzero((topology.src == core) | (topology.dst == core)))
    assert not np.isin(change.paths.link, change.broken).any()


FAIL = {"at_tick": 10, "fail": {"links": [[0, 1]]}}


@pytest.mark.parametrize(
    ("events", "key", "problem"),
    [
        ([{"at_tick": 10, "fail": {"links": [[0, 2]]}}], "timeline[0].fail.links[0]", "switch 0 has none to switch 2"),
        ([{"at_tick": 10, "fail": {"links": 9}}], "timeline[0].fail.links", "there are only 4"),
        ([{"at_tick": 10, "fail": {}}], "timeline[0].fail", "lists neither links nor switches"),
        ([FAIL, FAIL | {"at_tick": 9}], "timeline[1]", "times must not decrease"),
        ([FAIL, FAIL], "timeline[1].fail.links[0]", "has failed already"),
        ([{"at_tick": 1, "restore": {"links": [[0, 1]]}}], "timeline[0].restore.links[0]", "has not failed"),
        ([{"at_tick": 1, "restore": {"switches": [0]}}], "timeline[0].restore.switches[0]", "has not failed"),
        ([{"at_tick": 1, "fail": {"switches": [0]}}], "timeline[0].fail.switches[0]", "has hosts"),
        ([{"at_tick": 1, "fail": {"switches": [7]}}], "timeline[0].fail.switches[0]", "numbered 0 to 3"),
        (
            [FAIL, {"at_tick": 20, "fail": {"links": [[2, 3]]}}],
            "timeline[1]",
            "cuts hosts off: no path is left from switch 0 to switch",
        ),
    ],
)
def test_what_cannot_happen_is_refused(events, key, problem):
    with pytest.raises(SpecError) as error:
        happening(session(RING, [(0, 1)]), events)
    assert error.value.key == key
    assert problem in str(error.value)


def test_a_network_may_be_cut_in_two_if_no_routing_has_to_serve_it():
    never = {"reroute_after": float("inf")}
    cut = {"at_tick": 20, "fail": {"links": [[2, 3]]}, **never}
    assert len(happening(session(RING, [(0, 1)]), [FAIL | never, cut]).changes) == 2


def test_a_routing_of_grids_does_not_serve_what_is_left_of_one():
    case = session(build("torus", dims=[3, 3]), [(0, 1)])
    with pytest.raises(SpecError, match="dor does not support the remaining network"):
        happening(case, [FAIL], {"kind": "dor"})
