# SPDX-License-Identifier: Apache-2.0
"""Every registered topology, then each family against its definition, networkx and published values."""

import re

import networkx as nx
import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from flitlab.models.registry import SpecError, make, names, spec_class
from flitlab.models.topology.distances import aspl, diameter, distance_counts
from tests import ROOT


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def examples(kind):
    lines = re.findall(r"Example: ``(.+?)``", spec_class("topology", kind).__doc__ or "")
    return [yaml.safe_load(line)["topology"] for line in lines]


def is_simple(topology):
    ends = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    return len(ends) == topology.channels and (topology.src != topology.dst).all()


@pytest.mark.parametrize("kind", names("topology"))
def test_documented_examples_build_sound_topologies(kind, monkeypatch):
    monkeypatch.chdir(ROOT)  # the file topology's example names a file of ours
    assert examples(kind), "the docstring needs a line: Example: ``topology: {kind: ...}``"
    assert "Source:" in spec_class("topology", kind).__doc__
    for example in examples(kind):
        assert example["kind"] == kind
        topology = make("topology", **example).build()
        assert topology.kind == kind
        assert topology.hosts > 0
        graph = nx.DiGraph(topology.to_networkx())
        if topology.is_multistage:
            last = set(topology.ejection_switch.tolist())
            assert all(last <= {v, *nx.descendants(graph, v)} for v in set(topology.host_switch.tolist()))
        else:
            assert nx.is_strongly_connected(graph)
        order = np.lexsort((topology.dst, topology.src))
        assert (order == np.arange(topology.channels)).all()
        assert (topology.src != topology.dst).all()
        paired = np.flatnonzero(topology.reverse >= 0)
        other = topology.reverse[paired]
        assert (topology.reverse[other] == paired).all()
        assert (topology.src[other] == topology.dst[paired]).all()
        assert (topology.dst[other] == topology.src[paired]).all()
        assert make("topology", **example).build().content_hash == topology.content_hash


@pytest.mark.parametrize("kind", names("topology"))
def test_common_keys_are_checked(kind, monkeypatch):
    monkeypatch.chdir(ROOT)
    example = examples(kind)[0]
    for key, value in {"hosts_per_switch": -1, "hosts": [1], "host_capacity": 0, "capacity": -1}.items():
        with pytest.raises(SpecError) as error:
            make("topology", **example | {key: value}).build()
        assert error.value.key == key


@pytest.mark.parametrize(
    ("parameters", "switches", "channels", "degree", "hops"),
    [
        ({"kind": "kautz", "degree": 6, "diameter": 3}, 252, 1512, 6, 3),
        ({"kind": "kautz", "degree": 1, "diameter": 4}, 2, 2, 1, 1),
        ({"kind": "gdbg", "n": 64, "degree": 4}, 64, 252, None, 3),
        ({"kind": "random_digraph", "n": 60, "degree": 5}, 60, 300, 5, None),
        ({"kind": "rrg", "n": 60, "degree": 5}, 60, 300, 5, None),
        ({"kind": "mddp", "n": 50, "degree": 4}, 50, 200, 4, None),
        ({"kind": "torus", "dims": [4, 3, 5]}, 60, 360, 6, 5),
        ({"kind": "torus", "dims": [2, 3, 1]}, 6, 18, 3, 2),
        ({"kind": "torus", "dims": [1]}, 1, 0, 0, 0),
        ({"kind": "mesh", "dims": [4, 6]}, 24, 76, None, 8),
        ({"kind": "hypercube", "dim": 5}, 32, 160, 5, 5),
    ],
)
def test_counts_follow_the_formulas(parameters, switches, channels, degree, hops):
    topology = build(**parameters)
    assert (topology.switches, topology.channels) == (switches, channels)
    assert is_simple(topology)
    if degree is not None:
        assert (topology.out_degree == degree).all()
        assert (topology.in_degree == degree).all()
    if hops is not None:
        assert diameter(topology) == hops


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"kind": "imase", "n": 64, "degree": 6}, 2.3021),
        ({"kind": "imase", "n": 256, "degree": 6}, 2.9467),
        ({"kind": "imase", "n": 256, "degree": 8}, 2.6952),
        ({"kind": "gdbg", "n": 256, "degree": 8}, 2.6952),
        ({"kind": "kautz", "degree": 6, "diameter": 2}, 1.8537),
        ({"kind": "kautz", "degree": 6, "diameter": 3}, 2.8094),
        ({"kind": "kautz", "degree": 8, "diameter": 2}, 1.8873),
        ({"kind": "kautz", "degree": 8, "diameter": 3}, 2.8611),
    ],
)
def test_aspl_of_deterministic_graphs(parameters, expected):
    assert aspl(build(**parameters)) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("n", "degree", "low", "high"), [(64, 6, 2.375, 2.41), (256, 6, 3.165, 3.185), (256, 8, 2.80, 2.813)]
)
def test_aspl_of_random_digraphs(n, degree, low, high):
    for seed in range(5):
        assert low < aspl(build("random_digraph", n=n, degree=degree, seed=seed)) < high


