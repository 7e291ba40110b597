# SPDX-License-Identifier: Apache-2.0
"""Networks that change while packets are in flight, in every mode that supports it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.transport.sizes import SizesSpec
from flitlab.sim.engines.start import start
from tests.conformance.cases import (
    EXAMPLES,
    FALLBACKS,
    SEEDS,
    assert_same,
    built,
    cases,
    delivered,
    dropped,
    horizon,
    modes,
    observed,
    with_events,
)
from tests.conformance.conservation import assert_conserved
from tests.scenarios import build

MANY = settings(EXAMPLES, max_examples=80)
CHANGING = modes(lambda mode: mode.counts and mode.supports_timeline)
QUICKLY_COMPILED = ("datagram", "ideal")
BUSY = st.sampled_from([0.3, 0.7, 1.0])
NEVER = float("inf")
LINK = Topology.from_links("link", 2, [(0, 1)]).with_hosts(1)


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=() if mode in QUICKLY_COMPILED else pytest.mark.long) for mode in CHANGING]
)
@given(st.data(), BUSY, SEEDS)
@MANY
def test_engines_agree_and_conserve_packets(mode, data, load, seed):
    case = data.draw(cases(mode, events=True))
    run, last = start("both", case, load, seed, log=True), horizon(case)
    for tick in range(last // 5, last + 1, last // 5):
        run.advance(tick)
        observed(run)
        assert_conserved(run, case)


@pytest.mark.long
@pytest.mark.parametrize("mode", CHANGING)
@given(st.data(), BUSY, SEEDS)
@settings(MANY, max_examples=20)
def test_pauses_change_nothing(mode, data, load, seed):
    case = data.draw(cases(mode, events=True))
    last = horizon(case) // 2
    whole, parts = (start("compiled", case, load, seed, log=True) for _ in range(2))
    whole.advance(last)
    for tick in range(last // 7, last + 1, last // 7):
        parts.advance(tick)
        observed(parts)
    parts.advance(last)
    assert_same(whole, parts, last, program=False)


def saturated(mode, topology, traffic):
    """A scenario on a network, in which hosts send all the time, and its routing."""
    base = {"topology": topology, "traffic": traffic, "transport": {"kind": "none"}, "source": Source(flits=(4,))}
    base |= {"sizes": SizesSpec(kind="fixed", bytes=10**9)}
    return next((case, routing) for routing in FALLBACKS if (case := built(mode, {}, routing=routing, **base)))


@pytest.mark.long_on("compiled")
@pytest.mark.parametrize("mode", CHANGING)
def test_a_switch_that_fails_drops_what_is_in_it(engine_name, mode):
    case, routing = saturated(mode, build("fat_tree", hosts=2, k=4), {"kind": "shift", "by": 5})
    at = horizon(case)
    first_core = case.topology.switches - 4  # the one that first paths cross
    event = {"at_tick": at, "fail": {"switches": [first_core]}, "reroute_after": NEVER}
    run = start(engine_name, with_events(case, routing, [event]), 0.9, 1, log=True)
    run.advance(at)
    before = dropped(run)
    run.advance(at + 1)
    assert dropped(run) > before + 1
    assert_conserved(run, case)


@pytest.mark.long_on("compiled")
@pytest.mark.parametrize("mode", CHANGING)
def test_nothing_crosses_a_link_that_is_down_and_traffic_goes_on_when_it_returns(engine_name, mode):
    case, routing = saturated(mode, LINK, {"kind": "shift", "by": 1})
    down, up = 2 * horizon(case), 4 * horizon(case)
    links = {"links": [[0, 1]]}
    events = [{"at_tick": down, "fail": links, "reroute_after": NEVER}]
    events += [{"at_tick": up, "restore": links, "reroute_after": NEVER}]
    run = start(engine_name, with_events(case, routing, events), 0.8, 1, log=True)
    got = []
    for tick in (down, down + horizon(case), up, up + horizon(case)):
        run.advance(tick)
        got.append(delivered(run))
        assert (dropped(run) > 0) == (tick > down)
    assert 0 < got[0] <= got[1] == got[2] < got[3]
    assert_conserved(run, case)
