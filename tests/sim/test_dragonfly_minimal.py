# SPDX-License-Identifier: Apache-2.0
"""Shortest paths are not the minimal routing of a dragonfly, and a configuration that may mean it is warned."""

from collections import Counter

import networkx as nx
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.models.registry import make, recorded_warnings
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.pipeline import read
from tests.fluid.fluid_cases import scenario as fluid_scenario

SMALL = "{kind: dragonfly, a: 4, p: 2, h: 2}"


def built(kind: str = "dragonfly", **parameters) -> Topology:
    return make("topology", kind=kind, **parameters).build()


def largest_load(topology: Topology, ahead: int) -> float:
    """The flow on the fullest channel, where every switch sends what its hosts can to the one so far ahead.

    It takes shortest paths, and every switch splits equally over its next switches.
    """
    graph = topology.to_networkx()
    load: Counter = Counter()
    for v in graph:
        t = (v + ahead) % len(graph)
        hops = nx.single_source_shortest_path_length(graph.reverse(), t)
        flow = Counter({v: int(topology.host_count[v])})
        for u in sorted(graph, key=hops.__getitem__, reverse=True):
            onward = [w for w in graph.successors(u) if hops[w] == hops[u] - 1]
            for w in onward:
                load[u, w] += flow[u] / len(onward)
                flow[w] += flow[u] / len(onward)
    return max(load.values())


@pytest.mark.parametrize(("a", "h", "shortest"), [(4, 2, 6), pytest.param(8, 4, 14, marks=pytest.mark.long)])
def test_the_worst_shift_by_shortest_paths_and_by_local_global_local(a, h, shortest):
    """By local, global, local all a p hosts of a group share its one channel to the next group."""
    topology = built(a=a, h=h, p=h)
    traffic = make("traffic", kind="adversarial").build(topology)
    assert traffic.notes["along"] == "groups" and largest_load(topology, a) == pytest.approx(shortest)
    found = {}
    for kind in ("minimal", "dragonfly"):
        with recorded_warnings():
            routes = make("routing", kind=kind).build(topology)
        (row,) = ceilings(fluid_scenario(topology, traffic, routes), [ceiling_spec("split")])
        found[kind] = 1 / row.lower
    assert found == pytest.approx({"minimal": shortest, "dragonfly": a * h})


@pytest.mark.parametrize(
    ("topology", "routing", "key"),
    [
        (SMALL, "{kind: minimal}", "kind"),
        (SMALL, "{kind: minimal, select: adaptive}", "kind"),
        (SMALL, "{kind: valiant}", "legs"),
        (SMALL, "{kind: valiant, legs: optimal}", "legs"),
        (SMALL, "{kind: ugal}", "legs"),
        ("{kind: dragonfly, a: 3, h: 1}", "{kind: minimal}", "kind"),  # equally long paths are enough
        (SMALL, "{kind: dragonfly}", None),
        (SMALL, "{kind: valiant, legs: dragonfly}", None),
        (SMALL, "{kind: ugal, legs: dragonfly}", None),
        (SMALL, "{kind: par}", None),
        ("{kind: dragonfly, a: 4, h: 2, groups: 2}", "{kind: minimal}", None),  # no third group
        ("{kind: dragonfly_plus, spines: 2}", "{kind: minimal}", None),
        ("{kind: slim_fly, q: 5}", "{kind: valiant}", None),
    ],
)
def test_a_configuration_is_warned_where_shortest_paths_cross_two_global_channels(tmp_path, topology, routing, key):
    path = tmp_path / "c.yaml"
    path.write_text(
        f"schema: 1\nname: c\nexperiment: ceilings\ntopology: {topology}\nrouting: {routing}\n"
        "traffic: {kind: uniform}\nceilings: [split]\n"
    )
    found = read(path).warnings
    if key is None:
        assert not found
        return
    (warning,) = found
    assert f"c.yaml:5: routing.{key}" in warning and "cross two global channels" in warning
    assert "routing: dragonfly" in warning and ("legs: dragonfly" in warning) == (key == "legs")


@pytest.mark.parametrize("kind", ["valiant", "ugal", "par"])
def test_notes_say_what_the_intermediate_is(kind):
    notes = make("routing", kind=kind, legs="dragonfly").build(built(a=4, h=2)).notes
    assert notes["intermediate"] == "a switch, not a group"
    if kind != "par":
        assert "intermediate" not in make("routing", kind=kind).build(built("slim_fly", q=5)).notes
