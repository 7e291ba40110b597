# SPDX-License-Identifier: Apache-2.0
"""The figure ``utilisation``."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.programs import ByProgram, finish, first_of, first_seed, in_title, panels_of, unit_of
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.folder.run import Run


@figure("utilisation", "programs", place=10)
def utilisation(run: Run, size: tuple[float, float]) -> Figure | None:
    """Use of the channels between switches over time: mean of all (thick) and the busiest (thin), by program.

    A busiest channel at 100 % beside a low mean is a hot spot; both low is a program that waits for something else.
    The busiest one is another channel from moment to moment. The replicate of the first seed is shown.
    """
    by, rows = ByProgram(run), run.tables.get("utilisation", [])
    programs, left_out = first_of([p for p in by.programs if any(by.rows(rows, p, s) for s in by.series)], "programs")
    if not programs:
        return None
    figure, panels = panels_of(programs, size)
    for ax, program in zip(panels, programs, strict=True):
        ends = [number(row, "to_ns") for s in by.series for row in by.rows(rows, program, s)]
        unit, factor = unit_of(max(ends))
        for s, series in enumerate(by.series):
            mine = first_seed(by.rows(rows, program, series))
            if not mine:
                continue
            edges = np.array([number(mine[0], "from_ns"), *(number(row, "to_ns") for row in mine)]) * factor
            for column, width in (("max", 0.5), ("mean", 1.2)):
                values = np.array([100 * number(row, column) for row in mine])
                style = {"color": marks.colour(s), "linestyle": marks.dashes(s), "linewidth": width}
                ax.plot(edges, np.append(values, values[-1]), drawstyle="steps-post", **style, gid="curve")
        ax.set_xlim(0, max(ends) * factor)
        ax.set_ylim(0, 104)
        in_title(ax, f"{program}, time ({unit})" if program else f"time ({unit})")
        ax.xaxis.set_major_locator(MaxNLocator(4))
    figure.supylabel("channel use (%)", fontsize=7.5)
    handles = [
        marks.key(series, color=marks.colour(s), linestyle=marks.dashes(s), linewidth=1.2)
        for s, series in enumerate(by.series) if len(by.series) > 1
    ]  # fmt: skip
    handles += [marks.key("mean of all channels", linestyle="-", linewidth=1.2)]
    handles += [marks.key("busiest channel of the moment", linestyle="-", linewidth=0.5)]
    finish(figure, handles, left_out)
    return figure
