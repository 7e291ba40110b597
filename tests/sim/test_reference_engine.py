# SPDX-License-Identifier: Apache-2.0
"""The reference engine against closed forms, queueing theory and cases traced by hand."""

from dataclasses import replace

import numpy as np
import pytest

from flitlab.models.instance import Instance
from flitlab.models.routing.deflection import Deflection
from flitlab.models.routing.minimal import Minimal
from flitlab.models.rules.packets import destination, length, make_packets
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.scenario import Scenario
from flitlab.models.topology.families.imase import Imase
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.uniform import Uniform
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.reference.clock import Allocator
from flitlab.sim.engines.reference.network import Network
from tests.scenarios import discipline, reference

# The delays of every case traced by hand; all different, so that a mix-up shows.
DELAYS = {"header": 2, "switch": 1, "link": 3, "injection": 4, "ejection": 5, "credit": 6}
CHAIN = [(0, 1), (1, 2)]


def make(topology, flits=10, select="random", policy=VcPolicy.ANY, target=None, arrivals="bernoulli", **switching):
    """A scenario of uniform traffic, or of hosts that send to ``target``."""
    mode = switching.pop("mode", "vct")
    hot_potato = mode == "deflection"
    keys = {"vcs": 2, "buffer_flits": 40, **({"hold_packets": 8} if hot_potato else {})} | DELAYS | switching
    routing = Deflection(kind="deflection") if hot_potato else Minimal(kind="minimal", select=select)
    if target is None:
        traffic = Uniform(kind="uniform").build(topology)
    else:
        traffic = fixed_traffic("fixed", topology, np.array(target))
    mix = (flits,) if isinstance(flits, int) else flits
    source = Source(arrivals, mix, (1.0,) * len(mix))
    instance = Instance(topology, traffic, routing.build(topology))
    return Scenario(instance, discipline(mode, **keys, vc_policy=policy), source)


def ring(n, hosts=1):
    return Topology.from_arcs("ring", n, [(v, (v + 1) % n) for v in range(n)]).with_hosts(hosts)


def chain(hosts=1):
    return Topology.from_links("chain", 3, CHAIN).with_hosts(hosts)


def imase(n=12, degree=3, hosts=2):
    return Imase(kind="imase", n=n, degree=degree, hosts_per_switch=hosts).build()


def run(scenario, ticks, load=0.3, seed=1, shuffle=0):
    started = reference(scenario, load, seed, log=True, shuffle=shuffle)
    started.advance(ticks)
    return started


@pytest.fixture
def script(monkeypatch):
    """Packets by hand: (scenario, {host: [(tick, destination), ...]}) -> (run, {id: (delivered, hops)})."""

    def play(scenario, packets, ticks=2000):
        flits = scenario.source.flits[0]

        def draw_packets(self, host):
            return ((tick, to, flits) for tick, to in packets.get(host, []))

        monkeypatch.setattr(Network, "draw_packets", draw_packets)
        started = run(scenario, ticks)
        return started, {int(i): (int(t), int(h)) for i, t, h in zip(*started.log()[:3], strict=True)}

    return play


def test_channel_delay_counts(script):
    topology = ring(3)
    slow = replace(topology, delay=np.array([0, 11, 0]))
    assert script(make(slow), {0: [(0, 2)]})[1][0] == (script(make(topology), {0: [(0, 2)]})[1][0][0] + 11, 2)


def test_packets_of_the_same_switch(script):
    _, delivered = script(make(ring(2, hosts=2)), {0: [(0, 1)]})
    assert delivered == {0: (4 + 2 + 9 + 1 + 5, 0)}


def test_output_contention(script):
    # switch 1: B (from host 1) is granted 1->2 at 9 and holds it up to 19; A is eligible at 12
    _, delivered = script(make(chain()), {0: [(0, 2)], 1: [(3, 2)]})
    assert delivered == {0: (40, 2), 1: (30, 1)}


def test_tie_goes_to_the_lower_input(script):
    # both are eligible at switch 1 at tick 12; network inputs are numbered before injection
    _, delivered = script(make(chain()), {0: [(0, 2)], 1: [(6, 2)]})
    assert delivered == {0: (33, 2), 1: (43, 1)}


def test_credit_stall(script):
    # one VC of one packet: the next grant waits for the credits, link + switch + header + tail + credit later
    scenario = make(chain(), vcs=1, buffer_flits=10, link=8)
    started, delivered = script(scenario, {0: [(0, 1)] * 7})
    assert set(np.diff([tick for tick, _ in delivered.values()])) == {8 + 1 + 2 + 9 + 6}
    assert all(vc.credits == 10 and not vc.returning for vc in started.input_vcs)


def test_a_stall_is_no_deadlock(script):
    scenario = make(chain(), vcs=1, buffer_flits=10, link=8)
    started, _ = script(scenario, {0: [(0, 1)] * 7}, ticks=1)
    for tick in range(2, 200):
        started.advance(tick)
        assert not started.deadlocked()


