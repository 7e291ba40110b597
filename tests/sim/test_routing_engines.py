# SPDX-License-Identifier: Apache-2.0
"""Both engines follow the routes, in the time that their length takes, and a certificate means what it says."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.routing import minimal
from flitlab.models.routing.certificate import certify
from flitlab.models.rules.tables import ESCAPE_VC, RouteForm
from flitlab.models.rules.vc import vc_score
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.models.test_routing import walk
from tests.scenarios import TIMES, build, reference, scenario, vct_scenarios, wormhole_scenarios

ROUTINGS = [
    {"kind": "ecmp", "ways": 1}, {"kind": "ecmp", "routed": "source", "per": "flow"}, {"kind": "ksp", "k": 3},
    {"kind": "llskr", "k": 4}, {"kind": "allpath", "hops": 4}, {"kind": "updown"}, {"kind": "valiant"},
    {"kind": "valiant", "legs": "updown", "per": "flow"}, {"kind": "minimal", "vc_policy": "layered"},
]  # fmt: skip


def latency(hops, flits):
    t = TIMES
    return t["injection"] + (hops + 1) * (t["header"] + t["switch"]) + hops * t["link"] + t["ejection"] + flits - 1


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
@pytest.mark.parametrize("routing", ROUTINGS, ids=lambda r: "-".join(map(str, r.values())))
def test_packets_take_their_routes_in_closed_form_time(engine_name, mode, routing):
    topology = build("rrg", n=10, degree=3, seed=2, hosts=2)
    case = scenario(topology, routing=routing, source=Source(flits=(3,)), mode=mode, vcs=10, allow_deadlock=True)
    run = start(engine_name, case, 0.002, 5, log=True)
    run.advance(6000)
    log = run.log()
    assert len(log.identity) > 60
    created, hosts = arrivals(case, 0.002, 5), topology.hosts
    alone = 0
    for identity, delivered, hops in zip(*log[:3], strict=True):
        sequence, source = divmod(int(identity), hosts)
        tick, destination = created[source][sequence]
        _, channels = walk(topology, case.routes, source, destination, sequence, seed=5)
        assert hops == len(channels)
        assert delivered - tick >= latency(len(channels), 3)
        alone += delivered - tick == latency(len(channels), 3)
    assert alone > 0.8 * len(log.identity)


def arrivals(case, load, seed):
    """Per host the (tick, destination) of its packets."""

    net = reference(case, load, seed)
    found = []
    for host in range(case.topology.hosts):
        packets = net.draw_packets(host)
        found.append([(tick, to) for tick, to, _ in (next(packets) for _ in range(60))])
    return found


@pytest.mark.long
@given(st.one_of(vct_scenarios(), wormhole_scenarios()), st.integers(0, 2**30))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_certified_never_deadlocks(case, seed):
    certified = certify(case.topology, case.routes, case.switching.vcs, allow_deadlock=True)
    run = start("compiled", case, 1.0, seed)
    run.advance(3000)
    if certified.acyclic:
        assert not run.deadlocked()


@pytest.mark.long_on("reference")
@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_policies_without_cycles_save_a_ring(engine_name, mode):
    """Six packets that each hold a channel of a ring and want the next one: a certificate keeps them apart."""
    ring = build("torus", dims=[6], hosts=2)
    delivered = {}
    for policy, routing in {
        "any": {"kind": "minimal", "select": "adaptive", "vc_policy": "any"},
        "escape": {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"},
        "layered": {"kind": "minimal", "vc_policy": "layered"},
        "updown": {"kind": "updown"},
        "legs": {"kind": "valiant", "legs": "updown"},
    }.items():
        case = scenario(
            ring, routing=routing, traffic={"kind": "shift", "by": 6}, source=Source(flits=(4,)), mode=mode,
            vcs=3, buffer_flits=4, allow_deadlock=True,
        )  # fmt: skip
        run = start(engine_name, case, 1.0, 1)
        run.advance(1500)
        half = run.scalars()[Scalar.DELIVERED_PACKETS]
        run.advance(3000)
        delivered[policy] = (run.scalars()[Scalar.DELIVERED_PACKETS] - half, run.deadlocked())
    assert delivered.pop("any") == (0, True)
    for policy, (packets, stuck) in delivered.items():
        assert packets > 100, policy
        assert not stuck, policy


def test_imase_and_minimal_give_the_same_packets(engine_name):
    topology = build("imase", n=20, degree=3)
    logs = [log_of(engine_name, scenario(topology, routing={"kind": kind})) for kind in ("imase", "minimal")]
    for one, two in zip(*logs, strict=True):
        np.testing.assert_array_equal(one, two)


def log_of(engine_name, case):
    run = start(engine_name, case, 0.4, 3, log=True)
    run.advance(600)
    return run.log()


@pytest.mark.parametrize("select", ["random", "hash", "adaptive"])
@pytest.mark.parametrize("kind", ["imase", "gdbg"])
def test_minimal_gives_the_same_packets_where_a_table_would_be_too_large(monkeypatch, kind, select):
    """Next hops by arithmetic are those of the table: so are packets, and the VCs that a shortest path needs."""
    topology = build(kind, n=20, degree=3)
    table = scenario(topology, routing={"kind": "minimal", "select": select})
    monkeypatch.setattr(minimal, "MOST_IN_TABLE", 19)
    computed = scenario(topology, routing={"kind": "minimal", "select": select})
    assert (table.routes.form, computed.routes.form) == (RouteForm.TABLE, RouteForm.DIGITS)
    assert table.routes.hops_max == computed.routes.hops_max
    assert table.switching == computed.switching
    for one, two in zip(log_of("compiled", table), log_of("compiled", computed), strict=True):
        np.testing.assert_array_equal(one, two)


def test_minimal_has_a_table_of_what_cannot_be_computed(monkeypatch):
    monkeypatch.setattr(minimal, "MOST_IN_TABLE", 7)
    escape = {"select": "adaptive", "vc_policy": "escape"}
    for topology, more in ((build("rrg", n=8, degree=3), {}), (build("hypercube", dim=3), escape)):
        assert scenario(topology, routing={"kind": "minimal"} | more, vcs=4).routes.form == RouteForm.TABLE


@pytest.mark.long
@pytest.mark.parametrize("flits", [(5,), (1, 7)])
@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_escape_channels_keep_long_packets_moving(mode, flits):
    """Overload with buffers of one packet: some packets end wherever they are, in every stretch of time."""
    routing = {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"}
    source = Source(flits=flits, shares=(1.0,) * len(flits))
    for topology in (build("torus", hosts=2, dims=[4, 4]), build("rrg", hosts=2, n=12, degree=3, seed=5)):
        for vcs in (2, 3, 4):
            case = scenario(
                topology, routing=routing, source=source, mode=mode, vcs=vcs, buffer_flits=max(flits),
                header=1, switch=1, link=1,
            )  # fmt: skip
            both = start("both", case, 1.0, vcs)
            both.advance(150)
            both.snapshot()
            run, last = start("compiled", case, 1.0, vcs), 0
            for tick in range(1000, 10001, 1000):
                run.advance(tick)
                delivered = run.scalars()[Scalar.DELIVERED_PACKETS]
                assert delivered > last
                last = delivered
            assert not run.deadlocked()


def test_the_escape_vc_is_the_last_choice():
    for flits in (1, 4):
        escape = [vc_score(1, ESCAPE_VC, credits, flits) for credits in range(9)]
        other = [vc_score(1, ESCAPE_VC + 1, credits, flits) for credits in range(9)]
        assert escape == list(range(9))  # flit by flit
        assert [worth > 0 for worth in other] == [credits >= flits for credits in range(9)]  # whole packets
        assert other == sorted(other) and min(other[flits:]) > max(escape)
        assert [vc_score(0, 1, credits, flits) for credits in range(9)] == list(range(9))
