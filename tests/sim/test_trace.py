# SPDX-License-Identifier: Apache-2.0
"""One packet's life: the same from both engines, and accounted for to the tick."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.engines.base import DELIVERED_PACKETS, LATENCY
from flitlab.sim.engines.start import start
from flitlab.sim.engines.trace import trace
from flitlab.sim.engines.trace.base import packet_at_creation, waiting, zero_load
from tests.scenarios import (
    build,
    deflection_scenarios,
    line,
    one_way_ring,
    scenario,
    vct_scenarios,
    wormhole_scenarios,
)

FEW = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
LOADS = st.sampled_from([0.05, 0.4, 0.9])
UNTIL = 250


def agree(case, load, seed, data):
    """Packets drawn among those created early have one life, which fits the packet log."""
    run = start("reference", case, load, seed, log=True)
    run.advance(UNTIL)
    log = run.log()
    ids = log.identity.tolist() or [0]
    for identity in {data.draw(st.sampled_from(ids)), data.draw(st.integers(0, 3 * case.topology.hosts))}:
        try:
            ours = trace("compiled", case, load, seed, identity, UNTIL)
        except ValueError:
            with pytest.raises(ValueError, match=r"no packet|not created"):
                trace("reference", case, load, seed, identity, UNTIL)
            continue
        assert ours == trace("reference", case, load, seed, identity, UNTIL)
        check(case, ours, log)


def check(case, life, log):
    where = np.flatnonzero(log.identity == life.identity)
    assert (life.delivered is not None) == bool(len(where))
    events = life.events(case.switching.header)
    assert [event.tick for event in events] == sorted(event.tick for event in events)
    assert all(event.waited >= 0 for event in events)
    if life.delivered is None:
        return
    assert (life.delivered, life.hops) == (log.delivered[where[0]], log.hops[where[0]])
    assert sum(zero_load(life, case)) + sum(waiting(life, case)) == life.delivered - life.created
    assert min(waiting(life, case)) >= 0
    topology, model = case.topology, case.switching
    places = [visit.switch for visit in life.visits]
    assert [places[0], places[-1]] == topology.host_switch[[life.source, life.destination]].tolist()
    channels = [visit.channel for visit in life.visits[1:]]
    if None not in channels:
        assert topology.src[channels].tolist() == places[:-1] and topology.dst[channels].tolist() == places[1:]
        links = model.link * life.hops + topology.delay[channels].sum()
        assert zero_load(life, case).links == links
    assert [event.event for event in events].count("tail") == len(places)


@given(vct_scenarios(), LOADS, st.integers(0, 2**40), st.data())
@FEW
def test_vct(case, load, seed, data):
    agree(case, load, seed, data)


@given(wormhole_scenarios(), LOADS, st.integers(0, 2**40), st.data())
@FEW
def test_wormhole(case, load, seed, data):
    agree(case, load, seed, data)


@given(deflection_scenarios(), LOADS, st.integers(0, 2**40), st.data())
@FEW
def test_deflection(case, load, seed, data):
    agree(case, load, seed, data)


@pytest.mark.parametrize("mode", ["vct", "wormhole", "deflection"])
def test_a_packet_alone_follows_the_closed_form(engine_name, mode):
    routing = {"kind": "deflection" if mode == "deflection" else "minimal"}
    case = scenario(line(3), mode=mode, routing=routing, traffic={"kind": "shift", "by": 2})
    life = trace(engine_name, case, 0.001, 4, 0)
    steps = [(event.tick - life.created, event.event, event.switch) for event in life.events(case.switching.header)]
    arrivals = [2, 12, 22]  # injection 2; then header 5, switch 2, link 3 between any two
    wanted = [(0, "created", None), (0, "sent", None)]
    for switch, tick in enumerate(arrivals):
        wanted.append((tick, "arrived", switch))
        if mode == "wormhole":
            wanted.append((tick, "allocated", switch))
        wanted += [(tick + 5, "eligible", switch), (tick + 5, "granted", switch), (tick + 8, "tail", switch)]
    assert sorted(steps[:-1], key=str) == sorted(wanted, key=str)
    assert steps[-1] == (22 + 5 + 2 + 1 + 3, "delivered", None)
    assert sum(waiting(life, case)) == 0


def test_lives_add_up_to_the_counters(engine_name):
    case = scenario(build("imase", n=6, degree=2), mode="wormhole", allow_deadlock=True)
    run = start(engine_name, case, 0.6, 2, log=True)
    run.advance(80)
    scalars = run.snapshot().scalars
    lives = [trace(engine_name, case, 0.6, 2, identity) for identity in run.log().identity.tolist()]
    assert len(lives) == scalars[DELIVERED_PACKETS] > 5
    assert sum(life.delivered - life.created for life in lives) == scalars[LATENCY]


def test_a_deadlock_ends_it(engine_name):
    from dataclasses import replace

    case = scenario(
        one_way_ring(4, hosts=2), routing={"kind": "minimal", "vc_policy": "any"}, allow_deadlock=True, vcs=1,
        buffer_flits=4, traffic={"kind": "shift", "by": 4}, source=Source(flits=(4,)),
    )  # fmt: skip
    life = trace(engine_name, replace(case, switching=replace(case.switching, may_deadlock=True)), 1.0, 1, 8 * 300)
    assert life.deadlocked and life.delivered is None and life.until < 100_000


def test_networks_that_change_are_refused(config, capsys):
    event = "timeline=[{at_tick: 10, fail: {links: 1}}]"
    assert main(["trace", config, "--packet", "32", "--set", "routing={kind: minimal}", "--set", event]) == 2
    assert "only in networks that stay as they are" in capsys.readouterr().err


def test_packets_that_there_are_not():
    case = scenario(line(3), traffic={"kind": "shift", "by": 1})
    with pytest.raises(ValueError, match="0 or more"):
        packet_at_creation(case, 0.5, 1, -1, 1000)
    with pytest.raises(ValueError, match="not created before tick 1000"):
        packet_at_creation(case, 0.5, 1, 3 * 10**6, 1000)


CONFIG = """\
schema: 1
name: tiny
topology: {kind: imase, n: 8, degree: 3, hosts_per_switch: 2}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
switching: {vcs: 4, header_ticks: 2}
traffic: {kind: uniform, packet_flits: 3}
loads: [0.1, 0.6]
engine: reference
"""


@pytest.fixture
def config(tmp_path):
    Path("tiny.yaml").write_text(CONFIG)
    return "tiny.yaml"


def test_listing_and_tracing_by_command(config, capsys):
    assert main(["trace", config, "--load", "0.6", "--from", "40", "--to", "60", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["packets"] and all(40 <= packet["delivered"] < 60 for packet in listed["packets"])
    packet = listed["packets"][-1]
    arguments = ["trace", config, "--load", "0.6", "--packet", str(packet["packet"])]
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    for key in ("delivered", "hops", "source"):
        assert printed[key] == packet[key]
    assert printed["latency"] == printed["zero_load"]["latency"] + sum(printed["waiting"].values())
    assert (printed["events"][0]["event"], printed["events"][-1]["event"]) == ("created", "delivered")
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "granted: switch" in out and f"{printed['zero_load']['latency']} in an empty network" in out


def test_following_it_for_a_while_only(config, capsys):
    assert main(["trace", config, "--packet", "32", "--to", "30"]) == 2
    assert "is not created before tick 30" in capsys.readouterr().err
    assert main(["trace", config, "--packet", "32", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    end = whole["delivered"] - 1
    assert main(["trace", config, "--packet", "32", "--to", str(end), "--from", str(end - 6)]) == 0
    assert f"not delivered before tick {end}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [[], ["--packet", "1", "--scenario", "none"], ["--packet", "1", "--set", "loads=[2]"]],
)
def test_bad_input_is_exit_code_2(config, capsys, arguments):
    assert main(["trace", config, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err and err
