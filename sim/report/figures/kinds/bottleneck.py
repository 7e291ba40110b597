# SPDX-License-Identifier: Apache-2.0
"""The figure ``bottleneck``."""

from collections.abc import Sequence
from pathlib import Path

from flitlab.sim.config.study import Study
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.network.bottleneck import draw_all


@figure("bottleneck", "network", place=12, usual=False)
def bottleneck(study: Study, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Where the maximum concurrent flow of each scenario is stuck.

    Orange channels bind: their price in the certificate is not 0, the wider the higher. More capacity anywhere else
    gains nothing. Grey ones are the darker the fuller in one optimum, of which there may be others; below is how
    many are how full.
    """
    return draw_all(study, folder, formats)
