# SPDX-License-Identifier: Apache-2.0
"""The checks of a user's own components find what is broken, and the example of the documentation runs."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

from flitlab.models.registry import SpecError, make, names, spec_class
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import PathTable, Routes, RoutingSpec
from flitlab.models.routing.validation import validate_routes
from flitlab.models.rules.tables import RouteForm, Selection, VcPolicy
from flitlab.models.testing import check_routing, check_topology
from flitlab.models.topology.graph import Grid, Topology
from flitlab.models.topology.spec import TopologySpec
from flitlab.sim.cli import main
from flitlab.sim.config.plugins import load_plugin
from tests import ROOT
from tests.scenarios import build, line, one_way_ring

DOCS = ROOT / "docs"
EXAMPLE = DOCS / "examples" / "my_routing.py"


class Given(RoutingSpec):
    """Gives what a test has put there.

    Example: ``routing: {kind: minimal}``

    Source: this test.
    """

    kind: str = "minimal"
    answers: list = []  # noqa: RUF012 (pydantic copies it)

    def routes(self, topology):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(topology) if callable(answer) else answer


def problems(topology: Topology, *answers, vcs: int | None = None) -> str:
    """What is said of a routing that gives these routes."""
    return "\n".join(check_routing(Given(answers=list(answers)), topology, vcs))


def routes_of(topology: Topology, kind: str = "minimal", **parameters) -> Routes:
    return make("routing", kind=kind, **parameters).build(topology)


def with_port(routes: Routes, t: int, v: int, mask: int) -> Routes:
    """The routes with another set of ports at switch v to switch t."""
    ports = routes.ports.copy()
    ports[t, v] = mask
    return replace(routes, ports=ports)


def with_path(routes: Routes, topology: Topology, s: int, t: int, ports: list[int]) -> Routes:
    """The routes with other ports on the first path from s to t (as many as it has)."""
    table = routes.paths
    port = table.port.copy()
    first = table.path_start[table.pair_start[s * topology.switches + t]]
    port[first : first + len(ports)] = ports
    return replace(routes, paths=table._replace(port=port))


ROUTINGS = [
    {"kind": "minimal"}, {"kind": "ksp", "k": 3}, {"kind": "valiant"}, {"kind": "updown"}, {"kind": "deflection"},
    {"kind": "minimal", "select": "adaptive", "vc_policy": "escape"}, {"kind": "ecmp", "vc_policy": "layered"},
]  # fmt: skip


@pytest.mark.parametrize("routing", ROUTINGS, ids=lambda r: "-".join(map(str, r.values())))
@pytest.mark.parametrize(
    "topology", [build("torus", dims=[3, 4]), build("fat_tree", 2, k=4)], ids=lambda topology: topology.kind
)
def test_sound_routings_pass(topology, routing):
    assert check_routing(make("routing", **routing), topology) == []


def test_computed_next_hops_pass():
    assert check_routing(make("routing", kind="imase"), build("imase", n=20, degree=3)) == []


def test_a_loop_is_shown():
    topology = line(4)  # ports of an inner switch: 0 back, 1 onward
    looping = with_port(routes_of(topology), 3, 2, 0b11)
    said = "next hops to switch 3: a packet from switch 0 goes round in a loop: 1 -> 2 -> 1"
    assert problems(topology, looping) == said


def test_a_loop_that_no_packet_enters_does_no_harm():
    topology = replace(line(5), host_switch=np.array([0, 1]))
    routes = replace(routes_of(topology), hops_max=4)
    routes = with_port(with_port(routes, 0, 3, 0b10), 0, 4, 0b1)  # 3 <-> 4, and packets are at 0 and 1 only
    assert "loop" not in problems(topology, routes)


def test_a_dead_end_is_shown():
    topology = line(4)
    assert "next hops to switch 3: a packet at switch 1 has none" in problems(
        topology, with_port(routes_of(topology), 3, 1, 0)
    )


def test_a_port_that_does_not_exist_is_shown():
    topology = line(4)
    assert "next hop of switch 0 to switch 3 is port 4, and it has 1 of them" in problems(
        topology, with_port(routes_of(topology), 3, 0, 1 << 4)
    )


def test_a_way_on_from_the_target_is_shown():
    topology = line(4)
    assert "ports[2, 2] must be 0" in problems(topology, with_port(routes_of(topology), 2, 2, 1))


@pytest.mark.parametrize(
    ("hops_max", "said"), [(2, "but the longest route has 3"), (4, "but no route without a loop has more than 3")]
)
def test_a_wrong_hops_max_is_shown(hops_max, said):
    topology = line(4)
    for routes in routes_of(topology), routes_of(topology, "ksp", k=1):
        assert f"hops_max is {hops_max}, {said} channels" in problems(topology, replace(routes, hops_max=hops_max))


def test_a_hops_max_that_is_too_large_is_counted():
    topology = build("torus", dims=[4])
    claimed = replace(routes_of(topology), hops_max=3)
    assert validate_routes(topology, claimed).hops_max == 2
    assert certify(topology, replace(claimed, vc_policy=VcPolicy.HOP), vcs=2).note.endswith("longest route 2, VCs 2")


def test_broken_paths_are_shown():
    topology = build("torus", dims=[3, 3])
    routes = routes_of(topology, "ksp", k=2)
    first = routes.paths.port[: np.diff(routes.paths.path_start)[0]]
    assert len(first) == 1  # 0 and 1 are neighbours
    assert "0 to switch 1 does not end there" in problems(topology, with_path(routes, topology, 0, 1, [first[0] ^ 1]))
    assert "a port that a switch does not have: ports [9]" in problems(topology, with_path(routes, topology, 0, 1, [9]))


def test_a_path_that_visits_a_switch_twice_is_shown():
    topology = line(2)
    table = PathTable(np.array([0, 0, 1, 2, 2]), np.array([0, 3, 4]), np.zeros(4, np.uint8))
    routes = replace(routes_of(topology, "ksp", k=1), paths=table, hops_max=3)
    assert "a path from switch 0 to switch 1 visits a switch twice: ports [0, 0, 0], switches [0, 1, 0, 1]" in problems(
        topology, routes
    )


def test_a_pair_without_a_path_is_shown():
    topology = line(3)
    routes = routes_of(topology, "ksp", k=1)
    fewer = routes.paths.pair_start.copy()
    fewer[-2:] -= 1  # the pair (2, 1) loses its path
    paths = PathTable(fewer, routes.paths.path_start[:-1], routes.paths.port[:-1])
    assert "no path from switch 2 to switch 1" in problems(topology, replace(routes, paths=paths))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ports": np.zeros((3, 3), np.int64)}, "ports must be uint64 of shape (4, 4), and is int64 of shape (3, 3)"),
        ({"form": 9}, "form is 9"),
        ({"select": 9}, "select is 9"),
        ({"vc_policy": VcPolicy.LAYERED}, "layer must be uint8 of shape (16,), and is None: one for each pair"),
        (
            {"vc_policy": VcPolicy.LAYERED, "layer": np.full(16, 3, np.uint8), "layers": 3},
            "layer 3 occurs, but layers is 3",
        ),
        ({"form": RouteForm.VIA}, "leg must be uint8 of shape (4, 4), and is None"),
        (
            {"form": RouteForm.VIA, "leg": np.zeros((4, 4), np.uint8), "hops_max": 6},
            "leg[1, 0] is 0, and the route takes 1",
        ),
        (
            {"form": RouteForm.VIA, "leg": np.zeros((4, 4), np.uint8), "select": Selection.ADAPTIVE},
            "ADAPTIVE serves TABLE and DIGITS only",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_shown(change, said):
    topology = line(4)
    assert said in problems(topology, replace(routes_of(topology), **change))


def test_what_builds_something_else_every_time_is_shown():
    topology = build("torus", dims=[3, 3])
    other = routes_of(topology, "ecmp", ways=1, seed=1), routes_of(topology, "ecmp", ways=1, seed=2)
    assert "other routes the second time" in problems(topology, *other)

    def spoil(topology):
        topology.capacity[0] = 7
        return other[0]

    assert "changes the topology" in problems(topology, spoil)


def test_what_does_not_build_is_shown():
    topology = line(3)

    def crash(topology):
        return [][1]

    def refuse(topology):
        raise SpecError("too long a line", key="switches")

    assert problems(topology, crash).startswith("build() raises IndexError: list index out of range; ")
    assert problems(topology, refuse) == "build() rejects its parameters: switches: too long a line"
    assert problems(topology, 3) == "routes() must return a Routes, not int"


class First(RoutingSpec):
    """Shortest paths, without a word of virtual channels."""

    kind: str = "minimal"

    def routes(self, topology):
        return routes_of(topology)


@pytest.mark.parametrize(("asked", "policy"), [(None, None), ("hop", VcPolicy.HOP), ("layered", VcPolicy.LAYERED)])
def test_a_routing_inherits_the_vc_policy(asked, policy):
    topology = build("torus", dims=[3, 4])
    routes = First(vc_policy=asked).build(topology)
    assert (routes.vc_policy, routes.layers > 0) == (policy, asked == "layered")
    wanted = make("routing", kind="minimal", vc_policy=asked).build(topology)
    assert routes.content_hash == wanted.content_hash


def test_a_vc_policy_that_the_routes_do_not_serve_is_refused():
    for asked in ("legs", "escape", "groups"):
        with pytest.raises(SpecError) as caught:
            First(vc_policy=asked).build(line(3))
        assert caught.value.key == "vc_policy"


def test_escape_channels_of_a_routing_go_with_no_other_vc_policy():
    class Escaping(Given):
        """Keeps VC 0 for them."""

    topology = line(3)
    routes = routes_of(topology, select="adaptive", vc_policy="escape")
    assert Escaping(answers=[routes]).build(topology).content_hash == routes.content_hash
    with pytest.raises(SpecError, match="must be escape"):
        Escaping(answers=[routes], vc_policy="hop").build(topology)


class Whole(RoutingSpec):
    """Has a ``build`` of its own, and with it a fault where ``beyond``."""

    kind: str = "minimal"
    beyond: bool = False

    def build(self, topology):
        routes = routes_of(topology)
        return with_port(routes, 2, 0, 1 << 4) if self.beyond else routes


class Above(Whole):
    """Begins with what another class builds."""

    def build(self, topology):
        return replace(super().build(topology), select=1)


def test_a_build_of_ones_own_is_looked_at_as_well():
    topology = line(3)
    assert Whole(vc_policy="hop").build(topology).vc_policy == VcPolicy.HOP
    assert Above(vc_policy="hop").build(topology).select == 1
    for spec in Whole(beyond=True), Above(beyond=True):
        with pytest.raises(SpecError, match="is port 4, and it has 1 of them"):
            spec.build(topology)


def test_a_missing_certificate_is_shown():
    ring = one_way_ring(4)
    routes = replace(routes_of(ring), vc_policy=0)
    assert "no certificate with 3 VCs: any may deadlock: (0->1, VC *) waits for (1->2, VC *)" in problems(ring, routes)
    assert problems(ring, replace(routes, vc_policy=VcPolicy.HOP)) == ""
    assert "with 2 VCs" in problems(ring, replace(routes, vc_policy=VcPolicy.HOP), vcs=2)


def test_missing_documentation_is_shown():
    class Bare(Given):
        """Says little."""

    class Odd(Given):
        """Example: ``routing: {kind: minimal, wat: 1}``"""

    topology = line(3)
    said = check_routing(Bare(answers=[routes_of(topology)]), topology)
    assert ["Source" in said[0], "Example" in said[1], len(said)] == [True, True, 2]
    said = check_routing(Odd(answers=[routes_of(topology)]), topology)
    assert "does not work" in said[1]


@pytest.mark.parametrize("kind", names("topology"))
def test_every_family_passes(kind):
    example = re.findall(r"Example: ``(topology: .+?)``", spec_class("topology", kind).__doc__, re.DOTALL)[0]
    if kind != "file":
        assert check_topology(make("topology", **yaml.safe_load(example)["topology"])) == []


RING = build("torus", dims=[4])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"src": RING.src[::-1], "dst": RING.dst[::-1]}, "channels must be sorted by (src, dst): 3 -> 2 stands before"),
        ({"dst": np.where(RING.dst == 3, 4, RING.dst)}, "ends outside of switches 0 to 3"),
        ({"dst": np.where(np.arange(8) == 0, 0, RING.dst)}, "leads from switch 0 to itself"),
        ({"reverse": np.roll(RING.reverse, 1)}, "but its reverse, channel"),
        ({"reverse": np.full(8, 8)}, "reverse of channel 0 is 8: neither a channel nor -1"),
        ({"reverse": np.where(np.arange(8) == 0, -1, RING.reverse)}, "each must name the other"),
        (
            {"capacity": np.zeros(8)},
            "capacity of channel 0 is 0.0: it must be positive, from 1e-100 to 1e+100 (and 7 more",
        ),
        ({"delay": np.full(8, -1)}, "delay of channel 0 is -1"),
        ({"delay": np.zeros(8)}, "delay must be whole numbers of shape (8,), and is float64 of shape (8,)"),
        ({"host_switch": np.array([0, 2, 1])}, "host 1 is at switch 2, host 2 at switch 1"),
        ({"host_switch": np.array([4])}, "host 0 is at switch 4, outside of 0 to 3"),
        ({"switches": 5, "grid": None}, "not strongly connected: no path from switch 0 to switch 4"),
        ({"grid": Grid((5,), True, np.arange(4)[:, None])}, "a grid of 5 has 5 switches, not 4"),
        ({"notes": {"x": np.int64(1)}}, "notes must be plain numbers"),
        ({"notes": {"tiers": [["edge", 0, 2], ["core", 3, 1]]}}, "tier 'core' starts at switch 3"),
    ],
)
def test_what_is_wrong_with_a_topology_is_shown(change, said):
    assert said in "\n".join(check_topology(replace(RING, **change)))
    assert check_topology(RING) == []


def test_a_family_that_draws_without_a_seed_is_shown():
    class Drawn(TopologySpec):
        """Example: ``topology: {kind: rrg, n: 8, degree: 3}``. Source: this test."""

        kind: str = "rrg"

        def graph(self):
            order = np.random.default_rng().permutation(64)
            return Topology.from_links("drawn", 64, np.column_stack([order, np.roll(order, 1)]))

    assert check_topology(Drawn()) == [
        "build() gives another topology the second time: draw only from a seed of the spec"
    ]


@pytest.mark.parametrize("routing", [{"kind": "first_shortest"}, {"kind": "trees", "trees": 3}])
@pytest.mark.parametrize("topology", [build("mesh", dims=[3, 4]), build("rrg", 2, n=16, degree=4, seed=3)])
def test_the_example_of_the_documentation_passes_its_checks(topology, routing):
    load_plugin(str(EXAMPLE))
    assert check_routing(make("routing", **routing), topology) == []


def test_the_example_says_what_it_cannot_serve():
    load_plugin(str(EXAMPLE))
    assert check_routing(make("routing", kind="trees"), one_way_ring(4)) == [
        "build() rejects its parameters: kind: needs bi-directional links: a tree is used in both directions"
    ]
    assert check_routing(make("routing", kind="first_shortest"), one_way_ring(4)) == []


def test_a_tree_keeps_a_packet_on_its_layer_and_needs_a_vc_each():
    load_plugin(str(EXAMPLE))
    topology = build("torus", dims=[3, 3])
    routes = make("routing", kind="trees", trees=3).build(topology)
    assert (routes.vc_policy, routes.layers, routes.form != RouteForm.TABLE) == (VcPolicy.LAYERED, 3, True)
    assert check_routing(make("routing", kind="trees", trees=3), topology, vcs=3) == []
    assert "need 3 layers" in check_routing(make("routing", kind="trees", trees=3), topology, vcs=2)[0]


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_the_example_of_the_documentation_runs_in_both_engines(mode, tmp_path, capsys):
    arguments = [str(EXAMPLE.with_suffix(".yaml")), "--jobs", "1", "--out", str(tmp_path / "out")]
    arguments += ["--set", f"switching.mode={mode}", "--set", "outputs={figures: [], html: false}"]
    assert main(["run", *arguments]) == 0, capsys.readouterr().err
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok"] * 4


def test_the_documentation_names_the_files_of_the_example():
    page = (DOCS / "routing.md").read_text()
    for path in (EXAMPLE, EXAMPLE.with_suffix(".yaml")):
        assert f"`{path.relative_to(DOCS.parent)}`" in page


def test_the_documentation_names_every_routing():
    page = (DOCS / "routing.md").read_text()
    table = page[page.index("| kind |") : page.index("## The router")]
    built_in = {k for k in names("routing") if spec_class("routing", k).__module__.startswith("flitlab.models.")}
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == built_in