def test_aspl_of_random_regular_graphs():
    assert 3.31 < aspl(build("rrg", n=256, degree=6)) < 3.36
    assert 2.87 < aspl(build("rrg", n=256, degree=8)) < 2.91


@pytest.mark.parametrize(("degree", "hops"), [(2, 2), (2, 3), (3, 2), (3, 3)])
def test_kautz_is_the_iterated_line_digraph_of_the_complete_digraph(degree, hops):
    graph = nx.complete_graph(degree + 1, nx.DiGraph)
    for _ in range(hops - 1):
        graph = nx.line_graph(graph)
    ours = nx.DiGraph(build("kautz", degree=degree, diameter=hops).to_networkx())
    assert nx.is_isomorphic(ours, graph)


@pytest.mark.parametrize("kind", ["random_digraph", "rrg"])
@pytest.mark.parametrize(("n", "degree"), [(2, 1), (3, 2), (5, 2), (7, 4), (8, 6), (12, 11), (30, 27), (100, 60)])
def test_random_graphs_are_simple_and_regular_at_every_density(kind, n, degree):
    for seed in range(3):
        topology = build(kind, n=n, degree=degree, seed=seed)
        assert is_simple(topology)
        assert (topology.out_degree == degree).all()
        assert (topology.in_degree == degree).all()
        assert topology.directed == (kind == "random_digraph")


def test_random_regular_graphs_are_drawn_evenly():
    # 2-regular connected graphs on 5 switches: the 12 labelled pentagons
    counts: dict[str, int] = {}
    for seed in range(600):
        key = build("rrg", n=5, degree=2, seed=seed).edge_hash
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 12
    assert sum((count - 50) ** 2 / 50 for count in counts.values()) < 31  # chi-square, 11 degrees: p = 0.001


def test_rrg_shares_ports_between_hosts_and_links():
    topology = build("rrg", n=20, ports=8, hosts_total=51)
    assert topology.host_count.tolist() == [3] * 11 + [2] * 9
    assert topology.hosts == 51
    loser = topology.notes["unwired_switch"]  # 20 * 8 - 51 ports is odd
    free = 8 - topology.host_count - topology.out_degree
    assert free[loser] == 1
    assert free.sum() == 1
    assert "unwired_switch" not in build("rrg", n=20, ports=8, hosts_total=50).notes


def test_grids_equal_those_of_networkx():
    for dims in ([5], [4, 3], [2, 3, 4]):
        for kind, periodic in (("mesh", False), ("torus", [extent > 2 for extent in dims])):
            topology = build(kind, dims=dims)
            # networkx reverses the order of dimensions, but its nodes are tuples in ours
            graph = nx.grid_graph(dims[::-1], periodic if periodic is False else periodic[::-1])
            rows = topology.grid.coordinates.tolist()
            place = [tuple(row) if len(dims) > 1 else row[0] for row in rows]
            ours = {(place[u], place[v]) for u, v in zip(topology.src, topology.dst, strict=True)}
            assert ours == set(graph.to_directed().edges)


def test_grid_numbering_has_the_last_dimension_fastest():
    grid = build("torus", dims=[2, 3]).grid
    assert grid.dims == (2, 3)
    assert grid.wrap
    assert grid.coordinates.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert not build("mesh", dims=[2, 3]).grid.wrap


