# SPDX-License-Identifier: Apache-2.0
"""The figure ``steps``."""

import math
import re

from matplotlib.figure import Figure

from flitlab.sim.measure.interval import mean_known
from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import ByProgram, figure_of, finish
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run
from flitlab.sim.terminal import shown_label

LONGEST = 36
"""Letters of a name from which on what stands in brackets takes another line."""

MOST_STEPS = 24
"""Kinds of steps of which the efficiency is drawn, those that take longest."""


@figure("steps", "programs", place=9)
def steps(run: Run, size: tuple[float, float]) -> Figure | None:
    """How near steps come to the lower bounds on their times: those that take longest, by program.

    At 100 % a step is as fast as any routing could make it. What is far from that and takes long is where to look.
    """
    by, rows = ByProgram(run), run.tables.get("steps", [])
    total: dict[tuple[str, str], float] = {}
    for row in rows:
        program = by.program_of.get(row.get("scenario") or "", ("", ""))[0]
        took = number(row, "time_ns") * number(row, "occurrences")
        if number(row, "messages") > 0 and math.isfinite(number(row, "efficiency")):
            total[program, row["label"]] = max(total.get((program, row["label"]), 0.0), took)
    longest = sorted(total, key=lambda key: -total[key])[:MOST_STEPS]
    chosen = [key for key in total if key in longest]
    if not chosen:
        return None
    figure, ax = figure_of((size[0], 0.5 + 0.19 * max(len(chosen), 3)))
    names = [f"{program}: {label}" if program else label for program, label in (_plain(*key) for key in chosen)]
    step = 0.7 / len(by.series)
    for s, series in enumerate(by.series):
        for i, (program, label) in enumerate(chosen):
            mine = [row for row in by.rows(rows, program, series) if row["label"] == label]
            value = mean_known(number(row, "efficiency") for row in mine)
            if math.isfinite(value):
                place = i + (s - (len(by.series) - 1) / 2) * step
                ax.plot(100 * value, place, linestyle="none", **marks.symbol(s), gid="curve")
    ax.set_yticks(range(len(names)), [_on_lines(shown_label(name)) for name in names], fontsize=6)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, 104)
    ax.set_xlabel("bound / time (%)")
    handles = [marks.key(series, **marks.symbol(s)) for s, series in enumerate(by.series) if len(by.series) > 1]
    rest = len(total) - len(chosen)
    finish(
        figure, handles, f"the {MOST_STEPS} kinds of steps that take longest; {rest} more are left out" if rest else ""
    )
    return figure


def _plain(program: str, label: str) -> tuple[str, str]:
    """Without the number of ranks, which most steps of a program share."""
    return program, re.sub(r"(, )?\d+ ranks\)", ")", label).replace(" ()", "")


def _on_lines(name: str) -> str:
    """A name, on two lines if it is long; rows have room for no more."""
    return name if len(name) < LONGEST else name.replace(" (", "\n(", 1)
