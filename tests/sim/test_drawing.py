# SPDX-License-Identifier: Apache-2.0
"""Pictures of topologies: what is in them, where it stands, and that the same one comes out twice."""

import xml.etree.ElementTree as ElementTree

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import FancyArrowPatch

from flitlab.models.registry import make
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.sim.report.network.drawing import Drawing, draw_topology, figure_of
from flitlab.sim.report.network.places import STYLES, clusters_of, positions, suitable
from tests import long_after

KINDS = {
    "kautz": {"kind": "kautz", "degree": 3, "diameter": 2},
    "hypercube": {"kind": "hypercube", "dim": 4},
    "torus": {"kind": "torus", "dims": [4, 4]},
    "mesh": {"kind": "mesh", "dims": [2, 3, 4], "hosts_per_switch": 9},
    "imase": {"kind": "imase", "n": 24, "degree": 3},
    "rrg": {"kind": "rrg", "n": 32, "degree": 4},
    "polarfly": {"kind": "polarfly", "q": 4},
    "twisted_torus": {"kind": "twisted_torus", "dims": [6, 3], "twist": 3},
    "hammingmesh": {"kind": "hammingmesh", "a": 2, "b": 2, "x": 2, "y": 2},
    "hyperx": {"kind": "hyperx", "dims": [3, 5], "hosts_per_switch": 2},
    "cube": {"kind": "hypercube", "dim": 5},
    "dragonfly": {"kind": "dragonfly", "a": 4, "p": 2, "h": 2},
    "slim_fly": {"kind": "slim_fly", "q": 3},
    "vl2": {"kind": "vl2", "da": 4, "di": 4},
}


SUITS = {
    "kautz": "circular", "hypercube": "grid", "torus": "grid", "imase": "circular", "rrg": "circular", "hyperx": "grid",
    "cube": "grid", "dragonfly": "clustered", "slim_fly": "clustered", "vl2": "layered",
    "polarfly": "clustered", "twisted_torus": "grid", "hammingmesh": "grid",
}  # fmt: skip


def topology(name):
    return make("topology", **KINDS[name]).build()


def layered():
    """Two edge switches with two hosts each, two core switches."""
    tiers = [["edge", 0, 2], ["core", 2, 2]]
    links = [(0, 2), (0, 3), (1, 2), (1, 3)]
    return Topology.from_links("clos", 4, links, notes={"tiers": tiers}).with_hosts([2, 2, 0, 0])


