# SPDX-License-Identifier: Apache-2.0
"""Sprayed packets in the reference engine, against closed forms to the tick."""

from dataclasses import replace

import numpy as np
import pytest

from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.switching.switching_mode import SwitchingContext
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.transport.fabric import Fabric, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount
from flitlab.sim.measure.spray import measure_sprayed, uncontended_ticks
from flitlab.sim.measure.transport import Window
from tests import long_after

TREE = make("topology", kind="fat_tree", k=8).build()
SMALL = make("topology", kind="fat_tree", k=4).build()


def session(flows, transport, fabric=None, topology=TREE, routing=None, seed=1):
    """A session of flows (source, destination, bytes, tick)."""
    columns = [np.array(column, np.int64) for column in zip(*flows, strict=True)]
    routes = make("routing", **(routing or {"kind": "ecmp", "ways": 16})).build(topology)
    spraying = make("transport", **transport).spraying()
    return make_spray_session(topology, routes, spraying, fabric or Fabric(), Flows(*columns), seed)


def completed(of, seconds=0.02):
    """Completion times at senders, microseconds, and the counters, of a run that ends."""
    run = ReferenceSpray(of)
    run.advance(of.ticks(seconds))
    counters = run.counters()
    assert run.ended()
    assert (run.senders.table.seq.flight == 0).all()
    wire = of.flows.bytes + of.flows.packets * of.rules.header
    assert (counters.flow[:, FlowCount.RECEIVED] == wire).all()
    return (counters.flow[:, FlowCount.FINISHED] - of.flows.start) * float(of.tick_s) * 1e6, counters


@pytest.mark.parametrize(
    ("size", "target", "mbps", "published"),
    [
        (2_000_000, 127, 100_000, 176.1995),
        (2_000_000, 4, 100_000, 171.5253),
        (2_000_000, 1, 100_000, 166.851),
        (2_000_000, 127, 400_000, 53.0499),
        pytest.param(20_000_000, 127, 100_000, 1638.753, marks=pytest.mark.long),
        (100_000, 127, 100_000, 21.8187),
        (1_000, 127, 100_000, 12.5414),
    ],
)
def test_a_flow_alone_takes_the_time_of_the_closed_form(size, target, mbps, published):
    of = session([(0, target, size, 7)], {"kind": "nscc", "paths": 128}, Fabric(nic_mbps=mbps))
    hops = {127: 6, 4: 4, 1: 2}[target]
    full, last, control = 4150, int(of.flows.last_size[0]), 64
    link, packets = of.ticks(1e-6), int(of.flows.packets[0])
    ticks = (packets + hops - 2) * full + last if packets > 2 else hops * last
    ticks += hops * link + hops * (control + link)
    found, counters = completed(of)
    assert counters.flow[0, FlowCount.FINISHED] - 7 == ticks == uncontended_ticks(of)[0]
    assert found[0] == pytest.approx(published, abs=5e-4)  # to the digits that are published
    if size == 2_000_000 and mbps == 100_000:
        assert counters.flow[0, FlowCount.ACKS] == 124
        assert not counters.flow[0, [FlowCount.MARKS, FlowCount.TRIMS, FlowCount.RESENT]].any()


def test_a_flow_alone_under_credit_pays_the_pacer_one_part_in_a_hundred():
    found, _ = completed(session([(0, 127, 2_000_000, 0)], {"kind": "rccc", "paths": 128}))
    tau = 0.332
    assert found[0] == pytest.approx(176.1995 + (490 - 14.02272 / tau) * tau / 99 - tau, abs=0.1)
    assert found[0] == pytest.approx(177.368, abs=0.006)


@pytest.mark.parametrize("engine", [ReferenceSpray, CompiledSpray])
def test_every_connection_gets_credit_to_repeat_a_trimmed_packet(engine):
    """Also where timeouts shorter than the round trip cause more requests than the pacer's idle list has entries."""
    star = Topology.from_arcs("star", 1, np.zeros((0, 2), int)).with_hosts(5)
    fabric = Fabric(mtu_bytes=9000, link_us=0, queue_bytes=9000)
    flows = [(source, 0, 8936, 0) for source in (1, 1, 1, 2, 3, 4)]
    run = engine(session(flows, {"kind": "rccc", "timeout_us": 1}, fabric, star, {"kind": "minimal"}))
    run.advance(10**6)
    assert run.ended()


