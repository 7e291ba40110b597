# SPDX-License-Identifier: Apache-2.0
"""Records of points, and rows and columns of results.csv and metrics.csv."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from flitlab.models.mappings import JsonObject, Keys, Row
from flitlab.models.topology.flit_times import flit_times
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Names, host_names, join_path, switch_names
from flitlab.sim.config.case import Case, Study
from flitlab.sim.experiment.store import require_cells, wrong_cell
from flitlab.sim.measure.columns.registry import RESULTS, columns
from flitlab.sim.measure.point import STALL_COLUMNS
from flitlab.sim.measure.rows import Status

FIRST_COLUMNS, LAST_COLUMNS = ("load", "seed"), ("engine", "status", "message")
"""Columns of every results.csv: after the swept keys, and at the end."""

IN_NS = "accepted_flit_per_ns_per_host"

HOSTS = ("host", "source", "target", "destination")
"""Columns of flows.csv and ranks.csv with the number of a host."""

PATH = "path"
"""Column of flows.csv with the numbers of switches."""

PROGRAM_TABLES = ("ranks", "steps", "utilisation", "messages", "critical_path", "timeline", "pauses", "pauses_time")
"""Tables of runs of programs."""

FLOW_TABLES = ("flows", "transports", "pauses", "pauses_time")
"""Tables of runs of flows: of each flow, of each transport, and of each paused channel, in all and over time."""


@dataclass(frozen=True)
class PointRecord:
    """The result of a point; a successful one is stored in ``points/<id>.json``.

    Parameters
    ----------
    id: hash of what the result depends on.
    scenario: its content hash.
    load, seed, measure: of the point.
    engine, semantics_version: that computed it.
    status, message: whether it succeeded, and why not.
    checked: kinds of ceilings that it was checked against; None before.
    row: columns of results.csv.
    detail: rows, or columns, of further tables, by name.
    added: columns of plugins, and hashes of their code.
    slack: ceiling -> relative slack; None before the check.
    """

    id: str
    scenario: str
    load: float
    seed: int
    measure: Keys
    engine: str
    semantics_version: int
    status: str = Status.OK
    message: str = ""
    checked: list[str] | None = None
    row: Row = field(default_factory=dict)
    detail: JsonObject = field(default_factory=dict)
    added: dict[str, str] = field(default_factory=dict)
    slack: dict[str, float] | None = None

    @classmethod
    def read(cls, stored: JsonObject) -> Self:
        """The record that was stored. Raises :class:`RecordError`, which names the cell, for any other content."""
        require_cells(stored, _StoredPoint)
        record, known = cls(**stored), columns(*RESULTS)
        for name, value in record.row.items():
            if isinstance(value, str) and not (name in record.added or (name in known and known[name].text)):
                raise wrong_cell(("row", name), value)
        return record

    def stored(self) -> JsonObject:
        """The record for JSON."""
        optional = {"added": bool(self.added), "slack": self.slack is not None}
        return {name: value for name, value in vars(self).items() if optional.get(name, True)}


_Cell = bool | int | float | str | None
_Rows = list[dict[str, _Cell]]
_Columns = dict[str, list[_Cell]]
_Histogram = list[Annotated[tuple[int, int], Field(strict=False)]]


class _Detail(BaseModel):
    """The further tables of a stored point, as rows or as columns."""

    model_config = ConfigDict(extra="allow", strict=True)

    ranks: _Rows = []
    steps: _Rows = []
    utilisation: _Rows = []
    messages: _Rows = []
    critical_path: _Rows = []
    timeline: _Rows = []
    pauses: _Rows = []
    pauses_time: _Rows = []
    flows: _Rows = []
    transports: _Rows = []
    throughput_time: _Rows = []
    classes: _Rows = []
    channels: _Columns = {}
    packets: _Columns = {}
    channel_use: list[float] = []
    hops_histogram: _Histogram = []
    deflections_histogram: _Histogram = []
    compile_s: float = 0.0


class _StoredPoint(BaseModel):
    """The keys of a stored point."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    scenario: str
    load: float
    seed: int
    measure: Keys
    engine: str
    semantics_version: int
    status: Annotated[Status, Field(strict=False)] = Status.OK
    message: str = ""
    checked: list[str] | None = None
    added: dict[str, str] = {}
    row: Annotated[dict[str, _Cell], Field(min_length=1)]
    detail: _Detail
    slack: dict[str, float] | None = None


def result_row(case: Case, record: PointRecord) -> Row:
    """A row of results.csv, of a record with derived columns."""
    head = {"scenario": case.label, **case.keys, "load": record.load, "seed": record.seed}
    return {**head, **record.row, **{name: getattr(record, name) for name in LAST_COLUMNS}}


