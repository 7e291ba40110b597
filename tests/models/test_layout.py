# SPDX-License-Identifier: Apache-2.0
"""Cabinets, cable lengths, prices and power, against sums done by hand and published figures."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flitlab.models.layout.constants import load
from flitlab.models.layout.floor import cabinet_places, cables_of, lengths, optimised_cabinets, ordered_cabinets
from flitlab.models.layout.prices import is_optical, ports
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology


def topology(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def measure(kind, of, **parameters):
    return make("metric", kind=kind, **parameters).measure(of)


def path(*, directed=False, n=4):
    """0 - 1 - 2 - 3, closed to a ring if uni-directional."""
    if directed:
        return Topology.from_arcs("ring", n, [(v, (v + 1) % n) for v in range(n)]).with_hosts(1)
    return Topology.from_links("path", n, [(v, v + 1) for v in range(n - 1)]).with_hosts(1)


@pytest.mark.parametrize(
    ("cabinets", "rows", "per_row"), [(1, 1, 1), (2, 2, 1), (4, 2, 2), (7, 3, 3), (10, 4, 3), (1190, 35, 34)]
)
def test_floor_of_the_paper(cabinets, rows, per_row):
    place = cabinet_places(cabinets, (0.6, 2.1))
    assert len(np.unique(place, axis=0)) == cabinets
    assert place.max(axis=0) == pytest.approx([0.6 * (per_row - 1), 2.1 * (rows - 1)])
    assert place[: per_row + 1][-1] == pytest.approx([0, 2.1] if cabinets > per_row else [0, 0])


def test_cable_lengths_by_hand():
    # cabinets at (0, 0), (0.6, 0), (0, 2.1), (0.6, 2.1)
    found = measure("cables", path())
    assert found == pytest.approx({"number": 3, "mean": 3.3, "max": 4.7, "total": 9.9, "optical_share": 0})
    # two cabinets, one behind the other
    assert measure("cables", path(), switches_per_cabinet=2)["total"] == pytest.approx(1 + 4.1 + 1)
    assert measure("cables", path(), switches_per_cabinet=4)["total"] == pytest.approx(3)
    assert measure("cables", path(), pitch=[1, 10])["max"] == pytest.approx(13)
    assert measure("cables", path(), hosts=True)["total"] == pytest.approx(9.9 + 4)
    assert measure("cables", path(), hosts=True)["number"] == 7
    assert measure("cables", path(directed=True))["number"] == 4
    assert measure("cables", Topology.from_links("one", 1, []))["total"] == 0


def test_kinds_of_cable():
    cable = load().cable
    assert is_optical(np.array([6.86, 6.87]), cable).tolist() == [False, True]  # the price lines cross at 6.861 m
    assert measure("cables", path(), reach=3)["optical_share"] == pytest.approx(1 / 3)
    assert measure("cables", path(), reach=4.7)["optical_share"] == 0
    assert measure("cables", path(), constants={"cable": {"reach": 2.5}})["optical_share"] == 1


def test_prices_by_hand():
    electric = 40 * (3 * 0.5771 + 0.4079 * 9.9)
    found = measure("cost", path())
    assert found["cables"] == pytest.approx(electric)
    # two ends with 1 + 1 ports, which the line prices below nothing, and two switches with 2 + 1
    assert found["switches"] == pytest.approx(2 * (3 * 350.4 - 892.3))
    assert found["total"] == pytest.approx(found["switches"] + found["cables"])
    assert found["per_host"] == pytest.approx(found["total"] / 4)
    optical = 40 * (2.7452 + 0.0919 * 4.7) + 40 * (2 * 0.5771 + 0.4079 * 5.2)
    assert measure("cost", path(), reach=4)["cables"] == pytest.approx(optical)
    assert measure("cost", path(), hosts=True)["cables"] == pytest.approx(electric + 4 * 40 * (0.5771 + 0.4079))
    ring = path(directed=True)
    assert measure("cost", ring)["cables"] == pytest.approx(0.5 * 40 * (4 * 0.5771 + 0.4079 * (9.9 + 4.7)))
    thick = topology("mesh", dims=[4], capacity=10)
    assert measure("cost", thick)["cables"] == pytest.approx(10 * electric)
    assert measure("power", path())["total"] == pytest.approx(2.8 * (3 * 2 + 4))


def test_cable_prices_of_the_jellyfish_thesis():
    prices = {"fixed": 0, "per_metre": 5.5}, {"fixed": 400, "per_metre": 5.5}
    constants = {"cable": {"gbps": 1, "electric": prices[0], "optical": prices[1], "reach": 10}}
    far = measure("cost", path(), constants=constants, pitch=[0.6, 8])["cables"]
    assert far == pytest.approx(5.5 * (2.6 + 10.6 + 2.6) + 400)


def perseus(network, **parameters):
    return measure("cost", network, constants="perseus2011", **parameters)


def test_prices_of_the_second_model_by_hand():
    """Copper of x metres costs 1.25 (40 + 16 x), fibre 1.25 (376 + 5 x); installation 2.50, between cabinets 6.25."""
    pair = path(n=2)
    assert perseus(pair, switches_per_cabinet=2)["cables"] == pytest.approx(1.25 * (40 + 16) + 2.5)
    # cabinets 2.9 m, 3.0 m and 3.1 m apart, and 2 m of overhead
    copper, longest, fibre = (perseus(pair, pitch=[1, apart])["cables"] for apart in (2.9, 3.0, 3.1))
    assert copper == pytest.approx(1.25 * (40 + 16 * 4.9) + 6.25)
    assert longest == pytest.approx(1.25 * (40 + 16 * 5) + 6.25)
    assert fibre == pytest.approx(1.25 * (376 + 5 * 5.1) + 6.25)
    assert perseus(pair)["switches"] == 500 * 4
    # both channels of a pair, each for half a bi-directional cable with its installation
    one_way = Topology.from_arcs("ring", 2, [(0, 1), (1, 0)]).with_hosts(1)
    assert perseus(one_way, pitch=[1, 3.1]) == pytest.approx(perseus(pair, pitch=[1, 3.1]))
    ring = path(directed=True, n=3)  # cabinets at (0, 0), (0.6, 0), (0, 2.1)
    lengths = 2.6, 4.7, 4.1
    assert perseus(ring)["cables"] == pytest.approx(sum(0.5 * (1.25 * (40 + 16 * x) + 6.25) for x in lengths))
    # capacity 2 is two cables, each installed
    double = topology("mesh", dims=[2], capacity=2)
    assert perseus(double, pitch=[1, 3.1])["cables"] == pytest.approx(2 * fibre)
    assert perseus(pair, pitch=[1, 3.1], hosts=True)["cables"] == pytest.approx(fibre + 2 * (1.25 * 56 + 2.5))
    assert measure("cables", pair, constants="perseus2011", pitch=[1, 3.1])["optical_share"] == 1


def test_prices_of_the_second_model_against_cables_as_sold():
    """Lengths and prices of Mudigonda et al., ATC 2011; the lines are fitted to them, here without 25 % and labour."""
    bare = {"profile": "perseus2011", "cable": {"installation": {"within": 0, "between": 0}}, "floor": {"overhead": 0}}
    sold = {1: 55, 2: 74, 3: 87, 5: 116, 10: 418, 15: 448, 20: 465, 30: 508, 50: 618, 100: 883}
    for metres, dollars in sold.items():
        made = measure("cost", path(n=2), constants=bare, pitch=[1, metres])["cables"]
        assert made / 1.25 == pytest.approx(dollars, rel=0.04)


def test_installation_is_added_to_other_prices():
    labour = {"cable": {"installation": {"within": 3, "between": 7}}}
    plain, more = (measure("cost", path(), constants=c, switches_per_cabinet=2) for c in ({}, labour))
    assert more["cables"] - plain["cables"] == pytest.approx(3 + 7 + 3)
    assert more["switches"] == plain["switches"]


def test_one_channel_in_and_one_out_share_a_port():
    assert ports(path(directed=True)).tolist() == [2, 2, 2, 2]
    assert ports(path()).tolist() == [2, 3, 3, 2]
    star = Topology.from_arcs("star", 3, [(0, 1), (0, 2), (1, 0), (2, 1)])
    assert ports(star).tolist() == [2, 2, 1]


def test_slim_fly_paper_per_endpoint():
    """SC 2014, Table IV: 722 routers of 43 ports, 10830 endpoints: 8.02 W and, for routers alone, 945 dollars."""
    network = topology("rrg", n=722, degree=28, hosts_per_switch=15)
    assert measure("power", network)["per_host"] == pytest.approx(8.02, abs=0.01)
    assert measure("cost", network)["switches"] / network.hosts == pytest.approx(945, abs=0.5)


def test_claims_of_the_uni_paper_at_degree_8():
    """Figures 14-16: the torus has by far the shortest cables; the way of the links hardly matters otherwise."""
    n, d = 1296, 8
    torus = topology("torus", dims=[6, 6, 6, 6])
    others = [
        topology("rrg", n=n, degree=d), topology("random_digraph", n=n, degree=d),
        topology("imase", n=n, degree=d), topology("mddp", n=n, degree=d, best_of=1),
    ]  # fmt: skip
    mean = measure("cables", torus)["mean"]
    means = [measure("cables", other)["mean"] for other in others]
    assert 2 * mean < min(means)
    assert max(means) < 1.1 * min(means)
    costs = [measure("cost", other)["total"] for other in [torus, *others]]
    assert costs[0] == min(costs)
    assert max(costs[1:]) < 1.05 * min(costs[1:])
    power = [measure("power", other)["total"] for other in [torus, *others]]
    assert max(power) < 1.01 * min(power)


def test_cost_is_ruled_by_the_degree_rather_than_by_lengths():
    low, high = (topology("rrg", n=512, degree=d, seed=1) for d in (8, 29))
    assert measure("cost", high)["total"] > 2 * measure("cost", low)["total"]
    wide = measure("cost", low, pitch=[1.2, 4.2])["total"]
    assert wide < 1.3 * measure("cost", low)["total"]


@given(st.integers(2, 40), st.integers(1, 7), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_optimised_placement_fills_the_same_cabinets_and_is_never_longer(n, per_cabinet, seed):
    rng = np.random.default_rng(seed)
    links = [(v, int(rng.integers(v))) for v in range(1, n)] + rng.integers(n, size=(n, 2)).tolist()
    network = Topology.from_links("random", n, links)
    floor = load({"floor": {"switches_per_cabinet": per_cabinet}}).floor
    ends, order = cables_of(network).ends, ordered_cabinets(network, floor)
    found = optimised_cabinets(network, floor, seed)
    assert (np.bincount(found) == np.bincount(order)).all()
    assert lengths(found, ends, floor).sum() <= lengths(order, ends, floor).sum() + 1e-9
    assert (optimised_cabinets.__wrapped__(network, floor, seed) == found).all()


def test_optimised_placement_against_all_placements_of_seven_switches():
    floor = load().floor
    network = topology("rrg", n=7, degree=2, seed=4)
    ends = cables_of(network).ends
    best = min(lengths(np.array(cabinet), ends, floor).sum() for cabinet in permutations(range(7)))
    found = lengths(optimised_cabinets(network, floor, 1), ends, floor).sum()
    assert found == pytest.approx(best)


def test_optimised_placement_unscrambles_a_mesh():
    mesh = topology("mesh", dims=[6, 6])
    shuffled = np.random.default_rng(1).permutation(36)
    scrambled = Topology.from_links("scrambled", 36, shuffled[cables_of(mesh).ends])
    found = measure("cables", scrambled, placement="optimised", pitch=[1, 1])
    assert found["mean"] < 1.25 * measure("cables", mesh, pitch=[1, 1])["mean"]
    before = measure("cables", scrambled, pitch=[1, 1])
    assert found["gain"] == pytest.approx(1 - found["total"] / before["total"])
    assert measure("cost", scrambled, placement="optimised")["cables"] < measure("cost", scrambled)["cables"]


def test_constants_of_a_user_replace_some(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("floor: {overhead: 0}\nswitch: {watts_per_port: 1}\n")
    assert measure("cables", path(), constants=str(file))["total"] == pytest.approx(3.9)
    assert measure("power", path(), constants=str(file))["total"] == pytest.approx(10)
    assert load(str(file)).cable == load().cable
    dumped = make("metric", kind="cost", constants=str(file)).model_dump(mode="json")
    assert dumped["constants"]["floor"]["overhead"] == 0
    assert (
        make("metric", **dumped).effective_constants
        == make("metric", kind="cost", constants=str(file)).effective_constants
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("floor: {hight: 2}", "1: floor.hight: unknown key; choices: switches_per_cabinet, pitch"),
        ("# mine\nfloors: {}", "2: floors: unknown key; choices: floor, cable, switch; did you mean 'floor'?"),
        ("cable: {electric: {fixed: -1}}", "1: cable.electric.fixed = -1: must be greater than or equal to 0"),
        ("floor: 3", "1: floor = 3: must be"),
        ("switch:\n  watts_per_port: -1\n  fix: 1", "2: switch.watts_per_port = -1: must be"),
        ("switch:\n  watts_per_port: -1\n  fix: 1", "3: switch.fix: unknown key"),
        ("- 1", " a mapping with some of profile, floor, cable, switch is expected"),
        ("floor: {", " not YAML"),
        ("# mine\nprofile: 1600g", "2: profile = 1600g: unknown profile; choices: 800g, 400g, slimfly2014"),
    ],
)
def test_bad_constants_are_refused_with_the_file(content, message, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(ValidationError) as error:
        make("metric", kind="cables", constants=str(file))
    assert f"{file}:{message}" in str(error.value)
    assert error.value.errors()[0]["loc"] == ("constants",)
    with pytest.raises(ValidationError, match=r"error, floor\.hight: unknown key"):
        make("metric", kind="cables", constants={"floor": {"hight": 2}})


def test_missing_constants_and_endless_cables_are_refused(tmp_path):
    with pytest.raises(ValidationError, match="No such file"):
        make("metric", kind="power", constants=str(tmp_path / "none.yaml"))
    endless = topology("mesh", dims=[3], host_capacity=float("inf"))
    with pytest.raises(ValueError, match="host_capacity"):
        measure("cost", endless, hosts=True)
    assert measure("cost", endless)["cables"] > 0


LEAF_SPINE = {"kind": "leaf_spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4}


def test_cards_of_planes_are_hosts():
    """Two planes of half the rate have the ports, and the cables between switches, of one of full rate."""
    planes, one = topology("planes", count=2, capacity=0.5, of=LEAF_SPINE), topology(**LEAF_SPINE)
    # leaves of 4 + 2 ports and spines of 4, at full rate
    assert measure("power", one, constants="800g")["total"] == 15 * (4 * 6 + 2 * 4) + 15 * 2 * 8
    assert measure("power", planes, constants="800g") == measure("power", one, constants="800g")
    for constants in ("slimfly2014", "800g", "perseus2011"):
        same = [measure("cost", of, constants=constants)["switches"] for of in (planes, one)]
        assert same[0] == pytest.approx(same[1]) and same[1] > 0
    assert measure("cost", planes, constants="800g")["switches"] == 1560 * 32
    assert measure("cables", planes)["number"] == 2 * 8
    assert measure("cables", planes, hosts=True)["number"] == 2 * (8 + 16)
    # a card stands with its leaf of the first plane, three cabinets before that of the second: 3 x 3 of 12 switches,
    # 0.6 m x 2.1 m apart; leaves 0 to 3, then 4 to 7 (0: row 0, column 0; 4: row 1, column 0; ...)
    of_cards = measure("cables", planes, hosts=True)["total"] - measure("cables", planes)["total"]
    place = cabinet_places(12, (0.6, 2.1))
    second = [2 + np.abs(place[leaf] - place[4 + leaf]).sum() for leaf in range(4)]
    assert of_cards == pytest.approx(16 * 1 + 4 * sum(second))
    with_cards = measure("cables", planes, placement="optimised", hosts=True)
    assert with_cards["gain"] == measure("cables", planes, placement="optimised")["gain"] > 0


def test_servers_that_relay_are_hosts_and_their_links_cables():
    dcell = topology("dcell", n=3, k=1)  # four cells of three servers, each linked to its switch and another server
    found = measure("cables", dcell)
    assert (found["number"], measure("cables", dcell, hosts=True)["number"]) == (6, 6 + 12)
    assert measure("cables", dcell, hosts=True)["total"] == pytest.approx(found["total"] + 12 * 1)
    assert measure("power", dcell)["total"] == pytest.approx(2.8 * 4 * 3)
    bcube = topology("bcube", n=2, k=1)
    assert measure("cables", bcube)["number"] == 0 and measure("cables", bcube, hosts=True)["number"] == 8
    assert measure("power", bcube)["total"] == pytest.approx(2.8 * 4 * 2)
    some = topology("bcube", n=2, k=1, hosts=[1, 1, 0, 0, 0, 0, 0, 0])  # servers without hosts relay all the same
    assert measure("power", some) == {"total": pytest.approx(2.8 * 4 * 2), "per_host": pytest.approx(2.8 * 4)}
    rail = topology("rail", servers=2, gpus=2, nvlink=3.0)
    assert measure("power", rail)["total"] == pytest.approx(2.8 * (2 * 2 * 3 + 2 * 2))


def test_boards_have_no_cables_and_one_place():
    board = {"kind": "hammingmesh", "a": 4, "b": 4}
    alone = topology(**board, x=1, y=1)
    assert measure("cables", alone, hosts=True)["number"] == measure("power", alone)["total"] == 0
    assert measure("cost", alone)["total"] == measure("cabling", alone)["number"] == 0
    two = topology(**board, x=2, y=1)  # a switch joins both ends of each of four rows
    assert two.switches == 32 + 4
    assert measure("cables", two)["number"] == 0 and measure("cables", two, hosts=True)["number"] == 4 * 4
    assert measure("power", two, constants="800g")["total"] == 15 * 4 * 4
    cabinet = make("metric", kind="cables").cabinets(two)
    boards = two.notes["boards"]["size"]
    assert boards == [4, 4] and len(set(cabinet[:16].tolist())) == len(set(cabinet[16:32].tolist())) == 1


def test_a_link_of_another_rate_counts_as_that_part_of_a_port():
    network = topology("hypercube", dim=1, capacity=0.25, host_capacity=2)
    assert measure("power", network, constants="800g")["total"] == pytest.approx(15 * 2 * (2 + 0.25) + 15 * 2 * 0.25)
    assert measure("cost", network, constants="800g")["switches"] == pytest.approx(1560 * 2 * 2.25)
