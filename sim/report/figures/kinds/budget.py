# SPDX-License-Identifier: Apache-2.0
"""The figure ``budget``."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from flitlab.models.mappings import Row
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import finish
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties, new_figure
from flitlab.sim.report.folder.budget import (
    LEVELS,
    ROUTING_LOSSES,
    LossBudget,
    is_insignificant,
    is_no_loss,
    loss_budgets,
)
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run

HEIGHT, KEY = 1.75, 0.55
"""Inches of a panel, and of the axis and the room below all."""

MOST_ACROSS = 3
"""Panels in a row of a figure across two columns."""

WIDE = 0.8
"""Share of the distance between two levels that a bar takes."""

MIN_INTERVAL = 0.2
"""Width of the narrowest interval that is drawn, in percent."""

FOOT, PER_LETTER = 14.0, 2.4
"""Percent of the axis that the number of a level takes, and a letter beside it."""

STYLES: dict[str, ArtistProperties] = {
    "routing": {"color": marks.OKABE_ITO[0], "hatch": ""},
    "switch": {"color": marks.OKABE_ITO[1], "hatch": "/////"},
    "window": {"color": "#777777", "hatch": "....."},
    "both": {"color": marks.OKABE_ITO[3], "hatch": "\\\\\\\\"},
    "gain": {"color": marks.OKABE_ITO[2], "hatch": "xxxxx"},
}
"""Cause of a loss -> colour and hatch, so that causes differ in grey, too."""

LABELS = {
    "routing": "routing loss",
    "switch": "switch loss",
    "both": "loss of routing and switch",
    "window": "window (no loss)",
    "gain": "gain",
}

REACHED, ENDS = "#dedede", "#ababab"
"""Colours of the bars of levels, and of the first and the last level."""


@figure("budget", "packets", place=20, usual=False)
def budget(run: Run, size: tuple[float, float]) -> Figure | None:
    """Where the throughput goes: the cost of each step from any routing to this switch, with 95 % intervals."""
    budgets = [loss_budget for loss_budget in loss_budgets(run.tables) if loss_budget.known]
    if not budgets:
        return None
    across = min(MOST_ACROSS, len(budgets)) if size[0] > 5 else 1
    down = math.ceil(len(budgets) / across)
    figure = new_figure((size[0], HEIGHT * down + KEY))
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    names = Names([loss_budget.scenario for loss_budget in budgets])
    styles: set[str] = set()
    reach = max(number(row, "percent_high") for loss_budget in budgets for row in _reaches(loss_budget))
    for i, ax in enumerate(grid.flat):
        if i >= len(budgets):
            ax.set_axis_off()
            continue
        styles |= _panel(ax, budgets[i], max(reach, 100.0), across)
        ax.set_title(names[budgets[i].scenario], fontsize=8, loc="left", pad=2)
        if i + across >= len(budgets):
            ax.set_xlabel("% of mcf" if across > 1 else "% of the maximum over all routings (mcf)")
    _key(figure, styles, any(is_insignificant(row) for one in budgets for row in one.losses))
    return figure


def _reaches(loss_budget: LossBudget) -> list[dict[str, float]]:
    return [{"percent_high": number(row, "percent")} for row in loss_budget.levels if row["kind"] != "omitted"]


def _panel(ax: Axes, loss_budget: LossBudget, reach: float, across: int) -> set[str]:
    """Draw one loss budget and return the causes of its losses. across: panels side by side."""
    losses = {row["to"]: row for row in loss_budget.losses}
    styles: set[str] = set()
    above = math.nan
    for place, level_name in enumerate(LEVELS):
        row = loss_budget.level(level_name)
        if row is None:
            ax.text(1, place, "left out", va="center", fontsize=6, style="italic", color="#777777", gid="left out")
            continue
        level = number(row, "percent")
        ends = level_name in ("mcf", "switch")
        ax.barh(place, level, WIDE, color=ENDS if ends else REACHED, linewidth=0, gid="reached", zorder=2)
        if level_name in losses:
            styles.add(_loss(ax, place, above, level, losses[level_name], across))
        _level(ax, place, level, ends)
        above = level
    ax.set_yticks(range(len(LEVELS)), list(LEVELS.values()))
    ax.set_ylim(len(LEVELS) - 0.45, -0.55)
    ax.set_xlim(0, 1.04 * reach)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    _loads(ax, loss_budget)
    return styles


def _loss(ax: Axes, place: int, above: float, level: float, row: Row, across: int) -> str:
    """Draw the bar between two levels, hollow if the loss is not significant; return its cause."""
    whose = _cause(row)
    look = STYLES[whose]
    face = "white" if is_insignificant(row) else look["color"]
    edge = look["color"] if face == "white" else "white"
    style: ArtistProperties = {"facecolor": face, "edgecolor": edge, "hatch": look["hatch"], "linewidth": 0.6}
    ax.barh(place, above - level, WIDE, left=level, **style, gid="part", zorder=2.2)
    low, high = above - number(row, "percent_high"), above - number(row, "percent_low")
    if high - low >= MIN_INTERVAL:
        style = {"color": "black", "linewidth": 0.9, "marker": "|", "markersize": 4}
        ax.plot([low, high], [place] * 2, **style, gid="interval", zorder=2.6)
    _name(ax, place, (min(level, above, low), max(level, above, high)), _text(row, across))
    return whose


def _text(row: Row, across: int) -> str:
    """The number of a loss, and its name if it fits."""
    value, names = number(row, "percent"), row["part"].split("+")
    text = f"{-value:+.1f}".replace("-", "−") if abs(value) >= 0.05 else "0"
    return text if across > 1 or len(names) > 2 else f"{' + '.join(names)} {text}"


def _name(ax: Axes, place: int, ends: tuple[float, float], text: str) -> None:
    """Write the label of a loss: left of its bar, else right of it, else over it."""
    needed, (low, high) = PER_LETTER * len(text), ends
    if low >= FOOT + needed:
        x, ha, offset = low, "right", -3
    elif high <= 100 - needed:
        x, ha, offset = high, "left", 3
    else:
        x, ha, offset = (low + high) / 2, "center", 0
    annotation = ax.annotate(
        text, (x, place), xytext=(offset, 0), textcoords="offset points", ha=ha, va="center", fontsize=6.5,
        path_effects=marks.HALO, gid="part name", zorder=3,
    )  # fmt: skip
    annotation.set_in_layout(False)


def _cause(row: Row) -> str:
    if number(row, "percent") < 0:
        return "gain"
    if is_no_loss(row["part"]):
        return "window"
    of_routing = {part in ROUTING_LOSSES for part in row["part"].split("+")}
    return "both" if len(of_routing) > 1 else "routing" if True in of_routing else "switch"


def _level(ax: Axes, place: int, level: float, end: bool) -> None:
    """Write the number of a level at the foot of its bar."""
    ax.annotate(
        f"{level:.1f}", (0, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6.5,
        fontweight="bold" if end else "normal", gid="level", zorder=3,
    )  # fmt: skip


def _loads(ax: Axes, loss_budget: LossBudget) -> None:
    """Add the axis in loads on top."""
    top = loss_budget.level("mcf")
    whole = math.nan if top is None else (number(top, "lower") + number(top, "upper")) / 200
    if not whole > 0:
        return
    loads = ax.secondary_xaxis("top", functions=(lambda x: np.asarray(x) * whole, lambda x: np.asarray(x) / whole))
    loads.xaxis.set_major_locator(MaxNLocator(4))
    loads.tick_params(labelsize=6, pad=1, length=2)
    loads.set_xlabel("load", fontsize=6.5, labelpad=1)


def _key(figure: Figure, styles: set[str], hollow: bool) -> None:
    """Add the key. styles: causes of the losses drawn. hollow: whether a loss is not significant."""
    handles = [
        Patch(facecolor=STYLES[name]["color"], edgecolor="white", hatch=STYLES[name]["hatch"], linewidth=0, label=text)
        for name, text in LABELS.items() if name in styles
    ]  # fmt: skip
    if hollow:
        handles.append(
            Patch(facecolor="white", edgecolor=marks.NEUTRAL, linewidth=0.6, label="hollow: not significant")
        )
    finish(figure, handles)
