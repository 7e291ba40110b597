# SPDX-License-Identifier: Apache-2.0
"""Channels of different speed in the modes that send flits: closed forms of every mode, and equal engines."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError
from flitlab.models.scenario import Scenario
from flitlab.models.topology.flit_times import capacity_unit, flit_times, in_flits_per_tick
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines import partitions
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_after
from tests.scenarios import carrying, ideal, scenario, vct_scenarios, with_flit_times, wormhole_scenarios

ONES = {"header": 0, "switch": 1, "link": 1, "injection": 1, "ejection": 1, "credit": 1}
MODES = ["vct", "wormhole", "ideal"]


def chain(mode: str, ticks: list[int], flits: int, extra=0, buffer_flits: int | None = None, **keys) -> Scenario:
    """A row of switches between two hosts, of which the first sends; ticks of a flit: both hosts, then the channels."""
    host, *between = ticks
    links = [(v, v + 1) for v in range(len(between))]
    topology = Topology.from_links("row", len(between) + 1, links, capacity=[1 / t for t in between], delay=extra)
    topology = topology.with_hosts([1, *[0] * (len(between) - 1), 1], host_capacity=1 / host)
    case = scenario(
        topology, traffic={"kind": "shift", "by": 1}, source=Source(flits=(flits,)), shared_input=True,
        mode="vct" if mode == "ideal" else mode, buffer_flits=buffer_flits or 2 * flits, **{**ONES, **keys},
    )  # fmt: skip
    return carrying(ideal(case) if mode == "ideal" else case, rate=np.array([1.0, 0.0]))


def alone(mode: str, ticks: list[int], flits: int, times: dict[str, int], extra: int = 0) -> int:
    """The latency of a packet in an empty network, channel by channel and flit by flit."""
    arrived = [times["injection"] + ticks[0] - 1 + flit * ticks[0] for flit in range(flits)]
    for before, here, last in zip(ticks, ticks[1:], [False] * (len(ticks) - 2) + [True], strict=False):
        if mode == "wormhole":
            sent: list[int] = []
            for flit, tick in enumerate(arrived):
                sent.append(max(tick + times["header"] * (flit == 0), sent[-1] + here if sent else 0))
        else:
            first = arrived[0] + max(times["header"], (flits - 1) * (before - here))
            sent = [first + flit * here for flit in range(flits)]
        channel = times["ejection"] if last else times["link"] + extra
        arrived = [tick + times["switch"] + channel + here - 1 for tick in sent]
    return arrived[-1]


def lone_latency(engine_name: str, case: Scenario) -> float:
    """The mean latency of a few packets that never meet."""
    run = start(engine_name, case, 0.001 * case.source.mean_flits, 3)
    run.advance(4000)
    scalars = run.scalars()
    assert scalars[Scalar.DELIVERED_PACKETS] == 3
    return scalars[Scalar.LATENCY] / 3


EXAMPLES = [  # ticks of host and channels, flits, header, latency of vct, of wormhole
    ([1, 3], 4, 2, 18, 18), ([1, 2], 2, 4, 15, 15), ([3, 1], 5, 0, 29, 21), ([1, 1], 4, 2, 12, 12),
]  # fmt: skip


@pytest.mark.parametrize("mode", long_after(2, MODES))
@pytest.mark.parametrize(("ticks", "flits", "header", "vct", "wormhole"), EXAMPLES)
def test_a_lone_packet_takes_the_closed_form(engine_name, mode, ticks, flits, header, vct, wormhole):
    expected = wormhole if mode == "wormhole" else vct
    case = chain(mode, ticks, flits, header=header)
    assert lone_latency(engine_name, case) == expected == case.switching.route_latency([*ticks, ticks[0]], flits)
    assert case.zero_load_latency == expected


@pytest.mark.parametrize("mode", long_after(1, MODES))
def test_lone_packets_of_drawn_routes(engine_name, mode):
    """Against a recursion over channels and flits; the printed range holds every packet of one flit."""
    rng = Random(7)
    for _ in range(6):
        ticks = [rng.choice([1, 2, 3, 8]) for _ in range(rng.randint(1, 4))] + [1]
        rng.shuffle(ticks)
        flits, extra = rng.choice([1, 2, 5]), rng.choice([0, 4])
        times = {name: rng.randint(name != "header", 5) for name in ONES}
        case = chain(mode, ticks, flits, extra, **times)
        expected = alone(mode, [*ticks, ticks[0]], flits, times, extra)
        assert lone_latency(engine_name, case) == expected <= case.zero_load_latency
        own = case.switching.route_latency([*ticks, ticks[0]], flits) + extra * (len(ticks) - 1)
        assert own == expected
        if flits == 1:
            assert case.zero_load_range == (expected, expected)


@pytest.mark.long_on("reference")
@pytest.mark.parametrize("mode", long_after(2, MODES))
@pytest.mark.parametrize("ticks", [[1, 4], [2, 3, 5], [3, 1]])
def test_one_flow_saturates_at_the_slowest_channel(engine_name, mode, ticks):
    flits, slowest = 4, max(ticks)
    case = chain(mode, ticks, flits, buffer_flits=32)
    run = start(engine_name, case, 1.0, 1)
    run.advance(100 * slowest)
    before = run.scalars()
    run.advance(100 * slowest + 200 * flits * slowest)
    assert (run.scalars() - before)[Scalar.DELIVERED_FLITS] == 200 * flits


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, ["vct", "ideal"]))
def test_waiting_for_a_slower_channel_is_geo_d_1(mode):
    """Mean wait p S (S - 1) / (2 (1 - p S)) for S = 12 ticks, p = 0.06 packets a tick, from 30 seeds."""
    p, flits, ticks = 0.06, 4, 3
    service = flits * ticks
    case = chain(mode, [1, ticks], flits, buffer_flits=4000)
    waits = []
    for seed in range(30):
        run = start("compiled", case, p * flits, seed)
        run.advance(2000)
        before = run.scalars()
        run.advance(22_000)
        moved = run.scalars() - before
        # in series with a slower one, the queue for the host's own channel adds nothing
        waits.append(moved[Scalar.LATENCY] / moved[Scalar.DELIVERED_PACKETS] - case.zero_load_latency)
    formula = p * service * (service - 1) / (2 * (1 - p * service))
    assert abs(np.mean(waits) - formula) < 3 * np.std(waits, ddof=1) / sqrt(len(waits))


def two_hosts_a_switch(mode: str, flits: int, rate: list[float]) -> Scenario:
    """Two hosts of rate 1/2 at either end of a channel of rate 1, to the host across; rate: of each host."""
    topology = Topology.from_links("two", 2, [(0, 1)]).with_hosts([2, 2], host_capacity=0.5)
    source, traffic = Source(flits=(flits,)), {"kind": "shift", "by": 2}
    case = scenario(topology, traffic=traffic, source=source, buffer_flits=4 * flits, **ONES)
    return carrying(ideal(case) if mode == "ideal" else case, rate=np.array(rate))


@pytest.mark.parametrize("mode", long_after(1, ["vct", "ideal"]))
def test_two_slow_hosts_share_a_fast_channel(engine_name, mode):
    """A packet waits there for one packet of the other host at most: its L ticks. Each alone does not wait at all."""
    flits, delivered = 5, []
    for rate in ([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]):
        run = start(engine_name, two_hosts_a_switch(mode, flits, rate), 0.45, 1, log=True)
        run.advance(3000)
        log = run.log()
        delivered.append(dict(zip(log.identity.tolist(), log.delivered.tolist(), strict=True)))
    both, separate = delivered[0], delivered[1] | delivered[2]
    waits = [tick - separate[packet] for packet, tick in both.items()]
    assert len(waits) > 400 and min(waits) == 0 and max(waits) == flits


def with_speeds(draw, case: Scenario) -> Scenario:
    """The scenario with drawn flit times of 1 to 5 ticks on its channels, and up to 4 on those of hosts."""
    return replace(case, instance=replace(case.instance, topology=with_flit_times(draw, case.topology)))


@st.composite
def scenarios_with_speeds(draw, mode: str) -> Scenario:
    """A drawn scenario of a mode, over channels of different speed, which exclude a speed-up of the crossbar."""
    case = draw(wormhole_scenarios() if mode == "wormhole" else vct_scenarios(mode))
    if mode == "wormhole":
        case = replace(case, switching=replace(case.switching, speedup=Fraction(1), output_flits=None))
    return with_speeds(draw, ideal(case) if mode == "ideal" else case)


DRAWN = settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
LOADS, SEEDS = st.sampled_from([0.05, 0.3, 0.7, 1.0]), st.integers(0, 2**40)


@pytest.mark.long  # the lone packets above are to the tick on either engine
@pytest.mark.parametrize("mode", MODES)
@given(st.data(), LOADS, SEEDS)
@DRAWN
def test_both_engines_deliver_every_packet_at_the_same_tick(mode, data, load, seed):
    run = start("both", data.draw(scenarios_with_speeds(mode)), load, seed)
    for tick in (100, 300):
        run.advance(tick)
        run.snapshot()
    run.deadlocked()


@pytest.mark.long
@given(scenarios_with_speeds("vct"), LOADS, SEEDS)
@DRAWN
def test_threads_change_nothing(case, load, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "MIN_PARALLEL_WORK", 1)
        logs = []
        for threads in (1, 2, 3):
            run = start("compiled", case, load, seed, log=True, threads=threads)
            for tick in (133, 300):
                run.advance(tick)
            logs.append(run.log())
    for log in logs[1:]:
        for one, other in zip(logs[0], log, strict=True):
            np.testing.assert_array_equal(one, other)


def row(capacity: list[float], host: float = 1.0) -> Topology:
    """Switches in a row, joined by links of these capacities."""
    links = [(v, v + 1) for v in range(len(capacity))]
    return Topology.from_links("row", len(capacity) + 1, links, capacity=capacity).with_hosts(1, host_capacity=host)


@pytest.mark.parametrize(
    ("capacity", "host", "ticks", "host_ticks", "unit"),
    [
        ([1, 1], 1, [1, 1], 1, 1), ([1, 2 / 3], 1, [2, 3], 2, 2), ([1, 0.666667], 1, [2, 3], 2, 2),
        ([4, 2], 1, [1, 2], 4, 4), ([0.4, 0.1], 0.2, [1, 4], 2, Fraction(2, 5)), ([1, 1 / 256], 1, [1, 256], 1, 1),
        ([2.5, 2.5], 2.5, [1, 1], 1, Fraction(5, 2)),
    ],
)  # fmt: skip
def test_a_tick_divides_all_flit_times(capacity, host, ticks, host_ticks, unit):
    topology = row(capacity, host)
    times = flit_times(topology)
    assert times.channel[topology.src < topology.dst].tolist() == ticks
    assert (times.host, times.unit) == (host_ticks, unit)
    scaled = in_flits_per_tick(topology)
    assert scaled.capacity.tolist() == (1 / times.channel).tolist() and scaled.host_capacity == 1 / host_ticks
    assert in_flits_per_tick(scaled) is scaled and capacity_unit(scaled) == unit
    assert flit_times(scaled).channel.tolist() == times.channel.tolist()


@pytest.mark.parametrize(
    ("capacity", "host", "key", "near"),
    [
        ([1, 0.6667], 1, "capacity", "1, 0.6666667 (2, 3 ticks a flit)"), ([1, 0.001], 1, "capacity", "1, 0.00390625"),
        ([1, 1 / 3], 0.7071, "host_capacity", "1, 0.7070707, 0.3333333 (70, 99, 210"),
    ],
)  # fmt: skip
def test_ratios_that_are_too_fine_are_rejected_with_the_nearest(capacity, host, key, near):
    with pytest.raises(SpecError) as caught:
        flit_times(row(capacity, host))
    assert caught.value.key == f"topology.{key}" and near in str(caught.value)


RING = """\
topology: {kind: torus, dims: [4], host_capacity: 0.5}
capacity_of: {links: [[0, 1]], factor: 0.25}
routing: {kind: minimal}
switching: {mode: vct, flit_ns: 2, link_ns: 6, header_ticks: 1}
traffic: {kind: shift, by: 1, packet_flits: 4}
loads: [0.1, 1.0]
measure: {warmup: 200, ticks: 4000, ci: null}
ceilings: [mcf, split]
"""


@pytest.fixture
def config(tmp_path):
    def write(text: str = RING, *changes: str):
        file = tmp_path / "c.yaml"
        file.write_text(text)
        return read(str(file), changes)

    return write


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(2, MODES))
def test_a_slow_link_limits_the_flow_over_it(config, mode):
    """Hosts of rate 1/2 fill half of a channel; over the link of rate 1/4 goes a quarter, the ceiling of split."""
    (case,) = config(RING, f"switching.mode={mode}").cases
    assert case.flits_per_load == 0.5 and case.ticks["link"] == 3 and case.flit_ns == 2.0
    result = measure("compiled", case.scenario, 1.0, 1, Measure(400, 4000, None))
    assert result.row["offered"] == pytest.approx(0.5, rel=0.1)
    assert result.row["accepted"] == pytest.approx((3 * 0.5 + 0.25) / 4, rel=0.05)


def test_capacities_above_1_divide_the_tick(config):
    """Links of capacity 4: a tick is a quarter of ``flit_ns``, and hosts of capacity 1 take 4 ticks a flit."""
    (case,) = config(RING, "topology.host_capacity=1", "topology.capacity=4", "capacity_of.factor=0.5").cases
    assert case.flits_per_load == 0.25 and case.ticks["link"] == 12 and case.flit_ns == 0.5
    assert case.topology.capacity.tolist() == [0.5, 1, 0.5, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["capacity_of.factor=0.0012"], "topology.capacity_of: capacities 1, 0.5, 0.0012 need more than 256 ticks"),
        (["topology.host_capacity=1", "topology.capacity=400"],
         "channels between switches need fewer: topology.host_capacity, 1, is in the unit of their capacities"),
        (["topology.host_capacity=.inf"], "topology.host_capacity = .inf: must be finite in a simulation"),
        (["topology.host_capacity=0.7071"], "topology.host_capacity = 0.7071: capacities 1, 0.7071, 0.25 need more"),
        (["routing.kind=deflection"], "topology.capacity: must be the same for all channels"),
        (["timeline=[{at_tick: 5, slow: {links: [[0, 1]]}, factor: 0.03}]"], "timeline[0].factor = 0.03: a flit takes"),
    ],
)  # fmt: skip
def test_what_speeds_do_not_support_is_rejected(config, changes, message):
    with pytest.raises(ConfigError) as caught:
        config(RING, *changes)
    assert message in str(caught.value)


@pytest.mark.long
def test_check_prints_the_latency_of_slow_channels(config, tmp_path, capsys):
    config()
    assert main(["check", str(tmp_path / "c.yaml")]) == 0
    text = capsys.readouterr().out
    assert "2 ticks a flit on channels of hosts, 1 to 4 between switches" in text
