# SPDX-License-Identifier: Apache-2.0
"""Points of long-lived flows, and of messages that begin together, by swept keys."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.metrics.rows import combined, grouped, is_draw
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run

NETWORKS = ("case", "topology", "routing", "capacity_of")
"""First parts of swept keys that define the network and routing of messages."""


@dataclass(frozen=True)
class Point:
    """Scenarios that differ only in seeds.

    rows: their replicates. group, series, panel: values of the other swept keys, which place the point in the figure.
    """

    group: str
    series: str
    rows: list[Row]
    panel: str = ""

    def values(self, name: str) -> list[float]:
        """A column, where it has numbers."""
        return [value for row in self.rows if math.isfinite(value := number(row, name))]


def points_of(run: Run) -> list[Point]:
    """Return the points of long-lived flows: transports are series, other swept keys make groups."""
    rows = [row for row in run.rows if row.get("host_throughput") and not row.get("flows")]
    swept = _swept(run, rows)
    series = [name for name in swept if name.partition(".")[0] == "transport"] or swept[1:][-1:]
    return _points(rows, [name for name in swept if name not in series], series, [])


def messages_of(run: Run) -> list[Point]:
    """Return the points of messages that begin together and all complete.

    Transports are series, networks and routings make groups, other swept keys make panels.
    """
    rows = [row for row in run.rows if row.get("fct_ms_max") and number(row, "load") == 1]
    swept = _swept(run, rows)
    series = [name for name in swept if name.partition(".")[0] == "transport"]
    groups = [name for name in swept if name.partition(".")[0] in NETWORKS]
    return _points(rows, groups, series, [name for name in swept if name not in (*series, *groups)])


def _swept(run: Run, rows: Sequence[Row]) -> list[str]:
    """The swept keys that are no seeds and have a value in one of the rows."""
    return [name for name in run.manifest.get("columns", ()) if not is_draw(name) and any(r.get(name) for r in rows)]


def _points(rows: list[Row], groups: list[str], series: list[str], panels: list[str]) -> list[Point]:
    g, s = len(groups), len(groups) + len(series)
    return [
        Point(combined(groups, of[:g]), combined(series, of[g:s]), some, combined(panels, of[s:]))
        for of, some in grouped(rows, [*groups, *series, *panels]).items()
    ]


def equal_rates(rows: Iterable[Row]) -> list[float]:
    """Throughput per host in the maximum concurrent flow, the mean over networks: at most one value."""
    known = [value for row in rows if math.isfinite(value := number(row, "host_throughput_mcf"))]
    return [fmean(known)] if known else []
