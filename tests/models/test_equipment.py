# SPDX-License-Identifier: Apache-2.0
"""The bound over all networks of some equipment."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flitlab.fluid.bounds import equipment
from flitlab.fluid.problem import FluidError
from flitlab.models.registry import make
from flitlab.models.subnets import topology_in_subnets
from flitlab.models.topology.distances import distances
from flitlab.models.topology.equipment import (
    _certified,
    _Program,
    equipment_bound,
    host_aspl_bound,
    least_switches,
    most_hosts,
)
from flitlab.models.topology.graph import Topology


@pytest.mark.parametrize(
    ("switches", "ports", "split", "hosts", "hops"),
    [(32, 16, 1, 256, 1.6902), (20, 16, 1, 256, 1.8152), (13, 32, 1, 256, 0.9235), (29, 16, 4, 256, 0.9668),
     (400, 10, 1, 1024, 2.7683), (10, 5, 1, 20, 1.5771)],
)  # fmt: skip
def test_least_mean_hops(switches, ports, split, hosts, hops):
    """The values of an independent program; the last one is for the Petersen graph, which has 1.5789."""
    assert equipment_bound(switches, ports, hosts, split).mean_hops == pytest.approx(hops, abs=1e-4)


@pytest.mark.parametrize(
    ("hosts", "ports", "contest", "hops", "reached"),
    [(32, 4, 4.1935, 4.5064, 5.1492), (80, 6, 3.8608, 4.3544, 4.4763), (128, 24, 2.8583, 2.8677, 2.8784),
     (432, 12, 3.7912, 4.0464, 4.3339), (1024, 10, 4.3236, 4.7683, 4.7684)],
)  # fmt: skip
def test_order_and_radix(hosts, ports, contest, hops, reached):
    """Above the bound of the contest, as an independent program has it, and below the networks that were found."""
    bound, switches = host_aspl_bound(hosts, ports)
    assert bound >= hops - 1e-4
    assert contest < bound <= reached
    assert bound == pytest.approx(hops, rel=0.003)
    assert equipment_bound(switches, ports, hosts).mean_hops == pytest.approx(bound - 2)


def test_least_switches():
    assert [least_switches(*one, 1.0) for one in ((256, 16), (1024, 32), (4096, 64))] == [44, 88, 176]
    assert least_switches(16, 16, 1.0) == 1
    for hosts, ports in ((256, 16), (40, 6)):
        least = least_switches(hosts, ports, 0.7)
        reached = [equipment_bound(n, ports, hosts).throughput for n in range(least - 3, least + 3)]
        assert [theta >= 0.7 for theta in reached] == [False] * 3 + [True] * 3
    with pytest.raises(ValueError, match="cannot connect 9 hosts"):
        least_switches(9, 2, 0.5)
    with pytest.raises(ValueError, match="cannot be connected"):
        equipment_bound(4, 4, 11)
    assert most_hosts(4, 4) == 10


def random_network(rng):
    """A connected random network, hosts at each switch, and how many links make a port."""
    while True:
        n = int(rng.integers(2, 11))
        links = rng.integers(0, n, (int(rng.integers(n - 1, 3 * n)), 2))
        links = links[links[:, 0] != links[:, 1]]
        hosts = rng.integers(0, 6, n) * (rng.random(n) < rng.random())
        if len(links) and hosts.sum() > 1:
            topology = Topology.from_links("random", n, links)
            if topology.unreachable_pair() is None:
                return topology.with_hosts(hosts), int(rng.integers(1, 4))


@pytest.mark.long
def test_no_network_is_below_the_bound():
    rng, least = np.random.default_rng(5), np.inf
    for _ in range(500):
        topology, split = random_network(rng)
        hosts = topology.host_count
        ports = int((hosts - (-topology.out_degree // split)).max())
        bound = equipment_bound(topology.switches, ports, topology.hosts, split)
        hops = int(hosts @ distances(topology) @ hosts)
        assert hops >= bound.hops
        least = min(least, hops - bound.hops)
    assert least == 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_multipliers_prove_a_bound(data):
    """The solver is not trusted: whatever it returns, the value is at most the hops of a network."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    topology, split = random_network(rng)
    hosts = topology.host_count
    ports = int((hosts - (-topology.out_degree // split)).max())
    program = _Program(topology.switches, ports, topology.hosts, split)
    assume(program.pairs)
    number = st.floats(-2, 2)
    levels = [(*row, data.draw(number)) for row in program.rows()]
    links = [100 * data.draw(number) for _ in program.counts]
    bound = _certified(program, levels, links, 100 * data.draw(number))
    assert bound.hops <= int(hosts @ distances(topology) @ hosts)


def test_the_bound_is_exact_and_rounded_outwards():
    bound = equipment_bound(32, 16, 256)
    assert isinstance(bound.hops, Fraction)
    pairs = 256 * 255
    assert Fraction(bound.mean_hops) <= bound.hops / pairs
    assert Fraction(bound.throughput) >= Fraction((32 * 16 - 256) * 255) / bound.hops
    assert bound.throughput == pytest.approx(0.5916, abs=1e-4)


def test_the_row_of_a_network():
    network = make("topology", kind="rrg", n=32, ports=16, hosts_total=256, seed=1).build()
    bound = equipment(network)
    assert bound.upper == pytest.approx(0.5916, abs=1e-4)
    assert "32 switches of 16 ports: 1.6902 mean hops" in bound.note


def test_subnets_have_none():
    """Two meshes of 8 switches with 8 hosts each carry more uniform traffic than any network that joins all hosts."""
    mesh = make("topology", kind="hyperx", dims=[8], hosts_per_switch=8).build()
    with pytest.raises(FluidError, match="copies of a host in subnets"):
        equipment(topology_in_subnets(mesh, 2))
