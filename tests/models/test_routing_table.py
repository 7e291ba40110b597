# SPDX-License-Identifier: Apache-2.0
"""Routing tables from files: what they say is what packets do, and what is wrong is named with its line."""

import json

import numpy as np
import pytest
import yaml

from flitlab.fluid.problem import Problem
from flitlab.fluid.split import split_use
from flitlab.fluid.weights import routes_for
from flitlab.models.registry import SpecError, make
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main
from tests.scenarios import build

DIAMOND = Topology.from_links("diamond", 4, [[0, 1], [0, 2], [1, 3], [2, 3]], host_switch=np.array([0, 3]))
"""Two ways from switch 0 to switch 3."""

NEXT_HOPS = "target,switch,next,weight\n3,0,1,3\n3,0,2,1\n3,1,3,\n3,2,3,1\n0,3,1,1\n0,1,0,1\n"
PATHS = "source,target,path,weight\n0,3,0-1-3,3\n0,3,0-2-3,1\n3,0,3-1-0,1\n"


def table(tmp_path, text: str, topology: Topology = DIAMOND, **keys):
    (tmp_path / "table.csv").write_text(text)
    return make("routing", kind="table", path=str(tmp_path / "table.csv"), **keys).build(topology)


def use(topology, routes) -> np.ndarray:
    """Flow on each channel under uniform traffic of load 1."""
    demand = make("traffic", kind="uniform").build(topology)
    return split_use(Problem.of(topology, demand, routes), topology, demand) * topology.capacity


@pytest.mark.parametrize("text", [NEXT_HOPS, PATHS], ids=["next hops", "paths"])
def test_shares_are_the_weights(tmp_path, text):
    routes = table(tmp_path, text)
    load = dict(zip(zip(DIAMOND.src.tolist(), DIAMOND.dst.tolist(), strict=True), use(DIAMOND, routes), strict=True))
    expected = {(0, 1): 0.75, (1, 3): 0.75, (0, 2): 0.25, (2, 3): 0.25, (3, 1): 1, (1, 0): 1, (3, 2): 0, (2, 0): 0}
    assert load == pytest.approx(expected, abs=1e-9)
    assert routes.hops_max == 2


