# SPDX-License-Identifier: Apache-2.0
"""Positions of the switches and hosts of a network in a drawing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology

Style = Literal["auto", "circular", "spring", "clustered", "layered", "grid", "matrix"]
"""How a topology is drawn; ``auto`` takes what suits it."""

MOST_NODES = 120
"""Switches beyond which ``auto`` draws a matrix."""

BOARD_GAP = 0.7
"""Places that boards are apart, over those of neighbours on a board."""

MOST_DIMENSIONS = 4
"""Dimensions of a grid beyond which they are not drawn askew, but one after another as rows and as columns."""

AROUND = 0.5
"""Room around the switches of a cluster, in distances of neighbours."""

WIDTH = 3.5
"""Width of a picture in inches: one column of a paper."""


@dataclass(frozen=True)
class Places:
    """Positions of switches; 1 is about the distance of neighbours.

    xy: float64 [switches, 2]. outward: float64 [switches, 2], unit vectors towards a switch's hosts. fan: half-angle of
    the fan of hosts. inward: whether short links bend to the centre, as on a circle. names: text and height of tiers.
    areas: centre and radius of clusters.
    """

    xy: Floats
    outward: Floats
    fan: float = 0.9
    inward: bool = False
    names: list[tuple[str, float]] = field(default_factory=list)
    areas: list[tuple[tuple[float, float], float]] = field(default_factory=list)

    @property
    def radius(self) -> float:
        """The radius of a switch: as large as looks well and leaves room between the nearest two."""
        nearest = 1.0
        if len(self.xy) > 1:
            nearest = float(cKDTree(self.xy).query(self.xy, k=2)[0][:, 1].min())
        span = float(np.ptp(self.xy, axis=0).max()) + 1
        return max(0.004 * span, min(0.34, 0.36 * nearest, 9 / (72 * WIDTH) * span))

    def spots(self, v: int, count: int, far: float = 1.9) -> Floats:
        """float64 [count, 2]: where hosts of a switch stand, in a fan on its outer side. far: radii from its middle."""
        turn = np.linspace(-1, 1, count) * min(self.fan, 0.3 * (count - 1))
        direction = np.arctan2(*self.outward[v][::-1]) + turn
        spots: Floats = self.xy[v] + far * self.radius * np.column_stack([np.cos(direction), np.sin(direction)])
        return spots


def _circular(topology: Topology) -> Places:
    """On a circle by number, clockwise from the top; short links bend inwards."""
    n = topology.switches
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    unit = np.column_stack([np.cos(angle), np.sin(angle)])
    return Places(unit * max(1.0, n / (2 * np.pi)), unit, inward=True)


def _spring(topology: Topology) -> Places:
    """Where springs along the links and repulsion between all switches come to rest."""
    graph = nx.empty_graph(topology.switches)
    graph.add_edges_from(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    positions = nx.spring_layout(graph, seed=1, iterations=200)
    xy = np.array([positions[v] for v in range(topology.switches)])
    xy *= max(1.0, 0.62 * np.sqrt(topology.switches))
    away = np.linalg.norm(xy, axis=1, keepdims=True)
    return Places(xy, xy / np.maximum(away, 1e-9))


def clusters_of(topology: Topology) -> list[int]:
    """The sizes of the clusters that follow one another in a topology's numbering; none where it has no clusters.

    They are those of notes["clusters"], or the equal groups of a dragonfly.
    """
    notes, n = topology.notes, topology.switches
    if "clusters" in notes:
        return [count for _, _, count in notes["clusters"]]
    size = notes.get("group_size", 0)
    return [size] * (n // size) if size and n == size * notes.get("groups", 0) else []


def _clustered(topology: Topology) -> Places:
    """Every cluster on a circle of its own, and these side by side on a large one, clockwise from the top."""
    sizes = np.array(clusters_of(topology))
    if not len(sizes):
        raise ValueError(f"{topology.kind} has no clusters to be drawn side by side")
    around = np.where(sizes > 1, 0.5 / np.sin(np.pi / np.maximum(sizes, 2)), 0.0)
    share = around + AROUND + 0.1  # of the large circle, to either side of a cluster's centre
    turn = np.pi / 2 - 2 * np.pi * (np.cumsum(share) - share / 2) / share.sum()
    outside = np.column_stack([np.cos(turn), np.sin(turn)])
    far = max(1.1 * share.sum() / np.pi, float(share.max())) * (len(sizes) > 1)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(topology.switches) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    angle = turn[cluster] - 2 * np.pi * place / sizes[cluster]
    unit = np.column_stack([np.cos(angle), np.sin(angle)])
    areas = [(tuple(far * centre), float(radius) + AROUND) for centre, radius in zip(outside, around, strict=True)]
    return Places(far * outside[cluster] + around[cluster, None] * unit, unit, fan=0.5, areas=areas)


def _layered(topology: Topology) -> Places:
    """Tier above tier in the order of notes["tiers"], each spread over the whole width; hosts below, and above where
    they only eject.
    """
    tiers = topology.notes.get("tiers")
    if not tiers:
        raise ValueError(f"{topology.kind} has no tiers to be drawn in layers")
    width = max(count for _, _, count in tiers)
    rise = max(1.6, 0.3 * width)
    xy = np.zeros((topology.switches, 2))
    names = []
    for level, (name, first, count) in enumerate(tiers):
        xy[first : first + count, 0] = (np.arange(count) + 0.5) * width / count
        xy[first : first + count, 1] = level * rise
        names.append((str(name), level * rise))
    only_ejects = (topology.ejection_count > 0) & (topology.host_count == 0)
    return Places(xy, np.where(only_ejects[:, None], [0.0, 1.0], [0.0, -1.0]), names=names)


def _grid(topology: Topology) -> Places:
    """By coordinates: the last dimension to the right, the one before it downwards, further ones askew.

    Of more than four dimensions each half counts along one axis, as rows of rows and columns of columns.
    """
    xy = _on_paper(topology)
    if xy is None:
        raise ValueError(f"{topology.kind} has no grid to be drawn by")
    return Places(xy, np.broadcast_to([0.8, -0.6], xy.shape), fan=0.4)


def _on_paper(topology: Topology) -> Floats | None:
    """float64 [switches, 2]: where a network that has coordinates is drawn; None of one without."""
    return _boards(topology) if "boards" in topology.notes else _coordinates(topology)


def _coordinates(topology: Topology) -> Floats | None:
    """float64 [switches, 2]: places in a grid, or by notes["dims"], numbered row by row; None of others."""
    grid, dims = topology.grid, _extents(topology)
    if not dims:
        return None
    places = np.indices(dims).reshape(len(dims), -1).T if grid is None else grid.coordinates
    xy: Floats = places @ (_steps(dims) if len(dims) <= MOST_DIMENSIONS else _nested(dims))
    return xy


def _extents(topology: Topology) -> list[int]:
    """Switches along each dimension; none of a network without coordinates, or where failures have taken some."""
    if topology.grid is not None:
        return list(topology.grid.dims)
    dims = list(topology.notes.get("dims") or ())
    return dims if dims and prod(dims) == topology.switches else []


def _boards(topology: Topology) -> Floats | None:
    """float64 [switches, 2]: a HammingMesh board by board, switches of rows to the right and of columns below.

    None where failures have taken switches from it.
    """
    boards, tiers = topology.notes["boards"], topology.notes["tiers"]
    a, b = boards["size"]
    size = {name: count for name, _, count in tiers}
    if size["accelerator"] != a * b * boards["columns"] * boards["rows"] or "failed" in topology.notes:
        return None
    j, i, r, c = np.indices((boards["rows"], boards["columns"], b, a)).reshape(4, -1)
    across, down = i * (a + BOARD_GAP) + c, j * (b + BOARD_GAP) + r
    parts = [np.column_stack([across, -down])]
    for name, line in (("row", np.unique(down)), ("column", np.unique(across))):
        beyond = (across if name == "row" else down).max() + 1 + BOARD_GAP
        for tier in (f"{name} switch", f"{name} spine"):
            each = size.get(tier, 0) // len(line)
            along, aside = np.repeat(line, each), np.tile(beyond + np.arange(each), len(line))
            parts.append(np.column_stack([aside, -along] if name == "row" else [along, -aside]))
            beyond += each
    return np.concatenate(parts)


def _steps(dims: Sequence[int]) -> Floats:
    """float64 [dimensions, 2]: the step along each dimension."""
    width, _, depth = [*dims[::-1], 1, 1][:3]
    askew = np.array([0.38, 0.42]) if depth == 2 else np.array([0.75, 0.62]) / depth
    across = np.array([1.0, 0.45]) * (width + 0.3)
    return np.array([[1.0, 0.0], [0.0, -1.0], askew, across][: len(dims)])[::-1]


def _nested(dims: Sequence[int]) -> Floats:
    """float64 [dimensions, 2]: steps down for the first half of the dimensions and to the right for the others.

    Along each, a step of a dimension is as long as all of the next one, and a gap.
    """
    steps = np.zeros((len(dims), 2))
    half = len(dims) // 2
    for part, direction in ((range(half), (0.0, -1.0)), (range(half, len(dims)), (1.0, 0.0))):
        step = 1.0
        for i in reversed(part):
            steps[i] = step * np.array(direction)
            step = step * dims[i] + 0.35
    return steps


STYLES: dict[str, Callable[[Topology], Places]] = {
    "circular": _circular,
    "spring": _spring,
    "clustered": _clustered,
    "layered": _layered,
    "grid": _grid,
}


def positions(topology: Topology, style: str) -> Places:
    """The positions in a style other than ``matrix``. Raises ``ValueError`` if it does not suit the topology."""
    return STYLES[style](topology)


def suitable(topology: Topology, most: int = MOST_NODES) -> Style:
    """The style that ``auto`` stands for. most: switches beyond which it is a matrix."""
    if topology.switches > most:
        return "matrix"
    if clusters_of(topology):
        return "clustered"
    dims, grid = _extents(topology), topology.grid
    ring = len(dims) == 1 and (grid is None or grid.wrap)
    if not ring and _on_paper(topology) is not None:
        return "grid"
    return "layered" if topology.notes.get("tiers") else "circular"