@pytest.mark.parametrize("kind", ["nscc", "rccc", "nscc_rccc", "ndp", "dctcp", "constant"])
@pytest.mark.parametrize("spread", long_after(1, ["mixed", "oblivious", "bitmap", "reps"]))
def test_an_incast_takes_no_less_than_its_bytes_and_not_much_more(kind, spread):
    flows = [(host, 0, 100_000, 0) for host in range(4, 16)]
    transport = {"kind": kind, "spread": spread, "paths": 16}
    found, counters = completed(session(flows, transport, topology=SMALL))
    wire, tau, hops = 12 * (100_000 + 25 * 64), 0.332, 6
    bound = (hops - 1) * (tau + 1) + wire * 8e-5 + 1 + hops * (64 * 8e-5 + 1)
    assert bound <= found.max() <= 1.35 * bound
    assert counters.flow[:, FlowCount.TRIMS].sum() == counters.link[:, LinkCount.TRIMMED].sum()
    assert counters.flow[:, FlowCount.MARKS].sum() == counters.link[:, LinkCount.MARKED].sum()


@pytest.mark.parametrize("kind", ["nscc", "rccc", "nscc_rccc"])
def test_no_flow_of_a_permutation_beats_the_same_flow_alone(kind):
    flows = [(host, (host + 8) % 16, 200_000, 1000 * host) for host in range(16)]
    of = session(flows, {"kind": kind, "paths": 32}, topology=SMALL)
    found, counters = completed(of)
    alone = uncontended_ticks(of) * float(of.tick_s) * 1e6
    assert (found >= alone - 1e-9).all()
    assert found.mean() < 1.6 * alone.mean()
    assert counters.link[:, LinkCount.DROPS].sum() == 0


@pytest.mark.long
@pytest.mark.parametrize("policy", ["round_robin", "adaptive", "flowlet", "ecmp_adaptive"])
def test_switches_that_choose_spread_what_one_entropy_would_not(policy):
    flows = [(host, (host + 8) % 16, 400_000, 0) for host in range(16)]
    transport = {"kind": "nscc", "paths": 1}
    fixed, _ = completed(session(flows, transport, topology=SMALL))
    chosen, _ = completed(session(flows, transport, Fabric(at_switch=policy), topology=SMALL))
    assert chosen.max() < fixed.max()


@pytest.mark.parametrize(
    ("policy", "paths"), [("ecmp", 64), ("round_robin", 1), ("adaptive", 1), ("flowlet", 64), ("ecmp_adaptive", 64)]
)
def test_senders_have_one_entropy_where_switches_leave_them_no_choice(policy, paths):
    of = session([(0, 15, 400_000, 0)], {"kind": "nscc", "paths": 64}, Fabric(at_switch=policy), topology=SMALL)
    assert of.rules.paths == paths


def test_a_short_last_packet_overtakes_the_others_on_another_route():
    of = session([(0, 15, 2 * 4086 + 100, 0)], {"kind": "nscc", "paths": 64, "spread": "reps"}, topology=SMALL)
    found = set()
    for seed in range(8):
        rules = of.rules._replace(seed=seed)
        one = replace(of, rules=rules, transports=(rules,))
        found.add(int(completed(one)[1].flow[0, FlowCount.FINISHED]))
        assert uncontended_ticks(one)[0] == completed(one)[1].flow[0, FlowCount.FINISHED]
    least = 6 * (4150 + 12_500) + 4150 + 6 * (64 + 12_500)
    assert found == {least, least + 164}


