# SPDX-License-Identifier: Apache-2.0
"""The figure ``time_size``."""

from collections.abc import Iterator, Sequence
from math import exp, log

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.collectives import BySize, figure_by_size, over_size, told_bytes
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import log_axis
from flitlab.sim.report.folder.run import Run


@figure("time_size", "collectives", place=2)
def time_size(run: Run, size: tuple[float, float]) -> Figure | None:
    """Time of every algorithm over the size of the collective, with the sizes from which on another one is fastest.

    Both axes are logarithmic: level parts are bound by latency, rising ones by bandwidth. No algorithm is below the
    line.
    """
    return figure_by_size(run, size, "time_ns", "time (ns)", _crossovers)


def _crossovers(ax: Axes, by: BySize, panel: str) -> Sequence[Artist]:
    """The bound of a panel, and the sizes at which the fastest algorithm changes, named."""
    log_axis(ax, "y")
    x, bound = over_size(by.of(panel), "bound_ns")
    if len(x):
        ax.plot(x, bound, color=marks.NEUTRAL, linewidth=1.1, gid="ceiling", zorder=1.9)
    for place, name in crossovers(by, panel):
        ax.axvline(place, color="#999999", linewidth=0.7, linestyle=(0, (2, 2)), zorder=1.1, gid="crossover")
        ax.annotate(
            f"{name} from {told_bytes(place)}", (place, 0.02), xycoords=ax.get_xaxis_transform(), rotation=90,
            xytext=(1.5, 0), textcoords="offset points", fontsize=6, color=marks.NEUTRAL, va="bottom",
            path_effects=marks.HALO,
        )  # fmt: skip
    return [marks.key("bound for every algorithm", color=marks.NEUTRAL, linestyle="-")] if len(x) else []


def crossovers(by: BySize, panel: str) -> Iterator[tuple[float, str]]:
    """Sizes from which on another algorithm is fastest, and its name; between measured sizes, both times are powers."""
    curves = {
        name: dict(zip(*map(list, over_size(by.of(panel, name), "time_ns")), strict=True)) for name in by.algorithms
    }
    sizes = sorted({size for curve in curves.values() for size in curve})
    before, last = "", 0.0
    for size in sizes:
        there = {name: curve[size] for name, curve in curves.items() if size in curve}
        best = min(there, key=lambda name: there[name])
        if before and there.get(before) == there[best]:
            best = before
        if before and best != before:
            yield _crossing(curves[before], curves[best], last, size), best
        before, last = best, size


def _crossing(one: dict[float, float], other: dict[float, float], low: float, high: float) -> float:
    """The size between two at which two curves are equal, on logarithmic axes; the larger size if one ends before."""
    if not {low, high} <= one.keys() & other.keys():
        return high
    first, second = log(one[low] / other[low]), log(one[high] / other[high])
    share = 0.5 if first == second else first / (first - second)
    return exp(log(low) + min(max(share, 0.0), 1.0) * log(high / low))
