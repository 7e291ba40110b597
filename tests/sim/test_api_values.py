# SPDX-License-Identifier: Apache-2.0
"""The Python interface names the argument that it cannot take, and takes NumPy's numbers as Python's."""

import enum
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy

from flitlab import ConfigError, Experiment, Topology, ceiling, simulate
from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.models.arrays import to_floats, to_integers
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.sim.api.inputs import plain

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
TOPOLOGY = Topology.from_links("ring", 4, RING).with_hosts(1)
SHORT = {"switching__mode": "ideal", "measure": {"warmup": 10, "ticks": 50, "ci": None}}
NAN, INF = math.nan, math.inf
MASKED = np.ma.masked_array([1, 2, 3, 4], [0, 1, 0, 0])


def ring(**more):
    return Topology.from_links("ring", 4, RING, **more)


@pytest.mark.parametrize(
    "capacity",
    [
        NAN, -1.0, 0.0, INF, [1, 1, 1, NAN], [1, 2, 3], MASKED, 1j, np.ones(4, complex), np.array([1, 1, 1, None]),
        "1", ["1"] * 4, np.ones(4, object), np.ones((4, 1)), None, [[1], [1, 2]], np.full(4, np.datetime64("2020")),
    ],
)  # fmt: skip
def test_capacities_that_are_none(capacity):
    with pytest.raises(SpecError, match="capacity") as caught:
        ring(capacity=capacity)
    assert caught.value.key == "capacity"


@pytest.mark.parametrize(
    "delay",
    [NAN, 1.5, 1e19, 2**63, -(2**64), [1, 2], MASKED, 1j, "1", None, np.full(4, 2**63, np.uint64), [0, 0, 0, 0.5]],
)  # fmt: skip
def test_delays_that_are_none(delay):
    with pytest.raises(SpecError, match="delay") as caught:
        ring(delay=delay)
    assert caught.value.key == "delay"


@pytest.mark.parametrize("hosts", [NAN, -1, 1.5, 1e19, 2**63, 2**40, [1, 2], [1, 1, 1, 1.7], MASKED, 1j, "1", None])
def test_hosts_that_are_none(hosts):
    with pytest.raises(SpecError, match="per_switch"):
        ring().with_hosts(hosts)


@pytest.mark.parametrize("capacity", [NAN, -1, 0, 1j, "x", None, [1, 2]])
def test_host_capacities_that_are_none(capacity):
    with pytest.raises(SpecError, match="host_capacity"):
        ring().with_hosts(1, capacity)


@pytest.mark.parametrize(
    "links", [[(0, 1.5)], [(0, NAN)], [(0, 1, 2)], [(0, "1")], [(0, None)], [(0, 2**63)], [(0, 1j)]]
)
def test_links_that_are_none(links):
    with pytest.raises(SpecError, match="links"):
        Topology.from_links("x", 4, links)


@pytest.mark.parametrize("switches", [NAN, 4.5, "4", 2**63, None])
def test_numbers_of_switches_that_are_none(switches):
    with pytest.raises(SpecError, match="switches"):
        Topology.from_links("x", switches, RING)


@pytest.mark.parametrize("bad", [NAN, -1.0, 0.0, INF, 1e-320, 1e308])
def test_nothing_is_certified_of_capacities_that_are_none(bad):
    wrong = replace(TOPOLOGY, capacity=np.full(8, bad))
    with pytest.raises(ConfigError, match=r"topology: .*capacity of channel 0 is "):
        ceiling(wrong)
    with pytest.raises(SpecError, match="capacity of channel 0 is "):
        ceilings(Instance(wrong, make("traffic", kind="uniform").build(TOPOLOGY)), [ceiling_spec("mcf")])


@pytest.mark.parametrize(
    "array",
    [
        np.ones(8, object), np.ones(8, complex), np.ones(7), np.ones((8, 1)), [1.0] * 8,
        np.ma.masked_equal(np.ones(8), 1),
    ],
)  # fmt: skip
def test_arrays_put_into_a_topology(array):
    with pytest.raises(ConfigError, match="topology: capacity must be floating-point numbers of shape"):
        ceiling(replace(TOPOLOGY, capacity=array))


def test_a_host_without_a_rate():
    with pytest.raises(ConfigError, match="topology: host_capacity is nan"):
        ceiling(replace(TOPOLOGY, host_capacity=NAN))


DEMANDS = {
    "NaN": (np.full((4, 4), NAN), "finite"),
    "negative": (np.full((4, 4), -1.0), "not negative"),
    "complex": (np.full((4, 4), 1j), "complex128"),
    "sparse complex": (scipy.sparse.csr_array(np.full((4, 4), 1j)), "complex128"),
    "masked": (np.ma.masked_equal(np.ones((4, 4)), 1), "masked"),
    "objects": (np.ones((4, 4), object), "object"),
    "text": (np.full((4, 4), "1"), "<U1"),
    "dates": (np.full((4, 4), np.datetime64("2020-01-01")), "datetime64"),
    "too long": (np.ones((4, 3)), "square"),
    "flat": (np.ones(4), "square"),
    "generator": ((x for x in range(3)), "is a generator"),
}


@pytest.mark.parametrize("name", DEMANDS)
def test_matrices_that_are_no_demand(name):
    demand, problem = DEMANDS[name]
    with pytest.raises(ConfigError, match=problem) as caught:
        ceiling(TOPOLOGY, demand)
    assert caught.value.errors[0].key.startswith("traffic")


