# SPDX-License-Identifier: Apache-2.0
"""Reads the stored points and ceilings of a run folder, besides its tables."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flitlab.models.mappings import JsonObject
from flitlab.sim.experiment.ceilings import stored_rows
from flitlab.sim.experiment.store import RecordError, cell, read_record
from flitlab.sim.experiment.tables import LAST_COLUMNS, PointRecord
from flitlab.sim.report.folder.frames import Row


def _records(folder: Path) -> Iterator[PointRecord]:
    """Yield the valid records of ``points/<id>.json``, by id."""
    for file in sorted(folder.glob("points/*.json")):
        with suppress(RecordError):
            stored = read_record(folder, f"points/{file.name}")
            if stored is not None:
                yield PointRecord.read(stored)


def points(folder: Path, manifest: JsonObject) -> Iterator[tuple[JsonObject, PointRecord]]:
    """Yield (entry of a scenario in the manifest, ``points/<id>.json``) for every point of the run."""
    scenarios: dict[str, list[JsonObject]] = {}
    for scenario in manifest.get("scenarios", ()):
        scenarios.setdefault(scenario.get("hash", ""), []).append(scenario)
    for record in _records(folder):
        for scenario in scenarios.get(record.scenario, ()):
            if _belongs_to_run(record, scenario):
                yield scenario, record


def _belongs_to_run(point: PointRecord, scenario: JsonObject) -> bool:
    """Whether a point belongs to the run of the manifest, not to an earlier one in the same folder."""
    placed = scenario.get("placed")
    configured = placed or point.load in scenario.get("loads", ())
    measured = point.measure == scenario.get("measured") or (placed and _is_probe(point, scenario))
    return bool(configured and measured and point.seed in scenario.get("seeds", ()))


def _is_probe(point: PointRecord, scenario: JsonObject) -> bool:
    """Whether a point is a probe of a scenario's search: its first window is that of the scenario's points."""
    measure, measured = point.measure, scenario.get("measured") or {}
    return "resolution" in measure and all(measure.get(key) == measured.get(key) for key in ("warmup", "ticks"))


def results(folder: Path, manifest: JsonObject) -> list[Row]:
    """Return rows as in results.csv: by scenario, load and seed."""
    order = {scenario["label"]: i for i, scenario in enumerate(manifest.get("scenarios", ()))}
    pairs = sorted(points(folder, manifest), key=lambda pair: (order[pair[0]["label"]], pair[1].load, pair[1].seed))
    return [_result(scenario, point) for scenario, point in pairs]


def _result(scenario: JsonObject, point: PointRecord) -> Row:
    head = {"scenario": scenario["label"], **scenario.get("keys", {}), "load": point.load, "seed": point.seed}
    tail = {name: getattr(point, name) for name in LAST_COLUMNS}
    return _text({**head, **point.row, **tail})


def ceilings(folder: Path, manifest: JsonObject) -> list[Row]:
    """Return rows as in ceilings.csv."""
    return [
        _text({"scenario": scenario["label"], **{k: v for k, v in row.items() if not isinstance(v, list | dict)}})
        for scenario, row in certified(folder, manifest)
    ]


def certified(folder: Path, manifest: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Yield (entry of a scenario in the manifest, one of its ceilings as stored in ``ceilings/<id>.json``)."""
    known: dict[str, list[JsonObject]] = {}
    for scenario in manifest.get("scenarios", ()):
        for name in scenario.get("ceilings", ()):
            if name not in known:
                known[name] = stored_rows(folder, name)
            yield from ((scenario, row) for row in known[name])


def _text(row: JsonObject) -> Row:
    return {key: cell(value) for key, value in row.items()}
