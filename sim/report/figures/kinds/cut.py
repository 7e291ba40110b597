# SPDX-License-Identifier: Apache-2.0
"""The figure ``cut``."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib.figure import Figure

from flitlab.fluid.collective.bounds import TimeBound
from flitlab.fluid.collective.cuts import CollectiveCut
from flitlab.fluid.collective.parts import Parts
from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.case import Study
from flitlab.sim.experiment.collective import LowerBounds
from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.kinds.bottleneck import numbered
from flitlab.sim.report.figures.registry import figure
from flitlab.sim.report.figures.style import ArtistProperties, in_style, new_figure, save
from flitlab.sim.report.network.drawing import Drawing
from flitlab.sim.report.network.places import MOST_NODES, positions, suitable

NAME = "cut"

OUTSIDE, CROSSING = "#9a9a9a", "#D55E00"
"""Colours of switches that are in no set, and of channels that leave one."""

FEW = 24
"""Switches up to which parts that are single switches are drawn."""

WIDEST = 48
"""Letters of a line of the title."""

MOST_LABELS = 24
"""Channels that leave a set up to which their capacities are written beside them."""


@figure("cut", "network", place=3)
def cut(study: Study, folder: Path, formats: Sequence[str]) -> list[Path]:
    """What bounds each collective, drawn on the network: the side of a cut, or the parts, and what leaves them."""
    leasts = LowerBounds()
    figures: dict[tuple[object, ...], Figure] = {}
    written: list[Path] = []
    for case in study.cases:
        if case.collective is None or case.topology.switches > MOST_NODES:
            continue
        question = case.collective.question
        key = (question.topology.content_hash, question.collective, question.ranks, question.root)
        proof = None if key in figures else leasts.proof(case)
        if (
            proof is None
            or not isinstance(proof.proof, CollectiveCut | Parts)
            or _says_nothing(question.topology, proof.proof)
        ):
            continue
        figures[key] = figure_of(question.topology, question.collective, proof)
        name = numbered(NAME, len(figures), f"{question.topology.kind}_{question.collective}")
        written += save(figures[key], folder / "figures" / name, [suffix for suffix in formats if suffix != "pdf"])
    return written


@in_style
def figure_of(topology: Topology, collective: str, bound: TimeBound) -> Figure:
    """The network with the sets that prove a bound, and the channels that leave them."""
    proof = bound.proof
    assert isinstance(proof, CollectiveCut | Parts)
    part = _parts(topology, proof)
    leaving = (part[topology.src] >= 0) & (part[topology.src] != part[topology.dst])
    figure = new_figure()
    name = f"{topology.kind}, n = {topology.switches}"
    told = "\n".join(wrap(proof.text, WIDEST))
    figure.suptitle(f"{name}: what bounds {collective.replace('_', '-')}\n{told}", fontsize=8)

    def stroke(channel: int) -> ArtistProperties:
        back = int(topology.reverse[channel])
        crosses = leaving[channel] or (back >= 0 and leaving[back])
        return {"color": CROSSING, "linewidth": 1.6, "zorder": 1.8} if crosses else {}

    ax = figure.add_subplot()
    places = positions(topology, suitable(topology))
    drawing = Drawing(figure, ax, topology, places, stroke, lambda v: _colour(int(part[v])))
    drawing.draw()
    crossing = np.flatnonzero(leaving)
    for channel in crossing.tolist() if len(crossing) <= MOST_LABELS else ():
        x, y = drawing.on_line(channel, 0.4).tolist()
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        text = f"{topology.capacity[channel]:g}"
        ax.text(x, y, text, fontsize=6, ha="center", va="center", color=CROSSING, zorder=2.5, bbox=box)
    return figure


def _says_nothing(topology: Topology, proof: CollectiveCut | Parts) -> bool:
    """Whether every switch is a part by itself, so that the picture would show all channels alike."""
    return isinstance(proof, Parts) and proof.count >= topology.switches > FEW


def _parts(topology: Topology, proof: CollectiveCut | Parts) -> Ints:
    """int64 [switches]: the set that each switch is in, -1 for none."""
    if isinstance(proof, CollectiveCut):
        return np.where(proof.side[: topology.switches], 0, -1)
    return np.asarray(proof.part)[: topology.switches]


def _colour(part: int) -> str:
    return OUTSIDE if part < 0 else marks.colour(part)
