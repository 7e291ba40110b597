# SPDX-License-Identifier: Apache-2.0
"""The cross-check between a run's flow counts and a certificate."""

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import Certificate, switch_distances
from flitlab.fluid.crosscheck import FlowCount, slack
from flitlab.models.pairs import PairCounts
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import all_to_all, cycle, scenario


def counts(topology, pairs):
    """Flow counts of host pairs (one host per switch)."""
    pairs = np.asarray(pairs, np.int64)
    return FlowCount(PairCounts.of_table(len(pairs), pairs), pairs.sum(axis=1), pairs.sum(axis=0))


def test_distances_against_networkx():
    nx = pytest.importorskip("networkx")
    random = np.random.default_rng(5)
    arcs = [(i, (i + 1) % 12) for i in range(12)]
    arcs += [tuple(random.choice(12, 2, replace=False)) for _ in range(30)]
    topology = Topology.from_arcs("random", 12, arcs)
    z = random.uniform(0, 1, topology.channels) * (random.random(topology.channels) < 0.7)
    graph = nx.DiGraph()
    for a in range(topology.channels):
        u, v = int(topology.src[a]), int(topology.dst[a])
        graph.add_edge(u, v, weight=min(z[a], graph.get_edge_data(u, v, {"weight": np.inf})["weight"]))
    expected = dict(nx.all_pairs_dijkstra_path_length(graph))
    found = switch_distances(topology, z)
    for s in range(12):
        for t in range(12):
            assert found[s, t] == pytest.approx(expected[s][t], abs=1e-12)


def test_a_run_exactly_at_the_ceiling_has_no_slack():
    """A directed ring at theta: every channel is busy on every tick."""
    n, ticks = 5, 1000
    ring = Topology.from_arcs("ring", n, [(i, (i + 1) % n) for i in range(n)]).with_hosts(1)
    nothing = counts(ring, np.zeros((n, n)))
    z = Certificate.on_network(ring, np.ones(n))
    neighbours = np.roll(np.eye(n, dtype=int), 1, axis=1) * ticks
    assert slack(ring, z, ticks, counts(ring, neighbours), nothing) == pytest.approx(0, abs=1e-12)
    half = slack(ring, z, ticks, counts(ring, neighbours // 2), nothing)
    assert half == pytest.approx(0.5)
    assert slack(ring, z, ticks, counts(ring, neighbours + 1), nothing) < -1e-9


def test_packets_present_at_the_start_count_on_the_allowed_side():
    ring = Topology.from_arcs("ring", 4, [(i, (i + 1) % 4) for i in range(4)]).with_hosts(1)
    z = Certificate.on_network(ring, np.ones(4))
    delivered = np.roll(np.eye(4, dtype=int), 1, axis=1) * 11
    present = np.roll(np.eye(4, dtype=int), 1, axis=1)
    assert slack(ring, z, 10, counts(ring, delivered), counts(ring, 0 * present)) < 0
    assert slack(ring, z, 10, counts(ring, delivered), counts(ring, present)) == pytest.approx(0, abs=1e-12)


def test_host_lengths_are_counted_per_host():
    topology = cycle(4).with_hosts(1, 1.0)
    z = Certificate(np.zeros(8), np.array([1.0, 0, 0, 0]), np.zeros(4))
    sent = np.zeros((4, 4), int)
    sent[0, 2] = 30
    nothing = counts(topology, np.zeros((4, 4)))
    assert slack(topology, z, 40, counts(topology, sent), nothing) == pytest.approx(0.25)


@pytest.mark.parametrize("hosts", [2, 4])
def test_nothing_is_far_from_itself_where_there_are_no_channels(hosts):
    """One switch: its hosts' flits travel no length, before the window or in it."""
    one = Topology.from_links("one", 1, []).with_hosts(hosts)
    z = Certificate.on_network(one, np.zeros(0))
    assert switch_distances(one, z.network).tolist() == [[0.0]]
    some = FlowCount(PairCounts.of_table(1, np.array([7])), np.full(hosts, 7), np.full(hosts, 7))
    for present in (FlowCount(PairCounts.none(1), 0 * some.sources, 0 * some.sources), some):
        assert slack(one, z, 10, some, present) == 0


def test_every_certificate_of_a_ceiling_can_be_checked():
    topology = cycle(6).with_hosts(1, 1.0)
    case = scenario(topology, all_to_all(topology))
    specs = [ceiling_spec(kind) for kind in ("mcf", "total", "bounds")]
    quiet = counts(topology, np.zeros((6, 6)))
    for row in ceilings(case, specs, [0.5, 1.0, 1.5]):
        if row.certificate is not None:
            assert slack(topology, row.certificate, 100, quiet, quiet) >= 0
