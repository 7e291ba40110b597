# SPDX-License-Identifier: Apache-2.0
"""Networks that change while packets are sprayed over them: both engines alike, closed forms, and entropies."""

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.routing.route_set import LAST_WORD
from flitlab.models.routing.routes import PathTable, Routes
from flitlab.models.rules.route import next_hops
from flitlab.models.rules.spray.ports import SprayRoutes, make_salts, spray_port
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.timeline.stable_paths import stable_paths
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.fabric_changes import with_changes
from flitlab.models.transport.flows import Flows
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount
from tests.scenarios import line
from tests.sim.spray_cases import case_of_number

ECMP = {"kind": "ecmp", "ways": 64}
LINK = 12_500  # ticks of 80 ps: a microsecond
MTU = 4150


def happening(session: SpraySession, routes: Routes, routing: dict, events: list[dict]) -> SpraySession:
    """A session in which these events happen, on its own network."""
    parsed = [Event.model_validate(event) for event in events]
    timeline = make_timeline(session.topology, parsed, make("routing", **routing), routes, session.tick_s * 10**9)
    return with_changes(session, routes, timeline)


def one_flow(transport: dict, size: int, hops: int = 1, **fabric) -> tuple[SpraySession, Routes, dict]:
    """A flow of a size in bytes along a line of switches."""
    topology = line(hops + 1)
    flows = Flows(*(np.array([value], np.int64) for value in (0, topology.hosts - 1, size, 0)))
    routes = make("routing", **ECMP).build(topology)
    spraying = make("transport", **transport).spraying()
    return make_spray_session(topology, routes, spraying, Fabric(**fabric), flows, 1), routes, ECMP


PILE = {"kind": "constant", "init_window": 1000}


@pytest.mark.parametrize("engine", [CompiledSpray, ReferenceSpray])
def test_a_flow_whose_link_slows_by_half_takes_twice_as_long_for_the_rest(engine):
    """Of 100 packets 40 have left the middle link when it slows, the last of them in that tick."""
    case = one_flow(PILE, 100 * (MTU - 64), queue_bytes=10**7)
    slow = {"at_tick": MTU + LINK + 40 * MTU, "slow": {"links": [[0, 1]]}, "factor": 0.5}
    whole, late = (engine(happening(*case, events)) for events in ([], [slow]))
    for run in (whole, late):
        run.advance(2_000_000)
    alone = whole.counters().flow[0, FlowCount.COMPLETE]
    assert alone == 102 * MTU + 3 * LINK
    assert late.counters().flow[0, FlowCount.COMPLETE] == alone + 60 * MTU


@pytest.mark.parametrize("engine", [CompiledSpray, ReferenceSpray])
def test_the_packet_in_service_goes_on_at_the_new_rate(engine):
    """After 830 of 4,150 bytes the link slows to a fifth, and returns after 332 more: 2,988 are left."""
    case, at = one_flow(PILE, MTU - 64), MTU + LINK + 830
    slow, back = {"slow": {"links": [[0, 1]]}, "factor": 0.2}, {"restore": {"links": [[0, 1]]}}
    run = engine(happening(*case, [{"at_tick": at, **slow}, {"at_tick": at + 5 * 332, **back}]))
    run.advance(200_000)
    assert run.counters().flow[0, FlowCount.COMPLETE] == 3 * MTU + 3 * LINK + 4 * 332
    assert run.counters().link[0, 5] == MTU + 4 * 332  # busy


@pytest.mark.parametrize("engine", [CompiledSpray, ReferenceSpray])
@pytest.mark.parametrize("outage", [1, 100_000, 1_300_000])
def test_a_packet_is_sent_again_at_every_timeout_until_its_link_is_back(engine, outage):
    """A timeout of 50 us, 625,000 ticks: the first copy passes that comes to the link when it works again."""
    case = one_flow({"kind": "nscc", "timeout_us": 50.0}, MTU - 64)
    cut, back = {"fail": {"links": [[0, 1]]}, "reroute_after": inf}, {"restore": {"links": [[0, 1]]}}
    at = MTU + LINK + 5  # the link is sending it
    run = engine(happening(*case, [{"at_tick": at, **cut}, {"at_tick": at + outage, **back}]))
    run.advance(10_000_000)
    again = 1 + max(0, at + outage - (MTU + LINK) - 1) // 625_000
    counters = run.counters()
    assert counters.flow[0, FlowCount.FINISHED] == again * 625_000 + 3 * (MTU + LINK) + 3 * (64 + LINK)
    assert counters.flow[0, FlowCount.TIMEOUTS] == counters.link[:, LinkCount.DROPS].sum() == again


