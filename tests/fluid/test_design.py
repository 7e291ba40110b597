# SPDX-License-Identifier: Apache-2.0
"""The search for designs: no dominated candidate could be better, and nothing is priced wrongly."""

from random import Random

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.design.bounds import Network, by_equipment, closed_form
from flitlab.fluid.design.demands import DesignDemand, Flow
from flitlab.fluid.design.growth import grow, kept
from flitlab.fluid.design.improve import improve_by_prices
from flitlab.fluid.design.options import Sku, options
from flitlab.fluid.design.search import Limits, Search, Tolerance
from flitlab.models.instance import Instance
from flitlab.models.layout.design_prices import design_prices
from flitlab.models.layout.prices import ports
from flitlab.models.registry import make, names
from flitlab.models.topology.equipment import equipment_bound, host_aspl_bound

PRICES = design_prices()
DEMANDS = [DesignDemand("uniform", {"kind": "uniform"}), DesignDemand("worst", {"kind": "worst_matching"})]
EVERY = {kind: {} for kind in names("topology")}


def sku(radix):
    return Sku("switch", radix, PRICES.of_switch(radix), radix * PRICES.switch_port_watts)


def all_options(hosts, radix, planes=(1,), splits=(1,), families=EVERY):
    return list(options(hosts, [sku(radix)], planes, {"switch": splits}, families, PRICES))


