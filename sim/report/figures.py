"""``draw(folder)``: the figures of a run folder, as PNG, SVG and PDF, the same bytes every time."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from flitlab.sim.report import metric_plots, plots
from flitlab.sim.report.flow_figures import FLOW_KINDS, Maker, entries
from flitlab.sim.report.frames import Mark, Names, Run, Units
from flitlab.sim.report.metric_frames import plots_of
from flitlab.sim.report.plots import Look, column
from flitlab.sim.report.program_figures import PROGRAM_KINDS

in_style = matplotlib.style.context(["default", Path(__file__).with_name("style.mplstyle")])
"""Decorator: the style of the figures and nothing of the user's matplotlibrc."""

FORMATS: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Suffix -> what files of this kind would say of the day and of versions."""

SIZES = {"column": (3.5, 2.4), "double": (7.16, 3.2)}
"""Width and height in inches of a figure in one column of a paper, and across two."""


def draw(
    folder: Path, kinds: list[str] | None = None, flit_ns: float | None = None,
    formats: Sequence[str] = ("png", "svg"), size: str = "column",
) -> list[Path]:  # fmt: skip
    """Draws figures of a run folder into ``folder/figures/<kind>.<format>``.

    Parameters
    ----------
    folder: holds results.csv, ceilings.csv, metrics.csv and manifest.json; any of them may be absent.
    kinds: names from :data:`KINDS`, or of the plots of metrics.csv if there is one; all of :data:`USUAL`, or
        all plots, if None. A kind for which there is nothing to draw is left out.
    flit_ns: duration of a flit; from the manifest or the columns if None. Without it, axes are in ticks.
    formats: of :data:`FORMATS`. size: of :data:`SIZES`.

    Returns
    -------
    The files written.

    Raises
    ------
    ValueError: a kind that does not exist; after all others are drawn, a plot of a column that does not.
    """
    folder = Path(folder)
    run = Run.read(folder)
    makers, mistakes = _makers(run, flit_ns, size)
    chosen = list(makers if run.metrics or run.of_programs else USUAL) if kinds is None else kinds
    if not run.metrics:  # figures of another kind of run than this are nothing that it could show
        chosen = [kind for kind in chosen if kind in makers or kind not in {*KINDS, *PROGRAM_KINDS}]
    if unknown := [kind for kind in chosen if kind not in makers]:
        raise ValueError(f"no figure named {', '.join(unknown)}; choices: {', '.join(makers)}")
    written: list[Path] = []
    for kind in chosen:
        if figure := makers[kind]():
            written += save(figure, folder / "figures" / kind, formats)
    if mistakes and kinds is None:
        raise ValueError("; ".join(mistakes))
    return written


def captions(run: Run) -> dict[str, str]:
    """What the figures of a run show, by name, in their order."""
    if run.metrics:
        return {plot.name: metric_plots.caption(run, plot) for plot in plots_of(run)[0]}
    if run.of_programs:
        return {name: (kind.__doc__ or "").strip() for name, kind in PROGRAM_KINDS.items()}
    return {name: (kind.__doc__ or "").strip() for name, kind in KINDS.items()}


def _makers(run: Run, flit_ns: float | None, size: str) -> tuple[dict[str, Callable[[], Figure | None]], list[str]]:
    """Every figure that a run has, name -> what draws it; and what is wrong with those that it cannot have."""
    if run.of_programs:
        return {kind: partial(in_style(make), run, SIZES[size]) for kind, make in PROGRAM_KINDS.items()}, []
    if not run.metrics:
        return {kind: partial(figure_of, run, kind, flit_ns, size) for kind in KINDS}, []
    found, mistakes = plots_of(run)
    figure = in_style(metric_plots.figure_of)
    return {plot.name: partial(figure, run, plot, SIZES[size]) for plot in found}, mistakes


@in_style
def figure_of(run: Run, kind: str, flit_ns: float | None = None, size: str = "column") -> Figure | None:
    """One figure, laid out and ready to save; None if the run has nothing to show in it."""
    figure = Figure(layout="constrained", figsize=SIZES[size])
    FigureCanvasAgg(figure)
    return figure if _draw_sweep(figure.add_subplot(), run, kind, flit_ns, alone=True) else None


@in_style
def draw_on(ax: Axes, run: Run, name: str, flit_ns: float | None = None, alone: bool = False) -> None:
    """Draws a figure of a run on axes. alone: they have their figure for themselves, and the key goes below them.

    Raises ValueError for a figure that does not exist, or for which the run has nothing to show.
    """
    if run.of_programs:
        raise ValueError(f"{name}: figures of applications have axes of their own; simrun plot draws them")
    if run.metrics:
        found = {plot.name: partial(metric_plots.draw_on, ax, run, plot, alone) for plot in plots_of(run)[0]}
    else:
        found = {kind: partial(_draw_sweep, ax, run, kind, flit_ns, alone) for kind in KINDS}
    if name not in found:
        raise ValueError(f"no figure named {name}; choices: {', '.join(found)}")
    if not found[name]():
        raise ValueError(f"{name}: this run has nothing to show in it")


def _draw_sweep(ax: Axes, run: Run, kind: str, flit_ns: float | None, alone: bool) -> bool:
    """Draws a figure of a load sweep, if there is anything to show."""
    if run.of_flows != (kind in FLOW_KINDS):
        return False
    units, look = run.units(flit_ns), Look(Names(run.scenarios))
    KINDS[kind](ax, run, units, look)
    if not {line.get_gid() for line in ax.lines} & {"curve", "total", "ceiling"}:
        return False
    plots.finish(ax, *_key(ax, run, look), alone)
    return True


@in_style
def save(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Writes ``stem.<format>`` of every format without dates or versions in them."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in formats]
    for path, suffix in zip(paths, formats, strict=True):
        figure.savefig(path, metadata=FORMATS[suffix])
    return paths


def latency_load(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Latency over accepted traffic: the latency-load curve of the field, with the ceilings."""
    _latency(ax, run, units, look, "accepted")


