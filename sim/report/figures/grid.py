# SPDX-License-Identifier: Apache-2.0
"""Axes in rows, with shared ranges and labels."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from flitlab.sim.report.figures.marks import in_lines
from flitlab.sim.report.folder.names import LONGEST_TITLE
from flitlab.sim.terminal import shown_label

MOST_ACROSS = {False: 2, True: 4}
"""Panels in a row of a figure in one column, and of one across two."""

WIDE = 5.0
"""Width in inches from which a figure goes across two columns."""

HEIGHT, BELOW = 1.5, 0.35
"""Inches of a panel, and of the labels of axes below all."""

LETTERS = 16
"""Letters of a title in an inch."""

TITLE = 7.0
"""Font size of the title of a panel."""


def grid_of(titles: Sequence[str], size: tuple[float, float], across: int = 0) -> tuple[Figure, list[Axes]]:
    """A figure with axes for every title.

    size: inches of a figure with a single pair. across: how many should stand in a row, 0 for any number.
    """
    count, most = len(titles), MOST_ACROSS[size[0] >= WIDE]
    columns = min(across if 0 < across <= most else most, count) or 1
    rows = -(-count // columns)
    figure = Figure(layout="constrained", figsize=size if count <= 1 else (size[0], HEIGHT * rows + BELOW))
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for ax, title in zip(axes, (shown_label(one, LONGEST_TITLE) for one in titles), strict=True):
        if count > 1:
            lines = 1 + int(len(title) / (LETTERS * size[0] / columns))
            ax.set_title(in_lines(title, lines), fontsize=TITLE, pad=3)
    return figure, axes


def share_axes(figure: Figure, axes: Sequence[Axes]) -> None:
    """Gives axes the ranges of all of them, and their labels to the figure, once."""
    for which in ("x", "y"):
        ends = np.array([getattr(ax, f"get_{which}lim")() for ax in axes])
        for ax in axes:
            getattr(ax, f"set_{which}lim")(ends.min(), ends.max())
    figure.supylabel(axes[0].get_ylabel(), fontsize=axes[0].yaxis.label.get_fontsize())
    letters_per_line = LETTERS * figure.get_figwidth() / max(_column(ax) + 1 for ax in axes)
    for ax in axes:
        bottom = not any(_column(other) == _column(ax) and _row(other) > _row(ax) for other in axes)
        text = ax.get_xlabel()
        ax.set_xlabel(in_lines(text, 1 + int(len(text) / letters_per_line)) if bottom else "")
        ax.set_ylabel("")
        ax.tick_params(labelbottom=bottom, labelleft=_column(ax) == 0)


def _column(ax: Axes) -> int:
    place = ax.get_subplotspec()
    return 0 if place is None else int(place.colspan.start)


def _row(ax: Axes) -> int:
    place = ax.get_subplotspec()
    return 0 if place is None else int(place.rowspan.start)
