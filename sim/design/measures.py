# SPDX-License-Identifier: Apache-2.0
"""What is measured on the points of a front beside their throughput: layout, failures, growth, routings.

A part has columns, each a value of a point, and limits: keys of ``limits`` that name one of its columns. A point that
violates a limit is found out when it is solved, before it dominates others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.design.bounds import Network
from flitlab.fluid.design.demands import Memo
from flitlab.fluid.design.growth import grow
from flitlab.fluid.design.options import built
from flitlab.fluid.design.search import Result
from flitlab.models.instance import Instance
from flitlab.models.layout.floor import cables_of, lengths
from flitlab.models.mappings import Keys, Row
from flitlab.models.registry import SpecError, make, recorded_warnings
from flitlab.sim.design.request import DesignRequest


@dataclass(frozen=True)
class Part:
    """Values of a point that belong together.

    title: of their table. measure: their values. columns: their names. limits: names of those that a limit may name,
    and whether it is the most that they may be (else the least).
    """

    title: str
    measure: Callable[[DesignRequest, Result, Memo | None], Row]
    columns: Callable[[DesignRequest], list[str]]
    limits: Callable[[DesignRequest], dict[str, bool]]


@dataclass(eq=False)
class Measures:
    """The parts of a design, measured on results when they are needed. memo: demands that were solved."""

    request: DesignRequest
    memo: Memo | None = None
    known: dict[tuple[str, int], Row] = field(default_factory=dict)

    def of(self, result: Result, part: str) -> Row:
        """The values of a part."""
        key = part, id(result)
        if key not in self.known:
            self.known[key] = PARTS[part].measure(self.request, result, self.memo)
        return self.known[key]

    def every(self, result: Result) -> Row:
        """The values of all parts."""
        return {key: value for part in PARTS for key, value in self.of(result, part).items()}

    def violated(self, result: Result) -> str:
        """The first limit that a solved network exceeds, '' if none; of the least, the gap of the intervals counts."""
        for part, limits in ((name, part.limits(self.request)) for name, part in PARTS.items()):
            for column, at_most in limits.items():
                limit = self.request.measured_limits.get(column)
                if limit is None:
                    continue
                value = self.of(result, part).get(column)
                if value is None:
                    return f"{column} is unknown: {self.of(result, part).get('growth') or 'it has no such value'}"
                if value > limit * (1 + 1e-12) if at_most else value < limit * (1 - self.request.tolerance.gap):
                    return f"{column} {value:.4g} {'>' if at_most else '<'} {limit:g}"
        return ""


def _layout(request: DesignRequest, result: Result, memo: Memo | None) -> Row:
    """Cables between cabinets, their price by length, and the mean latency of a packet without others.

    A cable up to ``reach`` is of copper and costs what that of a host does; longer ones are optical. A packet takes the
    path of least latency; every switch adds ``switch_ns``, a metre ``metre_ns``. Hosts stand beside their switch.
    """
    option, layout, prices = result.option, request.config.layout, request.prices
    topology = built(option)
    metric = make("metric", kind="cables", **layout.metric_keys())
    cabinet = metric.cabinets(topology)
    metres = lengths(cabinet, cables_of(topology).ends, metric.effective_constants.floor)
    optical, split = metres > layout.reach, option.planes * option.equipment.split
    each = np.where(optical, 2 * prices.optic / split + prices.fibre, prices.copper / split)
    hosts = option.equipment.hosts
    total = option.switches * option.sku.price + option.planes * each.sum() + hosts * prices.copper
    of_channel = lengths(cabinet, np.column_stack([topology.src, topology.dst]), metric.effective_constants.floor)
    n = topology.switches
    weight = np.full((n, n), np.inf)
    np.minimum.at(weight, (topology.src, topology.dst), layout.switch_ns + layout.metre_ns * of_channel)
    weight[np.isinf(weight)] = 0
    far = dijkstra(csr_array(weight)) + layout.switch_ns
    pairs = np.outer(topology.host_count, topology.host_count) - np.diag(topology.host_count)
    return {
        "cable_m": float(option.planes * metres.sum()), "mean_cable_m": float(metres.mean()),
        "longest_cable_m": float(metres.max()), "optical_share": float(optical.mean()),
        "laid_cost_per_host": float(total / hosts), "latency_ns": float((pairs * far).sum() / pairs.sum()),
        "longest_latency_ns": float(far[pairs > 0].max()),
    }  # fmt: skip


LAYOUT = (
    "cable_m", "mean_cable_m", "longest_cable_m", "optical_share", "laid_cost_per_host", "latency_ns",
    "longest_latency_ns",
)  # fmt: skip


def failure_cases(request: DesignRequest) -> Iterator[tuple[str, Keys]]:
    """Name and keys of every failure."""
    if request.config.failures is not None:
        yield from ((f"links={share:g}", {"links": share}) for share in request.config.failures.links)
        yield from ((f"switches={number}", {"switches": number}) for number in request.config.failures.switches)


def _failures(request: DesignRequest, result: Result, memo: Memo | None) -> Row:
    """What is certainly carried after failures, in every plane alike: the least of all draws, and their mean."""
    values: Row = {}
    for name, keys in failure_cases(request):
        seeds = range(1, request.config.failures.seeds + 1) if request.config.failures else ()
        thetas = np.array([_after(request, result, keys | {"seed": seed}, memo) for seed in seeds])
        for d, demand in enumerate(request.demands):
            values[f"{demand.name}@{name}"] = float(thetas[:, d].min())
            values[f"{demand.name}@{name}.mean"] = float(thetas[:, d].mean())
    return values


def _after(request: DesignRequest, result: Result, failures: Row, memo: Memo | None) -> list[float]:
    try:
        network = Network.of(make("topology", **result.option.plane(), failures=failures).build())
        return [demand.ends(network, request.tolerance.gap, memo=memo).lower for demand in request.demands]
    except SpecError:  # what is left is not connected
        return [0.0] * len(request.demands)


def _failure_columns(request: DesignRequest) -> list[str]:
    cases = [name for name, _ in failure_cases(request)]
    return [f"{demand.name}@{name}{end}" for name in cases for demand in request.demands for end in ("", ".mean")]


GROWTH = ("growth", "growth_cost", "new_switches", "new_cables", "moved_cables", "moved_hosts")


def _growth(request: DesignRequest, result: Result, memo: Memo | None) -> Row:
    """The larger network that a point can become, what must be bought, and the share of its cables that move."""
    growth = request.config.growth
    if growth is None:
        return {}
    least = [
        max(demand.floor, growth.keep * min(1.0, float(lower)))
        for demand, lower in zip(request.demands, result.lower, strict=True)
    ]
    moved, option = request.measured_limits.get("moved_cables", 1.0), result.option
    plan = grow(option, growth.hosts, request.demands, least, request.prices, request.tolerance.gap, moved, memo)
    columns = _growth_columns(request)
    if plan is None:
        within = f" within moved_cables {moved:g}" if moved < 1 else ""
        return dict.fromkeys(columns) | {"growth": f"no network of the family carries enough{within}"}
    values = (
        plan.option.label, plan.cost, plan.switches, plan.cables, plan.moved / option.cables if option.cables else 0.0,
        plan.hosts, *(end.lower for end in plan.ends),
    )  # fmt: skip
    return dict(zip(columns, values, strict=True))


def _growth_columns(request: DesignRequest) -> list[str]:
    if request.config.growth is None:
        return []
    return [*GROWTH, *(f"{demand.name}@hosts={request.config.growth.hosts}" for demand in request.demands)]


def _routings(request: DesignRequest, result: Result, memo: Memo | None) -> Row:
    """What the fixed split of each routing carries; None where it cannot be computed, or a demand is a collective."""
    if not request.routings:
        return {}
    topology = built(result.option)
    values: Row = dict.fromkeys(_routing_columns(request))
    for name, keys in request.routings.items():
        try:
            with recorded_warnings():
                routes = make("routing", **keys).build(topology)
        except SpecError:  # not for this network
            continue
        for demand in request.demands:
            if not demand.is_collective:
                traffic = make("traffic", **demand.traffic).build(topology)
                (row,) = ceilings(Instance(topology, traffic, routes), [ceiling_spec("split")])
                values[f"{demand.name}@{name}"] = None if np.isnan(row.upper) else min(float(row.upper), 1.0)
    return values


def _routing_columns(request: DesignRequest) -> list[str]:
    return [f"{demand.name}@{name}" for name in request.routings for demand in request.demands]


PARTS = {
    "layout": Part(
        "layout and latency", _layout, lambda request: list(LAYOUT),
        lambda request: dict.fromkeys(("cable_m", *LAYOUT[2:3], *LAYOUT[4:]), True),
    ),
    "failures": Part(
        "after failures: the least of all draws, and their mean", _failures, _failure_columns,
        lambda request: dict.fromkeys(_failure_columns(request), False),
    ),
    "growth": Part(
        "growth", _growth, _growth_columns,
        lambda request: {
            column: column in GROWTH for column in _growth_columns(request) if column != "growth"
        },
    ),
    "routings": Part(
        "what routings carry", _routings, _routing_columns,
        lambda request: dict.fromkeys(_routing_columns(request), False),
    ),
}  # fmt: skip
"""The parts by name, in the order in which limits are checked: the cheapest first."""


def limit_names(request: DesignRequest) -> list[str]:
    """Columns that a limit may name."""
    return [column for part in PARTS.values() for column in part.limits(request)]
