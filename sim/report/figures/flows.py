# SPDX-License-Identifier: Apache-2.0
"""Points of long-lived flows, and of messages that begin together, by swept keys."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.metrics.rows import combined, grouped, is_draw
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run

MOST_GROUPS = 8
"""The most groups of messages beside each other; more are rows below each other."""

NETWORKS = ("case", "topology", "routing", "capacity_of")
"""First parts of swept keys that define the network and routing of messages."""


@dataclass(frozen=True)
class Point:
    """Scenarios that differ only in seeds.

    rows: their replicates. group, series, panel, network: values of the other swept keys, which place the point in the
    figure.
    """

    group: str
    series: str
    rows: list[Row]
    panel: str = ""
    network: str = ""

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
    """Return the points of messages that begin together, where all complete.

    Transports are series, networks and routings make groups, other swept keys make panels. Of more than
    :data:`MOST_GROUPS` groups one key makes groups, the case or else the last key, and the others are ``network``.
    """
    rows = [row for row in _of_messages(run) if _complete(row)]
    swept = _swept(run, rows)
    series = [name for name in swept if name.partition(".")[0] == "transport"]
    groups = [name for name in swept if name.partition(".")[0] in NETWORKS]
    panels = [name for name in swept if name not in (*series, *groups)]
    points = _points(rows, groups, series, panels)
    if len({point.group for point in points}) <= MOST_GROUPS or len(groups) < 2:
        return points
    own = "case" if "case" in groups else groups[-1]
    networks = [name for name in groups if name != own]
    return [
        replace(point, group=point.rows[0].get(own) or "", network=combined(networks, [point.rows[0].get(name) or ""
                for name in networks])) for point in points
    ]  # fmt: skip


def unfinished(run: Run) -> str:
    """A note on the scenarios that :func:`messages_of` leaves out; empty without any."""
    rows = _of_messages(run)
    left_out = {row.get("scenario") for row in rows if not _complete(row)}
    scenarios = {row.get("scenario") for row in rows}
    if not left_out:
        return ""
    return f"{len(left_out)} of {len(scenarios)} scenarios are left out: not all messages completed"


def _of_messages(run: Run) -> list[Row]:
    """Rows of flows at load 1 only: that of all messages that begin together."""
    loaded = {row.get("scenario") for row in run.rows if number(row, "load") != 1}
    return [row for row in run.rows if row.get("flows") and row.get("scenario") not in loaded]


def _complete(row: Row) -> bool:
    return bool(row.get("fct_ms_max")) and row.get("flows") == row.get("flows_complete")


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
