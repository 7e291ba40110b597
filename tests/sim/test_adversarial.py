# SPDX-License-Identifier: Apache-2.0
"""Adversarial traffic: its closed forms, and that no shift is worse."""

from itertools import product
from math import prod

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.models.registry import SpecError, make
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.cli import main
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.fluid.fluid_cases import scenario as fluid_scenario
from tests.scenarios import build, scenario


def adversarial(topology: Topology) -> Traffic:
    return make("traffic", kind="adversarial").build(topology)


def split(traffic: Traffic) -> float:
    """The throughput of the network channels under minimal routing."""
    topology = traffic.topology
    routing = "dragonfly" if topology.kind == "dragonfly" else "minimal"
    routes = make("routing", kind=routing).build(topology)
    unlimited = topology.with_hosts(topology.host_count, np.inf)
    (row,) = ceilings(fluid_scenario(unlimited, traffic, routes), [ceiling_spec("split")])
    return row.lower


def permuted(topology: Topology, target: np.ndarray) -> Traffic:
    """The k-th host of switch v sends to the k-th of ``target[v]``."""
    each = topology.hosts // topology.switches
    return fixed_traffic("permuted", topology, (target[:, None] * each + np.arange(each)).ravel())


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize(
    ("parameters", "along", "by", "load"),
    [
        ({"kind": "dragonfly", "a": 4, "h": 2}, "groups", 1, 4),
        ({"kind": "dragonfly", "a": 1, "h": 3}, "groups", 1, 1),
        ({"kind": "dragonfly", "a": 3, "h": 2, "groups": 2}, "groups", 1, 0.5),
        ({"kind": "torus", "dims": [8]}, "dimension 0", 3, 3),
        ({"kind": "torus", "dims": [9]}, "dimension 0", 4, 4),
        ({"kind": "torus", "dims": [8, 4]}, "dimension 0", 3, 3),
        ({"kind": "torus", "dims": [6, 6]}, "dimension 1", 2, 2),
        ({"kind": "hyperx", "dims": [3, 4]}, "dimension 1", 1, 1),
        ({"kind": "hyperx", "dims": [4, 4], "multiplicity": [1, 2]}, "dimension 0", 1, 1),
        ({"kind": "hyperx", "dims": [4, 1], "multiplicity": 2, "capacity": 2}, "dimension 0", 1, 0.25),
        ({"kind": "flattened_butterfly", "k": 3, "n": 3}, "dimension 1", 1, 1),
        *(({"kind": "slim_fly", "q": q}, "columns, two hops on", 1, 2) for q in (3, 4, 5, 7)),
    ],
)
def test_closed_forms(parameters, along, by, load, hosts):
    topology = build(hosts=hosts, **parameters)
    traffic = adversarial(topology)
    assert traffic.notes == {"along": along, "by": by, "load": pytest.approx(load * hosts), "silent_hosts": 0}
    assert (traffic.rate == 1).all() and (np.bincount(traffic.fixed) == 1).all()
    assert split(traffic) == pytest.approx(1 / (load * hosts))


def test_a_dragonfly_shifts_by_the_hosts_of_a_group():
    topology = make("topology", kind="dragonfly", a=4, p=2, h=2).build()
    traffic = adversarial(topology)
    assert traffic.content_hash == make("traffic", kind="shift", by=4 * 2).build(topology).content_hash
    assert split(traffic) == pytest.approx(0.125)


@pytest.mark.parametrize("groups", [2, 4, 5, 6, 9])
@pytest.mark.parametrize("links", [0, 2])
def test_no_other_group_is_worse(groups, links):
    """Fewer groups have several links between some, and failures take some of them."""
    topology = build("dragonfly", a=4, h=2, groups=groups)
    inside = topology.src // 4 == topology.dst // 4
    failed = np.flatnonzero(~inside & (topology.src < topology.dst))[: links if groups < 6 else 0]
    keep = ~np.isin(np.arange(topology.channels), [*failed, *topology.reverse[failed]])
    arcs = np.column_stack([topology.src, topology.dst])[keep]
    hurt = Topology.from_arcs("dragonfly", topology.switches, arcs, notes=topology.notes).with_hosts(1)
    thetas = [split(make("traffic", kind="shift", by=4 * i).build(hurt)) for i in range(1, groups)]
    notes = adversarial(hurt).notes
    assert 1 / notes["load"] == pytest.approx(min(thetas))
    assert notes["by"] == 1 + next(i for i, theta in enumerate(thetas) if theta <= min(thetas) * (1 + 1e-9))


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "torus", "dims": [7]},
        {"kind": "torus", "dims": [4, 5]},
        {"kind": "torus", "dims": [2, 3, 4]},
        {"kind": "hyperx", "dims": [3, 4]},
        {"kind": "hyperx", "dims": [3, 2, 3]},
        {"kind": "hyperx", "dims": [3, 4], "multiplicity": [3, 2]},
    ],
    ids=str,
)
def test_no_shift_of_any_coordinates_is_worse(parameters):
    topology, dims = build(**parameters), parameters["dims"]
    place = np.arange(prod(dims)).reshape(dims)
    by_all = [by for by in product(*map(range, dims)) if any(by)]
    axes = tuple(range(len(dims)))
    thetas = [split(permuted(topology, np.roll(place, [-i for i in by], axes).ravel())) for by in by_all]
    assert split(adversarial(topology)) == pytest.approx(min(thetas))


