# SPDX-License-Identifier: Apache-2.0
"""The figures of a design: cost over certified throughput, throughput after failures, parts of the cost."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flitlab.models.topology.equipment import equipment_bound, most_hosts
from flitlab.sim.design.measures import failure_cases
from flitlab.sim.design.outcome import Design
from flitlab.sim.report.figures.style import in_style, new_figure

MARKERS = "osD^vP*X<>hp"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")

LINES = ("-", "--", ":", "-.")

PAD = 0.0
"""Space below the key, which the layout does not reserve: more of it moves the key into the labels of the x axis."""

DOMINATED = "#BBBBBB"


@in_style
def figure_of(design: Design) -> Figure:
    """A panel for each demand: certified intervals of the front, upper ends of dominated candidates, and the bound."""
    demands = design.request.demands
    figure = new_figure((4.6 * len(demands), 4.2))
    axes = figure.subplots(1, len(demands), sharey=True, squeeze=False)[0]
    for d, ax in enumerate(axes):
        _panel(ax, design, d)
    axes[0].set_ylabel("cost in $ per host")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, borderaxespad=PAD)
    return figure


def figures_of(design: Design) -> dict[str, Figure]:
    """All figures by the names of their files; none of failures if there are none, and of a front without points."""
    figures = {"design": figure_of(design)}
    if design.front:
        figures["cost"] = cost_of(design)
        if any(failure_cases(design.request)):
            figures["failures"] = failures_of(design)
    return figures


@in_style
def cost_of(design: Design) -> Figure:
    """What is bought for each point, in dollars per host."""
    points, hosts = design.front, design.request.hosts
    figure = new_figure((7.0, 3.4))
    ax = figure.subplots()
    numbers, below = np.arange(1, len(points) + 1), np.zeros(len(points))
    for k, part in enumerate(points[0].result.option.parts):
        height = np.array([point.result.option.parts[part] / hosts for point in points])
        ax.bar(numbers, height, 0.75, below, color=COLOURS[k], label=part)
        below += height
    _of_points(ax, len(points))
    ax.set_ylabel("cost in $ per host")
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, borderaxespad=PAD)
    return figure


@in_style
def failures_of(design: Design) -> Figure:
    """A panel for each demand: certified throughput of the points after failures, the mean of the draws and the
    least."""
    request, points = design.request, design.front
    figure = new_figure((4.6 * len(request.demands), 3.6))
    axes = figure.subplots(1, len(request.demands), sharey=True, squeeze=False)[0]
    numbers, cases = np.arange(1, len(points) + 1), [name for name, _ in failure_cases(request)]
    for d, (ax, demand) in enumerate(zip(axes, request.demands, strict=True)):
        whole = [min(float(point.result.lower[d]), 1.0) for point in points]
        ax.plot(numbers, whole, color="black", linewidth=1, marker="_", label="nothing failed")
        for k, name in enumerate(cases):
            least, mean = (
                np.array([point.values[f"{demand.name}@{name}{end}"] for point in points]) for end in ("", ".mean")
            )
            shift = 0.6 * ((k + 1) / (len(cases) + 1) - 0.5)
            ax.errorbar(
                numbers + shift, mean, yerr=[np.maximum(mean - least, 0), np.zeros(len(points))], linestyle="none",
                marker=MARKERS[k % len(MARKERS)], markersize=3.5, color=COLOURS[k % len(COLOURS)], elinewidth=1,
                label=f"{name.replace('=', ' ')} failed, mean and least",
            )  # fmt: skip
        _of_points(ax, len(points))
        ax.set_ylim(0, 1.05)
        ax.set_title(demand.name)
    axes[0].set_ylabel("certified throughput")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, borderaxespad=PAD)
    return figure


def _of_points(ax: Axes, count: int) -> None:
    ax.set_xlim(0.3, count + 0.7)
    ax.set_xticks(range(1, count + 1, -(-count // 20)))
    ax.set_xlabel("point of the front, by cost")


def _panel(ax: Axes, design: Design, d: int) -> None:
    search, hosts = design.search, design.request.hosts
    dominated = [one for one in search.results if one.by >= 0 and np.isfinite(one.upper[d])]
    ax.scatter(
        [min(float(one.upper[d]), 1.0) for one in dominated], [one.option.cost / hosts for one in dominated],
        s=8, color=DOMINATED, linewidths=0, label="dominated (upper end)", rasterized=True,
    )  # fmt: skip
    kinds = list(dict.fromkeys(point.result.option.kind for point in design.front))
    for k, kind in enumerate(kinds):
        points = [point.result for point in design.front if point.result.option.kind == kind]
        lower, upper = (
            np.array([float(ends[d]) for ends in both])
            for both in zip(*((p.lower, p.upper) for p in points), strict=True)
        )
        cost = [point.option.cost / hosts for point in points]
        ax.errorbar(
            (lower + upper) / 2, cost, xerr=(upper - lower) / 2, linestyle="none", marker=MARKERS[k % len(MARKERS)],
            markersize=3.5, color=COLOURS[k % len(COLOURS)], elinewidth=1, capsize=3, label=kind,
        )  # fmt: skip
    if design.request.demands[d].closed == "uniform":
        for k, (name, cost, theta) in enumerate(_bound(design)):
            ax.plot(theta, cost, color="black", linestyle=LINES[k % len(LINES)], linewidth=1, label=name)
    ax.set_xlim(0, 1.03)
    top = max((result.option.cost / hosts for result in dominated), default=0.0)
    most = max((point.result.option.cost / hosts for point in design.front), default=top)
    ax.set_ylim(0, 1.15 * most if most else None)
    ax.set_xlabel(f"throughput of {design.request.demands[d].name}, share of the hosts' rate")


def _bound(design: Design) -> list[tuple[str, list[float], list[float]]]:
    """Name, cost per host and bound of networks with a link at every port; for every switch, plane and split."""
    request, curves = design.request, []
    used = {(p.result.option.sku.name, p.result.option.planes, p.result.option.equipment.split) for p in design.front}
    for sku, b, split in request.equipments():
        if (sku.name, b, split) not in used:
            continue
        most = max(p.result.option.switches for p in design.front if p.result.option.sku is sku) // b
        sizes = [n for n in range(2, most + 1) if most_hosts(n, sku.ports * b, split) >= request.hosts]
        cost, theta = [], []
        for n in sizes[:: max(1, len(sizes) // 60)]:
            free = n * sku.ports * b - request.hosts
            links = free * split / 2 * b  # of all planes; a port of a plane is 1 / b of a port
            total = b * n * sku.price + free * request.prices.optic + links * request.prices.fibre
            cost.append(total / request.hosts + request.prices.copper)
            theta.append(min(equipment_bound(n, sku.ports * b, request.hosts, split).throughput, 1.0))
        name = f"{sku.name}, " * (len(request.skus) > 1) + f"{b} planes, split {b * split}"
        curves.append(("bound over all networks" + f" ({name})" * (len(request.equipments()) > 1), cost, theta))
    return curves