@pytest.mark.parametrize("kind", ["nscc", "rccc", "nscc_rccc", "ndp"])
def test_every_flow_ends_though_all_that_is_under_way_is_lost(kind):
    """Whenever the only link fails for 30 us, and with it data, answers and credit that was granted.

    It comes between an acknowledgement and the credit behind it in some 60 ticks from 75,080 on.
    """
    case = one_flow({"kind": kind, "timeout_us": 20.0, "init_window": 1, "sack_threshold": 1}, 60_000)
    for at in (*range(1, 250_000, 20_000), *range(75_080, 75_160, 20)):
        cut, back = {"fail": {"links": [[0, 1]]}, "reroute_after": inf}, {"restore": {"links": [[0, 1]]}}
        run = CompiledSpray(happening(*case, [{"at_tick": at, **cut}, {"at_tick": at + 375_000, **back}]))
        run.advance(40_000_000)
        assert run.ended(), at


def test_a_link_that_slows_has_the_queue_and_the_marks_of_one_that_was_always_slow():
    compared = 0
    for number in range(40):
        session, routing, routes = case_of_number(number)
        topology = session.topology
        if not topology.channels:
            continue
        event = {"at_tick": 5, "slow": {"links": [[int(topology.src[0]), int(topology.dst[0])]]}, "factor": 0.3}
        (change,) = happening(session, routes, routing, [event]).changes
        capacity = topology.capacity.copy()
        capacity[change.other] *= 0.3
        slow = replace(topology, capacity=capacity)
        if slow.capacity.max() < topology.capacity.max():
            continue  # another tick
        flows = Flows(*(np.array([value], np.int64) for value in (0, 1, 1, 0)))
        transport = make("transport", kind="nscc").spraying()
        then = make_spray_session(slow, routes, transport, session.fabric, flows, 1)
        now = make_spray_session(topology, routes, transport, session.fabric, flows, 1)
        if then.rules.rtt0 != now.rules.rtt0:
            continue  # the only path of some pair crosses the link: products of bandwidth and delay differ
        compared += 1
        (change,) = happening(now, routes, routing, [event]).changes
        for field in ("ratio", "queue_bytes", "low", "high"):
            np.testing.assert_array_equal(getattr(change.settings, field), getattr(then, field)[change.other])
    assert compared > 10


TREE = make("topology", kind="fat_tree", k=4).build()


def sprayed(events: list[dict], routing: dict = ECMP, transport: dict | None = None) -> SpraySession:
    """A permutation across a fat tree in which events happen."""
    hosts = np.arange(16)
    flows = Flows(hosts, (hosts + 8) % 16, np.full(16, 300_000), np.zeros(16, np.int64))
    routes = make("routing", **routing).build(TREE)
    spraying = make("transport", **(transport or {"kind": "nscc", "spread": "oblivious"})).spraying()
    return happening(make_spray_session(TREE, routes, spraying, Fabric(), flows, 1), routes, routing, events)


@pytest.mark.parametrize("routing", [ECMP, ECMP | {"routed": "source"}, {"kind": "ksp", "k": 6}])
def test_nothing_is_lost_once_the_routing_has_learned(routing):
    """A core switch fails at 5 us, when packets are on all links, and the routing follows at 15.

    All that is lost is lost by 40 us: over ksp, where pairs share longer paths, what had been sent waits so long.
    """
    core = TREE.switches - 1
    run = CompiledSpray(
        sprayed([{"at_tick": 5 * LINK, "fail": {"switches": [core]}, "reroute_after": 10 * LINK}], routing)
    )
    lost = []
    for tick in (5 * LINK, 40 * LINK, 400 * LINK):
        run.advance(tick)
        lost.append(int(run.counters().link[:, LinkCount.DROPS].sum()))
    assert run.ended()
    assert 0 == lost[0] < lost[1] == lost[2]


