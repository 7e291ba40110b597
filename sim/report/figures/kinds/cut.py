# SPDX-License-Identifier: Apache-2.0
"""The figure ``cut``."""

from collections.abc import Sequence
from pathlib import Path

from flitlab.sim.config.study import Study
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.network.cut import draw_all


@figure("cut", "network", place=3)
def cut(study: Study, folder: Path, formats: Sequence[str]) -> list[Path]:
    """What bounds each collective, drawn on the network: the side of a cut, or the parts, and what leaves them."""
    return draw_all(study, folder, formats)
