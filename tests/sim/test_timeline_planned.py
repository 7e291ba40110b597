# SPDX-License-Identifier: Apache-2.0
"""Routings that are made for a demand, in networks that change: planned anew in what is left, before anything runs."""

import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start

RING = """
topology: {kind: torus, dims: [4]}
routing: {kind: optimal}
switching: {mode: vct, vcs: 4}
traffic: {kind: shift, by: 1, packet_flits: 4}
loads: [0.3]
measure: {ticks: 3000}
timeline:
- {at_tick: 500, fail: {links: [[0, 1]]}, reroute_after: 100}
- {at_tick: 1500, restore: {links: [[0, 1]]}}
"""


def study(tmp_path, *sets):
    (tmp_path / "given.yaml").write_text(RING)
    return read(tmp_path / "given.yaml", list(sets))


@pytest.mark.parametrize("mode", ["{mode: vct, vcs: 4}", "{mode: wormhole, vcs: 4, buffer_flits: 3}"])
def test_packets_take_the_paths_that_are_best_in_what_is_left(tmp_path, mode):
    (case,) = study(tmp_path, f"switching={mode}").cases
    run = start("both", *case.scenario.at(0.3), 1)
    for tick in (1000, 1500, 3000):
        run.advance(tick)
        run.snapshot()
    log, counts = run.log(), run.scalars()
    of_first = log.identity % 4 == 0
    when, hops = log.delivered[of_first], log.hops[of_first]
    assert set(hops[when < 500]) == set(hops[when > 2000]) == {1, 3}  # both ways round the ring carry more than one
    assert set(hops[(when > 900) & (when < 1500)]) == {3}
    assert counts[Scalar.DROPPED_PACKETS] < 20 < counts[Scalar.DELIVERED_PACKETS]


def test_the_paths_of_an_epoch_carry_what_any_paths_there_could(tmp_path):
    """Each of 8 hosts sends to the 7 others: 16/7 over the middle of a row of 4 switches, 8/7 over all of a ring."""
    (case,) = study(tmp_path, "traffic={kind: uniform}", "topology.hosts_per_switch=2").cases
    whole, row, again = (epoch.instance for epoch in case.epochs)
    assert again is whole
    for instance, best in ((whole, 7 / 8), (row, 7 / 16)):
        (split,) = ceilings(instance, [ceiling_spec("split")])
        assert split.lower == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize(
    "sets",
    [
        ["switching={mode: datagram}", "transport={kind: tcp}", "loads=null"],
        ["switching={mode: ideal}"],
        ["routing={kind: valiant, legs: optimal}", "switching={mode: vct, vcs: 9}"],
        ["routing={kind: optimal, for: {kind: uniform}, select: adaptive}", "switching={mode: vct, vcs: 9}"],
    ],
)
def test_other_modes_and_routings_are_planned_anew_too(tmp_path, sets):
    (case,) = study(tmp_path, *sets).cases
    assert len(case.timeline.planned) == 1


def test_a_demand_that_no_paths_serve_in_what_is_left_is_refused(tmp_path):
    expected = r"timeline\[0\]: no routes for the demand in the remaining network: .* 3 channels .*paths have at most 2"
    with pytest.raises(ConfigError, match=expected):
        study(tmp_path, "routing.hops=2")


def test_an_epoch_that_no_routing_learns_of_needs_no_routes(tmp_path):
    (case,) = study(
        tmp_path, "routing.hops=2", "timeline=[{at_tick: 500, fail: {links: 1}, reroute_after: .inf}]"
    ).cases
    assert case.epochs[1].instance.routes is None
