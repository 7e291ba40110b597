# SPDX-License-Identifier: Apache-2.0
"""Draws networks on a circle, by springs, in clusters or layers or on a grid, and large ones as matrices of hops."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.patheffects import withStroke

from flitlab.models.arrays import Floats, Integers
from flitlab.models.topology.distances import distance_counts, distances, mean_hops
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.sim.report.figures.style import ArtistProperties, in_style, new_figure, save_as
from flitlab.sim.report.network.places import WIDTH, Places, Style, positions, suitable

LEAST_TEXT = 4.5
"""Font size below which switches go without their names."""

MOST_INSIDE = 3
"""Letters of a name up to which it stands on its switch; a longer one stands beside it."""

MOST_BESIDE = 14
"""Letters of a name that are shown beside a switch."""

LABEL_SIZE, LETTER = 5.5, 0.58
"""Font size of names beside switches, and the width of a letter in it."""

MOST_HOSTS = 6
"""Hosts of a switch beyond which their number stands in their place."""

MOST_CELLS = 1000
"""Rows of a matrix beyond which blocks of switches share a cell."""

KEEP_RIGHT = 0.5
"""Radii of a switch by which an arrow runs to the right of the line between two switches."""

MOST_UPRIGHT = 20
"""Switches on a circle up to which their names are not turned."""

SIDEWAYS = 0.35
"""Least horizontal part of the outward direction at which a name stands to the side of its switch."""

STUB = (1.15, 1.75)
"""Where the stub of a host begins and ends, in radii from the middle of its switch."""

SWITCH, HOST, LINK, AREA = "#0b4f80", "#b9a27c", "#707070", "#eef3f7"


def draw_topology(topology: Topology, path: str | Path, style: Style = "auto") -> Path:
    """Draws a topology into a PNG or SVG file, by its suffix; the same bytes every time.

    Switches are discs with their labels or numbers, hosts short stubs on them, bi-directional links lines and
    uni-directional channels arrows. A matrix shows the hops from each switch (row) to each other (column).

    Parameters
    ----------
    style: ``circular``, on a circle by number; ``spring``, by forces; ``clustered``, cluster beside cluster (needs
        notes["clusters"], or groups); ``layered``, tier by tier (needs notes["tiers"]); ``grid``, by coordinates (needs
        a topology.grid, notes["dims"] or a HammingMesh); ``matrix``.
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
    figure = new_figure()
    figure.suptitle(_caption(topology), fontsize=8)
    ax = figure.add_subplot()
    if style == "matrix":
        figure.set_size_inches(WIDTH, 3.4)
        _matrix(figure, ax, topology)
    else:
        Drawing(figure, ax, topology, positions(topology, style)).draw()
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
    direction = "uni-directional" if topology.directed else "bi-directional"
    name = Path(topology.notes.get("file", topology.kind)).stem
    return f"{name}, n = {topology.switches}, {direction}\n" + " · ".join(parts)


