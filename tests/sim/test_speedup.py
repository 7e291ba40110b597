# SPDX-License-Identifier: Apache-2.0
"""Crossbars of several steps per tick: closed forms, the ideal switch as a limit, and the keys."""

from fractions import Fraction

import pytest

from flitlab.models.instance import Instance
from flitlab.models.registry import make, spec_class
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests.scenarios import scenario

ROUTER = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2, "shared_input": True}
SPEEDUPS = [Fraction(1), Fraction(4, 3), Fraction(3, 2), Fraction(2), Fraction(5)]


@pytest.mark.parametrize("speedup", SPEEDUPS)
def test_a_tick_has_its_share_of_steps(speedup):
    """floor(s (t + 1)) - floor(s t) steps in tick t, and s on average."""
    mode = Wormhole(speedup=speedup)
    steps = [step for tick in range(60) for step in range(mode.first_step(tick), mode.first_step(tick + 1))]
    assert steps == list(range(60 * speedup.numerator // speedup.denominator))
    for tick in range(60):
        for step in range(mode.first_step(tick), mode.first_step(tick + 1)):
            assert mode.tick_of(step) == tick


@pytest.mark.parametrize("speedup", SPEEDUPS)
def test_one_vc_takes_a_new_head_every_tick_if_each_has_two_steps(engine_name, speedup):
    """Single flits through one VC of ample buffer: one every second tick with one step, every tick with two."""
    two = Topology.from_links("two", 2, [(0, 1)]).with_hosts(1)
    case = scenario(
        two, traffic={"kind": "shift", "by": 1}, source=Source(flits=(1,)), mode="wormhole", vcs=1, buffer_flits=40,
        speedup=speedup, **ROUTER,
    )  # fmt: skip
    run = start(engine_name, case, 1.0, 1)
    run.advance(60)
    before = run.snapshot().channel_flits
    run.advance(180)
    # A head gets its VC in the step after the flit before it, and is sent from the next tick on. In a tick of two steps
    # a flit is sent and the next head gets a VC: once in 3 ticks with s = 4/3. With s = 3/2 flits are sent in ticks of
    # one step only, so that the next head gets its VC in the tick after.
    share = {1: Fraction(1, 2), Fraction(4, 3): Fraction(2, 3), Fraction(3, 2): Fraction(1, 2)}.get(speedup, 1)
    assert (run.snapshot().channel_flits - before).tolist() == [120 * share] * 2


@pytest.mark.parametrize("speedup", SPEEDUPS)
@pytest.mark.parametrize("flits", [1, 5])
def test_zero_load_latency_is_that_of_one_step(engine_name, speedup, flits):
    """4 H + 6 + L - 1 on a line of four switches, header and switch being whole ticks."""
    line = make("topology", kind="mesh", dims=[4]).build()
    case = scenario(
        line, routing={"kind": "dor"}, traffic={"kind": "shift", "by": 3}, source=Source(flits=(flits,)),
        mode="wormhole", vcs=2, buffer_flits=8, speedup=speedup, **ROUTER,
    )  # fmt: skip
    run = start(engine_name, case, 0.001 * flits, 3, log=True)
    run.advance(6000)
    hops = run.log().hops
    assert len(hops) > 10
    assert run.snapshot().scalars[Scalar.LATENCY] == (4 * hops + 6 + flits - 1).sum()


@pytest.mark.long
@pytest.mark.parametrize("load", [0.3, 0.6])
def test_a_step_for_every_input_is_the_ideal_switch(load):
    """Five inputs, single flits, ample buffers and VCs: only earlier flits hold a flit back."""
    mesh = make("topology", kind="mesh", dims=[3, 3]).build()
    keys = {"routing": {"kind": "dor"}, "source": Source(flits=(1,))}
    times = {name: ROUTER[name] for name in ("header", "switch", "link", "injection", "ejection")}
    window = Measure(500, 12_000, None)
    fast = scenario(mesh, mode="wormhole", vcs=8, buffer_flits=64, speedup=Fraction(5), **keys, **ROUTER)
    best = ideal(mesh, times, **keys)
    ours, theirs = (measure("compiled", case, load, 1, window).row for case in (fast, best))
    assert ours["accepted"] == pytest.approx(theirs["accepted"], rel=0.01)
    assert ours["latency_mean"] == pytest.approx(theirs["latency_mean"], rel=0.02)


def ideal(topology, times, *, routing, source):
    """The same network with ideal switches."""
    demand = make("traffic", kind="uniform").build(topology)
    routes = make("routing", **routing).build(topology)
    mode = spec_class("switching", "ideal").switching_mode(**times)
    return Scenario(Instance(topology, demand, routes), mode.certified(topology, routes)[0], source)


CONFIG = """
topology: {kind: mesh, dims: [3]}
routing: ROUTING
switching: {mode: wormhole, SPEEDUP}
traffic: {kind: uniform, packet_flits: 4}
loads: [0.1]
measure: {warmup: 100, ticks: 400, ci: null}
ceilings: []
"""


def config(tmp_path, speedup, routing="{kind: dor}"):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.replace("SPEEDUP", speedup).replace("ROUTING", routing))
    return str(path)


def test_a_speedup_is_a_fraction_and_one_changes_nothing(tmp_path):
    def case(text):
        return read(config(tmp_path, text)).cases[0]

    for written in ('speedup: "3/2"', "speedup: 1.5", 'speedup: "6/4"'):
        assert case(written).scenario.switching.speedup == Fraction(3, 2)
    assert case('speedup: "3/2"').resolved["switching"]["speedup"] == "3/2"
    one = {case(text).scenario.content_hash for text in ("vcs: 4", "speedup: 1", "speedup: 1, output_flits: 4")}
    two = {case(f"speedup: 2{more}").scenario.content_hash for more in ("", ", output_flits: 4")}
    assert (len(one), len(two), len(one | two)) == (1, 2, 3)


@pytest.mark.parametrize(
    ("speedup", "routing", "problem"),
    [
        ('speedup: "1/2"', "{kind: dor}", 'speedup = 1/2: must be a fraction from 1 to 16 such as "3/2"'),
        ("speedup: fast", "{kind: dor}", 'speedup = fast: must be a fraction from 1 to 16 such as "3/2"'),
        ("speedup: 17", "{kind: dor}", 'speedup = 17: must be a fraction from 1 to 16 such as "3/2"'),
        ('speedup: "1e999999999"', "{kind: dor}", "speedup = '1e999999999': must be a fraction from 1 to 16 such as"),
        ("speedup: 1.3333333333333333", "{kind: dor}", "speedup = 1.3333333333333333: must be a fraction from 1 to 16"),
        ("speedup: 16, iterations: 16", "{kind: dor}", "speedup = 16: takes more than 256 steps of the allocators per"),
        ("output_flits: 0", "{kind: dor}", "output_flits = 0: must be greater than or equal to 1"),
        ("speedup: 2", "{kind: deflection}", "speedup = 2: the routing deflects, and hot-potato switching has"),
    ],
)  # fmt: skip
def test_errors_name_the_key(tmp_path, speedup, routing, problem):
    with pytest.raises(ConfigError) as caught:
        read(config(tmp_path, speedup, routing))
    (error,) = map(str, caught.value.errors)
    assert error.startswith(f"{tmp_path}/c.yaml:4: switching.{problem}")


@pytest.mark.parametrize("key", ["speedup: 2", "output_flits: 8"])
def test_modes_without_steps_have_no_speedup(tmp_path, key):
    with pytest.raises(ConfigError) as caught:
        read("c.yaml", text=CONFIG.replace("wormhole, SPEEDUP", f"vct, {key}").replace("ROUTING", "{kind: dor}"))
    assert "is not for mode vct, but for mode wormhole" in str(caught.value.errors[0])


def test_a_changing_network_has_no_speedup(tmp_path):
    with pytest.raises(ConfigError) as caught:
        read(
            config(tmp_path, "speedup: 2", "{kind: minimal, vc_policy: hop}"),
            ["topology.dims=[3, 3]", "timeline=[{at_tick: 50, fail: {links: [[0, 1]]}}]"],
        )
    assert "needs switching.speedup: 1" in str(caught.value.errors[0])
