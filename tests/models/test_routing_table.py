# SPDX-License-Identifier: Apache-2.0
"""Routing tables from files: what they say is what packets do, and what is wrong is named with its line."""

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
        (PATHS.replace("0-2-3", "0-1-3"), "the same path twice"),
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
