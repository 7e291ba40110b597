# SPDX-License-Identifier: Apache-2.0
"""The figure ``bottleneck``."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from flitlab.fluid.certificate import Bottlenecks, bottlenecks
from flitlab.fluid.decomposition import link_classes
from flitlab.models.arrays import Floats
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.case import Case, Study
from flitlab.sim.experiment.ceilings import Optimum, stored_optimum
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties, in_style, new_figure, save_as
from flitlab.sim.report.network.drawing import Drawing
from flitlab.sim.report.network.places import WIDTH, positions, suitable

NAME = "bottleneck"
"""Of the figure, in ``outputs.figures`` and as a file."""

MOST_DRAWN = 24
"""The number of scenarios, the first ones, whose bottlenecks are drawn."""

MOST_LETTERS = 80
"""Of a label in the name of a file."""

BINDING = "#D55E00"

GREYS = LinearSegmentedColormap.from_list("greys", colormaps["Greys"](np.linspace(0.15, 0.75, 32)))
"""For the utilisation of channels that do not bind."""

CURVES, SCALE = 1.7, 0.45
"""Heights of the distribution of utilisations and of the scale of greys, in inches."""

NARROWED = 0.88
"""Share of its width that the network keeps beside the labels of the distribution."""


def draw_bottleneck(case: Case, optimum: Optimum, path: Path, others: int = 0) -> Path:
    """Draws where a maximum concurrent flow is stuck into a PNG or SVG file; the same bytes every time.

    Above, the network: channels that bind (:func:`~flitlab.fluid.certificate.bottlenecks`) are orange, the wider the
    higher their price, others grey, the darker the fuller; of a link the direction counts that is the more so. More
    than :data:`~flitlab.sim.report.network.places.MOST_NODES` switches are a matrix of channels. Below, the
    distribution of load / capacity, for each class of links if there are several.

    Parameters
    ----------
    others: how many more scenarios have the same optimum, for the title.

    Returns
    -------
    The file.

    Raises
    ------
    ValueError: another suffix. OSError: the file cannot be written.
    """
    return save_as(lambda: figure_of(case, optimum, others), path)


def numbered(stem: str, number: int, label: str) -> str:
    """The name of the file, without its suffix, of one of several scenarios."""
    words = re.sub(r"[^\w.=-]+", "_", label).strip("_")
    return f"{stem}_{number}_{words[:MOST_LETTERS]}"


@figure("bottleneck", "network", place=12, usual=False)
def bottleneck(study: Study, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Where the maximum concurrent flow of each scenario is stuck.

    Orange channels bind: their price in the certificate is not 0, the wider the higher. More capacity anywhere else
    gains nothing. Grey ones are the darker the fuller in one optimum, of which there may be others; below is how
    many are how full.
    """
    # scenarios that differ in their routing only have the same optimum
    alike: dict[tuple[str, bytes], list[tuple[int, Case, Optimum]]] = {}
    for number, case in enumerate(study.cases[:MOST_DRAWN], 1):
        if (optimum := stored_optimum(folder, case)) is not None:
            network = (case.topology.content_hash, optimum.load.tobytes())
            alike.setdefault(network, []).append((number, case, optimum))
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    written = []
    for (number, case, optimum), *others in alike.values():
        name = NAME if len(study.cases) == 1 else numbered(NAME, number, case.label)
        files = [folder / "figures" / f"{name}.{suffix}" for suffix in formats if suffix != "pdf"]
        written += [draw_bottleneck(case, optimum, file, len(others)) for file in files]
    return written


@in_style
def figure_of(case: Case, optimum: Optimum, others: int = 0) -> Figure:
    """The figure that :func:`draw_bottleneck` saves."""
    topology, certificate = case.topology, optimum.certificate
    binds = bottlenecks(topology, certificate, optimum.lower, optimum.upper)
    use, price = optimum.load / topology.capacity, topology.capacity * certificate.network * binds.network
    figure = new_figure()
    grid = figure.add_gridspec(2, 1)
    network, curves = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    _network(figure, network, topology, use, price)
    height = NARROWED * figure.get_figheight() + SCALE
    grid.set_height_ratios([height, CURVES])
    figure.set_size_inches(WIDTH, height + CURVES)
    figure.suptitle(caption(case, optimum, binds, others), fontsize=8)
    _distributions(curves, topology, use)
    return figure