CYCLE, LIST = {}, []
CYCLE["again"] = CYCLE
LIST.append(LIST)
NO_VALUES = {
    "cycle": (CYCLE, "switching.vcs.again: contains itself"),
    "cycle of a list": (LIST, r"switching.vcs\[0\]: contains"),
    "generator": ((x for x in (1, 2)), "switching.vcs: is a generator; .*; make a list of it"),
    "map": (map(int, "12"), "switching.vcs: is a map; "), "keys": ({}.keys(), "switching.vcs: is a dict_keys; "),
    "set": ({1, 2}, "switching.vcs: is a set; "), "object": (object(), "switching.vcs: is a object; "),
    "complex": (1j, "switching.vcs: is a complex; "), "bytes": (b"2", "switching.vcs: is a bytes; "),
    "fraction": (Fraction(1, 2), "switching.vcs: is a Fraction; "), "decimal": (Decimal(2), "is a Decimal; "),
    "masked": (MASKED, "switching.vcs: is a masked array"), "objects": (np.array([1, None]), "is an array of object; "),
    "dates": (np.datetime64("2020-01-01"), "switching.vcs: is a datetime64; "), "digits": (10**5000, "400 digits"),
    "function": (len, "switching.vcs: is a builtin_function_or_method"), "NaN": (NAN, "NaN"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_VALUES)
@pytest.mark.parametrize("as_override", [True, False])
def test_what_no_configuration_can_hold(name, as_override):
    value, problem = NO_VALUES[name]
    if name in ("generator", "map"):
        value = iter([1, 2]) if name == "map" and not as_override else value
        problem = "switching.vcs: is a "
    scenario = {"topology": TOPOLOGY, "routing": "minimal", "traffic": "uniform", "loads": [0.1]}
    with pytest.raises(ConfigError, match=problem):
        if as_override:
            Experiment.load(scenario, switching__vcs=value)
        else:
            Experiment.load({**scenario, "switching": {"vcs": value}})


def test_depth_is_limited():
    deep = 1
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(ConfigError, match="seeds: is nested more than"):
        plain({"seeds": deep})


def test_a_configuration_whose_cases_hold_it():
    scenario = {"topology": TOPOLOGY, "routing": "minimal", "traffic": "uniform", "loads": [0.1]}
    scenario["cases"] = [scenario]
    with pytest.raises(ConfigError, match=r"cases\[0\].cases\[0\]"):
        Experiment.load(scenario)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(2), 2), (np.uint8(2), 2), (np.float32(0.5), 0.5), (np.longdouble(1), 1.0), (np.bool_(True), True),
        (np.str_("x"), "x"), (np.array(3), 3), (np.arange(2), [0, 1]), (np.array([1], np.longdouble), [1.0]),
        (pd.Series([1, 2]), [1, 2]), (enum.IntEnum("E", "A B").B, 2), (range(2), [0, 1]), ((1, (2,)), [1, [2]]),
        ({"a": np.float64(1)}, {"a": 1.0}), (None, None),
    ],
)  # fmt: skip
def test_values_as_python_has_them(value, expected):
    found = plain(value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [(np.int64(3), [3]), (np.uint8(3), [3]), ([np.int32(1)], [1]), (np.array([1, 2]), [1, 2]), (3, [3])],
)  # fmt: skip
def test_seeds_of_numpy(seeds, expected):
    assert simulate(TOPOLOGY, load=0.2, seeds=seeds, **SHORT).frame["seed"].tolist() == expected


@pytest.mark.parametrize("seeds", [NAN, -1, 1.5, True, "1", None, (x for x in (1, 2)), {1, 2}, 2**63, 1j, MASKED])
def test_seeds_that_are_none(seeds):
    with pytest.raises(ConfigError, match="seeds"):
        simulate(TOPOLOGY, load=0.2, seeds=seeds, **SHORT)


@pytest.mark.parametrize("load", [NAN, -1, 0, INF, "x", None, 1j, [], (x for x in (0.1,)), {0.1}, True, [0.1, None]])
def test_loads_that_are_none(load):
    with pytest.raises(ConfigError, match="loads"):
        simulate(TOPOLOGY, load=load, **SHORT)


@pytest.mark.parametrize("name", ["jobs", "threads"])
@pytest.mark.parametrize("value", [-1, 0, 1.5, NAN, "2", True, 1j, [1]])
def test_numbers_of_processes_that_are_none(name, value):
    with pytest.raises(ValueError, match=f"^{name} = .*: must be a whole number from 1"):
        simulate(TOPOLOGY, load=0.2, **{name: value}, **SHORT)


def test_numbers_of_processes_of_numpy():
    assert len(simulate(TOPOLOGY, load=0.2, jobs=np.int64(1), threads=np.int32(1), **SHORT).frame) == 1


@pytest.mark.parametrize(("name", "value"), [("capacity", NAN), ("delay", -1), ("hosts", 1.5)])
def test_attributes_of_graphs(name, value):
    graph = nx.cycle_graph(4)
    (nx.set_node_attributes if name == "hosts" else nx.set_edge_attributes)(graph, value, name)
    with pytest.raises(ConfigError, match=f"topology: .*{name} = "):
        ceiling(graph)


def test_conversions_keep_what_they_are_given():
    limit = 2**63 - 1
    assert to_integers("x", [0, limit, -limit - 1]).tolist() == [0, limit, -limit - 1]
    assert to_integers("x", [2.0**62, -(2.0**62)]).tolist() == [2**62, -(2**62)]
    assert to_integers("x", np.array([limit], np.uint64)).tolist() == [limit]
    assert to_integers("x", 3, 2).tolist() == [3, 3] and to_floats("x", [1, 2], 2).tolist() == [1.0, 2.0]
    assert to_integers("x", []).dtype == np.int64 and to_floats("x", True, 1).tolist() == [1.0]
    for beyond in (2.0**63, -(2.0**63), np.array([2**63], np.uint64), 1e300, -INF):
        with pytest.raises(SpecError, match="x must hold whole numbers below 2"):
            to_integers("x", beyond)
