# SPDX-License-Identifier: Apache-2.0
"""What columns of metrics.csv are called on an axis, and ratios of two of them."""

import math
import re
from dataclasses import dataclass
from functools import cached_property

from flitlab.fluid.kinds.spec import column_label
from flitlab.sim.measure.rows import number
from flitlab.sim.report.folder.frames import Row

LABELS: dict[str, tuple[str, str]] = {
    "switches": ("number of switches", ""),
    "channels": ("number of channels", ""),
    "links": ("number of links", ""),
    "failures.links": ("links that fail", ""),
    "failures.switches": ("switches that fail", ""),
    "link_failures.links": ("links that fail", ""),
    "topology.bisection": ("relative bisection", ""),
    "traffic.hosts": ("hot hosts", ""),
    "hosts": ("number of hosts", ""),
    "degree_min": ("least degree", ""),
    "degree_max": ("degree", ""),
    "diameter": ("diameter", "hops"),
    "aspl": ("average shortest path length", "hops"),
    "moore_aspl": ("Moore bound", "hops"),
    "moore_aspl_ratio": ("average shortest path length / Moore bound", ""),
    "moore_host_aspl": ("least mean distance from host to host", "hops"),
    "moore_host_aspl_ratio": ("mean distance from host to host / bound", ""),
    "moore_diameter": ("Moore bound on the diameter", "hops"),
    "moore_order": ("Moore bound on the number of switches", ""),
    "moore_order_ratio": ("number of switches / Moore bound", ""),
    "hop_distribution_mean": ("mean distance of switches", "hops"),
    "hop_distribution_host_mean": ("mean distance of hosts", "hops"),
    "hop_distribution_shares": ("share of switch pairs", ""),
    "hop_distribution_counts": ("pairs of switches", ""),
    "k_shortest": ("average length of the k shortest paths", "hops"),
    "k_shortest_bound": ("bound LK", "hops"),
    "link_load_max": ("maximum link load", ""),
    "link_load_mean": ("mean link load", ""),
    "link_load_bound": ("bound ML", ""),
    "path_counts_counts": ("paths on the channel", ""),
    "path_counts_share_at_most_2": ("share of channels on at most 2 paths", ""),
    "paths_within_min": ("least number of short paths", ""),
    "paths_within_mean": ("mean number of short paths", ""),
    "paths_within_bound": ("bound on the least number", ""),
    "useful_bandwidth": ("useful bandwidth of an all-gather", "channels"),
    "all_reduce_lower": ("least time of an all-reduce", "vectors / channel"),
    "all_reduce_upper": ("possible time of an all-reduce", "vectors / channel"),
    "broadcast": ("least time of a broadcast", "vectors / channel"),
    "edge_connectivity": ("edge connectivity", "channels"),
    "bisection": ("bisection", "links"),
    "bisection_channels": ("bisection", "channels"),
    "bisection_per_switch": ("bisection per switch of a half", "links"),
    "bisection_per_host": ("normalised bisection", ""),
    "bollobas": ("Bollobás bound", "links"),
    "bollobas_per_switch": ("Bollobás bound", "links"),
    "bollobas_per_host": ("Bollobás bound", ""),
    "known_orders_directed": ("largest known, uni-directional", "switches"),
    "known_orders_undirected": ("largest known, bi-directional", "switches"),
    "known_orders_directed_bound": ("Moore bound, uni-directional", "switches"),
    "known_orders_undirected_bound": ("Moore bound, bi-directional", "switches"),
    "known_orders_directed_share": ("share of the uni-directional Moore bound", ""),
    "known_orders_undirected_share": ("share of the bi-directional Moore bound", ""),
    "known_orders_ratio": ("uni-directional / bi-directional", ""),
    "lemma_bounds_k_shortest": ("bound LK", "hops"),
    "lemma_bounds_link_load": ("bound ML", ""),
    "lemma_bounds_diameter": ("least possible diameter", "hops"),
    "spectral_gap": ("spectral gap", ""),
    "cables_number": ("number of cables", ""),
    "cables_mean": ("mean cable length", "m"),
    "cables_max": ("longest cable", "m"),
    "cables_total": ("total cable length", "m"),
    "cables_optical_share": ("share of optical cables", ""),
    "cabling_number": ("number of cables", ""),
    "cabling_bundles": ("bundles of cables", ""),
    "cabling_bundle_max": ("cables of the largest bundle", ""),
    "cabling_mean": ("mean cable length", "m"),
    "cabling_max": ("longest cable", "m"),
    "cabling_total": ("total cable length", "m"),
    "cost_total": ("cost", "US$"),
    "cost_switches": ("cost of the switches", "US$"),
    "cost_cables": ("cost of the cables", "US$"),
    "cost_per_host": ("cost per host", "US$"),
    "theta": ("maximum concurrent flow", "throughput θ"),
    "theta_random": ("same-equipment random graphs", "throughput θ"),
    "relative": ("throughput relative to random graphs", ""),
    "found": ("largest value that reaches it", ""),
    "hosts_total": ("number of hosts", ""),
    "power_total": ("power", "W"),
    "power_per_host": ("power per host", "W"),
}
"""Column, or the end of a swept key, -> what it is called, and its unit. Others are called as they are, with spaces."""

