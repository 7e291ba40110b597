# SPDX-License-Identifier: Apache-2.0
"""Bounds of collectives: known values, what is possible beside them, and no program in less time than is proved.

Also as the metric ``collectives`` without a simulation.
"""

import json
from fractions import Fraction
from math import lcm

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.collective.bounds import Collective, CollectiveBounds, bounds
from flitlab.fluid.collective.cuts import CollectiveCut
from flitlab.fluid.collective.latency import Latency
from flitlab.fluid.collective.network import CollectiveNetwork
from flitlab.fluid.problem import FluidError
from flitlab.models.application.collectives.choose import COLLECTIVES
from flitlab.models.collective.schedule import KINDS
from flitlab.models.registry import make, names
from flitlab.models.subnets import topology_in_subnets
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from flitlab.sim.config.pipeline import read
from tests import long_after
from tests.fluid.fluid_cases import complete, cycle, scenario, table
from tests.fluid.test_collective_saved import drawn
from tests.scenarios import build
from tests.sim.test_collective_times import made, ticks

FLIT = 32


def star(*capacity: float) -> Topology:
    """A switch without ranks between switches that have one each, with links of these capacities."""
    n = len(capacity)
    links = [(v, n) for v in range(n)]
    return Topology.from_links("star", n + 1, links, capacity=capacity).with_hosts([1] * n + [0])


def ends(found: CollectiveBounds) -> tuple[Fraction, Fraction | None]:
    return found.lower.time, found.upper and found.upper[0]


@pytest.mark.parametrize(
    ("topology", "ranks", "lower", "upper"),
    [
        (complete(5), "switches", "2/5", "2/5"), (cycle(6), "switches", "5/6", "5/6"),
        (build("torus", dims=[4, 4]), "switches", "15/32", "15/32"),
        (build("kautz", degree=3, diameter=2), "switches", "11/18", "11/18"),
        (build("mesh", dims=[4, 4]), "switches", "5/8", "5/8"),
        (star(1, 1, 1, 1), "switches", "3/2", "3/2"), (star(1, 4, 4, 4), "switches", "1", "3/2"),
        (build("hyperx", dims=[1]).with_hosts(4), "hosts", "3/2", "3/2"),
        (build("torus", dims=[4, 4]).with_hosts(2), "hosts", "31/16", "31/16"),
    ],
)  # fmt: skip
def test_all_reduce(topology, ranks, lower, upper):
    assert ends(bounds(topology, Collective("all_reduce", ranks))) == (Fraction(lower), Fraction(upper))


def test_twice_the_all_gather_is_no_bound():
    four = star(1, 4, 4, 4, 4)
    assert 2 * bounds(four, Collective("all_gather")).lower.time / 5 == Fraction(8, 5)
    assert bounds(four, Collective("all_reduce")).lower.time == 1


@pytest.mark.parametrize(
    ("multicast", "reduce", "expected"), [(False, False, "3/2"), (True, False, "3/2"), (True, True, "1")]
)
def test_switches_that_copy_and_reduce_leave_the_cut(multicast, reduce, expected):
    one = build("hyperx", dims=[1]).with_hosts(4)
    found = bounds(one, Collective("all_reduce", "hosts", multicast=multicast, reduce=reduce))
    assert found.lower.time == Fraction(expected)
    assert bounds(one, Collective("all_gather", "hosts", multicast=multicast)).lower.time == 3


@pytest.mark.parametrize(
    ("kind", "parameters", "low", "high"),
    [("torus", {"dims": [8, 8]}, 64, 64), ("kautz", {"degree": 4, "diameter": 3}, 54.600, 54.605),
     ("rrg", {"n": 64, "degree": 6, "seed": 1}, 25.917, 25.919)],
)  # fmt: skip
def test_all_to_all(kind, parameters, low, high):
    found = bounds(build(kind, **parameters), Collective("all_to_all"))
    assert float(found.lower.time) == pytest.approx(low, abs=6e-4)
    assert float(found.upper[0]) == pytest.approx(high, abs=6e-4)


