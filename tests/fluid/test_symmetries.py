# SPDX-License-Identifier: Apache-2.0
"""Symmetries are those that a search through all permutations finds; ceilings by them are those of other solvers."""

from itertools import permutations

import numpy as np
import pytest

from flitlab.fluid import problem as problems
from flitlab.fluid import symmetries as found
from flitlab.fluid.certificate import demand_cost
from flitlab.fluid.mcf import choose
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.problem import Problem, network_cost
from flitlab.fluid.symmetries import symmetries
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF

KINDS = [
    {"kind": "slim_fly", "q": 5}, {"kind": "kautz", "degree": 3, "diameter": 3}, {"kind": "fat_tree", "k": 6},
    {"kind": "dragonfly", "a": 4, "p": 2, "h": 2}, {"kind": "polarfly", "q": 5}, {"kind": "hyperx", "dims": [3, 4]},
    {"kind": "leaf_spine", "leaves": 6, "spines": 3, "hosts_per_leaf": 2, "multiplicity": 1},
]  # fmt: skip

SLOW = ("dragonfly", "polarfly")
"""Kinds whose flows take the exact solver seconds."""


def network(keys, **traffic):
    topology = make("topology", host_capacity=INF, **keys).build()
    return topology, make("traffic", **{"kind": "uniform"} | traffic).build(topology)


@pytest.fixture
def large(monkeypatch):
    """Small networks are taken for some whose flows are not written out."""
    monkeypatch.setattr(problems, "MAX_DENSE_FLOW", 0)
    monkeypatch.setattr(choose, "MAX_DENSE_FLOW", 0)
    monkeypatch.setattr(problems, "translations", lambda topology: [])


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "keys",
    [pytest.param(keys, marks=pytest.mark.long if keys["kind"] in SLOW else ()) for keys in KINDS],
    ids=lambda keys: keys["kind"],
)
def test_ceilings_are_those_without_symmetries(keys):
    topology, traffic = network(keys)
    problem = Problem.of(topology, traffic)
    whole = Problem(problem.graph, problem.compact_demand)
    by_classes, listed = solve(problem, 1e-2), solve(whole, 1e-6, "exact")
    assert by_classes.method == choose.ALIKE and listed.method != choose.ALIKE
    assert listed.lower <= by_classes.upper * (1 + 1e-9) and by_classes.lower <= listed.upper * (1 + 1e-9)
    assert by_classes.upper <= by_classes.lower * (1 + 1e-6) and by_classes.flow is None
    used = by_classes.load / topology.capacity
    assert used.max() == pytest.approx(1)
    needed = network_cost(problem.graph, problem.demand, np.ones(topology.channels))
    assert by_classes.load.sum() >= by_classes.lower * needed * (1 - 1e-9)
    lengths = by_classes.prices
    assert demand_cost(topology, traffic, lengths) == pytest.approx(
        network_cost(problem.graph, problem.demand, lengths), rel=1e-12
    )


GRAPHS = {
    "path": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star with a tail": [(0, 1), (0, 2), (0, 3), (3, 4), (4, 5)],
    "prism": [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)],
}
ARCS = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (2, 0)]


def alike(topology):
    """The classes of switches and of channels, by all permutations."""
    channels = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    moves = [
        move
        for move in permutations(range(topology.switches))
        if {(move[u], move[v]) for u, v in channels} == set(channels)
        and all(topology.host_count[move[v]] == topology.host_count[v] for v in range(topology.switches))
    ]
    switch = {frozenset(move[v] for move in moves) for v in range(topology.switches)}
    channel = {frozenset((move[u], move[v]) for move in moves) for u, v in channels}
    return switch, channel, len(moves)


@pytest.mark.parametrize("hosts", [1, [2, 1, 1, 1, 1, 1]])
@pytest.mark.parametrize("name", [*GRAPHS, "arcs"])
def test_classes_are_those_of_all_permutations(name, hosts):
    if name == "arcs":
        topology = Topology.from_arcs(name, 4, ARCS)
    else:
        topology = Topology.from_links(name, 1 + max(map(max, GRAPHS[name])), GRAPHS[name])
    topology = topology.with_hosts(hosts if hosts == 1 else hosts[: topology.switches], INF)
    switch, channel, count = alike(topology)
    classes = symmetries(topology)
    if count == 1:
        assert classes is None
        return
    assert classes is not None
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    assert {frozenset(np.flatnonzero(classes.switch == k).tolist()) for k in set(classes.switch)} == switch
    assert {frozenset(ends[c] for c in np.flatnonzero(classes.channel == k)) for k in set(classes.channel)} == channel


def test_what_only_seems_to_be_a_symmetry_counts_for_nothing(monkeypatch):
    topology = Topology.from_links("path", 4, [(0, 1), (1, 2), (2, 3)]).with_hosts(1, INF)
    for false in ([1, 0, 2, 3], [0, 0, 2, 3], [1, 2, 3, 0]):
        monkeypatch.setattr(found, "_generators", lambda _, false=false: [np.array(false)])
        assert symmetries(topology) is None


def test_there_are_none_where_channels_differ_or_are_parallel():
    links = [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert symmetries(Topology.from_links("ring", 4, links)) is not None
    assert symmetries(Topology.from_links("ring", 4, links, capacity=[1.0, 1.0, 1.0, 2.0])) is None
    assert symmetries(Topology.from_links("ring", 4, [*links, (0, 1)])) is None
    assert symmetries(Topology.from_links("alone", 2, [])) is None


@pytest.mark.usefixtures("large")
def test_demands_that_are_not_of_all_for_all_alike_have_none():
    topology, traffic = network(KINDS[0], kind="permutation")
    assert Problem.of(topology, traffic).orbit is None


@pytest.mark.long
def test_a_slim_fly_of_3698_switches_has_a_certified_ceiling_in_seconds():
    topology, traffic = network({"kind": "slim_fly", "q": 43}, kind="all_to_all")
    solution = solve(Problem.of(topology, traffic), 1e-2)
    assert solution.method == choose.ALIKE and solution.upper <= solution.lower * (1 + 1e-6)
    assert (
        solution.lower >= 0.8465 and solution.upper <= 0.8905
    )  # what a first-order method came to in 1,500 CPU seconds
