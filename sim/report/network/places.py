"""Where the switches and hosts of a network stand in a drawing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology

Style = Literal["auto", "circular", "spring", "layered", "grid", "matrix"]
"""How a topology is drawn; ``auto`` takes what suits it."""

MOST_NODES = 120
"""Switches beyond which ``auto`` draws a matrix."""

WIDTH = 3.5
"""Width of a picture in inches: one column of a paper."""


@dataclass(frozen=True)
class Places:
    """Where switches stand; 1 is about the distance of neighbours.

    xy: float64 [switches, 2]. outward: float64 [switches, 2], unit vectors towards a switch's hosts. fan: angle to
    either side over which they may spread. inward: whether short links bend to the centre, as on a circle. names:
    text and height of tiers.
    """

    xy: Floats
    outward: Floats
    fan: float = 0.9
    inward: bool = False
    names: list[tuple[str, float]] = field(default_factory=list)

    @property
    def radius(self) -> float:
        """The radius of a switch: as large as looks well and leaves room between the nearest two."""
        nearest = 1.0
        if len(self.xy) > 1:
            nearest = float(cKDTree(self.xy).query(self.xy, k=2)[0][:, 1].min())
        span = float(np.ptp(self.xy, axis=0).max()) + 1
        return max(0.004 * span, min(0.34, 0.36 * nearest, 9 / (72 * WIDTH) * span))

    def spots(self, v: int, count: int) -> Floats:
        """float64 [count, 2]: where hosts of a switch stand, in a fan on its outer side."""
        turn = np.linspace(-1, 1, count) * min(self.fan, 0.3 * (count - 1))
        direction = np.arctan2(*self.outward[v][::-1]) + turn
        spots: Floats = self.xy[v] + 1.9 * self.radius * np.column_stack([np.cos(direction), np.sin(direction)])
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
    found = nx.spring_layout(graph, seed=1, iterations=200)
    xy = np.array([found[v] for v in range(topology.switches)])
    xy *= max(1.0, 0.62 * np.sqrt(topology.switches))
    away = np.linalg.norm(xy, axis=1, keepdims=True)
    return Places(xy, xy / np.maximum(away, 1e-9))


def _layered(topology: Topology) -> Places:
    """Tier above tier in the order of notes["tiers"], each spread over the whole width; hosts below."""
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
    return Places(xy, np.broadcast_to([0.0, -1.0], xy.shape), names=names)


def _grid(topology: Topology) -> Places:
    """By coordinates: the last dimension to the right, the one before it downwards, further ones askew."""
    steps = _steps(topology)
    if topology.grid is None or steps is None:
        raise ValueError(f"{topology.kind} has no grid of up to four dimensions to be drawn by")
    xy = topology.grid.coordinates @ steps
    return Places(xy, np.broadcast_to([0.8, -0.6], xy.shape), fan=0.4)


def _steps(topology: Topology) -> Floats | None:
    """float64 [dimensions, 2]: the step along each dimension; None without a grid that fits on paper."""
    if topology.grid is None or len(topology.grid.dims) > 4:
        return None
    width, _, depth = [*topology.grid.dims[::-1], 1, 1][:3]
    askew = np.array([0.38, 0.42]) if depth == 2 else np.array([0.75, 0.62]) / depth
    across = np.array([1.0, 0.45]) * (width + 0.3)
    return np.array([[1.0, 0.0], [0.0, -1.0], askew, across][: len(topology.grid.dims)])[::-1]


PLACES: dict[str, Callable[[Topology], Places]] = {
    "circular": _circular,
    "spring": _spring,
    "layered": _layered,
    "grid": _grid,
}


def suitable(topology: Topology, most: int = MOST_NODES) -> Style:
    """The style that ``auto`` stands for. most: switches beyond which it is a matrix."""
    if topology.switches > most:
        return "matrix"
    if topology.notes.get("tiers"):
        return "layered"
    ring = topology.grid is not None and topology.grid.wrap and len(topology.grid.dims) == 1
    return "circular" if ring or _steps(topology) is None else "grid"
