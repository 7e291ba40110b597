# SPDX-License-Identifier: Apache-2.0
"""Throughput ceilings of the fabrics, against closed forms and what their papers claim."""

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceilings
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.topology.distances import aspl
from tests import long_after, long_rows_after
from tests.scenarios import asked_as_far_as_known


def build(kind, **parameters):
    return make("topology", kind=kind, **({"host_capacity": float("inf")} | parameters)).build()


def theta(topology, kind="mcf", traffic="all_to_all", method="exact", **keys):
    """(lower, upper) of a ceiling, with minimal routes where it asks for some."""
    demand = make("traffic", kind=traffic, **keys).build(topology)
    routes = None if kind == "mcf" else make("routing", kind="minimal").build(topology)
    method = method if kind == "mcf" else "auto"
    (row,) = ceilings(Instance(topology, demand, routes), [asked_as_far_as_known(kind, method=method, gap=0.01)])
    return row.lower, row.upper


def volumetric(topology):
    """All channels full, every message on a shortest path: the most of all-to-all between single hosts of switches."""
    return topology.channels / (topology.switches * aspl(topology))


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7])
def test_minimal_routing_of_polarfly(q):
    # the only shortest paths over the link of a quadric are its own pair's and 2 q - 1 of two hops; other links are in
    # a triangle and carry one pair less: so theta = (n - 1) / (2 q) = (q + 1) / 2
    topology = build("polarfly", q=q, hosts_per_switch=1)
    lower, upper = theta(topology, "split")
    assert lower == pytest.approx((q + 1) / 2)
    assert upper == pytest.approx((q + 1) / 2)


@pytest.mark.parametrize("q", long_after(2, [3, 4, 5]))
def test_polarfly_is_close_to_what_its_channels_can_carry(q):
    # SC 2022: full throughput of uniform traffic with (q + 1) / 2 hosts a switch and minimal routes
    topology = build("polarfly", q=q, hosts_per_switch=1)
    lower, upper = theta(topology)
    assert (q + 1) / 2 <= lower * (1 + 1e-9)
    assert upper <= volumetric(topology) * (1 + 1e-9)
    assert lower > 0.95 * volumetric(topology)


@pytest.mark.long
def test_ceilings_of_the_polarfly_of_the_paper():
    topology = build("polarfly", q=31, hosts_per_switch=1)
    assert theta(topology, "split") == pytest.approx((16, 16))
    lower, upper = theta(topology, method="approx")
    assert 16 < lower <= upper <= 1.01 * lower
    assert lower <= volumetric(topology)


@pytest.mark.long
def test_xpander_is_a_near_optimal_expander():
    # CoNEXT 2016: as good as random regular graphs, which nearly fill their channels
    xpander = build("xpander", degree=6, lift=6, seed=1)
    random = build("rrg", n=42, degree=6, seed=1)
    here, there = theta(xpander), theta(random)
    assert here[0] > 0.95 * there[1]
    assert here[0] > 0.9 * volumetric(xpander)


@pytest.mark.parametrize("a", [2, 3, 4])
def test_twisted_tori_fill_all_their_channels(a):
    # symmetric in both dimensions, so all channels can be full; a torus of these extents fills the long dimension only
    twisted, torus = (build("twisted_torus", dims=[2 * a, a], twist=twist) for twist in (a, 0))
    assert theta(twisted) == pytest.approx([volumetric(twisted)] * 2, rel=1e-6)
    n = 2 * a * a
    assert theta(torus) == pytest.approx([8 / (2 * a) * (n - 1) / n] * 2, rel=1e-6)


@pytest.mark.parametrize(("leaves", "spines", "per_leaf", "multiplicity"), [(4, 2, 4, 1), (3, 1, 5, 3), (5, 4, 4, 1)])
def test_leaf_spine_throughput(leaves, spines, per_leaf, multiplicity):
    parameters = {"leaves": leaves, "spines": spines, "hosts_per_leaf": per_leaf, "multiplicity": multiplicity}
    topology = build("leaf_spine", **parameters)
    up, hosts = spines * multiplicity, leaves * per_leaf
    expected = up * (hosts - 1) / (per_leaf * (hosts - per_leaf))
    for kind in ("mcf", "split"):
        assert theta(topology, kind) == pytest.approx([expected] * 2, rel=1e-6)
    # hosts that send to the next leaf
    assert theta(topology, traffic="shift", by=per_leaf) == pytest.approx([up / per_leaf] * 2, rel=1e-6)
    if up == per_leaf:
        limited = build("leaf_spine", **parameters, host_capacity=1)
        assert theta(limited) == pytest.approx([1, 1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_planes_add_up(count):
    of = {"kind": "leaf_spine", "leaves": 4, "spines": 1, "multiplicity": 2, "hosts_per_leaf": 4}
    one = 2 * 15 / (4 * 12)
    planes = build("planes", count=count, of=of)
    for kind in ("mcf", "mcf_paths", "split"):
        assert theta(planes, kind) == pytest.approx([count * one] * 2, rel=1e-6)
    split = build("planes", count=count, of=of, capacity=1 / count, host_capacity=1)
    assert theta(split) == pytest.approx([one] * 2, rel=1e-6)


def test_dragonfly_plus_serves_uniform_traffic_at_full_rate():
    # HiPINEB 2017: leaves, spines, hosts and global links of equal number
    topology = build("dragonfly_plus", spines=2, host_capacity=1)
    assert theta(topology, "split")[0] == pytest.approx(1)


@pytest.mark.parametrize(("a", "x"), long_rows_after(2, [(1, 3), (2, 2), (2, 3)]))
def test_hammingmesh_all_to_all_share(a, x):
    # SC 2022: about 1 / (2 a) of the four ports. Whatever goes to another column of boards takes one of the 2 / a
    # channels that an accelerator has to the switches of its row
    topology = build("hammingmesh", a=a, b=a, x=x, y=x)
    hosts = topology.hosts
    most = 2 / a * (hosts - 1) / (hosts - hosts / x)
    lower, upper = theta(topology)
    assert upper <= most * (1 + 1e-6)
    assert lower > 0.9 * most


def test_rails_relay_between_servers_of_a_rail_only_network():
    # without spines, traffic to another rail goes through a server: to the right GPU first, or at the far end
    topology = build("rail", servers=4, gpus=4, nvlink=100)
    pairs = topology.hosts * (topology.hosts - 1)
    across = topology.hosts * (topology.hosts - 4)  # pairs of different servers, each over one rail
    assert theta(topology) == pytest.approx([topology.hosts / across * (pairs / topology.hosts)] * 2, rel=1e-6)


def test_dring_beats_an_oversubscribed_leaf_spine_of_equal_equipment():
    # HotNets 2020, section 3: a flat network has more uplinks for each host. 12 switches of 8 ports and 32 hosts
    spine = build("leaf_spine", leaves=8, spines=4, hosts_per_leaf=4, host_capacity=1)
    flat = make("topology", kind="dring", supernodes=6, switches=12, ports=12).build()
    assert flat.out_degree.max() == 8
    hosts = np.full(12, 2)
    hosts[:8] = 3
    flat = flat.with_hosts(hosts, float("inf"))
    assert flat.hosts == spine.hosts
    assert theta(flat)[0] > theta(build("leaf_spine", leaves=8, spines=4, hosts_per_leaf=4))[1]