def test_a_de_bruijn_graph_of_more_channels_than_switches_repeats_them():
    topology = build("gdbg", n=5, degree=12)
    defined = [(i, (12 * i + alpha) % 5) for i in range(5) for alpha in range(12)]
    built = zip(topology.src.tolist(), topology.dst.tolist(), strict=True)
    assert sorted(built) == sorted((u, v) for u, v in defined if u != v)
    assert diameter(topology) == 1


def test_hypercube_equals_that_of_networkx():
    topology = build("hypercube", dim=4)
    bits = [tuple(row) for row in topology.grid.coordinates.tolist()]
    ours = {(bits[u], bits[v]) for u, v in zip(topology.src, topology.dst, strict=True)}
    assert ours == set(nx.hypercube_graph(4).to_directed().edges)
    assert bits[1] == (1, 0, 0, 0)
    assert topology.grid.dims == (2, 2, 2, 2)
    assert distance_counts(topology).tolist() == [16, 64, 96, 64, 16]


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"kind": "kautz", "degree": 12, "diameter": 9}, "diameter"),
        ({"kind": "random_digraph", "n": 6, "degree": 6}, "degree"),
        ({"kind": "rrg", "n": 9, "degree": 3}, "degree"),
        ({"kind": "rrg", "n": 6, "degree": 6}, "degree"),
        ({"kind": "rrg", "n": 6, "degree": 1}, "degree"),
        ({"kind": "rrg", "n": 6}, None),
        ({"kind": "rrg", "n": 6, "ports": 4}, None),
        ({"kind": "rrg", "n": 6, "degree": 2, "ports": 4}, "degree"),
        ({"kind": "rrg", "n": 6, "ports": 4, "hosts_total": 20}, "hosts_total"),
        ({"kind": "rrg", "n": 6, "ports": 12, "hosts_total": 6}, "ports"),
        ({"kind": "rrg", "n": 6, "ports": 1, "hosts_total": 1}, "ports"),
        ({"kind": "rrg", "n": 6, "ports": 4, "hosts_total": 6, "hosts_per_switch": 2}, "hosts_total"),
        ({"kind": "mddp", "n": 6, "degree": 6}, "degree"),
        ({"kind": "imase", "n": 256, "degree": 8, "a": 2}, None),  # not strongly connected
    ],
)
def test_impossible_parameters_are_refused(parameters, key):
    with pytest.raises(SpecError) as error:
        build(**parameters)
    assert error.value.key == key


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "torus", "dims": []},
        {"kind": "mesh", "dims": [3, 0]},
        {"kind": "hypercube", "dim": 21},
        {"kind": "kautz", "degree": 0, "diameter": 2},
        {"kind": "rrg", "n": 10, "degree": 3, "seed": -1},
        {"kind": "mddp", "n": 10, "degree": 3, "best_of": 0},
        {"kind": "file", "path": "x", "format": "pajek"},
    ],
)
def test_values_out_of_range_are_refused(parameters):
    with pytest.raises(ValidationError):
        make("topology", **parameters)