def test_without_trimming_what_is_dropped_is_sent_again_after_the_timeout():
    flows = [(host, 0, 100_000, 0) for host in range(4, 16)]
    fabric = Fabric(trim=False, queue_bytes=20 * 4150)
    found, counters = completed(session(flows, {"kind": "nscc"}, fabric, topology=SMALL), 1.0)
    assert counters.link[:, LinkCount.DROPS].sum() > 0
    assert counters.flow[:, FlowCount.TIMEOUTS].sum() >= counters.link[:, LinkCount.DROPS].sum() > 0
    assert counters.flow[:, FlowCount.TRIMS].sum() == 0
    assert found.min() > 0


def test_a_constant_rate_leaves_no_gap_and_hears_no_answer():
    of = session([(0, 15, 400_000, 0)], {"kind": "none", "rate": 0.5}, topology=SMALL)
    run = ReferenceSpray(of, trace=True)
    run.advance(of.ticks(0.001))
    ticks = run.trace().tick
    assert run.ended()
    assert set(np.diff(ticks)[:-1].tolist()) == {2 * 4150}
    assert run.counters().flow[0, [FlowCount.ACKS, FlowCount.FINISHED]].tolist() == [0, -1]


@pytest.mark.parametrize("engine", [CompiledSpray, ReferenceSpray])
def test_a_constant_rate_sends_no_trimmed_packet_again(engine):
    """Two hosts fill the link of a third with twice its rate: every packet crosses two links once, whole or trimmed."""
    star, packets = make("topology", kind="mesh", dims=[1], hosts_per_switch=3).build(), 500
    of = session([(1, 0, 4086 * packets, 0), (2, 0, 4086 * packets, 0)], {"kind": "none"}, topology=star)
    run = engine(of)
    run.advance(of.ticks(0.001))
    flow, link = run.counters().flow, run.counters().link
    assert flow[:, [FlowCount.RESENT, FlowCount.NACKS, FlowCount.ACKS]].sum() == 0
    assert (flow[:, FlowCount.RECEIVED] + 4150 * flow[:, FlowCount.TRIMS] == 4150 * packets).all()
    assert flow[:, FlowCount.TRIMS].sum() == link[:, LinkCount.TRIMMED].sum() > packets // 2
    assert link[:, LinkCount.ACCEPTED].sum() == 2 * 2 * packets
    assert not run.ended()


@pytest.mark.parametrize("routing", [{"kind": "ksp", "k": 4}, {"kind": "ecmp", "ways": 4, "routed": "source"}])
def test_whole_paths_carry_what_next_hops_do(routing):
    flows = [(host, (host + 8) % 16, 200_000, 0) for host in range(16)]
    of = session(flows, {"kind": "nscc", "paths": 16}, topology=SMALL, routing=routing)
    found, _ = completed(of)
    assert found.mean() < 1.6 * uncontended_ticks(of).mean() * float(of.tick_s) * 1e6


