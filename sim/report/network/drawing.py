"""Draws networks on a circle, by springs, in clusters or layers or on a grid, and large ones as matrices of hops."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from flitlab.models.arrays import Floats, Integers
from flitlab.models.topology.distances import distance_counts, distances, mean_hops
from flitlab.models.topology.graph import Topology
from flitlab.sim.report.figures.style import in_style, save_as
from flitlab.sim.report.network.places import PLACES, WIDTH, Places, Style, suitable

LEAST_TEXT = 4.5
"""Font size below which switches go without their numbers."""

MOST_HOSTS = 6
"""Hosts of a switch beyond which their number stands in their place."""

MOST_CELLS = 1000
"""Rows of a matrix beyond which blocks of switches share a cell."""

KEEP_RIGHT = 0.5
"""Radii of a switch by which an arrow runs to the right of the line between two switches."""

SWITCH, HOST, LINK = "#0b4f80", "#8c8c8c", "#707070"


def draw_topology(topology: Topology, path: str | Path, style: Style = "auto") -> Path:
    """Draws a topology into a PNG or SVG file, by its suffix; the same bytes every time.

    Switches are numbered discs, hosts small grey dots, bi-directional links lines and uni-directional channels
    arrows. A matrix shows the hops from each switch (row) to each other (column).

    Parameters
    ----------
    style: ``circular``, on a circle by number; ``spring``, by forces; ``clustered``, cluster beside cluster (needs
        notes["clusters"], or groups); ``layered``, tier by tier (needs notes["tiers"]); ``grid``, by coordinates (needs
        a topology.grid of up to four dimensions, a twisted torus or a HammingMesh); ``matrix``.
        ``auto`` draws a matrix of more than :data:`MOST_NODES` switches, else clustered, grid or layered where
        possible, else circular.

    Returns
    -------
    The file.

    Raises
    ------
    ValueError: another suffix; a style that does not exist or does not suit the topology.
    OSError: the file cannot be written.
    """
    return save_as(lambda: figure_of(topology, style), Path(path))


@in_style
def figure_of(topology: Topology, style: Style = "auto") -> Figure:
    """The figure that :func:`draw_topology` saves. Raises ``ValueError`` as it does."""
    if style not in get_args(Style):
        raise ValueError(f"no style {style!r}; choices: {', '.join(get_args(Style))}")
    if style == "auto":
        style = suitable(topology)
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_caption(topology), fontsize=8)
    ax = figure.add_subplot()
    if style == "matrix":
        figure.set_size_inches(WIDTH, 3.4)
        _matrix(figure, ax, topology)
    else:
        Drawing(figure, ax, topology, PLACES[style](topology)).draw()
    return figure


def _caption(topology: Topology) -> str:
    """Name, size and distances, in two lines."""
    low, high = int(topology.out_degree.min()), int(topology.out_degree.max())
    parts = [f"degree {high}" if low == high else f"degree {low}–{high}"]
    try:
        counts = distance_counts(topology)
        parts += [f"diameter {len(counts) - 1}", f"ASPL {mean_hops(counts):.3f}"]
    except ValueError:
        parts.append("not strongly connected")
    if topology.hosts:
        parts.append(f"{topology.hosts} hosts")
    way = "uni-directional" if topology.directed else "bi-directional"
    name = Path(topology.notes.get("file", topology.kind)).stem
    return f"{name}, n = {topology.switches}, {way}\n" + " · ".join(parts)


class Drawing:
    """Switches, links and hosts on an ax, which it gives its size.

    stroke: what is particular about the line of a channel (for a bi-directional link, the first of its two). fill: the
    colour of a switch.
    """

    def __init__(
        self, figure: Figure, ax: Axes, topology: Topology, places: Places,
        stroke: Callable[[int], dict[str, Any]] = lambda channel: {}, fill: Callable[[int], str] = lambda v: SWITCH,
    ):  # fmt: skip
        self.ax, self.topology, self.places, self.stroke, self.fill = ax, topology, places, stroke, fill
        self.xy, self.radius = places.xy, places.radius
        room = (2.3 if topology.hosts else 1.4) * self.radius
        (left, bottom), (right, top) = self.xy.min(axis=0) - room, self.xy.max(axis=0) + room
        self.left = left - (0.05 * (right - left) if places.names else 0)
        self.points = 72 * WIDTH / (right - self.left)  # of paper per unit
        ax.set_axis_off()
        ax.set_aspect("equal")
        ax.set_xlim(self.left, right)
        ax.set_ylim(bottom, top)
        figure.set_size_inches(WIDTH, WIDTH * (top - bottom) / (right - self.left) + 0.4)

    def draw(self) -> None:
        """Everything, from the lightest to the heaviest."""
        self._hosts()
        self._links()
        self._switches()
        for name, y in self.places.names:
            self.ax.text(self.left, y, name, rotation=90, ha="left", va="center", fontsize=7)

    def _switches(self) -> None:
        discs = [Circle(tuple(place), self.radius) for place in self.xy]
        colours = [self.fill(v) for v in range(len(discs))]
        self.ax.add_collection(PatchCollection(discs, facecolor=colours, edgecolor="none", zorder=3))
        digits = len(str(self.topology.switches - 1))
        size = min(8.0, (1.15 if digits < 3 else 0.85) * self.radius * self.points)
        if size < LEAST_TEXT:
            return
        style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": "white", "zorder": 4}
        for v, (x, y) in enumerate(self.xy.tolist()):
            self.ax.text(x, y, str(v), fontsize=size, **style)

    def _hosts(self) -> None:
        """Dots in a fan on the outer side of each switch, or their number if they are many."""
        dots = []
        for v, count in enumerate(self.topology.host_count.tolist()):
            spots = self.places.spots(v, count if count <= MOST_HOSTS else 1)
            if count > MOST_HOSTS:
                size = min(6.5, 0.8 * self.radius * self.points)
                x, y = spots[0]
                self.ax.text(x, y, f"×{count}", ha="center", va="center", color=HOST, fontsize=size)
                continue
            for spot in spots:
                self.ax.plot(*zip(self.xy[v], spot, strict=True), color=HOST, linewidth=0.4, zorder=1)
            dots += [Circle(tuple(spot), 0.2 * self.radius) for spot in spots]
        self.ax.add_collection(PatchCollection(dots, facecolor=HOST, edgecolor="none", zorder=2))

    def _links(self) -> None:
        """A line for a link, an arrow for a uni-directional channel; repeated ones are bent apart.

        Arrows keep to the right, so that at a switch those that arrive stand beside those that leave.
        """
        topology, xy = self.topology, self.xy
        pairs = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
        drawn = np.flatnonzero(topology.reverse < np.arange(topology.channels)).tolist()
        head = float(np.clip(0.9 * self.radius * self.points, 3, 8))
        width = float(np.clip(6 / np.sqrt(len(drawn) + 1), 0.3, 0.8))
        copies: Counter[tuple[int, int]] = Counter()
        for c in drawn:
            u, v = pairs[c]
            one_way = topology.reverse[c] < 0
            bend = self._bend(u, v, one_way)
            bend += 0.16 * ((copies[u, v] + 1) // 2) * (-1) ** copies[u, v]
            copies[u, v] += 1
            way = (xy[v] - xy[u]) / np.linalg.norm(xy[v] - xy[u])
            aside = KEEP_RIGHT * self.radius * one_way * np.array([way[1], -way[0]])
            look: dict[str, Any] = {"linewidth": width, "color": LINK, "zorder": 1.5} | self.stroke(c)
            arrow = FancyArrowPatch(
                tuple(xy[u] + aside),
                tuple(xy[v] + aside),
                connectionstyle=f"arc3,rad={bend:.6f}",
                arrowstyle="-|>,head_length=0.5,head_width=0.2" if one_way else "-",
                mutation_scale=head,
                shrinkA=0.8 * self.radius * self.points,
                shrinkB=(0.9 if one_way else 0.8) * self.radius * self.points,
                **look,
            )
            self.ax.add_patch(arrow)

    def _bend(self, u: int, v: int, one_way: bool) -> float:
        """Curvature, to the right of the way from u to v, that keeps a link clear of other switches.

        On a circle short links bend inwards; arrows only where they must, as that brings their ends together.
        """
        a, b = self.xy[u], self.xy[v]
        length = float(np.linalg.norm(b - a))
        if self.places.inward:
            if abs(u - v) in (1, len(self.xy) - 1) or (one_way and not self._passes_over(u, v)):
                return 0.0
            across = float(np.ptp(self.xy, axis=0).max())
            clockwise = float(np.sign(a[1] * b[0] - a[0] * b[1]))
            makes_good = 2 * KEEP_RIGHT * self.radius / length if one_way else 0.0
            return clockwise * (max(0.0, 0.3 * (1 - length / across)) + makes_good)
        return 3.8 * self.radius / length if self._passes_over(u, v) else 0.0

    def _passes_over(self, u: int, v: int) -> bool:
        """Whether the straight line between two switches touches another one."""
        way = self.xy[v] - self.xy[u]
        along = (self.xy - self.xy[u]) @ way / (way @ way)
        apart = np.linalg.norm(self.xy - self.xy[u] - along[:, None] * way, axis=1)
        return bool(((along > 0.01) & (along < 0.99) & (apart < 0.9 * self.radius)).any())


def _matrix(figure: Figure, ax: Axes, topology: Topology) -> None:
    """Hops between all switches, near ones dark; neighbours alone if some cannot be reached."""
    try:
        hops = distances(topology)
    except ValueError:
        hops = np.full((topology.switches, topology.switches), 2, np.uint8)
        hops[topology.src, topology.dst] = 1
        np.fill_diagonal(hops, 0)
    diameter = int(hops.max())
    block = -(-topology.switches // MOST_CELLS)
    if block > 1:
        hops = _block_means(hops, block)
    shades = ListedColormap(colormaps["cividis"](np.linspace(0, 1, diameter + 1)))
    norm = BoundaryNorm(np.arange(diameter + 2) - 0.5, diameter + 1)
    image = ax.imshow(
        hops, interpolation="nearest", extent=(-0.5, topology.switches - 0.5, topology.switches - 0.5, -0.5),
        **({"cmap": shades, "norm": norm} if block == 1 else {"cmap": "cividis"}),
    )  # fmt: skip
    ax.grid(False)
    ax.set_xlabel("to switch")
    ax.set_ylabel("from switch")
    bar = figure.colorbar(image, ax=ax, shrink=0.8, label="hops" if block == 1 else f"mean hops of {block} × {block}")
    if block == 1 and diameter <= 12:
        bar.set_ticks(range(diameter + 1))
    bar.ax.tick_params(which="both", length=0)


def _block_means(table: Integers, block: int) -> Floats:
    """Means over square blocks; those at the lower and right edge may be smaller."""
    starts = np.arange(0, len(table), block)
    sums = np.add.reduceat(np.add.reduceat(table, starts, axis=0, dtype=np.int64), starts, axis=1)
    sizes = np.diff(np.append(starts, len(table)))
    means: Floats = sums / np.outer(sizes, sizes)
    return means
