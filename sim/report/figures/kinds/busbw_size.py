# SPDX-License-Identifier: Apache-2.0
"""The figure ``busbw_size``."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.collectives import BAND, BySize, figure_by_size, over_size, shaded
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run


@figure("busbw_size", "collectives", place=1)
def busbw_size(run: Run, size: tuple[float, float]) -> Figure | None:
    """Bandwidth of every algorithm over the size of the collective, as NCCL's tests define it, below what is possible.

    No algorithm is above the line: at small sizes latency bounds it, at large ones bandwidth. The band below the
    line reaches down to the best schedule that is known, where the two differ.
    """
    return figure_by_size(run, size, "busbw", "bus bandwidth (GB/s)", _limits)


def _limits(ax: Axes, by: BySize, panel: str) -> Sequence[Artist]:
    """The bound of a panel as a line, and the band down to what is known to be reachable."""
    rows = by.of(panel)
    x, bound = over_size(rows, "busbw_bound")
    ax.set_ylim(bottom=0)
    if not len(x):
        return []
    ax.plot(x, bound, color=marks.NEUTRAL, linewidth=1.1, gid="ceiling", zorder=1.9)
    entries: list[Artist] = [marks.key("bound for every algorithm", color=marks.NEUTRAL, linestyle="-")]
    least, reach = over_size(rows, "bound_ns")[1], over_size(rows, "reachable_ns")
    if len(reach[0]) == len(x):
        low = bound * least / np.maximum(least, reach[1])
        ax.fill_between(x, low, bound, color=BAND, alpha=0.6, linewidth=0, gid="interval", zorder=1.2)
        if (low < 0.995 * bound).any():
            entries.append(shaded("not known to be reachable"))
    ax.set_ylim(0, 1.08 * float(bound.max()))
    return entries
