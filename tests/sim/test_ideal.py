# SPDX-License-Identifier: Apache-2.0
"""Ideal switches: closed forms of queues at outputs, and what is refused."""

import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import ProgramMeasure
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests.scenarios import TIMES, build, carrying, ideal, line, one_way_ring, scenario

AT_ONCE = {name: int(name != "header") for name in TIMES}


def incast(hosts: int, **keys):
    """Hosts of one switch that all send to one host of another, over one channel."""
    pair = line(2).with_hosts([hosts, 1])
    traffic = {"kind": "hotspot", "hosts": [hosts], "fraction": 1.0}
    case = ideal(scenario(pair, traffic=traffic, **{**AT_ONCE, **keys}))
    return carrying(case, rate=np.array([1.0] * hosts + [0.0]), weight=np.ones(hosts))


@pytest.mark.parametrize("flits", [1, 6])
def test_zero_load_latency_is_that_of_vct(engine_name, flits):
    ring = one_way_ring(5)
    vct = scenario(ring, traffic={"kind": "shift", "by": 3}, source=Source(flits=(flits,)), vcs=5)
    lone = carrying(ideal(vct), rate=np.array([1.0, 0, 0, 0, 0]))
    expected = vct.switching.zero_load_latency(ring, 3, flits)
    assert lone.switching.zero_load_latency(ring, 3, flits) == expected
    row = measure(engine_name, lone, 0.001 * flits, 1, Measure(0, 20_000, None)).row
    assert row["packets"] > 8 and row["latency_p999"] <= expected * 65 / 64
    assert row["network_latency_mean"] == expected


def test_single_flits_wait_as_in_a_slotted_queue(engine_name):
    """A of a binomial number of flits a tick that join one queue, each waits E[A (A - 1)] / 2 E[A] (1 - E[A])."""
    hosts, load = 20, 0.04
    case = incast(hosts, source=Source(flits=(1,)))
    row = measure(
        engine_name, case, load, 3, Measure(1000, 20_000 if engine_name == "reference" else 200_000, None)
    ).row
    wait = (hosts - 1) * load / (2 * (1 - hosts * load))
    alone = case.switching.zero_load_latency(case.topology, 1, 1)
    assert abs(row["latency_mean"] - alone - wait) < 1.5 * row["latency_ci95"]
    assert row["latency_ci95"] < wait / 3


def test_an_output_is_an_m_d_1_queue():
    """Packets of many hosts come to an output as from a Poisson source (what a host cannot send at once is little)."""
    hosts, flits, load = 60, 8, 0.7
    case = incast(hosts, source=Source("poisson", (flits,)))
    row = measure("compiled", case, load / hosts, 3, Measure(5000, 600_000, None)).row
    wait = load * flits / (2 * (1 - load))
    alone = case.switching.zero_load_latency(case.topology, 1, flits)
    assert abs(row["network_latency_mean"] - alone - wait) < 0.5 + 1.5 * row["latency_ci95"]


def test_packets_that_come_in_one_tick_are_sent_in_the_order_of_their_ports(engine_name):
    run = start(engine_name, incast(3, source=Source(flits=(1,))), 1.0, 1, log=True)
    run.advance(400)
    log = run.log()
    order = log.identity[np.argsort(log.delivered)]
    assert len(order) > 300
    sequence, host = order // 4, order % 4
    assert (host == np.arange(len(order)) % 3).all() and (sequence == np.arange(len(order)) // 3).all()


def test_the_backlog_finds_room():
    """Three hosts offer three times what a channel carries: the queue grows without limit, and the engines agree."""
    run = start("both", incast(3, source=Source(flits=(2,))), 0.99, 1)
    run.advance(1000)
    snapshot = run.snapshot()
    assert snapshot.present.pairs.total > 600 * 3
    assert snapshot.scalars[Scalar.DELIVERED_PACKETS] > 480
    assert not run.deadlocked()


def test_nothing_is_carried_beyond_the_split():
    case = ideal(scenario(build("random_digraph", hosts=2, n=12, degree=3, seed=1), source=Source(flits=(4,))))
    over = measure("compiled", case, 0.95, 1, Measure(4000, 12_000, None)).row
    assert over["saturated"] and over["accepted"] < 0.9 * over["offered"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("routing: {kind: deflection}", "a switch of mode ideal never deflects"),
        ("switching: {mode: ideal, vcs: 4}", "vcs"),
        ("switching: {mode: ideal, buffer_flits: 8}", "buffer_flits"),
        ("switching: {mode: ideal, credit_ticks: 2}", "credit_ticks"),
    ],
)
def test_what_has_no_meaning_is_refused(changes, said):
    keys = {"routing": "{kind: minimal}", "switching": "{mode: ideal}"}
    key, value = changes.split(": ", 1)
    keys[key] = value
    text = "topology: {kind: torus, dims: [3, 3]}\ntraffic: {kind: uniform}\nloads: [0.1]\nceilings: []\n"
    with pytest.raises(ConfigError, match=said):
        read("ideal", text=text + "".join(f"{key}: {value}\n" for key, value in keys.items()))


def test_the_certificate_says_why_nothing_can_deadlock():
    case = scenario(one_way_ring(4), vcs=4)
    topology, routes = case.topology, make("routing", kind="minimal").build(case.topology)
    discipline, note = ideal(case).switching.certified(topology, routes)
    assert not discipline.may_deadlock and "without limit" in note


@pytest.mark.long
def test_a_program_runs_alike_in_both_engines():
    text = (
        "experiment: application\nrouting: {kind: minimal}\nswitching: {mode: ideal, flit_ns: 2.0, header_ticks: 4}\n"
        "topology: {kind: random_digraph, n: 16, degree: 3, seed: 1}\napplication: {kind: all_to_all, size_bytes: 99}\n"
    )
    row = measure("both", read("ideal", text=text).cases[0].scenario, 1.0, 1, ProgramMeasure()).row
    assert row["total_ns"] > 0