def check_bounds(option):
    """No bound is below what certainly flows; ports, hosts and links are as priced."""
    topology = make("topology", **option.plane()).build()
    split, hosts = option.equipment.split, topology.host_count
    assert (hosts - (-topology.out_degree // split)).max() <= option.equipment.ports
    assert topology.hosts == option.equipment.hosts
    assert 0 <= option.candidate.links - topology.channels // 2 <= 1
    network = Network.of(topology)
    closed, of_all = closed_form(option.candidate, option.equipment), by_equipment(option.candidate, option.equipment)
    for d, demand in enumerate(DEMANDS):
        on_network = demand.on(network)
        if not on_network.demand.any():
            continue
        ends = on_network.solve(0.05, 0.0)
        for upper in (closed[d], of_all[d], on_network.upper()):
            assert ends.lower <= upper.value, (option.label, demand.name, upper)
        assert ends.upper >= ends.lower


def sample(rng, count, *equipment):
    """Some options of every family."""
    of_family = {}
    for option in all_options(*equipment):
        of_family.setdefault(option.kind, []).append(option)
    return [one for members in of_family.values() for one in rng.sample(members, min(count, len(members)))]


def test_no_bound_is_below_what_flows():
    for option in sample(Random(1), 3, 100, 12, (1, 2), (1, 2)):
        check_bounds(option)


@pytest.mark.long
def test_no_bound_of_a_larger_sample_is_below_what_flows():
    rng = Random(7)
    for equipment in ((256, 16), (256, 16, (1, 2, 4), (1, 2, 4)), (90, 24), (61, 7)):
        for option in sample(rng, 8, *equipment):
            check_bounds(option)


def searched(*equipment, demands=DEMANDS, limits=None, families=EVERY):
    search = Search(all_options(*equipment, families=families), demands, limits or Limits(), Tolerance())
    search.run()
    return search


@pytest.fixture(scope="module")
def small():
    return searched(64, 8)


def test_what_is_dominated_could_not_be_on_the_front(small):
    tolerance = small.tolerance
    assert len(small.front) > 5
    for i, result in enumerate(small.results):
        if result.by >= 0:
            better = small.results[result.by]
            assert small.cost[result.by] <= small.cost[i] * (1 + tolerance.cost)
            assert (better.lower >= result.upper * (1 - tolerance.throughput)).all()
            # and the point that dominates it is on the front, or dominated outright by one that is
            assert any(
                small.cost[k] <= small.cost[result.by] and (small.results[k].lower >= better.lower).all()
                for k in small.front
            )
        else:
            assert result.stage == "solved"
            assert i in small.kept
    for i in small.front:
        result = small.results[i]
        assert (result.lower <= result.upper).all()
        assert (result.upper <= result.lower * (1 + tolerance.gap) + 1e-9).all()
        equipment = result.option.equipment
        bound = equipment_bound(result.option.candidate.switches, equipment.ports, equipment.hosts, equipment.split)
        assert result.lower[0] <= bound.throughput
    assert sum(small.counts().values()) == len(small.results)


def test_a_dominated_candidate_is_as_bad_as_its_proof_says(small):
    """Solved to the end, it is still dominated."""
    dominated = [i for i, result in enumerate(small.results) if result.by >= 0]
    for i in Random(2).sample(dominated, 20):
        result = small.results[i]
        network = Network.of(make("topology", **result.option.plane()).build())
        lower = [demand.ends(network, 0.02).lower for demand in DEMANDS]
        assert (np.array(lower) <= result.upper + 1e-12).all()


@pytest.mark.long
@pytest.mark.parametrize("equipment", [(256, 16), (256, 16, (1, 2), (1, 2, 4))])
def test_none_of_many_dominated_candidates_exceeds_its_bound(equipment):
    """400 random ones of a search, solved: nothing that certainly flows is above the upper end that excluded them."""
    search = searched(*equipment)
    dominated = [result for result in search.results if result.by >= 0]
    for result in Random(3).sample(dominated, 400):
        network = Network.of(make("topology", **result.option.plane()).build())
        for d, demand in enumerate(DEMANDS):
            assert demand.ends(network, 0.05).lower <= result.upper[d], (result.option.label, demand.name)


def test_intervals_are_those_of_the_ceiling(small):
    result = small.results[small.front[len(small.front) // 2]]
    topology = make("topology", **result.option.topology()).build()
    for d, demand in enumerate(DEMANDS):
        traffic = make("traffic", **demand.traffic).build(topology)
        (row,) = ceilings(Instance(topology, traffic), [ceiling_spec("mcf", gap=0.01)])
        assert row.lower <= result.upper[d] * (1 + 1e-9)
        assert row.upper >= result.lower[d] * (1 - 1e-9)


@pytest.mark.parametrize(("profile", "cable"), [("slimfly2014", 146.568 / 2), ("perseus2011", 538.75 / 2)])
def test_a_link_of_half_the_rate_has_half_the_price_of_its_cable(profile, cable):
    """SC 2014 and ATC 2011 price cables by rate; so does the metric ``cost``."""
    prices = design_prices(profile)
    switch = Sku("switch", 8, prices.of_switch(8), 0.0)
    candidates = options(32, [switch], (1,), {"switch": (2,)}, {"hyperx": {}}, prices)
    seven = next(one for one in candidates if one.switches == 7 and one.cables == 21)
    assert seven.cost == pytest.approx(7 * prices.of_switch(8) + 21 * cable + 32 * prices.copper)


def test_planes_and_splits_of_ports():
    """Two planes of 32 switches, all linked: the least for nearly full uniform traffic (independent program)."""
    (mesh,) = [
        one for one in all_options(1024, 32, (2,), (2,), {"hyperx": {}})
        if one.candidate.parameters["dims"] == [32] and one.candidate.trunk == 1
    ]  # fmt: skip
    assert (mesh.switches, mesh.cables, mesh.cost / 1024) == (64, 992, 4560)
    network = Network.of(make("topology", **mesh.plane()).build())
    ends = [demand.ends(network, 0.02) for demand in DEMANDS]
    assert ends[0].lower == pytest.approx(0.999, abs=1e-3)
    assert ends[1].lower == pytest.approx(0.493, rel=0.02)
    topology = make("topology", **mesh.topology()).build()
    assert topology.hosts == 1024 and topology.switches == 64 + 1024
    assert topology.capacity.max() == topology.capacity.min() == 0.5
    spine = [one for one in all_options(1024, 32, (2,), (2,), {"leaf_spine": {}}) if one.switches == 96]
    assert (
        min(
            one.cost
            for one in spine
            if (np.array([u.value for u in closed_form(one.candidate, one.equipment)]) >= 1).all()
        )
        / 1024
        == 7440
    )


def test_limits_and_floors():
    limits = Limits(cost=5000, cables=120, switches=22, diameter=3)
    search = searched(64, 8, limits=limits, demands=[DesignDemand("uniform", {"kind": "uniform"}, floor=0.4)])
    assert search.front
    for i in search.front:
        result = search.results[i]
        assert result.option.cost / 64 <= 5000
        assert result.option.cables <= 120
        assert result.option.switches <= 22
        assert result.diameter <= 3
        assert result.lower[0] >= 0.4 * 0.98
    counts = search.counts()
    assert counts["limit"] and counts["floor"]
    notes = " ".join(result.note for result in search.results)
    assert "cost 10550 > 5000" in notes and "uniform <= " in notes


def test_a_demand_of_any_kind():
    demands = [
        DesignDemand("shift", {"kind": "shift", "by": 5}),
        DesignDemand("worst", {"kind": "worst_matching"}, 0, 0),
    ]
    search = searched(36, 6, demands=demands, families={"torus": {}, "rrg": {"seed": 2}})
    assert search.front
    for i in search.front:
        topology = make("topology", **search.results[i].option.topology()).build()
        traffic = make("traffic", kind="shift", by=5).build(topology)
        (row,) = ceilings(Instance(topology, traffic), [ceiling_spec("mcf", gap=0.01)])
        assert row.lower <= search.results[i].upper[0] * (1 + 1e-9)
        assert search.results[i].option.candidate.parameters.get("seed", 2) == 2
    assert ports(topology).max() <= 6


def option_of(kind, hosts, radix, **keys):
    (option,) = [
        one for one in all_options(hosts, radix, families={kind: {}})
        if all(one.candidate.parameters.get(key) == value for key, value in keys.items()) and one.candidate.trunk == 1
    ]  # fmt: skip
    return option


def test_a_hypercube_grows_without_moving_a_cable():
    """64 hosts on 32 switches become 96 on 64, two on each of today's and one on each new one; all links stay."""
    cube = option_of("hypercube", 64, 8, dim=5)
    plan = grow(cube, 96, DEMANDS, [0.9, 0.4], PRICES, 0.02)
    assert plan.option.candidate.parameters["dim"] == 6
    assert (plan.switches, plan.cables, plan.moved, plan.hosts) == (32, 192 - 80, 0, 0)
    assert plan.cost == 32 * 12480 + 112 * (2 * 1200 + 80) + 32 * 200
    assert plan.ends[0].lower >= 0.9 * 0.98


def test_a_random_graph_grows_as_jellyfish_does():
    """Each new switch is put into links of today or of switches before it: what is still there has not moved."""
    today = option_of("rrg", 36, 6, n=14)
    plan = grow(today, 48, DEMANDS, [0.3, 0.2], PRICES, 0.02)
    old, new = (make("topology", **one.plane()).build() for one in (today, plan.option))
    assert new.hosts == 48 and ports(new).max() <= 6
    assert (new.host_count[:14] == old.host_count).all()
    links = [{(u, v) for u, v in zip(t.src.tolist(), t.dst.tolist(), strict=True) if u < v} for t in (old, new)]
    assert plan.moved == len(links[0] - links[1]) > 0
    assert plan.moved <= new.notes["links_moved"]
    assert plan.cables == len(links[1]) - len(links[0]) == new.notes["links_moved"]
    assert grow(today, 48, DEMANDS, [0.3, 0.2], PRICES, 0.02, moved=0.0) is None


def test_places_of_switches_keep_cables():
    """A fifth leaf beside four moves no cable, although the spines change their numbers."""
    leaf, more = (
        make("topology", kind="leaf_spine", leaves=leaves, spines=3, hosts_per_leaf=3).build() for leaves in (4, 5)
    )
    option = option_of("leaf_spine", 12, 6, leaves=4, spines=3)
    assert kept(leaf, more, option, option) == (12, 0)


def test_parallel_links_fail_one_by_one():
    """256 hosts, 16 leaves with two links to each of 8 spines: a leaf that loses one has 15 left."""
    keys = {"kind": "leaf_spine", "leaves": 16, "spines": 8, "multiplicity": 2, "hosts_per_leaf": 16}
    network = Network.of(make("topology", **keys, failures={"links": 0.01, "seed": 1}).build())
    lower, upper, _ = DEMANDS[0].ends(network, 0.01)
    assert lower <= 15 * 255 / (16 * 240) <= upper


def test_prices_lead_to_links_for_the_demand():
    """A random graph of 16 switches, each of which sends to the one eight further on."""
    graph = make("topology", kind="rrg", n=16, degree=4, hosts_per_switch=1).build()
    demand = np.roll(np.eye(16), 8, axis=1)
    before = Flow(Network.of(graph), demand, np.inf).solve(0.01, 0.0)
    improved = improve_by_prices(graph, lambda network: demand, 0.01, 25)
    assert improved.kept > 0
    assert improved.lower > 1.05 * before.upper
    after = Network.of(improved.topology)
    assert (improved.topology.out_degree == graph.out_degree).all()
    assert (improved.topology.host_count == graph.host_count).all()
    again = Flow(after, demand, np.inf).solve(0.01, 0.0)
    assert again.lower <= improved.upper and improved.lower <= again.upper
    assert improved.lower <= after.upper(demand).value


@pytest.mark.long
@pytest.mark.parametrize(("hosts", "radix", "switches", "reached"), [(32, 4, 20, 5.1492), (80, 6, 40, 4.4763)])
def test_published_instances_of_the_order_radix_problem(hosts, radix, switches, reached):
    """Within 1 % of what annealing of hosts and links reached elsewhere, and no less than the bound."""
    graph = {"kind": "rrg", "n": switches, "ports": radix, "hosts_total": hosts}
    topology = make("topology", kind="improved", of=graph, steps=400_000, power=1).build()
    pairs = np.outer(topology.host_count, topology.host_count)
    hops = (pairs * Network.of(topology).hops).sum() / (pairs.sum() - hosts) + 2
    assert host_aspl_bound(hosts, radix)[0] <= hops <= reached * 1.01


def test_collectives_are_shares_of_the_bus_bandwidth():
    """Two switches of four hosts, and a link of a quarter of their rate: 16 ticks for an all-gather instead of 7."""
    slow = Network.of(make("topology", kind="hypercube", dim=1, hosts_per_switch=4, capacity=0.25).build())
    gather = DesignDemand("gather", {"kind": "collective", "of": "all_gather"})
    ends = gather.ends(slow, 0.01)
    assert ends.lower <= 7 / 16 <= ends.upper <= ends.lower * (1 + 1e-12)
    fast = Network.of(make("topology", kind="hypercube", dim=1, hosts_per_switch=4).build())
    assert gather.ends(fast, 0.01)[:2] == (1, 1)
    memo = {}
    assert gather.ends(slow, 0.01, memo=memo) == ends and list(memo.values()) == [ends]
    (key,) = memo
    memo[key] = "remembered"
    assert gather.ends(slow, 0.01, memo=memo) == "remembered"


@pytest.mark.long
def test_an_all_to_all_is_the_flow_of_uniform_traffic():
    torus = Network.of(make("topology", kind="torus", dims=[3, 3], hosts_per_switch=6).build())
    uniform = DEMANDS[0].ends(torus, 0.01)  # its flow is that of an all-to-all
    exchange = DesignDemand("a2a", {"kind": "collective", "of": "all_to_all"}).ends(torus, 0.01)
    assert exchange.lower <= uniform.upper and uniform.lower <= exchange.upper


def test_a_solve_ends_where_theta_is_refuted():
    network = Network.of(make("topology", kind="torus", dims=[5, 5], hosts_per_switch=2).build())
    full = DEMANDS[0].ends(network, 1e-3)
    refuted = DEMANDS[1].ends(network, 1e-4, refuted=0.99)
    assert full.lower <= full.upper
    assert refuted.upper <= 0.99