def test_without_stall_packets_follow_each_other(script):
    _, delivered = script(make(chain()), {0: [(0, 1)] * 7})
    assert set(np.diff([tick for tick, _ in delivered.values()])) == {10}


@pytest.mark.parametrize(("shared", "last"), [(False, 48), (True, 53)])
def test_shared_input(script, shared, last):
    # C holds host 1's ejection over [12, 22); A waits for it in the input port that B too has to leave by
    scenario = make(chain(), shared_input=shared)
    _, delivered = script(scenario, {0: [(5, 1), (5, 2)], 2: [(0, 1)]})
    assert delivered == {2: (27, 1), 0: (37, 1), 3: (last, 2)}


def test_eligible_once_the_packet_before_has_left(script):
    # A leaves the one VC over [22, 32), so B behind it is eligible at 32 only: after C, at 28, from another host
    scenario = make(chain([1, 2, 1]), vcs=1)
    _, delivered = script(scenario, {0: [(5, 1), (5, 3)], 1: [(18, 3)], 2: [(22, 3)], 3: [(0, 1)]})
    assert delivered == {3: (27, 1), 0: (37, 1), 1: (45, 1), 2: (55, 1), 4: (65, 2)}


def test_a_tie_of_channels_is_drawn_and_one_of_vcs_goes_to_the_lowest(script):
    square = Topology.from_links("square", 4, [(0, 1), (0, 2), (1, 3), (2, 3)]).with_hosts(1)
    started, _ = script(make(square, select="adaptive"), {0: [(0, 3)]}, ticks=15)
    assert sorted(started.snapshot().channel_flits[:2].tolist()) == [0, 10]
    sent = {vc.index % 2 for vc in started.input_vcs if vc.credits < vc.size}
    assert sent == {0}
    started, _ = script(make(square, select="adaptive"), {0: [(100 * i, 3) for i in range(40)]}, ticks=5000)
    flits = started.snapshot().channel_flits[:2]
    assert flits.sum() == 400 and (flits > 80).all()


def test_deflection_by_hand(script):
    # K = 1: at 12 switch 1 holds A (one hop, so first) and B2, and 1->2 is busy up to 16: B2 goes back to 0
    topology = chain([1, 2, 1])
    scenario = make(topology, mode="deflection", hold_packets=1)
    started, delivered = script(scenario, {0: [(0, 3)], 1: [(0, 3)], 2: [(0, 3)]})
    assert delivered == {1: (27, 1), 0: (37, 2), 2: (47, 3)}
    scalars = started.scalars()
    assert (scalars[Scalar.DEFLECTIONS], scalars[Scalar.OCCUPANCY_MAX], scalars[Scalar.GRANTS]) == (
        1,
        2,
        9,
    )


def test_hosts_take_turns(script):
    # K = 1: the next host starts when the packet of the one before is granted
    scenario = make(ring(2, hosts=3), mode="deflection", hold_packets=1)
    started, delivered = script(scenario, {host: [(0, 3)] * 3 for host in range(3)})
    order = sorted(delivered, key=lambda identity: delivered[identity])
    assert [identity % 6 for identity in order] == [0, 1, 2] * 3
    assert started.scalars()[Scalar.OCCUPANCY_MAX] == 1


def test_adaptive_avoids_the_busy_channel(script):
    square = Topology.from_links("square", 4, [(0, 1), (0, 2), (1, 3), (2, 3)]).with_hosts([2, 1, 1, 2])
    packets = {0: [(0, 4)], 1: [(0, 5)]}
    started, delivered = script(make(square, select="adaptive"), packets)
    assert delivered == {0: (33, 2), 1: (33, 2)}
    assert started.snapshot().channel_flits[:2].tolist() == [10, 10]


def test_counters_count_what_came_before(script):
    started, _ = script(make(ring(2)), {0: [(3, 1)]}, ticks=3)
    # created and sent at 3, granted at 9 and 15, delivered at 30
    expected = {
        3: (0, 0, 0, 0),
        4: (1, 1, 0, 0),
        9: (1, 1, 0, 0),
        10: (1, 1, 1, 0),
        30: (1, 1, 2, 0),
        31: (1, 1, 2, 1),
    }
    names = [Scalar.CREATED_PACKETS, Scalar.SENT_PACKETS, Scalar.GRANTS, Scalar.DELIVERED_PACKETS]
    for tick, counts in expected.items():
        started.advance(tick)
        assert tuple(started.scalars()[names]) == counts, tick


