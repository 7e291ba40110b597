# SPDX-License-Identifier: Apache-2.0
"""The record of the scoreboard: measured values of each row, with time, machine and configuration.

Published values and their comments are in the files of the rows.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from flitlab.models.files import read_file, replace_file
from flitlab.models.mappings import Fields, Keys
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.sim.config.reporting import PublishedConfig
from flitlab.sim.config.sections import Name
from flitlab.sim.exit import ExitCode, RunStatus
from flitlab.sim.experiment.folders import ManifestError, read_manifest
from flitlab.sim.experiment.scoreboard.file import read_row

RECORD = "reproduction.json"
"""The file of the record, beside the pages."""

CODES = {RunStatus.DONE: ExitCode.OK, RunStatus.CHECK_FAILED: ExitCode.CHECK_FAILED}
"""Status of a run -> exit code; 1 for all others."""


class DamagedRecord(Exception):
    """A record that cannot be read; the message names it, and what to do."""


COMMENT_KEYS = ("where", "value", "tolerance", "why", "compare", "claim", "cause", "comparable", "tried")
"""Keys of ``published:`` that do not affect the measured value; ``where`` does if there is no quantity."""


@dataclass(frozen=True)
class Measurement:
    """A measured value. of: the keys of ``published:`` that define it. words: its scenarios."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    of: Keys
    words: str
    value: float | None

    @classmethod
    def made(cls, entry: PublishedConfig, words: str, value: float | None) -> "Measurement":
        """The measurement for an entry.

        Parameters
        ----------
        entry: the published value.
        words: the scenarios.
        value: None if it was not measured.
        """
        of = entry.model_dump(mode="json", exclude=set(COMMENT_KEYS), exclude_none=True)
        return cls({**of, "quantity": entry.quantity or entry.where}, words, value)

    @property
    def key(self) -> str:
        """The defining keys as text: equal for entries with the same measurement."""
        return json.dumps(self.of, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True)
class Ran:
    """The result of a row.

    Attributes
    ----------
    full: at the size of the paper.
    finished: UTC.
    fingerprint: of the configuration, see :class:`~flitlab.sim.experiment.scoreboard.file.RowFile`.
    cpu_s: CPU seconds of all runs, 0 if unknown.
    figures: file beside the pages -> caption.
    problem: why it failed, wholly or in part; '' if it did not.
    code: exit code of the run.
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
    code: int = ExitCode.OK


def decides(entry: PublishedConfig) -> str:
    """The keys of an entry of ``published:`` that define its measurement, as text.

    >>> decides(PublishedConfig(where="Fig. 1", value=2, quantity="aspl", why="as read"))
    '{"quantity": "aspl"}'
    """
    return Measurement.made(entry, "", None).key


def changes_of(full: bool) -> list[str]:
    """The changes of a run of a row, as in manifests."""
    return [] if full else ["--quick"]


def ran_into(folder: Path) -> Ran | None:
    """The result of the row in a run folder; None if it has no completed run of a row by this version."""
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        return None
    changes, status = manifest.get("changes"), manifest.get("status", RunStatus.RUNNING)
    of_row = manifest.get("semantics_version") == SEMANTICS_VERSION and changes in (changes_of(True), changes_of(False))
    if not of_row or status in (RunStatus.RUNNING, RunStatus.INTERRUPTED):
        return None
    row_file = read_row(folder / "config.yaml", not changes, folder.name)
    values = zip(row_file.published, manifest.get("published", []), strict=False)
    measured = {decides(entry): Measurement.made(entry, row["scenario"], row["measured"]) for entry, row in values}
    note = manifest.get("row", {})
    problem = "" if status == RunStatus.DONE else "; ".join(manifest.get("problems", [])) or f"status: {status}"
    return Ran(
        folder.name, not changes, manifest.get("finished", ""), row_file.fingerprint, note.get("machine", ""),
        note.get("cpu_s", 0.0), list(measured.values()), problem=problem, code=CODES.get(status, ExitCode.FAILED),
    )  # fmt: skip


def load_record(folder: Path) -> dict[str, Ran]:
    """The record of a folder, by row; {} if there is none. Raises :class:`DamagedRecord`."""
    file = folder / RECORD
    if not file.exists():
        return {}
    try:
        rows = TypeAdapter(list[Ran]).validate_json(read_file(file), strict=True)
        if len({ran.name for ran in rows}) < len(rows):
            raise ValueError("a row is there twice")
    except (OSError, ValueError):
        raise DamagedRecord(
            f"{file} is damaged, or not a record of rows; delete it, or choose another folder"
        ) from None
    return {ran.name: ran for ran in rows}


def save_record(folder: Path, rows: Mapping[str, Ran]) -> None:
    """Write the record, sorted by row, one measured value per line."""
    folder.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(_text(rows[name]) for name in sorted(rows))
    replace_file(folder / RECORD, f"[\n{text}\n]\n".encode() if text else b"[]\n")


def _text(ran: Ran) -> str:
    """A row as JSON."""
    fields: Fields = asdict(ran)
    values = ",\n  ".join(map(_json, fields.pop("measured")))
    head = _json(fields).removesuffix("}")
    return f'{head}, "measured": [\n  {values}\n ]}}' if values else f'{head}, "measured": []}}'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