def latency_offered(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Latency over offered traffic."""
    _latency(ax, run, units, look, "offered")


def accepted_load(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Accepted over offered traffic, with the ceilings and the most that any network could accept."""
    plots.plot_curves(ax, run.rows, look, column("offered", units.rate), column("accepted", units.rate))
    plots.plot_totals(ax, run.totals(), look, units.rate)
    _traffic_axis(ax, run, units, look, "offered")
    plots.plot_diagonal(ax, ax.get_xlim()[1])
    ax.set_ylim(0, 1.12 * _largest(ax, "y") or None)
    ax.set_ylabel(f"accepted traffic ({units.rate_name})")


def hops_load(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Mean number of hops (channels between switches) over accepted traffic."""
    plots.plot_curves(ax, run.rows, look, column("accepted", units.rate), column("hops_mean"))
    _traffic_axis(ax, run, units, look, "accepted", ceilings=False)
    ax.set_ylim(0, 1.15 * _largest(ax, "y") or None)
    ax.set_ylabel("mean path length (hops)")


def percentiles(ax: Axes, run: Run, units: Units, look: Look) -> None:
    """Median and tails of the latency over accepted traffic."""
    ax.set_gid("percentiles")
    x = column("accepted", units.rate)
    for name, (_, dashes) in PERCENTILES.items():
        style = {"linestyle": dashes} | ({} if name == "latency_p50" else {"label": "_"})
        plots.plot_curves(ax, run.rows, look, x, column(name, units.time), style=style)
    if not ax.lines:
        return
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(plots.THOUSANDS)
    _traffic_axis(ax, run, units, look, "accepted", ceilings=False)
    ax.set_ylabel(f"packet latency ({units.time_name})")


PERCENTILES: dict[str, tuple[str, Any]] = {
    "latency_p50": ("median", "-"),
    "latency_p99": ("99 %", (0, (4, 1.2))),
    "latency_p999": ("99.9 %", (0, (1.5, 1))),
}
"""Columns of the percentile figure: name and dashes."""

KINDS: dict[str, Maker] = {
    **{kind.__name__: kind for kind in (latency_load, accepted_load, hops_load, latency_offered, percentiles)},
    **FLOW_KINDS,
}
"""Every figure that can be asked for, by name."""

USUAL = ("latency_load", "accepted_load", "hops_load", *FLOW_KINDS)
"""What is drawn when nothing is asked for."""


def _latency(ax: Axes, run: Run, units: Units, look: Look, x: str) -> None:
    latency, half = column("latency_mean", units.time), column("latency_ci95", units.time)
    plots.plot_curves(ax, run.rows, look, column(x, units.rate), latency, half)
    if not ax.lines:
        return
    plots.knee_scale(ax, run.rows, latency)
    _traffic_axis(ax, run, units, look, x)
    ax.set_ylabel(f"mean packet latency ({units.time_name})")


def _traffic_axis(ax: Axes, run: Run, units: Units, look: Look, what: str, ceilings: bool = True) -> None:
    """An x axis from 0 in the printed unit, with flit/tick/host on top where that is another one."""
    marks = run.thetas() if ceilings else []
    measured = _largest(ax, "x")
    near = [mark for mark in marks if not measured or mark.upper * units.rate <= FAR * measured]
    plots.plot_thetas(ax, near, look, units.rate)
    _far_note(ax, [mark for mark in marks if mark not in near], units, look)
    ax.set_xlim(0, 1.05 * max([measured, *(mark.upper * units.rate for mark in near)]) or None)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.set_xlabel(f"{what} traffic ({units.rate_name})")
    if units.flit_ns:
        there, back = partial(np.multiply, units.time), partial(np.multiply, units.rate)
        top = ax.secondary_xaxis("top", functions=(there, back))
        top.set_xlabel("flit/tick/host")


FAR = 2.5
"""Ceilings further right than this many times the largest measured traffic are named at the edge."""


def _far_note(ax: Axes, marks: list[Mark], units: Units, look: Look) -> None:
    if marks:
        names = [look.named(mark.name, mark.scenarios) for mark in marks]
        values = [f"{mark.upper * units.rate:.3g}" for mark in marks]
        text = "\n".join(f"{name} at {value} →" for name, value in zip(names, values, strict=True))
        places: list[plots.Place] = [((0.98, y), (0, 0), "right", "top") for y in (0.98, 0.85, 0.6, 0.3)]
        plots.Name(ax, text, places, xycoords="axes fraction", color=plots.NEUTRAL, gid="far")


def _largest(ax: Axes, axis: str) -> float:
    """The largest coordinate of the curves and totals on an ax; 0 if there are none."""
    lines = [line for line in ax.lines if line.get_gid() in ("curve", "total")]
    return max((float(max(getattr(line, f"get_{axis}data")())) for line in lines), default=0.0)


def _key(ax: Axes, run: Run, look: Look) -> tuple[list[Any], str]:
    """Entries and title of the key; failed points are mentioned."""
    handles = ax.get_legend_handles_labels()[0]
    if not handles and len(run.scenarios) > 1:  # the names of ceilings refer to markers
        handles += [plots.key(look.names[s], **look[s] | {"linestyle": "none"}) for s in run.scenarios]
    gids = [line.get_gid() for line in ax.lines if np.size(line.get_xdata())]
    if run.of_flows:
        handles += entries(ax)
    if ax.get_gid() == "percentiles":
        handles += [plots.key(name, linestyle=dashes) for name, dashes in PERCENTILES.values()]
    if "saturated" in gids:
        handles.append(plots.key("past saturation", marker="o", markerfacecolor="white"))
    count = len(run.failures)
    failures = f"{count} failed point{'s' * (count > 1)} left out" if count else ""
    return handles, " · ".join(filter(None, (look.names.title, failures)))
