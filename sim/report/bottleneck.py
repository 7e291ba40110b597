"""Pictures of a bottleneck: the channels that bind, drawn on the network, and how much of the others is in use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from fluid.certificate import Certificate
from fluid.decomposition import link_classes
from models.topology.graph import Topology
from sim.config.study import Study
from sim.experiment.ceilings import stored_optimum
from sim.report.drawing import PLACES, WIDTH, Drawing, save_picture, suitable
from sim.report.figures import in_style
from sim.report.plots import DASHES, OKABE_ITO

NAME = "bottleneck"
"""Of the figure, in ``outputs.figures`` and as a file."""

MOST_DRAWN = 24
"""The bottlenecks of the first so many scenarios are drawn."""

BINDING = "#D55E00"

LEAST_PRICE = 0.01
"""A channel binds if its price, capacity x length, is at least this part of the highest."""

GREYS = LinearSegmentedColormap.from_list("greys", colormaps["Greys"](np.linspace(0.15, 0.75, 32)))
"""For the utilisation of channels that do not bind."""

CURVES, SCALE = 1.7, 0.45
"""Heights of the distribution of utilisations and of the scale of greys, in inches."""

NARROWED = 0.88
"""Part of its width that the network keeps beside the labels of the distribution."""


def draw_bottleneck(topology: Topology, certificate: Certificate, load: np.ndarray, path: Path) -> Path:
    """Draws where a maximum concurrent flow is stuck into a PNG or SVG file; the same bytes every time.

    Above, the network: channels with a price in the certificate are orange, the wider the higher their price, others
    grey, the darker the fuller; of a link the direction counts that is the more so. More than
    :data:`~sim.report.drawing.MOST_NODES` switches are a matrix of channels. Below, the distribution of load /
    capacity, for each class of links if there are several.

    Parameters
    ----------
    certificate: lengths that prove the upper bound. load: float64 [channels], flits per tick.

    Returns
    -------
    The file.

    Raises
    ------
    ValueError: another suffix. OSError: the file cannot be written.
    """
    return save_picture(lambda: picture(topology, certificate, load), path)


def draw_all(study: Study, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draws the bottleneck of every scenario of a run into its folder, equal ones once; of several, files are numbered.

    formats: png and svg count. Returns the files; scenarios without a certified ``mcf`` have none.
    """
    written = []
    drawn = set()
    for number, case in enumerate(study.cases[:MOST_DRAWN], 1):
        found = stored_optimum(folder, case)
        if found is None:
            continue
        # scenarios that differ in their routing only have the same optimum
        network = (case.topology.content_hash, found[1].tobytes())
        if network in drawn:
            continue
        drawn.add(network)
        stem = folder / "figures" / (NAME if len(study.cases) == 1 else f"{NAME}_{number}")
        stem.parent.mkdir(parents=True, exist_ok=True)
        files = [stem.with_suffix(f".{suffix}") for suffix in formats if suffix != "pdf"]
        written += [draw_bottleneck(case.topology, *found, file) for file in files]
    return written


@in_style
def picture(topology: Topology, certificate: Certificate, load: np.ndarray) -> Figure:
    """The figure that :func:`draw_bottleneck` saves."""
    use, price = load / topology.capacity, topology.capacity * certificate.network
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 1)
    network, curves = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    _network(figure, network, topology, use, price)
    height = NARROWED * figure.get_figheight() + SCALE
    grid.set_height_ratios([height, CURVES])
    figure.set_size_inches(WIDTH, height + CURVES)
    figure.suptitle(_caption(topology, certificate, price), fontsize=8)
    _distributions(curves, topology, use)
    return figure


def _binds(price: np.ndarray) -> np.ndarray:
    """bool [channels]: which channels have a price worth mentioning."""
    return (price > 0) & (price >= LEAST_PRICE * price.max(initial=0.0))


def _caption(topology: Topology, certificate: Certificate, price: np.ndarray) -> str:
    """Name and size, and how many channels bind."""
    hosts = certificate.injection.any() or certificate.ejection.any()
    count = int(_binds(price).sum())
    what = f"{count} of {topology.channels} channels bind (orange; size: price)" if count else ""
    if hosts:
        what = f"host channels, and {what}" if what else "host channels bind"
    name = Path(topology.notes.get("file", topology.kind)).stem
    return f"{name}, n = {topology.switches}\n{what}"


def _network(figure: Figure, ax: Axes, topology: Topology, use: np.ndarray, price: np.ndarray) -> None:
    """The channels in place, with their key."""
    shades = Normalize(0.0, 1.0)
    style = suitable(topology)
    if style == "matrix":
        figure.set_size_inches(WIDTH, WIDTH + 0.4)
        _matrix(ax, topology, use, price)
    else:
        other = np.where(topology.reverse < 0, np.arange(topology.channels), topology.reverse)
        both = np.maximum(use, use[other]), np.maximum(price, price[other])
        binds, highest = _binds(both[1]), both[1].max(initial=0.0)

        def stroke(channel: int) -> dict[str, Any]:
            if not binds[channel]:
                return {"color": GREYS(shades(both[0][channel]))}
            return {"color": BINDING, "linewidth": 0.8 + 1.6 * both[1][channel] / highest, "zorder": 1.6}

        Drawing(figure, ax, topology, PLACES[style](topology), stroke).draw()
    bar = figure.colorbar(ScalarMappable(shades, GREYS), ax=ax, location="bottom", shrink=0.6, aspect=30, pad=0.02)
    bar.set_label("load / capacity where it does not bind", fontsize=7)
    bar.ax.tick_params(which="both", length=0)


def _matrix(ax: Axes, topology: Topology, use: np.ndarray, price: np.ndarray) -> None:
    """A point per channel, at its two switches; those that bind on top, the larger the higher their price."""
    binds = _binds(price)
    size = 1.0 if topology.channels > 5000 else 2.0
    free = {"c": use[~binds], "cmap": GREYS, "vmin": 0.0, "vmax": 1.0}
    ax.scatter(topology.dst[~binds], topology.src[~binds], s=size, linewidths=0, rasterized=True, **free)
    sizes = size * (1 + 3 * price[binds] / price.max(initial=1e-300))
    ax.scatter(topology.dst[binds], topology.src[binds], s=sizes, color=BINDING, linewidths=0, rasterized=True)
    ax.set_aspect("equal")
    ax.set_xlim(-0.5, topology.switches - 0.5)
    ax.set_ylim(topology.switches - 0.5, -0.5)
    ax.grid(False)
    ax.set_xlabel("to switch", labelpad=1)
    ax.set_ylabel("from switch")


def _distributions(ax: Axes, topology: Topology, use: np.ndarray) -> None:
    """Share of channels whose load / capacity is at most x, by class."""
    classes = link_classes(topology) or {"": np.ones(topology.channels, bool)}
    for i, (name, members) in enumerate(classes.items()):
        values = np.sort(use[members])
        share = np.arange(1, len(values) + 1) / len(values)
        label = f"{name} (mean {values.mean():.2f})".strip() if name else f"mean {values.mean():.2f}"
        colour, dashes = OKABE_ITO[i % len(OKABE_ITO)], DASHES[i % len(DASHES)]
        x, y = np.concatenate([[0.0], values, [1.0]]), np.concatenate([[0.0], share, [1.0]])
        ax.step(x, y, where="post", color=colour, linestyle=dashes, marker="", label=label)
    ax.set_xlim(0, max(1.0, float(use.max(initial=0.0))) * 1.01)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("load / capacity of a channel")
    ax.set_ylabel("share", labelpad=2)
    ax.legend(loc="upper left", frameon=False, fontsize=7)
