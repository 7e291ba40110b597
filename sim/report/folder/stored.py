# SPDX-License-Identifier: Apache-2.0
"""Reads the stored points and ceilings of a run folder, besides its tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.models.mappings import JsonObject, Keys
from flitlab.sim.experiment.ceilings import stored_rows
from flitlab.sim.experiment.store import RecordError, cell, read_record
from flitlab.sim.report.folder.frames import Row

_Histogram = list[Annotated[tuple[int, int], Field(strict=False)]]


class _Detail(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    channel_use: list[float] = []
    hops_histogram: _Histogram = []
    deflections_histogram: _Histogram = []


class _Point(BaseModel):
    """The keys of a stored point that are read."""

    model_config = ConfigDict(extra="allow", strict=True)

    scenario: str
    load: float
    seed: int
    measure: Keys | None = None
    row: Annotated[JsonObject, Field(min_length=1)]
    detail: _Detail = _Detail()


def _records(folder: Path) -> Iterator[JsonObject]:
    """Yield the valid records of ``points/<id>.json``, by id."""
    for file in sorted(folder.glob("points/*.json")):
        try:
            record = read_record(folder, f"points/{file.name}")
        except RecordError:
            continue
        if record is not None:
            yield record


def points(folder: Path, manifest: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Yield (entry of a scenario in the manifest, content of ``points/<id>.json``) for every point of the run."""
    scenarios: dict[str, list[JsonObject]] = {}
    for scenario in manifest.get("scenarios", ()):
        scenarios.setdefault(scenario.get("hash", ""), []).append(scenario)
    for record in _records(folder):
        if not _is_point(record):
            continue
        for scenario in scenarios.get(record["scenario"], ()):
            if _belongs_to_run(record, scenario):
                yield scenario, record


def _is_point(record: JsonObject) -> bool:
    """Whether a record has the keys of a point, with values of their types."""
    try:
        _Point.model_validate(record)
    except ValidationError:
        return False
    return True


def _belongs_to_run(point: JsonObject, scenario: JsonObject) -> bool:
    """Whether a point belongs to the run of the manifest, not to an earlier one in the same folder."""
    placed = scenario.get("placed")
    configured = placed or point["load"] in scenario.get("loads", ())
    measured = point.get("measure") == scenario.get("measured") or (placed and _is_probe(point, scenario))
    return bool(configured and measured and point["seed"] in scenario.get("seeds", ()))


def _is_probe(point: JsonObject, scenario: JsonObject) -> bool:
    """Whether a point is a probe of a scenario's search: its first window is that of the scenario's points."""
    measure, measured = point.get("measure") or {}, scenario.get("measured") or {}
    return "resolution" in measure and all(measure.get(key) == measured.get(key) for key in ("warmup", "ticks"))


def results(folder: Path, manifest: JsonObject) -> list[Row]:
    """Return rows as in results.csv: by scenario, load and seed."""
    order = {scenario["label"]: i for i, scenario in enumerate(manifest.get("scenarios", ()))}
    pairs = sorted(
        points(folder, manifest), key=lambda pair: (order[pair[0]["label"]], pair[1]["load"], pair[1]["seed"])
    )
    return [_result(scenario, point) for scenario, point in pairs]


def _result(scenario: JsonObject, point: JsonObject) -> Row:
    head = {"scenario": scenario["label"], **scenario.get("keys", {}), "load": point["load"], "seed": point["seed"]}
    tail = {name: point.get(name) for name in ("engine", "status", "message")}
    return _text({**head, **point["row"], **tail})


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