@pytest.mark.parametrize(
    ("parameters", "least"),
    [
        *(({"kind": "slim_fly", "q": q}, 0.5) for q in (4, 5, 7)),
        ({"kind": "hyperx", "dims": [4, 5]}, 1),
        ({"kind": "hyperx", "dims": [4, 4], "multiplicity": [3, 2]}, 2),
    ],
)
def test_no_permutation_is_worse_where_paths_have_two_hops(parameters, least):
    """Of all shifts of the switches' numbers and 50 random permutations."""
    topology = build(**parameters)
    n, rng = topology.switches, np.random.default_rng(1)
    shifts = [np.roll(np.arange(n), -by) for by in range(1, n)]
    thetas = [split(permuted(topology, target)) for target in [*shifts, *(rng.permutation(n) for _ in range(50))]]
    assert min(thetas) >= least * (1 - 1e-9)
    assert split(adversarial(topology)) == pytest.approx(least)


def test_failed_links_count():
    """With these failures another shift is the worst one, in the first coordinate and by more than 1."""
    failures = {"links": 10, "seed": 18}
    topology = make("topology", kind="hyperx", dims=[4, 4], hosts_per_switch=2, failures=failures).build()
    place = np.arange(16).reshape(4, 4)
    order = [(by, axis) for by in (1, 2) for axis in (1, 0)]
    thetas = [split(permuted(topology, np.roll(place, -by, axis).ravel())) for by, axis in order]
    by, axis = order[int(np.argmin(thetas))]
    assert (by, axis) == (2, 0)
    expected = {"along": f"dimension {axis}", "by": by, "load": pytest.approx(1 / min(thetas)), "silent_hosts": 0}
    assert adversarial(topology).notes == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "rrg", "n": 8, "degree": 3}, "supports the topologies dragonfly, slim_fly, hyperx, .*, not rrg"),
        ({"kind": "mesh", "dims": [4, 4]}, "supports the topologies dragonfly, slim_fly, hyperx, .*, not mesh"),
        ({"kind": "fat_tree", "k": 4}, "supports the topologies dragonfly, slim_fly, hyperx, .*, not fat_tree"),
        ({"kind": "torus", "dims": [4], "hosts": [1, 2, 1, 1]}, "same number of hosts at every switch, not 1 to 2"),
        ({"kind": "torus", "dims": [4, 4], "failures": {"links": 1}}, "all switches of the torus"),
        ({"kind": "slim_fly", "q": 3, "failures": {"switches": 1}}, "all switches of the slim_fly"),
        ({"kind": "dragonfly", "a": 4, "failures": {"switches": 4}}, "all switches of the dragonfly"),
        ({"kind": "dragonfly", "a": 4, "failures": {"links": 20}}, "no path over one global channel leads from"),
        ({"kind": "torus", "dims": [1], "hosts_per_switch": 4}, "hosts at two switches"),
        ({"kind": "torus", "dims": [4], "hosts_per_switch": 0}, "two hosts or more"),
    ],
)
def test_what_it_does_not_serve(parameters, message):
    topology = make("topology", **parameters).build()
    with pytest.raises(SpecError, match=message):
        adversarial(topology)


def test_minimal_routing_saturates_where_it_says_and_valiant_far_above():
    topology = build("dragonfly", hosts=2, a=4, p=2, h=2)
    accepted = {}
    for routing in ({"kind": "dragonfly"}, {"kind": "valiant", "legs": "dragonfly"}):
        case = scenario(
            topology, routing=routing, traffic={"kind": "adversarial"}, source=Source(flits=(1,)), vcs=8,
            buffer_flits=64, header=1, switch=1, link=1, injection=1, ejection=1, credit=1,
        )  # fmt: skip
        run = start("compiled", case, 0.4, 3)
        run.advance(2000)
        first = run.scalars()
        run.advance(6000)
        flits = (run.scalars() - first)[Scalar.DELIVERED_FLITS]
        accepted[routing["kind"]] = flits / (4000 * topology.hosts)
    assert accepted["dragonfly"] == pytest.approx(1 / case.traffic.notes["load"], rel=0.01)
    assert accepted["valiant"] > 0.38


@pytest.mark.long
def test_check_says_which_shift_it_is(tmp_path, capsys):
    path = tmp_path / "worst.yaml"
    path.write_text(
        "topology: {kind: dragonfly, a: 4, p: 2, h: 2}\nrouting: {kind: dragonfly}\n"
        "traffic: {kind: adversarial, packet_flits: 1}\nloads: [0.1]\n"
    )
    assert main(["check", str(path)]) == 0
    assert "  traffic      adversarial: silent_hosts 0, along groups, by 1, load 8.000\n" in capsys.readouterr().out
