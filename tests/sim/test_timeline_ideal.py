# SPDX-License-Identifier: Apache-2.0
"""Networks of ideal switches that change: both engines alike, nothing lost uncounted, what waits and what turns."""

import numpy as np
import pytest

from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.scenarios import build, ideal, scenario
from tests.sim.test_timeline_vct import (
    NEVER,
    RING,
    SWEEP,
    assert_same_and_complete,
    delivered,
    happening,
    ring,
)
from tests.sim.test_timeline_vct import sweep as run_sweep

IDEAL = SWEEP.replace("{mode: vct, vcs: 8}", "{mode: ideal}")


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_is_on_a_link_is_lost_and_the_rest_waits_until_it_returns(engine):
    """At full load a packet of 4 flits starts every 4 ticks, and its head takes 5 to come over: 1 or 2 are lost."""
    down = {"at_tick": 2000, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    up = {"at_tick": 3000, "restore": {"links": [[0, 1]]}, "reroute_after": NEVER}
    run = start(engine, happening(ideal(ring()), [down, up]), 1.0, 1, True)
    got = []
    for tick in (1000, 2000, 2020, 3000, 3020, 4020):
        run.advance(tick)
        got.append(delivered(run))
    assert run.scalars()[Scalar.DROPPED_PACKETS] in (1, 2)
    assert got[1] - got[0] == 250  # a flit a tick
    assert got[3] == got[2]  # but for those whose head was over the link
    assert got[5] - got[4] == 250  # and again, though a thousand flits wait
    counts = run.scalars()
    assert counts[Scalar.SENT_PACKETS] - counts[Scalar.DELIVERED_PACKETS] - counts[Scalar.DROPPED_PACKETS] >= 250


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_waits_turns_round_as_the_routing_learns(engine):
    """Host 0 sends to host 1 over one channel, and over three once its link is known to have failed."""
    event = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 100}
    run = start(engine, happening(ideal(ring()), [event]), 0.2, 1, True)
    run.advance(4000)
    log, counts = run.log(), run.scalars()
    of_first = log.identity % RING.hosts == 0
    assert set(log.hops[of_first & (log.delivered < 1000)]) == {1}
    assert not (of_first & (log.delivered > 1030) & (log.delivered < 1100)).any()
    assert set(log.hops[of_first & (log.delivered > 1100)]) == {3}
    assert counts[Scalar.DROPPED_PACKETS] <= 4  # on both directions of the link
    lost = np.setdiff1d(np.arange(log.identity[of_first].max() // RING.hosts), log.identity[of_first] // RING.hosts)
    assert len(lost) <= counts[Scalar.DROPPED_PACKETS] + 3  # those who come later are on their way


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(("kind", "left"), [("minimal", 0), ("ecmp", 1)])
def test_packets_on_whole_paths_keep_them(engine, kind, left):
    """Packets that wait at a link are delivered over others where next hops say so, and wait on where paths do."""
    routing = {"kind": kind} | ({"ways": 1, "routed": "source"} if kind == "ecmp" else {})
    events = [{"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 200}]
    run = start(engine, happening(ideal(ring(routing=routing)), events, routing), 0.5, 1, True)
    run.advance(1200)
    waiting = run.scalars()
    assert waiting[Scalar.SENT_PACKETS] - waiting[Scalar.DELIVERED_PACKETS] - waiting[Scalar.DROPPED_PACKETS] > 30
    run.advance(1300)
    before = run.log().identity
    run.advance(6000)
    hops = run.log().hops[~np.isin(run.log().identity, before)]
    assert set(hops) <= {1, 3}
    first = np.sort(run.log().identity[run.log().identity % RING.hosts == 0] // RING.hosts)
    gap = int(np.diff(first).max()) - 1
    assert (gap > 20) == bool(left)  # a hole of those that still wait for the link


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_is_where_no_route_leads_from_is_lost(engine):
    """Two ways from one host to the other, of which one is cut on both sides of its switch."""
    links = [(0, 1), (1, 2), (0, 3), (3, 2)]
    topology = Topology.from_links("diamond", 4, links).with_hosts([1, 0, 1, 0])
    cut = {"links": [[1, 2]]}
    events = [{"at_tick": 500, "fail": cut, "reroute_after": NEVER}]
    events += [{"at_tick": 600, "fail": {"links": [[0, 1]]}, "reroute_after": 50}]
    run = start(engine, happening(ideal(scenario(topology)), events), 0.8, 1)
    run.advance(649)
    held = run.scalars()
    run.advance(651)
    after = run.scalars()
    assert (
        after[Scalar.DROPPED_PACKETS] - held[Scalar.DROPPED_PACKETS] >= 5
    )  # about half of 100 ticks of 0.8 flits, of each of two hosts
    run.advance(3000)
    counts = run.scalars()
    assert counts[Scalar.DROPPED_PACKETS] == after[Scalar.DROPPED_PACKETS]


def test_a_point_counts_what_is_lost(tmp_path):
    assert run_sweep(tmp_path, IDEAL) == 0
    assert (tmp_path / "run" / "figures" / "throughput_time.png").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("timeline=[{at_tick: 1, slow: {links: 1}, factor: 0.7}]", r"timeline\[0\].factor = 0.7: a flit takes 1 tick"),
        ("loads={saturation: {}}", "timeline: is not for a search, which needs a static network"),
        ("timeline[0].at_tick=3001", "timeline"),
        ("routing={kind: polarized}", "timeline.*polarized computes next hops from the whole network"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    (tmp_path / "given.yaml").write_text(IDEAL)
    with pytest.raises(ConfigError, match=expected):
        read(tmp_path / "given.yaml", [change])


def test_routes_of_another_kind_are_refused():
    case = ideal(ring())
    with pytest.raises(SpecError, match="another form in the network that remains at tick 10"):
        happening(case, [{"at_tick": 10, "fail": {"links": [[0, 1]]}}], {"kind": "ksp", "k": 1})


def test_roots_of_what_is_left_are_in_the_last_tier_of_what_is_left():
    """The routing is built anew where one of four core switches is gone, and others have lower numbers."""
    case = ideal(scenario(build("fat_tree", hosts=2, k=4), routing={"kind": "updown"}))
    event = {"at_tick": 200, "fail": {"switches": [case.topology.switches - 1]}}
    assert_same_and_complete(happening(case, [event], {"kind": "updown"}), 0.5, 1)
