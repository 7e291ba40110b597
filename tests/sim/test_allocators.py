# SPDX-License-Identifier: Apache-2.0
"""Allocators of wormhole switching: matchings by hand, runs against BookSim2 28f4329, and equality of engines."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flitlab.models.rules.allocate import AllocatorKind
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.reference.matching import Matcher, RoundRobin, separable_input_first, wavefront
from flitlab.sim.engines.start import start
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests.scenarios import build, scenario, wormhole_scenarios
from tests.sim.test_classes import LOADS, agree, carrying, with_classes
from tests.sim.test_credit_delay import ROUTER
from tests.sim.test_reply_queues import plain_wormhole

OWN = [AllocatorKind.INPUT_FIRST, AllocatorKind.WAVEFRONT]
"""Allocators with code of their own."""


@dataclass(eq=False)
class Side:
    """An input or output of a switch."""

    index: int
    arbiter: RoundRobin = field(default_factory=RoundRobin)


def sides(count):
    return [Side(i) for i in range(count)]


def pairs(matched):
    return {(requester.index, output.index) for requester, output in matched.items()}


def test_inputs_select_before_outputs():
    """Inputs 0 and 1 both select output 0, 2 selects output 1, which input 1 asked for, too."""
    (a, b, c), (x, y, z) = sides(3), sides(3)
    requests = {a: [x, y], b: [x, z], c: [y]}
    assert pairs(separable_input_first(requests)) == {(0, 0), (2, 1)}
    # input 0 goes on behind output 0; input 1 lost, and selects output 0 again, where input 0 now is last
    assert pairs(separable_input_first(requests)) == {(0, 1), (1, 0)}


def test_the_most_urgent_requests_go_first():
    """Inputs 1 and 2 are urgent at output 0; input 0 has the highest rotating priority, and the first diagonal."""
    (a, b, c), (x, y, z) = sides(3), sides(3)
    urgent = {(1, 0), (2, 0), (1, 2)}
    ranked = {"urgency": lambda requester, output: int((requester.index, output.index) in urgent)}
    requests = {a: [x, y], b: [x, z], c: [x, y]}
    assert pairs(separable_input_first(requests, **ranked)) == {(1, 0)}
    assert pairs(separable_input_first({a: [x], c: [x, y]}, **ranked)) == {(2, 0)}
    for diagonal in range(3):
        assert (0, 0) not in pairs(wavefront(requests, diagonal, 3, **ranked))
    assert pairs(wavefront({a: [x, y], b: [x]}, 0, 3, **ranked)) == {(1, 0), (0, 1)}
    assert pairs(wavefront({a: [x, y], b: [x]}, 0, 3)) == {(0, 0)}


@pytest.mark.parametrize("count", [2, 5])
def test_rotating_priorities_desynchronise(count):
    """All inputs request all outputs: one match at first, and from step ``count`` on a match for every input."""
    inputs, outputs = sides(count), sides(count)
    matches = [len(separable_input_first({i: outputs for i in inputs})) for _ in range(3 * count)]
    assert matches[0] == 1
    assert matches[count - 1 :] == [count] * (2 * count + 1)


def test_a_wavefront_begins_at_its_diagonal():
    inputs, outputs = sides(3), sides(3)
    every = {i: outputs for i in inputs}
    assert [pairs(wavefront(every, d, 3)) for d in range(3)] == [
        {(0, 0), (1, 2), (2, 1)}, {(0, 1), (1, 0), (2, 2)}, {(0, 2), (1, 1), (2, 0)}
    ]  # fmt: skip
    a, b, c = inputs
    x, y = outputs[:2]
    assert pairs(wavefront({a: [x, y], b: [x], c: [y]}, 1, 3)) == {(0, 1), (1, 0)}
    assert pairs(wavefront({a: [x, y], b: [x], c: [y]}, 0, 3)) == {(0, 0), (2, 1)}


@given(st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=6))
def test_a_wavefront_is_maximal(wishes):
    """No input without a match requests an output without one; the first diagonal moves if there are requests."""
    inputs, outputs = sides(len(wishes)), sides(5)
    matcher = Matcher(AllocatorKind.WAVEFRONT, 1, max(len(wishes), 5))
    requests = {i: [outputs[k] for k in sorted(wish)] for i, wish in zip(inputs, wishes, strict=True)}
    matched = matcher.match(requests)
    assert all(output in requests[requester] for requester, output in matched.items())
    assert len(set(matched.values())) == len(matched)
    for requester, asked in requests.items():
        assert requester in matched or all(output in matched.values() for output in asked)
    assert matcher.diagonal == int(any(wishes))


def mesh(**keys):
    """The mesh of BookSim2's examples: 8 x 8, dimension order, packets of 5 flits."""
    return scenario(
        build("mesh", dims=[8, 8]), routing={"kind": "dor"}, traffic={"kind": "uniform", "include_self": True},
        source=Source(flits=(5,)), mode="wormhole", vcs=4, buffer_flits=8, **ROUTER, **keys,
    )  # fmt: skip