def test_all_to_all_of_unequal_amounts():
    """On a directed ring of three: rank v sends a_v to both others, over one channel and over two."""
    ring = Topology.from_arcs("ring", 3, [(0, 1), (1, 2), (2, 0)])
    found = bounds(ring, Collective("all_to_all", amounts=(5, 1, 2)))
    assert float(found.lower.time) == pytest.approx(2 * 5 + 2)
    assert float(found.upper[0]) == pytest.approx(2 * 5 + 2, rel=1e-3)


def test_amounts_count_for_what_moves_units():
    path = Topology.from_links("path", 3, [(0, 1), (1, 2)], capacity=[1, 2])
    times = {
        kind: bounds(path, Collective(kind, root=1, amounts=(3, 0, 1))).lower.time
        for kind in KINDS
        if kind != "all_to_all"
    }
    assert times == {
        "all_gather": 3, "reduce_scatter": 3, "all_reduce": Fraction(4, 3) / Fraction(3, 2) * Fraction(9, 8),
        "broadcast": 1, "reduce": 1, "scatter": 3, "gather": 3,
    }  # fmt: skip


def test_what_is_possible_is_never_below_what_is_proved():
    for seed in range(30):
        topology = drawn(seed)
        for kind in KINDS:
            for ranks in ("switches", "hosts"):
                lower, upper = ends(bounds(topology, Collective(kind, ranks)))
                assert upper is None or lower <= upper, (seed, kind, ranks)


def test_links_alike_both_ways_between_ranks_leave_no_interval():
    for seed in range(40):
        draw = np.random.default_rng(seed)
        n = int(draw.integers(2, 12))
        tree = [(v, int(draw.integers(0, v))) for v in range(1, n)]
        links = np.concatenate([tree, draw.integers(0, n, (int(draw.integers(0, 2 * n)), 2))])
        graph = Topology.from_links("drawn", n, links, capacity=draw.choice([0.5, 1, 2, 3], len(links)))
        lower, upper = ends(bounds(graph, Collective("all_reduce")))
        assert lower == upper
        assert lower >= bounds(graph, Collective("broadcast")).lower.time


def test_nothing_is_said_to_be_possible_without_a_proof():
    """Three ranks and a switch that more enters than leaves, which may not be split off."""
    arcs = [(0, 3), (1, 3), (2, 3), (3, 0), (3, 1), (3, 2)]
    lopsided = Topology.from_arcs("star", 4, arcs, capacity=[2, 2, 2, 1, 1, 1]).with_hosts([1, 1, 1, 0])
    known = {kind: bounds(lopsided, Collective(kind)).upper for kind in KINDS}
    assert {kind for kind, upper in known.items() if upper} == {"scatter", "gather", "all_to_all"}


def test_what_is_asked_for_wrongly_is_refused():
    for wrong, message in (
        (Collective("scan"), "no bounds are known"),
        (Collective("reduce", root=4), "one of the 4 ranks"),
    ):
        with pytest.raises(FluidError, match=message):
            bounds(cycle(4), wrong)


def test_where_a_collective_has_no_bound_its_row_is_omitted_and_others_remain():
    """A ring that leads to switch 3, which leads nowhere; capacities that are no fractions; hosts with two channels."""
    one_way = Topology.from_arcs("lasso", 4, [(0, 1), (1, 2), (2, 0), (2, 3)]).with_hosts(1)
    odd = Topology.from_links("ring", 3, [(0, 1), (1, 2), (2, 0)], capacity=np.pi).with_hosts(1)
    copies = topology_in_subnets(cycle(4), 2)

    def rows_of(topology):
        instance = scenario(topology, table(topology, np.eye(topology.hosts)[[1, *range(1, topology.hosts)]]))
        rows = ceilings(instance, [ceiling_spec("collective", of=["all_gather", "broadcast"])])
        return {row.ceiling: row for row in rows}

    found = rows_of(one_way)
    assert found["collective:broadcast"].lower == found["collective:broadcast"].upper == 1
    for row in (found["collective"], found["collective:all_gather"]):
        assert row.method == "omitted" and "is cut off from others" in row.note
    for topology, reason in ((odd, "is not a fraction"), (copies, "several subnets")):
        assert all(row.method == "omitted" and reason in row.note for row in rows_of(topology).values())


CONFIG = """
experiment: application
topology: {topology}
routing: {{kind: minimal}}
switching: {{mode: {mode}}}
application: {{kind: barrier}}
"""

