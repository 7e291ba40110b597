# SPDX-License-Identifier: Apache-2.0
"""The figure ``timeline``."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.programs import ByProgram, finish, first_of, first_seed, in_title, panels_of, unit_of
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run

DOINGS = {"compute": "#0b4f80", "overhead": "#D55E00", "message": "#f2c14e"}
"""What a rank does, as columns of timeline.csv; white where it does none of these."""

NAMED = {"compute": "computes", "overhead": "sends or receives (overhead)", "message": "waits for messages"}


@figure("timeline", "programs", place=11)
def timeline(run: Run, size: tuple[float, float]) -> Figure | None:
    """What some of the ranks do over time: compute, spend overhead on messages, wait for messages, or nothing.

    Each row is a rank, and a column a span of time, in the mixture of colours of what the rank did in it. Panels of
    the same program have the same axis of time, so that a shorter picture is a faster run. The first seed is shown.
    """
    by, rows = ByProgram(run), run.tables.get("timeline", [])
    chosen, left_out = first_of([(p, s) for p in by.programs for s in by.series if by.rows(rows, p, s)], "panels")
    if not chosen:
        return None
    figure, panels = panels_of(chosen, size, 0.85)
    longest = {p: max(number(row, "to_ns") for s in by.series for row in by.rows(rows, p, s)) for p, _ in chosen}
    for ax, (program, series) in zip(panels, chosen, strict=True):
        mine = first_seed(by.rows(rows, program, series))
        ranks = list(dict.fromkeys(row["rank"] for row in mine))
        picture = np.ones((len(ranks), len(mine) // len(ranks), 3))
        for name, colour in DOINGS.items():
            part = np.array([number(row, name) for row in mine]).reshape(picture.shape[:2])
            picture -= part[:, :, None] * (1 - np.array(to_rgb(colour)))
        unit, factor = unit_of(longest[program])
        extent = (0, number(mine[-1], "to_ns") * factor, len(ranks) - 0.5, -0.5)
        ax.imshow(np.clip(picture, 0, 1), extent=extent, aspect="auto", interpolation="nearest")
        ax.set_xlim(0, longest[program] * factor)
        ax.grid(visible=False)
        shown = [0, len(ranks) - 1] if len(ranks) > 1 else [0]
        ax.set_yticks(shown, [ranks[i] for i in shown], fontsize=6)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        in_title(ax, ", ".join(filter(None, (program, series if len(by.series) > 1 else "", f"time ({unit})"))))
    figure.supylabel("rank", fontsize=7.5)
    used = [name for name in DOINGS if any(number(row, name) > 0 for row in rows)]
    handles: list[Artist] = [Patch(facecolor=DOINGS[name], label=NAMED[name]) for name in used]
    handles.append(Patch(facecolor="white", edgecolor="#999999", linewidth=0.5, label="nothing"))
    finish(figure, handles, left_out)
    return figure