def with_names(row: Row, topology: Topology) -> Row:
    """A row of a table with labels in place of numbers, if the topology has labels.

    row: of a record; :data:`HOSTS` are numbers of hosts, :data:`PATH` has numbers of switches.
    """
    hosts, switches = _names(topology)
    if not hosts.labelled and not switches.labelled:
        return row
    named = {key: hosts.value(row[key]) for key in HOSTS if isinstance(row.get(key), int)}
    if row.get(PATH):
        named[PATH] = join_path(switches.label(int(number)) for number in row[PATH].split("-"))
    return {**row, **named}


def channel_rows(head: Row, topology: Topology, counted: JsonObject) -> Iterator[Row]:
    """Rows of channels.csv of a point: channels between switches, from hosts, and to hosts, in the order of their
    numbers.

    Parameters
    ----------
    head: the first columns.
    topology: of the point.
    counted: column -> value of each channel, and ``ticks``, the length of the window; {} if they were not counted. A
        column of stalls has no values of ejection channels, and is missing in modes without stalls.
    """
    if not counted:
        return
    hosts, switches = _names(topology)
    host, switch = hosts.values(range(topology.hosts)), switches.values(topology.host_switch)
    last = switches.values(topology.ejection_switch)
    src, dst = switches.values(topology.src), switches.values(topology.dst)
    ends = [("network", *ends) for ends in zip(src, dst, strict=True)]
    ends += [("injection", *ends) for ends in zip(host, switch, strict=True)]
    ends += [("ejection", *ends) for ends in zip(last, host, strict=True)]
    delay = [*topology.delay.tolist(), *topology.access_delay.tolist(), *topology.access_delay.tolist()]
    speed = flit_times(topology)
    tau = [*speed.channel.tolist(), *[speed.host] * (2 * topology.hosts)]
    stalled = {name: counted.get(name, []) for name in STALL_COLUMNS}
    parallel: dict[tuple[str, str | int, str | int], int] = {}
    for channel, (kind, source, target) in enumerate(ends):
        nth = parallel[kind, source, target] = parallel.get((kind, source, target), -1) + 1
        yield {
            **head, "channel": channel, "kind": kind, "source": source, "target": target, "parallel": nth,
            "tau": tau[channel], "delay": delay[channel], "flits": counted["flits"][channel],
            "packets": counted["packets"][channel],
            "utilisation": counted["flits"][channel] * tau[channel] / counted["ticks"],
            **{name: ticks[channel] if channel < len(ticks) else "" for name, ticks in stalled.items()},
            "class": "",
        }  # fmt: skip


@lru_cache(maxsize=4)
def _names(topology: Topology) -> tuple[Names, Names]:
    """The names of hosts and of switches."""
    return host_names(topology), switch_names(topology)


def result_columns(study: Study, rows: Sequence[Row]) -> list[str]:
    """Columns of results.csv: first those with ``leading`` in the table of columns, then further ones in order of
    appearance.

    Packet simulations always have all leading columns; those per ns only if a scenario defines the time of a flit.
    """
    filled = dict.fromkeys(name for row in rows for name in row)
    if study.runs_programs:
        leading = [name for name, one in columns("programs").items() if one.lead and name in filled]
    else:
        in_ns = any(case.flit_ns is not None for case in study.cases)
        in_flits = any(case.scenario is None or case.scenario.counted != "flows" for case in study.cases)
        leading = [name for name, one in columns("packets").items() if one.lead and (in_flits or name in filled)]
        leading = [name for name in leading if in_ns or name != IN_NS]
    head = ["scenario", *study.columns, *FIRST_COLUMNS]
    further = [name for name in filled if name not in {*head, *leading, *LAST_COLUMNS}]
    return [*head, *leading, *further, *LAST_COLUMNS]


def metrics_row(case: Case, metrics: Row, problem: str) -> Row:
    """A row of metrics.csv; lists and mappings become JSON. The status is partial if some metrics are undefined.

    Parameters
    ----------
    case: the scenario.
    metrics: column -> value.
    problem: errors of metrics.
    """
    flat = {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in metrics.items()}
    status = Status.OK if not problem else Status.PARTIAL if metrics else Status.FAILED
    return {"scenario": case.label, **case.keys, **flat, "status": status, "message": problem}


def metrics_columns(rows: Sequence[Row]) -> list[str]:
    """Columns of metrics.csv: all keys of the rows in order of appearance, then the status.

    Upper ends of certified intervals are omitted if they equal the lower ends in every row.
    """
    tail = ["status", "message"]
    names = dict.fromkeys(key for row in rows for key in row if key not in tail)
    return [name for name in names if not _repeats_lower_end(name, rows)] + tail


def _repeats_lower_end(name: str, rows: Sequence[Row]) -> bool:
    base, upper = name.removesuffix(".upper"), name.endswith(".upper")
    return upper and all(row.get(name) == row.get(base) for row in rows)