NETWORKS = [
    "{kind: hyperx, dims: [1], hosts_per_switch: 4}", "{kind: mesh, dims: [2, 3]}",
    "{kind: torus, dims: [3], hosts_per_switch: 2}", "{kind: kautz, degree: 2, diameter: 2}",
]  # fmt: skip


TIMED = "flow, flit_ns: 6.4, switch_ns: 20, link_ns: 40, header_ns: 13"
MODES = {
    TIMED: (FLIT, 1), TIMED.replace("flow", "vct"): (FLIT, 1), TIMED.replace("flow", "wormhole"): (FLIT, 1),
    "datagram, packet_bytes: 1000, nic_mbps: 1000, link_us: 5, queue_packets: 10000": (1000, 1000),
}  # fmt: skip
"""Disciplines, with the bytes of a flit and the ticks that it takes."""


@pytest.mark.parametrize("mode", long_after(1, list(MODES)))
@pytest.mark.parametrize("network", NETWORKS)
def test_no_program_takes_less(network, mode):
    (case,) = read("c.yaml", text=CONFIG.format(topology=network, mode=mode)).cases
    scenario, p = case.scenario, case.topology.hosts
    size, flit = MODES[mode]
    latency = Latency.of(case.topology, scenario.switching, flit)
    for kind in KINDS:
        found = bounds(case.topology, Collective(kind, "hosts"))
        for flits in (lcm(p, 8), 20 * lcm(p, 8)):
            unit = flits // p if kind in ("reduce_scatter", "scatter") else flits
            bound = found.at(unit * flit, latency)
            for algorithm in COLLECTIVES[kind].algorithms:
                took = ticks(scenario, made(kind, algorithm, p, flits * size), rendezvous=1 << 40)
                assert took >= bound.time - Fraction(1, 512), (kind, algorithm, flits)


def test_two_ranks_exchange_in_just_the_time_that_is_proved():
    for network in ("{kind: hyperx, dims: [2]}", "{kind: mesh, dims: [4], hosts: [1, 0, 0, 1]}"):
        (case,) = read("c.yaml", text=CONFIG.format(topology=network, mode=TIMED)).cases
        bound = bounds(case.topology, Collective("all_gather", "hosts")).at(
            100, Latency.of(case.topology, case.scenario.switching)
        )
        assert bound.by == "cut with latency"
        took = ticks(case.scenario, made("all_gather", "ring", 2, 100 * FLIT), rendezvous=1 << 40)
        assert took == pytest.approx(float(bound.time), abs=0.01)


FLITS = "flit_ns: 1, header_ticks: 2, switch_ticks: 3, link_ticks: 5"
FLIT_MODES = [f"vct, {FLITS}, buffer_flits: 256", f"wormhole, {FLITS}, buffer_flits: 256", f"ideal, {FLITS}"]
PAIR = "{{kind: mesh, dims: [2], host_capacity: {}, capacity: {}}}"


@pytest.mark.parametrize("mode", FLIT_MODES)
@pytest.mark.parametrize(("capacity", "ticks_of_flit"), [(1 / 2, 2), (1 / 4, 4), (1 / 64, 64), (1 / 256, 256)])
def test_a_slow_channel_between_fast_hosts_delays_only_the_head_beyond_it(mode, capacity, ticks_of_flit, engine_name):
    """The head is on the channel from 1 + 2 to the end of its flits, and each then takes switch and link.

    At the far switch 20 flits are slower than 2 ticks of header, so that the last one only takes switch and ejection.
    """
    (case,) = read("c.yaml", text=CONFIG.format(topology=PAIR.format(1, capacity), mode=mode)).cases
    on_channel = 20 * ticks_of_flit
    expected = (1 + 2) + on_channel - 1 + (3 + 5) + (3 + 1)
    scenario = case.scenario
    latency = Latency.of(scenario.topology, scenario.switching)
    bound = bounds(scenario.topology, Collective("gather", "hosts")).at(20, latency)
    assert (bound.by, bound.time) == ("cut with latency", expected)
    assert ticks(scenario, made("gather", "binomial", 2, 20 * FLIT), engine_name) == expected