def test_a_slow_channel_has_a_queue_as_much_shorter_and_delays_who_does_not_heed_it():
    capacity = SMALL.capacity.copy()
    slow = int(np.flatnonzero(SMALL.src == 16)[0])  # a core switch
    capacity[slow] = 0.25
    of = session([(0, 15, 100_000, 0)], {"kind": "nscc"}, topology=replace(SMALL, capacity=capacity))
    whole = session([(0, 15, 100_000, 0)], {"kind": "nscc"}, topology=SMALL)
    assert of.queue_bytes[slow] == -(-whole.queue_bytes[slow] // 4)
    assert of.ratio[slow] == 4 * of.ratio[slow - 1]


def test_a_point_has_rows_of_flows_and_an_end_at_the_last_of_them():
    of = session([(0, 15, 100_000, 1250), (5, 11, 20_000, 0)], {"kind": "nscc"}, topology=SMALL)
    result = measure_sprayed(ReferenceSpray(of), None, 1.0, Window((0.0, 1.0)))
    first, second = result.detail["flows"]
    assert (first["source"], first["destination"], first["bytes"], first["start_us"]) == (0, 15, 100_000, 0.1)
    assert first["fct_sender_us"] == 21.81872
    assert first["fct_sender_us"] - first["fct_receiver_us"] == pytest.approx(6 * (1 + 64 * 8e-5), abs=1e-9)
    assert second["slowdown"] >= 1.0
    assert result.row["flows_complete"] == 2
    assert result.row["fct_ms_max"] == pytest.approx(0.02181872)
    assert result.row["seconds"] == pytest.approx((21.81872 + 0.1) * 1e-6, abs=1e-10)
    assert result.delivered.pairs.amount.sum() == 100_000 + 20_000 + 30 * 64


def test_a_trace_is_followed_line_by_line(tmp_path):
    (tmp_path / "flows.csv").write_text("start_us,src,dst,bytes\n1.5,5,11,20000\n0,0,15,100000\n")
    traffic = make("traffic", kind="trace", path=tmp_path / "flows.csv").build(SMALL)
    routing = make("routing", kind="ecmp", ways=16)
    switching = make("switching", mode="spray")
    setting = SwitchingContext(SMALL, routing.build(SMALL), routing=routing)
    instance = Instance(SMALL, traffic, setting.routes)
    of = switching.build(setting).session(instance, Source(), 1.0, 1)
    assert of.flows.source.tolist() == [0, 5]
    assert of.flows.bytes.tolist() == [100_000, 20_000]
    assert of.flows.start.tolist() == [0, 18_750]
    found, _ = completed(of)
    assert found == pytest.approx(uncontended_ticks(of) * 8e-5)
    (tmp_path / "flows.csv").write_text("tick,src,dst,bytes\n7,5,11,20000\n")
    again = make("traffic", kind="trace", path=tmp_path / "flows.csv").build(SMALL)
    assert again.content_hash != traffic.content_hash
    (tmp_path / "flows.csv").write_text("tick,src,dst,flits\n7,5,11,20000\n")
    with pytest.raises(SpecError, match="has sizes in flits; the column must be bytes"):
        packets = make("traffic", kind="trace", path=tmp_path / "flows.csv").build(SMALL)
        switching.build(setting).session(Instance(SMALL, packets, setting.routes), Source(), 1.0, 1)
    with pytest.raises(SpecError, match="flows of mode spray end"):
        plain = Instance(SMALL, make("traffic", kind="shift", by=8).build(SMALL), setting.routes)
        switching.build(setting).session(plain, Source(), 1.0, 1)


@pytest.mark.parametrize("kind", ["dctcp", "none"])
def test_transports_of_two_modes_are_read_as_they_were_resolved(kind):
    resolved = make("transport", kind=kind).model_dump(mode="json")
    again, first = make("transport", **resolved), make("transport", kind=kind)
    assert again.transport().init_window == first.transport().init_window
    assert again.spraying() == first.spraying()
    with pytest.raises(SpecError, match="paths: not for"):
        make("transport", **{**resolved, "paths": 4}).transport()
    classical = {"start_ms": 50.0} | ({"min_rto_ms": 250.0, "syn_rto_ms": 3000.0} if kind == "dctcp" else {})
    assert make("transport", **{**resolved, **classical}).spraying() == first.spraying(), "as it was resolved before"
    with pytest.raises(SpecError, match="start_ms: not for"):
        make("transport", **{**resolved, "start_ms": 7}).spraying()


@pytest.mark.parametrize("paths", [8, 64])
def test_more_entropy_values_than_paths_do_not_block_an_equal_permutation(paths):
    """Four hosts a leaf, four spines, a path through each: sprayed packets meet no queue to speak of."""
    topology = make("topology", kind="leaf_spine", leaves=2, spines=4, hosts_per_leaf=4).build()
    flows = [(i, 4 + i, 1_000_000, 0) for i in range(4)]
    spread = {"kind": "nscc", "spread": "oblivious", "paths": paths}
    of = session(flows, spread, topology=topology, routing={"kind": "ksp", "k": 4})
    times, counters = completed(of)
    uncontended = uncontended_ticks(of) * float(of.tick_s) * 1e6
    assert (times < 1.03 * uncontended).all()
    assert counters.flow[:, FlowCount.TRIMS].sum() == 0
