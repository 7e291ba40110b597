"""Endless flows of the datagram discipline, by scenario."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from flitlab.sim.measure.rows import number
from flitlab.sim.report.folder.frames import Row
from flitlab.sim.report.folder.run import Run


@dataclass(frozen=True)
class Point:
    """One scenario. rows: its replicates. group, series: the values of its swept keys that say where it stands."""

    scenario: str
    group: str
    series: str
    rows: list[Row]

    def values(self, name: str) -> list[float]:
        """A column, where it has numbers."""
        return [value for row in self.rows if math.isfinite(value := number(row, name))]


def points_of(run: Run) -> list[Point]:
    """Scenarios with endless flows: transports are series, what else is swept makes the groups."""
    rows = [row for row in run.rows if row.get("host_throughput") and not row.get("flows")]
    swept = [name for name in run.manifest.get("columns", ()) if any(row.get(name) for row in rows)]
    series = [name for name in swept if name.partition(".")[0] == "transport"] or swept[-1:]
    groups = [name for name in swept if name not in series]
    found: dict[str, Point] = {}
    for row in rows:
        label = row.get("scenario") or ""
        group, one = (", ".join(row.get(name) or "" for name in part) for part in (groups, series))
        found.setdefault(label, Point(label, group, one, [])).rows.append(row)
    return list(found.values())


def equal_rates(rows: Iterable[Row]) -> list[float]:
    """Throughput per host in the maximum concurrent flow, at most one value."""
    known = (number(row, "host_throughput_mcf") for row in rows)
    return [value for value in known if math.isfinite(value)][:1]
