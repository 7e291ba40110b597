"""Endless flows, and messages that begin together, by what was swept."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from flitlab.sim.measure.rows import number
from flitlab.sim.report.figures.metrics.rows import combined, grouped, is_draw
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run


@dataclass(frozen=True)
class Point:
    """Scenarios that differ in seeds alone.

    rows: their replicates. group, series: the values of the other swept keys, which say where the point stands.
    """

    group: str
    series: str
    rows: list[Row]

    def values(self, name: str) -> list[float]:
        """A column, where it has numbers."""
        return [value for row in self.rows if math.isfinite(value := number(row, name))]


def points_of(run: Run) -> list[Point]:
    """What has endless flows: transports are series, what else is swept makes the groups."""
    return _points(run, [row for row in run.rows if row.get("host_throughput") and not row.get("flows")])


def messages_of(run: Run) -> list[Point]:
    """What has messages that begin together and were followed to the last, as :func:`points_of`."""
    return _points(run, [row for row in run.rows if row.get("fct_ms_max") and row.get("load") == "1.0"])


def _points(run: Run, rows: list[Row]) -> list[Point]:
    swept = [name for name in run.manifest.get("columns", ()) if not is_draw(name) and any(r.get(name) for r in rows)]
    series = [name for name in swept if name.partition(".")[0] == "transport"] or swept[1:][-1:]
    groups = [name for name in swept if name not in series]
    keys = [*groups, *series]
    return [
        Point(combined(groups, values[: len(groups)]), combined(series, values[len(groups) :]), some)
        for values, some in grouped(rows, keys).items()
    ]


def equal_rates(rows: Iterable[Row]) -> list[float]:
    """Throughput per host in the maximum concurrent flow, the mean over networks: at most one value."""
    known = [value for row in rows if math.isfinite(value := number(row, "host_throughput_mcf"))]
    return [fmean(known)] if known else []