@pytest.mark.parametrize(("mode", "wait"), [(FLIT_MODES[0], 7), (FLIT_MODES[1], 2), (FLIT_MODES[2], 7)])
def test_the_time_of_a_flit_on_a_slow_host_channel_is_counted_once(mode, wait, engine_name):
    """Two flits of 8 ticks on the channels of hosts, of 1 between: the head is on the last channel after two headers.

    Packets of vct and ideal wait until no flit starves the faster channel: 8 - 1 ticks in place of a header of 2.
    """
    (case,) = read("c.yaml", text=CONFIG.format(topology=PAIR.format(0.125, 1), mode=mode)).cases
    scenario = case.scenario
    injection, between, ejection = 1 + 8 - 1, 3 + 5, 2 * 8 - 1 + 3 + 1
    found = bounds(scenario.topology, Collective("broadcast", "hosts"))
    bound = found.at(2, Latency.of(scenario.topology, scenario.switching))
    assert (bound.by, bound.time) == ("cut with latency", injection + 2 + between + 2 + ejection)
    took = ticks(scenario, made("broadcast", "binomial", 2, 2 * FLIT), engine_name)
    assert took == injection + wait + between + 2 + ejection


@pytest.mark.parametrize("mode", FLIT_MODES)
@pytest.mark.parametrize(("host", "capacity", "header"), [(1, 1, 2), (1, 1 / 2, 0), (1 / 2, 1, 2)])
def test_the_header_beyond_a_cut_counts_where_hosts_are_not_faster_than_it(mode, host, capacity, header):
    """The cut between two switches, in ticks of a flit on the faster of the channels."""
    (case,) = read("c.yaml", text=CONFIG.format(topology=PAIR.format(host, capacity), mode=mode)).cases
    topology = case.scenario.topology
    network = CollectiveNetwork.of(topology, "hosts")
    cut = CollectiveCut.between_vertices(network, np.array([True, False]), "inside")
    on_host = 1 if host == 1 else 2
    before, border, beyond = 1 + (on_host - 1) + 2, 3 + 5, 3 + 1 + (on_host - 1)
    latency = Latency.of(topology, case.scenario.switching)
    assert latency.cut_latency(network, cut) == before - 1 + border + header + beyond


SPEEDS = [
    "{kind: mesh, dims: [2], host_capacity: 1, capacity: 0.25}", "{kind: mesh, dims: [3], host_capacity: 0.125}",
    "{kind: mesh, dims: [2], hosts_per_switch: 2, host_capacity: 4}",
    "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2, host_capacity: 2}",
    "{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2, host_capacity: 0.5}",
    "{kind: mesh, dims: [3]}\ncapacity_of: {links: [[0, 1]], factor: 0.125}",
]  # fmt: skip


@pytest.mark.parametrize("mode", long_after(1, FLIT_MODES))
@pytest.mark.parametrize("network", SPEEDS)
def test_no_program_takes_less_over_channels_of_several_speeds(network, mode, engine_name):
    (case,) = read("c.yaml", text=CONFIG.format(topology=network, mode=mode)).cases
    scenario, p = case.scenario, case.topology.hosts
    latency = Latency.of(scenario.topology, scenario.switching)
    for kind in KINDS:
        found = bounds(scenario.topology, Collective(kind, "hosts"))
        for unit in (1, 2, 70):
            size = unit * p if kind in ("reduce_scatter", "scatter") else unit
            least = found.at(unit, latency).time
            for algorithm in COLLECTIVES[kind].algorithms:
                took = ticks(scenario, made(kind, algorithm, p, size * FLIT), engine_name, rendezvous=1 << 40)
                assert took >= least - Fraction(1, 512), (kind, algorithm, unit)


def test_latency_binds_what_is_small_and_parts_what_is_large():
    topology = build("torus", dims=[4, 4]).with_hosts(1)
    (case,) = read("c.yaml", text=CONFIG.format(topology="{kind: torus, dims: [4, 4]}", mode=TIMED)).cases
    found = bounds(topology, Collective("all_reduce", "hosts"))
    latency = Latency.of(topology, case.scenario.switching)
    model = case.scenario.switching
    small, large = found.at(Fraction(1, 1000), latency), found.at(10**6, latency)
    assert (small.by, large.by) == ("latency", "parts")
    assert small.time == model.zero_load_latency(topology, 4, 1)
    assert large.time == Fraction(15, 8) * 10**6


