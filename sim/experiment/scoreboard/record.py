# SPDX-License-Identifier: Apache-2.0
"""The record of the scoreboard: what was measured for each row, when, on what and of which configuration.

What is published, and everything that is said about it, stays in the files of the rows.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from flitlab.models.files import read_file, replace_file
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.sim.config.reporting import PublishedConfig
from flitlab.sim.config.section import Name
from flitlab.sim.exit import CHECK_FAILED, FAILED, OK, RunStatus
from flitlab.sim.experiment.folders import ManifestError, read_manifest
from flitlab.sim.experiment.scoreboard.file import read_row

RECORD = "reproduction.json"
"""The file that keeps what rows gave, beside the pages made of it."""

CODES = {RunStatus.DONE: OK, RunStatus.CHECK_FAILED: CHECK_FAILED}
"""How a run ended -> exit code; 1 for all others."""


class DamagedRecord(Exception):
    """A record that cannot be read; the message says which, and what to do."""


SAID = ("where", "value", "tolerance", "why", "compare", "claim", "cause", "comparable", "tried")
"""Keys of an entry of ``published:`` that do not decide what is measured; without a quantity, ``where`` does."""


@dataclass(frozen=True)
class Measurement:
    """A measured value. of: what of an entry of ``published:`` decides it. words: the scenarios that it is of."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    of: dict[str, Any]
    words: str
    value: float | None

    @classmethod
    def made(cls, entry: PublishedConfig, words: str, value: float | None) -> "Measurement":
        """What was measured for an entry."""
        of = entry.model_dump(mode="json", exclude=set(SAID), exclude_none=True)
        return cls({**of, "quantity": entry.quantity or entry.where}, words, value)

    @property
    def key(self) -> str:
        """What decides it, as one text: equal for entries of which the same is measured."""
        return json.dumps(self.of, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True)
class Ran:
    """What a row gave.

    full: at the size in the paper. finished: time, in UTC. cpu_s: CPU seconds of all runs that it took, 0 if unknown.
    fingerprint: of what was run, see :class:`~flitlab.sim.experiment.scoreboard.file.RowFile`. figures: file beside the
    pages -> what it shows. problem: why it, or a part of it, failed; '' if nothing did. code: exit code of the run.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: Name
    full: bool
    finished: str
    fingerprint: str
    machine: str = ""
    cpu_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    measured: list[Measurement] = field(default_factory=list)
    figures: dict[Name, str] = field(default_factory=dict)
    problem: str = ""
    code: int = OK


def decides(entry: PublishedConfig) -> str:
    """What of an entry of ``published:`` decides what is measured for it, as one text.

    >>> decides(PublishedConfig(where="Fig. 1", value=2, quantity="aspl", why="as read"))
    '{"quantity": "aspl"}'
    """
    return Measurement.made(entry, "", None).key


def changes_of(full: bool) -> list[str]:
    """What a run of a row changes in its file, as manifests have it."""
    return [] if full else ["--quick"]


def ran_into(folder: Path) -> Ran | None:
    """What the row in a run folder gave; None for a folder that holds no run of a row by this version that ended."""
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        return None
    changes, status = manifest.get("changes"), manifest.get("status", RunStatus.RUNNING)
    of_row = manifest.get("semantics_version") == SEMANTICS_VERSION and changes in (changes_of(True), changes_of(False))
    if not of_row or status in (RunStatus.RUNNING, RunStatus.INTERRUPTED):
        return None
    said = read_row(folder / "config.yaml", not changes, folder.name)
    values = zip(said.published, manifest.get("published", []), strict=False)
    measured = {decides(entry): Measurement.made(entry, row["scenario"], row["measured"]) for entry, row in values}
    note = manifest.get("row", {})
    problem = "" if status == RunStatus.DONE else "; ".join(manifest.get("problems", [])) or f"status: {status}"
    return Ran(
        folder.name, not changes, manifest.get("finished", ""), said.fingerprint, note.get("machine", ""),
        note.get("cpu_s", 0.0), list(measured.values()), problem=problem, code=CODES.get(status, FAILED),
    )  # fmt: skip


def load_record(folder: Path) -> dict[str, Ran]:
    """What the record in a folder holds, by row; nothing if there is none. Raises :class:`DamagedRecord`."""
    file = folder / RECORD
    if not file.exists():
        return {}
    try:
        rows = TypeAdapter(list[Ran]).validate_json(read_file(file), strict=True)
        if len({ran.name for ran in rows}) < len(rows):
            raise ValueError("a row is there twice")
    except (OSError, ValueError):
        raise DamagedRecord(f"{file} is damaged, or no record of rows; delete it, or choose another folder") from None
    return {ran.name: ran for ran in rows}


def save_record(folder: Path, rows: Mapping[str, Ran]) -> None:
    """Writes the record, by name of the row, a measured value a line."""
    folder.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(_text(rows[name]) for name in sorted(rows))
    replace_file(folder / RECORD, f"[\n{text}\n]\n".encode() if text else b"[]\n")


def _text(ran: Ran) -> str:
    """A row as JSON."""
    fields: dict[str, Any] = asdict(ran)
    values = ",\n  ".join(map(_json, fields.pop("measured")))
    head = _json(fields).removesuffix("}")
    return f'{head}, "measured": [\n  {values}\n ]}}' if values else f'{head}, "measured": []}}'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