SCENARIOS = {
    "any": lambda: make(chain(3), (1, 9), vcs=2, buffer_flits=9),
    "hop": lambda: make(imase(), policy=VcPolicy.HOP, vcs=3, buffer_flits=20),
    "hash": lambda: make(imase(), 3, "hash", VcPolicy.HOP, vcs=3, arrivals="onoff", header=0),
    "adaptive": lambda: make(
        imase(8, 2, 3), (1, 9), "adaptive", VcPolicy.HOP, vcs=4, arrivals="poisson", shared_input=True
    ),
    "deflection": lambda: make(imase(), mode="deflection", hold_packets=4),
    "single flits": lambda: make(imase(6, 2, 2), 1, mode="deflection", arrivals="poisson", header=5),
    "slotted": lambda: make(imase(), mode="deflection", slotted=True, hold_packets=4),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_wake_up_is_missed(name, monkeypatch):
    scenario = SCENARIOS[name]()
    expected = run(scenario, 500, 0.6)

    def every_tick(allocate_once):
        def allocate(self, now):
            allocate_once(self, now)
            self.schedule_at(now + 1)

        return allocate

    for kind in Allocator.__subclasses__():
        monkeypatch.setattr(kind, "allocate", every_tick(kind.allocate))
    for ours, theirs in zip(expected.log(), run(scenario, 500, 0.6).log(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_packets_are_those_of_the_rules():
    scenario = make(imase(), (1, 9), policy=VcPolicy.HOP, vcs=3)
    started = run(scenario, 1500, 0.1)
    rules = make_packets(scenario.traffic, scenario.source.flits, scenario.source.shares)
    hosts = scenario.topology.hosts
    received = np.zeros(hosts, np.int64)
    for identity in started.log().identity.tolist():
        sequence, host = divmod(identity, hosts)
        received[destination(rules, 1, host, sequence)] += length(rules, 1, host, sequence)
    np.testing.assert_array_equal(received, started.snapshot().delivered.destinations)


def test_silent_hosts_create_nothing():
    state = run(make(ring(4), target=[2, -1, -1, 1]), 400).snapshot()
    assert (state.created > 0).tolist() == [True, False, False, True]
    assert run(make(ring(4)), 400, load=0.0).scalars()[Scalar.CREATED_PACKETS] == 0


@pytest.mark.long
@pytest.mark.parametrize("hold", [3, 24])
@pytest.mark.parametrize("header", [5, 34])
@pytest.mark.parametrize("slotted", [False, True])
def test_deflection_occupancy(hold, header, slotted):
    scenario = make(imase(16, 3, 3), mode="deflection", hold_packets=hold, header=header, slotted=slotted)
    started = run(scenario, 800, load=0.9)  # the engine asserts the bound of every switch at every arrival
    scalars = started.scalars()
    headers = -(-header // 10)
    assert hold <= scalars[Scalar.OCCUPANCY_MAX] <= max(hold, 3 * headers + min(hold, 3 * headers)) + 3 + min(hold, 3)
    assert scalars[Scalar.DEFLECTIONS] > 0
    assert not started.deadlocked()
    if slotted:  # tail delivered at grant + 9 + 1 + 5
        assert set((started.log().delivered - 15) % 10) == {0}


def test_deadlock_is_found():
    started = run(make(ring(5), vcs=1, buffer_flits=10, allow_deadlock=True), 3000, load=0.9)
    assert started.deadlocked()
    before = started.scalars()[Scalar.GRANTS]
    started.advance(6000)
    assert started.scalars()[Scalar.GRANTS] == before
    assert started.deadlocked()


@pytest.mark.parametrize("seed", range(4))
def test_deadlock_is_for_ever(seed):
    # watched tick by tick: a full ring in which a last gap still moves is no deadlock
    started = reference(make(ring(4), vcs=1, buffer_flits=20), 0.9, seed)
    verdicts = []
    while len(verdicts) < 1000 and verdicts[-5:] != [True] * 5:
        started.advance(len(verdicts) + 1)
        verdicts.append(started.deadlocked())
    assert verdicts == sorted(verdicts)
    assert verdicts[-1]


def test_partial_deadlock_is_found():
    # hosts 4 and 5 talk to each other while the ring has stopped
    arcs = [(v, (v + 1) % 4) for v in range(4)] + [(0, 4), (4, 0), (0, 5), (5, 0), (4, 5), (5, 4)]
    scenario = make(
        Topology.from_arcs("lollipop", 6, arcs).with_hosts(1),
        target=[2, 3, 0, 1, 5, 4],
        vcs=1,
        buffer_flits=10,
    )
    started = run(scenario, 3000, load=0.9)
    assert started.deadlocked()
    before = started.snapshot()
    started.advance(4000)
    flits = started.snapshot().delivered.sources - before.delivered.sources
    assert (flits[:4] == 0).all()
    assert (flits[4:] > 400).all()


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="one length"):
        reference(make(ring(3), (1, 9), mode="deflection"), 0.1, 1)
    with pytest.raises(ValueError, match="log=True"):
        reference(make(ring(3)), 0.1, 1).log()