class Drawing:
    """Switches, links and hosts on axes, which it scales.

    stroke: style of the line of a channel (of a link, the first of its two). fill: colour of a switch.
    """

    def __init__(
        self, figure: Figure, ax: Axes, topology: Topology, places: Places,
        stroke: Callable[[int], ArtistProperties] = lambda channel: {}, fill: Callable[[int], str] = lambda v: SWITCH,
    ):  # fmt: skip
        self.ax, self.topology, self.places, self.stroke, self.fill = ax, topology, places, stroke, fill
        self.xy, self.radius = places.xy, places.radius
        margin = (2.3 if topology.hosts else 1.4) * self.radius
        self.lines, self.names = self._lines(), self._names()
        self.beside = max(map(len, self.names)) > MOST_INSIDE
        reach = np.concatenate([self.xy - margin, self.xy + margin, *self._areas_reach(), *self._arcs_reach()])
        (left, bottom), (right, top) = reach.min(axis=0), reach.max(axis=0)
        for _ in range(3 if self.beside else 1):  # names take room on paper, and the scale depends on that room
            self.left = left - (0.05 * (right - left) if places.names else 0)
            self.points = 72 * WIDTH / (right - self.left)  # of paper per unit
            boxes = np.concatenate([reach, *self._names_reach()])
            (left, bottom), (right, top) = boxes.min(axis=0), boxes.max(axis=0)
        ax.set_axis_off()
        ax.set_aspect("equal")
        ax.set_xlim(self.left, right)
        ax.set_ylim(bottom, top)
        figure.set_size_inches(WIDTH, WIDTH * (top - bottom) / (right - self.left) + 0.4)

    def draw(self) -> None:
        """Everything, from the lightest to the heaviest."""
        self._hosts()
        self._areas()
        self._links()
        self._switches()
        for name, y in self.places.names:
            self.ax.text(self.left, y, name, rotation=90, ha="left", va="center", fontsize=7)

    def _areas(self) -> None:
        """Pale discs behind what stands together."""
        discs = [Circle(centre, radius) for centre, radius in self.places.areas]
        self.ax.add_collection(PatchCollection(discs, facecolor=AREA, edgecolor="none", zorder=0.5))

    def _switches(self) -> None:
        discs = [Circle(tuple(place), self.radius) for place in self.xy]
        colours = [self.fill(v) for v in range(len(discs))]
        self.ax.add_collection(PatchCollection(discs, facecolor=colours, edgecolor="none", zorder=3))
        if self.beside:
            self._names_beside()
            return
        letters = max(map(len, self.names))
        size = min(8.0, (1.15 if letters < 3 else 0.85) * self.radius * self.points)
        if size < LEAST_TEXT:
            return
        style: ArtistProperties = {"ha": "center", "va": "center_baseline", "color": "white", "zorder": 4}
        for name, (x, y) in zip(self.names, self.xy.tolist(), strict=True):
            self.ax.text(x, y, name, fontsize=size, parse_math=False, **style)

    def _names(self) -> list[str]:
        """The names of the switches, long ones cut short."""
        names = switch_names(self.topology)
        labels = map(names.label, range(self.topology.switches))
        return [label if len(label) <= MOST_BESIDE else f"{label[: MOST_BESIDE - 1]}…" for label in labels]

    def _names_beside(self) -> None:
        """Names on the outer side of their switches, beyond the hosts; of many on a circle, along its radii."""
        halo = [withStroke(linewidth=1.6, foreground="white")]
        style: ArtistProperties = {"fontsize": self.text_size, "color": "#202020", "zorder": 4, "path_effects": halo}
        places = zip(self.names, self._beside().tolist(), self.places.outward.tolist(), strict=True)
        for name, (x, y), (dx, dy) in places:
            sideways = self.radial or abs(dx) >= SIDEWAYS
            across = ("left" if dx >= 0 else "right") if sideways else "center"
            upright = "center" if sideways else "bottom" if dy > 0 else "top"
            turn = float(np.degrees(np.arctan2(dy, dx) if dx >= 0 else np.arctan2(-dy, -dx))) if self.radial else 0.0
            turned: ArtistProperties = {"rotation": turn, "rotation_mode": "anchor"}
            self.ax.text(x, y, name, ha=across, va=upright, parse_math=False, **turned, **style)

    @property
    def radial(self) -> bool:
        """Whether names stand along the radii of a circle."""
        return self.places.inward and len(self.names) > MOST_UPRIGHT

    @property
    def text_size(self) -> float:
        """Font size of names beside switches: smaller where many stand close together on a circle."""
        return min(LABEL_SIZE, self.points / 1.1) if self.radial else LABEL_SIZE

    def _beside(self) -> Floats:
        """float64 [switches, 2]: where names beside their switches begin."""
        far = 1.15 if not self.topology.hosts else 2.05
        places: Floats = self.xy + far * self.radius * self.places.outward
        return places

    def _names_reach(self) -> list[Floats]:
        """Corners of the boxes of names beside switches."""
        if not self.beside:
            return []
        size, at, out = self.text_size / self.points, self._beside(), self.places.outward
        wide, high = LETTER * size * np.array([[len(name)] for name in self.names]), 1.3 * size
        if self.radial:
            return [at, at + wide * out]
        sideways = np.abs(out[:, :1]) >= SIDEWAYS
        along = np.where(sideways, np.sign(out) * wide * [1, 0], np.sign(out) * high * [0, 1])
        half = np.where(sideways, high / 2 * np.array([[0.0, 1.0]]), wide / 2 * [1, 0])
        return [at - half, at + half, at + along - half, at + along + half]

    def _hosts(self) -> None:
        """Draw hosts as stubs in a fan on the outer side of each switch, or their number if there are many.

        A stub is short, thick, pale and open-ended, so that it is not read as a link.
        """
        stubs, topology = [], self.topology
        each = topology.host_count + (topology.ejection_count if topology.is_multistage else 0)
        for v, count in enumerate(each.tolist()):
            if count > MOST_HOSTS:
                size = min(6.5, 0.8 * self.radius * self.points)
                x, y = self.places.spots(v, 1)[0]
                self.ax.text(x, y, f"×{count}", ha="center", va="center", color=HOST, fontsize=size)
                continue
            ends = [self.places.spots(v, count, far) for far in STUB]
            stubs += [[start, end] for start, end in zip(*ends, strict=True)]
        width = float(np.clip(0.3 * self.radius * self.points, 0.6, 2.2))
        self.ax.add_collection(LineCollection(stubs, color=HOST, linewidth=width, capstyle="butt", zorder=1))

    def _areas_reach(self) -> list[Floats]:
        """Corners of what is drawn around groups."""
        return [np.array(centre) + radius * np.array([[-1, -1], [1, 1]]) for centre, radius in self.places.areas]

    def _arcs_reach(self) -> list[Floats]:
        """The points of links that are farthest from the straight line."""
        points = []
        for c, bend in self.lines:
            a, b = self.xy[self.topology.src[c]], self.xy[self.topology.dst[c]]
            right = np.array([b[1] - a[1], a[0] - b[0]])
            points.append(((a + b) / 2 + 0.55 * bend * right)[None, :])
        return points

    def _lines(self) -> list[tuple[int, float]]:
        """(channel, curvature) of the lines to draw: a link once, by its first channel; copies are bent apart."""
        topology = self.topology
        copies: Counter[tuple[int, int]] = Counter()
        lines = []
        for c in np.flatnonzero(topology.reverse < np.arange(topology.channels)).tolist():
            ends = int(topology.src[c]), int(topology.dst[c])
            bend = self._bend(*ends, bool(topology.reverse[c] < 0))
            bend += 0.16 * ((copies[ends] + 1) // 2) * (-1) ** copies[ends]
            copies[ends] += 1
            lines.append((c, bend))
        return lines

    def on_line(self, channel: int, share: float) -> Floats:
        """Return the point on the line of a channel at a share of its length from the source, float64 [2]."""
        bends = dict(self.lines)
        drawn = channel if channel in bends else int(self.topology.reverse[channel])
        share = share if drawn == channel else 1 - share
        a, b = self.xy[self.topology.src[drawn]], self.xy[self.topology.dst[drawn]]
        bent = (a + b) / 2 + bends[drawn] * np.array([b[1] - a[1], a[0] - b[0]])  # as arc3 of matplotlib bends it
        place: Floats = (1 - share) ** 2 * a + 2 * share * (1 - share) * bent + share**2 * b
        return place

    def _links(self) -> None:
        """A line for a link, an arrow for a uni-directional channel.

        Arrows keep to the right, so that at a switch those that arrive stand beside those that leave.
        """
        topology, xy = self.topology, self.xy
        head = float(np.clip(0.9 * self.radius * self.points, 3, 8))
        width = float(np.clip(6 / np.sqrt(len(self.lines) + 1), 0.3, 0.8))
        for c, bend in self.lines:
            u, v = int(topology.src[c]), int(topology.dst[c])
            is_directed = bool(topology.reverse[c] < 0)
            direction = (xy[v] - xy[u]) / np.linalg.norm(xy[v] - xy[u])
            aside = KEEP_RIGHT * self.radius * is_directed * np.array([direction[1], -direction[0]])
            look: ArtistProperties = {"linewidth": width, "color": LINK, "zorder": 1.5} | self.stroke(c)
            arrow = FancyArrowPatch(
                tuple(xy[u] + aside),
                tuple(xy[v] + aside),
                connectionstyle=f"arc3,rad={bend:.6f}",
                arrowstyle="-|>,head_length=0.5,head_width=0.2" if is_directed else "-",
                mutation_scale=head,
                shrinkA=0.8 * self.radius * self.points,
                shrinkB=(0.9 if is_directed else 0.8) * self.radius * self.points,
                **look,
            )
            self.ax.add_patch(arrow)

    def _bend(self, u: int, v: int, is_directed: bool) -> float:
        """The curvature, to the right from u to v, that keeps a link clear of other switches.

        On a circle short links bend inwards; arrows only where necessary, since bending brings their ends together.
        """
        a, b = self.xy[u], self.xy[v]
        length = float(np.linalg.norm(b - a))
        if self.places.inward:
            if abs(u - v) in (1, len(self.xy) - 1) or (is_directed and self._passes_over(u, v) == 0):
                return 0.0
            across = float(np.ptp(self.xy, axis=0).max())
            clockwise = float(np.sign(a[1] * b[0] - a[0] * b[1]))
            makes_good = 2 * KEEP_RIGHT * self.radius / length if is_directed else 0.0
            return clockwise * (max(0.0, 0.3 * (1 - length / across)) + makes_good)
        over = self._passes_over(u, v)
        return (2.4 + 1.4 * over) * self.radius / length if over else 0.0

    def _passes_over(self, u: int, v: int) -> int:
        """The number of other switches that the straight line between two touches."""
        direction = self.xy[v] - self.xy[u]
        along = (self.xy - self.xy[u]) @ direction / (direction @ direction)
        apart = np.linalg.norm(self.xy - self.xy[u] - along[:, None] * direction, axis=1)
        return int(((along > 0.01) & (along < 0.99) & (apart < 0.9 * self.radius)).sum())


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