HUGE = 10**23


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({"kind": "rrg", "n": 200_000_000, "degree": 4}, "n"),
        ({"kind": "rrg", "n": 10_000_000, "degree": 3}, "n"),
        ({"kind": "rrg", "n": 40_000, "degree": 39_998}, "n"),
        ({"kind": "rrg", "n": HUGE, "ports": 4, "hosts_total": HUGE}, "hosts_total"),
        ({"kind": "torus", "dims": [20_000, 20_000]}, "dims"),
        ({"kind": "mesh", "dims": [HUGE]}, "dims"),
        ({"kind": "mesh", "dims": [4], "hosts_per_switch": 10**12}, "hosts_per_switch"),
        ({"kind": "mesh", "dims": [2], "hosts": [HUGE, 0]}, "hosts"),
        ({"kind": "mddp", "n": 100_000_000, "degree": 6}, "n"),
        ({"kind": "power_law", "n": 1_000_000, "mean_ports": 8, "hosts_total": 9}, "n"),
        ({"kind": "random_digraph", "n": 100_000, "degree": 90_000}, "n"),
        ({"kind": "imase", "n": HUGE, "degree": 3}, "n"),
        ({"kind": "gdbg", "n": 64, "degree": HUGE}, "degree"),
        ({"kind": "kautz", "degree": HUGE, "diameter": 64}, "diameter"),
        ({"kind": "kautz", "degree": HUGE, "diameter": 1}, "degree"),
        ({"kind": "vl2", "da": 4, "di": 4, "servers_per_tor": 10**12}, "servers_per_tor"),
        ({"kind": "dragonfly", "a": 4, "p": 10**12}, "p"),
        ({"kind": "subdivided", "p": 2, "path_hosts": 10**12, "base": {"kind": "torus", "dims": [4]}}, "path_hosts"),
        ({"kind": "two_cluster", "large": {"count": 10**12, "ports": 4, "servers": 1},
          "small": {"count": 4, "ports": 4, "servers": 1}}, "large.count"),
        ({"kind": "expanded", "base": {"kind": "torus", "dims": [4]},
          "steps": [{"ports": 4, "switches": 1, "times": 10**12}]}, "steps"),
        ({"kind": "expanded", "base": {"kind": "torus", "dims": [4]},
          "steps": [{"ports": 100, "switches": 1000, "times": 1000}]}, "steps"),
        ({"kind": "clos_expansion", "steps": [{"budget": 1, "times": 2**31 - 1}]}, "steps"),
        ({"kind": "clos_expansion", "steps": [{"budget": 0, "times": 100_000}]}, "steps"),
        ({"kind": "clos_expansion", "switches": 2**31 - 1}, "switches"),
        ({"kind": "clos_expansion", "edges_per_pod": 2000, "hosts_total": 96_000, "switches": 4003,
          "steps": [{"budget": 1e90}]}, "steps[0].budget"),
        ({"kind": "expanded", "base": {"kind": "torus", "dims": [4]},
          "steps": [{"ports": 4, "budget": 1e300, "hosts_total": HUGE}]}, "steps[0]"),
    ],
)  # fmt: skip
def test_absurd_sizes_are_refused_at_once(parameters, key):
    with pytest.raises(SpecError, match=r"at most|nearest") as error:
        build(**parameters)
    assert error.value.key == key


def test_numbers_beyond_64_bits_are_taken_modulo_the_order():
    assert build("imase", n=64, degree=6, b=1 + 64 * HUGE).edge_hash == build("imase", n=64, degree=6).edge_hash


@pytest.mark.parametrize(("n", "ports"), [(2, 2), (3, 2), (10, 4), (100, 2), (41, 3)])
def test_as_many_hosts_as_leave_a_tree_of_links(n, ports):
    most = n * ports - 2 * (n - 1)
    topology = build("rrg", n=n, ports=ports, hosts_total=most)
    assert topology.hosts == most
    assert topology.channels == 2 * (n - 1)
    with pytest.raises(SpecError, match=f"at most {most}$") as error:
        build("rrg", n=n, ports=ports, hosts_total=most + 1)
    assert error.value.key == "hosts_total"


def test_rings_are_connected_at_any_size():
    ring = build("rrg", n=500, degree=2)
    assert (ring.out_degree == 2).all()
    assert is_simple(ring)


def test_messages_name_what_is_valid():
    for parameters, message in [
        ({"kind": "slim_fly", "q": 1}, "nearest 3"), ({"kind": "slim_fly", "q": 2}, "nearest 3"),
        ({"kind": "rrg", "n": 6, "degree": 1}, "nearest 2"),
    ]:  # fmt: skip
        with pytest.raises(SpecError, match=message):
            build(**parameters)
    with pytest.raises(ValidationError) as error:
        make("topology", kind="hyperx", dims=[4, 4], multiplicity=0)
    assert error.value.error_count() == 1


def test_a_topology_that_is_not_strongly_connected_names_two_switches():
    with pytest.raises(SpecError, match=r"no path from switch \d+ to switch \d+") as error:
        build("imase", n=256, degree=8, a=2)
    u, v = map(int, re.findall(r"switch (\d+)", str(error.value)))
    graph = nx.DiGraph(make("topology", kind="imase", n=256, degree=8, a=2).graph().to_networkx())
    assert not nx.has_path(graph, u, v)


@pytest.mark.parametrize("kind", names("topology"))
def test_the_gallery_shows_every_family_as_it_is_documented(kind):
    page = (ROOT / "docs/topologies.md").read_text()
    section = page.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    assert (ROOT / f"docs/figures/topologies/{kind}.png").exists()
    shown = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])["topology"]
    assert shown == examples(kind)[0], "python docs/topologies.py writes the page anew"
