# SPDX-License-Identifier: Apache-2.0
"""``draw(folder)``: the figures of a run folder, as PNG, SVG and PDF, the same bytes every time."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from flitlab.models.files import read_file
from flitlab.sim.config.case import Study
from flitlab.sim.config.diagnostics import Diagnostics
from flitlab.sim.config.plugins import load_plugins
from flitlab.sim.config.text import ConfigDocument, wrap
from flitlab.sim.config.values import read_resolved
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.metrics import figure as of_metrics
from flitlab.sim.report.figures.metrics.specification import plots_of
from flitlab.sim.report.figures.panels import MOST_CURVES, Layout, layout
from flitlab.sim.report.figures.registry import Kind, figures, names
from flitlab.sim.report.figures.style import SIZES, in_style, new_figure, save
from flitlab.sim.report.folder.names import Longest, Names
from flitlab.sim.report.folder.run import Run
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


def draw(
    folder: Path, kinds: list[str] | None = None, flit_ns: float | None = None,
    formats: Sequence[str] = ("png", "svg"), size: str = "column", y: str | None = None,
) -> list[Path]:  # fmt: skip
    """Draws figures of a run folder into ``folder/figures/<kind>.<format>``.

    Parameters
    ----------
    folder: holds results.csv, ceilings.csv, metrics.csv and manifest.json; any of them may be absent.
    kinds: names of registered figures, or of the plots of metrics.csv if there is one; all usual ones, or all plots,
        if None. A kind for which there is nothing to draw is left out; those of networks are drawn by
        :func:`draw_networks`.
    flit_ns: duration of a flit; from the manifest or the columns if None. Without it, axes are in ticks.
    formats: of :data:`~flitlab.sim.report.figures.style.FORMATS`. size: of
        :data:`~flitlab.sim.report.figures.style.SIZES`. y: the axis of latencies, ``linear``, ``log`` or ``both``; from
        the manifest if None.

    Returns
    -------
    The files written.

    Raises
    ------
    ValueError: a kind that does not exist; after all others are drawn, a plot of a column that does not.
    """
    folder = Path(folder)
    run = Run.read(folder)
    if y is not None:
        run = replace(run, manifest=run.manifest | {"y": y})
    makers, errors = _makers(run, flit_ns, size)
    known = figures()
    chosen = [name for name in makers if run.metrics or known[name].usual] if kinds is None else kinds
    chosen = [name for name in chosen if not _is_of_networks(known.get(name))]
    if not run.metrics:  # figures of another kind of run than this are nothing that it could show
        chosen = [name for name in chosen if name in makers or name not in known]
    if unknown := [name for name in chosen if name not in makers]:
        raise ValueError(f"no figure named {', '.join(unknown)}; choices: {', '.join(makers)}")
    written: list[Path] = []
    for name in chosen:
        if figure := makers[name]():
            written += save(figure, folder / "figures" / name, formats)
    if errors and kinds is None:
        raise ValueError("; ".join(errors))
    return written


def left_out(kinds: Sequence[str], files: Sequence[Path]) -> list[str]:
    """The figures of some kinds that :func:`draw`, which wrote some files, had no data for."""
    known, drawn = figures(), {path.stem for path in files}
    return [name for name in kinds if name not in drawn and not _is_of_networks(known.get(name))]


def draw_networks(study: Study, folder: Path, kinds: Sequence[str], formats: Sequence[str]) -> list[Path]:
    """Draws those of some kinds that show the networks of a study, of any experiment; the files written."""
    known = figures()
    return [
        path for name in kinds if _is_of_networks(known.get(name)) for path in known[name].draw(study, folder, formats)
    ]  # fmt: skip


def _is_of_networks(kind: Kind | None) -> bool:
    return kind is not None and "network" in kind.of


def captions(run: Run) -> dict[str, str]:
    """What the figures of a run show, by name, in their order."""
    if run.metrics:
        return {plot.name: of_metrics.caption(run, plot) for plot in plots_of(run)[0]}
    return {name: kind.caption for name, kind in _kinds(run).items()}


def _kinds(run: Run) -> dict[str, Kind]:
    """The registered figures of runs of its sort: of collectives, of other programs, or of points."""
    sorts = {"packets", "flows"}
    if run.of_programs:
        sorts = {"collectives"} if run.of_collectives else {"programs"}
    return {name: kind for name, kind in figures().items() if sorts & set(kind.of)}


def _makers(run: Run, flit_ns: float | None, size: str) -> tuple[dict[str, Callable[[], Figure | None]], list[str]]:
    """Return the function that draws each figure of a run, by name; and errors of those that it cannot have."""
    if run.metrics and not run.of_programs:
        plots, errors = plots_of(run)
        figure = in_style(of_metrics.figure_of)
        return {plot.name: partial(figure, run, plot, SIZES[size]) for plot in plots}, errors
    return {
        name: partial(in_style(kind.draw), run, SIZES[size]) if kind.is_whole
        else partial(figure_of, run, name, flit_ns, size)
        for name, kind in _kinds(run).items()
    }, []  # fmt: skip


@in_style
def figure_of(run: Run, name: str, flit_ns: float | None = None, size: str = "column") -> Figure | None:
    """Return one figure, ready to save; None if the run has nothing to show in it.

    Sweeps over topologies or traffic are panels, see :mod:`~flitlab.sim.report.figures.panels`.
    """
    kind = figures()[name]
    if not _suits(kind, run):
        return None
    plan = layout(run, beside=kind.panels)
    figure, axes = grid_of([panel.name for panel in plan.panels], SIZES[size], plan.across)
    look = Look(Names(plan.curves), whole=run if len(plan.panels) > 1 else None)
    entries: list[Artist] = []
    for ax, panel in zip(axes, plan.panels, strict=True):
        panel_look = replace(look, here=panel.run.scenarios)
        added = kind.draw(ax, panel.run, run.units(flit_ns), panel_look) or ()
        entries += [entry for entry in added if entry.get_label() not in {one.get_label() for one in entries}]
    drawn = [ax for ax in axes if ax.has_data()]
    if not drawn:
        return None
    if len(axes) > 1:
        share_axes(figure, drawn)
    marks.finish_panels(figure, drawn, *_key(drawn, run, look, entries, plan))
    return figure


@in_style
def draw_on(ax: Axes, run: Run, name: str, flit_ns: float | None = None, single: bool = False) -> None:
    """Draw a figure of a run on axes, with all its curves together. single: the only axes; the key goes below them.

    Raises ``ValueError`` for a figure that does not exist, has nothing to show, or takes panels.
    """
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_parse_math(False)  # the axes may be of another style
    if run.of_programs:
        raise ValueError(f"{name}: figures of applications have axes of their own; simrun plot draws them")
    if run.metrics:
        drawers = {plot.name: partial(of_metrics.draw_on, ax, run, plot, single) for plot in plots_of(run)[0]}
    else:
        drawers = {key: partial(_draw_together, ax, run, kind, flit_ns, single) for key, kind in _kinds(run).items()}
    if name not in drawers:
        raise ValueError(f"no figure named {name}; choices: {', '.join(drawers)}")
    if not drawers[name]():
        raise ValueError(f"{name}: this run has nothing to show in it")


def _suits(kind: Kind, run: Run) -> bool:
    """Whether a figure is drawn on axes, and of the results of a run."""
    return not kind.is_whole and ("flows" if run.of_flows else "packets") in kind.of


def _draw_together(ax: Axes, run: Run, kind: Kind, flit_ns: float | None, single: bool) -> bool:
    """Draws a figure of points without panels, if there is anything to show."""
    if not _suits(kind, run):
        return False
    plan = layout(run, beside=False)
    if kind.panels and len(plan.curves) > MOST_CURVES:
        raise ValueError(
            f"{kind.name}: {len(plan.curves)} curves are more than one pair of axes can show (at most {MOST_CURVES}); "
            "simrun plot draws panels of them"
        )
    look = Look(Names(plan.curves))
    (panel,) = plan.panels
    entries = kind.draw(ax, panel.run, run.units(flit_ns), look) or ()
    if not ax.has_data():
        return False
    marks.finish(ax, *_key([ax], run, look, entries, plan), single)
    return True


def _key(
    axes: Sequence[Axes], run: Run, look: Look, entries: Sequence[Artist], plan: Layout
) -> tuple[list[Artist], str]:  # fmt: skip
    """Entries and title of the key, with notes on what is averaged or left out."""
    shown = {str(handle.get_label()): handle for ax in axes for handle in ax.get_legend_handles_labels()[0]}
    order = [look.names[label] for label in look.names.labels]
    handles = [shown[name] for name in sorted(shown, key=lambda one: order.index(one) if one in order else -1)]
    named = any(isinstance(text, marks.Name) for ax in axes for text in ax.texts)
    if not handles and named and len(plan.curves) > 1:  # the names of ceilings refer to markers
        handles += [marks.key(look.names[s], **look[s] | {"linestyle": "none"}) for s in plan.curves]
    gids = {artist.get_gid() for ax in axes for artist in (*ax.lines, *ax.patches) if not _is_empty(artist)}
    handles += entries
    if "saturated" in gids:
        handles.append(marks.key("past saturation", marker="o", markerfacecolor="white"))
    if "spread" in gids or "range" in gids:
        handles.append(marks.key(f"whiskers: range of {plan.draws} draws", linestyle="-", linewidth=0.5, marker="_"))
    count = len(run.failures)
    notes = [
        look.names.title, plan.left_out, _probes(gids),
        plan.averaged,
        f"{count} failed point{'s' * (count > 1)} left out" if count else "",
    ]  # fmt: skip
    return handles, " · ".join(filter(None, notes))


def _probes(gids: Collection[str | None]) -> str:
    """What is said of the probes of a search, '' without any."""
    return f"markers: probes of a search{'' if 'between' in gids else ', not joined'}" if "probes" in gids else ""


def _is_empty(artist: Artist) -> bool:
    return isinstance(artist, Line2D) and not np.size(artist.get_xdata())


def grid_of(titles: Sequence[str], size: tuple[float, float], across: int) -> tuple[Figure, list[Axes]]:
    """A figure with axes for every title.

    size: inches of a figure with a single pair. across: how many should stand in a row, 0 for any number.
    """
    count, most = len(titles), MOST_ACROSS[size[0] >= WIDE]
    columns = min(across if 0 < across <= most else most, count) or 1
    rows = -(-count // columns)
    figure = new_figure(size if count <= 1 else (size[0], HEIGHT * rows + BELOW))
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for ax, title in zip(axes, (shown_label(one, Longest.TITLE) for one in titles), strict=True):
        if count > 1:
            lines = 1 + int(len(title) / (LETTERS * size[0] / columns))
            ax.set_title(marks.in_lines(title, lines), fontsize=TITLE, pad=3)
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
        ax.set_xlabel(marks.in_lines(text, 1 + int(len(text) / letters_per_line)) if bottom else "")
        ax.set_ylabel("")
        ax.tick_params(labelbottom=bottom, labelleft=_column(ax) == 0)


def _column(ax: Axes) -> int:
    place = ax.get_subplotspec()
    return 0 if place is None else int(place.colspan.start)


def _row(ax: Axes) -> int:
    place = ax.get_subplotspec()
    return 0 if place is None else int(place.rowspan.start)


def load_figure_plugins(folder: Path, kinds: Iterable[str], trust_plugins: bool) -> None:
    """Load the plugins of a run if one of ``kinds``, names of figures, is not registered.

    trust_plugins: whether they may be imported. Raises :class:`~flitlab.sim.config.diagnostics.ConfigError` if they
    are not trusted, or one cannot be loaded.
    """
    resolved = folder / "config.resolved.yaml"
    if set(kinds) <= set(names()) or not resolved.exists():
        return
    diagnostics = Diagnostics()
    named = {"plugins": read_resolved(read_file(resolved)).get("plugins")}
    load_plugins(ConfigDocument(wrap(named, str(resolved)), diagnostics), folder.resolve(), trust_plugins)
    diagnostics.raise_errors()