def caption(case: Case, optimum: Optimum, binds: Bottlenecks, others: int) -> str:
    """Return name, size and scenario, and the number of bottlenecks, or why it is unknown."""
    topology, gap = case.topology, 1 - optimum.lower / optimum.upper
    count = int(binds.network.sum())
    # other dual optima may price other channels
    known = "all" if count == topology.channels else f"at least {count} of"
    what = f"{known} {topology.channels} channels are bottlenecks (orange; size: price)" if count else ""
    if binds.hosts:
        what = f"host channels, and {what}" if what else "host channels are the bottleneck"
    if not what:
        what = f"bottlenecks are not known within the gap of {100 * gap:.2g} % (method: exact finds them)"
    name = f"{Path(topology.notes.get('file', topology.kind)).stem}, n = {topology.switches}"
    of = f"{case.label}, and {others} more with this optimum" if others else case.label
    return f"{name}: {of}\n{what}"


def _network(figure: Figure, ax: Axes, topology: Topology, use: Floats, price: Floats) -> None:
    """The channels in place, with their key. price: 0 where a channel is not known to bind."""
    shades = Normalize(0.0, 1.0)
    style = suitable(topology)
    if style == "matrix":
        figure.set_size_inches(WIDTH, WIDTH + 0.4)
        _matrix(ax, topology, use, price)
    else:
        other = np.where(topology.reverse < 0, np.arange(topology.channels), topology.reverse)
        both = np.maximum(use, use[other]), np.maximum(price, price[other])
        highest = both[1].max(initial=0.0)

        def stroke(channel: int) -> ArtistProperties:
            if not both[1][channel]:
                return {"color": GREYS(shades(both[0][channel]))}
            return {"color": BINDING, "linewidth": 0.8 + 1.6 * both[1][channel] / highest, "zorder": 1.6}

        Drawing(figure, ax, topology, positions(topology, style), stroke).draw()
    bar = figure.colorbar(ScalarMappable(shades, GREYS), ax=ax, location="bottom", shrink=0.6, aspect=30, pad=0.02)
    bar.set_label(f"load / capacity{' of the others' if price.any() else ''}", fontsize=7)
    bar.ax.tick_params(which="both", length=0)


def _matrix(ax: Axes, topology: Topology, use: Floats, price: Floats) -> None:
    """A point per channel, at its two switches; those that bind on top, the larger the higher their price."""
    binds = price > 0
    size = 1.0 if topology.channels > 5000 else 2.0
    free: ArtistProperties = {"c": use[~binds], "cmap": GREYS, "vmin": 0.0, "vmax": 1.0}
    ax.scatter(topology.dst[~binds], topology.src[~binds], s=size, linewidths=0, rasterized=True, **free)
    sizes = size * (1 + 3 * price[binds] / price.max(initial=1e-300))
    ax.scatter(topology.dst[binds], topology.src[binds], s=sizes, color=BINDING, linewidths=0, rasterized=True)
    ax.set_aspect("equal")
    ax.set_xlim(-0.5, topology.switches - 0.5)
    ax.set_ylim(topology.switches - 0.5, -0.5)
    ax.grid(False)
    ax.set_xlabel("to switch", labelpad=1)
    ax.set_ylabel("from switch")


def _distributions(ax: Axes, topology: Topology, use: Floats) -> None:
    """Share of channels whose load / capacity is at most x, by class."""
    classes = link_classes(topology) or {"": np.ones(topology.channels, bool)}
    for i, (name, members) in enumerate(classes.items()):
        values = np.sort(use[members])
        share = np.arange(1, len(values) + 1) / len(values)
        label = f"{name} (mean {values.mean():.2f})".strip() if name else f"mean {values.mean():.2f}"
        colour, dashes = marks.colour(i), marks.dashes(i)
        x, y = np.concatenate([[0.0], values, [1.0]]), np.concatenate([[0.0], share, [1.0]])
        ax.step(x, y, where="post", color=colour, linestyle=dashes, marker="", label=label)
    ax.set_xlim(0, max(1.0, float(use.max(initial=0.0))) * 1.01)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("load / capacity of a channel")
    ax.set_ylabel("share", labelpad=2)
    ax.legend(loc="upper left", frameon=False, fontsize=7)