@pytest.mark.parametrize("kind", ["broadcast", "scatter", "reduce", "gather"])
def test_latency_is_that_of_the_rank_farthest_from_a_root(kind):
    """On a ring of eight: four channels away, where injection, ejection and a switch or a link take 1, 1, 3 and 5."""
    timed = "flow, flit_ns: 1, header_ticks: 2, switch_ticks: 3, link_ticks: 5"
    (case,) = read("c.yaml", text=CONFIG.format(topology="{kind: torus, dims: [8]}", mode=timed)).cases
    topology = case.topology
    latency = Latency.of(topology, case.scenario.switching)
    bound = bounds(topology, Collective(kind, "hosts")).at(Fraction(1, 1000), latency)
    assert (bound.by, bound.time) == ("latency", 1 + 5 * (2 + 3) + 4 * 5 + 1)


def test_a_cut_counts_the_way_to_it_and_the_way_on():
    """Ranks at the ends of a path of four switches, whose channel in the middle is slow."""
    path = Topology.from_links("path", 4, [(0, 1), (1, 2), (2, 3)], capacity=[4, 1, 4], delay=[10, 100, 20])
    path = path.with_hosts([1, 0, 0, 1], 4)
    (case,) = read("c.yaml", text=CONFIG.format(topology=NETWORKS[0], mode=TIMED)).cases
    latency = Latency.of(path, case.scenario.switching)
    bound = bounds(path, Collective("all_gather", "hosts")).at(1000, latency)
    assert bound.by == "cut with latency"
    assert bound.time == 1000 + case.scenario.switching.zero_load_latency(path, 3, 1) + 130 - 1


def measured(topology, **keys):
    return make("metric", kind="collectives", **keys).columns(topology)


def test_as_a_user_asks_for_it(capsys):
    assert main(["topology", "kind=kautz,degree=3,diameter=2", "--metrics", "collectives", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ranks"], found["all_gather_lambda"], found["useful_bandwidth"]) == (12, "11/3", 3.0)
    assert found["all_reduce_lower"] == found["all_reduce_upper"] == pytest.approx(11 / 18)
    assert found["all_to_all"] == pytest.approx([6.6, 6.6], rel=1e-4)
    assert found["broadcast"] == pytest.approx(1 / 3)
    assert found["cut"] == "what leaves S: 11 units through 3"
    assert found["cut_outside"] == [0]


def test_hosts_are_told_why_the_network_does_not_matter():
    torus = build("torus", dims=[3, 3]).with_hosts(2)
    found = measured(torus, ranks="hosts")
    assert (found["all_gather_lambda"], found["all_reduce_upper"]) == ("17", pytest.approx(17 / 9))
    assert "does not depend on the network" in found["collectives_note"]
    fast = measured(torus.with_hosts(2, 8), ranks="hosts")
    assert (fast["all_gather_lambda"], fast["collectives_note"]) == ("4", None)
    assert measured(torus)["collectives_note"] is None


def test_ends_that_differ_are_an_interval():
    links = [(0, 4), (1, 4), (2, 4), (3, 4)]
    slow = build("mesh", dims=[2, 2]).from_links("star", 5, links, capacity=[1, 4, 4, 4]).with_hosts([1] * 4 + [0])
    found = measured(slow)
    assert (found["all_reduce_lower"], found["all_reduce_by"], found["all_reduce_upper"]) == (1, "cut", 1.5)
    assert found["cut"] == "what leaves S: 3 units through 1"


def test_a_label_stands_before_its_columns():
    found = measured(build("mesh", dims=[2, 2]), label="direct", root=3)
    assert found["direct_all_gather_lambda"] == "3/2"


def test_metrics_come_from_models_and_from_flows():
    assert {"bisection", "collectives"} <= set(names("metric"))


def test_fewer_than_two_hosts_are_no_ranks():
    with pytest.raises(ValueError, match="two hosts"):
        measured(build("mesh", dims=[2, 2]).with_hosts([1, 0, 0, 0]), ranks="hosts")
