"""What the folder of a run holds of its points and ceilings, beside the tables that it writes at its end."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sim.experiment.store import cell

Row = dict[str, str]
Record = dict[str, Any]


def records(folder: Path, kind: str) -> Iterator[tuple[str, Any]]:
    """(id, content) of every ``<kind>/<id>.json`` that can be read, by id."""
    for file in sorted(folder.glob(f"{kind}/*.json")):
        try:
            yield file.stem, json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            continue


def points(folder: Path, manifest: Mapping[str, Any]) -> Iterator[tuple[Record, Record]]:
    """(entry of a scenario in the manifest, content of ``points/<id>.json``) of every point of the run."""
    scenarios: dict[str, list[Record]] = {}
    for scenario in manifest.get("scenarios", ()):
        scenarios.setdefault(scenario.get("hash", ""), []).append(scenario)
    for _, record in records(folder, "points"):
        if isinstance(record, dict) and record.get("row"):
            for scenario in scenarios.get(record.get("scenario", "-"), ()):
                if _is_asked_for(record, scenario):
                    yield scenario, record


def _is_asked_for(point: Mapping[str, Any], scenario: Mapping[str, Any]) -> bool:
    """Whether a point is of the run that the manifest tells of, and not of one before it in the same folder."""
    given, had = scenario.get("measure", {}), point.get("measure", {})
    same = all(given[name] == had[name] for name in ("ticks", "ci", "max_ticks") if name in given and name in had)
    return same and point["seed"] in scenario.get("seeds", ())


def results(folder: Path, manifest: Mapping[str, Any]) -> list[Row]:
    """Rows as those of results.csv: of every scenario in order, by load and seed."""
    order = {scenario["label"]: i for i, scenario in enumerate(manifest.get("scenarios", ()))}
    found = sorted(
        points(folder, manifest), key=lambda pair: (order[pair[0]["label"]], pair[1]["load"], pair[1]["seed"])
    )
    return [_result(scenario, point) for scenario, point in found]


def _result(scenario: Record, point: Record) -> Row:
    head = {"scenario": scenario["label"], **scenario.get("keys", {}), "load": point["load"], "seed": point["seed"]}
    tail = {name: point.get(name) for name in ("engine", "status", "message")}
    return _text({**head, **point["row"], **tail})


def ceilings(folder: Path, manifest: Mapping[str, Any]) -> list[Row]:
    """Rows as those of ceilings.csv."""
    return [
        _text({"scenario": scenario["label"], **{k: v for k, v in row.items() if not isinstance(v, list | dict)}})
        for scenario, row in certified(folder, manifest)
    ]


def certified(folder: Path, manifest: Mapping[str, Any]) -> Iterator[tuple[Record, Record]]:
    """(entry of a scenario in the manifest, one of its ceilings with all that ``ceilings/<id>.json`` holds of it)."""
    known = dict(records(folder, "ceilings"))
    for scenario in manifest.get("scenarios", ()):
        for name in scenario.get("ceilings", ()):
            for row in known.get(name, ()):
                yield scenario, row


def _text(row: Mapping[str, Any]) -> Row:
    return {key: cell(value) for key, value in row.items()}