AMOUNTS = ("failures.links", "failures.switches", "link_failures.links")
"""Ends of swept keys that are a share of all where they are written with a point, and else count them."""

STEPS = {
    "hop_distribution_shares": "distance (hops)",
    "hop_distribution_counts": "distance (hops)",
    "path_counts_counts": "rank of the channel",
}
"""Column that holds a distribution -> what runs along its x axis."""

MAIN = {
    "cables": "cables_mean",
    "cabling": "cabling_bundles",
    "cost": "cost_total",
    "hop_distribution": "hop_distribution_shares",
    "link_load": "link_load_max",
    "moore": "moore_aspl_ratio",
    "path_counts": "path_counts_counts",
    "paths_within": "paths_within_min",
    "power": "power_total",
}
"""Metric -> the column that says most, where that is not the first."""

IS_BOUND = re.compile(r"moore_(aspl|diameter|order)|lemma_bounds_\w+|bollobas(_per_\w+)?|\w+_bound|bounds(:\w+)?")


def spoken(column: str) -> tuple[str, str]:
    """(what a column is called, its unit); of a swept key the last parts count.

    >>> spoken("cost_total"), spoken("topology.local_fraction"), spoken("topology.failures.links")
    (('cost', 'US$'), ('local fraction', ''), ('links that fail', ''))
    """
    last = column.rpartition(".")[2]
    if known := LABELS.get(column) or LABELS.get(end_of(column)) or LABELS.get(last):
        return known
    return column_label(column) or column_label(last) or (last.replace("_", " "), "")


def end_of(column: str) -> str:
    """The last two parts of a swept key.

    >>> end_of("topology.failures.links"), end_of("aspl")
    ('failures.links', 'aspl')
    """
    return ".".join(column.split(".")[-2:])


def with_unit(name: str, unit: str) -> str:
    """``name (unit)``, or the name alone."""
    return f"{name} ({unit})" if unit else name


@dataclass(frozen=True)
class Quantity:
    """A column of numbers, or the ratio of two, written ``a / b``.

    >>> ratio = Quantity("aspl / moore_aspl")
    >>> ratio.title, ratio({"aspl": "3.0", "moore_aspl": "2.5"})
    ('average shortest path length / Moore bound', 1.2)
    >>> Quantity("cost_total / hosts").title
    'cost / number of hosts (US$)'
    """

    expression: str

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The column, or numerator and denominator."""
        return tuple(part.strip() for part in self.expression.split("/"))

    def __call__(self, row: Row) -> float:
        """The value in a row; NaN where there is none."""
        values = [number(row, column) for column in self.columns]
        if len(values) == 1:
            return values[0]
        return values[0] / values[1] if values[1] else math.nan

    @property
    def name(self) -> str:
        """What it is called, without the unit."""
        return " / ".join(spoken(column)[0] for column in self.columns)

    @property
    def unit(self) -> str:
        """The unit of the quantity; '' where there is none, or where those of a ratio cancel."""
        above, *below = (spoken(column)[1] for column in self.columns)
        if not below or not below[0]:
            return above
        return "" if above == below[0] else f"{above or '1'}/{below[0]}"

    @property
    def title(self) -> str:
        """Name and unit, for an axis."""
        return with_unit(self.name, self.unit)

    @property
    def bound(self) -> bool:
        """Whether it is a bound on others."""
        return bool(IS_BOUND.fullmatch(self.expression))
