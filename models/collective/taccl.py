# SPDX-License-Identifier: Apache-2.0
"""Schedules in the JSON of TACCL and SCCL, which they write before MSCCL's XML."""

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from flitlab.models.collective.schedule import ALL, MAX_RANKS, Schedule, ScheduleError, collective_of
from flitlab.models.readable import JsonError, parse_json

SIGN = b'sccl_type"'
"""The end of the key of every mapping: ``sccl_type`` of TACCL, ``msccl_type`` of msccl-tools."""

_Whole = Annotated[int, Field(ge=0, strict=True)]
_Send = Annotated[list[Any], Field(min_length=3)]


class _Chunk(BaseModel):
    pre: list[_Whole]
    post: list[_Whole]
    addr: _Whole


class _Collective(BaseModel):
    nodes: Annotated[int, Field(ge=2, le=MAX_RANKS, strict=True)]
    chunks: list[_Chunk] = Field(min_length=1)


class _Step(BaseModel):
    sends: list[_Send]


class _Algorithm(BaseModel):
    collective: _Collective
    steps: list[_Step]


def parse_taccl(text: bytes) -> Schedule:
    """Return the schedule of an ``algorithm``: its sends ``[address, from, to, ...]`` in its steps.

    A chunk is at one rank at first (``pre``), and needed by one or by all (``post``); the collective follows from
    these. Times, links and the topology are not read.

    Parameters
    ----------
    text: the file.

    Raises
    ------
    ScheduleError: it is not such JSON, of no collective that has schedules, or reduces: chunks then share an address,
        whose sends do not say which of them they carry. TACCL's XML does, and is read.

    Source: Shah et al. 2023, https://www.usenix.org/conference/nsdi23/presentation/shah; taccl/serialization.py of
    github.com/microsoft/taccl.
    """
    try:
        algorithm = _Algorithm.model_validate(parse_json(text))
    except JsonError as error:
        raise ScheduleError(f"line {error.line}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ScheduleError(f"{key}: {first['msg']}" if key else first["msg"]) from None
    ranks, chunks = algorithm.collective.nodes, algorithm.collective.chunks
    place = {chunk.addr: i for i, chunk in enumerate(chunks)}
    if len(place) != len(chunks):
        raise ScheduleError("chunks share an address, as in reductions; these are read from the XML of taccl ncclize")
    ends = np.array([(_end(i, chunk.pre, ranks, "pre"), _end(i, chunk.post, ranks, "post"))
                     for i, chunk in enumerate(chunks)], np.int64)  # fmt: skip
    moved = ends[:, 0] != ends[:, 1]
    number = np.where(moved, np.cumsum(moved) - 1, -1)  # of a chunk; what a rank has for itself has none
    rows = []
    for step, sends in enumerate(one.sends for one in algorithm.steps):
        for i, send in enumerate(sends):
            address, source, target = send[:3]
            where = f"steps.{step}.sends.{i}: {send[:3]}"
            if not all(type(one) is int for one in send[:3]) or address not in place:
                raise ScheduleError(f"{where} is not [address of a chunk, from, to]")
            if not (0 <= source < ranks and 0 <= target < ranks):
                raise ScheduleError(f"{where}: ranks are 0 to {ranks - 1}")
            if number[place[address]] < 0:
                raise ScheduleError(f"{where}: what a rank has for itself is not sent")
            rows.append((number[place[address]], source, target, step))
    start, goal = (np.ascontiguousarray(column) for column in ends[moved].T)
    kind, root = collective_of(ranks, start, goal)
    chunk_of, source_of, target_of, step_of = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    parts = len(start) // len(set(zip(start.tolist(), goal.tolist(), strict=True)))
    return Schedule(kind, ranks, start, goal, np.ones(len(start), np.int64), parts, chunk_of, source_of, target_of,
                    step_of, root)  # fmt: skip


def _end(chunk: int, ranks_of: list[int], ranks: int, key: str) -> int:
    """Return the only rank of a chunk at first or in the end, or ``ALL``."""
    if len(ranks_of) == 1 and ranks_of[0] < ranks:
        return ranks_of[0]
    if key == "post" and sorted(ranks_of) == list(range(ranks)):
        return ALL
    choices = "one rank" if key == "pre" else f"one rank or all {ranks}"
    raise ScheduleError(f"collective.chunks.{chunk}.{key}: {ranks_of[:8]} is not {choices}")
