# SPDX-License-Identifier: Apache-2.0
"""Uni-directional multistage networks in engines and ceilings: closed forms of butterflies, and equal engines."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.verify import provable, saved_of, verify
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.source import Source
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines import partitions
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests import long_after
from tests.models.test_multistage import butterfly
from tests.scenarios import TIMES, carrying, ideal, scenario, slow_channels
from tests.sim.test_classes import LOADS, MANY, agree, with_classes
from tests.sim.test_subnets import with_subnets

MODES = ["ideal", "vct", "wormhole"]


def worst_permutation(k: int, n: int) -> list[int]:
    """A permutation of the hosts that sends the packets of k**(n // 2) hosts over one channel.

    With digits to the base k, least first, the channel behind stage m - 1, m = n // 2, is shared by the sources that
    agree in digits 1 to n - m, and the destinations that agree in the m highest. So the m highest digits of a
    destination are copies of some of these, and the digits of a source that are not copied go elsewhere. Every digit is
    one more, modulo k, so that no host sends to itself: digit 0 stays in its place.
    """
    m = n // 2
    shared = list(range(1, n - m + 1))
    high, rest = shared[:m], [digit for digit in range(n) if digit not in shared[:m]]
    order = [*rest, *high]
    return [sum((host // k**digit + 1) % k * k**i for i, digit in enumerate(order)) for host in range(k**n)]


def case_of(topology: Topology, mode: str, **keys) -> Scenario:
    """A scenario of a mode."""
    case = scenario(topology, mode="vct" if mode == "ideal" else mode, **keys)
    return ideal(case) if mode == "ideal" else case


@pytest.mark.parametrize(("k", "n"), [(2, 3), (2, 4), (3, 2), (3, 3)])
def test_ceilings_of_a_butterfly_are_its_closed_forms(k, n):
    topology = butterfly(k, n)
    routes, size = make("routing", kind="minimal").build(topology), k**n
    specs = [ceiling_spec(kind) for kind in ("mcf", "mcf_paths", "split", "worst_case", "cuts", "bounds", "total")]
    worst = 1 / k ** (n // 2)
    for traffic, theta, cut in (
        (make("traffic", kind="uniform", include_self=True).build(topology), 1.0, 1.0),
        (make("traffic", kind="uniform").build(topology), 1 - 1 / size, 1 - 1 / size),
        (fixed_traffic("worst", topology, np.array(worst_permutation(k, n))), worst, None),
    ):
        instance = Instance(topology, traffic, routes)
        listed = ceilings(instance, specs, (2.0,), keep_flow=True)
        for row in listed:
            if provable(row.ceiling) and row.certificate is not None:
                saved = saved_of(instance, row)
                assert verify(instance, saved).confirms(saved)
        rows = {row.ceiling: row for row in listed}
        for kind in ("mcf", "mcf_paths", "split"):
            assert rows[kind].lower == pytest.approx(theta, rel=1e-6)
            assert rows[kind].upper == pytest.approx(theta, rel=1e-6)
        assert rows["worst_case"].lower == pytest.approx(worst)
        assert rows["worst_case"].upper == pytest.approx(worst)
        assert rows["cuts"].upper >= theta * (1 - 1e-9)
        if cut is not None:
            assert rows["cuts"].upper == pytest.approx(cut)


@pytest.mark.parametrize("mode", MODES)
def test_a_lone_packet_takes_the_closed_form(mode):
    check_lone_packets("reference", mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_lone_packet_takes_the_closed_form_in_compiled_engines(mode):
    check_lone_packets("compiled", mode)


def check_lone_packets(engine_name: str, mode: str) -> None:
    """Every packet of one sender passes n switches and n - 1 channels between them."""
    k, n, flits = 3, 3, 4
    case = case_of(butterfly(k, n), mode, traffic={"kind": "shift", "by": 5}, source=Source(flits=(flits,)))
    rate = np.zeros(k**n)
    rate[7] = 1.0
    case = carrying(case, rate=rate)
    t = TIMES if mode != "ideal" else {**TIMES, "header": case.switching.header}
    expected = t["injection"] + n * (t["header"] + t["switch"]) + (n - 1) * t["link"] + t["ejection"] + flits - 1
    run = start(engine_name, case, 0.004, 3)
    run.advance(4000)
    scalars = run.scalars()
    assert scalars[Scalar.DELIVERED_PACKETS] > 2
    assert scalars[Scalar.LATENCY] == expected * scalars[Scalar.DELIVERED_PACKETS]
    assert case.zero_load_latency == expected
    assert case.zero_load_range.least == case.zero_load_range.most == expected - flits + 1


@pytest.mark.parametrize("mode", long_after(1, MODES))
def test_the_busiest_channel_of_the_worst_permutation_is_never_idle(mode):
    """At twice its capacity the channel moves a flit in every tick, and no more than its share arrives."""
    k, n, window = 2, 4, 500
    topology = butterfly(k, n)
    case = case_of(topology, mode, source=Source(flits=(2,)), vcs=8, buffer_flits=32)
    worst = fixed_traffic("worst", topology, np.array(worst_permutation(k, n)))
    case = replace(case, instance=replace(case.instance, traffic=worst))
    run = start("reference" if mode == "ideal" else "compiled", case, 0.5, 3)
    run.advance(1000)
    before = run.snapshot().channel_flits
    run.advance(1000 + window)
    flits = run.snapshot().channel_flits - before
    assert flits.max() == pytest.approx(window, abs=2 if mode != "wormhole" else 0.05 * window)


def test_uniform_load_on_every_channel_is_equal():
    """f_c = 1 for every channel of a butterfly, within four standard errors of the flits of Bernoulli sources."""
    load, ticks = 0.3, 4000
    case = case_of(
        butterfly(2, 3), "ideal", traffic={"kind": "uniform", "include_self": True}, source=Source(flits=(2,))
    )
    run = start("reference", case, load, 5)
    run.advance(ticks)
    use = run.snapshot().channel_flits / ticks
    assert np.abs(use - load).max() < 4 * np.sqrt(2 * load / ticks)


@st.composite
def networks(draw) -> Topology:
    """Small multistage networks: butterflies, and random stages with hosts that eject in any order."""
    if draw(st.booleans()):
        topology = butterfly(*draw(st.sampled_from([(2, 2), (2, 3), (3, 2)])))
    else:
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        first, middle, last = (draw(st.integers(1, 3)) for _ in range(3))
        every = [(u, first + v) for u in range(first) for v in range(middle)]
        every += [(first + v, first + middle + w) for v in range(middle) for w in range(last)]
        arcs = [arc for arc in every for _ in range(rng.integers(1, 3))]
        hosts = rng.integers(1, 4, first)
        size = first + middle + last
        topology = Topology.from_arcs("stages", size, arcs).with_hosts(
            [*hosts, *[0] * (size - first)],
            ejection=rng.integers(first if draw(st.booleans()) else 0, size, hosts.sum()),
        )
        if topology.unreachable_pair() is not None:
            topology = topology.with_hosts(topology.host_count, ejection=rng.integers(size - last, size, hosts.sum()))
    return slow_channels(topology, draw) if draw(st.booleans()) else topology


@st.composite
def cases(draw, mode: str) -> Scenario:
    """A scenario of a mode on a drawn network."""
    topology = draw(networks().filter(lambda topology: topology.hosts > 1))
    source = Source(draw(st.sampled_from(["bernoulli", "onoff"])), (1, 4), (3.0, 1.0))
    return case_of(
        topology, mode, routing={"kind": "llskr", "k": 3} if mode == "wormhole" else {"kind": "minimal"}, source=source,
        traffic=draw(st.sampled_from([{"kind": "uniform"}, {"kind": "uniform", "include_self": True}])),
        vcs=draw(st.integers(1, 4)), buffer_flits=draw(st.integers(4, 12)), shared_input=True,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_engines_agree(mode):
    @given(cases(mode), LOADS, st.integers(0, 2**40))
    @settings(MANY, max_examples=60)
    def check(case, load, seed):
        run = start("both", case, load, seed)
        for tick in (60, 250):
            run.advance(tick)
            run.snapshot()
            run.deadlocked()

    check()


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_engines_agree_with_classes_and_subnets(mode):
    """With delays, replies and priorities: one variant of the kernel, as each takes up to a minute to compile."""
    networks = cases(mode).filter(lambda case: case.topology.has_delays)
    drawn = with_subnets(networks) if mode != "ideal" else with_classes(networks)
    replying = drawn.filter(lambda case: any(one.request is not None for one in case.traffic.classes))

    @given(replying, LOADS, st.integers(0, 2**40))
    @settings(MANY, max_examples=40)
    def check(case, load, seed):
        if mode == "wormhole" and case.switching.priority == "none":
            case = replace(case, switching=replace(case.switching, priority="class"))
        agree(case, load, seed)

    check()


def test_runs_are_single_threaded():
    case = scenario(butterfly(2, 3))
    assert "eject at different switches" in partitions.single_thread_reason(case)


def test_modes_for_hosts_of_one_switch_are_rejected(tmp_path):
    base = "topology: {kind: butterfly, k: 2, n: 2}\ntraffic: {kind: uniform}\nloads: [0.1]\n"
    for mode in ("datagram", "spray"):
        (tmp_path / "case.yaml").write_text(f"{base}routing: {{kind: minimal}}\nswitching: {{mode: {mode}}}\n")
        with pytest.raises(ConfigError, match="hosts inject and eject at one switch"):
            read(tmp_path / "case.yaml")