def test_a_hash_keeps_the_next_hop_that_is_still_allowed():
    """Of two next hops one fails: the flows of the other stay where they are. Back again, all is as it was."""
    down, back = {"at_tick": 9, "fail": {"links": [[8, 16]]}}, {"at_tick": 99, "restore": {"links": [[8, 16]]}}
    case = sprayed([down, back])
    failed, restored = case.changes
    assert restored.routes is case.routes and not restored.moved
    salts = np.zeros(TREE.switches + 1, np.int64)
    make_salts(1, salts)
    kept = lost = 0
    for here, target, key, entropy in np.random.default_rng(1).integers(0, (20, 8, 40, 64), (4000, 4)).tolist():
        if here == target:
            continue
        ask = (0, 0, here, target, key, entropy)
        first = spray_port(SprayRoutes(case.routes, case.routes, False, salts), *ask)
        later = spray_port(SprayRoutes(failed.routes, case.routes, True, salts), *ask)
        ports = int(next_hops(failed.routes, 0, 0, here, target))
        assert ports >> later & 1
        kept, lost = (kept + 1, lost) if ports >> first & 1 else (kept, lost + 1)
        assert later == first or not ports >> first & 1
    assert kept > 10 * lost > 0


def table_of(rng: np.random.Generator, pairs: int) -> PathTable:
    """Paths of one to three hops, all of a pair different, with weights or without."""
    every = [[a] for a in range(3)] + [[a, b] for a in range(3) for b in range(3)]
    counts = rng.integers(1, 6, pairs)
    paths = [every[i] for count in counts for i in rng.choice(len(every), count, replace=False)]
    weight = np.concatenate([rng.dirichlet(np.ones(count)) for count in counts])
    pair_start = np.concatenate([[0], np.cumsum(counts)])
    total = np.concatenate([np.cumsum(weight[a:b]) for a, b in pairwise(pair_start)])
    threshold = np.minimum(np.rint(total * 2.0**32), LAST_WORD).astype(np.uint32)
    threshold[pair_start[1:] - 1] = LAST_WORD
    starts = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    weighed = threshold if rng.random() < 0.7 else np.zeros(0, np.uint32)
    return PathTable(pair_start, starts, np.concatenate(paths).astype(np.uint8), weighed)


def intervals(table: PathTable, pair: int) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """The draws at which the paths of a pair end, as parts of all, and the paths."""
    some = range(table.pair_start[pair], table.pair_start[pair + 1])
    share = table.shares[some.start : some.stop]
    return np.cumsum(share), [tuple(table.port[table.path_start[p] : table.path_start[p + 1]].tolist()) for p in some]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_draws_keep_their_paths_as_far_as_weights_allow(seed):
    """Each path gets its weight, and of the draws of a path that stays as many as old and new weight have in common."""
    rng = np.random.default_rng(seed)
    pairs = 3
    built, now = table_of(rng, pairs), table_of(rng, pairs)
    found = stable_paths(built, now)
    for pair in range(pairs):
        (was_end, was), (now_end, new), (end, path) = (intervals(table, pair) for table in (built, now, found))
        want, had = (
            dict(zip(new, np.diff(now_end, prepend=0), strict=True)),
            dict(zip(was, np.diff(was_end, prepend=0), strict=True)),
        )
        got, stayed = dict.fromkeys(new, 0.0), 0.0
        edges = np.unique(np.concatenate([[0.0], was_end, end]))
        for low, high in pairwise(edges):
            at = (low + high) / 2
            mine = path[min(np.searchsorted(end, at), len(path) - 1)]
            before = was[min(np.searchsorted(was_end, at), len(was) - 1)]
            got[mine] += high - low
            stayed += (high - low) * (mine == before)
        assert got == pytest.approx(want, abs=1e-8)
        assert stayed == pytest.approx(sum(min(had[p], want[p]) for p in had.keys() & want.keys()), abs=1e-8)


def test_links_that_are_too_slow_are_refused():
    case = one_flow(PILE, 1000)
    with pytest.raises(SpecError, match=r"a packet takes \d+ ticks on the slowest link; at most"):
        happening(*case, [{"at_tick": 5, "slow": {"links": [[0, 1]]}, "factor": 1e-6}])
