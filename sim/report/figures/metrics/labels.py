# SPDX-License-Identifier: Apache-2.0
"""Labels of axes."""

from typing import Any

from flitlab.sim.report.figures.marks import in_lines
from flitlab.sim.report.figures.metrics.specification import Plot


def y_title(plot: Plot) -> str:
    """The label of the axis of y: the quantity, or of several the unit that all share; '' if they share none."""
    own = [quantity for quantity in plot.y if not quantity.bound] or list(plot.y)
    if len(own) == 1:
        return own[0].title
    units = {quantity.unit for quantity in own}
    return units.pop() if len(units) == 1 else ""


def put_label(put: Any, text: str, width: int = 35) -> None:
    """A label on as few lines as it takes, all about as long."""
    put(in_lines(text, -(-len(text) // width) or 1))
