# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of docs/routing.md: ``python docs/router_figures.py``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from flitlab.models.registry import make
from flitlab.models.routing.certificate import dependencies, find_cycle, width_of
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.topology.graph import Topology

FIGURES = Path(__file__).parent / "figures"
FLIT, HEAD, CREDITS, WRONG, GOOD = "#33658a", "#f6ae2d", "#8e4585", "#c1292e", "#2e7d5b"

FLITS, HOPS = 3, 1
HEADER, SWITCH, LINK, INJECTION, EJECTION, CREDIT = 3, 1, 2, 2, 2, 2


def cell(axis: Axes, row: float, start: int, ticks: int, colour: str, text: str) -> None:
    """A box in a row of the timing diagram, half a row high."""
    axis.add_patch(Rectangle((start, row), ticks, 0.4, facecolor=colour, edgecolor="white", linewidth=1))
    axis.text(start + ticks / 2, row + 0.21, text, ha="center", va="center", fontsize=8, color="white")


def arrow(axis: Axes, start, end, colour: str, **style) -> None:
    """From one point to another."""
    properties = {"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 0, **style}
    axis.annotate("", end, start, arrowprops=properties)


def draw_timing(axis: Axes, mode: str) -> None:
    """One packet alone over HOPS channels: when its flits are sent, granted and delivered, and its credits return."""
    for flit in range(FLITS):
        cell(axis, 0.5, flit, 1, FLIT, str(flit + 1))
    sent, delay, name = 0, INJECTION, "injection"
    for k in range(HOPS + 1):
        arrival, row = sent + delay, 1.5 * (k + 1)
        arrow(axis, (sent, row - 0.6), (arrival, row), FLIT)
        axis.text((sent + arrival) / 2 + 0.4, row - 0.35, name, fontsize=8, color=FLIT)
        cell(axis, row, arrival, HEADER, HEAD, "v    header" if mode == "wormhole" else "header")
        sent = arrival + HEADER
        for flit in range(FLITS):
            cell(axis, row + 0.5, sent + flit, 1, FLIT, str(flit + 1))
            if k == HOPS and (mode == "wormhole" or flit == FLITS - 1):
                back = sent + flit + CREDIT
                arrow(axis, (sent + flit, row + 0.5), (back, row - 0.6), CREDITS, linestyle="--", linewidth=1)
        delay, name = (SWITCH + EJECTION, "switch + ejection") if k == HOPS else (SWITCH + LINK, "switch + link")
    axis.text(sent + FLITS + CREDIT - 0.8, row - 0.45, "credit", fontsize=8, color=CREDITS)
    row += 1.5
    arrow(axis, (sent, row - 0.6), (sent + delay, row), FLIT)
    axis.text(sent + delay / 2 + 0.6, row - 0.35, name, fontsize=8, color=FLIT)
    for flit in range(FLITS):
        cell(axis, row, sent + delay + flit, 1, FLIT, str(flit + 1))
    last = sent + delay + FLITS
    places = ["host sends", *(f"switch {k}" for k in range(HOPS + 1)), "host has"]
    axis.set(
        title=mode, xlim=(0, last), ylim=(row + 0.6, 0.3), xlabel="tick", xticks=np.arange(last + 1),
        yticks=[0.7, *(1.5 * (k + 1) + 0.45 for k in range(HOPS + 1)), row + 0.2], yticklabels=places,
    )  # fmt: skip
    axis.grid(axis="x", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["left", "right", "top"]].set_visible(False)
    axis.tick_params(left=False)


def router_timing(path: Path) -> None:
    """Both flow controls, one above the other."""
    figure, axes = plt.subplots(2, 1, figsize=(8.5, 6.4), layout="constrained")
    for axis, mode in zip(axes, ("vct", "wormhole"), strict=True):
        draw_timing(axis, mode)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def clockwise(topology: Topology) -> list[int]:
    """The channels v -> v + 1 of a ring, in order of v."""
    ends = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    return [ends.index((v, (v + 1) % topology.switches)) for v in range(topology.switches)]


def around(index: float, count: int, radius: float) -> tuple[float, float]:
    """A place on a circle, clockwise from the upper left."""
    angle = np.pi * (0.75 - 2 * index / count)
    return radius * np.cos(angle), radius * np.sin(angle)


def draw_ring(axis: Axes, topology: Topology) -> None:
    """The switches, and their channels in one direction."""
    n = topology.switches
    for v in range(n):
        x, y = around(v, n, 1)
        arrow(axis, (x, y), around(v + 1, n, 1), "black", shrinkA=13, shrinkB=13, linewidth=1.5)
        axis.text(x, y, str(v), ha="center", va="center", bbox={"boxstyle": "circle", "facecolor": "#dddddd"})
    axis.set_title("a ring, one direction of it", fontsize=10)


def draw_dependencies(axis: Axes, topology: Topology, policy: int, vcs: int, title: str) -> None:
    """(channel, VC) on two circles, and which waits for which; a cycle in red."""
    routes, ring = make("routing", kind="dor").build(topology), clockwise(topology)  # type: ignore[attr-defined]
    edges, width = dependencies(topology, routes, vcs, policy), width_of(routes, vcs, policy)
    cycle = find_cycle(topology.channels * width, edges) or []
    edges = [(a, b) for a, b in edges.tolist() if a // width in ring and b // width in ring]
    place = {
        c * width + vc: around(i + 0.5, len(ring), 1.05 - 0.55 * vc) for i, c in enumerate(ring) for vc in range(width)
    }
    for a, b in edges:
        colour = WRONG if cycle else GOOD
        arrow(axis, place[a], place[b], colour, shrinkA=19, shrinkB=19, linewidth=1.8)
    for vertex, (x, y) in place.items():
        channel, vc = divmod(vertex, width)
        text = f"{topology.src[channel]}→{topology.dst[channel]}" + (f"\nVC {vc}" if width > 1 else "")
        used = any(vertex in edge for edge in edges)
        axis.text(
            x, y, text, ha="center", va="center", fontsize=8, color="black" if used else "#aaaaaa",
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "#888888" if used else "#dddddd"},
        )  # fmt: skip
    axis.set_title(title, fontsize=10)


def dependency_cycle(path: Path) -> None:
    """A ring of four switches, and its dependency graphs under two VC policies."""
    topology = make("topology", kind="torus", dims=[4]).build()  # type: ignore[attr-defined]
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
    draw_ring(axes[0], topology)
    draw_dependencies(axes[1], topology, VcPolicy.ANY, 1, "one VC: a cycle, deadlock is possible")
    draw_dependencies(axes[2], topology, VcPolicy.DATELINE_CROSSING, 2, "two VCs with a dateline at 3→0: no cycle")
    for axis in axes:
        axis.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
        axis.axis("off")
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    router_timing(FIGURES / "router_timing.png")
    dependency_cycle(FIGURES / "dependency_cycle.png")