def test_output_first_is_one_iteration_of_islip():
    cases = [mesh(matching=kind) for kind in (AllocatorKind.ISLIP, AllocatorKind.OUTPUT_FIRST, *OWN)]
    hashes = [case.content_hash for case in cases]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    assert [case.switching.plain()["allocator"] for case in cases] == [
        "islip", "separable_output_first", "separable_input_first", "wavefront"
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "latency", "accepted"),
    [(AllocatorKind.INPUT_FIRST, 44.37, 0.4007), (AllocatorKind.WAVEFRONT, 44.37, 0.4162)],
)
def test_booksim2_agrees(kind, latency, accepted):
    """Its tolerances: 2 % for latency, 3 % for what is accepted at overload."""
    case = mesh(matching=kind)
    for load, name, expected, tolerance in ((0.3, "latency_mean", latency, 0.02), (1.0, "accepted", accepted, 0.03)):
        row = measure("compiled", case, load, 1, Measure(10_000, 40_000, None)).row
        assert row[name] == pytest.approx(expected, rel=tolerance), name


@pytest.mark.long
def test_booksim2_agrees_on_age():
    """One class, the oldest packet first at each stage (FLIT.md, section 3)."""
    case = mesh(matching=AllocatorKind.INPUT_FIRST)
    case = replace(case, switching=replace(case.switching, priority="age"))
    rows = [measure("compiled", case, load, 1, Measure(10_000, 40_000, None)).row for load in (0.3, 1.0)]
    assert rows[0]["latency_mean"] == pytest.approx(47.23, rel=0.02)
    assert rows[1]["accepted"] == pytest.approx(0.4012, rel=0.03)


@pytest.mark.long
@pytest.mark.parametrize("kind", OWN)
def test_engines_heed_priorities_alike(kind):
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(with_classes(plain_wormhole()), st.sampled_from(["class", "age"]), LOADS, st.booleans())
    def check(case, priority, load, shared):
        keys = {"matching": kind, "priority": priority, "priority_at": "all", "shared_input": shared}
        agree(replace(case, switching=replace(case.switching, **keys)), load, 5)

    check()


@pytest.mark.long
@pytest.mark.parametrize("iterations", [1, 3])
def test_engines_heed_priorities_of_vcs_alike(iterations):
    """Inputs matched in an earlier iteration stay matched, whichever of their VCs sends."""
    case = scenario(
        build("mesh", dims=[4, 4]), routing={"kind": "dor"}, source=Source(flits=(4,)), mode="wormhole", vcs=5,
        buffer_flits=8, iterations=iterations, shared_input=True,
    )  # fmt: skip
    uniform = {"kind": "uniform"}
    listed = [{**uniform, "packet_flits": flits, "priority": 4 // flits} for flits in (4, 2, 1)]
    case = carrying(case, *listed)
    agree(replace(case, switching=replace(case.switching, priority="class", priority_at="input_vcs")), 1.0, 3)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.long) for kind in OWN])
@pytest.mark.parametrize("keys", [{}, {"header": 0}, {"shared_input": False}], ids=["", "header", "inputs"])
def test_engines_allocate_alike(kind, keys):
    topology, source = build("torus", dims=[3, 3], hosts=2), Source(flits=(1, 4), shares=(1.0, 1.0))
    switching = {"mode": "wormhole", "buffer_flits": 3, "matching": kind, **(ROUTER | keys)}
    case = scenario(topology, source=source, allow_deadlock=True, **switching)
    run = start("both", case, 0.8, 3)
    for tick in (20, 21, 100, 400):
        run.advance(tick)
        run.snapshot()


@pytest.mark.long
@pytest.mark.parametrize("kind", OWN)
def test_engines_allocate_alike_on_drawn_scenarios(kind):
    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(wormhole_scenarios(), st.sampled_from([0.3, 1.0]))
    def agree(case, load):
        switching = replace(case.switching, matching=kind, iterations=1)
        run = start("both", replace(case, switching=switching), load, 3)
        for tick in (40, 41, 200):
            run.advance(tick)
            run.snapshot()

    agree()
