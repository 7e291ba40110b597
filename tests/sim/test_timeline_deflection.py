# SPDX-License-Identifier: Apache-2.0
"""Hot-potato networks that change: both engines alike, nothing lost uncounted, no packet over a link that is down."""

import pytest

from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.scenarios import scenario
from tests.sim.test_timeline_vct import (
    NEVER,
    RING,
    SWEEP,
    happening,
    ring,
)
from tests.sim.test_timeline_vct import sweep as run_sweep

HOT = {"kind": "deflection"}
POTATO = SWEEP.replace("{kind: minimal}", "{kind: deflection}").replace("{mode: vct, vcs: 8}", "{mode: deflection}")


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_no_packet_takes_a_link_before_it_returns(engine):
    down = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}
    up = {"at_tick": 2000, "restore": {"links": [[0, 1]]}, "reroute_after": NEVER}
    run = start(engine, happening(ring(routing=HOT), [down, up], HOT), 0.5, 1, True)
    carried = []
    for tick in (1000, 2000, 3000):
        run.advance(tick)
        carried.append(int(run.snapshot().channel_flits[0]))
    assert RING.src[0] == 0 and RING.dst[0] == 1
    assert carried[0] == carried[1] < carried[2]
    assert carried[0] == pytest.approx(500, rel=0.3)
    assert run.scalars()[Scalar.DROPPED_PACKETS] <= 4  # of both directions


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_packets_go_round_as_the_routing_learns(engine):
    """Host 0 sends to host 1 over one channel, and over three once its link is known to have failed."""
    event = {"at_tick": 1000, "fail": {"links": [[0, 1]]}, "reroute_after": 100}
    run = start(engine, happening(ring(routing=HOT), [event], HOT), 0.2, 1, True)
    run.advance(4000)
    log, counts = run.log(), run.scalars()
    of_first = log.identity % RING.hosts == 0
    assert set(log.hops[of_first & (log.delivered < 1000)]) == {1}
    assert set(log.hops[of_first & (log.delivered > 1100)]) == {3}
    assert counts[Scalar.DROPPED_PACKETS] <= 4


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_is_where_no_next_hop_leads_from_is_lost(engine):
    """A packet that waits between two links that fail is lost as the routing learns that nobody is left there."""
    links = [(0, 1), (1, 2), (0, 3), (3, 2)]
    topology = Topology.from_links("diamond", 4, links).with_hosts([1, 0, 1, 0])
    events = [{"at_tick": 500, "fail": {"links": [[1, 2]]}, "reroute_after": NEVER}]
    events += [{"at_tick": 600, "fail": {"links": [[0, 1]]}, "reroute_after": 50}]
    run = start(engine, happening(scenario(topology, routing=HOT, hold_packets=9), events, HOT), 0.8, 1)
    run.advance(650)
    held = run.scalars()[Scalar.DROPPED_PACKETS]
    run.advance(651)
    lost = run.scalars()[Scalar.DROPPED_PACKETS]
    assert 5 <= lost - held <= 20
    run.advance(3000)
    assert run.scalars()[Scalar.DROPPED_PACKETS] == lost


def test_a_point_counts_what_is_lost(tmp_path):
    assert run_sweep(tmp_path, POTATO) == 0
    assert (tmp_path / "run" / "figures" / "throughput_time.png").exists()


def test_slow_links_are_refused(tmp_path):
    (tmp_path / "given.yaml").write_text(POTATO)
    with pytest.raises(ConfigError, match="timeline: slow is not for packets that are deflected"):
        read(tmp_path / "given.yaml", ["timeline=[{at_tick: 1, slow: {links: 1}, factor: 0.5}]"])


def test_switches_into_which_more_channels_lead_than_out_of_them_are_refused():
    topology = Topology.from_arcs("ring", 4, [(v, (v + d) % 4) for v in range(4) for d in (1, 2)]).with_hosts(1)
    case = scenario(topology, routing=HOT)
    with pytest.raises(SpecError, match="leaves of switch 0 2 channels into it and 1 out of it at tick 9"):
        happening(case, [{"at_tick": 9, "fail": {"links": [[0, 1]]}, "reroute_after": NEVER}], HOT)
