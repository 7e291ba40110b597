# SPDX-License-Identifier: Apache-2.0
"""Import of schedules from JSON and the files of MSCCL, TE-CCL and TACCL, and export as JSON."""

import json
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.models.collective.msccl import parse_msccl
from flitlab.models.collective.schedule import MAX_RANKS, CollectiveName, Schedule, ScheduleError, check
from flitlab.models.collective.synthesizers import FLOWS, SCCL_TYPE, parse_taccl, parse_teccl
from flitlab.models.files import replace_file
from flitlab.models.mappings import JsonObject
from flitlab.models.readable import JsonError, parse_json
from flitlab.models.topology.formats import HEAD
from flitlab.models.topology.formats.misplaced import misplaced

SUFFIX = ".schedule.json"
"""Suffix of schedule files."""

Rank = Annotated[int, Field(ge=-1, lt=2**31)]
Count = Annotated[int, Field(ge=0, lt=2**62)]


class _File(BaseModel):
    """Content of a schedule file; see docs/collectives.md."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["flitlab schedule"]
    version: Literal[1]
    collective: CollectiveName
    ranks: Annotated[int, Field(ge=2, le=MAX_RANKS)]
    root: Annotated[int, Field(ge=0, lt=2**31)] = 0
    parts: Annotated[int, Field(ge=1, lt=2**62)]
    chunks: list[tuple[Rank, Rank, Count]]
    sends: list[tuple[Count, Rank, Rank, Count]]


def write_schedule(schedule: Schedule, path: Path) -> None:
    """Write a schedule: chunks as [rank that has it, rank that needs it, parts], sends as [chunk, from, to, step].

    -1 stands for all ranks. Raises ``OSError``.
    """
    s = schedule
    chunks = np.stack([s.start, s.goal, s.amount], axis=1).tolist()
    sends = np.stack([s.chunk, s.source, s.target, s.step], axis=1).tolist()
    head = {
        "format": "flitlab schedule", "version": 1, "collective": s.kind, "ranks": s.ranks, "root": s.root,
        "parts": s.parts,
    }  # fmt: skip
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    lines += [_rows("chunks", chunks), _rows("sends", sends)]
    replace_file(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _rows(name: str, rows: list[list[int]]) -> str:
    return f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]"


def read_schedule(path: Path) -> Schedule:
    """Read and check a schedule: JSON of :func:`write_schedule`, XML of MSCCL, or JSON of TE-CCL or TACCL.

    Raises
    ------
    OSError: the file cannot be read.
    ScheduleError: it is no schedule, or does not implement its collective.
    """
    text = path.read_bytes()
    parsers = {b"<": parse_msccl} if text.lstrip().startswith(b"<") else {FLOWS: parse_teccl, SCCL_TYPE: parse_taccl}
    for sign, parse in parsers.items():
        if sign in text:
            schedule = parse(text)
            check(schedule)
            return schedule
    try:
        parse_json(text)  # pydantic takes the last of two equal keys
        file = _File.model_validate_json(text)
    except JsonError as error:
        raise ScheduleError(f"line {error.line}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if key == "format":
            problem = misplaced(text[:HEAD].decode("utf-8", "replace")) or f"{key}: {first['msg']}"
            raise ScheduleError(
                f"is no schedule: {problem}; JSON of flitlab, TE-CCL and TACCL and XML of MSCCL are read"
            ) from None
        raise ScheduleError(f"{key}: {first['msg']}" if key else first["msg"]) from None
    schedule = _schedule(file)
    check(schedule)
    return schedule


def _schedule(file: _File) -> Schedule:
    chunks = np.array(file.chunks, np.int64).reshape(-1, 3)
    sends = np.array(file.sends, np.int64).reshape(-1, 4)
    sends = sends[np.argsort(sends[:, 3], kind="stable")]
    chunk, source, target, step = (np.ascontiguousarray(column) for column in sends.T)
    ends = np.concatenate([chunks[:, :2].ravel(), source, target])
    if (ends >= file.ranks).any() or (np.concatenate([source, target]) < 0).any():
        raise ScheduleError(f"ranks are 0 to {file.ranks - 1}, and -1 in chunks stands for all")
    if (chunk >= len(chunks)).any():
        raise ScheduleError(f"chunks are 0 to {len(chunks) - 1}; a send is of chunk {chunk.max()}")
    if file.root >= file.ranks:
        raise ScheduleError(f"the root {file.root} is no rank")
    start, goal, amount = (np.ascontiguousarray(column) for column in chunks.T)
    return Schedule(
        file.collective, file.ranks, start, goal, amount, file.parts, chunk, source, target, step, file.root
    )  # fmt: skip


def schedule_summary(schedule: Schedule) -> JsonObject:
    """Return the collective and the sizes of a schedule."""
    return {
        "collective": schedule.kind, "ranks": schedule.ranks, "chunks": schedule.chunks,
        "sends": schedule.sends, "steps": int(schedule.step.max(initial=-1)) + 1,
    }  # fmt: skip
