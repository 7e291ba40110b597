# SPDX-License-Identifier: Apache-2.0
"""All-gather schedules in the JSON of TE-CCL."""

import json
import re
from typing import Any

import numpy as np

from flitlab.models.collective.schedule import ALL, Schedule, ScheduleError

FLOWS = "7-Flows"
"""The key of the list of sends."""

_FLOW = re.compile(r"Chunk (\d{1,9}) from (\d{1,9}) traveled over (\d{1,9})->(\d{1,9}) in epoch (\d{1,9})(?: via .*)?")


def parse_teccl(text: bytes) -> Schedule:
    """Return the schedule of the flows, ``Chunk 0 from 3 traveled over 3->1 in epoch 2``.

    A send of an epoch is a send of a step; epochs without sends are left out. GPUs are ranks in the order of their
    numbers; switches on the way, whose numbers are between those of GPUs, do not matter.

    Parameters
    ----------
    text: the file.

    Raises
    ------
    ScheduleError: it is not such JSON, chunks are split (flows with a volume, of a linear program), or not every GPU
        needs every chunk.

    Source: Liu et al. 2024, doi:10.1145/3651890.3672249; github.com/microsoft/TE-CCL.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ScheduleError(f"not JSON: {error}") from None
    flows, demands = document.get(FLOWS), document.get("6-Demand_Met")
    if not isinstance(flows, list) or not isinstance(demands, dict):
        raise ScheduleError(f"{FLOWS} must be a list, and 6-Demand_Met a mapping")
    chunks = sorted(_chunks(demands))
    gpus = sorted({gpu for gpu, _ in chunks})
    rank, number = {gpu: i for i, gpu in enumerate(gpus)}, {chunk: i for i, chunk in enumerate(chunks)}
    parts = len(chunks) // max(len(gpus), 1)
    if not chunks or parts * len(gpus) != len(chunks):
        raise ScheduleError("every GPU must have as many chunks as the others")
    rows = []
    for place, flow in enumerate(flows):
        match = _FLOW.fullmatch(flow) if isinstance(flow, str) else None
        if match is None:
            split = " with volume " in str(flow)
            problem = "splits a chunk, as linear programs do" if split else "is no send of a chunk in an epoch"
            raise ScheduleError(f"{FLOWS}.{place}: {str(flow)[:80]!r} {problem}")
        chunk, origin, source, target, epoch = map(int, match.groups())
        if source not in rank or target not in rank or (origin, chunk) not in number:
            raise ScheduleError(f"{FLOWS}.{place}: {flow[:80]!r} is of a GPU or chunk without demand")
        rows.append((number[origin, chunk], rank[source], rank[target], epoch))
    sends = np.array(sorted(rows, key=lambda row: row[3]), np.int64).reshape(-1, 4)
    _, step = np.unique(sends[:, 3], return_inverse=True)
    start = np.array([rank[gpu] for gpu, _ in chunks], np.int64)
    chunk_of, source_of, target_of = (np.ascontiguousarray(column) for column in sends[:, :3].T)
    return Schedule(
        "all_gather", len(gpus), start, np.full(len(start), ALL), np.ones(len(start), np.int64), parts,
        chunk_of, source_of, target_of, step.astype(np.int64),
    )  # fmt: skip


def _chunks(demands: dict[str, Any]) -> set[tuple[int, int]]:
    """Return the chunks as (GPU that has it, number): the demand of each GPU says from which it needs which."""
    chunks: set[tuple[int, int]] = set()
    needed: dict[int, set[tuple[int, int]]] = {}
    for name, of_gpu in demands.items():
        gpu = _gpu(name)
        needed[gpu] = {(_gpu(origin), _gpu(chunk, "Chunk")) for origin, some in of_gpu.items() for chunk in some}
        chunks |= needed[gpu]
    for gpu, some in needed.items():
        if missing := {chunk for chunk in chunks - some if chunk[0] != gpu}:
            origin, chunk = min(missing)
            raise ScheduleError(f"GPU {gpu} does not need chunk {chunk} of GPU {origin}: only all-gathers are read")
    return chunks


def _gpu(name: str, word: str = "GPU") -> int:
    match = re.fullmatch(rf"{word} (\d{{1,9}})", name)
    if match is None:
        raise ScheduleError(f"6-Demand_Met: {name[:40]!r} where {word} and a number are expected")
    return int(match[1])
