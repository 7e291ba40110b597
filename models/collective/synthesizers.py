# SPDX-License-Identifier: Apache-2.0
"""Schedules in the JSON of synthesizers: TE-CCL, and TACCL and SCCL, which write it before MSCCL's XML."""

import re
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from flitlab.models.collective.schedule import ALL, MAX_RANKS, Schedule, ScheduleError, collective_of
from flitlab.models.mappings import JsonObject
from flitlab.models.readable import JsonError, parse_json

FLOWS = b'-Flows"'
"""The end of the key of the list of sends: ``7-Flows``, or ``6-Flows`` of linear programs."""

SCCL_TYPE = b'sccl_type"'
"""The end of the key of every mapping: ``sccl_type`` of TACCL, ``msccl_type`` of msccl-tools."""

_FLOW = re.compile(
    r"Chunk (\d{1,9}) from (\d{1,9}) traveled over (\d{1,9})->(\d{1,9}) in epoch (\d{1,9})(?: via .*)?", re.ASCII
)


def parse_teccl(text: bytes) -> Schedule:
    """Return the schedule of the flows, ``Chunk 0 from 3 traveled over 3->1 in epoch 2``.

    A send of an epoch is a send of a step; epochs without sends are left out. GPUs are ranks in the order of their
    numbers; switches on the way, whose numbers are between those of GPUs, do not matter. The collective follows from
    the demands: a chunk that all others need is of an all-gather, one that another needs of an all-to-all.

    Parameters
    ----------
    text: the file.

    Raises
    ------
    ScheduleError: it is not such JSON, flows have a volume, as linear programs split chunks, or the demands are of no
        collective.

    Source: Liu et al. 2024, doi:10.1145/3651890.3672249; github.com/microsoft/TE-CCL.
    """
    try:
        document = parse_json(text)
    except JsonError as error:
        raise ScheduleError(f"line {error.line}: {error}") from None
    if not isinstance(document, dict):
        raise ScheduleError("a mapping with 7-Flows and 6-Demand_Met is expected")
    key = next((key for key in document if key.endswith("-Flows")), "7-Flows")
    flows, demands = document.get(key), document.get("6-Demand_Met")
    if not isinstance(flows, list):
        raise ScheduleError(f"{key} must be a list")
    for place, flow in enumerate(flows):
        if " with volume " in str(flow):
            problem = "is of a linear program, which splits chunks; schedules of integer programs are read"
            raise ScheduleError(f"{key}.{place}: {str(flow)[:80]!r} {problem}")
    if not isinstance(demands, dict):
        raise ScheduleError("6-Demand_Met must be a mapping")
    needs = _needs(demands)
    chunks = sorted(needs)
    gpus = sorted({*(gpu for gpu, _ in chunks), *(gpu for some in needs.values() for gpu in some)})
    if not chunks:
        raise ScheduleError("6-Demand_Met: no GPU needs a chunk of another")
    rank, number = {gpu: i for i, gpu in enumerate(gpus)}, {chunk: i for i, chunk in enumerate(chunks)}
    start = np.array([rank[gpu] for gpu, _ in chunks], np.int64)
    to_all = any(len(some) == len(gpus) - 1 for some in needs.values())
    goal = np.array([ALL if to_all else rank[min(needs[chunk])] for chunk in chunks], np.int64)
    for (origin, chunk), some in sorted(needs.items()):
        if len(some) != (len(gpus) - 1 if to_all else 1):
            without = min(set(gpus) - some - {origin})
            problem = f"GPU {without} does not need chunk {chunk} of GPU {origin}"
            raise ScheduleError(f"6-Demand_Met: {problem}: all others must need each chunk, or one other each")
    kind, root = collective_of(len(gpus), start, goal)
    rows = []
    for place, flow in enumerate(flows):
        match = _FLOW.fullmatch(flow) if isinstance(flow, str) else None
        if match is None:
            raise ScheduleError(f"{key}.{place}: {str(flow)[:80]!r} is no send of a chunk in an epoch")
        chunk, origin, source, target, epoch = map(int, match.groups())
        if source not in rank or target not in rank or (origin, chunk) not in number:
            raise ScheduleError(f"{key}.{place}: {flow[:80]!r} is of a GPU or chunk without demand")
        rows.append((number[origin, chunk], rank[source], rank[target], epoch))
    sends = np.array(sorted(rows, key=lambda row: row[3]), np.int64).reshape(-1, 4)
    _, step = np.unique(sends[:, 3], return_inverse=True)
    chunk_of, source_of, target_of = (np.ascontiguousarray(column) for column in sends[:, :3].T)
    parts = len(chunks) // len(set(zip(start.tolist(), goal.tolist(), strict=True)))
    return Schedule(
        kind, len(gpus), start, goal, np.ones(len(start), np.int64), parts, chunk_of, source_of, target_of,
        step.astype(np.int64), root,
    )  # fmt: skip


def _needs(demands: JsonObject) -> dict[tuple[int, int], set[int]]:
    """Return the GPUs that need each chunk, (GPU that has it, number), of another."""
    needs: dict[tuple[int, int], set[int]] = {}
    for name, of_gpu in demands.items():
        gpu = _gpu(name)
        if not isinstance(of_gpu, dict) or not all(isinstance(part, list | dict) for part in of_gpu.values()):
            raise ScheduleError(f"6-Demand_Met.{name}: must map GPUs to chunks")
        for origin, chunks in of_gpu.items():
            if (start := _gpu(origin)) != gpu:
                for chunk in chunks:
                    needs.setdefault((start, _gpu(chunk, "Chunk")), set()).add(gpu)
    return needs


def _gpu(name: object, word: str = "GPU") -> int:
    match = re.fullmatch(rf"{word} ([0-9]{{1,9}})", name) if isinstance(name, str) else None
    if match is None:
        raise ScheduleError(f"6-Demand_Met: {str(name)[:40]!r} where {word} and a number are expected")
    return int(match[1])


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