def arrows(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


@pytest.mark.parametrize(("name", "style"), SUITS.items())
def test_style_that_suits(name, style):
    assert suitable(topology(name)) == style


def test_styles_of_layers_rings_and_large_networks():
    assert suitable(layered()) == "layered"
    assert suitable(make("topology", kind="torus", dims=[9]).build()) == "circular"
    assert suitable(make("topology", kind="hyperx", dims=[6]).build()) == "circular"
    assert suitable(make("topology", kind="torus", dims=[11, 11]).build()) == "matrix"


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("style", long_after(1, ["auto", "spring"]))
def test_every_link_channel_and_switch_is_drawn_once(name, style):
    found = topology(name)
    figure = figure_of(found, style)
    drawn = arrows(figure)
    one_way = int((found.reverse < 0).sum())
    assert len(drawn) == one_way + (found.channels - one_way) // 2
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert [label for label in labels if label.isdigit()] == [str(v) for v in range(found.switches)]
    hosts = [label for label in labels if label.startswith("×")]
    many = {"mesh": ["×9"] * 24, "vl2": ["×20"] * 4}.get(name, [])
    assert hosts == many
    stubs = figure.axes[0].collections[0].get_paths()
    assert len(stubs) == (0 if many else found.hosts)


def test_arrows_point_the_way_of_uni_directional_channels():
    arcs = [(0, 1), (1, 2), (2, 0), (1, 0)]
    ring = Topology.from_arcs("ring", 3, arcs)
    drawn = arrows(figure_of(ring))
    places = positions(ring, "circular")
    ends = np.array([patch._posA_posB for patch in drawn])  # [arrows, end, coordinate]
    way = places.xy[ring.dst] - places.xy[ring.src]
    assert np.allclose(ends[:, 1] - ends[:, 0], way)
    aside = ends[:, 0] - places.xy[ring.src]
    assert np.linalg.norm(aside, axis=1) == pytest.approx(0.5 * places.radius)  # both ways stand apart by a radius
    assert ((way[:, 1] * aside[:, 0] - way[:, 0] * aside[:, 1]) > 0).all()  # to the right
    assert all(type(patch.get_arrowstyle()).arrow == "-|>" for patch in drawn)
    assert all(type(patch.get_arrowstyle()).arrow == "-" for patch in arrows(figure_of(layered())))


def test_parallel_links_do_not_cover_each_other():
    links = Topology.from_links("parallel", 2, [(0, 1)] * 3)
    assert len({patch.get_connectionstyle().rad for patch in arrows(figure_of(links, "spring"))}) == 3


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("style", STYLES)
def test_switches_do_not_overlap(name, style):
    found = topology(name)
    try:
        places = positions(found, style)
    except ValueError as error:
        pytest.skip(str(error))
    apart = np.linalg.norm(places.xy[:, None] - places.xy, axis=2)
    assert apart[~np.eye(len(apart), dtype=bool)].min() > 2 * places.radius
    assert np.linalg.norm(places.outward, axis=1) == pytest.approx(1)


def test_layers_stand_on_each_other_with_hosts_below():
    places = positions(layered(), "layered")
    assert places.xy[0, 1] == places.xy[1, 1] < places.xy[2, 1] == places.xy[3, 1]
    assert [name for name, _ in places.names] == ["edge", "core"]
    assert (places.outward == [0, -1]).all()
    assert "edge" in [text.get_text() for text in figure_of(layered()).axes[0].texts]


def test_clusters_stand_apart():
    for kind in (
        {"kind": "polarfly", "q": 4},
        {"kind": "dragonfly", "a": 4},
        {"kind": "dring", "supernodes": 5, "switches": 12},
    ):
        found = make("topology", **kind).build()
        assert suitable(found) == "clustered"
        sizes = clusters_of(found)
        assert sum(sizes) == found.switches
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        xy = positions(found, "clustered").xy
        centre = np.array([xy[cluster == i].mean(axis=0) for i in range(len(sizes))])
        nearest = np.linalg.norm(xy[:, None] - centre, axis=2).argmin(axis=1)
        assert (nearest == cluster).all()
    broken = make("topology", kind="dragonfly", a=4, failures={"switches": 1}).build()
    assert suitable(broken) == "circular"  # its groups are not equal any more
    broken = make("topology", kind="slim_fly", q=3, failures={"switches": 1}).build()
    assert sorted(clusters_of(broken)) == [2, 3, 3, 3, 3, 3]


def test_boards_of_a_hammingmesh_stand_in_rows_and_columns():
    parameters = {"kind": "hammingmesh", "a": 2, "b": 2, "x": 3, "y": 2, "radix": 4}  # with two levels of switches
    found = make("topology", **parameters).build()
    xy = positions(found, "grid").xy
    node = xy[:24].reshape(2, 3, 2, 2, 2)  # board row, board column, row, column
    assert (np.diff(node, axis=3) == [1, 0]).all()
    assert (np.diff(node, axis=2) == [0, -1]).all()
    assert (np.diff(node, axis=1)[..., 0] > 2).all()
    first = {name: first for name, first, _ in found.notes["tiers"]}
    row, column = first["row switch"], first["column switch"]
    assert xy[row, 1] == node[0, 0, 0, 0, 1]
    assert xy[row, 0] > node[..., 0].max()
    assert xy[column, 0] == node[0, 0, 0, 0, 0]
    assert xy[column, 1] < node[..., 1].min()
    broken = make("topology", **parameters, failures={"switches": 1}).build()
    assert suitable(broken) == "layered"


@pytest.mark.parametrize("name", ["dragonfly", "slim_fly", "polarfly"])
def test_the_disc_of_a_cluster_holds_its_switches_and_no_others(name):
    found = topology(name)
    places = positions(found, "clustered")
    sizes = clusters_of(found)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    assert len(places.areas) == len(sizes)
    for i, (centre, radius) in enumerate(places.areas):
        inside = np.linalg.norm(places.xy - centre, axis=1) < radius
        assert (inside == (cluster == i)).all()


def test_rows_and_columns_of_a_hyperx_are_its_dimensions():
    found = topology("hyperx")
    xy = positions(found, "grid").xy
    assert len(np.unique(xy[:, 0])) == 5 and len(np.unique(xy[:, 1])) == 3
    assert ((xy[found.src] == xy[found.dst]).sum(axis=1) == 1).all()  # neighbours share a row or a column


def test_every_link_of_a_hypercube_is_along_a_row_or_a_column():
    found = topology("cube")
    xy = positions(found, "grid").xy
    assert ((xy[found.src] == xy[found.dst]).sum(axis=1) == 1).all()


@pytest.mark.parametrize("name", ["hyperx", "cube", "torus", "dragonfly"])
def test_nothing_reaches_out_of_the_picture(name):
    figure = figure_of(topology(name))
    (left, right), (bottom, top) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    for arrow in arrows(figure):
        a, b = np.array(arrow._posA_posB)
        middle = (a + b) / 2 + 0.5 * arrow.get_connectionstyle().rad * np.array([b[1] - a[1], a[0] - b[0]])
        assert left <= middle[0] <= right and bottom <= middle[1] <= top


def test_neighbours_on_a_grid_stand_side_by_side():
    mesh = make("topology", kind="mesh", dims=[3, 5]).build()
    xy = positions(mesh, "grid").xy
    assert np.linalg.norm(xy[mesh.src] - xy[mesh.dst], axis=1) == pytest.approx(1)
    assert xy[1] == pytest.approx([1, 0])
    assert xy[5] == pytest.approx([0, -1])


def test_links_bend_around_switches_in_their_way():
    ring = make("topology", kind="torus", dims=[4, 4]).build()
    bent = [patch for patch in arrows(figure_of(ring)) if patch.get_connectionstyle().rad != 0]
    assert len(bent) == 8


def test_matrix_shows_the_hops():
    found = make("topology", kind="imase", n=130, degree=3).build()
    figure = figure_of(found)
    image = figure.axes[0].images[0]
    assert (image.get_array() == distances(found)).all()
    assert figure.axes[0].get_ylabel() == "from switch"


def test_large_matrix_shows_means_of_blocks():
    found = make("topology", kind="torus", dims=[40, 30]).build()
    shown = figure_of(found).axes[0].images[0].get_array()
    hops = distances(found)
    assert shown.shape == (600, 600)
    assert shown[3, 7] == pytest.approx(hops[6:8, 14:16].mean())
    odd = make("topology", kind="torus", dims=[1001]).build()
    assert figure_of(odd, "matrix").axes[0].images[0].get_array()[-1, -1] == 0


def test_caption_says_what_is_drawn():
    petersen = Topology.from_links("file", 10, list(nx.petersen_graph().edges), notes={"file": "a/petersen.txt"})
    text = figure_of(petersen.with_hosts(1)).get_suptitle()
    assert text == "petersen, n = 10, bi-directional\ndegree 3 · diameter 2 · ASPL 1.667 · 10 hosts"
    halves = Topology.from_links("halves", 4, [(0, 1), (2, 3)])
    assert "not strongly connected" in figure_of(halves).get_suptitle()
    assert (np.diag(figure_of(halves, "matrix").axes[0].images[0].get_array()) == 0).all()


@pytest.mark.long
@pytest.mark.parametrize(("suffix", "style"), [("svg", "auto"), ("svg", "spring"), ("svg", "matrix"), ("png", "auto")])
def test_same_bytes_twice(suffix, style, tmp_path):
    first, second = (draw_topology(topology("imase"), tmp_path / f"{i}.{suffix}", style) for i in "ab")
    assert first.read_bytes() == second.read_bytes()
    if suffix == "png":
        height, width = imread(first).shape[:2]
        assert width == 1050
        assert height > 800
    else:
        assert ElementTree.parse(first).getroot().tag.endswith("svg")


def test_bad_requests_are_refused(tmp_path):
    rrg = topology("rrg")
    with pytest.raises(ValueError, match="no style 'round'; choices: auto, circular"):
        draw_topology(rrg, tmp_path / "x.png", "round")
    with pytest.raises(ValueError, match="no grid"):
        draw_topology(rrg, tmp_path / "x.png", "grid")
    with pytest.raises(ValueError, match="no tiers"):
        draw_topology(rrg, tmp_path / "x.png", "layered")
    with pytest.raises(ValueError, match=r"pictures are \.png or \.svg"):
        draw_topology(rrg, tmp_path / "x.pdf")
    with pytest.raises(ValueError, match="no clusters"):
        draw_topology(rrg, tmp_path / "x.png", "clustered")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="No such file"):
        draw_topology(rrg, tmp_path / "none" / "x.png")


def test_one_switch_without_links_is_drawn(tmp_path):
    file = draw_topology(Topology.from_links("one", 1, []).with_hosts(3), tmp_path / "one.png")
    assert imread(file).min() < 0.5


def test_labels_stand_on_the_lines_of_their_channels():
    topology = make("topology", kind="torus", dims=[5, 4]).build()
    figure = Figure()
    drawing = Drawing(figure, figure.add_subplot(), topology, positions(topology, "grid"), lambda _: {}, lambda _: "k")
    drawing.draw()
    arrows = [patch for patch in drawing.ax.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == len(drawing.lines) == 40 and any(bend for _, bend in drawing.lines)
    for (channel, _), arrow in zip(drawing.lines, arrows, strict=True):
        ends = drawing.xy[topology.src[channel]], drawing.xy[topology.dst[channel]]
        a, bent, b = arrow.get_connectionstyle()(*ends, shrinkA=0, shrinkB=0).vertices
        assert drawing.on_line(channel, 0.5) == pytest.approx(a / 4 + bent / 2 + b / 4)
        assert drawing.on_line(channel, 0.3) == pytest.approx(drawing.on_line(int(topology.reverse[channel]), 0.7))