@pytest.mark.parametrize(
    "routing",
    [
        {"kind": "minimal"}, {"kind": "ecmp", "ways": 3}, {"kind": "ksp", "k": 4}, {"kind": "updown"},
        {"kind": "minimal", "ties": "first"}, {"kind": "optimal"}, {"kind": "optimal", "entries": 8},
    ],
    ids=str,
)  # fmt: skip
def test_an_exported_routing_comes_back(tmp_path, routing):
    """What ``simrun export-routing`` writes gives the same tables and loads every channel alike."""
    study = {
        "schema": 1, "topology": {"kind": "rrg", "n": 12, "degree": 3, "hosts_per_switch": 2, "seed": 2},
        "routing": routing, "traffic": {"kind": "uniform"}, "ceilings": ["split"], "experiment": "ceilings",
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    assert main(["export-routing", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out")]) == 0
    topology = build("rrg", n=12, degree=3, hosts=2, seed=2)
    routes = routes_for(make("routing", **routing), topology, make("traffic", kind="uniform").build(topology))
    name = "next_hops.csv" if routes.paths is None else "paths.csv"
    back = table(tmp_path, (tmp_path / "out" / name).read_text(), topology)
    assert np.array_equal(back.ports, routes.ports) and back.hops_max == routes.hops_max
    if routes.paths is not None:
        assert all(np.array_equal(one, other) for one, other in zip(back.paths[:3], routes.paths[:3], strict=True))
        assert np.array_equal(back.paths.shares, routes.paths.shares)
    if routes.port_threshold is not None:
        assert np.array_equal(back.port_threshold, routes.port_threshold)
    assert np.allclose(use(topology, back), use(topology, routes), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEXT_HOPS.replace("3,0,2,1", "3,0,7,1"), ":3: 3,0,7,1: '7' is no switch"),
        (NEXT_HOPS.replace("3,0,2,1", "3,0,3,1"), ":3: 3,0,3,1: no channel from switch 0 to switch 3"),
        (NEXT_HOPS.replace("3,0,2,1", "3,0,2,-1"), ":3: 3,0,2,-1: weight '-1' is not a number, 0 or more"),
        (NEXT_HOPS.replace("3,0,2,1", "3,0,1,1"), ":3: 3,0,1,1: a second line for this next hop"),
        (NEXT_HOPS.replace("3,2,3,1", "3,2,0,1"), "leads in a loop: 0 to 2 to 0"),
        (NEXT_HOPS.replace("3,2,3,1\n", ""), "ends at a switch without a next hop: 0 to 2"),
        (PATHS.replace("3,0,3-1-0,1\n", ""), "no path from switch 3 to switch 0"),
        (PATHS.replace("0-2-3", "0-2-0-1-3"), ":3: 0,3,0-2-0-1-3,1: a path visits two switches or more, each once"),
        (PATHS.replace("0,3,0-2-3", "0,3,2-3"), "does not lead from the source to the target"),
        (PATHS.replace("0-2-3", "0-1-3"), ": this path is listed before, "),
        ("a,b\n1,2\n", "the header must name target, switch and next, or source, target and path"),
        ("", "no routes in it"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(SpecError) as caught:
        table(tmp_path, text)
    assert message in str(caught.value)


def test_weights_of_next_hops_are_256ths(tmp_path):
    """Of 1000 to 1 the smaller has a 256th; of 1 to 2 the error is below a 512th."""
    routes = table(tmp_path, NEXT_HOPS.replace("3,0,1,3", "3,0,1,1000"))
    assert use(DIAMOND, routes).min(initial=1, where=use(DIAMOND, routes) > 0) == pytest.approx(1 / 256)
    assert 0 < table(tmp_path, NEXT_HOPS.replace("3,0,1,3", "3,0,1,2")).notes["rounding_of_weights"] <= 1 / 512


def test_ports_tell_parallel_channels_apart(tmp_path):
    double = Topology.from_links("pair", 2, [[0, 1], [0, 1]], host_switch=np.arange(2))
    one = table(tmp_path, "target,switch,next,port\n1,0,1,1\n0,1,0,0\n", double)
    both = table(tmp_path, "target,switch,next\n1,0,1\n0,1,0\n", double)
    assert sorted(use(double, one)) == pytest.approx([0, 0, 1, 1])
    assert use(double, both) == pytest.approx([0.5] * 4)
    with pytest.raises(SpecError, match="2 channels from switch 0 to switch 1: add a column ports"):
        table(tmp_path, "source,target,path\n0,1,0-1\n1,0,1-0\n", double)


def chiplet(number: int, kind: str = "chiplet") -> str:
    """A node as a key of a file of RapidChiplet."""
    return f'__tuple__:["{kind}", {number}]'


def of_rapidchiplet(tmp_path, kind: str, hops: dict, topology: Topology = DIAMOND, suffix: str = "json"):
    """Routes of a file in the form that RapidChiplet writes; hops: by node and destination."""

    def value(to):
        if isinstance(to, dict):
            return {before: value(after) for before, after in to.items()}
        return None if to is None else {"__tuple__": True, "items": list(to)}

    rows = {node: {target: value(to) for target, to in targets.items()} for node, targets in hops.items()}
    (tmp_path / f"table.{suffix}").write_text(json.dumps({"type": kind, "table": rows}, indent=4))
    return make("routing", kind="table", path=str(tmp_path / f"table.{suffix}")).build(topology)


def chiplets(hops: dict[int, dict[int, int | None]]) -> dict:
    return {
        chiplet(node): {chiplet(t): None if to is None else ("chiplet", to) for t, to in targets.items()}
        for node, targets in hops.items()
    }


HOPS = {0: {0: None, 3: 1}, 1: {0: 0, 3: 3}, 2: {0: 0, 3: 3}, 3: {0: 2, 3: None}}


def test_a_table_of_rapidchiplet_has_its_next_hops(tmp_path):
    routes = of_rapidchiplet(tmp_path, "default", chiplets(HOPS))
    same = table(tmp_path, "target,switch,next\n3,0,1\n3,1,3\n3,2,3\n0,1,0\n0,2,0\n0,3,2\n")
    np.testing.assert_array_equal(routes.ports, same.ports)


def test_routers_of_the_interposer_follow_the_chiplets(tmp_path):
    """Chiplets 0 and 1 are joined by router 0, which is switch 2."""
    row = Topology.from_links("row", 3, [[0, 2], [1, 2]], host_switch=np.array([0, 1]))
    router = ("irouter", 0)
    hops = {chiplet(0): {chiplet(1): router}, chiplet(1): {chiplet(0): router},
            chiplet(0, "irouter"): {chiplet(0): ("chiplet", 0), chiplet(1): ("chiplet", 1)}}  # fmt: skip
    assert of_rapidchiplet(tmp_path, "default", hops, row).hops_max == 2


def test_next_hops_may_depend_on_the_previous_node(tmp_path):
    """From 0 to 3 by way of 1, from 3 to 0 by way of 2."""
    hops = {
        chiplet(0): {chiplet(3): {"-1": ("chiplet", 1)}}, chiplet(3): {chiplet(0): {"-1": ("chiplet", 2)}},
        chiplet(1): {chiplet(3): {chiplet(0): ("chiplet", 3)}}, chiplet(2): {chiplet(0): {chiplet(3): ("chiplet", 0)}},
    }  # fmt: skip
    routes = of_rapidchiplet(tmp_path, "extended", hops)
    same = table(tmp_path, "source,target,path\n0,3,0-1-3\n3,0,3-2-0\n")
    assert routes.content_hash == same.content_hash


@pytest.mark.parametrize(
    ("hops", "problem"),
    [
        ({**HOPS, 1: {0: 0, 3: 0}}, r"table.json:\d+: the way to switch 3 leads in a loop"),
        ({**HOPS, 1: {0: 0}}, r"table.json:\d+: the way to switch 3 ends at a switch without a next hop"),
        ({**HOPS, 0: {3: 7}}, r"table.json:5: .* no node of these 4 switches"),
        ({**HOPS, 0: {3: 3}}, r"table.json:5: no channel from switch 0 to switch 3"),
        ({**HOPS, 0: {3: None}}, r"table.json:5: no next hop"),
    ],
)
def test_errors_of_rapidchiplet_name_the_line(tmp_path, hops, problem):
    with pytest.raises(SpecError, match=problem):
        of_rapidchiplet(tmp_path, "default", chiplets(hops))


def test_errors_of_extended_tables_name_the_line(tmp_path):
    hops = {chiplet(0): {chiplet(3): {"-1": ("chiplet", 1)}}, chiplet(1): {chiplet(3): {"-1": ("chiplet", 3)}}}
    with pytest.raises(SpecError, match=r"table.json:6: the way to switch 3 ends .*: 0 to 1"):
        of_rapidchiplet(tmp_path, "extended", hops)


def garnet(tmp_path, links: list, topology: Topology = DIAMOND):
    """Routes of a config.ini with links (source, destination, weight), as gem5 writes them."""
    text = "[root]\ntype=Root\n\n"
    for i, (source, target, weight) in enumerate(links):
        name = "system.ruby.network.routers"
        text += f"[system.ruby.network.int_links{i:02d}]\ntype=GarnetIntLink\nlatency=1\nlink_id={i}\n"
        text += f"src_node={name}{source}\ndst_node={name}{target}\nweight={weight}\n\n"
    (tmp_path / "config.ini").write_text(text + "[system.ruby.network.ext_links0]\nweight=1\n")
    return make("routing", kind="table", path=str(tmp_path / "config.ini")).build(topology)


def both_ways(*links) -> list:
    return [link for u, v, weight in links for link in ((u, v, weight), (v, u, weight))]


def test_garnet_takes_shortest_paths_by_weight(tmp_path):
    """By 1 as well as by 2 where weights are equal; of equally long paths by the first link of least weight."""
    equal = garnet(tmp_path, both_ways((0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1)))
    assert equal.ports[3, 0] == 3
    longer = garnet(tmp_path, both_ways((0, 1, 5), (0, 2, 1), (1, 3, 1), (2, 3, 1)))
    assert longer.ports[3, 0] == 2  # the second channel out of 0, to 2
    tie = garnet(tmp_path, [(0, 1, 2), (0, 2, 1), (1, 3, 1), (2, 3, 2), (1, 0, 1), (2, 0, 1), (3, 1, 1), (3, 2, 1)])
    assert tie.ports[3, 0] == 2 and tie.ports[0, 3] == 3


def test_dimension_order_of_a_mesh_by_weights(tmp_path):
    """gem5's mesh gives links in x weight 1 and in y weight 2, which makes packets take x first."""
    mesh = build("mesh", dims=[3, 3])
    x_first = [1 if abs(u - v) == 1 else 2 for u, v in zip(mesh.src, mesh.dst, strict=True)]
    links = list(zip(mesh.src.tolist(), mesh.dst.tolist(), x_first, strict=True))
    ports = garnet(tmp_path, links, mesh).ports
    assert all(int(one).bit_count() == 1 for one in ports[~np.eye(9, dtype=bool)])
    assert mesh.dst[mesh.out_start[0] + int(ports[8, 0]).bit_length() - 1] == 1


@pytest.mark.parametrize(
    ("links", "problem"),
    [
        ([(0, 3, 1)], r"config.ini:4: no further channel from router 0 to router 3"),
        ([(0, 1, 1), (0, 1, 1)], r"config.ini:12: no further channel"),
        ([(0, 1, 0)], r"config.ini:4: weight '0' is not a whole number"),
        ([(0, 1, 1)], r"no link for the channel from switch 0 to switch 2"),
    ],
)
def test_errors_of_garnet_name_the_line(tmp_path, links, problem):
    with pytest.raises(SpecError, match=problem):
        garnet(tmp_path, links)
