# SPDX-License-Identifier: Apache-2.0
"""Draws a figure of metrics.csv: curves over a swept parameter, a chart, or a distribution."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.metrics.charts import draw_chart
from flitlab.sim.report.figures.metrics.curves import draw_over_x
from flitlab.sim.report.figures.metrics.distributions import draw_distributions
from flitlab.sim.report.figures.metrics.quantity import STEPS
from flitlab.sim.report.figures.metrics.rows import SCENARIO, axis_title, is_distribution, numeric
from flitlab.sim.report.figures.metrics.specification import Plot
from flitlab.sim.report.figures.style import new_figure
from flitlab.sim.report.folder.run import Run

LEAST_GAP = 0.0005
"""Certified intervals narrower than this (relative) are not mentioned."""


def figure_of(run: Run, plot: Plot, size: tuple[float, float] | None = None) -> Figure | None:
    """One figure, laid out and ready to save; None if there is nothing to show in it. size: inches."""
    figure = new_figure(size)
    return figure if draw_on(figure.add_subplot(), run, plot, single=True) else None


def draw_on(ax: Axes, run: Run, plot: Plot, single: bool) -> bool:
    """Draw a plot on axes; return whether there is anything to show. single: the only axes of their figure."""
    run = run.where(plot.where)
    if is_distribution(run, plot.y[0].expression):
        handles = draw_distributions(ax, run, plot)
    elif plot.x != SCENARIO and numeric(run.metrics, plot.x):
        handles = draw_over_x(ax, run, plot)
    else:
        handles = draw_chart(ax, run, plot)
    if handles is None:
        return False
    count = len(run.failures)
    failures = f"{count} failed point{'s' * (count > 1)} left out" if count else ""
    marks.finish(ax, handles, " · ".join(filter(None, (_certified(run, plot), failures))), single)
    return True


def _certified(run: Run, plot: Plot) -> str:
    """The widest certified interval whose lower end is drawn; '' if it is too narrow to see."""
    columns = {column for quantity in plot.y for column in quantity.columns}
    ends = [(number(row, column), number(row, f"{column}.upper")) for column in columns for row in run.metrics]
    gaps = [upper / lower - 1 for lower, upper in ends if lower]
    widest = max(filter(math.isfinite, gaps), default=0.0)
    return f"certified to {100 * widest:.2g} %" if widest >= LEAST_GAP else ""


def caption(run: Run, plot: Plot) -> str:
    """What a figure shows, in words."""
    run = run.where(plot.where)
    what = ", ".join(quantity.name for quantity in plot.y if not quantity.bound) or plot.y[0].name
    if is_distribution(run, plot.y[0].expression):
        along = " by " + STEPS.get(plot.y[0].expression, "rank or key")
    else:
        along = " by scenario" if plot.x == SCENARIO else f" against {axis_title(run, plot.x)}"
    return what[:1].upper() + what[1:] + along
